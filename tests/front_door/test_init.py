"""``agenteval init``: what it finds, what it writes, and that it overwrites nothing.

Most tests leave out the trial (``--no-try``): it plays the agent in fresh processes, and ``agenteval run``
plays the same files."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.cli.new_project.endpoints import probe_endpoint
from agenteval.cli.new_project.python_agents import find_python_agents
from tests.support.kit import Done, Project, environment, failed_checks
from tests.support.local_servers import (
    LocalServer,
    Request,
    answer,
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
SCHEMAS = (".agenteval/config.schema.json", ".agenteval/scenario.schema.json")
OWN = {
    "agenteval.yaml": "agent: {target: 'bot.py:answer'}\nmetrics: []\n",
    "pyproject.toml": "[tool.agenteval]\nmetrics = []\nagent = {target = 'bot.py:answer'}\n",
    "scenarios/first.yaml": "{id: mine, turns: [{user: Hi, expect: {output: {contains: [asked]}}}]}\n",
    WORKFLOW: "name: mine\n",
}
STARTER = {"target": "my_agent.py:agent"}


def agent_of(project: Project) -> dict[str, Any]:
    """The agent of the configuration that was written."""
    agent: dict[str, Any] = yaml.safe_load(text_of(project, "agenteval.yaml"))["agent"]
    return agent


def text_of(project: Project, name: str) -> str:
    return (project.root / name).read_text("utf-8")


def files_of(project: Project) -> dict[str, str]:
    paths = (p for p in project.root.rglob("*") if p.is_file() and ".agenteval/" not in p.as_posix())
    return {p.relative_to(project.root).as_posix(): p.read_text("utf-8") for p in paths if p.suffix != ".pyc"}


def has_line(text: str, *facts: str) -> bool:
    return any(all(fact in line for fact in facts) for line in text.splitlines())


def init(project: Project, *arguments: str) -> Done:
    return project.call("init", "--yes", *arguments)


def untried(project: Project, *arguments: str) -> Done:
    """``init`` that plays no conversation, and has ended well."""
    done = init(project, "--no-try", *arguments)
    assert done.code == 0, done.all
    return done


# ── Python ───────────────────────────────────────────────────────────────────────────────────────


def test_a_function_is_found_and_played(project: Project) -> None:
    project.write("shop/bot.py", ECHO)
    done = init(project)
    assert done.code == 0, done.all
    keys = [line for line in text_of(project, "agenteval.yaml").splitlines() if not line.startswith("#")]
    assert [line.split("   #")[0] for line in keys] == [
        "agent: {target: 'shop/bot.py:answer'}",
        "metrics: []",
    ]
    assert "You asked: Hello! What can you help me with?" in done.out
    order = ("shop/bot.py:answer, ", " agenteval.yaml\n", "PASSED", "agenteval run\n")
    assert sorted(order, key=done.out.index) == list(order)
    assert order[0] in done.out.splitlines()[0]
    assert done.out.endswith(order[-1])
    first = text_of(project, "scenarios/first.yaml")
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
    assert "agenteval.yaml:2\n" in done.out  # where another agent is named
    assert agent_of(project) == {"target": "bot.py:answer"}


NO_AGENTS = {
    "a_tool": "@tool\ndef answer(question):\n    return question\n",
    "answers_nothing": "def answer(question):\n    print(question)\n",
    "returns_a_number": "def ask(messages) -> int:\n    return len(messages)\n",
    "needs_more": "def answer(question, database):\n    return database[question]\n",
    "message_of_its_own_class": "def answer(message: Mail):\n    return message.text\n",
    "a_function_of_some_text": "def clean(text):\n    return text.strip()\n",
    "private": "def _answer(question):\n    return question\n",
    "class_that_needs_arguments": "class Bot:\n    def __init__(self, key):\n        self.key = key\n\n"
    "    def chat(self, message):\n        return message\n",
    "no_python": "def answer(:\n",
    **{f"{folder}/bot": ECHO for folder in ("tests", ".hidden", "node_modules", "env")},
}


def test_no_file_that_holds_no_agent_is_taken_for_one(project: Project) -> None:
    for name, code in NO_AGENTS.items():
        project.write(f"{name}.py", code)
    project.write("env/pyvenv.cfg", "")
    done = untried(project)
    assert agent_of(project) == STARTER
    assert [name for name in NO_AGENTS if f"{name}.py" in done.out] == []


AGENTS = {
    "a.py:agent": "def agent(messages, ctx):\n    return 'Hello.'\n",
    "b.py:respond": "def respond(message, history):\n    yield 'Hello.'\n",
    "c.py:Bot.chat": "class Bot:\n    def chat(self, message: str, session_id=0):\n        return 'Hello.'\n",
    "d.py:complete": "def short(messages):\n    return messages[-1:]\n\n\n"
    "async def complete(messages: list[dict]) -> str:\n    return str(short(messages))\n",
    "my bots/zoë's.py:answer": ECHO,
}


def test_all_forms_of_a_python_agent_are_found_and_can_be_played(project: Project) -> None:
    for target, code in AGENTS.items():
        project.write(target.rpartition(":")[0], code)
    done = untried(project, "--ci", "none")
    assert agent_of(project) == {"target": "a.py:agent"}  # the likeliest
    for target in AGENTS:
        assert f": {target}, " in done.out
    named = {f"n{number}": target for number, target in enumerate(AGENTS)}
    agents = {name: {"target": target} for name, target in named.items()}
    scenarios = [{"id": name, "agent": name, "turns": ["Hi"], "checks": "none"} for name in named]
    project.write("agenteval.yaml", yaml.safe_dump({"agents": agents, "metrics": []}))
    project.write("scenarios/first.yaml", yaml.safe_dump({"scenarios": scenarios}))
    assert project.run().code == 0
    answers = {s["id"]: s["samples"][0]["turns"][0]["agent"] for s in project.results()["scenarios"]}
    assert set(answers) == set(named)
    assert all(answers.values())


@pytest.mark.parametrize("agent", ["{endpoint: 'http://localhost:9/v1/chat/completions'}",
    "{endpoint: 'http://localhost:9/chat', request: {m: '${message}'}, reply: {text: r}}",
    "{command: [python3, bot.py]}", "{command: {run: [python3, bot.py, '${message}']}}",
    "{target: 'bot.py:answer', intercept: {}}"])  # fmt: skip
def test_a_configuration_of_any_kind_is_kept_and_the_rest_is_added(project: Project, agent: str) -> None:
    project.write("bot.py", ECHO)
    project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
    before = text_of(project, "agenteval.yaml")
    init(project, "--no-try")
    assert set(files_of(project)) == {"bot.py", "agenteval.yaml", "scenarios/first.yaml", WORKFLOW}
    assert text_of(project, "agenteval.yaml") == before


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
    app = "from .graph import graph\n\n\ndef answer(question):\n    return str(graph)\n"
    project.write("src/shop/app.py", app)
    project.write("requirements.txt", "langgraph\n")
    done = init(project, "--no-try")
    assert agent_of(project) == {"target": "src/shop/graph.py:graph", "interpreter": ".venv/bin/python"}
    assert "src/shop/graph.py:graph, LangGraph" in done.out
    steps = text_of(project, WORKFLOW)
    assert "- run: python -m venv .venv\n" in steps
    assert "- run: .venv/bin/pip install -r requirements.txt\n" in steps


SECOND = "def second(x):\n    return x[0]['content']\n\n\n" + ECHO
SERVICE = "from fastapi import FastAPI\n"
HELLO_OF = "def answer(question):\n    import {}\n    return 'Hello.'\n"
WORDS = "def answer(messages):\n    return 'Hello.'\n"
CHOICES: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {  # files, arguments, and the agent of both
    "a name": ({"bot.py": SECOND}, "--agent bot.py:second", {"target": "bot.py:second"}),
    "a file": ({"bot.py": SECOND}, "--agent ./bot.py", {"target": "bot.py:answer"}),
    "a name that an import of all may bring": (
        {"shop.py": "from words import *\n", "words.py": WORDS},
        "--agent shop.py:answer",
        {"target": "shop.py:answer"},
    ),
    "a name that a branch may bring": (
        {
            "shop.py": "try:\n    from words import answer\nexcept ImportError:\n    answer = None\n",
            "words.py": WORDS,
        },
        "--agent shop.py:answer",
        {"target": "shop.py:answer"},
    ),
    "a function of a service that is off": (
        {"llm.py": ECHO, "app.py": SERVICE}, "--agent llm.py:answer", {"target": "llm.py:answer"}
    ),
    "an object of a service that is off": (
        {"graph.py": GRAPH, "app.py": f"{SERVICE}PORT = 79\n"}, "", {"target": "graph.py:graph"}
    ),
    "the graph that langgraph.json names": (
        {
            "src/shop/graph.py": GRAPH.replace(".words", "words"),
            "src/shop/app.py": "from .graph import graph\n\nchosen = graph\n",
            "langgraph.json": '{"graphs": {"shop": "./src/shop/app.py:chosen", "odd": 3}}',
        },
        "",
        {"target": "src/shop/app.py:chosen"},
    ),
    "a package that only the environment has": (
        {"bot.py": HELLO_OF.format("only_there"), ".venv/pyvenv.cfg": ""},
        "",
        {"target": "bot.py:answer", "interpreter": ".venv/bin/python"},
    ),
    "a package that is everywhere": (
        {"bot.py": HELLO_OF.format("json"), ".venv/pyvenv.cfg": ""}, "", {"target": "bot.py:answer"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_the_agent_is_chosen_from_the_files_or_by_its_name(project: Project, name: str) -> None:
    files, arguments, agent = CHOICES[name]
    if ".venv/pyvenv.cfg" in files:
        if sys.platform == "win32":
            pytest.skip("links need a privilege there")
        with_environment(project)
    for file, text in files.items():
        project.write(file, text)
    done = init(project, "--no-try", *arguments.split())
    assert agent_of(project) == agent, done.all
    if "langgraph.json" in files:
        assert "src/shop/graph.py:graph" in done.out
    if arguments:
        assert (done.code, project.call("run").code) == (0, 0)


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
    untried(project, "--agent", "shop.py:agent")
    (scenario,) = yaml.safe_load(text_of(project, "scenarios/first.yaml"))["scenarios"]
    assert scenario["tools"] == {"get_order": {"returns": {}}}
    assert project.call("run").code == 0
    project.write("shop.py", TOY.replace("Here is {order}", ""))
    assert project.call("run").code == 1


EXAMPLES = Path(__file__).parents[2] / "scenarios/frameworks"


@pytest.mark.parametrize("example", [path.parent.name for path in EXAMPLES.glob("*/agenteval.yaml")])
def test_the_objects_of_each_framework_are_known_without_it(tmp_path: Path, example: str) -> None:
    shutil.copy(EXAMPLES / example / "agent.py", tmp_path)
    first, *others = find_python_agents(tmp_path).agents
    names = {"langgraph": "by_hand", "smolagents": "coding"}  # the last one
    assert first.target == f"agent.py:{names.get(example, 'careful')}"
    assert all(each.kind for each in (first, *others) if each.target == "agent.py:hasty")
    assert "agent.py:hasty" in [each.target for each in others]


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
HELLO = {"data": {"answer": "Hello."}, "took": 0.1}


def service(description: Any, reply: Any) -> LocalServer:
    """One with a description, whose requests have to be as the description says."""

    def serve(request: Request) -> Any:
        if request.method == "GET":
            is_known = description and request.path == "/openapi.json"
            return respond_json(description, status=200 if is_known else 404)
        if set(request.json) != {"message", "session_id"} or request.path != "/chat":
            return respond("bad request", status=422)
        return respond_json(reply)

    return LocalServer(answer(serve))


@pytest.mark.parametrize("path", ["", "/chat"])
def test_a_service_that_describes_itself_needs_only_its_address(project: Project, path: str) -> None:
    with service(CHAT, HELLO) as server:
        untried(project, "--agent", f"{server.address}{path}")
        assert agent_of(project) == {
            "endpoint": f"{server.address}/chat",
            "request": {"message": "${message}", "session_id": "${session}"},
            "reply": {"text": "data.answer"},
        }
        assert project.call("run").code == 0
        assert [r.method for r in server.requests] == ["GET", "POST"]  # what is played, and nothing else
    with service(CHAT, {"data": {"answer": ""}, "took": 0.1}) as broken:
        config = text_of(project, "agenteval.yaml").replace(server.address, broken.address)
        project.write("agenteval.yaml", config)
        assert project.call("run").code == 1


UNREADABLE = {"openapi": "3.1.0", "paths": {"/chat": {"post": {"requestBody": {"$ref": "#/nowhere"}}}}}


@pytest.mark.parametrize("description", [None, UNREADABLE], ids=["none", "unreadable"])
def test_a_service_without_a_description_is_guessed_and_its_file_is_named(
    project: Project, description: Any
) -> None:
    with service(description, {"answer": "Hello."}) as server:
        done = untried(project, "--agent", f"{server.address}/chat")
        assert has_line(done.out, "agenteval.yaml: ", "API")
        assert agent_of(project)["request"] == {"message": "${message}"}
        assert project.call("run").code == 1  # it wants a session


def test_keys_that_a_description_leaves_open_are_filled_in_and_named(project: Project) -> None:
    user, lang = {"type": "integer"}, {"enum": ["en", "de"]}
    asked = {
        "required": ["question", "user", "lang"],
        "properties": {"question": TEXT, "user": user, "lang": lang},
    }
    with LocalServer(respond_json(described({"/ask": takes(asked, TEXT)}))) as server:
        done = untried(project, "--agent", server.address)
    assert agent_of(project) == {
        "endpoint": f"{server.address}/ask",
        "request": {"question": "${message}", "user": 1, "lang": "en"},
        "reply": {"text": "."},
    }
    assert "request.user, request.lang" in done.out


PORT_IS_NAMED_IN = {
    "serve.sh": 'exec uvicorn app:app --port "${PORT:-%d}"\n',
    "README.md": "curl localhost:%d/chat\n",
    "run.py": "uvicorn.run(app, port=%d)\n",
    "Dockerfile": "EXPOSE %d\n",
}


def test_services_that_answer_come_before_the_functions_of_the_project(project: Project) -> None:
    """Their ports are read in the files of the project."""
    project.write("app/llm.py", ECHO)
    project.write("app/main.py", SERVICE)
    with ExitStack() as stack:
        urls = []
        for file, text in PORT_IS_NAMED_IN.items():
            server = stack.enter_context(service(CHAT, HELLO))
            project.write(file, text % server.port)
            urls.append(f"http://localhost:{server.port}/chat")
        done = untried(project)
        assert agent_of(project)["endpoint"] == urls[0]
        for other in (*urls[1:], "app/llm.py:answer"):
            assert f": {other}" in done.out
        assert project.call("run").code == 0
    lines = text_of(project, WORKFLOW).splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "# start the service" in line)
    assert f"{WORKFLOW}:{number}\n" in done.out
    assert "./serve.sh &" in lines[number - 1]


SERVING = {
    "app/main.py": SERVICE,
    "server.py": "from http.server import BaseHTTPRequestHandler\n",
    "web.py": "import aiohttp.web\n",
    "package.json": '{"dependencies": {"express": "5"}, "main": "bot.js"}\n',
}


@pytest.mark.parametrize("file", SERVING)
def test_a_service_that_is_off_writes_nothing(project: Project, file: str) -> None:
    project.write("llm.py", ECHO)
    project.write(file, SERVING[file])
    project.write("Makefile", f"serve:\n\tserve --port {(port := closed_port())}\n")
    before = files_of(project)
    for arguments in (["--yes"], []):
        done = project.call("init", *arguments)
        named = (f"({file} ", f"localhost:{port}", f"--agent http://localhost:{port}/PATH", "llm.py:answer")
        done.refuses("agenteval", *named)
        assert files_of(project) == before


def test_where_no_service_is_written_no_port_is_asked(project: Project) -> None:
    with service(CHAT, {}) as server:
        project.write("README.md", f"The shop's database: localhost:{server.port}\n")
        untried(project)
    assert agent_of(project) == STARTER
    assert server.requests == []


def test_a_server_that_has_models_has_chat_completions(project: Project) -> None:
    def serve(request: Request) -> Any:
        if request.method == "GET":
            has_models = request.path == "/v1/models"
            return respond_json({"data": []} if has_models else {}, status=200 if has_models else 404)
        return respond_json(completion("Hello."))

    with LocalServer(answer(serve)) as server:
        for path in ("", "/", "/v1", "/docs", "/openapi.json", "/v1/chat/completions"):
            found = probe_endpoint(f"http://127.0.0.1:{server.port}{path}")
            assert found.keys == {"endpoint": server.url}, path
        untried(project, "--agent", f"127.0.0.1:{server.port}/docs")
        assert agent_of(project) == {"endpoint": server.url}
        assert project.call("run").code == 0
    assert "tool_calls:" in text_of(project, "scenarios/first.yaml")
    (hint,) = [line for line in text_of(project, WORKFLOW).splitlines() if "# start the service" in line]
    assert "serve.sh" not in hint


def test_an_address_at_which_nothing_answers_is_refused(project: Project) -> None:
    address = f"localhost:{closed_port()}"
    done = init(project, "--agent", f"{address}/docs")
    assert (done.code, files_of(project)) == (2, {})
    assert address in done.err


def test_calls_that_a_reply_reports_are_read(project: Project) -> None:
    call = {"properties": {"name": TEXT, "arguments": {"type": "object"}, "result": {}}}
    calls = {"type": "array", "items": {"$ref": "#/components/schemas/Call"}}
    reply = {"properties": {"reply": TEXT, "tool_calls": calls}}
    description = described({"/chat": takes(ASKED, reply)}, Call=call)
    made = [{"name": "get_menu", "arguments": {}, "result": ["pizza"]}]
    with service(description, {"reply": "Hello.", "tool_calls": made}) as server:
        untried(project, "--agent", server.address)
        assert agent_of(project)["reply"] == {"text": "reply", "messages": "tool_calls"}
        assert project.run().code == 0
    assert [c["name"] for c in project.sample()["turns"][0]["tool_calls"]] == ["get_menu"]


def test_a_service_elsewhere_gets_a_key_from_the_environment(project: Project) -> None:
    untried(project, "--agent", "https://agent.invalid/v1/chat/completions")
    assert agent_of(project) == {
        "endpoint": "https://agent.invalid/v1/chat/completions",
        "headers": {"Authorization": "Bearer ${AGENT_API_KEY:-}"},
    }
    workflow = yaml.safe_load(text_of(project, WORKFLOW))
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
@pytest.mark.parametrize("form", ["input", "json"])
def test_how_a_node_program_takes_a_message_is_found_by_trying(project: Project, form: str) -> None:
    project.write("package.json", '{"name": "bot", "main": "./bot.js"}')
    project.write("bot.js", NODE[form])
    done = init(project)
    assert (done.code, agent_of(project)) == (0, asked(["node", "bot.js"], form)), done.all
    assert "You asked: Hello! What can you help me with?" in done.out
    assert "setup-node" in text_of(project, WORKFLOW)


@pytest.mark.parametrize("form", PYTHON)
def test_how_a_program_takes_a_message_is_found_by_trying(project: Project, form: str) -> None:
    project.write("bot.py", PYTHON[form])
    done = init(project, "--agent", f"{shlex.quote(sys.executable)} bot.py", "--ci", "none")
    assert (done.code, agent_of(project)) == (0, asked([sys.executable, "bot.py"], form)), done.all
    project.write("bot.py", "import sys; sys.exit('no answer')")
    assert project.call("run").code == 1


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
def test_what_npm_prints_is_no_answer(project: Project) -> None:
    project.write("package.json", '{"name": "bot", "scripts": {"start": "node bot.js"}}')
    project.write("bot.js", NODE["argument"])
    done = init(project, "--agent", "npm start", "--ci", "none")
    words = ["npm", "-s", "start", "--"]
    assert (done.code, agent_of(project)) == (0, asked(words, "argument")), done.all
    project.write("bot.js", "")
    assert project.call("run").code == 1


def other_forms(project: Project) -> list[Any]:
    """The commands that a comment of the configuration names instead of its own."""
    lines = text_of(project, "agenteval.yaml").splitlines()
    return [yaml.safe_load(line.rpartition(": command: ")[2]) for line in lines if "# or, if" in line]


def test_a_program_whose_output_does_not_depend_on_the_message_is_reported(project: Project) -> None:
    project.write("bot.py", "print('Welcome!')")
    done = init(project, "--agent", f"{shlex.quote(sys.executable)} bot.py", "--ci", "none")
    assert has_line(done.out, "bot.py: ", "agenteval.yaml"), done.out
    assert [sys.executable, "bot.py"] in other_forms(project)


def test_without_a_trial_a_comment_names_the_other_forms_of_a_program(project: Project) -> None:
    project.write("package.json", '{"scripts": {"start": "node src/bot.js --fast"}}')
    project.write("src/bot.js", "")
    done = init(project, "--no-try", "--ci", "none")
    words = ["node", "src/bot.js", "--fast"]
    assert agent_of(project) == asked(words, "argument")
    assert has_line(done.out, shlex.join(words), "agenteval.yaml")
    assert other_forms(project) == [words, {"run": words}]


# ── nothing there, something there ───────────────────────────────────────────────────────────────


def test_an_empty_folder_gets_an_agent_and_is_red_when_that_breaks(project: Project) -> None:
    bare = project.call("run", env={"COLUMNS": "40"})
    assert bare.code == 5
    assert all(command in bare.err for command in ("agenteval init", "agenteval score FILE"))
    untried(project)
    assert project.run().code == 0
    text = text_of(project, "my_agent.py")
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


@pytest.mark.skipif(sys.platform == "win32", reason="files have other permissions there")
def test_a_second_init_writes_only_what_is_missing(project: Project) -> None:
    """A schema with the permissions of the other files, as ``agenteval schema`` does."""
    project.write("bot.py", ECHO)
    first = untried(project)
    before = files_of(project)
    written = [*SCHEMAS, *(name for name in before if name != "bot.py")]
    assert all(f" {name}\n" in first.out for name in written)
    again = init(project)
    assert (again.code, files_of(project)) == (0, before)
    assert all(name in again.out for name in written)
    mode = (project.root / "agenteval.yaml").stat().st_mode
    for name in SCHEMAS:
        for command in (("init", "--yes"), ("schema",)):
            assert (project.root / name).stat().st_mode == mode
            (project.root / name).unlink()
            done = project.call(*command)
            assert (done.code, f" {name}\n" in done.out) == (0, True)
        assert (project.root / name).stat().st_mode == mode


@pytest.mark.parametrize("names", [("agenteval.yaml", WORKFLOW), ("pyproject.toml", "scenarios/first.yaml")])
def test_a_file_that_is_there_is_left_and_the_rest_is_added(project: Project, names: tuple[str, str]) -> None:
    project.write("bot.py", ECHO)
    for name in names:
        project.write(name, OWN[name])
    done = untried(project)
    files = files_of(project)
    assert {name: files[name] for name in names} == {name: OWN[name] for name in names}
    assert all(name in done.out for name in names)
    added = {"agenteval.yaml"} if "pyproject.toml" not in names else {"pyproject.toml"}
    assert set(files) == {"bot.py", "scenarios/first.yaml", WORKFLOW, *added}
    assert project.call("run").code == 0


def test_an_agent_of_their_own_is_not_overwritten(project: Project) -> None:
    project.write("my_agent.py", "print('mine')\n")
    init(project).refuses("agenteval", "my_agent.py", "--agent")
    assert files_of(project) == {"my_agent.py": "print('mine')\n"}


def test_scenarios_that_are_there_are_enough(project: Project) -> None:
    project.agent(ECHO)
    project.config(target="agent.py:answer")
    project.scenarios(OWN["scenarios/first.yaml"])
    done = untried(project)
    assert not (project.root / "scenarios/first.yaml").exists()
    assert WORKFLOW in done.out
    assert (project.root / WORKFLOW).exists()


def test_the_configuration_of_a_folder_above_holds_within_a_repository(project: Project) -> None:
    project.write("bot.py", ECHO)
    project.write("agenteval.yaml", OWN["agenteval.yaml"])
    (project.root / "below").mkdir()
    untried(project, "below", "--ci", "none")
    assert set(files_of(project)) == {"bot.py", "agenteval.yaml", "scenarios/first.yaml"}
    (project.root / "other/.git").mkdir(parents=True)
    untried(project, "other")
    assert (project.root / "other/agenteval.yaml").exists()  # another repository's


# ── workflows ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ready(project: Project) -> Project:
    """A project that lacks nothing but a workflow, so that nothing is tried."""
    return make_ready(project)


def make_ready(project: Project, folder: str = ".") -> Project:
    project.write(f"{folder}/bot.py", ECHO)
    for name in ("agenteval.yaml", "scenarios/first.yaml"):
        project.write(f"{folder}/{name}", OWN[name])
    return project


def job_of(project: Project, name: str) -> dict[str, Any]:
    """The job of a workflow that was written."""
    document = yaml.safe_load(text_of(project, name))
    job: dict[str, Any] = document.get("jobs", document)["agenteval"]
    return job


INSTALLS = {
    "requirements.txt": ["pip install -r requirements.txt", "pip install agenteval-runner"],
    "pyproject.toml": ["pip install -e .", "pip install agenteval-runner"],
    "uv.lock": ["pip install uv && uv sync", "uv pip install agenteval-runner"],
    "package-lock.json": ["npm ci", "pip install agenteval-runner"],
    "": ["pip install agenteval-runner"],
}


@pytest.mark.parametrize("name", INSTALLS)
def test_the_workflow_installs_what_the_project_needs(ready: Project, name: str) -> None:
    if name:
        ready.write(name, "[project]\nname = 'shop'\n")
    if name == "package-lock.json":
        ready.write("package.json", "{}")
    untried(ready)
    job = job_of(ready, WORKFLOW)
    *installs, run = [step["run"] for step in job["steps"] if "run" in step]
    assert installs == INSTALLS[name]
    command = "agenteval run --report github"
    assert run == (f"uv run --no-sync {command}" if name == "uv.lock" else command)
    assert "actions/checkout@v6" in [step.get("uses") for step in job["steps"]]


def test_the_workflow_takes_the_branch_and_the_python_of_the_project(ready: Project) -> None:
    ready.write(".git/HEAD", "ref: refs/heads/release/2\n")
    ready.write(".venv/pyvenv.cfg", "home = /usr\nversion = 3.13.2\n")
    untried(ready)
    assert yaml.safe_load(text_of(ready, WORKFLOW))[True]["push"] == {"branches": ["release/2"]}
    job = job_of(ready, WORKFLOW)
    assert job["timeout-minutes"] == 15
    assert job["steps"][1]["with"] == {"python-version": "3.13"}
    ready.write(".python-version", "3.11.9\n")
    ready.write("package.json", "{}")
    untried(ready, "--ci", "gitlab")
    job = job_of(ready, "agenteval.gitlab-ci.yml")
    assert job["image"] == "python:3.11"
    assert "nodejs npm" in job["before_script"][0]


def test_the_workflow_of_a_worktree_takes_its_own_branch(ready: Project) -> None:
    ready.write("around/worktrees/one/HEAD", "ref: refs/heads/one\n")
    ready.write(".git", "gitdir: around/worktrees/one\n")
    untried(ready)
    assert "push: {branches: [one]}\n" in text_of(ready, WORKFLOW)


def test_a_workflow_lies_where_the_repository_begins(project: Project) -> None:
    (project.root / ".git").mkdir()
    make_ready(project, "my bots")
    untried(project, "my bots")
    assert job_of(project, WORKFLOW)["defaults"] == {"run": {"working-directory": "my bots"}}
    untried(project, "my bots", "--ci", "gitlab")
    job = job_of(project, "agenteval.gitlab-ci.yml")
    assert job["script"][0] == "cd 'my bots'"
    assert job["artifacts"]["reports"] == {"junit": "my bots/.agenteval/junit.xml"}


@pytest.mark.parametrize("is_asked", [True, False])
def test_gitlab_gets_a_file_to_include(ready: Project, is_asked: bool) -> None:
    if not is_asked:
        ready.write(".gitlab-ci.yml", "stages: [test]\n")
    done = untried(ready, *(["--ci", "gitlab"] if is_asked else []))
    assert ".gitlab-ci.yml: include: agenteval.gitlab-ci.yml" in done.out
    assert job_of(ready, "agenteval.gitlab-ci.yml")["script"][-1] == (
        "agenteval run --report junit=.agenteval/junit.xml"
    )
    assert not (ready.root / ".github").exists()


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


def test_a_broken_configuration_is_refused_and_nothing_is_written(project: Project) -> None:
    project.write("agenteval.yaml", "agent: {targt: 'bot.py:answer'}\n")
    init(project).refuses("agenteval.yaml:1:9", "'targt'", "'target'")
    assert set(files_of(project)) == {"agenteval.yaml"}


REFUSED = {  # the agent, and what its refusal names
    "shp.py:agent": ("'shp.py'", "'shop.py'"),
    "shp.py": ("'shp.py'", "'shop.py'"),
    "shop.py:anser": ("shop.py", "'anser'", "'answer'"),
    "shop.py:inner": ("shop.py", "'inner'"),
    "no-such-program": ("'no-such-program'",),
    "bot": ("'bot'", "./bot"),
    f"{shlex.quote(sys.executable)} -u shp.py": ("'shp.py'", "'shop.py'"),
    "http://localhost:99999/chat": ("http://localhost:99999/chat", "URL"),
    "": ("FILE.py:NAME",),
    "node 'bot.js": ("node 'bot.js", "quotation"),
    "words.py": ("words.py:NAME", "python words.py"),
}


@pytest.mark.parametrize("agent", REFUSED)
def test_an_agent_that_is_not_there_writes_nothing(project: Project, agent: str) -> None:
    project.write("shop.py", f"{ECHO}\n\ndef other():\n    inner = 1\n    return inner\n")
    project.write("words.py", "WORD = 1\n")
    project.write("bot", "")
    init(project, "--agent", agent).refuses("agenteval", *REFUSED[agent])
    assert init(project, "new", "--agent", agent).code == 2
    assert {path.name for path in project.root.iterdir()} == {"shop.py", "words.py", "bot"}


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--ci", "jenkins"], ("--ci jenkins", "github", "gitlab", "none")),
        (["words.py"], ("words.py",)),
        (["x" * 300], ("xxx",)),
    ],
)
def test_a_wrong_argument_writes_nothing(project: Project, arguments: list[str], facts: tuple[str]) -> None:
    project.write("words.py", "WORD = 1\n")
    init(project, *arguments).refuses("agenteval", *facts)
    assert set(files_of(project)) == {"words.py"}


def test_an_agent_with_an_existing_configuration_is_refused_with_what_to_write_there(
    project: Project,
) -> None:
    project.write("agenteval.yaml", OWN["agenteval.yaml"])
    project.write("other.py", ECHO)
    done = init(project, "--agent", "other.py:answer")
    done.refuses("agenteval.yaml", "--agent other.py:answer", "agent: {target: 'other.py:answer'}")
    init(project, "--agent", "othr.py:answer").refuses("agenteval", "'othr.py'")


def test_a_folder_that_is_not_there_is_made(project: Project) -> None:
    done = untried(project, "new/bot")
    assert (project.root / "new/bot/my_agent.py").exists()
    assert done.out.endswith(" cd new/bot && agenteval run\n")


def test_a_place_that_cannot_be_written_is_named(project: Project) -> None:
    project.write("scenarios", "a file\n")
    init(project).refuses("agenteval", "scenarios/first.yaml")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(project: Project) -> None:
    project.root.chmod(0o500)
    done = init(project)
    project.root.chmod(0o700)
    done.refuses("agenteval", "Permission denied")


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def test_without_a_terminal_nothing_is_asked_and_nothing_is_played(project: Project) -> None:
    project.write("bot.py", BROKEN)
    done = project.call("init")
    assert done.code == 0, done.all
    assert "valid: 1 scenario" in done.out
    assert "[" not in done.err


TWO = f"{ECHO}\n\ndef agent(messages):\n    return answer('x')\n"
THIRD = f"{ECHO}\n\ndef third(messages, ctx):\n    return 'Hello.'\n"
BOT_JS = {"package.json": '{"main": "bot.js"}', "bot.js": ""}
OFF = {
    "app/llm.py": ECHO,
    "app/main.py": SERVICE,
    "serve.sh": "uvicorn app.main:app --port 79\n",
}
# Files, what is typed, the agent that is written, and what lines of the screen name. The last two answers are
# those to whether a workflow is written, and whether the agent is played.
ANSWERS: dict[str, tuple[dict[str, str], str, dict[str, Any], tuple[tuple[str, ...], ...]]] = {
    "a number": (
        {"bot.py": TWO},
        "2\nn\ny\n",
        {"target": "bot.py:answer"},
        (("  1  bot.py:agent, ", "messages"), ("  2  bot.py:answer",)),
    ),
    "another that is written": ({"bot.py": THIRD}, "bot.py:third\ny\nn\n", {"target": "bot.py:third"}, ()),
    "at last, after others that are none": (
        {"bot.py": THIRD},
        "7\nhello world\n1\nmaybe\nn\nn\n",
        {"target": "bot.py:answer"},
        (("7", "1 to 2"), ("'hello'",), ("'maybe'", "y or n")),
    ),
    "the form of a program": (BOT_JS, "1\n4\nn\nn\n", asked(["node", "bot.js"], "input"), ()),
    "the form of a program, after one that is none": (
        BOT_JS, "1\njson\n2\nn\nn\n", asked(["node", "bot.js"], "json"), (("'json'", "1 to 4"),)
    ),
    "no default where a service is off": (  # Enter takes nothing
        OFF,
        "\n1\nn\nn\n",
        {"target": "app/llm.py:answer"},
        (("localhost:", "app/llm.py:answer"), ("empty", "FILE.py:NAME")),
    ),
}  # fmt: skip


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

    @pytest.mark.parametrize("name", ANSWERS)
    def test_the_answers_choose_the_agent(self, project: Project, name: str) -> None:
        files, typed, agent, facts = ANSWERS[name]
        for file, text in files.items():
            project.write(file, text)
        code, screen = self.answered(project, typed)
        assert (code, agent_of(project)) == (0, agent), screen
        assert [each for each in facts if not has_line(screen, *each)] == [], screen
        assert (project.root / WORKFLOW).exists() == (name == "another that is written")
        assert ("PASSED" in screen) == (name == "a number")

    def test_nothing_is_asked_where_there_is_nothing_to_write(self, project: Project) -> None:
        make_ready(project).write(WORKFLOW, OWN[WORKFLOW])
        before = files_of(project)
        code, _ = self.answered(project, "")
        assert (code, files_of(project)) == (0, before)

    def test_the_keys_of_an_api_that_nothing_describes_are_asked(self, project: Project) -> None:
        with service(None, {}) as server:
            code, screen = self.answered(project, f"{server.address}/chat\nq\nanswer\nn\nn\n")
        assert code == 0, screen
        assert agent_of(project)["request"] == {"q": "${message}"}
        assert agent_of(project)["reply"] == {"text": "answer"}

    @pytest.mark.parametrize(
        ("typed", "code", "last"),
        [
            ("7\n9\n0\n", 2, "0"),
            ("1\nmaybe\nso\nperhaps\n", 2, "'perhaps'"),
            *((typed, 130, "") for typed in ("", "1\n", "1\ny\n")),
        ],
    )
    def test_three_wrong_answers_or_the_end_of_all_write_nothing(
        self, project: Project, typed: str, code: int, last: str
    ) -> None:
        project.write("bot.py", ECHO)
        ended, screen = self.answered(project, typed)
        assert (ended, list(files_of(project))) == (code, ["bot.py"]), screen
        assert last in screen.splitlines()[-1]
