"""The accept list: a known failure fails nothing until its last day, and every report shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.config import AcceptedFailure, Config
from agenteval.core.decision import Violation
from agenteval.core.errors import AuthorError, Place
from agenteval.core.event import RunStarted
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Verdict
from agenteval.files.accepted_file import load_accepted
from agenteval.verdict.accepted_failures import (
    accepted_fingerprints,
    accepted_uses,
    format_accept_list,
    waive_violations,
)
from tests.support.kit import Project
from tests.support.report_samples import started
from tests.support.results import gate, has, verdicts

NAME, OTHER = "0123456789ab", "123456789012"  # the second would be a number to YAML


def entry(name: str = NAME, expires: str = "2999-01-01", **more: Any) -> AcceptedFailure:
    return AcceptedFailure(fingerprint=name, owner="ann", reason="ticket 7", expires=expires, **more)


# ── values ───────────────────────────────────────────────────────────────────────────────────────

FINGERPRINTS = st.sets(st.sampled_from("abcdef"), max_size=4)
LONG = "a very long name " * 20


@given(st.lists(FINGERPRINTS, max_size=5), FINGERPRINTS)
def test_a_broken_rule_is_waived_only_if_all_its_fingerprints_are_known(
    broken: list[set[str]], known: set[str]
) -> None:
    violations = [Violation("check", "", "", fingerprints=tuple(sorted(names))) for names in broken]
    kept, accepted = waive_violations(violations, known)
    assert list(accepted) == [v for v in violations if v.fingerprints and set(v.fingerprints) <= known]
    assert sorted(map(str, (*kept, *accepted))) == sorted(map(str, violations))


def test_what_was_not_decided_is_never_waived() -> None:
    undecided = Violation("check", "", "", Verdict.INCONCLUSIVE, fingerprints=("a",))
    assert waive_violations([undecided], {"a"}).remaining == (undecided,)


def run_of(accepts: AcceptedFailure, day: str = "2026-12-31") -> RunStarted:
    scenarios = tuple(Scenario(id=name, turns=()) for name in ("s", "t", LONG))
    config = Config(accepted_failures=(accepts,))
    run = started(scenarios, (SampleKey(scenario="s", agent="bot"),), config=config)
    return run.model_copy(update={"started_at": f"{day}T23:59:59Z"})


@pytest.mark.parametrize(
    ("day", "samples", "use"),
    [
        ("2026-12-31", [{NAME}, {NAME}, set()], ("accepted", 2)),
        ("2026-12-31", [set()], ("not met", 0)),
        ("2027-01-01", [{NAME}], ("expired", 1)),
    ],
)
def test_an_entry_accepts_up_to_and_on_its_last_day(
    day: str, samples: list[set[str]], use: tuple[str, int]
) -> None:
    run = run_of(entry(expires="2026-12-31"), day)
    assert accepted_fingerprints(run, "s") == (frozenset() if use[0] == "expired" else {NAME})
    (found,) = accepted_uses(run, [("s", names) for names in samples])
    assert (found.state, found.samples) == use


def test_an_entry_accepts_only_in_the_scenario_that_it_names() -> None:
    run = run_of(entry(scenario="s"))
    assert accepted_fingerprints(run, "s") == {NAME}
    assert accepted_fingerprints(run, "t") == frozenset()
    (use,) = accepted_uses(run, [("t", {NAME})])
    assert (use.state, use.samples, use.elsewhere) == ("not met", 0, "t")
    (use,) = accepted_uses(run_of(entry(scenario="of another run")), [("t", {NAME})])
    assert use.elsewhere == "t"
    assert accepted_uses(run_of(entry(scenario="of another run")), [("t", set())]) == ()


def test_a_long_name_is_the_scenario_that_it_was_printed_for() -> None:
    assert accepted_fingerprints(run_of(entry(scenario=one_line(LONG, 120))), LONG) == {NAME}


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=30))
def test_an_entry_to_paste_is_yaml_of_the_same_values(text: str) -> None:
    (read,) = yaml.safe_load(format_accept_list({OTHER: (text, "what: 'it' is # said")}))
    assert (read["fingerprint"], read["scenario"], read["what"]) == (OTHER, text, "what: 'it' is # said")


# ── the file ─────────────────────────────────────────────────────────────────────────────────────

GOOD = f"- {{fingerprint: {NAME}, owner: ann, reason: ticket 7, expires: 2999-01-01}}\n"


def load(tmp_path: Path, text: str) -> tuple[AcceptedFailure, ...]:
    path = tmp_path / "accepted.yaml"
    path.write_text(text, "utf-8")
    return load_accepted(path, tmp_path)


@pytest.mark.parametrize("text", [GOOD, f"accepted:\n{GOOD}"])
def test_a_list_by_itself_or_under_its_key(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == (entry(where=f"accepted.yaml:{text.count(chr(10))}"),)


@pytest.mark.parametrize("text", ["", "# none any more\n", "accepted:\n", "accepted: []\n", "[]\n"])
def test_an_empty_list_accepts_nothing(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == ()


@pytest.mark.parametrize("digits", [OTHER, "12e456789012"])
def test_a_fingerprint_of_digits_is_a_text(tmp_path: Path, digits: str) -> None:
    assert [e.fingerprint for e in load(tmp_path, GOOD.replace(NAME, digits))] == [digits]


@pytest.mark.parametrize(
    ("text", "place", "facts"),
    [
        (GOOD.replace("owner: ann, ", ""), "1:3", ["owner"]),
        (GOOD.replace("reason: ticket 7", "reason: ''"), "1", ["reason", "empty"]),
        (GOOD.replace("reason: ticket 7", "reason: null"), "1", ["reason", "null"]),
        (GOOD.replace("2999-01-01", "next year"), "1", ["'next year'", "2026-12-31"]),
        (GOOD.replace("2999-01-01", "2026-02-30"), "1", ["'2026-02-30'"]),
        (GOOD.replace(NAME, "abc"), "1:4", ["fingerprint", "'abc'"]),
        (GOOD.replace("owner", "ownr"), "1", ["'ownr'", "'owner'"]),
        (GOOD.replace("}", ", where: x}"), "1", ["'where'"]),
        (GOOD + GOOD, "2", [NAME, "accepted.yaml:1"]),
        ("hello\n", "1", ["'hello'"]),
        ("acepted: []\n", "1", ["'acepted'", "'accepted'"]),
        ("- 7\n", "1:3", ["7"]),
    ],
)
def test_mistakes_are_reported_at_their_place(
    tmp_path: Path, text: str, place: str, facts: list[str]
) -> None:
    with pytest.raises(AuthorError) as refused:
        load(tmp_path, text)
    messages = [line for line in str(refused.value).splitlines() if f"accepted.yaml:{place}:" in line]
    assert any(has(line, *facts) for line in messages), str(refused.value)


def test_a_file_that_is_missing_is_reported_where_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as refused:
        load_accepted(tmp_path / "no.yaml", tmp_path, named_at=Place("agenteval.yaml", 3, 1))
    assert str(refused.value).startswith("agenteval.yaml:3:1: ")
    assert "no.yaml" in str(refused.value)


# ── through the command line ─────────────────────────────────────────────────────────────────────

CASES = """
    cases:
      - {id: a, input: hello, expected_output_contains: ["yes", "certainly"]}
      - {id: b, input: hello, expected_output_contains: ["yes"]}
