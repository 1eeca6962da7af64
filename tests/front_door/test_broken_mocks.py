"""The author's own Python, agents and mocks: what cannot be loaded, and mocks that break or return what
JSON cannot hold."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kit import Project

BROKEN_MODULES = {  # a target, its file's text, and what is named where it cannot be loaded
    "missing.py:agent": ("", "'missing.py'"),
    "typo.py:agnet": ("agent = lambda m: 'hi'", "'agent'"),
    "colon.py": ("", "'colon.py'"),
    "no_such_package.bot:agent": ("", "'no_such_package.bot'"),
    "number.py:agent": ("agent = 5", "number.py:agent"),
    "raises.py:agent": ("raise ValueError('at import')", "ValueError: at import (raises.py:1"),
    "exits.py:agent": ("import sys; sys.exit(0)", "SystemExit"),
    "syntax.py:agent": ("def agent(m)\n    pass", "SyntaxError: expected ':' (syntax.py:1)"),
    "imports.py:agent": ("import no_such_library", "'no_such_library'"),
    "binary.py:agent": ("agent = '\0'", "'binary.py'"),
    "folder/:agent": ("", "'folder/'"),
}


def test_every_target_that_cannot_be_loaded_is_refused_at_its_place(project: Project) -> None:
    project.config()
    project.agent("agent = lambda m: 'hi'")
    lines = ["cases:"]
    for target, (code, _) in BROKEN_MODULES.items():
        if code:
            project.write(f"scenarios/{target.partition(':')[0]}", code)
        lines.append(f"  - {{id: '{target}', input: hello, tools: {{t: {{python: '{target}'}}}}}}")
    project.scenarios("\n".join(lines))
    done = project.call("run")
    assert done.out == ""
    for number, (_, fact) in enumerate(BROKEN_MODULES.values(), start=2):
        assert len([line for line in done.err.splitlines() if f"suite.yaml:{number}:" in line]) == 1
        done.refuses("agenteval", f"suite.yaml:{number}:", fact)
    assert not (project.root / ".agenteval").exists()


@pytest.mark.parametrize(
    ("code", "fact"),
    [
        ("import sys; sys.exit(0)", "SystemExit"),
        ("def agent(m)\n    pass", "SyntaxError: expected ':' (agent.py:1)"),
        ("agent = 5", "int"),
    ],
)
def test_an_agent_that_cannot_be_loaded_is_refused_at_its_place(
    project: Project, code: str, fact: str
) -> None:
    project.config()
    project.agent(code)
    project.scenarios("cases: [{id: x, input: hello}]")
    done = project.call("run")
    done.refuses("agenteval.yaml:1", fact)
    assert done.out == ""


def test_all_agents_that_cannot_be_loaded_are_reported(project: Project) -> None:
    project.write("agenteval.yaml", "metrics: []\nagents: {a: {target: 'a.py:f'}, b: {target: 'b.py:f'}}")
    project.scenarios("cases: [{id: x, agent: a, input: hello}, {id: y, agent: b, input: hello}]")
    done = project.call("run")
    for name in "ab":
        done.refuses("agenteval.yaml:2", f"'{name}.py'")


def test_siblings_packages_and_prints_at_import(project: Project) -> None:
    project.config(target="bots/agent.py:agent")
    project.write("bots/agent.py", "import sibling\nprint('at import')\nagent = lambda m: sibling.text()")
    project.write("bots/sibling.py", "from shared.words import text")
    project.write("shared/words.py", "def text(): return 'from beside the configuration'")
    project.scenarios("cases: [{id: x, input: hello, expected_output_contains: [beside]}]")
    assert project.run().code == 0


def test_what_an_agent_prints_is_not_among_the_results(project: Project) -> None:
    project.config("reporters: ['json=-']")
    project.agent("print('at import')\ndef agent(m):\n    print('{\"in\": \"a turn\"')\n    return 'hi'")
    project.scenarios("cases: [{id: x, input: hello}]")
    done = project.call("run")
    assert done.code == 0
    assert done.out.startswith("{\n")
    assert "a turn" not in done.out
    assert "at import" in done.err


RESULTS: dict[str, tuple[str, Any]] = {
    "plain": ("{'a': [1, None, True]}", {"a": [1, None, True]}),
    "nothing": ("None", None),
    "set": ("{1}", [1]),
    "tuple": ("(1, 2)", [1, 2]),
    "date": ("datetime.date(2026, 1, 2)", "2026-01-02"),
    "path": ("Path('a/b')", "a/b"),
    "decimal": ("[Decimal('1.50')]", ["1.50"]),
    "dataclass": ("Point(1)", {"x": 1}),
    "surrogate": ("'lone \\ud800'", "lone \ufffd"),
    "5 MB": ("'x' * 5_000_000", "x" * 5_000_000),
}
UNUSABLE = {
    "nan": "float('nan')",
    "circular": "circular",
    "very deep": "deep",
    "odd keys": "{(1, 2): 3}",
    "huge number": "10 ** 5000",
    "an object": "object()",
    "a class with a repr": "{'order': Shown()}",
    "a generator": "(x for x in [1])",
    "bytes": "b'raw'",
    "bytes in a dataclass": "Point(b'raw')",
    "views of a mapping": "[{'a': 1}.values()]",
    "a coroutine within": "[sleep(0)]",
    "raises": "1 / 0",
    "exits": "sys.exit(0)",
    "never returns": "time.sleep(600)",
}
MOCKS = """
import datetime, sys, time
from asyncio import sleep
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
class Shown:
    def __repr__(self): return 'Shown()'
