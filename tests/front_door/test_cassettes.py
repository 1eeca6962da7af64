"""Recordings: a run against real servers, then the same run with the servers gone."""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agenteval.adapters.traffic.cassettes import (
    CassettePlayer,
    CassettePosition,
    CassetteRecorder,
    header_of,
    read_cassette,
)
from agenteval.adapters.traffic.placeholders import Placeholders, make_masker
from tests.support.judged_projects import KEY, contented, judged_project, model_config, scenario
from tests.support.kit import Done, Project
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    Request,
    answer,
    chat,
    closed_port,
    respond_json,
)
from tests.support.model_servers import Json, ModelServer, Reply

SECRET = "secret-of-the-agent-98765"
ENV = {**KEY, "AGENT_KEY": SECRET}
SMALL = [scenario("a", "One.", "Two.", facts=["The lamp is red."])]
TIMES = {"id", "started_at", "elapsed_s", "latency_ms", "command"}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES | {"notices"}}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def results(project: Project) -> Any:
    whole = project.results()
    for each in whole["scenarios"]:
        each["name"] = each.pop("id")  # a scenario's id is no time
    # That it is a replay is all that it may say of itself.
    whole["summary"]["caveats"] = [a for a in whole["summary"]["caveats"] if a["kind"] != "replay"]
    return without_times(whole)


def record(project: Project, env: dict[str, str] | None = None) -> Done:
    return project.run("--record", "run.jsonl", env=env)


def replay(project: Project, *flags: str, env: dict[str, str] | None = None) -> Done:
    return project.run("--replay", "run.jsonl", *flags, env=env)


def assert_same(project: Project, recorded: Done, before: Any, replayed: Done) -> None:
    assert replayed.code == recorded.code, replayed.all
    after = results(project)
    lines = [json.dumps(whole, indent=1, sort_keys=True).splitlines() for whole in (before, after)]
    changed = "\n".join(unified_diff(*lines, lineterm=""))
    assert not changed, changed


# ── agents and models behind servers ─────────────────────────────────────────────────────────────


def served(request: Request) -> Behaviour:
    """Calls a tool in its first turn, says back a header, and breaks when it is told to."""
    messages = request.json["messages"]
    text = messages[-1]["content"] or ""
    if "break" in text:
        return respond_json({"error": "it broke"}, status=400)
    if "forbidden" in text:
        return respond_json({"error": "not for you"}, status=401)
    if "look" in text and messages[-1]["role"] == "user":
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "é"}'}}
        return chat(None, tool_calls=[call])
    if "header" in text:
        return chat(f"My header is {request.headers['authorization']}.")
    return chat(f"I answer {text!r}.")


SCENARIOS = [
    scenario("tools", "Please look.", "And now?", tools={"look": {"returns": {"is": "${args.q}"}}}),
    scenario("breaks", "Hello.", "Now break."),
    scenario("forbidden", "Hello.", "This is forbidden."),
    scenario("echo", "What is your header?", "Thanks."),
    scenario("judge-breaks", "Confuse the judge."),
    scenario("simulated", goal="A lamp.", epochs=2),
    scenario("criteria", "Hello.", checks=None, expect={"criteria": ["Is polite.", "Is polite."]}),
]
del SCENARIOS[-1]["checks"]


def confused(asked: Json) -> Reply | None:
    text = json.dumps(asked["messages"])
    return Reply("no JSON", status=200) if "Confuse the judge" in text and "helpful" in text else None


def saying_its_key(asked: Json) -> Reply:
    reply = contented()(asked)
    assert reply is not None
    return Reply(json.loads(json.dumps(reply.body).replace("fine", f"fine, by {KEY['MODEL_KEY']}")))


def http_project(project: Project, agent: str, server: ModelServer) -> None:
    judged_project(project, SCENARIOS, model_config(server, "metrics: [helpfulness, faithfulness]\n"))
    path = project.root / "agenteval.yaml"
    head = f'agent: {{name: bot, endpoint: "{agent}", headers: {{Authorization: "Bearer ${{AGENT_KEY}}"}}}}'
    path.write_text("\n".join([head, *path.read_text("utf-8").split("\n")[1:]]), encoding="utf-8")


