"""A conversation out of one text, so that long ones stay readable, and some ways to write values."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from talk import Talk

_MARKERS = ("U ", "A ", "C ", "+ ", "R ")
_OPENINGS = ("", "", "", "hi, ", "Hello, ", "hey ", "hi there! ")
_QUESTIONS = ("what", "how", "when", "and ", "can ", "do ", "is ")
_REACTIONS = ("", "", "ok, ", "thanks. ", "hm, ", "great, ")
_CLOSINGS = (
    *("", "", "", " Anything else?", " Let me know if I can help with anything else."),
    *("\n\nIs there anything else I can do for you?", " Have a nice day!"),
)


class Script(Talk):
    """A conversation whose messages are told in a text, and whose tools give ``results`` in turn."""

    def __init__(
        self, tools: list[dict[str, Any]], marks: Mapping[str, str], policy: str, results: tuple[Any, ...]
    ) -> None:
        super().__init__(tools, marks, policy)
        self._left = list(results)

    def tell(self, text: str) -> Script:
        """Each message starts on a line of its own with a letter and a space.

        ``U`` the user, ``A`` the agent, ``C`` a call (``C name key=text number:=3``), ``+`` another call of
        the same step, ``R`` what the call above gave, as text. A call without ``R`` gives the next result.
        A line within a message that would start one has a backslash before it.
        """
        step: list[tuple[str, str | None, dict[str, Any]]] = []
        for kind, body in [*_messages(text), ("", "")]:
            if kind not in {"+", "R"} and step:
                self.calls(
                    *((name, self._left.pop(0) if told is None else told, made) for name, told, made in step)
                )
                step = []
            if kind in {"C", "+"}:
                name, *given = shlex.split(body)
                step.append((name, None, dict(_argument(pair) for pair in given)))
            elif kind == "R":
                step[-1] = (step[-1][0], body, step[-1][2])
            elif kind:
                (self.user if kind == "U" else self.agent)(body)
        if self._left:
            raise ValueError(f"{len(self._left)} results without a call")
        return self


class Courteous(Script):
    """A script whose English texts get words of courtesy, which differ from one talk to the next."""

    def tell(self, text: str) -> Script:
        super().tell(text)
        said = [message for message in self._messages[1:] if message["role"] != "tool" and message["content"]]
        words = "".join(message["content"] for message in said)
        if any(char.isalpha() and not char.isascii() for char in words):
            return self
        rng = Random(words)
        for message in said:
            body, asks = message["content"], message["role"] == "user"
            start = body.lower()
            if message is said[0] and not start.startswith(("hi", "hey")):
                message["content"] = rng.choice(_OPENINGS) + body
            elif asks and start.startswith(_QUESTIONS):
                message["content"] = rng.choice(_REACTIONS) + body
            elif not asks and message is said[-1] and len(body) > 80 and not body.endswith("?"):
                message["content"] = body + rng.choice(_CLOSINGS)
        return self


def _messages(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.strip().split("\n"):
        if line.startswith(_MARKERS):
            found.append((line[0], [line[2:]]))
        else:
            found[-1][1].append(line.removeprefix("\\"))
    return [(kind, "\n".join(lines).strip()) for kind, lines in found]


def _argument(pair: str) -> tuple[str, Any]:
    key, value = pair.split("=", 1)
    return (key[:-1], json.loads(value)) if key.endswith(":") else (key, value)


def marked(tools: list[dict[str, Any]], writes: str, destructive: str) -> dict[str, str]:
    """The marks of the tools: those that are not named here read."""
    marks = dict.fromkeys((str(entry["function"]["name"]) for entry in tools), "reads")
    return marks | dict.fromkeys(writes.split(), "writes") | dict.fromkeys(destructive.split(), "destructive")


def rows(keys: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Objects of the same form: ``keys`` apart by spaces, a tuple for each object."""
    return [dict(zip(keys.split(), row, strict=True)) for row in values]


def usd(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def comma(value: float, places: int = 2, group: str = "") -> str:
    """With a decimal comma, and ``group`` between thousands."""
    return f"{value:,.{places}f}".replace(",", "_").replace(".", ",").replace("_", group)


def near(value: float, places: int = 0) -> str:
    """Rounded as people round: a half goes up."""
    exact = Decimal(str(round(value, 9)))
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


def a_day(rng: Random, weekday: int) -> date:
    """Some day of 2025 that is this weekday; Monday is 0."""
    return date(2025, 3, 3) + timedelta(days=7 * rng.randint(0, 36) + weekday)


def yes(rng: Random, *more: str) -> str:
    return rng.choice(["yes", "yep, do it", "Yes please.", "ok go ahead", "sure", "y", *more])


def day(value: date) -> str:
    return f"{value:%B} {value.day}"


def nth(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def clock(value: datetime) -> str:
    return f"{value.hour % 12 or 12}:{value:%M} {'a.m.' if value.hour < 12 else 'p.m.'}"


def span(minutes: int) -> str:
    """Minutes as ``1 h 05 min``."""
    return f"{minutes // 60} h {minutes % 60:02} min"


def listed(words: list[str], last: str = "and") -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
