"""Searching with expressions of the author's in texts that anybody wrote.

Some expressions take for ever on some texts: ``(a+)+$`` on forty letters and another, ``a.*b.*c`` on a long
answer. Python searches with its lock held, so that no deadline would end it, nor would any other sample go
on. So there is one rule for every expression and every length: a search that is sure to end soon (``steps``)
is made here, and any other in a process of its own, which may use ``LIMIT_S`` of processor time: how busy
the machine is decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from threading import Lock, Timer
from typing import Any, NamedTuple, TypeVar

from agenteval.core.folding import nfc

T = TypeVar("T")
_IS_HURRIED: ContextVar[bool] = ContextVar("agenteval_hurried", default=False)

LIMIT_S = 1.0
"""Of processor time; where that cannot be bounded, of the clock."""
_PATIENCE = 60
"""How many times longer a search may wait for its processor time."""


class EndlessSearchError(Exception):
    """A search took more than ``LIMIT_S``."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"/{pattern}/ took longer than {LIMIT_S:g} s")


def is_in(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether the expression is found in the text, both composed (NFC). Raises ``EndlessSearchError``."""
    pattern, text = nfc(pattern), nfc(text)
    if steps(pattern, len(text)) <= _FEW_STEPS:
        return re.search(pattern, text, flags) is not None
    if _IS_HURRIED.get():
        raise _MayTakeLongError
    return _searched(pattern, text, int(flags))


def misuse(pattern: str) -> str:
    """What is wrong with an expression that an author wrote, as the rest of a sentence about it, and a remedy
    behind a semicolon; empty if nothing is."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    if _is_in_everything(pattern):
        return f"/{pattern}/ matches every text, so it checks nothing; write what must be there"
    return ""


def misuse_for_answers(pattern: str) -> str:
    """``misuse`` of what is searched in answers: an empty one fails anyway, so asking for a letter, whichever
    it is, checks nothing either."""
    if told := misuse(pattern):
        return told
    try:
        checks_nothing = _takes_any(import_module("re._parser").parse(pattern))
    except Exception:  # an inner module of Python's, which may change
        return ""
    remedy = "write what must be there"
    return f"/{pattern}/ matches every answer, so it checks nothing; {remedy}" if checks_nothing else ""


def _takes_any(parsed: Any) -> bool:
    """Whether an expression asks for one character, whichever it is (``.+``, ``(.|x)``), and nothing else."""
    asking = [part for part in parsed if not _holds(str(part[0]), part[1], type(parsed), "ANYWHERE")]
    return len(asking) == 1 and _is_any(str(asking[0][0]), asking[0][1], type(parsed))


def _is_any(kind: str, operand: Any, parsed: type) -> bool:
    inner = [_takes_any(part) for part in _inner(operand, parsed)]
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


def _is_in_everything(pattern: str) -> bool:
    """Whether it is found at the beginning of every text, or at the end of each: it asks for no letter."""
    try:
        parsed = import_module("re._parser").parse(pattern)
        return any(_asks_nothing(parsed, at) for at in ("AT_BEGINNING", "AT_END"))
    except Exception:  # an inner module of Python's, which may change
        return re.search(pattern, "") is not None


def _asks_nothing(parsed: Any, at: str) -> bool:
    return all(_holds(str(op), operand, type(parsed), at) for op, operand in parsed)


def _holds(kind: str, operand: Any, parsed: type, at: str) -> bool:
    """Whether a part of an expression is surely found, as nothing, at the beginning (or end) of a text. What
    is looked at ahead of the beginning or behind the end is never there; what else is there, nobody knows."""
    inner = [_asks_nothing(part, at) for part in _inner(operand, parsed)]
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


async def without_waiting(function: Callable[..., T], *args: Any) -> T:
    """What ``function`` returns; in a thread if it has to wait for a search, so that nobody else does."""
    token = _IS_HURRIED.set(True)
    try:
        return function(*args)
    except _MayTakeLongError:
        pass
    finally:
        _IS_HURRIED.reset(token)
    return await asyncio.to_thread(function, *args)


class _MayTakeLongError(Exception):
    """What is searched may take long, and who asks cannot wait."""


def steps(pattern: str, length: int) -> float:
    """More steps than this a search takes in no text of that length: those of each place to begin at. Python
    goes on from there in every way that there is, so repetitions one after the other multiply, and one within
    another is a power."""
    return (length + 1) * _attempt(pattern, length.bit_length())


@lru_cache(maxsize=4096)
def _attempt(pattern: str, bits: int) -> float:
    """By the order of magnitude of the text's length, so that the next text of its kind is known."""
    try:
        return _cost(import_module("re._parser").parse(pattern), 1 << bits).steps
    except Exception:  # an inner module of Python's, which may change: better slow than stuck
        return math.inf


class _Cost(NamedTuple):
    """Of finding a part of an expression at one place: in how many ways it may be, and in how many steps all
    of them have been tried."""

    ways: float
    steps: float


def _cost(parsed: Any, length: int) -> _Cost:
    ways, steps = 1.0, 0.0
    for op, operand in parsed:
        inner = [_cost(part, length) for part in _inner(operand, type(parsed))]
        part = _cost_of(str(op), operand, inner, length)
        ways, steps = ways * part.ways, steps + ways * part.steps
    return _Cost(ways, steps)


def _cost_of(kind: str, operand: Any, inner: list[_Cost], length: int) -> _Cost:
    tried = sum(part.steps for part in inner)
    if kind.endswith("REPEAT"):
        least, most = min(operand[0], length), min(operand[1], length)
        once = max(inner[0].ways, 1)
        ways = most - least + 1.0 if once == 1 else _power(once, most)
        steps = max(tried, 1) * most * (1 if once == 1 else ways)
        return _Cost(1 if kind.startswith("POSSESSIVE") else ways, steps)
    if kind.startswith("GROUPREF"):
        return _Cost(max(len(inner), 1), length + tried)
    if kind.startswith(("ASSERT", "ATOMIC")):
        return _Cost(1, 1 + tried)
    if kind == "BRANCH":
        return _Cost(sum(part.ways for part in inner), 1 + tried)
    return _Cost(math.prod(part.ways for part in inner), 1 + tried)


def _power(base: float, exponent: float) -> float:
    return base**exponent if exponent * math.log2(base) < _MOST_BITS else math.inf


_MOST_BITS = 64
_FEW_STEPS = 1 << 24
"""Some tenths of a second."""


def _inner(operand: Any, kind: type) -> list[Any]:
    """The expressions within the operand of a parsed one."""
    if isinstance(operand, kind):
        return [operand]
    parts = operand if isinstance(operand, tuple | list) else ()
    return [found for part in parts for found in _inner(part, kind)]


_SEARCHES = """
import json, re, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
bound = getattr(signal, "setitimer", lambda *_: None)
print("ready", flush=True)
for line in sys.stdin:
    seconds, *search = json.loads(line)
    bound(getattr(signal, "ITIMER_VIRTUAL", 0), seconds)  # its signal ends this process
    print(re.search(*search) is not None, flush=True)
    bound(getattr(signal, "ITIMER_VIRTUAL", 0), 0)
"""
_IS_BOUND = hasattr(signal, "setitimer")
_TURN = Lock()


def _searched(pattern: str, text: str, flags: int) -> bool:
    with _TURN:
        try:
            process = _process(os.getpid())
        except OSError:  # no process can be had
            return re.search(pattern, text, flags) is not None
        timer = Timer(LIMIT_S * (_PATIENCE if _IS_BOUND else 1), _end, [process])
        timer.start()
        answer = _asked(process, json.dumps([LIMIT_S, pattern, text, flags]))
        timer.cancel()
        timer.join()  # so that it ends no later search
        if not answer:
            _end(process)
    if not answer:
        raise EndlessSearchError(pattern)
    return answer == "True"


def _end(process: Any) -> None:
    _process.cache_clear()
    process.kill()
    process.wait()


def _asked(process: Any, question: str) -> str:
    try:
        process.stdin.write(f"{question}\n")
        process.stdin.flush()
        return str(process.stdout.readline()).strip()
    except OSError:
        return ""


@lru_cache(maxsize=1)
def _process(_of: int) -> Any:
    """The process that searches for this one; it ends with it."""
    command = [sys.executable, "-I", "-S", "-c", _SEARCHES]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    process.stdout.readline()
    return process
