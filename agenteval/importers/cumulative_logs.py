"""Logs of one conversation that grows: each request holds what was said before it, and its answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.errors import AuthorError
from agenteval.importers.exchanges import find_logged_messages
from agenteval.messages.json_fields import list_of, object_of
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import UNPLACED, ParsedMessage

INTERACTIONS = "interactions"
"""Where a cassette, what a recorder of tests writes, keeps its requests with their responses."""


class ComparableMessage(NamedTuple):
    """What was said, without what differs from one log of it to the next: ids, costs."""

    role: str
    text: str
    calls: tuple[Any, ...]
    value: Any


ComparableMessages: TypeAlias = Sequence[ComparableMessage]


def comparable_messages(messages: Iterable[Any], *, results: bool = True) -> list[ComparableMessage]:
    """The messages as words that can be compared; without ``results``, those of the tools are left out."""
    parsed = parse_messages(messages)
    left_out = {UNPLACED} if results else {UNPLACED, "tool"}
    return [_to_comparable(each) for each in parsed if each.role not in left_out]


def _to_comparable(message: ParsedMessage) -> ComparableMessage:
    calls = tuple((call.name, call.raw_args if call.args is None else call.args) for call in message.calls)
    return ComparableMessage(message.role, (message.text or "").strip(), calls, message.value)


def is_continued_by(one: ComparableMessages, other: ComparableMessages) -> bool:
    """Whether ``other`` holds all of ``one``, from the beginning, and more. Its last text may have grown:
    some frameworks write the result of a tool below what the agent said."""
    if not one or len(one) >= len(other) or list(one[:-1]) != list(other[: len(one) - 1]):
        return False
    last, same = one[-1], other[len(one) - 1]
    return same.text.startswith(last.text) and last._replace(text=same.text) == same


def is_cassette(value: Any) -> bool:
    """Whether a document is one of requests with their responses."""
    inside = list_of(object_of(value).get(INTERACTIONS))
    return bool(inside) and all(map(_is_interaction, inside))


def _is_interaction(value: Any) -> bool:
    return isinstance(value, dict) and "request" in value and "response" in value


def latest_interactions(interactions: Sequence[Any]) -> Iterator[int]:
    """The places of the requests that no later one goes on from. What went wrong, and what cannot be read,
    stands for itself."""
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
