# Everything sets itself up in .venv; Python ≥ 3.11 and make are enough.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

# Tables: other processors, and errors put into the core.
ELSEWHERE := $(BIN)/python -m tests.elsewhere
# Parts of `make torture`, each a table.
TORTURE ?= kills faults pairs load inputs

.PHONY: audit test quick-test test-elsewhere numbers-elsewhere mutations torture sbom vulnerabilities lint format bench explore-load site wheel clean help

help:
	@echo "make audit   train a small classifier, audit its attention, write the page"
	@echo "make test    the whole test suite"
	@echo "make quick-test         the part of it that takes less than a minute"
	@echo "make test-elsewhere     the suite as it would run on other processors: a table"
	@echo "make numbers-elsewhere  which numbers of an audit move between processors: a table"
	@echo "make mutations          errors put into the core one at a time, and who catches them"
	@echo "make torture            kills, full disks, two processes on one folder, large files, a million damaged inputs: tables"
	@echo "make sbom               a bill of materials of what is installed: build/sbom.json"
	@echo "make vulnerabilities    known ones in the pinned versions (needs a network)"
	@echo "make lint    formatter, linter and strict type check"
	@echo "make site    the guide, as pages that open from disk"
	@echo "make bench   speed, measured side by side"
	@echo "make explore-load       fifty clients at the live page for a minute"

audit: .venv/installed
	$(BIN)/heedful audit bilstm+additive --out runs/audit

# A file's tests share what they trained, so a file stays with one worker; those with long tests
# come first (tests/conftest.py). Byte code is kept: there are 450 files to compile otherwise.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest \
	-n $(JOBS) --dist loadfile --no-loadscope-reorder

test: .venv/developing
	$(PYTEST) --doctest-modules src tests

quick-test: .venv/developing
	$(PYTEST) -m "not slow and not browser" tests

test-elsewhere: .venv/developing
	$(ELSEWHERE) machines --jobs $(JOBS)
	$(ELSEWHERE) libraries --jobs $(JOBS)

numbers-elsewhere: .venv/developing
	$(ELSEWHERE) numbers --jobs $(JOBS)

mutations: .venv/developing
	$(ELSEWHERE).mutations $(JOBS)

torture: .venv/developing
	for part in $(TORTURE); do $(BIN)/python -m tests.torture $$part || exit 1; done

# Tools of their own environment: what they bring is no part of what they list.
.venv/supply/installed: constraints.txt
	$(PYTHON) -m venv .venv/supply
	.venv/supply/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 pip-audit==2.10.1
	@touch $@

sbom: .venv/developing .venv/supply/installed
	@mkdir -p build
	.venv/supply/bin/cyclonedx-py environment --output-reproducible -o build/sbom.json $(BIN)/python

vulnerabilities: .venv/supply/installed
	.venv/supply/bin/pip-audit -r constraints.txt --no-deps --disable-pip --strict

lint: .venv/developing
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/mypy

format: .venv/developing
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs

bench: .venv/developing
	$(BIN)/python -m benchmarks

explore-load: .venv/developing
	$(BIN)/python -m benchmarks.explorer_load

site: .venv/developing
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open site/index.html"

wheel: .venv/developing
	$(BIN)/python -m build --wheel

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful needs Python 3.11 or newer; set PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/developing: .venv/created pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ .venv/installed

clean:
	rm -rf .venv build dist runs site .pytest_cache .ruff_cache .mypy_cache .hypothesis
