"""The tool world's state, an in-memory SQLite database with one copy per sample, and the marks for a world in
Python. The engine is SQLite's; this room restricts it, makes it repeatable, and reports mistakes in the
language of authors.

``reads``, ``writes`` and ``destructive`` mark the methods of a world in Python, as the keys of these names
mark the tools of a scenario file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["destructive", "reads", "writes"]

MARKS_ATTRIBUTE = "agenteval_marks"
"""The attribute of a function that holds its marks."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def reads(method: _Method) -> _Method:
    """Mark a method that only looks things up."""
    return _add_mark(method, "reads")


def writes(method: _Method) -> _Method:
    """Mark a method that changes something."""
    return _add_mark(method, "writes")


def destructive(method: _Method) -> _Method:
    """Mark a method whose effect cannot be undone, so that the user must agree first. It also writes."""
    return _add_mark(method, "destructive")


def _add_mark(method: _Method, mark: str) -> _Method:
    setattr(method, MARKS_ATTRIBUTE, {*getattr(method, MARKS_ATTRIBUTE, ()), mark})
    return method
