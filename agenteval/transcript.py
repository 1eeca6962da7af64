"""A conversation as a judge reads it: what was asked for, what was known, and all that happened.

Every text that the author of the check did not write stands in a fence of its own (see
``prompts.fence``). What more requests share stands before what fewer do, so that providers' prompt caches
serve them: the agent's policy and tools (a whole suite's), what the author wrote of the scenario (its
epochs'), the turns. The parameters of the tools, longer than all else that is known of them, are for the
judge of tools alone; they stand behind what the suite shares, so that its own records share them from
turn to turn. The text for a turn begins with the text for the turn before it, up to the closing section.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from agenteval.noted import calls_of, values_from_nowhere
from agenteval.prompts import fence
from agenteval.scenario import Scenario
from agenteval.sight import is_observed
from agenteval.speech import answer_of, spoken
from agenteval.trajectory import Step, Stop, StopReason, ToolCall, Trajectory, Turn

MAX_CHARACTERS = 300_000
"""Of a whole text, about 75,000 tokens. A longer conversation is shortened, which the text says."""
_CAPS = (20_000, 5_000, 1_500, 400)
"""How long one text of a conversation that is too long may be; tried in this order."""

_Cut: TypeAlias = Callable[[str], str]


class Told(NamedTuple):
    """A record, and how long those of its beginnings are that others share: a whole suite's, an epoch's, that
    of each turn so far. In characters, the shortest first."""

    text: str
    shared: tuple[int, ...] = ()


def context_of(scenario: Scenario, trajectory: Trajectory, **known: Any) -> str:
    """The text of ``record_of``."""
    return record_of(scenario, trajectory, **known).text


def record_of(
    scenario: Scenario,
    trajectory: Trajectory,
    *,
    policy: str = "",
    tools: Sequence[dict[str, Any]] | None = None,
    now: str | None = None,
    upto: int | None = None,
    parameters: bool = False,
    limit: int = MAX_CHARACTERS,
) -> Told:
    """The record of a conversation up to and with turn ``upto`` (from 0), the one to judge; ``None``:
    the whole of it.

    ``tools`` are those that the agent had, in OpenAI's format; default: those of the scenario.
    ``parameters``: whether those of the tools are in it. ``beliefs`` of the user are not, since they need
    not be true. Beyond ``limit`` characters long texts are shortened, first in earlier turns, then
    everywhere; the goal, every call and what a shortened text begins and ends with stay, whatever the
    limit.
    """
    known = tuple(tools_of(scenario) if tools is None else tools)
    asked = (policy, known, now, upto, parameters, limit)
    for scenario_then, trajectory_then, asked_then, told in tuple(_recent):
        if trajectory_then is trajectory and scenario_then is scenario and asked_then == asked:
            return told
    told = _written(scenario, trajectory, *asked)
    _recent.append((scenario, trajectory, asked, told))
    return told


# All judges of a turn ask for one text, one right after the other.
_recent: deque[tuple[Scenario, Trajectory, tuple[Any, ...], Told]] = deque(maxlen=4)


def _written(
    scenario: Scenario,
    trajectory: Trajectory,
    policy: str,
    tools: Sequence[dict[str, Any]],
    now: str | None,
    upto: int | None,
    parameters: bool,
    limit: int,
) -> Told:
    notes = _notes(scenario, trajectory, policy, tools, now)

    def write(early: _Cut, late: _Cut) -> Told:
        sections = (
            _of_suite(policy, tools, late),
            _section("## The parameters of these tools", _parameters(tools) if parameters else "", late),
            _of_scenario(scenario, now, late),
            *_conversation(trajectory, upto, early, late, notes),
        )
        return _joined(sections, _what_to_judge(scenario, trajectory, upto))

    told = write(_whole, _whole)
    if len(told.text) <= limit:
        return told
    for cap in _CAPS:
        told = write(_shortened_to(cap), _whole)
        if len(told.text) <= limit:
            return told
    for cap in _CAPS:
        told = write(_shortened_to(_CAPS[-1]), _shortened_to(cap))
        if len(told.text) <= limit:
            break
    return told


def _joined(sections: Iterable[Iterator[str]], closing: Iterator[str]) -> Told:
    """Each section is the end of a beginning that others share, the closing one is not."""
    parts: list[str] = []
    shared: list[int] = []
    length = -2
    for section in sections:
        for part in section:
            parts.append(part)
            length += 2 + len(part)
        shared.append(length)
    return Told("\n\n".join((*parts, *closing)), tuple(dict.fromkeys(shared)))


def tools_of(scenario: Scenario) -> tuple[dict[str, Any], ...]:
    """The tools of a scenario's world in OpenAI's format; those without a schema by name alone."""
    tools = []
    for name, tool in scenario.tools.items():
        told = {"description": tool.description, "parameters": tool.parameters}
        function = {"name": name, **{key: value for key, value in told.items() if value is not None}}
        tools.append({"type": "function", "function": function})
    return tuple(tools)


# ── what was known before the first word ─────────────────────────────────────────────────────────


def _of_suite(policy: str, tools: Sequence[dict[str, Any]], cut: _Cut) -> Iterator[str]:
    yield "# The record"
    yield from _section("## The agent's policy: what it was told to do", policy, cut)
    yield from _section("## The tools that the agent had", "\n".join(map(_tool, tools)), cut)
    if not tools:
        yield "## The tools that the agent had\nNone is known but those that it called."


def _of_scenario(scenario: Scenario, now: str | None, cut: _Cut) -> Iterator[str]:
    if now:
        yield f"Date and time of the conversation: {_line(now)}"
    yield from _section("## The user's goal", scenario.goal, _whole)
    yield from _section("## The user", scenario.profile, _whole)
    yield from _section("## Knowledge: what the user knows, and true", _items(scenario.knowledge), cut)
    yield from _section("## Facts: true, known to you alone", _items(scenario.facts), cut)
    yield "# The conversation"


def _section(title: str, text: str, cut: _Cut) -> Iterator[str]:
    if text.strip():
        yield f"{title}\n{fence(cut(text))}"


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts if text.strip())


def _tool(schema: dict[str, Any]) -> str:
    """One line a tool: name and description."""
    function = schema.get("function", schema)
    name, description = _name(str(function.get("name", ""))), function.get("description")
    return f"{name}: {_line(str(description))}" if description else name


def _parameters(tools: Sequence[dict[str, Any]]) -> str:
    """The schema of its arguments, one line a tool."""
    functions = (schema.get("function", schema) for schema in tools)
    return "\n".join(
        f"{_name(str(function.get('name', '')))}: {_json(function['parameters'])}"
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
    """What a program notes beside each turn; nothing where calls cannot be seen."""
    turns = trajectory.all_turns
    if not is_observed(scenario, trajectory):
        return [""] * len(turns)
    named = "\n".join((*map(_tool, tools), _parameters(tools)))
    nowhere = values_from_nowhere(scenario, turns, policy=policy, tools=named, now=now)
    notes, first = [], 0
    for turn, values in zip(turns, nowhere, strict=True):
        note = f"tool calls of this turn: {calls_of(turn.tool_calls, first) or 'none'}"
        if values:
            note += f"\nsaid by the agent and found nowhere before: {'; '.join(values)}"
        notes.append(note)
        first += len(turn.tool_calls)
    return notes


NOTED = "Noted by a program (what it did not find may be computed, rounded or said in other words):"


def _conversation(
    trajectory: Trajectory, upto: int | None, early: _Cut, late: _Cut, notes: Sequence[str]
) -> Iterator[Iterator[str]]:
    turns = trajectory.all_turns if upto is None else trajectory.turns[: upto + 1]
    if not turns:
        yield iter(("It ended before anything was said.",))
    calls = 0
    for index, turn in enumerate(turns):
        # Of a whole conversation no turn is more current than another, except the last.
        cut = late if index == len(turns) - 1 else early
        yield _turn(turn, index, calls, cut, notes[index])
        calls += len(turn.tool_calls)


NOT_OBSERVED = (
    "The agent's tool calls cannot be seen in this conversation: it may have made calls that the record does"
    " not show. That no call is shown is no evidence that none was made, and a value, a fact or an action is"
    " not made up because no call in the record gave it or carried it out. Hold no missing call against the"
    " agent, and do not take one for made. Where only such a call could decide, the record does not let you"
    " decide: say so in the way that the form of the answer offers."
)
"""Told to every judge of a conversation that is not observed, over what the rules say of records that are."""


def _what_to_judge(scenario: Scenario, trajectory: Trajectory, upto: int | None) -> Iterator[str]:
    """The closing section: the only one that differs from the record of the next turn."""
    yield "# What to judge"
    if upto is None:
        yield f"The conversation as a whole. {_ending(trajectory.stop)}"
        prefix = trajectory
    else:
        yield f"The turn to judge is turn {upto + 1}, the last one above."
        prefix = Trajectory(turns=trajectory.turns[: upto + 1])
    if not is_observed(scenario, prefix):
        yield NOT_OBSERVED


def _turn(turn: Turn, index: int, calls: int, cut: _Cut, note: str) -> Iterator[str]:
    yield f"## Turn {index + 1}\n{_quoted('The user says:', turn.user, cut)}"
    for number, step in enumerate(turn.steps, 1):
        is_final = number == len(turn.steps) and not turn.error
        yield from _step(step, calls, cut, says="The agent answers:" if is_final else "The agent says:")
        calls += len(step.tool_calls)
    if turn.error:
        yield _quoted("The turn broke off here, without a final answer:", turn.error, cut)
    elif not answer_of(turn).strip():
        yield "The agent's final answer is empty."
    if note:
        yield _quoted(NOTED, note, _whole)


def _step(step: Step, calls: int, cut: _Cut, *, says: str) -> Iterator[str]:
    # What the agent only thought is no part of the record: it was said to nobody.
    if (text := spoken(step.text or "")).strip():
        yield _quoted(says, text if text == step.text else text.strip(), cut)
    for number, call in enumerate(step.tool_calls, calls):
        yield _call(call, number, cut)
        yield _result(call, number, cut)


def _call(call: ToolCall, number: int, cut: _Cut) -> str:
    title = f"The agent makes tool call {number}"
    if call.observed:
        title += " (a tool that it runs itself)"
    if call.args is None:
        title += ", with arguments that are no JSON object"
    args = (call.raw_args or "") if call.args is None else _json(call.args)
    return f"{title}:\n{fence(f'{_name(call.name)} {cut(args)}')}"


def _result(call: ToolCall, number: int, cut: _Cut) -> str:
    if call.given_up:
        return f"The agent did not wait for the result of tool call {number}."
    if call.result is None:
        return f"No result of tool call {number} is known."
    word = "Error" if call.result.is_error else "Result"
    return _quoted(f"{word} of tool call {number}:", call.result.text, cut)


def _quoted(title: str, text: str, cut: _Cut) -> str:
    return f"{title}\n{fence(cut(text))}" if text.strip() else f"{title} (an empty text)"


_ENDINGS = {
    StopReason.SCRIPT_DONE: "It ended when every message of the user had been answered.",
    StopReason.USER_DONE: "It ended because the user was done.",
    StopReason.MAX_TURNS: "It ended because the number of turns was limited; the user was not done.",
    StopReason.AGENT_ERROR: "It ended because the agent broke down.",
    StopReason.AGENT_TIMEOUT: "It ended because the agent did not answer in time.",
    StopReason.TOOL_LOOP: "It ended because the agent called tools without end.",
}


def _ending(stop: Stop | None) -> str:
    return _ENDINGS.get(stop.reason, "It was broken off.") if stop else "It goes on."


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _name(name: str) -> str:
    """A tool's name; in JSON if it is none that could be mistaken for nothing else."""
    return name if name.replace("_", "").replace("-", "").replace(".", "").isalnum() else _json(name)


def _line(text: str) -> str:
    return " ".join(text.split())


def _whole(text: str) -> str:
    return text


def _shortened_to(cap: int) -> _Cut:
    """Cuts the middle out of longer texts, and says in its place how much is gone."""

    def cut(text: str) -> str:
        if len(text) <= cap:
            return text
        head, tail = text[: cap * 2 // 3], text[-(cap // 3) :]
        gone = len(text) - len(head) - len(tail)
        return f"{head}\n[… {gone:,} characters left out here to shorten the record …]\n{tail}"

    return cut


def latest_answer(trajectory: Trajectory) -> str:
    """The final text of the last finished turn; empty if there is none."""
    return answer_of(trajectory.turns[-1]) if trajectory.turns else ""
