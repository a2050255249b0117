"""The goals file as pydantic models: keys, types, ranges and defaults, each in this one place.

`goals.document` validates with them and builds the records of `goals.model`; ``trimtab goals schema`` prints
their JSON Schema. Knows nothing of YAML or files; problems come out as pydantic gives them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)  # fmt: skip

from cluster_model.quantities import parse_rate, parse_size
from cluster_model.resources import RESOURCES
from goals.model import Capacity, CountLimit, Goal, RackAware, TopicDistribution, TopicMinimum, UsageDistribution
from goals.policy import PolicyDocument
from goals.wording import meant_or_known, shown

MAX_WEIGHT = 1e9  # beyond it the other goals vanish in rounding
MAX_BROKER_ID = 2**31 - 1
_SIZE_PATTERN = r"^[0-9.]+([eE][+-]?[0-9]+)? *(B|[kK]B|[MGTP]B|[KMGTP]iB)(/s)?$"


@dataclass(frozen=True, slots=True)
class Size:
    """An amount in the unit of a resource in bytes or bytes/s, written with a unit."""

    amount: float


def default_name(kind: str, resource: str | None) -> str:
    """``KIND-RESOURCE``, or the kind alone where it has no resource."""
    return f"{kind}-{resource}" if resource else kind


def _resource(name: str) -> str:
    if name not in RESOURCES:
        raise ValueError(f"unknown resource {name!r}; {meant_or_known(name, RESOURCES)}")
    return name


def _label(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"expected printable characters on one line, found {text!r}")
    if text != text.strip():
        raise ValueError(f"expected no spaces at its ends, found {text!r}")
    return text


def _number(value: object, expected: str) -> float:
    """`value` as a finite float of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected {expected}, found {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"expected {expected}, finite and not negative, found {shown(value)}")
    return number


def _size(text: str, resource: str) -> float:
    """Amount of a size with unit, in the unit of `resource`."""
    unit = RESOURCES[resource]
    if not unit.startswith("bytes"):
        raise ValueError(f"expected a plain number ({resource}: {unit}), found {text!r}")
    return _number(parse_rate(text) if unit == "bytes/s" else parse_size(text), "a size")


def _amount(value: object, info: ValidationInfo) -> float:
    """A number in the resource's unit, or a size where that is bytes or bytes/s."""
    if not isinstance(value, str):
        return _number(value, "a number in the resource's unit, or a size such as 1MiB")
    resource = info.data.get("resource")
    return 0.0 if resource is None else _size(value, resource)  # an unknown resource has its own problem


def _var(value: object, info: ValidationInfo) -> float | Size:
    bound, resource = info.data.get("bound"), info.data.get("resource")
    if isinstance(value, str):
        if not value.strip()[-1:].isalpha():
            expected = "a share (a number without quotes) or a size with its unit such as 100MiB"
            raise ValueError(f"expected {expected}, found {value!r}")
        size = Size(1.0 if resource is None else _size(value, resource))
        if size.amount <= 0.0:
            raise ValueError(f"expected a size above 0 (it is added to the bound), found {value!r}")
        return size
    share = _number(value, "a share of the mean such as 0.6, or a size such as 100MiB")
    if bound is not None and share <= bound:
        raise ValueError(f"expected a share above bound {bound:g}, found {share:g}; raise var or lower bound")
    return share


