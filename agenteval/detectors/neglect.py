"""Orders that an answer tells as done, whose tool was never called, be its verb one of which nothing else is
known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.claims import is_draft, stems
from agenteval.detectors.consent import refuses
from agenteval.detectors.conversation import Conversation, PlacedCall
from agenteval.detectors.deeds import World, nouns_of
from agenteval.detectors.identifiers import ids_in
from agenteval.detectors.own_verbs import OF_WORDS, Told, participles_of, told_as_done
from agenteval.detectors.parts import parts_of, unmarked_of
from agenteval.detectors.states import ASKS, ORDERS, is_of_before, is_wanted, orders_it
from agenteval.detectors.things import TEXTS
from agenteval.detectors.verbs import (
    KINDS_OF,
    has_no_verb,
    may_change,
    nature_of,
    verb_of,
    word_set,
    words_of,
)
from agenteval.expressions import expression


class _Deed(NamedTuple):
    """What ``tools`` of one ``verb`` do, and the participle that tells it as ``done``."""

    done: str
    verb: str
    tools: tuple[str, ...]
    nouns: frozenset[str]


class _Order(NamedTuple):
    """How surely a user wants a deed: ``named`` by its verb or its noun, or by whatever other word."""

    user: str
    named: bool
    by_verb: bool


class Neglect:
    """``world``: that of the conversation."""

    def __init__(self, conversation: Conversation, world: World) -> None:
        self._conversation = conversation
        self._deeds = _deeds_of(tuple(world.names)) if conversation.tools else {}
        self._forms = _forms_of(tuple(world.names)) if self._deeds else _NONE

    def found_in(self, turn: int, answer: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """Tools that were never called, although the user ordered what they are for ("skip that box"); and
        where the ``answer`` of that turn tells it as done by their very verb."""
        if not self._forms or not (forms := self._forms & parts_of(answer).different):
            return
        now = {each.call.name for each in self._conversation.calls if each.turn == turn}
        told_of = dict.fromkeys(self._deeds[form] for form in sorted(forms))
        deeds = [deed for deed in told_of if now.isdisjoint(deed.tools)]
        if not deeds or is_draft(answer):
            return
        unmarked = unmarked_of(answer)
        for deed in deeds:
            tales = list(told_as_done(unmarked.text, deed.done))
            order = self._order_of(deed, turn) if tales else None
            if order is None:
                continue
            for told in tales:
                if not _is_of(told, deed, order, unmarked.text):
                    continue
                if not self._may_be_done(told, deed, order, turn):
                    yield deed.tools[0], unmarked.span(told.span)
                    break

    def _order_of(self, deed: _Deed, turn: int) -> _Order | None:
        """What the user of a turn ordered; ``None`` if nothing that may be the deed."""
        user = self._conversation.turns[turn].user
        if refuses(user) or ASKS.match(user) or is_of_before(user):
            return None
        if user.rstrip().endswith("?") and not ORDERS.search(user):
            return None
        by_verb = orders_it(user, deed.verb)
        named = by_verb or any(orders_it(user, noun) for noun in deed.nouns)
        return _Order(user, named, by_verb) if named or is_wanted(self._conversation, turn) else None

    def _may_be_done(self, told: Told, deed: _Deed, order: _Order, turn: int) -> bool:
        """Whether a call may have done it, by whatever name; where the user did not order it by name, one of
        an earlier turn, too, of which an earlier answer may have told."""
        talk, objects = self._conversation, _objects_of(told, deed)
        for each in talk.calls:
            if each.turn > turn:
                break
            now = each.turn == turn
            if may_change(each.call.name, talk.tools.get(each.call.name)):
                if self._is_like(each, deed, objects, now=now or not order.named):
                    return True
            elif now and not told.mine and any(map(each.text.__contains__, (deed.verb, deed.done))):
                return True
        heard = () if order.named else (each.answer for each in talk.turns[:turn])
        return any(deed.done in text.lower() for text in (*heard, *talk.truths, *talk.beliefs))

    def _is_like(self, placed: PlacedCall, deed: _Deed, objects: frozenset[str], *, now: bool) -> bool:
        """Whether a call that changes something may have done the deed. ``now``: it need not be of its verb,
        where it has to do with the same thing, or nobody knows with what."""
        name, text = placed.call.name, placed.text[len(placed.call.name) :]
        about_it = not objects or any(map(text.__contains__, objects))
        if deed.verb in placed.text or deed.done in placed.text:
            return now or about_it
        if nature_of(name).kinds & KINDS_OF.get(deed.verb, _NONE):
            about_it |= not nouns_of(name).isdisjoint(stems(objects))
        is_for_all = has_no_verb(name) or not _FOR_ALL.isdisjoint(words_of(name))
        return now and (about_it or is_for_all)


_FOR_ALL = word_set(
    "run execute exec do perform handle process manage call use invoke action eval trigger agent assistant "
    "worker bot sql query database db http api request python code shell bash terminal console browser "
    "computer script workflow flow patch bulk"
)


@lru_cache(maxsize=64)
def _deeds_of(names: tuple[str, ...]) -> Mapping[str, _Deed]:
    """By the participle, with the marks that may follow it: what the tools do."""
    tools: dict[str, list[str]] = {}
    for name in names:
        tools.setdefault(verb_of(name), []).append(name)
    return {
        done + mark: _Deed(done, verb, tuple(own), frozenset().union(*map(nouns_of, own)) - {verb} - TEXTS)
        for verb, own in tools.items()
        if len(verb) > 2 and (verb not in OF_WORDS or verb in KINDS_OF)
        for done in participles_of(verb)
        for mark in ("", ".", ",", "!", ":")
    }


@lru_cache(maxsize=64)
def _forms_of(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_deeds_of(names))


def _is_of(told: Told, deed: _Deed, order: _Order, answer: str) -> bool:
    """Whether what is told as done is the deed that was ordered, and none of mere words: it names the thing
    of the tool, an identifier, or what the user had named."""
    objects = _objects_of(told, deed)
    has_thing = not deed.nouns.isdisjoint(stems(objects))
    if deed.verb in OF_WORDS:
        said = stems(_words(order.user))
        is_thing = has_thing and order.by_verb and not deed.nouns.isdisjoint(said)
        return (is_thing or bool(ids_in(told.about))) and not _is_long(answer)
    if not told.mine and not order.by_verb:
        return False
    if has_thing or ids_in(told.about):
        return True
    if told.bare or not objects.isdisjoint(TEXTS) or _brings_text(answer, told):
        return False
    return not objects.isdisjoint(_words(order.user)) or (told.mine and order.by_verb and not objects)


def _objects_of(told: Told, deed: _Deed) -> frozenset[str]:
    """What a sentence names: words, and identifiers as they stand in the text of a call."""
    ids = {each.lower() for each in ids_in(told.about)}
    return (_words(told.about) | ids) - _LITTLE - {deed.done, deed.verb}


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.lower()) if len(word) > 2)


def _is_long(answer: str) -> bool:
    return len(answer) > _LONG or "\n" in answer.strip()


def _brings_text(answer: str, told: Told) -> bool:
    """Whether the answer itself holds what it tells of: it leads to more lines."""
    return answer[told.span[1] - 1] == ":" or "```" in answer or answer[told.span[1] :].startswith("\n-")


_NONE = frozenset[str]()
_LONG = 300
_WORD = expression(r"[a-z]+")
_LITTLE = word_set(
    "the and for you your with from into that this these those them they please now all also just have has "
    "been was are were will can its our any per via not but successfully immediately again right away"
)
