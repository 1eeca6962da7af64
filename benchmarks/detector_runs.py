"""Findings of the detectors on many conversations, by the real command.

``agenteval score`` reads a file of conversations and writes its JSON report; nothing else of the package
is used, so that what is measured is what a user gets.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from processes import AGENTEVAL, spawn
from recorded import Conversation

READ_AT_ONCE = 1000
"""Conversations per command: the report of all would be held in memory."""
CONVERSATIONS = "conversations.jsonl"
SUITE = "marks.yaml"


class Found(NamedTuple):
    """A finding, as the report has it. ``turn`` and ``call`` from 0; ``None``: the whole of it."""

    detector: str
    turn: int | None
    call: int | None
    label: str
    severity: str
    evidence: str
    explanation: str

    @property
    def is_grave(self) -> bool:
        """Whether it fails a run whose gate stands at high."""
        return self.severity in {"high", "critical"}


class ScoreCommandError(Exception):
    """The command did not write its report."""


def findings(conversations: Sequence[Conversation], known: Iterable[str]) -> dict[str, list[Found]]:
    """The findings of the detectors named ``known``, by the conversations' ids. Raises
    ``ScoreCommandError``."""
    names, found = set(known), {}
    for part in _parts(conversations):
        for number, items in _score(part).items():
            found[part[number]["id"]] = [item for item in items if item.detector in names]
    return {conversation["id"]: found.get(conversation["id"], []) for conversation in conversations}


def _parts(conversations: Iterable[Conversation]) -> Iterator[list[Conversation]]:
    """Those with the same marks together, a limited number at once."""
    groups: dict[str, list[Conversation]] = {}
    for conversation in conversations:
        table = json.dumps(conversation.get("tool_marks"), sort_keys=True)
        groups.setdefault(table, []).append(conversation)
    for group in groups.values():
        for start in range(0, len(group), READ_AT_ONCE):
            yield group[start : start + READ_AT_ONCE]


def _score(conversations: Sequence[Conversation]) -> dict[int, list[Found]]:
    with tempfile.TemporaryDirectory() as folder:
        marks = conversations[0].get("tool_marks") or {}
        _write(conversations, Path(folder), marks)
        marked = ("--scenarios", SUITE) if marks else ()
        command = [*AGENTEVAL, "score", CONVERSATIONS, "--no-judge", "--report", "json=results.json", *marked]
        done = spawn(command, Path(folder))
        report = Path(folder) / "results.json"
        if done.code not in (0, 1, 3) or not report.is_file():
            raise ScoreCommandError(f"`agenteval score` ended with {done.code}:\n{done.output[-3000:]}")
        return _read(json.loads(report.read_text(encoding="utf-8")))


def _write(conversations: Iterable[Conversation], folder: Path, marks: Mapping[str, str]) -> None:
    """One conversation a line, with ids that no command has a reason to change; and the marks of their
    tools as an author gives them: in a suite with a scenario for each conversation."""
    idents = []
    with open(folder / CONVERSATIONS, "w", encoding="utf-8") as lines:
        for number, conversation in enumerate(conversations):
            kept = {key: conversation[key] for key in ("messages", "tools") if key in conversation}
            idents.append(f"c{number:05}")
            lines.write(json.dumps({"id": idents[-1], **kept}, ensure_ascii=False) + "\n")
    tools = {tool: {mark: True} for tool, mark in marks.items()}
    suite = {
        "defaults": {"turns": ["(recorded)"], "checks": "none", "tools": tools},
        "scenarios": [{"name": ident, "id": ident} for ident in idents],
    }
    (folder / SUITE).write_text(json.dumps(suite, indent=1), encoding="utf-8")


def _read(results: Mapping[str, Any]) -> dict[int, list[Found]]:
    """Place of the conversation in the file -> findings."""
    return {
        int(scenario["id"].removeprefix("c")): [
            _found(finding) for sample in scenario["samples"] for finding in sample["findings"]
        ]
        for scenario in results["scenarios"]
    }


def _found(finding: Mapping[str, Any]) -> Found:
    return Found(**{name: finding[name] for name in Found._fields})
