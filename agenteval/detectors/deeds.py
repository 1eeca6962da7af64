"""What calls could have done: whether what an answer claims was done by one of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property, lru_cache

from agenteval.detectors.calls import error_of, failure_of, shown
from agenteval.detectors.claims import Claim, kinds_of_word, stems
from agenteval.detectors.consent import says_yes
from agenteval.detectors.conversation import Conversation, PlacedCall
from agenteval.detectors.identifiers import ids_of, others_of_its_kind
from agenteval.detectors.states import ASKS, ORDERS, begins_with, is_news, is_of_before
from agenteval.detectors.things import TEXTS, THINGS, families, like_things
from agenteval.detectors.verbs import KIND_OF_NOUN, KINDS_OF, may_change, nature_of, word_set, words_of
from agenteval.trajectory import ToolCall


class World:
    """The tools that are known to exist, declared or (where none is) called; and what calls could do."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @cached_property
    def names(self) -> list[str]:
        """The tools that may change something."""
        declared = self._conversation.tools
        names = declared or dict.fromkeys(placed.call.name for placed in self._conversation.calls)
        return [name for name in names if may_change(name, declared.get(name))]

    def _may_change(self, name: str) -> bool:
        return may_change(name, self._conversation.tools.get(name))

    def tools_for(self, claim: Claim) -> tuple[str, ...] | None:
        """The tools that would have done it; ``None`` if nothing says that one should have."""
        tools = tuple(name for name in self.names if _would_do(claim, name))
        if claim.state and not tools:
            tools = tuple(name for name in self.names if nature_of(name).kinds & claim.kinds)
        if tools:
            return tools
        # What is done to a thing of the world, the agent cannot have done by words.
        return () if _is_deed(claim) and (not claim.state or claim.verb == "send") else None

    def was_done(self, claim: Claim, turn: int) -> bool:
        """Whether a call could have done it. One that failed in this very turn counts, too: that is
        ``ignored_tool_error``."""
        if claim.state and not self._is_news(claim, turn):
            return True
        likely = [name for name in self.names if nature_of(name).kinds & claim.kinds]
        nouns = frozenset(noun for name in likely for noun in claim.about & nouns_of(name))
        first = turn if self._is_answer(claim, turn) else 0
        for placed in self._conversation.calls:
            if placed.turn > turn:
                break
            now = placed.turn == turn
            if (
                placed.turn >= first
                and (
                    (
                        self._may_change(placed.call.name)
                        and (now or self._may_have_done(claim, placed, likely, turn))
                        and _could_do(claim, placed.call, nouns, now=now)
                    )
                    or _is_told_to(claim, placed.call, now=now)
                )
                and not self._is_of_another(claim, placed)
                and not self._only_credits(claim, placed.call.name)
            ):
                return True
        return not claim.state and (self._is_shown(claim, turn) or self._is_reported(claim, turn))

    def _may_have_done(self, claim: Claim, placed: PlacedCall, likely: Collection[str], turn: int) -> bool:
        """Whether a call of an earlier turn is one for the claim. Where others are likely, one whose name
        says nothing of what it does has to name the thing; where none is, it has to speak of the thing, or
        the claim was made with it."""
        name = placed.call.name
        if nature_of(name).kinds or claim.about & nouns_of(name):
            return True
        return not likely and (
            _speaks_of(placed.call, claim)
            or any(claim.done in each.answer.lower() for each in self._conversation.turns[placed.turn : turn])
        )

    def _is_news(self, claim: Claim, turn: int) -> bool:
        """Whether a state is told as the outcome of this turn, in which nothing was looked up or changed that
        it could come from."""
        if not self.is_quiet(turn, claim) or self._was_looked_at(claim, turn):
            return False
        return is_news(self._conversation, claim, turn, self._things_for(claim))

    def is_quiet(self, turn: int, claim: Claim | None = None) -> bool:
        """Whether nothing was called in a turn that may have brought about a state: look-ups alone, and
        credits, where a ``claim`` is of another thing."""
        return all(
            self._only_credits(claim, name) if claim else "credit" in name.lower()
            for name in self._changes.get(turn, ())
        )

    @cached_property
    def _changes(self) -> dict[int, list[str]]:
        """The tools that were called in each turn, but for those that only look something up."""
        found: dict[int, list[str]] = {}
        for each in self._conversation.calls:
            if self._may_change(each.call.name):
                found.setdefault(each.turn, []).append(each.call.name)
        return found

    def _things_for(self, claim: Claim) -> frozenset[str]:
        """The things that the tools for it have in their names."""
        return frozenset().union(*map(nouns_of, self.tools_for(claim) or ()))

    def _was_looked_at(self, claim: Claim, turn: int) -> bool:
        """Whether a look-up of a turn may have told of the state: it was for a thing of the kind, or names
        the thing, the deed or whom the state is told of."""
        things = like_things((claim.about & THINGS) | self._things_for(claim))
        names = () if claim.first_person else _NAMES.findall(claim.text)
        words = things | {claim.verb, claim.done, *map(str.lower, names)}
        return any(
            families(things) & families(nouns_of(each.call.name))
            or any(map(text_of(each.call).__contains__, words))
            for each in self._conversation.calls
            if each.turn == turn and not self._may_change(each.call.name)
        )

    def _only_credits(self, claim: Claim, name: str) -> bool:
        """Whether a tool gives a credit where money is said to be paid back to a card, for which there is
        another tool."""
        if claim.verb not in ("refund", "reimburse") or claim.about.isdisjoint(("card", "bank")):
            return False
        words = words_of(name)
        others = any("refund" in words_of(each) for each in self.names)
        return "credit" in words and "refund" not in words and others

    def _is_shown(self, claim: Claim, turn: int) -> bool:
        """Whether it was only brought before the user: "I've opened your details", "attached your
        invoice"."""
        if claim.verb not in ("attach", "share", "open"):
            return False
        if any(nouns_of(name) & claim.about for name in self._looked_up(turn)):
            return True
        return claim.verb == "open" and not claim.about.isdisjoint(("detail", "information", "history"))

    def _is_of_another(self, claim: Claim, placed: PlacedCall) -> bool:
        """Whether a call was made for another thing of the same kind: ``BKG-1001``, where the claim names
        ``BKG-1002``, and no look-up of the one had led to the other."""
        if not claim.named:
            return False
        text, called = text_of(placed.call), ids_of(placed.call.args or {})
        if any(each.lower() in text for each in claim.named):
            return False
        others = others_of_its_kind(claim.named, called)
        return bool(others) and not any(self._leads_to(each, called, placed.turn) for each in others)

    def _leads_to(self, named: str, called: frozenset[str], turn: int) -> bool:
        """Whether a call with the one identifier was told another."""
        for each in self._conversation.calls:
            text = each.call.result.text if each.call.result and each.turn <= turn else ""
            if any(one in text for one in called) and named in shown(each.call, 20_000):
                return True
        return False

    def left_out(self, claim: Claim, turn: int) -> str:
        """What a claim names in one breath with what a call was made for, and none was for; else empty."""
        calls = [
            each
            for each in self._conversation.calls
            if each.turn <= turn and self._may_change(each.call.name) and claim.listed
        ]
        called = frozenset().union(*(ids_of(each.call.args or {}) for each in calls))
        texts = [text_of(each.call) for each in calls]
        for group in claim.listed:
            for each in sorted(others_of_its_kind(group, group & called)):
                known = any(each.lower() in text for text in texts)
                if not known and not self._leads_to(each, called, turn):
                    return each
        return ""

    def _is_answer(self, claim: Claim, turn: int) -> bool:
        """Whether the claim answers an order of this turn, so that what was done before it does not count."""
        user = self._conversation.turns[turn].user
        if not claim.first_person or claim.verb not in user.lower():
            return False
        if is_of_before(claim.text) or is_of_before(user):
            return False
        ordered = ORDERS.search(user) is not None or begins_with(user, claim.verb)
        return ordered and not ASKS.match(user)

    def _is_reported(self, claim: Claim, turn: int) -> bool:
        """Whether the passive ("was cancelled") only passes on what somebody else had said, or what was
        just looked up for a user who had not asked to have it done."""
        if claim.first_person:
            return False
        talk = self._conversation
        heard = [*talk.truths, *talk.beliefs]
        for each in talk.calls:
            if each.turn <= turn and each.call.result:
                text = each.call.result.text
                asked = shown(each.call, 20_000) if claim.ids else ""
                about = not claim.ids or any(one in text or one in asked for one in claim.ids)
                heard += [text] if about else []
        done = re.compile("cancell?ed" if claim.verb == "cancel" else re.escape(claim.done), re.IGNORECASE)
        if any(done.search(text) for text in heard):
            return True
        said = re.compile(rf"\b(?:was|were|been|got|already|is|are)(?: \w+)? {done.pattern}", re.IGNORECASE)
        if any(said.search(each.user) for each in talk.turns[: turn + 1]):
            return True
        looked_up = self._looked_up(turn)
        if claim.emphatic or self._was_asked(claim, turn) or not looked_up:
            return False
        if any(nouns_of(name) & claim.about for name in looked_up):
            return True
        heard += (shown(each.call) for each in talk.calls if each.turn <= turn)
        return self._was_spoken_of(claim, heard)

    def _was_spoken_of(self, claim: Claim, heard: list[str]) -> bool:
        """Whether a call, its result or the user had named the thing or the deed, so that it may be an
        old one."""
        said = " ".join([*heard, *(turn.user for turn in self._conversation.turns)]).lower()
        return any(word in said for word in ((claim.about & THINGS) | {claim.verb}) - {"account"})

    def _looked_up(self, turn: int) -> tuple[str, ...]:
        """The tools that told something in a turn."""
        return tuple(
            each.call.name
            for each in self._conversation.calls
            if each.turn == turn
            and error_of(each.call.result) is None
            and not self._may_change(each.call.name)
        )

    def _was_asked(self, claim: Claim, turn: int) -> bool:
        """Whether the user ordered it in this turn, or agreed to it."""
        user = self._conversation.turns[turn].user
        ordered = re.search(rf"\b{re.escape(claim.verb)}", user, re.IGNORECASE) is not None
        return (ordered and not ASKS.match(user)) or says_yes(user, asked=turn > 0)


