"""Where reports go: paths that are refused before anything runs, files, streams and the width of a screen."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands import output
from agenteval.cli.commands.output import (
    ReportTarget,
    make_report_options,
    parse_reporters,
    parse_reporters_with,
    print_paged,
    refuse_overwriting_inputs,
    resolve_targets,
    write_file,
    write_rendered,
    write_report_text,
    write_reports,
)
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.reporters import REPORTERS, Reporter
from agenteval.reporters.custom_reporters import RenderError
from agenteval.reporters.options import Detail, ReportOptions
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, PASS, report_of


def choice(name: str, path: str | None = None) -> ReporterChoice:
    return ReporterChoice(name=name, path=path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; that of the configuration is beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(folder)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def config_of(tmp_path: Path, *reporters: ReporterChoice) -> Config:
    return Config(root=str(tmp_path / "root"), reporters=reporters)


# ── which reports, and where ─────────────────────────────────────────────────────────────────────


def test_options_are_reporters() -> None:
    assert parse_reporters([]) == ()
    assert parse_reporters(["json", "junit=a.xml", "json=-"]) == (
        choice("json"),
        choice("junit", "a.xml"),
        choice("json", "-"),
    )
    with pytest.raises(AuthorError) as error:
        parse_reporters(["json", "jsno"])
    assert "jsno" in str(error.value)
    assert "json" in str(error.value)


def test_paths_are_of_the_configuration_or_of_the_working_directory(tmp_path: Path, here: Path) -> None:
    config = config_of(tmp_path, choice("terminal"), choice("json", "out/a.json"), choice("junit", "-"))
    found = resolve_targets(
        config, [choice("json", "a.json"), choice("markdown"), choice("json", "/dev/null")]
    )
    assert [(each.choice.name, each.path) for each in found] == [
        ("terminal", None),
        ("json", tmp_path / "root" / "out" / "a.json"),
        ("junit", None),
        ("json", here / "a.json"),
        ("markdown", None),
        ("json", Path("/dev/null")),
    ]


def test_each_report_is_written_once(tmp_path: Path, here: Path) -> None:
    config = config_of(tmp_path, choice("terminal"), choice("json", str(here / "a.json")))
    found = resolve_targets(
        config, [choice("terminal"), choice("json", str(here / "a.json")), choice("json")]
    )
    assert [(each.choice.name, each.path and each.path.name) for each in found] == [
        ("terminal", None),
        ("json", "a.json"),
        ("json", None),
    ]


def refused(tmp_path: Path, *requested: ReporterChoice, config: Config | None = None) -> list[str]:
    with pytest.raises(AuthorError) as error:
        resolve_targets(config or config_of(tmp_path), requested)
    return [problem.what for problem in error.value.problems]


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("folder", ["json", "folder"]),
        (".", ["json", "."]),
        ("file.txt/a.json", ["json", "file.txt is a file"]),
        ("file.txt/deep/a.json", ["json", "file.txt is a file"]),
        ("x" * 256, ["json", "too long"]),
        ("é" * 128, ["json", "too long"]),
    ],
)
def test_a_path_that_cannot_be_written(tmp_path: Path, here: Path, path: str, facts: list[str]) -> None:
    (here / "folder").mkdir()
    (here / "file.txt").write_text("")
    (what,) = refused(tmp_path, choice("json", path))
    for fact in facts:
        assert fact in what


@pytest.mark.parametrize("path", ["x" * 255, "new/deep/a.json", "file.txt"])
def test_a_path_that_can_be_written(tmp_path: Path, here: Path, path: str) -> None:
    (here / "file.txt").write_text("")
    assert resolve_targets(config_of(tmp_path), [choice("json", path)])[-1][1] == here / path


def test_a_folder_that_cannot_be_written(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == here and mode == os.W_OK))
    (what,) = refused(tmp_path, choice("json", "new/a.json"))
    assert f"{here} is not writable" in what


def test_all_paths_are_named_at_once(tmp_path: Path, here: Path) -> None:
    found = refused(tmp_path, choice("json", "."), choice("junit", "."), choice("markdown", "a.md"))
    assert [what.split()[1] for what in found] == ["json", "junit"]


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        (choice("json", "a"), choice("junit", "a"), True),
        (choice("json", "a"), choice("junit", "./new/../a"), True),
        (choice("json", "link"), choice("junit", "b"), True),
        (choice("json", "a"), choice("json", "./a"), False),
        (choice("json", "a"), choice("junit", "b"), False),
        (choice("json"), choice("junit"), False),
        (choice("json", "-"), choice("junit", "-"), False),
        (choice("json", "/dev/null"), choice("junit", "/dev/null"), False),
    ],
)
def test_two_reports_in_one_file(
    tmp_path: Path, here: Path, first: ReporterChoice, second: ReporterChoice, is_refused: bool
) -> None:
    (here / "b").touch()
    (here / "link").symlink_to(here / "b")
    if is_refused:
        (what,) = refused(tmp_path, first, second)
        assert "json" in what
        assert "junit" in what
    else:
        assert len(resolve_targets(config_of(tmp_path), [first, second])) >= 2


def test_no_input_is_overwritten(tmp_path: Path, here: Path) -> None:
    targets = resolve_targets(
        config_of(tmp_path), [choice("json", "a"), choice("junit", "b"), choice("markdown")]
    )
    refuse_overwriting_inputs(targets, [])
    refuse_overwriting_inputs(targets, [here / "c"])
    with pytest.raises(AuthorError) as error:
        refuse_overwriting_inputs(targets, iter([here / "c", here / "x" / ".." / "a", here / "b"]))
    assert [problem.what.split()[1] for problem in error.value.problems] == ["json", "junit"]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────

REPORT = report_of({"a": [PASS]})
FAILED = report_of({"a": [FAIL]})


def test_reports_are_written_and_the_screen_comes_last(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    requested = [choice("terminal"), choice("json"), choice("junit", "out/j.xml"), choice("markdown", "-")]
    targets = resolve_targets(config_of(tmp_path), requested)
    assert write_reports(REPORT, decide(REPORT), targets, folder=folder, detail="usual") == 0
    said = capsys.readouterr()
    assert (folder / "results.json").read_text().startswith("{")
    assert (here / "out" / "j.xml").read_text().startswith("<?xml")
    assert not (folder / "report.md").exists()
    assert said.out.index("# ") < said.out.rindex("PASSED")
    assert said.err.splitlines() == [
        f"json report: {folder / 'results.json'}",
        f"junit report: {Path('out', 'j.xml')}",
    ]


@pytest.mark.parametrize(("report", "code"), [(REPORT, 3), (FAILED, 1)])
def test_a_report_that_cannot_be_written_is_never_green(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str], report: Any, code: int
) -> None:
    targets = resolve_targets(Config(root=str(here), reporters=()), [choice("junit", "x"), choice("json")])
    (here / "x").mkdir()  # since then
    (here / "x" / "y").touch()
    assert write_reports(report, decide(report), targets, folder=here, detail="usual") == code
    assert "junit" in capsys.readouterr().err
    assert (here / "results.json").exists()


# ── comparisons and histories ────────────────────────────────────────────────────────────────────


def test_a_reporter_must_know_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: Any = REPORTERS.built_in
    monkeypatch.setitem(registered, "page", Reporter("m:f", history="m:g"))
    assert parse_reporters_with("comparison", ()) == (choice("terminal"),)
    chosen = parse_reporters_with("history", ["page=a.html", "json"])
    assert chosen == (choice("page", "a.html"), choice("json"))
    with pytest.raises(AuthorError) as error:
        parse_reporters_with("comparison", ["page"])
    assert "'page'" in str(error.value)
    assert "json" in str(error.value)


def rendered(here: Path, *functions: Any) -> bool:
    """Write the history ``"value"`` with each function to a file of its own."""
    targets = [
        ReportTarget(choice(f"r{n}", f"r{n}.txt"), here / f"r{n}.txt", Reporter("", history=function))
        for n, function in enumerate(functions)
    ]
    return write_rendered(targets, "history", "value", detail="verbose")


def test_what_is_shown_is_written_and_what_is_printed_is_no_result(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def render(value: str, options: ReportOptions) -> str:
        print("printed")
        return f"{value} {options.verbose}\n"

    assert rendered(here, render)
    assert (here / "r0.txt").read_text() == "value True\n"
    shown = capsys.readouterr()
    assert (shown.out, "printed" in shown.err, "r0.txt" in shown.err) == ("", True, True)


def test_one_that_fails_does_not_hide_the_others(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(value: str, options: ReportOptions) -> str:
        raise RenderError(Problem("no report by 'page'"))

    def write(value: str, options: ReportOptions) -> str:
        return "x"

    assert not rendered(here, fail, write)
    assert (here / "r1.txt").read_text() == "x"
    assert "no report by 'page'" in capsys.readouterr().err
    assert not rendered(here / "r1.txt", write)  # a file is no folder


@pytest.mark.parametrize(("report", "code"), [(REPORT, 0), (FAILED, 1)])
def test_the_exit_code_is_that_of_the_run(tmp_path: Path, here: Path, report: Any, code: int) -> None:
    assert write_reports(report, decide(report), (), folder=here, detail="usual") == code


@pytest.mark.parametrize("is_set", [True, False])
def test_the_summary_of_a_step(
    tmp_path: Path,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_set: bool,
) -> None:
    path = tmp_path / "summary.md"
    if is_set:
        path.write_text("before\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    for name in ("json", "github"):
        targets = resolve_targets(Config(root=str(here), reporters=()), [choice(name)])
        write_reports(REPORT, decide(REPORT), targets, folder=here, detail="usual")
    capsys.readouterr()
    assert path.exists() is is_set
    if is_set:
        text = path.read_text()
        assert text.startswith("before\n")
        assert len(text) > len("before\n")


def test_a_text_goes_to_stdout_or_to_a_file(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_report_text("json", '{"a": 1}\n', None)
    assert capsys.readouterr() == ('{"a": 1}\n', "")
    write_report_text("json", '{"a": 1}\n', here / "deep" / "a.json")
    assert (here / "deep" / "a.json").read_text() == '{"a": 1}\n'
    assert capsys.readouterr() == ("", f"json report: {Path('deep', 'a.json')}\n")


def test_a_csv_file_begins_with_a_mark_of_its_encoding_and_stdout_does_not(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_report_text("csv", '"é"\n', here / "a.csv")
    assert (here / "a.csv").read_bytes() == b"\xef\xbb\xbf" + '"é"\n'.encode()
    capsys.readouterr()
    write_report_text("csv", '"é"\n', None)
    assert capsys.readouterr().out == '"é"\n'


def test_a_file_is_replaced_at_once_and_kept_private(here: Path) -> None:
    path = here / "deep" / "a.txt"
    write_file(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    os.chmod(path, 0o640)
    write_file(path, "b\ud800")
    assert path.read_bytes() == b"b?"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_device_is_written_to(here: Path) -> None:
    write_file(Path(os.devnull), "a")
    assert not Path(os.devnull).is_file()


def test_what_fails_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a").write_text("before")

    def replace(*_: Any) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="full"):
        write_file(here / "a", "after")
    assert (os.listdir(here), (here / "a").read_text()) == (["a"], "before")


# ── in a browser ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was to open; there is one that opens them."""
    addresses: list[str] = []

    def open_page(url: str) -> bool:
        addresses.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return addresses


