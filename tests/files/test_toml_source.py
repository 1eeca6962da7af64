"""``[tool.agenteval]`` of a ``pyproject.toml``: its values, and where each of its keys stands."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError, Place
from agenteval.files.toml_source import parse_toml
from agenteval.files.yaml_source import MAX_BYTES, MAX_DEPTH, Mark


def read(text: str) -> tuple[Any, Mark]:
    found = parse_toml(text.encode(), "pyproject.toml")
    assert found
    return found.value, found.mark


def at(text: str, *loc: str | int) -> tuple[int, int]:
    place = read(text)[1].find(loc).place
    assert place.path == "pyproject.toml"
    return place.line, place.column


@pytest.mark.parametrize(
    "text",
    ["", "[project]\nname = 'x'\n", "[tool.other]\na = 1\n", "tool = 3\n", "[agenteval]\na = 1\n"],
)
def test_a_file_without_the_section(text: str) -> None:
    assert parse_toml(text.encode(), "p") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[tool.agenteval]\n", {}),
        ("[tool.agenteval]\na = 1\nb = 'x'\nc = [true, 1.5]\n", {"a": 1, "b": "x", "c": [True, 1.5]}),
        ("[tool.agenteval.agent]\nname = 'x'\n", {"agent": {"name": "x"}}),
        ("[tool]\nagenteval = {a = {b = 1}}\n", {"a": {"b": 1}}),
        (
            "[[tool.agenteval.compare]]\na = 1\n[[tool.agenteval.compare]]\na = 2\n",
            {"compare": [{"a": 1}, {"a": 2}]},
        ),
        ("tool.agenteval.a.b = 1\n", {"a": {"b": 1}}),
        (
            "[tool.agenteval]\nd = 2026-12-31\nt = [10:30:00]\nm = 2026-12-31T10:30:00Z\n",
            {"d": "2026-12-31", "t": ["10:30:00"], "m": "2026-12-31T10:30:00+00:00"},
        ),
    ],
)
def test_the_values_of_the_section(text: str, value: Any) -> None:
    assert read(text)[0] == value


TEXT = """\
[project]
name = "x"  # not ours
max_turns = 9

[tool.agenteval]
max_turns = 3
"quoted key" = 1
  'single' = 2
agent.name = "bot"
inline = {first = 1, second = {third = 2}}
long = [
  1 ] # comment

[tool.agenteval.models]  # models
judge = "openai/m"

[tool.agenteval.agents."a.b"]
target = "t"

[[tool.agenteval.compare]]
name = "one"

  [[tool.agenteval.compare]]
name = "two"

