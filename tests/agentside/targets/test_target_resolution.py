"""How a target is called: by annotation, then by name; refused where that decides nothing."""

from __future__ import annotations

import functools
import textwrap
from typing import Any

import pytest

from agenteval.agentside.targets.target_resolution import ResolvedTarget, TargetRefusal, resolve_target

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
    "def f(x: 'NotThere'): ...": "messages",
    "def f(query: 'NotThere | None'): ...": "text",
    "def f(query: Any): ...": "text",
    "def f(x: T): ...": "messages",
    # known to a type checker alone
    "def f(text: 'Sequence[NotThere]'): ...": "messages",
    "def f(text: 'abc.NotThere'): ...": "text",
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
    "def f(message: str, history: int = 5): ...": "text",
    "def make_reply(user: str = '', style: str = 'x'): ...\nf = make_reply": "text",
    "async def f(message): yield ''": "text",
    # other kinds of things
    "f = functools.partial(lambda lang, question: '', 'de')": "text",
    "f = functools.partial(lambda question, de: '', de=1)": "text",
    "@decorated\ndef f(question: str): ...": "text",
    "f = lambda question: ''": "text",
    "f = functools.lru_cache(lambda question: '')": "text",
    "f = min": "messages ctx",
    "class f:\n    def __call__(self, question): ...": "text",
    "class B:\n    @staticmethod\n    def run(query): ...\nf = B.run": "text",
    "class B:\n    @classmethod\n    def run(cls, query): ...\nf = B.run": "text",
    "class B:\n    def ask(self, q: str): ...\nclass C(B): ...\nf = Method(C, 'ask')": "text",
    "class B:\n    def _a(self, lang, query): ...\n    ask = functools.partialmethod(_a, 'de')\n"
    "f = Method(B, 'ask')": "text",
    "class B:\n    def __call__(self, q: str): ...\nf = B()": "text",
    "class B:\n    def other(self, q: str): ...\nf = B().other": "text",
}
FORMS = (
    "define it with `(messages)`, `(messages, ctx)`, `(message: str)` or `(message, history)`, and give any"
)
REFUSED = {
    "f = 5": "has type int",
    "f = functools": "has type module",
    "def f(): return input()": f"cannot be called with messages and ctx: f() (<string>:12) — {FORMS}",
    "def f() -> str: return input()": "f() ->",
    "def get_answer() -> str: return input()\nf = get_answer": "get_answer() ->",
    "def f(message, user): ...": f"(message, user) (<string>:12): no value is available for user — {FORMS}",
    "f = functools.lru_cache(lambda message, user: '')": "(message, user) (<string>:12): no value is",
    "def f(user_id: str, message: str): ...": "no value is available for user_id",
    "def f(messages, user: str): ...": "no value is available for user",
    "def f(messages, *, user): ...": "no value is available for user",
    "def f(inputs: dict): ...": f"dict accepts neither a string nor a list of message dicts — {FORMS}",
    "def f(messages: dict): ...": "messages: dict accepts neither",
    "def f(messages: list[str]): ...": "list[str] accepts neither",
    "class Q: ...\ndef f(query: Q): ...": "query: Q accepts neither",
    "def f(x: 'no.such | None'): ...": "cannot be evaluated by this Python",
    "class Q: ...\ndef f(messages: list[Q]): ...": "accepts neither",
    "def f(message, history: list[list]): ...": "history: list[list] does not accept a list",
    "def f(history: 'list[tuple[str, str]]'): ...": "does not accept a list of message dicts",
    "def f(message: str, history: list[list[str]] = []): ...": "does not accept a list of message dicts",
    "def f(message: str, history: 'list[tuple] | None' = None): ...": "does not accept a list of",
    "def f(messages: list, history: list[tuple] = ()): ...": "does not accept a list of message dicts",
    "class B:\n    def chat(self, m: str, history: list[list] = []): ...\nf = Method(B, 'chat')": (
        "does not accept a list of message dicts"
    ),
    "class f:\n    def chat(self, m): ...\n    def run(self, m): ...": (
        "the agent has type f, which has no `__call__` method (it has chat, run) — use a method that takes a"
        " message, such as `target: ….chat`"
    ),
    "class B:\n    @staticmethod\n    def ask(q: str): ...\nclass C(B): ...\nf = C()": "has ask",
    "class f: ...": "the agent has type f, which has no `__call__` method — use a method that takes a",
    "class f(Protocol):\n    def __call__(self, q: str): ...": "the agent's class f is abstract",
    "class f:\n    def __init__(self, model): ...\n    def __call__(self, q): ...": (
        "the agent's class cannot be called without arguments: f(model) — give each `__init__` parameter"
    ),
}
HEAD = """
import functools
from collections.abc import Mapping, Sequence
from typing import *
from agenteval.agentside.targets.loading import Method
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
    agent = resolve_target(made(code, head))
    assert isinstance(agent, ResolvedTarget), agent
    roles = [f"{role.kind}{'=' if role.parameter else ''}{role.parameter}" for role in agent.binding.roles]
    assert " ".join(roles) == takes


@pytest.mark.parametrize(("code", "says"), REFUSED.items())
def test_what_is_refused(code: str, says: str) -> None:
    refused = resolve_target(made(code))
    assert isinstance(refused, TargetRefusal), refused
    assert says in " — ".join(refused)


@pytest.mark.parametrize(
    ("code", "is_made"),
    [
        ("def f(m): ...", "function"),
        ("f = functools.lru_cache(lambda question: '')", "function"),
        ("class f:\n    def __call__(self, q): ...", "class"),
        ("class B:\n    def __call__(self, q): ...\nf = B()", "copied"),
        ("class B:\n    def __call__(self, q): ...\nf = B().__call__", "copied"),
        (
            "import threading\nclass B:\n    def __init__(self): self.lock = threading.Lock()\n"
            "    def __call__(self, q): ...\nf = B()",
            "shared",
        ),
        (
            "class B:\n    def __call__(self, q): ...\n    __deepcopy__ = lambda self, _: self\nf = B()",
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
    agent = resolve_target(made(code))
    assert isinstance(agent, ResolvedTarget), agent
    assert agent.lifecycle == is_made


def test_what_is_said_of_it() -> None:
    def told(code: str, target: str = "bot.py:f") -> str:
        agent = resolve_target(made(code))
        assert isinstance(agent, ResolvedTarget)
        return str(agent.to_summary(target)["does"])

    assert told("def f(question): ...") == (
        "bot.py:f, a function, gets the latest user message (it is named question)"
    )
    named = "class B:\n    async def ask(self, q: str, ctx): ...\nf = Method(B, 'ask')"
    assert told(named, "bot.py:B.ask") == (
        "bot.py:B.ask, a new instance for each conversation, gets the latest user message and ctx (q: str)"
    )
    assert (
        told("def f(m): ...")
        == "bot.py:f, a function, gets the messages so far (the default: m has no known name or type)"
    )


def test_wrapped_functions_tell_their_own_annotations() -> None:
    def outer(*args: Any) -> None: ...

    inner = made("def f(x: 'str'): ...")
    agent = resolve_target(functools.wraps(inner)(outer))
    assert isinstance(agent, ResolvedTarget)
    assert agent.received_roles == {"text"}
