"""Record LLM requests that an agent's clients send to models, and the replies, by patching the methods of
``httpx`` and ``httpx2`` that send requests.

The clients for OpenAI, Anthropic, Google (except with ``aiohttp``), Ollama, LiteLLM and other providers use
these two libraries, regardless of the agent framework. A request counts as a model request if both its
address and its body match a known interface. An application's other requests are not recorded. The records
are passed to the tool world of the conversation for which the code runs. A request whose conversation is
unknown is sent as usual, but none of the conversations that were open at the time can then be evaluated.

A streamed reply is recorded while the agent reads it, because the agent cannot act on parts that it has not
read."""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict
from weakref import WeakKeyDictionary, WeakSet

from . import hooks
from . import world as worlds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .world import World

Exchange = Dict[str, Any]
"""A model request and its outcome. The fields are JSON values after ``exchanges_to_json``:

- ``dialect``: the interface, which is a key in ``DIALECTS``, or empty if the request is not understood
- ``results``: messages in the dialect's format that contain tool results missing from all earlier requests
- ``offers_tools``: True if the request offers tools to the model
- ``forced``: the tool that the model was required to call
- ``framework``: the hooked framework that sent the request, or empty for a plain loop
- ``reply``: the text of the reply, as far as it was read
- ``failed``: the reason why there is no reply
- ``unread``: the reason why the reply is unknown
- ``is_fetched``: True if the request fetches a response that was started earlier
- ``forked``: True if the exchange represents a forked process"""

DIALECTS = {
    "chat": ("/chat/completions",),
    "responses": ("/responses",),
    "anthropic": ("/messages", ":rawPredict", ":streamRawPredict"),
    "gemini": (":generateContent", ":streamGenerateContent"),
    "ollama": ("/api/chat",),
}
"""The address suffixes for each interface."""
_NO_CALL_PATHS = ("/count_tokens", "/input_tokens", "/compact", "/cancel", "/input_items", ":countTokens")
"""The suffixes of addresses at which a model receives tools but never calls any."""
_NO_TOOL_PATHS = frozenset(
    (
        *("embeddings", "moderations", "models", "files", "uploads", "images", "audio", "vector_stores"),
        *("fine_tuning", "conversations", "completions", "complete", "batches"),
    )
)
"""The address segments for interfaces that do not support tool calls."""
_MODEL_USER_AGENTS = ("openai/python", "anthropic/python")
"""The user agents of model clients. A request with such a user agent is a model request even if its address
does not match a known interface."""
MAX_MODEL_REPLY_BYTES = 8 * 2**20
"""The maximum number of bytes that are kept of each reply."""

_EXCLUDED_CLIENTS: WeakSet[Any] = WeakSet()
_SEEN_RESULTS: WeakKeyDictionary[World, list[list[int]]] = WeakKeyDictionary()
"""The tool results in earlier requests, stored for each conversation and request."""
_MAX_SEEN_REQUESTS = 16
"""The maximum number of earlier requests with tool results to compare the next request with."""


def exclude_client(client: Any) -> None:
    """Exclude one of agenteval's own clients in the same process from recording."""
    _EXCLUDED_CLIENTS.add(client)


def patch_clients(sync: Any, asynchronous: Any) -> None:
    """Start recording the requests of an HTTP library's clients by monkeypatching their classes."""
    for client, wrap in ((sync, _observed_send), (asynchronous, _observed_send_async)):
        if not hasattr(client.send, _MARK):  # one library may be imported under both names
            client.send = wrap(client.send)
            setattr(client.send, _MARK, True)
    if not _forks and hasattr(os, "register_at_fork"):
        _forks.append(True)
        os.register_at_fork(after_in_parent=_note_fork)


_MARK = "agenteval_listens"
_forks: list[bool] = []


def _note_fork() -> None:
    """Record that the process forked. The child process sends requests through inherited clients, and these
    requests are not visible to agenteval."""
    world = worlds.current_world()
    if world is not None:
        what = "the agent forked a process, whose model requests are not recorded"
        world.record_exchange({"results": [], "unread": what, "forked": True})


