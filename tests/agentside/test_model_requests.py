"""What is noted of requests to models, below any agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from agenteval.agentside import hooks, model_requests, threads
from agenteval.agentside.world import World

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
CLAUDE = {**CHAT, "max_tokens": 10}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
TOOL = {"type": "function", "function": {"name": "look"}}


@pytest.fixture(autouse=True)
def _listening() -> None:
    hooks.install()


@pytest.fixture
def world() -> Iterator[World]:
    made = World("one")
    yield made
    made.close()


def client(answer: Any = None, **more: Any) -> httpx2.Client:
    def reply(request: httpx2.Request) -> httpx2.Response:
        return answer(request) if callable(answer) else httpx2.Response(200, json=answer or {"ok": True})

    return httpx2.Client(transport=httpx2.MockTransport(reply), base_url="http://model", **more)


def noted(world: World) -> list[dict[str, Any]]:
    return model_requests.exchanges_to_json(world.take_exchanges())


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/chat/completions", CHAT, "chat"),
        ("/openai/deployments/d/chat/completions?api-version=1", CHAT, "chat"),
        ("/v1/responses", {"model": "m", "input": "Hi"}, "responses"),
        ("/v1/messages", CLAUDE, "anthropic"),
        ("/v1/p/models/claude:rawPredict", {**CLAUDE, "anthropic_version": "v"}, "anthropic"),
        ("/v1beta/models/g:generateContent", GEMINI, "gemini"),
        ("/v1/projects/p/models/g:streamGenerateContent", GEMINI, "gemini"),
        ("/api/chat", CHAT, "ollama"),
    ],
)
def test_a_request_is_a_models_by_its_address_and_its_body(
    world: World, path: str, body: dict[str, Any], dialect: str
) -> None:
    with world.turn(None):  # type: ignore[arg-type]
        client().post(path, json=body)
        client().post(path, json={"text": "an application's own"})
        client().post("/mails", json=body)
    (exchange,) = noted(world)
    assert exchange["dialect"] == dialect
    assert json.loads(exchange["reply"]) == {"ok": True}
    assert exchange["framework"] == ""


@pytest.mark.parametrize(
    ("path", "is_noted"),
    [
        ("/v2/chat", True),
        ("/v1/messages/count_tokens", False),
        ("/v1/responses/input_tokens", False),
        ("/v1beta/models/g:countTokens", False),
    ],
)
def test_tools_offered_to_an_address_that_nobody_knows_are_unread(
    world: World, path: str, is_noted: bool
) -> None:
    with world.turn(None):  # type: ignore[arg-type]
        client().post(path, json={**CHAT, "tools": [TOOL]})
        client().post(path, json=CHAT)
    assert [path in each["unread"] for each in noted(world)] == [True] * is_noted


def test_what_the_clients_of_models_send_elsewhere_is_unread_unless_it_is_harmless(world: World) -> None:
    openai = client(headers={"user-agent": "AsyncOpenAI/Python 3.57.0"})
    with world.turn(None):  # type: ignore[arg-type]
        openai.post("/v1/threads/runs", json={})
        openai.post("/v1/embeddings", json={"input": "Hi"})
        openai.get("/v1/models")
    assert ["/v1/threads/runs" in each["unread"] for each in noted(world)] == [True]


def test_only_new_results_are_noted(world: World) -> None:
    first = {"role": "tool", "tool_call_id": "a", "content": "1"}
    second = {"role": "tool", "tool_call_id": "a", "content": "1"}
    with world.turn(None):  # type: ignore[arg-type]
        for results in ([first], [first, second], [first, second], [{**first, "content": "of another"}]):
            client().post("/v1/chat/completions", json={**CHAT, "messages": [*CHAT["messages"], *results]})
    assert [each["results"] for each in noted(world)] == [
        [first],
        [second],
        [],
        [{**first, "content": "of another"}],
    ]


def test_a_stream_is_noted_as_far_as_it_was_read_and_once(world: World) -> None:
    def reply(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=iter([b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]))

    with world.turn(None):  # type: ignore[arg-type]
        with client(reply).stream("POST", "/v1/chat/completions", json=CHAT) as response:
            pieces = response.iter_bytes()
            assert (next(pieces), next(pieces)) == (b"data: 1\n\n", b"data: 2\n\n")
        with client(reply).stream("POST", "/v1/chat/completions", json=CHAT) as response:
            response.read()
            assert len(list(response.iter_lines())) == 6
        with client(reply).stream("POST", "/v1/chat/completions", json=CHAT) as response:
            list(response.iter_raw())
        with client(reply).stream("POST", "/v1/chat/completions", json=CHAT):
            pass
    begun, whole, raw, unread = noted(world)
    assert begun["reply"] == "data: 1\n\ndata: 2\n\n"
    assert whole["reply"] == "data: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert "raw bytes" in raw["unread"]
    assert unread["reply"] == ""


def test_a_library_under_two_names_is_listened_to_once(world: World) -> None:
    model_requests.patch_clients(httpx2.Client, httpx2.AsyncClient)
    with world.turn(None):  # type: ignore[arg-type]
        client().post("/v1/chat/completions", json=CHAT)
    assert len(noted(world)) == 1


def test_a_request_that_failed_has_no_answer(world: World) -> None:
    def breaks(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no")

    with world.turn(None):  # type: ignore[arg-type]
        client(lambda _: httpx2.Response(429, json={})).post("/v1/chat/completions", json=CHAT)
        with pytest.raises(httpx2.ConnectError):
            client(breaks).post("/v1/chat/completions", json=CHAT)
    assert [each["failed"] for each in noted(world)] == ["HTTP 429", "ConnectError"]


def test_what_is_too_large_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_requests, "MAX_MODEL_REPLY_BYTES", 20)
    with world.turn(None):  # type: ignore[arg-type]
        for text in ("short", "x" * 30):
            client({"text": text}).post("/v1/chat/completions", json=CHAT)
    exchanges = world.take_exchanges()
    kept, left = model_requests.exchanges_to_json(exchanges)
    assert "short" in kept["reply"]
    assert "larger than" in left["unread"]
    assert ["unread" in each for each in model_requests.exchanges_to_json(exchanges, 3)] == [True, True]


def test_without_a_turn_nothing_is_noted_and_an_unknown_thread_gives_up_all_that_are_open(
    world: World,
) -> None:
    threads.install()
    client().post("/mails", json=CHAT)
    assert world.take_fault() == ""
    client().post("/v1/chat/completions", json=CHAT)
    assert "cannot track" in world.take_fault()
    ours = client()
    model_requests.exclude_client(ours)
    ours.post("/v1/chat/completions", json=CHAT)
    assert (world.take_fault(), noted(world)) == ("", [])


def test_a_thread_that_outlives_its_turn_is_of_nobody(world: World) -> None:
    asks, asked = threading.Event(), threading.Event()

    def work() -> None:
        for _ in range(2):
            asks.wait()
            asks.clear()
            client().post("/v1/chat/completions", json=CHAT)
            asked.set()

    with world.turn(None):  # type: ignore[arg-type]
        thread = threading.Thread(target=work)
        thread.start()
        asks.set()
        asked.wait()
        asked.clear()
    assert len(noted(world)) == 1
    asks.set()
    asked.wait()
    thread.join()
    assert "cannot track" in world.take_fault()
    assert noted(world) == []


@pytest.mark.parametrize(
    ("body", "forced"),
    [
        ({"tool_choice": {"type": "function", "function": {"name": "Form"}}}, "Form"),
        ({"tool_choice": {"type": "tool", "name": "Form"}}, "Form"),
        ({"tool_choice": "required", "tools": [TOOL]}, "look"),
        ({"tool_choice": "required", "tools": [TOOL, TOOL]}, None),
        ({"tool_choice": "auto", "tools": [TOOL]}, None),
    ],
)
def test_the_one_function_that_a_model_had_to_ask_for(
    world: World, body: dict[str, Any], forced: str | None
) -> None:
    with world.turn(None):  # type: ignore[arg-type]
        client().post("/v1/chat/completions", json={**CHAT, **body})
    assert noted(world)[0].get("forced") == forced
