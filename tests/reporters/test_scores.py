"""Judgements, issues and judges that failed, in every report."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from lxml import etree

from agenteval.core.config import AgentConfig, Config
from agenteval.core.event import Event, IssuesFound
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, MetricSpec, ScoreFailure, ScoreItem, Severity, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, Turn, Usage
from agenteval.reporters import github as github_actions
from agenteval.reporters import junit as junit_xml
from agenteval.reporters.markdown import document as markdown
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results import document as results_json
from agenteval.reporters.terminal import screen as terminal
from agenteval.scoring import metrics
from tests.support.report_samples import Told, conversation, hostile, mixed, passing
from tests.support.score_samples import (
    CASE,
    LABELS,
    MODEL,
    NUMBERS,
    SCRIPT,
    USER_DONE,
    book,
    finding,
    judged_run,
    lie_issue,
    number,
    run,
    simulated,
    turn_scores,
)

WIDTHS = (40, 80, 120)
KEY = SampleKey(scenario="book-morning", agent="wonderbot")


def shown(told: Told, *, width: int = 120, verbose: bool = True, color: bool = False) -> str:
    return terminal.render(*told, ReportOptions(width=width, verbose=verbose, color=color))


def section(text: str, title: str) -> list[str]:
    """The lines below the heading that begins with ``title``, with single spaces, up to an empty line."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(title)) + 1
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return [" ".join(line.split()) for line in lines[start:end]]


def scores(text: str) -> dict[str, str]:
    """The rows of the table of scores by scenario."""
    rows = [line for line in section(text, "Scores") if line[0] in "✓✗?"]
    return {row.split()[1]: " ".join(row.split()[2:]) for row in rows}


def results(told: Told) -> dict:
    written = json.loads(results_json.render(*told, ReportOptions()))
    jsonschema.validate(written, results_json.schema())
    return written


def one(*said: ScoreItem, key: SampleKey = KEY, whole: tuple[ScoreItem, ...] = ()) -> list[Event]:
    """A conversation of one turn, and what was said of it."""
    turns = (Turn(user="hi", steps=(Step(text="Booked!"),), script=0),)
    return [*conversation(key, turns, {0: said, None: whole})]


# The table


def test_a_row_has_means_shares_thresholds_and_what_broke() -> None:
    rows = scores(shown(judged_run()))
    assert rows["book-morning"] == "3.0✗ 4.0!1 4.0 3.3 4.0 1/2✓ 2/3 3/3"
    assert rows["refund"] == "4.0 4.0 4.0 4.0 4.0 !1 1/2 –"
    assert rows["C-01"] == "4.0 4.0 4.0 4.0 4.0 – 1/1 –"
    head = section(shown(judged_run()), "Scores")[0]
    assert head == "scenario help coher relev faith verb goal behav tools"


def test_every_table_of_scores_says_that_nothing_is_calibrated() -> None:
    text = shown(judged_run())
    assert "Scores (uncalibrated)" in text.splitlines()
    assert "uncalibrated: never compared with human judgment" in text


def test_scripted_cells_are_marked_and_the_end_says_so() -> None:
    text = shown(judged_run(scripted=True))
    rows = scores(text)
    assert rows["book-morning"] == "3.0ˢ✗ 4.0ˢ!1 4.0ˢ 3.3ˢ 4.0ˢ 1/2ˢ✓ 2/3ˢ 3/3ˢ"
    assert rows["refund"].startswith("4.0ˢ")
    assert "ˢ scripted: no language model was called" in text
    flat = " ".join(text.split())
    said = "no language model was called for 42 judgments, 5 simulated user messages and"
    assert f"{said} issue grouping: scripted replies" in flat
    assert flat.index(said) > flat.index("What gated this run")
    assert "ˢ" not in shown(judged_run())
    assert "scripted" not in shown(judged_run())


def test_a_mean_has_the_digits_that_tell_it_from_its_bound() -> None:
    events = one(*(number("helpfulness", value) for value in (3.5, 3.49)))
    assert scores(shown(run((book(),), events)))["book-morning"].startswith("3.495✗")
    exact = one(number("helpfulness", 3.5))
    assert scores(shown(run((book(),), exact)))["book-morning"].startswith("3.5✓")


def test_a_threshold_that_a_broken_judge_leaves_open_is_a_question() -> None:
    broken = ScoreFailure(metric="helpfulness", message="HTTP 500")
    events = one(number("helpfulness", 4), *[broken] * 20)
    assert scores(shown(run((book(),), events)))["book-morning"].startswith("4.0?!20")


