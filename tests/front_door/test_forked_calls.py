"""Tools that a forked child of the agent calls: they do not run, and the turn is not fully seen."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")

AGENT = """
import os

def get_order(id):
    open("ran", "a").close()
    return "real"

def agent(message: str) -> str:
    if message == "fork":
        child = os.fork()
        if not child:
            try:
                get_order("1")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return "Done."
    return get_order("1")
"""
SCENARIO = """
id: a
turns: [{MESSAGE}]
tools: {{get_order: {{returns: shipped}}}}
expect: {{tool_calls: {{forbidden: [{{name: get_order}}]}}}}
"""


@pytest.mark.parametrize(("message", "exit_code"), [("fork", 3), ("here", 1)])
def test_a_call_in_a_forked_process_hangs_nothing_and_proves_nothing(
    project: Project, message: str, exit_code: int
) -> None:
    project.agent(AGENT)
    intercept = "intercept: {get_order: 'agent.py:get_order'}"
    project.config(f"agent: {{name: bot, target: 'agent.py:agent', timeout_s: 60, {intercept}}}\n", target="")
    project.scenarios(SCENARIO.format(MESSAGE=message))
    done = project.run()
    assert done.code == exit_code, done.all
    assert not (project.root / "ran").exists()
