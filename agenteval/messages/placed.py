"""What of a reply, a log or a trace nobody could place: it may hold calls that were not seen. Pure.

One rule for every reader. An *entry* is an element of a list of messages, parts, events or spans. It is
placed if its kind is known: as a call, as a result, or as something that holds no call (a text, what a model
thought, a picture). A field of a placed entry that its reader does not read is placed if a table of its
dialect names it, or if no object is in its value: a plain value is no call. What authors fill as they like
(``metadata``) is placed as far as its values are plain or their names are known. All else is *unplaced*: not
known, which is not "no call".
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

from agenteval.messages.reported_usage import USAGE_KEYS

_QUOTED = 60
_PLAIN = (str, int, float, bool, type(None), bytes)


class Unplaced(NamedTuple):
    """An entry, or a field of one, that nobody could place. ``what`` says what and where; ``names``: by which
    an author may say that it holds no calls; ``is_broken_call``: it is a call in a known form that cannot be
    read."""

    what: str
    names: tuple[str, ...] = ()
    entry: Any = None
    is_broken_call: bool = False

    @property
    def phrase(self) -> str:
        """What, where, and how it begins."""
        return self.what if self.entry is None else f"{self.what}: {quoted(self.entry)}"

    @property
    def note(self) -> str:
        """The same for all that are of one kind."""
        return f"{self.what} was not read"

    @property
    def remark(self) -> str:
        """The same of a log, with what to do about it."""
        name = next((each for each in self.names if each.isprintable() and len(each) <= _QUOTED), "")
        remedy = f" (--no-calls-in {shlex.quote(name)}, if it holds none)" if name else ""
        return f"{self.note}: checks of calls are undecided there{remedy}"


@dataclass
class NoCallsIn:
    """The names of which an author says that what they name holds no calls. ``met``: those that anything had;
    ``others``: the names of what stayed unplaced."""

    names: frozenset[str] = frozenset()
    met: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def places(self, unplaced: Unplaced) -> bool:
        found = self.names.intersection(unplaced.names)
        self.met |= found
        if not found:
            self.others.update(unplaced.names)
        return bool(found)


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────


def holds_objects(value: Any) -> bool:
    """Whether there is an object with something in it: the value itself, or within lists."""
    level = [value]
    while level:
        item = level.pop()
        if isinstance(item, _PLAIN):
            continue
        if isinstance(item, Mapping):
            if item:
                return True
        elif isinstance(item, list | tuple | set | frozenset) and not _is_named_tuple(item):
            level += item
        elif public_fields(item):
            return True
    return False


def holds_entries(value: Any, known: Collection[str] = ()) -> bool:
    """Whether there is a list of objects, however deep, in none of the fields that are known."""
    level = [value]
    while level:
        item = level.pop()
        if isinstance(item, Mapping):
            level += [each for key, each in item.items() if key not in known]
        elif isinstance(item, list | tuple) and holds_objects(item):
            return True
    return False


def unplaced_fields(entry: Mapping[str, Any], read: Collection[str], *, of: str) -> Iterator[Unplaced]:
    """The fields of an entry that may hold calls. ``read``: those that its reader reads or knows; ``of``:
    what the entry is."""
    for key, value in entry.items():
        if isinstance(value, _PLAIN) or key in read or key in METADATA:
            continue
        if key in _ANYTHING and isinstance(value, Mapping):
            yield from _unplaced_inside(value, key, of, depth=_ANYTHING[key])
        elif key == "annotations":
            yield from _unplaced_annotations(value, of)
        elif holds_objects(value):
            yield Unplaced(f"'{_short(key)}' of {of}", (str(key),), value)


def _unplaced_inside(value: Mapping[str, Any], place: str, of: str, *, depth: int) -> Iterator[Unplaced]:
    """Of what authors or providers put into a place of their own."""
    for key, inner in value.items():
        if key in METADATA or str(key).lower() in _INSIDE or not holds_objects(inner):
            continue
        if place == ADDITIONAL and key in _TWICE:
            continue
        if depth and isinstance(inner, Mapping):
            yield from _unplaced_inside(inner, f"{place}.{_short(key)}", of, depth=depth - 1)
        else:
            yield Unplaced(f"'{place}.{_short(key)}' of {of}", (str(key), place.partition(".")[0]), inner)


def _unplaced_annotations(value: Any, of: str) -> Iterator[Unplaced]:
    """Of OpenAI's, which are citations: other libraries let authors put in what they like."""
    listed = value if isinstance(value, list | tuple) else [value]
    for each in listed:
        kind = each.get("type") if isinstance(each, Mapping) else None
        is_known = isinstance(kind, str) and ("citation" in kind or kind in ("file_path", "agent"))
        is_known = is_known or (isinstance(each, Mapping) and "cited_text" in each)
        if not is_known and holds_objects([each]):
            yield Unplaced(f"'annotations' of {of}", ("annotations", *_words_of(each)), each)


