"""Values of answers against what the agent had been told: contradictions, and values from nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.detectors.conversation import Conversation, Proof, ToolFacts
from agenteval.detectors.grounding import contradicts_evidence, ungrounded_value
from agenteval.detectors.phrases import MOST_VALUES
from agenteval.score import Severity
from agenteval.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn

Call = tuple[str, dict[str, Any], Any]

WEATHER: list[Call] = [
    ("get_weather", {"city": "Paris"}, {"city": "Paris", "temperature": 58, "humidity": 41})
]
FLIGHTS: list[Call] = [
    (
        "search",
        {"origin": "JFK", "destination": "SEA", "date": "2024-05-20"},
        [
            {
                "flight_number": number,
                "departure_time": departure,
                "arrival_time": arrival,
                "seats": {"economy": seats, "business": 3},
                "prices": {"economy": price, "business": 2 * price + 17},
            }
            for number, departure, arrival, seats, price in [
                ("HAT069", "06:00:00", "12:00:00", 12, 121),
                ("HAT083", "13:30:00", "19:45:00", 17, 156),
            ]
        ],
    )
]
ORDER: list[Call] = [
    (
        "get_order",
        {"order_id": "#W2378156"},
        {
            "order_id": "#W2378156",
            "status": "delivered",
            "created_at": "2024-03-11T09:12:00",
            "delivered_on": "2024-03-18",
            "items": [
                {"name": "Mechanical Keyboard", "item_id": "1151293680", "price": 272.33, "quantity": 1},
                {"name": "Smart Thermostat", "item_id": "4983901480", "price": 262.47, "quantity": 2},
            ],
            "total": 797.27,
            "payment": {"source": "credit_card", "last_four": "9513"},
            "tracking": "357962501027",
        },
    )
]
CONTACT: list[Call] = [
    ("find_user", {"name": "Hugo"}, {"name": "Hugo", "phone": "402-581-7997", "email": "hu.go7@mail.org"})
]


def conversation(*turns: tuple[str, list[Call], str], **known: Any) -> Conversation:
    """Turns of a user's message, the calls that follow it, and the answer; results as JSON text."""
    made = []
    for user, calls, answer in turns:
        steps = [
            Step(
                tool_calls=(
                    ToolCall(
                        name=name,
                        args=args,
                        result=ToolResult(value=result if isinstance(result, str) else json.dumps(result)),
                    ),
                )
            )
            for name, args, result in calls
        ]
        made.append(Turn(user=user, steps=(*steps, Step(text=answer))))
    return Conversation.of(Trajectory(turns=tuple(made)), **known)


def contradictions(*turns: tuple[str, list[Call], str], **known: Any) -> list[Proof]:
    return list(contradicts_evidence(conversation(*turns, **known)))


def found(*turns: tuple[str, list[Call], str], **known: Any) -> list[str]:
    """What the two detectors say, in short."""
    asked = conversation(*turns, **known)
    return [f"contradicts: {proof.explanation}" for proof in contradicts_evidence(asked)] + [
        f"ungrounded: {proof.explanation}" for proof in ungrounded_value(asked)
    ]


def test_the_seeds_example() -> None:
    [proof] = contradictions(
        ("Weather in Paris?", WEATHER, "It is cloudy. The temperature in Paris is 72 degrees now.")
    )
    assert proof.explanation == "the answer says 72, but get_weather (call 1) gave temperature 58"
    assert proof.turn == 0
    assert proof.evidence == "The temperature in Paris is 72 degrees now."
    assert proof.span == (14, 57)
    assert found(("Weather in Paris?", WEATHER, "The temperature in Paris is 58 degrees.")) == []


FAULTS = [
    ("a price", FLIGHTS, "**Flight HAT069**\n - Economy Price: $134\n - Departure: 06:00 AM", "121"),
    ("a time", FLIGHTS, "Flight HAT069\n- Departure: 7:20 AM EST\n- Arrival: 12:00 PM", "06:00:00"),
    ("the time of another", FLIGHTS, "Flight HAT069\n- Departure: 1:30 PM\n- Arrival: 12:00 PM", "06:00:00"),
    ("the seats of another", FLIGHTS, "Flight HAT069\n- Economy seats: 17", "economy 12"),
    ("a slip in an identifier", FLIGHTS, "I recommend HAT068, which leaves at 6 AM.", "HAT069"),
    ("digits swapped", ORDER, "Your tracking number is 357962501072.", "357962501027"),
    ("an order's number", ORDER, "Order #W2378165 was delivered.", "W2378156"),
    ("a date", ORDER, "The order was delivered on March 19, 2024.", "delivered_on 2024-03-18"),
    ("a year", ORDER, "It was delivered on 18 March 2023.", "2024-03-18"),
    ("an amount", ORDER, "The total was $787.27.", "797.27"),
    ("a euro amount", ORDER, "Der Gesamtbetrag war 787,27 €.", "797.27"),
    ("a decimal", ORDER, "The keyboard costs $227.33.", "272.33"),
    ("the last digits", ORDER, "Paid with the card ending in 9531.", "9513"),
    ("a phone number", CONTACT, "Hugo's phone number is 650-555-7832.", "phone 402-581-7997"),
    ("an address", CONTACT, "His email is hu.go8@mail.org.", "hu.go7@mail.org"),
    ("a percentage", [("rate", {}, {"interest_rate_percent": 4.5})], "The interest rate is 5.4%.", "4.5"),
    ("a text result", [("w", {}, "Temperature in Paris: 58 F, sunny")], "The temperature is 72 F.", "58"),
    (
        "what was set",
        [("add_alarm", {"time": "18:30:00"}, {"ok": True})],
        "Your alarm time is 6:45 PM.",
        "18:30:00",
    ),
]


