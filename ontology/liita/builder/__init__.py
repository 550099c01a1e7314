"""Builds the pack's embedded sample from the tables beside this file.

`python -m ontology.liita.builder` (from the repository's root) reads the tables, and writes `data/`
and the VoID descriptions. The same tables always give the same bytes. `tables` reads and checks the
tables, `words` says how they are read together, `liita` and `complit` make the facts of the two
endpoints, `names` their IRIs.
"""
