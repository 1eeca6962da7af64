"""The example suite as a newcomer runs it: simulated users, judges, issues, gates, all on fixed replies."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project
from tests.support.local_servers import Behaviour, LocalServer, Request, answer, chat

ROOT = Path(__file__).parents[2]
REPLIES = "scenarios/wonderbot/replies/scripted.yaml"
MODEL = f"scripted/{REPLIES}"
SIMULATED = {"plan-by-day", "warmest-city", "old-price", "difference-over-a-year"}
TURN_METRICS = {
    "helpfulness",
    "faithfulness",
    "agent_behavior_failure",
    "tool_call_behavior_failure",
}

Json = dict[str, Any]


def copy_to(folder: Path) -> Project:
    shutil.copy(ROOT / "agenteval.yaml", folder)
    target = folder / "scenarios" / "wonderbot"
    shutil.copytree(ROOT / "scenarios" / "wonderbot", target, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(folder)


@pytest.fixture
def copy(tmp_path: Path) -> Project:
    """The suite in a folder of its own, where it may be changed."""
    return copy_to(tmp_path)


@pytest.fixture(scope="module")
def green(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """One run of the whole suite, with nothing set: the first command of a newcomer."""
    project = copy_to(tmp_path_factory.mktemp("green"))
    return project, project.run()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """The same against the first version of the agent, with nothing asked for but results to read."""
    project = copy_to(tmp_path_factory.mktemp("shipped"))
    return project, project.run("--agent", "wonderbot-first", "--report", "markdown=report.md")


@pytest.fixture(scope="module")
def whole_screen(shipped: tuple[Project, Done]) -> str:
    return shipped[0].call("report", "latest", "-v").out


@pytest.fixture(scope="module")
def results(shipped: tuple[Project, Done]) -> Json:
    return shipped[0].results()


@pytest.fixture(scope="module")
def events(shipped: tuple[Project, Done]) -> list[Json]:
    (journal,) = shipped[0].root.glob(".agenteval/runs/*/events.jsonl")
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def samples(results: Json) -> Iterator[tuple[str, Json]]:
    for scenario in results["scenarios"]:
        for sample in scenario["samples"]:
            yield scenario["id"], sample


def scores(sample: Json) -> list[tuple[str, Json]]:
    """All judgements of a conversation, with the metric's name."""
    levels = [sample, *sample["turns"]]
    return [entry for level in levels for entry in level["scores"].items()]


def criteria_of(sample: Json) -> list[Json]:
    checks = [check for level in (sample, *sample["turns"]) for check in level["checks"]]
    return [check for check in checks if check["name"] == "criteria"]


@cache
def rules() -> list[Json]:
    written = yaml.safe_load((ROOT / REPLIES).read_text(encoding="utf-8"))
    return written["replies"]  # type: ignore[no-any-return]


def reply(**when: Any) -> Json:
    """The last reply that is written for these conditions, whatever its ``text``: the first version's."""
    said = [r["reply"] for r in rules() if {k: v for k, v in r["when"].items() if k != "text"} == when]
    return next((each for each in said if each.get("issues")), said[-1])


# ---- The first run -------------------------------------------------------------------------------


def test_the_shipped_agent_passes_and_the_run_says_what_it_is_worth(green: tuple[Project, Done]) -> None:
    project, done = green
    results = project.results()
    assert (done.code, results["summary"]["exit_code"]) == (0, 0), done.all
    assert {scenario["verdict"] for scenario in results["scenarios"]} == {"passed"}
    assert len(results["scenarios"]) == 23
    assert results["summary"]["scripted"] is True
    assert "scripted:" in done.out
    last = done.out.strip().splitlines()[-1]
    assert re.match(r"PASSED: .*23 scenarios.*\(exit 0\)", last), last
    assert "Warning" not in done.all


def test_the_first_version_answers_otherwise_only_where_it_fails(
    green: tuple[Project, Done], results: Json
) -> None:
    weak = {"calls-per-day", "two-wishes", "plan-by-day", "difference-over-a-year"}
    answers = {name: [turn["agent"] for turn in sample["turns"]] for name, sample in samples(results)}
    for name, sample in samples(green[0].results()):
        same = answers[name] == [turn["agent"] for turn in sample["turns"]]
        assert same is (name not in weak), name


