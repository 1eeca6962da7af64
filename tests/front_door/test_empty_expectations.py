"""What looks like an expectation or an answer of a tool and says nothing is refused, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Scenario
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.scoring.checks import RULES

EXPECTATIONS = {
    'tool_calls: {forbidden: [{name: ""}]}': "tool name",
    'tool_calls: {calls: [{name: pay}, {name: " "}]}': "tool name",
    'criteria: [""]': "criterion",
    'criteria: ["Greets.", "  "]': "criterion",
    'criteria: ""': "criterion",
    "tool_calls: {calls: [{name: t, args: {a: {$any: false}}}]}": "$any",
    "tool_calls: {calls: [{name: t, args: {a: {$any: null}}}]}": "$any",
    "tool_calls: {forbidden: [{name: t, args: {a: [{$any: 1}]}}]}": "$any",
    "tool_calls: {calls: [{name: t, args: {a: {$in: [{$any: false}]}}}]}": "$any",
}
TOOLS = {
    "{error: null}": "error: null",
    "{sequence: null}": "sequence: null",
    "{python: null}": "python: null",
    "{sequence: [{returns: 1}, {error: null}]}": "error: null",
    "{error: null, parameters: {type: object}}": "error: null",
}
SCENARIOS = {
    **{f"{{id: a, turns: [x], expect: {{{text}}}}}": fact for text, fact in EXPECTATIONS.items()},
    **{f"{{id: a, turns: [{{user: x, expect: {{{text}}}}}]}}": fact for text, fact in EXPECTATIONS.items()},
    **{f"{{id: a, turns: [x], tools: {{t: {tool}}}}}": fact for tool, fact in TOOLS.items()},
}


def load(folder: Path, text: str) -> tuple[Scenario, ...]:
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    return tuple(load_scenario_files([folder / "s.yaml"], rules=RULES, root=folder, cwd=folder))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        *((f"scenarios:\n- {entry}\n", fact) for entry, fact in SCENARIOS.items()),
        ('cases:\n- {id: a, input: x, expected_tools: [pay, ""]}\n', "tool name"),
    ],
)
def test_what_says_nothing_is_refused_at_its_place(tmp_path: Path, text: str, fact: str) -> None:
    with pytest.raises(AuthorError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith("s.yaml:2:")
    assert fact in str(caught.value)


def test_a_tool_that_returns_null_is_one(tmp_path: Path) -> None:
    tools = "{t: {sequence: [{returns: null}]}, u: {returns: null}}"
    (scenario,) = load(tmp_path, f"scenarios:\n- {{id: a, turns: [x], tools: {tools}}}")
    assert all(tool.is_mocked for tool in scenario.tools.values())
