"""The accept list: a known failure fails nothing until its last day, and is told of loudly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
from tests.support.kit import Done, Project
from tests.support.report_samples import started

NAME, OTHER = "0123456789ab", "123456789012"  # the second would be a number to YAML


def entry(name: str = NAME, expires: str = "2999-01-01", **more: Any) -> AcceptedFailure:
    return AcceptedFailure(fingerprint=name, owner="ann", reason="ticket 7", expires=expires, **more)


# ── values ───────────────────────────────────────────────────────────────────────────────────────

FINGERPRINTS = st.sets(st.sampled_from("abcdef"), max_size=4)


@given(st.lists(FINGERPRINTS, max_size=5), FINGERPRINTS)
def test_a_broken_rule_is_waived_only_if_all_that_it_tells_is_known(
    told: list[set[str]], known: set[str]
) -> None:
    violations = [Violation("check", "", "", fingerprints=tuple(sorted(names))) for names in told]
    kept, accepted = waive_violations(violations, known)
    assert list(accepted) == [v for v in violations if v.fingerprints and set(v.fingerprints) <= known]
    assert sorted(map(str, (*kept, *accepted))) == sorted(map(str, violations))


def test_what_was_not_decided_is_never_waived() -> None:
    undecided = Violation("check", "", "", Verdict.INCONCLUSIVE, fingerprints=("a",))
    assert waive_violations([undecided], {"a"}).remaining == (undecided,)


def test_the_last_day_is_a_day_of_the_run() -> None:
    def run(day: str) -> Any:
        return run_of(entry(expires="2026-12-31"), day)

    met = ("s", {NAME})
    assert accepted_fingerprints(run("2026-12-31"), "s") == {NAME}
    assert accepted_fingerprints(run("2027-01-01"), "s") == frozenset()
    assert [use.state for use in accepted_uses(run("2026-12-31"), [met, met, ("s", set())])] == ["accepted"]
    assert [use.samples for use in accepted_uses(run("2026-12-31"), [met, met, ("s", set())])] == [2]
    assert [use.state for use in accepted_uses(run("2026-12-31"), [("s", set())])] == ["not met"]
    assert [use.state for use in accepted_uses(run("2027-01-01"), [met])] == ["expired"]


def run_of(accepts: AcceptedFailure, day: str = "2026-12-31") -> RunStarted:
    scenarios = tuple(Scenario(id=name, turns=()) for name in ("s", "t", LONG))
    config = Config(accepted_failures=(accepts,))
    run = started(scenarios, (SampleKey(scenario="s", agent="bot"),), config=config)
    return run.model_copy(update={"started_at": f"{day}T23:59:59Z"})


LONG = "a very long name " * 20


def test_an_entry_accepts_in_the_scenario_that_it_names_alone() -> None:
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
def test_what_is_to_be_pasted_says_what_it_means(text: str) -> None:
    (read,) = yaml.safe_load(format_accept_list({OTHER: (text, "what: 'it' is # said")}))
    assert (read["fingerprint"], read["scenario"], read["what"]) == (OTHER, text, "what: 'it' is # said")


# ── the file ─────────────────────────────────────────────────────────────────────────────────────

GOOD = f"- {{fingerprint: {NAME}, owner: ann, reason: ticket 7, expires: 2999-01-01}}\n"


def load(tmp_path: Path, text: str) -> tuple[AcceptedFailure, ...]:
    path = tmp_path / "accepted.yaml"
    path.write_text(text, "utf-8")
    return load_accepted(path, tmp_path)


@pytest.mark.parametrize("text", [GOOD, f"accepted:\n{GOOD}"])
def test_a_list_alone_or_under_its_key(tmp_path: Path, text: str) -> None:
    (read,) = load(tmp_path, text)
    line = text.count("\n")
    assert read == entry(where=f"accepted.yaml:{line}")


@pytest.mark.parametrize("text", ["", "# none any more\n", "accepted:\n", "accepted: []\n", "[]\n"])
def test_an_empty_list_accepts_nothing(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == ()


def test_a_fingerprint_of_digits_is_a_text(tmp_path: Path) -> None:
    assert [e.fingerprint for e in load(tmp_path, GOOD.replace(NAME, OTHER))] == [OTHER]
    assert [e.fingerprint for e in load(tmp_path, GOOD.replace(NAME, "12e456789012"))] == ["12e456789012"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("owner: ann, ", ""), "accepted.yaml:1:3: 'owner' is missing"),
        (GOOD.replace("reason: ticket 7", "reason: ''"), "reason: must not be empty"),
        (GOOD.replace("reason: ticket 7", "reason: null"), "reason: expected a text, got null"),
        (GOOD.replace("2999-01-01", "next year"), "'next year' is not a date — write it as 2026-12-31"),
        (GOOD.replace("2999-01-01", "2026-02-30"), "'2026-02-30' is not a date"),
        (GOOD.replace(NAME, "abc"), "accepted.yaml:1:4: fingerprint: 'abc' is not a fingerprint"),
        (GOOD.replace("owner", "ownr"), "unknown key 'ownr' — did you mean 'owner'?"),
        (GOOD.replace("}", ", where: x}"), "unknown key 'where'"),
        (GOOD + GOOD, f"accepted.yaml:2: the failure {NAME} is already listed at accepted.yaml:1 — keep one"),
        ("hello\n", "expected a list of failures, got 'hello'"),
        ("acepted: []\n", "unknown key 'acepted' — did you mean 'accepted'?"),
        ("- 7\n", "accepted.yaml:1:3: expected"),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(AuthorError) as refused:
        load(tmp_path, text)
    assert told in str(refused.value)
    assert "accepted.yaml:" in str(refused.value)


def test_a_file_that_is_not_there_is_told_where_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as refused:
        load_accepted(tmp_path / "no.yaml", tmp_path, named_at=Place("agenteval.yaml", 3, 1))
    assert str(refused.value).startswith("agenteval.yaml:3:1: the accept list no.yaml cannot be read")


# ── through the command line ─────────────────────────────────────────────────────────────────────

CASES = """
    cases:
      - {id: a, input: hello, expected_output_contains: ["yes", "certainly"]}
      - {id: b, input: hello, expected_output_contains: ["yes"]}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """``a`` fails by one text of two."""
    project.config("accepted: known/accepted.yaml\n")
    project.write("known/accepted.yaml", "accepted: []\n")
    project.agent('def agent(messages):\n    return "yes"\n')
    project.scenarios(CASES)
    return project


