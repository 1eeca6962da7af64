"""Models that give prepared answers one after the other, for tests of judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agenteval.core.errors import UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.trajectory import Usage

ONE_CALL = Usage(calls=1, input_tokens=10, output_tokens=1)


class AnswerPanel:
    """Gives its answers in order and keeps the requests. ``scripted`` is true for answers that do not come
    from a language model."""

    def __init__(self, *answers: Mapping[str, Any] | Exception, scripted: bool = False) -> None:
        self._answers = list(answers)
        self._scripted = scripted
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        try:
            value = request.reply.model_validate({"evidence": "", "reason": "because", **answer})
        except ValidationError as error:
            raise UnreadableReplyError(str(error), raw=str(answer)) from error
        if flaw := request.flaw_left_in(value, self._scripted):
            raise UnreadableReplyError(flaw, raw=str(answer), is_flawed=True)
        return ModelReply(value, ONE_CALL, "lab/model", scripted=self._scripted)

    async def aclose(self) -> None:
        pass
