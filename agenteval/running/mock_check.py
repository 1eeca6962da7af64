"""Calls the real tools that only read with the arguments of mocks, and compares the answers
(``agenteval tools check``). A tool that may write is never called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from agenteval.conversation.real_tools import RealAnswer, UncallableError, call_real_function, find_function
from agenteval.core.call_outcomes import json_key
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.scenario import Scenario
from agenteval.core.tool_effects import ToolEffect, effect_of_hinted_tool
from agenteval.files.mock_drift import (
    ComparableMock,
    Drift,
    DriftKind,
    IgnoredFields,
    OpaqueMock,
    find_drift,
    find_error_drift,
)
from agenteval.files.redaction import mask_value
from agenteval.files.tool_recording import without_origin
from agenteval.running.tool_recorder import intercepted_functions


class RealTools(Protocol):
    """A way to the real tools."""

    def has_tool(self, name: str) -> bool: ...

    def hints(self, name: str) -> Mapping[str, Any]:
        """Return the tool's own description of its effects, named as in MCP."""

    async def call(self, name: str, args: Mapping[str, Any]) -> RealAnswer:
        """Call the tool. Raise ``UncallableError`` if that is not possible."""


class NamedFunction(NamedTuple):
    """A function that an agent's ``intercept`` names."""

    target: str
    base: str
    timeout_s: float
    place: Place


class FunctionTools:
    """The plain functions that agents name under ``intercept``."""

    def __init__(self, functions: Mapping[str, NamedFunction]) -> None:
        self._functions = functions
        self._loaded: dict[str, Callable[..., Any]] = {}

    def has_tool(self, name: str) -> bool:
        return name in self._functions

    def hints(self, name: str) -> Mapping[str, Any]:
        return {}

    async def call(self, name: str, args: Mapping[str, Any]) -> RealAnswer:
        return await call_real_function(self._load(name), args, self._functions[name].timeout_s)

    def _load(self, name: str) -> Callable[..., Any]:
        if name not in self._loaded:
            named = self._functions[name]
            self._loaded[name] = find_function(name, named.target, named.base, named.place)
        return self._loaded[name]

    def load(self, names: Iterable[str]) -> None:
        """Load the functions of the tools. Raise ``AuthorError`` with all that do not exist."""
        problems: list[Problem] = []
        for name in names:
            try:
                self._load(name)
            except AuthorError as error:
                problems += error.problems
            except UncallableError:
                continue  # the call reports it
        if problems:
            raise AuthorError(*problems)


def find_functions(config: Config, agent: str | None) -> FunctionTools:
    """Return the functions that the agents of the configuration, or only ``agent``, name under ``intercept``.
    Raise ``AuthorError`` if two agents name different functions for a tool."""
    found: dict[str, tuple[str, NamedFunction]] = {}
    problems: list[Problem] = []
    for each in config.all_agents:
        if agent not in (None, each.name):
            continue
        for name, target in intercepted_functions(each).items():
            place = config.place(f"{_key_of(each.name, config)}.intercept.{name}")
            function = NamedFunction(target, config.root, each.timeout_s, place)
            other, known = found.setdefault(name, (each.name, function))
            if known.target != target:
                what = f"the agents '{other}' and '{each.name}' name different functions for '{name}'"
                problems.append(Problem(what, "choose one with --agent NAME", place))
    if problems:
        raise AuthorError(*problems)
    return FunctionTools({name: function for name, (_, function) in found.items()})


def _key_of(agent: str, config: Config) -> str:
    if config.agent and config.agent.name == agent:
        return "agent"
    compared = (f"compare.{at}" for at, each in enumerate(config.compare) if each.name == agent)
    return next(compared, f"agents.{agent}")


class UncalledMock(NamedTuple):
    """A mock whose real tool was not called, or gave no answer."""

    mock: ComparableMock
    reason: str
    may_write: bool
    """True if the tool was not called because it may write."""


