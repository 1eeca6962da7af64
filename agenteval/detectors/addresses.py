"""Addresses of pages and of mailboxes in texts, in a form in which they can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from agenteval.expressions import expression

_STOP = "\\s<>\"'`“”‘’«»|\\\\^{}\\[\\]，。！？、；：）】」》…"
_WEB = expression(
    rf"(?i)(?P<scheme>https?://|www\.)(?:[^{_STOP}]|\\(?=[_*/&~-]))+"
    rf"|(?<![\w./@-])(?:[a-z0-9-]{{1,63}}\.){{1,4}}(?:com|org|net|io|example|eu|de|co|gov|edu|app|dev|ai)"
    rf"(?::[0-9]+)?/(?:[^{_STOP}]|\\(?=[_*/&~-]))+"
)
_BARE = (".com/", ".org/", ".net/", ".io/", ".example/", ".eu/", ".de/", ".co/", ".gov/", ".edu/", ".app/",
         ".dev/", ".ai/")  # fmt: skip
"""What surely is an address though nothing says so: the quick look."""
_MAIL = expression(r"(?<![\w.%+-])[\w.%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,4}[A-Za-z]{2,}(?![\w@])")
_MARKS = ".,;:!?*_~"
_PAIRS = {")": "(", "]": "["}
_GOES_ON = expression(r"[{\[$…]|\.\.\.|<(?!/|br\b|p\b|li\b|t[dr]\b|img\b|[abi]\b)[\w -]+>")
_FOLLOWED = expression(r"(?i)\A(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|igshid|ref|ref_src|si)=")
_SLASHES = expression(r"\\+/")


class Address(NamedTuple):
    """An address of a page. ``start``, ``end``, ``text``: as it is written; ``host``: in lower case, without
    ``www.`` and port; ``path``: decoded, in lower case, without the last slash; ``query``: likewise, without
    what only tells where a reader came from; ``bare``: nothing before it says that it is an address;
    ``is_cut``: more belongs to it, which is left out or still to be filled in."""

    start: int
    end: int
    text: str
    host: str
    path: str
    query: str
    bare: bool = False
    is_cut: bool = False

    @property
    def rest(self) -> str:
        """What comes after the host."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def base(self) -> str:
        """Host and path."""
        return self.host + self.path

    @property
    def whole(self) -> str:
        return self.host + self.rest


class Mailbox(NamedTuple):
    """An e-mail address. ``start``, ``end``, ``text``: as it is written; ``name``: in lower case."""

    start: int
    end: int
    text: str
    name: str


def may_have_pages(text: str) -> bool:
    """The quick look for addresses of pages."""
    return "://" in text or "www." in text or ("/" in text and any(map(text.__contains__, _BARE)))


def pages_in(text: str) -> Iterator[Address]:
    """The addresses of pages in ``text``, from left to right."""
    if may_have_pages(text):
        for found in _WEB.finditer(text):
            if address := _address(text, found):
                yield address


def mailboxes_in(text: str) -> Iterator[Mailbox]:
    """The e-mail addresses in ``text``, from left to right."""
    if "@" in text:
        for found in _MAIL.finditer(text):
            yield Mailbox(found.start(), found.end(), found[0], found[0].lower())


def _address(text: str, found: re.Match[str]) -> Address | None:
    written = _without_marks(found[0])
    end = found.start() + len(written)
    host, path, query = parts_of(written)
    if len(host) < 3 or not host[0].isalnum():
        return None
    is_cut = written.endswith("..") or _GOES_ON.match(text, end) is not None
    return Address(found.start(), end, written, host, path, query, not found["scheme"], is_cut)


def _without_marks(written: str) -> str:
    """Without what belongs to the sentence, or to Markdown, and not to the address."""
    while written:
        last = written[-1]
        if last in _PAIRS:
            if written.count(last) <= written.count(_PAIRS[last]):
                break
        elif last not in _MARKS:
            break
        written = written[:-1]
    at = written.find(")(")  # a link in Markdown whose text is an address
    return written[:at] if at > 0 else written


def parts_of(written: str) -> tuple[str, str, str]:
    """Host, path and query of an address, each so that those which mean the same are equal."""
    text = readable(written)
    text = text.partition("://")[2] if "://" in text[:8] else text
    text, _, fragment = text.partition("#")
    base, _, query = text.partition("?")
    host, _, path = base.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].removeprefix("www.").rstrip(".")
    values = [value for value in query.split("&") if value and not _FOLLOWED.match(value)]
    if fragment.startswith("/"):
        values.append(fragment)
    path = path.rstrip("/")
    return host, f"/{path}" if path else "", "&".join(values)


def readable(text: str) -> str:
    """``text`` in lower case, with the marks of JSON, HTML, Markdown and percents in addresses undone."""
    if "\\" in text:
        text = _SLASHES.sub("/", text).replace("\\u0026", "&").replace("\\_", "_").replace("\\-", "-")
        text = text.replace("\\*", "*").replace("\\&", "&").replace("\\~", "~")
    if "&amp;" in text:
        text = text.replace("&amp;", "&")
    return (unquote(text) if "%" in text else text).lower()
