"""One scenario, many rows, through the command line: the row with the bug ends red, the others green; single
rows are selected; reports fold them."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.kit import Project

AGENT = """
import re
async def agent(messages, ctx):
    found = re.search(r"[A-Z]+-\\d+", messages[-1]["content"])
    order = await ctx.call_tool("get_order", {"id": found[0]})
    if order["status"] in BROKEN:
        return "I do not know."
    return f"Order {order['id']} is {order['status']}: {order['qty']}."
"""
SUITE = """
scenarios:
  - name: "order ${row.id}"
    id: "status-${row.id}"
    rows: orders.csv
    types: {qty: integer}
    tools:
      get_order:
        parameters: {type: object, properties: {id: {type: string}}, required: [id]}
        returns: {id: "${args.id}", status: "${row.status}", qty: "${row.qty}"}
    turns:
      - user: "Where is ${row.id}?"
        expect:
          tool_calls: {calls: [{name: get_order, args: {id: "${row.id}"}}]}
          output: {contains: ["${row.status}", "${row.qty}"]}
  - id: other
    tools: {get_order: {returns: {id: B-1, status: open, qty: 1}}}
    turns: [{user: "Where is B-1?", expect: {output: {contains: [B-1]}}}]
"""
ORDERS = "id,status,qty\n" + "".join(
    f"A-{n},{'lost' if n % 4 == 0 else 'shipped'},{n}\n" for n in range(1, 41)
)


def has_line(lines: list[str], *facts: str) -> bool:
    return any(all(fact in line for fact in facts) for line in lines)


@pytest.fixture
def rows(project: Project) -> Project:
    project.config()
    project.scenarios(SUITE)
    project.write("scenarios/orders.csv", ORDERS)
    project.agent(f"BROKEN = ('lost',)\n{AGENT}")
    return project


def test_the_rows_with_the_bug_are_red_and_the_others_green(rows: Project) -> None:
    assert rows.run().code == 1
    ends = {each["id"]: (each["verdict"], each["row"]) for each in rows.results()["scenarios"]}
    assert len(ends) == 41
    assert {name for name, (verdict, _) in ends.items() if verdict == "failed"} == {
        f"status-A-{n}" for n in range(4, 41, 4)
    }
    assert ends["status-A-4"] == ("failed", "scenarios/orders.csv:5")
    assert ends["other"] == ("passed", "")
    (check,) = (
        check for check in rows.sample("status-A-8")["turns"][0]["checks"] if check["passed"] is False
    )
    assert check["name"] == "output.contains"
    assert '"lost", "8"' in check["detail"]
    rows.agent(f"BROKEN = ()\n{AGENT}")
    assert rows.run().code == 0


def test_single_rows_are_selected(rows: Project) -> None:
    for selected, count, code in (
        (("-s", "status-A-4"), 1, 1),
        (("scenarios/suite.yaml::status-A-5",), 1, 0),
        (("suite.yaml::status-A-5",), 1, 0),
        (("-k", "A-39 or A-40"), 2, 1),
        (("-s", "status-A-3"), 1, 0),
        (("-s", "order A-3"), 11, 1),
    ):
        done = rows.run(*selected)
        assert (done.code, len(rows.results()["scenarios"])) == (code, count), selected
    assert rows.run().code == 1
    rows.agent(f"BROKEN = ()\n{AGENT}")
    assert rows.run("--last-failed").code == 0
    assert len(rows.results()["scenarios"]) == 10
    listed = rows.call("list").out.splitlines()
    assert listed[:2] == ["scenarios/suite.yaml::status-A-1", "scenarios/suite.yaml::status-A-2"]
    entry = json.loads(rows.call("list", "--json", "-s", "status-A-4").out)[0]
    assert (entry["file"], entry["line"], entry["row"]) == (
        "scenarios/suite.yaml", 2, "scenarios/orders.csv:5",
    )  # fmt: skip


def test_reports_fold_the_rows_of_a_scenario(rows: Project) -> None:
    done = rows.call("run")
    assert len(re.findall(r"^── ", done.out, re.MULTILINE)) == 1
    lines = done.out.splitlines()
    head = ("── status-A-4 · ", "10 of 40", " scenarios/suite.yaml:2 ", " scenarios/orders.csv:5")
    assert has_line(lines, *head)
    assert has_line(lines, "status-A-8, status-A-12, status-A-16, status-A-20, status-A-24", "4 more")
    (line,) = (line for line in lines if line.startswith("FAILED suite.yaml"))
    assert has_line([line], "FAILED suite.yaml::status-A-4", "10 of 40", "turn 1", '"lost", "4"')
    assert has_line([lines[-1]], "FAILED: 10 of 41", "31 passed")
    wide = rows.call("report", "latest", "-v").out
    assert re.search(r"✗ +status-\* \(40 rows\) +30/40 ", wide)
    rows.call("report", "latest", "--report", "markdown=out.md", "--report", "junit=out.xml")
    text = (rows.root / "out.md").read_text("utf-8")
    (row,) = (line for line in text.splitlines() if "(40 rows)" in line)
    assert "30/40" in row
    github = rows.call("report", "latest", "--report", "github").out
    (error,) = (line for line in github.splitlines() if line.startswith("::error"))
    assert has_line([error], "10 rows", "scenarios/orders.csv:5", "status-A-4, status-A-8")
    assert (rows.root / "out.xml").read_text("utf-8").count("<testcase") >= 41


def test_a_comment_on_a_change_folds_them_too(rows: Project) -> None:
    rows.agent(f"BROKEN = ()\n{AGENT}")
    assert rows.call("run").code == 0
    rows.agent(f"BROKEN = ('lost',)\n{AGENT}")
    assert rows.run("--baseline", "latest", "--report", "comment=c.md").code == 1
    text = (rows.root / "c.md").read_text("utf-8")
    assert has_line(text.splitlines(), "❌", "(10)")
    (line,) = (line for line in text.splitlines() if "status-A-4" in line)
    assert "9 more rows" in line


def test_a_changed_row_is_a_changed_scenario(rows: Project) -> None:
    assert rows.call("run").code == 1
    rows.write("scenarios/orders.csv", ORDERS.replace("A-1,shipped,1\n", "A-1,shipped,7\n"))
    assert rows.run("--baseline", "latest").code == 1
    differs = rows.call("diff", "previous", "latest").out
    assert re.search(r"status-A-1 .*", differs)
    assert "status-A-2 " not in differs.partition("Not compared")[2]


def test_a_suite_is_not_green_for_want_of_rows(rows: Project) -> None:
    rows.write("scenarios/orders.csv", "id,status,qty\n")
    rows.call("run").refuses("scenarios/orders.csv", "rows")


def test_cases_in_a_csv_file(project: Project) -> None:
    project.config()
    project.agent(f"BROKEN = ('lost',)\n{AGENT}")
    project.scenarios(
        "defaults: {tools: {get_order: {returns: {id: A-1, status: shipped, qty: 1}}}}\ncases: cases.csv\n"
    )
    project.write(
        "scenarios/cases.csv",
        "id,category,input,expected_tools,expected_output_contains,tools\n"
        'C-1,capability,Where is A-1?,get_order,"[""shipped"", ""1""]",\n'
        "C-2,robustness,Where is A-1?,,lost,"
        '"{""get_order"": {""returns"": {""status"": ""lost"", ""qty"": 2}}}"\n',
    )
    done = project.run()
    assert done.code == 1
    ends = {
        each["id"]: (each["verdict"], each["category"], each["row"])
        for each in project.results()["scenarios"]
    }
    assert ends == {
        "C-1": ("passed", "capability", "scenarios/cases.csv:2"),
        "C-2": ("failed", "robustness", "scenarios/cases.csv:3"),
    }
    assert project.call("run", "scenarios/suite.yaml::C-1").code == 0
