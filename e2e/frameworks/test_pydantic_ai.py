"""Agents of Pydantic AI as they are, against the real package, through the command line. Real tools leave a
mark, and none may."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

import pydantic_ai

from e2e.frameworks.talking import Scenario, agent_of, attempted, replies
from e2e.frameworks.talking import made as calls_made
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Request, answer, completion, respond_json

IS_2 = hasattr(pydantic_ai.exceptions, "ToolFailed")

BEGIN = """
from pathlib import Path
import pydantic
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.messages import *
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset, PrefixedToolset

def mark(name):
    with Path("marks").open("a", encoding="utf-8") as marks:
        marks.write(name + "\\n")

def get_order(order_id: str) -> dict:
    "Look an order up."
    mark("get_order")
    return {"status": "real"}

def cancel_order(order_id: str) -> dict:
    "Cancel an order."
    mark("cancel_order")
    return {"cancelled": "really"}

def said(messages):
    return [p.content for m in messages for p in m.parts if p.part_kind == "user-prompt"]

def results(messages):
    "What came back since the user spoke last."
    found = []
    for m in messages:
        for p in m.parts:
            if p.part_kind == "user-prompt":
                found = []
            elif p.part_kind in ("tool-return", "retry-prompt"):
                found.append(p.model_response() if p.part_kind == "retry-prompt" else p.model_response_str())
    return found

def scripted(*replies):
    "The n-th reply of a turn, by how many model replies the turn has had; the last is a function of results."
    def answer(messages, info):
        at = 0
        for m in messages:
            at = 0 if any(p.part_kind == "user-prompt" for p in m.parts) else at + (m.kind == "response")
        reply = replies[min(at, len(replies) - 1)]
        reply = reply(messages) if callable(reply) else reply
        parts = reply if isinstance(reply, list) else [reply]
        return ModelResponse(parts=[TextPart(p) if isinstance(p, str) else p for p in parts])
    return FunctionModel(answer)

def call(name, id=None, **args):
    return ToolCallPart(name, args, **({"tool_call_id": id} if id else {}))

def told(messages):
    return f"{len(said(messages))}: {' | '.join(results(messages))}"
"""


def made(project: Project, code: str, scenario: str, more: str = "", target: str = "agent.py:agent") -> None:
    project.agent(BEGIN + textwrap.dedent(code))
    project.config(f"agent: {{name: bot, target: {target}}}\nmetrics: []\n{more}", target="")
    project.scenarios(scenario)


def calls(project: Project) -> list[tuple[str, Any]]:
    return [(c["name"], c["args"]) for turn in project.sample()["turns"] for c in turn["tool_calls"]]


def marks(project: Project) -> list[str]:
    path = project.root / "marks"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def green(project: Project) -> None:
    done = project.run()
    assert done.code == 0, done.all


def test_two_conversations_at_once_have_a_world_each(project: Project) -> None:
    made(
        project,
        """
        look = lambda messages: call("get_order", order_id=str(said(messages)[-1]))
        agent = Agent(scripted(look, told), tools=[get_order])
        """,
        "scenarios:\n"
        + "".join(
            f"  - id: {name}\n    turns: [{name}-1, {name}-2]\n"
            "    tools: {get_order: {python: 'mocks.py:answer'}}\n"
            f"    expect: {{output: {{contains: ['1: {name}', '2: {name}']}}}}\n"
            for name in ("a", "b")
        ),
        "agent_concurrency: 2",
    )
    project.write(
        "scenarios/mocks.py",
        "import asyncio\nwaiting = {}\n\n"
        "async def answer(args, ctx):\n"
        "    await waiting.setdefault(ctx.turn, asyncio.Barrier(2)).wait()\n"
        "    return ctx.sample.scenario\n",
    )
    green(project)
    assert not marks(project)


def test_calls_of_one_reply_are_one_step_and_count_once(project: Project) -> None:
    made(
        project,
        """
        agent = Agent(scripted(
            ["Looking.", call("get_order", order_id="A"), call("get_order", order_id="B")], told,
        ), tools=[get_order])
        """,
        """
        id: parallel
        turns: [hello]
        tools: {get_order: {returns: {id: "${args.order_id}"}}}
        expect: {output: {contains: ['"A"', '"B"']}, limits: {steps: 2, tool_calls: 2}}
        """,
    )
    green(project)
    assert calls(project) == [("get_order", {"order_id": "A"}), ("get_order", {"order_id": "B"})]


def test_arguments_are_those_that_the_model_wrote(project: Project) -> None:
    """What the framework made of them, a date and a model of pydantic's, would be other values."""
    made(
        project,
        """
        import datetime

        class Line(pydantic.BaseModel):
            item: str
            amount: int = 1

        agent = Agent(scripted(call("order", on="2026-05-03", lines=[{"item": "tea"}]), told))

        @agent.tool_plain
        def order(on: datetime.date, lines: list[Line], note: str = "none") -> str:
            mark("order")
            return "real"
        """,
        """
        id: typed
        turns: [hello]
        tools: {order: {returns: done}}
        expect:
          tool_calls: {match: strict, calls: [{name: order, args: {on: "2026-05-03", lines: [{item: tea}]}}]}
          output: {contains: [done]}
        """,
    )
    green(project)
    assert len(calls(project)) == 1
    assert not marks(project)


