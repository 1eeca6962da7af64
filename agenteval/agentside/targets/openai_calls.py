"""``observe: openai``: what passes through the ``openai`` client of an agent, without a changed line of it.

The one method that all of the client's requests go through is replaced for as long as a run is on. It sends
what it would have sent, and notes what was asked and what came back. Whose conversation a request is of is
known by a context variable, which follows tasks and ``asyncio.to_thread``, and no bare thread. A request from
there is sent like any other; but since nobody knows whose it was, no conversation that was open then can be
judged.

Streams are noted while the agent reads them: what it has not read it cannot have acted upon.
"""

from __future__ import annotations

import functools
import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Dict, List
from weakref import WeakSet

from .plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

READ = ("/chat/completions", "/responses")
"""The addresses whose replies are understood; the second also with the id of a response."""
_HARMLESS = frozenset(
    (
        *("embeddings", "moderations", "models", "files", "uploads", "images", "audio", "vector_stores"),
        *("fine_tuning", "conversations", "completions", "batches"),
    )
)
"""Addresses at which no model asks for a tool."""
_HARMLESS_BELOW = ("/responses/input_tokens", "/responses/compact", "/cancel", "/input_items")
_RESULT_ROLES = ("tool", "function")

Exchange = Dict[str, Any]
"""``results``: the results of tools in the request. ``response``, or ``stream``: the text of its events as
far as it was read. ``unread``: why there is neither."""


_LOCK = threading.RLock()
_OPEN: list[Recorder] = []
"""Those whose conversations go on."""


class CannotObserveError(Exception):
    """The client cannot be observed here. ``remedy``: what to do about it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


class Recorder:
    """The requests of one conversation. ``hear`` gets a sentence for each request that may have been its own
    and whose conversation is not known; from any thread. ``name``: of the conversation."""

    def __init__(self, hear: Callable[[str], None], name: str = "") -> None:
        self.hear = hear
        self.name = name
        self._is_over = False
        self._exchanges: list[Exchange] = []
        with _LOCK:
            _OPEN.append(self)

    def begin(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)
        if self._is_over:
            self.hear("a request of the openai client came after its conversation was over; it is not judged")

    def end(self) -> None:
        """The conversation is over."""
        self._is_over = True
        with _LOCK:
            if self in _OPEN:
                _OPEN.remove(self)

    def take(self) -> list[Exchange]:
        """What was noted since the last time, in the order in which it was asked."""
        taken, self._exchanges = self._exchanges, []
        return taken


_RECORDER: ContextVar[Recorder | None] = ContextVar("agenteval_openai", default=None)
_OWN: WeakSet[Any] = WeakSet()
_UNDO: list[Callable[[], None]] = []
_users = 0
_watches_forks = False


def not_observed(client: Any) -> None:
    """A client of agenteval's own, in the same process."""
    _OWN.add(client)


def in_other_code() -> None:
    """From here on the running task is no agent's: a mock's, say."""
    _RECORDER.set(None)


def install(is_other_code: Callable[[], bool] = lambda: False) -> None:
    """Observes the client until it was removed as often. ``is_other_code``: whether what runs without a
    recorder is known to be no agent's. Raises ``CannotObserveError``."""
    global _users
    with _LOCK:
        _users += 1
        if _users > 1:
            return
        try:
            sync, asynchronous = _clients()
        except CannotObserveError:
            _users -= 1
            raise
        _watch_forks()
        _replace(sync, _noting, is_other_code)
        _replace(asynchronous, _noting_async, is_other_code)


def _watch_forks() -> None:
    """Once in a process. A child that is forked asks with the client that it inherited: nobody hears it."""
    global _watches_forks
    if not _watches_forks and hasattr(os, "register_at_fork"):
        _watches_forks = True
        os.register_at_fork(after_in_parent=_forked)


def _forked() -> None:
    recorder = _RECORDER.get()
    if recorder is not None:
        what = "the agent forked a process, whose requests of the openai client are not seen"
        recorder.begin({"results": [], "unread": what})


def remove() -> None:
    global _users
    with _LOCK:
        _users -= 1
        while not _users and _UNDO:
            _UNDO.pop()()


def _clients() -> tuple[type, type]:
    try:
        base = import_module("openai._base_client")
    except ImportError as error:
        what = f"the package openai is not installed where the agent runs ({error})"
        raise CannotObserveError(what, "install it there, or remove observe") from error
    found = [getattr(base, name, None) for name in ("SyncAPIClient", "AsyncAPIClient")]
    if not all(callable(getattr(each, "request", None)) for each in found):
        version = getattr(import_module("openai"), "__version__", "unknown")
        what = f"openai {version}: its client has no method request; 1.x to 3.x are supported"
        raise CannotObserveError(what, "let the agent report its calls, or call tools through ctx")
    return found[0], found[1]  # type: ignore[return-value]


