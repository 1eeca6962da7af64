"""Secrets of this process, for as long as a test needs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agenteval.files import redaction


@contextmanager
def known_secrets(*secrets: str) -> Iterator[None]:
    """Register the secrets, and afterwards those that were registered before."""
    store = redaction._store
    before = store.secrets, store.mask
    redaction.register_secrets(secrets)
    try:
        yield
    finally:
        store.secrets, store.mask = before
