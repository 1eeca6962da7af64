"""LangGraph's agents as they are, against the real package: the adapter with a stand-in for the scenario, and
whole runs through the command line. Real tools leave a mark, and none may.

Written for the oldest and the newest version; ``.ci/frameworks.py langgraph`` makes the environments."""

from __future__ import annotations

import asyncio
import json
import operator
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("langgraph")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, tool
from langchain_core.tools import Tool as SimpleTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, create_react_agent, tools_condition
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from agenteval.agentside import hooks
from agenteval.agentside.frameworks.langgraph import FRAMEWORK
from agenteval.agentside.frameworks.seam import Refused, Waits
from agenteval.agentside.world import ToolAnswer, World
from agenteval.messages.chat import parse_steps
from e2e.frameworks import talking
from e2e.frameworks.talking import attempted, made, replies, used

try:
    from langchain.agents import create_agent
except ImportError:  # before 1.0
    create_agent = None

newest = pytest.mark.skipif(create_agent is None, reason="needs LangChain 1.0")
pytestmark = pytest.mark.filterwarnings("ignore")
FOLLOW = "get_order was called from a thread that agenteval cannot track, and was not run"

# ── what the tests are made of ───────────────────────────────────────────────────────────────────


class Scripted(BaseChatModel):
    """A chat model that says what a function of the messages says."""

    says: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        said = self.says(messages)
        message = AIMessage(said) if isinstance(said, str) else said
        message.usage_metadata = {
            "input_tokens": 10,
            "output_tokens": 2,
            "total_tokens": 12,
            "input_token_details": {"cache_read": 4},
        }
        return ChatResult(generations=[ChatGeneration(message=message)])


def asks(*calls: tuple[str, str, dict[str, Any]], text: str = "") -> AIMessage:
    """A reply with calls: of a name, an id, and arguments."""
    return AIMessage(text, tool_calls=[{"name": name, "id": id, "args": args} for name, id, args in calls])


RAN: list[Any] = []


@pytest.fixture(autouse=True)
def no_real_tool_runs() -> Any:
    RAN.clear()
    yield
    assert RAN == []


@tool
def get_order(order_id: str) -> str:
    """Look an order up."""
    RAN.append(order_id)
    return f"real {order_id}"


def looks_up(messages: Sequence[Any]) -> Any:
    """Asks for the order of the number that the user says, and says what it got, and in which turn."""
    turn = sum(isinstance(each, HumanMessage) for each in messages)
    if isinstance(messages[-1], ToolMessage):
        return f"turn {turn}: {messages[-1].content}"
    return asks(("get_order", f"call{turn}", {"order_id": messages[-1].content}))


def calls_then(answer: Callable[[Any], str], *calls: tuple[str, str, dict[str, Any]]) -> Scripted:
    """A model that makes the calls, and then says what the answer is to their last result."""
    return Scripted(says=lambda m: answer(m[-1]) if isinstance(m[-1], ToolMessage) else asks(*calls))


MODEL = Scripted(says=looks_up)


class Scenario:
    """Answers tools; those that it does not name are left to the agent, if ``passthrough``."""

    def __init__(self, tools: dict[str, Any], *, passthrough: bool = False) -> None:
        self.tools, self.passthrough = tools, passthrough
        self.seen: list[tuple[str, Any]] = []
        self.own: list[Any] = []

    def _answer(self, name: str, args: Any) -> ToolAnswer:
        self.seen.append((name, args))
        answer = self.tools[name]
        answer = answer(args) if callable(answer) else answer
        return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)

    def mocks(self, name: str) -> bool:
        return name in self.tools

    async def call(self, name: str, args: Any, own: Any) -> ToolAnswer:
        if self.passthrough and name not in self.tools:
            self.seen.append((name, args))
            self.own.append(await own())
            return ToolAnswer(self.own[-1])
        return self._answer(name, args)

    def call_sync(self, name: str, args: Any, own: Any) -> ToolAnswer:
        if self.passthrough and name not in self.tools:
            self.seen.append((name, args))
            self.own.append(own())
            return ToolAnswer(self.own[-1])
        return self._answer(name, args)

    async def record(self, name: str, args: Any, own: Any) -> Any:
        self.seen.append((name, args))
        return await own()

    def record_sync(self, name: str, args: Any, own: Any) -> Any:
        self.seen.append((name, args))
        return own()


class Talk:
    """A conversation with an agent."""

    def __init__(self, agent: Any, scenario: Scenario, deps: Any = None) -> None:
        self.world, self.scenario, self.fault = World(), scenario, ""
        self._conversation = FRAMEWORK.open(agent, self.world, "session", deps)

    async def say(self, text: str) -> dict[str, Any]:
        try:
            with self.world.turn(self.scenario):
                return await self._conversation.reply(text)
        finally:
            self.fault = self.world.take_fault()

    async def end(self) -> None:
        self.world.close()
        await self._conversation.close()


def talk(agent: Any, scenario: Scenario, *said: str, deps: Any = None) -> list[dict[str, Any]]:
    """What an agent replies."""

    async def told() -> list[dict[str, Any]]:
        conversation = Talk(agent, scenario, deps)
        try:
            return [await conversation.say(each) for each in said]
        finally:
            await conversation.end()

    return asyncio.run(told())


def broken(agent: Any, scenario: Scenario, kind: Any) -> Any:
    """The exception that a turn ends with."""
    with pytest.raises(kind) as caught:
        talk(agent, scenario, "hi")
    return caught.value


def texts(reply: dict[str, Any]) -> list[str]:
    return [each["content"] for each in reply["messages"] if each["role"] == "assistant" and each["content"]]


def calls(reply: dict[str, Any]) -> list[str]:
    return [call["function"]["name"] for each in reply["messages"] for call in each.get("tool_calls", ())]


def speakers(reply: dict[str, Any]) -> list[str]:
    return [each.get("name", "") for each in reply["messages"] if each["role"] == "assistant"]


def graph_of(node: Any, state: Any = MessagesState, **options: Any) -> Any:
    return built(node, state=state).compile(**options)


def built(*nodes: Any, state: Any = MessagesState, **options: Any) -> Any:
    """A graph of nodes one behind the other."""
    builder = StateGraph(state, **options)
    names = [START, *(f"step{at}" for at in range(len(nodes)))]
    for before, name, node in zip(names, names[1:], nodes):  # noqa: B905 - one shorter
        builder.add_node(name, node)
        builder.add_edge(before, name)
    return builder


def tools_of(agent: Any) -> list[str]:
    return [each.name for each in FRAMEWORK.tools(agent)]


# ── conversations ────────────────────────────────────────────────────────────────────────────────

MAKERS = [
    pytest.param(lambda **options: create_agent(MODEL, [get_order], **options), id="agent", marks=newest),
    pytest.param(lambda **options: create_react_agent(MODEL, [get_order], **options), id="react"),
    pytest.param(lambda **options: with_tool_node().compile(**options), id="tool_node"),
    pytest.param(lambda **options: with_own_loop().compile(**options), id="own_loop"),
]


