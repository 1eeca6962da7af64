"""The model providers (LLM providers) of agenteval's own models. This is the only table of providers.

The table is in this low-level package because configurations are checked against it, and because prices and
secrets depend on it. The functions that send requests are specified as strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from agenteval.core.registry import Registry

AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
AD_TOKEN = "AZURE_OPENAI_AD_TOKEN"
"""Environment variables for Azure, as named by the ``openai`` package."""


@dataclass(frozen=True)
class Provider:
    """A provider, as named before the slash in ``PROVIDER/MODEL``."""

    base_url: str = ""
    """The base URL of the provider's API. Empty if the author sets it or if there is none."""
    keys: tuple[str, ...] = ()
    """The environment variables that may contain the API key. Empty if no key is required."""
    budget: str = "max_tokens"
    """The parameter that is tried first for limiting the number of output tokens."""
    base_url_env: str = ""
    """The environment variable that may contain a different base URL."""
    needs_base_url: bool = False
    """True if ``base_url`` is required."""
    sdk: Literal["on_request", "by_default", "always"] = "on_request"
    """When the ``openai`` package sends the requests: if ``client`` asks for it, unless ``client`` is set
    otherwise, or always."""
    in_process: bool = False
    """True if the provider's models run in this process or in one that it starts: they cost nothing and have
    no ``client``."""
    make: Callable[..., Any] | str = "agenteval.adapters.models.openai_chat:make"
    """The function ``make(config, role=, shared=, environ=, root=, jitter=) -> ChatModel`` or, in other
    packages, ``make(config, role=, pool=, environ=, root=)``, with ``options=`` if the provider has an
    options model. As a string, it is written ``module:function``."""
    options: type[BaseModel] | None = None
    """The model for the keys that an author may write under ``extra``. ``None`` means that any keys are
    allowed; they are merged into each request."""


def _of_plugin(found: Any) -> Provider:
    """Return a plugin's provider. A plain function becomes the ``make`` of a new provider."""
    if isinstance(found, Provider):
        return found
    if not callable(found):
        raise TypeError("it is neither a `Provider` nor a function `make(config, …)`")
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
            sdk="by_default",
        ),
        "azure": Provider(
            keys=(AD_TOKEN, "AZURE_OPENAI_API_KEY"),
            budget="max_completion_tokens",
            base_url_env=AZURE_ENDPOINT,
            sdk="always",
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
