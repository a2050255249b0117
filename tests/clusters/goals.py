"""The goal files that synthetic clusters are planned under, and which brokers a plan leaves out without a proof."""

from __future__ import annotations

import json

from optimizer.plan import BrokerOutcome
from tests.clusters.synthetic import FIXED_GLOB, HEADROOM, VARIANTS

BALANCED = ("network_in", "network_out", "disk", "cpu", "replicas", "leaders")
LIMITED = ("network_in", "network_out", "disk", "cpu")
UNPROVEN = "no acceptable "  # how a plan starts to say that it found nothing, where it has no proof


def goals_text(variant: str, band: float) -> str:
    """Goals file: preset `default` with another band (share of the mean), and what the variant needs.

    For a variant of `limits`: racks and 0.8 of the capacity are hard, and no broker may be above the upper end of the band.
    """
    chosen = VARIANTS[variant]
    if chosen.limits:
        hard = [{"kind": "capacity", "name": f"{x}-hard", "resource": x, "limit": 0.8} for x in LIMITED]
        level = {"kind": "capacity", "limit": (1.0 + band) / HEADROOM, "hard": chosen.limits == "hard"}
        limits = [{**level, "name": f"{x}-level", "resource": x} for x in LIMITED]
        return json.dumps({"version": 1, "goals": [{"kind": "rack_aware"}, *hard, *limits]})
    goals: list[dict[str, object]] = [
        {"kind": "usage_distribution", "resource": x, "bound": band} for x in BALANCED
    ]
    if chosen.spread_topics:
        goals += [
            {"kind": "topic_distribution", "resource": x, "bound": chosen.topic_bound} for x in ("replicas", "leaders")
        ]
    excluded = [FIXED_GLOB] if chosen.excluded else []
    return json.dumps(
        {"version": 1, "preset": "default", "goals": goals, "constraints": {"exclude_topics": excluded}}
    )


def is_unexplained(broker: BrokerOutcome) -> bool:
    """Whether the plan leaves the broker outside its target range without a proof that it must."""
    return broker.why is None or UNPROVEN in broker.why
