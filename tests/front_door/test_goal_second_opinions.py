"""A goal that was ruled out, withdrawn or reached without a change is asked about again: to be refuted,
beside a conversation that reached it, and a third time where another metric contradicts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from agenteval.core.event import Event
from agenteval.files.runs import load_run
from agenteval.verdict.report import build_report
from tests.support.judged_projects import KEY, model_config
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, schema_in

RULE = "Sale items cannot be returned."
REFUSAL = "I cannot refund it"
REFUSES = f"I am sorry, {REFUSAL}: it was on sale."
ASKED = "Please refund the red lamp."
ON_SALE = "The red lamp was on sale."
GOAL = "A refund for the lamp."
REFUNDED = "Your lamp is refunded."
DOWN = "refund service unavailable"
AGENT = """
import json
import pathlib

PLAYS = json.loads(pathlib.Path(__file__).with_name("plays.json").read_text())


def agent(messages, ctx):
    "Of each turn of its play, by epoch: the tools that are called, and the answer."
    plays = PLAYS[ctx.scenario_id]
    *tools, answer = plays[min(ctx.epoch, len(plays) - 1)][ctx.turn]
    for name in tools:
        ctx.call_tool_sync(name, {})
    return answer
"""
REFUND = {"parameters": {"type": "object"}, "writes": True, "returns": {"ok": True, "refund": "R-100"}}

Verdict = dict[str, Any]
Play = list[list[str]]
RULED_OUT: Verdict = {"outcome": "ruled out", "evidence": REFUSAL, "rule": RULE, "fact": ON_SALE}
MISSED: Verdict = {"outcome": "missed", "evidence": REFUSAL}
REACHED: Verdict = {"outcome": "reached", "evidence": REFUNDED, "call": 0}
NOT_CLEAR: Verdict = {"outcome": "not clear", "evidence": ""}
REFUSE: Play = [[REFUSES]]
GIVE: Play = [["refund", REFUNDED]]


class Asked(NamedTuple):
    """How a goal is asked about: at first, again, for the third time; and beside what."""

    number: int
    is_beside_twin: bool
    prompt: str

    @property
    def is_reached(self) -> bool:
        return REFUNDED in self.prompt.partition("# Criterion")[0]


def asked_of(prompt: str) -> Asked:
    is_third = any(title in prompt for title in ("# Answers about this goal", "# Two answers that differ"))
    number = 3 if is_third else 2 if "# A claim to be refuted" in prompt else 1
    return Asked(number, "## Another conversation that reached this goal" in prompt, prompt)


class Row(NamedTuple):
    """A scenario: what the judge answers at first, again and for the third time; and what becomes of it."""

    answers: tuple[Verdict, ...]
    outcome: str
    """Empty: no score."""
    play: Play = REFUSE
    epochs: tuple[Play, ...] = ()
    """Epochs before that of ``play``."""
    verdict: str = ""
    key: str = ""
    """What a message names: of the failure, or of the score."""
    is_contradicted: bool = False
    """By the judge of behaviour."""
    scenario: dict[str, Any] = {}

    @property
    def becomes(self) -> str:
        by_outcome = {"missed": "failed", "": "inconclusive"}
        return self.verdict or by_outcome.get(self.outcome, "passed")


class Bench:
    """A project whose judge of goals (a server) answers by ``goal``, from the scenario's name and what is
    asked, and whose judge of behaviour finds a fault in the scenarios of ``contradicted``."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.goal: Callable[[str, Asked], Verdict] = lambda _name, _asked: MISSED
        self.contradicted: set[str] = set()
        self.asked: list[tuple[str, Asked]] = []
        self.server = ModelServer(self._play)

    def _play(self, request: Json) -> Reply:
        fields = schema_in(request)["properties"]
        prompt = request["messages"][1]["content"]
        name = match[1] if (match := re.search(r"Case: ([\w-]+)\.", prompt)) else ""
        answer: Verdict = {"reason": "because"}
        if "issues" in fields:
            answer = {"issues": []}
        elif "outcome" in fields:
            asked = asked_of(prompt)
            self.asked.append((name, asked))
            texts = ("rule", "kind", "source", "fact", "difference", "evidence")
            answer |= {"call": None, **dict.fromkeys(texts, ""), **self.goal(name, asked)}
        else:
            is_found = name in self.contradicted and REFUSAL in prompt
            answer |= {"evidence": REFUSAL if is_found else "", "source": "", "call": None}
            answer |= {"label": "disobey user request" if is_found else "no failure"}
        return Reply(completion(json.dumps(answer)))

    def write(
        self, scenarios: dict[str, dict[str, Any]], plays: dict[str, list[Play]], more: str = ""
    ) -> None:
        self.project.agent(AGENT)
        self.project.write("plays.json", json.dumps(plays))
        agent = f"agent: {{name: bot, target: 'agent.py:agent', policy: '{RULE}'}}\n"
        metrics = "metrics: [goal_completion, agent_behavior_failure]\n"
        self.project.config(agent + model_config(self.server, metrics + more), target="")
        whole = {"goal": GOAL, "turns": [ASKED], "tools": {"refund": REFUND}}
        entries = []
        for name, own in scenarios.items():
            knowledge = [*own.get("knowledge", [ON_SALE]), f"Case: {name}."]
            entries.append({"id": name, **whole, **own, "knowledge": knowledge})
        self.project.scenarios(json.dumps({"scenarios": entries}))

    def lamp(self, *epochs: Play, more: str = "", **own: Any) -> None:
        """One scenario with a play for each epoch."""
        self.write({"lamp": {"epochs": len(epochs), **own}}, {"lamp": list(epochs)}, more)

    def twice(self, again: Verdict) -> None:
        """Reached in the first epoch, refused in the second; and when it is asked again, ``again``."""

        def goal(_name: str, asked: Asked) -> Verdict:
            if asked.is_reached:
                return REACHED
            return again if asked.number > 1 else RULED_OUT

        self.goal = goal

    def play(self, rows: dict[str, Row], more: str = "") -> Done:
        """One run of all rows, and the same report from its journal."""

        def goal(name: str, asked: Asked) -> Verdict:
            row = rows[name]
            if row.epochs and asked.is_reached:
                return {**REACHED, "call": row.epochs[0][0].index("refund")}
            return row.answers[min(asked.number, len(row.answers)) - 1]

        self.goal = goal
        self.contradicted = {name for name, row in rows.items() if row.is_contradicted}
        scenarios = {name: {"epochs": len(row.epochs) + 1, **row.scenario} for name, row in rows.items()}
        self.write(scenarios, {name: [*row.epochs, row.play] for name, row in rows.items()}, more)
        done = self.run()
        again = self.project.call("report", "latest", "--report", "json=again.json", "-v", env=KEY)
        assert again.code == done.code
        assert self.scenarios("again.json") == self.scenarios()
        return done

    def run(self, *flags: str) -> Done:
        self.asked.clear()
        return self.project.run(*flags, env=KEY)

    def rejudge(self) -> tuple[int, set[str]]:
        """The exit code, and which scenarios were asked about."""
        self.asked.clear()
        flags = ("report", "latest", "--rejudge", "--report", "json=results.json")
        return self.project.call(*flags, env=KEY).code, {name for name, _ in self.asked}

    def numbers(self, name: str = "lamp") -> list[int]:
        return [asked.number for each, asked in self.asked if each == name]

    def scenarios(self, file: str = "results.json") -> Any:
        return json.loads((self.project.root / file).read_text("utf-8"))["scenarios"]

    def score(self, epoch: int = 0) -> Any:
        return self.scenarios()[0]["samples"][epoch]["scores"]["goal_completion"]

    def found(self) -> list[tuple[str, str]]:
        return findings_of(self.scenarios()[0])


