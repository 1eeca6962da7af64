"""Defines which fields are known to contain no calls. Pure.

These fields occur in many libraries; for each field, the shape of its value is defined. A name alone proves
nothing: an author who writes ``reasoning: [{"tool": "cancel"}]`` reports a call. A value fits a shape if
every object in the value fits. An object fits if it has one of the shape's ``marks``, if its type (when
present) is one of the shape's ``kinds``, and if it contains objects only below the shape's ``places``. For a
shape that allows anything, the only condition is that the value contains no call in a known form
(``calls_in``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

from agenteval.messages.json_fields import first_text, parse_json_container
from agenteval.messages.reported_usage import USAGE_KEYS

PLAIN_TYPES = (str, int, float, bool, type(None), bytes)


class FieldShape(NamedTuple):
    """The shape of a value that contains no calls."""

    marks: frozenset[str] | None
    """Keys that identify the objects of this shape. An object that contains text needs at least one of these
    keys. If ``None``, any value fits."""
    places: frozenset[str] | None = frozenset()
    """Keys below which additional objects of this shape may occur. If ``None``, they may occur below any
    key."""
    kinds: frozenset[str] | None = None
    """The types that the objects may have. A type that ends in ``*`` is a prefix. If ``None``, any type is
    allowed."""
    values: frozenset[str] = frozenset()
    """Keys with arbitrary values, such as the inputs and outputs of tools."""

    def fits(self, value: Any) -> bool:
        """Check whether a value contains only objects of this shape."""
        if self.marks is None:
            return not calls_in(value)
        level = [value]
        while level:
            item = level.pop()
            if isinstance(item, PLAIN_TYPES):
                continue
            if is_collection(item):
                level += item
                continue
            found = item if isinstance(item, Mapping) else public_fields(item)
            if not self._fits_object(found):
                return False
            level += [
                each
                for key, each in found.items()
                if key not in self.values and (key not in METADATA_KEYS or not _is_flat(each))
            ]
        return True

    def _fits_object(self, item: Mapping[str, Any]) -> bool:
        argument_keys = _ARGUMENT_KEY_SET.intersection(item).difference(self.places or (), self.values)
        if any(_may_be_arguments(item[key]) for key in argument_keys):
            return False
        if any(calls_in(item[key], is_typed_call) for key in self.values.intersection(item)):
            return False
        return (
            self._has_known_kind(item.get("type"))
            and self._has_mark(item)
            and self._nests_in_places_only(item)
        )

    def _has_known_kind(self, kind: Any) -> bool:
        if not isinstance(kind, str):
            return True
        return not is_call_kind(kind) and (self.kinds is None or _matches_kind(kind, self.kinds))

    def _has_mark(self, item: Mapping[str, Any]) -> bool:
        has_text = any(isinstance(each, str) for each in item.values())
        return not has_text or not item.keys().isdisjoint(self.marks or ())

    def _nests_in_places_only(self, item: Mapping[str, Any]) -> bool:
        if self.places is None:
            return True
        known = METADATA_KEYS.union(self.places, self.values)
        return not any(holds_objects(each) for key, each in item.items() if key not in known)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────

ARGUMENT_KEYS = (
    "arguments", "args", "input", "parameters", "action_input", "kwargs", "tool_input", "toolInput",
    "tool_args", "toolArgs", "tool_arguments", "tool_kwargs", "params", "rawInput",
)  # fmt: skip
"""Keys for the arguments in a call. The first key that is present is used."""
TOOL_NAME_KEYS = (
    "name", "toolName", "tool_name", "tool", "functionName", "function_name", "recipient_name", "action",
)  # fmt: skip
"""Keys for the tool's name in a call."""
CALL_ID_KEYS = ("call_id", "callId", "id", "toolCallId", "toolUseId", "tool_call_id", "tool_use_id")
_ARGUMENT_KEY_SET = frozenset(ARGUMENT_KEYS)
APPROVAL_REQUEST = "mcp_approval_request"
"""The type of an item that contains a call that is waiting for approval."""
_INNER_CALL_KEYS = (
    "function", "custom", "functionCall", "function_call", "toolUse", "toolInvocation", "toolCall",
    "tool_call",
)  # fmt: skip
"""Keys below which an object may contain a call."""
_DECLARABLE_KEYS = ("function", "custom")
"""The inner keys that are also used for tool declarations and tool choices."""
_NAMED_OBJECT_KEYS = ("action", "tool")
_DECLARATION_MARKS = frozenset(("description", "strict"))
_SCHEMA_KEYS = frozenset(("properties", "type", "$ref", "anyOf"))
_MAX_VALUES = 100_000


