"""What of told addresses an address that nobody told is a wrong copy of."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from agenteval.detectors.addresses import Address, Mailbox
from agenteval.detectors.told_addresses import Told, ToldAddresses, owner_of
from agenteval.expressions import expression
from agenteval.score import Severity

Verdict: TypeAlias = tuple[str, Severity]
"""What an address contradicts, in words (empty: nothing), and how bad that is."""


def wrong_page(written: Address, told: ToldAddresses) -> Verdict | None:
    """What is wrong with the address of a page that was not told as it is; ``None``: nothing that is sure."""
    for look in _LOOKS:
        if found := look(written, told):
            return found
    return None


def shortened(text: str) -> str:
    """``text``, without its middle where it is long."""
    return text if len(text) <= _LONGEST else f"{text[:80]}…{text[-60:]}"


_LONGEST = 150
_NUMBER = expression("[0-9]")


def _gave(told: Told) -> str:
    return f"{told.name} gave {shortened(told.address.text)}"


def _sure(is_sure: bool) -> Severity:
    return Severity.HIGH if is_sure else Severity.MEDIUM


# Slips


def edited_at(one: str, other: str) -> int | None:
    """Where one character was changed, added, lost, or two changed places; ``None`` if that is not all."""
    short, long = sorted((one, other), key=len)
    size = len(short)
    half = max(0, (size - 2) // 2)
    if len(long) - size > 1 or (
        short[:half] != long[:half] and short[size - half :] != long[len(long) - half :]
    ):
        return None
    at = next((place for place in range(size) if short[place] != long[place]), size)
    if len(long) > size:
        return at if short[at:] == long[at + 1 :] else None
    if short[at + 1 :] == long[at + 1 :]:
        return at
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return at if swapped else None


def _slip_in_host(written: Address, told: ToldAddresses) -> Verdict | None:
    """A host that is one edit away from that of the same page, or from any where it stands alone."""
    if told.has_host(written.host) or len(owner_of(written.host)) < _LONG_HOST:
        return None
    near = told.by_rest.get(written.rest, ())
    for other in near or (each[0] for each in told.by_host.values() if not written.rest):
        if edited_at(written.host, other.address.host) is not None:
            return _gave(other), _sure(len(written.rest) > _LONG_REST)
    return None


_LONG_HOST, _LONG_REST = 9, 5
"""Shorter ones are like one another by chance."""


def _slip_in_path(written: Address, told: ToldAddresses) -> Verdict | None:
    """A page that is one edit away from one of the same host, in a word or number that nothing speaks of. Of
    several that are like it, it may be the next."""
    near: dict[str, tuple[Told, str]] = {}
    for other in told.by_host.get(written.host, ()):
        alike = bool(written.query) == bool(other.address.query)
        rest, theirs = (written.rest, other.address.rest) if alike else (written.path, other.address.path)
        at = edited_at(rest, theirs)
        if at is None:
            continue
        word = _word_at(rest, at)
        if _is_slip(word, _word_at(theirs, at), written, told):
            near.setdefault(theirs, (other, word))
    if not near:
        return None
    other, word = next(iter(near.values()))
    return _gave(other), _sure(_count(word) > 3 and len(near) == 1)


def _is_slip(word: str, meant: str, written: Address, told: ToldAddresses) -> bool:
    if min(len(word), len(meant)) < _LONG_WORD or told.has_token(word) or _is_date(word):
        return False
    if _NUMBER.search(word + meant):
        return not written.bare and min(_count(word), _count(meant)) >= _LONG_NUMBER
    return word.rstrip("s") != meant.rstrip("s")


_LONG_WORD, _LONG_NUMBER = 5, 4
_WORD_CHARS = expression(r"[^\W_]*")


def _word_at(text: str, at: int) -> str:
    """The letters and digits around a place."""
    start = min(at, len(text))
    while start and text[start - 1].isalnum():
        start -= 1
    found = _WORD_CHARS.match(text, start)
    return found[0] if found else ""


def _count(text: str) -> int:
    return sum(char.isdigit() for char in text)


# The identifier of a told address elsewhere


def _moved(written: Address, told: ToldAddresses) -> Verdict | None:
    """An address that has the long identifier, or the name of the page, of a told one, under a host of which
    nothing speaks; or a told file that is made an address."""
    is_file = _is_no_host(written.host)
    if written.bare or (not is_file and (told.has_host(written.host) or _is_public(written.host))):
        return None
    runs = [run for run in _RUN.findall(written.whole) if _count(run) > 3 and not _is_date(run)]
    for run in runs:
        if (other := told.by_run.get(run)) and written.host != other.address.host:
            return _gave(other), _sure(is_file)
    if is_file:
        return _told_file(runs, told)
    page = written.path.rpartition("/")[2]
    if len(page) < _LONG_PAGE or "-" not in page:
        return None
    for others in told.by_host.values():
        for other in others:
            if other.address.path.endswith(f"/{page}"):
                return _gave(other), Severity.MEDIUM
    return None


_LONG_PAGE = 16
_RUN = expression(r"[a-z0-9]{8,}")
_NO_HOST = expression(
    r"\.(?:png|jpe?g|gif|webp|svg|pdf|csv|xlsx?|docx?|pptx?|txt|json|xml|html?|mp[34]|wav)\Z"
)


def _is_no_host(host: str) -> bool:
    """Whether it is the name of a file."""
    return _NO_HOST.search(host) is not None


def _told_file(runs: list[str], told: ToldAddresses) -> Verdict | None:
    for name, text in told.results:
        for run in runs:
            if found := re.search(rf"[\w./:~-]*(?<![a-z0-9]){run}(?![a-z0-9])[\w./-]*", text):
                return f"{name} gave {shortened(found[0])}", Severity.HIGH
    return None


# Another identifier in the place of a told one


def _other_id(written: Address, told: ToldAddresses) -> Verdict | None:
    """The place of a told address with an identifier that nobody told."""
    if written.bare or told.is_opaque or _is_public(written.host):
        return None
    parts = _parts(written)
    likely: list[tuple[Told, str, str]] = []
    for other in told.by_host.get(written.host, ()):
        theirs = _parts(other.address)
        differing = [pair for pair in zip(parts, theirs, strict=False) if pair[0] != pair[1]]
        if len(parts) == len(theirs) and len(differing) == 1 and _are_ids(*differing[0]):
            likely.append((other, *differing[0]))
    if not likely or told.has_token(likely[0][1]):
        return None
    other, said, meant = likely[0]
    alike = len(said) == len(meant) and sum(map(str.__ne__, said, meant)) < 3
    return _gave(other), _sure(alike and len(likely) == 1 and len(said) > 7)


@lru_cache(maxsize=1 << 14)
def _parts(address: Address) -> list[str]:
    return re.split(r"[/&?]", address.rest)


def _are_ids(said: str, meant: str) -> bool:
    """Whether both parts are identifiers of one kind."""
    if min(_count(said), _count(meant)) < _LONG_NUMBER or _is_date(said) or _COMPUTED.match(said):
        return False
    return _kind(said) == _kind(meant)


def _kind(part: str) -> str:
    """Equal for parts that are written alike."""
    return re.sub("[0-9]+", "0", re.sub("[a-z]*[0-9][a-z0-9]*", "0", part))


_COMPUTED = expression(
    r"(?:q|query|search|text|body|subject|amount|total|price|sum|lat|lng|lon|ll|t|start|end|from|to|"
    r"dates?|time|ts|since|until|checkin|checkout|center|daddr|saddr|destination|origin|size|width|height|phone)="
)
"""What the agent may have calculated or worded itself."""
_DATE = expression(r"(?:19|20)[0-9]{2}(?:(?:0[1-9]|1[0-2])(?:[0-3][0-9](?:t[0-9]{4,6}z?)?)?)?\Z")


def _is_date(word: str) -> bool:
    return _DATE.match(word) is not None


# Identifiers that nobody told


def _from_nowhere(written: Address, told: ToldAddresses) -> Verdict | None:
    if written.bare or told.is_opaque or not told.speaks or "utm_source" in written.text:
        return None
    if _is_public(written.host) and written.host not in told.by_host:
        return None
    if _LOCAL.match(written.host) or not untold_ids(written.rest, told):
        return None
    return "", Severity.MEDIUM


_LOCAL = expression(
    r"localhost\Z|127\.|10\.|192\.168\.|0\.0\.0\.0|[^.]*\Z|(?:.*\.)?example\.(?:com|org|net)\Z|.*\.(?:local|test|invalid)\Z"
)


def untold_ids(rest: str, told: ToldAddresses) -> list[str]:
    """The identifiers of a path or query that nobody told."""
    parts = (part for part in re.split(r"[/&?]", rest) if not _COMPUTED.match(part))
    runs = (run for part in parts if not _DECIMAL.search(part) for run in re.findall(r"[a-z0-9]+", part))
    return [run for run in runs if _count(run) > 4 and not _is_date(run) and not told.has_token(run)]


_DECIMAL = expression(r"[0-9]\.[0-9]")
_PUBLIC_WORDS = (
    "wikipedia.org wikimedia.org wikidata.org arxiv.org doi.org github.com githubusercontent.com gitlab.com "
    "stackoverflow.com stackexchange.com youtube.com youtu.be imdb.com nih.gov google.com goo.gl medium.com "
    "unsplash.com placeholder.com picsum.photos dummyimage.com python.org rfc-editor.org ietf.org w3.org "
    "microsoft.com mozilla.org openai.com nature.com springer.com sciencedirect.com acm.org ieee.org "
    "reddit.com twitter.com x.com linkedin.com facebook.com instagram.com apple.com nytimes.com bbc.com "
    "bbc.co.uk who.int europa.eu spotify.com amazon.com amazon.de amazon.co.uk goodreads.com archive.org "
    "huggingface.co pypi.org npmjs.com jstor.org wa.me t.me openstreetmap.org"
)
_PUBLIC = frozenset(_PUBLIC_WORDS.split())


def _is_public(host: str) -> bool:
    """Whether models know many of its pages by heart."""
    return owner_of(host) in _PUBLIC or host.endswith((".gov", ".edu", ".gov.uk", ".ac.uk"))


_Look = Callable[[Address, ToldAddresses], Verdict | None]
_LOOKS: tuple[_Look, ...] = (_slip_in_host, _slip_in_path, _moved, _other_id, _from_nowhere)


# Mailboxes


def other_mailbox(written: Mailbox, told: ToldAddresses) -> Verdict | None:
    """A slip of a mailbox that was told, or its name at a host of which nothing speaks."""
    name, _, host = written.name.partition("@")
    for text, other in told.mailboxes.items():
        theirs, _, their_host = text.partition("@")
        if edited_at(written.name, text) is not None and _is_mail_slip(name, host, theirs, their_host):
            return _gave(other), _sure(other.is_evidence)
        if name == theirs and re.search("[._]", name) and other.is_evidence and not told.has_host(host):
            return _gave(other), Severity.MEDIUM
    return None


def _is_mail_slip(name: str, host: str, theirs: str, their_host: str) -> bool:
    """Whether a part differs that is long enough for it to be no other mailbox by chance."""
    if host in _PROVIDERS and their_host not in _PROVIDERS:
        return False  # a typing error that is set right
    return min(len(name), len(theirs)) > 4 if name != theirs else len(host) > _LONG_REST


_PROVIDER_WORDS = (
    "gmail.com outlook.com hotmail.com yahoo.com icloud.com gmx.de gmx.net web.de proton.me aol.com"
)
_PROVIDERS = frozenset(_PROVIDER_WORDS.split())
