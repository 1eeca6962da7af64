"""What is known of the tokens of a usage."""

from __future__ import annotations

import pytest

from agenteval.core.trajectory import Usage


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(), None),
        (Usage(calls=2), None),
        (Usage(calls=1, input_tokens=30, output_tokens=15), 45),
        (Usage(calls=1, output_tokens=77, unsplit=True), 77),
        (Usage(cached_calls=3), 0),
        (Usage(calls=1, cached_calls=3), None),
    ],
)
def test_tokens_that_nobody_reported_are_unknown(usage: Usage, tokens: int | None) -> None:
    assert usage.reported_tokens == tokens
