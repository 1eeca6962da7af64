"""The providers of agenteval's own models; this is the only table of them.

It is in this low-level package because configurations are checked against it and because prices and secrets
depend on it; the code that sends requests is named as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agenteval.core.registry import Registry

AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
AD_TOKEN = "AZURE_OPENAI_AD_TOKEN"
"""Variables of Azure, named by the ``openai`` package."""


@dataclass(frozen=True)
class Provider:
    """A provider, named before the slash of ``PROVIDER/MODEL``."""

    base_url: str = ""
    """The address of its models, or an empty string if the author sets it or there is none."""
    keys: tuple[str, ...] = ()
    """The variables that may hold the key; empty if none is needed."""
    budget: str = "max_tokens"
    """The parameter for the limit of output tokens that is tried first."""
    base_url_env: str = ""
    """The variable that may hold another address."""
    needs_base_url: bool = False
    """True if ``base_url`` is required."""
    sdk_only: bool = False
    """True if the ``openai`` package sends the requests, whatever ``client`` says."""
    in_process: bool = False
    """True if its models run in this process: they cost nothing, and there is no ``client``."""
    make: Callable[..., Any] | str = "agenteval.adapters.models.openai_chat:make"
    """``make(config, role=, shared=, environ=, root=, jitter=) -> ChatModel``; in other packages
    ``make(config, role=, pool=, environ=, root=)``, with ``options=`` if the provider has a model of options.
    As text: ``module:function``."""
    options: type[BaseModel] | None = None
    """The model of what an author may write under ``extra``; ``None``: anything, which is merged into each
    request."""


def _of_plugin(found: Any) -> Provider:
    """Return a plugin's provider; a plain function becomes the ``make`` of one."""
    if isinstance(found, Provider):
        return found
    if not callable(found):
        raise TypeError("it is neither a function make(config, …) nor a Provider")
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
