"""How large the page of a run is, and how long its reader waits.

    python -m benchmarks.page                     pages of synthetic runs of 1,000 and 10,000 conversations
    python -m benchmarks.page --real-turns        with as many turns as real conversations have
    python -m benchmarks.page FILE...             pages that are there
    python -m benchmarks.page -n 9 --counts 1000

Times are the browser's own, from what the reader does to the frame in which it is painted, in milliseconds:
the least, the median and the most of ``-n`` repetitions, each in a new page. What is asked of a page:

- ``<html data-ready>`` is set once its list can be used;
- ``#list tbody tr`` are the rows, with links ``#/c/...`` to conversations, and ``#more`` shows more of them;
- ``#filter`` is the box of the filter;
- the children of ``#conversation`` are replaced when ``location.hash`` opens another one;
- ``#search-all`` searches in all conversations for what is in the box, and has another name meanwhile.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.reporters.html.document import render
from agenteval.reporters.options import ReportOptions
from tests.support.browser import Page
from tests.support.devtools import ABSENT, Browser, find_browser
from tests.support.synthetic_runs import REAL_TURNS, TURNS, synthetic_run

COUNTS = (1_000, 10_000)
REPETITIONS = 5
FILTERED = "booking"
"""What is typed: each letter is a measurement, as is taking it back."""
SEARCHED = "kilowattstunde"
"""A word that few conversations hold."""
OPENED = 12
"""How many conversations are opened in a repetition, from all over the list: few are in one block."""

# After what is done in it, a frame is painted: what comes by a message channel comes next.
_PAINTED = """
const painted = () => new Promise(done => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.now());
  channel.port2.postMessage(0);
}));
"""
_READY = f"""
{_PAINTED}
window.readyAt = new Promise(done => new MutationObserver((_, observer) => {{
  if (!document.documentElement || !('ready' in document.documentElement.dataset)) return;
  observer.disconnect();
  painted().then(done);
}}).observe(document, {{attributes: true, attributeFilter: ['data-ready'], subtree: true}}));
window.contentAt = new Promise(done => new PerformanceObserver(list => {{
  const [first] = list.getEntriesByName('first-contentful-paint');
  if (first) done(first.startTime);
}}).observe({{type: 'paint', buffered: true}}));
"""
_NEXT_KEY = f"""
{{ {_PAINTED}
window.keyMs = new Promise(done => document.querySelector('#filter').addEventListener('input',
  event => painted().then(now => done(now - event.timeStamp)), {{once: true, capture: true}})); }}
