"""Which samples are played."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import Config
from agenteval.core.errors import NothingSelectedError
from agenteval.core.marked_secrets import MarkedSecrets
from agenteval.core.scenario import Scenario
from agenteval.core.selection import Filters
from agenteval.planning.judge_setup import Metrics
from agenteval.planning.last_failed import FailedScenarios
from agenteval.planning.plan_resolution import suite_policy
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import SelectedSamples, find_removed_failures, select
from agenteval.planning.suite import Settings, Suite
from tests.support.verdict_runs import FAIL, GOAL, GOALS, PASS, events_of

AGENTS = {"agents": {"other": {"name": "other", "target": "a:b"}}}
CHECKED = {"turns": ["hi"], "expect": {"output": {"contains": "x"}}}


def scenario(id: str, **fields: Any) -> Scenario:
    return Scenario.model_validate({"id": id, "source": f"s/{id}.yaml:1", **CHECKED, **fields})


def suite(
    *scenarios: Scenario, request: Request | None = None, selected: Sequence[str] | None = None, **config: Any
) -> Suite:
    settings = Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **AGENTS, **config})
    policy = suite_policy(settings, [GOALS], [GOALS])
    metrics = Metrics({GOAL: GOALS}, (GOALS,))
    return Suite(
        Settings(settings, settings, (), metrics, policy, RecordingOptions(), None, MarkedSecrets({}, {})),
        request or Request(),
        scenarios,
        tuple(each for each in scenarios if selected is None or each.id in selected),
    )


def keys(found: SelectedSamples) -> list[tuple[str, str, int]]:
    return [(sample.key.scenario, sample.key.agent, sample.key.epoch) for sample in found.samples]


A, B, C = scenario("a"), scenario("b", epochs=2), scenario("c", agent="other")


def test_everything_is_played_by_default() -> None:
    found = select(suite(A, B, C))
    assert keys(found) == [("a", "bot", 0), ("b", "bot", 0), ("b", "bot", 1), ("c", "other", 0)]
    assert [each.id for each in found.scenarios] == ["a", "b", "c"]
    assert list(found.agents) == ["bot", "other"]
    assert (found.needs_model, found.remarks, found.earlier_visibility) == ((), (), {})
    assert found.unselected_scenarios == (A, B, C)


def test_only_the_selected_scenarios_and_the_agents_that_play_them() -> None:
    found = select(suite(A, B, C, selected=["c"]))
    assert keys(found) == [("c", "other", 0)]
    assert list(found.agents) == ["other"]
    assert found.unselected_scenarios == (A, B, C)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(epochs=1), ["a", "b", "c"]),
        (Request(epochs=1, filters=Filters(first=2)), ["a", "b"]),
        (Request(epochs=1, filters=Filters(first=9)), ["a", "b", "c"]),
        (Request(epochs=1, pairings=frozenset({("a", "bot"), ("c", "bot")})), ["a"]),
        (Request(epochs=1, pairings=frozenset({("a", "bot"), ("c", "other")})), ["a", "c"]),
    ],
)
def test_requested_parts(request_: Request, expected: list[str]) -> None:
    assert [id for id, _, _ in keys(select(suite(A, B, C, request=request_)))] == expected


def test_a_number_of_epochs_and_an_agent_from_the_command_line() -> None:
    found = select(suite(A, request=Request(epochs=3, filters=Filters(agent="other"))))
    assert keys(found) == [("a", "other", 0), ("a", "other", 1), ("a", "other", 2)]
    assert list(found.agents) == ["other"]


def test_scenarios_are_drawn_whole_and_by_the_seed() -> None:
    many = [scenario(f"s{n}", epochs=2) for n in range(20)]

    def drawn(seed: int) -> list[str]:
        request = Request(filters=Filters(sample=3))
        return [id for id, _, _ in keys(select(suite(*many, request=request, seed=seed)))]

    assert len(drawn(1)) == 6
    assert len(set(drawn(1))) == 3
    assert drawn(1) == drawn(1)
    assert any(drawn(1) != drawn(seed) for seed in range(2, 6))


# ── code only ────────────────────────────────────────────────────────────────────────────────────

SIMULATED = {"turns": None, "goal": "Get it."}


def test_scenarios_that_need_a_model_are_left_out() -> None:
    simulated = scenario("sim", **SIMULATED)
    criteria = scenario("crit", expect={"criteria": ["x"]})
    found = select(suite(A, simulated, criteria, code_only=True))
    assert [each.id for each in found.scenarios] == ["a"]
    assert found.needs_model == ("sim", "crit")
    assert len(found.remarks) == 1
    assert select(suite(A, simulated, criteria)).needs_model == ()


def test_only_scenarios_that_need_a_model() -> None:
    with pytest.raises(NothingSelectedError):
        select(suite(scenario("sim", **SIMULATED), code_only=True))


@pytest.mark.parametrize(("number", "named"), [(5, 5), (6, 5)])
def test_the_first_scenarios_that_need_a_model_are_named(number: int, named: int) -> None:
    left_out = [scenario(f"sim{n}", **SIMULATED) for n in range(number)]
    (remark,) = select(suite(A, *left_out, code_only=True)).remarks
    assert sum(each.id in remark for each in left_out) == named
    assert ("…" in remark) is (number > named)


# ── remarks ──────────────────────────────────────────────────────────────────────────────────────


def test_a_misspelt_tool_is_remarked_if_its_scenario_is_selected() -> None:
    forbidden = {"tool_calls": {"forbidden": [{"name": "send_emial"}]}}
    odd = scenario("odd", tools={"send_email": {"returns": 1}}, expect=forbidden)
    assert len(select(suite(A, odd)).remarks) == 1
    assert select(suite(A, odd, selected=["a"])).remarks == ()


def test_a_pattern_without_files_is_remarked_unless_paths_are_named(tmp_path: Path) -> None:
    config = {"include": ["x/*.yaml"], "root": str(tmp_path), "lines": {"include": 2}}
    assert len(select(suite(A, **config)).remarks) == 1
    assert select(suite(A, request=Request(paths=("a.yaml",)), **config)).remarks == ()


# ── what else the suite may contain ──────────────────────────────────────────────────────────────

WRITTEN = """
scenarios:
  - id: rest
    turns: [hi]
    goal: Get it.
    expect: {output: {contains: x}}
