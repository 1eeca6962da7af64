"""Read an agent's calls from the OpenTelemetry spans that it exports (OTLP over HTTP), if ``observe: otlp``
is set.

A run has one receiver for each agent that is observed in this way. Each request begins a new trace, whose ID
is sent in the ``traceparent`` header. Spans with that trace ID belong to the reply to that request."""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from agenteval.adapters.agents.observe_options import ObserveOptions
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, Place, Problem
from agenteval.core.plurals import plural
from agenteval.core.protocols import (
    Agent,
    AgentFactory,
    AgentReply,
    AgentWrapper,
    NoHistory,
    ReadReply,
    TurnTools,
)
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message, ToolCall
from agenteval.importers.live_traces import (
    NotOtlpError,
    has_served,
    is_complete,
    spans_of_json,
    spans_of_protobuf,
    trace_of,
    turn_of,
)
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign

MAX_BODY = 64 * 2**20
"""The maximum size of one export in bytes. The bytes are counted while the export is being decompressed."""
MAX_SPANS = 20_000
"""The maximum number of spans in one trace."""
_SETTLE_S = 0.1
_PROTOBUF = "application/x-protobuf"
_JSON = "application/json"


# ── the receiver ─────────────────────────────────────────────────────────────────────────────────


@dataclass
class Trace:
    """A trace and the spans received for it."""

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    root: str = field(default_factory=lambda: secrets.token_hex(8))
    """The ID of the root span, which agenteval sends as the parent of the agent's spans."""
    spans: list[dict[str, Any]] = field(default_factory=list)

    @property
    def parent(self) -> str:
        return f"00-{self.id}-{self.root}-01"


