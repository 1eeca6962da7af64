"""Implements ``agenteval merge RUN…``: merges the runs of all shards into one run, and returns its exit
code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.progress import TerminalObserver
from agenteval.core.config import Config, ReporterChoice
from agenteval.files.judge_request_log import JUDGE_REQUESTS_FILE
from agenteval.files.runs import JOURNAL_FILE
from agenteval.reporters.options import Detail
from agenteval.running.baseline_store import save_baseline
from agenteval.running.merge import StoredShard, find_shards, merge_shards
from agenteval.running.stored_runs import runs_root


def merge(
    names: Sequence[str],
    *,
    config: str | None = None,
    keep_baseline: bool = False,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
) -> int:
    """Merge the runs of shards called ``names`` into one run and return its exit code. Raise ``AuthorError``
    if they do not belong together."""
    observer, root = TerminalObserver(), Path(config).absolute().parent if config else runs_root()
    shards = find_shards(names, root, observer)
    reporters = shards[0].run.started.config.reporters
    targets = resolve_targets(Config(reporters=reporters, root=str(root)), reports)
    refuse_overwriting_inputs(targets, _input_files(shards))
    with redirect_stdout(sys.stderr):
        merged = merge_shards(shards, root, config, observer)
        if keep_baseline:
            observer.show_line(save_baseline(merged.report, merged.folder, root))
    return write_reports(
        merged.report, merged.decision, targets, folder=merged.folder, detail=detail, opens=opens
    )


def _input_files(shards: Sequence[StoredShard]) -> Iterator[Path]:
    for shard in shards:
        yield from (shard.folder / JOURNAL_FILE, shard.folder / JUDGE_REQUESTS_FILE)