# ---- What fails, and why -------------------------------------------------------------------------


def test_the_agents_weaknesses_fail_the_run_each_by_another_rule(
    shipped: tuple[Project, Done], results: Json
) -> None:
    why = defaultdict(set)
    for scenario in results["scenarios"]:
        for violation in scenario["violations"]:
            why[scenario["id"]].add(violation["name"])
    assert why == {
        "calls-per-day": {"tool_calls", "output.contains"},  # checks in code
        "two-wishes": {"output.matches", "thresholds.helpfulness"},
        "plan-by-day": {
            *("criteria", "fail_on_severity", "thresholds.helpfulness", "thresholds.goal_completion"),
        },
        "difference-over-a-year": {"thresholds.faithfulness"},  # the checks in code see nothing there
    }
    failed = {s["id"] for s in results["scenarios"] if s["verdict"] != "passed"}
    assert failed == set(why)
    assert len(results["scenarios"]) == 23
    assert (shipped[1].code, results["summary"]["exit_code"]) == (1, 1)


def test_the_gates_of_the_run_are_listed(whole_screen: str, results: Json) -> None:
    gates = results["summary"]["gates"]
    verdicts = {(gate["name"], gate["scenario"]): gate["verdict"] for gate in gates}
    assert verdicts["every sample passes", ""] == "failed"
    assert verdicts["fail_on_severity", ""] == "failed"
    assert verdicts["fault_tolerance", ""] == "passed"
    assert verdicts["thresholds.helpfulness", "C-01"] == "passed"
    assert verdicts["thresholds.goal_completion", "warmest-city"] == "passed"
    assert re.search(r"fail_on_severity +critical +below critical .* failed", whole_screen)
    assert results["summary"]["ungated"] == []  # what gates nothing is not judged


def test_a_goal_reached_in_no_conversation_is_critical(results: Json) -> None:
    severities = defaultdict(set)
    for _, sample in samples(results):
        for finding in sample["findings"]:
            severities[finding["label"]].add(finding["severity"])
    assert severities == {
        "goal not completed": {"critical"},
        "false information": {"high"},
        "disobey user request": {"high"},
        "missing tool call": {"high"},
        "wrong tool": {"high"},
        "lack of specific information": {"medium"},
        "criterion not met": {"medium"},
        "wrong arguments": {"medium"},
        "repeated tool call": {"medium"},
        "repetition": {"low"},
    }


# ---- Simulated users -----------------------------------------------------------------------------


def test_users_say_what_is_scripted_and_end_in_each_way(results: Json) -> None:
    stops = {}
    for name, sample in samples(results):
        if name in SIMULATED:
            assert sample["fault"] is None
            stops[name, sample["epoch"]] = (len(sample["turns"]), sample["stop"])
            for number, turn in enumerate(sample["turns"]):
                if (name, number) != ("difference-over-a-year", 0):  # that one is the scenario's own
                    assert turn["user"] == reply(role="user", scenario=name, turn=number)["message"]
    ended = {
        "plan-by-day": (4, "user_done"),  # done with an empty message: no fifth turn
        "warmest-city": (3, "user_done"),
        "old-price": (3, "user_done"),
        "difference-over-a-year": (3, "user_done"),
    }
    assert stops == {(name, epoch): end for name, end in ended.items() for epoch in (0, 1)}


# ---- Judges --------------------------------------------------------------------------------------


def test_every_metric_judges_every_turn_and_every_goal(results: Json) -> None:
    for name, sample in samples(results):
        goals = {"goal_completion"} if name in SIMULATED else set()
        assert sample["scores"].keys() == {*goals, "policy_adherence"}
        assert not sample["score_failures"]
        for turn in sample["turns"]:
            assert turn["scores"].keys() == TURN_METRICS
            assert not turn["score_failures"]


