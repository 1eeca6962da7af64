"""The page as a file: what its policy allows, its views, its data, and text that nobody may trust."""

from __future__ import annotations

import json
import random
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from math import inf, nan
from typing import Any

import pytest

from agenteval.cli.safe_output import clean_output
from agenteval.core.decision import Decision
from agenteval.core.event import Baseline
from agenteval.core.finished_text import for_encoding
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import Step, Turn
from agenteval.files.judge_request_log import StoredRequests
from agenteval.reporters.html import conversations, overview, sections
from agenteval.reporters.html import views as views_module
from agenteval.reporters.html.document import View, make_page, render
from agenteval.reporters.html.markup import Markup, element
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report, build_report
from tests.support.known_secrets import known_secrets
from tests.support.leaked_reports import LEAKED, MASKED, leak, leaking
from tests.support.pages import Node, index_of, packed_in, read_html, records_in, without_data
from tests.support.report_samples import conversation, hostile, mixed, started
from tests.support.report_samples import decide as decide_plainly
from tests.support.score_samples import judged_run
from tests.support.synthetic_runs import REAL_TURNS, TURNS, synthetic_run
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, finding, report_of, score

OPTIONS = ReportOptions()


def page(report: Report, options: ReportOptions = OPTIONS, **decision: Any) -> str:
    return render(report, replace(decide(report), **decision), options)


def asking(requests: StoredRequests | None) -> ReportOptions:
    return ReportOptions(judge_requests=lambda: requests)


def request(name: str = "a", *, prompt: str = "p") -> StoredRequests:
    key = SampleKey(scenario=name, agent="bot")
    line = {"asked": {"system": "s", "prompt": [prompt]}, "role": "judge", "metric": "help"}
    return StoredRequests({"s": "You judge.", "p": "The prompt."}, {key: [line]})


PAGE = page(report_of({"a": [PASS], "b": [FAIL]}))
BASELINE = Baseline(run_id="r0", outcomes={"bot": {"a": (True,)}})

# ── what the policy allows ───────────────────────────────────────────────────────────────────────


def between(text: str, start: str, end: str) -> str:
    (found,) = re.findall(f"{re.escape(start)}(.*?){re.escape(end)}", text, re.DOTALL)
    assert isinstance(found, str)
    return found


def policy(text: str) -> dict[str, str]:
    meta = read_html(text).one("meta", **{"http-equiv": "Content-Security-Policy"})
    parts = (part.strip().partition(" ") for part in (meta.attributes["content"] or "").split(";"))
    return {name: value for name, _, value in parts}


def digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("text", [PAGE, page(report_of({"a": [LOST]}), asking(request()))])
def test_the_policy_allows_this_script_and_this_style_alone(text: str) -> None:
    """The hashes are those of what stands in the file, to the byte."""
    assert policy(text) == {
        "default-src": "'none'",
        "script-src": digest(between(text, "<script>", "</script>")),
        "style-src": digest(between(text, "<style>", "</style>")),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }


def test_the_policy_comes_before_all_that_it_governs() -> None:
    head = read_html(PAGE).one("head")
    assert [each.name for each in head.below][:2] == ["meta", "meta"]
    assert "charset" in head.below[0].attributes
    assert head.below[1].attributes["http-equiv"] == "Content-Security-Policy"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_the_hashes_hold_after_the_output_is_cleaned(encoding: str) -> None:
    """On any screen: what it cannot show is replaced, which the script and the style have nothing of."""
    text = for_encoding(clean_output(PAGE, "html"), encoding)
    assert digest(between(text, "<script>", "</script>")) == policy(text)["script-src"]
    assert digest(between(text, "<style>", "</style>")) == policy(text)["style-src"]
    assert "\\u" not in between(PAGE, "<style>", "</style>")  # which CSS does not know


def scripts(text: str) -> list[Node]:
    return read_html(text).all("script")


