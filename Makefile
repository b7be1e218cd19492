# Everything a stranger needs: `make demo` shows the main job, `make test` checks the whole project.
# Both bootstrap .venv with plain `python3 -m venv` and pip; nothing else is required.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.dev-installed
DQN_INSTALLED := $(VENV)/.dqn-installed
BENCH_INSTALLED := $(VENV)/.bench-installed
FUZZ_INSTALLED := $(VENV)/.fuzz-installed
# pip's options for PyTorch alone, such as those of its CPU build
TORCH ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check dqn bench fuzz kill tamper paper table6 bucket format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## install, then train four learners on an Office task and compare them
	@$(BIN)/python examples/demo.py

# The tests start hundreds of processes: without bytecode on the disk each would compile the library.
test: export PYTHONDONTWRITEBYTECODE =
test: check  ## install, then check, tests and doctests
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests -m small_enough_without_jit --numprocesses 2

check: $(DEV_INSTALLED)  ## ruff, ruff format, mypy strict, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/own_world.py tests/typed_user.py
	$(BIN)/lint-imports --no-cache

dqn: $(DQN_INSTALLED)  ## install PyTorch (large: it says how to get the CPU build) for dqn and dqn-rm; make test has their tests then

# the revision that `make bench` compares compiled rates with
AGAINST ?= HEAD^
bench: $(BENCH_INSTALLED)  ## benchmarks: planning, compilation, training, environments, sweeps and formulas, against peers and the previous commit
	$(BIN)/python bench/planning.py
	$(BIN)/python bench/compiling.py
	$(BIN)/python bench/learning.py
	$(BIN)/python bench/environments.py
	$(BIN)/python bench/regression.py --against $(AGAINST)
	$(BIN)/python bench/episodes.py
	$(BIN)/python bench/buckets.py
	$(BIN)/python bench/sweeping.py
	$(BIN)/python bench/logic.py

FUZZ_SECONDS ?= 60
fuzz: $(FUZZ_INSTALLED)  ## every parser on mutated input, for FUZZ_SECONDS (60)
	$(BIN)/python fuzz/parsers.py -max_total_time=$(FUZZ_SECONDS)

CAMPAIGN := PYTHONPATH=tests $(BIN)/python -m campaigns
kill: $(DEV_INSTALLED)  ## random signals to sweeps and to a Ray cluster: the results stay the same (20 minutes)
	$(CAMPAIGN).kill
	$(CAMPAIGN).kill_ray

tamper: $(DEV_INSTALLED)  ## run files with tampered tables: refused, or trained on; never a hang or a crash (30 minutes)
	$(CAMPAIGN).tamper

PUBLISHED := --protocol as-published
DESCRIBED := --protocol as-described
EXACT := --protocol exact
paper: $(INSTALLED)  ## the paper's table 4 in all protocols, into docs/results (some hours; resumes if interrupted)
	$(BIN)/qrmax sweep paper/table4 $(PUBLISHED)
	$(BIN)/qrmax table paper/table4 $(PUBLISHED) -o docs/results/table4-as-published.md
	$(BIN)/qrmax sweep paper/table4-unknown $(PUBLISHED)
	$(BIN)/qrmax table paper/table4-unknown $(PUBLISHED) -o docs/results/table4-unknown-as-published.md
	$(BIN)/qrmax sweep paper/table4 $(EXACT)
	$(BIN)/qrmax table paper/table4 $(EXACT) -o docs/results/table4-exact.md
	$(BIN)/qrmax table paper/table4 $(PUBLISHED) --by map -o docs/results/table3-as-published.md
	$(BIN)/qrmax table paper/table4 $(EXACT) --by map -o docs/results/table3-exact.md
	$(BIN)/qrmax plot paper/table4 $(EXACT) -o docs/results/table4-steps.png
	$(BIN)/qrmax plot paper/table4 $(EXACT) --measure success -o docs/results/table4-success.png
	$(BIN)/qrmax sweep paper/table4 $(DESCRIBED)
	$(BIN)/qrmax table paper/table4 $(DESCRIBED) -o docs/results/table4-as-described.md

table6: $(INSTALLED)  ## the paper's table 6 in all protocols, into docs/results (many hours; resumes if interrupted)
	$(BIN)/qrmax sweep paper/table6 $(EXACT)
	$(BIN)/qrmax table paper/table6 $(EXACT) -o docs/results/table6-exact.md
	$(BIN)/qrmax sweep paper/table6 $(PUBLISHED)
	$(BIN)/qrmax table paper/table6 $(PUBLISHED) -o docs/results/table6-as-published.md
	$(BIN)/qrmax sweep paper/table6 $(DESCRIBED)
	$(BIN)/qrmax table paper/table6 $(DESCRIBED) -o docs/results/table6-as-described.md

bucket: $(DQN_INSTALLED)  ## continuous worlds: the bucket agents and DQN, into docs/results (some hours; resumes if interrupted)
	$(BIN)/qrmax sweep paper/bucket
	$(BIN)/qrmax table paper/bucket -o docs/results/bucket.md
	$(BIN)/qrmax curves paper/bucket -o docs/results/bucket.png
	$(BIN)/qrmax sweep paper/bucket-sizes
	$(BIN)/qrmax table paper/bucket-sizes -o docs/results/bucket-sizes.md
	$(BIN)/qrmax sweep paper/bucket-fine
	$(BIN)/qrmax table paper/bucket-fine -o docs/results/bucket-fine.md
	$(BIN)/python examples/bucket_limits.py > docs/results/bucket-limits.md

format: $(DEV_INSTALLED)  ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find src tests bench examples fuzz -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run start at once: they are renewed only when the requirements change.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "qrmax needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "installing qrmax into $(VENV) (once, about a minute) ..." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable .
	@touch $@

$(DEV_INSTALLED): $(INSTALLED)
	@echo "installing what the tests need (once) ..." >&2
	@$(PIP) --no-build-isolation --editable '.[dev,ray]'
	@touch $@

$(DQN_INSTALLED): $(DEV_INSTALLED)
	@echo "installing PyTorch and Stable-Baselines3 (once) ..." >&2
	@test -n '$(TORCH)' || { \
	    echo "  On Linux, PyPI's PyTorch brings some 5.5 GB of CUDA libraries, which these agents do not use."; \
	    echo "  Its CPU build takes 0.8 GB. To have that instead, break off now (Ctrl-C) and give pip's"; \
	    echo "  options for it, which PyTorch's own page on installation (Get Started, CPU) shows:"; \
	    echo "      make dqn TORCH='--index-url ADDRESS'"; } >&2
	@test -z '$(TORCH)' || $(PIP) $(TORCH) torch
	@$(PIP) --no-build-isolation --editable '.[dev,ray,dqn]'
	@touch $@

$(BENCH_INSTALLED): $(DEV_INSTALLED)
	@echo "installing the peers of the benchmark (once) ..." >&2
	@$(PIP) --no-build-isolation --editable '.[dev,ray,bench]'
	@touch $@

$(FUZZ_INSTALLED): $(DEV_INSTALLED)
	@echo "installing Atheris (once) ..." >&2
	@$(PIP) --no-build-isolation --editable '.[dev,ray,fuzz]'
	@touch $@
