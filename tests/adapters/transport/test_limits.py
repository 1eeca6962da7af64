"""Limits: what servers ask for is heeded by all who call them, and nothing waits for ever."""

from __future__ import annotations

from email.utils import formatdate
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.adapters.models.pool import ModelPool
from agenteval.adapters.transport.error_patterns import is_quota_exhausted
from agenteval.adapters.transport.limits import (
    Limiter,
    PauseTooLong,
    Rate,
    RateLimits,
    RateTerms,
    ServerTerms,
    Throttle,
)
from agenteval.adapters.transport.retry import RetryBudget, RetryPolicy
from agenteval.adapters.transport.retry_after import HINT_S, LONGEST_S, parse_retry_after
from tests.support.virtual_time import VirtualTime, run_virtually

# ── how long a server asks to wait ───────────────────────────────────────────────────────────────

NOW_S = 1_800_000_000.0
ASKED: dict[str, tuple[dict[str, str], float | None]] = {
    "seconds": ({"retry-after": "7"}, 7),
    "a fraction": ({"retry-after": " 0.25 "}, 0.25),
    "milliseconds": ({"retry-after-ms": "1500"}, 1.5),
    "milliseconds first": ({"retry-after-ms": "20.5", "retry-after": "9"}, 0.0205),
    "a date": ({"retry-after": formatdate(NOW_S + 9, usegmt=True)}, 9),
    "a date of the past": ({"retry-after": formatdate(NOW_S - 9, usegmt=True)}, 0),
    "a date with a zone": ({"retry-after": "2027-01-15T10:00:30+02:00"}, 30),
    "a moment": ({"retry-after": f"{NOW_S + 12:.0f}"}, 12),
    "a moment in milliseconds": ({"retry-after": f"{(NOW_S + 12) * 1000:.0f}"}, 12),
    "a duration": ({"retry-after": "1m30s"}, 90),
    "negative": ({"retry-after": "-5"}, None),
    "no number": ({"retry-after": "nan"}, None),
    "infinite": ({"retry-after": "inf"}, None),
    "nonsense": ({"retry-after": "soon"}, None),
    "empty": ({"retry-after": "", "retry-after-ms": ""}, None),
    "absurd": ({"retry-after": "99999999"}, LONGEST_S),
    "absurd by length": ({"retry-after": "9" * 400}, None),
    "a date far away": ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_S),
    "a date that is none": ({"retry-after": "Fri, 99 Dec 2026 25:61:61 GMT"}, None),
    "reset in seconds": ({"x-ratelimit-reset-requests": "1s"}, 1),
    "reset in milliseconds": ({"x-ratelimit-reset-tokens": "350ms"}, 0.35),
    "reset in minutes is a hint": ({"x-ratelimit-reset-tokens": "6m0s"}, HINT_S),
    "reset at a moment": ({"x-ratelimit-reset": f"{NOW_S + 4:.0f}"}, 4),
    "reset at a date": ({"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:05Z"}, 5),
    "reset of the standard": ({"ratelimit-reset": "50"}, 50),
    "of two resets the first": (
        {"x-ratelimit-reset-requests": "8s", "x-ratelimit-reset-tokens": "2s"},
        2,
    ),
    "of two resets that which is used up": (
        {
            "x-ratelimit-reset-requests": "8s",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-tokens": "2s",
            "x-ratelimit-remaining-tokens": "12",
        },
        8,
    ),
    "an order over a hint": ({"retry-after": "3", "x-ratelimit-reset": "50"}, 3),
    "nothing": ({}, None),
}
IN_TEXT = {
    "Rate limit reached for m. Limit: 3 / min. Please try again in 20s.": 20,
    "Please try again in 6m0s. Contact us": 360,
    "Please try again in 350ms": 0.35,
    "Please retry after 39 seconds. Operation under": 39,
    '"@type": "RetryInfo", "retryDelay": "34.5s"': 34.5,
    "slow down": None,
    "You have 20 seconds": None,
}


@pytest.mark.parametrize(("headers", "seconds"), ASKED.values(), ids=ASKED)
def test_every_form_of_asking_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, now_s=NOW_S) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(("text", "seconds"), IN_TEXT.items())
def test_a_wait_in_words(text: str, seconds: float | None) -> None:
    assert parse_retry_after({}, now_s=NOW_S, text=text) == (
        None if seconds is None else pytest.approx(seconds)
    )
    assert parse_retry_after({"retry-after": "2"}, now_s=NOW_S, text=text) == 2


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()))
def test_whatever_a_header_holds_the_wait_is_bounded(headers: dict[str, str]) -> None:
    asked = parse_retry_after(headers, now_s=NOW_S)
    assert asked is None or 0 <= asked <= LONGEST_S


