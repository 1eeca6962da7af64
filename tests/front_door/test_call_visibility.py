"""Which calls are seen: known only by what the agent did in the run. What was not seen is not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, ToolVisibility, Trajectory, Turn
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.transcript import CALLS_DECLARED_UNSEEN, CALLS_NOT_OBSERVED
from tests.support.fake_models import FakeModel
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, chat, completion, respond_json
from tests.support.results import has
from tests.support.scored_logs import calling, caveats, last_line, log, score, verdicts

MERE_TEXT = "def agent(messages):\n    return 'Done.'\n"
CALL = '{"id": "1", "type": "function", "function": {"name": "%s", "arguments": "{}"}}'
LISTS = f"""
def agent(messages):
    if len(messages) < 3:
        return [{{"role": "assistant", "content": "Done."}}]
    return [
        {{"role": "assistant", "tool_calls": [{CALL % "delete_all"}]}},
        {{"role": "tool", "tool_call_id": "1", "content": "ok"}},
        {{"role": "assistant", "content": "Done."}},
    ]
"""
ASKS = f"""
def agent(messages):
    if len(messages) == 3:
        return {{"role": "assistant", "content": "Looking.", "tool_calls": [{CALL % "look"}]}}
    return "Done."
"""
RULES = """
scenarios:
  - {id: forbidden, turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}
  - {id: missing, turns: [Hi], expect: {tool_calls: {calls: [{name: look}]}}}
  - {id: in-order, turns: [Hi], expect: {tool_calls: {match: in_order, calls: [{name: look}]}}}
  - {id: strict, turns: [Hi], expect: {tool_calls: {match: strict, calls: []}}}
  - {id: within, turns: [Hi], expect: {tool_calls: {match: within, calls: [{name: look}]}}}
  - {id: calls, turns: [Hi], expect: {limits: {tool_calls: 3}}}
  - {id: steps, turns: [Hi], expect: {limits: {steps: 3}}}
  - {id: at-turn, turns: [{user: Hi, expect: {tool_calls: {forbidden: [{name: delete_all}]}}}]}
  - {id: words, turns: [Hi], expect: {output: {contains: [Done]}}}
cases:
  - {id: case, input: Hi, expected_tools: [look]}
"""
OF_CALLS = ("forbidden", "missing", "in-order", "strict", "within", "calls", "steps", "at-turn", "case")
MISSING = ("missing", "in-order", "case")
FORBIDDEN = "{id: a, turns: [Hi], %sexpect: {tool_calls: {forbidden: [{name: delete_all}]}}}"
TOOLS = "tools: {delete_all: {returns: ok}, look: {returns: 1}}, "


def checks(project: Project, scenario: str) -> dict[tuple[int | None, str], Any]:
    sample = project.sample(scenario)
    found = {(None, check["name"]): check for check in sample["checks"]}
    for index, turn in enumerate(sample["turns"]):
        found |= {(index, check["name"]): check for check in turn["checks"]}
    return found


def play(project: Project, agent: str, scenarios: str = RULES, *, config: str = "", keys: str = "") -> Done:
    project.agent(agent)
    project.write(
        "agenteval.yaml", f"agent: {{name: bot, target: 'agent.py:agent'{keys}}}\nmetrics: []\n{config}"
    )
    project.scenarios(scenarios)
    return project.run()


# ── unseen until shown ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("declared", ["", f"defaults: {{{TOOLS.rstrip(', ')}}}\n"], ids=["bare", "declared"])
def test_an_agent_of_mere_text_leaves_rules_of_calls_undecided(project: Project, declared: str) -> None:
    done = play(project, MERE_TEXT, declared + RULES.lstrip())
    assert done.code == 3
    assert verdicts(project) == {**dict.fromkeys(OF_CALLS, "inconclusive"), "words": "passed"}
    for scenario in OF_CALLS:
        (check,) = [each for each in checks(project, scenario).values() if each["passed"] is None]
        assert "\n" not in check["detail"]
        for way in ("ctx", "observed_messages", "intercept", "calls: all"):
            assert way in check["detail"], (scenario, way)
    assert project.sample("case")["tool_accuracy"] is None
    assert project.run("-s", "forbidden").code == 3  # alone as in the whole run


def play_agents(project: Project, agents: Mapping[str, str], *rules: str) -> dict[str, set[str]]:
    """One run of several agents, each with all scenarios; the verdicts by the agent's name."""
    named = [f"a{n}" for n in range(len(agents))]
    entries = {name: {"target": f"{name}.py:agent"} for name in named}
    for name, source in zip(named, agents.values(), strict=True):
        project.write(f"{name}.py", source)
    first = {"name": named[0], **entries.pop(named[0])}
    project.write("agenteval.yaml", json.dumps({"agent": first, "agents": entries, "metrics": []}))
    rows = [
        f"  - {{id: {name}-{n}, agent: {name}, turns: [Hi], {rule}}}\n"
        for name in named
        for n, rule in enumerate(rules)
    ]
    project.scenarios(f"scenarios:\n{''.join(rows)}")
    project.run()
    return by_agent(project, agents)


