"""The kit of the tests in a browser sees what it must: a page with a fault is not taken for one without."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.browser import Browsers, Page, PageError, axe_source, browser_path
from tests.support.devtools import Browser, BrowserError, CallRefusedError
from tests.support.local_servers import LocalServer, respond_json

STRICT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def written(folder: Path, body: str, *, csp: str = STRICT) -> Path:
    path = folder / "page with a blank.html"
    policy = f'<meta http-equiv="Content-Security-Policy" content="{csp}">'
    head = f'<meta charset="utf-8">{policy}<title>Tiny</title>'
    viewport = '<meta name="viewport" content="width=device-width">'
    path.write_text(
        f'<!doctype html><html lang="en">{head}{viewport}<body>{body}</body></html>', encoding="utf-8"
    )
    return path


def script(text: str) -> str:
    return f"<script>{text}</script>"


# ── what is evaluated ────────────────────────────────────────────────────────────────────────────


def test_a_page_without_fault_has_no_error_and_asks_for_itself_alone(page: Page, tmp_path: Path) -> None:
    dot = '<img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">'
    page.open(
        written(tmp_path, f"<h1>Hello</h1>{dot}{script('document.title += location.hash')}"),
        hash="#/a",
    )
    assert page.evaluate("document.title") == "Tiny#/a"
    assert page.text("h1") == "Hello"
    assert page.console_errors == []
    assert page.requests == [page.url]


def test_values_promises_and_exceptions_come_back(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, script("function broken() { throw new TypeError('no such order') }")))
    assert page.evaluate("({a: [1, null, 'x']})") == {"a": [1, None, "x"]}
    assert page.evaluate("Promise.resolve(location.protocol)") == "file:"
    for asked in ("broken()", "Promise.reject(new TypeError('no such order'))"):
        with pytest.raises(PageError, match="TypeError: no such order"):
            page.evaluate(asked)


def test_a_condition_is_waited_for_and_one_that_never_holds_is_an_error(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = "requestIdleCallback(() => document.body.append(document.createElement('hr')))"
    page.open(written(tmp_path, script(later)))
    page.wait_for("document.querySelector('hr').parentNode === document.body")
    monkeypatch.setattr("tests.support.browser.FRAMES", 200)
    with pytest.raises(PageError, match="Cannot read properties of null"):
        page.wait_for("document.querySelector('dl').parentNode")
    with pytest.raises(PageError, match="SyntaxError"):
        page.wait_for("document.(")


def test_opening_again_is_a_new_page_also_of_the_same_file(page: Page, tmp_path: Path) -> None:
    path = written(tmp_path, script("console.error('seen', location.hash)"))
    page.open(path, hash="#1")
    page.evaluate("window.kept = 1")
    page.open(path, hash="#2")
    assert page.evaluate("typeof window.kept") == "undefined"
    assert page.console_errors == ["seen #2"]
    assert page.requests == [page.url]


# ── what goes wrong in the page ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (script("console.error('lost', 3)"), "lost 3"),
        (script("console.assert(false, 'unsure')"), "unsure"),
        (script("throw new RangeError('too far')"), "RangeError: too far"),
        (script("Promise.reject(new Error('nobody catches'))"), "Error: nobody catches"),
        (script("alert('stop')"), "dialog: stop"),
        (script("eval('1')"), "unsafe-eval"),
        ('<img alt="" src="file:///nowhere.png">', "img-src data:"),
        ('<script src="file:///nowhere.js"></script>', "script-src"),
    ],
)
def test_what_the_console_shows_in_red_is_seen(page: Page, tmp_path: Path, body: str, part: str) -> None:
    page.open(written(tmp_path, body))
    page.wait_for("document.readyState === 'complete'")
    assert any(part in each for each in page.console_errors), page.console_errors


def test_inline_styles_and_scripts_are_refused_where_the_policy_does_not_name_them(
    page: Page, tmp_path: Path
) -> None:
    body = f'<p style="color: red">x</p>{script("window.ran = true")}'
    page.open(written(tmp_path, body, csp="default-src 'none'"))
    assert page.evaluate("typeof window.ran") == "undefined"
    assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(0, 0, 0)"
    assert len(page.console_errors) == 2
    assert all("Content Security Policy" in each for each in page.console_errors)


def test_every_request_is_seen(page: Page, tmp_path: Path) -> None:
    (tmp_path / "more.js").write_text("window.more = true", encoding="utf-8")
    with LocalServer(respond_json({})) as server:
        count = script(f"fetch('{server.url}/count')")
        body = f'<script src="more.js"></script>{count}'
        page.open(written(tmp_path, body, csp="default-src * 'unsafe-inline' file:"))
        page.wait_for("window.more")
        page.evaluate("new Promise(requestIdleCallback)")
        assert page.requests == [page.url, (tmp_path / "more.js").as_uri(), f"{server.url}/count"]


def test_no_page_reaches_another_machine(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, "", csp="default-src *"))
    with pytest.raises(PageError, match="Failed to fetch"):
        page.evaluate("fetch('http://example.com/')")
    assert any("ERR_NAME_NOT_RESOLVED" in each for each in page.console_errors)


# ── what a reader does ───────────────────────────────────────────────────────────────────────────


def test_a_click_is_one_of_the_mouse_at_the_place_of_the_element(page: Page, tmp_path: Path) -> None:
    show = "event => out.append(`${event.type} ${event.isTrusted} ${event.target.id},`)"
    hear = f"for (const kind of ['mousedown', 'mouseup', 'click']) addEventListener(kind, {show})"
    far = '<div style="height: 3000px"></div><button id="far">Go</button><p id="out"></p>'
    page.open(written(tmp_path, far + script(hear)))
    page.click("#far")
    assert page.text("#out") == "mousedown true far,mouseup true far,click true far,"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("", "is not in the page"),
        ('<button id="go" hidden>Go</button>', "is not shown"),
        (
            '<button id="go">Go</button><div style="position: fixed; inset: 0" id="veil"></div>',
            'is covered by <div style="position: fixed; inset: 0" id="veil">',
        ),
    ],
)
def test_what_nobody_could_click_is_not_clicked(page: Page, tmp_path: Path, body: str, fault: str) -> None:
    page.open(written(tmp_path, body))
    with pytest.raises(PageError, match=f"#go {fault}"):
        page.click("#go")


def test_keys_are_those_of_a_keyboard(page: Page, tmp_path: Path) -> None:
    show = "e => out.append([e.key, e.code, e.shiftKey, e.ctrlKey, e.isTrusted].join() + ' ')"
    hear = f"addEventListener('keydown', {show})"
    page.open(written(tmp_path, f'<p id="out"></p>{script(hear)}'))
    for key in ("j", "J", "?", "/", "7", "Enter", "Escape", "ArrowDown", "Space", "Shift+Tab", "Control+k"):
        page.press(key)
    assert page.text("#out").split(" ")[:3] == [
        "j,KeyJ,false,false,true",
        "J,KeyJ,true,false,true",
        "?,Slash,true,false,true",
    ]
    assert "Tab,Tab,true,false,true" in page.text("#out")
    assert "k,KeyK,false,true,true" in page.text("#out")
    assert "ArrowDown,ArrowDown,false,false,true" in page.text("#out")


def test_text_is_typed_where_the_focus_is(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, '<input id="one"><textarea id="two"></textarea>'))
    page.click("#one")
    page.type("v:failed score<3 “é 宽")
    page.press("Backspace")
    page.press("Tab")
    page.type("a\nb")
    assert page.evaluate("[one.value, two.value]") == ["v:failed score<3 “é ", "a\nb"]


def test_a_key_moves_the_focus_and_presses_a_button(page: Page, tmp_path: Path) -> None:
    page.open(
        written(
            tmp_path, '<a href="#/next" id="link">Next</a><button onclick="this.textContent = 1">0</button>'
        )
    )
    page.press("Tab")
    assert page.evaluate("document.activeElement.id") == "link"
    page.press("Enter")
    page.wait_for("location.hash === '#/next'")
    page.press("Tab")
    page.press("Space")
    assert page.text("button") == "1"


# ── what it takes away ───────────────────────────────────────────────────────────────────────────


def test_what_is_copied_is_read_whichever_way_it_was_copied(page: Page, tmp_path: Path) -> None:
    copy = "navigator.clipboard.writeText('agenteval run --last-failed')"
    page.open(written(tmp_path, f'<button onclick="{copy}">Copy</button><input value="chosen">'))
    page.click("button")
    assert page.clipboard() == "agenteval run --last-failed"
    page.click("input")
    page.press("Control+a")
    page.press("Control+c")
    assert page.clipboard() == "chosen"


def test_a_download_is_read(page: Page, tmp_path: Path) -> None:
    link = "a.href = URL.createObjectURL(new Blob(['{}\\n']))"
    page.open(written(tmp_path, f'<a id="a" download="greet.json">Save</a>{script(link)}'))
    page.click("a")
    assert page.download() == ("greet.json", b"{}\n")


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────

QUERIES = ["(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)", "print"]
MEDIA = f"{QUERIES}.map(query => matchMedia(query).matches)"


def test_dark_print_and_reduced_motion_are_what_media_queries_find(page: Page, tmp_path: Path) -> None:
    path = written(tmp_path, script(f"window.first = {MEDIA}"))
    page.open(path)
    assert page.evaluate("first") == [False, False, False]
    page.media(print=True)
    assert page.evaluate(MEDIA) == [False, False, True]
    page.media(reduced_motion=True)
    assert page.evaluate(MEDIA) == [False, True, False]
    page.open(path, dark=True)
    assert page.evaluate("first") == [True, False, False]


def test_a_phone_is_narrow_and_touched(page: Page, tmp_path: Path) -> None:
    path = written(tmp_path, script("window.first = [innerWidth, innerHeight, navigator.maxTouchPoints > 0]"))
    page.open(path)
    assert page.evaluate("first") == [1280, 800, False]
    page.open(path, width=390, height=844)
    assert page.evaluate("first") == [390, 844, True]


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_a_screenshot_is_an_image_of_the_window_or_of_the_whole_page(page: Page, tmp_path: Path) -> None:
    page.open(written(tmp_path, '<div style="height: 2000px; margin: -8px">x</div>'), width=800, height=500)
    page.screenshot(tmp_path / "window.png")
    page.screenshot(tmp_path / "page.png", full=True)
    assert png_size(tmp_path / "window.png") == (800, 500)
    assert png_size(tmp_path / "page.png") == (800, page.evaluate("document.documentElement.scrollHeight"))


# ── who cannot see it, or runs no scripts ────────────────────────────────────────────────────────


def test_a_screen_reader_is_given_roles_names_and_states(page: Page, tmp_path: Path) -> None:
    body = '<h2>Found</h2><button aria-expanded="true">More</button><p aria-hidden="true">Decoration</p>'
    page.open(written(tmp_path, body))
    found = {(node.role, node.name): node.states for node in page.accessibility_tree()}
    assert found["heading", "Found"]["level"] == 2
    assert found["button", "More"]["expanded"] is True
    assert not any("Decoration" in name for _, name in found)


@pytest.mark.parametrize("scripted", [True, False])
def test_axe_finds_a_field_without_a_label_under_a_strict_policy(
    page: Page, tmp_path: Path, scripted: bool
) -> None:
    whole = '<main><h1>Found</h1><label for="b">Name</label> <input id="b"> {}</main>'
    strict = "default-src 'none'"
    page.open(written(tmp_path, whole.format(""), csp=strict), script=scripted)
    assert page.axe() == []
    page.open(written(tmp_path, whole.format('<input id="a">'), csp=strict), script=scripted)
    (violation,) = page.axe()
    assert (violation.rule, violation.impact, violation.places) == ("label", "critical", ("#a",))
    assert page.evaluate("typeof axe") == "undefined"
    assert page.console_errors == []
    assert page.requests == [page.url]


def test_axe_finds_a_contrast_that_is_too_low_in_the_dark_alone(page: Page, tmp_path: Path) -> None:
    style = "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #444 } }</style>"
    path = written(tmp_path, f"{style}<main><h1>Found</h1></main>")
    page.open(path)
    assert page.axe() == []
    page.open(path, dark=True)
    assert [each.rule for each in page.axe()] == ["color-contrast"]


def test_without_scripts_the_page_is_as_its_file_has_it(page: Page, tmp_path: Path) -> None:
    body = f'<noscript>Plain</noscript><p id="p">static</p>{script("p.textContent = 1")}'
    page.open(written(tmp_path, body), script=False)
    assert page.text("body") == "Plain\n\nstatic"
    page.wait_for("document.querySelector('#p').textContent === 'static'")
    page.frame()
    page.open(written(tmp_path, body))
    assert page.text("body") == "1"


# ── no browser, and one that does not do what it should ────────────────────────────────────────────────────


def test_where_there_is_no_browser_tests_are_skipped_unless_one_is_required(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TESTS_BROWSER", raising=False)
    monkeypatch.delenv("TESTS_REQUIRE_BROWSER", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for absent in (browser_path, axe_source):
        with pytest.raises(pytest.skip.Exception, match="make browser"):
            absent()
    monkeypatch.setenv("TESTS_REQUIRE_BROWSER", "1")
    for absent in (browser_path, axe_source):
        with pytest.raises(pytest.fail.Exception, match="make browser"):
            absent()


def test_a_browser_is_found_by_its_name_or_named_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "exit").rename(tmp_path / "mine")
    program(tmp_path, "exit")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TESTS_BROWSER", raising=False)
    assert browser_path() == tmp_path / "chromium"
    monkeypatch.setenv("TESTS_BROWSER", str(tmp_path / "mine"))
    assert browser_path() == tmp_path / "mine"
    monkeypatch.setenv("TESTS_BROWSER", str(tmp_path / "missing"))
    with pytest.raises(BrowserError, match=r"TESTS_BROWSER is .*missing"):
        browser_path()


def test_a_page_that_hangs_fails_the_test_and_ends_the_browser(tmp_path: Path) -> None:
    browser = Browser(browser_path())
    page = Page(browser)
    page.open(written(tmp_path, ""))
    browser.answer_s = 1
    with pytest.raises(BrowserError, match=r"Runtime.evaluate: the browser gave no answer within 1 s"):
        page.evaluate("(() => { for (;;); })()")
    assert browser.closed
    with pytest.raises(BrowserError, match="was closed"):
        page.evaluate("1")
    page.close()


def test_a_page_that_crashes_fails_the_test_and_no_other(browsers: Browsers, tmp_path: Path) -> None:
    page = Page(browsers.running())
    with pytest.raises(BrowserError, match="crashed"):
        page.call("Page.crash")
    with pytest.raises(BrowserError, match="crashed"):
        page.evaluate("1")
    page.close()
    other = Page(browsers.running())
    other.open(written(tmp_path, "x"))
    assert other.text("body") == "x"
    other.close()


def test_a_program_that_ends_is_named_with_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(BrowserError) as fault:
        Browser(program(tmp_path, "echo cannot open display >&2; exit 7"))
    assert "Browser.getVersion" in str(fault.value)
    assert "ended with 7" in str(fault.value)
    assert "cannot open display" in str(fault.value)


def test_a_program_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    with pytest.raises(BrowserError, match="gave no answer within 1 s\nits process still runs"):
        Browser(program(tmp_path, "exec /bin/sleep 600"), answer_s=1)


def program(folder: Path, line: str) -> Path:
    path = folder / "chromium"
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_call_that_the_browser_refuses_leaves_it_running(page: Page) -> None:
    with pytest.raises(CallRefusedError, match=r"No\.such: "):
        page.call("No.such")
    assert page.evaluate("1") == 1


def test_a_fresh_page_has_nothing_of_the_last(page: Page, browsers: Browsers, tmp_path: Path) -> None:
    path = written(tmp_path, "")
    page.open(path)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    other = Page(browsers.running())
    other.open(path)
    assert other.evaluate("localStorage.getItem('theme')") is None
    page.wait_for("localStorage.getItem('theme') === 'dark'")  # still painted, behind the other
    other.close()
