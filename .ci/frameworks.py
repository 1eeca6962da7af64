"""Runs the examples of frameworks (scenarios/frameworks/NAME/) against the real packages: each in an
environment that holds the framework alone, by ``interpreter:``, and where agenteval can be installed beside
it, in process, too.

``versions.toml`` in an example says which packages are its oldest and newest versions, where agenteval can be
beside them, and in which turn (from 1) each agent with a bug is red; all others are green. ``traced.py``, if
there is one, has the names of ``agent.py``, with the framework's own record of calls written to the file that
``FRAMEWORK_TRACE`` names, a line ``{"name", "args"}`` each: they have to be the calls that agenteval saw.
``e2e/frameworks/test_NAME.py``, if there is one, is run in the environment that has both, and
``test_forms.py`` wherever its framework is: where agenteval cannot be beside it, with the agents in its
interpreter. Without names, what needs no framework is tried, too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "scenarios" / "frameworks"
TESTS = ROOT / "e2e" / "frameworks"
_TAIL = 4000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    known = sorted(path.parent.name for path in EXAMPLES.glob("*/versions.toml"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--oldest", action="store_true", help="the oldest supported versions")
    parser.add_argument("--newest", action="store_true", help="the newest tried versions (the default)")
    parser.add_argument("--all", action="store_true", help="both")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the environments there, for next time"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=os.cpu_count() or 1, help="so many at a time"
    )
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"no such example: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    versions = [name for name in ("oldest", "newest") if getattr(given, name) or given.all] or ["newest"]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.jobs) as pool:
        wanted = [(example, version) for example in given.names or known for version in versions]
        told = pool.map(lambda each: _told(*each, Path(name), given.keep), wanted)
        return max([*told, *([] if given.names else [_without_framework()])], default=0)


def _without_framework() -> int:
    faults = list(tested(sys.executable, TESTS / "test_forms.py"))
    sys.stdout.write(f"without a framework: {'; '.join(faults) or 'as expected'}\n")
    return 1 if faults else 0


def _told(example: str, version: str, work: Path, keep: Path | None) -> int:
    """What came of one framework in one version is said; 1 if anything is wrong with it."""
    began = time.monotonic()
    faults = list(tried(example, version, work, keep or work / "envs"))
    said = f"{example} {version}: {'; '.join(faults) or 'as expected'}"
    sys.stdout.write(f"{said} ({time.monotonic() - began:.0f} s)\n")
    sys.stdout.flush()
    if not keep:  # some have hundreds of megabytes
        shutil.rmtree(work / "envs" / f"{example}-{version}", ignore_errors=True)
    return 1 if faults else 0


def tried(example: str, version: str, work: Path, envs: Path) -> Iterator[str]:
    """What is wrong with one framework in one version."""
    told = tomllib.loads((EXAMPLES / example / "versions.toml").read_text(encoding="utf-8"))
    packages = told[version]
    try:
        python = str(environment(envs / f"{example}-{version}", packages))
        yield from played(example, told, work / f"{example}-{version}-alone", sys.executable, python)
        if version not in told["beside"]:
            if (TESTS / "forms" / f"{example}.py").is_file():
                yield from tested(sys.executable, TESTS / "test_forms.py", FORMS_INTERPRETER=python)
            return
        # The framework's versions are asked for once more: a resolver may put others in their place.
        add(python, [*packages, *own_dependencies(), "pytest", "pytest-xdist"])
        yield from played(example, told, work / f"{example}-{version}-beside", python, None)
        for test in (TESTS / f"test_{example}.py", TESTS / "test_forms.py"):
            if test.is_file():
                yield from tested(python, test)
    except subprocess.CalledProcessError as error:
        yield f"its environment cannot be made: {str(error.stderr)[-_TAIL:]}"


def tested(python: str, test: Path, **env: str) -> Iterator[str]:
    """What is wrong with the tests of a file, run by ``python``."""
    command = [python, "-m", "pytest", "-q", "-n", "0", str(test)]
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"{test.name}: {(done.stdout + done.stderr)[-_TAIL:]}"


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The Python of an environment with the packages; one that is there already is taken as it is."""
    python = folder.absolute() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "packages.json"
    if done.is_file() and json.loads(done.read_text(encoding="utf-8")) == list(packages):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    if uv := shutil.which("uv"):
        _run([uv, "venv", "-q", str(folder)])
    else:
        venv.create(folder, with_pip=True)
    add(str(python), packages)
    done.write_text(json.dumps(packages), encoding="utf-8")
    return python


def add(python: str, packages: Sequence[str]) -> None:
    if uv := shutil.which("uv"):
        _run([uv, "pip", "install", "-q", "-p", python, *packages])
    else:
        _run([python, "-m", "pip", "install", "-q", *packages])


def own_dependencies() -> list[str]:
    """What agenteval needs; itself it is found by PYTHONPATH."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


def played(
    example: str, told: dict[str, Any], work: Path, python: str, interpreter: str | None
) -> Iterator[str]:
    """What is wrong with the example's runs by ``python``, with its agents in another ``interpreter`` or in
    the same process."""
    source = EXAMPLES / example
    where = "in its own interpreter" if interpreter else "in process"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source, work, ignore=shutil.ignore_patterns("__pycache__", ".agenteval"))
    config = yaml.safe_load((source / "agenteval.yaml").read_text(encoding="utf-8"))
    agents = {config["agent"]["name"]: config["agent"], **config.get("agents", {})}
    for agent in agents.values():
        if interpreter:
            agent["interpreter"] = interpreter
        if (source / "traced.py").is_file():
            agent["target"] = json.loads(re.sub(r'"agent\.py:', '"traced.py:', json.dumps(agent["target"])))
    (work / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    for name in agents:
        for fault in run(work, python, name, told.get("red", {}).get(name)):
            yield f"{name}, {where}: {fault}"


def run(work: Path, python: str, agent: str, red_in: int | None) -> Iterator[str]:
    trace, results = work / f"trace-{agent}.jsonl", work / f"results-{agent}.json"
    env = {**os.environ, "FRAMEWORK_TRACE": str(trace), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [python, "-m", "agenteval", "run", "--agent", agent, "--report", f"json={results}"]
    done = subprocess.run(
        command, cwd=work, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )
    code = 0 if red_in is None else 1
    if done.returncode != code or not results.is_file():
        yield f"ended with {done.returncode}, expected {code}: {(done.stdout + done.stderr)[-_TAIL:]}"
        return
    told = json.loads(results.read_text(encoding="utf-8"))
    samples = [sample for scenario in told["scenarios"] for sample in scenario["samples"]]
    reds = {at for sample in samples for at, turn in enumerate(sample["turns"], start=1) if _is_red(turn)}
    if reds != ({red_in} - {None}):
        yield f"red in the turns {sorted(reds)}, expected {red_in}"
    if not (work / "traced.py").is_file():
        return
    seen = [
        {"name": call["name"], "args": call["args"]}
        for sample in samples
        for turn in sample["turns"]
        for call in turn["tool_calls"]
    ]
    lines = trace.read_text(encoding="utf-8").splitlines() if trace.is_file() else []
    own = [json.loads(line) for line in lines]
    if seen != own or not own:
        yield f"agenteval saw the calls {seen}; the framework's own trace has {own}"


def _is_red(turn: dict[str, Any]) -> bool:
    return any(check["passed"] is False for check in turn["checks"])


if __name__ == "__main__":
    sys.exit(main())
