"""Leases: the limits and the budget of one place hold for calls that several processes make."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest

from agenteval.adapters.models.pool import METERED_CALL, ModelPool
from agenteval.adapters.traffic.call_coordinator import (
    BudgetStopped,
    Coordinator,
    HolderSilent,
    RoleStopped,
)
from agenteval.adapters.traffic.leased_calls import LeasedBudget, LeasedCalls, LeasedThrottle
from agenteval.adapters.transport.limits import PauseTooLong, RateTerms, ServerTerms
from agenteval.core.config import BudgetConfig
from agenteval.core.errors import BudgetError
from agenteval.core.trajectory import Usage
from tests.support.virtual_time import VirtualTime, run_virtually

UNLIMITED = RateTerms(("m",), None)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Process:
    """A process that makes calls, and the greatest number of them in flight."""

    def __init__(self, name: str, coordinator: Coordinator) -> None:
        self.calls = LeasedCalls(name)
        self.calls.connect(coordinator)

    def throttle(
        self, *, calls: int = 9, slots: int | None = None, rate: RateTerms = UNLIMITED
    ) -> LeasedThrottle:
        pool = ModelPool(slots) if slots else None
        return self.calls.throttle(ServerTerms("http://m", "sk-key", "models", calls), rate, pool)


async def settle() -> None:
    """Let reports arrive: they are gathered for a moment."""
    await asyncio.sleep(0.02)


def play(test: Callable[[], Awaitable[Any]]) -> Any:
    found: list[Any] = []

    async def main(_time: VirtualTime) -> None:
        found.append(await test())

    run_virtually(main)
    return found[0]


async def run_side_by_side(throttles: Sequence[LeasedThrottle], times: int) -> int:
    """Make calls through all throttles at once. Return the greatest number in flight."""
    in_flight = most = 0

    async def call(throttle: LeasedThrottle) -> None:
        nonlocal in_flight, most
        async with throttle.call() as permit:
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0)
            in_flight -= 1
            permit.record_success()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(times):
            for throttle in throttles:
                tasks.create_task(call(throttle))
    return most


@pytest.mark.parametrize(("calls", "slots", "most"), [(9, 3, 3), (2, None, 2)])
def test_two_processes_share_the_slots_of_a_run_and_the_limit_of_a_server(
    calls: int, slots: int | None, most: int
) -> None:
    async def test() -> int:
        coordinator = Coordinator(slots or 99)
        both = [Process(name, coordinator).throttle(calls=calls, slots=slots) for name in ("one", "other")]
        return await run_side_by_side(both, 10)

    assert play(test) == most


def test_a_server_that_is_too_busy_for_one_process_is_left_alone_by_all() -> None:
    async def test() -> None:
        coordinator = Coordinator(9)
        one, other = (Process(name, coordinator) for name in ("one", "other"))
        async with one.throttle().call() as permit:
            permit.record_throttled(600.0, "come back later")
        await settle()
        with pytest.raises(PauseTooLong, match="600 s are requested"):
            async with other.throttle().call(left_s=5):
                pass

    play(test)


def test_the_success_of_a_call_is_known_to_all() -> None:
    async def test() -> None:
        coordinator = Coordinator(9)
        one, other = (Process(name, coordinator).throttle() for name in ("one", "other"))
        async with one.call() as permit:
            assert one.is_busy
            assert not other.has_answered
        permit.record_success(tokens=7)
        await settle()
        async with other.call():
            assert other.has_answered

    play(test)


def test_a_rate_holds_for_the_calls_of_both_over_its_window_and_a_margin() -> None:
    async def test() -> None:
        clock = Clock()
        coordinator = Coordinator(9, clock=clock)
        rate = RateTerms(("m",), 2)
        one, other = (Process(name, coordinator).throttle(rate=rate) for name in ("one", "other"))
        for throttle in (one, other):
            async with throttle.call():
                pass
        await settle()
        clock.now = 60.5  # the window is over, the margin is not
        with anyio.move_on_after(0.05) as scope:
            async with other.call():
                pass
        assert scope.cancelled_caught
        await settle()
        clock.now = 61.5
        async with one.call():
            pass

    play(test)


def test_an_agent_takes_from_the_rate_of_the_run() -> None:
    async def test() -> None:
        coordinator = Coordinator(9, clock=Clock())
        terms = RateTerms(("agent", "bot"), 1)
        first, second = (Process(name, coordinator).calls.rate(terms) for name in ("one", "other"))
        assert first
        assert second
        assert Process("third", coordinator).calls.rate(UNLIMITED) is None
        await first.take()
        with anyio.move_on_after(0.05) as scope:
            await second.take()
        assert scope.cancelled_caught

    play(test)


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────


def test_a_budget_of_calls_is_exact_over_processes() -> None:
    async def test() -> int:
        coordinator = Coordinator(9, BudgetConfig(max_calls=7), [(Usage(calls=2), "judge")])
        budgets = [
            LeasedBudget(Process(name, coordinator).calls, BudgetConfig(max_calls=7))
            for name in ("one", "other")
        ]
        made = 0
        for _ in range(5):
            for budget in budgets:
                with suppress(BudgetError):
                    call = await budget.open_call("m", None, 0, "judge")
                    made += 1
                    call.settle(Usage(calls=1))
        return made

    assert play(test) == 5


def test_the_end_of_a_budget_is_told_once() -> None:
    async def test() -> None:
        role = BudgetConfig.model_validate({"max_calls": 9, "by_role": {"judge": {"max_calls": 1}}})
        for budget, kind in ((BudgetConfig(max_calls=1), BudgetStopped), (role, RoleStopped)):
            coordinator = Coordinator(9, budget)
            leased = LeasedBudget(Process("one", coordinator).calls, budget)
            await leased.open_call("m", None, 0, "judge")
            for _ in range(2):
                with pytest.raises(BudgetError):
                    await leased.open_call("m", None, 0, "judge")
            (news,) = await coordinator.next_news()
            assert isinstance(news, kind)
            assert "exhausted" in news.why
            assert coordinator.take_news() == []

    play(test)


def test_a_second_request_of_a_call_needs_budget_of_its_own() -> None:
    async def test() -> None:
        budget = BudgetConfig(max_calls=1)
        process = Process("one", Coordinator(9, budget))
        throttle = process.throttle(slots=9)
        METERED_CALL.set(await LeasedBudget(process.calls, budget).open_call("m", None, 0, "judge"))
        async with throttle.call():
            pass
        await settle()
        with pytest.raises(BudgetError, match="exhausted"):
            async with throttle.call():  # a repair
                pass

    play(test)


# ── processes that are gone ──────────────────────────────────────────────────────────────────────


def test_the_leases_and_calls_of_a_lost_process_are_taken_back_and_its_calls_count() -> None:
    async def test() -> None:
        budget = BudgetConfig(max_calls=3)
        coordinator = Coordinator(1, budget)
        lost, other = (Process(name, coordinator) for name in ("lost", "other"))
        METERED_CALL.set(await LeasedBudget(lost.calls, budget).open_call("m", None, 0, "judge"))
        holding = lost.throttle(slots=1).call()
        await holding.__aenter__()
        waiting = asyncio.create_task(run_side_by_side([lost.throttle(slots=1)], 1))
        await settle()
        coordinator.lose("lost")
        METERED_CALL.set(None)
        with anyio.fail_after(5):
            async with other.throttle(slots=1).call():
                pass
        leased = LeasedBudget(other.calls, budget)
        for _ in range(2):
            await leased.open_call("m", None, 0, "judge")
        with pytest.raises(BudgetError, match="with 1 spent and 2 reserved"):
            await leased.open_call("m", None, 0, "judge")
        waiting.cancel()

    play(test)


def test_a_process_without_a_heartbeat_loses_its_leases() -> None:
    async def test() -> None:
        clock = Clock()
        coordinator = Coordinator(9, clock=clock)
        coordinator.beat("hung")
        coordinator.beat("alive")
        clock.now = 29
        coordinator.beat("alive")
        coordinator.check_silence()
        assert coordinator.take_news() == []
        clock.now = 31
        coordinator.check_silence()
        assert coordinator.take_news() == [HolderSilent("hung")]

    play(test)


def test_who_stops_waiting_for_a_lease_holds_none() -> None:
    async def test() -> None:
        coordinator = Coordinator(1)
        one, other = (Process(name, coordinator).throttle(slots=1) for name in ("one", "other"))
        async with one.call():
            with anyio.move_on_after(0.01):
                async with other.call():
                    pytest.fail("the only slot is taken")
        await settle()
        with anyio.fail_after(5):
            async with one.call():
                pass

    play(test)


def test_keys_are_not_sent_to_the_coordinator() -> None:
    throttle = LeasedCalls("one").throttle(
        ServerTerms("http://m", "sk-key", "models", 1), RateTerms(("http://m", "sk-key", "m"), 1)
    )
    assert "sk-key" not in repr(throttle._terms)
