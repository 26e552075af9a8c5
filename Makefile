# Everything happens in .venv inside the checkout; nothing else is needed on the machine but Python.
PYTHON ?= python3
BIN := .venv/bin
REPLICATES ?= 50
OUT ?= results/paper-$(REPLICATES)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup test lint chromium tex study torture torture-federation bench clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("fedlasso needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (once, about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Any of the commands $(1) on the PATH will do; else the package $(2) is tried, for $(3).
define need
@for command in $(1); do command -v $$command >/dev/null && exit 0; done; \
echo "none of $(1) is here: trying apt-get install $(2)" >&2; \
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $(2); } >/dev/null \
|| { echo "make: $(3) needs one of $(1) on the PATH and $(2) could not be installed here;" \
          "install it and run make test again" >&2; exit 1; }
endef

# The page is tested in a real browser, the supplement by a real TeX.
chromium:
	$(call need,chromium chromium-browser google-chrome,chromium,the test of the page)

tex:
	$(call need,tectonic pdflatex,texlive-latex-recommended,the test of the supplement)

test: lint chromium tex
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

# The paper's study: 12 scenarios x 50 replicates; the short form is make study REPLICATES=2.
study: setup
	$(BIN)/fedlasso study run --replicates $(REPLICATES) --out $(OUT)
	$(BIN)/fedlasso study summary $(OUT) --scenario baseline
	$(BIN)/fedlasso study run --study earlier --replicates $(REPLICATES) --out $(OUT)-earlier
	$(BIN)/fedlasso report $(OUT) --also $(OUT)-earlier
	@echo "Open $(OUT)/report/index.html; or: $(BIN)/fedlasso study export $(OUT) outcomes.csv"
	@echo "Short form: make study REPLICATES=2"

# Twenty kills at random moments, each resumed to the same table.
torture: setup
	$(BIN)/python tests/torture_study.py

# Twenty kills of sites and server of a real federation, each resumed to the same bits.
torture-federation: setup
	PYTHONPATH=tests $(BIN)/python tests/torture_federation.py

bench: setup
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/replicate.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/network.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/large.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
