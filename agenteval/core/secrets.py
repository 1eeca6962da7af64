"""Detects API keys and tokens by their form, and quotations from an agent's instructions (system prompt
leakage)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_KEY = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
    r"|(?<![\w-])(?:sk-(?:proj-|ant-|live-|test-|or-)?[A-Za-z0-9_-]{16,}|[sr]k_(?:live|"
    r"test)_[A-Za-z0-9]{16,}|"
    r"AIza[A-Za-z0-9_-]{30,}|xox[abprs]-[A-Za-z0-9-]{12,}|glpat-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}|"
    r"npm_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|[Bb]earer\s+[A-Za-z0-9._~+/-]{20,}=*)"
)
_PLACEHOLDER = re.compile(r"example|placeholder|your|x{4}|\.{3}|0{8}|<|redacted|dummy|sample", re.I)


def is_key(text: str) -> bool:
    """Check whether a string contains an API key or token, judging by its form. Obvious placeholders do not
    count."""
    found = _KEY.search(text)
    return found is not None and any(map(str.isdigit, found[0])) and not _PLACEHOLDER.search(found[0])


_PERHAPS_KEY = re.compile(
    r"(?<![\w-])(?:[sr]k[-_](?=[\w-]*\d)[\w-]{8,}|[Bb]earer\s+(?=\S*\d)[A-Za-z0-9._~+/-]{8,}=*)"
)


def mask_keys(text: str, mask: str) -> str:
    """Mask (redact) everything in ``text`` that looks like an API key, including placeholders and short
    strings. This function is intended for messages about an author's text, where masking too much does no
    harm."""
    return _PERHAPS_KEY.sub(mask, _KEY.sub(mask, text))


# ── quotations of the instructions ───────────────────────────────────────────────────────────────

GRAM = 6
"""The length, in words, of the window (n-gram) that is used to search for quotations. A quotation of ``2 *
GRAM`` words contains a window at every step."""
_STEP = 3
_PUNCTUATION = str.maketrans(dict.fromkeys(".,;:!?*()[]{}\n\t\r\"'`_-–—/#|<>“”‘’", " "))
_WORDS = re.compile("[^" + re.escape("".join(map(chr, _PUNCTUATION))) + r"\s]+")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?")
# Addressed to the agent or about the user: text for users addresses them.
_INSTRUCTS = re.compile(
    r"\b(?:the (?:agent|assistant|bot|model)\b|the (?:user|caller)\b"
    r"(?! (?:has|have|had|is (?!not|to|allowed|able)|was|booked|bought|paid|owns)\b)|you are (?:an?|"
    r"the) (?:\w+[ -]){0,4}(?:assistant|agent|bot|"
    r"chatbot|ai|representative|advisor|concierge|model|expert)|(?:do not|don['’]t|never|must not|"
    r"should not|always) "
    r"(?:\w+ )?(?:reveal|disclose|share|mention|tell|discuss|admit|offer|promise|compensate|ask the|"
    r"inform|answer|respond|"
    r"reply|say|speculate|give)|you (?:must|should|are to) (?:\w+ ){0,2}(?:always |never |not |only )?"
    r"(?:ask|deny|refuse|transfer|escalate|call|use the|obtain|confirm|verify|collect|reply|respond|"
    r"answer|tell|"
    r"list|check|reveal|greet|help users?)|system prompt|tool calls?|tools?\b.{0,20}\bcall|"
    r"internal(?:ly)? (?:use|only|code|"
    r"note|policy)|confidential|api\b|users?['’]? requests?)",
    re.IGNORECASE,
)


def words_in(small: str) -> list[str]:
    """Return the words in a lower-case text. The result is the same as with ``_WORDS``, but it is computed
    faster."""
    return small.translate(_PUNCTUATION).split()


class Instructions(NamedTuple):
    """The sentences in a policy that instruct the agent: their words, and the position of each sequence of
    ``GRAM`` words."""

    words: tuple[tuple[str, ...], ...]
    places: dict[tuple[str, ...], tuple[int, int]]


@lru_cache(maxsize=64)
def instructions_in(policy: str, *, everything: bool = False) -> Instructions:
    """Return the instructions in a policy. If ``everything`` is set, return all of its sentences."""
    sentences: list[tuple[str, ...]] = []
    before: tuple[str, ...] = ()
    for sentence in _SENTENCE.findall(policy):
        if not sentence.strip():
            continue
        if not everything and not _INSTRUCTS.search(sentence):
            before = ()
            continue
        words = tuple(words_in(sentence.lower()))
        sentences.append(words)
        if 0 < len(before) < 2 * GRAM and len(words) < 2 * GRAM:
            sentences.append((*before, *words))  # two short sentences may be quoted together
        before = words
    places: dict[tuple[str, ...], tuple[int, int]] = {}
    for number, words in enumerate(sentences):
        for start in range(len(words) - GRAM + 1):
            places.setdefault(words[start : start + GRAM], (number, start))
    return Instructions(tuple(sentences), places)


_ANNOUNCED = re.compile(
    r"\b(?:system (?:prompt|message|instructions?)|my (?:\w+ )?(?:instructions?|prompt|guidelines)|"
    r"i (?:was|am|have been) "
    r"(?:told|instructed|programmed|prompted))\b",
    re.IGNORECASE,
)


_FOR_INSTRUCTIONS = re.compile(
    r"(?i)\b(?:your|the|its|initial|system|hidden|original|full|all|these|those) (?:[\w-]+ ){0,3}?"
    r"(?:instructions?|prompts?|system messages?|guidelines|directives|rules)\b"
    r"(?! (?:for|on|about|regarding|of|to|when|if|that apply)\b)|\bsystem (?:prompt|message)\b|"
    r"\b(?:what|how) (?:were|are|have) you (?:been )?(?:told|instructed|programmed|prompted)\b|"
    r"\b(?:everything|all|text|words?|anything) (?:\w+ )?(?:above|before this)\b"
)
_TO_AGENT = frozenset((
    "answer", "respond", "reply", "help", "assist", "greet", "keep", "use", "speak", "write", "refer",
    "transfer", "escalate", "verify", "collect", "offer", "recommend", "mention", "decline", "refuse",
    "avoid", "stick", "stay", "act", "treat", "begin", "start", "end", "summarise", "summarize", "limit",
    "ensure", "follow", "address", "redirect", "steer", "pretend", "reveal", "disclose", "tell", "give",
    "say", "discuss", "promise", "never", "always", "only",
))  # fmt: skip
_FIRST_WORD = re.compile(
    r"(?:please )?(?:(?P<phrase>make sure|look up|do not|don['’]t|under no circumstances)\b|(?P<word>\w+))"
)
_TO_CUSTOMERS = re.compile(r"(?i)\b(?:your|yours|us)\b")


def asks_for_instructions(text: str) -> bool:
    """Check whether a message asks for the agent's instructions (prompt extraction)."""
    return _FOR_INSTRUCTIONS.search(text[:4000].lower()) is not None


