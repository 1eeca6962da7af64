"""What names one thing among its like: which identifiers stand in a text, which a call was made with, and
whether two of them are of one kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.expressions import expression
from agenteval.core.tool_effects import words_of
from agenteval.scoring.detectors.verbs import word_set

_CODE = expression(r"\b(?=[A-Z0-9-]*[A-Z])(?=[A-Z0-9-]*\d)[A-Z0-9][A-Z0-9-]{3,}[A-Z0-9]\b")
_SHORT = expression(r"(?<![\w-])[A-Z]{1,6}-\d+(?![\w-])")
_HEX = expression(r"(?<![\w-])(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f]{2,}(?:-[0-9a-f]{2,})+(?![\w-])")
_THING_WORDS = (
    "account alarm appointment booking case complaint contract document event file invoice issue meeting "
    "message order parcel payment purchase refund reminder request reservation return shipment subscription "
    "task ticket transaction user"
)
_THINGS = tuple(_THING_WORDS.split())
_THING = rf"(?:{'|'.join(_THINGS)})s?"
_NUMBERED = expression(
    rf"\b{_THING} (?:(?:number|no\.?|nr\.?|id)[ :]*)?#?(?P<number>\d{{3,}})(?![\w.:/-]\w)", re.IGNORECASE
)
_DIGIT = expression(r"\d")
_WITH_DIGIT = expression(r"(?<![\w-])[\w-]*\d[\w-]*")
_LONGEST = 60
_SERIAL = expression(r"([A-Z]+-?)\d+")
_KEYS = word_set("id ids identifier number numbers no nr num ref reference code")


def ids_in(text: str) -> frozenset[str]:
    """The identifiers in ``text``: codes in capitals with a digit (``VA5SGQ``, ``B-1``), groups of
    hexadecimal digits (``593d-49e9``), and the number of a thing ("booking 2002")."""
    if not _DIGIT.search(text):
        return frozenset()
    words = _WITH_DIGIT.findall(text)
    joined = " ".join(words)
    found = {each[0] for pattern in (_CODE, _SHORT, _HEX) for each in pattern.finditer(joined)}
    if any(len(word) > 2 and word.isdigit() for word in words) and _names_thing(text):
        found.update(each["number"] for each in _NUMBERED.finditer(text))
    return frozenset(found)


def _names_thing(text: str) -> bool:
    """The quick look: most texts with a number speak of none of these."""
    small = text.lower()
    return any(map(small.__contains__, _THINGS))


def ids_of(arguments: Mapping[str, Any]) -> frozenset[str]:
    """The identifiers that are arguments of a call; a bare number is one where its name says so."""
    return frozenset(_values(arguments, "", 0))


def _values(value: Any, key: str, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and depth < 6:
        for name, item in value.items():
            yield from _values(item, str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < 6:
        for item in value:
            yield from _values(item, key, depth + 1)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value).strip().lstrip("#")
        if (text.isdigit() and words_of(key)[-1:] and words_of(key)[-1] in _KEYS) or (
            len(text) <= _LONGEST and text in ids_in(text)
        ):
            yield text


def numbers_of(arguments: Mapping[str, Any]) -> frozenset[str]:
    """The bare numbers that are arguments by the name of a thing: ``{"account": 4410}``."""
    found = (str(value).strip().lstrip("#") for key, value in arguments.items() if key.lower() in _THINGS)
    return frozenset(each for each in found if each.isdigit() and len(each) > 2)


def kind_of_id(identifier: str) -> str:
    """Equal for identifiers that are written alike: ``BKG-1001`` and ``BKG-7``, ``2001`` and ``2002``."""
    if serial := _SERIAL.fullmatch(identifier):
        return f"{serial[1]}#"
    if identifier.isdigit():
        return f"#{len(identifier)}"
    return "-".join(str(len(part)) for part in identifier.split("-"))


def others_of_its_kind(named: frozenset[str], called: frozenset[str]) -> frozenset[str]:
    """What of ``named`` is written like something in ``called`` and is not in it."""
    kinds = {kind_of_id(each) for each in called}
    return frozenset(each for each in named - called if kind_of_id(each) in kinds)
