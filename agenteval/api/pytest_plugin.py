"""The pytest plugin. It collects scenario files if ``--agenteval`` or ``agenteval = true`` asks for it.

pytest loads this module in every test run of the environment, so it imports nothing but pytest. Everything
else is imported when the plugin is active."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("agenteval", "scenarios for AI agents (agenteval)")
    group.addoption("--agenteval", action="store_true", help="Collect the scenario files of agenteval.")
    group.addoption(
        "--agenteval-epochs", action="store_true", help="Make an item of each epoch, not of each scenario."
    )
    group.addoption("--agenteval-config", metavar="FILE", help="The configuration of agenteval.")
    group.addoption("--agenteval-profile", metavar="NAME", help="A profile of the configuration.")
    group.addoption("--agenteval-agent", metavar="AGENT", help="The name of an agent, or bot.py:agent.")
    group.addoption("--agenteval-model", metavar="PROVIDER/MODEL", help="Use this model.")
    group.addoption("--agenteval-no-judge", action="store_true", help="Run only code checks.")
    parser.addini("agenteval", "collect the scenario files of agenteval", type="bool", default=False)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the active part of the plugin, last, so that it sees what is left of a selection."""
    config.addinivalue_line("markers", "agenteval: a scenario of agenteval")
    config.addinivalue_line("markers", "agenteval_scenarios: set by agenteval.scenarios")
    if config.getoption("agenteval") or config.getini("agenteval"):
        from agenteval.api.pytest_scenarios import ScenarioPlugin

        config.pluginmanager.register(ScenarioPlugin(config), "agenteval-scenarios")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test that ``agenteval.scenarios`` made."""
    for mark in metafunc.definition.iter_markers("agenteval_scenarios"):
        from agenteval.api.pytest_functions import parametrize

        parametrize(metafunc, mark)


@pytest.fixture(scope="session")
def agenteval_agent() -> Any:
    """Return the agent for the tests that ``agenteval.scenarios`` makes. Override it to provide one."""
    from agenteval.api.pytest_runs import NO_AGENT

    return NO_AGENT


@pytest.fixture
def agenteval_scenario(request: pytest.FixtureRequest, agenteval_agent: Any) -> Any:
    """Return the function that fails if the scenario of the test failed."""
    from agenteval.api.pytest_functions import prepare_check

    return prepare_check(request, agenteval_agent)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the folder in which runs are stored."""
    return True if collection_path.name == ".agenteval" else None


# ── reports ──────────────────────────────────────────────────────────────────────────────────────

_WORD = "agenteval_word"
"""The attribute of an error and of a report that contains the word for the status."""
_RUNS = pytest.StashKey[list[str]]()
"""The folders of the runs that the workers of pytest-xdist have played."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the reasons instead of a traceback, and the time that the agent took instead of the time that the
    item waited."""
    report = yield
    if (seconds := getattr(item, "agenteval_duration_s", None)) is not None:
        report.duration = seconds if call.when == "call" else 0.0
    if call.excinfo is not None and (word := getattr(call.excinfo.value, _WORD, "")):
        report.longrepr = str(call.excinfo.value)
        setattr(report, _WORD, word)
    return report


def pytest_report_teststatus(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Show an undecided scenario as an error with that word."""
    if getattr(report, _WORD, "") == "INCONCLUSIVE":
        return "error", "E", ("INCONCLUSIVE", {"red": True})
    return None


def _finished_runs(config: pytest.Config) -> list[str]:
    """Return the folders of the runs that were played, without importing anything if there are none."""
    runs = sys.modules.get("agenteval.api.pytest_runs")
    own: list[str] = config.stash.get(runs.FINISHED_RUNS, []) if runs else []
    return list(dict.fromkeys([*own, *config.stash.get(_RUNS, [])]))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Remember the runs of a worker of pytest-xdist."""
    runs = (getattr(node, "workeroutput", None) or {}).get("agenteval_runs", [])
    node.config.stash.setdefault(_RUNS, []).extend(runs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Fail the session if a run did not pass although no item says so, for example because of a gate over a
    part of the scenarios."""
    runs = _finished_runs(session.config)
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["agenteval_runs"] = runs
    elif runs and session.exitstatus == pytest.ExitCode.OK:
        from agenteval.api.pytest_runs import exit_code_of

        if exit_code_of(runs):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    result = yield
    if plugin := sys.modules.get("agenteval.api.pytest_runs"):
        guard = session.config.stash.get(plugin.EXIT_GUARD, None)
        if guard is not None:
            guard.set_exit_code(int(session.exitstatus))
    return result


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the verdict of each run and where it is stored."""
    if runs := _finished_runs(config):
        from agenteval.api.pytest_runs import summary_lines

        terminalreporter.section("agenteval")
        for line in summary_lines(runs):
            terminalreporter.write_line(line)
