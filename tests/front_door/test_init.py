"""``agenteval init``: what it finds, what it writes, and that it overwrites nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import toy_framework
from tests.support.kit import Done, Project, environment, failed_checks
from tests.support.local_servers import LocalServer, Request, answer, chat, respond, respond_json
from tests.support.patience import HANG_S

WORKFLOW = ".github/workflows/agenteval.yml"
ECHO = "def answer(question):\n    return f'You asked: {question}'\n"
BROKEN = "def answer(question):\n    return question / 0\n"


def config_of(project: Project) -> dict[str, Any]:
    agent: dict[str, Any] = yaml.safe_load((project.root / "agenteval.yaml").read_text(encoding="utf-8"))[
        "agent"
    ]
    return agent


def init(project: Project, *arguments: str) -> Done:
    return project.call("init", "--yes", *arguments)


# ── Python ───────────────────────────────────────────────────────────────────────────────────────


def test_a_function_is_found_and_played(project: Project) -> None:
    project.write("shop/bot.py", ECHO)
    done = init(project)
    assert done.code == 0, done.all
    text = (project.root / "agenteval.yaml").read_text(encoding="utf-8")
    keys = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line.split("   #")[0] for line in keys] == [
        "agent: {target: 'shop/bot.py:answer'}",
        "metrics: []",
    ]
    assert "PASSED: 1 scenario passed" in done.out
    assert "You asked: Hello! What can you help me with?" in done.out
    assert done.out.endswith("agent: shop/bot.py:answer, a function of question\nnext: agenteval run\n")
    assert project.call("run").code == 0
    project.write("shop/bot.py", BROKEN)
    assert project.call("run").code == 1


def test_an_agent_that_fails_gives_its_exit_code_and_the_files_stand(project: Project) -> None:
    project.write("bot.py", BROKEN)
    done = init(project)
    assert done.code == 1
    assert "agent_error: TypeError" in done.out
    assert "The files stand." in done.out
    assert config_of(project) == {"target": "bot.py:answer"}


NO_AGENTS = {
    "a tool": "@tool\ndef answer(question):\n    return question\n",
    "a function that answers nothing": "def answer(question):\n    print(question)\n",
    "a number": "def ask(messages) -> int:\n    return len(messages)\n",
    "more is needed": "def answer(question, database):\n    return database[question]\n",
    "a message of its own class": "def answer(message: Mail):\n    return message.text\n",
    "a function of some text": "def clean(text):\n    return text.strip()\n",
    "a private one": "def _answer(question):\n    return question\n",
    "a class that needs arguments": "class Bot:\n    def __init__(self, key):\n        self.key = key\n\n"
    "    def chat(self, message):\n        return message\n",
    "no Python": "def answer(:\n",
}


@pytest.mark.parametrize("code", NO_AGENTS.values(), ids=NO_AGENTS)
def test_what_is_no_agent_is_not_taken_for_one(project: Project, code: str) -> None:
    project.write("bot.py", code)
    init(project, "--no-try")
    assert config_of(project) == {"target": "my_agent.py:agent"}


AGENTS = {
    "agent": "def agent(messages, ctx):\n    return 'Hello.'\n",
    "respond": "def respond(message, history):\n    yield 'Hello.'\n",
    "Bot": "class Bot:\n    def chat(self, message: str, session_id=None) -> str:\n        return 'Hello.'\n",
    "complete": "def short(messages):\n    return messages[-1:]\n\n\n"
    "async def complete(messages: list[dict]) -> str:\n    return str(short(messages))\n",
}


@pytest.mark.parametrize("name", AGENTS)
def test_the_forms_of_a_python_agent(project: Project, name: str) -> None:
    project.write("bot.py", AGENTS[name])
    done = init(project, "--ci", "none")
    assert (done.code, config_of(project)) == (0, {"target": f"bot.py:{name}"}), done.all


@pytest.mark.parametrize("folder", ["tests", ".hidden", "node_modules", "env"])
def test_folders_that_are_not_looked_into(project: Project, folder: str) -> None:
    project.write(f"{folder}/bot.py", ECHO)
    project.write("env/pyvenv.cfg", "")
    init(project, "--no-try")
    assert config_of(project) == {"target": "my_agent.py:agent"}


def test_of_several_the_likeliest_is_taken_and_the_others_are_named(project: Project) -> None:
    project.write("bot.py", f"{ECHO}\n\ndef agent(messages):\n    return answer(messages[-1]['content'])\n")
    done = init(project)
    assert config_of(project) == {"target": "bot.py:agent"}
    assert "also found: bot.py:answer, a function of question" in done.out


def test_names_with_blanks_and_of_any_script(project: Project) -> None:
    project.write("my bots/zoë's.py", ECHO)
    done = init(project)
    assert (done.code, config_of(project)) == (0, {"target": "my bots/zoë's.py:answer"}), done.all


@pytest.mark.parametrize("written", ["bot.py:second", "./bot.py"])
def test_an_agent_that_its_author_names(project: Project, written: str) -> None:
    project.write("bot.py", "def second(x):\n    return x[0]['content']\n\n\n" + ECHO)
    done = init(project, "--agent", written)
    name = "second" if "second" in written else "answer"
    assert (done.code, config_of(project)) == (0, {"target": f"bot.py:{name}"}), done.all


# ── a package with an environment of its own ─────────────────────────────────────────────────────

GRAPH = """
from langgraph.graph import START, StateGraph

