"""A program that is kept, between two conversations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import anyio

from agenteval.adapters.agents.dialogue import Dialogue
from agenteval.adapters.agents.process_agents import ProgramPool


def test_a_program_that_was_idle_for_long_is_not_waited_for() -> None:
    long_ago: Any = SimpleNamespace(is_worker=False, _detached_at=-1000.0)
    anyio.run(Dialogue.wait_quiet_period, long_ago)


def test_one_that_was_not_taken_after_all_is_still_there_for_the_conversation_before_it() -> None:
    """Which waits to hear what became of it: a deadline may come while the next one takes it."""

    class Idle:
        is_usable = True

        async def wait_quiet_period(self) -> None:
            await anyio.sleep_forever()

    async def take(programs: ProgramPool) -> None:
        with anyio.move_on_after(0):
            await programs.acquire()

    programs: Any = ProgramPool(SimpleNamespace(), keep=True)  # type: ignore[arg-type]
    dialogue = Idle()
    programs.put_prestarted(dialogue)
    anyio.run(take, programs)
    assert programs._idle == [dialogue]
