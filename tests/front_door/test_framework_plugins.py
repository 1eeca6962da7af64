"""Objects of a framework that another package plays, by its adapter: the one of docs/frameworks.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.toy import PLACES, TOY_TOOLS, install_toy
from tests.test_docs import blocks

DESK = """
class Desk:
    def __init__(self, play, *tools):
        self.play, self.tools = play, {tool.__name__: tool for tool in tools}

    def __call__(self, text):
        raise SystemExit("it was called as a function")
"""
AGENT = """
from desk import Desk

async def get_order(id):
    raise SystemExit("a real tool ran")

async def cancel_order(id):
    raise SystemExit("a real tool ran")

async def hastily(text, call, memory):
    memory.append(text)
    if "cancel" in text:
        await call("cancel_order", id="A-7")
        return "It is cancelled."
    order = await call("get_order", id="A-7")
    return f"It is {order['status']} ({len(memory)})."

async def carefully(text, call, memory):
    memory.append(text)
    order = await call("get_order", id="A-7")
    return f"It is {order['status']} ({len(memory)})."

hasty = Desk(hastily, get_order, cancel_order)
careful = Desk(carefully, get_order, cancel_order)
derived = type("OwnDesk", (Desk,), {})(carefully, get_order, cancel_order)

def plain(text):
    return "It is shipped."

class Own:
    def __call__(self, text):
        return "It is shipped."

own = Own()
"""
SUITE = """
id: cancel
turns:
  - {user: Where is my order?, expect: {output: {contains: ["shipped (1)"]}}}
  - {user: Then cancel it., expect: {tool_calls: {match: strict, calls: [{name: get_order}]}}}
tools:
  get_order: {returns: {status: shipped}}
  cancel_order: {returns: {cancelled: true}}
"""
SIMPLE = "id: s\nturns: [Where is my order?]\nexpect: {output: {contains: [shipped]}}\n"


@pytest.fixture
def desks(project: Project) -> Project:
    found = blocks("docs/frameworks.md")
    (entry,) = (each.text.splitlines()[1].replace('"', "") for each in found if each.kind == "toml")
    adapter = next(each.text for each in found if each.file == "desk_adapter.py")
    project.write("desk.py", DESK)
    project.write("desk_adapter.py", adapter)
    register(project, entry)
    project.agent(AGENT)
    return project


def register(project: Project, entry: str) -> None:
    project.write("desk-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: desk\nVersion: 1\n")
    project.write("desk-1.dist-info/entry_points.txt", f"[agenteval.frameworks]\n{entry}\n")


def play(project: Project, where: str, *targets: str) -> Done:
    """The scenario of the suite with each of the targets."""
    agents = "".join(f"- {{name: {each}, target: 'agent.py:{each}'{where}}}\n" for each in targets)
    project.config(f"compare:\n{agents}metrics: []\n", target="")
    return project.run()


def samples(project: Project) -> dict[str, Any]:
    return {each["agent"]: each["samples"][0] for each in project.results()["scenarios"]}


@pytest.mark.parametrize("where", PLACES)
def test_an_object_of_another_packages_framework_is_played_with_mocks(desks: Project, where: str) -> None:
    desks.scenarios(SUITE)
    done = play(desks, where, "hasty", "careful", "derived")
    assert done.code == 1, done.all
    failed = {name: failed_checks(sample) for name, sample in samples(desks).items()}
    assert failed == {"hasty": {(1, "tool_calls")}, "careful": set(), "derived": set()}
    assert "(2)" in samples(desks)["derived"]["turns"][1]["agent"]
    assert "Desk (desk 1)" in desks.call("validate").all


LOOKS_UP = """
async def play(run, text):
    order = await run.call("get_order", id="A-7")
    return f"It is {order['status']}."

agent = Agent(play, get_order)
"""
BLIND = """
from desk_adapter import Adapter

class Blind(Adapter):
    def matches(self, obj):
        raise ValueError('cannot\\n see')
"""
CRASHES = """
class Adapter:
    def __init__(self, seam):
        raise RuntimeError('no desk')
"""
BROKEN = {
    "gone": ("", "no_such_module:Adapter", "ModuleNotFoundError: No module named 'no_such_module'"),
    "nothing": ("NOTHING = 3", "broken:NOTHING", "TypeError"),
    "crash": (CRASHES, "broken:Adapter", "RuntimeError: no desk"),
    "blind": (BLIND, "broken:Blind", "ValueError: cannot see"),
}


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(("code", "entry", "why"), BROKEN.values(), ids=BROKEN)
def test_a_broken_adapter_is_named_for_its_own_objects_and_breaks_no_others(
    desks: Project, where: str, code: str, entry: str, why: str
) -> None:
    desks.write("broken.py", code)
    register(desks, f"desk = {entry}")
    desks.scenarios(SIMPLE)
    play(desks, where, "careful").refuses("agenteval.yaml:2", "desk", f"({entry})", why)
    done = play(desks, where, "plain", "own")
    assert (done.code, "desk" in done.all) == (0, False), done.all


@pytest.mark.parametrize("where", PLACES)
def test_frameworks_do_without_the_broken_adapter_of_another(desks: Project, where: str) -> None:
    register(desks, "desk = no_such_module:Adapter")
    install_toy(desks)
    desks.agent(TOY_TOOLS + LOOKS_UP)
    desks.scenarios(SIMPLE + "tools: {get_order: {returns: {status: shipped}}}\n")
    done = play(desks, where, "agent")
    assert done.code == 0, done.all
