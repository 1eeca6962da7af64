"""Places in files, as reports tell them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from agenteval.core.safe_text import one_line


def split_place(where: str) -> tuple[str, int]:
    """``("a.yaml", 12)`` from ``a.yaml:12`` (a column is left out); no path if there is no file."""
    found = re.fullmatch(r"(.+?)(?::(\d+))?(?::\d+)?", one_line(where, 1000))
    if found is None or found[1] == "default" or found[1].startswith("-"):
        return "", 0
    return found[1], int(found[2] or 0)


def relative_place(where: str, root: str) -> tuple[str, int]:
    """As ``split_place``, with the path from ``root`` and ``/`` between its parts, if it is beneath it."""
    path, line = split_place(where)
    if not path:
        return "", 0
    try:
        relative = os.path.relpath(path, root)
    except ValueError:  # another drive
        return path, line
    return (path if relative.startswith("..") else relative).replace(os.sep, "/"), line


def shown_places(wheres: Iterable[str], root: str) -> str:
    """Of a scenario and of its row: those that there are, each once."""
    return " · ".join(shown_place(where, root) for where in dict.fromkeys(filter(None, wheres)))


def shown_place(where: str, root: str) -> str:
    """``file:line`` as people read it; what is not a file stays as it is."""
    path, line = relative_place(where, root)
    if not path:
        return one_line(where, 200)
    return f"{path}:{line}" if line else path
