"""``state: {expose: …}``: the agent's own tools work on the sample's own database file, whatever the agent
is, and ``expect.state`` judges what they did."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, answer, respond_json
from tests.support.patience import eventually
from tests.support.toy import install_toy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups, and open files")
both = pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fix"])

STATE = {
    "tables": {"orders": [{"id": "ORD-1", "status": "new"}, {"id": "ORD-2", "status": "new"}]},
    "expose": "SHOP_DB",
}
CANCELLED = {"changed": {"orders": [{"id": "ORD-1", "status": "cancelled"}]}}
SHOP = """
import contextlib, pathlib, sqlite3

def cancel(path, order):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        (status,) = db.execute("SELECT status FROM orders WHERE id = ?", (order,)).fetchone()
        db.execute("UPDATE orders SET status = 'cancelled' WHERE id = ?", (order,))
        if pathlib.Path("bug").exists():
            db.execute("DELETE FROM orders WHERE id <> ?", (order,))
    return f"{order} was {status}."
"""
"""The agent's own code."""
LINES = """
import json, os, sys
from shop import cancel

for line in sys.stdin:
    order = json.loads(line)["messages"][-1]["content"]
    print(json.dumps({"text": cancel(os.environ["SHOP_DB"], order)}), flush=True)
"""


def set_up(project: Project, agent: str, *, has_bug: bool = False, config: str = "", **scenario: Any) -> None:
    project.write("shop.py", SHOP)
    if has_bug:
        project.write("bug", "")
    project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n{config}")
    usual = {"id": "s", "state": STATE, "turns": ["ORD-1"], "expect": {"state": CANCELLED}}
    project.scenarios(json.dumps({**usual, **scenario}))


def run(project: Project, *arguments: str) -> Done:
    """A run after which none of its temporary files is left."""
    temporary = project.root / "tmp"
    temporary.mkdir(exist_ok=True)
    done = project.run(*arguments, env={"TMPDIR": str(temporary)})
    assert not list(temporary.glob("agenteval-state-*"))
    return done


def decided(project: Project, *, has_bug: bool) -> None:
    """Run, and assert that the bug, and nothing else, is found."""
    done = run(project)
    assert done.code == (1 if has_bug else 0), done.all
    collateral = 'collateral: orders {"id": "ORD-2"} was deleted'
    assert (collateral in done.out) is has_bug
    assert failed_checks(project.sample()) == ({(None, "state.changed")} if has_bug else set())


def samples(project: Project, scenario: str) -> list[dict[str, Any]]:
    found = [each["samples"] for each in project.results()["scenarios"] if each["id"] == scenario]
    return list(*found)


def why_undecided(done: Done, project: Project) -> str:
    assert done.code == 3, done.all
    (check,) = [check for check in project.sample()["checks"] if check["name"].startswith("state.")]
    assert check["passed"] is None
    return str(check["detail"])


# ── each kind of agent ───────────────────────────────────────────────────────────────────────────

PYTHON = json.dumps(sys.executable)


@both
def test_a_command_that_answers_in_lines(project: Project, has_bug: bool) -> None:
    project.write("bot.py", LINES)
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", has_bug=has_bug)
    decided(project, has_bug=has_bug)
    for command in (("score", "latest"), ("report", "latest", "--rejudge")):
        assert project.call(*command).code == has_bug
    shown = project.call("show", "s").out
    assert 'orders "ORD-1": status "new" → "cancelled"' in shown


@both
def test_a_program_that_prints_and_a_milestone(project: Project, has_bug: bool) -> None:
    project.write("bot.py", "import os, sys, shop\nprint(shop.cancel(os.environ['SHOP_DB'], sys.argv[1]))\n")
    turns = [
        {"user": "ORD-1", "expect": {"state": CANCELLED}},
        {"user": "ORD-1", "expect": {"output": {"contains": ["ORD-1 was cancelled"]}}},
    ]
    run_program = f'{{command: {{run: [{PYTHON}, bot.py, "${{message}}"]}}}}'
    set_up(project, run_program, has_bug=has_bug, turns=turns)
    done = run(project)
    assert done.code == has_bug, done.all
    found = {(0, "state.changed"), (None, "state.changed")}
    assert failed_checks(project.sample()) == (found if has_bug else set())


@both
def test_a_python_function_and_its_context(project: Project, has_bug: bool) -> None:
    project.agent("""
        import os
        from shop import cancel

        def agent(messages, ctx):
            assert "SHOP_DB" not in os.environ
            return cancel(ctx.database, messages[-1]["content"])
    """)
    set_up(project, "{target: 'agent.py:agent'}", has_bug=has_bug)
    decided(project, has_bug=has_bug)


