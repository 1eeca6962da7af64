"""Things that results describe: each with its names and the fields that stand in its object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agenteval.core.expressions import expression
from agenteval.scoring.detectors.facts import Fact, Kind, core_of, facts_in

_ID_KEY = expression(r"(?:.*(?:_|[a-z](?=I))|)(?:id|Id|ID|number|Number|no|code|sku|ref|reference|key)\Z")
_NAME_KEY = expression(r"(?:.*_)?(?:name|title|label|subject)\Z", re.IGNORECASE)
_STATUS_KEY = expression(r"(?:.*_)?(?:status|[a-z]*Status|state)\Z", re.IGNORECASE)
_SHORTEST_STATUS = 4
_MOST_LEAVES = 5_000
_SHORTEST_NAME, _LONGEST_NAME = 3, 60
_LONGEST_STATUS = 30


class Leaf(NamedTuple):
    """A value of a thing: the words of the keys that lead to it from the thing's object, and the facts
    that it states. ``status``: its text, where the key says that it is one."""

    words: frozenset[str]
    key: str
    text: str
    facts: tuple[Fact, ...]
    status: str = ""


class Thing(NamedTuple):
    """``name`` as texts call it, in small letters."""

    name: str
    leaves: tuple[Leaf, ...]


def things_in(data: Any, asked_for: str = "") -> Iterator[Thing]:
    """The things of a result: each object with an identifier or a name, by each of the two; one that has
    neither by what was ``asked_for``."""
    count = 0
    pending: list[tuple[Any, str]] = [(data, "")]
    while pending:
        value, named = pending.pop()
        if isinstance(value, list):
            pending.extend((item, "") for item in value)
            continue
        if not isinstance(value, Mapping):
            continue
        names = tuple(_names_of(value, named))
        if not names and value is data and _SHORTEST_NAME <= len(asked_for) <= _LONGEST_NAME:
            names = (asked_for.lower(),)
        leaves: list[Leaf] = []
        inner: list[tuple[Any, str]] = []
        for words, key, leaf in _leaf_values(value, frozenset(), inner):
            leaves.append(_leaf(words, key, leaf))
        count += len(leaves)
        if count > _MOST_LEAVES:
            return
        for name in names:
            yield Thing(name, tuple(leaves))
        pending.extend(inner)


def _names_of(value: Mapping[str, Any], named: str) -> Iterator[str]:
    """The first identifier and the first name of an object, or the key that it stands under; of one with
    neither its first text."""
    identifier = name = first = ""
    for key, item in value.items():
        if not identifier and _ID_KEY.match(key) and isinstance(item, str | int) and core_of(str(item)):
            identifier = str(item).lower()
        elif isinstance(item, str) and _SHORTEST_NAME <= len(item) <= _LONGEST_NAME:
            if not name and _NAME_KEY.fullmatch(key):
                name = item.lower()
            first = first or (item.lower() if item[0].isalpha() else "")
    if not identifier and named and core_of(named):
        identifier = named.lower()
    yield from filter(None, (identifier, name or (first if not identifier else "")))


def _leaf_values(
    value: Mapping[str, Any], above: frozenset[str], inner: list[tuple[Any, str]], depth: int = 0
) -> Iterator[tuple[frozenset[str], str, Any]]:
    """The values of an object and of the nameless objects in it; things of their own go to ``inner``."""
    for key, item in value.items():
        if isinstance(item, list):
            inner.append((item, ""))
        elif not isinstance(item, Mapping):
            yield above | words_of_key(key), key, item
        elif depth > 3 or core_of(key) or _has_identity(item):
            inner.append((item, key))
        else:
            yield from _leaf_values(item, above | words_of_key(key), inner, depth + 1)


def _has_identity(value: Mapping[str, Any]) -> bool:
    """Whether an object in another is a thing by itself, and not a part of that."""
    return any(
        isinstance(item, str | int)
        and ((_ID_KEY.match(key) and core_of(str(item))) or _NAME_KEY.fullmatch(key))
        for key, item in value.items()
    )


def _leaf(words: frozenset[str], key: str, value: Any) -> Leaf:
    text = "" if value is None else str(value)
    is_status = (
        isinstance(value, str)
        and _STATUS_KEY.fullmatch(key)
        and _SHORTEST_STATUS <= len(text) <= _LONGEST_STATUS
    )
    facts = () if isinstance(value, bool) or len(text) > 200 else tuple(facts_in(text))
    return Leaf(words, key, text, facts, plain_words(text) if is_status else "")


_CAMEL = expression(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z]+")


def words_of_key(key: str) -> frozenset[str]:
    """``unitPrice`` as ``{"unit", "price"}``, in the singular."""
    return frozenset(_singular(part.lower()) for part in _CAMEL.split(key[:100]) if part)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def words_of_label(text: str) -> frozenset[str]:
    return frozenset(_singular(word) for word in re.findall(r"[a-z]+", text.lower()))


def plain_words(text: str) -> str:
    """``Not_Delivered`` as ``not delivered``."""
    return " ".join(re.findall(r"[a-z]+", text.replace("_", " ").lower()))


def compares(leaf: Fact, told: Fact) -> bool:
    """Whether two facts are of one kind: an amount is told of a bare number."""
    if told.kind is Kind.AMOUNT:
        return leaf.kind in (Kind.AMOUNT, Kind.NUMBER)
    return leaf.kind is told.kind
