"""The cost of model calls and the budget at which a run stops: prices, a ledger that includes calls in
flight, and the ledger's lines in a report.

Costs are in US dollars. A price that is not configured remains ``None`` throughout, because an unknown cost
is never 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agenteval.core.config import Allowance, BudgetConfig, Price
from agenteval.core.errors import BudgetError
from agenteval.core.providers import PROVIDERS
from agenteval.core.trajectory import Usage, sum_usage

ROLES = ("agent", "user", "judge", "dedup")
REPLY_TOKENS = 200
"""The estimated length, in tokens, of an answer from a model that has not answered yet."""
_FREE = Price(input=0.0, output=0.0)
_ROUNDING = 1e-9  # of a sum of costs


def price_of(name: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price in the price table for ``PROVIDER/MODEL`` or for the name of an agent. Return ``None``
    if the price is not configured."""
    provider = PROVIDERS.shipped.get(name.partition("/")[0]) if "/" in name else None
    return prices.get(name) or (_FREE if provider and provider.in_process else None)


def cost_of(usage: Usage, price: Price) -> float:
    """Return the cost of ``usage`` at ``price`` (cost per token times number of tokens). Cached tokens are
    included in the input tokens."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    dollars = (usage.input_tokens - cached) * price.input + cached * cached_price
    return (dollars + usage.output_tokens * price.output) / 1e6


def price_usage(usage: Usage, price: Price | None) -> Usage:
    """Return ``usage`` with its cost (token pricing).

    A cost that the provider reported is kept. The cost remains unknown if the price is unknown or if only the
    sum of input and output tokens is known, because input and output have different prices."""
    if price is None or usage.cost is not None or not usage.is_spent or usage.unsplit:
        return usage
    return usage.model_copy(update={"cost": cost_of(usage, price)})


def how_to_price(name: str) -> str:
    """Return the setting to add to the configuration when a price is missing."""
    return f"add `prices: {{{name}: {{input: …, output: …}}}}` (US dollars per million tokens)"


# ── lines of a report ────────────────────────────────────────────────────────────────────────────


class LedgerLine(NamedTuple):
    """The spending of one role with one model."""

    role: str
    name: str
    """``PROVIDER/MODEL`` or the name of an agent."""
    usage: Usage


def lines_of(spent: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Sum the usage in one line for each role and model, in the order of the roles."""
    by_name: dict[tuple[str, str], list[Usage]] = {}
    for role, name, usage in spent:
        if usage.is_spent or usage.cached_calls:
            by_name.setdefault((role, name), []).append(usage)
    lines = [LedgerLine(role, name, sum_usage(usages)) for (role, name), usages in by_name.items()]
    return tuple(sorted(lines, key=lambda line: (ROLES.index(line.role), line.name)))


class Cost(NamedTuple):
    """The cost of a run in US dollars."""

    known: float
    """The sum of all known costs."""
    unknown: tuple[LedgerLine, ...]
    """The lines with an unknown cost, which the sum excludes."""

    @property
    def is_fully_known(self) -> bool:
        return not self.unknown


def total_cost(lines: Iterable[LedgerLine]) -> Cost:
    """Return the cost of a run. If an agent's line has no tokens, no model is known for it, so the cost of
    that line is unknown."""
    billed = [line for line in lines if line.usage.is_spent]
    known = sum(line.usage.cost for line in billed if line.usage.cost is not None)
    return Cost(known, tuple(line for line in billed if line.usage.cost is None))


# ── during a run ─────────────────────────────────────────────────────────────────────────────────


class BudgetedCall(Protocol):
    """A call in flight and its reservation."""

    def request(self) -> None:
        """Reserve budget for one more request. Raise ``BudgetError`` if the budget is exhausted."""

    def settle(self, usage: Usage, *, is_failed: bool = False) -> None:
        """Record that the call has ended. A failed call counts as a call even if its usage is unknown."""


class CallBudget(Protocol):
    """The budget of a run, in this process or in another one."""

    def needs_estimate(self, role: str = "") -> bool:
        """Check whether a call requires a size estimate before it is made."""

    def counts_tokens(self, role: str = "") -> bool:
        """Check whether a limit on tokens applies to the calls of a role."""

    def carry_over(self, usage: Usage, role: str = "") -> None:
        """Add the spending from before the run was resumed."""

    async def open_call(
        self, name: str, price: Price | None, prompt_tokens: int, role: str = ""
    ) -> BudgetedCall:
        """Reserve budget for one call to ``name``. Raise ``BudgetError`` if the budget is exhausted, in which
        case the call must not be made."""


@dataclass
class _Spending:
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, calls: int, tokens: int, cost: float) -> None:
        self.calls += calls
        self.tokens += tokens
        self.cost += cost


class _Account:
    """Spending, and reservations for calls in flight, that count against one allowance. ``owner`` is the name
    used in messages."""

    def __init__(self, allowance: Allowance, owner: str) -> None:
        self.allowance = allowance
        self.owner = owner
        self.spent = _Spending()
        self.reserved = _Spending()
        self.is_used_up = False

    def shortfall(self, calls: int, tokens: int, cost: float) -> str:
        """Explain why this additional amount does not fit into the allowance. Return an empty string if it
        fits."""
        requested = {"max_calls": calls, "max_tokens": tokens, "max_cost": cost}
        for name, limit in self.allowance.limits.items():
            kind = name.removeprefix("max_")
            spent, reserved, more = getattr(self.spent, kind), getattr(self.reserved, kind), requested[name]
            if spent + reserved >= limit - _ROUNDING or spent + reserved + more > limit + _ROUNDING:
                return self._sentence(name, limit, spent, reserved, more)
        return ""

    def _sentence(self, name: str, limit: float, spent: float, reserved: float, more: float) -> str:
        def form(amount: float) -> str:
            return f"{amount:,.4f} USD" if name == "max_cost" else f"{amount:,}"

        text = f"{self.owner} is exhausted: {name} is {form(limit)}, with {form(spent)} spent"
        if reserved:
            text += f" and {form(reserved)} reserved for calls in flight"
        if name != "max_calls":
            text += f"; the next call needs about {form(more)}"
        return text


