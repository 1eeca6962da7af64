"""Questions that give away what the agent is to look up: the case C-05 of the article, and the same case
mended."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

CASE = """
id: limit
input: {input}
tools:
  plan:
    parameters: {{type: object, properties: {{name: {{type: string}}}}, required: [name]}}
    {plan}
  calculator:
    parameters: {{type: object, properties: {{expression: {{type: string}}}}, required: [expression]}}
    returns: "10000 / 30 = 333.33"
expected_tools: [plan, calculator]
expected_output_contains: ["10000", "333"]
"""
LEAKS = "What is the API call limit of Basic, and what is 10000 divided by 30?"
MENDED = "What is the API call limit of Basic, and what is that divided by 30?"
FIXED = "returns: {name: Basic, calls: 10000}"
PYTHON = "python: mocks.py:plan"
MOCKS = "def plan(args, ctx):\n    return {'name': args['name'], 'calls': 10000}\n"
AGENT = """
async def agent(messages, ctx):
    found = await ctx.call_tool("plan", {"name": "Basic"})
    await ctx.call_tool("calculator", {"expression": f"{found['calls']} / 30"})
    return "The limit is 10000, which is 333.33 a day."
"""
SHORTCUT = """
async def agent(messages, ctx):
    await ctx.call_tool("calculator", {"expression": "10000 / 30"})
    return "The limit is 10000, which is 333.33 a day."
"""


@pytest.fixture
def asked(project: Project) -> Project:
    project.config("metrics: []")
    project.write("scenarios/mocks.py", MOCKS)
    project.agent(AGENT)
    return project


def write_case(project: Project, question: str, plan: str) -> None:
    project.scenarios(CASE.format(input=question, plan=plan))


def warned(text: str) -> bool:
    """Check whether an output names the value, both tools and the line of the question."""
    words = " ".join(text.split())
    return all(part in words for part in ("gives away '10000'", "'plan'", "'calculator'", ".yaml:2)"))


@pytest.mark.parametrize(
    ("question", "plan", "before", "after"),
    [
        (LEAKS, FIXED, True, True),
        (LEAKS, PYTHON, False, True),  # what a Python mock answers is known once it was called
        (MENDED, FIXED, False, False),
        (MENDED, PYTHON, False, False),
    ],
)
def test_a_question_that_gives_the_look_up_away(
    asked: Project, question: str, plan: str, *, before: bool, after: bool
) -> None:
    write_case(asked, question, plan)
    validated = asked.call("validate")
    assert validated.code == 0, validated.all  # a warning, never an error
    assert warned(validated.err) is before
    ran = asked.run()
    assert ran.code == 0, ran.all
    assert warned(ran.out) is after
    assert warned(asked.call("report", "latest", "-v").out) is after


def test_the_agent_that_takes_the_shortcut_is_red_for_the_call_alone(asked: Project) -> None:
    asked.agent(SHORTCUT)
    write_case(asked, LEAKS, FIXED)
    ran = asked.run()
    assert ran.code == 1, ran.all
    assert warned(ran.out)
    sample = asked.sample()
    assert (sample["tool_accuracy"], sample["output_correct"]) == (0.5, True)
