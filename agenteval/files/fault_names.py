"""The names of fault packs and variant packs on the command line, apart from their content: a run without
them loads none."""

from __future__ import annotations

import os
from pathlib import Path

PACK_NAMES = ("timeouts", "errors", "malformed", "stale", "injection")
"""The shipped packs of faults."""
MESSAGE_PACK_NAMES = ("typos", "case", "noise", "reordered", "empty", "long", "unicode")
"""The shipped packs of message variants."""
_SHIPPED = frozenset((*PACK_NAMES, *MESSAGE_PACK_NAMES))


def split_packs(names: str) -> list[str]:
    """Split ``PACK[,PACK]``."""
    return [name for each in names.split(",") if (name := each.strip())]


def absolute_packs(names: str, folder: str) -> str:
    """Return the names with absolute paths of files, which are relative to ``folder``."""
    return ",".join(
        name if name in _SHIPPED else os.path.abspath(Path(folder, name)) for name in split_packs(names)
    )
