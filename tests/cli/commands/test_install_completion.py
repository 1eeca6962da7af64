"""``--install-completion`` and ``--show-completion``: which script, in which file, loaded by which line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.cli import commands
from agenteval.cli.commands import install_completion
from agenteval.cli.commands.install_completion import INSTALL, SHOW, complete_in_shell
from agenteval.core.errors import AuthorError

SHELLS = Path(commands.__file__).parent.parent / "shells"
ENDINGS = {"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1", "pwsh": "ps1"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def script(shell: str) -> str:
    return (SHELLS / f"completion.{ENDINGS[shell]}").read_text(encoding="utf-8")


def files(home: Path) -> dict[str, str]:
    found = (each for each in home.rglob("*") if each.is_file())
    return {each.relative_to(home).as_posix(): each.read_text(encoding="utf-8") for each in found}


@pytest.mark.parametrize("shell", list(ENDINGS))
def test_a_script_is_printed(shell: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complete_in_shell([SHOW, shell])
    said = capsys.readouterr()
    assert (said.out, said.err) == (script(shell), "")
    assert "agenteval" in said.out
    assert files(home) == {}


BASH, ZSH = ".bash_completions/agenteval.sh", ".zfunc/_agenteval"
ZSH_LINE = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"


def test_bash(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complete_in_shell([INSTALL, "bash"])
    assert files(home) == {BASH: script("bash"), ".bashrc": f"source '{home / BASH}'\n"}
    assert str(home / BASH) in capsys.readouterr().out


def test_zsh(home: Path) -> None:
    complete_in_shell([INSTALL, "zsh"])
    assert files(home) == {ZSH: script("zsh"), ".zshrc": f"{ZSH_LINE}\n"}


def test_fish_finds_its_scripts_itself(home: Path) -> None:
    complete_in_shell([INSTALL, "fish"])
    assert files(home) == {".config/fish/completions/agenteval.fish": script("fish")}


def test_folders_that_variables_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    monkeypatch.setenv("ZDOTDIR", str(home / "z"))
    (home / "z").mkdir()
    for shell in ("fish", "zsh"):
        complete_in_shell([INSTALL, shell])
    assert set(files(home)) == {"xdg/fish/completions/agenteval.fish", ZSH, "z/.zshrc"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{ZSH_LINE}\n"),
        ("a\n", f"a\n{ZSH_LINE}\n"),
        ("a", f"a\n{ZSH_LINE}\n"),
        (f"{ZSH_LINE}\nb\n", f"{ZSH_LINE}\nb\n"),
        (f"a\n{ZSH_LINE}", f"a\n{ZSH_LINE}"),
        (f"# {ZSH_LINE}\n", f"# {ZSH_LINE}\n{ZSH_LINE}\n"),
    ],
)
def test_the_line_is_added_once(home: Path, before: str, after: str) -> None:
    (home / ".zshrc").write_text(before)
    for _ in range(2):
        complete_in_shell([INSTALL, "zsh"])
        assert (home / ".zshrc").read_text() == after


@pytest.mark.parametrize("option", [INSTALL, SHOW])
@pytest.mark.parametrize(("found", "shell"), [("bash", "bash"), ("zsh", "zsh"), ("tcsh", ""), (None, "")])
def test_the_shell_is_found(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    found: str | None,
    shell: str,
) -> None:
    shellingham = pytest.importorskip("shellingham")

    def detect_shell() -> tuple[str, str]:
        if found is None:
            raise OSError
        return found, f"/bin/{found}"

    monkeypatch.setattr(shellingham, "detect_shell", detect_shell)
    if shell:
        complete_in_shell([option])
        assert (BASH in files(home)) is (option == INSTALL and shell == "bash")
        assert (capsys.readouterr().out == script(shell)) is (option == SHOW)
        return
    with pytest.raises(AuthorError) as error:
        complete_in_shell([option])
    assert f"{option} bash" in str(error.value)
    assert ("tcsh" in str(error.value)) is (found == "tcsh")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ([SHOW, "bsh"], [SHOW, "'bsh'", "bash"]),
        ([INSTALL, ""], [INSTALL, "''"]),
        ([SHOW, "bash", "zsh"], [SHOW, f"agenteval {SHOW} bash"]),
        ([INSTALL, "powershell"], [INSTALL, f"{SHOW} powershell"]),
        ([INSTALL, "pwsh"], [INSTALL, f"{SHOW} pwsh"]),
    ],
)
def test_what_is_refused(home: Path, arguments: list[str], facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        complete_in_shell(arguments)
    for fact in facts:
        assert fact in str(error.value)
    assert files(home) == {}


@pytest.mark.parametrize("obstacle", [".zfunc", ".zshrc/x", ".zshrc"])
def test_a_profile_that_cannot_be_written(home: Path, obstacle: str) -> None:
    (home / obstacle).parent.mkdir(exist_ok=True)
    (home / obstacle).write_bytes(b"\xff")
    with pytest.raises(AuthorError) as error:
        complete_in_shell([INSTALL, "zsh"])
    assert f"{SHOW} zsh" in str(error.value)


def test_every_script_belongs_to_a_shell() -> None:
    there = {name.partition(".")[2] for name in os.listdir(SHELLS) if name.startswith("completion.")}
    assert there == set(install_completion._SUFFIXES.values())