from .words import HELLO


def reply(state):
    return HELLO


builder = StateGraph(dict)
builder.add_node(reply)
graph = builder.compile(name="shop")
found = graph.invoke
"""
LANGGRAPH = """
class Graph:
    def add_node(self, node):
        self.node = node

    def compile(self, name):
        return self

    def invoke(self, state):
        return self.node(state)

START, StateGraph = "", lambda state: Graph()
"""


def with_environment(project: Project) -> None:
    """An interpreter of the project's own, as far as anybody can see: this one, by a link."""
    folder = project.root / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (folder.parent / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_framework_object_in_a_package_with_an_environment_of_its_own(project: Project) -> None:
    with_environment(project)
    project.write("src/shop/__init__.py", "")
    project.write("src/shop/words.py", "HELLO = 'Hello.'\n")
    project.write("src/shop/graph.py", GRAPH)
    project.write(
        "src/shop/app.py", "from .graph import graph\n\n\ndef answer(question):\n    return str(graph)\n"
    )
    project.write("requirements.txt", "langgraph\n")
    done = init(project, "--no-try")
    assert config_of(project) == {"target": "src/shop/graph.py:graph", "interpreter": ".venv/bin/python"}
    assert "agent: src/shop/graph.py:graph, LangGraph" in done.out
    steps = (project.root / WORKFLOW).read_text(encoding="utf-8")
    assert "- run: python -m venv .venv\n" in steps
    assert "- run: .venv/bin/pip install -r requirements.txt\n" in steps


def test_the_graph_that_langgraph_json_names(project: Project) -> None:
    project.write("src/shop/graph.py", GRAPH.replace(".words", "words"))
    project.write("src/shop/app.py", "from .graph import graph\n\nchosen = graph\n")
    project.write("langgraph.json", '{"graphs": {"shop": "./src/shop/app.py:chosen", "odd": 3}}')
    done = init(project, "--no-try")
    assert config_of(project) == {"target": "src/shop/app.py:chosen"}, done.all
    assert "also found: src/shop/graph.py:graph" in done.out


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("package", ["only_there", "json"])
def test_an_environment_is_named_where_it_is_needed(project: Project, package: str) -> None:
    with_environment(project)
    project.write("bot.py", f"def answer(question):\n    import {package}\n    return 'Hello.'\n")
    init(project, "--no-try")
    assert ("interpreter" in config_of(project)) == (package == "only_there")


TOY = """
from toy import Agent


def get_order(id):
    raise RuntimeError("this would ask the shop")


async def play(run, text):
    order = await run.call("get_order", id="ORD-42")
    return f"Here is {order}"


agent = Agent(play, get_order)
"""


def test_the_tools_of_a_framework_object_are_answered_by_the_scenario(project: Project) -> None:
    project.write("toy.py", Path(toy_framework.__file__).read_text("utf-8"))
    project.write("shop.py", TOY)
    done = init(project, "--agent", "shop.py:agent")
    (scenario,) = yaml.safe_load((project.root / "scenarios/first.yaml").read_text("utf-8"))["scenarios"]
    assert scenario["tools"] == {"get_order": {"returns": {}}}
    assert done.code == 0, done.all
    project.write("shop.py", TOY.replace("Here is {order}", ""))
    assert project.call("run").code == 1


EXAMPLES = Path(__file__).parents[2] / "scenarios/frameworks"


@pytest.mark.parametrize("example", [path.parent.name for path in EXAMPLES.glob("*/agenteval.yaml")])
def test_the_objects_of_each_framework_are_known_without_it(project: Project, example: str) -> None:
    shutil.copy(EXAMPLES / example / "agent.py", project.root)
    done = init(project, "--no-try", "--ci", "none")
    names = {"langgraph": "by_hand", "smolagents": "coding"}  # the last one
    assert config_of(project) == {"target": f"agent.py:{names.get(example, 'careful')}"}
    assert "agent.py:hasty, " in done.out


# ── services ─────────────────────────────────────────────────────────────────────────────────────


def described(paths: dict[str, Any], **schemas: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}


def takes(schema: Any, reply: Any) -> dict[str, Any]:
    def content(of: Any) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": of}}}

    return {"post": {"requestBody": content(schema), "responses": {"200": content(reply)}}}


TEXT = {"type": "string"}
ASKED = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "message": TEXT,
        "session_id": {"type": ["string", "null"]},
        "limit": {"type": "integer", "default": 3},
    },
}
GIVEN = {
    "type": "object",
    "properties": {"data": {"$ref": "#/components/schemas/Data"}, "took": {"type": "number"}},
}
CHAT = described(
    {"/health": {"get": {}}, "/chat": takes({"$ref": "#/components/schemas/Asked"}, GIVEN)},
    Asked=ASKED,
    Data={"type": "object", "properties": {"answer": TEXT, "sources": {"type": "array"}}},
)


