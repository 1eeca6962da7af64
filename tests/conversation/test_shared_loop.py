"""The event loop of async agents: one that blocks it takes no time from the others, and one that hangs ends.

The clock is the tests': it moves on while an agent blocks, and at no other time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agenteval.conversation import user_code
from agenteval.conversation.deadlines import Deadlines
from agenteval.conversation.shared_loop import shared_loop
from agenteval.conversation.user_code import DeadlineError, TimedResult, time_user_code
from agenteval.core.scenario import SampleKey
from tests.support.kit import Project

Agent = Callable[[], Awaitable[Any]]


class Clock:
    """``block`` is what an agent does that holds up the loop."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def block(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("agenteval.conversation.shared_loop.now", clock)
    shared_loop.cache_clear()
    return clock


def hold(*agents: Agent, timeout_s: float = 2.0) -> list[TimedResult | BaseException]:
    """A conversation of each agent, all at once."""

    async def one(agent: Agent, number: int) -> TimedResult:
        with Deadlines().time_sample(SampleKey(scenario=str(number), agent="bot")):
            return await time_user_code(agent, timeout_s=timeout_s)

    async def all_of_them() -> list[TimedResult | BaseException]:
        asked = (one(agent, number) for number, agent in enumerate(agents))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(all_of_them())


def took(outcome: TimedResult | BaseException) -> float:
    assert isinstance(outcome, TimedResult), outcome
    return outcome.elapsed_s


def test_of_many_that_block_each_has_the_time_that_it_took_itself(clock: Clock) -> None:
    everybody = asyncio.Barrier(20)  # so that all are under way when the first one blocks

    async def agent() -> None:
        await everybody.wait()
        for seconds in (0.15, 0.15, 0.1):
            clock.block(seconds)
            await asyncio.sleep(0)

    assert [took(outcome) for outcome in hold(*[agent] * 20)] == [pytest.approx(0.4)] * 20
    assert clock.seconds == pytest.approx(8)


def test_what_an_agent_starts_is_its_own(clock: Clock) -> None:
    async def works() -> None:
        clock.block(1)
        await asyncio.sleep(0)
        clock.block(1)

    async def agent() -> None:
        await asyncio.gather(works(), asyncio.create_task(works()))
        asyncio.get_running_loop().call_soon(clock.block, 1)
        asyncio.get_running_loop().call_later(0, clock.block, 1)
        await asyncio.sleep(0.001)

    (outcome,) = hold(agent, timeout_s=60)
    assert took(outcome) == 6
    (late,) = hold(agent, timeout_s=5)
    assert isinstance(late, DeadlineError)


