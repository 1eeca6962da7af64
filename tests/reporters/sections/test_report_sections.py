"""What a reporter of the author's is given."""

from __future__ import annotations

import tests.support.report_samples as samples
from agenteval.core.decision import Decision
from agenteval.core.score import Verdict
from agenteval.reporters.sections.report_sections import ReportSections, make_report_sections
from agenteval.reporters.sections.section import Item, LocationCell, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.report import Report


def sections(made: tuple[Report, Decision]) -> ReportSections:
    return make_report_sections(Facts(*made), ".")


def test_a_run_that_failed() -> None:
    report, decision = samples.mixed("bot")
    given = sections((report, decision))
    assert (given.run, given.verdict, given.exit_code) == (report.run.run_id, "failed", 1)
    assert given.headline.startswith("INCOMPLETE: ")  # a sample never ran
    assert "(exit 1)" in given.headline
    assert given.gates == decision.gates
    for each, source in zip(given.scenarios, report.scenarios, strict=True):
        assert (each.id, each.agent) == (source.scenario.id, source.agent)
        assert each.verdict is decision.scenarios[each.id, each.agent].verdict
        assert bool(each.reason) is (each.verdict is not Verdict.PASSED)
        assert each.samples == len(source.samples) + len(source.missing)
        assert 0 <= each.passed <= each.samples
    assert {each.verdict for each in given.scenarios} > {Verdict.FAILED}
    assert given.sections == tuple(given)
    titles = [section.title for section in given]
    assert {"What gated this run", "Scenarios", "Failures", "Usage"} <= set(titles)


def test_a_run_that_passed_has_no_failures() -> None:
    given = sections(samples.passing())
    assert (given.verdict, given.exit_code) == ("passed", 0)
    assert {each.reason for each in given.scenarios} == {""}
    assert "Failures" not in [section.title for section in given]


def test_each_failure_names_its_reasons_and_its_command() -> None:
    given = sections(samples.mixed("bot"))
    (failures,) = [section for section in given if section.title == "Failures"]
    assert failures.notes
    for note in failures.notes:
        assert isinstance(note, Item)
        assert "agenteval run" in str(note)


def test_the_text_of_a_cell() -> None:
    item = Item(("a ", StyledText("b", Tone.BAD)), ("c", "", StyledText("d")))
    assert str(item) == "a b\n  c\n  d"
    assert [str(cell) for cell in (Verdict.FAILED, LocationCell("a.yaml:2"), "x")] == [
        "failed",
        "a.yaml:2",
        "x",
    ]
