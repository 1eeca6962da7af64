"""A profile over its configuration: what it sets, what it removes, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.files.located_value import LocatedValue
from agenteval.files.profiles import layer_profile, parse_profiles
from agenteval.files.yaml_source import parse_yaml

BASE = "epochs: 3\ncache: true\nmetrics: [helpfulness]\nthresholds: {helpfulness: 3, coherence: 4}\n"


def layered(profile: str, name: str | None = "pr") -> dict[str, Any]:
    found = parse_yaml(f"{BASE}profiles: {{pr: {profile}}}".encode(), "agenteval.yaml")
    file = LocatedValue(found.value, found.mark)
    return dict(layer_profile(file, name, parse_profiles(file)).config.value)


@pytest.mark.parametrize(
    ("profile", "changed"),
    [
        ("{epochs: 1}", {"epochs": 1}),
        ("{cache: false}", {"cache": False}),
        ("{metrics: []}", {"metrics": []}),
        ("{seed: 0}", {"seed": 0}),
        ("{thresholds: {helpfulness: 4}}", {"thresholds": {"helpfulness": 4, "coherence": 4}}),
        ("{thresholds: {helpfulness: 0}}", {"thresholds": {"helpfulness": 0, "coherence": 4}}),
        ("{thresholds: {helpfulness: null}}", {"thresholds": {"coherence": 4}}),
        (
            "{thresholds: {helpfulnes: null}}",
            {"thresholds": {"helpfulness": 3, "coherence": 4, "helpfulnes": None}},
        ),
    ],
)
def test_what_a_profile_sets_goes_before_the_rest(profile: str, changed: dict[str, Any]) -> None:
    assert layered(profile) == {**layered("{}", None), **changed}


def test_null_removes_a_key() -> None:
    assert "epochs" not in layered("{epochs: null}")
    assert "profiles" not in layered("{}")


def test_an_unknown_profile() -> None:
    with pytest.raises(AuthorError, match="nightly"):
        layered("{}", "nightly")
