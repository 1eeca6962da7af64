"""The author's function is found inside a tool, however its library wrapped it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agenteval.agentside.targets.wrapped_functions import functions_in

LIBRARY = """
import functools

class Invoker:
    def __init__(self, call):
        self.func = call

class Tool:
    def __init__(self, **kept):
        vars(self).update(kept)

    @property
    def function(self):
        raise LookupError("not yet")

def around(the_func):
    def call(*args):
        return the_func(*args)
    return call

def renamed(the_func):
    return functools.wraps(the_func)(lambda *args: the_func(*args))
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that is installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "a_framework_of_tools.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    found: ModuleType = import_module("a_framework_of_tools")
    yield found
    del sys.modules["a_framework_of_tools"]


def get_order() -> None: ...


async def get_order_later() -> None: ...


class Shop:
    def get_order(self) -> None: ...


def test_each_form_in_which_a_library_keeps_it(library: Any) -> None:
    tool, method = library.Tool, Shop().get_order
    assert functions_in(tool(func=get_order, coroutine=get_order_later)) == [get_order, get_order_later]
    assert functions_in(tool(_tool_func=get_order, __wrapped__=get_order)) == [get_order]
    assert functions_in(tool(func=method)) == [method]
    assert functions_in(tool(on_invoke_tool=library.Invoker(library.around(get_order)))) == [get_order]
    assert functions_in(tool(forward=library.renamed(get_order))) == [get_order]


def test_the_librarys_own_functions_and_what_takes_no_arguments_of_a_tool_are_none(library: Any) -> None:
    assert functions_in(library.Tool(func=library.around)) == []
    assert functions_in(library.Tool(on_invoke_tool=get_order)) == []
    assert functions_in(library.Tool(handler=get_order)) == []
