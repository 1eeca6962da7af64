"""``--baseline`` and ``gates.no_regression``: what got worse, what is new, and what fails as before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.power import DROPS, chances
from tests.support.kit import Done, Project
from tests.support.results import gates, has, last_line

AGENT = """
FAILS = {fails!r}

def agent(messages, ctx):
    return "sorry" if ctx.epoch in FAILS.get(ctx.scenario_id, ()) else "done"
"""
CHECK = "expect: {output: {contains: [done]}}"


def agent(project: Project, fails: dict[str, range]) -> None:
    """One that fails in these epochs."""
    project.agent(AGENT.format(fails={name: tuple(epochs) for name, epochs in fails.items()}))


def suite(
    project: Project, count: int, *, epochs: int = 5, rules: str = "no_regression: {margin: 0.1}"
) -> None:
    lines = "".join(f"  - {{id: s{number}, turns: [hi], {CHECK}}}\n" for number in range(count))
    project.scenarios(f"scenarios:\n{lines}")
    project.config(f"epochs: {epochs}\ngates: {{{rules}}}\n")


def began(project: Project, **fails: range) -> None:
    """The run that the next ones are compared with."""
    agent(project, fails)
    project.run()
    (folder,) = (project.root / ".agenteval/runs").iterdir()
    folder.rename(folder.with_name("20200101-000000-base"))


def again(project: Project, *arguments: str, **fails: range) -> Done:
    agent(project, fails)
    return project.run(*arguments, "--baseline", ".agenteval/runs/20200101-000000-base")


# ── one scenario among many ──────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """20 scenarios of 5 epochs that all succeeded, but for three in which one, two or all failed."""
    project = Project(tmp_path_factory.mktemp("twenty"))
    suite(project, 20)
    began(project, s17=range(1), s18=range(2), s19=range(5))
    return project


def test_a_scenario_that_falls_from_always_to_never_is_not_green(twenty: Project) -> None:
    old = {"s17": range(1), "s18": range(2), "s19": range(5)}
    done = again(twenty, **old)
    assert done.code == 0, done.all
    assert has(last_line(done), "1 of 20", "2 ", "17 passed", "exit 0")
    for failures, code in ((1, 0), (2, 3), (5, 3)):
        done = again(twenty, s7=range(failures), **old)
        assert done.code == code, (failures, done.all)
        assert ("s7" in gates(twenty, "no_regression")) is (code == 3)
    row = gates(twenty, "no_regression")["s7"]
    assert (row["verdict"], row["value"]) == ("inconclusive", 1.0)
    assert "0.3" in row["bound"]
    assert has(row["basis"], "0 of 5", "5 of 5", "90 %")
    row = gates(twenty, "no_regression")[""]
    needed = re.search(r"\bepochs: (\d+)", row["resolution"])
    assert needed
    assert 5 < int(needed[1]) < 10
    assert f" {needed[1]} epochs" in row["basis"]


@pytest.mark.parametrize(
    ("epochs", "rules", "failures", "code"),
    [
        (7, "no_regression: {margin: 0.1}", 7, 1),  # so many epochs would decide; they do
        (5, "no_regression: {margin: 0.2, scenario_margin: 0.4}", 2, 0),  # a drop of exactly 0.4
        (5, "no_regression: {margin: 0.2, scenario_margin: 0.4}", 3, 3),
        (5, "no_regression: {margin: 0.2, scenario_margin: 1}", 5, 0),
        # One failure alone is never large.
        (1, "no_regression: {margin: 0.45}", 1, 0),
        (2, "no_regression: {margin: 0.45}", 1, 0),
        (2, "no_regression: {margin: 0.45}", 2, 3),
        (3, "no_regression: {margin: 0.45}", 1, 0),
        (3, "no_regression: {margin: 0.45}", 2, 3),
    ],
)
def test_the_margin_and_the_number_of_epochs_decide(
    project: Project, epochs: int, rules: str, failures: int, code: int
) -> None:
    suite(project, 12 if "0.45" in rules else 20, epochs=epochs, rules=rules)
    began(project)
    assert again(project, s7=range(failures)).code == code
    if code == 1:
        assert has(gates(project, "no_regression")["s7"]["basis"], "0 of 7", "7 of 7")


def test_validate_names_the_chance_of_no_decision(twenty: Project) -> None:
    shown = twenty.call("validate").out
    assert re.search(r"no_regression: .*undecided in .*%", " ".join(shown.split()))


# ── what fails as before ─────────────────────────────────────────────────────────────────────────


def test_what_fails_as_before_is_no_worse_and_has_not_passed(project: Project) -> None:
    suite(project, 40, epochs=1)
    fails = {f"s{number}": range(1) for number in range(40)}
    began(project, **fails)
    done = again(project, "--report", "terminal", "--report", "markdown=run.md", **fails)
    assert done.code == 0, done.all
    assert "40 of 40" in gates(project, "no_regression")[""]["basis"]
    assert has(last_line(done), "PASSED", "40 of 40", "no conversation", "exit 0")
    for text in (done.all, (project.root / "run.md").read_text("utf-8")):
        assert "all 40" not in text
        assert "40 passed" not in text
    done = again(project, **{**fails, "s0": range(0)})
    assert has(last_line(done), "PASSED", "39 of 40", "no conversation", "1 passed")


# ── new, changed and gone scenarios ──────────────────────────────────────────────────────────────


def test_new_and_changed_scenarios_stand_on_their_own_checks(project: Project) -> None:
    suite(project, 12)
    began(project)
    path = project.root / "scenarios/suite.yaml"
    text = path.read_text("utf-8").replace("{id: s3, turns: [hi]", "{id: s3, turns: [hello]")
    text = text.replace("id: s4,", "id: s4, tags: [a],").replace("{id: s5, ", "{id: new, ")
    path.write_text(text, "utf-8")
    done = again(project)
    assert done.code == 0, done.all
    found = gates(project, "no_regression")
    assert found.keys() == {"", "s3", "new"}
    assert has(found["s3"]["basis"], "changed", "turns")
    assert found["new"]["basis"].startswith("new")
    assert {found[name]["value"] for name in ("s3", "new")} == {"5 of 5"}
    assert has(found[""]["basis"], "10 scenarios", "s3, new", "s5")
    for name in ("s3", "new"):
        done = again(project, **{name: range(1)})
        assert done.code == 1, done.all
        assert gates(project, "no_regression")[name]["verdict"] == "failed"
        assert gates(project, "no_regression")[""]["verdict"] == "passed"
    assert again(project, s4=range(1)).code == 0
    again(project, "-s", "s1")  # a selection: what is not in it is not missed
    assert "s5" not in gates(project, "no_regression")[""]["basis"]


def test_another_gate_may_look_at_what_is_new(project: Project) -> None:
    rules = "no_regression: {margin: 0.3}, pass_hat_k: {k: 1, at_least: 0.7}"
    suite(project, 12, rules=rules)
    began(project)
    suite(project, 13, rules=rules)
    done = again(project, s12=range(1))
    assert done.code == 0, done.all
    assert "new" in gates(project, "no_regression")["s12"]["basis"]
    assert again(project, s12=range(2)).code == 1


def test_a_new_scenario_that_was_lost_is_not_decided(project: Project) -> None:
    suite(project, 12)
    began(project)
    suite(project, 13)
    project.agent("""
        def agent(messages, ctx):
            if ctx.scenario_id == "s12":
                raise ConnectionRefusedError("down")
            return "done"
    """)
    project.config("epochs: 5\nfault_tolerance: 0.5\ngates: {no_regression: {margin: 0.1}}\n")
    done = project.run("--baseline", "latest")
    assert done.code == 3, done.all
    assert gates(project, "no_regression")["s12"]["verdict"] == "inconclusive"


def test_where_nothing_can_be_compared_nothing_is_run(project: Project) -> None:
    suite(project, 2)
    began(project)
    text = (project.root / "scenarios/suite.yaml").read_text("utf-8")
    project.scenarios(text.replace("[hi]", "[hello]"))
    done = again(project)
    assert done.code == 2
    assert any(
        all(fact in line for fact in ("--baseline", "'s0'", "turns")) for line in done.err.splitlines()
    )
    assert len(list((project.root / ".agenteval/runs").iterdir())) == 1


def test_the_power_in_the_docs_is_that_of_the_gate() -> None:
    page = (Path(__file__).parents[2] / "docs/gates.md").read_text("utf-8")
    for drop in (DROPS[0], DROPS[3]):
        row = next(line for line in page.splitlines() if line.startswith(f"| {drop.name} |"))
        red, undecided, green = (int(share) for share in row.split("|")[3].split("/"))
        found = chances(drop, 20, 5, draws=100, seed=1)
        assert found.reject * 100 == pytest.approx(red, abs=15)
        assert found.undecided * 100 == pytest.approx(undecided, abs=15)
        assert found.accept * 100 == pytest.approx(green, abs=15)


def test_a_selection_of_an_agent_or_of_files_is_compared_with_a_baseline_of_all(project: Project) -> None:
    """Not only ``--scenario`` and ``--tag`` are selections."""
    project.agent("def good(messages): return 'done'\ndef bad(messages): return 'no'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\nepochs: 12\ngates: {no_regression: {margin: 0.5}}\n"
        "agent: {name: one, target: 'agent.py:good'}\n"
        "compare: [{name: two, target: 'agent.py:bad'}]\n",
    )
    project.scenarios(f"scenarios: [{{id: one, turns: [hi], {CHECK}}}]\n")
    project.scenarios(f"scenarios: [{{id: other, turns: [hi], {CHECK}}}]\n", "scenarios/other.yaml")
    assert project.run().code == 3  # nothing to compare with
    (first,) = (folder.name for folder in (project.root / ".agenteval" / "runs").iterdir())
    assert project.run("--agent", "one", "--baseline", first).code == 0
    assert project.run("scenarios/other.yaml", "--baseline", first).code == 0
    done = project.run("--baseline", "latest")  # all, with a baseline of one file
    assert done.code == 1, done.all  # what is not in it stands on its own checks, and agent two fails them
    assert gates(project, "no_regression")["one"]["basis"].startswith("new")
    project.agent("def good(messages): return 'no'\ndef bad(messages): return 'no'\n")
    assert project.run("--agent", "one", "--baseline", first).code == 1
    assert project.run("--agent", "two", "--baseline", first).code == 0
