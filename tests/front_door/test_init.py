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

from tests.support.kit import Done, Project, environment, failed_checks
from tests.support.local_servers import (
    LocalServer,
    Request,
    answer,
    chat,
    closed_port,
    completion,
    respond,
    respond_json,
)
from tests.support.patience import HANG_S
from tests.support.toy import install_toy

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
    order = ("agent: shop/bot.py:answer, a function of question\n", "wrote agenteval.yaml", "PASSED", "next:")
    assert sorted(order, key=done.out.index) == list(order)
    assert done.out.startswith(order[0])
    assert done.out.endswith("\nnext: agenteval run\n")
    first = (project.root / "scenarios/first.yaml").read_text(encoding="utf-8")
    assert "latency_ms: 30000" in first
    assert "`intercept`" in first  # its calls are not seen without it
    assert "tool_calls:" not in first
    assert project.call("run").code == 0
    project.write("shop/bot.py", BROKEN)
    assert project.call("run").code == 1


def test_an_agent_that_fails_gives_its_exit_code_and_the_files_stand(project: Project) -> None:
    project.write("bot.py", BROKEN)
    done = init(project)
    assert done.code == 1
    assert "agent_error: TypeError" in done.out
    assert "The files are written." in done.out
    assert "If that is the wrong agent, change it at agenteval.yaml:2\n" in done.out
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
    "Bot.chat": "class Bot:\n    def chat(self, message: str, session_id=0):\n        return 'Hello.'\n",
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


@pytest.mark.parametrize(
    "agent",
    [
        "{endpoint: 'http://localhost:9/v1/chat/completions'}",
        "{endpoint: 'http://localhost:9/chat', request: {m: '${message}'}, reply: {text: r}}",
        "{command: [python3, bot.py]}",
        "{command: {run: [python3, bot.py, '${message}']}}",
        "{target: 'bot.py:answer', intercept: {}}",
    ],
)
def test_what_is_missing_beside_a_configuration_of_any_kind(project: Project, agent: str) -> None:
    project.write("bot.py", ECHO)
    project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
    before = (project.root / "agenteval.yaml").read_bytes()
    done = init(project, "--no-try")
    assert (project.root / "scenarios/first.yaml").is_file(), done.all
    assert (project.root / WORKFLOW).is_file()
    assert "a defect in agenteval" not in done.all
    assert (project.root / "agenteval.yaml").read_bytes() == before


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
    install_toy(project)
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
    assert "check agenteval.yaml: no description of the API was found" in done.out
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


SERVING = {
    "app/main.py": "from fastapi import FastAPI\n",
    "server.py": "from http.server import BaseHTTPRequestHandler\n",
    "web.py": "import aiohttp.web\n",
    "package.json": '{"dependencies": {"express": "5"}, "main": "bot.js"}\n',
}
NAMED = {
    "serve.sh": 'exec uvicorn app:app --port "${PORT:-%d}"\n',
    "README.md": "curl localhost:%d/chat\n",
    "run.py": "uvicorn.run(app, port=%d)\n",
    "Dockerfile": "EXPOSE %d\n",
}


