"""Bug and fix, judged: the metrics, thresholds, the severity gate, criteria and issues.

The scripted judge reads the agent's text, so the buggy agent gets the bad score or label and the fixed
one the good one. Each test names what must be red, and why.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

NUMERIC = ("helpfulness", "coherence", "relevance", "faithfulness", "verbosity")
LABELS = ("agent_behavior_failure", "tool_call_behavior_failure")
BEHAVIOUR, TOOLS = LABELS
SEVERITY = {
    "repetition": "low",
    "failure to ask for clarification": "medium",
    "lack of specific information": "medium",
    "disobey user request": "high",
    "false information": "high",
    "unsafe action": "critical",
    "unsafe state": "critical",
    "unnecessary tool call": "medium",
    "wrong tool": "high",
    "wrong arguments": "medium",
    "ignored tool result": "high",
    "missing tool call": "high",
    "repeated tool call": "medium",
}
LADDER = ("low", "medium", "high", "critical")
AGENTS = """
def buggy(messages, ctx):
    said = messages[-1]["content"]
    return "This is the answer: " + (f"BUG {said}" if said.startswith("ask") else f"well, {said}")

def agent(messages, ctx):
    return "This is the answer: well, " + messages[-1]["content"]

def luck(messages, ctx):
    return "This is the answer: " + ("BUG " if ctx.epoch else "well, ") + messages[-1]["content"]
"""
GOOD: list[dict[str, Any]] = [
    {"when": {"role": "judge", "metric": "goal_completion"}, "reply": {"score": 1}},
    *({"when": {"role": "judge", "metric": name}, "reply": {"label": "no failure"}} for name in LABELS),
    {"when": {"role": "judge", "metric": "criteria"}, "reply": {"label": "pass"}},
    {"when": {"role": "judge"}, "reply": {"score": 5}},
    {"when": {"role": "dedup"}, "reply": {"issues": []}},
]


def rule(metric: str, text: str, reply: Any) -> dict[str, Any]:
    """A judge's reply to answers in which ``text`` is found."""
    return {"when": {"role": "judge", "metric": metric, "text": text}, "reply": reply}


def bad(metric: str) -> dict[str, Any]:
    if metric in LABELS:
        return {"label": "false information" if metric == BEHAVIOUR else "wrong tool"}
    return {"score": 0 if metric == "goal_completion" else 2}


def filled(entry: dict[str, Any]) -> dict[str, Any]:
    if isinstance(entry["reply"], str) or entry["when"]["role"] == "dedup":
        return entry
    return {**entry, "reply": {"evidence": "This is the answer", "reason": "because", **entry["reply"]}}


def suite(
    project: Project, scenarios: list[dict[str, Any]], *rules: dict[str, Any], config: str = ""
) -> None:
    project.agent(AGENTS)
    project.config(
        "agents: {buggy: {target: 'agent.py:buggy', calls: all}, "
        "luck: {target: 'agent.py:luck', calls: all}}\n"
        + ("" if "models:" in config else "models: {default: scripted/replies.yaml}\n")
        + config
    )
    project.write("replies.yaml", json.dumps({"replies": [filled(r) for r in [*rules, *GOOD]]}))
    project.scenarios(json.dumps({"scenarios": [{"name": s["id"], **s} for s in scenarios]}))


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


def broken(project: Project) -> dict[str, set[str]]:
    """The names of the violations of each scenario that has any."""
    found = {s["id"]: {v["name"] for v in s["violations"]} for s in project.results()["scenarios"]}
    return {name: violations for name, violations in found.items() if violations}


# ── the metrics ──────────────────────────────────────────────────────────────────────────────────


def pair(metric: str) -> list[dict[str, Any]]:
    whole: dict[str, Any] = {
        "turns": ["hi", f"ask {metric}"],
        "thresholds": {metric: 4 if metric in NUMERIC else 0.8},
        "goal": "A lamp.",
        "tools": {"find": {"returns": 1}},
    }
    return [{"id": f"{metric} bug", "agent": "buggy", **whole}, {"id": f"{metric} fix", **whole}]