_SIZE_SCHEMA = {"type": "string", "pattern": _SIZE_PATTERN}
_AMOUNT_SCHEMA = {"anyOf": [{"type": "number", "minimum": 0}, _SIZE_SCHEMA]}
_VAR_SCHEMA = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _SIZE_SCHEMA]}
_RESOURCE_SCHEMA = {"type": "string", "enum": list(RESOURCES)}
Resource = Annotated[str, AfterValidator(_resource), WithJsonSchema(_RESOURCE_SCHEMA)]
Amount = Annotated[float, PlainValidator(_amount), WithJsonSchema(_AMOUNT_SCHEMA)]
Var = Annotated[float | Size, PlainValidator(_var), WithJsonSchema(_VAR_SCHEMA)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_label)]
Pattern = Annotated[str, StringConstraints(min_length=1)]
BrokerId = Annotated[int, Field(ge=0, le=MAX_BROKER_ID)]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class Document(BaseModel):
    """Base of everything in a goals file: unknown keys refused, no conversions, finite numbers only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class GoalDocument(Document):
    """What every kind of goal has."""

    name: Label = Field(
        default="", description="name in reports; default KIND-RESOURCE", json_schema_extra=_without_default
    )
    hard: bool = Field(default=False, description="true: never made worse, and repaired first")
    weight: float = Field(
        default=1.0, gt=0, le=MAX_WEIGHT, description="share in the combined score, soft goals only"
    )
    group: Label = Field(
        default="", description="goals of a group are averaged before groups are compared",
        json_schema_extra=_without_default,
    )  # fmt: skip

    @field_validator("weight")
    @classmethod
    def _soft_only(cls, weight: float, info: ValidationInfo) -> float:
        if info.data.get("hard"):
            raise ValueError(
                "a hard goal has no weight, it is kept anyway; drop weight, or write hard: false"
            )
        return weight


class RackAwareDocument(GoalDocument):
    """Replicas of a partition spread over the racks: at most ceil(RF / racks) of them in one rack."""

    kind: Literal["rack_aware"]
    hard: bool = Field(default=True, description="true: never made worse, and repaired first")

    def build(self) -> Goal:
        name = self.name or default_name(self.kind, None)
        return RackAware(name, self.hard, self.weight, self.group or None)


class CapacityDocument(GoalDocument):
    """Load of a resource at most a share of the broker's capacity."""

    kind: Literal["capacity"]
    hard: bool = Field(default=True, description="true: never made worse, and repaired first")
    resource: Resource = Field(description="resource whose load is limited, such as disk")
    limit: float = Field(ge=0, description="share of the broker's capacity, such as 0.8")

    def build(self) -> Goal:
        name = self.name or default_name(self.kind, self.resource)
        return Capacity(name, self.hard, self.weight, self.group or None, self.resource, self.limit)


class CountLimitDocument(GoalDocument):
    """At most so many replicas or leaders (or so much of any resource) on a broker."""

    kind: Literal["count_limit"]
    hard: bool = Field(default=True, description="true: never made worse, and repaired first")
    resource: Resource = Field(description="resource that is limited, such as replicas")
    max: Amount = Field(description="most a broker may hold, in the resource's unit, such as 4000")

    def build(self) -> Goal:
        name = self.name or default_name(self.kind, self.resource)
        return CountLimit(name, self.hard, self.weight, self.group or None, self.resource, self.max)


class UsageDistributionDocument(GoalDocument):
    """Load of a resource on every broker within a range around the mean."""

    kind: Literal["usage_distribution"]
    resource: Resource = Field(description="resource that is levelled, such as network_in")
    bound: float = Field(default=0.10, gt=0, description="half width of the target range, share of the mean")
    var: Var = Field(
        default=0.60, validate_default=True,
        description="end of the linear part: share of the mean, or a size above the bound such as 100MiB",
    )  # fmt: skip
    tail: Literal["bound", "absolute"] = Field(
        default="bound", description="unit of the logarithm beyond var: the bound, or the resource's own unit"
    )
    min_load: Amount = Field(
        default=0.0,
        description="satisfied while broker and mean are both below; the resource's unit, or a size",
    )
    trivial_change: float = Field(
        default=0.0, ge=0, description="share of the mean; plans, or independent parts of one, that change no broker by more are dropped"
    )

    def build(self) -> Goal:
        return UsageDistribution(
            name=self.name or default_name(self.kind, self.resource), hard=self.hard, weight=self.weight,
            group=self.group or None, resource=self.resource, bound=self.bound,
            var=self.var.amount if isinstance(self.var, Size) else self.var,
            var_is_share=not isinstance(self.var, Size), tail=self.tail, min_load=self.min_load,
            trivial_change=self.trivial_change,
        )  # fmt: skip