"""


def empty_list(project: Project, config: str = "") -> None:
    project.config(f"accepted: known/accepted.yaml\n{config}")
    project.write("known/accepted.yaml", "accepted: []\n")


@pytest.fixture
def suite(project: Project) -> Project:
    """``a`` fails by one text of two."""
    empty_list(project)
    project.agent('def agent(messages):\n    return "yes"\n')
    project.scenarios(CASES)
    return project


def accept(project: Project, *names: str, **more: str) -> None:
    base = {"owner": "ann", "reason": "ticket 7", "expires": "2999-01-01"}
    entries = [{"fingerprint": name, **base, **more} for name in names]
    project.write("known/accepted.yaml", json.dumps({"accepted": entries}))


def failures(project: Project) -> dict[str, dict[str, str]]:
    """By scenario: what failed, by its fingerprint, and what an entry for it covers."""
    return {
        scenario["id"]: {
            name: covers
            for violation in scenario["violations"]
            for name, covers in zip(violation["fingerprints"], violation["covers"], strict=True)
        }
        for scenario in project.results()["scenarios"]
    }


def accept_all(project: Project) -> None:
    accept(project, *(name for found in failures(project).values() for name in found))


def fingerprint(project: Project, scenario: str) -> str:
    (name,) = failures(project)[scenario]
    return name


def uses(project: Project) -> list[tuple[str, int]]:
    return [(use["state"], use["samples"]) for use in project.results()["summary"]["accepted"]]


def mentions(text: str, *facts: str) -> bool:
    """Whether one paragraph of a report, however it is wrapped, has all facts."""
    lines = [" ".join(part.split()) for part in text.replace("\n    ", " ").splitlines()]
    return any(has(line, *facts) for line in lines)


def test_an_accepted_failure_fails_nothing_and_is_reported(suite: Project) -> None:
    assert suite.run().code == 1
    accept(suite, fingerprint(suite, "a"))
    done = suite.run()
    assert done.code == 0, done.all
    assert uses(suite) == [("accepted", 1)]
    assert "1 accepted failure" in done.out.splitlines()[-1]
    assert mentions(done.out, "2999-01-01", "ann", "ticket 7", "1 sample")
    sample = suite.sample("a")
    assert sample["verdict"] == "passed"
    assert [violation["name"] for violation in sample["accepted"]] == ["output.contains"]
    assert [check["passed"] for check in sample["checks"] if check["name"] == "output.contains"] == [False]
    # The journal holds the list: what the file says later changes no report.
    report = (suite.root / "results.json").read_bytes()
    suite.write("known/accepted.yaml", "accepted: []\n")
    assert suite.call("report", "latest", "--report", "json=results.json").code == 0
    assert (suite.root / "results.json").read_bytes() == report


@pytest.mark.parametrize(
    ("more", "use", "facts"),
    [
        ({"expires": "2020-01-01"}, ("expired", 1), ("2020-01-01", "ann", "1 sample")),
        ({"scenario": "b"}, ("not met", 0), ("(b)", "'a'", "scenario", "ann")),
    ],
    ids=["expired", "names another scenario"],
)
def test_an_entry_that_accepts_nothing_is_reported(
    suite: Project, more: dict[str, str], use: tuple[str, int], facts: tuple[str, ...]
) -> None:
    suite.run()
    name = fingerprint(suite, "a")
    accept(suite, name, **more)
    done = suite.run()
    assert done.code == 1, done.all
    assert uses(suite) == [use]
    assert mentions(done.out, *facts), done.out
    assert "accepted failure" not in done.out.splitlines()[-1]
    accept(suite, name, scenario="a")
    assert suite.run().code == 0


def test_an_entry_that_is_not_met_is_reported_unless_its_scenario_was_not_run(suite: Project) -> None:
    accept(suite, NAME, scenario="b")
    done = suite.run()
    assert uses(suite) == [("not met", 0)]
    assert mentions(done.out, "(b)", "ann")
    suite.run("-s", "a")
    assert uses(suite) == []


def test_an_accepted_failure_does_not_end_a_run_that_is_to_fail_fast(suite: Project) -> None:
    empty_list(suite, "agent_concurrency: 1\n")
    assert suite.run("--fail-fast").code == 1
    assert [bool(s["samples"][0]["turns"]) for s in suite.results()["scenarios"]] == [True, False]
    accept(suite, fingerprint(suite, "a"))
    assert suite.run("--fail-fast").code == 0
    assert verdicts(suite) == {"a": "passed", "b": "passed"}


def test_an_entry_of_another_scenario_accepts_nothing_here(suite: Project) -> None:
    suite.agent('def agent(messages):\n    return "certainly"\n')
    suite.run()
    accept(suite, fingerprint(suite, "b"))
    assert suite.run().code == 1
    assert verdicts(suite) == {"a": "failed", "b": "passed"}


def test_what_verbose_shows_can_be_pasted(suite: Project) -> None:
    suite.run()
    shown = suite.call("report", "latest", "-v").out
    start = shown.index("- fingerprint:")
    lines = shown[shown.rindex("\n", 0, start) + 1 :].partition("\n\n")[0]
    filled = lines.replace("owner: ", "owner: ann").replace("owner:\n", "owner: ann\n")
    filled = filled.replace("reason:\n", "reason: x\n").replace("expires:\n", "expires: 2999-01-01\n")
    suite.write("known/accepted.yaml", filled)
    assert suite.run().code == 0
    assert suite.results()["summary"]["accepted"][0]["what"] == "output.contains: certainly"


def test_accepting_a_failure_is_no_improvement_and_its_expiry_no_regression(suite: Project) -> None:
    suite.run("--epochs", "8")
    accept_all(suite)
    suite.run("--epochs", "8")
    assert "improved" not in suite.call("diff", "previous", "latest").out
    suite.write("known/accepted.yaml", "accepted: []\n")
    suite.run("--epochs", "8")
    done = suite.call("diff", "previous", "latest")
    assert done.code == 3
    assert "regressed" not in done.out


def test_mistakes_of_the_list_end_with_two(suite: Project) -> None:
    suite.write("known/accepted.yaml", "accepted: [{}]\n")
    suite.call("validate").refuses("known/accepted.yaml:1:12", "fingerprint")
    suite.config("accepted: nothing.yaml\n")
    suite.call("validate").refuses("agenteval.yaml:3:1", "nothing.yaml")


# ── what an entry covers, and no more ────────────────────────────────────────────────────────────


class Row(NamedTuple):
    """What the agent does when its failure is accepted, what it does afterwards, and the verdict then."""

    first: str
    then: str
    verdict: str
    scenario: str = "turns: [one, two, three], checks: none"


def at(turn: int, does: str) -> str:
    return f"if ctx.turn == {turn}: {does}"


CRASH, EMPTY = at(2, "raise ValueError('ticket 7')"), at(2, "return ''")
BOTH, ONE = (
    "turns: [hi], expect: {output: {contains: [yes, certainly]}}",
    "turns: [hi], expect: {output: yes}",
)
ROWS = {
    "another message": Row(CRASH, at(2, "raise ValueError('another word')"), "passed"),
    "another turn": Row(CRASH, at(1, "raise ValueError('ticket 7')"), "failed"),
    "another exception": Row(CRASH, at(2, "raise TypeError('a new bug')"), "failed"),
    "a number in place of a crash": Row(CRASH, at(2, "return 42"), "failed"),
    "nothing in place of a crash": Row(CRASH, EMPTY, "failed"),
    "the same empty answer": Row(EMPTY, EMPTY, "passed"),
    "an empty answer of another turn": Row(EMPTY, at(1, "return ''"), "failed"),
    "the same missing text": Row("return 'yes'", "return 'yes'", "passed", BOTH),
    "one more missing text": Row("return 'yes'", "return 'no'", "failed", BOTH),
    "all that a crash breaks": Row("raise ValueError('sorry')", "raise ValueError('sorry')", "passed", BOTH),
    "a lost conversation": Row("return 'yes'", "raise ConnectionRefusedError('down')", "inconclusive", BOTH),
}


@pytest.fixture(scope="module")
def later_verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    project = Project(tmp_path_factory.mktemp("rows"))
    empty_list(project)
    entries = [f"  - {{id: {name}, {row.scenario}}}\n" for name, row in ROWS.items()]
    project.scenarios("scenarios:\n" + "".join(entries))
    for index in (0, 1):
        bodies = [
            f"    if ctx.scenario_id == {name!r}:\n        {row[index]}\n" for name, row in ROWS.items()
        ]
        project.agent(f"def agent(messages, ctx):\n{''.join(bodies)}    return 'yes'\n")
        assert project.run().code == 1
        if index == 0:
            assert set(verdicts(project).values()) == {"failed"}
            accept_all(project)
    return verdicts(project)


@pytest.mark.parametrize("name", ROWS)
def test_an_accepted_failure_accepts_no_other(later_verdicts: dict[str, str], name: str) -> None:
    assert later_verdicts[name] == ROWS[name].verdict


FIRST, SECOND = "I have deleted the account", "I have wired all your money away"
AGAIN = f"{FIRST}.".replace(" the ", "  the ")
UNSAFE, FALSE, DISOBEYS = "unsafe action", "false information", "disobey user request"


class Judged(NamedTuple):
    """What the agent answers, and the evidence, the reason and the label that a judge gives."""

    answer: str
    evidence: str
    reason: str
    label: str


UNSAFE_FIRST, FALSE_FIRST = Judged(FIRST, FIRST, "Bad.", UNSAFE), Judged(FIRST, FIRST, "Bad.", FALSE)
JUDGED_ROWS = {
    # A critical finding is accepted with its quotation alone, a lesser one by its label.
    "other words of the judge": (UNSAFE_FIRST, Judged(FIRST, FIRST, "Other words.", UNSAFE), "passed"),
    "other blanks": (UNSAFE_FIRST, Judged(AGAIN, "I have deleted   the account", "Bad.", UNSAFE), "passed"),
    "another act": (UNSAFE_FIRST, Judged(SECOND, SECOND, "Bad.", UNSAFE), "failed"),
    "another act as well": (UNSAFE_FIRST, Judged(f"{FIRST}. {SECOND}", SECOND, "Bad.", UNSAFE), "failed"),
    "the same label": (FALSE_FIRST, Judged(SECOND, SECOND, "Other words.", FALSE), "passed"),
    "another label": (FALSE_FIRST, Judged(FIRST, FIRST, "Bad.", DISOBEYS), "failed"),
    "a graver label": (FALSE_FIRST, Judged(FIRST, FIRST, "Bad.", UNSAFE), "failed"),
}
JUDGE = "metrics: [agent_behavior_failure]\nmodels: {default: scripted/replies.yaml}\n"


def judge_replies(project: Project, replies: list[dict[str, Any]]) -> None:
    project.write("replies.yaml", json.dumps({"replies": replies}))


def judging(text: str | None = None, scenario: str | None = None, **reply: Any) -> dict[str, Any]:
    when = {"role": "judge", "text": text, "scenario": scenario}
    return {"when": when, "reply": {"reason": "", "evidence": "", **reply}}


@pytest.fixture(scope="module")
def judged_verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    project = Project(tmp_path_factory.mktemp("judged"))
    empty_list(project, f"{JUDGE}fail_on_severity: high\n")
    project.scenarios(
        "scenarios:\n" + "".join(f"  - {{id: {name}, turns: [hello]}}\n" for name in JUDGED_ROWS)
    )
    for index in (0, 1):
        rows = {name: row[index] for name, row in JUDGED_ROWS.items()}
        answers = {name: row.answer for name, row in rows.items()}
        project.agent(f"def agent(messages, ctx):\n    return {answers!r}[ctx.scenario_id]\n")
        judge_replies(project, [
            judging(scenario=name, evidence=row.evidence, reason=row.reason, label=row.label)
            for name, row in rows.items()
        ])  # fmt: skip
        assert project.run().code == 1
        if index == 0:
            assert set(verdicts(project).values()) == {"failed"}
            accept_all(project)
    return verdicts(project)


@pytest.mark.parametrize("name", JUDGED_ROWS)
def test_an_accepted_finding_of_a_judge_accepts_no_other(judged_verdicts: dict[str, str], name: str) -> None:
    assert judged_verdicts[name] == JUDGED_ROWS[name][-1]


def test_an_accepted_unsafe_act_does_not_waive_another_of_the_same_conversation(project: Project) -> None:
    empty_list(project, f"{JUDGE}fail_on_severity: high\n")
    project.agent(f"def agent(messages, ctx):\n    return [{FIRST!r}, {SECOND!r}][ctx.turn]\n")
    judge_replies(project, [judging("deleted", evidence=FIRST, label=UNSAFE),
                            judging(evidence=SECOND, label=UNSAFE)])  # fmt: skip
    project.scenarios("{id: a, turns: [hello, hello again]}")
    assert project.run().code == 1
    first = [f["fingerprint"] for f in project.sample()["findings"] if f["turn"] == 0]
    accept(project, *first)
    done = project.run()
    assert done.code == 1, done.all
    assert [v["turn"] for v in project.sample()["accepted"]] == [0]
    basis = gate(project, "fail_on_severity")["basis"]
    assert has(basis, "1 finding", "1 sample", "1 more accepted")


def test_what_is_accepted_as_critical_is_accepted_where_it_is_less(project: Project) -> None:
    """A goal that no epoch reached is critical; where one did, the others missed it all the same."""
    models = "models: {default: scripted/replies.yaml}\nagent_concurrency: 1\n"
    empty_list(project, f"metrics: [goal_completion]\nfail_on_severity: high\nepochs: 2\n{models}")
    judge_replies(project, [judging("refunded", evidence="refunded", score=1),
                            judging(evidence="Sorry, no.", score=0)])  # fmt: skip
    project.scenarios("{id: a, turns: [hello], goal: A refund., checks: none}")
    project.agent("def agent(messages):\n    return 'Sorry, no.'\n")
    assert project.run().code == 1
    (finding,) = project.results()["scenarios"][0]["samples"][0]["findings"]
    assert finding["severity"] == "critical"
    accept(project, finding["fingerprint"])
    assert project.run().code == 0
    assert project.run("--fail-fast").code == 0
    project.agent("def agent(messages, ctx):\n    return 'Sorry, no.' if ctx.epoch else 'It is refunded.'\n")
    assert project.run().code == 0
    assert uses(project) == [("accepted", 1)]


def test_a_severe_finding_can_be_accepted_and_the_gate_counts_it(project: Project) -> None:
    empty_list(project, "fail_on_severity: high\ndetectors: [unknown_tool]\n")
    project.agent("def agent(messages, ctx):\n    ctx.call_tool_sync('nonsense', {})\n    return 'yes'\n")
    project.scenarios("id: a\nturns: [hello]\nexpect: {limits: {steps: 9}}\ntools: {search: {returns: 1}}\n")
    assert project.run().code == 1
    accept_all(project)
    assert project.run().code == 0
    row = gate(project, "fail_on_severity")
    assert (row["value"], row["verdict"]) == ("no finding", "passed")
    assert "1 more accepted" in row["basis"]
    # With a gate over repeated runs, of which a critical finding fails its scenario, it is accepted as well.
    gated = "gates: {pass_hat_k: {k: 1, at_least: 0.1}}\nseverities: {wrong tool: critical}\n"
    project.config(f"accepted: known/accepted.yaml\ndetectors: [unknown_tool]\n{gated}")
    for verdict, code in (("passed", 0), ("failed", 1)):
        assert project.run().code == code
        assert verdicts(project) == {"a": verdict}
        project.write("known/accepted.yaml", "[]\n")


PAY_TOOLS = "tools: {pay: {returns: {ok: true}}, look: {returns: 1}}"
PAYING = f"""
    defaults: {{{PAY_TOOLS}, expect: {{limits: {{steps: 9}}}}}}
    scenarios:
      - {{id: check, turns: [hello], expect: {{tool_calls: {{forbidden: [{{name: pay}}]}}}}}}
      - {{id: code, turns: [hello]}}
      - {{id: judge, turns: [hello]}}
      - {{id: place, turns: [hello, again]}}
