"""A page in a real browser, as a test sees it: opened from its file, read, clicked, typed into.

::

    page.open(tmp_path / "report.html", hash="#/c/greet", dark=True)
    page.click("#filter")
    page.type("v:failed")
    page.wait_for("document.querySelectorAll('#list tbody tr').length === 2")
    assert page.console_errors == []
    assert page.requests == [page.url]

Nothing waits for a time: a condition is asked for at each frame that the page paints.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.devtools import (
    ABSENT,
    NO_PIPES,
    Browser,
    BrowserError,
    CallRefusedError,
    Event,
    find_browser,
)

REQUIRED_VARIABLE = "TESTS_REQUIRE_BROWSER"
"""Where it is 1, the lack of a browser or of axe-core is a failure and no skip: in CI."""
AXE_ABSENT = "needs axe-core: make browser installs it (CONTRIBUTING.md, Tests in a browser)"
FRAMES = 1800
"""How many frames a condition may take: thirty seconds of a page at full speed, more of a slow one."""
_FRAMES_A_CALL = 200
PHONE_WIDTH = 600
"""A narrower page is on a phone: it is touched, and ``<meta name=viewport>`` counts."""

SHIFT, CONTROL, ALT, META = 8, 2, 1, 4
_MODIFIERS = {"Shift": SHIFT, "Control": CONTROL, "Alt": ALT, "Meta": META}
_NAMED_KEYS = {
    "Backspace": 8,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "Space": 32,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Delete": 46,
}
_TEXTS = {"Enter": ("Enter", "\r"), "Space": (" ", " ")}
_PUNCTUATION = {
    " ": (32, "Space"),
    ";": (186, "Semicolon"),
    "=": (187, "Equal"),
    ",": (188, "Comma"),
    "-": (189, "Minus"),
    ".": (190, "Period"),
    "/": (191, "Slash"),
    "`": (192, "Backquote"),
    "[": (219, "BracketLeft"),
    "\\": (220, "Backslash"),
    "]": (221, "BracketRight"),
    "'": (222, "Quote"),
}
_SHIFTED = dict(zip('~!@#$%^&*()_+{}|:"<>?', "`1234567890-=[]\\;',./", strict=True))
_EDITING = {"a": "selectAll", "c": "copy", "v": "paste", "x": "cut", "z": "undo"}

_WAIT = """
(async () => {
  let thrown = null;
  for (let frame = 0; frame < %d; frame++) {
    try {
      if (await (%s)) return true;
      thrown = null;
    } catch (error) { thrown = String(error); }
    await new Promise(requestAnimationFrame);
  }
  return thrown;
})()
"""

_PLACE = """
(() => {
  const wanted = %s, element = document.querySelector(wanted);
  if (!element) return {fault: 'is not in the page'};
  element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  const box = [...element.getClientRects()].find(each => each.width && each.height);
  if (!box) return {fault: 'is not shown'};
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const hit = document.elementFromPoint(x, y);
  if (!hit) return {fault: `is outside the window, at ${x}, ${y}`};
  if (hit !== element && !element.contains(hit) && !hit.contains(element))
    return {fault: 'is covered by ' + hit.outerHTML.slice(0, 200)};
  return {x, y};
})()
"""

_AXE = """
axe.run(document, {resultTypes: ['violations'], preload: false}).then(found => found.violations.map(each => ({
  rule: each.id, impact: each.impact, help: each.help,
  places: each.nodes.map(node => node.target.join(' ')),
  summaries: each.nodes.map(node => node.failureSummary),
})))
"""


class PageError(Exception):
    """What ran in the page threw: its text, with the stack."""


@dataclass(frozen=True)
class AxeViolation:
    """A rule of axe-core that is broken. ``impact``: minor, moderate, serious or critical. ``places``:
    selectors of what breaks it; ``summaries``: what would mend each."""

    rule: str
    impact: str
    help: str
    places: tuple[str, ...]
    summaries: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class AccessibleNode:
    """What a screen reader is given. ``states``: focused, expanded, checked, level … where they are set."""

    depth: int
    role: str
    name: str
    states: Mapping[str, Any]


_LAYOUT = ("InlineTextBox", "LineBreak")
"""Roles of a text's lines, which depend on its width."""


