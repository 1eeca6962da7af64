"""``run --backend ray`` on real clusters of this machine: workers that are killed, a machine that is taken
away, limits and budgets at a real server.

Ray is an extra of 250 MB, so these tests are skipped without it; ``make cluster`` installs it and runs them
(TESTS_REQUIRE_RAY)."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.event import SampleFinished
from agenteval.files.runs import load_run
from tests.support.kit import Done, Project, Started
from tests.support.model_servers import ModelServer, answers
from tests.support.patience import eventually

if importlib.util.find_spec("ray") is None and not os.environ.get("TESTS_REQUIRE_RAY"):
    pytest.skip("Ray is not installed: make cluster", allow_module_level=True)

KEY = "sk-a-key-that-must-stay-secret"
SCENARIOS = 12
KILLER = "scenarios: [{{id: killer, turns: [{}], expect: {{output: {{contains: [fine]}}}}}}]\n"
TIMES = ("latency_ms", "took_s", "elapsed_s", "started_at", "finished_at", "id", "command", "wall_s")
# It writes down who was talked to, by which process, and does what the message says.
AGENT = """
import asyncio, os, signal
async def agent(messages):
    text = messages[-1]["content"]
    with open(MARKS, "a") as file:
        file.write(f"{os.getpid()} {text}\\n")
    await asyncio.sleep(SLEEP_S)
    killed = MARKS + ".killed"
    if text == "kill" or (text == "kill once" and not os.path.exists(killed)):
        open(killed, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return "It is fine."
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    judge = {"evidence": "It is fine.", "reason": "r", "score": 4, "issues": []}
    with ModelServer(answers(json.dumps(judge)), delay_s=0.02) as running:
        yield running


@pytest.fixture
def suite(project: Project) -> Project:
    write_agent(project)
    lines = [
        f"- {{id: s{at}, turns: [hello {at}, again {at}], expect: {{output: {{contains: [fine]}}}}}}"
        for at in range(SCENARIOS)
    ]
    project.scenarios("scenarios:\n" + "\n".join(lines) + "\n")
    project.config(
        "models: {default: {model: openai-compatible/m, base_url: '${URL}', api_key_env: MY_KEY}}\n"
        "metrics: [helpfulness]\nconcurrency: 4\nagent_concurrency: 8\n"
    )
    return project


def write_agent(project: Project, sleep_s: float = 0.02) -> None:
    """The file of the marks is the same for all workers, wherever the agent's own file is copied to."""
    marks = repr(str(project.root / "marks"))
    project.agent(AGENT.replace("MARKS", marks).replace("SLEEP_S", str(sleep_s)))


def env(server: ModelServer) -> dict[str, str]:
    return {"URL": server.base_url, "MY_KEY": KEY}


def run(project: Project, server: ModelServer, *options: str) -> Done:
    (project.root / "marks").unlink(missing_ok=True)
    return project.call("run", "--report", "json=results.json", *options, env=env(server), timeout_s=240)


def marks(project: Project) -> list[tuple[str, str]]:
    lines = (project.root / "marks").read_text().splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def is_under_way(project: Project) -> bool:
    return (project.root / "marks").exists() and len(marks(project)) > SCENARIOS


def conversations(project: Project) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items() if name not in TIMES}
        return [plain(item) for item in value] if isinstance(value, list) else value

    results = project.results()
    return {each["id"]: plain(each["samples"]) for each in results["scenarios"]} | {
        "verdict": results["verdict"] if "verdict" in results else results["summary"]["verdict"]
    }


def finished(project: Project) -> list[SampleFinished]:
    (folder,) = (project.root / ".agenteval" / "runs").iterdir()
    return [event for event in load_run(folder) if isinstance(event, SampleFinished)]


# ── on this machine ──────────────────────────────────────────────────────────────────────────────
def test_a_run_on_ray_gives_what_a_local_run_gives(suite: Project, server: ModelServer) -> None:
    here = run(suite, server)
    found, asked = conversations(suite), len(server.asked)
    there = run(suite, server, "--backend", "ray")
    assert (here.code, there.code) == (0, 0), there.all
    assert conversations(suite) == found
    assert len(server.asked) == 2 * asked
    assert server.most_in_flight <= 4
    assert len({process for process, _ in marks(suite)}) >= min(2, len(os.sched_getaffinity(0)))
    assert "raylet" not in there.all


def test_a_killed_worker_loses_and_doubles_nothing(suite: Project, server: ModelServer) -> None:
    suite.scenarios(KILLER.format("kill once, again"), "scenarios/killer.yaml")
    done = run(suite, server, "--backend", "ray")
    assert done.code == 0, done.all
    ends = finished(suite)
    final = Counter(end.key for end in ends if not end.again)
    assert len(final) == SCENARIOS + 1
    assert set(final.values()) == {1}
    lost = [end for end in ends if end.again]
    assert any(end.key.scenario == "killer" for end in lost)
    assert all("its worker died" in end.stop.detail for end in lost)
    assert server.most_in_flight <= 4


def test_a_sample_that_kills_its_worker_twice_is_inconclusive_alone(
    suite: Project, server: ModelServer
) -> None:
    suite.scenarios(KILLER.format("kill"), "scenarios/killer.yaml")
    done = run(suite, server, "--backend", "ray")
    assert done.code == 3
    verdicts = {each["id"]: each["verdict"] for each in suite.results()["scenarios"]}
    assert verdicts.pop("killer") == "inconclusive"
    assert set(verdicts.values()) == {"passed"}
    assert len([1 for _, text in marks(suite) if text == "kill"]) == 2


