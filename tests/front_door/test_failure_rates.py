"""``agenteval score`` of a log without scenarios: rates of failures, quotations, ``--max-rate``, records that
cannot be read, and reviews of the recorded users."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.kit import Done, Project
from tests.support.scored_logs import (
    ASK_JUDGES,
    caveats,
    conversation,
    expect,
    flat,
    last_line,
    lines_of,
    log,
    score,
    summary,
)

BAD = (5, 50, 90)
PLACES = ("log.jsonl:6", "log.jsonl:51", "log.jsonl:91")


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


def gate(project: Project, name: str) -> Any:
    (row,) = [row for row in summary(project)["gates"] if row["name"] == name]
    return row


def rows(project: Project) -> Any:
    return summary(project)["failure_rates"]["rows"]


# ── rates and quotations ─────────────────────────────────────────────────────────────────────────


def test_a_log_is_reported_with_rates_and_quotations_and_never_passes(project: Project) -> None:
    hundred(project, bad=(*BAD, 95))
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert last_line(done).startswith("REPORTED: 100 ")
    assert last_line(done).endswith("(4 high) (exit 0)")
    assert "PASSED" not in done.out
    assert "FAILED" not in done.out
    lines = [flat(line) for line in done.out.splitlines()]
    at = lines.index("high wrong tool unknown_tool 4 of 100 4.0 % 1.6 % to 9.8 %")
    quoted = [line.partition(",")[0] for line in lines[at + 1 : at + 5]]
    assert quoted == [*PLACES, ""]
    assert lines[at + 1].startswith('log.jsonl:6, turn 1 "find_order": ')
    (row,) = rows(project)
    assert (row["conversations"], row["of"], row["rate"]) == (4, 100, 0.04)
    assert (round(row["low"], 4), round(row["high"], 4)) == (0.0157, 0.0984)
    assert [(q["where"], q["turn"]) for q in row["quotations"]] == [(place, 0) for place in PLACES]
    assert (summary(project)["verdict"], summary(project)["exit_code"]) == ("reported", 0)


def test_a_log_in_which_nothing_is_found_is_reported_too(project: Project) -> None:
    hundred(project)
    done = score(project, "log.jsonl")
    assert done.code == 0
    assert last_line(done).startswith("REPORTED: 100 ")
    assert rows(project) == []
    assert ASK_JUDGES in done.out


def test_rows_are_sorted_by_severity_and_then_by_rate(project: Project) -> None:
    """A call that is repeated for nothing is medium, and more frequent than what is high."""
    again = conversation("r")["messages"]
    repeated = [again[0], *again[1:3] * 3, again[3]]
    lines = [conversation(f"c{n}", calls="find_order" if n < 2 else "get_order") for n in range(10)]
    log(project, *lines, *({**conversation(f"r{n}"), "messages": repeated} for n in range(3)))
    assert score(project, "log.jsonl").code == 0
    found = [(row["severity"], row["found_by"], row["conversations"]) for row in rows(project)]
    assert found == [("high", "unknown_tool", 2), ("medium", "repeated_tool_call", 3)]


def test_every_report_has_the_rates_and_the_verdict_reported(project: Project) -> None:
    hundred(project, bad=BAD, torn=(7,))
    names = {"json": "r.json", "markdown": "r.md", "junit": "r.xml", "github": "r.txt"}
    options = [word for kind, name in names.items() for word in ("--report", f"{kind}={name}")]
    done = project.call("score", "log.jsonl", *options)
    assert done.code == 0, done.all
    texts = {kind: (project.root / name).read_text(encoding="utf-8") for kind, name in names.items()}
    assert json.loads(texts["json"])["summary"]["verdict"] == "reported"
    assert "reported" in texts["markdown"].splitlines()[0]
    assert "| high | wrong tool | unknown_tool | 3 of 99 |" in texts["markdown"]
    assert "log.jsonl:51, turn 1" in texts["markdown"]
    assert "## Scenarios" not in texts["markdown"]
    assert "| c1 |" not in texts["markdown"]
    root = ElementTree.fromstring(texts["junit"])
    assert root.find(".//failure") is None
    assert root.find(".//error") is None
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert properties["verdict"] == "reported"
    rate = ("high", "wrong tool", "unknown_tool", "3 of 99")
    assert all(fact in str(properties["rate.1"]) for fact in (*rate, "3.0 %", "1.0 %", "8.5 %"))
    assert "log.jsonl:91, turn 1" in str(properties["quotations.1"])
    assert "::error" not in texts["github"]
    assert any(all(fact in line for fact in rate) for line in texts["github"].splitlines())


def test_a_kept_score_is_reported_listed_shown_and_compared(project: Project) -> None:
    hundred(project, bad=BAD)
    first = score(project, "log.jsonl")
    assert first.code == 0
    again = project.call("report", "latest")
    assert again.code == 0
    table = first.out.index("severity ")
    assert again.out[again.out.index("severity ") :] == first.out[table:]
    assert "reported" in project.call("runs").out
    assert "find_order" in project.call("show", "c5").out
    hundred(project, bad=range(60))
    assert score(project, "log.jsonl").code == 0
    assert project.call("diff", "previous", "latest").code == 1
    scored = score(project, "latest")  # a score of a score has no scenarios either
    assert (scored.code, last_line(scored)[:9]) == (0, "REPORTED:")


# ── --max-rate ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rates", "code", "gates"),
    [
        (["high=1%"], 1, {"high": ("failed", 0.03, 0.01)}),
        (["high=0.01"], 1, {"high": ("failed", 0.03, 0.01)}),
        (["medium=2.9%"], 1, {"medium": ("failed", 0.03, 0.029)}),
        (["high=3%"], 0, {"high": ("passed", 0.03, 0.03)}),
        (["high=5%"], 0, {"high": ("passed", 0.03, 0.05)}),
        (["critical=0"], 0, {"critical": ("passed", 0, 0)}),
        (["critical=0", "high=1%"], 1, {"critical": ("passed", 0, 0), "high": ("failed", 0.03, 0.01)}),
    ],
)
def test_a_rate_gates_as_observed(
    project: Project, rates: list[str], code: int, gates: dict[str, tuple[str, float, float]]
) -> None:
    hundred(project, bad=BAD)
    done = score(project, "log.jsonl", *(word for rate in rates for word in ("--max-rate", rate)))
    assert done.code == code, done.all
    assert last_line(done).startswith("FAILED: --max-rate " if code else "REPORTED: --max-rate ")
    assert all(f"{place}, turn 1" in done.out for place in PLACES)
    for severity, (verdict, value, bound) in gates.items():
        row = gate(project, f"--max-rate {severity}")
        assert (row["verdict"], row["value"], row["bound"]) == (verdict, value, pytest.approx(bound))
        assert f"--max-rate {severity} {verdict}" in last_line(done)
        assert f"{value:.1%}".replace("%", " %") in last_line(done)
        if verdict == "failed":
            assert row["basis"].startswith("3 of 100 ")


def test_a_conversation_without_an_answer_counts_at_every_severity(project: Project) -> None:
    hundred(project, empty=(1, 2))
    assert score(project, "log.jsonl").code == 0
    (row,) = rows(project)
    assert (row["label"], row["found_by"], row["severity"]) == ("empty answer", "check answer", None)
    done = score(project, "log.jsonl", "--max-rate", "critical=0")
    assert done.code == 1
    assert gate(project, "--max-rate critical")["basis"].startswith("2 of 100 ")
    assert score(project, "log.jsonl", "--max-rate", "critical=2%").code == 0


@pytest.mark.parametrize(
    ("rates", "fact"),
    [
        (["high"], "--max-rate high"),
        (["hihg=1%"], "'high'"),
        (["high=many"], "'many'"),
        (["high=-1%"], "'-1%'"),
        (["high=nan"], "'nan'"),
        (["high="], "''"),
        (["high=1"], "1"),
        (["high=150%"], "150%"),
        (["high=1%", "high=2%"], "high"),
    ],
)
def test_a_rate_that_cannot_be_meant_is_refused_in_one_line(
    project: Project, rates: list[str], fact: str
) -> None:
    log(project, conversation("a"))
    done = project.call("score", "log.jsonl", *(word for rate in rates for word in ("--max-rate", rate)))
    done.refuses(f"--max-rate {rates[-1]}", fact)
    assert len(done.err.splitlines()) == 1
    assert not (project.root / ".agenteval").exists()


def unplaced(name: str) -> dict[str, Any]:
    """With an entry that no reader can place: a call may be in it."""
    record = conversation(name)
    record["messages"].insert(3, {"role": "widget", "action": {"name": "cancel", "of": [{"id": 1}]}})
    return record


def test_what_is_not_fully_seen_is_taken_at_its_worst_and_at_its_best(project: Project) -> None:
    log(project, *(conversation(f"c{n}") for n in range(98)), unplaced("u1"), unplaced("u2"))
    assert score(project, "log.jsonl").code == 0
    assert caveats(project)["not_fully_seen"] == 2
    done = score(project, "log.jsonl", "--max-rate", "high=1%")
    assert done.code == 3, done.all
    assert last_line(done).startswith("INCONCLUSIVE: --max-rate high ")
    row = gate(project, "--max-rate high")
    assert (row["verdict"], row["value"], row["bound"]) == ("inconclusive", 0, 0.01)
    assert row["basis"].endswith("2 more: log.jsonl:99, log.jsonl:100")
    assert row["resolution"].startswith("use --no-calls-in KEY")
    assert "--no-calls-in KEY" in done.out.partition("to decide:")[2]
    # Both ways the verdict is the same.
    assert score(project, "log.jsonl", "--max-rate", "high=2%").code == 0
    done = score(project, "log.jsonl", "--max-rate", "high=1%", "--no-calls-in", "widget")
    assert done.code == 0, done.all


BEHAVIOR = "agent_behavior_failure"
GOOD = {"evidence": "", "reason": "r", "label": "no failure"}


def judged(project: Project, replies: list[Any], *arguments: str, metric: str = BEHAVIOR) -> Done:
    """A score with judges: each of ``replies`` is what the judge is asked about, and what it answers."""
    rows = [{"when": when, "reply": reply} for when, reply in replies]
    project.write("replies.yaml", json.dumps({"replies": rows}))
    return score(project, "log.jsonl", "-m", "scripted/replies.yaml", "--metric", metric, *arguments)


def test_labels_of_judges_are_rows_and_a_judge_that_failed_is_not_known(project: Project) -> None:
    log(project, *(conversation(name) for name in ("a", "bad", "c", "d", "odd")))
    bad = {"evidence": "It has been shipped.", "reason": "It ends.", "label": "disobey user request"}
    replies = [
        ({"metric": BEHAVIOR, "scenario": "bad"}, bad),
        ({"metric": BEHAVIOR, "scenario": "odd"}, {**GOOD, "label": "no such label"}),
        ({"metric": BEHAVIOR}, GOOD),
    ]
    done = judged(project, replies)
    assert done.code == 0, done.all
    assert last_line(done).startswith("REPORTED: 5 ")
    assert caveats(project)["conversations_undecided"] == 1
    (row,) = rows(project)
    assert BEHAVIOR in row["found_by"]
    assert (row["conversations"], row["of"], row["unknown"]) == (1, 4, 1)
    (quotation,) = row["quotations"]
    assert (quotation["evidence"], quotation["where"]) == ("It has been shipped.", "log.jsonl:2")
    worst = row["severity"]
    for bound, code in (("20%", 3), ("40%", 0), ("10%", 1)):
        done = judged(project, replies, "--max-rate", f"{worst}={bound}")
        assert done.code == code, done.all
        if code == 3:
            again = "log.jsonl -m scripted/replies.yaml --metric"
            assert again in gate(project, f"--max-rate {worst}")["resolution"]


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────

FOUR, FIVE, SIX = (3, 28, 53, 78), (3, 23, 43, 63, 83), (3, 19, 35, 51, 67, 83)


@pytest.mark.parametrize("flags", [(), ("--max-rate", "high=5%")])
def test_a_few_unreadable_records_are_named_and_more_are_undecided(
    project: Project, flags: tuple[str, ...]
) -> None:
    hundred(project, torn=FOUR)
    done = score(project, "log.jsonl", *flags)
    assert done.code == 0, done.all
    assert last_line(done).startswith("REPORTED: ")
    assert "log.jsonl:4, log.jsonl:29, log.jsonl:54 " in last_line(done)
    assert caveats(project)["records_unreadable"] == 4
    hundred(project, torn=FIVE)
    assert score(project, "log.jsonl", *flags).code == 0
    hundred(project, torn=SIX)
    done = score(project, "log.jsonl", *flags)
    assert done.code == 3
    row = gate(project, "readable records")
    assert (row["value"], row["bound"], row["verdict"]) == (0.06, 0.05, "inconclusive")
    assert "6.0 %" in last_line(done)
    assert "log.jsonl:4, log.jsonl:20, log.jsonl:36 " in flat(done.out.partition("to decide:")[2])


def test_a_rate_that_is_exceeded_is_red_whatever_cannot_be_read(project: Project) -> None:
    hundred(project, torn=SIX, bad=BAD)
    assert score(project, "log.jsonl", "--max-rate", "high=1%").code == 1


def test_a_log_in_which_the_agent_never_answers_is_not_reported(project: Project) -> None:
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    lost = {"request": asked, "response": {"error": {"message": "x"}}}
    log(project, lost, lost)
    assert score(project, "log.jsonl").code == 3
    log(project, lost, conversation("a"))
    assert score(project, "log.jsonl").code == 0
    assert score(project, "log.jsonl", "--max-rate", "critical=0").code == 3


def test_a_file_that_breaks_off_may_hold_any_number_more(project: Project) -> None:
    """One place that cannot be read, and nobody knows how many records: not a few. Both files would pass
    otherwise, with one of forty that is unreadable."""
    records = [conversation(f"c{n}") for n in range(40)]
    packed, text = gzip.compress(lines_of(*records).encode()), json.dumps(records, indent=1).encode()
    for name, data, cut in (
        ("log.jsonl.gz", packed, packed[:-20]),
        ("log.json", text, text[: len(text) * 3 // 4]),
    ):
        (project.root / name).write_bytes(data)
        assert score(project, name).code == 0
        (project.root / name).write_bytes(cut)
        assert score(project, name).code == 3
        (row,) = [row for row in summary(project)["gates"] if row["name"] == "readable records"]
        assert row["verdict"] == "inconclusive"
        assert len(project.results()["scenarios"]) > 20


# ── what a configuration names ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", [(), ("-c", "agenteval.yaml")], ids=["found", "named"])
def test_a_severity_that_a_configuration_names_gates(project: Project, named: tuple[str, ...]) -> None:
    hundred(project, bad=BAD)
    project.write("agenteval.yaml", "metrics: []\n")
    done = score(project, "log.jsonl", *named)
    assert (done.code, last_line(done)[:9]) == (0, "REPORTED:")
    project.write("agenteval.yaml", "metrics: []\nfail_on_severity: high\n")
    done = score(project, "log.jsonl", *named)
    assert done.code == 1
    assert last_line(done).startswith("FAILED: 3 of 100 ")
    assert "log.jsonl:91, turn 1" in done.out
    hundred(project, torn=FOUR)
    done = score(project, "log.jsonl", *named)
    assert done.code == 0, done.all
    assert caveats(project)["records_unreadable"] == 4
    hundred(project, torn=SIX)
    assert score(project, "log.jsonl", *named).code == 3


def test_with_expectations_verdicts_stay_and_a_rate_is_one_more_gate(project: Project) -> None:
    log(project, conversation("a"), conversation("b", calls="find_order"))
    expected = expect(project, {"a": "output: {contains: shipped}"})
    assert score(project, "log.jsonl", *expected).code == 1
    log(project, conversation("a"), conversation("b"))
    done = score(project, "log.jsonl", *expected, "--max-rate", "high=1%")
    assert (done.code, last_line(done)[:7]) == (0, "PASSED:")
    assert summary(project)["failure_rates"] is None
    assert gate(project, "--max-rate high")["verdict"] == "passed"


def test_epochs_of_a_scenario_that_nobody_wrote_are_a_log_all_the_same(project: Project) -> None:
    log(project, *(conversation(f"c{n}", task=n % 2, calls="x" if n == 3 else "get_order") for n in range(6)))
    done = score(project, "log.jsonl", "--scenario-from", "task")
    assert (done.code, last_line(done)[:9]) == (0, "REPORTED:")
    assert score(project, "log.jsonl", "--scenario-from", "task", "--max-rate", "high=1%").code == 1


@pytest.mark.parametrize(("bound", "code"), [(2, 0), (4, 1)])
def test_a_threshold_that_is_named_and_judged_gates(project: Project, bound: int, code: int) -> None:
    log(project, conversation("a", calls="find_order"), conversation("b"), conversation("c"))
    project.write("agenteval.yaml", f"thresholds: {{helpfulness: {bound}}}\n")
    scores = {"a": 3, "b": 3, "c": 5}
    reply = {"evidence": "It has been shipped.", "reason": "r"}
    replies = [({"scenario": name}, {**reply, "score": value}) for name, value in scores.items()]
    done = judged(project, replies, metric="helpfulness")
    assert done.code == code, done.all
    verdict = "FAILED: thresholds.helpfulness failed (2 " if code else "REPORTED: "
    assert last_line(done).startswith(verdict)
    shown = [name for name in "abc" if f"FAILED {name}  helpfulness: {scores[name]}" in done.out]
    assert shown == (["a", "b"] if code else [])
    assert "FAILED c" not in done.out


def test_an_agreement_that_nobody_judged_is_unknown_to_a_rate(project: Project) -> None:
    record = conversation("c0", calls="delete_account")
    record["tools"] = [{"name": "delete_account"}]
    log(project, record)
    for is_destructive, code in (("true", 3), ("false", 0)):
        tools = f"{{delete_account: {{destructive: {is_destructive}}}}}"
        project.write("marks.yaml", f"{{id: c0, turns: [Hi], checks: none, tools: {tools}}}")
        done = score(project, "log.jsonl", "--scenarios", "marks.yaml", "--max-rate", "high=1%")
        assert done.code == code, done.all
        if code:
            row = gate(project, "--max-rate high")
            assert (row["verdict"], row["value"]) == ("inconclusive", 0.0)
            assert "agreed" in row["resolution"]


# ── the user ─────────────────────────────────────────────────────────────────────────────────────

EARLIER, LATER = "My order is ORD-42.", "I never had an order ORD-42."
HIGH_10 = ("--max-rate", "high=10%")
UNKNOWN, AS_IT_SHOULD = "the scenario did not say", "as it should"


def changed_story(name: str) -> dict[str, Any]:
    """The user first has one story and then the other; then the agent calls a tool that does not exist."""
    record = conversation(name, calls="find_order")
    hello = [{"role": "user", "content": EARLIER}, {"role": "assistant", "content": "What about it?"}]
    record["messages"] = [*hello, {"role": "user", "content": LATER}, *record["messages"][1:]]
    return record


def review(scenario: str, label: str, **more: Any) -> Any:
    reply = {"evidence": "", "source": "", "reason": "It left.", "label": label, "explains": True, **more}
    return {"role": "judge", "metric": "user_review", "scenario": scenario}, reply


def reviewed(project: Project, reviews: list[Any], *flags: str) -> Done:
    return judged(project, [*reviews, ({"metric": BEHAVIOR}, GOOD)], *flags)


def test_a_user_of_whom_nothing_is_known_is_charged_with_nothing(project: Project) -> None:
    """The fault of the agent stands, and the rate with it."""
    log(project, conversation("a", calls="find_order"), conversation("b"))
    done = reviewed(project, [review("a", UNKNOWN), review("b", AS_IT_SHOULD)], *HIGH_10)
    assert done.code == 1, done.all
    sample = project.sample("a")
    assert (sample["user_review"]["label"], sample["user_review"]["recorded"]) == (UNKNOWN, True)
    assert [finding["detector"] for finding in sample["findings"]] == ["unknown_tool"]
    reviews = summary(project)["simulator"]["reviews"]
    assert (reviews["reviewed"], reviews["at_fault"], reviews["not_in_scenario"]) == (1, 0, 1)
    report = flat(project.call("report", "latest", "-v").out)
    assert UNKNOWN in report


def test_a_user_who_contradicts_himself_is_not_the_agent_s_fault(project: Project) -> None:
    log(project, changed_story("a"), conversation("b"))
    hindered = review("a", "hindered", evidence=LATER, source=EARLIER)
    done = reviewed(project, [hindered])
    assert done.code == 0, done.all
    assert caveats(project)["conversations_undecided"] == 1
    sample = project.sample("a")
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "simulator")
    assert (sample["user_review"]["label"], sample["user_review"]["turn"]) == ("hindered", 1)
    assert sample["findings"] == []
    assert sample["reason"].startswith("simulator (turn 2): ")
    done = reviewed(project, [hindered], *HIGH_10)
    assert done.code == 3, done.all
    assert "user" in gate(project, "--max-rate high")["resolution"]
    assert "agenteval run" not in done.all
    # A score of that score asks nobody again.
    assert score(project, "latest").code == 0
    assert project.sample("a")["user_review"]["label"] == "hindered"


@pytest.mark.parametrize(
    ("label", "more", "is_kept"),
    [(AS_IT_SHOULD, {}, True), ("helped", {"evidence": LATER}, False)],
    ids=["a user who acted as he should", "nobody of whom nothing is known can have helped"],
)
def test_other_reviews_leave_the_fault_with_the_agent(
    project: Project, label: str, more: dict[str, str], is_kept: bool
) -> None:
    log(project, changed_story("a"), conversation("b"))
    done = reviewed(project, [review("a", label, **more)], *HIGH_10)
    assert done.code == 1, done.all
    assert ("user_review" in project.sample("a")) is is_kept


def test_users_are_reviewed_only_where_judges_are_asked(project: Project) -> None:
    log(project, changed_story("a"), conversation("b"))
    when, reply = review("a", "hindered", evidence=LATER, source=EARLIER)
    project.write("replies.yaml", json.dumps({"replies": [{"when": when, "reply": reply}]}))
    project.write("agenteval.yaml", "models: {default: scripted/replies.yaml}\n")
    assert score(project, "log.jsonl", *HIGH_10).code == 1
    assert "user_review" not in project.sample("a")