def test_an_error_reaches_the_model_as_one(project: Project) -> None:
    made(
        project,
        """
        agent = Agent(scripted(call("get_order", order_id="A"), told), tools=[get_order])
        """,
        """
        id: error
        turns: [hello]
        tools: {get_order: {error: the shop is closed}}
        expect: {output: {contains: [the shop is closed]}}
        """,
    )
    green(project)
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert call["result"] == {"error": "the shop is closed"}


def test_structured_output_is_the_answer_and_no_tool(project: Project) -> None:
    made(
        project,
        """
        class Status(pydantic.BaseModel):
            status: str

        agent = Agent(scripted(
            call("get_order", order_id="A"), lambda m: call("final_result", status=results(m)[0]),
        ), tools=[get_order], output_type=Status)
        """,
        """
        id: structured
        turns: [hello]
        tools: {get_order: {returns: shipped}}
        expect: {tool_calls: {match: strict, calls: [{name: get_order}]}}
        """,
    )
    green(project)
    assert project.sample()["turns"][0]["agent"] == '{"status":"shipped"}'


def test_a_retry_of_the_frameworks_own_stays_and_an_unknown_tool_is_the_agents_fault(
    project: Project,
) -> None:
    made(
        project,
        """
        agent = Agent(
            scripted(call("get_order", order=1), call("get_order", order_id="A"), told), tools=[get_order]
        )
        lost = Agent(scripted(call("no_such_tool", order_id="A"), "Sorry."), tools=[get_order])
        """,
        """
        id: retry
        turns: [hello]
        tools: {get_order: {returns: shipped}}
        expect: {output: {contains: [shipped]}}
        """,
    )
    green(project)
    assert calls(project) == [("get_order", {"order": 1}), ("get_order", {"order_id": "A"})]

    project.config("agent: {name: bot, target: 'agent.py:lost'}\nmetrics: []\n", target="")
    project.scenarios("id: s\nturns: [hello]\ntools: {get_order: {returns: shipped}}\nchecks: none\n")
    assert project.run().code == 1
    assert [each["detector"] for each in project.sample()["findings"]] == ["unknown_tool"]


