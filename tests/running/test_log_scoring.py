"""What is remarked about a log that was scored, beside its verdict; and how much of it is in memory."""

from __future__ import annotations

import csv
import gc
import io
import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.recorded_answers import AnswerCounts, RejudgedAnswers
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.importers import reader
from agenteval.importers.identity import FieldPaths
from agenteval.importers.records import ImportedConversation
from agenteval.messages.log_entry import Record
from agenteval.messages.unplaced_entries import CallFreeNames
from agenteval.planning.score_preparation import ScoreRequest
from agenteval.running.log_scoring import (
    _rejudged_notes,
    _unused_call_free_names,
    open_scoring,
    score_log,
)
from agenteval.running.observer import SilentObserver


def counts(reused: dict[str, int], calls: dict[str, int]) -> RejudgedAnswers:
    tally = AnswerCounts()
    tally.reused.update(reused)
    tally.calls.update(calls)
    return RejudgedAnswers({}, tally)


@pytest.mark.parametrize(
    ("answers", "facts"),
    [
        (None, None),
        (counts({}, {}), ["0 answers", "0 new"]),
        (counts({"a": 1}, {}), ["1 answer from", "0 new"]),
        (counts({"a": 1, "b": 1000}, {"y": 2, "x": 1500}), ["1,001 answers", "1,502 new (x 1,500, y 2)"]),
    ],
)
def test_what_was_judged_again(answers: RejudgedAnswers | None, facts: list[str] | None) -> None:
    found = list(_rejudged_notes(answers))
    assert len(found) == (facts is not None)
    for fact in facts or ():
        assert fact in found[0]
    if facts and "0 new" in facts:
        assert "(" not in found[0]


@pytest.mark.parametrize(
    ("names", "matched", "unmatched", "expected"),
    [
        ((), (), (), []),
        (("a",), ("a",), ("b",), []),
        (("stpes", "a"), ("a",), ("steps",), [["stpes", "steps"]]),
        (("z", "y"), (), (), [["--no-calls-in y", "recognized"], ["--no-calls-in z", "recognized"]]),
    ],
)
def test_names_that_matched_nothing_are_told(
    names: tuple[str, ...], matched: tuple[str, ...], unmatched: tuple[str, ...], expected: list[list[str]]
) -> None:
    found = list(_unused_call_free_names(CallFreeNames(frozenset(names), set(matched), set(unmatched))))
    assert len(found) == len(expected)
    for text, facts in zip(found, expected, strict=True):
        assert all(fact in text for fact in facts)


# ── how much is in memory ────────────────────────────────────────────────────────────────────────


def conversation(number: int) -> dict[str, Any]:
    """One with a tool, and with an answer that may be a failure."""
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": f'{{"id": {number}}}'}}
    return {
        "id": f"talk-{number}",
        "ok": number % 3 > 0,
        "tools": [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "user", "content": f"Where is order {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "found"},
            {"role": "assistant", "content": f"Order {number} is in Bonn."},
        ],
    }


def lines(talks: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(talk)}\n" for talk in talks)


def table(talks: list[dict[str, Any]]) -> str:
    written = io.StringIO()
    rows = [(talk["id"], json.dumps(talk["ok"]), json.dumps(talk["messages"])) for talk in talks]
    csv.writer(written).writerows([("id", "ok", "messages"), *rows])
    return written.getvalue()


def objects(talks: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(talk, indent=1) for talk in talks)


FORMS: dict[str, tuple[str, Callable[[list[dict[str, Any]]], str]]] = {
    "lines": ("log.jsonl", lines),
    "list": ("log.json", json.dumps),
    "list over many lines": ("log.json", partial(json.dumps, indent=1)),
    "objects over many lines": ("log.json", objects),
    "table": ("log.csv", table),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("texts", [(), ("talk-1",)])
def test_conversations_are_parsed_one_by_one_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, texts: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, write = FORMS[form]
    count = 40
    (tmp_path / name).write_text(write([conversation(n) for n in range(count)]), encoding="utf-8")
    alive: list[int] = []
    values: list[Any] = []
    parse = reader.conversation_of

    def parse_and_count(entry: Record, *more: Any) -> ImportedConversation:
        values.append(entry.value["id"])
        if len(values) % 13 == 0:
            alive.append(sum(isinstance(each, RecordedConversation) for each in gc.get_objects()))
        return parse(entry, *more)

    monkeypatch.setattr(reader, "conversation_of", parse_and_count)
    with ExitStack() as stack:
        request = ScoreRequest(files=(name,), paths=FieldPaths(outcome="ok"), texts=texts)
        scoring = open_scoring(request, stack, SilentObserver())
        report = score_log(scoring, SilentObserver()).report
    failed = [s.key.scenario for s in report.samples if any(c.passed is False for c in s.checks)]
    chosen = [n for n in range(count) if not texts or n == 1 or str(n).startswith("1")]
    exact = [1] if texts else chosen
    assert [sample.key.scenario for sample in report.samples] == [f"talk-{n}" for n in exact]
    assert failed == [f"talk-{n}" for n in exact if n % 3 == 0]
    assert max(Counter(values).values()) <= (2 if texts else 1)
    assert alive
    assert max(alive) <= 2
