"""``user_tools``: tools on the user's side, over the same state as the agent's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import script, user

CAREFUL = """
import json
def agent(messages):
    with open("heard.jsonl", "a") as file:
        file.write(json.dumps(messages) + "\\n")
    if "restarted" not in str(messages[-1]["content"]) and messages[-1]["role"] == "user":
        return "Please restart your router, and tell me when it is done."
    if messages[-1]["role"] == "tool":
        return f"The line is {json.loads(messages[-1]['content'])['status']}."
    call = {"id": "c1", "type": "function", "function": {"name": "check_line", "arguments": '{"id": "L1"}'}}
    return {"role": "assistant", "tool_calls": [call]}
"""
HASTY = CAREFUL.replace('    call = {"id', '    return "Great, the line is up."\n    call = {"id')
AGENTS = {"careful": CAREFUL, "hasty": HASTY}
STATE = {
    "tables": {
        "lines": [{"id": "L1", "status": "down", "checks": 0}, {"id": "L2", "status": "up", "checks": 0}]
    }
}
TOOLS = {
    "check_line": {
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "sql": [
            "UPDATE lines SET checks = checks + 1 WHERE id = :id",
            "SELECT status FROM lines WHERE id = :id",
        ],
        "one": True,
    }
}
RESTART = {
    "description": "Restart the router at home.",
    "parameters": {
        "type": "object",
        "properties": {"wait_s": {"type": "integer"}},
        "additionalProperties": False,
    },
    "sql": "UPDATE lines SET status = 'up' WHERE id = 'L1'",
    "returns": {"lamp": "green"},
}
CALL = {"name": "restart_router", "args": {"wait_s": 30}}
RIGHT = {"lines": [{"id": "L1", "status": "up", "checks": 1}]}
EXPECTED = [
    {"sql": "SELECT status FROM lines WHERE id = 'L1'", "equals": "up"},
    {"changed": RIGHT},
    {"same_as": [CALL, {"name": "check_line", "args": {"id": "L1"}}]},
]


def scenario(**more: Any) -> Json:
    return {
        "id": "s",
        "state": STATE,
        "tools": TOOLS,
        "user_tools": {"restart_router": RESTART},
        "turns": [
            "My internet is down.",
            {
                "user": "I restarted it.",
                "tool_calls": [CALL],
                "expect": {
                    "tool_calls": {"match": "strict", "calls": [{"name": "check_line"}]},
                    "state": {"sql": "SELECT status FROM lines WHERE id = 'L1'", "equals": "up"},
                },
            },
        ],
        "expect": {"state": EXPECTED, "limits": {"steps": 3, "tool_calls": 1}},
        **more,
    }


def set_up(project: Project, agent: str = CAREFUL, config: str = "metrics: []\n", **more: Any) -> None:
    project.agent(agent)
    project.write("agenteval.yaml", f"agent: {{name: bot, target: 'agent.py:agent', calls: all}}\n{config}")
    project.scenarios(json.dumps(scenario(**more)))


@pytest.mark.parametrize("agent", AGENTS)
def test_only_an_agent_that_checks_what_the_user_did_is_green(project: Project, agent: str) -> None:
    set_up(project, AGENTS[agent])
    done = project.run()
    assert done.code == (0 if agent == "careful" else 1), done.all
    sample = project.sample()
    red = {(1, "tool_calls"), (None, "state.changed"), (None, "state.same_as")}
    assert failed_checks(sample) == (set() if agent == "careful" else red)
    first, second = sample["turns"]
    assert "user_tool_calls" not in first
    (call,) = second["user_tool_calls"]
    assert (call["name"], call["args"], call["result"]) == (
        "restart_router",
        {"wait_s": 30},
        {"lamp": "green"},
    )
    assert [each["name"] for each in second["tool_calls"]] == (["check_line"] if agent == "careful" else [])
    heard = (project.root / "heard.jsonl").read_text("utf-8")
    assert "restart_router" not in heard
    assert "green" not in heard
    shown = project.call("show", "s").out
    assert 'restart_router {"wait_s": 30} → {"lamp": "green"}' in " ".join(shown.split())
    assert shown.index("restart_router") < shown.index("I restarted it.")
    assert shown.index("status") > shown.index("I restarted it."), "the change stands at the turn"
    scored = project.call("score", "latest", "--report", "json=scored.json")
    assert scored.code == done.code
    again = json.loads((project.root / "scored.json").read_text("utf-8"))["scenarios"][0]["samples"][0]
    assert failed_checks(again) == failed_checks(sample)
    assert again["turns"][1]["user_tool_calls"] == second["user_tool_calls"]


def test_the_screen_has_the_users_calls(project: Project) -> None:
    set_up(project, HASTY)
    done = project.run()
    assert 'does restart_router {"wait_s": 30}' in " ".join(done.out.split())


def test_the_users_action_is_known_without_the_agent(project: Project) -> None:
    """The agent does nothing; the user's call alone decides the state."""
    set_up(
        project,
        "def agent(messages): return 'Fine.'",
        expect={"state": [{"changed": {"lines": [{"id": "L1"}]}}]},
    )
    sample = (project.run(), project.sample())[1]
    assert (None, "state.changed") not in failed_checks(sample)


