"""Checks the names and docstrings of the package: what ruff has no rule for. Prints each violation as
``file:line: message`` and exits with 1 if there is one.

- No identifier contains a word of ``FORBIDDEN_WORDS``. They say that something was reported, not what it is.
- No class name is used twice, so that one search finds it.
- The docstring of a function begins with a verb. Ruff's D401 knows verbs in another form ("Returns"); this
  check knows the beginnings that are no verb ("Whether", "Of")."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

FORBIDDEN_WORDS = frozenset(
    _WORD.findall("told tell tells telling said say says saying lack lacks lacking stakes beside besides")
)

MIRRORED = frozenset({"Tool", "ToolCall", "ToolError"})
"""Classes of ``agentside`` with a counterpart of the same name in the rest of the package, which the
interpreters it runs in do not have."""

NO_VERBS = frozenset(
    _WORD.findall(
        """a all an any as at both by each every for from her his how if in it its no nobody none not nothing
        of on one only over some that the their them these they this those two what whatever when where
        whether which who whose why with within without"""
    )
)

_PROPERTIES = re.compile(r"property|\.setter")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    found = sorted(violations(ROOT / "agenteval"))
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


def violations(package: Path) -> Iterator[str]:
    classes: dict[str, list[str]] = defaultdict(list)
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = path.relative_to(package.parent).as_posix()
        for line, name in forbidden_names(tree):
            yield f"{where}:{line}: '{name}' contains a forbidden word; name what it is"
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{where}:{node.lineno}")
            if isinstance(node, Function) and (word := wrong_beginning(node)):
                yield f"{where}:{node.lineno}: the docstring of '{node.name}' begins with '{word}', no verb"
    for name, places in classes.items():
        for place in places[1:] if name not in MIRRORED else ():
            yield f"{place}: there is another class '{name}': {places[0]}"


def forbidden_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.keyword(arg=str(name)) | ast.ExceptHandler(name=str(name)):
                pass
            case _:
                continue
        if FORBIDDEN_WORDS.intersection(word.lower() for word in _WORD.findall(name)):
            yield node.lineno, name


def wrong_beginning(function: Function) -> str | None:
    """Return the first word of the docstring if it is no verb; properties are described by a noun."""
    text = ast.get_docstring(function)
    if not text or any(_PROPERTIES.search(ast.unparse(each)) for each in function.decorator_list):
        return None
    word = text.split()[0]
    return word if word.strip(".,:;").lower() in NO_VERBS or word[0] in "`\"'(“" else None


if __name__ == "__main__":
    sys.exit(main())
