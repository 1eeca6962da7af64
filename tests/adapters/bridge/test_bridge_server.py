"""How a bridge finds its run, and what it answers when that has gone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.agents.mcp_server import MCP_URL_VARIABLE, McpHost, ServedTools
from agenteval.adapters.bridge import addresses, ancestors
from agenteval.agentside.targets.context import CONVERSATION_OVER
from agenteval.agentside.world import ToolAnswer
from agenteval.core.scenario import Tool
from tests.support.kit import environment

posix = pytest.mark.skipif(sys.platform == "win32", reason="no files are written there")
_ANSWER_S = 60.0
BRIDGE = ["-m", "agenteval", "tools", "serve", "--stdio-bridge"]


async def answered(name: str, args: dict[str, Any]) -> ToolAnswer:
    return ToolAnswer({"name": name, **args})


def test_the_bridge_lists_and_calls_and_outlives_conversation_and_run() -> None:
    from mcp import Client, StdioServerParameters

    host = McpHost()
    address = host.address()
    address.served = ServedTools({"get_order": Tool(returns=1), "cancel_order": Tool(returns=1)}, answered)
    host.start()
    server = StdioServerParameters(
        command=sys.executable,
        args=[*BRIDGE, "--only", "get_order, no_such_tool"],
        env=environment({MCP_URL_VARIABLE: address.url, "HTTP_PROXY": "http://127.0.0.1:9"}),
    )

    async def play() -> None:
        async with Client(server, cache=None, read_timeout_seconds=_ANSWER_S) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["get_order"]
            called = await client.call_tool("get_order", {"id": "A", "note": None})
            assert called.structured_content == {"name": "get_order", "id": "A", "note": None}
            address.served = ServedTools()
            over = await client.call_tool("get_order", {"id": "A"})
            assert (over.is_error, CONVERSATION_OVER in over.content[0].text) == (True, True)  # type: ignore[union-attr]
            host.close()
            gone = await client.call_tool("get_order", {"id": "A"})
            assert gone.is_error
            assert "run no longer responds" in gone.content[0].text  # type: ignore[union-attr]

    try:
        asyncio.run(play())
    finally:
        host.close()


# ── the files ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process writes them, from anew."""
    made = tmp_path / "agenteval"
    monkeypatch.setattr(addresses, "_folders", lambda: iter((made,)))
    monkeypatch.setattr(addresses, "_home", 0)
    monkeypatch.setattr(addresses, "_LOOKS", 1)
    monkeypatch.setattr(addresses.atexit, "register", lambda _call: None)
    return made


@posix
def test_the_nearest_ancestor_that_was_announced_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert addresses.find_address() is None
    parent = ancestors.inspect_process(os.getppid())
    assert parent
    addresses.announce(parent.parent, "http://far")
    assert addresses.find_address() == addresses.AnnouncedAddress("http://far", _name_of(parent.parent))
    addresses.announce(parent.pid, "http://near")
    assert addresses.find_address() == addresses.AnnouncedAddress("http://near", parent.name)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    addresses.withdraw(parent.pid)
    addresses.withdraw(parent.parent)
    assert addresses.find_address() is None
    assert list(folder.iterdir()) == []


def _name_of(pid: int) -> str:
    found = ancestors.inspect_process(pid)
    return found.name if found else ""


@posix
def test_an_agent_without_an_address_hides_that_of_the_run(folder: Path) -> None:
    addresses.announce(os.getppid(), "")
    assert not folder.exists()  # nothing to hide
    addresses.announce(os.getpid(), "http://here")
    addresses.announce(os.getppid(), "")
    found = addresses.find_address()
    assert found is not None
    assert found.url == ""
    addresses.withdraw_all()
    assert list(folder.iterdir()) == []


@posix
def test_files_of_processes_that_are_gone_are_removed(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = ancestors.inspect_process(os.getpid())
    assert own
    names = (f"{ended.pid}-1", f"{os.getpid()}-1", own.identity, f"{own.identity}.new", "what.is.this")
    for name in names:
        (folder / name).write_text("")
    addresses.announce(os.getpid(), "http://here")
    assert {path.name for path in folder.iterdir()} == {own.identity}
    addresses.withdraw_all()


@posix
@pytest.mark.parametrize("kind", ["open to others", "a link", "a file that is a link"])
def test_a_folder_that_another_could_have_made_is_not_used(kind: str, folder: Path, tmp_path: Path) -> None:
    parent = ancestors.inspect_process(os.getppid())
    assert parent
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / parent.identity).write_text("http://evil")
    if kind == "open to others":
        other.chmod(0o777)
        other.rename(folder)
    elif kind == "a link":
        folder.symlink_to(other)
    else:
        folder.mkdir(mode=0o700)
        (folder / parent.identity).symlink_to(other / parent.identity)
    assert addresses.find_address() is None
    if kind != "a file that is a link":
        addresses.announce(os.getpid(), "http://here")  # does without
        assert {path.name for path in folder.iterdir()} == {parent.identity}


@posix
def test_where_there_is_no_proc_ps_shows_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = ancestors.inspect_process(os.getpid())
    monkeypatch.setattr(ancestors, "_PROC", tmp_path)
    by_ps = ancestors.inspect_process(os.getpid())
    assert shown
    assert by_ps
    assert (by_ps.pid, by_ps.parent) == (shown.pid, shown.parent) == (os.getpid(), os.getppid())
    assert by_ps.started
    assert "/" not in by_ps.identity
    assert by_ps.parent in [process.pid for process in ancestors.ancestors()]
    assert ancestors.inspect_process(2**22 + 1) is None
