"""What is known to hold no calls, in each dialect; what is not known, anywhere in it, is handed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.importers.entries import entries_of
from agenteval.importers.reader import conversation_of
from agenteval.importers.records import ImportedConversation, ToolSets
from agenteval.importers.sources import Source
from agenteval.messages.field_shapes import holds_objects, public_fields
from agenteval.messages.log_entry import Record
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.unplaced_entries import holds_entries, quote_json

SAMPLES = sorted((Path(__file__).parent.parent / "data" / "dialects").iterdir())
HIDDEN = {"hidden": {"tool": "cancel"}}


def conversations(path: Path, text: str) -> list[ImportedConversation]:
    path.write_text(text, encoding="utf-8")
    entries = list(entries_of(Source(path, path.name)))
    assert all(isinstance(entry, Record) for entry in entries)
    return [conversation_of(entry, ToolSets()) for entry in entries if isinstance(entry, Record)]


def unplaced(found: list[ImportedConversation]) -> list[str]:
    return [each for one in found for turn in one.parsed.trajectory.all_turns for each in turn.unplaced]


def with_hidden(value: Any) -> Any:
    """With a field that nobody knows in each object of a list."""
    if isinstance(value, dict):
        return {key: with_hidden(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_hidden(each) | HIDDEN if isinstance(each, dict) else with_hidden(each) for each in value]
    return value


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_known_log_is_fully_seen_and_what_nobody_knows_in_it_is_not_lost(
    tmp_path: Path, sample: Path
) -> None:
    text = sample.read_text(encoding="utf-8")
    found = conversations(tmp_path / sample.name, text)
    assert unplaced(found) == []
    assert all(one.parsed.coverage.read == one.parsed.coverage.messages for one in found)
    if sample.stem == "chat-history-chain":
        return  # which has lists of texts alone
    if sample.suffix == ".jsonl":
        lines = (with_hidden([json.loads(line)])[0] for line in text.splitlines())
        more = "".join(f"{json.dumps(line)}\n" for line in lines)
    else:
        more = json.dumps(with_hidden(json.loads(text)))
    assert any("'hidden" in each for each in unplaced(conversations(tmp_path / sample.name, more)))


class Slots:
    __slots__ = ("x",)


class Named:
    def __init__(self) -> None:
        self.name, self._hidden = "cancel", 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, False), ("{}", False), (1.5, False), ([], False), ({}, False), ([[{}]], True),
        ([["a", {}]], True),
        (["a", 1], False), ({"a": 1}, True), ([[{"a": 1}]], True), (({"a": None},), True), (Named(), True),
        ([Named()], True), (Named, False), (print, False), (json, False), (ValueError("x"), False),
        (Slots(), False),
    ],
)  # fmt: skip
def test_what_holds_an_object(value: Any, expected: bool) -> None:
    assert holds_objects(value) is expected


def test_what_holds_a_list_of_objects() -> None:
    assert not holds_entries({"a": {"b": {"c": [1, [2]]}}})
    assert holds_entries({"a": {"b": [[{"c": 1}]]}})
    assert public_fields(Named()) == {"name": "cancel"}


def test_a_quotation_is_short_whatever_is_quoted() -> None:
    assert quote_json({"a": "x" * 10_000, "b": [{"c": {"d": {"e": 1}}}] * 1000}).startswith('{"a": "xxx')
    assert len(quote_json({"a": list(range(100_000)), **{str(n): n for n in range(1000)}})) == 60
    assert quote_json("two\nlines") == "two lines"


def test_a_call_in_a_result_among_parts_is_not_lost_beside_a_text() -> None:
    part = {"type": "tool_result", "content": "3 found", "functionCall": {"name": "cancel", "args": {}}}
    for role in ("tool", "assistant"):
        read = parse_messages([{"role": role, "content": "3 found", "parts": [part]}])
        assert [each.value.names for each in read if each.role == "unplaced" and each.value.calls]
    (said, lost) = parse_messages([{"role": "user", "content": "Hi", "parts": [{"functionCall": {}}]}])
    assert (said.text, lost.role) == ("Hi", "unplaced")