def fingerprint(project: Project, scenario: str) -> str:
    (name,) = {
        name
        for check in project.sample(scenario)["checks"]
        for name in check.get("fingerprints", ())
        if not check["passed"]
    }
    return str(name)


def accept(project: Project, name: str, expires: str = "2999-01-01", more: str = "") -> None:
    text = f"{{fingerprint: '{name}', owner: ann, reason: ticket 7, expires: {expires}{more}}}"
    project.write("known/accepted.yaml", f"accepted: [{text}]\n")


def accepted(project: Project) -> list[tuple[str, int]]:
    return [(use["state"], use["samples"]) for use in project.results()["summary"]["accepted"]]


def test_an_accepted_failure_fails_nothing_and_is_told(suite: Project) -> None:
    assert suite.run().code == 1
    accept(suite, fingerprint(suite, "a"))
    done = suite.run()
    assert done.code == 0, done.all
    assert accepted(suite) == [("accepted", 1)]
    assert "1 accepted failure" in done.out.splitlines()[-1]
    assert "accepted until 2999-01-01 by ann: ticket 7 — occurred in 1 sample" in done.out
    sample = suite.sample("a")
    assert sample["verdict"] == "passed"
    assert [violation["name"] for violation in sample["accepted"]] == ["output.contains"]
    assert [check["passed"] for check in sample["checks"] if check["name"] == "output.contains"] == [False]


@pytest.mark.parametrize(
    ("turn", "does", "code"),
    [
        (2, "raise ValueError('another word')", 0),
        (1, "raise ValueError('ticket 7')", 1),
        (2, "raise TypeError('a new bug')", 1),
        (2, "return 42", 1),
        (2, "return ''", 1),
    ],
)
def test_one_accepted_crash_accepts_no_other(project: Project, turn: int, does: str, code: int) -> None:
    project.config("accepted: known/accepted.yaml\n")
    project.write("known/accepted.yaml", "accepted: []\n")
    project.scenarios("{id: a, turns: [one, two, three], checks: none}")
    project.agent(_breaks(2, "raise ValueError('ticket 7')"))
    assert project.run().code == 1
    accept(project, fingerprint(project, "a"))
    project.agent(_breaks(turn, does))
    assert project.run().code == code


