"""Shorthand for conversations written down by hand: a talk as a list of texts and calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from talk import Talk

Call = tuple[str, Any, dict[str, Any]]
MONTHS = {
    "french": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre"
    " dicembre",
    "portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "swedish": "januari februari mars april maj juni juli augusti september oktober november december",
    "turkish": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
}

CLOSINGS = [
    " Anything else?",
    " Let me know if I can help with anything else.",
    "\n\nIs there anything else I can do for you?",
    " Have a nice day!",
]


def month(language: str, day: date) -> str:
    return MONTHS[language].split()[day.month - 1]


def obj(**fields: Any) -> dict[str, Any]:
    return fields


def rows(columns: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Objects of one kind: the names of their fields, then the values of each."""
    return [dict(zip(columns.split(), row, strict=True)) for row in values]


def call(tool: str, result: Any, /, **arguments: Any) -> Call:
    return (tool, result, arguments)


def run(talk: Talk, *steps: str | Call | list[Call]) -> Talk:
    """A text is the user's and the agent's in turn, and the agent's after a call.

    The words of courtesy around English texts differ from one talk to the next.
    """
    texts = [step for step in steps if isinstance(step, str)]
    foreign = any(char.isalpha() and not char.isascii() for char in "".join(texts))
    rng, agent = Random("".join(texts)), False
    for number, step in enumerate(steps):
        if not isinstance(step, str):
            talk.calls(*(step if isinstance(step, list) else [step]))
            agent = True
            continue
        before = after = ""
        if foreign:
            pass
        elif number == 0 and not step.lower().startswith(("hi", "hey")):
            before = rng.choice(["", "", "", "hi, ", "Hello, ", "hey ", "hi there! "])
        elif not agent and step.lower().startswith(("what", "how", "when", "and ", "can ", "do ", "is ")):
            before = rng.choice(["", "", "ok, ", "thanks. ", "hm, ", "great, "])
        elif agent and number == len(steps) - 1 and len(step) > 80 and not step.endswith("?"):
            after = rng.choice(["", "", "", *CLOSINGS])
        (talk.agent if agent else talk.user)(before + step + after)
        agent = not agent
    return talk


def marks(reads: str, writes: str, destructive: str) -> dict[str, str]:
    names = {"reads": reads, "writes": writes, "destructive": destructive}
    return {tool: mark for mark, tools in names.items() for tool in tools.split()}


def a_day(rng: Random, weekday: int) -> date:
    """Some day of 2025 that is this weekday; Monday is 0."""
    return date(2025, 3, 3) + timedelta(days=7 * rng.randint(0, 36) + weekday)


def money(cents: int | float, sign: str = "$") -> str:
    return f"{sign}{cents / 100:,.2f}"


def euros(value: float, places: int = 2, group: str = ".") -> str:
    """A number as most of Europe writes it: a comma, and a dot or a space between thousands."""
    return f"{value:,.{places}f}".replace(",", "_").replace(".", ",").replace("_", group)


def yes(rng: Random, *more: str) -> str:
    return rng.choice(["yes", "yep, do it", "Yes please.", "ok go ahead", "sure", "y", *more])


def near(value: float, places: int = 0) -> str:
    """Rounded as people round: a half goes up."""
    exact = Decimal(str(round(value, 9)))
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


def listing(lines: Sequence[str], mark: str = "- ") -> str:
    return "\n".join(mark + line for line in lines)


def table(columns: str, lines: Sequence[Sequence[Any]]) -> str:
    head = [f"| {columns} |", "|" + "---|" * (columns.count("|") + 1)]
    return "\n".join([*head, *("| " + " | ".join(map(str, line)) + " |" for line in lines)])
