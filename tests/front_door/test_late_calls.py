"""What an agent does to a record, and calls that it makes when it has answered or does not wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from agenteval.conversation.simulation import ToolWorld, run_conversation, with_late_calls
from agenteval.core.protocols import AgentReply, TurnTools, UserMove
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import Message, Step, StopReason, ToolCall, ToolResult, Trajectory, Turn
from agenteval.messages.chat import parse_steps, read_tool_call, to_chat_messages
from tests.support.kit import Project, failed_checks

FORBIDDEN = "expect: {tool_calls: {forbidden: [{name: delete_account}]}}"


# ── calls after the answer ───────────────────────────────────────────────────────────────────────

LATE = {
    "task": """
        import asyncio
        kept = []
        async def agent(m, ctx):
            if ctx.turn == 0:
                go = asyncio.Event()
                async def later():
                    await go.wait()
                    await ctx.call_tool("delete_account", {"id": 1})
                kept.extend([go, asyncio.create_task(later())])
            else:
                kept[0].set()
                await kept[1]
            return "ok"
    """,
    "thread": """
        import threading
        kept = []
        def agent(m, ctx):
            if ctx.turn == 0:
                go = threading.Event()
                def later():
                    go.wait()
                    ctx.call_tool_sync("delete_account", {"id": 1})
                kept.extend([go, threading.Thread(target=later)])
                kept[1].start()
            else:
                kept[0].set()
                kept[1].join()
            return "ok"
    """,
}


@pytest.mark.parametrize("code", LATE.values(), ids=LATE)
def test_a_call_after_the_answer_belongs_to_the_turn_in_which_it_comes(project: Project, code: str) -> None:
    project.config()
    project.write("agent.py", code)
    tools = "tools: {delete_account: {returns: 1}}"
    project.scenarios(f"scenarios: [{{id: a, turns: [x, y], {tools}, {FORBIDDEN}}}]")
    assert project.run().code == 1
    sample = project.sample()
    assert failed_checks(sample) == {(None, "tool_calls")}
    assert [len(turn["tool_calls"]) for turn in sample["turns"]] == [0, 1]
    assert [turn["agent"] for turn in sample["turns"]] == ["ok", "ok"]


class Talk:
    """A user and an agent in one. ``late``: before which messages of the user (from 0) it calls a tool by
    what it was given for its first turn."""

    def __init__(self, turns: int, *late: int, tool: str = "t") -> None:
        self.turns, self.late, self.tool = turns, late, tool
        self.call: Any = None
        scenario = Scenario(id="s", name="s", tools={"t": {"returns": 1}})
        sample = Sample(key=SampleKey(scenario="s", agent="a"), scenario=scenario)
        self.world = ToolWorld(sample, _no_function)
        self.growing = run_conversation(sample, user=self, make_agent=lambda: self, world=self.world)

    async def next(self, trajectory: Trajectory) -> UserMove:
        if len(trajectory.turns) in self.late:
            await self.call(self.tool, {}, 7)
        over = len(trajectory.turns) == self.turns
        return UserMove(None if over else "go on", stop=StopReason.USER_DONE if over else None)

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        self.call = self.call or tools.call
        return AgentReply("ok")

    async def ended(self) -> Trajectory:
        return [trajectory async for trajectory in self.growing][-1]


async def _no_function(*_: Any) -> Any:
    raise AssertionError


@pytest.mark.parametrize(("turns", "calls", "fault"), [(2, [0, 1], None), (1, [0], "agent")])
def test_a_call_between_turns_is_of_the_next_and_after_the_last_a_fault(
    turns: int, calls: list[int], fault: str | None
) -> None:
    ended = anyio.run(Talk(turns, 1).ended)
    assert [len(turn.tool_calls) for turn in ended.turns] == calls
    assert [call.name for call in ended.tool_calls] == ["t"]
    assert [turn.answer for turn in ended.turns] == ["ok"] * turns
    assert ended.stop
    assert ended.stop.fault == fault
    assert fault is None or "'t'" in ended.stop.detail


def test_a_call_while_judges_are_at_work_is_the_agents_fault() -> None:
    async def main() -> None:
        talk = Talk(1)
        ended = await talk.ended()
        assert ended.stop
        assert ended.stop.fault is None
        await talk.call("t", {}, 1)
        late = with_late_calls(ended, talk.world)
        assert late.stop
        assert late.stop.fault == "agent"
        assert with_late_calls(late, talk.world) == late

    anyio.run(main)


def test_a_call_when_all_is_over_is_ended_quietly() -> None:
    async def main() -> None:
        talk, late = Talk(1), list[str]()
        await talk.ended()
        talk.world.rounds, talk.world.on_late_call = None, late.append
        with pytest.raises(asyncio.CancelledError):
            await talk.call("t", {}, 1)
        assert late == ["t"]

    anyio.run(main)


def test_a_conversations_context_is_of_no_use_in_another(project: Project) -> None:
    project.config("concurrency: 1\n")
    project.agent(
        "kept = []\ndef agent(m, ctx):\n    kept.append(ctx)\n    return kept[0].call_tool_sync('t')"
    )
    project.scenarios("defaults: {tools: {t: {returns: hi}}}\ncases: [{id: a, input: x}, {id: b, input: x}]")
    assert project.run().code == 1
    samples = [project.sample(name) for name in "ab"]
    assert [each["verdict"] for each in samples] == ["passed", "failed"]
    assert samples[1]["stop"] == "agent_error"


def test_a_call_that_the_agent_gives_up_differs_from_one_that_returned_null(project: Project) -> None:
    project.config()
    project.write(
        "agent.py",
        """
        import asyncio
        async def agent(m, ctx):
            call = asyncio.create_task(ctx.call_tool("slow"))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            kept = asyncio.create_task(ctx.call_tool("slow", {"left": True}))
            await asyncio.sleep(0)
            await ctx.call_tool("null")
            return "ok"
    """,
    )
    project.write("scenarios/k.py", "import asyncio\nasync def slow(args): await asyncio.Event().wait()\n")
    tools = "{slow: {python: 'k.py:slow'}, 'null': {returns: null}}"
    project.scenarios(f"scenarios: [{{id: a, turns: [x], checks: none, tools: {tools}}}]")
    assert project.run().code == 0
    (turn,) = project.sample()["turns"]
    has_error = {(call["name"], *call["args"]): bool(call.get("error")) for call in turn["tool_calls"]}
    assert has_error == {("slow",): True, ("slow", "left"): True, ("null",): False}


# ── what is done to a record afterwards ──────────────────────────────────────────────────────────


PAYS_TWICE = """
def agent(m, ctx):
    args = {"amount": 5000, "to": ["b"]}
    ctx.call_tool_sync("pay", args)
    args["to"].append("c")
    args.clear()
    ctx.call_tool_sync("pay", {"amount": 1, "to": []})
    return "ok"
