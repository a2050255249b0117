"""The calibration file as pydantic models: what Spark found in a cluster's history, read by goals, tune and the planner.

Written by `spark` (``trimtab calibrate``, ``trimtab backtest``), read by `goals.document` where a goals file names it, and by
``trimtab tune``. Keys, units and meanings stand here and in docs/calibration.md; nothing here knows Spark.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from cluster_model.resources import LARGEST_AMOUNT
from goals.schema import MAX_WEIGHT, BrokerId, Resource

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(gt=0, le=MAX_WEIGHT)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """Base of everything in a calibration file: unknown keys refused, finite numbers only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class HistorySpan(Part):
    """What the calibration was made from."""

    begin: str = Field(description="time of the first sample, UTC, such as 2026-10-01T00:00:00Z")
    end: str = Field(description="time of the last sample")
    window: float = Field(gt=0, description="length of the windows that loads were averaged over, seconds")
    samples: int = Field(ge=0, description="samples that counted")
    rejected: dict[str, int] = Field(default={}, description="samples that did not, by reason")
    brokers: int = Field(ge=0, description="brokers that samples came from")
    partitions: int = Field(ge=0, description="partitions that samples were about")
    digest: str = Field(description="sha256:… over what was read: equal histories have equal digests")


class Seasonality(Part):
    """How load goes round the week."""

    strength: Share = Field(description="share of the variance that the hour of the week explains")
    peak_hour: int = Field(ge=0, le=167, description="hour of the week with the most load; 0 is Monday 00:00 UTC")
    profile: list[NotNegative] = Field(min_length=168, max_length=168, description="load of each hour of the week over the mean")


class AlarmRate(Part):
    """How often a band of one width would be left by chance alone."""

    bound: Positive = Field(description="half width of the target range, share of the mean")
    false_alarms: NotNegative = Field(description="expected false triggers a week, whole cluster")


class Levelling(Part):
    """What one bound at one horizon would have done to brokers' hourly loads: a model of levelling each resource by itself."""

    bound: Positive = Field(description="half width of the target range, share of the mean")
    horizon: float = Field(gt=0, description="seconds that loads are averaged over, and between two looks")
    acts: NotNegative = Field(description="looks a week that find a broker outside and level it")
    out: NotNegative = Field(description="broker-hours a week that are then beyond 10% of the mean")
    moved: NotNegative = Field(description="load moved a week, over the mean load of a broker")


class ResourceCalibration(Part):
    """One resource: its level, what of its spread is noise, and the goal constants that follow."""

    mean: NotNegative = Field(description="load of a broker, mean over brokers and time, in the resource's unit")
    noise: NotNegative | None = Field(description="natural deviation of a balanced broker in one window, share of the mean")
    false_alarms: NotNegative | None = Field(default=None, description="expected false triggers a week at `bound`, whole cluster")
    alarms: list[AlarmRate] = Field(default=[], description="false triggers a week at other widths of the range, ascending by bound")
    levelling: list[Levelling] = Field(default=[], description="what bounds and horizons are good for")
    bound: Positive | None = Field(description="recommended half width of the range, share of the mean; null: too little history")
    var: Positive | None = Field(description="recommended end of the linear part, share of the mean, above bound")
    min_load: NotNegative | None = Field(description="recommended least load that is levelled, in the resource's unit")
    growth: float | None = Field(default=None, description="trend of the level, share of the mean a week")
    seasonality: Seasonality | None = None
    why: list[str] = Field(default=[], description="how each number came about, a sentence each")

    @field_validator("var")
    @classmethod
    def _above_bound(cls, var: float | None, info: ValidationInfo) -> float | None:
        bound = info.data.get("bound")
        if var is not None and bound is not None and var <= bound:
            raise ValueError(f"expected a share above bound {bound:g}, found {var:g}")
        return var


class CapacityEstimate(Part):
    """What one broker can carry of one resource. One of low confidence is a lower bound: the most ever seen."""

    broker: BrokerId = Field(description="id of the broker")
    resource: Resource = Field(description="resource that the estimate is of")
    value: Positive = Field(le=LARGEST_AMOUNT, description="what the broker can carry, in the resource's unit")
    confidence: Literal["high", "medium", "low"] = Field(description="high, medium or low")
    evidence: str = Field(description="a sentence: reported, a bend of latency or cpu over throughput, or only the most ever seen")


