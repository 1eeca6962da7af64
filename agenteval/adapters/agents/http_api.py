"""The common part of all APIs of HTTP agents: conversations become requests, replies become answers."""

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
    """A request to an agent."""

    body: Mapping[str, Any] | None
    """The JSON body; ``None`` for a GET."""
    url: str = ""
    """The URL; empty for the agent's endpoint."""
    headers: Mapping[str, str] | None = None
    """The headers, in place of the agent's; ``None`` for the agent's."""


@dataclass(frozen=True)
class PendingAnswer:
    """An answer that is not there yet."""

    request: ApiRequest
    """The GET that asks for it again."""
    after_s: float
    """The seconds to wait before that."""
    state: str
    """The agent's own name for its current state."""


class AgentFailure(Exception):  # noqa: N818  # it becomes an AgentError where the endpoint is known
    """Raised for a failure that an agent reports itself. ``words`` are its own, for quoting."""

    def __init__(self, what: str, words: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.words = words


class Api(Protocol):
    """One conversation with an agent through one API. It may remember a session."""

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        """Build the request that carries the conversation, or what is new in it."""

    def read(self, reply: HttpReply) -> ReadReply | PendingAnswer:
        """Read the reply to the last request.

        Raises ``UnreadableResponseError`` if it is no complete answer, and ``AgentFailure``."""

    def error_in(self, reply: HttpReply) -> Any:
        """Return the error that a reply holds in place of an answer; ``None`` if it holds none."""

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        """Return what an incomplete answer shows of the turn; ``None`` if nothing.

        Raises only ``UnreadableResponseError`` and ``AgentError``."""


def infer_api(endpoint: str) -> ApiName:
    """Infer the API from an address: two paths are known, and all others are chat completions."""
    try:
        path = urlsplit(endpoint).path.rstrip("/")
    except ValueError:
        path = ""
    if path.endswith("/v1/responses"):
        return "responses"
    return "messages" if path.endswith("/v1/messages") else "chat_completions"


def find_model_api_error(reply: HttpReply) -> Any:
    """Find an error as ``Api.error_in`` does, for the APIs of language models."""
    return find_error_in_texts([reply.text] if reply.events is None else reply.events)


def parse_reply_json(text: str) -> Any:
    """Parse the JSON value in a reply. Raises ``UnreadableResponseError``."""
    try:
        value = json.loads(text, object_pairs_hook=chat.keep_duplicate_keys)
    except (ValueError, RecursionError):
        raise UnreadableResponseError(describe_non_json(text), text) from None
    return require_storable(value)


def require_storable(value: Any) -> Any:
    """Return a JSON value without lone surrogates, which no file can hold.

    Raises ``UnreadableResponseError`` for a value that is nested too deeply."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise UnreadableResponseError("is nested too deeply") from None
    if not _SURROGATE.search(text):
        return value
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(whole, object_pairs_hook=chat.keep_duplicate_keys)
