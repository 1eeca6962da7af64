"""Implements shell completion (``agenteval --install-completion [SHELL]`` and ``--show-completion``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agenteval.cli.safe_output import print_out
from agenteval.core.errors import AuthorError, Problem, did_you_mean

INSTALL, SHOW = "--install-completion", "--show-completion"
_SUFFIXES = {"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1", "pwsh": "ps1"}


class _CompletionTarget(NamedTuple):
    """The location of a completion script, and the line that loads the script in a shell."""

    script: Path
    loads: str = ""
    """The line that loads the script, or an empty string if the shell finds the script automatically."""
    loaded_in: Path = Path()
    """The file to which the loading line is added."""


def complete_in_shell(arguments: Sequence[str]) -> None:
    """Install or print the shell completion script. Raise ``AuthorError`` if the shell is unknown or the
    script cannot be installed."""
    option, *named = arguments
    if len(named) > 1:
        raise AuthorError(Problem(f"{option} accepts one shell", f"use `agenteval {option} {named[0]}`"))
    shell = _require_known_shell(option, named[0]) if named else _detect_shell(option)
    if option == SHOW:
        print_out(_script(shell))
        return
    path = _install(shell)
    print_out(f"completion for {shell} is installed in {path}; it works in new shells")


def _require_known_shell(option: str, name: str) -> str:
    if name not in _SUFFIXES:
        raise AuthorError(Problem(f"{option}: unknown shell '{name}'", did_you_mean(name, _SUFFIXES)))
    return name


def _detect_shell(option: str) -> str:
    shell = ""
    with suppress(ImportError, OSError):  # a dependency of typer that it may drop
        from shellingham import detect_shell  # type: ignore[import-untyped]

        shell = detect_shell()[0]
    if shell not in _SUFFIXES:
        what = f"unknown shell '{shell}'" if shell else "the shell cannot be detected"
        raise AuthorError(Problem(f"{option}: {what}", f"specify the shell: {option} bash (or zsh, fish)"))
    return shell


def _script(shell: str) -> str:
    file = Path(__file__).parent.parent / "shells" / f"completion.{_SUFFIXES[shell]}"
    return file.read_text(encoding="utf-8")


def _install(shell: str) -> Path:
    target = _targets().get(shell)
    if target is None:
        what = f"{INSTALL} does not support the profile of {shell}"
        raise AuthorError(Problem(what, f"append the script manually: agenteval {SHOW} {shell} >> $PROFILE"))
    try:
        target.script.parent.mkdir(parents=True, exist_ok=True)
        target.script.write_text(_script(shell), encoding="utf-8", newline="\n")
        if target.loads:
            _add_line(target.loads, target.loaded_in)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what = f"completion for {shell} cannot be installed: {getattr(error, 'filename', '')}: {reason}"
        raise AuthorError(Problem(what, f"print the script with `agenteval {SHOW} {shell}`")) from None
    return target.script


def _add_line(line: str, path: Path) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if line not in before.splitlines():
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{'' if before.endswith(chr(10)) or not before else chr(10)}{line}\n")


def _targets() -> dict[str, _CompletionTarget]:
    home = Path.home()
    fish = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish"
    zshrc = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    bash = home / ".bash_completions" / "agenteval.sh"
    return {
        "bash": _CompletionTarget(bash, f"source '{bash}'", home / ".bashrc"),
        "zsh": _CompletionTarget(
            home / ".zfunc" / "_agenteval", "fpath+=~/.zfunc; autoload -Uz compinit; compinit", zshrc
        ),
        "fish": _CompletionTarget(fish / "completions" / "agenteval.fish"),
    }