def findings_of(scenario: Json) -> list[tuple[str, str]]:
    return [(f["label"], f["severity"]) for sample in scenario["samples"] for f in sample["findings"]]


def check(row: Row, scenario: Json) -> list[str]:
    """What became of a row; its votes."""
    sample = scenario["samples"][-1]
    assert scenario["verdict"] == row.becomes, sample
    severity = "high" if row.epochs and row.outcome == "missed" else "critical"
    is_found = row.outcome in ("missed", "policy broken") or row.becomes == "failed"
    goals = [found for found in findings_of(scenario) if found[0] == "goal not completed"]
    assert goals == [("goal not completed", severity)] * is_found
    if not row.outcome:
        assert row.key in sample["score_failures"][0]["message"]
        return []
    score = sample["scores"]["goal_completion"]
    assert score["label"] == row.outcome
    assert row.key in score["reason"]
    votes = [vote["verdict"] for vote in score.get("votes", [])]
    if len(votes) > 1:  # a clean verdict that is drawn by lot has votes, too
        assert len(votes) == len(row.answers) or (len(row.answers) == 1 and set(votes) == {row.outcome})
        for vote, answer in zip(votes, row.answers, strict=False):
            assert vote == answer["outcome"]
    return votes


@pytest.fixture
def bench(project: Project) -> Iterator[Bench]:
    made = Bench(project)
    with made.server:
        yield made