@dataclass
class Point: x: int
circular = {}; circular['x'] = circular
deep = []
for _ in range(100_000): deep = [deep]
"""


@pytest.fixture(scope="module")
def mocked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any]]:
    """One run with a scenario for each mock."""
    project = Project(tmp_path_factory.mktemp("mocks"))
    # A mock has as long as the slowest agent.
    project.write("agenteval.yaml", "metrics: []\nagent: {target: 'agent.py:agent', timeout_s: 2}")
    project.agent(
        """
        def agent(m):
            if m[-1]['role'] == 'tool':
                return 'done'
            return {'tool_calls': [{'function': {'name': 't', 'arguments': '{}'}}]}
        """
    )
    code, lines = [MOCKS], ["scenarios:"]
    values = {name: value for name, (value, _) in RESULTS.items()} | UNUSABLE
    for number, (name, value) in enumerate(values.items()):
        code.append(f"def f{number}(args, ctx): return {value}")
        lines.append(
            f"  - {{id: '{name}', turns: [hello], checks: none, tools: {{t: {{python: 'm.py:f{number}'}}}}}}"
        )
    project.write("scenarios/m.py", "\n".join(code))
    project.scenarios("\n".join(lines))
    done = project.run()
    return done, {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}


def test_a_broken_mock_is_the_authors_error_and_the_other_samples_finish(mocked: Any) -> None:
    done, samples = mocked
    assert done.code == 2
    assert set(samples) == {*RESULTS, *UNUSABLE}
    assert "switched off" not in done.err  # the journal


@pytest.mark.parametrize("name", RESULTS)
def test_a_mocks_result_becomes_json(mocked: Any, name: str) -> None:
    sample = mocked[1][name]
    assert sample["verdict"] == "passed"
    assert sample["turns"][0]["tool_calls"][0]["result"] == RESULTS[name][1]


TYPES = {"a generator": "generator", "a class with a repr": "Shown", "bytes in a dataclass": "bytes"}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_result_that_json_cannot_hold_is_the_authors_error(mocked: Any, name: str) -> None:
    sample = mocked[1][name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("inconclusive", "author", "author_error")
    error = sample["turns"][0]["error"]
    assert all(fact in error for fact in ("'t'", "suite.yaml:", TYPES.get(name, "")))


THROUGH_CTX = {
    "async": "async def agent(m, ctx): return str(await ctx.call_tool('t'))",
    "sync": "def agent(m, ctx): return str(ctx.call_tool_sync('t'))",
    "at once": """
        import asyncio
        async def agent(m, ctx):
            return str(await asyncio.gather(*(ctx.call_tool('t') for _ in range(3))))
        """,
    "caught": """
        async def agent(m, ctx):
            try: return str(await ctx.call_tool('t'))
            except BaseException: return 'sorry'
        """,
}
HANGING_MOCKS = {
    "in a thread": "import time\ndef t(args): time.sleep(600)\n",
    "in a coroutine": "import asyncio\nasync def t(args): await asyncio.sleep(600)\n",
    "on the event loop": "import time\nasync def t(args): time.sleep(600)\n",
}


@pytest.mark.parametrize("mock", HANGING_MOCKS)
def test_a_mock_that_hangs_is_no_fault_of_the_agent_that_awaits_it(project: Project, mock: str) -> None:
    agents, lines = [], []
    for number, (name, code) in enumerate(THROUGH_CTX.items()):
        project.write(f"agent{number}.py", code)
        agents.append(f"'{name}': {{target: 'agent{number}.py:agent', timeout_s: 0.3}}")
        lines.append(f"- {{id: '{name}', agent: '{name}'}}")
    project.write("agenteval.yaml", f"metrics: []\nagents: {{{', '.join(agents)}}}\n")
    project.write("scenarios/m.py", HANGING_MOCKS[mock])
    defaults = "defaults: {turns: [hello], checks: none, tools: {t: {python: 'm.py:t'}}}"
    project.scenarios("\n".join([defaults, "scenarios:", *lines]) + "\n")
    assert project.run().code == 2
    for name in THROUGH_CTX:
        sample = project.sample(name)
        assert (sample["verdict"], sample["fault"]) == ("inconclusive", "author")
        assert all(fact in sample["turns"][0]["error"] for fact in ("'t'", "0.3 s"))


def test_what_mocks_take_is_not_the_agents_time(project: Project) -> None:
    project.write("agenteval.yaml", "metrics: []\nagent: {target: 'agent.py:agent', timeout_s: 2}")
    project.agent(
        """
        import asyncio
        async def agent(m, ctx):
            for _ in range(8):
                await ctx.call_tool('t')
            if ctx.scenario_id == 'hangs':
                await asyncio.sleep(600)
            return 'done'
        """
    )
    project.write("scenarios/m.py", "import time\ndef t(args): time.sleep(0.3)\n")
    project.scenarios(
        "defaults: {turns: [hello], checks: none, tools: {t: {python: 'm.py:t'}}}\n"
        "scenarios: [{id: slow}, {id: hangs}]\n"
    )
    assert project.run().code == 1
    assert project.sample("slow")["verdict"] == "passed"
    assert project.sample("slow")["latency_ms"] > 8 * 300
    assert project.sample("hangs")["stop"] == "agent_timeout"