@pytest.mark.parametrize("tools", [TOOLS, {}])
@pytest.mark.parametrize("unmocked", ["error", "empty"])
def test_the_agent_does_not_have_the_users_tools(project: Project, tools: Json, unmocked: str) -> None:
    agent = """
    def agent(messages, ctx):
        return f"{ctx.call_tool_sync('restart_router', {})} {[t['function']['name'] for t in ctx.tools]}"
    """
    turns = ["Please restart it."]
    expect = {"state": {"changed": {}}, "output": {"contains": ["unknown tool"]}}
    set_up(
        project, agent, f"metrics: []\nunmocked_tools: {unmocked}\n", tools=tools, turns=turns, expect=expect
    )
    done = project.run()
    sample = project.sample()
    assert (None, "state.changed") not in failed_checks(sample), done.all
    answer = sample["turns"][0]["agent"]
    assert "unknown tool 'restart_router'" in answer
    assert answer.endswith("['check_line']" if tools else "[]")
    assert done.code == 1
    assert [finding["detector"] for finding in sample["findings"]] == ["unknown_tool"]


def test_several_calls_are_made_in_order_and_an_error_is_a_result(project: Project) -> None:
    calls = [{"name": "look"}, CALL, {"name": "look"}, {"name": "fails"}, {"name": "code", "args": {"x": 1}}]
    project.write(
        "scenarios/mocks.py", "def code(args, ctx): return [ctx.turn, ctx.call_index, bool(ctx.db), args]\n"
    )
    tools = {
        "restart_router": RESTART,
        "look": {"sql": "SELECT status FROM lines WHERE id = 'L1'", "one": True},
        "fails": {"error": "no power"},
        "code": {"python": "mocks.py:code"},
    }
    set_up(
        project,
        user_tools=tools,
        turns=["Hi.", {"user": "I restarted it.", "tool_calls": calls}],
        expect={},
        checks="none",
    )
    done = project.run()
    assert done.code == 0, done.all
    made = project.sample()["turns"][1]["user_tool_calls"]
    assert [each["result"] for each in made] == [
        {"status": "down"},
        {"lamp": "green"},
        {"status": "up"},
        {"error": "no power"},
        [1, 0, True, {"x": 1}],
    ]


