"""Agents of the OpenAI Agents SDK as they are, against the real package. No real tool may leave its mark.

``.ci/frameworks.py openai_agents`` makes the environment."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.run")

from agents import (
    Agent,
    AgentHooks,
    AsyncComputer,
    Computer,
    ComputerTool,
    FunctionTool,
    GuardrailFunctionOutput,
    MaxTurnsExceeded,
    Model,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    Usage,
    WebSearchTool,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.agent import AgentBase
from agents.mcp import MCPServerStdio
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel

from agenteval.agentside.frameworks.openai_agents import FRAMEWORK
from agenteval.agentside.frameworks.seam import MORE, Refused, Tool, Waits
from agenteval.agentside.world import World
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
from tests.support.kit import Project, failed_checks

APPROVES = any(each.name == "needs_approval" for each in fields(FunctionTool))


@pytest.fixture(autouse=True)
def no_real_tool_runs() -> Any:
    RAN.clear()
    yield
    assert RAN == []


# ── a scripted model ─────────────────────────────────────────────────────────────────────────────


def words(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[content]
    )


class Turn:
    """What the model sees: what was said last, what tools gave since, and how much there is in all."""

    def __init__(self, system: str, items: list[Any]) -> None:
        self.system = system
        said = [at for at, item in enumerate(items) if item.get("role") == "user"]
        self.said, self.count, self.turn = items[said[-1]]["content"], len(items), len(said)
        outputs = [item["output"] for item in items[said[-1] :] if item.get("type") == "function_call_output"]
        self.results = [each for each in outputs if '{"assistant"' not in str(each)]

    def call(self, name: str, number: int = 0, **args: Any) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(
            type="function_call", call_id=f"c{self.count}-{number}", name=name, arguments=json.dumps(args)
        )


class Scripted(Model):
    def __init__(self, says: Callable[[Turn], Any]) -> None:
        self.says = says

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        items = input if isinstance(input, list) else [{"role": "user", "content": input}]
        said = self.says(Turn(system_instructions or "", items))
        output = [
            words(each) if isinstance(each, str) else each
            for each in ([said] if not isinstance(said, list) else said)
        ]
        return ModelResponse(
            output=output, usage=Usage(1, input_tokens=10, output_tokens=2), response_id=None
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def agent(says: Callable[[Turn], Any], *tools: Any, name: str = "A", **more: Any) -> Agent[Any]:
    return Agent(name=name, model=Scripted(says), tools=[*tools], **more)


def calls_then_tells(*names: str) -> Callable[[Turn], Any]:
    def says(turn: Turn) -> Any:
        if turn.results:
            return f"{turn.turn}: {' and '.join(map(str, turn.results))}"
        return [turn.call(name, at, key=turn.said) for at, name in enumerate(names)]

    return says


def real(name: str, **options: Any) -> FunctionTool:
    def run(key: str) -> str:
        RAN.append(name)
        return f"real {name}"

    return function_tool(run, name_override=name, description_override=f"Does {name}.", **options)


look = real("look")


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def test_two_conversations_at_once_have_their_own_tools_and_their_own_history() -> None:
    one = agent(calls_then_tells("look"), look)
    scenarios = Scenario(look="x"), Scenario(look={"y": 1})

    async def both() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(saying(FRAMEWORK, one, each, "a", "b") for each in scenarios))

    first, second = asyncio.run(both())
    assert [answer(each) for each in first] == ["1: x", "2: x"]
    assert [answer(each) for each in second] == ['1: {"y": 1}', '2: {"y": 1}']
    assert calls(second[1]) == [("look", {"key": "b"}, '{"y": 1}')]
    assert scenarios[0].seen == [("look", {"key": "a"}), ("look", {"key": "b"})]
    assert [used(each) for each in first] == [(2, 20, 4, 0)] * 2


def test_parallel_calls_are_one_step() -> None:
    (reply,) = say(
        FRAMEWORK,
        agent(calls_then_tells("look", "find"), look, real("find")),
        Scenario(look="1", find="2"),
        "a",
    )
    assert [len(each.get("tool_calls", ())) for each in reply["messages"]] == [2, 0, 0, 0]
    assert answer(reply) == "1: 1 and 2"


def test_an_error_reaches_the_model_as_its_author_wants_it() -> None:
    told = real("look", failure_error_function=lambda context, error: f"oh, {error}")
    assert (
        answer(say(FRAMEWORK, agent(calls_then_tells("look"), told), Scenario(look=failed("gone")), "a")[0])
        == "1: oh, gone"
    )
    usual = answer(
        say(FRAMEWORK, agent(calls_then_tells("look"), look), Scenario(look=failed("gone")), "a")[0]
    )
    assert usual == "1: gone"
    raises = agent(calls_then_tells("look"), real("look", failure_error_function=None))
    with pytest.raises(Exception, match="gone"):
        say(FRAMEWORK, raises, Scenario(look=failed("gone")), "a")


def test_a_tool_that_is_left_to_the_agent_runs() -> None:
    (reply,) = say(FRAMEWORK, agent(calls_then_tells("look"), look), Scenario(own=["look"]), "a")
    assert answer(reply) == "1: real look"
    assert RAN == ["look"]
    RAN.clear()


@pytest.mark.skipif(not APPROVES, reason="earlier releases look for tools before they call hooks")
def test_a_tool_that_a_hook_adds_is_answered() -> None:
    class Adds(AgentHooks):  # type: ignore[type-arg]
        async def on_start(self, context: Any, agent: Any) -> None:
            if not agent.tools:
                agent.tools.append(look)

    assert (
        answer(say(FRAMEWORK, agent(calls_then_tells("look"), hooks=Adds()), Scenario(look="x"), "a")[0])
        == "1: x"
    )


def test_what_an_agent_has_is_known_before_a_run() -> None:
    below = agent(calls_then_tells("find"), real("find"), name="Below")
    other = agent(calls_then_tells("sell"), real("sell"), name="Other")
    top = agent(
        calls_then_tells(),
        look,
        WebSearchTool(),
        below.as_tool("ask", "asks"),
        name="Top",
        instructions="Be kind.",
    )
    top.handoffs = [handoff(other, tool_name_override="over")]
    other.handoffs = [top]
    tools = FRAMEWORK.tools(top)
    assert [(tool.name, tool.hosted) for tool in tools] == [
        ("look", False),
        ("web_search", True),
        ("ask", False),
        ("sell", False),
        ("find", False),
    ]
    assert [tool.name for tool in tools if tool.is_agent] == ["ask"]
    assert isinstance(tools[0], Tool)
    assert tools[0].description == "Does look."


def test_a_tool_of_a_class_of_its_own_and_one_that_was_copied_are_answered() -> None:
    class Looks(FunctionTool):
        def __init__(self) -> None:
            super().__init__("look", "Looks.", look.params_json_schema, self.on_invoke_tool)

        async def on_invoke_tool(self, context: RunContextWrapper[Any], arguments: str) -> str:
            RAN.append("look")
            return "real"

    for tool in (Looks(), copy.copy(look), copy.deepcopy(look), replace(look)):
        scenario = Scenario(look="x")
        (reply,) = replies(agent(calls_then_tells("look"), tool), scenario, "a")
        assert (answer(reply), made(reply)) == ("1: x", [("look", {"key": "a"})])
        assert scenario.seen == [("look", {"key": "a"})]


def test_the_guards_of_a_tool_see_it_as_it_is() -> None:
    wrapped = getattr(look, "__wrapped__", None)
    assert wrapped is None or wrapped.__name__ == "run"
    assert look.on_invoke_tool is look.on_invoke_tool


@pytest.mark.skipif(not APPROVES, reason="earlier releases do not give the function of a tool")
def test_arguments_that_do_not_fit_are_refused_as_the_sdk_refuses_them() -> None:
    told = real("look", failure_error_function=lambda context, error: f"{type(error).__name__}: {error}")

    def says(turn: Turn) -> Any:
        return str(turn.results[0]) if turn.results else turn.call("look", word="a")

    (reply,) = replies(agent(says, told), Scenario(look="x"), "a")
    assert answer(reply).startswith(
        "ModelBehaviorError: Invalid JSON input for tool look: 1 validation error"
    )
    assert (made(reply), attempted(reply)) == ([], ["look"])
    with pytest.raises(Exception, match="1 validation error"):
        say(FRAMEWORK, agent(says, real("look", failure_error_function=None)), Scenario(look="x"), "a")


@pytest.mark.skipif(not APPROVES, reason="needs a recent release")
def test_shells_patches_and_custom_tools_are_answered() -> None:
    from agents import ApplyPatchTool, CustomTool, ShellTool
    from openai.types.responses import (
        ResponseApplyPatchToolCall,
        ResponseCustomToolCall,
        ResponseFunctionShellToolCall,
    )

    class Editor:
        def create_file(self, operation: Any) -> None:
            RAN.append("editor")

        update_file = delete_file = create_file

    async def shout(context: Any, written: str) -> str:
        RAN.append("shout")
        return "real"

    operation = {"type": "create_file", "path": "a.py", "diff": "+a"}
    asked: dict[str, Any] = {
        "shell": ResponseFunctionShellToolCall(
            id="s", call_id="c1", type="shell_call", status="completed", action={"commands": ["rm -r /"]}
        ),
        "apply_patch": ResponseApplyPatchToolCall(
            id="p", call_id="c2", type="apply_patch_call", status="completed", operation=operation
        ),
        "shout": ResponseCustomToolCall(call_id="c3", type="custom_tool_call", name="shout", input="hey"),
    }
    tools = [
        ShellTool(executor=lambda request: RAN.append("shell")),
        ApplyPatchTool(editor=Editor()),
        CustomTool("shout", "Shouts.", shout),
    ]
    arguments = {"shell": {"commands": ["rm -r /"]}, "apply_patch": operation, "shout": {"input": "hey"}}
    heard: list[Any] = []

    class Once(Scripted):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
            heard[:] = [each for each in input if str(each.get("type")).endswith("_output")]
            output = [words("done") if heard else asked[input[0]["content"]]]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

    one: Agent[Any] = Agent(name="A", model=Once(lambda _: ""), tools=[*tools])
    assert [(each.name, each.hosted) for each in FRAMEWORK.tools(one)] == [(name, False) for name in asked]
    for name in asked:
        for given, words_of_it in (("done", "done"), (failed("no"), "no")):
            scenario = Scenario(**{name: given})
            (reply,) = replies(one, scenario, name)
            assert scenario.seen == [(name, arguments[name])]
            assert made(reply) == [(name, arguments[name])]
            assert words_of_it in json.dumps(heard)


def test_a_computer_that_a_function_hands_to_an_agent_does_nothing_itself() -> None:
    def does(*_: Any, **__: Any) -> Any:
        RAN.append("computer")

    async def does_later(*_: Any, **__: Any) -> Any:
        RAN.append("computer")

    names = ("screenshot", "click", "double_click", "scroll", "type", "wait", "move", "keypress", "drag")
    for base, function in ((Computer, does), (AsyncComputer, does_later)):
        members: dict[str, Any] = dict.fromkeys(names, function)
        made_of = type("Desktop", (base,), {**members, "environment": "mac", "dimensions": (1, 1)})
        scenario, computer = Scenario(computer_use_preview="shot"), made_of()

        async def use(computer: Any = computer, scenario: Scenario = scenario) -> list[Any]:
            world = World()
            with world.turn(scenario):
                found = [computer.click(1, 2, "left"), computer.screenshot()]
                found = [await each if inspect.isawaitable(each) else each for each in found]
            world.close()
            return found

        assert asyncio.run(use()) == [None, "shot"]
        click = {"type": "click", "x": 1, "y": 2, "button": "left"}
        assert scenario.seen == [
            ("computer_use_preview", click),
            ("computer_use_preview", {"type": "screenshot"}),
        ]


# ── agents among themselves ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("explicit", [False, True])
def test_who_takes_over_has_the_next_turn_and_its_tools_are_answered(explicit: bool) -> None:
    other = agent(calls_then_tells("look"), look, name="Other")
    handed: list[str] = []
    over = (
        handoff(other, on_handoff=lambda context: handed.append("over"), tool_name_override="over")
        if explicit
        else other
    )
    top = agent(
        lambda turn: turn.call("over" if explicit else "transfer_to_other"), name="Top", handoffs=[over]
    )
    first, second = say(FRAMEWORK, top, Scenario(look="x"), "a", "b")
    assert calls(first) == [("look", {"key": "a"}, "x")]
    speakers = [each["agent"] for each in first["messages"] if each["role"] == "assistant"]
    assert speakers == ["Top", "Other", "Other"]
    assert (answer(second), second["agent"]) == ("2: x", "Other")
    assert handed == ["over"] * explicit


def test_an_agent_that_is_a_tool_runs_and_its_tools_are_answered() -> None:
    session = SQLiteSession("shared")
    below = agent(calls_then_tells("look"), look, name="Below")
    top = agent(calls_then_tells("ask"), below.as_tool("ask", "asks", session=session), name="Top")
    top.model = Scripted(lambda turn: turn.results[0] if turn.results else turn.call("ask", input="x"))
    scenario = Scenario(look="x")
    first, again = say(FRAMEWORK, top, scenario, "a"), say(FRAMEWORK, top, Scenario(look="y"), "b")
    assert calls(first[0]) == [("ask", {"input": "x"}, "1: x")]
    assert scenario.seen == [("ask", "itself"), ("look", {"key": "x"})]
    assert answer(again[0]) == "1: y"  # and not the second turn of a session that all share
    assert used(first[0])[0] == 4


def test_an_agent_that_is_a_tool_can_be_mocked_and_then_nothing_in_it_runs() -> None:
    below = agent(calls_then_tells("look"), look, name="Below")
    top = agent(calls_then_tells(), below.as_tool("ask", "asks"), name="Top")
    top.model = Scripted(lambda turn: turn.results[0] if turn.results else turn.call("ask", input="x"))
    scenario = Scenario(ask="asked", look="x")
    (reply,) = say(FRAMEWORK, top, scenario, "a")
    assert (answer(reply), scenario.seen) == ("asked", [("ask", {"input": "x"})])
    assert used(reply)[0] == 2


def test_an_agent_that_a_tool_runs_is_played_in_a_bare_thread_too() -> None:
    below = agent(calls_then_tells("look"), look, name="Below")
    assert FRAMEWORK.tools(below) == [Tool("look", "Does look.", look.params_json_schema)]

    @function_tool
    async def nested(key: str) -> str:
        return str((await Runner.run(below, key)).final_output)

    @function_tool
    def threaded(key: str) -> str:
        said: list[str] = []
        thread = threading.Thread(
            target=lambda: said.append(asyncio.run(Runner.run(below, key)).final_output)
        )
        thread.start()
        thread.join()
        return said[0]

    known = FRAMEWORK.tools(agent(calls_then_tells(), nested))
    assert [each.name for each in known] == ["nested", MORE.name]  # a mock of `look` is no typo

    async def talk(name: str) -> tuple[Any, str]:
        one = Talk(FRAMEWORK, agent(calls_then_tells(name), nested, threaded), Scenario(own=[name], look="x"))
        return answer(await one.say("a")), one.fault

    for name in ("nested", "threaded"):
        assert asyncio.run(talk(name)) == ("1: 1: x", "")


# ── what a turn may end with ─────────────────────────────────────────────────────────────────────


def test_a_guardrail_that_trips_is_a_refusal_and_the_conversation_goes_on() -> None:
    @input_guardrail
    async def homework(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="sum" in given[-1]["content"])

    @output_guardrail
    async def secrets(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="key" in output)

    one = agent(lambda turn: turn.said, input_guardrails=[homework], output_guardrails=[secrets])
    replies = say(FRAMEWORK, one, Scenario(), "a sum", "a key", "hello")
    told = [each["messages"][-1].get("refusal") or answer(each) for each in replies]
    assert told == [
        "Stopped by the input guardrail 'homework'.",
        "Stopped by the output guardrail 'secrets'.",
        "hello",
    ]


def test_a_structured_answer_is_its_json() -> None:
    class Order(BaseModel):
        id: int

    structured = agent(lambda turn: '{"id": 7}', output_type=Order)
    assert answer(say(FRAMEWORK, structured, Scenario(), "a")[0]) == '{"id": 7}'
    listed = agent(lambda turn: '{"response": [1, 2]}', output_type=list[int])
    assert answer(say(FRAMEWORK, listed, Scenario(), "a")[0]) == "[1, 2]"
    stops = agent(calls_then_tells("look"), look, tool_use_behavior="stop_on_first_tool")
    assert answer(say(FRAMEWORK, stops, Scenario(look={"id": 7}), "a")[0]) == '{"id": 7}'


def test_too_many_turns_are_the_agents_error_with_what_it_did() -> None:
    one = agent(lambda turn: [f"Try {turn.count}.", turn.call("look", key="x")], look)
    with pytest.raises(MaxTurnsExceeded) as caught:
        say(FRAMEWORK, one, Scenario(look="x"), "a", deps={"max_turns": 2})
    partial = caught.value.agenteval_partial  # type: ignore[attr-defined]
    assert [each["content"] for each in partial["messages"]] == ["Try 1.", "x", "Try 4.", "x"]
    assert used(partial)[0] == 2


@pytest.mark.skipif(not APPROVES, reason="needs approvals")
def test_who_needs_an_approval_waits() -> None:
    one = agent(calls_then_tells("look"), real("look", needs_approval=True))
    with pytest.raises(Waits, match=r"the agent is waiting for human input: approval of look"):
        say(FRAMEWORK, one, Scenario(look="x"), "a")


# ── what it needs, and what is refused ───────────────────────────────────────────────────────────


@dataclass
class Shop:
    name: str


def test_deps_are_the_context_or_what_a_run_is_given() -> None:
    def instructions(context: RunContextWrapper[Any], agent: Any) -> str:
        return str(context.context.name)

    one = agent(lambda turn: turn.system, instructions=instructions)
    assert answer(say(FRAMEWORK, one, Scenario(), "a", deps=Shop("x"))[0]) == "x"
    bare: Agent[Any] = Agent(name="B", instructions=instructions)
    config = RunConfig(model=Scripted(lambda turn: turn.system))
    deps = {"context": Shop("y"), "run_config": config}
    assert answer(say(FRAMEWORK, bare, Scenario(), "a", deps=deps)[0]) == "y"
    plain: Agent[Any] = Agent(name="C", instructions="z")
    assert answer(say(FRAMEWORK, plain, Scenario(), "a", deps=config)[0]) == "z"


def test_what_cannot_be_played_is_refused_in_words() -> None:
    def refusal(one: Any) -> str:
        assert FRAMEWORK.matches(one)
        with pytest.raises(Refused) as caught:
            say(FRAMEWORK, one, Scenario(), "a")
        return caught.value.what

    assert refusal(Agent[Shop](name="S")) == "the agent 'S' needs a context of type Shop"
    assert refusal(AgentBase(name="R")).endswith("an object of type AgentBase")  # as a RealtimeAgent is
    computer = agent(calls_then_tells(), ComputerTool.__new__(ComputerTool))
    assert "cannot be intercepted, so a scenario cannot mock it" in refusal(computer)
    assert not FRAMEWORK.matches(look)


# ── MCP ──────────────────────────────────────────────────────────────────────────────────────────

SERVER = """
from pathlib import Path
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server import MCPServer as Server
server = Server("shop")

