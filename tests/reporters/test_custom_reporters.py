"""Reporters of the author's: loading, and what is wrong with one that cannot be called."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tests.support.report_samples as samples
from agenteval.core.errors import AuthorError, Place
from agenteval.reporters import REPORTERS, Reporter, load_function
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


# ── reporters of other packages ──────────────────────────────────────────────────────────────────

PLACES: dict[str, Any] = {
    "raising": lambda *_: {}["gone"],
    "os": lambda *_: Path("/gone/away").read_bytes(),
    "quitting": lambda *_: sys.exit(0),
    "empty": lambda *_: None,
    "bytes": lambda *_: b"text",
    "gone": "no_such_module_of_theirs:render",
    "nameless": "json:no_such_function",
    "fine": lambda *_: "text",
}


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What other packages register, by name."""
    found: dict[str, Any] = {}

    def entries(group: str) -> list[Any]:
        assert group == "agenteval.reporters"
        return [
            SimpleNamespace(name=name, value=f"theirs:{name}", load=partial(found.get, name))
            for name in found
        ]

    monkeypatch.setattr(importlib.metadata, "entry_points", entries)
    return found


@pytest.mark.parametrize("field", ["render", "comparison", "history", "step_summary"])
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("raising", ["KeyError"]),
        ("os", ["FileNotFoundError"]),
        ("quitting", ["SystemExit"]),
        ("empty", ["NoneType", "string"]),
        ("bytes", ["bytes", "string"]),
        ("gone", ["no_such_module_of_theirs"]),
        ("nameless", ["no_such_function"]),
    ],
)
def test_what_fails_in_another_package_is_one_error(
    packaged: dict[str, Any], field: str, name: str, facts: list[str]
) -> None:
    packaged["page"] = Reporter(**{"render": PLACES["fine"], "file": "page.html", field: PLACES[name]})
    found = find_reporter("page", "/nowhere")
    with pytest.raises(RenderError) as caught:
        load_function(getattr(found, field))(*samples.mixed("bot"), ReportOptions())
    (problem,) = caught.value.problems
    assert all(fact in str(problem) for fact in ("'page'", *facts))
    assert found.file == "page.html"


def test_a_reporter_of_another_package_renders(packaged: dict[str, Any]) -> None:
    packaged["page"] = lambda report, decision, options: f"{decision.verdict} {options.width}"
    found = find_reporter("page", "/nowhere")
    assert found.function(*samples.mixed("bot"), ReportOptions(width=40)) == "failed 40"
    assert (found.comparison, found.history, found.step_summary) == ("", "", "")


def test_a_package_cannot_replace_a_built_in_reporter(packaged: dict[str, Any]) -> None:
    packaged["json"] = PLACES["raising"]
    assert find_reporter("json", "/nowhere") is REPORTERS.built_in["json"]
