"""Expected tool calls through the command line: one scenario, an agent that keeps it, one that does not."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

Turn = list[Any]
"""What an agent does in a turn: rounds of calls, then its text."""

PERFORMER = '''
import asyncio
import json
import pathlib

from agenteval import AgentReply

SCRIPTS = json.loads(pathlib.Path(__file__).with_name("scripts.json").read_text(encoding="utf-8"))


async def perform(which, messages, ctx):
    """Plays its part of the script: the rounds of calls of this turn, then the text."""
    *rounds, last = SCRIPTS[ctx.scenario_id][which][ctx.turn]
    start = max(i for i, m in enumerate(messages) if m["role"] == "user") + 1
    done = sum(1 for m in messages[start:] if m.get("tool_calls"))
    if done < len(rounds):
        calls = [
            {"id": f"c{done}-{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(rounds[done])
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if isinstance(last, dict):
        await asyncio.sleep(last.get("sleep_s", 0))
        return AgentReply(text=last["text"], usage=last.get("usage"))
    if last == "@results":
        return "\\n".join(m["content"] for m in messages[start:] if m["role"] == "tool")
    if last == "@raise":
        raise RuntimeError("the agent broke here")
    return last


async def good(messages, ctx):
    return await perform("good", messages, ctx)


async def bad(messages, ctx):
    return await perform("bad", messages, ctx)
'''


@dataclass(frozen=True)
class Pair:
    """A scenario, what the two agents do in it, and the check that the bad one breaks at ``turn``
    (``None``: a check of the whole conversation)."""

    id: str
    scenario: dict[str, Any]
    good: list[Turn]
    bad: list[Turn]
    check: str
    turn: int | None = None

    @property
    def entry(self) -> dict[str, Any]:
        turns = [f"message {index}" for index in range(len(self.good))]
        return {"id": self.id, "name": self.id, "turns": turns, **self.scenario}


def do(text: Any, *calls: tuple[str, dict[str, Any]]) -> Turn:
    """A turn with one call a round."""
    return [*([call] for call in calls), text]


def call(name: str, **args: Any) -> tuple[str, dict[str, Any]]:
    return (name, args)


class Outcome:
    """The results of one run of many pairs, by scenario and agent."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.results = results
        self.entries = {(s["id"], s["agent"]): s for s in results["scenarios"]}

    def sample(self, scenario: str, agent: str = "good") -> dict[str, Any]:
        return self.entries[scenario, agent]["samples"][0]  # type: ignore[no-any-return]

    def holds(self, pair: Pair) -> None:
        """The good agent is green; the bad one is red for this check and no other, at this turn."""
        green, red = self.sample(pair.id), self.sample(pair.id, "bad")
        assert (failed_checks(green), green["verdict"]) == (set(), "passed"), green
        assert red["verdict"] == self.entries[pair.id, "bad"]["verdict"] == "failed", red
        failed = failed_checks(red)
        assert {name for _, name in failed} == {pair.check}, failed
        turns = {turn for turn, _ in failed}
        assert turns - {None} == {pair.turn} - {None}, failed
        assert pair.turn in turns, failed

    def detail(self, pair: Pair) -> str:
        """What the broken check says."""
        sample = self.sample(pair.id, "bad")
        checks = sample["checks"] if pair.turn is None else sample["turns"][pair.turn]["checks"]
        return next(c["detail"] for c in checks if c["name"] == pair.check and c["passed"] is False)  # type: ignore[no-any-return]


def run_pairs(root: Path, pairs: list[Pair], config: str = "", **defaults: Any) -> Outcome:
    """All pairs in one project and one run."""
    project = Project(root)
    project.agent(PERFORMER)
    project.config(
        f"compare: [{{name: good}}, {{name: bad, target: 'agent.py:bad'}}]\n{config}", target="agent.py:good"
    )
    project.write("scripts.json", json.dumps({p.id: {"good": p.good, "bad": p.bad} for p in pairs}))
    suite = {"defaults": defaults, "scenarios": [p.entry for p in pairs if "input" not in p.scenario]}
    cases = [{"id": p.id, **p.scenario} for p in pairs if "input" in p.scenario]
    project.scenarios(json.dumps(suite if not cases else {**suite, "cases": cases}))
    done = project.run()
    assert done.code == 1, done.all
    return Outcome(project.results())


