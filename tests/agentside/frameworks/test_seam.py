"""Whether the function of a tool names an agent that it may run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.agentside.frameworks.seam import may_reach


class Agent:
    def run(self) -> str:
        return "done"


AGENT = Agent()


def _made() -> Agent:
    return Agent()


def _closed_over() -> Callable[[], str]:
    agent = Agent()
    return lambda: agent.run()


def _by_name() -> str:
    return AGENT.run()


def _by_another() -> str:
    return _made().run()


def _within() -> Callable[[], str]:
    def inner() -> str:
        return AGENT.run()

    return inner


def _calls_itself(depth: int) -> int:
    return _calls_itself(depth - 1) if depth else len("none")


@functools.wraps(_by_name)
def _decorated() -> str:
    return ""


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_by_name, True),
        (_by_another, True),
        (_within, True),
        (_closed_over(), True),
        (_decorated, True),
        (AGENT.run, False),
        (_calls_itself, False),
        (print, False),
        (None, False),
    ],
)
def test_a_function_is_followed_to_what_it_names(function: Any, expected: bool) -> None:
    found = may_reach(function, lambda each: each is Agent or isinstance(each, Agent), "no_package")
    assert found is expected
    assert not may_reach(function, lambda each: False, "no_package")
    assert not may_reach(function, lambda each: each is Agent, __name__.partition(".")[0])
