"""What the repeated runs of a scenario show together, through the command line."""

import re

import pytest

from tests.support.kit import Project

AGENT = """
    def agent(messages, ctx):
        flaky = ctx.scenario_id == "flaky" and ctx.epoch in (1, 3)
        if ctx.scenario_id == "lost" and ctx.epoch == 2:
            raise ConnectionRefusedError("down")
        return "no" if flaky or ctx.scenario_id == "never" else "yes"
"""


@pytest.fixture
def ran(project: Project) -> Project:
    project.config("epochs: 4\n")
    project.agent(AGENT)
    entries = "".join(
        f"  - {{id: {name}, input: hello, expected_output_contains: ['yes']}}\n"
        for name in ("always", "flaky", "never", "lost")
    )
    project.scenarios(f"cases:\n{entries}")
    return project


def test_stability_is_how_all_epochs_of_a_scenario_ended(ran: Project) -> None:
    done = ran.run()
    assert done.code == 1
    found = {s["id"]: s["statistics"] for s in ran.results()["scenarios"]}
    assert {name: s["stability"] for name, s in found.items()} == {
        "always": "stable pass",
        "flaky": "flaky",
        "never": "stable fail",
        "lost": "not known",  # three passed, and the one that was lost may have failed
    }
    assert (found["flaky"]["successes"], found["flaky"]["decided"], found["flaky"]["planned"]) == (2, 4, 4)
    assert found["lost"]["decided"] == 3
    # Wilson's interval of 2 in 4 at 95 %.
    assert found["flaky"]["low"] == pytest.approx(0.1500, abs=1e-4)
    assert found["flaky"]["high"] == pytest.approx(0.8500, abs=1e-4)
    assert re.search(r"flaky: +flaky \(2 of 4\)", done.out)


def test_pass_hat_k_and_pass_at_k_are_averaged_over_scenarios(ran: Project) -> None:
    ran.run("-s", "always", "-s", "flaky", "-s", "never")
    found = ran.results()["summary"]["statistics"]
    # C(2,k)/C(4,k) and 1 - C(2,k)/C(4,k) for the flaky one, 1 and 0 for the others.
    assert found["pass_hat_k"] == {
        "1": pytest.approx(1.5 / 3),
        "2": pytest.approx((1 + 1 / 6) / 3),
        "3": pytest.approx(1 / 3),
        "4": pytest.approx(1 / 3),
    }
    assert found["pass_at_k"]["2"] == pytest.approx((1 + 5 / 6) / 3)
    rates = found["rates"]["these_scenarios"]
    assert rates["value"] == pytest.approx(0.5)
    assert rates["low"] < 0.5 < rates["high"]


def test_k_goes_no_further_than_every_scenario_has_epochs(ran: Project) -> None:
    ran.run()
    assert set(ran.results()["summary"]["statistics"]["pass_hat_k"]) == {"1", "2", "3"}
