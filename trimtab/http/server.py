"""The server: one thread with an event loop of its own, beside the service's other threads.

Called by the service. `serve` returns when requests are taken; what is wrong with the settings or the address is said before.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading

import uvicorn

from cluster_model.errors import ExternalError
from trimtab import __version__
from trimtab.http.api import Api
from trimtab.http.app import application
from trimtab.http.connections import KEEP_ALIVE, Connection, Patience, sweep
from trimtab.http.others import Others
from trimtab.http.settings import HttpSettings, access
from trimtab.service.views import ServiceFace

log = logging.getLogger(__name__)

BEGIN_WITHIN = 10.0  # seconds
PATIENCE = Patience()
STOP_WITHIN = 3  # seconds that answers under way are given


class HttpServer:
    """A server that runs.

    Attributes
    ----------
    port, url
        Where it listens.
    """

    def __init__(self, server: uvicorn.Server, listening: socket.socket, api: Api, url: str, patience: Patience) -> None:
        self._patience = patience
        self.port: int = listening.getsockname()[1]
        self.url = url
        self._server = server
        self._socket = listening
        self._api = api
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether its thread runs; False after `stop`, and where it died (then `error` says why)."""
        return self._thread.is_alive()

    @property
    def error(self) -> str | None:
        """Why it died."""
        return None if self._error is None else f"{type(self._error).__name__}: {self._error}"

    def stop(self) -> None:
        """Take no more requests, end event streams, let answers under way go out, and end the thread. May be called twice."""
        self._server.should_exit = True
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            try:
                loop.call_soon_threadsafe(self._api.events.close)
            except RuntimeError:
                log.debug("the loop was closed already")
        self._thread.join(STOP_WITHIN + 5)
        if self._thread.is_alive():
            log.warning("the HTTP thread did not end within %d s", STOP_WITHIN + 5)
        self._socket.close()

    def start(self) -> None:
        """Start; returns when requests are taken.

        Raises
        ------
        ExternalError
            It did not start.
        """
        self._thread.start()
        self._began.wait(BEGIN_WITHIN)
        if not self._server.started:
            self.stop()
            raise ExternalError(
                f"the HTTP interface did not start at {self.url}: {self.error or 'no reason was given'}"
            )

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
            log.exception("the HTTP interface has died")
        finally:
            self._began.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        beside = [
            asyncio.create_task(self._tell_when_begun()),
            asyncio.create_task(sweep(self._server.server_state.connections, self._patience)),
        ]
        await self._server.serve(sockets=[self._socket])
        for task in beside:
            task.cancel()

    async def _tell_when_begun(self) -> None:
        while not self._server.started:
            await asyncio.sleep(0.005)
        self._began.set()


def serve(face: ServiceFace, settings: HttpSettings, patience: Patience = PATIENCE) -> HttpServer:
    """The running server over `face`; `patience` is that with connections.

    Raises
    ------
    ConfigurationError
        The settings are not safe, or name files that cannot be used.
    ExternalError
        The address cannot be listened on.
    """
    allowed = access(settings)
    listening = _listen(settings.host, settings.port)
    others = Others(settings.clusters, settings.clusters_patience)
    app, api = application(face, allowed, settings.patience, __version__, others, settings.cluster)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_WITHIN,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http{'s' if allowed.tls else ''}://{name}:{listening.getsockname()[1]}/"
    server = HttpServer(uvicorn.Server(config), listening, api, url, patience)
    server.start()
    log.info(
        "the page is at %s; changes %s",
        url,
        "take the token" if allowed.token else "are refused: no token is configured",
    )
    return server


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ExternalError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; name another port or host under http"
        ) from None
    return listening
