"""What is shown on stderr while a run goes on."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import closing

import pytest

from agenteval.cli import progress
from agenteval.cli.progress import Display, GuardedStream, Log, Progress, ScreenMaker
from agenteval.cli.run_status import RunStatus, duration
from agenteval.core.config import AcceptedFailure, BudgetConfig
from agenteval.core.event import (
    Event,
    Notice,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Score, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, Turn, Usage
from agenteval.running.observer import PendingLookup
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.report import build_report
from tests.support.patience import HANG_S, eventually
from tests.support.plans import begun

DONE = Stop(reason=StopReason.SCRIPT_DONE)
BROKE = Stop(reason=StopReason.AGENT_ERROR, detail="HTTP 500")


@pytest.fixture(autouse=True)
def _a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def key(name: str = "a", agent: str = "bot", epoch: int = 0) -> SampleKey:
    return SampleKey(scenario=name, agent=agent, epoch=epoch)


def begin(*keys: SampleKey) -> RunStarted:
    scenarios = tuple(Scenario(id=name) for name in {k.scenario: None for k in keys})
    return begun(None, scenarios, keys)


def whole(sample: SampleKey, stop: Stop = DONE) -> list[Event]:
    return [
        SampleStarted(key=sample),
        TurnFinished(key=sample, index=0, turn=Turn(user="hi")),
        SampleFinished(key=sample, stop=stop),
    ]


def told(sink: Progress, *events: Event) -> None:
    for event in events:
        sink(event)


def writers() -> list[threading.Thread]:
    ours = ("agenteval-progress",)
    return [t for t in threading.enumerate() if t.name in ours or type(t).__name__ == "_RefreshThread"]


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError("nobody reads")


class Blocked(io.StringIO):
    """A stream whose reader has stopped reading."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait(HANG_S)
        return super().write(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# The counts


def nobody(_: SampleKey) -> str:
    return ""


def state(*events: Event, clock: Clock | None = None, pending: PendingLookup = nobody) -> RunStatus:
    made = RunStatus(0, clock or Clock(), pending)
    for event in events:
        made.count_event(event)
    return made


def failing(sample: SampleKey, detail: str = "no match") -> list[Event]:
    check = Check(name="output.matches", passed=False, detail=detail, where="suite.yaml:9")
    started, turn, finished = whole(sample)
    return [started, turn, Scored(key=sample, turn=0, items=(check,)), finished]


LOST = Stop(reason=StopReason.INFRASTRUCTURE, detail="connection refused")


def test_red_green_and_undecided_are_counted_as_the_run_will_decide_them() -> None:
    keys = [key(name) for name in "abcdef"]
    told = state(begin(*keys))
    ends = [
        [told.count_event(event) for event in events][-1]
        for events in (
            whole(key("a")),
            whole(key("b"), BROKE),
            failing(key("c")),
            whole(key("d"), LOST),
            whole(key("e"), Stop(reason=StopReason.INTERRUPTED)),
            [SampleStarted(key=key("f"))],
        )
    ]
    assert (told.total, told.finished) == (6, 5)
    assert told.verdict_counts == {Verdict.PASSED: 1, Verdict.FAILED: 2, Verdict.INCONCLUSIVE: 2}
    assert ends[0] is ends[5] is None
    assert ends[4] is None  # it was cut off, with all the others
    assert [end.line for end in ends[1:4] if end] == [
        "✗ b  0.0 s  turn 2: HTTP 500",
        "✗ c  0.0 s  turn 1: no match",
        "? d  0.0 s  turn 2: connection refused",
    ]


@pytest.mark.parametrize(("took_s", "text"), [(59.94, "59.9 s"), (59.97, "1:00"), (65.4, "1:05")])
def test_a_failure_tells_how_long_it_took(took_s: float, text: str) -> None:
    told = state(begin(key("a")), SampleStarted(key=key("a")))
    outcome = told.count_event(SampleFinished(key=key("a"), stop=BROKE, took_s=took_s))
    assert outcome is not None
    assert outcome.line.split("  ")[1] == text


def test_what_is_accepted_is_no_failure() -> None:
    sample = key("a")
    run = begin(sample)
    failed = failing(sample)
    (report,) = [build_report([run, *failed])]
    (name,) = failures_of(report.samples[0], run.scenarios[0]).names
    entry = AcceptedFailure(fingerprint=name, expires="2999-01-01", owner="me", reason="known")
    accepted = run.model_copy(update={"plan": run.plan.with_suite(accepted=(entry,))})
    assert state(run, *failed).verdict_counts == {Verdict.FAILED: 1}
    assert state(accepted, *failed).verdict_counts == {Verdict.PASSED: 1}


def test_a_sample_that_is_still_being_judged_counts_as_running() -> None:
    clock = Clock()
    judge = "the judge of coherence"
    told = state(begin(key("a"), key("b")), clock=clock, pending=lambda _: judge)
    score = Score(metric="helpfulness", value=4.0)
    told.count_event(SampleStarted(key=key("a")))
    told.count_event(TurnFinished(key=key("a"), index=0, turn=Turn(user="hi")))
    told.count_event(Scored(key=key("a"), turn=0, items=(score,)))
    assert told.with_longest().endswith(f"longest: a, turn 2, waiting for {judge}, 0 s")
    told.count_event(Scored(key=key("a"), turn=None, items=(score,)))
    clock.now += 3
    assert told.with_longest() == f"[0/2] 0 passed, 0:03; longest: a, judging, waiting for {judge}, 3 s"
    told.count_event(SampleFinished(key=key("a"), stop=DONE))
    told.count_event(SampleStarted(key=key("a")))
    assert told.with_longest().endswith(f"longest: a, turn 1, waiting for {judge}, 0 s")


def test_the_longest_running_come_first() -> None:
    clock = Clock()
    told = state(clock=clock)
    for index in range(9):
        told.count_event(SampleStarted(key=key(f"s{index}")))
        clock.now += 10
    told.count_event(TurnFinished(key=key("s0"), index=0, turn=Turn(user="x")))
    assert told.longest(4) == [
        ("s0 · bot", "turn 2, 1:30"),
        ("s1 · bot", "turn 1, 1:20"),
        ("s2 · bot", "turn 1, 1:10"),
        ("s3 · bot", "turn 1, 1:00"),
    ]
    assert told.more_running(4) == ["  and 5 more running"]


def test_a_sample_that_is_started_anew_waits_anew() -> None:
    clock = Clock()
    told = state(SampleStarted(key=key("a")), clock=clock)
    clock.now += 50
    told.count_event(SampleStarted(key=key("b")))
    told.count_event(SampleStarted(key=key("a")))
    assert told.longest(4) == [("b · bot", "turn 1, 0 s"), ("a · bot", "turn 1, 0 s")]


def test_more_samples_than_planned_raise_the_total() -> None:
    run = begin(key("a"))
    told = state(run, *whole(key("a")), *whole(key("a", epoch=1)), SampleStarted(key=key("a", epoch=2)))
    assert told.total == 3


def test_labels_name_agent_and_epoch_only_where_there_are_several() -> None:
    one = state(begin(key("a"), key("b")))
    many = state(begin(key("a"), key("a", "other"), key("a", epoch=1), key("b")))
    assert one.label(key("a")) == "a"
    assert many.label(key("a", "other", 1)) == "a@2 · other"
    assert many.label(key("b")) == "b · bot"
    assert one.total == 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (0.4, "0 s"), (59.9, "59 s"), (60, "1:00"), (3720, "1:02:00")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lines_of_a_run_that_waits_and_one_that_ended() -> None:
    clock = Clock()
    told = state(begin(key("a"), key("b")), *whole(key("a"), BROKE), SampleStarted(key=key("b")), clock=clock)
    clock.now += 75
    assert told.counts() == "[1/2] 0 passed, 1 failed, 1:15"
    assert told.brief_counts() == "1/2  ✓ 0  ✗ 1  1:15"
    assert told.with_longest() == f"{told.counts()}; longest: b, turn 1, 1:15"
    assert told.last_line() == f"stopped: {told.counts()}"
    told.count_event(SampleFinished(key=key("b"), stop=DONE))
    assert told.last_line() == "ran [2/2] 1 passed, 1 failed, 1:15"
    assert told.with_longest() == told.counts()


def test_the_cost_is_told_against_the_budget() -> None:
    usage = Usage(calls=1, input_tokens=1_000_000, cost=0.28)
    sample = key("a")
    turn = Turn(user="hi", steps=(Step(text="well", usage=usage),))
    ends = SampleFinished(key=sample, stop=DONE)
    events: list[Event] = [SampleStarted(key=sample), TurnFinished(key=sample, index=0, turn=turn), ends]
    run = begin(sample)
    assert state(run, *events).brief_counts() == "1/1  ✓ 1  0:00  $0.28"
    assert "$" not in state(run, *whole(sample)).brief_counts()
    budget = BudgetConfig(max_cost=1.0)
    bounded = run.model_copy(update={"plan": run.plan.with_suite(budget=budget)})
    assert state(bounded, *events).counts() == "[1/1] 1 passed, 0:00, $0.28 of $1.00"


# Plain lines


def test_a_log_has_each_failure_at_once_and_how_it_goes() -> None:
    out = io.StringIO()
    keys = [key(f"s{n:02}") for n in range(20)]
    with closing(Progress(out, Log, 20, clock=Clock())) as sink:
        told(sink, begin(*keys))
        for number, each in enumerate(keys):
            told(sink, *(failing(each) if number in (2, 13) else whole(each)))
    lines = out.getvalue().splitlines()
    assert lines == [
        "running 20 conversations",
        "[2/20] 2 passed, 0:00",
        "✗ s02  0.0 s  turn 1: no match",
        "[4/20] 3 passed, 1 failed, 0:00",
        *(f"[{n}/20] {n - 1} passed, 1 failed, 0:00" for n in (6, 8, 10, 12)),
        "✗ s13  0.0 s  turn 1: no match",
        *(f"[{n}/20] {n - 2} passed, 2 failed, 0:00" for n in (14, 16, 18)),
        "ran [20/20] 18 passed, 2 failed, 0:00",
    ]


def test_a_line_each_thirty_seconds_however_few_have_finished() -> None:
    clock, out = Clock(), io.StringIO()
    told = state(begin(key("a"), key("b")), SampleStarted(key=key("a")), clock=clock)
    log = Log(GuardedStream(out), told)
    lines = []
    for _ in range(6):
        clock.now += 10
        told.count_event(Notice(text="something happens"))
        log.tick()
        lines.append(len(out.getvalue().splitlines()))
    assert lines == [0, 0, 1, 1, 1, 2]
    assert out.getvalue().startswith("[0/2] 0 passed, 0:30; longest: a, turn 1, 30 s\n")


def test_many_failures_are_told_up_to_a_number() -> None:
    out = io.StringIO()
    keys = [key(f"s{index}") for index in range(300)]
    with closing(Progress(out, Log, len(keys))) as sink:
        told(sink, begin(*keys))
        for each in keys:
            told(sink, *whole(each, BROKE))
    text = out.getvalue()
    assert text.count("✗") == progress.SHOWN_FAILURES
    assert text.count("further failures") == 1


def test_many_samples_get_no_line_each() -> None:
    out = io.StringIO()
    keys = [key(f"s{index}") for index in range(2000)]
    with closing(Progress(out, Log, len(keys))) as sink:
        told(sink, begin(*keys))
        for each in keys:
            told(sink, *whole(each))
    assert len(out.getvalue().splitlines()) == 11  # nine tenths, the first line and the last


def test_warnings_are_told_up_to_a_number_and_infos_not_at_all() -> None:
    out = io.StringIO()
    with closing(Progress(out, Log, 1)) as sink:
        told(sink, Notice(level="info", text="harmless"))
        told(sink, *(Notice(level="warning", text=f"retry {index}") for index in range(50)))
    text = out.getvalue()
    assert "harmless" not in text
    assert text.count("warning: retry") == progress.SHOWN_WARNINGS
    assert text.count("further warnings") == 1


@pytest.mark.parametrize("screen", [Log, Display])
def test_control_characters_do_not_reach_the_stream(screen: ScreenMaker) -> None:
    evil = "\x1b]0;title\x07a\x1b[31m\r\nred\u202e [bold]b"
    out = io.StringIO()
    with closing(Progress(out, screen, 2)) as sink:
        told(sink, begin(key(evil), key("b")), SampleStarted(key=key(evil)), Notice(level="error", text=evil))
        if screen is Display:
            assert eventually(lambda: "a red" in out.getvalue())
        told(sink, SampleFinished(key=key(evil), stop=BROKE.model_copy(update={"detail": evil})))
    text = out.getvalue()
    assert "[bold]b" in text
    assert "\x1b]0" not in text
    assert "\x1b[31mred" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("screen", "stream"),
    [
        (Log, Broken),
        (Log, Blocked),
        (Log, io.StringIO),
        (Display, Broken),  # not Blocked: a terminal that is held (Ctrl-S) holds the report as well
        (Display, io.StringIO),
    ],
)
def test_a_bad_stream_breaks_nothing(
    screen: ScreenMaker, stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "CLOSE_WAIT_S", 0.01)
    out = stream()
    if stream is io.StringIO:
        out.close()
    with closing(Progress(out, screen, 1)) as sink:
        told(sink, begin(key()), *whole(key()))
    if isinstance(out, Blocked):
        out.free.set()
    assert eventually(lambda: not writers())