class CpuCost(Part):
    """Broker cpu explained by what passes through it: a robust fit over all brokers' windows."""

    idle: NotNegative = Field(description="cores that a broker uses without traffic")
    per_byte_in: NotNegative = Field(description="core seconds per byte produced or replicated in")
    per_byte_out: NotNegative = Field(description="core seconds per byte sent")
    per_produce_request: NotNegative = Field(description="core seconds per produce request")
    per_fetch_request: NotNegative = Field(description="core seconds per fetch request")
    error: NotNegative = Field(description="median absolute residual, share of the mean cpu of a broker")
    brokers: dict[str, float] = Field(default={}, description="broker -> its median residual in cores, where it stands out")
    why: list[str] = Field(default=[])


class TopicCalibration(Part):
    """A topic whose load does not stand still."""

    topic: str = Field(description="name of the topic")
    resource: Resource = Field(description="resource that this is about")
    burst: NotNegative = Field(description="95th percentile of its load over the mean")
    pattern: Literal["steady", "cyclic", "growing", "bursty"] = Field(description="steady, cyclic, growing or bursty")
    growth: float = Field(description="share of its mean a week")


class Correlation(Part):
    """Two resources of brokers that rise and fall together."""

    resources: list[Resource] = Field(min_length=2, max_length=2, description="the two resources")
    value: float = Field(ge=-1, le=1, description="correlation, -1 to 1")


class Tried(Part):
    """One configuration of the backtest, on the weeks held out."""

    weights: dict[str, NotNegative] = Field(description="goal name -> weight")
    bounds: dict[str, NotNegative] = Field(default={}, description="goal name -> bound, where another than the reference was tried")
    cadence: float = Field(gt=0, description="seconds between plans")
    horizon: float | None = Field(default=None, gt=0, description="seconds that loads were averaged over before each plan")
    out_of_band_hours: NotNegative = Field(description="broker-hours outside the range of the reference bounds")
    peak_utilization: NotNegative = Field(description="highest load over capacity of any broker")
    out_of_band_error: NotNegative | None = Field(
        default=None, description="standard error of these hours' difference from the goals as they are, broker-hours"
    )
    bytes_moved: NotNegative = Field(description="bytes that the plans copied")
    bytes_error: NotNegative | None = Field(default=None, description="standard error of the difference of these bytes from theirs")
    actions: int = Field(ge=0, description="actions of all plans")
    moved_back: int = Field(ge=0, description="replicas that came back to a broker they had left")
    max_moves: int | None = Field(default=None, ge=0, description="replica moves that one plan might have")
    min_gain: NotNegative | None = Field(default=None, description="policy.min_gain, where another than the goals' own was tried")
    move_cost: NotNegative | None = Field(default=None, description="policy.move_cost, where another than the goals' own was tried")
    start: Positive | None = Field(default=None, description="start of policy.detector.hysteresis, where one was tried; it stops at a half")
    verdict: str = Field(default="", description="what the weeks held out say of it")
    chosen: bool = Field(default=False, description="the one that is recommended")
    pareto: bool = Field(default=False, description="nothing that was tried is better in hours and bytes both")
    what: str = Field(default="", description="what it is, such as default goals")


class Calibration(Part):
    """Calibration file of Trimtab, version 1."""

    version: Literal[1] = Field(description="1, the version of the file form")
    cluster_id: str = Field(description="cluster whose history it is")
    made_at: str = Field(description="time it was made, UTC")
    history: HistorySpan = Field(description="what it was made from")
    resources: dict[Resource, ResourceCalibration] = Field(description="level, noise and goal constants of each resource")
    capacity: list[CapacityEstimate] = Field(default=[], description="estimates of what brokers can carry")
    cpu_cost: CpuCost | None = None
    topics: list[TopicCalibration] = Field(default=[], description="the most notable ones, at most 1,000")
    correlations: list[Correlation] = []
    loads: str | None = Field(default=None, description="Parquet of spark.schemas.PartitionLoads, path from this file")
    weights: dict[str, Weight] = Field(default={}, description="recommended weight by goal name, from the backtest")
    backtest: list[Tried] = Field(default=[], description="the table that supports the weights")

    @field_validator("capacity")
    @classmethod
    def _one_estimate(cls, capacity: list[CapacityEstimate]) -> list[CapacityEstimate]:
        first: dict[tuple[int, str], int] = {}
        for index, estimate in enumerate(capacity):
            key = estimate.broker, estimate.resource
            if key in first:
                taken = f"capacity[{first[key]}] and capacity[{index}] are both of broker {key[0]} and {key[1]}; keep one"
                raise ValueError(taken)
            first[key] = index
        return capacity
