"""Options that every reporter accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Detail: TypeAlias = Literal["quiet", "usual", "verbose"]
"""How much the screen shows: failures and the verdict; also the reasons; everything."""


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report, the same for every format."""

    verbose: bool = False
    """True to show what is shortened by default."""
    quiet: bool = False
    """True to show only what did not pass and the verdict."""
    width: int = 100
    """The width of the terminal in columns."""
    color: bool = False
    """True if styles may be used."""
    journal: str = ""
    """The path of the run's journal, to be named in the report; empty to leave it out."""
    root: str = "."
    """The folder that shown paths are relative to; for GitHub, the root of the repository."""
    run: str = ""
    """The name of the run in suggested commands; empty for the latest run."""