class BudgetLedger:
    """The spending of a run and the reservations for its calls in flight, checked against the budget limits.

    ``max_calls`` is exact, regardless of the number of calls in flight, if ``begin`` is called before each
    call and ``settle`` after it. For tokens and cost, the ledger counts an estimate for each call in flight,
    so the limit is exceeded by no more than the error of these estimates. A role may have its own limits,
    which stop only the calls made by that role. ``on_stop`` is called once, with an explanatory sentence,
    when the entire budget is used up. ``on_spent`` is called once for each role whose own limit is used up.
    """

    def __init__(
        self,
        budget: BudgetConfig,
        on_stop: Callable[[str], None] = lambda _: None,
        on_spent: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.budget = budget
        self.on_stop = on_stop
        self.on_spent = on_spent
        self._total = _Account(budget, "the budget")
        roles = budget.roles.items()
        self._roles = {role: _Account(own, f"the budget of role {role}") for role, own in roles}
        self._seen: dict[str, Usage] = {}  # of each model's settled calls

    def carry_over(self, usage: Usage, role: str = "") -> None:
        """Add the spending from before the run was resumed."""
        for account in self._accounts(role):
            account.spent.add(usage.calls, usage.tokens, usage.cost or 0.0)

    def _accounts(self, role: str) -> tuple[_Account, ...]:
        """Return the accounts that a call counts against. The role's own account is first, because it stops
        fewer calls."""
        account = self._roles.get(role)
        return (account, self._total) if account else (self._total,)

    def needs_estimate(self, role: str = "") -> bool:
        """Check whether a call requires a size estimate before it is made."""
        return self.counts_tokens(role) or any(a.allowance.max_cost is not None for a in self._accounts(role))

    def counts_tokens(self, role: str = "") -> bool:
        return any(account.allowance.max_tokens is not None for account in self._accounts(role))

    async def open_call(self, name: str, price: Price | None, prompt_tokens: int, role: str = "") -> OpenCall:
        return self.begin(name, price, prompt_tokens, role)

    def begin(self, name: str, price: Price | None, prompt_tokens: int, role: str = "") -> OpenCall:
        """Reserve budget for one call to ``name``. Raise ``BudgetError`` if the budget is exhausted, in which
        case the call must not be made."""
        usage = self._expected(name, prompt_tokens) if self.needs_estimate(role) else Usage()
        reserved = (1, usage.tokens, cost_of(usage, price) if price else 0.0)
        self._require_room(role, *reserved)
        self._reserve(role, *reserved)
        return OpenCall(self, name, role, reserved)

    def _expected(self, name: str, prompt_tokens: int) -> Usage:
        """Estimate the usage of a call from earlier calls and, if known, from the prompt."""
        seen = self._seen.get(name)
        if seen is None:
            return Usage(input_tokens=prompt_tokens, output_tokens=REPLY_TOKENS if prompt_tokens else 0)
        input_tokens = prompt_tokens or seen.input_tokens // seen.calls
        return Usage(input_tokens=input_tokens, output_tokens=seen.output_tokens // seen.calls)

    def _require_room(self, role: str, calls: int, tokens: int, cost: float) -> None:
        for account in self._accounts(role):
            if why := account.shortfall(calls, tokens, cost):
                if not account.is_used_up:
                    account.is_used_up = True
                    (self.on_stop if account is self._total else self.on_spent)(why)
                raise BudgetError(why)

    def _reserve(self, role: str, calls: int, tokens: int, cost: float) -> None:
        for account in self._accounts(role):
            account.reserved.add(calls, tokens, cost)

    def _settle(self, call: OpenCall, calls: int, usage: Usage) -> None:
        calls_reserved, tokens, cost = call.reserved
        self._reserve(call.role, -calls_reserved, -tokens, -cost)
        self.carry_over(usage.model_copy(update={"calls": calls}), call.role)
        if self.needs_estimate(call.role) and usage.calls:
            self._seen[call.name] = self._seen.get(call.name, Usage()) + usage

    def _reserve_request(self, call: OpenCall) -> None:
        self._require_room(call.role, 1, 0, 0.0)
        self._reserve(call.role, 1, 0, 0.0)
        calls_reserved, tokens, cost = call.reserved
        call.reserved = (calls_reserved + 1, tokens, cost)


class OpenCall:
    """A call in flight and its reservation. Call ``request`` before each HTTP request. The reservation covers
    the first request; each additional request (a repair, a retry) needs its own reservation."""

    def __init__(self, ledger: BudgetLedger, name: str, role: str, reserved: tuple[int, int, float]) -> None:
        self.name = name
        self.role = role
        self.reserved = reserved
        self._ledger = ledger
        self.requests = 0
        """The requests that were sent, or may have been."""

    def request(self) -> None:
        """Reserve budget for one more request. Raise ``BudgetError`` if the budget is exhausted."""
        if self.requests:
            self._ledger._reserve_request(self)
        self.requests += 1

    def settle(self, usage: Usage, *, is_failed: bool = False) -> None:
        """Record that the call has ended. A failed call counts as a call even if its usage is unknown."""
        self._ledger._settle(self, max(usage.calls, 1) if is_failed else usage.calls, usage)
