"""Agents that would take the whole run with them: end it, hang it, or silence its journal."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from agent_zoo import HEAD, Bad, cases, run_all
from kit import Project

GOOD = "def agent(m): return 'hi'"

ENDS_THE_RUN = "a BaseException in the agent's code ends the whole run, with a traceback and exit 1"
OUTLIVED = {
    "keyboard interrupt": Bad("def agent(m): raise KeyboardInterrupt", wrong=ENDS_THE_RUN),
    "base exception": Bad(
        "class Odd(BaseException): pass\ndef agent(m): raise Odd('odd')", says="Odd", wrong=ENDS_THE_RUN
    ),
    "base exception in async": Bad(
        "class Odd(BaseException): pass\nasync def agent(m): raise Odd('odd')", says="Odd", wrong=ENDS_THE_RUN
    ),
    "constructor exits": Bad(
        "class agent:\n    def __init__(self): sys.exit(0)\n    def __call__(self, m): return 'hi'",
        says="SystemExit",
        wrong=ENDS_THE_RUN,
    ),
    "cancelled": Bad(
        "async def agent(m): raise asyncio.CancelledError",
        wrong="CancelledError in the agent's code is told as 'the run was interrupted', inconclusive",
    ),
    "cancels itself": Bad(
        "async def agent(m):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(9)",
        wrong="an agent that cancels its task is told as 'the run was interrupted', inconclusive",
    ),
}
NEVER_ENDING = {
    "hangs, cancelled in vain": Bad(
        """
        async def agent(m):
            while True:
                try: await asyncio.sleep(0.05)
                except BaseException: pass
        """,
        "agent_timeout",
        wrong="an async agent that swallows its cancellation in a loop hangs the run for ever",
    ),
    "hangs, errors of tools caught": Bad(
        """
        async def agent(m, ctx):
            while True:
                try: await ctx.call_tool('t')
                except Exception: pass
        """,
        "tool_loop",
        wrong="after 1,000 calls ctx.call_tool raises without awaiting: the event loop is blocked for ever",
    ),
    "hangs in a thread of asyncio": Bad(
        "async def agent(m): await asyncio.to_thread(time.sleep, 600)",
        "agent_timeout",
        wrong="the end of the run waits for asyncio.to_thread before it writes any report",
    ),
    "hangs in an executor": Bad(
        """
        def agent(m):
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor() as pool: return pool.submit(time.sleep, 600).result()
        """,
        "agent_timeout",
        wrong="the process does not end before the threads of the agent's ThreadPoolExecutor do",
    ),
    "hangs in its constructor": Bad(
        "class agent:\n    def __init__(self): time.sleep(600)\n    def __call__(self, m): return 'hi'",
        "agent_timeout",
        wrong="a class is made on the event loop, without a timeout",
    ),
}


def _outlived() -> list[Any]:
    # Those that hang are not run at all while they do: each would take the whole time limit.
    return cases(OUTLIVED) + [
        pytest.param(name, bad, marks=pytest.mark.xfail(run=False, reason=bad.wrong) if bad.wrong else ())
        for name, bad in NEVER_ENDING.items()
    ]


@pytest.mark.parametrize(("name", "bad"), _outlived())
def test_no_agent_ends_or_outlives_the_run(project: Project, name: str, bad: Bad) -> None:
    ran = run_all(project, {name: bad.code, "good": GOOD})
    assert ran.done.code == 1
    assert ran.samples["good"]["verdict"] == "passed"
    sample = ran.samples[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", bad.stop)
    assert bad.says in sample["turns"][-1]["error"]


@pytest.mark.xfail(reason="SystemExit of a background task becomes agenteval's exit code: green, no report")
def test_an_agent_cannot_choose_the_exit_code(project: Project) -> None:
    code = """
        async def agent(m):
            async def leave(): sys.exit(0)
            kept.append(asyncio.create_task(leave()))
            await asyncio.sleep(0.05)
            return ''
    """
    project.write("agents.py", HEAD + textwrap.dedent(code))
    project.config(target="agents.py:agent")
    project.scenarios("cases: [{id: x, input: hello, expected_output_contains: [never]}]")
    assert project.run().code == 1
    assert (project.root / "results.json").is_file()


UNSERIALIZABLE = {
    "half a surrogate pair": "def agent(m): return 'lone \\ud800 here'",
    "half a pair in arguments": "def agent(m, ctx): return str(ctx.call_tool_sync('t', {'\\ud800': '\\udfff'}))",
    "half a pair in an error": "def agent(m): raise ValueError('\\ud800')",
    "an object in an unknown field": "def agent(m): return {'content': 'hi', 'more': object()}",
    "an endless unknown field": "def agent(m):\n    x = {'content': 'hi'}; x['x'] = x\n    return x",
    "deep arguments": "def agent(m, ctx): ctx.call_tool_sync('t', '{\"x\":' + '[' * 500 + ']' * 500 + '}')",
}


@pytest.mark.xfail(raises=AssertionError, reason="what JSON cannot hold switches the journal off; exit stays")
def test_no_agent_switches_the_journal_off(project: Project) -> None:
    ran = run_all(project, UNSERIALIZABLE | {"good": GOOD})
    assert "switched off" not in ran.done.err
    assert ran.journal[-1]["type"] == "run_finished"
    assert {e["key"]["scenario"] for e in ran.journal if e["type"] == "sample_finished"} == set(ran.samples)