def expecting(id: str, tool_calls: dict[str, Any] | str, good: list[Any], bad: list[Any]) -> Pair:
    """A pair of one turn over the calls that are made in it."""
    return Pair(
        id, {"expect": {"tool_calls": tool_calls}}, [do("Done.", *good)], [do("Done.", *bad)], "tool_calls"
    )


A, B, C = call("a"), call("b"), call("c")
NAMED_AB = [{"name": "a"}, {"name": "b"}]
A_THEN_A1 = [{"name": "a"}, {"name": "a", "args": {"x": 1}}]


def ab(match: str) -> dict[str, Any]:
    return {"match": match, "calls": NAMED_AB}


MODES = [
    expecting("strict-missing", ab("strict"), [A, B], [A]),
    expecting("strict-extra", ab("strict"), [A, B], [A, B, C]),
    expecting("strict-order", ab("strict"), [A, B], [B, A]),
    expecting("strict-repeated", ab("strict"), [A, B], [A, A, B]),
    expecting("strict-nothing", {"match": "strict", "calls": []}, [], [A]),
    expecting("strict-args", {"match": "strict", "calls": [{"name": "a", "args": {"x": 1}}]},
              [call("a", x=1)], [A]),
    expecting("unordered-missing", ab("unordered"), [B, A], [B]),
    expecting("unordered-extra", ab("unordered"), [B, A], [B, A, C]),
    expecting("unordered-multiset", {"match": "unordered", "calls": [*NAMED_AB, {"name": "a"}]}, [A, A, B],
              [A, B, B]),
    expecting("unordered-optimal", {"match": "unordered", "calls": A_THEN_A1},
              [call("a", x=1), call("a", x=2)],
              [call("a", x=2), call("a", x=3)]),
    expecting("in-order-swapped", ab("in_order"), [C, A, C, B, C], [C, B, A]),
    expecting("in-order-missing", ab("in_order"), [A, B], [C, B]),
    expecting("in-order-repeated", {"match": "in_order", "calls": [{"name": "a"}] * 2}, [A, B, A], [A, B]),
    expecting("in-order-later-one", ab("in_order"), [B, A, B], [B, A, C]),
    expecting("contains-any-order", ab("contains"), [C, B, A], [C, B]),
    expecting("contains-by-default", {"calls": NAMED_AB}, [C, B, A], [A, C]),
    expecting("contains-repeated", {"calls": [{"name": "a"}] * 2}, [A, C, A], [A, C]),
    expecting("contains-optimal", {"calls": A_THEN_A1}, [call("a", x=1), call("a", x=2)],
              [call("a", x=2), call("a", x=3)]),
    expecting("contains-optimal-chain",
              {"calls": [{"name": "a", "args": {"x": {"$in": v}}} for v in ([1, 2], [1, 3], [1])]},
              [call("a", x=1), call("a", x=2), call("a", x=3)], [call("a", x=2), call("a", x=3),
              call("a", x=2)]),
    expecting("within-other-name", ab("within"), [A, B, A, A], [A, C]),
    expecting("within-none-needed", ab("within"), [], [C]),
    expecting("none", "none", [], [A]),
    expecting("within-args", {"match": "within", "calls": [{"name": "a", "args": {"x": v}} for v in (1, 2)]},
              [call("a", x=2), call("a", x=1), call("a", x=2)], [call("a", x=1), call("a", x=3)]),
    expecting("case-of-names", {"calls": [{"name": "a"}]}, [A], [call("A")]),
]  # fmt: skip


def args(id: str, expected: Any, good: dict[str, Any], bad: dict[str, Any], **more: Any) -> Pair:
    calls = [{"name": "a", "args": expected, **more}]
    return expecting(id, {"calls": calls}, [("a", good)], [("a", bad)])


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


