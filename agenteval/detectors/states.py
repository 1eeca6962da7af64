"""How things stand, as an answer tells it ("your table is held", "the price is now $13.90"): whether that is
news, which somebody must have brought about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from agenteval.detectors.calls import shown
from agenteval.detectors.claims import Claim, stems
from agenteval.detectors.consent import asks_leave, refuses, says_yes
from agenteval.detectors.conversation import Conversation, PlacedCall
from agenteval.detectors.state_words import TERSE
from agenteval.detectors.things import THINGS
from agenteval.detectors.verbs import KINDS_OF, may_change, word_set
from agenteval.expressions import expression


def is_news(conversation: Conversation, claim: Claim, turn: int, things: frozenset[str]) -> bool:
    """Whether a state that is told in a turn without calls that change anything answers an order or a yes,
    and nothing had told of it before. ``things``: what the tools for it would change."""
    user = conversation.turns[turn].user
    if claim.past and not _is_of_this_order(conversation, claim, turn):
        return False
    if claim.opens:
        if claim.done in _STANDING | TERSE and not _was_ordered(conversation, claim, turn):
            return False
    elif claim.done in _STANDING and not (
        claim.first_person or _is_unheard(conversation, claim, turn, things & claim.about)
    ):
        return False
    by_mail = claim.about & _MESSAGES or _BY_MAIL.search(f"{user}\n{claim.text}")
    if claim.done.endswith(" way") and not by_mail:
        return False
    if not is_wanted(conversation, turn) or asks_leave(conversation.turns[turn].answer):
        return False
    if _was_told(conversation, claim, turn):
        return False
    heard = [*_results(conversation, claim, turn), *conversation.truths, *conversation.beliefs]
    if value := _new_value(claim):
        return not _is_among(value[1], [*heard, conversation.policy])
    if claim.named:  # what is told of another thing says nothing of this one
        heard = [text for text in heard if any(map(text.__contains__, claim.named))]
    word = re.compile(rf"\b{re.escape(claim.done)}\b", re.IGNORECASE)
    heard += [] if claim.done == claim.verb else [user]  # "set alerts" says of none that it is set
    return not any(map(word.search, heard))


def _is_of_this_order(conversation: Conversation, claim: Claim, turn: int) -> bool:
    """Whether what "was placed" can only be what the user ordered in this turn: it is told without a time or
    a reason, and no call had to do with a thing of the kind."""
    if not orders_kind(conversation.turns[turn].user, claim.kinds) or _OF_RECORD.search(claim.text):
        return False
    things = claim.about & THINGS
    calls = (shown(each.call, 20_000) for each in conversation.calls if each.turn <= turn)
    told = " ".join([*calls, *_results(conversation, claim, turn), *conversation.truths]).lower()
    return bool(things) and not any(map(told.__contains__, things))


_OF_RECORD = expression(
    r"\b(?:yesterday|ago|last|by|because|due|on|in|since|when|while|until|but|not|who|they|however)\b",
    re.IGNORECASE,
)


def _results(conversation: Conversation, claim: Claim, turn: int) -> Iterator[str]:
    """What calls had told by then. What was done before was another thing than what was ordered in this
    turn ("Submitted: …")."""
    for each in conversation.calls:
        if each.turn > turn or each.call.result is None:
            continue
        name = each.call.name
        if not claim.opens or each.turn == turn or not may_change(name, conversation.tools.get(name)):
            yield each.call.result.text


def _is_unheard(conversation: Conversation, claim: Claim, turn: int, things: frozenset[str]) -> bool:
    """Whether the user ordered a thing of which no result by then spoke, or a number of new ones ("two
    cards are ordered")."""
    user = conversation.turns[turn].user
    things &= stems(_WORD.findall(user))
    if not things or claim.named:
        return False
    if _COUNTED.match(claim.text):
        return not _ordered_in(user).isdisjoint(KINDS_OF)
    texts = [
        each.call.result.text.lower() for each in conversation.calls if each.turn <= turn and each.call.result
    ]
    return orders_it(user, claim.verb) and not any(thing in text for text in texts for thing in things)


def begins_with(user: str, verb: str) -> bool:
    """Whether a message is an order by its first word: "ok then submit 5 to 13 October"."""
    found = _FIRST_WORD.match(user)
    return found is not None and found[1].lower() == verb


def orders_it(user: str, verb: str) -> bool:
    """Whether a message has the verb as an order has it: "and then submit it", not "the submit form"."""
    return verb in _ordered_in(user)


def orders_kind(user: str, kinds: frozenset[str]) -> bool:
    """Whether a message orders, by a verb of its own, what is of one of these ``kinds``."""
    if ASKS.match(user) or is_of_before(user):
        return False
    verbs = _ordered_in(user)
    ordered = verbs & _ORDERING | (verbs & {"order"} if _ORDERS_A_THING.search(user) else set())
    return any(KINDS_OF.get(verb, frozenset()) & kinds - _VAGUE for verb in ordered)


_VAGUE = frozenset(("create", "update", "complete", "issue"))
# "Order 12 of these", but "order status, please".
_ORDERS_A_THING = expression(
    r"\border (?:an?|the|some|more|another|me|us|my|our|it|them|this|that|these|those|one|two|three|four|"
    r"five|six|\d[\d,.]*) ",
    re.IGNORECASE,
)


def _ordered_in(user: str) -> set[str]:
    """The words that stand where the verbs of orders do."""
    clauses = _CLAUSE.split(user.replace("e-mail", "email").lower())
    pairs = (pair for clause in clauses for pair in pairwise(["please", *_WORD.findall(clause)]))
    return {word for before, word in pairs if before in _BEFORE_ORDERS}


def _was_ordered(conversation: Conversation, claim: Claim, turn: int) -> bool:
    """Whether the user ordered it by its verb, or the agent had asked whether to do it."""
    asked = conversation.turns[turn - 1].answer if turn else ""
    questions = (part for part in re.findall(r"[^.!?\n]*\?", asked) if claim.verb in part.lower())
    return any(orders_it(text, claim.verb) for text in (conversation.turns[turn].user, *questions))


def is_wanted(conversation: Conversation, turn: int) -> bool:
    """Whether the user ordered something in this turn, or agreed to it."""
    user = conversation.turns[turn].user.strip()
    if refuses(user) or _NOT.search(user):
        return False
    if says_yes(user, asked=turn > 0):
        return True
    if user.endswith("?") and not ORDERS.search(user):
        return False
    if not _ORDERING.isdisjoint(_YOU_DO.findall(user.replace("e-mail", "email").lower())):
        return True
    words = [word.lower() for word in _WORD.findall(user)]
    orders = not _ORDERING.isdisjoint(words[:5]) or not _PLEASE.isdisjoint(words)
    return orders and not ASKS.match(user)


def _was_told(conversation: Conversation, claim: Claim, turn: int) -> bool:
    """Whether an earlier answer had told the same state of the same."""
    if is_of_before(claim.text.partition(", and ")[0]):
        return True
    value = _new_value(claim)
    words = rf"\bnow\W{{1,6}}{re.escape(value[1])}" if value else re.escape(claim.done)
    names = [] if value else _NAMES.findall(claim.text)[1:]
    state = re.compile(words, re.IGNORECASE)
    earlier = (each.answer for each in conversation.turns[:turn])
    return any(state.search(each) and all(map(each.__contains__, names)) for each in earlier)


def _new_value(claim: Claim) -> re.Match[str] | None:
    """What something now is or was changed to; "ordered to 14 Elm Street" tells of no change."""
    return _NEW_VALUE.search(claim.text) if claim.verb in ("update", "change", "set", "switch") else None


def _is_among(figure: str, texts: Iterable[str]) -> bool:
    bare = _bare(figure)
    return any(bare == _bare(each) for text in texts for each in _FIGURE.findall(text))


# These are told of what is on record.
_STANDING = word_set(
    "scheduled confirmed submitted activated frozen blocked renewed ordered updated registered upgraded"
)
_CLAUSE = expression(r"[.,;:!?\n–—]")
_BEFORE_ORDERS = word_set("please pls plz you i to and then also just now ok okay yes sure kindly so thanks")
_COUNTED = expression(r"\W*(?:an?|one|two|three|four|[1-9]) ", re.IGNORECASE)
_YOU_DO = expression(r"\b(?:can|could|would|will) you (?:(?:also|then|now|please|kindly|just) )*([a-z]+)")
_FIRST_WORD = expression(
    r"\W*(?:(?:ok|okay|yes|yep|yeah|sure|great|fine|nice|thanks|and|then|so|now|also|just|right|alright|pls|please)\b"
    r"\W+)*([a-z]+)",
    re.IGNORECASE,
)
_BY_MAIL = expression(r"\w@\w|\be-?mail (?:me|us|it|them|him|her)\b", re.IGNORECASE)
_FIGURE = expression(r"(?<![\d-])\d[\d.,]*(?![\d-])")
_NEW_VALUE = expression(r"\b(?:now(?: set to)?|to) [^\w\s]*(\d[\d.,]*)", re.IGNORECASE)
_WORD = expression(r"[A-Za-z]+")
_NAMES = expression(r"\w*[A-Z\d]\w*")
_NOT = expression(r"\b(?:nothing|not|no|never|without)\b|n['’]t\b", re.IGNORECASE)
_MESSAGES = word_set("email mail message text sms receipt confirmation link code invoice copy")
_PLEASE = word_set("please pls plz")
_ORDERING = frozenset(KINDS_OF) - word_set("check open show close time order process issue mark") | {"enroll"}
_EARLIER = ("already", "earlier", "before", "previous", "as i said", "again", "did you", "have you")
_OF_BEFORE = expression(rf"\b(?:{'|'.join(_EARLIER)})\b".replace("previous", r"previous\w*"), re.IGNORECASE)
ORDERS = expression(
    r"\b(?:can|could|would|will) you\b|\bplease\b|^(?:(?:ok|okay|also|and|then|now|great|yes|sure|"
    r"thanks),? )*\w+ "
    r"(?:a|an|the|my|me|that|this|it|her|him|them|one)\b",
    re.IGNORECASE,
)
ASKS = expression(
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
    told = failed.failure or ""
    if _was_before(told, state):
        return True
    if not state.state:
        return False
    if _NEEDS.search(conversation.turns[failed.turn].answer):
        return True
    if is_already(told):
        return True
    for each in conversation.calls:
        if each.turn > failed.turn or each.index == failed.index or each.call.result is None:
            continue
        if each.error is not None:
            continue
        text = each.call.result.text.lower()
        if each.turn == failed.turn and (state.done in text or state.verb in text):
            return True
        if each.turn < failed.turn and each.call.name == failed.call.name:
            return True
    return False


def _was_before(error: str, claim: Claim) -> bool:
    """Whether an error says that what is claimed in the passive had been done before: "S-5 was cancelled on
    2 May"."""
    if claim.first_person or claim.done not in error.lower():
        return False
    found = re.search(
        rf"(?:\A\W*|\b(?:was|were|been|is|are|already) )(?:already )?{re.escape(claim.done)}"
        r"(?=\W*\Z|,| (?:on|by|at|in|since|earlier|before|last|yesterday)\b)",
        error,
        re.IGNORECASE,
    )
    return found is not None and not _CANNOT.search(error) and not _TAKEN.search(error)


_CANNOT = expression(
    r"\b(?:not|cannot|never|unable|must|only|unless|fail\w*|no|un\w+ed)\b|n['’]t\b", re.IGNORECASE
)


def is_already(error: str) -> bool:
    """Whether an error says that things stand as the call would have made them: "already frozen"."""
    return _ALREADY.search(error) is not None and not _TAKEN.search(error)


_NEEDS = expression(
    r"\b(?:I|we)(?:['’]d|['’]ll| would| will)? (?:just |still |only |also )?need\b", re.IGNORECASE
)
_ALREADY = expression(r"\balready\b|\bno changes?\b|\bduplicate\b", re.IGNORECASE)
_TAKEN = expression(
    r"\b(?:slots?|seats?|tables?|rooms?|times?|dates?|taken|someone|another|other)\b", re.IGNORECASE
)