"""
PAYER = """
    def agent(messages, ctx):
        times = {{"code": 2, "place": 2 if ctx.turn == {turn} else 0}}.get(ctx.scenario_id, 1)
        for _ in range(times):
            ctx.call_tool_sync("pay", {{"to": "ann", "sum": {amount}}})
        return f"Paid {{ctx.turn}}."
"""


def test_a_call_is_accepted_only_with_its_arguments_and_at_its_turn(project: Project) -> None:
    empty_list(project, f"{JUDGE}detectors: [repeated_tool_call]\nfail_on_severity: low\n")
    project.scenarios(PAYING)
    fine = judging(label="no failure")

    def pays(amount: int, turn: int, evidence: str, reason: str) -> dict[str, str]:
        unsafe = judging(scenario="judge", evidence=evidence, reason=reason, label=UNSAFE, call=0)
        judge_replies(project, [unsafe, fine, {"when": {"role": "dedup"}, "reply": {"issues": []}}])
        project.agent(PAYER.format(amount=amount, turn=turn))
        project.run()
        return verdicts(project)

    everything = ("check", "code", "judge", "place")
    assert pays(5, 0, "Paid 0.", "It paid.") == dict.fromkeys(everything, "failed")
    shown = project.call("report", "latest", "-v").out
    call = 'pay(sum=5, to="ann")'
    covers = {name: list(found.values()) for name, found in failures(project).items()}
    assert covers == {
        "check": [f"tool_calls: forbidden {call}"],
        "code": [f"repeated tool call: {call} (repeated_tool_call, turn 1)"],
        "judge": [f"unsafe action: {call}"],
        "place": [f"repeated tool call: {call} (repeated_tool_call, turn 1)"],
    }
    for (covered,) in covers.values():
        assert f"covers {covered}" in " ".join(shown.split())
        assert f"what: '{covered}'" in shown
    accept_all(project)
    assert pays(5, 0, "", "In other words.") == dict.fromkeys(everything, "passed")
    # Another sum, and the same one at another turn.
    assert pays(5000, 0, "", "In other words.") == dict.fromkeys(everything, "failed")
    assert pays(5, 1, "", "In other words.") == {**dict.fromkeys(everything, "passed"), "place": "failed"}
