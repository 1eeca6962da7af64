"""Agents compared in a report: cells, signs and sentences."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.sections import agents
from agenteval.reporters.sections.agents import sections
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.reference_comparison import ComparedAgent, ComparedNumber, ReferenceComparison
from tests.support.verdict_runs import FAIL, PASS, report_of

BETTER, WORSE = Verdict.PASSED, Verdict.FAILED


def agent(name: str = "new", *numbers: ComparedNumber, **more: Any) -> ComparedAgent:
    fields = {
        "scenarios": 3,
        "epochs": 10,
        "success": 0.75,
        "reference": 0.5,
        "change": 0.25,
        "low": -0.1,
        "high": 0.6,
        **more,
    }
    return ComparedAgent(agent=name, numbers=numbers, **fields)


def number(name: str, value: float = 150.0, **more: Any) -> ComparedNumber:
    fields = {"reference": 100.0, "ratio": 1.5, "low": 1.2, "high": 1.8, **more}
    return ComparedNumber(name=name, value=value, **fields)


def fewer(name: str) -> ComparedNumber:
    return number(name, 50.0, ratio=0.5, low=0.4, high=0.6)


def section(monkeypatch: pytest.MonkeyPatch, *compared: ComparedAgent, **more: Any) -> Section:
    report = report_of({"a": [PASS]})
    fields = {"reference": "old", "comparisons": 4, "confidence": 0.95, **more}
    comparison = ReferenceComparison(agents=compared, **fields)
    monkeypatch.setattr(agents, "compare_with_reference", lambda *_: comparison)
    (found,) = sections(Facts(report, decide(report)))
    return found


def notes(monkeypatch: pytest.MonkeyPatch, *compared: ComparedAgent, **more: Any) -> list[str]:
    return [str(note) for note in section(monkeypatch, *compared, **more).notes]


def test_a_run_with_one_agent_has_no_section() -> None:
    report = report_of({"a": [PASS]})
    assert list(sections(Facts(report, decide(report)))) == []


def test_a_run_with_two_agents_is_compared_with_the_first() -> None:
    report = report_of({"a": [PASS, FAIL], "b": [PASS]}, agents=("bot", "new"))
    (found,) = sections(Facts(report, decide(report)))
    assert found.columns == ("", "agent", "", "bot", "this agent", "change", "95 %")
    assert found.named_by == 3
    assert found.rows[0][:6] == ("", "new", "success", "75.0 %", "75.0 %", "0.0")
    assert "2 scenarios" in str(found.notes[-1])


@pytest.mark.parametrize(
    ("compared", "cells"),
    [
        (agent(), ("", "new", "success", "50.0 %", "75.0 %", "+25.0", "-10.0 to +60.0")),
        (
            agent(low=0.05),
            (BETTER, "new", "success", "50.0 %", "75.0 %", "+25.0", "+5.0 to +60.0"),
        ),
        (
            agent(success=0.25, change=-0.25, low=-0.4, high=-0.05),
            (WORSE, "new", "success", "50.0 %", "25.0 %", "-25.0", "-40.0 to -5.0"),
        ),
        (
            agent(success=None, change=None),
            ("", "new", "success", "50.0 %", "–", "–", "-10.0 to +60.0"),
        ),
        (
            agent(reference=None, change=None),
            ("", "new", "success", "–", "75.0 %", "–", "-10.0 to +60.0"),
        ),
    ],
    ids=["as good", "better", "worse", "its rate is unknown", "the reference's is"],
)
def test_the_row_of_an_agent(
    monkeypatch: pytest.MonkeyPatch, compared: ComparedAgent, cells: tuple[object, ...]
) -> None:
    assert section(monkeypatch, compared).rows == (cells,)


@pytest.mark.parametrize(
    ("measured", "cells"),
    [
        (number("tokens"), (WORSE, "", "tokens", "100", "150", "× 1.5", "× 1.2 to 1.8")),
        (fewer("steps"), (BETTER, "", "steps", "100", "50", "× 0.5", "× 0.4 to 0.6")),
        (number("latency_ms", low=0.9), ("", "", "latency", "100 ms", "150 ms", "× 1.5", "× 0.9 to 1.8")),
        (number("cost", 0.5), (WORSE, "", "cost", "100 USD", "0.5 USD", "× 1.5", "× 1.2 to 1.8")),
        (
            number("cost per success", 0.5, low=None, high=None),
            ("", "", "cost per success", "100 USD", "0.5 USD", "× 1.5", "–"),
        ),
        (number("tool_calls", ratio=None, low=None), ("", "", "tool_calls", "100", "150", "–", "–")),
        (number("tool_calls", high=None), ("", "", "tool_calls", "100", "150", "× 1.5", "–")),
    ],
)
def test_the_row_of_a_number_where_less_is_better(
    monkeypatch: pytest.MonkeyPatch, measured: ComparedNumber, cells: tuple[object, ...]
) -> None:
    assert section(monkeypatch, agent("new", measured)).rows[1:] == (cells,)


@pytest.mark.parametrize(
    ("compared", "facts", "absent"),
    [
        (agent(low=0.05), ["new is better", "more often"], ["worse", "old"]),
        (agent(high=-0.05, low=-0.5), ["new is worse", "less often"], ["better"]),
        (agent("new", fewer("cost"), low=0.05), ["more often and is cheaper"], []),
        (
            agent("new", number("cost"), fewer("steps"), number("tokens", low=0.9), low=0.05),
            ["more often, is more expensive and takes fewer steps"],
            ["tokens"],
        ),
        (agent(), ["too few epochs", "old", "new"], ["would decide", ";", "better", "worse"]),
        (agent(epochs_to_decide=1200), ["too few epochs", "1,200 epochs"], [";"]),
        (agent("new", number("latency_ms")), ["too few epochs", "; new is slower"], []),
    ],
)
def test_the_sentence_of_an_agent(
    monkeypatch: pytest.MonkeyPatch, compared: ComparedAgent, facts: list[str], absent: list[str]
) -> None:
    sentence, _ = notes(monkeypatch, compared)
    assert [fact for fact in facts if fact not in sentence] == []
    assert [fact for fact in absent if fact in sentence] == []


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("cost per success", "costs less", "costs more"),
        ("cost", "cheaper", "expensive"),
        ("latency_ms", "faster", "slower"),
        ("tokens", "fewer tokens", "more tokens"),
        ("steps", "fewer steps", "more steps"),
        ("tool_calls", "fewer tool calls", "more tool calls"),
    ],
)
def test_each_number_has_its_words(monkeypatch: pytest.MonkeyPatch, name: str, less: str, more: str) -> None:
    assert less in notes(monkeypatch, agent("new", fewer(name)))[0]
    assert more in notes(monkeypatch, agent("new", number(name)))[0]


def test_scenarios_in_which_it_is_better_or_worse_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    several = tuple("abcdefg")
    _, better, worse, _ = notes(monkeypatch, agent(better_in=several, worse_in=("x",)))
    assert "better in a, b, c, d, e and 2 more" in better
    assert worse.endswith("worse in x")


@pytest.mark.parametrize(
    ("comparisons", "scenarios", "facts"),
    [(1, 1, ["1 comparison ", "1 scenario,", "95 %"]), (12, 3, ["12 comparisons", "3 scenarios", "95 %"])],
)
def test_the_last_line_says_over_what(
    monkeypatch: pytest.MonkeyPatch, comparisons: int, scenarios: int, facts: list[str]
) -> None:
    both = (agent(scenarios=scenarios), agent("other", scenarios=scenarios))
    *sentences, last = notes(monkeypatch, *both, comparisons=comparisons)
    assert len(sentences) == 2
    assert [fact for fact in facts if fact not in last] == []
