"""In which form a server takes a conversation: learned from its own refusals, never from a name.

The conversation is sent as it is. When a server refuses that with words that name a form (``content`` that
is null, roles that do not alternate, …), it is sent once more in the other form, and from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from agenteval.adapters.transport.server_words import NO_SYSTEM
from agenteval.core.expressions import expression
from agenteval.core.trajectory import Message

REFUSED = frozenset((400, 422))
"""Statuses of a request that the server did not take on: sending another one is safe."""


@dataclass(frozen=True)
class Form:
    """``empty``: how ``content`` without text is written beside tool calls: as ``given``, as ``null``, as an
    empty ``text`` or ``missing``. ``drops_empty``: the assistant's messages without text and calls are left
    out. ``merges``: neighbours of one role become one message. ``system``: where instructions are: as
    ``given``, all ``first``, or within the first message of the ``user``. ``short_ids``: ids of calls have
    nine letters or digits. ``left_out``: further fields of messages and ``body_left_out`` fields of the
    body that are not sent. ``tried``: forms of ``empty`` that were refused."""

    empty: str = "given"
    drops_empty: bool = False
    merges: bool = False
    system: str = "given"
    short_ids: bool = False
    left_out: frozenset[str] = frozenset()
    body_left_out: frozenset[str] = frozenset()
    tried: frozenset[str] = frozenset()


class Lesson(NamedTuple):
    """What a refusal teaches. ``note`` says it to people."""

    form: Form
    note: str


_Rule: TypeAlias = Callable[[str, Mapping[str, Any], Form], Lesson | None]


def lesson(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    """What to do differently after a refusal of ``body``, which has the form ``form``, in the words
    ``text``. ``None``: nothing is known that would help. What was learned before is never learned again."""
    rules: tuple[_Rule, ...]
    rules = (_body_field, _further_field, _ids, _system, _alternation, _empty_message, _empty_content)
    return next((found for rule in rules if (found := rule(text, body, form))), None)


def shaped(body: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """``body`` in a form."""
    if form == Form():
        return dict(body)
    messages: Sequence[Message] = body.get("messages") or ()
    if form.drops_empty:
        messages = [message for message in messages if not _says_nothing(message)]
    messages = [_reshaped(message, form) for message in messages]
    messages = _placed(messages, form.system)
    if form.merges:
        messages = list(_merged(messages))
    return {**{k: v for k, v in body.items() if k not in form.body_left_out}, "messages": messages}


# ── putting into a form ──────────────────────────────────────────────────────────────────────────


def _says_nothing(message: Message) -> bool:
    return message.get("role") == "assistant" and not message.get("content") and not _calls(message)


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _reshaped(message: Message, form: Form) -> Message:
    made = {name: value for name, value in message.items() if name not in form.left_out}
    calls = _calls(made)
    if calls and form.empty != "given" and not made.get("content"):
        made.pop("content", None)
        if form.empty != "missing":
            made["content"] = None if form.empty == "null" else ""
    if calls:
        made["tool_calls"] = [_call(call, form) if isinstance(call, dict) else call for call in calls]
    if form.short_ids and "tool_call_id" in made:
        made["tool_call_id"] = short_id(str(made["tool_call_id"]))
    return made


def _call(call: Mapping[str, Any], form: Form) -> dict[str, Any]:
    made = {name: value for name, value in call.items() if name not in form.left_out}
    return {**made, "id": short_id(str(made["id"]))} if form.short_ids and "id" in made else made


def short_id(call_id: str) -> str:
    """Nine letters or digits, the same for the same id; one that has them already stays."""
    if re.fullmatch("[A-Za-z0-9]{9}", call_id):
        return call_id
    return blake2b(call_id.encode("utf-8", "replace"), digest_size=5).hexdigest()[:9]


def _placed(messages: list[Message], where: str) -> list[Message]:
    told = [str(m.get("content") or "") for m in messages if m.get("role") in ("system", "developer")]
    if where == "given" or not told:
        return messages
    rest = [m for m in messages if m.get("role") not in ("system", "developer")]
    text = "\n\n".join(filter(None, told))
    if where == "first" or not rest or rest[0].get("role") != "user":
        return [{"role": "system" if where == "first" else "user", "content": text}, *rest]
    first, *others = rest
    return [_joined({"role": "user", "content": text}, first), *others]


def _merged(messages: Sequence[Message]) -> Iterator[Message]:
    last: Message | None = None
    for message in messages:
        if last is not None and _may_join(last, message):
            last = _joined(last, message)
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _may_join(one: Message, other: Message) -> bool:
    """Whether two messages can be one: texts of one role, and the first has no calls to be answered."""
    same = one.get("role") == other.get("role") and one.get("role") in ("user", "assistant", "system")
    texts = all(isinstance(message.get("content"), str | None) for message in (one, other))
    return bool(same and texts and not _calls(one))


def _joined(one: Message, other: Message) -> Message:
    texts = [text for text in (one.get("content"), other.get("content")) if text]
    if all(isinstance(text, str) for text in texts):
        return {**one, **other, "content": "\n\n".join(texts)}
    return {**one, **other, "content": [part for text in texts for part in _parts(text)]}


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# ── what a refusal teaches ───────────────────────────────────────────────────────────────────────

_CONTENT = expression(r"\bcontent\b|\bempty\b.{0,40}\bmessage|\bmessage\b.{0,40}\bempty\b", re.IGNORECASE)
_NOT_NULL = expression(
    r"\bnull\b|\bnone\b|\bnil\b|NoneType|missing|required|valid string|must be (a |of type )?['\"]?str|"
    r"expected (a )?string|invalid type",
    re.IGNORECASE,
)
_NOT_EMPTY = expression(r"non-?empty|not be (empty|blank)|\bempty\b|at least (one|1) char", re.IGNORECASE)
_ALTERNATE = expression(
    r"\balternat|consecutive|(same|repeated) role|two .{0,20}in a row|roles? must", re.IGNORECASE
)
_SYSTEM_PLACE = expression(
    r"\bsystem\b.{0,60}\b(beginning|first|start|only one|multiple|position)\b"
    r"|\b(multiple|more than one|only one|first)\b.{0,40}\bsystem\b",
    re.IGNORECASE | re.DOTALL,
)
_IDS = expression(r"\b(tool[_ ]?calls?[_ ]?|call[_ ])ids?\b|\btool_calls?\b.{0,40}\bid\b", re.IGNORECASE)
_ID_FORM = expression(r"length|a-z|alphanumeric|characters|\b9\b|format", re.IGNORECASE)
_UNKNOWN = expression(
    r"unsupported|not supported|unrecogni|unknown|not (permitted|allowed)|unexpected|extra|invalid|does not",
    re.IGNORECASE,
)
_STANDARD = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", "id", "type", "function"))


def _of_role(body: Mapping[str, Any], *roles: str) -> list[int]:
    messages = body.get("messages") or ()
    return [index for index, message in enumerate(messages) if message.get("role") in roles]


def _body_field(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    name = "stream_options"
    if name not in body or name not in text or not _UNKNOWN.search(text):
        return None
    return Lesson(
        replace(form, body_left_out=form.body_left_out | {name}), f"`{name}` is refused and no longer sent"
    )


def _further_field(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    """Fields that the agent itself once sent, such as its reasoning, and does not take back."""
    if not _UNKNOWN.search(text):
        return None
    holders = [h for message in body.get("messages") or () for h in (message, *_calls(message))]
    known = {name for holder in holders if isinstance(holder, Mapping) for name in holder} - _STANDARD
    named = {name for name in known if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    if not named:
        return None
    told = ", ".join(f"`{name}`" for name in sorted(named))
    return Lesson(
        replace(form, left_out=form.left_out | named),
        f"{told} of the agent's own messages is refused and left out",
    )


def _ids(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    if form.short_ids or not _of_role(body, "tool") or not (_IDS.search(text) and _ID_FORM.search(text)):
        return None
    return Lesson(replace(form, short_ids=True), "ids of tool calls are refused; they get nine characters")


def _system(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    places = _of_role(body, "system", "developer")
    if not places or form.system == "user":
        return None
    if _SYSTEM_PLACE.search(text) and places != [0] and form.system == "given":
        return Lesson(replace(form, system="first"), "instructions are only taken at the beginning")
    if _has_neighbours(body) and not form.merges and _ALTERNATE.search(text):
        return None
    if not NO_SYSTEM.search(text):
        return None
    note = "the system role is refused; its text goes into the first user message"
    return Lesson(replace(form, system="user"), note)


def _has_neighbours(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages") or ()
    return any(_may_join(one, other) for one, other in pairwise(messages))


def _alternation(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    if form.merges or not _ALTERNATE.search(text) or not _has_neighbours(body):
        return None
    return Lesson(
        replace(form, merges=True), "roles must alternate; adjacent messages of one role are merged"
    )


def _empty_message(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    """An answer of nothing at all is in the record, and some servers do not take it back."""
    is_there = any(map(_says_nothing, body.get("messages") or ()))
    if form.drops_empty or not is_there or not _CONTENT.search(text):
        return None
    if not (_NOT_EMPTY.search(text) or _NOT_NULL.search(text)):
        return None
    return Lesson(replace(form, drops_empty=True, merges=True), "empty answers are refused and left out")


def _empty_content(text: str, body: Mapping[str, Any], form: Form) -> Lesson | None:
    empty = [m for m in body.get("messages") or () if _calls(m) and not m.get("content")]
    if not empty or not _CONTENT.search(text):
        return None
    said = empty[-1].get("content", "missing")
    sent = "null" if said is None else "missing" if said == "missing" else "text"
    tried = form.tried | {sent}
    wanted = ("text", "null", "missing") if _NOT_NULL.search(text) else ("null", "missing", "text")
    other = next((each for each in wanted if each not in tried), None)
    if other is None or not (_NOT_NULL.search(text) or _NOT_EMPTY.search(text)):
        return None
    shown = {"text": "an empty text", "null": "null", "missing": "left out"}
    note = f"`content` of {shown[sent]} beside tool calls is refused; it is sent as {shown[other]}"
    if other == "missing":
        note = f"`content` of {shown[sent]} beside tool calls is refused; it is left out"
    return Lesson(replace(form, empty=other, tried=tried), note)