def test_a_replay_without_servers_and_keys_is_the_run_again_and_holds_no_secret(project: Project) -> None:
    with LocalServer(answer(served)) as agent, ModelServer(confused, saying_its_key) as model:
        http_project(project, agent.url, model)
        recorded = record(project, ENV)
        asked = len(agent.requests) + len(model.asked)
        assert any(KEY["MODEL_KEY"] in request["authorization"] for request in model.headers)
    before = results(project)
    assert recorded.code == 1, recorded.all
    assert asked > 30
    faults = {each["name"]: each["samples"][0]["fault"] for each in before["scenarios"]}
    assert faults["breaks"] == "agent"
    assert faults["forbidden"] == "infrastructure"
    assert _turns(before, "judge-breaks")[0]["score_failures"]
    assert_same(project, recorded, before, replay(project))
    # With another key in the environment, too: none of it is part of a question.
    assert_same(project, recorded, before, replay(project, env={"AGENT_KEY": "quite-another-key-1"}))
    text = (project.root / "run.jsonl").read_text("utf-8")
    assert SECRET not in text
    assert KEY["MODEL_KEY"] not in text
    assert re.search(r"My header is Bearer secret-of-[a-z]{3}-[a-z]{5}-\d{5}\.", text)
    assert re.search(r"fine, by key-of-the-[a-z]{5}-\d{6}", text)
    assert "authorization" not in text.lower()


# ── Python agents: calls through ctx are made again ──────────────────────────────────────────────

AGENT = """
import asyncio

from agenteval import AgentReply


async def agent(messages, ctx):
    match ctx.scenario_id:
        case "batch":
            both = await asyncio.gather(ctx.call_tool("count", {}), ctx.call_tool("count", {}))
            one = await ctx.call_tool("count", {})
            return AgentReply(f"{both} then {one}", usage={"prompt_tokens": 5, "completion_tokens": 2})
        case "odd":
            results = [await ctx.call_tool("count", args) for args in ("no JSON", '{"a": 1}', None)]
            return [{"role": "assistant", "content": f"{results} \\ud83d"}]
        case "raises":
            await ctx.call_tool("count", {})
            raise ValueError("it is broken: ümläut")
        case "undeclared":
            try:
                await ctx.call_tool("nobody_knows", {})
            except BaseException:
                pass
            return "went on"
        case "slow":
            await ctx.call_tool("count", {})
            await asyncio.sleep(30)
        case "loops":
            return {"role": "assistant", "tool_calls": [
                {"id": "x", "function": {"name": "count", "arguments": "{}"}}]}
        case "state":
            return str([m["content"] for m in messages])
"""
MOCKS = """
def count(args, ctx):
    return {"index": ctx.call_index, "turn": ctx.turn}
"""
COUNT = {"count": {"python": "../mocks.py:count"}}


def test_calls_are_made_again_in_the_same_rounds_and_faults_end_the_same_way(project: Project) -> None:
    cases = [
        scenario("batch", "One.", "Two.", tools=COUNT, epochs=2),
        scenario("odd", "One.", tools=COUNT),
        scenario("raises", "One.", tools=COUNT),
        scenario("slow", "One.", tools=COUNT),
        scenario("loops", "One.", tools=COUNT),
        scenario("state", "One.", "Two.", "Three."),
    ]
    judged_project(project, cases, "metrics: []\n", AGENT)
    text = (project.root / "agenteval.yaml").read_text("utf-8")
    project.write(
        "agenteval.yaml", text.replace("target: 'agent.py:agent'", "target: agent.py:agent, timeout_s: 1")
    )
    project.write("mocks.py", MOCKS)
    recorded = record(project)
    before = results(project)
    stops = {each["name"]: each["samples"][0]["stop"] for each in before["scenarios"]}
    assert stops["slow"] == "agent_timeout"
    assert stops["loops"] == "tool_loop"
    assert stops["raises"] == "agent_error"
    steps = [[call["result"] for call in turn["tool_calls"]] for turn in _turns(before, "batch")]
    assert steps[0] == [{"index": n, "turn": 0} for n in range(3)]
    (project.root / "agent.py").unlink()
    assert_same(project, recorded, before, replay(project))


def _turns(whole: Any, name: str) -> Any:
    (found,) = (each for each in whole["scenarios"] if each["name"] == name)
    return found["samples"][0]["turns"]


def test_a_mistake_of_the_author_is_one_again(project: Project) -> None:
    judged_project(project, [scenario("undeclared", "One.")], "metrics: []\n", AGENT)
    recorded = record(project)
    assert recorded.code == 2
    before = results(project)
    assert_same(project, recorded, before, replay(project))
    assert "nobody_knows" in project.results()["summary"]["author_errors"][0]


FRAMEWORK = """
def agent(messages, ctx):
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    listed = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    return {"messages": [*messages, *listed], "unknown_tools": ["look_up"], "lists_tools": True}
"""


def test_what_a_framework_knows_of_its_calls_is_recorded(project: Project) -> None:
    """Nobody else answers a call that it left open, nor one of a tool that it does not have."""
    judged_project(project, [scenario("open", "One.")], "metrics: []\n", FRAMEWORK)
    recorded = record(project)
    before = results(project)
    (call,) = _turns(before, "open")[0]["tool_calls"]
    assert call["name"] == "look_up"
    (project.root / "agent.py").unlink()
    assert_same(project, recorded, before, replay(project))


