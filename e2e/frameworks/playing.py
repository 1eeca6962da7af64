"""What the tests of several frameworks share: one scenario with an agent whose model does what the user says,
and what came of it. ``get_order({"id": "1"}); refund({"id": "2"})`` are two calls at once."""

from __future__ import annotations

from tests.support.kit import Done, Project

CHECKED = "expect: {output: {not_contains: [nonsense]}}\n"
SHIPPED = "{get_order: {returns: {status: shipped}}, refund: {returns: done}}"
ORDER = 'get_order({"id": "1"})'
BOTH = ORDER + '; refund({"id": "2"})'


def play(project: Project, code: str, turns: list[str], more: str = "", tools: str = SHIPPED) -> Done:
    project.agent(code)
    project.config(more)
    listed = "".join(f"  - {said!r}\n" for said in turns)
    project.scenarios(f"id: it\nturns:\n{listed}tools: {tools}\n{CHECKED}")
    return project.run()


def play_two(project: Project, code: str) -> Done:
    """Two conversations at once, in which an order has another status: that of their ids."""
    project.agent(code)
    project.config()
    for name in ("early", "late"):
        project.scenarios(
            f"id: {name}\nturns: ['{ORDER}', hello]\n{CHECKED}"
            f"tools: {{get_order: {{returns: {{status: {name}}}}}, refund: {{returns: done}}}}\n",
            f"scenarios/{name}.yaml",
        )
    return project.run()


def ran(project: Project) -> list[str]:
    """The real tools that ran."""
    path = project.root / "ran"
    return path.read_text().split() if path.exists() else []


def answers(project: Project, scenario: str = "it") -> list[str]:
    return [turn["agent"] for turn in project.sample(scenario)["turns"]]


def calls(project: Project, turn: int = 0) -> list[tuple[str, dict[str, object], str]]:
    """Of the tool calls of a turn, the name, the arguments and the agent."""
    told = project.sample()["turns"][turn]["tool_calls"]
    return [(call["name"], call["args"], call.get("agent", "")) for call in told]
