# The commands of a developer, of .ci/run and of the workflows, each written once. They run in the Python that is
# active: `make PYTHON=.venv/bin/python test`, or `uv run make test`.

PYTHON ?= python

BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: help install browser pictures check test lint types contract docs suite bench frameworks frameworks-oldest cluster e2e build newest lock format clean

help:
	@echo "install   agenteval, editable, with all that the checks need"
	@echo "browser   what the tests in a browser need: Chromium (apt-get), where there is none, and axe-core"
	@echo "check     lint, types and contract: what is fast"
	@echo "test      the tests: several minutes; docs: those of the documentation alone"
	@echo "suite     the shipped example suite: green, and its first agent red"
	@echo "cluster   conversations on clusters of Ray, which it installs"
	@echo "bench     counted, in small workloads: the calls of models that a run makes, and how far values travel"
	@echo "frameworks  the examples of agents in frameworks, against the real packages; frameworks-oldest: against"
	@echo "            the oldest supported releases, which takes longer"
	@echo "build     sdist and wheel in dist/, and the wheel tried on its own"
	@echo "newest    the tests and the suite with the newest release of everything, in an environment of its own"
	@echo "lock      constraints.txt anew: the newest releases, for every supported Python and system"
	@echo "e2e       the whole pipeline against a small language model on this machine"
	@echo "format    rewrite the files as 'lint' wants them; clean: delete what is built"

install:
	$(PYTHON) -m pip install -c constraints.txt -e ".[dev]"

browser:
	PYTHON=$(PYTHON) .ci/browser

# The pictures of README and docs, taken anew from the page of a real run.
pictures:
	TESTS_WRITE_PICTURES=1 $(PYTHON) -m pytest tests/browser/test_pictures.py -n 0

check: lint types contract

test:
	$(PYTHON) -m pytest

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) .ci/names.py
	$(PYTHON) -m ruff format --check .

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

# A branch for another system is unreachable code here: it is only checked when asked for.
types:
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy --platform win32

contract:
	$(PYTHON) -c "from importlinter.cli import lint_imports_command as main; main()" --no-cache

docs:
	$(PYTHON) -m pytest tests/test_docs.py

suite:
	$(PYTHON) .ci/suite.py

bench:
	$(PYTHON) benchmarks/w1.py --small
	$(PYTHON) benchmarks/walks.py

frameworks:
	$(PYTHON) .ci/frameworks.py

frameworks-oldest:
	$(PYTHON) .ci/frameworks.py --oldest

cluster:
	$(PYTHON) -m pip install -q -c constraints.txt -e ".[test,ray]"
	TESTS_REQUIRE_RAY=1 $(PYTHON) -m pytest tests/front_door/test_ray.py -n 0

e2e:
	$(PYTHON) -m pytest e2e -n 0

build:
	$(PYTHON) -c "import shutil; shutil.rmtree('dist', ignore_errors=True)"
	$(PYTHON) -m build
	$(PYTHON) -m twine check --strict dist/*
	$(PYTHON) .ci/suite.py --wheel dist

# Without the lock, as a user installs it. `make newest TESTS=tests/files` runs a part.
newest:
	$(PYTHON) -m venv --clear .venv/newest
	.venv/newest/$(BIN)/python -m pip install -q -e ".[dev]"
	.venv/newest/$(BIN)/python .ci/suite.py
	.venv/newest/$(BIN)/python -m pytest $(TESTS)

# Resolved from pyproject.toml alone, whatever is installed here. Then run `make install` and the checks.
lock:
	$(PYTHON) -m venv --clear .venv/lock
	.venv/lock/$(BIN)/python -m pip install -q uv
	.venv/lock/$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --no-config \
		--extra dev --extra local --extra ray --no-annotate --custom-compile-command "make lock" \
		-o constraints.txt pyproject.toml

clean:
	$(PYTHON) -c "import shutil; [shutil.rmtree(name, ignore_errors=True) for name in ('dist', 'build', '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis')]"
