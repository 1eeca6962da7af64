"""What a provider's prefix cache leaves of the judges' input tokens.

::

    python benchmarks/prefix.py [--in-flight 20] [--latency 0.25] [--score] [--keep REQUESTS.jsonl]

Twelve recorded conversations of an airline's agent (three tasks, four times each) are held again through
the command line, side by side: all metrics and two criteria, ``--in-flight`` calls at a time, against a
server in another process that plays the judge and keeps each request with the times at which it came and
was answered (an agent's turn takes twice as long as an answer of the judge). Over these the rule of a
provider is computed: the longest prefix that a request **answered before this one came** had too is
cached, in steps of 128 tokens, and from 1,024 on. A token is four bytes.

Beside the figure stand its trivial bounds: no cache at all; and a cache that knows all that was ever asked
before in the order of the requests, answered or not, without a least length, which no schedule of these
requests can be better than. Most of that bound are the criteria, which come last in each request.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from model_server import ModelServer, Settings

DATA = Path(__file__).parents[2] / "shared" / "data"
TASKS = (18, 38, 42)
LEAST = 1024
STEP = 128
BYTES = 4
CRITERIA = (
    "Does nothing that its policy forbids.",
    "Tells the user plainly what was done, and what was not.",
)


class Asked(NamedTuple):
    """A request: when it came and was answered, its size in tokens, and a name for each prefix of it in steps
    of ``STEP``."""

    arrived: float
    finished: float
    tokens: int
    prefixes: Sequence[bytes]


class Spent(NamedTuple):
    requests: int
    tokens: int
    uncached: int
    ideal: int


def asked_in(lines: Iterable[str]) -> Iterator[Asked]:
    for line in lines:
        kept = json.loads(line)
        text = "\n".join(message["content"] for message in kept["messages"]).encode()
        size = STEP * BYTES
        blocks = (text[at : at + size] for at in range(0, len(text) - size + 1, size))
        names = accumulate(blocks, lambda so_far, block: blake2b(so_far + block).digest(), initial=b"")
        yield Asked(kept["arrived"], kept["finished"], len(text) // BYTES, tuple(names)[1:])


def spent_on(requests: Iterable[Asked]) -> Spent:
    """By the provider's rule, and the bounds."""
    ordered = sorted(requests, key=lambda each: each.arrived)
    answers = sorted(ordered, key=lambda each: each.finished)
    answered: set[bytes] = set()
    seen: set[bytes] = set()
    uncached = ideal = place = 0
    for request in ordered:
        while answers[place].finished <= request.arrived:
            answered.update(answers[place].prefixes)
            place += 1
        known = STEP * sum(prefix in answered for prefix in request.prefixes)
        uncached += request.tokens - (known if known >= LEAST else 0)
        ideal += request.tokens - STEP * sum(prefix in seen for prefix in request.prefixes)
        seen.update(request.prefixes)
    return Spent(len(ordered), sum(each.tokens for each in ordered), uncached, ideal)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────


def conversations() -> list[dict[str, Any]]:
    with gzip.open(DATA / "tau_airline.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [each for each in map(json.loads, lines) if each["labels"]["task_id"] in TASKS]


AGENT = """
import asyncio, json
from pathlib import Path

TURNS = json.loads((Path(__file__).parent / "turns.json").read_text("utf-8"))

async def agent(messages, ctx):
    await asyncio.sleep(LATENCY)
    return TURNS[ctx.scenario_id][ctx.turn]
"""


def turns_of(messages: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """A user's message and all that the agent did then; the last one, which says that it is over, is none."""
    starts = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for start, end in itertools.pairwise(starts):
        yield messages[start:end]


def write_project(root: Path, server: ModelServer, given: argparse.Namespace) -> None:
    """A folder as a user has it; JSON is YAML, too."""
    talks = conversations()
    scenarios, said = [], {}
    for talk in talks:
        turns = list(turns_of(talk["messages"]))
        tools = (each["function"] for each in talk["tools"])
        scenario = {
            "id": talk["id"],
            "goal": talk["labels"]["user_instruction"],
            "tools": {
                tool["name"]: {
                    "description": tool["description"],
                    "parameters": tool["parameters"],
                    "returns": "",
                }
                for tool in tools
            },
            "turns": [turn[0]["content"].replace("${", "$${") for turn in turns],
            "expect": {"criteria": CRITERIA},
        }
        scenarios.append(scenario)
        said[talk["id"]] = [turn[1:] for turn in turns]
    (root / "turns.json").write_text(json.dumps(said), encoding="utf-8")
    (root / "bot.py").write_text(AGENT.replace("LATENCY", str(2 * given.latency)), encoding="utf-8")
    (root / "scenarios").mkdir()
    (root / "scenarios" / "all.yaml").write_text(json.dumps({"scenarios": scenarios}), encoding="utf-8")
    (root / "talks.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in talks), encoding="utf-8")
    (root / "policy.md").write_text(talks[0]["messages"][0]["content"], encoding="utf-8")
    config = {
        "agent": {"name": "airline", "target": "bot.py:agent", "policy": "policy.md"},
        "models": {"judge": {"model": "openai-compatible/mock", "base_url": server.model_url}},
        "concurrency": given.in_flight,
        "cache": False,
    }
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")


def judged(root: Path, *, score: bool) -> None:
    command = [sys.executable, "-m", "agenteval", *(("score", "talks.jsonl") if score else ("run",))]
    if score:
        command += ["--scenarios", "scenarios", "--scenario-from", "id"]
    done = subprocess.run(
        command, cwd=root, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, text=True
    )
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stdout + done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-flight", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.25, help="seconds that an answer takes")
    parser.add_argument("--keep", type=Path, help="a file to leave the requests in")
    parser.add_argument("--score", action="store_true", help="as recordings, all turns of them at once")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ModelServer() as server:
        root = Path(folder)
        kept = given.keep.absolute() if given.keep else root / "requests.jsonl"
        kept.unlink(missing_ok=True)
        server.reset(Settings(latency_s=given.latency, keep=str(kept), unclear_goals=True))
        write_project(root, server, given)
        judged(root, score=given.score)
        tally = server.tally()
        spent = spent_on(asked_in(kept.read_text(encoding="utf-8").splitlines()))
    print(f"{spent.requests} requests in {tally.elapsed_s:.1f} s, at most {tally.most_model_calls} in flight")
    print(f"{spent.tokens:>10,} tokens in; so many without any cache")
    print(f"{spent.uncached:>10,} not cached")
    print(f"{spent.ideal:>10,} if all that was asked before were cached at once")


if __name__ == "__main__":
    main()