def service(description: Any, reply: Any) -> LocalServer:
    """One with a description, whose requests have to be as the description says."""

    def serve(request: Request) -> Any:
        if request.method == "GET":
            return respond_json(
                description, status=200 if description and request.path == "/openapi.json" else 404
            )
        if set(request.json) != {"message", "session_id"} or request.path != "/chat":
            return respond("bad request", status=422)
        return respond_json(reply)

    return LocalServer(answer(serve))


@pytest.mark.parametrize("path", ["", "/chat"])
def test_a_service_that_describes_itself(project: Project, path: str) -> None:
    with service(CHAT, {"data": {"answer": "Hello."}, "took": 0.1}) as server:
        done = init(project, "--agent", f"{server.address}{path}")
        assert done.code == 0, done.all
        assert config_of(project) == {
            "endpoint": f"{server.address}/chat",
            "request": {"message": "${message}", "session_id": "${session}"},
            "reply": {"text": "data.answer"},
        }
        assert [r.method for r in server.requests] == ["GET", "POST"]  # what is played, and nothing else
    with service(CHAT, {"data": {"answer": ""}, "took": 0.1}) as broken:
        config = (project.root / "agenteval.yaml").read_text("utf-8").replace(server.address, broken.address)
        project.write("agenteval.yaml", config)
        assert project.call("run").code == 1


def test_a_service_that_says_nothing_of_itself_has_what_to_look_at(project: Project) -> None:
    with service(None, {"answer": "Hello."}) as server:
        done = init(project, "--agent", f"{server.address}/chat")
    assert done.code == 1
    assert "look at agenteval.yaml: no description of the API was found" in done.out
    assert config_of(project)["request"] == {"message": "${message}"}


def test_what_a_description_leaves_open_is_filled_in_and_named(project: Project) -> None:
    user, lang = {"type": "integer"}, {"enum": ["en", "de"]}
    asked = {
        "required": ["question", "user", "lang"],
        "properties": {"question": TEXT, "user": user, "lang": lang},
    }
    with LocalServer(respond_json(described({"/ask": takes(asked, TEXT)}))) as server:
        done = init(project, "--no-try", "--agent", server.address)
    assert config_of(project) == {
        "endpoint": f"{server.address}/ask",
        "request": {"question": "${message}", "user": 1, "lang": "en"},
        "reply": {"text": "."},
    }
    assert "does not say what request.user, request.lang should be" in done.out


