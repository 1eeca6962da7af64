"""Whose value it is: rows of one result beside each other, other units and writings of the same value."""

from __future__ import annotations

import pytest
from test_detectors_grounding import Call, contradictions, found

from agenteval.score import Severity

LAMPS: list[Call] = [
    (
        "list_lamps",
        {},
        [
            {"name": "Orion lamp", "gross": 118, "watts": 9, "left": 14},
            {"name": "Vega lamp", "gross": 143, "watts": 12, "left": 6},
            {"name": "Lyra lamp", "gross": 187, "watts": 17, "left": 23},
        ],
    )
]
MARKS: list[Call] = [
    ("get_marks", {}, {"marks": [{"subject": "Botany", "points": 12}, {"subject": "Latin", "points": 7}]})
]
FERRIES: list[Call] = [
    (
        "find_ferries",
        {},
        [
            {"ferry": "NS4412", "sails": "2026-05-02T07:40", "berth": "A12"},
            {"ferry": "NS4417", "sails": "2026-05-09T21:15", "berth": "B31"},
        ],
    )
]
ACCOUNT: list[Call] = [("get_account", {}, {"iban": "AT611904300234573201"})]

OTHER_ROW = {
    "in a sentence": (LAMPS, "The Orion lamp costs $143.", "143", "gross 118"),
    "by a part of its name": (LAMPS, "The Vega is $187.", "187", "gross 143"),
    "in a list": (LAMPS, "- Orion lamp: $118\n- **Vega lamp**: $187", "187", "gross 143"),
    "in a table": (
        LAMPS,
        "| Lamp | Left |\n|---|---|\n| Orion lamp | 6 |\n| Lyra lamp | 23 |",
        "6",
        "left 14",
    ),
    "with its unit": (LAMPS, "The Lyra lamp needs 12 watts.", "12", "watts 17"),
    "alone behind its name": (MARKS, "- Botany: 7", "7", "points 12"),
}


@pytest.mark.parametrize("case", OTHER_ROW)
def test_value_of_another_row(case: str) -> None:
    calls, answer, said, given = OTHER_ROW[case]
    (proof,) = contradictions(("Well?", calls, answer))
    assert f"says {said}, but" in proof.explanation
    assert proof.explanation.endswith(given)
    assert proof.severity == Severity.MEDIUM


OWN = {
    "its own": "The Orion lamp costs $118, the Vega lamp $143.",
    "values first": "$118 for the Orion lamp, $143 for the Vega lamp and $187 for the Lyra lamp.",
    "respectively": "The Orion lamp and the Vega lamp cost $118 and $143 respectively.",
    "a comparison": "The Orion lamp is cheaper, at $143 you get more light.",
    "instead of it": "Instead of the Orion lamp you could take the one for $143.",
    "the next one": "Should the Orion lamp be too weak, the next one costs $143.",
    "columns": "| | Orion lamp | Vega lamp |\n|---|---|---|\n| Price | $118 | $143 |",
    "another thing": "The Orion lamp needs 6 minutes to assemble.",
    "another sentence": "I don't have the Orion lamp. For $143 there is another one.",
}


@pytest.mark.parametrize("case", OWN)
def test_value_of_its_own_row(case: str) -> None:
    assert found(("Well?", LAMPS, OWN[case])) == []


def test_the_row_that_is_spoken_of_is_the_evidence() -> None:
    (proof,) = contradictions(("Well?", MARKS, "Botany: 9 points."))
    assert proof.explanation.endswith("points 12")


def test_a_slip_in_a_name_accuses_no_value_beside_it() -> None:
    answer = "You sail on NS4421 (2 May, 07:40, berth A12) and return on NS4417 (9 May, 21:15, berth B31)."
    (proof,) = contradictions(("Well?", FERRIES, answer))
    assert proof.explanation.endswith("NS4412")


def test_an_invented_price_is_not_held_against_what_counts() -> None:
    calls: list[Call] = [("get_inn", {}, {"name": "Fox Inn", "stars": 3, "sauna": "yes, cellar"})]
    (said,) = found(("Well?", calls, "Yes, there is one in the cellar (€14.50 a visit)."))
    assert said == "ungrounded: nothing before in the conversation gave 14.50"


