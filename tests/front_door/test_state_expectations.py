"""``expect.state`` from the file to the verdict: decided in a run and when its journal is scored, and refused
with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

AGENT = """
import json

async def agent(messages, ctx):
    calls = json.loads(messages[-1]["content"])
    for name, args in calls:
        await ctx.call_tool(name, args)
    return "Done."
"""
TOOLS: dict[str, Any] = {
    "cancel": {"sql": "UPDATE orders SET status = 'cancelled' WHERE id = :id"},
    "restore": {"sql": "UPDATE orders SET status = 'new' WHERE id = :id"},
    "book": {"sql": "INSERT INTO orders VALUES (:id, random() || '')"},
}
CANCELLED = {"sql": "SELECT status FROM orders WHERE id = 1", "equals": "cancelled"}


def set_up(project: Project, *turns: Any, **more: Any) -> None:
    project.agent(AGENT)
    project.config("now: '2026-11-30T08:00:00Z'\n")
    project.write("scenarios/orders.csv", "id,status\n1,new\n2,new\n")
    orders = {"file": "orders.csv", "types": {"id": "integer"}}
    scenario = {"id": "s", "state": {"tables": {"orders": orders}}, "tools": TOOLS, "turns": turns, **more}
    project.scenarios(json.dumps(scenario))


def say(*calls: tuple[str, dict[str, Any]], **expect: Any) -> dict[str, Any]:
    return {"user": json.dumps(calls), **({"expect": expect} if expect else {})}


def test_milestones_and_the_end_are_decided_in_a_run_and_from_its_journal(project: Project) -> None:
    turns = [
        say(("cancel", {"id": 1}), state=CANCELLED),
        say(("cancel", {"id": 2}), state={"changed": {"orders": [{"id": 1}]}}),
        say(("restore", {"id": 2})),
    ]
    same = {"same_as": [{"name": "cancel", "args": {"id": 1}}]}
    set_up(project, *turns, expect={"state": [same, CANCELLED, {"changed": {}}]})
    done = project.run()
    assert done.code == 1
    assert 'collateral: orders {"id": 2} changed: status was "new", is "cancelled"' in done.out
    found = failed_checks(project.sample())
    assert found == {(1, "state.changed"), (None, "state.changed")}
    assert project.call("score", "latest", "--report", "json=scored.json").code == 1
    scored = json.loads((project.root / "scored.json").read_text("utf-8"))
    assert failed_checks(scored["scenarios"][0]["samples"][0]) == found


def test_a_check_has_the_line_of_its_expectation(project: Project) -> None:
    project.agent("def agent(messages): return 'Done.'")
    project.config()
    project.scenarios("""
        id: s
        state: {tables: {orders: [{id: 1}]}}
        turns:
          - user: hi
            expect:
              state: {sql: SELECT id FROM orders, equals: 2}
        expect:
          state:
            - {changed: {}}
            - {sql: SELECT id FROM orders, empty: true}
    """)
    assert project.run().code == 1
    sample = project.sample()
    checks = [*sample["turns"][0]["checks"], *sample["checks"]]
    assert [(check["name"], check["where"]) for check in checks if check["passed"] is False] == [
        ("state.sql", "scenarios/suite.yaml:6"),
        ("state.sql", "scenarios/suite.yaml:10"),
    ]


def test_the_state_is_decided_even_if_the_agent_fails_in_the_end(project: Project) -> None:
    set_up(project, say(("cancel", {"id": 1})), expect={"state": [CANCELLED, {"changed": {}}]})
    project.agent(AGENT.replace('return "Done."', 'raise RuntimeError("too late")'))
    assert project.run().code == 1
    sample = project.sample()
    assert failed_checks(sample) == {(None, "no_error"), (None, "state.changed")}
    assert ("state.sql", True) in [(check["name"], check["passed"]) for check in sample["checks"]]


def test_a_state_whose_files_changed_decides_nothing(project: Project) -> None:
    set_up(project, say(("cancel", {"id": 1})), expect={"state": CANCELLED})
    assert project.run().code == 0
    project.write("scenarios/orders.csv", "id,status\n1,cancelled\n")
    done = project.call("score", "latest")
    assert done.code == 3
    assert "`state` is not the one with which the conversation began" in done.all
    Path(project.root, "scenarios/orders.csv").unlink()
    done = project.call("score", "latest")
    assert done.code == 3
    assert "orders.csv" in done.all


def test_the_same_calls_draw_the_same_random_numbers(project: Project) -> None:
    book = "book", {"id": 3}
    expected = {"same_as": [{"name": "book", "args": {"id": 3}}]}
    set_up(project, say(book), expect={"state": expected}, epochs=3)
    done = project.run()
    assert done.code == 0, done.all


def test_what_another_tool_draws_and_a_call_that_fails_change_no_random_number(project: Project) -> None:
    tools = {
        "quote": {"reads": True, "sql": "SELECT random() AS quote"},
        "book": {
            "sql": "UPDATE orders SET status = 'B' || random() WHERE id = :id",
            "none": {"error": "no order"},
        },
    }
    calls = [("quote", {}), ("book", {"id": 99}), ("book", {"id": 2})]
    expected = {"same_as": [{"name": "book", "args": {"id": 2}}]}
    set_up(project, say(*calls), tools=tools, expect={"state": expected})
    done = project.run()
    assert done.code == 0, done.all


def test_a_state_is_an_expectation_and_needs_no_other(project: Project) -> None:
    set_up(project, say(), expect={"state": {"changed": {}}})
    assert project.call("validate").code == 0


SUITE = """\
id: s
turns:
  - user: hi
    expect:
      state: {sql: SELECT stat FROM orders, equals: x}
