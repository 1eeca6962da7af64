"""Values as they are written, in texts and alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.detectors.dates import clock_of, days_in_prose, days_of
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.leaves import Leaves
from agenteval.detectors.mentions import Mention, mentions_in
from agenteval.detectors.phrases import Answer
from agenteval.detectors.values import numbers_of, plain, reading, stands_in
from agenteval.trajectory import ToolCall, ToolResult


@pytest.mark.parametrize(
    ("text", "numbers", "decimals"),
    [
        ("10,000", (10000.0, 10.0), 0),
        ("10.000", (10.0, 10000.0), 3),
        ("1,234,567", (1234567.0,), 0),
        ("1.234,56", (1234.56,), 2),
        ("1,234.56", (1234.56,), 2),
        ("12,5", (12.5,), 1),
        ("58.0", (58.0,), 1),
        ("1'234", (1234.0,), 0),
        ("1,200,3", (1.0, 200.0, 3.0), 0),
    ],
)
def test_separators(text: str, numbers: tuple[float, ...], decimals: int) -> None:
    assert numbers_of(text) == (numbers, decimals)


@pytest.mark.parametrize(
    ("token", "days"),
    [
        ("2024-05-20", {(2024, 5, 20)}),
        ("2024/5/3", {(2024, 5, 3)}),
        ("2024-05-20T10:00:00Z", {(2024, 5, 20)}),
        ("05/20/2024", {(2024, 5, 20)}),
        ("05/06/24", {(2024, 5, 6), (2024, 6, 5)}),
        ("18.03.2024", {(2024, 3, 18)}),
        ("20240520", {(2024, 5, 20)}),
        ("05/20", {(0, 5, 20)}),
        ("2024-13-40", set()),
        ("12", set()),
    ],
)
def test_days(token: str, days: set[tuple[int, int, int]]) -> None:
    assert set(days_of(token)) == days


@pytest.mark.parametrize(
    ("token", "minutes"),
    [
        ("14:30", (870,)),
        ("14:30:59", (870,)),
        ("2:30pm", (870,)),
        ("2pm", (840,)),
        ("12am", (0,)),
        ("12pm", (720,)),
        ("14h30", (870,)),
        ("03:00:00+1", (180,)),
        ("2024-05-20T10:05:00", (605,)),
        ("25:00", ()),
        ("9", ()),
    ],
)
def test_times(token: str, minutes: tuple[int, ...]) -> None:
    assert clock_of(token) == minutes


def kinds(text: str) -> list[tuple[str, str]]:
    return [(mention.kind, mention.text) for mention in mentions_in(plain(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,200 or 50 dollars", [("money", "1,200"), ("money", "50")]),
        ("USD 50, €3.5, 20 €", [("money", "50"), ("money", "3.5"), ("money", "20")]),
        ("10 000 km", [("number", "10 000")]),
        ("1 249,90 €", [("money", "1 249,90")]),
        ("15% or 15 percent", [("percent", "15"), ("percent", "15")]),
        ("on May 3rd, 2024 at 2:30 PM", [("date", "May 3rd, 2024"), ("time", "2:30 PM")]),
        ("May 19th and 20th, 2024", [("date", "May 19th"), ("date", "20th, 2024")]),
        ("am 3. Mai um 14.30 Uhr", [("date", "3. Mai"), ("time", "14.30")]),
        ("le 14 juillet 2025", [("date", "14 juillet 2025")]),
        ("2024年5月20日 和 5月3号", [("date", "2024年5月20日"), ("date", "5月3号")]),
        ("you may 5 times", [("number", "5")]),
        (
            "HAT069, ORD-42 and #W23",
            [("identifier", "HAT069"), ("identifier", "ORD-42"), ("identifier", "W23")],
        ),
        ("ID:HAT069", [("identifier", "HAT069")]),
        ("mia.li3818@example.com", [("identifier", "mia.li3818@example.com")]),
        ("(276) 216-0133", [("identifier", "(276) 216-0133")]),
        ("card ending in 7447", [("identifier", "7447")]),
        ("5-7 days, 10am-11am", [("number", "5"), ("number", "7"), ("time", "10am"), ("time", "11am")]),
        ("from 10 to 11:30", [("time", "11:30")]),
        ("1. one\n- 2) two\n**3.** three", []),
        ("https://a.example/x/12?y=3", []),
        ("```\nx = 5\n```\n6 remain", [("number", "6")]),
        ("in 1999, line 12, 24/7", []),
        ("$10k, 1.2 million, 48.1M", [("money", "10k"), ("number", "1.2"), ("number", "48.1M")]),
        ("٢٥ و ５８", [("number", "25"), ("number", "58")]),
    ],
)
def test_mentions(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_what_letters_multiply() -> None:
    assert [mention.numbers[0] for mention in mentions_in("$10k, 1.2 million, 5 m")] == [
        10000.0,
        1200000.0,
        5.0,
    ]


def test_a_time_without_its_half_of_the_day_is_vague() -> None:
    assert [mention.vague for mention in mentions_in("at 2:30, 02:30, 2:30 PM")] == [True, False, False]


def test_days_in_prose() -> None:
    assert days_in_prose("May 3rd, 2024, 4 June and 2024年5月6日, march on 7") == {
        (2024, 5, 3),
        (0, 6, 4),
        (2024, 5, 6),
    }


def test_a_word_stands_in_a_text_by_itself_only() -> None:
    assert stands_in("ord-4", "ord-42, ord-4.")
    assert not stands_in("ord-4", "ord-42, xord-4")


def test_plain_text_keeps_every_place() -> None:
    assert plain("٣ – 5\u202f000 ％") == "3 - 5 000 %"
    assert len(plain("٣ – 5\u202f000 ％ é 中")) == len("٣ – 5\u202f000 ％ é 中")


@given(st.text(max_size=60) | st.text("0123456789.,:/-+@# $%pmAM'年月日", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    spans: list[Mention] = list(mentions_in(plain(text)))
    for one, other in pairwise(spans):
        assert one.end <= other.start
    for mention in spans:
        assert plain(text)[mention.start : mention.end] == mention.text
    reading(text)


def test_digits_behind_a_unit_are_no_group_of_its_number() -> None:
    assert [mention.numbers[:1] for mention in mentions_in("9t 555 and 9 555 kg")] == [
        (9.0,),
        (555.0,),
        (9555.0,),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5F:09:BB:E2 and 91:C4:0D:6A", [("identifier", "5F:09:BB:E2"), ("identifier", "91:C4:0D:6A")]),
        ("at 10:15:30", [("time", "10:15:30")]),
        ("447190265588, 123456789 bytes", [("identifier", "447190265588"), ("number", "123456789")]),
        (
            "call 0800 4471 220 or 090-5550-1182",
            [("identifier", "0800 4471 220"), ("identifier", "090-5550-1182")],
        ),
        (
            "card 5130 0067 3765 5422",
            [("number", "5130"), ("number", "0067"), ("number", "3765"), ("number", "5422")],
        ),
        ("Freitag, 17.10.2025, um 9:30", [("date", "17.10.2025"), ("time", "9:30")]),
        ("| 14/05 | 5/6 |", [("date", "14/05")]),
        ("GHS 14,850.36, 20 AED, 3 try", [("money", "14,850.36"), ("money", "20"), ("number", "3")]),
        ("7日前、11月15日、15日に", [("number", "7"), ("date", "11月15日")]),
    ],
)
def test_more_mentions(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_millimetres_are_no_millions() -> None:
    assert [mention.numbers[0] for mention in mentions_in("11.4 mm, $3mm")] == [11.4, 3e6]


def test_phrases_end_with_their_sentence() -> None:
    answer = Answer("It is e.g. 5 kg. Another is 7 kg; then 9 kg\nand 11 kg。12 kg")
    clauses = [answer.phrase(index).clause for index in range(5)]
    assert clauses == ["It is e.g. 5 kg.", " Another is 7 kg;", " then 9 kg\n", "and 11 kg。", "12 kg"]


@pytest.mark.parametrize(
    ("value", "has_rows"),
    [
        ({"name": "Ridge tent", "price": 249}, False),
        ({"name": "Ridge tent", "size": {"price": 2, "name": "S"}}, False),  # one thing with its parts
        ({"tents": [{"price": 249}, {"weight": 3}]}, False),
        ({"tents": [{"price": 249}, {"price": 179}]}, True),
    ],
)
def test_rows_are_entries_with_the_same_field(value: object, has_rows: bool) -> None:
    leaves = Leaves()
    leaves.add_json(value, 0)
    assert leaves.has_rows is has_rows
    leaves.add_json(value, 1)
    assert leaves.has_rows is has_rows, "of one source"


def test_what_is_hidden_is_read_on_demand() -> None:
    evidence = Evidence()
    evidence.add_text("user", "the user", "Look at [image]")
    assert evidence.is_opaque
    evidence = Evidence()
    for index, result in enumerate(('{"note": "[omitted]", "at": 1700000000}', '{"name": "Lisbon"}')):
        evidence.add_call(ToolCall(name="get", args={}, result=ToolResult(value=result)), index)
    assert not evidence.is_opaque
    assert evidence.hidden == {"note"}
    assert evidence.titles == {"lisbon"}
    assert (2023, 11, 14) in evidence.days
    assert evidence.has_utc
