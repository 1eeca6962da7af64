"""Any JSON API that is described by the keys ``request`` and ``reply``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from agenteval.adapters.agents.http_api import ApiRequest, PendingAnswer
from agenteval.adapters.agents.mcp_server import mcp_url
from agenteval.adapters.agents.polling import Job, PollOptions
from agenteval.adapters.agents.reply_paths import (
    ReplyPaths,
    extract_partial_reply,
    extract_reply_answer,
    extract_session,
    parse_document,
    refuse_errors,
)
from agenteval.adapters.agents.request_template import (
    fill_request_template,
    fill_request_text,
    names_in,
    template_values,
)
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message
from agenteval.messages.completion import UnreadableResponseError

_STREAMS = "text/event-stream, application/x-ndjson, application/json;q=0.9"
_FIT_FOR_HEADER = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class Template:
    """An author's description of a JSON API."""

    endpoint: str
    headers: Mapping[str, str]
    request: Mapping[str, Any]
    reply: ReplyPaths
    poll: PollOptions | None
    streaming: bool

    @property
    def names(self) -> frozenset[str]:
        """The names of the placeholders in a request."""
        outside = (self.endpoint, *self.headers.values())
        return frozenset((*names_in(self.request), *(n for text in outside for n in names_in(text))))


class TemplateApi:
    """One conversation with a JSON API described by a template.

    If ``reply.session`` is set, the server creates the session ID; otherwise, agenteval creates it."""

    def __init__(self, template: Template, warn: Callable[[str], None]) -> None:
        self._template = template
        self._warn = warn
        self._names = template.names
        makes_session = "session" in self._names and template.reply.session is None
        self._session: str | None = uuid4().hex if makes_session else None
        self._job: Job | None = None

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        template = self._template
        if tools.turn and self._names.isdisjoint(("messages", "session")):
            self._warn(
                "`request` has neither ${messages} nor ${session}, so the agent gets each message without"
                " the preceding conversation"
            )
        values = template_values(
            self._names,
            messages,
            session=self._session,
            tools=tools.schemas,
            turn=tools.turn,
            mcp_url=mcp_url(),
            database=tools.database.path if tools.database else "",
        )
        headers = {name: _fill(value, values) for name, value in template.headers.items()}
        sent_headers = {name: value for name, value in headers.items() if value is not None}
        if template.streaming and "accept" not in {name.lower() for name in sent_headers}:
            sent_headers["Accept"] = _STREAMS
        request = ApiRequest(
            fill_request_template(template.request, values),
            _fill(template.endpoint, values) or "",
            sent_headers,
        )
        self._job = Job(template.poll, template.reply, request.url, request) if template.poll else None
        return request

    def read(self, reply: HttpReply) -> ReadReply | PendingAnswer:
        template = self._template
        paths = template.reply
        document = parse_document(reply, paths, streaming=template.streaming)
        if self._job:
            later = self._job.next_poll(reply, document)
            if later:
                self._read_session(reply, document, is_last=False)
                return later
        refuse_errors(document, paths)
        self._read_session(reply, document, is_last=True)
        return extract_reply_answer(document, paths)

    def error_in(self, reply: HttpReply) -> Any:
        paths = self._template.reply
        try:
            refuse_errors(parse_document(reply, paths, streaming=self._template.streaming), paths)
        except UnreadableResponseError as unreadable:
            return unreadable.error
        return None

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        return extract_partial_reply(reply, self._template.reply, streaming=self._template.streaming)

    def _read_session(self, reply: HttpReply, document: Any, *, is_last: bool) -> None:
        """Read the session ID. At least one of a job's replies must contain the ID."""
        known = self._session if is_last else (self._session or "")
        found = extract_session(reply, document, self._template.reply, known=known) or None
        if found and not _FIT_FOR_HEADER.fullmatch(found) and self._is_in_headers:
            raise UnreadableResponseError("contains a session that cannot be sent in a header", found)
        self._session = found

    @property
    def _is_in_headers(self) -> bool:
        return any("session" in names_in(value) for value in self._template.headers.values())


def _fill(template: str, values: Mapping[str, Any]) -> str | None:
    return fill_request_text(template, values) if "${session}" in template else template
