"""``intercept``: functions of the agent's that the scenario answers for, with no line of it changed."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.toy import install_toy

TOOLS = """
import asyncio, functools, pathlib

def _ran(name):
    with pathlib.Path("REAL").open("a") as log:
        log.write(name + "\\n")

def get_order(id, *, verbose=False):
    "The real one."
    _ran("get_order")
    return {"status": "real"}

async def refund(id: str, amount: float = 1.0):
    _ran("refund")
    return "real"

def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@traced
def cancel(id):
    _ran("cancel")
    return "real"

class Shop:
    def __init__(self, db):
        self.db = db
    def stock(self, item):
        _ran("stock")
        return 0
    @staticmethod
    def hours(day):
        _ran("hours")
        return "real"
    @classmethod
    def make(cls, name, *items, **more):
        _ran("make")
        return "real"

TABLE = {"get_order": get_order}
"""
AGENT = """
import asyncio, json, pathlib
from shop.tools import TABLE, Shop, cancel, get_order, refund

async def agent(messages):
    said = messages[-1]["content"]
    made = []
    order = TABLE["get_order"](said)
    made.append(["get_order", {"id": said}])
    if order["status"] == "lost":
        money = await asyncio.gather(refund(said, amount=2.5), refund(said))
        made += [["refund", {"id": said, "amount": 2.5}], ["refund", {"id": said}]]
        await asyncio.to_thread(cancel, said)
        made.append(["cancel", {"id": said}])
    with pathlib.Path("record").open("a") as record:
        for each in made:
            record.write(json.dumps(each) + "\\n")
    return f"{said} is {order['status']}"
"""
SUITE = """
defaults: {epochs: 2}
scenarios:
- id: shipped
  turns:
  - {user: ORD-1, expect: {output: {contains: [shipped]}}}
  - {user: ORD-2, expect: {output: {contains: [lost]}, tool_calls: {calls: [{name: refund}, {name: cancel}]}}}
  tools:
    get_order: {sequence: [{returns: {status: shipped}}, {returns: {status: lost}}]}
    refund: {returns: ok}
    cancel: {returns: ok}
- id: never-refunded
  turns: [ORD-3]
  expect: {tool_calls: {forbidden: [{name: refund}]}}
  tools: {get_order: {returns: {status: shipped, id: "${args.id}"}}, refund: {returns: ok}}
"""
INTERCEPT = (
    "{get_order: 'shop/tools.py:get_order', refund: 'shop/tools.py:refund', cancel: 'shop.tools:cancel'}"
)


PLACES = ["", f", interpreter: '{sys.executable}'"]


def shop(
    project: Project,
    agent: str = AGENT,
    suite: str = SUITE,
    intercept: str = INTERCEPT,
    more: str = "",
    where: str = "",
) -> None:
    project.write("shop/__init__.py", "")
    project.write("shop/tools.py", TOOLS)
    project.agent(agent)
    project.scenarios(suite)
    project.write(
        "agenteval.yaml",
        f"agent: {{name: bot, target: 'agent.py:agent', intercept: {intercept}{where}}}\nmetrics: []\n{more}",
    )


def calls(project: Project) -> list[str]:
    return [
        json.dumps([call["name"], call["args"]])
        for each in project.results()["scenarios"]
        for sample in each["samples"]
        for turn in sample["turns"]
        for call in turn["tool_calls"]
    ]


def none_ran(project: Project) -> bool:
    return not (project.root / "REAL").exists()


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_red_with_a_bug_and_green_without_and_all_calls_are_the_agents_own(
    project: Project, where: str
) -> None:
    shop(project, where=where)
    assert "get_order, refund, cancel" in project.call("validate").out
    done = project.run()
    assert done.code == 0, done.all
    assert sorted(calls(project)) == sorted((project.root / "record").read_text("utf-8").splitlines())
    assert none_ran(project)

    project.agent(AGENT.replace("asyncio.to_thread(cancel, said)", "asyncio.sleep(0)") + "# with a bug\n")
    assert project.run().code == 1
    first, second = project.results()["scenarios"]
    assert [failed_checks(sample) for sample in first["samples"]] == [{(1, "tool_calls")}] * 2
    assert second["verdict"] == "passed"
    assert none_ran(project)


THREADS = """
import _thread, contextvars, threading
from concurrent.futures import ThreadPoolExecutor
from shop.tools import cancel

def swallow(call, *args):
    try:
        call(*args)
    except Exception:
        pass

class Bare:  # a thread that nobody hands a context to: as a library written in C starts it
    def __init__(self, call, *args):
        self.ended = threading.Event()
        self.call = call, args
        _thread.start_new_thread(self.run, ())

    def run(self):
        swallow(self.call[0], *self.call[1])
        self.ended.set()

