"""What a model that plays the user writes and no user would say: thoughts, directions, an answer of nothing.

Read by its form alone, never by what its sentences mean. Where a form may be a user's own (a tag in a
question about HTML), it is one if the scenario or the agent wrote it, too.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

from agenteval.core.folding import fold

ENOUGH_WORDS = 8
"""Of the reason that the model gives beside its message: a message that holds all of it thinks aloud."""

# ── an answer of nothing ─────────────────────────────────────────────────────────────────────────

_NULL_WORDS = frozenset(("null", "undefined", "nil", "nan", "void", "eos", "eof", "eot"))
"""Words of programs: alone they are no message."""
_NULL_REPLIES = frozenset((
    *("empty", "blank", "silence", "no message", "no reply", "no response", "no further messages"),
    *("empty message", "empty string", "blank message", "end of conversation", "conversation ended"),
    *("end conversation", "conversation over"),
))  # fmt: skip
"""Alone they are no message, unless the agent has asked something."""
_NULL_ENDINGS = frozenset((
    *("none", "nothing", "n a", "na", "end", "the end", "done", "stop", "exit", "quit", "finished"),
    *("terminate", "true", "false"),
))  # fmt: skip
"""The same, of a user that is done."""
_WRAPPING = "[<{|#=-"
"""Not brackets of a remark, and no emphasis: what stands in those may be meant."""
_MOST_WRAPPED = 4
"""Words in one pair of marks that stand for nothing; more are a direction."""
_ESCAPES = re.compile(r"(?:\\(?:[nrtbf0]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}))+")
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"


def is_empty_message(message: str, *, answer: str, done: bool, short_answers: Iterable[str] = ()) -> bool:
    """Whether a message is empty, or stands for an empty one. ``answer``: what the agent said before it;
    ``short_answers``: short answers that are a message whatever stands around them."""
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
    """Whether all of it, words and not only numbers, stands in one pair of marks: ``[END]``, ``<eos>``,
    ``###STOP###``."""
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
"""What stands before all else, or is all, in marks of its own; and what an actor does at the end."""


def find_thought(message: str, *, reason: str, known: Iterable[str]) -> str:
    """What of a message no user says aloud, as it stands there; empty if there is nothing. ``reason``: what
    the model itself gave as its reason; ``known``: what the scenario and the agent wrote."""
    for form in (_FENCE, _HEAD, _DIRECTION):
        if found := form.search(message):
            return found[0].strip()
    if len({found[1].lower() for found in _KEY.finditer(message)}) > 1:
        return "the form of the answer"
    written = "\n".join(known)
    if tag := next((found[0] for found in _TAG.finditer(message) if found[0] not in written), ""):
        return tag
    return _repeated(reason, message)


def _repeated(reason: str, message: str) -> str:
    """The model's reason, where the message says it, too, and more."""
    words, spoken = list(_words(reason)), list(_words(message))
    is_there = f" {' '.join(words)} " in f" {' '.join(spoken)} "
    return reason.strip() if is_there and ENOUGH_WORDS <= len(words) < len(spoken) else ""


def _words(text: str) -> Iterator[str]:
    yield from re.findall(r"\w+", text.casefold())
