"""Plain Python that was not written for agenteval: what it gets, where its state is, what describes it."""

from __future__ import annotations

import json
import sys

import pytest

from agenteval.conversation.user_code import import_target
from agenteval.core.errors import AuthorError
from tests.support.kit import Project, failed_checks
from tests.support.suites import samples_of, warnings_of, write_suite
from tests.support.toy import PLACES

BOTS = '''
import threading

def talk(memory, text):
    """Knows the order of this conversation from its first message; of one order it is wrong."""
    memory.append(text)
    if len(memory) == 1:
        return f"I have {text}. What is the reason?"
    order = "ORD-0" if memory[0] == "ORD-BUG" else memory[0]
    return f"Refunded {order} ({len(memory)})."

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
    "gradio", "gradio_stream", "all_messages", "by_session", "Bot.ask", "Several.chat", "Several.run",
    "Several.stream", "Several.astream", "Several.both", "Called", "called", "bot.ask", "several.astream",
    "locked.ask", "alias", "make_bot", "make_async", "built",
)  # fmt: skip
ORDERS = {"ORD-1": set(), "ORD-2": set(), "ORD-BUG": {(1, "output.contains")}}


@pytest.mark.parametrize("where", PLACES)
def test_every_form_is_red_with_a_bug_and_green_without(project: Project, where: str) -> None:
    project.write("bots.py", BOTS)
    contains = "expect: {output: {contains: "
    scenarios = {
        f"{order} {each}": f"agent: as-{each}, turns: [{{user: {order}, {contains}[{order}]}}}}}},"
        f" {{user: it broke, {contains}['Refunded {order} (2)']}}}}}}]"
        for order in ORDERS
        for each in FORMS
    }
    agents = {f"as-{each}": f"target: 'bots.py:{each}', timeout_s: 30" for each in FORMS}
    write_suite(project, agents, scenarios, where=where)
    done = project.run("--concurrency", "2" if where else "8")
    assert done.code == 1, done.all
    found = {id: failed_checks(sample) for id, sample in samples_of(project).items()}
    assert found == {f"{order} {each}": failed for order, failed in ORDERS.items() for each in FORMS}


SUITE = "id: a\nturns: [{user: one}, {user: two}]\nchecks: none\n"
DESCRIBED = {
    "chat": ("agent.py:Bot.chat", "each conversation", "latest user message", "q: str"),
    "function": ("agent.py:function", "messages", "ctx"),
    "ask": ("agent.py:bot.ask", "copied", "latest user message", "q: str"),
    "make_bot": ("agent.py:make_bot", "conversation", "creates"),
}
DESCRIBED_CODE = """
print('the shop is open')

class Bot:
    async def chat(self, q: str): return q
    def ask(self, q: str): ...

bot = Bot()
def function(messages, ctx): return 'hi'
def make_bot(): raise ValueError
"""


@pytest.mark.parametrize("where", PLACES)
def test_validate_describes_agents_and_calls_nothing(project: Project, where: str) -> None:
    project.agent(DESCRIBED_CODE)
    agents = {name: f"target: '{target}'" for name, (target, *_) in DESCRIBED.items()}
    write_suite(project, agents, DESCRIBED.keys(), where=where)
    done = project.call("validate")
    assert done.code == 0, done.all
    first, *described = done.out.splitlines()
    assert first.startswith("valid: 4 scenarios")  # what the module prints is no part of the output
    for name, facts in DESCRIBED.items():
        (line,) = [line for line in described if line.startswith(f"  {name}: ")]
        assert all(fact in line for fact in (*facts, "calls: all", "calls: unseen")), line
        assert (f"in {sys.executable}" in line) == bool(where)


@pytest.mark.parametrize(
    ("agent", "facts"),
    [
        ("command: [sh, bot.sh]", ("sh bot.sh", "conversation", "messages")),
        (
            "endpoint: 'http://localhost:3000/v1/responses?key=x'",
            ("POST http://localhost:3000/v1/responses: ", "Responses API"),
        ),
        (
            "endpoint: 'http://localhost:3000/chat', request: {text: '${message}'}, reply: {text: answer}",
            ("POST http://localhost:3000/chat: ", "each message", "`request`"),
        ),
    ],
)
def test_validate_describes_other_agents(agent: str, facts: tuple[str, ...], project: Project) -> None:
    project.config(f"agent: {{name: bot, {agent}}}\n", target="")
    project.scenarios(SUITE)
    done = project.call("validate")
    assert done.code == 0, done.all
    line = done.out.splitlines()[1]
    assert line.startswith("  bot: ")
    assert all(fact in line for fact in facts), line


CLASS = "class agent:\n    def "
REFUSED = [
    ("import no_such_package", "'agent.py'", "ModuleNotFoundError"),
    (f"{CLASS}chat(s, m): ...\n    def ask(s, m): ...", "__call__", "chat", "target: agent.py:agent.ask"),
    (
        f"{CLASS}__init__(self, db, model='m'): ...\n    def __call__(self, q): ...",
        "agent(db, model='m')", "__init__", "def make_agent(): return agent(…)",
    ),
    ("def agent(): print(input())", "agent() (agent.py:1)", "(messages)", "(messages, ctx)"),
    ("agent = input('you: ')", "'agent.py'", "EOFError"),
    ("def agent(request: dict): return 'hi'", "(agent.py:1)", "request: dict"),
    ("x = 1\ndef agent(message, user): ...", "(agent.py:2)", "user", "(messages)", "(messages, ctx)"),
    ("def agent(message, history: 'list[list[str]]'): ...", "(agent.py:1)", "history: list[list[str]]"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "facts"), [(code, facts) for code, *facts in REFUSED])
def test_validate_refuses_what_cannot_be_called(code: str, facts: list[str], project: Project) -> None:
    project.agent(code)
    project.config("agent: {name: bot, target: 'agent.py:agent'}\n", target="")
    project.scenarios(SUITE)
    done = project.call("validate")
    done.refuses("agenteval.yaml:2:20", *facts)
    assert done.out == ""


def test_a_target_that_hangs_at_import_ends_by_a_deadline(project: Project) -> None:
    project.write("hangs.py", "import time\ntry:\n    time.sleep(600)\nexcept Exception:\n    pass\n")
    with pytest.raises(AuthorError, match=r"ImportTimeout: .* 0.2 s \(hangs.py:3, in <mod"):
        import_target("hangs.py:agent", str(project.root), what="agent 'bot'", timeout_s=0.2)


FAILS = """
def make_dict(): return {'model': 'm'}
def asks(q: str): return {'tool_calls': [{'function': {'name': 't', 'arguments': '{}'}}]}
def upper(x): return x.upper()
def pieces(message):
    yield {'delta': 'It '}
    yield {'delta': 'is.'}
"""
FAIL_FACTS = {
    "make_dict": ("make_dict()", "dict"),
    "asks": ("`messages`",),
    "upper": ("'list'", "'upper'", "(agent.py:3, in upper)"),
    "pieces": ("2 mappings", "'delta'", "yield"),
}


def test_an_agent_that_breaks_on_what_it_gets_or_makes_fails(project: Project) -> None:
    project.agent(FAILS)
    tools = "turns: [one, two], checks: none, tools: {t: {returns: 1}}"
    write_suite(project, FAIL_FACTS.keys(), dict.fromkeys(FAIL_FACTS, tools))
    assert project.run().code == 1
    for name, facts in FAIL_FACTS.items():
        sample = project.sample(name)
        assert sample["stop"] == "agent_error"
        assert all(fact in sample["turns"][0]["error"] for fact in facts), sample["turns"][0]["error"]


def test_what_makes_an_object_that_is_not_called_is_the_authors_mistake(project: Project) -> None:
    project.agent("class Bot:\n    def ask(self, q): return 'Hi'\ndef agent() -> Bot: return Bot()")
    project.config()
    project.scenarios(SUITE)
    done = project.run()
    assert done.code == 2, done.all
    assert all(fact in done.err for fact in ("agent()", "__call__", "return Bot(…).chat")), done.err
    project.agent("class Bot:\n    def ask(self, q): return 'Hi'\ndef agent() -> Bot: return Bot().ask")
    assert project.run().code != 2


FORGETFUL = """
def forgets(question): return 'hi'
def forgets_once(question): return 'hi'
def by_session(question, session_id): return 'hi'
def by_messages(messages): return 'hi'
class made:
    def __call__(self, q: str): return 'hi'
"""


@pytest.mark.parametrize("where", PLACES)
def test_a_function_that_forgets_is_warned_of_once(project: Project, where: str) -> None:
    agents = {
        name: f"target: 'agent.py:{name}'{where}" for name in ("forgets", "by_session", "by_messages", "made")
    }
    agents["single"] = f"target: 'agent.py:forgets_once'{where}"
    if where:
        agents["fresh"] = f"target: 'agent.py:forgets'{where}, keep: false"
    scenarios = dict.fromkeys(agents, "turns: [x, y], checks: none") | {"single": "turns: [x], checks: none"}
    project.agent(FORGETFUL)
    write_suite(project, agents, scenarios)
    done = project.run("--epochs", "2", "--concurrency", "2")
    assert done.code == 0, done.all
    (warning,) = warnings_of(done)
    assert all(fact in warning for fact in ("forgets", "`messages`", "`interpreter`", "`keep: false`"))


SHARED = """
import threading, time
class Bot:
    def __init__(self):
        self.lock = threading.Lock()
        self.seen = []
    def ask(self, q: str):
        self.seen.append(q)
        time.sleep(0.02)
        return " ".join(self.seen)
agent = Bot().ask
"""
FOUR = "scenarios:\n" + "".join(f"- {{id: s{n}, turns: [{n}a, {n}b], checks: none}}\n" for n in range(4))


@pytest.mark.parametrize("where", PLACES)
def test_an_uncopyable_object_plays_one_conversation_at_a_time(project: Project, where: str) -> None:
    """In processes of its own, each conversation has one."""
    project.agent(SHARED)
    project.config(f"agent: {{name: bot, target: 'agent.py:agent'{where}}}\n", target="")
    project.scenarios(FOUR)
    done = project.run("--concurrency", "4")
    assert done.err.count("Bot.ask") == (0 if where else 1), done.err
    answers = [
        [turn["agent"] for turn in each["samples"][0]["turns"]] for each in project.results()["scenarios"]
    ]
    if where:
        assert answers == [[f"{n}a", f"{n}a {n}b"] for n in range(4)]
    else:
        seen = max((text for _, text in answers), key=len).split()
        assert len(seen) == 8
        assert all(seen[at] == seen[at + 1].replace("b", "a") for at in range(0, 8, 2)), seen


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