@dataclass
class MockCheck:
    """The result of a check."""

    agreeing: list[ComparableMock] = field(default_factory=list)
    differing: list[tuple[ComparableMock, list[Drift]]] = field(default_factory=list)
    uncalled: list[UncalledMock] = field(default_factory=list)
    opaque: list[OpaqueMock] = field(default_factory=list)
    """The mocks that cannot be compared."""

    @property
    def failed(self) -> list[UncalledMock]:
        """The mocks of tools that only read but gave no answer."""
        return [each for each in self.uncalled if not each.may_write]

    @property
    def exit_code(self) -> int:
        """1 if a mock differs; 3 if a tool gave no answer, or if nothing was compared; otherwise 0."""
        if self.differing:
            return 1
        return 3 if self.failed or not self.agreeing else 0


async def check_mocks(
    mocks: Sequence[ComparableMock],
    sources: Sequence[RealTools],
    writing: frozenset[str],
    ignored: IgnoredFields,
    mask: Callable[[str], str],
) -> MockCheck:
    """Compare mocks with the real tools in ``sources``, of which the first that has a tool counts.
    ``writing`` are the tools that some scenario marks as writing."""
    made = MockCheck()
    answers: dict[Any, RealAnswer | str] = {}
    for mock in mocks:
        source = next((each for each in sources if each.has_tool(mock.tool)), None)
        if reason := _why_not_called(mock, source, writing):
            made.uncalled.append(UncalledMock(mock, reason, may_write=True))
            continue
        if source is None:
            reason = "its function is not known; name it under `intercept`, or use --mcp"
            made.uncalled.append(UncalledMock(mock, reason, may_write=False))
            continue
        key = (mock.tool, json_key(mock.args))
        if key not in answers:
            answers[key] = await _call(source, mock)
        answer = answers[key]
        if isinstance(answer, str):
            made.uncalled.append(UncalledMock(mock, answer, may_write=False))
        elif drifts := list(_compare(mock, answer, ignored, mask)):
            made.differing.append((mock, drifts))
        else:
            made.agreeing.append(mock)
    return made


def _why_not_called(mock: ComparableMock, source: RealTools | None, writing: frozenset[str]) -> str:
    """Return the reason why a tool must not be called, or an empty string if it only reads."""
    if mock.tool in writing:
        return "it writes"
    effect = effect_of_hinted_tool(mock.tool, mock.definition, source.hints(mock.tool) if source else {})
    if effect is ToolEffect.READS:
        return ""
    return "it writes" if effect is ToolEffect.WRITES else "it may write; mark it with `reads: true` if not"


async def _call(source: RealTools, mock: ComparableMock) -> RealAnswer | str:
    try:
        return await source.call(mock.tool, mock.args)
    except UncallableError as error:
        return str(error)


def _compare(
    mock: ComparableMock, real: RealAnswer, ignored: IgnoredFields, mask: Callable[[str], str]
) -> list[Drift]:
    expected, actual = mask_value(mock.value, mask), mask_value(real.value, mask)
    if real.is_error:
        actual = without_origin(str(actual))
    if mock.is_error != real.is_error:
        return [Drift(DriftKind.ERROR, "", _shown(expected, mock.is_error), _shown(actual, real.is_error))]
    find = find_error_drift if mock.is_error else find_drift
    return list(find(expected, actual, ignored))


def _shown(value: Any, is_error: bool) -> Any:
    return {"error": value} if is_error else value


def writing_tools(scenarios: Iterable[Scenario]) -> frozenset[str]:
    """Return the tools that at least one scenario marks as writing."""
    tools = (item for scenario in scenarios for item in scenario.tools.items())
    return frozenset(name for name, tool in tools if tool.writes or tool.destructive)


def count_by_reason(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return each pair of tool and reason with the number of its occurrences, in order of appearance."""
    return [(tool, reason, count) for (tool, reason), count in Counter(pairs).items()]
