"""The tool world (tool mocking, mock tools) as a pure function that takes a state and a call and returns a
new state and a result. Nothing is shared or awaited.

A tool written in Python cannot run here. For such a tool, ``resolve_tool_call`` returns a ``FunctionCall``,
and the code that runs the conversation makes the call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from agenteval.core.digits import parse_digits
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.json_schema import schema_violations
from agenteval.core.json_text import as_text
from agenteval.core.scenario import RuleCondition, Tool, ToolRule, ToolStep
from agenteval.core.trajectory import ToolResult
from agenteval.files.value_matching import find_differences

if TYPE_CHECKING:
    from agenteval.world.database import WorldTransaction


class ToolState(NamedTuple):
    """The world state: the state of a sample's stateful tool world."""

    calls: Mapping[str, int] = MappingProxyType({})
    """The number of answered calls, keyed by tool."""
    rule_calls: Mapping[tuple[str, int], int] = MappingProxyType({})
    """The number of calls that a rule has answered, keyed by tool and number of the rule."""

    def after_call(self, tool: str, rule: int | None) -> ToolState:
        """Return the state after another call to the tool, which ``rule`` answered."""
        calls, rule_calls = {**self.calls, tool: self.calls.get(tool, 0) + 1}, self.rule_calls
        if rule is not None:
            rule_calls = {**rule_calls, (tool, rule): rule_calls.get((tool, rule), 0) + 1}
        return ToolState(calls, rule_calls)


class FunctionCall(NamedTuple):
    """A call to one of the author's Python functions, to be made with the arguments ``(args, ctx)``."""

    tool: str
    target: str
    base: str
    args: dict[str, Any]
    call_index: int
    database: WorldTransaction | None = None
    """The open transaction of the call, if the scenario has a state."""


class MethodCall(NamedTuple):
    """A call that is answered by a method of the sample's world in Python."""

    tool: str
    args: dict[str, Any]
    call_index: int


class SqlCall(NamedTuple):
    """A call that is answered by SQL over the state of the tool world."""

    tool: str
    answer: Tool | ToolRule | ToolStep
    args: dict[str, Any]


class UnmatchedCall(NamedTuple):
    """A call that none of the tool's rules matches."""

    tool: str
    args: dict[str, Any]


def error_result(message: str) -> ToolResult:
    return ToolResult(value={"error": message}, is_error=True)


def refused_result(message: str) -> ToolResult:
    """Return the result of a call that was not carried out."""
    return ToolResult(value={"error": message}, is_error=True, refused=True)