def by_agent(project: Project, agents: Mapping[str, str]) -> dict[str, set[str]]:
    found = verdicts(project)
    return {
        agent: {verdict for id_, verdict in found.items() if id_.startswith(f"a{n}-")}
        for n, agent in enumerate(agents)
    }


WRAPPED = {
    "a function around an agent": "class Inner:\n    def run(self, text): return 'Done.'\n"
    "inner = Inner()\ndef agent(message): return inner.run(message)\n",
    "ctx that is not used": "def agent(messages, ctx): return 'Done.'\n",
    "a class": "class agent:\n    def __call__(self, messages): return 'Done.'\n",
    "a list of the final text": "def agent(messages): return [{'role': 'assistant', 'content': 'Done.'}]\n",
    "one message": "def agent(messages): return {'role': 'assistant', 'content': 'Done.'}\n",
    "a message of Google's": "def agent(messages): return {'role': 'model', 'parts': [{'text': 'Done.'}]}\n",
}


def test_an_agent_that_only_looks_seen_is_undecided(project: Project) -> None:
    calls = f"{TOOLS}expect: {{tool_calls: {{%s: [{{name: %s}}]}}}}"
    found = play_agents(project, WRAPPED, calls % ("forbidden", "delete_all"), calls % ("calls", "look"))
    assert found == {agent: {"inconclusive"} for agent in WRAPPED}


SHOWS = {
    "asks for a tool": f"{ASKS}".replace("len(messages) == 3", "len(messages) == 1"),
    "asks through ctx": "def agent(messages, ctx): return str(ctx.call_tool_sync('look'))\n",
    "asks for the list": "def agent(messages, ctx): return 'Done.' if ctx.tools else ''\n",
    "reports a call": LISTS.replace("delete_all", "own").replace("< 3", "< 1"),
}


def test_an_agent_that_shows_its_way_to_tools_is_seen_and_its_replay_too(project: Project) -> None:
    tools = "tools: {delete_all: {returns: ok}, look: {parameters: {type: object}, returns: 1}}"
    rule = f"{tools}, expect: {{tool_calls: {{forbidden: [{{name: delete_all}}]}}}}"
    seen = {agent: {"passed"} for agent in SHOWS}
    assert play_agents(project, SHOWS, rule) == seen
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    events = map(json.loads, journal.read_text().splitlines())
    assert len({each["agent"] for each in events if each["type"] == "calls_seen"}) == len(SHOWS)
    for option in ("--record", "--replay"):
        assert project.run(option, "tape.jsonl").code == 0
        assert by_agent(project, SHOWS) == seen


LOOKS = """
def agent(messages, ctx):
    return str(ctx.call_tool_sync("look")) if "look" in messages[-1]["content"] else "Done."
"""


def test_one_conversation_shows_it_for_all_of_the_agent(project: Project) -> None:
    quiet = "{id: quiet, turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}"
    shows = "{id: shows, turns: [look], expect: {tool_calls: {calls: [{name: look}]}}}"
    suite = f"defaults: {{{TOOLS.rstrip(', ')}}}\nscenarios:\n  - {quiet}\n"
    assert play(project, LOOKS, suite).code == 3
    assert play(project, LOOKS, f"{suite}  - {shows}\n").code == 0
    # What it found out is kept by whatever plays a part of it again.
    assert project.run("-s", "quiet").code == 0
    assert project.run("-s", "quiet").code == 0
    # Of another agent it says nothing.
    project.write(
        "agenteval.yaml", "agent: {name: bot, target: 'agent.py:agent', timeout_s: 9}\nmetrics: []\n"
    )
    assert project.run("-s", "quiet").code == 3


