"""Secrets out of everything that is written: by value, in plain, URL, base64 and JSON form, also where signs
that no reader sees stand between their letters. Those that an author marked (``agent: {secrets}``) are found
as ``not_contains`` finds, so that a number within a longer one stays whole; in events each has a placeholder.

``redact_events`` takes them out of the events, which reports are made of; ``hide`` is the last thing that
every writer does before it writes."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus, urlsplit

from pydantic import TypeAdapter, ValidationError

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, TurnFinished
from agenteval.core.marked_secrets import replace_secrets, replace_secrets_across
from agenteval.core.protocols import Emit
from agenteval.core.providers import PROVIDERS
from agenteval.core.safe_text import find_invisible
from agenteval.core.secrets import mask_keys
from agenteval.files.journal import event_from_json, event_to_json

MASK = "***"
SHORTEST_SECRET = 6
"""A shorter text is too common to be blotted out wherever it stands."""
SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw", re.IGNORECASE)
"""In the name of a header: its value is a secret."""
KEY_VARIABLES = tuple(name for provider in PROVIDERS.shipped.values() for name in provider.keys)
"""Where the keys of providers are, whichever of them a configuration names."""

Mask = Callable[[str], str]
NO_MARKED: Mapping[str, str] = {}


def secret_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Each secret as it may stand in a text, longest first, so that no form cuts another: as it is, in a
    URL, in base64; and each of these as it stands in JSON, once and twice. Short ones are left out."""
    forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def replacement_forms(by: Mapping[str, str]) -> dict[str, str]:
    """By form of each text, the same form of what stands in its place, longest first."""
    pairs = [
        pair
        for text, other in by.items()
        if len(text) >= SHORTEST_SECRET
        for pair in zip(_forms(text), _forms(other), strict=True)
    ]
    return dict(sorted(dict(reversed(pairs)).items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _forms(secret: str) -> list[str]:
    """In an order that does not depend on it, so that a form has its place; the plainest comes first."""
    forms = [secret, *_url_forms(secret), *_base64_forms(secret.encode("utf-8", "surrogatepass"))]
    once = [escaped for form in forms for escaped in _json_forms(form)]
    return [*forms, *once, *(escaped for form in once for escaped in _json_forms(form))]


def _url_forms(secret: str) -> Iterator[str]:
    secret = secret.encode("utf-8", "replace").decode()
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)


_FIRST_CHARACTER = (0, 2, 3)
"""The first character that holds nothing but the secret, by the bytes before it."""


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Behind any number of bytes, in both alphabets: at the end, padded and not, and with more to follow."""
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
    return masker(secret_forms(secrets))


def masker(forms: Sequence[str]) -> Mask:
    """Masks each of ``forms``, in their order."""
    return replacer(dict.fromkeys(forms, MASK))


def replacer(by_form: Mapping[str, str]) -> Mask:
    """Puts something else in the place of each form, in their order, also where it is there between signs
    that no reader sees. A part of a form that a shortened text ends or continues with is masked."""
    all_forms = "\0".join(by_form)
    sought = _minimal_forms(by_form)

    def may_hold(text: str) -> bool:
        return any(map(text.__contains__, sought))

    def cut_off(text: str) -> list[_Replacement]:
        return [(first, end, MASK) for first, end in _cut_off(text, by_form, all_forms)]

    def replaced(text: str) -> str:
        if may_hold(text):
            for form, other in by_form.items():
                text = text.replace(form, other)
        text = _replace_places(text, [], cut_off(text))
        # What a terminal reads as a sequence is in a file one unseen sign, and letters.
        for is_terminal in (True, False) if by_form and find_invisible(text) else ():
            is_held = may_hold(_without_gaps(text, find_invisible(text, sequences=is_terminal)))
            for form, other in by_form.items() if is_held else ():
                gaps = find_invisible(text, sequences=is_terminal)
                text = _replace_places(text, gaps, _find_form(_without_gaps(text, gaps), form, other))
            gaps = find_invisible(text, sequences=is_terminal)
            text = _replace_places(text, gaps, cut_off(_without_gaps(text, gaps)))
        return text

    return replaced


def _minimal_forms(forms: Iterable[str]) -> tuple[str, ...]:
    """The forms that hold no other, a fifth of all: a text without them, as most are, holds none."""
    found: list[str] = []
    for form in sorted(forms, key=len):
        if not any(map(form.__contains__, found)):
            found.append(form)
    return tuple(found)


_Replacement = tuple[int, int, str]
"""Where something begins and ends in a text as it is seen, and what comes there instead."""
_ELLIPSIS = re.compile(r"(?:…|\.{3}|\\u2026)+")
"""Where a text was shortened."""


def _find_form(text: str, form: str, other: str) -> list[_Replacement]:
    found, at = [], text.find(form)
    while at >= 0:
        found.append((at, at + len(form), other))
        at = text.find(form, at + len(form))
    return found


def _cut_off(text: str, forms: Iterable[str], all_forms: str) -> Iterator[tuple[int, int]]:
    """Where a text holds the beginning of a form right before a cut, or the end of one right after it."""
    done = 0
    for cut in _ELLIPSIS.finditer(text):
        before = text[max(0, cut.start() - SHORTEST_SECRET) : cut.start()]
        after = text[cut.end() : cut.end() + SHORTEST_SECRET]
        if len(before) == SHORTEST_SECRET and before in all_forms:
            lengths = (
                length
                for form in forms
                for length in _part_ends(form, before)
                if text.startswith(form[:length], max(0, cut.start() - length))
            )
            first = max(done, cut.start() - max(lengths, default=0))
            if first < cut.start():
                yield first, cut.start()
        if len(after) == SHORTEST_SECRET and after in all_forms:
            lengths = (
                len(form) - end + SHORTEST_SECRET
                for form in forms
                for end in _part_ends(form, after)
                if text.startswith(form[end - SHORTEST_SECRET :], cut.end())
            )
            done = cut.end() + max(lengths, default=0)
            if done > cut.end():
                yield cut.end(), done


def _part_ends(form: str, part: str) -> Iterator[int]:
    at = form.find(part)
    while at >= 0:
        yield at + len(part)
        at = form.find(part, at + 1)


def _without_gaps(text: str, gaps: Sequence[tuple[int, int]]) -> str:
    seen, at = [], 0
    for begin, end in gaps:
        seen.append(text[at:begin])
        at = end
    return "".join([*seen, text[at:]])


def _replace_places(text: str, gaps: Sequence[tuple[int, int]], places: Sequence[_Replacement]) -> str:
    """``places`` are of the text once its ``gaps`` are taken out of it."""
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
    """A JSON value with every text in it masked, keys included. Numbers stay numbers, and so do ``keys``
    and ``texts``, words of a schema: a secret that is an ordinary word must not destroy it."""
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
    """The names of fields in a JSON schema, and the texts that it asks for."""
    names: set[str] = set()
    texts: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, Mapping):
            if isinstance(properties := part.get("properties"), Mapping):
                names.update(properties)
            values = [part.get("const"), part.get("default")]
            values += part["enum"] if isinstance(part.get("enum"), list) else []
            texts.update(each for each in values if isinstance(each, str))
            walk(list(part.values()))
        elif isinstance(part, list):
            for each in part:
                walk(each)

    walk(schema)
    return frozenset(names), frozenset(texts)


@cache
def _event_vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """Made when a secret is first found: it takes a moment."""
    return schema_vocabulary(TypeAdapter(Event).json_schema(mode="serialization"))


_ESCAPED = re.compile(r"\\(?:u00|[bf])")
"""Signs that nobody sees, as they stand in JSON."""


def redact_events(
    emit: Emit,
    secrets: Iterable[str],
    name: Callable[[Event, Event], Event] | None = None,
    *,
    marked: Mapping[str, str] = NO_MARKED,
) -> Emit:
    """``emit`` behind a filter: an event that holds a secret is emitted without it, or not at all; that
    raises ``AuthorError``. ``name`` gets an event as it was and as it leaves, and may add to the latter.
    ``marked``: by what an author marked as a secret, its placeholder, which is the same everywhere: so in an
    event "as it was" it stands already."""
    without, with_placeholders = event_masker(secrets), _placeholder_masker(marked)
    if without is None and with_placeholders is None:
        return emit

    def filtered(event: Event) -> None:
        event = with_placeholders(event) if with_placeholders else event
        masked = without(event) if without else event
        emit(name(event, masked) if name else masked)

    return filtered


def event_masker(secrets: Iterable[str]) -> Callable[[Event], Event] | None:
    """Masks an event: the very event, if it holds no secret. ``None``: there is none to mask."""
    forms = secret_forms(secrets)
    if not forms:
        return None
    mask = masker(forms)

    def masked(event: Event) -> Event:
        text = event_to_json(event)
        if _ESCAPED.search(text) or mask(text) != text:
            return _masked(event, json.loads(text), (mask, *_fallback_masks(mask, forms)))
        return event

    return masked


def _placeholder_masker(marked: Mapping[str, str]) -> Callable[[Event], Event] | None:
    """Puts placeholders into an event. ``None``: nothing is marked."""
    if not marked:
        return None

    def put(text: str) -> str:
        return replace_secrets(text, marked)

    # Where a placeholder is not taken: a word that events are made of, a number.
    masks = (put, put, lambda text: text if _NUMBER.fullmatch(text) else put(text))

    def masked(event: Event) -> Event:
        value = json.loads(event_to_json(event))
        turn = value.get("turn") if isinstance(event, TurnFinished) else value.get("unfinished")
        if isinstance(turn, dict):
            texts = replace_secrets_across([step.get("text") or "" for step in turn["steps"]], marked)
            steps = zip(turn["steps"], texts, strict=True)
            turn["steps"] = [{**step, "text": text} if step.get("text") else step for step, text in steps]
        return _masked(event, value, masks)

    return masked


def _masked(event: Event, value: Any, masks: Sequence[Mask]) -> Event:
    """The event without a secret. Raises ``AuthorError`` where none of the ``masks`` is taken at a place:
    what cannot be masked is not written."""
    masking = _Masking(masks)
    while True:
        masked = masking.apply(value)
        if masked == value == json.loads(event_to_json(event)):
            return event
        try:
            return event_from_json(json.dumps(masked))
        except ValidationError as error:
            for path in {_error_path(detail["loc"], masked) for detail in error.errors(include_url=False)}:
                masking.try_next(path)


class _Masking:
    """Masks the value of an event with the first of ``masks``; places that do not take it get the next in its
    stead, and only those."""

    def __init__(self, masks: Sequence[Mask]) -> None:
        self._masks = masks
        self._tried: dict[_Path, int] = {}
        self._names, self._texts = _event_vocabulary()

    def apply(self, value: Any, path: _Path = ()) -> Any:
        """``value``, which stands at ``path``, masked. From the second mask on, words of events are left."""
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
        """Of a place where all was tried, what is around it may be what is wrong."""
        last = len(self._masks) - 1
        for length in range(len(path), -1, -1):
            around = path[:length]
            if self._tried.get(around, 0) < last:
                self._tried[around] = self._tried.get(around, 0) + 1
                return
        name = ".".join(part for part in path if isinstance(part, str))
        what = f"a secret is in a place where it cannot be masked: {name or 'in the value'}"
        raise AuthorError(Problem(what, "write no secret there, or give the variable another value"))


_Path: TypeAlias = tuple[str | int, ...]


def _fallback_masks(mask: Mask, forms: Iterable[str]) -> Iterator[Mask]:
    """What may stand for a secret where ``MASK`` may not. The first is for words that events are made of,
    which are left from here on; then what a pattern and a needle take for stars, a number (it stays one), and
    as many letters and digits as the secret has."""
    yield mask
    yield replacer(dict.fromkeys(forms, re.escape(MASK)))
    yield lambda text: text if _NUMBER.fullmatch(text) else mask(text)
    yield replacer({form: _DIGIT.sub("0", _LETTER.sub("x", form)) for form in forms})


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")


def _error_path(loc: Sequence[str | int], value: Any) -> _Path:
    """Where in ``value`` an error is: its ``loc`` without the names of unions' members, as far as there is
    such a place."""
    path: list[str | int] = []
    for part in loc:
        is_there = isinstance(value, Mapping) and part in value
        if is_there or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
    return tuple(path)


class _SecretStore:
    """The secrets of this process: its configuration's, those of providers, and what the environment calls a
    secret. ``written``: what authors wrote in their files, by which the last are known not to be one."""

    def __init__(self) -> None:
        self.secrets: tuple[str, ...] = ()
        self.author_texts: list[str] = []
        self.marked: dict[str, str] = {}
        self.mask: Mask | None = None


_store = _SecretStore()


def register_secrets(secrets: Iterable[str]) -> None:
    """``hide`` hides them from now on."""
    _store.secrets, _store.mask = tuple(secrets), None


def register_marked_secrets(marked: Iterable[str], *, also: bool = False) -> None:
    """The same of what an author marked as a secret, and of its placeholders: in a report nothing is to look
    as if it had been said. ``also``: beside those that are known."""
    _store.marked = {**(_store.marked if also else {}), **dict.fromkeys(marked, MASK)}


def register_author_text(text: Callable[[], str]) -> None:
    """What stands in a scenario or a configuration (in its file, or in a journal that holds it) is no secret
    because a variable has it, too."""
    if any(_named_secrets(os.environ)):  # mostly there is none
        _store.author_texts.append(text())
        _store.mask = None


def environment_secrets() -> tuple[str, ...]:
    """The values of variables that are named like a secret and look like one, whoever uses them."""
    return tuple(value for value in _named_secrets(os.environ) if not _is_in_author_text(value))


def _is_in_author_text(secret: str) -> bool:
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    return any(secret in text or escaped in text for text in _store.author_texts)


_NAMED_SECRET = re.compile(r"(?:^|_)(?:PASSWORD|TOKEN|SECRET|KEY)$", re.IGNORECASE)
_SHORTEST_NAMED_SECRET = 12
"""A shorter value, or one without letters or digits, may be any word: ``SORT_KEY=created``."""


def _named_secrets(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        value = value.strip()
        if len(value) < _SHORTEST_NAMED_SECRET or not _NAMED_SECRET.search(name):
            continue
        if any(map(str.isalpha, value)) and any(map(str.isdigit, value)):
            yield value


def provider_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of providers in an environment."""
    return tuple(filter(None, (environ.get(name, "").strip() for name in KEY_VARIABLES)))


def redact_text(text: str) -> str:
    """``text`` without a secret of this process."""
    if _store.mask is None:
        _store.mask = redactor((*_store.secrets, *provider_keys(os.environ), *environment_secrets()))
    return _store.mask(replace_secrets(text, _store.marked) if _store.marked else text)


def redact_keys(text: str) -> str:
    """The same for what is said of an author's mistake, and without anything that looks like a key: one that
    stands where a name belongs is not a secret that was known."""
    return mask_keys(redact_text(text), MASK)


def redact_json(text: str, schema: Callable[[], Any] = dict) -> str:
    """The same for JSON, which it stays: a secret of digits alone is not a part of its numbers, and one that
    is a word of its ``schema`` is left there."""
    if not _store.marked and not _ESCAPED.search(text) and redact_text(text) == text:
        return text
    value = json.loads(text)
    names, texts = schema_vocabulary(schema())
    masked = mask_value(value, redact_text, keys=names, texts=texts)
    return text if masked == value else json.dumps(masked, ensure_ascii=False, indent=2)


_IN_XML = re.compile(r'(?<==")[^"<]*+|(?<=>)[^<]++')
"""The values of attributes, and text between tags."""


def redact_xml(text: str) -> str:
    """The same for XML, which it stays: a secret that is a word of its markup is left there."""
    return text if redact_text(text) == text else _IN_XML.sub(lambda found: redact_text(found[0]), text)


def redact_url(url: str) -> str:
    """``url`` as messages show it: credentials and query may hold secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
