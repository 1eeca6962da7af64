"""The epochs of one scenario: what counts for estimates, and what is only shown."""

from __future__ import annotations

import pytest

from agenteval.verdict.epochs import EpochOutcomes, Tally

A, B, N = True, False, None


@pytest.mark.parametrize(
    ("outcomes", "least", "most", "fixed"),
    [
        ((A, B, A), 3, 3, (A, B, A)),
        ((A, B, A, A, A, A), 3, 9, (A, B, A)),  # the others were played because of these
        ((A, B), 3, 9, (A, B, N)),
        ((), 2, 2, (N, N)),
        ((N, A, B), 3, 3, (N, A, B)),
    ],
)
def test_estimates_rest_on_the_epochs_that_were_planned_in_advance(
    outcomes: tuple[bool | None, ...], least: int, most: int, fixed: tuple[bool | None, ...]
) -> None:
    found = EpochOutcomes(outcomes, least, most)
    assert found.fixed == fixed
    shown = (*outcomes, *[None] * (least - len(outcomes)))
    assert found.tally == Tally.of(shown)