# ── asked again ──────────────────────────────────────────────────────────────────────────────────

DOUBTED = {
    "upheld": Row((RULED_OUT, RULED_OUT), "ruled out"),
    "upheld-by-the-third": Row((RULED_OUT, MISSED, RULED_OUT), "ruled out"),
    "false-refusal": Row((RULED_OUT, MISSED, MISSED), "missed"),
    "no-two-agree": Row((RULED_OUT, MISSED, NOT_CLEAR), "not clear"),
    "twice-not-clear": Row((RULED_OUT, NOT_CLEAR, NOT_CLEAR), "not clear"),
    "missed-is-refuted": Row((MISSED, RULED_OUT, RULED_OUT), "ruled out"),
    "missed-or-ruled-out": Row((MISSED, RULED_OUT, NOT_CLEAR), "not clear"),
}


def test_a_goal_that_was_ruled_out_or_missed_is_asked_about_until_two_agree(bench: Bench) -> None:
    done = bench.play(DOUBTED)
    assert done.code == 1, done.all
    for scenario in bench.scenarios():
        row = DOUBTED[scenario["id"]]
        assert len(check(row, scenario)) == len(row.answers)
    opinions = bench.project.results()["summary"]["second_opinions"]
    upheld = sum(row.answers[0]["outcome"] == row.outcome for row in DOUBTED.values())
    assert (opinions["doubted"], opinions["upheld"]) == (len(DOUBTED), upheld)
    again = sum(len(row.answers) - 1 for row in DOUBTED.values())
    assert opinions["usage"]["calls"] - opinions["sampled"] == again
    for name, asked in bench.asked:
        assert not asked.is_beside_twin
        if asked.number > 1 and DOUBTED[name].answers[0] is RULED_OUT:
            assert f'"rule": "{RULE}"' in asked.prompt


def test_an_unreadable_second_opinion_leaves_the_goal_unknown(bench: Bench) -> None:
    row = Row((RULED_OUT, {"outcome": "whatever"}), "", key="ruled out")
    assert bench.play({"lamp": row}).code == 3
    check(row, bench.scenarios()[0])


def test_without_corroboration_it_is_asked_once(bench: Bench) -> None:
    assert bench.play({"lamp": Row((RULED_OUT,), "ruled out")}, "judge: {corroborate: false}\n").code == 0
    assert bench.numbers() == [1]


# ── outcomes of one conversation ─────────────────────────────────────────────────────────────────

BY_RESULT: Verdict = {"outcome": "ruled out", "evidence": REFUSAL, "call": 0, "source": DOWN, "fact": GOAL}
TRY_AND_REFUSE: Play = [["refund", f"{REFUSAL}, the system is down."]] * 2
REFUSE_AND_TRY: Play = [[f"{REFUSAL}, the system is down."], ["refund", "No."]]
TWO_TURNS = {"turns": [ASKED, "Try again."], "tools": {"refund": {"writes": True, "error": DOWN}}}

BY_SOURCE: Verdict = {"outcome": "reached", "evidence": REFUSAL, "source": ON_SALE}
LOOK_UP = {"tools": {"refund": {**REFUND, "writes": False, "reads": True}}}
TO_REFUSE = {"goal_outcome": "refused"}
SO_BE_IT: Verdict = {**REACHED, "evidence": "but so be it"}