def open_reports(here: Path, *requested: ReporterChoice, report: Any = REPORT, opens: bool = True) -> int:
    targets = resolve_targets(Config(root=str(here), reporters=()), requested)
    return write_reports(report, decide(report), targets, folder=here / "run", detail="usual", opens=opens)


@pytest.mark.parametrize(
    ("requested", "page"),
    [
        ([choice("html")], "run/report.html"),
        ([choice("html", "a.html")], "a.html"),
        ([choice("html", "deep/a b#c?d.html"), choice("json")], "deep/a%20b%23c%3Fd.html"),
        ([choice("html", "a.html"), choice("html", "b.html")], "b.html"),
        ([choice("html", "a.html"), choice("html")], "run/report.html"),
        ([choice("terminal"), choice("html", "a.html"), choice("json", "a.json")], "a.html"),
    ],
)
def test_the_page_is_opened_where_it_was_written(
    here: Path, opened: list[str], requested: list[ReporterChoice], page: str
) -> None:
    assert open_reports(here, *requested) == 0
    assert opened == [f"{here.as_uri()}/{page}"]


@pytest.mark.parametrize(
    ("requested", "opens"),
    [([choice("html", "a.html")], False), ([choice("json", "a.json")], True), ([], True)],
)
def test_nothing_is_opened_unless_it_is_asked_for(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    opened: list[str],
    requested: list[ReporterChoice],
    opens: bool,
) -> None:
    assert open_reports(here, *requested, opens=opens) == 0
    assert opened == []
    assert "browser" not in capsys.readouterr().err


