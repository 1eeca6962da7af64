"""Agents that are objects of a framework, as they are: in agenteval's process and in one of their own."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.toy import install_toy

TOOLS = """
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
import toy
from toy import Agent

def get_order(id):
    "Look an order up."
    toy.mark("get_order", id)
    return {"status": "real"}

def cancel_order(id):
    "Cancel an order."
    toy.mark("cancel_order", id)
    return {"cancelled": "really"}
"""

SHOP = """
async def hastily(run, text):
    if "cancel" in text:
        await run.call("cancel_order", id="A-7")
        return "It is cancelled."
    order = await run.call("get_order", id="A-7")
    return f"It is {order['status']} ({len(run.said)})."

async def carefully(run, text):
    order = await run.call("get_order", id="A-7")
    if order["status"] == "shipped":
        return f"It is shipped ({len(run.said)})."
    await run.call("cancel_order", id="A-7")
    return "It is cancelled."

hasty = Agent(hastily, get_order, cancel_order)
careful = Agent(carefully, get_order, cancel_order)
"""

SUITE = """
id: cancel
turns:
  - {user: Where is my order?, expect: {output: {contains: [shipped]}}}
  - user: Then cancel it.
    expect: {tool_calls: {match: strict, calls: [{name: get_order, args: {id: A-7}}]}}
tools:
  get_order: {returns: {status: shipped}}
  cancel_order: {returns: {cancelled: true}}
"""

PLACES = [
    "here",
    pytest.param("elsewhere", marks=pytest.mark.skipif(sys.platform == "win32", reason="process groups")),
]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """What the configuration says of where the agent runs."""
    return f", interpreter: '{sys.executable}'" if request.param == "elsewhere" else ""


def shop(project: Project, code: str, target: str, place: str, more: str = "") -> None:
    install_toy(project)
    project.agent(TOOLS + code)
    project.config(f"agent: {{name: bot, target: {target}{place}}}\nmetrics: []\n{more}", target="")


def ran(project: Project) -> list[str]:
    """The real tools that ran."""
    marks = project.root / "marks"
    lines = marks.read_text().splitlines() if marks.exists() else []
    return [line for line in lines if not line.startswith("closed")]


def test_the_bug_is_red_where_it_is_and_the_fix_is_green(project: Project, place: str) -> None:
    shop(project, SHOP, "agent.py:hasty", place)
    project.scenarios(SUITE)
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(1, "tool_calls")}
    calls = [call for turn in project.sample()["turns"] for call in turn["tool_calls"]]
    assert [call["name"] for call in calls] == ["get_order", "cancel_order"]  # each counts once
    assert calls[1]["result"] == {"cancelled": True}
    assert project.sample()["turns"][0]["usage"]["input_tokens"] == 3

    shop(project, SHOP, "agent.py:careful", place)
    assert project.run().code == 0
    assert "(2)" in project.sample()["turns"][1]["agent"]  # the second turn saw the first
    assert not ran(project)


def test_two_conversations_at_once_have_a_world_each(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    order = await run.call("get_order", id=text)
    return f"{text}: {order['status']} ({len(run.said)})"

agent = Agent(play, get_order)
"""
    meet = """
import asyncio
waiting = {}

async def answer(args, ctx):
    # Each call waits until the other conversation has made its own.
    await waiting.setdefault(ctx.turn, asyncio.Barrier(2)).wait()
    return {"status": ctx.sample.scenario}
"""
    shop(project, code, "agent.py:agent", place, "agent_concurrency: 2")
    project.write("scenarios/mocks.py", meet)
    one = "  - id: {0}\n    turns: [{0}-1, {0}-2]\n    tools: {{get_order: {{python: 'mocks.py:answer'}}}}\n"
    one += "    expect: {{output: {{contains: ['{0}-1: {0} (1)', '{0}-2: {0} (2)']}}}}\n"
    project.scenarios("scenarios:\n" + one.format("a") + one.format("b"))
    done = project.run()
    assert done.code == 0, done.all
    assert not ran(project)


