"""What a function keeps in its closure, and how far values are looked for there."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.closures import closure_variables, find_in_closures


def keep(**kept: Any) -> Any:
    def kept_by() -> Any:
        return kept

    return kept_by


def around(value: Any) -> Any:
    def wrapper() -> Any:
        return value

    return wrapper


def deep(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = around(value)
    return value


def test_the_variables_of_a_closure() -> None:
    a, b, unused = 1, [2], 3

    def function() -> Any:
        return b, a

    assert unused == 3
    assert closure_variables(function) == {"a": 1, "b": [2]}
    assert closure_variables(keep(x=5)) == {"kept": {"x": 5}}


def test_what_is_not_filled_yet_is_left_out() -> None:
    def function() -> Any:
        return early, late

    early = 1
    found = closure_variables(function)
    late = 2
    assert found == {"early": 1}
    assert closure_variables(function) == {"early": 1, "late": 2}


@pytest.mark.parametrize("value", [lambda: None, min, 5, None, SimpleNamespace(), closure_variables])
def test_what_has_no_closure(value: Any) -> None:
    assert closure_variables(value) == {}


def is_seven(value: Any) -> bool:
    return bool(value == 7)


FOUND: dict[str, tuple[Any, Any]] = {
    "itself": (7, 7),
    "in a closure": (around(7), 7),
    "in a closure of a closure": (deep(7, 2), 7),
    "the function of a partial": (partial(around(7)), 7),
    "an argument of a partial": (partial(min, 3, 7), 7),
    "a keyword of a partial": (partial(min, key=7), 7),
    "behind a keyword of a partial": (partial(min, key=around(7)), 7),
    "a tool of an SDK": (SimpleNamespace(_invoke_tool_impl=around(7)), 7),
    "a value that is not called": (around(5), None),
    "nothing": (None, None),
    "another": (5, None),
    "no closure": (min, None),
}


@pytest.mark.parametrize(("value", "found"), FOUND.values(), ids=FOUND)
def test_a_value_that_fits(value: Any, found: Any) -> None:
    assert find_in_closures(value, is_seven) == found


def test_the_first_that_fits() -> None:
    def function() -> Any:
        return b, a, c

    a, b, c = 7.0, 7, 5
    assert type(find_in_closures(function, is_seven)) is float
    outer = around(7)

    def before() -> Any:
        return outer, a

    assert find_in_closures(before, is_seven) == 7
    assert find_in_closures(partial(min, around(5), around(7)), is_seven) == 7


def test_the_depth_has_a_limit() -> None:
    assert find_in_closures(deep(7, 8), is_seven) == 7
    assert find_in_closures(deep(7, 9), is_seven) is None


def test_a_function_that_holds_itself() -> None:
    def function() -> Any:
        return function

    assert find_in_closures(function, is_seven) is None
