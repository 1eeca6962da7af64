"""Charts: where values are drawn, what the table and the description say, and that no input breaks them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.score import Verdict
from agenteval.reporters.html.charts import (
    BarRow,
    EpochRow,
    IntervalRow,
    ScatterPoint,
    bar_chart,
    epoch_grid,
    histogram,
    interval_chart,
    line_chart,
    scatter,
)
from agenteval.reporters.html.drawing import Axis, ChartText, Reading
from tests.support.drawings import Drawn

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
SHARE = Axis("pass rate", "%", (0.0, 1.0))
MS = Axis("latency", "ms", (0.0,))
WORDS = ChartText("c", "A title", "A sentence.", "scenario")
HOSTILE = '"/></svg><script>alert(1)</script>]]>&amp;\x1b[31m'


def xs(drawn: Drawn, name: str) -> list[float]:
    return [x for x, _ in drawn.starts(name)]


# Intervals


def interval(*rows: IntervalRow, axis: Axis = SHARE) -> Drawn:
    return Drawn(interval_chart(WORDS, rows, axis))


def test_a_value_twice_as_large_is_twice_as_far() -> None:
    values = (0.0, 0.25, 0.5, 1.0)
    drawn = interval(*(IntervalRow(str(value), Reading(value)) for value in values))
    assert xs(drawn, "mark") == [8, 104, 200, 392]
    ys = [y for _, y in drawn.starts("mark")]
    assert ys == [24, 64, 104, 144]


def test_the_whisker_is_the_interval_and_the_line_the_bound() -> None:
    drawn = interval(IntervalRow("a", Reading(0.5, 0.25, 1.0), bound=0.75), IntervalRow("b", Reading(0.5)))
    assert drawn.paths("whisker") == ["M104 20v8m0-4H392m0-4v8"]
    assert drawn.starts("bound") == [(296, 16)]
    assert "bound" in drawn.note


def test_a_verdict_has_a_shape_and_not_only_a_color() -> None:
    rows = [IntervalRow(str(verdict), Reading(0.5), verdict=verdict) for verdict in (P, F, U, None)]
    drawn = interval(*rows)
    paths = [drawn.paths(name)[0] for name in ("passed", "failed", "open", "mark")]
    assert len({re.sub(r"^M\S+ \d+", "", each) for each in paths}) == 4
    assert "✕ failed" in drawn.note
    assert "◆" in drawn.note
    assert "◆" not in interval(rows[0]).note
    assert "✕" not in interval(rows[3]).note
    assert drawn.column("verdict") == ["passed", "failed", "inconclusive", ""]


def test_the_table_of_intervals_has_every_value() -> None:
    rows = [
        IntervalRow("a", Reading(0.5, 0.25, 0.75), "2 of 4", link="#a", bound=0.9),
        IntervalRow("b", Reading(nan), "0 of 0"),
    ]
    drawn = interval(*rows)
    assert drawn.table == [
        ["scenario", "value", "interval", "based on", "bound"],
        ["a", "50.0 %", "25.0 % to 75.0 %", "2 of 4", "90.0 %"],
        ["b", "–", "–", "0 of 0", "–"],
    ]
    assert "a: 50.0 % (25.0 % to 75.0 %) · 2 of 4" in drawn.tooltips
    assert "50.0 % · 2 of 4" in drawn.texts
    links = [each.attrib for each in drawn.root.iter("a")]
    assert links == [{"href": "#a", "tabindex": "-1"}, {"href": "#a"}]
    assert "1 of 2 scenarios" in drawn.note


def test_scores_have_their_own_scale_and_a_value_outside_extends_it() -> None:
    stars = Axis("score", "", (1.0, 5.0))
    assert xs(interval(IntervalRow("a", Reading(3.0)), axis=stars), "mark") == [200]
    assert xs(interval(IntervalRow("a", Reading(9.0)), axis=stars), "mark") == [392 - 384 / 10]


def test_the_description_names_the_ends() -> None:
    drawn = interval(
        *(IntervalRow(name, Reading(value)) for name, value in (("a", 0.5), ("b", 1.0), ("c", 0.1)))
    )
    assert drawn.description == "3 scenarios. Highest: b (100.0 %). Lowest: c (10.0 %)."


# Bars


def test_a_bar_begins_at_zero() -> None:
    rows = [BarRow("a", 1.0, "1 USD"), BarRow("b", 2.0, "2 USD"), BarRow("c", None, "unknown")]
    drawn = Drawn(bar_chart(WORDS, rows))
    assert drawn.paths("bar") == ["M0 20H200v11H0z", "M0 60H400v11H0z"]
    assert drawn.table == [["scenario", "value"], ["a", "1 USD"], ["b", "2 USD"], ["c", "unknown"]]
    assert drawn.description == "2 scenarios. Highest: b (2 USD). Lowest: a (1 USD)."
    assert "2 of 3" in drawn.note


def test_a_negative_bar_goes_to_the_left() -> None:
    drawn = Drawn(bar_chart(WORDS, [BarRow("a", -1, "-1"), BarRow("b", 1, "1")]))
    assert drawn.paths("bar") == ["M200 20H0v11H200z", "M200 60H400v11H200z"]


# Epochs


def epochs(*rows: EpochRow) -> Drawn:
    return Drawn(epoch_grid(WORDS, rows))


def test_mixed_outcomes_come_first_and_a_single_epoch_is_omitted() -> None:
    rows = [
        EpochRow("fine", [P, P]),
        EpochRow("once", [P]),
        EpochRow("open", [P, U]),
        EpochRow("flaky", [F, P]),
    ]
    drawn = epochs(*rows)
    assert drawn.column("scenario") == ["flaky", "fine", "open"]
    assert drawn.description == "3 scenarios with several epochs, 1 with different outcomes."
    assert epoch_grid(WORDS, rows[1:2]) == epoch_grid(WORDS, []) == ""


def test_each_outcome_is_in_the_place_of_its_epoch() -> None:
    drawn = epochs(EpochRow("a", [P, F, U, P, F]))
    places = {name: [round((x - 6) / 18) for x in xs(drawn, name)] for name in ("passed", "failed", "open")}
    assert places == {"passed": [0, 3], "failed": [1, 4], "open": [2]}
    assert drawn.table[1] == ["a", "2 of 5 passed", "2, 5", "3"]


def test_many_epochs_are_bounded() -> None:
    rows = [EpochRow(f"s{n}", [P, F] * 5000) for n in range(40)]
    drawn = epochs(*rows)
    assert max(xs(drawn, "passed")) < 370
    assert "+9,968" in drawn.texts
    assert drawn.table[1][1:3] == [
        "5,000 of 10,000 passed",
        ", ".join(map(str, range(2, 41, 2))) + " and 4,980 more",
    ]
    assert "15 of 40" in drawn.note
    assert len(drawn.markup) < 21_000


# Distributions


def distribution(values: Sequence[float | None], axis: Axis = MS) -> Drawn:
    return Drawn(histogram(WORDS, values, axis))


def test_a_bar_is_as_high_as_its_number_of_values() -> None:
    drawn = distribution([5] * 10 + [25] * 20 + [97, 100], MS)
    bars = [[float(each) for each in re.findall(r"[\d.]+", path)] for path in drawn.paths("bar")]
    heights = {left: bottom - top for left, bottom, top, _, _ in bars}
    assert [height for height in heights.values() if height] == pytest.approx([57, 114, 11.4], abs=0.06)
    assert drawn.paths("bar")[0].startswith("M1 180V")


@pytest.mark.parametrize(
    ("values", "axis", "counted"),
    [
        ([1, 4, 5, 5], Axis("", "", (1, 5)), {"1": "1", "2": "0", "3": "0", "4": "1", "5": "2"}),
        ([5.0, 5.0], Axis("", "", (1, 5)), {"1": "0", "2": "0", "3": "0", "4": "0", "5": "2"}),
        ([0, 9.5, 50], MS, {"0 ms to 5 ms": "1", "5 ms to 10 ms": "1", "45 ms to 50 ms": "1"}),
    ],
)
def test_scores_are_counted_at_round_numbers_and_others_between_them(
    values: list[float], axis: Axis, counted: dict[str, str]
) -> None:
    drawn = distribution(values, axis)
    table = {row[0]: row[1] for row in drawn.table[1:]}
    assert {name: table[name] for name in counted} == counted
    bins = [int(row[1]) for row in drawn.table[1:-5]]
    assert sum(bins) == len(values)


def test_the_median_and_the_95th_percentile_are_marked() -> None:
    values = [float(n) for n in range(1, 101)]
    drawn = distribution([*values, None, nan])
    (median, _), (p95, _) = drawn.starts("bound")
    assert (median, p95) == (200, 380)
    assert {"▼ median 50 ms", "▽ 95th percentile 95 ms", "latency, n = 100"} <= {*drawn.texts}
    table = {row[0]: row[1] for row in drawn.table}
    assert (table["median"], table["95th percentile"], table["mean"]) == ("50 ms", "95 ms", "50.5 ms")
    assert (table["lowest"], table["highest"]) == ("1 ms", "100 ms")
    assert "highest 100 ms" in drawn.description
    assert drawn.note == "2 scenarios without a value"


def test_of_few_values_the_maximum_is_marked() -> None:
    drawn = distribution([10.0, 20.0, 30.0])
    assert "▽ maximum 30 ms" in drawn.texts
    assert "95th" not in drawn.markup


def test_marks_of_the_same_value_are_above_each_other() -> None:
    (x, y), (other_x, other_y) = distribution([5.0, 5.0], Axis("", "", (1, 5))).starts("bound")
    assert x == other_x
    assert y - other_y >= 10


# Two axes

COST = Axis("cost", "USD", (0.0,))


def points(*each: ScatterPoint) -> Drawn:
    return Drawn(scatter(WORDS, each, COST, SHARE))


def test_points_are_placed_by_both_values() -> None:
    at = [ScatterPoint(f"p{x}", Reading(x), Reading(y)) for x, y in ((0, 0), (5, 0.5), (10, 1))]
    drawn = points(*at)
    assert drawn.starts("mark") == [(64, 220), (227, 124), (390, 28)]
    assert {"p0", "p5", "p10"} <= {*drawn.texts}
    assert drawn.table[1:] == [
        ["p0", "0.0 %", "0 USD"],
        ["p5", "50.0 %", "5 USD"],
        ["p10", "100.0 %", "10 USD"],
    ]


def test_intervals_of_a_point_are_whiskers() -> None:
    drawn = points(ScatterPoint("a", Reading(5, 0, 10), Reading(0.5, 0.25, 0.75)))
    assert drawn.paths("whisker") == ["M64 124H390M227 172V76"]
    assert "a: 50.0 % (25.0 % to 75.0 %); 5 USD (0 USD to 10 USD)" in drawn.tooltips


def test_labels_of_points_do_not_overlap() -> None:
    same = [ScatterPoint(f"agent number {n}", Reading(5 + n / 100), Reading(0.5)) for n in range(20)]
    drawn = points(*same)
    shown = [each for each in drawn.svg.iter("text") if (each.text or "").startswith("agent")]
    ys = [float(each.attrib["y"]) for each in shown]
    assert 2 <= len(shown) < 20
    xs_of = {(float(each.attrib["x"]), y) for each, y in zip(shown, ys, strict=True)}
    assert all(abs(y - v) > 13 or abs(x - u) > 60 for x, y in xs_of for u, v in xs_of if (x, y) != (u, v))
    assert len(drawn.table) == 21


RUNS = [("Mon", "aaa1111"), ("Tue", "bbb2222"), ("Wed", "ccc3333")]


def lines(**each: Sequence[Reading | None]) -> Drawn:
    return Drawn(line_chart(WORDS, RUNS, each, SHARE))


def test_a_line_goes_through_its_values() -> None:
    drawn = lines(bot=[Reading(0.0), Reading(0.5), Reading(1.0)])
    (d,) = drawn.paths("line")
    assert d == "M72 220L220 124L368 28"
    assert drawn.tooltips == ["Mon, aaa1111: 0.0 %", "Tue, bbb2222: 50.0 %", "Wed, ccc3333: 100.0 %"]
    assert {"Mon", "aaa1111", "Wed", "ccc3333"} <= {*drawn.texts}
    assert "bot" not in drawn.texts
    assert drawn.description == "bot: up from 0.0 % to 100.0 % over 3 runs, lowest 0.0 %, highest 100.0 %."
    assert drawn.table == [
        ["run", "commit", "bot"], ["Wed", "ccc3333", "100.0 %"], ["Tue", "bbb2222", "50.0 %"],
        ["Mon", "aaa1111", "0.0 %"],
    ]  # fmt: skip


def test_a_gap_interrupts_the_line() -> None:
    drawn = lines(bot=[Reading(0.5, 0.25, 0.75), None, Reading(1.0)])
    assert drawn.paths("line") == ["M72 124M368 28"]
    assert drawn.paths("whisker") == ["M72 172V76"]
    assert len(drawn.tooltips) == 2
    assert drawn.column("bot") == ["100.0 %", "–", "50.0 % (25.0 % to 75.0 %)"]


def test_lines_differ_in_dash_and_marker_and_are_named_at_their_ends() -> None:
    names = ("one", "two", "three", "four", "five")
    drawn = lines(**{name: [Reading(0.5)] * 3 for name in names})
    dashes = [
        each.attrib.get("stroke-dasharray")
        for each in drawn.svg.iter("path")
        if "line" in each.attrib["class"]
    ]
    assert len(set(dashes)) == 4
    markers = {re.sub(r"^M[\d.]+ [\d.]+", "", d) for d in drawn.paths("marker")}
    assert len(markers) == 4
    ends = [each for each in drawn.svg.iter("text") if each.text in names]
    ys = [float(each.attrib["y"]) for each in ends]
    assert [each.text for each in ends] == sorted(names[:4])
    assert all(low - high >= 13 for high, low in pairwise(ys))
    assert drawn.note == "4 of 5 lines are drawn"
    assert drawn.table[0] == ["run", "commit", *names]


@pytest.mark.parametrize(("agents", "drawn_runs"), [(1, 30), (2, 30), (3, 18), (6, 18)])
def test_the_latest_runs_are_drawn(agents: int, drawn_runs: int) -> None:
    runs = [(f"2026-11-{n}", f"{n:07x}") for n in range(150)]
    line = [Reading(n / 150, n / 200, n / 140) for n in range(150)]
    markup = line_chart(WORDS, runs, {f"an agent {n}": line for n in range(agents)}, SHARE)
    drawn = Drawn(markup)
    assert len(drawn.paths("marker")) == drawn_runs * min(agents, 4)
    assert f"{drawn_runs} of 150 runs" in drawn.note
    assert "2026-11-149" in drawn.table[1][0]
    assert len(drawn.table) == 101
    assert markup.index("</svg>") < 16_000


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.5, 0.5], "unchanged at 50.0 %"),
        ([0.5, 0.25], "down from 50.0 % to 25.0 %"),
        ([0.5], "unchanged at 50.0 %"),
    ],
)
def test_the_trend_in_words(values: list[float], text: str) -> None:
    readings = [*map(Reading, values), *[None] * (3 - len(values))]
    assert text in lines(bot=readings).description


# Anything

Chart = Callable[[Sequence[float]], str]
CHARTS: dict[str, Chart] = {
    "interval": lambda v: interval_chart(
        WORDS, [IntervalRow(str(n), Reading(x, -x, x), bound=x) for n, x in enumerate(v)], Axis("", "ms")
    ),
    "share": lambda v: interval_chart(WORDS, [IntervalRow("a", Reading(x, 0, 1)) for x in v], SHARE),
    "bars": lambda v: bar_chart(WORDS, [BarRow("a", x, "text") for x in v]),
    "histogram": lambda v: histogram(WORDS, v, Axis("", "ms")),
    "scores": lambda v: histogram(WORDS, v, Axis("", "", (1.0, 5.0))),
    "scatter": lambda v: scatter(
        WORDS, [ScatterPoint("a", Reading(x, x, -x), Reading(x, None, x)) for x in v], COST, Axis("y")
    ),
    "line": lambda v: line_chart(
        WORDS, [("run", "abc")] * len(v), {"a": [Reading(x, 0, x) for x in v], "b": [None] * len(v)}, COST
    ),
}
WEIRD = [
    [nan], [inf, -inf], [nan, 1.0], [0.0], [0.0, 0.0], [5.0], [5.0] * 3, [-3.0, -1.0], [-1.0], [1e300, 1.0],
    [1e14, 1e14 + 1], [-9e14, 9e14], [1e-9, 2e-9], [1e-9], [5e-324, 1.0], [5e-324], [1.0, 1.0 + 2e-16],
    [1e-9, 9e14], [0.1 + 0.2, 0.3],
]  # fmt: skip


def assert_sound(markup: str, values: Sequence[float]) -> None:
    if not any(abs(value) < 1e15 for value in values):
        assert markup == ""
        return
    drawn = Drawn(markup)
    width, height = drawn.size
    assert all(-20 <= number <= max(width, height) for number in drawn.numbers())
    coordinates = [each.attrib.get(key, "") for each in drawn.svg.iter() for key in ("d", "x", "y")]
    assert not re.search("nan|inf|e-", " ".join(coordinates))
    assert not re.search(r"\b(nan|inf)\b", " ".join(chain(drawn.texts, *drawn.table)))


@pytest.mark.parametrize("values", WEIRD, ids=str)
@pytest.mark.parametrize("name", CHARTS)
def test_weird_numbers(name: str, values: list[float]) -> None:
    assert_sound(CHARTS[name](values), values)


@pytest.mark.parametrize("name", CHARTS)
def test_no_number_is_no_chart(name: str) -> None:
    assert CHARTS[name]([]) == ""


@pytest.mark.parametrize("name", CHARTS)
@given(st.lists(st.floats() | st.integers(-5, 5), max_size=12))
def test_any_numbers(name: str, values: list[float]) -> None:
    assert_sound(CHARTS[name](values), values)


def labelled(text: str, count: int = 1) -> list[str]:
    words = ChartText("c", text, text, "row")
    axis = Axis(text, "ms")
    return [
        interval_chart(words, [IntervalRow(text, Reading(1, 0, 2), text, P, "#x", 1)] * count, axis),
        bar_chart(words, [BarRow(text, 1, text)] * count),
        epoch_grid(words, [EpochRow(text, [P, F, U], "#x")] * count),
        histogram(words, [1.0, 2.5] * count, axis),
        scatter(words, [ScatterPoint(text, Reading(1), Reading(1))] * count, axis, axis),
        line_chart(words, [(text, text)] * count, {text: [Reading(1)] * count, "b": [None] * count}, axis),
    ]


def test_hostile_texts_are_texts() -> None:
    for markup in labelled(HOSTILE):
        drawn = Drawn(markup)
        names = {each.tag for each in drawn.root.iter()}
        assert "script" not in names
        assert names <= {
            "figure", "figcaption", "strong", "svg", "title", "desc", "g", "a", "path", "text", "p",
            "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td",
        }  # fmt: skip
        attributes = {key for each in drawn.root.iter() for key in each.attrib}
        assert not any(key == "style" or key.startswith("on") for key in attributes)
        assert drawn.svg.findtext("title") == HOSTILE.replace("\x1b[31m", "")
        assert "\x1b" not in markup


def test_ids_are_unique_among_charts() -> None:
    charts = [bar_chart(ChartText(f"c{n}", "", "", "row"), [BarRow("a", 1, "1")]) for n in range(3)]
    ids = [each for chart in charts for each in Drawn(chart).ids]
    assert len(ids) == len(set(ids)) == 9


def test_long_lists_are_bounded() -> None:
    for markup in labelled("a long label " * 50, 3000):
        drawn = Drawn(markup)
        svg = markup[markup.index("<svg") : markup.index("</svg>")]
        assert len(svg) < 20_000
        assert len(drawn.table) <= 101
        assert "of 3,000" in drawn.note or "n = 6,000" in svg
        assert all(len(text) <= 120 for text in drawn.texts)
