"""The agent of a new project: the one its author names, or the likeliest that is found; and questions."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from agenteval.cli.new_project import agent_selection as module
from agenteval.cli.new_project.agent_choice import AgentChoice
from agenteval.cli.new_project.agent_selection import Questions, choose_agent
from agenteval.core.errors import AuthorError, Problem


class Terminal(io.StringIO):
    def __init__(self, *lines: str, is_terminal: bool = True) -> None:
        super().__init__("".join(f"{line}\n" for line in lines))
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


Answer = Callable[..., Questions]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Questions to somebody who gives these answers, and no more."""

    def questions(*lines: str) -> Questions:
        monkeypatch.setattr(sys, "stdin", Terminal(*lines))
        return Questions(assumes_yes=False)

    return questions


ASK_NOBODY = Questions(assumes_yes=True)


def even(answer: str) -> int:
    if not answer.isdigit() or int(answer) % 2:
        raise AuthorError(Problem(f"'{answer}' is odd", "enter 2"))
    return int(answer)


# ── questions ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stdin", "assumes_yes", "asked"),
    [
        (Terminal(), False, True),
        (Terminal(), True, False),
        (Terminal(is_terminal=False), False, False),
        (None, False, False),
    ],
)
def test_questions_need_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stdin: Any, assumes_yes: bool, asked: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert Questions(assumes_yes=assumes_yes).are_asked is asked


@pytest.mark.parametrize(
    ("lines", "expected"), [(["4"], 4), ([" 4 "], 4), ([""], 2), (["1", "4"], 4), (["1", "x", "4"], 4)]
)
def test_a_question_is_asked_three_times(answers: Answer, lines: list[str], expected: int) -> None:
    assert answers(*lines).ask("Which?", "2", even) == expected


def test_the_third_wrong_answer_is_the_last(answers: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AuthorError) as error:
        answers("1", "3", "5", "4").ask("Which?", "2", even)
    assert "'5'" in str(error.value)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("Which? [2]") == 3
    assert ("'1'" in said.err, "'3'" in said.err, "'5'" in said.err) == (True, True, False)


def test_where_nobody_is_asked_the_default_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert ASK_NOBODY.ask("Which?", "2", even) == 2
    with pytest.raises(AuthorError):
        ASK_NOBODY.ask("Which?", "1", even)
    assert ASK_NOBODY.choose("Which?", ["a", "b"], str) == "a"
    assert ASK_NOBODY.agree("Really?")
    assert not ASK_NOBODY.agree("Really?", unasked=False)
    assert capsys.readouterr() == ("", "")


def test_no_answer_ends_the_command(answers: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(typer.Exit) as ended:
        answers().ask("Which?", "2", even)
    assert ended.value.exit_code == 130
    for error in (KeyboardInterrupt(), UnicodeDecodeError("utf-8", b"", 0, 1, "x")):

        def readline(error: BaseException = error) -> str:
            raise error

        questions = answers()
        monkeypatch.setattr(sys.stdin, "readline", readline)
        with pytest.raises(typer.Exit):
            questions.ask("Which?", "", even)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(["1"], "a"), (["2"], "b"), ([""], "b"), (["other"], "<other>"), (["3", "0", "2"], "b")],
)
def test_a_choice_by_number_or_by_words(
    answers: Answer, capsys: pytest.CaptureFixture[str], lines: list[str], expected: str
) -> None:
    found = answers(*lines).choose("Which?", ["a", "b"], lambda answer: f"<{answer}>", "2")
    assert found == expected
    shown = [line.split() for line in capsys.readouterr().err.splitlines() if line.startswith("  ")]
    assert shown == [["1", "a"], ["2", "b"]]


@pytest.mark.parametrize(("options", "fact"), [(["a", "b"], "1 to 2"), ([], "FILE.py:NAME")])
def test_a_number_that_is_no_option(answers: Answer, options: list[str], fact: str) -> None:
    with pytest.raises(AuthorError) as error:
        answers("3", "3", "3").choose("Which?", options, str)
    assert "3" in str(error.value)
    assert fact in str(error.value)