def unplaced_in_record(record: Mapping[str, Any], read: Collection[str]) -> Iterator[Unplaced]:
    """The lists of objects in a record that nobody reads: each may be of events. ``read``: the keys that are
    read."""
    for key, value in record.items():
        if isinstance(value, _PLAIN) or key in read or key in _OF_RECORDS:
            continue
        known = _OF_RECORDS if key in _SPEAKERS else _OF_A_TASK
        if holds_entries(value, known):
            yield Unplaced(f"'{_short(key)}' of the record", (str(key),), value)


NO_KIND = "an entry of no known kind"


def nobodys(entry: Any, what: str = NO_KIND) -> Unplaced:
    """An entry whose kind nobody knows, under the names that it gives itself."""
    keys = map(str, entry) if isinstance(entry, Mapping) else ()
    return Unplaced(what, _words_of(entry) or tuple(keys), entry)


def _words_of(entry: Any) -> tuple[str, ...]:
    found = (entry.get(key) for key in _KINDS) if isinstance(entry, Mapping) else ()
    return tuple(each for each in found if isinstance(each, str) and each)


_KINDS = ("role", "type", "kind", "event", "object", "speaker", "sender", "source", "author")


def is_signal(event: Mapping[str, Any]) -> bool:
    """Whether an event of a stream says nothing but of which kind it is, and when."""
    return event.keys() <= _OF_SIGNALS and all(isinstance(value, _PLAIN) for value in event.values())


_OF_SIGNALS = frozenset(
    (
        "type",
        "event",
        "kind",
        "object",
        "status",
        "state",
        "done",
        "index",
        "seq",
        "sequence_number",
        "timestamp",
    )
)
EVENTS = "events"
"""Where the events of a stream that are of no known kind stand in the response that it amounts to."""


# ── how it is shown ──────────────────────────────────────────────────────────────────────────────


