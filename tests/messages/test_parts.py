"""A function may hand on the content of a message, which is a list of parts with some providers."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AgentError
from agenteval.messages.agent_reply import parse_reply

TEXT = {"type": "text", "text": "It is shipped.", "annotations": []}


@pytest.mark.parametrize(
    "parts",
    [
        [TEXT],
        [{"type": "output_text", "text": "It is shipped."}],
        [{"type": "reasoning", "summary": []}, TEXT],
        [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "It is "},
            {**TEXT, "text": "shipped."},
        ],
    ],
)
def test_parts_of_a_content_are_the_answer(parts: list[Any]) -> None:
    reply = parse_reply(parts)
    said = reply.text if reply.text is not None else str(reply.messages)
    assert "shipped." in said
    assert not reply.unplaced


def test_a_list_of_unknown_entries_is_none() -> None:
    with pytest.raises(AgentError, match="none of the 1 messages"):
        parse_reply([{"type": "note", "text": "It is shipped."}])