# ── requests ─────────────────────────────────────────────────────────────────────────────────────


def _observed_send(send: Any) -> Any:
    @functools.wraps(send)
    def observed_send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _start_exchange(client, request)
        if exchange is None:
            return send(client, request, *args, **kwargs)
        try:
            response = send(client, request, *args, **kwargs)
        except BaseException as error:
            exchange["failed"] = type(error).__name__
            raise
        _record_response(exchange, response)
        return response

    return observed_send


def _observed_send_async(send: Any) -> Any:
    @functools.wraps(send)
    async def observed_send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _start_exchange(client, request)
        if exchange is None:
            return await send(client, request, *args, **kwargs)
        try:
            response = await send(client, request, *args, **kwargs)
        except BaseException as error:
            exchange["failed"] = type(error).__name__
            raise
        _record_response(exchange, response)
        return response

    return observed_send


def _start_exchange(client: Any, request: Any) -> Exchange | None:
    """Return the record of an agent's request to a model, or ``None`` if the request is irrelevant."""
    world = worlds.current_world()
    if client in _EXCLUDED_CLIENTS or (world is None and not worlds.may_be_agent_code()):
        return None
    try:
        exchange = _read_request(request)
        if exchange is None:
            return None
        if world is not None:
            exchange["results"] = _new_results(world, exchange["results"])
            exchange["framework"] = _calling_framework()
    except Exception as error:  # agenteval's error must not become the agent's
        exchange = {
            "results": [],
            "unread": f"a model request that could not be parsed ({type(error).__name__}: {error})",
        }
    if world is None or not world.record_exchange(exchange):
        _record_untracked_request()
        return None
    return exchange


def _record_untracked_request() -> None:
    what = "a model request came from a thread that agenteval cannot track, so calls may have been missed"
    open_worlds = worlds.open_worlds()
    more = worlds.describe_suspects(world.name for world in open_worlds)
    for world in open_worlds:
        world.record_fault(f"{what}; start the thread during the turn that it works for{more}")


def _calling_framework() -> str:
    """Return the hooked framework whose code is on the call stack, or an empty string if there is none."""
    packages = hooks.hooked_packages()
    frame = sys._getframe(1) if packages else None
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        for package in packages:
            if name == package or name.startswith(package + "."):
                return package
        frame = frame.f_back
    return ""


def _read_request(request: Any) -> Exchange | None:
    """Return the relevant parts of a request, or ``None`` if the request is not a model request."""
    path = str(request.url.path).rstrip("/")
    holder, _, last = path.rpartition("/")
    if request.method == "GET":
        is_fetched = holder.endswith("/responses") and last.startswith("resp")
        return {"dialect": "responses", "results": [], "is_fetched": True} if is_fetched else None
    if path.endswith(_NO_CALL_PATHS):
        return None
    dialect = next((name for name, ends in DIALECTS.items() if path.endswith(ends)), "")
    body = _json_body(request, is_known=bool(dialect))
    if dialect and _IS_BODY_OF[dialect](body):
        return {
            "dialect": dialect,
            "results": list(_tool_results(dialect, body)),
            "offers_tools": bool(body.get("tools") or body.get("functions")),
            **({"forced": forced} if (forced := _forced_tool(body)) else {}),
        }
    offers = isinstance(body.get("tools"), list) and bool(body["tools"])
    is_asking = offers and any(isinstance(body.get(key), list) for key in ("messages", "input", "contents"))
    if is_asking or _is_from_model_client(request, path):
        return {"dialect": "", "results": [], "unread": f"an unsupported request to {path}"}
    return None


def _is_from_model_client(request: Any, path: str) -> bool:
    user_agent = str(request.headers.get("user-agent") or "").lower()
    return any(name in user_agent for name in _MODEL_USER_AGENTS) and _NO_TOOL_PATHS.isdisjoint(
        path.split("/")
    )