def is_call_kind(kind: str) -> bool:
    """Check whether parts and items of this type are calls by the agent."""
    return kind.endswith(("tool_use", "tool_call", "tool-call")) or kind == "function_call"


def is_typed_call(value: Any) -> bool:
    """Check whether an object is a call according to its type, or contains such a call below a key such as
    ``function``."""
    if not isinstance(value, Mapping):
        return False
    kind = first_text(value, "type", "part_kind")
    if is_call_kind(kind) or kind.endswith("_call") or kind == APPROVAL_REQUEST:
        return True
    return any(
        _has_tool_name(inner) and (key not in _DECLARABLE_KEYS or not _is_declaration(inner, value))
        for key in _INNER_CALL_KEYS
        if isinstance(inner := value.get(key), Mapping)
    )


def is_call(value: Any) -> bool:
    """Check whether an object is a tool call by an agent in a known format.

    Such an object has the type of a call, or a tool name with arguments."""
    if not isinstance(value, Mapping):
        return False
    has_arguments = any(_may_be_arguments(value[key]) for key in _ARGUMENT_KEY_SET.intersection(value))
    if is_typed_call(value) or (
        has_arguments and _has_tool_name(value) and not _is_declaration(value, value)
    ):
        return True
    return any(
        isinstance(inner := value.get(key), Mapping) and _has_tool_name(inner) for key in _NAMED_OBJECT_KEYS
    )


def calls_in(
    value: Any, is_match: Callable[[Any], bool] = is_call, *, without: Collection[str] = ()
) -> tuple[Any, ...]:
    """Return the tool calls found anywhere in a value.

    Calls inside other calls are omitted, as are calls below the keys in ``without``. A value with too many
    elements is itself returned as one call."""
    found: list[Any] = []
    level, seen = [value], set()
    for _ in range(_MAX_VALUES):
        if not level:
            return tuple(found)
        item = level.pop()
        if isinstance(item, PLAIN_TYPES) or id(item) in seen:
            continue
        seen.add(id(item))  # a library's object may contain itself
        inside = item if isinstance(item, Mapping) or is_collection(item) else public_fields(item)
        if isinstance(inside, Mapping) and is_match(inside):
            found.append(inside)
        else:
            keyed = inside.items() if isinstance(inside, Mapping) else (("", each) for each in inside)
            level += [each for key, each in keyed if key not in without]
    return (value,)


def _has_tool_name(value: Mapping[str, Any]) -> bool:
    return bool(first_text(value, *TOOL_NAME_KEYS))


