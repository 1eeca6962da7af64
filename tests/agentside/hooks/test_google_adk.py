"""How calls of the tools of Google's ADK are read, and how their answers are given."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.hooks import google_adk
from agenteval.agentside.hooks.tool_methods import HookedCall
from agenteval.agentside.world import ToolAnswer


class BaseTool:
    def __init__(self, name: str = "book") -> None:
        self.name = name

    async def run_async(self, *, args: Any, tool_context: Any) -> Any:
        return "real"


class Booking(BaseTool):
    pass


class AgentTool(BaseTool):
    pass


class Desk(AgentTool):
    pass


class Theirs(BaseTool):
    __module__ = "google.adk.tools.some_tool"


def made(kind: type[BaseTool], name: str, **more: Any) -> Any:
    tool = kind(name)
    vars(tool).update(more)
    return tool


def of_module(name: str | None) -> Any:
    return SimpleNamespace(__module__=name)


OWN: dict[str, tuple[Any, bool]] = {
    "theirs": (made(Theirs, "exit_loop"), True),
    "theirs, made of their function": (made(Theirs, "exit_loop", func=of_module("google.adk.tools.x")), True),
    "theirs, made of the author's": (made(Theirs, "exit_loop", func=of_module("shop")), False),
    "theirs, made of nobody's": (made(Theirs, "exit_loop", func=of_module(None)), False),
    "theirs by another name": (made(Theirs, "book"), False),
    "the author's of that name": (made(Booking, "exit_loop"), False),
}


@pytest.mark.parametrize(("tool", "is_own"), OWN.values(), ids=OWN)
def test_the_tools_of_the_frameworks_own_flow(tool: Any, is_own: bool) -> None:
    assert google_adk.is_adk_builtin(tool) is is_own
    read = google_adk._read(tool, (), {"args": {}, "tool_context": SimpleNamespace()})
    assert (read is None) is is_own


@pytest.mark.parametrize(
    "name",
    [
        "transfer_to_agent",
        "set_model_response",
        "exit_loop",
        "finish_task",
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
    ],
)
def test_each_of_them_is_known(name: str) -> None:
    assert google_adk.is_adk_builtin(Theirs(name))


def test_a_call_is_read_with_its_id_and_its_agent() -> None:
    args: dict[str, Any] = {"days": ["mon"]}
    context = SimpleNamespace(function_call_id="c1", agent_name="desk")
    found = google_adk._read(Booking(), (), {"args": args, "tool_context": context})
    assert found == HookedCall("book", {"days": ["mon"]}, "c1", agent="desk")
    args["days"].append("tue")
    assert found.args == {"days": ["mon"]}


@pytest.mark.parametrize("context", [None, SimpleNamespace(), SimpleNamespace(function_call_id=None)])
def test_a_call_without_an_id(context: Any) -> None:
    found = google_adk._read(Booking(), (), {"args": {}, "tool_context": context})
    assert found == HookedCall("book", {}, "")


def test_an_agent_as_a_tool_and_a_missing_tool() -> None:
    kwargs: dict[str, Any] = {"args": {}, "tool_context": None}
    for tool, is_agent in ((Booking(), False), (AgentTool(), True), (Desk(), True)):
        found = google_adk._read(tool, (), kwargs)
        assert found is not None
        assert found.is_agent is is_agent
    assert google_adk._read(BaseTool(), (), kwargs) is None


GIVEN: list[tuple[ToolAnswer, Any]] = [
    (ToolAnswer({"a": 1}), {"a": 1}),
    (ToolAnswer("x"), "x"),
    (ToolAnswer({"error": "no"}, True), {"error": "no"}),
    (ToolAnswer("no", True), {"error": "no"}),
    (ToolAnswer({"code": 4}, True), {"error": {"code": 4}}),
]


@pytest.mark.parametrize(("answer", "given"), GIVEN)
def test_an_error_is_a_mapping_with_its_key(answer: ToolAnswer, given: Any) -> None:
    assert google_adk._give(Booking(), answer, (), {}) == given


@pytest.fixture
def function_tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    class FunctionTool(BaseTool):
        def __init__(self, func: Any) -> None:
            super().__init__("book")
            self.func = func

        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return self.func(**args)

    module: Any = ModuleType("google.adk.tools")
    module.FunctionTool = FunctionTool
    for name in ("google", "google.adk"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "google.adk.tools", module)
    return FunctionTool


def test_a_mocked_function_has_the_signature_of_the_real_one(function_tool: Any) -> None:
    def book(day: str, seats: int = 1) -> str:
        return "real"

    def ask(*_: Any, **__: Any) -> str:
        return "mocked"

    tool = function_tool(book)
    proxy = google_adk._make_proxy(tool, ask)
    assert proxy is not tool
    assert (proxy.func, tool.func, proxy.name) == (ask, book, "book")
    assert inspect.signature(ask) == inspect.signature(book)
    assert ask.__name__ == "book"
    assert ask.__annotations__ == {}


def test_what_does_more_than_call_its_function_has_no_proxy(function_tool: Any) -> None:
    class Careful(function_tool):  # type: ignore[misc]
        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return "asked first"

    def ask() -> None:
        return

    assert google_adk._make_proxy(Careful(ask), ask) is None
    assert google_adk._make_proxy(Booking(), ask) is None
    assert google_adk._make_proxy(function_tool(5), ask) is None
    assert google_adk._make_proxy(function_tool(min), ask) is None
