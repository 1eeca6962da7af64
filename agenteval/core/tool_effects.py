"""What a tool does to the world: it writes, it reads, or nobody knows. A mark decides, else the hints of MCP
or of its framework, else a plain name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from agenteval.core.scenario import Tool


class ToolEffect(StrEnum):
    """``UNKNOWN``: it has no mark, and its name does not say (``run_sql``, ``http_request``)."""

    READS = "reads"
    WRITES = "writes"
    UNKNOWN = "unknown"


def effect_of(name: str, tool: Tool | None) -> ToolEffect:
    """By its mark (``reads``, ``writes``, ``destructive``), else by its name."""
    if tool is not None and (tool.writes or tool.destructive):
        return ToolEffect.WRITES
    if tool is not None and tool.reads:
        return ToolEffect.READS
    return effect_of_name(name)


def effect_from_hints(hints: Mapping[str, Any]) -> ToolEffect:
    """By the hints of MCP (``annotations`` of a tool). That it destroys says something only of a tool that
    is not read-only."""
    is_read_only, destroys = hints.get("readOnlyHint"), hints.get("destructiveHint")
    if is_read_only is True:
        return ToolEffect.READS
    return ToolEffect.WRITES if is_read_only is False or destroys is True else ToolEffect.UNKNOWN


def marks_from_hints(hints: Mapping[str, Any]) -> dict[str, bool]:
    """The mark that says the same as hints; empty if they say nothing."""
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
"""A name that begins with one of these says plainly that its tool writes; ``add`` alone adds numbers."""
VERBS_THAT_ARE_NOUNS = _word_set(
    "block book charge credit debit deposit downgrade email exchange grant issue lock message order"
    " post purchase rebook refund register reserve return schedule ship transfer upgrade"
)
"""These say so, too, unless the name ends with what is looked up: ``refund_order``, but not
``refund_status``."""
LOOKED_UP = _word_set(
    "availability balance calculator check count details eligibility estimate fees history info"
    " information list lookup options policies policy preview price prices query quote rate rates rules"
    " search status summary terms total"
)
GENERAL_VERBS = _word_set("complete initiate make perform process")
"""These say so only before one of the ``ACTS``: ``process_refund``, but not ``process_text``."""
ACTS = _word_set(
    "booking cancellation deposit exchange order payment purchase refund reservation return transfer"
    " withdrawal"
)
READING_VERBS = _word_set(
    "browse calculate count describe fetch find get list lookup look query read retrieve search show view"
)
"""A name that begins with one of these says plainly that its tool reads."""


@lru_cache(maxsize=4096)
def effect_of_name(name: str) -> ToolEffect:
    """What a name says plainly. Of ``mcp__shop__cancel_order`` and ``shop.cancel_order`` the last part
    counts."""
    verb, *objects = words_of(_NAMESPACE.split(name)[-1]) or ("",)
    looks_up = bool(objects) and objects[-1] in LOOKED_UP
    if verb in READING_VERBS or (verb in VERBS_THAT_ARE_NOUNS and looks_up):
        return ToolEffect.READS
    if verb == "transfer" and objects[:1] == ["to"]:
        return ToolEffect.UNKNOWN  # a hand-over to a person or to another agent
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
    """``cancelOrder_v2`` as ``("cancel", "order", "v")``."""
    return tuple(part.lower() for part in _BETWEEN_WORDS.split(name[:200]) if part)