def test_no_script_ends_early() -> None:
    """A browser ends a script at ``</script`` and does not at ``<!--`` followed by ``<script``."""
    script, *data = scripts(PAGE)
    assert "type" not in script.attributes
    assert [node.attributes["type"] for node in data] == ["text/plain"] * 3
    for node in (*data, script):
        assert "</script" not in node.text.lower()
        assert "<script" not in node.text.lower()
        assert "<!--" not in node.text
        assert "]]>" not in node.text
    assert all("<" not in node.text for node in data)
    assert "</style" not in between(PAGE, "<style>", "</style>").lower()


def test_the_script_stands_in_the_head_and_waits_for_the_rest() -> None:
    whole = read_html(PAGE)
    (script,) = whole.one("head").all("script")
    assert 'addEventListener("DOMContentLoaded"' in script.text


@pytest.mark.parametrize("text", [PAGE, make_page("t", iter(()), [])])
def test_the_last_element_tells_a_file_that_was_cut_off(text: str) -> None:
    last = read_html(text).one("body").below[-1]
    assert last.attributes == {"type": "text/plain", "id": "end"}
    assert last.content == []


def test_nothing_is_fetched() -> None:
    """The page and its parts name no address, and nothing but the icon names a resource."""
    assert "http://" not in PAGE
    assert "https://" not in PAGE
    nodes = read_html(PAGE).below
    assert [node.name for node in nodes if "src" in node.attributes] == []
    assert {node.attributes["href"] for node in nodes if node.name == "link"} == {"data:,"}
    assert {node.name for node in nodes}.isdisjoint({"iframe", "object", "embed", "form", "img", "base"})
    assert {(node.attributes.get("href") or "#")[0] for node in nodes if node.name == "a"} == {"#"}


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def test_the_file_is_whole() -> None:
    whole = read_html(PAGE)
    assert PAGE.startswith('<!doctype html>\n<html lang="en">\n')
    assert PAGE.endswith("</script>\n</body>\n</html>\n")
    assert [each.name for each in whole.one("html").content if isinstance(each, Node)] == ["head", "body"]
    assert whole.one("head").one("title").text == "agenteval · failed: 20261121-101500-ab12"
    names = {
        node.attributes["name"]: node.attributes["content"]
        for node in whole.all("meta")
        if "name" in node.attributes
    }
    assert names == {
        "viewport": "width=device-width, initial-scale=1",
        "color-scheme": "light dark",
        "referrer": "no-referrer",
        "robots": "noindex",
    }


def test_each_id_is_there_once() -> None:
    text = page(*judged_run()[:1])
    ids = [node.attributes["id"] for node in read_html(text).below if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert {
        "/",
        "list",
        "list-title",
        "list-tools",
        "list-more",
        "views",
        "conversation",
        "status",
        "index",
    } <= set(ids)


def test_a_reader_of_the_page_alone_can_skip_to_the_content() -> None:
    whole = read_html(PAGE)
    first = whole.one("header").below[0]
    assert (first.text, first.attributes["href"]) == ("To the content", "#main")
    assert whole.one(id="main").name == "main"
    assert whole.one(id="status").attributes["role"] == "status"
    assert "hidden" in whole.one(id="conversation").attributes


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "agenteval · passed: 20261121-101500-ab12"),
        ({"is_reported": True}, "agenteval · reported: 20261121-101500-ab12"),
    ],
)
def test_the_title_has_the_verdict_and_the_run(changes: dict[str, Any], title: str) -> None:
    assert read_html(page(report_of({"a": [PASS]}), **changes)).one("title").text == title


def test_the_title_is_one_short_line() -> None:
    report = report_of({"a": [PASS]})
    report = replace(report, run=report.run.model_copy(update={"run_id": f"r\n{'1' * 99}"}))
    assert read_html(page(report)).one("title").text == f"agenteval · passed: r {'1' * 57}…"


# ── views ────────────────────────────────────────────────────────────────────────────────────────


def views(text: str) -> list[tuple[str | None, str]]:
    """The links to the views."""
    return [(each.attributes["href"], each.text) for each in read_html(text).one(id="views").all("a")]