@both
def test_a_server_gets_the_path_in_each_request(project: Project, has_bug: bool) -> None:
    code: dict[str, Any] = {}
    exec(SHOP.replace('"bug"', json.dumps(str(project.root / "bug"))), code)
    request = '{say: "${message}", database: "${database}"}'

    def reply(asked: Any) -> Any:
        return respond_json({"text": code["cancel"](asked.json["database"], asked.json["say"])})

    with LocalServer(answer(reply)) as server:
        set_up(
            project,
            f"{{endpoint: '{server.url}', request: {request}, reply: {{text: text}}}}",
            has_bug=has_bug,
        )
        decided(project, has_bug=has_bug)
    assert not server.errors


TOY = """
import os, toy, shop
PATH = os.environ["SHOP_DB"]          # when it is imported, as many do

def cancel_order(id):
    "Cancel an order."
    return shop.cancel(PATH, id)

async def play(run, text):
    return await run.call("cancel_order", id=text)

agent = toy.Agent(play, cancel_order)
"""


@both
def test_a_frameworks_own_tools_in_their_interpreter(project: Project, has_bug: bool) -> None:
    install_toy(project)
    project.agent(TOY)
    agent = f"{{target: 'agent.py:agent', interpreter: {PYTHON}}}"
    config = "unmocked_tools: passthrough\nagent_concurrency: 1\n"
    set_up(project, agent, has_bug=has_bug, config=config, epochs=3)
    done = run(project)
    assert done.code == has_bug, done.all
    found = samples(project, "s")
    assert [failed_checks(each) for each in found] == [{(None, "state.changed")} if has_bug else set()] * 3
    # No conversation works on the database of another, and the calls are seen.
    assert [each["turns"][0]["agent"] for each in found] == ["ORD-1 was new."] * 3
    assert [call["name"] for call in found[0]["turns"][0]["tool_calls"]] == ["cancel_order"]


def test_a_worker_has_the_path_in_its_context_too(project: Project) -> None:
    project.agent("""
        import os
        from shop import cancel
        def agent(messages, ctx):
            assert ctx.database == os.environ.get("SHOP_DB")
            return cancel(ctx.database, messages[-1]["content"]) if ctx.database else f"{os.getpid()}"
    """)
    set_up(project, f"{{target: 'agent.py:agent', interpreter: {PYTHON}}}", config="agent_concurrency: 1\n")
    other = {"turns": ["hi"], "checks": "none", "epochs": 3}
    project.scenarios(
        json.dumps(
            {
                "scenarios": [
                    {"id": "s", "state": STATE, "turns": ["ORD-1"], "expect": {"state": CANCELLED}},
                    {"id": "other", **other},
                ]
            }
        )
    )
    done = run(project)
    assert done.code == 0, done.all
    processes = {each["turns"][0]["agent"] for each in samples(project, "other")}
    assert len(processes) == 1  # still kept for the conversations without a database


@both
def test_the_deps_of_a_framework_object_get_the_context(project: Project, has_bug: bool) -> None:
    install_toy(project)
    project.agent("""
        import toy, shop

        def make_deps(ctx):
            return ctx.database

        async def play(run, text):
            return shop.cancel(run.deps, text)

        agent = toy.Agent(play, deps_type=str)
    """)
    target = "{target: {object: 'agent.py:agent', deps: 'agent.py:make_deps'}}"
    set_up(project, target, has_bug=has_bug)
    decided(project, has_bug=has_bug)


# ── together with tools of the scenario ──────────────────────────────────────────────────────────


def test_the_scenarios_tools_work_on_the_same_file(project: Project) -> None:
    project.agent("""
        from shop import cancel

        async def agent(messages, ctx):
            before = cancel(ctx.database, "ORD-1")
            seen = await ctx.call_tool("get_order", {"id": "ORD-1"})
            await ctx.call_tool("restore", {"id": "ORD-1"})
            return f"{before} {seen} {cancel(ctx.database, 'ORD-1')}"
    """)
    tools = {
        "get_order": {"sql": "SELECT status FROM orders WHERE id = :id", "one": True},
        "restore": {"python": "mocks.py:restore"},
    }
    project.write(
        "scenarios/mocks.py",
        "def restore(args, ctx):\n"
        "    ctx.db.execute(\"UPDATE orders SET status = 'restored' WHERE id = :id\", args)\n",
    )
    expect = {
        "state": CANCELLED,
        "output": {"contains": ["ORD-1 was new. {'status': 'cancelled'} ORD-1 was restored."]},
    }
    set_up(project, "{target: 'agent.py:agent'}", tools=tools, expect=expect)
    done = run(project)
    assert done.code == 0, done.all


