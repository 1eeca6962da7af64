"""The reporters for machines and for Markdown: what they show, and that nothing they show is obeyed."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from lxml import etree

import tests.support.report_samples as samples
from agenteval.core.decision import GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.event import Notice
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Score, Verdict
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.reporters import github as github_actions
from agenteval.reporters import junit as junit_xml
from agenteval.reporters.markdown import document as markdown
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results import document as results_json
from agenteval.reporters.words.failure import collect_failures
from agenteval.reporters.words.transcript_lines import transcript
from agenteval.verdict import gates
from agenteval.verdict.report import build_report

OPTIONS = ReportOptions()
SCHEMA = Path(results_json.__file__).parent / "results.schema.json"
XSD = etree.XMLSchema(etree.parse(Path(__file__).parents[1] / "data" / "junit.xsd"))
RENDERERS = {
    "json": results_json.render,
    "junit": junit_xml.render,
    "github": github_actions.render,
    "step summary": github_actions.step_summary,
    "markdown": markdown.render,
}


def results(told, options=OPTIONS):
    return json.loads(results_json.render(*told, options))


def junit(told, options=OPTIONS):
    root = etree.fromstring(junit_xml.render(*told, options).encode())
    XSD.assertValid(root)
    return root


def has(element, attributes):
    return {name: element.get(name) for name in attributes} == attributes


def annotations(told, options=OPTIONS):
    """(level, properties, message) as GitHub's runner decodes them."""
    lines = github_actions.render(*told, options).splitlines()
    return [decoded(line) for line in lines]


def decoded(line):
    level, told, message = re.fullmatch(r"::(error|warning|notice) ([^\n]*?)::(.*)", line).groups()
    properties = dict(part.split("=", 1) for part in told.split(","))
    codes = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

    def decode(text):
        return re.sub("|".join(codes), lambda found: codes[found[0]], text)

    return level, {name: decode(value) for name, value in properties.items()}, decode(message)


# ── any report ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
@pytest.mark.parametrize("told", [samples.mixed(), samples.mixed("a", "b"), samples.passing(3)])
def test_rendering_is_pure_and_ends_in_a_newline(render, told):
    text = render(*told, OPTIONS)
    assert text == render(*told, OPTIONS)
    assert not text or text.endswith("\n")


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
def test_the_verdict_of_the_gates_renders(render):
    report, _ = samples.mixed("a", "b")
    assert render(report, gates.decide(report), OPTIONS)


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
def test_a_run_of_which_nothing_is_decided_never_looks_passed(render):
    report, decision = samples.mixed()
    undecided = replace(decision, samples={}, scenarios={}, gates=(), verdict=Verdict.INCONCLUSIVE)
    text = render(report, undecided, OPTIONS)
    assert re.search("inconclusive|<error|::warning", text)


# ── failures ──────────────────────────────────────────────────────────────────


def test_failures_tell_what_where_and_how_to_see_it_again():
    failed = collect_failures(*samples.mixed())
    told = [(f.title, f.verdict, f.where, f.reasons[0].splitlines()[0]) for f in failed]
    assert told == [
        (
            "book-morning · epoch 2",
            "failed",
            "scenarios/booking.yaml:2",
            "tool_calls: missing: create_booking(time=09:00)",
        ),
        (
            "book-morning · epoch 3",
            "inconclusive",
            "scenarios/booking.yaml:2",
            "not_run: planned but never ran",
        ),
        ("book-morning", "failed", "scenarios/booking.yaml:2", "helpfulness: helpfulness is 3.33, not 3.5"),
        (
            "refund",
            "inconclusive",
            "scenarios/refund.yaml:1",
            "infrastructure: http://localhost:9 refused the connection",
        ),
        (
            "C-01",
            "failed",
            "scenarios/cases.yaml:4",
            "output.contains (turn 1): expected 25 in: It is 20.",
        ),
    ]
    assert failed[0].repro == "agenteval run scenarios/booking.yaml -s book-morning"
    assert failed[0].evidence == ('high: false information (turn 1, judge): nothing was booked — "Booked!"',)
    assert failed[2].evidence[0] == 'helpfulness 2 (epoch 2, turn 1): clear — "09:00"'


def test_with_several_agents_the_agent_is_named():
    failed = collect_failures(*samples.mixed("wonderbot", "my bot"))[-1]
    assert failed.title == "C-01 · my bot"
    assert failed.repro == "agenteval run scenarios/cases.yaml -s C-01 --agent 'my bot'"


