"""``agenteval tools serve --stdio-bridge``: which options belong together, and which run it belongs to."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval.adapters.bridge import addresses
from agenteval.cli.commands import bridge as module
from agenteval.cli.commands.bridge import bridge
from agenteval.core.errors import AuthorError

URL = "http://127.0.0.1:9/mcp"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was served."""
    found: list[Any] = []

    async def serve(url: str, *, only: tuple[str, ...], real: Any) -> None:
        found.append((url, only, list(real)))

    monkeypatch.setattr(module, "serve", serve)
    monkeypatch.setattr(addresses, "find_address", lambda: None)
    monkeypatch.setenv(addresses.MCP_URL_VARIABLE, URL)
    monkeypatch.setitem(sys.modules, "mcp", SimpleNamespace())
    return found


def call(*command: str, **more: Any) -> int:
    options = {"is_bridge": True, "only": None, "has_real": False, "has_others": False, **more}
    return bridge(command, **options)


@pytest.mark.parametrize(
    ("command", "more", "expected"),
    [
        ((), {}, (URL, (), [])),
        ((), {"only": "a"}, (URL, ("a",), [])),
        ((), {"only": " b , a,,"}, (URL, ("b", "a"), [])),
        (("node", "s.js"), {"has_real": True}, (URL, (), ["node", "s.js"])),
        (("node",), {"has_real": True, "only": "a"}, (URL, ("a",), ["node"])),
    ],
)
def test_what_is_served(
    served: list[Any], command: tuple[str, ...], more: dict[str, Any], expected: Any
) -> None:
    assert call(*command, **more) == 0
    assert served == [expected]


@pytest.mark.parametrize(
    ("command", "more", "facts"),
    [
        ((), {"is_bridge": False}, ["--only", "--else", "--stdio-bridge"]),
        ((), {"is_bridge": False, "only": "a"}, ["--stdio-bridge"]),
        ((), {"has_others": True}, ["--only and --else"]),
        ((), {"has_real": True}, ["--else", "-- COMMAND"]),
        (("a.yaml",), {}, ["a.yaml", "--else --"]),
        ((), {"only": ""}, ["--only"]),
        ((), {"only": " , "}, ["--only"]),
    ],
)
def test_options_that_do_not_fit(
    served: list[Any], command: tuple[str, ...], more: dict[str, Any], facts: list[str]
) -> None:
    with pytest.raises(AuthorError) as error:
        call(*command, **more)
    for fact in facts:
        assert fact in str(error.value)
    assert served == []


def test_without_the_package_it_is_named(served: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(AuthorError) as error:
        call()
    assert "agenteval-runner[mcp]" in str(error.value)


def at(url: str) -> Any:
    return SimpleNamespace(url=url, name="bot")


@pytest.mark.parametrize(
    ("variable", "found", "expected"),
    [(URL, at("other"), URL), ("", at("found"), "found"), (None, at("found"), "found")],
)
def test_the_conversation_that_it_belongs_to(
    served: list[Any], monkeypatch: pytest.MonkeyPatch, variable: str | None, found: Any, expected: str
) -> None:
    monkeypatch.setenv(addresses.MCP_URL_VARIABLE, variable or "")
    if variable is None:
        monkeypatch.delenv(addresses.MCP_URL_VARIABLE)
    monkeypatch.setattr(addresses, "find_address", lambda: found)
    call()
    assert served[0][0] == expected


@pytest.mark.parametrize(
    ("found", "platform", "facts"),
    [
        (None, "linux", ["agenteval run", "mcp: true"]),
        (at(""), "linux", ["bot", "mcp: true"]),
        (at("found"), "win32", [addresses.MCP_URL_VARIABLE, "env"]),
    ],
)
def test_outside_a_conversation(
    served: list[Any], monkeypatch: pytest.MonkeyPatch, found: Any, platform: str, facts: list[str]
) -> None:
    monkeypatch.delenv(addresses.MCP_URL_VARIABLE)
    monkeypatch.setattr(addresses, "find_address", lambda: found)
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(AuthorError) as error:
        call()
    for fact in facts:
        assert fact in str(error.value)
    assert served == []
