"""Retries and limits of models and agents, against real servers: what is sent again, and what never is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents.http import HttpAgents
from agenteval.adapters.transport.client import Transport
from agenteval.adapters.transport.limits import RateLimits, ServerTerms
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.core.config import AgentConfig
from agenteval.core.errors import AgentError, AgentevalError, InfrastructureError, UnreadableReplyError
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from tests.support.kit import Project
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    Wire,
    answer,
    chat,
    chunked,
    closed_port,
    drop,
    hang,
    plain_environment,
    reset,
    respond,
    respond_json,
)
from tests.support.model_bench import GOOD, REQUEST, Bench
from tests.support.model_servers import ModelServer, answers, error, once, says


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def test_a_model_is_asked_no_oftener_than_its_rate() -> None:
    with ModelServer() as server:
        bench = Bench(server.base_url, requests_per_minute=2)
        bench.ask(times=5)
        assert bench.waits == [60, 60]
        assert len(server.asked) == 5


def test_a_model_gets_no_more_tokens_than_its_rate() -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 50}
    with ModelServer(answers(usage=usage)) as server:
        bench = Bench(server.base_url, tokens_per_minute=1000)
        bench.ask(times=3)
        assert bench.waits == [60, 60]


def test_retries_of_a_call_end_with_what_was_done() -> None:
    with ModelServer(says({"error": "slow down"}, status=429, retry_after="70")) as server:
        bench = Bench(server.base_url)
        text = str(bench.fail())
    assert bench.waits == [70.5, 70.5]
    assert "HTTP status 429: slow down (tried 3 times, waited 141.0 s)" in text
    assert "`max_wait_s` is 180" not in text


def test_a_server_that_has_answered_is_trusted_longer() -> None:
    bad = says({"error": "busy"}, status=503)
    with ModelServer(once(answers(), *[bad] * 6), answers()) as server:
        bench = Bench(server.base_url)
        bench.ask(times=2)
        assert len(server.asked) == 8


@pytest.mark.parametrize(
    "play",
    [says("<html>Bad gateway</html>"), says("half of {"), says({"choices": []}), says({"choices": [{}]})],
    ids=["page", "no JSON", "no choices", "no message"],
)
def test_garbage_of_a_server_that_has_answered_is_a_hiccup(play: Any) -> None:
    with ModelServer(once(answers(), play, play, play), answers()) as server:
        Bench(server.base_url).ask(times=2)
        assert len(server.asked) == 5


def test_hiccups_are_counted_apart_from_other_faults() -> None:
    busy, page = says({"error": "busy"}, status=503), says("<html>Bad gateway</html>")
    with ModelServer(once(answers(), busy, busy, page, busy, page, page), answers()) as server:
        Bench(server.base_url).ask(times=2)
        assert len(server.asked) == 8


def test_the_fourth_hiccup_of_a_call_is_its_last() -> None:
    busy, page = says({"error": "busy"}, status=503), says("<html>Bad gateway</html>")
    with ModelServer(once(answers(), page, busy, page, page, page), answers()) as server:
        assert "web page" in str(Bench(server.base_url).fail(times=2))
        assert len(server.asked) == 6


def test_whether_the_address_is_right_calls_on_their_way_will_tell() -> None:
    """The first reply of all is garbled, while another call is on its way."""
    first = threading.Event()

    def play(wire: Wire) -> None:
        is_first, behaviour = not first.is_set(), chat(json.dumps(GOOD))
        if is_first:
            first.set()
            behaviour = respond("<html>Bad gateway</html>")
        else:
            wire.stopped.wait(0.05)
        behaviour(wire)

    async def main() -> None:
        client = bench.client()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.complete, REQUEST)
            tasks.start_soon(client.complete, REQUEST)
        await client.aclose()

    with LocalServer(play) as server:
        bench = Bench(f"{server.address}/v1")
        anyio.run(main)
        assert len(server.requests) == 3
    assert len(bench.notices) == 1


def test_an_answer_that_is_no_use_is_asked_for_once_more_also_of_a_model_that_has_answered_well() -> None:
    with ModelServer(once(answers(), answers("?"), answers("??")), answers()) as server:
        bench = Bench(server.base_url)
        with pytest.raises(UnreadableReplyError):
            bench.ask(times=2)
    roles = [[message["role"] for message in asked["messages"]] for asked in server.asked[1:]]
    assert roles == [["system", "user"], ["system", "user", "assistant", "user"]]


def test_what_one_model_is_told_all_calls_to_its_server_heed() -> None:
    """Ten calls of two clients; the first reply asks for a pause of a minute."""

    async def main() -> None:
        limits = RateLimits(clock=lambda: bench.clock_s, sleep=bench._sleep)
        clients = [bench.client(limits=limits), bench.client(limits=limits)]
        await clients[0].complete(REQUEST)
        at.append(bench.clock_s)
        limiter = limits.limiter(ServerTerms(f"{server.base_url}/chat/completions", "", "models", 5))
        limiter.record_throttled(0, 60.0, "busy")
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(clients[number % 2].complete, REQUEST)
        at.append(bench.clock_s)
        for client in clients:
            await client.aclose()

    at: list[float] = []
    with ModelServer() as server:
        bench = Bench(server.base_url)
        anyio.run(main)
        assert at == [0, 60]
        assert len(server.asked) == 11


def test_a_pause_that_is_too_long_ends_calls_that_were_not_even_sent() -> None:
    async def main() -> None:
        limits = RateLimits(clock=lambda: bench.clock_s, sleep=bench._sleep)
        client = bench.client(limits=limits)
        limiter = limits.limiter(ServerTerms(f"{server.base_url}/chat/completions", "", "models", 5))
        limiter.record_throttled(0, 600.0, "come back later")
        with pytest.raises(InfrastructureError) as caught:
            await client.complete(REQUEST)
        told.append(str(caught.value))
        await client.aclose()

    told: list[str] = []
    with ModelServer() as server:
        bench = Bench(server.base_url)
        anyio.run(main)
        assert server.asked == []
    assert "600 s more: come back later" in told[0]
    assert "max_wait_s" in told[0]


def test_each_retry_is_told() -> None:
    busy = says({"error": "busy"}, status=429)
    with ModelServer(once(busy, busy), answers()) as server:
        bench = Bench(server.base_url)
        bench.ask()
    assert [note.partition(": ")[2].partition(",")[0] for note in bench.notices] == ["HTTP status 429"] * 2


def test_credit_that_is_used_up_pauses_nobody() -> None:
    spent = error("You exceeded your current quota", status=429, code="insufficient_quota")
    with ModelServer(lambda _asked: spent) as server:
        bench = Bench(server.base_url)
        assert "waiting does not help" in str(bench.fail())
        assert (bench.waits, len(server.asked)) == ([], 1)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────

SAMPLE = Sample(key=SampleKey(scenario="s", agent="a"), scenario=Scenario(id="s", name="s", turns=("Hi",)))


class AgentBench:
    """An agent over HTTP with its surroundings; waits move the clock on and cost no time."""

    def __init__(self, url: str, **config: Any) -> None:
        self.clock_s = 0.0
        self.waits: list[float] = []
        self.told: list[tuple[str, SampleKey | None]] = []
        self._config = AgentConfig(endpoint=url, **{"timeout_s": 20, **config})

    async def _sleep(self, seconds: float) -> None:
        self.clock_s += seconds
        self.waits.append(seconds)

    def ask(self, *, times: int = 1) -> list[AgentReply]:
        return anyio.run(self._ask, times)

    async def _ask(self, times: int) -> list[AgentReply]:
        policy = RetryPolicy(sleep=self._sleep, clock=lambda: self.clock_s, jitter=lambda: 0.0)
        transport = Transport(retry=policy)
        agents = HttpAgents(
            self._config, transport=transport, notify=lambda text, key: self.told.append((text, key))
        )
        tools = TurnTools(turn=0, schemas=(), call=_no_call)
        messages: list[Any] = [{"role": "user", "content": "Hi"}]
        try:
            return [await agents.make(SAMPLE).reply(messages, tools) for _ in range(times)]
        finally:
            await transport.aclose()

    def fail(self) -> AgentevalError:
        with pytest.raises(AgentevalError) as caught:
            self.ask()
        return caught.value


async def _no_call(name: str, args: Any, batch: int) -> Any:
    raise AssertionError


IN_A_SECOND = {"Retry-After": "1"}
SENT_AGAIN: dict[str, tuple[Behaviour, float]] = {
    "429": (respond("", status=429), 0.25),
    "429, asked": (respond("", status=429, headers={"Retry-After": "9"}), 9),
    "425": (respond("", status=425), 0.25),
    "408": (respond("", status=408), 0.25),
    "503, asked": (respond("", status=503, headers=IN_A_SECOND), 1),
    "529, asked": (respond("", status=529, headers=IN_A_SECOND), 1),
    "502, asked": (respond("", status=502, headers=IN_A_SECOND), 1),
    "a rate by another name": (respond("INSUFFICIENT QUOTA: requests per minute", status=429), 0.25),
}
NEVER_AGAIN: dict[str, Behaviour] = {
    "500": respond("", status=500, headers=IN_A_SECOND),
    "502": respond("", status=502),
    "503": respond("", status=503),
    "504": respond("", status=504, headers=IN_A_SECOND),
    "529": respond("", status=529),
    "400": respond("bad", status=400, headers=IN_A_SECOND),
    "401": respond("", status=401, headers=IN_A_SECOND),
    "403": respond("", status=403),
    "404": respond("", status=404),
    "no credit": respond("insufficient_quota: check your plan and billing", status=429),
    "asks for a day": respond("", status=429, headers={"Retry-After": "86400"}),
    "drop": drop(),
    "reset": reset(),
    "reset within the reply": chunked([b'{"choices": ['], end="reset"),
    "hang": hang(),
    "garbage": respond("<html>"),
}


@pytest.mark.parametrize(("behaviour", "wait_s"), SENT_AGAIN.values(), ids=SENT_AGAIN)
def test_what_an_agent_surely_did_not_carry_out_is_sent_again(behaviour: Behaviour, wait_s: float) -> None:
    with LocalServer(behaviour, chat("Hello")) as server:
        bench = AgentBench(server.url)
        [reply] = bench.ask()
        assert reply.text == "Hello"
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body
    assert bench.waits == [wait_s]
    [(text, key)] = bench.told
    assert key == SAMPLE.key
    assert f"retrying in {wait_s:.1f} s" in text


@pytest.mark.parametrize("behaviour", NEVER_AGAIN.values(), ids=NEVER_AGAIN)
def test_what_an_agent_may_have_carried_out_is_never_sent_again(behaviour: Behaviour) -> None:
    with LocalServer(behaviour, chat("Hello")) as server:
        bench = AgentBench(server.url, timeout_s=0.5 if behaviour is NEVER_AGAIN["hang"] else 20)
        error = bench.fail()
        assert isinstance(error, AgentError | InfrastructureError)
        assert len(server.requests) == 1
    assert (bench.waits, bench.told) == ([], [])


def test_a_refused_connection_is_tried_again() -> None:
    bench = AgentBench(f"http://127.0.0.1:{closed_port()}/v1")
    assert "tried 3 times, waited 0.8 s" in str(bench.fail())
    assert len(bench.told) == 2


def test_no_credit_is_said_in_plain_words() -> None:
    with LocalServer(respond('{"code": "insufficient_quota"}', status=429)) as server:
        assert "waiting does not help" in str(AgentBench(server.url).fail())


def test_an_agent_that_waits_too_long_is_nobodys_fault_and_says_how_long() -> None:
    with LocalServer(respond("slow down", status=429, headers={"Retry-After": "25"})) as server:
        bench = AgentBench(server.url, max_wait_s=60)
        error = bench.fail()
    assert isinstance(error, InfrastructureError)
    assert "HTTP status 429: slow down (tried 3 times, waited 50.0 s)" in str(error)


def test_an_agent_is_asked_no_oftener_than_its_rate() -> None:
    with LocalServer(chat("Hello")) as server:
        bench = AgentBench(server.url, requests_per_minute=2)
        bench.ask(times=5)
    assert bench.waits == [60, 60]


def test_no_more_requests_are_in_flight_than_conversations_may_be() -> None:
    lock, enough = threading.Lock(), threading.Event()
    in_flight = most = 0

    def behave(wire: Wire) -> None:
        nonlocal in_flight, most
        with lock:
            in_flight += 1
            most = max(most, in_flight)
            if len(server.requests) >= 3:
                enough.set()
        enough.wait(5)
        with lock:
            in_flight -= 1
        chat("Hello")(wire)

    async def main() -> None:
        transport = Transport()
        agents = HttpAgents(AgentConfig(endpoint=server.url), transport=transport, concurrency=3)
        tools = TurnTools(turn=0, schemas=(), call=_no_call)
        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(agents.make(SAMPLE).reply, [{"role": "user", "content": "Hi"}], tools)
        await transport.aclose()

    with LocalServer(behave) as server:
        anyio.run(main)
        assert (most, len(server.requests)) == (3, 9)


# ── through the front door ───────────────────────────────────────────────────────────────────────


def busy_once() -> Callable[[Any], Behaviour]:
    seen: Iterator[Behaviour] = iter((respond("busy", status=429, headers={"Retry-After": "0"}),))
    return lambda _request: next(seen, chat("Your order has shipped."))


def test_a_busy_agent_passes_and_its_retry_is_in_the_journal(project: Project) -> None:
    with LocalServer(answer(busy_once())) as server:
        project.write(
            "agenteval.yaml", f"agent: {{endpoint: '{server.url}', requests_per_minute: 50}}\nmetrics: []"
        )
        project.scenarios("scenarios: [{id: s, turns: [Where?], expect: {output: {contains: [shipped]}}}]")
        assert project.run().code == 0
    notices = project.results()["summary"]["notices"]
    assert ["HTTP status 429: busy" in notice["text"] for notice in notices] == [True]
    assert notices[0]["sample"]


def test_an_agent_without_credit_leaves_the_run_inconclusive(project: Project) -> None:
    spent = respond_json({"error": {"code": "insufficient_quota"}}, status=429)
    with LocalServer(spent) as server:
        project.write("agenteval.yaml", f"agent: {{endpoint: '{server.url}'}}\nmetrics: []")
        project.scenarios("scenarios: [{id: s, turns: [Hi], checks: none}]")
        done = project.run()
        assert done.code == 3
        assert "waiting does not help" in done.out
        assert (
            len(server.requests) == 2
        )  # no request is sent again; the lost conversation is played once more


def test_limits_that_make_no_sense_are_told(project: Project) -> None:
    project.write(
        "agenteval.yaml",
        """
        agent: {target: "agent.py:agent", max_wait_s: 5}
        models: {default: {model: ollama/m, requests_per_minute: 0}}
        """,
    )
    project.scenarios("scenarios: [{id: s, turns: [Hi], checks: none}]")
    done = project.call("validate")
    assert done.code == 2
    assert "agenteval.yaml:1" in done.err
    assert "not support 'max_wait_s'" in done.err
    assert "requests_per_minute" in done.err
