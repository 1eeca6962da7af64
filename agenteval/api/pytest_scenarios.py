"""Scenario files as pytest items: one item per scenario and agent, or per epoch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
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
from agenteval.core.errors import AuthorError, parse_place
from agenteval.core.plan import Pairing
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.score import Verdict
from agenteval.core.selection import scenario_file
from agenteval.files.config_file import find_config
from agenteval.files.scenario_files import CONFIG_NAMES
from agenteval.planning.request import Request


class ScenarioPlugin:
    """The hooks of the active plugin."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.playable = 0
        """The number of items that were collected, without those that are skipped."""
        self.other_configs: list[str] = []
        """The configurations of other projects below the collected folders."""
        self._is_whole = True
        self._included: Sequence[Path] | None = None
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
        return make_request(None, "pytest", options)

    @cached_property
    def loaded(self) -> LoadedItems | AuthorError:
        """The scenarios of the collected files, or the mistakes in them."""
        within = [path for path in self._included_files() if self._is_below_args(path)]
        self._is_whole = len(within) == len(self._included_files())
        paths = () if self._is_whole else tuple(map(str, within))
        try:
            found = load_items(replace(self.request, paths=paths))
        except AuthorError as error:
            return error
        self._register_tags(found)
        return found

    def _register_tags(self, found: LoadedItems) -> None:
        """Register the tags of all scenarios as markers. pytest may refuse unknown markers in ``-m``, even if
        no item with them is collected."""
        with suppress(AuthorError):  # in a file that was not named
            found = found if self._is_whole else load_items(self.request)
        register_tags(found, self.config)

    @cached_property
    def run(self) -> PytestRun:
        assert isinstance(self.loaded, LoadedItems)
        return PytestRun(self.config, self.loaded)

    @cached_property
    def files(self) -> frozenset[str]:
        """The real paths of the scenario files that the configuration includes."""
        return frozenset(os.path.realpath(path) for path in self._included_files())

    def _included_files(self) -> Sequence[Path]:
        if self._included is None:
            self._included = self._find_included_files()
        return self._included

    def _find_included_files(self) -> list[Path]:
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
        if file_path.name in CONFIG_NAMES and not self._is_covered(file_path):
            self.other_configs.append(str(file_path))
        return None

    def _is_covered(self, path: Path) -> bool:
        """Check whether a configuration is the one that is used, or belongs to a project within its folder,
        which ``agenteval run`` leaves out as well."""
        own = self.request.config
        is_chosen = self.config.getoption("agenteval_config") is not None
        return is_chosen or (own is not None and path.resolve().is_relative_to(Path(own).resolve().parent))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Add the item of the gates over the run, unless only a part of the scenarios is selected."""
        result = yield
        chosen = {sample.key for item in items if isinstance(item, ScenarioItem) for sample in item.samples}
        loaded = self.loaded
        if (
            chosen
            and self._is_whole
            and isinstance(loaded, LoadedItems)
            and chosen == {each.key for each in loaded.samples}
        ):
            source = loaded.suite.settings.config.source
            path = loaded.root / (Path(source).name if source else "agenteval.yaml")
            items.append(GatesItem.of(self, GatesFile.from_parent(session, path=path)))
        return result

    # ── what was not run ─────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End with an error if ``--agenteval`` asked for scenarios and there was none to run."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["agenteval_collected"] = (self.playable, self.other_configs)
        elif (
            session.exitstatus == pytest.ExitCode.OK
            and self.config.getoption("agenteval")
            and self._unmet_lines()
        ):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has collected."""
        collected = (getattr(node, "workeroutput", None) or {}).get("agenteval_collected")
        if collected:
            self.playable = max(self.playable, collected[0])
            self.other_configs = [*collected[1]]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which scenarios were not collected."""
        for line in self._unmet_lines():
            terminalreporter.write_line(line, red=True)

    def _unmet_lines(self) -> list[str]:
        if self.config.getoption("collectonly") or self.config.getoption("usepdb", default=False):
            return []
        lines = [
            f"agenteval: the scenarios of {path} were not run; run pytest there, or use --agenteval-config"
            for path in dict.fromkeys(self.other_configs)
        ]
        if not self.playable:
            lines.append(
                "agenteval: no scenario was run: there is none below the given paths, or all are skipped"
            )
        return lines

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
            self._raise_mistakes(loaded)
            return
        by_epoch = self.config.getoption("agenteval_epochs")
        for pairing, samples in loaded.pairings.items():
            if not self._contains(samples[0].scenario):
                continue
            for group in [[each] for each in samples] if by_epoch else [samples]:
                epoch = group[0].key.epoch if by_epoch else None
                item = ScenarioItem.from_parent(self, name=item_name(pairing, loaded, epoch))
                self.plugin.playable += 1
                item.fill(self.plugin, group, epoch, is_last=group[-1] is samples[-1])
                yield item
        for scenario in loaded.skipped:
            if self._contains(scenario):
                skipped = SkippedItem.from_parent(self, name=scenario.id.replace("[", "(").replace("]", ")"))
                skipped.add_marker(pytest.mark.skip(reason=scenario.skip))
                skipped.line = parse_place(scenario.where()).line
                yield skipped

    def _raise_mistakes(self, error: AuthorError) -> None:
        """Raise ``CollectError`` with the mistakes in this file, or with all if no scenario file has any."""
        here = self.config.invocation_params.dir
        files = [os.path.realpath(here / each.place.path) if each.place else "" for each in error.problems]
        own = [each for each, file in zip(error.problems, files, strict=True) if file == str(self.path)]
        if own:
            raise self.CollectError(str(AuthorError(*own)))
        if not self.plugin.files.intersection(files):
            raise self.CollectError(str(error))

    def _contains(self, scenario: Scenario) -> bool:
        written_in = self.config.invocation_params.dir / scenario_file(scenario)
        return os.path.realpath(written_in) == os.path.realpath(self.path)


class SkippedItem(pytest.Item):
    """A scenario that is not run because of its ``skip``."""

    line = 1

    def runtest(self) -> None:
        """Do nothing: the marker skips the item."""

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line - 1, self.name


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
        for tag in markers_of(scenario, self.config):
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


_OWN_MARKERS = pytest.StashKey[set[str]]()
"""The tags that were registered as markers."""


def register_tags(found: LoadedItems, config: pytest.Config) -> None:
    """Register the tags of all scenarios as markers, except those that are markers of pytest or of a plugin.
    A tag named ``skip`` or ``xfail`` must not change how a scenario is run."""
    own = config.stash.setdefault(_OWN_MARKERS, set())
    in_file = {_name_of(line) for line in _markers_in_file(config)}
    foreign = {_name_of(line) for line in config.getini("markers")} - in_file - own
    for tag in sorted({tag for each in found.suite.scenarios for tag in _tags_of(each)} - foreign - own):
        own.add(tag)
        config.addinivalue_line("markers", f"{tag}: a tag of agenteval scenarios")


def markers_of(scenario: Scenario, config: pytest.Config) -> tuple[str, ...]:
    """Return the tags of a scenario that are markers. All of its tags are keywords (``-k``)."""
    own = config.stash.get(_OWN_MARKERS, set())
    return tuple(tag for tag in _tags_of(scenario) if tag in own)


def _tags_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the tags and the category. pytest has no markers that begin with an underscore."""
    return tuple(tag for tag in (*scenario.tags, scenario.category.value) if not tag.startswith("_"))


def _name_of(line: str) -> str:
    """Return the name of a marker that is registered as ``name(arguments): description``."""
    return line.partition(":")[0].partition("(")[0].strip()


def _markers_in_file(config: pytest.Config) -> list[str]:
    """Return the markers that the project itself registers, if pytest tells them apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the attribute is deprecated, and there is no other way
        value: Any = getattr(config, "inicfg", {}).get("markers")
    value = getattr(value, "value", value)
    return value.splitlines() if isinstance(value, str) else list(value or ())
