"""httpx and httpx2, by which the clients of models send: ``Client.send``, ``AsyncClient.send``."""

from __future__ import annotations

from typing import Any

from ..model_requests import patch_clients


def install(module: Any) -> None:
    """``module``: ``httpx``, ``httpx2``."""
    patch_clients(module.Client, module.AsyncClient)
