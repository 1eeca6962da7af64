"""``agenteval report``: from the journal alone, the same reports as of the run itself."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.judged_projects import KEY, contented, judged_project, model_config, scenario
from tests.support.kit import Project
from tests.support.model_servers import ModelServer
from tests.support.pages import index_of, packed_in
from tests.support.patience import eventually
from tests.support.results import has, last_line, reports

AGENT = """
    def agent(messages, ctx):
        if ctx.scenario_id == "lost" and ctx.epoch == 1:
            raise ConnectionRefusedError("down")
        return "no" if ctx.scenario_id == "flaky" and ctx.epoch == 1 else "yes"
"""
CASES = """
    cases:
      - {id: always, input: hello, expected_output_contains: ["yes"]}
      - {id: flaky, input: hello, expected_output_contains: ["yes"]}
      - {id: lost, input: hello, expected_output_contains: ["yes"]}
"""


@pytest.fixture
def ran(project: Project) -> Project:
    project.config("epochs: 3\n")
    project.agent(AGENT)
    project.scenarios(CASES)
    return project


def journal_of(project: Project) -> Path:
    (path,) = (project.root / ".agenteval" / "runs").glob("*/events.jsonl")
    return path


@pytest.mark.parametrize(
    ("filters", "code"), [((), 1), (("-s", "always"), 0), (("-s", "always", "-s", "lost"), 3)]
)
def test_the_reports_are_those_of_the_run_to_the_byte(
    ran: Project, filters: tuple[str, ...], code: int
) -> None:
    names = ("json", "junit", "markdown", "github", "html")
    files = [part for name in names for part in ("--report", f"{name}=first.{name}")]
    first = ran.call("run", *files, *filters)
    assert first.code == code
    again = [part for name in names for part in ("--report", f"{name}=second.{name}")]
    second = ran.call("report", "latest", "--report", "terminal", *again)
    assert second.code == code
    assert second.out == first.out
    for name in names:
        assert (ran.root / f"second.{name}").read_bytes() == (ran.root / f"first.{name}").read_bytes()


def test_what_judges_were_asked_is_in_the_page_again(project: Project) -> None:
    """It is stored beside the journal."""
    with ModelServer(contented()) as server:
        config = model_config(server, "metrics: [helpfulness, goal_completion]\nepochs: 2\n")
        judged_project(project, [scenario("a", "hi", goal="Say a number."), scenario("b", "hi")], config)
        first = project.call("run", "--report", "html=first.html", env=KEY)
    assert first.code == 0, first.all
    assert project.call("report", "latest", "--report", "html=second.html").code == 0
    page, again = ((project.root / f"{name}.html").read_bytes() for name in ("first", "second"))
    assert again == page
    assert index_of(page.decode())["requests"] == 1
    asked = json.loads(packed_in(page.decode())["requests-0"])["asked"]
    assert [sorted(each["metric"] for each in one) for one in asked] == [
        *[["goal_completion", "helpfulness"]] * 2,
        *[["helpfulness"]] * 2,
    ]


def test_the_commands_of_an_older_run_name_it(ran: Project) -> None:
    """Those of the latest need not: it is the default."""
    ran.run()
    (older,) = (path.name for path in (ran.root / ".agenteval/runs").iterdir())
    ran.run("-s", "always")
    text = ran.call("report", older).out
    assert text.count(f"agenteval show {older} ") == 3  # of each failure, and in the last lines
    assert f"agenteval run --failed-in {older.rpartition('-')[2]} " in text
    shown = next(line for line in text.splitlines() if line.startswith("  agenteval show "))
    words = shlex.split(shown.partition("#")[0])
    assert ran.call(*words[1:]).code == 0
    (moved := ran.root / "moved").mkdir()
    (ran.root / ".agenteval/runs" / older).rename(moved / older)
    assert f"agenteval show moved/{older} " in ran.call("report", f"moved/{older}").out


def test_without_a_choice_it_is_only_the_terminal(ran: Project) -> None:
    ran.run()
    done = ran.call("report", "latest")
    assert (done.out.startswith("agenteval "), "report:" in done.err) == (True, False)
    assert len(ran.call("report", "latest", "-v").out) > len(done.out)
    asked = ran.call("report", "latest", "--report", "json=-")
    assert json.loads(asked.out)["summary"]["exit_code"] == 1


def rewrite(path: Path, keep: Callable[[str], bool]) -> None:
    """Leave only the events of the journal that are to be kept."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(filter(keep, lines)), "utf-8")


def test_a_run_that_was_killed_is_incomplete_and_never_green(ran: Project) -> None:
    """As a kill leaves it: whole events, and a last line that is torn."""
    ran.run("-s", "always")
    path = journal_of(ran)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    ends = [i for i, line in enumerate(lines) if '"sample_finished"' in line]
    path.write_text("".join(lines[: ends[1] + 1]) + lines[ends[1] + 1][:40], "utf-8")
    done = ran.call("report", "latest", "--report", "json=results.json", "--report", "terminal")
    assert (done.code, "INCOMPLETE" in done.out) == (3, True), done.all
    assert ran.results()["run"]["complete"] is False
    verdicts = [s["verdict"] for s in ran.results()["scenarios"][0]["samples"]]
    assert sorted(verdicts) == ["inconclusive", "passed", "passed"]


