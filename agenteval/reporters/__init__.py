"""Reporters: render a finished report and its verdict as text for people, CI systems and programs.

Each output format has a function ``render(report, decision, options) -> str``. The function is pure; its
caller is responsible for paths, files, the console and the exit code. Text written by an agent, a tool or a
model passes through ``agenteval.core.safe_text`` before it is printed. Wording that several formats share is
in ``agenteval.reporters.words``.

To add a format, write a module here, an entry in ``REPORTERS`` and a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agenteval.core.registry import Registry, load_target

if TYPE_CHECKING:
    from agenteval.core.decision import Decision
    from agenteval.reporters.options import ReportOptions
    from agenteval.verdict.report import Report

RenderFunction: TypeAlias = Callable[..., Any] | str
"""A function that returns a report, or the place from which it is imported (``module:function``)."""


@dataclass(frozen=True)
class Reporter:
    """A report format (the reporter interface). Its functions are specified as ``module:function`` and are
    imported when they are first needed."""

    render: RenderFunction
    """The pure function ``render(report, decision, options) -> str``."""
    stream: RenderFunction = ""
    """The function ``stream(report, decision, options, clean) -> Iterator[str]`` that yields the same text
    piece by piece, for a format that shows everything; ``clean`` masks a piece. Empty if there is none."""
    comparison: RenderFunction = ""
    """The function with which ``diff`` renders the comparison of two runs; empty if the format does not
    support comparisons."""
    history: RenderFunction = ""
    """The pure function ``render(history, options) -> str`` with which ``report --history`` renders the
    history of a suite; empty if the format does not support histories."""
    file: str = ""
    """The default file name in the run's folder; empty if the report is printed to the screen."""
    form: Literal["text", "json", "xml", "csv", "html"] = "text"
    """The syntax of the output, which is needed to keep the output well formed when a secret is masked. A
    file of the form ``csv`` begins with a byte order mark."""
    step_summary: RenderFunction = ""
    """The ``render`` function whose output is appended to the GitHub Actions step summary; empty if the
    format has no step summary."""

    @property
    def function(self) -> Callable[..., str]:
        return load_function(self.render)


def load_function(render: RenderFunction) -> Callable[..., str]:
    """Import a function that is specified as ``module:function``."""
    found: Callable[..., str] = load_target(render) if isinstance(render, str) else render
    return found


def _to_reporter(found: Any) -> Reporter:
    """Return the reporter provided by a plugin. If the plugin provides a function, wrap the function in a
    ``Reporter``."""
    if isinstance(found, Reporter):
        return replace(found, render=_with_texts(found.render))
    if not callable(found):
        raise TypeError("it is not a function render(report, decision, options)")
    return Reporter(_with_texts(found))


def _with_texts(render: RenderFunction) -> RenderFunction:
    """Wrap the function of a plugin. It gets a report with all texts in memory, as it may look anywhere."""

    def render_with_texts(report: Report, decision: Decision, options: ReportOptions) -> str:
        return load_function(render)(report.in_full, decision, options)

    return render_with_texts


REPORTERS: Registry[Reporter] = Registry(
    "reporter",
    "agenteval.reporters",
    {
        "terminal": Reporter(
            "agenteval.reporters.terminal.screen:render",
            comparison="agenteval.reporters.terminal.comparison:render",
            history="agenteval.reporters.terminal.history:render",
        ),
        "json": Reporter(
            "agenteval.reporters.results.document:render",
            stream="agenteval.reporters.results.document:stream",
            comparison="agenteval.reporters.results.comparison:render",
            history="agenteval.reporters.results.history:render",
            file="results.json",
            form="json",
        ),
        "csv": Reporter("agenteval.reporters.results.samples_csv:render", file="samples.csv", form="csv"),
        "junit": Reporter("agenteval.reporters.junit:render", file="junit.xml", form="xml"),
        "github": Reporter(
            "agenteval.reporters.github:render",
            step_summary="agenteval.reporters.github:step_summary",
        ),
        "markdown": Reporter(
            "agenteval.reporters.markdown.document:render",
            comparison="agenteval.reporters.markdown.comparison:render",
            history="agenteval.reporters.markdown.history:render",
            file="report.md",
        ),
        "html": Reporter(
            "agenteval.reporters.html.document:render",
            comparison="agenteval.reporters.html.comparison:render",
            history="agenteval.reporters.html.history:render",
            file="report.html",
            form="html",
        ),
        "comment": Reporter("agenteval.reporters.markdown.pull_request:render", file="comment.md"),
    },
    _to_reporter,
)
