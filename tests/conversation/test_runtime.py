"""The controls that end a run early."""

from __future__ import annotations

import anyio

from agenteval.conversation.runtime import RunControl


def test_a_run_is_complete_until_it_is_stopped() -> None:
    control = RunControl()
    assert (control.outcome, control.is_stopping, control.is_cut) == ("complete", False, False)
    assert control.may_begin("x")
    assert not control.may_begin(None)
    control.stop("budget", "no money left")
    assert (control.outcome, control.stop_reason, control.is_stopping) == ("budget", "no money left", True)
    assert not control.may_begin("x")
    control.stop("fail_fast", "other")  # the first reason counts
    assert (control.outcome, control.stop_reason) == ("budget", "no money left")


def test_a_stop_without_a_reason_keeps_the_usual_one() -> None:
    control = RunControl()
    usual = control.stop_reason
    control.stop("deadline")
    assert (control.outcome, control.stop_reason, bool(usual)) == ("deadline", usual, True)


def test_an_interrupted_run_is_complete_if_nothing_was_left() -> None:
    control = RunControl()
    control.interrupt()
    assert not control.is_stopping
    assert not control.may_begin(None)
    assert control.outcome == "complete"
    assert not control.may_begin("x")
    assert control.outcome == "interrupted"


def test_an_interruption_cuts_conversations_that_are_under_way() -> None:
    control = RunControl()
    assert not control.is_cut
    control.active_conversations = 1
    assert control.is_cut
    control.active_conversations = 0
    control.stop("budget")
    assert control.is_cut


def test_cancelling_ends_what_is_running() -> None:
    async def main() -> bool:
        control = RunControl()
        with anyio.CancelScope() as scope:
            control.attach(scope)
            control.cancel("deadline", "too late")
            await anyio.lowlevel.checkpoint()
        assert (control.outcome, control.stop_reason) == ("deadline", "too late")
        return scope.cancelled_caught

    assert anyio.run(main)
    control = RunControl()
    control.cancel("deadline")  # nothing is attached yet
    assert control.is_stopping
