"""The commands that reproduce a failure: nothing of the first command is lost but its selection."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from agenteval.core.event import Baseline
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.reporters.words.rerun_commands import (
    _run_options,
    _without_selection,
    quote_word,
    rerun_failures_command,
    rescore_sample_command,
    score_options,
)
from tests.support.plans import begun


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        (["score", "a.jsonl", "-s", "one"], ["score", "a.jsonl"]),
        (["score", "-sone", "a.jsonl"], ["score", "a.jsonl"]),
        (["score", "--scenario=one", "a.jsonl"], ["score", "a.jsonl"]),
        (["score", "--scenario", "one", "a.jsonl"], ["score", "a.jsonl"]),
        (["score", "-s", "-s", "a.jsonl"], ["score", "a.jsonl"]),
        (["score", "--scenarios", "s", "a.jsonl"], ["score", "--scenarios", "s", "a.jsonl"]),
        (["score", "-c", "s", "a.jsonl"], ["score", "-c", "s", "a.jsonl"]),
    ],
)
def test_the_selection_is_left_out_in_each_form(command: list[str], rest: list[str]) -> None:
    assert list(_without_selection(command)) == rest


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["score", "a.jsonl", "-m", "openai/x"], ["-m", "openai/x"]),
        (["score", "a.jsonl", "-mopenai/x"], ["-mopenai/x"]),
        (["score", "--model=openai/x", "-c", "c.yaml"], ["--model=openai/x", "-c", "c.yaml"]),
        (["score", "-v", "a.jsonl", "-s", "one"], []),
        (["score", "--no-judge", "a.jsonl"], ["--no-judge"]),
        (["score", "--max-rate", "x=0.1", "a.jsonl"], ["--max-rate", "x=0.1"]),
    ],
)
def test_the_options_that_decide_what_is_scored_are_kept(command: list[str], options: list[str]) -> None:
    assert list(score_options(command)) == options


@pytest.mark.parametrize(
    ("request_", "options"),
    [
        ({}, []),
        ({"flags": {"seed": 0}}, ["--seed", "0"]),
        ({"flags": {"cache": False}}, ["--no-cache"]),
        (
            {"named_config": "c.yaml", "profile": "pr", "epochs": 3},
            ["-c", "c.yaml", "--profile", "pr", "--epochs", "3"],
        ),
        (
            {"judging": {"model": "openai/x", "metric": ["a", "b"]}},
            ["-m", "openai/x", "--metric", "a", "--metric", "b"],
        ),
        ({"judging": {"no_judge": True}}, ["--no-judge"]),
        ({"cwd": "/p", "replay": "/p/tape"}, ["--replay", "tape"]),
    ],
)
def test_the_options_of_the_run_are_repeated(request_: dict[str, Any], options: list[str]) -> None:
    assert list(_run_options(begun().model_copy(update={"request": request_}))) == options


@pytest.mark.parametrize(
    ("name", "found", "repeated"),
    [
        ("latest", "r7", "r7"),
        ("previous", "r7", "r7"),
        ("nightly", "r7", "nightly"),
        ("r7", "r7", "r7"),
        ("base.jsonl", "r7", "base.jsonl"),
        ("latest", None, "latest"),
        (None, "r7", None),
        (None, None, None),
    ],
)
def test_a_baseline_is_named_by_what_still_means_it(
    name: str | None, found: str | None, repeated: str | None
) -> None:
    baseline = Baseline(run_id=found, outcomes={}) if found else None
    run = begun().model_copy(update={"request": {"baseline": name}, "baseline": baseline})
    words = ["--baseline", repeated] if repeated else []
    assert list(_run_options(run)) == words
    assert rerun_failures_command(run, "r").split() == ["agenteval", "run", "--failed-in", "r", *words]


def test_a_word_is_quoted_for_a_shell() -> None:
    assert quote_word("order") == "order"
    assert quote_word("two words") == "'two words'"
    assert "\x1b" not in quote_word("a\x1b[31mb")


@pytest.mark.parametrize(
    ("record", "file"),
    [("log.jsonl:3", "log.jsonl"), ("<stdin>:3", "-"), ("<odd> name.jsonl:3", "<odd> name.jsonl")],
)
def test_a_recorded_conversation_is_scored_again_from_its_file(record: str, file: str) -> None:
    key = SampleKey(scenario="c-17", agent="bot")
    stop = Stop(reason=StopReason.RECORDED, detail=record)
    sample = SampleReport(key, (), stop, (), (), (), (), Trajectory())
    assert shlex.split(rescore_sample_command(key, sample, ())) == ["agenteval", "score", file, "-s", "c-17"]
