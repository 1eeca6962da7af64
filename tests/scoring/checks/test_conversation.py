"""The conversation that an author's check receives: its parts, and that it consists of copies."""

from __future__ import annotations

import pytest

from agenteval.core.trajectory import Step, ToolCall, ToolResult, Turn
from agenteval.scoring.checks.conversation import build_call_record, build_conversation

BOOK = ToolCall(
    name="book",
    args={"at": [9]},
    id="c-1",
    extra={"more": [0]},
    result=ToolResult(value={"ids": [1]}),
    agent="billing",
)
FIRST = Turn(
    user="Book it.",
    steps=(Step(text="One moment.", tool_calls=(BOOK,)), Step(text="<think>hm</think>Booked.")),
)
SECOND = Turn(user="Bye", steps=(Step(text="Bye.", agent="desk"), Step(text="See you.", agent="billing")))


def test_turns_with_answers_texts_and_calls() -> None:
    made = build_conversation("s-1", (FIRST, SECOND), observed=True)
    first, second = made.turns
    assert (made.scenario, made.observed, made.answer) == ("s-1", True, "See you.")
    assert (first.user, first.answer, first.text) == ("Book it.", "Booked.", "One moment.\n\nBooked.")
    assert (second.answer, second.text, second.tool_calls) == ("See you.", "Bye.\n\nSee you.", ())
    assert made.text == "One moment.\n\nBooked.\n\nBye.\n\nSee you."
    assert [call.name for call in made.tool_calls] == ["book"]
    assert [message["role"] for message in made.messages][:3] == ["user", "assistant", "tool"]
    assert made.messages[0]["content"] == "Book it."


@pytest.mark.parametrize(
    ("turn", "agents"),
    [
        (FIRST, ()),
        (SECOND, ("desk", "billing")),
        (Turn(user="u", steps=(Step(text="a"), Step(text="b", agent="desk"))), ("", "desk")),
        (Turn(user="u"), ()),
    ],
)
def test_agents_are_named_if_any_is_known(turn: Turn, agents: tuple[str, ...]) -> None:
    (made,) = build_conversation("s", (turn,), observed=True).turns
    assert made.agents == agents


def test_nothing_is_empty() -> None:
    made = build_conversation("s", (), observed=False)
    assert (made.answer, made.text, made.tool_calls, made.turns, made.messages) == ("", "", (), (), ())
    assert made.observed is False
    silent = build_conversation("s", (Turn(user="u"), SECOND), observed=True)
    assert silent.turns[0].answer == ""
    assert silent.text == "Bye.\n\nSee you."


@pytest.mark.parametrize(
    ("call", "args", "result"),
    [
        (BOOK, {"at": [9]}, {"ids": [1]}),
        (ToolCall(name="book", args=None, raw_args="{"), None, None),
        (ToolCall(name="book", args={}, result=ToolResult(value={"error": "no"}, is_error=True)), {},
         {"error": "no"}),
        (ToolCall(name="book", args={}, result=ToolResult(value=None)), {}, None),
    ],
)  # fmt: skip
def test_a_call(call: ToolCall, args: object, result: object) -> None:
    made = build_call_record(call)
    assert (made.name, made.args, made.result, made.agent) == ("book", args, result, call.agent)


def test_the_record_cannot_be_changed_through_it() -> None:
    made = build_conversation("s", (FIRST,), observed=True)
    (record,) = made.tool_calls
    assert record.args is not None
    record.args["at"].append(10)
    record.result["ids"].append(2)
    made.messages[1]["tool_calls"][0]["more"].append(1)
    made.messages[1].clear()
    assert BOOK.args == {"at": [9]}
    assert BOOK.extra == {"more": [0]}
    assert BOOK.result is not None
    assert BOOK.result.value == {"ids": [1]}
    assert build_conversation("s", (FIRST,), observed=True).messages[1]["role"] == "assistant"
