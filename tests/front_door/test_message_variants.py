"""``run --variants``: user messages are altered, and calls and end state must be as without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cut_runs import cut_after
from tests.support.kit import Project, failed_checks
from tests.support.scripted import script, user, verdicts

SHOP = """
    import re, unicodedata

    async def agent(messages, ctx):
        text = messages[-1]["content"]
        PREPARE
        order = re.search(r"ORD-\\d+", text)
        if order is None:
            return "Which order is it about?"
        if "Cancel" in text:
            await ctx.call_tool("cancel_order", {"id": order[0]})
            return f"{order[0]} is cancelled."
        await ctx.call_tool("get_order", {"id": order[0]})
        return f"{order[0]} is on its way."
"""
CASE_SENSITIVE = SHOP.replace("PREPARE", "")
ROBUST = SHOP.replace("PREPARE", 'text = unicodedata.normalize("NFKC", text)').replace(
    'if "Cancel" in text', 'if re.search("canc?e?e?l", text.lower())'
)
SCENARIO: dict[str, Any] = {
    "id": "shop",
    "state": {"tables": {"orders": [{"id": "ORD-42", "status": "new"}, {"id": "ORD-7", "status": "new"}]}},
    "tools": {
        "get_order": {"reads": True, "sql": "SELECT * FROM orders WHERE id = :id", "one": True},
        "cancel_order": {
            "sql": "UPDATE orders SET status = 'cancelled' WHERE id = :id",
            "returns": {"ok": True},
        },
    },
    "turns": ["Cancel my order ORD-42 please. I do not need the lamp."],
    "expect": {"output": {"contains": ["ORD-42"]}},
}
EVERY_PACK = "typos,case,noise,reordered,empty,long,unicode"


def set_up(project: Project, agent: str, config: str = "", **scenario: Any) -> None:
    project.agent(agent)
    project.config(config)
    project.scenarios(json.dumps({**SCENARIO, **scenario}))


def variant_check(project: Project, scenario: str) -> dict[str, Any]:
    (check,) = (each for each in project.sample(scenario)["checks"] if each["name"] == "variant")
    found: dict[str, Any] = check
    return found


def variants(project: Project) -> dict[str, dict[str, Any]]:
    return {row["variant"]: row for row in project.results()["summary"]["variants"]}


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_that_compares_letters_with_their_case_is_red_with_the_missing_call(
    project: Project,
) -> None:
    set_up(project, CASE_SENSITIVE)
    done = project.run("--variants", "case")
    assert done.code == 1
    assert verdicts(project) == {"shop": "passed", "shop~case": "failed"}
    assert failed_checks(project.sample("shop~case")) == {(None, "variant")}
    assert "missing: cancel_order" in done.out
    assert "shop~case" in done.out
    detail = variant_check(project, "shop~case")["detail"]
    assert 'additional: get_order({"id": "ORD-42"})' in detail
    assert 'orders status "new" → "cancelled" in {"id": "ORD-42"}' in detail
    assert "written: Cancel my order" in detail
    turn = project.sample("shop~case")["turns"][0]
    assert turn["user"].lower() == turn["user_wrote"].lower()
    assert turn["user"] != turn["user_wrote"]


def test_a_robust_agent_is_green_with_every_pack(project: Project) -> None:
    set_up(project, ROBUST)
    done = project.run("--variants", EVERY_PACK, "--report", "markdown=m.md", "--report", "html=h.html")
    assert done.code == 0, done.all
    rows = variants(project)
    assert list(rows) == EVERY_PACK.split(",")
    assert {(row["altered"], row["same"], row["different"]) for row in rows.values()} == {(1, 1, 0)}
    assert "Variants of messages" in done.out
    assert all(
        "Variants of messages" in (project.root / name).read_text("utf-8") for name in ("m.md", "h.html")
    )


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        (CASE_SENSITIVE, 0),
        (CASE_SENSITIVE.replace("text = ", "text = messages[-1]['content'].split('.')[0] #", 1), 1),
    ],
    ids=["whole", "first-sentence"],
)
def test_an_agent_that_reads_only_the_first_sentence_is_red_when_sentences_change_places(
    project: Project, agent: str, code: int
) -> None:
    set_up(project, agent)
    assert project.run("--variants", "reordered").code == code
    assert verdicts(project)["shop~reordered"] == ("failed" if code else "passed")


ON_EMPTY = """
    async def agent(messages, ctx):
        if not messages[-1]["content"].strip():
            ACT
            return "What can I do for you?"
        return "ORD-42"