CHANGED_MIND = "On second thought I will keep the lamp."
WITHDRAWN: Verdict = {"outcome": "withdrawn", "evidence": CHANGED_MIND, "source": CHANGED_MIND}
ENDED: Verdict = {**MISSED, "evidence": "As you like."}
GIVES_UP = {"turns": [ASKED, CHANGED_MIND]}
PATIENT: Play = [["One moment."], ["As you like."]]
STUBBORN: Play = [["I cannot refund it."], ["As you like."]]  # it had refused before the user gave up

BROKEN: Verdict = {"outcome": "policy broken", "rule": RULE, "call": 0, "evidence": REFUNDED}
AGAINST: Play = [["refund", "It is refunded all the same."]]
FORBIDDEN: Verdict = {**BROKEN, "kind": "permission", "evidence": "It is refunded all the same."}
NOT_MET: Verdict = {"outcome": "missed", "evidence": "It is refunded all the same."}

HAND_OVER = "until the agent puts the user through to a person"
PUT_THROUGH = "I am putting you through to a colleague."
BY_WORDS: Verdict = {"outcome": "reached", "evidence": PUT_THROUGH, "source": HAND_OVER}
BY_TRANSFER: Verdict = {"outcome": "reached", "call": 0, "evidence": "One moment."}
SAYS: Play = [[PUT_THROUGH]]
PASSES_ON: Play = [["transfer", "One moment."]]
TRANSFERS = {"tools": {"refund": REFUND, "transfer": {"returns": "Transfer successful"}}}
NAMES_HAND_OVER = {**TRANSFERS, "goal": f"Ask for a refund {HAND_OVER}."}


def flawed(answer: Verdict, key: str, **more: Any) -> Row:
    """An answer that refers to what is not there: asked to be mended, in vain."""
    return Row((answer,), "", key=f'"{key}"', **more)


