"""The events of a run in memory: what the grouping of issues is given of them."""

from __future__ import annotations

import pytest

from agenteval.core.event import Event, Scored
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding
from agenteval.core.severity import Severity
from agenteval.files.journal import EventLog
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