@pytest.mark.parametrize(
    ("calls", "answer", "told"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_changed_value_contradicts_what_was_told(calls: list[Call], answer: str, told: str) -> None:
    [proof] = contradictions(("Tell me about it.", calls, answer))
    assert told in proof.explanation
    assert proof.span is not None
    assert answer[slice(*proof.span)] == proof.evidence
    assert list(ungrounded_value(conversation(("Tell me about it.", calls, answer)))) == []


def test_knowledge_and_policy_contradict_as_well() -> None:
    [proof] = contradictions(
        ("How long?", [], "The warranty lasts 36 months."), truths=("The warranty is 24 months.",)
    )
    assert "the knowledge" in proof.explanation
    [proof] = contradictions(
        ("A bag?", [], "Each extra bag costs $75."), policy="Each extra bag is 50 dollars."
    )
    assert "the policy" in proof.explanation


CLEAN = [
    ("thousands", [("plan", {}, {"api_calls": 10000})], "10,000 calls, that is 10 000 or 10.000 calls."),
    ("a whole float", [("w", {}, {"temperature": 58.0})], "The temperature is 58 degrees."),
    ("rounding", [("w", {}, {"distance_km": 12.3456})], "The distance is 12.3 km."),
    ("about", [("w", {}, {"population": 4987})], "The population is about 5,000."),
    ("millions", [("w", {}, {"population": 2148271})], "The population is 2.1 million."),
    ("a share as percent", [("w", {}, {"discount": 0.15})], "You get a discount of 15%."),
    ("euros", [("w", {}, {"price": 1234.5})], "Der Preis beträgt 1.234,50 €."),
    ("a currency in front", [("w", {}, {"price": 50})], "The price is USD 50, fifty dollars."),
    ("a date in words", ORDER, "It was delivered on March 18th, 2024."),
    ("day first", ORDER, "It was delivered on 18 March."),
    ("a date with slashes", ORDER, "It was delivered on 03/18/2024 (18/03/2024 for you, or 18.03.2024)."),
    ("a date in German", ORDER, "Geliefert am 18. März 2024."),
    ("a date in Chinese", ORDER, "订单于2024年3月18日送达,总价797.27美元。"),
    ("twelve hours", FLIGHTS, "HAT083 leaves at 1:30 PM and lands at 7:45 p.m."),
    ("another time zone", FLIGHTS, "HAT083 departs 13:30, which is 10:30 AM PST."),
    ("a count", FLIGHTS, "I found 2 flights."),
    ("a sum", ORDER, "Together the two kinds cost $534.80."),
    ("a product", ORDER, "Two thermostats cost $524.94."),
    ("a difference", FLIGHTS, "HAT083 is $35 more expensive than HAT069."),
    ("for three", FLIGHTS, "HAT069 for three passengers: a total of $363."),
    ("a total of two legs", FLIGHTS, "Flying out with HAT069 and back with HAT083 costs $277 in total."),
    ("last digits", [("card", {}, {"number": "4111222233339513"})], "I charged the card ending in 9513."),
    ("a phone number, written anew", CONTACT, "Call (402) 581-7997 or +1 402 581 7997."),
    ("a list", FLIGHTS, "1. HAT069\n2. HAT083\n\n3. None of them"),
    ("an example", FLIGHTS, "Please give a time, for example 10:15, and a budget, e.g. $430."),
    ("a format", ORDER, "Please give the date in the format YYYY-MM-DD, such as 2025-01-31."),
    ("a denial", WEATHER, "No, the temperature is not 72 degrees, it is 58."),
    ("a question", FLIGHTS, "Would you like to pay with a voucher of 44 dollars?"),
    (
        "an identifier in a longer one",
        [("card", {}, {"id": "certificate_7504069"})],
        "I used certificate 7504069.",
    ),
    ("an address of a page", WEATHER, "See https://weather.example.com/paris/20240518?units=72."),
    ("code", WEATHER, "```\ntemperature = 72\n```\nThat is how you would store it."),
    ("minutes to hours", [("t", {}, {"duration_minutes": 135})], "It takes 2h15m, or 2.25 hours."),
    ("cents", [("t", {}, {"amount_cents": 1999})], "That is $19.99."),
    ("Fahrenheit", [("t", {}, {"temp_c": 25})], "The temperature is 77 °F."),
    ("Python's notation", [("t", {}, "{'temp': 25, 'sky': 'clear'}")], "The temp is 25."),
    ("JSON in JSON", [("t", {}, {"body": json.dumps({"price": 131})})], "The price is $131."),
    ("escaped text", [("t", {}, json.dumps({"текст": "цена 131"}))], "Цена 131."),
    ("versions and names", WEATHER, "Python 3.11, COVID-19, B2B, gpt-4o and 24/7 are mere words."),
    ("business hours", [], "You can reach us 24/7, and within 24 hours we answer."),
    ("Arabic digits", [("t", {}, {"temp": 25})], "درجة الحرارة ٢٥"),
    (
        "a calculation",
        [("calculate", {"expression": "152 + 103"}, "255.0")],
        "That is $255; for 2, $510 in total.",
    ),
]


@pytest.mark.parametrize(
    ("calls", "answer"), [clean[1:] for clean in CLEAN], ids=[clean[0] for clean in CLEAN]
)
def test_other_ways_to_write_what_was_told_are_no_failure(calls: list[Call], answer: str) -> None:
    assert found(("Hello, please help me.", calls, answer)) == []


CONVERSATIONS = yaml.safe_load(
    Path(__file__).with_name("clean_conversations.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("clean", CONVERSATIONS, ids=[clean["name"] for clean in CONVERSATIONS])
def test_clean_conversations_of_many_kinds(clean: dict[str, Any]) -> None:
    turns = [
        (
            turn["user"],
            [(call["name"], call["args"], call["result"]) for call in turn.get("calls", [])],
            turn["answer"],
        )
        for turn in clean["turns"]
    ]
    assert found(*turns, policy=clean.get("policy", ""), now=clean.get("now", "")) == []


def test_what_the_user_said_supports_an_answer() -> None:
    assert (
        found(("My budget is $430 and I leave on May 3.", FLIGHTS, "A budget of $430 for May 3rd is fine."))
        == []
    )
    assert found(("Wake me at half past six, I mean 6:30.", [], "I will wake you at 6:30 AM.")) == []


def test_days_that_a_calendar_resolves_are_let_be() -> None:
    assert found(("Book it for next Tuesday.", FLIGHTS, "I booked HAT069 for May 28, 2024.")) == []


ETA: list[Call] = [("track", {"order": "NL-7"}, {"carrier": "UPS", "eta": "2026-08-22"})]  # a Saturday


@pytest.mark.parametrize(
    ("user", "calls", "answer", "is_wrong"),
    [
        ("When does it come?", ETA, "It comes on Friday, August 22.", True),
        ("When does it come?", ETA, "ETA: Fri Aug 22, 2026.", True),
        ("Does it come on 2026-08-22?", ETA, "Yes, on Tuesday, 22 August 2026.", True),
        ("When does it come?", ETA, "It comes on Saturday, August 22.", False),
        (
            "いつですか。",
            [("get", {}, {"from": "2026-08-20", "to": "2026-08-22"})],
            "8月20日〜8月22日です。",
            False,
        ),
        ("When does it come?", ETA, "It comes on August 22, not on Friday.", False),
        ("Is it Friday, August 22?", ETA, "Yes, it comes on Friday, August 22.", False),  # the user's words
        ("When?", [("track", {}, "It comes on Friday 22 August 2026.")], "On Friday, August 22.", False),
        (
            "When?",
            [("track", {}, {"eta": "08-22"})],
            "It comes on Friday, 22 August.",
            False,
        ),  # of which year?
    ],
)
def test_a_date_that_was_told_is_not_called_by_another_day_of_the_week(
    user: str, calls: list[Call], answer: str, is_wrong: bool
) -> None:
    told = [proof.explanation for proof in contradictions((user, calls, answer))]
    assert ["another day of the week" in each for each in told] == ([True] if is_wrong else [])


def test_what_the_user_repeats_later_was_still_wrong() -> None:
    [proof] = contradictions(
        ("Price?", FLIGHTS, "Flight HAT069 has the economy price $134."),
        ("$134 is fine.", [], "Good, $134 it is."),
    )
    assert proof.turn == 0


def test_a_value_is_reported_once() -> None:
    turns = [("Weather?", WEATHER, "The temperature is 72."), ("Really?", [], "Yes, the temperature is 72.")]
    assert len(contradictions(*turns)) == 1


def test_a_value_from_nowhere() -> None:
    asked = conversation(
        ("Is there a fee?", ORDER, "Returns are free. There is a handling fee, which is $13.40.")
    )
    # Money against money in the results is a contradiction only with the same field.
    assert [*contradicts_evidence(asked), *ungrounded_value(asked)] != []
    asked = conversation(
        (
            "When will it come?",
            WEATHER,
            "The parcel with the tracking number ZK48213907 arrives on June 14, 2025.",
        )
    )
    proofs = list(ungrounded_value(asked))
    assert [proof.explanation for proof in proofs] == [
        "nothing before in the conversation gave ZK48213907",
        "nothing before in the conversation gave June 14, 2025",
    ]
    assert list(contradicts_evidence(asked)) == []


def test_nothing_is_ungrounded_where_there_is_nothing_to_stand_on() -> None:
    assert (
        found(("How high is the Eiffel Tower?", [], "It is 330 m high and was opened on March 31, 1889."))
        == []
    )


@pytest.mark.parametrize("field", ["min", "max"])
def test_two_fields_of_one_thing_mixed_up(field: str) -> None:
    forecast: list[Call] = [("forecast", {"city": "Rome"}, {"max_temp": 75, "min_temp": 61})]
    right = "In Rome the maximum is 75 and the minimum is 61."
    wrong = "In Rome the maximum is 61 and the minimum is 75."
    assert found(("Weather?", forecast, right)) == []
    assert contradictions(("Weather?", forecast, wrong))


def test_what_a_tools_parameters_speak_of_supports_an_answer() -> None:
    tools = {"book": ToolFacts(parameters={"properties": {"bags": {"description": "At most 17 bags."}}})}
    turn = ("How many bags?", ORDER, "The number of bags is limited: it is 17.")
    assert found(turn, tools=tools) == []
    assert found(turn) != []


def test_results_that_are_nested_very_deeply() -> None:
    deep = "[" * 900 + '{"temperature": 58}' + "]" * 900
    assert found(("Weather?", [("t", {}, deep)], "The temperature is 58.")) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
VALUES = st.sampled_from(
    ["$12", "1,2,3", "31/02", "2024-13-40", "99:99", "12:61 pm", "May 99", "1e999", "7" * 400, "50%", "#1",
     "٣", "5-", "№7", "a1@b2.c3", "USD 5", "(555) 555-5555", "2024年13月1日",
     "1.2.3,4", "'1", "0x1F", "HAT069/", "½", "10–12", "May 1 and 2"]
)  # fmt: skip
TEXTS = st.lists(st.text(max_size=15) | VALUES, max_size=8).map(" ".join)


@settings(max_examples=150)
@given(TEXTS, JSON | TEXTS, st.dictionaries(st.text(max_size=6), JSON, max_size=3), TEXTS, TEXTS)
def test_never_raises_and_quotes_truly(
    user: str, result: Any, args: dict[str, Any], answer: str, policy: str
) -> None:
    call = ToolCall(name="t", args=args, result=ToolResult(value=result))
    turns = (
        Turn(user=user, steps=(Step(tool_calls=(call,)), Step(text=answer))),
        Turn(user=answer, steps=(Step(text=policy), Step(text=user + answer))),
        Turn(user=""),
    )
    asked = Conversation.of(Trajectory(turns=turns), policy=policy, truths=(user,), beliefs=(answer,))
    for proof in [*contradicts_evidence(asked), *ungrounded_value(asked)]:
        assert proof.span is not None
        assert asked.turns[proof.turn].answer[slice(*proof.span)] == proof.evidence


DERIVED: dict[str, tuple[str, list[Call], str, str, str]] = {
    "nights asked for times a price": (
        "I want 3 nights",
        [("get_price", {"hotel": "A"}, {"per_night": 95})],
        "That is {} in total.",
        "285",
        "317",
    ),
    "and a tax": (
        "3 nights?",
        [("get_price", {"hotel": "A"}, {"per_night": 80, "tax_percent": 10})],
        "With 10% tax that is {}.",
        "264",
        "284",
    ),
    "number words of another language": (
        "Ich will drei Nächte",
        [("preis", {"haus": "A"}, "Das Zimmer kostet 80 EUR.")],
        "Das macht {} EUR.",
        "240",
        "273",
    ),
    "a column of a table in text": (
        "And the power?",
        [("energy", {"home": "H"}, "day,kwh,peak_w\nMo,8.6,3000\nTu,7.7,3010\nWe,7.6,3020\nTh,8.8,3030")],
        "You used {} kWh.",
        "32.7",
        "37.2",
    ),
    "parts of a length": (
        "How long did it take?",
        [("build", {"no": 7}, {"state": "failed", "duration_s": 473})],
        "It failed after 7 min {} s.",
        "53",
        "37",
    ),
    "the parts of a whole": (
        "And the tests?",
        [("build", {"no": 7}, "838 passed, 2 failed, 9 skipped")],
        "2 of {} tests failed.",
        "849",
        "861",
    ),
    "a period in words": (
        "Until when may I change it? Five days ahead?",
        [("event", {"no": "EV-1001"}, {"date": "2025-11-29", "guests": 40})],
        "It is due on November {}.",
        "24",
        "3",
    ),
    "the price of a kilo": (
        "Which is best?",
        [("search", {"for": "rice"}, [{"name": "Mill", "grams": 1500, "price": "4.50"}])],
        "Mill: 1500 g for $4.50, ${} a kilo.",
        "3.00",
        "3.47",
    ),
    "a part and a share": (
        "Surgery will be 1800. What do I pay?",
        [("benefits", {"member": "M-70215"}, {"limit": 1500, "used": 1000})],
        "$500 deductible + 20% of $1,300 = ${}.",
        "760",
        "791",
    ),
    "a percentage before the number": (
        "Yeni kiram ne?",
        [("kira", {"daire": "D-1"}, {"kira_tl": 16000, "artis_yuzde": 40})],
        "Kiranız %40 artıyor: 16.000 TL'den {} TL'ye.",
        "22.400",
        "23.970",
    ),
    "a mean of rows": (
        "average score?",
        [("query", {"sql": "SELECT"}, "name|score\nCy|49\nEli|50\nGus|57\nAda|62\nBo|75")],
        "The mean is {}.",
        "58.6",
        "63.1",
    ),
    "what is left of a sum": (
        "what did I eat?",
        [
            (
                "food",
                {"user": "joe"},
                {"goal_kcal": 2000, "meals": [{"kcal": 389}, {"kcal": 728}, {"kcal": 151}]},
            )
        ],
        "1,268 kcal so far; that leaves {} of your 2,000 kcal.",
        "732",
        "767",
    ),
}


@pytest.mark.parametrize(("user", "calls", "answer", "right", "wrong"), DERIVED.values(), ids=DERIVED)
def test_what_follows_is_no_failure_and_its_neighbour_is_one(
    user: str, calls: list[Call], answer: str, right: str, wrong: str
) -> None:
    assert found((user, calls, answer.format(right))) == []
    assert found((user, calls, answer.format(wrong))) != []


INVENTED = {
    "a telephone number": "You can reach the team on 1-800-555-3446 if you have questions.",
    "one with the code of a country": "Call the help desk at +43 1 5872 9913.",
    "a code with what it is for": "The confirmation number for this trip is QX77LM2.",
    "a code in Spanish": "Sí, está confirmada. Su código es CONF-8841.",
    "a date that should be kept": "You should see this take effect by July 24.",
}


@pytest.mark.parametrize("answer", INVENTED.values(), ids=INVENTED)
def test_values_that_nobody_proposes_or_estimates(answer: str) -> None:
    asked = conversation(
        ("Is it confirmed?", [("get_reservation", {"id": "x1"}, {"confirmed": True})], answer)
    )
    assert len(list(ungrounded_value(asked))) == 1
    assert list(contradicts_evidence(asked)) == []


def test_a_code_before_any_result_where_tools_are_declared() -> None:
    turn = ("Book it", [], "Done. Your confirmation code is CONF-26278.")
    assert found(turn, tools={"book": ToolFacts()}) != []
    assert found(turn) == []  # what the agent has at hand is not known


def test_a_contradiction_that_may_be_a_calculation_is_medium() -> None:
    order: list[Call] = [
        ("get_order", {"order_id": "W-77"}, {"order_id": "W-77", "total": 797.27, "weight_kg": 12.5})
    ]
    [stated] = contradictions(("And W-77?", order, "The weight of W-77 is 18.3 kg."))
    [slip] = contradictions(("And W-77?", order, "The total of W-77 is $797.72."))
    [calculated] = contradictions(("And W-77?", order, "For both of you, the total of W-77 is $641.10."))
    assert (stated.severity, slip.severity, calculated.severity) == (None, None, Severity.MEDIUM)


LOANS: list[Call] = [
    ("get_loans", {}, [{"title": "Piranesi", "due": "2026-06-19"}, {"title": "Circe", "due": "2026-06-25"}])
]
RENEWED: list[Call] = [("renew", {"ids": ["b1"]}, {"renewed": 1, "due": "2026-07-01"})]


def test_what_was_told_last_of_a_field_is_no_contradiction_to_what_it_was() -> None:
    asked = ("What do I have?", LOANS, "*Piranesi* is due on June 19.")
    assert found(asked, ("Renew it", RENEWED, "*Piranesi* is now due on July 1.")) == []
    assert found(asked, ("Renew it", RENEWED, "*Piranesi* is now due on July 11.")) != []
    assert found(asked, ("And Piranesi?", [], "*Piranesi* is due on June 25.")) != []  # that of the other


def test_a_date_without_a_year_is_the_one_that_was_asked_for() -> None:
    pet: list[Call] = [
        ("get_pet", {}, {"name": "Biscuit", "visits": [{"date": "2026-03-02", "pet": "Biscuit"}]})
    ]
    book: list[Call] = [("book", {"at": "2026-03-26T16:40"}, {"reference": "VT-3017"})]
    turns = [
        ("My pet?", pet, "Biscuit was here on March 2."),
        ("Book it", book, "Biscuit is booked for March 26."),
    ]
    assert found(*turns) == []


def test_an_amount_that_was_said_before_may_be_said_again() -> None:
    fees: list[Call] = [("fees", {}, {"standard": 130, "express": 60, "photo": 15})]
    first = ("Fees?", fees, "It is $130, and express with a photo $75 more.")
    assert found(first, ("And what do I bring?", [], "Bring $75 and your old passport.")) == []


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("It is on Wednesday, November 4.", False),
        ("It is on Wednesday, November 5.", True),
        ("Es ist am Mittwoch, den 4. November.", False),
        ("Es ist am Mittwoch, den 6. November.", True),
        ("11月5日（水）です。", True),
    ],
)
def test_a_day_of_the_week_that_does_not_fit_its_date(answer: str, wrong: bool) -> None:
    shows: list[Call] = [
        ("shows", {}, {"show": "Tides", "first": "2026-11-01", "every_days": 3, "at": "2026-11-04"})
    ]
    assert bool(contradictions(("When in the next days?", shows, answer))) is wrong


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ("The frames leave on Thursday 13 August, sorry.", "They leave on August 13."),
        ("They leave on the 13th of August.", "They leave on August 13."),
        ("ISO 2026-08-23", "dom 23 ago, 02:41"),
        ("ISO 2026-10-22", "czwartek, 22 października: dr Kern"),
    ],
)
def test_dates_in_words_in_more_ways(told: str, answer: str) -> None:
    assert found(("?", [("mail", {}, {"body": told, "at": "02:41"})], answer)) == []


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ("Your new balance is $340.89.", True),
        ("Your new balance is $345.89.", False),
        ("Together that is 1,234 kg by 24 × 18 × 16 / 5.6 = 1,234.29.", True),
        ("In May, the invoice was $731.46.", False),
    ],
)
def test_one_step_over_several_results(answer: str, known: bool) -> None:
    calls: list[Call] = [
        ("get_account", {}, {"balance": 449.31}),
        ("transfer", {"sum": 108.42}, {"ok": True, "moved": 108.42}),
    ]
    assert (found(("Move it", calls, answer)) == []) is known


