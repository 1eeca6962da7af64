"""Lists that are no one conversation in its order are refused; several people in one chat are reported."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from tests.support.recorded import read

ROWS = [
    {"conversation_id": name, "role": role, "content": f"{role} {name}"}
    for name in ("c1", "c2")
    for role in ("user", "assistant")
]
ASKED, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize("key", ["conversation_id", "session_id", "threadId"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
@pytest.mark.parametrize("is_wrapped", [True, False])
def test_messages_of_two_conversations_are_refused(key: str, order: Any, is_wrapped: bool) -> None:
    rows = [
        {key: ROWS[at]["conversation_id"], "role": ROWS[at]["role"], "content": ROWS[at]["content"]}
        for at in order
    ]
    with pytest.raises(AuthorError, match=rf"to 2 conversations \({key}: c1, c2\)"):
        read({"messages": rows} if is_wrapped else rows)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:2],
        [{**row, "conversation_id": "c1", "session_id": at} for at, row in enumerate(ROWS)],
        [*ROWS[:1], {"role": "assistant", "content": "Hello", "session_id": "browser-7"}],
        [{**ASKED, "session_id": "1"}, {**ANSWER, "session_id": "2"}, ASKED, ANSWER],
    ],
)
def test_messages_of_one_conversation_are_read(rows: Any) -> None:
    assert read(rows).parsed.trajectory.turns


def test_messages_of_two_conversations_and_of_none_are_refused() -> None:
    with pytest.raises(AuthorError, match="to 2 conversations"):
        read([{"role": "system", "content": "Be brief."}, *ROWS])


@pytest.mark.parametrize(
    ("first", "last", "is_refused"),
    [
        (2, 1, True),
        ("2026-05-04T09:00:02Z", "2026-05-04T09:00:01Z", True),
        (1, 2, False),
        (1, 1, False),
        ("10:05", "9:59", False),
        ("today", "now", False),
        (2, None, False),
    ],
)
def test_the_latest_message_first_is_refused(first: Any, last: Any, is_refused: bool) -> None:
    for key in ("created_at", "timestamp"):
        messages = [{**ANSWER, key: first}, {**ASKED, key: last}, {**ANSWER, key: 0}][:2]
        if is_refused:
            with pytest.raises(AuthorError, match=rf"reverse chronological order \(by `{key}`\)"):
                read(messages)
        else:
            assert read(messages).parsed.trajectory.all_turns


def test_the_names_of_several_users_are_told() -> None:
    chat = [{**ASKED, "name": "Ann"}, {**ASKED, "name": "Bob"}, {**ANSWER, "name": "bot"}]
    assert "2 people write as the user (Ann, Bob) and are treated as one" in read(chat).notes
    assert read([chat[0], chat[2], chat[0], chat[2]]).notes == ()


def test_of_two_lists_the_one_whose_entries_name_who_speaks_is_read() -> None:
    steps = [{"observation": {"html": "x"}, "action": {"name": "click"}}]
    for record in ({"trajectory": steps, "history": [ASKED, ANSWER]}, {"history": [ASKED, ANSWER]}):
        (turn,) = read(record).parsed.trajectory.turns
        assert (turn.user, turn.answer) == ("Hi", "Hello")
        assert any("'trajectory'" in each for each in turn.unplaced) is ("trajectory" in record)
