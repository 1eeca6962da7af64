"""Prepares a run in four steps: load, select, resolve, and wire. The result of each step is the input of the
following steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.core.plan import Plan
from agenteval.files.config_checks import Registries
from agenteval.planning.plan_resolution import resolve
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import SelectedSamples, select
from agenteval.planning.shards import cut, with_own_limits
from agenteval.planning.suite import Suite, load_suite
from agenteval.planning.wiring import WiredRun, wire

if TYPE_CHECKING:
    from agenteval.adapters.traffic.leased_calls import LeasedCalls


@dataclass(frozen=True)
class PreparedRun:
    """All objects that a run needs, along with the suite and the selection from which the run was
    prepared."""

    suite: Suite
    selected: SelectedSamples
    plan: Plan
    wired: WiredRun

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on items that are not run or not checked, although a user may expect them to be."""
        return (*self.selected.remarks, *self.wired.remarks)


def prepare(request: Request, known: Registries, leased: LeasedCalls | None = None) -> PreparedRun:
    """Load and check everything without calling any agent or model. Raise ``AuthorError`` with all problems
    found. ``known`` contains the names that a configuration may use. ``leased`` are the limits that several
    processes share."""
    if leased is None and request.backend is not None:
        from agenteval.adapters.traffic.leased_calls import LeasedCalls

        leased = LeasedCalls("driver")
    suite = load_suite(request, known)
    selected = select(suite)
    plan = resolve(suite, selected)
    if request.shard:
        written = {each.id: each.variant.of for each in selected.scenarios if each.variant}
        plan = cut(plan, request.shard, written)
    return PreparedRun(suite, selected, plan, wire(plan, with_own_limits(suite, plan), selected, leased))
