"""Agents of Google's ADK, against the real package.

The model does what the user says: ``get_order({"id": "1"}); refund({"id": "2"})`` are two calls at once; it
answers with the results, and with how many contents it was given.
"""

from __future__ import annotations

import pytest

from e2e.frameworks.playing import BOTH, CHECKED, ORDER, answers, calls, play, play_two, ran
from e2e.frameworks.talking import Scenario, agent_of, attempted, made, replies
from tests.support.kit import Project, failed_checks

pytest.importorskip("google.adk")

AGENT = """
import json, logging
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, google_search
from google.genai import types
from pydantic import BaseModel

logging.disable()  # the framework logs errors with their tracebacks

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

def approve(id: str) -> None:
    "Ask a person."
    mark("approve")

class Scripted(BaseLlm):
    model: str = "scripted"
    again: bool = False

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        used = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, candidates_token_count=3, total_token_count=13)
        parts = llm_request.contents[-1].parts
        results = [part.function_response.response for part in parts if part.function_response]
        if last.text == "fail" or (self.again and len(llm_request.contents) > 4):
            raise OSError("the model is away")
        if last.text == "filtered":
            yield LlmResponse(error_code="SAFETY", error_message="blocked")
            return
        asked = 'get_order({"id": "1"})' if results and self.again else last.text
        if results and not self.again:
            parts = [types.Part(text=f"{len(llm_request.contents)} contents, {json.dumps(results)}")]
        elif "(" in asked:
            parts = [self.call(each) for each in asked.split(";")]
        else:
            parts = [types.Part(text=f"{len(llm_request.contents)} contents, {asked}")]
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=used)

    def call(self, text):
        name, _, args = text.strip().partition("(")
        return types.Part(function_call=types.FunctionCall(name=name, args=json.loads(args[:-1])))

def shop(**more):
    given = {"name": "shop", "model": Scripted(), "instruction": "You sell.", "tools": [get_order, refund]}
    return LlmAgent(**{**given, **more})

agent = shop()
"""


def test_two_conversations_at_once_have_a_world_each(project: Project) -> None:
    done = play_two(project, AGENT)
    assert done.code == 0, done.all
    for name in ("early", "late"):
        first, second = answers(project, name)
        assert first == f'3 contents, [{{"status": "{name}"}}]'
        assert second == "5 contents, hello"
    assert not ran(project)


def test_parallel_calls_are_one_step_and_tokens_are_counted(project: Project) -> None:
    done = play(project, AGENT, [BOTH])
    assert done.code == 0, done.all
    assert answers(project) == ['3 contents, [{"status": "shipped"}, {"result": "done"}]']
    (turn,) = project.sample()["turns"]
    assert turn["steps"] == 2
    assert (turn["usage"]["calls"], turn["usage"]["input_tokens"], turn["usage"]["output_tokens"]) == (
        2,
        20,
        6,
    )


def test_an_error_reaches_the_model_as_one(project: Project) -> None:
    done = play(project, AGENT, [ORDER], tools="{get_order: {error: closed}}")
    assert done.code == 0, done.all
    assert answers(project) == ['3 contents, [{"error": "closed"}]']


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
    assert answers(project) == ['3 contents, [{"status": "shipped"}, {"result": "really"}]']


def test_what_the_agent_does_around_a_tool_stays(project: Project) -> None:
    """Its callbacks may refuse a call or change its arguments; its own check of arguments comes first."""
    code = """
def before(tool, args, tool_context):
    if args.get("amount", 0) > 100:
        return {"error": "too much"}
    args["id"] = args.get("id", "") + "!"

def after(tool, args, tool_context, tool_response):
    return {"seen": tool_response}

agent = shop(before_tool_callback=before, after_tool_callback=after)
"""
    refused = 'refund({"id": "2", "amount": 200})'
    done = play(project, AGENT + code, [refused, ORDER, 'get_order({"nr": "1"})'])
    first, second, _ = project.sample()["turns"]
    assert first["agent"] == '3 contents, [{"seen": {"error": "too much"}}]', done.all
    assert second["agent"].endswith('[{"seen": {"status": "shipped"}}]')
    assert calls(project, 1) == [("get_order", {"id": "1!"}, "shop")]
    assert not ran(project)