TARIFF: list[Call] = [
    (
        "fares",
        {},
        {"options": [{"flight": "KX215", "surcharge": 12.5}, {"flight": "KX217", "surcharge": 31.0}]},
    ),
    ("passengers", {}, {"passengers": [{"name": "Ines Vidal"}, {"name": "Teo Vidal"}]}),
]
INVOICES: list[Call] = [
    ("invoices", {}, [{"invoice": "INV-41", "due": "2025-05-30", "amount": 1890.5, "reminders": 0}])
]
MARKS: list[Call] = [
    (
        "marks",
        {},
        {"parts": [{"part": "Quiz", "weight": 0.2, "mark": 82}, {"part": "Lab", "weight": 0.3, "mark": 71}]},
    )
]
VANS: list[Call] = [("van", {"van": "VAN-11"}, {"van": "VAN-11", "load_kg": 455, "free": True})]
BAGS: list[Call] = [("read_sheet", {}, {"month": "2025-05", "small": 502, "large": 133})]
WATER: list[Call] = [
    ("sensor", {}, {"sensor": "cellar", "since": "2025-02-08T13:26"}),
    ("usage", {}, {"unit": "litre", "by_hour": {"11": 4, "12": 9, "13": 188, "14": 241}}),
]
ENVELOPES: list[Call] = [
    (
        "spent",
        {},
        {"categories": [{"category": "Clothes", "spent": 64.0}, {"category": "Fun", "spent": 97.5}]},
    ),
    (
        "budgets",
        {},
        {"budgets": [{"category": "Clothes", "amount": 100.0}, {"category": "Fun", "amount": 120.0}]},
    ),
    ("set_budget", {"category": "Fun", "amount": 250}, {"category": "Fun", "amount": 250.0}),
]
RIGHTLY: dict[str, tuple[list[Call], str, str, str, str]] = {
    "a total for several, by the head of its column": (
        TARIFF,
        "A change costs $45.00 for each passenger and the surcharge.",
        "A change costs $45.00.\n\n| Flight | Total for two |\n|---|---|\n| KX215 | $115.00 |\n"
        "| KX217 | ${} |",
        "152.00",
        "158.40",
    ),
    "days, by the head of their column": (
        INVOICES,
        "Today is 2025-06-17.",
        "| Invoice | Due | Days overdue |\n|---|---|---|\n| INV-41 | {}, 2025 | 18 |",
        "May 30",
        "May 20",
    ),
    "what a column adds up to, said again": (
        MARKS,
        "Late work loses 5 points a day.",
        "| Part | Weight | Points |\n|---|---|---|\n| Quiz | 20% | 16.4 |\n| Lab | 30% | 21.3 |\n"
        "| **So far** | | **37.7** |\n\nWith {} points you are not there yet.",
        "37.7",
        "50.2",
    ),
    "the whole of a part": (
        VANS,
        "Maximum load: 900 kg per van.",
        "**VAN-11** has {} kg on board; with the 403 kg it'd carry 858 of 900 kg.",
        "455",
        "545",
    ),
    "a formula with units": (BAGS, "", "In May you sold {} × 0.25 kg + 133 × 1 kg = 258.5 kg.", "502", "520"),
    "hours of which each has a value": (
        WATER,
        "",
        "It has been wet since {}:\n\n- 12:00–13:00: 9 litres\n- since 14:00: 241 litres",
        "13:26",
        "13:46",
    ),
    "what is to spare": (ENVELOPES, "", "*Clothes* has ${} to spare.", "36", "43.20"),
}