def with_tool_node() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [MODEL.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([get_order]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


def with_own_loop() -> Any:
    """Tools by name, called in a node; messages that are appended, and get no ids."""

    class Counted(TypedDict):
        messages: Annotated[list, operator.add]
        count: int

    by_name = {"get_order": get_order}

    async def model(state: Any) -> Any:
        said = await MODEL.ainvoke([SystemMessage("…"), *state["messages"]])
        return {"messages": [said], "count": state.get("count", 0) + 1}

    def run(state: Any) -> Any:
        made = state["messages"][-1].tool_calls
        return {
            "messages": [
                ToolMessage(by_name[c["name"]].invoke(c["args"]), tool_call_id=c["id"]) for c in made
            ]
        }

    builder = StateGraph(Counted)
    builder.add_node("model", model)
    builder.add_node("run", run)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda s: "run" if s["messages"][-1].tool_calls else "__end__")
    builder.add_edge("run", "model")
    return builder


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["no_saver", "saver"])
@pytest.mark.parametrize("make", MAKERS)
def test_two_conversations_at_once_share_nothing(make: Any, saver: Any) -> None:
    agent = make(checkpointer=saver)
    assert tools_of(agent)[:1] == ["get_order"]

    async def both() -> None:
        one = Talk(agent, Scenario({"get_order": lambda args: f"one's {args['order_id']}"}))
        other = Talk(agent, Scenario({"get_order": lambda args: {"other": args["order_id"]}}))
        for turn in (1, 2):
            first, second = await asyncio.gather(one.say(f"A{turn}"), other.say(f"B{turn}"))
            assert texts(first) == [f"turn {turn}: one's A{turn}"]
            assert texts(second)[0].startswith(f"turn {turn}: ")
            assert f"B{turn}" in texts(second)[0]
            for reply in (first, second):
                assert [each["role"] for each in reply["messages"]] == ["assistant", "tool", "assistant"]
                assert used(reply) == (2, 20, 4, 8)
        assert one.scenario.seen == [("get_order", {"order_id": f"A{turn}"}) for turn in (1, 2)]
        assert other.scenario.seen == [("get_order", {"order_id": f"B{turn}"}) for turn in (1, 2)]
        await one.end()
        await other.end()

    asyncio.run(both())


def test_parallel_calls_are_answered_in_their_order_and_an_error_is_one() -> None:
    wanted = [("get_order", str(at), {"order_id": str(at)}) for at in range(8)]
    seen: list[str] = []

    def answer(args: Any) -> ToolAnswer:
        seen.append(args["order_id"])
        return ToolAnswer(f"no {args['order_id']}", is_error=True)

    agent = create_react_agent(
        calls_then(lambda last: f"{last.status}: {last.content}", *wanted), [get_order]
    )
    (reply,) = talk(agent, Scenario({"get_order": answer}), "hi")
    assert seen == [str(at) for at in range(8)]
    assert texts(reply) == ["error: no 7"]
    assert {each["status"] for each in reply["messages"] if each["role"] == "tool"} == {"error"}


async def _asynchronous(state: Any) -> Any:
    return {"messages": [AIMessage(await get_order.ainvoke({"order_id": "7"}))]}


@pytest.mark.parametrize(
    "node",
    [
        lambda state: {"messages": [AIMessage(get_order.invoke({"order_id": "7"}))]},
        lambda state: {"messages": [AIMessage(get_order.invoke("7"))]},
        lambda state: {"messages": [AIMessage(get_order.run({"order_id": "7"}))]},
        _asynchronous,
    ],
)
def test_a_tool_that_a_node_calls(node: Any) -> None:
    agent = graph_of(node)
    scenario = Scenario({"get_order": "mocked"})
    assert texts(talk(agent, scenario, "hi")[0]) == ["mocked"]
    assert scenario.seen == [("get_order", {"order_id": "7"})]
    assert tools_of(agent) == ["get_order", ""]  # and there may be more
    error = broken(agent, Scenario({"get_order": ToolAnswer("down", is_error=True)}), Exception)
    assert (type(error).__name__, str(error)) == ("ToolException", "down")


def test_tools_that_a_node_holds() -> None:
    class Node:
        def __init__(self) -> None:
            self.tools = {"get_order": get_order}

        def __call__(self, state: Any) -> Any:
            return {"messages": [AIMessage(self.tools["get_order"].invoke({"order_id": "7"}))]}

        def method(self, state: Any) -> Any:
            return self(state)

    class Question(TypedDict):
        question: str
        found: str

    inner = graph_of(lambda state: {"found": get_order.invoke({"order_id": state["question"]})}, Question)

    def calls_inner(state: Any) -> Any:
        return {"messages": [AIMessage(inner.invoke({"question": "7"})["found"])]}

    for node in (Node(), Node().method, calls_inner):
        assert texts(talk(graph_of(node), Scenario({"get_order": "mocked"}), "hi")[0]) == ["mocked"]
        assert tools_of(graph_of(node)) == ["get_order", ""]


def test_a_ticket_is_routed_and_tools_are_called_on_the_way() -> None:
    """Written as others write it: a node classifies, one calls tools and writes no result of them, a third
    escalates; the ticket is there in the next turn."""

    class Ticketed(TypedDict):
        messages: Annotated[list, add_messages]
        ticket: dict

    @tool
    def escalate(ticket: str, reason: str) -> str:
        """…"""
        RAN.append(ticket)
        return "real"

    said = {"classify": '{"priority": "urgent"}', "summary": "Here is what I found: found"}
    model = Scripted(says=lambda m: said.get(m[-1].content) or looks_up(m))

    def analyse(state: Any) -> Any:
        told = json.loads(model.invoke([HumanMessage("classify")]).content)
        return {"ticket": {"count": 0, **(state.get("ticket") or {}), **told}}

    def handle(state: Any) -> Any:
        wanted = model.bind_tools([get_order]).invoke(state["messages"][-1:]).tool_calls
        assert [get_order.invoke(call["args"]) for call in wanted] == ["found"]
        count = state["ticket"]["count"] + 1
        return {"messages": [model.invoke("summary")], "ticket": {**state["ticket"], "count": count}}

    def check(state: Any) -> Any:
        if state["ticket"]["priority"] != "urgent":
            return {}
        given = {"ticket": f"T{state['ticket']['count']}", "reason": "urgent"}
        return {"messages": [AIMessage(escalate.invoke(given))]}

    builder = built(analyse, handle, check, state=Ticketed)
    scenario = Scenario({"get_order": "found", "escalate": lambda args: f"{args['ticket']} escalated"})
    first, second = talk(builder, scenario, "A", "B")
    assert texts(first) == ["Here is what I found: found", "T1 escalated"]
    assert texts(second) == ["Here is what I found: found", "T2 escalated"]
    assert [name for name, _ in scenario.seen] == ["get_order", "escalate"] * 2
    assert used(first)[0] == 3
    assert sorted(tools_of(builder)) == ["", "escalate", "get_order"]


@newest
def test_a_long_conversation_with_a_context_a_summary_and_a_tool_that_writes_state() -> None:
    from langchain.agents.middleware import AgentState, SummarizationMiddleware
    from langchain.tools import ToolRuntime

    @dataclass
    class Customer:
        name: str

    class Named(AgentState):
        user_name: str

    def set_name(name: str, runtime: ToolRuntime) -> Command:
        """…"""
        RAN.append(name)
        told = ToolMessage("kept", tool_call_id=runtime.tool_call_id)
        return Command(update={"user_name": name, "messages": [told]})

    set_name.__annotations__ = {"name": str, "runtime": ToolRuntime, "return": Command}

    def says(messages: Any) -> Any:
        if len(messages) == 1 and "summar" in str(messages[0].content).lower():
            return "A summary"
        if isinstance(messages[-1], ToolMessage):
            return f"ok: {messages[-1].content}"
        number = str(len(messages))
        return asks(
            ("set_name", f"s{number}", {"name": "Al"}), ("get_order", f"g{number}", {"order_id": "1"})
        )

    model = Scripted(says=says)
    agent = create_agent(
        model,
        [get_order, tool(set_name)],
        context_schema=Customer,
        state_schema=Named,
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
        middleware=[SummarizationMiddleware(model=model, trigger=("messages", 5), keep=("messages", 2))],
    )
    scenario = Scenario({"get_order": "found", "set_name": "done"})
    for reply in talk(agent, scenario, "a", "b", "c", "d", deps=Customer("Ann")):
        assert (calls(reply), texts(reply)) == (["set_name", "get_order"], ["ok: found"])
    left = Scenario({"get_order": "found"}, passthrough=True)
    talk(agent, left, "a", deps=Customer("Ann"))
    assert (left.own, RAN) == (["kept"], ["Al"])
    RAN.clear()