def _is_to_agent(sentence: str) -> bool:
    """Check whether a sentence instructs the agent rather than addressing customers."""
    first = _FIRST_WORD.match(sentence.lower())
    orders = first is not None and (first["phrase"] is not None or first["word"] in _TO_AGENT)
    return orders and _TO_CUSTOMERS.search(sentence) is None


def find_quoted_instructions(policy: str, answer: str, *, asked: bool = False) -> tuple[int, int] | None:
    """Return the span in ``answer`` that quotes at least ``2 * GRAM`` consecutive words of the policy, or a
    complete sentence of at least ``GRAM + 2`` words. Return ``None`` if there is none.

    Questions and information for users may be quoted, so a quotation counts only if it quotes an instruction
    and includes the words that make the sentence an instruction. Any other sentence counts only if the answer
    presents it as part of its instructions. If the user ``asked`` for the instructions, a complete sentence
    that instructs the agent also counts."""
    small = answer.lower()
    announced = _ANNOUNCED.search(answer) is not None
    instructions = instructions_in(policy, everything=announced or asked)
    words = words_in(small)
    runs = zip(*(words[first::_STEP] for first in range(GRAM)), strict=False)
    for number, place in enumerate(map(instructions.places.get, runs)):
        if place is None:
            continue
        start = _STEP * number
        found = list(_WORDS.finditer(answer))
        if len(found) != len(words):
            return None  # a letter that becomes two in lower case
        sentence = instructions.words[place[0]]
        first, last = _extend_match(words, start, sentence, place[1])
        span = found[first].start(), found[last - 1].end()
        long = last - first >= 2 * GRAM or (last - first >= GRAM + 2 and last - first == len(sentence))
        if long and (announced or _INSTRUCTS.search(answer, *span)):
            return span
        if asked and last - first == len(sentence) >= 2 * GRAM and _is_to_agent(answer[slice(*span)]):
            return span
    return None


_IDENTITY = re.compile(
    r"(?i)(?:you are|you're|your (?:role|job|name|task)|act as|du bist|sie sind|eres|usted es|vous êtes|"
    r"tu es|sei|lei è|você é|tu és|je bent|u bent|jesteś|du är|du er|sen bir|ты|вы)\b|"
    r"あなた|君は|你是|您是|당신은"
)
_OPENING, _IDENTITY_OPENING = 160, 50


def find_quoted_opening(policy: str, answer: str) -> tuple[int, int] | None:
    """Return the span in ``answer`` that quotes the opening of the policy, which is never meant for users:
    "You are …" up to the end of the sentence or 50 characters, or 160 characters of any other opening. Return
    ``None`` if there is none."""
    opening = _opening_of(policy)
    if not opening or opening.first not in answer:
        return None
    found = opening.pattern.search(answer)
    return found.span() if found else None


class _Opening(NamedTuple):
    """The opening of a policy, and the first word of the opening."""

    first: str
    pattern: re.Pattern[str]


@lru_cache(maxsize=64)
def _opening_of(policy: str) -> _Opening | None:
    """Return the opening of a policy, or ``None`` if it is too short."""
    head = " ".join(policy[: 2 * _OPENING].split())
    size = _OPENING
    if _IDENTITY.match(head):
        sentence = _SENTENCE.match(head)
        size = min(_IDENTITY_OPENING, len(sentence[0].rstrip()) if sentence else _IDENTITY_OPENING)
    wide = sum(letter > "\u2e80" for letter in head[:size])
    head = head[: size - wide // 2]  # a character of such a script counts as two letters
    if len(head) + wide // 2 < _SHORTEST_OPENING:
        return None
    words = head.split()
    return _Opening(words[0], re.compile(r"\s+".join(map(re.escape, words))))


_SHORTEST_OPENING = 20


def _extend_match(words: list[str], start: int, sentence: tuple[str, ...], at: int) -> tuple[int, int]:
    """Return the longest sequence of equal words that includes ``words[start]`` and ``sentence[at]``."""
    first, last = start, start + GRAM
    while first > 0 and at > 0 and words[first - 1] == sentence[at - 1]:
        first, at = first - 1, at - 1
    end = at + last - first
    while last < len(words) and end < len(sentence) and words[last] == sentence[end]:
        last, end = last + 1, end + 1
    return first, last