def test_a_description_that_cannot_be_read_is_none(project: Project) -> None:
    broken = {"openapi": "3.1.0", "paths": {"/chat": {"post": {"requestBody": {"$ref": "#/nowhere"}}}}}
    with LocalServer(respond_json(broken)) as server:
        done = init(project, "--no-try", "--agent", f"{server.address}/chat")
    assert done.code == 0, done.all
    assert "no description of the API was found" in done.out


def test_chat_completions_need_nothing_but_the_address(project: Project) -> None:
    with LocalServer(chat("Hello.")) as server:
        done = init(project, "--agent", server.url)
        assert (done.code, config_of(project)) == (0, {"endpoint": server.url}), done.all
        assert "# here start the service" in (project.root / WORKFLOW).read_text("utf-8")


def test_a_service_elsewhere_gets_a_key_from_the_environment(project: Project) -> None:
    done = init(project, "--no-try", "--agent", "https://agent.invalid/v1/chat/completions")
    assert (done.code, config_of(project)) == (
        0,
        {
            "endpoint": "https://agent.invalid/v1/chat/completions",
            "headers": {"Authorization": "Bearer ${AGENT_API_KEY:-}"},
        },
    )
    workflow = yaml.safe_load((project.root / WORKFLOW).read_text("utf-8"))
    assert workflow["jobs"]["agenteval"]["env"] == {"AGENT_API_KEY": "${{ secrets.AGENT_API_KEY }}"}


# ── programs ─────────────────────────────────────────────────────────────────────────────────────

NODE = {
    "argument": "console.log('You asked: ' + process.argv[2])",
    "input": "console.log('Hello.'); process.stdin.on('data', (text) => console.log('You asked: ' + text))",
    "json": "require('readline').createInterface({ input: process.stdin }).on('line', (line) =>"
    " console.log(JSON.stringify({ text: 'You asked: ' + JSON.parse(line).message })))",
}
PYTHON = {
    "argument": "import sys; print('You asked:', sys.argv[1])",
    "input": "print('Hello.'); print('You asked:', input())",
    "json": "import json, sys\nfor line in sys.stdin:\n"
    "    print(json.dumps({'text': 'You asked: ' + json.loads(line)['message']}), flush=True)",
}


def asked(words: list[str], form: str) -> dict[str, Any]:
    runs = {"argument": {"run": [*words, "${message}"]}, "input": {"run": words}}
    return {"command": runs.get(form, words)}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize("form", NODE)
def test_how_a_node_program_is_asked_is_found_by_trying(project: Project, form: str) -> None:
    project.write("package.json", '{"name": "bot", "main": "./bot.js"}')
    project.write("bot.js", NODE[form])
    done = init(project)
    assert (done.code, config_of(project)) == (0, asked(["node", "bot.js"], form)), done.all
    assert "You asked: Hello! What can you help me with?" in done.out
    assert "setup-node" in (project.root / WORKFLOW).read_text("utf-8")


def test_a_program_that_hears_nothing_of_its_users_is_not_taken_for_one_that_does(project: Project) -> None:
    project.write("bot.py", "print('Welcome!')")
    done = init(project, "--agent", f"{shlex.quote(sys.executable)} bot.py", "--ci", "none")
    assert "what it prints does not depend on the message" in done.out
    assert "# or, if it reads and writes JSON lines" in (project.root / "agenteval.yaml").read_text("utf-8")


@pytest.mark.parametrize("form", PYTHON)
def test_how_a_program_is_asked_is_found_by_trying(project: Project, form: str) -> None:
    project.write("bot.py", PYTHON[form])
    done = init(project, "--agent", f"{shlex.quote(sys.executable)} bot.py", "--ci", "none")
    assert (done.code, config_of(project)) == (0, asked([sys.executable, "bot.py"], form)), done.all
    project.write("bot.py", "import sys; sys.exit('no answer')")
    assert project.call("run").code == 1


