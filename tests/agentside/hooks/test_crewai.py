"""How calls of CrewAI's tools are read, and how their answers are given."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.agentside.hooks import crewai
from agenteval.agentside.world import ToolAnswer


class Schema(BaseModel):
    id: int
    day: str = "mon"


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("crewai.utilities.string_utils")
    module.sanitize_tool_name = lambda name: name.replace(" ", "_").lower()
    for name in ("crewai", "crewai.utilities"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "crewai.utilities.string_utils", module)


class Tool:
    def __init__(self, schema: Any = Schema, **more: Any) -> None:
        self.name = "Get order"
        self.args_schema = schema
        self.current_usage_count = 2
        vars(self).update(more)


def theirs(module: str, name: str = "ReadMemory", base: type = Tool) -> Any:
    return type(name, (base,), {"__module__": module, "__qualname__": name})()


RUNS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], Any, bool]] = {
    "by name": (Tool(), (), {"id": 1}, {"id": 1}, False),
    "by position": (Tool(), (1, "tue"), {}, {"id": 1, "day": "tue"}, False),
    "one that does not fit": (Tool(), (), {"id": "x"}, {"id": "x"}, True),
    "one that is missing": (Tool(), (), {}, {}, True),
    "of no schema": (Tool(None), (), {"x": 1}, {"x": 1}, False),
    "of a schema without fields": (Tool(BaseModel), (), {"x": 1}, {"x": 1}, False),
}


@pytest.mark.parametrize(("tool", "args", "kwargs", "named", "is_wrong"), RUNS.values(), ids=RUNS)
def test_a_native_call(tool: Any, args: Any, kwargs: Any, named: Any, is_wrong: bool) -> None:
    found = crewai._read_run(tool, args, kwargs)
    assert found is not None
    assert (found.name, found.args, found.key, found.is_agent) == ("get_order", named, id(tool), False)
    assert bool(found.argument_error) is is_wrong
    assert "'Get order'" in found.argument_error or not is_wrong


WRITTEN: dict[str, tuple[tuple[Any, ...], dict[str, Any], Any]] = {
    "as text": (('{"id": 1}',), {}, {"id": 1}),
    "as a mapping": (({"id": 1},), {}, {"id": 1}),
    "by name": ((), {"input": '{"id": 1}'}, {"id": 1}),
    "not JSON": (("id: 1",), {}, "id: 1"),
    "and its settings": (({"id": 1}, object()), {}, {"id": 1}),
}


@pytest.mark.parametrize(("args", "kwargs", "found"), WRITTEN.values(), ids=WRITTEN)
def test_a_call_that_a_model_writes(args: Any, kwargs: Any, found: Any) -> None:
    original = Tool()
    call = crewai._read_invoke(Tool(_original_tool=original), args, kwargs)
    assert call is not None
    assert (call.args, call.key) == (found, id(original))
    alone = Tool()
    call = crewai._read_invoke(alone, args, kwargs)
    assert call is not None
    assert call.key == id(alone)


@pytest.mark.parametrize(
    ("module", "is_read"),
    [
        ("crewai.tools.agent_tools.add_image_tool", False),
        ("crewai.tools.memory_tools", False),
        ("crewai.tools.cache_tools.cache_tools", False),
        ("crewai.skills.loader", False),
        ("crewai.tools.structured_tool", True),
        ("crewai_tools.search", True),
        ("shop.crewai.skills.x", True),
    ],
)
def test_the_frameworks_own_tools_are_no_calls(module: str, is_read: bool) -> None:
    assert (crewai._read_run(theirs(module), (), {"id": 1}) is not None) is is_read
    wrapped = Tool(_original_tool=theirs(module))
    assert (crewai._read_invoke(wrapped, ({"id": 1},), {}) is not None) is is_read


def test_delegating_is_a_call_of_an_agent() -> None:
    base: type = type("BaseAgentTool", (Tool,), {"__module__": "crewai.tools.agent_tools.base_agent_tools"})
    found = crewai._read_run(theirs("crewai.tools.agent_tools.ask", "AskQuestion", base), (), {"id": 1})
    assert found is not None
    assert found.is_agent


GIVEN: list[tuple[ToolAnswer, Any]] = [
    (ToolAnswer({"a": 1}), {"a": 1}),
    (ToolAnswer("x"), "x"),
    (ToolAnswer({"error": "no"}, True), "Error: no"),
]


@pytest.mark.parametrize(("answer", "given"), GIVEN)
def test_an_answer_counts_as_a_use(answer: ToolAnswer, given: Any) -> None:
    tool = Tool()
    assert crewai._give_run(tool, answer, (1,), {}) == given
    assert crewai._give_invoke(tool, answer, ('{"id": 1}',), {}) == given
    assert tool.current_usage_count == 4


def test_arguments_that_do_not_fit_are_refused_and_no_use() -> None:
    tool = Tool()
    with pytest.raises(ValueError) as caught:
        crewai._give_run(tool, ToolAnswer(1), (), {})
    assert "'Get order'" in str(caught.value)
    with pytest.raises(ValueError):
        crewai._give_invoke(tool, ToolAnswer(1), ({},), {})
    assert tool.current_usage_count == 2


@pytest.mark.parametrize(
    ("name", "methods"), [("BaseTool", ("run", "arun")), ("CrewStructuredTool", ("invoke", "ainvoke"))]
)
def test_each_way_to_call_a_tool_is_hooked(name: str, methods: tuple[str, ...]) -> None:
    def plain(self: Any, *_: Any) -> str:
        return "real"

    async def later(self: Any, *_: Any) -> str:
        return "real"

    cls: Any = type(name, (Tool,), dict(zip(methods, (plain, later), strict=True)))
    crewai.install(SimpleNamespace(**{name: cls}))
    assert [getattr(cls, method) is real for method, real in zip(methods, (plain, later), strict=True)] == [
        False,
        False,
    ]
    assert getattr(cls(), methods[0])({"id": 1}) == "real"
