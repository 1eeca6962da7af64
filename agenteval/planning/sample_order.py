"""Chooses the order in which the samples of a run start, based on the latest earlier run: what did not pass
comes first, then new scenarios, then the others, the longest conversations first. The verdict does not depend
on the order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from agenteval.core.event import SampleFinished
from agenteval.core.plan import Pairing
from agenteval.core.scenario import Sample
from agenteval.core.score import Verdict
from agenteval.files.journal import read_placed_events
from agenteval.files.runs import StoredRun
from agenteval.planning.last_failed import find_latest_run
from agenteval.planning.run_preparation import PreparedRun
from agenteval.verdict import gates
from agenteval.verdict.report import Fold

_MAX_BYTES = 64 * 2**20


@dataclass(frozen=True)
class EarlierResults:
    """What is known about the scenarios of an earlier run."""

    known: Collection[str]
    not_passed: Collection[Pairing]
    took_s: Mapping[str, float]
    """The mean duration of a scenario's samples, in seconds."""


def order_samples(prepared: PreparedRun) -> None:
    """Reorder the queue of a new run if the order matters: if not all samples start at once, or if the first
    failure ends the run."""
    runtime, suite, samples = prepared.wired.runtime, prepared.suite, prepared.wired.samples
    may_wait = runtime.fail_fast or len(prepared.plan.samples) > runtime.agent_concurrency
    if may_wait and not suite.request.recording.replay:
        earlier = _read_latest_run(Path(suite.settings.config.root))
        if earlier:
            runtime.queue.reorder(sort_samples(samples, earlier))


def sort_samples(samples: Sequence[Sample], earlier: EarlierResults) -> list[Sample]:
    """Sort the samples by scenario. The samples of a scenario keep their order, so that changes over time
    affect all of its agents alike."""
    planned = {(sample.key.scenario, sample.key.agent) for sample in samples}
    failed = {scenario for scenario, _ in planned.intersection(earlier.not_passed)}

    def rank(sample: Sample) -> tuple[int, float]:
        scenario = sample.key.scenario
        group = 0 if scenario in failed else 2 if scenario in earlier.known else 1
        return group, -earlier.took_s.get(scenario, 0.0)

    return sorted(samples, key=rank)


def _read_latest_run(root: Path) -> EarlierResults | None:
    """Return the results of the latest run, or None if there is none, or if it is too large or unreadable."""
    try:
        run = StoredRun(find_latest_run(root))
        return _read_results(run) if run.file.stat().st_size <= _MAX_BYTES else None
    except Exception:  # no run should fail because of the order of its samples
        return None


def _read_results(run: StoredRun) -> EarlierResults:
    fold = Fold(run)
    took_s: dict[str, list[float]] = defaultdict(list)
    # ``run.events()`` would also change which strings are masked as secrets in this run.
    for event, place in read_placed_events(run.file):
        fold.add(event, place)
        if isinstance(event, SampleFinished) and event.is_over and event.took_s is not None:
            took_s[event.key.scenario].append(event.took_s)
    decided = gates.decide(fold.report()).scenarios
    return EarlierResults(
        known={scenario for scenario, _ in decided},
        not_passed={pairing for pairing, each in decided.items() if each.verdict is not Verdict.PASSED},
        took_s={scenario: fmean(times) for scenario, times in took_s.items()},
    )
