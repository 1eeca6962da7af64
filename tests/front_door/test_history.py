"""``agenteval report --history``: an agent that gets worse and then better, run by run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cut_runs import cut_after
from tests.support.kit import Project
from tests.support.results import has

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

AGENT = """
    def agent(messages, ctx):
        text = {answer}
        return {{"content": text, "usage": {{"input_tokens": 1000, "output_tokens": 200}}}}
"""
GOOD, BAD = '"yes"', '"no" if ctx.scenario_id == "b" else "yes"'
WORSE = '"no" if ctx.scenario_id != "a" or ctx.epoch else "yes"'
CASE = "  - {{id: {id}, input: hello, expected_output_contains: ['yes']}}\n"
CASES = "cases:\n" + "".join(CASE.format(id=id) for id in "abc")
CONFIG = """
models: {judge: scripted/replies.yaml}
metrics: [tone]
custom_metrics: [tone.md]
epochs: 2
prices: {bot: {input: 1.0, output: 5.0}}
"""
RUBRIC = "---\nmetric: tone\nscope: turn\nlabels: {kind: ok, rude: medium}\nversion: 1\n---\nIs it kind?\n"
REPLIES = """
replies:
  - {when: {metric: tone, scenario: c}, reply: {evidence: hello, reason: '', label: rude}}
  - {when: {metric: tone}, reply: {evidence: '', reason: '', label: kind}}