def thread():
    started = threading.Thread(target=swallow, args=(cancel, 'x'))
    started.start()
    started.join()

HOW = {
    "thread": thread,
    "pool": lambda: ThreadPoolExecutor().submit(cancel, 'x').result(),
    "pool, swallowed": lambda: swallow(ThreadPoolExecutor().submit(cancel, 'x').result),
    "map of a pool": lambda: [*ThreadPoolExecutor().map(cancel, ['x'])],
    "bare, in a context": lambda: Bare(contextvars.copy_context().run, cancel, 'x').ended.wait(30),
    "bare": lambda: Bare(cancel, 'x').ended.wait(30),
}

def agent(messages, ctx):
    HOW[ctx.scenario_id]()
    return "Done."
"""
FOLLOWED = ("thread", "pool", "pool, swallowed", "map of a pool", "bare, in a context")
CANCELLED = "tools: {cancel: {returns: ok}}, expect: {tool_calls: {forbidden: [{name: cancel}]}}"


def test_a_thread_that_the_agent_starts_is_of_its_conversation(project: Project) -> None:
    rows = "".join(f"- {{id: '{how}', turns: [Hi], {CANCELLED}}}\n" for how in FOLLOWED)
    shop(project, THREADS, f"scenarios:\n{rows}")
    done = project.run()
    assert done.code == 1, done.all
    for how in FOLLOWED:
        (call,) = project.sample(how)["turns"][0]["tool_calls"]
        assert (call["name"], call["args"]) == ("cancel", {"id": "x"}), how
        assert failed_checks(project.sample(how)) == {(None, "tool_calls")}, how
    assert none_ran(project)


def test_where_the_conversation_is_not_known_a_call_raises_and_nothing_is_judged(project: Project) -> None:
    shop(project, THREADS, f"{{id: bare, turns: [Hi], {CANCELLED}}}")
    done = project.run()
    assert done.code == 3, done.all
    assert none_ran(project)
    assert "thread" in project.sample()["reason"]


MEETING = """
import _thread, contextvars, threading, time
from shop.tools import cancel

met = threading.Barrier(2, timeout=30)

def swallow(call, *args):
    try:
        call(*args)
    except Exception:
        pass

played = set()

def agent(messages, ctx):
    # What was lost is played once more: with a bug that is the one alone, without it both are.
    meets = ctx.scenario_id not in played or not %s
    played.add(ctx.scenario_id)
    if meets:
        met.wait()
    if ctx.scenario_id == "threaded":
        run = %s
        ended = threading.Event()
        work = lambda: (run(swallow, cancel, "x"), ended.set())
        _thread.start_new_thread(work, ())
        ended.wait(30)
    elif %s:
        cancel("y")
    if meets:
        met.wait()
    return "Done."
"""
BARE, IN_A_CONTEXT = "lambda call, *args: call(*args)", "contextvars.copy_context().run"


@pytest.mark.parametrize("thread", [BARE, IN_A_CONTEXT], ids=["bare", "followed"])
@pytest.mark.parametrize("has_bug", [True, False])
def test_a_thread_of_one_conversation_does_not_take_back_what_another_did(
    project: Project, thread: str, has_bug: bool
) -> None:
    """The recorded call stands; where there is none, one may have been made by that thread."""
    rules = "turns: [Hi], tools: {cancel: {returns: ok}}"
    forbidden = "expect: {tool_calls: {forbidden: [{name: cancel}]}}"
    called = "expect: {tool_calls: {calls: [{name: cancel}]}}"
    suite = f"scenarios:\n- {{id: threaded, {rules}, {called}}}\n- {{id: other, {rules}, {forbidden}}}\n"
    shop(project, MEETING % (has_bug, thread, has_bug), suite)
    done = project.run()
    verdicts = {each["id"]: each["verdict"] for each in project.results()["scenarios"]}
    unknown = "inconclusive" if thread == BARE else "passed"
    assert verdicts == {"threaded": unknown, "other": "failed" if has_bug else unknown}, done.all
    assert failed_checks(project.sample("other")) == ({(None, "tool_calls")} if has_bug else set())
    assert "errored conversation" not in done.out  # that would forget what was not seen
    if thread == BARE:
        detail = " ".join(done.out.split())
        one, other = "threaded · bot · epoch 1", "other · bot · epoch 1"
        assert f"{one}; {other}" in detail or f"{other}; {one}" in detail


def test_a_failing_tool_raises_where_the_agent_called_its_function(project: Project) -> None:
    agent = """
