"""Run a local language model (a GGUF file) with llama.cpp on this machine, in a separate process (the extra
``local``)."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

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

    The first call starts a server, once for each combination of a file and its options; the first call after
    a crash of the server starts another. The server answers one call at a time. ``extra`` may contain
    ``n_ctx`` and ``threads`` (default 1); all other keys of ``extra`` are sent with each request. The
    constructor raises ``AuthorError`` if the file or the package is missing."""

    def __init__(self, config: ModelConfig, shared: ModelResources, *, root: Path) -> None:
        self._config = config
        self._path = _model_file(config, root)
        self._options = {name: _option(config, name) for name in _OPTIONS}
        pool = shared.pool.narrowed(str(self._path), 1)
        self._shared = shared._replace(pool=pool, limits=None)  # nobody else calls the server
        self._chats: dict[str, OpenAiChat] = {}  # by the server's address

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return an answer as ``OpenAiChat`` does. In addition, raise ``InfrastructureError`` if llama.cpp
        cannot load the file, and ``AuthorError`` if llama.cpp cannot be imported."""
        key = _ServerKey(self._path, **self._options)
        address = await anyio.to_thread.run_sync(_server, key)
        if address not in self._chats:
            extra = {name: value for name, value in self._config.extra.items() if name not in _OPTIONS}
            update = {"base_url": f"{address}/v1", "api_key_env": None, "extra": extra}
            config = self._config.model_copy(update=update)
            self._chats[address] = OpenAiChat(config, self._shared, environ={}, max_text=MAX_TEXT)
        return await self._chats[address].complete(request)

    async def aclose(self) -> None:
        """Close the connections. Calling this twice is safe.

        The server keeps running until the process ends, because reloading a model costs more than keeping it
        loaded."""
        for chat in self._chats.values():
            await chat.aclose()


def _model_file(config: ModelConfig, root: Path) -> Path:
    path = root / config.name
    if not os.path.isfile(path):
        raise AuthorError(Problem("no such model file", f"check `model: {config.model}`", Place(str(path))))
    if find_spec("xllamacpp") is None:
        what = f"the model {config.model} requires llama.cpp, which is not installed"
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


class _ServerKey(NamedTuple):
    path: Path
    n_ctx: int
    threads: int


class _LlamaServer(NamedTuple):
    process: subprocess.Popen[bytes]
    address: str


_servers: dict[_ServerKey, _LlamaServer] = {}
_starting = threading.Lock()


def _server(key: _ServerKey) -> str:
    """Return the address of the server for a model file. Start it if none is running; this blocks while the
    model is being loaded."""
    with _starting:
        if key not in _servers or _servers[key].process.poll() is not None:
            _servers[key] = _start(key)
        return _servers[key].address


def _start(key: _ServerKey) -> _LlamaServer:
    program = Path(__file__).with_name("llama_server.py")
    process = subprocess.Popen(
        [sys.executable, "-P", str(program), *map(str, key)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the run, which then ends the server
    )
    atexit.register(process.kill)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise InfrastructureError(
            f"{key.path}: llama.cpp exited with code {process.wait()} while loading the model"
        )
    answer = json.loads(line)
    if "import_error" in answer:
        raise AuthorError(Problem(f"xllamacpp cannot be imported: {answer['import_error']}", "reinstall it"))
    if "error" in answer:
        raise InfrastructureError(f"{key.path}: llama.cpp cannot load the model: {answer['error']}")
    return _LlamaServer(process, answer["address"])


def make(config: ModelConfig, *, shared: ModelResources, root: Path, **_more: Any) -> LocalModel:
    return LocalModel(config, shared, root=root)
