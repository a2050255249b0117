"""`trimtab serve`: the service beside a controller: follows a cluster, plans by itself, and says why it does nothing.

Runs until SIGTERM or Ctrl-C, then ends within seconds; SIGHUP reads the goals again.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.story import tell_when

if TYPE_CHECKING:
    from trimtab.service.balancer import Balancer

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
REMIND_SECONDS = 300.0

Handler = signal.Handlers | Callable[[int, FrameType | None], object] | int | None


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("serve")(serve_command)


def serve_command(
    config: Annotated[
        Path,
        typer.Option("--config", exists=True, dir_okay=False, metavar="FILE", help="Configuration in YAML."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Say what is wrong with the configuration and its goals, and end.")
    ] = False,
) -> int:
    """Follow a cluster and plan by itself, beside the controller that decides. Changes nothing unless its mode says so.

    Every controller may have one: all keep a warm model, and the one beside the active controller decides.
    """
    from trimtab.http.settings import access
    from trimtab.service.balancer import Balancer
    from trimtab.service.config import load_config

    settings = load_config(config)
    balancer = Balancer(settings)
    if check:
        if settings.http.enabled:
            access(settings.http)
        log.info("%s: OK", config)
        return 0
    tell_when()
    with _signals(balancer) as stop:
        balancer.start()
        try:
            _stay(balancer, stop)
        finally:
            ended = balancer.stop()
    log.info("stopped")
    return 0 if ended else 1


def _stay(balancer: Balancer, stop: Event) -> None:
    """Until `stop`; tells what is broken when that changes, and now and then."""
    told: tuple[str, ...] = ()
    since = 0.0
    while not stop.wait(LOOK_SECONDS):
        trouble = balancer.trouble()
        since += LOOK_SECONDS
        if trouble != told or (trouble and since >= REMIND_SECONDS):
            told, since = trouble, 0.0
            for text in trouble:
                log.error("unhealthy: %s", text)
            if not trouble:
                log.info("healthy again")


@contextmanager
def _signals(balancer: Balancer) -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set, a second one of either ends the process as usual; SIGHUP reads the goals again."""
    stop = Event()
    before: dict[int, Handler] = {}

    def on_end(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, before[number])

    def on_hangup(number: int, frame: FrameType | None) -> None:
        balancer.reload_goals()

    handlers = {signal.SIGTERM: on_end, signal.SIGINT: on_end, signal.SIGHUP: on_hangup}
    for number, handler in handlers.items():
        before[number] = signal.signal(number, handler)
    try:
        yield stop
    finally:
        for caught, former in before.items():
            signal.signal(caught, former)
