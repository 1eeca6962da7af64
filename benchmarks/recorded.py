"""Recorded conversations that detectors are measured on: OpenAI chat messages, one conversation a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
Conversation: TypeAlias = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
FILES = {
    "tau_airline": "tau_airline.jsonl.gz",
    "tau2_runs": "tau2_runs.jsonl.gz",
    "tooltalk": "tooltalk.jsonl.gz",
}


class MissingDataError(Exception):
    """The conversations are not where they are expected."""


def load(path: Path) -> list[Conversation]:
    """The conversations of a file in JSON Lines, gzip or not. Raises ``MissingDataError``."""
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; give files of recorded conversations with --data FILE")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def load_sets(files: Sequence[Path] = ()) -> dict[str, list[Conversation]]:
    """The named sets, or those of ``files``. Raises ``MissingDataError``."""
    chosen = {path.name.split(".")[0]: path for path in files} or {n: DATA / f for n, f in FILES.items()}
    return {name: load(path) for name, path in chosen.items()}
