"""Keep what functions made of texts. The same texts are looked at again and again: every needle, and every
quotation of every judge, is searched for in all texts of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

Options = ParamSpec("Options")
Made = TypeVar("Made")

MAX_CHARACTERS = 1_000_000
"""The maximum total length of the texts whose results a function keeps. It is enough for the conversations
that are judged at the same time."""
ENTRY_CHARACTERS = 60
"""The size of an entry besides its text, in characters, so that the number of short texts is limited, too."""


def keep_by_text(
    function: Callable[Concatenate[str, Options], Made],
) -> Callable[Concatenate[str, Options], Made]:
    """Keep the results of a function of a text, up to ``MAX_CHARACTERS``; the oldest are dropped first. The
    latest result is kept even if its text alone is longer. Callers must not change a result."""
    kept: dict[tuple[Any, ...], Made] = {}
    room = MAX_CHARACTERS
    lock = Lock()

    @wraps(function)
    def find_or_make(text: str, /, *args: Options.args, **options: Options.kwargs) -> Made:
        nonlocal room
        key = (text, args, *options.items())
        try:
            return kept[key]
        except KeyError:
            pass
        made = function(text, *args, **options)
        size = len(text) + ENTRY_CHARACTERS
        with lock:
            while kept and room < size:
                oldest = next(iter(kept))
                del kept[oldest]
                room += len(oldest[0]) + ENTRY_CHARACTERS
            if key not in kept:
                kept[key] = made
                room -= size
        return made

    return find_or_make
