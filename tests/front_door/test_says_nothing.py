"""What looks like an expectation or an answer of a tool and says nothing is refused, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.scoring.checks import RULES

EXPECTATIONS = {
    'tool_calls: {forbidden: [{name: ""}]}': "a tool name must not be empty",
    'tool_calls: {calls: [{name: pay}, {name: " "}]}': "a tool name must not be empty",
    'criteria: [""]': "an empty criterion checks nothing",
    'criteria: ["Greets.", "  "]': "an empty criterion checks nothing",
    'criteria: ""': "an empty criterion checks nothing",
    "tool_calls: {calls: [{name: t, args: {a: {$any: false}}}]}": "$any: expected true, got false",
    "tool_calls: {calls: [{name: t, args: {a: {$any: null}}}]}": "$any: expected true, got null",
    "tool_calls: {forbidden: [{name: t, args: {a: [{$any: 1}]}}]}": "$any: expected true, got 1",
    "tool_calls: {calls: [{name: t, args: {a: {$in: [{$any: false}]}}}]}": "$any: expected true, got false",
}
TOOLS = {
    "{error: null}": "error: null",
    "{sequence: null}": "sequence: null",
    "{python: null}": "python: null",
    "{sequence: [{returns: 1}, {error: null}]}": "error: null",
    "{error: null, parameters: {type: object}}": "error: null",
}


def complaint(folder: Path, text: str) -> str:
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(AuthorError) as caught:
        load_scenario_files([folder / "s.yaml"], rules=RULES, root=folder, cwd=folder)
    return str(caught.value)


@pytest.mark.parametrize(("expect", "says"), EXPECTATIONS.items())
@pytest.mark.parametrize("at", ["turns: [x], expect", "turns: [{user: x, expect"])
def test_an_expectation(tmp_path: Path, expect: str, says: str, at: str) -> None:
    close = "}]" if "user" in at else ""
    told = complaint(tmp_path, f"scenarios:\n- {{id: a, {at}: {{{expect}}}{close}}}\n")
    assert says in told
    assert told.startswith("s.yaml:2:")


@pytest.mark.parametrize(("tool", "says"), TOOLS.items())
def test_a_tool(tmp_path: Path, tool: str, says: str) -> None:
    told = complaint(tmp_path, f"scenarios:\n- {{id: a, turns: [x], tools: {{t: {tool}}}}}\n")
    assert f"{says} does not define how the tool answers" in told
    assert told.startswith("s.yaml:2:")


def test_an_expected_tool_of_a_case(tmp_path: Path) -> None:
    told = complaint(tmp_path, 'cases:\n- {id: a, input: x, expected_tools: [pay, ""]}\n')
    assert told.startswith("s.yaml:2:")
    assert "a tool name must not be empty" in told


def test_a_tool_that_returns_null_is_one(tmp_path: Path) -> None:
    text = "scenarios:\n- {id: a, turns: [x], tools: {t: {sequence: [{returns: null}]}, u: {returns: null}}}"
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    (scenario,) = load_scenario_files([tmp_path / "s.yaml"], rules=RULES, root=tmp_path, cwd=tmp_path)
    assert all(tool.is_mocked for tool in scenario.tools.values())