EIGHT = (*NUMERIC, "goal_completion", *LABELS)


def test_each_metric_is_red_for_the_bug_at_its_turn_and_green_for_the_fix(project: Project) -> None:
    rules = [rule(m, f"BUG ask {m}$", bad(m)) for m in EIGHT]
    suite(project, [s for m in EIGHT for s in pair(m)], *rules, config="fail_on_severity: none\n")
    done = project.run()
    assert done.code == 1, done.all
    assert broken(project) == {f"{m} bug": {f"thresholds.{m}"} for m in EIGHT}
    for scenario in project.results()["scenarios"]:
        metric, kind = scenario["id"].split()
        value = scenario["aggregates"][metric]["value"]
        expected = {"bug": 3.5 if metric in NUMERIC else 0.0 if metric == "goal_completion" else 0.5}
        assert value == expected.get(kind, 5.0 if metric in NUMERIC else 1.0), scenario["id"]
        (sample,) = scenario["samples"]
        findings = [(f["metric"], f["turn"]) for f in sample["findings"]]
        where = {BEHAVIOUR: 1, TOOLS: 1, "goal_completion": None}
        assert findings == ([(metric, where[metric])] if kind == "bug" and metric in where else [])
        assert all(len(turn["scores"]) == 7 for turn in sample["turns"]), "seven by turn"
        assert list(sample["scores"]) == ["goal_completion"]
    assert project.run("-s", "fix").code == 0


def label_suite() -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """A scenario for each label and for goals that are not reached; the judge's rules; the severities."""
    rules, scenarios = [], []
    for label in SEVERITY:
        metric = TOOLS if "tool" in label or label == "wrong arguments" else BEHAVIOUR
        rules.append(rule(metric, f"BUG ask {label}$", {"label": label}))
        turns = ["hi", f"ask {label}"]
        scenarios.append({"id": label, "agent": "buggy", "turns": turns, "tools": {"find": {"returns": 1}}})
    rules.append(rule("goal_completion", "BUG", {"score": 0}))
    never = {"agent": "buggy", "turns": ["ask goal"], "goal": "g"}
    scenarios += [
        {**never, "id": "not completed", "agent": "luck", "turns": ["goal"], "epochs": 2},  # the first is
        {**never, "id": "never completed", "epochs": 2},
        {**never, "id": "one epoch alone", "epochs": 1},
    ]
    critical = ("never completed", "one epoch alone")
    return scenarios, rules, {**SEVERITY, "not completed": "high", **dict.fromkeys(critical, "critical")}


def test_each_label_has_the_severity_of_the_table(project: Project) -> None:
    scenarios, rules, severities = label_suite()
    # What no label could fail has to say so.
    suite(project, [{**s, "checks": "none"} for s in scenarios], *rules, config="fail_on_severity: none\n")
    done = project.run()
    assert done.code == 0, done.all
    for scenario in project.results()["scenarios"]:
        findings = [f for sample in scenario["samples"] for f in sample["findings"]]
        assert {f["severity"] for f in findings} == {severities[scenario["id"]]}, scenario["id"]
        assert {f["detector"] for f in findings} == {"judge"}


@pytest.mark.parametrize("level", LADDER)
def test_the_gate_fails_severities_from_its_level(project: Project, level: str) -> None:
    scenarios, rules, severities = label_suite()
    one_each = ("repetition", "wrong arguments", "wrong tool", "unsafe state", "not completed")
    chosen = [each for each in scenarios if each["id"] in (*one_each, "never completed")]
    suite(project, chosen, *rules, config=f"fail_on_severity: {level}\n")
    assert project.run().code == 1
    gated = LADDER[LADDER.index(level) :]
    red = {each["id"] for each in chosen if severities[each["id"]] in gated}
    assert {name for name, verdict in verdicts(project).items() if verdict == "failed"} == red
    assert set(broken(project)) == red


