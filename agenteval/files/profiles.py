"""``profiles`` (configuration profiles): named overrides of the configuration. A run selects one with
``--profile``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agenteval.core.config import ProfileSelection
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files.located_value import LocatedValue
from agenteval.files.validation import part_problems
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import Mark

PROFILES_KEY = "profiles"


class ProfiledConfig(NamedTuple):
    """The configuration overlaid with a profile, and the profile's settings that select what runs."""

    config: LocatedValue
    selection: ProfileSelection


def parse_profiles(file: LocatedValue) -> dict[str, Mapping[str, Any]]:
    """Return the profiles, keyed by name. Raise ``AuthorError`` for values that are not mappings."""
    profiles = file.value.get(PROFILES_KEY)
    if profiles is None:
        return {}
    at = file.mark.find((PROFILES_KEY,))
    if not isinstance(profiles, Mapping):
        raise AuthorError(_not_a_mapping(profiles, at))
    problems = [
        _not_a_mapping(profile, at.find((name,)))
        for name, profile in profiles.items()
        if profile is not None and not isinstance(profile, Mapping)
    ]
    problems += [
        Problem("a profile cannot contain `profiles`", "remove it", at.find((name, PROFILES_KEY)).place)
        for name, profile in profiles.items()
        if isinstance(profile, Mapping) and PROFILES_KEY in profile
    ]
    if problems:
        raise AuthorError(*problems)
    return {str(name): profile or {} for name, profile in profiles.items()}


def _not_a_mapping(value: Any, mark: Mark) -> Problem:
    return Problem(
        f"expected a mapping, got {display_value(value)}",
        "use, for example, pr: {tags: [smoke]}",
        mark.place,
    )


def layer_profile(
    file: LocatedValue, name: str | None, profiles: Mapping[str, Mapping[str, Any]]
) -> ProfiledConfig:
    """Return a file's configuration without its profiles, overlaid with one profile. Raise ``AuthorError`` if
    the profile does not exist or sets a key that profiles may not set."""
    base = file.drop_keys(PROFILES_KEY)
    if name is None:
        return ProfiledConfig(base, ProfileSelection())
    if name not in profiles:
        hint = did_you_mean(name, profiles) if profiles else "add `profiles: {…}` to the configuration"
        raise AuthorError(Problem(f"no profile is named '{name}'", hint))
    profile = LocatedValue(profiles[name], file.mark.find((PROFILES_KEY, name)))
    chosen = profile.select_keys(ProfileSelection.model_fields)
    if problems := part_problems(
        ProfileSelection, chosen.value, file.mark, (PROFILES_KEY, name), is_whole=False
    ):
        raise AuthorError(*problems)
    above = profile.drop_keys(*ProfileSelection.model_fields)
    merged = _drop_removed(above.merge_over(base), base.value, above.value)
    return ProfiledConfig(
        LocatedValue(merged.value, file.mark.with_children(merged.mark.children)),
        ProfileSelection.model_validate(chosen.value),
    )


def _drop_removed(merged: LocatedValue, low: Mapping[str, Any], high: Mapping[str, Any]) -> LocatedValue:
    """Merge ``high`` over ``low`` and drop the keys that a ``null`` in ``high`` removes. A ``null`` that
    removes nothing is kept, so that a misspelled key is still reported."""
    both = high.keys() & low.keys()
    merged = merged.drop_keys(*(key for key in both if high[key] is None))
    for key in both & merged.value.keys():
        if isinstance(low[key], Mapping) and isinstance(high[key], Mapping):
            merged = merged.replace_at((key,), _drop_removed(merged.at(key), low[key], high[key]))
    return merged
