"""How results write values, where the object ends that has one, and which time zones they name: for quick
looks at texts."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.detectors.mentions import Mention
from agenteval.expressions import expression


def written_forms(mention: Mention) -> list[str]:
    """How JSON commonly writes the value, with what must stand beside it."""
    if mention.kind == "time":
        return [f"{clock // 60:02d}:{clock % 60:02d}" for clock in mention.clocks]
    if mention.kind == "date":
        return [
            f"{year:04d}-{month:02d}-{day:02d}" if year else f"-{month:02d}-{day:02d}"
            for year, month, day in mention.days
        ]
    by = (1, 100) if mention.kind == "money" else (1,)  # also in cents
    shown = [f"{number * factor:.10g}" for number in mention.numbers[:1] for factor in by]
    return [f"{left}{one}{right}" for one in shown for left in (" ", ":") for right in (",", "}")]


def object_around(text: str, at: int) -> tuple[int, int]:
    """About where the object begins and ends that has a value at ``at``: from its brace to where the same
    key comes again."""
    first = text.rfind("{", 0, at)
    close = text.rfind('":', max(0, first), at)
    key = text[text.rfind('"', 0, close) : close + 2] if close > 0 else ""
    last = text.find(key, at) if len(key) > 3 else -1
    return max(0, first), last if last > at else min(len(text), at + 1500)


_OFFSET = expression(
    r"[0-9]t[0-9]{2}:[0-9]{2}(?::[0-9.]+)?(?:z|[+-][0-9]{2}:?[0-9]{2})|"
    r"\b(?:utc|gmt) ?[+-][0-9]|offset\W+[+-]?[0-9]+"
)
_ZONE = expression(r".*(?=z|[+-][0-9]{1,2}:?[0-9]{0,2}\Z)")


def offsets_in(small: str) -> Iterator[str]:
    """The time zones of the timestamps of a text in lower case, and those that it speaks of."""
    return (_ZONE.sub("", found) for found in _OFFSET.findall(small))
