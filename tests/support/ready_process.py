"""A process that has imported agenteval and forks for each command, so that a test of the command line
pays for what the command does and not, again and again, for imports. The command is the real one: its own
process, working directory, environment, streams and exit code.

Protocol: a line of JSON in (arguments, cwd, env, paths for stdout and stderr); two lines out, the process's
id and its exit code.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NoReturn

NOT_READY = ("agenteval.__main__",)
BESIDE = ("anyio._backends._asyncio", "anyio.streams.memory", "jsonschema", "openai")


def make_ready() -> None:
    """All that a command would import, build or compile at its first use, done once for all of them: where
    no bytecode is kept, reading the modules is more than half of what a short command does."""
    import agenteval
    from agenteval.core.value import Value

    for module in walk_packages(agenteval.__path__, "agenteval."):
        if module.name not in NOT_READY:
            with contextlib.suppress(ImportError):  # an extra that is not installed
                import_module(module.name)
    for name in BESIDE:
        import_module(name)
    import_module("rich.cells").cell_len("宽")  # its table of widths is a module, too
    import_module("strict_copies").refuse_unknown_fields()
    _build_commands()
    for model in _below(Value):
        model.model_rebuild()
    _use_once()
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, all of it


def _build_commands() -> None:
    """The tree of commands and what reads their options: a third of what a short command costs."""
    typer = import_module("typer.main")
    root = import_module("agenteval.cli.main").app
    built = typer.get_command(root)
    for command in (built, *built.commands.values()):
        for param in command.params:
            if hasattr(param, "get_runtime_param"):
                param.get_runtime_param()
    get_command = typer.get_command
    typer.get_command = lambda app: built if app is root else get_command(app)


def _use_once() -> None:
    """What is kept once it was found: the built-in metrics, the certificates of authorities, where each
    module lies, what a report is painted with."""
    samples = import_module("report_samples")
    import_module("agenteval.scoring.metrics").built_in_metrics()
    import_module("agenteval.adapters.transport.environment").certificates()
    list(import_module("agenteval.planning.run_files")._author_modules(Path("/nowhere")))
    options = import_module("agenteval.reporters.options").ReportOptions()
    for told in (samples.passing(), samples.mixed("wonderbot")):
        registry = import_module("agenteval.reporters").REPORTERS
        for name in registry:
            registry.get(name).function(*told, options)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def main() -> None:
    make_ready()
    sys.dont_write_bytecode = True  # of agents, which a test may write anew within one second
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        with contextlib.suppress(OSError):  # it has done so itself; whoever is told of it may send it signals
            os.setpgid(child, child)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(request: dict[str, Any]) -> NoReturn:
    """The command, as a shell would have started it."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
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
        import_module("agenteval.cli.main").main()
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
