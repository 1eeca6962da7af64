"""Scenario files as pytest items: one item per scenario and agent, or per epoch."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from agenteval.api.pytest_runs import (
    InconclusiveScenarioError,
    ItemOutcome,
    LoadedItems,
    PytestRun,
    RunOutcomes,
    ScenarioFailedError,
    check,
    item_name,
    load_items,
)
from agenteval.api.requests import make_request
from agenteval.core.errors import AuthorError
from agenteval.core.plan import Pairing
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.score import Verdict
from agenteval.core.selection import scenario_file
from agenteval.files.config_file import find_config
from agenteval.planning.request import Request


class ScenarioPlugin:
    """The hooks of the active plugin."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            config.args += [str(path) for path in self._included_files() if not self._is_below_args(path)]

    @cached_property
    def request(self) -> Request:
        """The request of the options. Paths are not part of it, because pytest selects items."""
        option = self.config.getoption
        named = option("agenteval_config")
        found = self.config.invocation_params.dir / named if named else find_config(self.config.rootpath)
        options: Any = {
            name: option(f"agenteval_{name}") for name in ("profile", "agent", "model", "no_judge")
        }
        options["config"] = found
        return make_request((), "pytest", options)

    @cached_property
    def loaded(self) -> LoadedItems | AuthorError:
        try:
            found = load_items(self.request)
        except AuthorError as error:
            return error
        # pytest may refuse unknown markers in ``-m``, even if no item with them is collected.
        for tag in sorted({tag for each in found.suite.scenarios for tag in tags_of(each)}):
            self.config.addinivalue_line("markers", f"{tag}: a tag of agenteval scenarios")
        return found

    @cached_property
    def run(self) -> PytestRun:
        assert isinstance(self.loaded, LoadedItems)
        return PytestRun(self.config, self.loaded)

    @cached_property
    def files(self) -> frozenset[str]:
        """The real paths of the scenario files that the configuration includes."""
        return frozenset(os.path.realpath(path) for path in self._included_files())

    def _included_files(self) -> list[Path]:
        from agenteval.files.scenario_files import find_scenario_files
        from agenteval.planning.suite import load_config
        from agenteval.running.registries import REGISTRIES

        try:
            config = load_config(self.request, REGISTRIES).config
        except AuthorError as error:
            raise pytest.UsageError(str(error)) from None
        return [Path(path) for path in find_scenario_files(Path(config.root), config.include, config.exclude)]

    def _is_below_args(self, path: Path) -> bool:
        invoked_in = self.config.invocation_params.dir
        return any(
            path.is_relative_to((invoked_in / arg.partition("::")[0]).resolve()) for arg in self.config.args
        )

    # ── collection ───────────────────────────────────────────────────────────────────────────────

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the scenario files that the configuration includes."""
        if file_path.suffix in (".yaml", ".yml") and os.path.realpath(file_path) in self.files:
            return ScenarioFile.of(self, parent, file_path)
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Add the item of the gates over the run, unless only a part of the scenarios is selected."""
        result = yield
        chosen = {sample.key for item in items if isinstance(item, ScenarioItem) for sample in item.samples}
        loaded = self.loaded
        if chosen and isinstance(loaded, LoadedItems) and chosen == {each.key for each in loaded.samples}:
            source = loaded.suite.settings.config.source
            path = loaded.root / (Path(source).name if source else "agenteval.yaml")
            items.append(GatesItem.of(self, GatesFile.from_parent(session, path=path)))
        return result

    def outcomes(self, session: pytest.Session) -> RunOutcomes:
        """Return the outcomes of the run with all selected items. The first call plays it."""
        return self.run.outcomes({item.pairing for item in session.items if isinstance(item, ScenarioItem)})


