"""Hook ``httpx`` and ``httpx2``, through which model clients send requests, by patching ``Client.send`` and
``AsyncClient.send``."""

from __future__ import annotations

from typing import Any

from ..model_requests import patch_clients


def install(module: Any) -> None:
    """Patch ``module``, which is ``httpx`` or ``httpx2``."""
    patch_clients(module.Client, module.AsyncClient)