def test_a_failed_check_that_no_violation_names_is_told():
    report, decision = samples.mixed()
    bare = {key: replace(decided, violations=()) for key, decided in decision.samples.items()}
    failed = collect_failures(report, replace(decision, samples=bare))
    assert failed[0].reasons[0].startswith("tool_calls: missing")
    assert all(failure.reasons for failure in failed)


def test_a_transcript_is_lines_of_who_said_what():
    report, _ = samples.mixed()
    lines = [str(line) for line in transcript(report.scenarios[2].samples[0])]
    assert lines == [
        "user:  Paris?",
        "  -> get_weather({oops)",
        '  <- {"error": "bad"}',
        '  -> get_weather(city="Paris")',
        '  <- {"temp": 20}',
        "agent: It is 20.",
    ]


def test_a_long_transcript_is_cut_in_the_middle():
    key = SampleKey(scenario="C-01", agent="a")
    turns = (samples.turn("hi", "x" * 5000, *[samples.weather_call()] * 500),)
    lines = transcript(
        build_report([samples.started((samples.CASE,), (key,)), *_told(key, turns)]).samples[0]
    )
    assert lines[0].text == "hi"
    assert lines[15].text == f"… {1002 - 60} lines omitted …"
    assert lines[-1].text.endswith("x…")
    assert len(lines) == 61


def _told(key, turns, **more):
    return samples.conversation(key, turns, **more)


# ── JSON ──────────────────────────────────────────────────────────────────────


def test_the_schema_that_ships_is_current():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == results_json.schema(), (
        "run: python -m agenteval.reporters.results.document > "
        "agenteval/reporters/results/results.schema.json"
    )


@pytest.mark.parametrize(
    "told", [samples.mixed(), samples.mixed("a", "b"), samples.passing(), samples.hostile("x")]
)
def test_results_are_valid(told):
    schema = results_json.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(results(told), schema)


def test_the_schema_would_notice():
    broken = results(samples.mixed())
    del broken["scenarios"][0]["samples"][0]["turns"][0]["tool_calls"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, results_json.schema())


def test_run_and_summary():
    told = results(samples.mixed())
    assert told["schema_version"] == 4
    run = told["run"]
    assert (run["elapsed_s"], run["complete"], run["outcome"]) == (61.5, False, "interrupted")
    assert run["config"]["agent"]["name"] == "wonderbot"
    assert "root" not in run["config"]
    summary = told["summary"]
    assert (summary["verdict"], summary["exit_code"], summary["scripted"]) == ("failed", 1, True)
    assert summary["gates"] == [
        {
            "name": "helpfulness",
            "value": 3.33,
            "bound": 3.5,
            "basis": "3 turns",
            "where": "agenteval.yaml:8",
            "verdict": "failed",
            "scenario": "book-morning",
            "agent": "wonderbot",
            "metric": "helpfulness",
            "resolution": "",
        }
    ]
    assert summary["usage"]["agent"] == {
        "calls": 7,
        "tokens": 1050,
        "input_tokens": 840,
        "output_tokens": 210,
        "cached_calls": 0,
        "cached_tokens": 0,
        "estimated": True,
        "cost": None,
        "unsplit": False,
    }
    assert [row["category"] for row in summary["dimensions"]["wonderbot"]] == ["capability", "robustness"]
    assert summary["dimensions"]["wonderbot"][0]["spreads"]["steps"]["n"] == 3
    assert summary["ungated"] == ["agent_behavior_failure"]


def test_scenarios_and_samples():
    booking, refund, case = results(samples.mixed())["scenarios"]
    assert [s["verdict"] for s in booking["samples"]] == ["passed", "failed", "inconclusive"]
    assert [s["stop"] for s in booking["samples"]] == ["script_done", "script_done", None]
    assert booking["aggregates"]["helpfulness"] == {
        "value": pytest.approx(10 / 3),
        "n": 3,
        "missing": 0,
        "of_samples": 3.0,
    }
    assert [(v["name"], v["epoch"]) for v in booking["violations"]] == [
        ("tool_calls", 1),
        ("helpfulness", None),
    ]
    assert booking["samples"][1]["findings"][0]["label"] == "false information"
    assert "tool_accuracy" not in booking["samples"][0]
    assert (refund["samples"][0]["fault"], refund["samples"][0]["stop"]) == ("infrastructure",) * 2
    assert refund["samples"][0]["turns"][0]["error"] == "connection refused"
    assert refund["samples"][0]["score_failures"] == [
        {"metric": "goal_completion", "message": "the judge was not reached", "raw": "{", "not_asked": False}
    ]
    assert {k: case["samples"][0][k] for k in ("tool_accuracy", "output_correct", "robustness_pass")} == {
        "tool_accuracy": 1.0,
        "output_correct": False,
        "robustness_pass": False,
    }


