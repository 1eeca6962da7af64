"""``python llama_server.py MODEL.gguf``: llama.cpp behind OpenAI's API on a free port. It prints its
address when it is ready, and lives until its standard input is closed."""

from __future__ import annotations

import os
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel = 8192, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(2, os.cpu_count() or 1)
params.verbosity, params.warmup, params.ui = -1, False, False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
