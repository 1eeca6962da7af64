"""A fast server that plays language models and an agent, and keeps the books of what it was asked.

It runs in a process of its own, so that its CPU is not that of the client that is measured::

    with ModelServer() as server:
        server.reset(latency_s=0.05)
        ... requests to server.model_url and server.agent_url ...
        print(server.tally())

A reply takes ``latency_s`` from the last byte of its request. Models answer with what fits the JSON
Schema in ``response_format``, in other words and with other numbers each time; judges quote what the agent
last said in the record that they were shown, and refer to nothing else. The agent calls a tool, gets its
result and answers. Connections are kept alive; requests on one connection come one at a time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import re
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["model", "agent"]

AGENT_PATH = "/agent/v1/chat/completions"
MODEL_PATH = "/model/v1/chat/completions"
KEPT_BODIES = 200
"""So many of the latest requests to models are kept for ``ModelServer.bodies``."""


@dataclass(frozen=True)
class Settings:
    """``unclear_goals``: no goal is said to be reached, since the call that did it is not known here."""

    latency_s: float = 0.05
    unclear_goals: bool = False


class Tally(NamedTuple):
    """What the server saw since the last ``reset``. Times are seconds: ``elapsed_s`` from the first byte
    of the first request to the last reply, ``served_s`` the mean time that a reply really took (timers
    are late under load), ``cpu_s`` the server's own CPU. ``occupancy``: the mean number of model calls in
    flight in each twentieth of the time."""

    model_calls: int
    agent_calls: int
    most_model_calls: int
    most_agent_calls: int
    elapsed_s: float
    served_s: float
    cpu_s: float
    roles: Mapping[str, int]
    occupancy: Sequence[float] = ()

    @property
    def calls(self) -> int:
        return self.model_calls + self.agent_calls

    def efficiency(self, *, latency_s: float, concurrency: int) -> float:
        """Of the time that the model calls alone need when ``concurrency`` are always in flight, to the
        time that everything took."""
        return self.model_calls * latency_s / concurrency / self.elapsed_s


# ── what is answered ─────────────────────────────────────────────────────────────────────────────

_TEXT = (
    "the order was found and its state was told in full and without anything that is not in the result "
    "of the tool that was called for it in this turn before the answer to the user"
)
_WORDS = _TEXT.split()
_ANSWER = re.compile(r"^Answer \d+: [^\n({]+", re.MULTILINE)
"""The beginning of what the agent of this server answers, as a record has it."""
_NO_REFERENCE = {
    **dict.fromkeys(("call", "other_call")),
    **dict.fromkeys(("source", "rule", "fact", "parameter", "tool", "value", "kind"), ""),
}
"""What a judge who has found no failure refers to."""


class Author:
    """Writes replies, no two alike. The same requests in the same order get the same replies."""

    def __init__(self, *, unclear_goals: bool = False) -> None:
        self._unclear_goals = unclear_goals
        self._texts = itertools.count(1)

    def model_says(self, body: Json) -> str:
        form = body.get("response_format") or {}
        schema = form.get("json_schema", {}).get("schema", {})
        if not schema:
            return self._words()
        reply = self._fitting(schema, "")
        if "evidence" in reply:
            reply |= {key: value for key, value in _NO_REFERENCE.items() if key in reply}
            reply["evidence"] = self._quotation(body["messages"])
        return json.dumps(reply)

    def _quotation(self, messages: Sequence[Json]) -> str:
        """What the agent said last, word for word; the first half of it in every other reply."""
        said = [found for message in messages for found in _ANSWER.findall(message["content"])]
        if not said:
            return self._words()
        words = said[-1].split()
        return " ".join(words[: len(words) // 2 + 2] if next(self._texts) % 2 else words)

    def agent_says(self, body: Json) -> Json:
        """A tool call, and after its result the answer."""
        last = body["messages"][-1]
        number = next(self._texts)
        if last["role"] == "tool":
            return {"role": "assistant", "content": f"Answer {number}: {self._words()} {last['content']}"}
        call = {"name": "look_up", "arguments": json.dumps({"topic": f"topic {number}"})}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
        }

    def _words(self) -> str:
        number = next(self._texts)
        start, length = number * 7 % len(_WORDS), 8 + number * 5 % 24
        words = [_WORDS[(start + place) % len(_WORDS)] for place in range(length)]
        return f"{' '.join(words)} ({number})"

    def _fitting(self, schema: Json, name: str) -> Any:
        """A value that fits the schema: labels and goals tell of no failure, and nobody is done before the
        turns are over."""
        if "enum" in schema:
            return self._label(schema["enum"])
        if "anyOf" in schema:
            return self._fitting(schema["anyOf"][0], name)
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                return {key: self._fitting(value, key) for key, value in properties.items()}
            case "array":
                return []
            case "boolean":
                return False
            case "integer" | "number":
                low, high = schema.get("minimum", 0), schema.get("maximum", 5)
                return high if high - low == 1 else low + next(self._texts) % (high - low + 1)
            case _:
                return self._words()

    def _label(self, labels: list[str]) -> str:
        if self._unclear_goals and "reached" in labels:
            return "not clear"
        return "no failure" if "no failure" in labels else labels[0]


def role_of(body: Json) -> str:
    """Who asks, by the shape of the answer that is asked for."""
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    keys = schema.get("properties", {}).keys()
    roles = {"message": "user", "issues": "dedup", "explains": "review"}
    return next((role for key, role in roles.items() if key in keys), "judge" if keys else "other")


def completion(message: Json, *, sent: int, finish_reason: str = "stop") -> bytes:
    """A chat completion as it travels; tokens are a quarter of the bytes."""
    said = len(message.get("content") or "") + 80 * len(message.get("tool_calls", ()))
    usage = {"prompt_tokens": sent // 4, "completion_tokens": said // 4, "total_tokens": (sent + said) // 4}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "model": "mock", "choices": [choice]}
    return json.dumps({**reply, "usage": usage}).encode()


# ── the server ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Books:
    settings: Settings = field(default_factory=Settings)
    author: Author = field(default_factory=Author)
    calls: dict[str, int] = field(default_factory=lambda: {"model": 0, "agent": 0})
    in_flight: dict[str, int] = field(default_factory=lambda: {"model": 0, "agent": 0})
    most: dict[str, int] = field(default_factory=lambda: {"model": 0, "agent": 0})
    roles: dict[str, int] = field(default_factory=dict)
    first: float | None = None
    last: float = 0.0
    served_s: float = 0.0
    bodies: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEPT_BODIES))
    changes: list[tuple[float, int]] = field(default_factory=list)
    cpu_from: float = field(default_factory=time.process_time)

    def opens(self, kind: Kind, role: str, arrived: float) -> None:
        self.first = arrived if self.first is None else self.first
        self.calls[kind] += 1
        self.in_flight[kind] += 1
        self.most[kind] = max(self.most[kind], self.in_flight[kind])
        self.roles[role] = self.roles.get(role, 0) + 1
        self.changes.append((time.perf_counter(), self.in_flight["model"]))

    def closes(self, kind: Kind, arrived: float) -> None:
        self.in_flight[kind] -= 1
        self.last = time.perf_counter()
        self.served_s += self.last - arrived
        self.changes.append((self.last, self.in_flight["model"]))

    def occupancy(self, parts: int = 20) -> list[float]:
        if not self.changes:
            return []
        start, width = self.changes[0][0], (self.last - self.changes[0][0]) / parts
        sums = [0.0] * parts
        for (since, level), (until, _) in itertools.pairwise(self.changes):
            while since < until:
                part = min(parts - 1, int((since - start) / width))
                end = until if part == parts - 1 else min(until, start + (part + 1) * width)
                if end <= since:
                    break
                sums[part] += level * (end - since) / width
                since = end
        return sums

    def tally(self) -> Tally:
        done = max(1, sum(self.calls.values()))
        return Tally(
            model_calls=self.calls["model"],
            agent_calls=self.calls["agent"],
            most_model_calls=self.most["model"],
            most_agent_calls=self.most["agent"],
            elapsed_s=self.last - (self.first or 0.0),
            served_s=self.served_s / done,
            cpu_s=time.process_time() - self.cpu_from,
            roles=dict(self.roles),
            occupancy=self.occupancy(),
        )


class _Connection(asyncio.Protocol):
    """As much of HTTP/1.1 as clients need. ``books`` hands out the books of the current measurement."""

    def __init__(self, books: Callable[[], _Books], reset: Callable[[Json], None]) -> None:
        self._books = books
        self._reset = reset
        self._data = bytearray()
        self._arrived = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._data:
            self._arrived = time.perf_counter()
        self._data += data
        head, blank, _ = self._data.partition(b"\r\n\r\n")
        if not blank:
            return
        start, *lines = bytes(head).split(b"\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in lines)
        length = int(fields.get(b"content-length", 0))
        if len(self._data) >= len(head) + 4 + length:
            body = bytes(self._data[len(head) + 4 :])
            self._data.clear()
            self._answer(start.split(b" ")[1].decode(), body)

    def _answer(self, path: str, body: bytes) -> None:
        books = self._books()
        if path == "/tally":
            self._write(json.dumps(books.tally()._asdict()).encode())
        elif path == "/bodies":
            self._write(json.dumps([body.decode() for body in books.bodies]).encode())
        elif path == "/reset":
            self._reset(json.loads(body))
            self._write(b"{}")
        elif path in (MODEL_PATH, AGENT_PATH):
            if path == MODEL_PATH:
                books.bodies.append(body)
            self._converse("agent" if path == AGENT_PATH else "model", json.loads(body), len(body))
        else:
            self._write(b'{"error": {"message": "no such path"}}', b"404 Not Found")

    def _converse(self, kind: Kind, asked: Json, size: int) -> None:
        books, arrived = self._books(), self._arrived
        books.opens(kind, "agent" if kind == "agent" else role_of(asked), arrived)
        if kind == "agent":
            message = books.author.agent_says(asked)
        else:
            message = {"role": "assistant", "content": books.author.model_says(asked)}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        reply = completion(message, sent=size, finish_reason=reason)
        # From the arrival on: what the server itself took for the reply is part of the latency.
        loop = asyncio.get_running_loop()
        left = books.settings.latency_s - (time.perf_counter() - arrived)
        loop.call_later(max(0.0, left), self._finish, books, kind, arrived, reply)

    def _finish(self, books: _Books, kind: Kind, arrived: float, reply: bytes) -> None:
        books.closes(kind, arrived)
        self._write(reply)

    def _write(self, body: bytes, status: bytes = b"200 OK") -> None:
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % (status, len(body)) + body)


def _serve(ports: Any) -> None:
    books = _Books()

    def reset(settings: Json) -> None:
        nonlocal books
        new = Settings(**settings)
        books = _Books(settings=new, author=Author(unclear_goals=new.unclear_goals))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Connection(lambda: books, reset), "127.0.0.1", 0, backlog=1024
        )
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


class ModelServer:
    """The server as its user meets it: a context manager around the other process."""

    def __enter__(self) -> ModelServer:
        ports, child = multiprocessing.Pipe(duplex=False)
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_serve, args=(child,), daemon=True)
        self._process.start()
        self._address = f"http://127.0.0.1:{ports.recv()}"
        self.model_url = self._address + MODEL_PATH.removesuffix("/chat/completions")
        self.agent_url = self._address + AGENT_PATH
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def reset(self, settings: Settings) -> None:
        """Begin new books."""
        self._ask("/reset", json.dumps(asdict(settings)).encode())

    def tally(self) -> Tally:
        return Tally(**self._ask("/tally", None))

    def bodies(self) -> list[str]:
        """The latest requests to models, as they were sent."""
        return list(self._ask("/bodies", None))

    def _ask(self, path: str, body: bytes | None) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._address + path, data=body, timeout=10) as reply:
            return json.load(reply)
