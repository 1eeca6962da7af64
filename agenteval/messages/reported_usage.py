"""How many tokens a reply took, in the words of many libraries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agenteval.core.trajectory import Usage

_IN = ("input_tokens", "prompt_tokens", "input_token_count", "prompt_token_count", "prompt_eval_count")
_OUT = ("output_tokens", "completion_tokens", "output_token_count", "candidates_token_count", "eval_count")
_TOTAL = ("total_tokens", "total_token_count")
_SHOWN = 120


def read_usage(value: Any) -> Usage | None:
    """Usage in the words of a provider (``prompt_tokens``, ``promptTokens``, …) or ours (``input_tokens``),
    as a mapping or an object; ``None`` where the tokens that went in or came out are not told."""
    if isinstance(value, Usage):
        return value
    told = _told(value)
    counts = _counts(told)
    if counts is None:
        return None
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details") or {}
    cached = told.get("cached_tokens", details.get("cached_tokens") if isinstance(details, Mapping) else 0)
    cost = told.get("cost")
    return Usage(
        calls=calls if isinstance(calls := told.get("calls"), int) and calls > 0 else 1,
        input_tokens=counts[0],
        output_tokens=counts[1],
        cached_tokens=cached if isinstance(cached, int) else 0,
        estimated=bool(told.get("estimated", False)),
        cost=float(cost) if isinstance(cost, int | float) and cost >= 0 else None,
    )


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


def _counts(told: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens in and out; one of them may be what is left of the total."""
    tokens_in, tokens_out, total = (_first(told, names) for names in (_IN, _OUT, _TOTAL))
    if tokens_in is None and tokens_out is not None and total is not None:
        tokens_in = total - tokens_out
    if tokens_out is None and tokens_in is not None and total is not None:
        tokens_out = total - tokens_in
    if tokens_in is None or tokens_out is None or min(tokens_in, tokens_out) < 0:
        return None
    return tokens_in, tokens_out


def _first(told: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(told.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    """A whole number, however it is written."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)