def _is_declaration(value: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Check whether a tool is declared or chosen rather than called. The object then has a schema instead of
    arguments.

    A call in this format always has an id."""
    if not _ARGUMENT_KEY_SET.intersection(value) <= {"parameters"} or any(
        outer.get(key) for key in CALL_ID_KEYS
    ):
        return False
    if outer.get("type") in _DECLARABLE_KEYS or not _DECLARATION_MARKS.isdisjoint(value):
        return True
    schema = value.get("parameters")
    return isinstance(schema, Mapping) and not _SCHEMA_KEYS.isdisjoint(schema)


def _matches_kind(kind: str, kinds: Collection[str]) -> bool:
    return kind in kinds or any(each.endswith("*") and kind.startswith(each[:-1]) for each in kinds)


def _may_be_arguments(value: Any) -> bool:
    """Check whether a value may be the arguments of a call: an object, or an object encoded as text."""
    return not isinstance(value, int | float | None)


def _is_flat(value: Any) -> bool:
    if not isinstance(value, Mapping) or is_call(value):
        return False
    return not any(map(holds_objects, value.values()))


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def holds_objects(value: Any) -> bool:
    """Check whether a value is a non-empty object, or contains an object at any depth of nested lists."""
    level, is_inside = [value], False
    while level:
        item = level.pop()
        if isinstance(item, PLAIN_TYPES):
            continue
        if isinstance(item, Mapping):
            if item or is_inside:
                return True
        elif is_collection(item):
            level += item
            is_inside = True
        elif public_fields(item):
            return True
    return False


def is_collection(value: Any) -> bool:
    """Check whether a value is a list, tuple or set. A named tuple does not count as a collection."""
    return isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_asdict")


def public_fields(value: Any) -> dict[str, Any]:
    """Return the public fields of a library's object, keyed by name.

    The result is empty for plain values, functions and classes."""
    if isinstance(value, tuple):
        return dict(value._asdict()) if hasattr(value, "_asdict") else {}
    if isinstance(value, (*PLAIN_TYPES, list, set, frozenset, type, ModuleType)):
        return {}
    found = dict(getattr(value, "__dict__", {}))
    if is_dataclass(value):  # which may have slots
        found |= {each.name: getattr(value, each.name, None) for each in fields(value)}
    return {key: each for key, each in found.items() if not key.startswith("_") and each is not None}


# ── JSON in a text ───────────────────────────────────────────────────────────────────────────────

_QUOTED_STRING = r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*"|'[^'\\]*+(?:\\.[^'\\]*+)*')"""
_MESSAGE_START = re.compile(
    rf"[\s\[]*+\{{\s*(?:{_QUOTED_STRING}\s*:\s*(?:{_QUOTED_STRING}|[\w.+-]+)\s*,\s*)*[\"'](?:(?:role|type|content)[\"']"
    r"\s*:|(?:parts|tool_calls|toolCalls|function_call|functionCall|toolUse|contents|choices|candidates|messages?"
    r"|output)[\"']\s*:\s*[\[{])"
)
"""Matches the beginning of messages in JSON or Python notation: a key of a message, possibly preceded by
plain values."""


def is_broken_message(text: str) -> bool:
    """Check whether a string starts out as a JSON message but was cut off and therefore cannot be parsed.

    The string may be a message, a response, or a list of messages, responses or parts."""
    return (
        text.lstrip()[:1] in ("[", "{")
        and bool(_MESSAGE_START.match(text))
        and parse_json_container(text) is None
    )


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────

METADATA_KEYS = frozenset(
    ("metadata", "meta", "_meta", "extra", "extras", "extra_data", "additional_properties", "context")
)
"""Fields whose content authors choose freely. A mapping with plain values in such a field is not a call."""
_IDENTITY_KEYS = ("type", "kind", "id", "index", "name", "title")

NOTHING = FieldShape(frozenset(), frozenset())
"""The shape of a plain string or number. No object fits this shape."""
ANYTHING = FieldShape(None)
NUMBERS = FieldShape(
    frozenset(
        (
            *("modality", "ttl", "service_tier", "serviceTier", "model", "currency", "cost", "tokenCount"),
            *("payer", "latency", "trafficType", "traffic_type"),
            *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens"),
            *("inputTokens", "outputTokens", "promptTokens", "completionTokens", "totalTokens", "tokens"),
            *("promptTokenCount", "candidatesTokenCount", "totalTokenCount", "prompt_token_count"),
            *("total_token_count", "input_token_count", "output_token_count", "input", "output", "total"),
        )
    ),
    None,
)
"""The shape of token counts, times and costs."""
_THOUGHT_WORDS = (
    *("text", "thinking", "thought", "thoughts", "reasoning", "reasoning_content", "reasoning_details"),
    *("reasoningText", "reasoning_text", "reasoningContent", "thinking_blocks", "summary", "content"),
    *("value", "details"),
)
THOUGHTS = FieldShape(
    frozenset(
        (
            *_THOUGHT_WORDS,
            *("signature", "data", "encrypted_content", "redactedContent", "redacted_content", "effort"),
        )
    ),
    frozenset(_THOUGHT_WORDS),
    frozenset(
        (
            *("reasoning", "reasoning.text", "reasoning.summary", "reasoning.encrypted", "reasoning_text"),
            *("reasoning_summary", "thinking", "redacted_thinking", "thought", "text", "summary_text"),
            *("output_text", "encrypted", "summary", "model"),
        )
    ),
)
TOKENS = FieldShape(
    frozenset(("token", "tokens", "token_id", "tokenId", "logprob", "logProbability", "top_logprobs")),
    frozenset(
        (
            *("content", "refusal", "top_logprobs", "topCandidates", "top_candidates", "candidates"),
            *("chosenCandidates", "chosen_candidates"),
        )
    ),
)
_MEDIA_PLACES = (
    *("image", "audio", "video", "file", "document", "image_url", "imageUrl", "input_audio", "video_url"),
    *("file_data", "fileData", "inlineData", "inline_data", "source", "s3Location", "url", "data", "blob"),
)
MEDIA = FieldShape(
    frozenset(
        (
            *_MEDIA_PLACES,
            *("id", "uri", "fileUri", "file_uri", "file_id", "fileId", "name", "filename", "file_name"),
            *("path", "title", "bytes", "base64", "b64_json", "mime_type", "mimeType", "media_type"),
            *("type", "mediaType", "contentType", "content_type", "format", "transcript", "text", "detail"),
        )
    ),
    frozenset((*_MEDIA_PLACES, "content", "tools", "citations", "cache_control", "annotations")),
    frozenset(
        (
            *("text", "base64", "url", "content", "file*", "image*", "input_image", "input_file", "audio*"),
            *("input_audio", "video*", "document*", "media*", "blob*", "uri", "output_image", "pdf", "link"),
            *("code_interpreter", "ephemeral", "output_audio"),
        )
    ),
)
RATINGS = FieldShape(
    frozenset(
        (
            *("filtered", "severity", "detected", "category", "probability", "blocked", "blockReason"),
            *("block_reason", "blockReasonMessage", "block_reason_message", "reason", "explanation"),
            *("license", "URL", "id"),
        )
    ),
    None,
)
"""The shape of ratings that content filters report."""
_SOURCE_PLACES = (
    *("web", "maps", "image", "retrievedContext", "retrieved_context", "ragChunk", "rag_chunk", "pageSpan"),
    *("page_span", "segment", "searchEntryPoint", "search_entry_point", "groundingChunks"),
    *("grounding_chunks", "groundingSupports", "grounding_supports", "retrievalMetadata"),
    *("retrieval_metadata", "citations", "citationSources", "citation_sources", "urlMetadata"),
    *("url_metadata", "document", "documents", "source", "sources", "sourceContent", "content", "chunk"),
    *("chunks", "location", "documentChar", "documentPage", "documentChunk", "publicationDate"),
    *("customMetadata", "custom_metadata", "searchResultLocation", "file"),
    *("publication_date", "url_citation", "file_citation", "file_path", "references", "results"),
)
SOURCES = FieldShape(
    frozenset(
        (
            *_SOURCE_PLACES,
            *("title", "url", "uri", "link", "text", "snippet", "page_content", "pageContent", "cited_text"),
            *("quote", "score", "start_index", "end_index", "startIndex", "endIndex", "file_id", "id"),
            *("document_id", "document_title", "retrievedUrl", "retrieved_url", "renderedContent"),
            *("rendered_content", "encrypted_index", "domain", "file_name", "filename", "label", "key"),
        )
    ),
    frozenset(_SOURCE_PLACES),
    frozenset(
        (
            *("url_citation", "file_citation", "container_file_citation", "file_path", "citation"),
            *("char_location", "page_location", "content_block_location", "web_search_result*"),
            *("search_result*", "citations", "cited*", "text", "document*", "url", "web", "file"),
            *("source*", "reference*", "agent", "image", "TEXT_CONTENT", "PLAN", "tool"),
        )
    ),
    frozenset(("tool_output",)),
)
SPEAKER = FieldShape(
    frozenset((*_IDENTITY_KEYS, "role", "email", "username", "user_name", "display_name", "label", "value"))
)
CONTROL = FieldShape(
    frozenset(
        (
            *("id", "type", "ttl", "level", "fps", "startOffset", "start_offset", "expires_at", "reason"),
            *("mode", "model", "status", "message", "code"),
        )
    ),
    frozenset(("skills", "applied_edits", "usage", "status")),
)
JUDGMENTS = FieldShape(
    frozenset(
        (
            *_IDENTITY_KEYS,
            *("key", "score", "value", "label", "comment", "text", "message", "rating", "code", "result"),
            *("reason", "explanation", "passed", "correct", "category", "verdict", "error", "feedback"),
        )
    ),
    None,
)
"""The shape of assessments of an entry or a record that were made later or by a different program."""
TEXT_OBJECT = FieldShape(frozenset(("value", "text")), frozenset(("annotations", "text")), frozenset())
"""The shape of an object that contains the text of a text part, as in the Assistants API."""
DEFINITIONS = FieldShape(
    frozenset(
        ("description", "type", "server_label", "function", "parameters", "input_schema", "inputSchema")
    ),
    frozenset(("tools", "function", "annotations")),
    values=frozenset(
        (
            *("parameters", "input_schema", "inputSchema", "output_schema", "outputSchema", "format"),
            *("filters", "ranking_options", "user_location", "allowed_tools"),
        )
    ),
)
"""The shape of tool declarations, as opposed to calls."""
TEXTS = FieldShape(
    frozenset(("role", "content", "reasoning_content", "HTTPHeaders", "RequestId")),
    frozenset(("HTTPHeaders",)),
)
"""The shape of named texts, such as response headers or the texts in a delta."""

# ── fields ───────────────────────────────────────────────────────────────────────────────────────

SPEAKER_FIELDS = ("speaker", "recipient", "user", "agent", "sender", "author", "source", "name")
JUDGMENT_FIELDS = ("labels", "label", "scores", "score", "feedback", "evaluation", "evaluations", "error")
FIELD_SHAPES: Mapping[str, FieldShape] = {
    **dict.fromkeys(USAGE_KEYS, NUMBERS),
    **dict.fromkeys(
        (
            *("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"),
            *("thoughts", "thought", "summary"),
        ),
        THOUGHTS,
    ),
    **dict.fromkeys(("logprobs", "top_logprobs", "logprobsResult", "logprobs_result"), TOKENS),
    **dict.fromkeys(
        (
            *("audio", "attachments", "file_ids", "images", "image_urls", "experimental_attachments"),
            *("experimental_content",),
        ),
        MEDIA,
    ),
    **dict.fromkeys(
        (
            *("content_filter_results", "content_filter_result", "prompt_filter_results", "safetyRatings"),
            *("safety_ratings", "vertex_ai_safety_results", "promptFeedback", "prompt_feedback"),
            *("incomplete_details", "stop_details"),
        ),
        RATINGS,
    ),
    **dict.fromkeys(
        (
            *("citations", "groundingMetadata", "grounding_metadata", "citationMetadata", "sources"),
            *("citation_metadata", "urlContextMetadata", "url_context_metadata", "search_results"),
            *("vertex_ai_grounding_metadata", "vertex_ai_url_context_metadata"),
            *("vertex_ai_citation_metadata",),
        ),
        SOURCES,
    ),
    **dict.fromkeys(
        (
            *("container", "context_management", "cache_control", "cache_creation", "videoMetadata"),
            *("video_metadata", "mediaResolution", "caller"),
        ),
        CONTROL,
    ),
    **dict.fromkeys(("node_info", "nodeInfo"), FieldShape(frozenset(("path",)))),
    **dict.fromkeys(SPEAKER_FIELDS, SPEAKER),
    **dict.fromkeys(JUDGMENT_FIELDS, JUDGMENTS),
    "refusal": NOTHING,
    "tools": DEFINITIONS,
    "graph_data": FieldShape(frozenset(("status",))),  # Writer's
    "prompt_cache_breakpoint": CONTROL,
    **dict.fromkeys(("lc_attributes", "lc_secrets"), ANYTHING),
    # The provider's data that the message was made from.
    **dict.fromkeys(
        ("raw_representation", "rawRepresentation", "inner_content", "innerContent", "raw_data"), ANYTHING
    ),
}
"""The shapes of fields in messages, parts and calls. The keys are field names that are common to many
libraries."""

METADATA_SHAPES: Mapping[str, FieldShape] = {
    **dict.fromkeys(("token_usage", "tokenusage", "usage", "tokens", "metrics"), NUMBERS),
    **dict.fromkeys(("timing", "timings", "latency", "cost"), NUMBERS),
    **dict.fromkeys(("all_retrieved_documents", "documents", "references"), SOURCES),
    "contentfilterresults": RATINGS,
    **dict.fromkeys(
        ("headers", "responsemetadata", "parsed", "structured_output", "model_info", "finish_details"),
        ANYTHING,
    ),
    **dict.fromkeys(
        ("gateway", "__openai_function_call_ids__", "__gemini_function_call_thought_signatures__"), ANYTHING
    ),
}
"""The shapes of known fields in data whose content authors and providers choose freely. The keys are in lower
case."""
