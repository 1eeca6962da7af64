"""Agents of LlamaIndex, against the real package. The model answers with the latest result, and with how many
messages it was given."""

from __future__ import annotations

import pytest

from e2e.frameworks.playing import BOTH, ORDER, answers, calls, play, play_two, ran
from e2e.frameworks.talking import Scenario, agent_of, attempted, made, replies
from tests.support.kit import Project, failed_checks

pytest.importorskip("llama_index.core")

AGENT = """
import json, logging
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.workflow import Context

logging.disable()

def mark(name):
    with open("ran", "a") as file:
        file.write(name + "\\n")

def get_order(id: str) -> dict:
    "Look an order up."
    mark("get_order")
    return {"status": "real"}

async def refund(ctx: Context, id: str, amount: int = 1) -> str:
    "Pay back."
    mark("refund")
    return "really"

class Scripted(FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def answer(self, messages):
        last, said = messages[-1], messages[-1].content or ""
        count = len([each for each in messages if each.role != "system"])
        if said == "fail":
            raise OSError("the model is away")
        if last.role == "user" and "(" in said:
            parts = [each.strip().partition("(") for each in said.split(";")]
            calls = [
                ToolSelection(tool_id=f"call-{count}-{i}", tool_name=name, tool_kwargs=json.loads(args[:-1]))
                for i, (name, _, args) in enumerate(parts)]
            return self.said("", calls)
        return self.said(f"{count} messages, {said}", [])

    def said(self, text, calls):
        message = ChatMessage(role="assistant", content=text, additional_kwargs={"calls": calls})
        return ChatResponse(message=message, raw={"usage": {"prompt_tokens": 10, "completion_tokens": 3}})

    def get_tool_calls_from_response(self, response, **more):
        return response.message.additional_kwargs["calls"]

    def _prepare_chat_with_tools(self, tools, chat_history=None, **more):
        return {"messages": list(chat_history or [])}

    async def achat(self, messages, **more):
        return self.answer(messages)

    async def astream_chat(self, messages, **more):
        async def pieces():
            yield self.answer(messages)
        return pieces()

    def chat(self, messages, **more):
        return self.answer(messages)

    def unused(self, *args, **more):
        raise NotImplementedError

    complete = stream_complete = stream_chat = acomplete = astream_complete = unused

def shop(**more):
    given = {"name": "shop", "description": "sells", "llm": Scripted(), "tools": [get_order, refund], **more}
    return FunctionAgent(**given)

agent = shop()
"""


def test_two_conversations_at_once_have_a_world_each(project: Project) -> None:
    done = play_two(project, AGENT)
    assert done.code == 0, done.all
    for name in ("early", "late"):
        first, second = answers(project, name)
        assert first == f'3 messages, {{"status": "{name}"}}'
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


def test_errors_reach_the_model_as_such(project: Project) -> None:
    tools = "{get_order: {error: closed}, refund: {returns: done}}"
    done = play(project, AGENT, [ORDER, 'get_order({"nr": 1})'], tools=tools)
    assert done.code == 0, done.all
    mocked, unfit = answers(project)
    assert mocked == "3 messages, closed"
    assert "missing a required argument: 'id'" in unfit


def test_a_tool_that_is_not_mocked_does_not_run(project: Project) -> None:
    done = play(project, AGENT, ['refund({"id": "2"})'], tools="{get_order: {returns: {}}}")
    assert done.code == 2, done.all
    assert not ran(project)


def test_real_tools_run_only_where_they_are_left_to_the_agent(project: Project) -> None:
    tools = "{get_order: {returns: {status: shipped}}}"
    done = play(project, AGENT, [BOTH], "unmocked_tools: passthrough", tools)
    assert done.code == 0, done.all
    assert ran(project) == ["refund"]


AROUND = """
import asyncio
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.tools.types import AsyncBaseTool, BaseTool, ToolMetadata, adapt_to_async_tool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

class Loud(FunctionTool):
    def call(self, *args, **kwargs):
        return super().call(*args, **kwargs)

    def acall(self, *args, **kwargs):
        return super().acall(*args, **kwargs)

class Bare(BaseTool):
    metadata = ToolMetadata("looks", "get_order")

    def __call__(self, input):
        mark("get_order")

class Own(Workflow):
    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await FunctionTool.from_defaults(get_order).acall(id="1"))

looks = FunctionTool.from_defaults(get_order)
partial = FunctionTool.from_defaults(get_order, partial_params={"id": "secret"})
bare = adapt_to_async_tool(Bare())
"""


