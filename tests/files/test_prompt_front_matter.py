"""The front matter of prompts: where it ends, and which metrics, labels and scales are valid."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError, Place
from agenteval.core.score import Severity
from agenteval.files.prompt_front_matter import (
    NOT_ENOUGH_INFORMATION,
    BuiltInRubricFrontMatter,
    Labels,
    PromptFrontMatter,
    RubricFrontMatter,
    front_matter_problems,
    normalize_label,
    parse_labels,
    parse_scale,
    split_front_matter,
    unknown_keys,
)

# ── the file ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "head", "body", "line"),
    [
        ("---\nmetric: m\n---\nbody\nmore\n", {"metric": "m"}, "body\nmore\n", 4),
        ("---\nmetric: m\n---", {"metric": "m"}, "", 4),
        ("---\n---\nbody", {}, "body", 3),
        ("---\n\n  \n---\nbody", {}, "body", 5),
        ("---  \nmetric: m\n--- \nbody", {"metric": "m"}, "body", 4),
        ("---\r\nmetric: m\r\n---\r\nbody", {"metric": "m"}, "body", 4),
        ("---\na: 1\n---\nbody\n---\nrule", {"a": 1}, "body\n---\nrule", 4),
    ],
)
def test_front_matter_and_body(text: str, head: dict[str, Any], body: str, line: int) -> None:
    found = split_front_matter(text, "r.md")
    assert (found.head.value, found.body) == (head, body)
    assert found.place == Place("r.md", line)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", Place("r.md", 1)),
        ("body", Place("r.md", 1)),
        ("---\nmetric: m\nbody", Place("r.md", 1)),
        ("\n---\nmetric: m\n---\n", Place("r.md", 1)),
        ("x---\na: 1\n---\n", Place("r.md", 1)),
        ("---\n- a list\n---\n", Place("r.md", 2)),
        ("---\njust text\n---\n", Place("r.md", 2)),
    ],
)
def test_a_file_without_front_matter(text: str, place: Place) -> None:
    with pytest.raises(AuthorError) as error:
        split_front_matter(text, "r.md")
    assert [problem.place for problem in error.value.problems] == [place]


def test_the_lines_of_keys_are_those_of_the_file() -> None:
    found = split_front_matter("---\nmetric: m\nscale: [1, 5]\n---\nbody", "r.md")
    problem = found.problem("scale", "what", "remedy")
    assert problem.place
    assert (problem.what, problem.remedy, problem.place.line) == ("what", "remedy", 3)
    with pytest.raises(AuthorError) as error:
        split_front_matter("---\nmetric: m\nmetric: n\n---\n", "r.md")
    assert [each.place.line for each in error.value.problems if each.place] == [3]


# ── labels and scales ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "names", "ok", "severities"),
    [
        (["no failure", "x"], ("no failure", "x"), {"no failure"}, {}),
        (("x", "no failure", "y"), ("x", "no failure", "y"), {"no failure"}, {}),
        ({"good": "ok", "bad": "high"}, ("good", "bad"), {"good"}, {"bad": Severity.HIGH}),
        ({"a": "ok", "b": "ok"}, ("a", "b"), {"a", "b"}, {}),
        ({"a": "ok", "b": ""}, ("a", "b"), {"a"}, {}),
        (
            {"a": "low", "b": "medium", "c": "critical", "d": "ok"},
            ("a", "b", "c", "d"),
            {"d"},
            {"a": Severity.LOW, "b": Severity.MEDIUM, "c": Severity.CRITICAL},
        ),
    ],
)
def test_labels(value: Any, names: tuple[str, ...], ok: set[str], severities: dict[str, Severity]) -> None:
    assert parse_labels(value) == Labels(names, frozenset(ok), severities)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": "ok", "b": "bad"}, "'bad' (label 'b')"),
        ({"a": "ok", "b": None}, "'None'"),
        ({"a": "ok"}, "two labels"),
        (["no failure"], "two labels"),
        ([], "two labels"),
        ({"a": "ok", " ": "low"}, "empty"),
        (["a", "b"], "failure"),
        ({"a": "low", "b": "high"}, "failure"),
        ({"On brand": "ok", "on_brand": "low"}, "identical"),
        ({"a": "ok", "Not-enough to judge": "low"}, NOT_ENOUGH_INFORMATION),
        ("a", "'a'"),
        (None, "None"),
        (3, "3"),
    ],
)
def test_labels_that_are_refused(value: Any, named: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_labels(value)
    assert named in str(error.value)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("On Brand", "on brand"),
        ("on_brand", "on brand"),
        (" on - brand ", "on brand"),
        ("ON--BRAND__", "on brand"),
        ("Straße", "strasse"),
        ("", ""),
    ],
)
def test_labels_are_compared_without_case_and_separators(text: str, normal: str) -> None:
    assert normalize_label(text) == normal


@pytest.mark.parametrize(
    ("value", "scale"),
    [
        ([1, 5], (1.0, 5.0)),
        ((0, 1), (0.0, 1.0)),
        ([0.5, 1.5], (0.5, 1.5)),
        ([-1, 1], (-1.0, 1.0)),
        ([5, 1], None),
        ([1, 1], None),
        ([1], None),
        ([1, 2, 3], None),
        ([False, 5], None),
        ([0, True], None),
        (["1", 5], None),
        ([1, float("inf")], None),
        ([float("-inf"), 1], None),
        ([float("nan"), 1], None),
        ("15", None),
        (None, None),
    ],
)
def test_scales(value: Any, scale: tuple[float, float] | None) -> None:
    assert parse_scale(value) == scale


# ── the keys ─────────────────────────────────────────────────────────────────────────────────────


def problems(text: str, model: Any = RubricFrontMatter) -> list[tuple[str, int]]:
    """The key that each problem names, and its line."""
    file = split_front_matter(f"---\n{text}\n---\n", "r.md")
    found = [*unknown_keys(file, model), *front_matter_problems(file, file.head.value, model)]
    assert all(each.remedy and each.place and each.place.path == "r.md" for each in found)
    return [(each.what, each.place.line) for each in found if each.place]


@pytest.mark.parametrize(
    "text",
    [
        "metric: tone",
        "metric: Tone of voice-2.1",
        "metric: tone\nscope: conversation",
        "metric: tone\nscope: turn\nwhole: true\nscale: [1, 5]",
        "metric: tone\nlabels: {good: ok, bad: low}",
        "metric: tone\nversion: 3",
        "metric: Ünicode",
    ],
)
def test_front_matter_that_is_valid(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "named", "line"),
    [
        ("scope: turn", "metric", 2),
        ("scope: turn\nmetric: 1st", "1st", 3),
        ("metric: _x", "_x", 2),
        ("metric: a/b", "a/b", 2),
        ("metric: 3", "3", 2),
        ("metric: m\nscope: sample", "sample", 3),
        ("metric: m\nwhole: 1", "whole", 3),
        ("metric: m\nscale: [5, 1]", "scale", 3),
        ("metric: m\nlabels: [a, b]", "failure", 3),
        ("metric: m\nversion: one", "one", 3),
        ("metric: m\nversion: true", "version", 3),
        ("metric: m\nversion: 1.5", "1.5", 3),
        ("metric: m\nscal: [1, 5]", "scal", 3),
        ("metric: m\norder: 3", "order", 3),
    ],
)
def test_front_matter_that_is_refused(text: str, named: str, line: int) -> None:
    ((what, at),) = problems(text)
    assert named in what
    assert at == line


def test_all_mistakes_are_reported_with_their_lines() -> None:
    found = problems("metric: 1\nscope: x\nversion: y\nodd: 1\neven: 2")
    assert [line for _, line in found] == [5, 6, 2, 3, 4]


def test_what_an_author_may_write_beside_a_rubric() -> None:
    assert problems("name: n\nversion: 2", PromptFrontMatter) == []
    assert [line for _, line in problems("name: n\nmetric: m", PromptFrontMatter)] == [3]
    built_in = "metric: m\norder: 3\nshort: s\nneeds: goal\nshared: true\nunsure: maybe\nanswer: a"
    assert problems(built_in, BuiltInRubricFrontMatter) == []


def test_values_that_are_left_out() -> None:
    found = RubricFrontMatter(metric="m")
    assert (found.scope, found.whole, found.scale, found.labels, found.version) == (
        "turn",
        False,
        None,
        Labels(),
        1,
    )
    assert BuiltInRubricFrontMatter(metric="m").unsure == NOT_ENOUGH_INFORMATION
