"""Load modules from Python files that a configuration or a scenario names."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module, invalidate_caches
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .same_names import claim_imports

if TYPE_CHECKING:
    from types import ModuleType

_PACKAGE = "__init__.py"


@lru_cache(maxsize=None)
def module_of_file(path: str, base: str) -> ModuleType:
    """Return the module for a file, loaded once per process. ``base`` must already be importable.

    A file in a package is loaded as a module of that package, so that its relative imports work. The folder
    that contains the outermost package is made importable, as in pytest's ``prepend`` mode. The file's own
    folder is also made importable, as it is when Python runs the file.

    The result is the same module that ``import`` returns if it finds this file by name. Therefore, an agent
    and the mocks that it imports share their state, and a process that the agent starts can find the agent's
    functions. Raise ``ImportError`` or its subclass ``SameNameError``. Exceptions raised by the module
    propagate."""
    file = Path(path)
    packages = _packages_around(file)
    _make_importable(packages[0].parent if packages else file.parent)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last, so that modules in a package do not hide others
    files = [*(folder / _PACKAGE for folder in packages), file]
    folders = [str(packages[0].parent), base, str(file.parent)] if packages else [str(file.parent), base]
    claim_imports(files, folders)
    if not packages:
        return _load_outermost(file)
    outermost = _load_outermost(packages[0] / _PACKAGE)
    within = [*(folder.name for folder in packages[1:]), *([] if file.name == _PACKAGE else [file.stem])]
    return import_module(".".join((outermost.__name__, *within)))


def is_installed(obj: Any) -> bool:
    """Return whether a class or function comes from an installed library."""
    file = getattr(sys.modules.get(getattr(obj, "__module__", None) or ""), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _packages_around(file: Path) -> list[Path]:
    """Return the folders of the packages that contain a file, outermost first."""
    folders: list[Path] = []
    for folder in file.parents:
        if not (folder / _PACKAGE).is_file() or not folder.name.isidentifier():
            break
        folders.insert(0, folder)
    return folders


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _load_outermost(file: Path) -> ModuleType:
    """Return the module for a file outside packages, or for the ``__init__.py`` of an outermost package."""
    usual = file.parent.name if file.name == _PACKAGE else file.stem
    known = sys.modules.get(usual)
    if known is not None and _is_same_file(getattr(known, "__file__", None), file):
        return known
    name = usual if known is None and _is_found_by_name(usual, file) else _unique_name(usual, file)
    if name in sys.modules:
        return sys.modules[name]
    search_locations = [str(file.parent)] if file.name == _PACKAGE else None
    spec = spec_from_file_location(name, str(file), submodule_search_locations=search_locations)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_found_by_name(name: str, file: Path) -> bool:
    invalidate_caches()
    try:
        spec = find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        return False
    return spec is not None and _is_same_file(spec.origin, file)


def _is_same_file(origin: str | None, file: Path) -> bool:
    return bool(origin) and Path(str(origin)).resolve() == file.resolve()


def _unique_name(usual: str, file: Path) -> str:
    """Return a module name that is unique to the file, because two files with the same name must be separate
    modules."""
    from hashlib import blake2b

    return f"{usual}_{blake2b(str(file).encode(), digest_size=4).hexdigest()}"
