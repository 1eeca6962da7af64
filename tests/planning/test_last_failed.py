"""``--last-failed`` and ``--failed-in``: which scenarios did not pass, in which run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.event import Event, RunStarted
from agenteval.files.journal import event_to_json
from agenteval.planning.last_failed import (
    FailedScenarios,
    describe_removed,
    find_last_failed,
    list_first_names,
)
from tests.support.verdict_runs import CUT, FAIL, LOST, PASS, UNSURE, Played, events_of

PLAYED = {"request": {"paths": []}}


def write_run(root: Path, run_id: str, events: Sequence[Event], day: int) -> None:
    folder = root / ".agenteval" / "runs" / run_id
    folder.mkdir(parents=True)
    first, *rest = events
    assert isinstance(first, RunStarted)
    started_at = f"2026-11-{day:02}T00:00:00Z"
    begun = first.model_copy(update={"run_id": run_id, "started_at": started_at})
    lines = [event_to_json(event) for event in (begun, *rest)]
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))


def run_of(epochs: dict[str, list[Played | None]], **more: Any) -> list[Event]:
    return events_of(epochs, **{"run": PLAYED, **more})


def test_what_did_not_pass(tmp_path: Path) -> None:
    epochs: dict[str, list[Played | None]] = {
        "good": [PASS, PASS],
        "bad": [PASS, FAIL],
        "open": [UNSURE],
        "lost": [LOST],
        "cut": [CUT],
        "never": [None],
    }
    write_run(tmp_path, "r1", run_of(epochs), 1)
    found = find_last_failed(tmp_path, None)
    assert found.run_id == "r1"
    assert {id for id, _ in found.pairings} == {"bad", "open", "lost", "cut", "never"}
    assert {agent for _, agent in found.pairings} == {"bot"}


def test_each_agent_has_its_own_failures(tmp_path: Path) -> None:
    events = run_of({"a": [FAIL]}, agents=("x", "y"))
    write_run(tmp_path, "r1", events, 1)
    assert find_last_failed(tmp_path, None).pairings == {("a", "x"), ("a", "y")}


def test_the_latest_run_or_the_named_one(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", run_of({"first": [FAIL]}), 1)
    write_run(tmp_path, "r2", run_of({"second": [FAIL]}), 2)
    assert find_last_failed(tmp_path, None).pairings == {("second", "bot")}
    assert find_last_failed(tmp_path, "r1").pairings == {("first", "bot")}
    assert find_last_failed(tmp_path, "latest").pairings == {("second", "bot")}


def test_recorded_conversations_are_not_the_latest_run(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", run_of({"a": [FAIL]}), 1)
    write_run(tmp_path, "r2", events_of({"b": [FAIL]}), 2)
    broken = tmp_path / ".agenteval" / "runs" / "r3"
    broken.mkdir()
    (broken / "events.jsonl").write_text('{"started_at":"2026-11-03T00:00:00Z", oops\n')
    listed = tmp_path / ".agenteval" / "runs" / "r4"
    listed.mkdir()
    (listed / "events.jsonl").write_text('[{"started_at":"2026-11-04T00:00:00Z"}]\n')
    assert find_last_failed(tmp_path, None).run_id == "r1"
    assert find_last_failed(tmp_path, "r2").pairings == {("b", "bot")}


def test_no_earlier_run(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as error:
        find_last_failed(tmp_path, None)
    assert not isinstance(error.value, NothingSelectedError)
    with pytest.raises(AuthorError):
        find_last_failed(tmp_path, "r9")


def test_a_journal_that_is_a_folder_is_no_earlier_run(tmp_path: Path) -> None:
    (tmp_path / ".agenteval" / "runs" / "r1" / "events.jsonl").mkdir(parents=True)
    with pytest.raises(AuthorError):
        find_last_failed(tmp_path, None)


@pytest.mark.parametrize("name", [None, "r1"])
def test_nothing_failed(tmp_path: Path, name: str | None) -> None:
    write_run(tmp_path, "r1", run_of({"a": [PASS]}), 1)
    with pytest.raises(NothingSelectedError) as error:
        find_last_failed(tmp_path, name)
    assert "r1" in str(error.value)
    assert ("latest" in str(error.value)) is (name is None)


def test_a_gate_over_all_scenarios_that_did_not_pass_is_named(tmp_path: Path) -> None:
    gates = {"pass_hat_k": {"k": 1, "at_least": 0.9, "over": "suite"}}
    write_run(tmp_path, "r1", run_of({"a": [PASS, FAIL]}, gates=gates), 1)
    with pytest.raises(NothingSelectedError) as error:
        find_last_failed(tmp_path, None)
    assert "pass_hat_k" in str(error.value)


FAILED = FailedScenarios("r1", frozenset({("b", "x"), ("a", "x"), ("a", "y")}))


@pytest.mark.parametrize(
    ("known", "removed"),
    [((), ("a", "b")), (("a",), ("b",)), (("a", "b", "c"), ()), (("c",), ("a", "b"))],
)
def test_scenarios_that_no_longer_exist(known: tuple[str, ...], removed: tuple[str, ...]) -> None:
    assert FAILED.find_removed(known) == removed


@pytest.mark.parametrize(("gone", "named"), [((), set()), (("a",), {"a"}), (("a", "b"), {"a", "b"})])
def test_the_error_names_what_is_gone(gone: tuple[str, ...], named: set[str]) -> None:
    error = FailedScenarios("r1", frozenset({("scenario-a", "x"), ("scenario-b", "x")}))
    found = error.nothing_selected_error([f"scenario-{each}" for each in gone])
    (problem,) = found.problems
    assert "r1" in problem.what
    assert {each for each in "ab" if f"scenario-{each}" in problem.what} == named
    assert ("renamed" in problem.remedy) is (len(gone) == 2)


@pytest.mark.parametrize(
    ("count", "named", "more"), [(1, 1, ""), (5, 5, ""), (6, 5, "1 more"), (1005, 5, "1,000 more")]
)
def test_only_the_first_names_are_listed(count: int, named: int, more: str) -> None:
    names = [f"<{n}>" for n in range(count)]
    for text in (list_first_names(names), describe_removed(names)):
        assert sum(name in text for name in names) == named
        assert more in text
        assert ("more" in text) is bool(more)
    assert ("are" in describe_removed(names)) is (count > 1)
