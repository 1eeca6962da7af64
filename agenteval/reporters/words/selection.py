"""Format scenario names in the form accepted by the command line, such as ``orders.yaml::late-order``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePath

from agenteval.core.sample_report import ScenarioReport
from agenteval.core.selection import ID_SEPARATOR
from agenteval.reporters.words.failure import ReportedFailure
from agenteval.reporters.words.places import split_place
from agenteval.reporters.words.rerun_commands import quote_word, show_command_of
from agenteval.verdict.report import Report


def file_of(scenario: ScenarioReport) -> str:
    """Return the file in which the scenario was written, or an empty string if there is no file."""
    return split_place(scenario.scenario.where())[0]


def is_recorded(report: Report) -> bool:
    """Check whether the conversations were recorded outside agenteval, in which case there is no scenario
    file to run."""
    return report.run.command[:1] == ("score",) or any(sample.record for sample in report.samples)


def short_files(report: Report) -> dict[str, str]:
    """Map each path to its shortest suffix that is unique among the files of the run."""
    files = dict.fromkeys(filter(None, map(file_of, report.scenarios)))
    return {file: _shortest_suffix(file, files.keys() - {file}) for file in files}


def _shortest_suffix(file: str, others: Collection[str]) -> str:
    parts = PurePath(file).parts
    for count in range(1, len(parts)):
        end = parts[-count:]
        if not any(PurePath(other).parts[-count:] == end for other in others):
            return "/".join(end)
    return file


def selectors(report: Report) -> dict[str, str]:
    """Map each scenario id to the argument that selects the scenario in ``run``, quoted for a shell. Recorded
    scenarios are selected by id."""
    names = {} if is_recorded(report) else short_files(report)
    return {each.scenario.id: quote_word(_selector(each, names)) for each in report.scenarios}


def _selector(scenario: ScenarioReport, names: dict[str, str]) -> str:
    file = names.get(file_of(scenario), "")
    return f"{file}{ID_SEPARATOR}{scenario.scenario.id}" if file else scenario.scenario.id


def show_command(failure: ReportedFailure, run: str) -> str:
    """Return the command that shows the conversation of a failure. ``run`` is the name of the run, or empty
    for the latest run."""
    agent = failure.agent if failure.several_agents else ""
    return show_command_of(filter(None, (run,)), failure.scenario, agent)


def by_file(scenarios: Iterable[ScenarioReport]) -> dict[str, list[ScenarioReport]]:
    """Group scenarios by file, preserving their order."""
    files: dict[str, list[ScenarioReport]] = {}
    for scenario in scenarios:
        files.setdefault(file_of(scenario), []).append(scenario)
    return files
