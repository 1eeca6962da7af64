"""CPU that one model call costs this process, by client library; the server is another process.

::

    python benchmarks/model_calls.py [CALLS]

The prompt and the reply have the size of a judge's. Waiting costs nothing here: only the CPU time of
this process is counted, import and connection left out by a warm-up. The lines "aiohttp" need that
package and the lines "openai" that one; agenteval's model client uses neither.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

IN_FLIGHT = 20
ROUNDS = 12
CHOSEN = "httpx2, bare"
SYSTEM = "You judge one answer of an assistant. " * 20
PROMPT = "user: Where is my order ORD-42?\nassistant: It has shipped.\n" * 80
ANSWER = {"evidence": "It has shipped.", "reason": "It answers the question that was asked. " * 5, "score": 4}
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "mock",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": json.dumps(ANSWER), "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 1200,
        "completion_tokens": 60,
        "total_tokens": 1260,
        "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    },
}

Call = Callable[[], Awaitable[Any]]


# ── the server ───────────────────────────────────────────────────────────────────────────────────


class _Server(asyncio.Protocol):
    """As little HTTP as a client can live with, so that the server is never the slow part."""

    body = json.dumps(REPLY).encode()
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.data = bytearray()

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, blank, _ = self.data.partition(b"\r\n\r\n")
        if not blank:
            return
        fields = dict(line.lower().split(b": ", 1) for line in bytes(head).split(b"\r\n")[1:])
        if len(self.data) >= len(head) + 4 + int(fields.get(b"content-length", 0)):
            self.data.clear()
            self.transport.write(self.answer)


def _serve(ports: Any) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


# ── the clients ──────────────────────────────────────────────────────────────────────────────────


def _body() -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    return {"model": "mock", "messages": messages}


@asynccontextmanager
async def bare_httpx2(base_url: str) -> AsyncIterator[Call]:
    import httpx2

    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    async with httpx2.AsyncClient(headers=headers) as client:

        async def call() -> None:
            reply = await client.post(f"{base_url}/chat/completions", content=json.dumps(_body()).encode())
            json.loads(reply.content)["choices"][0]["message"]["content"]

        yield call


@asynccontextmanager
async def bare_aiohttp(base_url: str) -> AsyncIterator[Call]:
    import aiohttp

    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    async with aiohttp.ClientSession(headers=headers) as client:

        async def call() -> None:
            url = f"{base_url}/chat/completions"
            async with client.post(url, data=json.dumps(_body()).encode()) as reply:
                json.loads(await reply.read())["choices"][0]["message"]["content"]

        yield call


@asynccontextmanager
async def _sdk(base_url: str, *, aiohttp: bool, models: bool) -> AsyncIterator[Call]:
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    http = DefaultAioHttpClient() if aiohttp else None
    async with AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0, http_client=http) as client:

        async def with_models() -> None:
            reply: Any = await client.chat.completions.create(**_body())
            json.dumps(reply.choices[0].message.content)

        async def without() -> None:
            reply = await client.post("/chat/completions", cast_to=httpx2.Response, body=_body())
            json.loads(reply.content)["choices"][0]["message"]["content"]

        yield with_models if models else without


@asynccontextmanager
async def transport(base_url: str) -> AsyncIterator[Call]:
    from agenteval.adapters.transport.client import CallRules, Transport

    http = Transport()

    async def call() -> None:
        url, headers = f"{base_url}/chat/completions", {"authorization": "Bearer k"}
        reply = await http.exchange(url, _body(), CallRules(60), headers=headers)
        json.loads(reply.text)["choices"][0]["message"]["content"]

    yield call
    await http.aclose()


@asynccontextmanager
async def openai_chat(base_url: str) -> AsyncIterator[Call]:
    """All that agenteval does for a call: schema, adaptions, retries, pool, reading, checking."""
    from pydantic import BaseModel

    from agenteval.adapters.models import Shared
    from agenteval.adapters.models.capabilities import Capabilities
    from agenteval.adapters.models.openai_chat import OpenAiChat
    from agenteval.adapters.models.pool import ModelPool
    from agenteval.core.config import ModelConfig
    from agenteval.core.protocols import ModelRequest

    class Verdict(BaseModel):
        evidence: str
        reason: str
        score: int

    model = OpenAiChat(
        ModelConfig(model="openai-compatible/mock", base_url=base_url, api_key_env="KEY"),
        Shared(ModelPool(IN_FLIGHT), Capabilities(), print),
        environ={"KEY": "k"},
    )
    request = ModelRequest("judge", SYSTEM, PROMPT, Verdict)
    yield lambda: model.complete(request)
    await model.aclose()


CLIENTS: dict[str, Callable[[str], Any]] = {
    CHOSEN: bare_httpx2,
    "openai": lambda url: _sdk(url, aiohttp=False, models=True),
    "openai without response models": lambda url: _sdk(url, aiohttp=False, models=False),
    "openai on aiohttp": lambda url: _sdk(url, aiohttp=True, models=True),
    "openai on aiohttp without models": lambda url: _sdk(url, aiohttp=True, models=False),
    "aiohttp, bare": bare_aiohttp,
    "agenteval's transport": transport,
    "agenteval's model client": openai_chat,
}


# ── measuring ────────────────────────────────────────────────────────────────────────────────────


async def _many(call: Call, calls: int) -> None:
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


async def _measure(names: list[str], base_url: str, calls: int) -> dict[str, float]:
    """Milliseconds of CPU per call. The clients take turns, and each one's best round counts: what else
    the machine does then weighs on all alike."""
    best = dict.fromkeys(names, float("inf"))
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(CLIENTS[name](base_url)) for name in names}
        for call in clients.values():
            await _many(call, 5 * IN_FLIGHT)
        for _ in range(ROUNDS):
            for name, call in clients.items():
                started = time.process_time()
                await _many(call, calls)
                best[name] = min(best[name], (time.process_time() - started) * 1000 / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("calls", type=int, nargs="?", default=150)
    calls = parser.parse_args().calls
    ports, child = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(child,), daemon=True)
    server.start()
    absent = [name for name in ("openai", "aiohttp") if importlib.util.find_spec(name) is None]
    names = [name for name in CLIENTS if not any(word in name for word in absent)]
    best = asyncio.run(_measure(names, f"http://127.0.0.1:{ports.recv()}/v1", calls))
    server.terminate()
    print("milliseconds of CPU per call")
    for name, cost in best.items():
        print(f"{name:36} {cost:6.3f} {cost / best[CHOSEN]:8.2f} x")


if __name__ == "__main__":
    main()
