"""What of the command line is documented and not built: refused in a line, never unknown nor ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.cli.help_pages import GroupedCommand, GroupedCommands
from agenteval.core.errors import AuthorError, Problem

_SHARDS = "run the folders of the suite separately"
_SELECTING: Mapping[str, str] = {
    "--faults": "let tools answer with error, or a sequence with errors",
    "--variants": "write scenarios for them",
}
_RUNNING: Mapping[str, str] = {
    "--watch": "run it again",
    "--shard": _SHARDS,
    "--backend": _SHARDS,
    "--open": "use --report markdown=PATH",
}
NOT_YET: Mapping[str, Mapping[str, str]] = {
    "": {
        "init": "write agenteval.yaml as in the README",
        "schema": "docs/configuration.md and docs/scenarios.md have the keys",
        "import": "use agenteval score FILE",
        "shrink": "shorten the scenario's turns by hand",
        "judge": "use agenteval score FILE -m PROVIDER/MODEL again, and compare",
        "label": "write the correct behaviour into the scenario's criteria",
        "merge": _SHARDS,
    },
    "run": {**_SELECTING, **_RUNNING},
    "plan": _SELECTING,
    "validate": _SELECTING,
    "report": {"--open": _RUNNING["--open"]},
}
"""By command (``""``: of agenteval itself), each with what to do instead. Building one removes its line."""


def not_yet(command: str, name: str, said: str = "") -> AuthorError:
    """``said``: how it was written."""
    return AuthorError(Problem(f"{said or name} is not supported yet", NOT_YET[command][name]))


class Command(GroupedCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            raise _told(self.name or "", error) from None


class Commands(GroupedCommands):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            raise _told("", error) from None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in NOT_YET[""]:
            raise not_yet("", cmd_name, f"agenteval {cmd_name}")
        return found


def _told(command: str, error: Exception) -> Exception:
    """The error itself, unless it is that of an option which is nobody's. The classes of such errors are not
    public: some versions of typer have them from click, others have their own."""
    name = getattr(error, "option_name", "")
    is_unknown = type(error).__name__ == "NoSuchOption" and name in NOT_YET.get(command, {})
    return not_yet(command, name) if is_unknown else error
