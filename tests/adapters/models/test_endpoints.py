"""Where a model is, and with which key: by the configuration, else the environment, else its provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.adapters.models import endpoints
from agenteval.adapters.models.endpoints import (
    Endpoint,
    base_url_override,
    is_installed,
    keys_of,
    resolve_endpoint,
)
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError

KEY = "sk-0123456789"
OPENAI = "https://api.openai.com/v1/chat/completions"


def config(model: str = "openai/x", **more: Any) -> ModelConfig:
    return ModelConfig(model=model, **more)


def resolve(model: str, environ: Mapping[str, str], **more: Any) -> Endpoint:
    return resolve_endpoint(config(model, **more), environ)


def problems(model: str, environ: Mapping[str, str], **more: Any) -> list[str]:
    with pytest.raises(AuthorError) as error:
        resolve(model, environ, **more)
    assert all(problem.remedy for problem in error.value.problems)
    return [f"{problem.what} {problem.remedy}" for problem in error.value.problems]


def test_all_of_an_endpoint() -> None:
    found = resolve("openai/x", {"OPENAI_API_KEY": KEY})
    assert found == Endpoint(OPENAI, OPENAI, KEY, "OPENAI_API_KEY", "max_completion_tokens")


@pytest.mark.parametrize(
    ("model", "environ", "url", "budget"),
    [
        ("anthropic/x", {"ANTHROPIC_API_KEY": KEY}, "https://api.anthropic.com/v1/chat/completions", ""),
        (
            "google/x",
            {"GEMINI_API_KEY": KEY},
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "",
        ),
        ("ollama/x", {}, "http://localhost:11434/v1/chat/completions", ""),
        ("openai/x", {"OPENAI_API_KEY": KEY}, OPENAI, "max_completion_tokens"),
    ],
)
def test_each_provider_has_its_address(model: str, environ: dict[str, str], url: str, budget: str) -> None:
    found = resolve(model, environ)
    assert (found.url, found.budget) == (url, budget or "max_tokens")
    assert (found.key, found.key_name) == (KEY if environ else "", next(iter(environ), ""))


# ── the address ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("base_url", "url", "shown"),
    [
        ("http://h", "http://h/chat/completions", ""),
        ("http://h/", "http://h/chat/completions", ""),
        (" http://h/v1// ", "http://h/v1/chat/completions", ""),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", ""),
        ("http://h/v1/chat/completions/", "http://h/v1/chat/completions", ""),
        ("https://h:8443/v1?api-version=1#x", "https://h:8443/v1/chat/completions?api-version=1", "?"),
        ("http://u:p@h/v1", "http://u:p@h/v1/chat/completions", "u:p@"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1/chat/completions", ""),
    ],
)
def test_a_base_url_may_be_written_in_several_ways(base_url: str, url: str, shown: str) -> None:
    found = resolve("openai-compatible/x", {}, base_url=base_url)
    assert found.url == url
    assert found.shown == url.partition("?")[0].replace("u:p@", "")
    assert (found.key, found.key_name) == ("", "")


@pytest.mark.parametrize(
    "base_url",
    ["h", "h:8000/v1", "ftp://h", "http://", "http://:80", "http://h:0", "http://h:x", "http://[h"],
)
def test_what_is_no_server(base_url: str) -> None:
    (text,) = problems("openai-compatible/x", {}, base_url=base_url)
    assert "base_url" in text
    assert "openai-compatible/x" in text
    assert "http://localhost:8000/v1" in text


@pytest.mark.parametrize(
    ("base_url", "environ", "override"),
    [
        (None, {}, ""),
        (None, {"OPENAI_BASE_URL": ""}, ""),
        (None, {"OPENAI_BASE_URL": " http://h/v1 "}, "http://h/v1"),
        ("http://mine", {"OPENAI_BASE_URL": "http://h/v1"}, ""),
    ],
)
def test_the_environment_counts_where_the_configuration_is_silent(
    base_url: str | None, environ: dict[str, str], override: str
) -> None:
    assert base_url_override(config(base_url=base_url), environ) == override
    url = resolve("openai/x", {**environ, "OPENAI_API_KEY": KEY}, base_url=base_url).url
    assert url == f"{base_url or override or 'https://api.openai.com/v1'}/chat/completions"


@pytest.mark.parametrize("model", ["ollama/x", "google/x", "unknown/x", "scripted/x"])
def test_other_providers_have_no_such_variable(model: str) -> None:
    environ = {"OPENAI_BASE_URL": "http://h", "AZURE_OPENAI_ENDPOINT": "http://h"}
    assert base_url_override(config(model), environ) == ""


# ── the key ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "more", "environ", "name", "key"),
    [
        ("openai/x", {}, {"OPENAI_API_KEY": f" {KEY}\n"}, "OPENAI_API_KEY", KEY),
        ("google/x", {}, {"GEMINI_API_KEY": "a", "GOOGLE_GENERATIVE_AI_API_KEY": "b"}, "GEMINI_API_KEY", "a"),
        (
            "google/x",
            {},
            {"GEMINI_API_KEY": " ", "GOOGLE_GENERATIVE_AI_API_KEY": "b"},
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "b",
        ),
        ("openai/x", {"api_key_env": "MINE"}, {"MINE": "m", "OPENAI_API_KEY": "o"}, "MINE", "m"),
        ("ollama/x", {"api_key_env": "MINE"}, {"MINE": "m"}, "MINE", "m"),
        ("ollama/x", {}, {"OPENAI_API_KEY": "o"}, "", ""),
    ],
)
def test_the_first_variable_that_is_set(
    model: str, more: dict[str, str], environ: dict[str, str], name: str, key: str
) -> None:
    found = resolve(model, environ, **more)
    assert (found.key_name, found.key) == (name, key)


@pytest.mark.parametrize(
    ("model", "more", "environ", "names"),
    [
        ("openai/x", {}, {}, ["OPENAI_API_KEY"]),
        ("openai/x", {}, {"OPENAI_API_KEY": " "}, ["OPENAI_API_KEY"]),
        ("google/x", {}, {}, ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]),
        ("openai/x", {"api_key_env": "MINE"}, {"OPENAI_API_KEY": KEY}, ["MINE"]),
        ("ollama/x", {"api_key_env": "MINE"}, {}, ["MINE"]),
    ],
)
def test_a_missing_key_is_named(
    model: str, more: dict[str, str], environ: dict[str, str], names: list[str]
) -> None:
    (text,) = problems(model, environ, **more)
    assert all(name in text for name in names)
    assert model in text
    assert "--no-judge" in text


@pytest.mark.parametrize("key", ["sk-ü", "sk\x00key", "sk-a\nb"])
def test_a_key_that_cannot_be_sent_is_not_quoted(key: str) -> None:
    (text,) = problems("openai/x", {"OPENAI_API_KEY": key})
    assert "OPENAI_API_KEY" in text
    assert key not in text


# ── Azure ────────────────────────────────────────────────────────────────────────────────────────

AZURE = {
    "AZURE_OPENAI_ENDPOINT": "https://n.openai.azure.com",
    "OPENAI_API_VERSION": "2024-10-21",
    "AZURE_OPENAI_API_KEY": KEY,
}
RESOURCE = "https://n.openai.azure.com?api-version=2024-10-21"


def test_all_of_an_azure_endpoint() -> None:
    found = resolve("azure/x", AZURE)
    shown = "https://n.openai.azure.com"
    assert found == Endpoint(RESOURCE, shown, KEY, "AZURE_OPENAI_API_KEY", "max_completion_tokens")


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("https://n.openai.azure.com/", RESOURCE),
        ("https://n.openai.azure.com/openai/v1", RESOURCE),
        ("https://n.openai.azure.com/openai/v1/", RESOURCE),
        ("https://n.openai.azure.com/openai/deployments/d/chat/completions", RESOURCE),
        ("https://n.openai.azure.com?api-version=1", "https://n.openai.azure.com?api-version=1"),
        ("https://n.openai.azure.com/openai/deployments/d?api-version=1&a=b",
         "https://n.openai.azure.com?api-version=1"),
        ("https://gateway/azure/", "https://gateway/azure?api-version=2024-10-21"),
        ("https://gateway/openai/v2", "https://gateway/openai/v2?api-version=2024-10-21"),
        ("https://n.openai.azure.com?api-version=", RESOURCE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_config", [False, True])
def test_the_resource_of_each_address(written: str, url: str, in_config: bool) -> None:
    environ = {**AZURE, "AZURE_OPENAI_ENDPOINT": "https://other" if in_config else written}
    assert resolve("azure/x", environ, **({"base_url": written} if in_config else {})).url == url


def test_a_version_is_one_value_of_the_query() -> None:
    environ = {**AZURE, "OPENAI_API_VERSION": " 2024 & more "}
    assert resolve("azure/x", environ).url.endswith("?api-version=2024%20%26%20more")


def test_a_token_counts_instead_of_the_key() -> None:
    found = resolve("azure/x", {**AZURE, "AZURE_OPENAI_AD_TOKEN": "token"})
    assert (found.key_name, found.key) == ("AZURE_OPENAI_AD_TOKEN", "token")
    mine = resolve("azure/x", {**AZURE, "MINE": "m"}, api_key_env="MINE")
    assert (mine.key_name, mine.key) == ("MINE", "m")


@pytest.mark.parametrize("has_identity", [False, True])
def test_everything_that_is_missing_is_reported(has_identity: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "is_installed", lambda name: has_identity and name == "azure.identity")
    found = problems("azure/x", {})
    facts = ["AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY"][: 3 - has_identity]
    assert len(found) == len(facts)
    assert all(fact in text and "azure/x" in text for fact, text in zip(facts, found, strict=True))


def test_without_a_key_tokens_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {name: value for name, value in AZURE.items() if name != "AZURE_OPENAI_API_KEY"}
    monkeypatch.setattr(endpoints, "is_installed", lambda _: False)
    (text,) = problems("azure/x", environ)
    assert "azure-identity" in text
    monkeypatch.setattr(endpoints, "is_installed", lambda _: True)
    found = resolve("azure/x", environ)
    assert (found.key, found.key_name, found.url) == ("", "", RESOURCE)
    (text,) = problems("azure/x", environ, api_key_env="MINE")
    assert "MINE" in text


def test_an_azure_address_that_is_none() -> None:
    (text,) = problems("azure/x", {**AZURE, "AZURE_OPENAI_ENDPOINT": "n.openai.azure.com"})
    assert "base_url" not in text
    assert "https://NAME.openai.azure.com" in text
    (text,) = problems("azure/x", AZURE, base_url="n.openai.azure.com")
    assert "base_url" in text
    assert "https://NAME.openai.azure.com" in text


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("json", True), ("json.decoder", True), ("no_such_thing", False), ("no_such.thing", False)],
)
def test_what_is_installed(name: str, is_there: bool) -> None:
    assert is_installed(name) is is_there


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environ", "keys"),
    [
        ({}, ()),
        ({"OPENAI_API_KEY": " ", "MINE": ""}, ()),
        ({"MINE": " mine ", "OTHER": "other"}, ("mine",)),
        ({"ANTHROPIC_API_KEY": "a", "MINE": "m"}, ("m", "a")),
        ({"OPENAI_API_KEY": "m", "MINE": "m"}, ("m",)),
        ({"OPENAI_BASE_URL": "http://u:pass@h/v1?key=k&api-version=1"}, ("pass", "k")),
        ({"AZURE_OPENAI_ENDPOINT": "https://h?sig=s"}, ("s",)),
        (
            {"OPENAI_CUSTOM_HEADERS": "X-Api-Key: one \nX-Team: two\n\nCookie:\nAuthorization: Bearer a:b"},
            ("one", "Bearer a:b"),
        ),
    ],
)
def test_all_keys_are_secrets(environ: dict[str, str], keys: tuple[str, ...]) -> None:
    models = [config(api_key_env="MINE"), config("google/x"), config(api_key_env="MINE")]
    assert keys_of(models, environ) == keys


def test_without_models_the_providers_keys_are_secrets() -> None:
    assert keys_of([], {"OPENAI_API_KEY": "o", "MINE": "m"}) == ("o",)
