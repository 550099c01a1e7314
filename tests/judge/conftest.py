"""Property tests try the same examples on every machine, and keep no record of them."""

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, database=None)
settings.load_profile("reproducible")
