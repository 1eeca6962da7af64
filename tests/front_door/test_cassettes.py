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
    said = messages[-1]["content"] or ""
    if "break" in said:
        return respond_json({"error": "it broke"}, status=400)
    if "forbidden" in said:
        return respond_json({"error": "not for you"}, status=401)
    if "look" in said and messages[-1]["role"] == "user":
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "é"}'}}
        return chat(None, tool_calls=[call])
    if "header" in said:
        return chat(f"My header is {request.headers['authorization']}.")
    return chat(f"I answer {said!r}.")


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


def http_project(project: Project, agent: str, server: ModelServer) -> None:
    judged_project(project, SCENARIOS, model_config(server, "metrics: [helpfulness, faithfulness]\n"))
    path = project.root / "agenteval.yaml"
    head = f'agent: {{name: bot, endpoint: "{agent}", headers: {{Authorization: "Bearer ${{AGENT_KEY}}"}}}}'
    path.write_text("\n".join([head, *path.read_text("utf-8").split("\n")[1:]]), encoding="utf-8")


def test_a_replay_without_servers_and_keys_is_the_run_again(project: Project) -> None:
    with LocalServer(answer(served)) as agent, ModelServer(confused, contented()) as model:
        http_project(project, agent.url, model)
        recorded = record(project, ENV)
        asked = len(agent.requests) + len(model.asked)
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


def test_no_secret_is_in_a_recording(project: Project) -> None:
    def says_key_back(asked: Json) -> Reply | None:
        return contented()(asked) if "harmless" in json.dumps(asked) else None

    def tells(asked: Json) -> Reply:
        reply = contented()(asked)
        assert reply is not None
        text = json.dumps(reply.body).replace("fine", f"fine, by {KEY['MODEL_KEY']}")
        return Reply(json.loads(text))

    with LocalServer(answer(served)) as agent, ModelServer(says_key_back, tells) as model:
        http_project(project, agent.url, model)
        record(project, ENV)
        assert any(KEY["MODEL_KEY"] in request["authorization"] for request in model.headers)
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
    assert "which is not mocked" in project.results()["summary"]["author_errors"][0]


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

SMALL = [scenario("a", "One.", "Two.", facts=["The lamp is red."])]


@pytest.fixture
def recorded(project: Project) -> Project:
    with ModelServer(contented()) as model:
        judged_project(project, SMALL, model_config(model, "metrics: [helpfulness]\n"))
        assert record(project, KEY).code == 0
    return project


def test_a_changed_message_is_named_with_its_place(recorded: Project) -> None:
    recorded.scenarios(json.dumps({"scenarios": [scenario("a", "One.", "Three.", facts=SMALL[0]["facts"])]}))
    done = replay(recorded)
    assert done.code == 2, done.all
    (told,) = recorded.results()["summary"]["author_errors"]
    assert "run.jsonl has no answer of the agent (a · bot · epoch 1, turn 2)" in told
    assert re.search(r"in messages 3, '.*Three.*' replaces '.*Two.*'", told)
    assert "changed since the recording: scenario a" in told
    assert "record it again with --record" in told


def test_a_changed_prompt_names_the_judge_and_the_line(recorded: Project) -> None:
    recorded.scenarios(json.dumps({"scenarios": [scenario("a", "One.", "Two.", facts=["It is blue."])]}))
    done = replay(recorded)
    assert done.code == 2, done.all
    told = recorded.results()["summary"]["author_errors"][0]
    assert "no answer of the judge of helpfulness (a · bot · epoch 1, turn 1)" in told
    assert "in the prompt, 'It is blue.' replaces 'The lamp is red.'" in told.replace("- ", "")


def test_what_was_never_asked_is_a_miss(recorded: Project) -> None:
    assert replay(recorded, "--epochs", "2").code == 2
    told = recorded.results()["summary"]["author_errors"]
    assert "epoch 2, turn 1): this conversation was not recorded" in told[0]
    assert replay(recorded, "--metric", "faithfulness").code == 2
    told = recorded.results()["summary"]["author_errors"]
    assert "judge of faithfulness (a · bot · epoch 1, turn 1): nothing was asked there" in told[0]


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
    assert "run.jsonl exists — a recording is never overwritten" in done.err
    assert (recorded.root / "run.jsonl").read_bytes() == before


def test_a_run_that_cannot_begin_leaves_no_file(project: Project) -> None:
    judged_project(project, SMALL, "metrics: [nonsense]\n")
    assert record(project).code == 2
    assert not (project.root / "run.jsonl").exists()