def test_severities_override_the_table_both_ways(project: Project) -> None:
    labels = {"a": "repetition", "b": "unsafe state"}
    rules = [rule(BEHAVIOUR, f"BUG ask {name}", {"label": label}) for name, label in labels.items()]
    scenarios = [{"id": name, "agent": "buggy", "turns": [f"ask {name}"]} for name in "ab"]
    suite(project, scenarios, *rules, config="severities: {repetition: critical, unsafe state: medium}\n")
    assert project.run().code == 1
    assert verdicts(project) == {"a": "failed", "b": "passed"}


# ── thresholds ───────────────────────────────────────────────────────────────────────────────────


def test_a_scenarios_threshold_stands_over_the_suites_and_null_removes_it(project: Project) -> None:
    scenarios = [
        {"id": "inherits", "agent": "buggy"},
        {"id": "own", "agent": "buggy", "thresholds": {"helpfulness": 2}},  # the mean itself is enough
        {"id": "none", "agent": "buggy", "thresholds": {"helpfulness": None}},
        {"id": "stricter", "thresholds": {"helpfulness": {"at_least": 4.1}}},
        {"id": "above", "thresholds": {"helpfulness": {"at_least": 4.11}}},
        {"id": "fix"},
    ]
    rules = [rule("helpfulness", "BUG", {"score": 2}), rule("helpfulness", "well", {"score": 4.1})]
    three = ["ask 1", "ask 2", "ask 3"]
    scenarios = [{"turns": three, **each} for each in scenarios]
    suite(project, scenarios, *rules, config="thresholds: {helpfulness: 3.5}\n")
    assert project.run().code == 1
    assert broken(project) == {k: {"thresholds.helpfulness"} for k in ("inherits", "above")}
    gates = {g["scenario"]: g for g in project.results()["summary"]["gates"] if "helpful" in g["name"]}
    assert set(gates) == {"inherits", "own", "stricter", "above", "fix"}
    assert (gates["own"]["value"], gates["own"]["bound"], gates["own"]["verdict"]) == (2.0, 2.0, "passed")


def test_a_suite_threshold_that_applies_nowhere_is_violated(project: Project) -> None:
    config = "thresholds: {goal_completion: 0.5}\n"
    suite(project, [{"id": "no-goal", "turns": ["hi"]}], config=config)
    done = project.run()
    assert done.code == 1, done.all
    assert "goal_completion" in done.out
    (gate,) = [g for g in project.results()["summary"]["gates"] if g["verdict"] == "failed"]
    assert gate["name"] == "thresholds.goal_completion"
    goal = {"id": "goal", "turns": ["hi"], "goal": "g"}
    suite(project, [{"id": "no-goal", "turns": ["hi"]}, goal], config=config)
    assert project.run().code == 0


@pytest.mark.parametrize(
    ("config", "thresholds", "place", "facts"),
    [
        ("", {"goal_completion": 0.5}, "suite.yaml:1", ("goal_completion", "goal")),  # there is none
        ("", {"helpfulness": 7}, "suite.yaml:1", ("helpfulness", "7")),
        ("", {"helpfulness": 0.5}, "suite.yaml:1", ("helpfulness", "0.5")),
        ("", {BEHAVIOUR: 1.5}, "suite.yaml:1", (BEHAVIOUR, "1.5")),
        ("", {"helpfulnes": 3}, "suite.yaml:1", ("helpfulnes", "'helpfulness'")),
        ("", {"helpfulness": "high"}, "suite.yaml:1", ("helpfulness", "'high'")),
        ("thresholds: {coherance: 3}\n", {}, "agenteval.yaml:4", ("coherance", "'coherence'")),
        ("thresholds: {coherence: 9}\n", {}, "agenteval.yaml:4", ("coherence", "9")),
        ("severities: {repetitoin: low}\n", {}, "agenteval.yaml:4", ("repetitoin", "'repetition'")),
        ("metrics: [helpfulnes]\n", {}, "agenteval.yaml:4", ("helpfulnes", "'helpfulness'")),
    ],
)
def test_a_threshold_or_metric_that_makes_no_sense_is_the_authors_mistake(
    project: Project, config: str, thresholds: dict[str, Any], place: str, facts: tuple[str, ...]
) -> None:
    suite(project, [{"id": "s", "turns": ["hi"], "thresholds": thresholds}], config=config)
    project.run().refuses(place, *facts)
    assert not (project.root / "results.json").exists()


