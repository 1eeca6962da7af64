"""The agent that is chosen for a new configuration, and whether its calls are seen."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.cli.new_project.agent_choice import AgentChoice


@pytest.mark.parametrize(
    ("keys", "is_object", "shows"),
    [
        ({"target": "bot.py:agent"}, False, False),
        ({"target": "bot.py:agent"}, True, True),
        ({"endpoint": "http://x/v1/chat/completions"}, False, True),
        ({"endpoint": "http://x", "reply": {"text": "a"}}, False, False),
        ({"endpoint": "http://x", "reply": {"text": "a", "messages": "calls"}}, False, True),
        ({"command": ["node", "bot.js"]}, False, True),
        ({"command": {"run": ["node", "bot.js"]}}, False, False),
        ({}, False, False),
    ],
)
def test_the_agents_whose_calls_are_seen(keys: dict[str, Any], is_object: bool, shows: bool) -> None:
    assert AgentChoice(keys, is_object=is_object).shows_calls is shows


def test_a_choice_is_shown_by_its_label() -> None:
    assert str(AgentChoice({"target": "a:b"}, "the label")) == "the label"
    assert str(AgentChoice({})) == ""