STATE
tools: {look: {sql: SELECT 1}}
expect:
  state:
    - changed: {}
    - EXPECTATION
"""
STATE = "state: {tables: {orders: [{id: 1, status: new}]}}"


@pytest.mark.parametrize(
    ("expectation", "facts"),
    [
        ("{sql: SELECT 1}", ("equals", "empty")),
        ("{changed: {orders: [{idd: 1}]}}", ("idd", "'id'")),
        ("{same_as: [{name: lok}]}", ("lok", "'look'")),
        ("{sql: SELECT 1, equals: {$inn: [1]}}", ("$inn", "$in")),
    ],
)
def test_mistakes_are_refused_at_their_place(
    project: Project, expectation: str, facts: tuple[str, ...]
) -> None:
    project.agent(AGENT)
    project.config()
    suite = SUITE.replace("stat FROM", "status FROM")
    project.scenarios(suite.replace("STATE", STATE).replace("EXPECTATION", expectation))
    project.call("validate").refuses("scenarios/suite.yaml:11", *facts)


def test_a_tool_that_reads_must_not_write(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    suite = (
        SUITE.replace("stat FROM", "status FROM")
        .replace("STATE", STATE)
        .replace("EXPECTATION", "changed: {}")
    )
    wipes = suite.replace("{look: {sql: SELECT 1}}", "{wipe: {reads: true, sql: DELETE FROM orders}}")
    project.scenarios(wipes)
    project.call("validate").refuses("scenarios/suite.yaml:7:29", "`reads: true`, but this statement writes")
    project.scenarios(wipes.replace("reads: true, ", ""))
    assert project.call("validate").code == 0


def test_a_turn_and_a_scenario_without_a_state(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    last = "{sql: SELECT 1, equals: 1}"
    project.scenarios(SUITE.replace("STATE", STATE).replace("EXPECTATION", last))
    project.call("validate").refuses("scenarios/suite.yaml:5", "no such column: stat", "status")
    project.scenarios(SUITE.replace("STATE", "").replace("EXPECTATION", last))
    done = project.call("validate")
    done.refuses("scenarios/suite.yaml:5", "needs the scenario's `state`")
    assert "scenarios/suite.yaml:9" in done.err


def test_a_path_whose_call_fails_is_no_path(project: Project) -> None:
    """An agent that does nothing would leave the same state."""
    tools = {"cancel": {**TOOLS["cancel"], "none": {"error": "no order ${args.id}"}}}
    for number, code in ((1, 1), (7, 3)):
        same = {"same_as": [{"name": "cancel", "args": {"id": number}}]}
        set_up(project, say(), tools=tools, expect={"state": same})
        done = project.run()
        assert done.code == code, done.all
    assert 'cancel(id=7) returns {"error": "no order 7"}' in done.all
    set_up(project, say(("cancel", {"id": 1})), tools=tools, expect={"state": {**same, "same_as": [
        {"name": "cancel", "args": {"id": 1}}]}})  # fmt: skip
    assert project.run().code == 0


def test_a_tool_that_the_agent_ran_itself_leaves_the_state_unknown(project: Project) -> None:
    """The world did not change, but who knows what the agent's own tool did."""
    expected = {"changed": {"orders": [{"id": 1, "status": "cancelled"}]}}
    set_up(project, say(("cancel", {"id": 1})), expect={"state": expected})
    project.agent(
        """
        async def agent(messages):
            call = {"id": "1", "type": "function", "function": {"name": "cancel", "arguments": '{"id": 1}'}}
            return [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "ok"},
                {"role": "assistant", "content": "Done."},
            ]
        """
    )
    done = project.run()
    assert done.code == 3
    checks = {check["name"]: check for check in project.sample()["checks"]}
    assert checks["state.changed"]["passed"] is None
    assert "not the mock of 'cancel', answered" in checks["state.changed"]["detail"]


