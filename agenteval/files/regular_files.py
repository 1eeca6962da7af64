"""Reading what should be a file, and is one: a named pipe would be waited for without end, a device may never
end, and to open it may be to do something."""

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
    """The file, opened to be read. Raises ``OSError``, as ``open`` does, also for what is not a file: that is
    told without opening it."""
    if kind := _KINDS.get(stat.S_IFMT(os.stat(path).st_mode)):
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    return path.open("rb")


def read_file(path: Path, max_bytes: int = -1) -> bytes:
    """What it holds, at most so many bytes of it. Raises ``OSError``, as ``open_file``."""
    with open_file(path) as file:
        return file.read(max_bytes)


@contextmanager
def wrap_read_errors(what: str, place: Place | None, remedy: str = "") -> Iterator[None]:
    """Raises ``AuthorError`` where the file that is read in it cannot be."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"{what} cannot be read: {reason}".lstrip()
        raise AuthorError(Problem(message, remedy, place)) from error


def read_text(path: Path, what: str) -> str:
    """The text of an author's file, whatever editor wrote it: with a byte order mark or without, line ends
    of Windows or others. Raises ``OSError``, and ``AuthorError`` where it is not UTF-8."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AuthorError(Problem(f"the {what} is not UTF-8", "save it as UTF-8", Place(str(path)))) from None
    return text.replace("\r\n", "\n")


def is_device(path: Path) -> bool:
    """Whether it is one that was named, and not what a shell put in place of a stream."""
    if path.parent == Path("/dev/fd") or path == Path("/dev/stdin"):
        return False
    mode = os.stat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def private_opener(path: str, flags: int) -> int:
    """The ``opener`` of files that hold conversations: nobody else may read them."""
    return os.open(path, flags, 0o600)
