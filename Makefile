# The commands of the README and of CI. Everything lives in .venv inside the checkout.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-slow lint bench clean

setup: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: setup
	$(BIN)/fillrank demo --output demo-output

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv demo-output build dist
