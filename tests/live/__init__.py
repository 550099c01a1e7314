"""The tools against public endpoints; `make test-live`, for whoever has the web."""
