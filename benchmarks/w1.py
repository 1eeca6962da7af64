"""W1: how well a run keeps its models busy, and what CPU a model call costs it.

::

    python benchmarks/w1.py [RUNS] [--only NAME] [--profile FILE]
    python benchmarks/w1.py --small

20 different scenarios × 3 conversations × 4 turns, one tool call a turn, 8 metrics, through the command
line, against the server of ``model_server.py``: 2,460 calls, 480 of them the agent's, and a review of the
simulated user in about a tenth of the conversations. The models are those of two providers, with a key as
long as real ones are, which is masked in all that is written. RUNS (default 5) of each workload; workloads
and providers take turns, so that what else the machine does weighs on all alike, and a run during which it
did much else is made again. ``--small`` makes each workload once for each provider, with fewer and shorter
conversations, and measures nothing: only the calls are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import string
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from model_server import ModelServer, Settings, Tally
from processes import AGENTEVAL, QUIET, Done, spawn, spread

from agenteval.running.garbage_collection import reduce_garbage_collection

ATTEMPTS = 3
"""A run during which the machine was busy with something else is made again, so often at most."""
PROVIDERS = ("openai-compatible", "openai")
KEY_VARIABLE = "BENCHMARK_MODEL_KEY"
KEY = "sk-proj-" + "".join(random.Random(0).choices(string.ascii_letters + string.digits, k=152))
MOST_TIMES_BARE = 3.0
"""The aim for the CPU of a model call in a run, as a multiple of what the HTTP library alone needs."""
ALL_METRICS = (
    *("helpfulness", "coherence", "relevance", "faithfulness", "verbosity"),
    *("agent_behavior_failure", "tool_call_behavior_failure", "goal_completion"),
)


@dataclass(frozen=True)
class Workload:
    """``agents``: conversations in flight; ``None``: as ``concurrency``. ``target``: the least efficiency
    that was set as a goal, ``None`` where none was."""

    name: str
    scenarios: int = 20
    epochs: int = 3
    turns: int = 4
    concurrency: int = 20
    agents: int | None = None
    latency_s: float = 0.05
    target: float | None = None
    metrics: tuple[str, ...] = ALL_METRICS
    provider: str = PROVIDERS[0]

    @property
    def title(self) -> str:
        return f"{self.name}, {self.provider}"

    @property
    def conversations(self) -> int:
        return self.scenarios * self.epochs

    @property
    def agent_calls(self) -> int:
        """Two requests a turn: the agent asks for a tool, then answers."""
        return 2 * self.turns * self.conversations

    @property
    def model_calls(self) -> int:
        """One of the user and one of each judge a turn, and one at the end of a conversation. Not the reviews
        of simulated users: by lot, of a tenth of the conversations."""
        at_end = "goal_completion" in self.metrics
        return self.conversations * (self.turns * (1 + len(self.metrics) - at_end) + at_end)

    @property
    def small(self) -> Workload:
        epochs = self.epochs if self.scenarios > 1 else 16
        return replace(self, scenarios=min(self.scenarios, 6), epochs=epochs, turns=2, latency_s=0.005)

    @property
    def larger(self) -> Workload:
        """The same with three times as many scenarios. What it costs more is what its further calls cost."""
        return replace(
            self, name=f"W1, {3 * self.scenarios} scenarios", scenarios=3 * self.scenarios, target=None
        )


WORKLOADS = (
    Workload("W1, 20 in flight", target=0.96),
    Workload("W1, 100 in flight", concurrency=100, latency_s=0.25, target=0.84),
    Workload("one scenario × 30", scenarios=1, epochs=30, target=0.94),
)


# ── a project, and a run of it ───────────────────────────────────────────────────────────────────

_TOPICS = ("an order", "an invoice", "a booking", "a delivery", "a refund")


def _scenario(number: int, turns: int) -> dict[str, Any]:
    topic = _TOPICS[number % len(_TOPICS)]
    return {
        "id": f"scenario-{number}",
        "name": f"customer {number} asks about {topic}",
        "profile": f"A customer in a hurry. Has written about {topic} before, {number} days ago.",
        "goal": f"Find out the state of {topic} and what happens next in case {number}.",
        "knowledge": [f"The office is open from 8 to 18 on day {number}.", "Questions are free."],
        "facts": [f"Case {number} was opened on a Monday and is in progress."],
        "max_turns": turns,
        "tools": {
            "look_up": {
                "description": "Looks up what is known about a topic.",
                "parameters": {
                    "type": "object",
                    "properties": {"topic": {"type": "string"}},
                    "required": ["topic"],
                },
                "returns": {"case": number, "state": "in progress", "topic": "${args.topic}"},
            }
        },
    }


def write_project(root: Path, workload: Workload, server: ModelServer) -> None:
    """A folder as a user has it; JSON is YAML, too."""
    config: dict[str, Any] = {
        "agent": {"name": "bench", "type": "http", "endpoint": server.agent_url, "policy": "Be brief. " * 20},
        "models": {
            "default": {
                "model": f"{workload.provider}/mock",
                "base_url": server.model_url,
                "api_key_env": KEY_VARIABLE,
            }
        },
        "epochs": workload.epochs,
        "concurrency": workload.concurrency,
        "agent_concurrency": workload.agents,
        "metrics": list(workload.metrics),
        "judge": {"corroborate": False},  # the calls are to be countable
        "thresholds": {"helpfulness": 1},
        "detectors": [],  # the agent of the server says the same again and again, which they find
    }
    (root / "scenarios").mkdir(exist_ok=True)
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    scenarios = [_scenario(number, workload.turns) for number in range(workload.scenarios)]
    suite = root / "scenarios" / "suite.yaml"
    suite.write_text(json.dumps({"scenarios": scenarios}), encoding="utf-8")


class Run(NamedTuple):
    """``done``: the whole process, from its start to its end, reports included."""

    tally: Tally
    done: Done

    @property
    def is_quiet(self) -> bool:
        """Whether the machine did little else meanwhile."""
        others = self.done.others
        return others is None or others - self.tally.cpu_s / self.done.wall_s <= QUIET

    def efficiency(self, workload: Workload) -> float:
        return self.tally.efficiency(latency_s=workload.latency_s, concurrency=workload.concurrency)


def run_once(workload: Workload, server: ModelServer, profile: str | None = None) -> Run:
    """``agenteval run`` in a process of its own. Raises ``RuntimeError`` if it is not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, workload, server)
        server.reset(Settings(latency_s=workload.latency_s, unclear_goals=True))
        profiler = ("-m", "cProfile", "-o", str(Path(profile).absolute())) if profile else ()
        python, *module = AGENTEVAL
        command = [python, *profiler, *module, "run", "--report", "json=results.json"]
        done = spawn(command, root, {KEY_VARIABLE: KEY})
        tally = server.tally()
        if done.code != 0:
            raise RuntimeError(f"{workload.title} ended with {done.code}:\n{done.output[-3000:]}")
        _check(workload, tally, json.loads((root / "results.json").read_text(encoding="utf-8")))
    return Run(tally, done)


