"""``agenteval.scenarios``: scenarios as the parameters of a test function, with fixtures and marks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pytest

from agenteval.api.pytest_runs import (
    FIXTURE_AGENT,
    LoadedItems,
    PytestRun,
    RunOutcomes,
    ScenarioFailedError,
    check,
    item_name,
    load_items,
)
from agenteval.api.requests import RunOptions, ScenarioSource, make_request
from agenteval.core.errors import AuthorError
from agenteval.core.plan import Pairing
from agenteval.core.score import Verdict
from agenteval.files.config_file import find_config
from agenteval.planning.suite import load_config
from agenteval.running.registries import REGISTRIES

GATES = "gates"


class ScenarioParameter(NamedTuple):
    """The parameter of one test."""

    group: TestGroup
    pairing: Pairing | None
    """The scenario and the agent; None for the gates over the run."""
    name: str
    """The name in the id of the test."""


class TestGroup:
    """The tests of one ``agenteval.scenarios``. They share one run, or one for each combination of the other
    parameters that the tests have, such as those of a parametrized agent."""

    __test__ = False

    def __init__(self, config: pytest.Config, loaded: LoadedItems, key: str, options: RunOptions) -> None:
        self._config = config
        self._loaded = loaded
        self._key = key
        self._has_own_agent = options.get("agent") is not None
        self._runs: dict[str, PytestRun] = {}

    def run(self, others: str) -> PytestRun:
        """Return the run for the other parameters, which are given by their part of the id of a test."""
        if others not in self._runs:
            key = f"{self._key}[{others}]" if others else self._key
            self._runs[others] = PytestRun(self._config, self._loaded, key, has_own_agent=self._has_own_agent)
        return self._runs[others]


def scenarios(
    *sources: ScenarioSource | Iterable[ScenarioSource], **options: Unpack[RunOptions]
) -> Callable[..., None]:
    """Return a test function with one test per scenario, for a test file: ``test_bot =
    agenteval.scenarios("scenarios/")``. The arguments are those of ``run``. The configuration is the nearest
    one above the test file; a relative path is relative to its folder, or to the root folder of pytest.

    The tests of one function share one run, and its gates are the last test. A fixture ``agenteval_agent``
    provides the agent unless ``agent`` is given."""

    @pytest.mark.agenteval
    @pytest.mark.agenteval_scenarios(sources, options)
    def test_scenario(agenteval_scenario: Callable[[], None]) -> None:
        __tracebackhide__ = True
        agenteval_scenario()

    caller = sys._getframe(1)
    # pytest and editors show a test where its code is.
    test_scenario.__code__ = test_scenario.__code__.replace(
        co_filename=caller.f_code.co_filename, co_firstlineno=caller.f_lineno
    )
    return test_scenario


def parametrize(metafunc: pytest.Metafunc, mark: pytest.Mark) -> None:
    """Make a parameter of each scenario. Raise ``Collector.CollectError`` for mistakes in the files."""
    from agenteval.api.pytest_scenarios import markers_of, register_tags

    sources, options = mark.args
    config = metafunc.config
    try:
        loaded = _load(sources, options, metafunc.definition.path.parent, config.rootpath)
    except (AuthorError, TypeError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    group = TestGroup(config, loaded, metafunc.definition.nodeid, options)
    register_tags(loaded, config)
    parameters = []
    for pairing, samples in loaded.pairings.items():
        marks = [getattr(pytest.mark, tag) for tag in markers_of(samples[0].scenario, config)]
        name = item_name(pairing, loaded)
        parameters.append(pytest.param(ScenarioParameter(group, pairing, name), id=name, marks=marks))
    for scenario in loaded.skipped:
        skip = pytest.mark.skip(reason=scenario.skip)
        skipped = ScenarioParameter(group, None, scenario.id)
        parameters.append(pytest.param(skipped, id=scenario.id, marks=skip))
    parameters.append(pytest.param(ScenarioParameter(group, None, GATES), id=GATES))
    metafunc.parametrize(_PARAMETER, parameters, indirect=True)


def _load(sources: Sequence[Any], options: RunOptions, folder: Path, rootpath: Path) -> LoadedItems:
    """Load the scenarios. ``folder`` is that of the test file."""
    given: list[ScenarioSource] = []
    for source in sources:
        given += [source] if isinstance(source, str | os.PathLike | Mapping) else source
    config = options.get("config") or find_config(folder)
    base = Path(config).parent if config else rootpath
    given = [each if isinstance(each, Mapping) else os.path.join(base, each) for each in given]
    chosen: Any = {**options, "config": config} if config else options
    request = make_request(given if sources else None, "scenarios", chosen)
    if request.agent is None and not load_config(request, REGISTRIES).config.all_agents:
        request = replace(request, agent=FIXTURE_AGENT)
    return load_items(request)


_PARAMETER = "agenteval_scenario"


def prepare_check(request: pytest.FixtureRequest, agent: Any) -> Callable[[], None]:
    """Wait for the run of a test, and return the function that fails if its scenario failed. An undecided
    scenario raises here, in the setup of the test, so that it is an error and not a failure."""
    parameter: ScenarioParameter = request.param
    node: Any = request.node
    others = _other_parameters(node)
    items: list[Any] = [item for item in request.session.items if hasattr(item, "callspec")]
    alike = [
        item.callspec.params[_PARAMETER]
        for item in items
        if _PARAMETER in item.callspec.params and _other_parameters(item) == others
    ]
    chosen = {each.pairing for each in alike if each.group is parameter.group and each.pairing}
    if not chosen:
        pytest.skip("no scenario is selected")
    outcomes = parameter.group.run(others).outcomes(chosen, agent)
    if parameter.pairing is None:
        return lambda: _fail_for_gates(outcomes)
    outcome = check(outcomes.outcome(parameter.pairing))

    def fail_if_failed() -> None:
        __tracebackhide__ = True
        if outcome.verdict is Verdict.FAILED:
            raise ScenarioFailedError(outcome.text)

    return fail_if_failed


def _other_parameters(item: Any) -> str:
    """Return the id of a test without the name of its scenario: the parameters that the test has besides. Any
    of them may change what the agent does."""
    name = item.callspec.params[_PARAMETER].name
    parts = f"-{item.callspec.id}-".split(f"-{name}-", 1)
    return "|".join(part.strip("-") for part in parts if part.strip("-"))


def _fail_for_gates(outcomes: RunOutcomes) -> None:
    from agenteval.api.pytest_scenarios import check_gates

    __tracebackhide__ = True
    check_gates(outcomes, Verdict.FAILED, ScenarioFailedError)
