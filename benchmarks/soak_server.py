"""A server of models and of an agent that fails a share of its calls, in all the ways in which servers do.

It runs in a process of its own and keeps the books of what it was asked::

    with FaultyServer() as server:
        server.begin(Trouble(rate=0.2, seed=1))
        ... requests to server.model_url and server.agent_url ...
        books = server.books()

What is said depends on nothing but the question, so that a run with faults can be compared with one
without. Whether a call fails, and how, depends on the seed, the question and how often it was asked before.
The agent fails only in ways after which a request may be sent again: it was surely not carried out.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from random import Random
from typing import Any, NamedTuple

from soak_answers import Json, agent_says, completion, model_says, question_of, ticket_of

MODEL_LATENCY_S = 0.02
AGENT_LATENCY_S = 0.01
BETWEEN_OUTAGES = 250
"""Answers of the agent from one outage to the next."""
OUTAGE_S = 0.2
_FAREWELLS = 25

MODEL_FAULTS = {
    "429, asks to wait": 4,
    "429, says no time": 1,
    "500": 3,
    "503": 2,
    "503, asks to wait": 2,
    "reset before the reply": 3,
    "reset within the reply": 3,
    "closed within the reply": 2,
    "truncated JSON": 3,
    "hangs": 1,
    "garbage": 2,
    "no HTTP": 1,
    "error with status 200": 1,
    "cut-off answer": 2,
    "empty answer": 2,
    "answer that is no JSON": 2,
}
"""How often each is, to the others."""
AGENT_FAULTS = {"429, asks to wait": 3, "429, says no time": 1, "503, asks to wait": 2}
REASKED = frozenset(("cut-off answer", "empty answer", "answer that is no JSON"))
"""Whole replies of no use: the question is put once more, in other words; no request failed."""


@dataclass(frozen=True)
class Trouble:
    """``rate``: the share of calls that fail."""

    rate: float = 0.0
    seed: int = 0


class Books(NamedTuple):
    """What the server saw since ``begin``. ``faults`` and ``mended`` are by who and what ("model 500"): a
    fault is mended when the same question was answered later. ``answered``: how often each question was;
    ``tickets``: the same for each turn of each sample at the agent."""

    calls: dict[str, int]
    faults: dict[str, int]
    mended: dict[str, int]
    answered: dict[str, int]
    tickets: dict[str, int]
    in_flight: dict[str, int]
    most: dict[str, int]
    outages: int


@dataclass
class _Open:
    """The books as they are written."""

    trouble: Trouble = field(default_factory=Trouble)
    calls: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    unmended: dict[str, list[str]] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    tickets: Counter[str] = field(default_factory=Counter)
    in_flight: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    outages: int = 0

    def opens(self, who: str) -> None:
        self.calls[who] += 1
        self.in_flight[who] += 1
        self.most[who] = max(self.most[who], self.in_flight[who])

    def draw(self, who: str, question: str) -> tuple[str, Random]:
        """The fault of a call, or none; and chance for its details."""
        self.asked[question] += 1
        chance = Random(f"{self.trouble.seed}/{question}/{self.asked[question]}")
        if chance.random() >= self.trouble.rate:
            return "", chance
        kinds = MODEL_FAULTS if who == "model" else AGENT_FAULTS
        fault = chance.choices(list(kinds), list(kinds.values()))[0]
        self.faults[f"{who} {fault}"] += 1
        self.unmended.setdefault(question, []).append(f"{who} {fault}")
        return fault, chance

    def answers(self, question: str, ticket: str) -> None:
        self.answered[question] += 1
        self.mended.update(self.unmended.pop(question, ()))
        if ticket:
            self.tickets[ticket] += 1

    def closed(self) -> Books:
        names = (name for name in Books._fields if name != "outages")
        return Books(**{name: dict(getattr(self, name)) for name in names}, outages=self.outages)


# ── one connection ───────────────────────────────────────────────────────────────────────────────


class _Connection(asyncio.Protocol):
    """As much of HTTP/1.1 as clients need. ``farewell`` says whether the connection is to be closed after a
    reply, and is told of it."""

    def __init__(self, who: str, books: Callable[[], _Open], farewell: Callable[[], bool]) -> None:
        self._who = who
        self._books = books
        self._farewell = farewell
        self._data = bytearray()
        self._pending: _Open | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def eof_received(self) -> None:
        self._close_books()

    def connection_lost(self, exc: Exception | None) -> None:
        self._close_books()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, blank, _ = self._data.partition(b"\r\n\r\n")
        if not blank:
            return
        _, *lines = bytes(head).split(b"\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in lines)
        if len(self._data) >= len(head) + 4 + int(fields.get(b"content-length", 0)):
            body = json.loads(self._data[len(head) + 4 :])
            self._data.clear()
            self._converse(body)

    def _converse(self, asked: Json) -> None:
        books, question = self._books(), question_of(asked)
        self._pending = books
        books.opens(self._who)
        fault, chance = books.draw(self._who, question)
        latency_s = MODEL_LATENCY_S if self._who == "model" else AGENT_LATENCY_S
        reply = self._reply(asked, question, fault, chance)
        asyncio.get_running_loop().call_later(latency_s, reply)

    def _reply(self, asked: Json, question: str, fault: str, chance: Random) -> Callable[[], None]:
        says = model_says if self._who == "model" else agent_says
        whole = completion(says(asked, question))
        if fault:
            return lambda: self._fail(fault, whole, chance)
        ticket = ticket_of(asked) if self._who == "agent" else ""
        return lambda: self._answer(whole, question, ticket)

    def _answer(self, whole: Json, question: str, ticket: str) -> None:
        if self._pending and not self._transport.is_closing():
            self._pending.answers(question, ticket)
        self._write(json.dumps(whole).encode())

    def _close_books(self) -> None:
        if self._pending:
            self._pending.in_flight[self._who] -= 1
            self._pending = None

    # ── ways to fail ─────────────────────────────────────────────────────────────────────────────

    def _fail(self, fault: str, whole: Json, chance: Random) -> None:
        body = json.dumps(whole).encode()
        match fault:
            case "429, asks to wait" | "503, asks to wait":
                headers, words = _asking(chance)
                self._refuse(int(fault[:3]), f"The server has too much to do. {words}", headers)
            case "429, says no time":
                self._refuse(429, "Too many requests.")
            case "500" | "503":
                self._refuse(int(fault), "The server had an error while processing your request.")
            case "reset before the reply":
                self._reset()
            case "reset within the reply":
                self._write(body, announced=len(body), sent=len(body) // 2)
                self._reset()
            case "closed within the reply":
                self._write(body, announced=len(body), sent=len(body) // 2)
                self._transport.close()
            case "truncated JSON":
                self._write(body[: len(body) // 2])
            case "hangs":
                pass  # until the client leaves
            case "garbage":
                self._write(chance.choice([b"<html>Welcome</html>", chance.randbytes(400), b"", b"null"]))
            case "no HTTP":
                self._close_books()
                self._transport.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
                self._transport.close()
            case "error with status 200":
                self._write(b'{"error": {"message": "upstream timed out", "code": 502}}')
            case _:
                self._write(json.dumps(_useless(fault, whole)).encode())

    def _refuse(self, status: int, words: str, headers: str = "") -> None:
        body = json.dumps({"error": {"message": words, "type": "server_error"}}).encode()
        self._write(body, status=f"{status} Refused", headers=headers)

    def _reset(self) -> None:
        """An end with a reset instead of an orderly one."""
        self._close_books()
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _write(
        self,
        body: bytes,
        *,
        status: str = "200 OK",
        headers: str = "",
        announced: int | None = None,
        sent: int | None = None,
    ) -> None:
        if self._transport.is_closing():
            return
        self._close_books()
        is_last = self._farewell()
        length = len(body) if announced is None else announced
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}"
        head += "Connection: close\r\n" if is_last else ""
        self._transport.write(f"{head}\r\n".encode() + body[:sent])
        if is_last:
            self._transport.close()


def _asking(chance: Random) -> tuple[str, str]:
    """A request to wait, as headers and in words; half of the time in the plain form."""
    millis = chance.randrange(50, 121)
    seconds = f"{millis / 1000:.3f}"
    forms = (
        (f"Retry-After: {seconds}\r\n", ""),
        (f"retry-after-ms: {millis}\r\n", ""),
        (f"Retry-After: {formatdate(time.time(), usegmt=True)}\r\n", ""),
        (f"Retry-After: {millis}ms\r\n", ""),
        (f"Retry-After: {time.time() + millis / 1000 + 0.5:.0f}\r\n", ""),
        ("Retry-After: soon\r\n", f"Please try again in {seconds}s."),
        (f"x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: {millis}ms\r\n", ""),
    )
    return forms[0] if chance.random() < 0.5 else chance.choice(forms)


def _useless(fault: str, whole: Json) -> Json:
    """A whole reply with an answer of no use."""
    (choice,) = whole["choices"]
    said = choice["message"]["content"]
    content, reason = {
        "cut-off answer": (said[: len(said) // 2], "length"),
        "empty answer": ("", "stop"),
        "answer that is no JSON": ("Sure! I would call it rather good.", "stop"),
    }[fault]
    message = {**choice["message"], "content": content}
    return {**whole, "choices": [{**choice, "message": message, "finish_reason": reason}]}


# ── the server ───────────────────────────────────────────────────────────────────────────────────


class _Port:
    """A port that connections are refused at now and then."""

    def __init__(self, books: Callable[[], _Open]) -> None:
        self._books = books
        self._answers = 0
        self._farewells = 0
        self.number = 0

    async def open(self) -> None:
        self._socket = _listening(self.number)
        self.number = self._socket.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, sock=self._socket, backlog=1024)

    def _connection(self) -> _Connection:
        return _Connection("agent", self._books, self._farewell)

    def _farewell(self) -> bool:
        """Before an outage connections are closed one after the other: a request on one that is kept alive
        must not meet its end."""
        self._answers += 1
        if self._books().trouble.rate and self._answers % BETWEEN_OUTAGES == 0:
            self._farewells = _FAREWELLS
        if not self._farewells:
            return False
        self._farewells -= 1
        if not self._farewells:
            asyncio.get_running_loop().create_task(self._outage())
        return True

    async def _outage(self) -> None:
        self._books().outages += 1
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        while True:  # who has come is served: a reset would not be a refusal
            try:
                came, _ = self._socket.accept()
            except BlockingIOError:
                break
            came.setblocking(False)
            await loop.connect_accepted_socket(self._connection, came)
        self._server.close()
        await asyncio.sleep(OUTAGE_S)
        await self.open()


def _listening(port: int) -> socket.socket:
    """A socket at ``port`` (0: any). While it was closed, another program may have got it for a moment."""
    for _ in range(100):
        try:
            return socket.create_server(("127.0.0.1", port), backlog=1024)
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"port {port} is taken")


def _serve(wire: Any) -> None:
    books = _Open()

    def obey() -> None:
        nonlocal books
        match wire.recv():
            case Trouble() as trouble:
                books = _Open(trouble)
                wire.send(None)
            case _:
                wire.send(books.closed())

    async def main() -> None:
        loop, agent = asyncio.get_running_loop(), _Port(lambda: books)
        models = await loop.create_server(
            lambda: _Connection("model", lambda: books, lambda: False), "127.0.0.1", 0, backlog=1024
        )
        await agent.open()
        loop.add_reader(wire.fileno(), obey)
        wire.send((models.sockets[0].getsockname()[1], agent.number))
        await models.serve_forever()

    asyncio.run(main())


class FaultyServer:
    """The server as its user meets it: a context manager around the other process."""

    def __enter__(self) -> FaultyServer:
        self._wire, far = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_serve, args=(far,), daemon=True)
        self._process.start()
        model, agent = self._wire.recv()
        self.model_url = f"http://127.0.0.1:{model}/v1"
        self.agent_url = f"http://127.0.0.1:{agent}/v1/chat/completions"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def begin(self, trouble: Trouble) -> None:
        """Open new books."""
        self._wire.send(trouble)
        self._wire.recv()

    def books(self) -> Books:
        self._wire.send("books")
        books: Books = self._wire.recv()
        return books
