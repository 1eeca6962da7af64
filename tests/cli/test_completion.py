"""What TAB proposes, and how long a suite that was read before is believed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli import completion as module
from agenteval.cli.completion import CACHE_FILE, proposed_names
from agenteval.core.scenario import Category
from agenteval.reporters import REPORTERS
from agenteval.scoring.metrics import built_in_metrics
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import PASS, events_of

ORDERS = """\
defaults: {checks: none}
scenarios:
  - {id: refund, turns: [a], tags: [smoke, b]}
  - {id: return, turns: [a], tags: [a, smoke]}
"""
OTHER = "scenarios: [{id: refund-twice, turns: [a], checks: none}]\n"
CONFIG = """\
agent: {name: bot, target: 'a:b'}
compare: [{name: other, target: 'a:c'}]
profiles: {nightly: {epochs: 2}, deep: {include: [deep/*.yaml]}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "agenteval.yaml", CONFIG)
    write(tmp_path, "scenarios/orders.yaml", ORDERS)
    write(tmp_path, "scenarios/sub/more.yaml", OTHER)
    write(tmp_path, "deep/d.yaml", OTHER.replace("refund-twice", "deep"))
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def names(kind: Any, incomplete: str = "", **options: Any) -> list[str]:
    return proposed_names(kind, options, incomplete)


METRICS = [spec.name for spec in built_in_metrics()]


@pytest.mark.parametrize(
    ("kind", "incomplete", "expected"),
    [
        ("scenarios", "", ["refund", "return", "refund-twice"]),
        ("scenarios", "ref", ["refund", "refund-twice"]),
        ("scenarios", "x", []),
        ("scenarios", "REF", []),
        ("scenarios", "orders.yaml::", ["orders.yaml::refund", "orders.yaml::return"]),
        ("scenarios", "scenarios/orders.yaml::ret", ["scenarios/orders.yaml::return"]),
        ("files", "more.yaml::", ["more.yaml::refund-twice"]),
        ("files", "ore.yaml::", []),
        ("files", "gone.yaml::", []),
        ("files", "", []),
        ("files", "ref", []),
        ("tags", "", ["a", "b", "smoke"]),
        ("tags", "s", ["smoke"]),
        ("agents", "", ["bot", "other"]),
        ("profiles", "", ["nightly", "deep"]),
        ("profiles", "n", ["nightly"]),
        ("categories", "", [each.value for each in Category]),
        ("reports", "", [name for name in REPORTERS if name != "terminal"]),
        ("reports", "j", ["json", "junit"]),
        ("runs", "", ["latest", "previous"]),
        ("conversations", "", []),
    ],
)
def test_names_that_are_proposed(root: Path, kind: Any, incomplete: str, expected: list[str]) -> None:
    assert names(kind, incomplete) == expected


def test_metrics(root: Path) -> None:
    assert names("metrics") == METRICS
    assert names("metrics", METRICS[0][:3])[0] == METRICS[0]


def test_runs_and_their_conversations(root: Path) -> None:
    keep_run(root, "r1", events_of({"old": [PASS]}), "2026-11-01T00:00:00Z")
    keep_run(root, "r2", events_of({"b": [PASS], "a": [PASS]}), "2026-11-02T00:00:00Z")
    assert names("runs") == ["latest", "previous", "r2", "r1"]
    assert names("conversations") == ["b", "a", "latest", "previous", "r2", "r1"]
    assert names("conversations", "r") == ["r2", "r1"]


def test_a_name_of_two_lines_cannot_be_typed(root: Path) -> None:
    write(root, "scenarios/orders.yaml", 'scenarios: [{id: "a\\nb", turns: [a], checks: none}]')
    assert names("scenarios") == ["refund-twice"]


def test_another_configuration_or_profile(root: Path) -> None:
    (root / ".agenteval").mkdir()
    names("scenarios")  # what was read without them is not theirs
    assert names("scenarios", profile="deep") == ["deep"]
    write(root, "other.yaml", "agent: {name: third, target: 'a:b'}\n")
    assert names("agents", config="other.yaml") == ["third"]
    assert names("agents", config="gone.yaml") == []


def test_of_a_broken_file_what_can_be_read(root: Path) -> None:
    write(root, "scenarios/sub/more.yaml", "scenarios: [\n")
    assert names("scenarios") == ["refund", "return"]
    write(root, "agenteval.yaml", "agent: [\n")
    assert names("scenarios") == []


def test_no_error_garbles_the_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (SystemExit(2), RuntimeError("x")):

        def fail(*_: Any, error: BaseException = error) -> Any:
            raise error

        monkeypatch.setattr(module, "_candidates", fail)
        assert names("scenarios") == []


# ── the cache ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, root: Path) -> list[tuple[Any, Any]]:
    """Each time that the files were read. A first run was kept, so that there is a folder."""
    (root / ".agenteval").mkdir()
    found: list[tuple[Any, Any]] = []
    whole = module._load_suite

    def load(config: str | None, profile: str | None) -> dict[str, Any]:
        found.append((config, profile))
        return whole(config, profile)

    monkeypatch.setattr(module, "_load_suite", load)
    return found


def test_without_a_run_nothing_is_written(root: Path) -> None:
    names("scenarios")
    assert not (root / ".agenteval").exists()


def test_a_suite_is_read_once(root: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first = names("scenarios")
    monkeypatch.chdir(root / "scenarios" / "sub")
    assert names("scenarios") == first
    assert names("tags") == ["a", "b", "smoke"]
    assert names("metrics") == METRICS
    assert names("files", "more.yaml::") == ["more.yaml::refund-twice"]
    assert len(loads) == 1
    assert [each.name for each in (root / ".agenteval").iterdir()] == ["completion.json"]


@pytest.mark.parametrize("options", [{"profile": "deep"}, {"config": "agenteval.yaml"}])
def test_other_options_neither_read_nor_write_it(
    root: Path, loads: list[Any], options: dict[str, str]
) -> None:
    for _ in range(2):
        proposed_names("scenarios", options, "")
    assert len(loads) == 2
    assert not (root / CACHE_FILE).exists()


def test_a_suite_of_which_a_part_is_broken_is_not_kept(root: Path, loads: list[Any]) -> None:
    write(root, "scenarios/sub/more.yaml", "scenarios: [\n")
    names("scenarios")
    assert not (root / CACHE_FILE).exists()


CHANGES = {
    "a changed file": ("scenarios/orders.yaml", ORDERS.replace("return", "other!")),
    "a new file": ("scenarios/new.yaml", OTHER.replace("refund-twice", "new")),
    "a changed configuration": ("agenteval.yaml", CONFIG.replace("bot", "boot")),
    "a new configuration": ("pyproject.toml", "[project]\n"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_is_seen(root: Path, loads: list[Any], change: str) -> None:
    names("scenarios")
    assert len(loads) == 1
    write(root, *CHANGES[change])
    names("scenarios")
    assert len(loads) == 2
    names("scenarios")
    assert len(loads) == 2


def test_a_deleted_file_and_a_changed_table_are_seen(root: Path, loads: list[Any]) -> None:
    rows = "scenarios: [{id: 'r-${row.id}', turns: [a], checks: none, rows: data.csv}]\n"
    write(root, "scenarios/rows.yaml", rows)
    write(root, "scenarios/data.csv", "id\n1\n")
    assert "r-1" in names("scenarios")
    write(root, "scenarios/data.csv", "id\n1\n22\n")
    assert "r-22" in names("scenarios")
    (root / "scenarios" / "orders.yaml").unlink()
    assert "refund" not in names("scenarios")
    assert len(loads) == 3


@pytest.mark.parametrize(("seconds", "is_read"), [(599, False), (600, False), (601, True)])
def test_it_is_believed_for_ten_minutes(
    root: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch, seconds: int, is_read: bool
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    names("scenarios")
    monkeypatch.setattr(time, "time", lambda: 1000.0 + seconds)
    names("scenarios")
    assert len(loads) == 1 + is_read


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"read_at": 9e99}', '{"read_at": "x"}'])
def test_a_broken_cache_is_not_used(root: Path, loads: list[Any], text: str) -> None:
    write(root, CACHE_FILE, text)
    assert names("tags") == ["a", "b", "smoke"]
    assert len(loads) == 1
    assert json.loads((root / CACHE_FILE).read_text())["suite"]["tags"] == ["a", "b", "smoke"]


def test_a_cache_that_cannot_be_written(
    root: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr(Path, "replace", replace)
    assert names("tags") == ["a", "b", "smoke"]
    assert os.path.isdir(root / ".agenteval")
