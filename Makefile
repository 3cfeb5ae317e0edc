# Everything works in a virtual environment of its own, .venv, which each target makes when it is missing
# and brings up to date when pyproject.toml or constraints.txt have changed.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The first of these that is 3.11 or newer and can make a virtual environment; `make PYTHON=…` chooses another.
PYTHONS := $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test lint readme format screenshots test-real bench clean

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(STAMP) ## the dashboard on simulated servers, launched over real SSH on this machine
	@$(BIN)/hcs-tui demo

test: $(STAMP) ## the whole test suite, without real SGLang
	@$(PYTEST) -n auto --maxprocesses 4 --dist loadfile $(ARGS)

lint: $(STAMP) ## ruff, mypy strict, and the arrows between the packages
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@arrows=$$($(BIN)/lint-imports --no-cache --no-logo 2>&1) || { echo "$$arrows"; exit 1; }
	@echo 'lint: ruff, mypy and import-linter found nothing'

readme: $(STAMP) ## the README's table of keys, from the program
	@$(BIN)/python -m tests.test_readme

format: $(STAMP) ## ruff's fixes and layout
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

screenshots: $(STAMP) ## draw screenshots/ anew from the demo
	@$(BIN)/python screenshots/make.py

test-real: $(STAMP) ## real SGLang on this CPU, driven over a real sshd (installs 2.5 GB at the first time)
	@$(BIN)/python -m tests.real_sglang.environment >/dev/null
	@$(PYTEST) tests/real_sglang $(ARGS)

bench: $(STAMP) ## the measurements of tests/bench, as tables
	@for script in tests/bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

venv: $(STAMP) ## only the virtual environment

clean: ## remove the virtual environment and all caches of the checkout
	@rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage snapshot_report.html
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo 'clean: the virtual environment and the caches are gone'

# A .venv that works is kept and brought up to date; it is made anew where there is none, or PYTHON names another one.
$(STAMP): pyproject.toml constraints.txt
	@usable='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'; \
	if [ -z "$(PYTHON)" ] && $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo 'bringing $(VENV) up to date'; exit 0; \
	fi; \
	for python in $(PYTHONS); do \
		if "$$python" -c "$$usable" 2>/dev/null; then \
			echo "making $(VENV) with $$("$$python" --version); this takes a minute, once"; \
			exec "$$python" -m venv --clear $(VENV); \
		fi; \
	done; \
	for python in $(PYTHONS); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$python cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; \
		fi; \
	done; \
	echo 'no Python 3.11 or newer among: $(PYTHONS). Install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq --no-input -c constraints.txt -e '.[dev,png]'
	@touch $@
