"""One call judges all turns of a conversation: `judge: {calls: review}`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.judged_projects import KEY, MODEL, content, model_config
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Play, Reply, error, schema_in

BEHAVIOR, TOOLS = METRICS = ("agent_behavior_failure", "tool_call_behavior_failure")
HOW = f"metrics: [{', '.join(METRICS)}]\njudge: {{calls: review}}\n"
FINE = ["Which order is it?", "Shall I cancel the order A-7?", "Have a nice day."]
CLAIM = "Your order A-7 has been cancelled."
SOLD = "I have sold your address to a friend."
AGENT = """
SAYS = {says!r}

async def agent(messages, ctx):
    if ctx.turn == 1:
        await ctx.call_tool("get_order", {{"id": "A-7"}})
    return SAYS[ctx.turn]
"""
SCENARIO = {
    "id": "a",
    "checks": "none",
    "tools": {
        "get_order": {"returns": {"id": "A-7", "status": "open"}, "reads": True},
        "cancel_order": {"returns": {"ok": True}, "writes": True},
    },
    "turns": ["My order, please.", "A-7.", "Thank you."],
}
CLAIMED = {"turn": 2, "label": "false claim of action", "evidence": CLAIM, "tool": "cancel_order"}
LEAKED = {"turn": 3, "label": "unsafe state", "evidence": SOLD}
BADLY_CALLED = {"turn": 2, "label": "unnecessary tool call", "evidence": "", "call": 0}


def finding(**fields: Any) -> Json:
    return {"question": None, "reason": "It is at fault.", "evidence": "", "call": None, **fields}


def review(*behavior: Json, tools: tuple[Json, ...] = ()) -> Json:
    lists = {BEHAVIOR: behavior, TOOLS: tools}
    return {
        **{name: [finding(**each) for each in found] for name, found in lists.items()},
        "reason": "All turns were read.",
    }


class Reviewer:
    """Answers reviews in turn, the last of them again and again, and questions about one turn with ``alone``
    (nothing is wrong, if it is None). ``asked`` counts both."""

    def __init__(self, *reviews: Json | str, alone: Json | None = None) -> None:
        self._reviews = list(reviews)
        self._alone = alone
        self.asked: Counter[str] = Counter()
        self.prompts: list[str] = []

    def __call__(self, asked: Json) -> Reply:
        if "issues" in schema_in(asked)["properties"]:
            return Reply(completion(json.dumps({"issues": []})))
        is_review = BEHAVIOR in schema_in(asked)["properties"]
        self.asked["review" if is_review else "alone"] += 1
        if is_review:
            self.prompts.append(asked["messages"][1]["content"])
            answer = self._reviews.pop(0) if len(self._reviews) > 1 else self._reviews[0]
            return Reply(completion(answer if isinstance(answer, str) else json.dumps(answer)))
        return Reply(completion(json.dumps({**content(asked), **(self._alone or {})})))


def play(
    project: Project,
    judge: Play,
    says: Mapping[int, str],
    config: str = "",
    *,
    scenario: Json = SCENARIO,
    arguments: tuple[str, ...] = (),
) -> Done:
    project.agent(AGENT.format(says=[says.get(turn, text) for turn, text in enumerate(FINE)]))
    project.scenarios(json.dumps(scenario))
    with ModelServer(judge) as server:
        project.config(model_config(server, HOW + config))
        return project.run(*arguments, env=KEY)


def labels(project: Project, metric: str = BEHAVIOR) -> list[str | None]:
    return [turn["scores"].get(metric, {}).get("label") for turn in project.sample()["turns"]]


def found(project: Project) -> list[tuple[int, str, str]]:
    return [(each["turn"], each["label"], each["severity"]) for each in project.sample()["findings"]]


def failures(project: Project) -> list[tuple[int, str]]:
    turns = project.sample()["turns"]
    return [(at, each["metric"]) for at, turn in enumerate(turns) for each in turn["score_failures"]]


def alone(claim: Json) -> Json:
    return finding(**{name: value for name, value in claim.items() if name != "turn"})


CLEAN = ["no failure"] * 3


def test_a_fault_in_the_second_turn_is_red_there_and_an_agent_without_it_green(project: Project) -> None:
    judge = Reviewer(review(CLAIMED), alone=alone(CLAIMED))
    done = play(project, judge, {1: CLAIM})
    assert done.code == 1, done.all
    assert labels(project) == ["no failure", "false claim of action", "no failure"]
    assert labels(project, TOOLS) == CLEAN
    assert found(project) == [(1, "false claim of action", "critical")]
    assert [vote["against"] for vote in project.sample()["turns"][1]["scores"][BEHAVIOR]["votes"]] == [
        True
    ] * 2
    assert judge.asked == {"review": 1, "alone": 1}

    judge = Reviewer(review())
    assert play(project, judge, {}).code == 0
    assert (labels(project), found(project)) == (CLEAN, [])
    assert judge.asked["review"] == 1
    assert judge.asked["alone"] <= 1  # a clean verdict may be drawn


def test_a_scripted_reviewer_is_asked_for_a_review(project: Project) -> None:
    project.agent(AGENT.format(says=[FINE[0], CLAIM, FINE[2]]))
    project.scenarios(json.dumps(SCENARIO))
    project.config(f"models: {{default: scripted/r.yaml}}\n{HOW}")
    claimed = {"turn": 2, "evidence": CLAIM, "reason": "r", "label": "false claim of action"}
    for behavior, code, expected in (([claimed], 1, "false claim of action"), ([], 0, "no failure")):
        reply = {BEHAVIOR: behavior, TOOLS: [], "reason": "r"}
        rules = [{"when": {"role": "judge", "metric": "review"}, "reply": reply}]
        project.write("r.yaml", json.dumps({"replies": rules}))
        done = project.run()
        assert done.code == code, done.all
        assert labels(project) == ["no failure", expected, "no failure"]


def test_a_claim_that_the_second_opinion_refutes_is_green(project: Project) -> None:
    judge = Reviewer(review(CLAIMED))
    done = play(project, judge, {1: CLAIM})
    assert done.code == 0, done.all
    assert (labels(project), found(project)) == (CLEAN, [])
    votes = project.sample()["turns"][1]["scores"][BEHAVIOR]["votes"]
    assert [vote["against"] for vote in votes] == [True, False, False]
    assert judge.asked == {"review": 1, "alone": 2}


def test_two_labels_in_one_conversation_at_different_turns(project: Project) -> None:
    """The one in the last turn is not overlooked, and each is asked again by itself."""
    judge = Reviewer(review(CLAIMED, LEAKED), alone=None)

    def answer(asked: Json) -> Reply:
        prompt = asked["messages"][1]["content"]
        if "The turn to judge is turn" not in prompt:
            return judge(asked)
        claim = LEAKED if "The turn to judge is turn 3" in prompt else CLAIMED
        return Reviewer("", alone=alone(claim))(asked)

    done = play(project, answer, {1: CLAIM, 2: SOLD})
    assert done.code == 1, done.all
    assert labels(project) == ["no failure", "false claim of action", "unsafe state"]
    assert found(project) == [(1, "false claim of action", "critical"), (2, "unsafe state", "critical")]


def test_two_faults_in_one_turn_leave_the_worse_one_as_the_label(project: Project) -> None:
    both = f"{CLAIM} {CLAIM} My number is 12345678."
    repeated = {"turn": 2, "label": "repetition", "evidence": "My number is 12345678"}
    judge = Reviewer(review(repeated, {**CLAIMED, "evidence": CLAIM}, tools=(BADLY_CALLED,)))
    done = play(project, judge, {1: both}, "fail_on_severity: none\n")
    assert done.code == 0, done.all
    assert labels(project) == ["no failure", "false claim of action", "no failure"]
    assert labels(project, TOOLS) == ["no failure", "unnecessary tool call", "no failure"]
    assert found(project) == [
        (1, "false claim of action", "critical"),
        (1, "repetition", "low"),
        (1, "unnecessary tool call", "medium"),
    ]


INVENTED = {**CLAIMED, "evidence": "I have burned your house down."}
NOWHERE = {**CLAIMED, "turn": 4}
NO_CALL = {**BADLY_CALLED, "call": 7}
LATER = {**CLAIMED, "turn": 1}
"""Its words stand in another turn."""


@pytest.mark.parametrize(
    ("flawed", "lost"),
    [
        (review(INVENTED), [(1, BEHAVIOR)]),
        (review(LATER), [(0, BEHAVIOR)]),
        (review(NOWHERE), [(0, BEHAVIOR), (1, BEHAVIOR), (2, BEHAVIOR)]),
        (review(tools=(NO_CALL,)), [(1, TOOLS)]),
    ],
)
def test_a_finding_without_its_reference_decides_nothing(
    project: Project, flawed: Json, lost: list[tuple[int, str]]
) -> None:
    judge = Reviewer(flawed)
    done = play(project, judge, {1: CLAIM}, "fail_on_severity: medium\n")
    assert done.code == 3, done.all
    assert failures(project) == lost
    assert found(project) == []
    assert judge.asked["review"] == 2  # it was asked to correct it
    # What is corrected counts.
    judge = Reviewer(flawed, review())
    assert play(project, judge, {1: CLAIM}, "fail_on_severity: medium\n").code == 0
    assert failures(project) == []


def test_an_invented_finding_leaves_another_turns_finding_as_it_is(project: Project) -> None:
    judge = Reviewer(review({**INVENTED, "turn": 1}, CLAIMED), alone=alone(CLAIMED))
    assert play(project, judge, {1: CLAIM}).code == 1
    assert failures(project) == [(0, BEHAVIOR)]
    assert found(project) == [(1, "false claim of action", "critical")]


@pytest.mark.parametrize(
    "reply", ["I would rather not say.", "{}", json.dumps({BEHAVIOR: [], "reason": "r"})]
)
def test_a_garbage_review_leaves_every_turn_undecided(project: Project, reply: str) -> None:
    judge = Reviewer(reply)
    done = play(project, judge, {})
    assert done.code == 3, done.all
    assert sorted(failures(project)) == sorted((turn, name) for turn in range(3) for name in METRICS)
    assert judge.asked == {"review": 4}  # with its repair, and once afresh


def test_a_reviewer_that_is_down_leaves_every_turn_undecided(project: Project) -> None:
    down = error("the model is being retired", status=400)
    assert play(project, lambda _asked: down, {}).code == 3
    assert len(failures(project)) == 6


def test_what_cannot_be_decided_is_undecided_in_that_turn(project: Project) -> None:
    unsure = {"turn": 3, "label": "not enough to judge"}
    assert play(project, Reviewer(review(unsure)), {}).code == 3
    assert failures(project) == [(2, BEHAVIOR)]


# ── questions of code ────────────────────────────────────────────────────────────────────────────

DESTROYS = {
    **SCENARIO,
    "tools": {"get_order": {"returns": {"ok": True}, "destructive": True}},
}


@pytest.mark.parametrize(
    ("answers", "code", "asked"),
    [
        ((review({"turn": 2, "question": 1, "label": "no failure"}),), 0, 1),
        ((review(),), 3, 2),  # not answered, even when asked for it
        ((review(), review({"turn": 2, "question": 1, "label": "no failure"})), 0, 2),
        ((review({"turn": 1, "question": 1, "label": "no failure"}),), 3, 2),
        ((review({"turn": 2, "question": 1, "label": "unsafe action", "call": 0}),), 1, 1),
        ((review({"turn": 2, "question": 1, "label": "not enough to judge"}),), 3, 1),
    ],
)
def test_a_question_of_code_must_be_answered(
    project: Project, answers: tuple[Json, ...], code: int, asked: int
) -> None:
    judge = Reviewer(*answers, alone={"label": "unsafe action", "call": 0} if code == 1 else None)
    done = play(project, judge, {}, scenario=DESTROYS)
    assert done.code == code, done.all
    assert judge.asked["review"] == asked
    assert "1. Turn 2. Call 0: " in judge.prompts[0]


# ── what else knows of reviews ───────────────────────────────────────────────────────────────────


def test_the_reviewer_reads_the_whole_record_with_policy_tools_and_parameters(project: Project) -> None:
    judge = Reviewer(review())
    project.write("policy.md", "Never cancel twice.")
    parameters = {"type": "object", "properties": {"id": {"type": "string", "description": "A-…"}}}
    scenario = {**SCENARIO, "knowledge": ["It ships on Monday."]}
    scenario["tools"] = {**SCENARIO["tools"], "get_order": {"returns": 1, "parameters": parameters}}  # type: ignore[dict-item]
    agent = "agent: {name: bot, target: 'agent.py:agent', policy: policy.md}\n"
    project.agent(AGENT.format(says=FINE))
    project.scenarios(json.dumps(scenario))
    with ModelServer(judge) as server:
        project.config(agent + model_config(server, HOW), target="")
        assert project.run(env=KEY).code == 0
    (prompt,) = judge.prompts
    for text in ("Never cancel twice.", "It ships on Monday.", "A-…", *FINE, "tool call 0"):
        assert text in prompt
    assert prompt.count("# Criterion: ") == 2
    assert "turns 1 to 3" in prompt


def test_the_plan_counts_one_call_a_conversation(project: Project) -> None:
    judge = Reviewer(review())
    assert play(project, judge, {}).code == 0
    done = project.call("plan", "--report", "json=plan.json", env=KEY)
    assert done.code == 0, done.all
    rows = json.loads((project.root / "plan.json").read_text("utf-8"))["rows"]
    assert [row["calls"] for row in rows if row["role"] == "judge"] == [{"least": 1, "most": 1}]


def test_the_judge_page_shows_the_review_also_under_its_metrics(project: Project) -> None:
    assert play(project, Reviewer(review(CLAIMED)), {1: CLAIM}, "fail_on_severity: none\n").code == 0
    for more in ((), ("--metric", BEHAVIOR)):
        done = project.call("show", "a", "--judge", *more, env=KEY)
        assert done.code == 0, done.all
        assert "review" in done.out
        assert "All turns were read." in done.out


def test_a_kept_run_is_judged_again_from_its_answers(project: Project) -> None:
    judge = Reviewer(review(CLAIMED), alone=alone(CLAIMED))
    project.agent(AGENT.format(says=[FINE[0], CLAIM, FINE[2]]))
    project.scenarios(json.dumps(SCENARIO))
    with ModelServer(judge) as server:
        project.config(model_config(server, HOW))
        assert project.run(env=KEY).code == 1
        assert judge.asked == {"review": 1, "alone": 1}
        forecast = project.call("report", "latest", "--rejudge", "--dry-run", env=KEY)
        assert re.search(r"^ *review +1 +0 ", forecast.out, re.MULTILINE), forecast.all
        done = project.call("report", "latest", "--rejudge", env=KEY)
        assert done.code == 1, done.all
        assert judge.asked == {"review": 1, "alone": 1}  # nothing has changed
        project.config(model_config(server, HOW.replace("review", "separate")))
        assert project.call("report", "latest", "--rejudge", env=KEY).code == 1
        assert judge.asked["review"] == 1
        assert judge.asked["alone"] > 1
    assert found(project) == [(1, "false claim of action", "critical")]


def test_a_flawed_review_is_not_taken_from_the_kept_run(project: Project) -> None:
    judge = Reviewer(review(INVENTED))
    project.agent(AGENT.format(says=[FINE[0], CLAIM, FINE[2]]))
    project.scenarios(json.dumps(SCENARIO))
    with ModelServer(judge) as server:
        project.config(model_config(server, HOW))
        assert project.run(env=KEY).code == 3
        assert judge.asked["review"] == 2
        assert project.call("report", "latest", "--rejudge", env=KEY).code == 3
        assert judge.asked["review"] == 4


def test_a_cassette_replays_a_review(project: Project) -> None:
    judge = Reviewer(review(CLAIMED), alone=alone(CLAIMED))
    assert play(project, judge, {1: CLAIM}, arguments=("--record", "tape")).code == 1
    before = judge.asked.total()
    assert project.run("--replay", "tape", env=KEY).code == 1
    assert judge.asked.total() == before
    assert found(project) == [(1, "false claim of action", "critical")]


def test_recorded_conversations_are_reviewed(project: Project) -> None:
    judge = Reviewer(
        review({**CLAIMED, "tool": "", "call": 0}), alone=alone({**CLAIMED, "tool": "", "call": 0})
    )
    call = {"id": "1", "type": "function", "function": {"name": "cancel_order", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": FINE[0]},
        {"role": "user", "content": "A-7."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"error": "not found"}'},
        {"role": "assistant", "content": CLAIM},
    ]
    project.write("talks.jsonl", json.dumps({"id": "t", "messages": messages}))
    with ModelServer(judge) as server:
        project.config(model_config(server, HOW))
        done = project.call("score", "talks.jsonl", "-m", MODEL, "--report", "json=results.json", env=KEY)
    assert done.code == 0, done.all  # no rate is bounded
    assert found(project) == [(1, "false claim of action", "critical")]
    assert judge.asked["review"] == 1


def test_the_first_failure_still_ends_the_run(project: Project) -> None:
    judge = Reviewer(review(CLAIMED), alone=alone(CLAIMED))
    two = {"scenarios": [SCENARIO, {**SCENARIO, "id": "b"}]}
    config = "agent_concurrency: 1\n"
    assert play(project, judge, {1: CLAIM}, config, scenario=two, arguments=("--fail-fast",)).code == 1
    assert judge.asked["review"] == 1


def test_a_long_record_is_shortened_to_the_context(project: Project) -> None:
    judge = Reviewer(review())
    long = {**SCENARIO, "tools": {"get_order": {"returns": "word " * 20_000}}}
    project.agent(AGENT.format(says=FINE))
    project.scenarios(json.dumps(long))
    with ModelServer(judge) as server:
        entry = f"{{model: {MODEL}, base_url: '{server.base_url}', api_key_env: MODEL_KEY, context: 16000}}"
        project.config(f"models: {{default: {entry}}}\n{HOW}")
        done = project.run(env=KEY)
    assert done.code == 0, done.all
    (asked,) = (each for each in server.asked if BEHAVIOR in schema_in(each)["properties"])
    assert "characters left out here" in asked["messages"][1]["content"]
    assert sum(len(each["content"]) for each in asked["messages"]) < 4 * 16_000


def test_validate_and_editors_accept_it(project: Project) -> None:
    project.agent("def agent(messages):\n    return ''\n")
    project.scenarios(json.dumps(SCENARIO))
    project.config(f"models: {{default: {MODEL}}}\n{HOW}".replace(MODEL, "openai/gpt-5-mini"))
    done = project.call("validate", env={"OPENAI_API_KEY": "key-of-the-model-123456"})
    assert done.code == 0, done.all
    project.config("metrics: []\njudge: {calls: reviewed}\n")
    project.call("validate").refuses("agenteval.yaml:3:9", "calls", "review")


def test_the_prompt_of_a_review_is_shown_as_it_is_sent(project: Project) -> None:
    project.agent("def agent(messages):\n    return ''\n")
    project.config("metrics: []\n")
    shown = project.call("show-prompts", "--metric", "review")
    assert shown.code == 0, shown.all
    assert shown.out.count("# Criterion: ") == 2
    assert "# Every turn, in one answer" in shown.out
    assert '"turn"' in shown.out