ARGUMENTS = [
    args("exact-by-default", {"x": 1}, {"x": 1}, {"x": 1, "y": 2}),
    args("exact-missing", {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 1}),
    args("exact-none", {}, {}, {"x": 1}),
    args("partial", {"x": 1}, {"x": 1, "y": 2}, {"y": 2}, args_match="partial"),
    args("partial-top-level-only", {"o": {"p": 1}}, {"o": {"p": 1}, "z": 0}, {"o": {"p": 1, "q": 2}},
         args_match="partial"),
    args("any", {"x": {"$any": True}}, {"x": [None]}, {}),
    args("any-null-is-a-value", {"x": {"$any": True}}, {"x": None}, {"y": None}),
    args("in", {"x": {"$in": ["09:00", "10:30"]}}, {"x": "10:30"}, {"x": "11:00"}),
    args("in-typed", {"x": {"$in": [1, 2]}}, {"x": 2.0}, {"x": True}),
    args("regex", {"x": {"$regex": "^ORD-[0-9]+$"}}, {"x": "ORD-42"}, {"x": "XORD-42"}),
    args("regex-not-a-string", {"x": {"$regex": "4"}}, {"x": "4"}, {"x": 4}),
    args("approx", {"x": {"$approx": 0.3}}, {"x": 0.1 + 0.2}, {"x": 0.31}),
    args("approx-not-true", {"x": {"$approx": 1}}, {"x": 1.0000000001}, {"x": True}),
    args("nested", {"o": {"l": [{"$any": True}, {"k": {"$in": [1]}}]}}, {"o": {"l": [0, {"k": 1}]}},
         {"o": {"l": [0, {"k": 2}]}}),
    args("list-order", {"x": [1, 2]}, {"x": [1, 2]}, {"x": [2, 1]}),
    args("one-is-not-true", {"x": 1}, {"x": 1}, {"x": True}),
    args("true-is-not-one", {"x": True}, {"x": True}, {"x": 1}),
    args("zero-is-not-false", {"x": [0]}, {"x": [0]}, {"x": [False]}),
    args("one-equals-1.0", {"x": 1}, {"x": 1.0}, {"x": 1.5}),
    args("1.0-equals-one", {"x": {"y": 1.0}}, {"x": {"y": 1}}, {"x": {"y": 2}}),
    args("text-is-not-number", {"x": 1}, {"x": 1}, {"x": "1"}),
    args("null-is-not-missing", {"x": None}, {"x": None}, {}),
    args("big-integers", {"x": 10000000000000001}, {"x": 10000000000000001}, {"x": 10000000000000000}),
    args("nfc", {"café": "Zürich"}, {nfd("café"): nfd("Zürich")}, {nfd("café"): "Zurich"}),
    args("nfc-regex", {"café": {"$regex": "^Z.rich$"}}, {nfd("café"): nfd("Zürich")}, {nfd("café"): "Zrich"}),
    args("case-matters", {"city": "Paris"}, {"city": "Paris"}, {"city": "paris"}),
    expecting("ignore", {"calls": [{"name": "a", "args": {"x": 1}, "args_match": "ignore"}]},
              [call("a", x=9)], [B]),
    expecting("no-args-given", {"calls": [{"name": "a"}]}, [call("a", x=9)], [B]),
]  # fmt: skip

FORBIDDEN = [
    expecting("forbidden-only", {"forbidden": [{"name": "c"}]}, [A, B], [A, call("c", x=1)]),
    expecting("forbidden-and-calls", {"calls": NAMED_AB, "forbidden": [{"name": "c"}]}, [A, B], [A, C, B]),
    expecting("forbidden-args", {"forbidden": [{"name": "c", "args": {"x": 1}}]}, [call("c", x=2)],
              [call("c", x=1)]),
    expecting("forbidden-partial", {"forbidden": [{"name": "c", "args": {"x": 1}, "args_match": "partial"}]},
              [call("c", x=2, y=1)], [call("c", x=1, y=1)]),
    expecting("forbidden-matcher", {"forbidden": [{"name": "c", "args": {"to": {"$regex": "@evil"}}}]},
              [call("c", to="me@good")], [call("c", to="me@evil")]),
    expecting("forbidden-within",
              {"match": "within", "calls": NAMED_AB, "forbidden": [{"name": "a", "args": {"x": 1}}]},
              [A, B], [call("a", x=1)]),
]  # fmt: skip

