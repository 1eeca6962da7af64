"""Converts models to JSON Schema for editors. The schemas contain the keys that an author may use, with a
line of help for each key.

The schemas are draft-07, which is fully supported by both the YAML language server and ``check-jsonschema``.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from agenteval.files.yaml_scalars import canonical_text

Schema: TypeAlias = dict[str, Any]
Definitions: TypeAlias = dict[str, Schema]
NULL: Schema = {"type": "null"}

_IN_REFERENCE = "#/definitions/"
_WHOLE_NUMBER = r"^\s*[-+]?[0-9]+\s*$"
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_TRUTH_VALUE = "^(" + "|".join(
    "".join(f"[{c}{c.upper()}]" for c in word)
    for word in ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f")
) + "|[01])$"  # fmt: skip
"""A pattern for the strings that pydantic accepts as a boolean. JavaScript's regular expressions do not
support ``(?i)``."""


_UPPER = re.compile("([A-Z])")


def ref(name: str) -> Schema:
    return {"$ref": _IN_REFERENCE + name}


def _definition_name(reference: Schema) -> str:
    return str(reference["$ref"]).removeprefix(_IN_REFERENCE)


def build_definitions(models: Sequence[type[BaseModel]], reference: str) -> Definitions:
    """Build the JSON Schema definitions of the models and of all models that they refer to, keyed by class
    name. ``reference`` is a pattern for strings that are accepted instead of a number, boolean or choice
    because they are expanded later."""
    generator = type("_Generator", (_EditorSchema,), {"reference": reference})
    _, made = models_json_schema(
        [(model, "validation") for model in models],
        ref_template=_IN_REFERENCE + "{model}",
        schema_generator=generator,
    )
    found: Definitions = made["$defs"]
    return found


class _EditorSchema(GenerateJsonSchema):
    """A JSON Schema generator that also accepts strings that are later expanded to a number, boolean or
    choice."""

    reference = ""
    """A pattern for the strings that are expanded later."""

    def _or_text(self, schema: Schema, pattern: str, message: str) -> Schema:
        text = {"type": "string", "pattern": f"{pattern}|{self.reference}", "patternErrorMessage": message}
        return {"anyOf": [schema, text]}

    def int_schema(self, schema: Any) -> Schema:
        return self._or_text(super().int_schema(schema), _WHOLE_NUMBER, "Expected a whole number.")

    def float_schema(self, schema: Any) -> Schema:
        return self._or_text(super().float_schema(schema), _NUMBER, "Expected a number.")

    def bool_schema(self, schema: Any) -> Schema:
        made = {"type": ["boolean", "integer"], "minimum": 0, "maximum": 1}
        return self._or_text(made, _TRUTH_VALUE, "Expected true or false.")

    def literal_schema(self, schema: Any) -> Schema:
        return self._choice(schema["expected"])

    def enum_schema(self, schema: Any) -> Schema:
        return self._choice([member.value for member in schema["members"]])

    def tagged_union_schema(self, schema: Any) -> Schema:
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}

    def _choice(self, values: Sequence[str]) -> Schema:
        return {"anyOf": [{"enum": list(values)}, {"type": "string", "pattern": self.reference}]}

    def model_schema(self, schema: Any) -> Schema:
        made = super().model_schema(schema)
        model = schema["cls"]
        for name in getattr(model, "INTERNAL", ()):
            made["properties"].pop(name, None)
        for name, line in help_of(model).items():
            if each := made["properties"].get(name):
                # Not as `default`: an editor would write it into the file.
                default = each.pop("default", None)
                is_shown = default != "" and isinstance(default, str | int | float)
                each["description"] = f"{line} Default: {canonical_text(default)}." if is_shown else line
        made.pop("description", None)
        return made | {"title": _UPPER.sub(r" \1", model.__name__).strip().capitalize()}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


# ── help ─────────────────────────────────────────────────────────────────────────────────────────


def help_of(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field in a model, including the fields of its base classes."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        found |= _help_in(each.__module__).get(each.__qualname__, {}) if issubclass(each, BaseModel) else {}
    return found


@cache
def _help_in(module: str) -> dict[str, dict[str, str]]:
    """Return the field docstrings in a module, keyed by class. If the source is not available, return no
    help."""
    with suppress(OSError, TypeError):
        tree = ast.parse(inspect.getsource(sys.modules[module]))
        return {
            node.name: dict(_documented_fields(node.body))
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
    return {}


def _documented_fields(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(line))):
                yield name, " ".join(line.split())


# ── simplification ───────────────────────────────────────────────────────────────────────────────

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""JSON Schema's keyword for each bound, keyed by pydantic's name. These are used where one of this project's
validators runs before pydantic's."""