def test_threads_of_the_agents_own_reach_the_conversation_that_started_them(
    project: Project, place: str
) -> None:
    code = """
pool = ThreadPoolExecutor(2)

async def play(run, text):
    found = []
    bare = threading.Thread(target=lambda: found.append(run.call_sync("get_order", id="bare")))
    bare.start()
    await asyncio.to_thread(bare.join)
    pooled = [pool.submit(run.call_sync, "get_order", id=f"pool-{n}") for n in range(2)]
    found += await asyncio.gather(*map(asyncio.wrap_future, pooled))
    found.append(run.call_sync("get_order", id="blocking"))
    return " ".join(each["status"] for each in found)

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("""
id: threads
turns: [hello]
tools: {get_order: {returns: {status: "${args.id}"}}}
expect:
  output: {contains: ["bare pool-0 pool-1 blocking"]}
  tool_calls: {match: unordered, calls: [
    {name: get_order, args: {id: bare}}, {name: get_order, args: {id: blocking}},
    {name: get_order, args: {id: pool-0}}, {name: get_order, args: {id: pool-1}}]}
""")
    done = project.run()
    assert done.code == 0, done.all
    assert not ran(project)


def test_a_call_that_nobody_can_follow_does_not_run_and_proves_nothing(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    try:
        run.lost("get_order", id="A-7")
    except Exception:
        return "All is well."

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("id: lost\nturns: [hello]\nexpect: {output: {contains: [well]}}\n")
    done = project.run()
    assert done.code == 3, done.all
    assert "get_order was called from a thread that agenteval cannot follow; it was not run" in done.all
    assert not ran(project)


def test_an_error_of_a_tool_reaches_the_agent_as_one(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    return await run.call("get_order", id="A-7")

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("""
id: down
turns: [hello]
tools: {get_order: {error: the shop is closed}}
expect: {output: {contains: ["failed:", "the shop is closed"]}}
""")
    done = project.run()
    assert done.code == 0, done.all


@pytest.mark.parametrize("tools", ["", "tools: {get_order: {returns: {status: shipped}}}\n"])
def test_a_tool_that_the_scenario_does_not_answer_is_its_authors_mistake(
    project: Project, place: str, tools: str
) -> None:
    code = """
async def play(run, text):
    try:
        await run.call("cancel_order", id="A-7")
    except BaseException:
        pass
    return "Done."

agent = Agent(play, get_order, cancel_order)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios(f"id: unmocked\nturns: [hello]\n{tools}expect: {{output: {{contains: [Done]}}}}\n")
    done = project.run()
    assert done.code == 2, done.all
    assert "the agent called the tool 'cancel_order', which is not mocked" in done.all
    assert not ran(project)


def test_a_call_of_a_tool_that_there_is_none_of_is_the_agents_fault(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    run.call_nothing("get_ordr")
    return "Done."

agent = Agent(play, get_order)
more = Agent(play, get_order)
more.more = True
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("id: unknown\nturns: [hello]\ntools: {get_order: {returns: {}}}\nchecks: none\n")
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "unknown_tool")}
    assert [each["detector"] for each in project.sample()["findings"]] == ["unknown_tool"]
    shop(project, code, "agent.py:more", place)  # it may be there all the same
    assert project.run().code == 0


