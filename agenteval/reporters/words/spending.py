"""Describe the cost of a run: the known total, and the costs that it excludes."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plurals import plural
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import Cost, LedgerLine, how_to_price, total_cost
from agenteval.verdict.report import Report


def amount(cost: float) -> str:
    """Format an amount in US dollars. A nonzero amount is never shown as zero."""
    if not cost:
        return "0"
    return f"{cost:.4f}" if cost >= 0.0001 else "<0.0001"


def dollars(usage: Usage) -> str:
    """Format a cost, such as ``cost ≈0.0125 USD``, or return ``cost unknown``."""
    if usage.cost is None:
        return "cost unknown"
    return f"cost {'≈' if usage.estimated else ''}{amount(usage.cost)} USD"


def sum_text(report: Report) -> str:
    """Return the total cost of the run and the models with unknown costs, or an empty string if no cost is
    known."""
    cost = total_cost(report.ledger)
    if not cost.known:
        return ""
    known = _known_sum(cost, report)
    if cost.is_fully_known:
        return f"{known} USD in total"
    names = ", ".join(dict.fromkeys(line.name or line.role for line in cost.unknown))
    return f"at least {known} USD; the cost of {names} is unknown"


def brief_sum(report: Report) -> str:
    """Return the total cost in short form, such as ``0.41 USD``, ``at least 0.41 of 1 USD`` or ``cost
    unknown``. Return an empty string if the run incurred no costs."""
    cost = total_cost(report.ledger)
    if not cost.known:
        return "cost unknown" if any(unknown_texts(report)) else ""
    least = "" if cost.is_fully_known else "at least "
    limit = report.plan.budget.max_cost
    of_limit = f" of {amount(limit)}" if limit else ""
    return f"{least}{_known_sum(cost, report)}{of_limit} USD"


def _known_sum(cost: Cost, report: Report) -> str:
    is_estimated = any(line.usage.estimated and line.usage.cost for line in report.ledger)
    return f"{'≈' if is_estimated else ''}{amount(cost.known)}"


def unknown_texts(report: Report) -> Iterator[str]:
    """Yield a sentence for each model with an unknown price. Agents are included only if the configuration
    sets prices or a cost limit, because most agents incur no cost or do not report their usage."""
    plan = report.plan
    wants_costs = bool(plan.suite.prices) or plan.suite.budget.max_cost is not None
    wants_costs |= any(role_budget.max_cost is not None for role_budget in plan.suite.budget.roles.values())
    for line in total_cost(report.ledger).unknown:
        if line.role != "agent" or wants_costs:
            calls = plural(line.usage.calls, "call")
            who = f"{line.name or 'an unnamed model'} ({line.role})"
            yield f"cost unknown for {calls} to {who}: {_remedy(line, report)}"


def _remedy(line: LedgerLine, report: Report) -> str:
    if not line.name:
        return "the name of the model is not known, so no configured price applies"
    if line.name in report.plan.suite.prices:
        return "not every reply reported its tokens or its cost"
    return how_to_price(line.name)
