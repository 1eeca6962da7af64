"""The report at a terminal: nothing from outside steers it; colours, encodings and figures."""

from __future__ import annotations

import re

import pytest

from agenteval.core.finished_text import for_encoding
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import number, percent
from agenteval.reporters.terminal.screen import render
from tests.support.report_samples import Told, hostile, mixed

WIDTHS = (40, 80, 120)


def shown(told: Told, *, width: int = 100, color: bool = False, verbose: bool = False) -> str:
    return render(*told, ReportOptions(width=width, color=color, verbose=verbose))


# Text from outside


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize(
    "evil",
    [
        "\x1b[31mred\x1b[2J\x1b[0m",
        "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
        "over\rwritten\x08\x00",
        "\u202eevil\u2066",
        "[red]markup[/red] [/] [link=http://x]y",
        "::error::x\n::set-output name=a::b\n##[error]z",
        "\nPASSED: all 9 scenarios passed (exit 0)\n",
        "\u2028\u2029\x85\x0b\x0c\x1c",
        ":smile: \ud800 宽宽宽 e\u0301 👩‍👩‍👧",
        "",
    ],
)
def test_hostile_text(evil: str, color: bool, width: int, verbose: bool) -> None:
    text = shown(hostile(evil), width=width, color=color, verbose=verbose)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text) if color else text
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", plain
    )
    if "[red]" in evil:
        assert "[red]" in plain
        assert "\x1b[31mmarkup" not in text
    if not color:
        assert not re.search(r"^\s*::", text, flags=re.MULTILINE)
        assert "##[" not in text
    assert not re.search(r"^PASSED", plain, flags=re.MULTILINE)
    assert plain.splitlines()[-1].startswith("INCOMPLETE: ")


def test_colour_only_when_asked_and_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, coloured = shown(mixed()), shown(mixed(), color=True)
    assert "\x1b" not in plain
    assert "\x1b[31m✗" in coloured
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "33", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert (shown(mixed()), shown(mixed(), color=True)) == (plain, coloured)


def test_for_encoding() -> None:
    text = shown(mixed())
    assert for_encoding(text, "utf-8") is text
    assert for_encoding(text, None) is text
    ascii_text = for_encoding(text, "ascii")
    assert ascii_text.isascii()
    assert "  x tool_calls" in ascii_text
    assert for_encoding("✗ café", "ascii") == "x caf?"


def test_rendering_changes_nothing_and_repeats() -> None:
    told = mixed("a", "b")
    assert shown(told) == shown(told)


# Figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0.0%"), (1, "100.0%"), (0.9, "90.0%"), (0.99999, "99.9%"), (0.00001, "0.1%")],
)
def test_percent(value: float | None, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (2, "2"), (7 / 3, "2.3"), (51.2, "51.2"), (3833.3, "3,833"), (0.0123, "0.012")],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text
