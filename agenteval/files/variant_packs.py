"""Packs of message variants for ``run --variants``: the names of shipped ones, and files of paraphrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.folding import fold
from agenteval.core.plurals import plural
from agenteval.core.protected_text import identifiers_in
from agenteval.core.scenario import Scenario, ScriptedTurn
from agenteval.files.fault_names import MESSAGE_PACK_NAMES, split_packs
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.scenario_files import display_path
from agenteval.files.validation import unknown_key
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import MAX_BYTES, Mark, parse_yaml

_KEY = "paraphrases"
_EXAMPLE = "use, for example, paraphrases: {book: [Please book it., I would like to book.]}"
_CODE = re.compile(r"[A-Z]{3,}")
_INSIDE = re.compile(r"(?<=\S)[_@/\\.:](?=\S)")


class VariantPacks(NamedTuple):
    """What is done to the messages of scenarios."""

    kinds: tuple[str, ...]
    """The shipped packs, in the order in which they are named."""
    paraphrases: Mapping[str, tuple[tuple[str, ...], ...]]
    """The paraphrases by scenario: for each, the message of each turn."""


def load_variant_packs(names: str, cwd: Path, scenarios: Sequence[Scenario]) -> VariantPacks:
    """Return what packs do, which are given as ``PACK[,PACK]``: names of shipped ones, or YAML files with
    paraphrases of the messages of ``scenarios``. Raise ``AuthorError`` with every mistake."""
    problems: list[Problem] = []
    kinds: dict[str, None] = {}
    paraphrases: dict[str, tuple[tuple[str, ...], ...]] = {}
    for name in split_packs(names):
        if name in MESSAGE_PACK_NAMES:
            kinds[name] = None
            continue
        try:
            for scenario, texts in _load_file(name, cwd, scenarios).items():
                paraphrases[scenario] = (*paraphrases.get(scenario, ()), *texts)
        except AuthorError as error:
            problems += error.problems
    if not problems and not kinds and not paraphrases:
        known = f"known: {', '.join(MESSAGE_PACK_NAMES)}, or a YAML file with paraphrases"
        problems.append(Problem("--variants: no pack is named", known))
    if problems:
        raise AuthorError(*problems)
    return VariantPacks(tuple(kinds), paraphrases)


def _load_file(name: str, cwd: Path, scenarios: Sequence[Scenario]) -> dict[str, tuple[tuple[str, ...], ...]]:
    path = cwd / name
    if not path.suffix and not path.exists():
        what = f"--variants: unknown pack '{name}'"
        raise AuthorError(Problem(what, did_you_mean(name, MESSAGE_PACK_NAMES)))
    shown = display_path(path, cwd)
    remedy = "paths are relative to the working directory"
    with wrap_read_errors(f"--variants: the file {shown}", None, remedy):
        data = read_file(path, MAX_BYTES + 1)
    document = parse_yaml(data, shown)
    mark, value = document.mark, document.value
    if not isinstance(value, dict):
        what = f"expected a mapping with `{_KEY}`, got {display_value(value)}"
        raise AuthorError(Problem(what, _EXAMPLE, mark.place))
    problems = [unknown_key(key, [_KEY], mark.find((key,))) for key in value if key != _KEY]
    listed, mark = value.get(_KEY), mark.find((_KEY,))
    if not problems and not (isinstance(listed, dict) and listed):
        what = f"`{_KEY}`: expected a mapping by scenario, got {display_value(listed)}"
        what = f"`{_KEY}` is empty" if listed == {} else what
        problems.append(Problem(what, _EXAMPLE, mark.place))
    known = {scenario.id: scenario for scenario in scenarios}
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for scenario_id, entries in listed.items() if isinstance(listed, dict) else ():
        below = mark.find((scenario_id,))
        if scenario_id not in known:
            what = f"`{_KEY}`: no scenario has the id '{scenario_id}'"
            problems.append(Problem(what, did_you_mean(str(scenario_id), known), below.place))
            continue
        found[scenario_id] = tuple(_parse_entries(entries, known[scenario_id], below, problems))
    if problems:
        raise AuthorError(*problems)
    return found


def _parse_entries(
    entries: Any, scenario: Scenario, mark: Mark, problems: list[Problem]
) -> Iterator[tuple[str, ...]]:
    messages = [turn.user for turn in scenario.turns or () if isinstance(turn, ScriptedTurn)]
    if not scenario.is_scripted:
        what = f"`{_KEY}`: the messages of '{scenario.id}' are written by the simulated user"
        problems.append(Problem(what, "paraphrase scenarios with scripted `turns`, or remove it", mark.place))
        return
    if not isinstance(entries, list) or not entries:
        what = f"expected a list of paraphrases, got {display_value(entries)}"
        problems.append(Problem(what, "use, for example, [first paraphrase, second paraphrase]", mark.place))
        return
    for index, entry in enumerate(entries):
        below = mark.find((index,))
        texts = entry if isinstance(entry, list) else [entry]
        places = [below.find((at,)) for at in range(len(texts))] if isinstance(entry, list) else [below]
        wrong = [*_find_form_problems(texts, places, messages, below)]
        wrong = wrong or [*_find_content_problems(texts, places, messages)]
        problems += wrong
        if not wrong:
            yield tuple(texts)


def _find_form_problems(
    texts: Sequence[Any], places: Sequence[Mark], messages: Sequence[str], mark: Mark
) -> Iterator[Problem]:
    for text, place in zip(texts, places, strict=True):
        if not isinstance(text, str) or not text.strip():
            yield Problem(f"expected a message, got {display_value(text)}", "write it as a text", place.place)
    if len(texts) != len(messages):
        what = f"the paraphrase has {plural(len(texts), 'message')}, and the scenario has {len(messages)}"
        yield Problem(what, "write a list with one message for each turn", mark.place)


def _find_content_problems(
    texts: Sequence[str], places: Sequence[Mark], messages: Sequence[str]
) -> Iterator[Problem]:
    """Yield the slips for which the agent would be blamed: a value of the message that the paraphrase leaves
    out, and a paraphrase that is the message itself."""
    for text, place, message in zip(texts, places, messages, strict=True):
        has = {fold(each) for each in identifiers_in(text)}
        missing = [each for each in identifiers_in(message) if _is_value(each) and fold(each) not in has]
        if missing:
            what = f"the paraphrase does not contain '{missing[0]}', which is in the message"
            remedy = "numbers and identifiers must be as they are in the message"
            yield Problem(what, remedy, place.place)
    if all(fold(text) == fold(message) for text, message in zip(texts, messages, strict=True)):
        yield Problem("the paraphrase is the message itself", "write it in other words", places[0].place)


def _is_value(token: str) -> bool:
    """Check whether a word is a number, an identifier or an address, and not merely written with a hyphen or
    a capital letter."""
    is_numeric = any(char.isnumeric() for char in token)
    return is_numeric or bool(_CODE.fullmatch(token) or _INSIDE.search(token))