def test_what_a_node_names_is_looked_through_for_tools() -> None:
    many, mine = list(range(1_000_000)), {"tools": [get_order]}
    itself: list[Any] = []
    itself.append(itself)

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(f"{len(many)} {len(mine)} {len(itself)}")]}

    assert tools_of(graph_of(node)) == ["get_order", ""]


# ── threads, and calls that nobody can follow ────────────────────────────────────────────────────


def _bare_thread(state: Any) -> Any:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(get_order.invoke({"order_id": "7"})))
    thread.start()
    thread.join()
    return {"messages": [AIMessage(said[0])]}


def _own_pool(state: Any) -> Any:
    with ThreadPoolExecutor() as pool:
        return {"messages": [AIMessage(pool.submit(get_order.invoke, {"order_id": "7"}).result())]}


@pytest.mark.parametrize("node", [_bare_thread, _own_pool])
def test_threads_that_a_node_starts_are_followed(node: Any) -> None:
    scenario = Scenario({"get_order": "mocked"})
    assert texts(talk(graph_of(node), scenario, "hi")[0]) == ["mocked"]
    assert scenario.seen == [("get_order", {"order_id": "7"})]


def test_a_thread_that_outlives_its_turn_runs_no_tool() -> None:
    over, said = threading.Event(), list[str]()

    def work() -> None:
        over.wait()
        try:
            get_order.invoke({"order_id": "7"})
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work)

    def starts(state: Any) -> Any:
        thread.start()
        return {"messages": [AIMessage("done")]}

    scenario = Scenario({"get_order": "mocked"})
    talk(graph_of(starts), scenario, "hi")
    over.set()
    thread.join()
    assert scenario.seen == []
    assert "ToolException" in said[0]
    assert FOLLOW in said[0]


def test_a_tool_that_no_conversation_calls_is_what_it_was() -> None:
    assert get_order.invoke({"order_id": "7"}) == "real 7"
    assert RAN == ["7"]
    RAN.clear()


def test_a_mock_runs_no_real_tool() -> None:
    """A mock is not the agent's code: it runs without its conversation."""
    agent = graph_of(lambda state: {"messages": [AIMessage(get_order.invoke({"order_id": "7"}))]})
    mock = Scenario({"get_order": lambda args: Context().run(get_order.invoke, args)})
    assert FOLLOW in str(broken(agent, mock, Exception))


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_graph_puts_in_is_no_argument() -> None:
    @tool
    def looks(
        x: str, state: Annotated[dict, InjectedState], call_id: Annotated[str, InjectedToolCallId]
    ) -> str:
        """…"""
        RAN.append(x)
        return "real"

    @tool
    def knows(x: int, secret: Annotated[str, InjectedToolArg]) -> str:
        """…"""
        RAN.append(x)
        return "real"

    tools, made = [looks, knows], [("looks", "1", {"x": "a"}), ("knows", "2", {"x": 2})]
    if create_agent is not None:
        from langchain.tools import ToolRuntime

        def runs(x: str, runtime: ToolRuntime) -> str:
            """…"""
            RAN.append(x)
            return "real"

        runs.__annotations__["runtime"] = ToolRuntime
        tools.append(tool(runs))
        made.append(("runs", "3", {"x": "c"}))
    agent = create_react_agent(calls_then(lambda _: "done", *made), tools)
    scenario = Scenario({each.name: "mocked" for each in tools})
    talk(agent, scenario, "hi")
    assert scenario.seen == [(name, args) for name, _, args in made]
    assert [list(each.parameters["properties"]) for each in FRAMEWORK.tools(agent)] == [["x"]] * len(tools)


def test_tools_of_other_classes() -> None:
    class Own(BaseTool):
        name: str = "own"
        description: str = "…"

        def _run(self, q: str) -> str:
            RAN.append(q)
            return "real"

        def run(self, *args: Any, **kwargs: Any) -> Any:
            RAN.append("run")
            return super().run(*args, **kwargs)

    simple = SimpleTool(name="simple", func=RAN.append, description="…")
    made = [("own", "1", {"q": "1"}), ("simple", "2", {"__arg1": "2"})]
    agent = create_react_agent(calls_then(lambda last: last.content, *made), [Own(), simple])
    scenario = Scenario({"own": 1, "simple": 2})
    assert texts(talk(agent, scenario, "hi")[0]) == ["2"]
    assert scenario.seen == [(name, args) for name, _, args in made]
    in_node = graph_of(lambda state: {"messages": [AIMessage(Own().run({"q": "1"}))]})
    assert texts(talk(in_node, Scenario({"own": "mocked"}), "hi")[0]) == ["mocked"]


def test_a_tool_that_returns_at_once_is_the_answer() -> None:
    @tool(return_direct=True)
    def look(x: str) -> str:
        """…"""
        RAN.append(x)
        return "real"

    agent = create_react_agent(calls_then(lambda _: "never", ("look", "1", {"x": "1"})), [look])
    (reply,) = talk(agent, Scenario({"look": "found"}), "hi")
    assert (calls(reply), texts(reply)) == (["look"], ["found"])


def test_what_the_scenario_leaves_to_the_agent_is_run_and_recorded() -> None:
    inner = create_react_agent(MODEL, [get_order], name="inner")

    @tool
    def research(question: str) -> str:
        """…"""
        RAN.append("research")
        return inner.invoke({"messages": [("user", question)]})["messages"][-1].content

    model = calls_then(lambda last: f"It says {last.content}", ("research", "1", {"question": "5"}))
    agent = create_react_agent(model, [research], name="outer")
    assert sorted(tools_of(agent)) == ["get_order", "research"]
    scenario = Scenario({"get_order": "mocked"}, passthrough=True)
    (reply,) = talk(agent, scenario, "hi")
    assert texts(reply) == ["It says turn 1: mocked"]  # what the inner agent says is a result, and no answer
    assert (calls(reply), speakers(reply)) == (["research", "get_order"], ["outer", "inner", "outer"])
    assert scenario.seen == [("research", {"question": "5"}), ("get_order", {"order_id": "5"})]
    assert (scenario.own, RAN) == (["turn 1: mocked"], ["research"])
    assert used(reply)[0] == 4  # the inner agent's, too
    RAN.clear()


def test_a_real_tool_that_fails_tells_its_agent() -> None:
    @tool
    def fails(x: str) -> str:
        """…"""
        raise ValueError("boom")

    node = ToolNode([fails], handle_tool_errors=True)
    agent = create_react_agent(calls_then(lambda last: last.status, ("fails", "1", {"x": "1"})), node)
    (reply,) = talk(agent, Scenario({}, passthrough=True), "hi")
    assert texts(reply) == ["error"]
    assert "boom" in reply["messages"][1]["content"]


