"""Python agents in an interpreter of their own: as in agenteval's process, with nothing of ours there."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval import agentside
from tests.front_door.test_commands import alive, wait_until
from tests.support import python_agents as zoo
from tests.support.kit import Project, failed_checks
from tests.support.suites import samples_of, write_suite

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

ROOM = Path(agentside.__file__).parent
AGENTSIDE = sorted(ROOM.rglob("*.py"))
FRAMEWORKS = [path for path in AGENTSIDE if path.relative_to(ROOM).parts[0] in ("frameworks", "hooks")]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment in which nothing is installed, not even pip."""
    folder = tmp_path_factory.mktemp("app") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin/python")


def config(project: Project, python: str, more: str = "", target: str = "app/shop.py:agent") -> None:
    agent = f"agent: {{name: bot, target: '{target}', interpreter: '{python}', timeout_s: 60{more}}}\n"
    project.config(agent, target="")


@pytest.mark.parametrize("path", AGENTSIDE, ids=lambda path: str(path.relative_to(ROOM)))
def test_what_runs_there_is_of_the_standard_library_and_of_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    # What knows a framework imports it where it is surely there: inside a function.
    for node in tree.body if path in FRAMEWORKS else ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


SHOP = """
import importlib.util, json, pathlib, sys

for name in ("agenteval", "pydantic", "anyio", "yaml", "aiohttp", "openai"):
    assert importlib.util.find_spec(name) is None, name
from helper import status_of            # beside it, as when Python runs it
print("the shop is open", flush=True)   # standard output is no part of the protocol
made = []

class Agent:
    def __init__(self):
        made.append(self)
        self.seen = []

    async def __call__(self, messages, ctx):
        said = messages[-1]["content"]
        self.seen.append(said)
        order = await ctx.call_tool("get_order", {"id": said})
        with pathlib.Path("record").open("a") as record:
            made_call = [ctx.scenario_id, ctx.epoch, ctx.turn, "get_order", {"id": said}]
            record.write(json.dumps(made_call) + "\\n")
        return f"{said} is {status_of(order)} ({len(self.seen)} of {len(made)} in {sys.prefix})"

agent = Agent
"""
HELPER = "def status_of(order):\n    return order.get('status', 'unknown')\n"
SUITE = """
scenarios:
- id: one
  turns:
  - {user: ORD-1, expect: {output: {contains: [shipped, 1 of]}}}
  - {user: ORD-2, expect: {output: {contains: [unknown, 2 of]}}}
  tools: {get_order: {sequence: [{returns: {status: shipped}}, {error: no such order}]}}
- id: two
  turns: [ORD-3]
  expect: {tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-3}}]}}
  tools: {get_order: {returns: {status: lost}}}
epochs: 2
"""


def test_a_bug_is_red_and_all_calls_are_the_agents_own(project: Project, python: str) -> None:
    project.write("app/shop.py", SHOP)
    project.write("app/helper.py", HELPER)
    project.scenarios(SUITE.replace("epochs: 2\n", "defaults: {epochs: 2}\n"))
    config(project, python)
    done = project.run()
    assert done.code == 0, done.all
    assert "the shop is open" not in done.out
    answers = [
        sample["turns"][0]["agent"] for each in project.results()["scenarios"] for sample in each["samples"]
    ]
    assert all(str(Path(python).parents[1]) in text for text in answers)
    assert sorted(calls(project)) == sorted((project.root / "record").read_text("utf-8").splitlines())

    # Of another length: within a second Python takes its compiled code of a file of the same size.
    project.write("app/helper.py", HELPER.replace("'unknown'", "'shipped'") + "# another version\n")
    assert project.run().code == 1
    one, two = project.results()["scenarios"]
    assert [failed_checks(sample) for sample in one["samples"]] == [{(1, "output.contains")}] * 2
    assert two["verdict"] == "passed"


