"""``expect.output.json_schema`` and ``expect.output.json``: what is JSON, and which values hold at a path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.trajectory import Turn
from agenteval.scoring.checks.check_rule import CheckInput
from agenteval.scoring.checks.json_output import (
    JSON,
    check_json_schema,
    check_json_values,
    find_json_value_mistakes,
    find_schema_mistakes,
)
from tests.support.detector_samples import turn


def seen(*answers: Any, **more: Any) -> CheckInput:
    texts = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
    return CheckInput([turn("u", text) for text in texts], **more)


# ── what is JSON ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "is_json"),
    [
        ('{"a": 1}', True),
        ('  {"a": 1}\n', True),
        ('```json\n{"a": 1}\n```', True),
        ('```\n{"a": 1}\n```', True),
        ('~~~\n{"a": 1}\n~~~', True),
        ('````\n{"a": 1}\n````', True),
        ('```json\n{"a": 1}\n  ```', True),
        ('``\n{"a": 1}\n``', False),
        ('```\n{"a": 1}\n~~~', False),
        ('Here: {"a": 1}', False),
        ('Here:\n```json\n{"a": 1}\n```', False),
        ('```json\n{"a": 1}\n```\nDone.', False),
        ('{"a": 1} {"a": 1}', False),
        ('{"a": 1, "a": 1}', False),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', False),
        ('{"a": NaN}', False),
        ('{"a": Infinity}', False),
        ('{"a": 1, "b": 1e999}', False),
        ('{"a": 1, "b": 1e99}', True),
        ("{'a': 1}", False),
        ("", False),
        ("<think>hm</think>" + '{"a": 1}', True),
    ],
)
def test_answers_that_are_json(answer: str, is_json: bool) -> None:
    assert check_json_schema({"required": ["a"]}, seen(answer)).passed is is_json
    assert check_json_values({"a": {"$any": True}}, seen(answer)).passed is is_json


def test_json_that_is_nested_too_deeply_is_none() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert check_json_schema({"type": "array"}, seen(deep)).passed is False
    assert check_json_values({"[0]": {"$any": True}}, seen(deep)).passed is False


# ── json_schema ──────────────────────────────────────────────────────────────────────────────────

NUMBER = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("answers", "passed"),
    [
        (({"a": 1},), True),
        (({"a": "x"},), False),
        (({},), False),
        (({"a": "x"}, {"a": 1}), True),  # any answer
        (({"a": 1}, {"a": "x"}), True),
        (("text", {"a": 1}), True),
        (("text",), False),
        ((), False),
    ],
)
def test_a_schema(answers: tuple[Any, ...], passed: bool) -> None:
    found = check_json_schema(NUMBER, seen(*answers))
    assert (found.passed, found.parts, found.is_lasting, found.is_by_absence) == (passed, (), False, False)


def test_an_interrupted_turn_has_no_answer() -> None:
    last: Turn = turn("u", '{"a": 1}')
    assert check_json_schema(NUMBER, seen(unfinished=last)).passed is False
    assert check_json_values({"a": 1}, seen(unfinished=last)).passed is False


def test_a_schema_without_an_end_decides_nothing() -> None:
    endless = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert check_json_schema(endless, seen({"a": 1})).passed is None


def test_the_fault_of_the_last_answer_is_shown() -> None:
    detail = check_json_schema(NUMBER, seen({"a": "first"}, {"a": "second"})).detail
    assert detail.index("second") < detail.index("first")  # the fault, then the answers


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (NUMBER, []),
        ({}, [()]),
        ({"type": "nothing"}, [("type",)]),
        ({"properties": {"a": {"minimum": "x"}}}, [("properties", "a", "minimum")]),
        ("text", []),
        (None, []),
    ],
)
def test_mistakes_in_a_schema(written: Any, paths: list[tuple[Any, ...]]) -> None:
    assert [mistake.path for mistake in find_schema_mistakes(written)] == paths


# ── json ─────────────────────────────────────────────────────────────────────────────────────────

ORDER = {
    "id": 7,
    "items": [{"price": 9.5, "tags": ["x"]}, {"price": 2}],
    "a.b": {"[c]": True},
    "": 0,
    "n": None,
}


@pytest.mark.parametrize(
    ("path", "expected", "holds"),
    [
        ("id", 7, True),
        ("id", 7.0, True),
        ("id", "7", False),
        ("items[0].price", 9.5, True),
        ("items[1].price", 9.5, False),
        ("items[0].tags[0]", "x", True),
        ("items[0].tags", ["x"], True),
        ("items[2].price", 2, False),
        ("items[2]", {"$optional": 2}, True),
        ("items[1]", {"price": 2}, True),
        ("items[1]", {}, False),
        ("items.price", 9.5, False),  # a list has no names
        ("id[0]", 7, False),
        ("[0]", 7, False),  # the answer is no list
        ('["a.b"]["[c]"]', True, True),
        ('["a.b"]["[c]"]', 1, False),
        ('[""]', 0, True),
        ("n", None, True),
        ("n", {"$any": True}, True),
        ("missing", None, False),
        ("missing", {"$optional": 1}, True),
        ("missing.below", {"$optional": 1}, True),
        ("id", {"$optional": 8}, False),
        ("id.below", {"$optional": 1}, False),  # a number has no names
        ("id", {"$in": [6, 7]}, True),
        ("items[0].price", {"$approx": {"value": 9, "abs": 0.5}}, True),
    ],
)
def test_the_value_at_a_path(path: str, expected: Any, holds: bool) -> None:
    found = check_json_values({path: expected}, seen(ORDER))
    assert (found.passed, list(found.parts)) == (holds, [] if holds else [path])
    assert not found.is_lasting


def test_a_list_as_the_answer() -> None:
    assert check_json_values({"[1].a": 2}, seen([{"a": 1}, {"a": 2}])).passed is True
    assert check_json_values({"[2].a": 2}, seen([{"a": 1}, {"a": 2}])).passed is False


TWO = {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("answers", "parts"),
    [
        ((TWO,), []),
        (({"a": 1}, TWO), []),
        (({"a": 1}, {"b": 2}), ["b"]),  # of two equally near, the first; never both answers together
        (({"b": 2}, {"a": 1}), ["a"]),
        (({}, {"a": 1}), ["b"]),
        (({"a": 1}, {}), ["b"]),
        (({},), ["a", "b"]),
        (("text",), ["a", "b"]),
        (("text", {"a": 1}), ["b"]),
        (({"a": 1}, "text"), ["b"]),
        ((), ["a", "b"]),
    ],
)
def test_the_nearest_answer_decides_what_is_reported(answers: tuple[Any, ...], parts: list[str]) -> None:
    found = check_json_values(TWO, seen(*answers))
    assert (found.passed, list(found.parts)) == (not parts, parts)


@pytest.mark.parametrize(("count", "more"), [(5, False), (6, True)])
def test_up_to_five_faults_are_shown(count: int, more: bool) -> None:
    found = check_json_values({f"key{number}": number for number in range(count)}, seen({}))
    assert len(found.parts) == count
    assert "key4:" in found.detail
    assert "key5:" not in found.detail
    assert ("1 more" in found.detail) is more


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        ({"a": 1, "a.b[0]": 2, "[0]": 3, "[0][1].c": 4, '["a.b"].c': 5}, []),
        ({}, [()]),
        ({"$.a": 1}, [("$.a",)]),
        ({"": 1}, [("",)]),
        ({"a..b": 1}, [("a..b",)]),
        ({".a": 1}, [(".a",)]),
        ({"a.": 1}, [("a.",)]),
        ({"a[": 1}, [("a[",)]),
        ({"a[x]": 1}, [("a[x]",)]),
        ({"a[0]b": 1}, [("a[0]b",)]),
        ({"a[1234567890]": 1}, [("a[1234567890]",)]),
        ({"a[123456789]": 1}, []),
        ({"a]": 1, "b": 2}, [("a]",)]),
        ("text", []),
        (None, []),
    ],
)
def test_mistakes_in_paths(written: Any, paths: list[tuple[Any, ...]]) -> None:
    assert [mistake.path for mistake in find_json_value_mistakes(written)] == paths


def test_a_wrong_matcher_is_a_mistake() -> None:
    (found,) = find_json_value_mistakes({"a": {"$near": 1}})
    assert found.path[0] == "a"


def test_the_rules() -> None:
    assert [rule.name for rule in JSON] == ["output.json_schema", "output.json"]
    assert all(rule.needs_answers for rule in JSON)
