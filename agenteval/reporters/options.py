"""Options that every reporter accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agenteval.files.judge_request_log import StoredRequests

Detail: TypeAlias = Literal["quiet", "usual", "verbose"]
"""The level of detail on the screen. ``quiet`` shows only the failures and the verdict, ``usual`` also shows
the reasons, and ``verbose`` shows everything."""


@dataclass(frozen=True)
class ReportOptions:
    """The options of a report, which are the same for every format."""

    verbose: bool = False
    """True to show everything that is shortened or omitted by default."""
    quiet: bool = False
    """True to show only the verdict and everything that did not pass."""
    width: int = 100
    """The width of the terminal in columns."""
    color: bool = False
    """True if colors and other styles may be used."""
    journal: str = ""
    """The path of the run's journal to print in the report; empty to omit the path."""
    root: str = "."
    """The folder that displayed paths are relative to. For GitHub, this is the root of the repository."""
    run: str = ""
    """The name of the run used in suggested commands; empty for the latest run."""
    judge_requests: Callable[[], StoredRequests | None] | None = None
    """A function that reads the requests to judges that the run stored, for a format that shows them."""
