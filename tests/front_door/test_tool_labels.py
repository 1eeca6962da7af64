"""Labels of tool calls: a record that ends at a hand-over is judged, too; two calls in the wrong order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, schema_in

CALLS, BEHAVIOUR = "tool_call_behavior_failure", "agent_behavior_failure"


def judge(metric: str, reply: dict[str, Any], **when: Any) -> dict[str, Any]:
    reply = {"evidence": "", "reason": "because", **reply}
    return {"when": {"role": "judge", "metric": metric, **when}, "reply": reply}


FINE = [judge(metric, {"label": "no failure"}) for metric in (CALLS, BEHAVIOUR)]
SCORES = [
    judge(metric, {"score": 5})
    for metric in ("helpfulness", "verbosity", "relevance", "faithfulness", "coherence")
]

# ── the last turn of a record, without an answer ─────────────────────────────────────────────────


def called(name: str, result: str | None, **args: Any) -> list[dict[str, Any]]:
    call = {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    return [*messages, {"role": "tool", "tool_call_id": name, "content": result}] if result else messages


def log(project: Project, *last: dict[str, Any]) -> None:
    first = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "What can I do for you?"}]
    messages = [*first, {"role": "user", "content": "Cancel order A-7, it is mine."}, *last]
    project.write("log.jsonl", json.dumps({"id": "talk", "messages": messages}))


def score(project: Project, *flags: str) -> Any:
    return project.call(
        "score", "log.jsonl", "-m", "scripted/replies.yaml", "--report", "json=results.json", *flags
    )


WRONG = {"label": "wrong tool", "call": 0}


@pytest.mark.parametrize("result", ["Transfer successful", None])
def test_a_hand_over_at_the_end_of_a_record_is_judged_by_labels(project: Project, result: str | None) -> None:
    """What the agent could have done itself, it passes on: wrong, although it says nothing after it."""
    wrong = judge(CALLS, WRONG, turn=1)
    for replies, found in (([wrong, *FINE], ["wrong tool"]), (FINE, [])):
        project.write("replies.yaml", json.dumps({"replies": [*replies, *SCORES]}))
        log(project, *called("transfer_to_human", result, why="cancel"))
        project.write("agenteval.yaml", "fail_on_severity: high\n")
        done = score(project, "-c", "agenteval.yaml")
        assert done.code == bool(found), done.all
        sample = project.sample()
        assert [finding["label"] for finding in sample["findings"]] == found
        assert [finding["turn"] for finding in sample["findings"]] == [1] * len(found)
        first, last = sample["turns"]
        assert last["scores"].keys() == {CALLS, BEHAVIOUR}  # there is no answer to be scored from 1 to 5
        assert "helpfulness" in first["scores"]


def test_a_turn_in_which_the_agent_did_nothing_is_not_judged(project: Project) -> None:
    project.write("replies.yaml", json.dumps({"replies": [*FINE, *SCORES]}))
    log(project)
    assert score(project).code == 0
    assert not project.sample()["turns"][1:] or not project.sample()["turns"][1]["scores"]


def test_the_judge_is_shown_that_no_answer_came(project: Project) -> None:
    asked: list[str] = []

    def play(request: Json) -> Reply:
        names = schema_in(request)["properties"]
        if "label" in names:
            asked.append(request["messages"][1]["content"])
        answer = {name: None if "call" in name or name == "score" else "" for name in names}
        return Reply(completion(json.dumps({**answer, "reason": "r", "label": "no failure"})))

    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        project.write("agenteval.yaml", f"models: {{judge: {model}}}\nmetrics: [{CALLS}]\n")
        log(project, *called("transfer_to_human", "Transfer successful"))
        project.call("score", "log.jsonl", "-c", "agenteval.yaml")
    (last,) = (prompt for prompt in asked if "The turn to judge is turn 2" in prompt)
    assert "without a final answer" in last
    assert "transfer_to_human" in last


# ── wrong order ──────────────────────────────────────────────────────────────────────────────────

RULE = "Look whether a seat is free before you cancel the old one."
AGENT = """
def agent(messages, ctx):
    order = ["find_seat", "cancel_seat"]
    for name in order if messages[-1]["content"] == "right" else reversed(order):
        ctx.call_tool_sync(name, {"seat": "12A"})
    return "It is done."
"""
TOOLS = {
    "cancel_seat": {"returns": {"ok": True}, "writes": True},
    "find_seat": {"returns": {"free": [], "note": "no seat is left"}, "reads": True},
}
CALL_NUMBERS = {"call": 0, "other_call": 1}
EARLY: dict[str, Any] = {"label": "wrong order", "evidence": "It is done.", **CALL_NUMBERS, "rule": RULE}


def play(project: Project, turn: str, reply: dict[str, Any], more: str = "") -> Any:
    """By a model, so that every reference is needed."""

    def answer(request: Json) -> Reply:
        names = schema_in(request)["properties"]
        blank = {name: None if "call" in name else "" for name in names}
        return Reply(completion(json.dumps({**blank, "reason": "because", **reply})))

    with ModelServer(answer) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        project.write(
            "agenteval.yaml",
            f"agent: {{name: bot, target: 'agent.py:agent', policy: '{RULE}'}}\nmodels: {{judge: {model}}}\n"
            f"metrics: [{CALLS}]\ndetectors: []\n{more}"
            "reporters: [{name: json, path: results.json}, terminal]\n",
        )
        project.agent(AGENT)
        project.scenarios(json.dumps({"id": "s", "turns": [turn], "tools": TOOLS, "checks": "none"}))
        return project.run()


def test_two_calls_in_the_wrong_order_are_a_failure_of_high_severity(project: Project) -> None:
    high = "fail_on_severity: high\n"
    assert play(project, "late", EARLY, high).code == 1
    (finding,) = project.sample()["findings"]
    found = (finding["label"], finding["severity"], finding["turn"], finding["call"])
    assert found == ("wrong order", "high", 0, 0)
    assert play(project, "right", {"label": "no failure"}, high).code == 0
    assert play(project, "late", EARLY, "severities: {wrong order: critical}\n").code == 1
    assert play(project, "late", EARLY).code == 0  # high is below the gate


@pytest.mark.parametrize(
    ("wrong", "flaw"),
    [
        ({"rule": "", "source": "no seat is left"}, ""),
        ({"rule": ""}, '"rule"'),
        ({"rule": "Never cancel a seat."}, '"rule"'),
        ({"rule": "", "source": "It is done."}, '"rule"'),
        ({"other_call": None}, '"other_call"'),
        ({"call": None}, '"call"'),
        ({"call": 1, "other_call": 0}, "before"),
        ({"other_call": 7}, "0 to 1"),
    ],
)
def test_wrong_order_names_two_calls_and_what_their_order_breaks(
    project: Project, wrong: dict[str, Any], flaw: str
) -> None:
    done = play(project, "late", {**EARLY, **wrong}, "fail_on_severity: high\n")
    assert done.code == (3 if flaw else 1), done.all
    if flaw:
        (failure,) = project.sample()["turns"][0]["score_failures"]
        assert flaw in failure["message"]
