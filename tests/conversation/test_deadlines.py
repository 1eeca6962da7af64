"""Deadlines: what hangs ends its sample and never the run; what waits for a limit or a retry is not late.

No test looks at how long anything took: deadlines are short, what hangs hangs for ten minutes.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agenteval.adapters.models.pool import ModelPool
from agenteval.adapters.transport.limits import Limiter, Rate
from agenteval.adapters.transport.retry import RetryBudget, RetryPolicy
from agenteval.conversation.deadlines import (
    Deadlines,
    Stopwatch,
    current_stopwatch,
    exempt_from_deadlines,
    pause_deadlines,
)
from agenteval.conversation.shared_loop import ConversationClock
from agenteval.core.errors import AgentError, AgentevalError
from agenteval.core.scenario import SampleKey
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Wire, chat, hang, respond
from tests.support.virtual_time import VirtualTime, run_virtually

KEY = SampleKey(scenario="a", agent="bot")


def too_slow(what: str) -> AgentevalError:
    return AgentError(what, kind="timeout")


# ── the stopwatch ────────────────────────────────────────────────────────────────────────────────


async def outlasts(watch: Stopwatch, seconds: float, waits_s: float = 0.0, again_s: float = 0.0) -> str:
    """What is said when the agent works for so long, waits, and works again; empty if it may."""
    try:
        with watch.enforce_deadlines("the agent", too_slow):
            await anyio.sleep(seconds)
            if waits_s:
                with pause_deadlines():
                    await anyio.sleep(waits_s)
            await anyio.sleep(again_s)
    except AgentError as error:
        return str(error)
    return ""


def test_a_turn_may_take_its_time_and_no_more() -> None:
    async def main(_: VirtualTime) -> None:
        watch = Stopwatch(turn_s=30)
        watch.begin_turn()
        assert await outlasts(watch, 29) == ""
        assert await outlasts(watch, 2) == (
            "the turn took longer than 30 s (`deadlines.turn_s`) while the agent was running"
        )
        watch.begin_turn()
        assert await outlasts(watch, 29) == ""

    run_virtually(main)


def test_a_sample_has_one_time_for_all_its_turns() -> None:
    async def main(_: VirtualTime) -> None:
        watch = Stopwatch(turn_s=30, sample_s=50)
        watch.begin_turn()
        assert await outlasts(watch, 29) == ""
        watch.begin_turn()
        assert "50 s (`deadlines.sample_s`)" in await outlasts(watch, 29)

    run_virtually(main)


def test_time_between_turns_counts_for_nobody() -> None:
    async def main(_: VirtualTime) -> None:
        watch = Stopwatch(sample_s=10)
        assert await outlasts(watch, 6) == ""
        await anyio.sleep(100)  # checks, and whatever else is ours
        assert await outlasts(watch, 3) == ""
        assert "sample_s" in await outlasts(watch, 3)

    run_virtually(main)


def test_waiting_stops_the_watch_and_only_then() -> None:
    async def main(_: VirtualTime) -> None:
        with Deadlines(turn_s=10).time_sample(KEY) as watch:
            with watch.enforce_deadlines("the agent", too_slow):
                await anyio.sleep(6)
                with pause_deadlines():
                    await anyio.sleep(500)
                    with pause_deadlines():
                        await anyio.sleep(500)
                await anyio.sleep(3)
            watch.begin_turn()
            assert "turn_s" in await outlasts(watch, 6, 500, 5)

    run_virtually(main)


def test_a_wait_in_an_earlier_turn_does_not_count_either() -> None:
    async def main(_: VirtualTime) -> None:
        with Deadlines(sample_s=60).time_sample(KEY) as watch:
            watch.begin_turn()
            assert await outlasts(watch, 5, 50) == ""
            watch.begin_turn()
            assert await outlasts(watch, 15) == ""
            watch.begin_turn()
            assert "sample_s" in await outlasts(watch, 41)

    run_virtually(main)


def test_what_waits_for_limits_and_retries_says_so() -> None:
    async def main(time: VirtualTime) -> None:
        limiter = Limiter(clock=time, sleep=time.sleep)
        limiter.share("models", 1)
        rate = Rate(1, None, clock=time, sleep=time.sleep)
        pool = ModelPool(1)

        async def hold() -> None:
            await limiter.acquire()
            async with pool:
                await anyio.sleep(60)
            limiter.release()

        (await rate.reserve()).sent()
        with Deadlines(turn_s=10).time_sample(KEY) as watch:
            async with anyio.create_task_group() as group:
                group.start_soon(hold)
                await checkpoint()
                for wait in (limiter.acquire, rate.reserve, lambda: RetryBudget(RetryPolicy()).wait(60)):
                    watch.begin_turn()
                    with watch.enforce_deadlines("the agent", too_slow):
                        await wait()
            async with anyio.create_task_group() as group:
                group.start_soon(hold_pool, pool)
                await checkpoint()
                watch.begin_turn()
                with watch.enforce_deadlines("the agent", too_slow):
                    async with pool:
                        assert time.now_s > 60

    async def hold_pool(pool: ModelPool) -> None:
        async with pool:
            await anyio.sleep(60)

    run_virtually(main)


def test_a_conversation_that_others_hold_up_is_not_at_work() -> None:
    class HeldUp(ConversationClock):
        """At every second moment."""

        def blocked_s(self) -> float:
            return anyio.current_time() / 2

    async def main(_: VirtualTime) -> None:
        watch = Stopwatch(turn_s=10)
        watch.conversation_clock = HeldUp()
        watch.begin_turn()
        assert await outlasts(watch, 19) == ""
        watch.begin_turn()
        assert "turn_s" in await outlasts(watch, 21)
        watch.begin_turn()
        with Deadlines().time_sample(KEY):
            assert await outlasts(watch, 12, 0, 6) == ""

    run_virtually(main)


def test_what_waits_while_it_is_held_up_has_waited_once() -> None:
    async def main(_: VirtualTime) -> None:
        with Deadlines(turn_s=10).time_sample(KEY) as watch:
            held = watch.conversation_clock.blocked_s
            watch.conversation_clock.blocked_s = lambda: held() + anyio.current_time() / 2  # type: ignore[method-assign]
            watch.begin_turn()
            assert await outlasts(watch, 10, 100, 9) == ""
            watch.begin_turn()
            assert "turn_s" in await outlasts(watch, 10, 100, 11)

    run_virtually(main)


def test_judges_work_apart() -> None:
    async def main(_: VirtualTime) -> None:
        with Deadlines(turn_s=10).time_sample(KEY) as watch:

            async def judge() -> None:
                with exempt_from_deadlines(watch, "the judge of helpfulness"), pause_deadlines():
                    await anyio.sleep(100)

            async with anyio.create_task_group() as group:
                group.start_soon(judge)
                # Were the judge's wait the conversation's, this would not be too long.
                assert "turn_s" in await outlasts(watch, 11)
                assert watch.pending == "the judge of helpfulness"

    run_virtually(main)


def test_what_is_pending_is_known_from_outside() -> None:
    async def main(_: VirtualTime) -> None:
        deadlines = Deadlines()
        assert deadlines.pending(KEY) == ""
        with deadlines.time_sample(KEY) as watch:
            assert current_stopwatch() is watch
            with watch.enforce_deadlines("the agent", too_slow), watch.track_activity("the tool 'lookup'"):
                assert deadlines.pending(KEY) == "the agent, the tool 'lookup'"
                with pause_deadlines():
                    assert deadlines.pending(KEY).endswith("waiting for a limit or a retry")
            assert deadlines.pending(KEY) == ""
        assert current_stopwatch() is not watch

    run_virtually(main)


# ── agents, tools and models that hang ───────────────────────────────────────────────────────────

AGENTS = """
import asyncio, time

