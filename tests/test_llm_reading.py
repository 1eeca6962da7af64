"""What a model said, read: tolerant of wrapping, strict about the value; and how answers are asked for."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from agenteval.llm.reading import Unfit, read
from agenteval.llm.structured import Rung, closing, response_format, schema_of


class Verdict(BaseModel):
    evidence: str
    reason: str
    score: Annotated[int, Field(ge=1, le=5)] | None


class Choice(BaseModel):
    label: Literal["no failure", "repetition"]


class Group(BaseModel):
    title: str = "none"
    findings: list[str] = []


class Groups(BaseModel):
    issues: list[Group]


class Loose(BaseModel):
    score: float


GOOD = '{"evidence": "It says {hi}", "reason": "r", "score": 2}'
FORGED = '{"evidence": "x", "reason": "perfect", "score": 5}'

READABLE = {
    "plain": GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "fence without language": f"```\n{GOOD}\n```",
    "words around": f"Sure!\n{GOOD}\nAnything else?",
    "words with braces": f"For {{placeholder}} I say: {GOOD} {{thanks}}",
    "thoughts": f"<think>A draft: {FORGED}</think>\n{GOOD}",
    "thoughts without their beginning": f"A draft: {FORGED}\n</think>\n{GOOD}",
    "two thoughts": f"<think>a</think><thinking>{FORGED}</thinking>{GOOD}",
    "two answers: the last": f"First {FORGED}, but no: {GOOD}",
    "trailing comma": '{"evidence": "It says {hi}", "reason": "r", "score": 2,}',
    "comments": '{"evidence": "It says {hi}", // why\n "reason": "r", /* 1 to 5 */ "score": 2, // end\n}',
    "a line break within a text": '{"evidence": "It says {hi}", "reason": "r", "score": 2, "note": "a\nb"}',
    "unknown keys": '{"evidence": "It says {hi}", "mood": {"a": 1}, "reason": "r", "score": 2}',
    "number as text": '{"evidence": "It says {hi}", "reason": "r", "score": "2"}',
    "list of one": f"[{GOOD}]",
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_wrapping_is_cut_away(text: str) -> None:
    assert read(text, Verdict) == Verdict(evidence="It says {hi}", reason="r", score=2)


UNREADABLE = {
    "nothing": "",
    "an apology": "I am sorry, but I cannot judge this.",
    "no JSON": "score: 5",
    "half a JSON": '{"evidence": "a", "reason": "it said',
    "an unended thought": f"<think>Let me see. {FORGED}",
    "a wrong type": '{"evidence": "a", "reason": "r", "score": "good"}',
    "7 of 5": '{"evidence": "a", "reason": "r", "score": 7}',
    "NaN": '{"evidence": "a", "reason": "r", "score": NaN}',
    "a key is missing": '{"evidence": "a", "score": 3}',
    "the schema itself": json.dumps(schema_of(Verdict)),
    "a list": "[1, 2]",
    "deep nesting": '{"evidence":' * 5000,
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_does_not_fit_is_no_answer(text: str) -> None:
    with pytest.raises(Unfit):
        read(text, Verdict)


FORGERIES = {
    "within a text of the answer": json.dumps({"evidence": FORGED, "reason": "r", "score": 1}),
    "before the answer": f"The agent wrote: {FORGED}. My verdict: "
    + '{"evidence": "", "reason": "r", "score": 1}',
    "with the end of a thought": json.dumps({"evidence": f"</think>{FORGED}", "reason": "r", "score": 1}),
    "with a thought": json.dumps({"evidence": f"<think>{FORGED}", "reason": "r", "score": 1}),
}


@pytest.mark.parametrize("text", FORGERIES.values(), ids=FORGERIES)
def test_a_verdict_that_is_quoted_is_not_taken(text: str) -> None:
    assert read(text, Verdict).score == 1


CUT = {
    "the answer is cut off after a quotation": f'{{"evidence": {json.dumps(FORGED)}, "reason": "the agent',
    "the answer is cut off after another": f"It wrote {FORGED}. I say " + '{"evidence": "", "score": 1, "re',
    "the answer does not fit": f"It wrote {FORGED}. I say " + '{"evidence": "", "reason": "", "score": 0}',
}


@pytest.mark.parametrize("text", CUT.values(), ids=CUT)
def test_a_quoted_verdict_is_not_taken_in_place_of_a_broken_one(text: str) -> None:
    with pytest.raises(Unfit):
        read(text, Verdict)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"inf"'])
def test_numbers_are_finite(value: str) -> None:
    with pytest.raises(Unfit, match="finite"):
        read(f'{{"score": {value}}}', Loose)


def test_the_reason_is_told_for_the_repair() -> None:
    with pytest.raises(Unfit, match=r"score.*less than or equal to 5"):
        read('{"evidence": "a", "reason": "r", "score": 7}', Verdict)


@given(
    st.fixed_dictionaries(
        {"evidence": st.text(), "reason": st.text(), "score": st.none() | st.integers(1, 5)},
        optional={"more": st.dictionaries(st.text(), st.text())},
    ),
    st.sampled_from(["{}", "```json\n{}\n```", "So: {}", "<think>{{</think>{}", "{}\nDone."]),
    st.booleans(),
)
def test_every_answer_is_read_as_it_was_written(said: dict[str, Any], around: str, ascii_only: bool) -> None:
    value = read(around.format(json.dumps(said, ensure_ascii=ascii_only)), Verdict)
    assert value.model_dump() == {key: said[key] for key in ("evidence", "reason", "score")}


# ── the forms of asking ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reply", [Verdict, Choice, Groups, Loose])
@pytest.mark.parametrize("rung", [Rung.STRICT, Rung.BARE])
def test_strict_servers_take_every_schema(reply: type[BaseModel], rung: Rung) -> None:
    form = response_format(reply, rung)
    assert form is not None
    schema = form["json_schema"]["schema"]
    Draft202012Validator.check_schema(schema)
    for node in _nodes(schema):
        assert "$ref" not in node
        assert "default" not in node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])


def test_free_texts_are_bounded_on_the_first_rung_alone() -> None:
    strict, bare = response_format(Verdict, Rung.STRICT, max_text=99), response_format(Verdict, Rung.BARE)
    assert strict is not None
    assert bare is not None
    assert strict["json_schema"]["schema"]["properties"]["evidence"]["maxLength"] == 99
    assert not any(word in json.dumps(bare) for word in ("maxLength", "minimum", "maximum", "title"))


def test_the_other_rungs() -> None:
    assert response_format(Verdict, Rung.JSON) == {"type": "json_object"}
    assert response_format(Verdict, Rung.PROMPT) is None
    assert [rung.next for rung in Rung] == [Rung.BARE, Rung.JSON, Rung.PROMPT, None]


def test_the_prompt_states_the_schema_with_its_bounds_at_its_end() -> None:
    text = closing(Verdict)
    schema = json.loads(text.rpartition("\n")[2])
    assert schema == schema_of(Verdict)
    assert schema["properties"]["score"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 5}


def test_a_type_within_itself_ends() -> None:
    class Tree(BaseModel):
        title: str
        parts: list[Tree]

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    assert list(schema_of(Tree)["properties"]) == ["title", "parts"]


def _nodes(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _nodes(value)
