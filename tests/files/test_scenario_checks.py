"""Mistakes in templates, schemas and rules that the models of a scenario cannot find, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from agenteval.core.errors import Mistake, Problem
from agenteval.files.scenario_checks import blank_problems, expectation_problems, tool_problems
from agenteval.files.yaml_source import parse_yaml


def tool(text: str) -> list[Problem]:
    document = parse_yaml(text.encode(), "s.yaml")
    return list(tool_problems(document.value, document.mark))


def places(problems: list[Problem]) -> list[int]:
    assert all(each.remedy for each in problems)
    return [each.place.line for each in problems if each.place]


# ── references ───────────────────────────────────────────────────────────────────────────────────

SCHEMA = "parameters: {type: object, properties: {city: {type: string}, to: {}}%s}\n"


@pytest.mark.parametrize(
    "answer",
    [
        "plain",
        "${args.city}",
        "from ${args.city} to ${args.to}",
        "${ args.city }",
        "${args}",
        "${args.city.name}",
        "$${args.nowhere}",
        "$${",
        "$args {args}",
        "100$",
    ],
)
def test_references_that_hold(answer: str) -> None:
    assert tool(f"{SCHEMA % ''}returns: '{answer}'\n") == []


@pytest.mark.parametrize(
    ("answer", "named", "remedy"),
    [
        ("${args.ctiy}", ["args.ctiy", "'ctiy'"], "city"),
        ("${args.zzz.city}", ["'zzz'"], "city"),
        ("${arg.city}", ["arg.city"], "${args.city}"),
        ("${Args.city.name}", ["Args.city.name"], "${args.city.name}"),
        ("${arg}", ["${arg}"], "${args}"),
        ("${call.city}", ["call.city"], "$${"),
        ("${args.}", ["args."], "${args.NAME}"),
        ("${args..city}", ["args..city"], "${args.NAME}"),
        ("${}", ["${}"], "${args.NAME}"),
        ("${args.city", ["args.city"], "'}'"),
        ("$$${args.zzz", [], ""),
    ],
)
def test_references_that_do_not(answer: str, named: list[str], remedy: str) -> None:
    found = tool(f"{SCHEMA % ''}returns: '{answer}'\n")
    assert places(found) == ([2] if named else [])
    assert all(part in each.what and remedy in each.remedy for each in found for part in named)


def test_each_reference_is_checked_where_it_stands() -> None:
    text = "returns:\n  a: '${x}'\n  b:\n    - '${args.ok}'\n    - '${y} ${z}'\nerror: '${w}'\n"
    assert [re.findall(r"\{(\w+)\}", each.what)[0] for each in tool(text)] == ["x", "y", "z", "w"]
    assert places(tool(text)) == [2, 5, 5, 6]


@pytest.mark.parametrize(
    ("parameters", "known"),
    [
        (SCHEMA % "", True),
        (SCHEMA % ", additionalProperties: false", True),
        (SCHEMA % ", additionalProperties: true", False),
        (SCHEMA % ", additionalProperties: {type: string}", False),
        (SCHEMA % ", patternProperties: {}", False),
        ("parameters: {type: object}\n", False),
        ("", False),
    ],
)
def test_a_parameter_is_unknown_if_no_other_is_possible(parameters: str, known: bool) -> None:
    assert bool(tool(f"{parameters}returns: '${{args.zzz}}'\n")) is known


def test_the_steps_of_a_sequence() -> None:
    text = (
        SCHEMA % "" + "sequence:\n- returns: '${args.city}'\n- returns: {a: '${args.zzz}'}\n"
        "- error: '${x}'\n- error:\n- text\n"
    )
    assert places(tool(text)) == [4, 5, 6]


# ── other mistakes of a tool ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("returns: 1\nerror:\n", [2]),
        ("sequence:\n", [1]),
        ("python:\n", [1]),
        ("returns:\n", []),
        ("description: x\nbase: y\n", [2]),
        ("- a list\n", []),
        ("text\n", []),
        ("{}\n", []),
    ],
)
def test_answers(text: str, lines: list[int]) -> None:
    assert places(tool(text)) == lines


@pytest.mark.parametrize(
    ("parameters", "lines"),
    [
        ("\n  type: object\n  properties: {}", []),
        (" {}", [1]),
        ("\n  type: string\n", [2]),
        ("\n  type:\n    - object\n", [2]),
        ("\n  type: object\n  properties:\n    a: {type: strange}\n", [4]),
        ("\n  type: object\n  required: a\n", [3]),
        (" text", []),
        ("", []),
    ],
)
def test_parameters_are_the_schema_of_an_object(parameters: str, lines: list[int]) -> None:
    assert places(tool(f"parameters:{parameters}")) == lines


def test_the_type_that_was_written_is_named() -> None:
    (absent,), (text,) = tool("parameters: {}\n"), tool("parameters: {type: array}\n")
    assert "'array'" in text.what
    assert "'" not in absent.what


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rule:
    """Finds a mistake wherever a value has ``bad``."""

    name: str

    def find_mistakes(self, value: Any) -> Iterator[Mistake]:
        if isinstance(value, list):
            yield from (
                Mistake(f"{self.name} is bad", "mend it", (n,))
                for n, each in enumerate(value)
                if each == "bad"
            )
        elif value == "bad":
            yield Mistake(f"{self.name} is bad", "mend it")


RULES = (Rule("output.contains"), Rule("limits"))


def expecting(text: str) -> list[Problem]:
    document = parse_yaml(text.encode(), "s.yaml")
    return list(expectation_problems(document.value, document.mark, RULES))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("output: {contains: good}\n", []),
        ("output:\n  contains: bad\n", [2]),
        ("output:\n  contains:\n  - good\n  - bad\n  - bad\n", [4, 5]),
        ("output:\n  contains:\n", []),
        ("output: bad\n", []),
        ("contains: bad\n", []),
        ("limits: bad\noutput: {contains: bad}\n", [2, 1]),  # in the order of the rules
        ("text\n", []),
        ("[]\n", []),
    ],
)
def test_the_mistakes_of_each_rule(text: str, lines: list[int]) -> None:
    assert places(expecting(text)) == lines


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("criteria: []\n", ["criteria"]),
        ("output: {contains: [], matches: []}\n", ["output.contains", "output.matches"]),
        ("tool_calls: {forbidden: []}\n", ["tool_calls.forbidden"]),
        # Of these the model knows whether they mean that nothing is called.
        ("tool_calls: []\n", []),
        ("tool_calls: {calls: [], any_of: []}\n", []),
        ("output: {contains: {output: []}}\n", []),
        ("limits: {steps: []}\n", []),
        ("calls: []\nany_of: []\n", ["calls", "any_of"]),
        ("criteria:\n", []),
    ],
)
def test_empty_lists_check_nothing(text: str, named: list[str]) -> None:
    found = expecting(text)
    assert [each.what.split("`")[1] for each in found] == named


def test_where_an_empty_list_stands() -> None:
    assert places(expecting("output:\n  contains: [x]\n  matches: []\n")) == [3]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("criteria: [a, b]\n", []),
        ("criteria:\n- a\n- ' '\n- ''\n", [3, 4]),
        ("criteria: ' '\n", [1]),
        ("criteria:\n- {a: 1}\n- 3\n-\n", []),
    ],
)
def test_blank_criteria(text: str, lines: list[int]) -> None:
    assert places(expecting(text)) == lines


def test_blank_texts_of_anything() -> None:
    document = parse_yaml(b"- a\n- '\t'\n", "s.yaml")
    (found,) = blank_problems(document.value, document.mark, "it is blank")
    assert found.what == "it is blank"
    assert places([found]) == [2]
    assert list(blank_problems(None, document.mark, "")) == []
