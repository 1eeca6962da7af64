"""The client against real servers, OpenAI's kind and the odd ones: one row for each quirk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.core.errors import UnreadableReplyError
from tests.support.local_servers import plain_environment
from tests.support.model_bench import GOOD, KEY, REQUEST, Bench, Verdict
from tests.support.model_servers import (
    ModelServer,
    Play,
    answers,
    error,
    fenced,
    once,
    refuses,
    refuses_format,
    refuses_keyword,
    refuses_system,
    says,
    strict_openai,
    thinks_too_long,
)


@pytest.fixture(autouse=True, params=["http", "sdk"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """All of this holds for requests of ours and for those of the ``openai`` package."""
    plain_environment(monkeypatch, tmp_path)
    monkeypatch.setattr(Bench, "sent_by", request.param)
    return str(request.param)


# ── quirks that end well ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Quirk:
    """``requests``: how many the first call takes. ``notices``: words of what is reported, in order.
    ``then``: what holds for the last request's JSON."""

    plays: tuple[Play, ...]
    requests: int
    notices: tuple[str, ...] = ()
    then: Any = None
    config: Mapping[str, Any] | None = None


def form(asked: Mapping[str, Any]) -> Any:
    return asked.get("response_format", {}).get("type")


DETAIL = {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted", "input": {}}]}

QUIRKS = {
    "1 only max_completion_tokens": Quirk(
        (refuses("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),),
        2,
        ("max_completion_tokens",),
        lambda asked: asked["max_completion_tokens"] == 9 and "max_tokens" not in asked,
        {"max_tokens": 9},
    ),
    "1 neither": Quirk(
        (refuses("max_tokens"), refuses("max_completion_tokens")),
        3,
        ("`max_completion_tokens`", "no limit"),
        lambda asked: "max_tokens" not in asked and "max_completion_tokens" not in asked,
        {"max_tokens": 9},
    ),
    "1 a budget is required": Quirk(
        (lambda asked: None if "max_tokens" in asked else error("max_tokens: Field required"),),
        2,
        ("output token limit",),
        lambda asked: asked["max_tokens"] == 4000,
    ),
    "2 temperature, named by the parameter": Quirk(
        (refuses("temperature", "This value is not for this model.", param="temperature"),),
        2,
        ("`temperature` was rejected and is no longer sent; answers may vary more",),
        lambda asked: "temperature" not in asked,
        {"temperature": 0},
    ),
    "2 temperature, named in a validation error": Quirk(
        (lambda asked: says(DETAIL, status=422)(asked) if "temperature" in asked else None,),
        2,
        ("`temperature`",),
        lambda asked: "temperature" not in asked,
        {"temperature": 0},
    ),
    "2 seed and stop": Quirk(
        (refuses("seed"), refuses("stop")),
        3,
        ("`seed`", "`stop`"),
        lambda asked: asked["top_k"] == 3,
        {"extra": {"seed": 1, "stop": "x", "top_k": 3}},
    ),
    "3 logprobs are forbidden": Quirk(
        (refuses("logprobs", "You are not allowed to request logprobs from this model", status=403),),
        2,
        ("`logprobs`",),
        lambda asked: "logprobs" not in asked,
        {"extra": {"logprobs": True}},
    ),
    "4 LM Studio refuses JSON mode": Quirk(
        (refuses_format("json_object"),), 1, (), lambda asked: form(asked) == "json_schema"
    ),
    "4 no minimum": Quirk(
        (refuses_keyword("maxLength"),), 2, ("without bounds",), lambda asked: form(asked) == "json_schema"
    ),
    "4 no schemas": Quirk(
        (refuses_format("json_schema", message="This response_format type is unavailable now"),),
        3,
        ("without bounds", "json_object"),
        lambda asked: form(asked) == "json_object",
    ),
    "4 no response_format at all": Quirk(
        (refuses("response_format", "Unrecognized request argument supplied: response_format"),),
        4,
        ("without bounds", "json_object", "only the prompt asks for JSON"),
        lambda asked: form(asked) is None,
    ),
    "4 a broken grammar is told as a server error": Quirk(
        (refuses_format("json_schema", message="failed to parse grammar", status=500),),
        3,
        ("without bounds", "json_object"),
    ),
    "5 schema ignored, answer in a fence": Quirk((fenced(),), 1),
    "5 garbage once": Quirk(
        (once(answers("I am sorry!")),),
        2,
        (),
        lambda asked: (
            [m["role"] for m in asked["messages"]] == ["system", "user", "assistant", "user"]
            and "no valid JSON object" in asked["messages"][3]["content"]
        ),
    ),
    "5 nothing once": Quirk(
        (once(answers("")),),
        2,
        (),
        lambda asked: [m["role"] for m in asked["messages"]] == ["system", "user"],
    ),
    "5 a wrong value once": Quirk(
        (once(answers('{"evidence": "a", "reason": "b", "score": "high"}')),),
        2,
        (),
        lambda asked: "score" in asked["messages"][3]["content"],
    ),
    "6 thinks too long": Quirk((thinks_too_long(4000),), 2, (), lambda asked: asked["max_tokens"] == 4000),
    "6 thinks too long, in the content": Quirk(
        (thinks_too_long(6000, field="content"),),
        2,
        (),
        lambda asked: asked["max_tokens"] == 6000,
        {"max_tokens": 3000},
    ),
    "6 thinks and says nothing, and stops": Quirk(
        (once(answers("", reasoning='{"evidence": "", "reason": "", "score": 5}')),),
        2,
        (),
        lambda asked: asked["max_tokens"] == 4000,
    ),
    "8 no system role": Quirk(
        (refuses_system(),),
        2,
        ("system role",),
        lambda asked: asked["messages"][0]["content"].startswith("You are a judge.\n\nJudge this."),
    ),
    "13 content in parts": Quirk(
        (
            answers(
                None,
                content=[
                    {"type": "reasoning", "text": json.dumps({**GOOD, "score": 5})},
                    {"type": "text", "text": json.dumps(GOOD)[:20]},
                    {"type": "text", "text": json.dumps(GOOD)[20:]},
                ],
            ),
        ),
        1,
    ),
    "all at once": Quirk(
        (
            refuses("temperature"),
            refuses("max_tokens"),
            refuses_format("json_schema"),
            refuses_system(),
            fenced(),
        ),
        6,
        ("`temperature`", "`max_tokens`", "without bounds", "json_object", "system role"),
        None,
        {"temperature": 0.5, "max_tokens": 9},
    ),
}


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=QUIRKS)
def test_quirk(quirk: Quirk) -> None:
    with ModelServer(*quirk.plays, answers()) as server:
        bench = Bench(server.base_url, **(quirk.config or {}))
        reply, *_ = bench.ask()
        assert reply.value == Verdict(**GOOD)
        assert len(server.asked) == quirk.requests
        assert bench.waits == []
        assert len(bench.notices) == len(quirk.notices)
        for told, words in zip(bench.notices, quirk.notices, strict=True):
            assert words in told
        assert quirk.then is None or quirk.then(server.asked[-1])


ADAPTED = {name: quirk for name, quirk in QUIRKS.items() if quirk.notices}


@pytest.mark.parametrize("quirk", ADAPTED.values(), ids=ADAPTED)
def test_an_adaption_is_made_once_told_once_and_kept_for_the_model(quirk: Quirk) -> None:
    with ModelServer(*quirk.plays, answers()) as server:
        bench = Bench(server.base_url, **(quirk.config or {}))
        bench.ask(times=2)
        bench.ask()  # another client of the same run
        assert len(server.asked) == quirk.requests + 2
        assert len(bench.notices) == len(quirk.notices)
        assert len(bench.capabilities.discovered) == 1


def test_no_request_is_sent_twice_unchanged_after_a_refusal() -> None:
    with ModelServer(*QUIRKS["all at once"].plays) as server:
        Bench(server.base_url, temperature=0.5, max_tokens=9).ask()
        assert len({json.dumps(asked) for asked in server.asked}) == len(server.asked)


def test_many_first_calls_learn_once() -> None:
    """Whoever was refused in the same moment waits for the one that finds out."""

    async def main() -> None:
        client = bench.client()
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(client.complete, REQUEST)
        await client.aclose()

    with ModelServer(refuses("response_format"), answers()) as server:
        bench = Bench(server.base_url, limit=20)
        anyio.run(main)
        # Twenty that were refused together, two more steps down by one of them, and all answered.
        assert len(server.asked) <= 20 + 2 + 20
        assert len(bench.notices) == 3


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_system_and_user_with_the_schema_at_the_end() -> None:
    with ModelServer() as server:
        Bench(server.base_url).ask()
        asked = server.asked[0]
    assert set(asked) == {"model", "messages", "response_format"}
    assert asked["model"] == "a/model:7b"
    assert [m["role"] for m in asked["messages"]] == ["system", "user"]
    assert asked["messages"][0]["content"] == "You are a judge."
    assert asked["messages"][1]["content"].startswith("Judge this.\n\n")
    assert asked["messages"][1]["content"].endswith("}")


def test_strict_openai_takes_the_first_request() -> None:
    with ModelServer(strict_openai(), answers()) as server:
        bench = Bench(server.base_url, provider="openai", max_tokens=50)
        bench.ask()
        assert len(server.asked) == 1
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_key_is_sent_only_where_one_is_set() -> None:
    with ModelServer() as server:
        Bench(server.base_url).ask()
        assert "authorization" not in server.headers[0]
        assert not any("org-1" in value for value in server.headers[0].values())


@pytest.mark.parametrize("suffix", ["", "/", "/chat/completions", "?api-version=1"])
def test_a_base_url_in_its_usual_forms(suffix: str) -> None:
    with ModelServer() as server:
        Bench(server.base_url + suffix).ask()
        assert server.paths[0].partition("?")[0] == "/v1/chat/completions"
        assert ("?api-version=1" in server.paths[0]) == ("?" in suffix)


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def test_usage_is_the_sum_of_all_answers() -> None:
    counted = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 64}}
    with ModelServer(once(answers("no"), *[says({}, status=500)] * 2), answers(usage=counted)) as server:
        usage = Bench(server.base_url).ask()[0].usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 107, 13)
    assert (usage.cached_tokens, usage.estimated) == (64, False)


