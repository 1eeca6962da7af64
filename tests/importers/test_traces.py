"""Conversations in traces and cassettes: each is read once, where it is longest, and none is lost."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.importers.entries import entries_of
from agenteval.importers.records import ImportedConversation, ToolSets, read_conversation
from agenteval.importers.sources import Source
from agenteval.importers.traces import group_traces
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord
from tests.support.kit import Project

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "How warm is it in Bonn?"}
CALL = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bonn"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
FOUND = {"role": "tool", "tool_call_id": "1", "content": "12 degrees"}
ANSWER = {"role": "assistant", "content": "It is 12 degrees."}
TALK = [("How warm is it in Bonn?", "It is 12 degrees.", [("get_weather", {"city": "Bonn"}, "12 degrees")])]


def records(tmp_path: Path, text: str) -> list[Any]:
    path = tmp_path / "log.json"
    path.write_text(text)
    return list(entries_of(Source(path, "log.json")))


def told(found: ImportedConversation) -> list[tuple[str, str, Any]]:
    return [
        (
            turn.user,
            turn.answer,
            [(c.name, c.args, c.result.value if c.result else None) for c in turn.tool_calls],
        )
        for turn in found.parsed.trajectory.all_turns
    ]


def talks(tmp_path: Path, value: Any, *, indent: int | None = None) -> list[list[tuple[str, str, Any]]]:
    found = records(tmp_path, json.dumps(value, indent=indent))
    assert all(isinstance(each, Record) for each in found)
    return [told(read_conversation(each.value, ToolSets())) for each in found]


# ── traces ───────────────────────────────────────────────────────────────────────────────────────


def span(start: int, trace: str = "t1", parent: str = "p", **more: Any) -> dict[str, Any]:
    attributes = more.pop("attributes", {})
    return {"trace_id": trace, "parent_id": parent, "start_time": start, "attributes": attributes, **more}


def model(start: int, asked: list[Any], answered: list[Any] | None, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.request.model": "m-1"}
    if answered is not None:
        attributes["gen_ai.output.messages"] = json.dumps(answered)
    return span(start, attributes=attributes, **more)


FIRST = model(1, [SYSTEM, ASKED], [CALLED])
LAST = model(3, [SYSTEM, ASKED, CALLED, FOUND], [ANSWER])
AGENT = model(0, [ASKED], [ANSWER], parent="")
TOOL = span(
    2,
    attributes={
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.output": "12 degrees",
    },
)


@pytest.mark.parametrize("spans", [[LAST], [FIRST, LAST], [LAST, TOOL, FIRST], [AGENT, FIRST, TOOL, LAST]])
def test_a_trace_is_one_conversation(tmp_path: Path, spans: list[Any]) -> None:
    assert talks(tmp_path, {"spans": spans}) == [TALK]
    assert talks(tmp_path, {"spans": spans}, indent=1) == [TALK]


def test_only_the_first_span_tells_what_was_asked(tmp_path: Path) -> None:
    bare = json.dumps([{"tool.name": "get_weather", "tool.args": {"city": "Bonn"}}])
    asked = {"gen_ai.input.messages": json.dumps([ASKED]), "gen_ai.output": bare}
    end = span(3, attributes={"gen_ai.output": "It is 12 degrees."})
    assert talks(tmp_path, {"spans": [span(1, attributes=asked), TOOL, end]}) == [TALK]


def test_parts_as_the_conventions_have_them() -> None:
    call = {"type": "tool_call", "id": "1", "name": "get_weather", "arguments": {"city": "Bonn"}}
    back = {"type": "tool_call_response", "id": "1", "response": "12 degrees"}
    asked = [
        {"role": "user", "parts": [{"type": "text", "content": ASKED["content"]}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [back]},
    ]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER["content"]}]}]
    told_of = [{"type": "text", "content": "Be brief."}]
    attributes = {"gen_ai.system_instructions": told_of, "gen_ai.output.messages": answered}
    found = read_conversation(span(1, attributes={"gen_ai.input.messages": asked, **attributes}), ToolSets())
    assert (told(found), found.policy, found.id) == (TALK, "Be brief.", "t1")


def test_messages_spread_over_attributes() -> None:
    attributes = {
        "llm.model_name": "m-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": ASKED["content"],
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "get_weather",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Bonn"}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "12 degrees",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER["content"],
        "llm.tools.0.tool.json_schema": json.dumps({"name": "get_weather"}),
    }
    found = read_conversation(span(1, attributes=attributes), ToolSets())
    assert (told(found), found.agent, list(found.tools)) == (TALK, "m-1", ["get_weather"])
    nested = {"llm": {"input_messages": [{"message.role": "user", "message.content": "Hi"}]}}
    nested["llm"]["output_messages"] = [{"message": {"role": "assistant", "content": "Hello."}}]
    assert told(read_conversation(span(1, attributes=nested), ToolSets())) == [("Hi", "Hello.", [])]


def test_as_opentelemetry_exports_it(tmp_path: Path) -> None:
    def exported(each: dict[str, Any]) -> dict[str, Any]:
        pairs = [{"key": k, "value": {"stringValue": v}} for k, v in each["attributes"].items()]
        return {"traceId": "t1", "startTimeUnixNano": str(each["start_time"]), "attributes": pairs}

    spans = [exported(FIRST), exported(LAST)]
    assert talks(tmp_path, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) == [TALK]


def test_spans_a_line_are_put_together_by_their_trace(tmp_path: Path) -> None:
    other = model(4, [{"role": "user", "content": "Hi"}], [{"role": "assistant", "content": "Hello."}])
    lines = [FIRST, TOOL, LAST, {**other, "trace_id": "t2"}]
    found = records(tmp_path, "".join(f"{json.dumps(each)}\n" for each in lines))
    read = [told(read_conversation(each.value, ToolSets())) for each in found]
    assert read == [TALK, [("Hi", "Hello.", [])]]
    assert [each.where for each in found] == ["log.json:1", "log.json:4"]


def test_a_list_of_spans_of_several_traces(tmp_path: Path) -> None:
    found = talks(tmp_path, [FIRST, LAST, {**LAST, "trace_id": "t2"}])
    assert found == [TALK, TALK]


def test_what_another_agent_was_asked_is_no_conversation_with_the_user(tmp_path: Path) -> None:
    """It stands below a tool, is named, or is a guardrail's."""
    inner = model(
        2, [{"role": "user", "content": "Weather?"}], [{"role": "assistant", "content": "31 degrees."}]
    )
    tool = {**TOOL, "span_id": "tool"}
    guardrail = span(2, span_id="g", attributes={"openinference.span.kind": "GUARDRAIL"})
    root = span(0, span_id="p", parent="", attributes={"gen_ai.agent.name": "shop"})
    named = {**inner, "attributes": {**inner["attributes"], "gen_ai.agent.name": "helper"}}
    for around, asked in (
        ([tool], {**inner, "parent_id": "tool"}), ([guardrail], {**inner, "parent_id": "g"}), ([root], named),
    ):  # fmt: skip
        for spans in ([*around, FIRST, asked, LAST], [asked, LAST, FIRST, *around]):
            found = talks(tmp_path, {"name": "run", "spans": spans})
            assert found == [TALK], asked


