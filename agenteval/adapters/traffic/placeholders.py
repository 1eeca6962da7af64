"""Secrets out of a recording, with something of the same shape in their place.

A mask would do, if nobody looked at the shape: but an agent that tells a key has leaked, in the replay as in
the run. So each secret gets a placeholder: its letters and digits replaced by others, drawn anew for each
recording, so that nothing of the secret can be found out from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random, SystemRandom
from typing import Any

from agenteval.core.marked_secrets import randomize_characters
from agenteval.files.redaction import MASK, mask_value, masker, replacer, secret_forms

_PREFIX = re.compile(r"(?:.{0,11}[-_])?")
_LONG = 20
"""A secret of so many characters keeps what says its kind (``sk-proj-``, ``AKIA``): four to twelve."""


class Placeholders:
    """The placeholders of one recording; ``values`` may be known to anyone."""

    def __init__(self, secrets: Iterable[str]) -> None:
        random = SystemRandom()
        self._by_form = {form: _placeholder(form, random) for form in _least(secrets)}
        self.values = tuple(value for value in self._by_form.values() if value != MASK)
        self._replaced = replacer(self._by_form)

    def substitute(self, value: Any) -> Any:
        """A JSON value without a secret in it."""
        return mask_value(value, self._replaced)


def _least(secrets: Iterable[str]) -> list[str]:
    """The forms that hold no other: of ``Bearer KEY`` the first word is not a secret."""
    forms = secret_forms(secrets)
    return [form for form in forms if not any(other in form for other in forms if other != form)]


def _placeholder(form: str, random: Random) -> str:
    if "\\" in form:  # an escape of JSON: a letter of it must not change
        return MASK
    found = _PREFIX.match(form)
    kept = max(4, found.end() if found else 0) if len(form) >= _LONG else 0
    return form[:kept] + randomize_characters(form[kept:], random)


def make_masker(secrets: Iterable[str], placeholders: Iterable[str]) -> Callable[[str], str]:
    """Masks the one and the other: with it a text of the run and of its replay are the same."""
    return masker(sorted({*_least(secrets), *placeholders}, key=len, reverse=True))