def calls(project: Project) -> list[str]:
    """What a run has seen, as the agent writes it down."""
    return [
        json.dumps([each["id"], sample["epoch"], index, call["name"], call["args"]])
        for each in project.results()["scenarios"]
        for sample in each["samples"]
        for index, turn in enumerate(sample["turns"])
        for call in turn["tool_calls"]
    ]


EVERY = """

async def every(messages, ctx):
    import inspect
    agent = globals()[ctx.scenario_id]
    takes = len(inspect.signature(agent).parameters)
    answer = agent(messages, ctx) if takes > 1 else agent(messages)
    return await answer if inspect.isawaitable(answer) else answer
"""
OWN = ("text_sync", "pieces_async", "OnePerSample")


def test_every_agent_does_the_same_as_in_this_process(tmp_path: Path) -> None:
    """The functions of ``test_python_agents``: once here, once in a process of their own; three of them, one
    of a kind, as targets. Left out: what is made at the same time by chance, and what only takes long."""
    left_out = ("pieces", "fifty", "thousand")
    functions = [name for name in zoo.NAMES if name.islower() and not name.startswith(left_out)]
    functions = [name for name in functions if "thread" not in name]
    scenarios = dict.fromkeys(functions, "agent: every, turns: [one, two]")
    scenarios |= {f"own-{name}": f"agent: {name}, turns: [one, two]" for name in OWN}
    found = []
    for number, where in enumerate(("", f", interpreter: '{sys.executable}'")):
        project = Project(tmp_path / str(number))
        project.agent(zoo.AGENTS + EVERY)
        more = "unmocked_tools: empty\n"
        write_suite(project, ("every", *OWN), scenarios, where=where, config=more, defaults=zoo.TOOLS)
        project.write("scenarios/mocks.py", zoo.MOCKS)
        done = project.run("--seed", "1", "--concurrency", "1")
        assert done.code == 0, done.all
        found.append({name: timeless(sample) for name, sample in samples_of(project).items()})
    here, elsewhere = found
    assert list(here) == list(elsewhere)
    assert len(here) > 20
    for name in here:
        assert elsewhere[name] == here[name], name


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key != "latency_ms"}
    return [timeless(each) for each in value] if isinstance(value, list) else value


RAISES = """
import asyncio, os, socket, sys
class Down(Exception):
    status_code = 503
def raises(): raise ValueError("no luck")
def down(): raise Down("later")
def quits(): sys.exit(3)
def ends():
    print("fatal: out of paper", file=sys.stderr)
    os._exit(7)
def cancels(): raise asyncio.CancelledError
def odd(): return {1, 2}
def holds_itself():
    found = {"role": "assistant", "content": "x"}
    found["content"] = [found]
    return found
async def agent(messages, ctx): return globals()[ctx.scenario_id]()
"""
ERRORS = {
    "raises": ("agent_error", "ValueError: no luck (shop.py:4, in raises)"),
    "down": ("infrastructure", "Down: later (shop.py:5, in down)"),
    "quits": ("agent_error", "SystemExit: 3 (shop.py:6, in quits)"),
    "ends": ("agent_error", "7; its log: fatal: out of paper"),
    "cancels": ("agent_error", "cancelled"),
    "odd": ("agent_error", "set"),
    "holds_itself": ("agent_error", "nested"),
}


def test_an_exception_counts_as_it_does_here(project: Project, python: str) -> None:
    project.write("app/shop.py", RAISES)
    lines = (f"- {{id: {name}, turns: [x], checks: none}}\n" for name in ERRORS)
    project.scenarios("scenarios:\n" + "".join(lines))
    config(project, python)
    assert project.run("--concurrency", "2").code == 1
    for name, (stop, fact) in ERRORS.items():
        sample = project.sample(name)
        assert sample["stop"] == stop
        assert fact in sample["turns"][0]["error"], sample["turns"][0]["error"]


