# Every target creates .venv and installs gdlx into it on first use, and again when pyproject.toml changes.
PYTHON ?= python3
GAME ?= leduc_poker
NAME ?= all
MINUTES ?= 5

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help solve test test-slow test-optimised test-faults test-fuzz check reference bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

solve: $(READY) ## solve GAME (default leduc_poker): an equilibrium with its measured exploitability
	$(BIN)/gdlx solve $(GAME)

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --durations=20  # tests of a file share compiled programs

# What computes: solvers, packed environments and playouts; and every command once.
OPTIMISED := tests/optimised tests/envs/packed tests/solvers/exact/test_cfr.py tests/solvers/exact/test_best_response.py \
  tests/solvers/mccfr/test_outcome_sampling.py tests/solvers/mccfr/test_hash_table.py

test: $(READY) ## run the tests on all cores, without the slow ones
	$(PYTEST)

test-slow: $(READY) ## run the tests that are marked slow
	$(PYTEST) -m slow

test-optimised: $(READY) ## run what users run, with the optimisations of XLA that the other tests leave out
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(PYTEST) -m "not slow" $(OPTIMISED)

# Counts add up over calls in .trials/, which is also where the next call goes on.
test-faults: $(READY) ## stop commands at random moments, or take disk and memory away, for MINUTES (default 5)
	@mkdir -p .trials
	$(BIN)/python -m gdlx.tests.faults --minutes $(MINUTES) --counts .trials/faults.json

test-fuzz: $(READY) ## try mutated sheets, files, caches and command lines for MINUTES (default 5)
	@mkdir -p .trials
	GDLX_CACHE=.trials/cache $(BIN)/python -m gdlx.tests.fuzz --minutes $(MINUTES) --counts .trials/fuzz.json

check: $(READY) .link/gdlx ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

reference: $(READY) ## write docs/reference/api.md and cli.md from docstrings and help texts
	$(BIN)/python docs/generate_reference.py

bench: $(READY) ## run benchmark NAME (default all)
	$(BIN)/gdlx bench $(NAME)

clean: ## remove caches and build products, but not .venv
	rm -rf .link .trials build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gdlx needs Python 3.11 or newer as '$(PYTHON)'; name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "installing gdlx and its dependencies into $(VENV), which takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# The top level is the package gdlx, whatever the folder of the clone is called. mypy finds it through this link.
.link/gdlx:
	@mkdir -p $(@D)
	@ln -s .. $@
