"""Renders the conversation transcript for an LLM judge: the request, the known facts, and everything that
happened. A long transcript is truncated to fit the judge's context window.

Every text that was not written by the author of the check has its own fence, as a protection against prompt
injection (see ``prompts.fence``). Content shared by more requests precedes content shared by fewer requests,
so that the providers' prompt caches apply: first the agent's policy and tools (shared by a suite), next the
author's texts about the scenario (shared by its epochs), and finally the turns. Tool parameters are longer
than all other information about the tools, and only the judge of tool use receives them. They follow the
content that the suite shares, so that this judge's own records share them from turn to turn. The text for a
turn begins with the text for the previous turn, up to the closing section."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from agenteval.core.json_text import to_json
from agenteval.core.reasoning import blank_reasoning, final_answer
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, StopReason, ToolCall, ToolVisibility, Trajectory, Turn
from agenteval.files.prompt_templates import fence
from agenteval.scoring.judge_notes import find_ungrounded_values, format_call_outcomes

BYTES_PER_TOKEN = 4
MAX_TRANSCRIPT_BYTES = 300_000
"""The maximum size of a complete text in bytes, about 75,000 tokens. A longer conversation is shortened
(truncated), and the text says so."""
_ROOM = 0.75
"""The fraction of the limit to which earlier turns are shortened so that the next turns fit without another
cut."""
_CLOSING = 1_500
"""The number of bytes reserved for the closing section."""


class JudgeTranscript(NamedTuple):
    """The record of a conversation as text."""

    text: str
    shared: tuple[int, ...] = ()
    """The lengths, in characters, of the prefixes that other requests share, shortest first: the prefix
    shared by a suite, the prefix shared by a scenario's epochs, and the prefix for each turn so far."""
    misfit: str = ""
    """The reason why the record cannot be sent: it is too long even if all long texts are shortened. Empty if
    the record fits."""


class TranscriptOptions(NamedTuple):
    """The parts of a conversation to show, and additional information about the conversation."""

    policy: str = ""
    tools: Sequence[dict[str, Any]] | None = None
    """The tools that the agent had, in OpenAI's format, or ``None`` to use the scenario's tools."""
    now: str | None = None
    upto: int | None = None
    """The index of the turn to judge, from 0; this is the last turn shown. If ``None``, the whole
    conversation is shown."""
    parameters: bool = False
    """True if the parameters of the tools are included."""
    limit: int = MAX_TRANSCRIPT_BYTES
    """The limit in bytes."""
    every_turn: bool = False
    """True if not only the turn ``upto`` is judged, but each turn up to it."""


def render_transcript(scenario: Scenario, trajectory: Trajectory, **options: Any) -> str:
    """Return the text of the transcript that ``build_transcript`` builds."""
    return build_transcript(scenario, trajectory, TranscriptOptions(**options)).text


def build_transcript(
    scenario: Scenario, trajectory: Trajectory, options: TranscriptOptions
) -> JudgeTranscript:
    """Build the transcript (record) of a conversation for a judge.

    The user's ``beliefs`` are left out, because they need not be true. If the record exceeds the limit, texts
    are shortened (truncated): first the results in the oldest turns, then other texts in earlier turns, and
    finally the turn to judge. A cut is permanent, so that the record of the next turn still begins with this
    record. Every call is kept, and so are the beginning and end of a shortened text."""
    tools = tuple(list_tool_schemas(scenario) if options.tools is None else options.tools)
    effective = options._replace(tools=tools)
    for scenario_then, trajectory_then, options_then, record in tuple(_recent):
        if trajectory_then is trajectory and scenario_then is scenario and options_then == effective:
            return record
    record = _record(scenario, trajectory, effective, tools)
    _recent.append((scenario, trajectory, effective, record))
    return record


# All judges of a turn request the same text, one right after the other.
_recent: deque[tuple[Scenario, Trajectory, TranscriptOptions, JudgeTranscript]] = deque(maxlen=4)