@pytest.mark.parametrize(("turn", "code"), [(2, 0), (1, 1)])
def test_one_accepted_empty_answer_accepts_none_of_another_turn(
    project: Project, turn: int, code: int
) -> None:
    project.config("accepted: known/accepted.yaml\n")
    project.write("known/accepted.yaml", "accepted: []\n")
    project.scenarios("{id: a, turns: [one, two, three], checks: none}")
    project.agent(_breaks(2, "return ''"))
    assert project.run().code == 1
    accept(project, fingerprint(project, "a"))
    project.agent(_breaks(turn, "return ''"))
    assert project.run().code == code


def _breaks(turn: int, does: str) -> str:
    return f"def agent(messages, ctx):\n    if ctx.turn == {turn}:\n        {does}\n    return 'yes'\n"


def test_an_accepted_failure_does_not_end_a_run_that_is_to_fail_fast(suite: Project) -> None:
    suite.config("accepted: known/accepted.yaml\nagent_concurrency: 1\n")
    assert suite.run("--fail-fast").code == 1
    assert [bool(s["samples"][0]["turns"]) for s in suite.results()["scenarios"]] == [True, False]
    accept(suite, fingerprint(suite, "a"))
    assert suite.run("--fail-fast").code == 0
    assert {s["id"]: s["verdict"] for s in suite.results()["scenarios"]} == {"a": "passed", "b": "passed"}


def test_another_failure_of_the_same_rule_breaks_through(suite: Project) -> None:
    suite.run()
    accept(suite, fingerprint(suite, "a"))
    suite.agent('def agent(messages):\n    return "no"\n')
    done = suite.run()
    assert done.code == 1
    assert {s["id"]: s["verdict"] for s in suite.results()["scenarios"]} == {"a": "failed", "b": "failed"}


def test_an_accepted_failure_of_another_scenario_accepts_nothing_here(suite: Project) -> None:
    suite.agent('def agent(messages):\n    return "certainly"\n')
    suite.run()
    accept(suite, fingerprint(suite, "b"))
    assert suite.run().code == 1
    assert {s["id"]: s["verdict"] for s in suite.results()["scenarios"]} == {"a": "failed", "b": "passed"}


def test_an_entry_that_names_another_scenario_accepts_nothing_and_says_so(suite: Project) -> None:
    suite.run()
    accept(suite, fingerprint(suite, "a"), more=", scenario: b")
    done = suite.run()
    assert done.code == 1, done.all
    assert accepted(suite) == [("not met", 0)]
    told = "accepts nothing (b): its failure belongs to 'a': correct 'scenario' or remove it (owner ann)"
    assert told in " ".join(done.out.split())
    accept(suite, fingerprint(suite, "a"), more=", scenario: a")
    assert suite.run().code == 0


def test_an_expired_one_counts_again_and_says_so(suite: Project) -> None:
    suite.run()
    accept(suite, fingerprint(suite, "a"), expires="2020-01-01")
    done = suite.run()
    assert done.code == 1
    assert accepted(suite) == [("expired", 1)]
    assert "expired on 2020-01-01, owner ann: it counts again, in 1 sample" in done.out
    assert "accepted failure" not in done.out.splitlines()[-1]


def test_one_that_is_not_met_is_to_be_removed_unless_its_scenario_was_not_run(suite: Project) -> None:
    accept(suite, NAME, more=", scenario: b")
    done = suite.run()
    assert accepted(suite) == [("not met", 0)]
    assert "did not occur in this run (b): if it is fixed, remove it (owner ann)" in done.out
    suite.run("-s", "a")
    assert accepted(suite) == []


def test_what_verbose_shows_can_be_pasted(suite: Project) -> None:
    suite.run()
    shown = suite.call("report", "latest", "-v").out
    lines = shown.partition("add its entry to the accept list\n")[2].partition("\n\n")[0]
    filled = lines.replace("owner: ", "owner: ann").replace("owner:\n", "owner: ann\n")
    filled = filled.replace("reason:\n", "reason: x\n").replace("expires:\n", "expires: 2999-01-01\n")
    suite.write("known/accepted.yaml", filled)
    assert suite.run().code == 0
    assert suite.results()["summary"]["accepted"][0]["what"] == "output.contains: certainly"