def test_a_state_is_known_although_no_call_is_seen_or_the_agents_own_code_answered(project: Project) -> None:
    project.agent("""
        from shop import cancel

        def agent(messages, ctx):
            call = {"id": "c", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}
            return [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": cancel(ctx.database, "ORD-1")},
                {"role": "assistant", "content": "Done."},
            ]
    """)
    tools = {"cancel": {"sql": "UPDATE orders SET status = 'cancelled'"}}
    set_up(project, "{target: 'agent.py:agent'}", tools=tools)
    assert run(project).code == 3  # because the scenario's `cancel` was not asked
    checks = {check["name"]: check["passed"] for check in project.sample()["checks"]}
    assert checks["state.changed"] is True
    set_up(project, "{target: 'agent.py:agent'}", has_bug=True, tools=tools)
    assert run(project).code == 1


# ── what is not known ────────────────────────────────────────────────────────────────────────────


def test_a_new_table_decides_nothing_and_is_named(project: Project) -> None:
    project.write("bot.py", LINES)
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}")
    project.write("shop.py", SHOP.replace("(status,)", "db.execute('CREATE TABLE audit (text)'); (status,)"))
    what = why_undecided(run(project), project)
    assert "created the table 'audit'" in what
    assert "audit" in project.call("show", "s").out
    assert project.call("score", "latest").code == 3


def test_what_is_not_committed_did_not_happen(project: Project) -> None:
    project.agent("""
        import sqlite3
        kept = []

        def agent(messages, ctx):
            kept.append(sqlite3.connect(ctx.database))
            kept[-1].execute("UPDATE orders SET status = 'cancelled' WHERE id = 'ORD-1'")
            return "Done."
    """)
    set_up(project, "{target: 'agent.py:agent'}")
    done = run(project)
    assert done.code == 1
    assert 'orders {"id": "ORD-1"}: did not change' in done.out


def test_a_write_up_to_the_end_of_the_process_belongs_to_the_end_and_to_no_turn(project: Project) -> None:
    project.write(
        "bot.py",
        """
        import json, os, sys
        from shop import cancel
        for line in sys.stdin:
            print(json.dumps({"text": "Soon."}), flush=True)
        cancel(os.environ["SHOP_DB"], "ORD-1")
        """,
    )
    turns = [{"user": "ORD-1", "expect": {"state": {"changed": {}}}}]
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", turns=turns)
    assert run(project).code == 0
    assert "after the last answer: orders" in project.call("show", "s").out
    for command in (("score", "latest"), ("report", "latest", "--rejudge")):
        assert project.call(*command).code == 0
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", turns=turns, expect={"state": {"changed": {}}})
    assert run(project).code == 1


def test_a_replay_does_not_know_the_state(project: Project) -> None:
    project.write("bot.py", LINES)
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}")
    assert run(project, "--record", "run.jsonl").code == 0
    assert "recording" in why_undecided(run(project, "--replay", "run.jsonl"), project)


def test_an_agent_that_never_changed_its_database_is_named_in_the_last_line(project: Project) -> None:
    project.agent("""
        from shop import cancel

        def agent(messages, ctx):
            return cancel(ctx.database, "ORD-1") if messages[-1]["content"] == "ORD-1" else "Done elsewhere."
    """)
    expect = {"state": {"changed": {}}}
    set_up(project, "{name: bot, target: 'agent.py:agent'}", turns=["hi"], expect=expect)
    done = run(project)
    assert done.code == 0
    assert "'bot' changed no database in SHOP_DB" in done.out.splitlines()[-1]
    scenarios = [
        {"id": "a", "state": STATE, "turns": ["hi"], "expect": expect},
        {"id": "b", "state": STATE, "turns": ["ORD-1"], "expect": {"state": CANCELLED}},
    ]
    project.scenarios(json.dumps({"scenarios": scenarios}))
    done = run(project)
    assert done.code == 0
    assert "changed no database" not in done.out
    assert "changed no database" not in project.call("score", "latest").out
    project.agent("""
        from shop import cancel

        def agent(messages, ctx):
            cancel(ctx.database, "ORD-1")
            raise RuntimeError("out of memory")
    """)
    done = run(project, "-s", "b")
    assert (done.code, "changed no database" in done.out) == (1, False), done.all


# ── the files ────────────────────────────────────────────────────────────────────────────────────


def test_conversations_at_the_same_time_have_their_own_files(project: Project) -> None:
    project.agent("""
        import asyncio
        from shop import cancel
        paths, all_are_here = set(), asyncio.Event()

        async def agent(messages, ctx):
            paths.add(ctx.database)
            if len(paths) == 20:
                all_are_here.set()
            await all_are_here.wait()
            return cancel(ctx.database, messages[-1]["content"])
    """)
    set_up(project, "{target: 'agent.py:agent'}", epochs=20, config="agent_concurrency: 20\n")
    done = run(project)
    assert done.code == 0, done.all
    assert {each["turns"][0]["agent"] for each in samples(project, "s")} == {"ORD-1 was new."}