def test_a_process_that_hangs_is_ended_with_its_children(project: Project, python: str) -> None:
    project.write(
        "app/shop.py",
        """
        import os, subprocess, time
        def agent(messages, ctx):
            if ctx.epoch == 0:
                child = subprocess.Popen(["sleep", "600"])
                with open("pids", "w") as pids:
                    pids.write(f"{os.getpid()} {child.pid}")
                time.sleep(600)
            return f"process {os.getpid()}"
        """,
    )
    project.scenarios("id: a\nturns: [x]\nchecks: none\nepochs: 2\n")
    config(project, python, ", requests_per_minute: null")
    text = (project.root / "agenteval.yaml").read_text("utf-8").replace("timeout_s: 60", "timeout_s: 3")
    project.write("agenteval.yaml", text)
    assert project.run("--concurrency", "1").code == 1
    (scenario,) = project.results()["scenarios"]
    first, second = scenario["samples"]
    assert (first["stop"], second["stop"]) == ("agent_timeout", "script_done")
    pids = [int(pid) for pid in (project.root / "pids").read_text("utf-8").split()]
    assert second["turns"][0]["agent"] != f"process {pids[0]}"
    if Path("/proc/self").exists():
        wait_until(lambda: not alive(pids))


STATE = """
import os
seen = []
class Agent:
    def __init__(self): self.turns = 0
    def __call__(self, messages):
        self.turns += 1
        seen.append(1)
        return f"{os.getpid()} {self.turns} {len(seen)}"
"""


def test_a_kept_process_shares_its_module_and_not_its_instances(project: Project, python: str) -> None:
    project.write("app/shop.py", STATE)
    agent = f"target: 'app/shop.py:Agent', interpreter: '{python}', timeout_s: 60"
    twice = "turns: [x, y], checks: none, epochs: 2"
    agents = {"kept": agent, "fresh": f"{agent}, keep: false"}
    write_suite(project, agents, dict.fromkeys(agents, twice))
    assert project.run("--concurrency", "1").code == 0
    for scenario in project.results()["scenarios"]:
        is_kept = scenario["id"] == "kept"
        found = [turn["agent"].split() for sample in scenario["samples"] for turn in sample["turns"]]
        assert [turns for _, turns, _ in found] == ["1", "2", "1", "2"]
        assert [seen for *_, seen in found] == (["1", "2", "3", "4"] if is_kept else ["1", "2", "1", "2"])
        assert len({process for process, *_ in found}) == (1 if is_kept else 2)


ENDS = """
import os
class Agent:
    def __call__(self, messages):
        self.asked = messages[-1]["content"]
        return self.asked
    def __del__(self):
        if self.asked in BREAKS:
            os.kill(os.getpid(), 11)
"""


def test_a_process_that_breaks_after_a_conversation_fails_it(project: Project, python: str) -> None:
    """What it does to end the conversation is a part of it. The next one gets another process."""
    each = "{id: %s, turns: [{user: %s, expect: {output: {contains: [%s]}}}]}"
    project.scenarios("scenarios: [" + ", ".join(each % (id, id, id) for id in "abcde") + "]")
    config(project, python, target="app/shop.py:Agent")
    project.write("app/shop.py", ENDS.replace("BREAKS", "'ace'"))  # the first, one between, the last
    for options in (["--concurrency", "1"], []):
        done = project.run(*options)
        assert done.code == 1, done.all
        verdicts = {each["id"]: each["verdict"] for each in project.results()["scenarios"]}
        assert verdicts == {each: "failed" if each in "ace" else "passed" for each in "abcde"}
        assert all("SIGSEGV" in project.sample(each)["turns"][0]["error"] for each in "ace")
    project.write("app/shop.py", ENDS.replace("BREAKS", "''"))
    assert project.run().code == 0


