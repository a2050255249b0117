"""The goal files that synthetic clusters are planned under, and which brokers a plan leaves out without a proof."""

from __future__ import annotations

import json

from optimizer.plan import BrokerOutcome
from tests.clusters.synthetic import FIXED_GLOB, VARIANTS

BALANCED = ("network_in", "network_out", "disk", "cpu", "replicas", "leaders")
UNPROVEN = "no acceptable "  # how a plan starts to say that it found nothing, where it has no proof


def goals_text(variant: str, band: float) -> str:
    """Goals file: preset `default` with another band (share of the mean), and what the variant needs."""
    chosen = VARIANTS[variant]
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