def test_arguments_that_do_not_fit_are_refused_as_the_framework_words_it() -> None:
    class Own(BaseTool):
        name: str = "own"
        description: str = "…"

        def _run(self, q: str) -> str:
            RAN.append(q)
            return "real"

    @tool
    def knows(
        x: int, call_id: Annotated[str, InjectedToolCallId], state: Annotated[Any, InjectedState]
    ) -> str:
        """…"""
        RAN.append(x)
        return "real"

    for name, args in (("get_order", {"number": "7"}), ("knows", {"x": "seven"})):
        agent = create_react_agent(
            calls_then(lambda last: last.content, (name, "1", args)), [get_order, knows]
        )
        scenario = Scenario({"get_order": "mocked", "knows": "mocked"})
        (reply,) = talk(agent, scenario, "hi")
        assert scenario.seen == []
        assert "validation error" in texts(reply)[0] or "Error invoking tool" in texts(reply)[0]
        (reply,) = seen(agent, "hi")
        assert (made(reply), attempted(reply), reply["unknown_tools"]) == ([], [name], [])
    agent = create_react_agent(calls_then(lambda last: last.content, ("own", "1", {"p": 1})), [Own()])
    assert texts(talk(agent, Scenario({"own": "mocked"}), "hi")[0]) == ["mocked"]  # it has no schema


def test_a_mock_passes_through_the_framework_as_the_tool_would() -> None:
    happened: list[str] = []

    class Listener(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **_: Any) -> None:
            happened.append(f"{serialized['name']} {input_str}")

        def on_tool_end(self, output: Any, **_: Any) -> None:
            happened.append(str(getattr(output, "content", output)))

    async def events(state: Any) -> Any:
        found = get_order.astream_events({"order_id": "8"}, version="v2")
        happened.extend([each["event"] async for each in found])
        return {"messages": [AIMessage("done")]}

    agent = create_react_agent(MODEL, [get_order]).with_config(callbacks=[Listener()])
    talk(agent, Scenario({"get_order": {"status": "shipped"}}), "7")
    assert happened == ["get_order {'order_id': '7'}", '{"status": "shipped"}']
    happened.clear()
    talk(graph_of(events), Scenario({"get_order": "mocked"}), "hi")
    assert happened == ["on_tool_start", "on_tool_end"]

    @tool(response_format="content_and_artifact")
    def draws(x: int) -> tuple[str, Any]:
        """…"""
        RAN.append(x)
        return "real", None

    drawn = create_react_agent(calls_then(lambda last: str(last.artifact), ("draws", "d", {"x": 1})), [draws])
    assert texts(talk(drawn, Scenario({"draws": {"a": 1}}), "hi")[0]) == ["{'a': 1}"]
    assert texts(talk(drawn, Scenario({"draws": ToolAnswer("no", True)}), "hi")[0]) == ["None"]


def test_a_tool_that_wraps_another_under_its_name_is_one_call() -> None:
    @tool("get_order", args_schema=get_order.args_schema)
    def asks_first(**given: Any) -> str:
        """As LangGraph's guide writes one that asks a person."""
        return str(get_order.invoke(given))

    for left in (True, False):
        scenario = Scenario({} if left else {"get_order": "mocked"}, passthrough=True)
        agent = create_react_agent(MODEL, [asks_first])
        assert texts(talk(agent, scenario, "7")[0]) == ["turn 1: real 7" if left else "turn 1: mocked"]
        assert (scenario.seen, RAN) == ([("get_order", {"order_id": "7"})], ["7"] if left else [])
        RAN.clear()


def test_tools_that_override_how_they_are_invoked() -> None:
    class Own(BaseTool):
        name: str = "own"
        description: str = "…"

        def _run(self, q: str) -> str:
            RAN.append(q)
            return f"real {q}"

        def invoke(self, *args: Any, **kwargs: Any) -> Any:
            RAN.append("invoke")
            return super().invoke(*args, **kwargs)

        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            RAN.append("ainvoke")
            return await super().ainvoke(*args, **kwargs)

    agent = create_react_agent(calls_then(lambda last: last.content, ("own", "1", {"q": "7"})), [Own()])
    assert texts(talk(agent, Scenario({"own": "mocked"}), "hi")[0]) == ["mocked"]
    assert RAN == []
    left = Scenario({}, passthrough=True)
    assert texts(talk(agent, left, "hi")[0]) == ["real 7"]
    assert (left.seen, RAN) == ([("own", {"q": "7"})], ["ainvoke", "7"])
    RAN.clear()


# ── states ───────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_told_apart_in_states_of_all_kinds() -> None:
    class Replaced(TypedDict):
        messages: list

    class Appended(TypedDict):
        messages: Annotated[list, operator.add]

    class Typed(BaseModel):
        messages: Annotated[list, add_messages] = []
        count: int = 0

    def forgets(state: Any) -> Any:
        gone = [RemoveMessage(id=each.id) for each in state["messages"][:-1]]
        return {"messages": [*gone, AIMessage(f"of {len(state['messages'])}")]}

    def replaces(state: Any) -> Any:
        messages = state["messages"]
        return {"messages": [*messages, {"role": "assistant", "content": f"of {len(messages)}"}]}

    said = ["a", "b", "c"]
    replies = talk(graph_of(forgets, checkpointer=InMemorySaver()), Scenario({}), *said)
    assert [texts(each) for each in replies] == [["of 1"], ["of 3"], ["of 3"]]
    replies = talk(graph_of(replaces, Replaced), Scenario({}), *said)
    assert [texts(each) for each in replies] == [["of 1"], ["of 3"], ["of 5"]]
    for saver in (None, InMemorySaver()):
        same = graph_of(lambda state: {"messages": [AIMessage("same")]}, Appended, checkpointer=saver)
        assert [texts(each) for each in talk(same, Scenario({}), *said)] == [["same"]] * 3
        counts = graph_of(
            lambda state: {"messages": [AIMessage(str(state.count))], "count": state.count + 1},
            Typed,
            checkpointer=saver,
        )
        assert [texts(each) for each in talk(counts, Scenario({}), *said)] == [["0"], ["1"], ["2"]]


def test_a_store_and_a_saver_are_each_conversations_own() -> None:
    def counts(state: Any) -> Any:
        store = get_store()
        store.put(("seen",), str(len(store.search(("seen",)))), {})
        return {"messages": [AIMessage(str(len(store.search(("seen",)))))]}

    saver = InMemorySaver()
    agent = graph_of(counts, store=InMemoryStore(), checkpointer=saver)
    for _ in range(2):
        assert [texts(each) for each in talk(agent, Scenario({}), "a", "b")] == [["1"], ["2"]]
    assert not list(saver.list(None))


