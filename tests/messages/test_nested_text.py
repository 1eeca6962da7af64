"""Texts in fields of a message that no parser reads."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.nested_text import find_content_substitute, find_nested_text_key


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"refusal": "No."}, "No."),
        ({"audio": {"transcript": "Hi."}}, "Hi."),
        ({"refusal": "No.", "audio": {"transcript": "Hi."}}, "No."),
        ({"refusal": None, "audio": {"transcript": "Hi."}}, "Hi."),
        ({"audio": "Hi."}, ""),
        ({"audio": {"text": "Hi."}}, ""),
        ({"content": ""}, ""),
        ({}, ""),
    ],
)
def test_what_replaces_an_empty_content(message: dict[str, Any], text: str) -> None:
    assert find_content_substitute(message) == text


SENTENCE = "It is shipped."


@pytest.mark.parametrize(
    "key",
    [
        "answer", "response", "responds", "reply", "replies", "output", "completion", "transcription",
        "speech", "utterance", "body", "html", "markdown", "final_contents", "message", "display",
        "segments", "chunks", "blocks", "items", "finalAnswer", "ANSWER", "output_text",
    ],
)  # fmt: skip
def test_a_key_of_an_answer_beside_an_empty_content(key: str) -> None:
    assert find_nested_text_key({"role": "assistant", "content": "", key: SENTENCE}) == key
    assert find_nested_text_key({"role": "assistant", key: "Yes"}) == key


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ({"verse": SENTENCE}, "verse"),
        ({"verse": "Yes"}, ""),  # a type or a name
        ({"verse": ["Yes"]}, "verse"),
        ({"content": None, "verse": SENTENCE}, ""),
        ({"parts": [], "verse": SENTENCE}, ""),
        ({"text": "", "verse": SENTENCE}, ""),
        ({"content": SENTENCE}, ""),
        ({"verse": SENTENCE, "answer": SENTENCE}, "verse"),  # the first
        ({"content": "", "verse": SENTENCE, "answer": SENTENCE}, "answer"),
        ({}, ""),
    ],
)
def test_another_key_without_a_content(message: dict[str, Any], key: str) -> None:
    assert find_nested_text_key(message) == key


@pytest.mark.parametrize(
    "key",
    [
        # its end tells of the message
        "id", "response_id", "answerId", "output_tokens", "message_created_at", "responseMetadata",
        "answer_chain_of_thought", "reply_to", "finish_reason",
        # its beginning is of the input, of thoughts, or of a tool
        "error_message", "user_message", "systemMessage", "input_text", "raw_prompt_text", "tool_output",
        "thought_text", "question", "stop_text", "scratch_answer",
        # thoughts, calls
        "reasoning_content", "thinking", "redacted_thinking_text", "tool_calls", "function_call", "toolCalls",
    ],
)  # fmt: skip
def test_keys_that_hold_no_answer(key: str) -> None:
    assert find_nested_text_key({"role": "assistant", key: SENTENCE}) == ""


METADATA = """
id ids uuid guid key role type kind name title model engine provider vendor version object reason status
state error errors code timestamp date time datetime at on created updated usage token tokens cost price
latency duration ms seconds count size length index order turn step level format mode lang language
locale voice url uri path hash fingerprint signature metadata meta extra kwargs config settings options
tag tags label labels flag flags rating score feedback comment comments note notes annotation annotations
citation citations source sources reference references channel recipient user author sender speaker from
to agent avatar icon intent sentiment emotion category topic tier logprobs schema by agents refusal audio
prompt system input context original request query question previous analysis rationale thought thoughts
plan scratchpad chain_of_thought cot debug log logs encrypted_content
"""
OF_THE_INPUT = """
error status user prompt system input context original request query question previous reason think
thought stop finish scratch raw_prompt tool function
"""


def test_last_words_that_tell_of_a_message() -> None:
    assert [word for word in METADATA.split() if find_nested_text_key({f"answer_{word}": SENTENCE})] == []


def test_first_words_of_input_and_thoughts() -> None:
    assert [word for word in OF_THE_INPUT.split() if find_nested_text_key({f"{word}_answer": SENTENCE})] == []


@pytest.mark.parametrize(
    "key",
    ["raw_text", "idea_output", "prompted_answer", "wire", "chain_text", "ids_answer"],
)
def test_only_whole_words_of_a_key_count(key: str) -> None:
    assert find_nested_text_key({"role": "x", key: SENTENCE}) == key


@pytest.mark.parametrize(
    ("value", "is_text"),
    [
        ("é", True),
        ("7", True),
        ("…", False),
        (" ", False),
        ("", False),
        (["", "a"], True),
        ([[["a"]]], True),
        ([[[["a"]]]], False),
        (["."] * 19 + ["a"], True),
        (["."] * 20 + ["a"], False),
        ({"text": "a"}, True),
        ({"content": "a"}, True),
        ({"transcript": "a"}, True),
        ({"value": "a"}, True),
        ({"other": "a"}, False),
        ([{"text": {"value": "a"}}], True),
        ({"text": {"value": {"content": "a"}}}, True),
        ([{"text": {"value": ["a"]}}], False),
        ([], False),
        ({}, False),
        (5, False),
        (None, False),
    ],
)
def test_what_is_a_text(value: Any, is_text: bool) -> None:
    assert find_nested_text_key({"answer": value}) == ("answer" if is_text else "")