@lru_cache(maxsize=4096)
def nouns_of(name: str) -> frozenset[str]:
    """The words of a tool's name that are no verbs, in the singular."""
    words = (word for word in words_of(name) if len(word) > 2 and word not in _LITTLE)
    nouns = stems(word for word in words if word not in KINDS_OF or word in THINGS)
    return nouns | _MESSAGES if nouns & _MESSAGES else nouns


_MESSAGES = word_set("email mail message text sms")
_NAMES = re.compile(r"(?<=\w )[A-Z]\w{2,}")
_LITTLE = word_set(
    "for and the all with from into via new by user customer pending delivered my tool api v1 v2"
)


def _is_deed(claim: Claim) -> bool:
    """Whether what is claimed takes more than words, whatever tools there are: an email, a booking."""
    if claim.done in _TO_SOMEBODY:
        return True
    if claim.about & TEXTS:
        return False
    return claim.verb in _DEEDS or claim.verb == "sign" or bool(claim.about & THINGS)


def _would_do(claim: Claim, name: str) -> bool:
    """Whether a tool is of the claim's verb, or of a like verb and the claim's noun."""
    kinds = nature_of(name).kinds
    if not kinds & claim.kinds or (claim.first_person and claim.objects & TEXTS):
        return False
    if claim.about & nouns_of(name) or claim.verb == "sign":
        return True
    return claim.verb in _TELLING and claim.verb in _verbs_of(name)


