"""Reads the items of a file that consists of one JSON list. Such a file may have hundreds of megabytes on a
single line, so only the item that is being read is in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO

from agenteval.importers.sources import BYTE_ORDER_MARK, NumberedLine, Source, open_log

_PIECE = 1 << 18
_MOST_CUT = 2
"""The number of characters after a number that may belong to it if the window ends with them: ``1e+`` may go
on with ``5``."""
_GAP = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def items_of(source: Source) -> Iterator[NumberedLine]:
    """Yield the JSON of each item with the line on which it begins. Raise ``ValueError`` or
    ``RecursionError`` as soon as the file turns out not to be a list with items, and ``OSError``,
    ``EOFError`` or ``zlib.error`` if the file cannot be read. The encoding is not checked."""
    with open_log(source.path) as file:
        window = _Window(file)
        sign = window.take_sign()
        if sign != "[":
            raise ValueError("not a list")
        while sign != "]":
            yield window.take_value()
            sign = window.take_sign()
            if sign not in (",", "]"):
                raise ValueError("an item that does not end")
        if window.take_sign():
            raise ValueError("more than a list")


class _Window:
    """The part of a file that is being read. Its text has one character for each byte, so that a piece of the
    file may end anywhere. Outside strings, JSON is ASCII."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._text = file.read(_PIECE).removeprefix(BYTE_ORDER_MARK).decode("latin-1")
        self._at = 0
        self._line = 1

    def take_sign(self) -> str:
        """Return the next character that is not white space, or an empty string at the end of the file."""
        self._skip_gap()
        sign = self._text[self._at : self._at + 1]
        self._at += len(sign)
        return sign

    def take_value(self) -> NumberedLine:
        """Return the next JSON value. Raise ``ValueError`` or ``RecursionError`` if it cannot be read."""
        self._skip_gap()
        end = self._find_end()
        value = NumberedLine(self._line, self._text[self._at : end].encode("latin-1"))
        self._advance(end)
        return value

    def _find_end(self) -> int:
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._extend():
                    raise
            else:
                if end + _MOST_CUT < len(self._text) or not self._extend():
                    return end

    def _skip_gap(self) -> None:
        while True:
            gap = _GAP.match(self._text, self._at)
            self._advance(gap.end() if gap else self._at)
            if self._at < len(self._text) or not self._extend():
                return

    def _advance(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _extend(self) -> bool:
        """Read on, and drop what was taken. A value that is still open doubles the window, so that the time
        for a long one stays proportional to its length. Return False at the end of the file."""
        rest = self._text[self._at :]
        piece = self._file.read(max(_PIECE, len(rest)))
        if piece:
            self._text, self._at = rest + piece.decode("latin-1"), 0
        return bool(piece)
