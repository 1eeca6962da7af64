"""Build the shell commands that reproduce a failure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from agenteval.core.event import RunStarted
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import StopReason
from agenteval.reporters.words.places import split_place


def repro(scenario: ScenarioReport, run: RunStarted, *, several_agents: bool) -> str:
    """Return the shell command that runs the scenario again with the same options as the original run."""
    if is_from_python(run):
        return f"agenteval.run_sync(…, ids=[{scenario.scenario.id!r}])"
    words = ["agenteval", "run"]
    path = split_place(scenario.scenario.where())[0]
    words += [path] if path else []
    words += ["-s", scenario.scenario.id]
    asks_for_one = bool((run.request.get("filters") or {}).get("agent"))
    words += ["--agent", scenario.agent] if several_agents or asks_for_one else []
    return command_of([*words, *_run_options(run)])


def rerun_failures_command(run: RunStarted, name: str) -> str:
    """Return the command that reruns everything that did not pass in the run called ``name``, with the
    options of that run. The command remains valid after later runs."""
    if is_from_python(run):
        return f"agenteval.run_sync(…, failed_in={name!r})"
    agent = (run.request.get("filters") or {}).get("agent")
    paths = [_relative(run.request.get("cwd"), path) or path for path in run.request.get("paths") or ()]
    chosen = ["--agent", agent] if agent else []
    words = ["agenteval", "run", *paths, *chosen, "--failed-in", name]
    return command_of([*words, *_run_options(run)])


def is_from_python(run: RunStarted) -> bool:
    """Check whether the scenarios or the agent of a run were given as Python objects, so that no command
    repeats the run."""
    target = (run.request.get("agent") or {}).get("target")
    return bool(run.request.get("scenarios")) or "given_objects:" in str(target)


def _run_options(run: RunStarted) -> Iterator[str]:
    """Yield the remaining options of the run that affect how conversations are conducted and judged."""
    request = run.request
    flags, judging = request.get("flags") or {}, request.get("judging") or {}
    named = {
        "-c": request.get("named_config"),
        "--profile": request.get("profile"),
        "-m": judging.get("model"),
        "--seed": flags.get("seed"),
        "--epochs": request.get("epochs"),
        "--baseline": _baseline(run),
        "--faults": _packs(run, "faults"),
        "--variants": _packs(run, "variants"),
        "--replay": _relative(request.get("cwd"), request.get("replay")),
    }
    for name, value in named.items():
        yield from (name, str(value)) if value is not None else ()
    for metric in judging.get("metric") or ():
        yield from ("--metric", metric)
    yield from ("--no-judge",) if judging.get("no_judge") else ()
    if "cache" in flags:
        yield "--cache" if flags["cache"] else "--no-cache"


def _baseline(run: RunStarted) -> str | None:
    """Return the baseline of the run. A relative name, such as ``latest``, is replaced with the id of the
    baseline, because the name would now refer to this run."""
    name = run.request.get("baseline")
    return run.baseline.run_id if run.baseline and name in ("latest", "previous") else name


def _packs(run: RunStarted, key: str) -> str | None:
    """Return the fault packs or variant packs of the run, with relative paths of files."""
    cwd, packs = run.request.get("cwd"), run.request.get(key)
    return ",".join(_relative(cwd, name) or name for name in packs.split(",")) if packs else None


def _relative(folder: str | None, path: str | None) -> str | None:
    return path.removeprefix(f"{folder}{os.sep}") if folder and path else path


def command_of(words: Iterable[str]) -> str:
    """Join ``words`` into a shell command. The words are quoted, and characters that would be interpreted by
    a terminal are removed."""
    return " ".join(map(quote_word, words))


def show_command_of(run: Iterable[str], name: str, agent: str = "") -> str:
    """Return the command that shows a conversation. ``run`` contains the words that select the run, and
    ``agent`` is empty if the run has only one agent. A name that begins with ``-`` follows ``--``, because it
    would otherwise be taken for an option."""
    words, chosen = ["agenteval", "show", *run], ["--agent", agent] if agent else []
    return command_of([*words, *chosen, "--", name] if name.startswith("-") else [*words, name, *chosen])


def sample_name(key: SampleKey) -> str:
    """Return the name that ``show`` accepts for a sample, such as ``refund@2``. Epochs are counted from 1."""
    variant = f"[{one_line(key.variant, 60)}]" if key.variant else ""
    return f"{one_line(key.scenario, 120)}{variant}@{key.epoch + 1}"


def quote_word(word: str) -> str:
    """Quote a word for a shell, such as ``order`` or ``'two words'``."""
    return shlex.quote(shell_word(word))


_LONGEST = 2000


def shell_word(word: str) -> str:
    return word if word.isprintable() and len(word) <= _LONGEST else one_line(word, 400)


_SCORE_OPTIONS = (
    "-c", "--config", "--scenarios", "--scenario-from", "--epoch-from", "--outcome-from", "-m", "--model",
    "--metric", "--no-calls-in", "--max-rate",
)  # fmt: skip
_SELECTION = ("-s", "--scenario")


def score_options(command: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a ``score`` command that affect its conversations and their judges. The files are
    excluded. Without these options, the conversations would be different."""
    judged = ("--no-judge",) if "--no-judge" in command else ()
    return (*(word for words in _options(command, _SCORE_OPTIONS) for word in words), *judged)