def test_where_no_judge_was_asked_the_cells_say_so() -> None:
    keys = [SampleKey(scenario=name, agent="wonderbot") for name in ("book-morning", "C-01")]
    events = [event for key in keys for event in one(key=key)]
    text = shown(run((book(), CASE), events, no_judge=True))
    rows = scores(text)
    assert rows["book-morning"] == "not judged"
    assert rows["C-01"] == "not judged – not judged –"  # no goal, and no tools at hand
    assert "not judged: --no-judge" in text
    assert "Scores" in text.splitlines()
    assert "uncalibrated" not in text


def test_a_lost_scenario_is_not_judged_and_one_that_a_metric_is_not_for_is_a_dash() -> None:
    stop = Stop(reason=StopReason.AGENT_ERROR, detail="boom")
    events = [
        *conversation(KEY, (), {None: (number("goal_completion", 0),)}, stop=stop, unfinished=Turn(user="x"))
    ]
    assert scores(shown(run((book(),), events)))["book-morning"] == "not judged 0/1✗ not judged"


def test_columns_that_are_for_no_scenario_are_left_out() -> None:
    events = one(*turn_scores(tools=False), key=SampleKey(scenario="C-01", agent="wonderbot"))
    head = section(shown(run((CASE,), events)), "Scores")[0]
    assert head == "scenario help coher relev faith verb behav"


@pytest.mark.parametrize(
    "told", [passing(3), run((CASE,), one(key=SampleKey(scenario="C-01", agent="a")), judged=())]
)
def test_where_nothing_is_judged_nothing_is_said_of_it(told: Told) -> None:
    for text in (
        shown(told),
        markdown.render(*told, ReportOptions()),
        junit_xml.render(*told, ReportOptions()),
        github_actions.render(*told, ReportOptions()),
    ):
        assert not re.search("Scores|calibrated|Issues|broke|scripted|imulated", text)


def test_agents_have_rows_of_their_own() -> None:
    rows = section(shown(mixed("a", "b")), "Scores")
    assert "✗ book-morning · a – 3.3✗" in rows
    assert "✗ book-morning · b – 3.3" in rows


# Layout


def custom(count: int) -> Told:
    """The built-in metrics and ``count`` custom ones with names of all lengths."""
    names = [f"{'a rather long custom metric ' * (n % 3)}number {n}" for n in range(count)]
    specs = [MetricSpec(name=name, scope="turn", kind="mean", scale=(1, 5)) for name in names]
    said = (*turn_scores(), *(number(name, 3.25) for name in names))
    return run((book(),), one(*said), metrics=(*metrics.built_in_metrics(), *specs))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize(
    "told",
    [judged_run(), judged_run(scripted=True), custom(12), mixed("a", "b"), hostile("宽" * 60)],
    ids=["judged", "scripted", "custom", "agents", "wide"],
)
def test_nothing_is_wider_than_the_terminal_but_lines_to_copy(told: Told, verbose: bool, width: int) -> None:
    from rich.cells import cell_len

    long = [line for line in shown(told, width=width, verbose=verbose).splitlines() if cell_len(line) > width]
    kept = (
        r"\s*(- )?(repeat|journal|INCOMPLETE|FAILED|INCONCLUSIVE|fingerprint|what|Re-run|Inspect): "
        r"|(FAILED|INCONCLUSIVE) |  agenteval show | {3,6}\S+:\d+$"
    )
    assert all(re.match(kept, line) for line in long), long


@pytest.mark.parametrize("width", WIDTHS)
def test_twelve_custom_metrics_all_have_a_column_that_can_be_told_from_the_others(width: int) -> None:
    text = shown(custom(12), width=width)
    lines = text[text.index("Scores") : text.index("Summary")].splitlines()
    heads = [re.split(r"  +", line.strip()) for line in lines if line.split()[:1] == ["scenario"]]
    titles = [title for head in heads for title in head[1:]]
    assert len(titles) == len(set(titles)) == 20
    figures = " ".join(line for line in lines if line.lstrip().startswith("?")).split()
    assert figures.count("3.2") == 12
    assert "number 11" in " ".join(text.split())
    assert len(heads) > 1


# One conversation


