"""Resolve the base URL and the API key for a provider's models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit, urlunsplit

from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.providers import AZURE_ENDPOINT, PROVIDERS, Provider
from agenteval.files.redaction import SECRET_HEADER, provider_keys, redact_url

API_VERSION = "OPENAI_API_VERSION"
"""The environment variable for Azure's API version, named as in the ``openai`` package."""


class Endpoint(NamedTuple):
    """The address of a model and the API key for that address.

    For Azure OpenAI, ``url`` is the URL of the resource, with the API version in the query string; the
    ``openai`` package builds the rest of the URL. If there is no key for Azure, ``azure-identity`` obtains
    tokens."""

    url: str
    """The URL to which requests are sent."""
    shown: str
    """The URL without credentials or a query string."""
    key: str
    """The API key, or an empty string if no key is sent."""
    key_name: str
    """The environment variable that the key was read from."""
    budget: str
    """See ``Provider``."""


def resolve_endpoint(config: ModelConfig, environ: Mapping[str, str]) -> Endpoint:
    """Resolve a model's endpoint: its base URL and API key. Raise ``AuthorError`` for a missing key or a
    malformed URL."""
    provider = PROVIDERS.get(config.provider)
    base_url = config.base_url or base_url_override(config, environ) or provider.base_url
    if config.provider == "azure":
        key_name, key, url = _azure(base_url, config, environ)
    else:
        key_name, key = _key(config, provider, environ)
        url = _chat_url(base_url, config)
    return Endpoint(url, redact_url(url), key, key_name, provider.budget)


def base_url_override(config: ModelConfig, environ: Mapping[str, str]) -> str:
    """Return the base URL set in the environment if the configuration does not set one."""
    provider = PROVIDERS.shipped.get(config.provider)
    if config.base_url or provider is None:
        return ""
    return environ.get(provider.base_url_env, "").strip()


def _key(config: ModelConfig, provider: Provider, environ: Mapping[str, str]) -> tuple[str, str]:
    names = (config.api_key_env,) if config.api_key_env else provider.keys
    found = _known_key(names, environ)
    if found or not names:
        return found or ("", "")
    missing = Problem(
        f"the model {config.model} requires a key, but {' or '.join(names)} is not set",
        f"set {names[0]} in the environment; without a model, run with --no-judge",
    )
    raise AuthorError(missing)


def _known_key(names: Iterable[str], environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name of the first environment variable that is set, and the key that it contains."""
    for name in names:
        key = environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise AuthorError(
                Problem(f"{name} contains characters that cannot occur in a key", "copy the key again")
            )
        if key:
            return name, key
    return None


def _azure(base_url: str, config: ModelConfig, environ: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the key's environment variable, the key, and the URL. Report all missing settings together."""
    problems = []
    if not base_url:
        remedy = f"set {AZURE_ENDPOINT} or `base_url`, for example https://NAME.openai.azure.com"
        problems.append(Problem(f"the model {config.model} requires a resource endpoint", remedy))
    parts = _parts(base_url or "https://endpoint", config)
    # The portal shows a deployment's full address; the newer API's documentation, one that ends in /v1.
    path = re.sub(r"/openai/(deployments/.*|v1/?)$", "", parts.path).rstrip("/")
    version = dict(parse_qsl(parts.query)).get("api-version") or environ.get(API_VERSION, "").strip()
    if not version:
        remedy = f"set {API_VERSION}, for example 2024-10-21, or end `base_url` with ?api-version=2024-10-21"
        problems.append(Problem(f"the model {config.model} requires an API version", remedy))
    names = (config.api_key_env,) if config.api_key_env else PROVIDERS.shipped["azure"].keys
    found = _known_key(names, environ)
    if found is None and (config.api_key_env or not is_installed("azure.identity")):
        what = f"the model {config.model} requires a key, but {names[-1]} is not set"
        remedy = f"set {names[-1]} in the environment; to sign in with Entra ID: pip install azure-identity"
        problems.append(Problem(what, remedy))
    if problems:
        raise AuthorError(*problems)
    url = urlunsplit((parts.scheme, parts.netloc, path, f"api-version={quote(version)}", ""))
    return (*(found or ("", "")), url)


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # its parent package is not installed
        return False


def keys_of(models: Iterable[ModelConfig], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return all secrets that grant access: the keys of the configured models, and those of all known
    providers.

    Keys are sent in headers, which are never stored, but a server or an agent may echo a key."""
    names = [model.api_key_env for model in models if model.api_key_env]
    found = [environ.get(name, "").strip() for name in names]
    for name in filter(None, (provider.base_url_env for provider in PROVIDERS.shipped.values())):
        parts = urlsplit(environ.get(name, ""))
        queried = (value for key, value in parse_qsl(parts.query) if key != "api-version")
        found += [parts.password or "", *queried]
    # The ``openai`` package sends this variable's value to OpenAI: one header per line.
    lines = (line.partition(":") for line in environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines())
    found += [value.strip() for name, _, value in lines if SECRET_HEADER.search(name)]
    return tuple(dict.fromkeys(filter(None, (*found, *provider_keys(environ)))))


def _chat_url(base_url: str, config: ModelConfig) -> str:
    parts = _parts(base_url, config)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    # The query stays: some gateways want an api-version there.
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", parts.query, ""))


def _parts(base_url: str, config: ModelConfig) -> SplitResult:
    try:
        parts = urlsplit(base_url.strip())
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        where = "the endpoint" if config.provider == "azure" and not config.base_url else "base_url"
        what = f"{where} of the model {config.model} is not a server URL"
        example = "http://localhost:8000/v1"
        if config.provider == "azure":
            example = "https://NAME.openai.azure.com"
        raise AuthorError(Problem(what, f"use, for example, {example}"))
    return parts