def simplify_schema(schema: Schema) -> Schema:
    """Rewrite a schema so that an editor reports one message per mistake. Before this function is called,
    alternatives must be written as a plain ``anyOf``."""
    definitions: Definitions = schema["definitions"]
    choices = {
        ref(name)["$ref"]: each for name, each in definitions.items() if "enum" in each.get("anyOf", [{}])[0]
    }
    made: Schema = _simplified(schema, choices)
    return made


def _simplified(schema: Any, choices: Mapping[str, Schema]) -> Any:
    """Simplify a part of a schema. ``choices`` contains definitions to inline wherever they are
    referenced."""
    if isinstance(schema, list):
        return [_simplified(each, choices) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "definitions"):
            made[key] = {name: _simplified(each, choices) for name, each in value.items()}
        elif key != "anyOf" and not (key == "$ref" and value in choices):
            made[_BOUNDS.get(key) or key] = _simplified(value, choices)
    alternatives = [_simplified(each, choices) for each in _alternatives(schema, choices)]
    return _any_of(alternatives, made) if alternatives else made


def _alternatives(schema: Schema, choices: Mapping[str, Schema]) -> Iterator[Schema]:
    """Yield the alternatives in a schema, flattening alternatives that only contain additional
    alternatives."""
    for each in choices.get(schema.get("$ref", ""), schema).get("anyOf", ()):
        below = list(_alternatives(each, choices)) if len(each) == 1 else []
        yield from below or [each]


def _any_of(alternatives: Iterable[Schema], keywords: Mapping[str, Any]) -> Schema:
    """Build a schema from alternatives. Alternatives whose types do not overlap are merged, so that an editor
    shows one message for a mistake instead of one per alternative. ``keywords`` contains the keywords next to
    the alternatives; any bounds among them apply to the numbers."""
    merged: list[Schema] = []
    flat = list(alternatives)
    takes_any_text = any("string" in _types(each) and "pattern" not in each for each in flat)
    separate_type = "array" if any("enum" in each for each in flat) else ""
    for each in flat:
        if not (takes_any_text and each.get("type") == "string" and "pattern" in each):
            _merge(merged, each, separate_type)
    outer = dict(keywords)
    bounds = {key: outer.pop(key) for key in _BOUNDS.values() if key in outer}
    return _by_shape([each | bounds if "type" in each else each for each in merged]) | outer


def _by_shape(schemas: list[Schema]) -> Schema:
    """Separate mappings from lists, so that a mistake inside a mapping or list is not reported as a wrong
    type. When an editor creates a value, it uses the first type."""
    for shape in ("object", "array"):
        of_shape = [
            each for each in schemas if _types(each) == [shape] or (shape == "object" and "$ref" in each)
        ]
        if 0 < len(of_shape) < len(schemas):
            return _split_by_type(shape, of_shape, [each for each in schemas if each not in of_shape])
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _split_by_type(type_name: str, of_shape: list[Schema], rest: list[Schema]) -> Schema:
    """Build a schema that checks values of one type against ``of_shape`` and all other values against
    ``rest``."""
    others = _by_shape(rest)
    if len(rest) == 1:  # the outer schema already has its type; a second one would add a message
        others = {key: each for key, each in others.items() if key != "type"}
    types = [name for each in rest for name in _types(each) or ["string"]]
    is_usual = type_name == "array" or types == ["null"] or any("enum" in each for each in rest)
    types = list(dict.fromkeys([type_name, *types] if is_usual else [*types, type_name]))
    return {"type": types, "if": {"type": type_name}, "then": _by_shape(of_shape), "else": others}