def test_a_check_that_is_open_stops_no_run_early(project: Project) -> None:
    quiet = "{id: a-quiet, turns: [Hi], expect: {tool_calls: {calls: [{name: look}]}}}"
    shows = "{id: shows, turns: [look], expect: {tool_calls: {calls: [{name: look}]}}}"
    suite = f"defaults: {{{TOOLS.rstrip(', ')}}}\nscenarios:\n  - {quiet}\n  - {shows}\n"
    project.agent(LOOKS)
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\nagent_concurrency: 1\n")
    project.scenarios(suite)
    assert project.run("--fail-fast").code == 1
    assert verdicts(project) == {"a-quiet": "failed", "shows": "passed"}


def test_where_all_calls_are_seen_an_absence_is_an_absence(project: Project) -> None:
    assert play(project, MERE_TEXT, keys=", calls: all").code == 1
    held = {name for name, verdict in verdicts(project).items() if verdict == "passed"}
    assert held == {"words", *OF_CALLS} - set(MISSING)
    assert {name for name, verdict in verdicts(project).items() if verdict == "failed"} == set(MISSING)
    assert project.sample("case")["tool_accuracy"] == 0


TWO_TURNS = """
scenarios:
  - id: a
    turns:
      - {user: Hi, expect: {tool_calls: {forbidden: [{name: delete_all}]}, limits: {tool_calls: 0}}}
      - {user: Again, expect: {tool_calls: {calls: [{name: look}]}}}
    expect: {limits: {tool_calls: 2}}
"""
LISTS_LOOK = LISTS.replace("delete_all", "look")


def test_a_call_in_the_second_turn_shows_that_the_first_made_none(project: Project) -> None:
    done = play(project, LISTS_LOOK, TWO_TURNS)
    assert done.code == 0, done.out
    found = checks(project, "a")
    assert found[0, "tool_calls"]["passed"] is True
    assert found[0, "limits.tool_calls"]["passed"] is True
    # The same from the journal, by a report and by a score of it; and before the end nothing was red.
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    items = [i for e in map(json.loads, journal.read_text().splitlines()) for i in e.get("items", ())]
    assert not [item for item in items if item.get("passed") is False]
    assert project.call("report", "latest", "--report", "json=again.json").code == 0
    assert project.call("score", str(journal)).code == 0


def test_a_red_that_only_the_second_turn_decides_is_red_at_its_turn(project: Project) -> None:
    scenarios = TWO_TURNS.replace("limits: {tool_calls: 0}", "limits: {tokens: 100000}").replace(
        "tool_calls: {forbidden: [{name: delete_all}]}", "tool_calls: {calls: [{name: look}]}"
    )
    assert play(project, LISTS_LOOK, scenarios).code == 1
    assert failed_checks(project.sample("a")) == {(0, "tool_calls")}
    assert play(project, MERE_TEXT, scenarios).code == 3
    assert failed_checks(project.sample("a")) == set()
    assert project.run("--fail-fast").code == 3


def test_a_call_that_was_seen_counts_whatever_is_declared(project: Project) -> None:
    rules = """
scenarios:
  - {id: forbidden, turns: [Hi, Again], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}
  - {id: strict, turns: [Hi, Again], expect: {tool_calls: {match: strict, calls: []}}}
  - {id: calls, turns: [Hi, Again], expect: {limits: {tool_calls: 0}}}
  - {id: made, turns: [Hi, Again], expect: {tool_calls: {calls: [{name: delete_all}]}}}
  - {id: other, turns: [Hi, Again], expect: {tool_calls: {forbidden: [{name: look}]}}}
  - {id: missing, turns: [Hi, Again], expect: {tool_calls: {calls: [{name: look}]}}}
  - {id: within, turns: [Hi, Again], expect: {tool_calls: {match: within, calls: [{name: delete_all}]}}}
"""
    red = dict.fromkeys(("forbidden", "strict", "calls"), "failed")
    play(project, LISTS, rules)
    assert verdicts(project) == red | {
        "made": "passed",
        "other": "passed",
        "missing": "failed",
        "within": "passed",
    }


