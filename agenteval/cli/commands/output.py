"""Writes reports to their destinations. Reporters only return text; this module handles files, streams and
the terminal size."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from agenteval.cli.safe_output import Form, append_to_file, clean_output, print_err, print_out
from agenteval.core.config import Config, ReporterChoice, parse_reporter
from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.safe_text import for_encoding
from agenteval.files.judge_request_log import read_stored_requests
from agenteval.reporters import REPORTERS, Reporter, load_function
from agenteval.reporters.custom_reporters import RenderError, find_reporter, is_custom_reporter
from agenteval.reporters.options import Detail, ReportOptions
from agenteval.verdict.report import Report


def parse_reporters(texts: Iterable[str]) -> tuple[ReporterChoice, ...]:
    """Parse each ``--report NAME[=PATH]`` option. Raise ``AuthorError`` for an unknown reporter before the
    run starts. The author's own reporters are loaded later, once their folder is known."""
    choices = tuple(parse_reporter(text) for text in texts)
    for choice in choices:
        if not is_custom_reporter(choice.name):
            REPORTERS.get(choice.name)
    return choices


RunSetView: TypeAlias = Literal["comparison", "history"]
"""The functions of a reporter that render something other than a run."""


def parse_reporters_with(view: RunSetView, texts: Sequence[str]) -> tuple[ReporterChoice, ...]:
    """Parse each ``--report NAME[=PATH]`` option of a command that shows several runs. Without one, return
    the terminal report. Raise ``AuthorError`` for a reporter that does not support this."""
    choices = tuple(map(parse_reporter, texts or ("terminal",)))
    for choice in choices:
        if choice.name not in REPORTERS or not getattr(REPORTERS.get(choice.name), view):
            known = (name for name in REPORTERS if getattr(REPORTERS.get(name), view))
            what = f"unknown {view} report '{choice.name}'"
            raise AuthorError(Problem(what, did_you_mean(choice.name, known)))
    return choices


class ReportTarget(NamedTuple):
    """A reporter and its output file."""

    choice: ReporterChoice
    path: Path | None
    """The output file. If it is None, the report is written to the screen or to the reporter's default file
    in the run's folder."""
    reporter: Reporter


def resolve_targets(config: Config, requested: Sequence[ReporterChoice]) -> tuple[ReportTarget, ...]:
    """Return the distinct reporters, each with its output file. Paths in the configuration are relative to
    the configuration's folder; paths on the command line are relative to the working directory. Paths are
    resolved before the run, because an agent may change the working directory. Raise ``AuthorError`` if an
    author's reporter cannot be loaded or a report cannot be written to its path, so that such errors are
    found before a run costs money."""
    reporters = load_reporters(config, requested)
    choices = [(choice, Path(config.root)) for choice in config.reporters]
    choices += [(choice, Path.cwd()) for choice in requested]
    targets = [
        ReportTarget(
            choice, base / choice.path if choice.path and choice.path != "-" else None, reporters[choice.name]
        )
        for choice, base in choices
    ]
    problems = []
    for choice, path, _ in targets:
        try:
            problems += _path_problems(choice, path) if path else []
        except OSError as error:
            what = f"the {choice.name} report cannot be written: {error.strerror}"
            problems.append(Problem(what))
    once = tuple(dict.fromkeys(targets))
    if problems := problems or list(_duplicate_paths(once)):
        raise AuthorError(*problems)
    return once


def load_reporters(config: Config, requested: Sequence[ReporterChoice] = ()) -> dict[str, Reporter]:
    """Return the reporters of the configuration and of the command line, keyed by name. The author's own
    reporters are relative to the configuration's folder. Raise ``AuthorError`` with all problems if a
    reporter is unknown or cannot be loaded."""
    places = {choice.name: Place("--report") for choice in requested}
    places |= {
        choice.name: config.place(f"reporters.{index}") for index, choice in enumerate(config.reporters)
    }
    found: dict[str, Reporter] = {}
    problems: list[Problem] = []
    for name, place in places.items():
        try:
            with redirect_stdout(sys.stderr):
                found[name] = find_reporter(name, os.path.abspath(config.root), place)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*problems)
    return found


def _duplicate_paths(targets: Iterable[ReportTarget]) -> Iterator[Problem]:
    """Yield a problem for each pair of reports that would overwrite each other. A device is not a problem:
    several reports may be written to it."""
    first: dict[str, ReporterChoice] = {}
    for choice, path, _ in targets:
        if path is None or (path.exists() and not path.is_file()):
            continue
        other = first.setdefault(os.path.realpath(path), choice)
        if other.name != choice.name:
            what = f"the {other.name} and the {choice.name} report would both be written to {choice.path}"
            yield Problem(what, "use a different file for each")