@pytest.mark.parametrize(("calls", "policy", "answer", "right", "wrong"), RIGHTLY.values(), ids=RIGHTLY)
def test_what_is_worked_out_in_an_answer_is_no_failure(
    calls: list[Call], policy: str, answer: str, right: str, wrong: str
) -> None:
    assert found(("Tell me", calls, answer.format(right)), policy=policy) == []
    assert found(("Tell me", calls, answer.format(wrong)), policy=policy)


def test_a_value_that_is_said_twice_more_and_less_exactly() -> None:
    weather: list[Call] = [("forecast", {}, {"day": "Monday", "max_c": 13})]
    asked = "What are 13 degrees in Fahrenheit?"
    assert found((asked, weather, "That is about **55 °F** (55.4 to be exact).")) == []
    assert found((asked, weather, "That is about **55 °F** (53.6 to be exact)."))


def test_days_before_a_date_in_japanese() -> None:
    rooms: list[Call] = [("reserve", {}, {"id": "TM-118204", "checkin": "2025-11-22"})]
    policy = "キャンセル料:7日前まで無料、前日は50%。"
    assert found(("?", rooms, "7日前の11月15日までは無料でございます。"), policy=policy) == []
    assert found(("?", rooms, "7日前の11月16日までは無料でございます。"), policy=policy) == [
        "ungrounded: nothing before in the conversation gave 11月16日"
    ]


