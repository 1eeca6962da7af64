"""Runs that a project has kept: a folder with a journal each, as ``run`` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agenteval.core.event import Event, RunStarted
from agenteval.files.journal import event_to_json

BEGAN = "2026-11-21T10:00:00.000Z"


def keep_run(root: Path, run_id: str, events: Sequence[Event], began: str = BEGAN, **changes: Any) -> Path:
    """The folder of the run; ``changes`` are those of its first event."""
    first, *rest = events
    assert isinstance(first, RunStarted)
    first = first.model_copy(update={"run_id": run_id, "started_at": began, **changes})
    folder = root / ".agenteval" / "runs" / run_id
    write_journal(folder, [first, *rest])
    return folder


def write_journal(folder: Path, events: Iterable[Event]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{event_to_json(event)}\n" for event in events]
    (folder / "events.jsonl").write_text("".join(lines), encoding="utf-8")