@pytest.mark.parametrize(
    ("text", "used_up"),
    [
        (
            "You exceeded your current quota, please check your plan and billing (code: insufficient_quota)",
            True,
        ),
        ("Your credit balance is too low", True),
        ("Rate limit reached on requests per day (RPD)", True),
        ("INSUFFICIENT QUOTA: requests per minute", False),
        ("quota of concurrent requests", False),
        ("Too many requests", False),
        ("", False),
    ],
)
def test_what_no_waiting_brings_back(text: str, used_up: bool) -> None:
    assert is_quota_exhausted(text) is used_up


# ── patience ─────────────────────────────────────────────────────────────────────────────────────


def test_waits_that_are_asked_for_use_up_no_retry_and_end_with_the_time() -> None:
    patience, waits = RetryBudget(RetryPolicy(jitter=lambda: 0.0), max_wait_s=100), []
    while (wait_s := patience.next_wait_s(retry_after_s=30, retries=1)) is not None:
        waits.append(wait_s)
        patience.waited_s += wait_s
    assert waits == [30, 30, 30]
    assert patience.summary == "tried 4 times, waited 90.0 s"


def test_short_waits_use_up_retries_however_often_they_are_asked_for() -> None:
    patience = RetryBudget(RetryPolicy(jitter=lambda: 0.0))
    waits = [patience.next_wait_s(retry_after_s=0.0, retries=2) for _ in range(4)]
    assert waits == [0.0, 0.0, None, None]


def test_back_off_doubles_up_to_a_bound() -> None:
    patience = RetryBudget(RetryPolicy(jitter=lambda: 1.0), max_wait_s=1000)
    assert [patience.next_wait_s(retry_after_s=None, retries=8) for _ in range(8)] == [
        0.5,
        1,
        2,
        4,
        8,
        16,
        20,
        20,
    ]


def test_jitter_is_the_same_in_each_run() -> None:
    assert [RetryPolicy().jitter() for _ in range(2)] == [RetryPolicy().jitter() for _ in range(2)]
    policy = RetryPolicy()
    assert policy.jitter() != policy.jitter()


# ── calls in flight ──────────────────────────────────────────────────────────────────────────────


def limiter_of(calls: int, time: VirtualTime) -> Limiter:
    limiter = Limiter(clock=time, sleep=time.sleep)
    limiter.share("models", calls)
    return limiter


def test_a_limit_is_halved_once_for_all_that_were_in_flight_and_grows_back() -> None:
    async def main(time: VirtualTime) -> None:
        limiter = limiter_of(20, time)
        eras = [await limiter.acquire() for _ in range(20)]
        for era in eras:
            limiter.record_throttled(era, None)
        assert limiter.allowed == 10
        for _ in eras:
            limiter.release()
        limiter.record_throttled(await limiter.acquire(), None)
        assert limiter.allowed == 1  # one was in flight: half of that, and never less than one
        limiter.release()
        grown = []
        for _ in range(300):
            limiter.record_success()
            grown.append(limiter.allowed)
        assert grown[0] == 2
        assert all(0 <= after - before <= 1 for before, after in pairwise(grown))
        assert grown[50] < 20 == grown[-1]

    run_virtually(main)


def test_callers_come_in_by_their_order_and_a_cancelled_one_blocks_nobody() -> None:
    async def main(time: VirtualTime) -> None:
        limiter, came = limiter_of(1, time), []

        async def call(number: int) -> None:
            await limiter.acquire()
            came.append(number)
            await time.sleep(1)
            limiter.release()

        async with anyio.create_task_group() as tasks:
            scopes = []
            for number in range(6):
                scopes.append(anyio.CancelScope())

                async def within(number: int = number, scope: anyio.CancelScope = scopes[-1]) -> None:
                    with scope:
                        await call(number)

                tasks.start_soon(within)
            await time.sleep(0.5)
            scopes[1].cancel()
            scopes[4].cancel()
        assert came == [0, 2, 3, 5]
        assert (limiter.in_flight, limiter.waiting) == (0, 0)

    run_virtually(main)


