"""``run --record-tools FILE``: what the agent's own tools answered, as mocks."""

from __future__ import annotations

import json
import signal
import stat
import sys

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Request, answer, respond_json
from tests.support.patience import eventually
from tests.support.recorded_tools import (
    AGENT,
    CONFIG,
    comments,
    real_calls,
    record,
    recorded,
    set_up,
    use_recording,
)
from tests.support.toy import PLACES, TOY_TOOLS, install_toy

ORDER_2 = {"id": "ORD-2", "status": "shipped", "total": 8}


def test_the_mocks_are_what_the_real_tools_answered(project: Project) -> None:
    set_up(project)
    done = record(project)
    assert done.code == 0, done.all
    assert "mocks.yaml" in done.err
    tools = recorded(project)
    assert list(tools) == ["cancel_order", "get_order", "list_orders"]
    assert tools["cancel_order"] == {"rules": [{"when": {"args": {"id": "ORD-1"}}, "returns": {"ok": True}}]}
    pending = {"id": "ORD-1", "status": "pending", "total": 25.5}
    assert tools["get_order"]["rules"] == [
        # More arguments first: a rule also answers calls with further ones.
        {
            "when": {"args": {"id": "ORD-2", "verbose": True}},
            "returns": {**ORDER_2, "items": [{"sku": "A", "qty": 1}]},
        },
        {
            "when": {"args": {"id": "ORD-1"}},
            "sequence": [{"returns": pending}, {"returns": {**pending, "status": "cancelled"}}],
        },
        {"when": {"args": {"id": "ORD-2"}}, "returns": ORDER_2},
        {"when": {"args": {"id": "ORD-9"}}, "error": "LookupError: no order ORD-9"},
    ]
    # The function takes no arguments, so that a rule without `when` swallows nothing.
    assert tools["list_orders"]["parameters"]["additionalProperties"] is False
    assert tools["list_orders"]["rules"] == [{"returns": ["ORD-1", "ORD-2"]}]
    if sys.platform != "win32":
        assert stat.S_IMODE((project.root / "mocks.yaml").stat().st_mode) == 0o600


def test_the_same_agent_plays_with_the_mocks_and_its_bug_is_red_at_its_turn(project: Project) -> None:
    set_up(project)
    assert record(project).code == 0
    (project.root / "REAL").unlink()
    turns = [
        {"user": "status of ORD-2", "expect": {"output": {"contains": ["shipped"]}}},
        {"user": "items of ORD-2", "expect": {"output": {"contains": ["shipped"]}}},
        {"user": "which orders besides ORD-1", "expect": {"output": {"contains": ["ORD-2"]}}},
        {"user": "status of ORD-9", "expect": {"output": {"contains": ["no order ORD-9"]}}},
        {
            "user": "cancel ORD-1",
            "expect": {
                "tool_calls": {"calls": [{"name": "cancel_order", "args": {"id": "ORD-1"}, "result": "ok"}]},
                "output": {"contains": ["cancelled"]},
            },
        },
    ]
    use_recording(project, json.dumps([{"id": "mocked", "turns": turns}]))
    assert project.call("validate").code == 0
    done = project.run()
    assert done.code == 0, done.all
    project.agent(AGENT.replace("cancel_order(id)", "pass"))
    buggy = project.run()
    assert buggy.code == 1, buggy.all
    assert failed_checks(project.sample()) == {(4, "tool_calls")}
    assert real_calls(project) == []


def test_a_recording_is_the_same_whatever_ends_first(project: Project) -> None:
    """Of answers that differ between conversations, the first in the order of the run is kept."""
    set_up(project)
    project.agent(
        """
        import shop, threading
        ENDED = [threading.Event() for _ in range(3)]
        def agent(messages, ctx):
            if ctx.epoch < 2:
                ENDED[ctx.epoch + 1].wait(60)  # the last conversation ends first
            answer = shop.get_order(id=Epoch(ctx.epoch))
            ENDED[ctx.epoch].set()
            return str(answer)
        class Epoch(str):
            def __new__(cls, epoch):
                made = super().__new__(cls, "ORD-1")
                made.epoch = epoch
                return made
        """
    )
    project.write(
        "shop.py",
        """
        def get_order(id):
            return {"id": str(id), "epoch": id.epoch}
        def list_orders(): ...
        def cancel_order(id): ...
        """,
    )
    done = record(project, "--epochs", "3")
    assert done.code == 0, done.all
    assert recorded(project)["get_order"]["rules"] == [
        {"when": {"args": {"id": "ORD-1"}}, "returns": {"id": "ORD-1", "epoch": 0}}
    ]
    assert "2 other conversations got another answer" in comments(project)
    assert "other conversations got other answers" in done.err
    first = (project.root / "mocks.yaml").read_bytes()
    assert record(project, "--epochs", "3").code == 0  # over its own file
    assert (project.root / "mocks.yaml").read_bytes() == first


