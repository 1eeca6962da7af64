"""The detectors over a finished conversation: which run, what is certain when calls may be unseen."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, ScoreFailure, Severity
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Trajectory, Turn
from agenteval.scoring.detectors.scorer import DetectorScorer
from agenteval.scoring.detectors.table import DETECTORS
from tests.support.detector_samples import call, turn
from tests.support.trajectories import seen

BEHAVIOR = "agent_behavior_failure"
JUDGED = {"judged": [BEHAVIOR]}
SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "source": "s.yaml:1",
        "lines": {"tools": 5},
        "goal": "Book room R-77120.",
        "profile": "Ann",
        "knowledge": ["k"],
        "facts": ["f"],
        "beliefs": [{"belief": "b"}],
        "tools": {
            "look": {"reads": True, "returns": 1},
            "book": {"writes": True, "returns": 1, "parameters": {"type": "object"}},
            "wipe": {"destructive": True, "returns": 1},
        },
    }
)
CLAIM = turn("Book it.", "I have booked it.")
LOOKS = turn("a", call("look", "x", id=1), call("look", "x", id=1), "x")


def scored(
    *turns: Turn,
    scenario: Scenario = SCENARIO,
    visibility: ToolVisibility | None = ToolVisibility.ALL,
    recorded: bool = False,
    stop: StopReason | None = None,
    unfinished: Turn | None = None,
    **suite: Any,
) -> list[Check | Finding | ScoreFailure]:
    talk = seen(turns, stop and Stop(reason=stop), unfinished).model_copy(update={"visibility": visibility})
    scorer = DetectorScorer(SuitePolicy.model_validate(suite), recorded=recorded)
    return list(anyio.run(scorer, scenario, talk))


def shown(items: list[Check | Finding | ScoreFailure]) -> list[tuple[str, str]]:
    names = {"check": "name", "finding": "detector", "failure": "metric"}
    return [(item.kind, getattr(item, names[item.kind])) for item in items]


REPEATED, CLAIMED, UNKNOWN = "repeated_tool_call", "claimed_action_not_called", "unknown_tool"
CLEAN = turn("a", call("look", id=1), "It is 1.")


@pytest.mark.parametrize(
    ("turns", "suite", "found"),
    [
        ((CLEAN,), {}, []),
        ((), {}, []),
        ((LOOKS,), {}, [("finding", REPEATED)]),
        ((CLAIM,), {}, [("finding", CLAIMED)]),
        ((LOOKS, CLAIM), {}, [("finding", REPEATED), ("finding", CLAIMED)]),
        ((CLAIM, LOOKS), {"detectors": [CLAIMED, REPEATED]}, [("finding", CLAIMED), ("finding", REPEATED)]),
        ((LOOKS,), {"detectors": []}, []),
        ((LOOKS,), {"detectors": ["leak"]}, []),
        ((LOOKS,), {"detectors": [REPEATED, REPEATED]}, [("finding", REPEATED)]),
        ((turn("a", call("pay"), "x"),), {}, [("check", UNKNOWN), ("finding", UNKNOWN)]),
        ((turn("a", call("pay"), "x"),), {"detectors": []}, [("check", UNKNOWN)]),
    ],
)
def test_which_detectors_run_in_which_order(
    turns: tuple[Turn, ...], suite: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert shown(scored(*turns, **suite)) == found


NO_TOOLS = SCENARIO.model_copy(update={"tools": {}})
PAY = call("pay")
OWN = PAY.model_copy(update={"observed": True})


@pytest.mark.parametrize(
    ("made", "scenario", "more", "is_unknown"),
    [
        (PAY, SCENARIO, {}, True),
        (PAY, SCENARIO, {"unmocked_tools": "passthrough"}, False),
        (PAY, SCENARIO, {"unmocked_tools": "empty"}, False),
        (PAY, SCENARIO, {"unmocked_tools": "passthrough", "recorded": True}, True),
        (PAY, NO_TOOLS, {}, False),
        (OWN, SCENARIO, {}, False),  # the agent ran a tool of its own
        (OWN, SCENARIO, {"recorded": True}, True),
        (call("look"), SCENARIO, {}, False),
    ],
)
def test_calls_of_tools_that_do_not_exist(
    made: Any, scenario: Scenario, more: dict[str, Any], is_unknown: bool
) -> None:
    items = scored(turn("a", made, "x"), scenario=scenario, **more)
    assert (UNKNOWN in dict(map(reversed, shown(items)))) is is_unknown


def test_the_check_of_unknown_tools_names_each_once() -> None:
    check, *_ = scored(turn("a", PAY, call("pay", id=1), call("fly"), "x"))
    assert isinstance(check, Check)
    assert (check.passed, check.where, check.parts) == (False, "s.yaml:5", ("pay", "fly"))


@pytest.mark.parametrize(("count", "named"), [(20, 20), (25, 20)])
def test_up_to_twenty_unknown_tools_are_named(count: int, named: int) -> None:
    check, *_ = scored(turn("a", *(call(f"tool_{number}") for number in range(count)), "x"))
    assert isinstance(check, Check)
    assert sum(part.startswith("tool_") for part in check.parts) == named


# ── severity ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("suite", "severity"),
    [
        ({}, Severity.HIGH),  # critical only once a judge confirms it
        ({"severities": {"false claim of action": "critical"}}, Severity.CRITICAL),
        ({"severities": {"false claim of action": "low"}}, Severity.LOW),
        ({"severities": {"wrong tool": "low"}}, Severity.HIGH),
    ],
)
def test_the_severity_of_a_finding(suite: dict[str, Any], severity: Severity) -> None:
    (found,) = scored(CLAIM, **suite)
    assert isinstance(found, Finding)
    assert (found.severity, found.turn, found.call, found.metric) == (severity, 0, None, BEHAVIOR)
    assert found.references.tool == "book"
    assert CLAIM.answer[slice(*found.span or (0, 0))] == found.evidence


def test_a_place_in_the_answer_counts_from_the_final_text() -> None:
    (late,) = scored(turn("a", "Wait.", call("look"), "I have booked it."), detectors=[CLAIMED])
    assert isinstance(late, Finding)
    assert late.span == (0, len("I have booked"))
    (early,) = scored(turn("a", "I have booked it.", call("look"), "Bye."), detectors=[CLAIMED])
    assert isinstance(early, Finding)
    assert early.span is None


# ── calls that may be unseen ─────────────────────────────────────────────────────────────────────

UNSEEN, PARTLY, DECLARED = ToolVisibility.UNSEEN, ToolVisibility.PARTLY, ToolVisibility.DECLARED_UNSEEN


@pytest.mark.parametrize(
    ("turns", "visibility", "suite", "found"),
    [
        ((LOOKS,), UNSEEN, {}, []),
        ((LOOKS,), PARTLY, {}, []),
        ((CLAIM,), UNSEEN, {}, [("failure", CLAIMED)]),
        ((CLAIM, CLAIM), PARTLY, {}, [("failure", CLAIMED)]),
        ((CLAIM,), DECLARED, {}, []),
        ((CLAIM,), UNSEEN, JUDGED, []),  # the judge answers
        ((CLAIM,), UNSEEN, {**JUDGED, "no_judge": True}, [("failure", CLAIMED)]),
        ((CLAIM,), ToolVisibility.ALL, JUDGED, [("finding", CLAIMED)]),
        ((turn("a", PAY, "x"),), UNSEEN, {}, [("check", UNKNOWN), ("finding", UNKNOWN)]),
    ],
)
def test_what_unseen_calls_leave_open(
    turns: tuple[Turn, ...], visibility: ToolVisibility, suite: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    items = scored(*turns, visibility=visibility, **suite)
    assert shown(items) == found
    assert all(item.unclear for item in items if isinstance(item, ScoreFailure))


def test_while_visibility_is_unknown_both_answers_are_kept() -> None:
    items = scored(turn("a", call("get_it"), "x"), LOOKS, CLAIM, visibility=None)
    assert shown(items) == [
        ("check", UNKNOWN),
        ("finding", REPEATED),
        ("finding", UNKNOWN),
        ("finding", CLAIMED),
        ("failure", CLAIMED),
    ]
    marks = {(item.kind, name): item for item, (_, name) in zip(items, shown(items), strict=True)}
    findings = [each.if_all_seen for each in marks.values() if isinstance(each, Finding)]
    assert findings == [True, False, True]
    failure = marks["failure", CLAIMED]
    assert isinstance(failure, ScoreFailure)
    assert failure.unless_all_seen
    (known,) = scored(CLAIM, visibility=UNSEEN)
    assert isinstance(known, ScoreFailure)
    assert not known.unless_all_seen


# ── conversations that broke off ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stop", "count"),
    [
        (StopReason.AGENT_ERROR, 1),
        (None, 1),
        (StopReason.RECORDED, 1),
        (StopReason.INFRASTRUCTURE, 0),
        (StopReason.SIMULATOR, 0),
        (StopReason.BUDGET, 0),
    ],
)
def test_an_interrupted_turn_counts_unless_others_are_at_fault(stop: StopReason | None, count: int) -> None:
    assert len(scored(CLEAN, unfinished=LOOKS, stop=stop)) == count
    assert len(scored(LOOKS, unfinished=CLAIM, stop=stop)) == 1 + count


def test_a_detector_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_conversation: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setitem(DETECTORS["leak"].__dict__, "find", broken)
    items = scored(LOOKS, CLAIM)
    assert shown(items) == [("finding", REPEATED), ("failure", "leak"), ("finding", CLAIMED)]
    (failure,) = [item for item in items if isinstance(item, ScoreFailure)]
    assert "ZeroDivisionError" in failure.message
    assert not failure.unclear


# ── the input ────────────────────────────────────────────────────────────────────────────────────


def test_what_detectors_know() -> None:
    scorer = DetectorScorer(SuitePolicy(now="2026-05-10"), "the policy", {"s3cret": "KEY"})
    made = scorer.build_input(SCENARIO, seen((CLEAN,)))
    assert (made.policy, made.now, dict(made.secrets)) == ("the policy", "2026-05-10", {"s3cret": "KEY"})
    assert made.truths == ("Ann", "Book room R-77120.", "k", "f")
    assert (made.beliefs, made.observed, made.undeclared_exist) == (("b",), True, False)
    facts = {name: (each.reads, each.writes, each.destructive) for name, each in made.tools.items()}
    assert facts == {
        "look": (True, False, False),
        "book": (False, True, False),
        "wipe": (False, True, True),
    }
    assert made.tools["book"].parameters == {"type": "object"}
    own = DetectorScorer(SuitePolicy(unmocked_tools="passthrough")).build_input(SCENARIO, seen((CLEAN,)))
    assert own.undeclared_exist is True
    bare = DetectorScorer(SuitePolicy()).build_input(Scenario(id="s"), Trajectory())
    assert (bare.truths, bare.now, bare.observed, bare.undeclared_exist) == ((), "", False, True)


@pytest.mark.parametrize(("suite", "is_raised"), [({}, False), (JUDGED, True)])
def test_a_plain_yes_is_consent_only_without_a_judge(suite: dict[str, Any], is_raised: bool) -> None:
    talk = turn("Delete it.", "Delete B-17?"), turn("yes", call("wipe", id="B-17"), "Gone.")
    found = shown(scored(*talk, detectors=["unconfirmed_action"], **suite))
    assert found == ([("finding", "unconfirmed_action")] if is_raised else [])