@pytest.mark.parametrize(
    "counts", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "seven"}, "none", [1]]
)
def test_a_server_without_usage_is_estimated_and_marked(counts: Any) -> None:
    with ModelServer(answers(usage=counts)) as server:
        usage = Bench(server.base_url).ask()[0].usage
    assert usage.estimated
    assert usage.input_tokens > 50
    assert 5 < usage.output_tokens < 50


@pytest.mark.parametrize("states_form", [False, True])
def test_a_form_is_told_once(states_form: bool) -> None:
    """By a prompt that states it, or by the schema after it; the server is sent the schema either way."""
    request = replace(REQUEST, states_form=states_form)
    with ModelServer(once(answers("I am sorry!")), answers(json.dumps(GOOD))) as server:
        Bench(server.base_url).ask(request)
        first, second = server.asked
    [_, asked] = first["messages"]
    assert (asked["content"] == REQUEST.prompt) is states_form
    again = second["messages"][-1]["content"]
    assert ("JSON Schema" in again) is not states_form
    assert "one JSON object" in again or "whole JSON object" in again
    assert all(form(each) == "json_schema" for each in server.asked)


def test_an_answer_that_is_no_use_was_paid_for() -> None:
    with ModelServer(answers("no")) as server:
        failed = Bench(server.base_url).fail()
    assert isinstance(failed, UnreadableReplyError)
    assert failed.usage.calls == 2
    assert failed.usage.input_tokens == 14
