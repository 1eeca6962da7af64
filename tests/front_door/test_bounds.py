"""What is read is bounded: bodies of replies, counted while they are unpacked; files, which are no pipes."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from agenteval.adapters.transport.bodies import MAX_BODY, Body, TooLargeError, read_body, read_error_body
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Wire, respond

BOMB = gzip.compress(b" " * (MAX_BODY + 1))


def endless(
    *, status: int = 200, headers: dict[str, str] | None = None, piece: bytes = b" " * 65536
) -> Behaviour:
    """A body that ends when the client has had enough of it; no test would end if it never had."""

    def behave(wire: Wire) -> None:
        wire.head(status, {"Transfer-Encoding": "chunked", **(headers or {})})
        while True:
            wire.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    return behave


def packed(data: bytes, encoding: str = "gzip") -> Behaviour:
    return respond(data, headers={"Content-Encoding": encoding, "Content-Type": "application/json"})


SSE = {"Content-Type": "text/event-stream"}
TOO_LARGE = {
    "endless": endless(),
    "endless stream": endless(headers=SSE, piece=b'data: {"choices": []}\n\n' * 1000),
    "one endless line of a stream": endless(headers=SSE, piece=b"data: " + b"x" * 65536),
    "a bomb": packed(BOMB),
    "a bomb in a bomb": packed(gzip.compress(BOMB), "gzip, gzip"),
    "a bare bomb": packed(zlib.compress(b" " * (MAX_BODY + 1), wbits=-15), "deflate"),
    "many bombs": packed(gzip.compress(b" " * 2**20) * 11),
}
REFUSED = {
    "endless": endless(status=400),
    "a bomb": endless(status=400, headers={"Content-Encoding": "gzip"}, piece=BOMB),
}


@pytest.fixture
def scenario(project: Project) -> Project:
    project.scenarios("scenarios: [{id: a, turns: [hi], expect: {criteria: [Answers.]}}]")
    return project


def with_agent(project: Project, behaviour: Behaviour, *more: str) -> Any:
    with LocalServer(behaviour) as server:
        project.write("agenteval.yaml", f"agent: {{type: http, endpoint: '{server.url}'}}\nmetrics: []\n")
        return project.run("--no-judge", *more)


def with_judge(project: Project, behaviour: Behaviour) -> Any:
    project.agent("def agent(message):\n    return 'Hello.'\n")
    with LocalServer(behaviour) as server:
        base_url = f"{server.address}/v1"
        project.config(
            f"models: {{default: {{model: openai-compatible/m, base_url: '{base_url}'}}}}\nmetrics: []\n"
        )
        return project.run()


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_a_reply_of_the_agents_that_is_too_large(scenario: Project, kind: str) -> None:
    done = with_agent(scenario, TOO_LARGE[kind])
    sample = scenario.sample()
    assert (done.code, sample["verdict"], sample["stop"]) == (1, "failed", "agent_error")
    assert "the reply is larger than 10 MiB" in sample["turns"][0]["error"]


@pytest.mark.parametrize("kind", REFUSED)
def test_an_error_of_the_agents_that_is_too_large(scenario: Project, kind: str) -> None:
    done = with_agent(scenario, REFUSED[kind])
    assert done.code == 1
    assert "HTTP status 400" in scenario.sample()["turns"][0]["error"]


IN_PYTHON = """
MiB = 2**20
def large(more): return 'é' * (5 * MiB - 1000 + more * 1000)
def agent(messages):
    how, more = messages[-1]["content"].split()
    if how == "text": return large(int(more))
    if how == "message": return {"role": "assistant", "content": "hi", "more": [large(int(more))]}
    if how == "messages": return [{"role": "assistant", "content": large(int(more))}]
    raise ValueError(large(int(more)))