SINGLE = {
    # A goal that was ruled out names the rule, and the fact that falls under it.
    "no-fact": flawed({**RULED_OUT, "fact": ""}, "fact"),
    "fact-is-the-rule": flawed({**RULED_OUT, "fact": RULE}, "fact"),
    "invented-fact": flawed({**RULED_OUT, "fact": "The lamp was on sale at forty percent."}, "fact"),
    "fact-of-the-agent": flawed({**RULED_OUT, "fact": REFUSAL}, "fact"),
    "invented-rule": flawed({**RULED_OUT, "rule": "No refunds on Sundays."}, "rule"),
    "fact-of-the-goal": Row(({**RULED_OUT, "fact": GOAL},) * 2, "ruled out"),
    "fact-of-the-user": Row(({**RULED_OUT, "fact": ASKED},) * 2, "ruled out"),
    # The call whose result ruled it out was made before the refusal.
    "by-result": Row((BY_RESULT,) * 2, "ruled out", TRY_AND_REFUSE, scenario=TWO_TURNS),
    "result-after-the-refusal": Row((BY_RESULT,), "", REFUSE_AND_TRY, scenario=TWO_TURNS),
    "no-source": Row(({**BY_RESULT, "source": ""},), "", TRY_AND_REFUSE, scenario=TWO_TURNS),
    "fact-is-the-result": flawed({**BY_RESULT, "fact": DOWN}, "fact", play=TRY_AND_REFUSE,
                                 scenario=TWO_TURNS),
    # Reached without a change, where one could be made.
    "only-talked": Row((BY_SOURCE, MISSED, MISSED), "missed"),
    "wanted-to-know": Row((BY_SOURCE, BY_SOURCE), "reached"),
    "nothing-to-change": Row((BY_SOURCE,), "reached", scenario=LOOK_UP),
    # A refusal that is right is asked about, too.
    "refunds-and-denies-it": Row((RULED_OUT, SO_BE_IT, SO_BE_IT), "reached",
                                 [["refund", f"{REFUSAL}, but so be it."]], verdict="failed",
                                 scenario=TO_REFUSE),
    "refuses-rightly": Row((RULED_OUT, RULED_OUT), "ruled out", scenario=TO_REFUSE),
    # Where another metric contradicts, a third answer decides.
    "contradicted": Row((RULED_OUT,) * 3, "ruled out", is_contradicted=True),
    "contradicted-missed": Row((RULED_OUT, RULED_OUT, MISSED), "missed", is_contradicted=True),
    "contradicted-flawed": Row((RULED_OUT, RULED_OUT, REACHED), "", is_contradicted=True),
    "contradicted-withdrawn": Row((WITHDRAWN, WITHDRAWN, MISSED), "missed", STUBBORN, is_contradicted=True,
                                  scenario=GIVES_UP),
    # Withdrawn by the user.
    "withdrawn": Row((WITHDRAWN, WITHDRAWN), "withdrawn", PATIENT, scenario=GIVES_UP),
    "withdrawn-by-the-third": Row((WITHDRAWN, ENDED, WITHDRAWN), "withdrawn", PATIENT, scenario=GIVES_UP),
    "missed-was-withdrawn": Row((ENDED, WITHDRAWN, WITHDRAWN), "withdrawn", PATIENT, scenario=GIVES_UP),
    "refused-before": Row((WITHDRAWN, MISSED, MISSED), "missed", STUBBORN, scenario=GIVES_UP),
    "refused-or-withdrawn": Row((WITHDRAWN, RULED_OUT, NOT_CLEAR), "not clear", STUBBORN, scenario=GIVES_UP),
    "ruled-out-before": Row((WITHDRAWN, RULED_OUT, RULED_OUT), "ruled out", STUBBORN, scenario=GIVES_UP),
    **{
        f"not-withdrawn-by-{whose}": flawed({**WITHDRAWN, "source": said}, "source", play=PATIENT,
                                            scenario=GIVES_UP)
        for whose, said in {"nobody": "", "the-agent": "As you like.", "the-rule": RULE,
                            "invented-words": "I have changed my mind about it."}.items()
    },
    # Only a rule of kind permission makes a goal that was reached a miss.
    "permission": Row(({**BROKEN, "kind": "permission"},) * 2, "policy broken", GIVE, verdict="failed"),
    **{
        f"kind-{kind or 'missing'}": Row(({**BROKEN, "kind": kind},), "", GIVE, key="kind")
        for kind in ("disclosure", "style", "")
    },
    # Where the other epoch reached the goal, a missed one gates nothing: two outcomes agree if both would.
    "missed-then-broken": Row((NOT_MET, FORBIDDEN, FORBIDDEN), "policy broken", AGAINST, (GIVE,), "failed"),
    "broken-then-missed": Row((FORBIDDEN, NOT_MET, NOT_MET), "missed", AGAINST, (GIVE,), "passed"),
    "missed-twice": Row((NOT_MET, NOT_MET), "missed", AGAINST, (GIVE,), "passed"),
    "broken-twice": Row((FORBIDDEN, FORBIDDEN), "policy broken", AGAINST, (GIVE,), "failed"),
    # A hand-over that the goal names is reached by words, which are asked about again, or by a call.
    "hand-over-by-words": Row((BY_WORDS, BY_WORDS), "reached", SAYS, scenario=NAMES_HAND_OVER),
    "hand-over-by-a-call": Row((BY_TRANSFER,), "reached", PASSES_ON, scenario=NAMES_HAND_OVER),
    "goal-names-no-hand-over": Row((BY_WORDS,), "", SAYS, scenario=TRANSFERS),
    "other-words": Row(({**BY_WORDS, "evidence": "The agent hung up."},), "", SAYS, scenario=NAMES_HAND_OVER),
    "hand-over-of-no-goal": Row(({**BY_WORDS, "source": ""},), "", SAYS, scenario=NAMES_HAND_OVER),
}  # fmt: skip


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, Done]:
    bench = Bench(Project(tmp_path_factory.mktemp("single")))
    with bench.server:
        return bench, bench.play(SINGLE)


@pytest.mark.parametrize("name", SINGLE)
def test_the_outcome_of_a_goal_is_what_two_answers_with_true_references_say(
    single: tuple[Bench, Done], name: str
) -> None:
    bench, done = single
    assert done.code == 1, done.all
    row = SINGLE[name]
    (scenario,) = (each for each in bench.scenarios() if each["id"] == name)
    votes = check(row, scenario)
    if row.outcome and len(row.answers) > 1:
        assert votes
        assert {1, 2} <= set(bench.numbers(name))
    if row.outcome == "withdrawn":
        assert scenario["samples"][0]["scores"]["goal_completion"]["value"] is None
    if name.startswith("fact-of") and row.outcome:
        references = scenario["samples"][0]["scores"]["goal_completion"]["references"]
        assert references["fact"] == row.answers[0]["fact"]
    if row.is_contradicted:
        third = next(asked for each, asked in bench.asked if each == name and asked.number == 3)
        assert "disobey" in third.prompt