def schemas_of(tools: Mapping[str, Tool]) -> tuple[dict[str, Any], ...]:
    """Return the JSON schemas of the declared tools (those with ``parameters``) in OpenAI's format."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                **({"description": tool.description} if tool.description else {}),
                "parameters": tool.parameters,
            },
        }
        for name, tool in tools.items()
        if tool.parameters is not None
    )


def unknown_tool_result(name: str, tools: Mapping[str, Tool]) -> ToolResult:
    return refused_result("; ".join(filter(None, (f"unknown tool '{name}'", did_you_mean(name, tools)))))


def is_unknown_tool(tools: Mapping[str, Tool], name: str, unmocked: str) -> bool:
    """Check whether the agent called a nonexistent (hallucinated) tool in a world that declares tools."""
    return unmocked == "error" and bool(tools) and name not in tools


def resolve_tool_call(
    tools: Mapping[str, Tool],
    state: ToolState,
    name: str,
    args: dict[str, Any] | None,
    *,
    unmocked_tools: str = "error",
    known: bool = False,
    turn: int = 0,
) -> tuple[ToolState, ToolResult | FunctionCall | MethodCall | SqlCall | UnmatchedCall]:
    """Answer one tool call, made in ``turn`` (from 0), from the scenario's mocks with a canned (stubbed)
    reply. ``args`` is ``None`` if the arguments could not be read.

    A call with unreadable or wrong arguments, or to an unknown tool, is refused: it returns an error and does
    not consume a step of a sequence. Raise ``AuthorError`` for an undeclared tool if the scenario declares no
    tools or if the agent is ``known`` to have this tool."""
    if not known and is_unknown_tool(tools, name, unmocked_tools):
        return state, unknown_tool_result(name, tools)
    tool = tools.get(name)
    if (tool is None or not tool.is_mocked) and unmocked_tools == "error":
        raise _unmocked(name, declared=tool is not None)
    if args is None:
        return state, refused_result("the arguments are not a JSON object")
    if (
        tool
        and tool.parameters is not None
        and (broken := schema_violations(tool.parameters, args, nullable=False))
    ):
        return state, refused_result(f"wrong arguments: {broken}")
    if tool is None or not tool.is_mocked:
        return state, ToolResult(value={})
    index, rule = state.calls.get(name, 0), None
    answer: Tool | ToolRule = tool
    step_index = index
    if tool.rules is not None:
        rule = _find_rule(tool.rules, args, index + 1, turn)
        if rule is None:
            return state.after_call(name, None), UnmatchedCall(name, args)
        answer, step_index = tool.rules[rule], state.rule_calls.get((name, rule), 0)
    after = state.after_call(name, rule)
    if tool.method is not None:
        return after, MethodCall(name, args, index)
    if answer.python is not None:
        return after, FunctionCall(name, answer.python, tool.base, args, index)
    step = _find_step(answer, step_index)
    if step.sql is not None:
        return after, SqlCall(name, step, args)
    try:
        return after, _answer(step, args)
    except KeyError as missing:
        return state, refused_result(f"wrong arguments: '{missing.args[0]}' is missing")


def _unmocked(name: str, *, declared: bool) -> AuthorError:
    what = f"the agent called the tool '{name}', which is {'declared but not' if declared else 'not'} mocked"
    remedy = (
        f"add to the scenario\n  tools:\n    {name}:\n      returns: …\nor set `unmocked_tools: empty`, or"
        " `passthrough` for an agent that runs its own tools"
    )
    return AuthorError(Problem(what, remedy))


def _find_rule(rules: Sequence[ToolRule], args: Mapping[str, Any], call: int, turn: int) -> int | None:
    """Return the number of the first rule that matches, or ``None`` if no rule does. ``call`` is the number
    of the call to the tool, from 1."""
    return next((at for at, rule in enumerate(rules) if _holds(rule.when, args, call, turn)), None)


def _holds(when: RuleCondition | None, args: Mapping[str, Any], call: int, turn: int) -> bool:
    if when is None:
        return True
    if when.call not in (None, call) or when.turn not in (None, turn):
        return False
    return when.args is None or not any(find_differences(when.args, args, partial=True))


def _find_step(answer: Tool | ToolRule, index: int) -> Tool | ToolRule | ToolStep:
    """Return what answers a call. ``index`` is the number of earlier calls that were answered in this way,
    which selects the step of a ``sequence``."""
    return answer.sequence[min(index, len(answer.sequence) - 1)] if answer.sequence is not None else answer


def _answer(step: Tool | ToolRule | ToolStep, args: Mapping[str, Any]) -> ToolResult:
    """Return the mock response to a call, which is an error if the scenario specifies one (fault
    injection)."""
    if step.error is not None:
        return error_result(str(fill_mock_template(step.error, args)))
    return ToolResult(value=fill_mock_template(step.returns, args))


_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")


class MissingColumnError(KeyError):
    """A reference to a column that the row does not have."""


def fill_mock_template(template: Any, args: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> Any:
    """Substitute the placeholders ``${args.path}`` and ``${result.column}`` in ``template``, the response of
    a mocked tool, in a single pass (interpolation), so inserted text is not parsed again. ``row`` is the
    first row that SQL found.

    A string that consists of a single reference is replaced by the value itself and keeps the type of the
    value. ``$${`` produces ``${``. Raise ``KeyError`` with the path of an argument that the call does not
    have, and ``MissingColumnError`` with the name of a column that the row does not have."""
    return _fill(template, {"args": args, "result": row or {}})


def _fill(template: Any, values: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(template, str):
        return _fill_text(template, values)
    if isinstance(template, Mapping):
        return {key: _fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_fill(value, values) for value in template]
    return template


def _fill_text(template: str, values: Mapping[str, Mapping[str, Any]]) -> Any:
    if "${" not in template:
        return template
    only = _REFERENCE.fullmatch(template)
    if only and only[2] is not None:
        return _look_up(only[2], values)

    def text(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        return as_text(_look_up(match[2], values))

    return _REFERENCE.sub(text, template)


def _look_up(reference: str, values: Mapping[str, Mapping[str, Any]]) -> Any:
    root, *path = reference.strip().split(".")
    value: Any = values[root]
    for part in path:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and (index := parse_digits(part)) is not None and index < len(value):
            value = value[index]
        else:
            raise (MissingColumnError if root == "result" else KeyError)(".".join(path))
    return value
