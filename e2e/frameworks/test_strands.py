"""Agents of Strands as they are, against the real package. No real tool may leave its mark.

``.ci/frameworks.py strands`` makes the environments, oldest and newest."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("strands")

from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeInvocationEvent, BeforeToolCallEvent, HookProvider
from strands.models import Model
from strands.multiagent import Swarm
from strands.session.file_session_manager import FileSessionManager
from strands.types.tools import AgentTool

from agenteval.agentside.frameworks import recognize_object
from agenteval.agentside.frameworks.seam import Refused, Waits
from agenteval.agentside.frameworks.strands import FRAMEWORK
from agenteval.agentside.targets.target_resolution import resolve_target
from agenteval.agentside.targets.target_session import TargetSession
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
    used,
)

newest = pytest.mark.skipif(not hasattr(Agent, "as_tool"), reason="needs a recent release")


@pytest.fixture(autouse=True)
def no_real_tool_runs() -> Any:
    RAN.clear()
    yield
    assert RAN == []


class Turn:
    """What the model sees: what was said last, in which turn, and what tools gave for it."""

    def __init__(self, messages: list[Any]) -> None:
        texts = [m for m in messages if m["role"] == "user" and "text" in m["content"][0]]
        self.said, self.turn, self.count = texts[-1]["content"][0]["text"], len(texts), len(messages)
        results = [block["toolResult"] for block in messages[-1]["content"] if "toolResult" in block]
        self.results = [f"{each['status']} {each['content'][0]['text'].strip()}" for each in results]


class Scripted(Model):
    """Says what a function of the turn says: a text, or calls."""

    def __init__(self, says: Callable[[Turn], Any]) -> None:
        self.says = says

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[Any], *_: Any, **__: Any) -> Any:
        turn = Turn(messages)
        said = self.says(turn)
        yield {"messageStart": {"role": "assistant"}}
        for at, part in enumerate([said] if isinstance(said, str) else said):
            is_text = isinstance(part, str)
            use = {} if is_text else {"toolUse": {"name": part[0], "toolUseId": f"t{turn.count}-{at}"}}
            delta = {"text": part} if is_text else {"toolUse": {"input": json.dumps(part[1])}}
            yield {"contentBlockStart": {"start": use}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(said, str) else "tool_use"}}
        usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def calls_then_tells(*names: str) -> Callable[[Turn], Any]:
    def says(turn: Turn) -> Any:
        if turn.results:
            return f"{turn.turn}: {' and '.join(turn.results)}"
        return [(name, {"key": turn.said}) for name in names]

    return says


def agent(says: Callable[[Turn], Any], *tools: Any, **more: Any) -> Agent:
    return Agent(model=Scripted(says), tools=[*tools], callback_handler=None, **more)


@tool
def look(key: str) -> str:
    """Looks something up."""
    RAN.append("look")
    return "real look"


@tool
def breaks(key: str) -> str:
    """Breaks."""
    RAN.append("breaks")
    raise ValueError("no such thing")


def test_two_conversations_at_once_have_their_own_tools_and_their_own_history() -> None:
    one = agent(calls_then_tells("look"), look, system_prompt="Be kind.", name="shop")
    scenarios = Scenario(look="x"), Scenario(look={"y": 1})

    async def both() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(saying(FRAMEWORK, one, each, "a", "b") for each in scenarios))

    first, second = asyncio.run(both())
    assert [answer(each) for each in first] == ["1: success x", "2: success x"]
    assert [answer(each) for each in second] == ['1: success {"y": 1}', '2: success {"y": 1}']
    assert calls(second[1]) == [("look", {"key": "b"}, '{"y": 1}')]
    assert scenarios[0].seen == [("look", {"key": "a"}), ("look", {"key": "b"})]
    assert [used(each) for each in first] == [(2, 20, 4, 0)] * 2  # of each turn, not of all
    assert [each["agent"] for each in first] == ["shop"] * 2
    assert one.messages == []
    assert [(each.name, each.description) for each in FRAMEWORK.tools(one)] == [
        ("look", "Looks something up.")
    ]


def test_parallel_calls_are_one_step() -> None:
    one = agent(lambda turn: calls_then_tells("look", "breaks")(turn), look, breaks)
    (reply,) = say(FRAMEWORK, one, Scenario(look="1", breaks="2"), "a")
    assert [len(each.get("tool_calls", ())) for each in reply["messages"]] == [2, 0, 0, 0]
    assert answer(reply) == "1: success 1 and success 2"


def test_an_error_reaches_the_model_as_one() -> None:
    (reply,) = say(FRAMEWORK, agent(calls_then_tells("look"), look), Scenario(look=failed("sold out")), "a")
    assert answer(reply) == "1: error sold out"


def test_a_tool_that_is_left_to_the_agent_runs() -> None:
    one = agent(lambda turn: calls_then_tells(turn.said)(turn), look, breaks)
    replies = say(FRAMEWORK, one, Scenario(own=["look", "breaks"]), "look", "breaks")
    assert [answer(each) for each in replies] == ["1: success real look", "2: error Error: no such thing"]
    assert RAN == ["look", "breaks"]
    RAN.clear()


def test_hooks_are_carried_over_for_each_conversation_and_what_they_add_is_answered() -> None:
    class Counts(HookProvider):
        def __init__(self) -> None:
            self.count = 0

        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(BeforeInvocationEvent, self.adds)
            registry.add_callback(BeforeToolCallEvent, self.counts)

        def adds(self, event: Any) -> None:
            if "look" not in event.agent.tool_registry.registry:
                event.agent.tool_registry.register_tool(look)

        def counts(self, event: Any) -> None:
            self.count += 1
            event.tool_use["input"] = {"key": str(self.count)}

    one = agent(calls_then_tells("look"), hooks=[Counts()])
    for _ in range(2):
        scenario = Scenario(look="x")
        assert answer(say(FRAMEWORK, one, scenario, "a", "b")[1]) == "2: success x"
        assert scenario.seen == [("look", {"key": "1"}), ("look", {"key": "2"})]


def in_a_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("is_in_a_thread", [False, True])
def test_the_tools_of_an_agent_that_a_hook_asks_are_answered(is_in_a_thread: bool) -> None:
    inner = agent(calls_then_tells("look"), look)

    class Asks(HookProvider):
        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(BeforeInvocationEvent, self.asks)

        def asks(self, event: Any) -> None:
            in_a_thread(lambda: inner("b")) if is_in_a_thread else inner("b")

    async def seen(one: Any) -> list[Any]:
        talk = Talk(FRAMEWORK, one, Scenario(look="x"))
        assert answer(await talk.say("a")) == "1: success x"
        await talk.end()
        assert talk.fault == ""
        return talk.scenario.seen

    asking = asyncio.run(seen(agent(calls_then_tells("look"), look, hooks=[Asks()])))
    assert asking == [("look", {"key": "b"}), ("look", {"key": "a"})]
    assert asyncio.run(seen(agent(calls_then_tells("look"), look))) == [("look", {"key": "a"})]


@pytest.mark.parametrize("is_in_a_thread", [False, True])
def test_what_a_tool_left_to_the_agent_asks_is_answered(is_in_a_thread: bool) -> None:
    inner = agent(calls_then_tells("look"), look)

    @tool
    def ask(key: str) -> str:
        """Asks another agent."""
        found: list[str] = []
        ask = lambda: found.append(str(inner(key)).strip())  # noqa: E731
        in_a_thread(ask) if is_in_a_thread else ask()
        return found[0]

    scenario = Scenario(own=["ask"], look="x")
    (reply,) = replies(agent(calls_then_tells("ask"), ask), scenario, "a")
    assert answer(reply) == "1: success 1: success x"
    assert scenario.seen == [("look", {"key": "a"})]
    assert (made(reply), reply["unplaced"]) == ([("ask", {"key": "a"})], [])
    inner("later")  # no conversation is open any more
    assert RAN == ["look"]
    RAN.clear()


def test_a_session_manager_neither_brings_nor_keeps_conversations(tmp_path: Path) -> None:
    def kept() -> list[Path]:
        return [each for each in tmp_path.rglob("*") if each.is_file() and "message" in each.name]

    manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path))
    one = agent(lambda turn: f"{turn.turn}", session_manager=manager)
    one("of the author's")
    before = kept()
    assert before
    for _ in range(2):
        replies = say(FRAMEWORK, one, Scenario(), "a", "b")
        assert [answer(each) for each in replies] == ["1", "2"]
    assert kept() == before


def test_what_an_agent_keeps_between_turns_is_that_of_the_conversation() -> None:
    @tool(context=True)
    def count(tool_context: ToolContext) -> str:
        """Counts."""
        number = (tool_context.agent.state.get("count") or 0) + 1
        tool_context.agent.state.set("count", number)
        return str(number)

    one = agent(lambda turn: turn.results[0] if turn.results else [("count", {})], count, state={"count": 5})
    for _ in range(2):
        replies = say(FRAMEWORK, one, Scenario(own=["count"]), "a", "b")
        assert [answer(each) for each in replies] == ["success 6", "success 7"]
    assert one.state.get("count") == 5


def test_a_class_of_the_authors_stays_one() -> None:
    class Shop(Agent):
        def __init__(self, words: str) -> None:
            super().__init__(model=Scripted(lambda turn: words), callback_handler=None)
            self.words = words

    talk = Talk(FRAMEWORK, Shop("hello"), Scenario())
    assert answer(asyncio.run(talk.say("a"))) == "hello"


@newest
@pytest.mark.parametrize("delegate", [False, True])
def test_an_agent_that_is_a_tool_runs_and_its_tools_are_answered(delegate: bool) -> None:
    below = agent(calls_then_tells("look"), look, name="below", description="Below.")
    top = agent(
        lambda turn: turn.results[0] if turn.results else [("below", {"input": "x"})],
        below.as_tool(delegate=delegate),
    )
    for value in ("1", "2"):
        scenario = Scenario(look=value)
        (reply,) = say(FRAMEWORK, top, scenario, "a")
        said = f"1: success {value}"
        assert answer(reply).strip() == (said if delegate else f"success {said}")
        assert scenario.seen == [("below", "itself"), ("look", {"key": "x"})]
        assert reply["usage"]["requests"] == 3 if delegate else 4
    assert [each.name for each in FRAMEWORK.tools(top)] == ["below", "look"]


@newest
def test_a_structured_answer_is_its_json() -> None:
    class Order(BaseModel):
        id: int

    one = agent(lambda turn: [("Order", {"id": 7})], structured_output_model=Order)
    (reply,) = say(FRAMEWORK, one, Scenario(), "a")
    assert reply["messages"] == [{"role": "assistant", "content": '{"id":7}'}]


@newest
def test_who_is_interrupted_waits() -> None:
    class Asks(HookProvider):
        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(
                BeforeToolCallEvent, lambda event: event.interrupt("approval", reason="sure?")
            )

    with pytest.raises(Waits, match=r"the agent is waiting for human input: approval: sure\?"):
        say(FRAMEWORK, agent(calls_then_tells("look"), look, hooks=[Asks()]), Scenario(look="x"), "a")


def test_what_a_turn_did_before_it_broke_is_kept() -> None:
    def says(turn: Turn) -> Any:
        if turn.results:
            raise ZeroDivisionError("boom")
        return [("look", {"key": "k"})]

    with pytest.raises(Exception, match="boom") as caught:
        say(FRAMEWORK, agent(says, look), Scenario(look="x"), "a")
    partial = caught.value.agenteval_partial  # type: ignore[attr-defined]
    assert calls(partial) == [("look", {"key": "k"}, "x")]


def test_a_call_before_a_turn_is_not_run() -> None:
    async def told() -> str:
        talk = Talk(FRAMEWORK, agent(calls_then_tells("look"), look), Scenario())
        await talk.conversation.reply("a")
        return talk.world.take_fault()

    what = "look was called from a thread that agenteval cannot track, and was not run"
    assert asyncio.run(told()) == f"{what}; {THREAD_CONTEXT_REMEDY}"


def test_deps_are_the_invocation_state() -> None:
    seen: list[Any] = []

    class Looks(HookProvider):
        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(BeforeToolCallEvent, self.looks)

        def looks(self, event: Any) -> None:
            seen.append(event.invocation_state["shop"])

    one = agent(calls_then_tells("look"), look, hooks=[Looks()])
    say(FRAMEWORK, one, Scenario(look="x"), "a", deps={"shop": "s"})
    assert seen == ["s"]
    with pytest.raises(Refused, match=r"dict.*not str"):
        say(FRAMEWORK, one, Scenario(), "a", deps="x")


def test_what_cannot_be_played_is_refused_in_words() -> None:
    swarm = Swarm([agent(lambda turn: "x", name="x")])
    assert FRAMEWORK.matches(swarm)
    with pytest.raises(Refused, match="unsupported Strands Agents target: an object of type Swarm"):
        say(FRAMEWORK, swarm, Scenario(), "a")


@newest
def test_the_tools_of_a_plugin_and_those_that_the_framework_ships_are_answered() -> None:
    from strands.plugins import Plugin
    from strands.vended_tools.http_request import http_request

    class Adds(Plugin):
        name = "adds"

        def init_agent(self, agent: Any) -> None:
            if "look" not in agent.tool_registry.registry:
                agent.tool_registry.register_tool(look)
            agent.add_hook(self.sees, BeforeToolCallEvent)

        def sees(self, event: Any) -> None:
            seen.append(event.tool_use["name"])

    def says(turn: Turn) -> Any:
        if turn.results:
            return f"{turn.turn}: {' and '.join(turn.results)}"
        return [("look", {"key": turn.said}), ("http_request", {"method": "GET", "url": "https://a.example"})]

    seen: list[str] = []
    one = agent(says, http_request, plugins=[Adds()], context_manager="auto")
    assert {each.name for each in FRAMEWORK.tools(one)} == {"look", "http_request"}
    (reply,) = say(FRAMEWORK, one, Scenario(look="x", http_request="y"), "a")
    assert answer(reply) == "1: success x and success y"
    assert sorted(seen) == ["http_request", "look"]


@newest
def test_middleware_is_refused() -> None:
    from strands.middleware.stages import ExecuteToolStage

    one = agent(lambda turn: "x", name="shop")
    one.add_middleware(ExecuteToolStage.Input, lambda context: context)
    with pytest.raises(Refused, match=r"'shop' .*middleware"):
        say(FRAMEWORK, one, Scenario(), "a")


def test_what_a_tool_gives_that_there_is_none_of_is_an_error() -> None:
    (reply,) = say(FRAMEWORK, agent(calls_then_tells("no_such_tool", "look"), look), Scenario(look="x"), "a")
    assert [name for name, _, _ in calls(reply)] == ["no_such_tool", "look"]
    assert [each.get("status") for each in reply["messages"] if each["role"] == "tool"] == ["error", None]


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    (reply,) = replies(agent(calls_then_tells("look"), look), Scenario(look="x"), "a")
    assert (reply["lists_tools"], reply["unplaced"], made(reply)) == (True, [], [("look", {"key": "a"})])

    class Own(Agent):
        def looks(self) -> str:
            return "x"

    own = Own(model=Scripted(lambda _: "hi"), tools=[look], callback_handler=None)
    assert [each["lists_tools"] for each in replies(own, Scenario(), "a")] == [False]


def test_a_call_that_a_hook_cancels_is_attempted() -> None:
    def cancels(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = "not now"

    one = agent(calls_then_tells("look"), look)
    one.hooks.add_callback(BeforeToolCallEvent, cancels)
    (reply,) = replies(one, Scenario(look="x"), "a")
    assert (made(reply), attempted(reply)) == ([], ["look"])


def test_what_runs_at_the_provider_is_noted_of_each_turn() -> None:
    class Searching(Scripted):
        config: Any = {"params": {"tools": [{"type": "web_search"}]}}

    one = Agent(model=Searching(lambda _: "hi"), tools=[look], callback_handler=None)
    (reply,) = replies(one, Scenario(), "a")
    assert reply["unplaced"] == ["'web_search' runs at the provider, which does not report its calls"]


# ── whoever calls the tools ──────────────────────────────────────────────────────────────────────


class InTurn(NamedTuple):
    """What came of a function that ran within a turn."""

    value: Any
    seen: list[tuple[str, Any]]
    fault: str


def in_turn(scenario: Scenario, function: Callable[[], Any]) -> InTurn:
    async def play() -> InTurn:
        world = World()
        try:
            with world.turn(scenario):
                value = function()
                value = await value if inspect.isawaitable(value) else value
        finally:
            world.close()
        return InTurn(value, scenario.seen, world.take_fault())

    return asyncio.run(play())


@tool
async def later(key: str) -> str:
    """Looks something up, later."""
    RAN.append("later")
    return "real later"


def test_a_decorated_tool_that_is_called_by_hand_is_answered_where_the_scenario_mocks_it() -> None:
    assert in_turn(Scenario(look={"y": 1}), lambda: look("a")) == ({"y": 1}, [("look", {"key": "a"})], "")
    assert in_turn(Scenario(later="x"), lambda: later(key="a")) == ("x", [("later", {"key": "a"})], "")
    with pytest.raises(RuntimeError, match="sold out"):
        in_turn(Scenario(look=failed("sold out")), lambda: look("a"))
    assert RAN == []
    assert in_turn(Scenario(), lambda: look("a")) == ("real look", [("look", "itself")], "")
    assert in_turn(Scenario(), lambda: later("a")) == ("real later", [("later", "itself")], "")
    assert (look("a"), RAN) == ("real look", ["look", "later", "look"])
    RAN.clear()


def test_a_decorated_tool_that_is_the_target_is_no_call() -> None:
    played = TargetSession(resolve_target(look, "shop.py:look", recognize_object))
    scenario = Scenario(look="x")

    async def play() -> Any:
        with played.world.turn(scenario):
            value = played.entry()([{"role": "user", "content": "a"}], None)
            return await value if inspect.isawaitable(value) else value

    assert asyncio.run(play()) == "real look"
    assert (scenario.seen, RAN) == ([], ["look"])
    RAN.clear()


def test_a_class_of_tools_of_the_authors_is_met_once_and_need_not_be_an_async_generator_function() -> None:
    class Base(AgentTool):
        tool_name, tool_type = "fetch", "python"
        tool_spec: Any = {"name": "fetch", "description": "Fetches.", "inputSchema": {"json": {}}}

        async def stream(self, tool_use: Any, invocation_state: Any, **_: Any) -> Any:
            RAN.append("fetch")
            yield {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": "real"}]}

    class Fetch(Base):
        def stream(self, tool_use: Any, invocation_state: Any, **named: Any) -> Any:
            return super().stream(tool_use, invocation_state, **named)

    one = agent(calls_then_tells("fetch"), Fetch())
    scenario = Scenario(fetch="x")
    assert answer(say(FRAMEWORK, one, scenario, "a")[0]) == "1: success x"
    assert (scenario.seen, RAN) == ([("fetch", {"key": "a"})], [])
    (reply,) = replies(one, Scenario(own=["fetch"]), "a")
    assert (answer(reply), made(reply), RAN) == ("1: success real", [("fetch", {"key": "a"})], ["fetch"])
    RAN.clear()


@pytest.mark.parametrize("own", [[], ["look"]])
def test_arguments_that_do_not_fit_are_refused_as_the_framework_does_it(own: list[str]) -> None:
    def says(turn: Turn) -> Any:
        return turn.results[0] if turn.results else [("look", {"id": "a"})]

    real = str(agent(says, look)("a")).strip()
    scenario = Scenario(own=own, look="x")
    (reply,) = replies(agent(says, look), scenario, "a")
    assert answer(reply) == real
    assert real.startswith("error Error: Validation failed for input parameters: 1 validation error for Look")
    assert (scenario.seen, attempted(reply), RAN) == ([], ["look"], [])


def test_an_injected_context_is_no_argument() -> None:
    @tool(context="shop")
    def find(key: str, shop: ToolContext, agent: Any = None, limit: int = 3) -> str:
        """Finds."""
        RAN.append("find")
        return "real"

    scenario = Scenario(find="x")
    assert answer(say(FRAMEWORK, agent(calls_then_tells("find"), find), scenario, "a")[0]) == "1: success x"
    assert scenario.seen == [("find", {"key": "a"})]
    one = agent(calls_then_tells("find"), find)
    found = in_turn(Scenario(find="x"), lambda: one.tool.find(key="b", record_direct_tool_call=False))
    assert (found.value["content"], found.seen) == ([{"text": "x"}], [("find", {"key": "b"})])


@newest
def test_an_agent_that_is_a_tool_can_be_mocked() -> None:
    below = agent(calls_then_tells("look"), look, name="below", description="Below.")
    top = agent(
        lambda turn: turn.results[0] if turn.results else [("below", {"input": "x"})], below.as_tool()
    )
    scenario = Scenario(below="y")
    assert answer(say(FRAMEWORK, top, scenario, "a")[0]) == "success y"
    assert scenario.seen == [("below", {"input": "x"})]


def test_the_tools_of_a_swarm_that_a_function_runs_are_answered_and_its_hand_offs_are_no_calls() -> None:
    def hands_over(turn: Turn) -> Any:
        to = {"agent_name": "second", "message": "please"}
        return "done" if turn.results else [("handoff_to_agent", to)]

    first = agent(hands_over, name="first")
    second = agent(lambda turn: "done" if turn.results else [("look", {"key": "k"})], look, name="second")
    found = in_turn(Scenario(look="x"), lambda: Swarm([first, second])("a"))
    assert [each.node_id for each in found.value.node_history] == ["first", "second"]
    assert (found.seen, found.fault, RAN) == ([("look", {"key": "k"})], "", [])


SERVER = """
import os
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # mcp 1
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("shop", log_level="ERROR")

