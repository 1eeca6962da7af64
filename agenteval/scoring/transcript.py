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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from agenteval.conversation.current_sample import sample_memory
from agenteval.core.call_outcomes import format_user_call
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
    kept = sample_memory()
    texts: _ConversationTexts | None = kept.get(_ConversationTexts)
    if texts is None or not texts.are_of(scenario, trajectory, effective):
        texts = kept[_ConversationTexts] = _ConversationTexts(scenario, effective)
    return texts.record(trajectory, effective)


class _ConversationTexts:
    """The texts that the records of one conversation share, and the latest records."""

    def __init__(self, scenario: Scenario, options: TranscriptOptions) -> None:
        policy, tools, now = self._setup = options.policy, options.tools or (), options.now
        self._scenario = scenario
        self._suite_head = tuple(_render_suite(policy, tools))
        self._parameters = tuple(_section("## The parameters of these tools", _parameters(tools)))
        self._scenario_head = tuple(_render_scenario(scenario, now))
        self._turns = _TurnTexts(partial(_notes, scenario=scenario, policy=policy, tools=tools, now=now))
        self._latest: deque[tuple[Trajectory, TranscriptOptions, JudgeTranscript]] = deque(
            maxlen=_LATEST_RECORDS
        )

    def are_of(self, scenario: Scenario, trajectory: Trajectory, options: TranscriptOptions) -> bool:
        """Check whether these are texts of the same conversation, shown in the same way."""
        known = zip(self._turns.turns, trajectory.all_turns, strict=False)
        is_same = scenario is self._scenario and all(one is other for one, other in known)
        return is_same and self._setup == (options.policy, options.tools, options.now)

    def record(self, trajectory: Trajectory, options: TranscriptOptions) -> JudgeTranscript:
        """Return the record of a trajectory, which all judges share that are asked about this trajectory."""
        for known, options_then, record in self._latest:
            if known is trajectory and options_then == options:
                return record
        record = self._build_record(trajectory, options)
        self._latest.append((trajectory, options, record))
        return record

    def _build_record(self, trajectory: Trajectory, options: TranscriptOptions) -> JudgeTranscript:
        self._turns.add(trajectory.all_turns[len(self._turns.turns) :])
        limit, upto = options.limit, options.upto
        head = (self._suite_head, self._parameters if options.parameters else (), self._scenario_head)
        turns = trajectory.all_turns if upto is None else trajectory.turns[: upto + 1]
        # The notes tell of all calls, and are left out if there may be others.
        record = _ShownTurns(self._turns, len(turns), are_noted=trajectory.all_calls_seen)
        free = limit - _CLOSING - _size(part for section in head for part in section)
        caps = record.fitted(free)
        is_cut = any(cap != _Caps() for cap in caps)
        turn_parts = [record.turn(index, cap) for index, cap in enumerate(caps)]
        transcript = _join_sections(
            (*head, *(turn_parts or [("It ended before anything was said.",)])),
            _what_to_judge(trajectory, upto, every_turn=options.every_turn, is_cut=is_cut),
        )
        over = record.size(caps) - free
        if over <= 0:
            return transcript
        needed, allowed = (limit + over) // BYTES_PER_TOKEN, limit // BYTES_PER_TOKEN
        why = f"the record has about {needed:,} tokens even with long texts shortened, but the limit is"
        remedy = "raise `context` for the judge model if it supports more"
        return transcript._replace(misfit=f"{why} {allowed:,}: {remedy}")


_LATEST_RECORDS = 2
"""With the parameters of the tools, and without."""


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
    texts = _TurnTexts()
    texts.add(trajectory.all_turns)
    record = _ShownTurns(texts, len(trajectory.all_turns), are_noted=False)
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


