"""The four steps of preparing a run, each from the result of the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.selection import Filters
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import prepare
from agenteval.running.registries import REGISTRIES

CONFIG = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\n"
SCENARIOS = """
scenarios:
  - {id: a, turns: [hi], expect: {output: {contains: hello}}}
  - {id: b, turns: [hi], expect: {output: {contains: hello}}, epochs: 2}
  - {id: c, goal: Get it., checks: none}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "a.yaml").write_text(SCENARIOS)
    (tmp_path / "agent.py").write_text("def agent(message):\n    return 'hello'\n")
    (tmp_path / "agenteval.yaml").write_text(f"{CONFIG}code_only: true\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_MODEL", raising=False)
    return tmp_path


def test_a_prepared_run(folder: Path) -> None:
    found = prepare(Request(), REGISTRIES)
    assert [each.id for each in found.suite.scenarios] == ["a", "b", "c"]
    assert [each.id for each in found.selected.scenarios] == ["a", "b"]
    assert {id: found.plan.rules_for_pairing(id, "bot").epochs for id in found.plan.scenarios} == {
        "a": 1,
        "b": 2,
    }
    assert found.plan.needs_model == ("c",)
    assert [sample.key.scenario for sample in found.wired.samples] == ["a", "b", "b"]


def test_remarks_of_the_selection_come_before_those_of_the_objects(folder: Path) -> None:
    found = prepare(Request(), REGISTRIES)
    assert len(found.selected.remarks) == 1
    assert found.remarks == (*found.selected.remarks, *found.wired.remarks)


def test_a_filter_holds_in_each_step(folder: Path) -> None:
    found = prepare(Request(filters=Filters(scenarios=("b",))), REGISTRIES)
    assert [each.id for each in found.suite.selected_scenarios] == ["b"]
    assert list(found.plan.scenarios) == ["b"]
    assert [sample.key.epoch for sample in found.wired.samples] == [0, 1]


def test_each_step_may_fail(folder: Path) -> None:
    with pytest.raises(NothingSelectedError):
        prepare(Request(filters=Filters(scenarios=("none",))), REGISTRIES)
    (folder / "agent.py").write_text("x = 1\n")
    with pytest.raises(AuthorError):
        prepare(Request(), REGISTRIES)
