"""Python agents that break in every way we could think of: each fails for its own reason, alone."""

from __future__ import annotations

import pytest

from tests.support.agent_zoo import Bad, Zoo, run_all
from tests.support.kit import Project, failed_checks


def calls_with(arguments: str) -> str:
    """An agent that only ever calls a tool."""
    return (
        f"def agent(m): return {{'tool_calls': [{{'function': {{'name': 't', 'arguments': {arguments}}}}}]}}"
    )


BROKEN = {
    # what it raises
    "raises": Bad("def agent(m): raise ValueError('boom')", says="ValueError: boom (agents.py:"),
    "asserts": Bad("def agent(m): assert m == 5", says="AssertionError"),
    "exits": Bad("def agent(m): sys.exit(3)", says="SystemExit: 3"),
    "exits with nothing": Bad("def agent(m): sys.exit()", says="SystemExit"),
    "exits in async": Bad("async def agent(m): sys.exit(0)", says="SystemExit: 0"),
    "group": Bad("def agent(m): raise ExceptionGroup('two', [ValueError('one')])", says="ValueError: one"),
    "recursion": Bad("def agent(m): return agent(m)", says="RecursionError"),
    "memory": Bad("def agent(m): raise MemoryError", says="MemoryError"),
    "stop iteration": Bad("def agent(m): raise StopIteration", says="StopIteration"),
    "own timeout": Bad("def agent(m): raise TimeoutError('mine')", stop="agent_timeout", says="mine"),
    "no text of its own": Bad(
        """
        class Mute(Exception):
            def __str__(self): raise RuntimeError('no text')
        def agent(m): raise Mute
        """,
        says="Mute",
    ),
    "evil status": Bad(
        """
        class Evil(Exception):
            @property
            def status_code(self): raise RuntimeError('evil')
        def agent(m): raise Evil('x')
        """,
        says="Evil",
    ),
    "status is a list": Bad("def agent(m): raise Status([503])", says="Status"),
    "status is text": Bad("def agent(m): raise Status('503')", says="Status"),
    "constructor raises": Bad(
        """
        class agent:
            def __init__(self): raise RuntimeError('not today')
            def __call__(self, m): return 'hi'
        """,
        says="RuntimeError: not today (agents.py:",
    ),
    # what it returns
    "number": Bad("def agent(m): return 42", says="int"),
    "truth": Bad("def agent(m): return True", says="bool"),
    "bytes": Bad("def agent(m): return b'hi'", says="bytes"),
    "set": Bad("def agent(m): return {'hi'}", says="set"),
    "generator of numbers": Bad("def agent(m): yield 1", says="int"),
    "generator that breaks": Bad("async def agent(m):\n    yield 'hi'\n    1 / 0", says="ZeroDivisionError"),
    "function": Bad("def agent(m): return lambda: 'hi'", says="function"),
    "empty mapping": Bad("def agent(m): return {}", says="mapping"),
    "other mapping": Bad("def agent(m): return {'answer': 'hi'}", says="answer"),
    "numbers in a list": Bad("def agent(m): return [1, 2]", says="int"),
    "texts in a list": Bad("def agent(m): return ['hi']", says="str"),
    "a message with slots": Bad(
        """
        class Slotted:
            __slots__ = ("role", "content")
        def agent(m):
            said = Slotted()
            said.role, said.content = "assistant", "hi"
            return said
        """,
        says="Slotted",
    ),
    "a list of messages with properties": Bad(
        """
        class Proper:
            role = property(lambda self: "assistant")
            content = property(lambda self: "hi")
        def agent(m): return [Proper()]
        """,
        says="{'role': m.role, 'content': m.content}",
    ),
    "content is a number": Bad("def agent(m): return {'content': 5}", says="int"),
    "content is bytes": Bad("def agent(m): return {'content': b'hi'}", says="bytes"),
    "calls are text": Bad("def agent(m): return {'tool_calls': 'abc'}", says="str"),
    "calls are a number": Bad("def agent(m): return {'tool_calls': 7}", says="tool"),
    "calls are true": Bad("def agent(m): return {'tool_calls': True}", says="tool"),
    "call is a number": Bad("def agent(m): return {'tool_calls': [1]}", says="int"),
    "call without a name": Bad("def agent(m): return {'tool_calls': [{'id': '1'}]}", says="name"),
    "choices are a number": Bad("def agent(m): return {'choices': 5}"),
    "choice without message": Bad("def agent(m): return {'choices': [{}]}"),
    "reply with odd calls": Bad("def agent(m): return AgentReply(text='x', tool_calls=5)"),
    "reply with no lists": Bad("def agent(m): return AgentReply(text='x', messages=5)"),
    "usage is odd": Bad(
        "def agent(m): return {'content': 5, 'usage': {'input_tokens': 1, 'output_tokens': 1, 'calls': 'x'}}"
    ),
    # arguments of tool calls
    "endless calls": Bad(calls_with("'{}'"), "tool_loop", "50"),
    "unreadable calls": Bad(calls_with("'{bad'"), "tool_loop", "50"),
    "nan": Bad(calls_with("{'x': float('nan')}"), "tool_loop"),
    "endless nesting": Bad("x = {}; x['x'] = x\n" + calls_with("x"), "tool_loop"),
    "odd keys": Bad(calls_with("{(1, 2): 3}"), "tool_loop"),
    # calls through ctx
    "endless ctx": Bad("def agent(m, ctx):\n    while True: ctx.call_tool_sync('t')", "tool_loop", "1,000"),
    # its time; the shortest limit, so that the run is quick
    "hangs": Bad("def agent(m): time.sleep(600)", "agent_timeout", "0.3 s"),
    "hangs in async": Bad("async def agent(m): await asyncio.sleep(600)", "agent_timeout", "0.3 s"),
    "hangs in a loop": Bad("async def agent(m, ctx):\n    while True: await asyncio.sleep(0.01)",
        "agent_timeout", "0.3 s"),
    "answers too late": Bad(
        """
        async def agent(m):
            try: await asyncio.sleep(600)
            except asyncio.CancelledError: return 'at last'
        """,
        "agent_timeout",
    ),
    "blocks the event loop": Bad("async def agent(m):\n    time.sleep(0.5)\n    return 'at last'",
        "agent_timeout"),
}  # fmt: skip

