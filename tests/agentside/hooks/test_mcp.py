"""How calls of MCP clients are read, how their answers are given, and what is recorded of a server's."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.hooks import mcp
from agenteval.agentside.hooks.tool_methods import HookedCall, ToolFailedError
from agenteval.agentside.world import ToolAnswer

ELSE = SimpleNamespace(server_info=SimpleNamespace(name="shop"))

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], Any]] = {
    "by position": (("look", {"a": 1}), {}, {"a": 1}),
    "by name": ((), {"name": "look", "arguments": {"a": 1}}, {"a": 1}),
    "without arguments": (("look",), {}, {}),
    "with none": (("look", None), {}, {}),
    "with more": (("look", {"a": 1}, 5), {"meta": 1}, {"a": 1}),
    "that nothing goes on": (("look",), {"input_responses": None, "request_state": None}, {}),
}


@pytest.mark.parametrize(("args", "kwargs", "named"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("session", [ELSE, SimpleNamespace(), SimpleNamespace(server_info=None)])
def test_a_call_is_known_by_its_name(session: Any, args: Any, kwargs: Any, named: Any) -> None:
    assert mcp._read(session, args, kwargs) == HookedCall("look", named, key="look")


@pytest.mark.parametrize("kwargs", [{"input_responses": []}, {"request_state": ""}])
def test_a_call_that_goes_on_is_no_new_one(kwargs: dict[str, Any]) -> None:
    assert mcp._read(ELSE, ("look",), kwargs) is None


def test_the_own_server_records_its_calls_itself() -> None:
    own = SimpleNamespace(server_info=SimpleNamespace(name="agenteval"))
    assert mcp._read(own, ("look",), {}) is None


def result(*texts: str, **more: Any) -> Any:
    return SimpleNamespace(content=[SimpleNamespace(type="text", text=text) for text in texts], **more)


RECORDED: dict[str, tuple[Any, Any]] = {
    "a text": (result("a"), "a"),
    "texts": (result("a", "b"), "a\nb"),
    "nothing": (result(), ""),
    "no content at all": (SimpleNamespace(), ""),
    "a picture": (SimpleNamespace(content=[SimpleNamespace(type="image")]), "[image]"),
    "data": (result("a", structuredContent={"x": 1}), {"x": 1}),
    "data, as later releases name it": (result("a", structured_content={"x": 1}), {"x": 1}),
    "a value that was wrapped": (result("5", structuredContent={"result": 5}), "5"),
    "more than a value": (result("5", structuredContent={"result": 5, "x": 1}), {"result": 5, "x": 1}),
    "no data": (result("a", structuredContent={}), "a"),
    "no error": (result("a", isError=False, is_error=False), "a"),
}


@pytest.mark.parametrize(("given", "recorded"), RECORDED.values(), ids=RECORDED)
def test_what_is_recorded_of_a_result(given: Any, recorded: Any) -> None:
    assert mcp._to_recorded_value(given) == recorded


@pytest.mark.parametrize("name", ["isError", "is_error"])
def test_an_error_of_the_server_is_recorded_as_one(name: str) -> None:
    with pytest.raises(ToolFailedError) as caught:
        mcp._to_recorded_value(result("no", "seat", **{name: True}))
    assert str(caught.value) == "no\nseat"


GIVEN: dict[str, tuple[ToolAnswer, dict[str, Any]]] = {
    "data": (ToolAnswer({"a": 1}), {"text": '{"a": 1}', "isError": False, "structuredContent": {"a": 1}}),
    "a text": (ToolAnswer("x"), {"text": "x", "isError": False}),
    "a list": (ToolAnswer([1]), {"text": "[1]", "isError": False}),
    "an error": (ToolAnswer({"error": "no seat"}, True), {"text": "no seat", "isError": True}),
    "a value like an error": (
        ToolAnswer({"error": "x"}),
        {"text": '{"error": "x"}', "isError": False, "structuredContent": {"error": "x"}},
    ),
}


@pytest.mark.parametrize(("answer", "given"), GIVEN.values(), ids=GIVEN)
def test_an_answer_is_a_result_of_a_server(
    monkeypatch: pytest.MonkeyPatch, answer: ToolAnswer, given: dict[str, Any]
) -> None:
    types: Any = ModuleType("mcp.types")
    types.CallToolResult = SimpleNamespace(model_validate=lambda value: ["result", value])
    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setitem(sys.modules, "mcp.types", types)
    (kind, found) = mcp._give(ELSE, answer, (), {})
    (content,) = found.pop("content")
    assert (kind, content.pop("type")) == ("result", "text")
    assert {**content, **found} == given


def session_class(**more: Any) -> Any:
    async def call_tool(self: Any, name: str) -> str:
        return "real"

    async def initialize(self: Any) -> Any:
        return SimpleNamespace(serverInfo=SimpleNamespace(name="shop"))

    return type("ClientSession", (), {"call_tool": call_tool, "initialize": initialize, **more})


def test_an_older_session_is_told_its_server() -> None:
    cls = session_class()
    mcp.install(SimpleNamespace(ClientSession=cls))
    session = cls()
    found = asyncio.run(session.initialize())
    assert session.server_info is found.serverInfo
    assert asyncio.run(session.call_tool("look")) == "real"


def test_a_newer_session_knows_its_server() -> None:
    cls = session_class(server_info=None)
    before = vars(cls)["initialize"], vars(cls)["call_tool"]
    mcp.install(SimpleNamespace(ClientSession=cls))
    assert vars(cls)["initialize"] is before[0]
    assert vars(cls)["call_tool"] is not before[1]
