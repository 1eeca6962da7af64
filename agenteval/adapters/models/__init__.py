"""The language models that agenteval itself uses: for the simulated user, the judges (LLM-as-a-judge) and
deduplication.

``make_model`` creates a ``ChatModel`` from a configuration entry. A provider's module is imported when its
first model is created, because importing the ``openai`` package alone takes half a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agenteval.adapters.models.resources import ModelResources
from agenteval.core.config import ModelConfig
from agenteval.core.protocols import ChatModel
from agenteval.core.providers import PROVIDERS
from agenteval.core.registry import load_target

__all__ = ["ModelResources", "make_model"]


def make_model(
    config: ModelConfig,
    *,
    role: str,
    shared: ModelResources,
    environ: Mapping[str, str],
    root: Path,
    jitter: Callable[[], float] | None = None,
) -> ChatModel:
    """Create the language model configured in ``config`` for ``role`` (``user``, ``judge`` or ``dedup``).

    Paths of model files are relative to ``root``; ``jitter`` (0 to 1) spreads out retries. Raise
    ``AuthorError`` for any problem that can be detected before a call."""
    provider = PROVIDERS.get(config.provider)
    if config.provider in PROVIDERS.built_in:
        make: Callable[..., ChatModel] = load_target(str(provider.make))
        return make(config, role=role, shared=shared, environ=environ, root=root, jitter=jitter)
    options = {"options": provider.options.model_validate(config.extra)} if provider.options else {}
    make = load_target(provider.make) if isinstance(provider.make, str) else provider.make
    made: ChatModel = make(config, role=role, pool=shared.pool, environ=environ, root=root, **options)
    return made
