# Every target creates .venv and installs gdlx into it on first use, and again when pyproject.toml changes.
PYTHON ?= python3
GAME ?= leduc_poker
NAME ?= all

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help solve test check bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

solve: $(READY) ## solve GAME (default leduc_poker): an equilibrium with its measured exploitability
	$(BIN)/gdlx solve $(GAME)

test: $(READY) ## run the tests on all cores
	$(BIN)/python -m pytest -n auto --dist loadfile  # tests of a file share compiled programs

check: $(READY) .link/gdlx ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(READY) ## run benchmark NAME (default all)
	$(BIN)/gdlx bench $(NAME)

clean: ## remove caches and build products, but not .venv
	rm -rf .link build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
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
