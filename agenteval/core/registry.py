"""The things of one kind that an author can name: built-in ones and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Named = TypeVar("Named")


def unchanged(found: Any) -> Any:
    return found


@dataclass(frozen=True)
class Registry(Generic[Named]):
    """The names of one kind of thing. Other packages add theirs through entry points of the ``group``."""

    kind: str
    """The noun for messages: no *reporter* is named 'jsn'."""
    group: str
    built_in: Mapping[str, Named | str]
    """By name, the object or, as text, ``module:attribute`` of one that is imported on first use."""
    read: Callable[[Any], Named] = unchanged
    """Converts what an entry point loads. Raises ``TypeError`` with what is wrong with it."""

    def __contains__(self, name: str) -> bool:
        return name in self.built_in or self._entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the built-in names."""
        return iter(self.built_in)

    @property
    def shipped(self) -> dict[str, Named]:
        """The built-in things, by name."""
        return {name: self.get(name) for name in self.built_in}

    def unknown(self, name: str, place: Place | None = None) -> Problem:
        """Describe that no thing has this name, or that it is not supported yet."""
        if later := NOT_YET.get(self.kind, {}).get("MODULE:CLASS" if ":" in name else name):
            return Problem(f"'{name}' is not supported yet", later, place)
        return Problem(f"no {self.kind} is named '{name}'", did_you_mean(name, self.names()), place)

    def get(self, name: str) -> Named:
        """Return the thing with this name. Raises ``AuthorError`` if there is none, or if one of another
        package cannot be loaded."""
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
            raise AuthorError(Problem(what, "fix or reinstall its package")) from error

    def _entry(self, name: str) -> EntryPoint | None:
        from importlib.metadata import entry_points

        return next((entry for entry in entry_points(group=self.group) if entry.name == name), None)

    def names(self) -> list[str]:
        """Return all names, those of other packages last."""
        from importlib.metadata import entry_points

        return [*self.built_in, *(entry.name for entry in entry_points(group=self.group))]


def load_target(target: str) -> Any:
    """Import the object named by ``module:attribute``."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
