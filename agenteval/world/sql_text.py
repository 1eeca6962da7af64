"""Splits the text of SQL into tokens, just far enough to find statements, parameters and quoted names."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<text>'(?:[^']|'')*')
  | (?P<double_quoted>"(?:[^"]|"")*")
  | (?P<word>`(?:[^`]|``)*`|\[[^\]]*\]|[^\W\d][\w$]*)
  | (?P<number>\d[\w.]*)
  | (?P<reference>\$\{[^}]*\}?)
  | (?P<parameter>[:@$][\w$]+|\?\d*)
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class SqlToken(NamedTuple):
    """A token, including white space and comments: joined, the tokens are the text."""

    kind: str
    """The name of a group of the pattern above."""
    text: str

    @property
    def keyword(self) -> str:
        """The word in upper case, or an empty string for any other token."""
        return self.text.upper() if self.kind == "word" else ""


def tokenize(sql: str) -> list[SqlToken]:
    """Split a text into tokens. Text that is not SQL is split, too; SQLite reports the error."""
    return [SqlToken(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(sql)]


def without_space(tokens: list[SqlToken]) -> list[SqlToken]:
    """Return the tokens that are neither white space nor comments."""
    return [token for token in tokens if token.kind != "space"]


def split_statements(sql: str) -> Iterator[tuple[int, list[SqlToken]]]:
    """Yield each statement of a script with the line on which it starts, counted from 1. The semicolons
    within a trigger do not end it."""
    line = start_line = 1
    tokens: list[SqlToken] = []
    for token in tokenize(sql):
        if tokens or token.kind not in {"space", "end"}:
            start_line = start_line if tokens else line
            tokens.append(token)
        line += token.text.count("\n")
        if token.kind == "end" and tokens and sqlite3.complete_statement("".join(t.text for t in tokens)):
            yield start_line, tokens
            tokens = []
    if tokens:
        yield start_line, tokens


def top_level_keywords(tokens: list[SqlToken]) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each word that is not in parentheses, in upper case."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.keyword:
            yield position, token.keyword


def quote_name(name: str) -> str:
    """Quote the name of a table or a column."""
    return '"' + name.replace('"', '""') + '"'