def test_criteria_are_judged_of_conversations_and_of_a_turn(results: Json) -> None:
    decided = {}
    for name, sample in samples(results):
        for where in ("conversation", *range(len(sample["turns"]))):
            level = sample if where == "conversation" else sample["turns"][where]
            for check in level["checks"]:
                if check["name"] == "criteria":
                    decided[name, where] = check["passed"]
    assert decided == {
        ("plan-by-day", "conversation"): False,
        ("warmest-city", "conversation"): True,
        ("old-price", "conversation"): True,
        ("difference-over-a-year", 0): True,
    }


def test_every_quotation_is_from_its_conversation(results: Json) -> None:
    """The replies are honest at least in this: what they quote was said or called."""
    quoted = 0
    for name, sample in samples(results):
        record = "\n".join(_texts(sample))
        for metric, score in scores(sample):
            assert score["evidence"] in record, (name, metric)
            quoted += bool(score["evidence"])
        for finding in sample["findings"]:
            assert finding["evidence"], (name, finding["label"])
            assert finding["evidence"] in record, (name, finding["label"])
    assert quoted > 60


def _texts(sample: Json) -> Iterator[str]:
    for turn in sample["turns"]:
        yield turn["user"]
        yield turn["agent"]
        for call in turn["tool_calls"]:
            args = json.dumps(call["args"])
            yield from (f"{call['name']} {args}", f"{call['name']}({args})")  # as judges and as detectors do


def test_no_judgement_is_written_for_nothing(results: Json, green: tuple[Project, Done]) -> None:
    both = [*samples(results), *samples(green[0].results())]
    given = {score["reason"] for _, sample in both for _, score in scores(sample)}
    criteria = [check["detail"] for _, sample in both for check in criteria_of(sample)]
    for rule in rules():
        when, said = rule["when"], rule["reply"]
        if when["role"] == "judge" and "scenario" in when:
            assert said["reason"] in given or any(said["reason"] in text for text in criteria), when


# ---- Issues --------------------------------------------------------------------------------------


def test_findings_are_grouped_by_root_cause(events: list[Json], results: Json) -> None:
    (found,) = (event for event in events if event["type"] == "issues_found")
    issues = found["issues"]
    assert {issue["title"] for issue in issues} == {issue["title"] for issue in reply(role="dedup")["issues"]}
    listed = {issue["title"] for scenario in results["scenarios"] for issue in scenario["issues"]}
    assert listed == {issue["title"] for issue in issues}
    again = next(issue for issue in issues if "looked up" in issue["title"])
    assert (again["severity"], again["proposed_severity"]) == ("medium", "low")  # code decides
    assert set(again["tools"]) == {"calculator", "get_weather", "get_product_info"}
    where = {occurrence["scenario"] for occurrence in again["occurrences"]}
    simulated = {"difference-over-a-year", "plan-by-day", "old-price", "warmest-city"}
    assert simulated | {"weather-follow-up", "price-follow-up"} == where
    number = sum(len(occurrence["findings"]) for issue in issues for occurrence in issue["occurrences"])
    assert number == sum(len(sample["findings"]) for _, sample in samples(results))


def test_numbers_of_another_run_group_nothing(copy: Project) -> None:
    """A part of the suite numbers its findings anew: then code groups them, and no title is misplaced."""
    copy.run("--tag", "simulated")
    (journal,) = copy.root.glob(".agenteval/runs/*/events.jsonl")
    events = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    (found,) = (event for event in events if event["type"] == "issues_found")
    assert {issue["by"] for issue in found["issues"]} == {""}
    assert len(found["issues"]) > 5
    assert not found["failures"]


# ---- What says that no language model was called -------------------------------------------------


def test_every_judgement_says_that_it_is_scripted(shipped: tuple[Project, Done], results: Json) -> None:
    assert results["summary"]["scripted"] is True
    every = [score for _, sample in samples(results) for _, score in scores(sample)]
    assert len(every) > 200
    every += [check for _, sample in samples(results) for check in criteria_of(sample)]
    every += [issue for scenario in results["scenarios"] for issue in scenario["issues"]]
    assert {(judgement["by"], judgement["scripted"]) for judgement in every} == {(MODEL, True)}
    assert "scripted" in (shipped[0].root / "report.md").read_text(encoding="utf-8").lower()
    assert "scripted:" in shipped[1].out