@pytest.mark.parametrize(("report", "code"), [(REPORT, 0), (FAILED, 1)])
def test_without_a_browser_the_path_is_named_and_the_verdict_stays(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    report: Any,
    code: int,
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert open_reports(here, choice("html", "deep/a.html"), report=report) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        f"html report: {Path('deep', 'a.html')}",
        f"no browser could be started; open {Path('deep', 'a.html')}",
    ]


@pytest.mark.parametrize("error", [OSError("x"), ValueError("No closing quotation"), webbrowser.Error("x")])
@pytest.mark.parametrize(("report", "code"), [(REPORT, 0), (FAILED, 1)])
def test_a_browser_that_cannot_be_asked_costs_no_verdict(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    report: Any,
    code: int,
) -> None:
    def fail(url: str) -> bool:
        raise error

    monkeypatch.setattr(webbrowser, "open", fail)
    assert open_reports(here, choice("html", "a.html"), report=report) == code
    assert capsys.readouterr().err.splitlines()[1:] == ["no browser could be started; open a.html"]


def test_what_a_browser_prints_is_no_result(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def print_and_fail(url: str) -> bool:
        os.write(1, url.encode())  # as a process does
        raise OSError("after it had printed")

    monkeypatch.setattr(webbrowser, "open", print_and_fail)
    open_reports(here, choice("html", "a.html"), choice("json", "-"))
    os.write(1, b"later")
    said = capfd.readouterr()
    assert (here / "a.html").as_uri() in said.err
    assert "file://" not in said.out
    assert said.out.startswith("{")
    assert said.out.endswith("}\nlater")


def test_a_page_on_the_screen_cannot_be_opened_which_is_said(
    here: Path, capsys: pytest.CaptureFixture[str], opened: list[str]
) -> None:
    assert open_reports(here, choice("html", "-")) == 0
    said = capsys.readouterr()
    assert said.out.startswith("<!doctype html>")
    assert said.err == "--open opens nothing, because the html report was written to stdout\n"
    assert opened == []


def test_a_page_that_was_not_written_is_not_opened(
    here: Path, capsys: pytest.CaptureFixture[str], opened: list[str]
) -> None:
    targets = resolve_targets(Config(root=str(here), reporters=()), [choice("html", "a.html")])
    (here / "a.html").mkdir()  # since then
    (here / "a.html" / "b").touch()
    assert write_reports(REPORT, decide(REPORT), targets, folder=here, detail="usual", opens=True) == 3
    assert opened == []
    assert "cannot write the html report" in capsys.readouterr().err


SLOW = "MB, which a browser opens slowly; a selection of scenarios is smaller"


@pytest.mark.parametrize(
    ("name", "size", "note"),
    [
        ("html", 30_000_000, ""),
        ("html", 30_000_001, f" (30 {SLOW})"),
        ("html", 1_234_600_000, f" (1,235 {SLOW})"),
        ("json", 30_000_001, ""),
        ("markdown", 30_000_001, ""),
    ],
)
def test_the_size_of_a_large_page_is_named(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    size: int,
    note: str,
) -> None:
    class Large(str):
        """A short text that is as long as a large page."""

        def __len__(self) -> int:
            return size

    monkeypatch.setattr(output, "clean_output", lambda text, form: Large("x"))
    write_report_text(name, "x", here / "a")
    assert capsys.readouterr().err == f"{name} report: a{note}\n"


def test_the_requests_to_judges_are_those_of_the_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "read_stored_requests", lambda folder: folder)
    for name in ("html", "terminal"):
        read = make_report_options(choice(name), folder=here / "run").judge_requests
        assert read
        assert read() == here / "run"


