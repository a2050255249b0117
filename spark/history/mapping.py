"""What the importers need to be told: which column or series of a foreign history is which of our metrics.

Pydantic models of the files that ``trimtab history import --mapping`` takes; docs/calibration-history.md explains their keys.
Loaded by the command, used by `spark.history.csv_form` and `spark.history.prometheus_form`. Knows nothing of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

About = Literal["broker", "topic", "partition", "leads", "growth"]
COUNTER_ENDINGS = ("_total", "_count", "_sum")


class Part(BaseModel):
    """A mapping in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _compiles(pattern: str) -> str:
    """A regular expression with one group."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"expected a regular expression, found {pattern!r}: {error}") from None
    if groups != 1:
        raise ValueError(f"expected one group in parentheses around the broker's id, found {groups} in {pattern!r}")
    return pattern


def _listed(value: Any) -> Any:
    """One series or several, each by its name or in full."""
    return [{"name": one} if isinstance(one, str) else one for one in (value if isinstance(value, list) else [value])]


class SeriesOf(Part):
    """Which series of the answers are meant, and how their values count."""

    name: str | None = Field(default=None, description="name of the metric; left out: any, for answers to rate(…), which have none")
    file: str | None = Field(default=None, description="only answers in files of this name, such as bytes_in*.json")
    labels: dict[str, str] = Field(default={}, description="only series with these labels")
    kind: Literal["counter", "gauge"] | None = Field(
        default=None, description="counter: becomes a rate; default: counter where the name ends in _total, _count or _sum"
    )
    scale: Annotated[float, Field(gt=0)] = Field(default=1.0, description="values are multiplied by it")

    @property
    def is_counter(self) -> bool:
        return self.kind == "counter" if self.kind else (self.name or "").lower().endswith(COUNTER_ENDINGS)


Several = Annotated[list[SeriesOf], BeforeValidator(_listed)]


class BrokerId(Part):
    """Where the id of the broker stands."""

    label: str = Field(default="instance", description="label that says which broker it is")
    pattern: Annotated[str, AfterValidator(_compiles)] = Field(
        default=r"^(?!\d+\.\d+\.\d+\.\d+)[^:]*?(\d+)(?=[:.]|$)",
        description="regular expression whose group is the id; by default no part of an IP address or a port",
    )
    ids: dict[str, Annotated[int, Field(ge=0)]] = Field(default={}, description="values of the label that the pattern does not fit -> id")


class Source(NamedTuple):
    """One series, flattened: what it is about, our metric, and of how many series the metric is the sum."""

    about: About
    metric: str
    series: SeriesOf
    summands: int


class PrometheusMapping(Part):
    """Metric names and labels of Prometheus -> our metrics, brokers and topics."""

    version: Literal[1] = Field(description="1")
    broker_id: BrokerId = BrokerId()
    cluster_label: str | None = Field(default=None, description="label with the cluster's id; else --cluster-id says it")
    topic_label: str = "topic"
    partition_label: str = "partition"
    broker: dict[str, Several] = Field(default={}, description="our metric -> series about a whole broker")
    topic: dict[str, Several] = Field(default={}, description="our metric -> series about a topic on a broker")
    partition: dict[str, Several] = Field(default={}, description="our metric -> series about a replica")
    leads: Several = Field(default=[], description="series that is above 0 where the broker leads the partition")
    growth: Several = Field(default=[], description="counter of each replica's log by which a topic's load is split")

    def sources(self) -> Iterator[Source]:
        """Every series that the file names, in its order."""
        for about in ("broker", "topic", "partition"):
            named: dict[str, list[SeriesOf]] = getattr(self, about)
            for metric, several in named.items():
                yield from (Source(about, metric, one, len(several)) for one in several)
        yield from (Source("leads", "", one, 1) for one in self.leads)
        yield from (Source("growth", "", one, 1) for one in self.growth)


class Column(Part):
    """A column with values of one metric."""

    column: str = Field(description="name in the header")
    kind: Literal["counter", "gauge"] = Field(default="gauge", description="counter: becomes a rate")
    scale: Annotated[float, Field(gt=0)] = Field(default=1.0, description="values are multiplied by it")


def _column(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class CsvMapping(Part):
    """Columns of CSV files -> those of the history. Either `metric` and `value`, or `values` with a column for each metric."""

    version: Literal[1] = Field(description="1")
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    time: str = "time"
    time_form: str = Field(
        default="iso", description="iso, seconds or milliseconds (since 1970), or a pattern of Spark such as dd.MM.yyyy HH:mm"
    )
    broker: str = "broker"
    cluster_id: str | None = Field(default=None, description="column; else --cluster-id says it")
    topic: str | None = "topic"
    partition: str | None = "partition"
    metric: str = "metric"
    value: str = "value"
    names: dict[str, str] = Field(default={}, description="what stands in the column of metrics -> our metric; others keep their name")
    values: dict[str, Annotated[Column, BeforeValidator(_column)]] = Field(
        default={}, description="our metric -> its column; then `metric` and `value` are not looked at"
    )
