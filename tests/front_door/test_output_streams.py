"""Whatever leaves by a stream is clean and masked, mistakes too; and a stream that takes nothing changes no
exit code but one: results that could not be shown are no success."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.kit import Done, Project, environment
from tests.support.patience import HANG_S

CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]"
OBEYED = re.compile(rf"{CONTROLS}|^[ \t]*::[a-z-]+.*?::", re.M)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\x08\n::error file=a::owned\n\x1b[31m[red]end"
WORD = HOSTILE.replace("\n", " ")

GOOD = "scenarios: [{id: good, turns: [hi], expect: {output: {contains: [hello]}}}]"
BAD = "scenarios: [{id: bad, turns: [hi], expect: {output: {contains: [bye]}}}]"


def log_line(**more: object) -> str:
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [{"id": "1", "function": {"name": HOSTILE}}]},
    ]
    return json.dumps({"id": f"c{HOSTILE}", "messages": messages, **more}) + "\n"


@pytest.fixture
def hostile(project: Project) -> Project:
    project.config()
    project.agent(f"def agent(messages): return {HOSTILE!r}")
    text = json.dumps(HOSTILE)
    expected = f"expect: {{output: {{contains: [no, {text}]}}}}"
    project.scenarios(f"scenarios: [{{id: a, turns: [{text}], {expected}}}]")
    project.write("key.yaml", f"scenarios: [{{id: a, turns: [x], {json.dumps(f'k{HOSTILE}')}: 1}}]")
    project.write("config.yaml", f"metrics: [{json.dumps(f'm{HOSTILE}')}]\n{json.dumps(HOSTILE)}: 1\n")
    project.write("log.jsonl", log_line() + json.dumps({f"k{HOSTILE}": HOSTILE}) + "\n")
    project.write("broken.jsonl", "{" + HOSTILE + "\n[[\n")
    project.write(f"file{WORD}.yaml", "x: 1\n")
    return project


COMMANDS = [  # W: a word with all that a terminal obeys
    "run", "run -v", "run key.yaml", "validate key.yaml", "run -c config.yaml", "run fileW.yaml", "run --noW",
    "run --metric W", "run --report W", "run --epochs W", "noW", "list", "list --json", "score log.jsonl",
    "score log.jsonl --report json=-", "score log.jsonl --report markdown=-",
    "score log.jsonl --scenario-from W", "score broken.jsonl", "score W", "show W", "diff W W", "report W",
    "show-prompts --metric W", "comment fileW.yaml",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_terminal_or_a_ci_log_obeys_leaves(hostile: Project, command: str) -> None:
    done = hostile.call(*(word.replace("W", WORD) for word in command.split()))
    assert done.all.strip()
    assert OBEYED.findall(done.out) == []
    assert OBEYED.findall(done.err) == []
    assert "defect" not in done.err


def test_the_same_of_a_run_that_is_looked_at_later(hostile: Project) -> None:
    assert hostile.run().code == 1
    for words in ("show", "show --json", "report latest -v", "diff latest latest", "runs", "plan"):
        done = hostile.call(*words.split())
        assert done.out
        assert OBEYED.findall(done.all) == []
    samples = json.loads(hostile.call("show", "--json").out)["scenario"]["samples"]
    assert HOSTILE in [turn["agent"] for sample in samples for turn in sample["turns"]]


def test_colors_stay_and_nothing_else_of_what_moves_a_terminal(hostile: Project) -> None:
    for words in ("run -v", "show a"):
        out = hostile.call(*words.split(), env={"FORCE_COLOR": "1"}).out
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
        assert plain != out
        assert "[red]end" in plain  # which is no markup
        assert "\x1b[31m[red]" not in out
        assert re.findall(CONTROLS, plain) == []
        starts = plain if words == "run -v" else out  # nothing is obeyed that stands behind a color
        assert not re.search(r"^[ \t]*::", starts, re.MULTILINE)


REPORTER = """
def render(report, decision, options):
    return "".join(turn.turn.answer for s in report.samples for turn in s.turns)
