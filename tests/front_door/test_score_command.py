"""``agenteval score``: exit codes, where conversations come from, outcomes, expectations, judges, reports."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project, environment
from tests.support.scored_logs import (
    ASK_JUDGES,
    caveats,
    conversation,
    expect,
    flat,
    last_line,
    lines_of,
    log,
    samples,
    score,
    summary,
    verdicts,
)

ROOT = Path(__file__).parents[2]
AIRLINE = ROOT.parent / "shared" / "data" / "tau_airline.jsonl.gz"
CONTAINS_SHIPPED = "output: {contains: [shipped]}"


def greeting(name: str, answer: Any = "Hello") -> dict[str, Any]:
    """A conversation without a call."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer}]
    return {"id": name, "messages": said}


def ignorant(name: str, **more: Any) -> dict[str, Any]:
    """A conversation whose answer is not the expected one."""
    found = conversation(name, **more)
    found["messages"][-1]["content"] = "I do not know."
    return found


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────


def test_a_log_without_failures_passes_and_no_judge_is_asked(project: Project) -> None:
    log(project, conversation("a"), conversation("b"))
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert verdicts(project) == {"a": "passed", "b": "passed"}
    assert ASK_JUDGES in done.out
    assert summary(project)["usage"]["judge"]["calls"] == 0


def test_conversations_without_a_call_or_an_expectation_prove_nothing(project: Project) -> None:
    bare = [greeting(name) for name in "ab"]
    log(project, *bare)
    done = score(project, "log.jsonl", "--no-judge")
    assert done.code == 0
    assert last_line(done).startswith("REPORTED: 2 ")
    assert (caveats(project)["nothing_to_prove"], caveats(project)["not_judged"]) == (2, 1)
    assert summary(project)["caveats"][-1]["text"] in last_line(done)
    score(project, "log.jsonl", *expect(project, {"a": "output: {contains: Hello}"}))
    assert "nothing_to_prove" not in caveats(project)
    log(project, *bare, conversation("c", calls="find_order"))
    score(project, "log.jsonl")
    assert "nothing_to_prove" not in caveats(project)


def test_a_call_of_an_unknown_tool_is_red_at_its_turn(project: Project) -> None:
    log(project, conversation("bug", calls="find_order"), conversation("fix"))
    project.write("strict.yaml", "fail_on_severity: high\n")
    done = score(project, "log.jsonl", "-c", "strict.yaml")
    assert done.code == 1
    assert verdicts(project) == {"bug": "failed", "fix": "passed"}
    (finding,) = project.sample("bug")["findings"]
    assert (finding["detector"], finding["turn"], finding["call"]) == ("unknown_tool", 0, 0)
    assert all(name in finding["explanation"] for name in ("find_order", "get_order"))
    assert "agenteval score log.jsonl -c strict.yaml -s bug" in done.out
    assert score(project, "log.jsonl", "-c", "strict.yaml", "-s", "fix").code == 0
    assert score(project, "log.jsonl", "-c", "strict.yaml", "-s", "bug").code == 1


def test_a_selection_that_matches_nothing_is_a_mistake_beside_one_that_does(project: Project) -> None:
    log(project, conversation("fix"), conversation("other"))
    done = score(project, "log.jsonl", "-s", "fix", "-s", "renamed")
    assert done.code == 2
    assert "-s renamed:" in done.out
    assert verdicts(project) == {"fix": "passed"}


def test_unreadable_lines_leave_the_run_inconclusive_but_for_a_tolerance(project: Project) -> None:
    log(project, conversation("a"), "{torn", {"id": "b"}, conversation("c"))
    done = score(project, "log.jsonl")
    assert done.code == 3, done.all
    lost = ("log.jsonl:2", "log.jsonl:3")
    assert verdicts(project) == dict.fromkeys("ac", "passed") | dict.fromkeys(lost, "inconclusive")
    assert all(f"{place}: " in done.out for place in lost)
    assert "JSON" in project.sample("log.jsonl:2")["reason"]
    assert "messages" in project.sample("log.jsonl:3")["reason"]
    assert project.sample("log.jsonl:2")["fault"] == "recording"

    log(project, conversation("a"), "{torn")
    project.write("agenteval.yaml", "fault_tolerance: 0.5\n")
    assert score(project, "log.jsonl").code == 0
    log(project, conversation("a", calls="x"), "{torn")
    assert score(project, "log.jsonl", "--max-rate", "high=1%").code == 1