def _record(
    scenario: Scenario, trajectory: Trajectory, options: TranscriptOptions, tools: Sequence[dict[str, Any]]
) -> JudgeTranscript:
    policy, _, now, upto, parameters, limit, every_turn = options
    head = (
        tuple(_render_suite(policy, tools)),
        tuple(_section("## The parameters of these tools", _parameters(tools) if parameters else "")),
        tuple(_render_scenario(scenario, now)),
    )
    turns = trajectory.all_turns if upto is None else trajectory.turns[: upto + 1]
    record = _Turns(turns, _notes(scenario, trajectory, policy, tools, now))
    free = limit - _CLOSING - _size(part for section in head for part in section)
    caps = record.fitted(free)
    is_cut = any(cap != _Caps() for cap in caps)
    turn_parts = [record.turn(index, cap) for index, cap in enumerate(caps)]
    transcript = _join_sections(
        (*head, *(turn_parts or [("It ended before anything was said.",)])),
        _what_to_judge(trajectory, upto, every_turn=every_turn, is_cut=is_cut),
    )
    over = record.size(caps) - free
    if over <= 0:
        return transcript
    needed, allowed = (limit + over) // BYTES_PER_TOKEN, limit // BYTES_PER_TOKEN
    why = (
        f"the record has about {needed:,} tokens even with long texts shortened, but the limit is {allowed:,}"
    )
    return transcript._replace(misfit=f"{why}: raise `context` for the judge model if it supports more")


def render_other_transcript(
    trajectory: Trajectory,
    *,
    policy: str = "",
    tools: Sequence[dict[str, Any]] = (),
    limit: int = MAX_TRANSCRIPT_BYTES,
) -> str:
    """Render another conversation, to be shown along with a record.

    The text consists of the turns and, if given, the agent's policy and tools. If the conversation exceeds
    ``limit`` bytes, its texts are shortened."""
    head = [
        *_section("The policy of its agent", policy),
        *_section("The tools of its agent", "\n".join(map(_tool, tools))),
    ]
    turns = trajectory.all_turns
    record = _Turns(turns, [""] * len(turns))
    caps = record.fitted(limit - _size(head))
    parts = [*head, *(part for index, cap in enumerate(caps) for part in record.turn(index, cap))]
    return _shortened("\n\n".join(parts), limit)


class _Caps(NamedTuple):
    """The maximum lengths, in characters, of the texts in a turn."""

    results: int = sys.maxsize
    """The limit for tool results."""
    texts: int = sys.maxsize
    """The limit for all other texts."""

    def lower(self, other: _Caps) -> _Caps:
        return _Caps(min(self.results, other.results), min(self.texts, other.texts))


_EARLIER = (_Caps(1_500), _Caps(1_500, 1_500), _Caps(400, 400))
_LATEST = (
    _Caps(20_000),
    _Caps(5_000),
    _Caps(5_000, 20_000),
    _Caps(1_500, 5_000),
    _Caps(400, 1_500),
    _Caps(400, 400),
)
"""The caps for the latest turn, tried in this order."""


class _Turns:
    """The turns in a record, with the methods that shorten them to fit (transcript truncation)."""

    def __init__(self, turns: Sequence[Turn], notes: Sequence[str]) -> None:
        self._turns = turns
        self._notes = notes
        self._calls = [0, *accumulate(len(turn.tool_calls) for turn in turns)]
        self._named_from = _named_from(turns)
        self._sizes: dict[tuple[int, _Caps], int] = {}

    def turn(self, index: int, caps: _Caps) -> Sequence[str]:
        turn, calls, note = self._turns[index], self._calls[index], self._notes[index]
        return tuple(_turn(turn, index, calls, caps, note, by_name=index >= self._named_from))

    def size(self, caps: Sequence[_Caps]) -> int:
        return sum(self._size_of(index, cap) for index, cap in enumerate(caps))

    def _size_of(self, index: int, caps: _Caps) -> int:
        if (index, caps) not in self._sizes:
            self._sizes[index, caps] = _size(self.turn(index, caps))
        return self._sizes[index, caps]

    def fitted(self, free: int) -> Sequence[_Caps]:
        """Return the caps for each turn, so that all turns fit into ``free`` bytes if possible.

        Turns are shortened one by one, in the order in which they were judged: content cut from one record is
        also cut from the next."""
        uncut = [_Caps()] * len(self._turns)
        if self.size(uncut) <= free:
            return uncut
        caps: list[_Caps] = []
        for latest in range(len(self._turns)):
            caps.append(_Caps())
            if self.size(caps) > free:
                self._shorten(caps, range(latest), _EARLIER, int(free * _ROOM))
            if self.size(caps) > free:
                self._shorten(caps, (latest,), _LATEST, free)
        return caps

    def _shorten(self, caps: list[_Caps], which: Iterable[int], steps: Sequence[_Caps], free: int) -> None:
        """Lower the caps, oldest turn first, until the turns fit."""
        size = self.size(caps)
        for step in steps:
            for index in which:
                before, caps[index] = caps[index], caps[index].lower(step)
                size += self._size_of(index, caps[index]) - self._size_of(index, before)
                if size <= free:
                    return