def quoted(value: Any) -> str:
    """How a value begins, as JSON."""
    text = value if isinstance(value, str) else json.dumps(_clipped(value), ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"


def _clipped(value: Any, depth: int = 3) -> Any:
    """A value without what would not be shown: entries may be large."""
    if isinstance(value, str):
        return value[: _QUOTED + 1]
    if not depth:
        return "…"
    if isinstance(value, list | tuple) and not _is_named_tuple(value):
        return [_clipped(each, depth - 1) for each in value[:5]]
    shown = value if isinstance(value, Mapping) else public_fields(value)
    if shown:
        return {str(key): _clipped(shown[key], depth - 1) for key in list(shown)[:8]}
    return {} if isinstance(value, Mapping) else value


def _short(key: Any) -> str:
    return str(key)[:40]


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict")


def public_fields(value: Any) -> dict[str, Any]:
    """The fields of an object of a library, by their names; empty for plain values, functions and classes."""
    if isinstance(value, tuple):
        return dict(value._asdict()) if hasattr(value, "_asdict") else {}
    if isinstance(value, (*_PLAIN, list, set, frozenset, type, ModuleType)):
        return {}
    found = dict(getattr(value, "__dict__", {}))
    if is_dataclass(value):  # they may have slots
        found |= {each.name: getattr(value, each.name, None) for each in fields(value)}
    return {key: each for key, each in found.items() if not key.startswith("_") and each is not None}


# ── what is known to hold no calls ───────────────────────────────────────────────────────────────

_OPENAI = (
    "audio", "logprobs", "top_logprobs", "refusal", "content_filter_results", "content_filter_result",
    "prompt_filter_results", "incomplete_details", "attachments", "file_ids",
)  # fmt: skip
_THOUGHT = (
    "reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks", "thoughts",
    "thought", "summary",
)  # fmt: skip
_ANTHROPIC = (
    "container", "context_management", "stop_details", "cache_control", "citations", "cache_creation",
)  # fmt: skip
_GOOGLE = (
    "groundingMetadata", "grounding_metadata", "citationMetadata", "citation_metadata", "safetyRatings",
    "safety_ratings", "urlContextMetadata", "url_context_metadata", "logprobsResult", "logprobs_result",
    "promptFeedback", "prompt_feedback", "videoMetadata", "video_metadata", "mediaResolution",
)  # fmt: skip
_LANGCHAIN = ("tool_call_chunks", "artifact", "lc_attributes", "lc_secrets")
"""Of these, chunks are the pieces of the calls beside them; an artifact is of a tool's result."""
_LITELLM = (
    "vertex_ai_grounding_metadata", "vertex_ai_url_context_metadata", "vertex_ai_safety_results",
    "vertex_ai_citation_metadata", "images", "search_results", "image_urls",
)  # fmt: skip
_AI_SDK = ("experimental_attachments", "sources", "experimental_content")
_MICROSOFT = ("raw_representation", "rawRepresentation", "inner_content", "innerContent")
"""What the provider sent, of which the message is made."""
_TAU = ("raw_data",)
_OF_A_JUDGE = (
    "labels", "label", "scores", "score", "feedback", "evaluation", "evaluations", "error",
)  # fmt: skip
"""What somebody said of an entry or of a record, later or elsewhere."""
_SPEAKERS = ("speaker", "recipient", "user", "agent", "sender", "author", "source", "name")

METADATA = frozenset(
    (
        *USAGE_KEYS,
        *(*_OPENAI, *_THOUGHT, *_ANTHROPIC, *_GOOGLE, *_LANGCHAIN, *_LITELLM),
        *(*_AI_SDK, *_MICROSOFT, *_TAU, *_OF_A_JUDGE, *_SPEAKERS),
    )
)
"""Fields of messages, of their parts and of calls, in the words of many libraries."""

_ANYTHING: Mapping[str, int] = {
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
"""Places for what authors and providers like to put there, and how many of them stand in one another: the AI
SDK and LiteLLM keep theirs below the provider's name."""
_INSIDE = frozenset(
    (
        *("token_usage", "tokenusage", "usage", "tokens", "metrics", "headers", "responsemetadata", "parsed"),
        *("model_info", "timing", "timings", "latency", "cost", "all_retrieved_documents", "documents"),
        *("references", "structured_output", "finish_details", "gateway", "contentfilterresults"),
        *("__openai_function_call_ids__", "__gemini_function_call_thought_signatures__"),
    )
)
"""What is known of them, in lower case."""
ADDITIONAL = "additional_kwargs"
_TWICE = frozenset(("tool_calls", "function_call"))
"""What LangChain keeps there once more, which the reader of calls compares."""

_OF_THE_AGENT = (
    "tools", "functions", "available_tools", "tool_definitions", "system", "system_prompt", "instructions",
    "policy", "tool_choice", "response_format", "documents", "contexts", "retrieved_documents",
)  # fmt: skip
_HELD_AGAINST = (
    "expected", "expected_output", "reference", "references", "reference_outputs", "ground_truth", "task",
    "reward_info",
)  # fmt: skip
_OF_A_TASK = frozenset((*_HELD_AGAINST, *_OF_A_JUDGE))
_OF_RECORDS = _OF_A_TASK.union(_OF_THE_AGENT, USAGE_KEYS, ("citations", "sources", "attachments"))
"""Fields of a record: what the agent was given, what it was held against, and what was said of it."""
