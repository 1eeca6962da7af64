"""``agenteval.scenarios``: scenarios as the parameters of a test function, with fixtures and marks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import pytest

from agenteval.api.pytest_runs import (
    PytestRun,
    RunOutcomes,
    ScenarioFailedError,
    check,
    item_name,
    load_items,
)
from agenteval.api.requests import RunOptions, make_request
from agenteval.core.errors import AuthorError
from agenteval.core.plan import Pairing
from agenteval.core.score import Verdict

GATES = "gates"


class ScenarioParameter(NamedTuple):
    """The parameter of one test."""

    run: PytestRun
    pairing: Pairing | None
    """The scenario and the agent; None for the gates over the run."""


def scenarios(*paths: str | os.PathLike[str], **options: Unpack[RunOptions]) -> Callable[..., None]:
    """Return a test function with one test per scenario, for a test file: ``test_bot =
    agenteval.scenarios("scenarios/")``. The arguments are those of ``run``; a relative path is relative to
    the working directory or, if it does not exist there, to the root folder of pytest.

    The tests of one function share one run, and its gates are the last test. The agent can be provided by a
    fixture ``agenteval_agent`` with the scope ``session``."""

    @pytest.mark.agenteval
    @pytest.mark.agenteval_scenarios(paths, options)
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
    from agenteval.api.pytest_scenarios import tags_of

    paths, options = mark.args
    config = metafunc.config
    here = [path if os.path.exists(path) else os.path.join(config.rootpath, path) for path in paths]
    try:
        loaded = load_items(make_request(here, "scenarios", options))
    except AuthorError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    run = PytestRun(config, loaded, key=metafunc.definition.nodeid)
    parameters = []
    for pairing, samples in loaded.pairings.items():
        tags = tags_of(samples[0].scenario)
        for tag in tags:
            config.addinivalue_line("markers", f"{tag}: a tag of agenteval scenarios")
        marks = [getattr(pytest.mark, tag) for tag in tags]
        parameters.append(
            pytest.param(ScenarioParameter(run, pairing), id=item_name(pairing, loaded), marks=marks)
        )
    for scenario in loaded.skipped:
        skip = pytest.mark.skip(reason=scenario.skip)
        parameters.append(pytest.param(ScenarioParameter(run, None), id=scenario.id, marks=skip))
    parameters.append(pytest.param(ScenarioParameter(run, None), id=GATES))
    metafunc.parametrize("agenteval_scenario", parameters, indirect=True)


def prepare_check(request: pytest.FixtureRequest, agent: Any) -> Callable[[], None]:
    """Wait for the run of a test, and return the function that fails if its scenario failed. An undecided
    scenario raises here, in the setup of the test, so that it is an error and not a failure."""
    parameter: ScenarioParameter = request.param
    params = [
        item.callspec.params.get("agenteval_scenario")
        for item in request.session.items
        if hasattr(item, "callspec")
    ]
    chosen = {each.pairing for each in params if each and each.run is parameter.run and each.pairing}
    if not chosen:
        pytest.skip("no scenario is selected")
    outcomes = parameter.run.outcomes(chosen, agent)
    if parameter.pairing is None:
        return lambda: _fail_for_gates(outcomes)
    outcome = check(outcomes.outcome(parameter.pairing))

    def fail_if_failed() -> None:
        __tracebackhide__ = True
        if outcome.verdict is Verdict.FAILED:
            raise ScenarioFailedError(outcome.text)

    return fail_if_failed


def _fail_for_gates(outcomes: RunOutcomes) -> None:
    from agenteval.api.pytest_scenarios import check_gates

    __tracebackhide__ = True
    check_gates(outcomes, Verdict.FAILED, ScenarioFailedError)
