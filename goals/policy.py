"""The `policy` part of a goals file: when the service acts, and how gently.

Validated here, kept in `GoalSet.policy` as written. Of it a plan depends on `min_gain`, `move_cost` and `noise`, which are among its
options; where it names an `amount` (or a preset that has one), plans are made by the policy's parts (`optimizer.policies`) in place of the
search. Parts carry the parameters of the systems they come from.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from goals.policy_detectors import AllOf, AnyOf, Detector, GoalBand, Hits, Single
from goals.policy_directories import Directories
from goals.policy_filters import Filters
from goals.policy_part import NotNegative, PolicyPart, Positive, Size
from goals.policy_presets import POLICY_PRESETS
from goals.waiting import Seconds, Wait

KINDS = ("kind", "any_of", "all_of")  # keys that say what a part is


class Amount(PolicyPart):
    """How much load a broker gives away in one cycle."""

    kind: Literal["one", "half_gap", "to_target_counts"]


class Fraction(PolicyPart):
    """A fraction of the gap between the busiest and the idlest broker."""

    kind: Literal["fraction"]
    ratio: Annotated[float, Field(gt=0, le=1)] = Field(description="share of the gap")
    slack: NotNegative = Field(default=0.0, description="order best_fit: a unit may be heavier than what is left to give by this much")


class UntilBelow(PolicyPart):
    """As much as brings the broker below a target."""

    kind: Literal["until_below"]
    target: Positive = Field(description="utilization to come below")
    margin: NotNegative = Field(default=0.0, description="further below the target by this much")


class Score(PolicyPart):
    """One number a broker, by which brokers are ranked; smaller is less loaded."""

    kind: Literal["count", "leaders", "weighted_sum", "bottleneck", "weighted_max", "rate", "throughput"]


class Placement(PolicyPart):
    """Which broker gets what is moved, or new."""

    kind: Literal[
        "least", "rotate_within", "least_rate", "below_mean_random", "paired", "spread_scope", "leader_deficit", "weighted_by_headroom"
    ]
    margin: NotNegative = Field(
        default=0.10, description="rotate_within: share above the lowest; below_mean_random: of the score, below the mean"
    )
    limit: Positive = Field(
        default=0.85, description="least_rate, weighted_by_headroom: utilization above which a broker gets nothing if another may"
    )


class PolicyGuards(PolicyPart):
    """How much one plan may do."""

    moves: Annotated[int, Field(ge=1)] | None = Field(default=None, description="most replica moves in one plan")
    moves_per_hour: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="most replica moves in an hour, by the service's history, and in one plan"
    )
    moves_per_cycle: Annotated[int, Field(ge=1)] | None = Field(default=None, description="moves between two checks of the detector")
    brokers_per_cycle: Annotated[int, Field(ge=1)] | None = Field(default=None, description="brokers that give in one cycle")
    cycles: Annotated[int, Field(ge=1)] | None = Field(default=None, description="cycles of one plan; the rest waits for the next check")
    min_brokers: Annotated[int, Field(ge=1)] = Field(default=2, description="fewest active brokers for a plan")


class Batch(PolicyPart):
    """How much of a plan is carried out at once. Actions after the last batch wait for the next plan; repairs do not."""

    moves_per_broker: Annotated[int, Field(ge=1)] = Field(default=50, description="most moves off and to a broker in a batch")
    topic_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="largest share of a topic's partitions in a batch, at least one partition"
    )
    sources_per_target: Annotated[int, Field(ge=1)] = Field(default=10, description="most brokers that give to one broker in a batch")
    batches: Annotated[int, Field(ge=1)] = Field(default=1, description="most batches in a plan")
    pause: Seconds = Field(default=5.0, description="from the end of a batch to the start of the next one")


Hash = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{1,8}$")]


class Split(PolicyPart):
    """When a group of partitions is too large to move as one, and where it is split. On Kafka this changes hash ranges, never data."""

    partitions: Annotated[int, Field(ge=1)] = Field(default=1000, description="more partitions than these")
    rate: Positive = Field(default=30_000.0, description="requests/s, in and out")
    bandwidth: Size = Field(default=100.0 * 1024 * 1024, description="bytes/s, in and out")
    hits: Hits = Field(default=1, description="checks in a row over a limit before it is split; a dry run does not wait for them")
    unload: bool = Field(default=True, description="after a split, its parts move to other brokers first, in the same plan")
    max_groups: Annotated[int, Field(ge=4)] = Field(default=128, description="most groups of a namespace")
    algorithm: Literal[
        "range_equally_divide", "topic_count_equally_divide", "specified_positions_divide", "flow_or_qps_equally_divide"
    ] = Field(default="range_equally_divide", description="where a group is split")
    positions: list[Hash] = Field(default=[], description="hashes in hex, of specified_positions_divide")

    @model_validator(mode="after")
    def _with_positions(self) -> Split:
        if (self.algorithm == "specified_positions_divide") != bool(self.positions):
            raise ValueError("expected positions with algorithm specified_positions_divide, and only there")
        return self


class SlowBrokers(PolicyPart):
    """Which brokers are slow, and what they give up. Each rule by itself makes a broker slow; null turns a rule off."""

    pending: Seconds | None = Field(default=10.0, description="longest that an append or a fetch may be pending (from AutoMQ's brokers)")
    latency: Seconds | None = Field(default=1.0, description="limit of the 99th percentile of its own part of produce or fetch requests")
    history: Annotated[float, Field(gt=1)] | None = Field(default=3.0, description="multiple of its own 90th percentile of the last day")
    peers: Annotated[float, Field(gt=1)] | None = Field(default=3.0, description="multiple of the median of the active brokers")
    floor: Seconds = Field(default=0.1, description="latency below which history and peers do not count")
    hits: Hits = Field(default=3, description="looks in a row")
    hold: Seconds = Field(default=1800.0, description="how long a broker stays slow after the last check that found it slow")
    leaders: bool = Field(default=True, description="a slow broker gives up its leaderships where another replica can lead")
    most: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.1, description="largest share of the active brokers, at least one; if more are slow, none is treated as slow"
    )


class NewTopics(PolicyPart):
    """The service places a new topic again while it is nearly empty."""

    placement: Placement = Field(default=Placement(kind="least"), description="which broker gets a replica, of those that may")
    score: Score = Field(default=Score(kind="count"), description="how brokers are ranked")
    within: Seconds = Field(default=600.0, description="time since the service first saw the topic, up to which it is new")
    max_size: Size = Field(default=1e9, description="bytes of the whole topic; a larger one stays where it is")

    @field_validator("placement")
    @classmethod
    def _not_paired(cls, placement: Placement) -> Placement:
        if placement.kind == "paired":
            raise ValueError("paired gives what one broker of a pair sheds to the other, and a new topic has no such broker; use least")
        return placement


def _parts_beside_a_preset(schema: dict[str, Any]) -> None:
    """In the JSON Schema, too, a part without its kind may stand beside a preset."""
    without = {"not": {"anyOf": [{"required": [key]} for key in KINDS]}}
    for name in ("detector", "amount", "score", "placement"):
        part = schema["properties"][name]
        whole = {key: part.pop(key) for key in ("oneOf", "anyOf", "discriminator") if key in part}
        part["anyOf"] = [whole, {"type": "object", "description": "with preset: what changes of its part", **without}]


class PolicyDocument(PolicyPart):
    """When to act, what to move and where to. With `amount`, plans are made of these parts in place of the search."""

    model_config = ConfigDict(json_schema_extra=_parts_beside_a_preset)

    preset: str | None = Field(default=None, description="a named set of parts; keys beside it win (trimtab policies list)")
    detector: Detector = Field(default=GoalBand(kind="goal_band"), description="what makes the service act")
    unit: Literal["partition", "group", "topic"] = Field(default="partition", description="moved as one")
    split: Split | None = Field(default=None, description="unit group: split groups that are too large ({}: defaults)")
    amount: Annotated[Amount | Fraction | UntilBelow, Field(discriminator="kind")] | None = Field(
        default=None, description="how much load a broker gives away in one cycle"
    )
    order: Literal["lightest", "heaviest", "best_fit", "swap_if_too_big"] | None = Field(
        default=None, description="which partitions go first"
    )
    score: Score | None = Field(default=None, description="how brokers are ranked (default count)")
    tolerance: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None, description="to_target_counts: share of the mean that counts may differ by; without it, by one"
    )
    filters: Filters | None = Field(default=None, description="what the policy leaves out")
    placement: Placement | None = Field(default=None, description="which broker gets what is moved (default least)")
    guards: PolicyGuards | None = Field(default=None, description="how much one plan may do")
    batch: Batch | None = Field(
        default=None, description="how much of a plan is carried out at once ({}: defaults); also for plans of the search"
    )
    accept: Literal["score", "detector", "both"] = Field(
        default="both", description="what must agree before an action is accepted: the score, the detector, or both"
    )
    interval: Annotated[Seconds, Field(gt=0)] | None = Field(
        default=None, description="time between the service's decisions, unless its configuration gives one (default 5m)"
    )
    wait: Wait = Field(default=Wait(), description="conditions under which nothing is moved for balance")
    partition_cooldown: Seconds = Field(
        default=1800.0, description="how long a moved partition rests; repairs move it all the same"
    )
    min_topic_age: Seconds = Field(
        default=0.0, description="how long a new topic rests; repairs move it all the same"
    )
    slow_brokers: SlowBrokers | None = Field(
        default=None, description="slow brokers get no replicas and give up leaderships ({}: defaults)"
    )
    new_topics: NewTopics | None = Field(
        default=None, description="the service places new topics ({}: defaults)"
    )
    directories: Directories = Field(
        default=Directories(), description="how full and how level a broker's volumes should be (trimtab directories)"
    )
    min_gain: NotNegative | None = Field(
        default=None, description="least that a part of a plan gains, in means, for copying as much as a typical broker stores"
    )
    move_cost: Size | None = Field(
        default=None, description="what each replica move costs besides its bytes; 0: bytes alone (default three mean replicas)"
    )
    noise: NotNegative | None = Field(
        default=None, description="share of the mean by which loads differ when they are measured again; a plan gains more than that"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, given: object) -> object:
        name = given.get("preset") if isinstance(given, dict) else None
        if isinstance(given, dict) and isinstance(name, str) and name in POLICY_PRESETS:
            preset = POLICY_PRESETS[name]
            return {**preset, **{key: _over(preset.get(key), part) for key, part in given.items()}}
        return given

    @model_validator(mode="after")
    def _together(self) -> PolicyDocument:
        wrong = _contradictions(self)
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


def _over(preset: object, part: object) -> object:
    """A part of a file in place of the preset's; one that does not say its kind changes what it says of the preset's."""
    if isinstance(preset, dict) and isinstance(part, dict) and "kind" in preset and not any(key in part for key in KINDS):
        return {**preset, **part}
    return part


def _contradictions(policy: PolicyDocument) -> list[str]:
    """Why the parts of a policy do not go together."""
    if policy.preset is not None and policy.preset not in POLICY_PRESETS:
        return [f"expected preset to be one of {', '.join(POLICY_PRESETS)}, found {policy.preset!r}"]
    if policy.split is not None and policy.unit != "group":
        return [f"split is of groups: expected unit group beside it, found {policy.unit}"]
    if policy.amount is None:
        alone = [key for key in ("score", "filters", "placement", "guards", "tolerance") if getattr(policy, key) is not None]
        if policy.filters is not None and (policy.filters.isolation or policy.filters.anti_affinity):
            return ["the search knows no isolation and no anti_affinity: expected amount beside those filters, such as amount: {kind: one}"]
        parts = ", ".join(alone)
        return [f"expected amount beside {parts}, which it needs; add one, such as amount: {{kind: one}}"] if alone else []
    wrong = []
    placement = policy.placement.kind if policy.placement is not None else None
    kinds = {d.kind for d in detectors_of(policy)}
    if placement == "paired" and not kinds & {"pairs", "std", "minmax"}:
        wrong.append("placement paired: expected a detector that pairs brokers (pairs, std or minmax)")
    if policy.amount.kind == "to_target_counts":
        if placement not in (None, "leader_deficit"):
            wrong.append(f"amount to_target_counts finds targets itself: expected placement leader_deficit or none, found {placement}")
        if policy.filters is not None and (policy.filters.isolation or policy.filters.anti_affinity):
            wrong.append("amount to_target_counts goes by counts alone: expected no filters isolation or anti_affinity beside it")
        if policy.unit != "partition":
            wrong.append(f"amount to_target_counts counts replicas: expected unit partition, found {policy.unit}")
    elif policy.tolerance is not None:
        wrong.append(f"tolerance goes with amount to_target_counts, found {policy.amount.kind}")
    return wrong


def detectors_of(policy: PolicyDocument) -> list[Single]:
    """The detector of a policy, or those that it is made of."""
    match policy.detector:
        case AnyOf(any_of=found) | AllOf(all_of=found):
            return list(found)
        case single:
            return [single]
