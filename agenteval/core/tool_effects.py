"""Determines the effect of a tool: writing, reading (read-only), or unknown. The author's mark takes
precedence, followed by hints from MCP or the agent's framework, and finally an unambiguous name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from agenteval.core.scenario import Tool


class ToolEffect(StrEnum):
    """The effect of a tool."""

    READS = "reads"
    WRITES = "writes"
    UNKNOWN = "unknown"
    """The tool has no mark, and its name is ambiguous (``run_sql``, ``http_request``)."""


def effect_of(name: str, tool: Tool | None) -> ToolEffect:
    """Return the effect according to the tool's mark (``reads``, ``writes``, ``destructive``) or, if it has
    none, its name."""
    if tool is not None and (tool.writes or tool.destructive):
        return ToolEffect.WRITES
    if tool is not None and tool.reads:
        return ToolEffect.READS
    return effect_of_name(name)


def effect_from_hints(hints: Mapping[str, Any]) -> ToolEffect:
    """Return the effect according to MCP hints (tool ``annotations``). ``destructiveHint`` counts only if the
    tool is not read-only."""
    is_read_only, destroys = hints.get("readOnlyHint"), hints.get("destructiveHint")
    if is_read_only is True:
        return ToolEffect.READS
    return ToolEffect.WRITES if is_read_only is False or destroys is True else ToolEffect.UNKNOWN


def effect_of_hinted_tool(name: str, tool: Tool | None, hints: Mapping[str, Any]) -> ToolEffect:
    """Return the effect of a tool whose ``hints`` have not been converted to marks."""
    if tool is not None and tool.is_marked:
        return effect_of(name, tool)
    hinted = effect_from_hints(hints)
    return effect_of_name(name) if hinted is ToolEffect.UNKNOWN else hinted


def marks_from_hints(hints: Mapping[str, Any]) -> dict[str, bool]:
    """Return the mark that corresponds to the hints, or an empty mapping if the hints do not specify an
    effect."""
    effect = effect_from_hints(hints)
    return {} if effect is ToolEffect.UNKNOWN else {str(effect): True}


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRITING_VERBS = _word_set(
    "activate add apply approve assign ban buy cancel change close create deactivate delete destroy"
    " disable edit enable enroll erase insert invite modify move overwrite pay place publish redeem"
    " reimburse reject remove rename renew replace reschedule reset restore revoke send set submit"
    " subscribe suspend terminate unassign unblock unlock unregister unsubscribe update upload void"
    " withdraw"
)
"""Verbs at the beginning of the names of writing tools. A tool named only ``add`` is an exception, because it
adds numbers."""
VERBS_THAT_ARE_NOUNS = _word_set(
    "block book charge credit debit deposit downgrade email exchange grant issue lock message order"
    " post purchase rebook refund register reserve return schedule ship transfer upgrade"
)
"""Verbs at the beginning of the names of writing tools, unless the name ends with something that is looked
up: ``refund_order`` is a writing tool, but ``refund_status`` is not."""
LOOKED_UP = _word_set(
    "availability balance calculator check count details eligibility estimate fees history info"
    " information list lookup options policies policy preview price prices query quote rate rates rules"
    " search status summary terms total"
)
GENERAL_VERBS = _word_set("complete initiate make perform process")
"""Verbs at the beginning of the names of writing tools, but only if one of the ``ACTS`` follows:
``process_refund`` is a writing tool, but ``process_text`` is not."""
ACTS = _word_set(
    "booking cancellation deposit exchange order payment purchase refund reservation return transfer"
    " withdrawal"
)
READING_VERBS = _word_set(
    "browse calculate count describe fetch find get list lookup look query read retrieve search show view"
)
"""Verbs at the beginning of the names of reading tools."""


@lru_cache(maxsize=4096)
def effect_of_name(name: str) -> ToolEffect:
    """Return the effect that a name specifies unambiguously. Only the last part of
    ``mcp__shop__cancel_order`` or ``shop.cancel_order`` counts."""
    verb, *objects = words_of(_NAMESPACE.split(name)[-1]) or ("",)
    looks_up = bool(objects) and objects[-1] in LOOKED_UP
    if verb in READING_VERBS or (verb in VERBS_THAT_ARE_NOUNS and looks_up):
        return ToolEffect.READS
    if verb == "transfer" and objects[:1] == ["to"]:
        return ToolEffect.UNKNOWN  # a handover to a person or another agent
    is_plain = (
        (verb in WRITING_VERBS and (bool(objects) or verb != "add"))
        or verb in VERBS_THAT_ARE_NOUNS
        or (verb in GENERAL_VERBS and not ACTS.isdisjoint(objects) and not looks_up)
    )
    return ToolEffect.WRITES if is_plain else ToolEffect.UNKNOWN


_NAMESPACE = re.compile(r"__|[./:]")
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z]+")


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """Split a name into words: ``cancelOrder_v2`` becomes ``("cancel", "order", "v")``."""
    return tuple(part.lower() for part in _BETWEEN_WORDS.split(name[:200]) if part)
