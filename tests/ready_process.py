"""A process that has imported agenteval and forks for each command, so that a test of the command line
pays for what the command does and not, again and again, for imports. The command is the real one: its own
process, working directory, environment, streams and exit code.

Protocol: a line of JSON in (arguments, cwd, env, paths for stdout and stderr); two lines out, the process's
id and its exit code.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

READY = (
    *("cli", "commands.run", "commands.validate", "commands.show_prompts", "agents.python", "agents.http"),
    *("reporters.terminal", "reporters.results_json", "reporters.junit_xml", "reporters.github_actions"),
    *("reporters.markdown", "scorers.custom_scorer", "scorers.criteria", "simulated_user", "issues"),
    *("llm", "llm.scripted", "llm.openai_chat", "transport"),
)


def main() -> None:
    for name in READY:
        import_module(f"agenteval.{name}")
    import_module("jsonschema")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(request: dict[str, Any]) -> NoReturn:
    """The command, as a shell would have started it."""
    os.setpgid(0, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, path in enumerate((os.devnull, request["out"], request["err"])):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["agenteval", *request["arguments"]]
    sys.path[0] = request["cwd"]
    code: object = 1
    try:
        import_module("agenteval.cli").main()
        code = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
