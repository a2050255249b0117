"""The calibration file as pydantic models: what Spark found in a cluster's history, read by goals, tune and the planner.

Written by `spark` (``trimtab calibrate``, ``trimtab backtest``), read by `goals.document` where a goals file names it, and by
``trimtab tune``. Keys, units and meanings stand here and in docs/calibration.md; nothing here knows Spark.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from goals.schema import Resource

NotNegative = Annotated[float, Field(ge=0)]
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
    brokers: int = Field(ge=0)
    partitions: int = Field(ge=0)
    digest: str = Field(description="sha256:… over what was read: equal histories have equal digests")


class Seasonality(Part):
    """How load goes round the week."""

    strength: Share = Field(description="share of the variance that the hour of the week explains")
    peak_hour: int = Field(ge=0, le=167, description="hour of the week with the most load; 0 is Monday 00:00 UTC")
    profile: list[NotNegative] = Field(min_length=168, max_length=168, description="load of each hour of the week over the mean")


class ResourceCalibration(Part):
    """One resource: its level, what of its spread is noise, and the goal constants that follow."""

    mean: NotNegative = Field(description="load of a broker, mean over brokers and time, in the resource's unit")
    noise: NotNegative | None = Field(description="natural deviation of a balanced broker in one window, share of the mean")
    false_alarms: NotNegative | None = Field(default=None, description="expected false triggers a week at `bound`, whole cluster")
    bound: NotNegative | None = Field(description="recommended half width of the band, share of the mean; null: too little history")
    var: NotNegative | None = Field(description="recommended end of the linear part, share of the mean, above bound")
    min_load: NotNegative | None = Field(description="recommended least load that is levelled, in the resource's unit")
    growth: float | None = Field(default=None, description="trend of the level, share of the mean a week")
    seasonality: Seasonality | None = None
    why: list[str] = Field(default=[], description="how each number came about, a sentence each")


class CapacityEstimate(Part):
    """What one broker can carry of one resource."""

    broker: Annotated[int, Field(ge=0)]
    resource: Resource
    value: Annotated[float, Field(gt=0)]
    confidence: Literal["high", "medium", "low"]
    evidence: str = Field(description="a sentence: reported, a bend of latency or cpu over throughput, or only the most ever seen")


class CpuCost(Part):
    """Broker cpu explained by what passes through it: a robust fit over all brokers' windows."""

    idle: NotNegative = Field(description="cores that a broker uses without traffic")
    per_byte_in: NotNegative = Field(description="core seconds per byte produced or replicated in")
    per_byte_out: NotNegative
    per_produce_request: NotNegative
    per_fetch_request: NotNegative
    error: NotNegative = Field(description="median absolute residual, share of the mean cpu of a broker")
    brokers: dict[str, float] = Field(default={}, description="broker -> its median residual in cores, where it stands out")
    why: list[str] = Field(default=[])


class TopicCalibration(Part):
    """A topic whose load does not stand still."""

    topic: str
    resource: Resource
    burst: NotNegative = Field(description="95th percentile of its load over the mean")
    pattern: Literal["steady", "cyclic", "growing", "bursty"]
    growth: float = Field(description="share of its mean a week")


class Correlation(Part):
    """Two resources of brokers that rise and fall together."""

    resources: Annotated[list[Resource], Field(min_length=2, max_length=2)]
    value: Annotated[float, Field(ge=-1, le=1)]


class Tried(Part):
    """One configuration of the backtest, on the weeks held out."""

    weights: dict[str, NotNegative]
    bounds: dict[str, NotNegative] = {}
    cadence: float = Field(gt=0, description="seconds between plans")
    out_of_band_hours: NotNegative = Field(description="broker-hours outside the band of the reference bounds")
    peak_utilization: NotNegative
    bytes_moved: NotNegative
    actions: Annotated[int, Field(ge=0)]
    moved_back: Annotated[int, Field(ge=0)]
    chosen: bool = False
    pareto: bool = False
    what: str = Field(default="", description="what it is, such as default goals")


class Calibration(Part):
    """Calibration file of Trimtab, version 1."""

    version: Literal[1]
    cluster_id: str
    made_at: str
    history: HistorySpan
    resources: dict[Resource, ResourceCalibration]
    capacity: list[CapacityEstimate] = []
    cpu_cost: CpuCost | None = None
    topics: list[TopicCalibration] = Field(default=[], description="the most notable ones, at most 1,000")
    correlations: list[Correlation] = []
    loads: str | None = Field(default=None, description="Parquet of spark.schemas.PartitionLoads, path from this file")
    weights: dict[str, NotNegative] = Field(default={}, description="recommended weight by goal name, from the backtest")
    backtest: list[Tried] = Field(default=[], description="the table that supports the weights")
