"""``agenteval score`` as a stranger to it found it: damaged archives, odd declarations, mistakes."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.event import SampleFinished, SampleStarted
from agenteval.core.plan import Plan
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.retention import RetainedEvents
from tests.support.kit import Project


def conversation(name: str, **more: Any) -> dict[str, Any]:
    messages = [
        {"role": "user", "content": "Which room is ours?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "find_room", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": '{"room": "the blue one"}'},
        {"role": "assistant", "content": "It is the blue one."},
    ]
    return {"id": name, "messages": messages, **more}


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def test_of_an_archive_that_ends_too_early_what_came_before_is_scored(project: Project) -> None:
    noise = random.Random(5)
    records = [conversation(f"c{n}", noise=noise.randbytes(40).hex()) for n in range(200)]
    packed = gzip.compress(lines(*records).encode())
    Path(project.root, "log.jsonl.gz").write_bytes(packed[:-2000])

    done = project.call("score", "log.jsonl.gz", "--report", "json=results.json")

    assert done.code == 3, done.all
    verdicts = [scenario["verdict"] for scenario in project.results()["scenarios"]]
    assert verdicts.count("inconclusive") == 1
    assert len(verdicts) > 100


@pytest.mark.parametrize("declared", ["auto", "hotel tools v2", ""])
def test_a_text_in_place_of_declarations_declares_nothing(project: Project, declared: str) -> None:
    project.write("log.jsonl", lines(conversation("c1", tools=declared)))

    done = project.call("score", "log.jsonl")

    assert done.code == 0, done.all
    assert ("a tool declaration could not be read" in done.all) == bool(declared)


def test_names_in_a_list_do_declare_tools(project: Project) -> None:
    project.write("log.jsonl", lines(conversation("c1", tools=["book_room"])))

    assert project.call("score", "log.jsonl", "--max-rate", "high=0").code == 1


def test_messages_in_contents(project: Project) -> None:
    call = {"functionCall": {"name": "find_room", "args": {"floor": 2}}}
    reply = {"functionResponse": {"name": "find_room", "response": {"room": "the blue one"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Which room is ours?"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [reply]},
        {"role": "model", "parts": [{"text": "It is the blue one."}]},
    ]
    project.write("log.jsonl", lines({"id": "c1", "contents": contents}))

    done = project.call("score", "log.jsonl", "--report", "json=results.json")

    assert done.code == 0, done.all
    (turn,) = project.results()["scenarios"][0]["samples"][0]["turns"]
    assert turn["agent"] == "It is the blue one."
    assert [made["name"] for made in turn["tool_calls"]] == ["find_room"]


def test_hidden_files_of_a_folder_are_left_alone(project: Project) -> None:
    project.write("logs/a.jsonl", lines(conversation("c1")))
    project.write("logs/._a.jsonl", "what macOS writes beside it\n")

    assert project.call("score", "logs").code == 0


def test_a_detector_that_does_not_exist_is_a_mistake_in_the_configuration(project: Project) -> None:
    project.write("log.jsonl", lines(conversation("c1")))
    project.write("agenteval.yaml", "detectors: [leek]\n")

    done = project.call("score", "log.jsonl")

    assert done.code == 2
    assert "did you mean 'leak'" in done.all


@pytest.mark.parametrize("where", ["configuration", "scenario", "nowhere"])
def test_thresholds_that_nothing_can_be_held_against_are_told(project: Project, where: str) -> None:
    project.write("log.jsonl", lines(conversation("c1")))
    bound = "thresholds: {helpfulness: 3.5}"
    project.write("agenteval.yaml", f"{bound}\n" if where == "configuration" else "{}\n")
    inside = f", {bound}" if where == "scenario" else ""
    text = f"scenarios: [{{id: c1, goal: know the room, expect: {{output: {{contains: [blue]}}}}{inside}}}]\n"
    project.write("suite.yaml", text)

    done = project.call("score", "log.jsonl", "--scenarios", "suite.yaml")

    assert done.code == 0, done.all
    assert ("thresholds were not applied" in done.all) == (where != "nowhere")


def test_the_report_keeps_the_order_of_the_records_whichever_judge_is_done_first() -> None:
    records = ["a", "b", "c", "d"]
    retained = RetainedEvents(Plan(), everything=True)
    keys = [SampleKey(agent="recorded", scenario=name, epoch=0) for name in records]
    for key in keys:
        retained(SampleStarted(key=key, scenario=Scenario(id=key.scenario, name=key.scenario)))
    for key in reversed(keys):
        retained(SampleFinished(key=key, stop=Stop(reason=StopReason.RECORDED)))

    told = [event.key.scenario for event in retained.events() if isinstance(event, SampleStarted)]

    assert told == records
