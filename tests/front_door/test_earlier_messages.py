"""``history``: a conversation that had already begun."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support import toy
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import script, user

CALL = {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": '{"email": "a@b.c"}'}}
HISTORY: list[Json] = [
    {"role": "user", "content": "I am Ann, a@b.c. Where is my order?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"id": "ORD-4711", "status": "packed"}'},
    {"role": "assistant", "content": "ORD-4711 is packed. Shall I cancel it?"},
]
READS = """
import json
def agent(messages):
    found = [json.loads(m["content"])["id"] for m in messages if m["role"] == "tool"]
    if messages[-1]["role"] == "tool" and len(found) > 1:
        return f"Cancelled {found[0]}."
    call = {"id": f"c{len(messages)}", "type": "function",
            "function": {"name": "cancel_order", "arguments": json.dumps({"id": found[0] if found else "?"})}}
    return {"role": "assistant", "tool_calls": [call]} if found else "Which order do you mean?"
"""
FORGETS = READS.replace("def agent(messages):", "def agent(messages):\n    messages = messages[-1:]")


def scenario(**more: Any) -> Json:
    return {
        "id": "s",
        "history": HISTORY,
        "tools": {"cancel_order": {"destructive": True, "returns": {"id": "${args.id}", "cancelled": True}}},
        "turns": ["Yes, please."],
        "expect": {
            "tool_calls": {
                "match": "strict",
                "calls": [{"name": "cancel_order", "args": {"id": "ORD-4711"}}],
            },
            "output": {"contains": ["ORD-4711"], "cites": ["ORD-4711"], "not_contains": ["packed"]},
            "limits": {"steps": 2, "tool_calls": 1},
        },
        **more,
    }


def set_up(
    project: Project, agent: str = READS, config: str = "", target: str = "agent.py:agent", **more: Any
) -> None:
    project.agent(agent)
    project.config(config, target="")
    if target:
        config = f"agent: {{name: bot, target: '{target}', calls: all}}\n" + (config or "metrics: []\n")
    project.write("agenteval.yaml", config if "metrics:" in config else config + "metrics: []\n")
    project.scenarios(json.dumps(scenario(**more)))


@pytest.mark.parametrize("agent", [READS, FORGETS])
def test_only_an_agent_that_reads_what_was_said_before_is_green(project: Project, agent: str) -> None:
    set_up(project, agent)
    done = project.run()
    assert done.code == (0 if agent == READS else 1), done.all
    sample = project.sample()
    failed = {(None, "tool_calls"), (None, "output.contains"), (None, "output.cites")}
    assert failed_checks(sample) == (set() if agent == READS else failed)
    (turn,) = sample["turns"]
    assert (turn["user"], len(turn["tool_calls"])) == ("Yes, please.", 1 if agent == READS else 0)
    assert sample["findings"] == [], "the yes answers a question that was asked before"
    shown = project.call("show", "s").out
    assert shown.index("before") < shown.index("Shall I cancel it?") < shown.index("Yes, please.")


def test_score_and_the_journal_know_the_history(project: Project) -> None:
    set_up(project)
    assert project.run().code == 0
    done = project.call("score", "latest")
    assert done.code == 0, done.all
    assert "ORD-4711" in project.call("show", "s", "--json").out


def test_an_identifier_from_before_is_known_and_another_is_not(project: Project) -> None:
    answers = {"said before": "ORD-4711", "made up": "ORD-9358"}
    project.agent(
        'def agent(messages, ctx): return f"Your order is {ORDERS[ctx.scenario_id]}."\nORDERS = '
        + repr(answers)
    )
    project.write("agenteval.yaml", f"{AGENT}fail_on_severity: medium\nmetrics: []\n")
    entries = [scenario(id=name, expect={}, checks="none") for name in answers]
    project.scenarios(json.dumps({"scenarios": entries}))
    assert project.run().code == 1
    found = {
        s["id"]: [f["detector"] for f in s["samples"][0]["findings"]] for s in project.results()["scenarios"]
    }
    assert found == {"said before": [], "made up": ["ungrounded_value"]}


AGENT = "agent: {name: bot, target: 'agent.py:agent', calls: all}\n"
COUNTS = "f\"{len(messages) - 1} {messages[0]['content'][:8]}\""
SHAPES = {
    "history": """def agent(message, history): return f"{len(history)} {history[0]['content'][:8]}" """,
    "list": f"def agent(messages): return {COUNTS}",
    "class": f"class agent:\n    def __call__(self, messages): return {COUNTS}",
    "made": f"def make():\n    return lambda messages: {COUNTS}\nagent = None",
}


@pytest.mark.parametrize("kept", ["", f"  interpreter: {sys.executable}\n"])
@pytest.mark.parametrize("shape", SHAPES)
def test_each_form_of_a_python_agent_gets_it(project: Project, shape: str, kept: str) -> None:
    target = "agent.py:make" if shape == "made" else "agent.py:agent"
    set_up(
        project,
        SHAPES[shape],
        f"agent:\n  target: {target}\n{kept}",
        "",
        expect={"output": {"contains": ["4 I am Ann"]}},
    )
    done = project.run()
    assert done.code == 0, done.all


ASK, END = "{role: user, content: a}", "{role: assistant, content: b}"
DO, GOT = "{role: assistant, tool_calls: [{name: t, args: {}}]}", "{role: tool, content: x}"
PYTHON = "target: 'agent.py:agent'"
LATEST_ONLY = {
    "text": ("def agent(message: str): return message", PYTHON, "`(message, history)`"),
    "session": ("def agent(message, session_id): return message", PYTHON, "`messages`"),
    "worker": ("def agent(message: str): return 1", f"{PYTHON}, interpreter: {sys.executable}", "`messages`"),
    "program": ("", f"command: {{run: [{sys.executable}, a.py, '${{message}}', '${{session}}']}}",
                "${messages_file}"),
    "http": ("", "endpoint: 'http://127.0.0.1:1/', request: {m: '${message}', s: '${session}'},"
                 " reply: {text: t}", "${messages}"),
}  # fmt: skip


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize("kind", LATEST_ONLY)
def test_an_agent_that_gets_only_the_latest_message_is_refused(
    project: Project, kind: str, command: str
) -> None:
    code, config, remedy = LATEST_ONLY[kind]
    set_up(project, code, f"agent: {{name: bot, {config}}}\n", target="")
    project.scenarios(f"id: s\nturns: [Hi]\nchecks: none\nhistory:\n- {ASK}\n- {END}\n")
    project.call(command).refuses("scenarios/suite.yaml:4", "agent 'bot'", "`history`", remedy)
    project.scenarios("id: s\nturns: [Hi]\nchecks: none\n")
    assert project.call("validate").code == 0


def test_what_a_factory_makes_is_refused_when_it_is_known(project: Project) -> None:
    set_up(
        project, "def make():\n    return lambda message: message", "agent: {target: 'agent.py:make'}\n", ""
    )
    done = project.run()
    assert done.code == 2, done.all
    assert "`history`" in done.all
    assert "`(message, history)`" in done.all


@pytest.mark.parametrize("place", toy.PLACES)
def test_a_framework_says_whether_it_can_continue(project: Project, place: str) -> None:
    toy.install_toy(project)
    code = """
    from toy import Agent
    async def play(run, text): return f"{len(run.said)} {run.said[0][:8]}"
    agent = Agent(play)
    agent.continues = True
    """
    expect = {"output": {"contains": ["2 I am Ann"]}}
    config = f"agent: {{name: bot, target: 'agent.py:agent'{place}}}\n"
    set_up(project, code, config, "", expect=expect, tools={})
    done = project.run()
    assert done.code == 0, done.all
    project.agent(code.replace("agent.continues = True", ""))
    for command in ("validate", "run"):
        project.call(command).refuses(
            "scenarios/suite.yaml:1", "agent 'bot'", "Toy", "`history`", "`messages`"
        )


def test_programs_and_servers_get_it(project: Project) -> None:
    program = """
    import json, sys
    path = sys.argv[1] if len(sys.argv) > 1 else ""
    messages = json.load(open(path)) if path else json.loads(input())["messages"]
    text = f"{len(messages)} {messages[0]['content'][:8]}"
    print(text if path else json.dumps({"text": text}))
    """
    expect = {"output": {"contains": ["5 I am Ann"]}}
    project.write("program.py", program)
    for command in (
        f"{{run: [{sys.executable}, program.py, '${{messages_file}}']}}",
        f"[{sys.executable}, program.py]",
    ):
        set_up(project, "", f"agent: {{type: command, command: {command}}}\n", "", expect=expect)
        done = project.run()
        assert done.code == 0, done.all

    def play(asked: Json) -> Reply:
        messages = asked.get("messages") or asked["all"]
        seen.append(messages)
        return Reply(completion(f"{len(messages)} {messages[0]['content'][:8]}"))

    seen: list[Any] = []
    api = ", request: {all: '${messages}', s: '${session}'}, reply: {text: choices.0.message.content}"
    with ModelServer(play) as server:
        for more in ("", api):
            endpoint = f"{server.base_url}/chat/completions"
            set_up(project, "", f"agent: {{endpoint: '{endpoint}'{more}}}\n", "", expect=expect)
            done = project.run()
            assert done.code == 0, done.all
    assert seen[0] == seen[1]
    assert [m["role"] for m in seen[0]] == ["user", "assistant", "tool", "assistant", "user"]
    assert seen[0][1]["tool_calls"] == [CALL]


def test_the_simulated_user_has_said_it(project: Project) -> None:
    def play(asked: Json) -> Reply:
        prompts.append(asked["messages"][-1]["content"])
        at = len(prompts)
        reply = {"reason": "r", "unknown": "", "invented": "", "allowed_by": "", "done": at > 1}
        return Reply(completion(json.dumps({**reply, "message": "Yes, cancel it." if at == 1 else ""})))

    prompts: list[str] = []
    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        set_up(
            project,
            config=f"models: {{user: {model}}}\nmetrics: []\n",
            turns=None,
            goal="Cancel it.",
            epochs=1,
        )
        done = project.run()
    assert done.code == 0, done.all
    assert "You said:" in prompts[0]
    assert prompts[0].index("I am Ann") < prompts[0].index("Shall I cancel it?")
    assert "find_order" not in prompts[0], "the user sees no calls"
    assert project.sample()["findings"] == [], "it says yes to a question that was asked before"
    assert [turn["user"] for turn in project.sample()["turns"]] == ["Yes, cancel it."]


def test_the_simulated_user_does_not_repeat_what_it_said_before(project: Project) -> None:
    set_up(
        project,
        config="models: {default: scripted/replies.yaml}\nmetrics: []\n",
        turns=None,
        goal="Cancel it.",
        epochs=1,
    )
    script(project, user("s", 0, HISTORY[0]["content"]))
    done = project.run()
    assert (done.code, project.sample()["fault"]) == (3, "simulator"), done.all
    assert "repeated its message" in done.all
    script(project, user("s", 0, "", done=True))
    done = project.run()
    assert (done.code, project.sample()["fault"]) == (3, "simulator"), done.all


def test_judges_see_it_as_background_and_may_quote_it(project: Project) -> None:
    def play(asked: Json) -> Reply:
        prompts.append(json.dumps(asked["messages"]))
        verdict = {"evidence": "ORD-4711 is packed. Shall", "reason": "r", "score": 4}
        return Reply(completion(json.dumps(verdict)))

    prompts: list[str] = []
    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        set_up(project, config=f"models: {{judge: {model}}}\nmetrics: [helpfulness]\n")
        done = project.run()
    assert done.code == 0, done.all
    assert prompts[0].index("What came before the conversation") < prompts[0].index(
        "Earlier, the agent called"
    )
    assert prompts[0].index("Earlier, the agent called") < prompts[0].index("# The conversation")
    assert "makes tool call 0" in prompts[0].split("# The conversation")[1]
    assert project.sample()["turns"][0]["score_failures"] == []


MISTAKES = {
    "system": (["{role: system, content: s}", ASK, END], 1, ("system", "`policy`")),
    "role": (["{role: usr, content: s}"], 1, ("usr", "'user'")),
    "key": (["{role: user, contents: s}"], 1, ("contents", "'content'")),
    "begins": ([END], 1, ("begin with a user",)),
    "ends": ([ASK, END, ASK], 3, ("end with an answer", "`turns`")),
    "call": ([ASK, DO, END], 3, ("'t'", "no result")),
    "last": ([ASK, DO], 2, ("'t'", "no result")),
    "open": ([ASK, DO, GOT], 3, ("end with an answer",)),
    "result": ([ASK, GOT, END], 2, ("no call",)),
    "id": ([ASK, DO.replace("{name", "{id: c1, name"), "{role: tool, tool_call_id: c2, content: x}"], 3,
           ("'c2'", "c1")),
    "arguments": ([ASK, DO.replace("args: {}", "args: '{'")], 2, ("'t'", "JSON object")),
    "name": ([ASK, "{role: assistant, tool_calls: [{args: {}}]}"], 2, ("no name",)),
    "twice": ([ASK, ASK], 2, ("no answer",)),
    "empty": (["{role: user}"], 1, ("empty",)),
    "nothing": ([ASK, "{role: assistant}"], 2, ("neither",)),
    "answers": ([ASK, END, END], 3, ("already answered",)),
    "text": (["hello"], 1, ("history",)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_at_its_message(project: Project, name: str) -> None:
    messages, line, facts = MISTAKES[name]
    set_up(project)
    project.scenarios(
        "\n".join(["id: s", "turns: [Hi]", "checks: none", "history:", *(f"- {m}" for m in messages)]) + "\n"
    )
    done = project.call("validate")
    done.refuses(f"scenarios/suite.yaml:{4 + line}", *facts)
    assert done.err.count("scenarios/suite.yaml") == 1, done.err


def test_a_short_form_parts_and_several_calls_are_read(project: Project) -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "I am Ann"}]},
        {"role": "assistant", "content": "One moment.", "tool_calls": [
            {"id": "a", "name": "x", "args": {"n": 1}}, {"id": "b", "name": "y", "args": {}},
        ], "refusal": None},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": {"one": 1}},
        {"role": "assistant", "content": "Done.", "annotations": []},
    ]  # fmt: skip
    project.agent("import json\ndef agent(messages): return json.dumps(messages)")
    project.config()
    project.scenarios(json.dumps({"id": "s", "turns": ["Hi"], "checks": "none", "history": history}))
    done = project.run()
    assert done.code == 0, done.all
    got = json.loads(project.sample()["turns"][0]["agent"])
    assert [(m["role"], m["content"]) for m in got] == [
        ("user", "I am Ann"), ("assistant", "One moment."), ("tool", '{"one": 1}'), ("tool", "two"),
        ("assistant", "Done."), ("user", "Hi"),
    ]  # fmt: skip


def test_a_changed_history_is_another_scenario(project: Project) -> None:
    set_up(project)
    assert project.run().code == 0
    history = [*HISTORY[:-1], {**HISTORY[-1], "content": "It is packed. Do you want to cancel ORD-4711?"}]
    project.scenarios(json.dumps(scenario(history=history)))
    done = project.run("--baseline", "latest")
    assert "history" in done.all, done.all


def test_a_case_may_have_one(project: Project) -> None:
    project.agent(READS)
    project.config()
    tools = scenario()["tools"]
    project.scenarios(json.dumps({"cases": [
        {"id": "c", "input": "Yes.", "history": HISTORY, "tools": tools, "expected_tools": ["cancel_order"]}
    ]}))  # fmt: skip
    assert project.run().code == 0