NOT_THE_AGENT = {
    "refused": Bad("def agent(m): raise ConnectionError('refused')"),
    "dns": Bad("def agent(m): raise socket.gaierror('no such host')"),
    "tls": Bad("def agent(m): raise ssl.SSLError('bad certificate')"),
    **{f"status {s}": Bad(f"def agent(m): raise Status({s})") for s in (401, 403, 429, 502, 503, 504)},
    "refused, in a group": Bad(
        "def agent(m): raise ExceptionGroup('g', [ConnectionRefusedError('refused')])"),
}  # fmt: skip
STATUS_FAILS = {f"status {s}": Bad(f"def agent(m): raise Status({s})") for s in (400, 404, 422, 500)}

EMPTY = {
    "none": "def agent(m): return None",
    "empty text": "def agent(m): return ''",
    "blank text": "def agent(m): return ' \\n '",
    "empty list": "def agent(m): return []",
    "no assistant in the list": "def agent(m): return [{'role': 'system', 'content': 'abra'}]",
    "its own input": "def agent(m): return m",
}

FINE = {
    "an object that is a message": """
        class Said:
            def __init__(self): self.role, self.content = 'assistant', 'hi'
        def agent(m): return Said()
    """,
    "plain": "def agent(m): return 'hi'",
    "coroutine from a function": """
        def agent(m):
            async def answer(): return 'hi'
            return answer()
    """,
    "mutates the messages": "def agent(m):\n    m.clear(); m.append(m)\n    return 'hi'",
    "empties ctx": "def agent(m, ctx):\n    vars(ctx).clear()\n    return 'hi'",
    "changes ctx": """
        def agent(m, ctx):
            ctx.turn, ctx.call_tool = 99, None
            ctx.tools.clear()
            return 'hi'
    """,
    "own loop": "def agent(m): return asyncio.run(asyncio.sleep(0, 'hi'))",
    "prints": "def agent(m):\n    print('said by the agent')\n    return 'hi'",
    "broken arguments to ctx": """
        def agent(m, ctx):
            for args in ('not json', '[1]', 5, [1], b'x'):
                assert 'error' in ctx.call_tool_sync('t', args), args
            return 'hi'
    """,
    "objects to ctx": """
        def agent(m, ctx):
            ctx.call_tool_sync('t', {'o': object(), 's': {1}})
            return 'hi'
    """,
    "5 MB": "def agent(m): return 'x' * 5_000_000",
    "odd usage": "def agent(m): return {'content': 'hi', 'usage': {'input_tokens': 'x'}}",
}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    tables = (BROKEN, NOT_THE_AGENT, STATUS_FAILS)
    codes = {name: bad.code for table in tables for name, bad in table.items()}
    return run_all(Project(tmp_path_factory.mktemp("zoo")), codes | EMPTY | FINE)


@pytest.mark.parametrize(("name", "bad"), (BROKEN | STATUS_FAILS).items())
def test_a_broken_agent_fails_its_sample(zoo: Zoo, name: str, bad: Bad) -> None:
    sample = zoo.samples[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", bad.stop)
    assert bad.says in sample["turns"][-1]["error"]
    assert len(sample["turns"]) == 1
    assert (0, "no_error") in failed_checks(sample) or (None, "no_error") in failed_checks(sample)


@pytest.mark.parametrize(("name", "bad"), NOT_THE_AGENT.items())
def test_a_network_or_provider_fault_is_not_the_agents(zoo: Zoo, name: str, bad: Bad) -> None:
    sample = zoo.samples[name]
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "infrastructure")
    assert not failed_checks(sample)


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_answer_fails(zoo: Zoo, name: str) -> None:
    sample = zoo.samples[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", None, "script_done")
    assert (0, "answer") in failed_checks(sample) or (None, "answer") in failed_checks(sample)


@pytest.mark.parametrize("name", FINE)
def test_oddities_that_are_no_fault(zoo: Zoo, name: str) -> None:
    sample = zoo.samples[name]
    assert (sample["verdict"], sample["stop"]) == ("passed", "script_done"), sample["turns"]
    assert [turn["user"] for turn in sample["turns"]] == ["hello", "again"]
    assert all("hi" in turn["agent"] or len(turn["agent"]) == 5_000_000 for turn in sample["turns"])


def test_the_whole_zoo_is_one_failed_run(zoo: Zoo) -> None:
    assert zoo.done.code == 1
    started = {e["key"]["scenario"] for e in zoo.journal if e["type"] == "sample_started"}
    finished = {e["key"]["scenario"] for e in zoo.journal if e["type"] == "sample_finished"}
    assert started == finished == set(zoo.samples)
