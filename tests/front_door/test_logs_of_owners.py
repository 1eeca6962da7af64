"""``agenteval score`` for who owns a log and has no scenarios: what goes wrong, how often, show me. Each log
has its twin beside it that ends otherwise."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.scored_logs import conversation, log, score
from tests.support.kit import Project

BAD = (5, 50, 90)


def hundred(
    project: Project, *, bad: Collection[int] = (), torn: Collection[int] = (), empty: Collection[int] = ()
) -> None:
    """A log of a hundred conversations; ``bad`` ones call a tool that does not exist (high), ``torn`` ones
    cannot be read, ``empty`` ones end without a word."""
    lines: list[Any] = []
    for n in range(100):
        record = conversation(f"c{n}", calls="find_order" if n in bad else "get_order")
        if n in empty:
            record["messages"][-1]["content"] = ""
        lines.append("{torn" if n in torn else record)
    log(project, *lines)


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def summary(project: Project) -> Any:
    return project.results()["summary"]


def gate(project: Project, name: str) -> Any:
    (row,) = [row for row in summary(project)["gates"] if row["name"] == name]
    return row


# ── what goes wrong, how often, show me ──────────────────────────────────────────────────────────


def test_a_log_is_reported_with_rates_and_quotations_and_never_passes(project: Project) -> None:
    hundred(project, bad=(*BAD, 95))
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert last_line(done.out) == "REPORTED: 100 conversations, findings in 4 (4 high) (exit 0)"
    assert "PASSED" not in done.out
    assert "FAILED" not in done.out
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    at = lines.index("high wrong tool unknown_tool 4 of 100 4.0 % 1.6 % to 9.8 %")
    assert [line.partition(" ")[0] for line in lines[at + 1 : at + 5]] == [
        "log.jsonl:6,",
        "log.jsonl:51,",
        "log.jsonl:91,",
        "",
    ]
    assert lines[at + 1].startswith('log.jsonl:6, turn 1 "find_order": called')
    (row,) = summary(project)["failure_rates"]["rows"]
    assert (row["conversations"], row["of"], row["rate"]) == (4, 100, 0.04)
    assert (round(row["low"], 4), round(row["high"], 4)) == (0.0157, 0.0984)
    assert [(q["where"], q["turn"]) for q in row["quotations"]] == [
        ("log.jsonl:6", 0),
        ("log.jsonl:51", 0),
        ("log.jsonl:91", 0),
    ]
    assert (summary(project)["verdict"], summary(project)["exit_code"]) == ("reported", 0)


def test_a_log_in_which_nothing_is_found_is_reported_too(project: Project) -> None:
    hundred(project)
    done = score(project, "log.jsonl")
    assert done.code == 0
    assert last_line(done.out) == "REPORTED: 100 conversations, nothing found (exit 0)"
    assert summary(project)["failure_rates"]["rows"] == []
    assert "nothing was judged" in done.out


def test_rows_stand_by_severity_and_then_by_rate(project: Project) -> None:
    """A call that is repeated for nothing is medium, and more frequent than what is high."""
    again = conversation("r")["messages"]
    repeated = [again[0], *again[1:3] * 3, again[3]]
    lines = [conversation(f"c{n}", calls="find_order" if n < 2 else "get_order") for n in range(10)]
    lines += [{**conversation(f"r{n}"), "messages": repeated} for n in range(3)]
    log(project, *lines)
    assert score(project, "log.jsonl").code == 0
    rows = [
        (row["severity"], row["found_by"], row["conversations"])
        for row in summary(project)["failure_rates"]["rows"]
    ]
    assert rows == [("high", "unknown_tool", 2), ("medium", "repeated_tool_call", 3)]


def test_every_report_says_reported(project: Project) -> None:
    hundred(project, bad=BAD, torn=(7,))
    names = ("json=r.json", "markdown=r.md", "junit=r.xml", "github=r.txt")
    done = project.call("score", "log.jsonl", *(word for name in names for word in ("--report", name)))
    assert done.code == 0, done.all
    texts = {
        name: (project.root / name).read_text(encoding="utf-8")
        for name in ("r.json", "r.md", "r.xml", "r.txt")
    }
    assert json.loads(texts["r.json"])["summary"]["verdict"] == "reported"
    assert texts["r.md"].startswith("# 📋 agenteval: reported\n")
    assert "| high | wrong tool | unknown_tool | 3 of 99 |" in texts["r.md"]
    assert "log.jsonl:51, turn 1" in texts["r.md"]
    assert "## Scenarios" not in texts["r.md"]
    assert "| ✅ | c1 |" not in texts["r.md"]
    root = ElementTree.fromstring(texts["r.xml"])
    assert root.find(".//failure") is None
    assert root.find(".//error") is None
    facts = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert facts["verdict"] == "reported"
    assert facts["rate.1"] == "high: wrong tool (unknown_tool): 3 of 99, 3.0 % (1.0 % to 8.5 %)"
    assert "log.jsonl:91, turn 1" in str(facts["quotations.1"])
    assert "::error" not in texts["r.txt"]
    assert "title=what goes wrong%3A wrong tool::high: wrong tool (unknown_tool): 3 of 99" in texts["r.txt"]
    for text in texts.values():
        assert "tolerated by a gate" not in text


def test_a_kept_score_is_reported_listed_shown_and_compared(project: Project) -> None:
    hundred(project, bad=BAD)
    first = score(project, "log.jsonl")
    assert first.code == 0
    again = project.call("report", "latest")
    assert again.code == 0
    table = again.out.index("What goes wrong in 100 conversations")
    assert again.out[table:] == first.out[first.out.index("What goes wrong in 100 conversations") :]
    assert "reported" in project.call("runs").out
    assert "find_order" in project.call("show", "c5").out
    hundred(project, bad=range(60))
    assert score(project, "log.jsonl").code == 0
    assert project.call("diff", "previous", "latest").code == 1
    scored = score(project, "latest")  # a score of a score has no scenarios either
    assert (scored.code, scored.out.splitlines()[-1][:8]) == (0, "REPORTED")


# ── --max-rate ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rates", "code", "ends"),
    [
        (["high=1%"], 1, "FAILED: --max-rate high failed: 3.0 %, at most 1 %; "),
        (["high=0.01"], 1, "FAILED: --max-rate high failed: 3.0 %, at most 1 %; "),
        (["medium=2.9%"], 1, "FAILED: --max-rate medium failed: 3.0 %, at most 2.9 %; "),
        (["high=3%"], 0, "REPORTED: --max-rate high passed: 3.0 %, at most 3 %; "),
        (["high=5%"], 0, "REPORTED: --max-rate high passed: 3.0 %, at most 5 %; "),
        (["critical=0"], 0, "REPORTED: --max-rate critical passed: 0.0 %, at most 0 %; "),
        (
            ["critical=0", "high=1%"],
            1,
            "FAILED: --max-rate critical passed: 0.0 %, at most 0 %; --max-rate high",
        ),
    ],
)
def test_a_rate_gates_as_observed(project: Project, rates: list[str], code: int, ends: str) -> None:
    hundred(project, bad=BAD)
    done = score(project, "log.jsonl", *(word for rate in rates for word in ("--max-rate", rate)))
    assert done.code == code, done.all
    assert last_line(done.out).startswith(ends)
    for place in ("log.jsonl:6, turn 1", "log.jsonl:51, turn 1", "log.jsonl:91, turn 1"):
        assert place in done.out
    if code:
        row = gate(project, "--max-rate high" if "high" in rates[-1] else "--max-rate medium")
        assert (row["verdict"], row["value"]) == ("failed", 0.03)
        assert "3 of 100 conversations with a finding of" in row["basis"]


def test_a_conversation_without_an_answer_counts_at_every_severity(project: Project) -> None:
    hundred(project, empty=(1, 2))
    assert score(project, "log.jsonl").code == 0
    (row,) = summary(project)["failure_rates"]["rows"]
    assert (row["label"], row["found_by"], row["severity"]) == ("empty answer", "check answer", None)
    done = score(project, "log.jsonl", "--max-rate", "critical=0")
    assert done.code == 1
    assert "2 of 100 conversations with a finding of critical severity or a failed check" in done.out
    assert score(project, "log.jsonl", "--max-rate", "critical=2%").code == 0


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("high", "--max-rate high: it has no rate"),
        ("hihg=1%", "'hihg' is not a severity — did you mean 'high'?"),
        ("high=many", "'many' is not a rate"),
        ("high=-1%", "'-1%' is not a rate"),
        ("high=nan", "'nan' is not a rate"),
        ("high=", "'' is not a rate"),
        ("high=1", "1 allows a finding in every conversation"),
        ("high=150%", "150% allows a finding in every conversation"),
    ],
)
def test_a_rate_that_cannot_be_meant_is_one_message(project: Project, rate: str, said: str) -> None:
    log(project, conversation("a"))
    done = project.call("score", "log.jsonl", "--max-rate", rate)
    assert done.code == 2, done.all
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (project.root / ".agenteval").exists()


def test_a_severity_is_bounded_once(project: Project) -> None:
    log(project, conversation("a"))
    done = project.call("score", "log.jsonl", "--max-rate", "high=1%", "--max-rate", "high=2%")
    assert (done.code, "high has two rates" in done.err) == (2, True)


def unplaced(name: str) -> dict[str, Any]:
    """With an entry that no reader can place: a call may be in it."""
    record = conversation(name)
    record["messages"].insert(3, {"role": "widget", "action": {"name": "cancel", "of": [{"id": 1}]}})
    return record


def test_what_is_not_fully_seen_is_taken_at_its_worst_and_at_its_best(project: Project) -> None:
    log(project, *(conversation(f"c{n}") for n in range(98)), unplaced("u1"), unplaced("u2"))
    plain = score(project, "log.jsonl")
    assert plain.code == 0
    assert "2 conversations not fully seen" in last_line(plain.out)
    done = score(project, "log.jsonl", "--max-rate", "high=1%")
    assert done.code == 3, done.all
    assert last_line(done.out).startswith("INCONCLUSIVE: --max-rate high was not decided: 0.0 %, at most 1 %")
    row = gate(project, "--max-rate high")
    assert "not known for 2 more: log.jsonl:99, log.jsonl:100" in row["basis"]
    assert row["resolution"].startswith("--no-calls-in KEY, if no call is in ")
    assert "to decide:   --no-calls-in KEY" in done.out
    # Both ways the verdict is the same.
    assert score(project, "log.jsonl", "--max-rate", "high=2%").code == 0
    done = score(project, "log.jsonl", "--max-rate", "high=1%", "--no-calls-in", "widget")
    assert done.code == 0, done.all


def replies(label: str) -> str:
    """Of a judge that finds ``label`` in the conversation "bad", and fails in "odd"."""
    bad = {"evidence": "It has been shipped.", "reason": "It ends.", "label": label}
    good = {"evidence": "", "reason": "r", "label": "no failure"}
    rows = [("bad", bad), ("odd", {**good, "label": "no such label"}), ("", good)]
    when = {"metric": "agent_behavior_failure"}
    told = [{"when": {**when, **({"scenario": s} if s else {})}, "reply": reply} for s, reply in rows]
    return json.dumps({"replies": told})


def judged(project: Project, *arguments: str, label: str = "disobey user request") -> Any:
    project.write("replies.yaml", replies(label))
    asked = ("-m", "scripted/replies.yaml", "--metric", "agent_behavior_failure")
    return score(project, "log.jsonl", *asked, *arguments)


def test_labels_of_judges_are_rows_and_a_judge_that_failed_is_not_known(project: Project) -> None:
    log(project, *(conversation(name) for name in ("a", "bad", "c", "d", "odd")))
    done = judged(project)
    assert done.code == 0, done.all
    assert last_line(done.out).startswith("REPORTED: 5 conversations, findings in 1 (1 ")
    assert "1 conversation not decided" in last_line(done.out)
    (row,) = summary(project)["failure_rates"]["rows"]
    assert row["found_by"] == "judge of agent_behavior_failure"
    assert (row["conversations"], row["of"], row["unknown"]) == (1, 4, 1)
    assert row["quotations"][0]["evidence"] == "It has been shipped."
    assert row["quotations"][0]["where"] == "log.jsonl:2"
    worst = row["severity"]
    done = judged(project, "--max-rate", f"{worst}=20%")
    assert done.code == 3, done.all
    assert "log.jsonl -m scripted/replies.yaml --metric" in gate(project, f"--max-rate {worst}")["resolution"]
    assert judged(project, "--max-rate", f"{worst}=40%").code == 0
    assert judged(project, "--max-rate", f"{worst}=10%").code == 1


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────

FOUR, FIVE, SIX = (3, 28, 53, 78), (3, 23, 43, 63, 83), (3, 19, 35, 51, 67, 83)


@pytest.mark.parametrize("flags", [(), ("--max-rate", "high=5%")])
def test_a_few_unreadable_records_are_named_and_more_are_undecided(
    project: Project, flags: tuple[str, ...]
) -> None:
    hundred(project, torn=FOUR)
    done = score(project, "log.jsonl", *flags)
    assert done.code == 0, done.all
    told = "with 4 of 100 records unreadable (log.jsonl:4, log.jsonl:29, log.jsonl:54 and 1 more)"
    assert last_line(done.out).startswith("REPORTED: ")
    assert last_line(done.out).endswith(told)
    hundred(project, torn=FIVE)
    assert score(project, "log.jsonl", *flags).code == 0
    hundred(project, torn=SIX)
    done = score(project, "log.jsonl", *flags)
    assert done.code == 3
    assert "6.0 % of the records unreadable, at most 5 %" in last_line(done.out)
    assert "readable records in place of log.jsonl:4, log.jsonl:20, log.jsonl:36 and 3 more" in " ".join(
        done.out.split()
    )


def test_a_rate_that_is_broken_is_red_whatever_cannot_be_read(project: Project) -> None:
    hundred(project, torn=SIX, bad=BAD)
    assert score(project, "log.jsonl", "--max-rate", "high=1%").code == 1


def test_a_log_in_which_the_agent_never_answers_is_not_reported(project: Project) -> None:
    lost = {
        "request": {"messages": [{"role": "user", "content": "Hi"}]},
        "response": {"error": {"message": "x"}},
    }
    log(project, lost, lost)
    assert score(project, "log.jsonl").code == 3
    log(project, lost, conversation("a"))
    assert score(project, "log.jsonl").code == 0
    assert score(project, "log.jsonl", "--max-rate", "critical=0").code == 3


# ── what a configuration names ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", [(), ("-c", "agenteval.yaml")])
def test_a_severity_that_a_configuration_names_gates_as_ever(
    project: Project, named: tuple[str, ...]
) -> None:
    hundred(project, bad=BAD)
    project.write("agenteval.yaml", "metrics: []\n")
    done = score(project, "log.jsonl", *named)
    assert (done.code, last_line(done.out)[:9]) == (0, "REPORTED:")
    project.write("agenteval.yaml", "metrics: []\nfail_on_severity: high\n")
    done = score(project, "log.jsonl", *named)
    assert done.code == 1
    assert last_line(done.out).startswith("FAILED: 3 of 100 scenarios failed")
    assert "log.jsonl:91, turn 1" in done.out
    hundred(project, torn=FOUR)
    done = score(project, "log.jsonl", *named)
    assert done.code == 0, done.all
    assert "4 of 100 records unreadable" in last_line(done.out)
    hundred(project, torn=SIX)
    assert score(project, "log.jsonl", *named).code == 3


def test_where_scenarios_say_what_is_expected_verdicts_stay_and_a_rate_is_one_more_gate(
    project: Project,
) -> None:
    log(project, conversation("a"), conversation("b", calls="find_order"))
    project.write("s.yaml", "scenarios: [{id: a, turns: [x], expect: {output: {contains: shipped}}}]")
    assert score(project, "log.jsonl", "--scenarios", "s.yaml").code == 1
    log(project, conversation("a"), conversation("b"))
    done = score(project, "log.jsonl", "--scenarios", "s.yaml", "--max-rate", "high=1%")
    assert (done.code, last_line(done.out)[:7]) == (0, "PASSED:")
    assert summary(project)["failure_rates"] is None
    assert gate(project, "--max-rate high")["verdict"] == "passed"


def test_a_known_outcome_fails_as_ever(project: Project) -> None:
    log(project, conversation("a", reward=0), conversation("b", reward=1))
    assert score(project, "log.jsonl").code == 0
    assert score(project, "log.jsonl", "--outcome-from", "reward").code == 1


def test_epochs_of_a_scenario_that_nobody_wrote_are_a_log_all_the_same(project: Project) -> None:
    log(project, *(conversation(f"c{n}", task=n % 2, calls="x" if n == 3 else "get_order") for n in range(6)))
    done = score(project, "log.jsonl", "--scenario-from", "task")
    assert (done.code, last_line(done.out)[:9]) == (0, "REPORTED:")
    assert score(project, "log.jsonl", "--scenario-from", "task", "--max-rate", "high=1%").code == 1


def test_a_file_that_breaks_off_may_hold_any_number_more(project: Project) -> None:
    """One place that cannot be read, and nobody knows how many records: not a few."""
    packed = gzip.compress("".join(f"{json.dumps(conversation(f'c{n}'))}\n" for n in range(5000)).encode())
    (project.root / "log.jsonl.gz").write_bytes(packed)
    assert score(project, "log.jsonl.gz").code == 0
    (project.root / "log.jsonl.gz").write_bytes(packed[:-200])
    done = score(project, "log.jsonl.gz")
    assert done.code == 3, done.all
    assert "is not known" in last_line(done.out)


def test_a_document_that_breaks_in_the_middle_may_hold_any_number_more(project: Project) -> None:
    text = json.dumps([conversation(f"c{n}") for n in range(40)], indent=1)
    project.write("log.json", text)
    assert score(project, "log.json").code == 0
    project.write("log.json", text[: len(text) * 3 // 4])
    assert score(project, "log.json").code == 3


# ── the user ─────────────────────────────────────────────────────────────────────────────────────

EARLIER, LATER = "My order is ORD-42.", "I never had an order ORD-42."


def changed_story(name: str) -> dict[str, Any]:
    """The user says one thing and then the other; then the agent calls a tool that does not exist."""
    record = conversation(name, calls="find_order")
    hello = [{"role": "user", "content": EARLIER}, {"role": "assistant", "content": "What about it?"}]
    record["messages"] = [*hello, {"role": "user", "content": LATER}, *record["messages"][1:]]
    return record


def review(scenario: str, label: str, **more: Any) -> dict[str, Any]:
    reply = {"evidence": "", "source": "", "reason": "It left.", "label": label, "explains": True, **more}
    return {"when": {"role": "judge", "metric": "user_review", "scenario": scenario}, "reply": reply}


def reviewed(project: Project, rows: list[dict[str, Any]], *flags: str) -> Any:
    good = {"evidence": "", "reason": "r", "label": "no failure"}
    judge = {"when": {"metric": "agent_behavior_failure"}, "reply": good}
    project.write("replies.yaml", json.dumps({"replies": [*rows, judge]}))
    asked = ("-m", "scripted/replies.yaml", "--metric", "agent_behavior_failure")
    return score(project, "log.jsonl", *asked, *flags)


def test_a_user_of_whom_nothing_is_known_is_charged_with_nothing(project: Project) -> None:
    """The fault of the agent stands, and the rate with it."""
    log(project, conversation("a", calls="find_order"), conversation("b"))
    rows = [review("a", "the scenario did not say"), review("b", "as it should")]
    done = reviewed(project, rows, "--max-rate", "high=10%")
    assert done.code == 1, done.all
    sample = project.sample("a")
    assert sample["user_review"]["label"] == "the scenario did not say"
    assert sample["user_review"]["recorded"] is True
    assert [finding["detector"] for finding in sample["findings"]] == ["unknown_tool"]
    reviews = summary(project)["simulator"]["reviews"]
    assert (reviews["reviewed"], reviews["at_fault"], reviews["not_in_scenario"]) == (1, 0, 1)
    told = " ".join(project.call("report", "latest", "-v").out.split())
    assert "Users: at fault in 0 of 1 reviewed conversation" in told
    assert "in 1 the scenario did not say" in told


def test_a_user_who_contradicts_himself_is_not_the_agent_s_fault(project: Project) -> None:
    log(project, changed_story("a"), conversation("b"))
    hindered = review("a", "hindered", evidence=LATER, source=EARLIER)
    done = reviewed(project, [hindered])
    assert done.code == 0, done.all
    assert "1 conversation not decided" in last_line(done.out)
    sample = project.sample("a")
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "simulator")
    assert sample["user_review"]["turn"] == 1
    assert sample["findings"] == []
    assert sample["reason"].startswith("simulator (turn 2): the user hindered the agent")
    done = reviewed(project, [hindered], "--max-rate", "high=10%")
    assert done.code == 3, done.all
    assert gate(project, "--max-rate high")["resolution"].startswith(
        "conversations in which the user is not at"
    )
    assert "agenteval run" not in done.all
    # A score of that score asks nobody again.
    assert score(project, "latest").code == 0
    assert project.sample("a")["user_review"]["label"] == "hindered"
    # With a user who acted as he should the agent is charged.
    done = reviewed(project, [review("a", "as it should")], "--max-rate", "high=10%")
    assert done.code == 1, done.all


def test_nobody_can_have_helped_of_whom_nothing_is_known(project: Project) -> None:
    """Such an answer is no answer: the agent's fault stands."""
    log(project, changed_story("a"), conversation("b"))
    done = reviewed(project, [review("a", "helped", evidence=LATER)], "--max-rate", "high=10%")
    assert done.code == 1, done.all
    assert "user_review" not in project.sample("a")