def test_every_cell_of_a_score_is_marked(whole_screen: str) -> None:
    table = whole_screen.partition("Scores (")[2].partition("\n\n")[0]
    rows = re.findall(r"^ *[✓✗] +(\S+)(.*)$", table, re.MULTILINE)
    assert len(rows) == 23
    for name, cells in rows:
        given = [cell for cell in cells.split() if cell != "–"]
        assert len(given) == (6 if name in SIMULATED else 5), name
        assert all("ˢ" in cell or cell.startswith("~") for cell in given), name


def test_usage_is_listed_by_role(whole_screen: str, results: Json) -> None:
    usage = results["summary"]["usage"]
    judged = sum(len(scores(sample)) for _, sample in samples(results))
    criteria = 8  # four sentences in two conversations each
    assert usage["judge"]["calls"] == judged + criteria
    assert usage["user"]["calls"] >= 2 * (4 + 3 + 3 + 2)  # messages; the opening of the last is written
    assert usage["dedup"]["calls"] == 1
    assert usage["agent"]["calls"] > 50
    assert usage["agent"]["input_tokens"] > 0
    for role in ("user", "judge", "dedup"):
        assert usage[role]["input_tokens"] == usage[role]["output_tokens"] == 0
    shown = whole_screen.partition("usage:")[2]
    assert all(role in shown for role in ("agent", "user", "judge", "dedup"))


# ---- Other agents, other models ------------------------------------------------------------------


def test_an_agent_that_nobody_has_read_is_not_judged(copy: Project) -> None:
    copy.write("mine.py", "def agent(messages):\n    return 'Certainly, here you are.'\n")
    config = (copy.root / "agenteval.yaml").read_text(encoding="utf-8")
    copy.write("agenteval.yaml", config.replace("scenarios/wonderbot/agent.py:agent", "mine.py:agent"))
    done = copy.run("-s", "R-01")
    sample = copy.sample("R-01")
    assert done.code == 3, done.all
    assert [(name, score["label"]) for name, score in scores(sample)] == [("policy_adherence", "not clear")]
    (failures,) = (turn["score_failures"] for turn in sample["turns"])
    assert len(failures) == 4
    assert all("AGENTEVAL_MODEL" in failure["message"] for failure in failures)


QUESTION = "How warm is it in Beijing, Shanghai and Shenzhen?"


def test_a_real_model_takes_the_scripted_ones_place(copy: Project) -> None:
    """Nothing but a variable is set; over real HTTP, with a server that has an answer for each schema."""
    with LocalServer(answer(_by_schema)) as server:
        address = {"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": "key"}
        env = {**address, "AGENTEVAL_MODEL": "openai/test-model"}
        done = copy.run("-s", "warmest-city", env=env)
        assert {request.json["model"] for request in server.requests} == {"test-model"}
    results = copy.results()
    assert done.code == 0, done.all
    assert results["summary"]["scripted"] is False
    for _, sample in samples(results):
        assert [turn["user"] for turn in sample["turns"]] == [QUESTION]
        assert {score["by"] for _, score in scores(sample)} == {"openai/test-model"}
    assert results["summary"]["usage"]["judge"]["input_tokens"] > 0
    assert "scripted" not in done.out


def _by_schema(request: Request) -> Behaviour:
    """The best verdict that the schema allows; as a user, one question and no more."""
    properties = request.json["response_format"]["json_schema"]["schema"]["properties"]
    values: Json = {"message": QUESTION, "done": True, "reason": "Good.", "evidence": ""}
    values |= {"unknown": "", "invented": "", "allowed_by": "", "explains": False}
    values |= {
        "call": None,
        "other_call": None,
        **dict.fromkeys(("parameter", "tool", "value", "source", "rule", "kind", "fact"), ""),
    }
    values["violations"] = []
    if "outcome" in properties:
        values["outcome"] = properties["outcome"]["enum"][0]
    if "label" in properties:
        values["label"] = properties["label"]["enum"][0]
    if "score" in properties:
        values["score"] = properties["score"]["anyOf"][0]["maximum"]
    return chat(json.dumps({name: values[name] for name in properties}))
