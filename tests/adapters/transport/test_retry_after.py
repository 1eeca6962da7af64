"""How long is waited before another try: the rules alone, at their boundaries."""

from __future__ import annotations

import anyio
import pytest

from agenteval.adapters.transport.retry import RetryBudget, RetryPolicy
from agenteval.adapters.transport.retry_after import HINT_S, LONGEST_S, parse_retry_after

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({}, "", None),
        ({"retry-after-ms": "1500"}, "", 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, "", 9),
        ({"retry-after-ms": "999999999999"}, "", LONGEST_S),
        ({"retry-after": "86401"}, "", LONGEST_S),
        ({"retry-after": "86400"}, "", 86_400),
        ({"retry-after": "0"}, "", 0),
        ({"retry-after": "6m0s"}, "", 360),
        ({"retry-after": "1h 2m 3s 500ms"}, "", 3723.5),
        ({"retry-after": "2 days"}, "", LONGEST_S),
        ({"retry-after": str(int(NOW) + 7)}, "", 7),
        ({"retry-after": str(int(NOW) - 7)}, "", 0),
        ({"retry-after": str((int(NOW) + 7) * 1000)}, "", 7),
        ({"retry-after": "1000000000"}, "", LONGEST_S),  # seconds still, not a moment
        ({"retry-after": "Fri, 15 Jan 2027 08:00:05 GMT"}, "", 5),
        ({"retry-after": "2027-01-15T08:00:05"}, "", 5),
        ({"retry-after": "2027-01-15T07:00:05"}, "", 0),
        ({"retry-after": "later"}, "", None),
        ({}, "Please try again in 6m0s.", 360),
        ({}, '{"retryDelay": "17s"}', 17),
        ({"retry-after": "3"}, "try again in 9s", 3),
        # Of several limits those that are used up count, the last of them; else the one that is back first.
        ({"x-ratelimit-reset-requests": "5s", "x-ratelimit-reset-tokens": "20s"}, "", 5),
        (
            {
                "x-ratelimit-reset-requests": "5s", "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "20s", "x-ratelimit-remaining-tokens": " 0 ",
            },
            "", 20,
        ),
        (
            {
                "x-ratelimit-reset-requests": "5s", "x-ratelimit-remaining-requests": "1",
                "x-ratelimit-reset-tokens": "20s", "x-ratelimit-remaining-tokens": "0",
            },
            "", 20,
        ),
        ({"x-ratelimit-reset": "61"}, "", HINT_S),
        ({"x-ratelimit-reset": "61", "x-ratelimit-remaining": "0"}, "", HINT_S),
        ({"x-ratelimit-reset": "59", "x-ratelimit-remaining": "0"}, "", 59),
    ],
)  # fmt: skip
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], text: str, seconds: float | None) -> None:
    assert parse_retry_after(headers, now_s=NOW, text=text) == seconds


POLICY = RetryPolicy(retries=2, base_s=1.0, max_backoff_s=5.0, max_wait_s=10.0, jitter=lambda: 1.0)


@pytest.mark.parametrize(
    ("attempt", "waited", "asked", "wait"),
    [
        (1, 0.0, None, 1.0),
        (2, 0.0, None, 2.0),
        (3, 0.0, None, None),  # two retries
        (2, 8.0, None, 2.0),  # as long as may be waited in all, to the second
        (2, 8.1, None, None),
        (1, 4.0, 6.0, 7.0),  # jitter comes on top
        (1, 4.0, 6.1, None),
        (3, 0.0, 1.0, None),
    ],
)
def test_when_it_is_tried_again(attempt: int, waited: float, asked: float | None, wait: float | None) -> None:
    assert POLICY.wait_s(attempt, waited_s=waited, retry_after_s=asked) == wait


def test_the_waits_grow_to_a_bound_and_scatter_over_their_upper_half() -> None:
    waits = [POLICY.wait_s(n, waited_s=0, retry_after_s=None, retries=9) for n in range(1, 6)]
    assert waits == [1, 2, 4, 5, 5]
    least = RetryPolicy(base_s=1.0, jitter=lambda: 0.0)
    assert least.wait_s(1, waited_s=0, retry_after_s=None) == 0.5
    assert least.wait_s(1, waited_s=0, retry_after_s=3.0) == 3
    assert POLICY.wait_s(1, waited_s=0, retry_after_s=11, max_wait_s=11) == 12


def test_what_a_server_asks_for_uses_up_no_retry_from_a_second_on() -> None:
    free = RetryBudget(POLICY, max_wait_s=100)
    assert [free.next_wait_s(retry_after_s=1.0, retries=2) for _ in range(5)] == [2.0] * 5
    counted = RetryBudget(POLICY, max_wait_s=100)
    assert [counted.next_wait_s(retry_after_s=0.9, retries=2) for _ in range(3)] == [1.9, 1.9, None]
    assert RetryBudget(POLICY).next_wait_s(retry_after_s=None, retries=0) is None
    assert RetryBudget(POLICY).next_wait_s(retry_after_s=5.0, retries=0) is None
    assert RetryBudget(POLICY).next_wait_s(retry_after_s=None, retries=1) == 1


def test_what_was_done_is_told_unless_the_first_failure_was_the_last() -> None:
    async def nothing(seconds: float) -> None:
        pass

    patience = RetryBudget(RetryPolicy(sleep=nothing, max_wait_s=3.0))
    patience.next_wait_s(retry_after_s=None, retries=2)
    assert (patience.summary, patience.left_s) == ("", 3)
    anyio.run(patience.wait, 0.5)
    assert patience.summary == "tried once, waited 0.5 s"
    anyio.run(patience.wait, 1.5)
    assert (patience.summary, patience.left_s) == ("tried once, waited 2.0 s", 1)
    anyio.run(patience.wait, 2.0)
    assert patience.left_s == 0
    again = RetryBudget(RetryPolicy())
    for _ in range(2):
        again.next_wait_s(retry_after_s=None, retries=2)
    assert again.summary == "tried 2 times, waited 0.0 s"