def test_a_failed_conversation_has_its_scores_by_turn_and_their_reasons() -> None:
    text = "\n".join(section(shown(judged_run()), "Did not pass"))
    assert "scores (uncalibrated)\nturn 1 " in text
    assert "coherence: the judge failed\n" in text
    assert 'helpfulness 1: helpfulness was weighed — "Booked for 09:00."' in text
    assert 'agent_behavior_failure false information: nothing was booked — "Booked!"' in text
    assert 'whole goal_completion 0: no booking was made — "Booked for 09:00."' in text


def test_verbose_has_every_score_of_every_conversation_with_its_reason() -> None:
    told = judged_run()
    text = shown(told, verbose=True)
    count = sum(len(sample.all_scores) for sample in told[0].samples)
    assert (
        len(re.findall(r"(was weighed|was looked for|was booked|was made)( —|$)", text, re.MULTILINE))
        >= count
    )
    assert "goal_completion 1: it was booked" in text


def test_a_failed_criterion_is_told_with_verdict_evidence_and_reason() -> None:
    text = shown(judged_run())
    assert "criteria: Confirms the date — fail: no date was named (evidence: “Booked!”)" in text
    assert "scenarios/booking.yaml:14" in text


def test_a_threshold_that_is_not_met_shows_the_scores_that_pulled_it_down() -> None:
    whole = section(shown(judged_run()).split("thresholds.helpfulness", 1)[1], ": ")
    assert whole[0] == 'helpfulness 1 (epoch 2, turn 1): helpfulness was weighed — "Booked for 09:00."'
    assert whole[1].startswith("repeat:")


# Issues


def test_issues_stand_by_severity_with_counts_places_and_who_grouped_them() -> None:
    assert section(shown(judged_run()), "Issues") == [
        "[high] Claims a booking that was never made (1 occurrence in 1 scenario, 2 findings)",
        "The agent says that it booked, but no tool was called.",
        'book-morning · epoch 2, turn 1: "Booked!"',
        f"the model proposed critical; grouped by {MODEL}",
        "[medium] criterion not met: Confirms the date (1 occurrence in 1 scenario)",
        "no date was named",
        "book-morning · epoch 2: (nothing quoted)",
        "grouped by code",
        "[low] repetition (1 occurrence in 1 scenario)",
        'refund · epoch 1, turn 2: "As I said"',
        "grouped by code",
    ]


def test_what_fails_the_run_says_so_and_the_severity_is_the_one_that_counts() -> None:
    config = Config(
        agent=AgentConfig(name="wonderbot", target="a.py:a"), severity_from="model", fail_on_severity="high"
    )
    lines = section(shown(judged_run(config=config)), "Issues")
    assert lines[0].startswith("[critical] Claims a booking")
    assert lines[0].endswith("fails the run")
    assert lines[3] == f"high in the severity table; grouped by {MODEL}"
    assert sum(line.endswith("fails the run") for line in lines) == 1


def test_a_loop_over_eight_turns_is_one_issue_of_one_sample() -> None:
    turns = tuple(Turn(user=f"{n}", steps=(Step(text="As I said"),), script=n) for n in range(8))
    said = {n: (finding("repetition", Severity.LOW, n),) for n in range(8)}
    told = run((book(),), [*conversation(KEY, turns, said)])
    lines = section(shown(told), "Issues")
    assert lines[0] == "[low] repetition (1 occurrence in 1 scenario, 8 findings)"
    assert lines[2] == 'book-morning, turn 1: "Booked!"'
    assert lines[-1] == "grouped by code"
    notes = github_actions.render(*told, ReportOptions()).splitlines()
    assert [line.split(" ")[0] for line in notes if "repetition" in line] == ["::notice"]


def test_of_many_issues_the_short_report_tells_the_worst_and_counts_the_others() -> None:
    issues = tuple(
        lie_issue().model_copy(update={"id": f"I{n}", "severity": Severity.LOW if n > 17 else Severity.HIGH})
        for n in range(20)
    )
    told = run((book(),), one(), issues=IssuesFound(issues=issues))
    assert "\n… and 13 high, 2 low; -v lists them\n" in shown(told, verbose=False)
    assert shown(told).count("[high]") == 18


def test_findings_of_a_run_that_was_cut_off_are_told_ungrouped() -> None:
    lines = section(shown(mixed()), "Issues (not grouped")
    assert lines == ["[high] false information (1 occurrence in 1 scenario)"]


# Judges and users that broke


