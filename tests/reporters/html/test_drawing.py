"""The parts of charts: which numbers are drawn and where, how long a text may be, and the figure."""

from __future__ import annotations

import re
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.reporters.html import charts, drawing
from agenteval.reporters.html.drawing import (
    MOST_TABLE_ROWS,
    Axis,
    ChartText,
    Reading,
    ValueTable,
    drawable,
    extremes,
    figure,
    fit_text,
    named,
    number_text,
    omitted,
    path,
    row,
    scale_of,
    text_width,
    x_axis,
)
from tests.support.drawings import Drawn

WORDS = ChartText("chart-a", "A title", "A sentence.", "thing")
NUMBERS = st.floats(-1e14, 1e14, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-9)


# Numbers


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (None, None), (nan, None), (inf, None), (-inf, None), (1e15, None), (10**400, None), (-1e300, None),
        (1e-13, 0.0), (-0.0, 0.0), (1e-9, 1e-9), (True, 1.0), (3, 3.0), (-5.5, -5.5),
    ],
)  # fmt: skip
def test_which_numbers_can_be_drawn(value: float | None, known: float | None) -> None:
    assert drawable(value) == known


@pytest.mark.parametrize(
    ("reading", "known"),
    [
        (Reading(1), Reading(1)),
        (Reading(1, 0, 2), Reading(1, 0, 2)),
        (Reading(1, 2, 0), Reading(1, 0, 2)),
        (Reading(1, None, 2), Reading(1)),
        (Reading(1, nan, 2), Reading(1)),
        (Reading(1, 0, inf), Reading(1)),
        (Reading(nan, 0, 1), None),
    ],
)
def test_an_interval_has_two_ends(reading: Reading, known: Reading | None) -> None:
    assert reading.drawable() == known


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        (Axis("", "%"), 0.999999, "99.9 %"),
        (Axis("", "ms"), 1234.5, "1,234 ms"),
        (Axis("", ""), 3.456, "3.46"),
        (Axis("", "ms"), None, "–"),
        (Axis("", "ms"), nan, "–"),
    ],
)
def test_a_value_in_words(axis: Axis, value: float | None, text: str) -> None:
    assert axis.text(value) == text


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (Reading(0.5, 0.25, 0.75), "50.0 % (25.0 % to 75.0 %)"),
        (Reading(0.5, None, 0.75), "50.0 %"),
        (Reading(nan), "–"),
        (None, "–"),
    ],
)
def test_a_reading_in_words(reading: Reading | None, text: str) -> None:
    assert Axis("", "%").reading_text(reading) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1.5, "1.5"), (3 * 0.1, "0.3"), (2000, "2,000"), (20_000, "20,000"), (150_000, "150k"),
        (-200_000, "-200k"), (2.5e6, "2.5M"), (1e9, "1G"), (5e14, "500T"), (1e-9, "1e-09"),
    ],
)  # fmt: skip
def test_a_number_on_an_axis_is_short(value: float, text: str) -> None:
    assert Axis("", "ms").tick_text(value) == text


def test_a_share_on_an_axis_has_no_decimal_place() -> None:
    assert Axis("", "%").tick_text(0.2) == "20 %"


# Scales


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([1, 5], [1, 2, 3, 4, 5]),
        ([0, 97], [0, 20, 40, 60, 80, 100]),
        ([-3, 4], [-4, -2, 0, 2, 4]),
        ([5, 5, 5], [0, 2, 4, 6, 8, 10]),
        ([0], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-1], [-2, -1.5, -1, -0.5, 0]),
        ([1e-9, 2e-9], [1e-9, 1.2e-9, 1.4e-9, 1.6e-9, 1.8e-9, 2e-9]),
    ],
)
def test_an_axis_has_round_numbers(values: list[float], ticks: list[float]) -> None:
    assert scale_of(values, (0, 100)).ticks == pytest.approx(ticks, abs=1e-15)


def test_twice_the_value_is_twice_as_far() -> None:
    scale = scale_of([0, 10], (50, 150))
    assert [scale.at(value) for value in (0, 5, 10)] == [50, 100, 150]
    assert scale_of([0, 10], (150, 50)).at(10) == 50


@given(st.lists(NUMBERS, min_size=1))
def test_a_scale_contains_its_values(values: list[float]) -> None:
    scale = scale_of(values, (0, 400))
    assert all(-0.01 <= scale.at(value) <= 400.01 for value in values)
    assert 2 <= len(scale.ticks) <= 8
    steps = [scale.at(tick) for tick in scale.ticks]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 400)


@given(st.floats(-1000, 2000))
def test_a_coordinate_is_a_number_with_one_decimal_place(value: float) -> None:
    assert re.fullmatch(r"-?\d+(\.\d)?", number_text(value))
    assert abs(float(number_text(value)) - value) <= 0.0501
    assert number_text(-0.01) == "0"


# Texts


