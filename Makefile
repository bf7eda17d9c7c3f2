# The commands of the README and of CI. Everything lives in .venv inside the checkout.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo docs test test-slow test-lowest test-browser trust-quick lint bench clean

setup: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: setup
	$(BIN)/fillrank demo --output demo-output

# The pages as a site, in build/docs; a broken link or reference is an error.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# There is a test process for each core: more threads of linear algebra would wait for each other. Each
# begins with a half of the tests, so that what a file shares is made once, and takes from the other at
# the end.
PARALLEL := -n 2 --dist worksteal
test test-slow test-lowest: export OPENBLAS_NUM_THREADS = 1

test: setup
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

test-slow: setup
	$(BIN)/python -m pytest -m slow $(PARALLEL)

# The lowest versions that pyproject.toml allows of what the project itself names.
test-lowest: .venv-lowest/installed
	.venv-lowest/bin/python -m pytest -m "not slow" $(PARALLEL)

.venv-lowest/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python \
	  --resolution lowest-direct --editable ".[dev]"
	@touch $@

# Chromium and its driver belong to the system: they are installed only where they are not there.
test-browser: setup
	@if ! command -v chromedriver >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq chromium chromium-driver; \
	  else \
	    echo "Install Chromium and its driver first: apt-get install chromium chromium-driver" >&2; exit 2; \
	  fi; \
	fi
	FILLRANK_BROWSER=required $(BIN)/python -m pytest -m browser tests/browser

# Damaged and forged files for every reader: none may crash it, hang it or raise an undocumented error.
trust-quick: setup
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --inputs 5000 --seed 0

# The figures of docs/, some hours; DATA is a folder with ml-1m, ml-100k and others as published.
bench: setup
	$(BIN)/python benchmarks/measure.py --data $(DATA)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv .venv-lowest demo-output build dist
