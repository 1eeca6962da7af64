"""Run one conversation with a rebuilt Strands agent."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from ...hooks.strands import text_of
from ...transcript import ToolCall, Transcript
from ..seam import Waits, with_partial
from .copies import AgentCopies, all_agents, hosted_tools

if TYPE_CHECKING:
    from ...world import World

    Message = dict[str, Any]

_COUNTS = ("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_UNNAMED = "Strands Agents"
"""The name that the framework gives to an unnamed agent."""


class StrandsConversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._world = world
        self._deps = deps
        self._added: list[Message] = []
        self._agents = AgentCopies(self._on_message)
        self._agent = self._agents.copy_of(agent)
        self._at_provider = sorted({name for each in all_agents(agent) for name in hosted_tools(each)})
        self._metered = self._total()

    async def reply(self, text: str) -> dict[str, Any]:
        self._added = []
        try:
            result = await self._agent.invoke_async(text, **self._state())
        except Exception as error:
            with_partial(error, self._transcript().to_openai(), self._usage())
            raise
        output = getattr(result, "structured_output", None)
        transcript = self._transcript(without=type(output).__name__ if output is not None else "")
        if interrupts := getattr(result, "interrupts", None):
            waits = _waits_for(interrupts)
            with_partial(waits, transcript.to_openai(), self._usage())
            raise waits
        if output is not None:
            transcript.answer(output.model_dump_json())
        return {"messages": transcript.to_openai(), "usage": self._usage(), "agent": self._speaker()}

    async def close(self) -> None:
        """Do nothing, because everything that a run starts ends with that run."""

    def _on_message(self, event: Any) -> None:
        if event.agent is self._agent:
            self._added.append(event.message)

    def _transcript(self, without: str = "") -> Transcript:
        for name in self._at_provider:
            self._world.note_unseen_calls(f"'{name}' runs at the provider, which does not report its calls")
        for kind in sorted({key for message in self._added for key in _unread(message)}):
            self._world.note_unseen_calls(f"unsupported block '{kind}' in a message")
        return _encode(self._added, set(self._agent.tool_registry.registry), without)

    def _speaker(self) -> str | None:
        return None if self._agent.name == _UNNAMED else str(self._agent.name)

    def _state(self) -> dict[str, Any]:
        if not self._deps:
            return {}
        accepted = inspect.signature(self._agent.invoke_async).parameters
        return {"invocation_state": dict(self._deps)} if "invocation_state" in accepted else dict(self._deps)

    # ── tokens: the framework's counts span all turns

    def _total(self) -> dict[str, int]:
        found = {"requests": 0, **dict.fromkeys(_COUNTS, 0)}
        for agent in self._agents:
            usage = agent.event_loop_metrics.accumulated_usage
            found["requests"] += agent.event_loop_metrics.cycle_count
            for name in _COUNTS:
                found[name] += usage.get(name) or 0
        return found

    def _usage(self) -> dict[str, int] | None:
        total, before = self._total(), self._metered
        self._metered = total
        used = {name: total[name] - before[name] for name in total}
        return used if used["inputTokens"] or used["outputTokens"] else None


def _waits_for(interrupts: Any) -> Waits:
    reasons = ", ".join(f"{each.name}: {each.reason}" if each.reason else each.name for each in interrupts)
    return Waits(f"the agent is waiting for human input: {reasons}")


# ── messages in the format of Bedrock's Converse ─────────────────────────────────────────────────

_READ = frozenset(
    (
        *("text", "toolUse", "toolResult", "reasoningContent", "citationsContent", "cachePoint"),
        *("image", "video", "audio", "document", "guardContent"),
    )
)
"""The block types that are supported or that contain no calls."""


def _encode(added: list[Message], known_tools: set[str], without: str) -> Transcript:
    """Convert the messages to a transcript.

    ``known_tools`` contains the agent's tools; a result from any other tool is an error. ``without`` is the
    tool through which the framework requests a structured answer; calls to this tool are omitted. A model may
    reuse a call id."""
    left_out: set[str] = set()
    missing: set[str] = set()
    transcript = Transcript()
    for message in added:
        if _is_answer(message):
            uses = _blocks(message, "toolUse")
            left_out.update(use["toolUseId"] for use in uses if use["name"] == without)
            missing.update(use["toolUseId"] for use in uses if use["name"] not in known_tools)
            _add_answer(transcript, message, without)
            continue
        for result in _blocks(message, "toolResult"):
            call_id = result["toolUseId"]
            if call_id not in left_out:
                has_failed = call_id in missing or result.get("status") == "error"
                transcript.result(call_id, text_of(result), error=has_failed)
    return transcript


def _add_answer(transcript: Transcript, message: Message, without: str) -> None:
    text = "".join(each for each in _blocks(message, "text") if isinstance(each, str))
    uses = _blocks(message, "toolUse")
    calls = [_call(use) for use in uses if use["name"] != without]
    if text or calls or not uses:
        transcript.answer(text or None, calls)


def _call(use: Message) -> ToolCall:
    """Return a call. Encode its input as JSON, because the framework has parsed the model's JSON."""
    arguments = json.dumps(use.get("input"), ensure_ascii=False, default=str)
    return ToolCall(use["toolUseId"], use["name"], arguments)


def _is_answer(message: Message) -> bool:
    return message.get("role") == "assistant"


def _blocks(message: Message, kind: str) -> list[Any]:
    return [block[kind] for block in message.get("content") or () if kind in block]


def _unread(message: Message) -> set[str]:
    return {key for block in message.get("content") or () for key in block} - _READ
