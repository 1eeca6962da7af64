"""The short report at a terminal, as text that somebody has looked at; and in which colours.

The texts are in ``golden/``. ``UPDATE_GOLDEN=1 pytest tests/reporters/terminal/test_screen.py`` writes them
anew: look at what changed before you keep it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from agenteval.core.decision import GateRow
from agenteval.core.finished_text import for_encoding
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.screen import render
from tests.support.report_samples import Told, decide, mixed, passing
from tests.support.score_samples import judged_run

GOLDEN = Path(__file__).with_name("golden")


def undecided() -> Told:
    """A gate over the run that more epochs would decide."""
    told, _ = passing(2)
    gate = GateRow(
        "no_regression", -0.0125, "below 0.1", "2 scenarios: about 44 epochs in each run would decide",
        "agenteval.yaml:5", Verdict.INCONCLUSIVE,
    )  # fmt: skip
    decision = decide(told, gate, exit_code=3)
    return told, decision.__class__(**{**vars(decision), "verdict": Verdict.INCONCLUSIVE})


RUNS: dict[str, Callable[[], Told]] = {
    "green": lambda: passing(3),
    "red": mixed,
    "judged": judged_run,
    "scripted": lambda: judged_run(scripted=True),
    "agents": lambda: mixed("first", "second"),
    "undecided": undecided,
}


def shown(told: Told, **options: object) -> str:
    return render(*told, ReportOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "run", "width", "quiet"),
    [
        ("green-80", "green", 80, False),
        ("green-40", "green", 40, False),
        ("red-80", "red", 80, False),
        ("red-40", "red", 40, False),
        ("red-120", "red", 120, False),
        ("red-quiet", "red", 80, True),
        ("judged-80", "judged", 80, False),
        ("scripted-120", "scripted", 120, False),
        ("agents-80", "agents", 80, False),
        ("undecided-80", "undecided", 80, False),
        ("red-80-ascii", "red", 80, False),
    ],
)
def test_the_screen_is_as_it_was_looked_at(name: str, run: str, width: int, quiet: bool) -> None:
    text = shown(RUNS[run](), width=width, quiet=quiet)
    if name.endswith("ascii"):
        text = for_encoding(text, "ascii")
        assert text.isascii()
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("run", RUNS)
def test_only_what_is_to_be_pasted_back_is_wider_than_the_terminal(run: str, width: int) -> None:
    heads = "Re-run|Inspect|Details|Check|INCOMPLETE|FAILED|INCONCLUSIVE|PASSED"
    pasted = rf"(FAILED|INCONCLUSIVE) |({heads}): |  agenteval "
    wide = [line for line in shown(RUNS[run](), width=width).splitlines() if cell_len(line) > width]
    assert all(re.match(pasted + r"|   \S+:\d+$", line) for line in wide), wide


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("run", RUNS)
def test_no_colour_vanishes_on_a_light_or_a_dark_background(run: str, verbose: bool) -> None:
    """Yellow and cyan do on white, blue on black, white and black on their own. Red, green and magenta stay;
    and whoever sees no colour reads the same words."""
    coloured = shown(RUNS[run](), color=True, verbose=verbose)
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", coloured) for code in found.split(";")}
    assert codes <= {"0", "1", "2", "31", "32", "35", "39"}, codes
    plain = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert plain == shown(RUNS[run](), verbose=verbose).splitlines()