def test_with_passthrough_asking_for_some_tools_shows_nothing_of_the_agents_own(project: Project) -> None:
    rule = FORBIDDEN % "tools: {look: {returns: 1}}, "
    agent = SHOWS["asks through ctx"]
    done = play(project, agent, rule, config="unmocked_tools: passthrough\n")
    assert done.code == 3
    assert "passthrough" in checks(project, "a")[None, "tool_calls"]["detail"]
    assert play(project, SHOWS["reports a call"], rule, config="unmocked_tools: passthrough\n").code == 0


def test_an_agent_whose_calls_are_never_seen_is_named_in_the_last_line(project: Project) -> None:
    words = f"{{id: a, turns: [Hi], {TOOLS}expect: {{output: {{contains: [Done]}}}}}}"
    done = play(project, MERE_TEXT, words)
    assert done.code == 0
    assert caveats(project)["calls_never_seen"] == 1
    assert "'bot'" in last_line(done)
    play(project, SHOWS["asks for a tool"], words)
    assert "calls_never_seen" not in caveats(project)


def test_an_endpoint_is_seen_once_it_asked_or_reported_a_call(project: Project) -> None:
    project.scenarios(FORBIDDEN % "tools: {look: {parameters: {type: object}, returns: 1}}, ")
    call = {"role": "assistant", "tool_calls": [json.loads(CALL % "own")]}
    result = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    for answer, keys, code in (
        (chat("Done."), "", 3),  # the tools were sent: that is no asking
        (respond_json({**completion("Done."), "trace": []}), ", observed_messages: trace", 3),
        (respond_json({**completion("Done."), "trace": [call, result]}), ", observed_messages: trace", 0),
        (chat("Done."), ", calls: all", 0),
    ):
        with LocalServer(answer) as server:
            project.write("agenteval.yaml", f"agent: {{endpoint: '{server.url}'{keys}}}\nmetrics: []\n")
            assert project.run().code == code, keys


# ── the mock must have answered ──────────────────────────────────────────────────────────────────


def test_a_seen_call_that_its_mock_did_not_answer_decides_nothing(project: Project) -> None:
    words = "{id: a, turns: [Hi, Again], tools: {look: %s}, expect: {output: {contains: [Done]}}}"
    done = play(project, LISTS_LOOK, words % "{returns: 1}")
    assert done.code == 3
    (open_check,) = [check for check in checks(project, "a").values() if check["name"] == "mocks"]
    assert (1, "mocks") in checks(project, "a")
    assert "look" in open_check["detail"]
    assert "intercept" in open_check["detail"]
    # Not among the scenario's tools, the agent's own is meant.
    assert play(project, LISTS_LOOK, words.replace("tools: {look: %s}, ", "")).code == 0
    # One that it did answer is not held against the agent for being listed, too.
    asks = LISTS_LOOK.replace("def agent(messages)", "def agent(messages, ctx)")
    asks = asks.replace("    return [\n", "    ctx.call_tool_sync('look')\n    return [\n")
    assert play(project, asks, words % "{returns: 1}").code == 0


def test_a_forbidden_call_is_red_whoever_answered_it(project: Project) -> None:
    assert play(project, LISTS, (FORBIDDEN % TOOLS).replace("[Hi]", "[Hi, Again]")).code == 1


def test_an_attempt_runs_nothing_and_fulfils_nothing(project: Project) -> None:
    attempt = LISTS_LOOK.replace('"function": {', '"attempted": True, "function": {')
    words = "{id: a, turns: [Hi, Again], tools: {look: {returns: 1}}, expect: %s}"
    assert play(project, attempt, words % "{output: {contains: [Done]}}").code == 0
    assert play(project, attempt, words % "{tool_calls: {calls: [{name: look}]}}").code == 1
    assert play(project, attempt, words % "{tool_calls: {forbidden: [{name: look}]}}").code == 1
    assert play(project, attempt, words % "{tool_calls: {match: strict, calls: []}}").code == 1
    assert play(project, attempt, words % "{limits: {tool_calls: 0}}").code == 0
    assert project.sample("a")["turns"][1]["tool_calls"][0]["attempted"] is True


