"""Finds the secrets that an author has declared for an agent, and redacts (masks) them in all output.

The leak detector and the masking code find a secret in the same way as ``not_contains``. Therefore,
everything that would be a leak is masked, in any notation. A number within a longer number is neither a leak
nor masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

from agenteval.core.folding import fold, letters_of
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.text_matching import find_mentions

SHORTEST = 4
"""The minimum length of a secret after folding."""


def mistake_in(secret: str) -> str:
    """Return the reason why a string cannot be a secret, without quoting the string. Return an empty string
    if the string can be a secret."""
    if not secret.strip():
        return "an empty string cannot be a secret"
    if (length := len(fold(secret))) < SHORTEST:
        return (
            f"a secret must have at least {SHORTEST} characters, but this one has {length} (without markup)"
        )
    if not any(map(str.isalnum, fold(secret))):
        return "a secret must contain a letter or a digit, because nothing else can be masked"
    return ""


class SecretSpan(NamedTuple):
    """The position of a secret in a string, from its first letter or digit to its last."""

    start: int
    end: int
    secret: str
    depth: int = 0
    """The number of times that the secret is escaped at this position: once in JSON, and twice in JSON within
    JSON."""


def find_secrets(text: str, secrets: Iterable[str]) -> list[SecretSpan]:
    """Return the positions of the secrets in the text, or in its content if the text is JSON. Positions do
    not overlap: the longest secret is matched first."""
    found: list[SecretSpan] = []
    covered = bytearray(len(text))
    targets = _with_letters(tuple(secrets))
    for depth, reading in _readings(text):
        letters = letters_of(reading)
        present = [secret for secret, letters_of_secret in targets if letters_of_secret in letters]
        at = _origins(text, depth) if present else ()  # usually there is none, which is cheap to find out
        for secret in present:
            for begin, stop in find_mentions(reading, secret):
                start, end = at[begin], at[stop]
                if depth and text[start:end] == reading[begin:stop]:
                    continue  # nothing in it is escaped
                if not any(covered[start:end]):
                    covered[start:end] = b"\1" * (end - start)
                    found.append(SecretSpan(start, end, secret, depth))
    return sorted(found)


@lru_cache(maxsize=64)
def _with_letters(secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each secret with its letters and digits, longest first."""
    ordered = sorted(secrets, key=lambda each: -len(fold(each)))
    return tuple((secret, letters_of(secret)) for secret in ordered)