def test_a_stream_without_the_letters_gets_question_marks() -> None:
    raw = io.BytesIO()
    with closing(Progress(io.TextIOWrapper(raw, encoding="ascii", write_through=True), Log, 1)) as sink:
        told(sink, begin(key("café")), *whole(key("café"), BROKE))
        assert eventually(lambda: b"caf?" in raw.getvalue())


@pytest.mark.parametrize("screen", [Log, Display])
def test_a_closed_one_is_silent_and_leaves_no_thread(screen: ScreenMaker) -> None:
    out = io.StringIO()
    sink = Progress(out, screen, 2)
    told(sink, begin(key("a"), key("b")), *whole(key("a")))
    sink.close()
    before = out.getvalue()
    told(sink, *whole(key("b")))
    sink.close()
    assert before
    assert out.getvalue() == before
    assert eventually(lambda: not writers())


@pytest.mark.parametrize("screen", [Log, Display])
def test_it_is_closed_when_the_run_breaks(screen: ScreenMaker) -> None:
    out = io.StringIO()

    def run() -> None:
        with closing(Progress(out, screen, 2)) as sink:
            told(sink, begin(key("a"), key("b")), SampleStarted(key=key("a")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert "stopped: [0/2] 0 passed" in out.getvalue()
    assert eventually(lambda: not writers())


@pytest.mark.parametrize("screen", [Log, Display])
def test_one_that_fails_gives_the_stream_back_and_says_so(
    screen: ScreenMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(RunStatus, "count_event", fail)
    sink = Progress(out, screen, 1)
    sink(begin(key()))
    assert eventually(lambda: not writers())
    assert sys.stdout is out
    with pytest.raises(RuntimeError, match="a bug"):
        sink(SampleStarted(key=key()))
    sink.close()


@pytest.mark.parametrize("screen", [Log, Display])
def test_what_was_told_nothing_writes_nothing(screen: ScreenMaker) -> None:
    out = io.StringIO()
    with closing(Progress(out, screen, 3)):
        pass
    assert out.getvalue() == ""


# The live display


def test_live_shows_what_runs_and_is_gone_at_the_end() -> None:
    out = Terminal()
    keys = [key(f"s{index}") for index in range(8)]
    with closing(Progress(out, Display, len(keys))) as sink:
        told(
            sink, begin(*keys), *(SampleStarted(key=k) for k in keys), Notice(level="warning", text="retry 2")
        )
        assert eventually(lambda: "and 4 more running" in out.getvalue() and "retry 2" in out.getvalue())
        assert "s3" in out.getvalue()
        assert "s4" not in out.getvalue()
    end = out.getvalue()
    assert "\x1b[?25h" in end  # the cursor is back
    assert end.rstrip("\n").splitlines()[-1].endswith("stopped: [0/8] 0 passed, 0:00")


def test_live_gives_the_streams_back(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with closing(Progress(err, Display, 1)) as sink:
        told(sink, begin(key()))
        print("an agent prints")
        assert "an agent prints" in err.getvalue()  # above the display, which it would tear
    assert (sys.stdout, sys.stderr) == (out, err)


def test_live_leaves_a_redirected_stdout_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with closing(Progress(Terminal(), Display, 1)) as sink:
        told(sink, begin(key()))
        print("result")
    assert out.getvalue() == "result\n"


# When nothing moves


def test_what_is_pending_is_told_once_in_each_period_without_events() -> None:
    clock, out = Clock(), io.StringIO()
    told = state(begin(key("a")), SampleStarted(key=key("a")), clock=clock, pending=lambda _: "the agent")
    log = Log(GuardedStream(out), told)
    for _ in range(26):
        log.tick()
        clock.now += 5
    told.count_event(Notice(text="something has happened"))
    log.tick()
    assert out.getvalue().splitlines() == [
        line
        for passed in ("30 s", "1:00", "1:30", "2:00")
        for line in (
            f"nothing has happened for {passed}; 0 of 1 are done",
            f"  a: turn 1, waiting for the agent, {passed}",
        )
    ]


def test_stalled_lines_say_who_is_waited_for() -> None:
    clock = Clock()
    waits = {"a": "the agent, the tool 'lookup'", "b": "the simulated user, waiting for a limit or a retry"}
    keys = [key(name) for name in ("a", "b", *(f"s{number}" for number in range(12)))]
    told = state(begin(*keys), clock=clock, pending=lambda k: waits.get(k.scenario, ""))
    for each in keys:
        told.count_event(SampleStarted(key=each))
    told.count_event(TurnFinished(key=key("a"), index=0, turn=Turn(user="hi")))
    clock.now += 65
    lines = told.stalled_lines()
    assert lines[:3] == [
        "nothing has happened for 1:05; 0 of 14 are done",
        "  a: turn 2, waiting for the agent, the tool 'lookup', 1:05",
        "  b: turn 1, waiting for the simulated user, waiting for a limit or a retry, 1:05",
    ]
    assert lines[3] == "  s0: turn 1, 1:05"  # nothing is known
    assert len(lines) == 12
    assert lines[-1] == "  and 4 more running"


@pytest.mark.parametrize("screen", [Log, Display])
def test_it_is_shown_that_nothing_moves(screen: ScreenMaker) -> None:
    out, clock = Terminal(), Clock()
    judge = "the judge of coherence"
    with closing(Progress(out, screen, 1, clock=clock, pending=lambda _: judge)) as sink:
        told(sink, begin(key("a")), SampleStarted(key=key("a")))
        assert eventually(lambda: "running 1" in out.getvalue() or "turn 1" in out.getvalue())
        clock.now += 30
        assert eventually(lambda: "nothing has happened for 30 s" in out.getvalue())
        assert f"waiting for {judge}" in out.getvalue()


def test_a_run_that_goes_on_counts_what_was_done() -> None:
    out = io.StringIO()
    lost = SampleFinished(key=key("b"), stop=LOST, again=True)
    past = [begin(key("a"), key("b")), *whole(key("a")), lost]
    with closing(Progress(out, Log, 2, past=past)) as sink:
        told(sink, *whole(key("b")))
    assert "[1/2]" not in out.getvalue()
    assert out.getvalue().rstrip().endswith("ran [2/2] 2 passed, 0:00")