@pytest.mark.parametrize("place", NAMED)
def test_a_service_that_answers_comes_before_its_functions(project: Project, place: str) -> None:
    project.write("app/llm.py", ECHO)
    project.write("app/main.py", SERVING["app/main.py"])
    with service(CHAT, {"data": {"answer": "Hello."}, "took": 0.1}) as server:
        project.write(place, NAMED[place] % server.port)
        done = init(project)
        assert done.code == 0, done.all
    assert config_of(project)["endpoint"] == f"http://localhost:{server.port}/chat"
    assert "also found: app/llm.py:answer" in done.out
    lines = (project.root / WORKFLOW).read_text("utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "# start the service" in line)
    assert f"the workflow has to start the service: add the command at {WORKFLOW}:{number}\n" in done.out
    assert ("./serve.sh &" in lines[number - 1]) == (place == "serve.sh")


@pytest.mark.parametrize("file", SERVING)
def test_a_service_that_is_off_writes_nothing(project: Project, file: str) -> None:
    project.write("llm.py", ECHO)
    project.write(file, SERVING[file])
    project.write("Makefile", f"serve:\n\tserve --port {(port := closed_port())}\n")
    before = files_of(project)
    for arguments in (["--yes"], []):
        done = project.call("init", *arguments)
        assert (done.code, files_of(project)) == (2, before), done.all
        assert f"this project is a service ({file} " in done.err
        assert f"no agent answers on localhost:{port} — start it and run init again" in done.err
        assert done.err.endswith(f"--agent http://localhost:{port}/PATH or llm.py:answer\n")
    assert init(project, "--agent", "llm.py:answer").code == 0


def test_where_no_service_is_written_nothing_is_looked_for(project: Project) -> None:
    with service(CHAT, {}) as server:
        project.write("README.md", f"The shop's database: localhost:{server.port}\n")
        init(project, "--no-try")
    assert config_of(project) == {"target": "my_agent.py:agent"}
    assert server.requests == []


def test_an_object_of_a_service_that_is_off_is_taken(project: Project) -> None:
    project.write("graph.py", GRAPH)
    project.write("app.py", f"from fastapi import FastAPI\nPORT = {closed_port()}\n")
    done = init(project, "--no-try")
    assert config_of(project) == {"target": "graph.py:graph"}, done.all


@pytest.mark.parametrize("path", ["", "/", "/v1", "/docs", "/openapi.json"])
def test_what_has_models_has_chat_completions(project: Project, path: str) -> None:
    def serve(request: Request) -> Any:
        if request.method == "GET":
            has_models = request.path == "/v1/models"
            return respond_json({"data": []} if has_models else {}, status=200 if has_models else 404)
        return respond_json(completion("Hello."))

    with LocalServer(answer(serve)) as server:
        done = init(project, "--agent", f"127.0.0.1:{server.port}{path}")
    assert (done.code, config_of(project)) == (0, {"endpoint": server.url}), done.all
    assert "tool_calls:" in (project.root / "scenarios/first.yaml").read_text("utf-8")


def test_an_address_at_which_nothing_says_what_it_is(project: Project) -> None:
    done = init(project, "--agent", f"localhost:{closed_port()}/docs")
    assert (done.code, files_of(project)) == (2, {})
    assert "describes which route takes a message — start the service, or" in done.err


def test_calls_that_a_reply_reports_are_read(project: Project) -> None:
    call = {"properties": {"name": TEXT, "arguments": {"type": "object"}, "result": {}}}
    reply = {
        "properties": {
            "reply": TEXT,
            "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/Call"}},
        }
    }
    description = described({"/chat": takes(ASKED, reply)}, Call=call)
    made = [{"name": "get_menu", "arguments": {}, "result": ["pizza"]}]
    with service(description, {"reply": "Hello.", "tool_calls": made}) as server:
        done = init(project, "--agent", server.address)
        assert done.code == 0, done.all
        assert config_of(project)["reply"] == {"text": "reply", "messages": "tool_calls"}
        assert "get_menu()" in done.out


def test_chat_completions_need_nothing_but_the_address(project: Project) -> None:
    with LocalServer(chat("Hello.")) as server:
        done = init(project, "--agent", server.url)
        assert (done.code, config_of(project)) == (0, {"endpoint": server.url}), done.all
        assert "# start the service" in (project.root / WORKFLOW).read_text("utf-8")


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
    assert "its output does not depend on the message" in done.out
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
    done = init(project, "--no-try", "--ci", "none")
    words = ["node", "src/bot.js", "--fast"]
    assert config_of(project) == asked(words, "argument")
    assert f"how {shlex.join(words)} takes a message is a guess: see the comments in" in done.out
    text = (project.root / "agenteval.yaml").read_text("utf-8")
    others = [
        yaml.safe_load(line.rpartition(": command: ")[2]) for line in text.splitlines() if "# or, if" in line
    ]
    assert others == [words, {"run": words}]


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
def test_what_npm_prints_is_no_answer(project: Project) -> None:
    project.write("package.json", '{"name": "bot", "scripts": {"start": "node bot.js"}}')
    project.write("bot.js", NODE["argument"])
    done = init(project, "--agent", "npm start", "--ci", "none")
    words = ["npm", "-s", "start", "--"]
    assert (done.code, config_of(project)) == (0, asked(words, "argument")), done.all
    project.write("bot.js", "")
    assert project.call("run").code == 1


# ── nothing there, something there ───────────────────────────────────────────────────────────────


