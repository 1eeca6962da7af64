"""One recorded message, in any of the shapes that logs have, as what somebody said, called or got back.

Known are OpenAI's chat messages and response items, Anthropic's and Google's content blocks, LangChain's
messages. What is not known is unplaced (``agenteval.messages.placed``), never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

from agenteval.messages.agent_names import agent_of
from agenteval.messages.calls import (
    CALL_FIELDS,
    PLACES,
    Call,
    Read,
    Tell,
    call_in,
    calls_of,
    served_call,
    unplaced_in_call,
    unplaced_in_served,
    without_copies,
)
from agenteval.messages.elsewhere import CONTENTS, spoken_beside, text_elsewhere
from agenteval.messages.json_fields import given_of, object_at, object_of, word
from agenteval.messages.placed import ADDITIONAL, NO_KIND, Unplaced, nobodys, unplaced_calls, unplaced_fields
from agenteval.messages.reported_usage import UsageOnce, usage_in
from agenteval.messages.results import FLAGS, bare, outcome_beside, result_value
from agenteval.messages.said import (
    PASSAGES,
    RESULT_IDS,
    UNPLACED,
    Role,
    Said,
    not_placed,
    plain_said,
    result_said,
    unplaced_in,
)
from agenteval.messages.speakers import role_of, unwrapped
from agenteval.messages.texts import is_media, is_silent, joined, passages_in, text_in, unplaced_in_part
from agenteval.messages.without_calls import GIVEN, WAITING, is_call_kind, is_typed_call


def _mute(_: str) -> None:
    """What would be told is known otherwise."""


def said_in(messages: Iterable[Any], tell: Tell = _mute) -> Iterator[Said]:
    """What was said, in order; what a message of several parts took, once, and what says once more what was
    read, not at all."""
    messages = list(messages)
    said = list(_with_usage_once(messages, tell))
    yield from _without_repeats(_without_granted(said, messages), messages)


def _without_granted(said: Sequence[Said], messages: Iterable[Any]) -> Sequence[Said]:
    """Without the requests for an approval of calls that were made then: the question is no call."""
    items = (each for each in map(object_of, messages) if each.get(_APPROVED_BY))
    made = {str(each[_APPROVED_BY]) for each in items if word(each, "type").endswith("_call")}
    if not made:
        return said
    asked = (tuple(call for call in each.calls if not (call.is_attempt and call.id in made)) for each in said)
    left = [(each, calls) for each, calls in zip(said, asked, strict=True) if calls or not each.calls]
    return [each._replace(calls=calls) for each, calls in left]


def _without_repeats(said: Sequence[Said], messages: Sequence[Any]) -> Sequence[Said]:
    """Without what is not placed for calls that were read: by an id anywhere, else in the same turn."""
    if not any(each.role == UNPLACED and each.value.calls for each in said):
        return said
    ids = [each.get("id") for each in map(object_of, messages) if each.get("type") != _REFERENCE]
    turns = list(accumulate(each.role == "user" for each in said))
    calls: dict[int, list[Call]] = {}
    for turn, each in zip(turns, said, strict=True):
        calls.setdefault(turn, []).extend(each.calls)
    every = [call for each in said for call in each.calls]
    left = zip(turns, said, strict=True)
    return [
        each
        for turn, each in left
        if each.role != UNPLACED or not is_repeat(each.value, Read(calls[turn], every, ids))
    ]


def is_repeat(unplaced: Unplaced, read: Read) -> bool:
    """Whether all that something may hold of calls was read."""
    return bool(unplaced.calls) and all(map(read.holds, unplaced.calls))


def _with_usage_once(messages: Iterable[Any], tell: Tell) -> Iterator[Said]:
    usages = UsageOnce()
    for message, said in _all_said(messages, tell):
        yield said._replace(usage=None) if usages.is_repeated(said.role, message) else said


def _all_said(messages: Iterable[Any], tell: Tell) -> Iterator[tuple[dict[str, Any], Said]]:
    """What was said, with its message. A result that stands beside its call is often told once more in a
    message of its own."""
    beside: set[str] = set()
    for message in messages:
        if not isinstance(message, dict):
            what = f"a message that is {kind_of(message)} and not an object"
            yield {}, not_placed(Unplaced(what, (), message), whole=True)
            continue
        plain = plain_said(message)
        if plain and not beside:
            yield message, plain
            continue
        for said in (plain,) if plain else _said(message, tell):
            if said.calls and beside:
                beside -= {call.id for call in said.calls}
            if said.is_beside and said.id:
                beside.add(said.id)
            elif said.id in beside:
                beside.discard(said.id)
                continue
            yield message, said


def _said(message: dict[str, Any], tell: Tell) -> Iterator[Said]:
    if unplaced := unplaced_in(message):
        yield not_placed(unplaced)
        return
    message = unwrapped(message) if message.get("role") is None else message
    said = list(_opened(message, tell))
    agent, usage = agent_of(message), usage_in(message)
    own = [at for at, each in enumerate(said) if each.role == "assistant"]
    for at, each in enumerate(said):
        # What a message took stands with the last that it says, and there alone.
        told = usage if [at] == own[-1:] else None
        yield each._replace(agent=agent, usage=told) if at in own else each


def _opened(message: dict[str, Any], tell: Tell) -> Iterator[Said]:
    role = message.get("role")
    kind = word(message, "type") if role is None else ""
    if kind and (item := _item(message, kind)) is not None:
        yield from item
        return
    known = role_of(message)
    if known is None:
        name = kind if role is None else str(role)
        of_role = f"a message with the unknown role '{name[:40]}'" if name else NO_KIND
        yield not_placed(nobodys(message, of_role), whole=True)
    elif known == "tool":
        yield from _tool_message(message)
    else:
        yield from _spoken(known, message, tell)


def _item(item: dict[str, Any], kind: str) -> Iterable[Said] | None:
    """What an item that is no message comes to; ``None``: it is of another kind."""
    if is_call_kind(kind) or kind == WAITING:
        return _called([item]).all
    if kind == _REFERENCE:
        refers = Unplaced("an item that is only referred to", (kind,), item, calls=(item,))
        return [not_placed(refers)]
    if kind.endswith(("_call_output", "_call_result")):
        lost = _unread_in_result(item, f"an item of the kind '{kind[:40]}'")
        return [result_said(item, item.get("output")), *map(not_placed, lost)]
    if kind.endswith("_call"):
        unread = (*unplaced_in_served(item), *_calls_in_result(item))
        return [*_served(item), *map(not_placed, unread)]
    return list(map(not_placed, unplaced_in_part(item))) if is_silent(kind) else None


_REFERENCE = "item_reference"
_APPROVED_BY = "approval_request_id"


def _served(item: Mapping[str, Any]) -> Iterator[Said]:
    call, result = served_call(item)
    yield Said("assistant", calls=(call,))
    if result is not None:
        value, failed = result
        yield Said("tool", value=result_value(value), id=call.id, name=call.name, is_error=failed)


class _Content(NamedTuple):
    """What a message says, and the key below which it stands."""

    key: str
    value: Any


def _content(message: Mapping[str, Any]) -> _Content:
    parts, content = message.get("parts"), message.get("content")
    # Vercel's AI SDK writes the text of its parts once more, without the calls between them.
    if isinstance(parts, list) and (not content or any(map(_call_part, parts))):
        parts = parts if not isinstance(content, str) or any(map(_says, parts)) else [*parts, content]
        return _Content("parts", parts)
    keys = [key for key in CONTENTS if key in message]
    first = keys[0] if keys else "content"
    content = message.get(first)
    if content is None or content in ("", []):
        first = next((key for key in keys if message[key]), first)
        content = message.get(first, content)
    return _Content(first, content)


def _says(part: Any) -> bool:
    return _call_part(part) is None and _result_part(part) is None and bool(text_in(part))


def _unread_contents(message: Mapping[str, Any], key: str) -> Iterator[Unplaced]:
    """Of what stands in the other places for a content: only what says the same once more is placed."""
    for other in CONTENTS:
        content = message.get(other)
        if other == key or isinstance(content, str) or not content or content == message.get(key):
            continue
        for part in content if isinstance(content, list) else [content]:
            if _result_part(part) or _call_part(part) is not None:
                yield nobodys(part, f"what stands in '{other}' beside '{key}'")
            else:
                yield from unplaced_in_part(part)


# ── text, calls and results of a message ─────────────────────────────────────────────────────────


def _spoken(role: Role, message: dict[str, Any], tell: Tell) -> Iterator[Said]:
    key, content = _content(message)
    called = _called(calls_of(message) if role == "assistant" else [])
    if not content and role == "assistant" and not called.said and message.get("output"):
        key, content = "output", message["output"]
    if content == [] or isinstance(content, str | None):
        own = None if content == [] else content
        text = own or spoken_beside(message) or own
        yield from _with_calls([_text_alone(role, message, text, called, tell)], called.said)
    else:
        parts = content if isinstance(content, list) else [content]
        said = _with_citations(list(_parts(role, parts)), parts)
        yield from _together(role, said, called.said)
    yield from map(not_placed, (*called.lost, *_unread_in(role, message, key)))


def _text_alone(
    role: Role, message: Mapping[str, Any], text: str | None, called: _Called, tell: Tell
) -> Said:
    """A message whose content is one text, or whose text may stand where nobody looks."""
    has_words = called.said or role == "system" or (text and text.strip())
    hidden = "" if has_words else text_elsewhere(message)[:40]
    if not hidden:
        return Said(role, text)
    tell(f"'{hidden}' of a message looks like its text and was not read")
    return Said(role, f"[{hidden}]", is_unread=True)


def _unread_in(role: Role, message: Mapping[str, Any], key: str) -> Iterator[Unplaced]:
    """What of a message nobody read. ``key``: where its content stands."""
    read = {key, *CONTENTS, "role", "type"}
    if role == "assistant":
        # LangChain keeps the pieces of the calls, too.
        has_pieces = _CHUNKS in message and calls_of(message)
        read.update(PLACES, (_CHUNKS,) if has_pieces else ())
    yield from unplaced_fields(message, read, of="a message")
    yield from _unread_contents(message, key)


_CHUNKS = "tool_call_chunks"


def _together(role: Role, said: list[Said], called: list[Said]) -> list[Said]:
    """What parts say and the calls beside them. LangChain writes a call in both places."""
    if not any(each.role != "unplaced" for each in said):
        said = [Said(role, "" if role == "user" else None), *said]
    within = [call for each in said for call in each.calls]
    if not within:
        return _with_calls(said, called)
    more = without_copies((call for each in called for call in each.calls), within)
    return [*said, Said("assistant", calls=tuple(more))] if more else said


def _with_calls(said: list[Said], called: list[Said]) -> list[Said]:
    """What was said, and the calls beside it. Who writes results beside calls writes what came of all of them
    as the text."""
    if len(called) > 1:
        return [*called, *(each for each in said if each.text or each.role in ("tool", "unplaced"))]
    for calls in (each.calls for each in called):
        last = max((n for n, each in enumerate(said) if each.role == "assistant"), default=None)
        if last is None:
            return [*said, Said("assistant", calls=calls)]
        return [*said[:last], said[last]._replace(calls=calls, is_unread=False), *said[last + 1 :]]
    return said


class _Called(NamedTuple):
    """Calls as one reply with the results that stand beside them, and what of them was lost."""

    said: list[Said]
    lost: list[Unplaced]

    @property
    def all(self) -> list[Said]:
        return [*self.said, *(not_placed(each, whole=not self.said) for each in self.lost)]


def _called(raw: Iterable[Any]) -> _Called:
    calls: list[Call] = []
    results: list[Said] = []
    lost: list[Unplaced] = []
    for each in raw:
        call = call_in(each)
        if call is None and _is_empty(each):
            continue
        if call is None:
            lost.append(Unplaced("a tool call without a name", (), each, is_broken_call=True))
            continue
        calls.append(call)
        results += _beside(each, call)
        lost += unplaced_in_call(each, call)
    return _Called([Said("assistant", calls=tuple(calls)), *results] if calls else [], lost)


def _is_empty(raw: Any) -> bool:
    """Whether a call has an empty name and nothing that is given to it, as some servers write for none."""
    call = object_at(object_of(raw), "function") or object_of(raw)
    return call.get("name") == "" and not any(each for key, each in call.items() if key not in ("type", "id"))


def _beside(raw: Any, call: Call) -> Iterator[Said]:
    if found := outcome_beside(raw):
        value, failed = found
        yield Said("tool", value=value, id=call.id, name=call.name, is_error=failed, is_beside=True)


def _with_citations(said: list[Said], parts: Iterable[Any]) -> list[Said]:
    """With the passages that texts cite in the latest result of the message: a search may have given its
    pages sealed. Without such a result, they are one."""
    cited = passages_in(parts)
    if not cited:
        return said
    at = next((n for n in reversed(range(len(said))) if isinstance(said[n].value, list)), None)
    if at is None:
        return [Said("tool", value=cited, is_passage=True), *said]
    return [each._replace(value=[*each.value, *cited]) if n == at else each for n, each in enumerate(said)]


def _parts(role: Role, parts: Iterable[Any]) -> Iterator[Said]:
    """Blocks of content: texts and calls that stand together are one reply, up to a result."""
    reply = _Reply(role)
    lost: list[Unplaced] = []
    for part in parts:
        if (result := _result_part(part)) is not None:
            yield from reply.said(even_blank=False)
            reply = _Reply(role)
            yield result
            lost += _unread_in_result(part)
        elif (raw := _call_part(part)) is None:
            if reply.results:
                yield from reply.said()
                reply = _Reply(role)
            reply.say(part)
            lost += unplaced_in_part(part)
        elif role != "assistant":
            lost.append(nobodys(part, f"a call in a message of the {role}"))
        else:
            called = _called([raw])
            reply.call(called.said)
            lost += [*called.lost, *_unread_beside_call(part, raw)]
    yield from reply.said()
    yield from map(not_placed, lost)


def _unread_beside_call(part: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[Unplaced]:
    """What stands in a part beside its call, where that is an object within."""
    if _CODE in part or _SERVED in part or any(raw is part.get(key) for key in _CALL_PARTS):
        yield from unplaced_fields(part, _OF_CALL_PARTS, of="a part with a call")


class _Reply:
    """Texts and calls that stand together, the calls with the results that stand beside them."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._texts: list[str] = []
        self._calls: list[Call] = []
        self.results: list[Said] = []
        self._is_read = self._is_unread = self._is_bare = False

    def call(self, called: Iterable[Said]) -> None:
        for said in called:
            self._calls += said.calls
            self.results += [said] if said.role == "tool" else []

    def say(self, part: Any) -> None:
        """Google writes one text in pieces that have no type, and joins them without anything between."""
        was_bare, self._is_bare = self._is_bare, isinstance(part, dict) and "type" not in part
        text = text_in(part)
        if text is None:
            text = self._stand_in(word(part, "type"))
        elif text.strip():
            self._is_read = True
        if was_bare and self._is_bare:
            self._texts[-1] += text
        else:
            self._texts.append(text)

    def _stand_in(self, kind: str) -> str:
        """That something was there, a picture or a file, is part of what was said."""
        if is_media(kind):
            self._is_read = True
        else:
            self._is_unread = True
        return f"[{kind or 'part'}]"

    def said(self, *, even_blank: bool = True) -> Iterator[Said]:
        if self._calls or "".join(self._texts).strip() or (self._texts and even_blank):
            is_unread = self._is_unread and not (self._is_read or self._calls)
            yield Said(self._role, joined(self._texts), tuple(self._calls), is_unread=is_unread)
            yield from self.results


