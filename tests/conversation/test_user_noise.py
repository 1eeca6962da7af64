"""What a model that plays a user writes and no user would: empty answers, thoughts, stage directions."""

from __future__ import annotations

import pytest

from agenteval.conversation.user_noise import ENOUGH_WORDS, find_thought, is_empty_message


@pytest.mark.parametrize(
    "message",
    ["", "  \n", "\\n", "\u2800", "\u200b", "null", "NaN", "[END]", "<eos>", "###STOP###", "{no message}",
     "...", "--", "empty", "(silence)", "&nbsp;", "[one two three four]"],
)  # fmt: skip
def test_no_message(message: str) -> None:
    assert is_empty_message(message, answer="Done.", done=False)


@pytest.mark.parametrize(
    "message",
    [
        "Hello",
        "7",
        "?",
        "👍",
        "[42]",
        "(I am in a hurry)",
        "[one two three four five]",
        "none",
        "stop",
        "void it",
    ],
)
def test_a_message(message: str) -> None:
    assert not is_empty_message(message, answer="Done.", done=False)


@pytest.mark.parametrize(
    ("message", "answer", "done", "is_empty"),
    [
        ("stop", "Done.", True, True),
        ("stop", "Shall I stop?", True, False),
        ("(stop)", "Shall I stop?", True, True),
        ("stop", "Done.", False, False),
        ("silence", "Which mode?", False, False),
        ("*silence*", "Which mode?", False, True),
        ("null", "Which value?", False, True),
    ],
)
def test_a_word_for_nothing_may_be_an_answer_to_a_question(
    message: str, answer: str, done: bool, is_empty: bool
) -> None:
    assert is_empty_message(message, answer=answer, done=done) is is_empty


def test_short_answers_are_messages_whatever_surrounds_them() -> None:
    assert not is_empty_message("[yes]", answer="?", done=False, short_answers=("yes",))
    assert is_empty_message("[yes]", answer="?", done=False)


REASON = "The agent asked for the date and I know that"


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        ("<think>I need it</think> Hello", "<think>"),
        ("Thought: be short.\nHello", "Thought:"),
        ("```thinking\nI want it```", "```thinking"),
        ("*sighs* Hello", "*sighs*"),
        ("(waits for a moment) Hello", "(waits for a moment)"),
        ("Hello there. *hangs up*", ". *hangs up*"),
        ("Hello {{name}}", "{{name}}"),
        ("Hello <name>", "<name>"),
        ("reason: x\nmessage: Hello", "the form of the answer"),
        (f"{REASON}. The 3rd.", REASON),
    ],
)
def test_a_thought(message: str, thought: str) -> None:
    assert find_thought(message, reason=REASON, known=()) == thought


@pytest.mark.parametrize(
    "message",
    [
        "I *really* need it",
        "My order (A-7) is late",
        "(7)",
        "message: Hello",
        "The <b> tag does not work",
        REASON,  # nothing but the reason may be the message itself
        "2 < 3 and 4 > 1",
    ],
)
def test_no_thought(message: str) -> None:
    assert find_thought(message, reason=REASON, known=("How does <b> work?",)) == ""


def test_a_short_reason_may_recur_in_a_message() -> None:
    words = [f"w{number}" for number in range(ENOUGH_WORDS)]
    enough, short = " ".join(words), " ".join(words[:-1])
    assert find_thought(f"{enough} more", reason=enough, known=()) == enough
    assert find_thought(f"{short} more", reason=short, known=()) == ""
