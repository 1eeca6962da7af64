"""The first view of the page: the verdict, what decided it, the worst issues, and the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.event import Baseline
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Issue, IssueExample, Occurrence, Severity, Verdict
from agenteval.reporters.html import overview as module
from agenteval.reporters.html.overview import header, issue_head, overview, severity_badge
from agenteval.reporters.html.scenario_rows import scenario_rows
from agenteval.reporters.sections.baseline_changes import ChangeRow
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import issues_text
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.pages import Node, read_html
from tests.support.score_samples import MODEL
from tests.support.verdict_runs import (
    BROKEN,
    CUT,
    FAIL,
    LOST,
    PASS,
    Played,
    finding,
    oddly_read,
    report_of,
    score,
)

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
HOSTILE = "</td><script>alert(1)</script><a onclick='x'>&amp;\""
NOTED = Played(turns=((finding(Severity.LOW, explanation="it said so"),),))


def facts_of(report: Report, **changes: Any) -> Facts:
    return Facts(report, replace(decide(report), **changes))


def page(
    facts: Facts, changes: Sequence[ChangeRow] = (), *, root: str = ".", issues: Sequence[Issue] | None = None
) -> Node:
    if issues is not None:
        facts = Facts(replace(facts.report, issues=tuple(issues)), facts.decision)
    texts = issues_text(facts.report, facts.decision)
    rows = scenario_rows(facts, texts, root)
    return read_html("".join(overview(facts, rows, texts, changes, root)))


def shown(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> Node:
    return page(facts_of(report_of(epochs, **more)))


def log(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> Node:
    """The view of a log without expectations."""
    return page(facts_of(report_of(epochs, **more), without_scenarios=True, is_reported=True))


def links(node: Node) -> list[tuple[str, str | None]]:
    return [(each.text, each.attributes["href"]) for each in node.all("a")]


# ── the head ─────────────────────────────────────────────────────────────────────────────────────


def head(facts: Facts) -> Node:
    return read_html("".join(header(facts)))


@pytest.mark.parametrize(
    ("played", "changes", "word", "kind"),
    [
        (PASS, {}, "✓ PASSED", "passed"),
        (FAIL, {}, "✗ FAILED", "failed"),
        (LOST, {}, "? INCONCLUSIVE", "inconclusive"),
        (PASS, {"is_reported": True}, "• REPORTED", "reported"),
        (FAIL, {"is_reported": True}, "✗ FAILED", "failed"),
        (FAIL, {"author_errors": ("x",)}, "✗ AUTHOR ERROR", "failed"),
    ],
)
def test_the_verdict_comes_first(played: Played, changes: dict[str, Any], word: str, kind: str) -> None:
    title = head(facts_of(report_of({"a": [played]}), **changes)).one("h1")
    mark = title.one("span")
    assert (mark.text, mark.kinds) == (word, ["verdict", kind])
    assert title.text.startswith(f"{word} ")
    assert "(exit " in title.text


def test_the_run_is_described_in_a_line() -> None:
    report = report_of({"a": [Played((score("stars", 4.0, by=MODEL),), turns=((),))]}, elapsed_s=5.06)
    assert head(facts_of(report)).one("p", "ran").text == (
        f"agenteval 0.1.0 · bot · 1 scenario, 1 conversation · 5.1 s · judged by {MODEL}, uncalibrated"
        " · run 20261121-101500-ab12 · 2026-11-21T10:15:00Z"
    )


@pytest.mark.parametrize(
    ("commit", "dirty", "end"),
    [
        ("", False, "2026-11-21T10:15:00Z"),
        ("0123456789abcdef", False, "commit 0123456789ab"),
        ("0123456789abcdef", True, "commit 0123456789ab, changed since"),
    ],
)
def test_the_commit_stands_last(commit: str, dirty: bool, end: str) -> None:
    text = (
        head(facts_of(report_of({"a": [PASS]}, run={"commit": commit, "dirty": dirty}))).one("p", "ran").text
    )
    assert text.split(" · ")[-1] == end


def test_a_part_of_the_line_is_short() -> None:
    report = report_of({"a": [PASS]}, agents=tuple(f"{n}{'x' * 99}" for n in range(9)))
    parts = head(facts_of(report)).one("p", "ran").text.split(" · ")
    assert max(map(len, parts)) <= 200


def test_caveats_stand_below_but_not_what_the_sentence_contains() -> None:
    played = Played((score("stars", 4.0, by="scripted/x.yaml", scripted=True),), turns=((),))
    found = head(facts_of(report_of({"a": [played]}, run={"no_judge": True})))
    (caveat,) = found.all("p", "caveat")
    assert caveat.one("b").text == "Scripted replies"
    assert caveat.text.startswith("Scripted replies: ")
    assert " — with " in found.one("h1").text


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def test_each_state_that_occurs_is_counted_and_filters_the_list() -> None:
    epochs = {
        "a": [FAIL], "b": [PASS, FAIL], "c": [LOST], "d": [PASS], "e": [PASS], "f": [NOTED]
    }  # fmt: skip
    assert links(shown(epochs).one("p", "counts")) == [
        ("✗ 2 failed", "#/?q=v%3Afailed"),
        ("? 1 inconclusive", "#/?q=v%3Ainconclusive"),
        ("≈ 1 flaky", "#/?q=v%3Aflaky"),
        ("✓ 3 passed", "#/?q=v%3Apassed"),
        ("6 in total", "#/?q="),
    ]


def test_scenarios_that_passed_although_conversations_failed_are_counted_apart() -> None:
    report = report_of({"a": [PASS, FAIL], "b": [FAIL, FAIL], "c": [PASS]})
    decision = decide(report)
    passed = {key: replace(each, verdict=PASSED) for key, each in decision.scenarios.items()}
    found = page(Facts(report, replace(decision, scenarios=passed)))
    assert links(found.one("p", "counts")) == [
        ("≈ 1 flaky", "#/?q=v%3Aflaky"),
        ("○ 2 tolerated", "#/?q=v%3Atolerated"),
        ("✓ 1 passed", "#/?q=v%3Apassed"),
        ("3 in total", "#/?q="),
    ]


def test_scenarios_are_counted_once_for_each_agent() -> None:
    found = links(shown({"a": [PASS]}, agents=("x", "y")).one("p", "counts"))
    assert found == [("✓ 2 passed", "#/?q=v%3Apassed"), ("2 in total", "#/?q=")]


def test_large_numbers_are_readable() -> None:
    facts = facts_of(report_of({"a": [PASS]}))
    rows = scenario_rows(facts, (), ".") * 1234
    found = read_html("".join(overview(facts, rows, (), (), ".")))
    assert [text for text, _ in links(found.one("p", "counts"))] == ["✓ 1,234 passed", "1,234 in total"]


def test_of_a_log_findings_are_counted() -> None:
    assert links(log({"a": [NOTED], "b": [PASS], "c": [NOTED]}).one("p", "counts")) == [
        ("! 2 with findings", "#/?q=v%3Afinding"),
        ("3 in total", "#/?q="),
    ]


def test_of_a_log_records_that_were_not_fully_read_are_counted() -> None:
    facts = facts_of(oddly_read({"a": [PASS], "b": [PASS]}), without_scenarios=True, is_reported=True)
    found = page(facts)
    assert links(found.one("p", "counts")) == [
        ("? 2 not fully read", "#/?q=v%3Apartly-read"),
        ("2 in total", "#/?q="),
    ]


# ── mistakes and gates ───────────────────────────────────────────────────────────────────────────


def test_mistakes_of_the_author_are_listed() -> None:
    facts = facts_of(report_of({"a": [PASS]}), author_errors=("a.yaml:1: <b>\nx", "y" * 2000))
    found = page(facts)
    assert found.all("h2")[0].text.startswith("To fix")
    first, second = found.all("ul")[0].all("li")
    assert first.text == "a.yaml:1: <b> x"
    assert second.text == "y" * 999 + "…"
    assert not shown({"a": [PASS]}).all("ul")


@pytest.mark.parametrize(
    ("count", "shown_lines", "rest"),
    [(100, 100, []), (101, 100, ["… and 1 more mistake"]), (2000, 100, ["… and 1,900 more mistakes"])],
)
def test_only_so_many_mistakes_are_listed(count: int, shown_lines: int, rest: list[str]) -> None:
    mistakes = tuple(f"{n} {'x' * 900}" for n in range(count))
    found = page(facts_of(report_of({"a": [PASS]}), author_errors=mistakes))
    assert [each.text for each in found.all("ul")[0].all("li")] == list(mistakes[:shown_lines])
    assert [each.text for each in found.all("p", "quiet") if "mistake" in each.text] == rest


def gate(name: str, verdict: Verdict = FAILED, **more: Any) -> GateRow:
    fields = {"value": 0.5, "bound": 0.9, "basis": "4 samples", "where": "/no/shop/a.yaml:3", **more}
    return GateRow(name=name, verdict=verdict, **fields)


def gates_of(*gates: GateRow, root: str = ".") -> tuple[list[list[str]], list[str]]:
    """The table of gates, if there is one, and the link to all of them."""
    found = page(facts_of(report_of({"a": [PASS]}), gates=gates), root=root)
    heads = [each.text for each in found.all("h2")]
    tables = found.all("div", "wide")
    rows = tables[0].rows() if "Gates that did not pass" in heads else []
    return rows, [each.text for each in found.all("a", href="#/gates")]


def test_gates_that_did_not_pass_are_shown_worst_first() -> None:
    gates = (gate("g1", UNDECIDED), gate("g2", PASSED), gate("g3"), gate("g4", UNDECIDED), gate("g5"))
    found, rest = gates_of(*gates, root="/no/shop")
    assert found == [
        ["✗ failed", "g3", "0.5", "0.9", "4 samples", "a.yaml:3"],
        ["✗ failed", "g5", "0.5", "0.9", "4 samples", "a.yaml:3"],
        ["? inconclusive", "g1", "0.5", "0.9", "4 samples", "a.yaml:3"],
        ["? inconclusive", "g4", "0.5", "0.9", "4 samples", "a.yaml:3"],
    ]
    assert rest == ["1 gate passed"]


@pytest.mark.parametrize(
    ("more", "rule", "href"),
    [
        ({}, "g", None),
        ({"agent": "bot"}, "g · bot", None),
        ({"scenario": "a", "agent": "bot"}, "g · a · bot", "#/c/a/1?agent=bot"),
        ({"scenario": "a/<b> c"}, "g · a/<b> c", "#/c/a%2F%3Cb%3E%20c/1?"),
    ],
)
def test_the_gate_of_a_scenario_leads_to_its_first_conversation(
    more: dict[str, str], rule: str, href: str | None
) -> None:
    found = page(facts_of(report_of({"a": [PASS]}), gates=(gate("g", **more),)))
    table = found.all("div", "wide")[0]
    assert table.rows()[0][:2] == ["✗ failed", rule]
    assert links(table) == ([(rule, href)] if href else [])


@pytest.mark.parametrize(
    ("bad", "held", "rows", "text"),
    [
        (0, 0, 0, []),
        (0, 2, 0, ["2 gates passed"]),
        (1, 0, 1, ["0 gates passed"]),
        (8, 1, 8, ["1 gate passed"]),
        (20, 1, 20, ["1 gate passed"]),
        (21, 0, 20, ["1 more gate not passed; 0 gates passed"]),
        (24, 1, 20, ["4 more gates not passed; 1 gate passed"]),
    ],
)
def test_only_the_worst_gates_are_shown(bad: int, held: int, rows: int, text: list[str]) -> None:
    gates = [gate(f"b{n}") for n in range(bad)] + [gate(f"h{n}", PASSED) for n in range(held)]
    found, rest = gates_of(*gates)
    assert [row[1] for row in found] == [f"b{n}" for n in range(rows)]
    assert rest == text


# ── the baseline ─────────────────────────────────────────────────────────────────────────────────


def change(kind: str, rows: int = 1) -> ChangeRow:
    return ChangeRow(kind, "s/a.yaml::a", "1/1", "0/1", "why", "unknown", rows)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([], "nothing changed"),
        ([change("Fixed")], "1 fixed"),
        ([change("Fixed"), change("Newly failing", 3), change("Fixed", 2)], "3 newly failing, 3 fixed"),
        ([change("Undecided", 1200)], "1,200 undecided"),
    ],
)
def test_changes_against_the_baseline_are_counted(changes: list[ChangeRow], text: str) -> None:
    report = report_of({"a": [PASS]}, run={"baseline": Baseline(run_id="r0\n<b>", outcomes={})})
    (link,) = page(facts_of(report), changes).one("p", "baseline").all("a")
    assert (link.text, link.attributes["href"]) == (f"Against r0 <b>: {text}", "#/compare")


def test_without_a_baseline_there_is_no_such_line() -> None:
    assert not page(facts_of(report_of({"a": [PASS]})), [change("Fixed")]).all("p", "baseline")


# ── failure rates of a log ───────────────────────────────────────────────────────────────────────


def test_failures_of_a_log_have_rates_and_links_to_quotations() -> None:
    quoted = finding(Severity.HIGH, 0, label="wrong <b>", evidence="Booked!", explanation="no booking")
    found = log({"a": [Played(turns=((quoted,),))], "b": [PASS], "c/d": [Played(turns=((), (quoted.model_copy(
        update={"turn": 1, "evidence": ""}),)))]})  # fmt: skip
    assert found.all("h2")[0].text == "What goes wrong"
    box = found.all("div", "wide")[0]
    assert box.heads() == [
        "severity", "what", "found by", "conversations", "rate", "95 % interval", "for example"
    ]  # fmt: skip
    (row,) = box.rows()
    assert row[:5] == ["high", "wrong <b>", f"judge of {quoted.metric}", "2 of 2", "100.0 %"]
    assert links(box) == [
        ("a, turn 1", "#/c/a/1/turn/1?agent=bot"),
        ("c/d, turn 2", "#/c/c%2Fd/1/turn/2?agent=bot"),
    ]
    examples = [each.text for each in box.one("tbody").all("div")]
    assert examples == ['a, turn 1 "Booked!": no booking', "c/d, turn 2 no booking"]


def test_a_log_without_failures_says_so() -> None:
    found = log({"a": [PASS], "b": [PASS]})
    assert [each.text for each in found.all("h2")] == ["What goes wrong", "Records"]
    assert any(
        each.text == "No known kind of failure was found in 2 conversations" for each in found.all("p")
    )


def test_what_is_not_known_of_a_log_stands_below() -> None:
    found = log({"a": [PASS], "b": [LOST]})
    (caveat,) = found.all("p", "caveat")
    assert caveat.text == "1 conversation not decided"
    assert not log({"a": [PASS]}).all("p", "caveat")


def test_a_run_with_scenarios_has_no_rates() -> None:
    assert "What goes wrong" not in [each.text for each in shown({"a": [NOTED]}).all("h2")]


# ── issues ───────────────────────────────────────────────────────────────────────────────────────


def issue(name: str, severity: Severity = Severity.LOW, **more: Any) -> Issue:
    place = {"scenario": "a", "agent": "bot"}
    fields = {
        "id": name, "agent": "bot", "title": f"Title {name}", "severity": severity, "labels": ("x",),
        "metrics": ("m",), "occurrences": (Occurrence(**place, findings=(0,)),),
        "examples": (IssueExample(**place, turn=0, evidence="Booked!"),), **more,
    }  # fmt: skip
    return Issue.model_validate(fields)


def test_the_head_of_an_issue() -> None:
    facts = facts_of(replace(report_of({"a": [NOTED]}), issues=(issue("I 1", title=HOSTILE),)))
    (text,) = issues_text(facts.report, facts.decision)
    found = read_html(issue_head(text))
    assert found.text == f"low {HOSTILE} (1 occurrence in 1 scenario)"
    assert links(found) == [(HOSTILE, "#/?q=issue%3AI%201")]
    assert found.one("span").kinds == ["severity", "low"]
    failing = read_html(issue_head(replace(text, fails=True, severity=Severity.CRITICAL)))
    assert failing.one("b", "failed").text == " fails the run"
    assert failing.text.startswith("critical ")
    assert not found.all("b")


@pytest.mark.parametrize(
    ("count", "listed", "rest"),
    [
        (0, 0, []),
        (1, 1, []),
        (5, 5, []),
        (6, 5, ["all 6 issues"]),
        (1200, 5, ["all 1,200 issues"]),
    ],
)
def test_the_worst_issues_are_listed(count: int, listed: int, rest: list[str]) -> None:
    severities = list(Severity)
    issues = [issue(f"I{n}", severities[min(n, 3)]) for n in range(count)]
    found = page(facts_of(report_of({"a": [NOTED]})), issues=issues)
    lists = found.all("ol", "issues")
    assert [len(each.all("li")) for each in lists] == ([listed] if listed else [])
    assert ("Issues" in [each.text for each in found.all("h2")]) is bool(listed)
    assert [each.text for each in found.all("a", href="#/issues")] == rest


def test_the_worst_issue_is_the_first() -> None:
    issues = [issue("I1"), issue("I2", Severity.CRITICAL), issue("I3", Severity.HIGH)]
    found = page(facts_of(report_of({"a": [NOTED]})), issues=issues).one("ol", "issues")
    assert [each.text.split(" (")[0] for each in found.all("li")] == [
        "critical Title I2",
        "high Title I3",
        "low Title I1",
    ]


@pytest.mark.parametrize("severity", list(Severity))
def test_a_severity_is_a_word_and_a_class(severity: Severity) -> None:
    badge = read_html(severity_badge(str(severity))).one("span")
    assert (badge.text, badge.kinds) == (severity.value, ["severity", severity.value])


# ── the list ─────────────────────────────────────────────────────────────────────────────────────


def listed(found: Node) -> list[list[str]]:
    """The rows of the list. The reason and the place below it are two items."""
    rows = []
    for row in found.one("table", id="list").one("tbody").all("tr"):
        *cells, reason = row.all("td")
        where = reason.one("div", "quiet").text
        assert reason.text.endswith(where)
        rows.append([*(cell.text for cell in cells), reason.text.removesuffix(where), where])
    return rows


def test_what_did_not_pass_is_listed() -> None:
    check = Check(name="output.contains", passed=False, detail=HOSTILE)
    broken = Played((check,), turns=((finding(Severity.LOW),),))
    found = shown({"a": [PASS], "b": [LOST], "c": [broken], "d": [NOTED]})
    assert found.one(id="list-title").text == "Scenarios"
    table = found.one("table", id="list")
    assert table.heads() == ["verdict", "scenario", "agent", "reason"]
    rows = listed(found)
    assert [row[:3] for row in rows] == [["✗ failed", "c", "bot"], ["? inconclusive", "b", "bot"]]
    assert rows[0][3:] == [HOSTILE, "s/c.yaml:1"]
    assert links(table) == [("c", "#/c/c/1?agent=bot"), ("b", "#/c/b/1?agent=bot")]
    assert [cell.kinds for cell in table.all("td")] == [[], [], [], ["reason"]] * 2


def test_a_row_names_its_agent_and_the_places_of_its_scenario() -> None:
    fields = {"a": {"source": "/no/shop/s/a.yaml:3", "row": "/no/shop/rows.csv:7"}, "b": {"source": ""}}
    report = report_of({"a": [FAIL], "b": [FAIL]}, agents=("x<", "y"), scenarios=fields)
    found = listed(page(facts_of(report), root="/no/shop"))
    assert [row[1:3] for row in found] == [["a", "x<"], ["a", "y"], ["b", "x<"], ["b", "y"]]
    assert [row[4] for row in found] == ["s/a.yaml:3 · rows.csv:7"] * 2 + [""] * 2


def test_what_never_ran_is_listed_with_that_reason() -> None:
    assert [row[1:4] for row in listed(shown({"a": [None, None]}))] == [["a", "bot", "never ran"]]


def test_the_tools_of_the_list_are_hidden_without_the_script() -> None:
    found = shown({"a": [PASS]})
    tools = found.one(id="list-tools")
    assert "hidden" in tools.attributes
    assert tools.content == []
    assert listed(found) == []
    assert found.one("p", id="list-more").text == (
        "This list contains only what did not pass; with JavaScript, the page shows all conversations."
    )


@pytest.mark.parametrize(
    ("count", "rows", "start"),
    [
        (3, 3, "This list"),
        (4, 3, "… and 1 more scenario that did not pass. This list"),
        (6, 3, "… and 3 more scenarios that did not pass. This list"),
    ],
)
def test_the_static_list_is_bounded(
    monkeypatch: pytest.MonkeyPatch, count: int, rows: int, start: str
) -> None:
    assert module.MOST_STATIC_ROWS == 200
    monkeypatch.setattr(module, "MOST_STATIC_ROWS", 3)
    found = shown({f"s{n}": [FAIL] for n in range(count)})
    assert [row[1] for row in listed(found)] == [f"s{n}" for n in range(rows)]
    assert found.one("p", id="list-more").text.startswith(start)


@pytest.mark.parametrize(
    ("played", "href"),
    [
        ([FAIL, PASS], "#/c/a/1?agent=bot"),
        ([PASS, FAIL, FAIL], "#/c/a/2?agent=bot"),
        ([PASS, LOST, FAIL], "#/c/a/2?agent=bot"),
        ([PASS, CUT], "#/c/a/2?agent=bot"),
        ([PASS, None], "#/c/a/2?agent=bot"),
    ],
)
def test_a_row_leads_to_the_first_conversation_that_did_not_pass(
    played: list[Played | None], href: str
) -> None:
    assert links(shown({"a": played}).one("table", id="list")) == [("a", href)]


def test_a_row_that_failed_as_a_whole_leads_to_its_first_conversation() -> None:
    report = report_of({"a": [PASS, PASS]})
    scenarios = {("a", "bot"): replace(decide(report).scenarios["a", "bot"], verdict=FAILED)}
    found = page(facts_of(report, scenarios=scenarios)).one("table", id="list")
    assert links(found) == [("a", "#/c/a/1?agent=bot")]


def test_a_row_without_a_plan_has_a_link_all_the_same() -> None:
    facts = facts_of(report_of({"a": [FAIL]}))
    (row,) = scenario_rows(facts, (), ".")
    found = read_html("".join(overview(facts, [replace(row, epochs=())], (), (), ".")))
    assert links(found.one("table", id="list")) == [("a", "#/c/a/1?agent=bot")]


def test_of_a_log_what_has_a_finding_is_listed_with_its_severity() -> None:
    found = log({"a": [PASS], "b": [NOTED]})
    assert found.one(id="list-title").text == "Records"
    assert found.one("table", id="list").heads() == ["severity", "record", "agent", "reason"]
    assert listed(found) == [["low", "b", "bot", "it said so", "s/b.yaml:1"]]
    assert found.one("table", id="list").one("span").kinds == ["severity", "low"]
    key = SampleKey(scenario="b", agent="bot")
    assert links(found.one("table", id="list")) == [(key.scenario, "#/c/b/1?agent=bot")]


def test_of_a_log_what_failed_or_is_not_decided_is_listed_with_its_verdict() -> None:
    """A finding says more than the verdict."""
    both = Played((BROKEN,), turns=((finding(Severity.HIGH, explanation="it said so"),),))
    found = log({"a": [FAIL], "b": [PASS], "c": [LOST], "d": [NOTED], "e": [both]})
    assert [[row[0], row[1], row[3]] for row in listed(found)] == [
        ["high", "e", "not there"],
        ["✗ failed", "a", "not there"],
        ["? inconclusive", "c", listed(found)[2][3]],
        ["low", "d", "it said so"],
    ]
    assert links(found.one("p", "counts")) == [
        ("! 2 with findings", "#/?q=v%3Afinding"),
        ("✗ 2 failed", "#/?q=v%3Afailed"),
        ("? 1 inconclusive", "#/?q=v%3Ainconclusive"),
        ("5 in total", "#/?q="),
    ]


def test_the_explanation_of_a_finding_is_short() -> None:
    found = log({"a": [Played(turns=((finding(Severity.LOW, explanation="x" * 100_000),),))]})
    assert len(listed(found)[0][3]) == 300


def test_the_parts_stand_in_one_order() -> None:
    report = report_of({"a": [NOTED]}, run={"baseline": Baseline(run_id="r0", outcomes={})})
    facts = facts_of(
        report, gates=(gate("g"),), author_errors=("x",), without_scenarios=True, is_reported=True
    )
    found = page(facts, issues=[issue("I1")])
    assert [each.text for each in found.all("h2")] == [
        "To fix in the scenarios or the configuration",
        "Gates that did not pass",
        "What goes wrong",
        "Issues",
        "Records",
    ]
    texts = found.text
    order = [
        "in total",
        "To fix",
        "Gates that",
        "0 gates passed",
        "Against r0",
        "What goes",
        "Title I1",
        "Records",
    ]
    assert sorted(order, key=texts.index) == order
