# Everything happens in .venv inside the checkout; nothing else is needed on the machine but Python.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup test lint chromium study bench clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fedlasso needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The page is tested in a real browser. Any Chromium on the PATH will do.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null \
	  || { echo "chromium is missing: trying apt-get install chromium" >&2; \
	       apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null \
	  || { echo "make: the page tests need a Chromium on the PATH and it could not be installed here;" \
	            "install chromium or google-chrome, then run make test again" >&2; exit 1; }

test: lint chromium
	$(BIN)/pytest -n 2

bench: setup
	$(BIN)/python benchmarks/kernels.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
