"""The words of a text as they are written, with the marks beside them, and a text without its marks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from agenteval.expressions import expression


class Parts(NamedTuple):
    """What stands between the spaces of a text, in lower case and without the marks for bold and the like.
    ``different``: each once."""

    words: tuple[str, ...]
    different: frozenset[str]


@lru_cache(maxsize=256)
def parts_of(text: str) -> Parts:
    """Its parts. Several detectors read the same answers."""
    words = tuple(text.replace("*", "").replace("`", "").lower().split())
    return Parts(words, frozenset(words))


class Words:
    """Some words, which ``found_in`` looks for."""

    def __init__(self, words: Iterable[str]) -> None:
        # With what may stand beside it, so that a look at the parts of a text is enough.
        self._by_form = {
            before + word + after: word
            for word in words
            for before in ("", "(")
            for after in ("", ".", ",", "!", ":", ";", ")", "?")
        }
        self._forms = frozenset(self._by_form)

    def found_in(self, text: str) -> set[str]:
        """Those that ``text`` has, however they are marked."""
        forms = self._forms & parts_of(text).different
        return {self._by_form[form] for form in forms} if forms else set()


@lru_cache(maxsize=64)
def unmarked_of(text: str) -> Unmarked:
    """A text without its marks. Several detectors read the same answers."""
    return Unmarked(text)


_MARKS = expression(r"\*{1,3}(?=[^\s*])|\*(?<=[^\s*]\*)\*{0,2}|`(?<!``)(?!`)")
"""What makes words bold, slanted or code. A star before a space is the mark of a list. Each begins with its
mark, since that is what lets the search skip everything else quickly."""


class Unmarked:
    """``text``: one without such marks."""

    def __init__(self, marked: str) -> None:
        self._marked = marked
        self.text = _MARKS.sub("", marked) if "*" in marked or "`" in marked else marked
        self._begins: list[int] = []
        self._left_out: list[int] = []

    def span(self, span: tuple[int, int]) -> tuple[int, int]:
        """Where a part of it stands in the text with the marks: without those right before or after it."""
        if self.text == self._marked:
            return span
        return self._place(span[0]), self._place(span[1] - 1) + 1

    def _place(self, at: int) -> int:
        if not self._begins:
            found = [match.span() for match in _MARKS.finditer(self._marked)]
            self._left_out = list(accumulate((end - start for start, end in found), initial=0))
            ends = [0, *(end for _, end in found)]
            self._begins = [end - lost for end, lost in zip(ends, self._left_out, strict=True)]
        return at + self._left_out[bisect_right(self._begins, at) - 1]
