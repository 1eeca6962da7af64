"""Builds the two JSON Schemas for editors: one for scenario files and one for the configuration. The names of
models, adapters, gates, metrics, reporters and detectors are taken from the objects that define them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel

from agenteval.core.config import KIND_BY_KEY, AgentConfig, Config, ProfileSelection
from agenteval.core.providers import PROVIDERS
from agenteval.core.scenario import RowsSpec, Scenario
from agenteval.files.editor_schema import (
    NULL,
    Definitions,
    Schema,
    build_definitions,
    overlay_definition,
    ref,
    refuse_null,
    simplify_schema,
)
from agenteval.files.profiles import PROFILES_KEY as PROFILES
from agenteval.files.prompts import PROMPT_FILES
from agenteval.files.scenario_loader import CaseKeys
from agenteval.files.validation import NEVER_EMPTY
from agenteval.planning.judge_setup import labels_of
from agenteval.running.registries import REGISTRIES
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.metrics import built_in_metrics
from agenteval.verdict.run_gates import RUN_GATES
from agenteval.verdict.run_gates.gate import RunGate

SchemaKind: TypeAlias = Literal["scenario", "config"]
SCHEMA_KINDS: tuple[SchemaKind, ...] = get_args(SchemaKind)

GENERATED_COMMENT = "Written by `agenteval schema`, which overwrites it."
_ROW = r"\$\{row\."
_VARIABLE = r"\$\{"
_ANY_TEXT: Schema = {"type": "string"}
_NO_TYPE = [None, ""]
"""The values of an agent's ``type`` for which the type is inferred from other keys."""
_QUIET = {"doNotSuggest": True}
"""The schema keyword that prevents an editor from suggesting a key twice."""


def build_editor_schema(kind: SchemaKind) -> Schema:
    """Return the JSON Schema for scenario files or for ``agenteval.yaml``."""
    top, definitions = _config_schema() if kind == "config" else _scenario_file_schema()
    made = simplify_schema({**top, "definitions": definitions})
    definitions = made.pop("definitions")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": GENERATED_COMMENT,
        **made,
        "definitions": _reachable(made, definitions),
    }


def _reachable(top: Schema, definitions: Definitions) -> Definitions:
    found: Definitions = {}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name in definitions and name not in found:
                found[name] = definitions[name]
                look(definitions[name])
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(each)

    look(top)
    return dict(sorted(found.items()))