def test_the_last_line_counts_goals_that_were_withdrawn(single: tuple[Bench, Done]) -> None:
    count = sum(row.outcome == "withdrawn" for row in SINGLE.values())
    assert re.search(rf"\b{count} goals? withdrawn", single[1].out.splitlines()[-1])


# ── beside a conversation that reached it ────────────────────────────────────────────────────────

MOCKS = """
from agenteval import ToolError


def status(args, ctx):
    if ctx.sample.epoch:
        raise ToolError("refund service unavailable")
    return "up"


def refund_or(why):
    def refund(args, ctx):
        if ctx.sample.epoch:
            raise ToolError(why)
        return {"ok": True, "refund": "R-100"}

    return refund


refund_cancelled, refund_down = refund_or("it is cancelled"), refund_or("service is down")
"""
STATUS = {"tools": {"refund": REFUND, "status": {"reads": True, "python": "mocks.py:status"}}}
BY_STATUS: Verdict = {**BY_RESULT, "source": DOWN}
SEE: Play = [["refund", "I cannot refund it, as you see."]]


def brought_about(before: str, error: str, difference: str, outcome: str) -> Row:
    """Of two epochs the second calls ``before``, and then its refund fails."""
    mock = "refund_cancelled" if error == "it is cancelled" else "refund_down"
    tools = {
        "refund": {"writes": True, "python": f"mocks.py:{mock}"},
        "cancel_order": {"writes": True, "returns": {"cancelled": True}},
        "get_order": {"reads": True, "returns": {"item": "a red lamp"}},
    }
    play: Play = [[before, *SEE[0]] if before else SEE[0]]
    call = {"rule": "", "call": 1 if before else 0, "source": error, "difference": difference}
    return Row(({**RULED_OUT, **call},), outcome, play, (GIVE,), scenario={"tools": tools})


def by_status(difference: str, outcome: str, **more: Any) -> Row:
    """The service is down in the second epoch alone."""
    answers = (BY_STATUS, {**BY_STATUS, "difference": difference})
    play: Play = [["status", "I cannot refund it, the service is down."]]
    return Row(answers, outcome, play, ([["status", "refund", REFUNDED]],), scenario=STATUS, **more)


TWINS = {
    "missed": Row((RULED_OUT, MISSED), "missed", REFUSE, (GIVE,), key="epoch 1"),
    # Only what was different, and no doing of an agent, leaves it ruled out.
    "true-difference": by_status(DOWN, "ruled out", key="epoch 1"),
    "difference-of-the-user": by_status(ASKED, "missed", key='"difference"'),
    "no-difference": by_status("", "missed", key='"difference"'),
    "difference-of-the-other-agent": by_status(REFUNDED, "missed", key='"difference"'),
    "change-by-the-agent": brought_about("cancel_order", "it is cancelled", '"cancelled": true', "missed"),
    "what-came-of-it": brought_about("cancel_order", "it is cancelled", "it is cancelled", "missed"),
    "act-of-the-other": brought_about("cancel_order", "it is cancelled", '"refund": "R-100"', "missed"),
    "only-one-looked": brought_about("get_order", "service is down", '"item": "a red lamp"', "missed"),
    "same-call-of-both": brought_about("get_order", "service is down", "service is down", "ruled out"),
    "same-call-at-once": brought_about("", "service is down", "service is down", "ruled out"),
    "act-that-one-tried": Row(({**RULED_OUT, "difference": '"refund": "R-100"'},), "missed", REFUSE, (GIVE,)),
    "never-reached": Row((RULED_OUT,), "ruled out", REFUSE, (REFUSE,)),
    # Nobody is asked what was different where the user withdrew the goal.
    "withdrawn": Row((WITHDRAWN,), "withdrawn", [[REFUSES]] * 2, (GIVE * 2,), scenario=GIVES_UP),
}  # fmt: skip


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, Done]:
    bench = Bench(Project(tmp_path_factory.mktemp("twins")))
    bench.project.write("scenarios/mocks.py", MOCKS)
    with bench.server:
        done = bench.play(TWINS, "fail_on_severity: high\n")
        asked = list(bench.asked)
        code, asked_again = bench.rejudge()
    assert code == 1
    assert asked_again == set(), "what the journal knows is not asked"
    bench.asked = asked
    return bench, done


