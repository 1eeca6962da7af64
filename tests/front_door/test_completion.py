"""What a shell proposes at TAB, asked for as shells do."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.kit import Project, environment

BASH = shutil.which("bash")
SUITE = """
    defaults: {checks: none}
    scenarios:
      - {id: book-morning, turns: [a], tags: [smoke]}
      - {id: two words, turns: [a]}
      - {id: "it's", turns: [a]}
      - {id: "ns:one:x", turns: [a]}
      - {id: größe, turns: [a]}
      - {id: "cash $5 (a&b)", turns: [a]}
"""


def make_suite(project: Project) -> Project:
    project.agent("def agent(m): return 'x'\n")
    compared = "compare: [{name: other bot, target: 'agent.py:agent'}]"
    project.config(f"{compared}\nprofiles: {{nightly: {{epochs: 2}}}}\n")
    project.scenarios(SUITE)
    project.scenarios("scenarios: [{id: late, turns: [a], checks: none}]", "scenarios/my orders.yaml")
    return project


@pytest.fixture
def suite(project: Project) -> Project:
    return make_suite(project)


def answer(project: Project, line: str) -> str:
    """What the program answers to fish, whose protocol the script for bash uses as well."""
    asked = {
        "_AGENTEVAL_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"agenteval {line}",
    }
    done = project.call(env=asked)
    assert done.err == ""
    return done.out


def proposed(project: Project, line: str) -> list[str]:
    return [each.partition("\t")[0] for each in answer(project, line).splitlines() if each]


@pytest.mark.parametrize(
    ("line", "expected"),
    {
        "run -s b": ["book-morning"],
        "run -s 'two": ["two words"],
        "run -s ns:o": ["ns:one:x"],
        "run scenarios/suite.yaml::b": ["scenarios/suite.yaml::book-morning"],
        "run suite.yaml::g": ["suite.yaml::größe"],
        "run -s suite.yaml::two": ["suite.yaml::two words"],
        "run 'scenarios/my orders.yaml::": ["scenarios/my orders.yaml::late"],
        "run scen": [],  # the shell knows its files
        "run --tag ": ["smoke"],
        "run --category e": ["efficiency"],
        "run --agent ": ["bot", "other bot"],
        "plan --profile ": ["nightly"],
        "run --metric help": ["helpfulness"],
        "run --report ju": ["junit"],
        "show --metric help": ["helpfulness"],
        "run -c nothing.yaml -s b": [],
    }.items(),
)
def test_names_are_proposed(suite: Project, line: str, expected: list[str]) -> None:
    assert proposed(suite, line) == expected
    assert not (suite.root / ".agenteval").exists()  # TAB makes no folder


def test_ids_and_runs_are_proposed_to_click_s_own_protocol(project: Project) -> None:
    project.agent("def agent(m): return 'x'\n")
    project.config()
    project.scenarios("""
        defaults: {checks: none}
        scenarios: [{id: other, turns: [a]}, {id: odd, turns: [a]}]
    """)
    assert project.call("run").code == 0

    def words(line: str) -> list[str]:
        asked = {"COMP_WORDS": f"agenteval {line}", "COMP_CWORD": str(len(line.split()))}
        done = project.call(env={**asked, "_AGENTEVAL_COMPLETE": "complete_bash"})
        assert done.err == ""
        return done.out.split()

    file = "scenarios/suite.yaml::o"
    assert words("run -s o") == ["other", "odd"]
    assert words(f"list -s {file}") == [f"{file}ther", f"{file}dd"]
    assert words("show od") == ["odd"]
    assert words("show la") == words("run --resume la") == ["latest"]
    assert words("diff latest pre") == ["previous"]
    project.write("agenteval.yaml", "no: [")
    assert words("run -s o") == []


def test_a_broken_file_leaves_what_the_others_hold(suite: Project) -> None:
    suite.scenarios("scenarios: [{id: broken, turns: 1", "scenarios/broken.yaml")
    assert proposed(suite, "run -s b") == ["book-morning"]


def test_the_cache_is_no_older_than_the_files(suite: Project) -> None:
    (suite.root / ".agenteval").mkdir()
    kept = suite.root / ".agenteval" / "completion.json"
    assert proposed(suite, "run -s b") == ["book-morning"]
    first = json.loads(kept.read_text(encoding="utf-8"))
    first["suite"]["scenarios"][1][1] = "b-of-the-cache"
    kept.write_text(json.dumps(first), encoding="utf-8")
    assert proposed(suite, "run -s b") == ["b-of-the-cache"]
    new = "scenarios/new.yaml"
    suite.scenarios("scenarios: [{id: brand-new, turns: [a], checks: none}]", new)
    assert proposed(suite, "run -s b") == ["brand-new", "book-morning"]
    suite.write("data/rows.csv", "id\nbread\n")
    suite.scenarios("{id: '${row.id}', rows: ../data/rows.csv, turns: [a], checks: none}", new)
    assert proposed(suite, "run -s br") == ["bread"]
    suite.write("data/rows.csv", "id\nbrie\nbroth\n")
    assert proposed(suite, "run -s br") == ["brie", "broth"]
    (suite.root / new).unlink()
    assert proposed(suite, "run -s b") == ["book-morning"]
    damaged = ("", "[]", "{", '{"read_at": "x"}', *map(json.dumps, ({**first, "patterns": None},)))
    for text in (*damaged, json.dumps({**first, "read_at": 0})):
        kept.write_text(text, encoding="utf-8")
        assert proposed(suite, "run -s b") == ["book-morning"]


# ── bash ─────────────────────────────────────────────────────────────────────────────────────────

PUT_IN = {  # what is written, and what bash puts in
    "run -s boo": ["book-morning"],
    "run -s two": [r"two\ words"],
    r"run -s two\ w": [r"two\ words"],
    "run -s 'two w": ["two words"],
    'run -s "cash': [r"cash \$5 (a&b)"],
    "run -s cash": [r"cash\ \$5\ \(a\&b\)"],
    "run -s 'it": [r"it'\''s"],
    "run -s it": [r"it\'s"],
    # Readline replaces what stands behind the last colon or "=" alone.
    "run -s ns:o": ["one:x"],
    "run -s ns:one:": ["x"],
    "run suite.yaml::b": ["book-morning"],
    r"run scenarios/my\ orders.yaml::": ["late"],
    "run --agent=ot": [r"other\ bot"],
    "run --profile ": ["nightly"],
    "run scen": [],
}


def bash_replies(project: Project, program: Path, lines: Iterable[str]) -> dict[str, list[str]]:
    """What the script puts in for each line, in one shell that completes with this program."""
    project.write("completion.bash", project.call("--show-completion", "bash").out)
    asked = """
        . ./completion.bash
        program=$1
        for line in "${@:2}"; do
            COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:' COMP_LINE=$line COMP_POINT=${#line}
            _agenteval_completion "$program"
            printf '> %s\\n' "$line" "${COMPREPLY[@]}"
            echo end
        done
    """
    done = subprocess.run(
        [str(BASH), "--norc", "-c", asked, "bash", str(program), *(f"agenteval {line}" for line in lines)],
        cwd=project.root,
        env=environment({"LC_ALL": "C.UTF-8"}),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    *blocks, rest = done.stdout.split("end\n")
    assert rest == ""
    found = [[text.removeprefix("> ") for text in block.splitlines()] for block in blocks]
    return {line.removeprefix("agenteval "): replies for line, *replies in found}


@pytest.fixture(scope="module")
def in_bash(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The program is asked beforehand: the shell gets its answers from a file."""
    project = make_suite(Project(tmp_path_factory.mktemp("bash")))
    cases = [
        f"{shlex.quote(f'agenteval {line}')}) printf %s {shlex.quote(answer(project, line))};;"
        for line in PUT_IN
    ]
    lines = ["#!/bin/sh", 'case "$_TYPER_COMPLETE_ARGS" in', *cases, "esac"]
    program = project.write("answers", "\n".join(lines) + "\n")
    program.chmod(0o755)
    return bash_replies(project, program, PUT_IN)


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize("line", PUT_IN)
def test_bash_puts_in_what_it_would_take_back(in_bash: dict[str, list[str]], line: str) -> None:
    assert in_bash[line] == PUT_IN[line]