def _closed(properties: Mapping[str, Any]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _if(condition: Schema, then: Schema, otherwise: Schema) -> Schema:
    return {"if": condition, "then": then, "else": otherwise}


def _any_of(*alternatives: Schema) -> Schema:
    return {"anyOf": list(alternatives)}


def _any_key(*names: str) -> Schema:
    required = [{"required": [name]} for name in names]
    return required[0] if len(required) == 1 else {"anyOf": required}


# ── scenario files ───────────────────────────────────────────────────────────────────────────────

_DEFAULTS = "Keys for every entry of this file; mappings are merged deeply, all other values are replaced."
_LISTS = {
    "scenarios": "The scenarios of this file.",
    "cases": "Test cases with one input each, or a CSV or JSONL file that contains them.",
}


def _scenario_file_schema() -> tuple[Schema, Definitions]:
    made = build_definitions((Scenario, CaseKeys, RowsSpec), _ROW)
    keys = made["Scenario"]["properties"]
    keys |= made["RowsSpec"]["properties"]
    _key_by(made, "Threshold", keys["thresholds"], _metric_names())
    for kind, name in (("scenario", "Scenario"), ("case", "CaseKeys")):
        for path in NEVER_EMPTY[kind]:
            refuse_null(made, made[name], path.split("."))
    case_keys = {**keys, **made["CaseKeys"]["properties"]}
    made["Defaults"] = _closed(case_keys)
    made["Case"] = _closed({key: each for key, each in case_keys.items() if key != "turns"})
    over = {key: overlay_definition(name, made, suffix="OverDefaults") for key, name in _ENTRIES.items()}
    for name in over.values():
        # Null removes a check of the defaults, and nothing else.
        made[name]["properties"]["expect"] |= ref(
            overlay_definition("Expectation", made, suffix="OrNull", nulls=True)
        )
    made["Defaults"] = made[overlay_definition("Defaults", made, suffix="OverDefaults")]
    named, begun = _any_key("name", "id"), _any_key("turns", "goal")
    made["Scenario"]["allOf"] = [named, begun]
    made["Case"] |= {"required": ["input"], "allOf": [named]}
    made["Entries"], made["EntriesOverDefaults"] = _lists(_ENTRIES), _lists(over)
    for name in _ENTRIES.values():
        # A file that is still empty may become any of them.
        properties = {**made[name]["properties"], **_lists(_ENTRIES)["properties"]}
        made[f"Only{name}"] = made[name] | _closed(properties)
    return {
        "title": "An agenteval scenario file",
        "type": "object",
        **_if(
            _any_key(*_ENTRIES),
            _if(_any_key("defaults"), ref("EntriesOverDefaults"), ref("Entries")),
            _if(_any_key("input"), ref("OnlyCase"), ref("OnlyScenario")),
        ),
    }, made


_ENTRIES = {"scenarios": "Scenario", "cases": "Case"}


def _lists(entries: Mapping[str, str]) -> Schema:
    lists: Schema = {
        key: {"description": _LISTS[key], "type": "array", "items": ref(name)}
        for key, name in entries.items()
    }
    lists["cases"]["type"] = ["array", "string"]
    return _closed({**lists, "defaults": {"description": _DEFAULTS, **ref("Defaults")}})


def _metric_names() -> list[str]:
    return [spec.name for spec in built_in_metrics()]


def _key_by(made: Definitions, of: str, mapping: Schema, names: Iterable[str]) -> None:
    """Make an editor suggest the usual keys of ``mapping``. ``of`` names the definition of the mapping's
    values."""
    made[of] = mapping["additionalProperties"]
    mapping |= {"properties": dict.fromkeys(names, ref(of)), "additionalProperties": ref(of)}


# ── the configuration ────────────────────────────────────────────────────────────────────────────


def _config_schema() -> tuple[Schema, Definitions]:
    adapters = {kind: adapter.options for kind, adapter in REGISTRIES.agents.shipped.items()}
    gates = [gate.settings for gate in RUN_GATES]
    made = build_definitions([Config, AgentConfig, ProfileSelection, *gates, *adapters.values()], _VARIABLE)
    keys = made["Config"]["properties"]
    made["GatesConfig"] = _closed({gate.name: _gate_schema(gate) for gate in RUN_GATES})
    made["ModelConfig"]["properties"]["model"] |= _model_name()
    made["ModelsConfig"]["properties"] |= _model_role_schemas(made["ModelsConfig"]["properties"])
    made["ReporterChoice"]["properties"]["name"] |= _choice(REGISTRIES.reporters.names(), _CUSTOM_REPORTER)
    keys |= {
        "metrics": _with_description(
            keys["metrics"], _list_of(_any_of(_choice(_metric_names()), _ANY_TEXT), "all")
        ),
        "detectors": _with_description(keys["detectors"], _any_of(_list_of(_choice(DETECTORS), "all"), NULL)),
        "reporters": _with_description(keys["reporters"], _reporters_schema(REGISTRIES.reporters.names())),
    }
    _key_by(made, "Threshold", keys["thresholds"], _metric_names())
    _key_by(made, "LabelSeverity", keys["severities"], sorted(labels_of(built_in_metrics())))
    _key_by(made, "PromptFile", keys["prompts"], PROMPT_FILES)
    keys["prompts"]["additionalProperties"] = False
    closed = _define_agents(made, adapters)
    profile_keys = {key: each for key, each in keys.items() if key != PROFILES}
    agents = {**keys["agents"], "additionalProperties": ref("AnyAgent")}
    made["Profile"] = _closed(
        {**profile_keys, "agent": _with_description(keys["agent"], ref("AnyAgent")), "agents": agents}
    )
    made["Profile"] = made[overlay_definition("Profile", made, suffix="OrNull", nulls=True)]
    made["Profile"]["properties"] |= made["ProfileSelection"]["properties"]
    keys[PROFILES]["additionalProperties"] = _any_of(ref("Profile"), NULL)
    top = {
        **made["Config"],
        "title": "The agenteval configuration",
        "allOf": [closed, _built_in_names_rule()],
    }
    return top, made


def _gate_schema(gate: RunGate[Any]) -> Schema:
    short = getattr(gate.settings, "SHORT", None)
    forms = [*([short.short] if short else ()), ref(gate.settings.__name__)]
    return {"description": gate.help, **_any_of(*forms)}


def _with_description(by: Schema, schema: Schema) -> Schema:
    return {"description": by["description"], **schema} if "description" in by else schema


def _choice(names: Iterable[str], *others: str) -> Schema:
    """Return a schema that suggests ``names`` and also accepts variables. ``others`` contains patterns for
    other strings that are accepted but not suggested."""
    return {"anyOf": [{"enum": list(names)}, {"type": "string", "pattern": "|".join((_VARIABLE, *others))}]}


def _list_of(item: Schema, *instead: str) -> Schema:
    """Return a schema for a list, a single item, or one of the words in ``instead``."""
    return _any_of({"enum": list(instead)}, item, {"type": "array", "items": item})


_CUSTOM_REPORTER = "^[^=]+:"


def _reporters_schema(names: Iterable[str]) -> Schema:
    known = rf"^\s*({'|'.join(names)})\s*(=|$)|{_CUSTOM_REPORTER}|{_VARIABLE}"
    with_path = {"type": "string", "pattern": known}
    named: Schema = {"anyOf": [{"enum": list(names)}, with_path]}
    return _any_of(named, {"type": "array", "items": _any_of(named, ref("ReporterChoice"))})


def _model_name() -> Schema:
    providers = PROVIDERS.names()
    return {
        "type": "string",
        "pattern": rf"^({'|'.join(providers)})/.*\S|{_VARIABLE}",
        "patternErrorMessage": f"Expected PROVIDER/MODEL, where PROVIDER is one of {', '.join(providers)}.",
    }


def _model_role_schemas(roles: Mapping[str, Schema]) -> Schema:
    """Return the schemas for the model roles. Each schema also accepts a plain PROVIDER/MODEL string."""
    forms = [_model_name(), ref("ModelConfig"), NULL]
    return {role: _with_description(each, _any_of(*forms)) for role, each in roles.items()}


def _define_agents(made: Definitions, adapters: Mapping[str, type[BaseModel]]) -> Schema:
    """Add the definitions for agents, and return the rule for agent entries that are merged over another
    agent. Such entries may contain only agent keys, unless another package defines the type of the other
    agent."""
    common = made["AgentConfig"]["properties"]
    common["type"] = _with_description(
        common["type"], _any_of(_choice(REGISTRIES.agents.names(), "^$"), NULL)
    )
    options = {kind: made[model.__name__]["properties"] for kind, model in adapters.items()}
    every = {**common, **{key: each for own in options.values() for key, each in own.items()}}
    each: Schema = {**_closed(every), **_any_key(*KIND_BY_KEY, "type")}
    for key, kind in KIND_BY_KEY.items():
        is_kind = {"properties": {"type": {"const": kind}}, "required": ["type"]}
        is_by_key = {"properties": {"type": {"enum": _NO_TYPE}}, "required": [key]}
        made[f"Agent_{kind}"] = {**_closed({**common, **options[kind]}), **_any_key(key, "options")}
        each = _if({"anyOf": [is_kind, is_by_key]}, ref(f"Agent_{kind}"), each)
    others = {"properties": {"type": {"not": {"enum": [*adapters, *_NO_TYPE]}}}, "required": ["type"]}
    made["AgentConfig"] = {"type": "object", **_if(others, {"properties": common}, each)}
    made["AnyAgent"] = {"type": "object", "properties": every}
    over = overlay_definition("AnyAgent", made, suffix="OverAgent")
    made["Config"]["properties"]["compare"]["items"] = {**made[over], "required": ["name"]}
    keys = _if(others, {}, {"propertyNames": {"enum": list(every)}})
    layered: Schema = {"compare": {"items": keys, **_QUIET}}
    within = {"agent": keys | _QUIET, "agents": {"additionalProperties": keys, **_QUIET}, **layered}
    profile = {"additionalProperties": {"properties": within}, **_QUIET}
    return _if(
        {"properties": {"agent": others}, "required": ["agent"]},
        {},
        {"properties": {**layered, PROFILES: profile}},
    )


def _built_in_names_rule() -> Schema:
    """Return the rule that accepts only the names of built-in metrics and labels. The rule does not apply if
    the author adds custom metrics or prompts."""
    metrics = {"propertyNames": {"enum": _metric_names()}}
    return _if(
        _any_key("custom_metrics", "prompts"),
        {},
        {
            "properties": {
                "metrics": _list_of(_choice(_metric_names()), "all") | _QUIET,
                "thresholds": metrics | _QUIET,
                "severities": {"propertyNames": {"enum": sorted(labels_of(built_in_metrics()))}, **_QUIET},
            }
        },
    )