def test_views_stand_in_one_order() -> None:
    report, decision = judged_run()
    report = replace(report, run=report.run.model_copy(update={"baseline": BASELINE}))
    text = render(report, decision, OPTIONS)
    expected = [
        ("#/", "Results"),
        ("#/issues", "Issues (3)"),
        ("#/gates", f"Gates ({len(decision.gates)})"),
        ("#/compare", "Against the baseline"),
        ("#/figures", "Figures"),
        ("#/run", "Run"),
    ]
    assert views(text) == expected
    sections = read_html(text).one("main").all("section", "view")
    assert [f"#{node.attributes['id']}" for node in sections] == [
        *(href for href, _ in expected),
        "#conversation",
    ]
    titles = [node.all("h2")[0] for node in sections[:-1]]
    assert [node.text for node in titles] == [name for _, name in expected]
    assert [node.kinds for node in titles] == [["unseen"], *[[]] * 5]


def test_without_a_baseline_there_is_no_such_view() -> None:
    assert "#/compare" not in dict(views(PAGE))


def test_a_view_without_content_is_left_out() -> None:
    shown = [View("", "A", (element("p", "x"),)), View("b", "B", ()), View("c", "C", (Markup("y"),))]
    assert views(make_page("t", iter(()), shown)) == [("#/", "A"), ("#/c", "C")]


def test_each_link_within_the_page_leads_somewhere() -> None:
    report, decision = judged_run()
    whole = read_html(render(report, decision, OPTIONS))
    ids = {node.attributes["id"] for node in whole.below if "id" in node.attributes}
    for link in whole.all("a"):
        path = (link.attributes["href"] or "").partition("?")[0].removeprefix("#")
        assert path in ids or path.startswith("/c/"), link


# ── the data ─────────────────────────────────────────────────────────────────────────────────────


def test_the_index_has_what_the_script_reads() -> None:
    report = report_of({"a": [FAIL, None], "b": [PASS]}, agents=("x", "y"))
    index = index_of(page(report))
    rows = index.pop("rows")
    assert index == {
        "run": "20261121-101500-ab12",
        "log": False,
        "agents": ["x", "y"],
        "columns": [],
        "metrics": {"stars": "stars"},
        "issues": {},
        "requests": False,
    }
    assert [(row["id"], row["agent"]) for row in rows] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    assert rows[0]["epochs"] == [[0, "", "failed", 0, 0], [1, "", "inconclusive"]]
    assert rows[3]["epochs"] == [[0, "", "passed", 0, 3]]


def test_issues_and_columns_of_the_index() -> None:
    report, decision = judged_run()
    index = index_of(render(report, decision, OPTIONS))
    assert index["issues"] == {
        "I1": "Claims a booking that was never made",
        "I2": "criterion not met: Confirms the date",
        "I3": "repetition",
    }
    assert index["columns"] == [["helpfulness", "help"], ["goal_completion", "goal"]]
    assert index["metrics"] == {
        "help": "helpfulness", "coher": "coherence", "relev": "relevance", "faith": "faithfulness",
        "verb": "verbosity", "goal": "goal_completion", "policy": "policy_adherence",
        "behav": "agent_behavior_failure", "tools": "tool_call_behavior_failure",
    }  # fmt: skip
    scores = {row["id"]: row["scores"] for row in index["rows"]}
    assert scores["book-morning"] == ["3.0 ✗", "1/2 ✓"]
    assert scores["C-01"] == ["4.0", "–"]


@pytest.mark.parametrize("is_reported", [True, False])
def test_the_index_says_if_it_is_a_log(is_reported: bool) -> None:
    assert index_of(page(report_of({"a": [PASS]}), is_reported=is_reported))["log"] is is_reported


def test_each_row_leads_to_its_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "BLOCK", 1)
    text = page(report_of({"a": [PASS, FAIL], "b": [LOST], "c": [PASS]}))
    packed = packed_in(text)
    assert set(packed) == {"index", "block-0", "block-1", "block-2", "block-3"}
    for row in index_of(text)["rows"]:
        for epoch, _, verdict, block, line in row["epochs"]:
            record = records_in(packed[f"block-{block}"])[line]
            assert (record["scenario"], record["sample"]["epoch"]) == (row["id"], epoch)
            assert record["sample"]["verdict"] == verdict


