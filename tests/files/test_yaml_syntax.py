"""Mistakes in the syntax of YAML: each at the place where an author looks for it, with what to do."""

from __future__ import annotations

import pytest
import yaml

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.files.yaml_source import parse_yaml
from agenteval.files.yaml_syntax import explain_yaml_error


def refused(text: str) -> Problem:
    with pytest.raises(AuthorError) as error:
        parse_yaml(text.encode(), "s.yaml")
    (problem,) = error.value.problems
    assert problem.place
    assert problem.place.path == "s.yaml"
    return problem


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        pytest.param("a: b: c\n", 1, "':'", id="a second colon"),
        pytest.param("a: - b\n", 1, "list", id="a list on the line of its key"),
        pytest.param("a: 1\nb\nc: 2\n", 2, "': '", id="no colon"),
        pytest.param("a: [1, 2\nb: 3\n", 1, "'['", id="open bracket"),
        pytest.param("a: {b: 1\nc: 2\n", 1, "'{'", id="open brace"),
        pytest.param("a: 'b\nc: d\n", 1, "quote", id="open quote"),
        pytest.param('a: "\\d"\n', 1, "escape", id="unknown escape"),
        pytest.param('a: "\\uD800"\n', 1, "escape", id="invalid escape"),
        *(
            pytest.param(f'a: "{text}"\n', 1, "escape", id=text)
            for text in (r"\xZZ", r"\x4", r"\x", r"\uZZZZ", r"\u123", r"\U0001F", r"C:\users", r"C:\Udir")
        ),
        pytest.param("a:\n    b: 1\n  c: 2\n", 3, "key", id="indentation"),
        pytest.param("a: 1\n\tb: 2\n", 2, "tab", id="tab in the indentation"),
        pytest.param("a: @b\n", 1, "'@'", id="a character that begins nothing"),
        pytest.param("a: `b\n", 1, "'`'", id="a backtick"),
        pytest.param("a: %b\n", 1, "'%'", id="a percent sign"),
        pytest.param("a: *\n", 1, "name", id="an alias without a name"),
        pytest.param("- a\nb: 1\n", 2, "", id="a key in a list"),
    ],
)
def test_where_a_mistake_is(text: str, line: int, part: str) -> None:
    problem = refused(text)
    assert problem.place
    assert problem.place.line == line
    assert part in problem.what
    assert problem.remedy


def test_the_column_of_a_tab() -> None:
    assert refused("a:\n  \tb: 1\n").place == Place("s.yaml", 2, 3)


def test_an_error_without_a_place() -> None:
    problem = explain_yaml_error(yaml.YAMLError("odd"), "a: 1\n", "s.yaml")
    assert problem.place == Place("s.yaml")
    assert "odd" in problem.what


def marked(line: int, column: int) -> yaml.Mark:
    return yaml.Mark("s.yaml", 0, line, column, None, 0)


def test_an_error_beyond_the_content_is_at_its_end() -> None:
    error = yaml.MarkedYAMLError(problem="odd", problem_mark=marked(9, 0))
    problem = explain_yaml_error(error, "a: 1\nb: [\n\n\n", "s.yaml")
    assert problem.place == Place("s.yaml", 2, 5)
    assert "odd" in problem.what


def test_an_error_that_nobody_knows_is_where_it_stopped() -> None:
    error = yaml.MarkedYAMLError(problem="odd", problem_mark=marked(1, 2), context_mark=marked(0, 0))
    problem = explain_yaml_error(error, "a: 1\nb: 2\n", "s.yaml")
    assert (problem.place, problem.remedy) == (Place("s.yaml", 2, 3), "")
