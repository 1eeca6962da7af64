"""Finds content that could not be placed in a reply, a log or a trace, and that may therefore contain
unobserved calls. Pure.

All parsers follow one rule. An *entry* is an element of a list of messages, parts, events or spans. An entry
is placed if its kind is known: as a call, as a result, or as something that contains no call (text, a model's
thought, a picture). A field of a placed entry that its parser does not support is placed in two cases. Either
a table for the dialect lists the field and its value has the shape that belongs to the name
(``agenteval.messages.field_shapes``), or its value contains no object, because a plain value is not a call.
Fields whose content authors choose freely (``metadata``) are placed to the extent that their values are plain
or their names are known. Everything else is *unplaced*: unknown, which is not the same as "no call".

A field that is known only by its name may contain anything, including calls: providers may store requests
there, and frameworks may store the actions of another agent. Such a field is searched for calls in known
forms. A call that was also parsed in its proper place is a repetition; any other call is unplaced."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agenteval.messages.chat import ARGUMENTS_UNKNOWN
from agenteval.messages.field_shapes import (
    CONTROL,
    FIELD_SHAPES,
    JUDGMENT_FIELDS,
    JUDGMENTS,
    METADATA_SHAPES,
    NUMBERS,
    PLAIN_TYPES,
    RATINGS,
    SOURCES,
    SPEAKER_FIELDS,
    FieldShape,
    calls_in,
    holds_objects,
    is_broken_message,
    is_call,
    is_collection,
    is_typed_call,
    public_fields,
)
from agenteval.messages.json_fields import object_at, object_of, parse_json_container
from agenteval.messages.reported_usage import USAGE_KEYS

_MAX_QUOTED = 60
_NO_SHAPES: Mapping[str, FieldShape] = {}


class Unplaced(NamedTuple):
    """An entry, or a field of an entry, that could not be placed."""

    what: str
    """A phrase that describes the entry or field and its location."""
    names: tuple[str, ...] = ()
    """The names that an author can list to declare that the entry or field contains no calls."""
    entry: Any = None
    is_broken_call: bool = False
    """True for a call in a known form that cannot be parsed."""
    calls: tuple[Any, ...] = ()
    """All calls that the entry or field may contain. If all these calls were parsed elsewhere, the entry or
    field counts as placed."""

    @property
    def phrase(self) -> str:
        """A phrase that describes the entry or field, its location, and the beginning of its content."""
        return self.what if self.entry is None else f"{self.what}: {quote_json(self.entry)}"

    @property
    def note(self) -> str:
        """A remark that is the same for all unplaced content of one kind."""
        return f"{self.what} was not recognized"

    @property
    def remark(self) -> str:
        """A remark on a log, including the remedy."""
        name = next((each for each in self.names if each.isprintable() and len(each) <= _MAX_QUOTED), "")
        remedy = f" (use `--no-calls-in {shlex.quote(name)}` if it contains no calls)" if name else ""
        return f"{self.note}: call checks are undecided there{remedy}"


@dataclass
class CallFreeNames:
    """The names of fields and entries that contain no calls, according to the author."""

    names: frozenset[str] = frozenset()
    matched: set[str] = field(default_factory=set)
    """The names that occurred in the data."""
    unmatched: set[str] = field(default_factory=set)
    """The names of content that remained unplaced."""

    def accepts(self, unplaced: Unplaced) -> bool:
        found = self.names.intersection(unplaced.names)
        self.matched |= found
        if not found:
            self.unmatched.update(unplaced.names)
        return bool(found)


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────


def holds_entries(value: Any, known: Collection[str] = ()) -> bool:
    """Check whether a value contains a list of objects, at any depth, outside the known fields."""
    level = [value]
    while level:
        item = level.pop()
        if isinstance(item, Mapping):
            level += [each for key, each in item.items() if key not in known]
        elif isinstance(item, list | tuple) and holds_objects(item):
            return True
    return False


def unplaced_fields(
    entry: Mapping[str, Any],
    read: Collection[str],
    *,
    owner: str,
    shapes: Mapping[str, FieldShape] = _NO_SHAPES,
) -> Iterator[Unplaced]:
    """Yield the fields of an entry that may contain calls.

    ``read`` contains the fields that the parser of the entry parses or recognizes. ``owner`` describes the
    entry. ``shapes`` contains the shapes of fields that are specific to such an entry; they take precedence
    over the shapes that apply to any entry."""
    for key, value in entry.items():
        if key in read:
            continue
        shape = shapes.get(key) or FIELD_SHAPES.get(key)
        if isinstance(value, str):
            if shape is None or shape.marks is None:
                yield from _unplaced_in_text(value, f"'{_shorten_key(key)}' in {owner}", str(key))
        elif not isinstance(value, PLAIN_TYPES):
            yield from _unplaced_in_value(key, value, shape, owner)


def _unplaced_in_value(key: str, value: Any, shape: FieldShape | None, owner: str) -> Iterator[Unplaced]:
    """Yield content that may contain calls in a field whose value is an object or a list.

    ``shape`` is the shape that belongs to the name of the field."""
    if shape:
        yield from _unplaced_by_shape(shape, value, f"'{_shorten_key(key)}' in {owner}", str(key))
    elif key in _METADATA_DEPTHS and isinstance(value, Mapping) and not is_call(value):
        yield from _unplaced_inside(value, key, owner, depth=_METADATA_DEPTHS[key])
    elif key == "annotations":
        yield from _unplaced_annotations(value, owner)
    elif holds_objects(value):
        yield _unknown_value(value, f"'{_shorten_key(key)}' in {owner}", str(key))


def unplaced_calls(
    value: Any, what: str, *names: str, is_match: Callable[[Any], bool] = is_call
) -> Iterator[Unplaced]:
    """Yield the calls in a value that is assumed, by its name alone, to contain no calls."""
    if calls := calls_in(value, is_match):
        yield Unplaced(f"a call in {what}", names, calls[0], calls=calls)


def _unplaced_in_text(text: str, what: str, *names: str) -> Iterator[Unplaced]:
    """Yield the calls in a string that is JSON."""
    if (found := parse_json_container(text)) is not None:
        yield from unplaced_calls(found, what, *names)


def _unplaced_by_shape(shape: FieldShape, value: Any, what: str, *names: str) -> Iterator[Unplaced]:
    if shape.marks is None:
        yield from unplaced_calls(value, what, *names)
    elif not shape.fits(value):
        yield _unknown_value(value, what, *names)
    elif names[0] in USAGE_KEYS:
        yield from unplaced_counts(value, what)


def unplaced_counts(usage: Any, what: str = "the usage") -> Iterator[Unplaced]:
    """Yield the calls that a token usage counts by tool name.

    Counts for billing (``web_search_requests``) do not represent calls."""
    counts = object_at(object_of(usage), _TOOL_COUNTS_KEY)
    names = [str(key) for key, count in counts.items() if count and not str(key).endswith("_requests")]
    if names:
        calls = tuple({"name": name, ARGUMENTS_UNKNOWN: True} for name in names)
        yield Unplaced(f"calls counted in {what}", (_TOOL_COUNTS_KEY,), counts, calls=calls)


_TOOL_COUNTS_KEY = "server_tool_use"


def _unknown_value(value: Any, what: str, *names: str) -> Unplaced:
    """Return an unknown value as unplaced.

    A value that is a call or a list of calls counts as placed if these calls were parsed elsewhere."""
    entries = value if isinstance(value, list | tuple) and is_collection(value) else (value,)
    return Unplaced(what, names, value, calls=tuple(entries) if all(map(is_call, entries)) else ())


def _unplaced_inside(value: Mapping[str, Any], place: str, owner: str, *, depth: int) -> Iterator[Unplaced]:
    """Yield content that may contain calls in a place whose content authors or providers choose freely."""
    for key, inner in value.items():
        what, names = f"'{place}.{_shorten_key(key)}' in {owner}", (str(key), place.partition(".")[0])
        if shape := FIELD_SHAPES.get(key) or METADATA_SHAPES.get(str(key).lower()):
            yield from _unplaced_by_shape(shape, inner, what, *names)
        elif place == ADDITIONAL_KWARGS and key in _REPEATED_KEYS:
            continue
        elif isinstance(inner, str):
            yield from _unplaced_in_text(inner, what, *names)
        elif not holds_objects(inner):
            continue
        elif depth and isinstance(inner, Mapping) and not is_call(inner):
            yield from _unplaced_inside(inner, f"{place}.{_shorten_key(key)}", owner, depth=depth - 1)
        else:
            yield _unknown_value(inner, what, *names)


def _unplaced_annotations(value: Any, owner: str) -> Iterator[Unplaced]:
    """Yield annotations other than OpenAI's citations. Other libraries allow authors to store any content
    there."""
    listed = value if isinstance(value, list | tuple) else [value]
    for each in listed:
        kind = each.get("type") if isinstance(each, Mapping) else None
        is_known = isinstance(kind, str) and ("citation" in kind or kind in ("file_path", "agent"))
        is_known = is_known or kind == "file" or (isinstance(each, Mapping) and "cited_text" in each)
        if not (is_known and SOURCES.fits(each)) and holds_objects([each]):
            yield Unplaced(f"'annotations' in {owner}", ("annotations", *_kind_names(each)), each)


def unplaced_in_record(record: Mapping[str, Any], read: Collection[str]) -> Iterator[Unplaced]:
    """Yield the lists of objects in a record that no parser supports, because each list may contain events.

    The lists may be encoded as JSON in a string, as in tables. An object in a place for messages is also
    yielded. ``read`` contains the keys that are parsed."""
    is_run = _RUN_KEY in record
    described = _DESCRIPTION_FIELDS.union(_RUN_FIELDS) if is_run else _DESCRIPTION_FIELDS
    for key in [each for each in record if each not in read and each not in _RECORD_FIELDS]:
        value = record[key]
        if isinstance(value, str):
            if is_broken_message(value):
                yield _unknown_value(value, f"'{_shorten_key(key)}' in the record", str(key))
            value = parse_json_container(value)
        if isinstance(value, PLAIN_TYPES) or (is_run and key == "events" and _are_run_events(value)):
            continue
        if not ((shape := _RECORD_SHAPES.get(key)) and shape.fits(value)):
            yield from _unplaced_in_field(key, value, _RECORD_FIELDS if key in described else _TASK_FIELDS)


def _unplaced_in_field(key: str, value: Any, known: Collection[str]) -> Iterator[Unplaced]:
    """Yield content that may contain calls in an unread field of a record.

    ``known`` lists the keys in the field that contain no entries."""
    if holds_entries(value, known) or is_call(value) or (key in _ENTRY_FIELDS and value):
        yield _unknown_value(value, f"'{_shorten_key(key)}' in the record", str(key))
    elif calls := calls_in(value, is_typed_call, without=known):
        # Much that describes a record (a model, an experiment) has a name and parameters.
        yield Unplaced(f"a call in '{_shorten_key(key)}' in the record", (str(key),), calls[0], calls=calls)


_DESCRIPTION_FIELDS = frozenset((*SPEAKER_FIELDS, "config"))
"""Fields that describe a participant in a record, or the run of the record, and may repeat fields of the
record."""
_ENTRY_FIELDS = frozenset(
    ("messages", "conversations", "trajectory", "traj", "history", "turns", "transcript", "steps")
)
"""Fields of a record that contain entries, regardless of the types of the entries."""
_RUN_KEY = "run_type"
"""A field in LangSmith's records that contains a run of a chain, a model or a tool."""
_RUN_FIELDS = ("extra", "serialized", "manifest", "invocation_params")
_RUN_EVENT_NAMES = ("start", "end", "new_token", "error")