class SpanReceiver:
    """A receiver of OpenTelemetry spans. It listens in its own threads as soon as it is created.

    Agents that export to the same port share one receiver. The constructor raises ``OSError`` if the port
    cannot be opened."""

    _open: ClassVar[dict[int, SpanReceiver]] = {}
    _opening = threading.Lock()

    def __init__(self, port: int) -> None:
        self._users = 0
        self._lock = threading.Lock()
        self._traces: dict[str, Trace] = {}
        self._unknown: dict[str, int] = {}
        self._faults: dict[str, int] = {}
        self._server = _server(port, self._take, self._refuse)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True, name="agenteval-otlp").start()

    @classmethod
    def on(cls, port: int) -> SpanReceiver:
        """Return the run's receiver on a port, creating it if needed. Every caller must call ``close``."""
        with cls._opening:
            found = cls._open.get(port) if port else None
            found = found or cls(port)
            cls._open[found.port] = found
            found._users += 1
        return found

    def begin(self) -> Trace:
        trace = Trace()
        with self._lock:
            self._traces[trace.id] = trace
        return trace

    def spans(self, trace: Trace) -> list[dict[str, Any]]:
        with self._lock:
            return list(trace.spans)

    def _remarks(self) -> Iterator[str]:
        """Yield remarks about unusable spans and exports."""
        with self._lock:
            unknown, faults = dict(self._unknown), dict(self._faults)
        if unknown:
            spans, traces = plural(sum(unknown.values()), "span"), plural(len(unknown), "trace")
            what = f"{spans} from {traces} could not be matched to a request in this run"
            yield f"{what}; check that the agent propagates the `traceparent` header"
        for what, times in faults.items():
            yield f"{plural(times, 'span export')} rejected: {what}"

    def close(self) -> tuple[str, ...]:
        """Release the receiver.

        The last caller to release the receiver stops it and receives the remarks about unusable spans and
        exports."""
        with self._opening:
            self._users -= 1
            if self._users:
                return ()
            self._open.pop(self.port, None)
        self._server.shutdown()
        self._server.server_close()
        return tuple(self._remarks())

    def _take(self, spans: list[dict[str, Any]]) -> None:
        with self._lock:
            for span in spans:
                trace = self._traces.get(key := trace_of(span))
                if trace is None:
                    self._unknown[key] = self._unknown.get(key, 0) + 1
                elif len(trace.spans) < MAX_SPANS:
                    trace.spans.append(span)

    def _refuse(self, what: str) -> None:
        with self._lock:
            self._faults[what] = self._faults.get(what, 0) + 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # the conversations of a run export at the same time; the default is 5

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection. It affects only the exporter, which sends the data again."""


def _server(
    port: int, take: Callable[[list[dict[str, Any]]], None], refuse: Callable[[str], None]
) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:  # the name that http.server calls
            try:
                data = _body(self)
                kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
                if self.path.rstrip("/").endswith(("/v1/metrics", "/v1/logs")):
                    self._answer(200, b"{}" if kind == _JSON else b"", kind or _PROTOBUF)
                    return
                if kind not in (_JSON, _PROTOBUF):
                    raise _ExportRefusedError(
                        415, f"the content type is {kind or 'not given'}, not {_PROTOBUF} or {_JSON}"
                    )
                take(spans_of_json(data) if kind == _JSON else spans_of_protobuf(data))
            except NotOtlpError as error:
                self._refused(400, str(error))
            except _ExportRefusedError as error:
                self._refused(error.status, str(error))
            else:
                self._answer(200, b"{}" if kind == _JSON else b"", kind)

        def _refused(self, status: int, what: str) -> None:
            refuse(what)
            self.close_connection = True
            self._answer(status, json.dumps({"message": what}).encode(), _JSON)

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            if code == 505:
                refuse("the exporter uses gRPC; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
            super().send_error(code, message, explain)

        def log_message(self, format: str, *args: Any) -> None:  # the name that http.server calls
            """Log nothing."""

    return _Server(("127.0.0.1", port), Handler)


class _ExportRefusedError(Exception):
    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if "chunked" in (request.headers.get("Transfer-Encoding") or "").lower():
        data = _chunks(request)
    else:
        length = int(request.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            raise _ExportRefusedError(413, f"the body is larger than {MAX_BODY // 2**20} MiB")
        data = request.rfile.read(length)
    coding = (request.headers.get("Content-Encoding") or "").lower().strip()
    if coding in ("", "identity"):
        return data
    if coding not in ("gzip", "deflate"):
        raise _ExportRefusedError(415, f"the encoding {coding} is not supported")
    try:
        found = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, MAX_BODY + 1)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _ExportRefusedError(400, f"the body is not valid {coding}") from error
    if len(found) > MAX_BODY:
        raise _ExportRefusedError(413, f"the body is larger than {MAX_BODY // 2**20} MiB")
    return found


def _chunks(request: BaseHTTPRequestHandler) -> bytes:
    data = bytearray()
    while size := int(request.rfile.readline(100).partition(b";")[0] or b"0", 16):
        if len(data) + size > MAX_BODY:
            raise _ExportRefusedError(413, f"the body is larger than {MAX_BODY // 2**20} MiB")
        data += request.rfile.read(size)
        request.rfile.readline(10)
    request.rfile.readline(10)
    return bytes(data)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


class TracedAgents:
    """The agents of a run that are observed through OpenTelemetry spans.

    ``inner`` creates the factory of the actual agents once the receiver's address is known. ``send`` passes
    the ``traceparent`` for the next requests to an agent. ``port`` overrides the port in the options; 0
    selects any free port."""

    def __init__(
        self,
        inner: Callable[[str], AgentFactory],
        options: ObserveOptions,
        *,
        port: int | None = None,
        send: Callable[[Agent, str], None],
        warn: Callable[[str], None],
        place: Place | None,
        name: str,
    ) -> None:
        self._options = options
        self._send = send
        self._name = name
        self._warn = warn
        try:
            self.receiver = SpanReceiver.on(options.port if port is None else port)
        except OSError as error:
            why = f"cannot listen on port {options.port}: {error.strerror}"
            what = f"agent '{name}': the span receiver {why}"
            remedy = "set `observe: {port: …}`, and export to that port"
            raise AuthorError(Problem(what, remedy, place)) from error
        self._inner = inner(f"http://127.0.0.1:{self.receiver.port}")

    @property
    def does(self) -> str:
        """A description of how the agent is run."""
        where = f"its spans are received at http://127.0.0.1:{self.receiver.port}/v1/traces"
        inner = getattr(self._inner, "does", "")
        return f"{inner}; {where}" if inner else where

    @property
    def database_remedy(self) -> str | None:
        return getattr(self._inner, "database_remedy", None)

    @property
    def no_history(self) -> NoHistory | None:
        """The reason why the agents cannot be given earlier messages, if there is one."""
        return getattr(self._inner, "no_history", None)

    def make(self, sample: Sample) -> TracedAgent:
        return TracedAgent(self._inner.make(sample), self)

    async def aclose(self) -> None:
        await self._inner.aclose()  # a program may send spans when it ends
        for remark in await asyncio.to_thread(self.receiver.close):
            self.warn(remark)

    def warn(self, text: str) -> None:
        self._warn(f"agent '{self._name}': {text}")

    def begin(self, agent: Agent) -> Trace:
        trace = self.receiver.begin()
        self._send(agent, trace.parent)
        return trace

    async def wait_for_spans(self, trace: Trace) -> list[dict[str, Any]] | None:
        """Wait for the spans of a trace. Return ``None`` if some or all of the spans did not arrive.

        A trace can be complete as soon as the server's span has arrived. Without a server span, completeness
        is decided only when the time limit is reached."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.wait_s
        with pause_deadlines():
            while True:
                spans = self.receiver.spans(trace)
                if has_served(spans, trace.root) and is_complete(spans, trace.root):
                    return spans
                if loop.time() >= end:
                    return spans if is_complete(spans, trace.root) else None
                await asyncio.sleep(_SETTLE_S)


