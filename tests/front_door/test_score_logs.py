"""``agenteval score`` on what jq and proxies write, and under configurations that are made for runs."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from agenteval.core.config import GatesConfig
from agenteval.core.trajectory import Step, Turn, Usage
from agenteval.importers.entries import entries_of
from agenteval.importers.records import ImportedConversation, ToolSets
from agenteval.importers.sources import find_sources, parse
from agenteval.messages.log_entry import Record, UnreadableRecord
from agenteval.reporters.results.document import readable
from agenteval.verdict.run_gates import unapplied
from tests.support.detector_samples import JSON
from tests.support.kit import Project
from tests.support.recorded import read
from tests.support.results import has
from tests.support.scored_logs import (
    GET_ORDER,
    ORDER,
    SHIPPED,
    calling,
    flat,
    lines_of,
    log,
    score,
    summary,
    verdicts,
)

ASKED, ANSWER = ORDER, SHIPPED
CALLED = calling("get_order", '{"id": "ORD-42"}')
FOUND = {"role": "tool", "tool_call_id": "1", "content": '{"status": "shipped"}'}
TOOLS = [{"type": "function", "function": GET_ORDER}]
MESSAGES = [{"role": "system", "content": "Be brief."}, ASKED, CALLED, FOUND]
REQUEST = {"model": "gpt-x", "messages": MESSAGES, "tools": TOOLS}
RESPONSE = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "message": ANSWER}]}


def turns_of(conversation: ImportedConversation) -> list[tuple[str, str, list[str]]]:
    turns = conversation.parsed.trajectory.all_turns
    return [(turn.user, turn.answer, [call.name for call in turn.tool_calls]) for turn in turns]


# ── JSON over many lines ─────────────────────────────────────────────────────────────────────────


def record(name: str, answer: str = 'It is {here}, "there": [1}') -> dict[str, Any]:
    return {"id": name, "messages": [ASKED, {"role": "assistant", "content": answer}]}


def entries(path: Path) -> list[Any]:
    (source,) = find_sources([str(path)], path.parent)
    return list(entries_of(source))


@pytest.mark.parametrize("between", ["\n", "\n\n", "", ",\n", " "])
@pytest.mark.parametrize("packed", [False, True])
def test_objects_one_after_another_are_records(tmp_path: Path, between: str, packed: bool) -> None:
    for indent in (0, 1, 2, "\t"):
        data = ("\ufeff" + between.join(json.dumps(record(n), indent=indent) for n in "abc")).encode()
        path = tmp_path / ("log.json.gz" if packed else "log.json")
        path.write_bytes(gzip.compress(data) if packed else data)
        found = entries(path)
        assert [entry.value for entry in found] == [record(n) for n in "abc"]
        height = json.dumps(record("a"), indent=indent).count("\n") + between.count("\n")
        assert [entry.where for entry in found] == [f"{path.name}:{1 + n * height}" for n in range(3)]


def test_bare_lists_of_messages_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text("\n".join(json.dumps([ASKED, ANSWER], indent=2) for _ in range(2)), encoding="utf-8")
    assert [entry.value for entry in entries(path)] == [[ASKED, ANSWER]] * 2


def test_objects_with_a_message_a_line(tmp_path: Path) -> None:
    rows = ",\n".join(json.dumps(message) for message in [*MESSAGES, *MESSAGES, ANSWER])
    path = tmp_path / "log.json"
    path.write_text("\n".join(f'{{"id": "{n}", "messages": [\n{rows}\n]}}' for n in "ab"), encoding="utf-8")
    assert [entry.value["id"] for entry in entries(path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("broken", "line", "column"),
    [
        ('{\n  "id": nope\n}', 8, 9),
        ('{\n  "id": "b",\n  "messages": [\n    1 2\n  ]\n}', 10, 7),
        ('{\n  "id": "b",\n  "x": {\n}', 11, 1),
        ('{\n  "id": "b"\n}}', 9, 2),
    ],
)
def test_a_broken_object_is_named_by_its_place_and_the_others_are_read(
    tmp_path: Path, broken: str, line: int, column: int
) -> None:
    whole = '{\n  "id": "a",\n  "messages": [\n    1\n  ]\n}'
    path = tmp_path / "log.json"
    path.write_text(f"{whole}\n{broken}\n{whole}\n", encoding="utf-8")
    found = entries(path)
    (lost,) = [entry for entry in found if isinstance(entry, UnreadableRecord)]
    assert lost.where == f"log.json:{line}"
    assert all(fact in lost.reason for fact in ("JSON", f"column {column}"))
    read_ids = [entry.value["id"] for entry in found if isinstance(entry, Record)]
    assert (read_ids[0], read_ids[-1]) == ("a", "a")


def test_bytes_that_are_no_text_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(b'{\n "a": 1\n}\n{\n "a": "caf\xe9"\n}\n')
    good, bad = entries(path)
    assert good == Record({"a": 1}, "log.json:1")
    assert isinstance(bad, UnreadableRecord)
    assert (bad.where, "UTF-8" in bad.reason) == ("log.json:5", True)


def test_damaged_packed_objects_give_what_comes_before(tmp_path: Path) -> None:
    path = tmp_path / "log.json.gz"
    text = "\n".join(json.dumps({"n": n, "x": str(n) * 50}, indent=1) for n in range(2000))
    path.write_bytes(gzip.compress(text.encode())[:-400])
    *whole, last = entries(path)
    assert len(whole) > 10
    assert all(isinstance(entry, Record) for entry in whole)
    assert isinstance(last, UnreadableRecord)
    assert "compressed" in last.reason


def test_a_file_of_many_objects_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    one = json.dumps(record("a", "x" * 10_000), indent=1) + "\n"
    path.write_text(one * 800, encoding="utf-8")
    (source,) = find_sources([str(path)], tmp_path)
    tracemalloc.start()
    try:
        count = sum(1 for _ in entries_of(source))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 800
    assert peak < len(one) * 800 / 4


@given(JSON)
@settings(max_examples=200)
def test_json_is_what_the_standard_library_reads(value: Any) -> None:
    text = json.dumps(value)
    assert json.dumps(parse(text.encode())) == json.dumps(json.loads(text))


def test_the_command_reads_what_jq_writes(project: Project) -> None:
    good, bad = record("good", "It has been shipped."), record("bad", "")
    project.write("log.json", "\n".join(json.dumps(each, indent=2) for each in (good, bad)))
    done = score(project, "log.json")
    assert done.code == 0, done.all
    assert verdicts(project) == {"good": "passed", "bad": "failed"}
    project.write("log.json", f"{json.dumps(good, indent=2)}\n{{\n  oops\n}}\n")
    assert score(project, "log.json").code == 3
    place = f"log.json:{json.dumps(good, indent=2).count(chr(10)) + 3}"
    assert verdicts(project) == {"good": "passed", place: "inconclusive"}
    assert all(fact in project.sample(place)["reason"] for fact in (place, "JSON", "column 3"))


# ── requests and responses ───────────────────────────────────────────────────────────────────────

SHAPES = {
    "pair": {"request": REQUEST, "response": RESPONSE},
    "as text": {"request": json.dumps(REQUEST), "response": json.dumps(RESPONSE)},
    "the message itself": {"request": REQUEST, "response": ANSWER},
    "the text itself": {"request": REQUEST, "response": ANSWER["content"]},
    "in bodies": {"request": {"url": "/v1", "body": REQUEST}, "response": {"status": 200, "body": RESPONSE}},
    "bodies as text": {"request": {"body": json.dumps(REQUEST)}, "response": {"body": json.dumps(RESPONSE)}},
    "batch": {"custom_id": "c", "body": REQUEST, "response": {"status_code": 200, "body": RESPONSE}},
    "flat bodies": {"request_body": REQUEST, "response_body": RESPONSE},
    "with settings": {
        "messages": MESSAGES,
        "model": "gpt-x",
        "response": RESPONSE,
        "model_parameters": {"tools": TOOLS},
    },
    "traced": {"type": "GENERATION", "model": "gpt-x", "input": REQUEST, "output": ANSWER},
    "callback": {"kwargs": REQUEST, "response_obj": RESPONSE},
    "answer twice": {"request": {**REQUEST, "messages": [*MESSAGES, ANSWER]}, "response": ANSWER},
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_request_and_its_response_are_one_conversation(name: str) -> None:
    found = read(SHAPES[name])
    assert turns_of(found) == [("Where is order ORD-42?", "It has been shipped.", ["get_order"])]
    assert found.parsed.trajectory.unfinished is None
    assert list(found.tools) == ["get_order"]
    assert (found.policy, found.agent, found.notes) == ("Be brief.", "gpt-x", ())


def part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


QUESTION = ASKED["content"]
OTHER_INTERFACES: dict[str, Any] = {
    "Anthropic": {
        "request": {"model": "c", "system": [part("Be brief.")], "messages": [ASKED]},
        "response": {"id": "m", "role": "assistant", "content": [part("Shipped.")]},
    },
    "Responses": {
        "request": {"model": "g", "input": QUESTION, "instructions": "Be brief."},
        "response": {"output": [{"type": "reasoning"}, {"role": "assistant", "content": "Shipped."}]},
    },
    "Gemini": {
        "request": {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}], "system": "Be brief."},
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Shipped."}]}}]},
    },
    "an answer as JSON": {
        "request": {"messages": [ASKED], "system": "Be brief."},
        "response": '{"status": "shipped"}',
    },
    "generations": {
        "inputs": {"messages": [[ASKED]], "system": "Be brief."},
        "outputs": {"generations": [[{"message": {"content": "Shipped."}}]]},
    },
}


@pytest.mark.parametrize("name", OTHER_INTERFACES)
def test_requests_of_other_interfaces_are_read(name: str) -> None:
    found = read(OTHER_INTERFACES[name])
    answer = '{"status": "shipped"}' if name == "an answer as JSON" else "Shipped."
    assert turns_of(found) == [(QUESTION, answer, [])]
    assert found.policy == "Be brief."


def test_a_text_beside_an_answer_is_none_of_the_agent_s() -> None:
    found = read({"messages": [ASKED, ANSWER], "response": "It was shipped."})
    assert [turn.answer for turn in found.parsed.trajectory.turns] == ["It has been shipped."]


def test_the_tools_of_several_agents_are_read_once_each() -> None:
    sets = ToolSets()
    read_ = [sets.tools_of([{"name": name}], print) for name in ("a", "b", "a", "b")]
    assert [list(tools) for tools in read_] == [["a"], ["b"], ["a"], ["b"]]
    assert read_[0] is read_[2]
    assert read_[1] is read_[3]


def test_the_command_finds_the_bug_in_a_log_of_requests(project: Project) -> None:
    wrong = {**REQUEST, "messages": [*MESSAGES[:2], calling("find_order", '{"id": "ORD-42"}'), FOUND]}
    pairs = [{"id": "fix", "request": REQUEST}, {"id": "bug", "request": wrong}]
    pairs = [{**pair, "response": RESPONSE} for pair in pairs]
    for text in (lines_of(*pairs), json.dumps(pairs), json.dumps({"data": pairs}, indent=1)):
        project.write("log.json", text)
        done = score(project, "log.json", "--max-rate", "high=0")
        assert done.code == 1, done.all
        assert verdicts(project) == {"fix": "passed", "bug": "failed"}
        assert [f["detector"] for f in project.sample("bug")["findings"]] == ["unknown_tool"]


# ── configurations that are made for runs ────────────────────────────────────────────────────────


def log_of(project: Project, *answers: str, **more: Any) -> None:
    log(project, *({**record(f"c{n}", answer), **more} for n, answer in enumerate(answers)))


def test_a_gate_that_compares_does_not_hold_where_nothing_is_compared(project: Project) -> None:
    gate = "gates:\n  no_regression: {margin: 0.05}\n"
    project.write("agenteval.yaml", f"{gate}fail_on_severity: critical\n")
    log_of(project, "Shipped.", "On its way.")
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    (ungated,) = summary(project)["ungated"]
    assert all(fact in ungated for fact in ("no_regression", "agenteval diff A B"))
    for text in (done.out, project.call("report", "latest").out):
        assert all(fact in flat(text) for fact in ("no_regression", "agenteval diff A B"))
    assert has(flat(done.out), "gates.no_regression", "(agenteval.yaml:2)")
    assert summary(project)["gates"][0]["name"] == "every sample passes"
    log_of(project, "Shipped.", "")
    assert score(project, "log.jsonl").code == 1  # without the gate every conversation has to pass
    project.write("agenteval.yaml", gate)
    assert score(project, "log.jsonl").code == 0  # of a log without scenarios only where a severity is named


RATE, HAT = "pass_rate: {at_least: 0.9, reject_below: 0.5}", "pass_hat_k: {k: 3, at_least: 0.5}"


@pytest.mark.parametrize("gate", [RATE, HAT])
def test_a_gate_over_epochs_holds_where_conversations_may_be_epochs(project: Project, gate: str) -> None:
    project.write("agenteval.yaml", f"gates:\n  {gate}\n")
    log_of(project, *["Shipped."] * 8, task="t")
    name = gate.partition(":")[0]
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert has(flat(done.out), f"gates.{name}", "(agenteval.yaml:2)")
    assert [each.startswith(name) for each in summary(project)["ungated"]] == [True]
    done = score(project, "log.jsonl", "--scenario-from", "task")
    assert done.code == 0, done.all
    assert summary(project)["gates"][0]["name"] == name
    assert summary(project)["ungated"] == []
    log_of(project, "Shipped.", task="t")
    assert score(project, "log.jsonl", "--scenario-from", "task").code == 3  # too few to decide


def test_a_gate_that_one_conversation_can_satisfy_holds() -> None:
    one = GatesConfig.model_validate({"pass_hat_k": {"k": 1, "at_least": 0.5, "over": "suite"}})
    assert unapplied(one, repeats=False) == {}
    lax = GatesConfig.model_validate(
        {"pass_rate": {"at_least": 0.9, "reject_below": 0.1, "confidence": 0.85}}
    )
    assert unapplied(lax, repeats=False) == {}
    strict = GatesConfig.model_validate({"pass_rate": {"at_least": 0.9, "reject_below": 0.5}})
    assert list(unapplied(strict, repeats=False)) == ["pass_rate"]
    assert unapplied(strict, repeats=True) == {}


def test_a_run_is_scored_under_its_gates_over_epochs(project: Project) -> None:
    gates = "gates:\n  pass_hat_k: {k: 1, at_least: 1}\n  no_regression: {margin: 0.1}\n"
    project.write("agenteval.yaml", gates)
    log_of(project, "Shipped.")
    assert score(project, "log.jsonl").code == 0
    done = score(project, "latest")
    assert done.code == 0, done.all
    assert summary(project)["gates"][0]["name"] == "pass_hat_k"


@pytest.mark.parametrize(
    ("config", "arguments", "place", "meant"),
    [
        ("", ["--metric", "helpfulnes"], "--metric", "helpfulness"),
        ("metrics: [coherence, helpfulnes]\n", [], "agenteval.yaml:1:22", "helpfulness"),
        ("metrics:\n  - helpfulnes\n", [], "agenteval.yaml:2:5", "helpfulness"),
        ("metrics: [coherence]\n", ["--metric", "helpfulnes"], "--metric", "helpfulness"),
        ("thresholds:\n  helpfulnes: 3\n", [], "agenteval.yaml:2:3", "helpfulness"),
        ("detectors: [leak, leek]\n", [], "agenteval.yaml:1:19", "leak"),
    ],
)
def test_an_unknown_name_is_refused_at_its_place(
    project: Project, config: str, arguments: list[str], place: str, meant: str
) -> None:
    project.write("agenteval.yaml", config or "concurrency: 2\n")
    log_of(project, "Shipped.")
    done = project.call("score", "log.jsonl", *arguments)
    done.refuses(place, "'helpfulnes'" if meant == "helpfulness" else "'leek'", f"'{meant}'")


# ── what is done once and not for each conversation ──────────────────────────────────────────────


def test_only_what_a_terminal_would_obey_is_escaped() -> None:
    long = "ä" * 5000
    assert readable(long) == f"{long}\n"
    assert readable(f"{long}\x9b\x7f{'x' * 9000}\u202e") == f"{long}\\u009b\\u007f{'x' * 9000}\\u202e\n"
    assert readable("x" * 4095 + "\x7f") == "x" * 4095 + "\\u007f\n"


def test_usage_of_a_turn_is_the_sum_of_its_steps() -> None:
    spent = Usage(calls=1, input_tokens=3, cost=0.5)
    cached = Usage(cached_calls=1)
    steps = tuple(Step(usage=usage) for usage in (Usage(), spent, cached, Usage(), spent))
    assert Turn(user="", steps=steps).usage == spent + cached + spent
    assert Turn(user="", steps=steps[:1]).usage == Usage()