@server.tool()
def fetch(key: str) -> str:
    with open(os.environ["RAN"], "a") as file:
        file.write("fetch")
    return "real fetch"

server.run("stdio")
"""


def test_a_tool_of_an_mcp_server_is_met_once(tmp_path: Path) -> None:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client
    from strands.tools.mcp import MCPClient

    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    mark, env = tmp_path / "ran", {**os.environ, "RAN": str(tmp_path / "ran")}
    server = StdioServerParameters(command=sys.executable, args=[str(tmp_path / "server.py")], env=env)
    with MCPClient(lambda: stdio_client(server)) as client:
        one = agent(calls_then_tells("fetch"), *client.list_tools_sync())
        scenario = Scenario(fetch="x")
        assert answer(say(FRAMEWORK, one, scenario, "a")[0]) == "1: success x"
        assert (scenario.seen, mark.exists()) == ([("fetch", {"key": "a"})], False)
        scenario = Scenario(own=["fetch"])
        (reply,) = replies(one, scenario, "a")
        assert (answer(reply), made(reply)) == ("1: success real fetch", [("fetch", {"key": "a"})])
        assert (scenario.left, mark.read_text(encoding="utf-8")) == (["fetch"], "fetch")
        by_hand = lambda: client.call_tool_sync("t1", "fetch", {"key": "b"})  # noqa: E731
        found = in_turn(Scenario(fetch={"y": 1}), by_hand)
        assert (found.value["status"], found.seen) == ("success", [("fetch", {"key": "b"})])
        assert found.value["content"][0] == {"text": '{"y": 1}'}
        found = in_turn(Scenario(fetch=failed("sold out")), by_hand)
        assert (found.value["status"], found.value["content"]) == ("error", [{"text": "sold out"}])
