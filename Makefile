# Needs python3 (3.10 or newer) and make. Everything else goes into .venv, once, and again when
# pyproject.toml changes; with that done nothing here needs a network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0 torchvision==0.28.0  # the tests'; first, so that nothing else chooses others
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test gangs lint soak reliability bench docs picture clean

help:  ## this list
	@grep -E '^[a-z]+:.*  ## ' Makefile | sed -E 's/^([a-z]+):.*  ## (.*)/make \1\t\2/' | expand -t 18

demo: $(VENV)/.installed  ## six runs, one worker killed on the way: 20 seconds
	@$(BIN)/hostler demo

test: $(VENV)/.test $(VENV)/.sweeper  ## all tests but the long ones; the few that fail once more, alone
	@bash tests/packages.sh
	$(BIN)/python tests/suite.py

gangs: $(VENV)/.gangs  ## TensorFlow and JAX on two workers each: 1.3 GB of packages that `make test` does without
	CI=true $(BIN)/python -m pytest tests/frameworks/test_gang_frameworks.py tests/frameworks/test_example_tensorflow.py

lint: $(VENV)/.lint  ## format, rules, types, imports, platforms' names, what --help, run and status load
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/platform_names.py
	$(BIN)/python tests/help_imports.py
	$(BIN)/python tests/verb_imports.py

soak: $(VENV)/.test  ## every long test, each time anew; writes no page
	@bash tests/packages.sh
	HOSTLER_SOAK=1 $(BIN)/python -m pytest -s -m soak --timeout=7200 tests

reliability: $(VENV)/.test  ## the doses on record that this commit has not had; writes docs/reliability.md
	@bash tests/packages.sh
	$(BIN)/python tests/history/record.py

bench: $(VENV)/.test  ## times against their floors; fails when a bound is missed
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs  ## the documentation as a site of files: site/index.html
	$(BIN)/python docs/tables.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

picture: $(VENV)/.test  ## the pictures in the docs, from real runs
	$(BIN)/python docs/picture.py

clean:  ## remove what these commands made
	rm -rf $(VENV) .hostler-demo .hostler-demo-gce .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 10) and "hostler needs Python 3.10 or newer, and $(PYTHON) is %d.%d" % v[:2])'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[buckets]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) $(TORCH)
	$(BIN)/python tests/torchvision_here.py
	$(PIP) -e '.[test,frameworks]'
	@touch $@ $(VENV)/.installed

# Candidates, apart from the Hydra that everything else is tested with. Without them one test says so.
$(VENV)/.sweeper: tests/hydra_sweeper.txt | $(VENV)/bin/python
	@rm -rf $(VENV)/hydra-sweeper
	@if $(PIP) --retries 1 --no-deps --target $(VENV)/hydra-sweeper -r $<; then touch $@; else \
		rm -rf $(VENV)/hydra-sweeper; echo "Hydra's sweeper by Optuna could not be installed: its test is left out"; fi

$(VENV)/.gangs: pyproject.toml | $(VENV)/bin/python
	$(PIP) $(TORCH)
	$(BIN)/python tests/torchvision_here.py
	$(PIP) -e '.[test,gangs-test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(PIP) $(TORCH)
	$(BIN)/python tests/torchvision_here.py
	$(PIP) -e '.[test,frameworks,lint]'
	@touch $@ $(VENV)/.test $(VENV)/.installed