DENIED_THEN_MADE = """
def agent(messages, ctx):
    ctx.call_tool_sync("%s", {})
    call = {"type": "function", "function": {"name": "delete_all", "arguments": "{}"}}
    first, second = ({**call, "id": one} for one in "12")
    return [
        {"role": "assistant", "tool_calls": [{**first, "attempted": True}]},
        {"role": "tool", "tool_call_id": "1", "content": "denied"},
        {"role": "assistant", "tool_calls": [{**second, "attempted": %s}]},
        {"role": "tool", "tool_call_id": "2", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]
"""


@pytest.mark.parametrize(
    ("asked", "code", "ran"),
    [("delete_all", 0, [False, True]), ("look", 1, [False, False])],
    ids=["made", "never made"],
)
def test_a_call_that_was_denied_is_not_the_one_that_was_made_later(
    project: Project, asked: str, code: int, ran: list[bool]
) -> None:
    words = (FORBIDDEN % TOOLS).replace("forbidden", "calls")
    done = play(project, DENIED_THEN_MADE % (asked, asked == "look"), words)
    assert done.code == code, done.all
    calls = project.sample("a")["turns"][0]["tool_calls"]
    assert [not call.get("attempted") for call in calls if call["name"] == "delete_all"] == ran


# ── recorded conversations ───────────────────────────────────────────────────────────────────────


def test_a_log_shows_calls_where_it_holds_one_or_declares_tools(project: Project) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}]
    made = [said[0], calling("look"), *said[1:]]
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    rule = "turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}"

    def scored(*records: dict[str, Any]) -> int:
        log(project, *records)
        each = "".join(f"  - {{id: {one['id']}, {rule}}}\n" for one in records)
        project.scenarios(f"defaults: {{tools: {{look: {{returns: 1}}}}}}\nscenarios:\n{each}", "suite.yaml")
        return score(project, "log.jsonl", "--scenarios", "suite.yaml").code

    text = {"id": "text", "messages": said}
    assert scored(text) == 3  # tools of scenarios show nothing of what the log would hold
    assert "calls: all" in checks(project, "text")[None, "tool_calls"]["detail"]
    assert scored(text, {"id": "made", "messages": made}) == 0
    assert score(project, "latest").code == 0
    assert scored(text, {"id": "declared", "messages": said, "tools": [schema]}) == 0
    project.write("agenteval.yaml", "agent: {target: 'a.py:agent', calls: all}\nmetrics: []\n")
    assert scored(text) == 0


# ── judges and detectors ─────────────────────────────────────────────────────────────────────────

JUDGE = """
replies:
  - when: {role: judge, metric: goal_completion}
    reply: {evidence: "", reason: cannot be told, outcome: not clear}
  - when: {role: judge, metric: criteria}
    reply: {evidence: "", reason: cannot be told, label: not clear}
"""
JUDGED = """
scenarios:
  - id: other
    goal: The order is looked up.
    turns: [Hi]
    expect: {criteria: [Looks up the order.], output: {contains: [Done]}}
  - {id: alone, turns: [Hi], expect: {criteria: [Looks up the order.]}}
"""


def test_a_criterion_that_is_not_clear_for_want_of_a_call_is_not_decided(project: Project) -> None:
    project.write("judge.yaml", JUDGE)
    project.agent(MERE_TEXT)
    project.scenarios(JUDGED)
    for keys in ("", ", calls: all"):
        project.write(
            "agenteval.yaml",
            f"agent: {{target: 'agent.py:agent'{keys}}}\nmetrics: [goal_completion]\n"
            "models: {default: scripted/judge.yaml}\n",
        )
        assert project.run().code == 3
        assert verdicts(project) == {"other": "inconclusive", "alone": "inconclusive"}


