"""Implements ``agenteval runs``: lists the runs in ``.agenteval/runs`` with their results, newest first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from agenteval import __version__
from agenteval.cli.commands.output import make_report_options, write_report_text
from agenteval.core.config import ReporterChoice
from agenteval.core.decision import REPORTED, Decision
from agenteval.core.errors import AgentevalError
from agenteval.core.event import MergedShards
from agenteval.core.plurals import plural
from agenteval.core.score import Verdict
from agenteval.core.trajectory import sum_usage
from agenteval.files import runs
from agenteval.files.journal import is_run_locked
from agenteval.files.regular_files import private_opener
from agenteval.reporters.terminal.cells import NO_VALUE, clean_text, style_of
from agenteval.reporters.terminal.fitting_table import FittingTable
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.spending import amount
from agenteval.running.stored_runs import runs_root
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.report import Report
from agenteval.verdict.resumption import is_complete

LATEST = 20
"""The number of runs that are listed by default. Reading a run for the first time is slow."""

RunState: TypeAlias = Literal["complete", "running", "cut off", "unreadable"]


class RunEntry(NamedTuple):
    """An entry in the list of runs."""

    id: str
    started_at: str
    state: RunState
    kind: Literal["run", "score"] | None = None
    """The command that created the run, or None if the run cannot be read."""
    verdict: str | None = None
    exit_code: int | None = None
    scenarios: dict[str, int] | None = None
    """The number of scenarios with each verdict."""
    conversations: int | None = None
    agents: tuple[str, ...] = ()
    selection: bool = False
    """True if the run covered only a selection of its suite."""
    elapsed_s: float | None = None
    cost: float | None = None
    """The cost in US dollars, or None if any part of the cost is unknown."""
    shard: str = ""
    """The part of a run that was played, such as ``2/4``, or an empty string for a whole run."""
    merged: str = ""
    """The shards of which a run consists, such as ``3 of 4 shards``, or an empty string if it was played as
    a whole."""
    resumable: bool = False
    """True if ``run --resume`` can continue the run."""
    problem: str = ""
    """The reason why the run cannot be read."""


def list_runs(*, every: bool = False, as_json: bool = False) -> int:
    """Print the list of runs. Return 0 even if there are no runs."""
    root = runs_root()
    folders = runs.find_run_folders(root)[::-1]
    entries = [_entry(folder) for folder in (folders if every else folders[:LATEST])]
    if as_json:
        payload = [entry._asdict() for entry in entries]
        write_report_text("json", json.dumps(payload, ensure_ascii=False, indent=2), None)
        return 0
    options = make_report_options(ReporterChoice(name="terminal"), folder=root)
    write_report_text("terminal", render_parts(_render(entries, len(folders), root), options), None)
    return 0


# ── what became of a run ─────────────────────────────────────────────────────────────────────────


def _entry(folder: Path) -> RunEntry:
    """Return the list entry for a run. The entry for a complete run is cached next to its journal, because
    the entry can no longer change and reading a large journal takes seconds."""
    stamp = _stamp(folder)
    if (cached := _load_cached_entry(folder, stamp)) is not None:
        return cached
    entry = _read_entry(folder)
    if entry.state == "complete":
        with (
            suppress(OSError),
            open(folder / CACHE_FILE, "w", encoding="utf-8", opener=private_opener) as file,
        ):
            json.dump({"stamp": stamp, "entry": entry._asdict()}, file)
    return entry


CACHE_FILE = "listed.json"
_CACHE_VERSION = 4
"""The version of the cached entries. It must be incremented when the content of an entry changes."""


def _stamp(folder: Path) -> list[Any]:
    """Return values that identify the version of the journal that was read."""
    try:
        file_stat = (folder / runs.JOURNAL_FILE).stat()
    except OSError:
        return []
    return [_CACHE_VERSION, __version__, file_stat.st_size, file_stat.st_mtime_ns]


def _load_cached_entry(folder: Path, stamp: list[Any]) -> RunEntry | None:
    try:
        cached = json.loads((folder / CACHE_FILE).read_text(encoding="utf-8"))
        if not stamp or cached["stamp"] != stamp:
            return None
        return RunEntry(**{**cached["entry"], "id": folder.name, "agents": tuple(cached["entry"]["agents"])})
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _read_entry(folder: Path) -> RunEntry:
    began = runs.read_start_time(folder)
    running = is_run_locked(folder)
    try:
        events = runs.load_run(folder)
        report = reporting.build_report(events)
        decision = gates.decide(report)
    except AgentevalError as error:
        reason = str(error).partition("\n")[0]
        return RunEntry(folder.name, began, "running" if running else "unreadable", problem=reason)
    complete = is_complete(events)
    return RunEntry(
        folder.name,
        report.run.started_at,
        "running" if running else "complete" if report.finished else "cut off",
        kind="run" if report.run.request else "score",
        resumable=not (complete or running) and _can_be_resumed(report),
        **_figures(report, decision),
    )


def _can_be_resumed(report: Report) -> bool:
    """Check whether this version of agenteval can resume the run. ``--resume`` itself checks whether anything
    has changed since the run started."""
    return bool(report.run.request) and report.run.versions.get("agenteval") == __version__


def _figures(report: Report, decision: Decision) -> dict[str, Any]:
    counted = Counter(each.verdict.value for each in decision.scenarios.values())
    usage = sum_usage(report.usage.values())
    return {
        "verdict": decision.verdict_label,
        "exit_code": decision.exit_code,
        "scenarios": {verdict.value: counted[verdict.value] for verdict in Verdict},
        "conversations": len(report.samples),
        "agents": tuple(dict.fromkeys(each.agent for each in report.scenarios)),
        "selection": report.run.is_selection,
        "shard": str(report.plan.shard or ""),
        "merged": _describe_merged(report.run.merged) if report.run.merged else "",
        "elapsed_s": report.finished.elapsed_s if report.finished else None,
        "cost": usage.cost if usage.is_spent else 0.0,
    }


def _describe_merged(merged: MergedShards) -> str:
    shards, missing = plural(merged.count, "shard"), len(merged.incomplete)
    return f"{merged.count - missing:,} of {shards}" if missing else shards


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _render(entries: Sequence[RunEntry], total: int, root: Path) -> Iterator[RenderableType]:
    if not entries:
        yield clean_text(f"there is no run in {root / '.agenteval' / 'runs'}; start one with `agenteval run`")
        return
    rows = (
        (
            clean_text(entry.id),
            Text(_when(entry.started_at)),
            _verdict(entry),
            Text(_counts(entry)),
            clean_text(", ".join(entry.agents) or NO_VALUE),
            Text(_cost(entry.cost)),
            clean_text(", ".join(_remarks(entry))),
        )
        for entry in entries
    )
    titles = ("run", "began", "verdict", "scenarios", "agent", "cost", "")
    yield FittingTable(titles, rows, numbers=["cost"])
    if total > len(entries):
        yield Text(f"… and {plural(total - len(entries), 'older run')}; --all lists them", style="dim")


def _when(started_at: str) -> str:
    """Format a time in the local time zone."""
    try:
        return f"{datetime.fromisoformat(started_at).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return NO_VALUE


def _verdict(entry: RunEntry) -> Text:
    if entry.verdict is None:
        return Text(NO_VALUE)
    style = "" if entry.verdict == REPORTED else style_of(Verdict(entry.verdict))
    return Text(entry.verdict, style=style)


def _counts(entry: RunEntry) -> str:
    """Format the number of scenarios that passed and the total, such as ``19 of 23``."""
    if entry.scenarios is None or entry.verdict == REPORTED:
        return NO_VALUE
    return f"{entry.scenarios['passed']:,} of {sum(entry.scenarios.values()):,}"


def _cost(cost: float | None) -> str:
    return NO_VALUE if cost is None else "0" if not cost else f"${amount(cost)}"


def _remarks(entry: RunEntry) -> Iterator[str]:
    if entry.kind == "score":
        yield "score"
    if entry.shard:
        yield f"shard {entry.shard}"
    elif entry.merged:
        yield f"merged from {entry.merged}"
    elif entry.selection:
        yield "a selection"
    if entry.state != "complete":
        yield f"{entry.state}: {entry.problem}" if entry.problem else entry.state
    if entry.resumable:
        yield "resumable"