def test_turns():
    (turn,) = results(samples.mixed())["scenarios"][2]["samples"][0]["turns"]
    assert (turn["user"], turn["agent"], turn["steps"], turn["latency_ms"]) == (
        "Paris?",
        "It is 20.",
        2,
        1500.0,
    )
    unread, read = turn["tool_calls"]
    assert unread == {
        "name": "get_weather",
        "args": None,
        "result": {"error": "bad"},
        "observed": False,
        "raw_args": "{oops",
        "error": "bad",
    }
    assert read == {
        "name": "get_weather",
        "args": {"city": "Paris"},
        "result": {"temp": 20},
        "observed": False,
    }
    assert turn["checks"][0]["passed"] is False
    assert turn["scores"]["agent_behavior_failure"]["label"] == "no failure"
    assert "error" not in turn


def test_one_entry_per_scenario_and_agent():
    entries = [(entry["id"], entry["agent"]) for entry in results(samples.mixed("a", "b"))["scenarios"]]
    assert sorted(entries) == sorted({*entries})
    assert entries[:3] == [("book-morning", "a"), ("book-morning", "b"), ("refund", "a")]


@pytest.mark.parametrize("text", ["plain", "half \ud83d"])
def test_what_json_cannot_hold_becomes_what_it_can(text):
    key = SampleKey(scenario="C-01", agent="a")
    deep = []
    for _ in range(5000):
        deep = [deep]
    call = ToolCall(
        name="t",
        args={"nan": float("nan"), "set": {1}},
        result=ToolResult(value={1: float("inf"), "text": text}),
    )
    turn = samples.turn("hi", text, call, ToolCall(name="t", args={}, result=ToolResult(value=deep)))
    turn = turn.model_copy(update={"latency_ms": float("nan")})
    report = build_report([samples.started((samples.CASE,), (key,)), *_told(key, (turn,))])
    written = results_json.render(report, samples.decide(report), OPTIONS)
    read = json.loads(written, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    jsonschema.validate(read, results_json.schema())
    (told,) = read["scenarios"][0]["samples"][0]["turns"]
    assert told["tool_calls"][0]["args"] == {"nan": None, "set": [1]}
    assert told["tool_calls"][0]["result"] == {"1": None, "text": text.replace("\ud83d", "\ufffd")}
    assert told["latency_ms"] is None


def test_json_keeps_every_character_but_shows_no_control():
    text = "\x1b[31m \x9b\x7f\u202e\u2028 é 👩"
    written = results_json.render(*samples.hostile(text), OPTIONS)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", written)
    assert json.loads(written)["scenarios"][0]["name"] == text


def test_two_thousand_cases_are_walked_once():
    """Not by the clock: the calls that rendering makes grow with the cases, not with their square."""

    def calls(count):
        told, made = samples.passing(count), 0

        def tick(frame, event, arg):
            nonlocal made
            made += event == "call"

        sys.setprofile(tick)
        try:
            results_json.render(*told, OPTIONS)
        finally:
            sys.setprofile(None)
        return made

    assert calls(400) < 5 * calls(100)


# ── JUnit ─────────────────────────────────────────────────────────────────────


def test_junit_counts_are_those_of_the_elements():
    root = junit(samples.mixed())
    assert has(root, {"tests": "6", "failures": "3", "errors": "2", "skipped": "0"})
    assert [suite.get("name") for suite in root] == [
        "scenarios/booking.yaml",
        "scenarios/refund.yaml",
        "scenarios/cases.yaml",
    ]
    booking = root[0]
    assert has(booking, {"tests": "4", "failures": "2", "errors": "1"})
    assert [case.get("name") for case in booking.iter("testcase")] == [
        "book-morning · epoch 1",
        "book-morning · epoch 2",
        "book-morning · epoch 3",
        "book-morning · all samples",
    ]


def test_a_junit_failure_says_enough():
    case = junit(samples.mixed()).find(".//testcase[@name='book-morning · epoch 2']")
    assert (case.get("file"), case.get("line"), case.get("time")) == ("scenarios/booking.yaml", "2", "1.500")
    failure = case.find("failure")
    assert failure.get("type") == "tool_calls"
    assert failure.get("message").startswith("tool_calls: missing: create_booking")
    for words in (
        "actual: get_weather(city=Paris)",
        "at scenarios/booking.yaml:12",
        "re-run: agenteval run scenarios/booking.yaml -s book-morning",
        "agent: Booked for 09:00.",
    ):
        assert words in failure.text
    assert case.find(".//property[@name='score.helpfulness']").get("value") == "2"


def test_what_never_ran_is_an_error_not_skipped():
    root = junit(samples.mixed())
    assert root.find(".//testcase[@name='book-morning · epoch 3']/error").get("type") == "not_run"
    assert root.find(".//testcase[@name='refund']/error").get("type") == "infrastructure"
    assert root.find(".//skipped") is None


def test_junit_of_a_passed_run():
    root = junit(samples.passing(3))
    assert has(root, {"tests": "3", "failures": "0", "errors": "0"})


def test_junit_suites_name_the_agent_where_there_are_several():
    names = [suite.get("name") for suite in junit(samples.mixed("a", "b"))]
    assert names[0] == "scenarios/booking.yaml [a]"
    assert names[-1] == "scenarios/cases.yaml [b]"


def tolerated():
    """A pass rate tolerates that one of two samples failed."""
    keys = tuple(SampleKey(scenario="C-01", agent="a", epoch=epoch) for epoch in (0, 1))
    told = [event for key in keys for event in _told(key, (samples.turn("hi", "25"),))]
    report = build_report([samples.started((samples.CASE,), keys), *told])
    failed = SampleDecision(Verdict.FAILED, None, (Violation("answer", "no answer", "cases.yaml:4"),))
    return report, replace(
        samples.decide(report),
        samples={keys[0]: failed, keys[1]: SampleDecision(Verdict.PASSED)},
        scenarios={("C-01", "a"): ScenarioDecision(Verdict.PASSED)},
    )


def test_what_a_gate_tolerates_fails_no_ci():
    root = junit(tolerated())
    assert has(root, {"tests": "2", "failures": "0", "errors": "0"})
    assert "answer: no answer" in root.find(".//system-out").text
    assert [level for level, _, _ in annotations(tolerated())] == ["notice"]
    assert "tolerated by a gate" in markdown.render(*tolerated(), OPTIONS)


def with_run_gate(verdict, **more):
    report, _ = samples.passing()
    gate = GateRow("pass_hat_k", 0.4, 0.5, "1 scenario", "agenteval.yaml:9", verdict)
    decision = samples.decide(report, gate)
    return report, replace(decision, verdict=verdict, exit_code=1, **more)


def test_a_rule_over_the_whole_run_is_told():
    case = junit(with_run_gate(Verdict.FAILED)).find(".//testsuite[@name='run']/testcase")
    assert case.find("failure").get("message") == (
        "pass_hat_k is 0.4, bound 0.5, over 1 scenario (agenteval.yaml:9)"
    )
    ((level, properties, _),) = annotations(with_run_gate(Verdict.INCONCLUSIVE))
    assert (level, properties["file"], properties["line"]) == ("warning", "agenteval.yaml", "9")


def test_a_verdict_that_nothing_explains_is_still_told():
    report, decision = samples.passing()
    bare = report, replace(decision, verdict=Verdict.INCONCLUSIVE, exit_code=3)
    assert junit(bare).get("errors") == "1"
    assert [level for level, _, _ in annotations(bare)] == ["warning"]


# ── GitHub ────────────────────────────────────────────────────────────────────


def test_annotations():
    found = annotations(samples.mixed())
    assert [level for level, _, _ in found] == ["error"] * 4 + ["warning"] * 3 + ["notice"] * 2
    _, properties, message = found[0]
    assert properties == {
        "file": "scenarios/booking.yaml",
        "line": "12",
        "title": "book-morning · epoch 2: tool_calls",
    }
    assert message.splitlines() == [
        "tool_calls: missing: create_booking(time=09:00)",
        "actual: get_weather(city=Paris)",
        "re-run: agenteval run scenarios/booking.yaml -s book-morning",
    ]
    assert annotations(samples.passing()) == []


def test_files_are_named_from_the_root():
    report, decision = samples.mixed()
    here = str(Path.cwd().parent)
    found = annotations((report, decision), ReportOptions(root=here))
    assert found[0][1]["file"] == f"{Path.cwd().name}/scenarios/booking.yaml"


def many_failures(count):
    report, decision = samples.passing(count)
    broken = {
        sample.key: SampleDecision(
            Verdict.FAILED, None, (Violation("answer", f"no answer {index}", f"cases.yaml:{index + 1}"),)
        )
        for index, sample in enumerate(report.samples)
    }
    scenarios = {(key.scenario, key.agent): ScenarioDecision(Verdict.FAILED) for key in broken}
    return report, replace(decision, verdict=Verdict.FAILED, exit_code=1, samples=broken, scenarios=scenarios)


def test_as_many_annotations_as_github_shows_are_all_there():
    found = annotations(many_failures(10))
    assert (len(found), any("not shown" in message for *_, message in found)) == (10, False)
    found = annotations(many_failures(11))
    assert (len(found), found[-1][2][:7]) == (10, "2 more ")


def test_no_more_annotations_than_github_shows():
    found = annotations(many_failures(30))
    assert len(found) == 10
    assert found[-1][2].startswith("21 more error annotations are not shown")


def test_epochs_that_break_one_rule_are_one_annotation():
    keys = tuple(SampleKey(scenario="C-01", agent="a", epoch=epoch) for epoch in range(3))
    told = [event for key in keys for event in _told(key, (samples.turn("hi", "25"),))]
    report = build_report([samples.started((samples.CASE,), keys), *told])
    broken = {
        key: SampleDecision(
            Verdict.FAILED,
            None,
            (Violation("answer", f"a{key.epoch}", "c.yaml:4"), Violation("answer", "b", "c.yaml:4")),
        )
        for key in keys
    }
    decision = replace(
        samples.decide(report),
        verdict=Verdict.FAILED,
        samples=broken,
        scenarios={("C-01", "a"): ScenarioDecision(Verdict.FAILED)},
    )
    first, second = annotations((report, decision))
    assert "in epochs 1, 2, 3" in first[2]
    assert second[2].startswith("answer: b")


def test_author_errors_come_first_and_at_their_place():
    report, decision = samples.mixed()
    told = report, replace(decision, author_errors=("a.yaml:7:3: no such tool\n  (met in x)",))
    level, properties, message = annotations(told)[0]
    assert (level, properties["file"], properties["line"]) == ("error", "a.yaml", "7")
    assert message.startswith("a.yaml:7:3: no such tool")


def test_the_step_summary_is_short_and_within_githubs_limit():
    text = github_actions.step_summary(*many_failures(300), OPTIONS)
    assert len(text.encode()) < 100_000
    assert "… and 290 failures more." in text
    assert "… and 250 scenarios more." in text
    huge = samples.hostile("<|`@x " * 200_000)
    assert len(github_actions.step_summary(*huge, OPTIONS).encode()) < 1_000_000


# ── Markdown ──────────────────────────────────────────────────────────────────


def test_markdown_has_all_that_a_reader_needs():
    text = markdown.render(*samples.mixed(), OPTIONS)
    for words in (
        "# ❌ agenteval: failed",
        "2 of 3 scenarios failed, 1 inconclusive; interrupted: 1 sample never ran · 5 samples",
        " · exit code 1 · 61.5 s",
        "**Not complete** (interrupted): 1 planned sample never ran.",
        "**Scripted replies**",
        "| ❌ | helpfulness · book-morning · wonderbot | 3.33 | 3.5 | 3 turns | agenteval.yaml:8 |",
        "Judged or measured, but not gated: agent_behavior_failure",
        "| ❌ | book-morning | wonderbot | capability | 1/3 | – |",
        "| ❌ | book-morning | – | 3.3 ✗ |",
        "| ❌ | C-01 | 1/1ˢ | – |",
        "### ❌ book-morning · epoch 2: failed",
        "\nactual: get_weather(city=Paris)\n  at scenarios/booking.yaml:12\n",
        "```sh\nagenteval run scenarios/booking.yaml -s book-morning\n```",
        "| Capability | Tool call accuracy | 100.0 % |  |  | 1 |",
        "| agent | 7 | ≈ 1,050 | ≈ 840 | ≈ 0 | ≈ 210 | price unknown |",
        "- warning: temperature is not supported and was dropped",
    ):
        assert words in text


def test_the_journal_is_named():
    text = markdown.render(*samples.passing(), ReportOptions(journal=".agenteval/runs/x/events.jsonl"))
    assert "journal .agenteval/runs/x/events.jsonl" in text


def test_failed_comes_before_inconclusive():
    text = markdown.render(*samples.mixed(), OPTIONS)
    assert text.index("### ❌ C-01") < text.index("### ⚠️ book-morning · epoch 3")


# ── hostile text, in every field of every reporter ───────────────────────────

HOSTILE = [
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\ \x1b]52;c;ZXZpbA==\x07",
    "\r::error::gone\r\n::set-output name=a::b\n::stop-commands::t\n##[error]x",
    "%0A::error::x%0D%25 a:b,c=d",
    "\u202egpj.exe\u2066 \u200f",
    "]]> <![CDATA[ </failure> <script>alert(1)</script> </details> &amp; \"'",
    "` `` ``` ```` ~~~ ```````````",
    "@everyone #12 ![x](http://evil.example/a.png) [y](javascript:z) https://evil.example www.evil.example",
    "| a | b |\n| - | - |\n# h\n- i\n> q\n---\n===\n1. x",
    "\0 \x07 \x08 \x7f \x9b31m \ufffe \uffff \ud800 tail",
    "../../etc/passwd:1:2 ; rm -rf ~ $(id) `id`",
    "-s --config=/evil",
    " ",
    "x" * 20_000,
]
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(params=HOSTILE, ids=lambda text: repr(text[:12]), scope="module")
def hostile(request):
    return samples.hostile(request.param)


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
def test_no_control_character_is_shown(render, hostile):
    assert not CONTROLS.search(render(*hostile, OPTIONS))


