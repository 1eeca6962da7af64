"""The argument that selects a scenario, and the command that shows a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.trajectory import StopReason
from agenteval.reporters.words.failure import collect_failures
from agenteval.reporters.words.selection import (
    by_file,
    file_of,
    is_recorded,
    selectors,
    short_files,
    show_command,
)
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import FAIL, PASS, Played, only_scenario, report_of

RECORDED = Played(turns=((),), stop=StopReason.RECORDED, detail="log.jsonl:1")


def written(sources: Mapping[str, str], **more: Any) -> Report:
    """A run of scenarios that are written in these places."""
    return report_of(
        {name: [PASS] for name in sources},
        scenarios={name: {"source": source} for name, source in sources.items()},
        **more,
    )


@pytest.mark.parametrize(
    ("source", "file"), [("s/a.yaml:3", "s/a.yaml"), ("s/a.yaml", "s/a.yaml"), ("default", ""), ("", "")]
)
def test_the_file_of_a_scenario(source: str, file: str) -> None:
    assert file_of(only_scenario(written({"a": source}))) == file


@pytest.mark.parametrize(
    ("report", "recorded"),
    [
        (report_of({"a": [PASS]}, run={"command": ("run", "x.yaml")}), False),
        (report_of({"a": [PASS]}, run={"command": ()}), False),
        (report_of({"a": [PASS]}, run={"command": ("score", "x.jsonl")}), True),
        (report_of({"a": [PASS, RECORDED]}, run={"command": ("run",)}), True),
    ],
)
def test_what_was_recorded_elsewhere(report: Report, recorded: bool) -> None:
    assert is_recorded(report) is recorded


@pytest.mark.parametrize(
    ("files", "short"),
    [
        (["/p/s/a.yaml", "/p/s/b.yaml"], ["a.yaml", "b.yaml"]),
        (["/p/s/a.yaml", "/p/t/a.yaml"], ["s/a.yaml", "t/a.yaml"]),
        (["/p/s/a.yaml", "/q/s/a.yaml"], ["p/s/a.yaml", "q/s/a.yaml"]),
        (["a.yaml", "s/a.yaml"], ["a.yaml", "s/a.yaml"]),
        (["s/xa.yaml", "s/a.yaml"], ["xa.yaml", "a.yaml"]),
        (["a.yaml"], ["a.yaml"]),
        ([""], []),
    ],
)
def test_the_shortest_end_that_names_one_file(files: list[str], short: list[str]) -> None:
    report = written({f"n{at}": f"{file}:1" if file else "" for at, file in enumerate(files)})
    assert short_files(report) == dict(zip(filter(None, files), short, strict=True))


def test_scenarios_of_one_file_share_its_name() -> None:
    report = written({"a": "/p/x.yaml:1", "b": "/p/x.yaml:9"})
    assert short_files(report) == {"/p/x.yaml": "x.yaml"}
    assert {
        file: [each.scenario.id for each in found] for file, found in by_file(report.scenarios).items()
    } == {"/p/x.yaml": ["a", "b"]}


def test_scenarios_are_grouped_by_file_in_their_order() -> None:
    report = written({"a": "y.yaml:1", "b": "x.yaml:1", "c": "y.yaml:5", "d": ""})
    found = {file: [each.scenario.id for each in group] for file, group in by_file(report.scenarios).items()}
    assert list(found.items()) == [("y.yaml", ["a", "c"]), ("x.yaml", ["b"]), ("", ["d"])]


def test_the_argument_that_selects_a_scenario() -> None:
    report = written({"a": "/p/x.yaml:1", "two words": "/p/x.yaml:9", "c": ""})
    assert selectors(report) == {"a": "x.yaml::a", "two words": "'x.yaml::two words'", "c": "c"}
    recorded = written({"a": "log.jsonl:1"}, run={"command": ("score", "log.jsonl")})
    assert selectors(recorded) == {"a": "a"}


@pytest.mark.parametrize(
    ("name", "run", "agents", "command"),
    [
        ("a", "", ("bot",), "agenteval show a"),
        ("a", "r1", ("bot",), "agenteval show r1 a"),
        ("two words", "", ("bot",), "agenteval show 'two words'"),
        ("a", "", ("bot", "other"), "agenteval show a --agent bot"),
        ("-x", "", ("bot",), "agenteval show -- -x"),
        ("-x", "r1", ("bot", "other"), "agenteval show r1 --agent bot -- -x"),
    ],
)
def test_the_command_that_shows_a_conversation(
    name: str, run: str, agents: tuple[str, ...], command: str
) -> None:
    report = report_of({name: [FAIL]}, agents=agents, scenarios={name: {"source": "s/x.yaml:4"}})
    first, *_ = collect_failures(report, decide(report))
    assert show_command(first, run) == command
    assert show_command(replace(first, several_agents=False), "latest").startswith("agenteval show latest ")


@pytest.mark.parametrize(("name", "words"), [("a", "a"), ("-x", "-- -x")])
def test_a_scenario_without_a_file_is_shown_by_its_id(name: str, words: str) -> None:
    report = report_of({name: [FAIL]}, scenarios={name: {"source": ""}})
    first, *_ = collect_failures(report, decide(report))
    assert show_command(first, "") == f"agenteval show {words}"
