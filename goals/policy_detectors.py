"""The `detector` part of a policy: when it acts. `optimizer.detectors` says what each measures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from goals.policy_part import NotNegative, PolicyPart, Positive

Hits = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, lt=1)]
HISTORY = Field(default=0.0, description="share of a broker's average before in its average now; 0: the load now counts alone")


class Persist(PolicyPart):
    """Fires only after it was seen in so many checks in a row."""

    hits_low: Hits = Field(default=1, description="checks in a row above the low threshold")
    hits_high: Hits = Field(default=1, description="checks in a row above the high threshold")
    clear_on_miss: bool = Field(default=True, description="one check without it starts the count again")


class Hysteresis(PolicyPart):
    """Starts at one severity, stops at a lower one."""

    start: Positive = Field(description="severity at which it starts")
    stop: NotNegative = Field(description="severity at which it stops, below start")

    @model_validator(mode="after")
    def _ordered(self) -> Hysteresis:
        if self.stop >= self.start:
            raise ValueError(f"expected stop below start {self.start:g}, found {self.stop:g}")
        return self


class DetectorPart(PolicyPart):
    """What every detector has."""

    persist: Persist | None = Field(default=None, description="fire only after repeated hits")
    hysteresis: Hysteresis | None = Field(default=None, description="start and stop at different severities")


class GoalBand(DetectorPart):
    """A broker is outside the target range of a goal."""

    kind: Literal["goal_band"]
    deviation: Positive | None = Field(default=None, description="share of the mean, instead of the bounds")
    floor: NotNegative | None = Field(default=None, description="load below which nothing fires")


class Cv(DetectorPart):
    """The coefficient of variation over brokers is high."""

    kind: Literal["cv"]
    threshold: Positive = Field(default=0.3, description="coefficient of variation, 0.3 is 30%")
    sigma_k: Positive | None = Field(default=None, description="standard deviations of an outlier")
    floor: NotNegative | None = Field(default=None, description="load below which nothing fires")
    pop: bool = Field(default=True, description="population deviation; false: sample deviation")


class Absolute(DetectorPart):
    """A broker's utilization is above a limit."""

    kind: Literal["absolute"]
    limit: Positive = Field(default=0.85, description="utilization, 0.85 is 85%")


class AboveMean(DetectorPart):
    """A broker is above the mean by a margin."""

    kind: Literal["above_mean"]
    margin: Positive = Field(default=0.10, description="share above the mean")
    lower_boundary: bool = Field(default=False, description="also fires as far below the mean")
    history_weight: Weight = HISTORY


class MinMax(DetectorPart):
    """The busiest and the idlest broker are far apart."""

    kind: Literal["minmax"]
    rate_pct: Positive = Field(default=50.0, description="message rate: percent between the two")
    tp_ratio: Positive = Field(default=4.0, description="throughput: busiest over idlest")


class Std(DetectorPart):
    """The standard deviation over brokers is above a target."""

    kind: Literal["std"]
    target: Positive = Field(default=0.25, description="standard deviation of utilization")
    outliers: bool = Field(default=True, description="also fires for single brokers far off")
    history_weight: Weight = HISTORY


class Pairs(DetectorPart):
    """Brokers ranked by load and paired, busiest with idlest, differ by percentage points."""

    kind: Literal["pairs"]
    low: Positive = Field(default=15.0, description="percentage points that count as a low hit")
    high: Positive = Field(default=40.0, description="percentage points that count as a high hit")

    @model_validator(mode="after")
    def _ordered(self) -> Pairs:
        if self.low >= self.high:
            raise ValueError(f"expected low below high {self.high:g}, found {self.low:g}")
        return self


class CountSpread(DetectorPart):
    """Replica counts differ too much between brokers."""

    kind: Literal["count_spread"]
    max_spread: Annotated[int, Field(ge=1)] | None = Field(default=None, description="largest minus smallest")
    ratio_of_mean: Positive | None = Field(default=None, description="fires below this share of the mean")
    leaders: bool = Field(default=False, description="also fires for counts of leaders")

    @model_validator(mode="after")
    def _one_of(self) -> CountSpread:
        if self.max_spread is not None and self.ratio_of_mean is not None:
            raise ValueError("expected max_spread or ratio_of_mean, found both; keep one")
        return self


def _kind(value: object) -> str | None:
    if not isinstance(value, dict):
        return getattr(value, "kind", None)
    return value.get("kind") if isinstance(value.get("kind"), str) else None


def _kind_or_list(value: object) -> str | None:
    for key in ("any_of", "all_of"):
        if (isinstance(value, dict) and key in value) or hasattr(value, key):
            return key
    return _kind(value)


_BAND = Annotated[GoalBand, Tag("goal_band")]
_CV = Annotated[Cv, Tag("cv")]
_ABSOLUTE = Annotated[Absolute, Tag("absolute")]
_ABOVE = Annotated[AboveMean, Tag("above_mean")]
_MINMAX = Annotated[MinMax, Tag("minmax")]
_STD = Annotated[Std, Tag("std")]
_PAIRS = Annotated[Pairs, Tag("pairs")]
_SPREAD = Annotated[CountSpread, Tag("count_spread")]
Single = Annotated[_BAND | _CV | _ABSOLUTE | _ABOVE | _MINMAX | _STD | _PAIRS | _SPREAD, Discriminator(_kind)]


class AnyOf(PolicyPart):
    """Fires when one of several detectors does."""

    any_of: list[Single] = Field(min_length=1, description="detectors")


class AllOf(PolicyPart):
    """Fires when all of several detectors do."""

    all_of: list[Single] = Field(min_length=1, description="detectors")


Detector = Annotated[
    _BAND | _CV | _ABSOLUTE | _ABOVE | _MINMAX | _STD | _PAIRS | _SPREAD
    | Annotated[AnyOf, Tag("any_of")] | Annotated[AllOf, Tag("all_of")],
    Discriminator(_kind_or_list),
]  # fmt: skip