"""
COST = (1000 * 1.0 + 200 * 5.0) / 1e6
"""Of a conversation, in US dollars."""


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(project: Project) -> str:
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(project.root, "rev-parse", "HEAD")


def run(project: Project, *arguments: str) -> str:
    project.run(*arguments)
    id: str = project.results()["run"]["id"]
    return id


def history(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.call("report", "--history", *arguments, "--report", "json=-")
    assert (done.code, done.err) == (0, ""), done.all
    found: dict[str, Any] = json.loads(done.out)
    return found


class Runs(NamedTuple):
    """The kept runs, oldest first."""

    project: Project
    ids: dict[str, str]
    commits: dict[str, str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    project = Project(tmp_path_factory.mktemp("history"))
    project.config(CONFIG)
    project.scenarios(CASES)
    project.write("tone.md", RUBRIC)
    project.write("replies.yaml", REPLIES)
    project.write(".gitignore", "__pycache__/\nresults.json\n.agenteval/\n")
    git(project.root, "init", "-q", "-b", "main")
    ids, commits = {}, {}
    for name, answer in (("good", GOOD), ("bad", BAD), ("worse", WORSE)):
        project.agent(AGENT.format(answer=answer))
        commits[name] = commit(project)
        ids[name] = run(project)
    ids["selection"] = run(project, "-s", "a")
    project.call("score", ids["good"])
    broken = project.root / ".agenteval/runs/20990101-000000-bbbbbb"
    shutil.copytree(project.root / ".agenteval/runs" / ids["good"], broken)
    with (broken / "events.jsonl").open("a") as file:
        file.write("no event\n\n")
    project.agent(AGENT.format(answer=GOOD))  # not committed
    ids["good again"], commits["good again"] = run(project), commits["worse"]
    project.scenarios(CASES + CASE.format(id="d"))
    commits["larger"] = commit(project)
    ids["larger"] = run(project)
    return Runs(project, ids, commits)


POINTS = ("good", "bad", "worse", "good again", "larger")


def test_each_run_of_the_suite_is_a_point_oldest_first(runs: Runs) -> None:
    found = history(runs.project)
    assert [point["run"] for point in found["points"]] == [runs.ids[name] for name in POINTS]
    assert [point["commit"] for point in found["points"]] == [runs.commits[name] for name in POINTS]
    assert [point["dirty"] for point in found["points"]] == [False, False, False, True, False]
    assert [point["verdict"] for point in found["points"]] == [
        "passed",
        "failed",
        "failed",
        "passed",
        "passed",
    ]
    assert [point["exit_code"] for point in found["points"]] == [0, 1, 1, 0, 0]
    assert (found["config"], found["profile"], found["older"]) == ("agenteval.yaml", "", 0)


def test_the_figures_are_exact(runs: Runs) -> None:
    points = history(runs.project)["points"]
    agents = [agent for point in points for agent in point["agents"]]
    counts = [(a["passed"], a["failed"], a["successes"], a["decided"], a["planned"]) for a in agents]
    assert counts == [(3, 0, 6, 6, 6), (2, 1, 4, 6, 6), (0, 3, 1, 6, 6), (3, 0, 6, 6, 6), (4, 0, 8, 8, 8)]
    assert [a["rate"] for a in agents] == [pytest.approx(rate) for rate in (1, 4 / 6, 1 / 6, 1, 1)]
    # Wilson, as published for 4 of 6.
    assert (agents[1]["low"], agents[1]["high"]) == (
        pytest.approx(0.3000, abs=1e-4), pytest.approx(0.9032, abs=1e-4),
    )  # fmt: skip
    tone = [(mean["metric"], mean["value"], mean["n"]) for a in agents for mean in a["means"]]
    assert tone == [("tone", pytest.approx(2 / 3), 6)] * 4 + [("tone", pytest.approx(3 / 4), 8)]
    for point, agent, count in zip(points, agents, (6, 6, 6, 6, 8), strict=True):
        assert (point["cost"], point["tokens"]) == (pytest.approx(count * COST), count * 1200)
        assert (agent["tokens"]["mean"], agent["cost"]["mean"]) == (1200, pytest.approx(COST))
        assert agent["latency_ms"]["n"] == count
        assert 0 < agent["latency_ms"]["mean"] <= agent["latency_ms"]["p95"]
        assert (point["judges"], point["scripted"]) == (["scripted/replies.yaml"], True)


def test_only_the_change_of_the_suite_is_one(runs: Runs) -> None:
    changes = [point["changes"] for point in history(runs.project)["points"]]
    assert changes == [[], [], [], [], ["1 scenario added: d"]]


def test_what_is_left_out_is_counted_with_its_reason(runs: Runs) -> None:
    left_out = {each["reason"]: each for each in history(runs.project)["left_out"]}
    assert [(reason, len(each["runs"])) for reason, each in left_out.items()] == [
        ("a selection of the scenarios", 1),
        ("scores of recorded conversations", 1),
        ("unreadable", 1),
    ]
    assert left_out["a selection of the scenarios"]["runs"] == [runs.ids["selection"]]
    assert left_out["unreadable"]["runs"] == ["20990101-000000-bbbbbb"]
    (detail,) = left_out["unreadable"]["details"]
    assert has(detail, "events.jsonl", "20990101-000000-bbbbbb")


def test_the_terminal_shows_the_same(runs: Runs) -> None:
    done = runs.project.call("report", "--history", env={"COLUMNS": "160"})
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if line.strip()[:1] in ("✓", "✗")]
    short = [runs.ids[name].rpartition("-")[2] for name in POINTS]
    assert [(cells[0], cells[1]) for cells in rows] == list(zip("✓✗✗✓✓", short, strict=True))
    commits = [runs.commits[name][:8] for name in POINTS]
    commits[3] += "+"
    assert [cells[4] for cells in rows] == commits
    assert [cells[5] for cells in rows] == ["3/3", "2/3", "0/3", "3/3", "4/4"]
    assert [cells[6] for cells in rows] == ["100.0", "66.7", "16.7", "100.0", "100.0"]
    assert has(done.out, "1 scenario added: d", "left out: 1 run: a selection", "left out: 1 run: unreadable")
    scores = done.out.partition("Mean scores")[2].splitlines()
    assert scores[2].split() == [short[0], "0.67"]


@pytest.mark.parametrize(
    ("number", "count"), [(("1",), 1), (("3",), 3), (("=3",), 3), (("99",), 5), ((), 5)], ids=str
)
def test_the_number_of_runs_may_be_given(runs: Runs, number: tuple[str, ...], count: int) -> None:
    option = [f"--history{number[0]}"] if number and number[0][0] == "=" else ["--history", *number]
    done = runs.project.call("report", *option, "--report", "json=-")
    assert done.code == 0
    ids = [point["run"] for point in json.loads(done.out)["points"]]
    assert ids == [runs.ids[name] for name in POINTS[-count:]]


def test_older_runs_are_counted_and_are_no_neighbours(runs: Runs) -> None:
    found = history(runs.project, "1")
    assert found["older"] == 7  # a selection, a score and the broken journal among them
    assert [point["changes"] for point in found["points"]] == [[]]
    assert "7 older runs" in runs.project.call("report", "--history", "1").out


def test_reports_are_files(runs: Runs) -> None:
    done = runs.project.call(
        "report", "--history", "--report", "markdown=trend.md", "--report", "json=out/trend.json"
    )
    assert (done.code, done.out) == (0, "")
    text = (runs.project.root / "trend.md").read_text("utf-8")
    assert text.count("| ✅ |") == 3
    assert text.count("| ❌ |") == 2
    assert len(json.loads((runs.project.root / "out/trend.json").read_text("utf-8"))["points"]) == 5


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--history", "0"), ("--history",)),
        (("--history", "x"), ("--history",)),
        (("--history=-1",), ("--history",)),
        (("--history", "1.5"), ("--history",)),
        (("latest", "--history"), ("RUN", "--history")),
        (("--history", "3", "latest"), ("RUN", "--history")),
        (("--history", "--rejudge"), ("--rejudge", "--history")),
        (("--history", "-q"), ("-q", "--history")),
        (("--history", "-m", "x/y", "--dry-run"), ("--dry-run, -m", "--history")),
        (("--history", "--report", "junit"), ("'junit'", "json")),
        (("--history", "--report", "json=agenteval.yaml"), ("agenteval.yaml", "input")),
        (("--history", "--report", "json=scenarios/suite.yaml"), ("suite.yaml", "input")),
        ((), ("RUN", "--history")),
        (("--rejudge",), ("RUN",)),
    ],
)
def test_mistakes_of_the_command_line(runs: Runs, arguments: tuple[str, ...], facts: tuple[str, ...]) -> None:
    before = {path: path.read_bytes() for path in runs.project.root.rglob("*.yaml")}
    done = runs.project.call("report", *arguments)
    assert (done.code, done.out) == (2, ""), done.all
    assert has(done.err, *facts), done.err
    assert {path: path.read_bytes() for path in before} == before


def test_a_run_of_the_report_is_still_that_of_one(runs: Runs) -> None:
    assert runs.project.call("report", runs.ids["worse"]).code == 1
    assert runs.project.call("report", "latest").code == 0


def test_without_runs_there_is_no_history(project: Project) -> None:
    project.config()
    done = project.call("report", "--history")
    assert (done.code, done.out) == (2, "")
    assert has(done.err, ".agenteval", "agenteval run")


def test_selections_alone_are_no_history(project: Project) -> None:
    project.config()
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios(CASES)
    project.run("-s", "a")
    done = project.call("report", "--history")
    assert (done.code, done.out) == (2, "")
    assert has(done.err, "1 run: a selection")


def test_a_run_that_was_cut_off_is_an_incomplete_point(project: Project) -> None:
    project.config("epochs: 3\n")
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios(CASES)
    project.run()
    cut_after(project, "sample_finished", times=3)
    (point,) = history(project)["points"]
    (agent,) = point["agents"]
    assert (point["complete"], point["outcome"], point["elapsed_s"]) == (False, None, None)
    assert (agent["successes"], agent["decided"], agent["planned"]) == (3, 3, 9)
    assert "incomplete (cut off)" in " ".join(project.call("report", "--history").out.split())


def test_each_of_several_agents_has_its_own_figures(project: Project) -> None:
    """The price of one of them is not known: an unknown cost is never 0."""
    price = "prices: {bot: {input: 1.0, output: 5.0}}\n"
    project.config(f"{price}compare: [{{name: quiet, target: 'agent.py:quiet'}}]\n")
    project.agent(AGENT.format(answer=GOOD) + '\n    def quiet(messages):\n        return "no"\n')
    project.scenarios(CASES)
    project.run()
    project.run("--agent", "bot")
    both, alone = history(project)["points"]
    assert [(a["agent"], a["successes"]) for a in both["agents"]] == [("bot", 3), ("quiet", 0)]
    bot, quiet = (agent["cost"] for agent in both["agents"])
    assert (bot["mean"], quiet, both["cost"]) == (pytest.approx(COST), None, None)
    assert [a["agent"] for a in alone["agents"]] == ["bot"]
    assert (alone["changes"], alone["cost"], alone["estimated"]) == ([], pytest.approx(3 * COST), False)
    out = project.call("report", "--history", env={"COLUMNS": "160"}).out
    rows = [line.split() for line in out.splitlines() if "/3 " in line]
    assert [("bot" in cells, "quiet" in cells) for cells in rows] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert (rows[0][-1], rows[2][-1]) == ("–", "0.0060")


def test_a_profile_is_a_suite_of_its_own(project: Project) -> None:
    project.config("profiles: {ci: {epochs: 2}}\n")
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios(CASES)
    for options in ((), ("--profile", "ci"), (), ("--profile", "ci")):
        project.run(*options)
    found = history(project)
    assert (found["profile"], len(found["points"])) == ("ci", 2)
    (left_out,) = found["left_out"]
    assert (left_out["reason"], left_out["details"]) == (
        "another configuration or profile", ["agenteval.yaml"],
    )  # fmt: skip
    assert "profile ci" in project.call("report", "--history").out.splitlines()[0]


def test_a_judge_that_changed_is_named(project: Project) -> None:
    project.config(CONFIG)
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios(CASES)
    project.write("replies.yaml", REPLIES)
    for rubric in (RUBRIC, RUBRIC, RUBRIC.replace("Is it kind?", "Is it very kind?")):
        project.write("tone.md", rubric)
        project.run()
    points = history(project)["points"]
    assert [len(point["changes"]) for point in points] == [0, 0, 1]
    assert "'tone'" in points[2]["changes"][0]
