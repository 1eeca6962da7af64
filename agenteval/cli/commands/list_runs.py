"""``agenteval runs``: what is kept in ``.agenteval/runs``, newest first, and what became of each."""

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
from agenteval.cli.commands.output import deliver, options_of
from agenteval.cli.commands.report import runs_root
from agenteval.core.config import ReporterChoice
from agenteval.core.decision import REPORTED, Decision
from agenteval.core.errors import AgentevalError
from agenteval.core.plurals import plural
from agenteval.core.score import Verdict
from agenteval.core.trajectory import total_of
from agenteval.files import runs
from agenteval.files.journal import is_locked
from agenteval.files.plain_files import for_me_alone
from agenteval.reporters.terminal.cells import NOTHING, free, style_of
from agenteval.reporters.terminal.fitting import FittingTable
from agenteval.reporters.terminal.screen import painted
from agenteval.reporters.words.spending import amount
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.remaining import is_complete
from agenteval.verdict.report import Report

LATEST = 20
"""So many are read, unless all are asked for: each takes a moment, the first time."""

State: TypeAlias = Literal["complete", "running", "cut off", "unreadable"]


class KeptEntry(NamedTuple):
    """One run. ``kind``: of ``agenteval run``, or of ``score``. ``scenarios``: how many passed, failed, were
    not decided. ``cost``: in US dollars, if all of it is known. ``resumable``: ``run --resume`` goes on with
    it; ``problem``: why it cannot be read."""

    id: str
    started_at: str
    state: State
    kind: Literal["run", "score"] | None = None
    verdict: str | None = None
    exit_code: int | None = None
    scenarios: dict[str, int] | None = None
    conversations: int | None = None
    agents: tuple[str, ...] = ()
    selection: bool = False
    elapsed_s: float | None = None
    cost: float | None = None
    resumable: bool = False
    problem: str = ""


def list_runs(*, every: bool = False, as_json: bool = False) -> int:
    """Returns 0, also where there is none."""
    root = runs_root()
    folders = runs.runs_under(root)[::-1]
    entries = [_entry(folder) for folder in (folders if every else folders[:LATEST])]
    if as_json:
        told = [entry._asdict() for entry in entries]
        deliver("json", json.dumps(told, ensure_ascii=False, indent=2), None)
        return 0
    options = options_of(ReporterChoice(name="terminal"), folder=root)
    deliver("terminal", painted(_parts(entries, len(folders), root), options), None)
    return 0


# ── what became of a run ─────────────────────────────────────────────────────────────────────────


def _entry(folder: Path) -> KeptEntry:
    """Of a complete run it is kept beside the journal: reading a large one takes seconds, and it no longer
    changes."""
    stamp = _stamp(folder)
    if (kept := _kept(folder, stamp)) is not None:
        return kept
    entry = _read(folder)
    if entry.state == "complete":
        with suppress(OSError), open(folder / LISTED, "w", encoding="utf-8", opener=for_me_alone) as file:
            json.dump({"stamp": stamp, "entry": entry._asdict()}, file)
    return entry


LISTED = "listed.json"
_FORM = 2
"""Of what is kept: raised when an entry says something else."""


def _stamp(folder: Path) -> list[Any]:
    """By what a journal is known to be the one that was read."""
    try:
        told = (folder / runs.JOURNAL).stat()
    except OSError:
        return []
    return [_FORM, __version__, told.st_size, told.st_mtime_ns]


def _kept(folder: Path, stamp: list[Any]) -> KeptEntry | None:
    try:
        kept = json.loads((folder / LISTED).read_text(encoding="utf-8"))
        if not stamp or kept["stamp"] != stamp:
            return None
        return KeptEntry(**{**kept["entry"], "id": folder.name, "agents": tuple(kept["entry"]["agents"])})
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _read(folder: Path) -> KeptEntry:
    began = runs.started_at(folder)
    running = is_locked(folder)
    try:
        events = runs.load_run(folder)
        report = reporting.fold(events)
        decision = gates.decide(report)
    except AgentevalError as error:
        reason = str(error).partition("\n")[0]
        return KeptEntry(folder.name, began, "running" if running else "unreadable", problem=reason)
    complete = is_complete(events)
    return KeptEntry(
        folder.name,
        report.run.started_at,
        "running" if running else "complete" if report.finished else "cut off",
        kind="run" if report.run.request else "score",
        resumable=not (complete or running) and _can_be_resumed(report),
        **_figures(report, decision),
    )


def _can_be_resumed(report: Report) -> bool:
    """Whether this version would try; whether anything has changed meanwhile is for ``--resume`` to say."""
    return bool(report.run.request) and report.run.versions.get("agenteval") == __version__


def _figures(report: Report, decision: Decision) -> dict[str, Any]:
    counted = Counter(each.verdict.value for each in decision.scenarios.values())
    spent = total_of(report.usage.values())
    return {
        "verdict": decision.word,
        "exit_code": decision.exit_code,
        "scenarios": {verdict.value: counted[verdict.value] for verdict in Verdict},
        "conversations": len(report.samples),
        "agents": tuple(dict.fromkeys(each.agent for each in report.scenarios)),
        "selection": report.run.is_selection,
        "elapsed_s": report.finished.elapsed_s if report.finished else None,
        "cost": spent.cost if spent.is_spent else 0.0,
    }


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _parts(entries: Sequence[KeptEntry], kept: int, root: Path) -> Iterator[RenderableType]:
    if not entries:
        yield free(f"no run is kept in {root / '.agenteval' / 'runs'}; start one with agenteval run")
        return
    rows = (
        (
            free(entry.id),
            Text(_when(entry.started_at)),
            _verdict(entry),
            Text(_counts(entry)),
            free(", ".join(entry.agents) or NOTHING),
            Text(_cost(entry.cost)),
            free(", ".join(_remarks(entry))),
        )
        for entry in entries
    )
    titles = ("run", "began", "verdict", "scenarios", "agent", "cost", "")
    yield FittingTable(titles, rows, numbers=["cost"])
    if kept > len(entries):
        yield Text(f"… and {plural(kept - len(entries), 'older run')}; --all lists them", style="dim")


def _when(started_at: str) -> str:
    """In the time of this machine."""
    try:
        return f"{datetime.fromisoformat(started_at).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return NOTHING


def _verdict(entry: KeptEntry) -> Text:
    if entry.verdict is None:
        return Text(NOTHING)
    style = "" if entry.verdict == REPORTED else style_of(Verdict(entry.verdict))
    return Text(entry.verdict, style=style)


def _counts(entry: KeptEntry) -> str:
    """``19 of 23``: those that passed."""
    if entry.scenarios is None or entry.verdict == REPORTED:
        return NOTHING
    return f"{entry.scenarios['passed']:,} of {sum(entry.scenarios.values()):,}"


def _cost(cost: float | None) -> str:
    return NOTHING if cost is None else "0" if not cost else f"${amount(cost)}"


def _remarks(entry: KeptEntry) -> Iterator[str]:
    if entry.kind == "score":
        yield "score"
    if entry.selection:
        yield "a selection"
    if entry.state != "complete":
        yield f"{entry.state}: {entry.problem}" if entry.problem else entry.state
    if entry.resumable:
        yield "resumable"
