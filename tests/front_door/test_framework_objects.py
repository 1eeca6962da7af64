"""Agents that are objects of a framework, as they are: in agenteval's process and in one of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.suites import samples_of, write_suite
from tests.support.toy import PLACES, TOY_TOOLS, install_toy

ALL = """
pool = ThreadPoolExecutor(2)

async def hasty(run, text):
    if "cancel" in text:
        await run.call("cancel_order", id="A-7")
        return "It is cancelled."
    order = await run.call("get_order", id="A-7")
    return f"It is {order['status']} ({len(run.said)})."

async def careful(run, text):
    order = await run.call("get_order", id="A-7")
    if order["status"] == "shipped":
        return f"It is shipped ({len(run.said)})."
    await run.call("cancel_order", id="A-7")
    return "It is cancelled."

async def threads(run, text):
    found = []
    bare = threading.Thread(target=lambda: found.append(run.call_sync("get_order", id="bare")))
    bare.start()
    await asyncio.to_thread(bare.join)
    pooled = [pool.submit(run.call_sync, "get_order", id=f"pool-{n}") for n in range(2)]
    found += await asyncio.gather(*map(asyncio.wrap_future, pooled))
    found.append(run.call_sync("get_order", id="blocking"))
    return " ".join(each["status"] for each in found)

async def meets(run, text):
    order = await run.call("get_order", id=text)
    return f"{text}: {order['status']} ({len(run.said)})"

async def untracked(run, text):
    try:
        run.lost("get_order", id="A-7")
    except Exception:
        return "All is well."

async def looks_up(run, text):
    return await run.call("get_order", id="A-7")

async def cancels(run, text):
    try:
        await run.call("cancel_order", id="A-7")
    except BaseException:
        pass
    return "Done."

async def calls_nothing(run, text):
    run.call_nothing("get_ordr")
    return "Done."

async def hands_over(run, text):
    if "bug" not in text:
        run.messages.append({"role": "assistant", "content": None, "agent": "triage"})
    run.messages.append({"role": "assistant", "content": "Refunded.", "agent": "billing"})
    return run.as_agent("billing", "Anything else?")

async def searches(run, text):
    function = {"name": "web_search", "arguments": "{}"}
    call = {"id": "w", "type": "function", "function": function}
    run.messages.append({"role": "assistant", "tool_calls": [call]})
    return "Found."

async def researcher(run, args):
    order = await run.call("get_order", id=args["id"])
    return f"researched: {order['status']}"

async def delegates(run, text):
    return await run.below("research", researcher, id="A-7")

async def waits(run, text):
    raise toy.frameworks.Waits("approval of cancel_order")

async def breaks(run, text):
    await run.call("get_order", id="A-7")
    raise ValueError("no idea")

plays = (hasty, careful, threads, meets, untracked, looks_up, cancels, calls_nothing, hands_over, searches,
         delegates, waits, breaks)

async def play(run, text):
    # As the play that the first message of the conversation names.
    kind = run.said[0].split()[0]
    return await next(each for each in plays if each.__name__ == kind)(run, text)

agent = Agent(play, get_order, cancel_order, hosted=("web_search",))
more = Agent(play, get_order)
more.more = True
"""
TOOLS = "tools: {get_order: {returns: {status: shipped}}, cancel_order: {returns: {cancelled: true}}}"
CANCEL = f""" turns: [
    {{user: KIND Where is my order?, expect: {{output: {{contains: [shipped]}}}}}},
    {{user: Then cancel it., expect: {{
      tool_calls: {{match: strict, calls: [{{name: get_order, args: {{id: A-7}}}}]}}}}}}],
  {TOOLS}"""
THREADS = """tools: {get_order: {returns: {status: "${args.id}"}}}, expect: {
  output: {contains: ["bare pool-0 pool-1 blocking"]},
  tool_calls: {match: unordered, calls: [
    {name: get_order, args: {id: bare}}, {name: get_order, args: {id: blocking}},
    {name: get_order, args: {id: pool-0}}, {name: get_order, args: {id: pool-1}}]}}"""
DOWN = """tools: {get_order: {error: the shop is closed}},
  expect: {output: {contains: ['failed:', the shop is closed]}}"""
MEETS = """ turns: [meets 1, meets 2], tools: {get_order: {python: 'mocks.py:answer'}},
  expect: {output: {contains: ['meets 1: KIND (1)', 'meets 2: KIND (2)']}}"""
MOCKS = """
import asyncio
waiting = {}

async def answer(args, ctx):
    # Each call waits until the other conversation has made its own.
    await waiting.setdefault(ctx.turn, asyncio.Barrier(2)).wait()
    return {"status": ctx.sample.scenario}