class TightServer:
    """Bears ``capacity`` calls at a time, each of a second; more are refused."""

    def __init__(self, time: VirtualTime, capacity: int, asked_s: float | None) -> None:
        self.time, self.capacity, self.asked_s = time, capacity, asked_s
        self.in_flight = self.most = self.refused = 0

    async def call(self) -> bool:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        is_over = self.in_flight > self.capacity
        self.refused += is_over
        await self.time.sleep(0.1 if is_over else 1)
        self.in_flight -= 1
        return not is_over


@pytest.mark.parametrize("asked_s", [None, 2.0])
def test_many_callers_of_a_server_that_bears_few_all_get_through(asked_s: float | None) -> None:
    async def main(time: VirtualTime) -> None:
        server, limiter = TightServer(time, 5, asked_s), limiter_of(20, time)
        throttle, done = Throttle(limiter, slots=ModelPool(20)), []

        async def caller(number: int) -> None:
            patience = RetryBudget(RetryPolicy(jitter=lambda: 0.5, sleep=time.sleep))
            while True:
                async with throttle.call() as call:
                    if await server.call():
                        call.record_success()
                        done.append(number)
                        return
                    call.record_throttled(asked_s)
                wait_s = patience.next_wait_s(retry_after_s=asked_s, retries=20)
                assert wait_s is not None
                await patience.wait(wait_s)

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(caller, number)
        assert sorted(done) == list(range(200))
        assert server.most <= 20
        # Without a limit that learns, some 15 of each 20 calls would be refused, again and again.
        assert server.refused < 100
        assert time.now_s < 3 * 200 / 5

    run_virtually(main)


def test_one_call_that_is_told_to_wait_stops_all_until_then() -> None:
    async def main(time: VirtualTime) -> None:
        limiter, sent = limiter_of(4, time), []

        async def call(number: int) -> None:
            era = await limiter.acquire()
            sent.append((number, time.now_s))
            await time.sleep(0.1)
            if number == 0:
                limiter.record_throttled(era, 30.0)
            limiter.release()

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(call, number)
        early = [number for number, at in sent if at < 30]
        assert early == [0, 1, 2, 3]
        assert min(at for number, at in sent if number > 3) == pytest.approx(30.1)

    run_virtually(main)


def test_who_may_not_wait_that_long_is_told_why_and_the_others_after_it_too() -> None:
    async def main(time: VirtualTime) -> None:
        limiter = limiter_of(1, time)
        limiter.record_throttled(await limiter.acquire(), 500.0, "HTTP status 429: slow down")
        told: list[PauseTooLong] = []

        async def call() -> None:
            with pytest.raises(PauseTooLong) as caught:
                await limiter.acquire(180)
            told.append(caught.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
            limiter.release()
        assert [each.pause_s for each in told] == [500, 500, 500]
        assert told[0].reason == "HTTP status 429: slow down"
        assert limiter.waiting == 0
        assert time.now_s == 0

    run_virtually(main)


def test_waiting_in_line_without_a_pause_is_not_counted() -> None:
    async def main(time: VirtualTime) -> None:
        limiter = limiter_of(1, time)

        async def long_call() -> None:
            await limiter.acquire()
            await time.sleep(10_000)
            limiter.release()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long_call)
            await time.sleep(1)
            await limiter.acquire(1.0)
            limiter.release()

    run_virtually(main)


def test_a_paused_server_leaves_the_pool_to_the_others() -> None:
    async def main(time: VirtualTime) -> None:
        limits, pool = RateLimits(clock=time, sleep=time.sleep), ModelPool(2)
        busy, free = (
            Throttle(limits.limiter(ServerTerms(name, "", "models", 2)), slots=pool)
            for name in ("busy", "free")
        )
        async with busy.call() as call:
            call.record_throttled(60.0)
        ended: dict[str, list[float]] = {"busy": [], "free": []}

        in_flight: list[int] = []

        async def caller(name: str, throttle: Throttle) -> None:
            async with throttle.call():
                in_flight.append(pool.in_flight)
                await time.sleep(1)
            ended[name].append(time.now_s)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(caller, "busy", busy)
                tasks.start_soon(caller, "free", free)
        assert ended["free"] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
        assert min(ended["busy"]) == 61
        assert max(in_flight) == 2

    run_virtually(main)


