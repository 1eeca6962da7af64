"""``profiles``: named overrides of the configuration, of which a run takes one with ``--profile``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.config import ProfileSelection, deep_merge
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files.validation import merge_marks, part_problems
from agenteval.files.yaml_scalars import shown
from agenteval.files.yaml_source import Mark

KEY = "profiles"


class Layered(NamedTuple):
    """The configuration with a profile over it, and what the profile selects."""

    value: dict[str, Any]
    mark: Mark
    selection: ProfileSelection


def profiles_in(value: Mapping[str, Any], mark: Mark) -> dict[str, Mapping[str, Any]]:
    """By name. Raises ``AuthorError`` for what is no mapping."""
    written = value.get(KEY)
    if written is None:
        return {}
    if not isinstance(written, Mapping):
        raise AuthorError(_not_a_mapping(written, mark.find((KEY,))))
    problems = [
        _not_a_mapping(profile, mark.find((KEY, name)))
        for name, profile in written.items()
        if profile is not None and not isinstance(profile, Mapping)
    ]
    problems += [
        Problem("a profile has no profiles of its own", "remove it", mark.find((KEY, name, KEY)).place)
        for name, profile in written.items()
        if isinstance(profile, Mapping) and KEY in profile
    ]
    if problems:
        raise AuthorError(*problems)
    return {str(name): profile or {} for name, profile in written.items()}


def _not_a_mapping(written: Any, mark: Mark) -> Problem:
    return Problem(
        f"expected a mapping, got {shown(written)}", "write for example pr: {tags: [smoke]}", mark.place
    )


def without_profiles(value: dict[str, Any], mark: Mark) -> tuple[dict[str, Any], Mark]:
    children = mark.children
    if isinstance(children, dict):
        children = {key: below for key, below in children.items() if key != KEY}
    return (
        {key: each for key, each in value.items() if key != KEY},
        Mark(mark.path, mark.line, mark.column, children, text=mark.text),
    )


def layered(value: dict[str, Any], mark: Mark, name: str, profiles: Mapping[str, Any]) -> Layered:
    """``value`` (without profiles) with the profile over it; ``mark``: of the whole file. Raises
    ``AuthorError`` if there is no such profile, or for what it cannot select."""
    if name not in profiles:
        hint = did_you_mean(name, profiles) if profiles else "write profiles: {…} into the configuration"
        raise AuthorError(Problem(f"no profile is named '{name}'", hint))
    at = mark.find((KEY, name))
    high = dict(profiles[name])
    chosen = {key: high.pop(key) for key in ProfileSelection.model_fields if key in high}
    if problems := part_problems(ProfileSelection, chosen, mark, (KEY, name), is_whole=False):
        raise AuthorError(*problems)
    own, file = without_profiles(value, mark)
    children = at.children if isinstance(at.children, dict) else {}
    above = Mark(at.path, at.line, at.column, {key: each for key, each in children.items() if key in high})
    merged, removed = merge_marks(file, above, own, high), _removed_by(own, high)
    return Layered(
        _without(deep_merge(own, high), removed),
        Mark(file.path, file.line, file.column, _marks_without(merged, removed).children, text=file.text),
        ProfileSelection.model_validate(chosen),
    )


Removed: TypeAlias = "dict[str, Removed]"
"""Keys that are removed, or in whose mapping something is; nothing below a key: it is removed itself."""


def _removed_by(low: Mapping[str, Any], high: Mapping[str, Any]) -> Removed:
    """What of ``low`` a ``null`` of ``high`` removes. A ``null`` where there is nothing stays as it is
    written, so that a misspelt key is still found."""
    found: Removed = {}
    for key in high.keys() & low.keys():
        below, above = low[key], high[key]
        if above is None:
            found[key] = {}
        elif (
            isinstance(below, Mapping) and isinstance(above, Mapping) and (in_it := _removed_by(below, above))
        ):
            found[key] = in_it
    return found


def _without(value: Mapping[str, Any], removed: Removed) -> dict[str, Any]:
    """``value`` without what is ``removed``."""
    return {
        key: _without(each, removed[key]) if removed.get(key) else each
        for key, each in value.items()
        if removed.get(key, True)
    }


def _marks_without(mark: Mark, removed: Removed) -> Mark:
    if not removed or not isinstance(mark.children, dict):
        return mark
    children = {
        key: _marks_without(below, removed.get(key, {}))
        for key, below in mark.children.items()
        if removed.get(key, True)
    }
    return Mark(mark.path, mark.line, mark.column, children, text=mark.text)