TURNS = [
    Pair("at-a-turn",
         {"turns": ["one", {"user": "two", "expect": {"tool_calls": {"calls": [{"name": "a"}]}}}]},
         [do("ok"), do("ok", A)], [do("ok", A), do("ok")], "tool_calls", 1),
    Pair("forbidden-at-a-turn",
         {"turns": [{"user": "one", "expect": {"tool_calls": {"forbidden": [{"name": "a"}]}}}, "two"]},
         [do("ok"), do("ok", A)], [do("ok", A), do("ok")], "tool_calls", 0),
    Pair("over-all-turns", {"expect": {"tool_calls": {"match": "in_order", "calls": NAMED_AB}}},
         [do("ok", A), do("ok", B)], [do("ok", B), do("ok", A)], "tool_calls"),
    Pair("strict-over-turns", {"expect": {"tool_calls": {"match": "strict", "calls": NAMED_AB}}},
         [do("ok", A), do("ok", B)], [do("ok", A), do("ok", B, B)], "tool_calls"),
    Pair("made-at-once",
         {"expect": {"tool_calls": {"match": "unordered", "calls": NAMED_AB}, "limits": {"steps": 2}}},
         [[[B, A], "ok"]], [[[A], "ok"]], "tool_calls"),
]  # fmt: skip

PAIRS = [*MODES, *ARGUMENTS, *FORBIDDEN, *TURNS]
BY_ID = {pair.id: pair for pair in PAIRS}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    tools = {name: {"returns": {"ok": True}} for name in ("a", "b", "c", "A")}
    return run_pairs(tmp_path_factory.mktemp("tools"), PAIRS, tools=tools)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_the_agent_with_the_bug_is_red_and_the_fixed_one_green(pair: Pair, outcome: Outcome) -> None:
    outcome.holds(pair)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("strict-missing", ("missing", "b")),
        ("contains-optimal", ("missing", "x=1")),
        ("strict-extra", ("extra", "c")),
        ("within-args", ("extra", "x=3")),
        ("in-order-swapped", ("out of order", "a")),
        ("strict-order", ("out of order",)),
        ("forbidden-args", ("forbidden", "x=1")),
        ("exact-missing", ("missing", "x=1", "y=2")),
    ],
)
def test_a_result_names_the_calls_with_their_arguments(
    pair: str, words: tuple[str, ...], outcome: Outcome
) -> None:
    detail = outcome.detail(BY_ID[pair]).replace("out_of_order", "out of order")
    for word in words:
        assert word in detail, detail


ISOLATION = """
import asyncio

SEEN = set()


class agent:
    def __init__(self):
        self.history = []

    async def __call__(self, messages, ctx):
        first, now = messages[0]["content"], messages[-1]["content"]
        for _ in range(3):
            await ctx.call_tool("count", {})
            await asyncio.sleep(0.001)
        messages.append({"role": "user", "content": "scribbled"})
        messages[0]["content"] = "overwritten"
        ctx.tools.append("junk") if isinstance(ctx.tools, list) else None
        self.history.append((ctx.scenario_id, ctx.epoch))
        last = await ctx.call_tool("count", {})
        return f"{ctx.scenario_id} {ctx.epoch} {ctx.seed} {len(set(self.history))} {last['n']} {first}/{now}"
"""


