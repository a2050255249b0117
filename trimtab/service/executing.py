"""How an execution stands, as the service shows it: what the page draws, and what may be said to it from here.

Made by `trimtab.service.read_model`. Pure.
"""

from __future__ import annotations

from trimtab.execution.progress import PartitionStanding, Standing
from trimtab.service.leadership import who_leads
from trimtab.service.views import ExecutionVerb, ExecutionView, Leadership, MovingView

SHOWN = 50  # partitions in progress


def execution_view(found: Standing, *, here: bool, paused: bool, leadership: Leadership) -> ExecutionView:
    """`here`: this instance carries it out; `paused`: the whole cluster is."""
    moving = found.moving
    can = _can(found, paused=paused) if leadership.leads else ()
    return ExecutionView(
        plan_id=found.plan_id, state=found.state, direction=found.direction, why=found.why, instance=found.instance, here=here,
        paused=found.paused, waits=found.waits if not found.over else "",
        counts={str(stage): n for stage, n in found.counts.items() if n}, total=found.total, final=found.final,
        bytes_copied=found.bytes_copied, bytes_total=found.bytes_total, rate=found.rate, seconds_left=found.eta_s,
        throttle=found.throttle, throttle_why=found.throttle_why, throttles_left=found.throttles_left,
        unchanged=len(found.unchanged) if found.over else 0, moving_count=len(moving), moving=tuple(map(_moving, moving[:SHOWN])),
        batch=found.batch, batches=found.batches,
        can=can, why_not="" if leadership.leads else who_leads(leadership),
    )  # fmt: skip


def _moving(p: PartitionStanding) -> MovingView:
    return MovingView(
        topic=p.name.topic, partition=p.name.number, replicas=p.target, bytes_copied=p.copied, bytes_total=p.size, rate=p.rate,
        seconds_left=p.eta_s,
    )  # fmt: skip


def _can(found: Standing, *, paused: bool) -> tuple[ExecutionVerb, ...]:
    halt: ExecutionVerb = "resume" if paused or found.paused else "pause"
    if found.over:
        return () if found.direction == "rollback" else ("rollback",)
    return (halt,) if found.direction == "rollback" else (halt, "rollback") if found.direction == "cancel" else (halt, "cancel", "rollback")
