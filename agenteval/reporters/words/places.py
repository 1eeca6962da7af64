"""Format file locations for reports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from agenteval.core.safe_text import one_line

_LONGEST = 1000


def split_place(where: str) -> tuple[str, int]:
    """Split a location into path and line number, such as ``a.yaml:12`` into ``("a.yaml", 12)``. A column
    number is discarded. If the location is not in a file, the path is empty."""
    # The blanks of a path are kept, because it must still name the file.
    text = where if where.isprintable() and len(where) <= _LONGEST else one_line(where, _LONGEST)
    found = re.fullmatch(r"(.+?)(?::(\d+))?(?::\d+)?", text)
    if found is None or not found[1].strip() or found[1] == "default" or found[1].startswith("-"):
        return "", 0
    return found[1], int(found[2] or 0)


def relative_place(where: str, root: str) -> tuple[str, int]:
    """Split a location in the same way as ``split_place``. A path below ``root`` is made relative to
    ``root``, with ``/`` as the separator."""
    path, line = split_place(where)
    if not path:
        return "", 0
    try:
        relative = os.path.relpath(path, root)
    except ValueError:  # another drive
        return path, line
    is_below = relative.split(os.sep)[0] != os.pardir
    return (relative if is_below else path).replace(os.sep, "/"), line


def shown_places(wheres: Iterable[str], root: str) -> str:
    """Join the location of a scenario and the location of its data row. Duplicate and empty locations are
    omitted."""
    return " · ".join(shown_place(where, root) for where in dict.fromkeys(filter(None, wheres)))


def shown_place(where: str, root: str) -> str:
    """Format a location as ``file:line``. Text that does not name a file is returned unchanged."""
    path, line = relative_place(where, root)
    if not path:
        return one_line(where, 200)
    return f"{path}:{line}" if line else path