def run_quietly(workload: Workload, server: ModelServer) -> Run:
    """A run while the machine did little else; the last of some if it always did."""
    for _ in range(ATTEMPTS):
        run = run_once(workload, server)
        if run.is_quiet:
            break
    return run


def _check(workload: Workload, tally: Tally, results: dict[str, Any]) -> None:
    """A figure for a run that did something else would be worth nothing."""
    agents = workload.agents or workload.concurrency
    reviews = results["summary"]["simulator"]["reviews"]
    reviewed = reviews["reviewed"] if reviews else 0
    model_calls = workload.model_calls + reviewed
    expected = {
        "reviews of simulated users": (tally.roles.get("review", 0), reviewed),
        "reviews of fewer than half of the conversations": (reviewed * 2 < workload.conversations, True),
        "calls of models": (tally.model_calls, model_calls),
        "calls of the agent": (tally.agent_calls, workload.agent_calls),
        "more model calls in flight than allowed": (
            max(tally.most_model_calls, workload.concurrency),
            workload.concurrency,
        ),
        "more agent calls in flight than allowed": (max(tally.most_agent_calls, agents), agents),
    }
    usage = results["summary"]["usage"]
    told = sum(usage[role]["calls"] for role in ("user", "judge", "dedup"))
    expected["calls of models, as the results say"] = (told, model_calls)
    samples = [sample for scenario in results["scenarios"] for sample in scenario["samples"]]
    parts = [part for sample in samples for part in (sample, *sample["turns"])]
    expected["answers of judges that were refused"] = (sum(len(part["score_failures"]) for part in parts), 0)
    judged = [(turn["agent"], turn["scores"]) for sample in samples for turn in sample["turns"]]
    judged += [(sample["turns"][-1]["agent"], sample["scores"]) for sample in samples]
    invented = sum(score["evidence"] not in said for said, scores in judged for score in scores.values())
    expected["quotations that do not stand in the record"] = (invented, 0)
    wrong = {what: pair for what, pair in expected.items() if pair[0] != pair[1]}
    if wrong:
        raise RuntimeError(f"{workload.title}: (is, should be): {wrong}; {tally.roles}")


