"""The same again, although the user had said something else, or twice in one answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from agenteval.detectors.again import asks_again, did_not_understand, gave_nothing
from agenteval.detectors.conversation import Conversation, Proof
from agenteval.detectors.parts import parts_of
from agenteval.detectors.verbs import KINDS_OF
from agenteval.expressions import expression

MIN_CHARACTERS = 40
"""Of an answer, without spaces at its ends, that counts when it is said again."""
NEARLY = 0.95
"""The share of an answer's words that must be the same, with all its names and figures, to be said again."""


class _Said(NamedTuple):
    """An answer that was given."""

    turn: int
    text: str
    words: tuple[str, ...]
    different: frozenset[str]


def repetition(conversation: Conversation) -> Iterator[Proof]:
    """An answer that says an earlier one again, word for word or nearly, be it with something put before or
    behind it, although the user said something else; or a paragraph that is in one answer twice, or a
    sentence three times. Greetings and closings are let pass."""
    said: list[_Said] = []
    for number, turn in enumerate(conversation.turns):
        answer = turn.answer
        text = answer.strip()
        if len(text) < MIN_CHARACTERS:
            continue
        if len(text) >= 2 * MIN_DOUBLED and (span := _passage_again(answer)):
            why = "the same passage more than once in one answer"
            yield Proof(number, None, answer[span[0] : span[1]], why, span)
        now = _Said(number, text, *parts_of(answer))
        fewest, most = 0.36 * len(now.words), 1.2 * len(now.words)
        earlier = next(
            (each for each in said if fewest < len(each.words) < most and _is_again(each, now)), None
        )
        if (
            earlier is not None
            and not _asked_again(conversation, earlier.turn, number)
            and not _is_courtesy(answer)
            and not gave_nothing(turn.user, answer)
        ):
            why = f"says again what it said in turn {earlier.turn + 1}, although the user said something else"
            yield Proof(number, None, answer, why, (0, len(answer)))
        said.append(now)


def _is_again(earlier: _Said, now: _Said) -> bool:
    """What is nearly the same has nearly the same words, and as many: that is quick to see."""
    one, other = len(earlier.words), len(now.words)
    as_long = abs(one - other) <= 0.1 * max(one, other)
    longer = len(earlier.text) >= MIN_WITHIN and one <= other <= one / MOST_OF_IT
    if not (as_long or longer):
        return False
    mine, theirs = len(earlier.different), len(now.different)
    same = len(earlier.different & now.different)
    if as_long and mine + theirs - 2 * same <= 0.2 * other and _is_same(earlier, now):
        return True
    return longer and same >= 0.9 * mine and _is_within(earlier.text, now.text)


MIN_WITHIN = 60
"""Characters of an earlier answer that counts when it is a part of a longer one."""
MOST_OF_IT = 0.4
"""The least share of the longer answer, in words, that the earlier one makes."""


def _is_within(earlier: str, now: str) -> bool:
    """Whether all of ``earlier`` is in ``now``, but for an opening or a closing of its own."""
    if earlier in now:
        return True
    parts = [part.strip() for part in _parts(earlier) if len(part) >= 20]
    again = sum(len(part) for part in parts if part in now)
    return again >= MIN_WITHIN and again >= 0.9 * len(earlier)


def _parts(text: str) -> list[str]:
    """Its sentences and lines, without their ends."""
    text = (
        text.rstrip(".!? \n").replace(".\n", ". ").replace("\n", ". ").replace("! ", ". ").replace("? ", ". ")
    )
    return (text if text.isascii() else text.replace("。", ". ")).split(". ")


_WORD = expression(r"\w+")


def _is_same(earlier: _Said, now: _Said) -> bool:
    one, other = earlier.words, now.words
    larger = max(len(one), len(other))
    if min(len(one), len(other)) < NEARLY * larger:
        return False
    if one == other:
        return True
    mine, theirs = Counter(earlier.text.split()), Counter(now.text.split())
    differing = [word for word in ((mine - theirs) + (theirs - mine)) if not word.islower()]
    return not differing and (mine & theirs).total() >= NEARLY * larger


def _asked_again(conversation: Conversation, earlier: int, number: int) -> bool:
    """Whether the user asked for the same: to have it once more, or in much the same words."""
    one, other = (conversation.turns[turn].user.lower() for turn in (earlier, number))
    if asks_again(other[:500]) or did_not_understand(other[:500]):
        return True
    mine, theirs = (frozenset(word for word in _WORD.findall(text) if len(word) > 3) for text in (one, other))
    return one == other or _asks_alike(mine, theirs)


