"""Agents of Microsoft's Agent Framework, against the real package. The model answers with the results, and
with how many messages it was given."""

from __future__ import annotations

import pytest

from e2e.frameworks.playing import BOTH, CHECKED, ORDER, answers, calls, play, play_two, ran
from e2e.frameworks.talking import Scenario, agent_of, attempted, made, replies
from tests.support.kit import Project, failed_checks

pytest.importorskip("agent_framework")

AGENT = """
import logging
from agent_framework import (
    Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, FunctionInvocationLayer, Message,
    RawAgent, ResponseStream, UsageDetails, WorkflowBuilder, function_middleware, tool)

logging.disable()

def mark(name):
    with open("ran", "a") as file:
        file.write(name + "\\n")

def get_order(id: str) -> dict:
    "Look an order up."
    mark("get_order")
    return {"status": "real"}

def refund(id: str, amount: int = 1) -> str:
    "Pay back."
    mark("refund")
    return "really"

class Scripted(FunctionInvocationLayer, BaseChatClient):
    replies = 0
    again = False

    def _inner_get_response(self, *, messages, stream, options, **more):
        contents = self.contents(messages)
        used = UsageDetails(input_token_count=10, output_token_count=3, total_token_count=13)

        async def whole():
            return ChatResponse(messages=[Message(role="assistant", contents=contents)], usage_details=used)

        async def pieces():
            yield ChatResponseUpdate(role="assistant", contents=[*contents, Content.from_usage(used)])

        return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()

    def contents(self, messages):
        results = [each.result for each in messages[-1].contents if each.type == "function_result"]
        if messages[-1].text == "fail" or (self.again and results):
            raise OSError("the model is away")
        if results:
            return [Content.from_text(f"{len(messages)} messages, {results}")]
        if "(" in messages[-1].text:
            return [self.call(each) for each in messages[-1].text.split(";")]
        return [Content.from_text(f"{len(messages)} messages, {messages[-1].text}")]

    def call(self, text):
        type(self).replies += 1
        name, _, args = text.strip().partition("(")
        return Content.from_function_call(call_id=f"call-{self.replies}", name=name, arguments=args[:-1])

def shop(**more):
    given = {"client": Scripted(), "name": "shop", "instructions": "You sell.", "tools": [get_order, refund]}
    return Agent(**{**given, **more})

agent = shop()
"""


def test_two_conversations_at_once_have_a_world_each(project: Project) -> None:
    done = play_two(project, AGENT)
    assert done.code == 0, done.all
    for name in ("early", "late"):
        first, second = answers(project, name)
        assert first == f"""3 messages, ['{{"status": "{name}"}}']"""
        assert second == "5 messages, hello"
    assert not ran(project)


def test_parallel_calls_are_one_step_and_tokens_are_counted(project: Project) -> None:
    done = play(project, AGENT, [BOTH])
    assert done.code == 0, done.all
    (turn,) = project.sample()["turns"]
    assert turn["steps"] == 2
    assert (turn["usage"]["calls"], turn["usage"]["input_tokens"], turn["usage"]["output_tokens"]) == (
        2,
        20,
        6,
    )


def test_an_error_reaches_the_model_as_one(project: Project) -> None:
    tools = "{get_order: {error: closed}, refund: {returns: done}}"
    done = play(project, AGENT, [ORDER], tools=tools)
    assert answers(project) == ["3 messages, ['Error: closed']"], done.all


def test_a_tool_that_is_not_mocked_does_not_run(project: Project) -> None:
    done = play(project, AGENT, ['refund({"id": "2"})'], tools="{get_order: {returns: {}}}")
    assert done.code == 2, done.all
    assert "the agent called the tool 'refund', which is not mocked" in done.all
    assert not ran(project)


def test_real_tools_run_only_where_they_are_left_to_the_agent(project: Project) -> None:
    tools = "{get_order: {returns: {status: shipped}}}"
    done = play(project, AGENT, [BOTH], "unmocked_tools: passthrough", tools)
    assert done.code == 0, done.all
    assert ran(project) == ["refund"]
    assert "'really'" in answers(project)[0]


