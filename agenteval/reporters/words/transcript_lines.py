"""Format a conversation as transcript lines for people who are investigating the cause of a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from agenteval.core.call_outcomes import ARGUMENTS_NOT_KNOWN, format_user_call
from agenteval.core.safe_text import clean, one_line, one_line_message
from agenteval.core.sample_report import SampleReport
from agenteval.core.tool_faults import PlayedFault
from agenteval.core.trajectory import StopReason, ToolCall, Turn
from agenteval.reporters.words.json_tree import json_text, value_text

_TEXT_LIMIT = 600
_CALL_LIMIT = 240
_HEAD, _TAIL = 15, 45

Speaker: TypeAlias = Literal["user", "agent", "call", "result", "error", "note"]


class TranscriptLine(NamedTuple):
    """A line in a transcript, cleaned and shortened. If several agents spoke, the text begins with the name
    of the speaker."""

    speaker: Speaker
    """The speaker or the type of the line; ``note`` is a remark by agenteval."""
    text: str
    turn: int | None = None
    """The turn, counted from 0; ``None`` for a note about the whole conversation."""

    def __str__(self) -> str:
        signs = {
            "user": "user:  ",
            "agent": "agent: ",
            "call": "  -> ",
            "result": "  <- ",
            "error": "error: ",
        }
        return signs.get(self.speaker, "") + self.text


def transcript(sample: SampleReport, *, by_name: bool | None = None) -> tuple[TranscriptLine, ...]:
    """Return the transcript of a conversation, with a line for each message, call and result. The middle of a
    long conversation is omitted, and a secret disclosed by the agent is masked. ``by_name`` determines
    whether agents are named. If it is ``None``, agents are named only if several of them are known."""
    sample = sample.in_full
    hidden = disclosed_secrets(sample)
    by_name = has_several_agents(sample) if by_name is None else by_name
    lines = [
        line._replace(text=mask_secrets(line.text, hidden))
        for index, each in enumerate(sample.turns)
        for line in _turn_lines(each.turn, index, by_name=by_name)
    ]
    if end := how_it_ended(sample):
        lines.append(TranscriptLine("note", end))
    left_out = len(lines) - _HEAD - _TAIL
    if left_out <= 1:
        return tuple(lines)
    note = TranscriptLine("note", f"… {left_out} lines omitted …")
    return (*lines[:_HEAD], note, *lines[-_TAIL:])


def how_it_ended(sample: SampleReport) -> str:
    """Return a note in parentheses on how the conversation ended, or an empty string if the transcript
    already shows how it ended."""
    if sample.stop is None:
        return "(cut off: the conversation never finished)"
    if sample.stop.reason is StopReason.UNREADABLE:
        return ""  # the reason of the failure says so already
    if sample.stop.reason is StopReason.MAX_TURNS:
        return f"(ended at the turn limit of {len(sample.turns)}; the user was not done)"
    if sample.stop.detail and sample.stop.detail not in {each.turn.error for each in sample.turns}:
        return f"({sample.stop.reason}: {one_line_message(sample.stop.detail, _TEXT_LIMIT)})"
    return ""


def has_several_agents(sample: SampleReport) -> bool:
    """Check whether more than one agent is known to have spoken in a multi-agent conversation."""
    return len(frozenset().union(*(each.turn.agents for each in sample.turns))) > 1


def disclosed_secrets(sample: SampleReport) -> dict[str, str]:
    """Map each secret found by the leak detector to its masked form, because a report must not disclose the
    secret again. A secret with invisible characters is also a key without them, as it is shown. Leaked
    instructions are not masked."""
    leaks = [each for each in sample.findings if each.detector == "leak" and each.span]
    turns = sample.in_full.turns if leaks else ()
    return {
        shown: finding.evidence
        for finding in leaks
        if finding.turn is not None and finding.turn < len(turns) and finding.span
        for secret in [turns[finding.turn].turn.answer[slice(*finding.span)]]
        for shown in (secret, clean(secret))
        if shown and "…" in finding.evidence
    }


def mask_secrets(text: str, hidden: Mapping[str, str]) -> str:
    """Mask the secrets from ``disclosed_secrets`` in ``text``."""
    for secret, shown in hidden.items():
        text = text.replace(secret, shown)
    return text


def _turn_lines(turn: Turn, index: int, *, by_name: bool) -> Iterator[TranscriptLine]:
    for call in turn.user_tool_calls:
        yield TranscriptLine("user", f"(does {one_line(format_user_call(call), _CALL_LIMIT)})", index)
    yield TranscriptLine("user", one_line(turn.user, _TEXT_LIMIT), index)
    if turn.user_wrote is not None:
        yield TranscriptLine("user", f"(written: {one_line(turn.user_wrote, _TEXT_LIMIT)})", index)
    for step in turn.steps:
        if step.text or not step.tool_calls:
            text = one_line(step.text or "", _TEXT_LIMIT) or "(empty)"
            yield TranscriptLine("agent", _agent_prefix(step.agent, by_name) + text, index)
        for call in step.tool_calls:
            yield from _call_lines(call, index, _agent_prefix(call.agent, by_name))
    if turn.error:
        yield TranscriptLine("error", one_line_message(turn.error, _TEXT_LIMIT), index)


def _agent_prefix(agent: str, by_name: bool) -> str:
    return f"({one_line(agent, 60)}) " if by_name and agent else ""


def _call_lines(call: ToolCall, index: int, by: str) -> Iterator[TranscriptLine]:
    yield TranscriptLine("call", by + call_text(call), index)
    if (
        result := "(the agent did not wait)"
        if call.given_up
        else call.result and value_text(call.result.value)
    ):
        yield TranscriptLine("result", one_line(result, _CALL_LIMIT), index)
    if call.result and call.result.fault:
        yield TranscriptLine("note", one_line(fault_text(call.result.fault), _CALL_LIMIT), index)


def fault_text(fault: PlayedFault) -> str:
    """Describe the fault that the scenario gave a call."""
    return f"(fault {fault.kind}: {fault.detail})" if fault.detail else f"(fault {fault.kind})"


def call_text(call: ToolCall) -> str:
    """Format a tool call, such as ``name(a=1, b="x")``, and shorten the result. Arguments that could not be
    parsed are shown as they were sent."""
    if call.args is None:
        sent = ARGUMENTS_NOT_KNOWN if call.raw_args is None else call.raw_args
        return f"{one_line(call.name, 80)}({one_line(sent, _CALL_LIMIT)})"
    args = ", ".join(f"{name}={json_text(value)}" for name, value in list(call.args.items())[:50])
    return f"{one_line(call.name, 80)}({one_line(args, _CALL_LIMIT)})"