def test_conversations_that_run_at_once_share_nothing(project: Project) -> None:
    project.agent(ISOLATION)
    project.config("epochs: 5\n")
    entries = "\n".join(f"  - {{id: s{n}, name: s{n}, turns: [first {n}, second {n}]}}" for n in range(6))
    steps = ", ".join(f"{{returns: {{n: {n}}}}}" for n in range(1, 9))
    project.scenarios(
        f"defaults: {{checks: none, tools: {{count: {{sequence: [{steps}]}}}}}}\nscenarios:\n{entries}\n"
    )
    assert project.run().code == 0
    seeds = set()
    for scenario in project.results()["scenarios"]:
        for sample in scenario["samples"]:
            for index, turn in enumerate(sample["turns"]):
                id, epoch, seed, owners, count, *now = turn["agent"].split(" ")
                assert (id, int(epoch), owners, int(count)) == (
                    scenario["id"],
                    sample["epoch"],
                    "1",
                    4 * (index + 1),
                )
                assert " ".join(now) == f"{sample['turns'][0]['user']}/{turn['user']}"
                assert turn["user"] == f"{('first', 'second')[index]} {scenario['id'][1:]}"
                seeds.add(seed)
    assert len(seeds) == 30


KEEPER = """
async def scribbles(messages, ctx):
    value = await ctx.call_tool("fixed", {})
    value["list"].append("scribbled")
    return str(await ctx.call_tool("fixed", {}))


async def not_a_number(messages, ctx):
    return str(await ctx.call_tool("fixed", {"x": float("nan")}))
"""


def test_what_an_agent_does_to_arguments_and_results_does_not_change_the_record(project: Project) -> None:
    project.agent(KEEPER)
    project.config("compare: [{name: other, target: 'agent.py:not_a_number'}]", target="agent.py:scribbles")
    project.scenarios("{id: a, turns: [hi], checks: none, tools: {fixed: {returns: {list: [1]}}}}")
    project.run()
    scribbles, not_a_number = (scenario["samples"][0] for scenario in project.results()["scenarios"])
    (turn,) = scribbles["turns"]
    assert turn["agent"] == str({"list": [1]})
    assert [call["result"] for call in turn["tool_calls"]] == [{"list": [1]}] * 2
    # Arguments that are no JSON do not raise in the agent.
    assert not_a_number["stop"] == "script_done"
    assert len(not_a_number["turns"][0]["tool_calls"]) == 1


def test_a_forbidden_call_points_at_the_line_that_forbids_it(project: Project) -> None:
    project.agent("""
        async def agent(messages, ctx):
            await ctx.call_tool("cancel", {})
            return "done"
        """)
    project.config()
    project.scenarios("""
        id: a
        tools: {look: {returns: 1}, cancel: {returns: 1}}
        turns:
          - user: Hi
            expect:
              tool_calls:
                match: contains
                forbidden:
                  - name: look
                  - name: cancel
        """)
    assert project.run().code == 1
    (check,) = [c for c in project.sample()["turns"][0]["checks"] if c["name"] == "tool_calls"]
    assert check["where"] == "scenarios/suite.yaml:10"


def test_the_text_of_an_observed_result_is_an_error_by_its_form(project: Project) -> None:
    """Of an agent that carries out its own tools: nothing but the text says what came of the call."""
    errors = {
        "BookingError: no room at 9": True,
        "503 Service Unavailable": True,
        "Booked: room 9": False,
        "The Booking Error Room is yours": False,
    }
    project.agent("""
        def agent(messages):
            function = {"name": "book", "arguments": "{}"}
            return [
                {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]},
                {"role": "tool", "tool_call_id": "c", "content": messages[0]["content"]},
                {"role": "assistant", "content": "That is all."},
            ]
    """)
    project.config()
    entries = []
    for n, text in enumerate(errors):
        for result in ("error", "ok"):
            expect = {"tool_calls": {"calls": [{"name": "book", "result": result}]}}
            entries.append({"id": f"{n} {result}", "turns": [{"user": text, "expect": expect}]})
    project.scenarios(json.dumps({"scenarios": entries}))
    assert project.run().code == 1
    for n, (text, is_error) in enumerate(errors.items()):
        held, broken = ("error", "ok") if is_error else ("ok", "error")
        assert failed_checks(project.sample(f"{n} {held}")) == set(), text
        assert failed_checks(project.sample(f"{n} {broken}")) == {(0, "tool_calls")}, text