def test_what_happened_before_the_framework_gave_up_is_kept(project: Project) -> None:
    made(
        project,
        """
        agent = Agent(
            scripted(call("get_order", order_id="A"), call("get_order", wrong=1)), tools=[get_order]
        )
        """,
        """
        id: gave-up
        turns: [hello]
        tools: {get_order: {returns: shipped}}
        checks: none
        """,
    )
    done = project.run()
    assert done.code == 1, done.all
    assert "UnexpectedModelBehavior" in done.all
    assert calls(project)[:2] == [("get_order", {"order_id": "A"}), ("get_order", {"wrong": 1})]


def test_threads_of_a_tools_own_and_tools_left_to_the_agent(project: Project) -> None:
    made(
        project,
        """
        agent = Agent(scripted(
            [call("get_order", order_id="A"), call("cancel_order", order_id="A"), call("fails")], told,
        ), tools=[get_order, cancel_order])

        @agent.tool_plain
        async def fails() -> str:
            mark("fails")
            raise ModelRetry("not now")
        """,
        """
        id: through
        turns: [hello]
        tools: {get_order: {returns: shipped}}
        expect: {output: {contains: [shipped, really, not now]}}
        """,
        "unmocked_tools: passthrough",
    )
    green(project)
    assert sorted(marks(project)) == ["cancel_order", "fails"]
    observed = {c["name"]: c["observed"] for c in project.sample()["turns"][0]["tool_calls"]}
    assert observed == {"get_order": False, "cancel_order": True, "fails": True}


def test_tools_of_all_toolsets_are_known_and_answered(project: Project) -> None:
    code = """
        extra = FunctionToolset([cancel_order])
        agent = Agent(
            scripted([call("get_order", order_id="A"), call("cancel_order", order_id="A")], told),
            tools=[get_order], toolsets=[extra],
        )
        prefixed = Agent(
            scripted([call("shop_cancel_order", order_id="A")], told),
            toolsets=[PrefixedToolset(extra, "shop")],
        )
        """
    suite = """
        id: toolsets
        turns: [hello]
        tools: {get_order: {returns: shipped}, cancel_order: {returns: fine}}
        expect: {output: {contains: [shipped, fine]}}
        """
    made(project, code, suite)
    green(project)
    assert "its tools: get_order, cancel_order;" in project.call("validate").out
    made(project, code, suite.replace("cancel_order:", "cancel_ordr:"))
    assert "did you mean 'cancel_order'?" in project.run().err

    prefixed = "id: p\nturns: [hello]\ntools: {shop_cancel_order: {returns: fine}}\n"
    made(project, code, prefixed + "expect: {output: {contains: [fine]}}\n", target="agent.py:prefixed")
    green(project)
    assert not marks(project)


def test_an_approval_waits_for_a_person(project: Project) -> None:
    made(
        project,
        """
        from pydantic_ai import DeferredToolRequests
        agent = Agent(
            scripted(call("cancel_order", order_id="A")), output_type=[str, DeferredToolRequests],
            tools=[Tool(cancel_order, requires_approval=True)],
        )
        """,
        "id: waits\nturns: [hello]\ntools: {cancel_order: {returns: fine}}\nchecks: none\n",
    )
    done = project.run()
    assert done.code == 3, done.all
    assert "the agent is waiting for human input (approval of cancel_order)" in done.all
    assert not marks(project)


def test_dependencies_reach_what_is_left_of_the_agents_own(project: Project) -> None:
    code = """
        class Shop:
            name = "Tea & Co"

        agent = Agent(scripted(lambda m: str(m[0].instructions)), deps_type=Shop)

        @agent.instructions
        def greet(ctx: RunContext[Shop]) -> str:
            return f"You are at {ctx.deps.name}."
        """
    suite = "id: deps\nturns: [hello]\nexpect: {output: {contains: ['at Tea & Co']}}\n"
    made(project, code, suite)
    done = project.run()
    assert done.code == 2, done.all
    assert (
        "the agent needs `deps` of type Shop — set `target: {object: …, deps: file.py:make_deps}`" in done.err
    )
    made(project, code, suite, target="{object: 'agent.py:agent', deps: 'agent.py:Shop'}")
    green(project)