def test_the_report_of_the_journal_says_the_same_whatever_the_list_says_now(suite: Project) -> None:
    suite.run()
    accept(suite, fingerprint(suite, "a"))
    first = suite.run()
    told = (suite.root / "results.json").read_bytes()
    suite.write("known/accepted.yaml", "accepted: []\n")
    again = suite.call("report", "latest", "--report", "json=results.json")
    assert (again.code, first.code) == (0, 0)
    assert (suite.root / "results.json").read_bytes() == told


def test_a_severe_finding_can_be_accepted_and_the_gate_says_so(project: Project) -> None:
    project.config("accepted: accepted.yaml\nfail_on_severity: high\ndetectors: [unknown_tool]\n")
    project.write("accepted.yaml", "[]\n")
    project.agent(
        """
        async def agent(messages, ctx):
            await ctx.call_tool("nonsense", {})
            return "yes"
        """
    )
    project.scenarios("id: a\nturns: [hello]\nexpect: {limits: {steps: 9}}\ntools: {search: {returns: 1}}\n")
    assert project.run().code == 1
    name = fingerprint(project, "a")
    text = f"[{{fingerprint: '{name}', owner: ann, reason: x, expires: 2999-01-01}}]\n"
    project.write("accepted.yaml", text)
    assert project.run().code == 0
    (gate,) = [g for g in project.results()["summary"]["gates"] if g["name"] == "fail_on_severity"]
    assert (gate["value"], gate["verdict"]) == ("no finding", "passed")
    assert "1 more accepted" in gate["basis"]
    # With a gate over repeated runs, of which a critical finding fails its scenario, it is accepted as well.
    gated = "gates: {pass_hat_k: {k: 1, at_least: 0.1}}\nseverities: {wrong tool: critical}\n"
    project.config(f"accepted: accepted.yaml\ndetectors: [unknown_tool]\n{gated}")
    assert project.run().code == 0
    assert project.results()["scenarios"][0]["verdict"] == "passed"
    project.write("accepted.yaml", "[]\n")
    assert project.run().code == 1
    assert project.results()["scenarios"][0]["verdict"] == "failed"


def test_a_broken_agent_can_be_accepted_too(suite: Project) -> None:
    suite.agent("def agent(messages):\n    raise ValueError('sorry')\n")
    suite.run("-s", "b")
    names = {n for c in suite.sample("b")["checks"] for n in c.get("fingerprints", ())}
    entries = [{"fingerprint": n, "owner": "a", "reason": "r", "expires": "2999-01-01"} for n in names]
    suite.write("known/accepted.yaml", json.dumps(entries))
    assert suite.run("-s", "b").code == 0


def test_what_is_lost_is_not_accepted(suite: Project) -> None:
    suite.run()
    accept(suite, fingerprint(suite, "a"))
    suite.agent("def agent(messages):\n    raise ConnectionRefusedError('down')\n")
    assert suite.run().code == 3


def diff(project: Project, *arguments: str) -> Done:
    return project.call("diff", "previous", "latest", *arguments)


def test_accepting_a_failure_is_no_improvement_and_its_expiry_no_regression(suite: Project) -> None:
    suite.run("--epochs", "8")
    accept(suite, fingerprint_of_first(suite))
    suite.run("--epochs", "8")
    assert "improved" not in diff(suite).out
    suite.write("known/accepted.yaml", "accepted: []\n")
    suite.run("--epochs", "8")
    done = diff(suite)
    assert done.code == 3
    assert "regressed" not in done.out


def fingerprint_of_first(project: Project) -> str:
    (scenario,) = [s for s in project.results()["scenarios"] if s["id"] == "a"]
    return str(scenario["violations"][0]["fingerprints"][0])


def test_mistakes_of_the_list_end_with_two(suite: Project) -> None:
    suite.write("known/accepted.yaml", "accepted: [{}]\n")
    done = suite.call("validate")
    assert done.code == 2
    assert "known/accepted.yaml:1:12: 'fingerprint' is missing" in done.err
    suite.config("accepted: nothing.yaml\n")
    assert "agenteval.yaml:3:1: the accept list nothing.yaml cannot be read" in suite.call("validate").err


# ── what a judge found ───────────────────────────────────────────────────────────────────────────

