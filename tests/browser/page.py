"""What tests of the live page share."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.http import HttpServer

TOKEN = "a-token-of-some-length"
LOADED = (
    "document.querySelector('#live').textContent === 'live' && document.querySelector('table.decisions')"
    " && document.querySelector('#verdict .tone').textContent !== 'Connecting'"
)

Opening = Callable[..., HttpServer]