def test_an_answer_that_was_tried_again_is_not_lost(tmp_path: Path) -> None:
    worse = model(1, [SYSTEM, ASKED], [{"role": "assistant", "content": "I do not know."}])
    for spans in ([worse, LAST], [worse, FIRST, LAST]):
        (record,) = records(tmp_path, json.dumps({"spans": spans}))
        turn = read_conversation(record.value, ToolSets()).parsed.trajectory.turns[0]
        texts = [step.text for step in turn.steps if step.text]
        assert texts == ["I do not know.", "It is 12 degrees."]
        assert bool(turn.unplaced) == (FIRST not in spans)  # what led to the second one is in no span


def test_a_trace_that_failed_and_one_without_messages() -> None:
    failed = model(1, [ASKED], None, status={"status_code": "ERROR", "description": "rate limit"})
    assert read_conversation({"spans": [failed]}, ToolSets()).lost.endswith("rate limit")
    with pytest.raises(AuthorError, match="the trace has no messages"):
        read_conversation({"spans": [span(1)]}, ToolSets())


def test_the_command_does_not_pass_over_a_trace_without_messages(project: Project) -> None:
    lines = [{"spans": [LAST]}, {"spans": [span(1, trace="t2")]}]
    project.write("log.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    done = project.call("score", "log.jsonl", "--no-judge")
    assert done.code == 3
    assert "log.jsonl:2" in done.all


# ── cassettes ────────────────────────────────────────────────────────────────────────────────────


def interaction(asked: list[Any], answered: Any, **response: Any) -> dict[str, Any]:
    body = {"choices": [{"message": answered}]} if answered else {"error": {"message": "too many requests"}}
    request = {"method": "POST", "body": json.dumps({"model": "m-1", "messages": asked})}
    return {"request": request, "response": response or {"body": {"string": json.dumps(body)}}}


EARLIER = interaction([ASKED], CALLED)
LATER = interaction([ASKED, CALLED, FOUND], ANSWER)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_cassette_is_one_conversation_that_grows(tmp_path: Path, indent: int | None) -> None:
    assert talks(tmp_path, {"interactions": [EARLIER, LATER], "version": 1}, indent=indent) == [TALK]


def test_cassettes_a_line(tmp_path: Path) -> None:
    line = json.dumps({"interactions": [EARLIER, LATER]})
    found = records(tmp_path, f"{line}\n{line}\n")
    assert [each.where for each in found] == ["log.json:1", "log.json:2"]


def test_what_does_not_go_on_is_a_record_of_its_own(tmp_path: Path) -> None:
    guess = interaction([ASKED], {"role": "assistant", "content": "30 degrees, I guess."})
    found = talks(tmp_path, {"interactions": [guess, EARLIER, LATER]})
    assert [each[0][1] for each in found] == ["30 degrees, I guess.", "It is 12 degrees."]
    failed = interaction([ASKED], None)
    read = [
        read_conversation(each.value, ToolSets())
        for each in records(tmp_path, json.dumps({"interactions": [failed, LATER]}))
    ]
    assert [bool(each.lost) for each in read] == [True, False]


def test_an_interaction_that_cannot_be_read_is_told_at_its_line(tmp_path: Path) -> None:
    odd = {"request": {"method": "GET", "body": None}, "response": {"body": {"string": "ok"}}}
    entries = records(tmp_path, json.dumps({"interactions": [odd, LATER]}, indent=1))
    assert [each.where for each in entries] == ["log.json:3", "log.json:14"]
    with pytest.raises(AuthorError, match="no messages"):
        read_conversation(entries[0].value, ToolSets())
    assert not isinstance(entries[0], UnreadableRecord)


def test_a_response_with_its_content_beside_its_headers() -> None:
    body = json.dumps({"choices": [{"message": ANSWER}]})
    record = interaction([ASKED, CALLED, FOUND], None, content=body, http_version="HTTP/1.1", status_code=200)
    assert told(read_conversation(record, ToolSets())) == TALK
    record = interaction([ASKED], None, content="Bad gateway", http_version="HTTP/1.1", status_code=502)
    assert "502" in read_conversation(record, ToolSets()).lost
    record = interaction([ASKED], None, body={"string": ""}, status={"code": 503, "message": "Unavailable"})
    assert "503" in read_conversation(record, ToolSets()).lost


def test_objects_beside_the_names_of_their_classes() -> None:
    whole = {"__type__": "sdk.Completion", "__data__": {"choices": [{"message": ANSWER}]}}
    record = {"request": {"body": {"messages": [ASKED, CALLED, FOUND]}}, "response": {"body": whole}}
    assert told(read_conversation(record, ToolSets())) == TALK
    deltas = [{"content": "It is "}, {"content": "12 degrees."}, {}]
    chunks = [
        {"__data__": {"choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}}
        for delta in deltas
    ]
    record = {**record, "response": {"body": chunks, "is_streaming": True}}
    assert told(read_conversation(record, ToolSets())) == TALK


class _Counted(dict[str, Any]):
    """A span that can be counted."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_a_trace_is_not_kept_after_a_thousand_other_spans() -> None:
    """The spans of a trace may be anywhere among those of others, but not arbitrarily far away."""
    attributes = {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'}

    def spans() -> Iterator[LogEntry]:
        for number in range(5000):
            span = {"trace_id": f"{number}", "span_id": f"{number}", "start_time": 1, "name": "x"}
            made = _Counted({**span, "attributes": attributes})
            born.add(made)
            yield Record(made, f"log:{number + 1}")

    born: weakref.WeakSet[_Counted] = weakref.WeakSet()
    most = 0
    for _ in group_traces(spans()):
        most = max(most, len(born))
    assert 1000 <= most <= 1010