def test_several_agents_count_in_the_order_of_the_run(project: Project) -> None:
    project.write(
        "one.py", "def get_order(id): return 1\ndef agent(question: str): return str(get_order('A'))\n"
    )
    project.write(
        "two.py", "def get_order(id): return 2\ndef agent(question: str): return str(get_order('A'))\n"
    )
    project.write(
        "agenteval.yaml",
        """
        agent: {name: one, target: "one.py:agent", intercept: {get_order: "one.py:get_order"}}
        compare: [{name: two, target: "two.py:agent", intercept: {get_order: "two.py:get_order"}}]
        metrics: []
        unmocked_tools: passthrough
        """,
    )
    project.scenarios("id: a\nchecks: none\nturns: [hi]\n")
    done = record(project)
    assert done.code == 0, done.all
    assert recorded(project)["get_order"]["rules"] == [{"when": {"args": {"id": "A"}}, "returns": 1}]
    assert "1 other conversation got another answer" in comments(project)


def test_an_http_agent_that_reports_its_messages(project: Project) -> None:
    calls = [
        ("c1", "get_order", '{"id": "ORD-2"}', '{"id": "ORD-2", "note": "costs ${args.id}"}'),
        ("c2", "get_order", '{"id": "ORD-3", "lines": {"$in": [1]}}', "{}"),
        ("c3", "get_order", '{"id": ', "{}"),
        ("c4", "list_orders", "{}", '["ORD-2"]'),
        ("c5", "search", "{}", "all"),
        ("c6", "search", '{"text": "a"}', "some"),
        ("c7", "get_order", '{"id": "ORD-4"}', None),
        ("c8", "get_order", '{"id": "ORD-5"}', "x" * 30_000),
    ]
    trace = []
    for name, tool, args, result in calls:
        call = {"id": name, "type": "function", "function": {"name": tool, "arguments": args}}
        trace.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if result is not None:
            trace.append({"role": "tool", "tool_call_id": name, "content": result})
    trace.append({"role": "assistant", "content": "shipped"})
    with LocalServer(respond_json({"trace": trace})) as server:
        endpoint = f"{{name: bot, endpoint: '{server.url}/chat', observed_messages: trace}}"
        project.write("agenteval.yaml", f"agent: {endpoint}\nmetrics: []\nunmocked_tools: passthrough\n")
        project.scenarios("id: h\nturns: [Hi]\nchecks: none\n")
        done = record(project)
    assert done.code == 0, done.all
    tools = recorded(project)
    assert tools["get_order"]["rules"] == [
        {"when": {"args": {"id": "ORD-2"}}, "returns": '{"id": "ORD-2", "note": "costs $${args.id}"}'}
    ]
    # No name of an argument is known for `list_orders`, and one for `search`.
    assert list(tools) == ["get_order", "search"]
    assert tools["search"]["rules"] == [
        {"when": {"args": {"text": "a"}}, "returns": "some"},
        {"when": {"args": {"text": {"$optional": None}}}, "returns": "all"},
    ]
    head = comments(project)
    for reason in (
        "begins with $",
        "arguments are not known",
        "parameters are not known",
        "result is not known",
    ):
        assert f"1 call: {reason}" in head or reason in head, head
    assert "longer than 20,000" in head
    assert head.count("Left out: 1 call") == 5
    assert "5 calls left out" in done.err


