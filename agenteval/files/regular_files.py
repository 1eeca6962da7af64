"""Reads regular files only, because reading a named pipe could block forever, reading a device may never end,
and opening a device may have side effects."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from agenteval.core.errors import AuthorError, Place, Problem

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_file(path: Path) -> IO[bytes]:
    """Open a regular file for reading. Raise ``OSError`` in the same cases as ``open``, and also for a named
    pipe, a device or a socket, none of which is opened."""
    if kind := _KINDS.get(stat.S_IFMT(os.stat(path).st_mode)):
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    return path.open("rb")


def read_file(path: Path, max_bytes: int = -1) -> bytes:
    """Return the content of a file, limited to ``max_bytes``. Raise ``OSError`` in the same cases as
    ``open_file``."""
    with open_file(path) as file:
        return file.read(max_bytes)


@contextmanager
def wrap_read_errors(what: str, place: Place | None, remedy: str = "") -> Iterator[None]:
    """Convert an ``OSError`` inside the ``with`` block into an ``AuthorError`` about the file being read."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"{what} cannot be read: {reason}".lstrip()
        raise AuthorError(Problem(message, remedy, place)) from error


def read_text(path: Path, what: str) -> str:
    """Return the text of an author's file, regardless of the editor used: with or without a byte order mark,
    and with any line endings. Raise ``OSError`` if the file cannot be read, and ``AuthorError`` if it is not
    valid UTF-8."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AuthorError(
            Problem(f"the {what} is not valid UTF-8", "save it as UTF-8", Place(str(path)))
        ) from None
    return text.replace("\r\n", "\n")


def is_device(path: Path) -> bool:
    """Check whether a path refers to a device, except for a device that a shell passes as a stream."""
    if path.parent == Path("/dev/fd") or path == Path("/dev/stdin"):
        return False
    mode = os.stat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def private_opener(path: str, flags: int) -> int:
    """Open a file with permissions for its owner only, because the file contains conversations. Pass this
    function as the ``opener`` of ``open``."""
    return os.open(path, flags, 0o600)
