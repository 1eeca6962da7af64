"""What to do about a mistake is never cut, at any width and in any report: quotations make room for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

import pytest

from tests.support.kit import Project

WIDTHS = (40, 80, 200)
LONG = "an-order-that-was-never-delivered-and-is-asked-for-again"


class Case(NamedTuple):
    """A project in which a run says what to do, and a part of one remedy that is not wording."""

    config: str
    scenario: str
    fact: str
    agent: str = "def agent(messages): return 'yes'\n"
    target: str = "agent.py:agent"


CASES = {
    "a server that is down": Case(
        f"agent: {{endpoint: 'http://127.0.0.1:9/v1/{LONG}/chat/completions', max_wait_s: 0}}\n",
        "expected_output_contains: [x]",
        "server",
        target="",
    ),
    "an answer in no known form": Case(
        "",
        "checks: none",
        "{'role'",
        agent="class Refund:\n    pass\n\n\ndef agent(messages): return [Refund()]\n",
    ),
    "an agent that nobody names": Case("", f"expect: {{agents: [{LONG}, {LONG}-billing]}}", "name"),
    "a gate that is not decided": Case(
        "epochs: 2\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\n",
        "expected_output_contains: [yes]",
        "epochs: ",
    ),
}


def cases(*names: str, scenario: str) -> str:
    return "cases:\n" + "".join(
        f"  - {{id: {name}, category: capability, input: hello, {scenario}}}\n" for name in names
    )


@pytest.fixture(params=CASES, scope="module")
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Project]:
    """Two scenarios that end alike, of a run whose results are kept."""
    case = CASES[request.param]
    project = Project(tmp_path_factory.mktemp("remedies"))
    project.agent(case.agent)
    project.config(case.config, target=case.target)
    project.scenarios(cases(LONG, "other", scenario=case.scenario))
    assert project.run().code in (1, 3)
    return case, project


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(item)


def remedies(results: dict[str, Any]) -> set[str]:
    """What the results say to do: of their gates, and after the dash of what went wrong."""
    found = {gate["resolution"] for gate in results["summary"]["gates"] if gate["resolution"]}
    broken = [text for scenario in results["scenarios"] for text in texts(scenario.get("violations"))]
    samples = [sample for scenario in results["scenarios"] for sample in scenario["samples"]]
    broken += [text for sample in samples for text in texts(sample["reason"])]
    found |= {text.partition(" — ")[2].split("\n")[0] for text in broken}
    return {" ".join(text.split()) for text in found if text}


def words(text: str) -> str:
    """In one line, and as Markdown, XML and workflow commands mean it."""
    for sign, meant in {"%0A": " ", "\u200b": "", "\\": ""}.items():
        text = text.replace(sign, meant)
    return " ".join(unescape(text).split())


def shown(project: Project, *command: str, width: int) -> str:
    return project.call(*command, env={"COLUMNS": str(width)}).out


@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_a_remedy_is_whole_on_the_screen(broken: tuple[Case, Project], flags: tuple[str, ...]) -> None:
    case, project = broken
    expected = remedies(project.results())
    assert any(case.fact in remedy for remedy in expected), expected
    for width in WIDTHS:
        text = words(shown(project, "report", "latest", *flags, width=width))
        assert [remedy for remedy in expected if remedy not in text] == [], width


@pytest.mark.parametrize("report", ["github", "junit", "markdown"])
def test_a_remedy_is_whole_in_a_file(broken: tuple[Case, Project], report: str) -> None:
    _, project = broken
    project.call("report", "latest", "--report", f"{report}=out.txt")
    text = words((project.root / "out.txt").read_text(encoding="utf-8"))
    assert [remedy for remedy in remedies(project.results()) if remedy not in text] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_quiet_run_shows_what_to_do_once(width: int, project: Project) -> None:
    case = CASES["a server that is down"]
    project.config(case.config, target="")
    project.scenarios(cases(*(f"{LONG}-{n}" for n in range(3)), scenario=case.scenario))
    text = words(project.run("-q", env={"COLUMNS": str(width)}).out)
    (remedy,) = (each for each in remedies(project.results()) if case.fact in each)
    assert text.count(remedy) == 1, text
    assert text.count(f"INCONCLUSIVE suite.yaml::{LONG}") == 3


def test_a_command_is_broken_only_at_blanks(broken: tuple[Case, Project]) -> None:
    """What is copied from the screen is the command, whatever the width."""
    _, project = broken
    texts = {width: shown(project, "report", "latest", "-v", width=width) for width in WIDTHS}
    commands = [re.findall(r"^ *repeat: (.*)$", text, flags=re.MULTILINE) for text in texts.values()]
    assert all(found == commands[-1] for found in commands)
    assert commands[-1] or "epochs" in texts[200]


def test_a_hint_names_whole_ids_and_counts_the_rest(project: Project) -> None:
    project.agent("def agent(messages): return 'yes'\n")
    project.config()
    names = [f"{LONG}-{n:02}" for n in range(30)]
    project.scenarios(cases(*names, scenario="expected_output_contains: [x]"))
    text = project.call("run", "-s", "scenarios/suite.yaml::zzz").err
    assert all(name in text for name in names[:8])
    assert "…" not in text
    rest = text.rpartition(names[7])[2]
    assert "22" in rest
    assert "agenteval list" in rest


@pytest.mark.parametrize("flags", [("-q",), ("-v",), ()])
def test_yaml_to_be_added_keeps_its_indentation(flags: tuple[str, ...], project: Project) -> None:
    project.agent("def agent(messages, ctx): return ctx.call_tool_sync('refund', {})\n")
    project.config("epochs: 2\n")
    project.scenarios(cases(LONG, scenario="expected_tools: [refund]"))
    for width in WIDTHS:
        done = project.call("run", *flags, env={"COLUMNS": str(width)})
        assert done.code == 2
        assert re.search(r"^( +)tools:\n\1  refund:\n\1    returns: …$", done.out, flags=re.MULTILINE), width
        assert re.search(r"unmocked_tools: empty\b.*\bpassthrough\b", words(done.out))
