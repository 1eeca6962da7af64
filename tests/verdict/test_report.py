"""The fold of a run: event by event, once, and without the texts of conversations."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from agenteval.core.event import CallsSeen, Event, IssuesFound, RunFinished, SampleFinished, TurnFinished
from agenteval.core.trajectory import CallEvidence
from agenteval.files.runs import StoredRun
from agenteval.reporters import REPORTERS
from agenteval.reporters.options import ReportOptions
from agenteval.verdict import gates, report
from agenteval.verdict.report import Fold, Report, build_report, fold_run
from agenteval.verdict.slim_samples import LEFT_OUT
from tests.support.kept_runs import write_journal
from tests.support.synthetic_runs import synthetic_events
from tests.support.verdict_runs import PASS, events_of

RUN = tuple(synthetic_events(60))


class Lines:
    """Events that are read again by their number; counts how often."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.reads: Counter[int] = Counter()

    def read(self, places: Iterable[int]) -> Iterator[Event]:
        for place in places:
            self.reads[place] += 1
            yield self.events[place]


def folded(lines: Lines) -> Fold:
    fold = Fold(lines)
    for place, event in enumerate(lines.events):
        fold.add(event, place)
    return fold


def texts(found: Report) -> dict[str, str]:
    """The report in each format."""
    decision = gates.decide(found)
    every = [(name, verbose) for name in REPORTERS for verbose in (False, True)]
    return {
        f"{name} {verbose}": REPORTERS.get(name).function(found, decision, ReportOptions(verbose=verbose))
        for name, verbose in every
    }


def test_all_formats_are_the_same_without_the_texts() -> None:
    slim, whole = folded(Lines(RUN)).report(), build_report(RUN)
    assert gates.decide(slim) == gates.decide(whole)
    found = texts(slim)
    assert found == texts(whole)
    assert not [name for name, text in found.items() if LEFT_OUT in text]


def test_a_conversation_is_read_again_only_when_its_texts_are_asked_for() -> None:
    lines = Lines(RUN)
    found = folded(lines).report()
    gates.decide(found)
    assert not lines.reads
    sample = found.samples[0]
    assert sample.turns[0].turn.user == LEFT_OUT
    whole = build_report(RUN).samples[0]
    assert sample.in_full == whole
    assert set(lines.reads.values()) == {1}


def test_a_sample_is_folded_once_however_often_the_report_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: Counter[str] = Counter()
    build = report.build_sample_report

    def counted(key, *rest):  # type: ignore[no-untyped-def]
        built[str(key)] += 1
        return build(key, *rest)

    monkeypatch.setattr(report, "build_sample_report", counted)
    fold = folded(Lines(RUN))
    first = fold.report()
    fold.add(IssuesFound(issues=()))
    fold.add(RunFinished(finished_at="2026-11-21T10:16:00Z"))
    assert fold.report().scenarios is first.scenarios
    assert set(built.values()) == {1}


def test_what_is_shown_later_decides_samples_that_were_over() -> None:
    (key,) = {event.key for event in RUN if isinstance(event, SampleFinished)} & {
        build_report(RUN).samples[0].key
    }
    shown = CallsSeen(agent=key.agent, evidence=CallEvidence.REPORTED, key=key)
    lines = Lines((*RUN, shown))
    late, early = folded(lines).report(), build_report((RUN[0], shown, *RUN[1:]))
    assert late.samples[0].trajectory.visibility is early.samples[0].trajectory.visibility
    assert [sample.in_full for sample in late.samples] == list(early.samples)


def test_without_a_place_the_texts_are_kept() -> None:
    """As when the disk is full: what follows is in memory alone."""
    lines, fold = Lines(RUN), Fold(Lines(RUN))
    half = len(RUN) // 2
    for place, event in enumerate(RUN):
        fold.add(event, place if place < half else None)
    assert not lines.reads
    last = fold.report().samples[-1]
    assert last == build_report(RUN).samples[-1]
    assert last.read_again is None


def test_a_report_from_before_an_event_without_a_place_has_its_texts() -> None:
    fold = folded(Lines(RUN))
    before = fold.report().samples[0]
    again = next(event for event in RUN if isinstance(event, SampleFinished) and event.key == before.key)
    fold.add(again)
    assert before.in_full == fold.report().samples[0] == build_report(RUN).samples[0]


def test_a_journal_that_is_gone_costs_only_texts(tmp_path: Path) -> None:
    write_journal(tmp_path, RUN)
    found = fold_run(StoredRun(tmp_path)).report()
    assert found.samples[0].in_full.turns[0].turn.user != LEFT_OUT
    (tmp_path / "events.jsonl").unlink()
    assert found.samples[0].in_full is found.samples[0]
    assert "(not kept" in texts(found)["json False"]


def cost(few: Sequence[Event], many: Sequence[Event], more: int, path: Path) -> float:
    """The bytes that each of ``more`` conversations adds to a report that is read from a journal."""
    held = []
    for events in (few, few, many):  # what is made once in a process is made by the first
        write_journal(path, events)
        tracemalloc.start()
        try:
            found = fold_run(StoredRun(path)).report()
            held.append(tracemalloc.get_traced_memory()[0])
            assert found.samples
        finally:
            tracemalloc.stop()
    return (held[2] - held[1]) / more


def lengthened(event: Event) -> Event:
    if not isinstance(event, TurnFinished):
        return event
    steps = tuple(step.model_copy(update={"text": (step.text or "") * 10}) for step in event.turn.steps)
    turn = event.turn.model_copy(update={"user": event.turn.user * 10, "steps": steps})
    return event.model_copy(update={"turn": turn})


def test_a_conversation_costs_no_more_for_long_texts(tmp_path: Path) -> None:
    few, many = list(synthetic_events(20)), list(synthetic_events(60))
    short = cost(few, many, 40, tmp_path)
    longer = cost(list(map(lengthened, few)), list(map(lengthened, many)), 40, tmp_path)
    assert longer < 1.5 * short  # twice as much, were the texts kept


def test_a_conversation_that_passed_code_checks_costs_little(tmp_path: Path) -> None:
    few, many = (events_of({f"s{n}": [PASS] for n in range(count)}) for count in (100, 400))
    assert cost(list(few), list(many), 300, tmp_path) < 4_500