# ── the bare client ──────────────────────────────────────────────────────────────────────────────


async def _bare(url: str, bodies: Sequence[str], calls: int, in_flight: int) -> float:
    """CPU seconds per call of the HTTP library alone: encode a request, send it, read the reply, decode it
    and what the model says in it. Connections and imports are made before the clock starts."""
    import aiohttp

    asked = cycle([json.loads(body) for body in bodies])
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def many(count: int) -> None:
            left = iter(range(count))

            async def worker() -> None:
                for _ in left:
                    body = json.dumps(next(asked)).encode()
                    async with session.post(f"{url}/chat/completions", data=body) as reply:
                        data = await reply.read()
                    json.loads(json.loads(data)["choices"][0]["message"]["content"])

            await asyncio.gather(*(worker() for _ in range(in_flight)))

        await many(5 * in_flight)
        started = time.process_time()
        await many(calls)
        return (time.process_time() - started) / calls


def bare(server: ModelServer, workload: Workload) -> float:
    """The same for the latest requests that a run made, with memory searched for cycles as seldom as in a
    run."""
    bodies = server.bodies()
    server.reset(Settings(latency_s=workload.latency_s, unclear_goals=True))
    with reduce_garbage_collection():
        return asyncio.run(_bare(server.model_url, bodies, 2000, workload.concurrency))


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


Runs = Mapping[str, Sequence[Run]]
"""The runs of each workload, by its title."""


def efficiency_rows(runs: Runs, chosen: Sequence[Workload]) -> Iterator[str]:
    yield f"{'efficiency (min / median / max)':40} {'n':>3} {'aim':>6}  {'':23} at the median"
    for workload in chosen:
        done = runs[workload.title]
        tallies = [run.tally for run in done]
        elapsed = statistics.median(tally.elapsed_s for tally in tallies)
        models, agents = (
            max(getattr(t, f"most_{kind}_calls") for t in tallies) for kind in ("model", "agent")
        )
        late_ms = (statistics.median(tally.served_s for tally in tallies) - workload.latency_s) * 1000
        yield (
            f"{workload.title:40} {len(done):3} {workload.target or 0:6.2f}  "
            f"{spread([run.efficiency(workload) for run in done]):23} {elapsed:.2f} s; "
            f"replies {late_ms:.1f} ms late; at most {models} model and {agents} agent calls in flight"
            f"{_noise(done)}"
        )


def _noise(runs: Sequence[Run]) -> str:
    loud = sum(not run.is_quiet for run in runs)
    return f"; {loud} of {len(runs)} runs while the machine was busy" if loud else ""