def _readings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text unescaped twice (JSON within JSON), unescaped once (JSON), and unchanged, each with the
    number of times it was unescaped."""
    if "\\" in text:
        once = _ESCAPE.sub(_unescape, text)
        if "\\" in once:
            yield 2, _ESCAPE.sub(_unescape, once)
        yield 1, once
    yield 0, text


def _unescape(escape: re.Match[str]) -> str:
    char: str = json.loads(f'"{escape[0]}"')
    return char


def _origins(text: str, depth: int) -> Sequence[int]:
    """Return the index in the original text for each index in the unescaped text, including the end."""
    origins: Sequence[int] = range(len(text) + 1)
    for _ in range(depth):
        now: list[int] = []
        at = 0
        for escape in _ESCAPE.finditer(text):
            char = _unescape(escape)
            now += [*origins[at : escape.start()], *[origins[escape.start()]] * len(char)]
            at = escape.end()
        origins = [*now, *origins[at:]]
        text = _ESCAPE.sub(_unescape, text)
    return origins


_ESCAPE = re.compile(
    r'\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})'
)


def replace_secrets(text: str, by: Mapping[str, str], *, cased: bool = False) -> str:
    """Return ``text`` with each secret replaced (redacted) by its counterpart in ``by``, from the first
    letter or digit of the secret to the last. If ``cased`` is true, the case of the replacement is adapted
    where the secret is not written as its author wrote it."""
    if not text:
        return text
    pieces, at = [], 0
    for start, end, secret, depth in find_secrets(text, by):
        replacement = _strip_marks(by[secret])
        if cased:
            replacement = _match_case(replacement, _strip_marks(secret), text[start:end])
        for _ in range(depth):
            replacement = json.dumps(replacement, ensure_ascii=False)[1:-1]
        pieces += [text[at:start], replacement]
        at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def _match_case(other: str, secret: str, written: str) -> str:
    if not len(other) == len(secret) == len(written) or secret.casefold() != written.casefold():
        return other
    letters = zip(other, secret, written, strict=True)
    return "".join(each if one == two else each.swapcase() for each, one, two in letters)


def replace_secrets_across(pieces: Sequence[str], by: Mapping[str, str]) -> list[str]:
    """Replace the secrets that begin in one piece of an agent's turn and end in another. The replacement is
    inserted into the last of these pieces."""
    left = list(pieces)
    if sum(map(bool, pieces)) < 2:
        return left
    starts = [0, *accumulate(len(piece) + len(_BETWEEN) for piece in pieces)]
    for start, end, secret, _ in reversed(find_secrets(_BETWEEN.join(map(blank_reasoning, pieces)), by)):
        *before, last = (
            n for n, piece in enumerate(pieces) if starts[n] < end and starts[n] + len(piece) > start
        )
        for number in before:
            left[number] = left[number][: max(0, start - starts[number])]
        if before:
            left[last] = _strip_marks(by[secret]) + left[last][end - starts[last] :]
    return left


_BETWEEN = "\n\n"
"""The separator between a text and a neighboring call, as in the joined text of a turn."""


def _strip_marks(text: str) -> str:
    """Return the text from its first letter or digit to its last. A mask contains neither and is returned
    unchanged."""
    at = [index for index, char in enumerate(text) if char.isalnum()]
    return text[at[0] : at[-1] + 1] if at else text


def placeholders_of(secrets: Sequence[str]) -> dict[str, str]:
    """Return a placeholder of the same shape for each secret. A placeholder depends only on the shape of the
    secret and on the number of earlier secrets of that shape, so it reveals nothing else about the secret and
    is the same in every run."""
    by_fold = {fold(secret): secret for secret in secrets}
    used = set(by_fold)
    generators: dict[str, Random] = {}
    placeholders: dict[str, str] = {}
    for folded, secret in by_fold.items():
        shape = "".join(map(_character_kind, secret))
        random = generators.setdefault(shape, Random(shape))  # not for cryptography
        for _ in range(_TRIES):
            placeholder = randomize_characters(secret, random)
            if not any(fold(placeholder) in other or other in fold(placeholder) for other in used):
                break
        used.add(fold(placeholder))
        placeholders[folded] = placeholder
    return {secret: placeholders[fold(secret)] for secret in secrets}


_TRIES = 1000
_DIGIT, _SMALL, _CAPITAL = "9", "x", "X"
# Without zero, which cannot begin a number, and without the letter of an exponent.
_ALPHABET = {
    _DIGIT: digits[1:],
    _SMALL: ascii_lowercase.replace("e", ""),
    _CAPITAL: ascii_uppercase.replace("E", ""),
}


def randomize_characters(text: str, random: Random) -> str:
    """Replace the letters and digits of a string with random characters."""
    return "".join(random.choice(_ALPHABET.get(kind, kind)) for kind in map(_character_kind, text))


def _character_kind(char: str) -> str:
    if char.isdigit():
        return _DIGIT
    if char.isupper():
        return _CAPITAL
    return _SMALL if char.isalnum() else char


class UnknownSecret(str):
    """A secret that a replay cannot determine, because the environment variables that contain it are unknown.
    The recording contains its placeholder."""

    __slots__ = ()


class MarkedSecrets(NamedTuple):
    """The secrets of all agents, with their replacements."""

    by_agent: Mapping[str, Mapping[str, str]]
    """The replacement of each secret, keyed by agent and secret. The placeholder of an unknown secret maps to
    itself, because the placeholder is the secret in the recording."""
    placeholders: Mapping[str, tuple[str, ...]]
    """The placeholders, keyed by agent, in the order of the agent's secrets."""

    @property
    def all(self) -> dict[str, str]:
        """The secrets of all agents."""
        return {secret: other for marked in self.by_agent.values() for secret, other in marked.items()}

    @property
    def by_placeholder(self) -> dict[str, str]:
        """The known secrets, keyed by their placeholders."""
        return {other: secret for secret, other in self.all.items() if secret != other}

    def for_agent(self, agent: str, recorded: Mapping[str, Iterable[str]] = {}) -> dict[str, str]:
        """Return the secrets of an agent, including the placeholders that were ``recorded`` for that agent.
        The key ``""`` is used for an agent whose name is unknown."""
        known = self.by_agent.get(agent, self.by_agent.get("", {}))
        placeholders = recorded.get(agent, () if agent in self.by_agent else recorded.get("", ()))
        return {**{each: each for each in placeholders}, **known}


NONE_MARKED = MarkedSecrets({}, {})


def marked_secrets(
    agents: Mapping[str, Sequence[str]], recorded: Mapping[str, Sequence[str]] = {}
) -> MarkedSecrets:
    """Return the secrets of ``agents``, keyed by name. A replay passes the ``recorded`` placeholders in the
    order of the secrets. A secret that is no longer known is an empty string."""
    placeholder_of = placeholders_of([each for secrets in agents.values() for each in secrets if each])
    by_agent: dict[str, dict[str, str]] = {}
    placeholders: dict[str, tuple[str, ...]] = {}
    for name, secrets in agents.items():
        recorded_placeholders = tuple(recorded.get(name, ()))
        replacements = (
            recorded_placeholders
            if len(recorded_placeholders) == len(secrets)
            else tuple(placeholder_of.get(each, "") for each in secrets)
        )
        by_secret = {secret: other for secret, other in zip(secrets, replacements, strict=True) if secret}
        unknown = (each for each in recorded_placeholders if each not in by_secret.values())
        by_agent[name] = {**{each: each for each in unknown}, **by_secret}
        placeholders[name] = (
            recorded_placeholders
            if replacements == recorded_placeholders
            else (*recorded_placeholders, *filter(None, replacements))
        )
    if not any(placeholders.values()):
        placeholders = {}
    return MarkedSecrets(by_agent, placeholders)
