"""The providers of agenteval's own models, and plugins that add one."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.providers import PROVIDERS, Provider
from agenteval.core.registry import load_target


def make(config: Any) -> Any:
    return config


def test_what_a_plugin_may_be() -> None:
    own = Provider("http://x")
    assert PROVIDERS.read(own) is own
    assert PROVIDERS.read(make) == Provider(make=make)
    for wrong in ("agenteval", {"base_url": "x"}, None):
        with pytest.raises(TypeError):
            PROVIDERS.read(wrong)


@pytest.mark.parametrize(
    "name", ["openai", "azure", "anthropic", "google", "ollama", "openai-compatible", "local", "scripted"]
)
def test_each_provider_can_be_made(name: str) -> None:
    provider = PROVIDERS.get(name)
    assert isinstance(provider.make, str)
    assert callable(load_target(provider.make))
    assert provider.base_url.startswith("https://") is bool(provider.keys and name != "azure")
    assert provider.in_process is (name in ("local", "scripted"))
    assert provider.needs_base_url is (name == "openai-compatible")
    assert provider.sdk == {"azure": "always", "openai": "by_default"}.get(name, "on_request")
    completion = name in ("openai", "azure")
    assert provider.budget == ("max_completion_tokens" if completion else "max_tokens")


def test_where_keys_and_addresses_come_from() -> None:
    assert {name: PROVIDERS.get(name).keys for name in PROVIDERS if PROVIDERS.get(name).keys} == {
        "openai": ("OPENAI_API_KEY",),
        "azure": ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY"),
        "anthropic": ("ANTHROPIC_API_KEY",),
        "google": ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    }
    named = {name: PROVIDERS.get(name).base_url_env for name in PROVIDERS}
    assert {name: variable for name, variable in named.items() if variable} == {
        "openai": "OPENAI_BASE_URL",
        "azure": "AZURE_OPENAI_ENDPOINT",
    }
