"""Two questions about orders for agents that find their tools at an MCP server: one with a bug cancels an
order that nobody asked it to cancel. And a table of such agents, played in one run."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.kit import Project, failed_checks

Json = dict[str, Any]

TOOLS: Json = {
    "get_order": {
        "description": "An order.",
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "sequence": [
            {"returns": {"id": "${args.id}", "status": "shipped"}},
            {"returns": {"id": "${args.id}", "status": "lost"}},
        ],
    },
    "cancel_order": {"returns": {"ok": True}},
}
ORDERS: Json = {
    "tools": TOOLS,
    "turns": [
        {
            "user": "Where is ORD-42?",
            "expect": {
                "tool_calls": {"match": "strict", "calls": [{"name": "get_order", "args": {"id": "ORD-42"}}]},
                "output": {"contains": ["shipped"]},
            },
        },
        {
            "user": "Should I cancel ORD-43?",
            "expect": {
                "tool_calls": {"forbidden": [{"name": "cancel_order"}]},
                "output": {"contains": ["lost"]},
            },
        },
    ],
}
"""The second order is lost: each conversation has a world of its own that remembers its first call."""


def write(project: Project, agents: dict[str, Json], scenarios: list[Json], **config: Any) -> None:
    settings = {"agents": agents, "metrics": [], **config}
    project.write("agenteval.yaml", yaml.safe_dump(settings))
    project.scenarios(yaml.safe_dump({"scenarios": scenarios}, sort_keys=False))


def names_of(sample: Json) -> list[list[str]]:
    """The names of the calls of each turn."""
    return [[call["name"] for call in turn["tool_calls"]] for turn in sample["turns"]]


def assert_orders(sample: Json, *, has_bug: bool) -> None:
    """The bug is red at its turn, and the fix is green."""
    assert failed_checks(sample) == ({(1, "tool_calls")} if has_bug else set())
    assert sample["verdict"] == ("failed" if has_bug else "passed")
    assert names_of(sample) == [["get_order"], ["get_order", "cancel_order"] if has_bug else ["get_order"]]
