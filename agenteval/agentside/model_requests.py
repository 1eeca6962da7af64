"""What an agent's clients ask of models, and what these answer, heard where ``httpx`` and ``httpx2`` send.

The clients of OpenAI, Anthropic, Google (but for ``aiohttp``), Ollama, LiteLLM and others send by these two
libraries, under whatever framework. A request is a model's if both its address and its body are those of a
known interface; whatever else an application sends is left alone. What is noted goes to the tool world of the
conversation that the code runs for. A request whose conversation is not known is sent like any other; but
then no conversation that was open can be judged.

A streamed reply is noted while the agent reads it: what it has not read it cannot have acted upon.
"""

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
"""A request with what came of it, as JSON once ``as_json`` was asked for it:

- ``dialect``: the interface, a key of ``DIALECTS``; empty where it is not understood
- ``results``: messages in the dialect's form, with the results of tools that no request before has brought
- ``offers_tools``: whether the model was offered any; ``forced``: the one that it had to ask for
- ``framework``: the hooked framework that sent it; empty for a plain loop
- ``reply``: the text of the reply as far as it was read; ``failed``: why there is none; ``unread``: why it is
  not known
- ``is_fetched``: it asks for a response that was begun before; ``forked``: it stands for a process
"""

DIALECTS = {
    "chat": ("/chat/completions",),
    "responses": ("/responses",),
    "anthropic": ("/messages", ":rawPredict", ":streamRawPredict"),
    "gemini": (":generateContent", ":streamGenerateContent"),
    "ollama": ("/api/chat",),
}
"""How the addresses of each interface end."""
_NO_CALL_PATHS = ("/count_tokens", "/input_tokens", "/compact", "/cancel", "/input_items", ":countTokens")
"""Ends of addresses at which a model is given tools and asks for none."""
_NO_TOOL_PATHS = frozenset(
    (
        *("embeddings", "moderations", "models", "files", "uploads", "images", "audio", "vector_stores"),
        *("fine_tuning", "conversations", "completions", "complete", "batches"),
    )
)
"""Parts of addresses at which no model asks for a tool."""
_MODEL_USER_AGENTS = ("openai/python", "anthropic/python")
"""How the clients of models name themselves: what they send is a model's, whatever the address."""
MAX_MODEL_REPLY_BYTES = 8 * 2**20
"""Bytes of a reply that are kept."""

_EXCLUDED_CLIENTS: WeakSet[Any] = WeakSet()
_SEEN_RESULTS: WeakKeyDictionary[World, list[list[int]]] = WeakKeyDictionary()
"""The results that the requests of each conversation brought, request by request."""
_MAX_SEEN_REQUESTS = 16
"""So many requests with results are compared with the next one."""


def exclude_client(client: Any) -> None:
    """Do not listen to a client of agenteval's own, in the same process."""
    _EXCLUDED_CLIENTS.add(client)


def patch_clients(sync: Any, asynchronous: Any) -> None:
    """Listen to the clients of an HTTP library, by their classes, from now on."""
    for client, wrap in ((sync, _observed_send), (asynchronous, _observed_send_async)):
        if not hasattr(client.send, _MARK):  # one library may stand under both names
            client.send = wrap(client.send)
            setattr(client.send, _MARK, True)
    if not _forks and hasattr(os, "register_at_fork"):
        _forks.append(True)
        os.register_at_fork(after_in_parent=_note_fork)


_MARK = "agenteval_listens"
_forks: list[bool] = []


def _note_fork() -> None:
    """A child asks with the clients that it inherited, and nobody hears it."""
    world = worlds.current_world()
    if world is not None:
        what = "the agent forked a process, whose requests to models are not seen"
        world.record_exchange({"results": [], "unread": what, "forked": True})


# ── a request ────────────────────────────────────────────────────────────────────────────────────


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
    """What is known of a request of an agent's to a model; ``None``: it is of nobody, or of no concern."""
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
    except Exception as error:  # never the agent's: what went wrong is ours
        exchange = {"results": [], "unread": f"a request to a model ({type(error).__name__}: {error})"}
    if world is None or not world.record_exchange(exchange):
        _record_untracked_request()
        return None
    return exchange


def _record_untracked_request() -> None:
    what = (
        "a request to a model came from a thread that agenteval cannot follow, so calls may have been missed"
    )
    open_worlds = worlds.open_worlds()
    more = worlds.describe_suspects(world.name for world in open_worlds)
    for world in open_worlds:
        world.record_fault(f"{what}; start the thread in the turn that it works for{more}")


