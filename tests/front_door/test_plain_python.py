"""Plain Python that was not written for agenteval: what it gets, where its state is, what is said of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from agenteval.conversation.user_code import import_target
from agenteval.core.errors import AuthorError
from tests.support.kit import Done, Project, failed_checks

BOTS = '''
import threading

WRONG = None


def talk(memory, text):
    """Knows the order of this conversation from its first message."""
    memory.append(text)
    if len(memory) == 1:
        return f"I have {text}. What is the reason?"
    return f"Refunded {WRONG or memory[0]} ({len(memory)})."


def gradio(message, history):
    memory = [each["content"] for each in history if each["role"] == "user"]
    return talk(memory, message)


def gradio_stream(message, history):
    answer = gradio(message, history)
    for end in range(1, len(answer) + 1):
        yield answer[:end]


async def all_messages(chat_history):
    *memory, last = [each["content"] for each in chat_history if each["role"] == "user"]
    return talk(memory, last)


sessions = {}


def by_session(message: str, session_id="default"):
    return talk(sessions.setdefault(session_id, []), message)


class Bot:
    def __init__(self):
        self.memory = []

    def ask(self, q: str) -> str:
        return talk(self.memory, q)


class Several:
    def __init__(self, greeting=""):
        self.memory = []

    def chat(self, question: str) -> str:
        return talk(self.memory, question)

    async def run(self, question: str) -> str:
        return talk(self.memory, question)

    def stream(self, question: str):
        yield from talk(self.memory, question)

    async def astream(self, question: "str"):
        for piece in talk(self.memory, question):
            yield piece

    async def both(self, question: str):
        return self.astream(question)


class Called(Bot):

    async def __call__(self, user_input):
        return {"role": "assistant", "content": talk(self.memory, user_input)}


class Locked(Bot):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def ask(self, q: str):
        if len(self.memory) == 2:   # the conversation before this one is over
            self.memory.clear()
        return talk(self.memory, q)


class Needs(Bot):
    def __init__(self, model):
        super().__init__()


bot = Bot()
called = Called()
several = Several()
locked = Locked()
alias = Bot().ask


def make_bot():
    return Needs("a model").ask


async def make_async():
    return Several().run


def built() -> "Called":
    return Called()
'''
FORMS = (
    "gradio",
    "gradio_stream",
    "all_messages",
    "by_session",
    "Bot.ask",
    "Several.chat",
    "Several.run",
    "Several.stream",
    "Several.astream",
    "Several.both",
    "Called",
    "called",
    "bot.ask",
    "several.astream",
    "locked.ask",
    "alias",
    "make_bot",
    "make_async",
    "built",
)


def play(project: Project, more: str = "") -> Done:
    agents = "".join(f"  as-{each}: {{target: 'bots.py:{each}', timeout_s: 30{more}}}\n" for each in FORMS)
    project.config(f"agents:\n{agents}", target="bots.py:gradio")
    contains = "expect: {output: {contains: "
    lines = [
        f"  - {{id: '{each}-{order}', agent: as-{each}, turns: [{{user: {order}, {contains}[{order}]}}}}}},"
        f" {{user: it broke, {contains}['Refunded {order} (2)']}}}}}}]}}"
        for order in ("ORD-1", "ORD-2")
        for each in FORMS
    ]
    project.scenarios("scenarios:\n" + "\n".join(lines))
    return project.run("--concurrency", "8")


@pytest.mark.parametrize("more", ["", f", interpreter: '{sys.executable}'"], ids=["here", "elsewhere"])
def test_every_form_is_red_with_a_bug_and_green_without(project: Project, more: str) -> None:
    project.write("bots.py", BOTS)
    assert (done := play(project, more)).code == 0, done.all
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    assert len(samples) == 2 * len(FORMS)

    project.write("bots.py", BOTS.replace("WRONG = None", "WRONG = 'ORD-0'"))
    assert play(project, more).code == 1
    for each in project.results()["scenarios"]:
        assert failed_checks(each["samples"][0]) == {(1, "output.contains")}, each["id"]


SUITE = "id: a\nturns: [{user: one}, {user: two}]\nchecks: none\n"


def told(project: Project, code: str, target: str = "agent.py:agent", more: str = "") -> Done:
    project.agent(code)
    project.config(f"agent: {{name: bot, target: '{target}'{more}}}\n", target="")
    project.scenarios(SUITE)
    return project.call("validate")


FOUND_OUT = "agenteval finds out in the run which calls it sees (set calls: all | unseen to override)"


@pytest.mark.parametrize("more", ["", f", interpreter: '{sys.executable}'"], ids=["here", "elsewhere"])
@pytest.mark.parametrize(
    ("code", "target", "says"),
    [
        (
            "class Bot:\n    async def chat(self, q: str): return q",
            "Bot.chat",
            "agent.py:Bot.chat, a new instance for each conversation, gets the latest user message (q: str)",
        ),
        (
            "def agent(messages, ctx): return 'hi'",
            "agent",
            "agent.py:agent, a function, gets the messages so far and ctx (it is named messages)",
        ),
        (
            "class Bot:\n    def ask(self, q: str): ...\nbot = Bot()",
            "bot.ask",
            "agent.py:bot.ask, copied for each conversation, gets the latest user message (q: str)",
        ),
        (
            "def make_bot(): raise ValueError",
            "make_bot",
            "agent.py:make_bot, called for each conversation, makes the agent, whose kind determines what"
            " it gets",
        ),
    ],
)
def test_validate_says_what_it_will_do_and_calls_nothing(
    code: str, target: str, says: str, more: str, project: Project
) -> None:
    done = told(project, "print('the shop is open')\n" + code, f"agent.py:{target}", more)
    assert done.code == 0, done.all
    where = f", in {sys.executable}" if more else ""
    assert done.out.splitlines()[:2] == [
        "valid: 1 scenario in 1 file, 1 sample to run",
        f"  bot: {says}{where}; {FOUND_OUT}",
    ]


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        (
            "command: [sh, bot.sh]",
            "sh bot.sh, a process for each conversation, gets the latest user message and the messages so"
            " far",
        ),
        (
            "endpoint: 'http://localhost:3000/v1/responses?key=x'",
            "POST http://localhost:3000/v1/responses: the conversation, by the Responses API",
        ),
        (
            "endpoint: 'http://localhost:3000/chat', request: {text: '${message}'}, reply: {text: answer}",
            "POST http://localhost:3000/chat: each message by itself, without a session, as `request` says",
        ),
    ],
)
def test_validate_says_it_of_agents_that_are_not_python(agent: str, says: str, project: Project) -> None:
    project.config(f"agent: {{name: bot, {agent}}}\n", target="")
    project.scenarios(SUITE)
    done = project.call("validate")
    assert done.code == 0, done.all
    assert done.out.splitlines()[1].startswith(f"  bot: {says}")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_package", "importing 'agent.py' failed: ModuleNotFoundError: No module named"),
        (
            "class agent:\n    def chat(s, m): ...\n    def ask(s, m): ...",
            "the agent is a agent, which has no __call__, and has ask, chat — name a method that takes a"
            " message, such as target: agent.py:agent.ask",
        ),
        (
            "class agent:\n    def __init__(self, db, model='m'): ...\n    def __call__(self, q): ...",
            "cannot be called without arguments: agent(db, model='m') — give each parameter of its"
            " __init__ a default, or name a function that makes it: def make_agent(): return agent(…)",
        ),
        ("def agent(): print(input())", "agent() (agent.py:1) — write it as (messages), (messages, ctx), ("),
        ("agent = input('you: ')", "importing 'agent.py' failed: EOFError: EOF when reading a line"),
        ("def agent(request: dict): return 'hi'", "request: dict is neither a text nor a list of messages"),
        (
            "x = 1\ndef agent(message, user): ...",
            "(agent.py:2): there is nothing to pass as user — write it as (mess",
        ),
        ("def agent(message, history: 'list[list[str]]'): ...", "is not a list of messages, which are dicts"),
    ],
)
def test_validate_refuses_what_cannot_be_called_at_its_place(code: str, says: str, project: Project) -> None:
    done = told(project, code)
    assert (done.code, done.out) == (2, "")
    assert "agenteval.yaml:2:20: " in done.err
    assert says in done.err


def test_a_target_that_hangs_at_import_ends_by_a_deadline(project: Project) -> None:
    project.write("hangs.py", "import time\ntry:\n    time.sleep(600)\nexcept Exception:\n    pass\n")
    with pytest.raises(
        AuthorError, match=r"ImportTimeout: it did not finish within 0.2 s \(hangs.py:3, in <mod"
    ):
        import_target("hangs.py:agent", str(project.root), what="agent 'bot'", timeout_s=0.2)


def run(project: Project, code: str, suite: str = SUITE, *, epochs: int = 1) -> dict[str, Any]:
    project.agent(code)
    project.config()
    project.scenarios(suite)
    project.run("--epochs", str(epochs))
    samples: list[dict[str, Any]] = project.results()["scenarios"][0]["samples"]
    return samples[0]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def make_agent(): return {'model': 'm'}\nagent = make_agent",
            "make_agent() is called without arguments to make the agent; the agent is a dict",
        ),
        (
            "def agent(q: str): return {'tool_calls': [{'function': {'name': 't', 'arguments': '{}'}}]}",
            "asked for tool calls but gets only the text of a message: add a `messages` parameter",
        ),
        ("def agent(x): return x.upper()", "'list' object has no attribute 'upper' (agent.py:1, in agent)"),
    ],
)
def test_an_agent_that_breaks_on_what_it_gets_or_makes_fails(code: str, says: str, project: Project) -> None:
    sample = run(project, code, SUITE + "tools: {t: {returns: 1}}\n")
    assert sample["stop"] == "agent_error"
    assert says in sample["turns"][0]["error"]


def test_what_makes_an_object_that_is_not_called_is_the_authors_mistake(project: Project) -> None:
    project.agent("class Bot:\n    def ask(self, q): return 'Hi'\ndef agent() -> Bot: return Bot()")
    project.config()
    project.scenarios(SUITE)
    done = project.run()
    assert done.code == 2
    assert (
        "agent() is called without arguments to make the agent; the agent is a Bot, which has no" in done.err
    )
    assert "return the method that takes a message: return Bot(…).chat" in " ".join(done.err.split())
    project.agent("class Bot:\n    def ask(self, q): return 'Hi'\ndef agent() -> Bot: return Bot().ask")
    assert project.run().code != 2


FORGETS = "agent gets only the latest user message and is called for several turns"
MIXES = "Bot.ask is one object for all conversations and cannot be copied (TypeError: cannot pickle"


@pytest.mark.parametrize("more", ["", f", interpreter: '{sys.executable}'"], ids=["here", "elsewhere"])
def test_a_function_of_text_alone_is_warned_about_once_if_it_has_several_turns(
    project: Project, more: str
) -> None:
    def warnings(code: str, suite: str = SUITE) -> int:
        told(project, code, more=more)
        project.scenarios(suite)
        return project.run("--epochs", "3").err.count(FORGETS)

    assert warnings("def agent(question): return 'hi'") == 1
    assert warnings("def agent(question): return 'hi'", "id: a\nturns: [x]\nchecks: none\n") == 0
    assert warnings("def agent(question, session_id): return 'hi'") == 0
    assert warnings("def agent(messages): return 'hi'") == 0
    assert warnings("class agent:\n    def __call__(self, q: str): return 'hi'") == 0
    if more:
        more += ", keep: false"
        assert warnings("def agent(question): return 'hi'") == 0


SHARED = """
import threading, time
class Bot:
    def __init__(self):
        self.lock = threading.Lock()
        self.seen = []
    def ask(self, q: str):
        self.seen.append(q)
        time.sleep(0.05)
        return " ".join(self.seen)
