"""What every value keeps to."""

import tracemalloc

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


def test_a_compact_value_is_much_smaller() -> None:
    def size(make: object) -> int:
        tracemalloc.start()
        try:
            kept = [make() for _ in range(200)]  # type: ignore[operator]
            return tracemalloc.get_traced_memory()[0] // len(kept)
        finally:
            tracemalloc.stop()

    written = Check(name="c", passed=True, detail="d", where="w").model_dump_json()
    compact(Check.model_validate_json(written))
    whole = size(lambda: Check.model_validate_json(written))
    assert size(lambda: compact(Check.model_validate_json(written))) < 0.6 * whole