"""


@pytest.mark.parametrize("interpreter", ["", sys.executable])
def test_what_an_agent_in_python_gives_is_bounded_as_well(project: Project, interpreter: str) -> None:
    where = f", interpreter: '{interpreter}'" if interpreter else ""
    project.config(f"agent: {{name: bot, target: 'agent.py:agent'{where}}}\n", target="")
    project.agent(IN_PYTHON)
    kinds = ("text", "message", "messages", "raises")
    lines = [f"- {{id: {k}-{n}, turns: ['{k} {n}'], checks: none}}" for k in kinds for n in (0, 2)]
    project.scenarios("scenarios:\n" + "\n".join(lines))
    assert project.run().code == 1
    for kind in kinds:
        fits, larger = project.sample(f"{kind}-0"), project.sample(f"{kind}-2")
        assert fits["verdict"] == ("failed" if kind == "raises" else "passed"), fits["turns"][0].get("error")
        assert larger["stop"] == "agent_error"
        what = "ValueError: a message that" if kind == "raises" else "the agent's reply"
        assert larger["turns"][0]["error"].startswith(f"{what} is larger than 10 MiB")


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_a_reply_of_the_judges_that_is_too_large(scenario: Project, kind: str) -> None:
    done = with_judge(scenario, TOO_LARGE[kind])
    assert (done.code, scenario.sample()["verdict"]) == (3, "inconclusive")
    assert "the reply is larger than 10 MiB" in json.dumps(scenario.sample())


@pytest.mark.parametrize("kind", REFUSED)
def test_an_error_of_the_judges_that_is_too_large(scenario: Project, kind: str) -> None:
    done = with_judge(scenario, REFUSED[kind])
    assert done.code == 3
    assert "HTTP status 400" in json.dumps(scenario.sample())


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
def test_a_packed_reply_that_is_not(project: Project, encoding: str) -> None:
    """The other side: a megabyte, packed or not, is read as it is."""
    project.scenarios("scenarios: [{id: a, turns: [hi], expect: {output: {contains: [the end]}}}]")
    text = json.dumps({"choices": [{"message": {"role": "assistant", "content": "x " * 2**19 + "the end"}}]})
    body = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding, bytes)(text.encode())
    assert with_agent(project, packed(body, encoding)).code == 0


def test_an_unknown_packing_is_unreadable(scenario: Project) -> None:
    done = with_agent(scenario, packed(b"\x1b\x00", "br"))
    assert done.code == 1
    assert "gzip, deflate was requested" in scenario.sample()["turns"][0]["error"]


# ── the counter by itself ────────────────────────────────────────────────────────────────────────


def test_what_fits_exactly_is_read() -> None:
    assert len(Body("gzip").feed(gzip.compress(b" " * MAX_BODY))) == MAX_BODY
    body = Body(None, most=3)
    assert body.feed(b"abc") == b"abc"
    with pytest.raises(TooLargeError):
        body.feed(b"d")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"one ") + gzip.compress(b"two"), zlib.compress(b"one two")],
    ids=["gzip", "deflate"],  # gzip writes the time: two workers would name two tests
)
def test_pieces_of_any_size(size: int, packed: bytes) -> None:
    body = Body("gzip")
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    assert b"".join(map(body.feed, pieces)) == b"one two"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip, gzip, gzip, gzip"])
def test_what_nobody_asked_for_cannot_be_read(encoding: str) -> None:
    with pytest.raises(httpx2.DecodingError):
        Body(encoding)


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def test_broken_packing() -> None:
    with pytest.raises(httpx2.DecodingError):
        anyio.run(read_body, _pieces(b"no gzip"), "gzip")
    assert anyio.run(read_error_body, _pieces(b"no gzip"), "gzip") == b""
    assert anyio.run(read_error_body, _pieces(b"abc", b"def"), None, 4) == b"abcd"


# ── files ────────────────────────────────────────────────────────────────────────────────────────

pipes = pytest.mark.skipif(sys.platform == "win32", reason="named pipes")


@pytest.fixture(scope="module")
def piped(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("pipes"))
    project.config()
    project.agent("def agent(message):\n    return 'Hello.'\n")
    project.scenarios("scenarios: [{id: a, turns: [hi], checks: none}]")
    head = "agent: {target: 'agent.py:agent'}\n"
    project.write("log.jsonl", '{"id": "1", "messages": [{"role": "assistant", "content": "Hello."}]}\n')
    project.write("scripted.yaml", f"{head}models: {{default: scripted/pipe.yaml}}\n")
    project.write("accepting.yaml", f"{head}metrics: []\naccepted: pipe.yaml\n")
    project.write("rubric.yaml", f"{head}metrics: []\ncustom_metrics: [pipe.md]\n")
    project.write("below.yaml", f"{head}metrics: []\ninclude: ['below/*.yaml']\n")
    (project.root / "below").mkdir()
    for name in ("pipe.yaml", "pipe.md", "pipe.jsonl", "below/pipe.yaml"):
        os.mkfifo(project.root / name)
    return project


@pipes
@pytest.mark.parametrize(
    "command",
    [
        "run pipe.yaml",
        "validate pipe.yaml",
        "run below",
        "run -c below.yaml",
        "run -c pipe.yaml",
        "run -c scripted.yaml",
        "run -c accepting.yaml",
        "run -c rubric.yaml",
        "run --replay pipe.jsonl",
        "score log.jsonl --scenarios pipe.yaml",
        "score log.jsonl -c pipe.yaml",
    ],
)
def test_a_named_pipe_is_refused_and_not_waited_for(piped: Project, command: str) -> None:
    done = piped.call(*command.split())
    assert done.code == 2, done.all
    assert "it is a named pipe, not a file" in done.err


@pipes
def test_a_device_is_refused(piped: Project) -> None:
    for command in ("run /dev/zero", "run -c /dev/zero", "score /dev/zero"):
        done = piped.call(*command.split())
        assert (done.code, "it is a device, not a file" in done.err) == (2, True), done.all
