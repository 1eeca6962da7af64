"""The events of a run in memory: what the grouping of issues is given of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.event import Event, Scored
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding
from agenteval.core.severity import Severity
from agenteval.files import journal
from agenteval.files.journal import EventLog, Journal, event_to_json, read_first_event, read_journal
from agenteval.files.redaction import redact_events
from tests.support.plans import begun

KEY = SampleKey(scenario="s", agent="a")
FINDING = Finding(metric="m", detector="judge", label="x", severity=Severity.LOW, explanation="e")
FOUND, CHECKED = (
    Scored(key=KEY, turn=None, items=(item,)) for item in (FINDING, Check(name="c", passed=True))
)


@pytest.mark.parametrize(
    ("scored", "is_grouped"),
    [([], False), ([CHECKED], False), ([FOUND], True), ([FOUND, CHECKED], True), ([CHECKED, FOUND], True)],
)
def test_all_events_are_given_if_any_has_a_finding(scored: list[Event], is_grouped: bool) -> None:
    events = [begun(), *scored]
    log = EventLog(events)
    assert [event.type for event in log] == [event.type for event in events]
    given = [event.type for event in log.events_for_grouping()]
    assert given == [event.type for event in (events if is_grouped else events[:1])]
    assert [event.type for event in log.drain()] == [event.type for event in events]
    assert not list(log)


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
    """Its line is searched for keys, written to the journal, and kept for the report."""
    serialized: list[Event] = []
    serialize = journal._serialize

    def counted(event: Event) -> str:
        serialized.append(event)
        return serialize(event)

    monkeypatch.setattr(journal, "_serialize", counted)
    events = [CHECKED, FOUND, Scored(key=KEY, turn=1, items=(FINDING,))]
    log = EventLog()
    with Journal(tmp_path / "events.jsonl") as file:
        for event in events:
            redact_events(lambda each: (file(each), log(each)), keys, marked=marked)(event)
    assert serialized == events
    assert list(log) == list(read_journal(tmp_path / "events.jsonl")) == events
