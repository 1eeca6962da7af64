"""A word that is no command, and the options of completion."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agenteval.cli.command_group import CommandGroup
from agenteval.cli.commands import install_completion
from agenteval.cli.declared_commands import DeclaredCommands
from agenteval.core.errors import AuthorError


def made(*names: str) -> typer.Typer:
    """A program with these commands, which do nothing."""

    class Commands(CommandGroup):
        declared = DeclaredCommands()

    app = typer.Typer(cls=Commands)
    app.callback()(lambda: None)
    for name in names:
        Commands.declared.command(name)(lambda: None)
    return app


RUN, TOOLS = made("run", "runs", "show"), made("serve", "schemas")


@pytest.mark.parametrize("name", ["run", "runs", "show"])
def test_a_command_is_carried_out(name: str) -> None:
    assert CliRunner().invoke(RUN, [name]).exit_code == 0


def refused(app: typer.Typer, *words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, AuthorError)
    (problem,) = done.exception.problems
    assert "not a command" in problem.what
    assert words[0][:40] in problem.what
    return problem.remedy or ""


@pytest.mark.parametrize(
    ("app", "word", "remedy"), [(RUN, "shwo", "show"), (RUN, "rn", "run"), (TOOLS, "serv", "serve")]
)
def test_a_near_command_is_proposed(app: typer.Typer, word: str, remedy: str) -> None:
    assert remedy in refused(app, word)


@pytest.mark.parametrize("word", ["a.yaml", "deep", "a.yaml::refund", "two words.yaml"])
def test_a_path_is_meant_to_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert "agenteval run" not in refused(RUN, word)
    for name in ("a.yaml", "two words.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "deep").mkdir()
    written = f"'{word}'" if " " in word else word
    assert f"agenteval run {written}" in refused(RUN, word)
    assert "agenteval run" not in refused(TOOLS, word)


def test_a_long_word_is_cut_and_a_strange_one_harmless() -> None:
    for word in ("x" * 250, "x" * 300, "x" * 300 + "::a", "x\x1b[2Jy\nz"):
        done = CliRunner().invoke(RUN, [word])
        assert isinstance(done.exception, AuthorError)
        what = str(done.exception)
        assert "x" * 81 not in what
        assert "\x1b" not in what
        assert "\n" not in what


def test_an_unknown_option_is_no_command() -> None:
    done = CliRunner().invoke(RUN, ["--unknown"])
    assert done.exit_code == 2
    assert not isinstance(done.exception, AuthorError)


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
@pytest.mark.parametrize("shell", [[], ["zsh"]])
def test_completion_takes_the_name_of_a_shell(
    monkeypatch: pytest.MonkeyPatch, option: str, shell: list[str]
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(install_completion, "complete_in_shell", seen.append)
    assert CliRunner().invoke(RUN, [option, *shell]).exit_code == 0
    assert seen == [[option, *shell]]


def test_it_is_an_option_only_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(install_completion, "complete_in_shell", seen.append)
    assert CliRunner().invoke(RUN, ["run", "--show-completion"]).exit_code == 2
    assert seen == []


def test_help_says_that_a_shell_may_be_named() -> None:
    text = CliRunner().invoke(RUN, ["--help"]).output
    (line,) = [line for line in text.splitlines() if "--install-completion" in line]
    assert "bash, zsh or fish" in " ".join(text.split())
    assert line
