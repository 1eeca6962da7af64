"""The first signal lets what runs finish, the second stops it, the third ends the process; a deadline."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.conversation import exits
from agenteval.conversation.runtime import RunControl
from agenteval.running import interrupt as module
from agenteval.running.interrupt import enforce_deadline, finish_on_interrupt, handle_interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM]


class Control(RunControl):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def interrupt(self) -> None:
        self.told.append("interrupt")
        super().interrupt()

    def cancel(self, outcome: Any, why: str | None = None) -> None:
        self.told.append(f"cancel {outcome}")
        super().cancel(outcome, why)


@pytest.fixture(autouse=True)
def _no_interrupt_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "_interrupts", [])
    monkeypatch.setattr(module, "GRACE_S", 0)


def sent(number: signal.Signals = signal.SIGINT) -> None:
    handler: Any = signal.getsignal(number)
    handler(number, None)


async def turns_of_the_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def handled(control: Control, *steps: Callable[[], None]) -> list[str]:
    async def run() -> None:
        with handle_interrupts(control):
            for step in steps:
                step()
                await turns_of_the_loop()

    before = [signal.getsignal(number) for number in SIGNALS]
    asyncio.run(run())
    assert [signal.getsignal(number) for number in SIGNALS] == before
    return control.told


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_lets_what_runs_finish(number: signal.Signals) -> None:
    control = Control()
    assert handled(control, lambda: sent(number)) == ["interrupt"]
    assert control.outcome == "complete"  # nothing was under way


def test_what_is_played_has_only_so_much_time() -> None:
    control = Control()
    control.active_conversations = 1
    assert handled(control, sent) == ["interrupt", "cancel interrupted"]
    assert control.outcome == "interrupted"


def test_the_second_signal_stops_it() -> None:
    assert handled(Control(), sent, sent)[-1] == "cancel interrupted"


def test_the_third_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(module, "exit_now", codes.append)
    handled(Control(), sent, sent)
    assert codes == []
    handled(Control(), sent)
    assert codes == [130]


def test_a_signal_during_the_setup_counts() -> None:
    exits.count_interrupt("x")
    assert handled(Control()) == ["interrupt"]


def test_before_and_after_the_second_signal_ends_the_command() -> None:
    before = signal.getsignal(signal.SIGINT)
    with finish_on_interrupt():
        sent()
        with pytest.raises(KeyboardInterrupt):
            sent()
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_nothing_is_changed() -> None:
    before, seen = signal.getsignal(signal.SIGINT), list[Any]()

    def work() -> None:
        with handle_interrupts(RunControl()), finish_on_interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize(("run_s", "told"), [(None, []), (1000.0, []), (0.0, ["cancel deadline"])])
def test_the_deadline(run_s: float | None, told: list[str]) -> None:
    control, said = Control(), list[str]()

    async def run() -> None:
        with enforce_deadline(control, run_s, said.append):
            await turns_of_the_loop()

    asyncio.run(run())
    assert control.told == told
    assert ["deadlines.run_s" in line for line in said] == [True] * len(told)
    assert ("deadlines.run_s" in control.stop_reason) is bool(told)
    assert (control.outcome == "deadline") is bool(told)


def test_a_deadline_is_over_with_its_run() -> None:
    control, said = Control(), list[str]()

    async def run() -> None:
        with enforce_deadline(control, 0.0, said.append):
            pass
        await turns_of_the_loop()

    asyncio.run(run())
    assert control.told == said == []
