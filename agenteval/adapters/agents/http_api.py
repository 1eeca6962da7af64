"""What every API of an HTTP agent has in common: a conversation becomes requests, replies become answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from agenteval.adapters.transport.client import HttpReply
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message
from agenteval.messages import chat
from agenteval.messages.completion import UnreadableResponseError, describe_non_json
from agenteval.messages.error_status import find_error_in_texts

ApiName: TypeAlias = Literal["chat_completions", "responses", "messages"]
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class ApiRequest:
    """A request. ``body``: sent as JSON; without one it is a GET. ``url``: empty for the agent's endpoint.
    ``headers``: instead of those of the agent; ``None``: those."""

    body: Mapping[str, Any] | None
    url: str = ""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class PendingAnswer:
    """The answer is not there yet: ``ask`` for it, by a GET. ``state``: what the agent says that it does
    meanwhile."""

    request: ApiRequest
    after_s: float
    state: str


class AgentFailure(Exception):  # noqa: N818  # it becomes an AgentError where the endpoint is known
    """A failure that an agent reports itself. ``words`` are its own, for quoting."""

    def __init__(self, what: str, words: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.words = words


class Api(Protocol):
    """One conversation with an agent, in the form of one API. It may remember a session."""

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        """The request that carries the conversation, or what is new in it."""

    def read(self, reply: HttpReply) -> ReadReply | PendingAnswer:
        """What came of the last request. Raises ``Unreadable`` for what is not a complete answer, and
        ``AgentFailure``."""

    def error_in(self, reply: HttpReply) -> Any:
        """The error that a reply holds in place of an answer; ``None``: it holds none."""

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        """What a reply that is no complete answer tells of the turn; ``None``: nothing. Raises nothing but
        ``Unreadable`` and ``AgentError``."""


def infer_api(endpoint: str) -> ApiName:
    """The API at an address: two paths are known, and all others are chat completions."""
    try:
        path = urlsplit(endpoint).path.rstrip("/")
    except ValueError:
        path = ""
    if path.endswith("/v1/responses"):
        return "responses"
    return "messages" if path.endswith("/v1/messages") else "chat_completions"


def find_model_api_error(reply: HttpReply) -> Any:
    """``Api.error_in`` of the APIs of language models."""
    return find_error_in_texts([reply.text] if reply.events is None else reply.events)


def parse_reply_json(text: str) -> Any:
    """The JSON value in a reply. Raises ``Unreadable``."""
    try:
        value = json.loads(text, object_pairs_hook=chat.keep_duplicate_keys)
    except (ValueError, RecursionError):
        raise UnreadableResponseError(describe_non_json(text), text) from None
    return require_storable(value)


def require_storable(value: Any) -> Any:
    """A JSON value without halves of surrogate pairs, which no file can hold. Raises ``Unreadable`` for one
    that is nested too deeply."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise UnreadableResponseError("is nested too deeply") from None
    if not _SURROGATE.search(text):
        return value
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(whole, object_pairs_hook=chat.keep_duplicate_keys)