def test_a_killed_run_that_had_failed_has_failed(ran: Project) -> None:
    ran.config("epochs: 2\nagent_concurrency: 1\n")
    ran.run("-s", "flaky")
    rewrite(journal_of(ran), lambda line: '"run_finished"' not in line)
    assert ran.call("report", str(journal_of(ran))).code == 1


def test_findings_of_a_killed_run_are_grouped_by_code(project: Project) -> None:
    project.config()
    project.agent("def agent(messages, ctx):\n    ctx.call_tool_sync('nonsense', {})\n    return 'yes'\n")
    project.scenarios("id: a\nturns: [hello]\nexpect: {limits: {steps: 9}}\ntools: {search: {returns: 1}}\n")
    assert project.run().code == 1
    issues = project.results()["summary"]["issues"]
    assert issues
    rewrite(journal_of(project), lambda line: '"issues_found"' not in line)
    project.call("report", "latest", "--report", "json=results.json")
    assert project.results()["summary"]["issues"] == issues


def test_a_run_killed_for_real_can_be_reported(project: Project) -> None:
    project.config("agent_concurrency: 1\n")
    project.agent(
        """
        import time

        def agent(messages, ctx):
            if ctx.scenario_id == "hangs":
                open("reached", "w").close()
                time.sleep(60)
            return "yes"
        """
    )
    project.scenarios("cases:\n  - {id: first, input: hello}\n  - {id: hangs, input: hello}\n")
    process = project.start("run")
    try:
        wait_for(project.root / "reached")
    finally:
        process.kill()
    assert project.call("report", "latest", "--report", "json=results.json").code == 3
    samples = {s["id"]: s["samples"][0]["verdict"] for s in project.results()["scenarios"]}
    assert samples == {"first": "passed", "hangs": "inconclusive"}


def test_an_interrupted_run_is_reported_as_it_was(project: Project) -> None:
    project.config("agent_concurrency: 1\n")
    project.agent(
        """
        import pathlib, time

        def agent(messages, ctx):
            pathlib.Path("reached").touch()
            while not pathlib.Path("go").exists():
                time.sleep(0.01)
            return "yes"
        """
    )
    project.scenarios("cases:\n  - {id: first, input: hello}\n  - {id: never, input: hello}\n")
    process = project.start("run", "--report", "json=first.json")
    try:
        wait_for(project.root / "reached")
        before = process.said("err")
        process.send(signal.SIGINT)
        assert eventually(lambda: process.said("err") != before)  # it was heard
        (project.root / "go").touch()
        assert process.wait().code == 130
    finally:
        process.kill()
    assert project.call("report", "latest", "--report", "json=second.json").code == 130
    first, second = ((project.root / f"{name}.json").read_bytes() for name in ("first", "second"))
    assert first == second
    assert json.loads(first)["run"]["outcome"] == "interrupted"


def wait_for(path: Path) -> None:
    assert eventually(path.exists), path


def test_mistakes_end_with_two_and_print_no_report(ran: Project) -> None:
    assert ran.call("report", "latest").code == 2
    ran.run("-s", "always")
    for name in ("nothing", "agent.py", "scenarios"):
        done = ran.call("report", name)
        assert (done.code, done.out) == (2, ""), name
    done = ran.call("report", "latest", "--report", "juni")
    assert (done.code, "'junit'" in done.err) == (2, True)


def test_times_that_are_no_numbers_cannot_break_the_journal(project: Project) -> None:
    project.config()
    project.agent(
        """
        from agenteval import AgentReply

        def agent(messages, ctx):
            return AgentReply(text="\\ud800 \\ud83d\\ude00", latency_ms=float(ctx.scenario_id))
        """
    )
    project.scenarios(
        "cases:\n" + "".join(f"  - {{id: '{n}', input: hello}}\n" for n in ("nan", "inf", "-1"))
    )
    assert project.run().code == 0
    first = (project.root / "results.json").read_bytes()
    assert project.call("report", "latest", "--report", "json=again.json").code == 0
    assert (project.root / "again.json").read_bytes() == first


def test_the_screen_shows_the_exit_code_of_a_run_whose_report_could_not_be_written(project: Project) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is full")
    project.write("agent.py", "def agent(m): return 'hello'\n")
    project.write("agenteval.yaml", "metrics: []\nagent: {target: 'agent.py:agent'}\n")
    project.scenarios("cases: [{id: x, input: hello, expected_output_contains: hello}]")
    done = project.run("--report", "junit=/dev/full", "--report", "terminal")
    assert done.code == 3
    assert reports(done, "/dev/full", "junit")
    assert has(last_line(done), "PASSED", "1 scenario", "exit 3")