def test_a_dead_server_is_a_fault_of_the_recording_too(project: Project) -> None:
    """What nobody answered is recorded as well, so that a replay is as inconclusive as the run was."""
    judged_project(project, SMALL, "metrics: []\n")
    url = f"http://127.0.0.1:{closed_port()}/v1/chat/completions"
    project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{url}', max_wait_s: 0}}\nmetrics: []\n")
    recorded = record(project)
    assert recorded.code == 3, recorded.all
    assert_same(project, recorded, results(project), replay(project))


# ── nothing is asked ─────────────────────────────────────────────────────────────────────────────

WATCH = """
import socket

for name in ("connect", "connect_ex", "sendto"):
    def watched(self, *args, real=getattr(socket.socket, name)):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            open(r"{path}", "a").write("connect\\n")
        return real(self, *args)

    setattr(socket.socket, name, watched)


def looked_up(*args, real=socket.getaddrinfo, **more):
    open(r"{path}", "a").write("getaddrinfo\\n")
    return real(*args, **more)


socket.getaddrinfo = looked_up
"""


def test_a_replay_opens_no_connection(project: Project) -> None:
    opened = project.root / "opened.txt"
    project.write("watch/sitecustomize.py", WATCH.replace("{path}", str(opened)))
    watched = {"PYTHONPATH": str(project.root / "watch")}
    with LocalServer(answer(served)) as agent, ModelServer(contented()) as model:
        http_project(project, agent.url, model)
        record(project, {**ENV, **watched})
        assert opened.exists()
        opened.unlink()
        asked = len(agent.requests) + len(model.asked)
        replayed = replay(project, env=watched)
        assert len(agent.requests) + len(model.asked) == asked
    assert replayed.code == 1, replayed.all
    assert not opened.exists()


# ── what was not recorded ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def recorded(project: Project) -> Project:
    with ModelServer(contented()) as model:
        judged_project(project, SMALL, model_config(model, "metrics: [helpfulness]\n"))
        assert record(project, KEY).code == 0
    return project


@pytest.mark.parametrize(
    ("turn", "fact", "flags", "facts"),
    [
        pytest.param(
            "Three.", "The lamp is red.", [],
            ["a · bot · epoch 1, turn 2", "messages 3", "Three.", "Two.", "scenario a", "--record"],
            id="message",
        ),
        pytest.param(
            "Two.", "It is blue.", [],
            ["helpfulness", "a · bot · epoch 1, turn 1", "It is blue.", "The lamp is red."], id="prompt",
        ),
        pytest.param("Two.", "The lamp is red.", ["--epochs", "2"], ["epoch 2, turn 1"], id="epoch"),
        pytest.param(
            "Two.", "The lamp is red.", ["--metric", "faithfulness"],
            ["faithfulness", "a · bot · epoch 1, turn 1"], id="judge",
        ),
    ],
)  # fmt: skip
def test_a_question_that_was_not_recorded_is_named_with_its_place_and_what_changed(
    recorded: Project, turn: str, fact: str, flags: list[str], facts: list[str]
) -> None:
    recorded.scenarios(json.dumps({"scenarios": [scenario("a", "One.", turn, facts=[fact])]}))
    done = replay(recorded, *flags)
    assert done.code == 2, done.all
    error = recorded.results()["summary"]["author_errors"][0]
    assert [part for part in ("run.jsonl", *facts) if part not in error] == [], error


def test_a_field_that_replies_had_once_does_not_spoil_a_recording(recorded: Project) -> None:
    path = recorded.root / "run.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    replies = [line["reply"] for line in lines if "reply" in line]
    assert len(replies) == 2
    for reply in replies:
        reply["alone"] = True
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert replay(recorded).code == 0
    assert [turn["agent"] for turn in recorded.sample()["turns"]] == [reply["text"] for reply in replies]


def test_new_expectations_may_be_tried_on_an_old_recording(recorded: Project) -> None:
    changed = {**SMALL[0], "expect": {"output": {"contains": ["never said"]}}}
    del changed["checks"]
    recorded.scenarios(json.dumps({"scenarios": [changed]}))
    assert replay(recorded).code == 1
    assert not recorded.results()["summary"]["author_errors"]


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_a_recording_is_not_written_over(recorded: Project) -> None:
    before = (recorded.root / "run.jsonl").read_bytes()
    done = record(recorded, KEY)
    assert done.code == 2
    assert "run.jsonl" in done.err
    assert (recorded.root / "run.jsonl").read_bytes() == before
    both = replay(recorded, "--record", "other.jsonl")
    assert both.code == 2
    assert all(option in both.err for option in ("--record", "--replay"))


def test_a_run_that_cannot_begin_leaves_no_file(project: Project) -> None:
    judged_project(project, SMALL, "metrics: [nonsense]\n")
    assert record(project).code == 2
    assert not (project.root / "run.jsonl").exists()


