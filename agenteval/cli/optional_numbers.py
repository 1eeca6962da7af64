"""Lets an option be given with or without its number, such as ``--history`` and ``--history 5``. Typer does
not support this: an option either always has a value or never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from agenteval.cli.help_pages import GroupedCommand


class ReportCommand(GroupedCommand):
    """The command ``report``, whose option ``--history`` need not have a number."""

    NUMBERS: ClassVar[Mapping[str, str]] = {"--history": "20"}
    """The number of an option that is given without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(ctx, list(add_numbers(args, self.NUMBERS)))
        return rest


def add_numbers(args: Sequence[str], numbers: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments, and after each option in ``numbers`` its number, unless the option is followed by
    a value. An argument after ``--`` is no option."""
    is_option = True
    for index, argument in enumerate(args):
        yield argument
        is_option = is_option and argument != "--"
        if is_option and argument in numbers and not _is_value(args[index + 1 : index + 2]):
            yield numbers[argument]


def _is_value(following: Sequence[str]) -> bool:
    return bool(following) and not following[0].startswith("-")
