"""``--open``: the page of a run is written and handed to a browser, and the verdict does not depend on it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support import cut_runs, scored_logs
from tests.support.kit import Done, Project
from tests.support.pages import index_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, PATH alone finds no browser")

BROWSER = """\
#!{python}
import pathlib, sys
with open({addresses!r}, "a") as file:
    file.write(sys.argv[1] + "\\n")
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.config()
    project.agent("def agent(messages, ctx):\n    return 'yes'\n")
    project.scenarios("""
        cases:
          - {id: good, input: hello, expected_output_contains: ["yes"]}
          - {id: bad, input: hello, expected_output_contains: ["no"]}
    """)
    return project


def with_browser(project: Project, folder: Path) -> dict[str, str]:
    """The environment of a user with a browser, which notes what it was to open."""
    folder.mkdir()
    browser = folder / "browser"
    text = BROWSER.format(python=sys.executable, addresses=str(project.root / "addresses"))
    browser.write_text(text)
    browser.chmod(0o755)
    return {"BROWSER": str(browser), "PATH": str(folder)}


@pytest.fixture
def env(shop: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return with_browser(shop, tmp_path_factory.mktemp("browser") / "bin")


def opened(project: Project) -> list[Path]:
    """The files that the browser was to open."""
    path = project.root / "addresses"
    addresses = path.read_text("utf-8").split() if path.exists() else []
    assert all(address.startswith("file:///") for address in addresses)
    return [Path(unquote(urlsplit(address).path)) for address in addresses]


def run_folder(project: Project) -> Path:
    """The folder of the latest run."""
    return max((project.root / ".agenteval/runs").iterdir())


def test_a_run_is_opened_from_its_folder(shop: Project, env: dict[str, str]) -> None:
    done = shop.call("run", "--open", env=env)
    page = run_folder(shop) / "report.html"
    assert (done.code, opened(shop)) == (1, [page])
    assert [row["id"] for row in index_of(page.read_text("utf-8"))["rows"]] == ["bad", "good"]
    assert f"html report: {page.relative_to(shop.root)}" in done.err.splitlines()
    assert "FAILED: " in done.out  # the terminal report is written as well


def test_the_page_of_a_path_is_opened_there(shop: Project, env: dict[str, str]) -> None:
    done = shop.call("run", "-s", "good", "--report", "html=my pages/a#b.html", "--open", env=env)
    assert (done.code, opened(shop)) == (0, [shop.root / "my pages" / "a#b.html"])
    assert not (run_folder(shop) / "report.html").exists()


def test_a_page_that_is_not_to_be_opened_is_not(shop: Project, env: dict[str, str]) -> None:
    assert shop.call("run", "--report", "html", env=env).code == 1
    assert (run_folder(shop) / "report.html").is_file()
    assert opened(shop) == []


@pytest.mark.parametrize(("filters", "code"), [((), 1), (("-s", "good"), 0)])
def test_without_a_browser_the_page_is_named_and_the_code_stays(
    shop: Project, tmp_path: Path, filters: tuple[str, ...], code: int
) -> None:
    (empty := tmp_path / "empty").mkdir()
    env = {"BROWSER": str(empty / "gone"), "PATH": str(empty), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    done = shop.call("run", "--report", "html=a.html", "--open", *filters, env=env)
    assert done.code == code
    assert done.err.splitlines()[-1] == "no browser could be started; open a.html"
    assert (shop.root / "a.html").is_file()


def test_a_browser_whose_command_cannot_be_read_costs_no_run(shop: Project) -> None:
    env = {"BROWSER": "/bin/echo 'unbalanced %s", "PATH": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    done = shop.call("run", "-s", "good", "--report", "html=a.html", "--open", env=env)
    assert (done.code, done.err.splitlines()[-1]) == (0, "no browser could be started; open a.html")


def test_what_a_browser_prints_is_no_result(shop: Project) -> None:
    shop.call("run")
    reports = ("--report", "json=-", "--report", "html=a.html")
    done = shop.call("report", "latest", *reports, "--open", env={"BROWSER": "/bin/echo"})
    assert json.loads(done.out)["summary"]["exit_code"] == 1
    assert (shop.root / "a.html").as_uri() in done.err


def test_a_page_on_the_screen_is_not_opened_which_is_said(shop: Project, env: dict[str, str]) -> None:
    done = shop.call("run", "--report", "html=-", "--open", env=env)
    assert (done.code, opened(shop)) == (1, [])
    assert done.out.startswith("<!doctype html>")
    assert done.err.splitlines()[-1].startswith("--open opens nothing")
    shop.call("run", "--report", "html=a.html", "--report", "html=-", "--open", env=env)
    assert opened(shop) == [shop.root / "a.html"]


def test_a_kept_run_is_opened_instead_of_shown(shop: Project, env: dict[str, str]) -> None:
    shop.call("run")
    done = shop.call("report", "latest", "--open", env=env)
    assert (done.code, done.out) == (1, "")
    assert opened(shop) == [run_folder(shop) / "report.html"]
    done = shop.call("report", "latest", "--report", "html=b.html", "--report", "terminal", "--open", env=env)
    assert opened(shop)[1:] == [shop.root / "b.html"]
    assert "FAILED: " in done.out


def test_a_log_that_is_scored_is_opened(shop: Project, env: dict[str, str]) -> None:
    scored_logs.log(shop, scored_logs.conversation("c1"), scored_logs.conversation("c2"))
    done = shop.call("score", "log.jsonl", "--no-judge", "--open", env=env)
    page = run_folder(shop) / "report.html"
    assert (done.code, opened(shop)) == (0, [page])
    index = index_of(page.read_text("utf-8"))
    assert (index["log"], [row["id"] for row in index["rows"]]) == (True, ["c1", "c2"])
    assert [row["epochs"] for row in index["rows"]] == [[[0, "", "passed", 0, 0]], [[0, "", "passed", 0, 1]]]


def test_a_resumed_run_is_opened(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    env = with_browser(project, tmp_path_factory.mktemp("browser") / "bin")
    cut_runs.set_up(project)
    assert project.call("run").code == 1
    cut_runs.cut_after(project, "sample_finished", 3)
    done = project.call("run", "--resume", "latest", "--open", env=env)
    assert (done.code, opened(project)) == (1, [cut_runs.folder(project) / "report.html"])
    index = index_of(opened(project)[0].read_text("utf-8"))
    assert sum(len(row["epochs"]) for row in index["rows"]) == cut_runs.SAMPLES
    assert index["requests"] == 1


def refuses(done: Done, *facts: str) -> None:
    done.refuses("agenteval", *facts)
    assert done.out == ""


def test_no_page_is_opened_each_time_that_a_file_changes(shop: Project, env: dict[str, str]) -> None:
    refuses(shop.call("run", "--watch", "--open", env=env), "--open", "--watch")
    assert opened(shop) == []
    assert not (shop.root / ".agenteval").exists()


@pytest.mark.parametrize("more", [(), ("--rejudge",)])
def test_no_page_is_opened_of_requests_that_are_not_sent(
    shop: Project, env: dict[str, str], more: tuple[str, ...]
) -> None:
    """The message names the option that was given, and not the report that it stands for."""
    shop.call("run")
    done = shop.call("report", "latest", *more, "--dry-run", "--open", env=env)
    refuses(done, "--open", "--dry-run")
    assert "--report" not in done.err
    assert opened(shop) == []


def test_a_comparison_is_a_page_too(shop: Project) -> None:
    shop.call("run")
    shop.call("run")
    done = shop.call("diff", "previous", "latest", "--report", "html=diff.html")
    text = (shop.root / "diff.html").read_text("utf-8")
    assert (done.out, done.err) == ("", "html report: diff.html\n")
    assert "NOT DECIDED" in text or "NO REGRESSION" in text