"""


def test_a_reporter_that_cleans_nothing_cannot_let_it_out(hostile: Project) -> None:
    hostile.write("forgetful.py", REPORTER)
    info = "forgetful-1.0.dist-info"
    hostile.write(f"{info}/entry_points.txt", "[agenteval.reporters]\nforgetful = forgetful:render\n")
    hostile.write(f"{info}/METADATA", "Metadata-Version: 2.1\nName: forgetful\nVersion: 1.0\n")
    path = os.pathsep.join([str(hostile.root), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = hostile.run("--report", "forgetful=f.txt", "--report", "forgetful=-", env={"PYTHONPATH": path})
    assert done.code == 1, done.all
    for text in (done.out, (hostile.root / "f.txt").read_text("utf-8")):
        assert "end" in text
        assert not re.search(CONTROLS, text)


# ── streams that take nothing ────────────────────────────────────────────────────────────────────


def shell(project: Project, command: str) -> Done:
    """``agenteval`` (written ``$AGENTEVAL``) in a shell, its streams buffered as a user's are."""
    env = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    script = command.replace("$AGENTEVAL", f"'{sys.executable}' -m agenteval")
    done = subprocess.run(
        ["bash", "-c", script], cwd=project.root, env=env, capture_output=True, encoding="utf-8",
        timeout=HANG_S, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_page_on_a_screen_of_another_encoding_runs_its_script(hostile: Project, encoding: str) -> None:
    """Its policy allows the script by a hash of its bytes."""
    done = hostile.call("run", "--report", "html=-", env={"PYTHONIOENCODING": encoding})
    (script,) = re.findall("<script>(.*?)</script>", done.out, re.DOTALL)
    assert f"script-src &#x27;sha256-{b64encode(sha256(script.encode()).digest()).decode()}&#x27;" in done.out


@pytest.fixture
def both(project: Project) -> Project:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    project.config()
    project.agent("def agent(messages): return 'hello'")
    project.write("good.yaml", GOOD)
    project.write("bad.yaml", BAD)
    return project


FULL, LEFT, CLOSED = "2>/dev/full", "2> >(exec true); exit $?", "2>&-"
RUNS = [("run good.yaml", 0), ("run bad.yaml", 1), ("run none.yaml", 2), ("run --none", 2)]


@pytest.mark.parametrize(
    ("command", "stream", "code"),
    [
        *((command, FULL, code) for command, code in RUNS),
        *((command, stream, code) for command, code in (RUNS[1], RUNS[3]) for stream in (LEFT, CLOSED)),
    ],
)
def test_a_stderr_that_takes_nothing_changes_no_exit_code(
    both: Project, command: str, stream: str, code: int
) -> None:
    assert shell(both, f"$AGENTEVAL {command} {stream}").code == code


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("run good.yaml", 0),
        ("run bad.yaml", 1),
        ("validate good.yaml", 0),
        ("list good.yaml", 0),
        ("--help", 0),
    ],
)
def test_results_on_a_full_device_are_no_success(both: Project, command: str, code: int) -> None:
    done = shell(both, f"$AGENTEVAL {command} >/dev/full")
    assert done.code == (code or 3)
    assert "No space left on device" in done.err  # as the system calls it
    assert "defect" not in done.err


@pytest.mark.parametrize(("command", "code"), RUNS[:2])
def test_where_both_streams_take_nothing_the_exit_code_stays(both: Project, command: str, code: int) -> None:
    assert shell(both, f"$AGENTEVAL {command} >/dev/full 2>&1").code == (code or 3)


@pytest.mark.parametrize(("command", "code"), [("run bad.yaml", 1), ("list good.yaml", 0), ("--help", 0)])
def test_a_reader_may_leave(both: Project, command: str, code: int) -> None:
    assert shell(both, f"$AGENTEVAL {command} | true; exit ${{PIPESTATUS[0]}}").code == code
