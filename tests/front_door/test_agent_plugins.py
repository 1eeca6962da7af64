"""Adapters of other packages: their options are checked by their own model, every mistake at its place."""

from __future__ import annotations

import json

import pytest

from tests.support.kit import Project

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


@pytest.mark.parametrize(
    "written",
    ["{type: echo, options: {greeting: Hi}}", "{type: echo, greeting: Hi}"],
    ids=["under", "beside"],
)
def test_an_agent_with_options_of_its_own_is_played(installed: Project, written: str) -> None:
    agent(installed, written)
    done = installed.run()
    assert done.code == 0, done.all
    assert installed.sample()["turns"][0]["agent"] == "Hi, world!"


def test_an_option_changes_what_the_agent_does(installed: Project) -> None:
    agent(installed, "{type: echo, options: {greeting: Hi, times: 2, name: Ann, mood: gruff}}")
    assert installed.run().code == 1
    assert installed.sample()["turns"][0]["agent"] == "Hi Hi, Ann!"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{greting: Hi}", "1:31: unknown key 'greting' — did you mean 'greeting'?"),
        ("{}", "1:21: agent.options: 'greeting' is missing"),
        ("{greeting: Hi, times: 9}", "1:45: agent.options.times: must be at most 3, got 9"),
        ("{greeting: Hi, times: x}", "1:45: agent.options.times: expected a whole number, got 'x'"),
        ("{greeting: Hi, mood: kin}", "1:45: agent.options.mood: expected one of kind, gruff, got 'kin'"),
        ("{greeting: ' '}", "1:31: agent.options.greeting: nobody would hear it — write a word"),
        ("{greeting: Hi, voice: {nam: x}}", "agent.options.voice: 'name' is missing"),
        ("{greeting: Hi, code: a1}", "1:45: agent.options.code: "),
        ("[Hi]", "agent.options: expected a mapping, got a list"),
    ],
)
def test_a_wrong_option_is_refused_at_its_place(installed: Project, written: str, message: str) -> None:
    agent(installed, f"{{type: echo, options: {written}}}")
    for command in ("run", "validate"):
        done = installed.call(command)
        assert done.code == 2, done.all
        assert f"agenteval.yaml:{message}" in done.err or message in done.err, done.err


def test_beside_the_keys_of_all_agents_a_wrong_option_is_refused_too(installed: Project) -> None:
    agent(installed, "{type: echo, greting: Hi, timeot_s: 3}")
    done = installed.run()
    assert done.code == 2
    assert "agenteval.yaml:1:21: unknown key 'greting' — did you mean 'greeting'?" in done.err
    assert "agenteval.yaml:1:34: unknown key 'timeot_s' — did you mean 'timeout_s'?" in done.err


def test_options_of_another_adapter_are_refused(installed: Project) -> None:
    agent(installed, "{type: echo, greeting: Hi, endpoint: 'http://x'}")
    done = installed.run()
    assert (done.code, "an agent of type echo has no 'endpoint'" in done.err) == (2, True)


def test_an_option_stands_once(installed: Project) -> None:
    agent(installed, "{type: echo, greeting: Hi, options: {greeting: Ho}}")
    done = installed.run()
    assert (done.code, "options: 'greeting' is a key of the agent" in done.err) == (2, True)


def test_those_that_are_built_in_go_through_the_same_door(installed: Project) -> None:
    installed.agent("def agent(messages):\n    return 'Hi, world!'\n")
    agent(installed, "{type: python, options: {target: 'agent.py:agent'}}")
    assert installed.run().code == 0
    agent(installed, "{type: python, options: {target: 'agent.py:agent', targe: x}}")
    done = installed.run()
    assert (done.code, ":1:59: unknown key 'targe'" in done.err) == (2, True), done.err


def test_a_function_alone_is_an_adapter_without_options(installed: Project) -> None:
    agent(installed, "{type: plain}")
    assert installed.run().code == 1
    assert installed.sample()["turns"][0]["agent"] == "Plain, world!"
    agent(installed, "{type: plain, options: {x: 1}}")
    done = installed.run()
    assert (done.code, "unknown key 'x'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "broken",
            "1:9: the agent type 'broken' (echo_agent:BROKEN) cannot be loaded: TypeError: it is not an",
        ),
        ("gone", "1:9: the agent type 'gone' (no_such_module:ADAPTER) cannot be loaded: ModuleNotFoundError"),
        ("ecko", "1:9: no agent type is named 'ecko' — did you mean 'echo'?"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(installed: Project, kind: str, message: str) -> None:
    agent(installed, f"{{type: {kind}, options: {{greeting: Hi}}}}")
    done = installed.run()
    assert (done.code, f"agenteval.yaml:{message}" in done.err) == (2, True), done.err


def test_an_adapter_that_raises_is_no_traceback(installed: Project) -> None:
    agent(installed, "{type: echo, options: {greeting: crash}}")
    done = installed.run()
    assert done.code == 2
    assert "agent 'agent' cannot be made: RuntimeError: no voice" in done.err
    assert "Traceback" not in done.err


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


def test_those_of_compare_inherit_options(installed: Project) -> None:
    compare = "compare: [{name: b, options: {times: 2}}, {name: c, times: 3}]\n"
    agent(installed, "{name: a, type: echo, options: {greeting: Hi}}", compare)
    installed.run()
    found = {each["agent"]: each["samples"] for each in installed.results()["scenarios"]}
    texts = {name: sample["turns"][0]["agent"] for name, (sample,) in found.items()}
    assert texts == {"a": "Hi, world!", "b": "Hi Hi, world!", "c": "Hi Hi Hi, world!"}


def test_a_run_with_options_is_reported_and_continued_where_the_package_is_gone(installed: Project) -> None:
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


@pytest.mark.parametrize(
    ("does", "code", "fault", "broken"),
    [
        ("answers", 0, None, set()),
        ("cancels", 1, None, {"tool_calls"}),
        ("breaks", 1, "agent", {"no_error", "tool_calls"}),
        ("is offline", 3, "infrastructure", set()),
    ],
)
def test_an_adapter_needs_no_names_but_the_public_ones(
    installed: Project, does: str, code: int, fault: str | None, broken: set[str]
) -> None:
    installed.write("echo_agent.py", BY_PUBLIC_NAMES)
    installed.scenarios(
        "id: s\nturns: [{user: world, expect: {tool_calls: {forbidden: [{name: cancel}]}, agents: [shop]}}]\n"
    )
    agent(installed, f"{{type: echo, options: {{does: {does}}}}}")
    done = installed.run()
    assert done.code == code, done.all
    sample = installed.sample()
    assert sample["fault"] == fault
    (turn,) = sample["turns"]
    failed = {check["name"] for check in (*turn["checks"], *sample["checks"]) if check["passed"] is False}
    assert failed - {"agents"} == broken, (turn["checks"], sample["checks"])
    assert code == 3 or does == "breaks" or turn["latency_ms"] == 7


def test_a_mistake_in_an_adapters_own_words_stands_at_its_place(installed: Project) -> None:
    installed.write("echo_agent.py", BY_PUBLIC_NAMES)
    agent(installed, "{type: echo, options: {does: nothing}}")
    done = installed.call("validate")
    what = "agenteval.yaml:1:31: an agent that does nothing cannot be tested — write does: answers"
    assert (done.code, what in done.err) == (2, True), done.err
