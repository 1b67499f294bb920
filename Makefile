# Two commands set everything up by themselves: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LEAN := .venv-lean
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(BIN)/python .ci/install.py -c constraints.txt
# It must keep what it compiled, or each of some hundred processes compiles all of it again.
unexport PYTHONDONTWRITEBYTECODE
# A process a core, at most four. One thread each, or they fight for the cores. Where a process can be
# forked after imports, all share one collection and the models, and one more fills the cores where
# tests wait; coverage is counted without that.
WORKERS := --numprocesses auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder
FORKS := $(if $(filter Linux,$(shell uname)),-p tests.forks --forks auto,$(WORKERS))
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
EXAMPLE := -s examples/source.de.txt -t examples/system-good.en.txt examples/system-fair.en.txt \
	examples/system-poor.en.txt -r examples/reference-a.en.txt examples/reference-b.en.txt \
	--names good fair poor
SOURCE := -s examples/source.de.txt -t examples/system-good.en.txt examples/system-fair.en.txt \
	examples/system-poor.en.txt --names good fair poor
LEXICAL := bleu chrf ter nist meteor

.PHONY: docs demo test tests test-slow coverage faults extras fuzz lint bench clean

demo: $(VENV)/.demo
	@echo; echo "1. Three systems by the words they share with two references"
	$(BIN)/tertium score $(EXAMPLE) -m $(LEXICAL)
	@echo; echo "2. The same by meaning"
	$(BIN)/tertium score $(EXAMPLE) -m tertium-small bertscore sss sentsim
	@echo; echo "3. By the source alone: bad systems are found, good ones are hard to tell apart"
	$(BIN)/tertium score $(SOURCE) -m tertium-multi sss sentsim
	@echo; echo "4. Which differences are more than chance, and what they mean to people"
	$(BIN)/tertium compare $(EXAMPLE) -m chrf tertium-small
	@echo; echo "Your own files: $(BIN)/tertium score -t ours.txt -r reference.txt; docs/getting-started.md says more"

# Types and style are checked while the tests run: either failing fails the whole.
test: $(VENV)/.packages
	$(MAKE) --no-print-directory --keep-going --jobs 2 lint tests

tests: $(VENV)/.dev
	$(PYTEST) $(FORKS) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.dev
	$(PYTEST) -m slow $(PYTEST_ARGS)

coverage: $(VENV)/.dev
	$(PYTEST) $(WORKERS) --cov --cov-report=term:skip-covered -m "not slow" $(PYTEST_ARGS)

# FAULTS_KILLS=200, FAULTS_TIMES=10 of each other fault, FAULTS_SEED=1: prints counts by kind
faults: $(VENV)/.dev
	$(BIN)/python -m tests.faults

# every combination of extras in an environment of its own; the wheel alone in a fresh one
extras: $(VENV)/.dev
	rm -rf $(LEAN) dist/tertium-*.whl
	$(PIP) wheel --no-deps -w dist .
	$(PYTHON) -m venv $(LEAN)
	$(LEAN)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt dist/tertium-*.whl
	$(BIN)/python -m tests.extras.environments installed $(LEAN)/bin/python
	$(BIN)/python -m tests.extras.environments all

# The laws at random, as long as one likes: FUZZ_SECONDS=600 FUZZ_SEED=2 make fuzz
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.laws.fuzz $(FUZZ_ARGS)

lint: $(VENV)/.packages
	$(BIN)/python -m ruff check src tests benchmarks recipes papers weights
	$(BIN)/python -m ruff format --check --quiet src tests benchmarks recipes papers weights
	$(BIN)/python -m mypy

# the pages as a site in site/; a link that leads nowhere or a page without a place fails
# not --quiet: what is not said is not counted, and nothing fails
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks --write docs/benchmarks.md

clean:
	rm -rf $(VENV) $(LEAN) build dist site .mypy_cache .pytest_cache .ruff_cache .coverage

# pip comes with the packages: `venv` would unpack and compile an older one first
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tertium needs Python 3.11 or newer")'
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/.demo: pyproject.toml weights/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing tertium with its models (a few minutes, once) ..."
	$(INSTALL) -e '.[neural,models,linguistics]' -e ./weights
	$(BIN)/tertium models install e5 wordnet
	@touch $@

$(VENV)/.packages: pyproject.toml weights/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing tertium with everything its tests need (a few minutes, once) ..."
	$(INSTALL) -e '.[dev]' -e ./weights
	@touch $@

$(VENV)/.dev: $(VENV)/.packages
	$(BIN)/tertium models install e5 wordnet
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: constraints.txt | $(BIN)/python
	$(INSTALL) mkdocs-material 'mkdocstrings[python]'
	@touch $@
