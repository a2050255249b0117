"""A plan for log directories in the forms that people and Kafka's tools take. Called by `trimtab directories`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from cluster_model.plain_text import one_line
from cluster_model.quantities import told_apart
from optimizer.directory_plan import BrokerDirectories, DirectoryMove, DirectoryPlan
from optimizer.report.paper import Paper
from optimizer.report.units import percent, size

if TYPE_CHECKING:
    from rich.console import Console

MOST_MOVES = 20  # of each broker, in the text
EMPTY = "would hold no replica: take it out of log.dirs soon after the moves and restart the broker; Kafka may place new replicas there"
ANY = "any"  # of Kafka's file: the replica stays in the directory that it is in


def sentence(plan: DirectoryPlan) -> str:
    """The plan in one line."""
    if not plan.brokers:
        return "no broker that may change has several volumes: nothing to do"
    outside = sum(bool(v.why) and not v.removed for b in plan.brokers for v in b.volumes)
    left = f"; {outside} volume{' stays' if outside == 1 else 's stay'} outside the target range" if outside else ""
    held = sum(bool(v.why) and v.removed for b in plan.brokers for v in b.volumes)
    left += f"; {held} volume{' that is removed keeps' if held == 1 else 's that are removed keep'} replicas" if held else ""
    if not plan.moves:
        nothing = "none that may move would help" if outside or held else "every volume is in its target range"
        return f"no replica moves: {nothing}{left}"
    brokers = sum(bool(b.moves) for b in plan.brokers)
    total, least = sum(m.bytes for m in plan.moves), sum(b.least for b in plan.brokers)
    return (
        f"{len(plan.moves)} replica{' moves' if len(plan.moves) == 1 else 's move'} between log directories of "
        f"{brokers} broker{'' if brokers == 1 else 's'}: {size(total)} to copy, of which at least {size(least)} cannot be avoided{left}"
    )


def render_directories(plan: DirectoryPlan, console: Console) -> None:
    """Print the dry run on `console`."""
    paper = Paper(console)
    paper.paragraph(one_line(sentence(plan)), "bold")
    for broker in plan.brokers:
        _broker(broker, paper)
    if plan.left:
        paper.heading("Left alone")
        for line in plan.left:
            paper.item(line)
    console.print()
    where = f"cluster {plan.cluster_id or 'unnamed'} as of {plan.taken_at or 'an unknown time'}"
    paper.paragraph(one_line(f"A dry run of {where}: nothing has changed."), "dim")


def _broker(broker: BrokerDirectories, paper: Paper) -> None:
    paper.heading(f"Broker {broker.broker}")
    table = paper.table(("log directory", False), ("size", True), ("in use", True), ("target range", True))
    for volume in broker.volumes:
        high = min(volume.high / volume.size, 1.0)
        after, most = told_apart(volume.after / volume.size, high) if volume.why else map(percent, (volume.after / volume.size, high))
        use = paper.turn(percent(volume.before / volume.size), after)
        span = "no replica" if volume.removed else f"{percent(volume.low / volume.size)} to {most}"
        table.add_row(*map(paper.text, (one_line(", ".join(volume.paths)), size(volume.size), use, span)))
    paper.show(table)
    for volume in broker.volumes:
        if volume.removed:
            paper.item(f"{', '.join(volume.paths)} {f'keeps {volume.why}' if volume.why else EMPTY}")
        elif volume.why:
            paper.item(f"{volume.paths[0]} stays outside: {volume.why}")
    for move in broker.moves[:MOST_MOVES]:
        paper.item(f"{move.topic}-{move.partition}, {size(move.bytes)}: {paper.turn(move.source, move.target)}")
    if len(broker.moves) > MOST_MOVES:
        paper.item(f"and {len(broker.moves) - MOST_MOVES} more moves")


def directories_json(plan: DirectoryPlan) -> str:
    """All of the plan; bytes everywhere."""
    document = {"version": 1, **asdict(plan), "policy": plan.policy.model_dump()}
    for broker in document["brokers"]:
        for volume in broker["volumes"]:
            volume["high"] = min(volume["high"], volume["size"])
    return json.dumps(document, indent=1, allow_nan=False)


def directories_reassignment(plan: DirectoryPlan) -> str:
    """Kafka's reassignment file with ``log_dirs``: one entry a partition, in the order of moves; no replica changes its broker."""
    moves: dict[tuple[str, int], list[DirectoryMove]] = {}
    for move in plan.moves:
        moves.setdefault((move.topic, move.partition), []).append(move)
    rows = []
    for (topic, partition), of in moves.items():
        to = {move.broker: move.target for move in of}
        entry = {"topic": topic, "partition": partition, "replicas": of[0].replicas, "log_dirs": [to.get(b, ANY) for b in of[0].replicas]}
        rows.append(json.dumps(entry))
    return '{"version":1,"partitions":[' + ("\n " + ",\n ".join(rows) + "\n" if rows else "") + "]}\n"