def _json_body(request: Any, *, is_known: bool) -> dict[str, Any]:
    """Return the request body as an object, or an empty object if the body is irrelevant or is not a JSON
    object."""
    if "json" not in str(request.headers.get("content-type") or ""):
        return {}
    try:
        content = request.content
        body = json.loads(content) if is_known or b'"tools"' in content else None
    except (ValueError, RecursionError, RuntimeError):  # not JSON, nested too deeply, or a stream
        return {}
    return body if isinstance(body, dict) else {}


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _have_roles(value: Any) -> bool:
    return _are_messages(value) and bool(value) and all("role" in each for each in value)


_IS_BODY_OF = {
    "chat": lambda body: _have_roles(body.get("messages")),
    "responses": lambda body: (
        ("input" in body and "model" in body) or "prompt" in body or "previous_response_id" in body
    ),
    "anthropic": lambda body: (
        _have_roles(body.get("messages")) and ("max_tokens" in body or "anthropic_version" in body)
    ),
    "gemini": lambda body: bool(body.get("contents")),
    "ollama": lambda body: "model" in body and _are_messages(body.get("messages")),
}
"""Functions that check whether a body matches the interface."""


def _forced_tool(body: dict[str, Any]) -> str:
    """Return the name of the only function, if any, that the model was required to call. Clients use this to
    request structured output."""
    config = body.get("toolConfig") or body.get("tool_config")
    if isinstance(config, dict):
        return _only_allowed_function(config)
    choice = body.get("tool_choice") or body.get("function_call")
    if isinstance(choice, dict):
        return _tool_name(choice)
    return _tool_name(_only_tool(body)) if choice in ("required", "any") else ""


def _only_allowed_function(config: dict[str, Any]) -> str:
    """Return the name of the only function that Gemini's tool configuration allows, or an empty string if the
    configuration does not force a single function."""
    calling = config.get("functionCallingConfig") or config.get("function_calling_config") or {}
    names: Any = calling.get("allowedFunctionNames") or calling.get("allowed_function_names") or ()
    return str(names[0]) if calling.get("mode") == "ANY" and len(names) == 1 else ""


def _only_tool(body: dict[str, Any]) -> dict[str, Any]:
    tools = body.get("tools")
    only = tools[0] if isinstance(tools, list) and len(tools) == 1 else None
    return only if isinstance(only, dict) else {}


def _tool_name(tool: dict[str, Any]) -> str:
    """Return the name of a tool. Some interfaces store the name in the tool's ``function``."""
    inner = tool.get("function")
    return str((inner if isinstance(inner, dict) else tool).get("name") or "")


# ── tool results in requests ─────────────────────────────────────────────────────────────────────


def _tool_results(dialect: str, body: dict[str, Any]) -> Iterator[Any]:
    """Yield the messages in a request that contain tool results, reduced to the results."""
    key = {"responses": "input", "gemini": "contents"}.get(dialect, "messages")
    messages = body.get(key)
    for message in messages if isinstance(messages, list) else [messages]:
        if not isinstance(message, dict):
            continue
        if dialect == "anthropic" and (parts := _matching_parts(message, "content", _is_result_block)):
            yield {"role": "user", "content": parts}
        elif dialect == "gemini" and (parts := _matching_parts(message, "parts", _is_function_response)):
            yield {"role": "user", "parts": parts}
        elif message.get("role") in _TOOL_ROLES or str(message.get("type", "")).endswith("_output"):
            yield message


_TOOL_ROLES = ("tool", "function")


def _matching_parts(message: dict[str, Any], key: str, is_wanted: Any) -> list[Any]:
    parts = message.get(key)
    return (
        [each for each in parts if isinstance(each, dict) and is_wanted(each)]
        if isinstance(parts, list)
        else []
    )


