"""What every value keeps to."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.core.plan import Plan
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, References, Score
from agenteval.core.value import Value, compact


def test_a_copy_with_a_field_that_there_is_not_is_an_error_in_every_test() -> None:
    with pytest.raises(TypeError, match="Plan has no field severities"):
        Plan().model_copy(update={"severities": {}})


VALUES = [
    Scenario.model_validate(
        {"id": "s", "turns": [{"user": "x", "expect": {"output": {"contains": ["a"]}}}],
         "tools": {"t": {"returns": {"a": [1, True, 1.0, None, {}]}}}}
    ),
    Check(name="c", passed=None, parts=("a", "b")),
    Score(metric="m", value=0.0, references=References(call=0)),
    Plan(),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_compact_value_is_the_same_value(value: Value) -> None:
    small = compact(value)
    assert small == value
    assert repr(small) == repr(value)  # 1, 1.0 and true are equal, and not the same
    assert small.model_dump_json() == value.model_dump_json()
    assert small.model_dump_json(exclude_unset=True) == value.model_dump_json(exclude_unset=True)
    assert small.model_copy() == value
    assert compact(small) is small


def test_a_copy_of_a_compact_value_leaves_it_as_it_is() -> None:
    small = compact(Check(name="c", passed=True))
    other = small.model_copy(update={"detail": "d", "parts": ("p",)})
    assert (small.detail, other.detail) == ("", "d")
    assert small.model_fields_set == {"name", "passed"}


def test_parts_with_nothing_but_defaults_are_one_object() -> None:
    first, second = (compact(Score(metric=name, references=References())) for name in "ab")
    assert first.references is second.references


def bytes_of(make: Callable[[], Any]) -> int:
    """The bytes that each of many objects takes."""
    tracemalloc.start()
    try:
        kept = [make() for _ in range(200)]
        return tracemalloc.get_traced_memory()[0] // len(kept)
    finally:
        tracemalloc.stop()


def test_a_compact_value_is_much_smaller() -> None:
    written = Check(name="c", passed=True, detail="d", where="w").model_dump_json()
    compact(Check.model_validate_json(written))
    whole = bytes_of(lambda: Check.model_validate_json(written))
    assert bytes_of(lambda: compact(Check.model_validate_json(written))) < 0.6 * whole


def test_a_value_is_as_small_if_others_of_its_class_were_made_before() -> None:
    class Early(Value):
        a: str
        b: str = ""
        c: str = ""
        d: str = ""

    class Late(Early):
        pass

    compact(Early(a="x"))
    many = [Late(a=str(number)) for number in range(100)]
    compact(many[0])
    assert bytes_of(lambda: compact(Late(a="x"))) <= 1.1 * bytes_of(lambda: compact(Early(a="x")))