class Reply:
    """What one agent waits for and another one brings about."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._came: asyncio.Future[None]

    async def wait(self) -> None:
        self._came = asyncio.get_running_loop().create_future()
        self._asked.set()
        await self._came

    async def asked(self) -> None:
        await self._asked.wait()

    def comes(self) -> None:
        self._came.set_result(None)


def test_a_reply_that_comes_while_another_blocks_is_waited_for_no_longer(clock: Clock) -> None:
    reply = Reply()

    async def blocks() -> None:
        await reply.asked()
        clock.block(1)
        reply.comes()
        clock.block(60)

    waited, blocked = hold(reply.wait, blocks, timeout_s=62)
    assert (took(waited), took(blocked)) == (0, 61)


@pytest.mark.parametrize("timeout_s", [60, 20])
def test_a_reply_that_is_late_is_late_though_others_block(clock: Clock, timeout_s: float) -> None:
    reply = Reply()

    async def blocks() -> None:
        await reply.asked()
        for _ in range(30):
            clock.block(1)
            await asyncio.sleep(0)
        reply.comes()

    waited, _ = hold(reply.wait, blocks, timeout_s=timeout_s)
    if timeout_s == 60:
        assert 20 < took(waited) < 30
    else:
        assert isinstance(waited, DeadlineError)


def test_an_agent_that_runs_a_loop_within_the_loop(clock: Clock) -> None:
    """As libraries do that let a coroutine be run to its end within another one."""

    async def agent() -> None:
        loop: Any = shared_loop().loop
        clock.block(1)
        loop.call_soon(clock.block, 1)
        me = asyncio.current_task()
        assert me is not None
        asyncio.tasks._leave_task(loop, me)
        loop._run_once()
        asyncio.tasks._enter_task(loop, me)
        clock.block(1)

    (outcome,) = hold(agent, timeout_s=10)
    assert took(outcome) == 3


# ── through the command line ─────────────────────────────────────────────────────────────────────


def test_agents_that_block_and_wait_in_turns_are_not_late(project: Project) -> None:
    project.agent(
        """
        import asyncio, time
        async def agent(m, ctx):
            time.sleep(0.1)
            await ctx.call_tool('t')
            time.sleep(0.1)
            await asyncio.to_thread(int)
            time.sleep(0.1)
            await asyncio.sleep(0.01)
            return 'good'
        """
    )
    settings = "deadlines: {turn_s: 3, sample_s: 3}\nepochs: 20\n"
    project.write(
        "agenteval.yaml", f"metrics: []\nagent: {{target: 'agent.py:agent', timeout_s: 3}}\n{settings}"
    )
    project.scenarios("{id: x, tools: {t: {returns: 1}}, turns: [hello], checks: none}")
    project.run()
    (scenario,) = project.results()["scenarios"]
    assert [sample["stop"] for sample in scenario["samples"]] == ["script_done"] * 20


def test_one_that_blocks_for_too_long_fails_alone(project: Project) -> None:
    project.agent(
        """
        import asyncio, time
        begun = []
        async def agent(m, ctx):
            if ctx.scenario_id == 'blocks':
                while not begun:
                    await asyncio.sleep(0.001)
                time.sleep(3.5)
            begun.append(1)
            await asyncio.sleep(0.1)
            return 'good'
        """
    )
    project.config("deadlines: {turn_s: 1}")
    project.scenarios(
        "defaults: {turns: [hello], checks: none}\nscenarios: [{id: quick}, {id: blocks}, {id: next}]\n"
    )
    assert project.run().code == 1
    stops = {s["id"]: s["samples"][0]["stop"] for s in project.results()["scenarios"]}
    assert stops == {"quick": "script_done", "blocks": "agent_timeout", "next": "script_done"}


def test_what_is_left_behind_is_borne_with_for_a_while(clock: Clock) -> None:
    for seconds, outcome in ((4, TimedResult), (600, DeadlineError)):
        reply, tasks = Reply(), set()

        async def goes(reply: Reply = reply, seconds: float = seconds, tasks: set[Any] = tasks) -> None:
            async def stays_behind() -> None:
                await reply.asked()
                await asyncio.sleep(0)
                clock.block(seconds)
                reply.comes()

            tasks.add(asyncio.create_task(stays_behind()))

        waited, _ = hold(reply.wait, goes)
        assert isinstance(waited, outcome)


STRANDED = """
import asyncio, time
begun, stranded = [], []
async def agent(m, ctx):
    if ctx.scenario_id == 'blocks':
        while not begun:
            await asyncio.sleep(0.001)
        time.sleep(600)
    begun.append(1)
    if ctx.scenario_id == 'stranded':
        stranded.append(1)
        while len(stranded) == 1:
            await asyncio.sleep(0.001)
    return 'hi'
"""


@pytest.mark.parametrize(("timeout_s", "deadlines"), [(1, "{}"), (900, "{turn_s: 1}")])
def test_code_that_blocks_the_loop_for_ever_is_nobody_elses_fault(
    project: Project, timeout_s: int, deadlines: str
) -> None:
    agent = f"{{target: 'agent.py:agent', timeout_s: {timeout_s}}}"
    project.write("agenteval.yaml", f"metrics: []\ndeadlines: {deadlines}\nagent: {agent}\n")
    project.write("agent.py", STRANDED)
    project.scenarios(
        "defaults: {turns: [hello], checks: none}\nscenarios: [{id: stranded}, {id: blocks}, {id: next}]\n"
    )
    assert project.run().code == 1
    assert project.sample("blocks")["stop"] == "agent_timeout"
    assert project.sample("stranded")["verdict"] == "passed"  # when it was played once more
    (lost,) = [
        n
        for n in project.results()["summary"]["notices"]
        if "the conversation failed with an error" in n["text"]
    ]
    assert "the event loop of Python agents is blocked" in lost["text"]
    assert project.sample("next")["verdict"] == "passed"


def test_a_call_whose_thread_begins_late_has_all_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def late(thread: threading.Thread) -> None:
        if thread.name == "agenteval-user-code":
            threading.Timer(0.05, start, [thread]).start()
        else:
            start(thread)

    monkeypatch.setattr(threading.Thread, "start", late)
    assert asyncio.run(user_code.call_user_code(lambda: "hi", timeout_s=60)) == "hi"
