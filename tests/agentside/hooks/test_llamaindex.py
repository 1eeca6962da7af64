"""How calls of LlamaIndex' tools are read, and how their answers are given."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.hooks import llamaindex
from agenteval.agentside.world import ToolAnswer

PROPERTIES: dict[str, Any] = {"id": {}, "day": {}}


def book(id: str, day: str = "mon", *, ctx: Any = None) -> str:
    return "real"


def tool(**more: Any) -> Any:
    metadata = SimpleNamespace(
        get_name=lambda: "book", get_parameters_dict=lambda: {"properties": PROPERTIES}
    )
    return SimpleNamespace(metadata=metadata, **more)


CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, Any], bool]] = {
    "by name": (tool(real_fn=book), (), {"id": "1"}, {"id": "1"}, False),
    "by position": (tool(real_fn=book), ("1", "tue"), {}, {"id": "1", "day": "tue"}, False),
    "one that is missing": (tool(real_fn=book), (), {"day": "tue"}, {"day": "tue"}, True),
    "one too many": (tool(real_fn=book), (), {"id": "1", "x": 1}, {"id": "1", "x": 1}, True),
    "one that is always given": (
        tool(real_fn=book, partial_params={"id": "1"}),
        (),
        {"day": "tue"},
        {"day": "tue"},
        False,
    ),
    "the context": (
        tool(real_fn=book, ctx_param_name="ctx"),
        (),
        {"id": "1", "ctx": object()},
        {"id": "1"},
        False,
    ),
    "of no function": (tool(), (), {"x": 1}, {"x": 1}, False),
}


@pytest.mark.parametrize(("given", "args", "kwargs", "named", "is_wrong"), CALLS.values(), ids=CALLS)
def test_the_arguments_of_a_call(
    given: Any, args: Any, kwargs: Any, named: dict[str, Any], is_wrong: bool
) -> None:
    found = llamaindex._read(given, args, kwargs)
    assert found is not None
    assert (found.name, found.args, found.key) == ("book", named, id(given))
    assert bool(found.argument_error) is is_wrong


def test_an_adapter_and_its_tool_are_one() -> None:
    inner = tool()
    one, two = llamaindex._read(inner, (), {}), llamaindex._read(tool(base_tool=inner), (), {})
    assert one is not None
    assert two is not None
    assert one.key == two.key == id(inner)


@pytest.mark.parametrize(
    ("module", "is_read"), [("llama_index.core.agent.workflow.x", False), ("shop", True), (None, True)]
)
def test_a_hand_off_of_a_workflow_is_no_call(module: str | None, is_read: bool) -> None:
    def function() -> None:
        return

    function.__module__ = module  # type: ignore[assignment]
    assert (llamaindex._read(tool(real_fn=function), (), {}) is not None) is is_read


@pytest.fixture
def _output(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("llama_index.core.tools")
    module.ToolOutput = SimpleNamespace
    for name in ("llama_index", "llama_index.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "llama_index.core.tools", module)


GIVEN: list[tuple[ToolAnswer, str]] = [
    (ToolAnswer({"a": 1}), '{"a": 1}'),
    (ToolAnswer("x"), "x"),
    (ToolAnswer({"error": "no"}, True), "no"),
    (ToolAnswer({"error": "no"}), '{"error": "no"}'),
]


@pytest.mark.usefixtures("_output")
@pytest.mark.parametrize(("answer", "content"), GIVEN)
def test_an_answer_is_an_output_of_the_tool(answer: ToolAnswer, content: str) -> None:
    given = tool(real_fn=book, ctx_param_name="ctx")
    found = llamaindex._give(given, answer, ("1",), {"day": "tue", "ctx": 5})
    assert vars(found) == {
        "content": content,
        "tool_name": "book",
        "raw_input": {"args": ("1",), "kwargs": {"day": "tue"}},
        "raw_output": answer.value,
        "is_error": answer.is_error,
    }


@pytest.mark.usefixtures("_output")
def test_arguments_that_do_not_fit_are_refused_as_by_the_function() -> None:
    with pytest.raises(TypeError) as caught:
        llamaindex._give(tool(real_fn=book), ToolAnswer(1), (), {})
    assert "id" in str(caught.value)


RECORDED: list[tuple[Any, Any]] = [
    (SimpleNamespace(raw_output={"a": 1}, content="x"), {"a": 1}),
    (SimpleNamespace(raw_output=0, content="x"), 0),
    (SimpleNamespace(raw_output=None, content="x"), "x"),
    (SimpleNamespace(content="x"), "x"),
    ("x", "x"),
]


@pytest.mark.parametrize(("output", "recorded"), RECORDED)
def test_what_is_recorded_of_an_output(output: Any, recorded: Any) -> None:
    assert llamaindex._to_recorded_value(output) == recorded


def test_each_way_to_call_a_tool_is_hooked() -> None:
    class BaseTool:
        def __call__(self) -> str:
            return "real"

        def call(self) -> str:
            return "real"

        async def acall(self) -> str:
            return "real"

    module: Any = ModuleType("llama_index.core.tools.types")
    module.BaseTool = BaseTool
    names = ("__call__", "call", "acall")
    before = [vars(BaseTool)[name] for name in names]
    llamaindex.install(module)
    assert [vars(BaseTool)[name] is real for name, real in zip(names, before, strict=True)] == [False] * 3
    assert BaseTool().call() == "real"