def _size(parts: Iterable[str]) -> int:
    """Return the size in bytes, including the separators."""
    return sum(len(part.encode("utf-8", "replace")) + 2 for part in parts)


def _join_sections(sections: Iterable[Sequence[str]], closing: Iterable[str]) -> JudgeTranscript:
    """Join the sections. Every section except the closing one marks the end of a prefix that other requests
    share."""
    parts: list[str] = []
    shared: list[int] = []
    length = -2
    for section in sections:
        for part in section:
            parts.append(part)
            length += 2 + len(part)
        shared.append(length)
    return JudgeTranscript("\n\n".join((*parts, *closing)), tuple(dict.fromkeys(shared)))


def list_tool_schemas(scenario: Scenario) -> tuple[dict[str, Any], ...]:
    """List the tools of a scenario in OpenAI's format. Tools without a schema are listed only by name."""
    tools = []
    for name, tool in scenario.tools.items():
        fields = {"description": tool.description, "parameters": tool.parameters}
        function = {"name": name, **{key: value for key, value in fields.items() if value is not None}}
        tools.append({"type": "function", "function": function})
    return tuple(tools)


# ── what was known before the first word ─────────────────────────────────────────────────────────


def _render_suite(policy: str, tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "# The record"
    yield from _section("## The agent's policy: what it was told to do", policy)
    yield from _section("## The tools that the agent had", "\n".join(map(_tool, tools)))
    if not tools:
        yield "## The tools that the agent had\nNone is known but those that it called."


def _render_scenario(scenario: Scenario, now: str | None) -> Iterator[str]:
    if now:
        yield f"Date and time of the conversation: {_line(now)}"
    yield from _section("## The user's goal", scenario.goal)
    yield from _section("## The user", scenario.profile)
    yield from _section("## Knowledge: what the user knows, and true", _items(scenario.knowledge))
    yield from _section("## Facts: true, known to you alone", _items(scenario.facts))
    yield "# The conversation"


def _section(title: str, text: str) -> Iterator[str]:
    if text.strip():
        yield f"{title}\n{fence(text)}"


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts if text.strip())


def _tool(schema: dict[str, Any]) -> str:
    """Format a tool on one line, with its name and description."""
    function = schema.get("function", schema)
    name, description = _name(str(function.get("name", ""))), function.get("description")
    return f"{name}: {_line(str(description))}" if description else name


def _parameters(tools: Sequence[dict[str, Any]]) -> str:
    """Format the schemas of the tools' arguments, one tool per line."""
    functions = (schema.get("function", schema) for schema in tools)
    return "\n".join(
        f"{_name(str(function.get('name', '')))}: {to_json(function['parameters'])}"
        for function in functions
        if "parameters" in function
    )


# ── what happened ────────────────────────────────────────────────────────────────────────────────


def _notes(
    scenario: Scenario,
    trajectory: Trajectory,
    policy: str,
    tools: Sequence[dict[str, Any]],
    now: str | None,
) -> list[str]:
    """Return the notes that code adds to the turns. The notes are empty if calls are not visible."""
    turns = trajectory.all_turns
    if not trajectory.all_calls_seen:
        return [""] * len(turns)
    tool_texts = "\n".join((*map(_tool, tools), _parameters(tools)))
    ungrounded = find_ungrounded_values(scenario, turns, policy=policy, tools=tool_texts, now=now)
    notes, first = [], 0
    for turn, values in zip(turns, ungrounded, strict=True):
        note = f"tool calls of this turn: {format_call_outcomes(turn.tool_calls, first) or 'none'}"
        if values:
            note += f"\nidentifiers that the agent says and that stand nowhere before: {'; '.join(values)}"
        notes.append(note)
        first += len(turn.tool_calls)
    return notes


