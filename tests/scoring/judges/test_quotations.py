"""Quotations: the forms of careful readers are read, and no word gets in that does not stand there."""

from __future__ import annotations

import json

import pytest

from agenteval.scoring.judges.quotations import is_partly_quoted, is_quoted, same_words

POLICY = """# Rules of the shop

## Fees
- Sale items are final and cannot be returned.
- A refund takes 5 to 7 days.

**Hand-over**
* Pass on whoever asks for a person.
"""
ORDER = json.dumps({"id": "W-1", "status": "pending", "total": 1969.22, "fee": 25.5, "items": [1, 250]})
ANSWER = "No idea. Your order is cancelled.\nYou get **back** 250 euros, that is $31.40 less."
LATER = "I have passed you on to a colleague."
TEXTS = (POLICY, ORDER, ANSWER, LATER, "Ok.", "Price: €80 today")


@pytest.mark.parametrize(
    "quotation",
    [
        # Ellipses, in any brackets.
        "Your order is cancelled (…) 250 euros",
        "Your order is cancelled (...) 250 euros",
        "Your order is cancelled [...] 250 euros",
        "Your order is cancelled … passed you on",
        # Whose words they are.
        "Agent: Your order is cancelled.",
        "The agent says: Your order is cancelled.",
        'Turn 3: "Your order is cancelled."',
        "Turn 3, agent: Your order is cancelled.",
        "Assistant (turn 2): Your order is cancelled.",
        "agent: Ok.",
        # Two side by side.
        '"Your order is cancelled." and "I have passed you on"',
        '"Your order is cancelled." "I have passed you on"',
        "“Your order is cancelled.”, “I have passed you on”",
        "Your order is cancelled / I have passed you on",
        "Your order is cancelled; I have passed you on",
        "Your order is cancelled.\nI have passed you on",
        "Agent: Your order is cancelled.\nAgent: I have passed you on",
        # JSON, with other blanks.
        '"status":"pending"',
        '"id":"W-1","status":"pending"',
        '{"id":"W-1", "status" : "pending"',
        '"total":1969.22',
        # Heading and rule.
        "Fees: Sale items are final",
        "## Fees\nSale items are final and cannot be returned.",
        "## Fees\n- Sale items are final",
        "Fees - A refund takes 5 to 7 days.",
        "Rules of the shop > Fees > A refund takes 5 to 7 days",
        "Sale items are final and cannot be returned. A refund takes 5 to 7 days.",
        "Hand-over: Pass on whoever asks",
        # Amounts.
        "$1,969.22",
        "$1969.22",
        "$25.50",
        "1,969.22",
        # A full stop is counted before it is dropped.
        "No idea.",
        # As before.
        "You get back 250 euros",
        "- Sale items are final",
        "Ok",
        "“Your ORDER is cancelled”",
    ],
)
def test_fair_forms_are_read(quotation: str) -> None:
    assert is_quoted(quotation, TEXTS)


@pytest.mark.parametrize(
    "quotation",
    [
        "",
        "…",
        "(…)",
        "order",
        "No idea",  # seven bytes, and no whole message
        "idea!!!!",
        "Agent:",
        "Turn 3:",
        "Agent: order",  # the label is not counted
        "Turn 12345678: back",
        "Agent: Your order is on its way.",
        "Your order is cancelled (…) a hundred thousand",
        "Your order is refunded",
        "The order was cancelled",
        '"Your order is cancelled." and "I have refunded it"',
        '"order" and "colleague"',  # neither tells its place
        "Your order is cancelled and I have passed you on",  # one sentence that nobody said
        "Your order is cancelled; refunded",
        "Your order is / passed you on to a lawyer",
        "No / idea / back / less",
        "No\nidea\nback",
        '"status":"shipped"',
        '"state":"pending"',
        '"id":"pending"',
        '"status":"W-1"',
        '"1250"',  # 1 and 250
        '"1,250"',
        "Fees: Sale items can be returned",
        "Refunds: Sale items are final",  # no such heading
        "Fees: final",
        "Sale items: cannot be returned",
        "## Fees: refunds are made at once",
        "$1,969.23",
        "$969.22",
        "$80",  # euros
        "€31.40",  # dollars
        "$1.969",
        "$25.05",
        "$2",
        "Sale items are finally",
        "A refund takes 5 days",
        "You get back 25 euros",
        "You get back 50 euros",
        "less than 250 euros",
        "[The agent cancels it]",
        "Le remboursement prend 5 jours",
    ],
)
def test_invented_words_stay_out(quotation: str) -> None:
    assert not is_quoted(quotation, TEXTS)


def test_a_piece_of_one_may_be_of_another_source() -> None:
    assert is_partly_quoted('"status":"pending" / Your order is cancelled', (ANSWER,))
    assert is_partly_quoted("pending … Your order is cancelled", (ANSWER,))
    assert not is_partly_quoted('"status":"pending"', (ANSWER,))


def test_marks_around_make_no_other_words() -> None:
    assert same_words("“No idea.”", "no idea")
    assert not same_words("No idea", "No idea at all")


SAID = (
    "I am unable to refund you. Today I cannot do that; it will be refundable. An incomplete order, ORD-42."
)


@pytest.mark.parametrize(
    "quotation",
    ["able to refund you", "Today I can", "it will be refund", "complete order", "Today I can; it will be"],
)
def test_words_are_not_cut(quotation: str) -> None:
    """What is left of one may say the opposite."""
    assert not is_quoted(quotation, [SAID])


@pytest.mark.parametrize(
    "quotation",
    [
        "…able to refund you",
        "it will be refund…",
        "unable to refund you",
        "I am una… complete order",
        "cannot do that",
    ],
)
def test_words_may_be_cut_where_an_ellipsis_says_so(quotation: str) -> None:
    assert is_quoted(quotation, [SAID])