def test_what_the_agent_does_around_a_tool_stays(project: Project) -> None:
    """Its middleware may refuse a call or change its arguments; its own check of arguments comes first."""
    code = """
@function_middleware
async def before(context, call_next):
    if context.arguments.get("amount", 0) > 100:
        context.result = "too much"
        return
    if "id" in context.arguments:
        context.arguments = {**context.arguments, "id": context.arguments["id"] + "!"}
    await call_next()

agent = shop(middleware=[before])
"""
    done = play(
        project, AGENT + code, ['refund({"id": "2", "amount": 200})', ORDER, 'get_order({"nr": "1"})']
    )
    first, second, third = answers(project)
    assert "too much" in first, done.all
    assert "shipped" in second
    assert "Argument parsing failed" in third
    assert calls(project, 1) == [("get_order", {"id": "1!"}, "shop")]
    assert not ran(project)


def test_the_tools_of_an_agent_as_a_tool_are_answered(project: Project) -> None:
    code = """
class Delegating(Scripted):
    def contents(self, messages):
        if messages[-1].text == "delegate":
            return [self.call('helper({"task": "get_order({\\\\"id\\\\": \\\\"1\\\\"})"})')]
        return super().contents(messages)

helper = shop(name="helper", description="helps", tools=[get_order])
agent = shop(client=Delegating(), tools=[helper.as_tool(), refund])
"""
    done = play(project, AGENT + code, ["delegate"])
    assert done.code == 0, done.all
    helper = ("helper", {"task": 'get_order({"id": "1"})'}, "shop")
    assert calls(project) == [helper, ("get_order", {"id": "1"}, "helper")]
    assert "shipped" in answers(project)[0]
    assert project.sample()["turns"][0]["usage"]["calls"] == 4
    assert not ran(project)


def test_an_agent_as_a_tool_can_be_mocked_and_then_nothing_in_it_runs(project: Project) -> None:
    code = """
helper = shop(name="helper", description="helps", tools=[get_order])
agent = shop(tools=[helper.as_tool()])
"""
    asked = 'helper({"task": "get_order"})'
    done = play(project, AGENT + code, [asked], tools="{helper: {returns: helped}}")
    assert done.code == 0, done.all
    assert calls(project) == [("helper", {"task": "get_order"}, "shop")]
    assert answers(project) == ["3 messages, ['helped']"]


def test_an_agent_without_layers_is_played(project: Project) -> None:
    done = play(
        project, AGENT + "agent = RawAgent(Scripted(), name='raw', tools=[get_order, refund])", [ORDER]
    )
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", {"id": "1"}, "raw")]
    assert "shipped" in answers(project)[0]
    assert not ran(project)


def test_an_agent_that_waits_for_an_approval_has_not_failed(project: Project) -> None:
    code = "agent = shop(tools=[tool(refund, approval_mode='always_require')])"
    done = play(project, AGENT + code, ['refund({"id": "2"})'], tools="{refund: {returns: done}}")
    assert done.code == 3, done.all
    assert "approval of refund" in done.all
    assert not ran(project)


def test_what_happened_before_an_error_is_evidence(project: Project) -> None:
    done = play(project, AGENT + "agent.client.again = True", [ORDER])
    assert done.code == 1, done.all
    assert "OSError: the model is away" in done.all
    assert [name for name, _, _ in calls(project)] == ["get_order"]
    assert (None, "no_error") in failed_checks(project.sample())


