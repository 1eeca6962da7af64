"""Reduces the frequency of Python's cyclic garbage collection while a command runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 50_000


@contextmanager
def reduce_garbage_collection() -> Iterator[None]:
    """Reduce how often the garbage collector runs. Conversations and their scores are values without
    reference cycles, so a search for cycles after every few hundred objects finds nothing, yet it takes up a
    tenth of the duration of a run and a fifth of that of ``score``. Imported modules are excluded from the
    search."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
