"""Meter models and agents: add the cost to the usage in their replies, and prevent calls that would exceed
the budget."""

from __future__ import annotations

from dataclasses import replace

from agenteval.adapters.models.pool import METERED_CALL
from agenteval.core.config import Price
from agenteval.core.errors import AgentevalError, BudgetError, RequestSkippedError
from agenteval.core.protocols import (
    Agent,
    AgentReply,
    AgentWrapper,
    ChatModel,
    ModelReply,
    ModelRequest,
    TurnTools,
)
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Message, Usage, sum_usage
from agenteval.messages.reported_usage import read_usage, usage_in
from agenteval.verdict.ledger import CallBudget, price_usage


class MeteredModel:
    """A ``ChatModel`` whose replies include their cost.

    Instead of making a call, it raises ``BudgetError`` if the remaining budget in ``ledger`` is too small."""

    def __init__(
        self, model: ChatModel, name: str, *, price: Price | None, ledger: CallBudget | None, role: str = ""
    ) -> None:
        self._model = model
        self._name = name
        self._role = role
        self._price = price
        self._ledger = ledger

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._ledger is None:
            return await self._answer(request)
        tokens = self._tokens(request, self._ledger)
        call = await self._ledger.open_call(self._name, self._price, tokens, self._role)
        usage, failed = Usage(), True
        token = METERED_CALL.set(call)
        try:
            reply = await self._answer(request)
            usage, failed = reply.usage, False
            return reply
        except AgentevalError as error:
            usage = getattr(error, "usage", None) or usage
            # A skipped judge cost nothing; but the budget may also stop a call midway.
            failed = isinstance(error, BudgetError) or not isinstance(error, RequestSkippedError)
            raise
        finally:
            METERED_CALL.reset(token)
            call.settle(usage, is_failed=failed)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        try:
            reply = await self._model.complete(request)
        except AgentevalError as error:
            spent = getattr(error, "usage", None)
            if isinstance(spent, Usage):
                error.usage = price_usage(spent, self._price)  # type: ignore[attr-defined]
            raise
        return reply._replace(usage=price_usage(reply.usage, self._price))

    def _tokens(self, request: ModelRequest, ledger: CallBudget) -> int:
        is_free = self._price is not None and not (self._price.input or self._price.output)
        if not ledger.needs_estimate(self._role) or (is_free and not ledger.counts_tokens(self._role)):
            return 0
        return count_tokens(request.system) + count_tokens(request.prompt)

    async def aclose(self) -> None:
        await self._model.aclose()


class MeteredAgent(AgentWrapper):
    """An agent whose replies include their cost.

    ``price`` is the price of the model that the agent uses. It applies to replies that report their token
    usage."""

    def __init__(self, agent: Agent, name: str, *, price: Price | None, ledger: CallBudget | None) -> None:
        super().__init__(agent)
        self._name = name
        self._price = price
        self._ledger = ledger
        self._listed: list[Message] = []

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        if self._ledger is None:
            return self._with_cost(await self._agent.reply(messages, tools))
        call = await self._ledger.open_call(self._name, self._price, 0, "agent")
        usage, failed = Usage(), True
        try:
            reply = self._with_cost(await self._agent.reply(messages, tools))
            usage, failed = self._measure(reply, messages), False
            return reply
        finally:
            call.settle(usage, is_failed=failed)

    def _with_cost(self, reply: AgentReply) -> AgentReply:
        usage = read_usage(reply.usage)
        if usage is not None:
            return replace(reply, usage=price_usage(usage, self._price))
        return replace(reply, messages=list(map(self._priced, reply.messages))) if self._price else reply

    def _priced(self, message: Message) -> Message:
        usage = read_usage(usage_in(message))
        return (
            message if usage is None else {**message, "usage": price_usage(usage, self._price).model_dump()}
        )

    def _new_in(self, listed: list[Message]) -> list[Message]:
        """Return the new messages in a reply that contains the complete conversation."""
        known, self._listed = self._listed, listed
        is_longer = len(listed) > len(known) and listed[: len(known)] == known
        return listed[len(known) :] if is_longer else listed

    def _measure(self, reply: AgentReply, messages: list[Message]) -> Usage:
        """Return the token usage of a reply. If the reply does not report its usage, estimate it from the new
        texts."""
        reported = (read_usage(usage_in(message)) for message in self._new_in(list(reply.messages)))
        usage = read_usage(reply.usage) or sum_usage(filter(None, reported))
        if usage.unsplit:  # the budget counts it at the price of output, the more expensive kind
            return price_usage(usage.model_copy(update={"unsplit": False}), self._price)
        if usage.is_spent or self._ledger is None or not self._ledger.needs_estimate("agent"):
            return usage if usage.is_spent else Usage(calls=1)
        asked = str(messages[-1].get("content") or "") if messages else ""
        tokens_in, tokens_out = count_tokens(asked), count_tokens(reply.text or "")
        guess = Usage(calls=1, input_tokens=tokens_in, output_tokens=tokens_out, estimated=True)
        return price_usage(guess, self._price)
