"""Messages in the events of a log: what is one conversation, what is several, and what nobody can tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.messages.records import Conversation
from tests.support.kit import Project
from tests.support.recorded import read

LOOK = {"type": "tool_use", "id": "t1", "name": "get_tide", "input": {"port": "Brest"}}
FOUND = {"type": "tool_result", "tool_use_id": "t1", "content": '{"high": "06:14"}'}


def event(role: str, content: Any, session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, "sessionId": session, **more}


def reply(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    return {"type": "assistant", "message": message, "sessionId": "s1", **more}


ASKED = event("user", "When is high tide in Brest?")
SESSION = [
    {"type": "summary", "summary": "Tides", "leafUuid": "u9"},
    ASKED,
    {"type": "system", "subtype": "informational", "content": "The tool took 2 s", "sessionId": "s1"},
    reply({"type": "thinking", "thinking": "I look it up."}),
    reply({"type": "text", "text": "One moment."}),
    reply(LOOK),
    event("user", [FOUND]),
    event("assistant", [{"type": "text", "text": "At 06:14."}]),
]


def said(found: Conversation) -> list[tuple[str, list[str | None]]]:
    return [(turn.user, [step.text for step in turn.steps]) for turn in found.talk.trajectory.all_turns]


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def scored(project: Project, text: str, name: str = "log.jsonl") -> dict[str, tuple[str, list[str], str]]:
    """By the id of each conversation: its verdict, what was asked in it, and why it could not be read."""
    project.write(name, text)
    project.call("score", name, "--report", "json=results.json")
    samples = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    return {
        key: (each["verdict"], [turn["user"] for turn in each["turns"]], each["reason"] or "")
        for key, each in samples.items()
    }


# ── the messages in events ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("record", [SESSION, {"messages": SESSION}])
def test_the_messages_are_those_in_the_events(record: Any) -> None:
    found = read(record)
    assert said(found) == [("When is high tide in Brest?", ["One moment.", "At 06:14."])]
    (call,) = found.talk.trajectory.tool_calls
    assert (call.name, call.args) == ("get_tide", {"port": "Brest"})
    assert call.result is not None
    assert call.result.value == '{"high": "06:14"}'
    assert found.policy == ""


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "user", "message": {"content": "Hi"}},
            {"role": "assistant", "message": {"content": "Hello"}},
        ],
        [
            {"type": "user", "message": {"content": "Hi"}},
            {"type": "assistant", "message": {"content": "Hello"}},
        ],
        [
            {"type": "message", "message": {"role": "user", "content": "Hi"}},
            {"type": "message", "message": {"role": "assistant", "content": "Hello"}},
        ],
        [
            {"id": 1, "message": {"type": "human", "data": {"content": "Hi"}}},
            {"id": 2, "message": {"type": "ai", "data": {"content": "Hello"}}},
        ],
        [
            {"type": "user", "message": {"type": "message", "content": "Hi"}},
            {"type": "assistant", "message": {"type": "message", "content": "Hello"}},
        ],
        [
            {"role": "user", "content": "Hi"},
            {"index": 0, "message": {"role": "assistant", "content": "Hello"}},
        ],
    ],
)
def test_who_speaks_is_told_within_or_around(messages: Any) -> None:
    assert said(read(messages)) == [("Hi", ["Hello"])]


def test_calls_and_results_in_messages_that_stand_below_a_role() -> None:
    call = {"id": "a", "function": {"name": "get_tide", "arguments": "{}"}}
    found = read(
        [
            {"role": "user", "message": {"content": "Hi"}},
            {"role": "assistant", "message": {"content": None, "tool_calls": [call]}},
            {"role": "tool", "status": "error", "message": {"content": "no such port", "tool_call_id": "a"}},
            {"role": "assistant", "message": {"content": "There is none."}},
        ]
    )
    (made,) = found.talk.trajectory.tool_calls
    assert made.result is not None
    assert (made.result.value, made.result.is_error) == ("no such port", True)


def test_a_text_below_message_is_a_text() -> None:
    found = read([{"role": "user", "message": "Hi"}, {"role": "assistant", "message": "Hello"}])
    assert said(found) == [("Hi", ["Hello"])]


def test_a_message_that_is_logged_as_it_grows() -> None:
    first, second = {"type": "text", "text": "At six."}, {"type": "text", "text": "And at seven."}
    whole = reply(first)
    whole["message"] = {**whole["message"], "content": [first, second]}
    assert said(read([ASKED, reply(first), whole]))[0][1] == ["At six.\nAnd at seven."]


def test_the_agent_of_an_agent_is_left_out() -> None:
    inner = [event("user", "Find it", isSidechain=True), event("assistant", "It is 5", isSidechain=True)]
    found = read([ASKED, *inner, event("assistant", "At 06:14.")])
    assert said(found) == [("When is high tide in Brest?", ["At 06:14."])]
    assert any("asked by the agent" in note for note in found.notes)
    assert said(read(inner)) == [("Find it", ["It is 5"])]


def test_a_call_of_the_agent_of_an_agent_is_not_seen() -> None:
    inner = [event("user", "Find it", isSidechain=True), event("assistant", [LOOK], isSidechain=True)]
    found = read([ASKED, *inner, event("assistant", "At 06:14.")])
    (turn,) = found.talk.trajectory.turns
    assert len(turn.unplaced) == 1
    assert turn.unplaced[0].startswith("a call of an agent that the agent asked: ")


def test_what_the_user_took_back_is_left_out() -> None:
    found = read(
        [
            event("user", "Hi", uuid="1"),
            event("assistant", "Hello", uuid="2", parentUuid="1"),
            event("user", "And in Best?", uuid="3", parentUuid="2"),
            event("assistant", "Best has none.", uuid="4", parentUuid="3"),
            event("user", "And in Brest?", uuid="5", parentUuid="2"),
            event("assistant", "At 06:14.", uuid="6", parentUuid="5"),
        ]
    )
    assert said(found) == [("Hi", ["Hello"]), ("And in Brest?", ["At 06:14."])]
    assert any("took back" in note for note in found.notes)


def test_results_of_one_message_are_not_taken_back() -> None:
    second = {**LOOK, "id": "t2"}
    found = read(
        [
            event("user", "Hi", uuid="1"),
            event("assistant", [LOOK, second], uuid="2", parentUuid="1"),
            event("user", [FOUND], uuid="3", parentUuid="2"),
            event("user", [{**FOUND, "tool_use_id": "t2"}], uuid="4", parentUuid="2"),
            event("assistant", "At 06:14.", uuid="5", parentUuid="4"),
        ]
    )
    assert all(call.result for call in found.talk.trajectory.tool_calls)


# ── events a line ────────────────────────────────────────────────────────────────────────────────


def test_the_events_of_a_session_are_one_conversation(project: Project) -> None:
    assert scored(project, lines(*SESSION)) == {"s1": ("passed", ["When is high tide in Brest?"], "")}


def test_each_session_is_a_conversation(project: Project) -> None:
    other = [event("user", "Hi", "s2"), event("assistant", "Hello", "s2")]
    found = scored(project, lines(*SESSION, *other))
    assert {key: asked for key, (_, asked, _) in found.items()} == {
        "s1": ["When is high tide in Brest?"],
        "s2": ["Hi"],
    }


def test_a_session_that_is_interrupted_is_not_read_to_its_end(project: Project) -> None:
    other = [event("user", "Hi", "s2"), event("assistant", "Hello", "s2")]
    found = scored(
        project, lines(*SESSION, *other, event("user", "And in Lorient?"), event("assistant", "?"))
    )
    assert [verdict for verdict, *_ in found.values()] == ["passed", "passed", "inconclusive"]
    assert "s1 began further up" in found["log.jsonl:11"][2]


def test_a_broken_line_ends_what_can_be_read(project: Project) -> None:
    text = lines(*SESSION) + '{"type": "user", "mess\n' + lines(event("assistant", "Sorry?"))
    assert [verdict for verdict, *_ in scored(project, text).values()] == ["passed"] + ["inconclusive"] * 2


def test_events_that_name_no_conversation_are_not_put_together(project: Project) -> None:
    events = [{"type": each["type"], "message": each["message"]} for each in (ASKED, SESSION[-1])]
    project.write("log.jsonl", lines(*events))
    done = project.call("score", "log.jsonl")
    assert done.code == 2
    assert "it is one message" in done.err


def test_a_message_with_its_answer_is_no_event(project: Project) -> None:
    rows = [
        {"session_id": "s", "message": {"role": "user", "content": "Hi"}, "response": "Hello"},
        {"session_id": "s", "message": {"role": "user", "content": "Bye"}, "response": "Bye"},
    ]
    project.write("log.jsonl", lines(*rows))
    assert project.call("score", "log.jsonl").code == 2


# ── lists of several conversations ───────────────────────────────────────────────────────────────

ROWS = [
    {"conversation_id": name, "role": role, "content": f"{role} {name}"}
    for name in ("c1", "c2")
    for role in ("user", "assistant")
]


@pytest.mark.parametrize("key", ["conversation_id", "session_id", "threadId"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_a_list_of_the_messages_of_two_conversations(project: Project, key: str, order: Any) -> None:
    rows = [{key: ROWS[at]["conversation_id"], **ROWS[at]} for at in order]
    for row in rows if key != "conversation_id" else ():
        del row["conversation_id"]
    found = scored(project, json.dumps(rows, indent=1), "log.json")
    assert {key: asked for key, (_, asked, _) in found.items()} == {"c1": ["user c1"], "c2": ["user c2"]}


def test_a_list_of_events_of_two_sessions(project: Project) -> None:
    other = [event("user", "Hi", "s2"), event("assistant", "Hello", "s2")]
    found = scored(project, json.dumps([*other, *SESSION]), "log.json")
    assert {key: asked for key, (_, asked, _) in found.items()} == {
        "s1": ["When is high tide in Brest?"],
        "s2": ["Hi"],
    }


def test_messages_of_several_conversations_and_of_none(project: Project) -> None:
    rows = [{"role": "system", "content": "Be brief."}, *ROWS]
    found = scored(project, lines(rows, ROWS[:2]))
    assert [verdict for verdict, *_ in found.values()] == ["inconclusive", "passed"]
    assert "several conversations (conversation_id: c1, c2)" in found["log.jsonl:1"][2]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:2],
        [{**row, "conversation_id": "c1", "session_id": at} for at, row in enumerate(ROWS)],
        [*ROWS[:1], {"role": "assistant", "content": "Hello", "session_id": "browser-7"}],
    ],
)
def test_a_list_of_one_conversation_stays_one(project: Project, rows: Any) -> None:
    assert len(scored(project, json.dumps(rows), "log.json")) == 1


def test_a_list_without_messages_is_none() -> None:
    with pytest.raises(AuthorError, match="without any message"):
        read([{"message": {"level": "info"}}])