"""
TRIAGE = f"expect: {{agents: [triage, billing], limits: {{steps: 2}}}}, {TOOLS}"
RESEARCH = (
    """expect: {
  tool_calls: {match: in_order, calls: [{name: research, args: {id: A-7}}, {name: get_order}]},
  output: {contains: ["researched: WORD"]}}, """
    + TOOLS
)


class Row(NamedTuple):
    scenario: str
    verdict: str = "passed"
    failed: set[tuple[int | None, str]] = set()
    fault: str | None = None


ROWS = {
    "hasty": Row(CANCEL, "failed", {(1, "tool_calls")}),
    "careful": Row(CANCEL),
    "threads": Row(THREADS),
    "meets a": Row(MEETS),
    "meets b": Row(MEETS),
    "looks_up": Row(DOWN),
    "calls_nothing": Row(f"checks: none, {TOOLS}", "failed", {(None, "unknown_tool")}),
    "calls_nothing more": Row(f" agent: more, checks: none, {TOOLS}"),
    "hands_over": Row(TRIAGE),
    "hands_over bug": Row(TRIAGE, "failed", {(None, "agents")}),
    "searches": Row(f"checks: none, turns: [searches, again], {TOOLS}"),
    "delegates": Row(RESEARCH.replace("WORD", "shipped")),
    "delegates wrongly": Row(RESEARCH.replace("WORD", "real"), "failed", {(None, "output.contains")}),
    "waits": Row("checks: none", "inconclusive", fault="infrastructure"),
    "breaks": Row(f"checks: none, {TOOLS}", "failed", {(None, "no_error")}, "agent"),
}  # fmt: skip


def toy_project(project: Project, code: str, config: str, scenarios: str) -> Project:
    install_toy(project)
    project.agent(TOY_TOOLS + code)
    project.config(config + "metrics: []\n", target="")
    project.scenarios(scenarios)
    return project


def real_calls(project: Project) -> list[str]:
    """The real tools that ran."""
    marks = project.root / "marks"
    lines = marks.read_text().splitlines() if marks.exists() else []
    return [line for line in lines if not line.startswith("closed")]


class Ran(NamedTuple):
    done: Done
    samples: dict[str, Any]
    project: Project


@pytest.fixture(scope="module", params=PLACES)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Each row, played in one run."""
    project = Project(tmp_path_factory.mktemp("toy"))
    install_toy(project)
    project.agent(TOY_TOOLS + ALL)
    project.write("scenarios/mocks.py", MOCKS)
    scenarios = {name: row.scenario.replace("KIND", name) for name, row in ROWS.items()}
    for name, text in scenarios.items():
        agent = "" if " agent: " in text else "agent: agent, "
        scenarios[name] = f"{agent}{'' if ' turns:' in text else f'turns: [{name}], '}{text}"
    write_suite(project, ("agent", "more"), scenarios, where=request.param)
    done = project.run()
    assert done.code == 1, done.all
    return Ran(done, samples_of(project), project)


@pytest.mark.parametrize("name", ROWS)
def test_an_object_is_played_with_mocks(ran: Ran, name: str) -> None:
    row, sample = ROWS[name], ran.samples[name]
    assert (sample["verdict"], sample["fault"], failed_checks(sample)) == (row.verdict, row.fault, row.failed)


def test_what_a_run_records_of_an_object(ran: Ran) -> None:
    hasty, careful = ran.samples["hasty"], ran.samples["careful"]
    calls = [call for turn in hasty["turns"] for call in turn["tool_calls"]]
    assert [call["name"] for call in calls] == ["get_order", "cancel_order"]  # each counts once
    assert calls[1]["result"] == {"cancelled": True}
    assert hasty["turns"][0]["usage"]["input_tokens"] == 3
    assert "(2)" in careful["turns"][1]["agent"]  # the second turn saw the first
    assert [each["detector"] for each in ran.samples["calls_nothing"]["findings"]] == ["unknown_tool"]
    assert "billing" in str([check["detail"] for check in ran.samples["hands_over bug"]["checks"]])
    assert not ran.samples["delegates"]["findings"]  # an agent that is a tool is no unknown tool
    assert [len(turn["tool_calls"]) for turn in ran.samples["searches"]["turns"]] == [1, 1]
    assert [call["name"] for call in ran.samples["breaks"]["turns"][0]["tool_calls"]] == ["get_order"]
    assert "ValueError: no idea" in ran.samples["breaks"]["turns"][0]["error"]
    assert "approval of cancel_order" in ran.done.all
    assert not real_calls(ran.project)
    closed = (ran.project.root / "marks").read_text().splitlines()
    assert 'closed "careful Where is my order?"' in closed  # a conversation that is over is closed


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(
    ("scenarios", "code", "fact"),
    [
        ("[{id: untracked, turns: [untracked], expect: {output: {contains: [well]}}}]", 3, "get_order"),
        (
            "[{id: a, turns: [cancels], checks: none}, {id: b, turns: [cancels], checks: none,"
            " tools: {get_order: {returns: 1}}}]",
            2,
            "'cancel_order'",
        ),
    ],
    ids=["of no known conversation", "that the scenario does not mock"],
)
def test_a_call_that_cannot_be_answered_does_not_run(
    project: Project, where: str, scenarios: str, code: int, fact: str
) -> None:
    toy_project(project, ALL, f"agent: {{target: 'agent.py:agent'{where}}}\n", f"scenarios: {scenarios}")
    done = project.run()
    assert done.code == code, done.all
    assert {each["verdict"] for each in project.results()["scenarios"]} == {"inconclusive"}
    assert fact in done.all
    assert not real_calls(project)


