# Everything happens in .venv inside the checkout; only apt-get, where it is needed, goes beyond.
PYTHON ?= python3
BIN := .venv/bin
REPLICATES ?= 50
OUT ?= results/whole-$(REPLICATES)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of test processes import the package: Python keeps what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup lint check test test-all test-rest alone alone-all programs warm docs r-docs study torture torture-federation bench clean

setup: .venv/ready alone programs warm

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("fedlasso needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (once, about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The wheel with what fits need, in an environment of its own; alone-all adds each other extra.
alone: .venv/alone/fit.whl
alone-all: .venv/alone/dask.whl

.venv/alone/fit.whl: .venv/ready
	@echo "Setting up .venv/alone/fit (once, half a minute)"
	@PYTHONPATH=tests $(BIN)/python tests/helpers/alone.py fit

.venv/alone/dask.whl: .venv/alone/fit.whl
	@echo "Setting up .venv/alone for each extra (once, about a minute)"
	@PYTHONPATH=tests $(BIN)/python tests/helpers/alone.py

# The kernels are compiled once, not by every test process at the same time.
warm: .venv/warm

.venv/warm: .venv/ready $(wildcard src/fedlasso/numerics/*.py)
	@echo "Compiling the kernels (once, half a minute)"
	@PYTHONPATH=tests $(BIN)/python tests/helpers/warm.py
	@touch $@

# The page is tested in a real browser, the supplement by a real TeX, and the R package by R: found
# here, or fetched.
programs: .venv/ready
	@PYTHONPATH=tests $(BIN)/python tests/helpers/programs.py

# Three tiers. check: lint, types and quick tests in this process, the inner loop.
# test: adds the browser, TeX, R, the wheel alone, tutorials and everything that needs no network.
# test-all: adds real processes, faults, attacks over a network, other processors, and each extra.
# Real processes wait more than they compute, so more workers than cores pay; any number will do.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 3)')
CORES ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
ORDER ?=
PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder $(ORDER)
check: lint warm
	$(PYTEST) -n $(CORES) -m "not standard and not full"

test: lint alone programs warm
	$(PYTEST) -n $(WORKERS) -m "not full"

test-rest: alone-all programs warm
	$(PYTEST) -n $(WORKERS) -m full

test-all: test test-rest

# The documentation as a site: open site/index.html. A broken link, or any warning, ends it.
docs: .venv/ready
	$(BIN)/python -m sphinx -W --keep-going -n -q docs site
	@echo "Open site/index.html"

# NAMESPACE and man/ of the R package, from the comments above its functions.
r-docs:
	@library=$$(mktemp -d) && R CMD INSTALL --no-docs --library=$$library r && \
	R_LIBS_USER=$$library Rscript -e "roxygen2::roxygenise('r', load_code = 'installed')"; \
	rm -rf $$library

# The paper's study with Secant and the goals on the same draws: 12 scenarios x 50 replicates.
# The short form is make study REPLICATES=2.
study: .venv/ready
	$(BIN)/fedlasso study run --study whole --replicates $(REPLICATES) --out $(OUT)
	$(BIN)/fedlasso study summary $(OUT) --scenario baseline
	$(BIN)/fedlasso study run --study earlier --replicates $(REPLICATES) --out $(OUT)-earlier
	$(BIN)/fedlasso report $(OUT) --also $(OUT)-earlier
	@echo "Open $(OUT)/report/index.html; or: $(BIN)/fedlasso study export $(OUT) outcomes.csv"
	@echo "Short form: make study REPLICATES=2"

# Twenty kills at random moments, each resumed to the same table.
torture: .venv/ready
	PYTHONPATH=tests $(BIN)/python tests/helpers/torture_study.py

# Twenty kills of sites and server of a real federation, each resumed to the same bits.
torture-federation: .venv/ready
	PYTHONPATH=tests $(BIN)/python tests/helpers/torture_federation.py

bench: .venv/ready
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/replicate.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/first_use.py
	$(BIN)/python benchmarks/network.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/real.py
	$(BIN)/python benchmarks/families.py
	PYTHONPATH=tests $(BIN)/python benchmarks/courier.py
	PYTHONPATH=tests $(BIN)/python benchmarks/rule_costs.py
	PYTHONPATH=tests $(BIN)/python benchmarks/report.py

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis
