"""Models for tests of what asks them: fixed replies, requests kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from agenteval.core.errors import UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.trajectory import Usage

USAGE = Usage(calls=1, input_tokens=100, output_tokens=10)


class FakeModel:
    """Answers each request with ``reply``: keys and values, a function of the request, or an error to
    raise. What has not the asked shape is an unreadable reply, as it is of a real model."""

    def __init__(self, reply: Mapping[str, Any] | Callable[[ModelRequest], Any] | Exception) -> None:
        self._reply = reply
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = self._reply(request) if callable(self._reply) else self._reply
        if isinstance(reply, Exception):
            raise reply
        try:
            value = request.reply.model_validate(reply)
        except ValidationError as error:
            raise UnreadableReplyError(str(error), raw=str(reply)) from error
        if flaw := request.flaw_in(value, True):
            raise UnreadableReplyError(flaw, raw=str(reply), is_flawed=True)
        return ModelReply(value, USAGE, "fake/model", scripted=True)

    async def aclose(self) -> None:
        pass