@pytest.mark.parametrize(
    ("lines", "agrees"),
    [
        (["y"], True),
        (["YES"], True),
        ([""], True),
        (["n"], False),
        (["No"], False),
        (["maybe", "n"], False),
        (["yesterday", "y"], True),
    ],
)
def test_agreement(answers: Answer, lines: list[str], agrees: bool) -> None:
    assert answers(*lines).agree("Really?", unasked=not agrees) is agrees


# ── an agent that is named ───────────────────────────────────────────────────────────────────────

OBJECT = "from pydantic_ai import Agent\nbot = Agent('m')\n"
FUNCTION = "def answer(question):\n    return question\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which each program is installed, and no service answers."""
    monkeypatch.setattr(module, "program_of", lambda words, _: words)
    monkeypatch.setattr(module, "probe_endpoint", lambda url: AgentChoice({"endpoint": url}, url))
    monkeypatch.setattr(module, "local_endpoints", lambda _: iter(()))
    return tmp_path


def choose(root: Path, agent: str | None = None, questions: Questions = ASK_NOBODY) -> AgentChoice:
    return choose_agent(agent, root, root, questions)


@pytest.mark.parametrize(
    ("agent", "keys"),
    [
        ("http://x/chat", {"endpoint": "http://x/chat"}),
        ("https://x", {"endpoint": "https://x"}),
        ("localhost:8123", {"endpoint": "http://localhost:8123"}),
        ("127.0.0.1:8123/chat", {"endpoint": "http://127.0.0.1:8123/chat"}),
        ("my-host.example:80", {"endpoint": "http://my-host.example:80"}),
        ("bot.py:answer", {"target": "bot.py:answer"}),
        ("bot.py:other", {"target": "bot.py:other"}),
        ("bot.py:other.deep", {"target": "bot.py:other.deep"}),
        ("bot.py", {"target": "bot.py:answer"}),
        ("./bot.py", {"target": "bot.py:answer"}),
        ("shop.agents:bot", {"target": "shop.agents:bot"}),
        ("module:bot", {"target": "module:bot"}),
        ("node bot.js --x", {"command": {"run": ["node", "bot.js", "--x", "${message}"]}}),
        ("'my bot' x", {"command": {"run": ["my bot", "x", "${message}"]}}),
        ("gone.py", {"command": {"run": ["gone.py", "${message}"]}}),
    ],
)
def test_what_an_author_may_name(root: Path, agent: str, keys: dict[str, Any]) -> None:
    write(root, {"bot.py": f"{FUNCTION}other = 1\n"})
    choice = choose(root, agent)
    assert choice.keys == keys
    assert choice.words == tuple(keys["command"]["run"][:-1] if "command" in keys else ())


def test_what_is_known_of_a_named_agent_is_kept(root: Path) -> None:
    write(root, {"bot.py": OBJECT})
    choice = choose(root, "bot.py:bot")
    assert (choice.is_object, choice.label) == (True, "bot.py:bot, Pydantic AI")
    assert choose(root, "bot.py:Agent").label == "bot.py:Agent"


@pytest.mark.parametrize(
    ("agent", "facts"),
    [
        ("gone.py:bot", ["gone.py"]),
        ("bott.py:bot", ["bott.py", "bot.py"]),
        ("bot.py:answr", ["bot.py", "'answr'", "answer"]),
        ("bot.py:answr.deep", ["'answr'"]),
        ("empty.py", ["empty.py", "empty.py:NAME", "python empty.py"]),
        ("echo 'x", ["echo 'x"]),
        (f"{'x' * 300}.py:bot", ["xxx.py"]),
        ("", ["FILE.py:NAME"]),
        ("  ", ["FILE.py:NAME"]),
    ],
)
def test_what_is_not_there_is_refused(root: Path, agent: str, facts: list[str]) -> None:
    write(root, {"bot.py": FUNCTION, "empty.py": ""})
    with pytest.raises(AuthorError) as error:
        choose(root, agent)
    for fact in facts:
        assert fact in str(error.value)


