"""The service over HTTP: answers for programs, figures for Prometheus, one page for people.

Called by the service, which hands in itself as a `ServiceFace`. Knows nothing of the service but that.
"""

from __future__ import annotations

from trimtab.http.server import HttpServer, serve
from trimtab.http.settings import HttpSettings

__all__ = ["HttpServer", "HttpSettings", "serve"]
