"""Names of failures from before masking: kept where other texts are masked elsewhere, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.event import Event, Notice, RunFinished, SampleFinished
from agenteval.core.scenario import SampleKey, Scenario, ScriptedTurn
from agenteval.core.score import Check, Score, ScoreItem
from agenteval.core.trajectory import Stop, StopReason, ToolCall
from agenteval.files.redaction import event_masker
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.report import build_report
from agenteval.verdict.stable_fingerprints import StableFingerprints
from tests.support.report_samples import DONE, conversation, started, turn

SCENARIO = Scenario(id="book", turns=(ScriptedTurn(user="Book."),))
KEY = SampleKey(scenario="book", agent="wonderbot")
WORD = "hunter2hunter2"
"""Masked in one environment only."""
DIFFERING = "s3cr3t-of-here"
"""Another value in each environment."""


def broken(*parts: str, name: str = "output.contains") -> Check:
    return Check(name=name, passed=False, parts=parts, where="s.yaml:1")


def run_of(
    items: Sequence[ScoreItem],
    *,
    key: SampleKey = KEY,
    stop: Stop = DONE,
    answer: str = "Booked.",
    **more: Any,
) -> list[Event]:
    events = [started((SCENARIO,), (key,), **more)]
    return [*events, *conversation(key, (turn("Book.", answer),), {None: tuple(items)}, stop=stop)]


def names_of(events: Sequence[Event]) -> list[str]:
    """The names of the failures of the only sample."""
    report = build_report([*events, RunFinished(finished_at="")])
    (scenario,) = report.scenarios
    return [each.fingerprint for each in failures_of(scenario.samples[0], scenario.scenario).all]


def masked(events: Sequence[Event], masks: Sequence[str], differing: Sequence[str] = ()) -> list[Event]:
    """What is written where ``masks`` are masked, ``differing`` among them."""
    mask = event_masker([*masks, *differing])
    stable = StableFingerprints(differing)
    return [stable(event, mask(event) if mask else event) for event in events]


def end_of(events: Sequence[Event]) -> SampleFinished:
    (end,) = [event for event in events if isinstance(event, SampleFinished)]
    return end


def test_a_masked_word_leaves_the_name_it_had() -> None:
    events = run_of([broken(WORD)])
    written = masked(events, [WORD])
    assert WORD not in str(written)
    (name,) = names_of(events)
    end = end_of(written)
    assert (name,) in end.names.values()
    assert name not in end.names


@pytest.mark.parametrize(
    ("items", "masks"),
    [
        pytest.param([broken("hello")], [WORD], id="nothing masked"),
        pytest.param([broken("hello")], [], id="no masks"),
        pytest.param([Check(name="output.contains", passed=True, detail=WORD)], [WORD], id="it passed"),
        pytest.param([Score(metric="stars", value=3, reason=WORD)], [WORD], id="a number alone"),
        pytest.param(
            [broken("hello"), Score(metric="stars", value=3, reason=WORD)], [WORD], id="names alike"
        ),
    ],
)
def test_where_nothing_changes_an_event_is_as_it_was(items: list[ScoreItem], masks: list[str]) -> None:
    events = run_of(items)
    mask = event_masker(masks)
    stable = StableFingerprints(())
    for event in events:
        after = mask(event) if mask else event
        assert stable(event, after) is after


def test_only_the_end_of_a_sample_has_names() -> None:
    events = [*run_of([broken(WORD)]), Notice(text=WORD), RunFinished(finished_at="")]
    mask = event_masker([WORD])
    assert mask
    stable = StableFingerprints(())
    for event in events:
        after = mask(event)
        given = stable(event, after)
        assert (given is after) is not isinstance(event, SampleFinished)
        if isinstance(given, SampleFinished):
            assert given.model_copy(update={"names": {}}) == after


def test_no_name_depends_on_what_differs() -> None:
    here = run_of([broken(DIFFERING)])
    there = run_of([broken("another-of-there")])
    first, second = masked(here, [], [DIFFERING]), masked(there, [], ["another-of-there"])
    assert end_of(first).names == end_of(second).names == {}
    assert names_of(first) == names_of(second)


def test_a_word_beside_what_differs_leaves_its_name() -> None:
    written = masked(run_of([broken(f"{WORD} {DIFFERING}")]), [WORD], [DIFFERING])
    unmasked = masked(run_of([broken(f"{WORD} {DIFFERING}")]), [], [DIFFERING])
    (name,) = names_of(unmasked)
    assert (name,) in end_of(written).names.values()
    assert end_of(unmasked).names == {}


def test_a_word_in_the_scenario_concerns_every_sample() -> None:
    scenario = SCENARIO.model_copy(update={"name": WORD})
    events: list[Event] = [started((scenario,), (KEY,))]
    events += conversation(KEY, (turn("Book.", "Booked."),), {None: (broken("hello"),)})
    # The name of the scenario is no part of the name of a failure.
    assert end_of(masked(events, [WORD])).names == {}


def test_the_end_itself_may_be_what_was_masked() -> None:
    stop = Stop(reason=StopReason.AGENT_ERROR, detail=f"{WORD}Error: no")
    events = run_of([], stop=stop)
    written = masked(events, [WORD])
    assert WORD not in str(written)
    assert isinstance(end_of(written), SampleFinished)


def test_samples_do_not_mix() -> None:
    other = KEY.model_copy(update={"epoch": 1})
    events: list[Event] = [started((SCENARIO,), (KEY, other))]
    one = list(conversation(KEY, (turn("Book.", "a"),), {None: (broken(WORD),)}))
    two = list(conversation(other, (turn("Book.", "a"),), {None: (broken("hello"),)}))
    events += [each for pair in zip(one, two, strict=True) for each in pair]
    ends = [event for event in masked(events, [WORD]) if isinstance(event, SampleFinished)]
    assert [(each.key.epoch, bool(each.names)) for each in ends] == [(0, True), (1, False)]


def test_a_sample_that_runs_again_begins_anew() -> None:
    events = [*run_of([broken(WORD)]), *run_of([broken("hello")])[1:]]
    ends = [event for event in masked(events, [WORD]) if isinstance(event, SampleFinished)]
    assert [bool(each.names) for each in ends] == [True, False]


def test_names_that_an_end_has_already_are_kept() -> None:
    events = run_of([broken(WORD)])
    kept = {"0" * 12: ("1" * 12,)}
    known = [
        event.model_copy(update={"names": kept}) if isinstance(event, SampleFinished) else event
        for event in events
    ]
    names = end_of(masked(known, [WORD])).names
    assert kept.items() < names.items()


def test_calls_count_as_if_all_or_not_all_were_seen() -> None:
    calls = Check(name="tool_calls", passed=False, parts=(WORD,), where="s.yaml:1", if_all_seen=False)
    key = KEY
    events: list[Event] = [started((SCENARIO,), (key,))]
    told = turn("Book.", "Booked.", ToolCall(name="book", args={"for": WORD}))
    events += conversation(key, (told,), {None: (calls,)})
    assert end_of(masked(events, [WORD])).names