_CALL_PARTS = ("functionCall", "function_call", "toolUse", "toolInvocation")
_CODE = "executableCode"
"""What Google's own interpreter runs: a call of a tool of the provider's."""
_SERVED = "toolCall"
"""Any other call of such a tool."""
_OF_CALL_PARTS = frozenset((*_CALL_PARTS, _CODE, _SERVED))


def _call_part(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, dict):
        return None
    kind = word(part, "type")
    if kind.startswith(("tool-", "dynamic-tool")) and "state" in part:
        return {"toolName": kind.removeprefix("tool-"), **part}
    if is_call_kind(kind):
        return cast(dict[str, Any], part["tool_call"]) if isinstance(part.get("tool_call"), dict) else part
    for key in _CALL_PARTS:
        if isinstance(part.get(key), dict):
            return cast(dict[str, Any], part[key])
    if isinstance(served := part.get(_SERVED), dict) and (name := word(served, "toolType")):
        return {"type": "server_tool_use", "name": name.lower(), **served, "input": served.get("args", {})}
    if isinstance(code := part.get(_CODE), dict):
        return {"type": "server_tool_use", "name": "code_execution", "input": code}
    return None


def _result_part(part: Any) -> Said | None:
    if not isinstance(part, dict):
        return None
    kind = word(part, "type")
    if kind.endswith(_RESULT_PARTS) and "state" not in part:
        # OpenTelemetry's parts have the id of their call as their own.
        named = {"call_id": part.get("id")} if kind.endswith("response") else {}
        failed = {"is_error": True} if kind == "tool-error" else {}
        return result_said({**named, **part, **failed}, given_of(_GIVEN_BACK, part))
    for key in _WRAPPINGS:
        if isinstance(inner := part.get(key), dict):
            return result_said(
                {"call_id": inner.get("id"), **inner}, inner.get("response", bare(inner.get("content")))
            )
    if isinstance(inner := part.get("codeExecutionResult"), dict):
        failed = {"is_error": word(inner, "outcome").endswith(("FAILED", "EXCEEDED"))}
        return result_said({"name": "code_execution", **failed}, inner.get("output"))
    return None


