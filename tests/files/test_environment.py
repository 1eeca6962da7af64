"""How placeholders are escaped, and which strings of a configuration are secrets: those of variables by
place or by name, and literal ones."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.files.environment import expand_variables, find_config_secrets, mask_config
from agenteval.files.located_value import LocatedValue
from agenteval.files.yaml_source import parse_yaml

PLACES = {
    "header": "agent: {headers: {X: '%s'}}",
    "endpoint": "agents: {a: {endpoint: '%s'}}",
    "request": "agent: {request: {x: '%s'}}",
    "poll": "agent: {poll: {url: '%s'}}",
    "name": "agent: {name: '%s'}",
}


def expand(text: str, **environ: str) -> str:
    found = parse_yaml(text.encode(), "agenteval.yaml")
    problems: list[Any] = []
    expanded = expand_variables(LocatedValue(found.value, found.mark), environ, problems)
    assert not problems
    value: Any = expanded.value
    while isinstance(value, dict):
        (value,) = value.values()
    return str(value)


@pytest.mark.parametrize(
    ("place", "written", "expanded"),
    [
        # What is filled in later stays as it is written.
        ("header", "s ${session}", "s ${session}"),
        ("header", "$${x} ${session}", "$${x} ${session}"),
        ("header", "$${session}", "$${session}"),
        ("header", "${V}", "a$${session}"),
        ("endpoint", "http://h/$${session}", "http://h/$${session}"),
        ("request", "$${x} ${message}", "$${x} ${message}"),
        ("request", "${V}", "a$${session}"),
        ("poll", "/j/${job}", "/j/${job}"),
        ("poll", "/j/$${job}", "/j/$${job}"),
        # What is not is written out.
        ("header", "$${x}", "${x}"),
        ("header", "$$${x} $", "$${x} $"),
        ("header", "${W}", "a${x}"),
        ("header", "${NONE:-b}", "b"),
        ("header", "${NONE:-}", ""),
        ("header", "${EMPTY:-b}", "b"),  # as in a shell
        ("header", "${EMPTY:-}", ""),
        ("header", "${EMPTY}", ""),
        ("header", "x${EMPTY}y ${EMPTY:-b}", "xy b"),
        ("header", "${SPACE:-b}", " "),
        ("header", "${ZERO:-b}", "0"),
        ("header", "${X:-b}", "a"),
        ("endpoint", "http://${EMPTY:-h}:80", "http://h:80"),
        ("name", "${EMPTY:-b}", "b"),
        ("endpoint", "http://h/$${job}", "http://h/${job}"),
        ("name", "$${session} ${V}", "${session} a${session}"),
    ],
)
def test_what_is_escaped_is_never_filled_in(place: str, written: str, expanded: str) -> None:
    values = {"V": "a${session}", "W": "a${x}", "X": "a", "EMPTY": "", "SPACE": " ", "ZERO": "0"}
    assert expand(PLACES[place] % written, **values) == expanded


TEAM, KEY = "value-of-the-team", "value-of-the-key"


def secrets_in(text: str) -> set[str]:
    found = parse_yaml(text.encode(), "agenteval.yaml")
    problems: list[Any] = []
    expanded = expand_variables(
        LocatedValue(found.value, found.mark), {"TEAM": TEAM, "MY_API_KEY": KEY}, problems
    )
    assert not problems
    return set(find_config_secrets(expanded.value))


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("agent: {headers: {X-Team: '${TEAM}'}}", {TEAM}),  # by its place
        ("agent: {policy: 'Use ${MY_API_KEY}.'}", {KEY}),  # by its name
        ("agent: {policy: 'You are ${TEAM}.'}", set()),
        ("agent: {body: {team: '${TEAM}'}}", {TEAM}),
        ("agent: {endpoint: 'https://${TEAM}.example'}", {TEAM}),
        (
            "agent: {headers: {Authorization: Bearer literal-key-1}}",
            {"Bearer literal-key-1", "literal-key-1"},
        ),
        ("agent: {headers: {X-Team: literal-team}}", set()),
        ("agent: {body: {api_key: literal-key-1}}", {"literal-key-1"}),
        ("agent: {endpoint: 'https://x.example?token=literal-key-1'}", {"literal-key-1"}),
        ("agent: {endpoint: 'https://literal-key-1@x.example/y'}", {"literal-key-1"}),
        ("agent: {endpoint: 'https://literal-key-1:@x.example/y'}", {"literal-key-1"}),
        ("agent: {endpoint: 'https://a-user:literal-key-1@x.example/y'}", {"literal-key-1"}),
        ("agent: {endpoint: 'https://x.example/y@z'}", set()),
        ("agent: {endpoint: 'https://x.example/?q=//literal-text'}", set()),
        ("models: {default: {base_url: 'https://literal-key-1@x.example'}}", {"literal-key-1"}),
        ("agents: {a: {endpoint: 'https://${TEAM}@x.example'}}", {TEAM}),
        ("agent: {policy: 'https://literal-key-1@x.example'}", set()),
    ],
)
def test_the_secrets_of_a_configuration(text: str, secrets: set[str]) -> None:
    assert secrets_in(text) == secrets


@pytest.mark.parametrize(
    "address",
    [
        "https://{}@x.example/y",
        "https://{}:@x.example/y",
        "https://a-user:{}@x.example",
        "https://x.example?api_key={}",
        "https://x.example/?a=1&access_token={}#b",
    ],
)
@pytest.mark.parametrize("place", ["agent: {{endpoint: '{}'}}", "models: {{judge: {{base_url: '{}'}}}}"])
def test_what_is_masked_in_an_address_is_a_secret_everywhere(address: str, place: str) -> None:
    text = place.format(address.format("literal-key-1"))
    assert secrets_in(text) == {"literal-key-1"}
    assert "literal-key-1" not in str(mask_config(parse_yaml(text.encode(), "agenteval.yaml").value))
