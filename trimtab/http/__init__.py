"""The service over HTTP: answers for programs, figures for Prometheus, one page for people.

Called by the service, which hands in itself as a `ServiceFace`. Knows nothing of the service but that. Names load on first use,
so that reading a configuration needs no web server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.http.server import HttpServer, serve
    from trimtab.http.settings import HttpSettings

__all__ = ["HttpServer", "HttpSettings", "serve"]

_HOME = {"HttpServer": "server", "HttpSettings": "settings", "serve": "server"}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
