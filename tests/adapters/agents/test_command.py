"""Agents that are programs: real ones, with every oddity of their lines, their logs and their ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from agenteval.adapters.agents import dialogue, process
from agenteval.adapters.agents.command import ADAPTER
from agenteval.adapters.agents.process_agents import ProcessAgents
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AgentevalError,
    AuthorError,
    InfrastructureError,
)
from agenteval.core.protocols import AgentReply, TurnTools, finish, settle
from agenteval.core.scenario import Sample, SampleKey, Scenario, ScriptedTurn
from agenteval.core.trajectory import ToolResult
from agenteval.planning.wiring import Resources
from tests.support.patience import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

LOOP = """
import json, os, sys, time
def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
while True:
    asked = read()
"""
SAMPLE = Sample(
    key=SampleKey(scenario="a", agent="bot"),
    scenario=Scenario(id="a", name="a", turns=(ScriptedTurn(user="x"),)),
)


class Played(NamedTuple):
    replies: list[AgentReply]
    fault: AgentevalError | None
    calls: list[tuple[Any, Any, int]]

    @property
    def texts(self) -> list[str | None]:
        return [reply.text for reply in self.replies]


def program(body: str) -> list[str]:
    """A command that does ``body`` for each request."""
    return [sys.executable, "-c", LOOP + textwrap.indent(textwrap.dedent(body), "    ")]


def agents_of(command: Sequence[str], *, timeout_s: float = 30, keep: bool = False) -> ProcessAgents:
    return made({"command": list(command), "keep": keep}, timeout_s=timeout_s)


def made(
    own: Mapping[str, Any],
    *,
    root: Path = Path(),
    timeout_s: float = 30,
    warn: Callable[[str], None] = lambda _: None,
) -> ProcessAgents:
    """The agents of a configuration in ``root``."""
    resources = Resources(Config(root=str(root)))
    resources.warn = warn  # type: ignore[method-assign]
    agent = AgentConfig(name="bot", timeout_s=timeout_s, **own)
    agents: ProcessAgents = ADAPTER.make(agent, ADAPTER.parse_options(agent), resources)
    return agents


async def conversation(
    agents: ProcessAgents,
    turns: int = 2,
    none_follows: anyio.Event | None = None,
    over: asyncio.Event | None = None,
) -> Played:
    """``none_follows``: then it ends only when it is known what the program did since its last answer.
    ``over`` is set once nothing is asked any more."""
    played = Played([], None, [])

    async def call(name: str, args: Any, batch: int) -> ToolResult:
        played.calls.append((name, args, batch))
        await asyncio.sleep(0)
        return ToolResult(value={"status": "shipped", "of": args})

    agent = agents.make(SAMPLE)
    try:
        for turn in range(turns):
            asked = [{"role": "user", "content": f"turn {turn}"}]
            played.replies.append(await agent.reply(asked, TurnTools(turn, (), call)))
        await finish(agent)
        agent.end_conversation()
        if over:
            over.set()
        if none_follows:
            await settle(agent, none_follows)
    except AgentevalError as fault:
        return played._replace(fault=fault)
    finally:
        agent.end_conversation()
        if over:
            over.set()
    return played


def play(command: Sequence[str], *, turns: int = 2, timeout_s: float = 30) -> Played:
    async def whole() -> Played:
        agents = agents_of(command, timeout_s=timeout_s)
        try:
            return await conversation(agents, turns)
        finally:
            await agents.aclose()

    return asyncio.run(whole())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


# ── lines ────────────────────────────────────────────────────────────────────────────────────────

FORMS: Mapping[str, str] = {
    "text": "say({'text': asked['message']})",
    "a message": "say({'role': 'assistant', 'content': asked['message']})",
    "a completion": "say({'choices': [{'message': {'role': 'assistant', 'content': asked['message']}}]})",
    "in pieces": """
        for piece in json.dumps({'text': asked['message']}) + '\\n':
            sys.stdout.write(piece); sys.stdout.flush()
    """,
    "carriage returns": "say(json.dumps({'text': asked['message']}) + '\\r')",
    "a byte order mark": "say(chr(0xfeff) + json.dumps({'text': asked['message']}))",
    "empty lines": "say(''); say('  '); say({'text': asked['message']}); say('')",
    "a long line": "say({'text': asked['message'], 'messages': None, 'usage': {'x': 'y' * 2_000_000}})",
    "much of a log": "sys.stderr.write('noise ' * 100_000); say({'text': asked['message']})",
    "a log that is no text": "os.write(2, bytes(range(256)) * 100); say({'text': asked['message']})",
    "a session of its own": "assert len(asked['session']) == 32; say({'text': asked['message']})",
    "all that is sent": "assert asked['tools'] == [] and asked['messages'][0]['role'] == 'user'"
    "; say({'text': f\"turn {asked['turn']}\"})",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_may_come_in_each_of_these_forms(form: str) -> None:
    played = play(program(FORMS[form]))
    assert played.fault is None
    assert played.texts == ["turn 0", "turn 1"]


def test_text_outside_ascii_goes_both_ways() -> None:
    async def whole() -> AgentReply:
        agents = agents_of(program("say({'text': asked['message'][::-1]})"))
        agent = agents.make(SAMPLE)
        messages = [{"role": "user", "content": "Größe\u2028 \U0001f600"}]
        try:
            return await agent.reply(messages, TurnTools(0, (), _no_call))
        finally:
            agent.end_conversation()
            await agents.aclose()

    assert asyncio.run(whole()).text == "\U0001f600 \u2028eßörG"


async def _no_call(name: str, args: Any, batch: int) -> ToolResult:
    raise AssertionError


BROKEN: Mapping[str, tuple[str, str]] = {
    "no JSON": ("print('Hello!', flush=True)", "wrote invalid JSON: Hello!"),
    "no object": ("say([1])", "wrote JSON that is not an object: [1]"),
    "a key twice": ("""say('{"text": "a", "text": "b"}')""", "wrote JSON with a duplicate key"),
    "no number": ("""say('{"text": NaN}')""", "wrote invalid JSON"),
    "no finite number": ("""say('{"text": 1e999}')""", "wrote invalid JSON"),
    "no UTF-8": ("os.write(1, b'\\xff\\xfe{}\\n')", "wrote invalid UTF-8"),
    "too deep": ("say('[' * 100_000)", "wrote JSON that is nested too deeply"),
    "an unknown key": ("say({'txt': 'x'})", "an unknown key: txt — did you mean 'text'?"),
    "nothing in it": ("say({'usage': {}})", "no text, calls or messages"),
    "text that is none": ("say({'text': 3})", "`text` must be a string"),
    "calls that are no list": ("say({'tool_calls': {}})", "`tool_calls` must be a list"),
    "messages that are no list": ("say({'messages': 'x'})", "messages` is str; expected a list"),
    "an error": ("say({'error': 'no luck'})", "no luck"),
    "an error with a kind": ("say({'error': {'message': 'no luck'}})", "no luck"),
    "a call and an answer": ("say({'tool_call': {'name': 'x'}, 'text': 'y'})", "`tool_call` and `text`"),
    "an end": ("sys.exit('no more')", "exited with code 1; its log: no more"),
    "an end with 0": ("sys.exit()", "exited with code 0"),
    "a signal": ("os.kill(os.getpid(), 9)", "was terminated by SIGKILL"),
    "a traceback": ("raise ValueError('oops')", "its log: ValueError: oops"),
    "an end within a line": ("sys.stdout.write('{\"te'); sys.exit(2)", "wrote invalid JSON: {\"te"),
    "no output any more": ("os.close(1); time.sleep(600)", "closed its standard output"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_protocol_is_the_agents_failure_and_says_why(name: str) -> None:
    body, says = BROKEN[name]
    played = play(program(body))
    assert isinstance(played.fault, AgentError)
    assert says in str(played.fault)


def test_a_line_that_never_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_LINE", 1000)
    played = play(program("while True: os.write(1, b'x' * 65536)"))
    assert "wrote a line longer than" in str(played.fault)


def test_what_is_written_before_anything_was_asked_is_no_answer() -> None:
    command = [sys.executable, "-c", "print('{\"text\": \"hi\"}', flush=True); open('/dev/stdin').read()"]

    async def whole() -> Played:
        agents = agents_of(command)
        dialogue = await agents.programs.acquire()
        dialogue._process.over.wait()
        with pytest.raises(AgentError, match="a line before the conversation's first request"):
            await dialogue.ask({}, TurnTools(0, (), _no_call), timeout_s=1)
        await agents.aclose()
        return Played([], None, [])

    asyncio.run(whole())


SURPLUS = {
    "an answer": ("say({'text': '2'})", '{"text": "2"}'),
    "a log": ("print('INFO done', flush=True)", "INFO done"),
    "no text": ("os.write(1, b'\\xff\\n')", "\ufffd"),
    "a line without an end": ("sys.stdout.write('{\"te'); sys.exit()", '{"te'),
    "a grandchild's": ("__import__('subprocess').run(['echo', 'hi'])", "hi"),
}


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("what", SURPLUS)
def test_a_line_after_an_answer_is_charged_to_it(what: str, turns: int) -> None:
    """After the last answer it is read when the input is closed, else before the next request is."""
    body, shown = SURPLUS[what]
    played = play(program(f"say({{'text': asked['message']}}); {body}"), turns=turns)
    assert played.texts == ["turn 0"]
    assert isinstance(played.fault, AfterAnswerError)
    assert "wrote an unrequested line after its answer" in str(played.fault)
    assert shown in str(played.fault)


def test_what_a_program_writes_before_it_has_read_a_request_is_no_answer() -> None:
    """However long it takes until it reads: the request is not whole before."""
    command = [
        sys.executable,
        "-c",
        'print(\'{"text": "hello"}\', flush=True)' + LOOP + "    say({'text': 'x'})",
    ]
    played = play(command)
    assert played.replies == []
    assert "wrote a line before the conversation's first request" in str(played.fault)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_request_is_whole_for_who_reads_json_without_lines(size: int) -> None:
    """As ``jq`` does, or a decoder of a stream: it answers at the last brace."""
    body = """
