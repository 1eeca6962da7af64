"""Tool calls that a model writes into its text: ``Action:``, ``Action Input:``, ``Observation:``. Pure.

Agents that think and act in turn, as the older frameworks prompt them to, keep everything in one text: what
the model thought, the call, what came back, and behind ``Final Answer:`` all that the user gets to see. A
text is taken apart only where its shape, or what its prompt asks for, leaves no doubt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agenteval.core.expressions import expression
from agenteval.core.scenario import Tool
from agenteval.core.speech import thought_ends
from agenteval.messages.calls import Call, Tell
from agenteval.messages.inputs import Given, blob_in, given_in, unfenced, without_open_fence
from agenteval.messages.said import Said
from agenteval.messages.tagged import may_hold_tags, with_tagged_calls

_LABEL = expression(
    r"^[ \t]*\*{0,2}(Thought|Action Input|Action|Observation|Final Answer)"
    r"(?: \d{1,3})?\*{0,2} ?[:：]\*{0,2}",
    re.MULTILINE,
)
_FIRST_WORDS = expression(r"(?:the|your|an?|one|only|should|tool name)(?:\s|$)|[<\[]", re.IGNORECASE)
"""How what stands behind ``Action:`` begins where the format is explained; no name of a tool does."""
_IN_NO_NAME = expression(r"[<>\[\]{}|\n]|, |[.?!] ")
_NO_TOOL = frozenset(("none", "n/a", "no action", "none needed", "no action needed", "no tool needed"))
_LONGEST_NAME = 80
_ANSWER = "Final Answer"
_OF_CALLS = {"Action", "Action Input"}
_NEXT = {"Thought": ("Action", _ANSWER), "Action": ("Action Input",), "Action Input": ("Observation",)}
"""What a message with one label continues with in the next one."""
_THINKING = expression(r"</?think(?:ing)?>")


class _Part(NamedTuple):
    """A label (empty: what stands before the first) with what is written behind it. ``raw``: both."""

    label: str
    text: str
    raw: str


class _Protocol(NamedTuple):
    """What is known of a conversation: that its agent writes its ``calls``, and that it marks its
    ``answers``."""

    calls: bool
    answers: bool


class _Piece(NamedTuple):
    """What was said. ``kind``: ``call``, ``result`` or ``answer`` if it was written as one."""

    said: Said
    kind: str = ""


def with_written_calls(
    said: Iterable[Said], tools: Mapping[str, Tool], tell: Tell, *, is_raw: bool = False
) -> Iterable[Said]:
    """What was said, with the calls, the results and the answers that texts of the agent hold as such.
    ``is_raw``: the last of it is what a model replied, before anybody ran its tools."""
    every = list(said)
    if any(each.calls for each in every):
        return every  # who can call tools does not write calls
    if not any(map(_may_hold_calls, every)):
        return every
    every = list(with_tagged_calls(every, tools, tell))
    if not any(map(_may_hold_labels, every)) or any(each.calls for each in every):
        return every
    joined = list(_joined(every))
    protocol = _protocol_of(joined)
    if protocol.calls:
        joined = list(_without_copies(joined))
        joined[-1] = _without_inventions(joined[-1]) if is_raw else joined[-1]
    return _read(joined, protocol, tools) if any(protocol) else every


def _may_hold_calls(said: Said) -> bool:
    return _may_hold_labels(said) or may_hold_tags(said)


def _may_hold_labels(said: Said) -> bool:
    text = said.text
    return said.role == "assistant" and text is not None and ("Action" in text or _ANSWER in text)


# ── what the shape of a conversation proves ──────────────────────────────────────────────────────


def _protocol_of(said: Sequence[Said]) -> _Protocol:
    """A prompt that explains the labels proves as much as a message that cannot be anything else."""
    told = [(each.role, _labels_in(each.text)) for each in said if each.role in ("system", "user")]
    explained_by = {role for role, labels in told if labels >= _OF_CALLS}
    calls, answers = False, any(labels >= {"Thought", _ANSWER} for _, labels in told)
    for at, each in enumerate(said):
        if _may_hold_labels(each):
            parts = _parts(each.text or "")
            is_proven = "system" in explained_by or _is_sure(parts)
            is_proven = is_proven or ("user" in explained_by and not _is_led_up(parts))
            is_followed = at + 1 < len(said) and _observed(said[at + 1]) is not None
            calls = calls or (_has_call(parts) and (is_proven or is_followed))
            answers = answers or (parts[0].label == "Thought" and parts[-1].label == _ANSWER)
    return _Protocol(calls, calls or answers)


def _labels_in(text: str | None) -> set[str]:
    if not text or ("Action Input" not in text and _ANSWER not in text):
        return set()
    return {found[1] for found in _LABEL.finditer(text)}


def _has_call(parts: Sequence[_Part]) -> bool:
    return any(_action_at(parts, at) for at in range(len(parts)))


def _is_sure(parts: Sequence[_Part]) -> bool:
    """Whether a text with a call can be nothing but one: it begins with a label, or with what is thought
    without one, and a result is in it."""
    if parts[0].label:
        return parts[0].label in ("Thought", "Action")
    labels = [part.label for part in parts]
    is_thought = "\n\n" not in parts[0].text.strip() and labels[1:2] == ["Action"]
    return is_thought and "Observation" in labels and not _is_led_up(parts)


def _is_led_up(parts: Sequence[_Part]) -> bool:
    """Whether somebody announces what follows, as one does with an example."""
    lead = "" if parts[0].label else parts[0].text.strip()
    return lead.endswith(":") or "```" in lead


def _observed(said: Said) -> tuple[str, str] | None:
    """What is handed to the agent as the result of its call, and what its own message says after that;
    ``None``: it is something else."""
    text = said.value if said.role == "tool" else said.text
    if not isinstance(text, str) or not text.lstrip(" *\n").startswith("Observation"):
        return None
    if said.role == "assistant":
        first, *others = _parts(text)
        return (first.text, "".join(part.raw for part in others)) if first.label == "Observation" else None
    found = _LABEL.match(text.lstrip())
    return (text.lstrip()[found.end() :], "") if found and found[1] == "Observation" else None


# ── a text and its parts ─────────────────────────────────────────────────────────────────────────


def _parts(text: str) -> list[_Part]:
    """The parts of a text, in order. An explanation of the format, which frameworks put in there as well,
    belongs with all that follows it to the part that it stands in; so does what follows an answer."""
    after = thought_ends(text)
    found = [each for each in _LABEL.finditer(text) if each.start() >= after]
    ends = [*(each.start() for each in found[1:]), *([len(text)] if found else ())]
    lead = text[: found[0].start()] if found else text
    parts = [_Part("", lead, lead)] if lead.strip("` \t\n") or not found else []
    for each, end in zip(found, ends, strict=True):
        if each[1] == "Action" and _FIRST_WORDS.match(text[each.end() : end].strip()):
            return _with_rest(parts, text[each.start() :])
        if each[1] == _ANSWER:
            return [*parts, _Part(_ANSWER, text[each.end() :], text[each.start() :])]
        if each[1] == "Observation" and parts and parts[-1].label == each[1]:
            parts[-1] = _with_rest(parts, text[each.start() : end])[-1]
        else:
            parts.append(_Part(each[1], text[each.end() : end], text[each.start() : end]))
    return parts


def _with_rest(parts: Sequence[_Part], rest: str) -> list[_Part]:
    *before, last = parts or [_Part("", "", "")]
    if before and last.label == "Thought":  # of the explanation
        rest = last.raw + rest
        *before, last = before
    return [*before, _Part(last.label, last.text + rest, last.raw + rest)]


class _Action(NamedTuple):
    """A call as it is written. ``given``: the text for the tool, or what an object holds for it."""

    name: str
    given: object


def _action_at(parts: Sequence[_Part], at: int) -> _Action | None:
    """The call that begins with a part: a name, and its input in the next one; or an object with both."""
    if parts[at].label != "Action":
        return None
    if blob := blob_in(parts[at].text):
        return _Action(*blob)
    name = unfenced(parts[at].text).strip("`'\"* \t\n")
    is_given = at + 1 < len(parts) and parts[at + 1].label == "Action Input"
    return _Action(name, parts[at + 1].text) if is_given and _is_name(name) else None


def _is_name(text: str) -> bool:
    is_short = 0 < len(text) <= _LONGEST_NAME
    return is_short and text.casefold() not in _NO_TOOL and not _IN_NO_NAME.search(text)


# ── taken apart ──────────────────────────────────────────────────────────────────────────────────


def _joined(said: Iterable[Said]) -> Iterator[Said]:
    """Messages in a row that have one label each, as some agents log them, as the one text that they are."""
    held: list[Said] = []
    for each in said:
        if held and not _goes_on(held[-1], each):
            yield _as_one(held)
            held = []
        if _label_of(each):
            held.append(each)
        else:
            yield each
    if held:
        yield _as_one(held)


def _without_copies(said: Sequence[Said]) -> Iterator[Said]:
    """Without messages that the next one repeats and goes on from: frameworks write their prompts below."""
    for each, following in pairwise([*said, Said("user")]):
        is_repeated = following.role == each.role == "assistant" and bool(each.text)
        if not (is_repeated and (following.text or "").startswith(f"{each.text}\n")):
            yield each


def _goes_on(one: Said, other: Said) -> bool:
    return _label_of(other) in _NEXT.get(_label_of(one), ())


def _label_of(said: Said) -> str:
    """The one label that a message of the agent begins with; empty if it has none, or several."""
    if said.role != "assistant" or not said.text or ":" not in said.text[:40].replace("：", ":"):
        return ""
    found = _LABEL.findall(said.text)
    return str(found[0]) if len(found) == 1 and _LABEL.match(said.text.lstrip()) else ""


def _as_one(said: Sequence[Said]) -> Said:
    return said[0]._replace(text="\n".join(each.text or "" for each in said)) if len(said) > 1 else said[0]


def _read(said: Iterable[Said], protocol: _Protocol, tools: Mapping[str, Tool]) -> Iterator[Said]:
    pieces: list[_Piece] = []
    for each in said:
        if pieces and pieces[-1].kind in ("call", "result") and (observed := _observed(each)):
            if pieces[-1].kind == "result":
                pieces.pop()  # the model had made it up before the tool answered
            pieces.append(_result(observed[0]))
            if not observed[1].strip():
                continue
            each = each._replace(text=observed[1])
        pieces += _taken_apart(each, protocol, tools)
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        yield _unsaid(piece.said) if _is_passed_over(piece, following, protocol) else piece.said


def _without_inventions(said: Said) -> Said:
    """A reply up to its first result: what follows is made up, and the agent goes on from the call."""
    parts = _parts(said.text or "")
    at = next((n for n, part in enumerate(parts) if part.label == "Observation"), 0)
    if said.role != "assistant" or not _has_call(parts[:at]):
        return said
    return said._replace(text="".join(part.raw for part in parts[:at]))


def _is_passed_over(piece: _Piece, following: _Piece | None, protocol: _Protocol) -> bool:
    """Whether a text is followed by more of the agent's: where it marks its answers, that is none of them."""
    if not protocol.calls or piece.kind or following is None or piece.said.role != "assistant":
        return False
    return following.said.role in ("assistant", "tool")