def test_a_graph_that_asks_for_a_store_gets_one() -> None:
    def given(state: Any, *, store: BaseStore) -> Any:
        store.put(("seen",), str(len(store.search(("seen",)))), {})
        return {"messages": [AIMessage(str(len(store.search(("seen",)))))]}

    def of_runtime(state: Any, runtime: Any) -> Any:
        return given(state, store=runtime.store)

    def fetched(state: Any) -> Any:
        return given(state, store=get_store())

    def without(state: Any, runtime: Any) -> Any:
        return {"messages": [AIMessage("none")]}

    given.__annotations__["store"] = BaseStore
    of_runtime.__annotations__["runtime"] = without.__annotations__["runtime"] = Runtime
    for node in (given, of_runtime, fetched):
        for _ in range(2):
            assert [texts(each) for each in talk(graph_of(node), Scenario({}), "a", "b")] == [["1"], ["2"]]
    assert FRAMEWORK.open(graph_of(without), World(), "", None)._graph.store is None

    @tool
    def remembers(x: str, store: Annotated[Any, InjectedStore()]) -> str:
        """…"""
        store.put(("seen",), x, {})
        return str(len(store.search(("seen",))))

    model = calls_then(lambda last: last.content, ("remembers", "r", {"x": "1"}))
    agent = looped(ToolNode([remembers]), model)
    left = Scenario({}, passthrough=True)
    assert texts(talk(agent, left, "hi")[0]) == ["1"]
    assert left.seen == [("remembers", {"x": "1"})]


def test_users_messages_that_nodes_write() -> None:
    written = [
        HumanMessage("I found it", name="researcher"),
        {"role": "user", "content": "a better question"},
        AIMessage(
            [{"type": "text", "text": "It is "}, {"type": "reasoning"}, {"type": "text", "text": "so"}]
        ),
    ]
    (reply,) = talk(graph_of(lambda state: {"messages": written}), Scenario({}), "hi")
    assert texts(reply) == ["I found it", "It is so"]
    assert speakers(reply) == ["researcher", ""]


def test_a_structured_answer_is_the_answer() -> None:
    class Total(BaseModel):
        total: int

    class WithOutput(Scripted):
        def with_structured_output(self, schema: Any, **options: Any) -> Any:
            return RunnableLambda(lambda _: Total(total=5))

    react = create_react_agent(WithOutput(says=lambda _: "It is five"), [get_order], response_format=Total)
    assert texts(talk(react, Scenario({}), "hi")[0]) == ["It is five", '{"total": 5}']
    if create_agent is None:
        return
    from langchain.agents.structured_output import ProviderStrategy, ToolStrategy

    def totals(messages: Any) -> Any:
        if isinstance(messages[-1], ToolMessage):
            return asks(("Total", "t", {"total": 3}))
        return asks(("get_order", "o", {"order_id": "1"}))

    agent = create_agent(
        Scripted(says=totals), [get_order], response_format=ToolStrategy(Total), checkpointer=InMemorySaver()
    )
    for reply in talk(agent, Scenario({"get_order": "mocked"}), "hi", "again"):
        assert (calls(reply), texts(reply)) == (["get_order"], ['{"total": 3}'])
    provider = create_agent(
        Scripted(says=lambda _: '{"total":4}'), [], response_format=ProviderStrategy(Total)
    )
    assert texts(talk(provider, Scenario({}), "hi")[0]) == ['{"total":4}']


# ── several agents ───────────────────────────────────────────────────────────────────────────────


def bills(messages: Any) -> Any:
    if getattr(messages[-1], "name", "") == "get_order":
        return "billed"
    return asks(("get_order", f"o{len(messages)}", {"order_id": "1"}))