def test_without_a_trial_a_comment_says_how_else_a_program_is_asked(project: Project) -> None:
    project.write("package.json", '{"scripts": {"start": "node src/bot.js --fast"}}')
    project.write("src/bot.js", "")
    project.call("init", "--yes", "--no-try", "--ci", "none")
    words = ["node", "src/bot.js", "--fast"]
    assert config_of(project) == asked(words, "argument")
    text = (project.root / "agenteval.yaml").read_text("utf-8")
    others = [
        yaml.safe_load(line.rpartition(": command: ")[2]) for line in text.splitlines() if "# or, if" in line
    ]
    assert others == [words, {"run": words}]


# ── nothing there, something there ───────────────────────────────────────────────────────────────


def test_an_empty_folder_gets_an_agent_and_is_red_when_that_breaks(project: Project) -> None:
    bare = project.call("run", env={"COLUMNS": "40"})
    assert bare.code == 5
    assert "agenteval init writes a first one; agenteval score FILE checks conversations" in bare.err
    done = init(project)
    assert done.code == 0, done.all
    text = (project.root / "my_agent.py").read_text("utf-8")
    for good, bug, failed in (
        ("order['status']", "order['id']", (1, "output.contains")),
        ("found[0]}", "found[0][:-1]}", (1, "tool_calls")),
        ("if not found:", "if found is None and len(messages) > 1:", (0, "no_error")),
    ):
        assert good in text
        project.write("my_agent.py", text.replace(good, bug))
        shutil.rmtree(project.root / "__pycache__", ignore_errors=True)
        assert project.run().code == 1
        turn, name = failed
        assert {(turn, name), (None, name)} & failed_checks(project.sample())


def files_of(project: Project) -> dict[str, str]:
    paths = (p for p in project.root.rglob("*") if p.is_file() and ".agenteval/" not in p.as_posix())
    return {p.relative_to(project.root).as_posix(): p.read_text("utf-8") for p in paths if p.suffix != ".pyc"}


def test_a_second_init_changes_nothing(project: Project) -> None:
    project.write("bot.py", ECHO)
    init(project)
    before = files_of(project)
    done = init(project)
    assert (done.code, files_of(project)) == (0, before)
    assert "wrote" not in done.out
    assert "nothing to write: everything is there" in done.out


OWN = {
    "agenteval.yaml": "agent: {target: 'bot.py:answer'}\nmetrics: []\n",
    "pyproject.toml": "[tool.agenteval]\nmetrics = []\nagent = {target = 'bot.py:answer'}\n",
    "scenarios/first.yaml": "{id: mine, turns: [{user: Hi, expect: {output: {contains: [asked]}}}]}\n",
    WORKFLOW: "name: mine\n",
}


@pytest.mark.parametrize("name", OWN)
def test_a_file_that_is_there_is_left_and_the_rest_is_added(project: Project, name: str) -> None:
    project.write("bot.py", ECHO)
    project.write(name, OWN[name])
    done = init(project)
    files = files_of(project)
    assert (done.code, files[name]) == (0, OWN[name]), done.all
    assert f"{name} exists, left as it is" in done.out
    assert {"scenarios/first.yaml", WORKFLOW} <= set(files)
    assert ("agenteval.yaml" in files) == (name != "pyproject.toml")


def test_an_agent_of_their_own_is_not_overwritten(project: Project) -> None:
    project.write("my_agent.py", "print('mine')\n")
    done = init(project)
    assert done.code == 2
    assert "name yours: --agent" in done.err
    assert files_of(project) == {"my_agent.py": "print('mine')\n"}


def test_scenarios_that_are_there_are_enough(project: Project) -> None:
    project.agent(ECHO)
    project.config(target="agent.py:answer")
    project.scenarios("{id: mine, turns: [{user: Hi, expect: {output: {contains: [asked]}}}]}\n")
    done = init(project)
    assert (done.code, (project.root / "scenarios/first.yaml").exists()) == (0, False)
    assert f"wrote {WORKFLOW}" in done.out


def test_the_configuration_of_a_folder_above_holds(project: Project) -> None:
    project.write("bot.py", ECHO)
    project.write("agenteval.yaml", OWN["agenteval.yaml"])
    (project.root / "below").mkdir()
    done = init(project, "below", "--ci", "none")
    assert done.code == 0
    assert set(files_of(project)) == {"bot.py", "agenteval.yaml", "scenarios/first.yaml"}
    (project.root / "other/.git").mkdir(parents=True)
    assert init(project, "other").code == 0
    assert (project.root / "other/agenteval.yaml").exists()  # another repository's


