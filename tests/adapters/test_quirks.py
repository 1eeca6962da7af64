"""Every oddity of the table in ``tests/support/quirk_rows.py``, against a real server that has it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents.http import HttpAgents
from agenteval.adapters.agents.python import whose_fault
from agenteval.adapters.agents.quirks import Form, lesson, shaped, short_id
from agenteval.adapters.transport.client import Transport
from agenteval.core.config import AgentConfig
from agenteval.core.errors import AgentError, InfrastructureError
from agenteval.core.protocols import TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from tests.support.local_servers import plain_environment
from tests.support.model_bench import GOOD, Verdict
from tests.support.model_servers import Json, ModelServer, Reply, answers, error
from tests.support.quirk_rows import ROWS
from tests.support.quirks import Row


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=[f"{r.number} {r.who}: {r.quirk}, {r.server}" for r in ROWS])
def test_quirk(row: Row) -> None:
    seen = row.run()
    assert bool(seen.failure) is row.fails, seen.told
    assert row.then(seen), (seen.told, seen.asked[-1])
    if row.who == "model" and not row.fails:
        assert seen.answer == Verdict(**GOOD)
    sent = [json.dumps(asked) for asked in seen.asked]
    if not seen.waits and row.turns == 1:
        assert len(set(sent)) == len(sent), "a request was sent again unchanged"


def test_every_quirk_has_a_row() -> None:
    assert {row.number for row in ROWS} == set(range(1, 21))


# ── forms of a conversation, without a server ────────────────────────────────────────────────────

ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": {}}], "sig": 1}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}, ASSISTANT, {"role": "tool", "tool_call_id": "x"}],
}


def test_a_refusal_of_something_else_teaches_nothing() -> None:
    for text in ("", "no", "bad request", "Unknown model 'm'", "rate limit", "max_tokens is too large"):
        assert lesson(text, BODY, Form()) is None, text


def test_every_form_of_empty_content_is_tried_once() -> None:
    form, forms = Form(), []
    while found := lesson("content: empty or null is invalid", shaped(BODY, form), form):
        form = found.form
        forms.append(shaped(BODY, form)["messages"][1].get("content", "missing"))
    assert forms == ["", "missing"]


def test_nothing_is_changed_but_the_copy() -> None:
    before = json.dumps(BODY)
    form = Form(empty="text", merges=True, system="user", short_ids=True, left_out=frozenset({"sig"}))
    made = shaped(BODY, form)
    assert json.dumps(BODY) == before
    assert made["messages"][1]["content"] == ""
    assert "sig" not in made["messages"][1]
    assert made["messages"][1]["tool_calls"][0]["id"] == made["messages"][2]["tool_call_id"]


def test_parts_and_texts_are_merged() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    body = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [image]}]}
    (message,) = shaped(body, Form(system="user"))["messages"]
    assert message == {"role": "user", "content": [{"type": "text", "text": "S"}, image]}


def test_short_ids_are_nine_letters_or_digits_and_stay() -> None:
    made = {short_id(f"call_{number}") for number in range(1000)}
    assert len(made) == 1000
    assert all(len(each) == 9 and each.isalnum() for each in made)
    assert short_id("abcDEF123") == "abcDEF123"


# ── whose fault an exception of a Python agent is ────────────────────────────────────────────────


def raised_from(error: BaseException, *causes: BaseException) -> BaseException:
    for one, other in zip((error, *causes), causes, strict=False):
        one.__cause__ = other
    return error


def handled(error: BaseException, context: BaseException) -> BaseException:
    error.__context__ = context
    return error


REFUSED = ConnectionRefusedError("refused")
WHOSE: dict[str, tuple[BaseException, type[Exception]]] = {
    "a connection": (REFUSED, InfrastructureError),
    "raised from a connection": (raised_from(RuntimeError("x"), REFUSED), InfrastructureError),
    "raised from what was raised from one": (
        raised_from(RuntimeError("x"), KeyError("y"), REFUSED),
        InfrastructureError,
    ),
    "raised while one was handled": (handled(RuntimeError("x"), REFUSED), AgentError),
    "raised from another mistake": (raised_from(RuntimeError("x"), KeyError("y")), AgentError),
    "a group, one part of which is not": (
        ExceptionGroup("g", [raised_from(RuntimeError("x"), REFUSED), KeyError("y")]),  # type: ignore[list-item]
        AgentError,
    ),
    "raised from itself": (raised_from(itself := RuntimeError("x"), itself), AgentError),
}


@pytest.mark.parametrize(("error", "kind"), WHOSE.values(), ids=WHOSE)
def test_an_exception_that_was_raised_from_a_lost_connection(
    error: BaseException, kind: type[Exception]
) -> None:
    assert type(whose_fault(error)) is kind


def test_what_many_conversations_are_refused_at_once_is_learned_and_told_once() -> None:
    at_once = threading.Barrier(4, timeout=10)

    def refuses_null(asked: Json) -> Reply | None:
        if asked["messages"][1].get("content", 0) is not None:
            return None
        at_once.wait()
        return error("Invalid value for 'content': expected a string, got null.")

    async def main() -> None:
        transport = Transport()
        config = AgentConfig(endpoint=f"{server.base_url}/chat/completions")
        agents = HttpAgents(config, transport=transport, tell=lambda text, _key: notices.append(text))
        scenario = Scenario(id="s", name="s", turns=("Hi",))
        sample = Sample(key=SampleKey(scenario="s", agent="a"), scenario=scenario)
        tools: Any = TurnTools(turn=0, schemas=(), call=None)  # type: ignore[arg-type]
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(agents.make(sample).reply, BODY["messages"], tools)
        await transport.aclose()

    notices: list[str] = []
    with ModelServer(refuses_null, answers("Done.")) as server:
        anyio.run(main)
        assert len(server.asked) == 8
    assert len(notices) == 1