@pytest.mark.parametrize(
    ("text", "fitted"), [("short", "short"), ("a\n b", "a b"), ("x" * 40, "x" * 11 + "…"), ("", "")]
)
def test_a_text_is_cut_to_its_room(text: str, fitted: str) -> None:
    assert fit_text(text, 100) == fitted


@given(st.text(), st.floats(20, 400))
def test_a_cut_text_is_not_wider_than_its_room(text: str, room: float) -> None:
    assert text_width(fit_text(text, room)) <= room


def test_wide_characters_count_as_wide() -> None:
    assert text_width("日本") > text_width("ab") > text_width("il")


# Elements


def test_a_row_has_its_full_texts_as_a_tooltip() -> None:
    made = row(40, ("name " * 30, "50 %", "50 % of 10"), "#there")
    title, *_ = re.findall("<title>(.*?)</title>", made)
    assert title.startswith("name name")
    assert title.endswith("…: 50 % of 10")
    assert '<a href="#there" tabindex="-1"><text' in made
    assert "<a " not in row(0, ("name", "", ""), None)


def test_a_path_without_commands_is_nothing() -> None:
    assert path("", "bar") == ""
    assert path("M0 0", "bar", "<a>") == '<path d="M0 0" class="chart-bar"><title>&lt;a&gt;</title></path>'


@pytest.mark.parametrize("high", [1, 97, 12345, 99999, 1e12])
def test_the_numbers_on_an_axis_do_not_overlap(high: float) -> None:
    scale = scale_of([0, high], (0, 400), 12)
    made = figure(WORDS, x_axis(scale, Axis("ms"), 0, 10), 50, "", ValueTable((), ()))
    texts = list(Drawn(made).svg.iter("text"))[:-1]
    places = [(float(each.attrib["x"]), text_width(each.text or "") / 2) for each in texts]
    assert len(places) >= 3
    assert all(x >= half and x + half <= 400 for x, half in places)
    assert all(x + half < other - o for (x, half), (other, o) in pairwise(places))


# Figure


def test_a_figure_names_and_describes_its_drawing() -> None:
    table = ValueTable(("thing", "value"), [(named("<b>", "#b"), "1"), ("c", "2")])
    drawn = Drawn(figure(WORDS, path("M0 0", "bar"), 99.5, "What is in it.", table, ["", "a note"]))
    assert drawn.root.attrib == {"class": "chart", "id": "chart-a"}
    assert drawn.sentence == "A title A sentence."
    assert drawn.svg.attrib["role"] == "img"
    assert drawn.svg.attrib["aria-labelledby"].split() == ["chart-a-title", "chart-a-desc"] == drawn.ids[1:]
    assert (drawn.svg.findtext("title"), drawn.description) == ("A title", "What is in it.")
    assert drawn.size == (400, 100)
    assert drawn.note == "a note"
    assert drawn.table == [["thing", "value"], ["<b>", "1"], ["c", "2"]]
    assert [each.attrib["scope"] for each in drawn.root.iter("th")] == ["col", "col", "row", "row"]
    assert drawn.root.findtext("details/table/caption") == "A title"
    assert [each.attrib for each in drawn.root.iter("a")] == [{"href": "#b"}]


def test_a_table_is_bounded() -> None:
    rows = [(str(n),) for n in range(MOST_TABLE_ROWS + 1)]
    assert Drawn(figure(WORDS, "", 1, "", ValueTable(("n",), rows[1:]))).note == ""
    drawn = Drawn(figure(WORDS, "", 1, "", ValueTable(("n",), rows)))
    assert len(drawn.table) == 1 + MOST_TABLE_ROWS
    assert "the first 100" in drawn.note


def test_what_is_omitted() -> None:
    assert omitted(30, 30, "run") == ""
    assert omitted(30, 1000, "run") == "30 of 1,000 runs are drawn"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            [("a", 1.0, "1 s"), ("b", 3.0, "3 s"), ("c", 2.0, "2 s")],
            "3 things. Highest: b (3 s). Lowest: a (1 s).",
        ),
        ([("a", 1.0, "1 s"), ("b", 1.0, "1 s")], "2 things, each 1 s."),
        ([("a", 1.0, "1 s")], "1 thing: a (1 s)."),
    ],
)
def test_the_highest_and_the_lowest_value(values: list[tuple[str, float, str]], text: str) -> None:
    assert extremes("thing", values) == text


# Styles


def test_every_class_has_a_style_and_every_style_a_class() -> None:
    css = Path(drawing.__file__).with_name("charts.css").read_text(encoding="utf-8")
    documented = set(re.findall(r"``(chart(?:-[a-z0-9]+)*)``", charts.__doc__ or ""))
    documented |= {f"chart-series-{n}" for n in range(4)}
    assert set(re.findall(r"\.(chart[a-z0-9-]*)", css)) == documented
    colors = {"passed", "failed", "open", "ink", "quiet", "line", "accent"}
    assert set(re.findall(r"var\(--([a-z]+)\)", css)) == colors
    assert "url(" not in css
    assert css.count("\n") <= 60
