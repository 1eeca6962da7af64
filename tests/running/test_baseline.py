"""``--baseline RUN``: what of an earlier run a new one is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.event import Baseline, RunStarted
from agenteval.core.score import REACHED as GOAL_REACHED
from agenteval.running import baseline as module
from agenteval.running.baseline import attach_baseline, find_baseline_successes
from agenteval.running.baseline_store import NoBaselineError
from agenteval.scoring.goals import GOAL
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played, events_of, score

REACHED = Played((score(GOAL, 1.0, label=GOAL_REACHED),))
MISSED = Played((score(GOAL, 0.0, label="not_reached"),))


def started(*scenarios: str, **more: Any) -> RunStarted:
    first = events_of({id: [PASS] for id in scenarios}, **more)[0]
    assert isinstance(first, RunStarted)
    return first


def attached(root: Path, *scenarios: str, selected: bool = False, name: str = "r1", **more: Any) -> Baseline:
    begun = started(*scenarios, **more)
    run = attach_baseline(begun, name, root, selected=selected)
    assert run.baseline is not None
    assert run == begun.model_copy(update={"baseline": run.baseline})
    return run.baseline


def test_outcomes_of_the_same_scenarios(tmp_path: Path) -> None:
    keep_run(tmp_path, "r1", events_of({"a": [PASS, FAIL, UNSURE, LOST], "b": [FAIL], "gone": [PASS]}))
    found = attached(tmp_path, "a", "b", "new")
    assert found.run_id == "r1"
    assert {agent: dict(own) for agent, own in found.outcomes.items()} == {
        "bot": {"a": (True, False, None, None), "b": (False,)}
    }
    assert (found.gone, dict(found.changed["bot"]), found.reached) == (("gone",), {}, ())
    assert set(found.effort["bot"]) == {"a", "b"}


@pytest.mark.parametrize(("selected", "gone"), [(False, ("gone", "more")), (True, ())])
def test_what_a_selection_leaves_out_is_not_gone(
    tmp_path: Path, selected: bool, gone: tuple[str, ...]
) -> None:
    keep_run(tmp_path, "r1", events_of({"gone": [PASS], "a": [PASS], "more": [PASS]}, agents=("x", "y")))
    assert attached(tmp_path, "a", selected=selected, agents=("x", "y")).gone == gone


def test_each_agent_has_its_own_outcomes(tmp_path: Path) -> None:
    keep_run(tmp_path, "r1", events_of({"a": [PASS]}, agents=("x", "y")))
    found = attached(tmp_path, "a", agents=("x", "y"))
    assert {agent: dict(own) for agent, own in found.outcomes.items()} == {
        "x": {"a": (True,)},
        "y": {"a": (True,)},
    }


def test_a_changed_scenario_is_not_compared(tmp_path: Path) -> None:
    keep_run(tmp_path, "r1", events_of({"a": [PASS], "b": [PASS]}))
    found = attached(tmp_path, "a", "b", scenarios={"b": {"turns": ("other words",)}})
    assert list(found.outcomes["bot"]) == ["a"]
    assert list(found.changed["bot"]) == ["b"]
    assert found.changed["bot"]["b"]
    assert found.gone == ()


def test_goals_that_were_reached_are_known(tmp_path: Path) -> None:
    keep_run(
        tmp_path, "r1", events_of({"a": [MISSED, REACHED], "b": [MISSED], "c": [PASS], "gone": [REACHED]})
    )
    assert attached(tmp_path, "c", "b", "a").reached == ("a",)


@pytest.mark.parametrize(("name", "facts"), [("r9", ["r9"]), ("latest", ["agenteval run"])])
def test_no_such_run(tmp_path: Path, name: str, facts: list[str]) -> None:
    if name == "r9":
        keep_run(tmp_path, "r1", events_of({"a": [PASS]}))
    with pytest.raises(AuthorError) as error:
        attach_baseline(started("a"), name, tmp_path, selected=False)
    for fact in facts:
        assert fact in str(error.value)


def test_nothing_to_compare(tmp_path: Path) -> None:
    keep_run(tmp_path, "r1", events_of({"a": [PASS]}))
    with pytest.raises(AuthorError) as error:
        attach_baseline(started("b"), "r1", tmp_path, selected=False)
    assert all(problem.what.startswith("--baseline: ") for problem in error.value.problems)


def test_the_run_of_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = keep_run(tmp_path / "elsewhere", "r7", events_of({"a": [PASS]}))
    asked: list[Any] = []

    def find(name: str, root: Path, profile: str) -> Path:
        asked.append((name, root, profile))
        if name == "merge-base:none":
            raise NoBaselineError
        return folder

    monkeypatch.setattr(module, "find_merge_base_run", find)
    assert attached(tmp_path, "a", name="merge-base:x").run_id == "r7"
    assert asked == [("merge-base:x", tmp_path, "")]
    with pytest.raises(NoBaselineError):
        attach_baseline(started("a"), "merge-base:none", tmp_path, selected=False)


def test_conversations_that_reached_the_goal(tmp_path: Path) -> None:
    keep_run(tmp_path, "r1", events_of({"a": [MISSED, REACHED, REACHED], "b": [MISSED], "other": [REACHED]}))
    find = find_baseline_successes(attached(tmp_path, "a", "b"), str(tmp_path))
    found = find("a")
    assert found is not None
    assert (found.key.scenario, found.key.epoch) == ("a", 1)
    assert find("b") is find("other") is find("unknown") is None


def test_without_a_baseline_no_goal_was_reached(tmp_path: Path) -> None:
    assert find_baseline_successes(None, str(tmp_path))("a") is None
    gone = Baseline(run_id="r9", outcomes={}, reached=("a",))
    assert find_baseline_successes(gone, str(tmp_path))("a") is None
