"""Everything that is loaded for a run: the configuration, its profile and the scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import Config, ProfileSelection
from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.selection import Filters
from agenteval.planning.request import JudgeChoice, Request
from agenteval.planning.suite import (
    Suite,
    empty_patterns,
    load_included_scenarios,
    load_scenarios,
    load_suite,
    with_profile,
)
from agenteval.running.registries import REGISTRIES

ONE = """
scenarios:
  - id: first
    tags: [quick]
    turns: [hi]
    expect: {output: {contains: x}}
  - id: second
    turns: [hi]
    expect: {output: {contains: x}}
"""
TWO = ONE.replace("first", "third").replace("second", "fourth").replace("quick", "slow")
CONFIG = "agent: {name: bot, target: 'a:b'}\nmetrics: []\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "one.yaml").write_text(ONE)
    (tmp_path / "scenarios" / "two.yml").write_text(TWO)
    (tmp_path / "agenteval.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    for name in ("AGENTEVAL_MODEL", "AGENTEVAL_MODELS__DEFAULT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


ALL = ["first", "second", "third", "fourth"]


def config(folder: Path, **more: Any) -> Config:
    return Config(root=str(folder), **more)


# ── the profile ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "chosen", "filters"),
    [
        (Filters(), {}, Filters()),
        (Filters(), {"tags": ("t",)}, Filters(tags=("t",))),
        (Filters(), {"scenarios": ("s",)}, Filters(scenarios=("s",))),
        (Filters(), {"categories": ("robustness",)}, Filters(categories=("robustness",))),
        (Filters(tags=("own",)), {"tags": ("t",)}, Filters(tags=("own",))),
        (Filters(scenarios=("own",)), {"scenarios": ("s",)}, Filters(scenarios=("own",))),
        (Filters(categories=("own",)), {"categories": ("robustness",)}, Filters(categories=("own",))),
        (Filters(tags=("own",)), {"scenarios": ("s",)}, Filters(tags=("own",), scenarios=("s",))),
        (Filters(agent="x", first=2, expression="e"), {}, Filters(agent="x", first=2, expression="e")),
    ],
)
def test_a_filter_of_the_command_line_takes_precedence(given: Filters, chosen: Any, filters: Filters) -> None:
    settings = Config(selection=ProfileSelection(**chosen))
    assert with_profile(Request(filters=given), settings).filters == filters


@pytest.mark.parametrize(
    ("flag", "chosen", "code_only", "no_judge"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
    ],
)
def test_who_switches_off_judges(flag: bool, chosen: bool, code_only: bool, no_judge: bool) -> None:
    settings = Config(selection=ProfileSelection(no_judge=chosen), code_only=code_only)
    request = Request(judging=JudgeChoice(model="m", no_judge=flag, metric=("x",)))
    found = with_profile(request, settings).judging
    assert found == JudgeChoice(model="m", no_judge=no_judge, metric=("x",))


@pytest.mark.parametrize(
    ("given", "chosen", "baseline"),
    [(None, None, None), (None, "p", "p"), ("own", "p", "own"), ("own", None, "own")],
)
def test_the_baseline(given: str | None, chosen: str | None, baseline: str | None) -> None:
    settings = Config(selection=ProfileSelection(baseline=chosen))
    assert with_profile(Request(baseline=given), settings).baseline == baseline


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "loaded", "selected"),
    [
        (Request(), ALL, ALL),
        (Request(paths=("scenarios/one.yaml",)), ALL[:2], ALL[:2]),
        (Request(paths=("scenarios/one.yaml::second",)), ALL[:2], ["second"]),
        (Request(filters=Filters(tags=("slow",))), ALL, ["third"]),
        (Request(filters=Filters(scenarios=("fourth",))), ALL, ["fourth"]),
    ],
)
def test_scenarios_that_are_loaded_and_selected(
    folder: Path, request_: Request, loaded: list[str], selected: list[str]
) -> None:
    found = load_scenarios(request_, config(folder))
    assert [each.id for each in found.loaded] == loaded
    assert [each.id for each in found.selected] == selected


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"include": ("none/*.yaml",)}, None),
        ({"include": ("none/*.yaml",), "lines": {"include": 3}, "source": "c.yaml"}, "c.yaml:3"),
        ({"include": ()}, None),
        ({"exclude": ("scenarios",)}, None),
    ],
)
def test_no_scenario_is_found(folder: Path, fields: Any, place: str | None) -> None:
    with pytest.raises(NothingSelectedError) as error:
        load_scenarios(Request(), config(folder, **fields))
    (problem,) = error.value.problems
    assert (None if problem.place is None else str(problem.place)) == place
    assert ("exclude" in problem.what) is ("exclude" in fields)
    assert ("`include` is empty" in problem.what) is (fields.get("include") == ())
    assert ("agenteval init" in problem.remedy) is ("source" not in fields)


def test_no_scenario_is_selected(folder: Path) -> None:
    with pytest.raises(NothingSelectedError):
        load_scenarios(Request(filters=Filters(tags=("none",))), config(folder))


def test_patterns_that_match_no_file(folder: Path) -> None:
    include = ("none/*.yaml", "scenarios/*.yaml", "more/*.yml")
    assert list(empty_patterns(config(folder, include=include))) == []  # by default
    written = config(folder, include=include, lines={"include": 3}, source="c.yaml")
    warnings = list(empty_patterns(written))
    assert [next(each for each in include if f"'{each}'" in text) for text in warnings] == [
        "none/*.yaml",
        "more/*.yml",
    ]
    excluded = written.model_copy(update={"exclude": ("scenarios",)})
    assert len(list(empty_patterns(excluded))) == 3


def test_all_included_scenarios_or_none_if_a_file_is_broken(folder: Path) -> None:
    found = load_included_scenarios(config(folder))
    assert found is not None
    assert [each.id for each in found] == ALL
    only = load_included_scenarios(config(folder, include=("scenarios/*.yaml",)))
    assert only is not None
    assert [each.id for each in only] == ALL[:2]
    without = load_included_scenarios(config(folder, exclude=("scenarios/two.yml",)))
    assert without is not None
    assert [each.id for each in without] == ALL[:2]
    (folder / "scenarios" / "two.yml").write_text("oops: [")
    assert load_included_scenarios(config(folder)) is None


# ── the suite ────────────────────────────────────────────────────────────────────────────────────


def loaded(**fields: Any) -> Suite:
    return load_suite(Request(**fields), REGISTRIES)


def test_a_suite(folder: Path) -> None:
    found = loaded(filters=Filters(tags=("quick",)))
    assert [each.id for each in found.scenarios] == ALL
    assert [each.id for each in found.selected_scenarios] == ["first"]
    settings = found.settings
    assert settings.config.agent is not None
    assert (settings.config.agent.name, settings.policy.judged, settings.policy.no_judge) == (
        "bot",
        (),
        False,
    )
    assert (settings.replayed_recording, settings.secrets) == (None, ())
    assert settings.recording == RecordingOptions()


def test_options_override_the_configuration(folder: Path) -> None:
    found = loaded(
        flags={"seed": 5}, judging=JudgeChoice(model="openai/m", metric=("helpfulness",), no_judge=True)
    )
    policy = found.settings.policy
    assert (policy.seed, policy.judged, policy.no_judge, policy.by_flag) == (5, ("helpfulness",), True, True)
    assert policy.model("judge") == "openai/m"


def test_a_named_configuration_and_its_profile(folder: Path) -> None:
    (folder / "other.yaml").write_text(
        "agent: {name: other, target: 'a:b'}\nmetrics: []\n"
        "profiles: {ci: {tags: [slow], no_judge: true, seed: 4}}\n"
    )
    found = loaded(config="other.yaml", profile="ci")
    assert found.settings.config.agent is not None
    assert found.settings.config.agent.name == "other"
    assert [each.id for each in found.selected_scenarios] == ["third"]
    assert (found.settings.policy.no_judge, found.settings.policy.seed) == (True, 4)
    assert found.request.filters.tags == ("slow",)
    assert loaded(config="other.yaml").selected_scenarios == loaded().selected_scenarios


def test_all_mistakes_are_reported_together(folder: Path) -> None:
    (folder / "scenarios" / "two.yml").write_text("scenarios: [{id: x, turns: [hi], oops: 1}]\n")
    (folder / "scenarios" / "one.yaml").write_text("scenarios: [{id: y, goal: Get it., checks: none}]\n")
    with pytest.raises(AuthorError) as error:
        loaded()
    texts = [str(problem) for problem in error.value.problems]
    assert any("oops" in text for text in texts)
    assert any("'y'" in text for text in texts)  # it needs a model for its user


def test_a_scenario_that_checks_nothing_is_a_mistake(folder: Path) -> None:
    (folder / "scenarios" / "two.yml").write_text("scenarios: [{id: x, turns: [hi]}]\n")
    with pytest.raises(AuthorError):
        loaded()
    more = "thresholds: {helpfulness: 3}\nmodels: {default: openai/m}\n"
    (folder / "agenteval.yaml").write_text(CONFIG + more)
    assert "x" in [each.id for each in loaded(judging=JudgeChoice(metric=("helpfulness",))).scenarios]
