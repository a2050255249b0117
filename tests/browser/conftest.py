"""Chromium for the tier, where it is installed; one tab a test, which must end without a word on the console."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import Chromium, Tab, found


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = found()
    if program is None:
        pytest.skip("Chromium is needed to test the page, and none was found: install it (Debian: apt install chromium)")
    with Chromium(program, tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def tab(chromium: Chromium) -> Iterator[Tab]:
    """Fails the test where the page complained, or asked for something from elsewhere."""
    with chromium.tab() as tab:
        tab.show_as(1400)
        yield tab
        tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert tab.troubles == []
        elsewhere = [url for url in tab.requests if urlsplit(url).hostname not in ("127.0.0.1", None)]
        assert elsewhere == [], "the page asked for something from elsewhere"