def _replace(cls: Any, by: Callable[..., Any], is_other_code: Callable[[], bool]) -> None:
    real = cls.request
    cls.request = functools.wraps(real)(by(real, is_other_code))
    _UNDO.append(lambda: setattr(cls, "request", real))


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """What is started in here is of one conversation's agent."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)


# ── a request ────────────────────────────────────────────────────────────────────────────────────


def _noting(real: Any, is_other_code: Callable[[], bool]) -> Any:
    def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _begun(self, args, kwargs, is_other_code)
        if exchange is None:
            return real(self, *args, **kwargs)
        try:
            answered = real(self, *args, **kwargs)
        except BaseException as error:
            exchange["failed"] = type(error).__name__
            raise
        _note(exchange, answered)
        return answered

    return request


def _noting_async(real: Any, is_other_code: Callable[[], bool]) -> Any:
    async def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _begun(self, args, kwargs, is_other_code)
        if exchange is None:
            return await real(self, *args, **kwargs)
        try:
            answered = await real(self, *args, **kwargs)
        except BaseException as error:
            exchange["failed"] = type(error).__name__
            raise
        _note(exchange, answered)
        return answered

    return request


def _begun(client: Any, args: Any, kwargs: Any, is_other_code: Callable[[], bool]) -> Exchange | None:
    """What is known of a request of an agent's; ``None``: it is of nobody, or of no concern."""
    try:
        options = kwargs["options"] if "options" in kwargs else args[1]
        address = str(options.url).split("?")[0].rstrip("/")
        if client in _OWN or _is_harmless(address):
            return None
        recorder = _RECORDER.get()
        if recorder is None:
            if not is_other_code():
                _tell_all()
            return None
        body = _body(options)
        offers = isinstance(body, dict) and bool(body.get("tools") or body.get("functions"))
        exchange: Exchange = {"results": _results_in(body), "offers_tools": offers}
        if not _is_read(address):
            exchange["unread"] = f"a request to {address} of the openai client, which is not understood"
    except Exception as error:  # never the agent's: what went wrong is ours
        recorder = _RECORDER.get()
        if recorder is None:
            _tell_all()
            return None
        exchange = {"results": [], "unread": f"a request of the openai client ({type(error).__name__})"}
    recorder.begin(exchange)
    return exchange


def _tell_all() -> None:
    what = "a request of the openai client came from a thread that agenteval cannot follow"
    remedy = "start the thread with asyncio.to_thread or contextvars.copy_context().run"
    said = f"{what}, so calls may have been missed; {remedy}"
    with _LOCK:
        heard = list(_OPEN)
    said += suspects(recorder.name for recorder in heard)
    for recorder in heard:
        recorder.hear(said)


def suspects(names: Iterable[str]) -> str:
    """The conversations that were open, where one of them made a call or request and nobody knows which."""
    found = list(dict.fromkeys(filter(None, names)))
    if len(found) < 2:
        return ""
    more = f" and {len(found) - _SUSPECTS} more" if len(found) > _SUSPECTS else ""
    return f". One of these conversations did it: {'; '.join(found[:_SUSPECTS])}{more}"


_SUSPECTS = 8
"""So many are named."""


def _is_harmless(address: str) -> bool:
    parts = [part for part in address.split("/") if part]
    if address.endswith(_HARMLESS_BELOW):
        return True
    return bool(parts) and parts[0] in _HARMLESS and not address.endswith(READ)


def _is_read(address: str) -> bool:
    holder, _, last = address.rpartition("/")
    return address.endswith(READ) or (holder.endswith("/responses") and bool(last))


def _body(options: Any) -> dict[str, Any]:
    body = plain(getattr(options, "json_data", None) or {})
    more = plain(getattr(options, "extra_json", None) or {})
    return {**body, **more}


def _results_in(body: dict[str, Any]) -> list[Any]:
    """The results of tools that a request brings to the model."""
    items = [item for key in ("messages", "input") if isinstance(body.get(key), list) for item in body[key]]
    return [item for item in items if isinstance(item, dict) and _is_result(item)]


def _is_result(item: dict[str, Any]) -> bool:
    return item.get("role") in _RESULT_ROLES or str(item.get("type", "")).endswith("_output")


# ── what came back ───────────────────────────────────────────────────────────────────────────────


def _note(exchange: Exchange, answered: Any) -> None:
    """Never raises: the agent gets what it would have got."""
    try:
        response = getattr(answered, "http_response", None)
        is_stream = response is None and hasattr(answered, "response") and hasattr(answered, "__stream__")
        response = answered.response if is_stream else response
        if response is None:
            exchange["response"] = _as_json(answered)
        elif _is_there(response):
            exchange["stream"] = response.text
        else:
            _tee(response, exchange)
    except Exception as error:
        exchange["unread"] = f"a reply of the openai client ({type(error).__name__}: {error})"


def _as_json(answered: Any) -> Any:
    if hasattr(answered, "to_dict"):
        return plain(answered.to_dict(mode="json", warnings=False))
    return plain(answered)


def _is_there(response: Any) -> bool:
    """Whether all of a body was read already."""
    return hasattr(response, "_content") or bool(getattr(response, "is_stream_consumed", False))


def _tee(response: Any, exchange: Exchange) -> None:
    """Every way to read a body as text or events goes through these two methods."""
    pieces = exchange["stream"] = _Pieces()
    pieces.response = response
    read, read_async = response.iter_bytes, response.aiter_bytes

    def iter_bytes(*args: Any, **kwargs: Any) -> Any:
        for piece in read(*args, **kwargs):
            pieces.append(piece)
            yield piece

    async def aiter_bytes(*args: Any, **kwargs: Any) -> Any:
        async for piece in read_async(*args, **kwargs):
            pieces.append(piece)
            yield piece

    response.iter_bytes, response.aiter_bytes = iter_bytes, aiter_bytes


class _Pieces(List[bytes]):
    """Of the body of a ``response`` that is being read."""

    response: Any = None


def told(exchanges: list[Exchange]) -> list[Exchange]:
    """Exchanges as JSON, as they are now."""
    return [_told(each) for each in exchanges]


def _told(exchange: Exchange) -> Exchange:
    stream = exchange.get("stream")
    if not any(key in exchange for key in ("response", "stream", "failed", "unread")):
        return {**exchange, "unread": "a request of the openai client was under way when the agent answered"}
    if not isinstance(stream, _Pieces):
        return dict(exchange)
    if not stream and getattr(stream.response, "is_stream_consumed", False):
        return {**exchange, "stream": "", "unread": "a reply of the openai client that was read as raw bytes"}
    return {**exchange, "stream": b"".join(list(stream)).decode("utf-8", "replace")}
