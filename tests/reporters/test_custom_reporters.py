"""Reporters of the author's: loading, and what is wrong with one that cannot be called."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.support.report_samples as samples
from agenteval.core.errors import AuthorError, Place
from agenteval.reporters import REPORTERS
from agenteval.reporters.custom_reporters import RenderError, find_reporter, load_custom_reporter
from agenteval.reporters.options import ReportOptions

MODULE = """
class Team:
    def render(self, sections, options):
        return f"{sections.verdict} {options.width}"


class NeedsMore:
    def __init__(self, channel): ...
    def render(self, sections, options): ...


class Silent: ...


class Later:
    async def render(self, sections, options): ...


class Narrow:
    def render(self, sections): ...


team = Team()
number = 3


def function(sections, options):
    return sections.verdict


def narrow(sections): ...


def raising(sections, options):
    raise LookupError("no channel")


def quitting(sections, options):
    raise SystemExit(0)


def empty(sections, options):
    return None
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for all tests, because a process loads only one module of a name."""
    folder: Path = tmp_path_factory.mktemp("reports")
    (folder / "custom_team_reports.py").write_text(MODULE, encoding="utf-8")
    return str(folder)


FILE = "custom_team_reports.py"


@pytest.mark.parametrize(
    ("name", "text"), [("Team", "failed 40"), ("team", "failed 40"), ("function", "failed")]
)
def test_a_class_an_object_and_a_function_render(base: str, name: str, text: str) -> None:
    for target in (f"{FILE}:{name}", f"custom_team_reports:{name}"):
        reporter = find_reporter(target, base)
        assert reporter.function(*samples.mixed("bot"), ReportOptions(width=40)) == text


def test_a_name_without_a_colon_is_one_of_the_registry(base: str) -> None:
    assert find_reporter("json", base) is REPORTERS.get("json")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("Tean", ["'Tean'", "'Team'"]),
        ("NeedsMore", ["channel", "without arguments"]),
        ("Silent", ["`render`", "def render(self, sections, options)"]),
        ("number", ["int", "def render(self, sections, options)"]),
        ("Later", ["without `async`"]),
        ("Narrow", ["render(sections)", "def render(self, sections, options)"]),
        ("narrow", ["narrow(sections)", "def NAME(sections, options)"]),
    ],
)
def test_what_cannot_be_called_is_refused_at_its_place(base: str, name: str, facts: list[str]) -> None:
    with pytest.raises(AuthorError) as caught:
        load_custom_reporter(f"{FILE}:{name}", base, Place("agenteval.yaml", 3, 5))
    (problem,) = caught.value.problems
    assert str(problem).startswith("agenteval.yaml:3:5:")
    assert [fact for fact in facts if fact not in str(problem)] == []


@pytest.mark.parametrize(
    ("name", "fact"), [("raising", "LookupError"), ("quitting", "SystemExit"), ("empty", "NoneType")]
)
def test_what_fails_while_rendering_is_one_error(base: str, name: str, fact: str) -> None:
    reporter = load_custom_reporter(f"{FILE}:{name}", base)
    with pytest.raises(RenderError, match=fact) as caught:
        reporter.function(*samples.mixed("bot"), ReportOptions())
    assert f"{FILE}:{name}" in str(caught.value)
