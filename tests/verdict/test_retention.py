"""What stays in memory until the reports are written: all numbers, and the text of a few conversations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from agenteval.core.event import (
    CallsSeen,
    Event,
    Notice,
    Reconsidered,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Severity
from agenteval.core.trajectory import CallEvidence, Step, Stop, StopReason, ToolCall, ToolResult, Turn, Usage
from agenteval.verdict.report import build_report
from agenteval.verdict.retention import KEPT_IN_FULL, LEFT_OUT, RetainedEvents
from tests.support.verdict_runs import (
    BROKEN,
    GOAL,
    HELD,
    LOST,
    Played,
    events_of,
    finding,
    judge_failed,
    score,
    whole,
)

GOOD, BAD = whole(HELD), whole(BROKEN)
CALL = ToolCall(name="pay", args={"id": 1}, result=ToolResult(value="paid"))


def retained(events: Sequence[Event], **options: Any) -> RetainedEvents:
    first, *_ = events
    assert isinstance(first, RunStarted)
    sink = RetainedEvents(first.plan, **options)
    for event in events:
        sink(event)
    return sink


def turns(events: Iterable[Event]) -> list[Turn]:
    return [event.turn for event in events if isinstance(event, TurnFinished)]


def kept(*played: Played, most: int = KEPT_IN_FULL, **config: Any) -> list[bool]:
    """For each conversation, whether its text is kept."""
    events = events_of({f"s{n}": [each] for n, each in enumerate(played)}, **config)
    found = retained(events, most=most).events()
    return [turn.user != LEFT_OUT for turn in turns(found)]


@pytest.mark.parametrize(
    ("played", "is_kept"),
    [
        (GOOD, False),
        (whole(), False),
        (BAD, True),
        (whole(Check(name="x", passed=None)), True),
        (whole(finding(Severity.LOW)), True),
        (whole(judge_failed("stars")), True),
        (whole(score("stars", 5.0)), True),
        (LOST, True),
        (Played((HELD,), stop=StopReason.AGENT_ERROR), True),
        (Played((), ((HELD,),)), False),
        (Played((), ((BROKEN,),)), True),
    ],
)
def test_conversations_with_something_to_report_are_kept(played: Played, is_kept: bool) -> None:
    assert kept(played) == [is_kept]


def test_only_so_many_failed_conversations_and_as_many_others() -> None:
    other = whole(score("stars", 5.0))
    found = kept(BAD, other, BAD, other, BAD, other, GOOD, most=2)
    assert found == [True, True, True, True, False, False, False]
    assert kept(BAD, other, most=0) == [False, False]
    assert kept(BAD, most=1) == [True]
    assert KEPT_IN_FULL == 100


def test_everything_is_kept_if_asked() -> None:
    events = events_of({"a": [GOOD, BAD]})
    found = list(retained(events, everything=True, most=0).events())
    assert [turn.user for turn in turns(found)] == ["hi 0", "hi 0"]
    assert sorted(map(repr, found)) == sorted(map(repr, events))


def test_reports_decide_the_same_without_the_text() -> None:
    played = [GOOD, BAD, LOST, whole(finding(), score("stars", 2.0)), Played(calls=(CALL,))]
    events = events_of({f"s{n}": [each] for n, each in enumerate(played)})
    full, slim = build_report(events), build_report(retained(events, most=0).events())

    def facts(report: Any) -> Any:
        return [
            (
                sample.key,
                [(check.name, check.passed) for check in sample.all_checks],
                sample.all_scores,
                [each.label for each in sample.findings],
                sample.stop,
                sample.trajectory.usage,
                sample.trajectory.latency_ms,
                [call.name for call in sample.trajectory.tool_calls],
            )
            for sample in report.samples
        ]

    assert facts(slim) == facts(full)


# ── what is left of a conversation ───────────────────────────────────────────────────────────────

KEY = SampleKey(scenario="a", agent="bot")
DONE = Stop(reason=StopReason.SCRIPT_DONE)


def slim(*turns_: Turn, items: Sequence[Any] = (HELD,), unfinished: Turn | None = None) -> list[Event]:
    first, *_ = events_of({"a": [GOOD]})
    events: list[Event] = [first, SampleStarted(key=KEY)]
    events += [TurnFinished(key=KEY, index=n, turn=turn) for n, turn in enumerate(turns_)]
    events += [Scored(key=KEY, turn=None, items=tuple(items))]
    events += [SampleFinished(key=KEY, stop=DONE, unfinished=unfinished)]
    return list(retained(events, most=0).events())


def test_the_text_of_a_turn_is_left_out() -> None:
    step = Step(text="hello", tool_calls=(CALL,), latency_ms=5, usage=Usage(calls=1), extra={"x": 1})
    (turn,) = turns(slim(Turn(user="hi", steps=(step,), latency_ms=9)))
    (found,) = turn.steps
    assert (turn.user, found.text, found.extra, turn.latency_ms) == (LEFT_OUT, LEFT_OUT, {}, 9)
    assert (found.latency_ms, found.usage) == (5, Usage(calls=1))
    assert found.tool_calls == (ToolCall(name="pay", args={}),)


@pytest.mark.parametrize(("text", "left"), [("x", LEFT_OUT), ("", ""), ("  ", "  "), (None, None)])
def test_an_answer_that_was_empty_stays_empty(text: str | None, left: str | None) -> None:
    for usage in (Usage(), Usage(calls=1)):
        (turn,) = turns(slim(Turn(user="hi", steps=(Step(text=text, usage=usage),))))
        assert turn.steps[0].text == left


def test_the_calls_of_a_finding_are_kept_without_their_results() -> None:
    step = Step(text="x", tool_calls=(CALL,))
    for call, args in ((0, {"id": 1}), (None, {})):
        (turn,) = turns(slim(Turn(user="hi", steps=(step,)), items=[finding(call=call)]))
        (found,) = turn.steps[0].tool_calls
        assert (found.args, found.result, turn.user) == (args, None, LEFT_OUT)


def test_the_unfinished_turn_loses_its_text_too() -> None:
    events = slim(Turn(user="hi"), unfinished=Turn(user="secret", error="why"))
    (end,) = [event for event in events if isinstance(event, SampleFinished)]
    assert end.unfinished is not None
    assert (end.unfinished.user, end.unfinished.error) == (LEFT_OUT, "why")


def test_calls_that_are_kept_are_not_shared() -> None:
    first, second = (
        Turn(user="hi", steps=(Step(text="x", tool_calls=(CALL.model_copy(update={"args": {"id": n}}),)),))
        for n in range(2)
    )
    found = turns(slim(first, second, items=[finding(call=0)]))
    assert [turn.steps[0].tool_calls[0].args for turn in found] == [{"id": 0}, {"id": 1}]


def test_whether_a_call_was_observed_stays() -> None:
    seen = CALL.model_copy(update={"observed": True})
    (turn,) = turns(slim(Turn(user="hi", steps=(Step(tool_calls=(seen, CALL)),))))
    assert [call.observed for call in turn.steps[0].tool_calls] == [True, False]


@pytest.mark.parametrize("finds_call", [True, False])
@pytest.mark.parametrize(
    "refused", [{"attempted": True}, {"result": ToolResult(value="not allowed", refused=True)}]
)
def test_a_call_that_was_refused_was_still_not_made(refused: dict[str, Any], finds_call: bool) -> None:
    steps = [Step(tool_calls=(CALL.model_copy(update=update),)) for update in ({}, refused)]
    items = [finding(call=0)] if finds_call else [HELD]
    found = turns(slim(*(Turn(user="hi", steps=(step,)) for step in steps), items=items))
    calls = [call for turn in found for call in turn.tool_calls]
    assert [call.was_made for call in calls] == [True, False]
    assert not any(call.result and call.result.value for call in calls)


def test_equal_turns_share_one_object_and_others_do_not() -> None:
    plain = Turn(user="one", steps=(Step(text="a"),))
    first, second, third, fourth = turns(
        slim(
            plain,
            Turn(user="two", steps=(Step(text="b"),)),
            Turn(user="three", steps=(Step(text="c"),), script=1),
            Turn(user="four", steps=(Step(text="d"),), evidence=CallEvidence.ASKED),
        )
    )
    assert first is second
    assert (third.script, fourth.evidence) == (1, CallEvidence.ASKED)
    assert len({id(turn) for turn in (first, third, fourth)}) == 3
    slow = plain.model_copy(update={"latency_ms": 5})
    spoken = plain.model_copy(update={"user_model": "m"})
    broken = plain.model_copy(update={"error": "why"})
    priced = Turn(user="one", steps=(Step(text="a", usage=Usage(calls=1)),))
    found = turns(slim(plain, slow, spoken, broken, priced))
    assert [each.latency_ms for each in found] == [0, 5, 0, 0, 0]
    assert [each.user_model for each in found] == ["", "", "m", "", ""]
    assert [each.error for each in found] == [None, None, None, "why", None]
    assert [each.steps[0].usage.calls for each in found] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("check", "is_reduced"),
    [
        (Check(name="x", passed=True, detail="d", where="w"), True),
        (Check(name="x", passed=False, detail="d", where="w"), False),
        (Check(name="x", passed=None, detail="d", where="w"), False),
        (Check(name="criteria", passed=True, detail="d", by="m"), False),
    ],
)
def test_a_check_that_passed_is_reduced_to_its_name(check: Check, is_reduced: bool) -> None:
    (scored,) = [event for event in slim(Turn(user="hi"), items=[check]) if isinstance(event, Scored)]
    assert scored.items == ((Check(name=check.name, passed=True),) if is_reduced else (check,))


def test_other_items_stay_as_they_are() -> None:
    items = (score("stars", 3.0), HELD, finding(), BROKEN)
    (scored,) = [event for event in slim(Turn(user="hi"), items=items) if isinstance(event, Scored)]
    assert scored.items == items


def test_places_of_shared_checks_are_not_mixed_up() -> None:
    first, *_ = events_of({"a": [GOOD]})
    one, two = Check(name="one", passed=True), Check(name="two", passed=True)
    events: list[Event] = [
        first,
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=Turn(user="hi")),
        Scored(key=KEY, turn=0, items=(one,)),
        Scored(key=KEY, turn=None, items=(one, two)),
        Scored(key=KEY, turn=None, items=(two,)),
        SampleFinished(key=KEY, stop=DONE),
    ]
    found = [event for event in retained(events).events() if isinstance(event, Scored)]
    assert [(event.turn, event.items) for event in found] == [(0, (one,)), (None, (one, two)), (None, (two,))]


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────

WRITTEN = Scenario.model_validate(
    {
        "id": "a",
        "name": "A",
        "source": "a.yaml:1",
        "goal": "Get it.",
        "policy": "Be kind.",
        "facts": ["f"],
        "knowledge": ["k"],
        "tools": {"t": {"returns": 1}},
        "lines": {"goal": 3},
    }
)


@pytest.mark.parametrize(("lines", "goal"), [({"goal": 3}, "Get it."), ({}, "")])
def test_scenarios_of_records_lose_what_no_report_needs(lines: Any, goal: str) -> None:
    scenario = WRITTEN.model_copy(update={"lines": lines})
    first, *_ = events_of({"a": [GOOD]})
    keys = [KEY, KEY.model_copy(update={"epoch": 1})]
    events: list[Event] = [first]
    for key in keys:
        events += [SampleStarted(key=key, scenario=scenario), SampleFinished(key=key, stop=DONE)]
    one, two = (event.scenario for event in retained(events).events() if isinstance(event, SampleStarted))
    assert one is not None
    assert one is two
    assert (one.id, one.name, one.source, one.goal) == ("a", "A", "a.yaml:1", goal)
    assert (one.tools, one.policy, one.facts, one.knowledge) == ({}, "", (), ())
    everything = list(retained(events, everything=True).events())
    (full, _) = (event.scenario for event in everything if isinstance(event, SampleStarted))
    assert full == scenario


# ── order ────────────────────────────────────────────────────────────────────────────────────────


def test_samples_are_in_the_order_in_which_they_began() -> None:
    first, *_ = events_of({"a": [GOOD]})
    a, b, c = (KEY.model_copy(update={"epoch": n}) for n in range(3))
    again = Reconsidered(key=a, metric=GOAL, items=())
    seen = CallsSeen(agent="bot", evidence=CallEvidence.ASKED)
    notice, end = Notice(level="warning", text="x"), RunFinished(finished_at="")
    events: list[Event] = [
        SampleStarted(key=a),
        SampleStarted(key=b),
        SampleStarted(key=c),
        notice,
        SampleFinished(key=b, stop=DONE),
        seen,
        SampleFinished(key=a, stop=DONE),
        again,
        end,
    ]
    found = list(retained([first, *events]).events())
    assert found == [
        first,
        SampleStarted(key=a),
        SampleFinished(key=a, stop=DONE),
        again,
        SampleStarted(key=b),
        SampleFinished(key=b, stop=DONE),
        SampleStarted(key=c),
        notice,
        seen,
        end,
    ]


def test_events_of_a_sample_that_never_started_come_last() -> None:
    first, *_ = events_of({"a": [GOOD]})
    scored, end = Scored(key=KEY, turn=None, items=()), SampleFinished(key=KEY, stop=DONE)
    assert list(retained([first, scored, end]).events()) == [first, scored, end]


def test_only_samples_in_which_something_was_found() -> None:
    events = events_of(
        {"a": [GOOD], "b": [BAD], "c": [whole(HELD, finding())], "d": [Played((), ((finding(),),))]}
    )
    sink = retained(events)
    found = [event.key.scenario for event in sink.events(found=True) if isinstance(event, SampleStarted)]
    assert found == ["c", "d"]
    sink(Reconsidered(key=KEY, metric=GOAL, items=()))
    again = [event.key.scenario for event in sink.events(found=True) if isinstance(event, SampleStarted)]
    assert again == ["a", "c", "d"]