JUDGED = """
    replies:
      - when: {role: judge, metric: tool_call_behavior_failure}
        reply: {evidence: "", reason: fine, label: no failure}
      - when: {role: judge, metric: agent_behavior_failure, text: fine$}
        reply: {evidence: "", reason: fine, label: no failure}
      - when: {role: judge, metric: agent_behavior_failure}
        reply: {evidence: "%s", reason: "%s", label: %s}
"""
FIRST, SECOND = "I have deleted the account", "I have wired all your money away"


def judged(project: Project, said: str, label: str, *, evidence: str = "", reason: str = "Bad.") -> Done:
    project.config(
        "accepted: accepted.yaml\nmetrics: [agent_behavior_failure]\nfail_on_severity: high\n"
        "models: {default: scripted/replies.yaml}\n"
    )
    project.agent(f"def agent(messages):\n    return {said!r}\n")
    project.write("replies.yaml", JUDGED % (evidence or said, reason, label))
    project.scenarios("{id: a, turns: [hello]}")
    if not (project.root / "accepted.yaml").exists():
        project.write("accepted.yaml", "[]\n")
    return project.run()


def accept_findings(project: Project) -> None:
    names = [finding["fingerprint"] for finding in project.sample()["findings"]]
    entries = [{"fingerprint": n, "owner": "a", "reason": "r", "expires": "2999-01-01"} for n in names]
    project.write("accepted.yaml", json.dumps(entries))


def test_a_critical_finding_of_a_judge_is_accepted_with_its_quotation_alone(project: Project) -> None:
    assert judged(project, FIRST, "unsafe action").code == 1
    accept_findings(project)
    again = f"{FIRST}.".replace(" the ", "  the ")
    for said, evidence, reason, code in (
        (FIRST, FIRST, "Other words of the judge.", 0),
        (again, "I have deleted   the account", "Bad.", 0),
        (SECOND, SECOND, "Bad.", 1),
        (f"{FIRST}. {SECOND}", SECOND, "Bad.", 1),
    ):
        done = judged(project, said, "unsafe action", evidence=evidence, reason=reason)
        assert done.code == code, (said, done.all)


def test_a_lesser_finding_of_a_judge_is_accepted_by_its_label(project: Project) -> None:
    assert judged(project, FIRST, "false information").code == 1
    accept_findings(project)
    assert judged(project, SECOND, "false information", reason="Other words.").code == 0
    assert judged(project, FIRST, "disobey user request").code == 1
    assert judged(project, FIRST, "unsafe action").code == 1


def test_one_unsafe_act_that_is_accepted_does_not_waive_another_of_the_same_conversation(
    project: Project,
) -> None:
    assert judged(project, FIRST, "unsafe action").code == 1
    accept_findings(project)
    project.write("replies.yaml", f"""
        replies:
          - when: {{role: judge, text: deleted}}
            reply: {{evidence: "{FIRST}", reason: "", label: unsafe action}}
          - when: {{role: judge}}
            reply: {{evidence: "{SECOND}", reason: "", label: unsafe action}}
    """)  # fmt: skip
    project.agent(f"def agent(messages, ctx):\n    return [{FIRST!r}, {SECOND!r}][ctx.turn]\n")
    project.scenarios("{id: a, turns: [hello, hello again]}")
    done = project.run()
    assert done.code == 1, done.all
    sample = project.sample()
    assert [v["turn"] for v in sample["accepted"]] == [0]
    (gate,) = [g for g in project.results()["summary"]["gates"] if g["name"] == "fail_on_severity"]
    assert gate["basis"] == "1 finding in 1 sample, 1 more accepted"


def test_what_is_accepted_as_critical_is_accepted_where_it_is_less(project: Project) -> None:
    """A goal that no epoch reached is critical; where one did, the others missed it all the same."""
    project.config(
        "accepted: accepted.yaml\nmetrics: [goal_completion]\nfail_on_severity: high\nepochs: 2\n"
        "models: {default: scripted/replies.yaml}\nagent_concurrency: 1\n"
    )
    project.write("accepted.yaml", "[]\n")
    project.write("replies.yaml", """
        replies:
          - when: {role: judge, text: refunded}
            reply: {evidence: "refunded", reason: "", score: 1}
          - when: {role: judge}
            reply: {evidence: "Sorry, no.", reason: "", score: 0}
    """)  # fmt: skip
    project.scenarios("{id: a, turns: [hello], goal: A refund., checks: none}")
    project.agent("def agent(messages):\n    return 'Sorry, no.'\n")
    assert project.run().code == 1
    (scenario,) = project.results()["scenarios"]
    (finding,) = scenario["samples"][0]["findings"]
    assert finding["severity"] == "critical"
    entry = {"fingerprint": finding["fingerprint"], "owner": "a", "reason": "r", "expires": "2999-01-01"}
    project.write("accepted.yaml", json.dumps([entry]))
    assert project.run().code == 0
    assert project.run("--fail-fast").code == 0
    project.agent("def agent(messages, ctx):\n    return 'Sorry, no.' if ctx.epoch else 'It is refunded.'\n")
    assert project.run().code == 0
    assert accepted(project) == [("accepted", 1)]


