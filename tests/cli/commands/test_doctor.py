"""``agenteval doctor``: what a row says of a fault, a model and an agent's answer, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval import __version__
from agenteval.adapters.agents.http import HttpOptions
from agenteval.cli.commands import doctor as module
from agenteval.cli.commands.doctor import DoctorRequest, DoctorRow, DoctorState, doctor
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AgentError, AuthorError, InfrastructureError, Problem
from agenteval.core.protocols import AgentReply

OK, NOTE, FAULT, MISTAKE = DoctorState.OK, DoctorState.NOTE, DoctorState.FAULT, DoctorState.MISTAKE


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (AuthorError(Problem("wrong", "right it")), DoctorRow("x", MISTAKE, "wrong", "right it")),
        (AuthorError(Problem("wrong")), DoctorRow("x", MISTAKE, "wrong")),
        (AuthorError(Problem("a — b", "c")), DoctorRow("x", MISTAKE, "a — b", "c")),
        (InfrastructureError("no answer"), DoctorRow("x", FAULT, "no answer")),
        (AgentError("HTTP status 500"), DoctorRow("x", FAULT, "HTTP status 500")),
    ],
)
def test_a_fault_is_the_authors_or_the_servers(error: Any, row: DoctorRow) -> None:
    assert module._failure_row("x", error) == row


def test_the_table() -> None:
    rows = [
        DoctorRow("a", OK, "fine"),
        DoctorRow("longer", NOTE, "so\nso", "do\nthis"),
        DoctorRow("b", FAULT, "x" * 700),
        DoctorRow("c", MISTAKE, "wrong"),
    ]
    head, *lines = module._table(rows)
    assert __version__ in head
    assert lines[:3] == ["  ok    a       fine", "  note  longer  so so", "                → do this"]
    assert lines[3].startswith("  FAIL  b       xxx")
    assert len(lines[3]) <= 600 + 16
    assert lines[4:] == ["  FAIL  c       wrong"]


@pytest.mark.parametrize(
    ("states", "code"),
    [([OK, NOTE], 0), ([OK, FAULT], 3), ([FAULT, MISTAKE], 2), ([MISTAKE], 2), ([], 0)],
)
def test_the_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    states: list[DoctorState],
    code: int,
) -> None:
    async def rows(*_: Any) -> list[DoctorRow]:
        return [DoctorRow(f"row {n}", state, "found") for n, state in enumerate(states)]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_call_rows", rows)
    assert doctor(DoctorRequest()) == code
    said = capsys.readouterr().out
    for fact in ("configuration", "agenteval.yaml", "prompts", "tokens"):
        assert fact in said
    assert said.count("found\n") == len(states)


def models(**roles: Any) -> list[tuple[str, list[str]]]:
    config = Config.model_validate({"models": roles})
    return [(chosen.model, names) for chosen, names in module._models_with_roles(config)]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({}, []),
        ({"default": "openai/m"}, [("openai/m", ["user", "judge", "dedup"])]),
        ({"judge": "openai/j"}, [("openai/j", ["judge"])]),
        (
            {"default": "openai/m", "judge": "openai/j"},
            [("openai/m", ["user", "dedup"]), ("openai/j", ["judge"])],
        ),
        (
            {"user": "openai/m", "judge": {"model": "openai/m", "temperature": 1}, "dedup": "openai/m"},
            [("openai/m", ["user", "dedup"]), ("openai/m", ["judge"])],
        ),
    ],
)
def test_each_model_is_asked_once(roles: dict[str, Any], expected: list[tuple[str, list[str]]]) -> None:
    assert models(**roles) == expected


def call_rows(request: DoctorRequest, **config: Any) -> dict[str, DoctorState]:
    rows = anyio.run(module._call_rows, Config.model_validate(config), (), request)
    return {row.what: row.state for row in rows}


TWO = {"agent": {"name": "a", "target": "x:y"}, "compare": [{"name": "b", "target": "x:z"}]}


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        (None, {}, ["agent", "models"]),
        (None, TWO, ["agent a", "agent b", "models"]),
        ("b", TWO, ["agent b", "models"]),
    ],
)
def test_agents_that_are_not_called_have_a_row(
    name: str | None, config: dict[str, Any], expected: list[str]
) -> None:
    found = call_rows(DoctorRequest(agent=name, asks_agents=False), **config)
    assert sorted(found) == expected
    assert set(found.values()) == {NOTE}


# ── the answer of an agent ───────────────────────────────────────────────────────────────────────


class Agents:
    """An agent that answers each message in turn, or fails."""

    def __init__(self, *replies: AgentReply | Exception) -> None:
        self.replies = list(replies)
        self.offered: list[int] = []
        self.closed = 0

    def make(self, _sample: Any) -> Any:
        return self

    async def reply(self, _messages: Any, tools: Any) -> AgentReply:
        self.offered.append(len(tools.schemas))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def aclose(self) -> None:
        self.closed += 1


def probed(agents: Any, http: HttpOptions | None = None) -> DoctorRow:
    probe = module._AgentProbe(AgentConfig.model_validate({"name": "bot", "target": "a:b"}), http)
    try:
        return anyio.run(probe.row, "agent bot", agents)
    finally:
        assert agents.closed == 1


def http(**more: Any) -> HttpOptions:
    return HttpOptions.model_validate({"endpoint": "http://x/v1/chat/completions", **more})


def said(text: str = "hi", **more: Any) -> AgentReply:
    return AgentReply(text=text, **more)


@pytest.mark.parametrize(
    ("reply", "state", "facts"),
    [
        (said(latency_ms=12.4), OK, ["answered in 12 ms", "usage not reported"]),
        (said(), OK, ["answered in 0 ms"]),
        (said(""), NOTE, ["the answer is empty"]),
        (said(usage={"prompt_tokens": 5, "completion_tokens": 2}), OK, ["usage reported"]),
        (said(usage={"strange": "x"}), OK, ["usage"]),
    ],
)
def test_what_an_answer_shows(reply: AgentReply, state: DoctorState, facts: list[str]) -> None:
    row = probed(Agents(reply))
    assert (row.what, row.state) == ("agent bot", state)
    for fact in facts:
        assert fact in row.found
    assert "tools" not in row.found
    assert "stream" not in row.found
    assert bool(row.remedy) is (state is NOTE)


def test_tools_are_offered_over_http() -> None:
    agents = Agents(said())
    row = probed(agents, http())
    assert agents.offered == [1]
    assert "accepts tools" in row.found
    assert "stream" in row.found


@pytest.mark.parametrize("status", [400, 422])
def test_an_agent_that_refuses_tools_is_asked_without(status: int) -> None:
    agents = Agents(AgentError(f"HTTP status {status}"), said())
    row = probed(agents, http())
    assert (agents.offered, row.state) == ([1, 0], NOTE)
    assert f"HTTP status {status}" in row.found
    assert "send_tools: false" in row.remedy
    assert "accepts tools" not in row.found


@pytest.mark.parametrize("status", [401, 404, 500, 4000])
def test_other_faults_are_no_refusal_of_tools(status: int) -> None:
    agents = Agents(AgentError(f"HTTP status {status}"))
    with pytest.raises(AgentError):
        probed(agents, http())
    assert agents.offered == [1]


def test_the_first_error_counts_where_both_fail() -> None:
    with pytest.raises(AgentError, match="400"):
        probed(Agents(AgentError("HTTP status 400"), AgentError("HTTP status 500")), http())
    with pytest.raises(AgentError, match="400"):
        probed(Agents(AgentError("HTTP status 400")))
