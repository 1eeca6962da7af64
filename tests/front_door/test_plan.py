"""``agenteval plan``: what it predicts is what a run of the same suite asks of a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.planning.forecast import Range
from tests.support.judged_projects import (
    KEY,
    MODEL,
    contented,
    counted,
    judged_project,
    model_config,
    scenario,
    usage_of,
)
from tests.support.kit import Project
from tests.support.model_servers import Json, ModelServer

TOOLS = {"look": {"returns": "on Tuesday"}}
SCRIPTED = [
    scenario("plain", "One.", "Two.", "Three.", tools=TOOLS),
    scenario("goal", "One.", goal="A lamp.", tools=TOOLS, epochs=3),
    {
        "id": "criteria",
        "name": "criteria",
        "tools": TOOLS,
        "turns": [{"user": "One.", "expect": {"criteria": ["Is polite.", "Is short."]}}, "Two."],
        "expect": {"criteria": ["Ends well."]},
    },
]
CASE = {"cases": [{"id": "C-1", "input": "What?", "tools": TOOLS}]}


def plan(project: Project, *flags: str, env: dict[str, str] | None = None) -> Json:
    done = project.call("plan", "--report", "json=plan.json", *flags, env=env)
    assert done.code == 0, done.all
    made: Json = json.loads((project.root / "plan.json").read_text("utf-8"))
    return made


def calls(made: Json) -> dict[str, tuple[int, int | None]]:
    return {row["role"]: (row["calls"]["least"], row["calls"]["most"]) for row in made["rows"]}


def setup(project: Project, server: ModelServer, scenarios: Any, more: str = "") -> None:
    judged_project(project, scenarios, model_config(server, more))


# ── exact where it is written down ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("metrics", "flags"),
    [
        ("all", ()),
        ("[helpfulness, goal_completion]", ()),
        ("[]", ()),
        ("all", ("--epochs", "2")),
        ("all", ("-s", "criteria")),
        ("all", ("--metric", "faithfulness")),
        ("all", ("--no-judge",)),
    ],
)
def test_calls_of_a_scripted_suite_are_exact(project: Project, metrics: str, flags: tuple[str, ...]) -> None:
    with ModelServer(contented()) as server:
        setup(project, server, SCRIPTED, f"metrics: {metrics}\n")
        project.scenarios(json.dumps(CASE), "scenarios/cases.yaml")
        made = plan(project, *flags)
        assert not server.asked
        done = project.run(*flags, env=KEY)
        asked = counted(server)
    assert done.code in (0, 3), done.all
    assert sum(made["samples"].values()) == 2 * len(_samples(project))
    counts = calls(made)
    again = project.results()["summary"]["second_opinions"]
    once = asked.get("judge", 0) - (again["usage"]["calls"] if again else 0)  # drawn by lot
    assert counts.get("judge", (0, 0)) == (once, once)
    assert "user" not in counts
    assert counts["agent"][0] == usage_of(project)["agent"]["calls"]
    assert made["turns"] == {"least": counts["agent"][0], "most": counts["agent"][0]}
    assert asked.get("dedup", 0) == 0 == counts.get("dedup", (0, 0))[0]


def _samples(project: Project) -> list[Json]:
    return [sample for each in project.results()["scenarios"] for sample in each["samples"]]


def test_a_metric_that_is_asked_where_agents_use_tools_of_their_own(project: Project) -> None:
    """No tool is declared: whether ``tool_call_behavior_failure`` is judged is for the agent to decide."""
    listed = """
    def agent(messages, ctx):
        call = {"id": "x", "function": {"name": "mine", "arguments": "{}"}}
        return [{"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "x", "content": "1"},
                {"role": "assistant", "content": "done"}]
    """
    suite = [scenario("a", "One.", "Two.")]
    with ModelServer(contented()) as server:
        setup(project, server, suite, "metrics: all\njudge: {corroborate: false}\n")
        least, most = calls(plan(project))["judge"]
        project.run(env=KEY)
        plain = counted(server)["judge"]
        project.agent(listed)
        project.run(env=KEY)
        own = counted(server)["judge"] - plain
    assert (least, most) == (plain, own)
    assert most == least + 2
    assert any("tools" in note for note in plan(project)["notes"])


def test_agents_and_compare_multiply(project: Project) -> None:
    with ModelServer(contented()) as server:
        more = "metrics: [helpfulness]\ncompare: [{name: other, policy: Be brief.}]\n"
        setup(project, server, SCRIPTED[:1], more)
        made = plan(project)
        project.run(env=KEY)
        assert calls(made)["judge"] == (6, 6) == (counted(server)["judge"],) * 2
    assert [row["name"] for row in made["rows"]] == ["bot", "other", MODEL, MODEL]


# ── a range where a user is simulated ────────────────────────────────────────────────────────────


def test_simulated_conversations_are_a_range_and_runs_are_within(project: Project) -> None:
    mixed = scenario("mixed", "Hello.", {"simulate": 3}, "Bye.", {"simulate": 4}, goal="A lamp.")
    suite = [scenario("sim", goal="A lamp."), {**mixed, "max_turns": 5}]
    with ModelServer(contented()) as server:
        setup(project, server, suite, "metrics: [helpfulness, goal_completion]\nmax_turns: 4\n")
        made = plan(project)
        project.run(env=KEY)
        asked = counted(server)
    counts = calls(made)
    # Three epochs of each. sim: 1 to 4 turns. mixed: two written, and 1 to 3 and 1 to 2 simulated.
    assert made["turns"] == {"least": 3 * 1 + 3 * 4, "most": 3 * 4 + 3 * 7}
    assert counts["user"] == (3 * 1 + 3 * 2, 3 * 4 + 3 * 5)
    assert counts["judge"] == (15 + 6, 33 + 6 + 6), "each user may be reviewed"
    for role in ("user", "judge"):
        least, most = counts[role]
        assert most is not None
        assert least <= asked[role] <= most


# ── what is asked again ──────────────────────────────────────────────────────────────────────────


def rows(made: Json) -> dict[str, Json]:
    return {row["role"]: row for row in made["rows"]}


@pytest.mark.parametrize(
    ("more", "again"),
    [
        # A tenth of 16 labels and 3 goals; a twentieth of 8 labels that may be critical, 3 goals, 3 criteria.
        ("metrics: [agent_behavior_failure, tool_call_behavior_failure, goal_completion]\n", (3, 3)),
        ("metrics: [helpfulness]\n", (1, 1)),  # three criteria alone
        ("metrics: [helpfulness]\nthresholds: {helpfulness: 3}\n", (1, 1)),
        ("metrics: [helpfulness]\njudge: {corroborate: false}\n", None),
    ],
)
def test_what_is_asked_again_is_estimated_in_a_row_of_its_own(
    project: Project, more: str, again: tuple[int, int] | None
) -> None:
    judged_project(project, SCRIPTED, f"models: {{default: openai/m}}\n{more}")
    made = plan(project)
    by_role = rows(made)
    note = [each for each in made["notes"] if each.startswith("judge again ")]
    assert calls(made).get("judge again") == again
    assert len(note) == (again is not None)
    assert not by_role["judge"]["estimated"]
    if again:
        row = by_role["judge again"]
        assert row["estimated"]
        assert row["input_tokens"]["least"] > 200 * again[0]
        assert f"judge again  openai/m     ≈{again[0]}" in project.call("plan").out


def test_scripted_judges_are_not_asked_again(project: Project) -> None:
    judged_project(project, SCRIPTED, "models: {default: scripted/replies.yaml}\nmetrics: all\n")
    project.write(
        "replies.yaml", "replies: [{when: {role: judge}, reply: {evidence: '', reason: r, label: pass}}]"
    )
    assert "judge again" not in rows(plan(project))


def test_the_estimate_is_about_what_a_run_of_many_asks(project: Project) -> None:
    suite = [scenario("many", "One.", "Two.", goal="A lamp.", epochs=12)]
    with ModelServer(contented()) as server:
        more = "metrics: [agent_behavior_failure, goal_completion]\nfail_on_severity: none\n"
        setup(project, server, suite, f"{more}thresholds: {{goal_completion: 0.5}}\n")
        by_role = rows(plan(project))
        project.run(env=KEY)
        asked = counted(server)["judge"]
    least = by_role["judge"]["calls"]["least"]
    assert least == 36
    assert 1 <= asked - least <= 2 * by_role["judge again"]["calls"]["most"]


# ── tokens and money ─────────────────────────────────────────────────────────────────────────────


def test_tokens_are_those_of_the_prompts_as_they_are_sent(project: Project) -> None:
    """The forecast does not know the answers; the agent here answers about as long as is taken."""
    agent = f"def agent(messages, ctx):\n    return {'text ' * 100!r}\n"
    with ModelServer(contented()) as server:
        judged_project(project, SCRIPTED[:2], model_config(server, "metrics: all\n"), agent)
        row = next(row for row in plan(project)["rows"] if row["role"] == "judge")
        project.run(env=KEY)
        texts = ["".join(message["content"] for message in asked["messages"]) for asked in server.asked]
    sent = sum(len(text) for text in texts) / 4
    assert row["input_tokens"]["least"] == pytest.approx(sent, rel=0.2)


def test_the_price_is_from_the_table_or_unknown(project: Project) -> None:
    with ModelServer(contented()) as server:
        setup(project, server, SCRIPTED, "metrics: [helpfulness]\n")
        unknown = plan(project)
        assert {row["cost"] for row in unknown["rows"]} == {None}
        shown = " ".join(project.call("plan").out.split())
        assert all(fact in shown for fact in ("cost: unknown", f"bot, {MODEL}", "prices"))
        prices = f"prices: {{{MODEL}: {{input: 2, output: 10}}, bot: {{input: 0, output: 0}}}}\n"
        setup(project, server, SCRIPTED, f"metrics: [helpfulness]\n{prices}")
        known = plan(project)
    for row in known["rows"]:
        price = (0, 0) if row["name"] == "bot" else (2, 10)
        tokens = (row["input_tokens"]["least"], row["output_tokens"]["least"])
        expected = sum(p * t for p, t in zip(price, tokens, strict=True)) / 1e6
        assert row["cost"]["least"] == pytest.approx(expected)


def test_a_budget_that_cannot_be_kept_is_noted(project: Project) -> None:
    with ModelServer(contented()) as server:
        setup(project, server, SCRIPTED, "metrics: [helpfulness]\nbudget: {max_calls: 5}\n")
        (note,) = (note for note in plan(project)["notes"] if "budget" in note)
    assert all(fact in note for fact in ("budget.max_calls", "5", "19"))


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_no_key_and_no_server_is_needed(project: Project) -> None:
    judged_project(project, SCRIPTED, "models: {default: openai/gpt-5-mini}\n")
    done = project.call("plan")
    assert done.code == 0, done.all
    assert "openai/gpt-5-mini" in done.out
    assert not (project.root / ".agenteval").exists()


def test_the_table_marks_estimates_and_ranges(project: Project) -> None:
    judged_project(project, [scenario("sim", goal="A lamp.")], "models: {default: openai/m}\nmax_turns: 4\n")
    done = project.call("plan")
    head, *_ = done.out.splitlines()
    assert all(fact in head for fact in ("3 samples", "1 scenario", "3–12 turns"))
    cells = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    assert cells["agent"].split()[2] == "3–12"
    assert cells["user"].split()[2] == "3–12"
    assert cells["judge"].split()[3].startswith("≈")
    assert "gates" in done.out  # how often they are wrong


@pytest.mark.parametrize(
    ("flags", "facts", "code"),
    [
        (("--report", "junit"), ("junit", "json"), 2),
        (("-s", "nothing"), ("nothing", "3 scenarios"), 5),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(
    project: Project, flags: tuple[str, ...], facts: tuple[str, ...], code: int
) -> None:
    judged_project(project, SCRIPTED, "metrics: []\n")
    project.call("plan", *flags).refuses("agenteval", *facts, code=code)


def test_ranges_add_up_and_an_open_end_stays_open() -> None:
    assert Range(1, 2) + Range(3, 4) == Range(4, 6)
    assert (Range(1, None) + Range(3, 4)).most is None
    assert Range(2, 2).is_exact
    assert not Range(0, None).is_exact
