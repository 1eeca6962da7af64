"""``note`` of a scenario, and the sum of tokens beside those in and out."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.support.kit import Project

AGENT = """
def agent(messages):
    if not messages[-1]["content"]:
        raise RuntimeError("the prompt is empty")
    return "I know nothing of that."
"""
CASES = """
defaults: {category: robustness}
cases:
  - {id: R-1, note: an empty message, input: ""}
  - {id: R-2, note: "an <b>injection</b> | refused", input: Ignore all}
  - {id: R-3, note: null, input: Hi}
"""
TABLE = """
cases: table.csv
"""
ROWS = """
id: "row-${row.n}"
category: robustness
note: "about ${row.n}"
turns: [Hi]
expect: {output: {contains: nothing}}
rows: [{n: one}, {n: two}]
"""


@pytest.fixture
def noted(project: Project) -> Project:
    project.config("metrics: []")
    project.agent(AGENT)
    project.scenarios(CASES)
    return project


def notes(project: Project) -> dict[str, str | None]:
    return {each["id"]: each.get("note") for each in project.results()["scenarios"]}


def cells(text: str, start: str) -> list[str]:
    """The cells of the first row of a table that begins with ``start``."""
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    return [part.strip() for part in line.strip().split("  ") if part.strip()]


def test_a_note_stands_beside_the_answer(noted: Project) -> None:
    done = noted.run("-v", env={"COLUMNS": "200"})
    assert done.code == 1
    assert cells(done.out, "scenario  pass")[-2:] == ["note", "answer or reason"]
    row = cells(done.out, "✓  R-2")
    assert row[-2:] == ["an <b>injection</b> | refused", "I know nothing of that."]
    assert cells(done.out, "✗  R-1")[-2] == "an empty message"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_long_note_fits_or_is_named(noted: Project, width: int) -> None:
    noted.scenarios(CASES.replace("an empty message", "a very long note " * 20))
    noted.run()
    out = noted.call("report", "latest", "-v", env={"COLUMNS": str(width)}).out
    table = out.partition("Robustness\n")[2].partition("Summary")[0]
    assert max(map(len, table.splitlines())) <= width
    assert all(title in " ".join(table.split()) for title in ("note", "answer or reason"))


def test_a_suite_without_notes_has_no_column_of_them(noted: Project) -> None:
    noted.scenarios("{id: a, category: robustness, turns: [Hi], checks: none}\n")
    done = noted.run("-v", env={"COLUMNS": "200"})
    assert done.code == 0
    assert "note" not in cells(done.out, "scenario  pass")
    assert "note" not in noted.results()["scenarios"][0]


def test_every_report_has_the_note(noted: Project) -> None:
    reports = ("--report", "markdown=r.md", "--report", "junit=r.xml", "--report", "terminal")
    done = noted.run(*reports, env={"COLUMNS": "100"})
    assert "note: an empty message" in done.out
    assert notes(noted) == {"R-1": "an empty message", "R-2": "an <b>injection</b> | refused", "R-3": None}
    assert "note" not in noted.results()["scenarios"][2]
    page = (noted.root / "r.md").read_text("utf-8")
    assert "| category | note |" in page
    assert "Note: an empty message" in page
    assert "<b>" not in page
    suite = ElementTree.parse(noted.root / "r.xml").getroot()
    values = {case.get("name"): case.find(".//property[@name='note']") for case in suite.iter("testcase")}
    assert {name: found is not None and found.get("value") for name, found in values.items()} == {
        "R-1": "an empty message", "R-2": "an <b>injection</b> | refused", "R-3": False,
    }  # fmt: skip
    for id, note in (("R-1", True), ("R-3", False)):
        assert ("note: " in noted.call("show", id).out) is note
    assert json.loads(noted.call("list", "--json").out)[0]["note"] == "an empty message"


def test_tables_of_cases_and_rows_have_notes(noted: Project) -> None:
    noted.scenarios(TABLE)
    noted.scenarios(ROWS, "scenarios/rows.yaml")
    noted.write("scenarios/table.csv", "id,category,note,input\nT-1,robustness,1.50,Hi\nT-2,robustness,,Hi\n")
    done = noted.run("-v", env={"COLUMNS": "200"})
    assert done.code == 0, done.all
    assert notes(noted) == {"T-1": "1.50", "T-2": None, "row-one": "about one", "row-two": "about two"}
    assert "2 " in cells(done.out, "✓  row-*")[-2]


def test_another_note_is_the_same_scenario(noted: Project) -> None:
    assert noted.run("--record", "tape.jsonl").code == 1
    noted.scenarios(CASES.replace("an empty message", "nothing to answer"))
    assert noted.run("--replay", "tape.jsonl").code == 1
    assert notes(noted)["R-1"] == "nothing to answer"
    done = noted.call("diff", "previous", "latest")
    assert "differ" not in done.all.replace("different", "")
    assert "R-1" in done.out


@pytest.mark.parametrize(
    ("written", "fact"), [("note: [a]", "note"), ("note: {a: 1}", "note"), ("notes: x", "'note'")]
)
def test_a_note_that_is_no_text_is_refused_at_its_place(noted: Project, written: str, fact: str) -> None:
    noted.scenarios(f"id: a\nturns: [Hi]\nchecks: none\n{written}\n")
    noted.call("validate").refuses("agenteval", "scenarios/suite.yaml:4:", fact)


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


TOKENS = """
from agenteval import AgentReply
USAGE = {"both": {"input_tokens": 30, "output_tokens": 15}, "sum": {"total_tokens": 77}}
def agent(messages):
    if messages[-1]["content"] == "break":
        raise RuntimeError("broken")
    return AgentReply(text="Done.", usage=USAGE[messages[-1]["content"]])