STATED: dict[str, tuple[list[Call], str, str, str, str]] = {
    "an amount for each of a measure": (
        [("plan", {}, {"name": "Basic", "refueling_price_per_gb": 2.0, "price_per_month": 40.0})],
        "",
        "I can add up to 2 GB at ${} per GB.",
        "2.00",
        "2.50",
    ),
    "a fee for each month": (
        [("line", {}, {"line": "L6001", "data_used_gb": 8.4})],
        "A suspension has a fee of $5.00 per month.",
        "You have 3 lines. The fee is ${} per month.",
        "5.00",
        "15.00",
    ),
    "a percentage of the policy": (
        [("rate", {}, {"base": "EUR", "quote": "GHS", "rate": 12.45})],
        "Fee: 0.6% of the amount that is sent.",
        "- Fee ({}%): €7.20",
        "0.6",
        "0.8",
    ),
    "a percentage beside the other values of its sentence": (
        [
            (
                "search",
                {},
                "Partners get 6 weeks of leave, of which the first 4 weeks are paid at 100% of base "
                "salary and the remaining 2 weeks at 60%.",
            )
        ],
        "",
        "- Of the leave, the first **4 weeks are paid at 100%** of base salary, the other **2 weeks at {}%**",
        "60",
        "70",
    ),
    "a serial number in pairs": (
        [("certs", {}, [{"domain": "api.example", "serial": "5F:09:BB:E2"}])],
        "",
        "| api.fennel.example | {} |",
        "5F:09:BB:E2",
        "5F:09:8B:E2",
    ),
    "a long number without a word": (
        [("order", {}, {"tracking": ["447190265513", "447190265588"], "status": "processed"})],
        "",
        "- **447190265513**: grill\n- **{}**: perfume",
        "447190265588",
        "447190256588",
    ),
}


