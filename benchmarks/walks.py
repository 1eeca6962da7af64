"""How far three values travel through the package: numbers that may only fall.

    python benchmarks/walks.py [--list WALK]

Each walk is one real run of a tiny project under a profiler: a threshold of the configuration, an agent's
reply over HTTP, and a judge's answer that cannot be read. A *stay* is an uninterrupted visit to a module by
functions that hold the value in an argument or in what they return: *near*, the value itself or at most two
attributes or items away; *far*, up to five. A value that makes many stays is passed through hands that do not
need it, or asked for again and again. ``--list`` shows the stays of one walk in their order.

Exits with 1 if a walk is longer than ``MOST`` allows. Who shortens one lowers the number.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from typing import Any

NEAR, FAR = 2, 5
_MOST_SEEN = 3_000
"""Objects that one search looks at."""
_PACKAGE = f"{os.sep}agenteval{os.sep}"

MOST = {
    "threshold": (223, 541),
    "reply": (243, 482),
    "broken judge": (72, 151),
}
"""Stays, near and far."""

_AGENT = 'def agent(messages):\n    return "ZEBRA42 is shipped."\n'
_ASKED = "id: greet\nturns: [Where is my order ZEBRA42?]\n"
_EXPECTED = 'id: greet\nturns: [{user: Where is it?, expect: {output: {contains: ["3 May"]}}}]\n'
_CONFIG = """\
agent: {{name: bot, target: "bot.py:agent"}}
models: {{default: scripted/replies.yaml}}
metrics: [{metric}]
{more}include: [s.yaml]
"""
_REPLIES = """\
replies:
  - {{when: {{role: judge}}, reply: {judge}}}
  - {{when: {{role: dedup}}, reply: {{issues: []}}}}
"""


@dataclass(frozen=True)
class Walk:
    """A project, the value that is followed through its run, and the exit code of the run."""

    value: str
    code: int
    files: dict[str, str]


def walks(port: int) -> dict[str, Walk]:
    bounded = '{evidence: "ZEBRA42 is shipped.", reason: weak, score: 3}'
    return {
        "threshold": Walk(
            "3.4567",
            1,
            {
                "bot.py": _AGENT,
                "s.yaml": _ASKED,
                "agenteval.yaml": _CONFIG.format(
                    metric="helpfulness", more="thresholds: {helpfulness: 3.4567}\n"
                ),
                "replies.yaml": _REPLIES.format(judge=bounded),
            },
        ),
        "reply": Walk(
            "ZEBRA42 is shipped",
            1,
            {
                "s.yaml": _EXPECTED,
                "agenteval.yaml": (
                    f'agent: {{name: bot, endpoint: "http://127.0.0.1:{port}/v1/chat/completions",'
                    " body: {model: m}}\nmetrics: []\ninclude: [s.yaml]\n"
                ),
            },
        ),
        "broken judge": Walk(
            "GARBAGE77",
            3,
            {
                "bot.py": _AGENT,
                "s.yaml": _ASKED,
                "agenteval.yaml": _CONFIG.format(metric="agent_behavior_failure", more=""),
                "replies.yaml": _REPLIES.format(judge='"GARBAGE77 no json here"'),
            },
        ),
    }


# ── in the run ───────────────────────────────────────────────────────────────────────────────────


class _Search:
    """Looks for the value in what a function holds."""

    def __init__(self, value: str, deepest: int) -> None:
        self._text, self._bytes = value, value.encode()
        self._number = float(value) if value.replace(".", "").isdigit() else None
        self._deepest = deepest

    def finds(self, held: Any, depth: int = 0, seen: set[int] | None = None) -> bool:
        seen = set() if seen is None else seen
        match held:
            case str():
                return self._text in held
            case bytes():
                return self._bytes in held
            case float():
                return held == self._number
        if depth > self._deepest or id(held) in seen or len(seen) > _MOST_SEEN:
            return False
        seen.add(id(held))
        return any(self.finds(each, depth + 1, seen) for each in _within(held))


def _within(held: Any) -> Iterable[Any]:
    match held:
        case dict():
            return list(held.values())[:200]
        case list() | tuple() | set() | frozenset():
            return list(held)[:200]
        case type() | types.FunctionType() | types.MethodType() | types.ModuleType():
            return ()
    if not type(held).__module__.startswith("agenteval"):
        return ()
    slots = getattr(type(held), "__slots__", ())
    named = (slots,) if isinstance(slots, str) else slots
    return [*list(vars(held).values() if hasattr(held, "__dict__") else ())[:60]] + [
        getattr(held, name, None) for name in named
    ]


def follow(value: str, deepest: int, out: Path) -> None:
    """Run ``agenteval run`` here, and write each module and function that held the value, in order and
    thread by thread: how the threads take turns differs from run to run."""
    search, stays, busy = _Search(value, deepest), [], threading.local()

    def profile(frame: types.FrameType, event: str, returned: Any) -> None:
        code = frame.f_code
        at = code.co_filename.rfind(_PACKAGE)
        is_ours = at >= 0 and "site-packages" not in code.co_filename and not code.co_name.startswith("<")
        if event not in ("call", "return") or not is_ours or getattr(busy, "searches", False):
            return
        busy.searches = True
        try:
            if any(search.finds(held, depth) for held, depth in _held(frame, event, returned, deepest)):
                module = code.co_filename[at + len(_PACKAGE) :]
                stays.append((threading.get_ident(), module, code.co_qualname))
        finally:
            busy.searches = False

    from agenteval.cli.main import main as command

    sys.argv = ["agenteval", "run"]
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        command()
        code: Any = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    by_thread = [stay[1:] for stay in sorted(stays, key=lambda stay: stay[0])]
    out.write_text(json.dumps({"code": code, "stays": by_thread}), encoding="utf-8")


def _held(frame: types.FrameType, event: str, returned: Any, deepest: int) -> Iterator[tuple[Any, int]]:
    """What a function is given or gives back. An object's own method holds it less than who is handed it."""
    if event == "return":
        yield returned, 0
        return
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        yield frame.f_locals.get(name), 2 if name in ("self", "cls") else 0


