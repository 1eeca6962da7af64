"""Chat completions of servers that omit or add fields: text, usage, refusals, truncated answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.adapters.models.completion_parser import (
    LARGER_OUTPUT_BUDGET,
    CompletionAnswer,
    parse_completion,
)
from agenteval.core.errors import UnreadableReplyError
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Usage

SENT = ({"role": "system", "content": "a" * 400}, {"role": "user", "content": "b" * 40})
ASKED = count_tokens(SENT[0]["content"]) + count_tokens(SENT[1]["content"])
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def reply(
    content: Any = "Hi", *, reason: Any = "stop", usage: Any = USAGE, **message: Any
) -> Mapping[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": reason}
    return {"choices": [choice], "usage": usage}


def parsed(value: Mapping[str, Any]) -> CompletionAnswer:
    return parse_completion(value, where="openai/x", sent=SENT, quote=lambda text: f"<{text}>")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        (" Hi\n", " Hi\n"),
        ("", ""),
        (None, ""),
        (7, ""),
        ({"text": "Hi"}, ""),
        ([], ""),
        ([{"type": "text", "text": "Hi, "}, {"type": "output_text", "text": "you"}], "Hi, you"),
        ([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Hi"}], "Hi"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "image_url", "text": "x"}], ""),
        ([{"type": "text"}, {"type": "text", "text": 7}, "Hi", None], ""),
    ],
)
def test_the_text_is_that_of_text_parts(content: Any, text: str) -> None:
    assert parsed(reply(content)).text == text


def test_only_the_first_choice_counts() -> None:
    assert parsed({"choices": [*reply("a")["choices"], *reply("b")["choices"]]}).text == "a"


@pytest.mark.parametrize(("reason", "shown"), [("stop", "stop"), (None, ""), ("", ""), (3, "3")])
def test_the_reason_of_the_end(reason: Any, shown: str) -> None:
    assert parsed(reply(reason=reason)).finish_reason == shown


@pytest.mark.parametrize("refusal", [None, "", " \n", 7, {}])
def test_no_refusal(refusal: Any) -> None:
    assert parsed(reply("Hi", refusal=refusal)).text == "Hi"


def test_a_refusal_is_quoted_and_was_paid_for() -> None:
    with pytest.raises(UnreadableReplyError) as error:
        parsed(reply("Hi", refusal="I must not"))
    assert error.value.raw == "<I must not>"
    assert "<I must not>" in str(error.value)
    assert str(error.value).startswith("openai/x: ")
    assert error.value.usage == Usage(calls=1, input_tokens=7, output_tokens=3)


def test_an_answer_cut_off_by_a_filter_is_none() -> None:
    with pytest.raises(UnreadableReplyError) as error:
        parsed(reply("Half an", reason="content_filter"))
    assert error.value.raw == "<Half an>"
    assert str(error.value).startswith("openai/x: ")
    assert error.value.usage == Usage(calls=1, input_tokens=7, output_tokens=3)


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def test_reported_usage_is_one_call_and_its_cost_is_ours() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 5}, "requests": 3, "cost": 1.5}
    assert parsed(reply(usage=usage)).usage == Usage(
        calls=1, input_tokens=7, output_tokens=3, cached_tokens=5, cost=None
    )


@pytest.mark.parametrize(
    "usage", [None, {}, "much", {"total_tokens": 30}, {"prompt_tokens": None, "completion_tokens": None}]
)
def test_tokens_that_are_not_reported_are_estimated(usage: Any) -> None:
    assert parsed(reply("c" * 40, usage=usage)).usage == Usage(
        calls=1, input_tokens=ASKED, output_tokens=count_tokens("c" * 40), estimated=True, cost=None
    )


@pytest.mark.parametrize(
    ("usage", "asked", "answered"),
    [({"prompt_tokens": 7}, 7, None), ({"completion_tokens": 3}, ASKED, 3), ({"prompt_tokens": 0}, 0, None)],
)
def test_only_the_missing_number_is_estimated(usage: Any, asked: int, answered: int | None) -> None:
    found = parsed(reply("c" * 40, usage=usage)).usage
    assert (found.input_tokens, found.estimated) == (asked, True)
    assert found.output_tokens == (count_tokens("c" * 40) if answered is None else answered)


# ── answers that were cut off ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("message", "is_cut"),
    [
        ({"content": "Hi"}, False),
        ({"content": ""}, False),
        ({"content": " \n"}, False),
        ({"content": "", "reasoning": "hm"}, True),
        ({"content": None, "reasoning_content": "hm"}, True),
        ({"content": "", "reasoning": ""}, False),
        ({"content": "Hi", "reasoning": "hm"}, False),
        ({"content": "<think>hm"}, True),
        ({"content": "<think>hm</think>"}, True),
        ({"content": "<think>hm</think>Hi"}, False),
    ],
)
def test_reasoning_without_an_answer_may_need_more_tokens(message: Mapping[str, Any], is_cut: bool) -> None:
    answer = parsed(reply(**message))
    assert answer.is_cut is is_cut
    assert answer.reasoned is bool(message.get("reasoning") or message.get("reasoning_content"))


@pytest.mark.parametrize("reason", ["length", "max_tokens", "max_output_tokens"])
@pytest.mark.parametrize("content", ["", "Hi"])
def test_a_token_limit_cuts_off(reason: str, content: str) -> None:
    assert parsed(reply(content, reason=reason)).is_cut


@pytest.mark.parametrize(
    ("budget", "used", "larger"),
    [
        (None, 0, 4000),
        (None, 2000, 4000),
        (None, 2001, 4002),
        (0, 3000, 6000),
        (1, 9000, 4000),
        (2000, 9000, 4000),
        (2001, 1, 4002),
    ],
)
def test_a_larger_budget_is_twice_the_last_one(budget: int | None, used: int, larger: int) -> None:
    assert LARGER_OUTPUT_BUDGET == 4000
    assert CompletionAnswer("", "length", False, Usage(output_tokens=used)).larger_budget(budget) == larger
