"""One browser for each process that runs tests, and a fresh page for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browsers, Page


@pytest.fixture(scope="session")
def browsers() -> Iterator[Browsers]:
    kept = Browsers()
    yield kept
    kept.close()


@pytest.fixture
def page(browsers: Browsers) -> Iterator[Page]:
    opened = Page(browsers.running())
    yield opened
    opened.close()
