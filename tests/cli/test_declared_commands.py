"""Commands are built when they are looked up, and listed without."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from agenteval.cli import main
from agenteval.cli.command_group import CommandGroup
from agenteval.cli.declared_commands import DeclaredCommands, _first_paragraph

built: list[str] = []


class Watched(DeclaredCommands):
    """Keeps the names of the commands that were built."""

    def __getitem__(self, name: str) -> Any:
        built.append(name)
        return super().__getitem__(name)


def program() -> typer.Typer:
    class Commands(CommandGroup):
        declared = Watched()

    def walk(far: Annotated[int, typer.Option("--far")] = 1) -> None:
        """Walks."""
        print(f"walked {far}")

    app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)
    Commands.declared.command("walk", "Move")(walk)
    Commands.declared.command("rest")(lambda: None)
    built.clear()
    return app


def test_help_builds_no_command() -> None:
    done = CliRunner().invoke(program(), ["--help"])
    assert "Walks." in done.output
    assert "rest" in done.output
    assert built == []


def test_only_the_command_that_is_carried_out_is_built() -> None:
    done = CliRunner().invoke(program(), ["walk", "--far", "3"])
    assert done.output == "walked 3\n"
    assert set(built) == {"walk"}


def test_a_command_is_built_once() -> None:
    declared = DeclaredCommands()
    declared.command("walk")(lambda: None)
    assert declared["walk"] is declared["walk"]
    assert dict(declared).keys() == {"walk"}
    assert len(declared) == 1
    assert declared.get("run") is None


def test_a_group_is_listed_with_its_help() -> None:
    listed = {name: (panel, summary) for panel, name, summary in main._Commands.declared.listed()}
    panel, summary = listed["tools"]
    assert panel == main.CHECKING
    assert "MCP" in summary
    assert list(main._Commands.declared["tools"].commands) == ["serve", "schemas", "check"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("One.", "One."), ("  One\n  two.\n\nThree.", "One two."), ("\n\nOne.\n", "One.")],
)
def test_the_first_paragraph(text: str, expected: str) -> None:
    assert _first_paragraph(text) == expected
