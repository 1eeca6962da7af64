"""Rows of data sets, CSV files and Langfuse's traces in a score: the bug is red, the fix green."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project
from tests.support.scored_logs import calling, expect, log, samples, score, verdicts

SAMPLES = Path(__file__).parents[1] / "data" / "dialects"
Q, A = "What does flight RX4417 cost?", "RX4417 costs $797.27."
CONTAINS = "output: {contains: ['797']}"
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("look", "cancel")]
VERDICTS = {0: "passed", 1: "failed", 3: "inconclusive"}


def turns(project: Project) -> dict[str, list[tuple[str, str]]]:
    return {
        name: [(turn["user"], turn["agent"]) for turn in one["turns"]]
        for name, one in samples(project).items()
    }


def scored(project: Project, rule: str, records: Mapping[str, Any]) -> dict[str, str]:
    """The verdicts of records in one log, each of which is to keep ``rule``."""
    log(project, *({"id": name, **record} for name, record in records.items()))
    score(project, "log.jsonl", *expect(project, dict.fromkeys(records, rule)))
    return verdicts(project)


def undecided_detail(sample: Mapping[str, Any]) -> str:
    checks = [*sample["checks"], *(check for turn in sample["turns"] for check in turn["checks"])]
    (check,) = [each for each in checks if each["passed"] is None]
    return str(check["detail"])


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────

ROWS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "input and output": ({"input": Q, "output": A}, [(Q, A)]),
    "prompt and completion": ({"prompt": Q, "completion": A}, [(Q, A)]),
    "query and response": ({"query": Q, "response": A}, [(Q, A)]),
    "question and answer": ({"question": Q, "answer": A}, [(Q, A)]),
    "a number": ({"question": Q, "answer": 797.27}, [(Q, "797.27")]),
    "a truth value": ({"question": Q, "answer": False}, [(Q, "false")]),
    "an object": ({"question": Q, "answer": {"fare": 797.27}}, [(Q, '{"fare": 797.27}')]),
    "messages": ({"query": [{"role": "user", "content": Q}], "response": A}, [(Q, A)]),
    "a run of LangSmith": ({"run_type": "chain", "inputs": {"q": Q}, "outputs": {"output": A}}, [(Q, A)]),
    "a history": (
        {"history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
         "question": Q, "answer": A}, [("a", "b"), (Q, A)],
    ),
}  # fmt: skip


def test_a_row_is_a_conversation_in_a_list_and_alone(project: Project) -> None:
    project.write("log.json", json.dumps([{"id": name, **row} for name, (row, _) in ROWS.items()]))
    assert score(project, "log.json").code == 0
    assert turns(project) == {name: expected for name, (_, expected) in ROWS.items()}
    names = [f"row{number}.json" for number in range(len(ROWS))]
    for name, (row, _) in zip(names, ROWS.values(), strict=True):
        project.write(name, json.dumps(row))
    assert score(project, *names).code == 0
    alone = zip(names, ROWS.values(), strict=True)
    assert turns(project) == {f"{name}:1": expected for name, (_, expected) in alone}


def test_the_answer_of_a_row_is_checked(project: Project) -> None:
    answers = {"text": "It is 797.27", "number": 797.27, "object": {"fare": 797.27}}
    wrong = {"wrong text": "It is 900", "wrong number": 900}
    rows = {name: {"question": Q, "answer": answer} for name, answer in (answers | wrong).items()}
    expected = dict.fromkeys(answers, "passed") | dict.fromkeys(wrong, "failed")
    assert scored(project, CONTAINS, rows) == expected


DECLARED = {"question": Q, "answer": A, "tools": TOOLS}
MAY_HOLD_CALLS: dict[str, tuple[Any, str]] = {
    "calls": ({"tool_calls": [{"name": "cancel", "arguments": {}}]}, "tool_calls"),
    "a history of pairs": ({"chat_history": [["Hello", "Hi!"]]}, "chat_history"),
    "steps": ({"intermediate_steps": [[{"tool": "cancel", "tool_input": {}}, "ok"]]}, "intermediate_steps"),
    "in the answer": ({"answer": {"text": A, "actions": [{"name": "cancel", "arguments": {}}]}}, "JSON"),
    "calls as text": ({"tool_calls": json.dumps([{"function": {"name": "cancel"}}])}, "tool_calls"),
    "an object as text": ({"trace": ' {"calls": [{"tool": "cancel"}]}'}, "trace"),
    "a text that is cut off": ({"trace": '[{"type": "tool_use", "name": "can'}, "trace"),
    "a trajectory": ({"trajectory": {"tool_name_0": "cancel", "tool_args_0": {}}}, "trajectory"),
}
HOLDS_NO_CALLS = {
    "nothing more": {},
    "empty": {"tool_calls": "[]", "trajectory": {}},
    "plain values": {"trace": '{"latency": 3, "model": "m"}', "note": "[cancel"},
    "what is expected": {"expected": json.dumps([{"tool": "cancel", "args": {}}])},
    "declarations": {"tools": json.dumps(TOOLS)},
}


def test_what_may_hold_calls_beside_a_row_leaves_it_undecided(project: Project) -> None:
    rows = {name: {**DECLARED, **more} for name, (more, _) in MAY_HOLD_CALLS.items()}
    rows |= {name: {**DECLARED, **more} for name, more in HOLDS_NO_CALLS.items()}
    expected = dict.fromkeys(MAY_HOLD_CALLS, "inconclusive") | dict.fromkeys(HOLDS_NO_CALLS, "passed")
    assert scored(project, FORBIDDEN, rows) == expected
    found = samples(project)
    for name, (_, key) in MAY_HOLD_CALLS.items():
        assert key in undecided_detail(found[name]), name


def test_a_row_without_an_answer_is_not_the_agent_s_fault(project: Project) -> None:
    rows = {f"r{n}": {"question": Q, "answer": answer} for n, answer in enumerate((None, "", " "))}
    log(project, *({"id": name, **row} for name, row in rows.items()))
    assert score(project, "log.jsonl").code == 3
    assert verdicts(project) == dict.fromkeys(rows, "inconclusive")
    for sample in samples(project).values():
        assert "answer" in sample["reason"]


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────


def table(project: Project, text: str | bytes, name: str = "log.csv") -> str:
    (project.root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


OF_JSON = '"[{""role"": ""user"", ""content"": ""Fare?""}, {""role"": ""assistant"", ""content"": ""797""}]"'
TABLES = {
    "commas": "id,question,answer\nr,Fare?,797\n",
    "semicolons and a byte order mark": "\ufeffid;question;answer\r\nr;Fare?;797\r\n",
    "tabs and an empty line": "id\tquestion\tanswer\nr\tFare?\t797\n\n",
    "quotes": '"id","question","answer"\n"r","Fare?","797"',
    "messages": f"id,messages\nr,{OF_JSON}\n",
}


def test_a_table_with_named_columns_is_read_packed_or_not(project: Project) -> None:
    for answer, verdict in (("797", "passed"), ("900", "failed")):
        names = []
        for number, text in enumerate(TABLES.values()):
            data = text.replace("797", answer).encode()
            names.append(table(project, data, f"t{number}.csv"))
            names.append(table(project, gzip.compress(data), f"packed{number}.csv.gz"))
        score(project, *names, *expect(project, {"r": CONTAINS}))
        (scenario,) = project.results()["scenarios"]
        found = [
            (each["verdict"], [(turn["user"], turn["agent"]) for turn in each["turns"]])
            for each in scenario["samples"]
        ]
        assert found == [(verdict, [("Fare?", answer)])] * len(names)


CALLED = calling("look")["tool_calls"]
MADE = [
    {"role": "user", "content": "Fare?"},
    {"role": "assistant", "tool_calls": CALLED},
    {"role": "tool", "tool_call_id": "1", "content": "797"},
    {"role": "assistant", "content": "797"},
]


def written(header: Sequence[str], row: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([header, row])
    return text.getvalue()


def test_calls_in_a_column_leave_a_row_undecided(project: Project) -> None:
    other = calling("cancel", key="2")["tool_calls"]
    names, expected = [], {}
    for column in ("tool_calls", "events", "metadata"):
        for form, held in (("question,answer", ["Fare?", "797"]), ("messages", [json.dumps(MADE)])):
            cells = {"another call": (other, "inconclusive"), "no call": ([], "passed")}
            if form == "messages":
                cells["the same call"] = (CALLED, "passed")
            for name, (value, verdict) in cells.items():
                id_ = f"{column}, {form}, {name}"
                header = ("id", *form.split(","), "tools", column)
                text = written(header, (id_, *held, json.dumps(TOOLS), json.dumps(value)))
                names.append(table(project, text, f"t{len(names)}.csv"))
                expected[id_] = verdict
    score(project, *names, *expect(project, dict.fromkeys(expected, FORBIDDEN)))
    assert verdicts(project) == expected


def test_calls_in_a_text_of_a_message_leave_it_undecided_unless_they_were_read(project: Project) -> None:
    records, expected = {}, {}
    for name, verdict in (("cancel", "inconclusive"), ("look", "passed")):
        actions = {"actions": json.dumps([{"name": name, "arguments": {}}])}
        for place, more in (("message", actions), ("metadata", {"metadata": actions})):
            records[f"{name} in {place}"] = {"messages": [*MADE[:-1], {**MADE[-1], **more}]}
            expected[f"{name} in {place}"] = verdict
    assert scored(project, FORBIDDEN, records) == expected


def test_a_cell_may_have_several_lines_and_quotes(project: Project) -> None:
    table(project, 'question,answer\n"Hi,\nthere","She said ""no"".\nTwice."\nBye,"a"\n')
    assert score(project, "log.csv").code == 0
    assert turns(project) == {
        "log.csv:2": [("Hi,\nthere", 'She said "no".\nTwice.')],
        "log.csv:5": [("Bye", "a")],
    }


COLUMNS = ("input", "prompt", "query", "question", "output", "completion", "response", "answer")


@pytest.mark.parametrize(
    ("text", "place", "facts"),
    [
        ("q,a\n1,2\n", "log.csv:1", (*COLUMNS, " q, a")),
        ("question,Answer\n1,2\n", "log.csv:1", ("'answer'?",)),
        ("input,input\n1,2\n", "log.csv:1", ("'input'",)),
        ('input,output\nHi,"no end\nx,y\n', "log.csv:2", ("CSV", "quote")),
        ('input,output\nHi,"a"b\n', "log.csv:2", ("CSV",)),
    ],
    ids=["missing columns", "in capitals", "a column twice", "an open quote", "a text behind a quote"],
)
def test_a_table_that_cannot_be_read_is_refused(
    project: Project, text: str, place: str, facts: tuple[str, ...]
) -> None:
    table(project, text)
    score(project, "log.csv").refuses(place, *facts)


UNREADABLE_ROWS = {
    "an empty answer": (b"Hi,\n", ["'answer'"]),
    "an empty question": (b",Hello\n", ["'question'"]),
    "too many cells": (b"Hi,there,Hello\n", ["3 cells", "2 columns"]),
    "too few cells": (b"Hi\n", ["1 cell", "2 columns"]),
    "no UTF-8": (b"H\xe9,Hello\n", ["UTF-8", "byte 2"]),
}


def test_a_row_that_cannot_be_read_is_named_and_the_others_are_scored(project: Project) -> None:
    names = {f"t{n}.csv": row for n, row in enumerate(UNREADABLE_ROWS.values())}
    for name, (row, _) in names.items():
        table(project, b"question,answer\nA,B\n" + row + b"C,D\n", name)
    assert score(project, *names).code == 3
    found = samples(project)
    for name, (_, facts) in names.items():
        three = [found[f"{name}:{line}"]["verdict"] for line in (2, 3, 4)]
        assert three == ["passed", "inconclusive", "passed"], name
        reason = found[f"{name}:3"]["reason"]
        assert all(fact in reason for fact in (f"{name}:3: ", *facts)), reason


RUN = {
    "run_type": "chain", "name": "agent", "inputs": {"input": Q}, "outputs": {"output": A},
    "events": [{"name": "start", "time": "x"}, {"name": "end", "time": "y"}], "child_run_ids": [],
    "extra": {"invocation_params": {"tools": [{"type": "function", "function": {"name": "cancel"}}]}},
    "serialized": {"id": ["langchain", "x"], "kwargs": {"steps": "x"}}, "tools": ["cancel"],
}  # fmt: skip
BESIDE_RUN: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "passed"),
    "missing children": ({"child_run_ids": ["r2"]}, "inconclusive"),
    "children": ({"child_runs": [{"run_type": "tool", "name": "cancel", "inputs": {}}]}, "failed"),
    "an unknown event": ({"events": [{"name": "cancel", "time": "x"}]}, "inconclusive"),
    "steps": (
        {"outputs": {"output": A, "intermediate_steps": [[{"tool": "cancel", "tool_input": {}}, "ok"]]}},
        "inconclusive",
    ),
}


def test_what_a_run_of_langsmith_holds_besides_is_not_lost(project: Project) -> None:
    found = scored(project, FORBIDDEN, {name: {**RUN, **more} for name, (more, _) in BESIDE_RUN.items()})
    assert found == {name: verdict for name, (_, verdict) in BESIDE_RUN.items()}
    assert turns(project) == {name: [(Q, A)] for name in BESIDE_RUN}


# ── Langfuse ─────────────────────────────────────────────────────────────────────────────────────

TRACE = json.loads((SAMPLES / "langfuse.json").read_text(encoding="utf-8"))
AGENT, CALLING, TOOL, ANSWERING = TRACE["observations"]


def observation(number: int, kind: str, name: str, given: Any, back: Any, **more: Any) -> dict[str, Any]:
    start = f"2026-05-04T09:00:{number:02}.000Z"
    own = {"id": f"n{number}", "type": kind, "name": name, "startTime": start, "input": given, "output": back}
    return {**TOOL, **own, **more}


CANCEL = {"id": "A-7"}
OBSERVED: dict[str, tuple[list[Any], str]] = {
    "nothing more": ([], "passed"),
    "a tool": ([observation(2, "TOOL", "cancel", CANCEL, "ok")], "failed"),
    "a failed tool": (
        [observation(2, "TOOL", "cancel", "{'id': 'A-7'}", None, level="ERROR", statusMessage="no")],
        "failed",
    ),
    "a span, which may be a tool": ([observation(2, "SPAN", "cancel", CANCEL, "ok")], "inconclusive"),
    "a retriever": ([observation(2, "RETRIEVER", "search", "x", ["y"])], "passed"),
}


@pytest.mark.parametrize("form", ["traces", "list", "lines"])
def test_calls_of_observations_are_checked(project: Project, form: str) -> None:
    traces = []
    for name, (more, _) in OBSERVED.items():
        observations = [{**each, "traceId": name} for each in (AGENT, CALLING, *more, TOOL, ANSWERING)]
        traces.append({**TRACE, "id": name, "sessionId": f"s {name}", "observations": observations})
    alone = [each for trace in traces for each in trace["observations"]]
    if form == "list":
        project.write("log.jsonl", json.dumps(alone))
    else:
        log(project, *(traces if form == "traces" else alone))
    score(project, "log.jsonl", *expect(project, dict.fromkeys(OBSERVED, FORBIDDEN)))
    assert verdicts(project) == {name: verdict for name, (_, verdict) in OBSERVED.items()}
    assert turns(project) == {name: [(Q, A)] for name in OBSERVED}
    made = dict.fromkeys(OBSERVED, "tool_calls: {calls: [{name: get_fare}]}")
    assert score(project, "log.jsonl", *expect(project, made)).code == 0


def traced(project: Project, observations: list[Any], rule: str = "", **more: Any) -> Done:
    project.write("log.json", json.dumps({**TRACE, **more, "observations": observations}))
    return score(project, "log.json", *(expect(project, {"t-1": rule}) if rule else ()))


NO_TEXTS = {"input": None, "output": None}


def test_a_tool_between_two_turns_is_of_the_turn_in_which_it_ran(project: Project) -> None:
    first = [{"role": "user", "content": "Hi"}]
    second = [*first, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    found = [
        observation(1, "TOOL", "look", {}, "x"),
        observation(2, "GENERATION", "chat", first, {"role": "assistant", "content": "Hello"}),
        observation(3, "TOOL", "cancel", CANCEL, "ok"),
        observation(4, "GENERATION", "chat", second, {"role": "assistant", "content": "Bye!"}),
    ]
    assert traced(project, found, **NO_TEXTS).code == 0
    calls = [[call["name"] for call in turn["tool_calls"]] for turn in project.sample("t-1")["turns"]]
    assert calls == [["look"], ["cancel"]]


def test_generations_that_do_not_go_on_from_each_other_are_not_fully_seen(project: Project) -> None:
    """Which of them the user was answered with, nobody knows, unless the trace has it."""
    other = observation(4, "GENERATION", "write", "y", "z")
    done = traced(project, [CALLING, other], FORBIDDEN, **NO_TEXTS)
    assert done.code == 3, done.all
    assert "'write'" in undecided_detail(project.sample("t-1"))
    assert traced(project, [CALLING, TOOL, other], FORBIDDEN).code == 0
    assert turns(project) == {"t-1": [(Q, A)]}
    assert traced(project, [CALLING, TOOL, other], FORBIDDEN.replace("cancel", "get_fare")).code == 1


def test_a_trace_without_its_observations_is_not_fully_seen(project: Project) -> None:
    """Another trace shows that this agent's calls are recorded."""
    bare = {key: value for key, value in TRACE.items() if key != "observations"} | {"agent": "a"}
    rest = {"ids": {"observations": ["o1", "o2"]}, "empty": {"observations": []}, "no key": {}}
    lines = [{**bare, "id": name, "sessionId": name, **more} for name, more in rest.items()]
    log(project, {**TRACE, "agent": "a"}, *lines)
    done = score(project, "log.jsonl", *expect(project, dict.fromkeys(rest, FORBIDDEN)))
    assert done.code == 3, done.all
    found = samples(project)
    for name in rest:
        assert found[name]["verdict"] == "inconclusive"
        assert "observations" in undecided_detail(found[name])
        assert turns(project)[name] == [(Q, A)]


def test_traces_that_are_mixed_line_by_line_are_put_together(project: Project) -> None:
    other = [{**each, "traceId": "t-2"} for each in (AGENT, CALLING, TOOL, ANSWERING)]
    lines = [AGENT, other[0], CALLING, other[1], TOOL, other[2], ANSWERING, other[3]]
    for written_as in (lines, [*lines[::2], *lines[1::2]], lines[::-1]):
        log(project, *written_as)
        assert score(project, "log.jsonl").code == 0
        assert turns(project) == {"t-1": [(Q, A)], "t-2": [(Q, A)]}
