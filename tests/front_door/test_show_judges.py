"""``agenteval show --judge``: what each judge was asked and said, of runs, scores and resumed runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import cut_runs
from tests.support.kit import Project
from tests.support.local_servers import LocalServer, respond_json

REPLY = {"evidence": "Order ORD-42 is lost.", "reason": "That is what the tool returned."}


@pytest.fixture
def judged(project: Project) -> Project:
    project.write(
        "agent.py",
        "async def agent(messages, ctx):\n"
        "    await ctx.call_tool('get_order', {'id': 'ORD-42'})\n"
        "    return 'Order ORD-42 is lost.'\n",
    )
    project.config("""
        models: {default: scripted/replies.yaml}
        metrics: [helpfulness, tool_call_behavior_failure]
        fail_on_severity: none
    """)
    project.scenarios("""
        id: x
        turns: [Where is ORD-42?, And now?]
        tools: {get_order: {returns: {status: lost}}}
        expect: {criteria: [Names the order.]}
    """)
    again = {**REPLY, "evidence": 'get_order {"id": "ORD-42"}', "label": "repeated tool call", "call": 1,
             "other_call": 0}  # fmt: skip
    replies = [
        {"when": {"metric": "helpfulness"}, "reply": {**REPLY, "score": 2}},
        {"when": {"metric": "tool_call_behavior_failure", "turn": 1}, "reply": again},
        {"when": {"metric": "criteria"}, "reply": {**REPLY, "label": "pass"}},
        {"when": {"role": "judge"}, "reply": {**REPLY, "label": "no failure"}},
        {"when": {"role": "dedup"}, "reply": {"issues": []}},
    ]
    project.write("replies.yaml", json.dumps({"replies": replies}))
    return project


def folder(project: Project) -> Path:
    (found,) = (project.root / ".agenteval/runs").iterdir()
    return found


def asked(project: Project, *words: str) -> list[dict[str, Any]]:
    done = project.call("show", "x", "--judge", "--json", *words)
    assert done.code == 0, done.all
    found: list[dict[str, Any]] = json.loads(done.out)["asked"]
    return found


def test_each_judge_stands_at_its_turn_with_question_and_answer(judged: Project) -> None:
    judged.call("run")
    text = judged.call("show", "x", "--judge").out
    first, _, rest = text.partition("\n2 user")
    second, _, whole = rest.partition("\n  whole")
    for part in (first, second):
        assert part.count("judge  helpfulness") == part.count("judge  tool_call_behavior_failure") == 1
        for fact in ("evidence: Order ORD-42 is lost.\n", "reason: That is what", "--metric helpfulness"):
            assert fact in part
    call = 'get_order(id="ORD-42")'
    rows = [line for line in second.splitlines() if f"call 2 {call}" in line and f"call 1 {call}" in line]
    assert len(rows) == 1
    assert "judge  criteria" in whole
    assert "Names the order." in whole
    assert "judge  helpfulness" not in judged.call("show", "x").out


def test_of_one_metric_every_word(judged: Project) -> None:
    judged.call("run")
    text = judged.call("show", "x", "--metric", "helpfulness").out
    for each in asked(judged, "--metric", "helpfulness"):
        assert all(line in text for line in map(str.strip, each["prompt"].splitlines()[:9]))
    assert "judge  tool_call_behavior_failure" not in text
    done = judged.call("show", "x", "--metric", "helpfullness")
    done.refuses("agenteval", "'helpfullness'", "'helpfulness'")
    assert done.out == ""


def test_as_json_it_is_what_was_sent(judged: Project) -> None:
    judged.call("run")
    entry = asked(judged)
    assert [(each["metric"], each["turn"]) for each in entry].count(("helpfulness", 0)) == 1
    assert {each["turn"] for each in entry} == {0, 1, None}
    (first,) = (each for each in entry if (each["metric"], each["turn"]) == ("helpfulness", 0))
    assert first["answer"] == {**REPLY, "score": 2.0}
    assert "Where is ORD-42?" in first["prompt"]
    assert "And now?" not in first["prompt"]
    assert first["system"]
    assert [each["metric"] for each in asked(judged, "--metric", "criteria")] == ["criteria"]


def test_a_run_without_the_file_shows_scores_alone(judged: Project) -> None:
    judged.call("run")
    (folder(judged) / "asked.jsonl.gz").unlink()
    done = judged.call("show", "x", "--judge")
    assert done.code == 0
    assert "judge  helpfulness" not in done.out
    assert "help 2" in done.out


def test_a_run_without_judges_keeps_no_file(project: Project) -> None:
    project.agent("def agent(m): return 'x'\n")
    project.config()
    project.scenarios("{id: x, turns: [hi], checks: none}")
    project.call("run")
    assert {path.name for path in folder(project).iterdir()} == {"events.jsonl", "lock"}


def test_a_resumed_run_keeps_what_was_asked_last(judged: Project) -> None:
    judged.call("run")
    once = asked(judged)
    cut_runs.cut_after(judged, "turn_finished")
    assert judged.call("run", "--resume", "latest").code == 0
    again = asked(judged)
    assert sorted(map(str, again)) == sorted(map(str, once))


def test_a_score_keeps_it_too(judged: Project) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Order ORD-42 is lost."}]
    judged.write("log.jsonl", json.dumps({"id": "x", "messages": messages}) + "\n")
    judged.call("score", "log.jsonl", "--metric", "helpfulness")
    (entry,) = asked(judged)
    assert entry["metric"] == "helpfulness"
    assert "Order ORD-42 is lost." in entry["prompt"]


def test_a_judge_that_broke_and_a_secret(judged: Project) -> None:
    """What it was asked is kept as well; a secret is masked there as everywhere."""
    secret = "sk-asked-0a1b2c3d4e5f"
    judged.write("agent.py", f"def agent(messages):\n    return 'The key is {secret[:9]}' + '{secret[9:]}'\n")
    with LocalServer(respond_json({"choices": [{"message": {"content": "I cannot say."}}]})) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.address}/v1', api_key_env: MY_KEY}}"
        judged.config(f"models: {{default: {model}}}\nmetrics: [helpfulness]\n")
        judged.scenarios("{id: x, turns: [hi], checks: none}")
        judged.call("run", env={"MY_KEY": secret})
    assert len(asked(judged)) == 2  # what could not be read was asked for afresh
    for entry in asked(judged):
        assert entry["answer"] is None
        assert entry["error"]
        assert "The key is ***" in entry["prompt"]
    assert "judge  helpfulness" in judged.call("show", "x", "--judge").out
