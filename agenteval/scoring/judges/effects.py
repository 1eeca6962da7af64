"""What calls of tools did, as far as code can tell."""

from __future__ import annotations

import json
from typing import Any

from agenteval.core.error_texts import begins_as_error
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import ToolResult
from agenteval.scoring.detectors.verbs import nature_of


def writes(name: str, scenario: Scenario) -> bool:
    """Whether a tool changes something: by its marks, else by its name."""
    tool = scenario.tools.get(name)
    if tool is not None and (tool.reads or tool.writes or tool.destructive):
        return not tool.reads
    return nature_of(name).changes


def only_reads(name: str, scenario: Scenario) -> bool:
    """Whether a tool surely changes nothing: by its marks, else by its name."""
    tool = scenario.tools.get(name)
    if tool is not None and (tool.reads or tool.writes or tool.destructive):
        return tool.reads
    return nature_of(name).reads


def is_error(result: ToolResult) -> bool:
    """Whether a call failed, in whatever form its tool says so."""
    value = _decoded(result)
    if result.is_error or result.refused:
        return True
    if isinstance(value, dict):
        said_no = any(value.get(key) is False for key in ("success", "ok"))
        return said_no or bool(value.get("error") or value.get("errors"))
    return isinstance(value, str) and begins_as_error(value)


def may_rule_out(name: str, result: ToolResult, scenario: Scenario) -> bool:
    """Whether a result may show that something cannot be done: an error; or of a tool that only reads,
    something of it that is empty, none, no or nought, or a text, of which code cannot tell. What a tool that
    writes gives is what it has done."""
    value = _decoded(result)
    if is_error(result) or _is_nothing(value):
        return True
    return not writes(name, scenario) and (isinstance(value, str) or _has_nothing(value))


def _is_nothing(value: Any) -> bool:
    """All of it: ``{"slots": [], "total": 0}``."""
    if isinstance(value, dict | list):
        return all(map(_is_nothing, value.values() if isinstance(value, dict) else value))
    return value in (None, "", False, 0)


def _has_nothing(value: Any) -> bool:
    if isinstance(value, dict | list):
        items = list(value.values() if isinstance(value, dict) else value)
        return not items or any(map(_has_nothing, items))
    return _is_nothing(value)


def _decoded(result: ToolResult) -> Any:
    """Its value; of a text that is JSON, what it stands for."""
    if not isinstance(result.value, str):
        return result.value
    try:
        return json.loads(result.value)
    except (ValueError, RecursionError):
        return result.value
