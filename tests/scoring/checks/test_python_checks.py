"""Checks that an author wrote in Python: what each returned value means, and what cannot be called."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.core.errors import Problem
from agenteval.core.scenario import Expectation, Scenario
from agenteval.core.trajectory import Turn
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome
from agenteval.scoring.checks.python_checks import (
    PYTHON,
    find_target_mistakes,
    find_target_problems,
    run_python_checks,
)
from tests.support.report_samples import turn

CODE = """
import asyncio, sys, time
from agenteval import Check

def yes(conversation): return True
def no(conversation): return False
async def later(conversation): return True
def polite(conversation): return "it was rude"
def blank(conversation): return "  "
def nothing(conversation): pass
def number(conversation): return 1
def raises(conversation): raise ValueError("boom")
def leaves(conversation): sys.exit(3)
async def hangs(conversation): await asyncio.sleep(60)
def long(conversation): return "x" * 5000
def surrogate(conversation): return "half \\ud83d"
def held(conversation): return Check(name="tone", passed=True, detail="fine")
def broken(conversation): return Check(name="tone", passed=False, detail="", parts=("p", "q"))
def unsure(conversation): return Check(name="n" * 300, passed=None, detail="d" * 5000)
def two(one, other): return True
def answers(conversation): return "|".join(turn.answer for turn in conversation.turns)
def about(conversation): return f"{conversation.scenario} {conversation.observed}"
value = 3
"""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "mine.py").write_text(CODE, encoding="utf-8")
    before = (set(sys.modules), list(sys.path))
    yield str(tmp_path)
    for name in set(sys.modules) - before[0]:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = before[1]


def ran(base: str, *names: str, turns: Sequence[Turn] = (), **more: Any) -> list[CheckOutcome]:
    seen = CheckInput(turns=tuple(turns) or (turn("hi", "hello"),), base=base, **more)
    return list(anyio.run(run_python_checks, [f"mine.py:{name}" for name in names], seen))


def only(base: str, name: str, **more: Any) -> CheckOutcome:
    (outcome,) = ran(base, name, **more)
    return outcome


@pytest.mark.parametrize(
    ("name", "passed", "facts", "parts", "subject"),
    [
        ("yes", True, ["True"], ("mine.py:yes",), ""),
        ("later", True, ["True"], ("mine.py:later",), ""),
        ("no", False, ["False"], ("mine.py:no",), ""),
        ("polite", False, ["it was rude"], ("mine.py:polite",), ""),
        ("surrogate", False, ["half \ufffd"], ("mine.py:surrogate",), ""),
        ("blank", None, ["empty", "return True"], (), ""),
        ("nothing", None, [" None", "return True"], (), ""),
        ("number", None, ["int", "return True"], (), ""),
        ("raises", None, ["ValueError", "boom"], (), ""),
        ("leaves", None, ["3"], (), ""),
        ("held", True, ["fine"], ("mine.py:held",), "tone"),
        ("broken", False, ["mine.py:broken", "no detail"], ("p", "q"), "tone"),
        ("two", None, ["mine.py:two", "def NAME(conversation)"], (), ""),
        ("missing", None, ["missing"], (), ""),
        ("value", None, ["mine.py:value", "not a function"], (), ""),
    ],
)
def test_what_a_returned_value_means(
    base: str, name: str, passed: bool | None, facts: list[str], parts: tuple[str, ...], subject: str
) -> None:
    outcome = only(base, name)
    assert (outcome.passed, tuple(outcome.parts), outcome.subject) == (passed, parts, subject)
    assert [fact for fact in facts if fact not in outcome.detail] == []


def test_details_and_names_have_a_limit(base: str) -> None:
    assert only(base, "long").detail.count("x") == 4000
    unsure = only(base, "unsure")
    assert (unsure.passed, len(unsure.detail), len(unsure.subject)) == (None, 4000, 200)


def test_a_check_that_does_not_return_is_not_decided(base: str) -> None:
    outcome = only(base, "hangs", timeout_s=0.01)
    assert outcome.passed is None
    assert "mine.py:hangs" in outcome.detail
    assert "0.01 s" in outcome.detail


def test_each_target_has_an_outcome_in_order(base: str) -> None:
    assert [each.passed for each in ran(base, "no", "raises", "yes")] == [False, None, True]
    assert ran(base) == []


def test_without_a_folder_no_code_is_run() -> None:
    outcome = only("", "yes")
    assert outcome.passed is None
    assert "mine.py:yes" in outcome.detail
    assert "--scenarios" in outcome.detail


def test_the_conversation_has_the_turns_before(base: str) -> None:
    outcome = only(base, "answers", turns=[turn("b", "2")], before=[turn("a", "1")])
    assert outcome.detail.endswith("1|2")
    assert only(base, "about", scenario="book", observed=False).detail.endswith("book False")


# ── before a run ─────────────────────────────────────────────────────────────────────────────────


def problems(base: str, *targets: str) -> list[Problem]:
    expect = Expectation.model_validate({"python": [f"mine.py:{name}" for name in targets]})
    scenario = Scenario(id="a", source="s/a.yaml:2", base=base, expect=expect)
    return list(find_target_problems(scenario))


def test_what_cannot_be_loaded_or_called_is_a_problem_each(base: str) -> None:
    assert problems(base, "yes", "later", "raises") == []
    found = problems(base, "yes", "two", "missing", "value")
    assert [
        name for name, each in zip(("two", "missing", "value"), found, strict=True) if name in each.what
    ] == [
        "two",
        "missing",
        "value",
    ]
    assert "def NAME(conversation)" in found[0].remedy
    assert [str(each.place).startswith("s/a.yaml:2") for each in found] == [True] * 3


def test_a_scenario_without_checks_has_no_problem() -> None:
    assert list(find_target_problems(Scenario(id="a", source="s/a.yaml:2"))) == []


@pytest.mark.parametrize(
    ("written", "places"),
    [
        ("a.py:f", []),
        ("", [()]),
        (" ", [()]),
        (["a.py:f", "", "b.py:g", " "], [(1,), (3,)]),
        ([], []),
        ([3, None], []),
        (3, []),
    ],
)
def test_an_empty_target_is_a_mistake_at_its_place(written: Any, places: list[tuple[int, ...]]) -> None:
    assert [mistake.path for mistake in find_target_mistakes(written)] == places


def test_the_rule_needs_answers() -> None:
    (rule,) = PYTHON
    assert (rule.name, rule.needs_answers) == ("python", True)
