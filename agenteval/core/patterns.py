"""Searching with expressions of the author's in texts that anybody wrote.

Some expressions take for ever on some texts: ``(a|aa)+$`` on forty letters and another, ``a.*b.*c`` on a long
answer. ``re`` cannot be bounded, so the ``regex`` package searches, for ``LIMIT_S`` of processor time: how
busy the machine is decides nothing. What Python refuses is a mistake; what ``regex`` reads in another way is
written for it as Python means it.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

from agenteval.core.folding import nfc

T = TypeVar("T")
_MUST_NOT_BLOCK: ContextVar[bool] = ContextVar("agenteval_hurried", default=False)

LIMIT_S = 1.0
"""Of processor time; where that cannot be measured, of the clock."""
_BLOCKING_LIMIT_S = 0.02
"""For as long others may wait."""
_SEARCH_LOCK = Lock()
"""One long search at a time: processor time is that of the process."""


class SearchTimeoutError(Exception):
    """A search took more than ``LIMIT_S``."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"/{pattern}/ took longer than {LIMIT_S:g} s")


def pattern_matches(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether the expression is found in the text, both composed (NFC). Raises ``SearchTimeoutError``."""
    pattern, text = nfc(pattern), nfc(text)
    try:
        search = _compile(pattern, int(flags)).search
    except (OverflowError, RecursionError):
        raise SearchTimeoutError(pattern) from None
    try:
        return search(text, timeout=min(_BLOCKING_LIMIT_S, LIMIT_S)) is not None
    except TimeoutError:
        if _MUST_NOT_BLOCK.get():
            raise _SlowSearchError from None
    try:
        with _SEARCH_LOCK:
            return search(text, timeout=LIMIT_S, concurrent=True) is not None
    except TimeoutError:
        raise SearchTimeoutError(pattern) from None


async def run_in_thread_if_slow(function: Callable[..., T], *args: Any) -> T:
    """What ``function`` returns; in a thread if a search in it takes long, so that nobody else waits."""
    token = _MUST_NOT_BLOCK.set(True)
    try:
        return function(*args)
    except _SlowSearchError:
        pass
    finally:
        _MUST_NOT_BLOCK.reset(token)
    return await asyncio.to_thread(function, *args)


class _SlowSearchError(Exception):
    """What is searched takes long, and who asks cannot wait."""


@lru_cache(maxsize=4096)
def _compile(pattern: str, flags: int) -> Any:
    """Raises ``re.error``, ``OverflowError`` and ``RecursionError``, as Python does."""
    import regex

    _parse(pattern)
    known = sum(bit for one, bit in ((re.I, regex.I), (re.M, regex.M), (re.S, regex.S)) if flags & one)
    try:
        return regex.compile(_TOKEN.sub(_to_python_meaning, pattern), known | regex.VERSION0)
    except regex.error as error:
        raise re.error(str(error)) from None


_TOKEN = re.compile(
    r"\\N\{[^}]*\}|\\.|(?P<head>\[\^?\]?)(?P<set>(?:\\.|[^\]\\])*)\]|(?P<brace>\{)(?!\d*,?\d*\})", re.DOTALL
)
"""What is escaped, a set, and a brace that repeats nothing."""
_OTHER_IN_SETS = re.compile(r"\\N\{[^}]*\}|\\.|\[", re.DOTALL)
_WORD = r"\w\p{N}"
"""To Python ``²``, ``½`` and ``①`` are signs of words, too."""
_PYTHON_MEANING = {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    r"\B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_PYTHON_MEANING_IN_SETS = {r"\w": _WORD, "[": r"\["}


def _to_python_meaning(found: re.Match[str]) -> str:
    """What ``regex`` would read otherwise: inexact matches (``{e<=1}``), classes (``[[:alpha:]]``)."""
    if found["brace"]:
        return r"\{"
    if found["head"]:
        inside = _OTHER_IN_SETS.sub(lambda each: _PYTHON_MEANING_IN_SETS.get(each[0], each[0]), found["set"])
        return f"{found['head']}{inside}]"
    return _PYTHON_MEANING.get(found[0], found[0])


def _parse(pattern: str) -> Any:
    """What Python reads, if it can be searched; ``None`` where an inner module of Python's has changed."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of syntax that may come: [[a]]
        re.compile(pattern)
        try:
            parsed = import_module("re._parser").parse(pattern)
        except (ImportError, AttributeError):
            return None
    if _unrolled_size(parsed) > _MOST_PARTS:
        raise OverflowError("it repeats too much; write smaller numbers")
    return parsed


_MOST_PARTS = 100_000


def _unrolled_size(parsed: Any) -> int:
    """Of how many parts an expression is when ``regex`` has written out what is repeated at least: it takes
    300 bytes for each, so that ``a{9999999}`` would need gigabytes."""
    return sum(
        max(operand[0] if str(kind).endswith("REPEAT") else 1, 1)
        * max(sum(map(_unrolled_size, _inner_patterns(operand, type(parsed)))), 1)
        for kind, operand in parsed
    )


# ── expressions that check nothing ───────────────────────────────────────────────────────────────


def pattern_mistake(pattern: str) -> str:
    """What is wrong with an expression that an author wrote, as the rest of a sentence about it, and a remedy
    behind a semicolon; empty if nothing is."""
    try:
        _compile(nfc(pattern), 0)
        parsed = _parse(nfc(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    if parsed is not None and _matches_everything(parsed):
        return f"/{pattern}/ matches every text, so it checks nothing; write what must be there"
    return ""


def answer_pattern_mistake(pattern: str) -> str:
    """``misuse`` of what is searched in answers: an empty one fails anyway, so asking for a letter, whichever
    it is, checks nothing either."""
    if (wrong := pattern_mistake(pattern)) or not _asks_for_any_character(_parse(pattern) or ()):
        return wrong
    return f"/{pattern}/ matches every answer, so it checks nothing; write what must be there"


def _asks_for_any_character(parsed: Any) -> bool:
    """Whether an expression asks for one character, whichever it is (``.+``, ``(.|x)``), and nothing else."""
    asking = [part for part in parsed if not _matches_empty(str(part[0]), part[1], type(parsed), "ANYWHERE")]
    return len(asking) == 1 and _is_any_character(str(asking[0][0]), asking[0][1], type(parsed))


def _is_any_character(kind: str, operand: Any, parsed: type) -> bool:
    inner = [_asks_for_any_character(part) for part in _inner_patterns(operand, parsed)]
    if kind == "IN":
        named = {str(each or what) for what, each in operand}
        return "NEGATE" not in named and any(kinds <= named for kinds in _ALL_KINDS)
    if kind.endswith("REPEAT"):
        return operand[0] == 1 and all(inner)
    return kind == "ANY" or (kind in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP") and any(inner))


_ALL_KINDS = (
    {"CATEGORY_NOT_SPACE"},  # nothing but white space is not an answer
    *({f"CATEGORY_{kind}", f"CATEGORY_NOT_{kind}"} for kind in ("WORD", "DIGIT")),
)


def _matches_everything(parsed: Any) -> bool:
    """Whether it is found at the beginning of every text, or at the end of each: it asks for no letter."""
    return any(_asks_nothing(parsed, at) for at in ("AT_BEGINNING", "AT_END"))


def _asks_nothing(parsed: Any, at: str) -> bool:
    return all(_matches_empty(str(op), operand, type(parsed), at) for op, operand in parsed)


def _matches_empty(kind: str, operand: Any, parsed: type, at: str) -> bool:
    """Whether a part of an expression is surely found, as nothing, at the beginning (or end) of a text. What
    is looked at ahead of the beginning or behind the end is never there; what else is there, nobody knows."""
    inner = [_asks_nothing(part, at) for part in _inner_patterns(operand, parsed)]
    if kind == "AT":
        return str(operand).startswith(at)
    if kind.endswith("REPEAT"):
        return operand[0] == 0 or all(inner)
    if kind == "BRANCH":
        return any(inner)
    if kind == "ASSERT_NOT":
        is_outside = (at, operand[0]) in (("AT_END", 1), ("AT_BEGINNING", -1))
        return is_outside and not any(inner)
    return kind in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT") and all(inner)


def _inner_patterns(operand: Any, kind: type) -> list[Any]:
    """The expressions within the operand of a parsed one."""
    if isinstance(operand, kind):
        return [operand]
    parts = operand if isinstance(operand, tuple | list) else ()
    return [found for part in parts for found in _inner_patterns(part, kind)]