def test_recording_and_replaying_at_once_is_refused(recorded: Project) -> None:
    done = replay(recorded, "--record", "other.jsonl")
    assert done.code == 2
    assert "--record and --replay cannot both be given" in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "run.jsonl cannot be read: No such file or directory"),
        ("", "run.jsonl:1: this is not a recording of a run"),
        ("# Notes\n", "run.jsonl:1: this is not a recording of a run"),
        ('{"type": "run_started"}\n', "run.jsonl:1: this is not a recording of a run"),
        ('{"kind": "header", "format": 99}\n', "has format 99, and this version reads 1"),
        ('{"kind": "header", "format": 1}\n{"kind": "answer"}\n', "run.jsonl:2: this is not a recording"),
        ('{"kind": "header", "format": 1}\n{"kin\n{}\n', "run.jsonl:2: this is not a recording"),
        (
            '{"kind": "header", "format": 1}\n{"role": [], "hash": "x", "n": 0, "request": {}}\n',
            "run.jsonl:2:",
        ),
        (
            '{"kind": "header", "format": 1}\n' + "[" * 100_000 + "\n{}\n",
            "run.jsonl:2: this is not a recording",
        ),
    ],
)
def test_a_file_that_is_no_recording(project: Project, text: str | None, message: str) -> None:
    judged_project(project, SMALL, "metrics: []\n")
    if text is not None:
        (project.root / "run.jsonl").write_text(text, encoding="utf-8")
    done = replay(project)
    assert done.code == 2
    assert message in done.err


def test_mistakes_in_scenarios_are_shown_before_those_of_a_recording(project: Project) -> None:
    project.agent("def agent(message):\n    return message\n")
    project.config("metrics: []")
    project.scenarios("id: known\nturns: [hi]\nchecks: none\n")
    none = replay(project, "-s", "other")
    assert (none.code, "selects none of" in none.err) == (5, True), none.all
    project.scenarios("id: s\nturns: [hi]\nexpct: {}\n")
    wrong = replay(project)
    assert (wrong.code, "unknown key 'expct'" in wrong.err) == (2, True), wrong.all


def test_a_torn_last_line_is_a_miss_and_no_broken_file(recorded: Project) -> None:
    path = recorded.root / "run.jsonl"
    lines = path.read_text("utf-8").rstrip("\n").split("\n")
    path.write_text("\n".join([*lines[:-1], lines[-1][:50]]), encoding="utf-8")
    done = replay(recorded)
    assert done.code == 2, done.all
    assert "has no answer of" in recorded.results()["summary"]["author_errors"][0]


def test_each_time_that_something_is_asked_has_its_number(tmp_path: Path) -> None:
    """Answers come in any order, and what came to nothing is not written down."""
    recorder, spot, question = (
        CassetteRecorder(tmp_path / "run.jsonl"),
        CassettePosition("a", "agent"),
        {"messages": []},
    )
    recorder.start(header_of((), {}))
    recorder.begin()
    notes = [recorder.ask(spot, question) for _ in range(3)]
    notes[2]({"reply": 2})
    notes[1]({"reply": 1})
    recorder.close()
    player = CassettePlayer(read_cassette(recorder.path))
    found = [player.find(spot, question) for _ in range(4)]
    assert [each and each["reply"] for each in found] == [None, 1, 2, None]


def test_a_dead_server_is_a_fault_of_the_recording_too(project: Project) -> None:
    """What nobody answered is recorded as well, so that a replay is as inconclusive as the run was."""
    judged_project(project, SMALL, "metrics: []\n")
    url = f"http://127.0.0.1:{closed_port()}/v1/chat/completions"
    project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{url}', max_wait_s: 0}}\nmetrics: []\n")
    recorded = record(project)
    assert recorded.code == 3, recorded.all
    before = results(project)
    assert_same(project, recorded, before, replay(project))


def test_lines_are_one_question_each(recorded: Path | Project) -> None:
    assert isinstance(recorded, Project)
    lines = (recorded.root / "run.jsonl").read_text("utf-8").splitlines()
    head, *answers = map(json.loads, lines)
    assert (head["kind"], head["format"], sorted(head["scenarios"])) == ("header", 1, ["a"])
    assert head["prompts"]["helpfulness"]
    assert [
        (each["role"], each["turn"]) for each in sorted(answers, key=lambda e: (e["role"], e["turn"]))
    ] == [
        ("agent", 0),
        ("agent", 1),
        ("judge", 0),
        ("judge", 1),
    ]


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