def refuse_overwriting_inputs(targets: Iterable[ReportTarget], read: Iterable[Path]) -> None:
    """Raise ``AuthorError`` if a report would overwrite one of the input files in ``read``."""
    known = {os.path.realpath(path) for path in read}
    overwritten = [choice for choice, path, _ in targets if path and os.path.realpath(path) in known]
    if overwritten:
        raise AuthorError(
            *(
                Problem(
                    f"the {choice.name} report would overwrite {choice.path}, which is an input of the run",
                    _ELSEWHERE,
                )
                for choice in overwritten
            )
        )


_ELSEWHERE = "write it to another file"


def _path_problems(choice: ReporterChoice, path: Path) -> list[Problem]:
    if path.is_dir():
        return [Problem(f"the {choice.name} report cannot be written: {choice.path} is a folder")]
    above = next(folder for folder in path.parents if folder.exists())
    if above.is_dir() and os.access(above, os.W_OK) and len(os.fsencode(path.name)) <= 255:
        return []
    why = "its name is too long"
    if not above.is_dir():
        why = f"{above} is a file"
    elif not os.access(above, os.W_OK):
        why = f"{above} is not writable"
    return [Problem(f"the {choice.name} report cannot be written to {str(choice.path)[:80]}: {why}")]


def write_reports(
    report: Report,
    decision: Decision,
    targets: Sequence[ReportTarget],
    *,
    folder: Path,
    detail: Detail,
    name: str = "",
    opens: bool = False,
) -> int:
    """Write all reports and return the exit code. The terminal report is written last, so that the verdict is
    the last output on the screen. If a report cannot be rendered or written, the error is reported on stderr
    and the exit code is never 0. If ``opens`` is True, the HTML report is opened in a browser."""
    pages: list[Path | None] = []
    for target in sorted(targets, key=lambda target: target.choice.name == "terminal"):
        choice = target.choice
        try:
            options = make_report_options(choice, folder=folder, detail=detail, name=name)
            _write(target, report, decision, folder=folder, options=options)
            pages += [_target_path(target, folder)] if choice.name == "html" else []
        except RenderError as error:
            print_err(f"agenteval: {error}")
            decision = replace(decision, exit_code=decision.exit_code or _UNWRITTEN)
        except OSError as error:
            reason = _error_text(error)
            where = target.path or "stdout"
            print_err(f"agenteval: cannot write the {choice.name} report to {where}: {reason}")
            decision = replace(decision, exit_code=decision.exit_code or _UNWRITTEN)
    if opens and pages:
        _open_in_browser(next(filter(None, reversed(pages)), None))
    return decision.exit_code


def _open_in_browser(page: Path | None) -> None:
    """Open a page in the browser (``BROWSER``, or the default of the system). The verdict does not depend on
    whether that is possible. What the browser prints is no result."""
    import webbrowser

    if page is None:
        print_err("--open opens nothing, because the html report was written to stdout")
        return
    is_opened = False
    with suppress(OSError, ValueError, webbrowser.Error), _stdout_to_stderr():
        is_opened = webbrowser.open(page.resolve().as_uri())
    if not is_opened:
        print_err(f"no browser could be started; open {_display_path(page)}")


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Redirect the output of processes that are started to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def write_rendered(
    targets: Iterable[ReportTarget], view: RunSetView, value: object, *, detail: Detail = "usual"
) -> bool:
    """Render a comparison or a history with each reporter, and write it; the terminal report comes last.
    Return False if a report could not be rendered or written, which is reported on stderr."""
    is_written = True
    for target in sorted(targets, key=lambda target: target.choice.name == "terminal"):
        choice, path, reporter = target
        options = make_report_options(choice, folder=Path(), detail=detail)
        try:
            with redirect_stdout(sys.stderr):  # what a reporter of another package prints is no result
                text = load_function(getattr(reporter, view))(value, options)
            write_report_text(choice.name, text, path, reporter.form)
        except RenderError as error:
            print_err(f"agenteval: {error}")
            is_written = False
        except OSError as error:
            print_err(f"agenteval: cannot write the {choice.name} report to {path or 'stdout'}: {error}")
            is_written = False
    return is_written


_UNWRITTEN = 3


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)