def test_a_late_call_of_a_conversation_is_not_made_in_the_next(project: Project, python: str) -> None:
    project.write(
        "app/shop.py",
        """
        import asyncio
        tasks, before = [], []
        async def later(ctx):
            while len(before) < 2:
                await asyncio.sleep(0.01)
            await ctx.call_tool("pay", {})
        async def agent(messages, ctx):
            before.append(ctx.epoch)
            if ctx.epoch == 0:
                tasks.append(asyncio.ensure_future(later(ctx)))
                return "later"
            await asyncio.wait(tasks)
            return f"cancelled: {tasks[0].cancelled()}"
        """,
    )
    project.scenarios("""
        id: a
        turns: [x]
        expect: {tool_calls: {forbidden: [{name: pay}]}}
        tools: {pay: {returns: paid}}
        epochs: 2
    """)
    config(project, python, ", calls: all")
    assert project.run("--concurrency", "1").code == 0
    (scenario,) = project.results()["scenarios"]
    assert [sample["turns"][0]["agent"] for sample in scenario["samples"]] == ["later", "cancelled: True"]


OLD = """#!/bin/sh
exec {python} -c '
import sys
path, sys.argv = sys.argv[1], sys.argv[1:]
sys.version_info = (3, 7, 2)
exec(compile(open(path).read(), path, "exec"))
' "$@"
"""


REFUSED = [
    # the interpreter (that of the environment if none is given), the target, and what is named
    ("", "app/shop.py:agnt", "'bot'", "'app/shop.py'", "'agnt'", "'agent'"),
    ("", "app/none.py:agent", "'app/none.py'"),
    ("", "none:agent", "'none'", "install"),
    ("", "app/broken.py:agent", "'bot'", "'app/broken.py'", "ModuleNotFound"),
    ("", "app/quits.py:agent", "'app/quits.py'", "SystemExit: no key (quits.py:2"),
    ("", "app/ends.py:agent", "9; its log: fatal: no paper"),
    ("", "app/shop.py:number", "int"),
    ("", "app/shop.py:three", "three(a, b, c)"),
    ("app/.venv", "app/shop.py:agent", "'app/.venv'"),
    ("ENV", "app/shop.py:agent", "'ENV'", "ENV/bin/python"),
    ("no-python", "app/shop.py:agent", "'no-python'", "path"),
    ("./app/shop.py", "app/shop.py:agent", "'./app/shop.py'", "executed"),
    ("/bin/false", "app/shop.py:agent", "'/bin/false'", "1"),
    ("./old", "app/shop.py:agent", "'./old'", "Python 3.7", "Python 3.8"),
]


@pytest.mark.parametrize(("interpreter", "target", "facts"), [(i, t, facts) for i, t, *facts in REFUSED])
def test_what_cannot_be_played_ends_the_run_before_it_begins(
    interpreter: str, target: str, facts: list[str], project: Project, python: str
) -> None:
    files = {
        "shop": "number = 3\ndef agent(messages): return 'hi'\ndef three(a, b, c): pass\n",
        "broken": "import no_such_package\n",
        "quits": "import sys\nsys.exit('no key')\n",
        "ends": "import os\nos.write(2, b'fatal: no paper')\nos._exit(9)\n",
    }
    for name, code in files.items():
        project.write(f"app/{name}.py", code)
    project.write("old", OLD.format(python=python)).chmod(0o755)
    folder = str(Path(python).parents[1])
    project.scenarios("id: a\nturns: [x]\nchecks: none\n")
    config(project, interpreter.replace("ENV", folder) or python, target=target)
    project.run().refuses("agenteval.yaml:2", *(fact.replace("ENV", folder) for fact in facts))


def test_the_environments_of_both_are_kept_apart(project: Project, python: str) -> None:
    """What is importable for agenteval is not for the agent, whatever the agent's folder is called."""
    project.write("app/shop.py", "import sys\ndef agent(m): return ' '.join(sys.path + sys.argv)\n")
    project.scenarios("id: a\nturns: [x]\nchecks: none\n")
    config(project, python)
    assert project.run().code == 0
    answers = project.sample()["turns"][0]["agent"]
    ours = Path(agentside.__file__).parent
    assert str(ours.parent) + os.sep not in answers.replace(str(ours / "start.py"), "")
    assert str(project.root / "app") in answers
