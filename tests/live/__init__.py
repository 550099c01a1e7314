"""The tools against public endpoints; `make test-live`, where there is the web."""