REAL = """
async def play(run, text):
    if text == "any":
        return str([[await run.call(f"look_{n}"), await asyncio.to_thread(run.call_sync, f"look_{n}")]
                    for n in range(4)])
    order = await run.call("get_order", id="A-7")
    done = await asyncio.to_thread(run.call_sync, "cancel_order", id="A-8")
    try:
        await run.call("fails", id="A-9")
    except ValueError as error:
        return f"{order['status']}, {done['cancelled']}, {error}"

def fails(id):
    toy.mark("fails", id)
    raise ValueError("no such order")

def look_0(): return "a text"
def look_1(): return ["a", "list"]
def look_2(): return 7
def look_3(): return None

agent = Agent(play, get_order, cancel_order, fails, look_0, look_1, look_2, look_3)
"""


@pytest.mark.parametrize("where", PLACES)
def test_real_tools_run_only_where_they_are_left_to_the_agent(project: Project, where: str) -> None:
    config = f"agent: {{target: 'agent.py:agent'{where}}}\nunmocked_tools: passthrough\n"
    scenarios = """
scenarios:
- id: through
  turns: [hello]
  tools: {get_order: {returns: {status: shipped}}}
  expect: {output: {contains: ["shipped, really, no such order"]}}
- {id: any, turns: [any], checks: none}
"""
    toy_project(project, REAL, config, scenarios)
    done = project.run()
    assert done.code == 0, done.all
    assert real_calls(project) == ['cancel_order "A-8"', 'fails "A-9"']
    calls = project.sample("through")["turns"][0]["tool_calls"]
    assert [(call["name"], call["args"], call["observed"]) for call in calls] == [
        ("get_order", {"id": "A-7"}, False),
        ("cancel_order", {"id": "A-8"}, True),
        ("fails", {"id": "A-9"}, True),
    ]
    assert calls[1]["result"] == {"cancelled": "really"}
    assert "no such order" in str(calls[2]["result"])
    (turn,) = project.sample("any")["turns"]
    returned = ["a text", ["a", "list"], 7, None]
    assert turn["agent"] == str([[each, each] for each in returned])
    assert [call["result"] for call in turn["tool_calls"]] == [each for each in returned for _ in range(2)]


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

def make_agent():
    return agent