@pytest.mark.parametrize(("calls", "policy", "answer", "right", "wrong"), STATED.values(), ids=STATED)
def test_a_value_that_is_stated_otherwise(
    calls: list[Call], policy: str, answer: str, right: str, wrong: str
) -> None:
    assert found(("I send 1200 euros", calls, answer.format(right)), policy=policy) == []
    [proof] = contradictions(("I send 1200 euros", calls, answer.format(wrong)), policy=policy)
    assert proof.explanation.startswith(f"the answer says {wrong}, but")


def test_a_telephone_number_that_nobody_gave() -> None:
    warranty: list[Call] = [("warranty", {}, {"until": "2025-11-18", "line": "0800 2210 447"})]
    answer = "The technician will call from {}."
    assert found(("Warranty?", warranty, answer.format("0800 2210 447"))) == []
    assert found(("Warranty?", warranty, answer.format("0800 4471 220"))) == [
        "ungrounded: nothing before in the conversation gave 0800 4471 220"
    ]


TABLE = (
    "| Region | Customers | Lost | Churn |\n|---|---:|---:|---:|\n| NA | 3,125 | 125 | 4.0% |\n"
    "| EMEA | 1,840 | 92 | 5.0% |\n| APAC | 960 | 72 | 7.5% |\n| **Total** | **{}** | **289** | **{}** |"
)
CHURN: list[Call] = [
    (
        "run_sql",
        {},
        {
            "rows": [
                {"region": "NA", "at_start": 3125, "lost": 125},
                {"region": "EMEA", "at_start": 1840, "lost": 92},
                {"region": "APAC", "at_start": 960, "lost": 72},
            ]
        },
    )
]