NOTE_TITLE = "Noted by a program (what it did not find, the agent may have from elsewhere):"


CALLS_DECLARED_UNSEEN = (
    "The agent's tool calls cannot be seen in this conversation, and the author of this test takes the"
    " agent's word for what it did. Where the agent plainly says that something was done, take it as done;"
    " where it says what it found, take it as found; unless the record speaks against it. That no call is"
    " shown is no evidence that none was made: hold no missing call against the agent."
)
"""The text that replaces ``CALLS_NOT_OBSERVED`` if the author declares that calls are not visible."""


CALLS_NOT_OBSERVED = (
    "The agent's tool calls cannot be seen in this conversation: it may have made calls that the record does"
    " not show. That no call is shown is no evidence that none was made, and a value, a fact or an action is"
    " not made up because no call in the record gave it or carried it out. Hold no missing call against the"
    " agent, and do not take one for made. Where only such a call could decide, the record does not let you"
    " decide: say so in the way that the form of the answer offers."
)
"""The text added for every judge of an unobserved conversation. It overrides rules that apply to other
records."""


EVERY_TURN = (
    "Each of the turns above, one after the other and each by itself, with the turns before it as background."
)
"""The text that replaces the turn to judge if all turns are judged in one call."""


TEXTS_SHORTENED = (
    "The record was too long, and texts of it were shortened; each is marked at the place where something is"
    " left out. The agent knew what stood there, and you do not: hold nothing against it because you do not"
    " see it, and where only that could decide, say so in the way that the form of the answer offers."
)
"""The text added for every judge of a record that was shortened."""


def _what_to_judge(
    trajectory: Trajectory, upto: int | None, *, every_turn: bool, is_cut: bool
) -> Iterator[str]:
    """Yield the closing section, the only section that differs from the record of the next turn."""
    yield "# What to judge"
    if upto is None:
        yield f"The conversation as a whole. {_ending(trajectory)}"
        prefix = trajectory
    else:
        yield EVERY_TURN if every_turn else f"The turn to judge is turn {upto + 1}, the last one above."
        prefix = Trajectory(turns=trajectory.turns[: upto + 1], visibility=trajectory.visibility)
    if prefix.visibility is ToolVisibility.DECLARED_UNSEEN:
        yield CALLS_DECLARED_UNSEEN
    elif not prefix.all_calls_seen:
        if every_turn and (first := find_first_unseen(prefix)):
            yield f"All calls of the turns before turn {first + 1} are shown. Of the turns from there on:"
        yield CALLS_NOT_OBSERVED
    if is_cut:
        yield TEXTS_SHORTENED


def find_first_unseen(trajectory: Trajectory) -> int | None:
    """Return the first turn (from 0) by the end of which some calls may not have been observed, or ``None``
    if all calls are known to be observed."""
    if trajectory.visibility is not ToolVisibility.ALL:
        return 0
    return next((index for index, turn in enumerate(trajectory.all_turns) if turn.unplaced), None)


def _named_from(turns: Sequence[Turn]) -> int:
    """Return the first turn by the end of which several agents are known to have spoken. Agents are named
    from this turn on.

    The earlier turns are the beginning of earlier records and stay unchanged."""
    known: set[str] = set()
    for index, turn in enumerate(turns):
        known.update(turn.agents)
        if len(known) > 1:
            return index
    return len(turns)


def _turn(
    turn: Turn, index: int, calls: int, caps: _Caps, note: str, *, by_name: bool = False
) -> Iterator[str]:
    yield f"## Turn {index + 1}\n{_quoted('The user says:', turn.user, caps.texts)}"
    for number, step in enumerate(turn.steps, 1):
        is_final = number == len(turn.steps) and not turn.error
        agent = f"The agent{_format_agent(step.agent)}" if by_name else "The agent"
        yield from _step(step, calls, caps, agent, verb="answers" if is_final else "says")
        calls += len(step.tool_calls)
    if turn.error:
        yield _quoted("The turn broke off here, without a final answer:", turn.error, caps.texts)
    elif not final_answer(turn).strip():
        yield "The agent's final answer is empty."
    if note:
        yield _quoted(NOTE_TITLE, note)


