"""Import the object named by ``file.py:attribute`` or ``package.module:attribute``."""

from __future__ import annotations

import inspect
import os
import sys
from contextlib import suppress
from functools import partialmethod
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from .faults import contain_exits, describe_error
from .module_files import module_of_file
from .same_names import SameNameError, claim_module, forget_claims, is_installed_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType


class TargetError(Exception):
    """Raised when a target cannot be found.

    ``what`` continues a sentence that begins with the purpose of the target (``tool 'x'``). ``missing_name``
    is a name that is not in ``attribute_names``. The author may have meant one of the names in
    ``attribute_names``."""

    def __init__(
        self, what: str, remedy: str = "", *, missing_name: str = "", attribute_names: Iterable[str] = ()
    ) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.missing_name = missing_name
        self.attribute_names = tuple(attribute_names)


class Method(NamedTuple):
    """A method in a class that has not been instantiated yet."""

    owner: type
    name: str


def load_agent(target: str, base: str) -> Any:
    """Return the object that ``target`` names, in the same way as ``load_object``. A method that requires an
    instance is returned as a ``Method``."""
    owner, name, found = _load_with_owner(target, base)
    attribute = inspect.getattr_static(owner, name, None) if inspect.isclass(owner) else None
    if inspect.isclass(owner) and isinstance(attribute, (FunctionType, partialmethod)):
        return Method(owner, name)
    return found


def load_object(target: str, base: str) -> Any:
    """Import the object that ``target`` names. File paths are relative to the folder ``base``, from which
    modules can be imported afterward. Raise ``TargetError`` if there is no such object."""
    return _load_with_owner(target, base)[-1]


def _load_with_owner(target: str, base: str) -> tuple[Any, str, Any]:
    """Return the object's owner, the object's name in the owner, and the object itself."""
    location, separator, attribute = target.rpartition(":")
    if not separator or not location or not attribute:
        raise TargetError(
            f" '{target}' does not name an attribute", "use `file.py:name` or `package.module:name`"
        )
    folders = [*sys.path]
    if base not in sys.path:
        sys.path.insert(0, base)
    try:
        module = _load_module(location, base)
    except SameNameError as error:
        sys.path[:] = folders  # a target that was not loaded must not hide modules of those that were
        raise TargetError(f": {error}", error.remedy) from error
    owner, name, found = None, "", module  # type: Any, str, Any
    for name in attribute.split("."):
        if not _has_attribute(found, name):
            known = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
            raise TargetError(
                f": '{location}' has no attribute '{attribute}'",
                missing_name=attribute,
                attribute_names=known,
            )
        owner, found = found, getattr(found, name)
    return owner, name, found


def _has_attribute(owner: Any, name: str) -> bool:
    """Return whether the owner has the attribute. The lookup may run the owner's code, such as a module's
    ``__getattr__``."""
    try:
        with contain_exits():
            return hasattr(owner, name)
    except Exception as error:
        raise TargetError(f": reading '{name}' failed: {describe_error(error)}") from error


_LOADED: dict[str, tuple[str, tuple[int, int]]] = {}
"""The files of the modules that were first imported for a target, with their state at that time, keyed by the
name of the module."""


def forget_changed_modules() -> None:
    """Forget all modules that were imported for targets if any of their files has changed, so that the next
    run in this process loads the current code. Modules that the process itself had imported are kept."""
    if all(_state_of(file) == state for file, state in _LOADED.values()):
        return
    for name, (file, state) in _LOADED.items():
        sys.modules.pop(name, None)
        if _state_of(file) != state:
            # Compiled code is only told from an older version of the same length by the second of the change.
            with suppress(OSError, NotImplementedError):
                os.unlink(cache_from_source(file))
    _LOADED.clear()
    module_of_file.cache_clear()
    forget_claims()


def _state_of(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _note_new_modules(before: set[str]) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name not in before and isinstance(file, str) and not is_installed_file(file):
            state = _state_of(file)
            if state:
                _LOADED[name] = (file, state)


def _load_module(location: str, base: str) -> ModuleType:
    before = set(sys.modules)
    try:
        return _import_module(location, base)
    finally:
        _note_new_modules(before)


def _import_module(location: str, base: str) -> ModuleType:
    is_file = location.endswith(".py") or "/" in location
    path = (Path(base) / location).resolve() if is_file else None
    if path is not None and not os.path.isfile(path):
        raise TargetError(f": no such file: '{location}'", f"looked in {base}")
    try:
        with contain_exits():
            if path:
                return module_of_file(str(path), base)
            claim_module(location, base)
            return import_module(location)
    except SameNameError:
        raise
    except ModuleNotFoundError as error:
        # Otherwise the module is there, and one that it imports is not.
        if path is None and error.name and f"{location}.".startswith(f"{error.name}."):
            remedy = "install it, or check its name and directory"
            raise TargetError(f": no such module: '{location}'", remedy) from error
        raise TargetError(f": importing '{location}' failed: {describe_error(error)}") from error
    except Exception as error:
        raise TargetError(f": importing '{location}' failed: {describe_error(error)}") from error
