"""Runs the shipped example suite as a user would: the agent passes, and its first version, which has
weaknesses (docs/examples.md), fails; both also as items of pytest. With ``--wheel FOLDER``: by the wheel in
that folder, alone in a new environment, from a folder without the source of agenteval."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXPECTED: dict[tuple[str, ...], tuple[int, str]] = {
    (): (0, "PASSED: "),
    ("--agent", "wonderbot-first"): (1, "FAILED: "),  # a traceback ends with 1, too
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, metavar="FOLDER")
    folder: Path | None = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        project = shutil.copytree(ROOT / "scenarios", work / "project" / "scenarios").parent
        shutil.copy(ROOT / "agenteval.yaml", project)
        python = installed(folder, work / "venv") if folder else sys.executable
        codes = [run_suite(python, project, options) for options in EXPECTED]
        if not folder:
            codes += [run_in_pytest(project, options) for options in EXPECTED]
        return max(codes)


def installed(folder: Path, target: Path) -> str:
    """The Python of a new environment that holds the wheel and what it needs, and nothing else."""
    (wheel,) = folder.resolve().glob("*.whl")
    venv.create(target, with_pip=True)
    python = str(target / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    lock = str(ROOT / "constraints.txt")
    subprocess.run([python, "-m", "pip", "install", "-q", "-c", lock, str(wheel)], check=True)
    for command in ([python, "-m", "agenteval"], [str(Path(python).with_name("agenteval"))]):
        told = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
        sys.stdout.write(f"{wheel.name}: {told.stdout.strip()}\n")
    return python


def run_suite(python: str, project: Path, options: tuple[str, ...]) -> int:
    code, beginning = EXPECTED[options]
    command = [python, "-m", "agenteval", "run", *options]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, encoding="utf-8")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode == code and last.startswith(beginning):
        sys.stdout.write(f"agenteval run {' '.join(options)}, as expected: {last}\n")
        return 0
    sys.stdout.write(done.stdout[-4000:] + done.stderr[-4000:])
    sys.stdout.write(f"\nthe shipped suite ended with {done.returncode}; expected: {code}\n")
    return 1


def run_in_pytest(project: Path, options: tuple[str, ...]) -> int:
    """The same by the pytest plugin, in two processes."""
    code, _ = EXPECTED[options]
    given = [option.replace("--agent", "--agenteval-agent") for option in options]
    command = [sys.executable, "-m", "pytest", "--agenteval", "-q", "-n", "2", *given]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, encoding="utf-8")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode == code and "passed" in last and "error" not in last:
        sys.stdout.write(f"pytest --agenteval {' '.join(given)}, as expected: {last}\n")
        return 0
    sys.stdout.write(done.stdout[-4000:] + done.stderr[-4000:])
    sys.stdout.write(f"\nthe shipped suite ended with {done.returncode} in pytest; expected: {code}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
