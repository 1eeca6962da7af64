"""Inspect LangChain tools without running them."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

from ..closures import closure_variables
from .tool_methods import ToolFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_INJECTED = re.compile(r"Injected|ToolRuntime|RunnableConfig|CallbackManager")
_HANDOFF_METADATA = "__handoff_destination"
"""The metadata key in tools created by langgraph-supervisor and langgraph-swarm."""
_HANDOFF_NAME = re.compile(
    r"^(transfer|hand_?off|assign|delegate|route|switch|escalate|go)_(.*_)?to_", re.IGNORECASE
)
_STATE_TOOL_MODULES = ("langchain.agents.middleware.todo",)
"""The modules that define tools that only write to the graph's state."""
_SUBAGENT_MODULES = ("deepagents.middleware.subagents",)
"""The modules that define tools that delegate work to another agent."""
_AS_TOOL = "langchain_core.tools.convert"
"""The module in which ``Runnable.as_tool()`` creates the tool's function."""


def wrapped_function(tool: Any) -> Any:
    """Return the function that a call to the tool runs."""
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run


def returns_text(tool: Any) -> bool:
    return getattr(wrapped_function(tool), "__annotations__", {}).get("return") in (str, "str")


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


def model_arguments(tool: Any, tool_input: Any) -> dict[str, Any]:
    """Return the arguments of a call, excluding arguments that the graph injects."""
    injected = injected_arguments(tool)
    if not isinstance(tool_input, dict):
        fields = getattr(getattr(tool, "args_schema", None), "model_fields", ())
        name = next((name for name in fields if name not in injected), "input")
        return {} if tool_input is None or tool_input == "" else {name: tool_input}
    return {
        name: value for name, value in tool_input.items() if name not in injected and not _is_of_graph(value)
    }


def injected_arguments(tool: Any) -> set[str]:
    """Return the names of the arguments that the model does not supply, according to the annotations in the
    function or the schema."""
    functions = (getattr(tool, "func", None), getattr(tool, "coroutine", None), type(tool)._run)
    notes = [getattr(each, "__annotations__", {}) for each in functions if each is not None]
    schema = getattr(tool, "args_schema", None)
    if isinstance(schema, type):
        notes += [each.__annotations__ for each in schema.__mro__ if "__annotations__" in vars(each)]
    return {name for each in notes for name, note in each.items() if _INJECTED.search(_as_text(note))}


def _as_text(note: Any) -> str:
    return note if isinstance(note, str) else f"{getattr(note, '__name__', '')} {note!r}"


def _is_of_graph(value: Any) -> bool:
    return type(value).__module__.startswith("langgraph.")


def find_argument_error(tool: Any, tool_input: Any) -> str:
    """Return the reason why LangChain refuses the arguments before the tool runs, or an empty string if the
    arguments are valid."""
    validate = getattr(getattr(tool, "args_schema", None), "model_validate", None)
    if validate is None or not isinstance(tool_input, dict):
        return ""
    try:
        validate(dict(tool_input))
    except Exception as error:  # possibly from a validator of the author's
        wrong = error.errors() if hasattr(error, "errors") else []
        injected = injected_arguments(tool)  # some are injected later
        return str(error) if any(str((*each["loc"], "")[0]) not in injected for each in wrong) else ""
    return ""


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def to_recorded_value(result: Any) -> Any:
    """Return the part of a tool's return value that a model reads. Raise ``ToolFailedError`` for an error."""
    if hasattr(result, "tool_call_id") and hasattr(result, "content"):
        text = _text(result.content)
        if getattr(result, "status", "") == "error":
            raise ToolFailedError(text)
        return text
    if type(result).__module__.startswith("langgraph.") and hasattr(result, "goto"):
        update = result.update if isinstance(result.update, dict) else {}
        texts = [to_recorded_value(each) for each in update.get("messages") or ()]
        return texts[-1] if texts else ""
    return _text(result.content) if hasattr(result, "response_metadata") else result


def _text(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    texts = [each.get("text") or "" if isinstance(each, dict) else each for each in content]
    return "".join(map(str, texts))


# ── the graph's own tools ────────────────────────────────────────────────────────────────────────


def is_agent(tool: Any) -> bool:
    """Return whether the tool calls another agent through a feature of the framework."""
    function = wrapped_function(tool)
    module = str(getattr(function, "__module__", ""))
    return module in _SUBAGENT_MODULES or (
        module == _AS_TOOL and any(map(_is_graph, closure_variables(function).values()))
    )


def _is_graph(value: Any) -> bool:
    return any(each.__module__.startswith("langgraph.pregel") for each in type(value).__mro__)


def is_handoff(tool: Any) -> bool:
    """Return whether a tool is part of the graph's control flow, because it hands over to another agent or
    maintains a to-do list. A handwritten hand-off is recognized by the name of the target agent."""
    function = wrapped_function(tool)
    if str(getattr(function, "__module__", "")) in _STATE_TOOL_MODULES or _HANDOFF_METADATA in (
        tool.metadata or {}
    ):
        return True
    name = plain_name(tool.name)
    return bool(_HANDOFF_NAME.match(tool.name)) and any(
        len(each) > 2 and each in name for each in map(plain_name, _destinations(function))
    )


def plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _destinations(function: Any) -> list[str]:
    """Return the targets in the ``Command`` objects that a function returns."""
    known = {**getattr(function, "__globals__", {}), **closure_variables(function)}
    return [
        found
        for each in _goto_values(function)
        if isinstance(found := known.get(each[1], each[0]), str) and found
    ]


@functools.lru_cache(maxsize=512)
def _goto_values(function: Any) -> tuple[tuple[str, str], ...]:
    """Return the strings and variable names in the function's ``goto`` arguments, as pairs in which one item
    or the other is empty."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # no source, or not parsable on its own
        return ()
    return tuple(_texts_and_names(tree))


def _texts_and_names(tree: Any) -> Iterator[tuple[str, str]]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _called_name(call.func) == "Command":
            for value in (keyword.value for keyword in call.keywords if keyword.arg == "goto"):
                for each in ast.walk(value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, ""
                    elif isinstance(each, ast.Name):
                        yield "", each.id


def _called_name(called: Any) -> str:
    plain = called.value if isinstance(called, ast.Subscript) else called
    return str(getattr(plain, "attr", getattr(plain, "id", "")))