[tool.agenteval.compare.more]
deep = 1
"""


@pytest.mark.parametrize(
    ("loc", "place"),
    [
        ((), (5, 1)),
        (("max_turns",), (6, 1)),
        (("quoted key",), (7, 1)),
        (("single",), (8, 3)),
        (("agent",), (9, 1)),
        (("agent", "name"), (9, 1)),
        (("inline",), (10, 1)),
        (("inline", "first"), (10, 11)),
        (("inline", "second"), (10, 22)),
        (("inline", "second", "third"), (10, 32)),
        (("long", 0), (11, 1)),
        (("models",), (14, 1)),
        (("models", "judge"), (15, 1)),
        (("agents", "a.b", "target"), (18, 1)),
        (("compare", 0), (20, 1)),
        (("compare", 0, "name"), (21, 1)),
        (("compare", 1), (23, 3)),
        (("compare", 1, "name"), (24, 1)),
        (("absent",), (5, 1)),
    ],
)
def test_where_a_key_stands(loc: tuple[str | int, ...], place: tuple[int, int]) -> None:
    assert at(TEXT, *loc) == place


@pytest.mark.parametrize(
    ("text", "loc", "place"),
    [
        pytest.param("[ tool . agenteval ]\na = 1\n", ("a",), (2, 1), id="spaces in a header"),
        pytest.param("[tool.agenteval.x]\na = 1\n", (), (1, 1), id="no header of its own"),
        pytest.param("[tool]\nagenteval = {a = 1}\n", ("a",), (2, 14), id="all inline"),
        pytest.param("[tool]\nagenteval.a = 1\n", ("a",), (2, 1), id="dotted"),
        pytest.param("[tool.agenteval]\na . b = 1\n", ("a", "b"), (2, 1), id="spaces around a dot"),
        pytest.param("[tool.agenteval]\nm = {x = 1}\n", ("m", "x"), (2, 6), id="in its line"),
        pytest.param(
            "[tool.agenteval]\nm = [{x = 1},\n  {xy = 2, y = 3}]\n", ("m", 1, "y"), (3, 12), id="in a list"
        ),
        pytest.param('[tool.agenteval]\nm = {"a b" = 1}\n', ("m", "a b"), (2, 6), id="quoted inline"),
        pytest.param(
            "[tool.agenteval]\nm = {a = {n = 1}, b = {n = 2}}\n", ("m", "b", "n"), (2, 24), id="a name twice"
        ),
        pytest.param(
            "[tool.agenteval]\nm = {a = {n = 1}, b = {n = 2}}\n", ("m", "a", "n"), (2, 11), id="the first"
        ),
        pytest.param("[tool.agenteval]\nm = {m = {m = 1}}\n", ("m", "m"), (2, 6), id="as its parent"),
        pytest.param("[tool.agenteval]\nm = {m = {m = 1}}\n", ("m", "m", "m"), (2, 11), id="as both"),
        pytest.param('[tool.agenteval]\n"m" = {m = 1}\n', ("m", "m"), (2, 8), id="as its quoted parent"),
        pytest.param(
            "[tool.agenteval]\nm = [\n  {n = 1},\n  {n = 2},\n]\n", ("m", 1, "n"), (4, 4), id="in each item"
        ),
        pytest.param(
            "[tool.agenteval]\nm = [{n = 1}, {n = 2}]\n", ("m", 1, "n"), (2, 16), id="two in a line"
        ),
        pytest.param(
            "[tool.agenteval]\na.b = {a = {b = 1}}\n", ("a", "b", "a", "b"), (2, 13), id="below a dot"
        ),
        pytest.param("[tool.agenteval]\nm = {a.b = 1}\n", ("m", "a", "b"), (2, 8), id="a dot inline"),
        pytest.param(
            "[tool.agenteval]\nm = {'n' = 1}\nn = 2\n", ("m", "n"), (2, 6), id="not the next line's"
        ),
        pytest.param(
            '[tool.agenteval]\nm = {"\\u006e" = 1}\nn = 2\n', ("m", "n"), (2, 1), id="an odd spelling"
        ),
        pytest.param("tool.agenteval.m = {tool = 1}\n", ("m", "tool"), (1, 21), id="as its root"),
        pytest.param(
            "[tool.agenteval]\nx-z = 1\ny = {x-z = 2, z = 3}\n", ("y", "z"), (3, 15), id="whole keys"
        ),
    ],
)
def test_where_a_key_stands_in_other_forms(
    text: str, loc: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    assert at(text, *loc) == place


def test_a_key_of_another_table_is_not_ours() -> None:
    text = "[tool.agenteval]\nm = {a = 1}\n[tool.other]\nb = 1\n"
    assert at(text, "m", "a") == (2, 6)
    assert at("[tool.agenteval]\nx = 1\n[tool.agenteval.y]\nx = 2\n", "y", "x") == (4, 1)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


def refused(data: bytes) -> Place | None:
    with pytest.raises(AuthorError) as error:
        parse_toml(data, "p.toml")
    (problem,) = error.value.problems
    return problem.place


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"[tool.agenteval]\na = \n", Place("p.toml", 2, 5)),
        (b"a = 1\na = 2\n", Place("p.toml", 2, 6)),
        (b"[tool\n", Place("p.toml", 1, 6)),
        (b"a = 1\nb = '\xff'\n", Place("p.toml", 2)),
        (b"a = '\xff'\n", Place("p.toml", 1)),
        (b"#" * (MAX_BYTES + 1), Place("p.toml")),
        (b"a = " + b"[" * 100_000, Place("p.toml")),
    ],
)
def test_what_is_not_toml(data: bytes, place: Place) -> None:
    assert refused(data) == place


def test_how_deep_values_may_be() -> None:
    def nested(depth: int) -> bytes:
        return f"[tool.agenteval]\n{'.'.join(['a'] * depth)} = 1\n".encode()

    assert parse_toml(nested(MAX_DEPTH - 1), "p.toml")
    assert refused(nested(MAX_DEPTH)) == Place("p.toml")
    assert refused(nested(MAX_DEPTH * 20)) == Place("p.toml")
