"""``--baseline`` and ``gates.no_regression``: what got worse, what is new, and what fails as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.power import DROPS, chances
from tests.support.kit import Done, Project

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
    project: Project, count: int, *, epochs: int = 5, gates: str = "no_regression: {margin: 0.1}"
) -> None:
    lines = "".join(f"  - {{id: s{number}, turns: [hi], {CHECK}}}\n" for number in range(count))
    project.scenarios(f"scenarios:\n{lines}")
    project.config(f"epochs: {epochs}\ngates: {{{gates}}}\n")


def began(project: Project, **fails: range) -> None:
    """The run that the next ones are compared with."""
    agent(project, fails)
    project.run()
    (folder,) = (project.root / ".agenteval/runs").iterdir()
    folder.rename(folder.with_name("20200101-000000-base"))


def again(project: Project, *arguments: str, **fails: range) -> Done:
    agent(project, fails)
    return project.run(*arguments, "--baseline", ".agenteval/runs/20200101-000000-base")


def rows(project: Project) -> dict[str, dict[str, Any]]:
    """What ``no_regression`` said, by scenario; the empty one is that of the run."""
    gates = project.results()["summary"]["gates"]
    return {gate["scenario"]: gate for gate in gates if gate["name"] == "no_regression"}


def last(done: Done) -> str:
    return done.out.splitlines()[-1]


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
    assert "1 of 20 scenarios passed no conversation, 2 did not pass every conversation, 17 passed" in last(
        done
    )
    for failures, code in ((1, 0), (2, 3), (4, 3), (5, 3)):
        done = again(twenty, s7=range(failures), **old)
        assert done.code == code, (failures, done.all)
        assert ("s7" in rows(twenty)) is (code == 3)
    row = rows(twenty)["s7"]
    assert (row["verdict"], row["value"], row["bound"]) == ("inconclusive", 1.0, "no drop above 0.3")
    assert "0 of 5 epochs succeeded, 5 of 5 in the baseline: possibly dropped: 90 % interval" in row["basis"]
    told = rows(twenty)[""]["basis"]
    assert "1 possibly dropped: about epochs: " in told
    needed = int(told.partition("about epochs: ")[2].split()[0])
    assert 5 < needed < 10


def test_what_would_decide_does(project: Project) -> None:
    suite(project, 20, epochs=7)
    began(project)
    assert again(project, s7=range(7)).code == 1
    assert rows(project)["s7"]["basis"].endswith("7 of 7 in the baseline: significantly dropped")


def test_the_margin_of_a_scenario_is_the_authors(project: Project) -> None:
    suite(project, 20, gates="no_regression: {margin: 0.2, scenario_margin: 0.4}")
    began(project)
    assert again(project, s7=range(2)).code == 0  # a drop of exactly 0.4
    assert again(project, s7=range(3)).code == 3
    suite(project, 20, gates="no_regression: {margin: 0.2, scenario_margin: 1}")
    assert again(project, s7=range(5)).code == 0


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_one_failure_alone_is_never_large(project: Project, epochs: int) -> None:
    suite(project, 12, epochs=epochs, gates="no_regression: {margin: 0.45}")
    began(project)
    assert again(project, s7=range(1)).code == 0
    if epochs > 1:
        assert again(project, s7=range(2)).code == 3


def test_validate_tells_the_chance_of_no_decision(twenty: Project) -> None:
    told = twenty.call("validate").out
    assert "no_regression: " in told
    assert "and undecided in " in told


# ── what fails as before ─────────────────────────────────────────────────────────────────────────


def test_what_fails_as_before_is_no_worse_and_has_not_passed(project: Project) -> None:
    suite(project, 40, epochs=1)
    fails = {f"s{number}": range(1) for number in range(40)}
    began(project, **fails)
    done = again(project, "--report", "terminal", "--report", "markdown=run.md", **fails)
    assert done.code == 0, done.all
    told = rows(project)[""]["basis"]
    assert "nothing got worse; 40 of 40 failed in every epoch, as before" in told
    assert last(done) == "PASSED: 40 of 40 scenarios passed no conversation (exit 0)"
    for text in (done.all, (project.root / "run.md").read_text("utf-8")):
        assert "all 40" not in text
        assert "40 passed" not in text
    done = again(project, **{**fails, "s0": range(0)})
    assert last(done) == "PASSED: 39 of 40 scenarios passed no conversation, 1 passed (exit 0)"


# ── new, changed and gone scenarios ──────────────────────────────────────────────────────────────


def test_new_and_changed_scenarios_stand_on_their_own_checks(project: Project) -> None:
    suite(project, 12)
    began(project)
    path = project.root / "scenarios/suite.yaml"
    text = path.read_text("utf-8")
    text = text.replace("{id: s3, turns: [hi]", "{id: s3, turns: [hello]").replace(
        "id: s4,", "id: s4, tags: [a],"
    )
    text = text.replace("  - {id: s5, ", "  - {id: new, ")
    path.write_text(text, "utf-8")
    done = again(project)
    assert done.code == 0, done.all
    found = rows(project)
    assert found.keys() == {"", "s3", "new"}
    assert found["s3"]["basis"] == "changed since the baseline: turns differ"
    assert found["new"]["basis"] == "new: not in the baseline"
    assert {found[name]["value"] for name in ("s3", "new")} == {"5 of 5"}
    assert "10 scenarios, against 2" in found[""]["basis"]
    assert found[""]["basis"].endswith("; not compared: s3, new; no longer there: s5")
    for name in ("s3", "new"):
        done = again(project, **{name: range(1)})
        assert done.code == 1, done.all
        assert rows(project)[name]["verdict"] == "failed"
        assert rows(project)[""]["verdict"] == "passed"
    assert again(project, s4=range(1)).code == 0
    done = again(project, "-s", "s1")  # a selection: what is not in it is not missed
    assert "no longer there" not in rows(project)[""]["basis"]


def test_another_gate_may_look_at_what_is_new(project: Project) -> None:
    rules = "no_regression: {margin: 0.3}, pass_hat_k: {k: 1, at_least: 0.7}"
    suite(project, 12, gates=rules)
    began(project)
    suite(project, 13, gates=rules)
    done = again(project, s12=range(1))
    assert done.code == 0, done.all
    assert rows(project)["s12"]["basis"] == "new: not in the baseline; another gate decides"
    assert again(project, s12=range(2)).code == 1


def test_a_new_scenario_that_was_lost_is_not_decided(project: Project) -> None:
    suite(project, 12)
    began(project)
    suite(project, 13)
    project.agent(
        "def agent(messages, ctx):\n"
        "    if ctx.scenario_id == 's12':\n"
        "        raise ConnectionRefusedError('down')\n"
        "    return 'done'\n"
    )
    project.config("epochs: 5\nfault_tolerance: 0.5\ngates: {no_regression: {margin: 0.1}}\n")
    done = project.run("--baseline", "latest")
    assert done.code == 3, done.all
    assert rows(project)["s12"]["verdict"] == "inconclusive"


def test_where_nothing_can_be_compared_nothing_is_run(project: Project) -> None:
    suite(project, 2)
    began(project)
    text = (project.root / "scenarios/suite.yaml").read_text("utf-8")
    project.scenarios(text.replace("[hi]", "[hello]"))
    done = again(project)
    assert done.code == 2
    assert "--baseline: no scenario is the same in both runs" in done.err
    assert "--baseline: scenario 's0' differs: turns differ" in done.err
    assert len(list((project.root / ".agenteval/runs").iterdir())) == 1


def test_the_power_that_the_docs_tell_is_that_of_the_gate() -> None:
    page = (Path(__file__).parents[2] / "docs/gates.md").read_text("utf-8")
    for drop in (DROPS[0], DROPS[3]):
        row = next(line for line in page.splitlines() if line.startswith(f"| {drop.name} |"))
        red, undecided, green = (int(share) for share in row.split("|")[3].split("/"))
        found = chances(drop, 20, 5, draws=100, seed=1)
        assert found.reject * 100 == pytest.approx(red, abs=15)
        assert found.undecided * 100 == pytest.approx(undecided, abs=15)
        assert found.accept * 100 == pytest.approx(green, abs=15)