def test_a_pause_that_begins_while_a_call_waits_for_its_slot_holds_for_it() -> None:
    async def main(time: VirtualTime) -> None:
        limits, pool = RateLimits(clock=time, sleep=time.sleep), ModelPool(1)
        one, other = (
            Throttle(limits.limiter(ServerTerms(name, "", "models", 2)), slots=pool)
            for name in ("one", "other")
        )
        began: list[float] = []

        async def long_call() -> None:
            async with other.call():
                await time.sleep(5)

        async def waits_for_its_slot() -> None:
            async with one.call():
                began.append(time.now_s)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long_call)
            await time.sleep(1)
            tasks.start_soon(waits_for_its_slot)
            await time.sleep(1)
            one.limiter.record_throttled(0, 40.0)
        assert began == [42]

    run_virtually(main)


# ── calls and tokens a minute ────────────────────────────────────────────────────────────────────


def most_in_a_minute(sent: list[tuple[float, int]]) -> tuple[int, int]:
    """The highest number of calls, and of tokens, in any 60 seconds."""
    windows = [[(at, n) for at, n in sent if start <= at < start + 60] for start, _ in sent]
    return max(map(len, windows)), max(sum(n for _, n in window) for window in windows)


@settings(max_examples=30)
@given(
    st.integers(1, 6),
    st.integers(50, 300),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50), st.floats(0, 70)), min_size=1, max_size=25),
)
def test_no_minute_has_more_than_its_share(
    requests: int, tokens: int, calls: list[tuple[float, int, float]]
) -> None:
    async def main(time: VirtualTime) -> None:
        rate, sent = Rate(requests, tokens, clock=time, sleep=time.sleep), []

        async def call(start_s: float, size: int, before_s: float) -> None:
            await time.sleep(start_s)
            booking = await rate.reserve(size)
            await time.sleep(before_s)  # in a line, between its booking and its sending
            booking.sent()
            sent.append((time.now_s, size))

        async with anyio.create_task_group() as tasks:
            for each in calls:
                tasks.start_soon(call, *each)
        most_calls, most_tokens = most_in_a_minute(sent)
        assert most_calls <= requests
        assert most_tokens <= tokens
        assert len(sent) == len(calls)

    run_virtually(main)


def test_a_rate_waits_no_longer_than_it_must() -> None:
    async def main(time: VirtualTime) -> None:
        rate, sent = Rate(3, None, clock=time, sleep=time.sleep), []
        for _ in range(7):
            (await rate.reserve()).sent()
            sent.append(time.now_s)
        assert sent == [0, 0, 0, 60, 60, 60, 120]

    run_virtually(main)


def test_tokens_are_corrected_by_what_a_call_really_cost() -> None:
    async def main(time: VirtualTime) -> None:
        limits = RateLimits(clock=time, sleep=time.sleep)
        limiter = limits.limiter(ServerTerms("a", "", "models", 5))
        throttle = Throttle(limiter, rate=limits.rate(RateTerms(("a",), None, 1000)))
        async with throttle.call(tokens=900) as call:
            call.record_success(100)
        async with throttle.call(tokens=800) as call:
            call.record_success(900)
        assert time.now_s == 0
        async with throttle.call(tokens=50):
            assert time.now_s == 60
        async with throttle.call(tokens=5000):  # more than a minute may have: alone
            assert time.now_s == 120

    run_virtually(main)


def test_a_call_that_gives_its_place_up_leaves_it_to_the_next() -> None:
    async def main(time: VirtualTime) -> None:
        rate = Rate(1, None, clock=time, sleep=time.sleep)
        first = await rate.reserve()

        async def next_one() -> None:
            (await rate.reserve()).sent()
            assert time.now_s == 5

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(next_one)
            await time.sleep(5)
            first.cancelled()

    run_virtually(main)


def test_of_two_limits_for_one_model_the_lower_holds() -> None:
    limits = RateLimits()
    rate = limits.rate(RateTerms(("url", "key", "m"), 10))
    assert limits.rate(RateTerms(("url", "key", "m"), 5, 100)) is rate
    assert limits.rate(RateTerms(("url", "key", "m"), None)) is rate
    assert rate is not None
    assert (rate.requests, rate.tokens) == (5, 100)
    assert limits.rate(RateTerms(("url", "other key", "m"), None)) is None
