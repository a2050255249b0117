"""The ASGI application: routes, guards, headers and errors around the handlers.

Called by `trimtab.http.server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtab.http.api import Api
from trimtab.http.asked import AccessView
from trimtab.http.endpoints import ENDPOINTS, Endpoint
from trimtab.http.guard import SECURITY, check_host, check_origin, check_token
from trimtab.http.metrics import Requests
from trimtab.http.openapi import document
from trimtab.http.others import Others
from trimtab.http.page import Asset, asset, assets
from trimtab.http.problem import Problem
from trimtab.http.settings import NO_TOKEN, TOKEN_FILE, Access
from trimtab.service.views import ServiceFace

log = logging.getLogger(__name__)

MOST_REQUESTS = 256  # under way, beside probes
PROBES = ("/healthz", "/readyz", "/metrics")

Responds = Callable[[Request], Awaitable[Response]]


def application(
    face: ServiceFace, access: Access, patience: float, version: str, others: Others, name: str | None
) -> tuple[Starlette, Api]:
    """The application and its handlers; to be run on one event loop. `name` is that of the cluster on the page."""
    requests = Requests()
    api = Api(face, _told(access), patience, requests, others, name)
    spec = json.dumps(document(version), ensure_ascii=False, indent=1).encode()
    routes = [_route(endpoint, api, access) for endpoint in _most_exact_first()]
    routes.append(Route("/api/v1/openapi.json", _fixed(asset(spec, "application/json")), name="openapi"))
    routes += [Route(path, _fixed(file), name=path) for path, file in assets().items()]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def told() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no client listens any more
                loop.call_soon_threadsafe(api.events.told)

        end = face.watch(told)
        try:
            yield
        finally:
            end()

    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={404: _unknown, 405: _unknown, Problem: _problem}
    )
    app.router.redirect_slashes = False
    app.add_middleware(Doorkeeper, access=access, requests=requests)
    return app, api


def _told(access: Access) -> AccessView:
    change = access.token is not None
    return AccessView(
        read="token" if access.read_token else "open",
        change="token" if change else "refused",
        why_refused=None if change else f"{NO_TOKEN} {TOKEN_FILE}",
    )


def _most_exact_first() -> list[Endpoint]:
    return sorted(ENDPOINTS, key=lambda e: "{" in e.path)


def _route(endpoint: Endpoint, api: Api, access: Access) -> Route:
    async def respond(request: Request) -> Response:
        if endpoint.method == "POST":
            check_origin(request.headers.get("host", ""), request.headers, access)
        check_token(request.headers.get("authorization"), endpoint.access, access)
        return await endpoint.handler(api, request)

    return Route(endpoint.path, respond, methods=[endpoint.method], name=endpoint.path)


def _fixed(file: Asset) -> Responds:
    async def respond(request: Request) -> Response:
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, 200, headers | {"Content-Encoding": "gzip"}, file.media)
        return Response(file.body, 200, headers, file.media)

    return respond


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _unknown(request: Request, error: Exception) -> Response:
    if getattr(error, "status_code", 404) == 405:
        allowed = getattr(error, "headers", None) or {}
        return Problem(
            405,
            f"{request.method} is not for this path.",
            f"Use {allowed.get('Allow', 'another method')}.",
            allowed,
        ).response()
    return Problem(
        404, "There is nothing at this path.", "See /api/v1/openapi.json for what there is."
    ).response()


class Doorkeeper:
    """Around everything: the host check, headers that every answer has, words for unforeseen errors, and the count."""

    def __init__(self, app: ASGIApp, access: Access, requests: Requests) -> None:
        self._app = app
        self._access = access
        self._requests = requests
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        headed = False

        async def sending(message: Message) -> None:
            nonlocal headed
            if message["type"] == "http.response.start":
                headed = True
                headers = MutableHeaders(scope=message)
                for key, value in SECURITY.items():
                    headers.setdefault(key, value)
                self._requests.answered(
                    _path(scope), scope["method"], message["status"], time.monotonic() - began
                )
            await send(message)

        self._under_way += 1
        try:
            check_host(Headers(scope=scope).get("host", ""), self._access)
            if self._under_way > MOST_REQUESTS and scope["path"] not in PROBES:
                raise Problem(503, f"{MOST_REQUESTS} requests are under way already.", "Try again in a moment.", {"Retry-After": "5"})
            await self._app(scope, receive, sending)
        except Problem as problem:
            await problem.response()(scope, receive, sending)
        except Exception:
            log.exception("no answer to %s %s", scope["method"], _path(scope))
            if not headed:
                detail = "The service failed over this request."
                await Problem(500, detail, "Its log says why; that is a bug worth a report.").response()(
                    scope, receive, sending
                )
        finally:
            self._under_way -= 1


def _path(scope: Scope) -> str:
    """The route's template, so that what strangers ask for is no label."""
    route = scope.get("route")
    return route.path if isinstance(route, Route) else "other"
