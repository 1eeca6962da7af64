"""``profiles``: named overrides of the configuration, of which a run takes one with ``--profile``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agenteval.core.config import ProfileSelection
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files.located import Located
from agenteval.files.validation import part_problems
from agenteval.files.yaml_scalars import shown
from agenteval.files.yaml_source import Mark

KEY = "profiles"


class Layered(NamedTuple):
    """The configuration with a profile over it, and what the profile selects."""

    config: Located
    selection: ProfileSelection


def profiles_in(file: Located) -> dict[str, Mapping[str, Any]]:
    """By name. Raises ``AuthorError`` for what is no mapping."""
    written = file.value.get(KEY)
    if written is None:
        return {}
    at = file.mark.find((KEY,))
    if not isinstance(written, Mapping):
        raise AuthorError(_not_a_mapping(written, at))
    problems = [
        _not_a_mapping(profile, at.find((name,)))
        for name, profile in written.items()
        if profile is not None and not isinstance(profile, Mapping)
    ]
    problems += [
        Problem("a profile has no profiles of its own", "remove it", at.find((name, KEY)).place)
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


def layered(file: Located, name: str | None, profiles: Mapping[str, Mapping[str, Any]]) -> Layered:
    """The configuration of a file without its profiles, and with one of them over it. Raises ``AuthorError``
    if there is no such profile, or for what it cannot select."""
    below = file.without(KEY)
    if name is None:
        return Layered(below, ProfileSelection())
    if name not in profiles:
        hint = did_you_mean(name, profiles) if profiles else "write profiles: {…} into the configuration"
        raise AuthorError(Problem(f"no profile is named '{name}'", hint))
    profile = Located(profiles[name], file.mark.find((KEY, name)))
    chosen = profile.only(ProfileSelection.model_fields)
    if problems := part_problems(ProfileSelection, chosen.value, file.mark, (KEY, name), is_whole=False):
        raise AuthorError(*problems)
    above = profile.without(*ProfileSelection.model_fields)
    merged = _without_removed(above.over(below), below.value, above.value)
    return Layered(
        Located(merged.value, file.mark.around(merged.mark.children)),
        ProfileSelection.model_validate(chosen.value),
    )


def _without_removed(merged: Located, low: Mapping[str, Any], high: Mapping[str, Any]) -> Located:
    """``high`` over ``low`` without what a ``null`` of ``high`` removes. A ``null`` where there is nothing
    stays as it is written, so that a misspelt key is still found."""
    both = high.keys() & low.keys()
    merged = merged.without(*(key for key in both if high[key] is None))
    for key in both & merged.value.keys():
        if isinstance(low[key], Mapping) and isinstance(high[key], Mapping):
            merged = merged.put((key,), _without_removed(merged.at(key), low[key], high[key]))
    return merged
