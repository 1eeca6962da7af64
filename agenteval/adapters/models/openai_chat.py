"""Call a language model behind an OpenAI-compatible endpoint: send the request, adapt it to the server, retry
with exponential backoff, and repair unusable answers (malformed JSON)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from anyio.lowlevel import checkpoint

from agenteval.adapters.models.capabilities import ServerCapabilities
from agenteval.adapters.models.circuit_breaker import CURRENT_RUBRIC_CALL
from agenteval.adapters.models.completion_parser import (
    LARGER_OUTPUT_BUDGET,
    CompletionAnswer,
    parse_completion,
)
from agenteval.adapters.models.endpoints import resolve_endpoint
from agenteval.adapters.models.http_client import FailedCall, HttpClient
from agenteval.adapters.models.pool import ModelPool
from agenteval.adapters.models.refusals import (
    BUDGET_PARAMETERS,
    RequestAdaptation,
    ServerRefusal,
    find_adaptation,
    is_context_overflow,
    is_transient,
)
from agenteval.adapters.models.reply_parser import InvalidReply, parse_model_reply
from agenteval.adapters.models.resources import ModelResources
from agenteval.adapters.models.response_formats import MAX_TEXT, response_format, schema_instructions
from agenteval.adapters.transport.error_patterns import THROTTLE_STATUSES
from agenteval.adapters.transport.http_faults import FaultKind, HttpFault, describe, is_final, quote
from agenteval.adapters.transport.http_session import RawReply
from agenteval.adapters.transport.limits import (
    CallLimits,
    CallPermit,
    CallThrottle,
    PauseTooLong,
    RateLimits,
    RateTerms,
    ServerTerms,
)
from agenteval.adapters.transport.retry import RetryBudget, RetryPolicy
from agenteval.core.config import ModelConfig
from agenteval.core.errors import InfrastructureError, UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.trajectory import Usage
from agenteval.messages.error_status import ACCESS_DENIED_STATUSES

_RAW = 500
_QUOTED_TO_MODEL = 4000
_BYTES_PER_TOKEN = 4
RETRY = RetryPolicy(retries=3)


class RefusedError(InfrastructureError):
    """Raised if the server does not accept the request in any form."""


@dataclass(frozen=True)
class _Question:
    """A request in progress."""

    request: ModelRequest
    messages: tuple[Mapping[str, str], ...]
    """The messages so far."""
    budget: int | None
    """The limit on the answer's output tokens, or ``None`` for no limit."""

    def grown(self, answer: CompletionAnswer) -> _Question:
        return replace(self, budget=answer.larger_budget(self.budget))

    def repaired(self, answer: CompletionAnswer, why: str) -> _Question:
        """Return a follow-up question that includes the unusable answer and explains what was wrong with that
        answer, so that the model can correct it (JSON repair)."""
        note = f"Your answer cannot be used: {why}.{_form_again(self.request)}"
        if not answer.text.strip():
            # Some servers refuse an empty assistant message, and two user messages in a row.
            system, user = self.messages[:2]
            again = {"role": "user", "content": f"{user['content']}\n\n{note}"}
            return replace(self, messages=(system, again))
        answer_message = {"role": "assistant", "content": answer.text[:_QUOTED_TO_MODEL]}
        return replace(self, messages=(*self.messages, answer_message, {"role": "user", "content": note}))


