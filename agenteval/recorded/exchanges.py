"""Where a record keeps its messages: by themselves, or as a logged request with its response. Pure.

Known are the requests and responses of OpenAI (both of its interfaces), Anthropic, Google and Ollama, as
proxies and tracers log them: as objects or as JSON text, in a body or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agenteval.recorded.messages import is_agents, is_message

MESSAGES = ("messages", "conversation", "conversations", "trajectory", "traj", "history", "chat", "dialogue",
            "dialog", "turns", "transcript", "items", "contents", "input")  # fmt: skip
"""Where the messages of a record may be; the first that holds a list counts."""
_PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("body", "response"),
    ("input", "output"),
    ("inputs", "outputs"),
    ("kwargs", "response_obj"),
)
"""Names of a request beside those of its response."""
_BODIES = ("body", "request_body", "response_body", "json", "data")
_SETTINGS = ("model_parameters", "modelParameters", "optional_params", "invocation_params")
"""Where a tracer keeps what else a request said, its tools among it."""


class Logged(NamedTuple):
    """The messages of a record, its answer among them. ``requests``: objects beside the record that may say
    more: the request, its settings. ``response``: the body that came back, empty where none is known.
    ``is_unanswered``: there is a response in which no message was found."""

    messages: list[Any]
    requests: tuple[Mapping[str, Any], ...] = ()
    response: Mapping[str, Any] = {}
    is_unanswered: bool = False


def logged_in(record: Mapping[str, Any]) -> Logged | None:
    """What a record holds of a conversation; ``None``: nothing."""
    for key in MESSAGES:
        found = _list_in(record.get(key))
        if found is not None:
            return _with_reply(record, key, found)
    return _exchange_in(record)


def is_exchange(record: Mapping[str, Any]) -> bool:
    """Whether an object is a request with its response, and not a container of such."""
    return _exchange_in(record) is not None


def _with_reply(record: Mapping[str, Any], key: str, messages: list[Any]) -> Logged:
    """The answer to logged requests stands apart: ``output`` of responses, ``choices`` of completions."""
    inner = _object(record[key])
    requests = tuple(filter(None, (inner, *_settings(record))))
    own = record if "choices" in record else None
    apart = (record.get("output") if key == "input" else None, own, record.get("response"))
    for response in apart:
        if reply := _reply_in(response, messages):
            return Logged(messages + reply, requests, _object(response))
    return Logged(messages, requests)


def _exchange_in(record: Mapping[str, Any]) -> Logged | None:
    for asked, answered in _PAIRS:
        request = _body(record.get(asked))
        messages = _asked_in(request)
        if messages is not None:
            response = _body(record.get(answered))
            reply = _reply_in(record.get(answered), messages)
            requests = (request, *_settings(request), *_settings(record))
            is_answered = bool(reply) or (bool(messages) and is_agents(messages[-1]))
            return Logged(messages + reply, requests, response, is_unanswered=not is_answered)
    return None


def _settings(fields: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return filter(None, (_object(fields.get(key)) for key in _SETTINGS))


def _asked_in(request: Mapping[str, Any]) -> list[Any] | None:
    for key in MESSAGES:
        found = _list_in(request.get(key))
        if found is not None:
            return found
    text = request.get("input")  # one message may be a plain text
    return [{"role": "user", "content": text}] if isinstance(text, str) and "model" in request else None


def _list_in(value: Any) -> list[Any] | None:
    """A list, one written as JSON text, or one in an object of its own; of a batch of one, that one."""
    value = _read(value)
    if isinstance(value, dict):
        value = next((value[key] for key in MESSAGES if isinstance(value.get(key), list)), None)
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], list) else value
    return None


def _read(value: Any) -> Any:
    """What a JSON text holds; anything else, and what is no JSON, as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _object(value: Any) -> Mapping[str, Any]:
    value = _read(value)
    return value if isinstance(value, dict) else {}


def _body(value: Any) -> Mapping[str, Any]:
    """A request or a response without what stands around it."""
    found = _object(value)
    apart = () if any(key in found for key in MESSAGES) else _BODIES
    return next(filter(None, (_object(found.get(key)) for key in apart)), found)


# ── what came back ───────────────────────────────────────────────────────────────────────────────


def _reply_in(response: Any, messages: list[Any]) -> list[Any]:
    """The messages of a response that are not among ``messages`` yet. A plain text is an answer where one is
    missing."""
    read = _read(response)
    if isinstance(read, str):
        return _as_answer(read, messages)
    found = _said_in(read)
    if not found and isinstance(response, str) and not _is_refusal(read):
        return _as_answer(response, messages)  # an answer in JSON, as it was asked for
    return [] if messages and found == messages[-1:] else found


def _as_answer(text: str, messages: list[Any]) -> list[Any]:
    if not text.strip() or (messages and is_agents(messages[-1])):
        return []
    return [{"role": "assistant", "content": text}]


def _said_in(response: Any) -> list[Any]:
    if isinstance(response, list):
        return response if response and all(map(is_message, response)) else []
    if not isinstance(response, dict) or _is_refusal(response):
        return []
    for part in (_first(response, "choices"), _first(response, "generations"), response):
        if isinstance(message := part.get("message"), dict):
            return [{"role": "assistant", **message} if "kwargs" not in message else message]
    if isinstance(content := _first(response, "candidates").get("content"), dict):
        return [{"role": "model", **content}]
    if isinstance(text := _first(response, "choices").get("text"), str):
        return [{"role": "assistant", "content": text}]
    if isinstance(response.get("role"), str) and ("content" in response or "tool_calls" in response):
        return [response]
    if isinstance(output := response.get("output"), list):
        return list(output)
    for key in _BODIES:
        inner = _read(response.get(key))
        if isinstance(inner, str) and inner.strip():
            return [{"role": "assistant", "content": inner}]
        if found := _said_in(inner):
            return found
    return []


def _first(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The first object of a list, or of the first list in it."""
    value = fields.get(key)
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}


def _is_refusal(response: Any) -> bool:
    """Whether a server said that something went wrong: that is nothing the agent said."""
    if not isinstance(response, dict):
        return False
    codes = (response.get(key) for key in ("status", "status_code", "statusCode"))
    return bool(response.get("error")) or any(isinstance(code, int) and code >= 400 for code in codes)
