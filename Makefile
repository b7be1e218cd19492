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
.PHONY: help demo test check dqn bench fuzz kill tamper paper tables figures table5 table6 sensitivity horizons baselines bucket format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## install, then train four learners on an Office task and compare them
	@$(BIN)/python examples/demo.py

# The tests start hundreds of processes: without bytecode on the disk each would compile the library.
# Kernels are compiled beside the checks, which keep one core busy, so that no two test processes compile the same one.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV_INSTALLED)  ## install, then check, tests and doctests
	@PYTHONPATH=tests $(BIN)/python tests/compile_ahead.py & kernels=$$!; \
	    $(MAKE) --no-print-directory check; checked=$$?; wait $$kernels && exit $$checked
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder
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
	$(BIN)/python bench/revising.py
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

# The protocols of the paper's tables: by the published code's rules, by the paper's text, and by exact evaluation.
PUBLISHED := as-published
DESCRIBED := as-described
EXACT := exact
PROTOCOLS := $(sort $(PUBLISHED) $(DESCRIBED) $(EXACT))
SWEEPS4 := $(PROTOCOLS:%=sweep4-%)
SWEEPS6 := $(PROTOCOLS:%=sweep6-%)
TABLES4 := $(PROTOCOLS:%=table4-%)
TABLES6 := $(PROTOCOLS:%=table6-%)
FIGURES := $(PROTOCOLS:%=figures-%)
.PHONY: $(SWEEPS4) $(SWEEPS6) $(TABLES4) $(TABLES6) $(FIGURES)
RESULTS := docs/results
# steps of the fixed budgets: the first suits map1, the second map2 and map3
BUDGETS := 50000 200000
QRMAX := $(BIN)/qrmax
IN_ONE = --protocol $*

paper: tables figures  ## every table and figure of the paper in all protocols, into docs/results (some hours; resumes if interrupted)

tables: $(TABLES4) $(TABLES6) table5  ## the paper's tables 1, 3, 4, 5 and 6 alone
	$(QRMAX) sweep paper/table4-unknown --protocol $(PUBLISHED)
	$(QRMAX) table paper/table4-unknown --protocol $(PUBLISHED) -o $(RESULTS)/table4-unknown-$(PUBLISHED).md

figures: $(FIGURES) sensitivity horizons  ## the paper's figures, and those that its text names, alone

table6: $(TABLES6)  ## the paper's tables 1 and 6 alone, the longest part of it

baselines: $(INSTALLED)  ## three forms of UCBVI, PSRL and OPSRL on map0, which the paper does not have, into docs/results
	$(QRMAX) sweep paper/baselines --protocol $(PUBLISHED)
	$(QRMAX) table paper/baselines --protocol $(PUBLISHED) -o $(RESULTS)/baselines.md

$(SWEEPS4): sweep4-%: $(INSTALLED)
	$(QRMAX) sweep paper/table4 $(IN_ONE)

$(SWEEPS6): sweep6-%: $(INSTALLED)
	$(QRMAX) sweep paper/table6 $(IN_ONE)

$(TABLES4): table4-%: sweep4-%
	$(QRMAX) table paper/table4 $(IN_ONE) -o $(RESULTS)/table4-$*.md
	$(QRMAX) table paper/table4 $(IN_ONE) --by map -o $(RESULTS)/table3-$*.md
	$(QRMAX) table paper/table4 $(IN_ONE) --measure bound -o $(RESULTS)/bounds-$*.md
	for budget in $(BUDGETS); do \
	    $(QRMAX) table paper/table4 $(IN_ONE) --at $$budget -o $(RESULTS)/success-after-$$budget-$*.md || exit; done

# The runs of table 1 are among those of table 6.
$(TABLES6): table6-%: sweep6-%
	$(QRMAX) table paper/table6 $(IN_ONE) -o $(RESULTS)/table6-$*.md
	$(QRMAX) table paper/table1 $(IN_ONE) --results results/table6-$* -o $(RESULTS)/table1-$*.md
	$(QRMAX) table paper/table6 $(IN_ONE) --measure time -o $(RESULTS)/time-$*.md

# The bounds of buckets are sampled, with a fixed seed.
table5: $(INSTALLED)
	$(QRMAX) plan office/map3/exp5 --horizon 250 > $(RESULTS)/table5.txt
	$(QRMAX) plan continuous/office/map1/exp1 > $(RESULTS)/bucket-bounds.txt

MEASURES := success nominal-length
TASK_MEASURES = $(MEASURES)
# With decorations at -100 policies wait for slips to pass them, so that no nominal run of table 4 reaches its goal.
figures-$(DESCRIBED): TASK_MEASURES := success
$(FIGURES): figures-%: sweep4-% sweep6-%
	$(QRMAX) plot paper/table4 $(IN_ONE) -o $(RESULTS)/all-exp-$*.png
	$(QRMAX) plot paper/table4 $(IN_ONE) --measure success -o $(RESULTS)/all-exp-success-$*.png
	for budget in $(BUDGETS); do \
	    $(QRMAX) plot paper/table4 $(IN_ONE) --at $$budget -o $(RESULTS)/success-after-$$budget-$*.png || exit; done
	for measure in $(MEASURES); do \
	    $(QRMAX) curves paper/table1 $(IN_ONE) --results results/table6-$* --measure $$measure --spread std --log \
	        -o $(RESULTS)/configurations-$$measure-$*.png && \
	    $(QRMAX) curves paper/table6 $(IN_ONE) --measure $$measure --spread std --log \
	        -o $(RESULTS)/five-configurations-$$measure-$*.png || exit; done
	for measure in $(TASK_MEASURES); do \
	    $(QRMAX) curves paper/table4 $(IN_ONE) --measure $$measure --spread std --log \
	        -o $(RESULTS)/tasks-$$measure-$*.png || exit; done
	$(QRMAX) curves paper/table1 $(IN_ONE) --results results/table6-$* --measure value --log \
	    -o $(RESULTS)/configurations-value-$*.png

sensitivity: $(INSTALLED)
	$(QRMAX) sweep paper/sensitivity --protocol $(EXACT)
	$(QRMAX) table paper/sensitivity --protocol $(EXACT) -o $(RESULTS)/sensitivity-$(EXACT).md
	$(QRMAX) plot paper/sensitivity --protocol $(EXACT) --against t_env -o $(RESULTS)/sensitivity-$(EXACT).png

horizons: $(INSTALLED)
	$(QRMAX) sweep paper/horizons --protocol $(PUBLISHED)
	$(QRMAX) table paper/horizons --protocol $(PUBLISHED) -o $(RESULTS)/horizons-$(PUBLISHED).md
	$(QRMAX) plot paper/horizons --protocol $(PUBLISHED) --against horizon --log --measure steps -o $(RESULTS)/horizons-$(PUBLISHED).png

bucket: $(DQN_INSTALLED)  ## continuous worlds: the bucket agents and DQN, into docs/results (some hours; resumes if interrupted)
	$(BIN)/qrmax sweep paper/bucket
	$(BIN)/qrmax table paper/bucket -o docs/results/bucket.md
	$(BIN)/qrmax curves paper/bucket -o docs/results/bucket.png
	$(BIN)/qrmax sweep paper/bucket-sizes
	$(BIN)/qrmax table paper/bucket-sizes -o docs/results/bucket-sizes.md
	$(BIN)/qrmax sweep paper/bucket-fine
	$(BIN)/qrmax table paper/bucket-fine -o docs/results/bucket-fine.md
	$(BIN)/qrmax sweep paper/bucket-published
	$(BIN)/qrmax table paper/bucket-published -o docs/results/bucket-published.md
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
