"""The table of usage by role: who is in it, estimates, and unknown prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agenteval.core.trajectory import Usage
from agenteval.reporters.sections.section import Section
from agenteval.reporters.sections.usage import usage
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.report_samples import passing
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import PASS, report_of


def sections(used: Mapping[str, Usage]) -> list[Section]:
    report = replace(report_of({"a": [PASS]}), usage=used, ledger=())
    return list(usage(Facts(report, decide(report))))


def test_a_run_that_used_nothing_has_no_section() -> None:
    assert sections({}) == []
    assert sections({"agent": Usage(), "judge": Usage()}) == []


@pytest.mark.parametrize(
    ("spent", "cells"),
    [
        (Usage(calls=1), ("1", "not reported", "not reported", "", "not reported", "price unknown")),
        (
            Usage(calls=1200, input_tokens=5000, cached_tokens=4000, output_tokens=30, cost=0.5),
            ("1,200", "5,030", "5,000", "4,000", "30", "0.5000 USD"),
        ),
        (
            Usage(calls=1, input_tokens=5, output_tokens=3, cost=0.5, estimated=True),
            ("1", "≈ 8", "≈ 5", "≈ 0", "≈ 3", "≈ 0.5000 USD"),
        ),
        (
            Usage(calls=1, estimated=True),
            ("1", "not reported", "not reported", "", "not reported", "price unknown"),
        ),
        (
            Usage(calls=2, output_tokens=9000, unsplit=True),
            ("2", "9,000", "not reported", "", "not reported", "price unknown"),
        ),
        (
            Usage(calls=2, output_tokens=90, unsplit=True, estimated=True, cost=0),
            ("2", "≈ 90", "not reported", "", "not reported", "≈ 0 USD"),
        ),
        (Usage(cached_calls=3, cost=0), ("0 (and 3 cached)", "0", "0", "0", "0", "0 USD")),
        (
            Usage(calls=1, cached_calls=1500, cost=0),
            ("1 (and 1,500 cached)", "not reported", "not reported", "", "not reported", "0 USD"),
        ),
    ],
)
def test_the_cells_of_a_role(spent: Usage, cells: tuple[str, ...]) -> None:
    (section,) = sections({"user": Usage(), "agent": spent})
    assert section.rows == (("agent", *cells),)
    assert len(section.columns) == len(section.rows[0])


@pytest.mark.parametrize(("estimated", "notes"), [(True, 1), (False, 0)])
def test_the_sign_of_an_estimate_is_explained_where_it_occurs(estimated: bool, notes: int) -> None:
    (section,) = sections({"agent": Usage(calls=1), "judge": Usage(calls=1, estimated=estimated)})
    assert [str(note)[0] for note in section.notes] == ["≈"] * notes


def test_roles_keep_their_order_and_the_sum_and_unknown_prices_follow() -> None:
    (section,) = usage(Facts(*judged_run()))
    assert [row[0] for row in section.rows] == ["agent", "user", "judge", "dedup"]
    total, *unknown = map(str, section.notes)
    assert "0.0430 USD" in total
    assert all("price" in line for line in unknown)
    assert unknown


def test_scripted_replies_have_no_price() -> None:
    (section,) = usage(Facts(*judged_run(scripted=True)))
    assert {row[0]: str(row[-1]).partition(":")[0] for row in section.rows} == {
        "agent": "price unknown",
        "user": "scripted",
        "judge": "scripted",
        "dedup": "scripted",
    }


def test_replies_that_are_partly_scripted_are_counted() -> None:
    report, decision = judged_run()
    (first, *others) = report.scenarios
    (sample, *samples) = first.samples
    scores = [score.model_copy(update={"scripted": True}) for score in sample.scores]
    changed = replace(first, samples=(replace(sample, scores=tuple(scores)), *samples))
    (section,) = usage(Facts(replace(report, scenarios=(changed, *others)), decision))
    (judge,) = [row for row in section.rows if row[0] == "judge"]
    assert judge[-1] == f"{len(scores)} replies scripted"


def test_without_models_only_the_agent_is_there() -> None:
    (section,) = usage(Facts(*passing()))
    assert [row[0] for row in section.rows] == ["agent"]
