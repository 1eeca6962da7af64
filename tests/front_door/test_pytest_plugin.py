"""Scenarios as items of pytest: what is collected and played, by how many processes, and how items end."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.kit import Project, environment
from tests.support.patience import HANG_S

AGENT = """
import os
import signal
from pathlib import Path

HERE = Path(__file__).parent


def agent(messages):
    said = messages[-1]["content"]
    with (HERE / "plays.txt").open("a") as file:
        file.write(f"{os.getpid()} {said}\\n")
    if said == "crash" and not (HERE / "crashed").exists():
        (HERE / "crashed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if said == "down":
        raise ConnectionError("nobody there")
    return f"Hello, you said {said}."
"""
SUITE = """
scenarios:
  - {id: greet, tags: [smoke], turns: [Hi], expect: {output: {contains: Hello}}}
  - id: refuse
    turns: [No]
    expect: {output: {contains: sorry}}
  - {id: thrice, epochs: 3, turns: [Again], expect: {output: {contains: Hello}}}
"""
A, B = "scenarios/a.yaml", "scenarios/b.yaml"
GATES = "agenteval.yaml::gates"


@dataclass(frozen=True)
class Session:
    """A finished session of pytest."""

    code: int
    out: str
    items: dict[str, str]
    """How each item ended, by its id: passed, failed, error or skipped."""
    plays: Counter[str]
    """How many turns each process played."""


def pytest_in(project: Project, *arguments: str, **env: str) -> Session:
    plays = project.root / "plays.txt"
    plays.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--junitxml=junit.xml",
        "-o",
        "junit_family=xunit1",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=project.root, env=environment(env), capture_output=True, text=True, timeout=HANG_S
    )
    played = plays.read_text().split("\n") if plays.exists() else []
    return Session(
        done.returncode,
        done.stdout + done.stderr,
        dict(read_items(project.root / "junit.xml")),
        Counter(line.split()[0] for line in played if line),
    )


def read_items(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    found = []
    for case in ElementTree.parse(path).iter("testcase"):
        ends = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        word = {"failure": "failed"}.get(ends[0], ends[0]) if ends else "passed"
        found.append((f"{case.get('file')}::{case.get('name')}", word))
    path.unlink()
    return found


@pytest.fixture
def suite(project: Project) -> Project:
    project.config()
    project.agent(AGENT)
    project.scenarios(SUITE, A)
    project.scenarios("id: other\nturns: [Ho]\nexpect: {output: {contains: Hello}}\n", B)
    project.write("tests/test_unit.py", "def test_one(): pass\n")
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\naddopts = --strict-markers\n")
    return project


UNIT = {"tests/test_unit.py::test_one": "passed"}
WHOLE = {
    **UNIT,
    f"{A}::greet": "passed",
    f"{A}::refuse": "failed",
    f"{A}::thrice": "passed",
    f"{B}::other": "passed",
    GATES: "passed",
}


@pytest.mark.parametrize(
    ("arguments", "items", "turns"),
    [
        ([], UNIT, 0),
        (["--agenteval"], WHOLE, 6),
        (["-o", "agenteval=true"], WHOLE, 6),
        (["--agenteval", "--collect-only"], {}, 0),
        (["--agenteval", "-k", "greet or other"], {f"{A}::greet": "passed", f"{B}::other": "passed"}, 2),
        (["--agenteval", "-m", "smoke"], {f"{A}::greet": "passed"}, 1),
        (["--agenteval", "-m", "agenteval and not smoke", B], {f"{B}::other": "passed"}, 1),
        (["--agenteval", f"{A}::thrice"], {f"{A}::thrice": "passed"}, 3),
        (
            ["--agenteval", "--agenteval-epochs", "-k", "thrice"],
            {f"{A}::thrice@{epoch}": "passed" for epoch in (1, 2, 3)},
            3,
        ),
        (["--agenteval", "-n", "2"], WHOLE, 6),
        (["--agenteval", "-n", "2", "--dist", "loadfile"], WHOLE, 6),
        (["--agenteval", "-n", "2", "--dist", "worksteal", "-k", "other"], {f"{B}::other": "passed"}, 1),
    ],
    ids=lambda value: " ".join(value) or "plain" if isinstance(value, list) else "",
)
def test_what_is_selected_is_played_once_by_one_process(
    suite: Project, arguments: list[str], items: dict[str, str], turns: int
) -> None:
    done = pytest_in(suite, *arguments)
    assert done.items == items, done.out
    assert done.plays.total() == turns
    assert len(done.plays) <= 1
    assert done.code == ("failed" in items.values())


def test_the_failed_item_says_why_where_and_what_shows_it(suite: Project) -> None:
    done = pytest_in(suite, "--agenteval")
    (run,) = (suite.root / ".agenteval" / "runs").iterdir()
    for fact in ("output.contains", '"sorry"', f"{A}:3", f"agenteval show {run.name} refuse"):
        assert fact in done.out
    assert "Traceback" not in done.out
    assert suite.call("show", run.name, "refuse").code == 0


def test_last_failed_plays_what_failed(suite: Project) -> None:
    pytest_in(suite, "--agenteval")
    done = pytest_in(suite, "--agenteval", "--lf")
    assert done.items == {f"{A}::refuse": "failed"}
    assert done.plays.total() == 1


def test_an_undecided_scenario_is_an_error_with_that_word(suite: Project) -> None:
    suite.scenarios("id: other\nturns: [down]\nexpect: {output: {contains: Hello}}\n", B)
    done = pytest_in(suite, "--agenteval", "-k", "other")
    assert done.items == {f"{B}::other": "error"}
    assert f"INCONCLUSIVE {B}::other" in done.out
    assert "nobody there" in done.out
    assert done.code == 1


def test_the_first_failure_stops_the_run(suite: Project) -> None:
    suite.config("concurrency: 1\nagent_concurrency: 1\n")
    done = pytest_in(suite, "--agenteval", "-x", "scenarios")
    assert done.items == {f"{A}::greet": "passed", f"{A}::refuse": "failed"}
    assert done.code == 1


def test_what_a_gate_tolerates_fails_no_item(suite: Project) -> None:
    suite.config("epochs: 8\ngates: {pass_rate: {at_least: 0.3, reject_below: 0.1}}\n")
    suite.write(
        "agent.py",
        "from itertools import count\nnumber = count()\n\n\n"
        "def agent(messages):\n    return 'Hello' if next(number) else 'Go away'\n",
    )
    suite.scenarios("id: other\nturns: [Ho]\nexpect: {output: {contains: Hello}}\n", A)
    (suite.root / B).unlink()
    assert suite.run().code == 0
    assert suite.results()["scenarios"][0]["statistics"]["successes"] == 7
    done = pytest_in(suite, "--agenteval")
    assert done.items == {**UNIT, f"{A}::other": "passed", GATES: "passed"}
    assert done.code == 0


def test_a_gate_over_the_run_is_an_item_of_its_own_and_never_lost(suite: Project) -> None:
    suite.write(
        "agenteval.yaml",
        "agent: {name: bot, target: 'agent.py:agent', calls: all}\n"
        "metrics: []\ngates: {tool_accuracy: 0.9}\n",
    )
    suite.scenarios("cases:\n  - {id: case, input: Hi, expected_tools: [look_up]}\n", A)
    suite.scenarios("id: other\nturns: [Ho]\nexpect: {output: {contains: Hello}}\n", B)
    whole = pytest_in(suite, "--agenteval", "scenarios")
    assert whole.items == {f"{A}::case": "passed", f"{B}::other": "passed", GATES: "failed"}, whole.out
    part = pytest_in(suite, "--agenteval", "-k", "case")
    assert part.items == {f"{A}::case": "passed"}
    assert part.code == suite.run("-s", "case").code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_crashed_worker_loses_nothing(suite: Project) -> None:
    suite.scenarios("id: other\nturns: [Ho, crash]\nexpect: {output: {contains: Hello}}\n", B)
    done = pytest_in(suite, "--agenteval", "-n", "2", "scenarios")
    assert len(done.plays) == 2
    ends = Counter(done.items.values())
    assert ends["passed"] >= len(WHOLE) - 3  # without the unit test, the failure and what xdist blames
    (run,) = (suite.root / ".agenteval" / "runs").iterdir()
    suite.call("report", run.name, "--report", "json=results.json")
    verdicts = {each["id"]: each["verdict"] for each in suite.results()["scenarios"]}
    assert verdicts == {"greet": "passed", "refuse": "failed", "thrice": "passed", "other": "passed"}


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        (B, "id: other\nturms: [x]\n", f"{B}:2:1"),
        ("agenteval.yaml", "agent: {target: 'agent.py:agnt'}\nmetrics: []\n", "agenteval.yaml:1:9"),
        ("agenteval.yaml", "agnt: {}\n", "agenteval.yaml:1:1"),
    ],
    ids=["scenario", "agent", "configuration"],
)
def test_a_mistake_is_one_message_at_its_place(suite: Project, file: str, text: str, place: str) -> None:
    suite.write(file, text)
    done = pytest_in(suite, "--agenteval")
    assert done.code != 0
    assert place in done.out
    assert "Traceback" not in done.out


def test_a_skipped_scenario_is_a_skipped_item(suite: Project) -> None:
    suite.scenarios("id: other\nskip: no server\nturns: [Ho]\nexpect: {output: {contains: Hello}}\n", B)
    done = pytest_in(suite, "--agenteval", B, "-rs")
    assert done.items == {f"{B}::other": "skipped"}
    assert "no server" in done.out


IN_A_FILE = """
import agenteval
import pytest


@pytest.fixture(scope="session")
def agenteval_agent():
    return lambda messages: "Hello from the fixture"


@pytest.fixture(autouse=True)
def around(record_property):
    record_property("around", "yes")


test_bot = agenteval.scenarios("scenarios/a.yaml")
test_smoke = agenteval.scenarios("scenarios", tags=["smoke"], agent="agent.py:agent")
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_scenarios_in_a_test_file(suite: Project, workers: list[str]) -> None:
    suite.write("tests/test_bot.py", IN_A_FILE)
    done = pytest_in(suite, "tests/test_bot.py", *workers)
    file = "tests/test_bot.py"
    assert done.items == {
        f"{file}::test_bot[greet]": "passed",
        f"{file}::test_bot[refuse]": "failed",
        f"{file}::test_bot[thrice]": "passed",
        f"{file}::test_bot[gates]": "passed",
        f"{file}::test_smoke[greet]": "passed",
        f"{file}::test_smoke[gates]": "passed",
    }
    assert '"Hello from the fixture"' in done.out


def test_the_inert_plugin_imports_nothing_of_the_package() -> None:
    code = (
        "import sys, agenteval.api.pytest_plugin;"
        "print(*(name for name in sys.modules if name.startswith('agenteval')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"agenteval", "agenteval.api", "agenteval.api.pytest_plugin"}


GOOD_OR_BAD = """
import agenteval
import pytest


def good(messages):
    return "Hello"


def bad(messages):
    return "Go away"


@pytest.fixture(params=[good, bad], ids=["good", "bad"], scope="session")
def agenteval_agent(request):
    return request.param


test_bot = agenteval.scenarios("scenarios/b.yaml")
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_each_parameter_of_an_agent_has_a_run_of_its_own(suite: Project, workers: list[str]) -> None:
    suite.write("tests/test_bot.py", GOOD_OR_BAD)
    done = pytest_in(suite, "tests/test_bot.py", *workers)
    file = "tests/test_bot.py::test_bot"
    assert done.items == {
        f"{file}[good-other]": "passed",
        f"{file}[good-gates]": "passed",
        f"{file}[bad-other]": "failed",
        f"{file}[bad-gates]": "passed",
    }
    assert len(list((suite.root / ".agenteval/runs").iterdir())) == 2


FIXTURE = "import pytest\n\n\n@pytest.fixture(scope='session')\ndef agenteval_agent():\n    {}\n"


@pytest.mark.parametrize(
    ("fixture", "agent", "end"),
    [
        ("return lambda messages: 'Hello'", "", "passed"),
        ("return lambda messages: 'Go away'", ", agent='agent.py:agent'", "passed"),
        ("return lambda messages: 'Hello'", ", agent=lambda messages: 'Go away'", "failed"),
        ("pass", "", "error"),
    ],
    ids=["fixture", "target before fixture", "object before fixture", "forgotten return"],
)
def test_which_agent_is_run(suite: Project, fixture: str, agent: str, end: str) -> None:
    suite.write("conftest.py", FIXTURE.format(fixture))
    suite.write(
        "tests/test_bot.py",
        f"import agenteval\n\ntest_bot = agenteval.scenarios('scenarios/b.yaml'{agent})\n",
    )
    done = pytest_in(suite, "tests/test_bot.py", "-k", "other")
    assert done.items == {"tests/test_bot.py::test_bot[other]": end}


def test_a_fixture_is_enough_where_the_configuration_has_no_agent(suite: Project) -> None:
    suite.write("agenteval.yaml", "metrics: []\n")
    file = suite.write(
        "tests/test_bot.py", "import agenteval\n\ntest_bot = agenteval.scenarios('scenarios/b.yaml')\n"
    )
    without = pytest_in(suite, str(file))
    assert set(without.items.values()) == {"error"}
    assert "agenteval_agent" in without.out
    suite.write("conftest.py", FIXTURE.format("return lambda messages: 'Hello'"))
    assert set(pytest_in(suite, str(file)).items.values()) == {"passed"}


def test_a_test_file_belongs_to_the_project_above_it_wherever_pytest_is_run(project: Project) -> None:
    for name, answer in (("good", "Hello"), ("bad", "Go away")):
        part = Project(project.root / name)
        part.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
        part.agent(f"def agent(messages):\n    return {answer!r}\n")
        part.scenarios("id: greet\nturns: [Hi]\nexpect: {output: {contains: Hello}}\n")
        part.write(
            f"tests/test_{name}.py", "import agenteval\n\ntest_bot = agenteval.scenarios('scenarios')\n"
        )
    inside = Project(project.root / "good")
    done = pytest_in(inside, "../bad/tests")
    assert [end for name, end in done.items.items() if "greet" in name] == ["failed"]
    both = pytest_in(project, "good", "bad", "--agenteval")
    assert both.code != 0
    assert Counter(both.items.values())["failed"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--agenteval", "tests"], 5, "no scenario was run"),
        (["-o", "agenteval=true", "tests"], 0, "no scenario was run"),
        (["--agenteval", "-k", "test_one"], 0, ""),
        (["tests"], 0, ""),
    ],
    ids=["flag", "ini", "deselected", "not asked"],
)
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_scenarios_that_were_asked_for_and_are_not_there(
    suite: Project, arguments: list[str], code: int, word: str, workers: list[str]
) -> None:
    done = pytest_in(suite, *arguments, *workers)
    assert done.code == code, done.out
    assert ("no scenario was run" in done.out) == bool(word)
    assert done.plays.total() == 0


def test_the_scenarios_of_another_project_are_named(suite: Project) -> None:
    Project(suite.root / "within").config()
    assert pytest_in(suite, "--agenteval", "-k", "greet", ".").code == 0
    beside = Project(suite.root.parent / "beside")
    beside.config()
    done = pytest_in(suite, "--agenteval", "-k", "greet", ".", "../beside", "--rootdir", ".")
    assert done.code == 5
    assert "beside/agenteval.yaml" in done.out


def test_skipped_scenarios_alone_are_no_pass(suite: Project) -> None:
    suite.scenarios("id: other\nskip: no server\nturns: [Ho]\nchecks: none\n", B)
    (suite.root / A).unlink()
    assert pytest_in(suite, "--agenteval", "scenarios").code == 5
    assert suite.run().code == 5


def test_a_mistake_in_another_file_does_not_stop_the_named_one(suite: Project) -> None:
    suite.scenarios("id: other\nturms: [Ho]\n", B)
    assert pytest_in(suite, "--agenteval", f"{A}::greet").items == {f"{A}::greet": "passed"}
    done = pytest_in(suite, "--agenteval")
    assert f"ERROR {B}" in done.out
    assert f"ERROR {A}" not in done.out


def test_undecided_scenarios_that_the_configuration_lets_pass_are_skipped(suite: Project) -> None:
    suite.config("on_undecided: neutral\n")
    suite.scenarios("id: other\nturns: [down]\nexpect: {output: {contains: Hello}}\n", B)
    done = pytest_in(suite, "--agenteval", "-k", "other")
    assert done.code == suite.run("-s", "other").code == 0
    assert done.items == {f"{B}::other": "skipped"}


@pytest.mark.parametrize(
    ("call", "items"),
    [
        ("agenteval.scenarios(['scenarios/b.yaml'])", ["other", "gates"]),
        ("agenteval.scenarios({'id': 'x', 'turns': ['Hi'], 'checks': 'none'})", ["x", "gates"]),
        ("agenteval.scenarios([{'id': 'x', 'turns': ['Hi'], 'checks': 'none'}])", ["x", "gates"]),
        ("agenteval.scenarios('scenarios/*.yaml', tags=['smoke'])", ["greet", "gates"]),
        ("agenteval.scenarios(tags='smoke')", ["greet", "gates"]),
        ("agenteval.scenarios([])", []),
        ("agenteval.scenarios(tag='smoke')", []),
        ("agenteval.scenarios('nowhere.yaml')", []),
    ],
)
def test_the_arguments_of_scenarios_are_those_of_run(suite: Project, call: str, items: list[str]) -> None:
    suite.write("tests/test_bot.py", f"import agenteval\n\ntest_bot = {call}\n")
    done = pytest_in(suite, "tests/test_bot.py")
    assert done.items.keys() == {f"tests/test_bot.py::test_bot[{name}]" for name in items} or not items
    assert done.code == (0 if items else 2), done.out
    assert "Traceback" not in done.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a process alone")
def test_what_ctrl_c_interrupted_can_be_continued(suite: Project) -> None:
    suite.agent(
        "import os, signal\n\n\n"
        "def agent(messages):\n    os.kill(os.getpid(), signal.SIGINT)\n    import time\n    time.sleep(60)\n"
    )
    done = pytest_in(suite, "--agenteval", "-k", "greet")
    (run,) = (suite.root / ".agenteval/runs").iterdir()
    assert done.code == 2
    assert f"--resume {run.name}" in done.out
    suite.agent(AGENT)
    assert suite.call("run", "--resume", run.name).code in (0, 2)  # the agent's code has changed


@pytest.mark.parametrize("tag", ["skip", "skipif", "xfail", "usefixtures", "filterwarnings", "parametrize"])
def test_a_tag_never_changes_how_a_scenario_is_run(suite: Project, tag: str) -> None:
    suite.write("pytest.ini", "[pytest]\nxfail_strict = true\n")
    suite.scenarios(
        "scenarios:\n"
        f"  - {{id: good, tags: [{tag}], turns: [Hi], expect: {{output: {{contains: Hello}}}}}}\n"
        f"  - {{id: bad, tags: [{tag}], turns: [Hi], expect: {{output: {{contains: sorry}}}}}}\n",
        A,
    )
    suite.write(
        "tests/test_bot.py", "import agenteval\n\ntest_bot = agenteval.scenarios('scenarios/a.yaml')\n"
    )
    items = pytest_in(suite, "--agenteval", "-k", f"{tag} and (good or bad)").items
    assert items == {f"{A}::good": "passed", f"{A}::bad": "failed"}
    ends = pytest_in(suite, "tests/test_bot.py").items
    assert ends["tests/test_bot.py::test_bot[good]"] == "passed"
    assert ends["tests/test_bot.py::test_bot[bad]"] == "failed"


def test_a_marker_of_the_project_is_one_of_its_scenarios(suite: Project) -> None:
    suite.write("pytest.ini", "[pytest]\nmarkers =\n    smoke: quick ones\n")
    assert pytest_in(suite, "--agenteval", "-m", "smoke").items == {f"{A}::greet": "passed"}


@pytest.mark.parametrize(
    "code",
    [
        "import os\n\n\ndef agent(messages):\n    os._exit(0)\n",
        "import atexit, os\natexit.register(os._exit, 0)\n\n\ndef agent(messages):\n    return 'Go away'\n",
    ],
    ids=["at once", "at exit"],
)
@pytest.mark.parametrize("door", [["--agenteval"], ["tests/test_bot.py"]], ids=["files", "function"])
def test_an_agent_that_ends_the_process_is_no_pass(suite: Project, code: str, door: list[str]) -> None:
    suite.agent(code)
    suite.write("tests/test_bot.py", "import agenteval\n\ntest_bot = agenteval.scenarios('scenarios')\n")
    assert pytest_in(suite, *door).code != 0


STACKED = """
import agenteval
import pytest

test_bot = pytest.mark.parametrize("n", ["a", "b"])(agenteval.scenarios("scenarios"))
"""


def test_parameters_of_a_mark_have_a_run_each(suite: Project) -> None:
    suite.scenarios(SUITE.replace("sorry", "Hello"), A)
    suite.write("tests/test_bot.py", f"{STACKED}\n\n@pytest.fixture(autouse=True)\ndef around(n): pass\n")
    done = pytest_in(suite, "tests/test_bot.py")
    assert len(list((suite.root / ".agenteval/runs").iterdir())) == 2
    assert set(done.items.values()) == {"passed"}
    assert len(done.items) == 10
    assert done.code == 0


def test_warnings_may_be_errors(suite: Project) -> None:
    suite.scenarios(SUITE.replace("sorry", "Hello"), A)
    assert pytest_in(suite, "--agenteval", "-W", "error").code == 0
