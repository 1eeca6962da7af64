"""How the time of what looks at texts grows with their length: ``python benchmarks/text_growth.py [SHAPE…]``.

For each shape of text, and for the comparison and each detector: the processor time on 80 kB by that on
10 kB. Linear is 8; a square would be 64. Exit code 1 if a line is above ``MOST`` and not quick all the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from agenteval.core.needles import contains, fold, found, mentions, starred
from agenteval.core.speech import spoken
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn
from agenteval.scoring.detectors.conversation import Conversation
from agenteval.scoring.detectors.table import DETECTORS

SHORT, LONG = 10_000, 80_000
MOST = 20.0
QUICK_S = 0.2
"""What takes no longer than this on 80 kB needs no ratio."""

SHAPES = {
    "blanks": " ",
    "lines": "\n",
    "letters": "a",
    "words": "refund ",
    "sentences": "Your order ORD-42 was shipped on 3 May. ",
    "digits": "1",
    "groups": "1,000,",
    "list": "1,",
    "spaced": "100 ",
    "points": "1.",
    "percent": "%",
    "shares": "5% ",
    "money": "$25.50 ",
    "codes": "BK-7 ",
    "quotes": '"',
    "apostrophes": "'",
    "stars": "*",
    "emphasis": "**a**b",
    "underscores": "a_",
    "ticks": "`",
    "braces": "{",
    "objects": '{"a": ',
    "brackets": "[",
    "pairs": "()",
    "thoughts": "<think>",
    "thoughts, closed": "<think></think>",
    "ends of thoughts": "</think>",
    "tags": "<a",
    "marks": "\u0301",
    "marks in disorder": "\u0301\u0316",
    "marked letters": "e\u0301",
    "zero width": "\u200b",
    "hyphens": "-",
    "signs": "-5",
    "dots": ".",
    "slashes": "/",
    "at": "a@",
    "addresses": "a@b.de ",
    "links": "http://",
    "backslashes": "\\",
    "hex": "deadbeef",
    "colons": "1:",
    "dates": "2026-05-03 ",
    "Japanese": "日本",
    "emoji": "😀",
}


def of_length(shape: str, length: int) -> str:
    return (shape * (length // len(shape) + 1))[:length]


def compared(text: str) -> None:
    for needle in ("never said", "25", "$25.50", "1,234", "a*", "\\*", "5%"):
        contains(text, needle)
        mentions(text, needle)
    starred(text, "never")
    found("never … said", text)
    fold(text)
    spoken(text)


def conversation(said: str, heard: str = "") -> Conversation:
    """``said`` is the answer; ``heard`` is what the user says, and in the result of a call."""
    value = {"note": heard or said[:200], "price": 5}
    call = ToolCall(name="look", args={"id": said[:200]}, result=ToolResult(value=value))
    steps = (Step(text="I will look.", tool_calls=(call,)), Step(text=said))
    first = Turn(user=heard or "Please refund ORD-42, it was 5 %.", steps=steps)
    return Conversation.of(Trajectory(turns=(first, Turn(user="Thanks.", steps=(Step(text="Done."),)))))


def looks() -> dict[str, Callable[[str], object]]:
    def said(name: str) -> Callable[[str], object]:
        return lambda text: list(DETECTORS[name].find(conversation(text)))

    def heard(name: str) -> Callable[[str], object]:
        answer = "Your order ORD-42 of $25.50 was shipped on 4 May, and 7 % refunded."
        return lambda text: list(DETECTORS[name].find(conversation(answer, text)))

    found: dict[str, Callable[[str], object]] = {"comparison": compared}
    found |= {name: said(name) for name in DETECTORS}
    return found | {f"{name}, heard": heard(name) for name in DETECTORS}


def taken(look: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    look(text)
    return time.process_time() - begun


def main(names: list[str]) -> int:
    worst = 0
    for look in looks().values():
        look("Your order ORD-42 of $25.50 was shipped.")  # what is made once
    for shape, unit in SHAPES.items():
        if names and shape not in names:
            continue
        for name, look in looks().items():
            short, long = (taken(look, of_length(unit, length)) for length in (SHORT, LONG))
            ratio = long / max(short, 1e-6)
            if long > QUICK_S:
                is_bad = ratio > MOST
                worst += is_bad
                print(
                    f"{shape:18} {name:26} {short:8.3f} s {long:8.3f} s  × {ratio:5.1f}{'  !' * is_bad}",
                    flush=True,
                )
    print(f"{worst} above × {MOST:g}")
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
