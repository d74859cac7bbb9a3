# Python 3.11 or newer and make are all this needs; everything else goes into .venv.
#
#   make demo    show that it works: back up a sample database, restore it, compare
#   make run     the dashboard and one worker at http://127.0.0.1:8000
#   make test    the tests      make test-slow   those that kill, wait and measure
#   make check   style, types, imports           make e2e   the browser tests
#   make matrix  restore every format, codec and way, and from each major into it and the newer ones: a table

PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
SOURCES := pgbr jobs schedules dashboard tests bench manage.py gunicorn.conf.py
# Tests wait for servers and workers more than they compute.
TEST_PROCESSES ?= 4

.PHONY: help setup setup-dev run demo test test-slow e2e check style types imports migrations lengths matrix chaos bench clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

# Packages -----------------------------------------------------------------------------------------

# Made anew only when it is missing, so that a newer python3 of the system changes nothing under way.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "pgbr needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module" >&2; \
	  echo "(Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	@echo "Setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/installed: requirements.txt | $(PY)
	@echo "Installing packages"
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/installed-dev: requirements-dev.txt requirements.txt | $(PY)
	@echo "Installing packages for tests and checks"
	@$(PIP) -r requirements-dev.txt
	@touch $(VENV)/installed $@

setup: $(VENV)/installed

setup-dev: $(VENV)/installed-dev

# Use ----------------------------------------------------------------------------------------------

run: setup
	@$(PY) manage.py run

demo: setup
	@$(PY) manage.py demo

# Development --------------------------------------------------------------------------------------

test: setup-dev
	$(PY) -m pytest -n $(TEST_PROCESSES) --dist loadfile -m "not e2e and not slow" $(PYTEST_ARGS)

# What tests/slow.py lists: workers and servers that are killed, memory that is measured, years that are walked.
test-slow: setup-dev
	$(PY) -m pytest -n $(TEST_PROCESSES) --dist loadfile -m slow $(PYTEST_ARGS)

e2e: setup-dev
	$(PY) -m pytest tests/e2e -m e2e $(PYTEST_ARGS)

check: style types imports migrations lengths

style: setup-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: setup-dev
	$(PY) -m mypy $(wildcard $(SOURCES))

imports: setup-dev
	PYTHONPATH=. $(VENV)/bin/lint-imports

migrations: setup-dev
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

# No file of ours over 300 lines.
lengths:
	@find $(wildcard $(SOURCES) templates docs .ci Makefile README.md) -type f \
	  \( -name '*.py' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.sql' -o -name '*.md' \
	     -o -name '*.sh' -o -name run -o -name Makefile \) -exec awk \
	  'END { if (FNR > 300) { print FILENAME ": " FNR " lines, at most 300 are allowed"; exit 1 } }' {} \;  \
	  | { ! grep . ; }

# Workers and servers that are killed, stopped and cut off in the middle of their work; then the same at random,
# for SOAK_SECONDS (900), as SOAK_SEED says.
chaos: setup-dev
	$(PY) -m pytest tests/worker tests/embedded tests/storage/test_s3_outage.py $(PYTEST_ARGS)
	$(PY) -m pytest tests/chaos -m chaos -s $(PYTEST_ARGS)

matrix: setup-dev
	@$(PY) -m tests.restoring.matrix

bench: setup-dev
	$(PY) -m bench.backup
	$(PY) -m bench.restore
	$(PY) -m bench.memory
	$(PY) -m bench.tick

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find $(wildcard $(SOURCES)) -name __pycache__ -type d -prune -exec rm -rf {} +
