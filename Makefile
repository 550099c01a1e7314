# `make demo` and `make test` do everything on a fresh machine; the rest are their parts.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help setup parts demo test check format bench clean

help:
	@echo "make demo    install, bring the model once, run the demo experiment"
	@echo "make test    install, check the code, run all tests"
	@echo "make check   format, lint, types and layers only"
	@echo "make bench   speed and memory beside what a user would write instead"
	@echo "make clean   delete the virtual environment and build output"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,analysis,pack]"
	@touch $(READY)

setup: $(READY)

parts: $(READY)
	$(BIN)/reasoningbank lm pull local
	$(BIN)/reasoningbank doctor --fix

demo: parts
	$(BIN)/reasoningbank run experiments/uniprot_demo.toml

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check parts
	$(BIN)/python -m pytest

bench: $(READY)
	$(BIN)/python -m benchmarks

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