MODEL = "models: {default: scripted/replies.yaml}\nmetrics: []\n"
SIMULATED: Json = {"turns": None, "goal": "Internet.", "epochs": 1}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_simulated_user_acts_before_it_speaks(project: Project, agent: str) -> None:
    set_up(project, AGENTS[agent], MODEL, **SIMULATED)
    script(
        project,
        user("s", 0, "My internet is down."),
        user("s", 1, "I restarted it, the lamp is green.", calls=[CALL]),
        user("s", 2, "", done=True),
    )
    done = project.run()
    assert done.code == (0 if agent == "careful" else 1), done.all
    sample = project.sample()
    red = {(None, "state.changed"), (None, "state.same_as")}
    assert failed_checks(sample) == (set() if agent == "careful" else red)
    (call,) = sample["turns"][1]["user_tool_calls"]
    assert (call["name"], call["args"]) == ("restart_router", {"wait_s": 30})


class Talk:
    """A model for users that answers with one reply after another, and keeps what it was asked."""

    def __init__(self, *replies: Json) -> None:
        self.replies = replies
        self.asked: list[Json] = []

    def __call__(self, asked: Json) -> Reply:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(asked)
        notes = {"reason": "r", "unknown": "", "invented": "", "allowed_by": "", "done": False, "message": ""}
        return Reply(completion(json.dumps({**notes, **reply})))

    def run(self, project: Project, agent: str = CAREFUL, **more: Any) -> Any:
        with ModelServer(self) as server:
            model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
            set_up(project, agent, f"models: {{user: {model}}}\nmetrics: []\n", **{**SIMULATED, **more})
            return project.run()

    @property
    def prompts(self) -> list[str]:
        return [each["messages"][-1]["content"] for each in self.asked]


def request(name: str, **args: Any) -> Json:
    return {"name": name, "args": json.dumps(args)}


def test_the_model_is_asked_again_with_what_came_of_its_calls(project: Project) -> None:
    talk = Talk(
        {"message": "My internet is down.", "calls": []},
        {
            "message": "not sent",
            "calls": [
                request("restart_router", wait_s=30),
                request("nothing"),
                request("restart_router", x=1),
            ],
        },
        {"message": "I restarted it.", "calls": [request("restart_router", wait_s=30)]},
        {"done": True, "calls": []},
    )
    done = talk.run(project)
    assert done.code == 0, done.all
    turns = project.sample()["turns"]
    assert [turn["user"] for turn in turns] == ["My internet is down.", "I restarted it."]
    made = turns[1]["user_tool_calls"]
    assert [each["name"] for each in made] == ["restart_router", "nothing", "restart_router"]
    assert made[0]["result"] == {"lamp": "green"}
    assert "unknown tool 'nothing'" in made[1]["result"]["error"]
    assert "wrong arguments" in made[2]["result"]["error"]
    forms = [list(each["response_format"]["json_schema"]["schema"]["properties"]) for each in talk.asked]
    assert forms == [["reason", "unknown", "invented", "allowed_by", "calls", "message", "done"]] * 4
    assert "Restart the router at home." in talk.prompts[0]
    assert "green" not in talk.prompts[1]
    assert 'restart_router {"wait_s": 30} → {"lamp": "green"}' in talk.prompts[2]
    assert "You did, with your own tools:" in talk.prompts[3]
    assert "check_line" not in "".join(talk.prompts)


def test_calls_have_bounds(project: Project) -> None:
    conversation = [
        {"message": "Hi.", "calls": []},
        *({"calls": [request("restart_router", wait_s=n)]} for n in range(5)),
        *({"message": "", "calls": [request("restart_router", wait_s=n)]} for n in (7, 8)),
    ]
    talk = Talk(*conversation * 2)  # a lost conversation is played once more
    done = talk.run(project)
    assert (done.code, project.sample()["fault"]) == (3, "simulator"), done.all
    made = project.sample()["turns"][-1]["user_tool_calls"]
    assert [each["args"]["wait_s"] for each in made] == [0, 1, 2, 3, 4]
    forms = [each["response_format"]["json_schema"]["schema"]["properties"] for each in talk.asked]
    assert ["calls" in form for form in forms] == [*[True] * 6, False, False] * 2
    assert ["often enough" in text for text in talk.prompts] == [*[False] * 6, True, True] * 2


