"""Estimates the number of tokens in a string if no provider reports it (token counting). All such numbers are
marked as estimates.

tiktoken downloads its vocabulary on first use, without a timeout. agenteval makes no network call that was
not requested, so it uses tiktoken only if the complete vocabulary is on disk (downloaded by ``agenteval
doctor --fetch-vocabulary``). Otherwise, four bytes of UTF-8 count as one token."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path

VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


def count_tokens(text: str) -> int:
    """Count tokens in ``text`` with tiktoken's ``o200k_base``. If tiktoken cannot be used, return a quarter
    of the number of bytes, rounded up."""
    return _counter()(text) if text else 0


@cache
def _counter() -> Callable[[str], int]:
    if is_vocabulary_available():
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        return lambda text: len(encoding.encode(text, disallowed_special=()))
    return lambda text: (len(text.encode("utf-8", "replace")) + 3) // 4


def is_vocabulary_available() -> bool:
    """Check whether tiktoken would find its vocabulary file with the required contents, and would therefore
    not download it."""
    path = vocabulary_path()
    try:
        return path is not None and is_vocabulary(path.read_bytes())
    except OSError:
        return False


def is_vocabulary(data: bytes) -> bool:
    return sha256(data).hexdigest() == _SHA256


def vocabulary_path() -> Path | None:
    """Return the path at which tiktoken stores its vocabulary, or ``None`` if tiktoken is configured not to
    store it."""
    import tempfile

    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    return Path(folder) / sha1(VOCABULARY.encode()).hexdigest() if folder else None