import json, os
decoder, held = json.JSONDecoder(), ''
while piece := os.read(0, 65536).decode():
    held += piece
    try:
        asked, end = decoder.raw_decode(held.lstrip())
    except ValueError:
        continue
    held = held.lstrip()[end:]
    print(json.dumps({'text': str(len(asked['message']))}), flush=True)
"""

    async def whole() -> str | None:
        agents = agents_of([sys.executable, "-c", body])
        agent = agents.make(SAMPLE)
        try:
            messages = [{"role": "user", "content": "x" * size}]
            return (await agent.reply(messages, TurnTools(0, (), _no_call))).text
        finally:
            agent.end_conversation()
            await agents.aclose()

    assert asyncio.run(whole()) == str(size)


ENDINGS = {
    "a signal": ("os.kill(os.getpid(), 11)", "was terminated by SIGSEGV", ""),
    "a code": ("sys.exit('no more')", "", "exited with code 1 after its last answer; its log: no more"),
    "zero": ("sys.exit()", "", ""),
    "none": (
        "time.sleep(600)",
        "",
        "did not exit within 0.5 s after the end of its input, and was terminated",
    ),
    "none of a child's": (
        "__import__('subprocess').Popen(['sleep', '600'])",
        "",
        "exited, but a process that it started kept its output open for 0.5 s more, and was terminated",
    ),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_how_a_program_ends_after_its_last_answer(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, fails, warns = ENDINGS[how]
    if how.startswith("none"):
        monkeypatch.setattr(dialogue, "GRACE_S", 0.5)
    warnings: list[str] = []

    async def whole() -> Played:
        agents = made(
            {"command": program(f"say({{'text': '1'}}); sys.stdin.read(); {body}")}, warn=warnings.append
        )
        try:
            return await conversation(agents, turns=1)
        finally:
            await agents.aclose()

    played = asyncio.run(whole())
    assert played.texts == ["1"]
    assert (fails in str(played.fault)) if fails else played.fault is None
    assert [warns in each for each in warnings] == ([True] if warns else [])


def test_a_kept_program_that_breaks_while_idle_has_failed_the_conversation_before() -> None:
    warnings: list[str] = []

    async def whole() -> tuple[Played, Played]:
        agents = made({"command": program("say({'text': 'hi'})"), "keep": True}, warn=warnings.append)
        over = asyncio.Event()
        before = asyncio.create_task(conversation(agents, 1, anyio.Event(), over))
        await over.wait()
        (kept,) = agents.programs._idle
        os.kill(kept._process.pid, signal.SIGKILL)
        await kept._has_ended.wait()
        after = await conversation(agents, turns=1)
        await agents.aclose()
        return await before, after

    before, after = asyncio.run(whole())
    assert (before.texts, after.texts) == (["hi"], ["hi"])
    assert "was terminated by SIGKILL" in str(before.fault)
    assert after.fault is None
    assert warnings == []


AFTERMATHS = {
    "a signal": ("os.kill(os.getpid(), 11)", "was terminated by SIGSEGV", ""),
    "a line": ("say('INFO done')", "an unrequested line after its answer: INFO done", ""),
    "a code": ("sys.exit('no more')", "", "exited with code 1 after its last answer; its log: no more"),
    "zero": ("sys.exit()", "", ""),
    "nothing": ("pass", "", ""),
    "silence": ("time.sleep(600)", "", "did not read the next request within 0.5 s, and was terminated"),
}


@pytest.mark.parametrize("how", AFTERMATHS)
@pytest.mark.parametrize("follows", [True, False])
def test_what_a_kept_program_does_after_a_conversation(
    how: str, *, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when the next one begins, or none does; then the program is replaced, if it must be."""
    body, fails, warns = AFTERMATHS[how]
    if how == "silence":
        monkeypatch.setattr(dialogue, "GRACE_S", 0.5)
        ended = "did not exit within 0.5 s after the end of its input, and was terminated"
        warns = warns if follows else ended
    warnings: list[str] = []

    async def whole() -> tuple[Played, Played | None]:
        is_first = "not os.path.exists(sys.argv[1]) and not open(sys.argv[1], 'x').close()"
        command = program(f"say({{'text': str(os.getpid())}})\nif {is_first}: {body}")
        agents = made({"command": [*command, marker], "keep": True}, warn=warnings.append)
        none_follows, over = anyio.Event(), asyncio.Event()
        before = asyncio.create_task(conversation(agents, 1, none_follows, over))
        await over.wait()
        after = await conversation(agents, turns=1) if follows else none_follows.set()
        played = await before
        await agents.aclose()
        return played, after

    with tempfile.TemporaryDirectory() as folder:
        marker = str(Path(folder, "first"))
        before, after = asyncio.run(whole())
    assert (fails in str(before.fault)) if fails else before.fault is None
    assert [warns in each for each in warnings] == ([True] if warns else [])
    if after:
        assert after.fault is None
        assert (before.texts == after.texts) == (how == "nothing")


