"""The parsed command-line request for a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import RunStarted
from agenteval.core.plan import Pairing
from agenteval.core.selection import Filters
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.files import path_arguments
from agenteval.files.fault_names import absolute_packs
from agenteval.planning.shards import ShardNumber


@dataclass(frozen=True)
class JudgeChoice:
    """The options that select the judge's model and the metrics."""

    model: str | None = None
    """The model to use instead of ``models.default``."""
    no_judge: bool = False
    metric: tuple[str, ...] = ()
    """The only metrics to judge. If this is empty, the metrics selected in the configuration are judged."""

    @property
    def flags(self) -> dict[str, Any]:
        """The configuration keys that are set by these options."""
        keys: dict[str, Any] = {"models": {"default": self.model}} if self.model else {}
        return {**keys, "metrics": list(self.metric)} if self.metric else keys


class Backend(NamedTuple):
    """Where samples are played, if not in this process."""

    name: Literal["ray"]
    address: str | None = None
    """The address of a cluster. If this is None, one is started on this machine."""


def parse_backend(text: str | None) -> Backend | None:
    """Parse ``ray`` or ``ray=ADDRESS``. Raise ``AuthorError`` for anything else."""
    if text is None:
        return None
    name, separator, address = text.partition("=")
    if name == "ray" and bool(separator) == bool(address) and not address.startswith("ray://"):
        return Backend("ray", address or None)
    remedy = "use `ray`, `ray=auto` or `ray=HOST:PORT`; the driver must run on a machine of the cluster"
    raise AuthorError(Problem(f"--backend {text}: no such backend", remedy))


@dataclass(frozen=True)
class Request:
    """The run that was requested on the command line."""

    paths: tuple[str, ...] = ()
    config: str | None = None
    profile: str | None = None
    filters: Filters = field(default_factory=Filters)
    judging: JudgeChoice = field(default_factory=JudgeChoice)
    flags: Mapping[str, Any] = field(default_factory=dict)
    """The configuration keys that are set by other options."""
    epochs: int | None = None
    fail_fast: bool = False
    baseline: str | None = None
    keep_baseline: bool = False
    shard: ShardNumber | None = None
    """The shard to run. If this is None, everything that is selected is run."""
    faults: str | None = None
    """The fault packs (names or files, separated by commas) with which each scenario is run as well."""
    variants: str | None = None
    """The variant packs (names or files, separated by commas) with which each scenario is run as well."""
    recording: RecordingOptions = field(default_factory=RecordingOptions)
    last_failed: bool = False
    failed_in: str | None = None
    """The run whose failures are selected. If this is None and ``last_failed`` is set, the latest run is
    used."""
    pairings: frozenset[Pairing] | None = None
    """The pairs of scenario and agent to which the selection is limited. If this is None, the selection is
    not limited."""
    changed_files: tuple[str, ...] | None = None
    """The files that changed since the last round of ``--watch``. The selection is limited to the scenarios
    that they may affect, and to those that did not pass in ``failed_in``. If this is None, it is not
    limited."""
    backend: Backend | None = None
    """Where the samples are played. If this is None, they are played in this process."""
    resume: str | None = None
    """The run to resume."""
    visibility: Mapping[str, KnownVisibility] | None = None
    """The tool-call visibility that was known when the resumed run started."""
    options_given: tuple[str, ...] = ()
    """The names of all options given on the command line."""
    scenarios: tuple[Mapping[str, Any], ...] = ()
    """Scenarios that are given as values instead of files, in the form in which a file contains them."""
    agent: Mapping[str, Any] | None = None
    """The agent to run instead of the configured agents, in the form in which a configuration contains it."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """The configuration keys that are set in Python. The keys that are set by options take precedence."""
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv[1:]))
    """The arguments of the command line that repeats this request."""
    cwd: str = field(default_factory=os.getcwd)  # an agent may change it when it is imported

    @property
    def is_partial(self) -> bool:
        """True if only part of the suite is requested."""
        everything = Filters(agent=self.filters.agent)  # choosing an agent leaves the suite complete
        is_limited = self.selects_failed or self.pairings or self.changed_files is not None
        return bool(self.paths or is_limited or self.filters != everything)

    @property
    def selects_failed(self) -> bool:
        return self.last_failed or self.failed_in is not None

    def to_json(self, config: Config) -> dict[str, Any]:
        """Return the request as JSON, with absolute paths. The JSON contains everything that
        ``restore_request`` needs."""
        return {
            "cwd": self.cwd,
            "paths": [path_arguments.absolute_path_argument(path, self.cwd) for path in self.paths],
            "config": os.path.abspath(Path(self.cwd, config.source)) if config.source else None,
            "named_config": self.config,
            "profile": self.profile,
            "filters": asdict(self.filters),
            "judging": asdict(self.judging),
            "flags": dict(self.flags),
            "scenarios": list(self.scenarios),
            "agent": self.agent,
            "overrides": dict(self.overrides),
            "epochs": self.epochs,
            "fail_fast": self.fail_fast,
            "baseline": self.baseline,
            "keep_baseline": self.keep_baseline,
            "shard": self.shard,
            "faults": None if self.faults is None else absolute_packs(self.faults, self.cwd),
            "variants": None if self.variants is None else absolute_packs(self.variants, self.cwd),
            "last_failed": self.selects_failed or self.pairings is not None or self.changed_files is not None,
            "record": str(self.recording.record) if self.recording.record else None,
            "replay": str(self.recording.replay) if self.recording.replay else None,
        }


def restore_request(run: RunStarted) -> Request:
    """Restore the request of an earlier run. The recording that was used by that run is not continued,
    because it lacks the requests that were never sent."""
    stored = run.request
    replay = Path(stored["replay"]) if stored["replay"] else None
    pairings = (
        frozenset((scenario, agent) for scenario, agents in run.plan.scenarios.items() for agent in agents)
        if stored["last_failed"]
        else None
    )
    return Request(
        paths=tuple(stored["paths"]),
        config=stored["config"],
        profile=stored.get("profile"),
        filters=Filters(**{name: _list_to_tuple(value) for name, value in stored["filters"].items()}),
        judging=JudgeChoice(**{name: _list_to_tuple(value) for name, value in stored["judging"].items()}),
        flags=stored["flags"],
        epochs=stored["epochs"],
        fail_fast=stored["fail_fast"],
        baseline=stored["baseline"],
        keep_baseline=stored.get("keep_baseline", False),
        shard=ShardNumber(*shard) if (shard := stored.get("shard")) else None,
        faults=stored.get("faults"),
        variants=stored.get("variants"),
        scenarios=tuple(stored.get("scenarios", ())),
        agent=stored.get("agent"),
        overrides=stored.get("overrides", {}),
        recording=RecordingOptions(replay=replay),
        last_failed=stored["last_failed"],
        pairings=pairings,
    )


def _list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