# ── the screen ───────────────────────────────────────────────────────────────────────────────────


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool, named: str = "utf-8") -> None:
        super().__init__()
        self.is_terminal, self.named = is_terminal, named

    def isatty(self) -> bool:
        return self.is_terminal


def on_screen(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environ: dict[str, str], named: str = "utf-8"
) -> Screen:
    for name, value in {"TERM": "xterm", **environ}.items():
        monkeypatch.setenv(name, value)
    screen = Screen(is_terminal=is_terminal)
    stream: Any = screen
    if named != "utf-8":
        stream = io.TextIOWrapper(io.BytesIO(), encoding=named)
        stream.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stdout", stream)
    return screen


@pytest.mark.parametrize(
    ("is_terminal", "environ", "named", "width"),
    [
        (False, {}, "utf-8", 110),
        (False, {"COLUMNS": "80"}, "utf-8", 80),
        (False, {"COLUMNS": "wide"}, "utf-8", 110),
        (False, {"COLUMNS": "39"}, "utf-8", 40),
        (False, {"COLUMNS": "40"}, "utf-8", 40),
        (False, {"COLUMNS": "41"}, "utf-8", 41),
        (True, {"COLUMNS": "80"}, "utf-8", 80),
        (False, {"COLUMNS": "80"}, "ascii", 78),
        (False, {}, "ascii", 108),
    ],
)
def test_the_width(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    environ: dict[str, str],
    named: str,
    width: int,
) -> None:
    on_screen(monkeypatch, is_terminal, environ, named)
    assert make_report_options(choice("terminal"), folder=here).width == width
    assert make_report_options(choice("terminal", "x"), folder=here).width == 100
    assert make_report_options(choice("json"), folder=here).width == 100