def test_requests_to_judges_are_there_if_they_were_stored() -> None:
    report = report_of({"a": [PASS]})
    text = page(report, asking(request()))
    assert index_of(text)["requests"] == 1
    assert json.loads(packed_in(text)["requests-0"])["texts"] == {"s": "You judge.", "p": "The prompt."}
    for options in (OPTIONS, asking(None)):
        without = page(report, options)
        assert index_of(without)["requests"] == 0
        assert set(packed_in(without)) == {"index", "block-0"}


def test_a_run_whose_judges_were_asked_nothing_has_no_requests() -> None:
    text = page(report_of({"a": [FAIL]}), asking(StoredRequests({}, {})))
    assert index_of(text)["requests"] == 0
    assert set(packed_in(text)) == {"index", "block-0"}


def test_numbers_that_are_none_are_no_numbers_of_the_data() -> None:
    """A browser reads neither NaN nor Infinity."""
    turns = tuple(Turn(user="hi", steps=(Step(text="x"),), latency_ms=ms) for ms in (inf, nan))
    key = SampleKey(scenario="a", agent="bot")
    rated = {None: (score("stars", nan),)}
    report = build_report([started((Scenario(id="a", name="a"),), (key,)), *conversation(key, turns, rated)])
    packed = packed_in(page(report))
    _, *lines = packed.pop("block-0").split("\n")
    for text in (*packed.values(), *lines):
        json.loads(text, parse_constant=pytest.fail)


def test_the_name_of_the_run_is_in_its_commands() -> None:
    record = records_in(packed_in(PAGE)["block-0"])[0]
    assert record["show"] == "agenteval show 20261121-101500-ab12 b@1"


# ── what is left out ─────────────────────────────────────────────────────────────────────────────


def notes(text: str) -> list[str]:
    return [each.text for each in read_html(text).one("footer").all("p")]


def test_the_last_words_say_who_can_read_the_conversations() -> None:
    (note,) = notes(PAGE)
    assert note.startswith("This file contains the conversations of the run")


def test_it_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of({"a": [FAIL], "b": [PASS], "c": [PASS, PASS]})
    monkeypatch.setattr(conversations, "BLOCK", 1)
    monkeypatch.setattr(conversations, "most_bytes", lambda count: 10)
    text = page(report, asking(request()))
    judges, _ = notes(text)
    assert judges.startswith("What the judges were asked about 1 conversation is left out")
    assert "`agenteval show ID --judge`" in judges
    assert index_of(text)["requests"] == 0
    monkeypatch.setattr(conversations, "MOST_BYTES", 10)
    text = page(report, asking(request()))
    judges_again, passed, _ = notes(text)
    assert judges_again == judges
    assert passed.startswith("3 conversations that passed left out")
    assert "`agenteval show ID`" in passed
    assert [row["epochs"] for row in index_of(text)["rows"]] == [
        [[0, "", "failed", 0, 0]],
        [[0, "", "passed"]],
        [[0, "", "passed"], [1, "", "passed"]],
    ]
    one = page(report_of({"a": [FAIL], "b": [PASS]}))
    assert notes(one)[0].startswith("1 conversation that passed left out")


# ── text that nobody may trust ───────────────────────────────────────────────────────────────────

TEXTS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onclick="alert(1)" style="color:red" x=\'',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<!--<script>",
    "--></style></title></textarea>",
    "&lt;b&gt;&#x3c;",
    "a\u2028b\u202ec\x00d\x1b[2Je\ufefff",
    "half \ud83d pair",
    "]]><![CDATA[x",
    "{{constructor.constructor('alert(1)')()}}",
]


def hostile_page(text: str) -> tuple[Report, Decision]:
    """A report in which every text is this one, and the run and its baseline have its name."""
    report, decision = hostile(text)
    baseline = Baseline(
        run_id=text, outcomes={text: {text: (True,)}}, gone=(text,), changed={text: {"x": text}}
    )
    return replace(report, run=report.run.model_copy(update={"baseline": baseline, "run_id": text})), decision


