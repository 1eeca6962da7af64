"""Formats ``--help`` pages in groups across the width of the terminal. Typer itself can format groups (using
``rich_help_panel``, which also defines the groups here), but the library that it requires for this uses as
much CPU time as everything else in ``agenteval --help``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from typer.core import TyperCommand, TyperGroup

from agenteval.cli.safe_output import print_out

if TYPE_CHECKING:
    from agenteval.cli.declared_commands import DeclaredCommands

WIDEST = 110
"""The maximum width in columns. Longer lines are hard to read."""
OTHER = "Other"
_MANY = 12
"""The minimum number of options for options to be grouped."""


def _print_through_safe_output(option: Any) -> Any:
    """Make the ``--help`` option print its page through ``safe_output``, like all other output."""

    def show(ctx: Any, _: Any, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            print_out(ctx.get_help())
            ctx.exit()

    if option is not None:
        option.callback = show
    return option


class GroupedCommand(TyperCommand):
    """A command whose help page lists options in groups."""

    def get_help_option(self, ctx: Any) -> Any:
        return _print_through_safe_output(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)


class GroupedCommands(TyperGroup):
    """A command group whose help page lists commands and options in groups. Each command is listed with the
    full first sentence of its help."""

    declared: ClassVar[DeclaredCommands]
    """The commands of the group. Each group is a subclass with its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        vars(self)["commands"] = self.declared

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.declared)

    def get_help_option(self, ctx: Any) -> Any:
        return _print_through_safe_output(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_options(self.get_params(ctx), ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for panel, name, summary in self.declared.listed():
            sections.setdefault(panel, []).append((name, summary))
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for group, rows in sections.items():
            _write_section(group, rows, formatter, widest)


def _write_options(params: Iterable[Any], ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for each in params:
        record = each.get_help_record(ctx)
        if record is not None:
            default_group = "Arguments" if each.param_type_name == "argument" else OTHER
            group = getattr(each, "rich_help_panel", None) or default_group
            sections.setdefault(str(group), []).append(record)
    if sum(map(len, sections.values())) < _MANY:
        arguments = sections.pop("Arguments", [])
        options = [row for rows in sections.values() for row in rows]
        sections = {name: rows for name, rows in (("Arguments", arguments), ("Options", options)) if rows}
    elif OTHER in sections:
        sections[OTHER] = sections.pop(OTHER)  # moved to the end
    widest = max((len(first) for rows in sections.values() for first, _ in rows), default=0)
    for group, rows in sections.items():
        _write_section(group, rows, formatter, widest)


def _write_section(group: str, rows: list[tuple[str, str]], formatter: Any, widest: int) -> None:
    """Write one group of a help page. The second column starts at the same position in all groups on a page,
    unless this would leave too little space for the column."""
    width = min(widest, formatter.width // 2)
    with formatter.section(group):
        formatter.write_dl([(first.ljust(width), second) for first, second in rows], col_max=width)