def missing(name: str, known: int, **more: Any) -> dict[str, Any]:
    """Three turns that score ``known`` and one at which the judge breaks; of the threshold 3."""
    return {"id": name, "turns": [f"give {known}"] * 3 + ["break"], "thresholds": {"helpfulness": 3}, **more}


def test_missing_scores_leave_a_threshold_open_unless_worst_and_best_agree(project: Project) -> None:
    rules = [
        rule("helpfulness", "break", "I am sorry, I cannot do that."),
        rule("coherence", "break", "garbage"),
        *(rule("helpfulness", f"give {n}", {"score": n}) for n in (1, 2, 3, 5)),
    ]
    scenarios = [
        missing("sure-green", 5),  # (15 + 1) / 4 = 4
        missing("open", 3),  # 2.5 to 3.5
        missing("sure-red", 2),  # 1.75 to 2.75
        {**missing("all", 1), "turns": ["break", "break"]},
        {"id": "no-threshold", "turns": ["break"]},
    ]
    suite(project, scenarios, *rules)
    done = project.run()
    assert done.code == 1, done.all  # a failed part beats an inconclusive one
    scenarios_run = project.results()["scenarios"]
    missing_scores = {s["id"]: s["aggregates"]["helpfulness"]["missing"] for s in scenarios_run}
    assert missing_scores == {"sure-green": 1, "open": 1, "sure-red": 1, "all": 2, "no-threshold": 1}
    assert verdicts(project) == {
        "sure-green": "passed",
        "open": "inconclusive",
        "sure-red": "failed",
        "all": "inconclusive",
        "no-threshold": "passed",
    }
    assert project.run("-s", "sure-green", "-s", "no-threshold").code == 0
    sample = project.sample("no-threshold")  # reported, though it changes no verdict
    failures = sample["turns"][0]["score_failures"]
    assert {f["metric"] for f in failures} == {"helpfulness", "coherence"}
    assert "helpfulness" not in sample["turns"][0]["scores"]
    assert "I am sorry, I cannot do that." in json.dumps(failures)


def test_a_broken_label_judge_leaves_its_sample_inconclusive(project: Project) -> None:
    suite(project, [{"id": "s", "turns": ["break"]}], rule(BEHAVIOUR, "break", {"label": "fine by me"}))
    assert project.run().code == 3
    assert project.sample()["verdict"] == "inconclusive"
    assert project.sample()["fault"] == "judge"
    odd = rule(BEHAVIOUR, "BUG", {"label": "fine by me"})
    two = [{"id": "s", "turns": ["break"], "epochs": 2}]
    suite(project, two, odd, config="fault_tolerance: 0.5\n")
    assert project.run("--agent", "luck").code == 0
    assert project.results()["scenarios"][0]["samples"][1]["verdict"] == "inconclusive"


# ── criteria ─────────────────────────────────────────────────────────────────────────────────────


def test_criteria_pass_fail_and_not_clear_at_the_scenario_and_at_a_turn(project: Project) -> None:
    rules = [
        rule("criteria", "BUG ask red", {"label": "fail"}),
        rule("criteria", "open", {"label": "not clear"}),
        rule("criteria", "broken", "no JSON here"),
        rule("criteria", "wrong", {"label": "maybe"}),
    ]
    expect = {"expect": {"criteria": ["Is polite."]}}
    scenarios: list[dict[str, Any]] = []
    for message in ("ask red", "ask green", "open", "broken", "wrong"):
        scenarios.append({"id": f"whole {message}", "turns": ["hi", message], **expect})
        scenarios.append({"id": f"turn {message}", "turns": ["hi", {"user": message, **expect}]})
    scenarios.append({"id": "both", "turns": [{"user": "ask red", **expect}, {"user": "open", **expect}]})
    suite(project, [{"agent": "buggy", **s} for s in scenarios], *rules, config="metrics: []\n")
    assert project.run().code == 1
    kinds = {"ask red": "failed", "ask green": "passed"}
    messages = ("ask red", "ask green", "open", "broken", "wrong")
    expected = {
        f"{scope} {each}": kinds.get(each, "inconclusive") for scope in ("whole", "turn") for each in messages
    }
    assert verdicts(project) == {**expected, "both": "failed"}
    for name, place in (("whole ask red", None), ("turn ask red", 1)):
        sample = project.sample(name)
        assert failed_checks(sample) == {(place, "criteria")}
        assert [(f["turn"], f["metric"]) for f in sample["findings"]] == [(place, "criteria")]
    assert project.sample("whole open")["checks"][-1]["passed"] is None
    assert project.run("-s", "green").code == 0
    assert project.run("-s", "open").code == 3


