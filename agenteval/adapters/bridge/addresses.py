"""Pass the address of the run's MCP server to processes that do not inherit the run's environment.

MCP clients pass only ``HOME``, ``PATH`` and a few other variables to the servers that they start. A run
therefore writes a file for each process of an agent with ``mcp``, named after the process. Any descendant of
that process finds the file through its ancestors. The folder of these files cannot be set in an environment
variable, because the variable would not be passed on either."""

from __future__ import annotations

import atexit
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agenteval.adapters.bridge.ancestors import ancestors, inspect_process

MCP_URL_VARIABLE = "AGENTEVAL_MCP_URL"
"""The environment variable in which a program or a Python target finds the MCP server. It takes precedence
over the files."""
_LOOKS, _PAUSE_S = 10, 0.1
"""The number of times that a bridge looks for its address, and the pauses between attempts. The run may not
have announced the bridge's parent process yet."""
_UNFINISHED = ".new"


class AnnouncedAddress(NamedTuple):
    """An address announced by a run."""

    url: str
    """The address, or an empty string for a process of an agent without ``mcp``."""
    name: str
    """The name of the process for which the address was announced."""


# ── the run ──────────────────────────────────────────────────────────────────────────────────────

_urls: dict[int, str] = {}
_written: dict[int, Path] = {}
_lock = threading.RLock()  # a signal may end processes while one is announced
_home = 0


def announce(pid: int, url: str) -> None:
    """Announce ``url`` to all processes that the process ``pid`` starts from now on.

    An empty ``url`` is announced only if the processes would otherwise find the address of another agent. If
    there is no private folder, nothing is announced, and a bridge reports the missing address."""
    with _lock:
        is_first = _adopt_process()
        if not url and not _urls.get(os.getpid()):
            return
        _urls[pid] = url
        with suppress(OSError):
            folder = _own_folder()
            if is_first:
                _remove_dead(folder)
            if seen := inspect_process(pid):
                _written[pid] = folder / seen.identity
                _write(_written[pid], url)


def announced_url(pid: int) -> str:
    """Return the address announced for ``pid``, or an empty string if no address was announced."""
    return _urls.get(pid, "")


def withdraw(pid: int) -> None:
    """Remove the announcement for a process that has ended or no longer has an address."""
    with _lock:
        _urls.pop(pid, None)
        if _home == os.getpid() and (path := _written.pop(pid, None)):
            path.unlink(missing_ok=True)


def withdraw_all() -> None:
    """Withdraw all of this process's announcements when it ends. A forked process does not withdraw its
    parent's announcements."""
    for pid in tuple(_written):
        withdraw(pid)


def _adopt_process() -> bool:
    global _home
    if _home == os.getpid():
        return False
    _home = os.getpid()
    _urls.clear()
    _written.clear()
    atexit.register(withdraw_all)
    return True


def _write(path: Path, url: str) -> None:
    new = path.with_name(path.name + _UNFINISHED)
    new.unlink(missing_ok=True)
    number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as file:
        file.write(url)
    os.replace(new, path)


def _remove_dead(folder: Path) -> None:
    """Remove the files left behind by runs that were killed."""
    for path in folder.iterdir():
        identity = path.name.removesuffix(_UNFINISHED)
        pid = identity.partition("-")[0]
        seen = inspect_process(int(pid)) if pid.isdecimal() else None
        if seen is None or seen.identity != identity:
            path.unlink(missing_ok=True)


# ── the bridge ───────────────────────────────────────────────────────────────────────────────────


def find_address() -> AnnouncedAddress | None:
    """Find the address of the nearest ancestor that has one. Wait briefly for an address to be announced."""
    for look in range(_LOOKS):
        if look:
            time.sleep(_PAUSE_S)
        for process in ancestors():
            for folder in _folders():
                if (url := _read(folder, process.identity)) is not None:
                    return AnnouncedAddress(url, process.name)
    return None


def _read(folder: Path, name: str) -> str | None:
    """Read the file. Return ``None`` if the file does not exist or belongs to another user."""
    with suppress(OSError, ValueError):
        _require_private(folder)
        number = os.open(folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(number, encoding="utf-8") as file:
            return file.read() if _is_own(os.fstat(number)) else None
    return None


# ── the folder ───────────────────────────────────────────────────────────────────────────────────


def _folders() -> Iterator[Path]:
    """Yield the possible folders. They are the same for all processes of a user, regardless of the
    environment."""
    if sys.platform == "win32":
        return
    user = os.getuid()
    if (session := Path(f"/run/user/{user}")).is_dir():
        yield session / "agenteval"
    yield Path(f"/tmp/agenteval-{user}")


def _own_folder() -> Path:
    """Find the folder, creating it if needed. Raise ``OSError`` if no private folder is available."""
    fault = OSError("no folder")
    for folder in _folders():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            _require_private(folder)
            return folder
        except OSError as error:
            fault = error
    raise fault


def _require_private(folder: Path) -> None:
    """Raise ``PermissionError`` unless only this user has access to the folder.

    Everyone can write to the parent folder, so another user may have created the folder first."""
    found = folder.lstat()
    if not (stat.S_ISDIR(found.st_mode) and _is_own(found) and not found.st_mode & 0o077):
        raise PermissionError(f"{folder} is not private to this user")


def _is_own(found: os.stat_result) -> bool:
    return sys.platform == "win32" or found.st_uid == os.getuid()
