"""`trimtab serve`: the service beside a controller: follows a cluster, plans by itself, and says why it does nothing.

Runs until SIGTERM or Ctrl-C, then ends within seconds; SIGHUP reads the goals again.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.signals import signals_heard
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
        bool, typer.Option("--check", help="Say what is wrong with the configuration and its goals, and end.")
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
                log.info("told to end")
            finally:
                ended = balancer.stop()
        log.info("stopped")
    return 0 if ended else 1


def _made(config: Path) -> Balancer:
    from trimtab.service.balancer import Balancer
    from trimtab.service.config import load_config

    return Balancer(load_config(config))


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
