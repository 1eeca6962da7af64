"""How many tokens a reply took, in the words of many libraries.

Where each name is from, and what it counts:

- ``prompt_tokens``, ``completion_tokens``, ``total_tokens``, ``prompt_tokens_details.cached_tokens``:
  OpenAI's chat completions; ``input_tokens``, ``output_tokens``, ``input_tokens_details``: its Responses.
  LiteLLM writes the first for all providers and puts what was cached into ``prompt_tokens``; DeepSeek has
  ``prompt_cache_hit_tokens`` in it.
- ``cache_creation_input_tokens``, ``cache_read_input_tokens`` (Anthropic), ``cacheReadInputTokens``,
  ``cacheWriteInputTokens`` (Bedrock's Converse): beside ``input_tokens``, which are the others alone.
- ``usage_metadata`` of LangChain: ``input_tokens`` is the sum of all kinds,
  ``input_token_details.cache_read`` one.
- ``prompt_token_count``, ``candidates_token_count``, ``cached_content_token_count`` (Google; ADK): the
  prompt holds what was cached; ``thoughts_token_count`` and ``tool_use_prompt_token_count`` stand beside.
- ``request_tokens``, ``response_tokens`` (Pydantic AI before 1.0), ``input_tokens``, ``output_tokens``,
  ``cache_read_tokens`` within the first, ``requests`` (``RunUsage`` since; ``requests`` in OpenAI's Agents
  SDK, too).
- ``input_token_count``, ``output_token_count``, ``total_token_count`` (Microsoft's agent framework, Java's
  LangChain4j); of Anthropic's models the former adds ``anthropic.cache_read_input_tokens``, beside them.
- ``tokens`` and ``billed_units``, each with ``input_tokens`` and ``output_tokens`` (Cohere): the former are
  all.
- ``prompt_eval_count``, ``eval_count``: Ollama.
- ``promptTokens``, ``completionTokens`` (AI SDK 4), ``inputTokens``, ``outputTokens``,
  ``cachedInputTokens`` within (AI SDK 5), ``inputTokenDetails.cacheReadTokens`` (6).
- ``cached_prompt_tokens``, ``successful_requests`` beside OpenAI's names: CrewAI's ``UsageMetrics``.
- smolagents' ``TokenUsage`` and AutoGen's ``RequestUsage`` have the names above.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from agenteval.core.trajectory import Step, Usage


class _Name(NamedTuple):
    """A name of a count, and the names of what is not in it and stands beside."""

    name: str
    beside: tuple[str, ...] = ()


_CACHED_BESIDE = ("cache_creation_input_tokens", "cache_read_input_tokens", "cache_write_input_tokens")
_IN = (
    _Name("input_tokens", _CACHED_BESIDE),
    _Name("prompt_tokens"),
    _Name("input_token_count", tuple(f"anthropic.{name}" for name in _CACHED_BESIDE)),
    _Name("prompt_token_count", ("tool_use_prompt_token_count",)),
    _Name("prompt_eval_count"),
    _Name("request_tokens"),
)
_OUT = (
    _Name("output_tokens"),
    _Name("completion_tokens"),
    _Name("output_token_count"),
    _Name("candidates_token_count", ("thoughts_token_count",)),
    _Name("eval_count"),
    _Name("response_tokens"),
)
_TOTAL = (_Name("total_tokens"), _Name("total_token_count"))
_CALLS = ("calls", "requests", "successful_requests")
_CACHED = (
    "cached_tokens", "cache_read_tokens", "cache_read_input_tokens", "cached_input_tokens",
    "cached_content_token_count", "cached_prompt_tokens", "prompt_cache_hit_tokens",
    "cache_read_input_token_count",
)  # fmt: skip
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_CACHED_IN_DETAILS = ("cached_tokens", "cache_read", "cache_read_tokens")
_NESTED = ("tokens", "billed_units")
_ON_MESSAGES = ("usage", "usage_metadata", "usageMetadata", "models_usage", "usage_details", "token_usage")
_AROUND = ("response_metadata", "meta", "_meta")
"""Where LangChain (before ``usage_metadata``) and Haystack keep what is known of a message."""
USAGE_KEYS = frozenset(_ON_MESSAGES)
_SHOWN = 120


def read_usage(value: Any) -> Usage | None:
    """Usage in the words of a provider (``prompt_tokens``, ``promptTokens``, …) or ours (``input_tokens``),
    as a mapping or an object; ``None`` where the tokens that went in or came out are not told."""
    if isinstance(value, Usage):
        return value
    told = _told(value)
    counts = _counts(told) or next(filter(None, (_counts(_told(told.get(key))) for key in _NESTED)), None)
    if counts is None:
        return None
    cost = told.get("cost")
    return Usage(
        calls=next(filter(None, (_count(told.get(name)) or 0 for name in _CALLS)), 1),
        input_tokens=counts[0],
        output_tokens=counts[1],
        cached_tokens=min(_cached(told), counts[0]),
        estimated=bool(told.get("estimated", False)),
        cost=float(cost) if isinstance(cost, int | float) and cost >= 0 else None,
    )


def usage_in(message: Mapping[str, Any]) -> Any:
    """What a message, or a reply with its messages, tells of its tokens, as it stands there; ``None`` if
    nothing. LangChain writes it twice: it counts once."""
    places = (message, *(inner for key in _AROUND if isinstance(inner := message.get(key), Mapping)))
    told = (place[key] for place in places for key in _ON_MESSAGES if place.get(key) is not None)
    return next(told, None)


def is_told_again(message: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a message tells the usage of the one ``before`` once more: Anthropic's blocks, as some log and
    give them one by one, are of one message, by its ``id``, and each repeats what all of it took."""
    is_same = bool(message.get("id")) and message["id"] == before.get("id")
    return is_same and usage_in(message) == usage_in(before)


