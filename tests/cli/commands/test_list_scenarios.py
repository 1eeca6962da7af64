"""``agenteval list``: the scenarios that the words choose, as ``run`` takes them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands.list_scenarios import list_scenarios
from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.selection import Filters
from agenteval.planning.request import Request
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, events_of

SUITE = """\
defaults: {checks: none}
scenarios:
  - {id: b, turns: [x], tags: [smoke, slow], name: The second, note: Words.}
  - {id: a, goal: get it}
"""
ROWS = "scenarios: [{id: 'r-${row.n}', turns: [x], checks: none, rows: data.csv}]\n"
FIRST, SECOND, THIRD = "scenarios/one.yaml::b", "scenarios/one.yaml::a", "scenarios/two.yaml::r-1"
PLAYED: dict[str, Any] = {"request": {"paths": []}}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    for name, text in {"one.yaml": SUITE, "two.yaml": ROWS, "data.csv": "n\n1\n"}.items():
        (tmp_path / "scenarios" / name).write_text(text)
    (tmp_path / "agenteval.yaml").write_text("agent: {name: bot, target: 'gone.py:agent'}\n")
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], **more: Any) -> list[str]:
    assert list_scenarios(Request(**more)) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [FIRST, SECOND, THIRD]),
        ({"paths": ("scenarios/two.yaml",)}, [THIRD]),
        ({"filters": Filters(tags=("smoke",))}, [FIRST]),
        ({"filters": Filters(first=2)}, [FIRST, SECOND]),
    ],
)
def test_lines_in_the_order_of_the_files(
    capsys: pytest.CaptureFixture[str], more: dict[str, Any], expected: list[str]
) -> None:
    assert listed(capsys, **more) == expected


def test_all_of_an_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_scenarios(Request(), as_json=True) == 0
    first, second, third = json.loads(capsys.readouterr().out)
    assert first == {
        "run": FIRST,
        "id": "b",
        "name": "The second",
        "note": "Words.",
        "file": "scenarios/one.yaml",
        "line": 3,
        "row": None,
        "category": "capability",
        "tags": ["smoke", "slow"],
        "agent": None,
        "simulated": False,
    }
    assert (second["id"], second["note"], second["line"], second["simulated"]) == ("a", None, 4, True)
    assert third["row"].endswith("data.csv:2")


def test_what_failed_and_is_gone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_run(root, "r1", events_of({"b": [PASS], "a": [FAIL], "gone": [FAIL]}, run=PLAYED))
    assert list_scenarios(Request(last_failed=True)) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [SECOND]
    assert "gone" in said.err
    keep_run(root, "r1", events_of({"gone": [FAIL]}, run=PLAYED))
    with pytest.raises(NothingSelectedError):
        list_scenarios(Request(last_failed=True))


def test_a_broken_file_is_refused(root: Path) -> None:
    (root / "scenarios" / "two.yaml").write_text("scenarios: [\n")
    with pytest.raises(AuthorError):
        list_scenarios(Request())
