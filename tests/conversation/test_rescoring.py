"""Recorded conversations that are scored again: their events, their order, and who is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agenteval.conversation.current_sample import sample_memory
from agenteval.conversation.rescoring import Rescoring, rescore
from agenteval.conversation.runtime import RunControl
from agenteval.core.event import Event, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.plan import ScenarioRules
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, UserReview
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import CallEvidence, Step, Stop, StopReason, ToolVisibility, Trajectory, Turn

RECORDED = Stop(reason=StopReason.RECORDED, detail="log.jsonl:1")
A, B = (Turn(user=name, steps=(Step(text=name),)) for name in "ab")
KNOWN = Check(name="outcome", passed=True)
SCENARIO = Scenario(id="s")


class Noting:
    """A scorer that notes how many turns it sees, and of which visibility."""

    def __init__(self, scope: str, log: list[Any], name: str) -> None:
        self.scope, self._log, self._name = scope, log, name

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
        self._log.append((self._name, len(trajectory.turns), trajectory.visibility))
        return (Check(name=self._name, passed=True),)


def recorded(name: str = "r", *turns: Turn, stop: Stop = RECORDED, **more: Any) -> RecordedConversation:
    talk = Trajectory(turns=turns or (A, B), stop=stop, unfinished=more.pop("unfinished", None))
    return RecordedConversation(SampleKey(scenario=name, agent="a"), SCENARIO, talk, "log.jsonl:1", **more)


def rescored(
    *conversations: RecordedConversation,
    judged: bool = False,
    control: RunControl | None = None,
    review: UserReview | None = None,
    **more: Any,
) -> tuple[list[Event], list[Any]]:
    log: list[Any] = []
    events: list[Event] = []

    def reviewer(_sample: Any, _events: Any) -> Any:
        class Reviewing:
            scope = "conversation"

            async def __call__(self, *_: Any) -> Sequence[Any]:
                return (review,)

        log.append("review")
        return Reviewing()

    settings = Rescoring(
        checks_of=lambda each: [Noting("turn", log, "turn"), Noting("conversation", log, "whole")],
        judges=[Noting("conversation", log, "judge")] if judged else (),
        reviewer=reviewer if review else None,
        **more,
    )
    anyio.run(rescore, conversations, settings, events.append, control or RunControl())
    return events, log


def kinds(events: list[Event]) -> list[Any]:
    found: list[Any] = []
    for event in events:
        if isinstance(event, Scored):
            found.append((event.turn, *(getattr(item, "name", item.kind) for item in event.items)))
        else:
            found.append(event.type)
    return found


def test_the_events_of_a_conversation() -> None:
    events, log = rescored(recorded(checks=(KNOWN,), names={"x": ("y",)}))
    assert kinds(events) == [
        "sample_started",
        "turn_finished",
        (0, "turn"),
        "turn_finished",
        (1, "turn"),
        (None, "whole"),
        (None, "outcome"),
        "sample_finished",
    ]
    assert [(name, count) for name, count, _ in log] == [("turn", 1), ("turn", 2), ("whole", 2)]
    first, last = events[0], events[-1]
    assert isinstance(first, SampleStarted)
    assert isinstance(last, SampleFinished)
    assert (first.scenario, first.rules) == (SCENARIO, None)
    assert (last.stop, last.names, last.unfinished) == (RECORDED, {"x": ("y",)}, None)


def test_rules_of_the_scenario_and_a_turn_that_was_interrupted() -> None:
    rules = ScenarioRules(epochs=3)
    events, log = rescored(recorded("r", A, unfinished=B), rules_for=lambda _scenario, agent: rules)
    first, last = events[0], events[-1]
    assert isinstance(first, SampleStarted)
    assert isinstance(last, SampleFinished)
    assert (first.rules, last.unfinished) == (rules, B)
    assert [name for name, *_ in log] == ["turn", "turn", "whole"]
    assert [event.index for event in events if isinstance(event, TurnFinished)] == [0]


def keys(events: list[Event], kind: type[Any]) -> list[str]:
    return [event.key.scenario for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("judged", [False, True])
def test_each_conversation_is_scored(judged: bool) -> None:
    names = [str(number) for number in range(45)]
    events, log = rescored(*map(recorded, names), judged=judged, max_concurrent=3)
    assert sorted(keys(events, SampleStarted)) == sorted(keys(events, SampleFinished)) == sorted(names)
    assert sum(name == "judge" for name, *_ in log) == (45 if judged else 0)
    if not judged:
        assert keys(events, SampleFinished) == names


def test_no_more_than_the_maximum_are_judged_at_once() -> None:
    running, most = 0, 0

    class Slow(Noting):
        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            running -= 1
            return ()

    settings = Rescoring(checks_of=lambda _: (), judges=[Slow("conversation", [], "judge")], max_concurrent=3)
    anyio.run(rescore, [recorded(str(number)) for number in range(9)], settings, lambda _: None, RunControl())
    assert most == 3


def test_the_defaults() -> None:
    plain = Rescoring(checks_of=lambda _: ())
    assert (plain.max_concurrent, tuple(plain.judges), plain.reviewer) == (20, (), None)
    assert plain.rules_for(SCENARIO, "a") is None


@pytest.mark.parametrize(
    ("reason", "is_judged"),
    [
        (StopReason.RECORDED, True),
        (StopReason.USER_DONE, True),
        (StopReason.AGENT_ERROR, True),
        (StopReason.INFRASTRUCTURE, False),
        (StopReason.SIMULATOR, False),
        (StopReason.BUDGET, False),
        (StopReason.UNREADABLE, False),
    ],
)
def test_a_conversation_that_was_lost_is_not_judged(reason: StopReason, is_judged: bool) -> None:
    events, log = rescored(recorded(stop=Stop(reason=reason)), judged=True)
    assert ("judge" in [name for name, *_ in log]) is is_judged
    assert kinds(events)[-1] == "sample_finished"


@pytest.mark.parametrize("judged", [False, True])
def test_an_interruption_keeps_further_conversations_from_beginning(judged: bool) -> None:
    control = RunControl()
    control.interrupt()
    events, _ = rescored(recorded("1"), recorded("2"), judged=judged, control=control)
    assert (events, control.outcome) == ([], "interrupted")
    rest = iter([recorded("1"), recorded("2")])
    settings = Rescoring(checks_of=lambda _: ())
    anyio.run(rescore, rest, settings, events.append, control)
    assert next(rest).key.scenario == "2"  # it was not even read


@pytest.mark.parametrize(
    ("known", "evidence", "found"),
    [
        ({}, None, ToolVisibility.UNSEEN),
        ({"a": KnownVisibility(calls=ToolVisibility.ALL)}, None, ToolVisibility.ALL),
        ({"b": KnownVisibility(calls=ToolVisibility.ALL)}, None, ToolVisibility.UNSEEN),
        ({}, CallEvidence.RECORDED, ToolVisibility.ALL),
    ],
)
def test_a_record_alone_shows_how_many_calls_are_seen(
    known: dict[str, KnownVisibility], evidence: CallEvidence | None, found: ToolVisibility
) -> None:
    scenario = Scenario.model_validate({"id": "s", "tools": {"look": {"returns": 1}}})
    shown = recorded("r", A.model_copy(update={"evidence": evidence}))
    plain = recorded("p", A)
    shown, plain = (
        RecordedConversation(each.key, scenario, each.trajectory, each.where) for each in (shown, plain)
    )
    _, log = rescored(shown, plain, visibility=known)
    assert [each[-1] for each in log[:2]] == [found, found]
    unaffected = ToolVisibility.ALL if known.get("a") else ToolVisibility.UNSEEN
    assert [each[-1] for each in log[2:]] == [unaffected, unaffected]


# ── reviews of the user ──────────────────────────────────────────────────────────────────────────

FAULT = UserReview(label="hindered", explains=True, turn=1, failed=True)
NO_FAULT = UserReview(label="as it should")


def test_the_review_of_the_original_run_is_kept() -> None:
    events, log = rescored(recorded(review=FAULT), judged=True, review=NO_FAULT)
    assert "review" not in log
    assert (None, "user_review") in kinds(events)
    whole = [count for name, count, _ in log if name in ("whole", "judge")]
    assert whole == [1, 1]  # only what came before the fault
    assert len([event for event in events if isinstance(event, TurnFinished)]) == 2
    explains_nothing = UserReview(label="hindered", explains=False, turn=1)
    for harmless in (NO_FAULT, explains_nothing):
        _, log = rescored(recorded(review=harmless), review=FAULT)
        assert [count for name, count, _ in log if name == "whole"] == [2]


@pytest.mark.parametrize(
    ("reason", "is_reviewed"),
    [(StopReason.RECORDED, True), (StopReason.USER_DONE, False), (StopReason.AGENT_ERROR, False)],
)
def test_only_foreign_records_are_reviewed(reason: StopReason, is_reviewed: bool) -> None:
    events, log = rescored(recorded(stop=Stop(reason=reason)), judged=True, review=NO_FAULT)
    assert ("review" in log) is is_reviewed
    last = events[-1]
    assert isinstance(last, SampleFinished)
    assert last.stop.reason is reason


def test_without_judges_nothing_is_reviewed() -> None:
    _, log = rescored(recorded(), review=FAULT)
    assert "review" not in log


def test_a_fault_of_the_user_changes_the_end() -> None:
    events, _ = rescored(recorded(checks=(KNOWN,)), judged=True, review=FAULT)
    last = events[-1]
    assert isinstance(last, SampleFinished)
    assert last.stop.reason is StopReason.SIMULATOR
    assert kinds(events).count((None, "outcome")) == 2  # after the new checks, once more
    events, _ = rescored(recorded(checks=(KNOWN,)), judged=True, review=NO_FAULT)
    assert kinds(events).count((None, "outcome")) == 1


def test_what_judges_keep_of_a_conversation_is_cleared_when_it_is_over() -> None:
    memories: list[dict[Any, Any]] = []

    class Keeping:
        scope = "turn"

        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            memory = sample_memory()
            memory[len(memory)] = trajectory
            memories.append(memory)
            return (Check(name=f"kept {len(memory)}", passed=True),)

    settings = Rescoring(checks_of=lambda each: [], judges=[Keeping(), Keeping()])
    events: list[Event] = []
    anyio.run(rescore, [recorded("r"), recorded("s")], settings, events.append, RunControl())
    kept = [item.name for event in events if isinstance(event, Scored) for item in event.items]  # type: ignore[union-attr]
    assert sorted(kept) == sorted(f"kept {number}" for number in (1, 2, 3, 4) for _ in "rs")
    assert memories == [{}] * 8
