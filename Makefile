# Everything a contributor or a build machine runs. `make` alone prints the list.

.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Some tests wait more than they work: one worker more than the build machine has processors.
WORKERS ?= 3
# Least branch coverage of the rooms that decide about data, in percent.
COVERAGE_GATE ?= 95
COVERED := crux_workspace/model/*,crux_workspace/engine/*,crux_workspace/operations/*
# The tests whose coverage is measured; measuring makes a test half as slow again, so the others go without.
MEASURED := $(addprefix tests/,contract heavy histories mounts regressions scenarios stateful transactions unit watch)
UNMEASURED := $(filter-out $(MEASURED) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -p tests.support.skips

USER_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
COMMA := ,
SERVE_STAMP := $(VENV)/.installed-serve

# Installs `$(1)` into the virtualenv, which is made first if need be; with uv where there is one.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12"; exit 1; }
	@echo "installing $(1) into $(VENV)"
	@if command -v uv >/dev/null 2>&1; then \
		{ [ -x $(BIN)/python ] || uv venv --quiet --python $(PYTHON) $(VENV); } \
		&& uv pip install --quiet --python $(BIN)/python --editable '$(1)'; \
	else \
		{ [ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); } \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '$(1)'; \
	fi
	@touch $@
endef

$(USER_STAMP): pyproject.toml
	$(call install,.)

$(DEV_STAMP): pyproject.toml
	$(call install,.[dev])

$(SERVE_STAMP): pyproject.toml
	$(call install,.[server$(COMMA)shell])

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(USER_STAMP) ## run the main job on real input and check every claim
	@$(BIN)/python examples/demo.py

.PHONY: demo-serve
demo-serve: $(SERVE_STAMP) ## serve sample data and print the link to the inspector (ARGS=--port=8001)
	@$(BIN)/python examples/demo_serve.py $(ARGS)

.PHONY: test
test: prepared tests coverage ## everything CI runs: static checks, all tests, the coverage gate

.PHONY: prepared
prepared: $(DEV_STAMP)
	@$(MAKE) --no-print-directory -j 2 static browser azurite

.PHONY: dev
dev: $(DEV_STAMP) ## make .venv with everything that development needs
	@echo "ready: $(BIN)/python"

.PHONY: check
check: static fast ## the quick gate before a push (under a minute)

.PHONY: static
static: lint types imports

.PHONY: lint
lint: $(DEV_STAMP) ## format check and ruff
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

.PHONY: types
types: $(DEV_STAMP) ## mypy on everything, pyright on the typing test
	@$(BIN)/mypy
	@$(BIN)/pyright

.PHONY: imports
imports: $(DEV_STAMP) ## the floors of the house, by import-linter
	@$(BIN)/lint-imports

.PHONY: fast
fast: $(DEV_STAMP) ## unit and architecture tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not slow" tests/unit tests/architecture

.PHONY: browser
browser: $(DEV_STAMP) ## find a Chromium for the tests of the inspector, or install one
	@$(BIN)/python -m tests.support.browser

.PHONY: azurite
azurite: $(DEV_STAMP) ## find the server that plays Azure, or install it
	@$(BIN)/python -m tests.support.azurite

.PHONY: tests
tests: $(DEV_STAMP) browser azurite ## all tests, the engine's with coverage; a skip without a stated capability fails
	@rm -f .coverage .coverage.*
	@failed=0; \
		$(PYTEST) --cov --cov-report= -m "not more_stores" $(MEASURED) || failed=1; \
		CRUX_STORES=all $(PYTEST) -m more_stores $(MEASURED) tests/faults || failed=1; \
		$(PYTEST) $(UNMEASURED) || failed=1; \
		exit $$failed

.PHONY: coverage
coverage: $(DEV_STAMP) ## judge the branch coverage that `make tests` measured
	@$(BIN)/coverage report --include='$(COVERED)' --skip-covered --fail-under=$(COVERAGE_GATE)

# Not under the exporter of `make privacy`: folders without a workspace, with listeners of their own, whose workspaces live in child
# processes, or whose figures it would change. Those of servers are played with CRUX_STORES=all.
UNSWEPT := $(addprefix tests/,architecture benchmarks observability packaging processes support typing unit)
UNSWEPT += $(if $(filter all,$(CRUX_STORES)),,tests/adapters tests/postgres)
SWEPT := $(filter-out $(UNSWEPT) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

.PHONY: privacy
privacy: $(DEV_STAMP) browser ## play the suite under an exporter that fails on anything private (FOLDERS=..., CRUX_STORES=all)
	@$(BIN)/python -m pytest -q -n 0 --timeout=240 -p tests.support.privacy_sweep $(or $(FOLDERS),$(SWEPT))

.PHONY: snapshot
snapshot: $(DEV_STAMP) ## rewrite the snapshot of the public API; review its diff
	@$(BIN)/python -m tests.architecture.public_surface

.PHONY: build
build: $(DEV_STAMP) ## wheel and sdist into dist/
	@$(BIN)/python -m build --no-isolation

.PHONY: format
format: $(DEV_STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only .

.PHONY: clean
clean: ## remove what was built, the virtualenv too
	@rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: bench
bench: $(DEV_STAMP) ## measure the figures beside their raw floors (ARGS=--quick, ARGS=--save)
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-compare
bench-compare: $(DEV_STAMP) ## compare the figures of a revision with the working tree's (REV=main~1, ARGS=--quick)
	@$(BIN)/python -m benchmarks.compare $(REV) $(ARGS)