def _are_run_events(events: Any) -> bool:
    """Check whether events only report that a run started, continued or ended."""
    return isinstance(events, list) and all(
        "time" in event and event.get("name") in _RUN_EVENT_NAMES for event in map(object_of, events)
    )


UNKNOWN_KIND = "an entry of unknown type"


def make_unplaced(entry: Any, what: str = UNKNOWN_KIND) -> Unplaced:
    """Return an entry of an unknown kind as unplaced, with the names that occur in the entry."""
    return Unplaced(what, _kind_names(entry) or tuple(map(str, object_of(entry))), entry)


def _kind_names(entry: Any) -> tuple[str, ...]:
    found = map(object_of(entry).get, _KIND_KEYS)
    return tuple(each for each in found if isinstance(each, str) and each)


_KIND_KEYS = ("role", "type", "kind", "event", "object", "speaker", "sender", "source", "author")


def is_signal(event: Mapping[str, Any]) -> bool:
    """Check whether a stream event contains only its type and time."""
    return event.keys() <= _SIGNAL_FIELDS and all(isinstance(value, PLAIN_TYPES) for value in event.values())


_SIGNAL_FIELDS = frozenset((
    "type", "event", "kind", "object", "status", "state", "done", "index", "seq", "sequence_number",
    "timestamp",
))  # fmt: skip
UNKNOWN_EVENTS_KEY = "events"
"""The key for events of unknown types in a response that was assembled from a stream."""