def test_a_workflow_lies_where_the_repository_begins(project: Project) -> None:
    (project.root / ".git").mkdir()
    project.write("my bots/bot.py", ECHO)
    assert init(project, "my bots").code == 0
    workflow = yaml.safe_load((project.root / WORKFLOW).read_text("utf-8"))
    assert workflow["jobs"]["agenteval"]["defaults"] == {"run": {"working-directory": "my bots"}}


INSTALLED = {
    "requirements.txt": ["pip install -r requirements.txt", "pip install agenteval-runner"],
    "pyproject.toml": ["pip install -e .", "pip install agenteval-runner"],
    "uv.lock": ["pip install uv && uv sync", "uv pip install agenteval-runner"],
    "package-lock.json": ["npm ci", "pip install agenteval-runner"],
    "": ["pip install agenteval-runner"],
}


@pytest.mark.parametrize("name", INSTALLED)
def test_the_workflow_installs_what_the_project_needs(project: Project, name: str) -> None:
    project.write("bot.py", ECHO)
    if name:
        project.write(name, "[project]\nname = 'shop'\n")
    if name == "package-lock.json":
        project.write("package.json", "{}")
    init(project, "--no-try")
    job = yaml.safe_load((project.root / WORKFLOW).read_text("utf-8"))["jobs"]["agenteval"]
    *installs, run = [step["run"] for step in job["steps"] if "run" in step]
    assert installs == INSTALLED[name]
    command = "agenteval run --report github --report junit=.agenteval/junit.xml"
    assert run == (f"uv run --no-sync {command}" if name == "uv.lock" else command)
    assert "actions/checkout@v6" in [step.get("uses") for step in job["steps"]]


def test_a_folder_of_a_repository_at_gitlab(project: Project) -> None:
    (project.root / ".git").mkdir()
    project.write("my bots/bot.py", ECHO)
    assert init(project, "my bots", "--ci", "gitlab").code == 0
    job = yaml.safe_load((project.root / "agenteval.gitlab-ci.yml").read_text("utf-8"))["agenteval"]
    assert job["script"][0] == "cd 'my bots'"
    assert job["artifacts"]["reports"] == {"junit": "my bots/.agenteval/junit.xml"}


@pytest.mark.parametrize("is_asked", [True, False])
def test_gitlab_gets_a_file_to_include(project: Project, is_asked: bool) -> None:
    project.write("bot.py", ECHO)
    if not is_asked:
        project.write(".gitlab-ci.yml", "stages: [test]\n")
    done = init(project, *(["--ci", "gitlab"] if is_asked else []))
    assert "add to .gitlab-ci.yml: include: agenteval.gitlab-ci.yml" in done.out
    job = yaml.safe_load((project.root / "agenteval.gitlab-ci.yml").read_text("utf-8"))["agenteval"]
    assert job["script"][-1] == "agenteval run --report junit=.agenteval/junit.xml"
    assert not (project.root / ".github").exists()


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


def test_a_broken_configuration_is_shown_and_nothing_is_written(project: Project) -> None:
    project.write("agenteval.yaml", "agent: {targt: 'bot.py:answer'}\n")
    done = init(project)
    assert done.code == 2
    assert "agenteval.yaml:1:9: unknown key 'targt'" in done.err
    assert set(files_of(project)) == {"agenteval.yaml"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ci", "jenkins"], "--ci jenkins is not known — write github, gitlab or none"),
        (["--agent", ""], "the agent has no name"),
        (["--agent", "node 'bot.js"], "cannot be read: No closing quotation"),
        (["--agent", "words.py"], "nothing in words.py looks like an agent — write words.py:NAME"),
        (["words.py"], "words.py is no folder"),
    ],
)
def test_wrong_use_is_refused_in_words(project: Project, arguments: list[str], message: str) -> None:
    project.write("words.py", "WORD = 1\n")
    done = init(project, *arguments)
    assert done.code == 2
    assert message in done.err
    assert set(files_of(project)) == {"words.py"}


