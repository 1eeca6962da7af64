"""Which sample a task belongs to."""

from __future__ import annotations

import asyncio
import contextvars

from agenteval.conversation.current_sample import (
    current_sample_key,
    enter_sample,
    leave_sample,
    sample_memory,
)
from agenteval.core.scenario import SampleKey

ONE, TWO = (SampleKey(scenario="a", epoch=epoch, agent="bot") for epoch in (0, 1))


def test_no_sample_was_entered() -> None:
    assert contextvars.Context().run(current_sample_key) is None


def test_a_task_and_those_that_it_starts_are_of_its_sample() -> None:
    async def inner() -> SampleKey | None:
        return current_sample_key()

    async def sample(key: SampleKey) -> list[SampleKey | None]:
        enter_sample(key)
        await asyncio.sleep(0)
        mine = current_sample_key()
        within = await asyncio.ensure_future(inner())
        return [mine, within, await asyncio.to_thread(current_sample_key)]

    async def main() -> tuple[list[list[SampleKey | None]], SampleKey | None]:
        return list(await asyncio.gather(sample(ONE), sample(TWO))), current_sample_key()

    found, outside = contextvars.Context().run(asyncio.run, main())
    assert found == [[ONE] * 3, [TWO] * 3]
    assert outside is None


def test_the_last_sample_counts() -> None:
    def enter() -> SampleKey | None:
        enter_sample(ONE)
        enter_sample(TWO)
        return current_sample_key()

    assert contextvars.Context().run(enter) == TWO


def test_what_is_kept_for_a_sample_is_kept_for_its_tasks_alone_and_until_it_is_left() -> None:
    async def sample(key: SampleKey) -> tuple[bool, dict[object, object]]:
        enter_sample(key)
        sample_memory()[str] = key
        await asyncio.sleep(0)

        async def scorer() -> bool:
            return sample_memory() == {str: key}

        is_shared = await asyncio.ensure_future(scorer())
        memory = sample_memory()
        leave_sample()
        return is_shared, memory

    async def main() -> list[tuple[bool, dict[object, object]]]:
        return list(await asyncio.gather(sample(ONE), sample(TWO)))

    assert contextvars.Context().run(asyncio.run, main()) == [(True, {}), (True, {})]


def test_without_a_sample_nothing_is_kept() -> None:
    def keep() -> dict[object, object]:
        leave_sample()
        sample_memory()[str] = "a"
        return sample_memory()

    assert contextvars.Context().run(keep) == {}
