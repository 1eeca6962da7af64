"""What is shown on stderr while a run goes on."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable

import pytest

from agenteval.cli import progress
from agenteval.cli.progress import Progress, live_progress, plain_progress, progress_for
from agenteval.cli.progress_state import (
    SHOWN_PENDING,
    STILL_S,
    ProgressState,
    Stillness,
    counts,
    duration,
    heartbeat,
    last_line,
    pending_lines,
)
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
from agenteval.core.trajectory import Stop, StopReason, Turn
from tests.support.plans import begun

DONE = Stop(reason=StopReason.SCRIPT_DONE)
BROKE = Stop(reason=StopReason.AGENT_ERROR, detail="HTTP 500")


@pytest.fixture(autouse=True)
def _a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


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


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


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
        self.free.wait(30)
        return super().write(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# The counts


def test_tally_counts_what_it_is_told() -> None:
    tally = ProgressState(3, clock=Clock())
    for event in [*whole(key("a")), *whole(key("b"), BROKE), SampleStarted(key=key("c"))]:
        tally.see(event)
    at = tally.snapshot()
    assert (at.total, at.finished, at.broken, at.turns, at.running) == (3, 2, 1, 2, 1)


def test_a_sample_that_is_still_being_judged_counts_as_running() -> None:
    clock = Clock()
    tally = ProgressState(2, clock=clock)
    tally.see(begin(key("a"), key("b")))
    tally.see(SampleStarted(key=key("a")))
    tally.see(TurnFinished(key=key("a"), index=0, turn=Turn(user="hi")))
    tally.see(Scored(key=key("a"), turn=0, items=()))
    assert heartbeat(tally.snapshot()).endswith("1 running, longest: a, turn 2, 0 s")
    tally.see(Scored(key=key("a"), turn=None, items=()))
    tally.see(Scored(key=key("a"), turn=0, items=()))
    clock.now += 3
    at = tally.snapshot()
    assert (at.finished, at.running, at.longest[0].judging) == (0, 1, True)
    assert heartbeat(at) == "0/2 samples, 1 turn, 3 s; 1 running, longest: a, judging, 3 s"
    tally.see(SampleFinished(key=key("a"), stop=DONE))
    tally.see(SampleStarted(key=key("a")))
    assert not tally.snapshot().longest[0].judging


def test_a_sample_that_was_cut_off_is_not_called_broken() -> None:
    tally = ProgressState(2)
    for event in whole(key("a"), Stop(reason=StopReason.INTERRUPTED)) + whole(
        key("b"), Stop(reason=StopReason.BUDGET)
    ):
        tally.see(event)
    assert tally.snapshot().broken == 0


def test_the_longest_running_come_first_and_at_most_five() -> None:
    clock = Clock()
    tally = ProgressState(9, clock=clock)
    for index in range(9):
        tally.see(SampleStarted(key=key(f"s{index}")))
        clock.now += 10
    tally.see(TurnFinished(key=key("s0"), index=0, turn=Turn(user="x")))
    at = tally.snapshot()
    assert [r.label.split(",")[0] for r in at.longest] == ["s0", "s1", "s2", "s3", "s4"]
    assert at.running == 9
    assert (at.longest[0].turn, at.longest[0].for_s) == (2, 90.0)
    assert at.longest[1].turn == 1


def test_a_sample_that_is_started_anew_waits_anew() -> None:
    clock = Clock()
    tally = ProgressState(2, clock=clock)
    tally.see(SampleStarted(key=key("a")))
    clock.now += 50
    tally.see(SampleStarted(key=key("b")))
    tally.see(SampleStarted(key=key("a")))
    assert [(r.label.split(",")[0], r.for_s) for r in tally.snapshot().longest] == [("b", 0.0), ("a", 0.0)]


def test_more_samples_than_planned_raise_the_total() -> None:
    tally = ProgressState(1)
    for event in [*whole(key("a")), *whole(key("a", epoch=1)), SampleStarted(key=key("a", epoch=2))]:
        tally.see(event)
    assert tally.snapshot().total == 3


def test_labels_name_agent_and_epoch_only_where_there_are_several() -> None:
    one, many = ProgressState(0), ProgressState(0)
    one.see(begin(key("a"), key("b")))
    many.see(begin(key("a"), key("a", "other"), key("a", epoch=1)))
    assert one.label(key("a")) == "a"
    assert many.label(key("a", "other", 1)) == "a, other, epoch 2"
    assert one.snapshot().total == 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (0.4, "0 s"), (59.9, "59 s"), (60, "1:00"), (3720, "1:02:00")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lines_of_a_run_that_waits_and_one_that_ended() -> None:
    clock = Clock()
    tally = ProgressState(2, clock=clock)
    tally.see(begin(key("a"), key("b")))
    for event in [*whole(key("a"), BROKE), SampleStarted(key=key("b"))]:
        tally.see(event)
    clock.now += 75
    waiting = tally.snapshot()
    assert counts(waiting) == "1/2 samples, 1 broken, 1 turn, 1:15"
    assert heartbeat(waiting) == f"{counts(waiting)}; 1 running, longest: b, turn 1, 1:15"
    assert last_line(waiting).startswith("stopped: 1/2 samples")
    tally.see(SampleFinished(key=key("b"), stop=DONE))
    assert last_line(tally.snapshot()).startswith("ran 2/2 samples")
    assert heartbeat(tally.snapshot()) == counts(tally.snapshot())


# Plain lines


def test_few_samples_get_a_line_each() -> None:
    out = io.StringIO()
    with plain_progress(out, 2) as sink:
        told(sink, begin(key("a"), key("b")), *whole(key("a")), *whole(key("b"), BROKE))
    lines = out.getvalue().splitlines()
    assert lines[:3] == [
        "running 2 samples",
        "[1/2] a: script done",
        "[2/2] b: broken: agent error: HTTP 500",
    ]
    assert lines[3].startswith("ran 2/2 samples, 1 broken, 2 turns")
    assert len(lines) == 4


def test_many_samples_get_no_line_each() -> None:
    out = io.StringIO()
    keys = [key(f"s{index}") for index in range(2000)]
    with plain_progress(out, len(keys), interval_s=3600) as sink:
        told(sink, begin(*keys))
        for each in keys:
            told(sink, *whole(each))
    assert len(out.getvalue().splitlines()) == 2


def test_a_silent_run_is_told_of_by_a_heartbeat() -> None:
    out = io.StringIO()
    with plain_progress(out, 1, interval_s=0.01) as sink:
        told(sink, begin(key("slow")), SampleStarted(key=key("slow")))
        assert eventually(lambda: "longest: slow, turn 1" in out.getvalue())


def test_warnings_are_told_up_to_a_number_and_infos_not_at_all() -> None:
    out = io.StringIO()
    with plain_progress(out, 1) as sink:
        told(sink, Notice(level="info", text="harmless"))
        told(sink, *(Notice(level="warning", text=f"retry {index}") for index in range(50)))
    text = out.getvalue()
    assert "harmless" not in text
    assert text.count("warning: retry") == progress.SHOWN_WARNINGS
    assert text.count("further warnings") == 1


@pytest.mark.parametrize("make", [plain_progress, live_progress])
def test_control_characters_do_not_reach_the_stream(make: Callable[..., Progress]) -> None:
    evil = "\x1b]0;title\x07a\x1b[31m\r\nred\u202e [bold]b"
    out = io.StringIO()
    with make(out, 2) as sink:
        told(sink, begin(key(evil), key("b")), SampleStarted(key=key(evil)), Notice(level="error", text=evil))
        if make is live_progress:
            assert eventually(lambda: "a red" in out.getvalue())
        told(sink, SampleFinished(key=key(evil), stop=BROKE.model_copy(update={"detail": evil})))
    text = out.getvalue()
    assert "[bold]b" in text
    assert "\x1b]0" not in text
    assert "\x1b[31m" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("make", "stream"),
    [
        (plain_progress, Broken),
        (plain_progress, Blocked),
        (plain_progress, io.StringIO),
        (live_progress, Broken),  # not Blocked: a terminal that is held (Ctrl-S) holds the report as well
        (live_progress, io.StringIO),
    ],
)
def test_a_bad_stream_breaks_nothing(
    make: Callable[..., Progress], stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "CLOSE_WAIT_S", 0.01)
    out = stream()
    if stream is io.StringIO:
        out.close()
    with make(out, 1) as sink:
        told(sink, begin(key()), *whole(key()))
    if isinstance(out, Blocked):
        out.free.set()
    assert eventually(lambda: not writers())


def test_a_stream_without_the_letters_gets_question_marks() -> None:
    raw = io.BytesIO()
    with plain_progress(io.TextIOWrapper(raw, encoding="ascii", write_through=True), 1) as sink:
        told(sink, begin(key("café")), *whole(key("café")))
        assert eventually(lambda: b"caf?" in raw.getvalue())


@pytest.mark.parametrize("make", [plain_progress, live_progress])
def test_a_closed_one_is_silent_and_leaves_no_thread(make: Callable[..., Progress]) -> None:
    out = io.StringIO()
    sink = make(out, 2)
    told(sink, begin(key("a"), key("b")), *whole(key("a")))
    sink.close()
    before = out.getvalue()
    told(sink, *whole(key("b")))
    sink.close()
    assert before
    assert out.getvalue() == before
    assert eventually(lambda: not writers())


@pytest.mark.parametrize("make", [plain_progress, live_progress])
def test_it_is_closed_when_the_run_breaks(make: Callable[..., Progress]) -> None:
    out = io.StringIO()

    def run() -> None:
        with make(out, 2) as sink:
            told(sink, begin(key("a"), key("b")), SampleStarted(key=key("a")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert "stopped: 0/2 samples" in out.getvalue()
    assert eventually(lambda: not writers())


@pytest.mark.parametrize("make", [plain_progress, live_progress])
def test_what_was_told_nothing_writes_nothing(make: Callable[..., Progress]) -> None:
    out = io.StringIO()
    with make(out, 3):
        pass
    assert out.getvalue() == ""


# The live display


def test_live_shows_what_runs_and_is_gone_at_the_end() -> None:
    out = Terminal()
    keys = [key(f"s{index}") for index in range(8)]
    with live_progress(out, len(keys)) as sink:
        told(
            sink, begin(*keys), *(SampleStarted(key=k) for k in keys), Notice(level="warning", text="retry 2")
        )
        assert eventually(lambda: "and 3 more running" in out.getvalue() and "retry 2" in out.getvalue())
        assert "s4" in out.getvalue()
        assert "s5" not in out.getvalue()
    end = out.getvalue()
    assert "\x1b[?25h" in end  # the cursor is back
    assert end.rstrip("\n").splitlines()[-1].endswith("stopped: 0/8 samples, 0 turns, 0 s")


def test_live_gives_the_streams_back(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with live_progress(err, 1) as sink:
        told(sink, begin(key()))
        print("an agent prints")
        assert "an agent prints" in err.getvalue()  # above the display, which it would tear
    assert (sys.stdout, sys.stderr) == (out, err)


def test_live_leaves_a_redirected_stdout_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with live_progress(Terminal(), 1) as sink:
        told(sink, begin(key()))
        print("result")
    assert out.getvalue() == "result\n"


def test_live_only_on_a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress_for(Terminal(), 1), progress.LiveProgress)
    assert isinstance(progress_for(io.StringIO(), 1), progress.PlainProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_for(Terminal(), 1), progress.PlainProgress)


# When nothing moves


def test_what_is_pending_is_told_once_in_each_period_without_events() -> None:
    stillness = Stillness(every_s=30)
    told = [still_s for still_s in range(0, 130, 5) if stillness.is_due(still_s)]
    assert told == [30, 60, 90, 120]
    assert not stillness.is_due(3)  # something has happened
    assert [still_s for still_s in range(0, 70, 20) if stillness.is_due(still_s)] == [40, 60]


def test_pending_lines_say_who_is_waited_for() -> None:
    clock = Clock()
    waits = {"a": "the agent, the tool 'lookup'", "b": "the simulated user, held up by a limit or a retry"}
    tally = ProgressState(30, clock=clock, pending=lambda k: waits.get(k.scenario, ""))
    keys = [key(name) for name in ("a", "b", *(f"s{number}" for number in range(12)))]
    tally.see(begin(*keys))
    for each in keys:
        tally.see(SampleStarted(key=each))
    tally.see(TurnFinished(key=key("a"), index=0, turn=Turn(user="hi")))
    clock.now += 65
    lines = pending_lines(tally.snapshot(SHOWN_PENDING))
    assert lines[:3] == [
        "nothing has happened for 1:05; 0/30 samples are done",
        "  a: turn 2, waits for the agent, the tool 'lookup', 1:05",
        "  b: turn 1, waits for the simulated user, held up by a limit or a retry, 1:05",
    ]
    assert lines[3] == "  s0: turn 1, 1:05"  # nothing is known
    assert len(lines) == 12
    assert lines[-1] == "  and 4 more running"


def test_plain_tells_what_is_pending_when_nothing_moves() -> None:
    out, clock = io.StringIO(), Clock()
    waiting = plain_progress(out, 2, interval_s=0.005, clock=clock, pending=lambda _: "the agent")
    with waiting as sink:
        told(sink, begin(key("a"), key("b")), SampleStarted(key=key("a")))
        assert eventually(lambda: "1 running" in out.getvalue())
        assert "nothing has happened" not in out.getvalue()
        for period in (1, 2):
            clock.now += STILL_S
            assert eventually(lambda: out.getvalue().count("nothing has happened") == period)  # noqa: B023
        told(sink, SampleFinished(key=key("a"), stop=DONE))
        clock.now += STILL_S - 1
        before = out.getvalue()
        assert eventually(lambda: len(out.getvalue()) > len(before) + 200)
    assert out.getvalue().count("nothing has happened") == 2
    assert "  a: turn 1, waits for the agent, 30 s" in out.getvalue()


def test_live_shows_what_is_pending_when_nothing_moves() -> None:
    out, clock = Terminal(), Clock()
    with live_progress(out, 1, clock=clock, pending=lambda _: "the judge of coherence") as sink:
        told(sink, begin(key("a")), SampleStarted(key=key("a")))
        assert eventually(lambda: "turn 1" in out.getvalue())
        assert "coherence" not in out.getvalue()
        clock.now += STILL_S
        assert eventually(lambda: "waits for the judge of coherence" in out.getvalue())
        assert "nothing has happened for 30 s" in out.getvalue()


def test_a_run_that_goes_on_counts_what_was_done() -> None:
    out = io.StringIO()
    past = [begin(key("a"), key("b")), *whole(key("a"))]
    with plain_progress(out, 2, past=past) as sink:
        told(sink, *whole(key("b")))
    assert "[2/2] b: script done" in out.getvalue()
    assert "a: script done" not in out.getvalue()
    assert out.getvalue().rstrip().endswith("ran 2/2 samples, 1 turn, 0 s")
