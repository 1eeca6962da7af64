"""How fast recorded conversations are checked, in CPU time of one core.

::

    python benchmarks/detector_speed.py [RUNS] [--data FILE…]

1,000 conversations of 25 messages of each set, made of real ones by cutting and joining. Measured are the
detectors alone (conversations already read), and the whole ``agenteval score`` command, its start, the
reading, the journal and the report included. Beside each stands how many times longer it takes than
``json.loads`` over the same lines in the same run, which travels better between machines than seconds do.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import cycle
from pathlib import Path
from typing import Any

from detector_runs import CONVERSATIONS, ScoreCommandError, score_command, write
from processes import spread
from recorded import Conversation, Message, MissingDataError, load_sets

CONVERSATIONS_MADE = 1000
MESSAGES = 25
COMMANDS = {"agenteval score": False, "… with a JSON report": True}


def of_equal_length(conversations: Sequence[Conversation], count: int, length: int) -> list[Conversation]:
    """``count`` conversations of ``length`` messages: a real one, cut, or followed by the next ones (their
    system prompts left out)."""
    sources, made = cycle(conversations), []
    for number in range(count):
        first = next(sources)
        messages = deepcopy(first["messages"])
        while len(messages) < length:
            messages += [deepcopy(m) for m in next(sources)["messages"] if m["role"] != "system"]
        made.append({"id": f"{number}", "tools": first["tools"], "messages": _closed(messages[:length])})
    return made


def _closed(messages: list[Message]) -> list[Message]:
    """A call at the very end would have lost its result: it becomes a text."""
    if messages[-1].get("tool_calls"):
        messages[-1] = {"role": "assistant", "content": "One moment, please."}
    return messages


def cpu_s(action: Callable[[], Any]) -> float:
    before = time.process_time()
    action()
    return time.process_time() - before


def detectors_alone(path: Path) -> Callable[[], None]:
    """What is to be timed: the scorer over conversations that are read already."""
    import anyio

    from agenteval.cli.commands.garbage import few_collections
    from agenteval.core.plan import Plan
    from agenteval.files.recorded.identity import Naming
    from agenteval.files.recorded.reader import Reader
    from agenteval.files.recorded.sources import sources_of
    from agenteval.scoring.detectors.scorer import Detectors

    reader = Reader(sources_of([str(path)], path.parent), naming=Naming(), policy_of=lambda config, name: "")
    read = list(reader)
    assert len(read) == CONVERSATIONS_MADE

    async def over_all() -> None:
        scorers: dict[str, Detectors] = {}  # as the command does: mostly one policy holds for all
        with few_collections():
            for recorded in read:
                policy = recorded.scenario.policy
                if policy not in scorers:
                    scorers[policy] = Detectors(Plan(), policy, recorded=True)
                await scorers[policy](recorded.scenario, recorded.trajectory)

    return lambda: anyio.run(over_all)


def measure(folder: Path, runs: int) -> Iterator[tuple[str, list[float]]]:
    """Seconds of CPU of each run, by what was measured; they take turns."""
    path = folder / CONVERSATIONS
    lines = path.read_text(encoding="utf-8").splitlines()
    scorer = detectors_alone(path)
    score_command(folder, marked=False)  # from now on its modules are compiled
    times: dict[str, list[float]] = {name: [] for name in ("json.loads", "detectors alone", *COMMANDS)}
    for _ in range(runs):
        times["json.loads"].append(cpu_s(lambda: [json.loads(line) for line in lines]))
        times["detectors alone"].append(cpu_s(scorer))
        for name, report in COMMANDS.items():
            done = score_command(folder, marked=False, report=report)
            if done.code not in (0, 1):
                raise ScoreCommandError(f"{name} ended with {done.code}:\n{done.output[-3000:]}")
            times[name].append(done.cpu_s)
    yield from times.items()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=int, default=5)
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="FILE")
    given = parser.parse_args()
    print(f"{given.runs} runs, CPU time: min / median / max")
    try:
        for name, conversations in load_sets(given.data).items():
            with tempfile.TemporaryDirectory() as folder:
                write(of_equal_length(conversations, CONVERSATIONS_MADE, MESSAGES), Path(folder), {})
                size = (Path(folder) / CONVERSATIONS).stat().st_size / CONVERSATIONS_MADE
                made = f"{CONVERSATIONS_MADE:,} conversations of {MESSAGES} messages"
                print(f"\n{name}: {made}, {size / 1000:.1f} kB each")
                show(dict(measure(Path(folder), given.runs)))
    except (MissingDataError, ScoreCommandError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def show(times: dict[str, list[float]]) -> None:
    for name, seconds in times.items():
        rates = [CONVERSATIONS_MADE / value for value in seconds]
        ratios = [value / base for value, base in zip(seconds, times["json.loads"], strict=True)]
        shown = f"{spread(seconds)} s   {spread(rates, 0)} conversations a second"
        print(f"{name:21}  {shown}   {spread(ratios, 1)} × json.loads")


if __name__ == "__main__":
    sys.exit(main())
