"""`trimtab reporter`: measures the broker it stands beside and publishes the samples to the internal topic.

Runs until SIGTERM or Ctrl-C, then sends what is left and ends within seconds. `--once` shows what it measures and
sends nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trimtab.output import emit
from trimtab.signals import signals_heard
from trimtab.story import tell_when

if TYPE_CHECKING:
    from metrics_reporter.reporter import RoundResult
    from trimtab.reporter.config import ReporterConfig


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("reporter")(reporter_command)


def reporter_command(
    config: Annotated[
        Path,
        typer.Option("--config", exists=True, dir_okay=False, metavar="FILE", help="Configuration in YAML."),
    ],
    once: Annotated[
        bool,
        typer.Option("--once", help="Measure for one interval, print the samples as JSON, and end; sends nothing."),
    ] = False,
) -> int:
    """Measure the broker on this machine continuously, and publish the samples to the internal topic.

    One reporter a broker. Reads the JMX exporter or Jolokia, Kafka's admin interface, and the host, as the configuration
    says; needs neither numpy nor Spark.
    """
    with signals_heard() as told:
        from trimtab.reporter import measure_once, run
        from trimtab.reporter.config import load_config

        if not once:
            tell_when()
        settings = load_config(config)
        if not once:
            return 0 if run(settings, told.stop).unsent == 0 else 1
        result, incarnation = measure_once(settings, told.stop)
    emit(json.dumps(_document(settings, result, incarnation), indent=1, allow_nan=False), None)
    return 1 if result.failures else 0


def _document(config: ReporterConfig, result: RoundResult, incarnation: int) -> dict[str, object]:
    """One round for a person who wonders what is measured."""
    return {
        "broker": config.broker,
        "time_ms": result.time_ms,
        "incarnation": incarnation,
        "failures": dict(result.failures),
        "batches": [
            {
                "window_ms": round(part.seconds * 1000),
                "samples": [
                    {"scope": s.scope.name.lower(), "topic": s.topic, "partition": s.partition, "metric": s.metric,
                     "value": s.value}
                    for s in part.samples
                ],
            }
            for part in result.measured
        ],
    }  # fmt: skip
