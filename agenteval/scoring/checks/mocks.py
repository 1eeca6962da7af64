"""Checks that the scenario's mocks answered the observed tool calls. If a real tool ran instead, the agent's
behavior proves nothing about the world that the author defined."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agenteval.core.call_outcomes import abbreviate_call
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import Turn
from agenteval.scoring.checks.check_rule import CheckOutcome

MOCKS = "mocks"
_REMEDY = (
    'set `intercept: {{{name}: "FILE.py:FUNCTION"}}`, or call the tool through `ctx`; to use the agent\'s'
    " own tool, remove it from the scenario's `tools`"
)


def check_mocks(tools: Mapping[str, Tool], turn: Turn) -> CheckOutcome | None:
    """Return an undecided outcome for a turn in which a mocked tool was called, but not through agenteval.

    Return ``None`` if there is no such call. A call that was attempted but not carried out is ignored."""
    mocked = [name for name, tool in tools.items() if tool.is_mocked]
    what = describe_foreign_answers(mocked, turn)
    return CheckOutcome(None, what) if what else None


def describe_foreign_answers(mocked: Collection[str], turn: Turn) -> str:
    """Describe the calls to these tools that the agent's own code answered, or return an empty string if
    there is none."""
    calls = [
        call for call in turn.tool_calls if call.observed and not call.is_refused and call.name in mocked
    ]
    if not calls:
        return ""
    more = f" and {len(calls) - 1:,} more" if len(calls) > 1 else ""
    call = abbreviate_call(calls[0], 120)
    what = f"the agent's own code, not the mock of '{calls[0].name}', answered {call}{more}"
    return f"{what} — {_REMEDY.format(name=calls[0].name)}"
