"""The versions in ``constraints.txt``."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "constraints.txt"


def locked() -> dict[str, str]:
    """The version of each package, by its normalized name."""
    pins = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    read = [re.fullmatch(r"([a-z0-9-]+)==([0-9][A-Za-z0-9.]*)( ; [^/]+)?", pin) for pin in pins]
    assert all(read), "a line of the lock is a name and a version, and names no place"
    return {pin[1]: pin[2] for pin in read if pin}


def with_locked(package: str) -> pytest.MarkDecorator:
    """For a test of what we make of a dependency's words: another release may have others."""
    is_locked = version(package) == locked()[package]
    return pytest.mark.skipif(not is_locked, reason=f"{package} is not the release in constraints.txt")
