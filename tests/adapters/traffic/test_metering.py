"""What calls cost: usage with its price, and calls that the budget does not allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models.pool import METERED_CALL
from agenteval.adapters.traffic.metering import MeteredAgent, MeteredModel
from agenteval.core.config import BudgetConfig, Price
from agenteval.core.errors import (
    AgentevalError,
    BudgetError,
    InfrastructureError,
    RequestSkippedError,
    UnreadableReplyError,
)
from agenteval.core.protocols import AgentReply, ModelReply, ModelRequest, TurnTools
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Message, ToolResult, Usage
from agenteval.verdict.ledger import REPLY_TOKENS, BudgetLedger

PRICE = Price(input=2.0, output=10.0)
USED = Usage(calls=1, input_tokens=1000, output_tokens=100)
COST = 0.003
"""Of ``USED`` at ``PRICE``."""


class Answer(BaseModel):
    said: str = "fine"


REQUEST = ModelRequest("judge", "s" * 40, "p" * 80, Answer)
PROMPT = count_tokens(REQUEST.system) + count_tokens(REQUEST.prompt)


class Model:
    """Answers with each of ``ends`` in turn: a usage, or an error to raise."""

    def __init__(self, *ends: Usage | AgentevalError) -> None:
        self._ends = list(ends)
        self.calls = 0
        self.is_metered: list[bool] = []
        self.closed = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        self.is_metered.append(METERED_CALL.get() is not None)
        end = self._ends.pop(0)
        if isinstance(end, AgentevalError):
            raise end
        return ModelReply(Answer(), end, "openai/x-1")

    async def aclose(self) -> None:
        self.closed += 1


def ledger_of(**limits: Any) -> BudgetLedger:
    return BudgetLedger(BudgetConfig.model_validate(limits))


def complete(
    model: Model, ledger: BudgetLedger | None, price: Price | None = PRICE, times: int = 1
) -> list[Any]:
    """The usage of each call, or the error."""
    ends: list[Any] = []

    async def main() -> None:
        metered = MeteredModel(model, "openai/x", price=price, ledger=ledger, role="judge")
        for _ in range(times):
            try:
                ends.append((await metered.complete(REQUEST)).usage)
            except AgentevalError as error:
                ends.append(error)
        await metered.aclose()

    anyio.run(main)
    assert model.closed == 1
    return ends


@pytest.mark.parametrize("limits", [None, {"max_calls": 5}])
@pytest.mark.parametrize(
    ("used", "price", "cost"),
    [
        (USED, PRICE, COST),
        (USED, None, None),
        (USED, Price(input=0, output=0), 0.0),
        (USED.model_copy(update={"cost": 7.0}), PRICE, 7.0),
        (USED.model_copy(update={"cached_tokens": 500}), Price(input=2, output=10, cached_input=0), 0.002),
    ],
)
def test_a_models_reply_has_its_cost(
    used: Usage, price: Price | None, cost: float | None, limits: Any
) -> None:
    (usage,) = complete(Model(used), ledger_of(**limits) if limits else None, price)
    assert usage.cost == (None if cost is None else pytest.approx(cost))
    assert usage.model_copy(update={"cost": used.cost}) == used


@pytest.mark.parametrize("limits", [None, {"max_calls": 5}])
def test_an_answer_that_could_not_be_read_has_its_cost(limits: Any) -> None:
    error = UnreadableReplyError("x", usage=USED)
    (raised,) = complete(Model(error), ledger_of(**limits) if limits else None)
    assert raised is error
    assert raised.usage.cost == pytest.approx(COST)


def test_an_error_without_usage_stays_as_it_is() -> None:
    errors = [UnreadableReplyError("x"), InfrastructureError("y")]
    assert complete(Model(*errors), None, times=2) == errors
    assert errors[0].usage is None  # type: ignore[attr-defined]


def test_a_call_is_known_to_what_sends_requests() -> None:
    model = Model(USED)
    complete(model, ledger_of(max_calls=5))
    assert model.is_metered == [True]
    assert METERED_CALL.get() is None
    model = Model(USED)
    complete(model, None)
    assert model.is_metered == [False]


def made(ends: Sequence[Usage | AgentevalError], price: Price | None = PRICE, **limits: Any) -> int:
    """How many of many calls are made before the budget ends, after these ends."""
    model = Model(*ends, *[USED] * 50)
    results = complete(model, ledger_of(**limits), price, times=50)
    refused = [isinstance(end, BudgetError) for end in results[len(ends) :]]
    assert refused == sorted(refused)
    return model.calls


@pytest.mark.parametrize(
    ("end", "counts"),
    [
        (USED, 1),
        (USED.model_copy(update={"calls": 2}), 2),
        (Usage(cached_calls=1), 0),
        (InfrastructureError("down"), 1),
        (UnreadableReplyError("x", usage=USED.model_copy(update={"calls": 2})), 2),
        (UnreadableReplyError("x"), 1),
        (RequestSkippedError("not called"), 0),
        (BudgetError("exhausted on the way"), 1),
    ],
)
def test_what_counts_as_a_call(end: Usage | AgentevalError, counts: int) -> None:
    assert made([end], max_calls=5) == 1 + 5 - counts


def test_a_budget_is_spent_by_tokens_and_by_cost() -> None:
    assert made([], max_calls=3) == 3
    assert made([], max_tokens=3300) == 3
    assert made([], max_cost=3 * COST) == 3
    assert made([], None, max_cost=3 * COST) == 50
    assert made([UnreadableReplyError("x", usage=USED)], max_tokens=3300) == 3


def test_a_call_that_does_not_fit_is_not_made() -> None:
    expected = PROMPT + REPLY_TOKENS
    assert made([], max_tokens=expected - 1) == 0
    assert made([], max_tokens=expected) == 1


@pytest.mark.parametrize(
    ("price", "limits", "calls"),
    [
        (Price(input=0, output=0), {"max_cost": 1e-3}, 50),
        (Price(input=0, output=0), {"max_tokens": PROMPT}, 0),
        (Price(input=1, output=0), {"max_cost": 1e-6 * PROMPT}, 1),
        (Price(input=1, output=0), {"max_cost": 1e-6 * (PROMPT - 1)}, 0),
        (Price(input=0, output=1), {"max_cost": 1e-6 * REPLY_TOKENS}, 2),
        (Price(input=0, output=1), {"max_cost": 1e-6 * (REPLY_TOKENS - 1)}, 0),
    ],
)  # fmt: skip
def test_what_a_prompt_is_expected_to_cost(price: Price, limits: dict[str, Any], calls: int) -> None:
    assert made([], price, **limits) == calls


def test_a_budget_of_another_role_does_not_bound_the_judge() -> None:
    assert made([], max_calls=9, by_role={"agent": {"max_calls": 1}}) == 9
    assert made([], max_calls=9, by_role={"judge": {"max_calls": 1}}) == 1


# ── agents ───────────────────────────────────────────────────────────────────────────────────────

ASKED: list[Message] = [{"role": "user", "content": "a" * 400}]
TOLD = {"input_tokens": 1000, "output_tokens": 100}


def said(text: str = "x", **more: Any) -> Message:
    return {"role": "assistant", "content": text, **more}


class Talker:
    def __init__(self, *replies: AgentReply | Exception) -> None:
        self._replies = list(replies)
        self.calls = 0

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        self.calls += 1
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


async def no_call(*_: Any) -> ToolResult:
    raise AssertionError


def talk(
    agent: Talker,
    ledger: BudgetLedger | None = None,
    price: Price | None = PRICE,
    times: int = 1,
    messages: list[Message] = ASKED,
) -> list[Any]:
    ends: list[Any] = []

    async def main() -> None:
        metered = MeteredAgent(agent, "bot", price=price, ledger=ledger)
        for turn in range(times):
            try:
                ends.append(await metered.reply(messages, TurnTools(turn, (), no_call)))
            except Exception as error:
                ends.append(error)

    anyio.run(main)
    return ends


@pytest.mark.parametrize("limits", [None, {"max_calls": 5}])
def test_an_agents_usage_has_its_cost(limits: Any) -> None:
    (reply,) = talk(Talker(AgentReply("x", usage=TOLD)), ledger_of(**limits) if limits else None)
    assert reply.usage.cost == pytest.approx(COST)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.text) == (1000, 100, "x")
    (reply,) = talk(Talker(AgentReply("x", usage=TOLD)), None, None)
    assert reply.usage.cost is None


def test_the_usage_of_each_message_has_its_cost() -> None:
    messages = [said(usage=TOLD), said(), said(usage={**TOLD, "cost": 7.0})]
    (reply,) = talk(Talker(AgentReply(messages=messages)))
    first, second, third = reply.messages
    assert first["usage"]["cost"] == pytest.approx(COST)
    assert second == said()
    assert first["content"] == third["content"] == "x"
    (unpriced,) = talk(Talker(AgentReply(messages=messages)), None, None)
    assert unpriced.messages == messages


def spends(*replies: AgentReply, messages: list[Message] = ASKED, price: Price | None = PRICE) -> Usage:
    """What the budget has seen of these replies."""
    seen: list[Usage] = []

    class Ledger(BudgetLedger):
        def carry_over(self, usage: Usage, role: str = "") -> None:
            assert role == "agent"
            seen.append(usage)

    talk(Talker(*replies), Ledger(BudgetConfig(max_tokens=10**9)), price, len(replies), messages)
    assert len(seen) == len(replies)
    return seen[-1]


def spent(calls: int, tokens_in: int, tokens_out: int, cost: float | None, estimated: bool = False) -> Usage:
    return Usage(
        calls=calls, input_tokens=tokens_in, output_tokens=tokens_out, estimated=estimated, cost=cost
    )


def approximately(usage: Usage) -> Usage:
    return usage.model_copy(update={"cost": None if usage.cost is None else round(usage.cost, 9)})


A400 = count_tokens("a" * 400)
B40 = count_tokens("b" * 40)
GUESS = spent(1, A400, B40, round((2 * A400 + 10 * B40) / 1e6, 9), estimated=True)
ROWS: dict[str, tuple[AgentReply, Usage]] = {
    "usage": (AgentReply("x", usage=TOLD), spent(1, 1000, 100, COST)),
    "usage of messages": (
        AgentReply(messages=[said(usage=TOLD), said(usage=TOLD)]),
        spent(2, 2000, 200, 2 * COST),
    ),
    "usage before that of messages": (
        AgentReply(usage=TOLD, messages=[said(usage=TOLD), said(usage=TOLD)]),
        spent(1, 1000, 100, COST),
    ),
    "a sum is output": (AgentReply("x", usage={"total_tokens": 50}), spent(1, 0, 50, 0.0005)),
    "nothing is told": (AgentReply("b" * 40), GUESS),
    "no text": (AgentReply(), spent(1, A400, 0, round(2 * A400 / 1e6, 9), estimated=True)),
}


@pytest.mark.parametrize(("reply", "usage"), ROWS.values(), ids=ROWS)
def test_what_a_turn_of_an_agent_spends(reply: AgentReply, usage: Usage) -> None:
    assert approximately(spends(reply)) == usage


def test_of_a_whole_conversation_only_what_is_new_is_spent() -> None:
    first = [said("1", usage=TOLD)]
    second = [*first, said("2", usage=TOLD), said("3", usage=TOLD)]
    assert spends(AgentReply(messages=first), AgentReply(messages=second)).input_tokens == 2000
    assert spends(AgentReply(messages=second), AgentReply(messages=first)).input_tokens == 1000
    other = [said("4", usage=TOLD), *second]
    assert spends(AgentReply(messages=second), AgentReply(messages=other)).input_tokens == 4000
    assert spends(AgentReply(messages=first), AgentReply(messages=first)).input_tokens == 1000
    assert spends(AgentReply(messages=first), AgentReply(messages=other[:2])).input_tokens == 2000


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [([], 0), ([{"role": "user"}], 0), ([{"content": "a" * 400}, {"content": "b" * 40}], B40)],
)
def test_a_guess_counts_the_latest_message(messages: list[Message], tokens: int) -> None:
    assert spends(AgentReply("x"), messages=messages).input_tokens == tokens


@pytest.mark.parametrize(
    ("limits", "replies", "calls"),
    [
        ({"max_calls": 2}, lambda: AgentReply("x"), 2),
        ({"max_calls": 2}, lambda: AgentReply("x", usage={**TOLD, "calls": 2}), 1),
        ({"max_calls": 2}, lambda: OSError("broke"), 2),
        ({"max_tokens": 2200}, lambda: AgentReply("x", usage=TOLD), 2),
        ({"max_cost": 2 * COST}, lambda: AgentReply("x", usage=TOLD), 2),
        ({"max_calls": 9, "by_role": {"agent": {"max_calls": 1}}}, lambda: AgentReply("x"), 1),
        ({"max_calls": 9, "by_role": {"judge": {"max_calls": 1}}}, lambda: AgentReply("x"), 9),
    ],
)
def test_an_agents_budget(
    limits: dict[str, Any], replies: Callable[[], AgentReply | Exception], calls: int
) -> None:
    agent = Talker(*(replies() for _ in range(20)))
    ends = talk(agent, ledger_of(**limits), times=20)
    assert agent.calls == calls
    assert [isinstance(end, BudgetError) for end in ends] == [False] * calls + [True] * (20 - calls)


def test_an_agent_without_limits_of_tokens_is_not_measured() -> None:
    agent = Talker(*[AgentReply("b" * 40)] * 2)
    ledger = ledger_of(max_calls=5)
    assert [end.usage for end in talk(agent, ledger, times=2)] == [None, None]
