"""Prepares a run: load, select, resolve, wire. The result of each step is the input of the next ones."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.core.plan import Plan
from agenteval.files.config_checks import Registries
from agenteval.planning.plan_resolution import resolve
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import SelectedSamples, select
from agenteval.planning.suite import Suite, load_suite
from agenteval.planning.wiring import WiredRun, wire


@dataclass(frozen=True)
class PreparedRun:
    """All that a run needs, and what it was made from."""

    suite: Suite
    selected: SelectedSamples
    plan: Plan
    wired: WiredRun

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not run, or not checked, although somebody may expect it."""
        return (*self.selected.remarks, *self.wired.remarks)


def prepare(request: Request, known: Registries) -> PreparedRun:
    """Load and check everything; call nothing. Raise ``AuthorError`` with all that is wrong. ``known``: what
    a configuration may name."""
    suite = load_suite(request, known)
    selected = select(suite)
    plan = resolve(suite, selected)
    return PreparedRun(suite, selected, plan, wire(plan, suite, selected))
