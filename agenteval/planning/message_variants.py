"""Adds variants with altered user messages to the scenarios of a run (``run --variants``). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from agenteval.conversation.message_alterations import alter_message
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.protected_text import spelled_words
from agenteval.core.scenario import (
    VARIANT_SEPARATOR,
    Category,
    Expectation,
    MessageVariantKind,
    Scenario,
    ScenarioVariant,
    ScriptedTurn,
)
from agenteval.core.selection import DEFAULT_EPOCHS
from agenteval.files.variant_packs import VariantPacks

_MOST_WORDS_OF_VALUE = 3
"""The number of words up to which a text is a value (``black shirt``) and not a sentence."""


def add_message_variants(
    scenarios: Sequence[Scenario], packs: VariantPacks, config: Config
) -> tuple[Scenario, ...]:
    """Return the scenarios, each one that was written followed by its message variants. Raise ``AuthorError``
    if no message of any scenario can be altered."""
    added = {each.id: [*_variants_of(each, packs, config)] for each in scenarios if each.variant is None}
    if not any(_may_be_altered(variant) for variants in added.values() for variant in variants):
        what = "--variants: no message of the selected scenarios can be altered in these ways"
        remedy = "a message of identifiers only has no word to misspell, and one sentence has no other order"
        if not any(added.values()):
            what = "--variants: the files have no paraphrase of a selected scenario"
            remedy = "select a scenario that they name"
        raise AuthorError(Problem(what, remedy))
    known = {each.id for each in scenarios}
    for variants in added.values():
        for variant in variants:
            if variant.id in known:
                what = f"--variants: the id '{variant.id}' is taken by a scenario"
                raise AuthorError(Problem(what, "rename the scenario"))
    return tuple(all_of for each in scenarios for all_of in (each, *added.get(each.id, ())))


def _variants_of(scenario: Scenario, packs: VariantPacks, config: Config) -> Iterator[Scenario]:
    values = tuple(sorted(_values_of(scenario)))
    for kind in packs.kinds:
        if kind == "empty":
            yield _with_empty_message(scenario, config)
        else:
            yield _with_variant(scenario, kind, _altered(scenario, kind, values))
    for number, texts in enumerate(packs.paraphrases.get(scenario.id, ()), 1):
        variant = ScenarioVariant(of=scenario.id, messages="paraphrase", texts=texts)
        yield _with_variant(scenario, f"paraphrase-{number}", variant)


def _altered(scenario: Scenario, kind: Any, values: tuple[str, ...]) -> ScenarioVariant:
    return ScenarioVariant(of=scenario.id, messages=kind, values=values)


def _with_variant(scenario: Scenario, label: str, variant: ScenarioVariant) -> Scenario:
    return scenario.model_copy(
        update={
            "id": f"{scenario.id}{VARIANT_SEPARATOR}{label}",
            "name": f"{scenario.name} ({label})",
            "category": Category.ROBUSTNESS,
            "variant": variant,
        }
    )


def _with_empty_message(scenario: Scenario, config: Config) -> Scenario:
    """Return a conversation of one empty message. What the scenario expects was not asked for."""
    kind: MessageVariantKind = "empty"
    epochs = scenario.epochs or config.epochs
    if epochs is None and not scenario.is_scripted:
        epochs = DEFAULT_EPOCHS
    return _with_variant(
        scenario.model_copy(
            update={
                "goal": "",
                "expect": Expectation(),
                "turns": (ScriptedTurn(user=""),),
                "case": None,
                "epochs": epochs,
                "thresholds": dict.fromkeys((*config.thresholds, *scenario.thresholds)),
            }
        ),
        kind,
        ScenarioVariant(of=scenario.id, messages=kind),
    )


def _may_be_altered(scenario: Scenario) -> bool:
    """Check whether at least one message of a variant may be altered. Those of a simulated user are not known
    before."""
    variant = scenario.variant
    if variant is None or variant.messages is None or variant.messages in ("empty", "paraphrase"):
        return True
    kind, values = variant.messages, frozenset(variant.values)
    return any(
        not isinstance(turn, ScriptedTurn) or alter_message(turn.user, kind, Random(0), values) != turn.user
        for turn in scenario.turns or (None,)
    )


# ── words that are values ────────────────────────────────────────────────────────────────────────


def _values_of(scenario: Scenario) -> set[str]:
    """Return the words of short texts that the checks, the tools and the state of a scenario hold: the agent
    needs them exactly, such as a city or a color."""
    texts: list[str] = []
    for _, expect in scenario.expectations:
        if expect.tool_calls:
            calls = (*expect.tool_calls.expected_calls, *expect.tool_calls.forbidden)
            texts += _leaves([call.model_dump(mode="json").get("args") for call in calls])
        texts += _leaves([each.model_dump(mode="json") for each in expect.state or ()])
        if expect.output:
            texts += _leaves(expect.output.model_dump(mode="json"))
    for tool in scenario.tools.values():
        answers = tool.model_dump(mode="json", include={"returns", "rules", "sequence"})
        texts += _leaves(answers)
        texts += _leaves([*_enumerated(tool.parameters or {})])
    if scenario.state is not None:
        texts += _leaves(scenario.state.model_dump(mode="json").get("tables"))
    if scenario.case:
        texts += scenario.case.keywords
    short = (text for text in texts if len(text.split()) <= _MOST_WORDS_OF_VALUE)
    words = {word for text in short for word in spelled_words(text)}
    return words | {text.strip().lower() for text in _texts_within_messages(scenario, texts)}


def _texts_within_messages(scenario: Scenario, texts: Iterable[str]) -> Iterator[str]:
    """Yield the values of several words that the user says: an agent may pass on the message itself."""
    messages = [turn.user.lower() for turn in scenario.turns or () if isinstance(turn, ScriptedTurn)]
    for text in texts:
        value = text.strip().lower()
        if value and any(value in message for message in messages):
            yield value


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    items: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
    for item in items if isinstance(value, Mapping | list | tuple) else ():
        yield from _leaves(item)


def _enumerated(schema: Any) -> Iterator[Any]:
    """Yield the values that a JSON Schema lists."""
    if isinstance(schema, Mapping):
        for name, item in schema.items():
            if name in ("enum", "const"):
                yield item
            else:
                yield from _enumerated(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _enumerated(item)
