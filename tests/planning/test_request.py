"""What was requested on the command line, and what is restored of it when a run is resumed."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import Config
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.selection import Filters
from agenteval.planning.request import JudgeChoice, Request, restore_request
from agenteval.planning.shards import ShardNumber
from tests.support.plans import begun


@pytest.mark.parametrize(
    ("choice", "flags"),
    [
        (JudgeChoice(), {}),
        (JudgeChoice(model="openai/m"), {"models": {"default": "openai/m"}}),
        (JudgeChoice(metric=("b", "a")), {"metrics": ["b", "a"]}),
        (
            JudgeChoice(model="openai/m", metric=("a",), no_judge=True),
            {"models": {"default": "openai/m"}, "metrics": ["a"]},
        ),
    ],
)
def test_the_keys_that_judge_options_set(choice: JudgeChoice, flags: dict[str, Any]) -> None:
    assert choice.flags == flags


def test_nothing_is_asked_for_by_default() -> None:
    request, judging = Request(), JudgeChoice()
    assert (request.fail_fast, request.keep_baseline, request.last_failed) == (False, False, False)
    assert (request.epochs, request.baseline, request.resume, request.failed_in) == (None, None, None, None)
    assert (request.pairings, request.visibility, request.options_given) == (None, None, ())
    assert (judging.model, judging.no_judge, judging.metric) == (None, False, ())
    assert request.cwd == str(Path.cwd())


PAIRS = frozenset({("a", "bot")})


@pytest.mark.parametrize(
    ("given", "partial", "selects_failed"),
    [
        ({}, False, False),
        ({"filters": Filters(agent="x")}, False, False),
        ({"filters": Filters(agent="x", tags=("t",))}, True, False),
        ({"filters": Filters(first=1)}, True, False),
        ({"filters": Filters(sample=1)}, True, False),
        ({"filters": Filters(expression="a")}, True, False),
        ({"paths": ("a.yaml",)}, True, False),
        ({"last_failed": True}, True, True),
        ({"failed_in": "r"}, True, True),
        ({"failed_in": ""}, True, True),
        ({"pairings": PAIRS}, True, False),
        ({"pairings": frozenset()}, False, False),
        ({"epochs": 3, "fail_fast": True, "baseline": "b"}, False, False),
    ],
)
def test_whether_only_a_part_is_requested(given: dict[str, Any], partial: bool, selects_failed: bool) -> None:
    request = Request(**given)
    assert (request.is_partial, request.selects_failed) == (partial, selects_failed)


FULL = Request(
    shard=ShardNumber(2, 3),
    faults="timeouts,errors",
    variants="typos,case",
    paths=("/s/a.yaml", "/b.yaml"),
    config="c.yaml",
    profile="ci",
    filters=Filters(scenarios=("s",), tags=("t",), categories=("c",), agent="x", expression="e", first=2),
    judging=JudgeChoice(model="openai/m", no_judge=True, metric=("m",)),
    flags={"seed": 3},
    epochs=4,
    fail_fast=True,
    baseline="base",
    keep_baseline=True,
    last_failed=False,
    scenarios=({"id": "s"},),
    agent={"target": "bot.py:agent"},
    overrides={"judge": {"votes": 3}},
    recording=RecordingOptions(record=Path("/r.json"), replay=Path("/p.json")),
    cwd="/home",
)


def test_a_request_as_json() -> None:
    written = FULL.to_json(Config(source="agenteval.yaml"))
    assert written["paths"] == ["/s/a.yaml", "/b.yaml"]
    assert (written["config"], written["named_config"]) == ("/home/agenteval.yaml", "c.yaml")
    assert (written["record"], written["replay"]) == ("/r.json", "/p.json")
    assert (written["last_failed"], written["cwd"]) == (False, "/home")
    assert (written["profile"], written["epochs"], written["fail_fast"]) == ("ci", 4, True)
    assert (written["baseline"], written["flags"]) == ("base", {"seed": 3})
    assert (written["keep_baseline"], bool(Request().to_json(Config())["keep_baseline"])) == (True, False)
    assert (written["filters"]["first"], written["judging"]["model"]) == (2, "openai/m")
    bare = Request().to_json(Config())
    assert (bare["config"], bare["record"], bare["replay"]) == (None, None, None)
    assert Request(failed_in="r").to_json(Config())["last_failed"] is True
    assert Request(last_failed=True).to_json(Config())["last_failed"] is True


def test_paths_are_relative_to_the_folder_of_the_request(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    request = Request(paths=("a.yaml",), cwd=str(tmp_path))
    assert request.to_json(Config())["paths"] == [str(tmp_path / "a.yaml")]


def restored(request: Request) -> Request:
    keys = [SampleKey(scenario="a", agent="x"), SampleKey(scenario="b", agent="y")]
    run = begun(scenarios=[Scenario(id="a"), Scenario(id="b")], keys=keys)
    written = request.to_json(Config(source="agenteval.yaml"))
    written["filters"]["tags"] = list(written["filters"]["tags"])
    written["judging"]["metric"] = list(written["judging"]["metric"])
    return restore_request(run.model_copy(update={"request": written}))


def test_a_restored_request_asks_for_the_same() -> None:
    found = restored(FULL)
    assert found.filters == FULL.filters
    assert found.judging == FULL.judging
    assert (found.flags, found.epochs, found.fail_fast) == ({"seed": 3}, 4, True)
    assert (found.baseline, found.profile) == ("base", "ci")
    assert found.config == "/home/agenteval.yaml"
    assert found.paths == ("/s/a.yaml", "/b.yaml")
    assert found.pairings is None
    assert found.last_failed is False


NOT_RESTORED = {
    "recording",  # replayed again, but not continued
    "config",  # its absolute path
    *("failed_in", "pairings", "changed_files"),  # the selection is that of the plan
    *(
        "resume",
        "backend",
        "visibility",
        "options_given",
        "command",
        "cwd",
    ),  # those of the command that resumes
}


def test_every_field_of_a_request_is_restored_or_belongs_to_the_new_command() -> None:
    found, bare = restored(FULL), restored(Request())
    for each in fields(Request):
        if each.name in NOT_RESTORED:
            continue
        written = getattr(FULL, each.name)
        assert getattr(found, each.name) == written, each.name
        if each.name != "last_failed":
            assert getattr(bare, each.name) == getattr(Request(), each.name) != written, each.name


@pytest.mark.parametrize("name", ["keep_baseline", "scenarios", "agent", "overrides", "profile"])
def test_runs_of_older_releases_lack_some_fields(name: str) -> None:
    run = begun(scenarios=[Scenario(id="a")], keys=[SampleKey(scenario="a", agent="x")])
    written = FULL.to_json(Config(source="agenteval.yaml"))
    del written[name]
    found = restore_request(run.model_copy(update={"request": written}))
    assert getattr(found, name) == getattr(Request(), name)


def test_a_recording_is_replayed_again_but_not_continued() -> None:
    assert restored(FULL).recording == RecordingOptions(replay=Path("/p.json"))
    assert restored(Request()).recording == RecordingOptions()


@pytest.mark.parametrize("request_", [Request(last_failed=True), Request(failed_in="r")])
def test_failures_that_were_rerun_are_those_of_the_plan(request_: Request) -> None:
    found = restored(request_)
    assert found.pairings == {("a", "x"), ("b", "y")}
    assert found.last_failed is True
    assert found.failed_in is None
