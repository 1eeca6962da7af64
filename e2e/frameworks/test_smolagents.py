"""Agents of smolagents as they are, against the real package. No real tool may leave its mark.

``.ci/frameworks.py smolagents`` makes the environments, oldest and newest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("smolagents")

from smolagents import ChatMessage, CodeAgent, Model, Tool, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage
from smolagents.utils import AgentGenerationError

from agenteval.agentside.frameworks.seam import Refused
from agenteval.agentside.frameworks.smolagents import FRAMEWORK
from agenteval.agentside.world import THREAD_CONTEXT_REMEDY, World
from e2e.frameworks.talking import (
    RAN,
    Scenario,
    Talk,
    answer,
    attempted,
    calls,
    failed,
    made,
    replies,
    say,
    saying,
)


@pytest.fixture(autouse=True)
def no_real_tool_runs() -> Any:
    RAN.clear()
    yield
    assert RAN == []


class Turn:
    """What the model sees: what was said last, in which turn, and what it observed since."""

    def __init__(self, messages: list[Any]) -> None:
        texts = []
        for message in messages:
            content = message.content if hasattr(message, "content") else message["content"]
            texts.append(
                content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            )
        tasks = [at for at, text in enumerate(texts) if text.startswith("New task:")]
        self.said, self.turn, self.all = texts[tasks[-1]].split("\n")[-1], len(tasks), texts
        since = texts[tasks[-1] + 1 :]
        self.seen = [each for each in since if "Observation:" in each or "Error:" in each]


class Scripted(Model):
    """Says what a function of the turn says: code, or calls."""

    def __init__(self, says: Callable[[Turn], Any]) -> None:
        super().__init__(model_id="scripted")
        self.says = says

    def generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatMessage:
        said = self.says(Turn(messages))
        is_text = isinstance(said, str)
        message = ChatMessage(
            role=MessageRole.ASSISTANT,
            content=said if is_text else None,
            tool_calls=None if is_text else [_call(len(messages), at, each) for at, each in enumerate(said)],
        )
        message.token_usage = TokenUsage(input_tokens=10, output_tokens=2)
        return message


def _call(count: int, at: int, asked: tuple[str, dict[str, Any]]) -> ChatMessageToolCall:
    function = ChatMessageToolCallFunction(name=asked[0], arguments=asked[1])
    return ChatMessageToolCall(id=f"c{count}-{at}", type="function", function=function)


def final(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [("final_answer", {"answer": text})]


def calls_then_tells(*names: str) -> Callable[[Turn], Any]:
    def says(turn: Turn) -> Any:
        if turn.seen:
            return final(f"{turn.turn}: {turn.seen[-1].partition('Observation:')[2].strip()}")
        return [(name, {"key": turn.said}) for name in names]

    return says


def codes(turn: Turn) -> str:
    if turn.seen:
        return f"<code>\nfinal_answer('{turn.turn}: ' + str(found))\n</code>"
    return f"<code>\nfound = look('{turn.said}')\nprint(found)\n</code>"


@tool
def look(key: str) -> str:
    """Looks something up.

    Args:
        key: What it is about.
    """
    RAN.append("look")
    return "real look"


class Odd(Tool):
    """One with a setup, and called in a way of its own."""

    name = "odd"
    description = "Odd."
    inputs = {
        "key": {"type": "string", "description": "k"},
        "count": {"type": "integer", "description": "n", "nullable": True},
    }
    output_type = "object"

    def setup(self) -> None:
        RAN.append("setup")

    def __call__(self, *args: Any, **named: Any) -> Any:
        RAN.append("odd")

    def forward(self, key: str, count: int | None = None) -> Any:
        RAN.append("odd")


def calling(says: Callable[[Turn], Any], *tools: Any, **more: Any) -> ToolCallingAgent:
    return ToolCallingAgent([*tools], Scripted(says), **more)


@pytest.mark.parametrize("kind", ["calls", "code"])
def test_two_conversations_at_once_have_their_own_tools_and_their_own_history(kind: str) -> None:
    one = calling(calls_then_tells("look"), look) if kind == "calls" else CodeAgent([look], Scripted(codes))
    scenarios = Scenario(look="x"), Scenario(look="y")

    async def both() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(saying(FRAMEWORK, one, each, "a", "b") for each in scenarios))

    first, second = asyncio.run(both())
    assert [answer(each) for each in first] == ["1: x", "2: x"]
    assert [answer(each) for each in second] == ["1: y", "2: y"]
    assert calls(second[1]) == [("look", {"key": "b"}, "y")]
    assert scenarios[0].seen == [("look", {"key": "a"}), ("look", {"key": "b"})]
    assert [each["usage"] for each in first] == [{"requests": 2, "input_tokens": 20, "output_tokens": 4}] * 2
    assert one.memory.steps == []  # the author's object is as it was
    assert one.monitor.total_input_token_count == 0


def test_parallel_calls_are_one_step_and_a_class_of_the_authors_is_not_run() -> None:
    one = calling(calls_then_tells("look", "odd"), look, Odd())
    (reply,) = say(FRAMEWORK, one, Scenario(look="x", odd={"n": 1}), "a")
    assert [len(each.get("tool_calls", ())) for each in reply["messages"]] == [2, 0, 0, 0]
    assert calls(reply) == [("look", {"key": "a"}, "x"), ("odd", {"key": "a"}, '{"n": 1}')]


def test_arguments_by_place_have_their_names() -> None:
    one = CodeAgent([Odd()], Scripted(lambda turn: "<code>\nfinal_answer(odd('k', 2)['n'])\n</code>"))
    (reply,) = say(FRAMEWORK, one, Scenario(odd={"n": 7}), "a")
    assert (answer(reply), calls(reply)) == ("7", [("odd", {"key": "k", "count": 2}, '{"n": 7}')])


def test_an_error_reaches_the_model() -> None:
    def says(turn: Turn) -> Any:
        return final(turn.seen[-1]) if turn.seen else [("look", {"key": "a"})]

    (reply,) = say(FRAMEWORK, calling(says, look), Scenario(look=failed("sold out")), "a")
    assert "RuntimeError: sold out" in answer(reply)
    assert calls(reply) == [("look", {"key": "a"}, "sold out")]


@pytest.mark.parametrize("kind", ["calls", "code"])
def test_a_tool_that_is_left_to_the_agent_runs(kind: str) -> None:
    one = calling(calls_then_tells("look"), look) if kind == "calls" else CodeAgent([look], Scripted(codes))
    assert answer(say(FRAMEWORK, one, Scenario(own=["look"]), "a")[0]) == "1: real look"
    assert RAN == ["look"]
    RAN.clear()


@pytest.mark.parametrize("kind", ["calls", "code"])
def test_a_managed_agent_runs_and_its_tools_are_answered(kind: str) -> None:
    below = calling(
        lambda turn: final("found " + turn.seen[-1]) if turn.seen else [("look", {"key": "k"})], look
    )
    below.name, below.description = "below", "Below."

    def says(turn: Turn) -> Any:
        if kind == "code":
            return "<code>\nfinal_answer(below(task='t'))\n</code>"
        return final(turn.seen[-1]) if turn.seen else [("below", {"task": "t", "additional_args": {}})]

    top = (
        calling(says, managed_agents=[below])
        if kind == "calls"
        else CodeAgent([], Scripted(says), managed_agents=[below])
    )
    scenario = Scenario(look="x")
    (reply,) = say(FRAMEWORK, top, scenario, "a")
    assert "found Observation:\nx" in answer(reply)
    assert scenario.seen == [("below", "itself"), ("look", {"key": "k"})]
    assert [name for name, _, _ in calls(reply)] == ["below"]
    assert reply["usage"]["requests"] == 3 if kind == "code" else 4
    assert [each.name for each in FRAMEWORK.tools(top)] == ["below", "look"]


def test_a_call_before_a_turn_is_not_run() -> None:
    async def told() -> str:
        talk = Talk(FRAMEWORK, calling(calls_then_tells("look"), look), Scenario())
        await talk.conversation.reply("a")
        return talk.world.take_fault()

    what = "look was called from a thread that agenteval cannot track, and was not run"
    assert asyncio.run(told()) == f"{what}; {THREAD_CONTEXT_REMEDY}"


def test_at_the_limit_of_steps_the_last_answer_counts() -> None:
    def says(turn: Turn) -> Any:
        return "So far: nothing." if turn.all[-1].startswith("Based on") else [("look", {"key": "k"})]

    (reply,) = say(FRAMEWORK, calling(says, look, max_steps=2), Scenario(look="x"), "a")
    assert answer(reply) == "So far: nothing."
    assert len(calls(reply)) == 2


def test_what_a_turn_did_before_it_broke_is_kept() -> None:
    def says(turn: Turn) -> Any:
        if turn.seen:
            raise ZeroDivisionError("boom")
        return [("look", {"key": "k"})]

    with pytest.raises(AgentGenerationError, match="boom") as caught:
        say(FRAMEWORK, calling(says, look), Scenario(look="x"), "a")
    partial = caught.value.agenteval_partial
    assert calls(partial) == [("look", {"key": "k"}, "x")]
    assert partial["usage"]["requests"] == 1


def test_deps_are_additional_arguments() -> None:
    one = calling(lambda turn: final(turn.said))
    assert "'shop': 'x'" in answer(say(FRAMEWORK, one, Scenario(), "a", deps={"shop": "x"})[0])
    with pytest.raises(Refused, match=r"dict.*not str"):
        say(FRAMEWORK, one, Scenario(), "a", deps="x")


def test_code_that_runs_elsewhere_is_refused() -> None:
    class Elsewhere:
        def __call__(self, code: str) -> Any: ...

        def send_tools(self, tools: Any) -> None: ...

        def send_variables(self, variables: Any) -> None: ...

    one = CodeAgent([look], Scripted(codes))
    one.python_executor = Elsewhere()
    with pytest.raises(Refused, match="the agent's code and tools run in a Elsewhere"):
        say(FRAMEWORK, one, Scenario(), "a")


def test_what_a_tool_gives_that_there_is_none_of_is_an_error() -> None:
    one = calling(lambda turn: final("sorry") if turn.seen else [("no_such_tool", {"key": "a"})], look)
    (reply,) = say(FRAMEWORK, one, Scenario(look="x"), "a")
    assert [name for name, _, _ in calls(reply)] == ["no_such_tool"]
    assert [each.get("status") for each in reply["messages"] if each["role"] == "tool"] == ["error"]


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    def says(turn: Turn) -> Any:
        return final("done") if turn.seen else [("look", {"key": "secret"})]

    (reply,) = replies(calling(says, look), Scenario(look="x"), "a", deps={"secret": "value"})
    assert (reply["lists_tools"], reply["unplaced"]) == (True, [])
    assert made(reply) == [("look", {"key": "value"})]  # the framework puts in the value of a variable

    class Own(ToolCallingAgent):
        def looks(self) -> str:
            return look("x")

    own = Own([look], Scripted(lambda _: final("done")))
    assert [each["lists_tools"] for each in replies(own, Scenario(), "a")] == [False]


def test_a_call_whose_arguments_do_not_fit_is_attempted() -> None:
    def says(turn: Turn) -> Any:
        return final("done") if turn.seen else [("look", {"key": 5})]

    (reply,) = replies(calling(says, look), Scenario(look="x"), "a")
    assert (made(reply), attempted(reply)) == ([], ["look"])


def test_code_that_imports_may_call_what_nobody_sees() -> None:
    def says(turn: Turn) -> str:
        imports = "import math\nimport os\n" if turn.turn == 2 else ""
        return f"<code>\n{imports}final_answer('done')\n</code>"

    agent = CodeAgent([look], Scripted(says), additional_authorized_imports=["os"])
    before, importing, after = replies(agent, Scenario(), "a", "b", "c")
    noted = ["code written by the agent imported 'os', and its calls there are not recorded"]
    assert (before["unplaced"], importing["unplaced"], after["unplaced"]) == ([], noted, noted)


# ── whoever calls the tools ──────────────────────────────────────────────────────────────────────


def in_turn(scenario: Scenario, function: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """What a function gives that runs within a turn, and the calls that reached the scenario."""
    world = World()
    try:
        with world.turn(scenario):
            return function(), scenario.seen
    finally:
        world.close()


def in_a_thread(work: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("kind", ["calls", "code"])
@pytest.mark.parametrize("is_in_a_thread", [False, True])
def test_the_tools_of_an_agent_that_a_function_runs_are_answered(kind: str, is_in_a_thread: bool) -> None:
    def run() -> Any:
        one = (
            calling(calls_then_tells("look"), look) if kind == "calls" else CodeAgent([look], Scripted(codes))
        )
        return one.run("a")

    function = (lambda: in_a_thread(run)) if is_in_a_thread else run
    assert in_turn(Scenario(look="x"), function) == ("1: x", [("look", {"key": "a"})])


def test_calls_at_once_are_recorded_once_each() -> None:
    def says(turn: Turn) -> Any:
        return final("done") if turn.seen else [("look", {"key": str(n)}) for n in range(6)]

    _, seen = in_turn(Scenario(look="x"), lambda: calling(says, look).run("a"))
    assert sorted(args["key"] for _, args in seen) == list("012345")


def test_a_tool_that_is_called_by_hand_is_answered() -> None:
    assert in_turn(Scenario(look="x"), lambda: look("a")) == ("x", [("look", {"key": "a"})])
    assert in_turn(Scenario(look="x"), lambda: look({"key": "a"})) == ("x", [("look", {"key": "a"})])
    with pytest.raises(RuntimeError, match="sold out"):
        in_turn(Scenario(look=failed("sold out")), lambda: look(key="a"))
    with pytest.raises(RuntimeError, match="Argument id is not in the tool's input schema"):
        in_turn(Scenario(look="x"), lambda: look(id="a"))
    with pytest.raises(RuntimeError, match="Argument key is required"):
        in_turn(Scenario(look="x"), look)
    assert RAN == []
    assert look("a") == "real look"
    RAN.clear()


def test_a_class_that_calls_that_of_its_base_is_met_once() -> None:
    class Twice(type(look)):  # type: ignore[misc]
        def __call__(self, *args: Any, **named: Any) -> Any:
            return super().__call__(*args, **named)

    twice = Twice()
    scenario = Scenario(own=["look"])
    assert in_turn(scenario, lambda: twice("a"))[0] == "real look"
    assert (scenario.left, RAN) == (["look"], ["look"])
    RAN.clear()


def test_code_whose_arguments_do_not_fit_is_told_so() -> None:
    def says(turn: Turn) -> str:
        code = f"final_answer({turn.seen[-1]!r})" if turn.seen else "look(id='a')"
        return f"<code>\n{code}\n</code>"

    scenario = Scenario(look="x")
    (reply,) = say(FRAMEWORK, CodeAgent([look], Scripted(says)), scenario, "a")
    assert "Argument id is not in the tool's input schema" in answer(reply)
    assert (scenario.seen, calls(reply)) == ([], [])


def test_a_managed_agent_can_be_mocked() -> None:
    below = calling(calls_then_tells("look"), look)
    below.name, below.description = "below", "Below."
    top = CodeAgent(
        [], Scripted(lambda _: "<code>\nfinal_answer(below('t'))\n</code>"), managed_agents=[below]
    )
    scenario = Scenario(below="mocked")
    (reply,) = say(FRAMEWORK, top, scenario, "a")
    assert (answer(reply), scenario.seen) == ("mocked", [("below", {"task": "t"})])
    assert calls(reply) == [("below", {"task": "t"}, "mocked")]


def test_what_a_tool_left_to_the_agent_asks_is_answered() -> None:
    @tool
    def ask(key: str) -> str:
        """Asks another agent.

        Args:
            key: What it is about.
        """
        return str(calling(calls_then_tells("look"), look).run(key))

    scenario = Scenario(own=["ask"], look="x")
    (reply,) = replies(calling(calls_then_tells("ask"), ask), scenario, "a")
    assert answer(reply) == "1: 1: x"
    assert (scenario.left, scenario.seen, made(reply)) == (
        ["ask"],
        [("look", {"key": "a"})],
        [("ask", {"key": "a"})],
    )