# ── the table ────────────────────────────────────────────────────────────────────────────────────


class _Agent(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        message = {"role": "assistant", "content": "ZEBRA42 is shipped"}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def stays_of(walk: Walk, deepest: int) -> list[tuple[str, str]]:
    """The stays, each a module and the functions that held the value there."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in walk.files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        out = Path(folder, "walk.json")
        command = [sys.executable, os.path.abspath(__file__), "--follow", walk.value, str(deepest), str(out)]
        env = {key: value for key, value in os.environ.items() if not key.startswith("AGENTEVAL_")}
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if not out.exists():
            raise SystemExit(done.stderr)
        found = json.loads(out.read_text(encoding="utf-8"))
    if found["code"] != walk.code:
        raise SystemExit(f"exit code {found['code']}, not {walk.code}: {done.stdout[-500:]}")
    return [
        (module, " ".join(dict.fromkeys(function for _, function in held)))
        for module, held in groupby(found["stays"], key=lambda stay: stay[0])
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="How far three values travel through the package.")
    parser.add_argument("--list", metavar="WALK", choices=list(MOST), help="show the stays of one walk")
    parser.add_argument("--far", action="store_true", help="with --list: those of a far walk")
    parser.add_argument("--follow", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.follow:
        value, deepest, out = asked.follow
        follow(value, int(deepest), Path(out))
        return 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Agent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    known = walks(server.server_port)
    if asked.list:
        for module, functions in stays_of(known[asked.list], FAR if asked.far else NEAR):
            print(f"{module}  {functions}")
        return 0
    too_long = False
    print(f"{'walk':14}{'':6}{'stays':>7}{'at most':>9}{'modules':>9}")
    for name, walk in known.items():
        for label, deepest, most in zip(("near", "far"), (NEAR, FAR), MOST[name], strict=True):
            stays = stays_of(walk, deepest)
            too_long |= len(stays) > most
            modules = len({module for module, _ in stays})
            print(f"{name:14}{label:6}{len(stays):7}{most:9}{modules:9}")
    return int(too_long)


if __name__ == "__main__":
    sys.exit(main())
