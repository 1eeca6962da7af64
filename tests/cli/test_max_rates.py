"""``--max-rate SEVERITY=RATE``: what is a rate, and what is refused."""

from __future__ import annotations

import pytest

from agenteval.cli.max_rates import max_rates_of
from agenteval.core.errors import AuthorError
from agenteval.core.score import Severity

CRITICAL, HIGH, LOW = Severity.CRITICAL, Severity.HIGH, Severity.LOW


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], {}),
        (["high=1%"], {HIGH: 0.01}),
        (["high=0.01"], {HIGH: 0.01}),
        (["critical=0"], {CRITICAL: 0.0}),
        (["critical=0%"], {CRITICAL: 0.0}),
        (["high=99.9%"], {HIGH: 0.999}),
        (["high=0.999"], {HIGH: 0.999}),
        (["high=7%"], {HIGH: 0.07}),
        ([" High = 2.5 % "], {HIGH: 0.025}),
        (["LOW=.5"], {LOW: 0.5}),
        (["low=20%", "critical=0"], {LOW: 0.2, CRITICAL: 0.0}),
    ],
    ids=str,
)
def test_rates_by_severity(texts: list[str], expected: dict[Severity, float]) -> None:
    found = max_rates_of(texts)
    assert found == expected
    assert list(found) == list(expected)
    assert all(type(rate) is float for rate in found.values())


@pytest.mark.parametrize(
    ("texts", "facts"),
    [
        (["high"], ["--max-rate high:", "--max-rate high=1%"]),
        ([""], ["--max-rate high=1%"]),
        (["hihg=1%"], ["'hihg'", "high"]),
        (["=1%"], ["''"]),
        (["high=1%", "HIGH=2%"], ["HIGH=2%", "high", "twice"]),
        (["high="], ["''"]),
        (["high=%"], ["'%'"]),
        (["high=x"], ["'x'"]),
        (["high=nan"], ["'nan'"]),
        (["high=inf"], ["'inf'"]),
        (["high=-1%"], ["'-1%'"]),
        (["high=1%%"], ["'1%%'"]),
        (["high=0=1"], ["'0=1'"]),
        (["high=100%"], ["100%", "0.01"]),
        (["high=1"], ["1 allows", "0.01"]),
        (["high=1.5"], ["1.5 allows"]),
    ],
    ids=str,
)
def test_what_is_no_rate_is_refused(texts: list[str], facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        max_rates_of(texts)
    (problem,) = error.value.problems
    assert problem.what.startswith(f"--max-rate {texts[-1]}:")
    assert problem.remedy
    for fact in facts:
        assert fact in f"{problem.what} {problem.remedy}"
