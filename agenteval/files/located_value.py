"""Values together with the locations in a file where they and their parts were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.config import deep_merge
from agenteval.files.yaml_source import Mark


class LocatedValue(NamedTuple):
    """A value from a file, together with its mark. Instances are immutable: each method returns a new
    instance."""

    value: Any
    """The value as written, or the value that replaced it."""
    mark: Mark
    """The location of the value and of everything in it."""

    @classmethod
    def from_list(cls, items: Sequence[LocatedValue], at: Mark) -> LocatedValue:
        """Combine values into a list with the given mark."""
        return cls([item.value for item in items], at.with_children([item.mark for item in items]))

    @classmethod
    def from_mapping(cls, items: Mapping[str, LocatedValue], at: Mark) -> LocatedValue:
        """Combine values into a mapping with the given mark."""
        values = {key: item.value for key, item in items.items()}
        return cls(values, at.with_children({key: item.mark for key, item in items.items()}))

    @property
    def items(self) -> dict[str, LocatedValue]:
        """The located values in this mapping, keyed by name."""
        marks = self.mark.by_key
        return {key: LocatedValue(item, marks.get(key, self.mark)) for key, item in self.value.items()}

    def at(self, *loc: str | int) -> LocatedValue:
        """Return the value at a path. A value with no location of its own is given the location of its
        nearest parent."""
        value = self.value
        for part in loc:
            value = value[part]
        return LocatedValue(value, self.mark.find(loc))

    def select_keys(self, keys: Iterable[str]) -> LocatedValue:
        """Return this mapping with only the keys that are in ``keys``."""
        selected = frozenset(keys)
        marks = {key: mark for key, mark in self.mark.by_key.items() if key in selected}
        return LocatedValue(
            {key: item for key, item in self.value.items() if key in selected}, self.mark.with_children(marks)
        )

    def drop_keys(self, *keys: str) -> LocatedValue:
        """Return this mapping without the given keys."""
        return self.select_keys(self.value.keys() - set(keys))

    def replace_at(self, loc: Sequence[str | int], item: LocatedValue) -> LocatedValue:
        """Return a copy with ``item`` at ``loc``, which may be a new key in a mapping."""
        if not loc:
            return item
        key, *rest = loc
        below = self.at(key).replace_at(rest, item) if rest else item
        if isinstance(self.value, list):
            items = [self.at(index) for index in range(len(self.value))]
            items[int(key)] = below
            return LocatedValue.from_list(items, self.mark)
        marks = {**self.mark.by_key, str(key): below.mark}
        return LocatedValue({**self.value, key: below.value}, self.mark.with_children(marks))

    def merge_over(self, low: LocatedValue) -> LocatedValue:
        """Merge this value over another value (deep merge): mappings are merged recursively, and everything
        else is replaced."""
        merged = deep_merge(low.value, self.value)
        return LocatedValue(merged, _marks_over(low.mark, self.mark, low.value, self.value))


def empty_mapping() -> LocatedValue:
    """Return an empty mapping with no location in a file."""
    return LocatedValue({}, Mark("", children={}))


def _marks_over(low: Mark, high: Mark, low_value: Any, high_value: Any) -> Mark:
    """Return the marks of ``deep_merge(low_value, high_value)``."""
    if not isinstance(low.children, dict) or not isinstance(high.children, dict):
        return high
    children = dict(low.children)
    for key, mark in high.children.items():
        below, above = low_value.get(key), high_value.get(key)
        both = isinstance(below, Mapping) and isinstance(above, Mapping)
        children[key] = _marks_over(children[key], mark, below, above) if both else mark
    return high.with_children(children)
