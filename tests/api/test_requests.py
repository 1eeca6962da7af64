"""The arguments of ``run`` become the request that the command line makes of its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.api.requests import GivenAgent, RunOptions, choose_agent, make_request, split_sources
from agenteval.core.errors import AuthorError
from agenteval.core.selection import Filters
from agenteval.planning.request import JudgeChoice


def request_of(scenarios: Any = None, **options: Any) -> Any:
    given: RunOptions = options  # type: ignore[assignment]
    return make_request(scenarios, "run", given)


@pytest.mark.parametrize(
    ("agent", "chosen"),
    [
        (None, GivenAgent()),
        ("support", GivenAgent(name="support")),
        ("bot.py:agent", GivenAgent(entry={"target": "bot.py:agent"})),
        ("shop.bot:Bot.chat", GivenAgent(entry={"target": "shop.bot:Bot.chat"})),
        ("http://localhost:8000/chat", GivenAgent(entry={"endpoint": "http://localhost:8000/chat"})),
        ("https://bot.example", GivenAgent(entry={"endpoint": "https://bot.example"})),
        ({"command": ("node", "bot.js")}, GivenAgent(entry={"command": ["node", "bot.js"]})),
    ],
)
def test_what_an_agent_means(agent: Any, chosen: GivenAgent) -> None:
    assert choose_agent(agent) == chosen


def test_an_object_runs_in_this_process_even_if_the_configuration_names_an_interpreter() -> None:
    callable_entry = choose_agent(lambda messages: "Hi").entry
    assert callable_entry is not None
    assert callable_entry["interpreter"] is None
    assert callable_entry["target"].partition(":")[0] == "agenteval.api.given_objects"
    object_entry = choose_agent(object()).entry
    assert object_entry is not None
    assert set(object_entry["target"]) == {"object"}


@pytest.mark.parametrize(
    ("sources", "paths", "values"),
    [
        ((), (), ()),
        ("a.yaml", ("a.yaml",), ()),
        (Path("a.yaml"), ("a.yaml",), ()),
        ({"id": "x"}, (), ({"id": "x"},)),
        (["a.yaml", {"id": "x"}, Path("b")], ("a.yaml", "b"), ({"id": "x"},)),
    ],
)
def test_paths_and_scenarios_are_told_apart(sources: Any, paths: Any, values: Any) -> None:
    assert split_sources(sources) == (paths, values)


def test_every_option_reaches_the_request() -> None:
    request = request_of(
        "scenarios/",
        agent="support",
        ids="refund",
        tags=["smoke", "slow"],
        categories=["robustness"],
        keyword="late",
        first=3,
        sample=2,
        last_failed=True,
        failed_in="r1",
        model="openai/gpt-5-mini",
        metrics=["helpfulness"],
        no_judge=True,
        epochs=4,
        concurrency=5,
        seed=0,
        fail_fast=True,
        cache=False,
        baseline="latest",
        keep_baseline=True,
        config=Path("other.yaml"),
        profile="pr",
        overrides={"judge": {"votes": 3}},
    )
    assert request.paths == ("scenarios/",)
    assert request.filters == Filters(
        ("refund",), ("smoke", "slow"), ("robustness",), "support", "late", 3, 2
    )
    assert request.judging == JudgeChoice("openai/gpt-5-mini", True, ("helpfulness",))
    assert request.flags == {"concurrency": 5, "seed": 0, "cache": False}
    assert (request.epochs, request.fail_fast, request.baseline, request.keep_baseline) == (
        4,
        True,
        "latest",
        True,
    )
    assert (request.last_failed, request.failed_in) == (True, "r1")
    assert (request.config, request.profile) == ("other.yaml", "pr")
    assert request.overrides == {"judge": {"votes": 3}}
    assert request.agent is None


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    assert request_of(replay=tmp_path / "x.json").recording.replay == tmp_path / "x.json"
    assert request_of().recording.replay is None


def test_what_is_none_is_not_given() -> None:
    assert request_of(epochs=None, agent=None, tags=None).filters == Filters()


def test_the_command_repeats_the_request() -> None:
    request = request_of("a.yaml", ids=["x"], tags=["t"], keyword="k", epochs=2, model="p/m", no_judge=True)
    assert request.command == (
        *("run", "a.yaml", "-s", "x", "--tag", "t", "-k", "k", "-m", "p/m", "--epochs", "2", "--no-judge"),
    )


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"epochs": 0}, ["epochs", "0"]),
        ({"first": -1}, ["first", "-1"]),
        ({"concurrency": "2"}, ["concurrency", "'2'"]),
        ({"tags": [1]}, ["tags", "1"]),
        *(({name: True}, [name, "True"]) for name in ("epochs", "first", "sample", "concurrency")),
        *(({name: 1.0}, [name, "1.0"]) for name in ("epochs", "first", "sample", "concurrency")),
        *(({name: 5}, [name, "5"]) for name in ("ids", "tags", "categories", "metrics")),
        *(({name: [b"x"]}, [name, "b'x'"]) for name in ("ids", "tags", "categories", "metrics")),
        *(({name: True}, [name, "True"]) for name in ("ids", "tags", "categories", "metrics")),
        *(({name: 5}, [name, "5"]) for name in ("keyword", "model", "profile", "failed_in", "baseline")),
        *(({name: 5}, [name, "5"]) for name in ("config", "record", "replay", "overrides")),
        *(
            ({name: "no"}, [name, "'no'"])
            for name in ("last_failed", "no_judge", "fail_fast", "keep_baseline", "progress")
        ),
        ({"overrides": [1]}, ["overrides", "[1]"]),
        ({"categories": ["capabilty"]}, ["capabilty", "capability"]),
    ],
)
def test_values_that_no_option_takes_are_refused(options: Any, facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        request_of(**options)
    assert all(fact in str(error.value) for fact in facts)


@pytest.mark.parametrize("sources", [5, True, [5], object()])
def test_scenarios_are_paths_and_mappings(sources: Any) -> None:
    with pytest.raises(AuthorError, match="scenarios"):
        request_of(sources)


def test_what_may_be_iterated_may_be_given() -> None:
    request = request_of((each for each in ["a.yaml"]), ids=(each for each in "ab"), tags={"t"}, metrics=())
    assert (request.paths, request.filters.scenarios, request.filters.tags) == (
        ("a.yaml",),
        ("a", "b"),
        ("t",),
    )
    assert request_of(failed_in=Path("runs/r"), baseline=Path("runs/b")).failed_in == "runs/r"


def test_an_unknown_argument_is_a_type_error_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"run\(\).*epoch.*epochs"):
        request_of(epoch=1)
