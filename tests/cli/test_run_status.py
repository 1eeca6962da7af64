"""The status of a run in figures: what is counted, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.cli.run_status import STALL_S, RunStatus, SampleOutcomeLine, clock_text, duration
from agenteval.core.event import Event, Notice, RunResumed, SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Stop, StopReason
from tests.support.verdict_runs import CUT, FAIL, LOST, PASS, UNSURE, Played, events_of


class Status:
    """A status whose clock stands still, and the lines that it gave."""

    def __init__(self, events: Sequence[Event] = (), total: int = 0, pending: str = "") -> None:
        self.now = 100.0
        self.status = RunStatus(total, lambda: self.now, lambda _key: pending)
        self.lines: list[SampleOutcomeLine] = []
        self.count(*events)

    def count(self, *events: Event) -> None:
        for event in events:
            if line := self.status.count_event(event):
                self.lines.append(line)


def key(scenario: str = "a", **more: Any) -> SampleKey:
    return SampleKey(scenario=scenario, agent="bot", **more)


def run(**played: list[Played | None]) -> list[Event]:
    return events_of(played, outcome=None)


@pytest.mark.parametrize(
    ("seconds", "text", "clock"),
    [
        (-5, "0 s", "0:00"),
        (0, "0 s", "0:00"),
        (1.9, "1 s", "0:01"),
        (59.99, "59 s", "0:59"),
        (60, "1:00", "1:00"),
        (61, "1:01", "1:01"),
        (3599, "59:59", "59:59"),
        (3600, "1:00:00", "1:00:00"),
        (3725, "1:02:05", "1:02:05"),
        (360000, "100:00:00", "100:00:00"),
    ],
)
def test_durations(seconds: float, text: str, clock: str) -> None:
    assert (duration(seconds), clock_text(seconds)) == (text, clock)


def test_each_verdict_is_counted_and_what_did_not_pass_has_a_line() -> None:
    told = Status(run(a=[PASS, FAIL], b=[UNSURE], c=[LOST], d=[None]))
    status = told.status
    assert status.verdict_counts == {Verdict.PASSED: 1, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 2}
    assert (status.finished, status.total) == (4, 5)
    assert [line.verdict for line in told.lines] == [
        Verdict.FAILED,
        Verdict.INCONCLUSIVE,
        Verdict.INCONCLUSIVE,
    ]
    assert [line.line.split()[:2] for line in told.lines] == [["✗", "a@2"], ["?", "b"], ["?", "c"]]
    assert "not there" in told.lines[0].line
    assert status.counts() == "[4/5] 1 passed, 1 failed, 2 undecided, 0:00"
    assert status.brief_counts() == "4/5  ✓ 1  ✗ 1  ? 2  0:00"
    assert status.last_line() == f"stopped: {status.counts()}"
    assert Status(run(a=[PASS])).status.last_line() == "ran [1/1] 1 passed, 0:00"
    assert Status(run(a=[FAIL])).status.counts() == "[1/1] 0 passed, 1 failed, 0:00"


@pytest.mark.parametrize(
    ("took", "text"), [(None, "0.0 s"), (1.26, "1.3 s"), (59.9, "59.9 s"), (60.0, "1:00")]
)
def test_a_line_says_how_long_it_took(took: float | None, text: str) -> None:
    *events, end = run(a=[FAIL])
    told = Status([*events, end.model_copy(update={"took_s": took})])
    assert f" a  {text}  " in told.lines[0].line


def test_a_sample_that_is_played_again_is_not_counted() -> None:
    *events, end = run(a=[FAIL])
    told = Status([*events, end.model_copy(update={"again": True})])
    assert (told.status.finished, told.lines, told.status.longest(5)) == (0, [], [])


def test_an_end_without_a_beginning_is_not_counted() -> None:
    first = run(a=[FAIL])[0]
    told = Status([first, SampleFinished(key=key(), stop=Stop(reason=StopReason.SCRIPT_DONE))])
    assert (told.status.finished, told.lines) == (0, [])


def test_what_was_cut_off_has_no_line() -> None:
    told = Status(run(a=[Played(stop=StopReason.INTERRUPTED)]))
    assert (told.status.finished, told.lines) == (1, [])
    assert Status(run(a=[CUT])).status.finished == 0


@pytest.mark.parametrize(("total", "planned", "expected"), [(0, 3, 3), (2, 3, 2), (5, 3, 5), (1, 0, 1)])
def test_the_total_is_the_given_one_or_the_planned(total: int, planned: int, expected: int) -> None:
    assert Status(run(a=[None] * planned), total).status.total == expected


def test_more_than_were_planned_raise_the_total() -> None:
    told = Status(run(a=[PASS]))
    told.count(SampleStarted(key=key(epoch=1)), SampleStarted(key=key(epoch=2)))
    assert (told.status.finished, told.status.total) == (1, 3)


def test_large_counts_are_grouped() -> None:
    told = Status(run(a=[PASS]), total=2000)
    assert told.status.brief_counts().startswith("1/2,000 ")
    told.status.verdict_counts[Verdict.PASSED] = 1500
    assert told.status.counts() == "[1,500/2,000] 1,500 passed, 0:00"


@pytest.mark.parametrize(
    ("played", "agents", "sample", "label"),
    [
        ({"a": [None]}, ("bot",), key(), "a"),
        ({"a": [None, None], "b": [None]}, ("bot",), key(), "a@1"),
        ({"a": [None, None], "b": [None]}, ("bot",), key(epoch=1), "a@2"),
        ({"a": [None, None], "b": [None]}, ("bot",), key("b"), "b"),
        ({"a": [None], "b": [None]}, ("bot",), key("b", epoch=1), "b@2"),
        ({"a": [None]}, ("bot", "x"), key(), "a · bot"),
        ({"a": [None]}, ("bot",), key(variant="v"), "a [v]"),
        ({"a": [None, None]}, ("bot", "x"), key(variant="v"), "a [v]@1 · bot"),
        ({"a": [None]}, ("bot",), key("a\nb"), "a b"),
    ],
)
def test_a_label_says_only_what_differs(
    played: dict[str, list[Played | None]], agents: tuple[str, ...], sample: SampleKey, label: str
) -> None:
    assert Status(events_of(played, outcome=None, agents=agents)).status.label(sample) == label


@pytest.mark.parametrize(("length", "is_cut"), [(60, False), (61, True)])
def test_a_long_label_is_cut(length: int, is_cut: bool) -> None:
    label = Status(run(a=[None])).status.label(key("x" * length))
    assert len(label) <= 60
    assert (label != "x" * length) is is_cut


def test_what_runs_longest_comes_first() -> None:
    told = Status(run(a=[None], b=[None], c=[None]), pending="the agent")
    for name in "abc":
        told.count(SampleStarted(key=key(name)))
        told.now += 30
    told.count(SampleStarted(key=key("a")))
    wait = "turn 1, waiting for the agent"
    assert told.status.longest(2) == [("b", f"{wait}, 1:00"), ("c", f"{wait}, 30 s")]
    assert told.status.more_running(2) == ["  and 1 more running"]
    assert told.status.more_running(3) == []
    assert told.status.more_running(4) == []
    assert told.status.with_longest() == f"{told.status.counts()}; longest: b, {wait}, 1:00"
    assert Status().status.with_longest() == Status().status.counts()


def test_turns_and_the_judging_of_a_sample() -> None:
    events = run(a=[Played((), turns=((), ()))])
    doing = []
    told = Status(pending="")
    for event in events[:-1]:
        told.count(event)
        doing += [what for _, what in told.status.longest(1)]
    assert list(dict.fromkeys(doing)) == ["turn 1, 0 s", "turn 2, 0 s", "turn 3, 0 s", "judging, 0 s"]


@pytest.mark.parametrize(("level", "warning"), [("warning", "careful"), ("error", "careful"), ("info", "")])
def test_the_last_warning_is_kept(level: Any, warning: str) -> None:
    told = Status([Notice(level=level, text="careful")])
    assert told.status.warning == warning


@pytest.mark.parametrize(
    ("idle", "is_stalled"), [(STALL_S - 0.1, False), (STALL_S, True), (STALL_S + 1, True)]
)
def test_a_run_in_which_nothing_happens_is_stalled(idle: float, is_stalled: bool) -> None:
    told = Status([*run(a=[None]), SampleStarted(key=key())])
    told.now += idle
    assert bool(told.status.stall()) is is_stalled
    assert told.status.idle_s == told.status.elapsed_s == pytest.approx(idle)
    head, line = told.status.stalled_lines()
    assert "0 of 1" in head
    assert line.startswith("  a: turn 1, ")
    told.count(RunResumed(at=""))
    assert told.status.stall() == ""
    assert told.status.elapsed_s == pytest.approx(idle)


def test_a_stalled_run_names_ten_that_wait() -> None:
    told = Status([*run(a=[None] * 12), *(SampleStarted(key=key(epoch=n)) for n in range(12))])
    lines = told.status.stalled_lines()
    assert len(lines) == 12
    assert lines[-1] == "  and 2 more running"


@pytest.mark.parametrize(
    ("spent", "limit", "text"),
    [
        (0.0, None, "0:00"),
        (0.284, None, "0:00, $0.28"),
        (0.01, None, "0:00, $0.01"),
        (0.0099, None, "0:00, $0.0099"),
        (0.00001, None, "0:00, $<0.0001"),
        (0.0, 2.0, "0:00, $0.00 of $2.00"),
        (1.5, 2.0, "0:00, $1.50 of $2.00"),
    ],
)
def test_the_cost_against_its_budget(spent: float, limit: float | None, text: str) -> None:
    config: dict[str, Any] = {} if limit is None else {"budget": {"max_cost": limit}}
    told = Status(events_of({"a": [None]}, outcome=None, **config))
    told.status._cost = spent
    assert told.status.counts() == f"[0/1] 0 passed, {text}"
