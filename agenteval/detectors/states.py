"""How things stand, as an answer tells it ("your table is held", "the price is now $13.90"): whether that is
news, which somebody must have brought about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenteval.detectors.calls import error_of, failure_of
from agenteval.detectors.claims import Claim
from agenteval.detectors.consent import asks_leave, refuses, says_yes
from agenteval.detectors.conversation import Conversation, PlacedCall
from agenteval.detectors.verbs import KINDS_OF, word_set


def is_news(conversation: Conversation, claim: Claim, turn: int) -> bool:
    """Whether a state that is told in a turn without calls answers an order or a yes, and nothing had told of
    it before."""
    if (claim.done in _STANDING and not claim.first_person) or (
        claim.done.endswith(" way") and not claim.about & _MESSAGES
    ):
        return False
    if not _is_wanted(conversation, turn) or asks_leave(conversation.turns[turn].answer):
        return False
    if _was_told(conversation, claim, turn):
        return False
    heard = [each.call.result.text for each in conversation.calls if each.turn <= turn and each.call.result]
    heard += [*conversation.truths, *conversation.beliefs]
    if value := _NEW_VALUE.search(claim.text):
        return not _is_among(value[1], [*heard, conversation.policy])
    if claim.named:  # what is told of another thing says nothing of this one
        heard = [text for text in heard if any(map(text.__contains__, claim.named))]
    word = re.compile(rf"\b{re.escape(claim.done)}\b", re.IGNORECASE)
    return not any(map(word.search, [*heard, conversation.turns[turn].user]))


def _is_wanted(conversation: Conversation, turn: int) -> bool:
    """Whether the user ordered something in this turn, or agreed to it."""
    user = conversation.turns[turn].user.strip()
    if refuses(user) or _NOT.search(user):
        return False
    if says_yes(user, asked=turn > 0):
        return True
    if user.endswith("?") and not ORDERS.search(user):
        return False
    words = [word.lower() for word in _WORD.findall(user)]
    orders = not _ORDERING.isdisjoint(words[:5]) or not _PLEASE.isdisjoint(words)
    return orders and not ASKS.match(user)


def _was_told(conversation: Conversation, claim: Claim, turn: int) -> bool:
    """Whether an earlier answer had told the same state of the same."""
    if is_of_before(claim.text.partition(", and ")[0]):
        return True
    value = _NEW_VALUE.search(claim.text)
    words = rf"\bnow\W{{1,6}}{re.escape(value[1])}" if value else re.escape(claim.done)
    names = [] if value else _NAMES.findall(claim.text)[1:]
    state = re.compile(words, re.IGNORECASE)
    earlier = (each.answer for each in conversation.turns[:turn])
    return any(state.search(each) and all(map(each.__contains__, names)) for each in earlier)


def _is_among(figure: str, texts: Iterable[str]) -> bool:
    bare = _bare(figure)
    return any(bare == _bare(each) for text in texts for each in _FIGURE.findall(text))


# These are told of what is on record.
_STANDING = word_set(
    "scheduled confirmed submitted activated frozen blocked renewed ordered updated registered upgraded"
)
_FIGURE = re.compile(r"(?<![\d-])\d[\d.,]*(?![\d-])")
_NEW_VALUE = re.compile(r"\b(?:now(?: set to)?|to) [^\w\s]*(\d[\d.,]*)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
_NAMES = re.compile(r"\w*[A-Z\d]\w*")
_NOT = re.compile(r"\b(?:nothing|not|no|never|without)\b|n['’]t\b", re.IGNORECASE)
_MESSAGES = word_set("email mail message text sms receipt confirmation link code invoice copy")
_PLEASE = word_set("please pls plz")
_ORDERING = frozenset(KINDS_OF) - word_set("check open show close time order process issue mark") | {"enroll"}
_EARLIER = ("already", "earlier", "before", "previous", "as i said", "again", "did you", "have you")
_OF_BEFORE = re.compile(rf"\b(?:{'|'.join(_EARLIER)})\b".replace("previous", r"previous\w*"), re.IGNORECASE)
ORDERS = re.compile(
    r"\b(?:can|could|would|will) you\b|\bplease\b|^(?:(?:ok|okay|also|and|then|now|great|yes|sure|"
    r"thanks),? )*\w+ "
    r"(?:a|an|the|my|me|that|this|it|her|him|them|one)\b",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\W*(?:did|was|were|is|are|has|have|had|does|do|when|where|why|what|which|how|who)\b", re.IGNORECASE
)


def is_of_before(text: str) -> bool:
    """Whether it speaks of what was before; the quick look first."""
    small = text.lower()
    return any(map(small.__contains__, _EARLIER)) and _OF_BEFORE.search(text) is not None


def _bare(figure: str) -> str:
    """``1,200.00`` and ``1200`` alike."""
    whole, point, rest = figure.rstrip(".,").replace(",", "").partition(".")
    return whole + (point + rest.rstrip("0")).rstrip(".")


def is_so(conversation: Conversation, failed: PlacedCall, state: Claim) -> bool:
    """Whether something tells that a state is as it is claimed, although the call for it had failed: a
    look-up, the very error ("already frozen"), or the same tool's success in an earlier turn. What is
    claimed as done, and no mere state, is not."""
    told = failure_of(failed.call) or ""
    if not state.state:
        return False
    if _NEEDS.search(conversation.turns[failed.turn].answer):
        return True
    if is_already(told):
        return True
    for each in conversation.calls:
        if each.turn > failed.turn or each.index == failed.index or each.call.result is None:
            continue
        if error_of(each.call.result) is not None:
            continue
        text = each.call.result.text.lower()
        if each.turn == failed.turn and (state.done in text or state.verb in text):
            return True
        if each.turn < failed.turn and each.call.name == failed.call.name:
            return True
    return False


def is_already(error: str) -> bool:
    """Whether an error says that things stand as the call would have made them: "already frozen"."""
    return _ALREADY.search(error) is not None and not _TAKEN.search(error)


_NEEDS = re.compile(
    r"\b(?:I|we)(?:['’]d|['’]ll| would| will)? (?:just |still |only |also )?need\b", re.IGNORECASE
)
_ALREADY = re.compile(r"\balready\b|\bno changes?\b|\bduplicate\b", re.IGNORECASE)
_TAKEN = re.compile(
    r"\b(?:slots?|seats?|tables?|rooms?|times?|dates?|taken|someone|another|other)\b", re.IGNORECASE
)
