"""Chromium for the tier, where it is installed; one tab a test, which must end without a word on the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from tests.browser.chromium import Chromium, Tab, found
from tests.browser.page import TOKEN, Opening
from tests.service_face import FakeFace
from trimtab.http import HttpServer, HttpSettings, serve


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


@pytest.fixture
def opening(tab: Tab) -> Iterator[Opening]:
    """Serves a face and opens the page of it."""
    running: list[HttpServer] = []

    def start(face: FakeFace, **settings: Any) -> HttpServer:
        chosen: dict[str, Any] = {"port": 0, "token": SecretStr(TOKEN)} | settings
        server = serve(face, HttpSettings(**chosen))
        running.append(server)
        tab.open(server.url)
        return server

    yield start
    tab.open("about:blank#over")
    for server in running:
        server.stop()