def test_an_agent_beside_a_configuration_is_not_dropped_silently(project: Project) -> None:
    project.write("agenteval.yaml", OWN["agenteval.yaml"])
    done = init(project, "--agent", "other.py:answer")
    assert done.code == 2
    assert "agenteval.yaml: init overwrites no configuration: --agent other.py:answer" in done.err


def test_a_target_that_is_not_there_is_named_by_the_loader(project: Project) -> None:
    done = init(project, "--agent", "shop.py:agent")
    assert done.code == 2
    assert "no such file: 'shop.py'" in done.err


def test_a_folder_that_is_not_there_is_made(project: Project) -> None:
    done = init(project, "new/bot")
    assert done.code == 0
    assert (project.root / "new/bot/my_agent.py").exists()
    assert done.out.endswith("next: cd new/bot && agenteval run\n")


def test_a_place_that_cannot_be_written_is_named(project: Project) -> None:
    project.write("scenarios", "a file\n")
    done = init(project)
    assert done.code == 2
    assert "scenarios/first.yaml cannot be written" in done.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(project: Project) -> None:
    project.root.chmod(0o500)
    done = init(project)
    project.root.chmod(0o700)
    assert done.code == 2
    assert "cannot be written: Permission denied" in done.err


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def test_where_nobody_can_answer_nothing_is_asked_and_nothing_is_played(project: Project) -> None:
    project.write("bot.py", BROKEN)
    done = project.call("init")
    assert done.code == 0, done.all
    assert "valid: 1 scenario" in done.out
    assert "[" not in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals there")
class TestOnATerminal:
    def answered(self, project: Project, typed: str) -> tuple[int, str]:
        """The exit code and the screen of ``init``, with these lines typed and then Ctrl-D."""
        import pty

        main, terminal = pty.openpty()
        command = [sys.executable, "-m", "agenteval", "init"]
        process = subprocess.Popen(
            command, cwd=project.root, env=environment(), stdin=terminal, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        os.close(terminal)
        os.write(main, f"{typed}\x04".encode())
        out, _ = process.communicate(timeout=HANG_S)
        os.close(main)
        return process.returncode, out

    def test_the_agent_is_chosen_by_its_number(self, project: Project) -> None:
        project.write("bot.py", f"{ECHO}\n\ndef agent(messages):\n    return answer('x')\n")
        code, screen = self.answered(project, "2\nn\ny\n")
        assert (code, config_of(project)) == (0, {"target": "bot.py:answer"}), screen
        assert "  1  bot.py:agent, a function of messages\n  2  bot.py:answer" in screen
        assert "PASSED" in screen
        assert not (project.root / ".github").exists()

    def test_nothing_is_asked_where_there_is_nothing_to_write(self, project: Project) -> None:
        project.write("bot.py", ECHO)
        init(project)
        code, screen = self.answered(project, "")
        assert code == 0
        assert "nothing to write" in screen

    def test_another_agent_may_be_written_instead(self, project: Project) -> None:
        project.write("bot.py", f"{ECHO}\n\ndef third(messages, ctx):\n    return 'Hello.'\n")
        code, _ = self.answered(project, "bot.py:third\ny\nn\n")
        assert (code, config_of(project)) == (0, {"target": "bot.py:third"})
        assert (project.root / WORKFLOW).exists()

    def test_how_a_program_is_asked_is_asked(self, project: Project) -> None:
        project.write("package.json", '{"main": "bot.js"}')
        project.write("bot.js", "")
        code, screen = self.answered(project, "1\n4\nn\nn\n")
        assert (code, config_of(project)) == (0, asked(["node", "bot.js"], "input")), screen

    def test_the_keys_of_an_api_that_nothing_describes_are_asked(self, project: Project) -> None:
        with service(None, {}) as server:
            code, screen = self.answered(project, f"{server.address}/chat\nq\nanswer\nn\nn\n")
        assert code == 0, screen
        assert config_of(project)["request"] == {"q": "${message}"}
        assert config_of(project)["reply"] == {"text": "answer"}

    @pytest.mark.parametrize("typed", ["", "1\n", "1\ny\n"])
    def test_the_end_of_the_answers_writes_nothing(self, project: Project, typed: str) -> None:
        project.write("bot.py", ECHO)
        code, screen = self.answered(project, typed)
        assert (code, list(files_of(project))) == (130, ["bot.py"])
        assert "nothing was written" in screen
