"""Replayed journals: every planned sample once, in the order of the plan, and what was cut off is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.event import (
    CallsSeen,
    Event,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import MISSING_TURNS, OUTCOME, Check, UserReview
from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, ToolVisibility, Usage
from agenteval.files.journal import event_to_json
from agenteval.importers.journals import placeholders_in, replay_journal, visibility_in
from agenteval.importers.sources import Source
from agenteval.messages.log_entry import UnreadableRecord
from tests.support.report_samples import turn
from tests.support.verdict_runs import CUT, FAIL, LOST, PASS, events_of

A, B = SampleKey(scenario="a", agent="bot"), SampleKey(scenario="b", agent="bot")


def lines_of(events: Sequence[Event]) -> list[bytes]:
    return [f"{event_to_json(event)}\n".encode() for event in events]


def replay(
    tmp_path: Path, events: Sequence[Event | str], policy: str = ""
) -> list[RecordedConversation | UnreadableRecord]:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(each if isinstance(each, str) else f"{event_to_json(each)}\n" for each in events))
    return list(replay_journal(Source(path, "log"), lambda run, agent: policy and f"{policy} of {agent}"))


def shown(found: Sequence[RecordedConversation | UnreadableRecord]) -> list[Any]:
    """The scenario and epoch of each sample and how it ended, or the line of what cannot be read."""
    return [
        int(each.where.rpartition(":")[2])
        if isinstance(each, UnreadableRecord)
        else (
            f"{each.key.scenario}{each.key.epoch}",
            each.trajectory.stop and str(each.trajectory.stop.reason),
        )
        for each in found
    ]


DONE, CUT_OFF = "script_done", "interrupted"


def own(events: Sequence[Event], key: SampleKey) -> list[Event]:
    """The events of one sample."""
    return [each for each in events if getattr(each, "key", None) == key]


WHOLE = events_of({"a": [PASS], "b": [FAIL]})
BEGIN, END = WHOLE[0], WHOLE[-1]
OF_A, OF_B = own(WHOLE, A), own(WHOLE, B)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([], []),
        (WHOLE, [("a0", DONE), ("b0", DONE)]),
        # in the order of the plan, whatever finished first
        ([BEGIN, *OF_B, *OF_A, END], [("a0", DONE), ("b0", DONE)]),
        ([BEGIN, *OF_B[:-1], *OF_A, OF_B[-1], END], [("a0", DONE), ("b0", DONE)]),
        # what never ran, and what was still running
        ([BEGIN, *OF_A, END], [("a0", DONE), ("b0", CUT_OFF)]),
        ([BEGIN, *OF_B, END], [("a0", CUT_OFF), ("b0", DONE)]),
        ([BEGIN, END], [("a0", CUT_OFF), ("b0", CUT_OFF)]),
        ([BEGIN], [("a0", CUT_OFF), ("b0", CUT_OFF)]),
        ([BEGIN, *OF_A, *OF_B[:1]], [("a0", DONE), ("b0", CUT_OFF)]),
        ([BEGIN, *OF_A[:-1], *OF_B], [("a0", CUT_OFF), ("b0", DONE)]),
        # nothing is known to be lost, but the end is
        (WHOLE[:-1], [("a0", DONE), ("b0", DONE), len(WHOLE) - 1]),
        ([*WHOLE, RunResumed(at="x")], [("a0", DONE), ("b0", DONE), len(WHOLE) + 1]),
        ([*WHOLE, RunResumed(at="x"), END], [("a0", DONE), ("b0", DONE)]),
        # a sample that began again
        ([BEGIN, *OF_A[:-1], *OF_A, *OF_B, END], [("a0", DONE), ("b0", DONE)]),
        # two runs in one file
        ([*WHOLE, *WHOLE], [("a0", DONE), ("b0", DONE), ("a0", DONE), ("b0", DONE)]),
        ([BEGIN, *OF_A, *WHOLE], [("a0", DONE), ("b0", CUT_OFF), ("a0", DONE), ("b0", DONE)]),
        # events of no sample that began
        ([BEGIN, OF_A[-1], *OF_A, *OF_B, END], [("a0", DONE), ("b0", DONE)]),
        ([*OF_A, *WHOLE], [1, ("a0", DONE), ("b0", DONE)]),
    ],
)
def test_samples_in_the_order_of_the_plan(tmp_path: Path, events: list[Event], found: list[Any]) -> None:
    assert shown(replay(tmp_path, events)) == found


def test_epochs_of_a_plan_and_those_beyond_it(tmp_path: Path) -> None:
    events = events_of({"a": [PASS, PASS], "b": [PASS]})
    more = [
        each.model_copy(update={"key": A.model_copy(update={"epoch": n})}) for n in (3, 2) for each in OF_A
    ]
    found = replay(tmp_path, [events[0], *more, *events[1:]])
    assert shown(found) == [("a0", DONE), ("a1", DONE), ("b0", DONE), ("a2", DONE), ("a3", DONE)]


def test_how_lost_and_interrupted_samples_ended(tmp_path: Path) -> None:
    found = replay(tmp_path, events_of({"a": [LOST], "b": [CUT]}))
    assert shown(found) == [("a0", "infrastructure"), ("b0", CUT_OFF)]
    assert isinstance(found[0], RecordedConversation)
    assert found[0].trajectory.unfinished


@pytest.mark.parametrize(
    ("stop", "more"),
    [
        (StopReason.SCRIPT_DONE, {"refused": True}),
        (StopReason.SCRIPT_DONE, {"again": True}),
        (StopReason.INTERRUPTED, {}),
        (StopReason.BUDGET, {}),
    ],
)
def test_a_sample_that_is_not_over_gives_way_to_its_repetition(
    tmp_path: Path, stop: StopReason, more: dict[str, Any]
) -> None:
    ended = SampleFinished(key=A, stop=Stop(reason=stop), **more)
    found = replay(tmp_path, [BEGIN, *OF_A[:-1], ended, *OF_A, *OF_B, END])
    assert shown(found) == [("a0", DONE), ("b0", DONE)]
    found = replay(tmp_path, [BEGIN, *OF_A[:-1], ended, *OF_B, END])
    assert shown(found) == [("a0", str(stop)), ("b0", DONE)]


@pytest.mark.parametrize(
    ("ended", "is_told"),
    [
        (SampleFinished(key=B, stop=Stop(reason=StopReason.SCRIPT_DONE), refused=True), True),
        (SampleFinished(key=B, stop=Stop(reason=StopReason.INTERRUPTED)), False),
    ],
)
def test_a_cut_off_end_is_told_unless_a_lost_sample_says_it(
    tmp_path: Path, ended: SampleFinished, is_told: bool
) -> None:
    """A sample of which only a judge was not asked is not lost."""
    found = replay(tmp_path, [BEGIN, *OF_A, *OF_B[:-1], ended])
    unread = [each for each in found if isinstance(each, UnreadableRecord)]
    assert [each.hides_rest for each in unread] == [True] * is_told


def test_turns_are_in_order_and_the_last_of_an_index_counts(tmp_path: Path) -> None:
    said = [(1, "one"), (0, "zero"), (1, "again")]
    turns = [TurnFinished(key=A, index=index, turn=turn(text, "hello")) for index, text in said]
    found = replay(tmp_path, [BEGIN, OF_A[0], *turns, OF_A[-1], *OF_B, END])
    assert isinstance(found[0], RecordedConversation)
    assert [each.user for each in found[0].trajectory.turns] == ["zero", "again"]


def test_a_repetition_starts_anew(tmp_path: Path) -> None:
    known = Scored(key=A, turn=None, items=(Check(name=OUTCOME, passed=False),))
    later = TurnFinished(key=A, index=5, turn=turn("later", "hello"))
    found = replay(tmp_path, [BEGIN, OF_A[0], later, known, *OF_A, *OF_B, END])
    assert isinstance(found[0], RecordedConversation)
    assert "later" not in [each.user for each in found[0].trajectory.turns]
    assert found[0].checks == ()


def test_only_what_cannot_be_found_again_is_kept_of_the_scores(tmp_path: Path) -> None:
    outcome, missing = Check(name=OUTCOME, passed=True), Check(name=MISSING_TURNS, passed=None)
    review = UserReview(label="ok", usage=Usage(calls=1))
    scores = [
        Scored(key=A, turn=None, items=(outcome, Check(name="output.contains", passed=True))),
        Scored(key=A, turn=0, items=(missing, review)),
    ]
    found = replay(tmp_path, [BEGIN, OF_A[0], *scores, OF_A[-1], *OF_B, END])
    assert isinstance(found[0], RecordedConversation)
    assert isinstance(found[1], RecordedConversation)
    assert found[0].checks == (outcome, missing)
    assert found[0].review
    assert (found[0].review.label, found[0].review.usage) == ("ok", None)
    assert (found[1].checks, found[1].review) == ((), None)


@pytest.mark.parametrize(("own_policy", "policy"), [("", "Be brief. of bot"), ("mine", "mine")])
def test_the_policy_of_a_scenario_or_of_the_agent(tmp_path: Path, own_policy: str, policy: str) -> None:
    events = events_of({"a": [PASS]}, scenarios={"a": {"policy": own_policy}})
    (found,) = replay(tmp_path, events, policy="Be brief.")
    assert isinstance(found, RecordedConversation)
    assert found.scenario.policy == policy


def test_what_a_sample_brings_from_its_run(tmp_path: Path) -> None:
    ended = SampleFinished(key=A, stop=Stop(reason=StopReason.SCRIPT_DONE), names={"f": ("g",)})
    events = events_of({"a": [PASS]}, scenarios={"a": {"base": "/somewhere"}})
    (found,) = replay(tmp_path, [events[0], *OF_A[:-1], ended, END])
    assert isinstance(found, RecordedConversation)
    assert (found.where, found.names, found.run) == ("log:2", {"f": ("g",)}, events[0])
    assert found.scenario.base == ""  # code that a journal names is not run


def test_a_recorded_conversation_brings_its_scenario(tmp_path: Path) -> None:
    empty = events_of({})
    began = SampleStarted(key=A, scenario=Scenario(id="a", name="mine"))
    found = replay(tmp_path, [empty[0], *OF_B[:1], began, *OF_A[1:], END])
    assert shown(found) == [2, ("a0", DONE)]
    assert isinstance(found[1], RecordedConversation)
    assert found[1].scenario.name == "mine"


def test_without_a_plan_samples_are_in_the_order_of_the_journal(tmp_path: Path) -> None:
    began = [SampleStarted(key=key, scenario=Scenario(id=key.scenario, name="x")) for key in (B, A)]
    found = replay(tmp_path, [events_of({})[0], began[0], began[1], *OF_B[1:], *OF_A[1:], END])
    assert shown(found) == [("b0", DONE), ("a0", DONE)]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([*WHOLE[:-1], '{"type": "run_fin'], [("a0", DONE), ("b0", DONE), len(WHOLE)]),
        ([BEGIN, *OF_A, '{"type": "sample'], [("a0", DONE), ("b0", CUT_OFF)]),
        ([BEGIN, *OF_A, '{"type": "sample\n', *OF_B, END], [("a0", DONE), len(OF_A) + 2, ("b0", DONE)]),
        ([BEGIN, *OF_A, '{"type": "odd"}\n', *OF_B, END], [("a0", DONE), len(OF_A) + 2, ("b0", DONE)]),
        ([*WHOLE, '{"type": "odd'], [("a0", DONE), ("b0", DONE), len(WHOLE) + 1]),
        ([*WHOLE, "[1]\n"], [("a0", DONE), ("b0", DONE), len(WHOLE) + 1]),
        (['{"type": "odd'], []),
        (["[1]\n"], [1]),
    ],
)
def test_lines_that_are_no_events(tmp_path: Path, events: Any, found: list[Any]) -> None:
    assert shown(replay(tmp_path, events)) == found


# ── what a run says of all its samples ───────────────────────────────────────────────────────────


def known(calls: ToolVisibility, **more: Any) -> KnownVisibility:
    return KnownVisibility(calls=calls, **more)


def begun(**plan: Any) -> RunStarted:
    run = events_of({"a": [PASS]})[0]
    assert isinstance(run, RunStarted)
    return run.model_copy(update={"plan": run.plan.model_copy(update=plan)})


def test_no_run_and_no_secrets() -> None:
    assert visibility_in([]) == {}
    assert placeholders_in([]) == {}
    assert visibility_in(lines_of([CallsSeen(agent="bot", evidence=CallEvidence.REPORTED)])) == {}
    assert placeholders_in([b'{"type":"run_started", "oops"\n', b"[]"]) == {}
    assert visibility_in([b'{"type":"run_started", "oops"\n']) == {}


@pytest.mark.parametrize(
    ("before", "evidence", "calls"),
    [
        ({}, [], ToolVisibility.UNSEEN),
        ({}, [CallEvidence.REPORTED], ToolVisibility.ALL),
        ({}, [CallEvidence.ASKED], ToolVisibility.ALL),
        ({"bot": known(ToolVisibility.PARTLY, why="w")}, [CallEvidence.ASKED], ToolVisibility.PARTLY),
        ({"bot": known(ToolVisibility.PARTLY, why="w")}, [CallEvidence.LISTED], ToolVisibility.ALL),
        ({"": known(ToolVisibility.ALL)}, [], ToolVisibility.ALL),
    ],
)  # fmt: skip
def test_what_was_seen_of_calls_in_the_run(before: Any, evidence: Any, calls: ToolVisibility) -> None:
    seen = [CallsSeen(agent="bot", evidence=each) for each in evidence]
    events: list[Event] = [begun(visibility=before), *seen]
    found = visibility_in(lines_of([*events, *OF_A]))
    why = "w" if "bot" in before else ""
    assert found == {"bot": known(calls, source=VisibilitySource.EARLIER_RUN, why=why)}


def test_what_the_author_says_of_calls_counts_more() -> None:
    authors = known(ToolVisibility.DECLARED_UNSEEN, source=VisibilitySource.AUTHOR)
    seen = [CallsSeen(agent=agent, evidence=CallEvidence.REPORTED) for agent in ("bot", "other")]
    found = visibility_in(lines_of([begun(visibility={"bot": authors}), *seen]))
    assert found["bot"] == authors
    assert found["other"].calls is ToolVisibility.ALL


def test_tools_of_the_agents_own_make_what_it_asked_for_no_proof() -> None:
    run = begun(visibility={})
    suite = run.plan.suite.model_copy(update={"unmocked_tools": "passthrough"})
    run = run.model_copy(update={"plan": run.plan.model_copy(update={"suite": suite})})
    found = visibility_in(lines_of([run, CallsSeen(agent="bot", evidence=CallEvidence.ASKED)]))
    assert found["bot"].calls is ToolVisibility.PARTLY


def test_the_placeholders_of_secrets_are_those_of_the_first_run() -> None:
    runs = [begun(secrets={"bot": (mark,)}) for mark in ("[one]", "[two]")]
    assert placeholders_in([b"oops\n", *lines_of([*OF_A, *runs])]) == {"bot": ("[one]",)}
