"""A sample's database in a file of its own, on which the agent's own tools work, too."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from agenteval.core.world_state import StateChanges
from agenteval.world.connections import WorldConnection, translate_errors
from agenteval.world.database import WorldDatabase
from agenteval.world.exposed_changes import read_changes
from agenteval.world.start_state import StartState


class ExposedDatabase(WorldDatabase):
    """The database of one sample, in a private folder that is removed when it is closed.

    Each transaction has its own connection, so that none is open while only the agent is at work, and so that
    each sees what is at the path then."""

    def __init__(self, start: StartState, now: datetime, seed: int, *, unknown: str = "") -> None:
        """Write the file. ``unknown`` is a reason for which the file will not show what the agent did, or
        empty. Raise ``OSError``."""
        super().__init__(start, now, seed)
        self._unknown = unknown
        self._folder = Path(tempfile.mkdtemp(prefix="agenteval-state-"))
        self._file = self.path = self._folder / "state.sqlite"
        self._file.write_bytes(start.data)

    def changes(self) -> StateChanges:
        """Return what differs from the start state in what is committed now."""
        if self._unknown:
            found = StateChanges(is_complete=False, unknown_because=self._unknown)
        else:
            found = read_changes(self._file, self.start)
        return found.model_copy(update=self.origin)

    def close(self) -> None:
        super().close()
        remove_folder(self._folder)

    @contextmanager
    def reader(self) -> Iterator[WorldConnection]:
        yield self.own_copy()

    def own_copy(self) -> WorldConnection:
        """Return the connection of this transaction. Raise ``SqlCallError`` if the file cannot be opened."""
        if self._copy is None:
            with translate_errors():
                self._copy = WorldConnection(self._file, self.clock, self.start.writable)
        return self._copy

    def _release(self) -> None:
        if self._copy is not None:
            self._copy.close()
            self._copy = None


def remove_folder(folder: Path) -> None:
    """Remove a folder with a database. If an agent's process that has not ended yet writes there once more,
    the folder is removed when this process ends."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        atexit.register(partial(shutil.rmtree, folder, ignore_errors=True))
