"""Regular expressions that are compiled at their first use: all of them can be."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re

import pytest

import agenteval
from agenteval.core.expressions import Expression, expression


def test_each_is_one_that_python_compiles() -> None:
    for module in pkgutil.walk_packages(agenteval.__path__, "agenteval."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = [each for each in gc.get_objects() if type(each) is Expression]
    assert len(found) > 100
    for each in found:
        re.compile(each.pattern, each.flags)


@pytest.mark.parametrize(("pattern", "text"), [(r"(?P<b>b+)", "abbc"), (rb"(?P<b>b+)", b"abbc")])
def test_it_does_what_the_compiled_one_does(pattern: str, text: str) -> None:
    made, compiled = expression(pattern, re.IGNORECASE), re.compile(pattern, re.IGNORECASE)
    assert made.search(text) is not None
    assert made.findall(text) == compiled.findall(text)
    assert [found.span("b") for found in made.finditer(text)] == [(1, 3)]
    assert made.sub(text[:1], text) == compiled.sub(text[:1], text)
    assert made.match(text) is made.fullmatch(text) is None
    assert made.split(text) == compiled.split(text)
    assert (made.pattern, bool(made.flags & re.IGNORECASE)) == (pattern, True)


def test_a_mistake_is_told_at_the_first_use() -> None:
    made = expression("(")
    with pytest.raises(re.error):
        made.search("x")