def _merge(merged: list[Schema], each: Schema, separate_type: str) -> None:
    """Add a schema to ``merged``, or combine it with a schema in ``merged`` if possible. Neither schema may
    restrict the types of the other. ``separate_type`` is a type that is never combined."""
    if each in merged:
        return
    for other in merged:
        if set(each) == set(other) == {"enum"}:
            other["enum"] = list(dict.fromkeys([*other["enum"], *each["enum"]]))
            return
        if "type" in each and "type" in other and "enum" not in {*each, *other}:
            mine, theirs = _types(each), _types(other)
            if separate_type in (*mine, *theirs) or set(mine) & set(theirs):
                continue
            if not set(each) & set(other) - {"type", "description"}:
                other |= each | _type_keyword((*theirs, *mine))
                return
    merged.append(dict(each))


def _type_keyword(types: Iterable[str]) -> Schema:
    names = sorted(types, key="string".__ne__)
    return {"type": names[0] if len(names) == 1 else names} if names else {}


def _types(schema: Schema) -> list[str]:
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else found


# ── null, where it would be a check that checks nothing ───────────────────────────────────────────


def refuse_null(definitions: Definitions, schema: Schema, path: Sequence[str]) -> None:
    """Remove null from the schemas at a ``path`` below ``schema``; ``*`` matches any key or item."""
    key, *rest = path
    for each in (schema, *schema.get("anyOf", ())):
        owner = definitions[_definition_name(each)] if "$ref" in each else each
        below = [owner["items"]] if key == "*" and "items" in owner else []
        below += [place for name, place in owner.get("properties", {}).items() if key in (name, "*")]
        for place in below:
            if rest:
                refuse_null(definitions, place, rest)
            else:
                _drop_null(place)


def _drop_null(schema: Schema) -> None:
    if "anyOf" in schema:
        schema["anyOf"] = [each for each in schema["anyOf"] if each != NULL]
        for each in schema["anyOf"]:
            _drop_null(each)


# ── overlays ─────────────────────────────────────────────────────────────────────────────────────


def overlay_definition(name: str, definitions: Definitions, *, suffix: str, nulls: bool = False) -> str:
    """Return the name of a definition that accepts partial values of the definition ``name``. Because a
    partial value is merged over a complete one, no keys are required in it. ``nulls`` allows null, which
    removes a value. Lists are replaced entirely and must be complete."""
    made = f"{name}{suffix}"
    if made not in definitions:
        definitions[made] = {}  # it may refer to itself
        definitions[made] = _overlay_schema(definitions[name], definitions, nulls, suffix)
    return made


def _overlay_schema(schema: Schema, definitions: Definitions, nulls: bool, suffix: str) -> Schema:
    def below(each: Any) -> Any:
        return _overlay_schema(each, definitions, nulls, suffix) if isinstance(each, dict) else each

    def value(each: Any) -> Any:
        made = below(each)
        if not (nulls and made and isinstance(made, dict)):
            return made
        around = {"description": made.pop("description")} if "description" in made else {}
        return around | {"anyOf": [made, NULL]}

    made: Schema = {}
    for key, each in schema.items():
        if key == "$ref":
            made |= ref(overlay_definition(_definition_name(schema), definitions, nulls=nulls, suffix=suffix))
        elif key == "properties":
            made[key] = {name: value(part) for name, part in each.items()}
        elif key == "additionalProperties":
            made[key] = value(each)
        elif key == "anyOf":
            made[key] = [below(part) for part in each]
        elif key != "required":
            made[key] = each
    return made
