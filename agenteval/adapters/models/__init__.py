"""agenteval's own language models: the simulated user, the judges, de-duplication.

``make_model`` turns a configuration entry into a ``ChatModel``. The modules behind it are imported when
a model of their kind is made: the ``openai`` package alone takes half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

from agenteval.adapters.models.shared import Shared
from agenteval.core.config import PROVIDERS, ModelConfig
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.protocols import ChatModel

__all__ = ["Shared", "make_model"]


def make_model(
    config: ModelConfig,
    *,
    role: str,
    shared: Shared,
    environ: Mapping[str, str],
    root: Path,
    jitter: Callable[[], float] | None = None,
) -> ChatModel:
    """The model that ``config`` names, for ``role`` (user, judge or dedup).

    ``root`` is the folder that paths of model files start at; ``jitter`` (0 to 1) spreads retries. Raises
    ``AuthorError`` for what can be known to be wrong before a call.
    """
    match config.provider:
        case "scripted":
            from agenteval.adapters.models.scripted import ScriptedModel

            return ScriptedModel(config.name, root=root)
        case "local":
            from agenteval.adapters.models.local import LocalModel

            return LocalModel(config, shared, root=root)
        case provider if provider in PROVIDERS:
            from agenteval.adapters.models.openai_chat import RETRY, OpenAiChat

            retry = replace(RETRY, jitter=jitter) if jitter else RETRY
            return OpenAiChat(config, shared, environ=environ, retry=retry)
    for entry in entry_points(group="agenteval.models"):
        if entry.name == config.provider:
            plugin: ChatModel = entry.load()(config, role=role, pool=shared.pool, environ=environ, root=root)
            return plugin
    what = f"no provider is named '{config.provider}' (models.{role}: {config.model})"
    raise AuthorError(Problem(what, did_you_mean(config.provider, PROVIDERS)))
