"""``agenteval diff``: which runs are compared, what was seen before, and where the comparison is written."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands import diff as module
from agenteval.cli.commands import output
from agenteval.cli.commands.diff import MOST_EARLIER, diff
from agenteval.cli.commands.output import write_report_text
from agenteval.cli.safe_output import Form
from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError
from agenteval.running.stored_runs import load_decided_run
from agenteval.verdict import gates
from agenteval.verdict.comparison import FailureState
from agenteval.verdict.digest import failures_in
from agenteval.verdict.report import Report
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, Played, events_of, report_of


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(root: Path, day: int, passed: int, of: int = 20, **more: Any) -> Path:
    """The run ``rDAY`` with one scenario, of which so many epochs passed."""
    played: list[Played | None] = [*[PASS] * passed, *[FAIL] * (of - passed)]
    name = f"r{day:02}"
    return keep_run(root, name, events_of({"a": played}, **more), f"2026-11-{day:02}T00:00:00Z")


@pytest.mark.parametrize(
    ("before", "after", "margin", "code"),
    [(20, 0, 0.05, 1), (0, 20, 0.05, 0), (19, 18, 0.01, 3), (20, 20, 0.5, 0), (20, 17, 0.9, 0)],
)
def test_the_exit_code_says_whether_it_regressed(
    root: Path, capsys: pytest.CaptureFixture[str], before: int, after: int, margin: float, code: int
) -> None:
    keep(root, 1, before)
    keep(root, 2, after)
    assert diff("r01", "r02", margin=margin) == code
    assert capsys.readouterr().out
    assert diff("previous", "latest", margin=margin) == code


def test_reports_are_files_or_the_screen_which_comes_last(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(root, 1, 20)
    keep(root, 2, 0)
    assert diff("r01", "r02", reports=["json=out.json"]) == 1
    said = capsys.readouterr()
    read = json.loads((root / "out.json").read_text())
    assert (read["before"], read["after"], read["exit_code"]) == ("r01", "r02", 1)
    assert said.out == ""
    assert "out.json" in said.err
    assert diff("r01", "r02", reports=["terminal", "json", "markdown=-"]) == 1
    said = capsys.readouterr()
    assert said.out.index('"exit_code"') < said.out.rindex("exit 1")


@pytest.mark.parametrize("name", ["csv", "junit", "github", "comment", "jsno", ""])
def test_formats_that_know_no_comparison(root: Path, name: str) -> None:
    with pytest.raises(AuthorError) as error:
        diff("r01", "r02", reports=[name])
    assert f"'{name}'" in str(error.value)
    assert any(known in str(error.value) for known in ("json", "terminal", "markdown"))


@pytest.mark.parametrize(("after", "code"), [(20, 3), (0, 1)])
def test_a_report_that_cannot_be_written_is_never_green(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, after: int, code: int
) -> None:
    keep(root, 1, 20)
    keep(root, 2, after)

    def write(name: str, text: str, path: Path | None, form: Form) -> None:
        if name == "json":
            raise OSError(28, "full")
        write_report_text(name, text, path, form)

    monkeypatch.setattr(output, "write_report_text", write)
    assert diff("r01", "r02", margin=0.5, reports=["json=out.json", "terminal"]) == code
    said = capsys.readouterr()
    assert said.out
    assert "json" in said.err
    assert "full" in said.err


@pytest.mark.parametrize("name", ["r01", "r02"])
def test_no_journal_is_overwritten(root: Path, name: str) -> None:
    for day in (1, 2):
        keep(root, day, 1)
    with pytest.raises(AuthorError):
        diff("r01", "r02", reports=[f"json=.agenteval/runs/{name}/events.jsonl"])


@pytest.mark.parametrize(("before", "after"), [("r01", "r09"), ("r09", "r01")])
def test_no_such_run(root: Path, before: str, after: str) -> None:
    keep(root, 1, 1)
    with pytest.raises(AuthorError) as error:
        diff(before, after)
    assert "r09" in str(error.value)


# ── failures that are new, and those that came back ──────────────────────────────────────────────


def states(before: str, after: str) -> dict[FailureState, str]:
    """Of each failure, its state and the earlier run that had it."""
    found = module.compare(*module.summarize(before, after), margin=0.05)
    return {failure.state: failure.seen_in for agent in found.agents for failure in agent.failures}


def test_a_failure_that_an_earlier_run_had_is_back(root: Path) -> None:
    keep(root, 3, 20)
    keep(root, 4, 19)
    assert states("r03", "r04") == {FailureState.NEW: ""}
    keep(root, 1, 19)
    assert states("r03", "r04") == {FailureState.BACK: "r01"}
    keep(root, 2, 0)
    assert states("r03", "r04") == {FailureState.BACK: "r02"}  # the latest that had it


def test_later_runs_are_no_earlier_ones(root: Path) -> None:
    keep(root, 3, 20)
    keep(root, 4, 19)
    keep(root, 5, 0)
    assert states("r03", "r04") == {FailureState.NEW: ""}


def test_only_so_many_runs_are_looked_through(root: Path) -> None:
    keep(root, 1, 0, 1)
    keep(root, 29, 0, 1)
    for day in range(2, MOST_EARLIER + 1):
        keep(root, day, 1, 1)
    keep(root, 28, 1, 1)
    assert states("r28", "r29") == {FailureState.BACK: "r01"}
    keep(root, 22, 1, 1)
    assert states("r28", "r29") == {FailureState.NEW: ""}


def test_a_run_that_cannot_be_read_is_passed_over(root: Path) -> None:
    keep(root, 1, 0)
    broken = keep(root, 2, 0)
    (broken / "events.jsonl").write_text('{"started_at":"2026-11-02T00:00:00Z", oops\n')
    keep(root, 3, 20)
    keep(root, 4, 19)
    assert states("r03", "r04") == {FailureState.BACK: "r01"}


def test_what_is_accepted_now_was_accepted_before(root: Path) -> None:
    """The list of accepted failures of the second run holds for both."""
    failed = report_of({"a": [FAIL]})
    (scenario,) = failed.scenarios
    (failure,) = failures_in(scenario.samples, scenario.scenario)
    entry = AcceptedFailure(fingerprint=failure.fingerprint, expires="2999-01-01", owner="me", reason="known")
    keep(root, 1, 0)
    keep(root, 2, 0, accepted_failures=[entry.model_dump()])
    assert load_decided_run("r02").decision.exit_code == 0
    found = module.compare(*module.summarize("r01", "r02"), margin=0.05)
    assert found.agents[0].change == 0


def test_each_run_is_decided_once_and_one_report_is_held_at_a_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(root, 1, 20)
    keep(root, 2, 20)
    alive: list[weakref.ref[Report]] = []
    decide = gates.decide

    def counted(report: Report) -> Decision:
        assert not [other for other in alive if other() is not None]
        alive.append(weakref.ref(report))
        return decide(report)

    monkeypatch.setattr(gates, "decide", counted)
    assert diff("r01", "r02", margin=0.5) == 0
    assert len(alive) == 2
