"""What the comparison of two runs says: its sections, their cells, and the line of the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Severity, Verdict
from agenteval.reporters.sections.comparison import VERDICT_WORDS, points, sections, verdict_line
from agenteval.reporters.sections.section import Section, StyledText, Tone
from agenteval.verdict.comparison import (
    AgentComparison,
    FailureChange,
    FailureState,
    MeanChange,
    RunComparison,
    ScenarioChange,
    ScenarioState,
    UncomparedScenario,
)
from agenteval.verdict.statistics import Change, Tally

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def scenario(
    id: str = "book", before: tuple[int, ...] = (9, 10, 10), after: tuple[int, ...] = (5, 10, 10), **more: Any
) -> ScenarioChange:
    fields = {"change": Change.REGRESSED, "low": -0.7, "high": -0.1, "p_drop": 0.01, "p_rise": 0.9, **more}
    return ScenarioChange(id=id, before=Tally(*before), after=Tally(*after), **fields)


def mean(before: float, after: float, **more: Any) -> MeanChange:
    return MeanChange(
        **{"name": "m", "before": before, "after": after, "change": after - before, "scenarios": 2, **more}
    )


def failure(state: FailureState = FailureState.KNOWN, **more: Any) -> FailureChange:
    fields = {
        "fingerprint": "0123456789ab",
        "scenario": "book",
        "what": "lies",
        "severity": Severity.HIGH,
        "met_before": 1,
        "known_before": 10,
        "met_after": 3,
        "known_after": 9,
        "sure": True,
    }
    return FailureChange(state=state, **{**fields, **more})


def apart(id: str, state: ScenarioState, before: Verdict | None = PASSED, **more: Any) -> UncomparedScenario:
    fields = {"agent": "bot", "after": PASSED, **more}
    return UncomparedScenario(id=id, state=state, before=before, **fields)


def agent(*scenarios: ScenarioChange, **more: Any) -> AgentComparison:
    fields = {
        "before": "bot",
        "after": "bot",
        "verdict": PASSED,
        "change": -0.2,
        "low": -0.35,
        "high": 0.01,
        "drop_above": 0.0,
        "drop_below": 0.0,
        "further_low": None,
        "further_high": None,
        "p_changed": None,
        "p_mcnemar": None,
        "dropped": (),
        "perhaps_dropped": (),
        "epochs_to_decide": None,
        "scores": (),
        "effort": (),
        "failures": (),
    }
    return AgentComparison(scenarios=scenarios, **{**fields, **more})


def compared(*agents: AgentComparison, **more: Any) -> RunComparison:
    verdict = more.pop("verdict", Verdict.worst([each.verdict for each in agents]))
    fields = {
        "before": "r1",
        "after": "r2",
        "margin": 0.1,
        "confidence": 0.95,
        "verdict": verdict,
        "exit_code": {PASSED: 0, FAILED: 1, UNDECIDED: 3}[verdict],
    }
    return RunComparison(agents=agents, **{**fields, **more})


def told(comparison: RunComparison) -> list[Section]:
    return list(sections(comparison))


def titles(comparison: RunComparison) -> list[str]:
    return [section.title for section in told(comparison)]


def find(comparison: RunComparison, beginning: str) -> Section:
    (found,) = [section for section in told(comparison) if section.title.startswith(beginning)]
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.0004, "0.0"),
        (-0.0004, "0.0"),
        (0.0006, "+0.1"),
        (-0.0006, "-0.1"),
        (0.25, "+25.0"),
        (-1.0, "-100.0"),
    ],
)
def test_points_have_a_sign_unless_they_are_zero(value: float, text: str) -> None:
    assert points(value) == text


def test_the_first_section_names_the_runs_and_empty_sections_are_left_out() -> None:
    assert titles(compared(agent())) == ["r2 against r1"]
    assert told(compared(agent()))[0].notes == ()
    whole = agent(scenario(), scores=(mean(1, 2),), effort=(mean(1, 2),), failures=(failure(),))
    comparison = compared(whole, apart=(apart("a", ScenarioState.NEW, None),))
    assert titles(comparison) == [
        "r2 against r1",
        "Scenarios: 1 regressed",
        "Scores",
        "Agent effort per conversation",
        "Failures",
        "Not compared: 1 new",
    ]
    assert [section.level for section in told(comparison)] == [2, 3, 3, 3, 3, 3]
    assert [section.columns for section in told(comparison)] == [
        (),
        ("", "scenario", "", "before", "after", "change", "95 %", "would decide"),
        ("", "before", "after", "change", "95 %", "scenarios"),
        ("", "before", "after", "change", "95 %", "scenarios"),
        ("failure", "", "scenario", "what", "before", "after"),
        ("scenario", "", "before", "after", "what differs"),
    ]
    for section in told(comparison):
        assert all(len(row) == len(section.columns) for row in section.rows)


def test_agents_have_a_heading_where_there_are_several() -> None:
    both = compared(agent(scenario()), agent(scenario(), before="old", after="new"))
    assert titles(both)[1:] == ["Agent bot", "Scenarios: 1 regressed", "Agent new", "Scenarios: 1 regressed"]


def test_an_agent_that_was_renamed_is_said() -> None:
    (note,) = told(compared(agent(before="old", after="new")))[0].notes
    assert isinstance(note, str)
    assert note.index("'old'") < note.index("'new'")


def test_kinds_of_change_are_counted_worst_first() -> None:
    changes = [Change.UNCHANGED, Change.IMPROVED, Change.UNDECIDED, Change.REGRESSED, Change.UNCHANGED]
    section = find(compared(agent(*(scenario(change=each) for each in changes))), "Scenarios")
    assert section.title == "Scenarios: 1 regressed, 1 not decided, 1 improved, 2 unchanged"
    assert section.named_by == 2
    quiet = StyledText("=", Tone.QUIET)
    assert [row[0] for row in section.rows] == [quiet, PASSED, UNDECIDED, FAILED, quiet]
    assert [row[2] for row in section.rows] == [str(each) for each in changes]


@pytest.mark.parametrize(
    ("before", "after", "cells"),
    [
        ((9, 10, 10), (5, 10, 10), ("9/10", "5/10", "-40.0")),
        ((5, 10, 10), (5, 10, 12), ("5/10", "5/10 (2 missing)", "0.0")),
        ((0, 0, 3), (5, 10, 10), ("0/0 (3 missing)", "5/10", "–")),
        ((5, 10, 10), (0, 0, 1), ("5/10", "0/0 (1 missing)", "–")),
        ((1, 2, 3), (4, 4, 4), ("1/2 (1 missing)", "4/4", "+50.0")),
    ],
)
def test_a_scenario_has_its_epochs_and_its_change(
    before: tuple[int, ...], after: tuple[int, ...], cells: tuple[str, ...]
) -> None:
    (row,) = find(compared(agent(scenario("book", before, after))), "Scenarios").rows
    assert row[1:] == ("book", "regressed", *cells, "-70.0 to -10.0", "")


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"epochs_to_decide": 1200}, ["1,200 epochs"]),
        ({"epochs_to_decide": None}, ["no number of epochs"]),
        ({"epochs_to_decide": 5, "before": (0, 0, 2)}, ["without errors"]),
        ({"epochs_to_decide": 5, "after": (0, 0, 2)}, ["without errors"]),
        ({"epochs_to_decide": 5, "change": Change.REGRESSED}, []),
        ({"epochs_to_decide": 5, "change": Change.UNCHANGED}, []),
    ],
)
def test_what_would_decide_a_scenario(changes: dict[str, Any], facts: list[str]) -> None:
    (row,) = find(compared(agent(scenario(**{"change": Change.UNDECIDED, **changes}))), "Scenarios").rows
    text = str(row[-1])
    assert all(fact in text for fact in facts)
    assert bool(text) is bool(facts)


@pytest.mark.parametrize(
    ("change", "facts"),
    [(-0.2, ["-20.0 points", "-35.0 to +1.0", "10"]), (None, ["unknown", "-35.0 to +1.0"])],
)
def test_the_mean_is_said_below_the_scenarios(change: float | None, facts: list[str]) -> None:
    (note,) = find(compared(agent(scenario(), change=change)), "Scenarios").notes
    assert isinstance(note, str)
    assert all(fact in note for fact in facts)


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        (mean(2, 3, low=0.5, high=1.5), ("m", "2", "3", "+1 (+50%)", "+0.5 to +1.5", "2")),
        (mean(2, 2), ("m", "2", "2", "0", "–", "2")),
        (mean(0, 3), ("m", "0", "3", "+3", "–", "2")),
        (mean(4, 3, low=-2.0, high=0.0), ("m", "4", "3", "-1 (-25%)", "-2 to +0", "2")),
        (mean(4.3333, 4.6667), ("m", "4.333", "4.667", "+0.333 (+8%)", "–", "2")),
        (
            mean(12_345.6, 11_346.0, low=-1999.6, high=999.6),
            ("m", "12,346", "11,346", "-1,000 (-8%)", "-2,000 to +1,000", "2"),
        ),
        (mean(9999.6, 0.5), ("m", "10,000", "0.5", "-9,999 (-100%)", "–", "2")),
    ],
)
def test_a_mean_and_its_change(change: MeanChange, cells: tuple[str, ...]) -> None:
    for kind in ("scores", "effort"):
        (row,) = find(
            compared(agent(**{kind: (change,)})), {"scores": "Scores", "effort": "Agent"}[kind]
        ).rows
        assert row == cells


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"state": FailureState.NEW}, "new"),
        ({"state": FailureState.NEW, "sure": False}, "new, or chance"),
        ({"state": FailureState.FIXED}, "fixed"),
        ({"state": FailureState.FIXED, "sure": False}, "fixed, or chance"),
        ({"state": FailureState.KNOWN, "sure": False}, "known"),
        ({"state": FailureState.UNKNOWN, "sure": False}, "not decided"),
        ({"state": FailureState.BACK, "sure": False, "seen_in": "r0"}, "back again (seen in r0)"),
    ],
)
def test_a_failure_has_its_state_and_its_epochs(changes: dict[str, Any], state: str) -> None:
    (row,) = find(compared(agent(failures=(failure(**changes),))), "Failures").rows
    assert row == ("0123456789ab", state, "book", "lies", "1 of 10", "3 of 9")


# ── what was not compared ────────────────────────────────────────────────────────────────────────

APART = (
    apart("b", ScenarioState.NEW, None),
    apart("c", ScenarioState.CHANGED, PASSED, after=UNDECIDED, parts=("goal", "turns")),
    apart("d", ScenarioState.REMOVED, FAILED, after=None),
    apart("e", ScenarioState.NOT_SELECTED, PASSED, after=None),
    apart("f", ScenarioState.NEW, None, after=FAILED),
)


def test_uncompared_scenarios_are_counted_and_listed_but_not_those_not_selected() -> None:
    section = find(compared(agent(), apart=APART), "Not compared")
    assert section.title == "Not compared: 1 changed, 2 new, 1 removed"
    assert section.rows == (
        ("b", "new", "–", "passed", ""),
        ("c", "changed", "passed", "not decided", "goal, turns"),
        ("d", "removed", "failed", "–", ""),
        ("f", "new", "–", "failed", ""),
    )


def test_only_scenarios_that_were_not_selected_make_no_section() -> None:
    assert titles(compared(agent(), apart=(APART[3],))) == ["r2 against r1"]


@pytest.mark.parametrize(
    ("agents", "rows", "names"),
    [
        (1, ("bot", "bot"), ["s0", "s1"]),
        (1, ("bot", "other"), ["s0 (bot)", "s1 (other)"]),
        (2, ("bot", "bot"), ["s0 (bot)", "s1 (bot)"]),
    ],
    ids=["one agent", "another agent among them", "two agents compared"],
)
def test_uncompared_scenarios_name_the_agent_where_it_could_be_several(
    agents: int, rows: tuple[str, ...], names: list[str]
) -> None:
    uncompared = tuple(apart(f"s{n}", ScenarioState.NEW, None, agent=each) for n, each in enumerate(rows))
    section = find(compared(*[agent()] * agents, apart=uncompared), "Not compared")
    assert [row[0] for row in section.rows] == names


def left_out(comparison: RunComparison) -> list[str]:
    notes = told(comparison)[0].notes
    assert all(isinstance(note, StyledText) and note.tone is Tone.OPEN for note in notes)
    return [note.text for note in notes if isinstance(note, StyledText)]


def test_what_was_left_out_is_said_by_run() -> None:
    only_after = [apart(f"n{n}", ScenarioState.NOT_SELECTED, None) for n in (1, 1, 2, 3, 4, 5, 6)]
    only_before = [apart("o1", ScenarioState.NOT_SELECTED, PASSED, after=None)]
    agents, first, second = left_out(
        compared(agent(), apart=(*only_after, *only_before), left_out=("agent x",))
    )
    assert agents == "omitted: agent x"
    assert all(fact in first for fact in ("6 scenarios", "run r1", "n1, n2, n3, n4, n5 and 1 more"))
    assert all(fact in second for fact in ("1 scenario ", "run r2", "o1"))
    assert left_out(compared(agent(), apart=(apart("x", ScenarioState.NEW, None),))) == []


# ── the line of the verdict ──────────────────────────────────────────────────────────────────────


def test_each_verdict_has_its_words() -> None:
    assert VERDICT_WORDS == {PASSED: "NO REGRESSION", FAILED: "REGRESSED", UNDECIDED: "NOT DECIDED"}


@pytest.mark.parametrize(
    ("agents", "more", "facts", "absent"),
    [
        ([agent()], {}, ["below 10 points", "(exit 0)"], ["bot:", "not compared"]),
        (
            [agent(verdict=FAILED, dropped=tuple("abcdefg"))],
            {},
            ["dropped: a, b, c, d, e and 2 more", "(exit 1)"],
            ["mean"],
        ),
        ([agent(verdict=FAILED)], {"margin": 0.025}, ["mean success rate", "2.5 points", "(exit 1)"], []),
        (
            [agent(verdict=UNDECIDED, perhaps_dropped=("a",), epochs_to_decide=1500)],
            {},
            ["possibly dropped: a;", "1,500 epochs", "(exit 3)"],
            ["no number"],
        ),
        ([agent(verdict=UNDECIDED)], {}, ["no number of epochs"], ["possibly"]),
        (
            [agent(), agent(after="new", verdict=FAILED, dropped=("x",))],
            {},
            ["new: ", "dropped: x"],
            ["bot: ", "below"],
        ),
        (
            [agent(verdict=FAILED, after="one"), agent(after="two", verdict=FAILED)],
            {},
            ["one: "],
            ["two: "],
        ),
        ([agent()], {"apart": APART}, ["not compared: 1 changed, 2 new, 1 removed"], ["no longer passing"]),
        (
            [agent()],
            {"apart": APART, "verdict": UNDECIDED},
            ["no longer passing", ": c (", "(exit 3)", "not compared"],
            ["below", "; ", ": c, "],
        ),
        (
            [agent(verdict=UNDECIDED, epochs_to_decide=7)],
            {"apart": APART, "verdict": UNDECIDED},
            ["no longer passing", "; about 7 epochs"],
            [],
        ),
    ],
    ids=[
        "passed",
        "scenarios dropped",
        "the mean fell",
        "undecided",
        "undecidable",
        "the deciding agent",
        "the first of them",
        "counts",
        "an edited scenario",
        "both",
    ],
)
def test_the_verdict_says_why(
    agents: list[AgentComparison], more: dict[str, Any], facts: list[str], absent: list[str]
) -> None:
    line = verdict_line(compared(*agents, **more))
    assert [fact for fact in facts if fact not in line] == []
    assert [fact for fact in absent if fact in line] == []
