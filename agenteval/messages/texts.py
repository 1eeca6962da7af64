"""Reads the texts in the content parts of messages, in all known formats. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agenteval.messages.field_shapes import (
    ANYTHING,
    CONTROL,
    DEFINITIONS,
    MEDIA,
    SOURCES,
    TEXT_OBJECT,
    THOUGHTS,
    FieldShape,
    holds_objects,
)
from agenteval.messages.json_fields import first_text, objects_of
from agenteval.messages.unplaced_entries import Unplaced, make_unplaced, unplaced_fields

_SILENT_STEPS = frozenset((
    "step-start", "mcp_list_tools", "mcp_approval_response", "compaction", "tool_search_output",
))  # fmt: skip
_THOUGHTS = frozenset((
    "reasoning", "thinking", "redacted_thinking", "reasoning.text", "reasoning.summary",
    "reasoning.encrypted", "reasoning_text", "reasoning_summary", "reasoning_content", "thought", "thoughts",
    "thinking_delta", "thinking_text", "reasoning-text",
))  # fmt: skip
_TEXTS = frozenset(("text", "input_text", "output_text", "summary_text"))
_CALL_FREE_KINDS = frozenset((
    "refusal", "source", "source-url", "reference", "citation", "citations", "search_result", "guard_content",
    "cache_point", "container_upload", "step-finish", "usage", "error", "markdown", "fallback",
    "tool_addition",
))  # fmt: skip
"""Types of parts that cannot contain a call, in addition to texts, media and thoughts."""
_UNTYPED_SHAPES: Mapping[str, FieldShape] = {
    **dict.fromkeys(("text", "refusal"), TEXT_OBJECT),
    **dict.fromkeys(("image", "document", "video", "audio", "file"), MEDIA),
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), MEDIA),
    **dict.fromkeys(("thought", "reasoning", "reasoningContent"), THOUGHTS),
    **dict.fromkeys(("thoughtSignature", "thought_signature", "cachePoint"), CONTROL),
    **dict.fromkeys(("citationsContent", "searchResult"), SOURCES),
    "guardContent": TEXT_OBJECT,
    "json": ANYTHING,
}
"""The fields that identify parts without a type (in Google's and Bedrock's formats), with their shapes."""
_PART_SHAPES: Mapping[str, FieldShape] = {
    "text": TEXT_OBJECT,
    "refusal": TEXT_OBJECT,
    "value": TEXT_OBJECT,
    "content": SOURCES,
}
_FALLBACK_SHAPES = dict.fromkeys(("from", "to", "tool"), CONTROL)
_THOUGHT_SHAPES = dict.fromkeys(("content", "text", "value", "data"), THOUGHTS)
_MEDIA_SHAPES = dict.fromkeys(("content", "data", "url", "value", "source", "text"), MEDIA)
_STEP_SHAPES: Mapping[str, FieldShape] = {"tools": DEFINITIONS, "approval_request": ANYTHING}
_MEDIA_PREFIXES = ("image", "audio", "video", "file", "document", "media", "blob", "uri")
"""Prefixes of words in the names of part types that are not expected to contain text."""
_MEDIA_PARTS = frozenset((
    "image", "audio", "video", "file", "document", "media", "blob", "uri", "data", "hosted_file", "image_url",
    "audio_url", "video_url", "file_url", "document_url", "image_file", "file_id", "input_image",
    "input_audio", "input_video", "input_file", "output_image", "output_audio", "image-url", "image-data",
    "image-file-id", "file-url", "file-data", "file-id", "inline_data", "file_data", "resource",
    "resource_link", "multimodal",
))  # fmt: skip
_TEXT_KEYS = ("text", "refusal", "content", "value")
_MEDIA_TEXT_KEYS = ("text", "refusal", "transcript")


def is_silent_kind(kind: str) -> bool:
    """Check whether the content of an item or part of this type is never shown to anyone."""
    return kind in _SILENT_STEPS or kind.startswith(("reasoning", "redacted_thinking", "thinking", "thought"))


@lru_cache(maxsize=256)
def is_call_free_kind(kind: str) -> bool:
    """Check whether parts of this type are known to contain no calls."""
    kind = kind.lower()
    return any(kind in each for each in (_TEXTS, _THOUGHTS, _SILENT_STEPS, _MEDIA_PARTS, _CALL_FREE_KINDS))


def unplaced_in_part(part: Any) -> Iterator[Unplaced]:
    """Yield the content that may contain calls in a part that is neither a call nor a result."""
    if not isinstance(part, dict):
        if holds_objects(part):
            yield make_unplaced(part, "a part that is not an object")
        return
    kind = first_text(part, "type")
    if kind and is_call_free_kind(kind):
        yield from unplaced_fields(part, (), owner=f"a part of type '{kind}'", shapes=_shapes_of(kind, part))
    elif kind:
        yield make_unplaced(part, f"a part of unknown type '{kind[:40]}'")
    elif not _UNTYPED_SHAPES.keys().isdisjoint(part):
        yield from unplaced_fields(part, (), owner="a part", shapes=_UNTYPED_SHAPES)
    elif part:
        yield make_unplaced(part, "a part of unknown type")


def _shapes_of(kind: str, part: Mapping[str, Any]) -> Mapping[str, FieldShape]:
    lowered = kind.lower()
    if lowered in _SILENT_STEPS:
        return _STEP_SHAPES
    if is_silent_kind(lowered):
        return {**_THOUGHT_SHAPES, kind: THOUGHTS}
    if lowered in _MEDIA_PARTS:
        return {**_MEDIA_SHAPES, **{key: MEDIA for key in part if is_media_kind(key)}}
    return {**_PART_SHAPES, **_FALLBACK_SHAPES, kind: TEXT_OBJECT if lowered in _TEXTS else SOURCES}


def text_in(part: Any) -> str | None:
    """Return the text of a part, or ``None`` if no text could be read."""
    match part:
        case str():
            return part
        case None:
            return ""
        case dict():
            return _text_in_object(part)
    return json.dumps(part, ensure_ascii=False)


def _text_in_object(part: Mapping[str, Any]) -> str | None:
    kind = first_text(part, "type")
    if not part or is_silent_kind(kind) or part.get("thought") is True:  # Google's mark of a thought
        return ""
    texts = (_text_at(part.get(key)) for key in _text_keys_of(kind))
    found = next((text for text in texts if text is not None), None)
    if found is None and not kind and not _UNTYPED_SHAPES.keys().isdisjoint(part):
        return json.dumps(part, ensure_ascii=False)
    return "" if kind in _TEXTS and part.get("text", kind) is None else found


def _text_keys_of(kind: str) -> tuple[str, ...]:
    """Return the keys that contain the text in a part of this type."""
    if not kind:
        return _TEXT_KEYS[:2]
    return _MEDIA_TEXT_KEYS if is_media_kind(kind) else _TEXT_KEYS


def _text_at(value: Any) -> str | None:
    if isinstance(value, dict):  # the Assistants API: {"text": {"value": …}}
        value = value.get("value", value.get("text"))
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, str) or is_text_part(each) for each in value)
    ):
        return join_texts(each if isinstance(each, str) else each["text"] for each in value)
    return value if isinstance(value, str) else None


def is_media_kind(kind: str) -> bool:
    """Check whether parts of this type are media, such as pictures and files."""
    return any(each.startswith(_MEDIA_PREFIXES) for each in re.split(r"[^a-z]", kind.lower()))


def is_text_part(part: Any) -> bool:
    """Check whether a part consists only of text."""
    return (
        isinstance(part, Mapping) and first_text(part, "type") in _TEXTS and isinstance(part.get("text"), str)
    )


_CLOSING = frozenset(".,;:!?)]}%…'\"”’»-")
_OPENING = frozenset("-/([{_$€#@'\"“‘«")


def join_texts(texts: Iterable[str]) -> str:
    """Join texts into a single text in which adjacent words remain separate. Providers split texts without
    regard to white space."""
    joined = ""
    for text in filter(None, texts):
        needs_break = joined and not (joined[-1].isspace() or joined[-1] in _OPENING)
        joined += f"\n{text}" if needs_break and not (text[0].isspace() or text[0] in _CLOSING) else text
    return joined


def passages_in(parts: Iterable[Any]) -> list[dict[str, str]]:
    """Return the source passages (citations) cited by texts. Each passage has the form of a result value."""
    return [
        {"cited_text": each["cited_text"]}
        for part in parts
        if isinstance(part, dict)
        for key in ("citations", "annotations")
        for each in objects_of(part.get(key))
        if isinstance(each.get("cited_text"), str)
    ]
