"""Agents that speak A2A, JSON-RPC over HTTP: version 1.0, and 0.3 where a server knows no other.

The standard has neither tool calls nor usage: what such an agent does is not seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from agenteval.adapters.agents.http_api import AgentFailure, Ask, Known, Later, error_inside, json_of
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import InfrastructureError
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.trajectory import Message
from agenteval.messages.completion import Unreadable


class _Version(NamedTuple):
    name: str
    send: str
    get: str
    role: str
    part: Mapping[str, str]


_VERSIONS = {
    "1.0": _Version("1.0", "SendMessage", "GetTask", "ROLE_USER", {}),
    "0.3": _Version("0.3", "message/send", "tasks/get", "user", {"kind": "text"}),
}
_NEWEST, _OLD = "1.0", "0.3"
_VERSION = "version"
_UNKNOWN_METHOD = (-32601, -32009)
"""The method is not known, or the version: such a request was not carried out."""
_WORKING = frozenset(("submitted", "working", "unspecified", "unknown"))
_ENDED = frozenset(("completed", "failed", "canceled", "cancelled", "rejected", "input-required"))


class A2aApi:
    """A conversation: one context of the server's, and a task for each answer."""

    def __init__(self, known: Known, headers: Mapping[str, str], *, every_s: float) -> None:
        self._known = known
        self._headers = headers
        self._every_s = every_s
        self._context: str | None = None
        self._task: str | None = None
        self._text = ""
        self._version = _VERSIONS[_NEWEST]

    def ask(self, messages: list[Message], tools: TurnTools) -> Ask:
        said = next((m.get("content") for m in reversed(messages) if m.get("role") == "user"), "")
        self._text = said if isinstance(said, str) else json.dumps(said)
        return self._send()

    def _send(self) -> Ask:
        version = self._version = _VERSIONS[self._known.learned.get(_VERSION, _NEWEST)]
        message: dict[str, Any] = {
            "messageId": uuid4().hex,
            "role": version.role,
            "parts": [{**version.part, "text": self._text}],
        }
        if version.name == _OLD:
            message["kind"] = "message"
        message |= {k: v for k, v in (("contextId", self._context), ("taskId", self._task)) if v}
        return self._call(version.send, {"message": message})

    def _call(self, method: str, params: Mapping[str, Any]) -> Ask:
        version = self._version.name
        body = {"jsonrpc": "2.0", "id": uuid4().hex, "method": method, "params": params}
        given = {name.lower() for name in self._headers}
        added = {} if "a2a-version" in given else {"A2A-Version": version}
        return Ask(body, headers={**self._headers, **added})

    def read(self, reply: HttpReply) -> AgentReply | Later:
        result = self._result(reply)
        if isinstance(result, Later):
            return result
        kind, held = _held(result)
        if kind == "message":
            self._context = _word(held, "contextId") or self._context
            self._task = None
            return AgentReply(text=_said(held.get("parts")))
        self._context = _word(held, "contextId") or self._context
        return self._of_task(held)

    def error_in(self, reply: HttpReply) -> Any:
        return error_inside(reply)

    def seen(self, reply: HttpReply) -> None:
        """The standard shows nothing of what an agent did."""

    def _result(self, reply: HttpReply) -> Mapping[str, Any] | Later:
        document = json_of(reply.text if reply.events is None else "".join(reply.events[-1:]))
        if not isinstance(document, Mapping):
            raise Unreadable("is not JSON-RPC", reply.text)
        error = document.get("error")
        if error:
            code = error.get("code") if isinstance(error, Mapping) else None
            is_newest = self._version.name == _NEWEST and self._known.learned.get(_VERSION) != _NEWEST
            if code in _UNKNOWN_METHOD and is_newest:
                self._known.learned[_VERSION] = _OLD
                return Later(self._send())
            raise Unreadable("is an error", json.dumps(error, ensure_ascii=False))
        result = document.get("result")
        if not isinstance(result, Mapping):
            raise Unreadable("has no `result`; there is", ", ".join(document))
        self._known.learned.setdefault(_VERSION, self._version.name)
        return result

    def _of_task(self, task: Mapping[str, Any]) -> AgentReply | Later:
        status = task.get("status")
        status = status if isinstance(status, Mapping) else {}
        state = str(status.get("state") or "").removeprefix("TASK_STATE_").lower().replace("_", "-")
        task_id = _word(task, "id")
        if state in _WORKING and task_id:
            return Later(self._call(self._version.get, {"id": task_id}), self._every_s, state)
        words = _said(_object(status, "message").get("parts"))
        self._task = task_id if state == "input-required" else None
        if state in ("completed", "input-required"):
            return AgentReply(text=_of_artifacts(task) or words or _last_words(task))
        if state == "rejected" and words:
            return AgentReply(text=words)  # to decline is an answer
        if state == "auth-required":
            raise InfrastructureError(f"the agent asks for credentials: {words or state}", is_final=True)
        if state not in _ENDED:
            raise Unreadable(f"has a task in the state '{state}', which A2A does not have")
        raise AgentFailure(f"the task is {state}", words)


def _held(result: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The message or the task in a result: by its key in 1.0, by its ``kind`` in 0.3."""
    for kind in ("message", "task"):
        if isinstance(held := result.get(kind), Mapping):
            return kind, held
    if "parts" in result:
        return "message", result
    if "status" in result:
        return "task", result
    raise Unreadable("has neither a message nor a task; there is", ", ".join(result))


def _of_artifacts(task: Mapping[str, Any]) -> str:
    artifacts = task.get("artifacts")
    told = [_said(each.get("parts")) for each in _objects(artifacts)]
    return "\n\n".join(filter(None, told))


def _last_words(task: Mapping[str, Any]) -> str:
    for message in reversed(list(_objects(task.get("history")))):
        if str(message.get("role")) in ("ROLE_AGENT", "agent"):
            return _said(message.get("parts"))
        break
    return ""


def _said(parts: Any) -> str:
    """The text of parts; data without a text as JSON."""
    found = list(_objects(parts))
    text = "\n".join(part["text"] for part in found if isinstance(part.get("text"), str))
    if text:
        return text
    data = [part["data"] for part in found if part.get("data") is not None]
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in data)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    given: Sequence[Any] = value if isinstance(value, list) else ()
    yield from (each for each in given if isinstance(each, Mapping))


def _object(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _word(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