def test_a_criterion_that_was_not_decided_never_leaves_a_sample_passed(project: Project) -> None:
    suite(project, [{"id": "s", "turns": ["hi"], "expect": {"criteria": ["Is polite."]}}])
    replies = [filled(GOOD[0]), filled(GOOD[1]), filled(GOOD[-2])]
    project.write("replies.yaml", json.dumps({"replies": replies}))
    assert project.run("--metric", "agent_behavior_failure").code == 2
    assert project.sample()["verdict"] == "inconclusive"


# ── no model, no judge, fewer metrics ────────────────────────────────────────────────────────────


def test_without_judges_cells_are_not_judged_and_gates_on_them_stay_open(project: Project) -> None:
    green = {"id": "green", "turns": ["hi"], "expect": {"output": {"contains": ["hi"]}}}
    suite(project, [green])
    done = project.run("--no-judge")
    assert done.code == 0, done.all
    assert project.sample()["turns"][0]["scores"] == {}
    assert "not judged" in project.call("report", "latest", "-v").out
    assert "judge" not in {k for k, v in project.results()["summary"]["usage"].items() if v["calls"]}
    polite = {"criteria": ["Is polite."]}
    undecided = [
        {**green, "id": "a", "thresholds": {"helpfulness": 1}},
        {**green, "id": "b", "expect": polite},
    ]
    suite(project, undecided)
    assert project.run("--no-judge").code == 3
    assert verdicts(project) == {"a": "inconclusive", "b": "inconclusive"}
    suite(project, [{**green, "expect": {**polite, "output": {"contains": ["never"]}}}])
    assert project.run("--no-judge").code == 1  # a failed check beats an undecided one


def test_a_model_that_is_needed_and_not_set_names_the_remedies(project: Project) -> None:
    hi = {"id": "s", "turns": ["hi"], "expect": {"output": {"contains": ["hi"]}}}
    suite(project, [hi], config="models: {}\n")
    project.run().refuses("agenteval", "models", "default", "AGENTEVAL_MODEL", "--no-judge")
    assert project.run("-m", "scripted/replies.yaml").code == 0
    assert project.run(env={"AGENTEVAL_MODEL": "scripted/replies.yaml"}).code == 0
    assert set(project.sample()["turns"][0]["scores"]) == {*NUMERIC, BEHAVIOUR}, "no tools, no goal"
    flags = ("--metric", "coherence", "--metric", "verbosity", "-m", "scripted/replies.yaml")
    assert project.run(*flags).code == 0
    assert set(project.sample()["turns"][0]["scores"]) == {"coherence", "verbosity"}
    project.run("--metric", "coherense").refuses("agenteval", "coherense", "'coherence'")
    suite(project, [hi], config="metrics: [relevance, agent_behavior_failure]\n")
    done = project.run()
    assert set(project.sample()["turns"][0]["scores"]) == {"relevance", BEHAVIOUR}
    assert project.results()["summary"]["ungated"] == ["relevance"]
    assert project.results()["summary"]["scripted"] is True
    assert project.results()["summary"]["usage"]["judge"]["calls"] == 2
    assert "uncalibrated" in done.out
    assert "relevance" in project.call("report", "latest", "-v").out
