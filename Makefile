# Two commands matter: `make demo` and `make test`. Each sets up .venv on a machine that has Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

# The first of these that runs and is new enough (a name on the path may be a shim that does not run).
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

PACKAGE := pyproject.toml README.md LICENSE $(shell find src -type f -not -path '*/__pycache__/*')

# Every Python from 3.11 on that the machine has, one of each minor version: on the path, and pyenv's.
PYTHONS = $(shell for p in python3.11 python3.12 python3.13 python3.14 $(HOME)/.pyenv/versions/3.*/bin/python; do \
	$$p -c 'import sys; v = sys.version_info; v >= (3, 11) and print("%d.%d:%s" % (*v[:2], sys.executable))' 2>/dev/null; \
	done | sort -t: -k1,1 -u -V)

.PHONY: help demo test suite test-all lint style types bench coverage soak fuzz check-slow check-site docs browser clean
help:
	@echo "make demo        the main job on a bundled model"
	@echo "make test        the gate: build the wheel, install it; style, types, then the suite"
	@echo "make test-all    the suite on every Python from 3.11 on that is found"
	@echo "make lint        style, types, and who may import whom"
	@echo "make bench       speed, as JSON; exits 1 below a target"
	@echo "make coverage    whether 95 % intervals hold, 2,000 repetitions on each model (about an hour; rare events first)"
	@echo "make soak        runs under random kills and full disks for an hour, or SOAK=minutes; prints what survived"
	@echo "make fuzz        hostile input for every reader for 10 minutes, or FUZZ=seconds"
	@echo "make check-slow  fresh seeds and long runs"
	@echo "make docs        the documentation, in build/docs/html; every output on its pages is made by this command"
	@echo "make check-site  the documentation, pages in a real browser, and the paper's experiments in short (build/experiments)"
	@echo "make clean       remove everything that was made"

demo: $(VENV)/demo.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

# Style and types come first: a mistake there is known within a minute, not after the suite.
test: style types suite

suite: $(VENV)/dev.stamp
	DEFINETTI_INSTALLED=1 $(BIN)/python -P -m pytest -q -n 2 --dist worksteal

# Each in a place of its own: .venv-3.12 and so on. Fails if one fails, after all have run.
test-all:
	@failed=; for found in $(PYTHONS); do version=$${found%%:*}; echo "--- Python $$version ($${found#*:})"; \
	$(MAKE) --no-print-directory suite VENV=.venv-$$version PYTHON=$${found#*:} || failed="$$failed $$version"; done; \
	test -z "$$failed" || { echo "failed on Python$$failed" >&2; exit 1; }

check-slow: $(VENV)/dev.stamp
	DEFINETTI_INSTALLED=1 DEFINETTI_SEED=$${DEFINETTI_SEED:-fresh} $(BIN)/python -P -m pytest -q -n 2 --dist worksteal -m "slow or timed" -s

# The site, in build/docs/html. Commands on its pages are run; their outputs are kept in build/docs-cache. DOCS="-j 1" adds options.
docs: $(VENV)/docs.stamp
	$(BIN)/python -P -m sphinx -b html -W --keep-going -n -j 2 $(DOCS) -d build/docs/doctrees docs build/docs/html

# SHOTS=folder keeps the screenshots. Without a browser the tests are skipped, and say so.
check-site: $(VENV)/site.stamp browser docs
	DEFINETTI_INSTALLED=1 DEFINETTI_SCREENSHOTS=$(SHOTS) $(BIN)/python -P -m pytest -q -rs -m "browser or site" tests/browser tests/robust/test_gallery.py
	$(BIN)/definetti experiment all -o build/experiments --quick

# Debian's Chromium, where it is missing and may be installed.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq >/dev/null && \
	apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	echo "no browser: chromium and chromedriver are missing and cannot be installed here; its tests are skipped" >&2

lint: style types

style: $(VENV)/dev.stamp
	@! grep -rnE '^(<<<<<<<|>>>>>>>) ' *.md Makefile docs src tests benchmarks examples # marks of a merge
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports

types: $(VENV)/dev.stamp
	$(BIN)/basedpyright --level error

# BENCH="--quick --only grid" chooses. The peers live in a place of their own, so that nothing else comes to need them.
bench: .venv-bench/bench.stamp
	.venv-bench/bin/python benchmarks/run.py $(BENCH)

# COVERAGE="--only 'grid 20×20' --repetitions 200" chooses.
coverage: .venv-bench/bench.stamp
	.venv-bench/bin/python benchmarks/intervals.py $(COVERAGE)

# Inputs that a reader trips over are written to found/.
fuzz: $(VENV)/dev.stamp
	$(INSTALL) atheris
	$(BIN)/python -P benchmarks/fuzz.py --seconds $(or $(FUZZ),600)

# It needs the wheel, and Dask for workers that die.
soak: $(VENV)/demo.stamp
	$(INSTALL) distributed
	$(BIN)/python -P benchmarks/soak.py --minutes $(or $(SOAK),60)

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up: one stamp per step, so that a second run is quick -----------------------------------------------------

$(VENV)/base.stamp: constraints.txt
	@test -n "$(PYTHON)" || { echo "definetti needs Python 3.11 or newer; none was found" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) hatchling
	@touch $@

# The wheel, and what it needs. Old wheels go first, so that dist/*.whl names one file.
$(VENV)/demo.stamp: $(VENV)/base.stamp $(PACKAGE)
	@rm -rf dist
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(PIP) install --quiet --no-deps --force-reinstall dist/*.whl
	$(INSTALL) dist/*.whl
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	wheel=$$(echo dist/*.whl) && $(INSTALL) "$$wheel[dev]"
	@touch $@

$(VENV)/docs.stamp: $(VENV)/demo.stamp
	wheel=$$(echo dist/*.whl) && $(INSTALL) "$$wheel[docs]"
	@touch $@

$(VENV)/site.stamp: $(VENV)/dev.stamp
	wheel=$$(echo dist/*.whl) && $(INSTALL) "$$wheel[site]"
	@touch $@

# A peer that cannot be installed is missing from the figures, which say so; it does not stop them.
.venv-bench/bench.stamp: $(VENV)/demo.stamp constraints-bench.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --force-reinstall dist/*.whl
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt dist/*.whl
	for peer in "dwave-samplers dimod" "thrml jax" peapods numpyro pgmpy pyagrum pyERGM; do .venv-bench/bin/python -m pip --disable-pip-version-check \
		install --quiet -c constraints.txt -c constraints-bench.txt $$peer || echo "not installed: $$peer" >&2; done
	@touch $@
