"""Code of the author's that would end the run, or that cannot be called: refused, and never green."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from agenteval import AgentContext
from agenteval.agentside.targets.faults import describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch, takes_context
from tests.support.kit import Project, failed_checks
from tests.support.suites import write_suite

SCENARIO = "{id: a, turns: [x], expect: {output: {contains: [NEVER]}}}"
METRICS = """
import sys
from agenteval import QuantitativeMetric, QuantResult

class Odd(BaseException): pass
class Exits:
    def __str__(self): sys.exit(0)
class Number(float):
    def __float__(self): sys.exit(0)
"""
QUITS = [
    "def score(self, input): sys.exit(0)",
    "def score(self, input): sys.exit('x')",
    "async def score(self, input): sys.exit(0)",
    "def score(self, input): raise GeneratorExit",
    "def score(self, input): raise KeyboardInterrupt",
    "async def score(self, input): raise KeyboardInterrupt",
    "def score(self, input): raise Odd('odd')",
    "def score(self, input): raise BaseExceptionGroup('g', [SystemExit(0)])",
    "def score(self, input): return QuantResult(Number(2))",
    "def score(self, input): return QuantResult(2, Exits())",
]
SCORES = "def score(self, input): return QuantResult(2)"
QUITS_EARLY = {
    "exits when made": f"def __init__(self): sys.exit(0)\n    {SCORES}",
    "ends a generator when made": f"def __init__(self): raise GeneratorExit\n    {SCORES}",
    "exits at import": "sys.exit(0)",
    "raises its own at import": "raise Odd",
    "takes nothing": "def score(self): return QuantResult(2)",
}


def with_metrics(project: Project, *bodies: str) -> None:
    names = [f"quits{number}" for number in range(len(bodies))]
    listed = ", ".join(f"'m.py:{name}'" for name in names)
    project.config(f"metrics: [{', '.join(names)}]\ncustom_metrics: [{listed}]\n")
    project.agent("def agent(m): return 'hi'")
    classes = (
        f"class {name}(QuantitativeMetric):\n    name = '{name}'\n    {body}\n"
        for name, body in zip(names, bodies, strict=True)
    )
    project.write("m.py", METRICS + "".join(classes))
    project.scenarios(SCENARIO)


def test_a_metric_that_quits_is_a_failure_to_score(project: Project) -> None:
    with_metrics(project, *QUITS)
    assert project.run().code == 1
    sample = project.sample()
    assert failed_checks(sample) == {(None, "output.contains")}
    failures = {failure["metric"] for turn in sample["turns"] for failure in turn["score_failures"]}
    assert failures == {f"quits{number}" for number in range(len(QUITS))}


@pytest.mark.parametrize("body", QUITS_EARLY.values(), ids=QUITS_EARLY)
def test_a_metric_that_cannot_be_made_is_the_authors_mistake(project: Project, body: str) -> None:
    with_metrics(project, body)
    done = project.call("run")
    done.refuses("agenteval.yaml:3:18", "m.py")
    assert done.out == ""


REFUSED = {
    "raise GeneratorExit": "GeneratorExit",
    "class Odd(BaseException): pass\nraise Odd": "Odd",
    "def __getattr__(n): raise SystemExit": "SystemExit",
    "class agent:\n    def __init__(self, x): pass\n    def __call__(self, m): return 'hi'": "agent(x)",
    "class agent:\n    def __call__(self): return 'hi'": "__call__()",
    "def agent(): return 'hi'": "agent()",
    "def agent(a, b, c): return 'hi'": "agent(a, b, c)",
    "def agent(messages, *, lang): return 'hi'": "agent(messages, *, lang)",
}


@pytest.mark.parametrize(("code", "fact"), REFUSED.items())
def test_an_agent_that_quits_or_cannot_be_called_is_a_mistake(project: Project, code: str, fact: str) -> None:
    project.config()
    project.agent(code)
    project.scenarios(SCENARIO)
    done = project.call("run")
    done.refuses("agenteval.yaml:1:20", fact)
    assert done.out == ""


UNREADABLE = """
import sys
class Exits:
    def __str__(self, **more): sys.exit(0)
    model_dump = __str__
def answer(m): return Exits()
def within(m): return {'content': 'NEVER', 'more': [Exits()]}
def argument(m, ctx): return ctx.call_tool_sync('t', {'x': [Exits()]})
async def awaited(m, ctx): return await ctx.call_tool('t', {'x': [Exits()]})
"""


def test_an_object_that_quits_when_it_is_read_is_the_agents_fault(project: Project) -> None:
    names = ("answer", "within", "argument", "awaited")
    project.agent(UNREADABLE)
    tools = "turns: [x], checks: none, tools: {t: {returns: NEVER}}"
    write_suite(project, names, dict.fromkeys(names, tools))
    assert project.run().code == 1
    for name in names:
        sample = project.sample(name)
        assert sample["stop"] == "agent_error"
        assert "SystemExit: 0" in sample["turns"][-1]["error"]


def test_a_mock_that_cannot_be_called_is_refused_before_anything_runs(project: Project) -> None:
    project.config()
    project.agent("def agent(m): return 'hi'")
    project.write("mocks.py", "def none(): pass\ndef three(a, b, c): pass\n")
    for name in ("none", "three"):
        text = f"cases: [{{id: {name}, input: x, tools: {{t: {{python: '../mocks.py:{name}'}}}}}}]"
        project.scenarios(text, f"scenarios/{name}.yaml")
    done = project.call("run")
    done.refuses("none.yaml:1", "none()")
    done.refuses("three.yaml:1", "three(a, b, c)")
    assert done.out == ""


def one(messages: Any) -> None: ...
def two(messages: Any, anything: Any) -> None: ...
def annotated(messages: Any, more: AgentContext | None = None) -> None: ...
@functools.wraps(one)
def wraps_one(*args: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (one, False),
        (two, True),
        (lambda messages, temperature=0.5: None, False),
        (lambda messages, ctx=None: None, True),
        (lambda messages, _context=None: None, True),
        (annotated, True),
        (lambda *messages: None, True),
        (wraps_one, False),
        (functools.partial(two, None), False),
    ],
)  # fmt: skip
def test_a_context_is_given_to_those_that_ask_for_it(function: Any, takes: bool) -> None:
    assert takes_context(function) is takes
    assert not find_signature_mismatch(function, 1 + takes)


def test_a_callable_without_a_signature_is_left_alone() -> None:
    assert takes_context(min)
    assert not find_signature_mismatch(min, 1)


def test_an_option_with_a_default_keeps_it(project: Project) -> None:
    project.config()
    project.agent("def agent(messages, temperature=0.5): return str(temperature)")
    project.scenarios("cases: [{id: a, input: x, expected_output_contains: ['0.5']}]")
    assert project.run().code == 0


def test_an_exception_is_described_by_what_it_was() -> None:
    assert describe_error(SystemExit("x")) == "SystemExit: x"
