"""How a target is called: by annotation, then by name; refused where that decides nothing."""

from __future__ import annotations

import functools
import textwrap
from typing import Any

import pytest

from agenteval.agentside.targets.deciding import Agent, Refusal, decide

TEXTS = ("question", "message", "user_message", "user_input", "prompt", "input", "text", "query", "input_")
LISTS = ("messages", "history", "conversation", "chat_history", "m")
TAKES = {
    # by annotation
    "def f(x: str): ...": "text",
    "def f(x: 'str'): ...": "text",
    "def f(x: Optional[str]): ...": "text",
    "def f(x: str | None): ...": "text",
    "def f(x: Annotated[str, 'what the user said']): ...": "text",
    "def f(x: NewType('Question', str)): ...": "text",
    "def f(message: list): ...": "messages",
    "def f(question: list[dict]): ...": "messages",
    "def f(text: 'List[Dict[str, str]]'): ...": "messages",
    "def f(input: Sequence[Mapping[str, Any]]): ...": "messages",
    "def f(input: str | list[dict]): ...": "messages",
    "def f(messages: dict): ...": "messages",
    "def f(x: 'NotThere'): ...": "messages",
    "def f(query: 'NotThere | None'): ...": "text",
    "def f(query: Any): ...": "text",
    "def f(x: T): ...": "messages",
    # by name
    **{f"def f({name}): ...": "text" for name in TEXTS},
    **{f"def f({name}): ...": "messages" for name in LISTS},
    # what else it takes
    "def f(m, c): ...": "messages ctx",
    "def f(question: str, ctx): ...": "text ctx",
    "def f(message, history): ...": "text history",
    "def f(m, history): ...": "text history",
    "def f(message, history: list[dict] = []): ...": "text history",
    "def f(messages, history=None): ...": "messages",
    "def f(history, ctx): ...": "messages ctx",
    "def f(message, session_id='default'): ...": "text session",
    "def f(thread_id: str, message: str): ...": "session text",
    "def f(question: str, top_k: int = 5): ...": "text",
    "def f(question: str, top_k=5, ctx=None): ...": "text ctx=ctx",
    "def f(*, message, session_id): ...": "text=message session=session_id",
    "def f(messages, *, ctx): ...": "messages ctx=ctx",
    "def f(messages=None): ...": "messages",
    "def f(*args): ...": "messages ctx",
    "def f(message: str, **options): ...": "text",
    "async def f(message): yield ''": "text",
    # other kinds of things
    "f = functools.partial(lambda lang, question: '', 'de')": "text",
    "f = functools.partial(lambda question, de: '', de=1)": "text",
    "@decorated\ndef f(question: str): ...": "text",
    "f = lambda question: ''": "text",
    "f = functools.lru_cache(lambda question: '')": "text",
    "f = min": "messages ctx",
    "class f:\n    def __call__(self, question): ...": "text",
    "class f:\n    def ask(self, q: str): ...": "text",
    "class f:\n    @staticmethod\n    def run(query): ...": "text",
    "class f:\n    @classmethod\n    def run(cls, query): ...": "text",
    "class B:\n    def ask(self, q: str): ...\nclass f(B): ...": "text",
    "class f:\n    def _a(self, lang, query): ...\n    ask = functools.partialmethod(_a, 'de')": "text",
    "class f:\n    run = property()\n    def ask(self, q: str): ...": "text",
    "class B:\n    def ask(self, q: str): ...\nf = B()": "text",
    "class B:\n    def other(self, q: str): ...\nf = B().other": "text",
}
REFUSED = {
    "f = 5": "the agent is a int; expected a function or a class",
    "f = functools": "the agent is a module",
    "def f(): return input()": "f()",
    "def f(message, user): ...": "nothing to pass as user — give user a default, or name a function of mess",
    "def f(user_id: str, message: str): ...": "nothing to pass as user_id",
    "def f(messages, user: str): ...": "nothing to pass as user",
    "def f(inputs: dict): ...": "inputs is annotated dict",
    "class Q: ...\ndef f(query: Q): ...": "query is annotated Q: agenteval has texts and lists of messages",
    "class f:\n    def chat(self, m): ...\n    def run(self, m): ...": (
        "the agent f has chat and run: which of them takes a message? — write target: ….chat or ….run"
    ),
    "class f:\n    def talk(self, m): ...": "it has talk — write target: ….talk",
    "class f: ...": "has no __call__",
    "class f(Protocol):\n    def ask(self, q: str): ...": "the agent's class f is abstract",
    "class f:\n    def __init__(self, model): ...\n    def ask(self, q): ...": (
        "the agent's class is called without arguments, and cannot be: f(model) — give each parameter"
    ),
}
HEAD = """
import functools
from collections.abc import Mapping, Sequence
from typing import *
T = TypeVar("T")
def decorated(inner):
    @functools.wraps(inner)
    def outer(*args, **kwargs):
        return inner(*args, **kwargs)
    return outer
"""


