"""Run llama.cpp behind OpenAI's API: ``python -P llama_server.py MODEL.gguf N_CTX THREADS``.

This is a separate program so that neither a crash in native code nor a thread that is still computing when
the interpreter exits can determine how a run exits. It imports nothing from the package. It prints one line
of JSON with the key ``address``, ``error`` or ``import_error``, and runs until its standard input is closed,
regardless of how its parent ends.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any, NoReturn


def main() -> NoReturn:
    """Serve until the parent has ended."""
    try:
        server = _start(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except (ImportError, RuntimeError, ValueError) as exc:
        key = "import_error" if isinstance(exc, ImportError) else "error"
        print(json.dumps({key: str(exc)}), flush=True)
        os._exit(1)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # the destructor of a server that still computes waits, or crashes


def _start(path: str, n_ctx: int, threads: int) -> Any:
    llama: Any = import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = path
    params.hostnames, params.port = ["127.0.0.1"], 0  # a free port, for this machine only
    params.n_ctx, params.n_parallel = n_ctx, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity, params.warmup, params.ui = -1, False, False
    return llama.Server(params)


if __name__ == "__main__":
    main()
