"""What of the command line is documented and not built, and what is no command: refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenteval.cli.help_pages import GroupedCommand, GroupedCommands
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.not_yet import COMMAND_LINE


def not_yet(command: str, name: str, said: str = "") -> AuthorError:
    """``said``: how it was written."""
    return AuthorError(Problem(f"{said or name} is not supported yet", COMMAND_LINE[command][name]))


_COMPLETION = {
    "--install-completion": "Install completion for this shell, or for bash, zsh or fish where it is named.",
    "--show-completion": "Print its script instead.",
}
"""Typer's own recognise no shell but the one that started them, and take no name."""


class Command(GroupedCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            raise _told(self.name or "", error) from None


class Commands(GroupedCommands):
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
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            raise _told(self.name or "", error) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            raise AuthorError(self._no_command(word, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def _no_command(self, word: str, known: list[str]) -> Problem:
        # Imported here: whoever asks for help needs none of it.
        from agenteval.core.safe_text import one_line
        from agenteval.core.selection import BETWEEN
        from agenteval.reporters.words.repeat_command import command_of

        what = f"'{one_line(word, 80)}' is no command"
        if "run" in known and Path(word.partition(BETWEEN)[0]).exists():
            return Problem(what, f"{command_of(['agenteval', 'run', word])} runs what is there")
        return Problem(what, did_you_mean(word, known))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        own = self.name or ""
        if found is None and cmd_name in COMMAND_LINE.get(own, {}):
            path = own if own == "agenteval" else f"agenteval {own}"
            raise not_yet(own, cmd_name, f"{path} {cmd_name}")
        return found


def _told(command: str, error: Exception) -> Exception:
    """The error itself, unless it is that of an option which is nobody's. The classes of such errors are not
    public: some versions of typer have them from click, others have their own."""
    name = getattr(error, "option_name", "")
    is_unknown = type(error).__name__ == "NoSuchOption" and name in COMMAND_LINE.get(command, {})
    return not_yet(command, name) if is_unknown else error