@pytest.mark.parametrize("name", TWINS)
def test_what_another_epoch_reached_was_missed_unless_something_was_different(
    twins: tuple[Bench, Done], name: str
) -> None:
    bench, done = twins
    assert done.code == 1, done.all
    row = TWINS[name]
    (scenario,) = (each for each in bench.scenarios() if each["id"] == name)
    sample = scenario["samples"][1]
    score = sample["scores"]["goal_completion"]
    assert (scenario["verdict"], score["label"]) == (row.becomes, row.outcome)
    assert row.key in score["reason"]
    assert findings_of(scenario) == [("goal not completed", "high")] * (row.outcome == "missed")
    again = [asked for each, asked in bench.asked if each == name and asked.is_beside_twin]
    assert bool(again) is (row.outcome != "withdrawn" and name != "never-reached")
    assert all(REFUNDED in asked.prompt.partition("## Another conversation")[2] for asked in again)
    votes = [vote["verdict"] for vote in score.get("votes", [])]
    if name == "missed":
        assert [asked.number for asked in again] == [2, 3]
    if row.key == '"difference"':  # asked to mend it, twice, the judge could not
        assert votes == ["ruled out", "missed", "missed"]
    if name == "true-difference":
        assert DOWN in score["reason"]
    if name == "withdrawn":
        assert votes == ["withdrawn", "withdrawn"]


def test_another_agent_that_reached_it_is_shown_with_its_policy(bench: Bench) -> None:
    """What only one policy forbids is a difference."""
    bench.lamp(REFUSE)
    text = (bench.project.root / "agenteval.yaml").read_text().splitlines()
    agents = (
        f"compare: [{{name: bot, target: 'agent.py:agent', policy: '{RULE}'}},"
        " {name: able, target: 'able.py:agent', policy: 'Everything can be returned.'}]"
    )
    bench.project.write("agenteval.yaml", "\n".join([agents, *text[1:]]) + "\n")
    bench.project.write("able.py", AGENT.replace("plays.json", "able.json"))
    bench.project.write("able.json", json.dumps({"lamp": [GIVE]}))
    for again, code in ((MISSED, 1), ({**RULED_OUT, "difference": RULE}, 0)):
        bench.twice(again)
        done = bench.run()
        assert done.code == code, done.all
        shown = next(asked.prompt for _, asked in bench.asked if asked.is_beside_twin)
        _, _, twin = shown.partition("## Another conversation")
        assert all(part in shown for part in ("epoch 1", "able"))
        assert "Everything can be returned." in twin


def test_the_baseline_that_reached_it_is_shown_where_no_conversation_of_the_run_did(bench: Bench) -> None:
    bench.twice(MISSED)
    bench.lamp(GIVE)
    assert bench.run().code == 0
    bench.lamp(REFUSE)
    assert bench.run("--baseline", "latest").code == 1
    assert bench.score()["label"] == "missed"
    assert "lamp · bot · epoch 1" in bench.score()["reason"]
    assert any(asked.is_beside_twin and "baseline" in asked.prompt for _, asked in bench.asked)


