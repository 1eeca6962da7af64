"""From the command line to a checked plan: shared by ``run`` and ``validate``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval import config_file, judging, loading, preflight, selection, wiring
from agenteval.config import Config
from agenteval.judging import Metrics
from agenteval.pipeline import Plan
from agenteval.scenario import Sample, Scenario
from agenteval.selection import Filters


@dataclass(frozen=True)
class Request:
    """What the command line asked for. ``flags`` are configuration keys that it sets."""

    paths: tuple[str, ...] = ()
    config: str | None = None
    filters: Filters = field(default_factory=Filters)
    flags: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    fail_fast: bool = False
    no_judge: bool = False


@dataclass(frozen=True)
class Prepared:
    """``public`` is the configuration as it may be written down: without secrets."""

    config: Config
    public: Config
    resources: wiring.Resources
    scenarios: tuple[Scenario, ...]
    samples: tuple[Sample, ...]
    plan: Plan
    metrics: Metrics


def prepare(request: Request) -> Prepared:
    """Load and check everything; call nothing. Raises ``AuthorError`` with all that is wrong."""
    loaded = config_file.load_config(
        Path(request.config) if request.config else config_file.find_config(Path.cwd()),
        environ=os.environ,
        flags=request.flags,
    )
    config = loaded.config
    root = Path(config.root)
    if request.paths:
        files = loading.find_under(request.paths, Path.cwd())
    else:
        files = loading.find_files(root, config.include, config.exclude)
    chosen = judging.metrics_of(config)
    loaded_scenarios = loading.load(
        files, root=root, check=lambda scenario: preflight.scenario_problems(scenario, config, chosen)
    )
    scenarios = selection.select(loaded_scenarios, request.filters)
    samples = selection.samples_of(scenarios, config, request.filters, epochs=request.epochs)
    agents = selection.agents_of(config, request.filters)
    resources = wiring.Resources(config, loaded.secrets, no_judge=request.no_judge)
    plan = wiring.plan(samples, config, agents, chosen, resources, fail_fast=request.fail_fast)
    return Prepared(config, loaded.public, resources, scenarios, samples, plan, chosen)
