"""The example of luck in docs/examples.md: a lucky green, a flaky scenario, a gate that is not fooled, a
regression."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.kit import Project
from tests.support.scored_logs import flat

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/examples.md").read_text(encoding="utf-8").partition("## Lucky, flaky or worse")[2]
SHOWN = re.findall(r"```text\n(.*?)```", SECTION.partition("\n## ")[0], re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Project:
    for path in (ROOT / "scenarios" / "reliability").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return Project(tmp_path)


NARROW = {"COLUMNS": "110"}


def all_in(shown: str, out: str) -> bool:
    return all(line in out for line in shown.splitlines())


REGRESSION_GATE = """
agent: {name: desk, target: 'desk.py:agent'}
metrics: []
include: [suite.yaml]
epochs: %d
gates: {no_regression: {margin: 0.1}}
"""


def gates(example: Project, name: str = "no_regression") -> list[dict[str, str]]:
    return [gate for gate in example.results()["summary"]["gates"] if gate["name"] == name]


def test_a_green_by_luck_is_shown_as_in_the_documentation(example: Project) -> None:
    done = example.call("run", "--seed", "6", env=NARROW)
    assert done.code == 0
    assert all_in(SHOWN[0], done.out), done.out


def test_a_flaky_scenario_is_called_flaky(example: Project) -> None:
    done = example.call("run", "--seed", "1")
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("flaky:")]
    assert "refund-a-deposit (2 of 3)" in line


def test_the_lucky_day_does_not_fool_the_gate(example: Project) -> None:
    done = example.call("run", "-c", "gated.yaml", "--seed", "6", env=NARROW)
    assert done.code == 1
    assert all_in(SHOWN[1], done.out), done.out


def test_a_regression_is_distinguished_from_luck(example: Project) -> None:
    example.call("run", "--epochs", "20")
    example.call("run", "--epochs", "20", env={"DESK": "new"})
    done = example.call("diff", "previous", "latest", env=NARROW)
    assert done.code == 1
    assert all_in(SHOWN[2], done.out), done.out
    example.write("agenteval.yaml", REGRESSION_GATE % 20)
    same = example.run("--baseline", "previous")
    assert same.code == 0, same.out
    few = example.run("--baseline", "latest", "--epochs", "5")
    assert few.code == 3, few.out  # as good as the baseline, which 5 epochs cannot prove
    (gate,) = gates(example)
    assert (gate["verdict"], "epochs: " in gate["resolution"]) == ("inconclusive", True)
    worse = example.run("--baseline", "previous", env={"DESK": "new"})
    assert worse.code == 1
    assert {gate["verdict"] for gate in gates(example)} == {"failed"}


def test_a_plan_shows_how_often_its_gates_are_wrong(example: Project) -> None:
    plan = flat(example.call("plan").out)
    assert all(rate in plan for rate in (" 46 % ", " 34.3 % ", "gates: {pass_rate: "))
    for command in ("plan", "validate"):
        gated = flat(example.call(command, "-c", "gated.yaml").out)
        assert all(rate in gated for rate in ("pass_rate: ", " 0.1 % ", " 4.7 %"))
        assert "gates: {pass_rate: " not in gated


def test_a_changed_scenario_is_not_compared_and_an_unknown_baseline_is_refused(example: Project) -> None:
    example.write("agenteval.yaml", REGRESSION_GATE % 3)
    example.run()
    text = (example.root / "suite.yaml").read_text(encoding="utf-8")
    example.write("suite.yaml", text.replace("for two", "for three"))
    example.run("--baseline", "latest")
    suite, *of_scenarios = gates(example)
    assert "book-a-table" in suite["basis"]
    assert [gate["scenario"] for gate in of_scenarios] == ["book-a-table"]
    assert "turns" in of_scenarios[0]["basis"]
    assert example.call("run", "--baseline", "nope").code == 2


def test_a_baseline_that_no_gate_uses_is_reported(example: Project) -> None:
    example.run("--seed", "6")
    assert example.run("--seed", "6", "--baseline", "latest").code == 0
    (ungated,) = example.results()["summary"]["ungated"]
    assert "no_regression (--baseline, " in ungated
