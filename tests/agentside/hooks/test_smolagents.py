"""How calls of smolagents' tools and managed agents are read, and how their answers are given."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.hooks import smolagents
from agenteval.agentside.hooks.tool_methods import HookedCall
from agenteval.agentside.world import ToolAnswer

INPUTS = {"id": {"type": "string"}, "day": {"type": "string", "nullable": True}}


@pytest.fixture
def tool_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for the framework's class of tools."""

    class Tool:
        name = "book"
        inputs = INPUTS

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "real"

    module: Any = ModuleType("smolagents.tools")
    module.Tool = Tool
    monkeypatch.setitem(sys.modules, "smolagents", ModuleType("smolagents"))
    monkeypatch.setitem(sys.modules, "smolagents.tools", module)
    return Tool


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], dict[str, Any], str]] = {
    "by name": ((), {"id": "1"}, {"id": "1"}, ""),
    "by position": (("1", "mon"), {}, {"id": "1", "day": "mon"}, ""),
    "one by position": (("1",), {}, {"id": "1"}, ""),
    "all in one": (({"id": "1", "day": "mon"},), {}, {"id": "1", "day": "mon"}, ""),
    "a mapping that is an argument": (({"x": 1},), {}, {"id": {"x": 1}}, ""),
    "a mapping and a name": (({"id": "1"},), {"day": "mon"}, {"id": {"id": "1"}, "day": "mon"}, ""),
    "the framework's own option": ((), {"id": "1", "sanitize_inputs_outputs": True}, {"id": "1"}, ""),
    "all in one, with the option": (({"id": "1"},), {"sanitize_inputs_outputs": True}, {"id": "1"}, ""),
    "one too many": ((), {"id": "1", "seat": 2}, {"id": "1", "seat": 2}, "seat"),
    "one that is missing": ((), {"day": "mon"}, {"day": "mon"}, "id"),
    "none": ((), {}, {}, "id"),
    "an empty mapping": (({},), {}, {}, "id"),
}


@pytest.mark.parametrize(("args", "kwargs", "named", "wrong"), CALLS.values(), ids=CALLS)
def test_the_arguments_of_a_call(tool_class: Any, args: Any, kwargs: Any, named: Any, wrong: str) -> None:
    found = smolagents._read(tool_class(), args, kwargs)
    assert found is not None
    assert found._replace(argument_error="") == HookedCall("book", named)
    assert bool(found.argument_error) is bool(wrong)
    assert f"Argument {wrong}" in found.argument_error or not wrong


def test_what_checks_its_arguments_itself_is_not_checked(tool_class: Any) -> None:
    class Own(tool_class):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "own"

    free = tool_class()
    free.skip_forward_signature_validation = True
    for tool in (Own(), free):
        found = smolagents._read(tool, (), {"seat": 2})
        assert found == HookedCall("book", {"seat": 2})


def test_the_final_answer_is_no_call(tool_class: Any) -> None:
    tool = tool_class()
    tool.name = smolagents.FINAL_ANSWER_TOOL
    assert smolagents._read(tool, ("x",), {}) is None


def test_a_managed_agent_is_a_call_and_another_is_none() -> None:
    found = smolagents._read_agent(SimpleNamespace(name="desk"), ("look it up",), {"k": 1})
    assert found == HookedCall("desk", {"task": "look it up", "k": 1}, is_agent=True)
    assert smolagents._read_agent(SimpleNamespace(name=""), ("x",), {}) is None
    assert smolagents._read_agent(SimpleNamespace(name=None), ("x",), {}) is None


GIVEN: list[tuple[Any, ToolAnswer, Any]] = [
    (SimpleNamespace(output_type="string"), ToolAnswer({"a": 1}), '{"a": 1}'),
    (SimpleNamespace(output_type="object"), ToolAnswer({"a": 1}), {"a": 1}),
    (SimpleNamespace(), ToolAnswer([1]), "[1]"),
    (SimpleNamespace(output_type="string"), ToolAnswer("x"), "x"),
]


@pytest.mark.parametrize(("tool", "answer", "given"), GIVEN)
def test_an_answer_has_the_type_of_the_tool(tool: Any, answer: ToolAnswer, given: Any) -> None:
    assert smolagents._give(tool, answer, (), {}) == given


@pytest.mark.parametrize(("value", "text"), [({"error": "no seat"}, "no seat"), ("broken", "broken")])
def test_an_error_is_raised(value: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        smolagents._give(SimpleNamespace(), ToolAnswer(value, is_error=True), (), {})
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "attribute"), [("smolagents.tools", "Tool"), ("smolagents.agents", "MultiStepAgent")]
)
def test_what_each_module_holds_is_hooked(tool_class: Any, name: str, attribute: str) -> None:
    module: Any = ModuleType(name)
    setattr(module, attribute, tool_class)
    before = tool_class.__call__
    smolagents.install(module)
    assert tool_class.__call__ is not before
    assert tool_class()(id="1") == "real"
