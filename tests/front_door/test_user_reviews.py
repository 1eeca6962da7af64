"""A failure that the simulated user explains is the simulator's; the same one with a user that acted as it
should is the agent's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.reporters.words.judge import ReviewCounts
from tests.support import scripted
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import first_samples, judge, script

AGENT = """
async def agent(messages, ctx):
    text = messages[-1]["content"]
    if "crash" in text:
        raise ValueError("a defect")
    if "cancel" in text:
        await ctx.call_tool("cancel", {})
        return "Cancelled. Anything else?"
    if "yes" in text.lower() and "sloppy" not in ctx.scenario_id:
        await ctx.call_tool("book", {})
        return "It is booked."
    if "yes" in text.lower():
        return "It is as good as booked."
    return "There is 10:30 on Tuesday. Shall I book it for you?" if "haircut" in text else "As you like."
"""
BOOKED = {"tool_calls": {"calls": [{"name": "book"}], "forbidden": [{"name": "cancel"}]}}
BOT = "agent: {name: bot, target: 'agent.py:agent', calls: all}\n"
OPENING = "A haircut on Tuesday, please."
EARLY = "Never mind, I have to go."


def user(scenario: str, *messages: str) -> list[Json]:
    last = len(messages) - 1
    return [scripted.user(scenario, turn, text, done=turn == last) for turn, text in enumerate(messages)]


def review(scenario: str, label: str, evidence: str, **more: Any) -> Json:
    reply = {"evidence": evidence, "reason": f"why {scenario}", "label": label, **more}
    return judge(reply, metric="user_review", scenario=scenario)


def run(project: Project, rows: dict[str, Json], replies: list[Json], config: str, *flags: str) -> Done:
    project.agent(AGENT)
    project.config(f"{BOT}models: {{default: scripted/replies.yaml}}\nepochs: 1\n{config}", target="")
    tools = {name: {"returns": 1} for name in ("book", "cancel")}
    whole = {"goal": "Book a haircut.", "knowledge": ["I have time on Tuesday."]}
    whole |= {"tools": tools, "expect": BOOKED}
    project.scenarios(json.dumps({"scenarios": [{"name": n, **whole, **row} for n, row in rows.items()]}))
    script(project, *replies)
    return project.run(*flags)


def verdicts(project: Project) -> dict[str, tuple[str, str | None]]:
    return {name: (each["verdict"], each["fault"]) for name, each in first_samples(project).items()}


LOST, RED = ("inconclusive", "simulator"), ("failed", None)
FIRST = {"user": OPENING, "expect": {"output": {"contains": ["11:00"]}}}
ROWS: dict[str, tuple[Json, tuple[str, ...], Json | None, tuple[str, str | None]]] = {
    # The pairs: a user that spoils it, and one that does not, of the same failure.
    "ends-early": ({}, (OPENING, EARLY), {"label": "hindered", "evidence": EARLY}, LOST),
    "goes-for-good": ({}, (OPENING, EARLY), {"label": "as it should", "evidence": ""}, RED),
    "sloppy": ({}, (OPENING, "Yes, please."), {"label": "as it should", "evidence": ""}, RED),
    "sloppy-unclear": ({}, (OPENING, "Yes, please."), {"label": "not clear", "evidence": ""}, RED),
    "sloppy-spoilt": (
        {},
        (OPENING, "Yes, but I never wanted a haircut."),
        {"label": "hindered", "evidence": "I never wanted a haircut", "source": "Book a haircut."},
        LOST,
    ),
    "silent": ({}, (OPENING, ""), {"label": "hindered", "evidence": "Shall I book it for you?"}, LOST),
    "helped": ({}, (OPENING, EARLY), {"label": "helped", "evidence": EARLY}, LOST),
    "given-by-whom": ({}, (OPENING, EARLY), {"label": "helped", "evidence": "Shall I book it for you"}, RED),
    # A fault that explains nothing, one that nobody can look up, and no review at all.
    "sloppy-besides": (
        {},
        (OPENING, "Yes, and I hate Tuesdays."),
        {"label": "hindered", "evidence": "and I hate Tuesdays", "explains": False},
        RED,
    ),
    "invented": ({}, (OPENING, EARLY), {"label": "hindered", "evidence": "I detest all barbers"}, RED),
    "invented-source": (
        {},
        (OPENING, EARLY),
        {"label": "hindered", "evidence": EARLY, "source": "I am free all year round"},
        RED,
    ),
    "unreviewed": ({}, (OPENING, EARLY), None, RED),
    "crashed": (
        {},
        (OPENING, "Please crash for me."),
        {"label": "hindered", "evidence": OPENING},
        ("failed", "agent"),
    ),
    # What turns before the fault prove stands; what later ones do is the fault's.
    "proven-turn": (
        {"turns": [FIRST, {"simulate": 2}]},
        ("unused", EARLY),
        {"label": "hindered", "evidence": EARLY},
        RED,
    ),
    "proven-call": ({}, ("A haircut; cancel all.", EARLY), {"label": "hindered", "evidence": EARLY}, RED),
    "spoilt-call": (
        {},
        (OPENING, "I forgot who I am, so cancel it."),
        {"label": "hindered", "evidence": "I forgot who I am"},
        LOST,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """A run of all rows, of which no test changes anything but the reports."""
    project = Project(tmp_path_factory.mktemp("reviewed"))
    rows = {name: row for name, (row, *_) in ROWS.items()}
    replies: list[Json] = []
    for name, (_, messages, answer, _) in ROWS.items():
        replies += user(name, *messages)
        replies += [review(name, **answer)] if answer else []
    return project, run(project, rows, replies, "metrics: []\n")


def test_a_failure_that_the_user_explains_is_the_simulators(reviewed: tuple[Project, Done]) -> None:
    project, done = reviewed
    assert done.code == 1, done.all
    assert verdicts(project) == {name: expected for name, (*_, expected) in ROWS.items()}
    early = project.sample("ends-early")
    assert early["stop"] == "simulator"
    assert all(fact in early["reason"] for fact in ("simulator (turn 2)", "hindered", "why ends-early"))
    assert failed_checks(early) == set()
    assert [turn["user"] for turn in early["turns"]] == [OPENING, EARLY], "the messages are shown"
    assert project.sample("silent")["user_review"]["turn"] == 1, "after the last turn"
    assert failed_checks(project.sample("proven-turn")) == {(0, "output.contains")}
    assert failed_checks(project.sample("proven-call")) == {(None, "tool_calls")}
    assert "user_review" not in project.sample("unreviewed")
    assert "user_review" not in project.sample("crashed"), "no user makes an agent crash"


def test_how_often_the_user_was_at_fault_is_reported_with_its_interval(
    reviewed: tuple[Project, Done],
) -> None:
    project, _ = reviewed
    simulator = project.results()["summary"]["simulator"]
    # Two reviews could not be looked up: they are no answer.
    reviews = simulator["reviews"]
    assert (reviews["reviewed"], reviews["at_fault"], reviews["passed"]) == (11, 8, 0)
    assert reviews["rate"] == pytest.approx(8 / 11)
    assert (reviews["low"], reviews["high"]) == pytest.approx(ReviewCounts(11, 8).interval)
    assert simulator["errored"] == 0, "no message was refused"
    text = " ".join(project.call("report", "latest", "-v").out.split())
    for fact in ("8 of 11", "73 % [43, 90]", "sloppy-besides, turn 2: ", "user_review: "):
        assert fact in text
    assert "ends-early, turn 2: " not in text, "what decides a sample stands among the failures"
    calls = project.results()["summary"]["usage"]["judge"]["calls"]
    assert calls == 19, "with those of conversations played again"
    assert "8 of 11" in project.call("report", "latest", "--report", "markdown=-").out


def test_nobody_is_asked_where_nobody_judges(project: Project) -> None:
    rules = [*user("early", OPENING, EARLY), review("early", "hindered", EARLY)]
    assert run(project, {"early": {}}, rules, "metrics: []\n").code == 3
    assert run(project, {"early": {}}, rules, "metrics: []\n", "--no-judge").code == 1
    anything = judge({"label": "no failure"})
    done = run(project, {"early": {}}, [*user("early", OPENING, EARLY), anything], "metrics: []\n")
    assert done.code == 1, done.all
    (sample,) = project.results()["scenarios"][0]["samples"]
    assert (sample["fault"], "user_review" in sample) == (None, False), (
        "a rule for all judges knows no review"
    )
    scripted = {"early": {"turns": [OPENING]}}
    assert run(project, scripted, rules, "metrics: []\n").code == 1, "what is written down is nobody's fault"


def test_a_missed_goal_is_a_failure_too(project: Project) -> None:
    goal = judge({"evidence": "Shall I book it for you?", "score": 0}, metric="goal_completion")
    loose = {"expect": {"output": {"contains": ["10:30"]}}}
    # What the user's fault has lost is played once more, and was paid for.
    for label, code, calls in (("hindered", 3, 4), ("as it should", 1, 2)):
        rules = [*user("early", OPENING, EARLY), review("early", label, EARLY), goal]
        done = run(project, {"early": loose}, rules, "metrics: [goal_completion]\n")
        assert done.code == code, done.all
        issues = project.results()["summary"]["issues"]
        assert bool(issues) == (code == 1), "the missed goal is no issue of the agent's"
        assert project.results()["summary"]["usage"]["judge"]["calls"] == calls, "what was set aside was paid"


def test_a_tenth_of_the_passed_is_reviewed_and_a_pass_that_was_given_away_is_none(project: Project) -> None:
    rules = [*user("good", OPENING, "Yes, please."), review("good", "helped", OPENING)]
    done = run(project, {"good": {"epochs": 40}}, rules, "metrics: []\nfault_tolerance: 0.5\nseed: 7\n")
    assert done.code == 0, done.all
    reviews = project.results()["summary"]["simulator"]["reviews"]
    assert 1 <= reviews["reviewed"] == reviews["passed_at_fault"] <= 12
    (scenario,) = project.results()["scenarios"]
    lost = [sample["epoch"] for sample in scenario["samples"] if sample["verdict"] != "passed"]
    assert len(lost) == reviews["reviewed"]
    run(project, {"good": {"epochs": 40}}, rules, "metrics: []\nfault_tolerance: 0.5\nseed: 7\n")
    (again,) = project.results()["scenarios"]
    assert [s["epoch"] for s in again["samples"] if s["verdict"] != "passed"] == lost, "drawn by the seed"
    rules[-1] = review("good", "hindered", OPENING)
    done = run(project, {"good": {"epochs": 40}}, rules, "metrics: []\nseed: 7\n")
    assert done.code == 0, "an agent that got there nevertheless has passed"


@pytest.mark.parametrize("left_out", [False, True])
def test_an_accepted_suite_of_prompts_and_a_model_that_answers_in_words(
    project: Project, left_out: bool
) -> None:
    """Over real HTTP: what is asked, and that a quotation that is not there, or what is left out, is asked
    for once more."""
    asked: list[Json] = []

    def play(request: Json) -> Reply:
        text = json.dumps(request["messages"])
        if "A model played the user" not in text:
            message = EARLY if "Shall I book" in text else OPENING
            move = {"message": message, "done": message == EARLY, "reason": "r", "unknown": ""}
            return Reply(completion(json.dumps(move)))
        asked.append(request)
        evidence = EARLY if left_out or len(asked) > 1 else "I loathe all barbers"
        answer = {"evidence": evidence, "source": "Book a haircut.", "reason": "r", "label": "Hindered."}
        answer |= {"explains": True} if not left_out or len(asked) > 1 else {}
        return Reply(completion(json.dumps(answer)))

    with ModelServer(play) as server:
        project.agent(AGENT)
        model = f"models: {{default: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
        project.config(BOT + model + "metrics: []\nepochs: 1\nnow: Monday\n", target="")
        row = {"name": "early", "goal": "Book a haircut.", "beliefs": ["It is free."], "expect": BOOKED}
        tools = {name: {"returns": 1} for name in ("book", "cancel")}
        project.scenarios(json.dumps({"scenarios": [{**row, "tools": tools}]}))
        assert project.run().code == 3
    text = "\n".join(message["content"] for message in asked[0]["messages"])
    for part in ("Book a haircut.", "It is free.", "Monday", EARLY, "tool_calls: ", "user_done"):
        assert part in text, part
    assert len(asked) == 3  # and once of the conversation that was played again
    shown = project.call("show-prompts", "--metric", "user_review")
    assert (shown.code, "role: judge" in shown.out, "${outcome}" in shown.out) == (0, True, True)


GATE = "epochs: {min: 3, max: 6}\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\nmetrics: []\n"


@pytest.mark.parametrize(("label", "code", "begun"), [("hindered", 3, 3), ("as it should", 1, 1)])
def test_what_counts_epochs_and_what_ends_a_run_early_know_it_too(
    project: Project, label: str, code: int, begun: int
) -> None:
    rules = [*user("early", OPENING, EARLY), review("early", label, EARLY)]
    one_by_one = "concurrency: 1\nmetrics: []\n"
    assert run(project, {"early": {"epochs": 3}}, rules, one_by_one, "--fail-fast").code == code
    (scenario,) = project.results()["scenarios"]
    assert len([sample for sample in scenario["samples"] if sample["turns"]]) == begun, "nothing had failed"
    project.config(f"{BOT}models: {{default: scripted/replies.yaml}}\n{GATE}", target="")
    done = project.run()
    assert done.code == code, done.all
    faults = {sample["fault"] for sample in project.results()["scenarios"][0]["samples"]}
    assert faults == {"simulator" if code == 3 else None}


def test_a_judges_finding_stands_before_the_fault_and_not_after_it(project: Project) -> None:
    unsafe = {"evidence": "Shall I book it for you?", "label": "unsafe action"}
    fine = judge({"label": "no failure"})
    messages = (
        "A haircut and some tea, please.",
        "I never wanted a haircut, I want tea.",
        "Never mind that, bye.",
    )
    for at, code in ((0, 1), (1, 3)):
        rule = judge(unsafe, metric="agent_behavior_failure", turn=at)
        spoilt = review("tea", "hindered", "I never wanted a haircut")
        done = run(project, {"tea": {}}, [*user("tea", *messages), spoilt, rule, fine],
                   "metrics: [agent_behavior_failure]\n")  # fmt: skip
        assert done.code == code, (at, done.all)
        sample = project.sample("tea")
        assert [finding["turn"] for finding in sample["findings"]] == [0] * (code == 1)
        assert "simulator" in sample["reason"]


def test_a_review_holds_when_the_run_is_scored_again(reviewed: tuple[Project, Done]) -> None:
    """No user is asked anew, so none is reviewed anew: the kept review decides as it did then."""
    project, _ = reviewed
    again = project.call("score", "latest", "--no-judge", "--report", "json=again.json")
    assert again.code == 1, again.all
    scored = json.loads((project.root / "again.json").read_text("utf-8"))
    samples = {s["id"]: s["samples"][0] for s in scored["scenarios"]}
    ends = {name: (sample["verdict"], sample["fault"]) for name, sample in samples.items()}
    assert ends == {name: expected for name, (*_, expected) in ROWS.items()}
    assert scored["summary"]["simulator"] == project.results()["summary"]["simulator"]