def test_a_model_for_tests_and_usage(project: Project) -> None:
    made(
        project,
        "agent = Agent(TestModel(), tools=[get_order, cancel_order], name='desk')\n",
        """
        id: all
        turns: [hello, again]
        tools: {get_order: {returns: shipped}, cancel_order: {returns: fine}}
        expect: {agents: [desk], tool_calls: {calls: [{name: get_order}, {name: cancel_order}]}}
        """,
    )
    green(project)
    first, second = (turn["usage"] for turn in project.sample()["turns"])
    assert (first["calls"], second["calls"]) == (2, 1)  # it calls no tool again
    assert not first["estimated"]
    assert 0 < first["output_tokens"] < 100
    assert not marks(project)


@pytest.mark.skipif(not IS_2, reason="1.x keeps them elsewhere")
def test_a_tool_of_the_providers_cannot_be_mocked(project: Project) -> None:
    made(
        project,
        """
        from pydantic_ai.capabilities import NativeTool
        from pydantic_ai.native_tools import WebSearchTool
        agent = Agent(TestModel(), tools=[get_order], capabilities=[NativeTool(WebSearchTool())])
        """,
        "id: hosted\nturns: [hello]\ntools: {web_search: {returns: []}}\nchecks: none\n",
    )
    done = project.run()
    assert done.code == 2, done.all
    assert "web_search" in done.err


ASKS = """
import asyncio, threading

inner = Agent(scripted(call("get_order", order_id="B"), told), tools=[get_order])
found = []

def in_a_thread(agent):
    def run():
        try:
            found.append(agent.run_sync("Check.").output)
        except BaseException as error:
            found.append(repr(error))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def checked(how):
    agent = Agent(scripted(call("get_order", order_id="A"), told), tools=[get_order])
    busy = []

    @agent.output_validator
    async def check(output: str) -> str:
        if not busy:
            busy.append(1)
            if how == "inner":
                await inner.run("Check.")
            elif how != "nothing":
                in_a_thread(inner if how == "inner_thread" else agent)
            busy.clear()
        return output

    return agent
"""
ASKS_SUITE = """
id: asks
turns: [hello]
tools: {get_order: {returns: shipped}}
expect: {output: {contains: [shipped]}}
"""


@pytest.mark.parametrize(("how", "order"), [("inner", "B"), ("inner_thread", "B"), ("self_thread", "A")])
@pytest.mark.parametrize("unmocked", ["fail", "passthrough"])
def test_a_run_within_a_run_is_of_the_same_conversation(
    project: Project, how: str, order: str, unmocked: str
) -> None:
    more = f"unmocked_tools: {unmocked}" if unmocked == "passthrough" else ""
    made(project, f"{ASKS}\nagent = checked('{how}')\n", ASKS_SUITE, more)
    green(project)
    made_calls = project.sample()["turns"][0]["tool_calls"]
    assert [call["args"] for call in made_calls] == [{"order_id": "A"}, {"order_id": order}]
    assert not marks(project)

    made(project, f"{ASKS}\nagent = checked('nothing')\n", ASKS_SUITE, more)
    green(project)
    assert len(project.sample()["turns"][0]["tool_calls"]) == 1


@pytest.mark.parametrize("tool", ["ask", "ask_in_a_thread"])
def test_what_a_tool_left_to_the_agent_runs_itself_is_met(project: Project, tool: str) -> None:
    code = """
async def ask(order_id: str) -> str:
    "Ask another agent."
    mark("ask")
    return (await inner.run("Check.")).output

def ask_in_a_thread(order_id: str) -> str:
    "Ask another agent."
    mark("ask_in_a_thread")
    in_a_thread(inner)
    return str(found)

asks = lambda tool: Agent(scripted(call(tool.__name__, order_id="A"), told), tools=[tool, get_order])
"""
    suite = "id: s\nturns: [hello]\ntools: {get_order: {returns: shipped}}\nchecks: none\n"
    made(project, f"{ASKS}{code}agent = asks({tool})\n", suite, "unmocked_tools: passthrough")
    green(project)
    assert marks(project) == [tool]
    made_calls = [(each["name"], each["args"]) for each in project.sample()["turns"][0]["tool_calls"]]
    assert made_calls == [(tool, {"order_id": "A"}), ("get_order", {"order_id": "B"})]