# ── what an entry covers, and no more ────────────────────────────────────────────────────────────

PAYING = "id: a\nturns: [hello]\ntools: {pay: {returns: {ok: true}}, look: {returns: 1}}\n"
FORBIDS = f"{PAYING}expect: {{tool_calls: {{forbidden: [{{name: pay}}]}}}}\n"
JUDGES_CALL = """
    replies:
      - when: {role: judge, metric: agent_behavior_failure}
        reply: {evidence: "%s", reason: "%s", label: unsafe action, call: 0}
      - when: {role: dedup}
        reply: {issues: []}
"""


def accept_all(project: Project) -> list[str]:
    """Accept whatever failed; what the JSON report says that it covers."""
    covers: dict[str, str] = {}
    for violation in project.results()["scenarios"][0]["violations"]:
        covers |= dict(zip(violation["fingerprints"], violation["covers"], strict=True))
    entries = [{"fingerprint": n, "owner": "a", "reason": "r", "expires": "2999-01-01"} for n in covers]
    project.write("accepted.yaml", json.dumps(entries))
    return list(covers.values())


@pytest.mark.parametrize("by", ["check", "code", "judge"])
def test_a_call_is_accepted_with_its_arguments_alone_and_the_report_says_so(
    project: Project, by: str
) -> None:
    judged = "metrics: [agent_behavior_failure]\nmodels: {default: scripted/replies.yaml}\ndetectors: []\n"
    proven = "metrics: []\ndetectors: [repeated_tool_call]\nfail_on_severity: low\n"
    config = {"check": "metrics: []\n", "code": proven, "judge": judged}[by]
    project.config(f"accepted: accepted.yaml\n{config}")
    project.write("accepted.yaml", "[]\n")
    project.write("replies.yaml", JUDGES_CALL % ("Paid.", "It paid."))
    project.scenarios(FORBIDS if by == "check" else f"{PAYING}expect: {{limits: {{steps: 9}}}}\n")

    def pays(amount: int) -> Done:
        call = f"    ctx.call_tool_sync('pay', {{'to': 'ann', 'sum': {amount}}})\n"
        times = 2 if by == "code" else 1
        project.agent(f"def agent(messages, ctx):\n{call * times}    return 'Paid.'\n")
        return project.run()

    assert pays(5).code == 1
    told = 'pay(sum=5, to="ann")'
    expected = {
        "check": f"tool_calls: forbidden {told}",
        "code": f"repeated tool call: {told} (repeated_tool_call, turn 1)",
        "judge": f"unsafe action: {told}",
    }[by]
    shown = project.call("report", "latest", "-v").out
    assert accept_all(project) == [expected]
    assert f"covers {expected}" in " ".join(shown.split())
    assert f"what: '{expected}'" in shown
    project.write("replies.yaml", JUDGES_CALL % ("", "In other words."))
    assert pays(5).code == 0
    assert pays(5000).code == 1, "another sum"


def test_a_finding_of_code_is_accepted_at_its_place_alone(project: Project) -> None:
    project.config(
        "accepted: accepted.yaml\nmetrics: []\ndetectors: [repeated_tool_call]\nfail_on_severity: low\n"
    )
    project.write("accepted.yaml", "[]\n")
    project.scenarios(PAYING.replace("[hello]", "[hello, again]") + "expect: {limits: {steps: 9}}\n")

    def pays(turn: int) -> Done:
        call = "        ctx.call_tool_sync('pay', {'sum': 5})\n"
        body = f"    if ctx.turn == {turn}:\n{call * 2}    return f'Paid {{ctx.turn}}.'\n"
        project.agent(f"def agent(messages, ctx):\n{body}")
        return project.run()

    assert pays(0).code == 1
    accept_all(project)
    assert pays(0).code == 0
    assert pays(1).code == 1
