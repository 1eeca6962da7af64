"""What a tool does, as far as its name, its marks and its description tell; and words for what was done."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from agenteval.core.expressions import expression
from agenteval.core.tool_effects import words_of
from agenteval.scoring.detectors.conversation import ToolFacts


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


KINDS = {
    "book": "book reserve rebook schedule arrange appoint",
    "cancel": "cancel void revoke terminate abort unsubscribe deactivate disable close end stop drop "
    "withdraw",
    "refund": "refund reimburse credit compensate return reverse waive",
    "send": "send email mail message notify text sms forward post dispatch deliver share publish reply submit"
    " invite tweet alert broadcast resend ship",
    "update": "update change modify edit reschedule adjust correct upgrade downgrade switch move rename set"
    " replace extend swap exchange amend revise patch put assign apply configure enable disable turn toggle"
    " reset alter rebook shift postpone activate deactivate lock unlock block unblock suspend resume pause"
    " restore freeze unfreeze waive refuel increase decrease raise lower save redeem renew",
    "create": "create add make set insert register open new schedule log file record save store write append"
    " submit put post enter start build subscribe enroll sign place issue upload import attach book generate"
    " provision redeem open init launch",
    "delete": "delete remove erase clear drop purge unregister discard wipe clean destroy cancel uninstall"
    " unsubscribe deregister",
    "transfer": "transfer move forward escalate handoff handover connect route wire redirect",
    "order": "order purchase buy checkout place reorder",
    "pay": "pay charge bill transfer deposit withdraw process wire debit settle",
    "complete": "complete mark finish close resolve confirm approve accept finalize process acknowledge ack "
    "check",
    "issue": "issue grant award send credit offer",
    "sign": "login logout signup signin signout register enroll authenticate",
}
"""Kinds of change, each with the verbs that may stand for it; a verb may be of several kinds."""

KINDS_OF: dict[str, frozenset[str]] = {}
for _kind, _words in KINDS.items():
    for _word in _words.split():
        KINDS_OF[_word] = KINDS_OF.get(_word, frozenset()) | {_kind}

KIND_OF_NOUN = {
    "booking": "book", "hold": "book", "reservation": "book", "appointment": "book", "cancellation": "cancel",
    "cancelation": "cancel", "reimbursement": "refund", "payment": "pay", "modification": "update",
    "registration": "create", "creation": "create", "deletion": "delete", "removal": "delete",
    "escalation": "transfer", "purchase": "order", "notification": "send", "creator": "create",
    "sender": "send", "updater": "update", "subscription": "create", "enrollment": "create",
    "submission": "create", "confirmation": "complete", "replacement": "update", "renewal": "update",
    "extension": "update", "activation": "update", "deactivation": "cancel", "delivery": "send",
    "invitation": "send", "withdrawal": "pay", "termination": "cancel",
}  # fmt: skip

GENERAL = word_set(
    "create make issue process submit send perform do execute initiate request file place record register "
    "open start handle complete grant apply run add trigger schedule"
)
"""Verbs of which the noun says what is done: ``issue_refund`` refunds."""

_READS = word_set(
    """
    get fetch find search list lookup look read query show view describe check calculate calc
    compute count retrieve browse see inspect verify validate is has estimate quote compare convert
    think summarize explain translate detect analyze analyse classify extract parse forecast predict
    recommend suggest weather track status info information details detail availability available
    history balance price prices pricing now time date current currency distance directions route
    map news docs documentation faq knowledge help who what where when calculator display monitor
    poll scan select evaluate filter sum average math eta download export preview recall retrieval
    peek stat schema ping measure
    """
)
_MUTATES = word_set(
    """
    execute exec run bash shell eval invoke call click type press scroll navigate goto drag drop tap
    swipe fill input key next previous prev back advance step go play pause resume skip wait sleep
    use do perform take pick draw roll shuffle increment decrement push pop pull commit merge deploy
    restart reboot kill spawn sync trigger allocate consume claim vote like follow unfollow block
    unblock mute join leave create write copy rotate generate random login logout sign manage handle
    process action
    """
) | frozenset(KINDS_OF)
# A second run of these on purpose is common ("two more"), so that equal arguments prove nothing alone.
_REPEATABLE = word_set(
    """
    add increment decrement increase decrease press click type scroll next previous prev back
    advance step go roll draw spin shuffle random generate wait sleep poll take pick move turn
    toggle append insert log write execute exec run bash shell eval play skip swipe tap drag key
    push pop raise lower deposit withdraw
    """
)
# What these do is to be done several times, one after the other.
_AT_WILL = word_set(
    """
    press click type scroll next previous prev back advance step roll draw spin shuffle random wait
    sleep poll take pick move turn toggle play skip swipe tap drag key push pop increment decrement
    increase decrease raise lower
    """
)

_ALSO_NOUNS = word_set(
    """
    order book ship return transfer charge credit bill message email mail text schedule log file
    record store post place close open set award grant call command key process sms share notify
    invite
    """
)
_READ_NOUNS = word_set(
    """
    status info information details detail availability history balance list lookup search query
    finder summary report total cost count price prices search
    """
)


class Nature(NamedTuple):
    """What a tool seems to do. ``kinds`` of change are those of its name's verbs; ``reads``: it looks
    something up; ``changes``: it changes something (neither: nobody can say). ``repeatable``: doing it
    twice may be meant; ``at_will``: is."""

    kinds: frozenset[str]
    reads: bool
    changes: bool
    repeatable: bool
    at_will: bool


@lru_cache(maxsize=4096)
def nature_of(name: str) -> Nature:
    """What the name of a tool tells: the first of its words that is a verb decides, unless it is the noun
    of a name like ``order_status``."""
    words = words_of(name)
    # Later in a name, "order" is a thing.
    verbs = (word for at, word in enumerate(words) if not (at and word in _ALSO_NOUNS))
    verb = next((word for word in verbs if word in _READS or word in _MUTATES), "")
    looks_up = verb in _ALSO_NOUNS and (words[-1] in _READ_NOUNS or _is_list_of_open_ones(words))
    checks_in = verb == "check" and ("in" in words or "out" in words)
    again = not _REPEATABLE.isdisjoint(words), _is_at_will(words, verb)
    if looks_up or (verb in _READS and not checks_in):
        return Nature(frozenset(), True, False, *again)
    nouns = frozenset(KIND_OF_NOUN[word] for word in words if word in KIND_OF_NOUN)
    if verb in GENERAL:
        nouns = nouns.union(*(KINDS_OF.get(word, frozenset()) for word in words))
    if verb:
        return Nature(KINDS_OF.get(verb, frozenset()) | nouns, False, True, *again)
    return Nature(nouns, False, bool(nouns), *again)


@lru_cache(maxsize=4096)
def verb_of(name: str) -> str:
    """The verb of a tool's name: the one that is known to change something, else the first word of its last
    part (``mcp__ops__scale_deployment``)."""
    words = words_of(_LAST_PART.split(name)[-1]) or words_of(name)
    verbs = (word for at, word in enumerate(words) if not (at and word in _ALSO_NOUNS))
    return next((word for word in verbs if word in _MUTATES), words[0] if words else "")


_LAST_PART = expression(r"__|[./:]")


def _is_at_will(words: tuple[str, ...], verb: str) -> bool:
    """Whether a name says so by its verb (``press_key``, ``get_next_page``), and not by a thing that
    something is done to (``order_press``)."""
    at = next((at for at, word in enumerate(words) if word in _AT_WILL), -1)
    return at >= 0 and (verb not in _MUTATES or verb in _AT_WILL or at < words.index(verb))


def _is_list_of_open_ones(words: tuple[str, ...]) -> bool:
    """``open_slots``, ``open_orders``: which there are, and no opening."""
    return words[:1] == ("open",) and len(words) == 2 and words[1].endswith("s")


def is_marked(facts: ToolFacts | None) -> bool:
    """Whether its author said what a tool does."""
    return facts is not None and (facts.reads or facts.writes or facts.destructive)


def only_reads(name: str, facts: ToolFacts | None) -> bool:
    """Whether a tool changes nothing: by its mark, else by its name."""
    if facts is not None and (facts.reads or facts.writes or facts.destructive):
        return facts.reads
    return nature_of(name).reads


def may_change(name: str, facts: ToolFacts | None) -> bool:
    """Whether a tool may change something. One of which nobody can say so counts as one that may."""
    return not only_reads(name, facts)


def surely_changes(name: str, facts: ToolFacts | None) -> bool:
    """Whether a tool changes something, so that doing it twice is doing it twice."""
    if facts is not None and is_marked(facts):
        return not facts.reads
    nature = nature_of(name)
    return nature.changes and not nature.repeatable