# ── quotations ───────────────────────────────────────────────────────────────────────────────────


def quote_json(value: Any) -> str:
    """Return the beginning of a value's JSON."""
    text = (
        value if isinstance(value, str) else json.dumps(_clip_value(value), ensure_ascii=False, default=str)
    )
    text = " ".join(text.split())
    return text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 1]}…"


def _clip_value(value: Any, depth: int = 3) -> Any:
    """Return a value without the content that would not be shown, because entries may be large."""
    if isinstance(value, str):
        return value[: _MAX_QUOTED + 1]
    if not depth:
        return "…"
    if isinstance(value, list | tuple) and is_collection(value):
        return [_clip_value(each, depth - 1) for each in value[:5]]
    shown = value if isinstance(value, Mapping) else public_fields(value)
    if shown:
        return {str(key): _clip_value(shown[key], depth - 1) for key in list(shown)[:8]}
    return {} if isinstance(value, Mapping) else value


def _shorten_key(key: Any) -> str:
    return str(key)[:40]


# ── fields ───────────────────────────────────────────────────────────────────────────────────────

_METADATA_DEPTHS: Mapping[str, int] = {
    **dict.fromkeys(
        ("metadata", "meta", "_meta", "extra", "extras", "extra_data", "additional_properties"), 0
    ),
    **dict.fromkeys(("additionalProperties", "response_metadata", "responseMetadata", "model_extra"), 0),
    **dict.fromkeys(("additional_kwargs", "customMetadata", "custom_metadata", "context"), 0),
    **dict.fromkeys(
        ("provider_specific_fields", "extra_content", "provider_metadata", "provider_options"), 1
    ),
    **dict.fromkeys(("providerMetadata", "providerOptions", "experimental_providerMetadata"), 1),
    **dict.fromkeys(("callProviderMetadata", "resultProviderMetadata", "provider_details"), 1),
}
"""The nesting depth in each place whose content authors and providers choose freely. The AI SDK and LiteLLM
store their data below the provider's name."""
ADDITIONAL_KWARGS = "additional_kwargs"
_REPEATED_KEYS = frozenset(("tool_calls", "function_call"))
"""Keys of the calls that LangChain repeats in ``additional_kwargs``. The call parser compares these calls
with the original calls."""