"""


@pytest.mark.parametrize("where", PLACES)
def test_dependencies_are_made_for_each_conversation(project: Project, where: str) -> None:
    makers = ("Shop", "make_shop", "make_shop_async")
    agents = {each: f"target: {{object: 'agent.py:agent', deps: 'agent.py:{each}'}}" for each in makers}
    twice = "turns: [one, two], checks: none"
    scenarios = {f"{each}-{n}": f"agent: {each}, {twice}" for each in makers for n in "ab"}
    install_toy(project)
    project.agent(TOY_TOOLS + DEPS)
    write_suite(project, agents, scenarios, where=where, config="agent_concurrency: 1\n")
    done = project.run("--concurrency", "1")
    assert done.code == 0, done.all
    answers = [
        [int(turn["agent"].removeprefix("shop ")) for turn in each["samples"][0]["turns"]]
        for each in project.results()["scenarios"]
    ]
    numbers = (
        (1, 2) * 3 if where else range(1, 7)
    )  # each agent has a process of its own, or all have this one
    assert answers == [[number, number] for number in numbers]


REFUSED = {
    "needs deps": ("agent.py:agent", "Shop", "deps:"),
    "no such maker": ("{object: 'agent.py:agent', deps: 'agent.py:nothing'}", "'nothing'"),
    "deps name no attribute": ("{object: 'agent.py:agent', deps: agent.py}", "deps", "attribute"),
    "object names no attribute": ("{object: agent.py}", "object", "attribute"),
    "unknown key": ("{objekt: 'agent.py:agent'}", "objekt"),
    "deps are shared": ("{object: 'agent.py:agent', deps: 'agent.py:made'}", "a list"),
    "deps of a function": ("{object: 'agent.py:get_order', deps: 'agent.py:Shop'}", "deps", "framework"),
    "a class": ("agent.py:Agent", "class Agent", "Toy"),
    "a method": ("agent.py:agent.run", "run", "Toy", "target: agent.py:agent"),
}  # fmt: skip


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(("target", "facts"), [(each[0], each[1:]) for each in REFUSED.values()], ids=REFUSED)
def test_what_cannot_be_played_is_refused_at_its_place(
    project: Project, where: str, target: str, facts: tuple[str, ...]
) -> None:
    scenario = "{id: s, turns: [x], checks: none}"
    toy_project(project, DEPS, f"agent: {{name: bot, target: {target}{where}}}\n", scenario)
    project.call("validate").refuses("agenteval.yaml:1", *facts)
    assert not real_calls(project)


@pytest.mark.parametrize("where", PLACES)
def test_what_a_function_makes_may_be_of_a_framework(project: Project, where: str) -> None:
    factory = "\ndef make_agent():\n    return agent\n"
    config = f"agent: {{target: 'agent.py:make_agent'{where}}}\n"
    toy_project(project, ALL + factory, config, f"{{id: careful, {CANCEL.replace('KIND', 'careful')}}}")
    done = project.run()
    assert done.code == 0, done.all
    assert not real_calls(project)

    toy_project(project, DEPS, config, "{id: cancel, turns: [hello], checks: none}")
    done = project.run()
    assert (done.code, "deps of type Shop" in done.all) == (2, True), done.all


@pytest.mark.parametrize("where", PLACES)
def test_validate_lists_the_tools_of_an_object_and_those_not_mocked(project: Project, where: str) -> None:
    config = f"agent: {{target: 'agent.py:agent'{where}}}\n"
    scenario = f"{{id: careful, {CANCEL.replace('KIND', 'careful')}}}"
    toy_project(project, ALL.replace(', hosted=("web_search",)', ""), config, scenario)
    done = project.call("validate")
    assert done.code == 0, done.all
    for fact in ("agent.py:agent", "Toy (toy-framework)", "get_order, cancel_order"):
        assert fact in done.out
    assert "not mocked" not in done.out

    one = scenario.replace(", cancel_order: {returns: {cancelled: true}}", "")
    project.scenarios(one)
    assert "not mocked: cancel_order (in 1 scenario)" in project.call("validate").out
    project.config(f"{config}metrics: []\nunmocked_tools: passthrough\n", target="")
    assert "(unmocked_tools: passthrough)" in project.call("validate").out


@pytest.mark.parametrize("where", PLACES)
def test_a_mock_of_a_tool_that_the_agent_does_not_have_is_a_typo(project: Project, where: str) -> None:
    scenario = f"id: careful\nturns: [careful]\nchecks: none\n{TOOLS}\n"
    typo = scenario.replace("{get_order", "{get_ordr")
    config = f"agent: {{name: bot, target: 'agent.py:NAME'{where}}}\n"
    toy_project(project, ALL, config.replace("NAME", "agent"), typo)
    project.run().refuses("suite.yaml:4", "'bot'", "'get_ordr'", "'get_order'")
    project.scenarios(scenario.replace("{get_order", "{web_search: {returns: {}}, get_order"))
    project.run().refuses("suite.yaml:4", "web_search", "tools")  # runs at the provider

    toy_project(project, ALL, config.replace("NAME", "more"), scenario)
    assert project.run().code == 0
    validated = project.call("validate")
    assert "get_order, others" in validated.out
    assert "suite.yaml" not in validated.err
    project.scenarios(typo)
    validated = project.call("validate")
    assert validated.code == 0, validated.all  # it may be there all the same
    for fact in ("'get_ordr'", "scenarios/suite.yaml:4", "'get_order'"):
        assert fact in validated.err


def test_a_mock_that_only_one_of_the_agents_can_need_is_allowed(project: Project) -> None:
    """A suite for two agents that are compared, which do not have the same tools."""
    config = "compare: [{name: a, target: 'agent.py:agent'}, {name: b, target: 'agent.py:looking'}]\n"
    scenario = f"id: careful\nturns: [careful]\nchecks: none\n{TOOLS}\n"
    toy_project(project, ALL + "\nlooking = Agent(play, get_order)\n", config, scenario)
    assert project.call("validate").code == 0
    project.scenarios(scenario.replace("{get_order", "{refund: {returns: {}}, get_order"))
    project.call("validate").refuses("suite.yaml:4", "'refund'")
