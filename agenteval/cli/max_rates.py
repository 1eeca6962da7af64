"""Implements ``--max-rate high=1%``: limits the proportion of conversations with findings."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.score import Severity

_HOW = "use SEVERITY=RATE, for example --max-rate high=1% or --max-rate critical=0"


def max_rates_of(texts: Iterable[str]) -> dict[Severity, float]:
    """Parse the option, and return the maximum proportion of conversations with findings for each severity.
    Findings of higher severity are included in the proportion. Raise ``AuthorError`` if an option is
    malformed."""
    found: dict[Severity, float] = {}
    for text in texts:
        name, equals, rate = text.partition("=")
        if not equals:
            raise _mistake(text, "the rate is missing", _HOW)
        severity = _severity(text, name.strip().lower())
        if severity in found:
            raise _mistake(text, f"{severity} is specified twice", "specify each severity once")
        found[severity] = _rate(text, rate.strip())
    return found


def _severity(text: str, name: str) -> Severity:
    try:
        return Severity(name)
    except ValueError:
        raise _mistake(text, f"'{name}' is not a severity", did_you_mean(name, list(Severity))) from None


def _rate(text: str, written: str) -> float:
    is_percentage = written.endswith("%")
    try:
        number = Decimal(written.removesuffix("%").strip())
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise _mistake(text, f"'{written}' is not a valid rate", _HOW)
    rate = number / 100 if is_percentage else number
    if rate >= 1:
        what = f"{written} allows a finding in every conversation"
        raise _mistake(text, what, "use a rate below 100%, such as 1% or 0.01")
    return float(rate)


def _mistake(text: str, what: str, remedy: str) -> AuthorError:
    return AuthorError(Problem(f"--max-rate {text}: {what}", remedy))