"""
PAY = """
kept = {"paid": []}
def pay(args):
    kept["paid"].append(args.pop("amount"))
    args["to"].clear()
    return kept
"""


def test_a_mock_may_change_its_arguments_and_its_results(project: Project) -> None:
    project.config()
    project.write("agent.py", PAYS_TWICE)
    project.write("scenarios/k.py", PAY)
    forbidden = "{tool_calls: {forbidden: [{name: pay, args: {amount: 5000, to: [b]}}]}}"
    project.scenarios(f"{{id: a, turns: [x], tools: {{pay: {{python: 'k.py:pay'}}}}, expect: {forbidden}}}")
    assert project.run().code == 1
    first, second = project.sample()["turns"][0]["tool_calls"]
    assert (first["args"], first["result"]) == ({"amount": 5000, "to": ["b"]}, {"paid": [5000]})
    assert (second["args"], second["result"]) == ({"amount": 1, "to": []}, {"paid": [5000, 1]})


def test_a_metric_may_change_what_it_is_given(project: Project) -> None:
    project.config("metrics: [n]\ncustom_metrics: ['m.py:N']\n")
    project.agent("def agent(m, ctx): return str(ctx.call_tool_sync('pay', {'amount': 5000}))")
    project.write(
        "m.py",
        """
        from agenteval import QuantitativeMetric, QuantResult
        class N(QuantitativeMetric):
            name = "n"
            def score(self, input):
                input.tool_calls[0].args.clear()
                input.trajectory.turns[0].tool_calls[0].args.clear()
                return QuantResult(3)
        """,
    )
    forbidden = "{forbidden: [{name: pay, args: {amount: 5000}}]}"
    rest = f"tools: {{pay: {{returns: 1}}}}, expect: {{tool_calls: {forbidden}}}"
    project.scenarios(f"scenarios: [{{id: a, turns: [x, y], {rest}}}]")
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "tool_calls")}


def test_an_agent_may_change_its_messages_and_what_it_returned() -> None:
    call = ToolCall(name="t", args={"x": [1]}, extra={"of": ["call"]})
    turn = Turn(user="x", steps=(Step(tool_calls=(call,)), Step(text="hi", extra={"of": ["step"]})))
    _, asks, _, answers = to_chat_messages([turn])
    asks["tool_calls"][0]["of"].clear()
    answers["of"].clear()
    assert (call.extra, turn.steps[1].extra) == ({"of": ["call"]}, {"of": ["step"]})
    read = read_tool_call(call)
    assert call.args
    call.args["x"].clear()
    assert read.args == {"x": [1]}


# ── results that the agent reports itself ────────────────────────────────────────────────────────

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def result_of(content: Any) -> Any:
    asks = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": "{}"}}]}
    (step,) = parse_steps([asks, {"role": "tool", "tool_call_id": "1", "content": content}])
    return step.tool_calls[0].result


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ({"error": "x"}, {"error": "x"}),
        ([1, {"a": 2}], [1, {"a": 2}]),
        (["BK-1", "BK-2"], ["BK-1", "BK-2"]),
        ([{"type": "hotel", "id": 1}], [{"type": "hotel", "id": 1}]),
        ([{"text": "good", "stars": 5}], [{"text": "good", "stars": 5}]),
        ([], []),
        (5, 5),
        (True, True),
        (None, None),
        ("text", "text"),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}], "a"),
        (["a", {"text": "b"}], "ab"),
    ],
)
def test_a_tool_message_may_hold_any_value(content: Any, value: Any) -> None:
    assert result_of(content) == ToolResult(value=value)


@pytest.mark.parametrize(("content", "kind"), [(float("nan"), "float"), (ENDLESS, "list")])
def test_a_value_that_is_not_json_is_kept_as_its_kind(content: Any, kind: str) -> None:
    result = result_of(content)
    assert isinstance(result, ToolResult)
    assert kind in str(result.value)
    assert "JSON" in str(result.value)
