"""The modules of Python files that a configuration or a scenario names."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import invalidate_caches
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


@lru_cache(maxsize=None)
def module_of_file(path: str) -> ModuleType:
    """The module of a file, once a process. Its folder is importable, as when Python runs it.

    It is the module that ``import`` gives, wherever that finds this very file by its name: so an agent and
    the mocks that it imports share their state, and a process that the agent starts finds its functions.
    Raises ``ImportError``, and what the module raises."""
    file = Path(path)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    known = sys.modules.get(file.stem)
    if known is not None and _is_of(getattr(known, "__file__", None), file):
        return known
    name = file.stem if known is None and _is_found_by_name(file) else _own_name(file)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_found_by_name(file: Path) -> bool:
    invalidate_caches()
    try:
        spec = find_spec(file.stem) if file.stem.isidentifier() else None
    except (ImportError, ValueError):
        return False
    return spec is not None and _is_of(spec.origin, file)


def _is_of(origin: str | None, file: Path) -> bool:
    return bool(origin) and Path(str(origin)).resolve() == file.resolve()


def _own_name(file: Path) -> str:
    """Two files of one name must not be one module."""
    from hashlib import blake2b

    return f"{file.stem}_{blake2b(str(file).encode(), digest_size=4).hexdigest()}"