def made(code: str, head: str = HEAD) -> Any:
    names: dict[str, Any] = {"__name__": "bot"}
    exec(head + textwrap.dedent(code), names)
    return names["f"]


@pytest.mark.parametrize("head", [HEAD, "from __future__ import annotations\n" + HEAD], ids=["now", "later"])
@pytest.mark.parametrize(("code", "takes"), TAKES.items())
def test_what_is_passed(code: str, takes: str, head: str) -> None:
    agent = decide(made(code, head))
    assert isinstance(agent, Agent), agent
    roles = [f"{role.kind}{'=' if role.parameter else ''}{role.parameter}" for role in agent.takes.roles]
    assert " ".join(roles) == takes


@pytest.mark.parametrize(("code", "says"), REFUSED.items())
def test_what_is_refused(code: str, says: str) -> None:
    refused = decide(made(code))
    assert isinstance(refused, Refusal), refused
    assert says in " — ".join(refused)


@pytest.mark.parametrize(
    ("code", "is_made"),
    [
        ("def f(m): ...", "function"),
        ("f = functools.lru_cache(lambda question: '')", "function"),
        ("class f:\n    def ask(self, q): ...", "class"),
        ("class B:\n    def ask(self, q): ...\nf = B()", "copied"),
        ("class B:\n    def ask(self, q): ...\nf = B().ask", "copied"),
        (
            "import threading\nclass B:\n    def __init__(self): self.lock = threading.Lock()\n"
            "    def ask(self, q): ...\nf = B()",
            "shared",
        ),
        (
            "class B:\n    def ask(self, q): ...\n    __deepcopy__ = lambda self, _: self\nf = B()",
            "shared",
        ),
        ("def make_bot(): ...\nf = make_bot", "factory"),
        ("class B: ...\ndef f() -> B: ...", "factory"),
        ("class B: ...\ndef make(model: str = 'm') -> B: ...\nf = make", "factory"),
        ("class B: ...\ndef make(message: str = '') -> B: ...\nf = make", "function"),
        ("def make(model: str = 'm') -> str: ...\nf = make", "function"),
        ("class B: ...\ndef respond(model: str = 'm') -> B: ...\nf = respond", "function"),
    ],
)
def test_where_its_state_is(code: str, is_made: str) -> None:
    agent = decide(made(code))
    assert isinstance(agent, Agent), agent
    assert agent.made == is_made


def test_what_is_said_of_it() -> None:
    def told(code: str, target: str = "bot.py:f") -> str:
        agent = decide(made(code))
        assert isinstance(agent, Agent)
        return str(agent.described(target)["does"])

    assert told("def f(question): ...") == (
        "bot.py:f, a function, gets the latest user message (it is named question)"
    )
    chosen = "class f:\n    async def ask(self, q: str, ctx): ..."
    assert told(chosen) == told(chosen, "bot.py:f.ask")
    assert told(chosen) == (
        "bot.py:f.ask, made anew for each conversation, gets the latest user message and ctx (q: str)"
    )
    assert told("def f(m): ...") == "bot.py:f, a function, gets the messages so far (nothing says what m is)"


def test_wrapped_functions_tell_their_own_annotations() -> None:
    def outer(*args: Any) -> None: ...

    inner = made("def f(x: 'str'): ...")
    agent = decide(functools.wraps(inner)(outer))
    assert isinstance(agent, Agent)
    assert agent.gets == {"text"}