def test_judges_that_broke_stand_apart_with_what_they_said() -> None:
    lines = section(shown(judged_run()), "Judges that failed")
    assert lines[0] == "! coherence: the reply is not JSON (book-morning · epoch 2, turn 1)"
    said = " ".join(lines[1:4])
    assert said.startswith('said: {"evidence": "…xxx')
    assert 150 < said.count("x") <= 200
    assert "! goal_completion: the model timed out after 60 s (refund · epoch 1)" in lines
    assert lines[-2].startswith("! error_deduplication: HTTP 500 (issue grouping, done by code instead)")


def test_one_cause_of_many_broken_judges_is_told_once() -> None:
    down = [ScoreFailure(metric=metric, message="HTTP 401: no such key") for metric in (*NUMBERS, *LABELS)]
    keys = [KEY.model_copy(update={"epoch": epoch}) for epoch in range(30)]
    told = run((book(),), [event for key in keys for event in one(*down, key=key)])
    (line,) = section(shown(told, width=200), "Judges that failed")
    assert line == (
        "! helpfulness, coherence, relevance and 4 more: HTTP 401: no such key "
        "(210 times in 30 samples, first in book-morning · epoch 1, turn 1)"
    )
    warnings = [
        x for x in github_actions.render(*told, ReportOptions()).splitlines() if "the judge failed" in x
    ]
    assert len(warnings) <= 1
    assert markdown.render(*told, ReportOptions()).count("HTTP 401: no such key (210 times") == 1


def test_an_authors_mistake_is_no_broken_judge() -> None:
    mistake = ScoreFailure(metric="helpfulness", message="no scripted reply fits", author=True)
    text = shown(run((book(),), one(mistake)))
    assert "Judges that failed" not in text
    assert "error:" in text


def test_a_broken_judge_that_gates_nothing_fails_no_ci() -> None:
    broken = ScoreFailure(metric="coherence", message="the reply is not JSON", raw="{")
    told = run((book(thresholds={}),), one(*turn_scores(), broken, whole=(number("goal_completion", 1),)))
    assert told[1].verdict is Verdict.PASSED
    root = etree.fromstring(junit_xml.render(*told, ReportOptions()).encode())
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    assert root.find(".//property[@name='judge_broke.coherence']").get("value") == "the reply is not JSON"
    line, beside = github_actions.render(*told, ReportOptions()).splitlines()
    assert line.startswith("::warning file=scenarios/booking.yaml,line=2,title=the judge failed%3A coherence")
    assert beside.startswith("::notice")
    assert "no calls from agent 'wonderbot' recorded" in beside


def test_the_rate_of_refused_messages_is_told() -> None:
    text = shown(judged_run())
    assert "Simulated user: 2 of 6 messages refused; 1 sample errored as a result" in text
    lines = section(text, "Simulated user")
    assert lines[0] == "book-morning · epoch 1, turn 2: spoke as the assistant ('How can I help you')"
    fine = run((book(),), [*conversation(KEY, (simulated("hi", "Booked!"),), stop=USER_DONE)])
    assert "Simulated user: 0 of 1 message refused" in shown(fine)


# Gates


def test_a_threshold_has_a_row_for_each_scenario() -> None:
    names = [f"S-{n}" for n in range(5)]
    scenarios = [book(id=name, thresholds={}) for name in names]
    events = [
        event
        for n, name in enumerate(names)
        for event in one(number("coherence", 4 + n / 10), key=KEY.model_copy(update={"scenario": name}))
    ]
    config = Config(agent=AgentConfig(name="wonderbot", target="a.py:a"), thresholds={"coherence": 4.05})
    told = run(scenarios, events, config=config)
    lines = section(shown(told, width=160), "What gated")
    assert sum("coherence" in line for line in lines) == 5
    assert any(line.startswith("✗ thresholds.coherence · S-0 · wonderbot 4 4.05") for line in lines)


# Usage


def test_usage_is_told_by_role() -> None:
    lines = shown(judged_run()).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("usage:"))
    assert [line.removeprefix("usage:").strip() for line in lines[start : start + 4]] == [
        "agent 5 calls, 600 tokens in, 150 out, cost unknown",
        "user 7 calls, 2,500 tokens in, 100 out, cost unknown",
        "judge 42 calls, 84,000 tokens in (63,000 cached), 3,360 out, cost 0.0420 USD",
        "dedup 1 call, 2,000 tokens in (1,500 cached), 80 out, cost 0.0010 USD",
    ]


