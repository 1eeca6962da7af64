"""Reads the first event of a journal, which holds the scenarios of the run, scenario by scenario: of ten
thousand, all but one are then in memory only in the compact form."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from agenteval.core.event import RunStarted
from agenteval.core.scenario import Scenario, SharedTools
from agenteval.core.value import compact, copy_with

_scan = json.JSONDecoder().raw_decode
_BLANK = " \t\n\r"


def parse_run_started(line: bytes) -> RunStarted:
    """Return the first event of a journal from its line. Raise ``ValueError`` if the line is not such an
    event."""
    text = str(line, "utf-8")
    start = _find_scenarios(text)
    scenarios, place = [], _skip(text, start + 1, "")
    adapter, tools = TypeAdapter(Scenario), SharedTools()
    while text[place] != "]":
        _, end = _scan(text, place)
        scenario = compact(adapter.validate_json(text[place:end]))
        scenarios.append(copy_with(scenario, {"tools": tools.share(scenario.tools)}))
        place = _skip(text, end, ",")
    others = RunStarted.model_validate_json(f"{text[:start]}[{text[place:]}")
    return copy_with(others, {"scenarios": tuple(scenarios)})


def _find_scenarios(text: str) -> int:
    """Return the place of the array of scenarios. Raise ``ValueError`` if there is none."""
    place = _skip(text, 0, "{")
    while text[place] == '"':
        name, place = _scan(text, place)
        place = _skip(text, place, ":")
        if name == "scenarios" and text[place] == "[":
            return place
        _, place = _scan(text, place)
        place = _skip(text, place, ",")
    raise ValueError("no scenarios")


def _skip(text: str, place: int, sign: str) -> int:
    """Return the place after blanks and the sign, if it is there."""
    while text[place] in _BLANK + sign:
        place += 1
    return place