JUDGED = ["log.jsonl", "--metric"]


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        (["logs.jsonl"], 2, ["logs.jsonl:", "'log.jsonl'"]),
        (["broken.jsonl"], 2, ["broken.jsonl:1:", "JSON"]),
        (["empty.jsonl"], 5, ["empty.jsonl:"]),
        (["folder"], 2, ["folder"]),
        (["log.jsonl", "--outcome-from", "labels.rewrd"], 2, ["labels.rewrd", "'labels.reward'"]),
        (["log.jsonl", "--scenario-from", "labels"], 2, ["--scenario-from", "labels", "reward"]),
        (["log.jsonl", "-s", "zzz"], 5, ["-s zzz"]),
        (["log.jsonl", "--scenarios", "none.yaml"], 2, ["none.yaml"]),
        (["log.jsonl", "-c", "none.yaml"], 2, ["none.yaml"]),
        ([*JUDGED, "helpfulness"], 2, ["model"]),
        ([*JUDGED, "helpfulnes", "-m", "openai/x"], 2, ["'helpfulnes'", "'helpfulness'"]),
        (["log.jsonl", "-c", "detectors.yaml"], 2, ["detectors.yaml:1:", "'leek'", "'leak'"]),
    ],
)
def test_a_mistake_of_the_author_is_named(
    project: Project, arguments: list[str], code: int, facts: list[str]
) -> None:
    log(project, conversation("a", labels={"reward": 1}))
    (project.root / "folder").mkdir()
    log(project, "{torn", "also torn", name="broken.jsonl")
    log(project, name="empty.jsonl")
    project.write("detectors.yaml", "detectors: [leek]\n")
    done = project.call("score", *arguments)
    assert done.code == code, done.all
    assert any(all(fact in line for fact in facts) for line in flat_lines(done.all)), done.all


def flat_lines(text: str) -> list[str]:
    """The messages, each in one line."""
    return re.sub(r"\n +", " ", text).splitlines()


def test_only_the_first_of_many_problems_are_printed(project: Project) -> None:
    log(project, *["{torn"] * 100)
    done = project.call("score", "log.jsonl")
    assert done.code == 2
    assert len(done.err.splitlines()) == 6
    assert " 95 " in done.err


# ── where conversations come from ────────────────────────────────────────────────────────────────


def test_a_folder_is_searched_for_logs_without_hidden_files(project: Project) -> None:
    log(project, conversation("c1"))
    log(project, "what macOS writes beside it", name="._log.jsonl")
    assert project.call("score", ".").code == 0


