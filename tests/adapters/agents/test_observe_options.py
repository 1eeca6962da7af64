"""The key ``observe``: which ways of observing go with which kind of agent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.adapters.agents.observe_options import (
    ObserveOptions,
    observation_method,
    observe_mistakes,
    parse_observe_option,
)

WAYS = {"otlp": {"http", "command"}, "openai": {"python"}}
"""Which kinds of agents have which way."""


@pytest.mark.parametrize("kind", ["http", "python", "command"])
@pytest.mark.parametrize("how", ["otlp", "openai"])
@pytest.mark.parametrize("as_mapping", [False, True])
def test_each_kind_of_agent_has_its_way(kind: str, how: str, as_mapping: bool) -> None:
    found = list(observe_mistakes({"how": how} if as_mapping else how, kind))
    assert bool(found) is (kind not in WAYS[how])
    for mistake in found:
        assert mistake.path == ("observe",)
        assert f"observe: {how}" in mistake.what
        if kind == "python":
            assert "remove" in mistake.remedy
        else:
            assert "`observe: otlp`" in mistake.remedy


@pytest.mark.parametrize("kind", ["http", "python", "command"])
def test_an_unknown_way_is_quoted(kind: str) -> None:
    (mistake,) = observe_mistakes("oltp", kind)
    assert "'oltp'" in mistake.what
    assert mistake.path == ("observe",)
    assert ("remove" in mistake.remedy) is (kind == "python")
    (mistake,) = observe_mistakes({"how": "oltp"}, kind)
    assert "'oltp'" in mistake.what


def test_a_kind_without_a_way_has_no_remedy() -> None:
    (mistake,) = observe_mistakes("oltp", "other")
    assert mistake.remedy == ""


def test_nothing_was_chosen() -> None:
    assert not list(observe_mistakes(None, "http"))
    assert not list(observe_mistakes(None, "other"))


def test_only_spans_have_settings() -> None:
    assert not list(observe_mistakes({"port": 1, "wait_s": 2}, "http"))
    assert not list(observe_mistakes({"how": "otlp", "port": 1}, "command"))
    assert not list(observe_mistakes({"how": "openai"}, "python"))
    (mistake,) = observe_mistakes({"how": "openai", "wait_s": 1, "port": 2}, "python")
    assert mistake.path == ("observe", "wait_s")
    assert "`wait_s`" in mistake.what
    (mistake,) = observe_mistakes({"port": 2, "how": "openai"}, "python")
    assert mistake.path == ("observe", "port")


@pytest.mark.parametrize(
    ("written", "how"),
    [
        (None, None),
        ("otlp", "otlp"),
        ("openai", "openai"),
        ({}, "otlp"),
        ({"port": 1}, "otlp"),
        ({"how": "openai"}, "openai"),
        (7, 7),
    ],
)
def test_the_way_that_was_written(written: Any, how: Any) -> None:
    assert observation_method(written) == how


@pytest.mark.parametrize(
    ("written", "parsed"),
    [("otlp", {"how": "otlp"}), ({"port": 1}, {"port": 1}), (None, None), (7, 7)],
)
def test_the_short_form_is_a_mapping(written: Any, parsed: Any) -> None:
    assert parse_observe_option(written) == parsed


def test_where_and_how_long_unless_it_is_written() -> None:
    options = ObserveOptions()
    assert (options.how, options.port, options.wait_s) == ("otlp", 4318, 6.0)


@pytest.mark.parametrize(
    ("key", "lowest", "highest", "below", "above"),
    [("port", 0, 65535, -1, 65536), ("wait_s", 0, 120, -0.1, 120.1)],
)
def test_the_limits_of_the_settings(key: str, lowest: Any, highest: Any, below: Any, above: Any) -> None:
    for value in (lowest, highest):
        assert getattr(ObserveOptions.model_validate({key: value}), key) == value
    for value in (below, above):
        with pytest.raises(ValidationError):
            ObserveOptions.model_validate({key: value})


def test_no_other_way_is_an_option() -> None:
    with pytest.raises(ValidationError):
        ObserveOptions.model_validate({"how": "openai"})