def _write(
    target: ReportTarget, report: Report, decision: Decision, *, folder: Path, options: ReportOptions
) -> None:
    choice, _, reporter = target
    path = _target_path(target, folder)
    if reporter.stream and path:
        clean = partial(clean_output, form=reporter.form)
        write_file(path, load_function(reporter.stream)(report, decision, options, clean))
        print_err(f"{choice.name} report: {_display_path(path)}")
        return
    with redirect_stdout(sys.stderr):  # what an author's reporter prints is no result
        text = reporter.function(report, decision, options)
    if reporter.step_summary:
        _append_step_summary(load_function(reporter.step_summary)(report, decision, options))
    write_report_text(choice.name, text, path, reporter.form)


def _target_path(target: ReportTarget, folder: Path) -> Path | None:
    """Return the file that a report is written to, or None for the screen."""
    in_folder = target.reporter.file and target.choice.path is None
    return target.path or (folder / target.reporter.file if in_folder else None)


def write_report_text(name: str, text: str, path: Path | None, form: Form | None = None) -> None:
    """Write a report to its file and print the file name to stderr, or print the report to stdout if ``path``
    is None. ``form`` is that of the reporter unless it is given. Raise ``OSError`` if the file cannot be
    written."""
    form = form or REPORTERS.get(name).form
    if path is None:
        print_out(text, form, colors=_wants_color())
        return
    cleaned = clean_output(text, form)
    # Excel takes a CSV file without a byte order mark for one in the encoding of the system.
    write_file(path, [cleaned], encoding="utf-8-sig" if form == "csv" else "utf-8")
    print_err(f"{name} report: {_display_path(path)}{_size_note(cleaned, form)}")


_LARGE_PAGE = 30_000_000
"""The number of characters from which a browser opens a page slowly."""


def _size_note(text: str, form: Form) -> str:
    if form != "html" or len(text) <= _LARGE_PAGE:
        return ""
    return f" ({len(text) / 1e6:,.0f} MB, which a browser opens slowly; a selection of scenarios is smaller)"


def make_report_options(
    choice: ReporterChoice, *, folder: Path, detail: Detail = "usual", name: str = ""
) -> ReportOptions:
    """Return the report options for the terminal or the chosen file. ``folder`` is the folder of the run.
    ``name`` is the run's name for use in suggested commands; it is empty for the latest run."""
    to_screen = choice.name == "terminal" and choice.path is None
    return ReportOptions(
        verbose=detail == "verbose",
        quiet=to_screen and detail == "quiet",
        width=_width() if to_screen else 100,
        color=to_screen and _wants_color(),
        journal=_display_path(folder / "events.jsonl"),
        root=os.environ.get("GITHUB_WORKSPACE") or str(Path.cwd()),
        run=name,
        judge_requests=partial(read_stored_requests, folder),
    )


def _width() -> int:
    return _columns() - (0 if for_encoding("…", sys.stdout.encoding) == "…" else _LONGER)


_LONGER = 2
"""The number of columns by which a line grows if an ellipsis is printed as three dots."""


def _columns() -> int:
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return max(40, shutil.get_terminal_size((100, 24)).columns)
    return 110


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def print_paged(text: str) -> None:
    """Print text for a human reader, using a pager (``PAGER``, or ``less`` if installed) if the text does not
    fit on one screen."""
    command = shlex.split(os.environ.get("PAGER", "less"))
    fits = text.count("\n") < shutil.get_terminal_size((80, 24)).lines
    if fits or not (sys.stdout.isatty() and sys.stdin.isatty()) or not (command and shutil.which(command[0])):
        print_out(text, colors=_wants_color())
        return
    text = clean_output(text, colors=_wants_color())
    # As git does: keep colours, do not clear the screen, do not stop if the text fits.
    env = {**os.environ, "LESS": os.environ.get("LESS", "FRX")}
    before = signal.signal(signal.SIGINT, lambda *_: None)  # the pager handles Ctrl-C
    try:
        with suppress(BrokenPipeError):
            subprocess.run(command, input=text, text=True, encoding="utf-8", errors="replace", env=env)
    finally:
        signal.signal(signal.SIGINT, before)


def write_file(path: Path, pieces: Iterable[str], *, encoding: str = "utf-8") -> None:
    """Write a file atomically: write to a temporary file and move it into place, so that a reader never sees
    an incomplete report. The file may contain conversations, so other users cannot read it unless they could
    read the file that it replaces. A path that is not a regular file, such as a device or a pipe, is written
    to directly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with path.open("w", encoding=encoding, newline="\n", errors="replace") as there:
            there.writelines(pieces)
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding=encoding, newline="\n", errors="replace") as file:
            file.writelines(pieces)
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _append_step_summary(text: str) -> None:
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        append_to_file(target, text)


def _display_path(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
