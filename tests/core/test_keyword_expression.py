"""``-k EXPR``: words, ``and``, ``or``, ``not`` and parentheses."""

from __future__ import annotations

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.keyword_expression import compile_expression


@pytest.mark.parametrize(
    ("expression", "matching"),
    [
        ("a", "a ab ac abc"),
        ("A", "a ab ac abc"),
        ("not a", "b c bc"),
        ("not not a", "a ab ac abc"),
        ("a and b", "ab abc"),
        ("a or b", "a b ab ac bc abc"),
        ("a and not b", "a ac"),
        ("not a and b", "b bc"),  # `not` binds first
        ("not (a and b)", "a b c ac bc"),
        ("a or b and c", "a ab ac bc abc"),  # then `and`
        ("a and b or c", "c ab ac bc abc"),
        ("(a or b) and c", "ac bc abc"),
        ("a and b and c", "abc"),
        ("a or b or c", "a b c ab ac bc abc"),
        (" ( a )and( b ) ", "ab abc"),
        ("((a))", "a ab ac abc"),
    ],
)
def test_what_matches(expression: str, matching: str) -> None:
    matches = compile_expression(expression)
    names = ("a", "b", "c", "ab", "ac", "bc", "abc")
    assert " ".join(name for name in names if matches(tuple(name))) == matching


@pytest.mark.parametrize(
    ("word", "names", "found"),
    [
        ("fun", ("order", "Refund"), True),
        ("STRASSE", ("straße",), True),
        ("x", (), False),
        ("and-more", ("and-more.yaml",), True),
        ("orders.yaml", ("a/orders.yaml",), True),
    ],
)
def test_a_word_is_a_part_of_a_name(word: str, names: tuple[str, ...], found: bool) -> None:
    assert compile_expression(word)(names) is found


def test_words_may_be_in_different_names() -> None:
    assert compile_expression("a and b")(("a", "b"))
    assert not compile_expression("not a")(("b", "a"))


@pytest.mark.parametrize(
    ("expression", "column", "token"),
    [
        ("", 1, "end"),
        ("   ", 4, "end"),
        ("and", 1, "'and'"),
        ("a and", 6, "end"),
        ("a or or b", 6, "'or'"),
        ("not", 4, "end"),
        ("a b", 3, "'b'"),
        ("a not b", 3, "'not'"),
        ("(a", 3, "end"),
        ("(a b)", 4, "'b'"),
        ("a)", 2, "')'"),
        ("()", 2, "')'"),
        ("  ) a", 3, "')'"),
    ],
)
def test_a_mistake_has_its_column(expression: str, column: int, token: str) -> None:
    with pytest.raises(AuthorError) as error:
        compile_expression(expression)
    (problem,) = error.value.problems
    assert problem.what.endswith(f"unexpected {token} at column {column}")
    assert repr(expression) in problem.what
    assert "-k" in problem.remedy
