"""``agenteval plan``: how a forecast reads, on the screen and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands.output import make_report_options
from agenteval.cli.commands.plan import _json_target, as_json, gate_parts, plan_parts
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError
from agenteval.planning.forecast import Forecast, ForecastRow, Range
from agenteval.reporters.terminal.screen import render_parts

ONE, NONE, SOME, OPEN = Range(1, 1), Range(0, 0), Range(12, 20), Range(12, None)
BIG = Range(1200, 1200)


def row(role: str = "judge", name: str = "openai/m", calls: Range = SOME, **more: Any) -> ForecastRow:
    fields = {"input_tokens": BIG, "output_tokens": OPEN, "cost": (0.0, 0.0), **more}
    return ForecastRow(role, name, calls, **fields)


def made(*rows: ForecastRow, **more: Any) -> Forecast:
    fields = {"scenarios": 2, "agents": 1, "samples": SOME, "turns": BIG, **more}
    return Forecast(rows=rows, **fields)


def lines(forecast: Forecast) -> list[str]:
    options = make_report_options(ReporterChoice(name="terminal", path="x"), folder=Path())
    text = render_parts(plan_parts(forecast), options)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("more", "head"),
    [
        ({}, "12–20 samples of 2 scenarios, 1,200 turns"),
        ({"samples": ONE, "scenarios": 1, "turns": ONE}, "1 sample of 1 scenario, 1 turn"),
        ({"agents": 2}, "12–20 samples of 2 scenarios × 2 agents, 1,200 turns"),
        ({"turns": OPEN}, "12–20 samples of 2 scenarios, 12+ turns"),
        ({"samples": NONE, "turns": NONE}, "0 samples of 2 scenarios, 0 turns"),
        ({"samples": Range(0, 1)}, "0–1 samples of 2 scenarios, 1,200 turns"),
    ],
)
def test_what_is_counted(more: dict[str, Any], head: str) -> None:
    assert lines(made(**more))[0] == head


@pytest.mark.parametrize(
    ("given", "cells"),
    [
        (row(), "judge openai/m 12–20 ≈1,212+ ≈1,200 ≈12+ 0"),
        (row(calls=BIG), "judge openai/m 1,200 ≈1,212+ ≈1,200 ≈12+ 0"),
        (row(estimated=True), "judge openai/m ≈12–20 ≈1,212+ ≈1,200 ≈12+ 0"),
        (row(calls=NONE, input_tokens=NONE, output_tokens=NONE, estimated=True), "judge openai/m 0 0 0 0 0"),
        (row(output_tokens=SOME), "judge openai/m 12–20 ≈1,212–1,220 ≈1,200 ≈12–20 0"),
        (row(output_tokens=ONE), "judge openai/m 12–20 ≈1,201 ≈1,200 ≈1 0"),
        (row(calls=Range(0, None)), "judge openai/m 0+ ≈1,212+ ≈1,200 ≈12+ 0"),
        (row(name=""), "judge – 12–20 ≈1,212+ ≈1,200 ≈12+ 0"),
        (row(cost=None), "judge openai/m 12–20 ≈1,212+ ≈1,200 ≈12+ unknown"),
        (row(cost=(0.5, 0.5)), "judge openai/m 12–20 ≈1,212+ ≈1,200 ≈12+ ≈0.5000"),
        (row(cost=(0.25, 0.5)), "judge openai/m 12–20 ≈1,212+ ≈1,200 ≈12+ ≈0.2500–0.5000"),
        (row(cost=(0.0, 0.5)), "judge openai/m 12–20 ≈1,212+ ≈1,200 ≈12+ ≈0–0.5000"),
    ],
)
def test_a_row(given: ForecastRow, cells: str) -> None:
    _, head, found, *_ = lines(made(given))
    assert head == "role model calls tokens tokens in tokens out cost (USD)"
    assert found == cells


@pytest.mark.parametrize(
    ("rows", "cost", "without"),
    [
        ([], "cost: 0 USD", []),
        ([row()], "cost: 0 USD", []),
        ([row(cost=(0.25, 0.5)), row(cost=(0.5, 0.5))], "cost: ≈0.7500–1.0000 USD", []),
        ([row(cost=(0.5, 0.5))], "cost: ≈0.5000 USD", []),
        ([row(cost=None)], "cost: unknown", ["openai/m"]),
        ([row(), row(name="x/y", cost=None)], "cost: unknown", ["x/y"]),
        ([row(cost=(0.5, 0.5)), row(name="x/y", cost=None)], "cost: ≈0.5000 USD", ["x/y"]),
        ([row(cost=None), row(cost=None), row("user", "", cost=None)], "cost: unknown", ["openai/m, user"]),
        ([row(cost=None, calls=NONE)], "cost: 0 USD", []),
        ([row(cost=None, calls=Range(0, None))], "cost: unknown", ["openai/m"]),
    ],
)
def test_the_sum(rows: list[ForecastRow], cost: str, without: list[str]) -> None:
    found = lines(made(*rows))[-1]
    assert found.startswith(cost)
    assert ("prices" in found) is bool(without)
    for name in without:
        assert f" {name};" in found


def test_notes_follow() -> None:
    assert lines(made(notes=("first", "second")))[-2:] == ["note: first", "note: second"]


@pytest.mark.parametrize(("chances", "count"), [((), 0), (("one",), 2), (("one", "two"), 3)])
def test_gates_have_a_heading(chances: tuple[str, ...], count: int) -> None:
    assert len(list(gate_parts(chances))) == count


def test_all_of_it_as_json() -> None:
    forecast = made(
        row(cost=(0.25, 0.5), estimated=True),
        row("agent", "bot", cost=None),
        notes=("n",),
        agents=3,
        turns=OPEN,
    )
    assert as_json(forecast, ["wrong"]) == {
        "schema_version": 1,
        "scenarios": 2,
        "agents": 3,
        "samples": {"least": 12, "most": 20},
        "turns": {"least": 12, "most": None},
        "rows": [
            {
                "role": "judge",
                "name": "openai/m",
                "calls": {"least": 12, "most": 20},
                "estimated": True,
                "tokens": {"least": 1212, "most": None},
                "input_tokens": {"least": 1200, "most": 1200},
                "output_tokens": {"least": 12, "most": None},
                "cost": {"least": 0.25, "most": 0.5},
            },
            {
                "role": "agent",
                "name": "bot",
                "calls": {"least": 12, "most": 20},
                "estimated": False,
                "tokens": {"least": 1212, "most": None},
                "input_tokens": {"least": 1200, "most": 1200},
                "output_tokens": {"least": 12, "most": None},
                "cost": None,
            },
        ],
        "notes": ["n"],
        "gates": ["wrong"],
    }


@pytest.mark.parametrize(
    ("text", "name"), [("json", None), ("json=-", None), ("json=", None), ("json=plan.json", "plan.json")]
)
def test_where_the_json_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _json_target(text) == (tmp_path / name if name else None)


@pytest.mark.parametrize("text", ["junit", "junit=x.xml", "terminal", ""])
def test_a_plan_is_no_other_report(text: str) -> None:
    with pytest.raises(AuthorError) as error:
        _json_target(text)
    assert "json" in str(error.value)