class TopicDistributionDocument(GoalDocument):
    """Replicas or leaders of each topic spread evenly over the brokers."""

    kind: Literal["topic_distribution"]
    resource: Literal["replicas", "leaders"] = Field(description="replicas or leaders of each topic")
    bound: float = Field(default=0.10, gt=0, description="half width of the target range, share of the topic's mean")
    min_gap: int = Field(default=0, ge=0, description="its least half width, in replicas or leaders: spares small topics")

    def build(self) -> Goal:
        name = self.name or default_name(self.kind, self.resource)
        return TopicDistribution(
            name, self.hard, self.weight, self.group or None, self.resource, self.bound, self.min_gap
        )


class TopicMinimumDocument(GoalDocument):
    """At least so many replicas or leaders of each of some topics on every broker."""

    kind: Literal["topic_minimum"]
    resource: Literal["replicas", "leaders"] = Field(description="replicas or leaders of each topic")
    topics: Annotated[list[Pattern], Field(min_length=1)] = Field(description="globs of the topics")
    min: int | None = Field(
        default=None, ge=1, description="fewest of each topic on a broker; left out: as many as there are for each",
        json_schema_extra=_without_default,
    )  # fmt: skip

    def build(self) -> Goal:
        name = self.name or default_name(self.kind, self.resource)
        return TopicMinimum(name, self.hard, self.weight, self.group or None, self.resource, tuple(dict.fromkeys(self.topics)), self.min)


AnyGoalDocument = Annotated[
    RackAwareDocument | CapacityDocument | CountLimitDocument
    | UsageDistributionDocument | TopicDistributionDocument | TopicMinimumDocument,
    Field(discriminator="kind"),
]  # fmt: skip


class BrokerSetDocument(Document):
    """Brokers that the replicas of some topics stay on."""

    name: Label = Field(description="name in reports")
    brokers: Annotated[list[BrokerId], Field(min_length=1)] = Field(description="ids; a broker is in one set at most")
    topics: list[Pattern] = Field(
        default=[], min_length=1, description="globs; a topic is of the first set that it matches; left out: all topics of no other set",
        json_schema_extra=_without_default,
    )  # fmt: skip


class ConstraintsDocument(Document):
    """What must not be touched, and what stays where."""

    exclude_topics: list[Pattern] = Field(
        default=[], description="globs; moved by repairs only (dead, draining, leaderless), load still counts"
    )
    freeze_topics: list[Pattern] = Field(default=[], description="globs; never changed, not even by repairs; load still counts")
    exclude_brokers: list[BrokerId] = Field(default=[], description="ids; neither gain nor lose anything")
    include_topics: list[Pattern] = Field(default=[], description="globs; only these may move; empty: all")
    broker_sets: list[BrokerSetDocument] = Field(
        default=[], description="replicas of a set's topics stay on its brokers, other topics on brokers of no set"
    )


class GoalsDocument(Document):
    """Goals file of Trimtab, version 1."""

    version: Annotated[int, WithJsonSchema({"const": 1})] = Field(
        description="1, the version of the file form"
    )
    preset: str = Field(
        default="", description="shipped goal set to build on", json_schema_extra=_without_default
    )
    goals: list[AnyGoalDocument] = Field(default=[], description="goals, in the order of the report")
    constraints: ConstraintsDocument = ConstraintsDocument()
    policy: PolicyDocument = PolicyDocument()
    calibration: str = Field(
        default="", min_length=1, description="path from this file", json_schema_extra=_without_default
    )

    @field_validator("version")
    @classmethod
    def _known_version(cls, version: int) -> int:
        if version != 1:
            raise ValueError(f"expected 1, found {version}; this release reads version 1 only")
        return version


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a goals file, for editors."""
    schema = GoalsDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
