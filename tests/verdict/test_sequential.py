"""Which epoch is run next, and when none is: from the events of a run alone."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval.core.config import Config
from agenteval.core.event import Event, RunStarted
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario, sample_seed
from agenteval.core.score import Check
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.sequential import PlannedQueue, SequentialQueue
from tests.support.report_samples import conversation, started, turn

RANGE = EpochRange(min=2, max=8)
GATE = {"pass_rate": {"at_least": 0.9, "reject_below": 0.5}}


def key(scenario: str, epoch: int) -> SampleKey:
    return SampleKey(scenario=scenario, agent="bot", epoch=epoch)


def planned(*scenarios: str) -> tuple[Sample, ...]:
    suite = {name: Scenario(id=name, name=name) for name in scenarios}
    return tuple(
        Sample(key=key(name, epoch), scenario=suite[name], seed=sample_seed(7, key(name, epoch)))
        for name in scenarios
        for epoch in range(RANGE.min)
    )


def begun(samples: tuple[Sample, ...], ranges: Mapping[str, EpochRange]) -> RunStarted:
    scenarios = tuple({sample.scenario.id: sample.scenario for sample in samples}.values())
    config = Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, "gates": GATE})
    return started(scenarios, tuple(sample.key for sample in samples), epochs=ranges, config=config)


def ended(sample: SampleKey, outcome: str) -> list[Event]:
    reasons = {"lost": StopReason.INFRASTRUCTURE, "cut": StopReason.INTERRUPTED}
    stop = Stop(reason=reasons.get(outcome, StopReason.SCRIPT_DONE))
    said = {None: (Check(name="output.contains", passed=outcome == "passed"),)}
    return [
        *conversation(
            sample, (turn("hi", "hello"),), said if outcome in ("passed", "failed") else {}, stop=stop
        )
    ]


def until_decided(*scenarios: str) -> SequentialQueue:
    samples, ranges = planned(*scenarios), dict.fromkeys(scenarios, RANGE)
    source = SequentialQueue(samples, ranges, 7)
    source(begun(samples, ranges))
    return source


def tell(source: SequentialQueue | PlannedQueue, sample: SampleKey, outcome: str) -> None:
    for event in ended(sample, outcome):
        source(event)


def taken(source: SequentialQueue, most: int = 99) -> list[tuple[str, int]]:
    """All that may run at once, as it stands."""
    found: list[tuple[str, int]] = []
    while len(found) < most and (sample := source.next()):
        assert sample.seed == sample_seed(7, sample.key)
        found.append((sample.key.scenario, sample.key.epoch))
    return found


def test_a_sample_that_is_over_is_not_run_again_and_one_that_was_cut_off_is() -> None:
    source = PlannedQueue(planned("a"))
    tell(source, key("a", 0), "cut")
    tell(source, key("a", 1), "passed")
    sample = source.next()
    assert sample is not None
    assert (sample.key, source.next()) == (key("a", 0), None)


def test_only_epochs_that_no_decision_can_do_without_are_started() -> None:
    """At these rates five successes in a row accept: of the first two nothing can be in vain."""
    source = until_decided("a")
    assert taken(source) == [("a", 0), ("a", 1)]
    for epoch in range(8):
        tell(source, key("a", epoch), "passed")
        further = taken(source)
        assert all(name == "a" and at > epoch for name, at in further)
        if not further and epoch >= RANGE.min:
            break
    assert 4 <= epoch + 1 <= 6
    assert taken(source) == []


def test_a_failure_needs_more_and_a_lost_epoch_one_in_its_place() -> None:
    source = until_decided("a")
    taken(source)
    tell(source, key("a", 0), "failed")
    tell(source, key("a", 1), "lost")
    first = taken(source)
    assert ("a", RANGE.max) in first  # in the place of the lost one
    assert ("a", 0) not in first
    assert ("a", 1) not in first
    assert taken(source) == []  # they run: nothing is started twice


def test_a_cut_off_epoch_of_a_resumed_run_is_held_anew() -> None:
    source = until_decided("a")
    tell(source, key("a", 0), "passed")
    tell(source, key("a", 1), "cut")
    assert taken(source)[0] == ("a", 1)
    source = until_decided("a")
    tell(source, key("a", 0), "failed")
    tell(source, key("a", 1), "passed")
    tell(source, key("a", 2), "cut")  # one of the further ones
    assert taken(source)[0] == ("a", 2)


def test_the_scenario_with_the_fewest_epochs_goes_first() -> None:
    source = until_decided("a", "b")
    taken(source)
    for epoch in range(2):
        tell(source, key("a", epoch), "passed")
    started_of_a = [at for name, at in taken(source) if name == "a"]
    assert started_of_a
    for epoch in range(2):
        tell(source, key("b", epoch), "passed")
    for epoch in started_of_a:
        tell(source, key("a", epoch), "failed")
    assert taken(source, 1)[0][0] == "b"


def test_the_order_of_planned_epochs_does_not_change_the_further_ones() -> None:
    def further(order: str) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        source = until_decided("a", "b", "c")
        source.reorder(planned(*order))
        first = taken(source, 6)
        for name, epoch in first:
            tell(source, key(name, epoch), "passed")
        return first, taken(source)

    first, as_written = further("abc")
    assert further("cab") == ([*first[4:], *first[:4]], as_written)


def test_the_test_is_that_of_all_scenarios() -> None:
    """The more scenarios, the more failures it takes to say that one is surely bad."""

    def failures_until_it_stops(*scenarios: str) -> int:
        source = until_decided(*scenarios)
        taken(source)
        for epoch in range(RANGE.max):
            tell(source, key("a", epoch), "failed")
            if not [name for name, _ in taken(source) if name == "a"] and epoch >= RANGE.min - 1:
                return epoch + 1
        return RANGE.max

    assert failures_until_it_stops("a") < failures_until_it_stops("a", *(f"s{n}" for n in range(60)))