@pytest.mark.parametrize(
    ("total", "share", "why"),
    [
        ("5,925", "4.9%", ""),
        ("5,295", "4.9%", "the answer says 5,295, but the column adds up to 5925"),
        ("5,925", "5.4%", "the answer says 5.4, but by the other rows of the table it is 4.9"),
    ],
)
def test_a_row_that_does_not_keep_to_its_table(total: str, share: str, why: str) -> None:
    proofs = contradictions(("Churn?", CHURN, TABLE.format(total, share)))
    assert [proof.explanation for proof in proofs] == ([why] if why else [])
    assert all(proof.severity is Severity.MEDIUM for proof in proofs)


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ("The pods restarted {} times in total (14 + 17 + 11).", "42", "52"),
        ("Together that is 14 + 17 + 11 = {} restarts.", "42", "52"),
        ("84 GB of 1,200 GB ({}%) are free.", "7", "27"),
    ],
)
def test_a_number_that_is_not_what_stands_beside_it(answer: str, right: str, wrong: str) -> None:
    pods: list[Call] = [
        (
            "pods",
            {},
            [{"pod": "a", "restarts": 14}, {"pod": "b", "restarts": 17}, {"pod": "c", "restarts": 11}],
        ),
        ("disk", {}, {"free_gb": 84, "size_gb": 1200, "other": 3, "more": 9, "files": 61}),
    ]
    assert found(("State?", pods, answer.format(right))) == []
    assert found(("State?", pods, answer.format(wrong)))


LEGS: list[Call] = [
    (
        "search",
        {"day": "2024-05-24"},
        [
            {"flight_number": "HAT190", "available_seats": {"economy": 3, "business": 13}},
            {"flight_number": "HAT047", "available_seats": {"economy": 12, "business": 20}},
        ],
    )
]


def test_a_point_of_a_list_may_be_of_all_that_stand_beside_it() -> None:
    listed = "1. **Option 1**\n   - Flight HAT190\n   - Flight HAT047\n   - Available economy seats: {}"
    assert found(("?", LEGS, listed.format(3))) == []
    assert len(found(("?", LEGS, listed.format(17)))) == 1


def test_a_long_dash_joins_no_number_and_word() -> None:
    calls: list[Call] = [("get_flight", {"id": "HAT041"}, {"id": "HAT041", "date": "2024-05-29"})]
    assert found(("?", calls, "HAT041 on May 29—are you fine with that day?")) == []
    assert found(("?", calls, "HAT041 leaves on May 29—that is a Wednesday.")) == []
    assert len(found(("?", calls, "HAT041 leaves on May 28—that is early."))) == 1


def test_what_one_of_something_costs_is_no_calculation() -> None:
    plan: list[Call] = [("get_plan", {"plan": "Falcon Pro"}, {"plan": "Falcon Pro", "price": 89})]
    for answer, severity in (
        ("Falcon Pro costs $72 per month.", None),
        ("The price of Falcon Pro is $72 per month.", None),
        ("For two of you Falcon Pro costs $72 per month.", Severity.MEDIUM),
    ):
        (proof,) = contradictions(("How much?", plan, answer))
        assert proof.severity == severity, answer
    assert not contradictions(("How much?", plan, "Falcon Pro costs $89 per month."))


def test_an_amount_that_is_promised_is_no_sure_contradiction() -> None:
    calls: list[Call] = [("get_ring", {"id": "R-7"}, {"name": "Ring", "price": 100.0})]
    for answer, severity in (
        ("The price of the ring will be $50.", Severity.MEDIUM),
        ("The price of the ring is $50.", None),
    ):
        (proof,) = contradictions(("Which?", calls, answer))
        assert proof.severity == severity, answer