def _is_result_block(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_result"


def _is_function_response(part: dict[str, Any]) -> bool:
    return "functionResponse" in part or "function_response" in part


def _new_results(world: World, results: Sequence[Any]) -> list[Any]:
    """Return the tool results that do not appear in earlier requests. Each request repeats the conversation
    so far."""
    earlier = _SEEN_RESULTS.setdefault(world, [])
    hashes = [hash(json.dumps(each, sort_keys=True)) for each in results]
    known = max((_matching_prefix(hashes, those) for those in earlier), default=0)
    if hashes:
        earlier.append(hashes)
        del earlier[:-_MAX_SEEN_REQUESTS]
    return list(results[known:])


def _matching_prefix(these: list[int], those: list[int]) -> int:
    """Return the length of ``those`` if ``these`` starts with ``those``. Otherwise, return 0, because the
    results in ``those`` may belong to another conversation."""
    return len(those) if these[: len(those)] == those else 0


# ── replies ──────────────────────────────────────────────────────────────────────────────────────


def _record_response(exchange: Exchange, response: Any) -> None:
    """Record a response. Never raise an exception, so that the agent receives the same response as it would
    without agenteval."""
    try:
        if response.status_code >= 400:
            exchange["failed"] = f"HTTP {response.status_code}"
            return
        pieces = exchange["reply"] = _ReplyPieces(response)
        try:
            pieces.add(response.content)
        except RuntimeError:  # an unread stream
            _tee(response, pieces)
    except Exception as error:
        exchange["unread"] = f"a model reply that could not be parsed ({type(error).__name__}: {error})"


class _ReplyPieces:
    """The pieces of a reply that the agent has read so far."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MAX_MODEL_REPLY_BYTES:
            self._pieces.append(piece)

    def add_reply_to(self, exchange: Exchange) -> Exchange:
        if self._size > MAX_MODEL_REPLY_BYTES:
            return {**exchange, "reply": "", "unread": _TOO_LARGE}
        if not self._size and getattr(self._response, "is_stream_consumed", False):
            # Reading a reply's text or events always goes through ``iter_bytes``.
            return {**exchange, "reply": "", "unread": "a model reply that was read as raw bytes"}
        return {**exchange, "reply": b"".join(list(self._pieces)).decode("utf-8", "replace")}


_TOO_LARGE = f"a model reply larger than {MAX_MODEL_REPLY_BYTES // 2**20} MiB"


def _tee(response: Any, pieces: _ReplyPieces) -> None:
    read, read_async = response.iter_bytes, response.aiter_bytes

    def iter_bytes(*args: Any, **kwargs: Any) -> Any:
        is_first = not response.is_stream_consumed
        for piece in read(*args, **kwargs):
            if is_first:
                pieces.add(piece)
            yield piece

    async def aiter_bytes(*args: Any, **kwargs: Any) -> Any:
        is_first = not response.is_stream_consumed
        async for piece in read_async(*args, **kwargs):
            if is_first:
                pieces.add(piece)
            yield piece

    response.iter_bytes, response.aiter_bytes = iter_bytes, aiter_bytes


def exchanges_to_json(exchanges: Sequence[Exchange], max_bytes: int | None = None) -> list[Exchange]:
    """Return exchanges as JSON in their current state. ``max_bytes`` limits the total size of all replies."""
    found = [_exchange_to_json(each) for each in exchanges]
    if max_bytes is None:
        return found
    left = max_bytes
    for each in found:
        left -= len(each.get("reply", "")) + len(json.dumps(each["results"], default=str))
        if left < 0:
            each.update({"reply": "", "results": [], "unread": _TOO_LARGE})
    return found


def _exchange_to_json(exchange: Exchange) -> Exchange:
    reply = exchange.get("reply")
    if isinstance(reply, _ReplyPieces) and "unread" not in exchange:
        return reply.add_reply_to(exchange)
    if reply is None and "failed" not in exchange and "unread" not in exchange:
        return {**exchange, "unread": "a model request that was still pending when the agent answered"}
    return {**exchange, "reply": ""} if reply is not None else dict(exchange)
