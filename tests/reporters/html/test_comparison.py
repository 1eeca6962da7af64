"""The comparison of two runs as a page: its head, its tables, and how much it shows."""

from __future__ import annotations

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.html import sections
from agenteval.reporters.html.comparison import render
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.comparison import RunComparison, ScenarioState, UncomparedScenario
from tests.support.pages import Node, packed_in, read_html

HOSTILE = "</td><script>alert(1)</script>"


def comparison(verdict: Verdict, count: int = 1, *, after: str = "r2", name: str = "s") -> RunComparison:
    apart = tuple(
        UncomparedScenario(id=f"{name}{n}", agent="bot", state=ScenarioState.NEW, before=None, after=None)
        for n in range(count)
    )
    code = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]
    fields = {"before": "r1", "after": after, "margin": 0.1, "confidence": 0.95, "agents": ()}
    return RunComparison.model_validate({"verdict": verdict, "exit_code": code, "apart": apart, **fields})


def page(compared: RunComparison) -> Node:
    return read_html(render(compared, ReportOptions()))


@pytest.mark.parametrize(
    ("verdict", "head", "code"),
    [
        (Verdict.PASSED, "✓ NO REGRESSION", 0),
        (Verdict.FAILED, "✗ REGRESSED", 1),
        (Verdict.INCONCLUSIVE, "? NOT DECIDED", 3),
    ],
)
def test_the_head_has_the_verdict_and_its_reason(verdict: Verdict, head: str, code: int) -> None:
    found = page(comparison(verdict))
    title = found.one("h1")
    assert (title.one("span").text, title.one("span").kinds) == (head, ["verdict", verdict.value])
    assert title.text.startswith(f"{head} ")
    assert f"(exit {code})" in title.text
    assert "1 new" in title.text
    assert found.one("title").text == "agenteval · r2 against r1"


def test_one_view_has_the_sections() -> None:
    found = page(comparison(Verdict.PASSED, 2))
    assert [each.text for each in found.one(id="views").all("a")] == ["Comparison"]
    view = found.one("section", id="/")
    assert [each.text for each in view.below if each.name in ("h2", "h3", "h4")] == [
        "Comparison",
        "r2 against r1",
        "Not compared: 2 new",
    ]
    assert [row[:2] for row in view.rows()] == [["s0", "new"], ["s1", "new"]]


def test_there_is_no_data_and_no_word_about_it() -> None:
    assert packed_in(render(comparison(Verdict.PASSED), ReportOptions())) == {}
    assert page(comparison(Verdict.PASSED)).one("footer").text == ""


def test_each_link_leads_somewhere() -> None:
    found = page(comparison(Verdict.PASSED))
    skip = found.one("a", "skip")
    assert found.one(id=(skip.attributes["href"] or "").removeprefix("#")).name == "main"
    assert found.one(id="main").all("section", id="/")
    for link in found.all("a"):
        assert found.all(id=(link.attributes["href"] or "").removeprefix("#")), link


def test_names_are_short_and_escaped() -> None:
    found = page(comparison(Verdict.PASSED, after="x" * 61, name=HOSTILE))
    assert found.one("title").text == f"agenteval · {'x' * 59}… against r1"
    assert found.one("section", id="/").rows()[0][0] == f"{HOSTILE}0"
    assert [node.attributes.get("id") for node in found.all("script")] == [None, "end"]


def test_a_long_comparison_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "MOST_ROWS", 3)
    found = page(comparison(Verdict.PASSED, 5)).one("section", id="/")
    assert len(found.rows()) == 3
    assert found.all("p", "quiet")[0].text.startswith("… and 2 more")
