"""Rows of data sets, CSV files and Langfuse's traces in a score: the bug is red, the fix green."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project

SAMPLES = Path(__file__).parents[1] / "data" / "dialects"
Q, A = "What does flight RX4417 cost?", "RX4417 costs $797.27."


def score(project: Project, name: str, expect: str = "", *, of: str = "") -> Done:
    options: list[str] = []
    if expect:
        suite = f'scenarios:\n  - id: "{of or f"{name}:1"}"\n    turns: [Hi]\n    expect: {{{expect}}}\n'
        project.write("expected.yaml", suite)
        options = ["--scenarios", "expected.yaml"]
    return project.call("score", name, *options, "--report", "json=results.json")


def turns(project: Project) -> dict[str, list[tuple[str, str]]]:
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    return {name: [(each["user"], each["agent"]) for each in one["turns"]] for name, one in samples.items()}


def words(text: str) -> str:
    return " ".join(text.split())


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


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("is_list", [True, False])
def test_a_row_is_a_conversation(project: Project, name: str, is_list: bool) -> None:
    row, expected = ROWS[name]
    project.write("log.json", json.dumps([{"id": "r", **row}, {"id": "r2", **row}] if is_list else row))
    assert score(project, "log.json").code == 0
    assert turns(project) == (dict.fromkeys(("r", "r2"), expected) if is_list else {"log.json:1": expected})


@pytest.mark.parametrize(
    ("answer", "code"), [("It is 797.27", 0), (797.27, 0), ({"fare": 797.27}, 0), ("It is 900", 1), (900, 1)]
)
def test_the_bug_in_the_answer_of_a_row(project: Project, answer: Any, code: int) -> None:
    project.write("log.jsonl", json.dumps({"question": Q, "answer": answer}))
    assert score(project, "log.jsonl", "output: {contains: ['797.27']}").code == code


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"tool_calls": [{"name": "cancel", "arguments": {}}]}, "tool_calls"),
        ({"chat_history": [["Hello", "Hi!"]]}, "chat_history"),
        ({"intermediate_steps": [[{"tool": "cancel", "tool_input": {}}, "ok"]]}, "intermediate_steps"),
        ({"answer": {"text": A, "actions": [{"name": "cancel", "arguments": {}}]}}, "a response as JSON"),
        ({"tool_calls": json.dumps([{"function": {"name": "cancel"}}])}, "tool_calls"),
        ({"trace": ' {"calls": [{"tool": "cancel"}]}'}, "trace"),
        ({"trace": '[{"type": "tool_use", "name": "can'}, "trace"),
        ({"trajectory": {"tool_name_0": "cancel", "tool_args_0": {}}}, "trajectory"),
    ],
)
def test_what_stands_beside_a_row_is_not_lost(project: Project, more: Any, name: str) -> None:
    tools = [{"type": "function", "function": {"name": "cancel"}}]
    forbidden = "tool_calls: {forbidden: [{name: cancel}]}"
    project.write("log.jsonl", json.dumps({"question": Q, "answer": A, "tools": tools}))
    assert score(project, "log.jsonl", forbidden).code == 0
    project.write("log.jsonl", json.dumps({"question": Q, "answer": A, "tools": tools, **more}))
    done = score(project, "log.jsonl", forbidden)
    assert done.code == 3, done.all
    assert name in words(done.all)


@pytest.mark.parametrize("answer", [None, "", " "])
def test_a_row_without_an_answer_is_not_the_agents_fault(project: Project, answer: Any) -> None:
    project.write("log.jsonl", json.dumps({"question": Q, "answer": answer}))
    done = score(project, "log.jsonl")
    assert done.code == 3
    assert "the row has no answer" in words(done.all)


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "more",
    [
        {"tool_calls": "[]", "trajectory": {}},
        {"trace": '{"latency": 3, "model": "m"}', "note": "[cancel"},
        {"expected": json.dumps([{"tool": "cancel", "args": {}}])},
        {"tools": json.dumps([{"type": "function", "function": {"name": "cancel"}}])},
    ],
)
def test_what_stands_beside_a_row_and_holds_no_calls(project: Project, more: Any) -> None:
    tools = [{"type": "function", "function": {"name": "cancel"}}]
    project.write("log.jsonl", json.dumps({"question": Q, "answer": A, "tools": tools, **more}))
    assert score(project, "log.jsonl", "tool_calls: {forbidden: [{name: cancel}]}").code == 0


def table(project: Project, text: str | bytes, name: str = "log.csv") -> None:
    (project.root / name).write_bytes(text if isinstance(text, bytes) else text.encode())


OF_JSON = '"[{""role"": ""user"", ""content"": ""Fare?""}, {""role"": ""assistant"", ""content"": ""797""}]"'


@pytest.mark.parametrize(
    "text",
    [
        "id,question,answer\nr,Fare?,797\n",
        "\ufeffid;question;answer\r\nr;Fare?;797\r\n",
        "id\tquestion\tanswer\nr\tFare?\t797\n\n",
        '"id","question","answer"\n"r","Fare?","797"',
        f"id,messages\nr,{OF_JSON}\n",
    ],
)
def test_a_table_with_named_columns(project: Project, text: str) -> None:
    for name in ("log.csv", "log.csv.gz"):
        table(project, gzip.compress(text.encode()) if name.endswith("gz") else text, name)
        assert score(project, name).code == 0
        assert turns(project) == {"r": [("Fare?", "797")]}
    table(project, text)
    assert score(project, "log.csv", "output: {contains: ['797']}", of="r").code == 0
    table(project, text.replace("797", "900"))
    assert score(project, "log.csv", "output: {contains: ['797']}", of="r").code == 1


CALLED = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
MADE = [
    {"role": "user", "content": "Fare?"},
    {"role": "assistant", "tool_calls": CALLED},
    {"role": "tool", "tool_call_id": "1", "content": "797"},
    {"role": "assistant", "content": "797"},
]


@pytest.mark.parametrize("form", ["a question", "messages"])
@pytest.mark.parametrize("column", ["tool_calls", "events", "metadata"])
def test_the_calls_in_a_column(project: Project, column: str, form: str) -> None:
    is_row = form == "a question"
    header = "id,question,answer,tools" if is_row else "id,messages,tools"
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "cancel")]
    said = ["Fare?", "797"] if is_row else [json.dumps(MADE)]

    def code(value: Any) -> int:
        cells = [
            '"' + each.replace('"', '""') + '"' for each in (*said, json.dumps(tools), json.dumps(value))
        ]
        table(project, f"{header},{column}\nr,{','.join(cells)}\n")
        return score(project, "log.csv", "tool_calls: {forbidden: [{name: cancel}]}", of="r").code

    assert code([{"id": "2", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}]) == 3
    assert code([]) == 0
    if not is_row:
        assert code(CALLED) == 0  # once more


@pytest.mark.parametrize("within", ["", "metadata"])
def test_the_calls_in_a_text_of_a_message(project: Project, within: str) -> None:
    def code(name: str) -> int:
        text = json.dumps([{"name": name, "arguments": {}}])
        last = {**MADE[-1], **({within: {"actions": text}} if within else {"actions": text})}
        project.write("log.jsonl", json.dumps({"id": "r", "messages": [*MADE[:-1], last]}))
        return score(project, "log.jsonl", "tool_calls: {forbidden: [{name: cancel}]}", of="r").code

    assert code("cancel") == 3
    assert code("look") == 0  # once more


def test_a_text_over_several_lines_and_with_quotes(project: Project) -> None:
    table(project, 'question,answer\n"Hi,\nthere","She said ""no"".\nTwice."\nBye,"a"\n')
    assert score(project, "log.csv").code == 0
    assert turns(project) == {
        "log.csv:2": [("Hi,\nthere", 'She said "no".\nTwice.')],
        "log.csv:5": [("Bye", "a")],
    }


BROKEN: Mapping[str, tuple[str, str]] = {
    "missing columns": (
        "q,a\n1,2\n",
        "log.csv:1: the first line names no known columns: it needs a column input, prompt, query"
        " or question and a column output, completion, response or answer; it has q, a",
    ),
    "a column that is written otherwise": ("question,Answer\n1,2\n", "did you mean 'answer'?"),
    "a column that is there twice": ("input,input\n1,2\n", "log.csv:1: two columns are named 'input'"),
    "an open quote": (
        'input,output\nHi,"no end\nx,y\n',
        "log.csv:2: not CSV: a double quote that is opened in this row is not closed",
    ),
    "a text behind a quote": ('input,output\nHi,"a"b\n', "log.csv:2: not CSV"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_table_that_cannot_be_read_says_why(project: Project, name: str) -> None:
    text, why = BROKEN[name]
    table(project, text)
    done = score(project, "log.csv")
    assert done.code == 2, done.all
    assert why in words(done.all)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (b"Hi,\n", "log.csv:3: the cell in column 'answer' is empty"),
        (b",Hello\n", "log.csv:3: the cell in column 'question' is empty"),
        (b"Hi,there,Hello\n", "log.csv:3: the row has 3 cells, the first line names 2 columns"),
        (b"Hi\n", "log.csv:3: the row has 1 cells, the first line names 2 columns"),
        (b"H\xe9,Hello\n", "log.csv:3: not UTF-8 at byte 2 of line 3: save the file as UTF-8"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_are_scored(
    project: Project, row: bytes, why: str
) -> None:
    table(project, b"question,answer\nA,B\n" + row + b"C,D\n")
    done = score(project, "log.csv")
    assert done.code == 3, done.all
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    assert {name: each["verdict"] for name, each in samples.items()} == {
        "log.csv:2": "passed",
        "log.csv:3": "inconclusive",
        "log.csv:4": "passed",
    }
    assert why in samples["log.csv:3"]["reason"]


RUN = {
    "id": "r", "run_type": "chain", "name": "agent", "inputs": {"input": Q}, "outputs": {"output": A},
    "events": [{"name": "start", "time": "x"}, {"name": "end", "time": "y"}], "child_run_ids": [],
    "extra": {"invocation_params": {"tools": [{"type": "function", "function": {"name": "cancel"}}]}},
    "serialized": {"id": ["langchain", "x"], "kwargs": {"steps": "x"}}, "tools": ["cancel"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 0),
        ({"child_run_ids": ["r2"]}, 3),
        ({"child_runs": [{"run_type": "tool", "name": "cancel", "inputs": {}}]}, 1),
        ({"events": [{"name": "cancel", "time": "x"}]}, 3),
        ({"outputs": {"output": A, "intermediate_steps": [[{"tool": "cancel", "tool_input": {}}, "ok"]]}}, 3),
    ],
)
def test_what_stands_beside_a_run_of_langsmith_is_not_lost(project: Project, more: Any, code: int) -> None:
    project.write("log.jsonl", json.dumps({**RUN, **more}))
    done = score(project, "log.jsonl", "tool_calls: {forbidden: [{name: cancel}]}", of="r")
    assert done.code == code, done.all
    assert turns(project) == {"r": [(Q, A)]}


# ── Langfuse ─────────────────────────────────────────────────────────────────────────────────────

TRACE = json.loads((SAMPLES / "langfuse.json").read_text(encoding="utf-8"))
AGENT, CALLING, TOOL, ANSWERING = TRACE["observations"]
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"


def observation(number: int, kind: str, name: str, given: Any, back: Any, **more: Any) -> dict[str, Any]:
    start = f"2026-05-04T09:00:{number:02}.000Z"
    own = {"id": f"n{number}", "type": kind, "name": name, "startTime": start, "input": given, "output": back}
    return {**TOOL, **own, **more}


CANCEL = {"id": "A-7"}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ([], 0),
        ([observation(2, "TOOL", "cancel", CANCEL, "ok")], 1),
        ([observation(2, "TOOL", "cancel", "{'id': 'A-7'}", None, level="ERROR", statusMessage="no")], 1),
        ([observation(2, "SPAN", "cancel", CANCEL, "ok")], 3),  # it may be a tool
        ([observation(2, "RETRIEVER", "search", "x", ["y"])], 0),
    ],
)
@pytest.mark.parametrize("form", ["trace", "list", "lines"])
def test_what_an_observation_shows(project: Project, more: list[Any], code: int, form: str) -> None:
    observations = [AGENT, CALLING, *more, TOOL, ANSWERING]
    whole = {"trace": {**TRACE, "observations": observations}, "list": observations}
    lines = "".join(f"{json.dumps(each)}\n" for each in observations)
    project.write("log.jsonl", lines if form == "lines" else json.dumps(whole[form]))
    done = score(project, "log.jsonl", FORBIDDEN, of="t-1")
    assert done.code == code, done.all
    assert turns(project) == {"t-1": [(Q, A)]}
    assert score(project, "log.jsonl", "tool_calls: {calls: [{name: get_fare}]}", of="t-1").code == 0


def test_a_tool_between_two_turns_is_of_the_turn_in_which_it_ran(project: Project) -> None:
    first = [{"role": "user", "content": "Hi"}]
    second = [*first, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    found = [
        observation(1, "TOOL", "look", {}, "x"),
        observation(2, "GENERATION", "chat", first, {"role": "assistant", "content": "Hello"}),
        observation(3, "TOOL", "cancel", CANCEL, "ok"),
        observation(4, "GENERATION", "chat", second, {"role": "assistant", "content": "Bye!"}),
    ]
    project.write("log.json", json.dumps({**TRACE, "input": None, "output": None, "observations": found}))
    assert score(project, "log.json").code == 0
    sample = project.sample("t-1")
    assert [[call["name"] for call in turn["tool_calls"]] for turn in sample["turns"]] == [
        ["look"],
        ["cancel"],
    ]


def test_generations_that_do_not_go_on_from_each_other_are_not_fully_seen(project: Project) -> None:
    """Which of them the user was answered with, nobody knows, unless the trace says it."""
    other = observation(4, "GENERATION", "write", "y", "z")
    trace = {**TRACE, "input": None, "output": None, "observations": [CALLING, other]}
    project.write("log.json", json.dumps(trace))
    done = score(project, "log.json", FORBIDDEN, of="t-1")
    assert done.code == 3, done.all
    assert "messages that may be missing before the span 'write'" in words(done.all)
    project.write("log.json", json.dumps({**TRACE, "observations": [CALLING, TOOL, other]}))
    assert score(project, "log.json", FORBIDDEN, of="t-1").code == 0
    assert turns(project) == {"t-1": [(Q, A)]}
    assert score(project, "log.json", "tool_calls: {forbidden: [{name: get_fare}]}", of="t-1").code == 1


@pytest.mark.parametrize("more", [{"observations": ["o1", "o2"]}, {"observations": []}, {}])
def test_a_trace_without_its_observations_is_not_fully_seen(project: Project, more: Any) -> None:
    """Another trace shows that this agent's calls are recorded."""
    trace = {key: value for key, value in TRACE.items() if key != "observations"}
    lines = [{**TRACE, "agent": "a"}, {**trace, "id": "t-2", "sessionId": "s-2", "agent": "a", **more}]
    project.write("log.jsonl", "".join(f"{json.dumps(each)}\n" for each in lines))
    done = score(project, "log.jsonl", FORBIDDEN, of="t-2")
    assert done.code == 3, done.all
    assert "the observations of the trace, which are not in it" in words(done.all)
    assert turns(project)["t-2"] == [(Q, A)]


def test_traces_that_are_mixed_line_by_line_are_put_together(project: Project) -> None:
    other = [{**each, "traceId": "t-2"} for each in (AGENT, CALLING, TOOL, ANSWERING)]
    lines = [AGENT, other[0], CALLING, other[1], TOOL, other[2], ANSWERING, other[3]]
    for written in (lines, [*lines[::2], *lines[1::2]], lines[::-1]):
        project.write("log.jsonl", "".join(f"{json.dumps(each)}\n" for each in written))
        assert score(project, "log.jsonl").code == 0
        assert turns(project) == {"t-1": [(Q, A)], "t-2": [(Q, A)]}
