"""What may be asked of any reporter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Detail: TypeAlias = Literal["quiet", "usual", "verbose"]
"""How much the screen shows: what did not pass and the verdict; that and why; all of it."""


@dataclass(frozen=True)
class ReportOptions:
    """``verbose``: show more of what is cut by default; ``quiet``: only what did not pass, and the verdict.
    ``width``: columns of the terminal. ``color``: whether styles may be used. ``journal``: path of the run's
    journal, to be named in the report (empty: not named). ``root``: the folder that shown paths start at (for
    GitHub: the repository's root). ``run``: what commands call the run; empty: it is the latest."""

    verbose: bool = False
    quiet: bool = False
    width: int = 100
    color: bool = False
    journal: str = ""
    root: str = "."
    run: str = ""