def test_the_authors_database_is_copied_and_the_project_stays_as_it_is(project: Project) -> None:
    project.write("scenarios/x", "")
    file = project.root / "scenarios/shop.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)")
        db.execute("INSERT INTO orders VALUES ('ORD-1', 'new')")
        db.commit()
    before = file.read_bytes()
    project.write("bot.py", LINES)
    state = {"database": "shop.sqlite", "expose": "SHOP_DB"}
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", state=state)
    assert run(project).code == 0
    assert file.read_bytes() == before


@pytest.mark.parametrize("ends", ["fails", "hangs"])
def test_nothing_is_left_of_an_agent_that_fails_or_hangs(project: Project, ends: str) -> None:
    project.write(
        "bot.py",
        """
        import os, sqlite3, sys, time
        db = sqlite3.connect(os.environ["SHOP_DB"])
        db.execute("DELETE FROM orders")
        if sys.argv[1] == "hangs":
            time.sleep(600)
        sys.exit(1)
        """,
    )
    set_up(project, f"{{command: [{PYTHON}, bot.py, {ends}], timeout_s: 2}}")
    assert run(project).code == 1


def test_nothing_is_left_after_ctrl_c(project: Project) -> None:
    project.write(
        "bot.py",
        """
        import os, sqlite3, time
        db = sqlite3.connect(os.environ["SHOP_DB"])
        db.execute("DELETE FROM orders")
        open("is here", "w").close()
        time.sleep(600)
        """,
    )
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}")
    temporary = project.root / "tmp"
    temporary.mkdir()
    started = project.start("run", env={"TMPDIR": str(temporary)})
    eventually(lambda: Path(project.root, "is here").exists())
    assert list(temporary.glob("agenteval-state-*"))
    started.send(signal.SIGINT)
    assert started.wait().code == 130
    assert not list(temporary.glob("agenteval-state-*"))


def test_served_tools_print_the_path_and_leave_nothing(project: Project) -> None:
    project.write("bot.py", LINES)
    tools = {"get": {"sql": "SELECT * FROM orders", "parameters": {"type": "object"}}}
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", tools=tools)
    temporary = project.root / "tmp"
    temporary.mkdir()
    done = project.call("tools", "serve", "-s", "s", env={"TMPDIR": str(temporary)})  # its input is empty
    assert done.code == 0, done.all
    assert f"SHOP_DB={temporary}" in done.err
    assert not list(temporary.glob("agenteval-state-*"))


# ── wrong input ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", "SHOP DB", "1DB", "PATH", "home", "AGENTEVAL_DB", "PYTHONPATH"])
def test_a_name_that_is_none_is_refused(project: Project, name: str) -> None:
    project.write("bot.py", LINES)
    set_up(project, f"{{command: [{PYTHON}, bot.py]}}", state={**STATE, "expose": name})
    project.call("validate").refuses("scenarios/suite.yaml:1", f"'{name}'", "SHOP_DB")


@pytest.mark.parametrize(
    ("agent", "remedy"),
    [
        ("{target: 'agent.py:text'}", "`ctx`"),
        ("{target: 'agent.py:make_agent'}", "`interpreter`"),
        ("{target: 'agent.py:toy_agent'}", "make_deps(ctx)"),
        ("{target: {object: 'agent.py:toy_agent', deps: 'agent.py:no_context'}}", "make_deps(ctx)"),
        ("{endpoint: 'http://localhost:1/v1/chat/completions'}", "${database}"),
        ("{endpoint: 'http://localhost:1', request: {q: '${message}'}, reply: {text: a}}", "${database}"),
    ],
)
def test_an_agent_that_would_not_get_the_path_is_refused(project: Project, agent: str, remedy: str) -> None:
    install_toy(project)
    project.agent("""
        import toy

        def text(message): return "Done."
        def make_agent(): return text
        def no_context(): return 1
        async def play(run, text): return "Done."
        toy_agent = toy.Agent(play)
    """)
    set_up(project, agent, expect={"state": {"changed": {}}})
    for command in ("validate", "run"):
        project.call(command).refuses("scenarios/suite.yaml:1", "expose", remedy)


def test_a_scenario_without_a_database_leaves_the_key_out_of_the_request(project: Project) -> None:
    request = '{say: "${message}", database: "${database}"}'
    with LocalServer(respond_json({"text": "Hi."})) as server:
        agent = f"{{endpoint: '{server.url}', request: {request}, reply: {{text: text}}}}"
        set_up(project, agent, state=None, expect={"output": {"contains": ["Hi"]}})
        assert project.run(env={"database": "not this"}).code == 0
    assert [asked.json for asked in server.requests] == [{"say": "ORD-1"}]