@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_bash_asks_the_program_that_is_installed(suite: Project) -> None:
    lines = (f"#!{sys.executable}", "import sys", "sys.argv[0] = 'agenteval'")
    program = suite.write("agenteval", "\n".join((*lines, "from agenteval.cli.main import main", "main()\n")))
    program.chmod(0o755)
    assert bash_replies(suite, program, ["run -s two"]) == {"run -s two": [r"two\ words"]}


# ── installation ─────────────────────────────────────────────────────────────────────────────────


def test_a_script_is_installed_for_each_shell(project: Project) -> None:
    home = project.root / "home"
    (home).mkdir()
    env = {"HOME": str(home), "ZDOTDIR": "", "XDG_CONFIG_HOME": ""}
    (home / ".bashrc").write_text("# mine, without an end", encoding="utf-8")
    files = {"bash": ".bash_completions/agenteval.sh", "zsh": ".zfunc/_agenteval"}
    files["fish"] = ".config/fish/completions/agenteval.fish"
    for shell, file in files.items():
        for _ in range(2):
            done = project.call("--install-completion", shell, env=env)
            assert (done.code, done.err) == (0, "")
            assert str(home / file) in done.out
        assert (home / file).read_text(encoding="utf-8") == project.call("--show-completion", shell).out
    bashrc = (home / ".bashrc").read_text(encoding="utf-8").splitlines()
    assert bashrc == ["# mine, without an end", f"source '{home / files['bash']}'"]
    assert (home / ".zshrc").read_text(encoding="utf-8").count("compinit") == 2

    wrong = project.call("--install-completion", "fihs", env=env)
    wrong.refuses("agenteval", "'fihs'", "'fish'")
    assert wrong.out == ""
    project.call("--install-completion", "pwsh", env=env).refuses(
        "agenteval", "agenteval --show-completion pwsh >> $PROFILE"
    )
    (home / ".zfunc" / "_agenteval").unlink()
    (home / ".zfunc").rmdir()
    (home / ".zfunc").write_text("a file in the way", encoding="utf-8")
    project.call("--install-completion", "zsh", env=env).refuses(
        "agenteval", "agenteval --show-completion zsh"
    )
