"""What in the Python files of a project is taken for an agent, and what is preferred. Nothing is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agenteval.cli.new_project import python_agents
from agenteval.cli.new_project.python_agents import (
    OBJECTS,
    PythonFiles,
    find_project_interpreter,
    find_python_agents,
    top_level_names,
)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def found(root: Path, **files: str) -> PythonFiles:
    return find_python_agents(write(root, {f"{name}.py": text for name, text in files.items()}))


def targets(root: Path, **files: str) -> list[str]:
    return [each.target for each in found(root, **files).agents]


REPLY = "\n    return 'x'\n"


@pytest.mark.parametrize(
    "head",
    [
        "def agent(messages)",
        "def agent(message)",
        "async def reply(text: str)",
        "def run_bot(prompt)",
        "def MyAssistant(query)",
        "def whatever(question)",
        "def whatever(user_message)",
        "def whatever(user_input)",
        "def whatever(chat_messages)",
        "def whatever(history)",
        "def agent(message, ctx)",
        "def agent(message, context, history)",
        "def agent(message, session_id)",
        "def agent(message, db=None)",
        "def agent(message, *, db=None)",
        "def agent(message, /, db=None)",
        "def agent(ctx, message)",
        "def agent(Message)",
        "def agent(messages: list[dict])",
        "def agent(messages: Sequence[Any])",
        "def agent(message: Any) -> dict",
        "@traced\ndef agent(message)",
    ],
)
def test_a_function_that_takes_a_message_and_answers(tmp_path: Path, head: str) -> None:
    (only,) = found(tmp_path, bot=f"{head}:{REPLY}").agents
    assert only.target == f"bot.py:{head.partition('def ')[2].partition('(')[0]}"
    assert not only.is_object


@pytest.mark.parametrize(
    "code",
    [
        f"def agent():{REPLY}",
        f"def clean(text):{REPLY}",
        f"def clean(prompt):{REPLY}",
        f"def _agent(messages):{REPLY}",
        f"def agent(order):{REPLY}",
        f"def agent(message, db):{REPLY}",
        f"def agent(message, *, db):{REPLY}",
        f"def agent(db, /, message):{REPLY}",
        f"def agent(message: Mail):{REPLY}",
        f"def agent(message: strange):{REPLY}",
        f"@tool\ndef agent(message):{REPLY}",
        f"@server.Tool('x')\ndef agent(message):{REPLY}",
        *(f"def agent(message) -> {kind}:{REPLY}" for kind in ("None", "bool", "int", "float", "bytes")),
        "def agent(message):\n    return\n",
        "def agent(message):\n    print(message)\n",
        f"def outer():\n    def agent(message):\n        {REPLY.strip()}\n",
        f"if True:\n    def agent(message):\n        {REPLY.strip()}\n",
    ],
)
def test_functions_that_are_no_agents(tmp_path: Path, code: str) -> None:
    assert targets(tmp_path, bot=code) == []


@pytest.mark.parametrize("end", ["yield 'x'", "yield from parts", "return 'x'", "if x:\n        return 'x'"])
def test_an_agent_may_yield_its_answer(tmp_path: Path, end: str) -> None:
    assert targets(tmp_path, bot=f"def agent(message):\n    {end}\n") == ["bot.py:agent"]


def method(*names: str, takes: str = "self, message") -> str:
    return "".join(f"    def {name}({takes}):\n        return 'x'\n\n" for name in names)


@pytest.mark.parametrize(
    ("code", "target"),
    [
        *(
            (f"class Bot:\n{method(name)}", f"Bot.{name}")
            for name in ("chat", "run", "invoke", "ask", "reply", "respond", "answer")
        ),
        (f"class Bot:\n{method('__call__')}", "Bot"),
        (f"class Bot(Base):\n{method('chat')}", "Bot.chat"),
        (f"class Bot:\n{method('__init__', takes='self')}{method('chat')}", "Bot.chat"),
        (f"class Bot:\n{method('__init__', takes='self, key=1')}{method('chat')}", "Bot.chat"),
        (f"class Bot:\n{method('chat', 'helper')}", "Bot.chat"),
        (f"class Bot:\n{method('chat').replace('def', 'async def')}", "Bot.chat"),
        (f"class _Bot:\n{method('chat')}", ""),
        (f"class Bot:\n{method('talk')}", ""),
        (f"class Bot:\n{method('chat', 'run')}", ""),
        (f"class Bot:\n{method('__call__', 'run')}", ""),
        (f"class Bot:\n{method('chat', takes='self')}", ""),
        (f"class Bot:\n{method('chat', takes='self, order')}", ""),
        (f"class Bot:\n{method('chat', takes='self, message, db')}", ""),
        (f"class Bot:\n{method('__init__', takes='self, key')}{method('chat')}", ""),
        (f"class Bot:\n{method('__init__', takes='self, *, key')}{method('chat')}", ""),
    ],
)
def test_a_class_with_one_method_that_answers(tmp_path: Path, code: str, target: str) -> None:
    assert targets(tmp_path, bot=code) == ([f"bot.py:{target}"] if target else [])


MAKERS = [
    (package, maker, framework)
    for package, (framework, makers) in OBJECTS.items()
    for maker in makers.split()
]


@pytest.mark.parametrize(("package", "maker", "framework"), MAKERS)
def test_objects_of_frameworks(tmp_path: Path, package: str, maker: str, framework: str) -> None:
    (only,) = found(tmp_path, bot=f"from {package}.deep import {maker}\nx = {maker}()\n").agents
    assert (only.target, only.kind, only.is_object) == ("bot.py:x", framework, True)


AGENT = "from pydantic_ai import Agent\n"
GRAPH = "from langgraph.graph import StateGraph\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (f"{AGENT}a = b = Agent('m')\n", {"a", "b"}),
        (f"{AGENT}a: Agent = Agent('m')\n", {"a"}),
        (f"{AGENT}a: Agent\n", set()),
        (f"{AGENT}_hidden = Agent('m')\n", {"_hidden"}),
        (f"{AGENT}a = Agent[int, str]('m')\n", {"a"}),
        (f"{AGENT}a = await Agent('m')\n", {"a"}),
        (f"{AGENT}a = Agent\n", {"a"}),
        (f"{AGENT}a = Agent('m').run_sync('hi')\n", set()),
        (f"{AGENT}a = Agent('m').output\n", set()),
        (f"{AGENT}a = Agent('m')\nb = a.run('x')\n", {"a"}),
        (f"{AGENT}a = Agent('m')\nb = a\n", {"a", "b"}),
        (f"{AGENT}x.a = Agent('m')\n", set()),
        (f"{AGENT}a = [Agent('m')]\n", set()),
        ("import pydantic_ai\na = pydantic_ai.Agent('m')\n", {"a"}),
        ("import pydantic_ai as p\na = p.Agent('m')\n", {"a"}),
        ("import pydantic_ai.agent\na = pydantic_ai.agent.Agent('m')\n", {"a"}),
        ("from pydantic_ai import Agent as A\na = A('m')\n", {"a"}),
        ("from pydantic_ais import Agent\na = Agent('m')\n", set()),
        ("from .pydantic_ai import Agent\na = Agent('m')\n", set()),
        ("a = Agent('m')\n", set()),
        (f"{GRAPH}g = StateGraph(S)\n", {"g"}),
        (f"{GRAPH}g = StateGraph(S).add_node('n').set_entry('n').compile()\n", {"g"}),
        (f"{GRAPH}g = StateGraph(S)\nh = g.compile().with_config({{}})\n", {"g", "h"}),
        (f"{GRAPH}g = StateGraph(S).get_graph()\n", set()),
        (f"{AGENT}class Mine(Agent):\n    pass\n", set()),
        (f"{AGENT}class Mine(Agent):\n    pass\n\na = Mine()\n", {"a"}),
        (f"{AGENT}class Mine(Agent):\n{method('chat')}", set()),
        (f"{AGENT}class Mine(Base):\n{method('chat')}", {"Mine.chat"}),
        (f"{AGENT}def make_bot():\n    return Agent('m')\n", {"make_bot"}),
        (f"{AGENT}async def build():\n    a = Agent('m')\n    return a\n", {"build"}),
        (f"{AGENT}def make_bot(model='m', *, x=1):\n    return Agent(model)\n", {"make_bot"}),
        (f"{AGENT}def make_bot(model):\n    return Agent(model)\n", set()),
        (f"{AGENT}def make_bot(*, model):\n    return Agent(model)\n", set()),
        (f"{AGENT}def bot():\n    return Agent('m')\n", set()),
        (f"{AGENT}def _make_bot():\n    return Agent('m')\n", set()),
        (f"{AGENT}def _make_bot():\n    return Agent('m')\n\na = _make_bot()\n", {"a"}),
        (f"{AGENT}def make_bot():\n    return 1\n", set()),
    ],
)
def test_what_makes_an_object(tmp_path: Path, code: str, names: set[str]) -> None:
    assert set(targets(tmp_path, bot=code)) == {f"bot.py:{name}" for name in names}


def test_a_folder_of_the_project_may_have_the_name_of_a_framework(tmp_path: Path) -> None:
    files = {
        "agents/__init__.py": "class Agent:\n    pass\n",
        "bot.py": "from agents import Agent\na = Agent()\n",
    }
    assert find_python_agents(write(tmp_path, files)).agents == ()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (  # an object is preferred to a function
            {"a": f"def agent(message):{REPLY}", "b": f"{AGENT}x = Agent('m')\n"},
            ["b.py:x", "a.py:agent"],
        ),
        (  # what another one uses is part of that one
            {"a": f"{AGENT}agent = Agent('m')\nx = Agent('m', tools=[agent])\n"},
            ["a.py:x", "a.py:agent"],
        ),
        (  # the name of an agent is preferred
            {"a": f"def zero(question):{REPLY}\n\ndef bot(question):{REPLY}\n\ndef last(question):{REPLY}"},
            ["a.py:bot", "a.py:last", "a.py:zero"],
        ),
        (  # what other modules import is a part of them
            {"a": f"def bot(message):{REPLY}", "b": f"from a import bot\ndef reply(message):{REPLY}"},
            ["b.py:reply", "a.py:bot"],
        ),
        (  # then the shallower file, its name, and the later line
            {
                "deep/a": f"def bot(message):{REPLY}",
                "z": f"def bot(message):{REPLY}",
                "b": f"def bot(message):{REPLY}\n\ndef agent(message):{REPLY}",
            },
            ["b.py:agent", "b.py:bot", "z.py:bot", "deep/a.py:bot"],
        ),
    ],
)
def test_the_most_likely_agent_comes_first(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    assert targets(tmp_path, **files) == expected


BOT = f"def bot(message):{REPLY}"


@pytest.mark.parametrize(
    ("path", "is_searched"),
    [
        ("bot.py", True),
        ("deep/er/bot.py", True),
        ("testing.py", True),
        ("my_test_.py", True),
        ("contest.py", True),
        ("test_bot.py", False),
        ("conftest.py", False),
        ("bot.txt", False),
        (".hidden/bot.py", False),
        *(
            (f"{folder}/bot.py", False)
            for folder in ("node_modules", "site-packages", "__pycache__", "tests", "test", "build", "dist")
        ),
        ("a/tests/bot.py", False),
        ("env/bot.py", False),
    ],
)
def test_the_files_that_are_searched(tmp_path: Path, path: str, is_searched: bool) -> None:
    found = find_python_agents(write(tmp_path, {path: BOT, "env/pyvenv.cfg": ""})).agents
    assert [each.target for each in found] == ([f"{path}:bot"] if is_searched else [])


@pytest.mark.parametrize(
    ("limit", "most", "count"),
    [
        ("MAX_FILES", 2, 2),
        ("MAX_FILES", 3, 3),
        ("MAX_ENTRIES", 3, 3),
        ("MAX_ENTRIES", 2, 0),
        ("MAX_FILE_BYTES", len(BOT), 3),
        ("MAX_FILE_BYTES", len(BOT) - 1, 0),
    ],
)
def test_a_project_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, count: int
) -> None:
    monkeypatch.setattr(python_agents, limit, most)
    assert targets(tmp_path, a=BOT, b=BOT, c=BOT) == [f"{name}.py:bot" for name in "abc"][:count]


@pytest.mark.parametrize("code", ["def bot(:\n", "\0", "x = " + "(" * 500, "# coding: nonsense\n"])
def test_a_file_that_cannot_be_parsed_is_no_agent(tmp_path: Path, code: str) -> None:
    assert targets(tmp_path, broken=code, bot=BOT) == ["bot.py:bot"]
    assert top_level_names(tmp_path / "broken.py") is None


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("import json, os.path\n", ()),
        ("import pytest\n", ()),
        ("import no_such_b.sub, no_such_a\n", ("no_such_a", "no_such_b")),
        ("from no_such_a.sub import x\n", ("no_such_a",)),
        ("def f():\n    import no_such_a\n", ("no_such_a",)),
        ("from . import no_such_a\nfrom .no_such_b import x\n", ()),
        ("import other, folder.deep\n", ()),
    ],
)
def test_packages_that_are_not_installed(tmp_path: Path, code: str, missing: tuple[str, ...]) -> None:
    files = {"bot.py": code, "other.py": "", "folder/deep.py": ""}
    assert find_python_agents(write(tmp_path, files)).missing == missing


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("import fastapi\n", "fastapi"),
        ("from fastapi.responses import X\n", "fastapi"),
        ("def f():\n    from flask import Flask\n", "flask"),
        ("from aiohttp import web\n", "aiohttp.web"),
        ("import aiohttp\n", ""),
        ("from http import server\n", "http.server"),
        ("from http.server import HTTPServer\n", "http.server"),
        ("import http.client\n", ""),
        ("import fastapix\n", ""),
        ("import django.conf\n", "django"),
        ("import tornado\n", ""),  # a file of the project
    ],
)
def test_a_project_that_is_a_service(tmp_path: Path, code: str, package: str) -> None:
    server = found(tmp_path, app=code, tornado="").server
    assert server == (f"app.py imports {package}" if package else "")


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("", set()),
        ("a = b, (c, *d) = 1\ne: int = 1\nf += 1\n", {"a", "b", "c", "d", "e", "f"}),
        ("def f(x):\n    y = 1\n\nasync def g(): ...\n\nclass C:\n    z = 1\n", {"f", "g", "C"}),
        ("import a.b, c as d\nfrom e import f, g as h\n", {"a", "d", "f", "h"}),
        ("if x:\n    a = 1\nelse:\n    def b(): ...\n", {"a", "b"}),
        ("try:\n    a = 1\nexcept E:\n    b = 1\n", {"a", "b"}),
        ("with x as a:\n    pass\nfor b in c:\n    pass\n(d := 1)\n", {"a", "b", "d"}),
        ("x.a = 1\nprint(y)\n", set()),
        ("from x import *\n", None),
        ("globals()['a'] = 1\n", None),
        ("exec('a = 1')\n", None),
        ("def __getattr__(name): ...\n", None),
    ],
)
def test_names_at_the_top_level(tmp_path: Path, code: str, names: set[str] | None) -> None:
    write(tmp_path, {"bot.py": code})
    assert top_level_names(tmp_path / "bot.py") == names


def test_a_file_that_is_not_there_has_no_names(tmp_path: Path) -> None:
    assert top_level_names(tmp_path / "bot.py") is None


@pytest.mark.parametrize(
    ("graphs", "expected"),
    [
        ('{"g": "./bot.py:graph"}', ["bot.py:graph"]),
        ('{"g": {"path": "sub/../bot.py:graph"}}', ["bot.py:graph"]),
        ('{"g": "bot.py:graph", "h": "bot.py:other"}', ["bot.py:graph", "bot.py:other"]),
        ('{"g": "gone.py:graph"}', []),
        ('{"g": "bot:graph"}', []),
        ('{"g": 1, "h": {"path": null}, "i": {}}', []),
        ('["bot.py:graph"]', []),
        ("null", []),
    ],
)
def test_graphs_that_langgraph_declares(tmp_path: Path, graphs: str, expected: list[str]) -> None:
    files = {"bot.py": "", "sub/x.txt": "", "langgraph.json": f'{{"graphs": {graphs}}}'}
    agents = find_python_agents(write(tmp_path, files)).agents
    assert [each.target for each in agents] == expected
    assert {(each.kind, each.is_object) for each in agents} <= {("LangGraph", True)}


def test_declared_graphs_come_first_and_once(tmp_path: Path) -> None:
    files = {
        "bot.py": f"{GRAPH}agent = StateGraph(S)\nother = StateGraph(S)\n",
        "langgraph.json": '{"graphs": {"g": "./bot.py:other"}}',
    }
    agents = find_python_agents(write(tmp_path, files)).agents
    assert [each.target for each in agents] == ["bot.py:other", "bot.py:agent"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], ""),
        (["top/root/.venv/bin/python"], ".venv/bin/python"),
        (["top/root/venv/bin/python"], "venv/bin/python"),
        (["top/root/venv/bin/python", "top/root/.venv/bin/python"], ".venv/bin/python"),
        (["top/root/.venv/Scripts/python.exe"], ".venv/Scripts/python.exe"),
        (["top/.venv/bin/python"], "../.venv/bin/python"),
        (["top/.venv/bin/python", "top/root/venv/bin/python"], "venv/bin/python"),
        ([".venv/bin/python"], ""),
        (["top/root/.venv/pyvenv.cfg"], ""),
    ],
)
def test_the_interpreter_of_the_project(tmp_path: Path, files: list[str], expected: str) -> None:
    write(tmp_path, {**dict.fromkeys(files, ""), "top/root/x": ""})
    assert find_project_interpreter(tmp_path / "top" / "root", tmp_path / "top") == expected


def test_the_environment_of_agenteval_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {".venv/bin/python": ""})
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert find_project_interpreter(tmp_path, tmp_path) == ""