def test_expectations_from_a_file_are_decided_with_its_tools(project: Project) -> None:
    same = {"same_as": [{"name": "cancel", "args": {"id": 1}}]}
    set_up(
        project, say(("cancel", {"id": 1})), expect={"state": [same, {"changed": {"orders": [{"id": 1}]}}]}
    )
    assert project.run().code == 0
    done = project.call("score", "latest", "--scenarios", "scenarios/suite.yaml")
    assert done.code == 0, done.all
    set_up(
        project,
        say(("cancel", {"id": 1})),
        expect={"state": {"same_as": [{"name": "cancel", "args": {"id": 2}}]}},
    )
    assert project.call("score", "latest", "--scenarios", "scenarios/suite.yaml").code == 1


def test_the_results_and_the_page_say_what_each_turn_changed(project: Project) -> None:
    turns = [say(("cancel", {"id": 1})), say(), say(("restore", {"id": 1}), ("book", {"id": 3}))]
    set_up(project, *turns, checks="none")
    project.run("--report", "html=page.html")
    turns = project.sample()["turns"]
    assert turns[0]["state_changes"] == ['orders 1: status "new" → "cancelled"']
    assert "state_changes" not in turns[1]
    assert turns[2]["state_changes"][0] == 'orders 1: status "cancelled" → "new"'
    assert turns[2]["state_changes"][1].startswith('orders + {"id": 3')
    assert "changes of the state" in (project.root / "page.html").read_text("utf-8")


# ── same_as with tools in Python ─────────────────────────────────────────────────────────────────

MOCKS = """
from agenteval import ToolError

def cancel(args, ctx):
    found = ctx.db.execute("SELECT status FROM orders WHERE id = :id", args).rows
    if not found:
        raise ToolError(f"there is no order {args['id']}")
    ctx.db.execute("UPDATE orders SET status = 'cancelled' WHERE id = :id", args)
    new = {"id": 100 + ctx.call_index, "note": str(ctx.seed)}
    ctx.db.execute("INSERT INTO orders VALUES (:id, :note)", new)
    return "cancelled"

def broken(args):
    raise KeyError("no such key")
"""
PYTHON_TOOLS: dict[str, Any] = {
    **TOOLS,
    "cancel": {"python": "mocks.py:cancel"},
    "broken": {"python": "mocks.py:broken"},
}