def test_the_mocks_answer_an_http_agent_that_asks_agenteval(project: Project) -> None:
    """What a service with tools of its own was told is what the same service is told by the mocks."""
    served: list[str] = []

    def own(_: Request) -> Behaviour:
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "get_order", "arguments": '{"id": "ORD-2"}'},
        }
        note = "costs ${args.id} and $${x}"
        told = {"role": "tool", "tool_call_id": "c", "content": json.dumps({"note": note, "n": "1e5"})}
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        return respond_json({"trace": [asked, told, {"role": "assistant", "content": note}]})

    def asks(request: Request) -> Behaviour:
        last = request.json["messages"][-1]
        if last["role"] == "tool":
            served.append(last["content"])
            return respond_json({"choices": [{"message": {"role": "assistant", "content": "done"}}]})
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "get_order", "arguments": '{"id": "ORD-2"}'},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return respond_json({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    with LocalServer(answer(own)) as server:
        endpoint = f"{{name: bot, endpoint: '{server.url}/chat', observed_messages: trace}}"
        project.write("agenteval.yaml", f"agent: {endpoint}\nmetrics: []\nunmocked_tools: passthrough\n")
        project.scenarios("id: h\nturns: [Hi]\nchecks: none\n")
        assert record(project).code == 0
    with LocalServer(answer(asks)) as server:
        use_recording(project, "[{id: m, turns: [Hi], checks: none, matrix: {a: [1]}}]")
        project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{server.url}/chat'}}\nmetrics: []\n")
        done = project.run()
    assert done.code == 0, done.all
    assert [json.loads(text) for text in served] == [{"note": "costs ${args.id} and $${x}", "n": "1e5"}]


def test_secrets_are_masked_and_counted(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os
        def get_token(user):
            return {"user": user, "token": os.environ["SHOP_TOKEN"], "pin": "PIN 4711"}
        def agent(question: str):
            get_token(os.environ["SHOP_TOKEN"])
            return str(len(get_token("ann")))
        """,
    )
    project.write(
        "agenteval.yaml",
        """
        agent:
          name: bot
          target: agent.py:agent
          intercept: {get_token: "agent.py:get_token"}
          secrets: [PIN 4711]
        metrics: []
        unmocked_tools: passthrough
        """,
    )
    project.scenarios("id: a\nchecks: none\nturns: [hi]\n")
    env = {"SHOP_TOKEN": "abc123def456ghi789"}
    done = project.call("run", "--record-tools", "mocks.yaml", env=env)
    assert done.code == 0, done.all
    text = (project.root / "mocks.yaml").read_text("utf-8")
    assert env["SHOP_TOKEN"] not in text
    assert "4711" not in text
    assert recorded(project)["get_token"]["rules"] == [
        {"when": {"args": {"user": "ann"}}, "returns": {"user": "ann", "token": "***", "pin": "***"}}
    ]
    assert "an argument contains a masked secret" in comments(project)
    assert "1 answer with ***" in comments(project)
    # The real secret stands where the mask is, and is no difference.
    checked = project.call("tools", "check", "mocks.yaml", env=env)
    assert checked.code == 0, checked.all
    assert env["SHOP_TOKEN"] not in checked.all


def test_a_run_that_fails_records_what_it_saw(project: Project) -> None:
    set_up(project, "status of ORD-2", "no order here")
    done = record(project)
    assert done.code == 1, done.all
    assert [rule["returns"] for rule in recorded(project)["get_order"]["rules"]] == [ORDER_2]


def test_a_run_that_is_cut_off_and_resumed(project: Project) -> None:
    set_up(project)
    project.write("agenteval.yaml", CONFIG + "unmocked_tools: passthrough\nagent_concurrency: 1\n")
    project.agent(
        AGENT
        + """
import pathlib, time
asks = agent
async def agent(question: str) -> str:
    answer = await asks(question)
    if "ORD-1" in question and not pathlib.Path("second time").exists():
        pathlib.Path("waits").touch()
        time.sleep(600)
    return answer
"""
    )
    project.scenarios(
        """
        defaults: {checks: none}
        scenarios: [{id: a, turns: [status of ORD-2]}, {id: b, turns: [status of ORD-1]}]
        """
    )
    started = project.start("run", "--record-tools", "mocks.yaml")
    eventually((project.root / "waits").exists)
    started.send(signal.SIGINT)
    done = started.wait()
    assert done.code == 130, done.all
    # The second conversation was in a turn; its tool had answered.
    ids = {rule["when"]["args"]["id"] for rule in recorded(project)["get_order"]["rules"]}
    assert "ORD-2" in ids
    project.write("second time", "")
    reminded = project.call("run", "--resume", "latest")
    assert reminded.code == 0, reminded.all
    assert "--record-tools FILE" in reminded.err
    again = project.call("run", "--resume", "latest", "--record-tools", "mocks.yaml")
    assert again.code == 0, again.all
    rules = recorded(project)["get_order"]["rules"]
    assert [rule["when"]["args"]["id"] for rule in rules] == ["ORD-1", "ORD-2"]
    assert all("sequence" not in rule for rule in rules)


def test_a_run_without_calls_writes_nothing(project: Project) -> None:
    set_up(project)
    project.agent("def agent(question: str): return 'hello'\n")
    done = record(project)
    assert done.code == 0, done.all
    assert not (project.root / "mocks.yaml").exists()
    assert "was not written" in done.err


def test_the_scenarios_own_mocks_are_not_recorded(project: Project) -> None:
    set_up(project, "status of ORD-2", "cancel ORD-1")
    path = project.root / "scenarios/suite.yaml"
    path.write_text(path.read_text("utf-8") + "\ntools: {cancel_order: {returns: {ok: false}}}\n")
    assert record(project).code == 0
    assert list(recorded(project)) == ["get_order"]


def test_what_is_refused_is_refused_before_the_run(project: Project) -> None:
    set_up(project)
    assert record(project).code == 0
    (project.root / "REAL").unlink()
    text = (project.root / "mocks.yaml").read_text("utf-8")
    project.write("edited.yaml", text.replace("shipped", "lost"))
    project.write("mine.yaml", "a: 1\n")
    (project.root / "folder").mkdir()
    for name, facts in {
        "edited.yaml": ("edited",),
        "mine.yaml": ("exists",),
        "folder": ("folder",),
        "gone/mocks.yaml": ("no folder", "gone"),
        "agent.py": ("exists",),
    }.items():
        done = project.call("run", "--record-tools", name)
        assert done.code == 2, done.all
        for fact in (name, *facts):
            assert fact in done.err
    for options, fact in {
        ("--replay", "x.jsonl"): "--replay",
        ("--watch",): "--watch",
        ("--report", "json=mocks.yaml"): "json report",
    }.items():
        done = project.call("run", "--record-tools", "mocks.yaml", *options)
        assert done.code == 2, done.all
        assert "--record-tools" in done.err
        assert fact in done.err
    project.write("agenteval.yaml", CONFIG)
    done = project.call("run", "--record-tools", "mocks.yaml")
    assert done.code == 2, done.all
    assert "passthrough" in done.err
    assert real_calls(project) == []
    assert (project.root / "mocks.yaml").read_text("utf-8") == text
    assert (project.root / "mine.yaml").read_text("utf-8") == "a: 1\n"


def test_a_file_that_can_no_longer_be_written_is_never_green(project: Project) -> None:
    set_up(project, "status of ORD-2")
    edits = 'pathlib.Path("mocks.yaml").write_text("mine")\n    id = re'
    project.agent("import pathlib\n" + AGENT.replace("id = re", edits))
    done = record(project)
    assert done.code == 3, done.all
    assert "was not written" in done.err
    assert (project.root / "mocks.yaml").read_text("utf-8") == "mine"


@pytest.mark.parametrize("where", PLACES)
def test_what_a_framework_knows_of_its_tools_goes_along(project: Project, where: str) -> None:
    install_toy(project)
    project.agent(
        TOY_TOOLS
        + """
get_order.metadata = {"readOnlyHint": True}
cancel_order.metadata = {"readOnlyHint": False}

async def play(run, text):
    await run.call("cancel_order", id="A-8")
    return (await run.call("get_order", id="A-7"))["status"]

agent = Agent(play, get_order, cancel_order)
"""
    )
    project.config(f"agent: {{target: 'agent.py:agent'{where}}}\nunmocked_tools: passthrough\n", target="")
    project.scenarios("id: a\nturns: [hello]\nchecks: none\n")
    done = record(project)
    assert done.code == 0, done.all
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}}
    assert recorded(project) == {
        "cancel_order": {
            "description": "Cancel an order.",
            "parameters": parameters,
            "writes": True,
            "rules": [{"when": {"args": {"id": "A-8"}}, "returns": {"cancelled": "really"}}],
        },
        "get_order": {
            "description": "Look an order up.",
            "parameters": parameters,
            "reads": True,
            "rules": [{"when": {"args": {"id": "A-7"}}, "returns": {"status": "real"}}],
        },
    }
    marks = (project.root / "marks").read_text("utf-8")
    use_recording(project, "[{id: b, turns: [hello], expect: {output: {contains: [real]}}}]")
    project.config(f"agent: {{target: 'agent.py:agent'{where}}}\nmetrics: []\n", target="")
    mocked = project.run()
    assert mocked.code == 0, mocked.all
    assert (project.root / "marks").read_text("utf-8").count("order") == marks.count("order") == 2