def test_who_has_acted_says_so(project: Project) -> None:
    """Calls belong to the turn of the next message, so there is one."""
    talk = Talk(
        {"message": "Hi.", "calls": []},
        {"calls": [request("restart_router", wait_s=1)]},
        {"message": "", "done": True, "calls": []},
        {"message": "Thanks, I restarted it.", "done": True, "calls": []},
    )
    done = talk.run(project, expect={"state": {"changed": RIGHT}})
    assert done.code == 0, done.all
    turns = project.sample()["turns"]
    assert [turn["user"] for turn in turns] == ["Hi.", "Thanks, I restarted it."]


def test_a_code_that_a_tool_showed_is_known_to_the_user(project: Project) -> None:
    show = {"returns": {"serial": "RT-90210"}}
    talk = Talk(
        {"calls": [request("look")]},
        {"message": "I restarted it. Its number is RT-90210.", "calls": []},
        {"done": True, "calls": []},
    )
    done = talk.run(project, user_tools={"look": show}, expect={}, checks="none")
    assert done.code == 0, done.all
    talk = Talk({"message": "I restarted it. Its number is RT-90210.", "calls": []})
    done = talk.run(project, user_tools={"look": show}, expect={}, checks="none")
    assert done.code == 3, "it has not looked"
    assert "RT-90210" in done.all


def test_the_prompt_of_other_scenarios_is_as_it_was(project: Project) -> None:
    plain = Talk({"message": "Hi."}, {"done": True})
    assert plain.run(project, user_tools={}, expect={}, checks="none").code == 0
    acting = Talk({"message": "Hi.", "calls": []}, {"done": True, "calls": []})
    assert acting.run(project, expect={}, checks="none").code == 0
    for one, other in zip(plain.asked, acting.asked, strict=True):
        assert one["messages"][0] == other["messages"][0]
        text, longer = one["messages"][-1]["content"], other["messages"][-1]["content"]
        assert longer.startswith(text)
        assert text.endswith("What do you say next?")
        assert "tools of your own" in longer
    shown = project.call("show-prompts", "--metric", "user_tools").out
    assert "${tools}" in shown
    assert "${results}" in shown


def test_judges_see_what_the_user_did(project: Project) -> None:
    def play(asked: Json) -> Reply:
        prompts.append(asked["messages"][-1]["content"])
        quoted = 'restart_router {"wait_s": 30}' if len(prompts) == 2 else "My internet is down."
        return Reply(completion(json.dumps({"evidence": quoted, "reason": "r", "score": 4})))

    prompts: list[str] = []
    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        set_up(project, config=f"models: {{judge: {model}}}\nmetrics: [helpfulness]\nconcurrency: 1\n")
        done = project.run()
    assert done.code == 0, done.all
    acted = next(text for text in prompts if "I restarted it." in text)
    assert acted.index("On the user's side") < acted.index("I restarted it.")
    assert all("On the user's side" not in text for text in prompts if "I restarted it." not in text)
    assert "makes tool call 0" in acted, "the user's call has no number"


