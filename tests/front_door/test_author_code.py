"""Code of the author's that would end the run, or that cannot be called: told, and never green."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from agenteval import AgentContext
from agenteval.agentside.targets.faults import describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch, takes_context
from tests.support.kit import Project, failed_checks

SCENARIO = "scenarios: [{id: a, turns: [x], expect: {output: {contains: [NEVER]}}}]"
METRIC = """
import sys
from agenteval import QuantitativeMetric, QuantResult

class Odd(BaseException): pass
class Exits:
    def __str__(self): sys.exit(0)
class Number(float):
    def __float__(self): sys.exit(0)

class Quits(QuantitativeMetric):
    name = "quits"
    %s
"""
QUITS = {
    "exits": "def score(self, input): sys.exit(0)",
    "exits with a word": "def score(self, input): sys.exit('x')",
    "exits in async": "async def score(self, input): sys.exit(0)",
    "generator exit": "def score(self, input): raise GeneratorExit",
    "interrupts": "def score(self, input): raise KeyboardInterrupt",
    "interrupts in async": "async def score(self, input): raise KeyboardInterrupt",
    "of its own": "def score(self, input): raise Odd('odd')",
    "a group": "def score(self, input): raise BaseExceptionGroup('g', [SystemExit(0)])",
    "a value that exits": "def score(self, input): return QuantResult(Number(2))",
    "a reason that exits": "def score(self, input): return QuantResult(2, Exits())",
}
QUITS_EARLY = {
    "exits when made": "def __init__(self): sys.exit(0)\n    def score(self, input): return QuantResult(2)",
    "ends a generator when made": (
        "def __init__(self): raise GeneratorExit\n    def score(self, input): return QuantResult(2)"
    ),
    "exits at import": "sys.exit(0)",
    "raises its own at import": "raise Odd",
    "takes nothing": "def score(self): return QuantResult(2)",
}


def with_metric(project: Project, body: str) -> None:
    project.config("metrics: [quits]\ncustom_metrics: ['m.py:Quits']\n")
    project.agent("def agent(m): return 'hi'")
    project.write("m.py", METRIC % body)
    project.scenarios(SCENARIO)


@pytest.mark.parametrize("body", QUITS.values(), ids=QUITS)
def test_a_metric_that_quits_is_a_failure_to_score(project: Project, body: str) -> None:
    with_metric(project, body)
    assert project.run().code == 1
    sample = project.sample()
    assert failed_checks(sample) == {(None, "output.contains")}
    assert [f["metric"] for t in sample["turns"] for f in t["score_failures"]] == ["quits"]


@pytest.mark.parametrize("body", QUITS_EARLY.values(), ids=QUITS_EARLY)
def test_a_metric_that_cannot_be_made_is_the_authors_mistake(project: Project, body: str) -> None:
    with_metric(project, body)
    done = project.call("run")
    assert (done.code, done.out) == (2, "")
    assert "agenteval.yaml:3:18: custom metric" in done.err


@pytest.mark.parametrize(
    "code",
    [
        "raise GeneratorExit",
        "class Odd(BaseException): pass\nraise Odd",
        "def __getattr__(n): raise SystemExit",
    ],
)
def test_a_module_that_quits_is_the_authors_mistake(project: Project, code: str) -> None:
    project.config()
    project.agent(code)
    project.scenarios(SCENARIO)
    done = project.call("run")
    assert (done.code, done.out) == (2, "")
    assert "agenteval.yaml:1:20: agent 'bot'" in done.err


EXITS = "import sys\nclass Exits:\n    def __str__(self): sys.exit(0)\n    model_dump = __str__\n"


@pytest.mark.parametrize(
    "body",
    [
        "def agent(m): return Exits()",
        "def agent(m): return {'content': 'NEVER', 'more': [Exits()]}",
        "def agent(m, ctx): return ctx.call_tool_sync('t', {'x': [Exits()]})",
        "async def agent(m, ctx): return await ctx.call_tool('t', {'x': [Exits()]})",
    ],
)
def test_an_object_that_quits_when_it_is_read_is_the_agents_fault(project: Project, body: str) -> None:
    project.config()
    project.agent(EXITS.replace("def __str__(self)", "def __str__(self, **more)") + body)
    project.scenarios("scenarios: [{id: a, turns: [x], checks: none, tools: {t: {returns: NEVER}}}]")
    assert project.run().code == 1
    sample = project.sample()
    assert sample["stop"] == "agent_error"
    assert "SystemExit: 0" in sample["turns"][-1]["error"]


UNCALLABLE = {
    "class agent:\n    def __init__(self, x): pass\n    def __call__(self, m): return 'hi'": "agent(x)",
    "class agent:\n    def __call__(self): return 'hi'": "__call__()",
    "def agent(): return 'hi'": "agent()",
    "def agent(a, b, c): return 'hi'": "agent(a, b, c)",
    "def agent(messages, *, lang): return 'hi'": "agent(messages, *, lang)",
}


@pytest.mark.parametrize(("code", "shape"), UNCALLABLE.items())
def test_an_agent_that_cannot_be_called_is_a_mistake(project: Project, code: str, shape: str) -> None:
    project.config()
    project.agent(code)
    project.scenarios(SCENARIO)
    done = project.call("run")
    assert (done.code, done.out) == (2, "")
    assert "agenteval.yaml:1:20: the agent" in done.err
    assert shape in done.err


def test_a_mock_that_cannot_be_called_is_told_before_anything_runs(project: Project) -> None:
    project.config()
    project.agent("def agent(m): return 'hi'")
    project.write("mocks.py", "def none(): pass\ndef three(a, b, c): pass\n")
    for name in ("none", "three"):
        text = f"cases: [{{id: {name}, input: x, tools: {{t: {{python: '../mocks.py:{name}'}}}}}}]"
        project.scenarios(text, f"scenarios/{name}.yaml")
    done = project.call("run")
    assert (done.code, done.out) == (2, "")
    assert "none()" in done.err
    assert "three(a, b, c)" in done.err


def _one(messages: Any) -> None: ...
def _two(messages: Any, anything: Any) -> None: ...
def _option(messages: Any, temperature: float = 0.5) -> None: ...
def _ctx(messages: Any, ctx: Any = None) -> None: ...
def _context(messages: Any, _context: Any = None) -> None: ...
def _annotated(messages: Any, more: AgentContext | None = None) -> None: ...
def _any(*messages: Any) -> None: ...


@functools.wraps(_one)
def _wraps_one(*args: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (_one, False),
        (_two, True),
        (_option, False),
        (_ctx, True),
        (_context, True),
        (_annotated, True),
        (_any, True),
        (_wraps_one, False),
        (functools.partial(_two, None), False),
    ],
)
def test_a_context_is_given_to_those_that_ask_for_it(function: Any, takes: bool) -> None:
    assert takes_context(function) is takes
    assert not find_signature_mismatch(function, 1 + takes)


def test_a_callable_that_tells_no_signature_is_left_alone() -> None:
    assert takes_context(min)
    assert not find_signature_mismatch(min, 1)


def test_an_option_with_a_default_keeps_it(project: Project) -> None:
    project.config()
    project.agent("def agent(messages, temperature=0.5): return str(temperature)")
    project.scenarios("cases: [{id: a, input: x, expected_output_contains: ['0.5']}]")
    assert project.run().code == 0


def test_an_exception_is_described_by_what_it_was() -> None:
    assert describe_error(SystemExit("x")) == "SystemExit: x"
