"""Finds earlier runs by name and loads the events from their journals."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.event import SCHEMA_VERSION, Event, RunStarted, SampleStarted
from agenteval.core.json_text import parse_or
from agenteval.core.scenario import SampleKey
from agenteval.core.value import compact
from agenteval.files import journal
from agenteval.files.redaction import register_author_text, register_marked_secrets
from agenteval.files.regular_files import open_file, wrap_read_errors

JOURNAL_FILE = "events.jsonl"
_STARTED_AT = re.compile(rb'"started_at":"([^"]+)"')
_COMMIT = re.compile(rb'"commit":"([0-9a-f]{40,64})","dirty":false')
_START = b'{"type":"run_started","schema_version":%d,' % SCHEMA_VERSION
"""The beginning of a journal of this version, whose first line may be long."""
_MOST_LISTED = 5


def find_run(name: str, root: Path) -> Path:
    """Return the folder of a run.

    ``name`` is the id of a run, an unambiguous prefix of an id, the part of an id after its last ``-``,
    ``latest``, ``previous`` (the run before the latest), or the path of a run's folder or journal, relative
    to the working directory. ``root`` is the configuration's folder, which contains ``.agenteval/runs``.
    Raise ``AuthorError`` with the closest ids if there is no such run."""
    path = Path(name)
    if os.path.isfile(path):  # false also for a name that no file can have, unlike `is_file`
        return path.parent if path.name == JOURNAL_FILE else path
    known = {folder.name: folder for folder in find_run_folders(root)}
    if name in known:
        return known[name]
    if os.path.isfile(path / JOURNAL_FILE):
        return path
    if name in ("latest", "previous"):
        return _latest_or_previous(name, tuple(known.values()), root)
    matches = [folder for each, folder in known.items() if short_run_id(each) == name]
    matches = matches or [folder for each, folder in known.items() if name and each.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    raise AuthorError(_ambiguous_name(name, matches) if matches else _unknown_name(name, list(known), root))


def ensure_project_folder(root: Path) -> Path:
    """Create the folder for all files that agenteval writes in a project, and return it. Git ignores the
    contents of this folder except for the schemas, because the first lines of authors' files refer to them
    and other people need them to edit those files. Raise ``OSError`` if the folder cannot be created."""
    home = root / ".agenteval"
    home.mkdir(parents=True, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n!*.schema.json\n", encoding="utf-8")
    return home


def find_run_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders of all runs that have a journal, in the order in which the runs started."""
    home = root / ".agenteval" / "runs"
    found = [path.parent for path in home.glob(f"*/{JOURNAL_FILE}")] if home.is_dir() else []
    return tuple(sorted(found, key=lambda folder: (read_start_time(folder), folder.name)))


def read_start_time(folder: Path) -> str:
    """Return the time at which a run started, as ISO 8601 in UTC, or an empty string if it cannot be read.
    The time is read from the first line of the journal, because the folder name is only precise to the
    second."""
    try:
        with open_file(folder / JOURNAL_FILE) as file:
            found = _STARTED_AT.search(file.read(1000))
    except OSError:
        return ""
    return found[1].decode("ascii", "replace") if found else ""


def run_reference(folder: Path, root: Path) -> str:
    """Return the argument with which commands refer to a run: its id, or its path if the run is stored
    elsewhere. Return an empty string for the latest run, which commands use by default."""
    known = find_run_folders(root)
    if known and os.path.samefile(known[-1], folder):
        return ""
    return folder.name if any(each.name == folder.name for each in known) else str(folder)


def short_run_id(run_id: str) -> str:
    """Return the part of an id after the last ``-``, which ``find_run`` accepts."""
    return run_id.rpartition("-")[2] or run_id


def read_run_commit(folder: Path) -> str:
    """Return the Git commit that a run tested, or an empty string if the commit is unknown or there were
    uncommitted changes."""
    try:
        with open_file(folder / JOURNAL_FILE) as file:
            head = file.read(1000)
    except OSError:
        return ""
    found = _COMMIT.search(head)
    return found[1].decode("ascii") if found else ""


def _latest_or_previous(name: str, known: Sequence[Path], root: Path) -> Path:
    back = 1 if name == "latest" else 2
    if len(known) >= back:
        return known[-back]
    if not known:
        raise AuthorError(_unknown_name(name, [], root))
    raise AuthorError(Problem(f"there is no run before {known[0].name}", "start one with `agenteval run`"))


def _ambiguous_name(name: str, matches: Sequence[Path]) -> Problem:
    listed = ", ".join(folder.name for folder in matches[-_MOST_LISTED:])
    return Problem(f"'{name}' matches {len(matches)} runs: {listed}", "use a longer part of its id")


