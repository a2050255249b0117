"""`trimtab capacity`: what is known of the brokers' capacities, and the file for `--capacity` to fill in. Parsing and writing only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.resources import RESOURCES
from trimtab.commands import options as o
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import Story

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

# Resources that brokers do not tell, with a value as one would write it, and where to find it.
ASKED = {
    "disk": ("2TB", "bytes for logs, all log directories together"),
    "network_in": ("125MB/s", "receive rate of the network card: 1 Gbit/s is 125MB/s"),
    "network_out": ("125MB/s", "send rate of the network card"),
    "cpu": ("8", "cores"),
}


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("capacity")(capacity_command)


def capacity_command(
    context: typer.Context,
    snapshot: o.SnapshotPath = None,
    bootstrap_server: o.Bootstrap = None,
    command_config: o.CommandConfig = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print the file that --capacity of snapshot and plan takes, known values filled in.")
    ] = False,
    out: o.Out = None,
) -> None:
    """Show which capacities are known and for how many brokers; --template writes the file to fill in.

    Without capacities, hard limits such as "disk at most 80%" cannot be checked. Brokers tell the size of their disks (Kafka 3.3 and
    later), and nothing else.
    """
    source = o.Source(snapshot, bootstrap_server, command_config, 0.0 if snapshot is None else None)
    problems = source.problems() + overwritten({"--out": out}, source.files) + unwritable("--out", out)
    if template and out is not None and out.is_file():
        problems.append(Problem("--out", f"{out} is there, perhaps filled in; name another file, or remove it"))
    if problems:
        raise ConfigurationError("trimtab capacity", problems)
    cluster = source.read(context.find_object(Story) or Story())
    emit("\n".join(template_lines(cluster) if template else known_lines(cluster)), out)


def known_lines(snapshot: Snapshot) -> Iterator[str]:
    """One line a resource: for how many brokers it is known."""
    for resource, (_, meaning) in ASKED.items():
        known = _known(snapshot, resource)
        missing = [broker for broker in snapshot.broker_ids.tolist() if broker not in known]
        which = f"; missing: {_few(missing)}" if missing else ""
        yield f"{resource:<12}{len(known)} of {snapshot.broker_count} brokers ({meaning}){which}"


def template_lines(snapshot: Snapshot) -> Iterator[str]:
    """A capacity file: values that all brokers share under ``default``, others by broker, and comments where nothing is known."""
    yield f"# Capacities of cluster {snapshot.cluster_id or 'without id'}."
    yield "# Remove the # of a line that you fill in; delete what you do not know."
    yield "default:"
    own: dict[str, dict[int, float]] = {}
    for resource, (example, meaning) in ASKED.items():
        known = _known(snapshot, resource)
        if known and len(known) == snapshot.broker_count and len(set(known.values())) == 1:
            yield f"  {resource}: {_written(resource, next(iter(known.values())))}  # of every broker"
        else:
            yield f"  # {resource}: {example}  # {meaning}"
            own |= {resource: known} if known else {}
    yield "brokers:"
    for broker, rack in zip(snapshot.broker_ids.tolist(), snapshot.racks, strict=True):
        given = ", ".join(f"{resource}: {_written(resource, known[broker])}" for resource, known in own.items() if broker in known)
        where = f"  # rack {rack}" if rack else ""
        yield f"  {broker}: {{{given}}}{where}" if given else f"  # {broker}: {{disk: 4TB}}{where}"


def _known(snapshot: Snapshot, resource: str) -> dict[int, float]:
    amounts = snapshot.capacity.get(resource)
    if amounts is None:
        return {}
    return {broker: amount for broker, amount in zip(snapshot.broker_ids.tolist(), amounts.tolist(), strict=True) if amount == amount}


def _few(brokers: list[int]) -> str:
    named = ", ".join(map(str, brokers[:10]))
    return named + (f" and {len(brokers) - 10} more" if len(brokers) > 10 else "")


def _written(resource: str, value: float) -> str:
    """``4TB``, ``125MB/s``, ``8``: as one would write it, and exactly `value`."""
    if value != int(value):
        return repr(value)
    unit = RESOURCES[resource]
    if unit.startswith("bytes"):
        for power, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
            if value and value % power == 0:
                return f"{int(value) // power}{name}{unit.removeprefix('bytes')}"
    return str(int(value))
