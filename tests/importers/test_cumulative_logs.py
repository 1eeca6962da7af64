"""Logs in which each request repeats the earlier messages: what goes on, and what is the latest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.cumulative_logs import (
    comparable_messages,
    is_cassette,
    is_continued_by,
    latest_interactions,
)

ASKED = {"role": "user", "content": "How warm is it?"}
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Bonn"}'}}
CALLED = {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}
FOUND = {"role": "tool", "tool_call_id": "1", "content": "12"}
ANSWER = {"role": "assistant", "content": "It is 12 degrees."}


def test_a_message_without_what_differs_between_two_logs() -> None:
    (call,) = comparable_messages([CALLED])
    assert (call.role, call.text, call.calls, call.value) == (
        "assistant",
        "I look.",
        (("look", {"city": "Bonn"}),),
        None,
    )
    (found,) = comparable_messages([FOUND])
    assert (found.role, found.value, found.calls) == ("tool", "12", ())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ANSWER, {**ANSWER, "id": "m-1", "usage": {"prompt_tokens": 1}}, True),
        (ANSWER, {**ANSWER, "content": "  It is 12 degrees.\n"}, True),
        (ANSWER, {**ANSWER, "content": [{"type": "text", "text": "It is 12 degrees."}]}, True),
        (ANSWER, {**ANSWER, "content": "It is 13 degrees."}, False),
        (ANSWER, {**ANSWER, "role": "user"}, False),
        (CALLED, {**CALLED, "tool_calls": [{**CALL, "id": "2"}]}, True),
        (CALLED, {**CALLED, "tool_calls": []}, False),
        (FOUND, {**FOUND, "content": "13"}, False),
    ],
)
def test_which_messages_are_equal(one: Any, other: Any, same: bool) -> None:
    assert (comparable_messages([one]) == comparable_messages([other])) is same


@pytest.mark.parametrize("second", ["{broken", "[2"])
def test_arguments_that_are_no_json_are_compared_as_written(second: str) -> None:
    calls = [{**CALL, "function": {"name": "look", "arguments": raw}} for raw in ("{broke", second, "{broke")]
    one, other, same = (comparable_messages([{**CALLED, "tool_calls": [call]}]) for call in calls)
    assert one != other
    assert one == same


def test_results_may_be_left_out_and_what_has_no_place_always_is() -> None:
    listed = [ASKED, CALLED, FOUND, {"role": "critic", "content": "?"}, ANSWER]
    assert [m.role for m in comparable_messages(listed)] == ["user", "assistant", "tool", "assistant"]
    assert [m.role for m in comparable_messages(listed, results=False)] == ["user", "assistant", "assistant"]
    assert comparable_messages([]) == []


LONGER = {**CALLED, "content": "I look. 12"}


@pytest.mark.parametrize(
    ("one", "other", "is_continued"),
    [
        ([], [ASKED], False),
        ([ASKED], [], False),
        ([ASKED], [ASKED], False),
        ([ASKED], [ASKED, ANSWER], True),
        ([ASKED, ANSWER], [ASKED, ANSWER, ASKED], True),
        ([ASKED, ANSWER], [ASKED, ANSWER], False),
        ([ASKED, ANSWER, ASKED], [ASKED, ANSWER], False),
        ([ANSWER, ASKED], [ASKED, ASKED, ANSWER], False),
        # the last shared text may have become longer, no other, and nothing else of it
        ([ASKED, CALLED], [ASKED, LONGER, FOUND], True),
        ([ASKED, LONGER], [ASKED, CALLED, FOUND], False),
        ([ASKED, CALLED, FOUND], [ASKED, LONGER, FOUND, ANSWER], False),
        ([ASKED, CALLED], [ASKED, {**LONGER, "tool_calls": []}, FOUND], False),
        ([ASKED], [{**ASKED, "role": "assistant"}, ANSWER], False),
    ],
)
def test_what_goes_on(one: list[Any], other: list[Any], is_continued: bool) -> None:
    assert is_continued_by(comparable_messages(one), comparable_messages(other)) is is_continued


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, False),
        ([], False),
        ({}, False),
        ({"interactions": []}, False),
        ({"interactions": {}}, False),
        ({"interactions": [{"request": 1, "response": None}]}, True),
        ({"interactions": [{"request": 1}]}, False),
        ({"interactions": [{"response": 1}]}, False),
        ({"interactions": [{"request": 1, "response": 2}, "request response"]}, False),
        ([{"request": 1, "response": 2}], False),
    ],
)
def test_what_is_a_cassette(value: Any, found: bool) -> None:
    assert is_cassette(value) is found


def interaction(asked: list[Any], answered: Any) -> dict[str, Any]:
    body = {"choices": [{"message": answered}]} if answered else {"error": {"message": "busy"}}
    return {"request": {"body": json.dumps({"messages": asked})}, "response": {"body": json.dumps(body)}}


FIRST = interaction([ASKED], CALLED)
SECOND = interaction([ASKED, CALLED, FOUND], ANSWER)
FAILED = interaction([ASKED], None)
OTHER = interaction([{"role": "user", "content": "Hello?"}], ANSWER)
ODD = {"request": {"body": "{}"}, "response": {}}
UNREAD = {"request": {"body": {"messages": [ASKED]}}, "response": {"body": {"odd": 1}}}


@pytest.mark.parametrize(
    ("interactions", "latest"),
    [
        ([], []),
        ([FIRST], [0]),
        ([FIRST, SECOND], [1]),
        ([SECOND, FIRST], [0, 1]),  # only what is later goes on
        ([FIRST, OTHER, SECOND], [1, 2]),
        ([FIRST, FIRST, SECOND], [2]),
        ([FIRST, FIRST], [0, 1]),
        ([FAILED, SECOND], [0, 1]),
        ([ODD, SECOND], [0, 1]),
        ([UNREAD, SECOND], [0, 1]),
        ([FIRST, FAILED], [0, 1]),
    ],
)
def test_which_interactions_no_later_one_goes_on_from(interactions: list[Any], latest: list[int]) -> None:
    assert list(latest_interactions(interactions)) == latest