async def quick(m):
    return 'hi'

def hangs_in_a_thread(m):
    time.sleep(600)

async def hangs(m):
    await asyncio.sleep(600)

async def blocks_its_loop(m):
    time.sleep(600)

async def swallows_cancellation(m):
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass

async def calls_a_tool(m, ctx):
    return str(await ctx.call_tool('slow'))

def lets_a_tool_be_called(m):
    return {'tool_calls': [{'id': '1', 'function': {'name': 'slow', 'arguments': '{}'}}]}
"""
TOOLS = "import time\ndef slow(args):\n    time.sleep(600)\n"
HANGING = {
    "hangs": "the agent",
    "hangs_in_a_thread": "the agent",
    "blocks_its_loop": "the agent",
    "swallows_cancellation": "the agent",
    "calls_a_tool": "the tool 'slow'",
    "lets_a_tool_be_called": "the tool 'slow'",
}


@pytest.mark.parametrize("names", [set(HANGING) - {"blocks_its_loop"}, {"blocks_its_loop"}])
def test_what_hangs_ends_its_sample_and_never_the_run(project: Project, names: set[str]) -> None:
    project.write("agents.py", AGENTS)
    project.write("tools.py", TOOLS)
    named = "".join(f"  {name}: {{target: 'agents.py:{name}', timeout_s: 900}}\n" for name in HANGING)
    project.write(
        "agenteval.yaml",
        "metrics: []\ndeadlines: {turn_s: 1}\n"
        f"agent: {{target: 'agents.py:quick', timeout_s: 900}}\nagents:\n{named}",
    )
    project.scenarios(
        "defaults: {checks: none, tools: {slow: {python: '../tools.py:slow'}}}\nscenarios:\n"
        + "".join(f"- {{id: {name}, agent: {name}, turns: [hello, again]}}\n" for name in sorted(names))
        + "".join(f"- {{id: quick-{number}, turns: [hello, again]}}\n" for number in range(4))
    )
    done = project.run()
    assert done.code == 1
    samples = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    for name in names:
        at_work, sample = HANGING[name], samples[name]
        assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_timeout"), (
            name
        )
        assert sample["turns"][0]["error"] == (
            f"the turn took longer than 1 s (`deadlines.turn_s`) while {at_work} was running"
        )
        assert (None, "no_error") in failed_checks(sample) or (0, "no_error") in failed_checks(sample)
    assert {samples[f"quick-{number}"]["verdict"] for number in range(4)} == {"passed"}


@pytest.mark.parametrize(("seconds", "verdict"), [(0.0, "passed"), (0.15, "failed")])
def test_a_conversation_that_is_long_because_it_has_many_turns(
    project: Project, seconds: float, verdict: str
) -> None:
    project.agent(f"import time\ndef agent(m):\n    time.sleep({seconds})\n    return 'hi'\n")
    project.config("deadlines: {turn_s: 20, sample_s: 0.5}")
    project.scenarios(f"{{id: x, checks: none, turns: {json.dumps(['hello'] * 12)}}}")
    project.run()
    sample = project.sample()
    assert sample["verdict"] == verdict
    if verdict == "failed":
        assert sample["stop"] == "agent_timeout"
        assert len(sample["turns"]) > 1
        assert "0.5 s (`deadlines.sample_s`)" in sample["turns"][-1]["error"]


def slowly(*, stop: threading.Event | None = None) -> Behaviour:
    """A reply that never comes to its end: a space every few milliseconds, which JSON allows."""

    def behave(wire: Wire) -> None:
        wire.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
        while not wire.stopped.wait(0.02):
            wire.write(b"1\r\n \r\n")

    return behave


@pytest.mark.parametrize("behaviour", [hang(), slowly()])
def test_a_simulated_user_that_hangs_is_no_fault_of_the_agent(project: Project, behaviour: Behaviour) -> None:
    project.agent("def agent(m): return 'hi'\n")
    with LocalServer(behaviour) as server:
        project.config(f"metrics: []\ndeadlines: {{turn_s: 0.3}}\nmodels: {{default: {model(server)}}}")
        project.scenarios("{id: x, goal: Get it., expect: {output: {contains: [hi]}}, epochs: 1}")
        done = project.run()
    sample = project.sample()
    assert done.code == 3
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "infrastructure")
    assert "0.3 s (`deadlines.turn_s`) while the simulated user was running" in " ".join(done.out.split())


def model(server: LocalServer, timeout_s: float = 60) -> str:
    url = server.url.removesuffix("/chat/completions")
    return f"{{model: openai-compatible/m, base_url: '{url}', timeout_s: {timeout_s}}}"


@pytest.mark.parametrize("behaviour", [hang(), slowly()])
def test_a_judge_that_hangs_fails_to_score(project: Project, behaviour: Behaviour) -> None:
    project.agent("def agent(m): return 'hi'\n")
    with LocalServer(behaviour) as server:
        project.config(f"metrics: [helpfulness]\nmodels: {{default: {model(server, 0.2)}}}")
        project.scenarios("{id: x, turns: [hello], expect: {output: {contains: [hi]}}}")
        done = project.run()
    (turn,) = project.sample()["turns"]
    assert done.code == 0  # helpfulness gates nothing here: see docs/verdicts.md
    assert [failure["metric"] for failure in turn["score_failures"]] == ["helpfulness"]
    assert not turn["scores"]


# ── waiting is not working ───────────────────────────────────────────────────────────────────────


def busy_once() -> list[Behaviour]:
    return [respond("busy", status=429, headers={"Retry-After": "1"}), chat("hi")]


def late(event: threading.Event) -> list[Behaviour]:
    def behave(wire: Wire) -> None:
        event.wait(30)
        chat("hi")(wire)

    return [behave]


def http_project(project: Project, server: LocalServer) -> None:
    project.write(
        "agenteval.yaml",
        f"metrics: []\ndeadlines: {{turn_s: 0.9}}\nagent: {{name: bot, endpoint: '{server.url}'}}\n",
    )
    project.scenarios("{id: x, checks: none, turns: [hello]}")


def test_a_wait_that_the_server_asks_for_is_not_late(project: Project) -> None:
    with LocalServer(*busy_once()) as server:
        http_project(project, server)
        project.run()
        assert len(server.requests) == 2
    assert project.sample()["verdict"] == "passed"


def test_an_agent_that_takes_as_long_to_answer_is(project: Project) -> None:
    never = threading.Event()
    with LocalServer(*late(never)) as server:
        http_project(project, server)
        project.run()
        never.set()
    sample = project.sample()
    assert (sample["verdict"], sample["stop"]) == ("failed", "agent_timeout")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def run_with_deadline(project: Project, first: str, more: str = "") -> tuple[int, dict[str, Any], str]:
    project.agent(
        "import time\ndef agent(m):\n    if m[-1]['content'] == 'slow': time.sleep(600)\n"
        f"    return '{first}'\n"
    )
    project.config(f"deadlines: {{run_s: 2.0}}\nagent_concurrency: 1\n{more}")
    ids = ("first", "second", "third")
    project.scenarios(
        "defaults: {expect: {output: {contains: [hi]}}}\nscenarios:\n"
        + "".join(f"- {{id: {name}, turns: [{'slow' if name == 'second' else 'hello'}]}}\n" for name in ids)
    )
    done = project.run()
    return done.code, {s["id"]: s for s in project.results()["scenarios"]}, done.out


def test_a_run_that_takes_too_long_is_not_decided(project: Project) -> None:
    code, scenarios, out = run_with_deadline(project, "hi")
    assert code == 3
    assert scenarios["first"]["verdict"] == "passed"
    (second,) = scenarios["second"]["samples"]
    assert second["stop"] == "interrupted"
    assert second["turns"][-1]["error"] == "the run took longer than 2 s (`deadlines.run_s`)"
    assert scenarios["third"]["samples"] == [] or scenarios["third"]["verdict"] == "inconclusive"
    results = project.results()
    assert results["run"]["outcome"] == "deadline"
    (gate,) = (g for g in results["summary"]["gates"] if g["name"] == "deadlines.run_s")
    assert gate["verdict"] == "inconclusive"
    assert "`deadlines.run_s`" in out


def test_what_had_failed_by_then_has_failed(project: Project) -> None:
    code, scenarios, _ = run_with_deadline(project, "no")
    assert code == 1
    assert scenarios["first"]["verdict"] == "failed"


def test_a_tolerance_for_faults_makes_no_green_of_half_a_run(project: Project) -> None:
    code, _, _ = run_with_deadline(project, "hi", "fault_tolerance: 0.9\n")
    assert code == 3


def test_a_run_in_time_says_so(project: Project) -> None:
    project.agent("def agent(m): return 'hi'\n")
    project.config("deadlines: {run_s: 500}")
    project.scenarios("{id: x, checks: none, turns: [hello]}")
    assert project.run().code == 0
    (gate,) = (g for g in project.results()["summary"]["gates"] if g["name"] == "deadlines.run_s")
    assert (gate["verdict"], gate["bound"]) == ("passed", "at most 500")


def test_a_model_that_hangs_over_the_issues_keeps_nobody_waiting(project: Project) -> None:
    project.agent("def agent(m): return 'hi'\n")
    project.write(
        "judge.yaml",
        "replies: [{when: {role: judge}, reply: {evidence: hi, reason: r, label: repetition}}]\n",
    )
    with LocalServer(hang()) as server:
        project.config(
            "metrics: [agent_behavior_failure]\ndeadlines: {run_s: 3.0}\nseverity_from: model\n"
            f"models: {{default: scripted/judge.yaml, dedup: {model(server)}}}"
        )
        project.scenarios("{id: x, turns: [hello], checks: none, epochs: 2}")
        done = project.run()
        assert server.requests
    assert done.code == 3
    (issue,) = project.results()["summary"]["issues"]
    assert issue["title"] == "repetition"
    (scenario,) = project.results()["scenarios"]
    assert [sample["verdict"] for sample in scenario["samples"]] == ["passed", "passed"]
