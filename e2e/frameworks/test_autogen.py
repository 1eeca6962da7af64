"""Agents of AutoGen, against the real package. The model answers with the results, and with how many messages
it was given."""

from __future__ import annotations

import pytest

from e2e.frameworks.playing import BOTH, ORDER, answers, calls, play, play_two, ran
from e2e.frameworks.talking import Scenario, agent_of, attempted, made, replies
from tests.support.kit import Project, failed_checks

pytest.importorskip("autogen_agentchat")

AGENT = """
import logging
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken, FunctionCall, SingleThreadedAgentRuntime
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from autogen_core.tools import FunctionTool, StaticWorkbench, ToolOverride, Workbench

logging.disable()

def mark(name):
    with open("ran", "a") as file:
        file.write(name + "\\n")

async def get_order(id: str) -> dict:
    "Look an order up."
    mark("get_order")
    return {"status": "real"}

def refund(id: str, amount: int = 1) -> str:
    "Pay back."
    mark("refund")
    return "really"

class Scripted(ChatCompletionClient):
    replies = 0

    async def create(self, messages, **more):
        content = self.content(messages)
        ended = "stop" if isinstance(content, str) else "function_calls"
        used = RequestUsage(prompt_tokens=10, completion_tokens=3)
        return CreateResult(finish_reason=ended, content=content, usage=used, cached=False)

    def content(self, messages):
        last = messages[-1].content
        if not isinstance(last, str):
            return f"{len(messages)} messages, {[(each.content, each.is_error) for each in last]}"
        if last == "fail":
            raise OSError("the model is away")
        if last == "delegate":
            return [self.call('helper({"task": "get_order({\\\\"id\\\\": \\\\"1\\\\"})"})')]
        if "(" in last:
            return [self.call(each) for each in last.split(";")]
        return f"{len(messages)} messages, {last}"

    def call(self, text):
        Scripted.replies += 1
        name, _, args = text.strip().partition("(")
        return FunctionCall(id=f"call-{self.replies}", name=name, arguments=args[:-1])

    def create_stream(self, *args, **more):
        raise NotImplementedError

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, *args, **more):
        return 0

    remaining_tokens = count_tokens
    model_info = ModelInfo(
        vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True)
    capabilities = model_info

def shop(name="shop", **more):
    given = {"tools": [get_order, refund], "max_tool_iterations": 3, **more}
    return AssistantAgent(name, Scripted(), system_message="You sell.", **given)

agent = shop()
"""


def test_two_conversations_at_once_have_a_world_each(project: Project) -> None:
    done = play_two(project, AGENT)
    assert done.code == 0, done.all
    for name in ("early", "late"):
        first, second = answers(project, name)
        assert first == f"""4 messages, [('{{"status": "{name}"}}', False)]"""
        assert second == "6 messages, hello"
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


def test_errors_reach_the_model_as_such(project: Project) -> None:
    tools = "{get_order: {error: closed}, refund: {returns: done}}"
    done = play(project, AGENT, [ORDER, 'refund({"nr": 1})'], tools=tools)
    assert done.code == 0, done.all
    mocked, unfit = answers(project)
    assert mocked == "4 messages, [('closed', True)]"
    assert unfit.endswith(", True)]"), unfit  # an error, in the words of whatever checks arguments there


def test_a_tool_that_is_not_mocked_does_not_run(project: Project) -> None:
    done = play(project, AGENT, ['refund({"id": "2"})'], tools="{get_order: {returns: {}}}")
    assert done.code == 2, done.all
    assert not ran(project)


def test_real_tools_run_only_where_they_are_left_to_the_agent(project: Project) -> None:
    tools = "{get_order: {returns: {status: shipped}}}"
    done = play(project, AGENT, [BOTH], "unmocked_tools: passthrough", tools)
    assert done.code == 0, done.all
    assert ran(project) == ["refund"]


def test_the_tools_of_an_agent_as_a_tool_are_answered(project: Project) -> None:
    code = """
helper = shop("helper", description="helps", tools=[get_order])
agent = shop(tools=[AgentTool(helper), refund])
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
helper = shop("helper", description="helps", tools=[get_order])
agent = shop(tools=[AgentTool(helper), refund])
"""
    done = play(project, AGENT + code, ["delegate"], tools="{helper: {returns: {by: nobody}}}")
    assert done.code == 0, done.all
    assert [name for name, *_ in calls(project)] == ["helper"]
    assert answers(project) == ["""4 messages, [('{"by": "nobody"}', False)]"""]
    assert not ran(project)


def test_a_team_is_made_anew_for_each_conversation(project: Project) -> None:
    done = play_two(project, AGENT + "agent = RoundRobinGroupChat([agent], max_turns=1)")
    assert done.code == 0, done.all
    for name in ("early", "late"):
        first, second = answers(project, name)
        assert first == f"""4 messages, [('{{"status": "{name}"}}', False)]"""
        assert second == "6 messages, hello"
        (call,) = project.sample(name)["turns"][0]["tool_calls"]
        assert (call["name"], call["args"], call["agent"]) == ("get_order", {"id": "1"}, "shop")
    assert not ran(project)


