"""Replace the secrets in a recording with placeholders of the same form (redaction).

A mask would hide the form, but an agent that leaks a key in the run must also leak a key in the replay. Each
secret is therefore replaced by a placeholder in which the secret's letters and digits are replaced with
random characters. These are drawn separately for each recording, so that nothing about the secret can be
inferred from the placeholder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random, SystemRandom
from typing import Any

from agenteval.core.marked_secrets import randomize_characters
from agenteval.files.redaction import MASK, mask_value, masker, replacer, secret_forms

_PREFIX = re.compile(r"(?:.{0,11}[-_])?")
_LONG = 20
"""The minimum length of a secret whose prefix (such as ``sk-proj-`` or ``AKIA``) is kept. The prefix
identifies the type of the secret and has four to twelve characters."""


class Placeholders:
    """The placeholders in one recording. Their ``values`` may be published."""

    def __init__(self, secrets: Iterable[str]) -> None:
        random = SystemRandom()
        self._by_form = {form: _placeholder(form, random) for form in _minimal_forms(secrets)}
        self.values = tuple(value for value in self._by_form.values() if value != MASK)
        self._replace = replacer(self._by_form)

    def substitute(self, value: Any) -> Any:
        """Return a JSON value with its secrets replaced by placeholders."""
        return mask_value(value, self._replace)


def _minimal_forms(secrets: Iterable[str]) -> list[str]:
    """Return the forms that do not contain any other form. For example, the first word of ``Bearer KEY`` is
    not secret."""
    forms = secret_forms(secrets)
    return [form for form in forms if not any(other in form for other in forms if other != form)]


def _placeholder(form: str, random: Random) -> str:
    if "\\" in form:  # a JSON escape, whose letters must not change
        return MASK
    found = _PREFIX.match(form)
    kept = max(4, found.end() if found else 0) if len(form) >= _LONG else 0
    return form[:kept] + randomize_characters(form[kept:], random)


def make_masker(secrets: Iterable[str], placeholders: Iterable[str]) -> Callable[[str], str]:
    """Return a function that masks both secrets and placeholders, so that the masked texts of a run and its
    replay are equal."""
    return masker(sorted({*_minimal_forms(secrets), *placeholders}, key=len, reverse=True))
