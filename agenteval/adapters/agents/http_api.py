"""The interface shared by all APIs of HTTP agents. An API converts conversations to requests, and replies to
answers."""

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
    """The JSON body, or ``None`` for a GET request."""
    url: str = ""
    """The URL, or an empty string for the agent's endpoint."""
    headers: Mapping[str, str] | None = None
    """The headers that replace the agent's headers, or ``None`` to send the agent's headers."""


@dataclass(frozen=True)
class PendingAnswer:
    """An answer that is not available yet."""

    request: ApiRequest
    """The GET request that polls for the answer."""
    after_s: float
    """The number of seconds to wait before polling."""
    state: str
    """The current state, as named by the agent."""


class AgentFailure(Exception):  # noqa: N818  # it becomes an AgentError where the endpoint is known
    """Raised for a failure that the agent itself reports. ``words`` is the agent's own message, which can be
    quoted."""

    def __init__(self, what: str, words: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.words = words


class Api(Protocol):
    """One conversation with an agent through one API. An implementation may store a session ID."""

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        """Build a request that contains the entire conversation or only the new messages."""

    def read(self, reply: HttpReply) -> ReadReply | PendingAnswer:
        """Read the reply to the last request.

        Raise ``UnreadableResponseError`` if the reply is not a complete answer, and ``AgentFailure`` if it
        reports a failure."""

    def error_in(self, reply: HttpReply) -> Any:
        """Return the error that a reply contains instead of an answer, or ``None`` if there is no error."""

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        """Return what an incomplete answer reveals about the turn, or ``None`` if it reveals nothing.

        Raise no errors other than ``UnreadableResponseError`` or ``AgentError``."""


def infer_api(endpoint: str) -> ApiName:
    """Infer the API from the URL. Two paths are recognized; all others are assumed to be chat completions."""
    try:
        path = urlsplit(endpoint).path.rstrip("/")
    except ValueError:
        path = ""
    if path.endswith("/v1/responses"):
        return "responses"
    return "messages" if path.endswith("/v1/messages") else "chat_completions"


def find_model_api_error(reply: HttpReply) -> Any:
    """Find the error in a language model API's reply, as ``Api.error_in`` does."""
    return find_error_in_texts([reply.text] if reply.events is None else reply.events)


def parse_reply_json(text: str) -> Any:
    """Parse the JSON value in a reply. Raise ``UnreadableResponseError`` if the reply is not valid JSON."""
    try:
        value = json.loads(text, object_pairs_hook=chat.keep_duplicate_keys)
    except (ValueError, RecursionError):
        raise UnreadableResponseError(describe_non_json(text), text) from None
    return require_storable(value)


def require_storable(value: Any) -> Any:
    """Return a JSON value without lone surrogates, because files cannot contain them.

    Raise ``UnreadableResponseError`` for a value that is nested too deeply."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise UnreadableResponseError("is nested too deeply") from None
    if not _SURROGATE.search(text):
        return value
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(whole, object_pairs_hook=chat.keep_duplicate_keys)
