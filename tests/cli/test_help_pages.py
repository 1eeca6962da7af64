"""Pages of help: commands and many options in groups, in columns that fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agenteval.cli.declared_commands import DeclaredCommands
from agenteval.cli.help_pages import GroupedCommands, _write_options

Rows = list[tuple[str, str]]


class Formatter:
    """Keeps the sections of a page."""

    def __init__(self, width: int = 100) -> None:
        self.width = width
        self.sections: dict[str, Rows] = {}
        self.widths: set[int] = set()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        self._name = name
        yield

    def write_dl(self, rows: Rows, *, col_max: int) -> None:
        self.sections[self._name] = rows
        self.widths.add(col_max)

    @property
    def names(self) -> dict[str, list[str]]:
        return {name: [first.strip() for first, _ in rows] for name, rows in self.sections.items()}


def parameter(name: str, group: str | None = None, *, hidden: bool = False) -> Any:
    kind = "option" if name.startswith("-") else "argument"
    record = None if hidden else (name, f"Says {name}.")
    return SimpleNamespace(param_type_name=kind, rich_help_panel=group, get_help_record=lambda _: record)


def written(parameters: Sequence[Any], width: int = 100) -> Formatter:
    formatter = Formatter(width)
    _write_options(parameters, None, formatter)
    return formatter


MINE = [parameter("--a", "Mine"), parameter("--b", "Yours"), parameter("--c", "Mine")]
PLAIN = [parameter(f"--p{n}") for n in range(8)]
P = [f"--p{n}" for n in range(8)]
PLACE = parameter("PLACE")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([], {}),
        (MINE[:1], {"Options": ["--a"]}),
        ([PLACE], {"Arguments": ["PLACE"]}),
        ([*MINE, PLACE], {"Arguments": ["PLACE"], "Options": ["--a", "--c", "--b"]}),
        ([*PLAIN, *MINE], {"Options": [*P, "--a", "--c", "--b"]}),  # eleven
        (
            [*PLAIN, *MINE, PLACE],  # twelve
            {"Mine": ["--a", "--c"], "Yours": ["--b"], "Arguments": ["PLACE"], "Other": P},
        ),
        (
            [PLACE, *MINE, *PLAIN],
            {"Arguments": ["PLACE"], "Mine": ["--a", "--c"], "Yours": ["--b"], "Other": P},
        ),
        ([*PLAIN, *MINE, parameter("--hidden", hidden=True)], {"Options": [*P, "--a", "--c", "--b"]}),
        ([parameter(f"--m{n}", "Mine") for n in range(12)], {"Mine": [f"--m{n}" for n in range(12)]}),
    ],
)
def test_many_options_stand_in_groups(parameters: list[Any], expected: dict[str, list[str]]) -> None:
    formatter = written(parameters)
    assert formatter.names == expected
    assert list(formatter.names) == list(expected)


@pytest.mark.parametrize(("width", "expected"), [(100, 20), (40, 20), (39, 19), (20, 10)])
def test_all_groups_have_one_column_unless_it_is_too_wide(width: int, expected: int) -> None:
    long = parameter("--" + "x" * 18, "Mine")
    formatter = written([*PLAIN, *MINE, long], width)
    assert formatter.widths == {expected}
    rows = [row for rows in formatter.sections.values() for row in rows]
    assert {len(first) for first, _ in rows} == {expected, 20}
    assert all(second == f"Says {first.strip()}." for first, second in rows)


def commands() -> typer.Typer:
    class Commands(GroupedCommands):
        declared = DeclaredCommands()

    def go() -> None:
        """Goes there
        at once.

        More of it."""

    def look() -> None:
        """Looks."""

    def plain() -> None:
        """Is in no group."""

    app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    command = Commands.declared.command
    command("go", "First")(go)
    command("look-around", "Second")(look)
    command("stop", "First")(lambda: None)
    command("plain")(plain)
    return app


def test_commands_stand_in_groups_before_the_options() -> None:
    done = CliRunner().invoke(commands(), ["--help"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    heads = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["First:", "Second:", "Other:", "Options:"]
    rows = [line.split()[0] for line in lines if line.startswith("  ")]
    assert rows == ["go", "stop", "look-around", "plain", "--help"]
    assert "Goes there at once." in done.output
    assert "More of it" not in done.output
    places = {line.index(text) for line in lines for text in ("Goes", "Looks.", "Is in no") if text in line}
    assert places == {2 + len("look-around") + 2}


def test_help_of_a_command_is_printed_and_nothing_done() -> None:
    done = CliRunner().invoke(commands(), ["go", "--help"])
    assert done.exit_code == 0
    assert "More of it." in done.output
