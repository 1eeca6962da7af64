"""Programs that print their answer: how they are started for a turn, and which output is an answer."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents import text_programs
from agenteval.adapters.agents.text_programs import (
    TextAgents,
    TextProgram,
    TextProgramOptions,
    _messages_file,
    _TextProgramTurn,
)
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError, Place
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message, ToolResult

PLACE = Place("agenteval.yaml", 3)


def program(*run: str) -> TextProgram:
    options = TextProgramOptions(run=("./bot", *run))
    return TextProgram("./bot", "/x/bot", options, "/x", {}, PLACE)


# ── how it is started ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ((), set()),
        (("-v", "${message}"), {"message"}),
        (("${session}-${turn}", "${messages_file}"), {"session", "turn", "messages_file"}),
        (("${tools}", "$${message}"), set()),
    ],
)
def test_the_names_that_are_filled_in(run: tuple[str, ...], names: set[str]) -> None:
    assert program(*run).names == names


def test_the_command_of_a_turn() -> None:
    made = program("-m", "${message}", "s=${session} ${turn}", "$${x}", "${messages_file}")
    values = {"message": "Hi ${session}", "session": "7", "turn": 2}
    assert made.command(values) == ["/x/bot", "-m", "Hi ${session}", "s=7 2", "${x}", ""]


def test_a_refusal_is_at_its_place() -> None:
    with pytest.raises(AuthorError) as error:
        program().refuse("what", "remedy")
    (problem,) = error.value.problems
    assert (problem.what, problem.remedy, problem.place) == ("'./bot': what", "remedy", PLACE)


@pytest.mark.parametrize(
    ("run", "facts", "absent"),
    [
        ((), ["standard input", "without a session"], ["as an argument"]),
        (("${message}",), ["as an argument", "without a session"], ["standard input"]),
        (("${session}",), ["agenteval's session"], ["file", "without a session", " and "]),
        (("${messages_file}",), ["a file"], ["session", " and "]),
        (("${messages_file}${session}",), ["agenteval's session and a file"], ["without"]),
    ],
)
def test_what_an_agent_gets(run: tuple[str, ...], facts: list[str], absent: list[str]) -> None:
    does = TextAgents(program(*run), timeout_s=1).does
    assert all(fact in does for fact in ["./bot", *facts])
    assert not [fact for fact in absent if fact in does]


def test_the_file_of_the_messages_exists_for_the_turn() -> None:
    messages: list[Message] = [{"role": "user", "content": "é"}]
    with _messages_file(messages) as path:
        assert json.loads(Path(path).read_text(encoding="utf-8")) == messages
        assert path.endswith(".json")
    assert not Path(path).exists()
    with _messages_file([]) as path:
        assert Path(path).read_text(encoding="utf-8") == "[]"
        Path(path).unlink()
    with _messages_file(None) as path:
        assert path == ""


# ── a turn ───────────────────────────────────────────────────────────────────────────────────────


async def no_call(*_: Any) -> ToolResult:
    raise AssertionError


class Played:
    """The commands and inputs of a conversation whose process is not started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *run: str) -> None:
        self.warnings: list[str] = []
        self.played: list[tuple[Sequence[str], str]] = []

        async def play(command: Sequence[str], message: str) -> ReadReply:
            self.played.append((command, message))
            return ReadReply("Hello")

        agents = TextAgents(program(*run), timeout_s=1, warn=self.warnings.append)
        sample: Any = None
        self._agent = agents.make(sample)
        monkeypatch.setattr(self._agent, "_play", play)

    def turn(self, number: int, *messages: Message) -> Sequence[str]:
        anyio.run(self._agent.reply, list(messages), TurnTools(number, (), no_call))
        return self.played[-1][0]


USER: Message = {"role": "user", "content": "Hi"}


def test_each_turn_has_the_latest_message(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, "${message}", "${turn}")
    assert played.turn(0, USER) == ["/x/bot", "Hi", "0"]
    said: Message = {"role": "assistant", "content": "x"}
    assert played.turn(1, USER, said, {"role": "user", "content": "\ud800"}) == ["/x/bot", "\ufffd", "1"]
    assert played.played[1][1] == "\ufffd"
    assert played.turn(2) == ["/x/bot", "", "2"]


def test_a_conversation_has_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Played(monkeypatch, "${session}"), Played(monkeypatch, "${session}")
    first = one.turn(0, USER)
    assert one.turn(1, USER) == first
    assert two.turn(0, USER) != first


@pytest.mark.parametrize(
    ("run", "turn", "warns"),
    [
        ((), 0, False),
        ((), 1, True),
        (("${message}",), 1, True),
        (("${session}",), 1, False),
        (("${messages_file}",), 1, False),
    ],
)
def test_a_program_without_memory_is_warned_of(
    run: tuple[str, ...], turn: int, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, *run)
    played.turn(turn, USER)
    assert len(played.warnings) == warns
    assert all("'./bot'" in text and "${session}" in text for text in played.warnings)


