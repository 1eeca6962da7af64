"""Finds texts in message fields that no parser supports. If a message has such texts, its content is unknown.
Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenteval.messages.calls import CALL_KEYS
from agenteval.messages.json_fields import first_text, object_at
from agenteval.messages.texts import is_silent_kind

CONTENT_KEYS = ("content", "parts", "text")
"""Keys for the content of a message. The first value that is not empty is used."""
_ANSWER_KEY_PATTERN = re.compile(
    r"text|answer|respon[sd]|repl(?:y|ies)|output|completion|transcri|speech|utterance|body|html|markdown"
    r"|contents?|messages?|display|segments|chunks|blocks|items",
    re.IGNORECASE,
)
"""Matches keys that contain an answer if the content next to them is empty."""
_METADATA_SUFFIXES = frozenset((
    "id", "ids", "uuid", "guid", "key", "role", "type", "kind", "name", "title", "model", "engine",
    "provider", "vendor", "version", "object", "reason", "status", "state", "error", "errors", "code",
    "timestamp", "date", "time", "datetime", "at", "on", "created", "updated", "usage", "token", "tokens",
    "cost", "price", "latency", "duration", "ms", "seconds", "count", "size", "length", "index", "order",
    "turn", "step", "level", "format", "mode", "lang", "language", "locale", "voice", "url", "uri",
    "path", "hash", "fingerprint", "signature", "metadata", "meta", "extra", "kwargs", "config",
    "settings", "options", "tag", "tags", "label", "labels", "flag", "flags", "rating", "score",
    "feedback", "comment", "comments", "note", "notes", "annotation", "annotations", "citation",
    "citations", "source", "sources", "reference", "references", "channel", "recipient", "user", "author",
    "sender", "speaker", "from", "to", "agent", "avatar", "icon", "intent", "sentiment", "emotion",
    "category", "topic", "tier", "logprobs", "schema", "by", "agents", "refusal", "audio", "prompt",
    "system", "input", "context", "original", "request", "query", "question", "previous", "analysis",
    "rationale", "thought", "thoughts", "plan", "scratchpad", "chain_of_thought", "cot", "debug", "log",
    "logs", "encrypted_content",
))  # fmt: skip
_METADATA_PREFIXES = frozenset((
    "error", "status", "user", "prompt", "system", "input", "context", "original", "request", "query",
    "question", "previous", "reason", "think", "thought", "stop", "finish", "scratch", "raw_prompt",
    "tool", "function",
))  # fmt: skip
"""First words of keys that describe a message, or that contain the agent's input or thoughts."""
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TEXT_KEYS = ("text", "content", "transcript", "value")
_MAX_DEPTH = 3


def find_content_substitute(message: Mapping[str, Any]) -> str:
    """Return the text that replaces empty content: a refusal, or the transcript of a recording."""
    return first_text(message, "refusal") or first_text(object_at(message, "audio"), "transcript")


def find_nested_text_key(message: Mapping[str, Any]) -> str:
    """Return the key of a string in a message that has no other text, or an empty string if there is no such
    key.

    If the content of the message is empty, or the string is a single word, the key is returned only if its
    name suggests an answer."""
    has_place = not message.keys().isdisjoint(CONTENT_KEYS)
    for key, value in message.items():
        if key in CONTENT_KEYS or not _has_text(value, _MAX_DEPTH):
            continue
        name = _CAMEL_CASE_BOUNDARY.sub("_", key)
        if is_silent_kind(name.lower()) or _is_metadata_name(name.lower()) or key in CALL_KEYS:
            continue
        if _ANSWER_KEY_PATTERN.search(name) or not (has_place or _is_single_word(value)):
            return key
    return ""


def _is_metadata_name(name: str) -> bool:
    words = name.split("_")
    starts = ("_".join(words[:count]) for count in (1, 2))
    ends = ("_".join(words[-count:]) for count in (1, 2, 3))
    return not (_METADATA_PREFIXES.isdisjoint(starts) and _METADATA_SUFFIXES.isdisjoint(ends))


def _is_single_word(value: Any) -> bool:
    """Check whether a value is a single word, which is usually a type or a name."""
    return isinstance(value, str) and len(value.split()) < 2


def _has_text(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return any(map(str.isalnum, value))
    if isinstance(value, list):
        return depth > 0 and any(_has_text(each, depth - 1) for each in value[:20])
    if isinstance(value, dict) and depth > 0:
        return any(_has_text(value.get(key), depth - 1) for key in _TEXT_KEYS)
    return False
