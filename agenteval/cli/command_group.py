"""The command groups of the ``agenteval`` command-line interface. An unknown command is rejected with a
one-line error."""

from __future__ import annotations

import os
from typing import Any

from agenteval.cli.help_pages import GroupedCommands
from agenteval.core.errors import AuthorError, Problem, did_you_mean

_COMPLETION = {
    "--install-completion": "Install completion for this shell, or for the named one: bash, zsh or fish.",
    "--show-completion": "Print the completion script instead.",
}
"""The help texts of the completion options. They replace Typer's own options, which work only for the shell
that started the program and do not accept a shell name."""


class CommandGroup(GroupedCommands):
    """A command group that rejects an unknown command and suggests a similar name."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        for each in params:
            each.help = _COMPLETION.get(each.opts[0], getattr(each, "help", None))
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] and args[0] in _COMPLETION and not ctx.resilient_parsing:
            from agenteval.cli.commands.install_completion import complete_in_shell

            complete_in_shell(args)
            ctx.exit()
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            raise AuthorError(self._no_command(word, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def _no_command(self, word: str, known: list[str]) -> Problem:
        # Imported here, because --help needs none of it.
        from agenteval.core.safe_text import one_line
        from agenteval.core.selection import ID_SEPARATOR
        from agenteval.reporters.words.rerun_commands import command_of

        what = f"'{one_line(word, 80)}' is not a command"
        if "run" in known and os.path.exists(word.partition(ID_SEPARATOR)[0]):
            return Problem(what, f"to run the scenarios there, use {command_of(['agenteval', 'run', word])}")
        return Problem(what, did_you_mean(word, known))
