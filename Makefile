# The commands of a developer, of .ci/run and of the workflows, each written once. They run in the Python that is
# active: `make PYTHON=.venv/bin/python test`, or `uv run make test`.

PYTHON ?= python

.PHONY: help install check test lint types contract docs suite frameworks e2e build format clean

help:
	@echo "install   agenteval, editable, with all that the checks need"
	@echo "check     lint, types and contract: what is fast"
	@echo "test      the tests: several minutes; docs: those of the documentation alone"
	@echo "suite     the shipped example suite: green, and its first agent red"
	@echo "frameworks  the examples of agents in frameworks, against the real packages"
	@echo "build     sdist and wheel in dist/, and the wheel tried on its own"
	@echo "e2e       the whole pipeline against a small language model on this machine"
	@echo "format    rewrite the files as 'lint' wants them; clean: delete what is built"

install:
	$(PYTHON) -m pip install -e ".[dev]"

check: lint types contract

test:
	$(PYTHON) -m pytest

lint:
	$(PYTHON) -m ruff check .
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

frameworks:
	$(PYTHON) .ci/frameworks.py

e2e:
	$(PYTHON) -m pytest e2e -n 0

build:
	$(PYTHON) -c "import shutil; shutil.rmtree('dist', ignore_errors=True)"
	$(PYTHON) -m build
	$(PYTHON) -m twine check --strict dist/*
	$(PYTHON) .ci/suite.py --wheel dist

clean:
	$(PYTHON) -c "import shutil; [shutil.rmtree(name, ignore_errors=True) for name in ('dist', 'build', '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis')]"
