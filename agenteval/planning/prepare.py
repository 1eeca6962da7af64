"""A run is prepared: load, select, resolve, wire. What each step makes is the input of the next ones."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.core.plan import Plan
from agenteval.files.config_checks import Known
from agenteval.planning.request import Request
from agenteval.planning.resolve import resolve
from agenteval.planning.selecting import Selected, select
from agenteval.planning.suite import Suite, load
from agenteval.planning.wiring import Wired, wire


@dataclass(frozen=True)
class Prepared:
    """All that a run needs, and what it was made of."""

    suite: Suite
    selected: Selected
    plan: Plan
    wired: Wired

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not run, or not checked, although somebody may expect it."""
        return (*self.selected.remarks, *self.wired.remarks)


def prepare(request: Request, known: Known) -> Prepared:
    """Load and check everything; call nothing. Raises ``AuthorError`` with all that is wrong. ``known``: what
    a configuration may name."""
    suite = load(request, known)
    selected = select(suite)
    plan = resolve(suite, selected)
    return Prepared(suite, selected, plan, wire(plan, suite, selected))
