"""Reads from earlier runs which of an agent's tool calls were visible to agenteval. This is
needed because a rerun of only part of a suite might contain no conversation from which the visibility can be
determined."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from agenteval.core.config import AgentConfig, Config
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import ToolVisibility
from agenteval.files import journal, runs
from agenteval.files.regular_files import open_file
from agenteval.importers.logs import visibility_in

_RUNS_READ = 3
"""The number of recent runs that are read. Older runs are ignored because they may be out of date."""
_MAX_BYTES = 64 * 2**20


def earlier_visibility(root: Path, public: Config, names: Collection[str]) -> dict[str, KnownVisibility]:
    """Return the tool-call visibility of each agent whose calls were all visible in a recent run below
    ``root``. An agent is included only if its name is in ``names`` and its configuration has not changed
    since that run. ``public`` is the configuration without secrets."""
    agents = {name: agent for name, agent in _agents(public).items() if name in names}
    found: dict[str, KnownVisibility] = {}
    for folder in runs.find_run_folders(root)[: -_RUNS_READ - 1 : -1]:
        for name, known in _read_visibility(folder, agents):
            found.setdefault(name, known)
    return found


def _read_visibility(
    folder: Path, agents: Mapping[str, AgentConfig]
) -> Iterator[tuple[str, KnownVisibility]]:
    """Yield the tool-call visibility that a run recorded for the agents. Yield nothing if the run cannot be
    read."""
    path = folder / runs.JOURNAL_FILE
    try:
        if path.stat().st_size > _MAX_BYTES:
            return
        with open_file(path) as file:
            started = journal.event_from_json(file.readline())
            file.seek(0)
            known = visibility_in(file)
    except (OSError, ValueError):
        return
    then = _agents(getattr(started, "config", None))
    for name, each in known.items():
        if name in agents and then.get(name) == agents[name] and each.calls is ToolVisibility.ALL:
            yield name, each


def _agents(config: Config | None) -> dict[str, AgentConfig]:
    return {agent.name: agent for agent in config.all_agents} if config else {}