def same_as(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"state": {"same_as": [{"name": name, "args": args} for name, args in calls]}}


def set_up_python(project: Project, *turns: Any, **more: Any) -> None:
    set_up(project, *turns, **{"tools": PYTHON_TOOLS, **more})
    project.write("scenarios/mocks.py", MOCKS)


def test_calls_that_python_answers_are_made_in_the_run_and_scored_from_its_journal(project: Project) -> None:
    one, two = ("cancel", {"id": 1}), ("cancel", {"id": 2})
    milestone = say(one, **same_as(one))
    set_up_python(project, milestone, say(two), expect=same_as(one, two), epochs=2)
    assert project.run().code == 0
    set_up_python(project, milestone, say(two), expect=same_as(one))
    done = project.run()
    assert done.code == 1
    assert 'orders {"id": 2}: status: expected "new", got "cancelled"' in done.out
    found = failed_checks(project.sample())
    assert found == {(None, "state.same_as")}
    Path(project.root, "scenarios/mocks.py").write_text("raise SystemExit('scoring runs no code')", "utf-8")
    for number in range(2):  # the journal of a scored run can be scored, too
        assert project.call("score", "latest", "--report", f"json=scored{number}.json").code == 1
        scored = json.loads((project.root / f"scored{number}.json").read_text("utf-8"))
        assert failed_checks(scored["scenarios"][0]["samples"][0]) == found


def test_a_milestone_in_python_fails_at_its_turn(project: Project) -> None:
    one, two = ("cancel", {"id": 1}), ("cancel", {"id": 2})
    set_up_python(project, say(one, **same_as(two)), say(two), expect={"state": {"changed": {"orders": []}}})
    assert project.run().code == 1
    assert (0, "state.same_as") in failed_checks(project.sample())


def test_a_path_in_python_whose_call_fails_is_no_path(project: Project) -> None:
    set_up_python(project, say(("cancel", {"id": 1})), expect=same_as(("cancel", {"id": 9})))
    done = project.run()
    assert done.code == 3
    assert "there is no order 9" in done.all
    assert "correct the call" in done.all


def test_a_path_whose_function_is_broken_is_the_authors_error(project: Project) -> None:
    set_up_python(project, say(("cancel", {"id": 1})), expect=same_as(("broken", {})))
    done = project.run()
    assert done.code == 2
    assert "the mock of 'broken' raised KeyError" in done.all


def test_other_calls_than_those_of_the_run_are_undecided_if_python_answers(project: Project) -> None:
    set_up_python(project, say(("cancel", {"id": 1})), expect=same_as(("cancel", {"id": 1})))
    assert project.run().code == 0
    assert project.call("score", "latest", "--scenarios", "scenarios/suite.yaml").code == 0
    set_up_python(project, say(("cancel", {"id": 1})), expect=same_as(("cancel", {"id": 2})))
    done = project.call("score", "latest", "--scenarios", "scenarios/suite.yaml")
    assert done.code == 3
    assert "was not recorded" in done.all


def test_a_function_that_is_not_over_leaves_the_state_unknown(project: Project) -> None:
    set_up_python(
        project, "[]", tools={"wait": {"python": "mocks.py:wait"}}, expect={"state": {"changed": {}}}
    )
    project.write(
        "scenarios/mocks.py",
        "from threading import Event\nSTARTED, GATE = Event(), Event()\n\n"
        "def wait(args, ctx):\n    STARTED.set()\n    GATE.wait(60)\n",
    )
    project.agent("""
        import asyncio

        async def agent(messages, ctx):
            from mocks import GATE, STARTED

            asyncio.create_task(ctx.call_tool("wait", {}))
            while not STARTED.is_set():
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0, GATE.set)
            return "Done."
    """)
    done = project.run()
    assert done.code == 3, done.all
    assert "a call was not over, and what it changed is not known" in " ".join(done.all.split())