def test_a_hand_off_within_a_team_is_no_call_and_shows_as_who_speaks(project: Project) -> None:
    code = """
agent = Swarm([shop(handoffs=["returns"]), shop("returns", tools=[refund])], max_turns=2)
"""
    done = play(project, AGENT + code, ["transfer_to_returns({})"], tools="{refund: {returns: done}}")
    assert done.code == 0, done.all
    assert calls(project) == []
    assert "returns" in str(project.sample()["turns"][0])


AROUND = """
async def loop(tool, args, **more):
    try:
        result = await tool.run_json(args, CancellationToken(), **more)
        return tool.return_value_as_string(result), type(result).__name__
    except Exception as error:
        return str(error), "error"

class Loud(FunctionTool):
    component_provider_override = "agent.Loud"

    async def run_json(self, args, cancellation_token, call_id=None):
        return await super().run_json(args, cancellation_token, call_id)

class Own(Workbench):
    "Hands on to another, by plain functions."

    def __init__(self, inner):
        self.inner = inner

    async def list_tools(self):
        return await self.inner.list_tools()

    def call_tool(self, *args, **more):
        return self.inner.call_tool(*args, **more)

    async def nothing(self, *_):
        return {}

    start = stop = reset = save_state = load_state = nothing

own = Own(StaticWorkbench([FunctionTool(get_order, "looks")]))
renamed = StaticWorkbench(
    [FunctionTool(get_order, "looks"), FunctionTool(refund, "pays")],
    {"get_order": ToolOverride(name="look_up")})
"""


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("await shop().run(task=text)", """4 messages, [('{"status": "shipped"}', False)]"""),
        ("await RoundRobinGroupChat([shop()], max_turns=1).run(task=text)", "4 messages, [('{"),
        ("await loop(FunctionTool(get_order, ''), {'id': '1'})", "\"{'status': 'shipped'}\", 'dict'"),
        ("await loop(FunctionTool(get_order, ''), {'id': '1'}, call_id='x')", "'status': 'shipped'"),
        ("await loop(Loud(get_order, ''), {'id': '1'})", "'status': 'shipped'"),
        ("await asyncio.to_thread(asyncio.run, shop().run(task=text))", "4 messages, [('{"),
        (
            "await shop(tools=None, workbench=own).run(task=text)",
            """4 messages, [('{"status": "shipped"}', False)]""",
        ),
    ],
)
def test_tools_are_met_wherever_they_are_run(project: Project, body: str, answer: str) -> None:
    code = f"""
import asyncio

async def agent(text):
    done = {body}
    return str(done) if isinstance(done, tuple) else done.messages[-1].content
"""
    done = play(project, AGENT + AROUND + code, [ORDER], tools="{get_order: {returns: {status: shipped}}}")
    assert done.code == 0, done.all
    assert [(name, args) for name, args, _ in calls(project)] == [("get_order", {"id": "1"})]
    assert answer in answers(project)[0]
    assert not ran(project)


def test_a_tool_has_the_name_by_which_its_workbench_offers_it(project: Project) -> None:
    code = AGENT + AROUND + "agent = shop(tools=None, workbench=renamed)"
    turns = ['look_up({"id": "1"})', 'look_up({"nr": 1})']
    done = play(project, code, turns, tools="{look_up: {returns: {status: shipped}}}")
    assert done.code == 0, done.all
    first, unfit = answers(project)
    assert first == """4 messages, [('{"status": "shipped"}', False)]"""
    assert unfit.endswith(", True)]"), unfit
    assert [name for name, *_ in calls(project)] == ["look_up"]
    assert not ran(project)


def test_what_a_real_tool_raises_is_its_result(project: Project) -> None:
    code = """
def broken(id: str) -> str:
    "Breaks."
    raise ValueError("out of order")

async def agent(text):
    return (await shop(tools=[broken]).run(task=text)).messages[-1].content
"""
    done = play(project, AGENT + code, ['broken({"id": "1"})'], "unmocked_tools: passthrough", "{}")
    assert "4 messages, [('out of order', True)]" in answers(project)
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert "out of order" in str(call["result"]), done.all


def test_a_hand_off_that_nobody_takes_proves_nothing(project: Project) -> None:
    done = play(project, AGENT + "agent = shop(handoffs=['user'])", ["transfer_to_user({})"])
    assert done.code == 3, done.all
    assert "to user, which does not exist" in done.all


def test_a_model_that_breaks_is_the_agents_failure(project: Project) -> None:
    done = play(project, AGENT, ["fail"])
    assert done.code == 1, done.all
    assert "OSError: the model is away" in done.all


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("agent = AssistantAgent", "the target is the AutoGen class AssistantAgent"),
        ("agent = UserProxyAgent('person')", "UserProxyAgent"),
        ("agent = RoundRobinGroupChat([UserProxyAgent('person')])", "UserProxyAgent"),
        (
            "agent = RoundRobinGroupChat([agent], runtime=SingleThreadedAgentRuntime())",
            "the RoundRobinGroupChat has a runtime, which all conversations would share",
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
    reply, unfit = replies(agent_of(AGENT), Scenario(**SHOP), BOTH, "get_order({})")
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert made(reply) == [("get_order", {"id": "1"}), ("refund", {"id": "2"})]
    assert (made(unfit), attempted(unfit)) == ([], ["get_order"])
    own = """
class Own(AssistantAgent):
    def look(self):
        return get_order("1")

agent = Own(name="shop", model_client=Scripted())
"""
    assert [each["lists_tools"] for each in replies(agent_of(AGENT + own), Scenario(), "hi")] == [False]
