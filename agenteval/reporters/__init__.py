"""A finished report and its verdict as text: for people, for CI systems, for programs.

Each format has a function ``render(report, decision, options) -> str``, which is pure: the caller owns
paths, files, the console and the exit code. Text that an agent, a tool or a model wrote goes through
``agenteval.core.safe_text`` on its way out. What several formats say is in ``agenteval.reporters.words``.

To add one: its module here, an entry in ``REPORTERS``, its test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.core.registry import Registry, load_target


@dataclass(frozen=True)
class Reporter:
    """One format. Functions are named as ``module:function``, to be imported when they are needed."""

    render: Callable[..., str] | str
    """``render(report, decision, options) -> str``, pure."""
    comparison: str = ""
    """The same of two runs that ``diff`` compares; empty: it shows none."""
    file: str = ""
    """Its file in the run's folder, where the author names no other; empty: the screen."""
    form: Literal["text", "json", "xml"] = "text"
    """What a secret is masked in, so that it stays well formed."""
    shows: Literal["all", "failed", "few"] = "all"
    """Whose conversations it shows: of all samples, of those that failed, or of a few of these. ``score``
    keeps no others until the reports are written."""
    step_summary: str = ""
    """``render`` of what is added to the summary of a step of GitHub Actions; empty: nothing."""

    @property
    def function(self) -> Callable[..., str]:
        found: Callable[..., str] = load_target(self.render) if isinstance(self.render, str) else self.render
        return found


def _to_reporter(found: Any) -> Reporter:
    """A reporter, or its function alone."""
    if isinstance(found, Reporter):
        return found
    if not callable(found):
        raise TypeError("it is not a function render(report, decision, options)")
    return Reporter(found)


REPORTERS: Registry[Reporter] = Registry(
    "reporter",
    "agenteval.reporters",
    {
        "terminal": Reporter(
            "agenteval.reporters.terminal.screen:render",
            comparison="agenteval.reporters.terminal.comparison:render",
            shows="few",
        ),
        "json": Reporter(
            "agenteval.reporters.results.document:render",
            comparison="agenteval.reporters.results.comparison:render",
            file="results.json",
            form="json",
        ),
        "junit": Reporter("agenteval.reporters.junit:render", file="junit.xml", form="xml", shows="failed"),
        "github": Reporter(
            "agenteval.reporters.github:render",
            step_summary="agenteval.reporters.github:step_summary",
            shows="few",
        ),
        "markdown": Reporter(
            "agenteval.reporters.markdown.document:render",
            comparison="agenteval.reporters.markdown.comparison:render",
            file="report.md",
            shows="failed",
        ),
        "comment": Reporter(
            "agenteval.reporters.markdown.pull_request:render", file="comment.md", shows="failed"
        ),
    },
    _to_reporter,
)
