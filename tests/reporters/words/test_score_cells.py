"""The cells of the table of scores: which columns there are, which figure each shows, and which is low."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.decision import Decision, GateRow
from agenteval.core.score import RULED_OUT, MetricSpec, Score, Verdict
from agenteval.reporters.words.score_cells import (
    NO_SCORE,
    NOT_APPLICABLE,
    NOT_JUDGED,
    SCRIPTED,
    UNCALIBRATED,
    ScoreCell,
    ScoreColumn,
    brief_score,
    is_failure_free,
    is_low,
    is_scored,
    judged_places,
    legend,
    scenario_cells,
    score_columns,
    score_text,
    shortened_names,
    threshold_marks,
    threshold_of,
)
from agenteval.verdict.report import Report
from tests.support.verdict_runs import (
    BEHAVIOR,
    GOAL,
    LABELS,
    SPECS,
    STARS,
    Played,
    judge_failed,
    only_sample,
    only_scenario,
    report_of,
    score,
    unclear,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
FRACTION = MetricSpec(name="fraction", scope="conversation", kind="mean", scale=(0.0, 1.0))
SHORT = MetricSpec(name="a-very-long-name-of-a-metric", short="long", scope="turn", kind="mean", scale=(1, 5))


def told(*items: Any, turns: Sequence[Sequence[Any]] = ((),), **more: Any) -> Report:
    """The report of one conversation with these scores."""
    return report_of({"a": [Played(items, turns=tuple(map(tuple, turns)))]}, **more)


# Columns


@pytest.mark.parametrize(
    ("judged", "items", "columns"),
    [
        ((), (), []),
        (("stars",), (), ["stars"]),
        (("zeta", "stars", "alpha", BEHAVIOR), (), [BEHAVIOR, "stars", "alpha", "zeta"]),
        ((), (score("stars", 1.0), score("own", 1.0)), ["stars", "own"]),
        ((), (judge_failed("stars"), judge_failed("own")), ["stars"]),
        (("own",), (judge_failed("own"),), ["own"]),
    ],
    ids=["none", "asked", "order", "judged", "broken", "broken and asked"],
)
def test_a_column_for_each_metric_that_was_asked_or_judged(
    judged: tuple[str, ...], items: tuple[Any, ...], columns: list[str]
) -> None:
    report = told(*items, run={"judged": judged})
    assert [column.name for column in score_columns(report)] == columns


@pytest.mark.parametrize(
    ("name", "items", "is_rate", "is_specified"),
    [
        ("stars", (), False, True),
        (BEHAVIOR, (), True, True),
        ("own", (), False, False),
        ("own", (score("own", 0.0),), False, False),
        ("own", (score("own", label="x"),), True, False),
    ],
)
def test_what_is_a_rate(name: str, items: tuple[Any, ...], is_rate: bool, is_specified: bool) -> None:
    (column,) = score_columns(told(*items, run={"judged": (name,)}))
    assert (column.is_rate, column.spec is not None) == (is_rate, is_specified)


def test_a_goal_is_a_rate_even_if_nothing_specifies_it() -> None:
    (column,) = score_columns(told(run={"judged": (GOAL,), "metrics": ()}))
    assert (column.is_rate, column.spec) == (True, None)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("x" * 16, "x" * 16),
        ("abcdefghijklmnopq", "abcdefgh…klmnopq"),
        ("tool_call_behavior_failure", "tool_cal…failure"),
        ("a\nb", "a b"),
        ("", "?"),
    ],
)
def test_a_long_name_lacks_its_middle(name: str, short: str) -> None:
    (column,) = score_columns(told(run={"judged": (name,)}))
    assert column.short == short
    assert len(column.short) <= 16


def test_only_names_that_were_shortened_are_explained() -> None:
    long = "abcdefghijklmnopq"
    report = told(run={"judged": (SHORT.name, "stars", "own", long), "metrics": (SHORT, STARS)})
    columns = score_columns(report)
    assert columns[0].short == "long"
    assert shortened_names(columns) == (("abcdefgh…klmnopq", long),)
    assert shortened_names(()) == ()


# Legend


@pytest.mark.parametrize(
    ("cell", "signs"),
    [
        (ScoreCell(NOT_JUDGED, verdict=F), []),
        (ScoreCell(NOT_APPLICABLE), []),
        (ScoreCell("4.0"), [UNCALIBRATED]),
        (ScoreCell("2/3"), [UNCALIBRATED, "2/3"]),
        (ScoreCell("4.0", verdict=P), [UNCALIBRATED, "✓ ✗ ?"]),
        (ScoreCell("4.0", missing=1), [UNCALIBRATED, NO_SCORE]),
        (ScoreCell("4.0", open=1), [UNCALIBRATED, "~1"]),
        (ScoreCell("4.0", scripted=True), [UNCALIBRATED, f"ˢ {SCRIPTED}"]),
    ],
)
def test_each_sign_that_occurs_is_explained(cell: ScoreCell, signs: list[str]) -> None:
    found = list(legend([cell]))
    assert len(found) == len(signs)
    assert all(text.startswith(sign) for text, sign in zip(found, signs, strict=True))
    assert list(legend([])) == []


@pytest.mark.parametrize(
    ("text", "expected"), [("4.0", True), ("", True), (NOT_JUDGED, False), (NOT_APPLICABLE, False)]
)
def test_what_a_judge_said(text: str, expected: bool) -> None:
    assert is_scored(ScoreCell(text)) is expected


# Cells


def gate(metric: str, verdict: Verdict, scenario: str = "a") -> GateRow:
    return GateRow(f"thresholds.{metric}", 1.0, 2.0, "", "", verdict, scenario, "bot", metric)


def test_the_worst_verdict_of_a_threshold_counts() -> None:
    rows = (gate("m", P), gate("m", F), gate("m", U), gate("n", P), gate("m", U, "b"), gate("", F))
    decision = Decision(F, 1, rows, {}, {})
    assert threshold_marks(decision) == {("a", "bot", "m"): F, ("a", "bot", "n"): P, ("b", "bot", "m"): U}


def cell(report: Report, name: str, verdict: Verdict | None = None) -> ScoreCell:
    columns = [column for column in score_columns(report) if column.name == name]
    marks = {("a", "bot", name): verdict} if verdict else {}
    (found,) = scenario_cells(only_scenario(report), columns, report, marks)
    return found


@pytest.mark.parametrize(
    ("values", "bound", "text"),
    [
        ([4.0], None, "4.0"),
        ([4.0, 3.0, 3.0], None, "3.3"),
        ([3.46], 3.5, "3.46"),
        ([3.44], 3.5, "3.4"),
        ([3.5], 3.5, "3.5"),
        ([3.496], 3.5, "3.496"),
        ([3.51], 3.5, "3.5"),
    ],
)
def test_a_mean_has_enough_digits_to_tell_it_from_its_bound(
    values: list[float], bound: float | None, text: str
) -> None:
    thresholds = {} if bound is None else {"thresholds": {"stars": bound}}
    report = told(turns=[[score("stars", value)] for value in values], **thresholds)
    assert cell(report, "stars").text == text
    assert threshold_of(only_scenario(report), "stars") == bound
    assert threshold_of(only_scenario(report), "other") is None


@pytest.mark.parametrize(("scale", "text"), [((0.0, 1.0), "0.75"), ((0.0, 1.1), "0.8"), ((1.0, 5.0), "0.8")])
def test_a_narrow_scale_has_two_digits(scale: tuple[float, float], text: str) -> None:
    spec = FRACTION.model_copy(update={"scale": scale})
    report = told(score("fraction", 0.75), run={"metrics": (spec,)})
    assert cell(report, "fraction").text == text


def test_a_metric_that_nothing_specifies_goes_from_one_to_five() -> None:
    assert cell(told(score("own", 3.25), score("own", 3.27)), "own").text == "3.3"


@pytest.mark.parametrize(
    ("items", "text", "missing", "open_"),
    [
        ([True, True, False], "2/3", 0, 0),
        ([True], "1/1", 0, 0),
        ([False], "0/1", 0, 0),
        ([True, None, "failed"], "1/1", 1, 1),
        ([None], "", 0, 1),
        (["failed", "failed"], "", 2, 0),
    ],
)
def test_a_rate_is_a_share(items: list[bool | str | None], text: str, missing: int, open_: int) -> None:
    made: dict[Any, Any] = {
        True: score(BEHAVIOR, label="no failure", ok=True),
        False: score(BEHAVIOR, label="x", ok=False),
        None: unclear(BEHAVIOR),
        "failed": judge_failed(BEHAVIOR),
    }
    report = told(turns=[[made[item]] for item in items], run={"metrics": (LABELS,)})
    assert cell(report, BEHAVIOR, F) == (text, False, missing, open_, F)


def test_scripted_is_said_of_its_own_metric() -> None:
    report = told(score("stars", 3.0, scripted=True), score("own", 3.0), score("stars", 3.0))
    columns = score_columns(report)
    cells = scenario_cells(only_scenario(report), columns, report, {})
    assert [(c.name, each.scripted) for c, each in zip(columns, cells, strict=True)] == [
        ("stars", True),
        ("own", False),
    ]


def test_a_metric_without_a_score_is_not_judged_or_does_not_apply() -> None:
    stars = told(run={"judged": ("stars",)})
    assert cell(stars, "stars") == ScoreCell(NOT_JUDGED)
    assert cell(stars, "stars", U) == ScoreCell(NOT_JUDGED, verdict=U)
    # A goal is asked for only of a scenario that has one.
    goal = told(run={"judged": (GOAL,)})
    assert cell(goal, GOAL).text == NOT_APPLICABLE
    with_goal = told(run={"judged": (GOAL,)}, scenarios={"a": {"goal": "Book"}})
    assert cell(with_goal, GOAL).text == NOT_JUDGED
    others = report_of({"a": [Played()], "b": [Played((score("own", 1.0),))]}, run={"judged": ()})
    columns = score_columns(others)
    first, second = (scenario_cells(each, columns, others, {}) for each in others.scenarios)
    assert [each.text for each in (*first, *second)] == [NOT_APPLICABLE, "1.0"]
    marked = scenario_cells(others.scenarios[0], columns, others, {("a", "bot", "own"): U})
    assert [each.text for each in marked] == [NOT_JUDGED]


# One conversation


def test_judged_turns_come_before_the_whole() -> None:
    one, broken = score("stars", 1.0), judge_failed("stars")
    sample = only_sample(told(one, turns=[[one], [], [broken]]))
    assert list(judged_places(sample)) == [(0, (one,), ()), (2, (), (broken,)), (None, (one,), ())]
    (place,) = judged_places(only_sample(told(broken)))
    assert (place.turn, place.scores, place.failures) == (None, (), (broken,))
    assert list(judged_places(only_sample(told()))) == []


@pytest.mark.parametrize(
    ("item", "text", "brief"),
    [
        (score("m", 4.0), "4", "4"),
        (score("m", 3.5), "3.5", "3.5"),
        (score("m"), "0", "0"),
        (score("m", 0.0), "0", "0"),
        (score("m", label="no failure"), "no failure", "ok"),
        (score("m", label="no failure", scripted=True), "no failureˢ", "okˢ"),
        (score("m", 1.0, label="reached"), "reached", "reached"),
        (score("m", 4.0, scripted=True), "4ˢ", "4ˢ"),
        (score("m", label="a\nb"), "a b", "a b"),
        (score("m", label="x" * 61), "x" * 59 + "…", "x" * 59 + "…"),
    ],
)
def test_a_score_in_words(item: Score, text: str, brief: str) -> None:
    assert (score_text(item), brief_score(item)) == (text, brief)


@pytest.mark.parametrize(
    ("item", "is_free"),
    [
        (score("m", label="no failure"), True),
        (score("m", label="no failure", ok=False), False),
        (score("m", label="followed", ok=True), True),
        (score("m", label="broken", ok=False), False),
        (score("m", label=RULED_OUT), False),
        (score("m", 5.0), False),
        (score("m", 1.0, label="reached", ok=True), False),
    ],
)
def test_which_label_reports_no_failure(item: Score, is_free: bool) -> None:
    assert bool(is_failure_free(item)) is is_free


MEAN, RATE = ScoreColumn("m", "m", is_rate=False), ScoreColumn("m", "m", is_rate=True)


@pytest.mark.parametrize(
    ("item", "column", "bound", "low"),
    [
        (score("m", label="no failure"), RATE, None, False),
        (score("m", label="broken", ok=False), None, None, True),
        (score("m", label="withdrawn", ok=None), RATE, None, False),
        (score("m", label="not clear", ok=None), None, None, False),
        (score("m", 2.9), None, None, True),
        (score("m", 3.0), None, None, False),
        (score("m", 3.0), MEAN, 3.0, False),
        (score("m", 3.0), MEAN, 3.1, True),
        (score("m", 2.0), MEAN, 1.0, True),
        (score("m", 1.0), RATE, None, False),
        (score("m", 0.99), RATE, None, True),
        (score("m", 0.0, label="missed"), RATE, None, True),
        (score("m", 0.5), ScoreColumn("m", "m", is_rate=False, spec=FRACTION), None, False),
        (score("m", 0.4), ScoreColumn("m", "m", is_rate=False, spec=FRACTION), None, True),
    ],
)
def test_which_score_is_low(item: Score, column: ScoreColumn | None, bound: float | None, low: bool) -> None:
    assert is_low(item, column, bound) is low


def test_the_specs_of_the_samples_are_in_the_order_of_the_columns() -> None:
    report = told(run={"judged": tuple(spec.name for spec in reversed(SPECS))})
    assert [column.spec for column in score_columns(report)] == list(SPECS)
