"""What the calls in the messages of a framework's object are to the scenario."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pytest

from agenteval.agentside.frameworks.call_marks import ids_of, mark_calls, restore_arguments
from agenteval.agentside.frameworks.seam import adds_code
from agenteval.agentside.world import RequestedCall, World, as_json_text
from agenteval.core.trajectory import CallEvidence
from agenteval.messages import chat
from agenteval.messages.agent_reply import parse_reply


def called(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    """A message with calls: of an id, a name and arguments."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for call_id, name, args in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def result(call_id: str, text: str = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **more}


def asked(name: str, args: Any, call_id: str = "") -> RequestedCall:
    return RequestedCall(name, as_json_text(args), call_id)


def seen(messages: list[dict[str, Any]]) -> list[tuple[str, Any, bool]]:
    """Of each call the id, the arguments, and whether it was attempted."""
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return [
        (call["id"], json.loads(call["function"]["arguments"]), call.get("attempted", False))
        for call in calls
    ]


def test_a_call_is_known_by_its_id_whatever_the_framework_made_of_its_arguments() -> None:
    messages = [called(("a", "look", {"n": "3"}), ("b", "look", {"n": 3})), result("a"), result("b")]
    found = mark_calls(
        messages, [asked("look", {"n": 3, "deep": True}, "b"), asked("look", {"n": 3}, "a")], ()
    )
    assert seen(found) == [("a", {"n": 3}, False), ("b", {"n": 3, "deep": True}, False)]


def test_a_call_without_an_id_is_known_by_its_name_and_arguments() -> None:
    messages = [
        called(("a", "look", {"n": 1, "m": 2}), ("b", "look", {})),
        result("a"),
        result("b", status="error"),
    ]
    assert seen(mark_calls(messages, [asked("look", {"m": 2, "n": 1})], ())) == [
        ("a", {"m": 2, "n": 1}, False),
        ("b", {}, True),
    ]


def test_a_call_that_is_known_by_its_id_is_no_other_of_the_same_arguments() -> None:
    """Such as one of an agent that is a tool, whose calls are not listed, beside one that was refused."""
    messages = [called(("refused", "look", {"n": 1})), result("refused", status="error")]
    assert seen(mark_calls(messages, [asked("look", {"n": 1}, "below")], ())) == [("refused", {"n": 1}, True)]


def test_ids_that_a_model_uses_again_are_each_of_one_call() -> None:
    messages = [called(("a", "look", {"n": 1})), result("a"), called(("a", "look", {"n": 2})), result("a")]
    calls = [asked("look", {"n": 1, "x": 0}, "a"), asked("look", {"n": 2, "x": 0}, "a")]
    assert [args for _, args, _ in seen(mark_calls(messages, calls, ()))] == [
        {"n": 1, "x": 0},
        {"n": 2, "x": 0},
    ]


def test_a_call_that_reached_no_tool_was_attempted_unless_it_was_carried_out_elsewhere() -> None:
    messages = [
        called(
            ("denied", "refund", {}),
            ("waits", "refund", {}),
            ("by hand", "refund", {}),
            ("done", "refund", {}),
        ),
        result("denied", status="error"),
        result("by hand", "it broke", status="error"),
        result("done", "paid"),
    ]
    found = seen(mark_calls(messages, [], {"by hand"}))
    assert [(call_id, attempted) for call_id, _, attempted in found] == [
        ("denied", True),
        ("waits", True),
        ("by hand", False),
        ("done", False),  # somebody has answered it, and nobody knows who
    ]


def test_the_messages_that_were_given_stay_as_they_were() -> None:
    messages = [called(("a", "look", {"n": 1})), {"role": "assistant", "content": "Done."}]
    kept = json.dumps(messages)
    mark_calls(messages, [asked("look", {"n": 2}, "a")], ())
    restore_arguments(messages, [asked("look", {"n": 2})])
    assert json.dumps(messages) == kept
    assert ids_of(messages, {"look"}) == {"a"}


