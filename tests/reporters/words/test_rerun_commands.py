"""The commands that reproduce a failure: nothing of the first command is lost but its selection."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.reporters.words.rerun_commands import (
    _run_options,
    _without_selection,
    quote_word,
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


def test_a_word_is_quoted_for_a_shell() -> None:
    assert quote_word("order") == "order"
    assert quote_word("two words") == "'two words'"
    assert "\x1b" not in quote_word("a\x1b[31mb")
