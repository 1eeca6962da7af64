"""Models, reporters and gates of a configuration as written: unknown names, unreachable addresses, keys."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import Problem
from agenteval.core.registry import Registry
from agenteval.core.value import Value
from agenteval.files.config_checks import Registries, config_problems
from agenteval.files.yaml_source import parse_yaml


class Gate(Value):
    at_least: float
    k: int = 1


GROUP = "agenteval.tests.no_such_group"
KNOWN = Registries(
    agents=Registry("agent type", GROUP, {}),
    gates={"pass_rate": Gate},
    reporters=Registry("reporter", GROUP, {"json": object(), "junit": object()}),
)
KEY = "sk-proj-" + "Ab1Cd2Ef3Gh4" * 4


def problems(text: str) -> list[Problem]:
    document = parse_yaml(text.encode(), "c.yaml")
    return list(config_problems(document.value, document.mark, KNOWN))


def places(text: str) -> list[int]:
    return [each.place.line for each in problems(text) if each.place]


def only(text: str) -> Problem:
    (found,) = problems(text)
    assert found.place
    return found


# ── models ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "written",
    [
        "openai/gpt-5-mini",
        "{model: openai/gpt-5-mini, base_url: 'https://h.example/v1', api_key_env: MY_KEY_2}",
        "{model: openai/m, base_url: 'http://localhost:3000'}",
        "{model: openai/m, base_url: 'http://[::1]:80/v1'}",
        "{model: openai/m, base_url: ''}",
        "{model: openai/m, api_key_env: _k}",
        "{model: openai/m, extra: {anything: 1}}",
        "scripted/r.yaml",
        "local/a/b.gguf",
        # These the model of the configuration reports.
        "no-slash",
        "{}",
        "3",
        "[openai/m]",
        "{model: 3}",
        "{model: openai/m, base_url: 3, api_key_env: 3}",
    ],
)
def test_models_that_are_valid(written: str) -> None:
    assert problems(f"models:\n  judge: {written}\n") == []


@pytest.mark.parametrize(
    ("written", "line", "part", "remedy"),
    [
        pytest.param("opnai/m", 2, "'opnai'", "openai", id="unknown provider"),
        pytest.param("\n    model: opnai/m", 3, "'opnai'", "openai", id="unknown provider in a mapping"),
        pytest.param(KEY, 2, "API key", "environment", id="a key"),
        pytest.param(f"openai/{KEY}", 2, "API key", "environment", id="a key as a name"),
        pytest.param(
            "\n    model: openai/m\n    api_key_env: 1KEY", 4, "variable name", "name", id="variable"
        ),
        pytest.param("\n    model: openai/m\n    api_key_env: A-B", 4, "variable name", "name", id="hyphen"),
        pytest.param("\n    model: openai/m\n    api_key_env: ''", 4, "variable name", "name", id="empty"),
    ],
)
def test_models_that_are_refused(written: str, line: int, part: str, remedy: str) -> None:
    found = only(f"models:\n  judge: {written}\n")
    assert found.place
    assert found.place.line == line
    assert part in found.what
    assert remedy in found.remedy


@pytest.mark.parametrize(
    "url",
    [
        "localhost:3000",
        "ftp://h/v1",
        "http://",
        "https:///v1",
        "http://h:0/v1",
        "http://h:99999/",
        "http://h:port/",
        "http://[::1/",
        "text",
    ],
)
def test_addresses_that_nothing_can_be_sent_to(url: str) -> None:
    found = only(f"models:\n  user:\n    model: openai/m\n    base_url: {url!r}\n")
    assert found.place
    assert found.place.line == 4
    assert "http" in found.what


def test_secrets_are_not_shown() -> None:
    text = f"""\
models:
  judge: {KEY}
  user:
    model: openai/m
    api_key_env: {KEY}
    base_url: ftp://user:hunter2hunter2@h
"""
    found = problems(text)
    assert places(text) == [2, 6, 5]
    assert not any(secret in str(each) for each in found for secret in (KEY, "hunter2"))


def test_each_role_is_checked() -> None:
    assert places("models:\n  judge: opnai/m\n  user: opnai/m\n  other: opnai/m\n") == [2, 3, 4]
    assert places("models: text\n") == []


# ── reporters ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("reporters: [json, junit]", []),
        ("reporters: json", []),
        ("reporters: json=out.json", []),
        ("reporters: [' json = out.json']", []),
        ("reporters: [{name: json, path: x}]", []),
        ("reporters:", []),
        ("reporters: []", []),
        ("reporters: [3, {path: x}, {name: 3}]", []),
        ("reporters: jsn", [1]),
        ("reporters:\n- json\n- jsn\n- {name: junt}", [3, 4]),
        ("reporters:\n- jsn=out.json", [2]),
        ("reporters:\n- html", [2]),
    ],
)
def test_reporters(written: str, lines: list[int]) -> None:
    assert places(written) == lines


def test_what_to_write_instead_of_a_reporter() -> None:
    assert "json" in only("reporters: [jsn=x]").remedy
    assert "'jsn'" in only("reporters: [jsn=x]").what


# ── gates ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("pass_rate: {at_least: 0.9}", []),
        ("pass_rate:", []),
        ("pass_rat: {at_least: 0.9}", [(2, "'pass_rat'", "pass_rate")]),
        ("pass_rat:", [(2, "'pass_rat'", "pass_rate")]),
        ("require_calibrated: true", []),  # another check says that it is not supported yet
        ("pass_rate:\n    at_least: high", [(3, "at_least", "")]),
        ("pass_rate:\n    at_least: 1\n    kk: 2", [(4, "'kk'", "k")]),
        ("pass_rate: {}", [(2, "at_least", "")]),
    ],
)
def test_gates(written: str, found: list[tuple[int, str, str]]) -> None:
    problems_found = problems(f"gates:\n  {written}\n")
    assert [each.place.line for each in problems_found if each.place] == [line for line, _, _ in found]
    for each, (_, part, remedy) in zip(problems_found, found, strict=True):
        assert part in each.what
        assert remedy in each.remedy


def test_the_parts_of_a_configuration_in_their_order() -> None:
    text = "gates: {x: 1}\nreporters: x\nmodels: {judge: x/y}\nagent: {type: x}\n"
    assert places(text) == [4, 3, 2, 1]
    value: dict[str, Any] = {}
    assert list(config_problems(value, parse_yaml(b"{}", "c.yaml").mark, KNOWN)) == []
