"""Regular expressions that are compiled when they are first used.

The detectors have some four hundred, of which a log needs a third: compiling all took a sixth of what a
short command takes.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile`` gives, made at its first use; a mistake in it is raised only then."""
    return cast(re.Pattern[AnyStr], Expression(pattern, flags))


class Expression:
    """Stands in for a compiled expression, whose methods it takes over."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)
