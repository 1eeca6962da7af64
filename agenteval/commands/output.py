"""Where reports go. Reporters give text; files, streams and the terminal's size are known here."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from agenteval import wiring
from agenteval.config import Config, ReporterChoice, parse_reporter
from agenteval.decision import Decision
from agenteval.errors import AuthorError, Problem
from agenteval.report import Report
from agenteval.reporters.options import ReportOptions

_FILES = {"json": "results.json", "junit": "junit.xml", "markdown": "report.md", "html": "report.html"}


def chosen_reporters(texts: Iterable[str]) -> tuple[ReporterChoice, ...]:
    """``--report NAME[=PATH]``, each. Raises ``AuthorError`` for a name that nobody registered, before
    anything has been run."""
    choices = tuple(parse_reporter(text) for text in texts)
    for choice in choices:
        wiring.reporter(choice.name)
    return choices


def check_targets(config: Config, asked: Sequence[ReporterChoice]) -> None:
    """Refuse a path that no report can be written to before a run is paid for."""
    problems = []
    for choice, base in _targets(config, asked):
        if choice.path and choice.path != "-":
            path = base / choice.path
            above = next(folder for folder in path.parents if folder.exists())
            if path.is_dir():
                problems.append(
                    Problem(f"the {choice.name} report cannot be written: {choice.path} is a folder")
                )
            elif not above.is_dir() or not os.access(above, os.W_OK):
                what = f"the {choice.name} report cannot be written to {choice.path}: {above} is "
                what += "not writable" if above.is_dir() else "a file"
                problems.append(Problem(what))
    if problems:
        raise AuthorError(*problems)


def _targets(config: Config, asked: Sequence[ReporterChoice]) -> list[tuple[ReporterChoice, Path]]:
    """Each reporter with the folder where its path starts; the same one once."""
    here = [(choice, Path(config.root)) for choice in config.reporters]
    return list(dict.fromkeys([*here, *((choice, Path.cwd()) for choice in asked)]))


def write_reports(
    report: Report,
    decision: Decision,
    config: Config,
    asked: Sequence[ReporterChoice],
    *,
    folder: Path,
    verbose: bool,
) -> bool:
    """Write every report; those of files first, so that the verdict is the last thing on the screen.
    False if one could not be written (told on stderr)."""
    ok = True
    for choice, base in sorted(_targets(config, asked), key=lambda pair: pair[0].name == "terminal"):
        try:
            _write(choice, base, report, decision, folder=folder, verbose=verbose)
        except OSError as error:
            ok = False
            target = choice.path or choice.name
            sys.stderr.write(f"agenteval: cannot write the {choice.name} report to {target}: {error}\n")
    return ok


def _write(
    choice: ReporterChoice, base: Path, report: Report, decision: Decision, *, folder: Path, verbose: bool
) -> None:
    options = _options(choice, folder=folder, verbose=verbose)
    text = wiring.reporter(choice.name)(report, decision, options)
    if choice.name == "github":
        _append_step_summary(report, decision, options)
    if choice.path == "-" or (choice.path is None and choice.name not in _FILES):
        _print(text)
        return
    path = base / choice.path if choice.path else folder / _FILES[choice.name]
    _replace(path, text)
    sys.stderr.write(f"{choice.name} report: {_shown(path)}\n")


def _options(choice: ReporterChoice, *, folder: Path, verbose: bool) -> ReportOptions:
    to_screen = choice.name == "terminal" and choice.path is None
    return ReportOptions(
        verbose=verbose,
        width=_width() if to_screen else 100,
        color=to_screen and _wants_color(),
        journal=_shown(folder / "events.jsonl"),
        root=os.environ.get("GITHUB_WORKSPACE") or str(Path.cwd()),
    )


def _width() -> int:
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return max(40, shutil.get_terminal_size((100, 24)).columns)
    return 110


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return sys.stdout.isatty() or os.environ.get("FORCE_COLOR", "") not in ("", "0")


def _print(text: str) -> None:
    from agenteval.reporters.terminal import for_encoding

    if text:
        text = for_encoding(text, sys.stdout.encoding or "utf-8")
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


def _replace(path: Path, text: str) -> None:
    """Write to a file beside and move it there: a reader never meets half a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n", errors="replace") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _append_step_summary(report: Report, decision: Decision, options: ReportOptions) -> None:
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        from agenteval.reporters.github_actions import step_summary

        with open(target, "a", encoding="utf-8", newline="\n", errors="replace") as file:
            file.write(step_summary(report, decision, options))


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
