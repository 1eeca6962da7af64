"""Detect content that a model playing the user writes but that no real user would write: thoughts, stage
directions, an empty answer.

Detection is based only on form, never on the meaning of sentences. A form that a user might use (a tag in a
question about HTML) counts as the user's own if the scenario or the agent also used it."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

from agenteval.core.folding import fold

ENOUGH_WORDS = 8
"""The minimum length of the model's reason, in words. A message that contains such a reason in full counts as
thinking aloud."""

# ── empty answers ────────────────────────────────────────────────────────────────────────────────

_NULL_WORDS = frozenset(("null", "undefined", "nil", "nan", "void", "eos", "eof", "eot"))
"""Program keywords that do not form a message on their own."""
_NULL_REPLIES = frozenset((
    *("empty", "blank", "silence", "no message", "no reply", "no response", "no further messages"),
    *("empty message", "empty string", "blank message", "end of conversation", "conversation ended"),
    *("end conversation", "conversation over"),
))  # fmt: skip
"""Words that do not form a message on their own, unless the agent has asked a question."""
_NULL_ENDINGS = frozenset((
    *("none", "nothing", "n a", "na", "end", "the end", "done", "stop", "exit", "quit", "finished"),
    *("terminate", "true", "false"),
))  # fmt: skip
"""Words that do not form a message on their own when the user is done."""
_WRAPPING = "[<{|#=-"
"""Marks around a placeholder. Brackets around a remark and marks for emphasis are excluded, because their
content may be intended as a message."""
_MOST_WRAPPED = 4
"""The maximum number of words that form a placeholder when they are enclosed in a pair of marks. With more
words, the text is a stage direction."""
_ESCAPES = re.compile(r"(?:\\(?:[nrtbf0]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}))+")
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"


def is_empty_message(message: str, *, answer: str, done: bool, short_answers: Iterable[str] = ()) -> bool:
    """Check whether a message is empty or is a placeholder for an empty message. ``answer`` is the agent's
    text that precedes it. Strings in ``short_answers`` always count as messages, regardless of what surrounds
    them."""
    text = html.unescape(_ESCAPES.sub(" ", message))
    if not any(map(_is_seen, text)):
        return True
    words = " ".join(_words(fold(text)))
    if not words:
        return not any(char in "?!¿¡؟？！" or unicodedata.category(char) == "So" for char in text)
    if words in short_answers:
        return False
    if words in _NULL_WORDS or (_is_wrapped(text.strip()) and words.count(" ") < _MOST_WRAPPED):
        return True
    stands_for_nothing = words in _NULL_REPLIES or (done and words in _NULL_ENDINGS)
    is_marked = text.strip()[0] in "(*_~"
    return stands_for_nothing and (is_marked or "?" not in answer)


def _is_seen(char: str) -> bool:
    return unicodedata.category(char)[0] not in "CZM" and char not in _BLANK_LETTERS


def _is_wrapped(text: str) -> bool:
    """Check whether the entire text is enclosed in one pair of marks and contains words rather than only
    numbers, such as ``[END]``, ``<eos>`` or ``###STOP###``."""
    found = _MARKED.fullmatch(text)
    if found is None or not any(map(str.isalpha, found[2])):
        return False
    return found[3].endswith(found[1][::-1].translate(_CLOSING))


_MARKED = re.compile(rf"([{re.escape(_WRAPPING)}]+)\s*([^\[\]<>{{}}()*~|#\n]+?)\s*([\]>}})*_~|#=.-]+)")
_CLOSING = str.maketrans("[<{(", "]>})")


# ── thinking aloud ───────────────────────────────────────────────────────────────────────────────

_THOUGHT = (
    r"think(?:ing|s)?|thoughts?|reasoning|reflect(?:ion|ing)|analysis|scratchpad|monologue|deliberation|cot"
    r"|(?:inner|internal)[ _-]?(?:monologue|thoughts?|dialogue)|chain[ _-]of[ _-]thought"
)
_TAG = re.compile(
    r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>|<\|[^<>|]*\|>|<!--.*?-->|\[/?[A-Za-z][\w -]*\]|\{\{?[^{}\n]*\}\}?"
    r"|[◁⟨【〖][^▷⟩】〗\n]*[▷⟩】〗]|<<[^<>\n]*>>",
    re.DOTALL,
)
_FENCE = re.compile(rf"^\s*(?:```|~~~)\s*(?:{_THOUGHT})\b", re.IGNORECASE | re.MULTILINE)
_HEAD = re.compile(rf"^\W{{0,4}}(?:{_THOUGHT})\W{{0,4}}:", re.IGNORECASE | re.MULTILINE)
_KEY = re.compile(
    r"^\W{0,4}(reason|unknown|invented|allowed_by|message|done)\W{0,4}:", re.IGNORECASE | re.MULTILINE
)
_IN_MARKS = r"(?:\((?=[^()\n]*[^\W\d_]\s)[^()\n]*\)|\*(?!\*)[^*\n]+\*(?!\*)|_(?!_)[^_\n]+_)"
_DIRECTION = re.compile(rf"\A\s*{_IN_MARKS}(?=\s|\Z)|(?:[.!?…]\s+|\n\s*)\*(?!\*)[^*\n]+\*(?!\*)\s*\Z")
"""A stage direction: text in marks of its own, either at the beginning or as the entire message, or a
description of the user's actions at the end."""


def find_thought(message: str, *, reason: str, known: Iterable[str]) -> str:
    """Return the part of a message that no user would say aloud (leaked reasoning or stage directions), as
    written. Return an empty string if there is none. ``reason`` is the model's own reason. ``known`` contains
    the texts that the scenario and the agent wrote."""
    for form in (_FENCE, _HEAD, _DIRECTION):
        if found := form.search(message):
            return found[0].strip()
    if len({found[1].lower() for found in _KEY.finditer(message)}) > 1:
        return "the form of the answer"
    written = "\n".join(known)
    if tag := next((found[0] for found in _TAG.finditer(message) if found[0] not in written), ""):
        return tag
    return _find_repeated_reason(reason, message)


def _find_repeated_reason(reason: str, message: str) -> str:
    """Return the model's reason if the message contains both the reason and additional text."""
    words, spoken = list(_words(reason)), list(_words(message))
    is_there = f" {' '.join(words)} " in f" {' '.join(spoken)} "
    return reason.strip() if is_there and ENOUGH_WORDS <= len(words) < len(spoken) else ""


def _words(text: str) -> Iterator[str]:
    yield from re.findall(r"\w+", text.casefold())
