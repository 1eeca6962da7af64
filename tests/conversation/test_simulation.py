"""One conversation between a user and an agent: turns, stops, tool calls, usage, and who is at fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agenteval.conversation import simulation
from agenteval.conversation.simulation import ToolWorld, run_conversation
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    MissingFactError,
    Problem,
    SimulatorError,
)
from agenteval.core.protocols import AgentReply, ReadReply, TurnTools, UserMove
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import (
    CallEvidence,
    Message,
    StopReason,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
    Usage,
)

TOOLS = {
    "look": {"returns": {"found": 3}},
    "wipe": {"error": "not today"},
    "bare": {"parameters": {"type": "object"}},
}
SPENT = Usage(calls=1, input_tokens=7, output_tokens=2)


def say(text: str, **more: Any) -> UserMove:
    return UserMove(text, **more)


LAST = UserMove(None, stop=StopReason.USER_DONE, usage=SPENT)


def tool_call(name: str, arguments: str = "{}", call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], text: str | None = None) -> AgentReply:
    return AgentReply(text, tool_calls=calls)


class Talk:
    """A user that sends its moves and an agent that gives its replies, in order. A reply may be a function of
    the tools; errors are raised."""

    def __init__(
        self,
        moves: list[Any],
        replies: list[Any],
        *,
        unmocked: str = "error",
        at_end: Exception | None = None,
    ) -> None:
        self.moves, self.replies, self.at_end = list(moves), list(replies), at_end
        self.seen: list[list[Message]] = []
        self.detached: list[Any] = []
        scenario = Scenario.model_validate({"id": "s", "tools": TOOLS})
        sample = Sample(key=SampleKey(scenario="s", agent="a"), scenario=scenario)
        self.world = ToolWorld(sample, self.run_mock, unmocked_tools=unmocked)

    async def run_mock(self, *_: Any) -> ToolResult:
        return ToolResult(value="mock")

    async def next(self, _trajectory: Trajectory) -> UserMove:
        move = self.moves.pop(0)
        if isinstance(move, Exception):
            raise move
        assert isinstance(move, UserMove)
        return move

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        self.seen.append(messages)
        answer = self.replies.pop(0)
        if callable(answer):
            answer = await answer(tools)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, AgentReply) else AgentReply(answer)

    async def after_last_answer(self) -> None:
        if self.at_end:
            raise self.at_end

    async def detach(self, agent: Any) -> None:
        self.detached.append(agent)

    async def _play(self) -> list[Trajectory]:
        growing = run_conversation(
            self._sample, user=self, make_agent=lambda: self, world=self.world, detach=self.detach
        )
        return [trajectory async for trajectory in growing]

    @property
    def _sample(self) -> Sample:
        return self.world._sample

    def play(self) -> list[Trajectory]:
        return anyio.run(self._play)

    def end(self) -> Trajectory:
        return self.play()[-1]


# ── turns and stops ──────────────────────────────────────────────────────────────────────────────


def test_a_trajectory_after_each_turn_and_once_more_with_the_stop() -> None:
    talk = Talk([say("one", script=4), say("two", model="m", usage=SPENT, fault="f"), LAST], ["A", "B"])
    grown = talk.play()
    assert [(len(each.turns), each.stop is None) for each in grown] == [(1, True), (2, True), (2, False)]
    first, second = grown[-1].turns
    assert (first.user, first.answer, first.script, first.error) == ("one", "A", 4, None)
    assert (second.user_model, second.user_usage, second.user_fault) == ("m", SPENT, "f")
    stop = grown[-1].stop
    assert stop is not None
    assert (stop.reason, stop.user_usage, stop.detail) == (StopReason.USER_DONE, SPENT, "")
    assert talk.detached == [talk]
    assert [message["content"] for message in talk.seen[1]] == ["one", "A", "two"]


@pytest.mark.parametrize(
    ("last", "reason", "turns"),
    [
        (say("bye", stop=StopReason.SCRIPT_DONE, usage=SPENT), StopReason.SCRIPT_DONE, 1),
        (say("bye", stop=StopReason.MAX_TURNS, usage=SPENT), StopReason.MAX_TURNS, 1),
        (UserMove(None), StopReason.USER_DONE, 0),
    ],
)
def test_the_last_message_of_the_user(last: UserMove, reason: StopReason, turns: int) -> None:
    ended = Talk([last], ["A"]).end()
    assert ended.stop is not None
    assert (ended.stop.reason, len(ended.turns), ended.stop.user_usage) == (reason, turns, Usage())


PROBLEM = Problem("what")


@pytest.mark.parametrize(
    ("error", "reason", "is_final"),
    [
        (AgentError("e"), StopReason.AGENT_ERROR, False),
        (AgentError("e", kind="timeout"), StopReason.AGENT_TIMEOUT, False),
        (AgentError("e", kind="tool_loop"), StopReason.TOOL_LOOP, False),
        (AgentError("e", kind="protocol"), StopReason.AGENT_ERROR, False),
        (AuthorError(PROBLEM), StopReason.AUTHOR_ERROR, False),
        (BudgetError("e"), StopReason.BUDGET, False),
        (SimulatorError("e"), StopReason.SIMULATOR, False),
        (InfrastructureError("e"), StopReason.INFRASTRUCTURE, False),
        (InfrastructureError("e", is_final=True), StopReason.INFRASTRUCTURE, True),
    ],
)
def test_a_fault_ends_the_conversation(error: Exception, reason: StopReason, is_final: bool) -> None:
    by_agent = Talk([say("one"), say("two")], ["A", error]).end()
    by_user = Talk([say("one"), error], ["A"]).end()
    for ended in (by_agent, by_user):
        assert ended.stop is not None
        assert (ended.stop.reason, ended.stop.is_final, len(ended.turns)) == (reason, is_final, 1)
        assert ended.stop.detail == str(error)
    assert by_agent.unfinished is not None
    assert (by_agent.unfinished.user, by_agent.unfinished.error) == ("two", str(error))
    assert (by_user.unfinished is None) is not isinstance(error, SimulatorError)


def test_a_message_that_was_rejected_is_kept() -> None:
    ended = Talk([SimulatorError("no user", rejected_text="I am a bot", usage=SPENT)], []).end()
    assert ended.unfinished is not None
    turn = ended.unfinished
    assert (turn.user, turn.error, turn.user_fault, turn.user_usage) == (
        "I am a bot",
        "no user",
        "no user",
        SPENT,
    )


def test_the_cost_of_a_question_without_an_answer_is_kept() -> None:
    ended = Talk([MissingFactError(PROBLEM, usage=SPENT)], []).end()
    assert ended.stop is not None
    assert (ended.stop.reason, ended.stop.user_usage) == (StopReason.AUTHOR_ERROR, SPENT)


@pytest.mark.parametrize(
    ("error", "is_detached"),
    [
        (InfrastructureError("e"), True),
        (SimulatorError("e"), True),
        (BudgetError("e"), False),
        (AuthorError(PROBLEM), False),
    ],
)
def test_an_agent_is_detached_unless_the_run_is_at_its_end(error: Exception, is_detached: bool) -> None:
    talk = Talk([say("one"), error], ["A"])
    talk.end()
    assert bool(talk.detached) is is_detached
    assert talk.world.rounds is None


def test_an_agent_that_fails_after_its_last_answer() -> None:
    talk = Talk([say("one"), say("two"), LAST], ["A", "B"], at_end=AgentError("late"))
    ended = talk.end()
    assert talk.detached == []  # nothing more is to be known
    assert ended.stop is not None
    facts = (ended.stop.reason, ended.stop.turn, ended.stop.user_usage, ended.broken_turn)
    assert facts == (StopReason.AGENT_ERROR, 1, SPENT, 1)
    lost = Talk([say("one"), LAST], ["A"], at_end=InfrastructureError("mixed up")).end()
    assert lost.stop is not None
    assert (lost.stop.reason, lost.stop.turn, lost.stop.user_usage) == (
        StopReason.INFRASTRUCTURE,
        None,
        SPENT,
    )


def test_a_failure_before_the_next_message_belongs_to_the_turn_before() -> None:
    failed = AfterAnswerError("late")
    ended = Talk([say("one"), say("two", usage=SPENT)], ["A", failed]).end()
    assert ended.stop is not None
    assert (ended.stop.turn, ended.unfinished, ended.stop.user_usage) == (0, None, SPENT)
    at_once = Talk([say("one")], [failed]).end()
    assert at_once.stop is not None
    assert at_once.stop.turn is None
    assert at_once.unfinished is not None


# ── tool calls in replies ────────────────────────────────────────────────────────────────────────


def test_calls_are_answered_and_the_agent_is_asked_again() -> None:
    talk = Talk([say("one"), LAST], [asks(tool_call("look"), tool_call("wipe", call_id="c2")), "Done."])
    (turn,) = talk.end().turns
    look, wipe = turn.tool_calls
    assert look.result == ToolResult(value={"found": 3})
    assert wipe.result is not None
    assert (wipe.result.is_error, wipe.result.refused) == (True, False)
    assert (len(turn.steps), turn.answer, turn.evidence) == (2, "Done.", CallEvidence.ASKED)
    assert [message["role"] for message in talk.seen[1]] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("unmocked", "name", "refused", "observed", "reason"),
    [
        ("error", "look", False, False, StopReason.USER_DONE),
        ("error", "unknown", True, False, StopReason.USER_DONE),
        ("error", "bare", None, False, StopReason.AUTHOR_ERROR),
        ("empty", "unknown", False, False, StopReason.USER_DONE),
        ("passthrough", "look", False, False, StopReason.USER_DONE),
        ("passthrough", "unknown", None, True, StopReason.USER_DONE),
    ],
)
def test_who_answers_a_call(
    unmocked: str, name: str, refused: bool | None, observed: bool, reason: StopReason
) -> None:
    ended = Talk([say("one"), LAST], [asks(tool_call(name)), "Done."], unmocked=unmocked).end()
    (call,) = ended.tool_calls
    assert (call.result and call.result.refused, call.observed) == (refused, observed)
    assert ended.stop is not None
    assert ended.stop.reason is reason


@pytest.mark.parametrize(("replies", "is_loop"), [(50, False), (51, True)])
def test_the_number_of_replies_with_calls(replies: int, is_loop: bool) -> None:
    ended = Talk([say("one"), LAST], [*[asks(tool_call("look"))] * replies, "Done."]).end()
    assert ended.stop is not None
    assert ended.stop.reason is (StopReason.TOOL_LOOP if is_loop else StopReason.USER_DONE)
    assert len(ended.tool_calls) == replies


@pytest.mark.parametrize(("count", "is_unreadable"), [(1000, False), (1001, True)])
def test_the_number_of_calls_in_a_reply(count: int, is_unreadable: bool) -> None:
    many = asks(*(tool_call("look", call_id=f"c{number}") for number in range(count)))
    ended = Talk([say("one"), LAST], [many, "Done."]).end()
    assert ended.stop is not None
    assert ended.stop.reason is (StopReason.AGENT_ERROR if is_unreadable else StopReason.USER_DONE)
    assert len(ended.tool_calls) == 1000
    assert all(call.is_refused is is_unreadable for call in ended.tool_calls)


def test_a_key_that_occurs_twice_makes_a_reply_unreadable() -> None:
    ended = Talk([say("one")], [asks(tool_call("look"), tool_call("look", '{"a": 1, "a": 2}', "c2"))]).end()
    assert ended.stop is not None
    assert ended.stop.reason is StopReason.AGENT_ERROR
    assert [call.is_refused for call in ended.tool_calls] == [True, True]


# ── calls through ctx ────────────────────────────────────────────────────────────────────────────


def calling(*batches: int, name: str = "look") -> Callable[[TurnTools], Any]:
    async def answer(tools: TurnTools) -> str:
        for batch in batches:
            await tools.call(name, {"n": batch}, batch)
        return "Done."

    return answer


def test_calls_of_a_batch_form_a_step() -> None:
    (turn,) = Talk([say("one"), LAST], [calling(1, 1, 2)]).end().turns
    assert [len(step.tool_calls) for step in turn.steps] == [2, 1, 0]
    assert (turn.answer, turn.evidence) == ("Done.", CallEvidence.ASKED)
    assert all(call.result == ToolResult(value={"found": 3}) for call in turn.tool_calls)


def test_a_fault_of_the_author_in_a_call_cannot_be_hidden() -> None:
    async def answer(tools: TurnTools) -> str:
        try:
            await tools.call("bare", {}, 1)
        except Exception:
            return "Fine."
        return "Fine."

    ended = Talk([say("one")], [answer]).end()
    assert ended.stop is not None
    assert ended.stop.reason is StopReason.AUTHOR_ERROR
    assert [call.result for call in ended.tool_calls] == [None]


@pytest.mark.parametrize(("count", "is_loop"), [(3, False), (4, True)])
def test_the_number_of_calls_through_ctx(count: int, is_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert simulation.MAX_CONTEXT_CALLS == 1000
    monkeypatch.setattr(simulation, "MAX_CONTEXT_CALLS", 3)
    ended = Talk([say("one"), say("two"), LAST], [calling(*range(count)), calling(0)]).end()
    assert ended.stop is not None
    assert ended.stop.reason is (StopReason.TOOL_LOOP if is_loop else StopReason.USER_DONE)


def test_an_own_tool_of_the_agent_is_recorded() -> None:
    async def own() -> ToolResult:
        return ToolResult(value="mine")

    async def answer(tools: TurnTools) -> str:
        assert tools.record is not None
        await tools.record("private", {"x": 1}, 1, own)
        return "Done."

    (call,) = Talk([say("one"), LAST], [answer], unmocked="passthrough").end().tool_calls
    assert (call.name, call.observed, call.known, call.result) == (
        "private",
        True,
        True,
        ToolResult(value="mine"),
    )


@pytest.mark.parametrize(
    ("unmocked", "answered", "passes"),
    [("error", None, False), ("empty", None, False), ("passthrough", {"look", "wipe", "bare"}, True)],
)
def test_tools_that_the_agent_runs_itself(unmocked: str, answered: set[str] | None, passes: bool) -> None:
    world = Talk([], [], unmocked=unmocked).world
    assert world.answered_tools == answered
    assert (world.is_passthrough("unknown"), world.is_passthrough("look")) == (passes, False)
    assert world.mocked_tools == {"look", "wipe"}
    assert [schema["function"]["name"] for schema in world.schemas] == ["bare"]


def test_asking_for_the_list_of_tools_is_evidence_once() -> None:
    async def answer(tools: TurnTools) -> str:
        tools.list_asked()
        return "Done."

    first, second = Talk([say("one"), say("two"), LAST], [answer, "x"]).end().turns
    assert (first.evidence, second.evidence) == (CallEvidence.ASKED, None)


@pytest.mark.parametrize(
    ("call", "is_intercepted"),
    [
        (ToolCall(name="a", args={}, id="c1"), True),
        (ToolCall(name="a", args={}, id="c2"), False),
        (ToolCall(name="a", args={}), False),
        (ToolCall(name="a", args={}, known=True), True),
    ],
)
def test_calls_that_were_intercepted(call: ToolCall, is_intercepted: bool) -> None:
    world = Talk([], []).world
    world.intercepted_call_ids.update({"c1", ""})
    assert world.is_intercepted(call) is is_intercepted


# ── calls that the agent lists ───────────────────────────────────────────────────────────────────


def listed(*calls: dict[str, Any], results: bool = True, **more: Any) -> ReadReply:
    answers = [{"role": "tool", "tool_call_id": each["id"], "content": "own result"} for each in calls]
    asked = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return ReadReply("Done.", messages=[asked, *(answers if results else [])], **more)


def test_calls_that_the_agent_reports_are_kept_and_not_answered() -> None:
    (turn,) = Talk([say("one"), LAST], [listed(tool_call("own"))]).end().turns
    (call,) = turn.tool_calls
    assert (call.observed, call.result, turn.evidence) == (
        True,
        ToolResult(value="own result"),
        CallEvidence.REPORTED,
    )
    assert turn.answer == "Done."


def test_calls_of_its_own_are_stronger_evidence_than_a_request() -> None:
    (turn,) = Talk([say("one"), LAST], [asks(tool_call("look")), listed(tool_call("own"))]).end().turns
    assert turn.evidence is CallEvidence.REPORTED
    (turn,) = Talk([say("one"), LAST], [listed(tool_call("own"), evidence=CallEvidence.LISTED)]).end().turns
    assert turn.evidence is CallEvidence.LISTED


def test_a_call_that_the_agent_does_not_wait_for_is_given_up() -> None:
    tasks: list[Any] = []

    async def answer(tools: TurnTools) -> str:
        assert tools.record is not None
        tasks.append(asyncio.ensure_future(tools.record("private", {}, 1, anyio.sleep_forever)))
        await asyncio.sleep(0)
        return "Done."

    (call,) = Talk([say("one"), LAST], [answer], unmocked="passthrough").end().tool_calls
    assert (call.given_up, call.result) == (True, None)


def test_a_call_that_is_recorded_and_listed_counts_once() -> None:
    async def answer(tools: TurnTools) -> AgentReply:
        await tools.call("look", {}, 1)
        await tools.call("wipe", {}, 2)
        return listed(tool_call("look"), tool_call("own", call_id="c2"))

    (turn,) = Talk([say("one"), LAST], [answer]).end().turns
    assert [call.name for call in turn.tool_calls] == ["look", "own", "wipe"]
    assert [call.observed for call in turn.tool_calls] == [False, True, False]
    assert turn.tool_calls[0].result == ToolResult(value={"found": 3})
    assert turn.tool_calls[0].id == "c1"


def test_calls_that_no_list_contains_come_first() -> None:
    async def answer(tools: TurnTools) -> AgentReply:
        await tools.call("wipe", {}, 1)
        return listed(tool_call("own"))

    (turn,) = Talk([say("one"), LAST], [answer]).end().turns
    assert [call.name for call in turn.tool_calls] == ["wipe", "own"]


def test_a_call_without_a_result_of_an_agent_that_is_over_is_given_up() -> None:
    (turn,) = Talk([say("one"), LAST], [listed(tool_call("own"), results=False, is_over=True)]).end().turns
    (call,) = turn.tool_calls
    assert (call.given_up, call.result) == (True, None)


def test_content_that_was_not_recognized() -> None:
    strange = ReadReply("Done.", unplaced=("a picture", "a picture", "a sound"))
    talk = Talk([say("one"), LAST], [strange])
    unread: list[str] = []
    talk.world.on_warning = unread.append
    (turn,) = talk.end().turns
    assert turn.unplaced == ("a picture", "a sound")
    assert unread == ["a picture", "a picture", "a sound"]
    talk = Talk([say("one"), LAST], [strange])
    talk.world.sees_all_calls, talk.world.on_warning = True, unread.append
    (turn,) = talk.end().turns
    assert (turn.unplaced, len(unread)) == ((), 3)


def test_a_failure_keeps_what_the_agent_had_reported() -> None:
    failed = AgentError("broke", seen=listed(tool_call("own")))
    ended = Talk([say("one")], [failed]).end()
    assert ended.unfinished is not None
    assert [call.name for call in ended.unfinished.tool_calls] == ["own"]
    requested = AgentError("broke", seen=AgentReply("so far", tool_calls=[tool_call("look")]))
    ended = Talk([say("one")], [requested]).end()
    assert [call.is_refused for call in ended.tool_calls] == [True]


# ── usage and time ───────────────────────────────────────────────────────────────────────────────


def usages(turn: Turn) -> list[tuple[int, bool]]:
    return [(step.usage.calls, step.usage.estimated) for step in turn.steps]


def test_usage_that_was_reported_and_usage_that_is_estimated() -> None:
    reported = AgentReply("Done.", usage={"prompt_tokens": 30, "completion_tokens": 4})
    (turn,) = Talk([say("one"), LAST], [reported]).end().turns
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.estimated) == (30, 4, False)
    (turn,) = Talk([say("one"), LAST], ["Done."]).end().turns
    assert usages(turn) == [(1, True)]
    assert turn.usage.input_tokens > 0
    assert turn.usage.output_tokens > 0
    (turn,) = Talk([say("one"), LAST], [calling(1, 2)]).end().turns
    assert usages(turn) == [(0, True), (0, True), (1, True)]  # one reply, however many steps
    (turn,) = Talk([say("one"), LAST], [AgentReply("Done.", usage={"prompt_tokens": "many"})]).end().turns
    assert (usages(turn), bool(turn.unread_usage)) == ([(1, True)], True)


def test_the_usage_of_a_reply_is_carried_by_its_last_step() -> None:
    async def answer(tools: TurnTools) -> AgentReply:
        await tools.call("look", {}, 1)
        return AgentReply("Done.", usage=SPENT, latency_ms=40)

    (turn,) = Talk([say("one"), LAST], [answer]).end().turns
    assert [step.usage for step in turn.steps] == [Usage(), SPENT]
    assert [step.latency_ms for step in turn.steps] == [0, 40]
    assert turn.latency_ms == 40


def test_the_time_of_a_turn_is_the_sum_of_its_replies() -> None:
    first = AgentReply(None, tool_calls=[tool_call("look")], latency_ms=100)
    (turn,) = Talk([say("one"), LAST], [first, AgentReply("Done.", latency_ms=200)]).end().turns
    assert [step.latency_ms for step in turn.steps] == [100, 200]
    assert 300 <= turn.latency_ms < 400