@pytest.mark.parametrize(
    ("is_terminal", "environ", "color"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": ""}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colors(
    here: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environ: dict[str, str], color: bool
) -> None:
    on_screen(monkeypatch, is_terminal, environ)
    assert make_report_options(choice("terminal"), folder=here).color is color
    assert not make_report_options(choice("terminal", "x"), folder=here).color
    assert not make_report_options(choice("markdown"), folder=here).color


@pytest.mark.parametrize(
    ("name", "path", "detail", "quiet", "verbose"),
    [
        ("terminal", None, "quiet", True, False),
        ("terminal", None, "usual", False, False),
        ("terminal", None, "verbose", False, True),
        ("terminal", "x", "quiet", False, False),
        ("json", None, "quiet", False, False),
        ("json", None, "verbose", False, True),
    ],
)
def test_details(here: Path, name: str, path: str | None, detail: Detail, quiet: bool, verbose: bool) -> None:
    options = make_report_options(choice(name, path), folder=here / "run", detail=detail, name="r1")
    assert (options.quiet, options.verbose, options.run) == (quiet, verbose, "r1")
    assert options.journal == str(Path("run", "events.jsonl"))
    assert options.root == str(here)


def test_places(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/work space")
    options = make_report_options(choice("github"), folder=here.parent / "run")
    assert options.root == "/work space"
    assert options.journal == str(here.parent / "run" / "events.jsonl")


@pytest.mark.parametrize(
    ("lines", "is_terminal", "has_keyboard", "pager", "installed", "is_paged"),
    [
        (24, True, True, "pg -x", True, True),
        (23, True, True, "pg -x", True, False),
        (24, False, True, "pg -x", True, False),
        (24, True, False, "pg -x", True, False),
        (24, True, True, "pg -x", False, False),
        (24, True, True, "", True, False),
        (24, True, True, None, True, True),
    ],
)
def test_a_long_text_goes_through_a_pager(
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
    lines: int,
    is_terminal: bool,
    has_keyboard: bool,
    pager: str | None,
    installed: bool,
    is_paged: bool,
) -> None:
    screen = on_screen(monkeypatch, is_terminal, {"LINES": "24", "COLUMNS": "80"})
    monkeypatch.setattr(sys, "stdin", Screen(is_terminal=has_keyboard))
    monkeypatch.setenv("PAGER", pager or "")
    if pager is None:
        monkeypatch.delenv("PAGER")
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: name if installed else None)
    paged: list[Any] = []

    def run(command: list[str], **options: Any) -> None:
        paged.append((command, options["input"], options["env"]["LESS"]))

    monkeypatch.setattr(subprocess, "run", run)
    text = "\x1b[31ma\x1b[2J\n" * lines
    print_paged(text)
    shown = text.replace("\x1b[2J", "")
    if is_paged:
        assert paged == [(["pg", "-x"] if pager else ["less"], shown, "FRX")]
        assert screen.getvalue() == ""
    else:
        assert paged == []
        assert screen.getvalue() == (shown if is_terminal else shown.replace("\x1b[31m", ""))
