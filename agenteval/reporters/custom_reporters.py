"""Load reporters that are not built in: those that the author wrote, specified as ``FILE.py:Class`` or
``package.module:Class``, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agenteval.agentside.targets.faults import contain_exits, describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch, is_async
from agenteval.conversation.user_code import import_target
from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.safe_text import neutralize_workflow_commands
from agenteval.reporters import REPORTERS, RenderFunction, Reporter, load_function
from agenteval.reporters.options import ReportOptions

if TYPE_CHECKING:
    from agenteval.verdict.report import Report

_METHOD = "define it as `def render(self, sections, options)`"
_FUNCTION = "define it as `def NAME(sections, options)`"


class RenderError(AuthorError):
    """Raised when a reporter that is not built in raises an exception or does not return text."""


def is_custom_reporter(name: str) -> bool:
    """Check whether a reporter is specified as ``FILE.py:Class`` or ``package.module:Class``."""
    return ":" in name


def find_reporter(name: str, base: str, place: Place | None = None) -> Reporter:
    """Return the reporter with this name, or the author's reporter that the name specifies. File paths are
    relative to the folder ``base``. Raise ``AuthorError`` if there is no such reporter. The functions of a
    reporter that is not built in raise ``RenderError`` for any failure."""
    if is_custom_reporter(name):
        return load_custom_reporter(name, base, place)
    found = REPORTERS.get(name)
    return found if name in REPORTERS.built_in else _with_errors_contained(name, found)


def _with_errors_contained(name: str, reporter: Reporter) -> Reporter:
    def contained(function: RenderFunction) -> RenderFunction:
        return partial(_call, name, function) if function else ""

    return replace(
        reporter,
        render=contained(reporter.render),
        comparison=contained(reporter.comparison),
        history=contained(reporter.history),
        step_summary=contained(reporter.step_summary),
    )


def load_custom_reporter(target: str, base: str, place: Place | None = None) -> Reporter:
    """Load an author's reporter: a class with the method ``render(sections, options)``, which is instantiated
    without arguments, an object with this method, or a function ``render(sections, options)``. Raise
    ``AuthorError`` if it cannot be loaded or called."""
    found = import_target(target, base, what="reporter", place=place)
    try:
        with contain_exits():
            instance = found() if isinstance(found, type) else found
            render: Any = getattr(instance, "render", None if isinstance(found, type) else found)
    except Exception as error:
        what = f"the reporter '{target}' cannot be created: {describe_error(error)}"
        raise AuthorError(Problem(what, "make its class callable without arguments", place)) from error
    if problem := _find_problem(render, found):
        raise AuthorError(Problem(f"the reporter '{target}' {problem[0]}", problem[1], place))
    return Reporter(partial(_render, target, render))


def _find_problem(render: Any, found: Any) -> tuple[str, str] | None:
    """Return what is wrong with a reporter, and the remedy."""
    if not callable(render):
        kind = "a class" if isinstance(found, type) else f"of the type {type(found).__name__}"
        return f"is {kind} without a method `render`", _METHOD
    if is_async(render):
        return "has an async `render`", "define `render` without `async`"
    if shape := find_signature_mismatch(render, 2):
        return f"cannot be called with the sections and the options: {shape}", (
            _FUNCTION if render is found else _METHOD
        )
    return None


def _render(
    target: str, render: Callable[..., Any], report: Report, decision: Decision, options: ReportOptions
) -> str:
    """Call the author's reporter and return its text, in which no line is a workflow command, because the
    text may quote an agent."""
    from agenteval.reporters.sections.report_sections import make_report_sections
    from agenteval.reporters.words.facts import Facts

    sections = make_report_sections(Facts(report, decision), options.root)
    return neutralize_workflow_commands(_call(target, render, sections, options))


def _call(name: str, function: RenderFunction, *arguments: Any) -> str:
    """Call a function of the reporter ``name`` and return its text. Raise ``RenderError`` if the function
    cannot be imported, raises an exception or does not return text."""
    try:
        with contain_exits():
            text: Any = load_function(function)(*arguments)
    except Exception as error:
        raise RenderError(Problem(f"no report by '{name}': it raised {describe_error(error)}")) from error
    if not isinstance(text, str):
        what = f"no report by '{name}': it returned a value of the type {type(text).__name__}"
        raise RenderError(Problem(what, "return the report as a string"))
    return text
