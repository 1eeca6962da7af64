"""Fills in the placeholders in prompt templates in one pass, hashes prompts, and fences untrusted text
against prompt injection.

``${name}`` is a placeholder, and ``$${`` is an escaped ``${``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean

_REFERENCE = re.compile(r"\$(?:(?P<escaped>\$\{)|\{(?P<name>[^}\n]*)\})")
_SURROGATES = re.compile("[\ud800-\udfff]")


class RenderedPrompt(NamedTuple):
    """The strings that are sent to a model."""

    system: str
    prompt: str


def render_template(template: str, values: Mapping[str, str], *, source: str = "") -> str:
    """Replace each ``${name}`` in ``template`` with its value (string interpolation) in one pass. Inserted
    values are not searched for placeholders.

    Raise ``AuthorError`` for a placeholder without a value."""

    def replacement(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "${"
        if found["name"] not in values:
            place = _place_in(template, found.start(), Place(source, 1)) if source else None
            raise AuthorError(_unknown_placeholder(found["name"], values, place))
        return values[found["name"]]

    return _REFERENCE.sub(replacement, template)


def find_placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders in order of first occurrence, without duplicates."""
    return tuple(dict.fromkeys(found["name"] for found in _references(template)))


def placeholder_problems(template: str, known: tuple[str, ...], at: Place) -> Iterator[Problem]:
    """Yield a problem for each placeholder that has no value, and for each ``known`` placeholder that is
    missing, because its value would not reach the model. ``at`` is the location at which the template begins.
    """
    for found in _references(template):
        if found["name"] not in known:
            yield _unknown_placeholder(found["name"], known, _place_in(template, found.start(), at))
    present = find_placeholders(template)
    for name in known:
        if name not in present:
            what = f"the prompt does not contain the placeholder '${{{name}}}'"
            yield Problem(what, f"add ${{{name}}} to it", Place(at.path, at.line, 1))


def _references(template: str) -> Iterator[re.Match[str]]:
    return (found for found in _REFERENCE.finditer(template) if not found["escaped"])


def _place_in(text: str, position: int, at: Place) -> Place:
    """Return the location of a position in a string that begins at ``at``."""
    column = position - text.rfind("\n", 0, position)
    return Place(at.path, at.line + text.count("\n", 0, position), column)


def _unknown_placeholder(name: str, known: Iterable[str], place: Place | None) -> Problem:
    remedy = did_you_mean(name, known) or "use $${ for a literal ${"
    return Problem(f"the prompt contains the unknown placeholder '${{{name}}}'", remedy, place)


def content_hash(*texts: str) -> str:
    """Return a hash of 16 hex digits that depends only on the content of the given strings. Windows line
    endings are treated like Unix line endings."""
    digest = blake2b(digest_size=8)
    for text in texts:
        data = text.replace("\r\n", "\n").encode("utf-8", "replace")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def fence(text: str) -> str:
    """Fence untrusted text against prompt injection: return ``text`` between markers that its author could
    not have written, because the markers contain a hash of the text. The markers for the same text are always
    the same, so that equal requests stay equal. A lone surrogate, which requests cannot contain, becomes
    U+FFFD."""
    text = _SURROGATES.sub("\ufffd", text)
    nonce = blake2b(text.encode(), digest_size=6).hexdigest()
    return f"<data-{nonce}>\n{text}\n</data-{nonce}>"