def test_deps_are_what_tools_and_middleware_get_besides(project: Project) -> None:
    code = """
def make_deps():
    return {"user": "Ann"}

@function_middleware
async def greet(context, call_next):
    context.result = "Hello, " + context.kwargs["user"]

agent = shop(middleware=[greet])
"""
    project.agent(AGENT + code)
    project.config(
        "agent: {name: bot, target: {object: 'agent.py:agent', deps: 'agent.py:make_deps'}}\n", target=""
    )
    project.scenarios(f"id: it\nturns: ['{ORDER}']\n{CHECKED}")
    done = project.run()
    assert "Hello, Ann" in answers(project)[0], done.all


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("agent = Agent", "the target is the Microsoft Agent Framework class Agent"),
        (
            "agent = WorkflowBuilder(start_executor=agent).build()",
            "a Microsoft Agent Framework `Workflow` is not an agent",
        ),
        (
            "agent = WorkflowBuilder(start_executor=agent).build().as_agent()",
            "a Microsoft Agent Framework WorkflowAgent cannot keep conversations apart",
        ),
        (
            "class Bare(BaseChatClient):\n    _inner_get_response = Scripted._inner_get_response\n"
            "agent = shop(client=Bare())",
            "does not support function calls",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(project: Project, code: str, why: str) -> None:
    done = play(project, AGENT + code, ["hi"], tools="{}")
    assert done.code == 2, done.all
    assert why in done.all


def test_a_tool_that_there_is_none_of_is_the_agents_fault(project: Project) -> None:
    """The framework itself answers such a call."""
    done = play(project, AGENT, ['no_such_tool({"id": "1"})'])
    assert done.code == 1, done.all
    assert failed_checks(project.sample()) == {(None, "unknown_tool")}


SHOP = {"get_order": {"status": "shipped"}, "refund": "done"}


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    asked = ORDER + '; refund({"id": "2", "amount": "5"})'
    (reply,) = replies(agent_of(AGENT), Scenario(**SHOP), asked)
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert made(reply) == [("get_order", {"id": "1"}), ("refund", {"id": "2", "amount": "5"})]  # as it asked
    own = """
class Own(Agent):
    def look(self):
        return get_order("1")

agent = Own(client=Scripted(), name="shop")
"""
    assert [each["lists_tools"] for each in replies(agent_of(AGENT + own), Scenario(), "hi")] == [False]


def test_a_call_that_is_refused_before_its_tool_runs_is_attempted() -> None:
    code = """
@function_middleware
async def guard(context, call_next):
    if context.arguments.get("amount", 0) > 100:
        raise ValueError("too much")
    if context.arguments.get("amount", 0) > 10:
        context.result = "paid before"
        return
    await call_next()

agent = shop(middleware=[guard])
"""
    messages = ['refund({"id": "2", "amount": 200})', 'refund({"id": "2", "amount": 20})', "get_order({})"]
    denied, answered, unfit = replies(agent_of(AGENT + code), Scenario(**SHOP), *messages)
    assert (attempted(denied), attempted(unfit)) == (["refund"], ["get_order"])
    assert made(answered) == [("refund", {"id": "2", "amount": 20})]  # by the agent's own code, as it seems
    waits = "agent = shop(tools=[tool(approval_mode='always_require')(refund)])"
    (reply,) = replies(agent_of(AGENT + waits), Scenario(**SHOP), 'refund({"id": "2"})')
    assert attempted(reply) == ["refund"]


def test_what_runs_at_the_provider_is_a_call_and_what_is_unknown_is_noted() -> None:
    code = """
class Hosted(Scripted):
    def contents(self, messages):
        odd = Content.from_text("odd")
        odd.type = "hologram"
        return [
            Content.from_mcp_server_tool_call("m", "lookup", arguments={"a": 1}),
            Content.from_code_interpreter_tool_call(call_id="c", inputs=[Content.from_text("print(1)")]),
            Content.from_text("found"), *([odd] if messages[-1].text == "odd" else [])]

agent = shop(client=Hosted())
"""
    reply, odd = replies(agent_of(AGENT + code), Scenario(), "hi", "odd")
    assert made(reply) == [("lookup", {"a": 1}), ("code_interpreter", {"inputs": "print(1)"})]
    assert (reply["messages"][-1]["content"], reply["unplaced"]) == ("found", [])
    assert odd["unplaced"] == ["unsupported content 'hologram' in a reply"]
