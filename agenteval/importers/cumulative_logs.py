"""Detects cumulative logs, in which each request repeats all earlier messages of the same
conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.errors import AuthorError
from agenteval.importers.exchanges import find_logged_messages
from agenteval.messages.json_fields import list_of, object_of
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import UNPLACED, ParsedMessage

INTERACTIONS = "interactions"
"""The key under which a cassette (written by an HTTP recorder such as VCR) stores its requests and
responses."""


class ComparableMessage(NamedTuple):
    """A message without the fields that may differ between two logs of the same message, such as ids and
    costs."""

    role: str
    text: str
    calls: tuple[Any, ...]
    value: Any


ComparableMessages: TypeAlias = Sequence[ComparableMessage]


def comparable_messages(messages: Iterable[Any], *, results: bool = True) -> list[ComparableMessage]:
    """Return the messages in a form that can be compared. If ``results`` is false, tool messages
    are omitted."""
    parsed = parse_messages(messages)
    left_out = {UNPLACED} if results else {UNPLACED, "tool"}
    return [_to_comparable(each) for each in parsed if each.role not in left_out]


def _to_comparable(message: ParsedMessage) -> ComparableMessage:
    calls = tuple((call.name, call.raw_args if call.args is None else call.args) for call in message.calls)
    return ComparableMessage(message.role, (message.text or "").strip(), calls, message.value)


def is_continued_by(one: ComparableMessages, other: ComparableMessages) -> bool:
    """Check whether ``other`` begins with all messages in ``one`` and contains additional messages. The text
    of the last shared message may be longer in ``other``, because some frameworks append the result of a tool
    to the agent's text."""
    if not one or len(one) >= len(other) or list(one[:-1]) != list(other[: len(one) - 1]):
        return False
    last, same = one[-1], other[len(one) - 1]
    return same.text.startswith(last.text) and last._replace(text=same.text) == same


def is_cassette(value: Any) -> bool:
    """Check whether a document is a list of recorded requests and responses (a VCR cassette)."""
    inside = list_of(object_of(value).get(INTERACTIONS))
    return bool(inside) and all(map(_is_interaction, inside))


def _is_interaction(value: Any) -> bool:
    return isinstance(value, dict) and "request" in value and "response" in value


def latest_interactions(interactions: Sequence[Any]) -> Iterator[int]:
    """Yield the indexes of the interactions that are not continued by a later interaction. An interaction
    that failed or cannot be read is treated as not continued."""
    conversations = [_answered_messages(each) for each in interactions]
    for at, each in enumerate(conversations):
        if not any(is_continued_by(each, later) for later in conversations[at + 1 :]):
            yield at


def _answered_messages(interaction: Mapping[str, Any]) -> ComparableMessages:
    try:
        logged = find_logged_messages(interaction)
    except AuthorError:
        return ()
    if logged is None or logged.lost or not logged.response:
        return ()
    return comparable_messages(logged.messages)
