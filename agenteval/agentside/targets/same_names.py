"""Detect modules with the same name among the author's files that are loaded into one process.

Python keeps only one module for each name. For example, ``old/bot.py`` and ``new/bot.py`` may both contain
``from prices import price``, each referring to the ``prices.py`` in its own folder. The second file would be
given the first file's module, so that the wrong version would run. To prevent this, the imports in each file
that refer to its own folders are read before the file is loaded, including imports inside functions. These
imports must match the files that Python would import, both now and after every file that is loaded later.

Installed packages are left to Python. For example, if Python prefers another module to the author's
``types.py``, then ``types.py`` is not a second version of that module."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .faults import is_internal_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class SameNameError(ImportError):
    """Raised for an import that would load a module from a different one of the author's files."""

    remedy = (
        "use a relative import (`from .module import name`) in a package, rename one of the two modules,"
        " or set a separate `interpreter` for one of the agents"
    )

    def __init__(self, claim: str, wanted: str, resolved: str) -> None:
        super().__init__(
            f"{claim}, which is {_display_path(wanted)} there but would resolve to {_display_path(resolved)}:"
            " a process can load only one module per name"
        )


_CLAIMS: dict[tuple[str, str], str] = {}
"""The files that import a module from their own folders, keyed by the module's name and file."""


def claim_imports(files: Iterable[Path], folders: Sequence[str]) -> None:
    """Record the imports in ``files`` that refer to modules in ``folders``. The files are about to be loaded,
    and ``folders`` are searched first for their imports. Raise ``SameNameError`` if Python would import a
    different file."""
    _check_claims(dict(_collect_claims(files, folders)))


@lru_cache(maxsize=None)
def claim_module(name: str, base: str) -> None:
    """Record the imports in a module that is itself a target, in the same way as ``claim_imports``."""
    claims: dict[tuple[str, str], str] = {}
    files = []
    for found, file in _walk_modules(name, [base]):
        claims = claims or {(found, str(file)): f"'{name}' refers to '{found}'"}
        files.append(file)
    claims.update(_collect_claims(files, [base]))
    _check_claims(claims)


def _check_claims(claims: dict[tuple[str, str], str]) -> None:
    invalidate_caches()
    # Imported modules stay; later imports must not be hidden by folders that are searched from now on.
    earlier = [each for each in _CLAIMS.items() if each[0][0] not in sys.modules]
    for (name, wanted), claim in [*claims.items(), *earlier]:
        resolved = _resolve_module_file(name)
        if resolved and not is_installed_file(resolved) and not _is_same(resolved, wanted):
            raise SameNameError(claim, wanted, resolved)
    _CLAIMS.update(claims)


def _resolve_module_file(name: str) -> str | None:
    """Return the file that an import of ``name`` would load first. Leading parts of the dotted name that have
    no file, such as namespace packages, are skipped."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = sys.modules.get(".".join(parts[:end]))
        if module is not None and (end == len(parts) or getattr(module, "__file__", None)):
            file = getattr(module, "__file__", None)
            return file if isinstance(file, str) else None
    if parts[0] in sys.builtin_module_names:
        return None
    return next((str(file) for _, file in _walk_modules(name, sys.path)), None)


def _is_same(one: str, other: str) -> bool:
    return one == other or Path(one).resolve() == Path(other).resolve()


def forget_claims() -> None:
    """Forget what the files that were loaded import. They are about to be loaded again."""
    _CLAIMS.clear()
    claim_module.cache_clear()


def is_installed_file(file: str) -> bool:
    """Return whether a file belongs to Python, an installed library or agenteval itself."""
    return is_internal_file(file) or bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def _display_path(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def _walk_modules(name: str, folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the modules along a dotted name, excluding modules without a file, such as a folder without an
    ``__init__.py``."""
    parts = name.split(".")
    for end, part in enumerate(parts, 1):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return
        if spec.has_location and spec.origin:
            yield ".".join(parts[:end]), Path(spec.origin)
        folders = list(spec.submodule_search_locations or ())
        if not folders:
            return


def _collect_claims(files: Iterable[Path], folders: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the imports in ``files`` that refer to modules in the folders, including indirect imports."""
    waiting = list(files)
    seen = set()
    while waiting:
        file = waiting.pop()
        if file in seen or file.suffix != ".py" or is_installed_file(str(file)):
            continue
        seen.add(file)
        for each in _imports_of(file):
            if each.fallback_for and all(
                _resolve_import(other, file, folders) for other in each.fallback_for
            ):
                continue
            found = _resolve_import(each, file, folders)
            waiting += [path for _, path in found]
            if found and not each.level:
                name, path = found[0]
                yield (name, str(path)), f"{_display_path(str(file))}:{each.line} imports '{name}'"


class _Import(NamedTuple):
    """A module in an import statement."""

    name: str
    level: int
    """The level of a relative import, as in ``ast``."""
    line: int
    fallback_for: tuple[_Import, ...]
    """The imports that must have failed for this import to be executed."""


def _resolve_import(each: _Import, file: Path, folders: Sequence[str]) -> list[tuple[str, Path]]:
    if not each.level:
        return list(_walk_modules(each.name, folders))
    package = file.parents[min(each.level, len(file.parents)) - 1]
    start = package / "__init__.py"
    if not start.is_file():
        return []
    return [("", start), *_walk_modules(each.name, [str(package)])]


@lru_cache(maxsize=None)
def _imports_of(file: Path) -> tuple[_Import, ...]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()  # importing it reports the error
    return tuple(_imports_in(tree, ()))


def _imports_in(node: ast.AST, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    return _READERS.get(type(node), _read_children)(node, fallback_for)


def _read_import(node: Any, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    for alias in node.names:
        yield _Import(alias.name, 0, node.lineno, fallback_for)


def _read_import_from(node: Any, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    for alias in node.names:
        name = ".".join(part for part in (node.module, alias.name) if part)
        yield _Import(name, node.level, node.lineno, fallback_for)


def _read_try(node: Any, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    tried = [each for inner in node.body for each in _imports_in(inner, fallback_for)]
    yield from tried
    for handler in node.handlers:  # for example "from .x import y", with "from x import y" as fallback
        yield from _imports_in(handler, (*fallback_for, *tried))
    for after in [*node.orelse, *node.finalbody]:
        yield from _imports_in(after, fallback_for)


def _read_if(node: Any, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    if not _is_never_true(node.test):
        yield from _read_children(node, fallback_for)
        return
    for other in node.orelse:
        yield from _imports_in(other, fallback_for)


def _read_children(node: ast.AST, fallback_for: tuple[_Import, ...]) -> Iterator[_Import]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # expressions contain no imports
            yield from _imports_in(child, fallback_for)


_READERS = {ast.Import: _read_import, ast.ImportFrom: _read_import_from, ast.Try: _read_try, ast.If: _read_if}


def _is_never_true(test: ast.expr) -> bool:
    """Return whether a condition is false when the module is imported, such as ``TYPE_CHECKING`` or the
    ``__main__`` guard."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        names = [each.id for each in (test.left, *test.comparators) if isinstance(each, ast.Name)]
        return names == ["__name__"]
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