"""


@pytest.mark.parametrize(
    ("act", "code", "said"),
    [
        ("pass", 0, "no call that writes"),
        ("await ctx.call_tool('get_order', {'id': 'ORD-7'})", 0, "no call that writes"),
        ("await ctx.call_tool('cancel_order', {'id': 'ORD-7'})", 1, "cancel_order"),
        ("return ''", 1, ""),
    ],
)
def test_an_empty_message_asks_for_an_answer_and_no_call_that_writes(
    project: Project, act: str, code: int, said: str
) -> None:
    set_up(project, ON_EMPTY.replace("ACT", "ctx.tools\n            " + act))
    done = project.run("--variants", "empty")
    assert done.code == code, done.all
    assert said in variant_check(project, "shop~empty")["detail"]
    assert verdicts(project)["shop"] == "passed"


def test_whether_an_unknown_tool_writes_is_not_decided(project: Project) -> None:
    agent = ON_EMPTY.replace("ACT", "await ctx.call_tool('go', {})")
    set_up(project, agent, state=None, tools={"go": {"returns": 1}})
    assert project.run("--variants", "empty").code == 3
    assert "`reads: true`" in variant_check(project, "shop~empty")["detail"]
    set_up(project, agent, state=None, tools={"go": {"returns": 1, "reads": True}})
    assert project.run("--variants", "empty").code == 0


def test_one_equal_epoch_is_enough(project: Project) -> None:
    """The second plain epoch looks the order up first, and so does the first altered one."""
    set_up(
        project,
        """
        async def agent(messages, ctx):
            altered = "Cancel" not in messages[-1]["content"]
            if altered != bool(ctx.epoch):
                await ctx.call_tool("get_order", {"id": "ORD-42"})
            await ctx.call_tool("cancel_order", {"id": "ORD-42"})
            return "ORD-42"
        """,
        turns=["Cancel my order ORD-42."],
    )
    assert project.run("--variants", "case", "--epochs", "2").code == 0
    assert project.run("--variants", "case", "--epochs", "1").code == 1


def test_an_argument_that_is_the_message_counts_as_the_message(project: Project) -> None:
    agent = """
        async def agent(messages, ctx):
            await ctx.call_tool("save_note", {"text": "User: " + messages[-1]["content"].strip()COPY})
            return "ORD-42"
    """
    tools = {"save_note": {"returns": {"ok": True}}}
    set_up(project, agent.replace("COPY", ""), state=None, tools=tools)
    assert project.run("--variants", "typos,case,noise,long,unicode").code == 0
    set_up(project, agent.replace("COPY", "[:9]"), state=None, tools=tools)
    assert project.run("--variants", "long").code == 1


def test_values_of_the_scenario_stay_as_they_are(project: Project) -> None:
    set_up(
        project,
        """
        async def agent(messages, ctx):
            await ctx.call_tool("find", {"city": messages[-1]["content"].split()[-1].strip(".")})
            return "ok"
        """,
        state=None,
        tools={"find": {"returns": {"ok": True}}},
        turns=["please find something in Lisbon."],
        expect={"tool_calls": {"calls": [{"name": "find", "args": {"city": "Lisbon"}}]}},
    )
    assert project.run("--variants", "case").code == 0
    assert "Lisbon" in project.sample("shop~case")["turns"][0]["user"]


def test_a_time_in_the_state_is_no_difference(project: Project) -> None:
    agent = """
        async def agent(messages, ctx):
            await ctx.call_tool("save", {})
            return "ok"
    """
    tools = {"save": {"writes": True, "sql": "INSERT INTO log VALUES (datetime('now', 'DAYS'))"}}
    set_up(project, agent, tools=tools, expect={}, checks="none", state={"schema": "log.sql"})
    project.write("scenarios/log.sql", "CREATE TABLE log (at TEXT);")
    text = (project.root / "scenarios/suite.yaml").read_text("utf-8")
    project.scenarios(text.replace("DAYS", "+2 days"))
    assert project.run("--variants", "case").code == 0


# ── what is not decided ──────────────────────────────────────────────────────────────────────────


def test_calls_that_are_not_seen_leave_the_comparison_open(project: Project) -> None:
    set_up(project, "def agent(messages):\n    return 'ORD-42'\n", state=None, tools={})
    done = project.run("--variants", "case")
    assert done.code == 3
    assert variant_check(project, "shop~case")["passed"] is None
    assert "calls: all" in variant_check(project, "shop~case")["detail"]
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent', calls: all}\nmetrics: []\n")
    assert project.run("--variants", "case").code == 0


def test_nothing_is_compared_with_conversations_that_were_lost(project: Project) -> None:
    set_up(
        project,
        """
        async def agent(messages, ctx):
            if "Cancel" in messages[-1]["content"]:
                raise ConnectionError("away")
            await ctx.call_tool("get_order", {"id": "ORD-42"})
            return "ORD-42"
        """,
    )
    assert project.run("--variants", "case").code != 0
    check = variant_check(project, "shop~case")
    assert check["passed"] is None
    assert "no conversation of 'shop'" in check["detail"]


def test_a_conversation_in_which_nothing_was_altered_says_nothing(project: Project) -> None:
    listed = [{**SCENARIO, "id": "one", "turns": ["Cancel ORD-42."]}, {**SCENARIO, "id": "two"}]
    set_up(project, ROBUST)
    project.scenarios(json.dumps({"scenarios": listed}))
    assert project.run("--variants", "reordered").code == 0
    row = variants(project)["reordered"]
    assert (row["conversations"], row["altered"], row["same"]) == (2, 1, 1)
    check = variant_check(project, "one~reordered")
    assert (check["passed"], check["arose"]) == (True, False)
    assert "not altered" in check["detail"]
    assert "user_wrote" not in project.sample("one~reordered")["turns"][0]


# ── simulated users ──────────────────────────────────────────────────────────────────────────────


def test_the_messages_of_a_simulated_user_are_altered_and_it_does_not_notice(project: Project) -> None:
    project.agent(ROBUST)
    project.config("models: {default: scripted/replies.yaml}\nmetrics: []\nepochs: 1\n")
    more = {key: value for key, value in SCENARIO.items() if key != "turns"}
    project.scenarios(
        json.dumps({**more, "goal": "Cancel the order.", "knowledge": ["The order is ORD-42."]})
    )
    said = ["Cancel my order ORD-42.", "Please tell me about ORD-42."]
    rules = [
        user(name, turn, text, done=turn == 1)
        for name in ("shop", "shop~case")
        for turn, text in enumerate(said)
    ]
    script(project, *rules)
    done = project.run("--variants", "case")
    assert verdicts(project) == {"shop": "passed", "shop~case": "passed"}, done.all
    turns = project.sample("shop~case")["turns"]
    assert [turn["user_wrote"] for turn in turns] == said
    assert [turn["user"].casefold() for turn in turns] == [text.casefold() for text in said]


# ── paraphrases ──────────────────────────────────────────────────────────────────────────────────

PARAPHRASES = """
    paraphrases:
      shop:
        - Please take back what I bought as ORD-42.
        - [Cancel ORD-42 for me.]