def test_names_that_only_running_tells_are_accepted(root: Path) -> None:
    write(root, {"bot.py": "from x import *\n", "broken.py": "def (\n"})
    assert choose(root, "bot.py:any").keys == {"target": "bot.py:any"}
    assert choose(root, "broken.py:any").keys == {"target": "broken.py:any"}


# ── an agent that is found ───────────────────────────────────────────────────────────────────────

SERVER = "import flask\n"
NODE = {"package.json": '{"main": "bot.js"}', "bot.js": ""}
STARTER = {"target": "my_agent.py:agent"}


@pytest.mark.parametrize(
    ("files", "keys", "others"),
    [
        ({"bot.py": FUNCTION}, {"target": "bot.py:answer"}, []),
        ({"bot.py": FUNCTION, "b.py": OBJECT}, {"target": "b.py:bot"}, ["bot.py:answer"]),
        (NODE, {"command": {"run": ["node", "bot.js", "${message}"]}}, []),
        ({"bot.py": FUNCTION, **NODE}, {"target": "bot.py:answer"}, ["node bot.js"]),
        ({}, STARTER, []),
        ({"app.py": SERVER, "bot.py": OBJECT}, {"target": "bot.py:bot"}, []),
    ],
)
def test_the_likeliest_is_taken_and_the_others_are_named(
    root: Path, files: dict[str, str], keys: dict[str, Any], others: list[str]
) -> None:
    write(root, files)
    choice = choose(root)
    assert choice.keys == keys
    assert [other.partition(",")[0] for other in choice.others] == others
    assert choice.is_starter is (keys is STARTER)


def test_at_most_nine_are_named(root: Path) -> None:
    write(root, {f"b{n:02}.py": FUNCTION for n in range(12)})
    choice = choose(root)
    assert choice.keys == {"target": "b00.py:answer"}
    assert len(choice.others) == 8


@pytest.mark.parametrize(
    ("code", "has_environment", "interpreter"),
    [
        (OBJECT, True, True),
        (OBJECT, False, False),
        (FUNCTION, True, False),
        (f"import no_such_package\n{FUNCTION}", True, True),
        (f"import no_such_package\n{FUNCTION}", False, False),
    ],
)
def test_the_environment_of_the_project(
    root: Path, code: str, has_environment: bool, interpreter: bool
) -> None:
    write(root, {"bot.py": code, **({".venv/bin/python": ""} if has_environment else {})})
    expected = {"interpreter": ".venv/bin/python"} if interpreter else {}
    keys = choose(root).keys
    assert {key: value for key, value in keys.items() if key != "target"} == expected
    assert choose(root, keys["target"]).keys == keys


def endpoints(*ports: int) -> Callable[[Sequence[int]], list[AgentChoice]]:
    return lambda _: [AgentChoice({"endpoint": f"http://localhost:{port}/x"}, f"x:{port}") for port in ports]


def test_a_service_that_answers_comes_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "local_endpoints", endpoints(8001, 8002))
    write(root, {"bot.py": FUNCTION})
    assert choose(root).keys == {"target": "bot.py:answer"}  # this project is no service
    write(root, {"app.py": SERVER, "b.py": OBJECT})
    choice = choose(root)
    assert choice.keys == {"endpoint": "http://localhost:8001/x"}
    assert [other.partition(",")[0] for other in choice.others] == ["x:8002", "b.py:bot", "bot.py:answer"]


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        (
            {"app.py": f"{SERVER}port = 8123\n"},
            ["app.py imports flask", "localhost:8123", "http://localhost:8123/PATH"],
        ),
        ({"app.py": SERVER, "bot.py": FUNCTION}, ["localhost:8000", "bot.py:answer"]),
        ({"package.json": '{"dependencies": {"express": "1"}}'}, ["express"]),
    ],
)
def test_a_part_of_a_silent_service_is_no_substitute(
    root: Path, files: dict[str, str], facts: list[str]
) -> None:
    write(root, files)
    with pytest.raises(AuthorError) as error:
        choose(root)
    for fact in facts:
        assert fact in str(error.value)


