"""Options that commands share are declared once, and typer sees them in place of their group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from agenteval.cli.main import app
from agenteval.cli.options import ReportingOptions, expand_option_groups, given_options, reporter_choices
from agenteval.core.errors import AuthorError
from agenteval.reporters import REPORTERS

OWN = {
    *(("--report", command) for command in ("plan", "report", "diff")),
    *(("--metric", command) for command in ("show-prompts", "show")),
    *(("--agent", command) for command in ("show", "init")),
    ("--all", "runs"),
}
"""Options that mean another thing in this command than in all others."""


def test_an_option_says_the_same_wherever_it_is() -> None:
    group: Any = typer.main.get_command(app)
    said: dict[str, set[tuple[Any, ...]]] = {}
    for name, command in group.commands.items():
        for each in command.params:
            option = max(each.opts, key=len)
            if each.param_type_name == "option" and (option, name) not in OWN:
                about = (tuple(each.opts), each.help, each.metavar, each.multiple)
                said.setdefault(option, set()).add(about)
    assert len(said) > 20
    assert {option: about for option, about in said.items() if len(about) > 1} == {}


def test_help_names_all_reporters() -> None:
    group: Any = typer.main.get_command(app)
    (option,) = [each for each in group.commands["run"].params if "--report" in each.opts]
    names = ", ".join(name for name in REPORTERS if name != "terminal")
    assert f": {names}, or" in option.help


@dataclass(frozen=True)
class Colours:
    first: Annotated[str, typer.Argument()]
    hue: Annotated[str | None, typer.Option("--hue", "-h", help="Of all.")] = None
    many: Annotated[list[str] | None, typer.Option("--many")] = None


painting = typer.Typer()
seen: list[Any] = []


@painting.command()
@expand_option_groups
def _paint(*, context: typer.Context, before: int = 1, colours: Colours, is_thick: bool = False) -> None:
    """Paints."""
    seen[:] = [before, colours, is_thick, given_options(context)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["red"], [1, Colours("red"), False, ("FIRST",)]),
        (
            ["red", "-h", "warm", "--many", "a", "--many", "b", "--is-thick"],
            [1, Colours("red", "warm", ["a", "b"]), True, ("FIRST", "--hue", "--many", "--is-thick")],
        ),
        (["red", "--before", "1"], [1, Colours("red"), False, ("--before", "FIRST")]),
    ],
)
def test_a_group_is_made_of_its_options(arguments: list[str], expected: list[Any]) -> None:
    done = CliRunner().invoke(painting, arguments)
    assert done.exit_code == 0, done.output
    assert seen == expected


def test_help_shows_the_options_in_the_place_of_their_group() -> None:
    text = CliRunner().invoke(painting, ["--help"]).output
    assert "Paints." in text
    assert text.index("--before") < text.index("--hue") < text.index("--many") < text.index("--is-thick")
    assert "colours" not in text


# ── the pages of help ────────────────────────────────────────────────────────────────────────────


def heads(*arguments: str) -> list[str]:
    done = CliRunner().invoke(app, [*arguments, "--help"], prog_name="agenteval")
    assert done.exit_code == 0, done.output
    return [line for line in done.output.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_commands_and_many_options_stand_in_groups() -> None:
    assert heads() == ["Run:", "Inspect runs:", "Check the setup:", "Options:"]
    assert heads("run") == ["Selection:", "Execution:", "Judges:", "Output:", "Other:"]
    assert heads("diff") == ["Arguments:", "Options:"]


# ── reports ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("texts", "opens", "reports"),
    [
        (None, False, []),
        (None, True, [("html", None)]),
        (["json"], True, [("json", None), ("html", None)]),
        (["html"], True, [("html", None)]),
        (["html=a.html", "json"], True, [("html", "a.html"), ("json", None)]),
        (["html=a.html"], False, [("html", "a.html")]),
        (["markdown=html"], True, [("markdown", "html"), ("html", None)]),
    ],
)
def test_the_page_to_be_opened_is_one_of_the_reports(
    texts: list[str] | None, opens: bool, reports: list[tuple[str, str | None]]
) -> None:
    chosen = reporter_choices(texts, opens=opens)
    assert [(each.name, each.path) for each in chosen] == reports
    assert ReportingOptions(report=texts, open=opens).choices == chosen


def test_an_unknown_report_is_refused_with_and_without_a_page() -> None:
    for opens in (True, False):
        with pytest.raises(AuthorError, match="htlm"):
            reporter_choices(["htlm"], opens=opens)
