"""Adapters of other packages: their options are checked by their own model, every mistake at its place."""

from __future__ import annotations

import json

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.suites import samples_of, write_suite

PACKAGE = """
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from agenteval import AgentAdapter, AgentReply

class Voice(BaseModel):
    name: str
    loud: bool = False

class Options(BaseModel):
    greeting: str
    times: Annotated[int, Field(ge=1, le=3)] = 1
    mood: Literal["kind", "gruff"] = "kind"
    voice: Voice | None = None
    code: Annotated[str, Field(pattern="^[A-Z]+$")] = "A"
    name: str = ""
    api_token: str = ""

    @field_validator("greeting")
    @classmethod
    def is_said(cls, value):
        if not value.strip():
            raise ValueError("nobody would hear it; write a word")
        return value

class Echo:
    def __init__(self, options):
        self.options = options

    async def reply(self, messages, tools):
        said = " ".join([self.options.greeting] * self.options.times)
        return AgentReply(text=f"{said}, {self.options.name or messages[-1]['content']}!")

class Factory:
    def __init__(self, agent, options, resources):
        if options.greeting == "crash":
            raise RuntimeError("no voice")
        self.options = options

    def make(self, sample):
        return Echo(self.options)

    async def aclose(self):
        pass

ADAPTER = AgentAdapter(Factory, Options)

def plain(agent, resources):
    return Factory(agent, Options(greeting="Plain"), resources)

BROKEN = 3
"""
ENTRIES = (
    "[agenteval.agents]\necho = echo_agent:ADAPTER\nplain = echo_agent:plain\nbroken = echo_agent:BROKEN\n"
    "gone = no_such_module:ADAPTER\n"
)
SCENARIO = "id: s\nturns: [world]\nexpect: {output: {contains: ['Hi, world!']}}\n"


@pytest.fixture
def installed(project: Project) -> Project:
    project.write("echo_agent.py", PACKAGE)
    project.write(
        "echo_agent-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: echo-agent\nVersion: 1.0\n"
    )
    project.write("echo_agent-1.0.dist-info/entry_points.txt", ENTRIES)
    project.scenarios(SCENARIO)
    return project


def agent(project: Project, text: str, more: str = "") -> None:
    project.write("agenteval.yaml", f"agent: {text}\nmetrics: []\n{more}")


OPTIONS = {
    "under options": ("{type: echo, options: {greeting: Hi}}", "Hi, world!"),
    "beside the keys of all agents": ("{type: echo, greeting: Hi}", "Hi, world!"),
    "each changes something": ("{type: echo, options: {greeting: Hi, times: 2, name: Ann, mood: gruff}}",
        "Hi Hi, Ann!"),
    "a function without options": ("{type: plain}", "Plain, world!"),
    "a built-in type": ("{type: python, options: {target: 'agent.py:agent'}}", "Hi, world!"),
}  # fmt: skip


def test_options_reach_the_agent(installed: Project) -> None:
    installed.agent("def agent(messages):\n    return 'Hi, world!'\n")
    agents = {f"a{n}": written[1:-1] for n, (written, _) in enumerate(OPTIONS.values())}
    scenarios = {id: f"agent: a{n}, turns: [world], checks: none" for n, id in enumerate(OPTIONS)}
    write_suite(installed, agents, scenarios)
    done = installed.run()
    assert done.code == 0, done.all
    found = {id: sample["turns"][0]["agent"] for id, sample in samples_of(installed).items()}
    assert found == {id: answer for id, (_, answer) in OPTIONS.items()}


def test_agents_that_are_compared_inherit_options(installed: Project) -> None:
    compare = "compare: [{name: b, options: {times: 2}}, {name: c, times: 3}]\n"
    agent(installed, "{name: a, type: echo, options: {greeting: Hi}}", compare)
    installed.run()
    found = {each["agent"]: each["samples"] for each in installed.results()["scenarios"]}
    texts = {name: sample["turns"][0]["agent"] for name, (sample,) in found.items()}
    assert texts == {"a": "Hi, world!", "b": "Hi Hi, world!", "c": "Hi Hi Hi, world!"}


REFUSED = [
    ("{type: echo, options: {greting: Hi}}", "1:31", "'greting'", "'greeting'"),
    ("{type: echo, options: {}}", "1:21", "agent.options", "greeting"),
    ("{type: echo, options: {greeting: Hi, times: 9}}", "1:45", "agent.options.times", "3", "9"),
    ("{type: echo, options: {greeting: Hi, times: x}}", "1:45", "agent.options.times", "'x'"),
    ("{type: echo, options: {greeting: Hi, mood: kin}}", "1:45", "options.mood", "kind, gruff", "'kin'"),
    ("{type: echo, options: {greeting: ' '}}", "1:31", "agent.options.greeting", "nobody would hear it"),
    ("{type: echo, options: {greeting: Hi, voice: {nam: x}}}", "1:", "agent.options.voice", "name"),
    ("{type: echo, options: {greeting: Hi, code: a1}}", "1:45", "agent.options.code"),
    ("{type: echo, options: [Hi]}", "1:", "agent.options", "list"),
    ("{type: echo, greting: Hi, timeot_s: 3}", "1:21", "'greting'", "'greeting'"),
    ("{type: echo, greting: Hi, timeot_s: 3}", "1:34", "'timeot_s'", "'timeout_s'"),
    ("{type: echo, greeting: Hi, endpoint: 'http://x'}", "1:", "echo", "'endpoint'"),
    ("{type: echo, greeting: Hi, options: {greeting: Ho}}", "1:", "options", "'greeting'"),
    ("{type: echo, options: {greeting: crash}}", "", "'agent'", "RuntimeError: no voice"),
    ("{type: python, options: {target: 'agent.py:agent', targe: x}}", "1:59", "'targe'"),
    ("{type: plain, options: {x: 1}}", "1:", "'x'"),
    ("{type: broken, options: {greeting: Hi}}", "1:9", "'broken'", "echo_agent:BROKEN", "TypeError"),
    ("{type: gone, options: {greeting: Hi}}", "1:9", "no_such_module:ADAPTER", "ModuleNotFoundError"),
    ("{type: ecko, options: {greeting: Hi}}", "1:9", "'ecko'", "'echo'"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "place", "facts"), [(w, p, f) for w, p, *f in REFUSED])