def _unsaid(said: Said) -> Said:
    return said._replace(text=_thought([said.text or ""]))


def _taken_apart(said: Said, protocol: _Protocol, tools: Mapping[str, Tool]) -> list[_Piece]:
    if said.role != "assistant" or not said.text:
        return [_Piece(said)]
    parts = _parts(said.text)
    if not (protocol.calls and _has_call(parts)) and parts[-1].label != _ANSWER:
        return [_Piece(said)]
    pieces = list(_pieces_of(parts, protocol, tools))
    first = next((at for at, piece in enumerate(pieces) if piece.said.role == "assistant"), 0)
    pieces[first] = pieces[first]._replace(said=pieces[first].said._replace(usage=said.usage))
    return [piece._replace(said=piece.said._replace(agent=said.agent)) for piece in pieces]


def _pieces_of(parts: Sequence[_Part], protocol: _Protocol, tools: Mapping[str, Tool]) -> Iterator[_Piece]:
    thoughts: list[str] = []
    is_open = False
    for at, part in enumerate(parts):
        action = _action_at(parts, at) if protocol.calls else None
        if part.label == _ANSWER or (action and action.name == _ANSWER):
            yield _answer(thoughts, part.text if action is None else action.given)
            thoughts = []
        elif action:
            given = _given(action, tools.get(action.name))
            call = Call(action.name, given.args, given.raw_args, "")
            yield _Piece(Said("assistant", _thought(thoughts) or None, (call,)), "call")
            is_open = not given.rest or _is_observed(parts, at)
            thoughts = [given.rest] if is_open else []
            if not is_open:  # what the framework wrote below the call
                yield _result(given.rest)
        elif part.label == "Observation" and is_open:
            yield _result(part.text)
            is_open = False
        elif not (part.label == "Action Input" and at and _action_at(parts, at - 1)):
            thoughts.append(part.raw)
    if _worded(thoughts):
        yield _Piece(Said("assistant", "".join(thoughts).strip()))


def _is_observed(parts: Sequence[_Part], at: int) -> bool:
    return any(part.label == "Observation" for part in parts[at + 1 : at + 3])


def _given(action: _Action, tool: Tool | None) -> Given:
    if isinstance(action.given, str):
        return given_in(action.given, tool)
    if action.given is None or isinstance(action.given, dict):
        return Given(action.given or {})
    return Given({"input": action.given})


def _answer(thoughts: Sequence[str], given: object) -> _Piece:
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return _Piece(Said("assistant", _thought(thoughts) + without_open_fence(text)), "answer")


def _result(text: str) -> _Piece:
    return _Piece(Said("tool", value=text.strip().removesuffix("Thought:").strip("` \n")), "result")


def _thought(texts: Sequence[str]) -> str:
    """What was thought, marked as such; empty if it was nothing."""
    return f"<think>{words}</think>\n" if (words := _worded(texts)) else ""


def _worded(texts: Sequence[str]) -> str:
    words = _THINKING.sub("", "".join(texts)).strip("` \t\n")
    return words if _LABEL.sub("", words).strip() else ""
