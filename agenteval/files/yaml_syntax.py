"""Translates the YAML parser's errors into messages that suggest a correction."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from agenteval.core.errors import Place, Problem


class _Advice(NamedTuple):
    """A message for errors whose text contains a certain fragment."""

    fragment: str
    what: str
    remedy: str
    at_start: bool = False
    """True if the mistake is at the start of the invalid construct, not at the position where parsing
    stopped."""


_ADVICE = (
    _Advice("mapping values are not allowed", "a ':' is not expected here",
            "check the indentation, or quote the string if it contains ': '"),
    _Advice("block sequence entries are not allowed", "a list cannot begin here",
            "start it on its own line"),
    _Advice("could not find expected ':'", "the line does not contain ': '",
            "use `key: value`, or check the indentation", at_start=True),
    _Advice("expected node content", "a value is missing, or a '[' or '{' is not closed",
            "add the value, or close the bracket"),
    _Advice("unexpected end of stream", "a quote is not closed", "close it", at_start=True),
    _Advice("expected ',' or ']'", "a '[' is not closed, or a comma is missing",
            "close it with ']', and separate its items with commas", at_start=True),
    _Advice("expected ',' or '}'", "a '{' is not closed, or a comma is missing",
            "close it with '}', and separate its pairs with commas", at_start=True),
    _Advice("unknown escape character", "a double-quoted string contains an unknown escape sequence",
            r"use \\ for a backslash, or use single quotes"),
    _Advice("escape code", "invalid escape sequence", r"use \\ for a backslash"),
    _Advice("decimal number", "an escape sequence lacks some of its hexadecimal digits",
            r"use \\ for a backslash, or use single quotes"),
    _Advice("did not find expected key", "a key is expected here",
            "align it with the keys above it, or put the string in quotes"),
    _Advice("expected '-' indicator", "a list item is expected here",
            "align it with the items above it, or check the indentation"),
    _Advice("expected <block end>", "the indentation does not match any line above",
            "align it with the lines above"),
    _Advice("alphabetic or numeric character", "a '*' or '&' has no name",
            "put a string that starts with it in quotes"),
    _Advice("incompatible YAML document", "the %YAML version is not supported", "remove the line"),
    _Advice("undefined tag handle", "the tag is unknown", "remove it, or put the string in quotes"),
)  # fmt: skip


def explain_yaml_error(error: yaml.YAMLError, text: str, path: str) -> Problem:
    """Return the problem for a YAML syntax error that the parser raised for ``text``."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    stopped: Any = getattr(error, "problem_mark", None)
    started: Any = getattr(error, "context_mark", None) or stopped
    if stopped is None:
        return Problem(f"not valid YAML: {problem}", "", Place(path))
    for mark in (stopped, started):
        if (column := _tab_in_indentation(text, mark.line)) is not None:
            return Problem(
                "the indentation contains a tab", "indent with spaces", Place(path, mark.line + 1, column)
            )
    if "cannot start any token" in problem:
        return _bad_start(text, stopped, path)
    for advice in _ADVICE:
        if advice.fragment in problem:
            mark = started if advice.at_start else stopped
            return Problem(advice.what, advice.remedy, _place(mark, text, path))
    return Problem(f"not valid YAML: {problem}", "", _place(stopped, text, path))


def _place(mark: Any, text: str, path: str) -> Place:
    """Return the location of a mark. If the mark is beyond the content, return the end of the last line with
    content."""
    lines = _lines(text.rstrip())
    if mark.line < len(lines):
        return Place(path, mark.line + 1, mark.column + 1)
    return Place(path, len(lines), len(lines[-1]) + 1)


def _lines(text: str) -> list[str]:
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)  # the line breaks of the YAML parser


def _line(text: str, line: int) -> str:
    lines = _lines(text)
    return lines[line] if line < len(lines) else ""


def _tab_in_indentation(text: str, line: int) -> int | None:
    """Return the column of the first tab in a line's indentation, starting at 1, or ``None`` if there is no
    tab."""
    content = _line(text, line)
    indentation = content[: len(content) - len(content.lstrip(" \t"))]
    return indentation.index("\t") + 1 if "\t" in indentation else None


def _bad_start(text: str, mark: Any, path: str) -> Problem:
    character = _line(text, mark.line)[mark.column : mark.column + 1]
    if character == "\t":
        return Problem("a tab is not allowed here", "use spaces", _place(mark, text, path))
    return Problem(
        f"an unquoted string cannot start with '{character}'", "put it in quotes", _place(mark, text, path)
    )
