"""Commands that are built when they are first looked up. To build all of them, with their options, takes
longer than everything else that ``agenteval --help`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import typer

from agenteval.cli.help_pages import OTHER, GroupedCommand
from agenteval.cli.options import expand_option_groups


class DeclaredCommand(NamedTuple):
    """A command or command group that has not been built yet."""

    panel: str
    """The heading under which the command is listed."""
    summary: str
    """The text after the command's name in the list of commands."""
    build: Callable[[], Any]


class DeclaredCommands(Mapping[str, Any]):
    """The commands of a group, keyed by name. A command is built when it is looked up."""

    def __init__(self) -> None:
        self._declared: dict[str, DeclaredCommand] = {}
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = self._declared[name].build()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def listed(self) -> Iterator[tuple[str, str, str]]:
        """Yield the panel, the name and the summary of each command, without building the command."""
        return ((each.panel, name, each.summary) for name, each in self._declared.items())

    def command(
        self, name: str, panel: str = OTHER, cls: type[GroupedCommand] = GroupedCommand, **settings: Any
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Declare the decorated function as a command. Its option groups are expanded, and the first
        paragraph of its docstring is its summary. ``settings`` are Typer's."""

        def declare(function: Callable[..., None]) -> Callable[..., None]:
            def build() -> Any:
                alone = typer.Typer(add_completion=False, rich_markup_mode=None)
                alone.command(name, cls=cls, rich_help_panel=panel, **settings)(
                    expand_option_groups(function)
                )
                return typer.main.get_command(alone)

            self._declared[name] = DeclaredCommand(panel, _first_paragraph(function.__doc__ or ""), build)
            return function

        return declare

    def group(self, name: str, panel: str, app: typer.Typer) -> None:
        """Declare a Typer application as a group of commands."""
        self._declared[name] = DeclaredCommand(panel, str(app.info.help), lambda: typer.main.get_command(app))


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())
