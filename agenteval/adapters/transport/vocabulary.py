"""Download tiktoken's vocabulary, if requested, to the path where tiktoken looks for it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio

from agenteval.adapters.transport.http_faults import SEND_ERRORS, fault_detail
from agenteval.adapters.transport.http_session import HttpSession
from agenteval.core import tokens
from agenteval.core.errors import AuthorError, InfrastructureError, Problem

_DEADLINE_S = 60.0


async def fetch_vocabulary() -> Path:
    """Download the vocabulary and return its path.

    Raise ``AuthorError`` if tiktoken's cache is disabled, and ``InfrastructureError`` if the download fails.
    """
    path = tokens.vocabulary_path()
    if path is None:
        what = "tiktoken stores no vocabulary, because TIKTOKEN_CACHE_DIR is empty"
        raise AuthorError(Problem(what, "set it to a folder, or unset it"))
    try:
        with anyio.fail_after(_DEADLINE_S):
            data = await _fetched()
        if not tokens.is_vocabulary(data):
            raise InfrastructureError(f"{tokens.VOCABULARY} sent something other than the vocabulary")
        _keep(path, data)
    except (*SEND_ERRORS, TimeoutError, OSError) as exc:
        why = fault_detail(exc) or type(exc).__name__
        raise InfrastructureError(f"tiktoken's vocabulary cannot be downloaded: {why}") from exc
    return path


async def _fetched() -> bytes:
    session = HttpSession()
    try:
        reply = await session.exchange("GET", tokens.VOCABULARY, headers={}, content=None)
    finally:
        await session.aclose()
    if not reply.is_success:
        raise InfrastructureError(f"{tokens.VOCABULARY} answered with HTTP status {reply.status}")
    return reply.content


def _keep(path: Path, data: bytes) -> None:
    """Write the file atomically, because other processes may read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
