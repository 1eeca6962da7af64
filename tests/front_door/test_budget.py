"""Prices, the ledger of a run, and budgets that stop it: against a real server that counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.config import BudgetConfig, Price
from agenteval.core.errors import BudgetError
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import (
    BudgetLedger,
    LedgerLine,
    cost_of,
    lines_of,
    price_of,
    price_usage,
    total_cost,
)
from tests.support.judged_projects import (
    KEY,
    MODEL,
    contented,
    judged_project,
    model_config,
    scenario,
    usage_of,
)
from tests.support.kit import Project
from tests.support.model_servers import ModelServer, answers
from tests.support.results import last_line

PRICE = Price(input=2.0, output=10.0, cached_input=0.5)
PRICES = f"prices: {{{MODEL}: {{input: 2.0, output: 10.0, cached_input: 0.5}}}}\n"


# ── prices ───────────────────────────────────────────────────────────────────────────────────────


def test_cost_counts_cached_input_at_its_own_price() -> None:
    usage = Usage(calls=1, input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert cost_of(usage, PRICE) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)
    assert cost_of(usage, Price(input=2.0, output=10.0)) == pytest.approx(2 + 1)


def test_an_unknown_price_stays_unknown_and_a_reported_cost_wins() -> None:
    usage = Usage(calls=1, input_tokens=10)
    assert price_usage(usage, None).cost is None
    assert price_usage(usage.model_copy(update={"cost": 0.5}), PRICE).cost == 0.5
    assert price_of("openai/x", {}) is None
    assert price_of("local-bot", {}) is None  # an agent's name, not a provider
    for free in ("scripted/replies.yaml", "local/model.gguf"):
        assert price_usage(usage, price_of(free, {})).cost == 0.0


def test_sums_are_unknown_where_a_part_is_and_answers_from_the_cache_are_no_part() -> None:
    known, unknown = Usage(calls=1, input_tokens=1, cost=1.0), Usage(calls=1, input_tokens=1)
    kept = Usage(cached_calls=1, cost=0.0)
    assert (known + unknown).cost is None
    assert (known + kept).cost == 1.0
    assert (kept + unknown).cost is None
    assert (kept + kept + known).cached_calls == 2
    lines = lines_of(
        [LedgerLine("judge", "a", known), LedgerLine("user", "b", unknown), LedgerLine("judge", "a", known)]
    )
    assert [(line.role, line.name, line.usage.calls) for line in lines] == [
        ("user", "b", 1),
        ("judge", "a", 2),
    ]
    assert total_cost(lines) == (2.0, (lines[0],))


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────


def refuses(ledger: BudgetLedger, tokens: int, *facts: str) -> None:
    """There is no room for a call of so many tokens."""
    with pytest.raises(BudgetError) as caught:
        ledger.begin("m", None, tokens)
    assert [fact for fact in facts if fact not in str(caught.value)] == [], caught.value


def test_calls_are_exact_whatever_is_in_flight() -> None:
    notices: list[str] = []
    ledger = BudgetLedger(BudgetConfig(max_calls=3), notices.append)
    first, *_ = [ledger.begin("m", None, 0) for _ in range(3)]
    refuses(ledger, 0, "max_calls", "3")
    first.settle(Usage(calls=1))
    refuses(ledger, 0, "max_calls", "1", "2")  # spent, and reserved
    assert len(notices) == 1


def test_a_further_request_of_one_call_needs_room_of_its_own() -> None:
    ledger = BudgetLedger(BudgetConfig(max_calls=2))
    call = ledger.begin("m", None, 0)
    call.request()
    call.request()
    with pytest.raises(BudgetError):
        call.request()
    call.settle(Usage(calls=1))  # one of the two was refused, and is paid by nobody
    ledger.begin("m", None, 0)


def test_a_call_that_failed_was_made() -> None:
    ledger = BudgetLedger(BudgetConfig(max_calls=1))
    ledger.begin("m", None, 0).settle(Usage(), is_failed=True)
    refuses(ledger, 0, "max_calls")


def test_tokens_in_flight_stand_in_with_an_estimate() -> None:
    ledger = BudgetLedger(BudgetConfig(max_tokens=1000))
    call = ledger.begin("m", None, 500)  # and an answer of a length taken
    refuses(ledger, 500, "max_tokens", "1,000", "700")
    call.settle(Usage(calls=1, input_tokens=500, output_tokens=20))
    ledger.begin("m", None, 300)  # now it is known how long its answers are


def test_money_is_kept_too() -> None:
    ledger = BudgetLedger(BudgetConfig(max_cost=0.003))
    ledger.begin("m", PRICE, 10).settle(Usage(calls=1, input_tokens=100, output_tokens=50))
    with pytest.raises(BudgetError, match=r"max_cost.* 0\.0030 USD"):
        [ledger.begin("m", PRICE, 100) for _ in range(10)]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────

TALKS = [scenario(f"talk-{n}", "One.", "Two.") for n in range(6)]
SIMULATED = scenario("sim", goal="A lamp.", epochs=1)


def run(project: Project, server: ModelServer, more: str, *flags: str, scenarios: Any = TALKS) -> Any:
    judged_project(project, scenarios, model_config(server, f"metrics: [helpfulness]\n{more}"))
    return project.run("-v", *flags, env=KEY)


def test_the_cost_of_each_role_and_model_is_reported(project: Project) -> None:
    with ModelServer(contented(prompt_tokens_details={"cached_tokens": 60})) as server:
        done = run(project, server, PRICES, scenarios=[*TALKS, SIMULATED])
        assert "price" not in json.dumps(server.asked), "the server learns nothing of prices"
    assert done.code == 0, done.all
    usage = usage_of(project)
    each = (40 * 2 + 60 * 0.5 + 10 * 10) / 1e6
    assert (usage["judge"]["calls"], usage["user"]["calls"]) == (14, 2)
    assert usage["judge"]["cost"] == pytest.approx(14 * each)
    assert usage["user"]["cost"] == pytest.approx(2 * each)
    assert usage["agent"]["cost"] is None
    ledger = {(line["role"], line["name"]): line["usage"] for line in project.results()["summary"]["ledger"]}
    assert set(ledger) == {("agent", "bot"), ("user", MODEL), ("judge", MODEL)}
    assert ledger["judge", MODEL] == usage["judge"]
    assert f"at least {16 * each:.4f} USD" in " ".join(done.out.split())


def test_an_unknown_price_is_reported_and_is_never_zero(project: Project) -> None:
    with ModelServer(contented()) as server:
        done = run(project, server, "", "--report", "markdown=report.md")
    assert usage_of(project)["judge"]["cost"] is None
    shown = " ".join(done.out.split())
    for fact in ("12 calls", MODEL, "judge", f"prices: {{{MODEL}: {{input: …, output: …}}}}"):
        assert fact in shown
    page = (project.root / "report.md").read_text("utf-8")
    assert "12 calls" in page
    assert "price unknown" in page


def test_the_usage_that_an_agent_reports_is_priced_by_its_name(project: Project) -> None:
    project.agent(
        """
        from agenteval import AgentReply

        def agent(messages, ctx):
            usage = {"prompt_tokens": 1000, "completion_tokens": 100}
            return AgentReply("fine", usage=usage | ({"cost": 0.25} if ctx.turn else {}))
        """
    )
    project.config("prices: {bot: {input: 2, output: 10}}\n")
    project.scenarios(json.dumps({"scenarios": [scenario("a", "One.", "Two.")]}))
    assert project.run().code == 0
    first, second = project.sample()["turns"]
    assert first["usage"]["cost"] == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    assert second["usage"]["cost"] == 0.25
    assert usage_of(project)["agent"]["cost"] == pytest.approx(0.253)


def test_max_calls_is_never_exceeded_and_the_run_ends_inconclusive(project: Project) -> None:
    many = [scenario(f"talk-{n}", "One.", "Two.") for n in range(60)]
    with ModelServer(contented(), delay_s=0.01) as server:
        done = run(project, server, "budget: {max_calls: 50}\nconcurrency: 100\n", scenarios=many)
        asked = len(server.asked)
    assert done.code == 3, done.all
    results = project.results()
    calls = sum(usage["calls"] for usage in usage_of(project).values())
    assert calls == 50
    assert 0 < asked < 50
    assert (results["run"]["outcome"], results["run"]["complete"]) == ("budget", False)
    assert results["summary"]["verdict"] == "inconclusive"
    faults = {sample["fault"] for each in results["scenarios"] for sample in each["samples"]}
    assert "budget" in faults
    (gate,) = (gate for gate in results["summary"]["gates"] if gate["name"] == "budget.max_calls")
    assert (gate["value"], gate["bound"], gate["verdict"]) == (50, 50, "inconclusive")
    assert gate["where"].startswith("agenteval.yaml:")
    assert "max_calls is 50" in done.out


def test_a_run_within_its_budget_passes_and_shows_what_it_used(project: Project) -> None:
    with ModelServer(contented()) as server:
        done = run(project, server, "budget: {max_calls: 24, max_tokens: 100000}\n")
    assert done.code == 0, done.all
    gates = {gate["name"]: gate for gate in project.results()["summary"]["gates"]}
    assert gates["budget.max_calls"]["value"] == 24
    assert gates["budget.max_tokens"]["verdict"] == "passed"


def test_a_failed_sample_beats_the_budget(project: Project) -> None:
    fails = scenario("fails", "One.", checks=None, expect={"output": {"contains": ["never"]}})
    del fails["checks"]
    with ModelServer(contented()) as server:
        config = "budget: {max_calls: 6}\nagent_concurrency: 1\n"
        done = run(project, server, config, scenarios=[fails, *TALKS])
    assert done.code == 1, done.all
    assert project.results()["run"]["outcome"] == "budget"


def test_judges_that_nobody_could_pay_leave_the_run_inconclusive(project: Project) -> None:
    """Every conversation is whole, and no threshold asks for the score that is missing."""
    with ModelServer(contented()) as server:
        done = run(project, server, "budget: {max_calls: 3}\n", scenarios=[scenario("a", "One.", "Two.")])
    assert done.code == 3, done.all
    assert project.sample()["stop"] == "script_done"
    assert [len(turn["score_failures"]) for turn in project.sample()["turns"]].count(1) == 1


def test_answers_that_must_be_repaired_do_not_pass_the_limit(project: Project) -> None:
    with ModelServer(answers("no JSON at all")) as server:
        done = run(project, server, "budget: {max_calls: 20}\n")
        assert len(server.asked) <= 20
    assert done.code == 3, done.all


@pytest.mark.parametrize(
    "budget", [f"budget: {{max_cost: {300e-6 * 3.5:.6f}}}\n{PRICES}", "budget: {max_tokens: 2500}\n"]
)
def test_max_cost_and_max_tokens_stop_a_run(project: Project, budget: str) -> None:
    with ModelServer(contented()) as server:  # each answer costs 100 * 2 + 10 * 10 millionths
        done = run(project, server, f"{budget}concurrency: 1\nepochs: 8\n")
        assert len(server.asked) < 48  # of 96: what is in flight when the budget is spent comes in
    assert done.code == 3, done.all
    assert project.results()["run"]["outcome"] == "budget"


@pytest.mark.parametrize(
    ("budget", "key"),
    [
        ("{max_cost: 1.5}", "budget.max_cost"),
        ("{by_role: {judge: {max_cost: 1.5}}}", "budget.by_role.judge.max_cost"),
        ("{by_role: {user: {max_cost: 1.5}}}", ""),  # none is simulated
    ],
)
def test_a_budget_in_money_needs_prices(project: Project, budget: str, key: str) -> None:
    with ModelServer(contented()) as server:
        done = run(project, server, f"budget: {budget}\n")
        assert bool(server.asked) is not bool(key)
    if key:
        done.refuses("agenteval.yaml:4", key, MODEL, f"prices: {{{MODEL}: {{input: …, output: …}}}}")
    else:
        assert done.code == 0, done.all


def test_an_agent_that_a_budget_in_money_cannot_bound_is_named(project: Project) -> None:
    with ModelServer(contented()) as server:
        named = run(project, server, f"budget: {{max_cost: 1.5}}\n{PRICES}")
        free = PRICES.replace("prices: {", "prices: {bot: {input: 0, output: 0}, ")
        done = run(project, server, f"budget: {{max_cost: 1.5}}\n{free}")
    assert (named.code, done.code) == (0, 0), done.all
    for text, is_named in ((named.out, True), (done.out, False)):
        lines = [line for line in text.splitlines() if "budget.max_cost" in line and "'bot'" in line]
        assert bool(lines) is is_named, text


# ── a budget by role ─────────────────────────────────────────────────────────────────────────────


def budget_rows(project: Project) -> dict[str, tuple[Any, Any, str]]:
    gates = project.results()["summary"]["gates"]
    return {
        gate["name"]: (gate["value"], gate["bound"], gate["verdict"])
        for gate in gates
        if gate["name"].startswith("budget.")
    }


def test_a_roles_limit_ends_the_calls_of_that_role_alone(project: Project) -> None:
    """Judges over their budget are not asked: reported once, counted in the last line; the rest goes on."""
    config = "budget: {max_calls: 100, by_role: {judge: {max_calls: 5}, user: {max_calls: 50}}}\n"
    with ModelServer(contented()) as server:
        done = run(project, server, config, scenarios=[*TALKS, SIMULATED])
    assert done.code == 0, done.all  # no gate is based on the scores that are missing
    results, usage = project.results(), usage_of(project)
    assert (usage["judge"]["calls"], usage["user"]["calls"], usage["agent"]["calls"]) == (5, 2, 14)
    assert (results["run"]["outcome"], results["run"]["complete"]) == ("complete", True)
    assert budget_rows(project) == {
        "budget.max_calls": (21, 100, "passed"),
        "budget.by_role.user.max_calls": (2, 50, "passed"),
        "budget.by_role.judge.max_calls": (5, 5, "passed"),
    }
    notices = [n["text"] for n in results["summary"]["notices"] if "max_calls is 5" in n["text"]]
    assert ["judge" in text for text in notices] == [True]
    assert " 9 judge" in last_line(done)


@pytest.mark.parametrize(("limit", "code"), [(5, 3), (12, 0)])
def test_what_rests_on_judges_that_nobody_could_pay_is_undecided(
    project: Project, limit: int, code: int
) -> None:
    config = f"thresholds: {{helpfulness: 3.5}}\nbudget: {{by_role: {{judge: {{max_calls: {limit}}}}}}}\n"
    with ModelServer(contented()) as server:
        done = run(project, server, config)
    assert done.code == code, done.all
    assert usage_of(project)["judge"]["calls"] == limit
    not_made = 12 - limit
    assert (f" {not_made} judge" in last_line(done)) is (not_made > 0)
    assert project.results()["run"]["outcome"] == "complete"


def test_users_that_nobody_could_pay_lose_their_conversations_and_no_other(project: Project) -> None:
    sims = [scenario(f"sim-{n}", goal="A lamp.", epochs=1) for n in range(3)]
    config = "budget: {by_role: {user: {max_calls: 2}}}\nagent_concurrency: 1\n"
    with ModelServer(contented()) as server:
        done = run(project, server, config, scenarios=[*sims, *TALKS])
    assert done.code == 3, done.all
    found = {each["id"]: each["samples"][0]["fault"] for each in project.results()["scenarios"]}
    assert [name for name, fault in found.items() if fault == "budget"] == ["sim-1", "sim-2"]
    assert usage_of(project)["judge"]["calls"] == 14
    assert usage_of(project)["user"]["calls"] == 2


def test_the_plan_names_the_roles_limit_that_is_too_low(project: Project) -> None:
    with ModelServer(contented()) as server:
        config = "metrics: [helpfulness]\nbudget: {by_role: {judge: {max_calls: 5}, user: {max_calls: 5}}}\n"
        judged_project(project, TALKS, model_config(server, config))
        done = project.call("plan", env=KEY)
    (line,) = [line for line in done.all.splitlines() if "budget.by_role.judge.max_calls" in line]
    assert all(fact in line for fact in ("5", "12")), line
    assert "by_role.user" not in done.all


@pytest.mark.parametrize(
    ("written", "column", "facts"),
    [
        ("budget: {max_call: 3}", 10, ["'max_call'", "'max_calls'"]),
        ("budget: {max_calls: 0}", 10, ["budget.max_calls", "0"]),
        ("budget: {by_role: {judges: {max_calls: 3}}}", 20, ["'judges'", "'judge'"]),
        ("budget: {by_role: {judge: {max_calls: 0}}}", 28, ["budget.by_role.judge.max_calls", "0"]),
        ("budget: {max_cost: 0}", 10, ["budget.max_cost", "0"]),
        ("prices: {openai/x: {input: -1, output: 0}}", 21, ["prices.openai/x.input", "-1"]),
        ("prices: {openai/x: {input: 1}}", 10, ["prices.openai/x", "output"]),
    ],
)
def test_what_cannot_be_a_budget_is_refused(
    project: Project, written: str, column: int, facts: list[str]
) -> None:
    judged_project(project, TALKS, f"metrics: []\n{written}\n")
    project.run().refuses(f"agenteval.yaml:3:{column}", *facts)