_RESULT_PARTS = ("tool_result", "tool-result", "tool-error", "tool_call_response", "tool_response")
_GIVEN_BACK = ("content", "output", "result", "tool_result", "response", "outputs")
_WRAPPINGS = ("functionResponse", "function_response", "toolResult", "toolResponse")
_OF_RESULTS = frozenset(
    (
        *(
            *_GIVEN_BACK,
            *FLAGS,
            *CALL_FIELDS,
            *_WRAPPINGS,
        ),
        *("codeExecutionResult", "items", "parts", "text", "data"),
        *("artifact", "artifacts", "exception", "structuredContent", "structured_content", ADDITIONAL),
    )
)
"""What belongs to a result: whatever a tool gave back is a value, and holds no call of the agent's."""
_ASIDE = ("artifact", "artifacts")
_NOTHING: tuple[Any, ...] = (None, "", [])


def _unread_in_result(part: Mapping[str, Any], of: str = "a result") -> Iterator[Unplaced]:
    inside = (part[key] for key in _WRAPPINGS if isinstance(part.get(key), dict))
    for each in (part, *inside):
        yield from unplaced_fields(each, _OF_RESULTS, of=of)
        yield from _calls_in_result(each)


def _calls_in_result(fields: Mapping[str, Any]) -> Iterator[Unplaced]:
    """What a tool gave back is a value, whatever is in it: a call is what stands among its parts as one. What
    stands beside it for the program may be what another agent did."""
    for key, value in fields.items():
        if key in _ASIDE:
            yield from unplaced_calls(value, f"'{key}' of a result", key, is_one=is_typed_call)
        elif key not in GIVEN:
            for part in value if isinstance(value, list) else (value,):
                if is_typed_call(part):
                    yield nobodys(part, "a call in a result")._replace(calls=(part,))