@lru_cache(maxsize=4096)
def _verbs_of(name: str) -> frozenset[str]:
    words = words_of(name)
    verbs = {*words, *(KIND_OF_NOUN[word] for word in words if word in KIND_OF_NOUN)}
    return frozenset(verbs)


def _could_do(claim: Claim, call: ToolCall, nouns: frozenset[str], *, now: bool) -> bool:
    if not now and failure_of(call) is not None:
        return False
    kinds = nature_of(call.name).kinds
    if "refund" in claim.kinds and "cancel" in kinds:
        return True  # what is cancelled is paid back
    if now and "send" in claim.kinds and call.result and _MAILED.search(call.result.text):
        return True
    if not kinds or (now and _covers(claim, kinds)):
        return True
    alike = bool(kinds & claim.kinds)
    if not alike and not (now and _goes_along(claim, call, nouns)):
        return False
    text = text_of(call)
    if not now and claim.ids and not any(each.lower() in text for each in claim.ids):
        return False
    if alike and claim.named and claim.named & ids_of(call.args or {}):
        return True
    strict = alike and bool(nouns)
    things = nouns if strict else claim.about & THINGS
    if not things or any(thing in text for thing in things):
        return True
    return bool(things & nouns_of(call.name)) if strict else not _apart(things, stems(words_of(call.name)))