def _calling_framework() -> str:
    """The hooked framework whose code is on the stack."""
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
    """A request as far as it is of concern."""
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
        return {"dialect": "", "results": [], "unread": f"a request to {path}, which is not understood"}
    return None


def _is_from_model_client(request: Any, path: str) -> bool:
    user_agent = str(request.headers.get("user-agent") or "").lower()
    return any(name in user_agent for name in _MODEL_USER_AGENTS) and _NO_TOOL_PATHS.isdisjoint(
        path.split("/")
    )


def _json_body(request: Any, *, is_known: bool) -> dict[str, Any]:
    """The body as an object; empty for what is none, or is of no concern."""
    if "json" not in str(request.headers.get("content-type") or ""):
        return {}
    try:
        content = request.content
        body = json.loads(content) if is_known or b'"tools"' in content else None
    except (ValueError, RecursionError, RuntimeError):  # no JSON, too deep, or a stream
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
"""Whether a body is one of the interface."""


def _forced_tool(body: dict[str, Any]) -> str:
    """The one function that the model had to ask for: so clients ask for an answer of a certain form."""
    config = body.get("toolConfig") or body.get("tool_config")
    if isinstance(config, dict):
        return _only_allowed_function(config)
    choice = body.get("tool_choice") or body.get("function_call")
    if isinstance(choice, dict):
        return _tool_name(choice)
    return _tool_name(_only_tool(body)) if choice in ("required", "any") else ""


def _only_allowed_function(config: dict[str, Any]) -> str:
    """Gemini's form."""
    calling = config.get("functionCallingConfig") or config.get("function_calling_config") or {}
    names: Any = calling.get("allowedFunctionNames") or calling.get("allowed_function_names") or ()
    return str(names[0]) if calling.get("mode") == "ANY" and len(names) == 1 else ""


def _only_tool(body: dict[str, Any]) -> dict[str, Any]:
    tools = body.get("tools")
    only = tools[0] if isinstance(tools, list) and len(tools) == 1 else None
    return only if isinstance(only, dict) else {}


def _tool_name(tool: dict[str, Any]) -> str:
    """Some interfaces have a function's name in its ``function``."""
    inner = tool.get("function")
    return str((inner if isinstance(inner, dict) else tool).get("name") or "")


# ── the results that it brings ───────────────────────────────────────────────────────────────────


def _tool_results(dialect: str, body: dict[str, Any]) -> Iterator[Any]:
    """The messages of a request with results of tools, without what else is in them."""
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
    """Without those that an earlier request brought: a conversation is sent again each time."""
    earlier = _SEEN_RESULTS.setdefault(world, [])
    hashes = [hash(json.dumps(each, sort_keys=True)) for each in results]
    known = max((_matching_prefix(hashes, those) for those in earlier), default=0)
    if hashes:
        earlier.append(hashes)
        del earlier[:-_MAX_SEEN_REQUESTS]
    return list(results[known:])


def _matching_prefix(these: list[int], those: list[int]) -> int:
    """How many of ``these`` are those, if these begin with them: they may be of another conversation."""
    return len(those) if these[: len(those)] == those else 0


# ── what came back ───────────────────────────────────────────────────────────────────────────────


def _record_response(exchange: Exchange, response: Any) -> None:
    """Never raises: the agent gets what it would have got."""
    try:
        if response.status_code >= 400:
            exchange["failed"] = f"HTTP {response.status_code}"
            return
        pieces = exchange["reply"] = _ReplyPieces(response)
        try:
            pieces.add(response.content)
        except RuntimeError:  # it is a stream, and was not read
            _tee(response, pieces)
    except Exception as error:
        exchange["unread"] = f"a reply of a model ({type(error).__name__}: {error})"


class _ReplyPieces:
    """What was read of a reply."""

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
            # Whatever reads the text, or events, of a reply passes through ``iter_bytes``.
            return {**exchange, "reply": "", "unread": "a reply of a model that was read as raw bytes"}
        return {**exchange, "reply": b"".join(list(self._pieces)).decode("utf-8", "replace")}


_TOO_LARGE = f"a reply of a model of more than {MAX_MODEL_REPLY_BYTES // 2**20} MiB"


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
    """Return exchanges as JSON, as they are now. ``most``: bytes of all their replies together."""
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
        return {**exchange, "unread": "a request to a model was under way when the agent answered"}
    return {**exchange, "reply": ""} if reply is not None else dict(exchange)
