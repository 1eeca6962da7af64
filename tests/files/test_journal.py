"""The journal: its events, and where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, ModelAsked, Notice, Scored
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding
from agenteval.core.severity import Severity
from agenteval.files import journal as journal_module
from agenteval.files.journal import (
    Journal,
    event_to_json,
    read_events_at,
    read_first_event,
    read_journal,
    read_placed_events,
)
from agenteval.files.redaction import redact_events
from tests.support.plans import begun

KEY = SampleKey(scenario="s", agent="a")
FINDING = Finding(metric="m", detector="judge", label="x", severity=Severity.LOW, explanation="e")
FOUND, CHECKED = (
    Scored(key=KEY, turn=None, items=(item,)) for item in (FINDING, Check(name="c", passed=True))
)
NOTES = [Notice(text=text) for text in ("a", "ü", "c")]


def test_events_are_read_again_where_they_were_written(tmp_path: Path) -> None:
    places = []
    with Journal(tmp_path / "j") as journal:
        for note in NOTES:
            journal(note)
            places.append(journal.place_of(note))
        assert journal.place_of(NOTES[0]) is None  # only the last one is known
        known = [place for place in places if place is not None]
        assert list(journal.read(reversed(known))) == NOTES[::-1]
    assert list(read_placed_events(tmp_path / "j")) == list(zip(NOTES, known, strict=True))
    with Journal.reopen(tmp_path / "j") as journal:
        journal(begun())
        again = journal.place_of(begun())
        assert again is None  # an equal event is another one
    assert [event for event, _ in read_placed_events(tmp_path / "j")] == [*NOTES, begun()]


def test_what_the_journal_does_not_hold_has_no_place(tmp_path: Path) -> None:
    asked = ModelAsked(role="judge", metric="m")
    with Journal(tmp_path / "j") as journal:
        journal(asked)
        assert journal.place_of(asked) is None


@pytest.mark.parametrize("place", [1, 10_000])
def test_a_journal_that_was_changed_is_no_traceback(tmp_path: Path, place: int) -> None:
    with Journal(tmp_path / "j") as journal:
        journal(NOTES[0])
    with pytest.raises(AuthorError, match="removed or changed"):
        list(read_events_at(tmp_path / "j", [place]))
    with pytest.raises(AuthorError, match="removed or changed"):
        list(read_events_at(tmp_path / "gone", [0]))


@pytest.mark.parametrize(("end", "is_read"), [("", True), ("\n", True), ("\nno event", True), ("}\n", False)])
def test_the_first_event_is_read_whatever_follows_its_line(tmp_path: Path, end: str, is_read: bool) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{event_to_json(begun())}{end}", "utf-8")
    assert read_first_event(path) == (begun() if is_read else None)


@pytest.mark.parametrize("keys", [[], ["sk-proj-1f7a9c3e5d"], ["sk-proj-1f7a9c3e5d", "tok-0123456789abcdef"]])
@pytest.mark.parametrize("marked", [{}, {"4711-XK": "5822-YL"}])
def test_an_event_is_serialized_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: list[str], marked: dict[str, str]
) -> None:
    """Its line is searched for keys, and written to the journal."""
    serialized: list[Event] = []
    serialize = journal_module._serialize

    def counted(event: Event) -> str:
        serialized.append(event)
        return serialize(event)

    monkeypatch.setattr(journal_module, "_serialize", counted)
    events = [CHECKED, FOUND, Scored(key=KEY, turn=1, items=(FINDING,))]
    with Journal(tmp_path / "events.jsonl") as file:
        for event in events:
            redact_events(file, keys, marked=marked)(event)
    assert serialized == events
    assert list(read_journal(tmp_path / "events.jsonl")) == events
