# Everything a stranger needs: `make demo` shows the main job, `make test` checks the whole project.
# Both bootstrap .venv with plain `python3 -m venv` and pip; nothing else is required.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.bench-installed

.DEFAULT_GOAL := help
.PHONY: help demo test check bench paper format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## install, then train four learners on an Office task and compare them
	@$(BIN)/python examples/demo.py

test: check  ## install, then check, tests and doctests
	$(BIN)/python -m pytest --numprocesses 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m small_enough_without_jit --numprocesses 2

check: $(INSTALLED)  ## ruff, ruff format, mypy strict, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(BENCH_INSTALLED)  ## planning beside QuantEcon, Storm and SciPy; learners beside plain Python
	$(BIN)/python bench/planning.py
	$(BIN)/python bench/learning.py

paper: $(INSTALLED)  ## the paper's table 4 in both protocols, into docs/results (half an hour)
	$(BIN)/python bench/table4.py --protocol as-published --seeds 10 -o docs/results/table4-as-published.md
	$(BIN)/python bench/table4.py --protocol as-described --seeds 10 -o docs/results/table4-as-described.md

format: $(INSTALLED)  ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run start at once: they are renewed only when the requirements change.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "qrmax needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "installing qrmax into $(VENV) (once, about a minute) ..." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	@echo "installing the peers of the benchmark (once) ..." >&2
	@$(PIP) --no-build-isolation --editable '.[dev,bench]'
	@touch $@