null
"""
_OPEN = f"""
(async () => {{ {_PAINTED}
  const place = document.querySelector('#conversation'), began = performance.now();
  const drawn = new Promise(done => new MutationObserver((_, observer) => {{
    observer.disconnect();
    done();
  }}).observe(place, {{childList: true}}));
  location.hash = HASH;
  await drawn;
  return await painted() - began;
}})()
"""
_BACK = f"""
(async () => {{ {_PAINTED}
  const place = document.querySelector('#list tbody'), began = performance.now();
  const drawn = new Promise(done => addEventListener('hashchange', done, {{once: true}}));
  location.hash = '#/';
  await drawn;
  return await painted() - began;
}})()
"""
_SEARCH = f"""
(async () => {{ {_PAINTED}
  const box = document.querySelector('#filter'), button = document.querySelector('#search-all');
  const name = button.textContent, began = performance.now();
  box.value = SEARCHED;
  const done = new Promise(done => {{
    let isBusy = false;
    const look = () => {{
      if (button.textContent !== name) isBusy = true;
      else if (isBusy) return done();
      requestAnimationFrame(look);
    }};
    new MutationObserver(look).observe(button, {{childList: true, characterData: true, subtree: true}});
  }});
  button.click();
  await done;
  const ms = await painted() - began;
  return [ms, document.querySelectorAll('#list tbody tr').length];
}})()
"""
_ALL_LINKS = """
(() => {
  const more = document.querySelector('#more');
  while (more && more.checkVisibility()) more.click();
  const rows = [...document.querySelectorAll('#list tbody tr')];
  return rows.map(row => row.querySelector('a[href^="#/c/"]')?.hash);
})()
"""


@dataclass
class Times:
    """What was measured of a page, in milliseconds; of a step that the page does not have, nothing."""

    first_content: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    keystroke: list[float] = field(default_factory=list)
    open: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    heap_mb: list[float] = field(default_factory=list)
    elements: int = 0
    hits: int = 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-n", "--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--real-turns", action="store_true")
    return parser.parse_args()


def main() -> int:
    chosen = _arguments()
    path = find_browser()
    if path is None:
        sys.stderr.write(f"{ABSENT}\n")
        return 2
    browser = Browser(path)
    sys.stdout.write(f"{browser.version}, {chosen.repetitions} repetitions\n")
    try:
        with tempfile.TemporaryDirectory() as folder:
            turns = REAL_TURNS if chosen.real_turns else TURNS
            for file in chosen.files or synthetic_pages(chosen.counts, turns, Path(folder)):
                _show(file, measure(browser, file, chosen.repetitions))
    finally:
        browser.close()
    return 0


def synthetic_pages(counts: Sequence[int], turns: tuple[int, int], folder: Path) -> Iterator[Path]:
    """The page of each run, in a file."""
    for count in counts:
        report, decision = synthetic_run(count, turns=turns)
        began = time.process_time()
        text = render(report, decision, ReportOptions())
        path = folder / f"{count}-conversations.html"
        path.write_text(text, encoding="utf-8")
        took = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(f"\n{count:,} conversations: rendered in {took:.2f} s of CPU, {peak:.0f} MB\n")
        yield path


def measure(browser: Browser, file: Path, repetitions: int) -> Times:
    """All steps, so many times."""
    times = Times()
    links = _links(browser, file)
    chosen = links[:: max(1, len(links) // OPENED)][:OPENED]
    for _ in range(repetitions):
        page = _quiet_page(browser)
        _measure_once(page, file, chosen, times)
        page.close()
    return times


def _quiet_page(browser: Browser) -> Page:
    """A page of which nobody is told: what the tests want to know costs time."""
    page = Page(browser)
    page.call("Network.disable")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=_READY)
    return page


def _links(browser: Browser, file: Path) -> list[str]:
    """One of each row, of all rows."""
    page = _quiet_page(browser)
    page.open(file)
    page.evaluate("readyAt")
    found = [link for link in page.evaluate(_ALL_LINKS) if link]
    page.close()
    return found


def _measure_once(page: Page, file: Path, links: Sequence[str], times: Times) -> None:
    page.open(file)
    times.ready.append(page.evaluate("readyAt"))
    times.first_content.append(page.evaluate("contentAt"))
    page.call("HeapProfiler.collectGarbage")
    times.heap_mb.append(page.call("Runtime.getHeapUsage")["usedSize"] / 1e6)
    times.elements = page.evaluate("document.querySelectorAll('*').length")
    page.click("#filter")
    for key in (*FILTERED, *["Backspace"] * len(FILTERED)):
        page.evaluate(_NEXT_KEY)
        page.press(key)
        times.keystroke.append(page.evaluate("keyMs"))
    for link in links:
        times.open.append(page.evaluate(_OPEN.replace("HASH", json.dumps(link))))
        times.back.append(page.evaluate(_BACK))
    took, times.hits = page.evaluate(_SEARCH.replace("SEARCHED", json.dumps(SEARCHED)))
    times.search.append(took)


def _show(file: Path, times: Times) -> None:
    size = file.stat().st_size / 1e6
    sys.stdout.write(f"{file.name}: {size:.2f} MB, {times.elements:,} elements\n")
    rows = {
        "first content, ms": times.first_content,
        "ready, ms": times.ready,
        "a keystroke in the filter, ms": times.keystroke,
        "open a conversation, ms": times.open,
        "back to the list, ms": times.back,
        f"search all text ({times.hits} rows shown), ms": times.search,
        "memory of the script, MB": times.heap_mb,
    }
    for title, values in rows.items():
        spread = f"{min(values):.0f} / {statistics.median(values):.0f} / {max(values):.0f}"
        sys.stdout.write(f"  {title:38} n {len(values):<4} {spread}\n")


if __name__ == "__main__":
    sys.exit(main())