SOUND: dict[str, tuple[list[Call], str]] = {
    "m/s in mph": ([("get_wind", {}, {"wind": "7.4 m/s"})], "The wind is 17 mph."),
    "m/s in km/h": ([("get_wind", {}, {"wind": "7.4 m/s"})], "Wind: 27 km/h."),
    "m/s in knots": ([("get_wind", {}, {"wind_mps": 7.4})], "The wind blows with 14 knots."),
    "km/h in m/s": ([("get_wind", {}, {"wind_kph": 41})], "The wind is 11.4 m/s."),
    "on the scale of Beaufort": ([("get_wind", {}, {"wind": "7.4 m/s"})], "Wind: 4 Bft."),
    "a range of speeds": ([("get_wind", {}, {"wind": "6-8 m/s"})], "Winds of 22 to 29 km/h."),
    "kg in t": ([("get_load", {}, {"gross": "23740 kg"})], "It weighs 23.74 t."),
    "bit/s in Mbit/s": ([("get_line", {}, {"down_bps": 87000000})], "The line brings 87 Mbit/s."),
    "s in ms": ([("get_ping", {}, {"ping_s": 0.037})], "The latency is 37 ms."),
    "kW in hp": ([("get_car", {}, {"power_kw": 85})], "The car has 116 PS."),
    "body mass": ([("get_body", {}, {"height_cm": 171, "weight_kg": 68.4})], "At 1.71 m your BMI is 23.4."),
    "a range over two months": (
        [("get_fair", {}, {"start": "2026-04-29", "end": "2026-05-02"})], "29 April – 2 May"
    ),
    "one in German": ([("get_fair", {}, {"start": "2026-04-29", "end": "2026-05-02"})], "29. April – 2. Mai"),
    "one without spaces": ([("get_fair", {}, {"a": "2026-04-29", "b": "2026-05-02"})], "29 April–2 May"),
    "the last day of a month": (
        [("get_card", {}, {"made": "2026-03-04", "expires": "2026-08-31"})],
        "It is valid until the end of August (the 31st).",
    ),
    "letters apart": (FERRIES, "Back with: NS 4417 on 9 May."),
    "the digits alone": (FERRIES, "Your way back: ferry 4417 is on time."),
    "a fraction as a percentage": (
        [("get_offer", {}, {"id": "T-8120", "net": 1500.0, "vat_rate": 0.19})],
        "T-8120: €1,500 net + 19 % VAT (€285) = €1,785.",
    ),
    "an account in groups": (ACCOUNT, "The IBAN is AT61 1904 3002 3457 3201."),
    "a factor of units": (ACCOUNT, "An inch is 2.54 cm."),
    "a weight in another unit": ([("get_pet", {}, {"weight_lb": 8.4})], "She weighs 3.81 kg."),
}  # fmt: skip


@pytest.mark.parametrize("case", SOUND)
def test_the_same_value_otherwise_written(case: str) -> None:
    calls, answer = SOUND[case]
    assert found(("Well?", calls, answer)) == []


WRONG: dict[str, tuple[list[Call], str]] = {
    "a speed that is none of it": ([("get_wind", {}, {"wind": "7.4 m/s"})], "The wind is 31 mph."),
    "the other end of a range": (
        [("get_fair", {}, {"start": "2026-04-29", "end": "2026-05-02"})], "29 April – 7 May"
    ),
    "an account with two digits swapped": (ACCOUNT, "The IBAN is AT61 1904 3002 4357 3201."),
    "an account of nowhere": (LAMPS, "Please pay to IBAN FR76 3000 6000 0112 3456 7890 189."),
    "a weight of nowhere": (LAMPS, "The parcel weighed 4.35 kg in the shop."),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_another_value(case: str) -> None:
    calls, answer = WRONG[case]
    assert found(("Well?", calls, answer)) != []


def test_a_wrong_conversion_may_be_of_another_unit() -> None:
    (proof,) = contradictions(("Well?", [("get_wind", {}, {"wind": "7.4 m/s"})], "The wind is 31 mph."))
    assert proof.severity == Severity.MEDIUM