agent = Bot().ask
"""
FOUR = "scenarios:\n" + "".join(f"- {{id: s{n}, turns: [{n}a, {n}b], checks: none}}\n" for n in range(4))


def test_an_object_that_cannot_be_copied_plays_one_conversation_at_a_time(project: Project) -> None:
    """In processes of its own, each conversation has one."""
    answers = []
    for more in ("", f", interpreter: '{sys.executable}'"):
        told(project, SHARED, more=more)
        project.scenarios(FOUR)
        done = project.run("--concurrency", "4")
        assert done.err.count(MIXES) == (0 if more else 1), done.err
        answers.append(
            [
                [turn["agent"] for turn in each["samples"][0]["turns"]]
                for each in project.results()["scenarios"]
            ]
        )
    here, elsewhere = answers
    seen = max((text for _, text in here), key=len).split()
    assert len(seen) == 8
    assert all(seen[at] == seen[at + 1].replace("b", "a") for at in range(0, 8, 2)), seen
    assert elsewhere == [[f"{n}a", f"{n}a {n}b"] for n in range(4)]


def test_the_calls_of_a_method_are_those_that_it_made(project: Project) -> None:
    project.agent(
        """
        import json, pathlib

        class Bot:
            def chat(self, message: str, ctx):
                order = ctx.call_tool_sync("get_order", {"id": message})
                with pathlib.Path("record").open("a") as record:
                    record.write(json.dumps(["get_order", {"id": message}]) + "\\n")
                return order["status"]
        """
    )
    project.config(target="agent.py:Bot.chat")
    project.scenarios("""
        id: a
        turns: [ORD-1, ORD-2]
        tools: {get_order: {returns: {status: shipped}}}
        expect: {tool_calls: {calls: [{name: get_order, args: {id: ORD-2}}]}}
    """)
    assert project.run().code == 0
    made = [json.dumps([c["name"], c["args"]]) for t in project.sample()["turns"] for c in t["tool_calls"]]
    assert made == (project.root / "record").read_text("utf-8").splitlines()


def test_a_generator_of_mappings_that_are_no_messages_is_told_so(project: Project) -> None:
    project.agent("def agent(message):\n    yield {'delta': 'It '}\n    yield {'delta': 'is.'}\n")
    project.config()
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    done = project.run()
    assert done.code == 1
    assert "2 mappings with 'delta', which are not messages — yield the pieces" in " ".join(done.out.split())
