"""Answers and results in places of their own: read where the place is known, told where it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.importers.records import ImportedConversation
from tests.support.kit import Project
from tests.support.recorded import read as read_log

ASKED = {"role": "user", "content": "How deep is the well?"}
CALLS = [
    {"id": name, "type": "function", "function": {"name": f"measure_{name}", "arguments": "{}"}}
    for name in ("a", "b")
]
CALLED = {"role": "assistant", "content": None, "tool_calls": CALLS}
DONE = {"role": "assistant", "content": "It is 14 m deep."}


def agent(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def read(*messages: Any) -> ImportedConversation:
    return read_log([*messages])


def answer(**fields: Any) -> str | None:
    return read(ASKED, agent(**fields)).parsed.trajectory.turns[0].steps[0].text


def results(*messages: Any) -> list[tuple[str, Any, Any]]:
    found = read(ASKED, *messages, DONE)
    assert not found.parsed.orphans
    return [
        (call.name, *((call.result.value, call.result.is_error) if call.result else (None, None)))
        for call in found.parsed.trajectory.tool_calls
    ]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None, "audio": {"id": "x", "transcript": "14 m"}},
        {"content": None, "tool_calls": [], "audio": {"id": "x", "transcript": "14 m"}},
        {"content": [{"type": "output_audio", "transcript": "14 m"}]},
        {"output": "14 m"},
        {"content": None, "output": "14 m"},
        {"output": [{"type": "output_text", "text": "14 m"}]},
        {"content": "", "text": "14 m"},
        {"content": None, "parts": [{"type": "text", "text": "14 m"}]},
    ],
)  # fmt: skip
def test_answers_in_other_places(fields: Any) -> None:
    assert answer(**fields) == "14 m"


def test_what_is_heard_beside_calls() -> None:
    found = read(ASKED, {**CALLED, "audio": {"id": "x", "transcript": "I measure it."}}, DONE)
    step = found.parsed.trajectory.turns[0].steps[0]
    assert (step.text, len(step.tool_calls)) == ("I measure it.", 2)


def test_what_stands_beside_calls_as_their_output_is_not_said() -> None:
    assert read(ASKED, {**CALLED, "output": "14 m"}, DONE).parsed.trajectory.turns[0].steps[0].text is None


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("utterance", {"utterance": "14"}),
        ("utterance", {"utterance": "fourteen"}),
        ("told", {"told": "It is 14 m deep."}),
        ("response", {"content": None, "response": "14 m"}),
        ("output_text", {"content": "", "output_text": "14 m"}),
        ("finalAnswer", {"content": [], "finalAnswer": "14 m"}),
        ("reply", {"reply": {"text": "14 m"}}),
        ("message", {"message": "14 m"}),
        ("blocks", {"blocks": [{"block_type": "text", "text": "14 m"}]}),
        ("contents", {"contents": [{"type": "text", "text": "14 m"}]}),
        ("items", {"items": [{"content_type": "text", "text": "14 m"}]}),
    ],
)
def test_an_answer_in_an_unknown_place_is_not_known(key: str, fields: Any) -> None:
    with pytest.raises(AuthorError, match=rf"could be parsed: \[{key}\]"):
        answer(**fields)


def test_an_unknown_place_before_an_answer_is_told() -> None:
    found = read(ASKED, agent(utterance="Let me see."), DONE)
    assert found.notes == ("'utterance' in a message looks like its text but was not recognized",)


def test_words_of_a_user_in_an_unknown_place_are_told() -> None:
    found = read({"role": "user", "query": "How deep?", "said": "How deep is it?"}, DONE)
    assert any("'said'" in note for note in found.notes)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": None},
        {"content": "", "id": "msg 1", "model": "a model", "finish_reason": "stop"},
        {"content": "", "reasoning_content": "I could measure it."},
        {"content": None, "thinking": "I could measure it."},
        {"content": None, "audio": {"id": "x", "transcript": ""}},
        {"content": "", "display_name": "The well", "response_metadata": {"text": "a b"}},
        {"content": "", "error_message": "too many requests", "status_text": "not ok"},
        {"content": "", "userMessage": "How deep?", "prompt_text": "How deep?", "output_tokens": "no tokens"},
        {"content": "", "note": "was empty again"},
        {"created_at": "Monday 7 May", "name": "Well Bot", "phase": "final"},
        {"tool_calls": []},
    ],
)
def test_an_answer_that_is_empty_stays_empty(project: Project, fields: Any) -> None:
    project.write("log.jsonl", json.dumps([ASKED, agent(**fields)]))
    project.call("score", "log.jsonl", "--report", "json=results.json")
    (scenario,) = project.results()["scenarios"]
    assert scenario["samples"][0]["verdict"] == "failed"
    assert "empty" in scenario["samples"][0]["reason"]


# ── results ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("key", "value"), [("output", "9"), ("result", {"depth": 9}), ("response", [9])])
def test_a_result_in_another_place(key: str, value: Any) -> None:
    message = {"role": "tool", "tool_call_id": "b", key: value}
    assert results(CALLED, message)[1] == ("measure_b", value, False)


@pytest.mark.parametrize("value", [0, False, {}])
def test_a_result_that_is_nothing_is_one(value: Any) -> None:
    message = {"role": "tool", "tool_call_id": "b", "content": value, "text": "9"}
    assert results(CALLED, message)[1] == ("measure_b", value, False)


@pytest.mark.parametrize("beside", [{"content": ""}, {"content": None}, {"content": []}, {}])
@pytest.mark.parametrize("key", ["tool_result", "result", "output", "response"])
def test_a_result_beside_an_empty_content_is_the_result(beside: dict[str, Any], key: str) -> None:
    given = {"role": "tool", "tool_call_id": "a", **beside, key: {"depth": 14}}
    assert results(CALLED, given)[0] == ("measure_a", {"depth": 14}, False)


def test_an_empty_result_stays_empty() -> None:
    given = {"role": "tool", "tool_call_id": "a", "content": "", "duration_ms": 5}
    assert results(CALLED, given)[0] == ("measure_a", "", False)


@pytest.mark.parametrize("odd", [{"name": "cancel", "arguments": "{}"}, '[{"name": "cancel", "args": {}}]'])
def test_a_call_in_place_of_an_id_is_not_known_to_be_none(odd: Any) -> None:
    result = {"role": "tool", "tool_call_id": odd, "content": "14 m"}
    (turn,) = read(ASKED, CALLED, result, DONE).parsed.trajectory.turns
    assert any("'tool_call_id' in a tool message" in each for each in turn.unplaced)
    called = {**CALLED, "tool_calls": [{**CALLS[0], "id": odd}]}
    (turn,) = read(ASKED, called, {**result, "tool_call_id": "a"}, DONE).parsed.trajectory.turns
    assert any("'id' in a call to 'measure_a'" in each for each in turn.unplaced)