class ScenarioFile(pytest.File):
    """A scenario file."""

    plugin: ScenarioPlugin

    @classmethod
    def of(cls, plugin: ScenarioPlugin, parent: pytest.Collector, path: Path) -> ScenarioFile:
        file: ScenarioFile = cls.from_parent(parent, path=path)
        file.plugin = plugin
        return file

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the items of this file. Raise ``CollectError`` with the mistakes in the scenario files."""
        loaded = self.plugin.loaded
        if isinstance(loaded, AuthorError):
            raise self.CollectError(str(loaded))
        by_epoch = self.config.getoption("agenteval_epochs")
        for pairing, samples in loaded.pairings.items():
            if not self._contains(samples[0].scenario):
                continue
            for group in [[each] for each in samples] if by_epoch else [samples]:
                epoch = group[0].key.epoch if by_epoch else None
                item = ScenarioItem.from_parent(self, name=item_name(pairing, loaded, epoch))
                item.fill(self.plugin, group, epoch, is_last=group[-1] is samples[-1])
                yield item
        for scenario in loaded.skipped:
            if self._contains(scenario):
                skipped = SkippedItem.from_parent(self, name=scenario.id.replace("[", "(").replace("]", ")"))
                skipped.add_marker(pytest.mark.skip(reason=scenario.skip))
                yield skipped

    def _contains(self, scenario: Scenario) -> bool:
        written_in = self.config.invocation_params.dir / scenario_file(scenario)
        return os.path.realpath(written_in) == os.path.realpath(self.path)


class SkippedItem(pytest.Item):
    """A scenario that is not run because of its ``skip``."""

    def runtest(self) -> None:
        """Do nothing: the marker skips the item."""

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class ScenarioItem(pytest.Item):
    """One scenario with one agent, or one of its epochs."""

    plugin: ScenarioPlugin
    samples: list[Sample]
    outcome: ItemOutcome | None = None
    agenteval_duration_s = 0.0
    """The time that the agent took. The time that pytest measures is that of waiting for the run."""

    def fill(
        self, plugin: ScenarioPlugin, samples: list[Sample], epoch: int | None, *, is_last: bool
    ) -> None:
        """Set what the item is about, and its markers and keywords."""
        self.plugin, self.samples, self._epoch, self._is_last = plugin, samples, epoch, is_last
        scenario = samples[0].scenario
        self.add_marker("agenteval")
        for tag in tags_of(scenario):
            self.add_marker(tag)
        names = (scenario.id, scenario.name, samples[0].key.agent, *scenario.tags)
        self.extra_keyword_matches.update(names)

    @property
    def pairing(self) -> Pairing:
        return self.samples[0].key.scenario, self.samples[0].key.agent

    def setup(self) -> None:
        """Wait for the run. An undecided scenario is an error of the setup, not a failure."""
        outcomes = self.plugin.outcomes(self.session)
        self.outcome = outcomes.outcome(self.pairing, self._epoch, is_last=self._is_last)
        self.agenteval_duration_s = self.outcome.duration_s
        check(self.outcome)

    def runtest(self) -> None:
        """Raise ``ScenarioFailedError`` if the scenario failed."""
        assert self.outcome
        if self.outcome.verdict is Verdict.FAILED:
            raise ScenarioFailedError(self.outcome.text)
        if self.outcome.text:
            self.add_report_section("call", "agenteval", self.outcome.text)

    def reportinfo(self) -> tuple[Path, int, str]:
        line = self.samples[0].scenario.source.rpartition(":")[2]
        return self.path, int(line) - 1 if line.isdigit() else 0, self.name


class GatesFile(pytest.File):
    """The configuration, in which the gates over the run are set."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return nothing: the plugin adds the item."""
        return ()


class GatesItem(pytest.Item):
    """The gates over the run. It is the last item."""

    plugin: ScenarioPlugin

    @classmethod
    def of(cls, plugin: ScenarioPlugin, parent: pytest.Collector) -> GatesItem:
        item: GatesItem = cls.from_parent(parent, name="gates")
        item.plugin = plugin
        item.add_marker("agenteval")
        return item

    def setup(self) -> None:
        """Wait for the run. An undecided gate is an error of the setup, not a failure."""
        check_gates(self.plugin.outcomes(self.session), Verdict.INCONCLUSIVE, InconclusiveScenarioError)

    def runtest(self) -> None:
        """Raise ``ScenarioFailedError`` if a gate over the run failed."""
        check_gates(self.plugin.outcomes(self.session), Verdict.FAILED, ScenarioFailedError)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def check_gates(outcomes: RunOutcomes, verdict: Verdict, error: type[Exception]) -> None:
    """Raise ``error`` if the worst gate over the run has this verdict."""
    worst = Verdict.worst([Verdict.PASSED, *(row.verdict for row in outcomes.gates)])
    if outcomes.run.decision.author_errors:
        worst = Verdict.INCONCLUSIVE
    if worst is verdict:
        raise error("\n".join(outcomes.gate_lines))


def tags_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the markers of a scenario: its tags and its category. pytest has no markers that begin with an
    underscore."""
    return tuple(tag for tag in (*scenario.tags, scenario.category.value) if not tag.startswith("_"))
