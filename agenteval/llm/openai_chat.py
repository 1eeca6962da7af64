"""A language model behind an OpenAI-compatible endpoint: asks, adapts, retries, repairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from agenteval.config import ModelConfig
from agenteval.errors import InfrastructureError, UnreadableReplyError
from agenteval.http_faults import Fault, FaultKind, describe, quote
from agenteval.llm.answers import ENOUGH, Answer, answer_of
from agenteval.llm.capabilities import Capabilities, Learned
from agenteval.llm.endpoints import endpoint_of
from agenteval.llm.http_client import FailedCall, HttpClient
from agenteval.llm.pool import ModelPool
from agenteval.llm.reading import Unfit, read
from agenteval.llm.refusals import BUDGETS, Refusal, adaption, is_overflow, may_pass
from agenteval.llm.structured import MAX_TEXT, closing, response_format
from agenteval.protocols import ModelReply, ModelRequest
from agenteval.trajectory import Usage
from agenteval.transport import RetryPolicy

_RAW = 500
_QUOTED_TO_MODEL = 4000
RETRY = RetryPolicy(retries=3, base_s=0.5, max_wait_s=60.0, max_total_s=120.0)


class RefusedError(InfrastructureError):
    """The server will not take the request, as it is or changed."""


@dataclass(frozen=True)
class _Question:
    """A request on its way: what was said so far, and how many tokens the answer may have."""

    request: ModelRequest
    messages: tuple[Mapping[str, str], ...]
    budget: int | None

    def grown(self, answer: Answer) -> _Question:
        return replace(self, budget=answer.larger_budget(self.budget))

    def repaired(self, answer: Answer, why: str) -> _Question:
        """The question again, with the answer that was no use and what was wrong with it."""
        note = f"Your answer cannot be used: {why}.{closing(self.request.reply)}"
        if not answer.text.strip():
            # Some servers refuse an empty message of the assistant, and two of the user in a row.
            system, user = self.messages[:2]
            again = {"role": "user", "content": f"{user['content']}\n\n{note}"}
            return replace(self, messages=(system, again))
        said = {"role": "assistant", "content": answer.text[:_QUOTED_TO_MODEL]}
        return replace(self, messages=(*self.messages, said, {"role": "user", "content": note}))


class _Sent(NamedTuple):
    """A request body, as a mapping and as it travels."""

    fields: Mapping[str, Any]
    body: bytes


class OpenAiChat:
    """A ``ChatModel``. ``notice`` is told, once each, what the server was found not to accept and what
    was retried. ``max_text`` bounds texts in answers, for servers that obey schemas.

    Raises ``AuthorError`` when made, for a missing key or a malformed URL.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        pool: ModelPool,
        capabilities: Capabilities,
        notice: Callable[[str], None],
        environ: Mapping[str, str],
        retry: RetryPolicy = RETRY,
        max_text: int = MAX_TEXT,
    ) -> None:
        self._config = config
        self._endpoint = endpoint_of(config, environ)
        self._pool = pool
        self._memory = capabilities.of(self._endpoint.shown, config.name)
        self._notice = notice
        self._retry = retry
        self._max_text = max_text
        self._client = HttpClient(self._endpoint, timeout_s=config.timeout_s, now=retry.now)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """An answer of the asked shape; a cut one is asked for once more with a larger budget, and one
        that does not fit once more with what was wrong. ``usage`` is that of all these calls."""
        question = _Question(request, _messages(request), self._config.max_tokens)
        usage, cut, has_repaired = Usage(), None, False
        while True:
            try:
                answer = await self._ask(question)
            except (RefusedError, UnreadableReplyError) as error:
                raise self._given_up(error, cut, usage) from error
            usage += answer.usage
            try:
                return ModelReply(read(answer.text, request.reply), usage, self._config.model)
            except Unfit as unfit:
                why = str(unfit)
            if answer.is_cut and cut is None:
                cut, question = answer, question.grown(answer)
            elif not answer.is_cut and not has_repaired:
                has_repaired, question = True, question.repaired(answer, why)
            else:
                raise self._unreadable(answer, why, usage)

    async def aclose(self) -> None:
        """Close all connections; may be called twice."""
        await self._client.aclose()

    # ── adapting to the server ───────────────────────────────────────────────────────────────────

    async def _ask(self, question: _Question) -> Answer:
        """The model's answer, in the first form of the request that the server takes."""
        memory = self._memory
        while True:
            await memory.settled()
            learned = memory.learned
            sent = self._sent(question, learned)
            try:
                return await self._send(sent)
            except FailedCall as failed:
                cause = self._refusal(failed, sent, learned)
            async with memory.lock:
                if memory.learned == learned:
                    return await self._adapted(question, sent, cause)

    async def _adapted(self, question: _Question, sent: _Sent, cause: Refusal) -> Answer:
        """Finds out what the server takes, while whoever else calls it waits."""
        memory = self._memory
        while True:
            found = adaption(cause, sent.fields, memory.learned)
            if found is None:
                raise RefusedError(self._told(cause))
            memory.learned = found.learned
            self._tell(found.note)
            sent = self._sent(question, memory.learned)
            try:
                return await self._send(sent)
            except FailedCall as failed:
                cause = self._refusal(failed, sent, memory.learned)

    def _refusal(self, failed: FailedCall, sent: _Sent, learned: Learned) -> Refusal:
        """The refusal that a changed request may mend. Raises what cannot be mended."""
        cause = failed.cause
        if isinstance(cause, Fault):
            raise InfrastructureError(f"{self._config.model}: {describe(cause)}") from failed
        if is_overflow(cause):
            what = f"{self._config.model}: the request is over the context length: {self._quote(cause.text)}"
            raise UnreadableReplyError(what) from failed
        if adaption(cause, sent.fields, learned) is None and self._memory.learned == learned:
            raise RefusedError(self._told(cause)) from failed
        return cause

    def _sent(self, question: _Question, learned: Learned) -> _Sent:
        config = self._config
        messages = _folded(question.messages) if learned.folds_system else question.messages
        fields: dict[str, Any] = {"model": config.name, "messages": messages}
        if config.temperature is not None:
            fields["temperature"] = config.temperature
        budget = question.budget or (ENOUGH if learned.needs_budget else None)
        if budget and (name := self._budget_name(learned)):
            fields[name] = budget
        form = response_format(question.request.reply, learned.rung, max_text=self._max_text)
        fields |= {"response_format": form} if form else {}
        fields |= config.extra
        fields = {name: value for name, value in fields.items() if name not in learned.refused}
        # Escaping all but ASCII keeps lone surrogates, which UTF-8 cannot hold, from raising here.
        return _Sent(fields, json.dumps(fields).encode())

    def _budget_name(self, learned: Learned) -> str | None:
        first = self._endpoint.budget
        names = (first, *(name for name in BUDGETS if name != first))
        return next((name for name in names if name not in learned.refused), None)

    # ── one request, until it passes or cannot ───────────────────────────────────────────────────

    async def _send(self, sent: _Sent) -> Answer:
        """Raises ``FailedCall`` when trying again is of no use."""
        waited_s, attempt = 0.0, 0
        while True:
            attempt += 1
            try:
                async with self._pool.slot():
                    reply = await self._client.post(sent.body)
                messages = sent.fields["messages"]
                return answer_of(reply, where=self._config.model, sent=messages, quote=self._quote)
            except FailedCall as failed:
                wait_s = self._wait_s(failed.cause, attempt, waited_s)
                if wait_s is None:
                    raise
                self._tell_retry(failed.cause, wait_s)
            await self._retry.sleep(wait_s)
            waited_s += wait_s

    def _wait_s(self, cause: Refusal | Fault, attempt: int, waited_s: float) -> float | None:
        if isinstance(cause, Refusal):
            asked_s = cause.retry_after_s
            return (
                self._retry.wait_s(attempt, waited_s=waited_s, asked_s=asked_s) if may_pass(cause) else None
            )
        if cause.kind in _HOPELESS or (cause.kind is FaultKind.DEADLINE and attempt > 1):
            return None
        return self._retry.wait_s(attempt, waited_s=waited_s, asked_s=None)

    # ── words ────────────────────────────────────────────────────────────────────────────────────

    def _tell(self, note: str) -> None:
        if note not in self._memory.told:
            self._memory.told.add(note)
            self._notice(f"{self._config.model} at {self._endpoint.shown}: {note}")

    def _tell_retry(self, cause: Refusal | Fault, wait_s: float) -> None:
        """Once for each kind of trouble: twenty calls that are told the same are one thing to know."""
        kind = f"HTTP status {cause.status}" if isinstance(cause, Refusal) else str(cause.kind)
        if kind not in self._memory.told:
            self._memory.told.add(kind)
            what = self._quote(cause.text) if isinstance(cause, Refusal) else cause.detail
            where = f"{self._config.model} at {self._endpoint.shown}"
            self._notice(f"{where}: {kind}, tried again in {wait_s:.1f} s: {what}")

    def _told(self, refusal: Refusal) -> str:
        text = f"{self._config.model} at {self._endpoint.shown}: HTTP status {refusal.status}"
        hint = _HINTS.get(refusal.status, "").format(key=self._endpoint.key_name or "api_key_env")
        if refusal.status == 429 and not may_pass(refusal):
            hint = "the account's quota or credit is used up; waiting does not help"
        if refusal.retry_after_s is not None and refusal.retry_after_s > self._retry.max_wait_s:
            hint = f"it asks to wait {refusal.retry_after_s:.0f} s, which is too long"
        return f"{text}: {self._quote(refusal.text)}" + (f" — {hint}" if hint else "")

    def _unreadable(self, answer: Answer, why: str, usage: Usage) -> UnreadableReplyError:
        raw = quote(answer.text, (self._endpoint.key,), _RAW)
        said = f"it said: {raw}" if raw else "it said nothing"
        if not raw and answer.reasoned:
            said = "it thought, and said nothing"
        how = f"finish_reason {answer.finish_reason or 'not given'}; {said}"
        what = f"{self._config.model}: the answer cannot be used: {why} ({how})"
        return UnreadableReplyError(what, raw=raw, usage=usage)

    def _given_up(
        self, error: RefusedError | UnreadableReplyError, cut: Answer | None, usage: Usage
    ) -> InfrastructureError:
        """``error`` with the usage of the calls before, told of the answer before if that was cut off."""
        spent = getattr(error, "usage", None)
        if cut and not spent:
            return self._unreadable(cut, f"it is cut off, and a larger budget is refused: {error}", usage)
        if isinstance(error, UnreadableReplyError):
            return UnreadableReplyError(str(error), raw=error.raw, usage=usage + (spent or Usage()))
        return error

    def _quote(self, text: str) -> str:
        return quote(text, (self._endpoint.key,), 300)


_HOPELESS = frozenset((FaultKind.INVALID, FaultKind.GARBLED, FaultKind.TOO_LARGE, FaultKind.STATUS))
_HINTS = {
    401: "is the key in {key} right?",
    402: "the account has no credit",
    403: "is the key in {key} right, and may it use this model?",
    404: "is the model's name right? does base_url lack /v1, or have it twice?",
    429: "lower `concurrency`, or check the account's limits",
}


def _messages(request: ModelRequest) -> tuple[Mapping[str, str], ...]:
    return (
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.prompt + closing(request.reply)},
    )


def _folded(messages: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    system, user, *rest = messages
    return ({"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest)