def test_an_error_that_is_not_the_agents_is_said_to_be_so() -> None:
    played = play(program("say({'error': {'message': 'down', 'kind': 'infrastructure'}})"))
    assert isinstance(played.fault, InfrastructureError)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_a_program_may_call_tools_while_it_computes() -> None:
    body = """
        say({'tool_call': {'id': 'a', 'name': 'get_order', 'arguments': {'n': 1}}})
        first = read()['tool_result']
        say({'tool_call': {'id': 'b', 'function': {'name': 'get_order', 'arguments': '{"n": 2}'}}})
        second = read()['tool_result']
        say({'text': json.dumps([first, second])})
    """
    played = play(program(body), turns=1)
    assert [(name, args) for name, args, _ in played.calls] == [
        ("get_order", {"n": 1}),
        ("get_order", {"n": 2}),
    ]
    assert len({batch for *_, batch in played.calls}) == 2
    first, second = json.loads(played.texts[0] or "")
    assert first == {"id": "a", "result": {"status": "shipped", "of": {"n": 1}}}
    assert second["id"] == "b"


def test_calls_of_one_batch_are_one_step_however_they_arrive() -> None:
    body = """
        for number in range(3):
            say({'tool_call': {'id': number, 'name': 'x', 'batch': 'all'}})
            read()
        say({'text': 'done'})
    """
    played = play(program(body))
    batches = [batch for *_, batch in played.calls]
    assert [len(set(batches[:3])), len(set(batches[3:])), len(set(batches))] == [1, 1, 2]


