"""`trimtab serve`: the service beside a controller: follows a cluster, plans by itself, and says why it does nothing.

Runs until SIGTERM or Ctrl-C, then ends within seconds; SIGHUP reads the goals again.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.signals import end_now, signals_heard
from trimtab.story import tell_when

if TYPE_CHECKING:
    from trimtab.service.balancer import Balancer

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
REMIND_SECONDS = 300.0


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("serve")(serve_command)


def serve_command(
    config: Annotated[
        Path,
        typer.Option("--config", exists=True, dir_okay=False, metavar="FILE", help="Configuration in YAML."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Check the configuration and its goals, list every mistake, and exit.")
    ] = False,
) -> int:
    """Follow a cluster and plan by itself, beside the controller that decides. Changes nothing unless its mode says so.

    Every controller may have one: all keep a warm model, and the one beside the active controller decides.
    """
    if check:
        _made(config)
        log.info("%s: OK", config)
        return 0
    tell_when()
    with signals_heard(hangup=True) as told:
        balancer = _made(config)
        told.on_hangup = balancer.reload_goals
        ended = True
        if not told.stop.is_set():
            balancer.start()
            try:
                _stay(balancer, told.stop)
                log.info("stopping: %s", told.by)
            finally:
                ended = balancer.stop()
        log.info("stopped")
    code = 0 if ended else 1
    if not all(worker.join(0) for worker in balancer.workers.values()):
        # In the middle of a compilation: Python's own way out destroys what the compiler works with, and may abort or take long.
        end_now(code, told=True)
    return code


def _made(config: Path) -> Balancer:
    from trimtab.service.balancer import Balancer
    from trimtab.service.config import load_config

    return Balancer(load_config(config))


def _stay(balancer: Balancer, stop: Event) -> None:
    """Until `stop`; tells what is broken, and how far a start is."""
    teller = Teller()
    while not stop.wait(LOOK_SECONDS):
        teller.tell(balancer.trouble(), balancer.starting, time.monotonic())


class Teller:
    """Writes to the log what is broken and what a long start waits for: each once, and again every five minutes where it lasts, however
    often it comes and goes."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._sick = False

    def tell(self, trouble: tuple[str, ...], starting: str | None, now: float) -> None:
        """`now` in seconds of a clock that does not jump."""
        self._told = {text: at for text, at in self._told.items() if now - at < REMIND_SECONDS}
        news = [text for text in trouble if text not in self._told]
        for text in news:
            log.error("unhealthy: %s", text)
            self._told[text] = now
        if starting is not None and "starting" not in self._told:
            log.info("%s", starting)
            self._told["starting"] = now
        if news:
            self._sick = True
        elif self._sick and not trouble:
            self._sick = False
            if "healthy" not in self._told:
                self._told["healthy"] = now
                log.info("healthy again")
