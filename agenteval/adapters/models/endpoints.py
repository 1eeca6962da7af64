"""Where a provider's models are, and the key to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, Problem
from agenteval.files.redact import keys_in, without_query


class Provider(NamedTuple):
    """A provider that speaks OpenAI's chat completions. ``base_url`` is empty if the author gives it;
    ``keys`` are the variables that may hold the key, empty if none is needed. ``budget`` is the name of
    the limit of output tokens that is tried first."""

    base_url: str
    keys: tuple[str, ...] = ()
    budget: str = "max_tokens"


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",), "max_completion_tokens"),
    "anthropic": Provider("https://api.anthropic.com/v1/", ("ANTHROPIC_API_KEY",)),
    "google": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    ),
    "ollama": Provider("http://localhost:11434/v1"),
    "openai-compatible": Provider(""),
    "local": Provider(""),
}


class Endpoint(NamedTuple):
    """``url`` takes the requests; ``shown`` is it without credentials and query. ``key`` is empty if none
    is to be sent, ``key_name`` the variable it came from. ``budget``: see ``Provider``."""

    url: str
    shown: str
    key: str
    key_name: str
    budget: str


def endpoint_of(config: ModelConfig, environ: Mapping[str, str]) -> Endpoint:
    """Raises ``AuthorError`` for a missing key and for a malformed URL."""
    provider = PROVIDERS[config.provider]
    base_url = config.base_url or provider.base_url
    if config.provider == "openai" and not config.base_url:
        base_url = environ.get("OPENAI_BASE_URL", "").strip() or base_url
    key_name, key = _key(config, provider, environ)
    url = _chat_url(base_url, config)
    return Endpoint(url, without_query(url), key, key_name, provider.budget)


def _key(config: ModelConfig, provider: Provider, environ: Mapping[str, str]) -> tuple[str, str]:
    names = (config.api_key_env,) if config.api_key_env else provider.keys
    for name in names:
        key = environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise AuthorError(Problem(f"{name} holds characters that no key has", "copy the key anew"))
        if key:
            return name, key
    if not names:
        return "", ""
    missing = Problem(
        f"the model {config.model} needs a key, and {' and '.join(names)} is not set",
        f"set {names[0]} in the environment; without a model, run with --no-judge",
    )
    raise AuthorError(missing)


def keys_of(models: Iterable[ModelConfig], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every text that opens a door: the models' keys, and those of all known providers. They are sent in
    headers, which nothing keeps; but a server or an agent may say one back."""
    names = [model.api_key_env for model in models if model.api_key_env]
    found = [environ.get(name, "").strip() for name in names]
    parts = urlsplit(environ.get("OPENAI_BASE_URL", ""))
    found += [parts.password or "", *(value for _, value in parse_qsl(parts.query))]
    return tuple(dict.fromkeys(filter(None, (*found, *keys_in(environ)))))


def _chat_url(base_url: str, config: ModelConfig) -> str:
    try:
        parts = urlsplit(base_url.strip())
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        what = f"base_url of the model {config.model} is no URL of a server"
        raise AuthorError(Problem(what, "write for example http://localhost:8000/v1"))
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    # The query stays: some gateways want an api-version there.
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", parts.query, ""))
