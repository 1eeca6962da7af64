"""Describe exceptions raised by the author's code, and decide whether the agent, the infrastructure or the
author is at fault."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .client_errors import is_final, is_infrastructure, is_timeout
from .reply_limit import TOO_LARGE_TEXT, is_too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

_AGENTEVAL_ROOT = str(Path(__file__).parents[2])
_STDLIB = str(Path(threading.__file__).parent)
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11


class QuitError(RuntimeError):
    """Raised when the author's code would end the program, for example by calling ``sys.exit``. The original
    exception is the ``__cause__``."""


class CancelledUserCodeError(RuntimeError):
    """Raised when the author's code is cancelled, but not by agenteval."""


@contextlib.contextmanager
def contain_exits() -> Iterator[None]:
    """Convert exceptions in the author's code that would end the run to ``QuitError``. The user's Ctrl-C and
    cancellations by agenteval pass through."""
    try:
        yield
    except (Exception, KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise QuitError(type(error).__name__) from error


def describe_error(error: BaseException) -> str:
    """Format an exception as ``ValueError: text (agent.py:12, in answer)``, with the innermost location
    outside agenteval and libraries."""
    if isinstance(error, QuitError) and error.__cause__:
        return describe_error(error.__cause__)
    try:
        text = str(error).strip() or "no message"
    except Exception:
        text = "unreadable error message"
    if is_too_large(text):
        text = f"error message {TOO_LARGE_TEXT}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [
        f for f in frames if "site-packages" not in f.filename and not is_internal_file(f.filename)
    ]
    user_frames = [f for f in user_frames if not f.filename.startswith("<")] or user_frames
    where = (
        f" ({Path(user_frames[-1].filename).name}:{user_frames[-1].lineno}, in {user_frames[-1].name})"
        if user_frames
        else ""
    )
    return f"{type(error).__name__}: {text}{where}"


def is_internal_file(filename: str) -> bool:
    """Return whether a file belongs to agenteval or the standard library."""
    return filename.startswith((_AGENTEVAL_ROOT, _STDLIB))


class ErrorClassification(NamedTuple):
    """The description of an exception, along with the party at fault."""

    text: str
    kind: str
    """``exception`` or ``timeout`` if the agent is at fault, ``infrastructure`` if the agent is not at fault,
    or ``author`` if the author is at fault."""
    is_final: bool = False
    """The value of ``is_final`` in ``core.errors.InfrastructureError``, for infrastructure failures."""


def classify_error(error: BaseException) -> ErrorClassification:
    """Classify an exception in the agent's code.

    The agent is at fault unless the exception reports an infrastructure failure, which would affect any
    agent: a problem with the network, with access, or with a provider that is down. An exception that was
    raised ``from`` an infrastructure failure also counts as one. An exception that was raised without
    ``from`` while such a failure was being handled does not."""
    causes = list(_leaf_errors(error))
    if kind := getattr(causes[0], "agenteval_kind", ""):  # agenteval's own exceptions declare it
        # Final, because a retry would hide that calls were missed.
        return ErrorClassification(str(causes[0]), kind, is_final=kind == "infrastructure")
    if causes and all(map(_is_infrastructure_fault, causes)):
        return ErrorClassification(describe_error(causes[0]), "infrastructure", any(map(_is_final, causes)))
    timed_out = all(map(is_timeout, causes))
    return ErrorClassification(describe_error(causes[0]), "timeout" if timed_out else "exception")


_PARTIAL = "agenteval_partial"
"""The attribute of an exception that contains the part of the turn before the exception. Framework adapters
set this attribute."""


def get_partial_reply(error: BaseException) -> Any:
    """Return the part of the turn that the agent completed before the exception, in any form that an answer
    may have.

    The partial reply is attached to the exception or to one of its causes. Return ``None`` if there is no
    partial reply."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        for each in _leaf_errors(found):
            if (partial := getattr(each, _PARTIAL, None)) is not None:
                return partial
        found = found.__cause__ or found.__context__
    return None


def _is_infrastructure_fault(error: BaseException) -> bool:
    return any(all(map(is_infrastructure, _leaf_errors(each))) for each in _cause_chain(error))


def _is_final(error: BaseException) -> bool:
    return any(is_final(leaf) for each in _cause_chain(error) for leaf in _leaf_errors(each))


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, _GROUP):
        for inner in error.exceptions:
            yield from _leaf_errors(inner)
    elif isinstance(error, QuitError) and error.__cause__:
        yield from _leaf_errors(error.__cause__)
    else:
        yield error


def _cause_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its explicit causes (``raise … from``)."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__