def test_a_message_that_is_no_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    sample: Any = None
    agent = TextAgents(program("${message}"), timeout_s=1).make(sample)
    with pytest.raises(AuthorError) as error:
        anyio.run(agent.reply, [{"role": "user", "content": "a\0b"}], TurnTools(0, (), no_call))
    assert "NUL" in str(error.value)
    assert "standard input" in str(error.value)


def test_a_turn_may_have_a_file_of_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Played(monkeypatch, "${messages_file}").turn(0, USER)[1]
    assert path.endswith(".json")
    assert not Path(path).exists()


class Started:
    """What a process would have been started with; ``error`` is raised instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: OSError | None = None, *run: str) -> None:
        self.stdin: bytes | None = None
        self.env: Mapping[str, str] = {}

        def start(command: Sequence[str], stdin: bytes | None, *, env: Mapping[str, str], **_: Any) -> str:
            if error:
                raise error
            self.stdin, self.env = stdin, env
            return "the turn"

        monkeypatch.setattr(text_programs, "_TextProgramTurn", start)
        sample: Any = None
        self.agent = TextAgents(program(*run), timeout_s=1).make(sample)

    def start(self) -> Any:
        return anyio.run(self.agent._start, ["/x/bot"], "é")


@pytest.mark.parametrize(("run", "stdin"), [((), "é".encode()), (("${message}",), None)])
def test_a_message_is_an_argument_or_the_input(
    run: tuple[str, ...], stdin: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch, None, *run)
    assert started.start() == "the turn"
    assert started.stdin == stdin
    assert "TRACEPARENT" not in started.env
    started.agent.traceparent = "00-1-2-01"
    started.start()
    assert started.env["TRACEPARENT"] == "00-1-2-01"


@pytest.mark.parametrize(
    ("number", "run", "cls", "fact"),
    [
        (errno.E2BIG, ("${message}",), AuthorError, "2 bytes"),
        (errno.E2BIG, (), InfrastructureError, ""),
        (errno.ENOMEM, ("${message}",), InfrastructureError, ""),
        (errno.ENOENT, (), AuthorError, "#!"),
        (errno.EACCES, ("${message}",), AuthorError, "#!"),
        (errno.ENOEXEC, (), AuthorError, "#!"),
        (errno.EPERM, (), AuthorError, "#!"),
        (errno.ENOTDIR, (), AuthorError, "#!"),
    ],
)
def test_a_program_that_cannot_be_started(
    number: int, run: tuple[str, ...], cls: type[Exception], fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AgentevalError) as error:
        Started(monkeypatch, OSError(number, "why"), *run).start()
    assert type(error.value) is cls
    assert "'./bot'" in str(error.value)
    assert fact in str(error.value)


# ── which output is an answer ────────────────────────────────────────────────────────────────────


class Log:
    def quoted_log(self) -> str:
        return self.log

    def kill(self) -> None:
        self.killed = True

    log = ""
    killed = False


def printed(*pieces: bytes, code: int | None = 0, log: str = "") -> str:
    turn = object.__new__(_TextProgramTurn)
    process: Any = Log()
    process.log = log
    turn.process = process
    turn._printed = bytearray()
    turn._is_too_long = False
    for piece in pieces:
        turn._take(piece)
    assert process.killed is turn._is_too_long
    return turn.answer("'./bot'", code)


def refused(*pieces: bytes, code: int | None = 0, log: str = "") -> AgentError:
    with pytest.raises(AgentError) as error:
        printed(*pieces, code=code, log=log)
    assert "'./bot'" in str(error.value)
    return error.value


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"Hello"], "Hello"),
        ([b"Hel", b"lo\r\n\n"], "Hello"),
        ([b" Hello \n"], " Hello "),
        ([b"a\n\nb\n"], "a\n\nb"),
        ([b"\xef\xbb\xbfHello"], "Hello"),
        ([b"\x1b[31mred\x1b[0m"], "red"),
        (["é".encode()[:1], "é".encode()[1:]], "é"),
    ],
)
def test_an_answer_is_what_a_terminal_shows(pieces: list[bytes], text: str) -> None:
    assert printed(*pieces) == text
    assert printed(*pieces, code=None) == text


@pytest.mark.parametrize("output", [b"", b"\n", b" \r\n", b"\xef\xbb\xbf", b"\x1b[0m\n"])
def test_nothing_is_no_answer(output: bytes) -> None:
    error = refused(output, log="; the log")
    assert error.kind == "protocol"
    assert "; the log" in str(error)


def test_what_is_no_text() -> None:
    error = refused(b"a" * 1500 + b"\xff")
    assert error.kind == "protocol"
    assert "1,500" in str(error)


def test_a_program_that_failed() -> None:
    error = refused(b"oops\n", code=3)
    assert error.kind == "exception"
    assert "3" in str(error)
    assert "oops" in str(error)
    logged = str(refused(b"oops", code=3, log="; the log"))
    assert "the log" in logged
    assert "oops" not in logged
    assert refused(b"\xff", code=-9).kind == "exception"


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_programs, "MAX_REPLY_BYTES", 2**20)
    assert len(printed(b"a" * (2**20 - 1), b"a")) == 2**20
    error = refused(b"a" * 2**20, b"a", b"", code=1)
    assert error.kind == "protocol"
    assert "1 MiB" in str(error)
