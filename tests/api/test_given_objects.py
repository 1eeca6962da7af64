"""Objects that are given in Python: their names, and the plain values that a file could contain."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agenteval.api import given_objects
from agenteval.api.given_objects import register, to_plain
from agenteval.core.errors import AuthorError, Place

PLACE = Place("<scenarios>", 2)


def found(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def test_an_object_is_found_by_its_name_and_has_only_one() -> None:
    agent, other = object(), object()
    assert found(register(agent, "agent")) is agent
    assert register(agent, "agent") == register(agent, "agent")
    assert register(agent, "agent") != register(other, "agent")
    assert register(agent, "function") != register(agent, "agent")


def test_a_name_of_another_process_says_so_and_others_do_not_exist() -> None:
    with pytest.raises(RuntimeError, match="Python"):
        _ = given_objects.agent_999999
    with pytest.raises(AttributeError):
        _ = given_objects.nothing


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("text", "text"),
        (Path("a/b.yaml"), str(Path("a/b.yaml"))),
        (("a", ["b"]), ["a", ["b"]]),
        ({1: {"a": ()}}, {"1": {"a": []}}),
    ],
)
def test_plain_values(value: Any, plain: Any) -> None:
    made = to_plain(value, PLACE)
    assert made == plain
    assert type(made) is type(plain)


def test_a_function_becomes_its_name() -> None:
    def check(conversation: Any) -> bool:
        return True

    (target,) = to_plain({"python": [check]}, PLACE)["python"]
    assert found(target) is check


@pytest.mark.parametrize(("value", "key"), [({"turns": [{"user": {1, 2}}]}, "turns.0.user"), (b"x", "")])
def test_what_no_file_can_contain_is_refused_at_its_key(value: Any, key: str) -> None:
    with pytest.raises(AuthorError) as error:
        to_plain(value, PLACE)
    (problem,) = error.value.problems
    assert problem.place == PLACE
    assert key in problem.what
