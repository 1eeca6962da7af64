"""What a shell proposes at TAB, asked for as shells do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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


@pytest.fixture
def suite(project: Project) -> Project:
    project.agent("def agent(m): return 'x'\n")
    compared = "compare: [{name: other bot, target: 'agent.py:agent'}]"
    project.config(f"{compared}\nprofiles: {{nightly: {{epochs: 2}}}}\n")
    project.scenarios(SUITE)
    project.scenarios("scenarios: [{id: late, turns: [a], checks: none}]", "scenarios/my orders.yaml")
    return project


def program(project: Project) -> Path:
    """As a shell starts it: by the name that it is installed under."""
    lines = (f"#!{sys.executable}", "import sys", "sys.argv[0] = 'agenteval'")
    path = project.write(
        "bin/agenteval", "\n".join((*lines, "from agenteval.cli.main import main", "main()\n"))
    )
    path.chmod(0o755)
    return path


def proposed(project: Project, line: str) -> list[str]:
    asked = {
        "_AGENTEVAL_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"agenteval {line}",
    }
    command = [sys.executable, str(program(project))]
    done = subprocess.run(
        command, cwd=project.root, env=environment(asked), capture_output=True, text=True, encoding="utf-8"
    )
    assert done.stderr == ""
    return [each.partition("\t")[0] for each in done.stdout.splitlines() if each]


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


def test_a_broken_file_leaves_what_the_others_hold(suite: Project) -> None:
    suite.scenarios("scenarios: [{id: broken, turns: 1", "scenarios/broken.yaml")
    assert proposed(suite, "run -s b") == ["book-morning"]


def test_what_is_kept_is_no_older_than_the_files(suite: Project) -> None:
    (suite.root / ".agenteval").mkdir()
    kept = suite.root / ".agenteval" / "completion.json"
    assert proposed(suite, "run -s b") == ["book-morning"]
    first = json.loads(kept.read_text(encoding="utf-8"))
    first["suite"]["scenarios"][1][1] = "b-of-what-is-kept"
    kept.write_text(json.dumps(first), encoding="utf-8")
    assert proposed(suite, "run -s b") == ["b-of-what-is-kept"]
    suite.scenarios("scenarios: [{id: brand-new, turns: [a], checks: none}]", "scenarios/new.yaml")
    assert proposed(suite, "run -s b") == ["brand-new", "book-morning"]
    suite.write("data/rows.csv", "id\nbread\n")
    suite.scenarios(
        "{id: '${row.id}', rows: ../data/rows.csv, turns: [a], checks: none}", "scenarios/new.yaml"
    )
    assert proposed(suite, "run -s br") == ["bread"]
    suite.write("data/rows.csv", "id\nbrie\nbroth\n")
    assert proposed(suite, "run -s br") == ["brie", "broth"]
    (suite.root / "scenarios" / "new.yaml").unlink()
    assert proposed(suite, "run -s b") == ["book-morning"]
    for damaged in ("", "[]", "{", '{"read_at": "x"}', json.dumps({**first, "patterns": None})):
        kept.write_text(damaged, encoding="utf-8")
        assert proposed(suite, "run -s b") == ["book-morning"]
    kept.write_text(json.dumps({**first, "read_at": 0}), encoding="utf-8")
    assert proposed(suite, "run -s b") == ["book-morning"]


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "replies"),
    {
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
    }.items(),
)
def test_bash_is_told_what_it_is_to_put_in(suite: Project, line: str, replies: list[str]) -> None:
    script = suite.call("--show-completion", "bash").out
    suite.write("completion.bash", script)
    asked = """
        . ./completion.bash
        COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:' COMP_LINE=$1 COMP_POINT=${#1}
        _agenteval_completion "$2"
        if ((${#COMPREPLY[@]})); then printf '%s\\n' "${COMPREPLY[@]}"; fi
    """
    done = subprocess.run(
        [str(BASH), "--norc", "-c", asked, "bash", f"agenteval {line}", str(program(suite))],
        cwd=suite.root,
        env=environment({"LC_ALL": "C.UTF-8"}),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == replies


def test_a_shell_is_named_or_the_message_says_so(project: Project) -> None:
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
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean 'fish'?" in wrong.err
    by_hand = project.call("--install-completion", "pwsh", env=env)
    assert by_hand.code == 2
    assert "agenteval --show-completion pwsh >> $PROFILE" in by_hand.err
    (home / ".zfunc" / "_agenteval").unlink()
    (home / ".zfunc").rmdir()
    (home / ".zfunc").write_text("a file in the way", encoding="utf-8")
    stopped = project.call("--install-completion", "zsh", env=env)
    assert stopped.code == 2
    assert "agenteval --show-completion zsh prints the script" in stopped.err
