"""Named sets of policy parts: the systems that operators come from. Plain data, filled in by `goals.policy`.

Numbers are those of the systems' public documents and sources; what differs is said in docs/policies.
"""

from __future__ import annotations

from typing import Any

MEBI = 1024.0 * 1024.0


def _danube(threshold: float, moves: int, cooldown: float, interval: float) -> dict[str, Any]:
    return {
        "detector": {"kind": "cv", "threshold": threshold, "sigma_k": 2.0, "hysteresis": {"start": threshold, "stop": threshold / 2.0}},
        "score": {"kind": "weighted_sum"},
        "amount": {"kind": "one"},
        "order": "lightest",
        "placement": {"kind": "least"},
        "guards": {"moves_per_hour": moves},
        "partition_cooldown": cooldown,
        "min_topic_age": 300.0,
        "interval": interval,
        "accept": "detector",
    }


POLICY_PRESETS: dict[str, dict[str, Any]] = {
    "danube-conservative": _danube(0.40, 5, 120.0, 600.0),
    "danube-balanced": _danube(0.30, 10, 60.0, 300.0),
    "danube-aggressive": _danube(0.20, 20, 30.0, 120.0),
    "pulsar-overload": {
        "detector": {"kind": "absolute", "limit": 0.85},
        "score": {"kind": "weighted_max"},
        "amount": {"kind": "until_below", "target": 0.85, "margin": 0.05},
        "order": "heaviest",
        "placement": {"kind": "least"},
        "filters": {"keep": 1},
        "accept": "detector",
    },
    "pulsar-threshold": {
        "detector": {"kind": "above_mean", "margin": 0.10, "lower_boundary": True},
        "score": {"kind": "weighted_max"},
        "amount": {"kind": "until_below", "target": 0.10, "margin": 0.05},
        "order": "heaviest",
        "placement": {"kind": "below_mean_random", "margin": 0.10},
        "filters": {"keep": 1, "min_throughput": 10.0 * MEBI},
        "accept": "detector",
    },
    "pulsar-uniform": {
        "detector": {"kind": "minmax", "rate_pct": 50.0, "tp_ratio": 4.0},
        "score": {"kind": "throughput"},
        "amount": {"kind": "fraction", "ratio": 0.2},
        "order": "best_fit",
        "placement": {"kind": "least_rate"},
        "filters": {"keep": 1, "min_throughput": MEBI},
        "accept": "detector",
    },
    "pulsar-transfer": {
        "detector": {"kind": "std", "target": 0.25, "outliers": True, "persist": {"hits_low": 4}},
        "score": {"kind": "weighted_max"},
        "amount": {"kind": "half_gap"},
        "order": "swap_if_too_big",
        "placement": {"kind": "paired"},
        "filters": {"keep": 1},
        "guards": {"brokers_per_cycle": 3},
        "accept": "detector",
    },
    "pulsar-avg": {
        "detector": {"kind": "pairs", "low": 15.0, "high": 40.0, "persist": {"hits_low": 8, "hits_high": 2}},
        "score": {"kind": "weighted_max"},
        "amount": {"kind": "fraction", "ratio": 0.5},
        "order": "best_fit",
        "placement": {"kind": "paired"},
        "filters": {"min_throughput": MEBI},
        "accept": "detector",
    },
    "wix-minimal": {
        "detector": {"kind": "count_spread", "max_spread": 1, "leaders": True},
        "score": {"kind": "count"},
        "amount": {"kind": "to_target_counts"},
        "placement": {"kind": "leader_deficit"},
        "accept": "detector",
    },
    "automq": {
        "detector": {"kind": "goal_band"},
        "accept": "score",
        "slow_brokers": {},
        "batch": {"moves_per_broker": 50, "topic_share": 0.5, "sources_per_target": 10, "batches": 13, "pause": 5.0},
        "interval": 60.0,
    },
}
