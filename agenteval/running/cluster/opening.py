"""Opens the backend of a run: with ``--backend ray``, its samples are played by workers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agenteval.adapters.traffic.leased_calls import LeasedBudget
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.plurals import plural
from agenteval.files.environment import PREFIX
from agenteval.files.journal import event_to_json
from agenteval.planning.run_preparation import PreparedRun
from agenteval.running.cluster.messages import WorkerSetup, hash_secret
from agenteval.running.execution import make_run_started, redact_run_started

_PLACES_SHOWN = 8
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")


@contextmanager
def open_backend(prepared: PreparedRun, show_line: Callable[[str], None]) -> Iterator[PreparedRun]:
    """Yield the prepared run with the runner that its backend needs. Raise ``AuthorError``, before anything
    is called, if the backend cannot be reached or a worker would measure something different. ``show_line``
    shows a line while it is started."""
    backend = prepared.suite.request.backend
    assert backend
    from agenteval.running.cluster.ray_backend import RayCluster, connect
    from agenteval.running.cluster.runner import ClusterRunner

    wired, config = prepared.wired, prepared.suite.settings.config
    _refuse_receivers(config, prepared.plan.agents)
    resources = wired.resources
    leased, budget = resources.leased, resources.traffic.ledger
    assert leased, "a run with a backend has leased calls"
    shipped = project_folder(config, prepared.suite.request.cwd) if backend.address else None
    show_line(f"starting Ray{f' workers at {backend.address}' if backend.address else ''} …")
    concurrency = config.agent_concurrency or config.concurrency
    with connect(backend.address, shipped) as ray:
        cluster = RayCluster(
            ray,
            make_setup(prepared, shipped),
            count=min(concurrency, len(prepared.plan.samples)),
            concurrency=config.concurrency,
            budget=config.budget if budget else None,
            carried=budget.carried if isinstance(budget, LeasedBudget) else (),
        )
        places = ", ".join(each.place for each in cluster.workers[:_PLACES_SHOWN])
        more = ", …" if len(cluster.workers) > _PLACES_SHOWN else ""
        busy = f"; for {cluster.without_core} more no core was free" if cluster.without_core else ""
        show_line(f"{plural(len(cluster.workers), 'worker')}: {places}{more}{busy}")
        leased.connect(cluster.coordinator)
        runner = ClusterRunner(
            cluster, lambda why: resources.stop_for_budget(why), resources.traffic.warn_role_stopped
        )
        try:
            yield replace(prepared, wired=replace(wired, runtime=replace(wired.runtime, runner=runner)))
        finally:
            cluster.close()


def _refuse_receivers(config: Config, names: Collection[str]) -> None:
    """Raise ``AuthorError`` for agents behind HTTP that send spans: they know one address, which cannot be
    that of every worker."""
    for agent in config.all_agents:
        if agent.name in names and agent.kind == "http" and agent.adapter_options.get("observe"):
            what = (
                f"agent '{agent.name}' sends its spans to one port, but `--backend ray` has several workers"
            )
            raise AuthorError(Problem(what, "run it without --backend", config.place("agent")))


def make_setup(prepared: PreparedRun, shipped: str | None) -> WorkerSetup:
    """Return what a worker needs to prepare the run again. Workers on this machine get its whole
    environment. To others go the variables that the configuration names, and nothing else: theirs is their
    own."""
    settings, resources = prepared.suite.settings, prepared.wired.resources
    started, variables = make_run_started(prepared), _own_variables(os.environ)
    if shipped is not None:
        variables = named_variables(settings.public, os.environ)
    return WorkerSetup(
        name="",
        run=event_to_json(started).encode(),
        masked=event_to_json(redact_run_started(prepared, started)).encode(),
        environ=variables,
        known_secrets=frozenset(map(hash_secret, resources.secrets)),
        shipped_from=shipped,
    )


def _own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return all variables but those that Ray sets for each process."""
    return {name: value for name, value in environ.items() if not name.startswith("RAY_")}


def named_variables(public: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that the configuration names, and those that overrule it. The file is
    searched, because ``public`` masks what may be secret."""
    texts = [public.model_dump_json()]
    if public.source:
        texts.append(Path(public.root, Path(public.source).name).read_text(encoding="utf-8"))
    names = {name for text in texts for name in _VARIABLE.findall(text)}
    names |= {model.api_key_env for model in public.models.all if model.api_key_env}
    return {name: value for name, value in environ.items() if name in names or name.startswith(PREFIX)}


def project_folder(config: Config, cwd: str) -> str:
    """Return the folder that is copied to other machines: the working directory or the configuration's
    folder, whichever contains the other. Raise ``AuthorError`` if none does."""
    root, here = Path(config.root).resolve(), Path(cwd).resolve()
    if root.is_relative_to(here):
        return str(here)
    if here.is_relative_to(root):
        return str(root)
    what = f"--backend ray: neither of {here} and {root} contains the other, so it is unclear what to copy"
    raise AuthorError(Problem(what, "run from the folder of the configuration, or from one above it"))