def test_a_handoff_is_the_next_speaker_and_no_call() -> None:
    def goes(
        state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command:
        """…"""
        told = ToolMessage("Handed over", name="transfer_to_billing", tool_call_id=tool_call_id)
        messages = [*state["messages"], told]
        return Command(goto="billing", update={"messages": messages}, graph=Command.PARENT)

    front_model = calls_then(lambda _: "never", ("transfer_to_billing", "h", {}))
    builder = StateGraph(MessagesState)
    transfer = tool("transfer_to_billing")(goes)
    builder.add_node("front", create_react_agent(front_model, [transfer], name="front"))
    builder.add_node("billing", create_react_agent(Scripted(says=bills), [get_order], name="billing"))
    builder.add_edge(START, "front")
    assert tools_of(builder) == ["get_order"]  # a builder is compiled
    (reply,) = talk(builder, Scenario({"get_order": "mocked"}), "hi")
    assert (calls(reply), texts(reply)) == (["get_order"], ["billed"])
    assert speakers(reply) == ["front", "billing", "billing"]


def by_function(agent: Any, scenario: Scenario, text: str = "hi") -> Any:
    """A function around an agent, as ``Played`` calls one: no adapter is there."""
    world = World()
    with world.turn(scenario):
        said = agent.invoke({"messages": [("user", text)]})["messages"][-1].content
    world.close()
    return said, world.take_fault()


def test_a_handoff_is_known_without_its_graph() -> None:
    def hands_over(agent_name: str) -> Any:
        @tool(f"transfer_to_{agent_name}")
        def goes(state: Annotated[Any, InjectedState], call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """…"""
            told = ToolMessage("Handed over", name="handed", tool_call_id=call_id)
            return Command(goto=agent_name, update={"messages": [told]}, graph=Command.PARENT)

        return goes

    @tool
    def transfer_to_savings(amount: int, call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """…"""
        RAN.append(amount)
        return Command(update={"messages": [ToolMessage("savings", tool_call_id=call_id)]})

    def team(name: str, args: Any, handoff: Any) -> Any:
        builder = StateGraph(MessagesState)
        front = create_react_agent(
            calls_then(lambda last: last.content, (name, "h", args)), [handoff], name="front"
        )
        builder.add_node("front", front)
        builder.add_node("billing", create_react_agent(Scripted(says=bills), [get_order], name="billing"))
        builder.add_edge(START, "front")
        return builder.compile()

    handed = team("transfer_to_billing", {}, hands_over("billing"))
    scenario = Scenario({"get_order": "mocked"})
    assert by_function(handed, scenario) == ("billed", "")
    assert scenario.seen == [("get_order", {"order_id": "1"})]
    assert (tools_of(handed), calls(talk(handed, scenario, "hi")[0])) == (["get_order"], ["get_order"])
    mocked = Scenario({"get_order": "mocked", "transfer_to_billing": "closed"})
    assert by_function(handed, mocked) == ("closed", "")
    moves = Scenario({"transfer_to_savings": "moved"})
    moving = team("transfer_to_savings", {"amount": 5}, transfer_to_savings)
    assert by_function(moving, moves) == ("moved", "")
    assert moves.seen == [("transfer_to_savings", {"amount": 5})]


def test_an_agent_that_is_a_tool_is_a_call_and_can_be_mocked() -> None:
    class Asked(MessagesState):
        order_id: str

    inner = create_react_agent(Scripted(says=bills), [get_order])  # its model's ids are those of the other's

    def answers(state: Any) -> Any:
        return {"messages": [("user", state["order_id"])]}

    builder = StateGraph(Asked)
    builder.add_node("asks", answers)
    builder.add_node("inner", inner)
    builder.add_edge(START, "asks")
    builder.add_edge("asks", "inner")
    expert = builder.compile().as_tool(name="expert", description="…", arg_types={"order_id": str})
    outer = create_react_agent(
        calls_then(lambda last: last.content, ("expert", "o1", {"order_id": "1"})), [expert]
    )
    known = {each.name: each.is_agent for each in FRAMEWORK.tools(outer)}
    assert known.items() >= {"expert": True, "get_order": False}.items()
    for play in (by_function, lambda *given: talk(*given, "hi")):
        scenario = Scenario({"get_order": "mocked"})
        play(outer, scenario)
        assert scenario.seen == [("expert", {"order_id": "1"}), ("get_order", {"order_id": "1"})]
        stubbed = Scenario({"expert": "stubbed"})
        play(outer, stubbed)
        assert stubbed.seen == [("expert", {"order_id": "1"})]


@newest
@pytest.mark.parametrize("mode", ["last_message", "full_history"])
def test_a_supervisor(mode: str) -> None:
    supervisor = pytest.importorskip("langgraph_supervisor")

    def leads(messages: Any) -> Any:
        if any("transferred to shop" in str(each.content) for each in messages):
            return "All done"
        return asks(("transfer_to_shop", "h", {}), text="One moment")

    shop = create_react_agent(Scripted(says=bills), [get_order], name="shop")
    agent = supervisor.create_supervisor([shop], model=Scripted(says=leads), output_mode=mode)
    assert tools_of(agent) == ["get_order"]
    (reply,) = talk(agent, Scenario({"get_order": "mocked"}), "hi")
    assert (calls(reply), texts(reply)) == (["get_order"], ["One moment", "billed", "All done"])
    assert speakers(reply) == ["supervisor", "shop", "shop", "supervisor"]
    assert used(reply)[0] == 4


@newest
@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["no_saver", "saver"])
def test_a_swarm_stays_with_whom_it_was_handed_to(saver: Any) -> None:
    swarm = pytest.importorskip("langgraph_swarm")
    there = swarm.create_handoff_tool(name="ask_billing", agent_name="billing", description="…")
    back = swarm.create_handoff_tool(agent_name="front", description="…")
    front = create_agent(calls_then(lambda _: "front", ("ask_billing", "h", {})), [there], name="front")
    billing = create_agent(Scripted(says=bills), [get_order, back], name="billing")
    agent = swarm.create_swarm([front, billing], default_active_agent="front").compile(checkpointer=saver)
    assert tools_of(agent) == ["get_order"]
    first, second = talk(agent, Scenario({"get_order": "mocked"}), "hi", "again")
    for reply, before in ((first, ["front"]), (second, [])):
        assert (calls(reply), texts(reply)) == (["get_order"], ["billed"])
        assert speakers(reply) == [*before, "billing", "billing"]
    assert (used(first)[0], used(second)[0]) == (3, 2)


# ── middleware ───────────────────────────────────────────────────────────────────────────────────


@newest
def test_middleware_of_either_kind() -> None:
    from langchain.agents.middleware import TodoListMiddleware, wrap_model_call, wrap_tool_call

    @wrap_model_call
    def model(request: Any, handler: Any) -> Any:
        return handler(request)

    @wrap_tool_call
    def call(request: Any, handler: Any) -> Any:
        return handler(request)

    @wrap_tool_call
    async def later(request: Any, handler: Any) -> Any:
        return await handler(request)

    for around in ([model], [call], [model, call], [later]):
        agent = create_agent(MODEL, [get_order], middleware=around)
        replies = talk(agent, Scenario({"get_order": "mocked"}), "A", "B")
        assert [texts(each) for each in replies] == [["turn 1: mocked"], ["turn 2: mocked"]]
        assert tools_of(agent) == ["get_order", ""]

    def plans(messages: Any) -> Any:
        last = messages[-1]
        if not isinstance(last, ToolMessage):
            return asks(("write_todos", "t", {"todos": [{"content": "look", "status": "pending"}]}))
        return asks(("get_order", "g", {"order_id": "1"})) if last.tool_call_id == "t" else "done"

    agent = create_agent(Scripted(says=plans), [get_order], middleware=[TodoListMiddleware()])
    (reply,) = talk(agent, Scenario({"get_order": "mocked"}), "hi")
    assert (calls(reply), tools_of(agent)) == (["get_order"], ["get_order"])


# ── what a turn ends with ────────────────────────────────────────────────────────────────────────


def test_too_many_steps_keep_what_there_was() -> None:
    model = Scripted(says=lambda m: asks(("get_order", f"c{len(m)}", {"order_id": "1"})))
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([get_order]))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    builder.add_edge("tools", "model")
    agent = builder.compile().with_config(recursion_limit=6)
    error = broken(agent, Scenario({"get_order": "mocked"}), RecursionError)
    roles = [each["role"] for each in error.agenteval_partial["messages"]]
    assert roles == ["assistant", "tool"] * 3
    assert used(error.agenteval_partial)[0] == 3


def test_an_exception_of_the_agents_own() -> None:
    def fails(state: Any) -> Any:
        raise LookupError("no such customer")

    agent = built(lambda state: {"messages": [AIMessage("wait")]}, fails).compile()
    assert broken(agent, Scenario({}), LookupError).agenteval_partial["messages"] == [
        {"role": "assistant", "content": "wait"}
    ]


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["no_saver", "saver"])
def test_an_agent_that_waits_for_a_person(saver: Any) -> None:
    def asks_person(state: Any) -> Any:
        return {"messages": [AIMessage(str(interrupt("ok?")))]}

    told = "the agent is waiting for human input ({}), which agenteval does not support yet"
    agent = graph_of(asks_person, checkpointer=saver)
    assert str(broken(agent, Scenario({}), Waits)) == told.format("interrupt: ok?")
    assert str(broken(built(agent).compile(), Scenario({}), Waits)) == told.format("interrupt: ok?")
    stops = graph_of(asks_person, checkpointer=saver, interrupt_before=["step0"])
    assert str(broken(stops, Scenario({}), Waits)) == told.format("a breakpoint")
    if create_agent is None:
        return
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    approved = HumanInTheLoopMiddleware(interrupt_on={"get_order": True})
    agent = create_agent(MODEL, [get_order], middleware=[approved], checkpointer=saver)
    waits = broken(agent, Scenario({}), Waits)
    assert str(waits) == told.format("approval of get_order")
    assert calls(waits.agenteval_partial) == ["get_order"]


def test_a_graph_that_answers_elsewhere_says_where() -> None:
    class Reported(MessagesState):
        report: str

    error = broken(graph_of(lambda state: {"report": "…"}, Reported), Scenario({}), RuntimeError)
    assert str(error) == "the graph added nothing to `messages` (only to report)"


# ── what is given besides, and what is refused ───────────────────────────────────────────────────


def test_deps_are_the_context_or_the_configuration() -> None:
    @dataclass
    class Customer:
        name: str

    @dataclass
    class Anybody:
        name: str = "nobody"

    def says(state: Any, runtime: Any) -> Any:
        return {"messages": [AIMessage(runtime.context.name)]}

    def configured(state: Any, config: Any) -> Any:
        return {"messages": [AIMessage(config["configurable"]["name"])]}

    says.__annotations__["runtime"] = Runtime
    configured.__annotations__["config"] = RunnableConfig
    agent = built(says, context_schema=Customer).compile()
    assert texts(talk(agent, Scenario({}), "hi", deps=Customer("Ann"))[0]) == ["Ann"]
    with pytest.raises(Refused, match=r"the graph needs a context of type Customer \(name\)"):
        talk(agent, Scenario({}), "hi")
    assert texts(talk(built(says, context_schema=Anybody).compile(), Scenario({}), "hi")[0]) == ["nobody"]
    old = graph_of(configured)
    for deps in ({"name": "Bob"}, {"configurable": {"name": "Bob"}}):
        assert texts(talk(old, Scenario({}), "hi", deps=deps)[0]) == ["Bob"]
    with pytest.raises(Refused, match=r"Customer.*context_schema"):
        talk(old, Scenario({}), "hi", deps=Customer("Ann"))


class Asked(TypedDict):
    question: str
    answer: str


@entrypoint()
def workflow(given: Any) -> Any:
    return given