def _tool_message(message: dict[str, Any]) -> Iterator[Said]:
    _, content = _content(message)
    if content in _NOTHING:  # then the result may stand beside it
        content = next((message[key] for key in _GIVEN_BACK if message.get(key) not in _NOTHING), content)
    is_passage = word(message, "type") == PASSAGES
    yield from _results_in(message, content) or [
        result_said(message, content)._replace(is_passage=is_passage)
    ]
    yield from map(not_placed, _calls_in_result(message))
    yield from map(not_placed, unplaced_fields(message, _OF_TOOLS, of="a message of a tool"))


_OF_TOOLS = frozenset((*_OF_RESULTS, *CONTENTS, "role"))


def _results_in(message: Mapping[str, Any], content: Any) -> list[Said]:
    """The results that a message of a tool has as parts, and what of its other parts nobody could place."""
    if not isinstance(content, list):
        return []
    named = {key: message[key] for key in (*RESULT_IDS, *FLAGS) if key in message}
    parts = [{**named, **part} if isinstance(part, dict) else part for part in content]
    results = [_result_part(part) for part in parts]
    if not any(results):
        return []
    lost = [
        unplaced
        for part, result in zip(parts, results, strict=True)
        for unplaced in (unplaced_in_part(part) if result is None else _unread_in_result(part))
    ]
    return [*filter(None, results), *map(not_placed, lost)]


_KINDS: dict[type, str] = {
    **{type(None): "null", str: "a text", bool: "a truth value", int: "a number", float: "a number"},
    **{list: "a list", dict: "an object"},
}


def kind_of(value: Any) -> str:
    """What kind of JSON a value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)
