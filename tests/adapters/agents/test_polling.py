"""How long a job is waited for: as its author says, as the server asks, and never beyond ``timeout_s``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents.http import HttpAgents
from agenteval.adapters.transport.client import Transport
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.core.config import AgentConfig
from agenteval.core.errors import AgentError
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from tests.support.local_servers import Behaviour, LocalServer, plain_environment, respond, respond_json

SAMPLE = Sample(key=SampleKey(scenario="s", agent="a"), scenario=Scenario(id="s", name="s", turns=("Hello",)))
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def ask(url: str, waits: list[float], /, **poll: Any) -> AgentReply:
    """The answer of a job; ``waits`` gets each wait, which takes no time."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def no_call(*_: Any) -> Any:
        raise AssertionError

    async def main() -> AgentReply:
        config = AgentConfig.model_validate({
            "name": "a",
            "endpoint": f"{url}/jobs",
            "timeout_s": 60,
            "request": {"m": "${message}"},
            "reply": {"text": "text"},
            "poll": {"job": "id", "url": "/jobs/${job}", "status": "status", **poll},
        })  # fmt: skip
        transport = Transport(retry=RetryPolicy(sleep=sleep, jitter=lambda: 0.0))
        try:
            agent = HttpAgents(config, transport=transport).make(SAMPLE)
            return await agent.reply(HELLO, TurnTools(0, (), no_call))
        finally:
            await transport.aclose()

    return anyio.run(main)


def state(status: str, **headers: str) -> Behaviour:
    return respond_json({"id": "7", "status": status, "text": "done"}, headers=headers)


def test_the_server_may_ask_for_longer_waits_and_not_for_shorter_ones() -> None:
    waits: list[float] = []
    asks = ({"Retry-After": "9"}, {"Retry-After": "0"}, {"retry-after-ms": "7000"}, {})
    with LocalServer(*(state("running", **headers) for headers in asks), state("done")) as server:
        reply = ask(server.address, waits, every_s=2)
    assert waits == [9, 2, 7, 2]
    assert reply.text == "done"
    assert reply.latency_ms is not None
    assert 20_000 < reply.latency_ms < 30_000  # waiting for a job is the agent's time


def test_a_job_has_one_deadline_in_all() -> None:
    waits: list[float] = []
    with LocalServer(state("running")) as server, pytest.raises(AgentError) as caught:
        ask(server.address, waits, every_s=25)
    assert caught.value.kind == "timeout"
    assert waits == [25, 25]
    assert "the deadline of 60 s (`timeout_s`) has passed; the job is 'running'" in str(caught.value)
    assert "/jobs/7" in str(caught.value)


def test_a_busy_server_delays_a_job_and_does_not_end_it() -> None:
    """Asking once more does no harm: also a 504 is asked again, which no first request is."""
    waits: list[float] = []
    with LocalServer(state("queued"), respond("", status=504), state("done")) as server:
        assert ask(server.address, waits).text == "done"
    assert waits[0] == 1
    assert [request.method for request in server.requests] == ["POST", "GET", "GET"]


def test_the_first_reply_may_say_that_the_job_is_over() -> None:
    with LocalServer(state("done")) as server:
        assert ask(server.address, []).text == "done"
    assert len(server.requests) == 1
    with LocalServer(state("failed")) as server, pytest.raises(AgentError):
        ask(server.address, [], failed=["failed"])
    assert len(server.requests) == 1


def test_only_the_first_reply_need_not_contain_the_state() -> None:
    started = respond_json({"id": "7"})
    with LocalServer(started, state("done")) as server:
        assert ask(server.address, []).text == "done"
    with LocalServer(started, started) as server, pytest.raises(AgentError) as caught:
        ask(server.address, [])
    assert "poll.status" in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [
        ("http", "127.0.0.1", 1),
        ("http", "127.0.0.1", -1),
        ("http", "127.0.0.1", None),
        ("https", "127.0.0.1", 0),
        ("http", "localhost", 0),
        ("http", "127.0.0.1.example.invalid", 0),
        ("http", "user:word@127.0.0.1", 0),
    ],
)
@pytest.mark.parametrize("by_header", [False, True])
def test_a_job_on_another_server_is_not_asked(
    scheme: str, host: str, port: int | None, *, by_header: bool
) -> None:
    """The agent's headers, which hold its key, would go there. ``port`` is relative to the agent's."""
    started: list[Behaviour] = []
    with LocalServer(lambda wire: started[0](wire), state("done")) as server:
        job = f"{scheme}://{host}" + ("" if port is None else f":{server.port + port}") + "/jobs/7"
        started.append(respond_json({"id": job}, headers={"Location": job}))
        place: dict[str, Any] = {"job": None, "url": None} if by_header else {"url": "${job}"}
        with pytest.raises(AgentError) as caught:
            ask(server.address, [], **place)
    assert len(server.requests) == 1
    assert job in str(caught.value)
    assert "poll.url" in str(caught.value)


def test_a_job_on_the_agents_own_server_is_asked_by_its_full_address() -> None:
    started: list[Behaviour] = []
    with LocalServer(lambda wire: started[0](wire), state("done")) as server:
        started.append(respond_json({"id": f"{server.address}/elsewhere/7"}))
        assert ask(server.address, [], url="${job}").text == "done"
    assert server.requests[1].path == "/elsewhere/7"


def test_another_server_is_asked_if_the_author_names_it() -> None:
    with LocalServer(respond_json({"id": "7"})) as server, LocalServer(state("done")) as other:
        assert ask(server.address, [], url=f"{other.address}/jobs/${{job}}").text == "done"
    assert [len(each.requests) for each in (server, other)] == [1, 1]