def metered(step: Step, told: Any) -> Step:
    """A step with what was told of its own tokens."""
    usage, unread = read_usage(told), unread_usage(told)
    known = {**({"usage": usage} if usage else {}), **({"unread_usage": unread} if unread else {})}
    return step.model_copy(update=known) if known else step


def unread_usage(value: Any) -> str:
    """A usage that was told and that ``read_usage`` does not understand, quoted; empty if there is none."""
    told = _told(value)
    if read_usage(value) is not None or all(map(_is_nothing, told.values() if told else (value,))):
        return ""
    shown = {name: _shown(each) for name, each in told.items()} if told else _shown(value)
    quoted = json.dumps(shown)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…"


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float | list | tuple | Mapping) and not value)


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _told(value: Any) -> dict[str, Any]:
    """What a usage tells, by names as Python writes them; empty for what has no fields."""
    if isinstance(value, type):
        return {}
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif not isinstance(value, Mapping) and hasattr(value, "__dict__"):
        value = vars(value)
    if not isinstance(value, Mapping):
        return {}
    return {re.sub("(?<=[a-z])(?=[A-Z])", "_", str(name)).lower(): told for name, told in value.items()}


class _Counted(NamedTuple):
    own: int
    beside: int

    @property
    def all(self) -> int:
        return self.own + self.beside


def _counts(told: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens in and out; one of them may be what is left of the total."""
    tokens_in, tokens_out = _counted(told, _IN), _counted(told, _OUT)
    total = next((each.own for each in (_counted(told, _TOTAL),) if each), None)
    if tokens_in is None and tokens_out is not None and total is not None:
        tokens_in = _Counted(total - tokens_out.all, 0)
    if tokens_out is None and tokens_in is not None and total is not None:
        tokens_out = _Counted(total - tokens_in.all, 0)
    if tokens_in is None or tokens_out is None or min(*tokens_in, *tokens_out) < 0:
        return None
    if total == tokens_in.own + tokens_out.own and _may_be_within(tokens_in, tokens_out):
        return tokens_in.own, tokens_out.own
    return tokens_in.all, tokens_out.all


def _may_be_within(*counted: _Counted) -> bool:
    """Whether what elsewhere stands beside a count can be part of it: some frameworks take a provider's names
    for the parts of their own sums, which the total tells."""
    return all(each.beside <= each.own for each in counted)


def _counted(told: Mapping[str, Any], names: tuple[_Name, ...]) -> _Counted | None:
    for name, beside in names:
        if (count := _count(told.get(name))) is not None:
            return _Counted(count, sum(_count(told.get(each)) or 0 for each in beside))
    return None


def _cached(told: Mapping[str, Any]) -> int:
    """The largest of the counts of what was read from a cache: several names tell of the same."""
    counts = [_count(told.get(name)) for name in _CACHED]
    for details in (_told(told.get(key)) for key in _DETAILS):
        counts += [_count(details.get(name)) for name in _CACHED_IN_DETAILS]
    return max((count for count in counts if count is not None and count > 0), default=0)


def _count(value: Any) -> int | None:
    """A whole number, however it is written."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)