def test_standard_input_and_packed_files_are_read(project: Project) -> None:
    (project.root / "log.jsonl.gz").write_bytes(gzip.compress(json.dumps(conversation("a")).encode()))
    arguments = ["score", "-", "log.jsonl.gz", "--report", "json=results.json"]
    done = subprocess.run(
        [sys.executable, "-m", "agenteval", *arguments], cwd=project.root, env=environment(),
        input=lines_of(conversation("piped"), "{torn"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert verdicts(project) == {"piped": "passed", "<stdin>:2": "inconclusive", "a": "passed"}


def test_an_archive_that_is_cut_off_gives_what_comes_before(project: Project) -> None:
    noise = random.Random(5)
    records = [conversation(f"c{n}", noise=noise.randbytes(40).hex()) for n in range(200)]
    (project.root / "log.jsonl.gz").write_bytes(gzip.compress(lines_of(*records).encode())[:-2000])
    done = score(project, "log.jsonl.gz")
    assert done.code == 3, done.all
    found = list(verdicts(project).values())
    assert found.count("inconclusive") == 1
    assert len(found) > 100


BAD_ENTRIES = {
    "null": None,
    "text": "text",
    "number": 7,
    "empty": {},
    "text as messages": {"id": "z", "messages": "no"},
    "no messages": {"type": "chat", "messages": None},
}
FIRST, LAST = greeting("first", "Hello!"), greeting("last", "Hello!")


@pytest.mark.parametrize("around", [None, "data"])
def test_an_entry_of_a_list_that_cannot_be_read_is_a_sample_of_its_own(project: Project, around: Any) -> None:
    line = 1 if around else json.dumps([FIRST], indent=1).count("\n") + 1
    for name, bad in BAD_ENTRIES.items():
        entries = [FIRST, bad, LAST]
        project.write("log.json", json.dumps({around: entries} if around else entries, indent=1))
        assert score(project, "log.json").code == 3, name
        expected = {"first": "passed", f"log.json:{line}": "inconclusive", "last": "passed"}
        assert verdicts(project) == expected, name


def test_a_list_of_messages_stays_one_conversation(project: Project) -> None:
    messages = [*FIRST["messages"], None, {"role": "user", "content": "Bye", "items": []}]
    project.write("log.json", json.dumps(messages))
    score(project, "log.json")
    assert len(verdicts(project)) == 1


def test_a_list_that_is_cut_off_gives_what_comes_before(project: Project) -> None:
    project.write("log.json", json.dumps([FIRST, LAST])[:-30])
    assert score(project, "log.json").code == 3
    assert verdicts(project) == {"first": "passed", "log.json:1": "inconclusive"}


@pytest.mark.parametrize("declared", ["auto", "hotel tools v2", ""])
def test_a_text_in_place_of_declarations_declares_nothing(project: Project, declared: str) -> None:
    log(project, conversation("c1", tools=declared))
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    warned = [each["text"] for each in summary(project)["notices"] if each["level"] == "warning"]
    assert any("declaration" in text for text in warned) == bool(declared)


def test_names_in_a_list_do_declare_tools(project: Project) -> None:
    log(project, conversation("c1", tools=["book_room"]))
    assert score(project, "log.jsonl", "--max-rate", "high=0").code == 1


def test_contents_of_gemini_are_messages(project: Project) -> None:
    call = {"functionCall": {"name": "find_room", "args": {"floor": 2}}}
    reply = {"functionResponse": {"name": "find_room", "response": {"room": "the blue one"}}}
    said = [("user", {"text": "Which room?"}), ("model", call), ("user", reply), ("model", {"text": "Blue."})]
    log(project, {"id": "c1", "contents": [{"role": role, "parts": [part]} for role, part in said]})
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    (turn,) = project.sample("c1")["turns"]
    assert (turn["agent"], [made["name"] for made in turn["tool_calls"]]) == ("Blue.", ["find_room"])


def test_a_run_of_ours_is_scored_anew_with_what_it_expects(project: Project) -> None:
    project.config()
    project.agent("def agent(messages):\n    return 'It costs 99 EUR.'\n")
    project.scenarios(
        """
        scenarios:
          - {id: right, turns: [Price?], expect: {output: {contains: ["99"]}}}
          - {id: wrong, turns: [Price?, And now?], expect: {output: {contains: ["77"]}}}
        """
    )
    assert project.run().code == 1
    (run,) = (project.root / ".agenteval" / "runs").iterdir()
    for name in (run.name, f".agenteval/runs/{run.name}", f".agenteval/runs/{run.name}/events.jsonl"):
        done = score(project, name)
        assert done.code == 1, done.all
        assert verdicts(project) == {"right": "passed", "wrong": "failed"}
        assert [turn["user"] for turn in project.sample("wrong")["turns"]] == ["Price?", "And now?"]


def test_scoring_a_score_gives_the_same(project: Project) -> None:
    log(project, conversation("a", reward=1), conversation("b", calls="x", reward=0))
    score(project, "log.jsonl")
    first = samples(project)
    assert score(project, "latest").code == 0
    again = samples(project)
    assert [again[name]["findings"] for name in "ab"] == [first[name]["findings"] for name in "ab"]
    assert first["b"]["findings"]
    assert project.call("report", "latest").code == 0

    assert score(project, "log.jsonl", "--outcome-from", "reward").code == 1
    assert score(project, "latest").code == 1
    assert verdicts(project) == {"a": "passed", "b": "failed"}
    (outcome,) = [each for each in project.sample("b")["checks"] if each["name"] == "outcome"]
    assert (outcome["passed"], outcome["detail"]) == (False, "reward is 0")


def test_criteria_of_a_run_stay_undecided_without_a_judge(project: Project) -> None:
    project.config("models: {default: scripted/yes.yaml}\nmetrics: []\n")
    reply = "{evidence: '', reason: '', label: pass}"
    project.write("yes.yaml", f"replies: [{{when: {{metric: criteria}}, reply: {reply}}}]\n")
    project.agent("def agent(messages):\n    return 'Yes.'\n")
    project.scenarios("id: s\nturns: [Hi]\nexpect: {criteria: [Is polite.]}\n")
    assert project.run().code == 0
    assert score(project, "latest").code == 3
    judged = score(project, "previous", "-m", "scripted/yes.yaml")
    assert judged.code == 0, judged.all


# ── scenarios, epochs, outcomes ──────────────────────────────────────────────────────────────────


def test_known_outcomes_become_pass_hat_k_of_what_did_not_fail(project: Project) -> None:
    outcomes = {"easy": [1, True, 1.0], "mixed": [1, 0, 1], "hard": [0, 0.5, False]}
    lines = [
        conversation(f"{task}-{trial}", labels={"task": task, "trial": trial, "reward": reward})
        for task, rewards in outcomes.items()
        for trial, reward in enumerate(rewards)
    ]
    lines[0] |= {"messages": conversation(calls="no_such_tool")["messages"]}
    log(project, *lines)
    paths = ("--scenario-from", "labels.task", "--epoch-from", "labels.trial")
    done = score(project, "log.jsonl", *paths, "--outcome-from", "labels.reward")
    assert done.code == 1
    hat = summary(project)["statistics"]["pass_hat_k"]
    assert hat == pytest.approx({"1": 4 / 9, "2": 2 / 9, "3": 0})
    found = {each["id"]: each["samples"] for each in project.results()["scenarios"]}
    assert [each["epoch"] for each in found["mixed"]] == [0, 1, 2]
    assert [each["verdict"] for each in found["mixed"]] == ["passed", "failed", "passed"]
    assert found["easy"][0]["verdict"] == "failed"  # by what was found
    (heading,) = [line for line in done.out.splitlines() if line.startswith("── mixed ")]
    assert "mixed-1" in heading
    assert "labels.reward is 0" in done.out


def test_scenarios_are_listed_in_the_order_of_the_log(project: Project) -> None:
    names = (("z", "b", 2), ("a", "a", 0), ("y", "b", 1))
    log(project, *({**greeting(name), "task": task, "trial": trial} for name, task, trial in names))
    done = score(project, "log.jsonl", "--scenario-from", "task", "--epoch-from", "trial")
    assert done.code == 0, done.all
    found = [(s["id"], [each["epoch"] for each in s["samples"]]) for s in project.results()["scenarios"]]
    assert found == [("b", [1, 2]), ("a", [0])]


def test_what_fails_here_is_no_success_whatever_outcome_is_known(project: Project) -> None:
    silent = greeting("", "")["messages"]
    log(project, *({"messages": silent, "t": "s", "r": 1} for _ in range(12)))
    project.write("agenteval.yaml", "gates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\n")
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 1, done.all
    (scenario,) = project.results()["scenarios"]
    assert scenario["statistics"]["successes"] == 0


def test_a_missing_outcome_is_named_and_in_no_rate(project: Project) -> None:
    log(project, *(conversation(f"c{n}", t=1, **({} if n == 2 else {"r": 1})) for n in range(3)))
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 0, done.all
    (notice,) = [each["text"] for each in summary(project)["notices"] if "outcome" in each["text"]]
    assert "(log.jsonl:3)" in notice
    (scenario,) = project.results()["scenarios"]
    assert (scenario["statistics"]["successes"], scenario["statistics"]["decided"]) == (2, 2)


@pytest.mark.skipif(not AIRLINE.is_file(), reason="the recorded conversations are not at hand")
def test_the_airline_s_pass_hat_k(project: Project) -> None:
    paths = ["--scenario-from", "labels.task_id", "--epoch-from", "labels.trial"]
    done = score(project, str(AIRLINE), *paths, "--outcome-from", "labels.reward")
    assert done.code == 1, done.all
    hat = summary(project)["statistics"]["pass_hat_k"]
    assert {k: round(value, 3) for k, value in hat.items()} == {"1": 0.42, "2": 0.273, "3": 0.22, "4": 0.2}
    assert len(project.results()["scenarios"]) == 50


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


def test_expectations_are_checked_and_unmatched_scenarios_named(project: Project) -> None:
    log(project, conversation("held"), conversation("broken"), conversation("other"))
    project.write(
        "suite.yaml",
        """
        scenarios:
          - id: held
            turns:
              - user: Where is order ORD-42?
                expect: {tool_calls: {calls: [{name: get_order, args: {id: ORD-42}}]}}
          - {id: broken, goal: x, expect: {output: {contains: [delivered]}}}
          - {id: unmet, goal: x}
        """,
    )
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 1, done.all
    assert verdicts(project) == {"held": "passed", "broken": "failed", "other": "passed"}
    assert [c["name"] for c in project.sample("held")["turns"][0]["checks"]] == ["answer", "tool_calls"]
    assert '"delivered"' in done.out
    notices = [each["text"] for each in summary(project)["notices"] if "--scenarios" in each["text"]]
    assert [any(name in text for text in notices) for name in ("unmet", "other", "held")] == [
        True,
        True,
        False,
    ]


def test_a_scenario_that_no_conversation_meets_leaves_the_score_undecided(project: Project) -> None:
    log(project, conversation("held"))
    project.write("agenteval.yaml", "fault_tolerance: 1\n")
    both = expect(project, {"held": CONTAINS_SHIPPED, "unmet": "limits: {steps: 9}"})
    done = score(project, "log.jsonl", *both)
    assert done.code == 3, done.all
    (gate,) = [g for g in summary(project)["gates"] if g["verdict"] == "inconclusive"]
    assert (gate["name"], gate["where"]) == ("every scenario met", "expected.yaml:3")
    assert "unmet" in gate["basis"]
    assert "unmet" in done.out
    assert score(project, "log.jsonl", *both, "-s", "held").code == 0
    assert score(project, "log.jsonl", *expect(project, {"held": CONTAINS_SHIPPED})).code == 0


@pytest.mark.parametrize("also", [{}, {"agent": "v2"}], ids=["one agent", "another agent"])
def test_every_conversation_of_an_id_meets_its_expectations(project: Project, also: dict[str, str]) -> None:
    log(project, conversation("a"), name="monday.jsonl")
    log(project, ignorant("a", **also), name="tuesday.jsonl")
    asked = ("monday.jsonl", "tuesday.jsonl", *expect(project, {"a": CONTAINS_SHIPPED}))
    done = score(project, *asked)
    assert done.code == 1, done.all
    found = [(s["id"], s["agent"]) for s in project.results()["scenarios"]]
    assert found == [("a", "recorded"), *([("a", "v2")] if also else [])]
    log(project, conversation("a", **also), name="tuesday.jsonl")
    assert score(project, *asked).code == 0


def test_expectations_that_meet_no_conversation_are_a_mistake(project: Project) -> None:
    log(project, conversation("c1"), conversation("c2"))
    done = score(project, "log.jsonl", *expect(project, {"a": CONTAINS_SHIPPED}))
    assert done.code == 2, done.all
    assert "expected.yaml:2: --scenarios" in flat(done.out)
    assert last_line(done).startswith("AUTHOR ERROR: 1 ")


def test_expectations_may_stand_in_several_files(project: Project) -> None:
    log(project, conversation("a"), ignorant("b"))
    for name, id_ in (("one.yaml", "b"), ("two.yaml", "a")):
        project.write(name, f"scenarios: [{{id: {id_}, turns: [x], expect: {{{CONTAINS_SHIPPED}}}}}]\n")
    for files in (("one.yaml", "two.yaml"), ("two.yaml", "one.yaml")):
        done = score(project, "log.jsonl", "--scenarios", files[0], "--scenarios", files[1])
        assert done.code == 1, done.all
        assert verdicts(project) == {"a": "passed", "b": "failed"}
    done = score(project, "log.jsonl", "--scenarios", "one.yaml", "--scenarios", "one.yaml")
    assert done.code == 1, done.all


@pytest.mark.parametrize(
    ("words", "code"), [("Where is order ORD-42?", 0), (" where is  order ord-42?", 0), ("Other words", 3)]
)
def test_expectations_of_a_turn_that_is_not_in_the_record_are_undecided(
    project: Project, words: str, code: int
) -> None:
    log(project, conversation("a"))
    turn = {"user": words, "expect": {"output": {"contains": ["shipped"]}}}
    project.write("suite.yaml", json.dumps({"scenarios": [{"id": "a", "turns": [turn]}]}))
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == code, done.all
    assert ("expectations" in done.out) is (code == 3)


def test_a_limit_of_time_is_undecided_where_no_times_were_recorded(project: Project) -> None:
    log(project, conversation("a"))
    done = score(project, "log.jsonl", *expect(project, {"a": "limits: {latency_ms: 1}"}))
    assert done.code == 3, done.all
    (check,) = [each for each in project.sample("a")["checks"] if each["passed"] is None]
    assert check["name"] == "limits.latency_ms"
    assert "judge" not in check["detail"]
    assert project.sample("a")["latency_ms"] is None
    ((dimension,),) = summary(project)["dimensions"].values()
    assert "steps" in dimension["spreads"]
    assert "latency_ms" not in dimension["spreads"]


@pytest.mark.parametrize("place", ["configuration", "scenario", "nowhere"])
def test_thresholds_that_nothing_was_judged_for_are_reported(project: Project, place: str) -> None:
    log(project, conversation("c1"))
    bound = "thresholds: {helpfulness: 3.5}"
    project.write("agenteval.yaml", f"{bound}\n" if place == "configuration" else "{}\n")
    inside = f", {bound}" if place == "scenario" else ""
    project.write("suite.yaml", f"scenarios: [{{id: c1, goal: x, expect: {{{CONTAINS_SHIPPED}}}{inside}}}]\n")
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 0, done.all
    assert ("thresholds" in done.all) == (place != "nowhere")


def test_expectations_of_the_documentation_hold(project: Project) -> None:
    page = (ROOT / "docs" / "score.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n# scenarios/expected.yaml\n(.*?)```", page, re.DOTALL)
    project.write("expected.yaml", block)
    released = ROOT / "scenarios" / "wonderbot" / "recorded" / "as-released.jsonl"
    done = score(project, str(released), "-s", "two-cities", "--scenarios", "expected.yaml")
    assert done.code == 0, done.all
    checks = {check["name"] for check in project.sample("two-cities")["checks"]}
    assert checks >= {"tool_calls", "output.contains", "limits.tool_calls"}
    assert not [each for each in summary(project)["notices"] if "expect" in each["text"]]


def test_an_undecided_score_advises_records_and_never_another_run(project: Project) -> None:
    good = {**greeting("a", "Done."), "task": "t"}
    log(project, good, {"id": "b", "task": "t", "messages": "none"}, {"id": "c", "task": "t", "messages": 1})
    scored = project.call("score", "log.jsonl", "--no-judge")
    assert scored.code == 3, scored.all
    assert "agenteval run" not in scored.all
    assert "log.jsonl:2, log.jsonl:3" in flat(scored.out.partition("to decide:")[2])

    log(project, good)
    project.write("expected.yaml", "{id: t, turns: [Hi], expect: {output: {contains: [Done]}}}\n")
    project.write("agenteval.yaml", "gates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\nmetrics: []\n")
    asked = ("log.jsonl", "--scenarios", "expected.yaml", "--scenario-from", "task", "-c", "agenteval.yaml")
    scored = project.call("score", *asked)
    assert scored.code == 3, scored.all
    advice = flat(scored.out.partition("to decide:")[2])
    assert "pass_rate" in advice
    assert "epochs: " not in advice
    assert "agenteval run" not in scored.all


# ── reports ──────────────────────────────────────────────────────────────────────────────────────


def test_places_in_reports_are_those_of_the_records(project: Project) -> None:
    log(project, conversation("a", t="s"), conversation("b", t="s", calls="no_such_tool"))
    project.write("agenteval.yaml", "fail_on_severity: high\n")
    reports = ("--report", "junit=j.xml", "--report", "github")
    done = score(project, "log.jsonl", "--scenario-from", "t", *reports)
    assert done.code == 1, done.all
    assert "file=log.jsonl,line=2" in done.out
    assert "file=log.jsonl,line=1" not in done.out
    cases = re.findall(r'<testcase name="s \[(.)\].*?" .*?line="(\d)"', (project.root / "j.xml").read_text())
    assert cases == [("a", "1"), ("b", "2")]


def test_a_rule_over_epochs_is_rerun_by_the_same_score(project: Project) -> None:
    log(project, *(conversation(t="s", r=n % 2) for n in range(12)))
    project.write("agenteval.yaml", "gates: {pass_rate: {at_least: 0.9, reject_below: 0.8}}\n")
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 1, done.all
    options = "--scenario-from t --outcome-from r -s s"
    assert f"agenteval score --report json=results.json log.jsonl {options}" in done.out
    assert "agenteval run" not in done.out


def test_reports_do_not_repeat_a_secret(project: Project) -> None:
    key = "AKIA" + "Q7ZTE4WYX2MPLK9B"
    log(project, greeting("a", f"The key is {key}."))
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent', secrets: [{key}]}}\n")
    done = score(project, "log.jsonl", "--report", "markdown=r.md", "--report", "junit=j.xml", "-v")
    assert done.code == 0, done.all
    for text in (done.out, *((project.root / name).read_text() for name in ("r.md", "j.xml"))):
        assert key not in text
        assert "unsafe state" in text
        assert "***" in text


def test_an_empty_file_beside_others_is_reported(project: Project) -> None:
    log(project, conversation("a"))
    project.write("empty.jsonl", "")
    done = score(project, "log.jsonl", "empty.jsonl")
    assert done.code == 0, done.all
    assert "empty.jsonl" in done.out


@pytest.mark.parametrize("path", ["log.jsonl", "./log.jsonl", "link.jsonl", "agenteval.yaml"])
def test_a_report_overwrites_no_input_of_a_score(project: Project, path: str) -> None:
    files = {"log.jsonl": lines_of(FIRST), "agenteval.yaml": "fault_tolerance: 0.1\n"}
    for name, text in files.items():
        project.write(name, text)
    (project.root / "link.jsonl").symlink_to(project.root / "log.jsonl")
    done = project.call("score", "log.jsonl", "--report", f"json={path}")
    assert done.code == 2, done.all
    assert re.search(rf"json report .*{re.escape(path)}", flat(done.err))
    assert {name: (project.root / name).read_text() for name in files} == files
    assert not (project.root / ".agenteval").exists()
    assert project.call("score", "log.jsonl", "--report", "json=other.jsonl").code == 0


def test_a_report_overwrites_no_input_of_a_run(project: Project) -> None:
    project.config("metrics: []\n")
    project.agent("def agent(message: str) -> str:\n    return message\n")
    text = "scenarios:\n  - {id: a, turns: [Hello], checks: none}\n"
    project.write("scenarios/a.yaml", text)
    for kind, path in (("json", "scenarios/a.yaml"), ("junit", "agenteval.yaml")):
        done = project.call("run", "--report", f"{kind}={path}")
        assert done.code == 2, done.all
        assert re.search(rf"{kind} report .*{re.escape(path)}", flat(done.err))
    assert (project.root / "scenarios/a.yaml").read_text() == text


@pytest.mark.parametrize("path", ["p/scenarios/a.yaml", "p/rows.csv", "p/agenteval.yaml"])
def test_a_report_overwrites_no_input_of_a_run_from_another_folder(project: Project, path: str) -> None:
    project.write("p/agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.write("p/agent.py", "def agent(message: str) -> str:\n    return message\n")
    project.write("p/rows.csv", "name\nAda\n")
    text = "scenarios:\n- {id: 'a-${row.name}', rows: ../rows.csv, turns: [Hello], checks: none}\n"
    project.write("p/scenarios/a.yaml", text)
    before = (project.root / path).read_text()
    command = ("run", "-c", "p/agenteval.yaml", "p/scenarios")
    assert project.call(*command, "--report", f"json={path}").code == 2
    assert project.call(*command).code == 0
    log(project, conversation("a-Ada"))
    inputs = ("log.jsonl", "--scenarios", "p/scenarios", "-c", "p/agenteval.yaml")
    assert project.call("score", *inputs, "--report", f"json={path}").code == 2
    (run,) = (project.root / "p/.agenteval/runs").iterdir()
    assert project.call("report", str(run), "--report", f"json={path}").code == 2
    assert (project.root / path).read_text() == before


def test_two_reports_have_two_files(project: Project) -> None:
    log(project, FIRST)
    for first, second, code in (
        ("json=out", "junit=./out", 2),
        ("json=out", "junit=other", 0),
        ("json=out", "json=out", 0),
        ("json=/dev/null", "junit=/dev/null", 0),
    ):
        done = project.call("score", "log.jsonl", "--report", first, "--report", second)
        assert done.code == code, done.all
        assert not code or all(fact in flat(done.err) for fact in ("json", "junit report", "./out"))


# ── judges ───────────────────────────────────────────────────────────────────────────────────────

REPLIES = "replies: [{when: {metric: helpfulness}, reply: {evidence: order ORD-42, reason: r, score: 4}}]\n"
ASK = ("log.jsonl", "-m", "scripted/replies.yaml", "--metric", "helpfulness")


def test_judges_are_asked_for_each_turn_where_they_are_asked_for(project: Project) -> None:
    project.write("replies.yaml", REPLIES.replace("helpfulness}", "helpfulness, turn: 0}"))
    log(project, conversation("a"), conversation("b"))
    done = score(project, *ASK)
    assert done.code == 0, done.all
    assert project.sample("a")["turns"][0]["scores"]["helpfulness"]["value"] == 4
    assert project.results()["scenarios"][0]["aggregates"]["helpfulness"]["value"] == 4
    assert ASK_JUDGES not in done.out
    assert summary(project)["scripted"] is True


BOUND_5 = "metrics: [helpfulness]\nthresholds: {helpfulness: 5}\nmodels: {%s: scripted/replies.yaml}\n"
BOUND_3 = BOUND_5.replace("5", "3")
NO_MODEL = "metrics: [helpfulness]\n"


@pytest.mark.parametrize(
    ("config", "options", "code", "is_judged"),
    [
        (BOUND_5 % "default", [], 0, False),  # a model for runs judges nothing here
        (BOUND_5 % "judge", [], 1, True),
        # Who switches the judges off leaves what only they can hold undecided, as in a run.
        (BOUND_5 % "judge", ["--no-judge"], 3, False),
        (NO_MODEL, ["--no-judge"], 0, False),
        # A configuration that is named judges with what it says.
        (BOUND_5 % "default", ["-c", "agenteval.yaml"], 1, True),
        (BOUND_3 % "default", ["-c", "agenteval.yaml"], 0, True),
        (BOUND_3 % "default", ["-c", "agenteval.yaml", "--no-judge"], 3, False),
        (NO_MODEL, ["-c", "agenteval.yaml"], 0, False),
    ],
)
def test_which_models_of_a_configuration_judge(
    project: Project, config: str, options: list[str], code: int, is_judged: bool
) -> None:
    project.write("replies.yaml", REPLIES)
    log(project, conversation("a"))
    project.write("agenteval.yaml", config)
    done = score(project, "log.jsonl", *options)
    assert done.code == code, done.all
    scores = project.sample("a")["turns"][0]["scores"]
    assert [each["value"] for each in scores.values()] == [4] * is_judged
    if "--no-judge" not in options:
        assert (ASK_JUDGES in done.out) is not is_judged
    elif code == 3:
        assert not [each for each in summary(project)["notices"] if "thresholds" in each["text"]]


def test_a_judge_sees_the_policy_of_the_record(project: Project) -> None:
    project.write("replies.yaml", REPLIES)
    messages = [{"role": "system", "content": "Speak only of orders."}, *conversation()["messages"]]
    log(project, {**conversation("a"), "messages": messages})
    assert score(project, *ASK).code == 0
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    events = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    (started,) = [each for each in events if each["type"] == "sample_started"]
    assert started["scenario"]["policy"] == "Speak only of orders."


# ── many of them ─────────────────────────────────────────────────────────────────────────────────


def test_many_conversations_are_reported_in_a_few_lines(project: Project) -> None:
    log(project, *(conversation(f"c{n}", calls="x" if n % 2 else "get_order") for n in range(200)))
    reported = project.call("score", "log.jsonl")
    assert reported.code == 0
    assert len(reported.out.splitlines()) < 20
    project.write("agenteval.yaml", "fail_on_severity: high\n")
    done = project.call("score", "log.jsonl")
    assert done.code == 1
    assert len(done.out.splitlines()) < 300  # a line for each that failed, and ten of them in full
    assert last_line(done).startswith("FAILED: 100 of 200 ")
    assert " 90 " in done.out


# ── the example ──────────────────────────────────────────────────────────────────────────────────


def test_the_example_shows_the_fault_of_each_version(project: Project) -> None:
    results = project.root / "results.json"
    done = Project(ROOT).call("score", "scenarios/wonderbot/recorded", "--report", f"json={results}")
    assert done.code == 1, done.all
    found = {(name, f["detector"]) for name, each in samples(project).items() for f in each["findings"]}
    expected = {("location", "wrong_arguments"), ("forecast", "unknown_tool"), ("instructions", "leak")}
    assert expected <= found
    assert {name for name, _ in found} == {name for name, _ in expected}


def test_the_example_is_what_its_script_records(project: Project) -> None:
    folder = project.root / "wonderbot"
    folder.mkdir()
    source = ROOT / "scenarios" / "wonderbot"
    for name in ("agent.py", "tools.py", "record.py", "policy.md"):
        (folder / name).write_bytes((source / name).read_bytes())
    subprocess.run([sys.executable, str(folder / "record.py")], check=True, env=environment())
    for path in sorted((source / "recorded").glob("*.jsonl")):
        assert (folder / "recorded" / path.name).read_bytes() == path.read_bytes()
