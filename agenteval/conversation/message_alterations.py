"""Alters user messages as people do who type in a hurry, paste text or get to the point late
(``run --variants``). Pure: the same message and the same draws give the same result.

A message means the same afterwards. What carries a value (``agenteval.core.protected_text``) is never
altered, and a message that can only be altered by altering that is returned as it is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from random import Random
from typing import NamedTuple, TypeAlias

from agenteval.core.protected_text import Span, is_value_word, protected_spans
from agenteval.core.scenario import MessageVariantKind

_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


class _Message(NamedTuple):
    """A message, and what may be altered in it."""

    text: str
    spans: tuple[Span, ...]
    """The parts that stay as they are."""

    @property
    def gaps(self) -> Iterator[Span]:
        """The parts between those that stay as they are."""
        at = 0
        for start, end in self.spans:
            yield at, start
            at = end
        yield at, len(self.text)

    @property
    def words(self) -> list[Span]:
        """The places of the ordinary words."""
        return [match.span() for gap in self.gaps for match in _LETTERS.finditer(self.text, *gap)]

    def replace(self, changes: Mapping[Span, str]) -> str:
        """Return the text with other words."""
        parts, at = [], 0
        for (start, end), word in sorted(changes.items()):
            parts += [self.text[at:start], word]
            at = end
        return "".join((*parts, self.text[at:]))


_Alteration: TypeAlias = Callable[[_Message, Random], str]


def alter_message(text: str, kind: MessageVariantKind, draws: Random, values: Collection[str] = ()) -> str:
    """Return the message as this kind of variant has it, or as it is if it cannot be altered. ``values`` are
    words and texts, in lower case, that stay as they are. A message that is one of them stays as a whole. A
    paraphrase is written by an author, not made here."""
    if not text.strip() or text.strip().lower() in values:
        return text
    return _ALTERATIONS[kind](_Message(text, protected_spans(text, values)), draws)


# ── typos ────────────────────────────────────────────────────────────────────────────────────────

_SHORTEST_WITH_TYPO = 4
_MOST_TYPOS = 3


def _make_typos(message: _Message, draws: Random) -> str:
    """Misspell one to three words. A capital letter may begin a name, which is no ordinary word."""
    text = message.text
    words = [
        span
        for span in message.words
        if span[1] - span[0] >= _SHORTEST_WITH_TYPO
        and text[slice(*span)].isalpha()
        and text[slice(*span)].islower()
    ]
    count = min(len(words), draws.randint(1, _MOST_TYPOS))
    chosen = sorted(draws.sample(words, count))
    misspelt = {span: _misspell(text[slice(*span)], draws) for span in chosen}
    # A misspelling may be a number: `three` for `there`.
    return message.replace({span: word for span, word in misspelt.items() if not is_value_word(word)})


def _misspell(word: str, draws: Random) -> str:
    """Swap two letters, or leave one out, or write one twice; never the first. In short words, a missing or
    swapped letter would often make another word."""
    at = draws.randrange(1, len(word))
    swaps = [place for place in range(1, len(word) - 1) if word[place] != word[place + 1]]
    ways = ["double"]
    ways += ["swap"] if len(word) >= _SHORTEST_WITH_TYPO + 1 and swaps else []
    ways += ["drop"] if len(word) >= _SHORTEST_WITH_TYPO + 2 else []
    match draws.choice(ways):
        case "swap":
            place = draws.choice(swaps)
            return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        case "drop":
            return word[:at] + word[at + 1 :]
        case _:
            return word[:at] + word[at] + word[at:]


# ── case ─────────────────────────────────────────────────────────────────────────────────────────


def _change_case(message: _Message, draws: Random) -> str:
    made = [
        message.replace({span: change(message.text[slice(*span)]) for span in message.words})
        for change in draws.sample((str.lower, str.upper), 2)
    ]
    return next((text for text in made if text != message.text), message.text)


# ── noise ────────────────────────────────────────────────────────────────────────────────────────

_BEFORE = (
    "uh, sorry, one moment — ",
    "hello?? ",
    "so, um, ",
    "hmm, let me see... ",
    "(sorry, typing on my phone) ",
    "\n\n  ",
)
_BEHIND = ("\n\n\n", "\n\nuh, sorry, my phone", "  ...", "\n\n!!!", "\n\n\nhmm")


def _add_noise(message: _Message, draws: Random) -> str:
    before, behind = draws.choice(_BEFORE), draws.choice(_BEHIND)
    where = draws.choice(("before", "behind", "around"))
    text = message.text if where == "behind" else before + message.text
    return text if where == "before" else text + behind


# ── reordered ────────────────────────────────────────────────────────────────────────────────────

_END = re.compile(r"[.!?…。！？]+[)\"”’»']*\s+")
_QUESTION_MARKS = ("?", "？")
_MARKS = (".", "!", "…", "。", "！", *_QUESTION_MARKS)
_ABBREVIATIONS = _word_set(
    "mr mrs ms dr prof st no nr e.g i.e etc vs approx ca bzw z.b d.h u.s a.m p.m inc ltd jr sr tel"
)
_DEPENDENT = _word_set(
    "then so but and or it its that this those these they them he she his her him also otherwise instead if"
    " else after afterwards before next finally first second secondly third lastly because since therefore"
    " however still again besides yes yeah yep no nope ok okay sure right correct exactly neither nor too"
    " same such both one ones there here which who unless until when once even"
    " dann danach und oder aber es das dies sie er ihn auch sonst stattdessen zuerst zuletzt wenn falls ja"
    " nein"
)
"""Words that make a sentence depend on the one before it."""
_SEQUENCING = _word_set(
    "then otherwise instead if else after afterwards before next finally first second secondly third lastly"
    " unless until once dann danach sonst stattdessen zuerst zuletzt wenn falls"
)
"""Words that give the order of sentences a meaning."""


def _reorder(message: _Message, draws: Random) -> str:
    """Put the questions in front of the statements, or behind them. Without a question, sentences change
    places only if none depends on another."""
    sentences = _sentences(message)
    if len(sentences) < 2:
        return message.text
    questions = [each for each in sentences if _ends_with(each, _QUESTION_MARKS)]
    others = [each for each in sentences if each not in questions]
    orders: list[tuple[str, ...]] = []
    if questions and others and not any(map(_follows_another, sentences)):
        orders = [(*questions, *others), (*others, *questions)]
    elif not questions and not any(map(_has_dependent_word, sentences)):
        orders = [(*sentences[at:], *sentences[:at]) for at in range(1, len(sentences))]
    orders = [order for order in orders if order != tuple(sentences)]
    return " ".join(draws.choice(orders)) if orders else message.text


def _sentences(message: _Message) -> list[str]:
    """Split a message of one paragraph. One with lines, such as a list, is a single piece."""
    text = message.text.strip()
    if "\n" in text:
        return [text]
    offset = len(message.text) - len(message.text.lstrip())
    spans = [(start - offset, end - offset) for start, end in message.spans]
    found, at = [], 0
    for match in _END.finditer(text):
        end = match.end()
        is_inside = any(start < match.end() and match.start() < stop for start, stop in spans)
        if end == len(text) or is_inside or text[end].islower() or _is_abbreviation(text[at : match.start()]):
            continue
        found.append(text[at:end].rstrip())
        at = end
    last = text[at:]
    # A sentence without an end would run into the next one.
    return [*found, last] if _ends_with(last, _MARKS) else [text]


def _ends_with(sentence: str, marks: tuple[str, ...]) -> bool:
    return sentence.rstrip(")\"”’»'").endswith(marks)


def _is_abbreviation(before: str) -> bool:
    words = before.split()
    word = words[-1].strip("(\"'“‘").casefold() if words else ""
    return word in _ABBREVIATIONS or len(word) == 1


def _words_of(sentence: str) -> list[str]:
    return [re.split("['’]", word.casefold())[0] for word in _LETTERS.findall(sentence)]


def _follows_another(sentence: str) -> bool:
    words = _words_of(sentence)
    return not words or words[0] in _DEPENDENT or not _SEQUENCING.isdisjoint(words)


def _has_dependent_word(sentence: str) -> bool:
    words = _words_of(sentence)
    return not words or not (_DEPENDENT | _SEQUENCING).isdisjoint(words)


# ── unicode ──────────────────────────────────────────────────────────────────────────────────────

_FULL_WIDTH = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}
_LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ"}
_EMOJI = (" 🙂", " 🙏", " 😅", " ✨", " 👋🏽", " 🤷‍♀️")
_MOST_FULL_WIDTH = 2


def _vary_unicode(message: _Message, draws: Random) -> str:
    """Write the same characters in other forms, as text from a phone, a PDF or another keyboard has them."""
    text = message.text
    words = [span for span in message.words if text[slice(*span)].isascii() and text[slice(*span)].isalpha()]
    wide = draws.sample(words, min(len(words), draws.randint(1, _MOST_FULL_WIDTH)))
    changes = {span: _other_form(text[slice(*span)], is_wide=span in wide) for span in message.words}
    for gap in message.gaps:
        for space in re.finditer(r"(?<=[^\W\d_]) (?=[^\W\d_])", text[slice(*gap)]):
            if draws.random() < 0.3:
                changes[gap[0] + space.start(), gap[0] + space.end()] = "\u00a0"
    return message.replace(changes) + draws.choice(_EMOJI)


def _other_form(word: str, *, is_wide: bool) -> str:
    if is_wide:
        return word.translate(_FULL_WIDTH)
    for letters, ligature in _LIGATURES.items():
        word = word.replace(letters, ligature)
    decomposed = unicodedata.normalize("NFD", word)
    # What ligatures are made of comes back only with the compatible form.
    return decomposed.replace("'", "’")


# ── long ─────────────────────────────────────────────────────────────────────────────────────────

_LEAST_WORDS = 250
_STORY = (
    "It has been raining here since the early hours, and the street outside looks like a small river.",
    "My neighbour has been repainting the fence, and the whole garden smells of fresh paint.",
    "I was sitting in the kitchen with a cup of tea and watched the birds argue over a piece of bread.",
    "The train was crowded again, but somebody offered me a seat near the window, which was kind.",
    "We had friends over, and the table was so full of dishes that nobody could see the tablecloth.",
    "My sister has taken up pottery, and every shelf in her flat is now covered with crooked bowls.",
    "The cat has decided that the laundry basket is the best place in the house to sleep.",
    "There is a bakery around the corner that makes wonderful rye bread, and the queue is always long.",
    "I spent a while looking for my glasses, and of course they were on top of my head.",
    "The leaves are turning, and the park looks as if somebody had spilled a box of crayons over it.",
    "My grandmother used to say that patience is a kind of courage, and I think about that often.",
    "The radio was playing an old song, and I could not remember who used to sing it.",
    "Somebody in the building is learning the trumpet, and the progress is slow but audible.",
    "I have been reading a novel about a lighthouse keeper, and the descriptions of the sea are lovely.",
    "The soup turned out rather salty, but with enough bread nobody seemed to mind.",
    "Our old bicycle makes a strange noise whenever it goes uphill, and nobody can find out why.",
    "The children upstairs have built a castle out of boxes, with a flag made from a dish towel.",
    "There was a rainbow over the hills, and people on the pavement stopped to look at it.",
    "I tried to grow tomatoes on the balcony, and the wind had other ideas about it.",
    "The library has new chairs that are so comfortable that people fall asleep over their books.",
)
_BRIDGES = ("Anyway, here is why I am writing.", "But enough of that. This is what I wanted to say.")


def _add_preamble(message: _Message, draws: Random) -> str:
    """Put a long story in front, without numbers, names, questions or requests."""
    story: list[str] = []
    for sentence in draws.sample(_STORY, len(_STORY)):
        story.append(sentence)
        if sum(len(each.split()) for each in story) >= _LEAST_WORDS:
            break
    return f"{' '.join((*story, draws.choice(_BRIDGES)))}\n\n{message.text}"


_ALTERATIONS: Mapping[str, _Alteration] = {
    "typos": _make_typos,
    "case": _change_case,
    "noise": _add_noise,
    "reordered": _reorder,
    "unicode": _vary_unicode,
    "long": _add_preamble,
}