def test_scripted_calls_are_told_as_such() -> None:
    text = shown(judged_run(scripted=True))
    assert "judge 42 calls, scripted: no language model was called" in text
    assert "dedup 1 call, scripted: no language model was called" in text
    some = one(number("helpfulness", 4, scripted=True), number("coherence", 4))
    told = run((book(),), some)
    assert "judge 2 calls, 1 scripted, 2,000 tokens in" in shown(told)
    assert "| judge | 2 | 2,080 | 2,000 | 1,500 | 80 | 1 replies scripted |" in markdown.render(
        *told, ReportOptions()
    )


def test_a_criterion_alone_makes_a_run_scripted() -> None:
    met = Check(name="criteria", passed=True, by=SCRIPT, scripted=True, usage=Usage(calls=1))
    report, _ = told = run((book(),), one(whole=(met,)))
    assert report.scripted
    assert results(told)["summary"]["scripted"] is True
    assert "no language model was called for 1 judgment: scripted replies" in shown(told)


# JSON


def test_issues_are_in_the_summary_and_in_the_scenarios_that_they_occur_in() -> None:
    told = results(judged_run())
    assert [issue["id"] for issue in told["summary"]["issues"]] == ["I1", "I2", "I3"]
    by_scenario = {s["id"]: [issue["id"] for issue in s["issues"]] for s in told["scenarios"]}
    assert by_scenario == {"book-morning": ["I1", "I2"], "refund": ["I3"], "C-01": []}
    issue = told["scenarios"][0]["issues"][0]
    assert (issue["severity"], issue["proposed_severity"]) == ("high", "critical")
    assert (issue["findings"], issue["samples"], issue["scenarios"]) == (2, 1, 1)
    assert (issue["by"], issue["scripted"]) == (MODEL, False)
    assert (issue["labels"], issue["metrics"][1]) == (
        ["false information", "goal not completed"],
        "goal_completion",
    )
    assert issue["examples"][0]["turn"] == 0
    assert told["summary"]["issue_failures"] == [
        {"metric": "error_deduplication", "message": "HTTP 500", "raw": "oops", "not_asked": False}
    ]


def test_each_finding_names_its_issue() -> None:
    report, decision = judged_run()
    told = results((report, decision))
    counted: dict[str, int] = {}
    for scenario in told["scenarios"]:
        for sample in scenario["samples"]:
            for found in sample["findings"]:
                counted[found["issue"]] = counted.get(found["issue"], 0) + 1
    assert counted == {issue.id: issue.findings for issue in report.issues}
    (unmet,) = [f for f in told["scenarios"][0]["samples"][1]["findings"] if f["metric"] == "criteria"]
    assert (unmet["issue"], unmet["criterion"]) == ("I2", "Confirms the date")


def test_scores_are_by_turn_and_conversation_and_say_that_they_are_uncalibrated() -> None:
    sample = results(judged_run(scripted=True))["scenarios"][0]["samples"][1]
    assert sample["scores"] == {
        "goal_completion": {
            "value": 0.0, "label": None, "ok": None, "reason": "no booking was made",
            "evidence": "Booked for 09:00.", "by": SCRIPT, "scripted": True, "calibrated": False,
        }
    }  # fmt: skip
    (turn,) = sample["turns"]
    assert turn["scores"]["helpfulness"]["value"] == 1
    assert turn["scores"][LABELS[0]]["ok"] is False
    assert turn["score_failures"][0]["raw"].startswith('{"evidence"')
    assert len(turn["score_failures"][0]["raw"]) > 400
    (criterion,) = [check for check in sample["checks"] if check["name"] == "criteria"]
    assert (criterion["by"], criterion["scripted"], criterion["calibrated"]) == (SCRIPT, True, False)
    assert sample["scripted"] is True


def test_the_simulated_user_is_in_the_json() -> None:
    told = results(judged_run())
    first, second = told["scenarios"][0]["samples"][0]["turns"]
    assert (first["user_fault"], first["user_model"]) == ("", MODEL)
    assert second["user_fault"].startswith("spoke as the assistant")
    assert second["user_usage"]["calls"] == 1
    simulator = told["scenarios"][0]["samples"][0]["simulator"]
    assert (simulator["messages"], simulator["refused"], simulator["models"]) == (2, 1, [MODEL])
    assert told["summary"]["simulator"]["errored"] == 1
    case = told["scenarios"][2]["samples"][0]
    assert "simulator" not in case
    assert "user_fault" not in case["turns"][0]
    assert results(passing())["summary"]["simulator"] is None


