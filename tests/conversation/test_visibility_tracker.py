"""How many of an agent's calls are seen: what turns show, who waits for it, and what it is in the end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.event import CallsSeen, Event, TurnFinished
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource
from agenteval.core.trajectory import CallEvidence, Step, ToolVisibility, Trajectory, Turn

ALL, PARTLY, UNSEEN = ToolVisibility.ALL, ToolVisibility.PARTLY, ToolVisibility.UNSEEN
TOOLS = {"get": {"parameters": {"type": "object"}, "returns": 1}}


def sample(agent: str = "a", **more: Any) -> Sample:
    scenario = Scenario.model_validate({"id": "s", "name": "s", "goal": "g", **more})
    return Sample(key=SampleKey(scenario="s", agent=agent, epoch=0), scenario=scenario)


WITH_TOOLS = sample(tools=TOOLS)


def turn(evidence: CallEvidence | None) -> Turn:
    return Turn(user="u", steps=(Step(text="x"),), evidence=evidence)


def current(tracker: VisibilityTracker, of: Sample = WITH_TOOLS) -> ToolVisibility | None:
    return tracker.with_current_visibility(of, Trajectory()).visibility


@pytest.mark.parametrize(
    ("known", "evidence", "passthrough", "found"),
    [
        (None, [], False, UNSEEN),
        (None, [CallEvidence.ASKED], False, ALL),
        (None, [CallEvidence.ASKED], True, PARTLY),
        (None, [CallEvidence.REPORTED], True, ALL),
        (KnownVisibility(calls=PARTLY), [], False, PARTLY),
        (KnownVisibility(calls=PARTLY), [CallEvidence.ASKED], False, PARTLY),
        (KnownVisibility(calls=UNSEEN), [], False, UNSEEN),
        (KnownVisibility(calls=ALL), [], False, ALL),
    ],
)
def test_what_is_known_when_no_conversation_runs(
    known: KnownVisibility | None, evidence: list[CallEvidence], passthrough: bool, found: ToolVisibility
) -> None:
    tracker = VisibilityTracker(
        {"a": known} if known else {}, evidence={"a": evidence}, passthrough=passthrough, may_start=False
    )
    assert current(tracker) is found


def test_what_holds_for_all_agents_is_kept_under_the_empty_name() -> None:
    tracker = VisibilityTracker(
        {"": KnownVisibility(calls=ALL), "b": KnownVisibility(calls=UNSEEN)}, may_start=False
    )
    assert [current(tracker, sample(agent, tools=TOOLS)) for agent in "ab"] == [ALL, UNSEEN]


def test_a_check_leaves_it_open_while_a_conversation_may_show_more() -> None:
    open_one = Trajectory().visibility
    tracker = VisibilityTracker({}, may_start=True)
    assert current(tracker) is open_one
    tracker.may_start = False
    assert current(tracker) is UNSEEN
    tracker.note_conversation_start()
    assert current(tracker) is open_one
    tracker.note_conversation_end()
    assert current(tracker) is UNSEEN


def test_each_kind_of_evidence_is_reported_once_for_an_agent() -> None:
    events: list[Event] = []
    tracker = VisibilityTracker({}, may_start=True)
    emit = tracker.wrap_emit(events.append)
    for index, evidence in enumerate([None, CallEvidence.ASKED, CallEvidence.ASKED, CallEvidence.LISTED]):
        emit(TurnFinished(key=WITH_TOOLS.key, index=index, turn=turn(evidence)))
    emit(TurnFinished(key=sample("b").key, index=0, turn=turn(CallEvidence.ASKED)))
    found = [(each.agent, each.evidence) for each in events if isinstance(each, CallsSeen)]
    assert found == [("a", "asked"), ("a", "listed"), ("b", "asked")]
    assert [each.evidence for each in tracker.evidence_events("a")] == ["asked", "listed"]
    assert tracker.evidence_events("c") == []


def judge_waits(of: Sample, known: dict[str, KnownVisibility], evidence: CallEvidence | None) -> bool:
    """Whether the judge of a conversation waits while another one runs, which then shows ``evidence``."""
    tracker = VisibilityTracker(known, may_start=False)
    emit = tracker.wrap_emit(lambda _: None)
    done: list[Trajectory] = []

    async def judge() -> None:
        done.append(await tracker.with_final_visibility(of, Trajectory()))

    async def main() -> bool:
        tracker.note_conversation_start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(judge)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            waits = not done
            if evidence:
                emit(TurnFinished(key=of.key, index=0, turn=turn(evidence)))
            else:
                tracker.note_conversation_end()
        assert done[0].visibility is (ALL if evidence else UNSEEN) or not waits
        return waits

    return anyio.run(main)


@pytest.mark.parametrize("evidence", [None, CallEvidence.REPORTED])
def test_a_judge_waits_until_nothing_can_change_what_is_seen(evidence: CallEvidence | None) -> None:
    assert judge_waits(WITH_TOOLS, {}, evidence)


DECLARED = KnownVisibility(calls=ToolVisibility.DECLARED_UNSEEN, source=VisibilitySource.AUTHOR)


@pytest.mark.parametrize("known", [KnownVisibility(calls=ALL), KnownVisibility(calls=UNSEEN), DECLARED])
def test_no_judge_waits_for_what_is_known(known: KnownVisibility) -> None:
    assert not judge_waits(WITH_TOOLS, {"a": known}, None)


def test_no_judge_waits_in_a_scenario_without_tools() -> None:
    assert not judge_waits(sample(), {}, None)