def _options(command: Sequence[str], names: Collection[str]) -> Iterator[Sequence[str]]:
    """Yield each option in ``names`` with its value."""
    for index, word in enumerate(command):
        name, is_joined = _split_option(word)
        if name in names:
            yield [word] if is_joined else command[index : index + 2]


_WITH_VALUE = re.compile(r"-[a-z]*?[csmk]")
"""The end of the options in a word such as ``-qsID``: the first option that takes a value."""


def _split_option(word: str) -> tuple[str, bool]:
    """Return the option in a word, and whether the word also contains the option's value (``--model=M``,
    ``-mM``)."""
    if word.startswith("--"):
        name, is_joined, _ = word.partition("=")
        return name, bool(is_joined)
    short = _WITH_VALUE.match(word)
    return (f"-{short[0][-1]}", len(word) > short.end()) if short else (word, False)


def rescore_scenario_command(scenario: ScenarioReport, command: Sequence[str]) -> str:
    """Return the ``score`` command restricted to this scenario, or an empty string if agenteval conducted the
    conversations itself."""
    # A scenario without lines of the author comes from a log, even if none of its samples has a record.
    is_of_log = not scenario.scenario.lines or any(sample.record for sample in scenario.samples)
    if command[:1] != ("score",) or not is_of_log:
        return ""
    return command_of(["agenteval", *_without_selection(command), "-s", scenario.scenario.id])


def _without_selection(command: Sequence[str]) -> Iterator[str]:
    is_value = False
    for word in command:
        name, is_joined = _split_option(word)
        if not is_value and name not in _SELECTION:
            yield word
        is_value = not is_value and name in _SELECTION and not is_joined


_RECORDED_STOPS = (StopReason.RECORDED, StopReason.UNREADABLE, StopReason.INFRASTRUCTURE)


def rescore_sample_command(key: SampleKey, sample: SampleReport | None, options: Sequence[str]) -> str:
    """Return the command that scores a recorded conversation again, or an empty string for a conversation
    that was not recorded."""
    stop = sample.stop if sample else None
    if stop is None or stop.reason not in _RECORDED_STOPS:
        return ""
    path, line = split_place(stop.detail.partition(": ")[0])
    if stop.reason is StopReason.INFRASTRUCTURE and (not line or "://" in path):
        return ""  # a run: its detail begins with a URL or a sentence, a record's with a place
    words = ["agenteval", "score", path if path not in ("", "<stdin>") else "-"]
    words += [*options, "-s", key.variant or key.scenario]
    return command_of(words)
