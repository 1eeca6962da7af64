"""Objects of a framework that another package plays, by its adapter: the one of docs/frameworks.md."""

from __future__ import annotations

import sys

import pytest

from tests.support.toy import PLACES
from tests.support.kit import Project, failed_checks
from tests.support.toy import install_toy
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


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return f", interpreter: '{sys.executable}'" if request.param == "elsewhere" else ""


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


def target(project: Project, written: str, place: str) -> None:
    project.config(f"agent: {{name: bot, target: '{written}'{place}}}\nmetrics: []\n", target="")


def test_an_object_of_another_packages_framework_is_played_with_mocks(desks: Project, place: str) -> None:
    desks.scenarios(SUITE)
    target(desks, "agent.py:hasty", place)
    assert desks.run().code == 1
    assert failed_checks(desks.sample()) == {(1, "tool_calls")}
    for written in ("agent.py:careful", "agent.py:derived"):
        target(desks, written, place)
        done = desks.run()
        assert done.code == 0, done.all
    assert "(2)" in desks.sample()["turns"][1]["agent"]
    assert "Desk (desk 1)" in desks.call("validate").all


BROKEN = [
    ("gone = 1", "desk = no_such_module:Adapter", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("NOTHING = 3", "desk = broken:NOTHING", "TypeError: it has no name"),
    (
        "class Adapter:\n    def __init__(self, seam):\n        raise RuntimeError('no desk')",
        "desk = broken:Adapter",
        "RuntimeError: no desk",
    ),
    (
        "from desk_adapter import Adapter\n\n\nclass Blind(Adapter):\n    def matches(self, obj):\n"
        "        raise ValueError('cannot\\n see')",
        "desk = broken:Blind",
        "ValueError: cannot see",
    ),
]


@pytest.mark.parametrize(("code", "entry", "why"), BROKEN, ids=["gone", "nothing", "crash", "blind"])
def test_a_broken_adapter_is_named_for_its_own_objects_and_breaks_no_others(
    desks: Project, place: str, code: str, entry: str, why: str
) -> None:
    desks.write("broken.py", code)
    register(desks, entry)
    desks.scenarios(SIMPLE)
    target(desks, "agent.py:careful", place)
    done = desks.run()
    named = entry.partition(" = ")[2]
    said = f"the adapter for objects of desk ({named}) cannot be loaded: {why} — fix or uninstall"
    assert (done.code, said in done.err, "Traceback" in done.all) == (2, True, False), done.all
    for written in ("agent.py:plain", "agent.py:own"):
        target(desks, written, place)
        done = desks.run()
        assert (done.code, "desk" in done.all) == (0, False), done.all


def test_frameworks_do_without_the_broken_adapter_of_another(desks: Project, place: str) -> None:
    register(desks, "desk = no_such_module:Adapter")
    install_toy(desks)
    desks.agent("""
        from toy import Agent

        async def play(run, text):
            order = await run.call("get_order", id="A-7")
            return f"It is {order['status']}."

        def get_order(id):
            raise SystemExit("a real tool ran")

        agent = Agent(play, get_order)
    """)
    desks.scenarios(SIMPLE + "tools: {get_order: {returns: {status: shipped}}}\n")
    target(desks, "agent.py:agent", place)
    done = desks.run()
    assert done.code == 0, done.all