def test_a_wrong_option_or_type_is_refused_at_its_place(
    installed: Project, written: str, place: str, facts: list[str]
) -> None:
    installed.agent("def agent(messages):\n    return 'Hi, world!'\n")
    agent(installed, written)
    where = f"agenteval.yaml:{place}".rstrip(":") if place else "agenteval"
    installed.run().refuses(where, *facts)
    if place:  # what breaks only when the agent is made, `run` alone sees
        installed.call("validate").refuses(where, *facts)


@pytest.mark.parametrize(
    "written", ["options: {greeting: Hi, api_token: '%s'}", "greeting: Hi, api_token: '%s'"]
)
@pytest.mark.parametrize("token", ["literal-token-12345", "${HIDDEN}"])
def test_secrets_among_options_are_not_written_down(installed: Project, written: str, token: str) -> None:
    agent(installed, f"{{type: echo, {written % token}}}", "")
    done = installed.run(env={"HIDDEN": "literal-token-12345"})
    assert done.code == 0, done.all
    journal = "".join(path.read_text("utf-8") for path in installed.root.rglob("events.jsonl"))
    journal += json.dumps(installed.results())
    assert "literal-token-12345" not in journal + done.all
    assert "greeting" in journal


def test_a_run_with_options_is_reported_where_the_package_is_gone(installed: Project) -> None:
    agent(installed, "{type: echo, options: {greeting: Hi}}")
    assert installed.run().code == 0
    installed.write("echo_agent-1.0.dist-info/entry_points.txt", "")
    done = installed.call("report", "latest", "--report", "json=-")
    assert done.code == 0, done.all
    assert json.loads(done.out)["run"]


BY_PUBLIC_NAMES = """
from pydantic import BaseModel

from agenteval import AgentAdapter, AgentError, AgentReply, InfrastructureError, KnownVisibility, Mistake
from agenteval import ToolVisibility

DONE = [
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "cancel", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "cancelled"},
]

class Options(BaseModel):
    does: str

def mistakes(own):
    if own.get("does") == "nothing":
        yield Mistake("an agent that does nothing cannot be tested", "write does: answers", ("does",))

class Shop:
    def __init__(self, agent, options, resources):
        self.does = options.does

    def make(self, sample):
        return self

    async def aclose(self):
        pass

    async def reply(self, messages, tools):
        if self.does == "breaks":
            raise AgentError("the shop is closed", seen=AgentReply(messages=DONE))
        if self.does == "is offline":
            raise InfrastructureError("no network")
        done = DONE if self.does == "cancels" else []
        return AgentReply("Hi, world!", messages=done, latency_ms=7, agent="shop")

def visibility(options, tools):
    return KnownVisibility(calls=ToolVisibility.ALL)

ADAPTER = AgentAdapter(Shop, Options, mistakes, visibility)
"""


DOES = {
    "answers": ("passed", None, set()),
    "cancels": ("failed", None, {"tool_calls"}),
    "breaks": ("failed", "agent", {"no_error", "tool_calls"}),
    "is offline": ("inconclusive", "infrastructure", set()),
}


def test_an_adapter_needs_no_names_but_the_public_ones(installed: Project) -> None:
    installed.write("echo_agent.py", BY_PUBLIC_NAMES)
    agents = {f"a{n}": f"type: echo, options: {{does: {does}}}" for n, does in enumerate(DOES)}
    expect = "expect: {tool_calls: {forbidden: [{name: cancel}]}, agents: [shop]}"
    scenarios = {d: f"agent: a{n}, turns: [{{user: world, {expect}}}]" for n, d in enumerate(DOES)}
    write_suite(installed, agents, scenarios)
    assert installed.run().code == 1
    for does, (verdict, fault, broken) in DOES.items():
        sample = installed.sample(does)
        assert (sample["verdict"], sample["fault"]) == (verdict, fault), does
        failed = {name for _, name in failed_checks(sample)}
        assert failed - {"agents"} == broken, (does, sample)
        if does in ("answers", "cancels"):
            assert sample["turns"][0]["latency_ms"] == 7


def test_a_mistake_that_an_adapter_finds_itself_stands_at_its_place(installed: Project) -> None:
    installed.write("echo_agent.py", BY_PUBLIC_NAMES)
    agent(installed, "{type: echo, options: {does: nothing}}")
    facts = ("an agent that does nothing cannot be tested", "write does: answers")
    installed.call("validate").refuses("agenteval.yaml:1:31", *facts)
