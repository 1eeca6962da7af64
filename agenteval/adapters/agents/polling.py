"""Poll asynchronous jobs. The first reply does not contain the answer yet but shows where it will be
available."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote as url_part
from urllib.parse import urljoin, urlsplit

from pydantic import Field

from agenteval.adapters.agents.http_api import AgentFailure, ApiRequest, PendingAnswer
from agenteval.adapters.agents.reply_paths import (
    ReplyDocument,
    ReplyPaths,
    is_one_of,
    refuse_errors,
    value_at,
)
from agenteval.adapters.agents.request_template import fill_request_text
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.json_text import as_text
from agenteval.core.value import ListOf, Number, Text, Value
from agenteval.messages.completion import UnreadableResponseError
from agenteval.messages.record_paths import MISSING, find_value

DONE_STATUSES = ("completed", "complete", "done", "finished", "succeeded", "success", "successful", "ok")
FAILED_STATUSES = (
    *("failed", "failure", "error", "errored", "cancelled", "canceled", "aborted", "expired", "rejected"),
    *("timed_out", "timeout"),
)
_WORDS = ("error", "message", "detail", "reason")


class PollOptions(Value):
    """Options for polling a job.

    If neither ``job`` nor ``url`` is set, the reply's ``Location`` header contains the address. The job is
    pending until its state is listed in ``done`` or ``failed``."""

    status: Text | None = None
    """Path of the job's state in a reply."""
    job: Text | None = None
    """Path of the job's ID or URL in the first reply."""
    url: Text | None = None
    """URL to poll, with the placeholder ${job}; relative to the endpoint."""
    done: ListOf[Text] = DONE_STATUSES
    """States that indicate that a job has finished."""
    failed: ListOf[Text] = FAILED_STATUSES
    """States that indicate that a job has failed."""
    every_s: Annotated[Number, Field(gt=0)] = 1.0
    """Polling interval in seconds."""


class Job:
    """A single answer that requires several requests."""

    def __init__(self, options: PollOptions, paths: ReplyPaths, endpoint: str, asked: ApiRequest) -> None:
        self._options = options
        self._paths = paths
        self._endpoint = endpoint
        self._asked = asked
        self._url = ""

    def next_poll(self, reply: HttpReply, document: ReplyDocument) -> PendingAnswer | None:
        """Return the time and the address of the next poll, or ``None`` once the job is done.

        Raise ``AgentFailure`` if the job failed, and ``UnreadableResponseError`` if the reply cannot be read.
        """
        status = self._status(document)
        if status is not MISSING:
            if is_one_of(status, self._options.done):
                return None
            if is_one_of(status, self._options.failed):
                raise AgentFailure(f"the job is '{as_text(status)}'", self._failure_text(document))
        refuse_errors(document, self._paths)
        self._url = self._url or self._job_url(reply, document)
        state = "running" if status is MISSING else as_text(status)
        return PendingAnswer(ApiRequest(None, self._url, self._asked.headers), self._options.every_s, state)

    def _status(self, document: ReplyDocument) -> Any:
        path = self._options.status or ""
        first = not self._url
        if first and all(find_value(event, path.removesuffix("?")) is MISSING for event in document.events):
            return MISSING  # the reply that starts a job need not contain its state
        return value_at(document, path, "poll.status")

    def _failure_text(self, document: ReplyDocument) -> str:
        last = document.events[-1]
        paths = [self._paths.error.removesuffix("?")] if isinstance(self._paths.error, str) else []
        candidates = (find_value(last, path) for path in (*paths, *_WORDS))
        words = next((value for value in candidates if value is not MISSING and value), None)
        if isinstance(words, Mapping) and isinstance(words.get("message"), str):
            words = words["message"]
        return "" if words is None else as_text(words)

    def _job_url(self, reply: HttpReply, document: ReplyDocument) -> str:
        options = self._options
        if options.job is None and options.url is None:
            found = reply.headers.get("operation-location") or reply.headers.get("location")
            if not found:
                what = (
                    "has no Location header with the job's address, and `poll.job` is not set; its headers"
                    " are"
                )
                raise UnreadableResponseError(what, ", ".join(reply.headers))
        else:
            job = "" if options.job is None else as_text(value_at(document, options.job, "poll.job"))
            if options.url and options.url != "${job}":
                job = url_part(job, safe="")
            found = fill_request_text(options.url or "${job}", {"job": job}) or ""
        url = urljoin(self._endpoint, found)
        allowed = {_origin(self._endpoint), _origin(urljoin(self._endpoint, options.url or ""))}
        if _origin(url) not in allowed:
            what = "refers to a job on another server, to which the agent's headers would be sent"
            raise UnreadableResponseError(f"{what} (set `poll.url` if this is intended)", url)
        return url


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.scheme, parts.netloc