def test_arguments_that_the_framework_refuses_are_an_error_of_the_call(project: Project) -> None:
    done = play(project, AGENT, ["get_order({})"])
    assert "mandatory input parameters are not present" in answers(project)[0], done.all


def test_a_transfer_shows_as_who_speaks(project: Project) -> None:
    code = """
helper = LlmAgent(name="helper", description="helps", model=Scripted(), tools=[get_order])
agent = shop(sub_agents=[helper])
"""
    done = play(project, AGENT + code, ['transfer_to_agent({"agent_name": "helper"})', ORDER])
    assert done.code == 0, done.all
    assert calls(project) == []
    assert project.sample()["turns"][0]["agents"] == ["shop", "helper"]
    assert calls(project, 1) == [("get_order", {"id": "1"}, "helper")]
    assert not ran(project)


@pytest.mark.parametrize("more", ["", ", include_plugins=False"])
def test_the_tools_of_an_agent_as_a_tool_are_answered(project: Project, more: str) -> None:
    code = f"""
class Delegating(Scripted):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.text == "delegate":
            call = types.FunctionCall(name="helper", args={{"request": 'get_order({{"id": "1"}})'}})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            return
        async for each in super().generate_content_async(llm_request):
            yield each

helper = LlmAgent(name="helper", description="helps", model=Scripted(), tools=[get_order])
try:
    tool = AgentTool(helper{more})
except TypeError:  # of a version that has no such choice
    tool = AgentTool(helper)
agent = shop(model=Delegating(), tools=[tool, refund])
"""
    done = play(project, AGENT + code, ["delegate"])
    assert done.code == 0, done.all
    helper = ("helper", {"request": 'get_order({"id": "1"})'}, "shop")
    called, inner = calls(project)
    assert called == helper
    assert inner[:2] == ("get_order", {"id": "1"})
    assert "shipped" in answers(project)[0]
    assert not ran(project)


def test_a_sequence_of_agents_and_an_app_with_plugins_are_played(project: Project) -> None:
    code = """
class Spy(BasePlugin):
    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        mark("spy")

first = LlmAgent(name="first", model=Scripted(), tools=[get_order])
second = LlmAgent(name="second", model=Scripted())
both = SequentialAgent(name="both", sub_agents=[first, second])
agent = App(name="app", root_agent=both, plugins=[Spy("spy")])
"""
    done = play(project, AGENT + code, [ORDER], tools="{get_order: {returns: {status: shipped}}}")
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", {"id": "1"}, "first")]
    assert ran(project) == ["spy"]


@pytest.mark.parametrize(
    ("tool", "mock", "waits"),
    [
        ("LongRunningFunctionTool(approve)", "null", "approve is a long-running tool without a result"),
        ("FunctionTool(approve, require_confirmation=True)", "granted", "confirmation of approve"),
    ],
)
def test_an_agent_that_waits_for_a_person_has_not_failed(
    project: Project, tool: str, mock: str, waits: str
) -> None:
    tools = f"{{approve: {{returns: {mock}}}}}"
    done = play(project, AGENT + f"agent = shop(tools=[{tool}])", ['approve({"id": "1"})'], tools=tools)
    assert done.code == 3, done.all
    assert waits in done.all
    assert not ran(project)


def test_a_long_running_tool_with_a_result_goes_on(project: Project) -> None:
    tools = "{approve: {returns: {status: pending}}}"
    code = "agent = shop(tools=[LongRunningFunctionTool(approve)])"
    done = play(project, AGENT + code, ['approve({"id": "1"})', "and now?"], tools=tools)
    assert done.code == 0, done.all
    assert answers(project)[1] == "5 contents, and now?"


