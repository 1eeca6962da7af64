"""What the history of a suite says: its rows, its notes, and what is left out."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agenteval.core.sample_report import Spread
from agenteval.core.score import Verdict
from agenteval.reporters.sections.history import left_out_lines, sections
from agenteval.reporters.sections.section import Item, Section
from agenteval.verdict.history import HistoryPoint, LeftOutReason, LeftOutRuns, MetricMean
from agenteval.verdict.statistics import Interval, Tally
from tests.support.histories import figures, history, point


def runs(*points: HistoryPoint, **more: Any) -> Section:
    """The section with a row for each run."""
    return next(sections(history(*points, **more)))


def row(each: HistoryPoint) -> dict[str, str]:
    section = runs(each)
    (cells,) = section.rows
    return dict(zip(section.columns[1:], map(str, cells[1:]), strict=True))


def notes(*points: HistoryPoint, **more: Any) -> list[str]:
    return list(map(str, runs(*points, **more).notes))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_has_the_figures_of_the_run() -> None:
    spread = Spread(mean=1234.4, p50=1000.0, p95=2345.6, n=20)
    found = row(point(1, figures(latency_ms=spread), cost=0.5))
    assert found == {
        "run": "aaaaa1",
        "started (UTC)": "2026-11-23 19:01",
        "commit": "01234567",
        "passed": "3/4",
        "pass rate": "75.0 %",
        "95 %": "46.8 to 91.1",
        "latency ms": "1,234 (p95 2,346)",
        "cost USD": "0.5000",
        "": "",
    }


@pytest.mark.parametrize(
    ("verdict", "mark"),
    [("passed", Verdict.PASSED), ("failed", Verdict.FAILED), ("inconclusive", Verdict.INCONCLUSIVE)],
)
def test_a_row_begins_with_its_verdict(verdict: str, mark: Verdict) -> None:
    assert [cells[0] for cells in runs(point(verdict=verdict)).rows] == [mark]


def test_what_is_not_known_is_no_zero() -> None:
    nothing = figures(tally=Tally(0, 0, 4), interval=Interval(0, 1), passed=0, failed=0, inconclusive=4)
    found = row(point(1, nothing, commit="", started_at="?"))
    unknown = ("started (UTC)", "commit", "pass rate", "95 %", "latency ms", "cost USD")
    assert {found[name] for name in unknown} == {"–"}
    assert (found["passed"], found[""]) == ("0/4", "4 undecided")


@pytest.mark.parametrize(
    ("cost", "estimated", "text"),
    [(0.0, False, "0"), (0.0, True, "0"), (0.5, False, "0.5000"), (0.5, True, "≈0.5000"), (None, True, "–")],
)
def test_an_estimated_cost_is_marked(cost: float | None, estimated: bool, text: str) -> None:
    assert row(point(cost=cost, estimated=estimated))["cost USD"] == text


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be set")
def test_times_are_those_of_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-9")
        time.tzset()
        assert row(point())["started (UTC)"] == "2026-11-23 19:01"
    time.tzset()


@pytest.mark.parametrize(("n", "word"), [(19, "max"), (20, "p95")])
def test_of_few_conversations_the_highest_is_shown(n: int, word: str) -> None:
    assert row(point(1, figures(latency_ms=Spread(2.0, 2.0, 3.0, n))))["latency ms"] == f"2 ({word} 3)"


def test_changed_files_are_marked_and_explained() -> None:
    assert row(point(dirty=True))["commit"] == "01234567+"
    assert any(note.startswith("+: ") for note in notes(point(dirty=True)))
    assert not any(note.startswith("+: ") for note in notes(point()))


@pytest.mark.parametrize(
    ("more", "remark"),
    [
        ({"outcome": "budget"}, "incomplete (budget)"),
        ({"outcome": None}, "incomplete (cut off)"),
        ({"exit_code": 2}, "author error"),
        ({"exit_code": 2, "outcome": "fail_fast"}, "incomplete (fail_fast), author error"),
        ({"exit_code": 3}, ""),
    ],
)
def test_remarks(more: dict[str, Any], remark: str) -> None:
    assert row(point(**more))[""] == remark


def test_scripted_runs_are_marked_unless_all_are() -> None:
    def remarks(*scripted: bool) -> list[str]:
        section = runs(*(point(n, scripted=each) for n, each in enumerate(scripted)))
        return [str(cells[-1]) for cells in section.rows]

    assert remarks(True, True) == ["", ""]
    assert remarks(True, False) == ["scripted", ""]
    assert any("scripted" in note for note in notes(point(1, scripted=True)))
    assert not any("scripted" in note for note in notes(point(1)))


def test_the_runs_of_several_agents_have_a_row_for_each() -> None:
    first = point(1, figures("x"), figures("y", passed=0, inconclusive=2), cost=0.5, changes=("so",))
    section = runs(first, point(2, figures("y")))
    assert section.columns[:3] == ("", "run", "agent")
    assert section.named_by == 3
    assert [[str(cell) for cell in cells[:3]] for cells in section.rows] == [
        ["passed", "aaaaa1", "x"], ["", "", "y"], ["passed", "aaaaa2", "y"],
    ]  # fmt: skip
    of_run = [tuple(map(str, (cells[3], cells[4], cells[9], cells[10]))) for cells in section.rows]
    assert of_run[:2] == [("2026-11-23 19:01", "01234567", "0.5000", "changed"), ("", "", "", "2 undecided")]


def test_an_agent_of_one_run_only_is_named_too() -> None:
    assert "agent" in runs(point(1, figures("x")), point(2, figures("y"))).columns
    assert "agent" not in runs(point(1, figures("x")), point(2, figures("x"))).columns


# ── title and notes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("points", "more", "title"),
    [
        (1, {}, "History: 1 run"),
        (2, {"config": "agenteval.yaml"}, "History: 2 runs of agenteval.yaml"),
        (2, {"config": "a.yaml", "profile": "ci"}, "History: 2 runs of a.yaml, profile ci"),
    ],
)
def test_the_title_names_the_suite(points: int, more: dict[str, str], title: str) -> None:
    assert runs(*(point(n) for n in range(points)), **more).title == title


def test_a_change_is_listed_below_the_two_runs() -> None:
    section = runs(point(1), point(2, changes=("the gates differ", "1 scenario added: x")), point(3))
    assert [str(cells[-1]) for cells in section.rows] == ["", "changed", ""]
    (item,) = (note for note in section.notes if isinstance(note, Item))
    head, *below = str(item).splitlines()
    assert head.index("aaaaa1") < head.index("aaaaa2")
    assert [line.strip() for line in below] == ["the gates differ", "1 scenario added: x"]


def test_only_several_runs_can_be_compared() -> None:
    assert [any("agenteval diff" in note for note in notes(*map(point, range(n)))) for n in (1, 2)] == [
        False, True,
    ]  # fmt: skip


LEFT_OUT = (
    LeftOutRuns(LeftOutReason.SELECTION, ("r1", "r2")),
    LeftOutRuns(LeftOutReason.UNREADABLE, ("r3",), ("a", "b", "c", "d")),
)


def test_what_is_left_out_is_counted_with_its_reason() -> None:
    lines = list(left_out_lines(history(left_out=LEFT_OUT)))
    assert lines == ["2 runs: a selection of the scenarios", "1 run: unreadable (a, b, c and 1 more)"]
    assert [note for note in notes(left_out=LEFT_OUT) if "left out" in note] == [
        f"left out: {line}" for line in lines
    ]


@pytest.mark.parametrize(("older", "fact"), [(0, None), (1, "1 older run "), (7, "7 older runs ")])
def test_older_runs_are_counted(older: int, fact: str | None) -> None:
    found = [note for note in notes(older=older) if "older" in note]
    assert [fact in note and "--history" in note for note in found if fact] == [True] * len(found)
    assert bool(found) is (fact is not None)


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def test_without_scores_there_is_one_section() -> None:
    assert len(list(sections(history()))) == 1


def test_scores_have_a_column_for_each_metric() -> None:
    first = figures(means=(MetricMean("helpfulness", "help", 4.256, 12),))
    second = figures(means=(MetricMean("tone", "", 0.5, 3), MetricMean("helpfulness", "help", 4.0, 12)))
    _, scores = sections(history(point(1, first), point(2, second)))
    assert scores.columns == ("run", "help", "tone")
    assert scores.numbers == ("help", "tone")
    assert scores.rows == (("aaaaa1", "4.26", "–"), ("aaaaa2", "4.00", "0.50 (3)"))


def test_scores_of_several_agents() -> None:
    x, y = (figures(name, means=(MetricMean("m", "", 1.0, 12),)) for name in "xy")
    _, scores = sections(history(point(1, x, y)))
    assert scores.rows == (("aaaaa1", "x", "1.00"), ("", "y", "1.00"))
    assert scores.named_by == 2


def test_hostile_names_stay_on_their_line() -> None:
    text = "a\nb\x1b[31m" + "c" * 500
    each = point(1, figures(text), figures("y"), run_id=text, outcome=text)
    section = runs(each, config=text, profile=text)
    shown = [section.title, *(str(cell) for cells in section.rows for cell in cells)]
    assert all("\n" not in cell and "\x1b" not in cell and len(cell) < 150 for cell in shown)
