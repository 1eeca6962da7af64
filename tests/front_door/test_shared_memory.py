"""An object of a framework that remembers, and that a function around it hands from one conversation to the
next: they are played one at a time, with a warning; in a process each, or made anew, they share nothing."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.suites import warnings_of
from tests.support.toy import install_toy

SUITE = """
defaults: {epochs: 2}
scenarios:
- id: a
  turns: [one, {user: two, expect: {output: {matches: "^asked so far: one, two$"}}}]
- id: b
  turns: [other]
  checks: none
"""
SHARED = """
from toy import Remembers

assistant = Remembers()

def agent(message: str) -> str:
    return assistant.ask(message)
"""
FORMS = {
    "a function": SHARED,
    "messages": SHARED.replace("message: str", "messages").replace(
        "ask(message)", "ask(messages[-1]['content'])"
    ),
    "a session": SHARED.replace("message: str", "message: str, session_id: str"),
    "below": SHARED.replace("def agent", "def ask").replace(
        "assistant.ask(message)", "BOTS['shop'].ask(message)"
    )
    + "\nBOTS = {'shop': assistant}\n\nasync def agent(messages):\n    return ask(messages[-1]['content'])\n",
    "a closure": """
from toy import Remembers

def made():
    assistant = Remembers()
    return lambda message: assistant.ask(message)

agent = made()
""",
    "a class": """
from toy import Remembers

assistant = Remembers()

class agent:
    def __call__(self, message: str) -> str:
        return assistant.ask(message)
""",
    "imported late": """
import shop

def agent(message: str) -> str:
    from shop import assistant as bot
    return bot.ask(message) if message else shop.other
""",
}
FRESH = {
    "a factory": """
from toy import Remembers

def make_agent():
    assistant = Remembers()
    return lambda message: assistant.ask(message)
""",
    "in init": """
from toy import Remembers

class agent:
    def __init__(self):
        self.assistant = Remembers()

    def __call__(self, message: str) -> str:
        return self.assistant.ask(message)
""",
}


def bot(project: Project, agent: str, more: str = "", target: str = "agent") -> None:
    install_toy(project)
    project.write("shop.py", "from toy import Remembers\n\nassistant = Remembers()\nother = 'x'\n")
    project.agent(agent)
    project.scenarios(SUITE)
    config = f"agent: {{name: bot, target: 'agent.py:{target}'{more}}}\nagent_concurrency: 4\n"
    project.config(config, target="")


@pytest.mark.parametrize("form", FORMS)
def test_an_object_that_remembers_is_played_one_at_a_time(project: Project, form: str) -> None:
    bot(project, FORMS[form])
    (described,) = [line for line in project.call("validate").out.splitlines() if line.startswith("  bot: ")]
    assert "one at a time" in described
    done = project.run()
    assert done.code == 1, done.all
    (warning,) = warnings_of(done)
    assert all(fact in warning for fact in ("Remembers", "`def make_agent(): return Remembers(…)`")), warning
    scenarios = project.results()["scenarios"]
    assert {(1, "output.matches")} in [failed_checks(each) for each in scenarios[0]["samples"]]
    asked = [
        turn["agent"].removeprefix("asked so far: ").split(", ")
        for each in scenarios
        for sample in each["samples"]
        for turn in sample["turns"]
    ]
    whole = max(asked, key=len)
    assert len(whole) == 6  # the turns of a conversation follow each other
    assert [whole[at + 1] for at, text in enumerate(whole) if text == "one"] == ["two", "two"]


NOT_REACHED = """
from toy import Remembers

assistant = Remembers()

class Shop:
    assistant = None

def agent(messages):
    kind = Remembers.__name__
    return f"asked so far: one, two{Shop.assistant or ''}{kind[:0]}"
"""


@pytest.mark.parametrize(
    ("agent", "more", "target"),
    [
        (FRESH["a factory"], "", "make_agent"),
        (FRESH["in init"], "", "agent"),
        (FORMS["a function"], f", interpreter: '{sys.executable}'", "agent"),
        (NOT_REACHED, "", "agent"),
    ],
    ids=["a factory", "made in __init__", "a process for each conversation", "an object that is not reached"],
)
def test_conversations_that_share_nothing_are_not_warned_of(
    project: Project, agent: str, more: str, target: str
) -> None:
    bot(project, agent, more, target)
    done = project.run()
    assert done.code == 0, done.all
    assert warnings_of(done) == []
