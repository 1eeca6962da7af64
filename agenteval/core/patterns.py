"""Searches text with an author's regular expressions in bounded time, to prevent catastrophic backtracking
(ReDoS).

Some expressions run almost forever on some texts, such as ``(a|aa)+$`` on forty letters followed by a
different character, or ``a.*b.*c`` on a long answer. ``re`` has no time limit, so the ``regex`` package is
used and limited to ``LIMIT_S`` of processor time. The machine's load therefore does not affect the result. An
expression that Python rejects is a mistake. Syntax that ``regex`` interprets differently is rewritten to have
the same meaning as in Python."""

from __future__ import annotations

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
"""The time limit in seconds of processor time, or of wall-clock time if processor time cannot be measured."""
_BLOCKING_LIMIT_S = 0.02
"""The time in seconds for which a search may block other work."""
_SEARCH_LOCK = Lock()
"""Allows only one long search at a time, because processor time is measured for the entire process."""


class SearchTimeoutError(Exception):
    """Raised when a search takes more than ``LIMIT_S``."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"/{pattern}/ took longer than {LIMIT_S:g} s")


def pattern_matches(pattern: str, text: str, flags: int = 0) -> bool:
    """Check whether the regular expression matches anywhere in the text. The expression and the text are
    first composed (NFC). Raise ``SearchTimeoutError``."""
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
    """Return the result of ``function``. If a search within it takes too long, ``function`` runs in a thread
    so that it does not block the event loop."""
    token = _MUST_NOT_BLOCK.set(True)
    try:
        return function(*args)
    except _SlowSearchError:
        pass
    finally:
        _MUST_NOT_BLOCK.reset(token)
    from asyncio import to_thread  # imported here, because loading scenarios needs no event loop

    return await to_thread(function, *args)


class _SlowSearchError(Exception):
    """Raised when a search takes too long and the caller must not block."""


@lru_cache(maxsize=4096)
def _compile(pattern: str, flags: int) -> Any:
    """Compile an expression. Raise ``re.error``, ``OverflowError`` or ``RecursionError``, as Python does."""
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
"""Matches escapes, character sets, and braces that are not quantifiers."""
_OTHER_IN_SETS = re.compile(r"\\N\{[^}]*\}|\\.|\[", re.DOTALL)
_WORD = r"\w\p{N}"
"""Word characters in a set. As in Python, they include ``²``, ``½`` and ``①``."""
_PYTHON_MEANING = {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    r"\B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_PYTHON_MEANING_IN_SETS = {r"\w": _WORD, "[": r"\["}


def _to_python_meaning(found: re.Match[str]) -> str:
    """Rewrite the syntax that ``regex`` interprets differently: fuzzy matches (``{e<=1}``) and classes
    (``[[:alpha:]]``)."""
    if found["brace"]:
        return r"\{"
    if found["head"]:
        inside = _OTHER_IN_SETS.sub(lambda each: _PYTHON_MEANING_IN_SETS.get(each[0], each[0]), found["set"])
        return f"{found['head']}{inside}]"
    return _PYTHON_MEANING.get(found[0], found[0])


def _parse(pattern: str) -> Any:
    """Return Python's parse tree, or ``None`` if Python's internal module has changed. Raise
    ``OverflowError`` if the expression is too large to be used in a search."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # about future syntax: [[a]]
        re.compile(pattern)
        try:
            parsed = import_module("re._parser").parse(pattern)
        except (ImportError, AttributeError):
            return None
    if _unrolled_size(parsed) > _MOST_PARTS:
        raise OverflowError("the repetition is too large; use smaller counts")
    return parsed


_MOST_PARTS = 100_000


def _unrolled_size(parsed: Any) -> int:
    """Return the number of parts in an expression after ``regex`` has expanded minimum repetitions. Each part
    takes 300 bytes, so ``a{9999999}`` would require gigabytes."""
    return sum(
        max(operand[0] if str(kind).endswith("REPEAT") else 1, 1)
        * max(sum(map(_unrolled_size, _inner_patterns(operand, type(parsed)))), 1)
        for kind, operand in parsed
    )


# ── expressions that check nothing ───────────────────────────────────────────────────────────────


def pattern_mistake(pattern: str) -> str:
    """Describe the mistake in an author's regular expression. The description is the end of a sentence, with
    the remedy after a semicolon. Return an empty string if there is no mistake."""
    try:
        _compile(nfc(pattern), 0)
        parsed = _parse(nfc(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a valid regular expression: {error}"
    if parsed is not None and _matches_everything(parsed):
        return f"/{pattern}/ matches any text, so it checks nothing; specify what must be present"
    return ""


def answer_pattern_mistake(pattern: str) -> str:
    """Describe the mistake in an expression that is searched for in answers. An empty answer fails anyway, so
    an expression that only requires an arbitrary character checks nothing either."""
    if (wrong := pattern_mistake(pattern)) or not _asks_for_any_character(_parse(pattern) or ()):
        return wrong
    return f"/{pattern}/ matches any answer, so it checks nothing; specify what must be present"


def _asks_for_any_character(parsed: Any) -> bool:
    """Check whether an expression requires one arbitrary character (``.+``, ``(.|x)``) and nothing else."""
    asking = [part for part in parsed if not _matches_empty(str(part[0]), part[1], type(parsed), "ANYWHERE")]
    return len(asking) == 1 and _is_any_character(str(asking[0][0]), asking[0][1], type(parsed))


def _is_any_character(kind: str, operand: Any, parsed: type) -> bool:
    inner = [_asks_for_any_character(part) for part in _inner_patterns(operand, parsed)]
    if kind == "IN":
        kinds_of_set = {str(each or what) for what, each in operand}
        return "NEGATE" not in kinds_of_set and any(kinds <= kinds_of_set for kinds in _ALL_KINDS)
    if kind.endswith("REPEAT"):
        return operand[0] == 1 and all(inner)
    return kind == "ANY" or (kind in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP") and any(inner))


_ALL_KINDS = (
    {"CATEGORY_NOT_SPACE"},  # white space alone is not an answer
    *({f"CATEGORY_{kind}", f"CATEGORY_NOT_{kind}"} for kind in ("WORD", "DIGIT")),
)


def _matches_everything(parsed: Any) -> bool:
    """Check whether an expression matches at the beginning or at the end of every text, because it does not
    require a character."""
    return any(_asks_nothing(parsed, at) for at in ("AT_BEGINNING", "AT_END"))


def _asks_nothing(parsed: Any, at: str) -> bool:
    return all(_matches_empty(str(op), operand, type(parsed), at) for op, operand in parsed)


def _matches_empty(kind: str, operand: Any, parsed: type, at: str) -> bool:
    """Check whether a part of an expression always matches the empty string at the beginning (or end) of a
    string. A lookbehind at the beginning or a lookahead at the end never matches; the text on the other side
    is unknown."""
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
    """Return the expressions nested in the operand of a parsed expression."""
    if isinstance(operand, kind):
        return [operand]
    parts = operand if isinstance(operand, tuple | list) else ()
    return [found for part in parts for found in _inner_patterns(part, kind)]
