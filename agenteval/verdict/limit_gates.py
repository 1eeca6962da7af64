"""Gate rows for the budget and the deadline. A run that either limit ended is undecided, even if everything
had passed up to that point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from agenteval.core.decision import GateRow
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import LedgerLine, total_cost
from agenteval.verdict.report import Report


def budget_gates(report: Report) -> Iterable[GateRow]:
    """Yield a row for each limit of the budget, showing how much of the limit the run used.

    If the budget stopped the run, the limit that was closest to being exhausted is reported as the one that
    stopped it, and its row is inconclusive. A row is also inconclusive if calls in flight exceeded its limit
    before they could be stopped. A role's own limit does not stop the run; calls that the role could not make
    are reported where their results are missing."""
    budget = report.plan.budget
    spent = _spent(sum(report.usage.values(), Usage()), report.ledger)
    stopped = report.finished is not None and report.finished.outcome == "budget"
    cause = max(budget.limits, key=lambda name: _share(spent[name], budget.limits[name]), default="")
    for name in budget.limits:
        by = "the budget stopped the run" if stopped and name == cause else ""
        yield _row(report, f"budget.{name}", spent[name], budget.limits[name], by, "all roles")
    for role, allowance in budget.roles.items():
        spent = _spent(report.usage[role], [line for line in report.ledger if line.role == role])
        for name, limit in allowance.limits.items():
            yield _row(report, f"budget.by_role.{role}.{name}", spent[name], limit, "", f"role {role}")


def _share(spent: float, limit: float) -> float:
    """Return the share of a limit that was used. A shard without samples has a limit of 0."""
    return spent / limit if limit else inf


def _row(report: Report, name: str, spent: float, limit: float, stopped_by: str, scope: str) -> GateRow:
    broken = stopped_by or ("exceeded by calls in flight" if spent > limit else "")
    return GateRow(
        name=name,
        value=spent,
        bound=limit,
        basis=broken or scope,
        where=report.plan.suite.where(name),
        verdict=Verdict.INCONCLUSIVE if broken else Verdict.PASSED,
        resolution=f"raise {name}, then agenteval run --resume latest" if broken else "",
    )


def _spent(usage: Usage, lines: Iterable[LedgerLine]) -> Mapping[str, float]:
    return {
        "max_calls": usage.calls,
        "max_tokens": usage.tokens,
        "max_cost": total_cost(lines).known,
    }


def deadline_gates(report: Report) -> Iterable[GateRow]:
    """Yield a row with the duration of the run if the run had a deadline."""
    plan, end = report.plan, report.finished
    if plan.suite.deadlines.run_s is None:
        return
    ended = end is not None and end.outcome == "deadline"
    yield GateRow(
        name="deadlines.run_s",
        value=end.elapsed_s if end else None,
        bound=f"at most {plan.suite.deadlines.run_s:g}",
        basis="the deadline ended the run" if ended else "the complete run",
        where=plan.suite.where("deadlines.run_s"),
        verdict=Verdict.INCONCLUSIVE if ended else Verdict.PASSED,
        resolution="agenteval run --resume latest" if ended else "",
    )
