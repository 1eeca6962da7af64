"""The exit code is agenteval's own: what ends the process, with which code, and what Ctrl-C does."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from agenteval.conversation import exits


class Ended(BaseException):
    """Raised in place of the end of the process."""

    def __init__(self, code: int) -> None:
        self.code = code


UNGUARDED = 99


@pytest.fixture(autouse=True)
def no_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def end(code: int) -> NoReturn:
        raise Ended(code)

    monkeypatch.setattr(exits, "_os_exit", end)
    monkeypatch.setattr(exits, "_exit_hooks", [])
    monkeypatch.setattr(exits, "_interrupts", [])
    for name in ("_exit", "execv", "execve"):  # what is not guarded must not end the tests either
        monkeypatch.setattr(os, name, lambda *_: end(UNGUARDED))
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("set_code", "code"), [(None, 3), (0, 0), (1, 1), (2, 2)])
@pytest.mark.parametrize("status", [0, 7])
def test_an_agent_cannot_choose_the_exit_code(
    set_code: int | None, code: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    guard = exits.ExitGuard()
    guard.guard()
    if set_code is not None:
        assert guard.set_exit_code(set_code) == set_code
    with pytest.raises(Ended) as ended:
        os._exit(status)
    assert ended.value.code == code
    shown = capsys.readouterr().err
    assert bool(shown) is (set_code is None)
    assert (f"os._exit({status})" in shown) is (set_code is None)


def test_a_second_end_has_the_same_code_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    exits.ExitGuard().guard()
    for is_first in (True, False):
        with pytest.raises(Ended) as ended:
            os._exit(0)
        assert ended.value.code == exits.EXIT_UNDECIDED == 3
        assert bool(capsys.readouterr().err) is is_first


def test_a_forked_process_ends_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda *args: begun.append(args))
    guard = exits.ExitGuard()
    guard.guard()
    guard.set_exit_code(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(Ended) as ended:
        os._exit(7)
    assert ended.value.code == 7
    with pytest.raises(Ended):  # what would follow if a program did not begin
        os.execv("/bin/true", ["true"])
    assert begun == [("/bin/true", ["true"])]


@pytest.mark.parametrize("name", ["execv", "execve"])
def test_another_program_does_not_replace_the_process(name: str) -> None:
    guard = exits.ExitGuard()
    guard.guard()
    guard.set_exit_code(1)
    more = ({},) if name == "execve" else ()
    with pytest.raises(Ended) as ended:
        getattr(os, name)(sys.executable, ["python"], *more)
    assert ended.value.code == 1
    with pytest.raises(FileNotFoundError):
        getattr(os, name)("/there/is/no/such/program", ["x"], *more)


def test_hooks_run_in_order_and_none_stops_the_others() -> None:
    called: list[str] = []

    def fail() -> None:
        called.append("fails")
        raise ValueError

    for hook in (lambda: called.append("first"), fail, lambda: called.append("last")):
        exits.register_exit_hook(hook)
    with pytest.raises(Ended) as ended:
        exits.exit_now(130)
    assert (ended.value.code, called) == (130, ["first", "fails", "last"])
    exits.ExitGuard().guard()
    with pytest.raises(Ended):
        os._exit(0)
    assert called == ["first", "fails", "last"] * 2


def test_an_end_without_waiting_runs_what_was_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: called.append("atexit"))
    with pytest.raises(Ended) as ended:
        exits.exit_without_waiting(2)
    assert (ended.value.code, called) == (2, ["atexit"])


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────────


def test_only_the_first_interrupt_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert not exits.is_interrupted()
    assert exits.count_interrupt("stopping") == 1
    assert exits.is_interrupted()
    assert "stopping" in capsys.readouterr().err
    assert exits.count_interrupt("stopping") == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "\nstopping\n"), (False, "stopping\n")])
def test_at_a_terminal_the_line_begins_anew(
    is_terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    exits.count_interrupt("stopping")
    assert stream.getvalue() == shown


def test_the_second_interrupt_ends_the_process() -> None:
    with pytest.raises(KeyboardInterrupt):
        exits._interrupt(2, None)
    with pytest.raises((Ended, KeyboardInterrupt)) as ended:
        exits._interrupt(2, None)
    assert isinstance(ended.value, Ended)
    assert ended.value.code == 130


@pytest.mark.parametrize(
    ("before", "is_replaced"),
    [(signal.default_int_handler, True), (signal.SIG_IGN, False), (lambda *_: None, False)],
)
def test_the_handler_replaces_only_that_of_python(before: Any, is_replaced: bool) -> None:
    signal.signal(signal.SIGINT, before)
    exits.install_interrupt_handler()
    found = signal.getsignal(signal.SIGINT)
    assert (found is exits._interrupt, found is before) == (is_replaced, not is_replaced)


@pytest.mark.parametrize(("before", "ends"), [(exits._interrupt, True), (signal.SIG_IGN, False)])
def test_a_late_interrupt_ends_silently(before: Any, ends: bool) -> None:
    signal.signal(signal.SIGINT, before)
    exits.exit_on_late_interrupt(1)
    found: Any = signal.getsignal(signal.SIGINT)
    if not ends:
        assert found is before
        return
    with pytest.raises(Ended) as ended:
        found(2, None)
    assert ended.value.code == 1


# ── output that cannot be written ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("closed")])
def test_output_that_cannot_be_flushed(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def flush(self) -> None:
            raise error

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Broken())
    silenced: list[Any] = []
    monkeypatch.setattr(exits, "silence", silenced.append)
    exits.flush_output()
    assert silenced == [sys.stdout, sys.stderr]


def test_a_silent_stream_discards_its_content() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        exits.silence(stream)
        stream.write("lost")
    assert os.read(reading, 10) == b""
    os.close(reading)
    exits.silence(io.StringIO())  # a stream without a file is left alone
