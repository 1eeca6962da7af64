"""A headless Chromium as a process, and its DevTools protocol over two pipes, by the standard library alone.

One thread writes and reads: there is nothing to wait for but the browser, and that has a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANSWER_S = 60.0
"""How long an answer of the browser may take. Only what hangs takes longer."""

PATH_VARIABLE = "TESTS_BROWSER"
NAMES = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
"""Commands, in the order in which they are looked for. Where there are two, Ubuntu lets only Chrome have its
sandbox."""
ABSENT = (
    f"needs Chromium or Chrome: make browser installs one, or put the path of yours in {PATH_VARIABLE} "
    "(CONTRIBUTING.md, Tests in a browser)"
)
NO_PIPES = "needs pipes with numbers of our choice, which Windows does not pass on"

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--mute-audio",
    # Nothing leaves the machine: neither what the browser would ask for itself, nor what a page would.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    # A page is as quick and as large where nobody looks at it.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "about:blank",
)

# The browser reads from 3 and writes to 4. Moved out of the way first: one of them may be the other's number.
_LAUNCH = """
import fcntl, os, sys
pair = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for number, each in zip((3, 4), pair):
    os.dup2(each, number)
    os.close(each)
os.execv(sys.argv[3], sys.argv[3:])
"""

_ENDED = "the browser ended"

Event = dict[str, Any]


class BrowserError(Exception):
    """The browser is not there, ended, does not answer or refuses what it was asked."""


class CallRefusedError(BrowserError):
    """The browser answered that it cannot do what it was asked. It lives."""


def find_browser() -> Path | None:
    """The path of a browser. A variable that names none is a mistake, not absence."""
    if named := os.environ.get(PATH_VARIABLE):
        found = shutil.which(named)
        if found is None:
            raise BrowserError(f"{PATH_VARIABLE} is {named!r}, and that is no program")
        return Path(found)
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser of its own profile, which ends with this process, whatever that dies of: its pipe breaks.

    ``closed``: it was closed, or ended; no call can be made any more. ``folder``: what is deleted with it.
    ``answer_s``: how many seconds an answer may take."""

    def __init__(self, path: Path, *, flags: tuple[str, ...] = FLAGS, answer_s: float = ANSWER_S) -> None:
        self.answer_s = answer_s
        self.folder = Path(tempfile.mkdtemp(prefix="agenteval-browser-"))
        self._sent = 0
        self._buffer = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}
        self._listeners: dict[str | None, Callable[[Event], None]] = {}
        self.closed = False
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        os.set_blocking(self._out, False)
        sandbox = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
        profile = f"--user-data-dir={self.folder / 'profile'}"
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(theirs_in), str(theirs_out)]
        with open(self.folder / "stderr", "wb") as stderr:
            self._process = subprocess.Popen(
                [*launch, str(path), profile, *sandbox, *flags],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self.version: str = self.call("Browser.getVersion")["product"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> Any:
        """What the browser answers. Events that come before the answer go to their listeners."""
        number = self.send(method, params, session)
        end = time.monotonic() + self.answer_s
        while number not in self._answers:
            self._read(method, end)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise CallRefusedError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def send(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> int:
        """Make a call whose answer nobody waits for. The number of the call."""
        if self.closed:
            raise BrowserError(f"{method}: the browser was closed")
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._write(json.dumps(message).encode() + b"\0", method)
        return self._sent

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Hear events until it is so. ``what`` is named where it never is."""
        end = time.monotonic() + self.answer_s
        while not is_so():
            self._read(what, end)

    def listen(self, session: str | None, listener: Callable[[Event], None] | None) -> None:
        """Hand the events of a session (None: of the browser) to this one alone, or to nobody."""
        self._listeners.pop(session, None)
        if listener:
            self._listeners[session] = listener

    def close(self) -> None:
        """End it and all its processes, and delete its profile."""
        if self.closed:
            return
        self.closed = True
        os.close(self._out)
        os.close(self._in)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, data: bytes, what: str) -> None:
        """A pipe holds little. What the browser writes meanwhile is read; else each waits for the other."""
        end = time.monotonic() + self.answer_s
        rest = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_WRITE)
            selector.register(self._in, selectors.EVENT_READ)
            while rest:
                ready = selector.select(max(0.0, end - time.monotonic()))
                if not ready:
                    self._give_up(f"{what}: the browser took nothing within {self.answer_s:g} s")
                for key, _ in ready:
                    if key.fd == self._in:
                        self._take(what)
                        continue
                    try:
                        rest = rest[os.write(self._out, rest) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        self._give_up(f"{what}: {_ENDED}")

    def _read(self, what: str, end: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._in, selectors.EVENT_READ)
            if not selector.select(max(0.0, end - time.monotonic())):
                self._give_up(f"{what}: the browser gave no answer within {self.answer_s:g} s")
        self._take(what)

    def _take(self, what: str) -> None:
        data = os.read(self._in, 1 << 20)
        if not data:
            self._give_up(f"{what}: {_ENDED}")
        *whole, begun = data.split(b"\0")
        if not whole:
            self._buffer += begun
            return
        whole[0] = bytes(self._buffer) + whole[0]
        self._buffer = bytearray(begun)
        for each in whole:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message
            elif listener := self._listeners.get(message.get("sessionId")):
                listener(message)

    def _give_up(self, message: str) -> None:
        """One that hangs is of no use to the next test either. One that ended has a code once it is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10 if message.endswith(_ENDED) else 0)
        code = self._process.poll()
        state = "still runs" if code is None else f"ended with {code}"
        stderr = (self.folder / "stderr").read_text(encoding="utf-8", errors="replace").strip()
        self.close()
        raise BrowserError(f"{message}\nits process {state}; its stderr:\n{stderr[-3000:] or '(empty)'}")
