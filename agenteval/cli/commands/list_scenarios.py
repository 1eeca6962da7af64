"""Implements ``agenteval list``: lists the existing scenarios, or the scenarios that a run would select.
Files are read, but code is not loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval.cli.commands.output import write_report_text
from agenteval.cli.safe_output import print_err
from agenteval.core import selection
from agenteval.core.safe_text import clean
from agenteval.core.scenario import Scenario
from agenteval.planning.last_failed import describe_removed, find_last_failed
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import find_removed_failures
from agenteval.planning.suite import load_config, load_scenarios, with_profile
from agenteval.running.registries import REGISTRIES


def list_scenarios(request: Request, *, as_json: bool = False) -> int:
    """List scenarios in file order, one per line. Raise ``AuthorError`` if a file is invalid."""
    chosen = _chosen(request)
    if as_json:
        text = json.dumps([_entry(scenario) for scenario in chosen], ensure_ascii=False, indent=2)
        write_report_text("json", text, None)
    else:
        write_report_text(
            "terminal", "\n".join(clean(selection.full_id(scenario)) for scenario in chosen), None
        )
    return 0


def _chosen(request: Request) -> Sequence[Scenario]:
    config = load_config(request, REGISTRIES).config
    request = with_profile(request, config)
    loaded, found = load_scenarios(request, config)
    if request.selects_failed:
        failed = find_last_failed(Path(config.root), request.failed_in)
        ids = {name for name, _ in failed.pairings}
        found = tuple(scenario for scenario in found if scenario.id in ids)
        gone = find_removed_failures(failed, request, config, loaded)
        if not found:
            raise failed.nothing_selected_error(gone)
        if gone:
            print_err(f"warning: {describe_removed(gone)}")
    kept = frozenset(selection.draw_subset([each.id for each in found], request.filters, config.seed))
    return tuple(scenario for scenario in found if scenario.id in kept)


def _entry(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as JSON. ``file`` and ``line`` are the location of the scenario, ``row`` is the data
    row from which the scenario was generated, and ``simulated`` is true if a model plays the user."""
    return {
        "run": selection.full_id(scenario),
        "id": scenario.id,
        "name": scenario.name,
        "note": scenario.note,
        "file": selection.scenario_file(scenario),
        "line": int(scenario.source.rpartition(":")[2]),
        "row": scenario.row or None,
        "category": scenario.category.value,
        "tags": list(scenario.tags),
        "agent": scenario.agent,
        "simulated": not scenario.is_scripted,
    }