MADE_OF_IT = """
from pydantic_ai import TextOutput
def masked(text: str) -> str: return "so"
def counted(text: str) -> dict: return {"n": len(text)}
valid = Agent(scripted("shipped"))
valid.output_validator(masked)
text = Agent(scripted("shipped"), output_type=TextOutput(masked))
other = Agent(scripted("shipped"), output_type=TextOutput(counted))
plain = Agent(scripted("shipped"))
"""


@pytest.mark.parametrize(("agent", "answer"), [("valid", "so"), ("text", "so"), ("other", '{"n":7}')])
def test_the_answer_is_what_the_caller_of_run_gets(project: Project, agent: str, answer: str) -> None:
    suite = "id: out\nturns: [hello]\nexpect: {output: {not_contains: [shipped]}}\n"
    made(project, MADE_OF_IT, suite, target=f"agent.py:{agent}")
    green(project)
    assert project.sample()["turns"][0]["agent"] == answer

    made(project, MADE_OF_IT, suite, target="agent.py:plain")
    assert project.run().code == 1  # the model's own text is the answer where nothing is made of it


# ── what is known of its calls ───────────────────────────────────────────────────────────────────

SHOP = {"get_order": {"status": "shipped"}, "cancel_order": "ok"}


def seen(code: str, *messages: str, own: tuple[str, ...] = (), **tools: Any) -> list[dict[str, Any]]:
    return replies(agent_of(BEGIN + textwrap.dedent(code)), Scenario(own, **{**SHOP, **tools}), *messages)


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    code = """
    def find(ctx: RunContext[None], n: int, deep: bool = True) -> str: ...

    agent = Agent(scripted([call("find", n="3"), call("find", n="x")], told), tools=[find])
    """
    (reply,) = seen(code, "a", find="it")
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert (calls_made(reply), attempted(reply)) == (
        [("find", {"n": "3"})],
        ["find"],
    )  # the other does not fit
    own = """
    class Own(Agent):
        def look(self): ...

    agent = Own(scripted("hi"), tools=[get_order])
    """
    assert [each["lists_tools"] for each in seen(own, "a")] == [False]


def test_a_call_that_comes_with_the_answer_and_is_not_carried_out_is_attempted() -> None:
    code = """
    class Out(pydantic.BaseModel):
        text: str

    both = [call("final_result", text="hi"), call("get_order", order_id="1")]
    agent = Agent(scripted(both), tools=[get_order], output_type=Out, end_strategy="early")
    """
    (reply,) = seen(code, "a")
    assert (calls_made(reply), attempted(reply)) == ([], ["get_order"])


@pytest.mark.skipif(not IS_2, reason="needs 2.x")
def test_a_call_that_a_person_denies_is_attempted_and_one_that_a_hook_answers_is_not_known() -> None:
    code = """
    from pydantic_ai import DeferredToolResults, ToolDenied
    from pydantic_ai.capabilities import HandleDeferredToolCalls, Hooks
    from pydantic_ai.exceptions import SkipToolExecution

    def handler(answer):
        async def decides(ctx, requests):
            return DeferredToolResults(approvals={each.tool_call_id: answer for each in requests.approvals})
        return HandleDeferredToolCalls(handler=decides)

    hooks = Hooks()

    @hooks.on.before_tool_execute
    async def skips(ctx, *, call, tool_def, args):
        raise SkipToolExecution("known already")

    asks = scripted(call("cancel_order", order_id="1"), told)
    careful = Tool(cancel_order, requires_approval=True)
    denies = Agent(asks, tools=[careful], capabilities=[handler(ToolDenied("no"))])
    allows = Agent(asks, tools=[careful], capabilities=[handler(True)])
    skipping = Agent(asks, tools=[cancel_order], capabilities=[hooks])
    """
    for name, did, tried in (("denies", 0, 1), ("allows", 1, 0), ("skipping", 1, 0)):
        (reply,) = seen(code + f"agent = {name}\n", "a")
        assert (len(calls_made(reply)), len(attempted(reply))) == (did, tried), name


