"""Reads conversations from one file after another. Conversations are not kept in memory after
being yielded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.plurals import plural
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.selection import is_in_any
from agenteval.importers.entries import entries_of
from agenteval.importers.expected_scenarios import ExpectedScenarios
from agenteval.importers.identity import Naming
from agenteval.importers.journals import PolicyOf, replay_journal
from agenteval.importers.records import ImportedConversation, ToolSets, read_conversation
from agenteval.importers.sources import Source, is_journal
from agenteval.importers.traces import TracePlaces
from agenteval.importers.turns import Coverage
from agenteval.messages.log_entry import Record, UnreadableRecord
from agenteval.messages.record_paths import MISSING, find_value, suggest_path
from agenteval.messages.unplaced_entries import CallFreeNames


@dataclass
class ImportWarnings:
    """Warnings about content that was not imported exactly as written. Each distinct text is stored with its
    number of occurrences and the location of its first occurrence."""

    _counts: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, text: str, where: str = "") -> None:
        times, first = self._counts.get(text, (0, where))
        self._counts[text] = (times + 1, first)

    def texts(self) -> Iterator[str]:
        for text, (times, first) in self._counts.items():
            others = f", and in {times - 1:,} more" if times > 1 else ""
            yield f"{text} ({first}{others})" if first else text


_WORST = 3


@dataclass
class CoverageTally:
    """The number of messages in the readable records, and the number of messages that were read."""

    _messages: int = 0
    _read: int = 0
    _partly: list[tuple[float, str]] = field(default_factory=list)
    """The lowest shares of messages that were read in a single record, each with the location of the
    record."""

    def add(self, coverage: Coverage, where: str) -> None:
        self._messages += coverage.messages
        self._read += coverage.read
        if coverage.read < coverage.messages:
            self._partly = sorted([*self._partly, (coverage.read / coverage.messages, where)])[:_WORST]

    @property
    def is_whole(self) -> bool:
        return self._read == self._messages

    @property
    def text(self) -> str:
        """A sentence that states the share of messages that were read, or an empty string if there were no
        messages."""
        if self.is_whole:
            return f"all {self._messages:,} messages were read" if self._messages else ""
        share = (
            f"{self._read:,} of {plural(self._messages, 'message')} read ({self._read / self._messages:.1%})"
        )
        worst = ", ".join(f"{where} ({part:.0%})" for part, where in self._partly)
        return f"{share}; lowest: {worst}"


@dataclass
class Reader:
    """Yields the conversations in ``sources`` in order. A second iteration requires a new ``naming``."""

    sources: Sequence[Source]
    naming: Naming
    policy_of: PolicyOf
    expected: ExpectedScenarios = field(default_factory=ExpectedScenarios)
    search_texts: tuple[str, ...] = ()
    """If not empty, a conversation is yielded only if its id or scenario contains one of these strings."""
    exact_texts: frozenset[str] = frozenset()
    """The search strings that are complete ids or scenarios. They are not matched as substrings."""
    warnings: ImportWarnings = field(default_factory=ImportWarnings)
    no_calls_in: CallFreeNames = field(default_factory=CallFreeNames)
    """A value that is passed on to ``turns.parse_conversation``."""
    coverage: CoverageTally = field(default_factory=CoverageTally)
    _met: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[RecordedConversation]:
        for recorded in self._read_all():
            if self.search_texts and not self._is_wanted(recorded):
                continue
            joined = self.expected.join_scenario(recorded)
            for note in joined.notes:
                self.warnings.add(note, joined.where)
            yield joined

    def _read_all(self) -> Iterator[RecordedConversation]:
        traces: TracePlaces = {}
        for source in self.sources:
            is_empty = True
            for recorded in (
                self._read_journal(source) if is_journal(source) else self._read_file(source, traces)
            ):
                is_empty = False
                yield recorded
            if is_empty:
                self.warnings.add(f"{source.display_name} is empty, so there is nothing to check")

    def _read_journal(self, source: Source) -> Iterator[RecordedConversation]:
        for sample in replay_journal(source, self.policy_of):
            if isinstance(sample, UnreadableRecord):
                yield self.naming.name_unreadable(sample)
            else:
                yield self.naming.name_replayed(sample)

    def _read_file(self, source: Source, traces: TracePlaces) -> Iterator[RecordedConversation]:
        tool_sets = ToolSets()
        for entry in entries_of(source, traces):
            if isinstance(entry, Record):
                try:
                    imported = conversation_of(entry, tool_sets, self.no_calls_in)
                except AuthorError as error:
                    entry = UnreadableRecord(entry.where, str(error))
                else:
                    self.coverage.add(imported.parsed.coverage, entry.where)
                    yield self.naming.name_conversation(imported, entry.where)
                    continue
            yield self.naming.name_unreadable(entry)

    def _is_wanted(self, recorded: RecordedConversation) -> bool:
        names = (recorded.key.scenario, recorded.key.variant)
        found = {
            t for t in self.search_texts if (t in names if t in self.exact_texts else is_in_any(t, names))
        }
        self._met |= found
        return bool(found)

    def with_exact(self, naming: Naming) -> Reader:
        """Return a copy of the reader in which ``exact_texts`` is set. This may require reading all records.
        ``naming`` must not be used afterward."""
        first = replace(self, naming=naming, warnings=ImportWarnings(), coverage=CoverageTally())
        found: set[str] = set()
        for recorded in first._read_all():
            found |= {recorded.key.scenario, recorded.key.variant} & set(self.search_texts)
            if len(found) == len(set(self.search_texts)):
                break
        return replace(self, exact_texts=frozenset(found))

    @property
    def unmatched_texts(self) -> tuple[str, ...]:
        """The search strings that have matched no conversation so far."""
        return tuple(text for text in dict.fromkeys(self.search_texts) if text not in self._met)


def conversation_of(
    entry: Record, tool_sets: ToolSets, no_calls_in: CallFreeNames | None = None
) -> ImportedConversation:
    """Parse a record, including the notes and the outcome from its importer. Raise ``AuthorError`` (without a
    location) if the record cannot be parsed."""
    imported = read_conversation(entry.value, tool_sets, around=entry.around, no_calls_in=no_calls_in)
    if entry.logged is MISSING and not entry.notes and entry.outcome is MISSING:
        return imported
    notes = tuple(dict.fromkeys((*entry.notes, *imported.notes)))
    return replace(imported, record=entry.as_logged, notes=notes, outcome=entry.outcome)


def require_paths(sources: Iterable[Source], options: Mapping[str, str]) -> None:
    """Raise ``AuthorError`` if the path in an option does not exist in any record, or leads to a list or an
    object. This function is called before anything is scored, because a wrong path would make every number
    wrong. Usually, only the first record needs to be read."""
    missing = dict(options)
    first: Record | None = None
    for record in _records_in(sources) if options else ():
        first = first or record
        missing = {option: path for option, path in missing.items() if not _has_value(record, option, path)}
        if not missing:
            return
    if missing and first is not None:
        raise AuthorError(*(_missing_path_problem(option, path, first) for option, path in missing.items()))
    if missing and any(map(is_journal, sources)):
        names = ", ".join(missing)
        what = f"{names}: not supported for a journal, which has no such fields"
        raise AuthorError(Problem(what, f"remove {names}"))


def _records_in(sources: Iterable[Source]) -> Iterator[Record]:
    files = (source for source in sources if not is_journal(source))
    return (entry for source in files for entry in entries_of(source) if isinstance(entry, Record))


def _has_value(record: Record, option: str, path: str) -> bool:
    """Check whether a record contains a scalar value at the path. Raise ``AuthorError`` if the value is a
    list or an object."""
    found = find_value(record.as_logged, path)
    if isinstance(found, dict | list):
        kind = "an object" if isinstance(found, dict) else "a list"
        what = f"`{option} {path}` points to {kind}; expected a plain value"
        raise AuthorError(Problem(what, suggest_path(found, ""), _place(record.where)))
    return found is not MISSING and found is not None


def _missing_path_problem(option: str, path: str, record: Record) -> Problem:
    what = f"`{option} {path}` does not match any record"
    return Problem(what, suggest_path(record.as_logged, path), _place(record.where))


def _place(where: str) -> Place:
    path, _, line = where.rpartition(":")
    return Place(path, int(line))