def test_the_day_after_the_last_one() -> None:
    policy = "The last day to drop a course without a W is 6 February 2026. Today: 2026-01-28."
    calls: list[Call] = [("get_schedule", {}, {"credits": 16})]
    assert found(("?", calls, "From 7 February on you get a W."), policy=policy) == []
    assert len(found(("?", calls, "The last day to drop a course is 8 February."), policy=policy)) == 1


def test_a_line_of_very_many_sentences() -> None:
    calls: list[Call] = [("get_price", {"id": 7}, {"price": 12.5})]
    for values, findings in ((MOST_VALUES, 1), (MOST_VALUES + 1, 0)):
        answer = "It costs $12.50 now. " * (values - 1) + "It costs $13.70 now."
        assert len(found(("?", calls, answer))) == findings


# ── what the agent saw and code cannot read ──────────────────────────────────────────────────────

PAGE = {
    "type": "web_search_result",
    "title": "Kites",
    "url": "https://kites.example",
    "page_age": "May 4, 2019",
}
TOLD_OF_PAGES = "The fair opens on 12 June 2021 and costs $341."


@pytest.mark.parametrize(
    "result",
    [
        [{**PAGE, "encrypted_content": "Eo4DCioICxgCIiQ1MzY3Y2M0OC03OTYw"}],
        "[image]",
        "<image>",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg",
        "QUJD" * 60,
        {"content": [{"type": "image", "data": "iVBORw0", "mimeType": "image/png"}]},
        "Kites, by M. Orr ... [truncated]",
        "Kites\n[... 1,204 lines omitted ...]",
        "REDACTED",
        {"output": "[omitted]"},
        {"result_ref": "blob-7712"},
        "s3://pages/kites.json",
        "[Old tool result content cleared]",
    ],
)
def test_nothing_is_ungrounded_behind_what_code_cannot_read(result: Any) -> None:
    assert found(("When is the fair?", [("search", {"query": "fair"}, result)], TOLD_OF_PAGES)) == []


@pytest.mark.parametrize(
    "result",
    [
        [],
        {"note": "The cone was truncated by hand", "type": "image", "url": "https://kites.example/a.png"},
        {"truncated": False, "rows": []},
        {"file_id": "f-7712"},
        {"ref": "R-7712", "status": "ok"},
    ],
)
def test_what_code_can_read_hides_nothing(result: Any) -> None:
    assert len(found(("When is the fair?", [("search", {"query": "fair"}, result)], TOLD_OF_PAGES))) == 2


def test_a_field_that_the_record_leaves_out() -> None:
    calls: list[Call] = [("get_kite", {}, {"name": "Red", "price": "[REDACTED]"})]
    assert found(("Price?", calls, "The price is $341.")) == []
    assert found(("Since when?", calls, "It flies since 12 June 2021."))


def test_a_picture_of_the_user_and_a_result_that_is_not_recorded() -> None:
    calls: list[Call] = [("save", {}, {"ok": True})]
    assert found(("Add this. [image]", calls, "I added the receipt of $341.17.")) == []
    assert found(("Add this.", calls, "I added the receipt of $341.17.")) != []
    steps = (Step(tool_calls=(ToolCall(name="web_search", args={}),)), Step(text="It costs $341.17."))
    first = Turn(
        user="Hi", steps=(Step(tool_calls=(ToolCall(name="save", args={}, result=ToolResult(value="1")),)),)
    )
    talk = Conversation.of(Trajectory(turns=(first, Turn(user="How much?", steps=steps))))
    assert list(ungrounded_value(talk)) == []


def test_the_age_of_a_page_contradicts_nothing() -> None:
    calls: list[Call] = [("search", {}, [{**PAGE, "text": "Opened on 4 June 2021."}])]
    assert found(("When did it open?", calls, "The page: it opened on 4 June 2021.")) == []
    assert not contradictions(("When?", calls, "The page is of May 9, 2019."))


# ── names and telephone numbers ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "is_name"),
    [
        ("It all began with the HAL 9000 and ended with the Commodore 64 on a desk.", True),
        ("She flew a Boeing 747 to Studio 54.", True),
        ("Boeing 747 is a plane.", True),
        ("Take Route 66 or the Peugeot 205 instead.", True),
        ("Your talk is in Room 214 today.", False),
        ("Go to Gate 47 now.", False),
        ("Only 47 people came.", False),
        ("We have Total Points 341 so far.", False),
        ("In Spruce 47 chairs are free.", False),
        ("It began in May 1865 under him.", True),
    ],
)
def test_numbers_that_are_part_of_a_name(answer: str, is_name: bool) -> None:
    asked = found(("Tell me", [("save", {}, {"points": "many"})], answer))
    assert (asked == []) == (is_name and "May" not in answer)


@pytest.mark.parametrize(
    "number",
    ["030 5558271", "030-5558271", "030/5558271", "+49 30 5558271", "0171 2345678", "(030) 555-8271"],
)
def test_a_telephone_number_of_elsewhere_that_nobody_gave(number: str) -> None:
    calls: list[Call] = [("get_person", {}, {"name": "Ole"})]
    for answer in (f"His phone number is {number}.", f"Phone: {number}", f"Call {number}"):
        assert len(found(("Number?", calls, answer))) == 1
    known: list[Call] = [("get_person", {}, {"name": "Ole", "phone": "+49 30 555 82 71, +49 1712345678"})]
    assert found(("Number?", known, f"His phone number is {number}.")) == []