MISTAKES = {
    "both": ("tools: {restart: {returns: 1}}", "'restart'"),
    "no answer": ("user_tools: {look: {description: d}}", "'look'"),
    "mark": ("user_tools: {look: {returns: 1, destructive: true}}", "`destructive`"),
    "unknown": ("turns: [{user: Hi, tool_calls: [{name: restrat}]}]", "'restart'"),
    "schema": ("turns: [{user: Hi, tool_calls: [{name: restart, args: {n: x}}]}]", "'restart'"),
    "key": ("turns: [{user: Hi, tool_calls: [{name: restart, arguments: {}}]}]", "'args'"),
    "simulate": ("turns: [{simulate: 2, tool_calls: [{name: restart}]}]", "tool_calls"),
    "column": ("user_tools: {look: {sql: SELECT stat FROM t}}", "stat"),
    "function": ("user_tools: {look: {python: none.py:look}}", "none.py"),
    "reference": ("user_tools: {look: {returns: '${arg.x}'}}", "${args.x}"),
    "base": ("user_tools: {look: {returns: 1, base: x}}", "'base'"),
    "expected": ("expect: {tool_calls: {calls: [{name: restart}]}}", "'restart'"),
    "same_as": ("expect: {state: {same_as: [{name: restrat}]}}", "'restart'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_at_its_place(project: Project, name: str) -> None:
    written, fact = MISTAKES[name]
    set_up(project)
    restart = (
        "  restart: {parameters: {type: object, properties: {n: {type: integer}}}, sql: UPDATE t SET a = 2}"
    )
    entries = ["id: s", "goal: g", "checks: none", "state: {tables: {t: [{a: 1}]}}"]
    entries += [] if written.startswith("turns") else ["turns: [Hi]"]
    if written.startswith("user_tools"):
        entries += ["user_tools:", restart, "  " + written.removeprefix("user_tools: {").removesuffix("}")]
    else:
        entries += ["user_tools:", restart, written]
    project.scenarios("\n".join(entries) + "\n")
    done = project.call("validate")
    line = 6 if name == "both" else len(entries)
    if name == "both":
        line = next(at for at, text in enumerate(entries, 1) if text == restart)
    done.refuses(f"scenarios/suite.yaml:{line}", fact)


def test_a_scripted_turn_needs_the_users_tools(project: Project) -> None:
    set_up(project, user_tools={})
    project.call("validate").refuses("scenarios/suite.yaml:1", "'restart_router'", "`user_tools`")


def test_changed_tools_of_the_user_make_another_scenario(project: Project) -> None:
    set_up(project)
    assert project.run().code == 0
    set_up(project, user_tools={"restart_router": {**RESTART, "returns": {"lamp": "blue"}}})
    assert "user_tools" in project.run("--baseline", "latest").all


def test_a_default_is_shared_and_overridden(project: Project) -> None:
    set_up(project)
    one = scenario()
    shared = {key: one.pop(key) for key in ("state", "tools", "user_tools")}
    two = {**one, "id": "two", "user_tools": {"restart_router": {"error": "no power"}}, "expect": {}}
    two["turns"] = ["Hi.", {"user": "I restarted it.", "tool_calls": [CALL]}]
    two["checks"] = "none"
    project.scenarios(json.dumps({"defaults": shared, "scenarios": [one, two]}))
    done = project.run()
    assert done.code == 0, done.all
    assert project.sample("two")["turns"][1]["user_tool_calls"][0]["result"] == {"error": "no power"}


SIDE = {
    "id": "side",
    "tools": {"check_line": {"returns": {"status": "up"}}},
    "user_tools": {"restart_router": {"returns": {"lamp": "green"}}},
    "turns": ["My internet is down."],
    "expect": {"output": {"contains": ["restart*"]}},
}
LISTED = """
def agent(messages):
    call = {"id": "c1", "type": "function", "function": {"name": "restart_router", "arguments": "{}"}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "assistant", "content": "I restarted it."},
    ]
"""
OWN = """
def restart_router():
    return "done"

def agent(messages):
    return f"I restarted it: {restart_router()}."
"""


@pytest.mark.parametrize("unmocked", ["error", "empty", "passthrough"])
@pytest.mark.parametrize("agent", [LISTED, OWN])
def test_an_agent_that_calls_the_users_tool_on_its_own_is_red(
    project: Project, agent: str, unmocked: str
) -> None:
    project.agent(agent)
    intercept = ", intercept: {restart_router: 'agent.py:restart_router'}" if agent is OWN else ""
    config = f"agent: {{target: 'agent.py:agent'{intercept}}}\nunmocked_tools: {unmocked}\n"
    project.config(config, target="")
    project.scenarios(json.dumps(SIDE))
    done = project.run()
    assert done.code == 1, done.all
    assert (None, "unknown_tool") in failed_checks(project.sample())
    assert "which is a tool of the user" in done.out
