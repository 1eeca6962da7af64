"""Redacts secrets (API keys, tokens, passwords) in all output (secret masking). Secrets are recognized by
their value in plain, URL-encoded, base64-encoded and JSON-escaped form, even if there are invisible
characters between their letters. Secrets that an author marked (``agent: {secrets}``) are matched in the same
way as ``not_contains`` matches text, so that a number inside a longer number is kept. In events, each marked
secret is replaced with a placeholder of its own. Other personal data (PII) is not recognized.

``redact_events`` redacts the events from which reports are made. ``redact_text`` and its variants are the
last step of every writer."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from html import escape, unescape
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus, urlsplit

from pydantic import TypeAdapter, ValidationError

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, TurnFinished
from agenteval.core.marked_secrets import replace_secrets, replace_secrets_across
from agenteval.core.protocols import Emit
from agenteval.core.providers import PROVIDERS
from agenteval.core.safe_text import find_invisible, has_invisible, remove_invisible
from agenteval.core.secrets import mask_keys
from agenteval.files.journal import event_from_json, event_to_json

MASK = "***"
SHORTEST_SECRET = 6
"""The minimum length of a secret. Shorter strings are too common to be masked everywhere."""
SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw", re.IGNORECASE)
"""A pattern for the names of HTTP headers whose values are secrets."""
KEY_VARIABLES = tuple(name for provider in PROVIDERS.shipped.values() for name in provider.keys)
"""The environment variables that contain the API keys of providers, even if no configuration names the
variables."""

Mask = Callable[[str], str]
NO_MARKED: Mapping[str, str] = {}


def secret_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every form in which the secrets may occur in a string: plain, URL-encoded and base64-encoded,
    and each of these JSON-escaped once and twice. The forms are sorted longest first, so that a shorter form
    is not masked inside a longer one. Short secrets are left out."""
    forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def replacement_forms(replacements: Mapping[str, str]) -> dict[str, str]:
    """Return each form of each string, mapped to the corresponding form of its replacement, longest first."""
    pairs = [
        pair
        for text, other in replacements.items()
        if len(text) >= SHORTEST_SECRET
        for pair in zip(_forms(text), _forms(other), strict=True)
    ]
    return dict(sorted(dict(reversed(pairs)).items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _forms(secret: str) -> list[str]:
    """Return the forms of a secret. Their order does not depend on the secret, so that the forms of two
    strings can be paired. The plain form is first."""
    forms = [secret, *_url_forms(secret), *_base64_forms(secret.encode("utf-8", "surrogatepass"))]
    once = [escaped for form in forms for escaped in _json_forms(form)]
    return [*forms, *once, *(escaped for form in once for escaped in _json_forms(form))]


def _url_forms(secret: str) -> Iterator[str]:
    secret = secret.encode("utf-8", "replace").decode()
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)


_FIRST_CHARACTER = (0, 2, 3)
"""The position of the first base64 character that depends only on the secret, indexed by the number of bytes
before the secret."""


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the base64 forms of a secret after any number of preceding bytes, in both alphabets: at the end
    of the data, with and without padding, and followed by more bytes."""
    for before, first in enumerate(_FIRST_CHARACTER):
        encoded = b64encode(bytes(before) + secret).decode()[first:]
        inner = encoded[: (before + len(secret)) * 8 // 6 - first]
        for form in (encoded, encoded.rstrip("="), inner):
            yield form
            yield form.replace("+", "-").replace("/", "_")


def _json_forms(form: str) -> Iterator[str]:
    for is_ascii in (False, True):
        escaped = json.dumps(form, ensure_ascii=is_ascii)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")


def redactor(secrets: Iterable[str]) -> Mask:
    return _redactor(tuple(secrets))


@lru_cache(maxsize=16)
def _redactor(secrets: tuple[str, ...]) -> Mask:
    return masker(secret_forms(secrets))


def masker(forms: Sequence[str]) -> Mask:
    """Return a function that masks each form in ``forms``, in the given order."""
    return replacer(dict.fromkeys(forms, MASK))


def replacer(by_form: Mapping[str, str]) -> Mask:
    """Return a function that replaces each form, in the given order, even if the form contains invisible
    characters. An incomplete form next to the ellipsis of a shortened string is masked."""
    return _Replacer(by_form).replace_in if by_form else _keep


def _keep(text: str) -> str:
    return text


_Replacement = tuple[int, int, str]
"""The start and end of a span in a string from which invisible characters were removed, and the
replacement."""
_MARKS = ("…", "...", r"\u2026")
"""Marks that show where a string was shortened."""
_ELLIPSIS = re.compile(f"(?:{'|'.join(map(re.escape, _MARKS))})+")
_PIECE = SHORTEST_SECRET
"""The length of the pieces by which a form is recognized."""
_SAMPLED = 16
"""The minimum length of a form that is searched for by its pieces. For a shorter form, so many pieces of a
string would have to be looked up that a search for the form is faster."""


class _Replacer:
    """Replaces forms in strings. Almost no string contains a form, so all forms are ruled out at once, in a
    time that does not depend on their number. What is done for each form is done only for a string that may
    contain one."""

    def __init__(self, by_form: Mapping[str, str]) -> None:
        self._by_form = by_form
        self._minimal = _minimal_forms(by_form)
        self._short = tuple(form for form in self._minimal if len(form) < _SAMPLED)
        self._shortest = min((len(form) for form in self._minimal if len(form) >= _SAMPLED), default=0)
        self._ends_of = cache(self._find_ends)

    @cached_property
    def _pieces(self) -> frozenset[tuple[str, ...]]:
        return frozenset(piece for form in self._by_form for piece in _pieces_of(form))

    def replace_in(self, text: str) -> str:
        if self._may_contain(text):
            for form, other in self._by_form.items():
                text = text.replace(form, other)
        text = _replace_places(text, [], self._cut_off(text))
        return self._replace_across_gaps(text) if has_invisible(text) else text

    def _may_contain(self, text: str) -> bool:
        if self._short and any(map(text.__contains__, self._short)):
            return True
        if not 0 < self._shortest <= len(text):
            return False
        samples = _pieces_of(text, self._shortest - _PIECE + 1)
        return not self._pieces.isdisjoint(samples) and any(map(text.__contains__, self._minimal))

    def _replace_across_gaps(self, text: str) -> str:
        searched = text
        # An escape sequence is invisible in a terminal; in a file only its first character is.
        for is_terminal in (True, False):
            before, seen = text, remove_invisible(text, sequences=is_terminal)
            if seen == searched:
                break
            for form, other in self._by_form.items() if self._may_contain(seen) else ():
                if form in seen:
                    gaps = find_invisible(text, sequences=is_terminal)
                    text = _replace_places(text, gaps, _find_form(seen, form, other))
                    seen = remove_invisible(text, sequences=is_terminal)
            if places := self._cut_off(seen):
                text = _replace_places(text, find_invisible(text, sequences=is_terminal), places)
            searched = seen if text == before else ""
        return text

    def _cut_off(self, text: str) -> list[_Replacement]:
        """Return the spans of a string that contain the beginning of a form directly before an ellipsis, or
        the end of a form directly after one."""
        is_cut = any(mark in text for mark in _MARKS)
        return [(first, end, MASK) for first, end in self._find_cut_off(text)] if is_cut else []

    def _find_cut_off(self, text: str) -> Iterator[tuple[int, int]]:
        done = 0
        for cut in _find_ellipses(text):
            before = text[max(0, cut.start() - _PIECE) : cut.start()]
            after = text[cut.end() : cut.end() + _PIECE]
            if tuple(before) in self._pieces:
                lengths = (
                    end
                    for form, end in self._ends_of(before)
                    if text.startswith(form[:end], max(0, cut.start() - end))
                )
                first = max(done, cut.start() - max(lengths, default=0))
                if first < cut.start():
                    yield first, cut.start()
            if tuple(after) in self._pieces:
                lengths = (
                    len(form) - end + _PIECE
                    for form, end in self._ends_of(after)
                    if text.startswith(form[end - _PIECE :], cut.end())
                )
                done = cut.end() + max(lengths, default=0)
                if done > cut.end():
                    yield cut.end(), done

    def _find_ends(self, piece: str) -> list[tuple[str, int]]:
        """Return each form that contains the piece, with each position in it at which the piece ends."""
        return [(form, end) for form in self._by_form for end in _part_ends(form, piece)]


def _minimal_forms(forms: Iterable[str]) -> tuple[str, ...]:
    """Return the forms that do not contain another form. About a fifth of all forms qualify. Most strings
    contain none of them and therefore contain no form at all."""
    found: list[str] = []
    for form in sorted(forms, key=len):
        if not any(map(form.__contains__, found)):
            found.append(form)
    return tuple(found)


def _pieces_of(text: str, step: int = 1) -> Iterator[tuple[str, ...]]:
    """Yield the piece at every ``step``-th position of a string. Any part of the string that is at least
    ``step - 1`` characters longer than a piece contains one of them."""
    return zip(*(text[at::step] for at in range(_PIECE)), strict=False)


def _find_ellipses(text: str) -> Iterator[re.Match[str]]:
    end = 0
    for at in sorted(at for mark in _MARKS for at in _find_all(text, mark)):
        if at >= end and (found := _ELLIPSIS.match(text, at)):
            yield found
            end = found.end()


def _find_all(text: str, part: str) -> Iterator[int]:
    """Yield the positions of a part of a string. They do not overlap."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _part_ends(form: str, part: str) -> Iterator[int]:
    at = form.find(part)
    while at >= 0:
        yield at + len(part)
        at = form.find(part, at + 1)


def _find_form(text: str, form: str, other: str) -> list[_Replacement]:
    return [(at, at + len(form), other) for at in _find_all(text, form)]


def _replace_places(text: str, gaps: Sequence[tuple[int, int]], places: Sequence[_Replacement]) -> str:
    """Apply ``places``, whose positions refer to the string without its ``gaps``."""
    if not places:
        return text
    begins, removed = [], [0]
    for begin, end in gaps:
        begins.append(begin - removed[-1])
        removed.append(removed[-1] + end - begin)
    pieces, at = [], 0
    for first, end, other in places:
        pieces += [text[at : first + removed[bisect_right(begins, first)]], other]
        at = end + removed[bisect_right(begins, end - 1)]
    return "".join([*pieces, text[at:]])


NO_WORDS: frozenset[str] = frozenset()


def mask_value(
    value: Any, mask: Mask, *, keys: frozenset[str] = NO_WORDS, texts: frozenset[str] = NO_WORDS
) -> Any:
    """Mask every string in a JSON value, including keys. Numbers are kept. Schema words, which are listed in
    ``keys`` and ``texts``, are also kept, because a secret that is an ordinary word must not break the
    structure."""
    if isinstance(value, str):
        return value if value in texts else mask(value)
    if isinstance(value, Mapping):
        return {
            key if key in keys else mask(key): mask_value(item, mask, keys=keys, texts=texts)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_value(item, mask, keys=keys, texts=texts) for item in value]
    return value


def schema_vocabulary(schema: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Return the field names in a JSON Schema, and the strings that the schema prescribes."""
    names: set[str] = set()
    texts: set[str] = set()

    def collect(part: Any) -> None:
        if isinstance(part, Mapping):
            if isinstance(properties := part.get("properties"), Mapping):
                names.update(properties)
            values = [part.get("const"), part.get("default")]
            values += part["enum"] if isinstance(part.get("enum"), list) else []
            texts.update(each for each in values if isinstance(each, str))
            collect(list(part.values()))
        elif isinstance(part, list):
            for each in part:
                collect(each)

    collect(schema)
    return frozenset(names), frozenset(texts)


@cache
def _event_vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """Return the vocabulary of events. It is computed only when a secret is first found, because the
    computation is slow."""
    return schema_vocabulary(TypeAdapter(Event).json_schema(mode="serialization"))


_ESCAPED = re.compile(r"\\(?:u00|[bf])")
"""Invisible characters in JSON-escaped form."""


def redact_events(
    emit: Emit,
    secrets: Iterable[str],
    name: Callable[[Event, Event], Event] | None = None,
    *,
    marked: Mapping[str, str] = NO_MARKED,
) -> Emit:
    """Wrap ``emit``, so that secrets in an event are redacted before the event is emitted. If redaction is
    not possible, emitting raises ``AuthorError``. ``name`` is called with an event before and after masking
    and may extend the masked event. ``marked`` maps each string that an author marked as secret to its
    placeholder. Placeholders are the same everywhere and are therefore inserted before masking."""
    without, with_placeholders = event_masker(secrets), _placeholder_masker(marked)
    if without is None and with_placeholders is None:
        return emit

    def filtered(event: Event) -> None:
        event = with_placeholders(event) if with_placeholders else event
        masked = without(event) if without else event
        emit(name(event, masked) if name else masked)

    return filtered


def event_masker(secrets: Iterable[str]) -> Callable[[Event], Event] | None:
    """Return a function that masks the secrets in an event and returns an event without secrets unchanged.
    Return ``None`` if there are no secrets."""
    forms = secret_forms(secrets)
    if not forms:
        return None
    mask = masker(forms)
    masks = cache(lambda: (mask, *_fallback_masks(mask, forms)))  # most runs need none of them

    def masked(event: Event) -> Event:
        text = event_to_json(event)
        if _ESCAPED.search(text) or mask(text) != text:
            value = json.loads(text)
            return _masked(event, value, value, masks())
        return event

    return masked


def _placeholder_masker(marked: Mapping[str, str]) -> Callable[[Event], Event] | None:
    """Return a function that inserts placeholders into an event, or ``None`` if no secrets are marked."""
    if not marked:
        return None

    def put(text: str) -> str:
        return replace_secrets(text, marked)

    # The later ones are for places where a placeholder is not valid: words that events consist of, numbers.
    masks = (put, put, lambda text: text if _NUMBER.fullmatch(text) else put(text))

    def masked(event: Event) -> Event:
        original = value = json.loads(event_to_json(event))
        name = "turn" if isinstance(event, TurnFinished) else "unfinished"
        turn = original.get(name)
        if isinstance(turn, dict):
            texts = replace_secrets_across([step.get("text") or "" for step in turn["steps"]], marked)
            pairs = zip(turn["steps"], texts, strict=True)
            steps = [{**step, "text": text} if step.get("text") else step for step, text in pairs]
            value = {**original, name: {**turn, "steps": steps}}
        return _masked(event, original, value, masks)

    return masked


def _masked(event: Event, original: Any, value: Any, masks: Sequence[Mask]) -> Event:
    """Return the event without secrets. ``original`` is the JSON value of the event, and ``value`` the one to
    be masked. Raise ``AuthorError`` if there is a location at which none of the
    ``masks`` is valid, because a secret that cannot be masked must not be written."""
    masking = _Masking(masks)
    while True:
        masked = masking.apply(value)
        if masked == original:
            return event
        try:
            return event_from_json(json.dumps(masked))
        except ValidationError as error:
            for path in {_error_path(detail["loc"], masked) for detail in error.errors(include_url=False)}:
                masking.try_next(path)


class _Masking:
    """Masks an event's value with the first of ``masks``. The next mask is used only at locations where the
    result is invalid."""

    def __init__(self, masks: Sequence[Mask]) -> None:
        self._masks = masks
        self._tried: dict[_Path, int] = {}
        self._names, self._texts = _event_vocabulary()

    def apply(self, value: Any, path: _Path = ()) -> Any:
        """Mask ``value``, which is at ``path``. From the second mask on, the words of the event schema are
        kept."""
        stage = max((self._tried.get(path[:length], 0) for length in range(len(path) + 1)), default=0)
        mask = self._masks[stage]
        if isinstance(value, str):
            return value if stage and value in self._texts else mask(value)
        if isinstance(value, Mapping):
            keys = {key: key if key in self._names else mask(key) for key in value}
            return {keys[key]: self.apply(item, (*path, keys[key])) for key, item in value.items()}
        if isinstance(value, list):
            return [self.apply(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def try_next(self, path: _Path) -> None:
        """Switch a location to its next mask. If all masks have been tried there, switch the nearest
        enclosing value with an untried mask instead."""
        last = len(self._masks) - 1
        for length in range(len(path), -1, -1):
            around = path[:length]
            if self._tried.get(around, 0) < last:
                self._tried[around] = self._tried.get(around, 0) + 1
                return
        name = ".".join(part for part in path if isinstance(part, str))
        what = f"a secret occurs where it cannot be masked: {name or 'in the value'}"
        raise AuthorError(Problem(what, "remove the secret from there, or change the value of the variable"))


_Path: TypeAlias = tuple[str | int, ...]


def _fallback_masks(mask: Mask, forms: Iterable[str]) -> Iterator[Mask]:
    """Yield the masks to try after the plain ``mask`` led to an invalid event: the same mask again, because
    from the second attempt on the words of the event schema are kept; ``MASK`` escaped for regular
    expressions; a mask that leaves numbers unchanged; and a mask with as many letters and digits as the
    secret."""
    yield mask
    yield replacer(dict.fromkeys(forms, re.escape(MASK)))
    yield lambda text: text if _NUMBER.fullmatch(text) else mask(text)
    yield replacer({form: _DIGIT.sub("0", _LETTER.sub("x", form)) for form in forms})


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")


def _error_path(loc: Sequence[str | int], value: Any) -> _Path:
    """Return the path to an error in ``value``. This is the error's ``loc`` without the names of union
    members, to the extent that such a path exists."""
    path: list[str | int] = []
    for part in loc:
        is_there = isinstance(value, Mapping) and part in value
        if is_there or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
    return tuple(path)


class _SecretStore:
    """The secrets of this process, from its configuration, from providers, and from environment variables
    with secret names. Values of such variables are not treated as secrets if they occur in ``author_texts``,
    the contents of authors' files."""

    def __init__(self) -> None:
        self.secrets: tuple[str, ...] = ()
        self.author_texts: list[str] = []
        self.marked: dict[str, str] = {}
        self.mask: Mask | None = None


_store = _SecretStore()


def register_secrets(secrets: Iterable[str]) -> None:
    """Set the secrets that the redaction functions of this module remove."""
    _store.secrets, _store.mask = tuple(secrets), None


def register_marked_secrets(marked: Iterable[str], *, also: bool = False) -> None:
    """Set the strings that an author marked as secret, and their placeholders. These strings and placeholders
    are then masked. A report must not show a placeholder as if it had been part of the conversation. ``also``
    adds to the registered strings instead of replacing them."""
    _store.marked = {**(_store.marked if also else {}), **dict.fromkeys(marked, MASK)}


def register_author_text(text: Callable[[], str]) -> None:
    """Register the content of a scenario or a configuration, from its file or from a journal that contains
    it. A string in this content is not a secret merely because an environment variable has the same value."""
    if any(_named_secrets(os.environ)):  # there rarely are any
        _store.author_texts.append(text())
        _store.mask = None


def environment_secrets() -> tuple[str, ...]:
    """Return the values of environment variables whose names suggest a secret and whose values look like one,
    regardless of which program uses the variables."""
    return tuple(value for value in _named_secrets(os.environ) if not _is_in_author_text(value))


def _is_in_author_text(secret: str) -> bool:
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    return any(secret in text or escaped in text for text in _store.author_texts)


_NAMED_SECRET = re.compile(r"(?:^|_)(?:PASSWORD|TOKEN|SECRET|KEY)$", re.IGNORECASE)
_SHORTEST_NAMED_SECRET = 12
"""The minimum length of a secret in an environment variable. A shorter value, or a value that lacks letters
or digits, may be an ordinary word (``SORT_KEY=created``)."""


def _named_secrets(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        value = value.strip()
        if len(value) < _SHORTEST_NAMED_SECRET or not _NAMED_SECRET.search(name):
            continue
        if any(map(str.isalpha, value)) and any(map(str.isdigit, value)):
            yield value


def provider_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the API keys of providers in an environment."""
    return tuple(filter(None, (environ.get(name, "").strip() for name in KEY_VARIABLES)))


def redact_text(text: str) -> str:
    """Redact (mask) the secrets of this process in ``text``."""
    return _mask_of_process()(replace_secrets(text, _store.marked) if _store.marked else text)


def _mask_of_process() -> Mask:
    if _store.mask is None:
        _store.mask = redactor((*_store.secrets, *provider_keys(os.environ), *environment_secrets()))
    return _store.mask


def redact_keys(text: str) -> str:
    """Redact a message about an author's mistake. Anything that looks like an API key is masked as well,
    because a key that was entered instead of a name is not among the known secrets."""
    return mask_keys(redact_text(text), MASK)


def redact_json(text: str, schema: Callable[[], Any] = dict) -> str:
    """Redact JSON so that it stays valid. Numbers are kept, even if a string with the same digits would be
    masked. Words in the ``schema`` are also kept."""
    if not _store.marked and not _ESCAPED.search(text) and redact_text(text) == text:
        return text
    value = json.loads(text)
    names, texts = schema_vocabulary(schema())
    masked = mask_value(value, redact_text, keys=names, texts=texts)
    return text if masked == value else json.dumps(masked, ensure_ascii=False, indent=2)


_IN_XML = re.compile(r'(?<==")[^"<]*+|(?<=>)[^<]++')
"""A pattern for attribute values and for text between tags."""


def redact_xml(text: str) -> str:
    """Redact XML so that it stays valid. Words in the markup are kept."""
    return _IN_XML.sub(lambda found: _redact_escaped(found[0]), text)


_CSV_CELL = re.compile(r'"([^"]*+(?:""[^"]*+)*)"|[^",\r\n]++')
_CSV_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def redact_csv(text: str, schema: Callable[[], Any] = dict) -> str:
    """Redact CSV so that it stays valid. In cells without quotes, numbers and words of the ``schema`` are
    kept."""
    unquoted = text.replace('""', '"')
    if redact_text(unquoted) == unquoted:
        return text
    names, texts = schema_vocabulary(schema())

    def masked(cell: re.Match[str]) -> str:
        if cell[1] is not None:
            return '"{}"'.format(redact_text(cell[1].replace('""', '"')).replace('"', '""'))
        is_kept = cell[0] in names or cell[0] in texts or _CSV_NUMBER.fullmatch(cell[0])
        return cell[0] if is_kept else redact_text(cell[0])

    return _CSV_CELL.sub(masked, text)


_IN_HTML = re.compile(
    r"(<(?:script|style)\b[^>]*>.*?</(?:script|style)>)"
    r'|(?<=>)[^<]++|(?:(?<=href=")|(?<=title=")|(?<=label="))[^"<]*+',
    re.DOTALL,
)


def redact_html(text: str) -> str:
    """Redact an HTML page. Markup, scripts and styles are kept, because a page allows its script by its
    hash."""
    return _IN_HTML.sub(lambda found: found[1] or _redact_escaped(found[0]), text)


def _redact_escaped(text: str) -> str:
    """Redact text in which ``&``, ``<`` and ``>`` are escaped."""
    plain = unescape(text)
    masked = redact_text(plain)
    return text if masked == plain else escape(masked)


def redact_url(url: str) -> str:
    """Return ``url`` for display in messages, without its credentials or query string, because both may
    contain secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