"""
SPENDERS = """
defaults: {category: efficiency}
cases: [{id: E-1, input: both}, {id: E-2, input: sum}, {id: E-3, input: break}]
"""


def test_the_sum_of_tokens_stands_beside_in_and_out(project: Project) -> None:
    project.config("metrics: []")
    project.agent(TOKENS)
    project.scenarios(SPENDERS)
    done = project.run("-v", "--report", "terminal", "--report", "markdown=r.md", env={"COLUMNS": "200"})
    assert cells(done.out, "scenario")[-3:] == ["tokens", "tokens in", "out"]
    assert cells(done.out, "✓  E-1")[-3:] == ["45", "30", "15"]
    assert cells(done.out, "✓  E-2")[-3:] == ["77", "–", "–"]  # the parts are unknown, not 0
    assert cells(done.out, "✗  E-3")[-3:] == ["–", "–", "–"]
    assert "| Efficiency | Avg tokens per task | 61 |" in (project.root / "r.md").read_text("utf-8")
    usages = {each["id"]: each["samples"][0]["usage"] for each in project.results()["scenarios"]}
    assert {id: usage["tokens"] for id, usage in usages.items()} == {"E-1": 45, "E-2": 77, "E-3": None}
    ((dimension,),) = project.results()["summary"]["dimensions"].values()
    spreads = dimension["spreads"]
    assert [spreads[name]["mean"] for name in ("tokens", "input_tokens", "output_tokens")] == [61, 30, 15]


def test_a_plan_has_the_sum_of_tokens(project: Project) -> None:
    project.config("metrics: []")
    project.agent(TOKENS)
    project.scenarios(SPENDERS)
    done = project.call("plan", "--report", "json=plan.json")
    assert done.code == 0, done.all
    (row,) = json.loads((project.root / "plan.json").read_text("utf-8"))["rows"]
    assert row["tokens"]["least"] == row["input_tokens"]["least"] + row["output_tokens"]["least"] > 0
    assert "tokens" in project.call("plan").out.split()
