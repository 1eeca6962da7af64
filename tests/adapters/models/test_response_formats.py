"""How an answer's form is requested: schemas as strict servers take them, and what follows a refusal."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from agenteval.adapters.models.response_formats import (
    MAX_TEXT,
    FormatLevel,
    response_format,
    schema_instructions,
    schema_of,
)


class Grade(BaseModel):
    """What a judge reads."""

    score: Annotated[int, Field(ge=1, le=5)]
    reason: str = "none"


STRICT_GRADE = {
    "type": "object",
    "description": "What a judge reads.",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "reason": {"type": "string"},
    },
    "required": ["score", "reason"],
    "additionalProperties": False,
}


def of(annotation: Any, **options: Any) -> Any:
    """The schema of a value of this type."""
    fields: dict[str, Any] = {"it": (annotation, ...)}
    return schema_of(create_model("Made", **fields), **options)["properties"]["it"]


# ── levels ───────────────────────────────────────────────────────────────────────────────────────


def test_each_level_is_followed_by_a_weaker_one() -> None:
    levels = [FormatLevel.STRICT]
    while (below := levels[-1].next_level) is not None:
        levels.append(below)
    assert levels == [FormatLevel.STRICT, FormatLevel.BARE, FormatLevel.JSON, FormatLevel.PROMPT]


def test_what_is_sent_at_each_level() -> None:
    strict = response_format(Grade, FormatLevel.STRICT)
    assert strict == {
        "type": "json_schema",
        "json_schema": {"name": "Grade", "strict": True, "schema": schema_of(Grade, max_text=MAX_TEXT)},
    }
    bare = response_format(Grade, FormatLevel.BARE)
    assert bare is not None
    assert bare["json_schema"]["schema"] == schema_of(Grade, bounds=False)
    assert response_format(Grade, FormatLevel.JSON) == {"type": "json_object"}
    assert response_format(Grade, FormatLevel.PROMPT) is None


@pytest.mark.parametrize(
    ("name", "sent"),
    [("Grade", "Grade"), ("Grade[int] ü", "Grade_int___"), ("a-b_9", "a-b_9"), ("x" * 65, "x" * 64)],
)
def test_the_name_of_a_form(name: str, sent: str) -> None:
    found = response_format(type(name, (Grade,), {}), FormatLevel.STRICT)
    assert found is not None
    assert found["json_schema"]["name"] == sent


@pytest.mark.parametrize(
    ("level", "options", "limit"),
    [
        (FormatLevel.STRICT, {}, 2000),
        (FormatLevel.STRICT, {"max_text": 7}, 7),
        (FormatLevel.BARE, {}, None),
        (FormatLevel.BARE, {"max_text": 7}, None),
    ],
)
def test_free_texts_have_a_limit(level: FormatLevel, options: dict[str, int], limit: int | None) -> None:
    found = response_format(Grade, level, **options)
    assert found is not None
    assert found["json_schema"]["schema"]["properties"]["reason"].get("maxLength") == limit


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────


def test_objects_are_closed_and_have_all_their_keys() -> None:
    assert schema_of(Grade) == STRICT_GRADE


def test_without_bounds_there_are_types_and_names() -> None:
    bare = schema_of(Grade, bounds=False)
    assert bare["properties"] == {"score": {"type": "integer"}, "reason": {"type": "string"}}
    assert {**bare, "properties": 0} == {**STRICT_GRADE, "properties": 0}


NAMED = Annotated[str, Field(title="T", description="D", examples=["e"])]

TYPES: dict[str, tuple[Any, ...]] = {
    "a text": (str, {"type": "string"}, {"type": "string"}),
    "a text with a limit": (
        Annotated[str, Field(max_length=3, min_length=1)],
        {"type": "string", "maxLength": 3, "minLength": 1},
        {"type": "string"},
    ),
    "a text with a pattern": (
        Annotated[str, Field(pattern="a+")],
        {"type": "string", "pattern": "a+"},
        {"type": "string"},
    ),
    "labels": (Literal["a", "b"], *[{"type": "string", "enum": ["a", "b"]}] * 2),
    "one label": (Literal["a"], *[{"type": "string", "const": "a"}] * 2),
    "a list": (
        Annotated[list[str], Field(max_length=2)],
        {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        {"type": "array", "items": {"type": "string"}},
    ),
    "or null": (int | None, *[{"anyOf": [{"type": "integer"}, {"type": "null"}]}] * 2),
    "annotations": (NAMED, *[{"type": "string", "description": "D"}] * 2),
    "a number": (
        Annotated[float, Field(gt=0, multiple_of=0.5)],
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        {"type": "number"},
    ),
}


@pytest.mark.parametrize(("annotation", "strict", "bare"), TYPES.values(), ids=TYPES)
def test_the_schema_of_a_type(annotation: Any, strict: Any, bare: Any) -> None:
    assert of(annotation) == strict
    assert of(annotation, bounds=False) == bare
    assert of(annotation, bounds=False, max_text=9) == bare


@pytest.mark.parametrize(
    ("annotation", "limit"),
    [
        (str, 9),
        (NAMED, 9),
        (Annotated[str, Field(max_length=3)], 3),
        (Annotated[str, Field(max_length=30)], 30),
        (Literal["a", "b"], None),
        (Literal["a"], None),
        (int, None),
    ],
)
def test_only_free_texts_get_a_limit(annotation: Any, limit: int | None) -> None:
    assert of(annotation, max_text=9).get("maxLength") == limit
    listed = of(list[annotation], max_text=9)
    assert listed["items"].get("maxLength") == limit
    assert "maxLength" not in listed


def test_names_of_keys_are_no_annotations() -> None:
    class Titled(BaseModel):
        title: str
        default: int
        examples: list[str]
        minimum: int = 3

    for bounds in (True, False):
        schema = schema_of(Titled, bounds=bounds)
        assert list(schema["properties"]) == schema["required"] == ["title", "default", "examples", "minimum"]
        assert schema["properties"]["minimum"] == {"type": "integer"}


class Inner(BaseModel):
    """Of the inner."""

    label: Literal["a", "b"]


class Outer(BaseModel):
    first: Inner
    second: Annotated[Inner, Field(description="Of the second.")]
    more: list[Inner]


def test_references_are_expanded() -> None:
    schema = schema_of(Outer)
    inner = {
        "type": "object",
        "description": "Of the inner.",
        "properties": {"label": {"type": "string", "enum": ["a", "b"]}},
        "required": ["label"],
        "additionalProperties": False,
    }
    assert schema["properties"] == {
        "first": inner,
        "second": {**inner, "description": "Of the second."},
        "more": {"type": "array", "items": inner},
    }
    assert "$defs" not in schema
    assert "$ref" not in json.dumps(schema)


class Tree(BaseModel):
    name: str
    left: Tree | None = None
    more: list[Tree] = []


def test_a_type_within_itself_may_be_anything() -> None:
    assert schema_of(Tree)["properties"] == {
        "name": {"type": "string"},
        "left": {"anyOf": [{}, {"type": "null"}]},
        "more": {"type": "array", "items": {}},
    }
    assert "$defs" not in schema_of(Tree)


def test_docstrings_of_our_own_classes_are_for_readers_of_the_code() -> None:
    class Ours(BaseModel):
        """For readers."""

        score: int = Field(description="Of the score.")

    assert schema_of(Ours)["description"] == "For readers."
    ours = type("OursToo", (Ours,), {"__module__": "agenteval.scoring", "__doc__": "For readers."})
    schema = schema_of(ours)
    assert "description" not in schema
    assert schema["properties"]["score"] == {"type": "integer", "description": "Of the score."}


def test_the_instructions_end_with_the_schema() -> None:
    class Said(BaseModel):
        """Größe."""

        text: str

    text = schema_instructions(Said)
    assert text.startswith("\n\n")
    assert "JSON" in text
    before, _, schema = text.rpartition("\n")
    assert json.loads(schema) == schema_of(Said)
    assert "Größe" in schema
    assert ": " not in schema
    assert before.strip()