def _speaks_of(call: ToolCall, claim: Claim) -> bool:
    """Whether a call has the claim's thing or identifier; where that names none, any call has."""
    words = like_things(claim.about & THINGS) | {each.lower() for each in claim.ids}
    return not words or any(map(text_of(call).__contains__, words))


_MAILED = re.compile(r"(?:\b|_)(?:sent|notified|e?mailed|emailing|dispatched)(?:\b|_)", re.IGNORECASE)
_GIVEN = frozenset(("issue", "grant", "credit"))
_BY_MESSAGE = frozenset(("send", "share", "forward", "attach"))
_SETTLED = frozenset(("schedule", "process", "submit", "place", "make", "arrange"))


def _covers(claim: Claim, kinds: frozenset[str]) -> bool:
    """Whether a call of this turn does what is claimed in other words: a refund is credited, money is
    sent by a payment, a file is shared by a mail; and "I've scheduled it" is said of whatever was just
    done."""
    if "refund" in kinds and claim.verb in _GIVEN:
        return True
    if "send" in kinds and claim.verb in _BY_MESSAGE:
        return True
    if not kinds.isdisjoint(("pay", "transfer")) and claim.verb == "send" and claim.about & _MONEY:
        return True
    vague = claim.verb in _SETTLED and claim.about.isdisjoint(THINGS)
    return (vague or claim.done == "requested") and not kinds <= {"cancel", "delete"}


def _is_told_to(claim: Claim, call: ToolCall, *, now: bool) -> bool:
    """Whether an argument of a tool for all kinds of things names the deed: ``action="cancel"``,
    ``status="closed"``, ``sql="DELETE FROM …"``."""
    if _FOR_ALL.isdisjoint(words_of(call.name)) or (not now and failure_of(call) is not None):
        return False
    texts = (value.split(None, 1) for value in (call.args or {}).values() if isinstance(value, str))
    words = (
        text[0] for text in texts if text and text[0].isalpha() and (len(text) == 1 or text[0].isupper())
    )
    return any(kinds_of_word(part) & claim.kinds for word in words for part in words_of(word))


_FOR_ALL = word_set(
    "update patch put edit modify change manage handle perform execute exec run action sql query database "
    "db http api "
    "call request process record bulk"
)


def text_of(call: ToolCall) -> str:
    """A call and its result, in small letters."""
    return f"{shown(call, 20_000)} {call.result.text if call.result else ''}".lower()


def _apart(things: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sets of things have nothing to do with each other. Of what is in no family,
    nobody knows."""
    ours, theirs = families(things), families(others)
    return bool(ours and theirs) and ours.isdisjoint(theirs) and things.isdisjoint(others)


def _goes_along(claim: Claim, call: ToolCall, nouns: frozenset[str]) -> bool:
    """Whether a call of this turn may have brought the claimed change with it: a new seat with a change of
    flights, a mail with whatever was done. ``nouns``: of the claim, those that tools for it have."""
    kinds = nature_of(call.name).kinds
    undone = bool(claim.kinds & {"cancel", "delete"})
    if not claim.first_person:
        return not (undone and nouns)
    if "update" in claim.kinds:
        if nouns and nouns.isdisjoint(nouns_of(call.name)):
            # An address is not changed with a graduation, nor a line resumed by a payment, where tools are.
            return claim.verb not in _SWITCHES and any(map(text_of(call).__contains__, nouns))
        return not kinds <= {"send", "transfer", "sign", "issue"}  # the old one removed, a new one made
    return "update" in kinds and not undone and "send" not in claim.kinds


_SWITCHES = word_set(
    "restore resume pause suspend activate deactivate enable disable lock unlock block unblock freeze"
)
_TELLING = word_set(
    """
    book reserve rebook cancel refund reimburse reschedule upgrade downgrade delete transfer
    escalate order purchase buy pay charge unsubscribe deactivate activate schedule redeem renew
    """
)
_MONEY = word_set("payment money fund amount transfer wire deposit eur euro usd dollar pound gbp")
_TO_SOMEBODY = word_set("emailed e-mailed texted mailed messaged notified alerted contacted informed")
_DEEDS = _TELLING | word_set(
    "upgrade block unblock lock unlock suspend restore deposit withdraw enroll forward"
)
