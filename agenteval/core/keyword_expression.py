"""Compiles the keyword expression in ``-k EXPR``: words combined with ``and``, ``or``, ``not`` and
parentheses, as in pytest. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

from agenteval.core.errors import AuthorError, Problem

Matches: TypeAlias = Callable[[Sequence[str]], bool]
"""A function that returns True if the expression matches an item with the given names."""

_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")
_JOINING = frozenset(("and", "or", "not", "(", ")"))
_REMEDY = "combine words with `and`, `or`, `not` and parentheses: -k 'refund and not (slow or draft)'"


class _Token(NamedTuple):
    text: str
    column: int  # from 1


def compile_expression(text: str) -> Matches:
    """Compile a keyword expression. A word matches if one of the names contains it, ignoring case. ``not``
    has the highest precedence, followed by ``and`` and ``or``. Raise ``AuthorError`` with the column of the
    syntax error."""
    reader = _ExpressionParser(text)
    matches = reader.parse_or()
    if reader.token.text:
        reader.fail()
    return matches


class _ExpressionParser:
    """A recursive-descent parser. ``token`` is the next token, or an empty string at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._all_tokens()
        self.token = next(self._tokens)

    def _all_tokens(self) -> Iterator[_Token]:
        yield from (_Token(found[1], found.start(1) + 1) for found in _TOKEN.finditer(self._text))
        yield _Token("", len(self._text) + 1)

    def _accept(self, text: str) -> bool:
        if self.token.text != text:
            return False
        self.token = next(self._tokens)
        return True

    def fail(self) -> NoReturn:
        what = f"unexpected '{self.token.text}'" if self.token.text else "unexpected end"
        raise AuthorError(Problem(f"-k {self._text!r}: {what} at column {self.token.column}", _REMEDY))

    def parse_or(self) -> Matches:
        parts = [self._parse_and()]
        while self._accept("or"):
            parts.append(self._parse_and())
        return lambda names: any(part(names) for part in parts)

    def _parse_and(self) -> Matches:
        parts = [self._parse_operand()]
        while self._accept("and"):
            parts.append(self._parse_operand())
        return lambda names: all(part(names) for part in parts)

    def _parse_operand(self) -> Matches:
        if self._accept("not"):
            negated = self._parse_operand()
            return lambda names: not negated(names)
        if self._accept("("):
            inside = self.parse_or()
            if not self._accept(")"):
                self.fail()
            return inside
        word = self.token.text.casefold()
        if not word or word in _JOINING:
            self.fail()
        self.token = next(self._tokens)
        return lambda names: any(word in name.casefold() for name in names)
