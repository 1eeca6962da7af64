"""Checks an author's statements against the start state before they are run, and reports mistakes with a
remedy. A state's schema never changes, so a statement is checked once."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.world.connections import WorldConnection
from agenteval.world.sql_text import (
    SqlToken,
    split_statements,
    tokenize,
    top_level_keywords,
    without_space,
)
from agenteval.world.start_state import StartState

_MOST_STATEMENTS = 1_000
"""The number of statements that are remembered: code of an author may put values into their texts."""


class Statement(NamedTuple):
    """A statement that was checked against a start state."""

    text: str
    parameters: tuple[str, ...]
    """The names of the parameters, without their colons, in the order of their first occurrence."""
    position_count: int
    """The number of parameters written as ``?``."""
    writes: frozenset[str]
    """The tables that the statement may change, in lower case, through triggers and foreign keys, too."""
    columns: tuple[str, ...] | None
    """The names of the resulting columns, or ``None`` if they are not known (RETURNING)."""
    query_types: tuple[str, ...]
    """The declared types of a query's columns, each empty for a computed value."""
    target_types: Mapping[str, str]
    """The declared types of the columns of the table that the statement writes to."""
    duplicate_column: str
    """The name that two resulting columns have. Empty if all names differ."""
    is_ordered: bool
    """True if the statement determines the order of its rows."""

    @property
    def is_query(self) -> bool:
        """True if the statement only reads."""
        return not self.writes

    def types_of(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the declared types of the resulting columns. RETURNING is known by the names of columns."""
        if self.is_query:  # the agent may have added columns to the file that ``SELECT *`` reads
            return self.query_types if len(self.query_types) == len(columns) else ("",) * len(columns)
        return tuple(self.target_types.get(name.lower(), "") for name in columns)


def prepare_statements(texts: Sequence[str], start: StartState) -> tuple[Statement, ...]:
    """Check the statements of a tool, whose arguments are bound by name. Raise ``AuthorError`` with all
    mistakes, without a place."""
    problems: list[Problem] = []
    statements: list[Statement] = []
    for text in texts:
        try:
            statement = prepare_statement(text, start)
        except AuthorError as error:
            problems += error.problems
            continue
        problems += _tool_problems(statement)
        statements.append(statement)
    if problems:
        raise AuthorError(*problems)
    return tuple(statements)


def _tool_problems(statement: Statement) -> Iterator[Problem]:
    if statement.position_count:
        yield Problem("the parameter '?' has no name", "write the name of an argument, such as :id")
    yield from duplicate_problems(statement)


def duplicate_problems(statement: Statement) -> Iterator[Problem]:
    """Report that two columns have the same name, of which a row with names would have only one."""
    if name := statement.duplicate_column:
        yield Problem(f"two columns of the result are named '{name}'", f"rename one: {name} AS other_name")


def prepare_statement(text: str, start: StartState) -> Statement:
    """Check a statement, which may have parameters without names. Raise ``AuthorError`` without a place."""
    known: Statement | None = start.statements.get(text)
    if known is None:
        known = _check(text, start)
        if len(start.statements) >= _MOST_STATEMENTS:
            start.statements.clear()
        start.statements[text] = known
    return known


def _check(text: str, start: StartState) -> Statement:
    tokens = tokenize(text)
    problem = _problem_in_text(text, tokens)
    if problem:
        raise AuthorError(problem)
    tokens = _without_end(tokens)
    parameters = tuple(dict.fromkeys(t.text[1:] for t in tokens if t.kind == "parameter" and t.text != "?"))
    position_count = sum(token.text == "?" for token in tokens)
    with start.reader() as connection:
        writes = _find_writes(tokens, connection, start)
        columns = [] if writes else _find_columns(tokens, connection)
    keywords = [keyword for _, keyword in top_level_keywords(tokens)]
    return Statement(
        text="".join(token.text for token in tokens),
        parameters=parameters,
        position_count=position_count,
        writes=frozenset(writes),
        columns=_names_of(columns, keywords, is_query=not writes),
        query_types=tuple(declared_type for _, declared_type in columns),
        target_types=_types_in_table(writes[0], start) if writes else {},
        duplicate_column=_duplicate(columns),
        is_ordered="ORDER" in keywords,
    )


def _names_of(
    columns: list[tuple[str, str]], keywords: Sequence[str], *, is_query: bool
) -> tuple[str, ...] | None:
    if is_query:
        return tuple(name for name, _ in columns) or None
    return None if "RETURNING" in keywords else ()


def _without_end(tokens: list[SqlToken]) -> list[SqlToken]:
    """Remove semicolons, and a comment at the end, which SQLite takes for a part of a column's name."""
    last = max(index for index, token in enumerate(tokens) if token.kind not in {"space", "end"})
    return [token for token in tokens[: last + 1] if token.kind != "end"]


# ── what the text shows ──────────────────────────────────────────────────────────────────────────

_ALLOWED = ("SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE")
_ONLY = "use SELECT, INSERT, UPDATE or DELETE"
_REFUSED = {
    **dict.fromkeys(
        ("CREATE", "DROP", "ALTER"),
        ("a statement may not change tables: {}", "tables are created by the scenario's `state`"),
    ),
    **dict.fromkeys(
        ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"),
        ("a statement may not begin or end a transaction: {}", "remove it: every call is one transaction"),
    ),
    **dict.fromkeys(
        ("ATTACH", "DETACH", "PRAGMA", "VACUUM", "ANALYZE", "REINDEX", "EXPLAIN"),
        ("{} is not allowed", _ONLY),
    ),
}


def _problem_in_text(text: str, tokens: list[SqlToken]) -> Problem | None:
    written = without_space(tokens)
    if not written:
        return Problem("the statement is empty", _ONLY)
    if "\0" in text:
        return Problem("the statement contains a null character", "remove it")
    if len(list(split_statements(text))) > 1:
        return Problem("two statements in one text", "write a list of statements, one per text")
    if len({token.text == "?" for token in written if token.kind == "parameter"}) > 1:
        return Problem("some parameters have a name and others are '?'", "write all as :name, or all as ?")
    return _wrong_keyword(written[0]) or next(filter(None, map(_wrong_token, written)), None)


def _wrong_keyword(first: SqlToken) -> Problem | None:
    if first.keyword in _REFUSED:
        what, remedy = _REFUSED[first.keyword]
        return Problem(what.format(first.keyword), remedy)
    if first.keyword in _ALLOWED:
        return None
    near = did_you_mean(first.text, _ALLOWED)
    return Problem(f"a statement may not begin with '{first.text}'", near if "mean" in near else _ONLY)


_REFERENCE = re.compile(r"\$\{[^}]{0,40}\}?")


def _wrong_token(token: SqlToken) -> Problem | None:
    if reference := _REFERENCE.search(token.text):
        remedy = "write :name, which is bound as a value"
        return Problem(f"'{reference[0]}' is not allowed within SQL", remedy)
    if token.kind == "parameter" and token.text[0] != ":" and token.text != "?":
        return Problem(f"the parameter '{token.text}' is not allowed", "write the name as :name")
    return None


# ── what SQLite knows ────────────────────────────────────────────────────────────────────────────


def _find_writes(tokens: list[SqlToken], connection: WorldConnection, start: StartState) -> list[str]:
    """Compile the statement, and return the tables that it writes to, its own one first. Names in double
    quotes are compiled as names, because SQLite takes one that does not exist for a text."""
    authorizer = connection.authorizer
    authorizer.writes, authorizer.refused = {}, ""
    sql = "".join(_as_name(token) for token in tokens)
    values: Any = _nulls(tokens)
    try:
        connection.raw.execute(f"EXPLAIN {sql}", values)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise AuthorError(_problem_of(error, authorizer.refused, tokens, start)) from error
    return list(authorizer.writes)


def _as_name(token: SqlToken) -> str:
    if token.kind != "double_quoted":
        return token.text
    return "`" + token.text[1:-1].replace('""', '"').replace("`", "``") + "`"


def _nulls(tokens: list[SqlToken]) -> Sequence[None] | Mapping[str, None]:
    names = [token.text for token in tokens if token.kind == "parameter"]
    return [None] * len(names) if "?" in names else {name[1:]: None for name in names}


_MISSING = re.compile(
    r"no such (?P<kind>table|column): (?P<name>.+)|table .+ has no column named (?P<new>.+)", re.S
)


def _problem_of(error: Exception, refused: str, tokens: list[SqlToken], start: StartState) -> Problem:
    text = str(error)
    if refused:
        return Problem(f"{refused} is not allowed", "" if "change" in refused else _ONLY)
    if match := _MISSING.fullmatch(text):
        return Problem(text, _remedy_for_name(match, tokens, start))
    return Problem(text, "")


def _remedy_for_name(match: re.Match[str], tokens: list[SqlToken], start: StartState) -> str:
    if match["kind"] == "table":
        name = match["name"].rpartition(".")[2]
        return did_you_mean(name, (*start.tables, *start.views)) or "the state has no tables"
    name = (match["name"] or match["new"]).rpartition(".")[2]
    if any(token.kind == "double_quoted" and token.text[1:-1] == name for token in tokens):
        return f"a text is written in single quotes: '{name}'"
    return did_you_mean(name, _columns_of_named_tables(tokens, start))


def _columns_of_named_tables(tokens: list[SqlToken], start: StartState) -> Iterator[str]:
    words = {token.text.strip('`[]"').lower() for token in tokens}
    shapes = [shape for name, shape in start.tables.items() if name.lower() in words]
    return chain.from_iterable((column.name for column in shape.columns) for shape in shapes)


# ── the columns of the result ────────────────────────────────────────────────────────────────────


def _find_columns(tokens: list[SqlToken], connection: WorldConnection) -> list[tuple[str, str]]:
    """Return the name and the declared type of each column of a query: those of a view of the same text.

    Python's converters cannot be used: all connections of a process share them, those of an agent, too."""
    sql = "".join(_as_constant(token, number) for number, token in enumerate(tokens))
    with connection.unrestricted() as raw:
        try:
            raw.execute(f"CREATE TEMP VIEW agenteval_columns AS {sql}")
            return [(each[1], each[2]) for each in raw.execute("PRAGMA temp.table_info(agenteval_columns)")]
        except sqlite3.Error:
            return []
        finally:
            raw.execute("DROP VIEW IF EXISTS temp.agenteval_columns")


def _as_constant(token: SqlToken, number: int) -> str:
    """Replace a parameter, which a view may not have, by a text with its name."""
    if token.kind != "parameter":
        return _as_name(token)
    return f"'?{number}'" if token.text == "?" else f"'{token.text}'"


def _types_in_table(table: str, start: StartState) -> dict[str, str]:
    shapes = (shape for name, shape in start.tables.items() if name.lower() == table)
    return {column.name.lower(): column.declared_type for shape in shapes for column in shape.columns}


def _duplicate(columns: list[tuple[str, str]]) -> str:
    """Return the name of two columns, which SQLite distinguishes as ``id`` and ``id:1`` in a view."""
    names = {name for name, _ in columns}
    bases = (name.rpartition(":") for name, _ in columns)
    found = (base for base, colon, number in bases if colon and number.isdigit() and base in names)
    return next(found, "").strip("'")
