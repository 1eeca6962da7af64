"""The views of the page besides the first: issues, gates, the baseline, figures and the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, AcceptedUse, GateRow
from agenteval.core.event import Baseline, Notice
from agenteval.core.score import Issue, IssueExample, Occurrence, ScoreFailure, Severity, Verdict
from agenteval.core.trajectory import Usage
from agenteval.reporters.html import views
from agenteval.reporters.html.markup import Markup
from agenteval.reporters.html.views import comparison_view, gate_view, issue_view, measure_view, run_view
from agenteval.reporters.sections.baseline_changes import ChangeRow
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import issues_text
from agenteval.verdict.gates import decide
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.report import Report
from tests.support.pages import Node, read_html
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, finding, report_of, score, with_suite

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
HOSTILE = "</p><script>alert(1)</script>&amp;'\""
NOTED = Played(turns=((finding(Severity.LOW),),))


def facts_of(report: Report | None = None, **changes: Any) -> Facts:
    report = report or report_of({"a": [PASS]})
    return Facts(report, replace(decide(report), **changes))


def node(parts: Iterator[Markup]) -> Node:
    return read_html("".join(parts))


def heads(found: Node) -> list[str]:
    return [each.text for each in found.below if each.name in ("h2", "h3", "h4")]


# ── issues ───────────────────────────────────────────────────────────────────────────────────────


def issue(name: str = "I1", **more: Any) -> Issue:
    place = {"scenario": "a", "agent": "bot"}
    fields = {
        "id": name, "agent": "bot", "title": f"Title {name}", "severity": Severity.LOW, "labels": ("x",),
        "metrics": ("m",), "occurrences": (Occurrence(**place, findings=(0,)),), **more,
    }  # fmt: skip
    return Issue.model_validate(fields)


def issues_of(*issues: Issue, **more: Any) -> Node:
    report = replace(report_of({"a": [NOTED]}), issues=issues, **more)
    facts = facts_of(report)
    return node(issue_view(facts, issues_text(report, facts.decision)))


def test_an_issue_has_its_head_its_explanation_its_quotations_and_remarks() -> None:
    examples = (
        IssueExample(scenario="a", agent="bot", turn=0, evidence=HOSTILE),
        IssueExample(scenario="a", agent="bot", epoch=0, turn=None),
    )
    more = {
        "explanation": "It says <so>.",
        "proposed_severity": Severity.HIGH,
        "not_the_agents_fault": "a tool",
    }
    found = issues_of(issue(examples=examples, **more)).one("article", "issue")
    assert found.one("h3").text == "low Title I1 (1 occurrence in 1 scenario)"
    explanation, remarks = found.all("p")
    assert explanation.text == "It says <so>."
    assert remarks.kinds == ["quiet"]
    first, second = remarks.text.split("; ", 1)
    assert first == "the model proposed high"
    assert second.startswith("the model says it is not the agent's fault: a tool (")
    assert [each.text for each in found.all("li")] == [f"a, turn 1: {HOSTILE}", "a: …"]
    assert [(each.text, each.attributes["href"]) for each in found.one("ul").all("a")] == [
        ("a, turn 1", "#/c/a/1/turn/1?agent=bot"),
        ("a", "#/c/a/1?agent=bot"),
    ]
    assert [each.text for each in found.all("q")] == [HOSTILE, "…"]


def test_a_quotation_leads_to_its_epoch_and_variant() -> None:
    example = IssueExample(scenario="a", agent="bot", epoch=1, variant="v 1", turn=2)
    (link,) = issues_of(issue(examples=(example,))).one("ul").all("a")
    assert link.attributes["href"] == "#/c/a/2/turn/3?agent=bot&variant=v%201"


def test_an_issue_without_more_is_its_head() -> None:
    (found,) = issues_of(issue()).all("article")
    assert [each.name for each in found.content if isinstance(each, Node)] == ["h3"]


@pytest.mark.parametrize(
    ("count", "shown", "rest"),
    [(2, 2, []), (3, 2, ["… and 1 more issue"]), (5, 2, ["… and 3 more issues"])],
)
def test_only_so_many_issues_are_shown(
    monkeypatch: pytest.MonkeyPatch, count: int, shown: int, rest: list[str]
) -> None:
    assert views._MOST_ISSUES == 200
    monkeypatch.setattr(views, "_MOST_ISSUES", 2)
    found = issues_of(*(issue(f"I{n}") for n in range(count)))
    assert [each.text.split(" (")[0] for each in found.all("h3")] == [f"low Title I{n}" for n in range(shown)]
    assert [each.text for each in found.all("p", "quiet")] == rest


def test_without_an_issue_it_says_so() -> None:
    found = node(issue_view(facts_of(), ()))
    assert found.text == "No issue: no finding of a judge or a detector was grouped."


def test_findings_that_were_not_grouped_are_listed() -> None:
    found = issues_of()
    assert heads(found) == ["Issues (not grouped: the run ended first)"]
    assert "false information" in found.one("ul", "notes").text
    assert found.all("p", "quiet")[-1].text.startswith("No issue: ")


def test_failures_outside_the_agent_stand_below() -> None:
    report, decision = judged_run()
    found = node(issue_view(Facts(report, decision), issues_text(report, decision)))
    assert len(found.all("article")) == 3
    titles = [head.split(":")[0].split(" (")[0] for head in heads(found)[3:]]
    assert titles == ["Judges that failed", "Simulated user"]
    failed = ScoreFailure(metric="error_deduplication", message=HOSTILE)
    shown = issues_of(issue(), issue_failures=(failed,))
    assert [head.split(" (")[0] for head in heads(shown)[1:]] == ["Judges that failed"]
    assert HOSTILE in shown.text


# ── gates ────────────────────────────────────────────────────────────────────────────────────────


def gate(name: str, verdict: Verdict) -> GateRow:
    return GateRow(name, 0.5, 0.9, "4 samples", "/no/shop/a.yaml:3", verdict)


def test_all_gates_are_listed_worst_first_and_then_the_accept_list() -> None:
    accepted = AcceptedFailure.model_validate(
        {"fingerprint": "abcdefabcdef", "owner": "me", "reason": "known", "expires": "2027-01-01"}
    )
    facts = facts_of(
        gates=(gate("g1", PASSED), gate("g2", UNDECIDED), gate("g3", FAILED)),
        ungated=("m1", "m2"),
        accepted=(AcceptedUse(accepted, AcceptedState.UNUSED),),
    )
    found = node(gate_view(facts, "/no/shop"))
    assert heads(found) == ["0 accepted failures"]
    assert found.rows() == [
        ["✗ failed", "g3", "0.5", "0.9", "4 samples", "a.yaml:3"],
        ["? inconclusive", "g2", "0.5", "0.9", "4 samples", "a.yaml:3"],
        ["✓ passed", "g1", "0.5", "0.9", "4 samples", "a.yaml:3"],
    ]
    first, second = (each.text for each in found.all("ul"))
    assert first == "Judged or measured, but not gated: m1, m2"
    assert second.startswith("abcdefabcdef ")


def test_a_run_without_gates_says_so() -> None:
    found = node(gate_view(facts_of(gates=()), "."))
    assert (heads(found), found.one("li").text) == ([], "No gate applied")
    assert not found.all("table")


def test_without_notes_there_is_no_list_of_them() -> None:
    assert not node(gate_view(facts_of(gates=(gate("g1", PASSED),), ungated=()), ".")).all("ul")


def test_the_gate_of_a_scenario_is_a_link() -> None:
    rows = (gate("g1", FAILED), replace(gate("g2", PASSED), scenario="a b", agent="bot"))
    (link,) = node(gate_view(facts_of(gates=rows), ".")).all("a")
    assert (link.text, link.attributes["href"]) == ("g2 · a b · bot", "#/c/a%20b/1?agent=bot")


def test_only_so_many_gates_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert views.MOST_ROWS == 500
    monkeypatch.setattr(views, "MOST_ROWS", 2)
    found = node(gate_view(facts_of(gates=[gate(f"g{n}", PASSED) for n in range(5)]), "."))
    assert [row[1] for row in found.rows()] == ["g0", "g1"]
    assert [each.text for each in found.all("p", "quiet")] == ["… and 3 more gates"]


# ── against the baseline ─────────────────────────────────────────────────────────────────────────


def change(kind: str, name: str = "s/a.yaml::a", rows: int = 1) -> ChangeRow:
    return ChangeRow(kind, name, "1/2", "0/2", f"why <{name}>", "may be chance", rows)


def compared(*changes: ChangeRow, **baseline: Any) -> Node:
    report = report_of({"a": [PASS]}, run={"baseline": Baseline(run_id="r0", outcomes={}, **baseline)})
    return node(comparison_view(facts_of(report), changes))


def tables(found: Node) -> list[list[list[str]]]:
    return [each.rows() for each in found.all("div", "wide")]


def test_changes_are_listed_by_kind() -> None:
    first, second = change("Newly failing", "n1"), change("Newly failing", "n2", 3)
    found = compared(change("Fixed", "f"), first, change("Undecided", "u", 1200), second)
    assert heads(found) == ["Newly failing (4)", "Undecided (1,200)", "Fixed (1)"]
    assert [row[0] for rows in tables(found) for row in rows] == ["n1", "n2", "u", "f"]
    box = found.all("div", "wide")[0]
    assert box.heads() == ["scenario", "before", "now", "why", "confidence"]
    assert box.rows()[0] == ["n1", "1/2", "0/2", "why <n1>", "may be chance"]


def test_what_cannot_be_compared_stands_apart() -> None:
    changed = {"x": {"a": "goal, turns"}, "y": {"<b>": "tools"}}
    found = compared(change("Fixed"), changed=changed, gone=("c", "d"))
    assert heads(found) == ["Fixed (1)", "Not comparable (4)"]
    box = found.all("div", "wide")[1]
    assert box.heads() == ["scenario", "agent", "why"]
    assert box.rows() == [
        ["a", "x", "changed: goal, turns"],
        ["<b>", "y", "changed: tools"],
        ["c", "", "not in this run"],
        ["d", "", "not in this run"],
    ]


@pytest.mark.parametrize("gone", [(), ("c",)])
def test_it_says_if_nothing_changed_and_how_significance_is_meant(gone: tuple[str, ...]) -> None:
    texts = [each.text for each in compared(gone=gone).all("p")]
    assert texts[:-1] == ([] if gone else ["No scenario changed."])
    assert texts[-1].startswith("Significant: Fisher's exact test")
    assert "*" not in texts[-1]


def test_without_a_baseline_there_is_nothing() -> None:
    assert list(comparison_view(facts_of(), [change("Fixed")])) == []


def test_each_table_of_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert views._MOST_CHANGES == 500
    monkeypatch.setattr(views, "_MOST_CHANGES", 2)
    changes = [change(kind, f"{kind}{n}") for n in range(3) for kind in ("Fixed", "Undecided")]
    found = compared(*changes, gone=("a", "b", "c"))
    assert [len(rows) for rows in tables(found)] == [2, 2, 2]
    assert heads(found) == ["Undecided (3)", "Fixed (3)", "Not comparable (3)"]
    assert [each.text for each in found.all("p", "quiet")][:-1] == ["… and 1 more scenario"] * 3


@pytest.mark.parametrize(
    ("count", "rest"), [(2, []), (3, ["… and 1 more scenario"]), (1202, ["… and 1,200 more scenarios"])]
)
def test_what_a_table_of_changes_leaves_out_is_named(
    monkeypatch: pytest.MonkeyPatch, count: int, rest: list[str]
) -> None:
    monkeypatch.setattr(views, "_MOST_CHANGES", 2)
    for found in (
        compared(*(change("Fixed", f"f{n}") for n in range(count))),
        compared(gone=tuple(f"g{n}" for n in range(count))),
    ):
        assert [each.text for each in found.all("p", "quiet")][:-1] == rest


# ── figures ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "agents", "caveats"),
    [
        ({"a": [PASS], "b": [FAIL]}, ("bot",), []),
        ({"a": [PASS], "b": [LOST]}, ("bot",), ["1 of 2 results not decided, and not in all figures"]),
        ({"a": [LOST]}, ("x", "y"), ["2 of 2 results not decided, and not in all figures"]),
        ({"a": [LOST]}, ("bot",), ["1 of 1 result not decided, and not in all figures"]),
    ],
)
def test_results_that_were_not_decided_are_counted_before_the_figures(
    epochs: dict[str, list[Played | None]], agents: tuple[str, ...], caveats: list[str]
) -> None:
    facts = facts_of(report_of(epochs, agents=agents))
    found = node(measure_view(facts, (Markup("<svg></svg>"),), "."))
    assert [each.text for each in found.all("p", "caveat")] == caveats
    if caveats:
        assert found.below[0].kinds == ["caveat"]


def test_pictures_come_before_the_tables_of_what_was_measured() -> None:
    played = Played((score("stars", 4.0),))
    facts = facts_of(report_of({"a": [played]}, agents=("x", "y")))
    found = node(measure_view(facts, (Markup("<svg></svg>"), Markup("<b></b>")), "."))
    first = found.below[0]
    assert (first.kinds, [each.name for each in first.below]) == (["charts"], ["svg", "b"])
    titles = heads(found)
    assert titles[0] == "Summary"
    assert titles[-1] == "Usage"
    assert len(titles) > 2  # the agents are compared


def test_without_pictures_there_is_no_place_for_them() -> None:
    assert not node(measure_view(facts_of(), (), ".")).all("div", "charts")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def terms(found: Node) -> dict[str, str]:
    names, texts = ([each.text for each in found.one("dl").all(name)] for name in ("dt", "dd"))
    return dict(zip(names, texts, strict=True))


def test_what_a_run_consisted_of() -> None:
    run = {
        "command": ("run", "s/a b.yaml"),
        "commit": "0123456789abcdef",
        "versions": {"agenteval": "1.2.3", "python": "3.11"},
        "prompts": {"judge": "0123456789abcdef", "user": "<b>"},
    }
    report = with_suite(report_of({"a": [PASS]}, run=run), seed=7)
    assert terms(node(run_view(facts_of(report)))) == {
        "run": "20261121-101500-ab12",
        "started": "2026-11-21T10:15:00Z",
        "command": "agenteval run 's/a b.yaml'",
        "seed": "7",
        "commit": "0123456789abcdef",
        "versions": "agenteval 1.2.3, python 3.11",
        "prompts": "judge 0123456789ab, user <b>",
    }


def test_a_run_of_which_little_is_known() -> None:
    report = report_of({"a": [PASS]}, run={"command": (), "versions": {}})
    assert set(terms(node(run_view(facts_of(report))))) == {"run", "started", "seed"}


def test_a_commit_that_was_changed_says_so() -> None:
    report = report_of({"a": [PASS]}, run={"commit": "0123", "dirty": True})
    assert terms(node(run_view(facts_of(report))))["commit"] == "0123 (changed since)"


def test_what_was_spent_by_role() -> None:
    ledger = (
        LedgerLine("agent", "bot <b>", Usage(calls=1200)),
        LedgerLine("judge", "x/y", Usage(calls=2, cost=0.01234)),
    )
    found = node(run_view(facts_of(replace(report_of({"a": [PASS]}), ledger=ledger))))
    assert heads(found) == ["Remarks", "Models and agents", "Run"]
    assert found.rows() == [["agent", "bot <b>", "1,200", "unknown"], ["judge", "x/y", "2", "0.0123 USD"]]
    assert [cell.kinds for cell in found.all("th")] == [[], [], ["number"], ["number"]]


def remarks_of(*notices: Notice, **changes: Any) -> list[tuple[str, str]]:
    report = replace(report_of({"a": [PASS]}), notices=notices)
    found = node(run_view(facts_of(report, **changes))).all("ul", "notes")
    return [(each.one("b").text, each.text) for box in found for each in box.all("li")]


def test_remarks_come_first_and_then_notices() -> None:
    levels = ("error", "info", "warning")
    notices = [Notice(level=level, text=f"<b>\n{level}") for level in levels]
    assert [each for each in remarks_of(*notices) if each[0] in levels] == [
        ("error", "error: <b> error"),
        ("warning", "warning: <b> warning"),
        ("info", "info: <b> info"),
    ]


def test_notices_are_bounded() -> None:
    found = remarks_of(*(Notice(level="info", text=f"{n}{'x' * 2000}") for n in range(250)))
    shown = [text for label, text in found if label == "info"]
    assert [text[:8] for text in shown] == [f"info: {n}x"[:8] for n in range(200)]
    assert max(map(len, shown)) == 1000 + len("info: ")


def test_the_configuration_is_what_was_set() -> None:
    report = report_of({"a": [PASS]}, gates={"pass_rate": {"at_least": 0.5, "reject_below": 0.1}})
    report = replace(report, run=report.run.model_copy(update={
        "config": report.run.config.model_copy(update={"root": "/secret/place", "lines": {"agent": 3}})
    }))  # fmt: skip
    found = node(run_view(facts_of(report))).one("details")
    assert found.one("summary").text == "Configuration"
    config = json.loads(found.one("pre").text)
    assert config["gates"] == {"pass_rate": {"at_least": 0.5, "reject_below": 0.1}}
    assert config["agent"] == {"name": "bot", "target": "a:b", "calls": "all"}
    assert {"root", "lines", "columns", "epochs"}.isdisjoint(config)


def test_the_configuration_keeps_its_letters_and_is_escaped() -> None:
    report = report_of({"a": [PASS]}, run={})
    agent = report.run.config.agent
    assert agent
    config = report.run.config.model_copy(update={"agent": agent.model_copy(update={"name": f"é{HOSTILE}"})})
    report = replace(report, run=report.run.model_copy(update={"config": config}))
    found = "".join(run_view(facts_of(report)))
    assert "<script" not in found
    assert json.loads(read_html(found).one("pre").text)["agent"]["name"] == f"é{HOSTILE}"
    assert "é" in found
