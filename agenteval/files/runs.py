"""Runs of the past: which folder a name means, and the events that its journal holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.event import Event, RunStarted, SampleStarted
from agenteval.core.json_text import parsed
from agenteval.files import journal
from agenteval.files.plain_files import open_file, readable
from agenteval.files.redact import know_marked, know_written

JOURNAL = "events.jsonl"
_STARTED_AT = re.compile(rb'"started_at":"([^"]+)"')
_COMMIT = re.compile(rb'"commit":"([0-9a-f]{40,64})","dirty":false')
_MOST_NAMED = 5


def find_run(name: str, root: Path) -> Path:
    """The folder of a run.

    ``name`` is its id, the beginning of it that no other has, what stands behind its last ``-``, ``latest``,
    ``previous`` (the one before the latest), or the path, from the working directory, of its folder or
    journal. ``root`` is the configuration's folder, where ``.agenteval/runs`` is. Raises ``AuthorError`` with
    the ids that come nearest.
    """
    path = Path(name)
    if path.is_file():
        return path.parent if path.name == JOURNAL else path
    known = {folder.name: folder for folder in runs_under(root)}
    if name in known:
        return known[name]
    if (path / JOURNAL).is_file():
        return path
    if name in ("latest", "previous"):
        return _counted_back(name, tuple(known.values()), root)
    alike = [folder for each, folder in known.items() if brief_name(each) == name]
    alike = alike or [folder for each, folder in known.items() if name and each.startswith(name)]
    if len(alike) == 1:
        return alike[0]
    raise AuthorError(_ambiguous(name, alike) if alike else _unknown(name, list(known), root))


def home_of(root: Path) -> Path:
    """The folder for all that agenteval writes in a project. Git ignores it, but for the schemas that the
    first lines of files name: whoever opens these elsewhere needs them, too. Raises ``OSError``."""
    home = root / ".agenteval"
    home.mkdir(parents=True, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n!*.schema.json\n", encoding="utf-8")
    return home


def runs_under(root: Path) -> tuple[Path, ...]:
    """The folders of all runs that have a journal, in the order in which they began."""
    home = root / ".agenteval" / "runs"
    found = [path.parent for path in home.glob(f"*/{JOURNAL}")] if home.is_dir() else []
    return tuple(sorted(found, key=lambda folder: (started_at(folder), folder.name)))


def started_at(folder: Path) -> str:
    """When a run began, ISO 8601 in UTC; empty if that cannot be read. From the first line of its journal,
    since the name of its folder tells the second alone."""
    try:
        with open_file(folder / JOURNAL) as file:
            found = _STARTED_AT.search(file.read(1000))
    except OSError:
        return ""
    return found[1].decode("ascii", "replace") if found else ""


def name_of(folder: Path, root: Path) -> str:
    """What commands call a run: its id, or its path if it is kept elsewhere; empty for the latest, which they
    take if none is named."""
    known = runs_under(root)
    if known and os.path.samefile(known[-1], folder):
        return ""
    return folder.name if any(each.name == folder.name for each in known) else str(folder)


def brief_name(run_id: str) -> str:
    """What stands behind the last ``-`` of an id, by which ``find_run`` knows it."""
    return run_id.rpartition("-")[2] or run_id


def commit_of(folder: Path) -> str:
    """The commit that a run was made of; empty if it is not known, or files had changed since."""
    try:
        with open_file(folder / JOURNAL) as file:
            head = file.read(1000)
    except OSError:
        return ""
    found = _COMMIT.search(head)
    return found[1].decode("ascii") if found else ""


def _counted_back(name: str, known: Sequence[Path], root: Path) -> Path:
    back = 1 if name == "latest" else 2
    if len(known) >= back:
        return known[-back]
    if not known:
        raise AuthorError(_unknown(name, [], root))
    raise AuthorError(Problem(f"there is no run before {known[0].name}", "start one with agenteval run"))


def _ambiguous(name: str, alike: Sequence[Path]) -> Problem:
    named = ", ".join(folder.name for folder in alike[-_MOST_NAMED:])
    return Problem(f"'{name}' matches {len(alike)} runs: {named}", "write more of its id")


def _unknown(name: str, known: list[str], root: Path) -> Problem:
    if not known:
        remedy = "start with agenteval run, or name the folder of a run or its events.jsonl"
        return Problem(f"no run '{name}': there is none in {root / '.agenteval' / 'runs'}", remedy)
    near = did_you_mean(name, [*known, "latest", "previous"])
    latest = f"the latest are {', '.join(reversed(known[-_MOST_NAMED:]))}"
    return Problem(f"no run is named '{name}'", near if near.startswith("did you") else latest)


def load_run(path: Path) -> tuple[Event, ...]:
    """The events of a run, from its folder or its journal; a torn last line is left out.

    Raises ``AuthorError`` for what is not a journal, one of another version, and one that was cut off before
    it said what was to be run.
    """
    file = path / JOURNAL if path.is_dir() else path
    with readable("the journal", Place(str(file))):
        _check_version(file)
        events = tuple(journal.read(file))
    _check_whole(events, file)
    know_written(lambda: journal.to_json(events[0]))
    know_marked(_placeholders_in(events), also=True)
    return events


def _placeholders_in(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, RunStarted):
            yield from (each for placeholders in event.plan.secrets.values() for each in placeholders)


def _check_version(file: Path) -> None:
    """Before anything else is read: what another version wrote would only look broken."""
    with open_file(file) as opened:
        first = opened.readline()
    said = parsed(first)
    if isinstance(said, dict):
        journal.check_version(said, Place(str(file), 1))
    if first.endswith(b"\n") and not (isinstance(said, dict) and "type" in said):
        raise AuthorError(
            Problem("not the journal of a run", f"name a folder with {JOURNAL}", Place(str(file), 1))
        )


def _check_whole(events: Sequence[Event], file: Path) -> None:
    """That what is told of a sample can be put somewhere: a reader must not stumble over an edited file."""
    if not events or not isinstance(events[0], RunStarted):
        what = "the journal does not start with run_started: nothing is known about the run"
        raise AuthorError(Problem(what, "it may have been killed right at its start", Place(str(file), 1)))
    scenarios = {scenario.id for scenario in events[0].scenarios}
    if stray := set(events[0].plan.scenarios) - scenarios:
        raise AuthorError(Problem(f"a sample of an unknown scenario, {min(stray)}", "", Place(str(file), 1)))
    begun = set()
    for number, event in enumerate(events, start=1):
        key = getattr(event, "key", None)
        if isinstance(event, SampleStarted) and (event.scenario or event.key.scenario in scenarios):
            begun.add(event.key)
        elif key is not None and key not in begun and event.type != "notice":
            raise AuthorError(
                Problem(f"{event.type} of a sample that was not started: {key}", "", Place(str(file), number))
            )
