"""``agenteval list``: which scenarios there are, or would be run. Files are read, no code is loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval.cli.commands.output import deliver
from agenteval.cli.known import KNOWN
from agenteval.cli.way_out import say
from agenteval.core import selection
from agenteval.core.safe_text import clean
from agenteval.core.scenario import Scenario
from agenteval.planning.last_failed import gone_text, last_failed
from agenteval.planning.request import Request
from agenteval.planning.selecting import gone_of
from agenteval.planning.suite import load_config, load_scenarios, with_profile


def list_scenarios(request: Request, *, as_json: bool = False) -> int:
    """A line for each, in the order of the files. Raises ``AuthorError``."""
    chosen = _chosen(request)
    if as_json:
        text = json.dumps([_entry(scenario) for scenario in chosen], ensure_ascii=False, indent=2)
        deliver("json", text, None)
    else:
        deliver("terminal", "\n".join(clean(selection.full_id(scenario)) for scenario in chosen), None)
    return 0


def _chosen(request: Request) -> Sequence[Scenario]:
    config = load_config(request, KNOWN).config
    request = with_profile(request, config)
    loaded, found = load_scenarios(request, config)
    if request.asks_what_failed:
        failed = last_failed(Path(config.root), request.failed_in)
        ids = {name for name, _ in failed.pairings}
        found = tuple(scenario for scenario in found if scenario.id in ids)
        gone = gone_of(failed, request, config, loaded)
        if not found:
            raise failed.nothing_left(gone)
        if gone:
            say(f"warning: {gone_text(gone)}")
    kept = frozenset(selection.fewer([each.id for each in found], request.filters, config.seed))
    return tuple(scenario for scenario in found if scenario.id in kept)


def _entry(scenario: Scenario) -> dict[str, Any]:
    """``file`` and ``line``: where it is written; ``row``: the data that it was made of. ``simulated``:
    whether a model plays its user."""
    return {
        "run": selection.full_id(scenario),
        "id": scenario.id,
        "name": scenario.name,
        "file": selection.file_of(scenario),
        "line": int(scenario.source.rpartition(":")[2]),
        "row": scenario.row or None,
        "category": scenario.category.value,
        "tags": list(scenario.tags),
        "agent": scenario.agent,
        "simulated": not scenario.is_scripted,
    }
