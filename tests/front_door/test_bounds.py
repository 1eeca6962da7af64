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
import pytest

from agenteval.adapters.transport.bodies import (
    MAX_BODY,
    Body,
    TooLargeError,
    UnreadableBodyError,
    read_body,
    read_error_body,
)
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Wire, answer, respond

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
    "endless-stream": endless(headers=SSE, piece=b'data: {"choices": []}\n\n' * 1000),
    "one-endless-line-of-a-stream": endless(headers=SSE, piece=b"data: " + b"x" * 65536),
    "bomb": packed(BOMB),
    "bomb-in-a-bomb": packed(gzip.compress(BOMB), "gzip, gzip"),
    "bare-bomb": packed(zlib.compress(b" " * (MAX_BODY + 1), wbits=-15), "deflate"),
    "many-bombs": packed(gzip.compress(b" " * 2**20) * 11),
}
REFUSED = {
    "refused-endless": endless(status=400),
    "refused-bomb": endless(status=400, headers={"Content-Encoding": "gzip"}, piece=BOMB),
}
REPLY = json.dumps({
    "choices": [{"message": {"role": "assistant", "content": "x " * 2**19 + "the end"}}]
}).encode()  # fmt: skip
FITS = {  # the other side: a megabyte, packed or not, is read as it is
    "fits-gzip": packed(gzip.compress(REPLY), "gzip"),
    "fits-deflate": packed(zlib.compress(REPLY), "deflate"),
    "fits-identity": packed(REPLY, "identity"),
}
BEHAVIOURS = {**TOO_LARGE, **REFUSED, **FITS, "unknown-packing": packed(b"\x1b\x00", "br")}


def samples(project: Project) -> dict[str, Any]:
    return {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


@pytest.fixture(scope="module")
def of_agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run with an agent for each behaviour, which is the first part of its path."""
    project = Project(tmp_path_factory.mktemp("agents"))
    expect = {"output": {"contains": ["the end"]}}
    suite = [{"id": name, "agent": name, "turns": ["hi"], "expect": expect} for name in BEHAVIOURS]
    project.scenarios(json.dumps({"scenarios": suite}))
    with LocalServer(answer(lambda request: BEHAVIOURS[request.path.split("/")[1]])) as server:
        urls = {name: f"{server.address}/{name}/v1/chat/completions" for name in BEHAVIOURS}
        agents = {name: {"type": "http", "endpoint": url} for name, url in urls.items()}
        project.write("agenteval.yaml", json.dumps({"agents": agents, "metrics": []}))
        assert project.run("--no-judge").code == 1
    return samples(project)


@pytest.fixture(scope="module")
def of_judges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of each scenario, whose judge's server behaves as the criterion is called."""
    project = Project(tmp_path_factory.mktemp("judges"))
    project.agent("def agent(message):\n    return 'Hello.'\n")
    kinds = {**TOO_LARGE, **REFUSED}
    suite = [{"id": name, "turns": ["hi"], "expect": {"criteria": [f"Is <{name}>."]}} for name in kinds]
    project.scenarios(json.dumps({"scenarios": suite}))
    asked = answer(lambda request: next(kinds[name] for name in kinds if f"<{name}>" in str(request.json)))
    with LocalServer(asked) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.address}/v1'}}"
        project.config(f"models: {{default: {model}}}\nmetrics: []\n")
        found = {}
        for name in kinds:  # a model that failed five times in a row is not asked again
            assert project.run(f"suite.yaml::{name}").code == 3
            found |= {name: project.sample(name)}
    return found


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_a_reply_that_is_too_large_is_charged_to_who_sent_it(
    of_agents: dict[str, Any], of_judges: dict[str, Any], kind: str
) -> None:
    sample = of_agents[kind]
    assert (sample["verdict"], sample["stop"]) == ("failed", "agent_error")
    assert "10 MiB" in sample["turns"][0]["error"]
    assert of_judges[kind]["verdict"] == "inconclusive"
    assert "10 MiB" in json.dumps(of_judges[kind])


@pytest.mark.parametrize("kind", REFUSED)
def test_an_error_that_is_too_large_is_that_error(
    of_agents: dict[str, Any], of_judges: dict[str, Any], kind: str
) -> None:
    sample = of_agents[kind]
    assert sample["verdict"] == "failed"
    assert "400" in sample["turns"][0]["error"]
    assert of_judges[kind]["verdict"] == "inconclusive"
    assert "400" in json.dumps(of_judges[kind])


def test_a_packed_reply_that_fits_is_read_and_an_unknown_packing_is_not(of_agents: dict[str, Any]) -> None:
    assert {of_agents[kind]["verdict"] for kind in FITS} == {"passed"}
    sample = of_agents["unknown-packing"]
    assert sample["verdict"] == "failed"
    assert "gzip, deflate" in sample["turns"][0]["error"]


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


def test_what_an_agent_in_python_returns_is_bounded_as_well(project: Project) -> None:
    project.agent(IN_PYTHON)
    agent = {"target": "agent.py:agent"}
    agents = {"here": agent, "there": {**agent, "interpreter": sys.executable}}
    project.write("agenteval.yaml", json.dumps({"agents": agents, "metrics": []}))
    kinds = ("text", "message", "messages", "raises")
    rows = [(name, kind, 2) for name in agents for kind in kinds]
    rows += [("here", kind, 0) for kind in kinds] + [("there", "text", 0)]  # what fits is slow to report
    suite = [
        {"id": f"{name}-{kind}-{n}", "agent": name, "turns": [f"{kind} {n}"], "checks": "none"}
        for name, kind, n in rows
    ]
    project.scenarios(json.dumps({"scenarios": suite}))
    assert project.run().code == 1
    found = samples(project)
    for name, kind, n in rows:
        sample = found[f"{name}-{kind}-{n}"]
        error = sample["turns"][0].get("error") or ""
        assert sample["verdict"] == ("failed" if n or kind == "raises" else "passed"), error
        assert ("10 MiB" in error) == bool(n)
        if n:
            assert sample["stop"] == "agent_error"
            assert ("ValueError" in error) == (kind == "raises")


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
    with pytest.raises(UnreadableBodyError):
        Body(encoding)


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def test_broken_packing() -> None:
    with pytest.raises(UnreadableBodyError):
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
    ("command", "named"),
    {
        "run pipe.yaml": "pipe.yaml",
        "validate pipe.yaml": "pipe.yaml",
        "run below": "below/pipe.yaml",
        "run -c below.yaml": "below/pipe.yaml",
        "run -c pipe.yaml": "pipe.yaml",
        "run -c scripted.yaml": "pipe.yaml",
        "run -c accepting.yaml": "pipe.yaml",
        "run -c rubric.yaml": "pipe.md",
        "run --replay pipe.jsonl": "pipe.jsonl",
        "score log.jsonl --scenarios pipe.yaml": "pipe.yaml",
        "score log.jsonl -c pipe.yaml": "pipe.yaml",
        "run /dev/zero": "/dev/zero",
        "run -c /dev/zero": "/dev/zero",
        "score /dev/zero": "/dev/zero",
    }.items(),
)
def test_a_named_pipe_or_device_is_refused_and_not_waited_for(
    piped: Project, command: str, named: str
) -> None:
    piped.call(*command.split()).refuses("agenteval", named, "device" if "dev" in named else "pipe")
