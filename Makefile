# Two commands: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JS     := $(VENV)/js

# Scripts are checked for what they name and how they call it, not for every type.
LOOSE   := $(addprefix --disable-error-code ,arg-type assignment operator)
SCRIPTS := --config-file= --ignore-missing-imports --follow-imports=silent $(LOOSE) tools benchmarks

.PHONY: demo test test-slow browser bench-quick check docs site dist clean

demo: $(STAMP)
	$(BIN)/selftrain demo $(DEMO)

# Two workers with one torch thread each: the machine is full and no test waits for another.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow" $(ARGS)

test-slow: $(STAMP) $(JS)/.installed
	$(BIN)/python -m pytest -m slow --timeout 1800 $(ARGS)

# The browser of tests/browser: Debian's chromium, where apt can install it.
browser:
	@for name in chromium chromium-browser google-chrome; do \
	  command -v $$name >/dev/null && exit 0; \
	done; \
	[ "$$(id -u)" = 0 ] && { apt-get update -qq; apt-get install -y --no-install-recommends chromium; } && exit 0; \
	echo "error: there is no chromium, and apt could not install it" >&2; \
	echo "hint: install Chromium or Chrome: sudo apt-get install chromium" >&2; exit 1

# Ratios of times, with margins for a noisy machine; the last line has them all.
bench-quick: $(STAMP)
	$(BIN)/python benchmarks/quick.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(SCRIPTS)
	$(BIN)/lint-imports
	$(BIN)/python tools/paper_map.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/pictures.py --check

docs: $(STAMP)
	$(BIN)/python tools/paper_map.py
	$(BIN)/python tools/reference.py
	$(MAKE) site

# The site of docs/, in build/site; it needs no network. A broken link is an error.
site: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -n -c docs/site -d build/doctrees . build/site

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist lite
	$(BIN)/twine check --strict dist/*

$(STAMP): pyproject.toml lite/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e lite -e '.[dev]'
	touch $(STAMP)

# transformers.js, for one slow test; without npm that test is skipped. No script of a package runs.
$(JS)/.installed: $(STAMP) $(wildcard tests/support/js/*)
	mkdir -p $(JS)
	cp tests/support/js/package.json tests/support/js/package-lock.json tests/support/js/classify.mjs $(JS)
	if command -v npm; then cd $(JS) && npm ci --ignore-scripts --no-audit --no-fund; fi
	touch $@

clean:
	rm -rf $(VENV) dist build
