"""How messages are altered, and what stays as it is."""

from __future__ import annotations

import unicodedata
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.conversation.message_alterations import alter_message
from agenteval.core.folding import fold
from agenteval.core.protected_text import protected_spans

KINDS: tuple[Any, ...] = ("typos", "case", "noise", "reordered", "long", "unicode")
SEEDS = range(40)
ORDER = "Please cancel my order ORD-42 and send the refund to anna_k@example.com. I do not need it any more."

WORD_LIST = (
    "please cancel the order because nobody needs this lamp straße naïve Überweisung don't we’ll I a Mia"
    " happily different official"
)
VALUE_LIST = (
    "ORD-42 anna_k@example.com https://shop.example/a?b=1 25.50 $5 3 JFK iPhone `rm` order_id a/b"
    " #77 10:30 ５ Ⅷ twelve tuesday B check-in shop.example 5%"
)
WORDS, VALUES = (st.sampled_from(text.split()) for text in (WORD_LIST, VALUE_LIST))
QUOTATIONS = st.sampled_from(
    ['"do not touch this"', "“keep these words”", "'leave it alone'", "«ne pas changer»", "`code here`"]
)
PARTS = st.lists(st.tuples(st.one_of(WORDS, WORDS, VALUES, QUOTATIONS), st.sampled_from(["", ".", "?", ","])))
MESSAGES = PARTS.map(lambda parts: " ".join(word + mark for word, mark in parts))


@given(MESSAGES, st.integers(0, 1000), st.sampled_from([kind for kind in KINDS if kind != "reordered"]))
def test_values_and_quotations_stay_in_their_order(text: str, seed: int, kind: Any) -> None:
    altered, at = alter_message(text, kind, Random(seed)), 0
    for start, end in protected_spans(text):
        found = altered.find(text[start:end], at)
        assert found >= 0, (text[start:end], altered)
        at = found + end - start


@given(MESSAGES, st.integers(0, 1000))
def test_a_new_order_has_the_same_words(text: str, seed: int) -> None:
    altered = alter_message(text, "reordered", Random(seed))
    assert Counter(altered.split()) == Counter(text.split())
    for start, end in protected_spans(text):
        assert text[start:end] in altered


@given(st.text(), st.integers(0, 10), st.sampled_from(KINDS))
def test_any_text_can_be_given_and_the_result_depends_on_the_seed_alone(
    text: str, seed: int, kind: Any
) -> None:
    first = alter_message(text, kind, Random(seed))
    assert first == alter_message(text, kind, Random(seed))
    assert first.strip() or not text.strip()


@pytest.mark.parametrize(
    "value",
    [
        *(
            "ORD-42",
            "order_42",
            "a@b.example",
            "https://x.example/order",
            "www.example.com",
            "3",
            "25.50",
            "$5",
        ),
        *("JFK", "iPhone", "#urgent", "and/or", "10:30", "５", "twelve", "Tuesday", "B", "5%", "x=y"),
        *('"the blue one"', "'the blue one'", "“the blue one”", "„die blaue“", "«la bleue»", "`blue one`"),
        *("```\nblue one\n```", '5" screen and "the blue one" and 7"'),
    ],
)
def test_what_carries_a_value_is_protected(value: str) -> None:
    text = f"please send {value} to the other address"
    start = text.index(value)
    assert any(a <= start and start + len(value) <= b for a, b in protected_spans(text)), protected_spans(
        text
    )


@pytest.mark.parametrize("text", ["please cancel the order", "I don't need the lamp.", "Straße, naïve, olá!"])
def test_ordinary_words_are_not_protected(text: str) -> None:
    assert protected_spans(text) == ()


def test_a_word_that_is_a_value_of_the_scenario_is_protected() -> None:
    assert [*protected_spans("a black shirt in Lisbon.", {"black", "lisbon"})] == [(2, 7), (17, 23)]
    for kind in ("typos", "case", "unicode"):
        altered = {alter_message("something black please", kind, Random(n), {"black"}) for n in SEEDS}  # type: ignore[arg-type]
        assert all("black" in text for text in altered)
        assert altered != {"something black please"}


def test_typos_are_one_to_three_misspelt_words_with_their_first_letters() -> None:
    counts = set()
    for seed in SEEDS:
        altered = alter_message(ORDER, "typos", Random(seed))
        before, after = ORDER.split(), altered.split()
        changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
        counts.add(len(changed))
        for one, other in changed:
            assert len(one.strip(".")) >= 4
            assert one[0] == other[0]
            assert abs(len(one) - len(other)) <= 1
            assert sorted(set(one)) == sorted(set(other)) or len(other) < len(one)
    assert counts == {1, 2, 3}


def test_names_and_short_words_have_no_typos() -> None:
    for text in ("Maria Schmidt", "I am it", "ORD-42 twelve"):
        assert alter_message(text, "typos", Random(1)) == text


def test_case_is_all_lower_or_all_upper() -> None:
    found = {alter_message("Cancel my order ORD-42, Mia.", "case", Random(seed)) for seed in SEEDS}
    assert found == {"cancel my order ORD-42, mia.", "CANCEL MY ORDER ORD-42, MIA."}
    assert alter_message("lower case", "case", Random(1)) == "LOWER CASE"


def test_noise_and_a_preamble_leave_the_message_whole() -> None:
    for seed in SEEDS:
        assert ORDER in alter_message(ORDER, "noise", Random(seed)) != ORDER
        long = alter_message(ORDER, "long", Random(seed))
        assert long.endswith(f"\n\n{ORDER}")
        story = long.removesuffix(ORDER)
        assert 250 <= len(story.split()) <= 400
        assert protected_spans(story) == ()
        assert "?" not in story


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("My order is A-7. Where does the parcel go?", {"Where does the parcel go? My order is A-7."}),
        ("I am Mia. Please cancel A-7.", {"Please cancel A-7. I am Mia."}),
        ("Only one sentence.", set()),
        ("Cancel A-7. Then book B-8.", set()),
        ("Has A-7 been shipped? If not, cancel A-7.", set()),
        ("Can you cancel A-7? Book B-8 afterwards.", set()),
        ("Yes. Can you do that now?", set()),
        ("I bought a lamp. It's broken.", set()),
        ("Dr. Smith called me. See e.g. A-7.", {"See e.g. A-7. Dr. Smith called me."}),
        ('She wrote "No. Never." about A-7', set()),
        ("A list:\n- A-7. Blue.\n- B-8. Red.", set()),
        ("No end here. and so on", set()),
    ],
)
def test_sentences_change_places_only_if_none_depends_on_another(text: str, orders: set[str]) -> None:
    assert {alter_message(text, "reordered", Random(seed)) for seed in SEEDS} == (orders or {text})


def test_other_characters_read_the_same() -> None:
    text = "I don't find the official café in São Paulo, please look for ORD-42"
    for seed in SEEDS:
        altered = alter_message(text, "unicode", Random(seed))
        assert altered != text
        compatible = unicodedata.normalize("NFKC", altered.replace("’", "'"))
        assert compatible.startswith(text), altered
        assert fold(unicodedata.normalize("NFKC", altered)).startswith(fold(text))


def test_an_empty_text_stays_empty() -> None:
    assert {alter_message(" \n", kind, Random(1)) for kind in KINDS} == {" \n"}