def test_an_empty_folder_gets_an_agent_and_is_red_when_that_breaks(project: Project) -> None:
    bare = project.call("run", env={"COLUMNS": "40"})
    assert bare.code == 5
    assert "agenteval init writes a first one; agenteval score FILE checks" in bare.err
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
    assert "nothing to write: all files exist" in done.out
    written = [*SCHEMAS, *(name for name in before if name != "bot.py")]
    assert all(f"{name} exists and is unchanged\n" in done.out for name in written)


SCHEMAS = (".agenteval/config.schema.json", ".agenteval/scenario.schema.json")


@pytest.mark.skipif(sys.platform == "win32", reason="files have other permissions there")
def test_a_schema_that_is_missing_is_written_again_as_others_may_read_it(project: Project) -> None:
    project.write("bot.py", ECHO)
    first = init(project)
    for name in SCHEMAS:
        assert f"wrote {name}\n" in first.out
        mode = (project.root / name).stat().st_mode
        assert mode == (project.root / "agenteval.yaml").stat().st_mode
        (project.root / name).unlink()
        again = init(project)
        assert f"wrote {name}\n" in again.out
        assert (project.root / name).stat().st_mode == mode
        (project.root / name).unlink()
        assert project.call("schema").code == 0
        assert (project.root / name).stat().st_mode == mode


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
    assert f"{name} exists and is unchanged" in done.out
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
    command = "agenteval run --report github"
    assert run == (f"uv run --no-sync {command}" if name == "uv.lock" else command)
    assert "actions/checkout@v6" in [step.get("uses") for step in job["steps"]]


def test_the_workflow_is_that_of_the_branch_and_the_python_of_the_project(project: Project) -> None:
    project.write("bot.py", ECHO)
    project.write(".git/HEAD", "ref: refs/heads/release/2\n")
    project.write(".venv/pyvenv.cfg", "home = /usr\nversion = 3.13.2\n")
    init(project, "--no-try")
    workflow = yaml.safe_load((project.root / WORKFLOW).read_text("utf-8"))
    job = workflow["jobs"]["agenteval"]
    assert workflow[True]["push"] == {"branches": ["release/2"]}
    assert job["timeout-minutes"] == 15
    assert job["steps"][1]["with"] == {"python-version": "3.13"}
    project.write(".python-version", "3.11.9\n")
    project.write("package.json", "{}")
    init(project, "--ci", "gitlab")
    job = yaml.safe_load((project.root / "agenteval.gitlab-ci.yml").read_text("utf-8"))["agenteval"]
    assert job["image"] == "python:3.11"
    assert "nodejs npm" in job["before_script"][0]


def test_the_workflow_of_a_worktree_is_that_of_its_own_branch(project: Project) -> None:
    project.write("bot.py", ECHO)
    project.write("around/worktrees/one/HEAD", "ref: refs/heads/one\n")
    project.write(".git", "gitdir: around/worktrees/one\n")
    init(project, "--no-try")
    assert "push: {branches: [one]}\n" in (project.root / WORKFLOW).read_text("utf-8")


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
        (["--ci", "jenkins"], "--ci jenkins is unknown — write github, gitlab or none"),
        (["--agent", ""], "the agent is empty"),
        (["--agent", "node 'bot.js"], "cannot be read: No closing quotation"),
        (["--agent", "words.py"], "nothing in words.py looks like an agent — write words.py:NAME"),
        (["words.py"], "words.py is not a folder"),
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
    project.write("other.py", ECHO)
    done = init(project, "--agent", "other.py:answer")
    assert done.code == 2
    assert "agenteval.yaml: init does not overwrite a configuration, so --agent other.py:answer" in done.err
    assert "change the agent there to agent: {target: 'other.py:answer'}, or add one under" in done.err
    assert "no such file: 'othr.py'" in init(project, "--agent", "othr.py:answer").err


MISSPELT = {
    "shp.py:agent": "no such file: 'shp.py' — did you mean 'shop.py'?",
    "shp.py": "no such file: 'shp.py' — did you mean 'shop.py'?",
    "shop.py:anser": "shop.py has no 'anser' at its top level — did you mean 'answer'?",
    "shop.py:inner": "shop.py has no 'inner' at its top level",
    "no-such-program": "no such program: 'no-such-program'",
    "bot": "no such program: 'bot' — write ./bot",
    f"{shlex.quote(sys.executable)} -u shp.py": "no such file: 'shp.py' — did you mean 'shop.py'?",
    "http://localhost:99999/chat": "http://localhost:99999/chat is not a URL",
}


