"""A report of one's own: ``reporters: [my_reports.py:Team]``, ``--report my_reports.py:Team=team.md``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.kit import Project, environment

REPORTS = """
import agenteval


class Team:
    def render(self, sections: agenteval.ReportSections, options: agenteval.ReportOptions) -> str:
        print("a note for nobody")
        lines = [sections.verdict]
        lines += [f"{each.id}: {each.verdict} ({each.reason})" for each in sections.scenarios]
        lines += [f"gate {gate.name}: {gate.verdict}" for gate in sections.gates]
        return "\\n".join([*lines, *(section.title for section in sections)])


def team(sections, options):
    return f"team: {sections.verdict}"


def broken(sections, options):
    raise OSError("no channel")


def empty(sections, options):
    return None


def quits(sections, options):
    raise SystemExit(0)


def leak(sections, options):
    return "key \\x1b]0;title\\x07 hunter2hunter2\\n  ::error::obey"


def narrow(sections): ...
"""
AGENT = """
from pathlib import Path


def agent(messages):
    Path(__file__).with_name("asked").touch()
    return "Hello."
"""
GREEN = "{id: greet, turns: [Hi], expect: {output: {contains: Hello}}}"
RED = "{id: bye, turns: [Bye], expect: {output: {contains: Goodbye}}}"


@pytest.fixture
def reported(project: Project) -> Project:
    project.config()
    project.write("my_reports.py", REPORTS)
    project.agent(AGENT)
    project.scenarios(f"scenarios:\n  - {GREEN}\n")
    return project


def read(project: Project, name: str) -> str:
    return (project.root / name).read_text(encoding="utf-8")


def asked(project: Project) -> bool:
    return (project.root / "asked").exists()


@pytest.mark.parametrize("target", ["my_reports.py:Team", "my_reports:Team"])
def test_it_is_given_the_verdict_the_reasons_and_the_gates(reported: Project, target: str) -> None:
    reported.scenarios(f"scenarios:\n  - {GREEN}\n  - {RED}\n")
    reported.config(f"reporters: [terminal, '{target}=out/team.md']")
    done = reported.call("run")
    assert done.code == 1, done.all
    lines = read(reported, "out/team.md").splitlines()
    assert lines[:2] == ["failed", "greet: passed ()"]
    assert lines[2].startswith("bye: failed (")
    assert "Goodbye" in lines[2]
    assert "gate every sample passes: failed" in lines
    assert {"What gated this run", "Scenarios", "Failures", "Usage"} <= set(lines)
    assert "a note for nobody" not in done.out
    assert done.out.splitlines()[-1].startswith("FAILED")


def test_the_option_takes_a_path_or_writes_to_stdout(reported: Project) -> None:
    done = reported.call("run", "--report", "my_reports.py:Team=team.md", "--report", "my_reports.py:team")
    assert done.code == 0, done.all
    assert read(reported, "team.md").startswith("passed\ngreet: passed ()")
    assert done.out.startswith("team: passed\n")


def test_it_is_found_from_the_folder_of_the_configuration(reported: Project) -> None:
    inner = Project(reported.root / "scenarios")
    done = inner.call("run", "--report", "my_reports.py:Team=team.md")
    assert done.code == 0, done.all
    assert read(inner, "team.md").startswith("passed")
    again = inner.call("report", "latest", "--report", "my_reports.py:team")
    assert (again.code, again.out) == (0, "team: passed\n"), again.all


def test_a_log_has_one_too(reported: Project) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    reported.write("log.jsonl", json.dumps({"id": "a", "messages": messages}) + "\n")
    done = reported.call("score", "log.jsonl", "--no-judge", "--report", "my_reports.py:Team=team.md")
    assert done.code == 0, done.all
    assert read(reported, "team.md").startswith("reported\ngate ")


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize("target", ["nowhere.py:Team", "my_reports.py:Tean", "my_reports.py:narrow"])
def test_a_mistake_in_it_is_found_before_anything_is_played(
    reported: Project, target: str, command: str
) -> None:
    reported.config(f"reporters:\n  - terminal\n  - '{target}'\n")
    reported.call(command).refuses("agenteval.yaml:5:5", target.partition(":")[0])
    assert not asked(reported)


def test_a_mistake_in_the_option_is_found_before_anything_is_played(reported: Project) -> None:
    reported.call("run", "--report", "my_reports.py:narrow=x").refuses("--report", "narrow(sections)")
    done = reported.call("run", "--report", "my_reports.py:team=my_reports.py")
    assert done.code == 2
    assert not asked(reported)


@pytest.mark.parametrize(
    ("name", "fact"), [("broken", "no channel"), ("quits", "SystemExit"), ("empty", "NoneType")]
)
@pytest.mark.parametrize(("scenario", "code", "verdict"), [(GREEN, 3, "passed"), (RED, 1, "failed")])
def test_one_that_fails_changes_no_verdict_and_is_no_success(
    reported: Project, name: str, fact: str, scenario: str, code: int, verdict: str
) -> None:
    reported.scenarios(f"scenarios:\n  - {scenario}\n")
    done = reported.run("--report", f"my_reports.py:{name}=team.md")
    assert done.code == code, done.all
    (line,) = [line for line in done.err.splitlines() if f"my_reports.py:{name}" in line]
    assert fact in line
    assert not (reported.root / "team.md").exists()
    assert reported.results()["summary"]["verdict"] == verdict
    assert reported.call("report", "latest", "--report", f"my_reports.py:{name}").code == code


def test_what_it_returns_is_masked_and_cleaned(reported: Project) -> None:
    env = {"TEAM_API_KEY": "hunter2hunter2"}
    done = reported.call(
        "run", "--report", "my_reports.py:leak=leak.txt", "--report", "my_reports.py:leak", env=env
    )
    assert done.code == 0, done.all
    for text in (read(reported, "leak.txt"), done.out):
        assert "key" in text
        assert "hunter2" not in text
        assert "\x1b]0;" not in text
        assert "obey" in text
        assert "::error" not in text


def test_a_changed_reporter_does_not_prevent_a_resume(reported: Project) -> None:
    reported.config("reporters: ['my_reports.py:team=team.md']")
    assert reported.call("run").code == 0
    (journal,) = (reported.root / ".agenteval/runs").glob("*/events.jsonl")
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    begun = next(index for index, line in enumerate(lines) if '"sample_started"' in line)
    journal.write_text("".join(lines[:begun]), encoding="utf-8")
    reported.write("my_reports.py", "def team(sections, options):\n    return 'anew'\n")
    done = reported.call("run", "--resume", "latest")
    assert done.code == 0, done.all
    assert read(reported, "team.md") == "anew"


def test_a_comparison_has_none(reported: Project) -> None:
    assert reported.call("run").code == 0
    done = reported.call("diff", "latest", "latest", "--report", "my_reports.py:team")
    done.refuses("agenteval", "'my_reports.py:team'")


def test_python_renders_with_it(reported: Project) -> None:
    code = "import agenteval; print(agenteval.run_sync('scenarios/').render('my_reports.py:team'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=reported.root, env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "team: passed\n"), done.stderr