def _unknown_name(name: str, known: list[str], root: Path) -> Problem:
    if not known:
        remedy = "start one with `agenteval run`, or specify the folder of a run or its events.jsonl"
        return Problem(f"there is no run '{name}': {root / '.agenteval' / 'runs'} contains no runs", remedy)
    near = did_you_mean(name, [*known, "latest", "previous"])
    latest = f"the latest are {', '.join(reversed(known[-_MOST_LISTED:]))}"
    return Problem(f"no run is named '{name}'", near if near.startswith("did you") else latest)


def load_run(path: Path) -> tuple[Event, ...]:
    """Load all events of a run from its folder or its journal, as ``StoredRun`` does."""
    return tuple(event for event, _ in StoredRun(path).events())


class StoredRun:
    """The events of a run in its folder or its journal, which are read one by one, and may be read again."""

    def __init__(self, path: Path) -> None:
        self.file = path / JOURNAL_FILE if path.is_dir() else path

    def events(self) -> Iterator[tuple[Event, int]]:
        """Yield each event with its place. An incomplete last line is ignored.

        Raise ``AuthorError`` for a file that is not a journal, for a journal from a different version, and
        for a journal that was cut off before its first event."""
        file, first = self.file, None
        with wrap_read_errors("the journal", Place(str(file))):
            _check_version(file)
            check = _SampleCheck(file)
            for event, place in journal.read_placed_events(file):
                check(event)
                first = first or event
                yield event, place
        if first is None:
            raise AuthorError(_no_start(file))
        register_author_text(lambda: journal.event_to_json(first))
        register_marked_secrets(_placeholders_in([first]), also=True)

    def read(self, places: Iterable[int]) -> Iterator[Event]:
        """Yield the events at these places again."""
        return journal.read_events_at(self.file, places)


def load_run_start(path: Path) -> RunStarted:
    """Load only the first event of a run from its folder or its journal, which takes the same time however
    long the run was. Raise ``AuthorError`` as ``load_run`` does."""
    file = path / JOURNAL_FILE if path.is_dir() else path
    with wrap_read_errors("the journal", Place(str(file))):
        _check_version(file)
        event = journal.read_first_event(file)
    if not isinstance(event, RunStarted):
        raise AuthorError(_no_start(file))
    return event


def _placeholders_in(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, RunStarted):
            yield from (each for placeholders in event.plan.secrets.values() for each in placeholders)


def _check_version(file: Path) -> None:
    """Check the version before reading anything else, because a journal from a different version would only
    appear to be corrupt."""
    with open_file(file) as opened:
        if opened.read(len(_START)) == _START:
            return
        opened.seek(0)
        first = opened.readline()
    header = parse_or(first)
    if isinstance(header, dict):
        journal.check_journal_version(header, Place(str(file), 1))
    if first.endswith(b"\n") and not (isinstance(header, dict) and "type" in header):
        raise AuthorError(
            Problem(
                "this is not a run journal",
                f"specify a folder with {JOURNAL_FILE}",
                Place(str(file), 1),
            )
        )


class _SampleCheck:
    """Checks that every sample event belongs to a sample that was started, so that readers can rely on this
    even if the file was edited."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._number = 0
        self._scenarios: frozenset[str] = frozenset()
        self._started: set[SampleKey] = set()

    def __call__(self, event: Event) -> None:
        """Check the next event. Raise ``AuthorError``."""
        self._number += 1
        if self._number == 1:
            self._begin(event)
        key = getattr(event, "key", None)
        if isinstance(event, SampleStarted) and (event.scenario or event.key.scenario in self._scenarios):
            self._started.add(compact(event.key))
        elif key is not None and key not in self._started and event.type != "notice":
            what = f"{event.type} refers to a sample that was not started: {key}"
            raise AuthorError(Problem(what, "", Place(str(self._file), self._number)))

    def _begin(self, event: Event) -> None:
        if not isinstance(event, RunStarted):
            raise AuthorError(_no_start(self._file))
        self._scenarios = frozenset(scenario.id for scenario in event.scenarios)
        if unknown := set(event.plan.scenarios) - self._scenarios:
            what = f"the journal contains a sample of an unknown scenario, {min(unknown)}"
            raise AuthorError(Problem(what, "", Place(str(self._file), 1)))


def _no_start(file: Path) -> Problem:
    what = "the journal does not start with `run_started`, so the run cannot be read"
    return Problem(what, "the run may have been killed as it started", Place(str(file), 1))