class _RepairBudget:
    """The number of repairs left for one request, and the token usage so far."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cut: CompletionAnswer | None = None
        self.has_repaired = False

    def next(self, question: _Question, answer: CompletionAnswer, why: str) -> _Question | None:
        """Return the next question after an unusable answer, or ``None`` to give up."""
        if answer.is_cut and self.cut is None:
            self.cut = answer
            return question.grown(answer)
        if not answer.is_cut and not self.has_repaired:
            self.has_repaired = True
            return question.repaired(answer, why)
        return None


class _Sent(NamedTuple):
    """A request body, both as a mapping and as bytes."""

    fields: Mapping[str, Any]
    body: bytes


class OpenAiChat:
    """A ``ChatModel`` behind an OpenAI-compatible endpoint.

    ``shared.notify`` is called once for each feature that the server turns out not to support, and for each
    retry. ``max_text`` limits the strings in answers from servers that enforce schemas. The constructor
    raises ``AuthorError`` for a missing key or a malformed URL."""

    def __init__(
        self,
        config: ModelConfig,
        shared: ModelResources,
        *,
        environ: Mapping[str, str],
        retry: RetryPolicy = RETRY,
        max_text: int = MAX_TEXT,
    ) -> None:
        self._config = config
        self._endpoint = resolve_endpoint(config, environ)
        limits = shared.limits or RateLimits(clock=retry.clock, sleep=retry.sleep)
        self._throttle = self._throttle_of(limits, shared.pool)
        self._entry = shared.capabilities.entry_for(self._endpoint.shown, config.name)
        self._notify = shared.notify
        self._retry = retry
        self._max_text = max_text
        self._client = HttpClient(
            self._endpoint,
            timeout_s=config.timeout_s,
            now=retry.now,
            sdk=config.provider if config.is_by_sdk else "",
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return an answer in the requested structure (structured output). Its ``usage`` covers all calls
        made for the answer.

        If an answer is truncated, the request is repeated once with a larger token limit. If an answer does
        not fit the structure or has a flaw, the request is repeated once with a description of the problem.
        """
        question = _Question(request, _messages(request), self._config.max_tokens)
        spent = _RepairBudget()
        while True:
            try:
                answer = await self._ask(question)
            except (RefusedError, UnreadableReplyError) as error:
                raise self._given_up(error, spent.cut, spent.usage) from error
            spent.usage += answer.usage
            is_flawed = False
            try:
                value = parse_model_reply(answer.text, request.reply, is_cut=answer.is_cut)
            except InvalidReply as unfit:
                why = str(unfit)
            else:
                why = request.flaw_in(value, False)
                if not why:
                    return ModelReply(value, spent.usage, self._config.model)
                is_flawed = True
            following = spent.next(question, answer, why)
            if following is None and is_flawed and request.accepts_flawed(value, False):
                return ModelReply(value, spent.usage, self._config.model)
            if following is None:
                raise self._unreadable(answer, why, spent.usage, is_flawed=is_flawed)
            question = following

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        await self._client.aclose()

    # ── adapting to the server ───────────────────────────────────────────────────────────────────

    async def _ask(self, question: _Question) -> CompletionAnswer:
        """Return the model's answer to the first form of the request that the server accepts."""
        entry = self._entry
        while True:
            await entry.wait_settled()
            learned = entry.capabilities
            sent = self._build(question, learned)
            try:
                return await self._send(sent)
            except FailedCall as failed:
                found = self._adaptation(failed, sent, learned)
            async with entry.lock:
                if entry.capabilities == learned:
                    return await self._adapt(question, found)

    async def _adapt(self, question: _Question, found: RequestAdaptation | None) -> CompletionAnswer:
        """Find out what the server accepts while other callers wait."""
        entry = self._entry
        while True:
            assert found is not None  # no other call finds out anything meanwhile
            entry.capabilities = found.capabilities
            self._notify_once(found.note)
            sent = self._build(question, entry.capabilities)
            try:
                return await self._send(sent)
            except FailedCall as failed:
                found = self._adaptation(failed, sent, entry.capabilities)

    def _adaptation(
        self, failed: FailedCall, sent: _Sent, learned: ServerCapabilities
    ) -> RequestAdaptation | None:
        """Return the change to make after a refusal, or ``None`` if another call has already found the
        change.

        Raise an error if no change is possible."""
        cause = failed.cause
        if isinstance(cause, HttpFault):
            cause = cause._replace(tried=failed.tried)
            message = f"{self._config.model}: {describe(cause)}"
            raise InfrastructureError(message, is_final=is_final(cause.kind, cause.status)) from failed
        if is_context_overflow(cause):
            what = f"{self._config.model}: the request exceeds the context length: {self._quote(cause.text)}"
            hint = "set `context` to the context length of this model, so that longer records are shortened"
            raise UnreadableReplyError(f"{what} — {hint}", is_final=True) from failed
        found = find_adaptation(cause, sent.fields, learned)
        if found is None and self._entry.capabilities == learned:
            is_denied = cause.status in ACCESS_DENIED_STATUSES
            raise RefusedError(self._describe_refusal(cause, failed.tried), is_final=is_denied) from failed
        return found

    def _build(self, question: _Question, learned: ServerCapabilities) -> _Sent:
        config = self._config
        messages = _folded(question.messages) if learned.folds_system else question.messages
        fields: dict[str, Any] = {"model": config.name, "messages": messages}
        if config.temperature is not None:
            fields["temperature"] = config.temperature
        budget = question.budget or (LARGER_OUTPUT_BUDGET if learned.needs_budget else None)
        if budget and (name := self._budget_name(learned)):
            fields[name] = budget
        form = response_format(question.request.reply, learned.format_level, max_text=self._max_text)
        fields |= {"response_format": form} if form else {}
        if learned.streams:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        fields |= config.extra
        fields = {name: value for name, value in fields.items() if name not in learned.refused}
        # Escaping all but ASCII keeps lone surrogates, which UTF-8 cannot encode, from raising here.
        return _Sent(fields, json.dumps(fields).encode())

    def _budget_name(self, learned: ServerCapabilities) -> str | None:
        first = self._endpoint.budget
        names = (first, *(name for name in BUDGET_PARAMETERS if name != first))
        return next((name for name in names if name not in learned.refused), None)

    # ── sending one request ──────────────────────────────────────────────────────────────────────

    def _throttle_of(self, limits: CallLimits, pool: ModelPool) -> CallThrottle:
        """Build the throttle. All models with the same address and key share its limits; the rate is specific
        to the model."""
        config, place = self._config, (self._endpoint.shown, self._endpoint.key)
        rate = RateTerms((*place, config.name), config.requests_per_minute, config.tokens_per_minute)
        return limits.throttle(ServerTerms(*place, "models", pool.limit), rate, pool)

    async def _send(self, sent: _Sent) -> CompletionAnswer:
        """Send the request until it is answered. Raise ``FailedCall`` if more retries would be useless."""
        retries = RetryBudget(self._retry, self._config.max_wait_s)
        faults: list[FaultKind] = []
        while True:
            try:
                return await self._try(sent, retries)
            except PauseTooLong as pause:
                retries.waited_s += pause.waited_s
                raise RefusedError(self._too_long(pause, retries)) from pause
            except FailedCall as failed:
                cause, asked_s = failed.cause, failed.retry_after_s
                faults += (cause.kind,) if isinstance(cause, HttpFault) else ()
                wait_s = retries.next_wait_s(
                    retry_after_s=asked_s, retries=self._retries(cause, Counter(faults))
                )
                if wait_s is None:
                    failed.tried = retries.summary
                    raise
                self._notify_retry(cause, wait_s)
            await retries.wait(wait_s)

    async def _try(self, sent: _Sent, retries: RetryBudget) -> CompletionAnswer:
        estimate = len(sent.body) // _BYTES_PER_TOKEN
        async with self._throttle.call(tokens=estimate, left_s=retries.left_s) as call:
            http = await self._client.post(sent.body)
            if not http.is_success:
                self._completion(http, call)  # raises while the call still holds its slot
        # The next call sends first, because reading an answer takes as long as sending a question.
        await checkpoint()
        reply = self._completion(http, call)
        answer = parse_completion(
            reply, where=self._config.model, sent=sent.fields["messages"], quote=self._quote
        )
        call.record_success(answer.usage.input_tokens + answer.usage.output_tokens)
        return answer

    def _completion(self, http: RawReply, call: CallPermit) -> Any:
        """Decode the reply as JSON.

        Raise ``FailedCall`` if the reply is an error or is not a completion. A temporary refusal, such as a
        rate limit, is reported to ``call``, even if the refusal has status 200."""
        try:
            return self._client.decode_completion(http)
        except FailedCall as failed:
            cause = failed.cause
            if cause.status in THROTTLE_STATUSES and isinstance(cause, ServerRefusal) and is_transient(cause):
                call.record_throttled(cause.retry_after_s, self._quote(cause.text))
            raise

    def _retries(self, cause: ServerRefusal | HttpFault, faults: Mapping[FaultKind, int]) -> int:
        """Return the number of permitted retries for a call, given the ``faults`` that have occurred so far.

        A fault that suggests a wrong address is treated as temporary if the server has answered before.
        Temporary faults are counted by kind, because a server that fails in many ways is no worse than a
        server that fails in one way."""
        is_proven = self._throttle.has_answered
        if (
            (asked := CURRENT_RUBRIC_CALL.get())
            and not asked.rubric.has_answered
            and cause.status != _TOO_FAST
        ):
            is_proven = False  # the server exists, but may never answer this judge
        retries = self._retry.proven_retries if is_proven else self._retry.retries
        if isinstance(cause, ServerRefusal):
            return retries if is_transient(cause) else 0
        match cause.kind:
            case FaultKind.INVALID | FaultKind.TOO_LARGE | FaultKind.STATUS | FaultKind.SIGN_IN:
                return 0
            case FaultKind.GARBLED:
                # Other calls in flight will show whether the address is right.
                bound = _HICCUPS if is_proven else int(self._throttle.is_busy)
                return retries if faults[cause.kind] <= bound else 0
            case FaultKind.DEADLINE:
                bound = _HICCUPS if is_proven else 1
                return retries if faults[cause.kind] <= bound else 0
            case _:
                return retries

    # ── messages ─────────────────────────────────────────────────────────────────────────────────

    def _notify_once(self, note: str) -> None:
        if note not in self._entry.noticed:
            self._entry.noticed.add(note)
            self._notify(f"{self._config.model} at {self._endpoint.shown}: {note}")

    def _notify_retry(self, cause: ServerRefusal | HttpFault, wait_s: float) -> None:
        kind = f"HTTP status {cause.status}" if isinstance(cause, ServerRefusal) else str(cause.kind)
        what = self._quote(cause.text) if isinstance(cause, ServerRefusal) else cause.detail
        where = f"{self._config.model} at {self._endpoint.shown}"
        self._notify(f"{where}: {kind}, retrying in {wait_s:.1f} s: {what}")

    def _describe_refusal(self, refusal: ServerRefusal, tried: str = "") -> str:
        text = f"{self._config.model} at {self._endpoint.shown}: HTTP status {refusal.status}"
        hint = _HINTS.get(refusal.status, "").format(key=self._endpoint.key_name or "api_key_env")
        if refusal.status == 429 and not is_transient(refusal):
            hint = "the account's quota or credit is used up; waiting does not help"
        elif (refusal.retry_after_s or 0) > self._config.max_wait_s:
            hint = (
                f"the server asks callers to wait {refusal.retry_after_s:.0f} s, which is too long"
                f" (`max_wait_s` is {self._config.max_wait_s:g})"
            )
        text = f"{text}: {self._quote(refusal.text)}" + (f" ({tried})" if tried else "")
        return f"{text} — {hint}" if hint else text

    def _too_long(self, pause: PauseTooLong, retries: RetryBudget) -> str:
        where = f"{self._config.model} at {self._endpoint.shown}"
        what = f"gave up after waiting {retries.waited_s:.1f} s: the server asks callers to wait"
        hint = "raise `max_wait_s`, or lower `concurrency`"
        return f"{where}: {what} {pause.pause_s:.0f} s more: {pause.reason} — {hint}"

    def _unreadable(
        self, answer: CompletionAnswer, why: str, usage: Usage, *, is_flawed: bool = False
    ) -> UnreadableReplyError:
        raw = quote(answer.text, (self._endpoint.key,), _RAW)
        quoted = f"it said: {raw}" if raw else "it said nothing"
        if not raw and answer.reasoned:
            quoted = "it reasoned, but gave no answer"
        how = f"finish_reason {answer.finish_reason or 'not given'}; {quoted}"
        what = f"{self._config.model}: the answer cannot be used: {why} ({how})"
        return UnreadableReplyError(what, raw=raw, usage=usage, is_flawed=is_flawed)

    def _given_up(
        self, error: RefusedError | UnreadableReplyError, cut: CompletionAnswer | None, usage: Usage
    ) -> InfrastructureError:
        """Return ``error`` with the token usage of the earlier calls. If the last answer was truncated,
        return an error that reports the truncation instead."""
        spent = getattr(error, "usage", None)
        if cut and not spent:
            return self._unreadable(
                cut, f"it is cut off, and a larger token limit was rejected: {error}", usage
            )
        if isinstance(error, UnreadableReplyError):
            spent = usage + (spent or Usage())
            return UnreadableReplyError(str(error), raw=error.raw, usage=spent, is_final=error.is_final)
        return error

    def _quote(self, text: str) -> str:
        return quote(text, (self._endpoint.key,), 300)


_HICCUPS = 3
_TOO_FAST = 429
_HINTS = {
    401: "check the key in {key}",
    402: "the account has no credit",
    403: "check the key in {key}, and that it can use this model",
    404: "check the model name, and `base_url` (/v1 may be missing or duplicated)",
    429: "lower `concurrency`, or check the account's limits",
}


def _messages(request: ModelRequest) -> tuple[Mapping[str, str], ...]:
    return (
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.prompt + _form(request)},
    )


def _form(request: ModelRequest) -> str:
    """Return the text that is appended to a prompt that does not itself describe the form of its answer."""
    return "" if request.states_form else schema_instructions(request.reply)


def _form_again(request: ModelRequest) -> str:
    return (
        _form(request)
        or " Give the whole JSON object anew, in the form that was asked for, and nothing else."
    )


def _folded(messages: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    system, user, *rest = messages
    return ({"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest)


def make(
    config: ModelConfig,
    *,
    shared: ModelResources,
    environ: Mapping[str, str],
    jitter: Callable[[], float] | None = None,
    **_more: Any,
) -> OpenAiChat:
    retry = replace(RETRY, jitter=jitter) if jitter else RETRY
    return OpenAiChat(config, shared, environ=environ, retry=retry)