def _format_agent(agent: str) -> str:
    """Return an agent's name in brackets, without any characters that could make it look like something
    else."""
    plain = "".join(each for each in _line(agent) if each.isalnum() or each in " _-.")[:40].strip()
    return f" ({plain})" if plain else ""


def _step(step: Step, calls: int, caps: _Caps, agent: str, *, verb: str) -> Iterator[str]:
    # Reasoning is not part of the record: the agent showed it to nobody.
    if (text := blank_reasoning(step.text or "")).strip():
        yield _quoted(f"{agent} {verb}:", text if text == step.text else text.strip(), caps.texts)
    for number, call in enumerate(step.tool_calls, calls):
        yield _call(call, number, agent, caps.texts)
        yield _result(call, number, caps.results)


def _call(call: ToolCall, number: int, agent: str, cap: int) -> str:
    title = f"{agent} makes tool call {number}"
    if call.observed:
        title += " (a tool that it runs itself)"
    if call.args is None:
        title += ", with arguments that are " + ("not known" if call.raw_args is None else "no JSON object")
    args = (call.raw_args or "") if call.args is None else to_json(call.args)
    return f"{title}:\n{fence(f'{_name(call.name)} {_shortened(args, cap)}')}"


def _result(call: ToolCall, number: int, cap: int) -> str:
    if call.given_up:
        return f"The agent did not wait for the result of tool call {number}."
    if call.result is None:
        return f"No result of tool call {number} is known."
    word = "Error" if call.result.is_error else "Result"
    return _quoted(f"{word} of tool call {number}:", call.result.text, cap)


def _quoted(title: str, text: str, cap: int = sys.maxsize) -> str:
    return f"{title}\n{fence(_shortened(text, cap))}" if text.strip() else f"{title} (an empty text)"


_ENDINGS = {
    StopReason.SCRIPT_DONE: "It ended when every message of the user had been answered.",
    StopReason.USER_DONE: "It ended because the user was done.",
    StopReason.MAX_TURNS: "It ended because the number of turns was limited; the user was not done.",
    StopReason.AGENT_ERROR: "It ended because the agent broke down.",
    StopReason.AGENT_TIMEOUT: "It ended because the agent did not answer in time.",
    StopReason.TOOL_LOOP: "It ended because the agent called tools without end.",
}


def _ending(trajectory: Trajectory) -> str:
    stop = trajectory.stop
    if stop is None:
        return "It goes on."
    if stop.reason is StopReason.RECORDED and trajectory.all_turns:
        return f"The recording ends with {_describe_last_part(trajectory)}."
    return _ENDINGS.get(stop.reason, "It was broken off, which is no fault of the agent.")


def _describe_last_part(trajectory: Trajectory) -> str:
    if trajectory.unfinished is None:
        return "the agent's answer"
    steps = trajectory.unfinished.steps
    if not steps:
        return "the user's message"
    if not steps[-1].tool_calls:
        return "the agent's words, which are no complete answer"
    return "a tool call" if steps[-1].tool_calls[-1].result is None else "the result of a tool call"


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def _name(name: str) -> str:
    """Return a tool's name, encoded as JSON if the name could be mistaken for something else."""
    return name if name.replace("_", "").replace("-", "").replace(".", "").isalnum() else to_json(name)


def _line(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str, cap: int) -> str:
    """Replace the middle of a long text with a note that states the length of the omitted part."""
    if len(text) <= cap:
        return text
    head, tail = text[: cap * 2 // 3], text[-(cap // 3) :]
    gone = len(text) - len(head) - len(tail)
    return f"{head}\n[… {gone:,} characters left out here to shorten the record …]\n{tail}"


def latest_answer(trajectory: Trajectory) -> str:
    """Return the final text of the last finished turn, or an empty string if there is none."""
    return final_answer(trajectory.turns[-1]) if trajectory.turns else ""
