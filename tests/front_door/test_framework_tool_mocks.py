"""Calls that a model asked for: met where a framework carries out its tools, or not."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, Request, answer, completion, respond_json
from tests.support.toy_hooked import put_into

REAL = """
from pathlib import Path
from pydantic_ai import Toy

async def save_note(id="", text=""):
    with Path("ran").open("a") as log:
        log.write(f"save_note {id}\\n")
    return {"saved": "really"}

async def look(id=""):
    with Path("ran").open("a") as log:
        log.write(f"look {id}\\n")
    return {"found": "really"}

async def agent(question: str):
    return await Toy(save_note, look%s).run(question)
"""
MOCKED = "tools: {save_note: {returns: {saved: '${args.id}'}}, look: {returns: {found: '${args.id}'}}}\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def asking(*calls: tuple[str, dict[str, Any]], key: Any = 0) -> Any:
    """A model's reply with calls."""
    made = [
        {"id": f"c{key}-{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for n, (name, args) in enumerate(calls)
    ]
    return respond_json({**completion(None, finish_reason="tool_calls", tool_calls=made), "usage": USAGE})


ANSWERS = respond_json({**completion("Done."), "usage": USAGE})


def model(*rounds: list[tuple[str, dict[str, Any]]]) -> LocalServer:
    """Asks for the calls of one round after the other, those of a message of the user's each time anew."""

    def reply(request: Request) -> Any:
        at = sum(message["role"] == "assistant" for message in request.json["messages"])
        return asking(*rounds[at], key=at) if at < len(rounds) else ANSWERS

    return LocalServer(answer(reply))


def play(
    project: Project, server: LocalServer, expect: str, *, more: str = "", tools: str = MOCKED, keys: str = ""
) -> Done:
    """``more``: arguments of the framework; ``keys``: those of the agent."""
    (project.root / "ran").unlink(missing_ok=True)
    put_into(project)
    project.agent(REAL % more)
    project.write("agenteval.yaml", f"agent: {{name: bot, target: 'agent.py:agent'{keys}}}\nmetrics: []\n")
    project.scenarios(f"id: it\nturns: [Note it]\n{tools}expect: {expect}\n")
    return project.run(env={"MODEL_URL": f"{server.address}/v1"})


def calls(project: Project) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"].get("id")) for call in project.sample()["turns"][0]["tool_calls"]]


def ran(project: Project) -> list[str]:
    path = project.root / "ran"
    return path.read_text().splitlines() if path.exists() else []


CALLS = "[{name: look, args: {id: a}}, {name: save_note, args: {id: b}}]"
STRICT = f"{{tool_calls: {{match: strict, calls: {CALLS}}}}}"
BOTH = [("look", {"id": "a"}), ("save_note", {"id": "b"})]


PLACES = pytest.mark.parametrize(
    "keys", ["", f", interpreter: {sys.executable}"], ids=["here", "interpreter"]
)


@PLACES
def test_a_call_that_was_met_is_that_one_in_the_order_in_which_the_model_asked(
    project: Project, keys: str
) -> None:
    for asked, code in ((BOTH, 0), ([*BOTH, ("save_note", {"id": "c"})], 1)):
        with model(asked) as server:
            done = play(project, server, STRICT, keys=keys)
        assert done.code == code, done.all
        assert calls(project) == [(name, args["id"]) for name, args in asked]
        turn = project.sample()["turns"][0]
        assert [call["result"] for call in turn["tool_calls"]][:2] == [{"found": "a"}, {"saved": "b"}]
        assert turn["steps"] == 2
        assert ran(project) == []


@PLACES
def test_a_mocked_tool_that_the_agent_s_own_code_ran_leaves_it_undecided(project: Project, keys: str) -> None:
    for more, code in (("", 0), (", by_hand=('save_note',)", 3)):
        with model(BOTH) as server:
            done = play(project, server, STRICT, more=more, keys=keys)
        assert done.code == code, done.all
        assert calls(project) == [("look", "a"), ("save_note", "b")]
    assert "intercept: {save_note: " in " ".join(done.all.split())


def test_a_forbidden_tool_that_the_agents_own_code_ran_is_red(project: Project) -> None:
    forbids = "{tool_calls: {calls: [{name: look}], forbidden: [{name: save_note}]}}"
    tools = "tools: {look: {returns: {found: yes}}}\n"
    for asked, code in (([BOTH[0]], 0), (BOTH, 1)):
        with model(asked) as server:
            done = play(project, server, forbids, more=", by_hand=('save_note',)", tools=tools)
        assert done.code == code, done.all
    assert failed_checks(project.sample()) == {(None, "tool_calls")}


def test_what_a_framework_asks_for_in_its_own_business_is_no_call(project: Project) -> None:
    final = [("final_result", {"answer": "Saved."})]
    for rounds, code in (([BOTH, final], 0), ([[*BOTH, ("look", {"id": "z"})], final], 1)):
        with model(*rounds) as server:
            done = play(project, server, STRICT, more=", forms=('final_result',)")
        assert done.code == code, done.all
        assert "final_result" not in [name for name, _ in calls(project)]


def test_a_call_that_was_refused_before_the_tool_ran_is_an_attempt(project: Project) -> None:
    met = "{tool_calls: {calls: [{name: look}, {name: save_note, args: {id: b}}]}}"
    forbidden = "{tool_calls: {forbidden: [{name: save_note, args: {id: bad}}]}}"
    for expect, code in ((met, 0), (forbidden, 1)):
        with model([("save_note", {"id": "bad"})], BOTH) as server:
            done = play(project, server, expect, more=", refuses=('bad',)")
        assert done.code == code, done.all
        made = project.sample()["turns"][0]["tool_calls"]
        attempted = {call["args"]["id"]: call.get("attempted", False) for call in made}
        assert attempted == {"bad": True, "a": False, "b": False}
        assert ran(project) == []


def test_the_tokens_of_every_request_count(project: Project) -> None:
    final = [("final_result", {"answer": "Saved."})]
    for limit, code in ((36, 0), (35, 1)):
        with model(BOTH, BOTH, final) as server:
            done = play(project, server, f"{{limits: {{tokens: {limit}}}}}", more=", forms=('final_result',)")
        assert done.code == code, done.all
        usage = project.sample()["turns"][0]["usage"]
        assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (3, 30, 6)
        assert usage["estimated"] is False


def test_four_conversations_at_once_keep_their_calls(project: Project) -> None:
    put_into(project)
    project.agent(REAL % "")
    project.config("")

    def reply(request: Request) -> Any:
        messages = request.json["messages"]
        one = {"id": messages[0]["content"]}
        return ANSWERS if messages[-1]["role"] == "tool" else asking(("look", one), ("save_note", one))

    for name in "abcd":
        wanted = f"[{{name: look, args: {{id: {name}}}}}, {{name: save_note, args: {{id: {name}}}}}]"
        project.scenarios(
            f"id: {name}\nturns: [{name}]\n{MOCKED}"
            f"expect: {{tool_calls: {{match: strict, calls: {wanted}}}, limits: {{tokens: 24}}}}\n",
            f"scenarios/{name}.yaml",
        )
    with LocalServer(answer(reply)) as server:
        done = project.run(env={"MODEL_URL": f"{server.address}/v1"})
    assert done.code == 0, done.all
    assert ran(project) == []