class Clock:
    """That of the running loop, which can be put forward."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real, self.ahead_s = loop.time, 0.0
        loop.time = lambda: real() + self.ahead_s  # type: ignore[method-assign]


@pytest.mark.parametrize("who", ["a tool", "the program"])
def test_the_time_of_the_tools_is_not_the_programs(who: str) -> None:
    async def whole() -> AgentReply:
        clock = Clock()

        async def slow(name: str, args: Any, batch: int) -> ToolResult:
            clock.ahead_s += 100 if who == "a tool" else 0
            asyncio.get_running_loop().call_later(0.01, late)
            return ToolResult(value=1)

        def late() -> None:
            clock.ahead_s += 0 if who == "a tool" else 100

        rest = "read()" if who == "the program" else "say({'text': 'done'})"
        body = f"say({{'tool_call': {{'name': 'x'}}}}); read(); {rest}"
        agents = agents_of(program(body), timeout_s=50)
        agent = agents.make(SAMPLE)
        try:
            return await agent.reply([], TurnTools(0, (), slow))
        finally:
            agent.end_conversation()
            await agents.aclose()

    if who == "the program":
        with pytest.raises(AgentError, match="no answer within 50 s"):
            asyncio.run(whole())
        return
    reply = asyncio.run(whole())
    assert reply.text == "done"
    assert reply.latency_ms is not None
    assert reply.latency_ms < 50_000


# ── processes ────────────────────────────────────────────────────────────────────────────────────

FAMILY = """
import subprocess
child = subprocess.Popen(['sh', '-c', 'sleep 600 & wait'])
open('{pids}', 'a').write(f'{{os.getpid()}} {{child.pid}}\\n')
"""


def family(pids: Path) -> list[int]:
    """The programs, and their children and grandchildren."""
    found = [int(pid) for pid in pids.read_text(encoding="utf-8").split()]
    return [*found, *(child for pid in found for child in children(pid))]


def children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return []
    return [int(each) for each in listed.split()]


ENDS = {
    "an answer": ("say({'text': 'hi'})", 30),
    "a deadline": ("read()", 1000),
    "an end of its own": ("sys.exit(3)", 30),
    "a closed input that it does not heed": ("""
        import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say({'text': 'hi'}); time.sleep(600)
    """, 30),
}  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc")
@pytest.mark.parametrize("how", ENDS)
def test_nothing_is_left_running(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    body, timeout_s = ENDS[how]
    pids = tmp_path / "pids"
    seen: list[int] = []

    async def whole() -> None:
        agents = agents_of(program(FAMILY.format(pids=pids) + textwrap.dedent(body)), timeout_s=timeout_s)
        watch = asyncio.create_task(_watch(pids, seen, Clock()))
        await conversation(agents, turns=1)
        watch.cancel()
        await agents.aclose()

    asyncio.run(whole())
    seen += family(pids)
    assert len(seen) >= 2
    assert eventually(lambda: not any(map(is_alive, seen)))


async def _watch(pids: Path, seen: list[int], clock: Clock) -> None:
    """Grandchildren are known only while their parents live. Once all are there, the deadline may pass."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            seen[:] = list(dict.fromkeys([*seen, *family(pids)]))
        clock.ahead_s = 2000 if len(seen) > 2 else 0
        await asyncio.sleep(0.01)


