"""Who has agenteval's own models: each provider is one object, and this is the only table of them.

It stands here, below the rooms that ask models, since a configuration is checked by it, and prices and
secrets are found by it; what sends the requests is named as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agenteval.core.registry import Registry

AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
AD_TOKEN = "AZURE_OPENAI_AD_TOKEN"
"""Azure's variables, by the names that the ``openai`` package gave them."""


@dataclass(frozen=True)
class Provider:
    """What stands before the slash of ``PROVIDER/MODEL``."""

    base_url: str = ""
    """Where its models are; empty: the author says it, or they are at no address."""
    keys: tuple[str, ...] = ()
    """The variables that may hold the key; empty if none is needed."""
    budget: str = "max_tokens"
    """The name of the limit of output tokens that is tried first."""
    base_url_env: str = ""
    """The variable that may hold another address."""
    needs_base_url: bool = False
    """Whether ``base_url`` has to be written."""
    sdk_only: bool = False
    """Whether requests are sent by the ``openai`` package, whatever ``client`` says."""
    in_process: bool = False
    """Whether its models are in this process: they cost nothing, and there is no ``client``."""
    make: Callable[..., Any] | str = "agenteval.adapters.models.openai_chat:make"
    """``make(config, role=, shared=, environ=, root=, jitter=) -> ChatModel``; of other packages
    ``make(config, role=, pool=, environ=, root=)``, with ``options=`` where there is a model of them. As
    text: ``module:function``."""
    options: type[BaseModel] | None = None
    """What an author may write under ``extra``; ``None``: anything, it is merged into each request."""


def _of_plugin(found: Any) -> Provider:
    """A provider, or the function alone that makes its models."""
    if isinstance(found, Provider):
        return found
    if not callable(found):
        raise TypeError("it is not a function make(config, …), and not a Provider")
    return Provider(make=found)


PROVIDERS: Registry[Provider] = Registry(
    "provider",
    "agenteval.models",
    {
        "openai": Provider(
            "https://api.openai.com/v1",
            ("OPENAI_API_KEY",),
            "max_completion_tokens",
            base_url_env="OPENAI_BASE_URL",
        ),
        "azure": Provider(
            keys=(AD_TOKEN, "AZURE_OPENAI_API_KEY"),
            budget="max_completion_tokens",
            base_url_env=AZURE_ENDPOINT,
            sdk_only=True,
        ),
        "anthropic": Provider("https://api.anthropic.com/v1/", ("ANTHROPIC_API_KEY",)),
        "google": Provider(
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        ),
        "ollama": Provider("http://localhost:11434/v1"),
        "openai-compatible": Provider(needs_base_url=True),
        "local": Provider(in_process=True, make="agenteval.adapters.models.local_model:make"),
        "scripted": Provider(in_process=True, make="agenteval.adapters.models.scripted_model:make"),
    },
    _of_plugin,
)