"""


@pytest.mark.parametrize(
    ("paths", "config", "written", "unselected"),
    [
        ((), {"thresholds": {GOAL: 0.5}}, WRITTEN, ["a"]),
        (("a.yaml",), {}, WRITTEN, ["a"]),
        (("a.yaml",), {"thresholds": {GOAL: 0.5}}, WRITTEN, ["a", "rest"]),
        (("a.yaml",), {"thresholds": {GOAL: 0.5}}, "oops: [", None),
        (("a.yaml",), {"gates": {"robustness": 0.9}}, WRITTEN, ["a", "rest"]),
        (("a.yaml",), {"gates": {"steps": {"max": 3}}}, WRITTEN, ["a"]),
    ],
)
def test_scenarios_that_the_suite_may_contain(
    tmp_path: Path, paths: tuple[str, ...], config: Any, written: str, unselected: list[str] | None
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "rest.yaml").write_text(written)
    found = select(suite(A, request=Request(paths=paths), root=str(tmp_path), **config))
    ids = None if found.unselected_scenarios is None else [each.id for each in found.unselected_scenarios]
    assert ids == unselected


# ── failures of an earlier run ───────────────────────────────────────────────────────────────────


def write_run(root: Path, **epochs: Any) -> None:
    from agenteval.files.journal import event_to_json

    folder = root / ".agenteval" / "runs" / "r1"
    folder.mkdir(parents=True)
    events = events_of(epochs, run={"request": {"paths": []}})
    (folder / "events.jsonl").write_text("".join(f"{event_to_json(event)}\n" for event in events))


def test_only_what_failed_is_played_again(tmp_path: Path) -> None:
    write_run(tmp_path, a=[FAIL], b=[PASS, PASS])
    found = select(suite(A, B, request=Request(last_failed=True), root=str(tmp_path)))
    assert keys(found) == [("a", "bot", 0)]
    assert found.remarks == ()


def test_failures_that_are_gone_are_remarked(tmp_path: Path) -> None:
    write_run(tmp_path, a=[FAIL], gone=[FAIL])
    found = select(suite(A, B, request=Request(last_failed=True), root=str(tmp_path)))
    assert keys(found) == [("a", "bot", 0)]
    (remark,) = found.remarks
    assert "gone" in remark


def test_no_selected_scenario_failed(tmp_path: Path) -> None:
    write_run(tmp_path, a=[FAIL])
    for loaded, selected in (((B,), None), ((A, B), ["b"])):
        with pytest.raises(NothingSelectedError):
            select(suite(*loaded, request=Request(last_failed=True), root=str(tmp_path), selected=selected))


@pytest.mark.parametrize(
    ("paths", "written", "gone"),
    [
        ((), WRITTEN, ("b", "rest")),
        (("a.yaml",), WRITTEN, ("b",)),
        (("a.yaml",), "oops: [", ()),
    ],
)
def test_failures_are_gone_if_no_file_has_them(
    tmp_path: Path, paths: tuple[str, ...], written: str, gone: tuple[str, ...]
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "rest.yaml").write_text(written)
    failed = FailedScenarios("r1", frozenset({("a", "bot"), ("b", "bot"), ("rest", "bot")}))
    config = Config(root=str(tmp_path))
    assert find_removed_failures(failed, Request(paths=paths), config, [A]) == gone
    assert find_removed_failures(failed, Request(paths=paths), config, [A, B, scenario("rest")]) == ()


# ── visibility ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "selected", "looks_back"),
    [
        (Request(), None, False),
        (Request(), ["a"], True),
        (Request(paths=("a.yaml",)), None, True),
        (Request(filters=Filters(first=1)), None, True),
        (Request(filters=Filters(agent="other")), None, False),
        (Request(paths=("a.yaml",), visibility={}), None, False),
    ],
)
def test_earlier_runs_are_read_only_for_a_part(
    request_: Request, selected: Any, looks_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def look(root: Path, public: Config, names: Any) -> dict[str, Any]:
        asked.append(sorted(names))
        return {}

    monkeypatch.setattr("agenteval.planning.earlier_visibility.earlier_visibility", look)
    select(suite(A, B, request=request_, selected=selected))
    assert asked == ([["bot"]] if looks_back else [])