@pytest.mark.parametrize(
    ("agent", "what"),
    [
        (graph_of(lambda state: {}, Asked), "the graph input has no `messages` (it has answer, question)"),
        (workflow, "@entrypoint"),
        (RunnableLambda(len), "RunnableLambda"),
        (RunnableLambda(len) | MODEL, "RunnableSequence"),
        (get_order, "StructuredTool"),
        (StateGraph(MessagesState), "the StateGraph cannot be compiled"),
    ],
)
def test_what_cannot_be_played_is_refused_in_words(agent: Any, what: str) -> None:
    assert FRAMEWORK.matches(agent)
    with pytest.raises(Refused) as caught:
        talk(agent, Scenario({}), "hi")
    assert what in str(caught.value)


def test_a_version_whose_tools_are_not_met_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "is_hooked", lambda _: False)
    with pytest.raises(Refused) as caught:
        talk(graph_of(_asynchronous), Scenario({}), "hi")
    what = f"langgraph {version('langgraph')} has no BaseTool.run and arun (agenteval supports"
    assert str(caught.value).startswith(what)


@pytest.mark.parametrize("other", [len, "text", MODEL, object()])
def test_what_is_no_graph_is_left_alone(other: Any) -> None:
    assert not FRAMEWORK.matches(other)


# ── through the command line ─────────────────────────────────────────────────────────────────────

SHOP = '''
import threading
from pathlib import Path
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from typing_extensions import TypedDict

@tool
def get_order(order_id: str) -> str:
    """Look an order up."""
    with Path("marks").open("a") as marks:
        marks.write("get_order")
    return "really shipped"

def model(state):
    last = state["messages"][-1]
    if last.type == "tool":
        return {"messages": [AIMessage(f"{len(state['messages'])}: it is {last.content}")]}
    call = {"name": "get_order", "args": {"order_id": last.content}, "id": str(len(state["messages"]))}
    return {"messages": [AIMessage("", tool_calls=[call])]}

builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("tools", ToolNode([get_order]))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition)
builder.add_edge("tools", "model")
remembers = builder.compile(checkpointer=InMemorySaver())

def misspells(state):
    said = model(state)
    for call in said["messages"][0].tool_calls:
        call["name"] = "get_ordr"
    return said

other = StateGraph(MessagesState)
other.add_node("model", misspells)
other.add_node("tools", ToolNode([get_order]))
other.add_edge(START, "model")
other.add_conditional_edges("model", tools_condition)
other.add_edge("tools", "model")
asks_for_none = other.compile()

def make_graph():
    return builder.compile()

async def make_later():
    return builder.compile()

class Bot:
    def __init__(self):
        self.graph = builder.compile()

bot = Bot()

def of(node, state=MessagesState):
    made = StateGraph(state)
    made.add_node("node", node)
    made.add_edge(START, "node")
    return made.compile()

def guesses(state):
    return {"messages": [AIMessage("1: it is shipped")]}

def in_thread(state):
    said = []
    thread = threading.Thread(target=lambda: said.append(get_order.invoke({"order_id": "7"})))
    thread.start()
    thread.join()
    return {"messages": [AIMessage(f"1: it is {said[0]}")]}

def waits(state):
    return {"messages": [AIMessage(interrupt("Refund 10 EUR?"))]}

def fails(state):
    raise LookupError("no such customer")

def configured(state, config: RunnableConfig):
    return {"messages": [AIMessage(f"1: it is {config['configurable']['status']}")]}

def make_deps():
    return {"status": "shipped"}

class Question(TypedDict):
    question: str
    answer: str

def answers(state):
    return {"answer": "1: it is " + get_order.invoke({"order_id": state["question"]})}

guesses, in_thread, waits, fails, configured = map(of, (guesses, in_thread, waits, fails, configured))
question = of(answers, Question)

def ask(message: str) -> str:
    return question.invoke({"question": message})["answer"]
'''

SUITE = """
id: order
turns:
  - {user: A-7, expect: {output: {contains: [it is shipped]}}}
tools: {get_order: {returns: shipped}}
"""


class Done(NamedTuple):
    code: int
    said: str
    turns: list[dict[str, Any]]
    marks: str


def run(folder: Path, target: str, suite: str = SUITE, more: str = "") -> Done:
    """What a run does with an agent of ``SHOP``."""
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    (folder / "order.yaml").write_text(suite, encoding="utf-8")
    config = f"agent: {{name: shop, target: {target}}}\nmetrics: []\ninclude: [order.yaml]\n{more}"
    (folder / "agenteval.yaml").write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "agenteval", "run", "--report", "json=results.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    results, marks = folder / "results.json", folder / "marks"
    told = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else {"scenarios": []}
    turns = [turn for each in told["scenarios"] for sample in each["samples"] for turn in sample["turns"]]
    said = " ".join((done.stdout + done.stderr).split())
    return Done(done.returncode, said, turns, marks.read_text(encoding="utf-8") if marks.exists() else "")


TWO_TURNS = """
id: order
turns:
  - {user: A-7, expect: {output: {contains: ["3: it is shipped"]}}}
  - user: A-8
    expect:
      output: {contains: ["7: it is lost"]}
      tool_calls: {match: strict, calls: [{name: get_order, args: {order_id: A-8}}]}
tools:
  get_order: {sequence: [{returns: shipped}, {returns: lost}]}
"""


@pytest.mark.parametrize("name", ["remembers", "builder", "make_graph", "make_later", "bot.graph"])
def test_a_graph_is_an_agent_whatever_it_is_made_by(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, f'"shop.py:{name}"', TWO_TURNS, "epochs: 3\n")
    assert (done.code, done.marks) == (0, ""), done.said
    assert [call["args"] for turn in done.turns for call in turn["tool_calls"]] == [
        {"order_id": "A-7"},
        {"order_id": "A-8"},
    ] * 3


def test_a_graph_that_does_not_look_is_red(tmp_path: Path) -> None:
    done = run(tmp_path, '"shop.py:guesses"', TWO_TURNS)
    assert (done.code, done.marks) == (1, ""), done.said
    assert "turn 1" in done.said


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("in_thread", 0, "PASSED"),
        ("waits", 3, "the agent is waiting for human input (interrupt: Refund 10 EUR?)"),
        ("fails", 1, "agent_error: LookupError: no such customer (shop.py:"),
        ("question", 2, "agenteval.yaml:1:21: the graph input has no `messages` (it has answer, question)"),
        ("get_order", 2, "agenteval.yaml:1:21: unsupported LangChain target: StructuredTool"),
    ],
)
def test_what_a_run_says(tmp_path: Path, name: str, code: int, said: str) -> None:
    done = run(tmp_path, f'"shop.py:{name}"')
    assert (done.code, done.marks) == (code, ""), done.said
    assert said in done.said


def test_a_call_of_a_tool_that_nobody_has_is_red(tmp_path: Path) -> None:
    """Whatever the agent makes of the error that the framework gives it; with its tool it is green."""
    suite = SUITE.replace("it is shipped", "it is")
    assert run(tmp_path, '"shop.py:remembers"', suite).code == 0
    done = run(tmp_path, '"shop.py:asks_for_none"', suite)
    assert (done.code, done.marks) == (1, ""), done.said
    assert "called 'get_ordr', which is not among the tools: get_order" in done.said


def test_deps_of_a_graph(tmp_path: Path) -> None:
    done = run(tmp_path, '{object: "shop.py:configured", deps: "shop.py:make_deps"}')
    assert done.code == 0, done.said


NOTHING_MOCKED = "id: order\nturns:\n  - {user: A-7, expect: {output: {contains: [it is really shipped]}}}\n"