class _TurnTexts:
    """The turns of a conversation as text. The text of a turn is made once, for all records that show the
    turn.

    ``notes`` yields the note on each of the turns, to which others are added later."""

    def __init__(self, notes: Callable[[Sequence[Turn]], Iterator[str]] = lambda _turns: iter(())) -> None:
        self.turns: list[Turn] = []
        self._calls = [0]
        self._agents: set[str] = set()
        self._named_from = sys.maxsize
        self._next_notes = notes(self.turns)
        self._notes: list[str] = []
        self._made: dict[tuple[int, bool], tuple[_Caps, Sequence[str]]] = {}
        self._sizes: dict[tuple[int, bool, _Caps], int] = {}

    def add(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            self._agents.update(turn.agents)
            # The earlier turns are the beginning of earlier records and stay unchanged.
            if len(self._agents) > 1:
                self._named_from = min(self._named_from, len(self.turns))
            self.turns.append(turn)
            self._calls.append(self._calls[-1] + len(turn.tool_calls))

    def parts(self, index: int, caps: _Caps, *, is_noted: bool) -> Sequence[str]:
        """Return the parts of a turn's text. Of each turn, only the parts with the latest caps are kept."""
        known, parts = self._made.get((index, is_noted), (None, ()))
        if known != caps:
            note = self._note(index) if is_noted else ""
            by_name = index >= self._named_from
            parts = tuple(_turn(self.turns[index], index, self._calls[index], caps, note, by_name=by_name))
            self._made[index, is_noted] = caps, parts
        return parts

    def size(self, index: int, caps: _Caps, *, is_noted: bool) -> int:
        """Return the size of a turn's text in bytes."""
        known = (index, is_noted, caps)
        if known not in self._sizes:
            self._sizes[known] = _size(self.parts(index, caps, is_noted=is_noted))
        return self._sizes[known]

    def _note(self, index: int) -> str:
        while len(self._notes) <= index:
            self._notes.append(next(self._next_notes))
        return self._notes[index]


@dataclass(frozen=True)
class _ShownTurns:
    """The first turns of a conversation, as a record shows them, with the methods that shorten them to fit
    (transcript truncation)."""

    texts: _TurnTexts
    count: int
    are_noted: bool

    def turn(self, index: int, caps: _Caps) -> Sequence[str]:
        return self.texts.parts(index, caps, is_noted=self.are_noted)

    def size(self, caps: Sequence[_Caps]) -> int:
        return sum(self._size_of(index, cap) for index, cap in enumerate(caps))

    def _size_of(self, index: int, caps: _Caps) -> int:
        return self.texts.size(index, caps, is_noted=self.are_noted)

    def fitted(self, free: int) -> Sequence[_Caps]:
        """Return the caps for each turn, so that all turns fit into ``free`` bytes if possible.

        Turns are shortened one by one, in the order in which they were judged: content cut from one record is
        also cut from the next."""
        uncut = [_Caps()] * self.count
        if self.size(uncut) <= free:
            return uncut
        caps: list[_Caps] = []
        for latest in range(self.count):
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
    yield from _render_history(scenario.history_turns)
    yield "# The conversation"


_HISTORY_TITLE = (
    "# What came before the conversation\nUser and agent had said and done this earlier. Both know it, and it"
    " is true as background. It is not part of what you judge: hold nothing in it against the agent, and give"
    " no credit for it."
)


def _render_history(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the turns before the conversation. Their calls have no numbers, because no verdict names them."""
    if turns:
        yield _HISTORY_TITLE
    for turn in turns:
        yield _quoted("Earlier, the user said:", turn.user)
        for step in turn.steps:
            if (text := blank_reasoning(step.text or "")).strip():
                yield _quoted("Earlier, the agent said:", text.strip())
            for call in step.tool_calls:
                yield f"Earlier, the agent called:\n{fence(f'{_name(call.name)} {to_json(call.args or {})}')}"
                yield _quoted("Its result:", call.result.text if call.result else "")


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
    turns: Sequence[Turn], scenario: Scenario, policy: str, tools: Sequence[dict[str, Any]], now: str | None
) -> Iterator[str]:
    """Yield the notes that code adds to the turns."""
    tool_texts = "\n".join((*map(_tool, tools), _parameters(tools)))
    ungrounded = find_ungrounded_values(scenario, turns, policy=policy, tools=tool_texts, now=now)
    first = 0
    for turn, values in zip(turns, ungrounded, strict=False):
        note = f"tool calls of this turn: {format_call_outcomes(turn.tool_calls, first) or 'none'}"
        if values:
            note += f"\nidentifiers that the agent says and that stand nowhere before: {'; '.join(values)}"
        yield note
        first += len(turn.tool_calls)


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


def _turn(
    turn: Turn, index: int, calls: int, caps: _Caps, note: str, *, by_name: bool = False
) -> Iterator[str]:
    message = _quoted("The user says:", turn.user, caps.texts)
    yield f"## Turn {index + 1}\n{_user_actions(turn, caps)}{message}"
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


def _user_actions(turn: Turn, caps: _Caps) -> str:
    """Format the calls of the user's own tools, or return an empty string if there are none."""
    if not turn.user_tool_calls:
        return ""
    calls = "\n".join(map(format_user_call, turn.user_tool_calls))
    title = "On the user's side (the agent cannot see this):"
    return f"{_quoted(title, calls, caps.results)}\n\n"


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