def shapes(text: str) -> set[tuple[str, ...]]:
    """The elements of a page with the names of their attributes."""
    return {(node.name, *sorted(node.attributes)) for node in read_html(text).below}


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_text(text: str) -> None:
    shown = render(*hostile_page(text), OPTIONS)
    whole = read_html(shown)
    assert shapes(shown) == shapes(render(*hostile_page("plain"), OPTIONS))
    assert [node.attributes.get("id") for node in whole.all("script")] == [None, "index", "block-0", "end"]
    assert {(node.attributes["href"] or "")[0] for node in whole.all("a")} == {"#"}
    assert digest(between(shown, "<script>", "</script>")) == policy(shown)["script-src"]
    assert without_data(shown).isprintable() is False  # it has lines
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202a-\u202e\ufeff\ud800-\udfff]", shown) is None


@pytest.mark.parametrize("text", TEXTS[:6])
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    """In the first view, the name and the reason; in the others, the issue, the gate, the prompts."""
    report, decision = hostile(text)
    whole = read_html(render(report, decision, OPTIONS))
    ((_, name, agent, reason),) = whole.one("table", id="list").rows()
    assert name == agent == text
    assert text in reason
    assert [text in article.text for article in whole.all("article", "issue")] == [True] * 4
    for view in ("/", "/issues", "/gates", "/run"):
        assert text in whole.one("section", id=view).text, view


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_packed_as_it_is(text: str) -> None:
    report, decision = hostile(text)
    shown = render(report, decision, OPTIONS)
    kept = text.replace("\ud83d", "\ufffd")
    record = records_in(packed_in(shown)["block-0"])[0]
    assert record["sample"]["turns"][0]["user"] in (kept, text.replace("\ud83d", "?"))


def test_no_attribute_is_a_style_or_a_handler() -> None:
    for report, decision in (mixed(), judged_run(), hostile("x")):
        for node in read_html(render(report, decision, OPTIONS)).below:
            assert "style" not in node.attributes
            assert not [name for name in node.attributes if name.startswith("on")]


def test_arbitrary_reports_are_well_formed() -> None:
    """Each tag is closed, and no attribute is there twice: the reader of the tests refuses both."""
    for report, decision in (mixed(), mixed("x", "y"), judged_run(), judged_run(scripted=True)):
        assert read_html(render(report, decision, OPTIONS)).one("main")


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────

SECRET = "s3cr3t-of-the-shop-77"


@pytest.fixture
def a_secret() -> Iterator[None]:
    with known_secrets(SECRET):
        yield


@pytest.mark.usefixtures("a_secret")
def test_a_secret_is_masked_in_the_texts_and_in_the_data_of_the_file() -> None:
    check = Check(name="output.contains", passed=False, detail=f"no {SECRET}")
    said = finding(Severity.HIGH, explanation=SECRET, evidence=SECRET)
    tags = {SECRET: {"tags": (SECRET,)}}
    report = report_of({SECRET: [Played((check,), turns=((said,),))]}, scenarios=tags)
    requests = StoredRequests({**request().texts, "p": SECRET}, request(SECRET).by_sample)
    text = clean_output(page(report, asking(requests), author_errors=(SECRET,)), "html")
    assert SECRET not in text
    assert "***" in text
    packed = packed_in(text)
    assert set(packed) == {"index", "block-0", "requests-0"}
    for name, block in packed.items():
        assert SECRET not in block, name
        assert "***" in block, name
    assert digest(between(text, "<script>", "</script>")) == policy(text)["script-src"]


@pytest.mark.parametrize("part", ["static", "index", "block-0", "requests-0"])
def test_what_an_agent_leaked_is_masked_in_each_part_of_the_file(part: str) -> None:
    requests = StoredRequests({"s": "S", "p": f"The agent: {LEAKED} it is."}, request().by_sample)
    text = page(leaking(leak()), asking(requests))
    shown = without_data(text) if part == "static" else packed_in(text)[part]
    assert LEAKED not in shown
    assert MASKED in shown