"""


def test_each_paraphrase_is_a_scenario(project: Project) -> None:
    set_up(project, CASE_SENSITIVE)
    project.write("mine.yaml", PARAPHRASES)
    done = project.run("--variants", "mine.yaml")
    assert done.code == 1
    assert verdicts(project) == {
        "shop": "passed",
        "shop~paraphrase-1": "failed",
        "shop~paraphrase-2": "passed",
    }
    assert "--variants mine.yaml" in done.out
    assert variants(project)["paraphrase"]["conversations"] == 2


@pytest.mark.parametrize(
    ("text", "place", "facts"),
    [
        ("paraphrases: {shpo: [Cancel ORD-42.]}", "mine.yaml:1:15", ["shpo", "did you mean 'shop'"]),
        ("paraphrases: {shop: [Please cancel ORD-24 now.]}", "mine.yaml:1:22", ["ORD-42"]),
        ("paraphrases: {shop: [[Cancel ORD-42 now., Thanks.]]}", "mine.yaml:1:22", ["2 messages", "has 1"]),
        ("paraphrases: {shop: [7]}", "mine.yaml:1:22", ["expected a message"]),
        ("paraphrases: {shop: Cancel ORD-42 now.}", "mine.yaml:1:15", ["list"]),
        ("paraphrases: {free: [Cancel ORD-42 now.]}", "mine.yaml:1:15", ["simulated user"]),
        ("paraphrase: {shop: [Cancel ORD-42 now.]}", "mine.yaml:1:1", ["paraphrases"]),
        (
            "paraphrases: {shop: ['cancel my order ORD-42 please. I do not need the lamp.']}",
            "mine.yaml:1:22",
            ["the message itself"],
        ),
        ("paraphrases: {}", "mine.yaml:1:1", ["paraphrases", "empty"]),
        ("- Cancel ORD-42", "mine.yaml:1:1", ["paraphrases"]),
    ],
)
def test_mistakes_in_paraphrases_are_found_at_their_place(
    project: Project, text: str, place: str, facts: list[str]
) -> None:
    set_up(project, ROBUST)
    free = {"id": "free", "goal": "Cancel ORD-42.", "checks": "none"}
    project.scenarios(json.dumps({"scenarios": [SCENARIO, free]}))
    project.write("mine.yaml", text)
    project.run("--no-judge", "--variants", "mine.yaml").refuses(place, *facts)


def test_unknown_packs_and_scenarios_without_variants_are_refused(project: Project) -> None:
    set_up(project, ROBUST, turns=["ORD-42"])
    assert "did you mean 'typos'" in project.run("--variants", "tpyos").err
    done = project.run("--variants", "typos")
    assert (done.code, "no message of the selected scenarios" in done.err) == (2, True)
    assert project.run("--variants", "none.yaml").code == 2
    assert project.run("--variants", ",").code == 2
    set_up(project, ROBUST)
    assert project.run("--variants", "noise", "-s", "shop~nose").code == 5


# ── parts of runs ────────────────────────────────────────────────────────────────────────────────


def test_a_variant_is_run_with_the_scenario_that_it_is_compared_with(project: Project) -> None:
    set_up(project, CASE_SENSITIVE)
    assert project.run("--variants", "case,long").code == 1
    for selection in (("-s", "shop~case"), ("--last-failed",)):
        assert project.run("--variants", "case,long", *selection).code == 1
        assert verdicts(project) == {"shop": "passed", "shop~case": "failed"}
    set_up(project, ROBUST)
    assert project.run("--variants", "case,long", "--last-failed").code == 0
    assert verdicts(project) == {"shop": "passed", "shop~case": "passed"}


def test_faults_and_variants_are_separate_scenarios(project: Project) -> None:
    set_up(project, ROBUST)
    done = project.call("run", "--no-judge", "--faults", "timeouts", "--variants", "case")
    assert "Variants of messages" in done.out
    listed = project.call("plan", "--no-judge", "--faults", "timeouts", "--variants", "case")
    assert "6 samples" in listed.out, listed.out


def test_a_kept_run_is_decided_as_it_was(project: Project) -> None:
    set_up(project, CASE_SENSITIVE)
    assert project.run("--variants", "case").code == 1
    check = variant_check(project, "shop~case")
    assert project.call("report", "latest", "--report", "json=results.json").code == 1
    assert variant_check(project, "shop~case") == check
    assert "missing: cancel_order" in project.call("show", "shop~case").out
    journal = next((project.root / ".agenteval" / "runs").iterdir()) / "events.jsonl"
    done = project.call("score", str(journal), "--report", "json=results.json")
    assert done.code == 1, done.all
    assert variant_check(project, "shop~case")["detail"] == check["detail"]


def test_a_resumed_run_compares_with_what_was_played_before(project: Project) -> None:
    set_up(project, CASE_SENSITIVE, "agent_concurrency: 1\n")
    project.run("--variants", "case,long")
    whole = verdicts(project)
    cut_after(project, "sample_finished", 1)
    assert project.call("run", "--resume", "latest", "--report", "json=results.json").code == 1
    assert verdicts(project) == whole == {"shop": "passed", "shop~case": "failed", "shop~long": "passed"}


def test_a_variant_is_in_the_shard_of_its_scenario(project: Project) -> None:
    set_up(project, CASE_SENSITIVE)
    listed = [{**SCENARIO, "id": name} for name in ("one", "two")]
    project.scenarios(json.dumps({"scenarios": listed}))
    for number in ("1", "2"):
        assert project.run("--variants", "case,long", "--shard", f"{number}/2").code == 1
        ids = {each["id"] for each in project.results()["scenarios"] if each["samples"]}
        assert len({name.partition("~")[0] for name in ids}) == 1
        assert len(ids) == 3
        assert sum(verdict == "failed" for verdict in verdicts(project).values()) == 1
    runs = sorted(str(each) for each in (project.root / ".agenteval" / "runs").iterdir())
    assert project.call("merge", *runs, "--report", "json=results.json").code == 1
    assert sorted(verdicts(project).values()) == ["failed"] * 2 + ["passed"] * 4


NOTE = """
    async def agent(messages, ctx):
        await ctx.call_tool("note", {"text": messages[-1]["content"].strip()})
        return "Noted: teal."
