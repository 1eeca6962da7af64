"""Run a local language model (a GGUF file) with llama.cpp on this machine, inside this process (the extra
``local``)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

from agenteval.adapters.models.openai_chat import OpenAiChat
from agenteval.adapters.models.resources import ModelResources
from agenteval.core.config import LOCAL_CONTEXT_TOKENS, ModelConfig
from agenteval.core.errors import AuthorError, InfrastructureError, Place, Problem
from agenteval.core.protocols import ModelReply, ModelRequest

MAX_TEXT = 300
"""The maximum number of characters of a string in an answer. Small models use all the space that is
available, one token at a time."""
_OPTIONS: Mapping[str, int] = {"n_ctx": LOCAL_CONTEXT_TOKENS, "threads": 1}


class LocalModel:
    """A ``ChatModel`` that runs a GGUF file with llama.cpp.

    The first call starts a server, once per process for each combination of a file and its options. The
    server answers one call at a time. ``extra`` may contain ``n_ctx`` and ``threads`` (default 1); all other
    keys of ``extra`` are sent with each request. The constructor raises ``AuthorError`` if the file or the
    package is missing."""

    def __init__(self, config: ModelConfig, shared: ModelResources, *, root: Path) -> None:
        self._config = config
        self._path = _model_file(config, root)
        self._options = {name: _option(config, name) for name in _OPTIONS}
        pool = shared.pool.narrowed(str(self._path), 1)
        self._shared = shared._replace(pool=pool, limits=None)  # nobody else calls the server
        self._chat: OpenAiChat | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return an answer as ``OpenAiChat`` does. Raise ``InfrastructureError`` also if llama.cpp cannot
        load the file."""
        if self._chat is None:
            start = partial(_server, self._path, self._options["n_ctx"], self._options["threads"])
            address = await anyio.to_thread.run_sync(start)
            extra = {name: value for name, value in self._config.extra.items() if name not in _OPTIONS}
            update = {"base_url": f"{address}/v1", "api_key_env": None, "extra": extra}
            config = self._config.model_copy(update=update)
            self._chat = self._chat or OpenAiChat(config, self._shared, environ={}, max_text=MAX_TEXT)
        return await self._chat.complete(request)

    async def aclose(self) -> None:
        """Close the connections. Calling this twice is safe.

        The server keeps running until the process ends, because reloading a model costs more than keeping it
        loaded."""
        if self._chat:
            await self._chat.aclose()


def _model_file(config: ModelConfig, root: Path) -> Path:
    path = root / config.name
    if not path.is_file():
        raise AuthorError(Problem("there is no such model file", f"model: {config.model}", Place(str(path))))
    if find_spec("xllamacpp") is None:
        what = f"the model {config.model} needs llama.cpp, which is not installed"
        raise AuthorError(
            Problem(what, "pip install 'agenteval-runner[local]', or: pip install --no-deps xllamacpp")
        )
    return path.resolve()


def _option(config: ModelConfig, name: str) -> int:
    value = config.extra.get(name, _OPTIONS[name])
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise AuthorError(
            Problem(f"`{name}` of the model {config.model} must be a whole number greater than 0")
        )
    return value


_servers: dict[tuple[Path, int, int], Any] = {}
_starting = threading.Lock()


def _server(path: Path, n_ctx: int, threads: int) -> str:
    """Return the address of the server for a model file. This call blocks while the model is being loaded."""
    with _starting:
        key = (path, n_ctx, threads)
        if key not in _servers:
            _servers[key] = _start(path, n_ctx, threads)
        address: str = _servers[key].listening_address
    return address


def _start(path: Path, n_ctx: int, threads: int) -> Any:
    try:
        llama: Any = import_module("xllamacpp")
    except ImportError as exc:
        raise AuthorError(Problem(f"xllamacpp cannot be imported: {exc}", "reinstall it")) from exc
    params = llama.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port = ["127.0.0.1"], 0  # a free port, for this machine only
    params.n_ctx, params.n_parallel = n_ctx, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity, params.warmup, params.ui = -1, False, False
    try:
        return llama.Server(params)
    except (RuntimeError, ValueError) as exc:
        raise InfrastructureError(f"{path}: llama.cpp cannot load the model: {exc}") from exc


def make(config: ModelConfig, *, shared: ModelResources, root: Path, **_more: Any) -> LocalModel:
    return LocalModel(config, shared, root=root)