def test_somebody_may_say_which_part_of_a_silent_service(
    root: Path, answers: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, {"app.py": SERVER, "bot.py": FUNCTION})
    choice = choose(root, None, answers("", "1"))  # there is no default
    assert choice.keys == {"target": "bot.py:answer"}
    assert "flask" in capsys.readouterr().err
    assert choose(root, None, answers("localhost:9")).keys == {"endpoint": "http://localhost:9"}


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["2"], {"target": "b.py:answer"}),
        ([""], {"target": "a.py:answer"}),
        (["http://x"], {"endpoint": "http://x"}),
        (["7", "gone.py:x", "2"], {"target": "b.py:answer"}),
    ],
)
def test_somebody_chooses_among_several(
    root: Path, answers: Answer, lines: list[str], keys: dict[str, Any]
) -> None:
    write(root, {"a.py": FUNCTION, "b.py": FUNCTION})
    choice = choose(root, None, answers(*lines))
    assert (choice.keys, choice.others) == (keys, ())


@pytest.mark.parametrize(
    ("lines", "keys"), [([""], STARTER), (["new"], STARTER), (["http://x"], {"endpoint": "http://x"})]
)
def test_nothing_is_found(root: Path, answers: Answer, lines: list[str], keys: dict[str, Any]) -> None:
    choice = choose(root, None, answers(*lines))
    assert (choice.keys, choice.is_starter) == (keys, keys is STARTER)


def test_a_file_is_not_taken_for_a_new_agent(root: Path) -> None:
    write(root, {"my_agent.py": ""})
    with pytest.raises(AuthorError) as error:
        choose(root)
    assert "my_agent.py" in str(error.value)
    assert "--agent" in str(error.value)


# ── what cannot be found out ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "keys", "is_guess"),
    [
        ("1", {"command": {"run": ["echo", "${message}"]}}, True),
        ("2", {"command": ["echo"]}, False),
        ("3", {"command": {"run": ["echo", "${message}"]}}, False),
        ("4", {"command": {"run": ["echo"]}}, False),
        ("", {"command": {"run": ["echo", "${message}"]}}, True),
    ],
)
def test_how_a_program_is_asked(
    root: Path, answers: Answer, line: str, keys: dict[str, Any], is_guess: bool
) -> None:
    choice = choose(root, "echo", answers(line))
    assert (choice.keys, bool(choice.words)) == (keys, is_guess)


def test_a_way_to_ask_that_does_not_exist(root: Path, answers: Answer) -> None:
    with pytest.raises(AuthorError) as error:
        choose(root, "echo", answers("5", "stdin", "json"))
    assert "'json'" in str(error.value)
    assert "1 to 4" in str(error.value)


REQUEST, REPLY = {"message": "${message}"}, {"text": "reply"}


@pytest.mark.parametrize(
    ("is_open", "request_", "lines", "expected", "has_note"),
    [
        (True, REQUEST, ["q", "a.b"], {"request": {"q": "${message}"}, "reply": {"text": "a.b"}}, False),
        (True, REQUEST, ["", ""], {"request": REQUEST, "reply": REPLY}, False),
        (
            True,
            {**REQUEST, "m": 1},
            ["q", ""],
            {"request": {"q": "${message}", "m": 1}, "reply": REPLY},
            True,
        ),
        (False, REQUEST, [], {"request": REQUEST, "reply": REPLY}, True),
    ],
)
def test_the_keys_of_a_service_that_describes_nothing(
    root: Path,
    answers: Answer,
    monkeypatch: pytest.MonkeyPatch,
    is_open: bool,
    request_: dict[str, Any],
    lines: list[str],
    expected: dict[str, Any],
    has_note: bool,
) -> None:
    def probe(url: str) -> AgentChoice:
        return AgentChoice(
            {"endpoint": url, "request": request_, "reply": REPLY}, url, "note", is_open=is_open
        )

    monkeypatch.setattr(module, "probe_endpoint", probe)
    choice = choose(root, "http://x", answers(*lines))
    assert choice.keys == {"endpoint": "http://x", **expected}
    assert choice.note == ("note" if has_note else "")
    unasked = choose(root, "http://x")
    assert (unasked.keys["request"], unasked.note) == (request_, "note")
