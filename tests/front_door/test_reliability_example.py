"""The example of luck: a lucky green, a flaky scenario, a gate that is not fooled, a regression, each called
by its name as docs/examples.md shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.kit import Project

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


def test_a_green_by_luck_is_called_so(example: Project) -> None:
    done = example.call("run", "--seed", "6", env=NARROW)
    assert done.code == 0
    assert all_in(SHOWN[0], done.out), done.out


def test_a_flaky_scenario_is_called_flaky(example: Project) -> None:
    done = example.call("run", "--seed", "1")
    assert done.code == 1
    assert any(
        line.startswith("flaky:") and "refund-a-deposit (2 of 3)" in line for line in done.out.splitlines()
    )


def test_the_lucky_day_does_not_fool_the_gate(example: Project) -> None:
    done = example.call("run", "-c", "gated.yaml", "--seed", "6", env=NARROW)
    assert done.code == 1
    assert all_in(SHOWN[1], done.out), done.out


def test_a_regression_is_told_from_luck(example: Project) -> None:
    example.call("run", "--epochs", "20")
    example.call("run", "--epochs", "20", env={"DESK": "new"})
    done = example.call("diff", "previous", "latest", env=NARROW)
    assert done.code == 1
    assert all_in(SHOWN[2], done.out), done.out
    example.write("agenteval.yaml", "agent: {name: desk, target: 'desk.py:agent'}\nmetrics: []\n"
                  "include: [suite.yaml]\nepochs: 20\ngates: {no_regression: {margin: 0.1}}\n")  # fmt: skip
    same = example.call("run", "--baseline", "previous")
    assert same.code == 0, same.out
    few = example.call("run", "--baseline", "latest", "--epochs", "5")
    assert few.code == 3, few.out  # as good as the baseline, which 5 epochs cannot prove
    assert "would decide" in " ".join(few.out.split()), few.out
    worse = example.call("run", "--baseline", "previous", env={"DESK": "new"})
    assert worse.code == 1
    assert "significantly" in worse.out
    assert "dropped" in worse.out


def test_a_planned_suite_says_which_gates_are_coins(example: Project) -> None:
    assert "tossing a coin" in " ".join(example.call("plan").out.split())
    assert "coin" not in example.call("plan", "-c", "gated.yaml").out
    assert "green by chance" in example.call("validate", "-c", "gated.yaml").out


def test_a_changed_scenario_is_not_compared_and_another_suite_is_refused(example: Project) -> None:
    example.write("agenteval.yaml", "agent: {name: desk, target: 'desk.py:agent'}\nmetrics: []\n"
                  "include: [suite.yaml]\nepochs: 3\ngates: {no_regression: {margin: 0.1}}\n")  # fmt: skip
    example.call("run")
    text = (example.root / "suite.yaml").read_text(encoding="utf-8")
    example.write("suite.yaml", text.replace("for two", "for three"))
    done = example.call("run", "--baseline", "latest")
    assert "changed since the baseline" in done.out
    example.write("suite.yaml", text.replace("user:", "user: Well,"))
    assert example.call("run", "--baseline", "nope").code == 2


def test_a_baseline_that_no_gate_uses_is_told(example: Project) -> None:
    example.call("run", "--seed", "6")
    done = example.call("run", "--seed", "6", "--baseline", "latest")
    assert done.code == 0
    assert "no_regression (--baseline, without gates.no_regression)" in done.out