def test_the_real_tool_runs_only_where_it_is_left_to_the_agent(tmp_path: Path) -> None:
    refused = run(tmp_path, '"shop.py:remembers"', NOTHING_MOCKED)
    assert (refused.code, refused.marks) == (2, ""), refused.said
    assert "the agent called the tool 'get_order', which is not mocked" in refused.said
    done = run(tmp_path, '"shop.py:remembers"', NOTHING_MOCKED, "unmocked_tools: passthrough\n")
    assert (done.code, done.marks) == (0, "get_order"), done.said
    (call,) = done.turns[0]["tool_calls"]
    assert (call["args"], call["result"], call["observed"]) == ({"order_id": "A-7"}, "really shipped", True)


def test_a_plain_function_around_a_graph(tmp_path: Path) -> None:
    """Its tools are met as those of a graph beside it are, and may be intercepted as well."""
    compared = 'compare: [{name: plain, target: "shop.py:ask"}]\n'
    done = run(tmp_path, '"shop.py:remembers"', more=compared)
    assert (done.code, done.marks) == (0, ""), done.said
    assert [call["name"] for turn in done.turns for call in turn["tool_calls"]] == ["get_order"] * 2
    intercepted = '"shop.py:ask", intercept: {get_order: "shop.py:get_order.func"}'
    done = run(tmp_path, intercepted)
    assert (done.code, done.marks, len(done.turns[0]["tool_calls"])) == (0, "", 1), done.said


def test_a_plain_function_around_a_graph_with_a_bug_is_red(tmp_path: Path) -> None:
    forbidden = SUITE.replace("output: {contains: [it is shipped]}", "tool_calls: {forbidden: [get_order]}")
    done = run(tmp_path, '"shop.py:ask"', forbidden.replace("[get_order]", "[{name: get_order}]"))
    assert (done.code, done.marks) == (1, ""), done.said
    assert "turn 1" in done.said


# ── what is known of its calls ───────────────────────────────────────────────────────────────────


def seen(agent: Any, *messages: str, own: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return replies(agent, talking.Scenario(own, get_order="shipped", find="it"), *messages)


def looped(node: Any, model: Any = MODEL) -> Any:
    """A graph of a model and a node that carries out its calls."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("carries_out", node)
    graph.add_edge(START, "model")
    ends = {"tools": "carries_out", "__end__": "__end__"}
    graph.add_conditional_edges("model", tools_condition, ends)
    graph.add_edge("carries_out", "model")
    return graph.compile()


def by_hand(call: Callable[[dict[str, Any]], Any], **more: Any) -> Any:
    def node(state: Any) -> Any:
        asked = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(call(each), tool_call_id=each["id"], **more) for each in asked]}

    return node


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    @tool
    def find(x: int, state: Annotated[dict[str, Any], InjectedState], deep: bool = True) -> str:
        """Finds."""
        RAN.append(x)
        return "real"

    model = calls_then(lambda _: "done", ("find", "c", {"x": "3"}))
    (reply,) = seen(create_react_agent(model, [find]), "a")
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert made(reply) == [("find", {"x": "3"})]
    (reply,) = seen(looped(ToolNode([get_order])), "a")
    assert (reply["lists_tools"], made(reply)) == (False, [("get_order", {"order_id": "a"})])


def test_a_tool_that_neither_the_graph_nor_the_scenario_has_is_unknown_whatever_else_the_graph_runs() -> None:
    asks_for_none = calls_then(lambda _: "done", ("get_ordr", "c", {"order_id": "7"}))
    for agent in (
        looped(ToolNode([get_order]), asks_for_none),
        create_react_agent(asks_for_none, [get_order]),
    ):
        (reply,) = seen(agent, "a")
        assert reply["unknown_tools"] == ["get_ordr"]
    answers_itself = looped(by_hand(lambda call: "by hand"), asks_for_none)
    (reply,) = seen(answers_itself, "a")
    assert (reply["unknown_tools"], len(made(reply))) == ([], 1)


def test_a_node_that_calls_a_tool_asks_the_scenario_whatever_it_adds() -> None:
    @tool
    def find(x: int, user: str) -> str:
        """Finds."""
        RAN.append(x)
        return "real"

    model = calls_then(lambda _: "done", ("find", "c", {"x": 3}))
    (reply,) = seen(looped(by_hand(lambda call: find.invoke({**call["args"], "user": "u"})), model), "a")
    assert made(reply) == [("find", {"x": 3, "user": "u"})]


@pytest.mark.parametrize("status", ["success", "error"])
def test_a_call_that_a_node_carries_out_by_hand_is_neither_answered_nor_an_attempt(status: str) -> None:
    """The call stands in the messages, and the scenario was not asked: its mock did not answer."""
    node = by_hand(lambda call: get_order.func(**call["args"]), status=status)  # type: ignore[attr-defined]
    scenario = talking.Scenario(get_order="shipped")
    (reply,) = replies(looped(node), scenario, "a")
    assert RAN == ["a"]
    RAN.clear()
    assert (scenario.seen, reply["lists_tools"]) == ([], False)
    assert (made(reply), attempted(reply)) == ([("get_order", {"order_id": "a"})], [])
    (call,) = [call for step in parse_steps(reply["messages"]) for call in step.tool_calls]
    assert (call.observed, call.result and call.result.value) == (True, "real a")


@newest
def test_a_call_that_middleware_refuses_or_a_person_is_asked_for_is_attempted() -> None:
    from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call

    @wrap_tool_call
    def refuses(request: Any, handler: Any) -> Any:
        return ToolMessage("not now", status="error", tool_call_id=request.tool_call["id"])

    @wrap_tool_call
    def answers(request: Any, handler: Any) -> Any:
        return ToolMessage("from a cache", tool_call_id=request.tool_call["id"])

    asks_person = HumanInTheLoopMiddleware(interrupt_on={"get_order": True})
    for middleware, tried in ((refuses, ["get_order"]), (answers, []), (asks_person, ["get_order"])):
        graph = create_agent(MODEL, [get_order], middleware=[middleware], checkpointer=InMemorySaver())
        (reply,) = seen(graph, "a")
        assert attempted(reply) == tried
        assert len(made(reply)) == 1 - len(tried)


def test_an_agent_within_a_tool_that_is_left_to_the_agent_is_followed() -> None:
    @tool
    def research(question: str) -> str:
        """Asks another agent."""
        inner = create_react_agent(MODEL, [get_order])
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)

    model = calls_then(lambda _: "done", ("research", "c", {"question": "q"}))
    (reply,) = seen(create_react_agent(model, [research]), "a", own=("research",))
    assert made(reply) == [("research", {"question": "q"}), ("get_order", {"order_id": "q"})]
    assert reply["unplaced"] == []


def test_what_runs_at_the_provider_is_a_call_where_it_is_named_and_noted_where_not() -> None:
    def says(messages: Any) -> Any:
        named = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}
        unnamed = {"type": "web_search_call", "id": "s", "status": "completed"}
        block = named if messages[-1].content == "named" else unnamed
        return AIMessage([block, {"type": "text", "text": "found"}])

    named, unnamed = seen(create_react_agent(Scripted(says=says), [get_order]), "named", "unnamed")
    assert (made(named), named["unplaced"]) == ([("web_search", {"q": 1})], [])
    assert (made(unnamed), unnamed["unplaced"]) == (
        [],
        ["unsupported block 'web_search_call' in a message"],
    )
