"""Request structured output (``response_format``), trying a series of formats from the strictest to the least
strict.

The prompt describes the form of the answer regardless of the format, because some servers accept a schema but
ignore it. Built-in prompts describe the form in prose; the schema is appended to all other prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

if TYPE_CHECKING:
    from pydantic_core.core_schema import ModelSchema

Schema: TypeAlias = dict[str, Any]

MAX_TEXT = 2000
"""The maximum number of characters of a string whose type sets no limit.

Small models tend not to end a string on their own, and ``maxLength`` makes a server that enforces schemas end
the string. (A ``pattern`` does not help, because llama.cpp then ignores ``maxLength`` and allows characters
that make the JSON invalid.)"""


class FormatLevel(StrEnum):
    """A way to request structured output. If a server refuses one format, the next is tried."""

    STRICT = "json_schema"
    """A JSON Schema that includes limits on numbers and strings."""
    BARE = "json_schema without bounds"
    """A JSON Schema with only types, names and choices, which every server that supports schemas should
    accept."""
    JSON = "json_object"
    PROMPT = "prompt"
    """No schema; only the prompt describes the form of the answer."""

    @property
    def next_level(self) -> FormatLevel | None:
        levels = list(FormatLevel)
        below = levels[levels.index(self) + 1 :]
        return below[0] if below else None


_ANNOTATIONS = frozenset(("title", "default", "examples"))
_STRUCTURE = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "description"),
        *("enum", "const", "anyOf", "$ref", "$defs"),
    )
)


def response_format(reply: type[BaseModel], level: FormatLevel, *, max_text: int = MAX_TEXT) -> Schema | None:
    """Return the request field ``response_format``, or ``None`` if the field is omitted."""
    if level is FormatLevel.PROMPT:
        return None
    if level is FormatLevel.JSON:
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", reply.__name__)[:64]
    schema = schema_of(reply, bounds=level is FormatLevel.STRICT, max_text=max_text)
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


@cache
def schema_of(reply: type[BaseModel], *, bounds: bool = True, max_text: int | None = None) -> Schema:
    """Return the JSON Schema of an answer.

    Objects are closed, all of their keys are required, and references are expanded, because strict servers
    require this. ``bounds`` includes the limits on numbers and strings. ``max_text`` is the limit for strings
    whose type sets no limit."""
    raw = reply.model_json_schema(schema_generator=_SchemaWithoutDocstrings)
    rewriter = _SchemaRewriter(raw.get("$defs", {}), bounds, max_text if bounds else None)
    schema: Schema = rewriter.rewrite(raw)
    schema.pop("$defs", None)
    return schema


class _SchemaWithoutDocstrings(GenerateJsonSchema):
    """A schema generator that omits the docstrings of agenteval's own classes, which are intended for readers
    of the code.

    The docstrings of an author's classes are kept, because they are intended for the judge."""

    def model_schema(self, schema: ModelSchema) -> Schema:
        made = super().model_schema(schema)
        if schema["cls"].__module__.partition(".")[0] == __name__.partition(".")[0]:
            made.pop("description", None)
        return made


@cache
def schema_instructions(reply: type[BaseModel]) -> str:
    """Return the text that is appended to a prompt to describe the structure of the answer.

    The text is placed at the end so that the prompts of one conversation keep their common prefix, which
    providers can cache."""
    schema = json.dumps(schema_of(reply), ensure_ascii=False, separators=(",", ":"))
    return (
        "\n\nAnswer with exactly one JSON object and nothing else: no code fence, no text around it. "
        f"It must fit this JSON Schema:\n{schema}"
    )


@dataclass(frozen=True)
class _SchemaRewriter:
    """Rewrites the JSON Schemas that pydantic generates."""

    definitions: Mapping[str, Any]
    bounds: bool
    max_text: int | None

    def rewrite(self, node: Any, within: tuple[str, ...] = ()) -> Any:
        """Return a rewritten copy of ``node``. ``within`` contains the references that led to the node."""
        if isinstance(node, list):
            return [self.rewrite(item, within) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._expand(node, within)
        formed = {
            key: self._rewrite_value(key, value, within)
            for key, value in node.items()
            if key not in _ANNOTATIONS and (self.bounds or key in _STRUCTURE)
        }
        if "properties" in formed:
            formed |= {"required": list(formed["properties"]), "additionalProperties": False}
        is_free_text = formed.get("type") == "string" and not formed.keys() & {"enum", "const", "maxLength"}
        if is_free_text and self.max_text is not None:
            formed["maxLength"] = self.max_text
        return formed

    def _expand(self, node: Schema, within: tuple[str, ...]) -> Any:
        name = node["$ref"].rpartition("/")[2]
        if name in within:
            return {}  # a recursive type cannot be expanded: allow anything, which is checked later
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return self.rewrite({**self.definitions.get(name, {}), **siblings}, (*within, name))

    def _rewrite_value(self, key: str, value: Any, within: tuple[str, ...]) -> Any:
        # Property names are the author's: one named "title" is not an annotation.
        if key == "properties":
            return {name: self.rewrite(item, within) for name, item in value.items()}
        return value if key in ("enum", "const", "required", "$defs") else self.rewrite(value, within)
