"""What to do about a mistake is never cut, at any width and in any report: quotations make room for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

import pytest

from tests.support.kit import Project

WIDTHS = (40, 60, 80, 200)
LONG = "an-order-that-was-never-delivered-and-is-asked-for-again"


class Case(NamedTuple):
    """A project in which a run says what to do, and words of which one remedy at least consists."""

    config: str
    scenario: str
    advice: str
    agent: str = "def agent(messages): return 'yes'\n"
    target: str = "agent.py:agent"


CASES = {
    "a server that is down": Case(
        f"agent: {{endpoint: 'http://127.0.0.1:9/v1/{LONG}/chat/completions'}}\n",
        "expected_output_contains: [x]",
        "is the server running, and are host and port right?",
        target="",
    ),
    "an answer in no known form": Case(
        "",
        "checks: none",
        "write {'role'",
        agent="class Refund:\n    pass\n\n\ndef agent(messages): return [Refund()]\n",
    ),
    "an agent that nobody names": Case(
        "",
        f"expect: {{agents: [{LONG}, {LONG}-billing]}}",
        "put the agent's name on each message",
    ),
    "a gate that is not decided": Case(
        "epochs: 2\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\n",
        "expected_output_contains: [yes]",
        "epochs: ",
    ),
}


@pytest.fixture(params=CASES, scope="module")
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Project]:
    """Two scenarios that end alike, of a run whose results are kept."""
    case = CASES[request.param]
    project = Project(tmp_path_factory.mktemp("remedies"))
    project.agent(case.agent)
    project.config(case.config, target=case.target)
    project.scenarios(
        "".join(
            ["cases:\n"]
            + [
                f"  - {{id: {name}, category: capability, input: hello, {case.scenario}}}\n"
                for name in (LONG, "other")
            ]
        )
    )
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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("how", ["report latest", "report latest -v"])
def test_a_remedy_is_whole_on_the_screen(broken: tuple[Case, Project], how: str, width: int) -> None:
    case, project = broken
    told = remedies(project.results())
    assert any(case.advice.strip("— ") in remedy for remedy in told), told
    shown = project.call(*how.split(), env={"COLUMNS": str(width)}).out
    for remedy in told:
        assert remedy in words(shown), shown


@pytest.mark.parametrize("report", ["github", "junit", "markdown"])
def test_a_remedy_is_whole_in_a_file(broken: tuple[Case, Project], report: str) -> None:
    _, project = broken
    project.call("report", "latest", "--report", f"{report}=out.txt")
    text = words((project.root / "out.txt").read_text(encoding="utf-8"))
    for remedy in remedies(project.results()):
        assert remedy in text, text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_quiet_run_says_what_to_do_once(width: int, tmp_path: Any) -> None:
    case, project = CASES["a server that is down"], Project(tmp_path)
    project.config(case.config, target="")
    rows = (f"  - {{id: {LONG}-{n}, category: capability, input: hello, checks: none}}\n" for n in range(3))
    project.scenarios("cases:\n" + "".join(rows).replace("checks: none", case.scenario))
    shown = project.run("-q", env={"COLUMNS": str(width)}).out
    whole = words(shown)
    assert whole.count(case.advice) == 1, shown
    assert whole.count(f"INCONCLUSIVE suite.yaml::{LONG}") == 3


@pytest.mark.parametrize("width", WIDTHS)
def test_a_command_is_broken_at_blanks_alone(broken: tuple[Case, Project], width: int) -> None:
    """What is copied from the screen is the command, whatever the width."""
    _, project = broken
    shown = project.call("report", "latest", "-v", env={"COLUMNS": str(width)}).out
    commands = re.findall(r"^ *repeat: (.*)$", shown, flags=re.MULTILINE)
    wide = project.call("report", "latest", "-v", env={"COLUMNS": "200"}).out
    assert commands == re.findall(r"^ *repeat: (.*)$", wide, flags=re.MULTILINE)
    assert commands or "epochs" in wide


def test_a_hint_names_whole_ids_and_counts_the_rest(tmp_path: Any) -> None:
    project = Project(tmp_path)
    project.agent("def agent(messages): return 'yes'\n")
    project.config()
    names = [f"{LONG}-{n:02}" for n in range(30)]
    check = "expected_output_contains: [x]"
    rows = (f"  - {{id: {n}, category: capability, input: a, {check}}}\n" for n in names)
    project.scenarios("cases:\n" + "".join(rows))
    said = project.call("run", "-s", "scenarios/suite.yaml::zzz").err
    assert all(name in said for name in names[:8])
    assert said.rstrip().endswith("and 22 more, which agenteval list shows")
    assert "…" not in said


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("flag", ["-q", "-v", ""])
def test_yaml_to_be_added_keeps_its_indentation(width: int, flag: str, tmp_path: Any) -> None:
    project = Project(tmp_path)
    project.agent("def agent(messages, ctx): return ctx.call_tool_sync('refund', {})\n")
    project.config("epochs: 2\n")
    project.scenarios(f"cases: [{{id: {LONG}, category: capability, input: a, expected_tools: [refund]}}]\n")
    done = project.call("run", *filter(None, [flag]), env={"COLUMNS": str(width)})
    assert done.code == 2
    assert re.search(r"^( +)tools:\n\1  refund:\n\1    returns: …$", done.out, flags=re.MULTILINE), done.out
    assert "or set unmocked_tools: empty, or passthrough for an agent that runs its own tools" in words(
        done.out
    )
