"""80 columns, and 60: no word is broken, and no column is left out without a word."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.support.kit import Project

AGENT = """
    async def agent(messages, ctx):
        order = await ctx.call_tool("get_order", {"id": "ORD-42"})
        return "shipped" if ctx.scenario_id != "cancel-what-is-shipped" else "No."
    async def other(messages, ctx):
        return "shipped"
"""
SUITE = """
defaults:
  tools: {get_order: {returns: {id: ORD-42}}}
  expected_tools: [get_order]
  expected_output_contains: [shipped]
cases:
  - {id: status-of-an-order, input: "Where is ORD-42?", category: capability}
  - {id: cancel-what-is-shipped, input: "Cancel ORD-42.", category: efficiency}
  - {id: order-of-somebody-else, input: "Where is ORD-43?", category: robustness}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two runs of two agents."""
    project = Project(tmp_path_factory.mktemp("narrow"))
    project.agent(AGENT)
    project.config("epochs: 2\ncompare: [{name: bot-of-next-week, target: 'agent.py:other'}]\n")
    project.scenarios(SUITE)
    for _ in range(2):
        assert project.run().code == 1
    return project


NAMES_OF_ROWS = {"run", "role", "failure", "scenario"}
"""Titles that nobody misses where each row stands below its name."""


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("command", ["diff previous latest", "runs", "plan"])
def test_a_table_has_all_its_words_at_every_width(suite: Project, command: str, width: int) -> None:
    wide = suite.call(*command.split(), env={"COLUMNS": "200"}).out
    narrow = suite.call(*command.split(), env={"COLUMNS": str(width)}).out
    assert max(map(cell_len, narrow.splitlines())) <= width
    words = {word for word in wide.split() if len(word) > 1} - NAMES_OF_ROWS
    assert words <= set(narrow.split())


TITLES = (
    "tools called", "tool accuracy", "output ok", "checks", "steps", "calls", "tokens", "tokens in", "out",
    "answer or reason",
)  # fmt: skip
OVERVIEW = ("Passed", "p50 ms", "p95 ms", "Avg steps", "Avg tokens", "Avg calls")


@pytest.mark.parametrize("width", [80, 60])
def test_what_a_table_has_no_room_for_is_named(suite: Project, width: int) -> None:
    brief = suite.call("report", "latest", env={"COLUMNS": str(width)}).out
    whole = suite.call("report", "latest", "-v", env={"COLUMNS": str(width)}).out
    for text, titles in ((brief, OVERVIEW), (whole, TITLES)):
        assert not [title for title in titles if title not in " ".join(text.split())]
    head, _, rest = brief.partition("Agents compared")
    assert "narrow" in head
    for word in ("bot-of-next-week", "latency", "tokens", "success"):
        assert word in rest.split()
    roomy = suite.call("report", "latest", env={"COLUMNS": "140"}).out
    assert "narrow" not in roomy
