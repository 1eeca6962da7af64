"""The facts that several sections share: each is that of the function which it names, made once."""

from __future__ import annotations

from dataclasses import replace

from agenteval.core.trajectory import StopReason
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played, finding, report_of, score


def facts_of(epochs: dict[str, list[Played | None]]) -> Facts:
    report = report_of(epochs)
    return Facts(report, decide(report))


def test_the_facts_of_a_run() -> None:
    facts = facts_of({"good": [PASS], "open": [UNSURE], "bad": [FAIL, PASS], "never": [None]})
    assert facts.outcomes == {
        ("good", "bot"): "passed",
        ("open", "bot"): "inconclusive",
        ("bad", "bot"): "failed",
        ("never", "bot"): "inconclusive",
    }
    assert [each.scenario for each in facts.failures] == ["open", "bad", "never"]
    assert [group[0].scenario for group in facts.decisive] == ["bad", "open", "never"]
    assert [rows.rows[0][0].scenario for rows in facts.decisive_rows] == ["bad", "open"]
    assert facts.rates is None
    assert facts.failures is facts.failures


def test_the_columns_and_the_repeats() -> None:
    facts = facts_of({"a": [Played((score("own", 1.0),)), LOST]})
    assert [column.name for column in facts.columns] == ["stars", "own"]
    assert type(facts.repeats).__name__ == "Repeats"
    assert facts.repeats is facts.repeats


def test_only_a_log_without_scenarios_has_rates() -> None:
    recorded = Played((finding(),), turns=((),), stop=StopReason.RECORDED, detail="log.jsonl:1")
    facts = facts_of({"a": [recorded]})
    assert facts.rates is None
    rates = Facts(facts.report, replace(facts.decision, without_scenarios=True)).rates
    assert rates is not None
    assert rates.conversations == 1
