"""Texts of a message that stand where nobody looks for them: what was said is then not known. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenteval.core.expressions import expression
from agenteval.messages.calls import PLACES
from agenteval.messages.json_fields import object_at, word
from agenteval.messages.texts import is_silent

CONTENTS = ("content", "parts", "text")
"""Where a message may have what it says; the first that holds something counts."""
_SAID = expression(
    r"text|answer|respon[sd]|repl(?:y|ies)|output|completion|transcri|speech|utterance|body|html|markdown"
    r"|contents?|messages?|display|segments|chunks|blocks|items",
    re.IGNORECASE,
)
"""What is in the name of a key beside an empty content if an answer stands there."""
_ABOUT = expression(
    r"(?:^|_)(?:id|ids|uuid|guid|key|role|type|kind|name|title|model|engine|provider|vendor|version|object|reason"
    r"|status|state|error|errors|code|timestamp|date|time|datetime|at|on|created|updated|usage|tokens?|cost|price"
    r"|latency|duration|ms|seconds|count|size|length|index|order|turn|step|level|format|mode|lang|language|locale|voice|url|uri|path|hash"
    r"|fingerprint|signature|metadata|meta|extra|kwargs|config|settings|options|tags?|labels?|flags?|rating|score"
    r"|feedback|comments?|notes?|annotations?|citations?|sources?|references?|channel|recipient|user|author|sender"
    r"|speaker|from|to|agent|avatar|icon|intent|sentiment|emotion|category|topic|tier|logprobs|schema|by|agents?"
    r"|refusal|audio|prompt|system|input|context|original|request|query|question|previous|analysis|rationale"
    r"|thoughts?|plan|scratchpad|chain_of_thought|cot|debug|logs?|encrypted_content)$"
    r"|^(?:error|status|user|prompt|system|input|context|original|request|query|question|previous|reason|think"
    r"|thought|stop|finish|scratch|raw_prompt|tool|function)(?:_|$)",
    re.IGNORECASE,
)
"""Names of what is told about a message, and of what was given to the agent or thought by it."""
_HUMPS = expression(r"(?<=[a-z0-9])(?=[A-Z])")
_INSIDE = ("text", "content", "transcript", "value")
_DEEPEST = 3


def spoken_beside(message: Mapping[str, Any]) -> str:
    """What stands for a content that is empty: why it was refused, or the words of a recording."""
    return word(message, "refusal") or word(object_at(message, "audio"), "transcript")


def text_elsewhere(message: Mapping[str, Any]) -> str:
    """The key of a text in a message without any that is read; empty if there is none. Beside a content that
    is there and empty, and of one word, it is one whose name tells of an answer."""
    has_place = not message.keys().isdisjoint(CONTENTS)
    for key, value in message.items():
        if key in CONTENTS or not _has_text(value, _DEEPEST):
            continue
        name = _HUMPS.sub("_", key)
        if is_silent(name.lower()) or _ABOUT.search(name) or key in PLACES:
            continue
        if _SAID.search(name) or not (has_place or _is_word(value)):
            return key
    return ""


def _is_word(value: Any) -> bool:
    """Whether a value is one word, which mostly tells of a kind."""
    return isinstance(value, str) and len(value.split()) < 2


def _has_text(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return any(map(str.isalnum, value))
    if isinstance(value, list):
        return depth > 0 and any(_has_text(each, depth - 1) for each in value[:20])
    if isinstance(value, dict) and depth > 0:
        return any(_has_text(value.get(key), depth - 1) for key in _INSIDE)
    return False
