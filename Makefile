# `make demo` and `make test` need Python 3.11 or newer and make; they set up everything else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= auto

.PHONY: help demo test quick lint format bench clean
.DEFAULT_GOAL := help

help:  ## Show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## Replay a bundled conversation, then forget a phone number in it and prove it
	@$(BIN)/python -m dellm.demo
	@$(BIN)/python -m dellm_langchain.demo
	@$(BIN)/python examples/six_tables.py

test: $(STAMP)  ## Run every test, on SQLite and PostgreSQL
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

quick: $(STAMP)  ## Run the tests that take no time
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not long'

lint: $(STAMP)  ## ruff and mypy strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(STAMP)  ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)  ## Measure against bare databases and print the tables
	@$(BIN)/python -m benchmarks.core
	@$(BIN)/python -m benchmarks.checkpoints
	@$(BIN)/python -m benchmarks.histories
	@$(BIN)/python -m benchmarks.llamaindex
	@$(BIN)/python -m benchmarks.derived
	@$(BIN)/python -m benchmarks.governance
	@$(BIN)/python -m benchmarks.requests --data ../shared/data

clean:  ## Remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
