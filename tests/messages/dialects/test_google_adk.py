"""Session events and evaluation cases of Google's Agent Development Kit, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.dialects.google_adk import importer

NOTE = {"anything": "x"}
TOOL_USE = {"type": "tool_use", "name": "cancel", "input": {}}


def event(*parts: Any, author: str = "bot", role: str | None = "model", **more: Any) -> dict[str, Any]:
    return {"author": author, "invocationId": "i", "content": {"role": role, "parts": list(parts)}, **more}


def call(id: str = "c", name: str = "cancel", **args: Any) -> dict[str, Any]:
    return {"functionCall": {"id": id, "name": name, "args": args}}


def answer(id: str = "c", name: str = "cancel", **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": id, "name": name, "response": response}}


def converted(*entries: Any) -> list[Any]:
    (record,) = importer.read(list(entries))
    assert record["notes"] == []
    found: list[Any] = record["messages"]
    return found


def message(*parts: Any, role: str = "model", agent: str = "bot", usage: Any = None) -> dict[str, Any]:
    return {"role": role, "parts": list(parts), "agent": agent, "usage": usage}


HI = {"text": "Hi"}
INVOCATION: dict[str, Any] = {"user_content": {"parts": [HI]}}


@pytest.mark.parametrize(
    ("entry", "matches"),
    [
        (event(HI), True),
        ({"author": "bot", "content": {"parts": []}}, True),
        ({"author": "bot", "invocation_id": "i"}, True),
        ({"author": "bot", "invocationId": None, "content": None}, True),
        ({"author": "bot", "content": None}, False),
        ({"author": "bot", "content": {"parts": "Hi"}}, False),
        ({"author": "bot", "invocationId": "i", "content": "Hi"}, False),
        ({"author": None, "content": {"parts": []}}, False),
        ({"content": {"parts": []}}, False),
        (INVOCATION, True),
        ({"user_content": "Hi"}, False),
    ],
)
def test_what_is_read(entry: Any, matches: bool) -> None:
    assert importer.matches([entry]) is matches
    assert importer.matches({"events": [entry]}) is matches


def test_fields_of_a_record_without_calls_are_left_out() -> None:
    kept = {"appName": "x", "other": NOTE}
    left_out = dict.fromkeys(
        ("state", "final_session_state", "rubrics", "session_input", "conversation_scenario"), NOTE
    )
    (record,) = importer.read({"events": [event(HI)], **left_out, **kept})
    assert record.keys() == {"messages", "notes", *kept}


# ── events ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (event(HI), [message(HI)]),
        (event(HI, author="user", role="user"), [message(HI, role="user", agent="user")]),
        (event(HI, author="user", role=None), [message(HI, role="user", agent="user")]),
        (event(HI, role=None), [message(HI)]),
        (event(HI, role="user"), [message(HI, role="user")]),
        (event(HI, usageMetadata={"n": 1}), [message(HI, usage={"n": 1})]),
        (event(HI, usage_metadata={"n": 1}), [message(HI, usage={"n": 1})]),
        (event(HI, partial=True), []),
        (event(HI, partial=False), [message(HI)]),
        (event(), [message()]),
        ({"author": "bot", "invocationId": "i"}, []),
        ({"author": "bot", "invocationId": "i", "content": None}, []),
        # what is not read, and may contain a call
        (event(HI, other=NOTE), [{"other": NOTE, **message(HI)}]),
        (event(HI, partial=True, other=NOTE), [{"other": NOTE}]),
        (event(HI, other="x", timestamp=5), [message(HI)]),
        (event(HI, groundingMetadata=NOTE, custom_metadata=NOTE), [message(HI)]),
        (event(HI, customMetadata=TOOL_USE), [{"customMetadata": TOOL_USE, **message(HI)}]),
        (event(HI, actions={"stateDelta": NOTE, "artifact_delta": NOTE}), [message(HI)]),
        (event(HI, actions={"state_delta": TOOL_USE}), [{"state_delta": TOOL_USE, **message(HI)}]),
        (event(HI, actions={"other": NOTE}), [{"other": NOTE, **message(HI)}]),
    ],
)
def test_an_event(given: Any, messages: list[Any]) -> None:
    assert converted(event(HI, author="user"), given)[1:] == messages


@pytest.mark.parametrize(
    "name",
    [
        "groundingMetadata", "grounding_metadata", "citationMetadata", "citation_metadata", "customMetadata",
        "custom_metadata", "inputTranscription", "input_transcription", "outputTranscription",
        "output_transcription", "logprobsResult", "logprobs_result", "cacheMetadata", "cache_metadata",
        "liveSessionResumptionUpdate", "live_session_resumption_update",
    ],
)  # fmt: skip
def test_metadata_of_an_event(name: str) -> None:
    assert converted({**event(HI), name: NOTE}) == [message(HI)]


@pytest.mark.parametrize(
    "name",
    [
        "stateDelta", "state_delta", "artifactDelta", "artifact_delta", "requestedAuthConfigs",
        "requested_auth_configs", "compaction", "agentState", "agent_state",
    ],
)  # fmt: skip
def test_actions_of_the_framework(name: str) -> None:
    assert converted(event(HI, actions={name: NOTE})) == [message(HI)]


# ── calls that a person confirms ─────────────────────────────────────────────────────────────────

ASKS = "adk_request_confirmation"


def asks(original: Any, id: str = "q", key: str = "originalFunctionCall") -> dict[str, Any]:
    return {"functionCall": {"id": id, "name": ASKS, "args": {key: original}}}


def agreed(value: Any, id: str = "q") -> dict[str, Any]:
    return answer(id, ASKS, confirmed=value)


CANCEL = call(order="A-1")
ORIGINAL = CANCEL["functionCall"]


def calls(*entries: Any) -> list[Any]:
    """The calls in the converted messages."""
    parts = [part for each in converted(*entries) for part in each.get("parts", ())]
    return [part["functionCall"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize(
    ("confirmed", "mark"),
    [(True, "approved"), (False, "attempted"), ("true", "attempted"), (None, "attempted")],
)
@pytest.mark.parametrize("key", ["originalFunctionCall", "original_function_call"])
def test_a_call_is_carried_out_once_the_user_agreed(confirmed: Any, mark: str, key: str) -> None:
    given = [event(CANCEL), event(asks(ORIGINAL, key=key)), event(agreed(confirmed), author="user")]
    assert calls(*given) == [{**ORIGINAL, mark: True}]


def test_a_call_that_waits_is_attempted() -> None:
    assert calls(event(CANCEL), event(asks(ORIGINAL))) == [{**ORIGINAL, "attempted": True}]
    assert calls(event(CANCEL)) == [ORIGINAL]
    assert calls(event(CANCEL), event(agreed(True), author="user")) == [ORIGINAL]


def test_each_question_needs_its_answer() -> None:
    given = [event(CANCEL), event(asks(ORIGINAL)), event(asks(ORIGINAL, "r")), event(agreed(True))]
    assert calls(*given) == [{**ORIGINAL, "attempted": True}]
    assert calls(*given, event(agreed(True, "r"))) == [{**ORIGINAL, "approved": True}]


def test_a_call_that_the_question_alone_tells_of_is_read_from_it() -> None:
    assert calls(event(asks(ORIGINAL))) == [{**ORIGINAL, "attempted": True}]
    assert calls(event(asks(ORIGINAL)), event(agreed(True))) == [{**ORIGINAL, "approved": True}]
    assert calls(event({"functionCall": {"name": ASKS, "args": {}}})) == []


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({"id": "c", "name": "other"}, True),
        ({"id": "d", "name": "cancel", "args": {"order": "A-1"}}, False),
        ({"name": "cancel", "args": {"order": "A-1"}}, True),
        ({"id": "", "name": "cancel", "args": {"order": "A-1"}}, True),
        ({"name": "cancel", "args": {"order": "A-2"}}, False),
        ({"name": "find", "args": {"order": "A-1"}}, False),
    ],
)
def test_the_call_of_a_question(other: dict[str, Any], is_same: bool) -> None:
    marked = {**ORIGINAL, "attempted": True}
    alone = {**other, "attempted": True}
    assert calls(event(CANCEL), event(asks(other))) == ([marked] if is_same else [ORIGINAL, alone])


def test_the_frameworks_own_parts_are_left_out() -> None:
    given = [event(CANCEL), event(asks(ORIGINAL)), event(agreed(True), author="user"), event(answer(ok=1))]
    assert converted(*given) == [
        message({"functionCall": {**ORIGINAL, "approved": True}}),
        message(answer(ok=1)),
    ]
    # An event in which nothing else is remains for what it may tell besides.
    assert converted(event(CANCEL), event(asks(ORIGINAL), other=NOTE))[1] == {"other": NOTE, **message()}
    assert converted(event(CANCEL), event(asks(ORIGINAL), HI))[1] == message(HI)


@pytest.mark.parametrize("key", ["requestedToolConfirmations", "requested_tool_confirmations"])
def test_a_call_that_waits_has_no_result_yet(key: str) -> None:
    given = event(answer(error="needs confirmation"), answer("d", ok=1), actions={key: {"c": {}}})
    assert converted(event(CANCEL), given)[1:] == [
        {"type": "item_reference", "id": "c"},
        message(answer("d", ok=1)),
    ]


def test_both_spellings_of_calls_and_their_results() -> None:
    snake = {"function_call": ORIGINAL}
    assert converted(event(snake), event(asks(ORIGINAL)))[0]["parts"] == [
        {**snake, "functionCall": {**ORIGINAL, "attempted": True}}
    ]
    own = {"function_response": {"id": "q", "name": ASKS, "response": {"confirmed": True}}}
    assert calls(event(CANCEL), event(asks(ORIGINAL)), event(own)) == [{**ORIGINAL, "approved": True}]


def test_partial_events_tell_of_no_question() -> None:
    assert calls(event(CANCEL), event(asks(ORIGINAL), partial=True)) == [ORIGINAL]


# ── evaluation cases ─────────────────────────────────────────────────────────────────────────────


def test_an_invocation_in_order() -> None:
    found = converted(
        {
            "user_content": {"role": "customer", "parts": [HI]},
            "final_response": {"parts": [{"text": "Done."}], "role": "bot"},
            "intermediate_data": {
                "intermediate_responses": [["helper", [{"text": "I look."}]]],
                "tool_responses": [{"name": "find", "response": {}}],
                "tool_uses": [{"name": "find", "args": {}}],
                "invocation_events": [event(HI)],
            },
        }
    )
    assert found == [
        {"role": "user", "parts": [HI]},
        message(HI),
        {"role": "model", "parts": [{"function_call": {"name": "find", "args": {}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "find", "response": {}}}]},
        {"role": "model", "parts": [{"text": "I look."}], "agent": "helper"},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]


@pytest.mark.parametrize(
    ("final", "is_answer"),
    [
        (None, False),
        ({}, False),
        ({"parts": None}, False),
        ({"parts": []}, False),
        ({"parts": [{"text": ""}]}, False),
        ({"parts": ["text"]}, False),
        ({"parts": [{"functionCall": {}}, {"text": "a"}]}, True),
    ],
)
def test_the_answer_of_an_invocation(final: Any, is_answer: bool) -> None:
    assert len(converted({**INVOCATION, "final_response": final})) == 1 + is_answer


@pytest.mark.parametrize(
    ("fields", "unread"),
    [
        ({"app_details": NOTE, "rubrics": [NOTE], "intermediate_data": None}, {}),
        ({"other": NOTE, "invocation_id": "x"}, {"other": NOTE}),
        ({"intermediate_data": {"other": NOTE}}, {"other": NOTE}),
    ],
)
def test_what_is_not_read_in_an_invocation(fields: dict[str, Any], unread: dict[str, Any]) -> None:
    assert converted({**INVOCATION, **fields}) == [{**unread, "role": "user", "parts": [HI]}]
