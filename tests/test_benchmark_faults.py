"""The faults that the benchmark of the detectors plants are what they say. No detector is run here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import fault_answers  # noqa: E402
import fault_values  # noqa: E402
import faults  # noqa: E402
import other_domains  # noqa: E402
import planting  # noqa: E402
import recorded  # noqa: E402

VARIANTS = [
    (operator, variant) for operator in faults.LABELS for variant in sorted(faults.OPERATORS[operator])
]
SEED = 11


@cache
def real() -> list[dict[str, Any]]:
    """A part of the real conversations, ready to be planted into; skips where there are none."""
    try:
        sets = recorded.load_sets()
    except recorded.MissingDataError as missing:
        pytest.skip(f"no recorded conversations: {missing}")
    return [c for name, group in sets.items() for c in faults.prepared(name, group)[::7]]


@cache
def planted(operator: str, variant: str) -> tuple[faults.Fault, ...]:
    made = (faults.plant(operator, c, SEED, variant=variant) for c in real())
    return tuple(fault for fault in made if fault)


def all_of(operator: str) -> Iterator[tuple[faults.Fault, recorded.Recorded, recorded.Recorded]]:
    """Each fault of a kind with its conversation before and after."""
    before = {c["id"]: recorded.take_apart(c) for c in real()}
    for variant in sorted(faults.OPERATORS[operator]):
        for fault in planted(operator, variant):
            yield fault, before[fault.source], recorded.take_apart(fault.conversation)


@pytest.mark.parametrize(("operator", "variant"), VARIANTS)
def test_each_variant_finds_places_and_leaves_the_rest_valid(operator: str, variant: str) -> None:
    made = planted(operator, variant)
    assert made, "no conversation has a place for it"
    for fault in made:
        after = recorded.take_apart(fault.conversation)
        assert recorded.is_regular(fault.conversation)
        assert 0 <= fault.turn < len(after.turns)
        assert all(after.calls[index].turn == fault.turn for index in fault.calls)
        assert (
            fault.conversation["messages"] != next(c for c in real() if c["id"] == fault.source)["messages"]
        )
        json.dumps(fault.conversation)


def test_the_same_seed_plants_the_same_and_another_seed_something_else() -> None:
    some = real()[:12]
    first, again, other = (faults.plant_all(some, seed) for seed in (1, 1, 2))
    assert first == again
    assert [fault.note for fault in first] != [fault.note for fault in other]
    assert len({fault.conversation["id"] for fault in first}) == len(first)


def test_planting_leaves_the_conversation_as_it_was() -> None:
    conversation = real()[0]
    before = json.dumps(conversation)
    faults.plant_all([conversation], SEED, every_variant=True)
    assert json.dumps(conversation) == before


def test_a_repeated_call_is_the_same_call_in_the_same_turn() -> None:
    for fault, _, after in all_of("repeated_tool_call"):
        call = after.calls[fault.calls[0]]
        twins = [c for c in after.calls if (c.turn, c.name, c.args) == (call.turn, call.name, call.args)]
        assert len(twins) == 2
        assert len({json.dumps(after.messages[c.at]["tool_calls"][c.slot]["id"]) for c in twins}) == 2


def test_wrong_arguments_break_the_schema_which_they_kept_before() -> None:
    from jsonschema import Draft202012Validator

    for fault, before, after in all_of("wrong_arguments"):
        call, source = after.calls[fault.calls[0]], before.calls[fault.calls[0]]
        schema = Draft202012Validator(recorded.parameters_of(after.tools)[call.name])
        assert schema.is_valid(source.args)
        assert not schema.is_valid(call.args)


def test_malformed_arguments_are_no_json() -> None:
    for fault, before, after in all_of("malformed_arguments"):
        assert before.calls[fault.calls[0]].args is not None
        with pytest.raises(ValueError):
            json.loads(after.calls[fault.calls[0]].raw)


def test_an_unknown_tool_is_not_declared() -> None:
    for fault, _, after in all_of("unknown_tool"):
        declared = set(recorded.parameters_of(after.tools))
        assert {c.index for c in after.calls if c.name not in declared} == set(fault.calls)


def test_an_ignored_error_is_an_error_that_the_answer_does_not_admit() -> None:
    for fault, _, after in all_of("ignored_tool_error"):
        call = after.calls[fault.calls[0]]
        assert planting.failed(call.result) or "invalid" in call.result or "not found" in call.result
        if fault.variant.startswith("failed"):
            assert "sorry" not in after.answer(after.turns[fault.turn]).lower()
        else:
            other = after.calls[fault.calls[1]]
            assert (call.name, call.args, call.result) == (other.name, other.args, other.result)


def test_a_contradicting_value_came_from_a_tool_and_the_new_one_from_nowhere() -> None:
    for fault, before, after in all_of("contradicts_evidence"):
        turn = before.turns[fault.turn]
        old = {t.keys for t in fault_values.tokens(before.answer(turn))}
        new = {t.keys for t in fault_values.tokens(after.answer(after.turns[fault.turn]))}
        results = frozenset().union(*(fault_values.keys_of_text(c.result) for c in before.calls))
        assert any(keys & results for keys in old - new)
        assert all(not keys & fault_values.all_keys(before.messages) for keys in new - old)
        assert len(old - new) == len(new - old) == 1


def test_an_ungrounded_value_is_nowhere_else() -> None:
    for fault, before, after in all_of("ungrounded_value"):
        turn = before.turns[fault.turn]
        gone, left = before.answer(turn), after.answer(after.turns[fault.turn])
        assert fault.note in left
        assert fault.note not in gone
        assert not fault_values.keys_of_text(fault.note) & fault_values.all_keys(before.messages)


def test_repeated_text_stands_there_more_than_once() -> None:
    for fault, before, after in all_of("repetition"):
        answer = after.answer(after.turns[fault.turn])
        if fault.variant.startswith("earlier"):
            earlier = [after.answer(turn).strip() for turn in after.turns[: fault.turn]]
            assert any(text and text in answer for text in earlier)
            assert before.user(before.turns[fault.turn]) not in map(before.user, before.turns[: fault.turn])
        else:
            assert len(answer) > len(before.answer(before.turns[fault.turn])) + 50


def test_a_leak_shows_what_was_not_shown_before() -> None:
    for fault, before, after in all_of("leak"):
        answer, was = after.answer(after.turns[fault.turn]), before.answer(before.turns[fault.turn])
        if fault.variant == "canary_told":
            assert any(w.strip("().,") in after.policy for w in answer.split() if w not in was and len(w) > 8)
        elif fault.variant in ("policy_quoted", "prompt_dumped"):
            assert _quotes(answer, after.policy)
        assert answer != was


def _quotes(answer: str, policy: str) -> bool:
    """Whether 80 characters of the policy stand in the answer."""
    return any(policy[start : start + 80] in answer for start in range(len(policy) - 80))


def test_card_numbers_pass_luhn() -> None:
    import random

    for seed in range(50):
        digits = [int(d) for d in fault_answers.card_number(random.Random(seed))]
        doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
        assert (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def test_an_unconfirmed_action_follows_no_yes() -> None:
    for fault, before, after in all_of("unconfirmed_action"):
        said = after.user(after.turns[fault.turn])
        assert said != before.user(before.turns[fault.turn])
        assert said in fault.note
        marks = fault.conversation["tool_marks"]
        assert all(marks[after.calls[index].name] == "destructive" for index in fault.calls)


def test_a_claimed_action_was_not_called() -> None:
    for fault, before, after in all_of("claimed_action_not_called"):
        answer = after.answer(after.turns[fault.turn])
        if fault.variant == "call_removed":
            gone = {c.name for c in before.calls} - {c.name for c in after.calls}
            assert len(gone) == 1
            assert answer == before.answer(before.turns[fault.turn])
        else:
            assert fault.note in answer
            assert len(after.calls) == len(before.calls)


def test_values_are_read_in_all_their_forms() -> None:
    text = "$1,250.50 on May 3rd, 2024 at 6:05 PM for 12 bags, HAT123, 2024-05-03, 18:05:00, 212-555-0100"
    found = [(t.kind, t.text) for t in fault_values.tokens(text)]
    kinds = ["money", "date", "time", "number", "identifier", "date", "time", "identifier"]
    assert [kind for kind, _ in found] == kinds
    tokens = list(fault_values.tokens(text))
    assert tokens[1].keys == tokens[5].keys
    assert tokens[2].keys == tokens[6].keys


def test_the_other_domains_are_many_valid_and_the_same_each_time() -> None:
    made = other_domains.conversations()
    assert made == other_domains.conversations()
    assert len(made) >= 60
    assert len({c["id"] for c in made}) == len(made)
    assert len({json.dumps(c["messages"]) for c in made}) == len(made)
    for conversation in made:
        taken = recorded.take_apart(conversation)
        assert recorded.is_regular(conversation)
        assert {c.name for c in taken.calls} <= set(recorded.parameters_of(taken.tools))
        assert all(taken.answer(turn) for turn in taken.turns)


def test_the_other_domains_keep_their_schemas() -> None:
    from jsonschema import Draft202012Validator

    for conversation in other_domains.conversations():
        taken = recorded.take_apart(conversation)
        schemas = recorded.parameters_of(taken.tools)
        for call in taken.calls:
            Draft202012Validator(schemas[call.name]).validate(call.args)
