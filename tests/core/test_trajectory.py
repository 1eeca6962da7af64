"""Conversations: what was said and called, by whom, how it ended and what it cost."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import (
    CallEvidence,
    Step,
    Stop,
    StopReason,
    ToolCall,
    ToolResult,
    ToolVisibility,
    Trajectory,
    Turn,
    Usage,
    sum_usage,
)

# ── usage ────────────────────────────────────────────────────────────────────────────────────────

SPENT = Usage(calls=1, input_tokens=10, output_tokens=5, cached_tokens=2, cost=0.5)
NOTHING = Usage()
CACHED = Usage(cached_calls=1)


def test_tokens_are_those_of_input_and_output() -> None:
    assert SPENT.tokens == 15
    assert NOTHING.tokens == 0


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        (NOTHING, False),
        (CACHED, False),
        (Usage(cost=1.0), False),
        (Usage(calls=1), True),
        (Usage(input_tokens=1), True),
        (Usage(output_tokens=1), True),
    ],
)
def test_what_is_spent(usage: Usage, spent: bool) -> None:
    assert usage.is_spent is spent


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        (SPENT, NOTHING, SPENT),
        (NOTHING, SPENT, SPENT),
        (NOTHING, NOTHING, NOTHING),
        (SPENT, CACHED, SPENT.model_copy(update={"cached_calls": 1})),
        (CACHED, CACHED, Usage(cached_calls=2, cost=0.0)),  # which cost nothing
        (
            SPENT,
            Usage(calls=2, input_tokens=1, output_tokens=2, cached_tokens=3, cost=0.25, estimated=True),
            Usage(calls=3, input_tokens=11, output_tokens=7, cached_tokens=5, cost=0.75, estimated=True),
        ),
        (SPENT, Usage(calls=1), Usage(calls=2, input_tokens=10, output_tokens=5, cached_tokens=2)),
        (Usage(calls=1, unsplit=True, cost=0.0), Usage(calls=1, cost=0.0),
         Usage(calls=2, unsplit=True, cost=0.0)),
    ],
)  # fmt: skip
def test_sums_of_usage(one: Usage, other: Usage, total: Usage) -> None:
    assert one + other == total
    assert other + one == total
    assert sum_usage([one, other]) in (total, one)


def test_the_sum_of_none_or_many() -> None:
    assert sum_usage([]) == NOTHING
    assert sum_usage([NOTHING, Usage(cost=1.0)]) == NOTHING
    assert sum_usage([SPENT] * 3).calls == 3
    assert sum_usage([NOTHING, CACHED]) == CACHED


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({}, False),
        ({"attempted": True}, True),
        ({"result": ToolResult(value=1)}, False),
        ({"result": ToolResult(is_error=True)}, False),
        ({"result": ToolResult(refused=True)}, True),
        ({"approved": True, "given_up": True}, False),
    ],
)
def test_a_call_that_was_only_attempted_was_not_made(fields: dict[str, Any], is_refused: bool) -> None:
    call = ToolCall(name="f", args={}, **fields)
    assert (call.is_refused, call.was_made) == (is_refused, not is_refused)


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (None, "null"), ({"é": [1]}, '{"é": [1]}'), (5, "5"), ("", "")]
)
def test_what_the_agent_is_given(value: Any, text: str) -> None:
    assert ToolResult(value=value).text == text


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


def call(name: str = "f", **more: Any) -> ToolCall:
    return ToolCall(name=name, args={}, **more)


def turn(*steps: Step, **more: Any) -> Turn:
    return Turn(user="Hi", steps=steps, **more)


@pytest.mark.parametrize(
    ("texts", "answer"), [((), ""), (("a",), "a"), (("a", "b"), "b"), (("a", None), ""), ((None,), "")]
)
def test_the_answer_is_the_last_text(texts: tuple[str | None, ...], answer: str) -> None:
    assert turn(*(Step(text=text) for text in texts)).answer == answer


def test_calls_that_may_be_of_another_turn() -> None:
    sure, unsure = call("sure"), call("unsure", of_unknown_turn=True)
    mixed = turn(Step(text="a", tool_calls=(unsure, sure)), Step(text="b"))
    assert [each.name for each in mixed.tool_calls] == ["unsure", "sure"]
    assert mixed.without_uncertain_calls == turn(Step(text="a", tool_calls=(sure,)), Step(text="b"))
    plain = turn(Step(tool_calls=(sure,)))
    assert plain.without_uncertain_calls is plain


@pytest.mark.parametrize(
    ("steps", "spoken"),
    [
        ([], ()),
        ([Step(agent="a")], ("a",)),
        ([Step(text="x")], ("",)),
        ([Step(tool_calls=(call(),))], ("",)),
        ([Step()], ()),
        ([Step(agent="a"), Step(agent="a"), Step(agent="b"), Step(agent="a")], ("a", "b", "a")),
        ([Step(text="x", agent="b", handed_by=("a", "c"))], ("a", "c", "b")),
        ([Step(agent="a"), Step(text="x"), Step(agent="a")], ("a", "", "a")),
    ],
)
def test_who_spoke(steps: list[Step], spoken: tuple[str, ...]) -> None:
    assert turn(*steps).spoken == spoken
    assert turn(*steps).agents == set(spoken) - {""}
    played = Trajectory(turns=(turn(*steps), turn(Step(agent="z"))))
    assert played.agents == (set(spoken) - {""}) | {"z"}


def test_the_usage_of_a_turn() -> None:
    steps = (Step(usage=SPENT), Step(usage=SPENT, unread_usage="x"), Step(unread_usage="y"))
    assert turn(*steps).usage.calls == 2
    assert turn(*steps).unread_usage == "x"
    assert turn().unread_usage == ""


# ── the end ──────────────────────────────────────────────────────────────────────────────────────

FAULTS = {
    "script_done": None, "user_done": None, "max_turns": None, "recorded": None, "agent_error": "agent",
    "agent_timeout": "agent", "tool_loop": "agent", "infrastructure": "infrastructure",
    "simulator": "simulator", "author_error": "author", "unreadable": "recording", "budget": "budget",
    "interrupted": "interrupted",
}  # fmt: skip


@pytest.mark.parametrize("reason", list(StopReason), ids=str)
def test_whose_fault_an_end_is(reason: StopReason) -> None:
    stop = Stop(reason=reason)
    assert stop.fault == FAULTS[str(reason)]
    assert stop.is_loss is (str(reason) in ("infrastructure", "simulator"))
    assert stop.is_cut_short is (str(reason) in ("budget", "interrupted"))


@pytest.mark.parametrize(
    ("detail", "cause"),
    [
        ("", "agent_error"),
        ("ValueError: no order A-7", "agent_error ValueError"),
        ("ValueError", "agent_error ValueError"),
        ("httpx.ConnectError: refused", "agent_error httpx.ConnectError"),
        ("my_app.errors.Oops: x", "agent_error my_app.errors.Oops"),
        ("value: x", "agent_error"),
        ("A sentence: x", "agent_error"),
        ("the reply had HTTP status 503 again", "agent_error HTTP status 503"),
        ("HTTP status 5031", "agent_error"),
        ("it raised ValueError: x", "agent_error"),
    ],
)
def test_the_same_failure_has_the_same_cause(detail: str, cause: str) -> None:
    assert Stop(reason=StopReason.AGENT_ERROR, detail=detail).cause == cause


# ── conversations ────────────────────────────────────────────────────────────────────────────────

ONE, TWO = turn(Step(tool_calls=(call("one"),)), latency_ms=5.0), turn(Step(text="a"), latency_ms=7.0)
CALLED = turn(Step(text="x"), Step(tool_calls=(call("last"),)), latency_ms=1.0)


def test_an_interrupted_turn_is_the_last() -> None:
    played = Trajectory(turns=(ONE, TWO), unfinished=CALLED)
    assert played.all_turns == (ONE, TWO, CALLED)
    assert Trajectory(turns=(ONE,)).all_turns == (ONE,)
    assert [each.name for each in played.tool_calls] == ["one", "last"]
    assert (played.steps, played.latency_ms) == (4, 13.0)
    paid = Trajectory(turns=(turn(Step(usage=SPENT)),), unfinished=turn(Step(usage=SPENT)))
    assert (paid.usage.calls, paid.tokens) == (2, 30)
    assert (Trajectory().steps, Trajectory().latency_ms, Trajectory().tokens) == (0, 0, 0)


@pytest.mark.parametrize(
    ("visibility", "unplaced", "unfinished", "seen"),
    [
        (ToolVisibility.ALL, (), (), True),
        (ToolVisibility.ALL, ("x",), (), False),
        (ToolVisibility.ALL, (), ("x",), False),
        (ToolVisibility.PARTLY, (), (), False),
        (None, (), (), False),
    ],
)
def test_whether_all_calls_are_seen(
    visibility: ToolVisibility | None, unplaced: Any, unfinished: Any, seen: bool
) -> None:
    played = Trajectory(
        turns=(turn(unplaced=unplaced),), unfinished=turn(unplaced=unfinished), visibility=visibility
    )
    assert played.all_calls_seen is seen


@pytest.mark.parametrize(
    ("reason", "unfinished", "ends"),
    [
        (StopReason.RECORDED, CALLED, True),
        (StopReason.RECORDED, TWO, False),
        (StopReason.RECORDED, turn(), False),
        (StopReason.RECORDED, None, False),
        (StopReason.AGENT_ERROR, CALLED, False),
        (None, CALLED, False),
    ],
)
def test_a_record_that_ends_with_a_call(
    reason: StopReason | None, unfinished: Turn | None, ends: bool
) -> None:
    stop = Stop(reason=reason) if reason else None
    assert Trajectory(turns=(ONE,), stop=stop, unfinished=unfinished).ends_with_call is ends


@pytest.mark.parametrize(("stop_turn", "broken"), [(None, 2), (0, 0), (1, 1)])
def test_the_turn_that_a_failure_is_charged_to(stop_turn: int | None, broken: int) -> None:
    stop = Stop(reason=StopReason.AGENT_ERROR, turn=stop_turn)
    assert Trajectory(turns=(ONE, TWO), stop=stop).broken_turn == broken
    assert Trajectory(turns=(ONE, TWO)).broken_turn == 2


def test_what_is_not_there_is_not_written() -> None:
    assert call().model_dump().keys().isdisjoint({"known", "attempted", "approved", "of_unknown_turn"})
    assert "unsplit" not in NOTHING.model_dump()
    assert Stop(reason=StopReason.RECORDED).model_dump().keys() == {"reason", "detail", "user_usage"}
    assert turn().model_dump().keys().isdisjoint({"evidence", "unplaced"})
    assert "handed_by" not in Step().model_dump()
    assert call(attempted=True).model_dump()["attempted"] is True
    assert Stop(reason=StopReason.RECORDED, turn=0).model_dump()["turn"] == 0


def test_words_that_are_stored() -> None:
    assert [str(each) for each in CallEvidence] == ["asked", "reported", "recorded", "listed"]
    assert [str(each) for each in ToolVisibility] == ["all", "partly", "unseen", "declared unseen"]
    assert {str(each) for each in StopReason} == set(FAULTS)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(), None),
        (Usage(calls=2), None),
        (Usage(calls=1, input_tokens=30, output_tokens=15), 45),
        (Usage(calls=1, output_tokens=77, unsplit=True), 77),
        (Usage(cached_calls=3), 0),
        (Usage(calls=1, cached_calls=3), None),
    ],
)
def test_tokens_that_nobody_reported_are_unknown(usage: Usage, tokens: int | None) -> None:
    assert usage.reported_tokens == tokens
