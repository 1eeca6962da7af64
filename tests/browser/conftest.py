"""One browser for each process that runs tests, and a fresh page for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Page, browser_path
from tests.support.devtools import Browser


class _Browsers:
    """The browser of this process. One that ended or hung is replaced: one test alone fails for it."""

    def __init__(self) -> None:
        self._running: Browser | None = None

    def running(self) -> Browser:
        if self._running is None or self._running.closed:
            self._running = Browser(browser_path())
        return self._running

    def close(self) -> None:
        if self._running:
            self._running.close()


@pytest.fixture(scope="session")
def browsers() -> Iterator[_Browsers]:
    kept = _Browsers()
    yield kept
    kept.close()


@pytest.fixture
def page(browsers: _Browsers) -> Iterator[Page]:
    opened = Page(browsers.running())
    yield opened
    opened.close()