def cpu_rows(runs: Runs, chosen: Sequence[Workload]) -> Iterator[str]:
    yield f"{'CPU of the whole run, s':40} {'n':>3} {'':6}  {'':23} per call, all told; peak memory"
    for workload in chosen:
        values = [run.done.cpu_s for run in runs[workload.title]]
        calls = runs[workload.title][0].tally.calls
        rss = max(run.done.max_rss_mb for run in runs[workload.title])
        each = statistics.median(values) * 1000 / calls
        row = f"{workload.title:40} {len(values):3} {'':6}  {spread(values, 2):23}"
        yield f"{row} {each:.2f} ms; {rss:.0f} MB"


def marginal_rows(
    provider: str, small: Sequence[Run], large: Sequence[Run], bare_s: Sequence[float]
) -> Iterator[str]:
    """What the CPU of a run grows by from 20 to 60 scenarios, over the calls of models that it makes more,
    and over all calls that it makes more, the agent's included; round by round."""
    yield f"{f'CPU per call, ms, {provider}':40} {'n':>3}"
    yield f"{'the HTTP library alone':40} {len(bare_s):3} {'':6}  {spread([s * 1000 for s in bare_s])}"
    for what, aim in (("model_calls", f"≤ {MOST_TIMES_BARE}"), ("calls", "")):
        pairs = list(zip(small, large, strict=True))
        calls = [getattr(more.tally, what) - getattr(less.tally, what) for less, more in pairs]
        cost = [(more.done.cpu_s - less.done.cpu_s) / n for (less, more), n in zip(pairs, calls, strict=True)]
        ratios = [one / other for one, other in zip(cost, bare_s, strict=True)]
        name = "a model call more, in a run" if what == "model_calls" else "a call more, the agent's included"
        yield f"{name:40} {len(cost):3} {'':6}  {spread([s * 1000 for s in cost])}"
        yield f"{'  as a multiple of the library alone':40} {len(ratios):3} {aim:>6}  {spread(ratios, 2)}"


def measure(server: ModelServer, chosen: Sequence[Workload], rounds: int) -> Iterator[str]:
    """The tables of ``rounds`` runs of each workload and, if W1 is among them, of what a call costs."""
    runs: dict[str, list[Run]] = {}
    bare_s: dict[str, list[float]] = {provider: [] for provider in PROVIDERS}
    bases = [workload for workload in chosen if workload.name == WORKLOADS[0].name]
    for _ in range(rounds):
        for workload in chosen:
            runs.setdefault(workload.title, []).append(run_quietly(workload, server))
            if workload in bases:
                runs.setdefault(workload.larger.title, []).append(run_quietly(workload.larger, server))
                bare_s[workload.provider].append(bare(server, workload))
    yield from efficiency_rows(runs, chosen)
    yield ""
    yield from cpu_rows(runs, [*chosen, *(base.larger for base in bases)])
    for base in bases:
        yield ""
        yield from marginal_rows(
            base.provider, runs[base.title], runs[base.larger.title], bare_s[base.provider]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=5)
    parser.add_argument("--only", help="the workloads whose name, or provider, holds this text", default="")
    parser.add_argument("--profile", help="a file for cProfile's statistics of one run")
    parser.add_argument("--small", action="store_true", help="count the calls of small workloads, in seconds")
    asked = parser.parse_args()
    every = [replace(workload, provider=provider) for workload in WORKLOADS for provider in PROVIDERS]
    chosen = [workload for workload in every if asked.only in workload.title]
    with ModelServer() as server:
        if asked.small:
            for workload in chosen:
                roles = run_once(workload.small, server).tally.roles
                print(f"{workload.title}, small: {', '.join(f'{n} {role}' for role, n in roles.items())}")
        elif asked.profile:
            run_once(chosen[0], server, asked.profile)
        else:
            print("\n".join(measure(server, chosen, asked.runs)))


if __name__ == "__main__":
    main()
