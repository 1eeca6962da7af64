"""Download tiktoken's vocabulary, if requested, to the path where tiktoken looks for it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio
import httpx2

from agenteval.adapters.transport.bodies import TooLargeError, encoding_of, read_body
from agenteval.adapters.transport.connections import certificates
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
    except (httpx2.HTTPError, TooLargeError, TimeoutError, OSError) as exc:
        why = str(exc) or type(exc).__name__
        raise InfrastructureError(f"tiktoken's vocabulary cannot be downloaded: {why}") from exc
    return path


async def _fetched() -> bytes:
    async with (
        httpx2.AsyncClient(verify=certificates(), follow_redirects=False) as client,
        client.stream("GET", tokens.VOCABULARY) as response,
    ):
        response.raise_for_status()
        return await read_body(response.aiter_raw(), encoding_of(response.headers.raw))


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
