"""What the figures of the screen count, and how they are rounded."""

from __future__ import annotations

from tests.support.kit import Project

AGENT = """
def agent(messages, ctx):
    known = ctx.tools  # asked for: that no call is made is then known
    if "Lyon" in messages[-1]["content"]:
        return "I do not know."
    return f"It is {ctx.call_tool_sync('get_weather', {})['temp']} degrees."
"""
SUITE = """
scenarios:
  - id: paris
    tools: &T {get_weather: {returns: {temp: 20}}}
    turns: [{user: Paris?, expect: &E {tool_calls: {calls: [{name: get_weather}]}, output: {contains: [20]}}}]
  - id: lyon
    tools: *T
    turns: [{user: Lyon?, expect: *E}]
"""


def row_of(screen: str, dimension: str) -> list[str]:
    line = next(line for line in screen.splitlines() if line.startswith(f"│ {dimension}"))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_columns_count_the_checks_of_their_rows_conversations_at_turns_too(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []")
    project.scenarios(SUITE)
    done = project.run()
    assert done.code == 1, done.all
    assert row_of(done.out, "Capability")[1:4] == ["1/2", "50.0%", "50.0%"]
    project.agent(AGENT.replace("Lyon", "Nowhere"))
    done = project.run()
    assert done.code == 0, done.all
    assert row_of(done.out, "Capability")[1:4] == ["2/2", "100.0%", "100.0%"]


CASES = """
cases:
  - {id: a, input: Paris?, expected_tools: [get_weather], tools: &T {get_weather: {returns: {temp: 20}}}}
  - {id: b, input: Nice?, expected_tools: [get_weather], tools: *T}
  - {id: c, input: Lyon?, expected_tools: [get_weather], tools: *T}
"""


def test_a_figure_differs_from_the_bound_that_it_broke(project: Project) -> None:
    project.agent(AGENT)
    project.scenarios(CASES)
    for bound, code in ((0.667, 1), (0.666, 0)):
        project.config(f"metrics: []\ngates: {{tool_accuracy: {bound}}}")
        done = project.run("--report", "markdown=report.md")
        assert done.code == code, done.all
        if code:
            assert "0.6667, bound 0.667" in done.out
            assert "0.6667" in (project.root / "report.md").read_text("utf-8")
