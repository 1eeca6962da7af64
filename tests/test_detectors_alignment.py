"""A value that stands in the place of one which the answer should have given: the sentence speaks of an entry
of a result by its name or its other values, but gives one of its values otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from test_detectors_grounding import Call, contradictions, found

from agenteval.config import Config
from agenteval.scenario import Scenario
from agenteval.score import Finding, Severity
from agenteval.scorers.detectors import Detectors
from agenteval.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn

REMINDERS: list[Call] = [
    (
        "list_reminders",
        {},
        {
            "reminders": [
                {"id": "r48cc", "text": "Water the ferns", "at": "2025-09-09T20:00"},
                {"id": "rb965", "text": "Renew car insurance", "at": "2025-09-28T09:00"},
            ]
        },
    )
]
ORDER: list[Call] = [
    (
        "get_order",
        {"order": "NW-50052"},
        {
            "order": "NW-50052",
            "items": [
                {"title": "Ridge tent", "qty": 1, "gross": 249.0},
                {"title": "Clip lamp", "qty": 3, "gross": 19.5},
            ],
        },
    )
]
SPACES: list[Call] = [
    (
        "find_stock",
        {},
        [
            {"model": "Marlow desk", "colour": "oak", "shelf": 214},
            {"model": "Pinnacle chair", "colour": "teal", "shelf": 388},
        ],
    )
]
FAULTS: dict[str, tuple[list[Call], str, str, str]] = {
    "the day of one of several": (
        REMINDERS,
        "- Renew car insurance, {} at 9 a.m.",
        "September 28",
        "August 28",
    ),
    "the time of one of several": (
        REMINDERS,
        "Renew car insurance is due on September 28 at {}.",
        "9 a.m.",
        "7:20 a.m.",
    ),
    "a price whose field is called otherwise": (
        ORDER,
        "- 1 × Ridge tent: ${}\n- 3 × Clip lamp: $19.50",
        "249.00",
        "264.00",
    ),
    "a number without a word": (SPACES, "The teal Pinnacle chair: {}.", "388", "417"),
    "a part of the name": (SPACES, "You will find the Marlow desk (oak) at {}.", "214", "241"),
}


@pytest.mark.parametrize(("calls", "answer", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_value_in_the_place_of_the_one_that_is_missing(
    calls: list[Call], answer: str, right: str, wrong: str
) -> None:
    [proof] = contradictions(("Tell me", calls, answer.format(wrong)))
    assert wrong in proof.explanation
    assert proof.severity is Severity.MEDIUM
    assert found(("Tell me", calls, answer.format(right))) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The Pinnacle chair in teal is on shelf 388; there are about 400 like it.",
        "Shall I move the teal Pinnacle chair to 417?",
        "Two of the Ridge tent come to $498.00, since one is $249.00.",
    ],
)
def test_what_is_proposed_rounded_or_given_as_well_is_no_contradiction(answer: str) -> None:
    assert contradictions(("Tell me", [*SPACES, *ORDER], answer)) == []


def test_of_two_entries_that_fit_as_well_none_is_named() -> None:
    rooms: list[Call] = [
        ("rooms", {}, [{"hotel": "Casa Lis", "rate": 84}, {"hotel": "Casa Lis", "rate": 96}])
    ]
    assert contradictions(("A room?", rooms, "Casa Lis has one for 143 a night, I was told.")) == []


def test_what_is_given_elsewhere_in_the_answer_is_not_missing() -> None:
    stock: list[Call] = [("stock", {}, {"model": "Marlow desk", "left": 214, "ordered": 36})]
    [proof] = contradictions(("Stock?", stock, "Marlow desk: 36 are on order and 290 in the shop."))
    assert "left 214" in proof.explanation
    known: list[Any] = contradictions(
        ("Stock?", stock, "Marlow desk: 36 on order, 214 in the shop, 290 in a year.")
    )
    assert known == []


def test_the_value_of_the_entry_beside_it() -> None:
    line = "- The {} in {} is on shelf 388."
    [proof] = contradictions(("Shelves?", SPACES, line.format("Marlow desk", "oak")))
    assert "gave shelf 214" in proof.explanation
    assert contradictions(("Shelves?", SPACES, line.format("Pinnacle chair", "teal"))) == []
    both = "The Marlow desk (oak) is next to the Pinnacle chair (teal), which is on shelf 388."
    assert contradictions(("Shelves?", SPACES, both)) == []


def test_parts_of_an_object_are_its_own() -> None:
    variants: list[Call] = [
        (
            "get_product",
            {},
            {
                "name": "Rucksack",
                "variants": {
                    "5726859009": {"options": {"colour": "grey", "material": "nylon"}, "sum": 200.48},
                    "2492465580": {"options": {"colour": "navy", "material": "canvas"}, "sum": 201.95},
                },
            },
        )
    ]
    for wrong in ("$201.95", "$214.40"):
        [proof] = contradictions(("Colours?", variants, f"- Grey, nylon: {wrong} (available)"))
        assert "gave sum 200.48" in proof.explanation
    assert found(("Colours?", variants, "- Grey, nylon: $200.48 (available)")) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("beside", "last", "spanned"),
    [("It is on shelf 417.", "Fine.", False), ("Wait.", "It is on shelf 417.", True)],
)
async def test_spans_are_places_in_the_final_text(beside: str, last: str, spanned: bool) -> None:
    call = ToolCall(name="find", args={}, result=ToolResult(value={"shelf": 388}))
    turn = Turn(user="?", steps=(Step(text=beside, tool_calls=(call,)), Step(text=last)))
    score = Detectors(Config(), recorded=True)
    items = await score(Scenario(id="s", name="s"), Trajectory(turns=(turn,)))
    [finding] = [item for item in items if isinstance(item, Finding)]
    assert finding.evidence == "It is on shelf 417."
    assert finding.span == ((0, 19) if spanned else None)


def test_a_slip_of_the_field_that_is_named_is_told_although_arithmetic_could_reach_it() -> None:
    stock: list[Call] = [("stock", {}, {"sku": "mug-blu", "on_hand": 124, "units_a_box": 71, "reserved": 6})]
    [proof] = contradictions(("Mugs?", stock, "You have **142 mugs** on hand, 6 of them reserved."))
    assert "gave on_hand 124" in proof.explanation
    assert found(("Mugs?", stock, "Two boxes have 142 mugs.")) == []
