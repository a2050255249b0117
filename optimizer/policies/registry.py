"""The parts of policies by stage and name: what each does and where it comes from. Written out: a part that is not here does not exist.

Called by `trimtab policies`; a test holds it against the schema of `goals.policy`. Imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part: the stage it belongs to, its name in files, what it does, and its source."""

    stage: str
    name: str
    summary: str
    source: str


DANUBE, PULSAR, WIX, AUTOMQ, OURS = "Danube", "Apache Pulsar", "Wix", "AutoMQ", "ours"

_PARTS = (
    Part("detector", "goal_band", "a broker is outside the target range of a goal", AUTOMQ),
    Part("detector", "cv", "the coefficient of variation over brokers is high", DANUBE),
    Part("detector", "absolute", "a broker's utilization is above a limit", PULSAR),
    Part("detector", "above_mean", "a broker is above the mean by a margin", PULSAR),
    Part("detector", "minmax", "the busiest and the idlest broker are far apart", PULSAR),
    Part("detector", "std", "the standard deviation over brokers is above a target, or single brokers are far off", PULSAR),
    Part("detector", "pairs", "brokers paired by rank, busiest with idlest, differ by points", PULSAR),
    Part("detector", "count_spread", "replica counts of brokers differ too much", WIX),
    Part("score", "count", "replicas of a broker", DANUBE),
    Part("score", "leaders", "leaders of a broker", WIX),
    Part("score", "weighted_sum", "0.3 topic load + 0.35 cpu percent + 0.35 memory percent; counts where neither is known", DANUBE),
    Part("score", "bottleneck", "the formula of the narrowest resource, by capacity where it is known; disk has one of its own", DANUBE),
    Part("score", "weighted_max", "the largest utilization among the resources of the goals", PULSAR),
    Part("score", "rate", "requests per second", PULSAR),
    Part("score", "throughput", "bytes per second in and out", PULSAR),
    Part("amount", "one", "one unit, then the detector looks again", DANUBE),
    Part("amount", "fraction", "`ratio` of the gap between a broker and its counterpart", PULSAR),
    Part("amount", "until_below", "what a broker is over its line, and `margin` more", PULSAR),
    Part("amount", "half_gap", "half of the gap between two brokers", PULSAR),
    Part("amount", "to_target_counts", "the fewest moves to level replica counts, and leaders by the order of lists", WIX),
    Part("order", "lightest", "the lightest unit first", DANUBE),
    Part("order", "heaviest", "the heaviest first, until the amount is reached", PULSAR),
    Part("order", "best_fit", "the heaviest first that still fits into the amount", PULSAR),
    Part("order", "swap_if_too_big", "of the ten heaviest the lightest that fit; where none does, a swap", PULSAR),
    Part("filters", "exclude", "globs of topics that the policy leaves alone", DANUBE),
    Part("filters", "include", "globs; only these topics", PULSAR),
    Part("filters", "min_rate", "requests/s: a broker that is to give less is passed over", PULSAR),
    Part("filters", "min_throughput", "bytes/s: a broker that is to give less is passed over", PULSAR),
    Part("filters", "keep", "units that always stay on a source broker", PULSAR),
    Part("filters", "max_units", "replicas on a broker from which on it gets no more", PULSAR),
    Part("filters", "once", "each partition changes at most once in a plan", WIX),
    Part("filters", "isolation", "topics that only primary brokers take, and secondary ones while too few primary are active", PULSAR),
    Part("filters", "anti_affinity", "groups of topics on different racks and brokers, as far as possible", PULSAR),
    Part("placement", "least", "the lowest score; ties by id", DANUBE),
    Part("placement", "rotate_within", "in turn among those within `margin` of the lowest score", DANUBE),
    Part("placement", "least_rate", "fewest requests/s (bytes/s where unknown) among those up to `limit` of utilization", PULSAR),
    Part("placement", "below_mean_random", "by chance among those `margin` below the mean; the lowest where there is none", PULSAR),
    Part("placement", "paired", "the counterpart that the detector's ranking names", PULSAR),
    Part("placement", "spread_scope", "fewest replicas of the topic first, then the lowest score", PULSAR),
    Part("placement", "leader_deficit", "fewest leaders", WIX),
    Part("placement", "weighted_by_headroom", "by chance, as likely as there is room below `limit`", PULSAR),
    Part("guards", "moves", "most replica moves in one plan", DANUBE),
    Part("guards", "moves_per_hour", "replica moves in an hour, by the service's history", DANUBE),
    Part("guards", "moves_per_cycle", "moves between two checks of the detector", PULSAR),
    Part("guards", "brokers_per_cycle", "brokers that give in one cycle", PULSAR),
    Part("guards", "cycles", "cycles of one plan; Pulsar makes one at each check", PULSAR),
    Part("guards", "min_brokers", "fewest active brokers for a plan", DANUBE),
    Part("batch", "moves_per_broker", "moves off and to a broker in a batch", AUTOMQ),
    Part("batch", "topic_share", "share of a topic's partitions in a batch", AUTOMQ),
    Part("batch", "sources_per_target", "brokers that give to one broker in a batch", AUTOMQ),
    Part("batch", "batches", "batches in a plan; the rest is left for the next one", AUTOMQ),
    Part("batch", "pause", "seconds from the end of a batch to the start of the next one", AUTOMQ),
    Part("split", "range_equally_divide", "a group that carries too much is cut in the middle of its range", PULSAR),
    Part("split", "topic_count_equally_divide", "where as many partitions are on either side", PULSAR),
    Part("split", "specified_positions_divide", "at given hashes", PULSAR),
    Part("split", "flow_or_qps_equally_divide", "where the next partition would be beyond the limits", PULSAR),
    Part("unit", "partition", "one replica of a partition", OURS),
    Part("unit", "group", "what a broker holds of a range of CRC32 hashes in a namespace", PULSAR),
    Part("unit", "topic", "what a broker holds of a topic", DANUBE),
    Part("accept", "score", "the combined score of the goals must be above 0.5", AUTOMQ),
    Part("accept", "detector", "what is over the detector's lines must become less", OURS),
    Part("accept", "both", "both", OURS),
)


def parts_by_stage() -> dict[str, dict[str, Part]]:
    """Stage -> name -> part, in the order of the pipeline; a name that a stage has twice is a bug."""
    table: dict[str, dict[str, Part]] = {}
    for part in _PARTS:
        stage = table.setdefault(part.stage, {})
        if part.name in stage:
            raise ValueError(f"part {part.name!r} of {part.stage} is registered twice")
        stage[part.name] = part
    return table


PRESET_WORDS = {
    "danube-conservative": "coefficient of variation from 40% to 20%, 5 moves an hour",
    "danube-balanced": "coefficient of variation from 30% to 15%, 10 moves an hour",
    "danube-aggressive": "coefficient of variation from 20% to 10%, 20 moves an hour",
    "pulsar-overload": "brokers above 85% give until they are 5 points below",
    "pulsar-threshold": "brokers 10% above the mean give until they are near it",
    "pulsar-uniform": "a fifth of the gap between the busiest and the idlest broker",
    "pulsar-transfer": "half of the gap between pairs from the ends, swaps included",
    "pulsar-avg": "half of the gap of ranked pairs 15 points apart",
    "automq": "the search every minute, in batches; slow brokers get no replicas and give up leaderships",
    "wix-minimal": "fewest replica moves to counts within one of each other, leaders by reordering",
}
