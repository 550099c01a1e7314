# `make demo` and `make test` do everything on a fresh machine; the rest are their parts.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help setup parts demo docs test test-live engine browser check format bench clean

help:
	@echo "make demo    install, bring the model once, run the demo experiment"
	@echo "make test    install, check the code, run all tests"
	@echo "make docs    the documentation as a site in build/site, links checked"
	@echo "make test-live  the tool table against public endpoints (needs the web)"
	@echo "make check   format, lint, types and layers only"
	@echo "make bench   speed and memory beside what a user would write instead"
	@echo "make clean   delete the virtual environment and build output"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,pack]"
	@touch $(READY)

setup: $(READY)

parts: $(READY)
	$(BIN)/reasoningbank lm pull local
	$(BIN)/reasoningbank doctor --fix

demo: parts
	$(BIN)/reasoningbank run experiments/uniprot_demo.toml
	$(BIN)/reasoningbank report runs/uniprot_demo

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests' second SPARQL engine; where it cannot be had, its tests are skipped and say so.
engine: $(READY)
	-$(BIN)/python scripts/fetch_virtuoso.py

# The browser that the report is tried in; likewise.
browser: $(READY)
	-$(BIN)/python scripts/fetch_browser.py

# Tests with the real model run one after another: models at once compete for the cores.
test: check parts engine browser
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not live and not model"
	$(BIN)/python -m pytest -m model tests

test-live: $(READY)
	$(BIN)/python -m pytest -m live tests/live

bench: $(READY)
	$(BIN)/python -m benchmarks

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
