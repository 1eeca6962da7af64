"""Secrets out of everything that is written: by value, in plain, URL, base64 and JSON form, also where signs
that no reader sees stand between their letters.

``redacting`` takes them out of the events, which reports are made of; ``hide`` is the last thing that every
writer does before it writes.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from agenteval.event import Event
from agenteval.expressions import expression
from agenteval.journal import from_json, to_json
from agenteval.protocols import Emit
from agenteval.safe_text import unseen

MASK = "***"
SHORTEST_SECRET = 6
"""A shorter text is too common to be blotted out wherever it stands."""
SECRET_HEADER = expression(r"auth|key|token|secret|cookie|passw", re.IGNORECASE)
"""In the name of a header: its value is a secret."""
KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
"""Where the keys of providers are, whichever of them a configuration names."""

Mask = Callable[[str], str]


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Each secret as it may stand in a text, longest first, so that no form cuts another: as it is, in a
    URL, in base64; and each of these as it stands in JSON, once and twice. Short ones are left out."""
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            forms |= {secret, *_in_urls(secret), *_in_base64(secret.encode("utf-8", "surrogatepass"))}
    for _ in range(2):
        forms |= {escaped for form in forms for escaped in _in_json(form)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _in_urls(secret: str) -> Iterator[str]:
    secret = secret.encode("utf-8", "replace").decode()
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)


_FIRST = (0, 2, 3)
"""The first character that holds nothing but the secret, by the bytes before it."""


def _in_base64(secret: bytes) -> Iterator[str]:
    """Behind any number of bytes, in both alphabets: at the end, padded and not, and with more to follow."""
    for before, first in enumerate(_FIRST):
        whole = b64encode(bytes(before) + secret).decode()[first:]
        inner = whole[: (before + len(secret)) * 8 // 6 - first]
        for form in (whole, whole.rstrip("="), inner):
            yield form
            yield form.replace("+", "-").replace("/", "_")


def _in_json(form: str) -> Iterator[str]:
    for is_ascii in (False, True):
        escaped = json.dumps(form, ensure_ascii=is_ascii)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")


def redactor(secrets: Iterable[str]) -> Mask:
    return masker(forms_of(secrets))


def masker(forms: Sequence[str]) -> Mask:
    """Masks each of ``forms``, in their order."""
    return replacer(dict.fromkeys(forms, MASK))


def replacer(by_form: Mapping[str, str]) -> Mask:
    """Puts something else in the place of each form, in their order, also where it is there between signs
    that no reader sees."""

    def replaced(text: str) -> str:
        for form, other in by_form.items():
            text = text.replace(form, other)
        gaps = unseen(text) if by_form else []
        for form, other in by_form.items() if gaps else ():
            while place := _place_between(gaps, text, form):
                text = f"{text[: place[0]]}{other}{text[place[1] :]}"
                gaps = unseen(text)
        return text

    return replaced


def _place_between(gaps: Sequence[tuple[int, int]], text: str, form: str) -> tuple[int, int] | None:
    """Where a form begins and ends in a text once its ``gaps`` are taken out of it."""
    seen, at = [], 0
    for begin, end in gaps:
        seen.append(text[at:begin])
        at = end
    found = "".join([*seen, text[at:]]).find(form)
    if found < 0:
        return None
    first, last = found, found + len(form) - 1
    for begin, end in gaps:
        first += end - begin if begin <= first else 0
        last += end - begin if begin <= last else 0
    return first, last + 1


def within(value: Any, mask: Mask) -> Any:
    """A JSON value with every text in it masked, keys included. Numbers stay numbers."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(key): within(item, mask) for key, item in value.items()}
    return [within(item, mask) for item in value] if isinstance(value, list | tuple) else value


_ESCAPED = expression(r"\\(?:u00|[bf])")
"""Signs that nobody sees, as they stand in JSON."""


def redacting(emit: Emit, secrets: Iterable[str]) -> Emit:
    """``emit`` behind a filter: an event that holds a secret is emitted without it."""
    forms = forms_of(secrets)
    if not forms:
        return emit
    mask = masker(forms)

    def filtered(event: Event) -> None:
        text = to_json(event)
        if _ESCAPED.search(text) or mask(text) != text:
            value = json.loads(text)
            masked = within(value, mask)
            event = event if masked == value else from_json(json.dumps(masked))
        emit(event)

    return filtered


class _Known:
    """The secrets of this process: its configuration's and, until that is known, those of providers."""

    def __init__(self) -> None:
        self.mask: Mask | None = None


_known = _Known()


def know(secrets: Iterable[str]) -> None:
    """``hide`` hides them from now on."""
    _known.mask = redactor((*secrets, *keys_in(os.environ)))


def keys_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of providers in an environment."""
    return tuple(filter(None, (environ.get(name, "").strip() for name in KEY_VARIABLES)))


def hide(text: str) -> str:
    """``text`` without a secret of this process."""
    if _known.mask is None:
        know(())
    assert _known.mask
    return _known.mask(text)


def hide_in_json(text: str) -> str:
    """The same for JSON, which it stays: a secret of digits alone is no part of its numbers."""
    if hide(text) == text and not _ESCAPED.search(text):
        return text
    value = json.loads(text)
    masked = within(value, hide)
    return text if masked == value else json.dumps(masked, ensure_ascii=False, indent=2)


def without_query(url: str) -> str:
    """``url`` as messages show it: credentials and query may hold secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