def test_an_output_function_is_noted() -> None:
    code = """
    async def hand_over(question: str) -> str:
        return "over"

    agent = Agent(scripted(call("final_result", question="q")), output_type=[hand_over], tools=[get_order])
    """
    (reply,) = seen(code, "a")
    assert reply["unplaced"] == [
        "the output function of 'final_result' ran, and its own calls are not recorded"
    ]


@pytest.mark.skipif(not IS_2, reason="needs 2.x")
def test_what_the_provider_called_is_a_call_of_that_name() -> None:
    code = """
    tool_args = {"order_id": "1"}
    listing = NativeToolCallPart("mcp_server:shop", {"action": "list_tools"}, "l")
    asked = {"action": "call_tool", "tool_name": "get_order", "tool_args": tool_args}
    searched = NativeToolCallPart("web_search", {"query": "q"}, "w")
    listed = NativeToolReturnPart("mcp_server:shop", {"tools": []}, "l")
    reply = [listing, listed, NativeToolCallPart("mcp_server:shop", asked, "c"), searched, "found"]
    agent = Agent(scripted(reply), tools=[cancel_order])
    """
    (reply,) = seen(code, "a")
    assert calls_made(reply) == [("get_order", {"order_id": "1"}), ("web_search", {"query": "q"})]
    assert not [each for each in reply["messages"] if each["role"] == "tool"]
    assert (attempted(reply), reply["unplaced"]) == ([], [])


ASKS_A_SERVER = """
import os
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

class Status(pydantic.BaseModel):
    status: str

provider = OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="none")
shop = Agent(OpenAIChatModel("m", provider=provider), tools=[get_order], output_type=Status)

async def wrapped(question: str):
    return (await shop.run(question)).output.status
"""


@pytest.mark.parametrize("target", ["shop", "wrapped"])
def test_the_tokens_of_a_typed_output_count(project: Project, target: str) -> None:
    """Of these requests the framework's messages show the first alone: 4 of 24 tokens."""
    pytest.importorskip("pydantic_ai.models.openai")

    def reply(request: Request) -> Behaviour:
        messages = request.json["messages"]
        is_answered = any(message["role"] == "tool" for message in messages)
        name, args = (
            ("final_result", {"status": "shipped"}) if is_answered else ("get_order", {"order_id": "A"})
        )
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        tokens = 15 if is_answered else 3
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": tokens // 3,
            "total_tokens": tokens + tokens // 3,
        }
        made = completion(None, finish_reason="tool_calls", tool_calls=[call])
        return respond_json({**made, "created": 1, "usage": usage})

    project.agent(BEGIN + ASKS_A_SERVER)
    project.config("", target=f"agent.py:{target}")
    for limit, code in ((24, 0), (23, 1)):
        project.scenarios(f"""
        id: typed
        turns: [Where is it?]
        tools: {{get_order: {{returns: shipped}}}}
        expect: {{tool_calls: {{match: strict, calls: [{{name: get_order}}]}}, limits: {{tokens: {limit}}}}}
        """)
        with LocalServer(answer(reply)) as server:
            done = project.run(env={"MODEL_URL": f"{server.address}/v1"})
        assert done.code == code, done.all
    usage = project.sample()["turns"][0]["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 18, 6)
    assert not (project.root / "marks").exists()