HEAD = '{"kind": "header", "format": 1}\n'


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        pytest.param(None, ["run.jsonl"], id="no file"),
        pytest.param("", ["run.jsonl:1:"], id="nothing"),
        pytest.param("# Notes\n", ["run.jsonl:1:"], id="notes"),
        pytest.param('{"type": "run_started"}\n', ["run.jsonl:1:"], id="a journal"),
        pytest.param('{"kind": "header", "format": 99}\n', ["run.jsonl", "99", "1"], id="another format"),
        pytest.param(HEAD + '{"kind": "answer"}\n', ["run.jsonl:2:"], id="no question"),
        pytest.param(HEAD + '{"kin\n{}\n', ["run.jsonl:2:"], id="no JSON"),
        pytest.param(
            HEAD + '{"role": [], "hash": "x", "n": 0, "request": {}}\n', ["run.jsonl:2:"], id="type"
        ),
        pytest.param(HEAD + "[" * 100_000 + "\n{}\n", ["run.jsonl:2:"], id="too deep"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(project: Project, text: str | None, facts: list[str]) -> None:
    judged_project(project, SMALL, "metrics: []\n")
    if text is not None:
        (project.root / "run.jsonl").write_text(text, encoding="utf-8")
    done = replay(project)
    assert done.code == 2
    assert [fact for fact in facts if fact not in done.err] == [], done.err


def test_mistakes_in_scenarios_are_shown_before_those_of_a_recording(project: Project) -> None:
    project.agent("def agent(message):\n    return message\n")
    project.config("metrics: []")
    project.scenarios("id: known\nturns: [hi]\nchecks: none\n")
    assert replay(project, "-s", "other").code == 5
    project.scenarios("id: s\nturns: [hi]\nexpct: {}\n")
    replay(project).refuses("suite.yaml:3:1", "'expct'")


def test_a_torn_last_line_is_a_miss_and_no_broken_file(recorded: Project) -> None:
    path = recorded.root / "run.jsonl"
    lines = path.read_text("utf-8").rstrip("\n").split("\n")
    path.write_text("\n".join([*lines[:-1], lines[-1][:50]]), encoding="utf-8")
    done = replay(recorded)
    assert done.code == 2, done.all
    assert "run.jsonl" in recorded.results()["summary"]["author_errors"][0]


def test_each_time_that_something_is_asked_has_its_number(tmp_path: Path) -> None:
    """Answers come in any order, and what came to nothing is not written down."""
    recorder = CassetteRecorder(tmp_path / "run.jsonl")
    spot, question = CassettePosition("a", "agent"), {"messages": []}
    recorder.start(header_of((), {}))
    recorder.begin()
    notes = [recorder.ask(spot, question) for _ in range(3)]
    notes[2]({"reply": 2})
    notes[1]({"reply": 1})
    recorder.close()
    player = CassettePlayer(read_cassette(recorder.path))
    found = [player.find(spot, question) for _ in range(4)]
    assert [each and each["reply"] for each in found] == [None, 1, 2, None]


def test_lines_are_one_question_each(recorded: Project) -> None:
    lines = (recorded.root / "run.jsonl").read_text("utf-8").splitlines()
    head, *answers = map(json.loads, lines)
    assert (head["kind"], head["format"], sorted(head["scenarios"])) == ("header", 1, ["a"])
    assert head["prompts"]["helpfulness"]
    asked = sorted((each["role"], each["turn"]) for each in answers)
    assert asked == [("agent", 0), ("agent", 1), ("judge", 0), ("judge", 1)]


# ── what stands for a secret ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("secret", "shape"),
    [
        ("sk-proj-Ab12Cd34Ef56Gh78", r"sk-proj-[A-Z][a-z]\d\d[A-Z][a-z]\d\d[A-Z][a-z]\d\d[A-Z][a-z]\d\d"),
        ("AKIAABCDEFGH12345678", r"AKIA[A-Z]{8}\d{8}"),
        ("hunter22", r"[a-z]{6}\d\d"),
    ],
)
def test_a_placeholder_has_the_shape_of_its_secret_and_is_another_each_time(secret: str, shape: str) -> None:
    one, two = Placeholders([secret]), Placeholders([secret])
    text = json.dumps({"text": f"It is {secret}, said with {quote(secret)}."})
    hidden = one.substitute(text)
    assert secret not in hidden
    assert re.search(rf'"It is {shape}, said', hidden)
    assert hidden != two.substitute(text)
    assert make_masker([secret], ())(text) == make_masker([], one.values)(hidden)


def test_a_secret_that_json_escapes_leaves_json() -> None:
    secret = 'line one\n"quoted" \\ and more é'
    hidden = Placeholders([secret]).substitute(json.dumps({"text": secret}))
    assert "line one" not in json.loads(hidden)["text"]