"""


def test_a_value_of_several_words_stays_within_the_message(project: Project) -> None:
    tools = {"note": {"writes": True, "returns": "ok"}}
    calls = {"calls": [{"name": "note", "args": {"text": "please note the parcel is late today"}}]}
    set_up(
        project, NOTE, tools=tools, state=None, expect={"tool_calls": calls},
        turns=["please note the parcel is late today", "and hello there"],
    )  # fmt: skip
    done = project.run("--variants", "typos,case,noise,unicode", "--epochs", "3")
    assert done.code == 0, done.all


def test_a_text_that_the_answer_must_contain_is_a_value(project: Project) -> None:
    echo = "async def agent(messages, ctx):\n    return messages[-1]['content']"
    set_up(
        project, echo, tools={}, state=None,
        turns=["please paint it teal"], expect={"output": {"contains": ["teal"]}},
    )  # fmt: skip
    project.config("agent: {target: 'agent.py:agent', calls: all}\nmetrics: []\n", target="")
    done = project.run("--variants", "typos", "--epochs", "9")
    assert done.code == 0, done.all


def test_a_scripted_reply_for_a_scenario_is_one_for_its_variants(project: Project) -> None:
    rule = "{when: {role: user, scenario: shop}, reply: {message: Cancel ORD-42 now., done: true, reason: x}}"
    project.write("user.yaml", f"replies:\n  - {rule}\n")
    set_up(
        project, ROBUST, "metrics: []\nmodels: {user: scripted/user.yaml}\n",
        goal="Cancel it.", knowledge=["The order is ORD-42."], turns=None,
    )  # fmt: skip
    done = project.run("--variants", "case", "--epochs", "1")
    assert done.code == 0, done.all


def test_failed_variants_are_not_renamed_scenarios(project: Project) -> None:
    set_up(project, CASE_SENSITIVE)
    assert project.run("--variants", "case").code == 1
    done = project.run("--last-failed")
    assert done.code == 5
    assert "variants exist only with the `--faults` or `--variants` of the run that had them" in done.err