NO_SPANS = "spans of the turn that did not arrive"


class TracedAgent(AgentWrapper):
    """The agent for one conversation."""

    def __init__(self, agent: Agent, agents: TracedAgents) -> None:
        super().__init__(agent)
        self._agents = agents

    async def reply(self, messages: list[Message], tools: TurnTools) -> ReadReply:
        spans: list[dict[str, Any]] | None
        trace = self._agents.begin(self._agent)
        try:
            reply = ReadReply.from_reply(await self._agent.reply(messages, tools))
        except AgentevalError as error:
            # Only an agent that answered has spans to wait for; a lost connection has none.
            has_answered = isinstance(error, AgentError) and error.kind != "timeout"
            spans = await self._agents.wait_for_spans(trace) if has_answered else None
            received = self._agents.receiver.spans(trace) if spans is None else spans
            partial = self._with_spans(ReadReply.from_reply(error.seen or AgentReply()), received, messages)
            error.seen = partial if spans is not None else replace(partial, unplaced=(NO_SPANS,))
            raise
        spans = await self._agents.wait_for_spans(trace)
        if spans is None:
            what = "only some spans" if self._agents.receiver.spans(trace) else "no span"
            self._agents.warn(f"{what} of a request arrived in time; its calls are not observed")
            return replace(reply, unplaced=(*reply.unplaced, NO_SPANS))
        return self._with_spans(reply, spans, messages)

    def _with_spans(
        self, reply: ReadReply, spans: list[dict[str, Any]], messages: list[Message]
    ) -> ReadReply:
        known = [*_since_the_user(messages), *_calls_of(reply.tool_calls)]
        turn = turn_of(spans, known)
        if turn.unclear:
            names = ", ".join(f"'{name}'" for name in turn.unclear)
            what = (
                f"its spans do not contain the arguments of {names}, so checks of these arguments remain"
                " undecided"
            )
            remedy = (
                "enable recording of message contents"
                " (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)"
            )
            self._agents.warn(f"{what}; {remedy}")
        usage = turn.usage if reply.usage is None else reply.usage
        return replace(reply, messages=turn.messages, usage=usage, unplaced=(*reply.unplaced, *turn.unplaced))


def _since_the_user(messages: list[Message]) -> list[ToolCall]:
    """Return those calls in the current turn that were sent to the agent together with their results."""
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    return [
        call
        for step in chat.parse_steps(messages[users[-1] + 1 if users else 0 :])
        for call in step.tool_calls
    ]


def _calls_of(calls: Any) -> list[ToolCall]:
    return [chat.read_tool_call(foreign.as_call(call)) for call in calls]
