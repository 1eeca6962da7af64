"""Addresses in answers that are not those which the agent was given.

A wrong link leads to nothing, or to somebody else's page. An address that was told is right, and so is one
that is put together from a page and an identifier that were told. Any other that is written almost like one
of a result, or has its identifier, or its place with another identifier, stands against it; one with an
identifier that nobody told stands against nothing. Home pages, and pages that are named by words, a model may
know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from weakref import ReferenceType, ref

from agenteval.detectors.addresses import Address, Mailbox, mailboxes_in, may_have_pages, pages_in
from agenteval.detectors.conversation import Conversation, Proof
from agenteval.detectors.told_addresses import ToldAddresses, read_turns, told_at_first
from agenteval.detectors.wrong_addresses import Verdict, other_mailbox, shortened, untold_ids, wrong_page
from agenteval.expressions import expression
from agenteval.score import Severity


class Link(NamedTuple):
    """An address that is not supported. ``against``: what it contradicts, in words; empty: nothing."""

    turn: int
    start: int
    end: int
    text: str
    against: str
    severity: Severity


def links_against(conversation: Conversation) -> Iterator[Proof]:
    """Addresses of answers that a tool, the policy or the knowledge gave otherwise."""
    for link in _links(conversation):
        if link.against:
            yield _proof(conversation, link, f"the answer says {shortened(link.text)}, but {link.against}")


def links_from_nowhere(conversation: Conversation) -> Iterator[Proof]:
    """Addresses of answers with an identifier that nobody gave."""
    for link in _links(conversation):
        if not link.against:
            said = shortened(link.text)
            yield _proof(conversation, link, f"nothing before in the conversation gave {said}")


def _proof(conversation: Conversation, link: Link, explanation: str) -> Proof:
    """With what stands beside it in the line."""
    answer = conversation.turns[link.turn].answer
    start = max(answer.rfind("\n", 0, link.start) + 1, link.start - 80)
    last = answer.find("\n", link.end)
    end = min(last if last >= 0 else len(answer), link.end + 60)
    quote = answer[start:end]
    start += len(quote) - len(quote.lstrip())
    quote = quote.strip()
    return Proof(link.turn, None, quote, explanation, (start, start + len(quote)), link.severity)


_LATEST: list[tuple[ReferenceType[Conversation], tuple[Link, ...]]] = []
"""Of the latest conversation: two detectors ask, one after the other."""


def _links(conversation: Conversation) -> tuple[Link, ...]:
    if _LATEST and _LATEST[0][0]() is conversation:
        return _LATEST[0][1]
    found = tuple(_find(conversation))
    _LATEST[:] = [(ref(conversation), found)]
    return found


def _find(conversation: Conversation) -> Iterator[Link]:
    told: ToldAddresses | None = None
    judged: set[str] = set()
    read = 0
    for number, turn in enumerate(conversation.turns):
        if not ("@" in turn.answer or may_have_pages(turn.answer)):
            continue  # what was told is read when there is something to look up
        addresses = list(_written(turn.answer))
        if not addresses:
            continue
        told = told or told_at_first(conversation)
        read_turns(told, conversation, read, number + 1)
        read = number + 1
        for written in addresses:
            if len(judged) >= _MOST:
                return
            name = written.whole if isinstance(written, Address) else written.name
            if name in judged or _is_told(written, told):
                continue
            judged.add(name)
            if found := _judge(turn.answer, written, told):
                yield Link(number, written.start, written.end, written.text, *found)


_MOST = 100
"""Addresses of one conversation that nobody told and that are looked at closely."""


def _written(answer: str) -> Iterator[Address | Mailbox]:
    """The addresses of an answer that it gives as such, not in code or as an example."""
    blocks = [fence.start() for fence in re.finditer("```", answer)] if "```" in answer else []
    found: list[Address | Mailbox] = [*pages_in(answer), *mailboxes_in(answer)]
    for each in found:
        in_code = sum(start < each.start for start in blocks) % 2 == 1 if blocks else False
        if not in_code and not _SUCH_AS.search(answer, max(0, each.start - 40), each.start):
            yield each


_SUCH_AS = expression(
    r"(?i)(?:\be\.\s?g\.|\bfor example|\bfor instance|\bsuch as|\b(?:looks?|something|formatted) like|"
    r"\bz\.\s?b\.|\bpar exemple|\bpor ejemplo|例如)\W*(?:\w+\W+){0,2}\Z"
)


def _is_told(written: Address | Mailbox, told: ToldAddresses) -> bool:
    """Whether it was given as it is, or is the beginning of what was given."""
    if isinstance(written, Mailbox):
        return written.name in told.mailboxes or told.goes_on(written.name)
    if told.has_whole(written.whole):
        return True
    if written.query and untold_ids(written.query, told):
        return False
    return told.has_page(written.base)


_NUMBER = expression("[0-9]")


def _judge(answer: str, written: Address | Mailbox, told: ToldAddresses) -> Verdict | None:
    """What is wrong with an address that was not told as it is."""
    if isinstance(written, Mailbox):
        # With a digit, it is an identifier, and looked up as such.
        return None if _NUMBER.search(written.text) else other_mailbox(written, told)
    goes_on = written.is_cut or answer[written.end : written.end + 1] in {"", "\n"}
    if goes_on and told.goes_on(written.whole):
        return None
    if written.is_cut or _PLACEHOLDER.search(written.whole):
        return None
    return wrong_page(written, told)


_PLACEHOLDER = expression(
    r"\byour|[-_/=.](?:sample|placeholder|dummy|foo|bar|xyz|abc(?:123)?|example-\w+|id|uuid|order_id|token)(?![a-z0-9])"
    r"|x{3,}|12345|01234|(?<![0-9])([0-9])\1{3,}(?![0-9])|\*\*|%s"
)
