"""Parses the token usage that providers and frameworks report.

The origin and meaning of each name:

- ``prompt_tokens``, ``completion_tokens``, ``total_tokens``, ``prompt_tokens_details.cached_tokens``:
  OpenAI's Chat Completions API. ``input_tokens``, ``output_tokens``, ``input_tokens_details``: OpenAI's
  Responses API. Groq's streams report the Chat Completions names in ``x_groq`` of the last chunk, from which
  ``completion`` takes them. LiteLLM uses the Chat Completions names for all providers and includes cached
  tokens in ``prompt_tokens``; so does DeepSeek, with ``prompt_cache_hit_tokens``.
- ``cache_creation_input_tokens``, ``cache_read_input_tokens`` (Anthropic), ``cacheReadInputTokens``,
  ``cacheWriteInputTokens`` (Bedrock's Converse API): not included in ``input_tokens``.
- ``usage_metadata`` in LangChain: ``input_tokens`` is the sum of all kinds, including
  ``input_token_details.cache_read``.
- ``prompt_token_count``, ``candidates_token_count``, ``cached_content_token_count`` (Google; ADK): the
  prompt includes cached tokens, but not ``tool_use_prompt_token_count``; the candidates do not include
  ``thoughts_token_count``.
- ``request_tokens``, ``response_tokens`` (Pydantic AI before 1.0), ``input_tokens``, ``output_tokens``,
  ``requests`` (``RunUsage`` since 1.0; ``requests`` also in OpenAI's Agents SDK): ``input_tokens`` includes
  ``cache_read_tokens``.
- ``input_token_count``, ``output_token_count``, ``total_token_count`` (Microsoft's agent framework, Java's
  LangChain4j): for Anthropic's models, Microsoft's framework adds ``anthropic.cache_read_input_tokens``,
  which is not included.
- ``tokens`` and ``billed_units``, each with ``input_tokens`` and ``output_tokens`` (Cohere): ``tokens``
  counts all tokens.
- ``prompt_eval_count``, ``eval_count``: Ollama.
- ``promptTokens``, ``completionTokens`` (AI SDK 4); ``inputTokens``, ``outputTokens`` and the included
  ``cachedInputTokens`` (AI SDK 5) or ``inputTokenDetails.cacheReadTokens`` (AI SDK 6). Between the AI SDK and
  its providers: ``inputTokens: {total, noCache, cacheRead, …}``, ``outputTokens: {total, text, reasoning}``.
- ``cached_prompt_tokens``, ``successful_requests`` next to OpenAI's names: CrewAI's ``UsageMetrics``.
- smolagents' ``TokenUsage`` and AutoGen's ``RequestUsage`` use the names above.
- ``gen_ai.usage.…``, ``llm.token_count.…``, ``ai.usage.…``: span attributes (OpenTelemetry, OpenInference,
  the AI SDK).

**Each token counts once, and the total decides which counts include which.** Reasoning tokens and cached
tokens are part of the count of which they are a detail; ``_CountName.excluded`` lists the exceptions by name.
Prompt and completion may add up to less than the total (xAI, Gemini's compatible endpoint: 1,000 and 40 of
1,100). If other reported counts explain the gap (60 reasoning tokens), the gap is counted as tokens of that
kind. The tokens in an unexplained gap were used nevertheless. They count as output, the more expensive kind,
and the usage is marked as estimated, because the split was not reported. A total alone is also a count, but
only of the sum (``Usage.unsplit``). A detail that is larger than its count cannot be part of the count. A
total that is less than its parts proves nothing about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from math import inf
from typing import Any, NamedTuple, TypeGuard

from agenteval.core.trajectory import Step, Usage
from agenteval.messages.json_fields import drop_empty, first_present


class _CountName(NamedTuple):
    """A field name for a token count."""

    name: str
    excluded: tuple[str, ...] = ()
    """Names of counts that are reported next to this count and are not included in it."""


_SEPARATE_CACHE_COUNTS = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_write_input_tokens",
)
_INPUT_NAMES = (
    _CountName("input_tokens", _SEPARATE_CACHE_COUNTS),
    _CountName("prompt_tokens"),
    _CountName("input_token_count", tuple(f"anthropic.{name}" for name in _SEPARATE_CACHE_COUNTS)),
    _CountName("prompt_token_count", ("tool_use_prompt_token_count",)),
    _CountName("prompt_eval_count"),
    _CountName("request_tokens"),
)
_OUTPUT_NAMES = (
    _CountName("output_tokens"),
    _CountName("completion_tokens"),
    _CountName("output_token_count"),
    _CountName("candidates_token_count", ("thoughts_token_count",)),
    _CountName("eval_count"),
    _CountName("response_tokens"),
)
_TOTAL_KEYS = ("total_tokens", "total_token_count")
_CALL_COUNT_KEYS = ("calls", "requests", "successful_requests")


class _Detail(NamedTuple):
    """A kind of token that is part of a count, such as cached tokens."""

    names: tuple[str, ...]
    """The names of the detail when it is reported next to the count."""
    mappings: tuple[str, ...]
    """The mappings that may contain the detail."""
    names_within: tuple[str, ...]
    """The names of the detail within these mappings."""


_CACHED = _Detail(
    (
        "cached_tokens", "cache_read_tokens", "cache_read_input_tokens", "cached_input_tokens",
        "cached_content_token_count", "cached_prompt_tokens", "prompt_cache_hit_tokens",
        "cache_read_input_token_count",
    ),
    ("prompt_tokens_details", "input_tokens_details", "input_token_details", "input_tokens"),
    ("cached_tokens", "cache_read", "cache_read_tokens"),
)  # fmt: skip
_REASONING = _Detail(
    (
        "reasoning_tokens", "reasoning_output_tokens", "reasoning_output_token_count", "thoughts_token_count",
        "completion/reasoning_tokens", "openai.reasoning_tokens",
    ),
    (
        "completion_tokens_details", "output_tokens_details", "output_token_details", "details",
        "output_tokens",
    ),
    ("reasoning_tokens", "reasoning"),
)  # fmt: skip
_NESTED_KEYS = ("tokens", "billed_units")
_MESSAGE_USAGE_KEYS = (
    "usage", "usage_metadata", "usageMetadata", "models_usage", "usage_details", "token_usage", "totalUsage",
)  # fmt: skip
_METADATA_KEYS = ("response_metadata", "meta", "_meta", "metadata")
"""Keys for the metadata of a message in LangChain (before ``usage_metadata``), Haystack and the AI SDK."""
USAGE_KEYS = frozenset(_MESSAGE_USAGE_KEYS)
_MAX_SHOWN = 120
_MAX_COUNT = 10**18


def read_usage(value: Any) -> Usage | None:
    """Parse token usage that is reported with a provider's field names or agenteval's. Return ``None`` if
    neither input and output tokens nor their sum are reported.

    Providers use names such as ``prompt_tokens`` and ``promptTokens``; agenteval uses ``input_tokens``. The
    value may be a mapping, an object, or a list with one mapping or object for each reply."""
    if isinstance(value, Usage):
        return value if _is_possible(value) else None
    if _is_list(value):
        each = [read_usage(one) for one in value]
        return sum(filter(None, each), Usage()) if each and None not in each else None
    payload = _payload_of(value)
    counts = _find_counts(payload)
    if counts is None:
        return None
    return Usage(
        calls=next(filter(None, (_parse_count(payload.get(name)) for name in _CALL_COUNT_KEYS)), 1),
        input_tokens=counts.tokens_in,
        output_tokens=counts.tokens_out,
        cached_tokens=min(_largest_detail(payload, _CACHED), counts.tokens_in),
        estimated=bool(payload.get("estimated")) or not counts.is_split,
        cost=_parse_cost(payload.get("cost")),
        unsplit=bool(counts.is_sum or payload.get("unsplit")),
    )


def _find_counts(payload: Mapping[str, Any]) -> _UsageCounts | None:
    """Return the tokens that a usage reports, either directly or in a nested object. If only their sum is
    reported, return the sum."""
    nested = (_payload_of(payload[key]) for key in _NESTED_KEYS if key in payload)
    for each in chain((payload,), nested):
        if counts := _parse_counts(each):
            return counts
    total = _parse_total(payload)
    return _UsageCounts(0, total, is_sum=True) if total and not _has_parts(payload) else None


def _parse_cost(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < inf else None


def reported_parts(value: Any) -> tuple[int | None, int | None]:
    """Return the input and output tokens of an incomplete usage. Each is ``None`` if it is not reported."""
    payload = _payload_of(value)
    counts = (_parse_token_count(payload, names, 0) for names in (_INPUT_NAMES, _OUTPUT_NAMES))
    tokens_in, tokens_out = (each.total if each and each.reported >= 0 else None for each in counts)
    return tokens_in, tokens_out


def usage_in(message: Mapping[str, Any]) -> Any:
    """Return the reported token usage of a message, or of a reply with its messages. Return ``None`` if no
    usage is reported.

    LangChain reports the same usage twice; such a usage is counted once."""
    places = (message, *(inner for key in _METADATA_KEYS if isinstance(inner := message.get(key), Mapping)))
    return first_present(_MESSAGE_USAGE_KEYS, *places)


class UsageDeduplicator:
    """Recognizes messages from an agent that repeat the token usage of the preceding message.

    Some agents log and return the blocks of one Anthropic message separately, each with the ``id`` and the
    usage of the whole message."""

    def __init__(self) -> None:
        self._before: Mapping[str, Any] = {}

    def is_repeated(self, role: str | None, message: Mapping[str, Any]) -> bool:
        if role not in ("user", "assistant"):
            return False
        before, self._before = self._before, message if role == "assistant" else {}
        is_same = role == "assistant" and bool(message.get("id")) and message["id"] == before.get("id")
        return is_same and message is not before and usage_in(message) == usage_in(before)


def attach_usage(step: Step, reported: Any) -> Step:
    """Return a step with the token usage that was reported for it."""
    if reported is None:
        return step
    usage, unread = read_usage(reported), unread_usage(reported)
    known = drop_empty({"usage": usage, "unread_usage": unread})
    return step.model_copy(update=known) if known else step


def unread_usage(value: Any) -> str:
    """Return a quotation of a reported usage that ``read_usage`` cannot parse, or an empty string if
    ``read_usage`` can parse the usage."""
    if _is_list(value):
        return next(filter(None, map(unread_usage, value)), "")
    payload = _payload_of(value)
    if read_usage(value) is not None or all(map(_is_empty, payload.values() if payload else (value,))):
        return ""
    shown = {name: _show_value(each) for name, each in payload.items()} if payload else _show_value(value)
    quoted = json.dumps(shown)
    return quoted if len(quoted) <= _MAX_SHOWN else f"{quoted[:_MAX_SHOWN]}…"


def _is_possible(usage: Usage) -> bool:
    counts = (usage.calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    return all(0 <= count < _MAX_COUNT for count in counts) and (usage.cost is None or 0 <= usage.cost < inf)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and not hasattr(value, "_asdict")


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float | list | tuple | Mapping) and not value)


def _show_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _payload_of(value: Any) -> dict[str, Any]:
    """Return the fields of a usage with their names in snake case, or an empty dict if the usage has no
    fields."""
    reported = value if type(value) is dict else _fields_of(value)
    return {_snake_case(str(name)): each for name, each in reported.items()}


def _snake_case(name: str) -> str:
    return name if name.islower() else re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _fields_of(value: Any) -> Mapping[Any, Any]:
    if value is None or isinstance(value, type | int | str):
        return {}
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif not isinstance(value, Mapping) and hasattr(value, "__dict__"):
        value = vars(value)
    return value if isinstance(value, Mapping) else {}


class _TokenCount(NamedTuple):
    """A token count, and additional counts that may have to be added to it."""

    reported: int
    """The reported count."""
    excluded: int = 0
    """Tokens that, according to the name of the count, are not included in it."""
    detail: int = 0
    """A reported detail of the count. It is part of the count unless the numbers prove otherwise."""

    @property
    def total(self) -> int:
        return self.reported + self.excluded

    @property
    def minimum(self) -> int:
        """The count to use if no total is reported. A detail that is larger than the count cannot be part of
        it."""
        return max(self.total, self.reported + self.detail if self.detail > self.reported else 0)


class _UsageCounts(NamedTuple):
    """The input and the output tokens of a usage."""

    tokens_in: int
    tokens_out: int
    is_split: bool = True
    """False if some tokens were reported only as part of the total."""
    is_sum: bool = False
    """True if all tokens were reported only as a sum."""


def _parse_counts(payload: Mapping[str, Any]) -> _UsageCounts | None:
    """Return the input and output tokens. One of the two may be computed from the total."""
    tokens_in = _parse_token_count(payload, _INPUT_NAMES, _largest_detail(payload, _CACHED))
    tokens_out = _parse_token_count(payload, _OUTPUT_NAMES, _largest_detail(payload, _REASONING))
    total = _parse_total(payload)
    if total is not None and tokens_out:
        tokens_in = tokens_in or _TokenCount(total - tokens_out.minimum)
    elif total is not None and tokens_in:
        tokens_out = _TokenCount(total - tokens_in.minimum)
    if tokens_in is None or tokens_out is None or min(tokens_in.reported, tokens_out.reported) < 0:
        return None
    if total is None or total < tokens_in.reported + tokens_out.reported:
        return _UsageCounts(tokens_in.minimum, tokens_out.minimum)
    return _fit_to_total(tokens_in, tokens_out, total)


def _parse_total(payload: Mapping[str, Any]) -> int | None:
    return next(filter(_is_count, (_parse_count(payload.get(name)) for name in _TOTAL_KEYS)), None)


def _has_parts(payload: Mapping[str, Any]) -> bool:
    """Check whether a usage reports input or output tokens, even if their counts cannot be parsed."""
    counts = (_unwrap_total(payload.get(name)) for name, _ in (*_INPUT_NAMES, *_OUTPUT_NAMES))
    return any(count is not None for count in counts) or any(map(payload.get, _NESTED_KEYS))


def _fit_to_total(tokens_in: _TokenCount, tokens_out: _TokenCount, total: int) -> _UsageCounts:
    gap = total - tokens_in.reported - tokens_out.reported
    if gap == 0 and _may_include_excluded(tokens_in, tokens_out):
        return _UsageCounts(tokens_in.reported, tokens_out.reported)
    explanations = (tokens_in.excluded, tokens_out.excluded), (0, tokens_out.detail), (tokens_in.detail, 0), (
        tokens_in.detail, tokens_out.detail,
    )  # fmt: skip
    for more_in, more_out in explanations if gap else ():
        if more_in + more_out == gap:
            return _UsageCounts(tokens_in.reported + more_in, tokens_out.reported + more_out)
    unexplained = max(total - tokens_in.total - tokens_out.total, 0)
    return _UsageCounts(tokens_in.total, tokens_out.total + unexplained, is_split=not unexplained)


def _may_include_excluded(*counted: _TokenCount) -> bool:
    """Check whether counts may include the tokens that their names exclude.

    Some frameworks use a provider's names for parts of their own sums. Only the total reveals this."""
    return all(each.excluded <= each.reported for each in counted)


