"""What an answer tells: its text, in which objects of JSON are written out as lines of labels and values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.expressions import expression

_OPENS = expression(r"(?:\A|\n)[ \t]*(?:```\w*\s*)?(?=[{\[])")
_MOST_ATTEMPTS = 20
_decoder = json.JSONDecoder(strict=False)


def decoded_answer(answer: str) -> str:
    """``answer`` with the JSON in it decoded: an answer that is an object tells its values, and its keys are
    labels. What cannot be decoded (it is cut) stays, with its escaped line breaks as line breaks."""
    if "{" not in answer and "[" not in answer:
        return answer
    parts: list[str] = []
    at = 0
    for attempt, opened in enumerate(_OPENS.finditer(answer)):
        if opened.end() < at:
            continue
        if attempt >= _MOST_ATTEMPTS:
            break
        try:
            value, end = _decoder.raw_decode(answer, opened.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list) and value:
            parts += [answer[at : opened.start()], "\n".join(_lines(value))]
            at = end
    rest = answer[at:]
    if rest.lstrip()[:1] == "{":
        rest = rest.replace("\\n", "\n").replace('\\"', '"')
    return "\n".join([*parts, rest]) if parts else rest


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _labelled(str(key), item, depth)
        yield ""
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, depth + 1) if depth < _DEEPEST else ()
    elif value is not None and not isinstance(value, bool):
        yield str(value)


_DEEPEST = 40


def _labelled(key: str, item: Any, depth: int) -> Iterator[str]:
    label = " ".join(re.findall(r"[^\W\d_]+", _CAMEL.sub(" ", key)))
    if isinstance(item, Mapping | list):
        yield key if _NAMES_A_THING.search(key) else label
        if depth < _DEEPEST:
            yield from _lines(item, depth + 1)
    elif item is not None and not isinstance(item, bool):
        yield f"{label}: {item}"


_CAMEL = expression(r"(?<=[a-z])(?=[A-Z])")
_NAMES_A_THING = expression(r"\d")