def test_a_program_that_never_reads_does_not_hold_up_the_run() -> None:
    async def whole() -> None:
        agents = agents_of(["sleep", "600"], timeout_s=0.5)
        agent = agents.make(SAMPLE)
        messages = [{"role": "user", "content": "x" * 5_000_000}]
        with pytest.raises(AgentError, match="no answer within"):
            await agent.reply(messages, TurnTools(0, (), _no_call))
        agent.end_conversation()
        await agents.aclose()

    asyncio.run(whole())


@pytest.mark.parametrize("keep", [True, False])
def test_a_kept_program_plays_one_conversation_after_the_other(*, keep: bool) -> None:
    async def whole() -> list[str | None]:
        agents = agents_of(program("say({'text': f\"{os.getpid()} {asked['session']}\"})"), keep=keep)
        try:
            return [text for _ in range(3) for text in (await conversation(agents, turns=2)).texts]
        finally:
            await agents.aclose()

    told = [(text or "").split() for text in asyncio.run(whole())]
    assert len({session for _, session in told}) == 3
    assert len({pid for pid, _ in told}) == (1 if keep else 3)


def test_a_kept_program_that_broke_is_started_anew() -> None:
    async def whole() -> tuple[Played, Played]:
        body = "say('x') if asked['turn'] else say({'text': str(os.getpid())})"
        agents = agents_of(program(body), keep=True)
        try:
            return await conversation(agents), await conversation(agents, turns=1)
        finally:
            await agents.aclose()

    first, second = asyncio.run(whole())
    assert first.fault
    assert first.texts != second.texts