def test_hostile_json_is_valid(hostile):
    jsonschema.validate(results(hostile), results_json.schema())


def test_hostile_junit_is_valid(hostile):
    root = junit(hostile)
    assert has(root, {"failures": "3", "errors": "3"})
    tags = {element.tag for element in root.iter()}
    assert tags <= {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error"}


def test_every_line_is_a_command_of_ours(hostile):
    text = github_actions.render(*hostile, OPTIONS)
    for line in text.splitlines():
        _, properties, message = decoded(line)
        assert set(properties) <= {"file", "line", "title"}
        assert not any(inner.lstrip().startswith("::") for inner in message.splitlines())
        assert "##[" not in line
        assert len(line) < 10_000
    assert 0 < len(text.splitlines()) <= 30


@pytest.mark.parametrize("render", [markdown.render, github_actions.step_summary])
def test_nothing_comes_to_life_in_markdown(render, hostile):
    outside = outside_fences(render(*hostile, OPTIONS))
    for line in outside:
        bare = line.replace("<details><summary>Transcript</summary>", "").replace("</details>", "")
        assert not re.search(r"[<>]|://|www\.|@\w|#\d|(?<!\\)[\[\]`]", bare)
        assert not bare.lstrip().startswith(("::", "~~~"))
        assert "##[" not in line


@pytest.mark.parametrize("render", [markdown.render, github_actions.step_summary])
def test_tables_keep_their_columns(render, hostile):
    lines = outside_fences(render(*hostile, OPTIONS))
    heads = [index for index, line in enumerate(lines) if re.fullmatch(r"(\| --- )+\|", line)]
    assert heads
    for index in heads:
        columns = lines[index].count("|")
        row = index + 1
        while row < len(lines) and lines[row].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[row])) == columns
            row += 1
        assert row > index + 1
        assert lines[row] == ""


def outside_fences(text):
    lines, bar = [], ""
    for line in text.split("\n"):
        found = re.match("`{3,}", line)
        if bar:
            bar = "" if line == bar else bar
        elif found:
            bar = found[0]
        else:
            lines.append(line)
    assert not bar, "a fence is left open"
    return lines


def test_a_megabyte_answer_is_cut_where_people_read_it():
    told = samples.hostile("x" * 1_000_000)
    for name in ("junit", "github", "step summary", "markdown"):
        assert len(RENDERERS[name](*told, OPTIONS)) < 300_000


def test_json_cuts_nothing():
    (sample, _) = results(samples.hostile("x" * 20_000))["scenarios"][0]["samples"]
    assert sample["turns"][0]["agent"] == "x" * 20_000


def test_a_score_that_is_a_label_is_a_property():
    key = SampleKey(scenario="C-01", agent="a")
    score = Score(metric="tone", label="off brand")
    told = _told(key, (samples.turn("hi", "25"),), said={0: (score,)})
    report = build_report([samples.started((samples.CASE,), (key,)), *told, Notice(text="n")])
    root = junit((report, samples.decide(report)))
    assert root.find(".//property[@name='score.tone']").get("value") == "off brand"