def test_usage_by_role_and_what_was_asked_for() -> None:
    told = results(judged_run())
    assert set(told["summary"]["usage"]) == {"agent", "user", "judge", "dedup"}
    assert told["summary"]["usage"]["judge"]["calls"] == 42
    assert told["run"]["judged"] == [spec.name for spec in metrics.built_in_metrics()]
    assert told["run"]["no_judge"] is False


# Markdown, JUnit, GitHub


@pytest.mark.parametrize("render", [markdown.render, github_actions.step_summary])
def test_markdown_has_scores_issues_and_what_broke(render) -> None:
    text = render(*judged_run(scripted=True), ReportOptions())
    for words in (
        "## Scores (uncalibrated)",
        "| ❌ | book-morning | 3.0ˢ ✗ | 4.0ˢ !1 | 4.0ˢ | 3.3ˢ | 4.0ˢ | 1/2ˢ ✓ | 2/3ˢ | 3/3ˢ |",
        r"- **\[high\]** **Claims a booking that was never made** (1 occurrence in 1 scenario, 2 findings)",
        "  - refund · epoch 1, turn 2: ",
        "## Judges that failed (no score, and not the agent's fault)",
        "- ! **coherence**: the reply is not JSON (book-morning · epoch 2, turn 1)",
        "  - said: ",
        "**Scripted replies**: no language model was called for 42 judgments",
        "## Simulated user: 2 of 6 messages refused; 1 sample errored as a result",
        "never compared with human",
    ):
        assert words in text
    assert text.index(r"\[high\]") < text.index(r"\[medium\]") < text.index(r"\[low\]")
    failures = text[text.index("## Failures") : text.index("## Issues")]
    assert "no JSON" not in failures


def test_junit_has_scores_and_issues_as_properties() -> None:
    root = etree.fromstring(junit_xml.render(*judged_run(scripted=True), ReportOptions()).encode())
    case = root.find(".//testcase[@name='book-morning · epoch 2']")
    told = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert told["score.helpfulness"] == "1"
    assert told["score.agent_behavior_failure"] == "false information"
    assert told["scores"] == "uncalibrated, scripted: no language model was called"
    assert told["judge_broke.coherence"] == "the reply is not JSON"
    suite = {each.get("name"): each.get("value") for each in root[0].find("properties")}
    assert suite["issue.I1"].startswith("[high] Claims a booking that was never made (1 occurrence")
    assert suite["scripted"].startswith("no language model was called for 42 judgments")


def test_github_warns_of_issues_and_broken_judges_and_says_what_was_scripted() -> None:
    lines = github_actions.render(*judged_run(scripted=True), ReportOptions()).splitlines()
    warnings = [line for line in lines if line.startswith("::warning")]
    assert sum("[high] Claims a booking" in line for line in warnings) == 1
    assert sum("the judge failed%3A coherence" in line for line in warnings) == 1
    assert not any("goal_completion" in line for line in warnings)  # the violation tells of it already,
    errors = [line for line in lines if line.startswith("::error")]
    assert sum("goal_completion" in line for line in errors) == 1  # of a scenario that lost its only sample
    notices = [line for line in lines if line.startswith("::notice")]
    assert any("title=[low] repetition" in line for line in notices)
    assert any("title=scripted replies::no language model was called" in line for line in notices)


# Work grows with what there is to tell


def test_each_sample_is_walked_a_few_times() -> None:
    """Not by the clock: the calls that rendering makes grow with the samples, not with their square."""
    import sys

    def calls(count: int) -> int:
        scenarios = [CASE.model_copy(update={"id": f"C-{n}", "source": f"c.yaml:{n}"}) for n in range(count)]
        keys = [SampleKey(scenario=scenario.id, agent="wonderbot") for scenario in scenarios]
        bad = finding("repetition", Severity.LOW, 0)
        told = run(scenarios, [e for key in keys for e in one(*turn_scores(), bad, key=key)])
        made = 0

        def tick(frame: object, event: str, arg: object) -> None:
            nonlocal made
            made += event == "call"

        for render in (
            terminal.render,
            results_json.render,
            markdown.render,
            junit_xml.render,
            github_actions.render,
        ):
            sys.setprofile(tick)
            try:
                render(*told, ReportOptions(verbose=True))
            finally:
                sys.setprofile(None)
        return made

    assert calls(80) < 6 * calls(20)