def test_structured_output_is_the_answer_and_its_tool_no_call(project: Project) -> None:
    code = """
class Answer(BaseModel):
    text: str

agent = shop(output_schema=Answer, output_key="answer")
"""
    done = play(project, AGENT + code, ['set_model_response({"text": "yes"})'])
    assert done.code == 0, done.all
    assert (answers(project), calls(project)) == (['{"text": "yes"}'], [])


def test_what_happened_before_an_error_is_evidence(project: Project) -> None:
    done = play(project, AGENT + "agent = shop(model=Scripted(again=True))", [ORDER])
    assert done.code == 1, done.all
    assert "the model is away" in done.all
    assert [name for name, _, _ in calls(project)] == ["get_order", "get_order"]
    assert (None, "no_error") in failed_checks(project.sample())


@pytest.mark.parametrize(("said", "why"), [("fail", "OSError: the model is away"), ("filtered", "SAFETY")])
def test_a_model_that_breaks_is_the_agents_failure(project: Project, said: str, why: str) -> None:
    done = play(project, AGENT, [said])
    assert done.code == 1, done.all
    assert why in done.all


def test_deps_are_the_sessions_first_state(project: Project) -> None:
    code = """
def make_state():
    return {"name": "Ann"}

def greet(callback_context):
    name = callback_context.state["name"]
    return types.Content(role="model", parts=[types.Part(text=f"Hello, {name}")])

agent = shop(before_agent_callback=greet)
"""
    project.agent(AGENT + code)
    project.config(
        "agent: {name: bot, target: {object: 'agent.py:agent', deps: 'agent.py:make_state'}}\n", target=""
    )
    project.scenarios(f"id: it\nturns: [hi]\n{CHECKED}")
    done = project.run()
    assert done.code == 0, done.all
    assert answers(project) == ["Hello, Ann"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("agent = LlmAgent", "the target is the Google ADK class LlmAgent"),
        ("agent = InMemoryRunner(agent)", "use its agent or its App"),
        (
            "from google.adk.agents.base_agent import BaseAgent\n"
            "class RemoteA2aAgent(BaseAgent): __module__ = 'google.adk.agents.remote_a2a_agent'\n"
            "agent = shop(sub_agents=[RemoteA2aAgent(name='far')])",
            "the agent 'far' is a RemoteA2aAgent, which runs its own tools",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(project: Project, code: str, why: str) -> None:
    done = play(project, AGENT + code, ["hi"], tools="{}")
    assert done.code == 2, done.all
    assert why in done.all


def test_a_mock_of_what_runs_at_the_provider_is_a_mistake(project: Project) -> None:
    code = "agent = shop(tools=[google_search])"
    done = play(project, AGENT + code, ["hi"], tools="{google_search: {returns: none}}")
    assert done.code == 2, done.all
    assert "google_search" in done.all


def test_a_tool_that_there_is_none_of_is_the_agents_fault(project: Project) -> None:
    """The framework itself answers such a call."""
    done = play(project, AGENT, ['no_such_tool({"id": "1"})'])
    assert done.code == 1, done.all
    assert failed_checks(project.sample()) == {(None, "unknown_tool")}


SHOP = {"get_order": {"status": "shipped"}, "refund": "done"}


def test_what_its_adapter_lists_is_all_that_it_calls() -> None:
    (reply,) = replies(agent_of(AGENT), Scenario(**SHOP), BOTH)
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert made(reply) == [("get_order", {"id": "1"}), ("refund", {"id": "2"})]
    code = """
class Plain(LlmAgent):
    limit: int = 3

class Own(LlmAgent):
    def look(self):
        return get_order("1")

agent = {}(name="shop", model=Scripted(), tools=[get_order])
"""
    for cls, lists in (("Plain", True), ("Own", False)):
        (reply,) = replies(agent_of(AGENT + code.replace("{}", cls, 1)), Scenario(), "nothing({})")
        assert (reply["lists_tools"], reply["unknown_tools"]) == (lists, ["nothing"])


def test_a_call_that_is_refused_before_its_tool_runs_is_attempted() -> None:
    code = """
def before(tool, args, tool_context):
    if args.get("amount", 0) > 100:
        return {"error": "too much"}
    if args.get("amount", 0) > 10:
        return {"status": "paid before"}

agent = shop(before_tool_callback=before)
"""
    messages = ['refund({"id": "2", "amount": 200})', 'refund({"id": "2", "amount": 20})', "get_order({})"]
    denied, answered, unfit = replies(agent_of(AGENT + code), Scenario(**SHOP), *messages)
    assert (attempted(denied), attempted(unfit)) == (["refund"], ["get_order"])
    assert made(answered) == [("refund", {"id": "2", "amount": 20})]  # by the agent's own code, as it seems
    waits = "agent = shop(tools=[FunctionTool(refund, require_confirmation=True)])"
    (reply,) = replies(agent_of(AGENT + waits), Scenario(**SHOP), 'refund({"id": "2"})')
    assert attempted(reply) == ["refund"]


@pytest.mark.parametrize("mode", ["single_turn", "task"])
def test_a_sub_agent_that_is_called_as_a_tool_is_a_call(mode: str) -> None:
    code = f"""
class Delegating(Scripted):
    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[-1]
        asked = {{"delegate": ("helper", {{"request": "x"}}), "x": ("get_order", {{"id": "1"}})}}
        asked['{{"request": "x"}}'] = asked["x"]
        if part.text in asked:
            name, args = asked[part.text]
        elif part.function_response and part.function_response.name == "get_order" and "{mode}" == "task":
            name, args = "finish_task", {{"result": "shipped"}}
        else:
            async for each in super().generate_content_async(llm_request):
                yield each
            return
        call = types.Part(function_call=types.FunctionCall(name=name, args=args))
        yield LlmResponse(content=types.Content(role="model", parts=[call]))

helper = LlmAgent(name="helper", description="helps", model=Delegating(), tools=[get_order], mode="{mode}")
agent = shop(model=Delegating(), tools=[refund], sub_agents=[helper])
"""
    try:
        agent = agent_of(AGENT + code)
    except ValueError:
        pytest.skip("a version without modes of agents")
    (reply,) = replies(agent, Scenario(**SHOP), "delegate")
    assert made(reply) == [("helper", {"request": "x"}), ("get_order", {"id": "1"})]
    assert (reply["unplaced"], reply["unknown_tools"], attempted(reply)) == ([], [], [])


def test_what_runs_at_the_provider_or_in_an_executor_of_code_is_noted() -> None:
    code = """
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.tools import url_context

class Grounded(Scripted):
    async def generate_content_async(self, llm_request, stream=False):
        text = llm_request.contents[-1].parts[-1].text
        metadata = types.GroundingMetadata(web_search_queries=["shoes"]) if text == "search" else None
        parts = [types.Part(text="```tool_code\\nprint(1)\\n```" if text == "code" else "found")]
        yield LlmResponse(content=types.Content(role="model", parts=parts), grounding_metadata=metadata)

"""
    model = "model=Grounded(model='gemini-2.5-flash')"
    searches = agent_of(AGENT + code + f"agent = shop({model}, tools=[google_search])")
    searched, plain = replies(searches, Scenario(), "search", "hi")
    assert made(searched) == [("google_search", {"queries": ["shoes"]})]
    assert (made(plain), searched["unplaced"], plain["unplaced"]) == ([], [], [])
    executor = f"agent = shop({model}, tools=[], code_executor=UnsafeLocalCodeExecutor())"
    ran_code, plain = replies(agent_of(AGENT + code + executor), Scenario(), "code", "hi")
    assert "unsupported part 'executable_code' in a reply" in ran_code["unplaced"]
    assert plain["unplaced"] == []
    (reply,) = replies(
        agent_of(AGENT + code + f"agent = shop({model}, tools=[url_context])"), Scenario(), "hi"
    )
    assert reply["unplaced"] == ["'url_context' runs at the provider, which does not report its calls"]