def test_users_are_looked_at_only_where_judges_are_asked(project: Project) -> None:
    log(project, changed_story("a"), conversation("b"))
    project.write(
        "replies.yaml", json.dumps({"replies": [review("a", "hindered", evidence=LATER, source=EARLIER)]})
    )
    project.write("agenteval.yaml", "models: {default: scripted/replies.yaml}\n")
    assert score(project, "log.jsonl", "--max-rate", "high=10%").code == 1
    assert "user_review" not in project.sample("a")


@pytest.mark.parametrize(("bound", "code"), [(2, 0), (4, 1)])
def test_a_threshold_that_is_named_and_judged_holds_or_not(project: Project, bound: int, code: int) -> None:
    log(project, conversation("a", calls="find_order"), conversation("b"), conversation("c"))
    project.write("agenteval.yaml", f"thresholds: {{helpfulness: {bound}}}\n")
    replies = [
        {
            "when": {"scenario": name},
            "reply": {"evidence": "It has been shipped.", "reason": "r", "score": 5 if name == "c" else 3},
        }
        for name in "abc"
    ]
    project.write("replies.yaml", json.dumps({"replies": replies}))
    done = score(project, "log.jsonl", "-m", "scripted/replies.yaml", "--metric", "helpfulness")
    assert done.code == code, done.all
    if code:
        assert last_line(done.out).startswith(
            "FAILED: thresholds.helpfulness failed (2 times); 3 conversations"
        )
        assert "FAILED a  helpfulness: 3" in done.out
        assert "FAILED b  helpfulness: 3" in done.out
        assert "FAILED c" not in done.out
    else:
        assert last_line(done.out).startswith("REPORTED: ")


def test_a_question_that_nobody_answered_is_unknown_to_a_rate(project: Project) -> None:
    record = conversation("c0", calls="delete_account")
    record["tools"] = [{"name": "delete_account"}]
    log(project, record)
    scenario = "{id: c0, turns: [Hi], checks: none, tools: {delete_account: {destructive: %s}}}"
    project.write("marks.yaml", scenario % "true")
    done = score(project, "log.jsonl", "--scenarios", "marks.yaml", "--max-rate", "high=1%")
    assert done.code == 3, done.all
    row = gate(project, "--max-rate high")
    assert (row["verdict"], row["value"]) == ("inconclusive", 0.0)
    assert "it is not known whether the user had agreed" in row["resolution"]
    project.write("marks.yaml", scenario % "false")
    done = score(project, "log.jsonl", "--scenarios", "marks.yaml", "--max-rate", "high=1%")
    assert done.code == 0, done.all
