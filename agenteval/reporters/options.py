"""What may be asked of any reporter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportOptions:
    """``verbose``: show more of what is cut by default. ``width``: columns of the terminal.
    ``color``: whether styles may be used. ``journal``: path of the run's journal, to be named in the
    report (empty: not named). ``root``: the folder that shown paths start at (for GitHub: the
    repository's root)."""

    verbose: bool = False
    width: int = 100
    color: bool = False
    journal: str = ""
    root: str = "."
