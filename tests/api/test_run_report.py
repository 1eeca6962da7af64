"""A run as a value: its parts, the exceptions for its verdict, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.api.run_report import InconclusiveError, RunReport, VerdictError
from agenteval.core.decision import GateRow
from agenteval.core.errors import AuthorError
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.core.trajectory import StopReason
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, lost, report_of

FOLDER = Path("/p/.agenteval/runs/r")


def run_of(epochs: Any, *, decided: dict[str, Any] | None = None, **more: Any) -> RunReport:
    """``decided``: what is changed in the decision."""
    report = report_of(epochs, **more)
    return RunReport(DecidedRun(report, replace(decide(report), **(decided or {})), FOLDER))


def names(found: Any) -> list[tuple[str, str]]:
    return [(each.id, each.agent) for each in found]


MIXED = {"good": [PASS], "bad": [FAIL], "open": [UNSURE], "worse": [FAIL]}


def test_the_scenarios_by_their_verdict() -> None:
    run = run_of(MIXED)
    assert [each.id for each in run.scenarios] == ["good", "bad", "open", "worse"]
    assert [each.id for each in run.failed] == ["bad", "worse"]
    assert [each.id for each in run.undecided] == ["open"]
    assert (run.verdict, run.exit_code, run.folder) == ("failed", 1, FOLDER)
    assert run.id == run.results.run.id
    assert [gate.verdict for gate in run.gates] == ["failed", "inconclusive", "passed"]
    assert list(run.issues) == []


# ── the verdict as an exception ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "more", "decided", "verdict", "code", "kind"),
    [
        pytest.param({"a": [PASS]}, {}, {}, "passed", 0, None, id="passed"),
        pytest.param({"a": [FAIL]}, {}, {}, "failed", 1, VerdictError, id="failed"),
        pytest.param({"a": [UNSURE]}, {}, {}, "inconclusive", 3, InconclusiveError, id="undecided"),
        pytest.param({"a": [LOST]}, {}, {}, "inconclusive", 3, InconclusiveError, id="lost"),
        pytest.param(
            {"a": [UNSURE]},
            {"on_undecided": "neutral"},
            {},
            "inconclusive",
            0,
            None,
            id="neutral and undecided",
        ),
        pytest.param(
            {"a": [FAIL]}, {"on_undecided": "neutral"}, {}, "failed", 1, VerdictError, id="neutral and failed"
        ),
        pytest.param(
            {"a": [PASS]}, {"outcome": "interrupted"}, {}, "passed", 130, InconclusiveError, id="interrupted"
        ),
        pytest.param(
            {"a": [FAIL]},
            {"outcome": "interrupted"},
            {},
            "failed",
            130,
            InconclusiveError,
            id="failed so far",
        ),
        pytest.param(
            {"a": [PASS]},
            {},
            {"author_errors": ("checks.py is broken",), "exit_code": 2},
            "passed",
            2,
            InconclusiveError,
            id="a mistake of the author",
        ),
        pytest.param({"a": [PASS]}, {}, {"is_reported": True}, "reported", 0, None, id="reported"),
    ],
)
def test_the_exit_code_decides_what_is_raised(
    epochs: Any, more: Any, decided: Any, verdict: str, code: int, kind: type[VerdictError] | None
) -> None:
    run = run_of(epochs, decided=decided, **more)
    assert (run.verdict, run.exit_code) == (verdict, code)
    if kind is None:
        run.raise_for_verdict()
        return
    with pytest.raises(VerdictError) as raised:
        run.raise_for_verdict()
    assert type(raised.value) is kind
    assert (raised.value.report, raised.value.exit_code) == (run, code)
    assert all(fact in str(raised.value) for fact in (run.id, verdict, f"exit code {code}"))
    assert all(error in str(raised.value) for error in run.results.summary.author_errors)


def reasons(run: RunReport) -> list[str]:
    with pytest.raises(VerdictError) as raised:
        run.raise_for_verdict()
    return str(raised.value).split("\n")


def test_the_reasons_are_the_gates_and_the_scenarios_that_did_not_pass() -> None:
    lines = reasons(run_of(MIXED))
    gates = [line for line in lines if line.startswith("gate ")]
    assert len(gates) == 2
    assert [line.split()[1] for line in lines[1 + len(gates) : -1]] == ["bad", "worse", "open"]
    assert "output.contains: not there" in lines[1 + len(gates)]
    assert "s/bad.yaml:1" in lines[1 + len(gates)]
    assert "it raised" in lines[-2]
    assert "agenteval show" in lines[-1]
    assert not any("good" in line for line in lines)


def test_gates_that_hold_are_no_reasons() -> None:
    held, broken = (
        GateRow("held", 1, 1, "", "c.yaml:1", Verdict.PASSED),
        GateRow("broken", 1, 2, "", "c.yaml:2", Verdict.FAILED),
    )
    open_ = GateRow("open", None, 2, "", "c.yaml:3", Verdict.INCONCLUSIVE)
    lines = reasons(run_of({"a": [FAIL]}, decided={"gates": (held, broken, open_)}))
    assert [line.split()[1] for line in lines if line.startswith("gate ")] == ["broken:", "open:"]
    assert all(
        fact in line
        for line, facts in zip(
            lines[1:], (["1", "2", "failed", "c.yaml:2"], ["inconclusive", "c.yaml:3"]), strict=False
        )
        for fact in facts
    )


@pytest.mark.parametrize(("count", "named", "more"), [(4, 4, 0), (5, 5, 0), (6, 5, 1), (9, 5, 4)])
def test_only_some_scenarios_are_named(count: int, named: int, more: int) -> None:
    lines = reasons(run_of({f"s{n}": [FAIL] for n in range(count)}))
    assert sum(line.startswith("s/s") for line in lines) == named
    rest = [line.split()[2] for line in lines if line.startswith("… ")]
    assert rest == ([str(more)] if more else [])


def test_a_conversation_that_was_lost_says_how() -> None:
    played = lost(stop=StopReason.INFRASTRUCTURE)
    lines = reasons(run_of({"a": [replace(played, detail="nobody there")]}))
    assert any("nobody there" in line and "s/a.yaml" in line for line in lines)


# ── one scenario ─────────────────────────────────────────────────────────────────────────────────


def test_a_scenario_by_its_id() -> None:
    run = run_of(MIXED)
    assert run.scenario("bad").verdict == "failed"
    assert run.scenario("bad", "bot").verdict == "failed"
    with pytest.raises(KeyError, match=r"goood.*good"):
        run.scenario("goood")
    with pytest.raises(KeyError, match="zzzzzzzzzz"):
        run.scenario("zzzzzzzzzz")
    with pytest.raises(KeyError, match=r"good.*other"):
        run.scenario("good", "other")


def test_of_several_agents_one_is_named() -> None:
    run = run_of({"a": [PASS], "b": [FAIL]}, agents=("one", "two"))
    assert names(run.scenarios) == [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]
    assert run.scenario("b", "two").agent == "two"
    with pytest.raises(KeyError, match=r"one, two.*agent"):
        run.scenario("a")


# ── as text and as data ──────────────────────────────────────────────────────────────────────────


def test_it_is_rendered_as_reports_are() -> None:
    run = run_of(MIXED)
    assert json.loads(run.render("json")) == run.to_dict()
    assert str(run) == run.render()
    assert run.render("markdown") != run.render()
    assert run.render("html").startswith("<!doctype html>")
    assert run.render(width=60) != run.render() != run.render(verbose=True)
    with pytest.raises(AuthorError, match="junit"):
        run.render("junt")


@pytest.mark.parametrize(
    ("epochs", "parts", "absent"),
    [
        ({"a": [PASS]}, ["passed", "1 scenario", "0 failed"], "undecided"),
        ({"a": [FAIL], "b": [PASS]}, ["failed", "2 scenarios", "1 failed"], "undecided"),
        ({"a": [UNSURE], "b": [LOST]}, ["inconclusive", "0 failed", "2 undecided"], "passed"),
    ],
)
def test_it_is_named_in_a_line(epochs: Any, parts: list[str], absent: str) -> None:
    run = run_of(epochs)
    text = repr(run)
    assert run.id in text
    assert all(part in text for part in parts)
    assert absent not in text


def test_a_notebook_shows_a_row_for_each_scenario() -> None:
    html = run_of({"<b>": [PASS], "bad": [FAIL, PASS], "open": [UNSURE]})._repr_html_()
    assert html.count("<tr>") == 1 + 3
    assert "<b>&lt;b&gt;" not in html
    assert "&lt;b&gt;" in html
    cells = [row.split("<td") for row in html.split("<tr>")[2:]]
    assert [row[1][1] for row in cells] == ["✓", "✗", "?"]
    assert "<td>1/2</td>" in html
    assert "output.contains: not there" in html
    assert "it raised" in html
    assert "USD" not in html


def test_the_decision_is_the_one_given() -> None:
    """A report is made of a run and its decision; nothing is decided again."""
    key = SampleKey(scenario="a", agent="bot")
    run = run_of({"a": [PASS]}, decided={"verdict": Verdict.FAILED, "exit_code": 1})
    assert (run.verdict, run.exit_code) == ("failed", 1)
    assert run.scenario(key.scenario).verdict == "passed"