def test_who_hands_over_without_a_word_has_spoken_and_took_no_step(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    if "bug" not in text:
        run.messages.append({"role": "assistant", "content": None, "agent": "triage"})
    run.messages.append({"role": "assistant", "content": "Refunded.", "agent": "billing"})
    return run.as_agent("billing", "Anything else?")

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    for said, code_of in (("charged twice", 0), ("a bug", 1)):
        project.scenarios(
            f"id: hand\nturns: [{said}]\ntools: {{get_order: {{returns: {{}}}}}}\n"
            "expect: {agents: [triage, billing], limits: {steps: 2}}\n"
        )
        done = project.run()
        assert done.code == code_of, done.all
    assert "spoke: billing" in done.all


def test_a_call_without_a_result_is_not_answered(project: Project, place: str) -> None:
    """One that runs at the provider, which does not tell its result."""
    code = """
async def play(run, text):
    function = {"name": "web_search", "arguments": "{}"}
    call = {"id": "w", "type": "function", "function": function}
    run.messages.append({"role": "assistant", "tool_calls": [call]})
    return "Found."

agent = Agent(play, get_order, hosted=("web_search",))
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("id: hosted\nturns: [a, b]\ntools: {get_order: {returns: {}}}\nchecks: none\n")
    done = project.run()
    assert done.code == 0, done.all
    assert [len(turn["tool_calls"]) for turn in project.sample()["turns"]] == [1, 1]


def test_real_tools_run_only_where_they_are_left_to_the_agent(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    order = await run.call("get_order", id="A-7")
    done = await asyncio.to_thread(run.call_sync, "cancel_order", id="A-8")
    try:
        await run.call("fails", id="A-9")
    except ValueError as error:
        return f"{order['status']}, {done['cancelled']}, {error}"

def fails(id):
    toy.mark("fails", id)
    raise ValueError("no such order")

agent = Agent(play, get_order, cancel_order, fails)
"""
    shop(project, code, "agent.py:agent", place, "unmocked_tools: passthrough")
    project.scenarios("""
id: through
turns: [hello]
tools: {get_order: {returns: {status: shipped}}}
expect: {output: {contains: ["shipped, really, no such order"]}}
""")
    done = project.run()
    assert done.code == 0, done.all
    assert ran(project) == ['cancel_order "A-8"', 'fails "A-9"']
    calls = project.sample()["turns"][0]["tool_calls"]
    assert [(call["name"], call["args"], call["observed"]) for call in calls] == [
        ("get_order", {"id": "A-7"}, False),
        ("cancel_order", {"id": "A-8"}, True),
        ("fails", {"id": "A-9"}, True),
    ]
    assert calls[1]["result"] == {"cancelled": "really"}
    assert "no such order" in str(calls[2]["result"])


@pytest.mark.parametrize("returned", ["a text", ["a", "list"], 7, None])
def test_a_real_tool_may_return_anything(project: Project, place: str, returned: object) -> None:
    code = f"""
async def play(run, text):
    return str([await run.call("look"), await asyncio.to_thread(run.call_sync, "look")])

def look():
    return {returned!r}

agent = Agent(play, look)
"""
    shop(project, code, "agent.py:agent", place, "unmocked_tools: passthrough")
    project.scenarios("{id: any, turns: [hello], checks: none}")
    done = project.run()
    assert done.code == 0, done.all
    turn = project.sample()["turns"][0]
    assert turn["agent"] == str([returned, returned])
    assert [call["result"] for call in turn["tool_calls"]] == [returned, returned]


def test_an_agent_that_is_a_tool_runs_and_is_seen_and_its_tools_are_answered(
    project: Project, place: str
) -> None:
    code = """
async def researcher(run, args):
    order = await run.call("get_order", id=args["id"])
    return f"researched: {order['status']}"

async def play(run, text):
    return await run.below("research", researcher, id="A-7")

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    scenario = """
id: below
turns: [hello]
tools: {get_order: {returns: {status: shipped}}}
expect:
  tool_calls: {match: in_order, calls: [{name: research, args: {id: A-7}}, {name: get_order}]}
  output: {contains: ["WORDS"]}
"""
    project.scenarios(scenario.replace("WORDS", "researched: shipped"))
    done = project.run()
    assert done.code == 0, done.all
    assert not project.sample()["findings"]  # no unknown tool
    assert not ran(project)
    project.scenarios(scenario.replace("WORDS", "researched: real"))
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "output.contains")}


DEPS = """
made = []

class Shop:
    def __init__(self):
        made.append(self)
        self.number = len(made)

def make_shop():
    return Shop()

async def make_shop_async():
    return Shop()

async def play(run, text):
    return f"shop {run.deps.number}"

agent = Agent(play, deps_type=Shop)
"""
TWO = "scenarios: [{id: a, turns: [one, two]}, {id: b, turns: [one, two]}]\n"


@pytest.mark.parametrize("maker", ["Shop", "make_shop", "make_shop_async"])
def test_dependencies_are_made_for_each_conversation(project: Project, place: str, maker: str) -> None:
    target = f"{{object: 'agent.py:agent', deps: 'agent.py:{maker}'}}"
    shop(project, DEPS, target, place, "agent_concurrency: 1")
    project.scenarios(TWO.replace("]}", "], checks: none}"))
    done = project.run()
    assert done.code == 0, done.all
    said = [turn["agent"] for s in project.results()["scenarios"] for turn in s["samples"][0]["turns"]]
    assert said == ["shop 1", "shop 1", "shop 2", "shop 2"]


@pytest.mark.parametrize(
    ("target", "where", "said"),
    [
        ("agent.py:agent", "14", "the agent needs deps of type Shop — write target: {object: …, deps: "),
        ("{object: 'agent.py:agent', deps: 'agent.py:nothing'}", "", "has no 'nothing'"),
        ("{object: 'agent.py:agent', deps: agent.py}", "", "what makes the deps does not name an attribute"),
        ("{object: agent.py}", "", "the target's object does not name an attribute"),
        ("{objekt: 'agent.py:agent'}", "", "objekt"),
        (
            "{object: 'agent.py:agent', deps: 'agent.py:made'}",
            "",
            "a list, which all conversations would share",
        ),
        (
            "{object: 'agent.py:get_order', deps: 'agent.py:Shop'}",
            "",
            "deps are for an object of a framework",
        ),
        ("agent.py:Agent", "", "the agent is the class Agent of Toy — name an object of it"),
        (
            "agent.py:agent.run",
            "",
            "the target is run, a method of the Toy object 'agent' — write target: agent.py:agent",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_at_its_place(
    project: Project, place: str, target: str, where: str, said: str
) -> None:
    shop(project, DEPS, target, place)
    project.scenarios("id: s\nturns: [hello]\nchecks: none\n")
    done = project.call("validate")
    assert done.code == 2, done.all
    assert said in done.err
    assert done.err.startswith("agenteval: agenteval.yaml:1:")
    assert "Traceback" not in done.all
    assert not ran(project)


def test_what_a_function_makes_may_be_of_a_framework(project: Project, place: str) -> None:
    shop(project, SHOP + "\ndef make_agent():\n    return careful\n", "agent.py:make_agent", place)
    project.scenarios(SUITE)
    done = project.run()
    assert done.code == 0, done.all
    assert not ran(project)

    shop(project, DEPS + "\ndef make_agent():\n    return agent\n", "agent.py:make_agent", place)
    project.scenarios("id: cancel\nturns: [hello]\nchecks: none\n")
    done = project.run()
    assert done.code == 2, done.all
    assert "the agent needs deps of type Shop" in done.all


def test_an_agent_that_waits_for_a_person_has_not_failed(project: Project, place: str) -> None:
    code = """
from toy import frameworks

async def play(run, text):
    raise frameworks.Waits("the agent waits for a person (approval of cancel_order)")

agent = Agent(play)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("id: waits\nturns: [hello]\nchecks: none\n")
    done = project.run()
    assert done.code == 3, done.all
    assert "the agent waits for a person (approval of cancel_order)" in done.all


def test_an_agent_that_breaks_has_failed_and_its_calls_are_evidence(project: Project, place: str) -> None:
    code = """
async def play(run, text):
    await run.call("get_order", id="A-7")
    raise ValueError("no idea")

agent = Agent(play, get_order)
"""
    shop(project, code, "agent.py:agent", place)
    project.scenarios("id: breaks\nturns: [hello]\ntools: {get_order: {returns: {}}}\nchecks: none\n")
    done = project.run()
    assert done.code == 1, done.all
    assert "ValueError: no idea" in done.all
    assert [call["name"] for call in project.sample()["turns"][0]["tool_calls"]] == ["get_order"]


def test_a_conversation_is_closed_when_it_is_over(project: Project, place: str) -> None:
    shop(project, SHOP, "agent.py:careful", place)
    project.scenarios(SUITE)
    assert project.run().code == 0
    assert (project.root / "marks").read_text().splitlines() == ['closed "Where is my order?"']


def test_validate_says_what_it_will_do_with_the_object(project: Project, place: str) -> None:
    shop(project, SHOP, "agent.py:careful", place)
    project.scenarios(SUITE)
    done = project.call("validate")
    assert done.code == 0, done.all
    said = "agent.py:careful, a Toy (toy-framework) agent, as it is; its tools: get_order, cancel_order"
    assert said in done.out
    assert "all calls are seen" in done.out
    assert "not mocked" not in done.out

    project.scenarios(SUITE[: SUITE.index("  cancel_order")])
    done = project.call("validate")
    assert "not mocked: cancel_order (in 1 scenario); a call ends its sample as a mistake" in done.out
    project.config("", target="")
    shop(project, SHOP, "agent.py:careful", place, "unmocked_tools: passthrough")
    assert "a call runs the real tool (unmocked_tools: passthrough)" in project.call("validate").out


def test_a_mock_of_a_tool_that_the_agent_does_not_have_is_a_typo(project: Project, place: str) -> None:
    shop(project, SHOP, "agent.py:careful", place)
    project.scenarios(SUITE.replace("  get_order: {", "  get_ordr: {"))
    done = project.run()
    assert done.code == 2, done.all
    assert "suite.yaml:7:" in done.err
    assert "agent 'bot' has no tool 'get_ordr' — did you mean 'get_order'?" in done.err

    searching = "\nsearching = Agent(carefully, get_order, cancel_order, hosted=('web_search',))\n"
    shop(project, SHOP + searching, "agent.py:searching", place)
    project.scenarios(SUITE + "  web_search: {returns: {}}\n")
    done = project.run()
    assert done.code == 2, done.all
    assert "web_search runs at the provider and cannot be mocked — remove it from tools:" in done.err

    dynamic = "\ndynamic = Agent(carefully, get_order)\ndynamic.more = True\n"
    shop(project, SHOP + dynamic, "agent.py:dynamic", place)
    project.scenarios(SUITE)
    assert project.run().code == 0
    assert "its tools: get_order, others known only in a run" in project.call("validate").out
    assert "did you mean" not in project.call("validate").err
    project.scenarios(SUITE.replace("  get_order: {", "  get_ordr: {"))
    done = project.call("validate")
    assert done.code == 0, done.all
    assert "mocks 'get_ordr', which is not a known tool (scenarios/suite.yaml:7)" in done.err
    assert "did you mean 'get_order'?" in done.err


def test_a_mock_that_only_one_of_the_agents_can_need_is_none(project: Project) -> None:
    """A suite for two agents that are compared, which do not have the same tools."""
    install_toy(project)
    project.agent(TOOLS + SHOP + "\nlooking = Agent(hastily, get_order)\n")
    agents = "[{name: a, target: 'agent.py:careful'}, {name: b, target: 'agent.py:looking'}]"
    project.config(f"compare: {agents}\nmetrics: []\n", target="")
    project.scenarios(SUITE)
    assert project.call("validate").code == 0
    project.scenarios(SUITE + "  refund: {returns: {}}\n")
    done = project.call("validate")
    assert done.code == 2, done.all
    assert "has no tool 'refund'" in done.err
