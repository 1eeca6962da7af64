"""Mask JSON and markup, and pack JSON for the page: compressed (gzip) and encoded (base85)."""

from __future__ import annotations

import gzip
import json
from base64 import b85encode
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from typing import Any

from agenteval.core.sample_report import SampleReport
from agenteval.files.redaction import mask_value, redact_json
from agenteval.reporters.html.markup import Markup
from agenteval.reporters.results.document import value_to_json
from agenteval.reporters.results.shape import Results
from agenteval.reporters.words.transcript_lines import disclosed_secrets, mask_secrets

_WORDS = """
    answer asked columns end fingerprints is log metrics model ms prompt record repeat requests rules show
    system texts values
"""
"""The keys of the page's JSON that are not in the schema of the JSON report."""


class DisclosureMask:
    """Masks the secrets that agents disclosed in a run, because a report must not disclose them again."""

    def __init__(self, samples: Iterable[SampleReport]) -> None:
        self._hidden = {
            secret: shown for sample in samples for secret, shown in disclosed_secrets(sample).items()
        }

    def mask_json(self, text: str) -> str:
        """Mask the secrets in JSON, which stays valid."""
        if not any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in self._hidden):
            return text
        return value_to_json(mask_value(json.loads(text), self._mask))

    def mask_markup(self, markup: Markup) -> Markup:
        escaped = {escape(secret, quote=False): escape(shown) for secret, shown in self._hidden.items()}
        return Markup(mask_secrets(markup, escaped))

    def _mask(self, text: str) -> str:
        return mask_secrets(text, self._hidden)


def redact(text: str) -> str:
    """Mask the secrets of the environment in JSON. The journal is masked already, so that this is a second
    line of defense."""
    masked = redact_json(text, _schema)
    return text if masked == text else value_to_json(json.loads(masked))


@cache
def _schema() -> Mapping[str, Any]:
    """Return a JSON Schema with all keys of the page's JSON and the states of scenarios, which are not
    masked."""
    return {
        "allOf": [
            Results.model_json_schema(mode="serialization"),
            {
                "properties": dict.fromkeys(_WORDS.split()),
                "enum": ["flaky", "finding", "tolerated", "reported", "partly-read"],
            },
        ]
    }


def pack(text: str) -> str:
    """Compress and encode text. The encoding is the usual base85 (RFC 1924), except that the page cannot
    contain ``<``, for which ``,`` is written. It is 6 % shorter than base64. The first character is the
    number of bytes that pad the data to a multiple of four."""
    packed = gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)
    return f"{-len(packed) % 4}{b85encode(packed, pad=True).decode().replace('<', ',')}"