def _asks_alike(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether the words of two messages are so much the same that the second insists on what the first asked.
    A word or two in common may only be what both speak of: "enough days?", "are the days lost if I am ill?"
    """
    same, (fewer, more) = mine & theirs, sorted((len(mine), len(theirs)))
    if len(same) <= 0.4 * max(1, fewer):
        return False
    return len(same) >= 0.6 * fewer or len(same) > max(2, 0.3 * more) or not same.isdisjoint(KINDS_OF)


_COURTEOUS = expression(
    r"you(?:'re|’re| are)(?: very| most)? welcome|welcome|have a (?:great|nice|good|wonderful|lovely|"
    r"fantastic|safe|pleasant)"
    r"|anything else|further (?:assistance|questions|help)|feel free|(?:how|what) can i (?:help|assist)|"
    r"thank(?:s| you)|"
    r"glad|happy to|(?:good)?bye|take care|safe travels|enjoy|reach out|any (?:other )?questions|hello|"
    r"hi\b|assist you",
    re.IGNORECASE,
)
_SENTENCE = expression(r"[^.!?\n。！？]+[.!?。！？]*")


def _is_courtesy(answer: str) -> bool:
    """Whether each sentence is one that is said to everybody."""
    if len(answer) > 300:
        return False
    sentences = [sentence for sentence in _SENTENCE.findall(answer) if _WORD.search(sentence)]
    return all(_COURTEOUS.search(sentence) for sentence in sentences)


def _passage_again(answer: str) -> tuple[int, int] | None:
    """Where a passage stands in the answer once more. Most answers have no part twice, which
    is quick to see."""
    parts = _parts(answer)
    if len(parts) == len(set(parts)):
        return None
    seen, twice = set(), 0
    for part in parts:
        twice += len(part) if part in seen else 0
        seen.add(part)
    return (_thrice(answer) or _doubled(answer)) if twice >= MIN_DOUBLED - 10 else None


def _thrice(answer: str) -> tuple[int, int] | None:
    """Where a sentence begins that stands in the answer for the third time."""
    seen: Counter[str] = Counter()
    for found in _SENTENCE.finditer(answer):
        text = found[0].strip().lower()
        if len(text) < MIN_CHARACTERS or text[-1] not in ".!?。！？" or text[0] in "-*|•#>`":
            continue
        seen[text] += 1
        if seen[text] == 3:
            return found.end() - len(found[0].lstrip()), found.end()
    return None


def _doubled(answer: str) -> tuple[int, int] | None:
    """Where a paragraph of one line stands in the answer for the second time, or two sentences that follow
    each other do. Not the lines of lists and tables."""
    text = answer.strip()
    half = len(text) // 2
    if _END.search(text, 0, half - 1) and text[:half].split() == text[half:].split():
        return answer.index(text) + half, answer.index(text) + len(text)
    return _line_twice(answer) or _twice(answer)


def _line_twice(answer: str) -> tuple[int, int] | None:
    """A line of prose, or three lines of any kind that follow each other."""
    found = [line for line in _LINE.finditer(answer) if line[0].strip()]
    texts = [line[0].strip() for line in found]
    seen: set[object] = set()
    for at, text in enumerate(texts):
        block = tuple(texts[at : at + 3])
        long = len(block) == 3 and sum(map(len, block)) >= 2 * MIN_DOUBLED
        for key, last in ((text, at), (block, at + 2)):
            if key is text and (len(text) < MIN_DOUBLED or not _is_prose(text)):
                continue
            if key is block and not long:
                continue
            if key in seen:
                start, end = found[at].start(), found[last].start()
                return start + found[at][0].index(text), end + found[last][0].index(texts[last]) + len(
                    texts[last]
                )
            seen.add(key)
    return None


def _twice(answer: str) -> tuple[int, int] | None:
    found = [each for each in _SENTENCE.finditer(answer) if _WORD.search(each[0])]
    pairs: set[tuple[str, str]] = set()
    for one, other in pairwise(found):
        first, second = one[0].strip(), other[0].strip()
        if len(first) + len(second) < MIN_DOUBLED or not (_is_prose(first) and _is_prose(second)):
            continue
        if (first, second) in pairs:
            return one.start() + one[0].index(first), other.start() + other[0].index(second) + len(second)
        pairs.add((first, second))
    return None


_END = expression(r"[.!?]\s|\n|[。！？]")
MIN_DOUBLED = 60
"""Characters of a paragraph, or of two sentences, that count when they are in an answer twice."""
_LINE = expression(r"[^\n]+")


def _is_prose(text: str) -> bool:
    return text[-1] in ".!?:。！？" and not (text[0] in "-*|•#>`" or text[0].isdigit())