def test_what_a_turn_proves_is_not_lost_with_the_worker_in_the_next(
    suite: Project, server: ModelServer
) -> None:
    """The first conversation says what it must not, then ends its process at once; a second one would not."""
    suite.agent(
        f"""
        import os

        async def agent(messages):
            if len(messages) > 1 and not os.path.exists({str(suite.root / "died")!r}):
                open({str(suite.root / "died")!r}, "w").close()
                os._exit(1)
            return "It is fine." if os.path.exists({str(suite.root / "died")!r}) else "No."
        """
    )
    expect = "expect: {output: {not_contains: ['No.']}}"
    suite.scenarios(f"id: proven\nturns: [{{user: a, {expect}}}, {{user: b, {expect}}}]\n")
    done = run(suite, server, "--backend", "ray")
    assert done.code == 1, done.all
    (end,) = finished(suite)
    assert (end.again, end.stop.reason) == (False, "infrastructure")


def test_a_budget_is_exact_on_several_workers(suite: Project, server: ModelServer) -> None:
    with open(suite.root / "agenteval.yaml", "a", encoding="utf-8") as file:
        file.write("budget: {by_role: {judge: {max_calls: 7}}}\n")
    done = run(suite, server, "--backend", "ray")
    assert len(server.asked) == 7
    assert "17 judge calls not made" in done.all


def test_an_interrupted_run_can_be_resumed_on_ray(suite: Project, server: ModelServer) -> None:
    flag = suite.root / "patient"
    flag.touch()
    suite.agent(
        f"""
        import asyncio, os

        async def agent(messages):
            if os.path.exists({str(flag)!r}):
                open({str(suite.root / "marks")!r}, "a").close()
                await asyncio.sleep(3600)
            return "It is fine."
        """
    )
    started = suite.start("run", "--backend", "ray", env=env(server))
    assert eventually((suite.root / "marks").exists), started.said("err")
    started.send(signal.SIGINT)
    assert eventually(lambda: "interrupted" in started.said("err"))
    started.send(signal.SIGINT)
    done = started.wait(120)
    assert done.code == 130, done.all
    assert {end.stop.detail for end in finished(suite)} == {"the run was interrupted"}
    flag.unlink()
    done = run(suite, server, "--resume", "latest", "--backend", "ray")
    assert done.code == 0, done.all


def test_wrong_use_is_refused_before_anything_is_called(suite: Project, server: ModelServer) -> None:
    done = run(suite, server, "--backend", "ray=127.0.0.1:1")
    assert done.code == 2
    assert "no cluster at 127.0.0.1:1" in done.err
    assert not (suite.root / ".agenteval" / "runs").exists()


# ── on a cluster of several machines, all of them here ───────────────────────────────────────────

# Each machine has a folder of its own: each copies the project there, in place of the copy that it finds.
CLUSTER = """
import os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster
def own(name):
    return {"object_store_memory": 80 * 2**20, "temp_dir": os.path.join(sys.argv[1], name)}
cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **own("h")}
)
nodes = [cluster.add_node(num_cpus=1, **own(name)) for name in ("a", "b")]
print(cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(nodes.pop(), allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
"""


class RayMachines:
    """A cluster of a head without a core and two machines with one."""

    def __init__(self, folder: Path) -> None:
        script = folder / "cluster.py"
        script.write_text(CLUSTER)
        # Ray's sockets are below it, and the path of a socket has 107 characters at most.
        self._folder = tempfile.TemporaryDirectory(prefix="ray", dir="/tmp")
        self.logs = Path(self._folder.name)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [sys.executable, str(script), self._folder.name],
            cwd=folder,
            env=clean,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        for line in self._process.stdout:
            if re.fullmatch(r"\S+:\d+", line.strip()):
                self.address = line.strip()
                return
        raise AssertionError("the cluster did not start")

    def take_one_away(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("remove\n")
        self._process.stdin.flush()

    def explain(self, started: Started) -> str:
        """What the command has said, and the last that each process of Ray has."""
        logs = [path for path in sorted(self.logs.rglob("*")) if path.is_file() and path.stat().st_size]
        tails = [f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in logs]
        return "\n".join([started.said("err"), *tails])

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._folder.cleanup()


@pytest.fixture
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayMachines]:
    found = RayMachines(tmp_path_factory.mktemp("cluster"))
    try:
        yield found
    finally:
        found.stop()


def test_a_machine_that_is_taken_away_loses_nothing_and_no_file_has_the_secret(
    suite: Project, server: ModelServer, machines: RayMachines
) -> None:
    write_agent(suite, sleep_s=0.5)
    options = ("--epochs", "2", "--backend", f"ray={machines.address}")
    started = suite.start("run", "--report", "json=results.json", *options, env=env(server))
    assert eventually(lambda: started.poll() is not None or is_under_way(suite)), machines.explain(started)
    assert is_under_way(suite), machines.explain(started)
    machines.take_one_away()
    done = started.wait(240)
    assert done.code == 0, done.all
    ends = finished(suite)
    final = Counter(end.key for end in ends if not end.again)
    assert len(final) == 2 * SCENARIOS
    assert set(final.values()) == {1}
    assert any(end.again for end in ends)
    assert server.most_in_flight <= 4
    texts = (path.read_bytes() for path in machines.logs.rglob("*") if path.is_file())
    assert not any(KEY.encode() in text for text in texts)


def test_a_worker_without_a_file_is_refused(
    suite: Project, server: ModelServer, machines: RayMachines
) -> None:
    # What Git ignores is not copied.
    suite.write(".gitignore", "agent.py\n")
    done = run(suite, server, "--backend", f"ray={machines.address}")
    assert done.code == 2
    assert "agent.py" in done.err
    assert "all machines need the same files" in done.err
    assert not server.asked