def _parse_token_count(
    payload: Mapping[str, Any], names: tuple[_CountName, ...], detail: int
) -> _TokenCount | None:
    for name, excluded in names:
        if name in payload and (count := _parse_count(_unwrap_total(payload[name]))) is not None:
            return _TokenCount(
                count, sum(max(_parse_count(payload.get(each)) or 0, 0) for each in excluded), detail
            )
    return None


def _unwrap_total(value: Any) -> Any:
    """Return the total from a count that is a mapping with details, or any other value unchanged."""
    return value.get("total") if isinstance(value, Mapping) else value


def _largest_detail(payload: Mapping[str, Any], kind: _Detail) -> int:
    """Return the largest count of one kind of token. The counts are not added together, because several names
    have the same meaning."""
    counts = [_parse_count(payload[name]) for name in kind.names if name in payload]
    for mapping in (_payload_of(payload[key]) for key in kind.mappings if key in payload):
        counts += [_parse_count(mapping.get(name)) for name in kind.names_within]
    return max(filter(_is_count, counts), default=0)


def _is_count(value: int | None) -> TypeGuard[int]:
    return value is not None and value >= 0


def _parse_count(value: Any) -> int | None:
    """Parse a token count in any notation as a whole number, or return ``None`` if the value is not a token
    count."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_COUNT:
        return None
    return int(value) if value == value // 1 else None
