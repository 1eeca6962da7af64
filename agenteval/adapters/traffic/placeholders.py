"""Replace the secrets in a recording by placeholders of the same shape.

A mask would hide the shape, but an agent that reveals a key must leak in the replay as it did in the run. So
each secret gets a placeholder: its letters and digits are replaced by random ones, drawn anew for each
recording, so that nothing of the secret can be inferred from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random, SystemRandom
from typing import Any

from agenteval.core.marked_secrets import randomize_characters
from agenteval.files.redaction import MASK, mask_value, masker, replacer, secret_forms

_PREFIX = re.compile(r"(?:.{0,11}[-_])?")
_LONG = 20
"""The length from which a secret keeps the prefix that shows its kind (``sk-proj-``, ``AKIA``): four to
twelve characters."""


class Placeholders:
    """The placeholders of one recording; ``values`` may be public."""

    def __init__(self, secrets: Iterable[str]) -> None:
        random = SystemRandom()
        self._by_form = {form: _placeholder(form, random) for form in _minimal_forms(secrets)}
        self.values = tuple(value for value in self._by_form.values() if value != MASK)
        self._replace = replacer(self._by_form)

    def substitute(self, value: Any) -> Any:
        """Return a JSON value with its secrets replaced."""
        return mask_value(value, self._replace)


def _minimal_forms(secrets: Iterable[str]) -> list[str]:
    """Return the forms that contain no other form: the first word of ``Bearer KEY`` is not a secret."""
    forms = secret_forms(secrets)
    return [form for form in forms if not any(other in form for other in forms if other != form)]


def _placeholder(form: str, random: Random) -> str:
    if "\\" in form:  # a JSON escape, whose letters must not change
        return MASK
    found = _PREFIX.match(form)
    kept = max(4, found.end() if found else 0) if len(form) >= _LONG else 0
    return form[:kept] + randomize_characters(form[kept:], random)


def make_masker(secrets: Iterable[str], placeholders: Iterable[str]) -> Callable[[str], str]:
    """Return a function that masks secrets and placeholders alike, so that a run's text and its replay's are
    equal."""
    return masker(sorted({*_minimal_forms(secrets), *placeholders}, key=len, reverse=True))