from shop.tools import get_order

def agent(messages):
    try:
        return str(get_order("1"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""
    suite = """
    scenarios:
    - id: raised
      turns: [Hi]
      tools: {get_order: {error: no such order}}
      expect: {output: {contains: ["ToolError: no such order"]}}
    - id: returned
      turns: [Hi]
      tools: {get_order: {returns: {error: none}}}
      expect: {output: {contains: ["{'error': 'none'}"]}}
    """
    shop(project, agent, suite)
    done = project.run()
    assert done.code == 0, done.all


def test_methods_and_odd_arguments_are_bound_by_their_names(project: Project) -> None:
    agent = """
import datetime, dataclasses
from shop.tools import Shop, get_order

@dataclasses.dataclass
class Item:
    name: str

def agent(messages):
    shop = Shop(object())
    shop.stock(Item("tea"))
    Shop.hours(datetime.date(2026, 11, 23))
    Shop.make("corner", 1, 2, size=object(), open=True)
    try:
        get_order()
    except TypeError as error:
        return str(error)
"""
    methods = ", ".join(f"{name}: 'shop/tools.py:Shop.{name}'" for name in ("stock", "hours", "make"))
    intercept = f"{{get_order: 'shop/tools.py:get_order', {methods}}}"
    suite = """
    id: a
    turns: [Hi]
    tools: {stock: {returns: 3}, hours: {returns: 9-5}, make: {returns: ok}, get_order: {returns: 1}}
    expect: {output: {contains: ["get_order() missing a required argument: 'id'"]}}
    """
    shop(project, agent, suite, intercept)
    done = project.run()
    assert done.code == 0, done.all
    assert calls(project) == [
        '["stock", {"item": {"name": "tea"}}]',
        '["hours", {"day": "2026-11-23"}]',
        '["make", {"name": "corner", "items": [1, 2], "open": true}]',
    ]
    assert none_ran(project)


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_passthrough_runs_the_real_function_and_records_it(project: Project, where: str) -> None:
    shop(
        project,
        where=where,
        suite="{id: a, turns: [ORD-1], expect: {output: {contains: [real]}}}",
        more="unmocked_tools: passthrough\n",
    )
    done = project.run()
    assert done.code == 0, done.all
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert (call["name"], call["args"], call["result"], call["observed"]) == (
        "get_order",
        {"id": "ORD-1"},
        {"status": "real"},
        True,
    )
    assert (project.root / "REAL").read_text() == "get_order\n"


@pytest.mark.parametrize(
    ("target", "facts"),
    [
        ("shop/tools.py:get_ordr", ("'get_ordr'",)),
        ("shop/tool.py:get_order", ("'shop/tool.py'",)),
        ("shop/tools.py:Shop", ("Shop", "class")),
        ("shop/tools.py:TABLE", ("dict",)),
        ("math:floor", ("builtin_function_or_method",)),
        ("get_order", ("attribute",)),
    ],
)
@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_what_cannot_be_intercepted_is_refused_at_its_line(
    project: Project, target: str, facts: tuple[str, ...], where: str
) -> None:
    shop(project, intercept=f"{{get_order: '{target}'}}", where=where)
    for command in ("run", "validate"):
        done = project.call(command)
        if command == "run" or facts == ("attribute",) or done.code:
            done.refuses("agenteval.yaml:1", *facts)


def test_two_tools_of_one_function_and_other_agents_are_refused(project: Project) -> None:
    shop(project, intercept="{a: 'shop/tools.py:get_order', b: 'shop.tools:get_order'}")
    project.run().refuses("agenteval.yaml:1", "'a'", "'b'")
    agent = "agent: {endpoint: 'http://127.0.0.1:9/', intercept: {a: 'b.py:c'}}"
    project.write("agenteval.yaml", f"{agent}\nmetrics: []\n")
    project.run().refuses("agenteval.yaml:1", "http", "intercept")


@pytest.mark.parametrize("call", ["get_order('1')", "ctx.call_tool_sync('get_order', {'id': '1'})"])
def test_an_async_mock_of_a_call_that_blocks_its_loop_is_refused(project: Project, call: str) -> None:
    project.write("scenarios/mocks.py", "async def mock(args):\n    return {'status': 'ok'}\n")
    agent = f"from shop.tools import get_order\n\nasync def agent(messages, ctx):\n    return str({call})\n"
    shop(project, agent, "{id: a, turns: [Hi], tools: {get_order: {python: 'mocks.py:mock'}}, checks: none}")
    done = project.run()
    assert done.code == 2, done.all
    assert all(fact in done.err for fact in ("'get_order'", "await", "async")), done.err
    project.agent(agent.replace("async def agent", "def agent"))
    assert project.run().code == 0


@pytest.mark.parametrize(
    ("names", "more", "code"),
    [(("get_order",), "", 3), (("get_order", "cancel"), "", 1), (("get_order", "cancel"), ", calls: all", 1)],
    ids=["one of two", "both", "both, calls: all"],
)
def test_a_tool_that_is_not_intercepted_may_be_called_unseen(
    project: Project, names: tuple[str, ...], more: str, code: int
) -> None:
    """The agent calls a tool that the scenario forbids: the real one, if it is not intercepted."""
    functions = ", ".join(f"{name}: 'shop/tools.py:{name}'" for name in names)
    agent = "from shop.tools import cancel, get_order\n\n"
    agent += "def agent(messages):\n    get_order('A')\n    cancel('A')\n    return 'Done.'\n"
    suite = "id: a\nturns: [Hi]\ntools: {get_order: {returns: {status: open}}, cancel: {returns: yes}}\n"
    suite += "expect: {tool_calls: {forbidden: [{name: cancel}]}}\n"
    shop(project, agent, suite, f"{{{functions}}}", where=more)
    done = project.run()
    assert done.code == code, done.all
    assert failed_checks(project.sample()) == ({(None, "tool_calls")} if code == 1 else set())
    assert ("intercept" in project.sample()["reason"]) is (code == 3)


def test_a_function_that_caches_its_results_is_refused(project: Project) -> None:
    project.agent("""
        from functools import lru_cache

        @lru_cache
        def get_order(id):
            return id

        def agent(message):
            return get_order("1")
        """)
    agent = "{name: bot, target: 'agent.py:agent', intercept: {get_order: 'agent.py:get_order'}}"
    project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    project.call("validate").refuses("agenteval.yaml:1", "get_order", "functools.lru_cache")


WRAPPED = """
import functools, pathlib
from toy import Tool

def _ran(name):
    with pathlib.Path("REAL").open("a") as log:
        log.write(name + "\\n")

class Logged:  # a decorator of the author's own, as a class
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

def order(id: str):
    _ran("order")
    return {"status": "real"}

async def order_later(id: str):
    _ran("order_later")
    return {"status": "real"}

get_order = Tool(order, order_later)

@Logged
def cancel(id: str):
    _ran("cancel")
    return "real"
"""
BY_HAND = """
import asyncio
from shop.tools import cancel, get_order

async def agent(messages):
    said = messages[-1]["content"]
    found = {
        "by hand": lambda: get_order.func(said),
        "as the framework does": lambda: get_order.run({"id": said}),
    }
    status = (await get_order.coroutine(said) if said == "awaited" else found[said]())["status"]
    %s
    return f"It is {status}."
"""
EACH = """
scenarios:
- id: a
  turns: [by hand, awaited, as the framework does]
  tools: {order: {returns: {status: shipped}}, cancel: {returns: ok}}
  expect:
    output: {contains: [shipped]}
    tool_calls: {calls: [{name: order, args: {id: {$any: true}}, times: 3}], forbidden: [{name: cancel}]}
"""


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_a_function_that_a_framework_made_a_tool_of_is_taken_from_inside_it(
    project: Project, where: str
) -> None:
    """Both of its functions, and a call that the framework carried out is not recorded twice."""
    install_toy(project)
    wrapped = "{order: 'shop/tools.py:get_order', cancel: 'shop/tools.py:cancel'}"
    shop(project, BY_HAND % "pass", EACH, wrapped, where=where)
    project.write("shop/tools.py", WRAPPED)
    done = project.run()
    assert done.code == 0, done.all
    project.agent(BY_HAND % "cancel(id=said)")
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "tool_calls")}
    assert none_ran(project)


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_of_a_call_that_is_left_to_the_agent_framework_and_function_are_one(
    project: Project, where: str
) -> None:
    install_toy(project)
    agent = "from shop.tools import get_order\n\ndef agent(message: str):\n"
    agent += "    return get_order.run({'id': message})['status']\n"
    called = "tool_calls: {calls: [{name: order, times: 1}]}"
    suite = f"{{id: a, turns: [ORD-1], expect: {{output: {{contains: [real]}}, {called}}}}}"
    more = "unmocked_tools: passthrough\n"
    shop(project, agent, suite, "{order: 'shop/tools.py:get_order'}", more, where)
    project.write("shop/tools.py", WRAPPED)
    done = project.run()
    assert done.code == 0, done.all
    assert calls(project) == ['["order", {"id": "ORD-1"}]']
    assert (project.root / "REAL").read_text() == "order\n"