def _leave_out(reason: str) -> NoReturn:
    if os.environ.get(REQUIRED_VARIABLE) == "1":
        pytest.fail(f"{REQUIRED_VARIABLE}=1: {reason}")
    pytest.skip(reason)


def browser_path() -> Path:
    """The browser; where there is none the test is skipped, or fails where one is required."""
    if os.name == "nt":
        pytest.skip(NO_PIPES)
    path = find_browser()
    if path is None:
        _leave_out(ABSENT)
    return path


def axe_source() -> str:
    """axe-core, of the wheel that carries it; what else is in there needs playwright, and is not imported."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        _leave_out(AXE_ABSENT)
    return Path(found.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")


class Browsers:
    """The browser of this process, started when it is first used. One that ended or hung is replaced, so that
    one test alone fails for it."""

    def __init__(self) -> None:
        self._running: Browser | None = None

    def running(self) -> Browser:
        if self._running is None or self._running.closed:
            self._running = Browser(browser_path())
        return self._running

    def close(self) -> None:
        if self._running:
            self._running.close()


class Page:
    """A tab in a context of its own: no storage, clipboard permission or download is another test's.

    ``url``: what was opened last. ``console_errors``: what the console shows in red since then: errors that
    the page logs, exceptions that nobody catches, what its CSP refuses, resources that fail to load; and
    dialogs, which are closed. ``requests``: the addresses that the page has asked for since then, also in
    vain; the contents of ``data:`` are no request."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]
        self._target = browser.call(
            "Target.createTarget", {"url": "about:blank", "browserContextId": self._context}
        )["targetId"]
        attached = browser.call("Target.attachToTarget", {"targetId": self._target, "flatten": True})
        self._session = attached["sessionId"]
        self._folder = browser.folder / "downloads"
        self.url = "about:blank"
        self.console_errors: list[str] = []
        self.requests: list[str] = []
        self._loaded: set[str] = set()
        self._crashed = False
        self._scripted = True
        self._downloads: dict[str, str] = {}
        self._downloaded: list[str] = []
        browser.listen(self._session, self._hear)
        for domain in ("Page", "Runtime", "Network", "Log", "Inspector"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self._ask_browser("Browser.grantPermissions", permissions=allowed)
        kept = {"behavior": "allowAndName", "downloadPath": str(self._folder), "eventsEnabled": True}
        self._ask_browser("Browser.setDownloadBehavior", **kept)
        browser.listen(None, self._hear_browser)

    # ── what is opened, and how ──────────────────────────────────────────────────────────────────

    def open(
        self,
        what: Path | str,
        *,
        hash: str = "",
        dark: bool = False,
        width: int = 1280,
        height: int = 800,
        script: bool = True,
    ) -> None:
        """Open a file or an address as a new page, which has loaded when this returns. ``script``: whether
        its own scripts run; what a test evaluates does, in either case."""
        self._go("about:blank")
        self.resize(width, height)
        self.media(dark=dark)
        self._scripted = script
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.console_errors.clear()
        self.requests.clear()
        address = what.resolve().as_uri() if isinstance(what, Path) else what
        self._go(address + hash)
        self.url = address

    def resize(self, width: int, height: int = 800) -> None:
        """The size of the window, in CSS pixels, each of them one pixel of a screenshot."""
        phone = width < PHONE_WIDTH
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def media(self, *, print: bool = False, dark: bool = False, reduced_motion: bool = False) -> None:
        """What the page's media queries find. Whatever is left out is as it is by default."""
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if reduced_motion else "no-preference",
        }
        pairs = [{"name": name, "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media="print" if print else "", features=pairs)

    # ── what is done ─────────────────────────────────────────────────────────────────────────────

    def evaluate(self, js: str) -> Any:
        """The value of an expression, as JSON; of a promise, what it comes to.

        PageError: it threw."""
        return self._evaluate(js)

    def wait_for(self, js: str) -> None:
        """Ask at each frame until the expression is true. One that throws is not true yet.

        PageError: it never was."""
        answer = None
        for _ in range(FRAMES // _FRAMES_A_CALL):
            with (
                contextlib.suppress(CallRefusedError),
                self._frames(),
            ):  # it gave way to another page
                answer = self._evaluate(_WAIT % (_FRAMES_A_CALL, js))
            if answer is True:
                return
        seen = "\n".join(self.console_errors) or "none"
        raise PageError(f"not so within {FRAMES} frames: {js}\nit threw: {answer}\nconsole errors: {seen}")

    def frame(self) -> None:
        """Return when what was done has been painted."""
        with self._frames():
            self._evaluate(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
            )

    def press(self, key: str) -> None:
        """A key of an American keyboard: ``a``, ``?``, ``Enter``, ``Shift+Tab``, ``Control+a``."""
        *held, name = key.split("+") if len(key) > 1 else [key]
        name = name or "+"
        modifiers = sum(_MODIFIERS[each] for each in held)
        event = _key_event(name, modifiers)
        if modifiers & (CONTROL | META):
            event.pop("text", None)
            commands = [_EDITING[name]] if name in _EDITING else []
            self.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=commands, **event)
        else:
            self.call("Input.dispatchKeyEvent", type="keyDown" if "text" in event else "rawKeyDown", **event)
        event.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Press the keys of a text, each; what has no key is put in as by an input method."""
        for each in text:
            if each == "\n":
                self.press("Enter")
            elif each.isascii():
                self.press(each)
            else:
                self.call("Input.insertText", text=each)

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first that the selector finds, scrolled into view.

        PageError: it is not there, not shown, or covered by something else."""
        place = self._evaluate(_PLACE % json.dumps(selector))
        if "fault" in place:
            raise PageError(f"{selector} {place['fault']}")
        at = {"x": place["x"], "y": place["y"]}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    # ── what is seen ─────────────────────────────────────────────────────────────────────────────

    def text(self, selector: str) -> str:
        """The text of the first that the selector finds, as it is shown: what is hidden is not in it."""
        found = self._evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")
        if found is None:
            raise PageError(f"{selector} is not in the page")
        return str(found)

    def texts(self, selector: str) -> list[str]:
        """The text of each, in the page's order."""
        return list(
            self._evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")
        )

    def screenshot(self, path: Path, *, full: bool = False) -> None:
        """Write what the window shows as PNG; ``full``: the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(shot["data"]))

    def clipboard(self) -> str:
        """What the page, or a key, has copied."""
        return str(self._evaluate("navigator.clipboard.readText()"))

    def download(self) -> tuple[str, bytes]:
        """The name and the contents of the next download that no call has returned yet, once it is whole."""
        self._browser.wait_until(lambda: bool(self._downloaded), "a download")
        number = self._downloaded.pop(0)
        return self._downloads[number], (self._folder / number).read_bytes()

    def accessibility_tree(self) -> list[AccessibleNode]:
        """What a screen reader is given, in its order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        return list(_accessible(nodes[0], by_id, 0))

    def axe(self) -> list[AxeViolation]:
        """What breaks a rule of axe-core, in a world that the page's own scripts do not see."""
        frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = self.call("Page.createIsolatedWorld", frameId=frame, worldName="axe")["executionContextId"]
        self._evaluate(axe_source() + "\n;null", world)
        with self._frames():
            found = self._evaluate(_AXE, world)
        return [
            AxeViolation(
                each["rule"], each["impact"], each["help"], tuple(each["places"]), tuple(each["summaries"])
            )
            for each in found
        ]

    # ── the protocol ─────────────────────────────────────────────────────────────────────────────

    def call(self, method: str, **params: Any) -> Any:
        """A call of the DevTools protocol, for what has no method here."""
        if self._crashed:
            raise BrowserError(f"{method}: the page's process has crashed")
        return self._browser.call(method, params, self._session)

    def close(self) -> None:
        if not self._browser.closed:
            self._browser.listen(self._session, None)
            self._browser.listen(None, None)
            self._browser.call("Target.disposeBrowserContext", {"browserContextId": self._context})

    @contextlib.contextmanager
    def _frames(self) -> Iterator[None]:
        """What waits for a frame or a task needs scripts. Those of the page were left out when it loaded."""
        if self._scripted:
            yield
            return
        self.call("Emulation.setScriptExecutionDisabled", value=False)
        yield
        self.call("Emulation.setScriptExecutionDisabled", value=True)

    def _ask_browser(self, method: str, **params: Any) -> None:
        self._browser.call(method, {"browserContextId": self._context, **params})

    def _go(self, url: str) -> None:
        answer = self.call("Page.navigate", url=url)
        if error := answer.get("errorText"):
            raise PageError(f"{url} does not open: {error}")
        loader = answer.get("loaderId")
        self._browser.wait_until(lambda: loader in self._loaded, f"{url} does not load")

    def _evaluate(self, js: str, world: int | None = None) -> Any:
        where = {} if world is None else {"contextId": world}
        answer = self.call(
            "Runtime.evaluate",
            expression=js,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
            **where,
        )
        if thrown := answer.get("exceptionDetails"):
            raise PageError(_exception_text(thrown))
        return answer["result"].get("value")

    def _hear(self, event: Event) -> None:
        params = event["params"]
        match event["method"]:
            case "Page.lifecycleEvent" if params["name"] == "load":
                self._loaded.add(params["loaderId"])
            case "Page.javascriptDialogOpening":
                self.console_errors.append(f"dialog: {params['message']}")
                self._browser.send("Page.handleJavaScriptDialog", {"accept": True}, self._session)
            case "Inspector.targetCrashed":
                self._crashed = True
                raise BrowserError(f"{self.url}: the page's process crashed")
            case "Network.requestWillBeSent" if not params["request"]["url"].startswith("data:"):
                self.requests.append(params["request"]["url"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.console_errors.append(" ".join(map(_shown, params["args"])))
            case "Runtime.exceptionThrown":
                self.console_errors.append(_exception_text(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                entry = params["entry"]
                self.console_errors.append(f"{entry['source']}: {entry['text']}")

    def _hear_browser(self, event: Event) -> None:
        params = event["params"]
        match event["method"]:
            case "Browser.downloadWillBegin":
                self._downloads[params["guid"]] = params["suggestedFilename"]
            case "Browser.downloadProgress" if params["state"] == "completed":
                self._downloaded.append(params["guid"])


def _key_event(name: str, modifiers: int) -> dict[str, Any]:
    if name in _NAMED_KEYS:
        key, text = _TEXTS.get(name, (name, None))
        number, code = _NAMED_KEYS[name], name
    else:
        key = text = name
        plain = _SHIFTED.get(name, name.lower())
        modifiers |= SHIFT * (plain != name)
        prefix = "Digit" if plain.isdigit() else "Key"
        number, code = _PUNCTUATION.get(plain) or (ord(plain.upper()), prefix + plain.upper())
    event = {"key": key, "code": code, "modifiers": modifiers, "windowsVirtualKeyCode": number}
    return event if text is None else {**event, "text": text}


def _exception_text(details: Mapping[str, Any]) -> str:
    thrown = details.get("exception", {})
    return str(thrown.get("description") or f"{details['text']} {_shown(thrown)}")


def _shown(argument: Mapping[str, Any]) -> str:
    return str(argument.get("value", argument.get("description", "")))


def _accessible(node: Mapping[str, Any], by_id: Mapping[str, Any], depth: int) -> Iterator[AccessibleNode]:
    if not node.get("ignored") and node["role"]["value"] not in _LAYOUT:
        states = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
        name = node.get("name", {}).get("value", "")
        yield AccessibleNode(depth, node["role"]["value"], name, states)
        depth += 1
    for child in node.get("childIds", ()):
        if child in by_id:
            yield from _accessible(by_id[child], by_id, depth)
