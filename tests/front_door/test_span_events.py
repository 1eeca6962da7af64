"""Messages that are events of spans, in each of the forms that libraries write: an agent that calls what it
must not is red, at its turn, and the same agent without that call green; an event that cannot be read is no
message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.scored_traces import FAILED, FORBIDDEN, OPEN, PASSED, Row, check_traces

Body = dict[str, Any]
Event = dict[str, Any]


def message(role: str, text: str) -> Body:
    return {"role": role, "content": text}


def calling(tool: str) -> Body:
    function = {"name": tool, "arguments": json.dumps({"id": "A-7"})}
    return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


HELLO, HI = message("user", "Hello."), message("assistant", "Hi.")
PLEASE, DONE = message("user", "Cancel A-7?"), message("assistant", "Not needed.")
BACK = {"role": "tool", "id": "c1", "content": "[17]"}


def attributes(body: Body) -> Event:
    """Each field an attribute of its own."""
    fields = {key: value if isinstance(value, str) else json.dumps(value) for key, value in body.items()}
    return {"attributes": fields}


def azure(body: Body) -> Event:
    return {"attributes": {"gen_ai.system": "x", "gen_ai.event.content": json.dumps(body)}}


def of_a_log(body: Body) -> Event:
    return {"attributes": {"gen_ai.system": "x"}, "body": body}


def of_a_log_as_text(body: Body) -> Event:
    return {"attributes": {"event.body": json.dumps(body)}}


def of_otlp(body: Body) -> Event:
    return {"attributes": [], "body": otlp(body)}


def otlp(value: Any) -> Any:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": otlp(each)} for key, each in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [*map(otlp, value)]}}
    return {"stringValue": value}


def strands(body: Body) -> Event:
    body = body.get("message", body)
    called = [each["function"] for each in body.get("tool_calls", ())]
    blocks: list[Any] = [
        {"toolUse": {"toolUseId": "c1", "name": each["name"], "input": json.loads(each["arguments"])}}
        for each in called
    ]
    text = [{"text": body["content"]}] if "content" in body else []
    if body["role"] == "tool":
        blocks = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": text}}]
    key = "message" if body["role"] == "assistant" else "content"
    return {"attributes": {key: json.dumps(blocks or text)}}


def kept(body: Body) -> Event:
    """The same as ``attributes``, all of them in an attribute of the span."""
    return {"attributes": body}


WRITTEN: Mapping[str, Callable[[Body], Event]] = {
    each.__name__: each for each in (attributes, azure, of_a_log, of_a_log_as_text, of_otlp, strands, kept)
}
Write = Callable[[Body], Event]


def chat(number: int, write: Write, *said: Body) -> dict[str, Any]:
    """A model that was asked with all but the last message, which it answered."""
    asked = [{"name": f"gen_ai.{body['role']}.message", **write(body)} for body in said[:-1]]
    if write is strands:
        asked = [
            {"name": each["name"], "attributes": {"content": next(iter(each["attributes"].values()))}}
            for each in asked
        ]
    answer = {"name": "gen_ai.choice", **write({"message": said[-1], "finish_reason": "stop"})}
    kind = {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": TOOLS}
    events = [*asked, answer]
    if write is kept:
        kind["events"] = json.dumps([{"event.name": each["name"], **each["attributes"]} for each in events])
        events = []
    own = {"traceId": "1" * 32, "spanId": f"m{number}", "name": "chat m", "startTimeUnixNano": number}
    return {**own, "attributes": kind, "events": events}


TOOLS = json.dumps([{"type": "function", "name": name} for name in ("cancel", "look")])


def two_turns(tool: str, write: Write) -> list[dict[str, Any]]:
    """The first turn calls ``tool``."""
    first = (HELLO, calling(tool), BACK, HI)
    return [
        chat(1, write, *first[:2]),
        chat(2, write, *first),
        chat(3, write, *first, PLEASE, DONE),
    ]


def text_of(spans: Any) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def check(project: Project, rows: Mapping[str, Row]) -> dict[str, Any]:
    return check_traces(project, rows, (HELLO["content"], PLEASE["content"]), "1" * 32)


def test_messages_in_events_are_read_in_each_form(project: Project) -> None:
    rows = {}
    for name, write in WRITTEN.items():
        cancel, look = (text_of(two_turns(tool, write)) for tool in ("cancel", "look"))
        rows[name] = Row(cancel, (FORBIDDEN, ""), FAILED)
        rows[f"{name}, second turn"] = Row(cancel, ("", FORBIDDEN), PASSED)
        rows[f"{name}, look"] = Row(look, (FORBIDDEN, FORBIDDEN), PASSED)
    found = check(project, rows)
    for name in WRITTEN:
        turns = found[name]["turns"]
        said = [(turn["user"], turn["agent"]) for turn in turns]
        assert said == [(HELLO["content"], HI["content"]), (PLEASE["content"], DONE["content"])], name
        (call,) = turns[0]["tool_calls"]
        assert (call["name"], call["args"], call["result"]) == ("cancel", {"id": "A-7"}, "[17]"), name


def cut(event: Event) -> Event:
    """As an exporter leaves it that limits how long a value may be."""
    return {"name": event["name"], "attributes": {k: v[:-3] for k, v in event["attributes"].items()}}


def without_content(event: Event) -> Event:
    return {"name": event["name"], "attributes": {"gen_ai.system": "x"}}


LOST = [(write, lose) for write in (azure, of_a_log_as_text, strands) for lose in (cut, without_content)]


def test_an_event_that_cannot_be_read_is_no_message(project: Project) -> None:
    rows = {}
    for write, lose in LOST:
        spans = two_turns("look", write)
        *asked, answer = spans[2]["events"]
        text = text_of([*spans[:2], {**spans[2], "events": [*asked, lose(answer)]}])
        rows[f"{write.__name__}, {lose.__name__}"] = Row(text, ("", FORBIDDEN), OPEN)
    for name, sample in check(project, rows).items():
        assert all(turn["user"].strip() for turn in sample["turns"]), name


@pytest.mark.parametrize(("write", "lose"), LOST)
def test_a_trace_of_which_no_event_can_be_read_is_refused(project: Project, write: Write, lose: Any) -> None:
    spans = two_turns("look", write)
    lost = text_of([{**each, "events": [*map(lose, each["events"])]} for each in spans])
    project.write("log.json", lost)
    project.call("score", "log.json").refuses("log.json:1", " 5 ", "docs/importers.md")