def test_epochs_of_a_log_are_held_against_each_other(bench: Bench) -> None:
    bench.lamp(REFUSE)
    tool = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}
    user, policy = {"role": "user", "content": ASKED}, {"role": "system", "content": RULE}
    refunded = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "refund", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
        {"role": "assistant", "content": REFUNDED},
    ]
    refused = [{"role": "assistant", "content": f"Sorry, {REFUSAL}."}]
    lines = [
        {"id": f"c{n}", "task": "lamp", "messages": [policy, user, *talk], "tools": [tool]}
        for n, talk in enumerate((refused, refunded))
    ]
    bench.project.write("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    bench.project.scenarios(f"id: lamp\ngoal: {GOAL}\nturns: [Hi]\nfacts: [{ON_SALE}]\n")
    bench.twice(MISSED)
    flags = "--scenario-from task --scenarios scenarios --metric goal_completion --report json=results.json"
    done = bench.project.call("score", "log.jsonl", *flags.split(), env=KEY)
    labels = [s["scores"]["goal_completion"]["label"] for s in bench.scenarios()[0]["samples"]]
    assert labels == ["missed", "reached"], done.all
    issues = bench.project.results()["summary"]["issues"]
    assert [issue["labels"] for issue in issues] == [["goal not completed"]]


# ── a run that goes on, and the order of its events ──────────────────────────────────────────────


def test_a_run_that_was_killed_before_it_asked_again_asks_when_it_goes_on(bench: Bench) -> None:
    """Of the journal there is what had been written when both conversations were over."""
    bench.lamp(GIVE, REFUSE, more="fail_on_severity: high\n")
    bench.twice(MISSED)
    assert bench.run().code == 1
    whole = bench.scenarios()
    (journal,) = (bench.project.root / ".agenteval/runs").glob("*/events.jsonl")
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"type":"sample_finished"' in line)
    journal.write_text("".join(lines[: last + 1]), "utf-8")
    assert bench.project.call("report", "latest", "--report", "json=cut.json", env=KEY).code == 3
    assert bench.scenarios("cut.json")[0]["samples"][1]["scores"]["goal_completion"]["label"] == "ruled out"
    done = bench.run("--resume", "latest")
    assert done.code == 1, done.all
    assert (bench.numbers(), bench.scenarios()) == ([2, 3], whole)
    assert bench.run("--resume", "latest").code == 1
    assert not bench.asked, "the run is complete"


def test_the_report_does_not_depend_on_the_order_of_events_between_conversations(bench: Bench) -> None:
    bench.lamp(GIVE, GIVE, REFUSE, REFUSE, more="fail_on_severity: high\n")
    bench.twice(MISSED)
    assert bench.run().code == 1
    (folder,) = (bench.project.root / ".agenteval/runs").iterdir()
    begin, *rest = load_run(folder)
    of_samples: dict[Any, list[Event]] = {}
    for event in rest:
        of_samples.setdefault(getattr(event, "key", None), []).append(event)
    whole = build_report([begin, *rest]).scenarios
    assert [sample.scores[0].label for sample in whole[0].samples] == ["reached"] * 2 + ["missed"] * 2
    draw = Random(7)
    for _ in range(20):
        waiting = {key: list(events) for key, events in of_samples.items()}
        shuffled: list[Event] = []
        while waiting:
            key = draw.choice(list(waiting))
            shuffled.append(waiting[key].pop(0))
            if not waiting[key]:
                del waiting[key]
        assert build_report([begin, *shuffled]).scenarios == whole


# ── three agents, and a judge who believes each of them at first ─────────────────────────────────


@pytest.mark.parametrize(
    ("tools", "is_on_sale", "code"),
    [
        pytest.param(["get_order"], True, 0, id="refuses as the policy has it"),
        pytest.param(["get_order"], False, 1, id="refuses falsely, with a sentence of the policy"),
        pytest.param(["get_order", "cancel_order", "refund"], False, 1, id="closed the order itself"),
    ],
)
def test_an_agent_that_refuses_falsely_fails_and_one_that_must_refuse_passes(
    bench: Bench, tools: list[str], is_on_sale: bool, code: int
) -> None:
    mocks = {
        "get_order": {"reads": True, "returns": {"item": "lamp", "on_sale": is_on_sale}},
        "cancel_order": {"writes": True, "returns": {"ok": True}},
        "refund": {"writes": True, "error": "the order is closed"},
    }
    bench.lamp(
        [[*tools, f"I am sorry, {REFUSAL}: sale items cannot be returned."]], tools=mocks, knowledge=[]
    )

    def goal(_name: str, asked: Asked) -> Verdict:
        record = asked.prompt.partition("# Criterion")[0]
        is_true = '"on_sale": true' in record and "cancel_order {" not in record
        believed = {**RULED_OUT, "fact": f'"on_sale": {json.dumps(is_on_sale)}'}
        return believed if asked.number == 1 or is_true else MISSED

    bench.goal = goal
    done = bench.run()
    assert done.code == code, done.all
    assert bench.score()["label"] == ("missed" if code else "ruled out")
    assert bench.found() == [("goal not completed", "critical")] * code
