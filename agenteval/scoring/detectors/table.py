"""The detectors by name. Each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from agenteval.scoring.detectors.conversation import Detector
from agenteval.scoring.metrics import TOOL_CALL_BEHAVIOR

AGENT_BEHAVIOR = "agent_behavior_failure"

DETECTORS: Mapping[str, str] = {
    "repeated_tool_call": "tool_use",
    "wrong_arguments": "arguments",
    "malformed_arguments": "arguments",
    "unknown_tool": "tool_use",
    "ignored_tool_error": "tool_use",
    "contradicts_evidence": "values",
    "ungrounded_value": "values",
    "repetition": "repetition",
    "leak": "leaks",
    "unconfirmed_action": "consent.unconfirmed",
    "claimed_action_not_called": "claims",
}
"""Each name, which is also that of a function, and the module of it."""


NEED_ALL_CALLS = frozenset(
    (
        "claimed_action_not_called",
        "contradicts_evidence",
        "ungrounded_value",
        "ignored_tool_error",
        "repeated_tool_call",
    )
)
"""Those that argue from a call which was not made: none that gave the value or did what is claimed, none that
made up for an error or came between two that are alike. They do not run where calls may have been made that
nobody saw; nor do those of ``wrong_arguments`` that look for who gave a value."""


@cache
def detector(name: str) -> Detector:
    """The detector of a name in ``DETECTORS``."""
    found: Detector = getattr(import_module(f"agenteval.scoring.detectors.{DETECTORS[name]}"), name)
    return found


def metric_of(name: str) -> str:
    """The label metric whose labels a detector's findings have."""
    return TOOL_CALL_BEHAVIOR if DETECTORS[name] in ("tool_use", "arguments") else AGENT_BEHAVIOR
