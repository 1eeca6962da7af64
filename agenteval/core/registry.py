"""A registry of objects of one kind that an author can specify by name: built-in objects, and plugins from
other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Named = TypeVar("Named")


def unchanged(found: Any) -> Any:
    return found


@dataclass(frozen=True)
class Registry(Generic[Named]):
    """The names of objects of one kind. Plugins from other packages add names through entry points in
    ``group``."""

    kind: str
    """The noun used in messages, such as "reporter" in "no reporter is named 'jsn'"."""
    group: str
    built_in: Mapping[str, Named | str]
    """The objects, keyed by name. An object may be given as the string ``module:attribute``, which is
    imported on first use."""
    read: Callable[[Any], Named] = unchanged
    """Converts the object loaded from an entry point. Raises ``TypeError`` with a description of what is
    wrong with it."""

    def __contains__(self, name: str) -> bool:
        return name in self.built_in or self._entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the built-in names."""
        return iter(self.built_in)

    @property
    def shipped(self) -> dict[str, Named]:
        """The built-in objects, keyed by name."""
        return {name: self.get(name) for name in self.built_in}

    def unknown(self, name: str, place: Place | None = None) -> Problem:
        """Return a ``Problem`` for an unknown name."""
        return Problem(f"no {self.kind} is named '{name}'", did_you_mean(name, self.names()), place)

    def get(self, name: str) -> Named:
        """Return the object with this name. Raise ``AuthorError`` if there is none, or if a plugin cannot be
        loaded."""
        if name in self.built_in:
            found = self.built_in[name]
            return cast(Named, load_target(found)) if isinstance(found, str) else found
        entry = self._entry(name)
        if entry is None:
            raise AuthorError(self.unknown(name))
        try:
            return self.read(entry.load())
        except Exception as error:  # in another package
            what = (
                f"the {self.kind} '{name}' ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
            )
            raise AuthorError(Problem(what, "fix or reinstall the package")) from error

    def _entry(self, name: str) -> EntryPoint | None:
        from importlib.metadata import entry_points

        return next((entry for entry in entry_points(group=self.group) if entry.name == name), None)

    def names(self) -> list[str]:
        """Return all names. Names from other packages are last."""
        from importlib.metadata import entry_points

        return [*self.built_in, *(entry.name for entry in entry_points(group=self.group))]


def load_target(target: str) -> Any:
    """Import the object specified as ``module:attribute``."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