def test_a_judge_of_unseen_calls_has_no_label_for_a_missing_one() -> None:
    asked = {}
    for visibility in ToolVisibility:
        model = FakeModel({"evidence": "", "reason": "r", "label": "no failure"})
        turns = (Turn(user="Hi", steps=(Step(text="It rains."),)),)
        scenario = Scenario.model_validate({"id": "a", "tools": {"look": {"returns": 1}}})
        judge = Judge(load_rubric("tool_call_behavior_failure"), JudgeInputs(model))
        anyio.run(judge, scenario, Trajectory(turns=turns, visibility=visibility))
        (asked[visibility],) = model.requests
    seen = asked.pop(ToolVisibility.ALL)
    assert "missing tool call" in seen.prompt
    assert CALLS_NOT_OBSERVED not in seen.prompt
    for visibility, request in asked.items():
        assert "missing tool call" not in request.prompt, visibility
        assert "missing tool call" not in request.reply.model_json_schema()["properties"]["label"]["enum"]
        is_taken = visibility is ToolVisibility.DECLARED_UNSEEN
        assert (CALLS_DECLARED_UNSEEN in request.prompt, CALLS_NOT_OBSERVED in request.prompt) == (
            is_taken,
            not is_taken,
        )


def test_a_claim_that_no_seen_call_supports_leaves_the_sample_undecided(project: Project) -> None:
    agent = "def agent(messages):\n    return 'I cancelled order ORD-4711, the refund is $45.17.'\n"
    tools = "{cancel_order: {returns: {ok: true}}}"
    rule = f"{{id: a, turns: [Cancel my order please.], tools: {tools}, checks: none}}"
    resting = {"claimed_action_not_called", "ungrounded_value"}
    for keys, code, found in (("", 3, False), (", calls: all", None, True), (", calls: unseen", 0, False)):
        done = play(project, agent, rule, keys=keys)
        names = {each["detector"] for each in project.sample("a")["findings"]}
        assert bool(names & resting) is found, keys
        assert code is None or done.code == code, (keys, done.all)


# ── the declaration ──────────────────────────────────────────────────────────────────────────────


def test_the_author_may_trust_an_agent_whose_calls_are_unseen(project: Project) -> None:
    project.write(
        "judge.yaml",
        "replies:\n  - when: {role: judge, metric: goal_completion}\n"
        "    reply: {evidence: Done., reason: it says so, outcome: reached}\n",
    )
    goal = f"{{id: a, goal: The order is looked up., checks: none, {TOOLS}turns: [Hi]}}"
    project.agent(MERE_TEXT)
    project.scenarios(goal)
    project.write(
        "agenteval.yaml",
        "agent: {target: 'agent.py:agent', calls: unseen}\nmetrics: [goal_completion]\n"
        "models: {default: scripted/judge.yaml}\n",
    )
    done = project.run()
    assert done.code == 0, done.all
    assert caveats(project)["on_their_word"] == 1


def test_checks_of_calls_that_are_declared_unseen_are_refused(project: Project) -> None:
    project.agent(MERE_TEXT)
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent', calls: unseen}\nmetrics: []\n")
    project.scenarios(FORBIDDEN % TOOLS)
    for command in ("validate", "run"):
        project.call(command).refuses("suite.yaml:1", "calls: unseen")


@pytest.mark.parametrize(
    ("written", "fact"),
    [("tools: visible", "calls: all"), ("tools: none", "calls: unseen"), ("calls: hidden", "all")],
)
def test_an_unknown_declaration_of_calls_is_refused_with_a_known_one(
    project: Project, written: str, fact: str
) -> None:
    play(project, MERE_TEXT, keys=f", {written}").refuses("agenteval.yaml:1", fact)


def test_which_calls_are_seen_is_in_the_results_and_in_validate(project: Project) -> None:
    assert "calls: all" in play(project, MERE_TEXT).out
    assert project.results()["run"]["calls_seen"] == {"bot": "unseen"}
    assert has(project.call("validate").out, "calls: all", "calls: unseen")
    play(project, MERE_TEXT, keys=", calls: all")
    assert project.results()["run"]["calls_seen"] == {"bot": "all"}
    valid = project.call("validate").out
    assert ("calls: all" in valid, "calls: all | unseen" in valid) == (True, False)


def test_a_failed_conversation_is_shown_with_its_failed_check(project: Project) -> None:
    project.agent("async def agent(messages, ctx):\n    return 'no'\n")
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.scenarios(
        "{id: pay, tools: {pay: {returns: ok}}, turns: [Pay.], expect: {tool_calls: {calls: [{name: pay}]}, "
        "output: {contains: ['Done:']}}}"
    )
    done = project.run()
    assert done.code == 1
    (shown,) = [line for line in done.err.splitlines() if line.startswith("✗ pay")]
    assert '"Done:"' in shown