def test_a_late_call_of_a_conversation_that_is_over_is_not_carried_out_in_the_next() -> None:
    body = """
        if asked['turn'] == 0 and not globals().get('before'):
            before = asked['session']
            say({'text': 'first'})
            continue
        say({'tool_call': {'id': 1, 'name': 'late', 'session': before}})
        say({'text': json.dumps(read())})
    """

    async def whole() -> Played:
        agents = agents_of(program(body), keep=True)
        try:
            await conversation(agents, turns=1)
            return await conversation(agents, turns=1)
        finally:
            await agents.aclose()

    played = asyncio.run(whole())
    assert played.calls == []
    assert json.loads(played.texts[0] or "") == {"tool_result": {"id": 1, "over": True}}


# ── programs that are not there ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["no-such-program"], "no such program: 'no-such-program'"),
        (["./no-such-program"], "no such program: './no-such-program'"),
        (["./plain.txt"], "'./plain.txt' cannot be executed"),
    ],
)
def test_a_program_that_is_not_there_is_the_authors_mistake(
    command: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "plain.txt").write_text("hi", encoding="utf-8")
    with pytest.raises(AuthorError, match=says):
        made({"command": command}, root=tmp_path)


def test_a_program_is_found_from_the_configurations_folder_and_runs_there(tmp_path: Path) -> None:
    bot = tmp_path / "bot.sh"
    bot.write_text('#!/bin/sh\nread line\necho "{\\"text\\": \\"$PWD\\"}"\n', encoding="utf-8")
    bot.chmod(0o755)

    async def whole() -> Played:
        agents = made({"command": ["./bot.sh"]}, root=tmp_path)
        try:
            return await conversation(agents, turns=1)
        finally:
            await agents.aclose()

    assert asyncio.run(whole()).texts == [str(tmp_path)]


def test_a_signal_may_end_a_program_that_is_just_being_ended() -> None:
    """The third Ctrl-C runs within what the main thread does: within the end that the second asked for."""
    program = process.Process(["sleep", "600"], cwd=".", env=dict(os.environ), on_event=lambda _: None)
    program.listen()
    with program._lock:
        before = signal.signal(signal.SIGUSR1, lambda *_: process.kill_all())
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert program.over.wait(30)