# ── many scenarios ───────────────────────────────────────────────────────────────────────────────


def many(count: int) -> str:
    """A page of many scenarios that failed, changed against a baseline, have findings, scores and gates."""
    noted = (finding(Severity.HIGH), score("stars", 2.0))
    epochs = {f"s{n}": [Played((FAIL.whole if n % 2 else PASS.whole), turns=(noted,))] for n in range(count)}
    before = {name: (n % 4 < 2,) for n, name in enumerate(epochs)}
    gone = tuple(f"g{n}" for n in range(count))
    baseline = Baseline(run_id="r0", outcomes={"bot": before}, gone=gone)
    report = report_of(epochs, run={"baseline": baseline})
    decision = decide_plainly(report)
    gates = tuple(
        replace(gate, name=f"g{n}")
        for n in range(count)
        for gate in decide(report_of({"a": [FAIL]})).gates[:1]
    )
    return render(report, replace(decision, gates=gates), OPTIONS)


def test_a_page_of_many_scenarios_is_bounded_without_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many scenarios make no larger page, apart from the packed data. A page of 10,000 has 250,000
    characters, with the limits as they are."""
    assert (overview.MOST_STATIC_ROWS, sections.MOST_ROWS, views_module._MOST_CHANGES) == (200, 500, 500)
    monkeypatch.setattr(overview, "MOST_STATIC_ROWS", 20)
    monkeypatch.setattr(sections, "MOST_ROWS", 50)
    monkeypatch.setattr(views_module, "MOST_ROWS", 50)
    monkeypatch.setattr(views_module, "_MOST_CHANGES", 50)
    small, large = (without_data(many(count)) for count in (220, 440))
    assert len(large) < len(small) + 1000
    whole = read_html(large)
    assert len(whole.below) <= len(read_html(small).below) + 10
    tables = [(each.attributes.get("id"), len(each.one("tbody").all("tr"))) for each in whole.all("table")]
    assert [rows for name, rows in tables if name == "list"] == [20]
    assert [rows for name, rows in tables if name != "list" and rows > 10] == [20, *[50] * 5]


def test_a_page_of_1000_short_conversations_is_small() -> None:
    text = render(*synthetic_run(1000, turns=TURNS), OPTIONS)
    assert len(text.encode()) < 2_000_000


def test_a_page_of_1000_real_conversations_is_small_and_a_larger_one_leaves_out_what_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The budget is 4 MB for text like that of real logs. These runs are judged, which logs are not, and are
    slightly larger: 4.04 MB. The script is to build the list, so that what is read without it is bounded."""
    report, decision = synthetic_run(1000, turns=REAL_TURNS)
    text = render(report, decision, OPTIONS)
    assert len(text.encode()) < 4_100_000
    static = read_html(without_data(text))
    assert len(static.one("table", id="list").rows()) <= overview.MOST_STATIC_ROWS
    assert len(static.below) < 4_000

    monkeypatch.setattr(conversations, "MOST_BYTES", conversations.MOST_BYTES // 10)
    small = render(report, decision, OPTIONS)
    assert len(small) < len(text) - 500_000
    kept = {
        SampleKey(scenario=row["id"], agent=row["agent"], epoch=epoch)
        for row in index_of(small)["rows"]
        for epoch, _, _, *place in row["epochs"]
        if place
    }
    told = {
        sample.key
        for sample in report.samples
        if sample.findings or decision.samples[sample.key].verdict is not Verdict.PASSED
    }
    assert len(told) > 100
    assert told < kept
    left_out = len(report.samples) - len(kept)
    assert left_out > 100
    assert notes(small)[0].startswith(f"{left_out} conversations that passed left out")


def test_noise_in_the_data_breaks_nothing() -> None:
    noise = random.Random(3).randbytes(20_000).decode("latin-1")
    text = page(report_of({"a": [Played((Check(name="x", passed=False, detail=noise),))]}))
    (record,) = records_in(packed_in(text)["block-0"])
    assert record["rules"][0]["detail"] == noise
    assert len(scripts(text)) == 4