def test_calls_of_a_node_are_paired_by_name_and_order_with_what_it_added() -> None:
    messages = [called(("a", "look", {"n": 1}), ("b", "look", {"n": 2}), ("c", "other", {}))]
    found, ids = restore_arguments(messages, [asked("look", {"n": 2}), asked("look", {"n": 1, "user": "u"})])
    assert [args for _, args, _ in seen(found)] == [{"n": 1, "user": "u"}, {"n": 2}, {}]
    assert ids == {"a", "b"}


def test_a_call_that_a_node_carried_out_by_hand_stays_observed() -> None:
    """A node that calls the function of a tool itself asks nobody: the call stands in the messages alone. It
    is no attempt, so that a scenario that mocks the tool can see that its mock did not answer."""
    messages = mark_calls(
        [called(("a", "look", {"n": 1})), result("a", "real"), {"role": "assistant", "content": "x"}], [], ()
    )
    value = {"messages": messages, "usage": None, "unknown_tools": [], "lists_tools": False, "unplaced": []}
    reply = parse_reply(value)
    assert reply.evidence is None
    (call,) = [call for step in chat.parse_steps(reply.messages) for call in step.tool_calls]
    assert (call.observed, call.extra, call.result and call.result.value) == (True, {}, "real")


# ── what a reply says of them ────────────────────────────────────────────────────────────────────


def test_a_reply_says_whether_all_calls_are_seen_and_what_was_not_placed() -> None:
    value = {"messages": [{"role": "assistant", "content": "Hi."}], "unknown_tools": []}
    assert parse_reply({**value, "lists_tools": True}).evidence is CallEvidence.LISTED
    assert parse_reply({**value, "lists_tools": False}).evidence is None
    assert parse_reply(value).evidence is None
    assert parse_reply({**value, "unplaced": ["a part"]}).unplaced == ("a part",)


def test_a_mapping_that_is_no_frameworks_reply_says_nothing_of_it() -> None:
    value = {
        "messages": [{"role": "assistant", "content": "Hi."}],
        "lists_tools": True,
        "unplaced": ["a part"],
    }
    reply = parse_reply(value)
    assert (reply.evidence, reply.unplaced) == (None, ())


# ── the world ────────────────────────────────────────────────────────────────────────────────────


class Color(Enum):
    RED = "red"


class Injected:
    pass


def test_arguments_are_json_without_what_a_framework_puts_in() -> None:
    given = {"n": 1, "color": Color.RED, "tags": {"b", "a"}, "runtime": Injected(), "deep": {"x": Injected()}}
    assert json.loads(as_json_text(given)) == {"n": 1, "color": "red", "tags": ["a", "b"]}
    assert json.loads(as_json_text({"x": float("nan")})) == {"x": "nan"}
    assert as_json_text('{"as": "written') == '{"as": "written'


class Calls:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def call_sync(self, name: str, args: Any, own: Any) -> Any:
        self.seen.append((name, args))
        return type("Answered", (), {"value": own(), "is_error": False})()


def test_a_world_knows_what_it_was_asked_for_in_a_turn() -> None:
    world, calls = World(), Calls()
    with world.turn(calls):  # type: ignore[arg-type]
        world.call_sync("look", {"n": 1, "runtime": Injected()}, lambda: "x", "a")
    assert calls.seen == [("look", {"n": 1})]
    assert world.has_received_call("a")
    assert not world.has_received_call("b")
    assert world.take_calls() == [RequestedCall("look", '{"n": 1}', "a")]
    assert world.take_calls() == []
    assert world.called_tools == {"look"}
    world.note_unseen_calls("twice")
    world.note_unseen_calls("twice")
    assert (world.take_unseen_calls(), world.take_unseen_calls()) == (["twice"], [])


class Library:
    __module__ = "library.agents"

    def run(self) -> None: ...


class WithFields(Library):
    limit: int = 3


class WithCode(Library):
    def run(self) -> None: ...


class Below(WithCode):
    pass


@pytest.mark.parametrize(
    ("obj", "adds"), [(Library(), False), (WithFields(), False), (WithCode(), True), (Below(), True)]
)
def test_a_class_of_the_authors_adds_code_if_it_has_methods(obj: Any, adds: bool) -> None:
    assert adds_code(obj, "library") is adds
