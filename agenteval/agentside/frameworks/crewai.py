"""Run a CrewAI ``Agent``, with a copy for each conversation (``Agent.copy``).

A crew answers once and cannot continue a conversation, so crews are refused. The framework runs in a thread,
because it calls its tools synchronously. The output lists a model's native calls. Calls that a model writes
as text are known only through the scenario's tools."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from ..hooks.crewai import name_of
from ..transcript import Transcript, mark_as_error
from .call_marks import restore_arguments
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    adds_code,
    kinds,
    may_reach,
    unsupported_version_error,
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

_AGENT = "crewai.agent.core.Agent"
_OTHERS = {
    "crewai.crew.Crew": "Crew",
    "crewai.flow.flow.Flow": "Flow",
    "crewai.lite_agent.LiteAgent": "LiteAgent",
    "crewai.agents.agent_builder.base_agent.BaseAgent": "BaseAgent",
}
_QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
"""Settings that disable the framework's telemetry, unless the author has set them."""


class CrewAI:
    name = "CrewAI"
    package = "crewai"
    supports = "1.15"

    def matches(self, obj: Any) -> bool:
        return any(kind == _AGENT or kind in _OTHERS for kind in kinds(obj))

    def tools(self, obj: Any) -> list[Tool]:
        _require_agent(obj)
        tools = list(obj.tools or ())
        found = [Tool(name_of(tool), tool.description or "", _parameters(tool)) for tool in tools]
        codes = [getattr(tool, "func", None) or getattr(tool, "_run", None) for tool in tools]
        if obj.apps or obj.mcps or any(may_reach(code, self.matches, "crewai") for code in codes):
            found.append(MORE)
        return found

    def runs_own_code(self, obj: Any) -> bool:
        return adds_code(obj, "crewai")

    def open(self, obj: Any, world: World, session: str, deps: Any) -> CrewAIConversation:
        _require_agent(obj)
        if deps is not None and deps is not LATER:
            raise Refused("a CrewAI agent does not accept `deps`", "remove `deps`")
        if getattr(obj, "memory", None):
            what = f"the agent '{obj.role}' has a memory, which all conversations would share"
            raise Refused(what, "use an agent without memory, or a function that runs it (docs/agents.md)")
        if not all(callable(getattr(obj, name, None)) for name in ("copy", "kickoff")):
            raise unsupported_version_error(self, "Agent.kickoff")
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        return CrewAIConversation(_copy_agent(obj), world)


FRAMEWORK = CrewAI()


def _require_agent(obj: Any) -> None:
    """Raise ``Refused`` for objects that this adapter cannot run."""
    if inspect.isclass(obj):
        raise Refused(f"{obj.__name__} is a CrewAI class", "use an instance of it")
    if _AGENT not in kinds(obj):
        kind = next(_OTHERS[each] for each in kinds(obj) if each in _OTHERS)
        what = f"a CrewAI {kind} runs once and cannot hold a conversation"
        raise Refused(what, "use one of its agents, or a function that runs it (docs/agents.md)")


def _parameters(tool: Any) -> dict[str, Any] | None:
    try:
        schema = tool.args_schema.model_json_schema()
    except Exception:  # an error in the author's schema; the run will show it
        return None
    return schema if isinstance(schema, dict) else None


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class CrewAIConversation:
    def __init__(self, agent: Any, world: World) -> None:
        self._agent = agent
        self._world = world
        self._names = {name_of(tool) for tool in agent.tools}
        self._history: list[dict[str, str]] = []

    async def reply(self, text: str) -> dict[str, Any]:
        prompt = [*self._history, {"role": "user", "content": text}]
        before = self._token_counts()
        play = partial(contextvars.copy_context().run, self._agent.kickoff, prompt)
        try:
            output = await asyncio.get_running_loop().run_in_executor(None, play)
        except Exception as error:
            with_partial(error, [], self._usage_since(before))
            raise
        answer = output.raw or ""
        self._history = [*prompt, {"role": "assistant", "content": answer}]
        listed = [each for each in getattr(output, "messages", None) or () if isinstance(each, dict)]
        self._note_unlisted_calls(listed, answer)
        transcript = Transcript(_native_calls(listed, self._world))
        transcript.answer(answer)
        return {
            "messages": transcript.to_openai(),
            "usage": self._usage_since(before),
            "agent": self._agent.role,
        }

    def _note_unlisted_calls(self, listed: list[dict[str, Any]], answer: str) -> None:
        """Note the calls that did not reach a tool because the framework answered them itself.

        A model that writes its calls as text writes one call in each message except the final answer."""
        llm = self._agent.llm
        if getattr(llm, "supports_function_calling", lambda: False)():
            return
        texts = [each.get("content") for each in listed if each.get("role") == "assistant"]
        reached = [
            each for each in self._world.calls_so_far if each.name in self._names
        ]  # without those of agents below
        if len([text for text in texts if text != answer]) > len(reached):
            self._world.note_unseen_calls(
                "the framework itself answered a tool call that the model wrote as text"
            )

    async def close(self) -> None:
        """Do nothing, because everything that a run starts ends with that run."""

    def _token_counts(self) -> dict[str, int]:
        return dict(getattr(self._agent.llm, "_token_usage", None) or {})

    def _usage_since(self, before: dict[str, int]) -> dict[str, int] | None:
        """Return the token counts of the conversation's copy of the model, excluding earlier turns."""
        used = {name: count - before.get(name, 0) for name, count in self._token_counts().items()}
        return used if any(used.values()) else None


def _native_calls(listed: list[dict[str, Any]], world: World) -> list[dict[str, Any]]:
    """Return the native calls in a turn with their results. A call that did not reach a tool is treated as
    refused."""
    of_calls = [each for each in listed if each.get("tool_calls") or each.get("role") == "tool"]
    messages, answered_ids = restore_arguments(of_calls, list(world.calls_so_far))
    return [
        mark_as_error(each)
        if each.get("role") == "tool" and each.get("tool_call_id") not in answered_ids
        else each
        for each in messages
    ]


def _copy_agent(agent: Any) -> Any:
    new = agent.copy()
    new.apps, new.mcps = agent.apps, agent.mcps  # Agent.copy leaves them out
    new.tools = [
        each.model_copy(update={"current_usage_count": 0}) if getattr(each, "max_usage_count", None) else each
        for each in agent.tools or ()
    ]
    if isinstance(counts := getattr(new.llm, "_token_usage", None), dict):
        new.llm._token_usage = dict(counts)  # the copied model shares the dict
    return new
