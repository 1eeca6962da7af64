"""The one writer of the messages that framework adapters give."""

from __future__ import annotations

from typing import Any

from agenteval.agentside.frameworks.strands.conversation import _encode
from agenteval.agentside.transcript import ToolCall, Transcript, mark_as_error
from agenteval.messages import chat

BOOK = ToolCall("c1", "book", {"day": "Dienstag früh"})
BOOKED = {
    "id": "c1",
    "type": "function",
    "function": {"name": "book", "arguments": '{"day": "Dienstag früh"}'},
}


def test_what_is_written_is_read_as_a_turn() -> None:
    transcript = Transcript()
    transcript.answer("One moment.", [BOOK], agent="desk")
    transcript.result("c1", {"seat": 4}, name="book")
    transcript.answer("Done.", agent="desk", finish_reason="STOP", refusal=None)
    messages = transcript.to_openai()
    assert messages == [
        {"role": "assistant", "content": "One moment.", "agent": "desk", "tool_calls": [BOOKED]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"seat": 4}', "name": "book"},
        {"role": "assistant", "content": "Done.", "agent": "desk", "finish_reason": "STOP"},
    ]
    asked, answered = chat.parse_steps(messages)
    (call,) = asked.tool_calls
    assert (call.name, call.args, call.agent) == ("book", {"day": "Dienstag früh"}, "desk")
    assert call.result is not None
    assert call.result.value == '{"seat": 4}'
    assert answered.text == "Done."


def test_arguments_that_the_model_wrote_stay_as_they_are() -> None:
    assert ToolCall("1", "f", '{"a": 1').to_openai()["function"]["arguments"] == '{"a": 1'
    assert ToolCall("1", "f", None).to_openai()["function"]["arguments"] == "null"


def test_a_result_that_failed_says_so() -> None:
    transcript = Transcript()
    transcript.result("c1", "no such tool", error=True)
    (message,) = transcript.to_openai()
    assert message == mark_as_error({"role": "tool", "tool_call_id": "c1", "content": "no such tool"})
    assert message["status"] == "error"


def test_calls_join_the_last_answer_of_the_same_agent() -> None:
    transcript = Transcript()
    transcript.answer("Let me look.", agent="desk")
    transcript.more_calls([BOOK], agent="desk")
    transcript.more_calls([BOOK._replace(id="c2")], agent="desk")
    transcript.more_calls([BOOK._replace(id="c3")], agent="other")
    transcript.result("c3", "ok")
    transcript.more_calls([BOOK._replace(id="c4")], agent="other")
    assert _calls_by_message(transcript) == [["c1", "c2"], ["c3"], [], ["c4"]]


def test_the_answer_of_a_turn_replaces_what_was_said_last_or_comes_after_a_call() -> None:
    transcript = Transcript()
    assert not transcript.ends_in_answer
    transcript.end_with("first", agent="desk")
    transcript.end_with("second")
    transcript.answer(None, [BOOK])
    assert not transcript.ends_in_answer
    transcript.end_with("third")
    assert [each["content"] for each in transcript.to_openai()] == ["second", None, "third"]
    assert transcript.to_openai()[0]["agent"] == "desk"


def _calls_by_message(transcript: Transcript) -> list[list[Any]]:
    return [[call["id"] for call in each.get("tool_calls", ())] for each in transcript.to_openai()]


def test_an_id_that_a_model_uses_again_takes_no_result_from_the_call_before() -> None:
    def used(name: str) -> list[dict[str, Any]]:
        use = {"toolUseId": "c1", "name": name, "input": {}}
        result = {"toolUseId": "c1", "content": [{"text": "ok"}]}
        return [
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ]

    for after in ("Answer", "unknown"):
        messages = _encode([*used("book"), *used(after)], {"book"}, "Answer").to_openai()
        assert messages[1] == {"role": "tool", "tool_call_id": "c1", "content": "ok"}