@pytest.mark.parametrize(
    ("body", "args"),
    [
        ('await shop().run(user_msg=\'get_order({"id": "1"})\')', {"id": "1"}),
        ("await Own().run()", {"id": "1"}),
        ("await looks.acall(id='1')", {"id": "1"}),
        ("looks.call(id='1')", {"id": "1"}),
        ("looks('1')", {"id": "1"}),
        ("await asyncio.to_thread(looks.call, id='1')", {"id": "1"}),
        ("Loud.from_defaults(get_order).call(id='1')", {"id": "1"}),
        ("await Loud.from_defaults(get_order).acall(id='1')", {"id": "1"}),
        ("partial()", {}),
        ("await bare.acall('1')", {"input": "1"}),
        ("bare.call('1')", {"input": "1"}),
    ],
)
def test_tools_are_met_wherever_they_are_run(project: Project, body: str, args: dict[str, str]) -> None:
    code = f"{AROUND}\nasync def agent(text):\n    return str({body})\n"
    done = play(project, AGENT + code, ["where is it?"], tools="{get_order: {returns: {status: shipped}}}")
    assert done.code == 0, done.all
    assert [(name, given) for name, given, _ in calls(project)] == [("get_order", args)]
    assert "shipped" in answers(project)[0]
    assert not ran(project)


def test_an_agent_that_the_function_of_a_tool_runs_has_tools_that_a_scenario_may_answer(
    project: Project,
) -> None:
    code = """
def helper(name):
    return shop(name=name)

async def ask(text: str) -> str:
    "Ask another."
    return str(await helper("below").run(user_msg='get_order({"id": "1"})'))

agent = shop(tools=[ask])
"""
    tools = "{get_order: {returns: {status: shipped}}}"
    done = play(project, AGENT + code, ['ask({"text": "a"})'], "unmocked_tools: passthrough", tools)
    assert done.code == 0, done.all
    assert [name for name, *_ in calls(project)] == ["ask", "get_order"]
    assert "shipped" in answers(project)[0]
    assert not ran(project)


def test_what_a_real_tool_raises_is_its_result(project: Project) -> None:
    code = """
def broken(id: str) -> str:
    "Breaks."
    raise ValueError("out of order")

async def agent(text):
    return str(await shop(tools=[broken]).run(user_msg=text))
"""
    done = play(project, AGENT + code, ['broken({"id": "1"})'], "unmocked_tools: passthrough", "{}")
    assert answers(project) == ["3 messages, out of order"], done.all
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert "out of order" in str(call["result"])


def test_a_hand_off_shows_as_who_speaks_and_lasts(project: Project) -> None:
    code = """
returns = shop(name="returns", description="takes back", tools=[refund])
agent = AgentWorkflow(agents=[agent, returns], root_agent="shop")
"""
    turns = ['handoff({"to_agent": "returns", "reason": "so"})', 'refund({"id": "2"})']
    done = play(project, AGENT + code, turns)
    assert done.code == 0, done.all
    assert calls(project) == []
    assert calls(project, 1) == [("refund", {"id": "2"}, "returns")]
    assert not ran(project)


def test_the_thoughts_of_an_agent_are_no_answer(project: Project) -> None:
    code = """
class Thinking(Scripted):
    def answer(self, messages):
        said = messages[-1].content
        if "Observation" in said:
            return self.said(f"Thought: I can answer.\\\\nAnswer: {said}", [])
        return self.said('Thought: hm\\\\nAction: get_order\\\\nAction Input: {"id": "1"}', [])

agent = ReActAgent(name="shop", llm=Thinking(), tools=[get_order, refund])
""".replace("\\\\n", "\\n")
    done = play(project, AGENT + code, ["where is it?"])
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", {"id": "1"}, "shop")]
    assert "shipped" in answers(project)[0]
    assert "Thought" not in answers(project)[0]


def test_a_model_that_breaks_is_the_agents_failure(project: Project) -> None:
    done = play(project, AGENT, ["fail"])
    assert done.code == 1, done.all
    assert "OSError: the model is away" in done.all


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("agent = FunctionAgent", "the target is the LlamaIndex class FunctionAgent"),
        (
            "agent = CodeActAgent(name='coder', llm=Scripted(), tools=[get_order], code_execute_fn=print)",
            "the agent 'coder' is a CodeActAgent",
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
    reply, unfit = replies(agent_of(AGENT), Scenario(**SHOP), BOTH, 'get_order({"nr": "1"})')
    assert (reply["lists_tools"], reply["unplaced"], reply["unknown_tools"]) == (True, [], [])
    assert made(reply) == [("get_order", {"id": "1"}), ("refund", {"id": "2"})]
    assert (made(unfit), attempted(unfit)) == ([], ["get_order"])
    own = """
class Own(FunctionAgent):
    def look(self):
        return get_order("1")

agent = Own(name="shop", llm=Scripted(), tools=[get_order])
"""
    assert [each["lists_tools"] for each in replies(agent_of(AGENT + own), Scenario(), "hi")] == [False]


def test_what_ran_at_the_provider_is_noted() -> None:
    code = """
class Searching(Scripted):
    def said(self, text, calls):
        response = super().said(text, calls)
        response.message.additional_kwargs["built_in_tool_calls"] = [{"type": "web_search_call"}]
        return response

agent = FunctionAgent(name="shop", llm=Searching(), tools=[get_order], streaming=False)
"""
    (reply,) = replies(agent_of(AGENT + code), Scenario(), "hi")
    assert reply["unplaced"] == ["'web_search_call' ran at the provider, so its calls are not recorded"]