@pytest.mark.parametrize("agent", MISSPELT)
def test_an_agent_that_is_not_there_writes_nothing(project: Project, agent: str) -> None:
    project.write("shop.py", f"{ECHO}\n\ndef other():\n    inner = 1\n    return inner\n")
    project.write("bot", "")
    done = init(project, "--agent", agent)
    assert done.code == 2
    assert MISSPELT[agent] in done.err
    assert init(project, "new", "--agent", agent).code == 2
    assert {path.name for path in project.root.iterdir()} == {"shop.py", "bot"}


HIDDEN = ["from words import *", "try:\n    from words import answer\nexcept ImportError:\n    answer = None"]


@pytest.mark.parametrize("code", HIDDEN)
def test_a_name_that_a_file_may_have_is_left_to_its_loading(project: Project, code: str) -> None:
    project.write("shop.py", f"{code}\n")
    project.write("words.py", "def answer(messages):\n    return 'Hello.'\n")
    done = init(project, "--agent", "shop.py:answer")
    assert (done.code, config_of(project)) == (0, {"target": "shop.py:answer"}), done.all


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
        assert "  1  I do not know: try each" in screen
        assert (code, config_of(project)) == (0, asked(["node", "bot.js"], "input")), screen

    def test_the_keys_of_an_api_that_nothing_describes_are_asked(self, project: Project) -> None:
        with service(None, {}) as server:
            code, screen = self.answered(project, f"{server.address}/chat\nq\nanswer\nn\nn\n")
        assert code == 0, screen
        assert config_of(project)["request"] == {"q": "${message}"}
        assert config_of(project)["reply"] == {"text": "answer"}

    def test_a_question_is_asked_again_until_there_is_an_answer(self, project: Project) -> None:
        project.write("bot.py", f"{ECHO}\n\ndef third(messages, ctx):\n    return 'Hello.'\n")
        code, screen = self.answered(project, "7\nhello world\n1\nmaybe\nn\nn\n")
        assert (code, config_of(project)) == (0, {"target": "bot.py:answer"}), screen
        assert "there is no option 7 — write a number from 1 to 2" in screen
        assert "no such program: 'hello'" in screen
        assert "'maybe' is not an answer — write y or n" in screen
        assert not (project.root / ".github").exists()

    @pytest.mark.parametrize(
        ("typed", "last"),
        [("7\n9\n0\n", "there is no option 0"), ("1\nmaybe\nso\nperhaps\n", "'perhaps' is not an answer")],
    )
    def test_after_three_answers_that_are_none_nothing_is_written(
        self, project: Project, typed: str, last: str
    ) -> None:
        project.write("bot.py", ECHO)
        code, screen = self.answered(project, typed)
        assert (code, list(files_of(project))) == (2, ["bot.py"]), screen
        assert last in screen

    def test_a_form_that_is_none_is_asked_again(self, project: Project) -> None:
        project.write("package.json", '{"main": "bot.js"}')
        project.write("bot.js", "")
        code, screen = self.answered(project, "1\njson\n2\nn\nn\n")
        assert (code, config_of(project)) == (0, asked(["node", "bot.js"], "json")), screen
        assert "'json' is not an option — write a number from 1 to 4" in screen

    def test_the_agent_of_a_service_that_is_off_is_asked(self, project: Project) -> None:
        project.write("app/llm.py", ECHO)
        project.write("app/main.py", "from fastapi import FastAPI\n")
        project.write("serve.sh", f"uvicorn app.main:app --port {closed_port()}\n")
        code, screen = self.answered(project, "\n1\nn\nn\n")
        assert (code, config_of(project)) == (0, {"target": "app/llm.py:answer"}), screen
        assert "no agent answers on localhost:" in screen
        assert "the agent is empty" in screen  # Enter takes nothing

    @pytest.mark.parametrize("typed", ["", "1\n", "1\ny\n"])
    def test_the_end_of_the_answers_writes_nothing(self, project: Project, typed: str) -> None:
        project.write("bot.py", ECHO)
        code, screen = self.answered(project, typed)
        assert (code, list(files_of(project))) == (130, ["bot.py"])
        assert "nothing was written" in screen