@server.tool()
def look(key: str) -> str:
    Path("mark").write_text("ran")
    return "real"

server.run()
"""


def test_the_tools_of_an_mcp_server_are_answered(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    server = MCPServerStdio(
        {"command": sys.executable, "args": ["server.py"], "cwd": str(tmp_path)},
        client_session_timeout_seconds=60,
    )
    one = agent(calls_then_tells("look"), mcp_servers=[server])
    assert FRAMEWORK.tools(one) == [MORE]

    async def both() -> list[list[dict[str, Any]]]:
        scenarios = Scenario(look="x"), Scenario(look="y")
        return await asyncio.gather(*(saying(FRAMEWORK, one, each, "a", "b") for each in scenarios))

    assert [[answer(each) for each in replies] for replies in asyncio.run(both())] == [
        ["1: x", "2: x"],
        ["1: y", "2: y"],
    ]
    assert not (tmp_path / "mark").exists()


# ── what is known of its calls ───────────────────────────────────────────────────────────────────


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    def says(turn: Turn) -> Any:
        return "done" if turn.results else turn.call("look", key="a", extra=1)

    (reply,) = replies(agent(says, look), Scenario(look="x"), "a")
    assert (reply["lists_tools"], reply["unplaced"]) == (True, [])
    assert made(reply) == [("look", {"key": "a", "extra": 1})]

    class Own(Agent):
        def helps(self) -> None: ...

    own = Own(name="A", model=Scripted(lambda _: "hi"), tools=[look])
    assert [each["lists_tools"] for each in replies(own, Scenario(), "a")] == [False]


@pytest.mark.skipif(not APPROVES, reason="needs a recent release")
def test_a_call_that_a_guardrail_or_a_person_holds_back_is_attempted() -> None:
    from agents import ToolGuardrailFunctionOutput, tool_input_guardrail

    @tool_input_guardrail
    def refuses(_: Any) -> Any:
        return ToolGuardrailFunctionOutput.reject_content("not this one")

    guarded = real("look")
    guarded.tool_input_guardrails = [refuses]
    for held in (guarded, real("look", needs_approval=True)):
        (reply,) = replies(agent(calls_then_tells("look"), held), Scenario(look="x"), "a")
        assert (made(reply), attempted(reply)) == ([], ["look"])


def test_what_runs_at_the_provider_is_a_call_and_within_an_agent_as_a_tool_is_noted() -> None:
    from openai.types.responses import ResponseFunctionWebSearch

    action = {"type": "search", "query": "q"}
    search = ResponseFunctionWebSearch(id="w", type="web_search_call", status="completed", action=action)
    found = agent(lambda _: [search, "found"], WebSearchTool(), look, name="Below")
    (reply,) = replies(found, Scenario(), "a")
    assert [name for name, _ in made(reply)] == ["web_search"]
    assert (reply["lists_tools"], reply["unplaced"]) == (True, [])

    def asks_below(turn: Turn) -> Any:
        return turn.results[0] if turn.results else turn.call("ask", input="x")

    (reply,) = replies(agent(asks_below, found.as_tool("ask", "asks"), name="Top"), Scenario(), "a")
    assert made(reply) == [("ask", {"input": "x"})]
    assert reply["unplaced"] == ["'web_search' ran at the provider for an agent used as a tool"]


TELLING = """
from agents import Agent, Model, ModelResponse, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

class Scripted(Model):
    async def get_response(self, system_instructions, input, *_, **__):
        heard = [item["output"] for item in input if item.get("type") == "function_call_output"]
        if not heard:
            call = ResponseFunctionToolCall(type="function_call", call_id="c", name="look", arguments="{}")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text=SAYS, annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError

@function_tool
def look() -> str:
    "Looks."
    return "really"

agent = Agent(name="A", model=Scripted(), tools=[look])
"""


def test_an_agent_that_repeats_what_the_error_says_is_green_and_one_that_invents_is_red(
    project: Project,
) -> None:
    project.config()
    project.scenarios(
        "id: a\nturns: [Where is it?]\ntools: {look: {error: the warehouse is closed until Monday}}\n"
        "expect: {output: {contains: [closed until Monday]}}\n"
    )
    project.agent(TELLING.replace("SAYS", "f'Sorry: {heard[-1]}'"))
    done = project.run()
    assert done.code == 0, done.all
    project.agent(TELLING.replace("SAYS", "'It will arrive tomorrow.'"))
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "output.contains")}