_AGENT_FIELDS = (
    "tools", "functions", "available_tools", "tool_definitions", "system", "system_prompt", "instructions",
    "policy", "tool_choice", "response_format", "documents", "contexts", "retrieved_documents",
)  # fmt: skip
_REQUEST_SETTINGS = (
    "systemInstruction", "system_instruction", "safetySettings", "safety_settings", "generationConfig",
    "generation_config", "toolConfig", "tool_config", "inferenceConfig", "guardrailConfig",
    "responseSchema", "response_schema", "additionalModelRequestFields", "mcp_servers", "context_management",
    "prediction", "extra_body",
)  # fmt: skip
"""Settings in requests to the APIs of Google, Bedrock, Anthropic and OpenAI."""
_REFERENCE_FIELDS = (
    "expected", "expected_output", "reference", "references", "reference_outputs", "ground_truth", "task",
    "reward_info", "expected_tool_calls", "expected_tools", "reference_answers", "reference_tool_calls",
    "user_scenario",
)  # fmt: skip
_TASK_FIELDS = frozenset((*_REFERENCE_FIELDS, *JUDGMENT_FIELDS))
_RECORD_FIELDS = _TASK_FIELDS.union(
    _AGENT_FIELDS, _REQUEST_SETTINGS, USAGE_KEYS, ("citations", "sources", "attachments")
)
"""Fields of a record that contain the agent's inputs, the reference answer with which the agent was compared,
or assessments of the agent."""
_RECORD_SHAPES: Mapping[str, FieldShape] = {
    **dict.fromkeys(("context", "retrieved_contexts"), SOURCES),
    **dict.fromkeys(("promptFeedback", "prompt_feedback"), RATINGS),
    **dict.fromkeys(("timing", "timings"), NUMBERS),
    "annotations": JUDGMENTS,
    "container": CONTROL,
}
"""The shapes of record fields whose names have many other uses. Such a field is known only if its value has
the right shape."""
