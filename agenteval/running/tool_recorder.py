"""Collects the calls that agents run themselves during a run, for ``agenteval run --record-tools``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.conversation.real_tools import UncallableError, find_function, parameter_names
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, RunStarted, SampleFinished, SampleStarted, TurnFinished
from agenteval.core.protocols import AgentTool
from agenteval.core.scenario import SampleKey
from agenteval.core.tool_effects import marks_from_hints
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.files.redaction import redact_text
from agenteval.files.tool_recording import KnownTool, KnownTools, ToolRecording, record_tools


class ToolRecorder:
    """A sink that keeps the calls that agents ran themselves. A conversation that is played again replaces
    its earlier attempt."""

    def __init__(self) -> None:
        self._calls: dict[SampleKey, dict[int, list[ToolCall]]] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        """The positions of the pairs of scenario and agent in the run."""

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                planned = event.plan.scenarios.items()
                pairs = ((scenario, agent) for scenario, agents in planned for agent in agents)
                self._pairs = {pair: position for position, pair in enumerate(pairs)}
            case SampleStarted():
                self._calls[event.key] = {}
            case TurnFinished():
                self._keep(event.key, event.index, event.turn)
            case SampleFinished() if event.unfinished:
                self._keep(event.key, len(self._calls.get(event.key, ())), event.unfinished)

    def _keep(self, key: SampleKey, index: int, turn: Turn) -> None:
        observed = [call for call in turn.tool_calls if call.observed]
        self._calls.setdefault(key, {})[index] = observed

    def recording(self, known: KnownTools) -> ToolRecording:
        """Return the tools recorded so far. The conversations count in the order of the run, whichever ended
        first."""
        return record_tools((self._calls_of(key) for key in self._in_order()), known, redact_text)

    def _in_order(self) -> Iterable[SampleKey]:
        last = len(self._pairs)
        return sorted(
            self._calls,
            key=lambda key: (
                self._pairs.get((key.scenario, key.agent), last),
                key.scenario,
                key.agent,
                key.variant,
                key.epoch,
            ),
        )

    def _calls_of(self, key: SampleKey) -> Sequence[ToolCall]:
        turns = self._calls[key]
        return [call for index in sorted(turns) for call in turns[index]]


def find_known_tools(
    config: Config, agents: Collection[str], agent_tools: Mapping[str, Sequence[AgentTool]]
) -> KnownTools:
    """Return what is known about the tools of ``agents``: descriptions, schemas and hints from frameworks
    (``agent_tools``, keyed by agent), and the parameters of functions under ``intercept``. If agents differ,
    the first one in the configuration counts; a mark counts only if no agent contradicts it."""
    found: dict[str, list[KnownTool]] = {}
    used = [agent for agent in config.all_agents if agent.name in agents]
    for agent in used:
        for tool in agent_tools.get(agent.name, ()):
            found.setdefault(tool.name, []).append(_of_framework(tool))
    for agent in used:
        for name, function in _intercepted(agent, config.root):
            found.setdefault(name, []).append(KnownTool(argument_names=parameter_names(function)))
    has_others = found.pop("", None) is not None  # stands for tools that are known only during a run
    are_all = not has_others and all(agent.name in agent_tools for agent in used)
    return KnownTools({name: _combined(tools) for name, tools in found.items()}, are_all)


def _combined(tools: Sequence[KnownTool]) -> KnownTool:
    marks = [tool.marks for tool in tools if tool.marks]
    names = (tool.argument_names for tool in tools if tool.argument_names is not None)
    return tools[0]._replace(
        marks=marks[0] if marks and all(each == marks[0] for each in marks) else {},
        argument_names=next(names, None),
    )


def _of_framework(tool: AgentTool) -> KnownTool:
    excluded = "it runs at the provider, where no scenario can answer" if tool.hosted else ""
    excluded = "it is an agent, not a tool" if tool.is_agent else excluded
    marks = marks_from_hints(tool.hints) if tool.hints else {}
    return KnownTool(tool.description, tool.parameters, marks, excluded=excluded)


def intercepted_functions(agent: AgentConfig) -> Mapping[str, str]:
    """Return the functions that an agent in this process names under ``intercept``, keyed by tool."""
    options = agent.adapter_options
    written = options.get("intercept") if not options.get("interpreter") else None
    return written if isinstance(written, Mapping) else {}


def _intercepted(agent: AgentConfig, root: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, target in intercepted_functions(agent).items():
        try:
            yield name, find_function(name, target, root)
        except (AuthorError, UncallableError):
            continue  # its parameters are not known
