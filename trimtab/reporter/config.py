"""The reporter's configuration file: from YAML to settings, every default applied, every problem at once.

Called by the command `reporter`. Paths in the file are relative to its folder. docs/reporter.md describes the keys;
a default stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from metrics_reporter.topic import DEFAULT_NAME
from trimtab.config_file import (
    Amount,
    Bytes,
    FilePath,
    FolderPath,
    KafkaPart,
    Part,
    PathBeside,
    Rate,
    Seconds,
    TopicName,
    Wrong,
    or_defaults,
    read_config,
)

COMPRESSIONS = {"gzip": "zlib", "lz4": "lz4.frame", "snappy": "snappy", "zstd": "zstandard"}


def _http_url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.partition("://")[2].strip("/"):
        raise ValueError(f"expected a URL such as http://127.0.0.1:7071/metrics, found {value!r}")
    return value


def _can_compress(value: str) -> str:
    if value not in ("none", *_installed()):
        raise ValueError(f"{value} needs a Python library that is not installed; expected one of none, {', '.join(_installed())}")
    return value


Url = Annotated[str, AfterValidator(_http_url)]


class TopicPart(Part):
    name: TopicName = Field(default=DEFAULT_NAME, description="name of the topic")
    create: bool = Field(default=True, description="make it where it is absent")
    partitions: int = Field(default=1, ge=1, le=10_000, description="partitions to make it with")
    grow: bool = Field(default=False, description="add partitions where it has fewer")
    replication_factor: int | None = Field(default=None, ge=1, le=100, description="replicas of each partition")
    retention: Seconds = Field(default=3600.0, description="how long samples are kept")
    compression: Annotated[Literal["none", "gzip", "lz4", "snappy", "zstd"], AfterValidator(_can_compress)] = Field(
        default="gzip", description="how records are packed"
    )


class EndpointPart(Part):
    url: Url = Field(description="URL of the agent in the broker's process")
    timeout: Seconds = Field(default=5.0, description="how long one answer may take")
    user: str | None = Field(default=None, description="user of HTTP basic authentication")
    password_file: FilePath | None = Field(default=None, description="file with the password")


class HostPart(Part):
    log_dirs: list[FolderPath] = Field(default=[], description="the broker's log directories")
    interfaces: list[str] = Field(default=[], description="network interfaces of the broker's traffic")
    pid_file: PathBeside | None = Field(default=None, description="file with the broker's process id")


class AdminPart(Part):
    timeout: Seconds = Field(default=5.0, description="how long one request may take")


class CollectorsPart(Part):
    prometheus: EndpointPart | None = Field(default=None, description="the JMX exporter's endpoint")
    jolokia: EndpointPart | None = Field(default=None, description="Jolokia's endpoint")
    kafka: Annotated[AdminPart | None, BeforeValidator(or_defaults)] = Field(default=None, description="log sizes and offsets")
    host: Annotated[HostPart | None, BeforeValidator(or_defaults)] = Field(default=None, description="CPU, network and disks")


class CapacityPart(Part):
    network_in: Rate | None = Field(default=None, description="bytes a second")
    network_out: Rate | None = Field(default=None, description="bytes a second")
    disk: Bytes | None = Field(default=None, description="bytes")
    cpu: Amount | None = Field(default=None, description="cores")
    produce_rate: Amount | None = Field(default=None, description="requests a second")
    fetch_rate: Amount | None = Field(default=None, description="requests a second")
    replicas: Amount | None = Field(default=None, description="count")
    leaders: Amount | None = Field(default=None, description="count")


class ReporterConfig(Part):
    """The whole file."""

    version: Literal[1] = Field(description="version: 1")
    broker: int = Field(ge=0, le=2**31 - 1, description="id of the broker that the reporter stands beside")
    kafka: KafkaPart = Field(description="where the cluster is")
    collectors: CollectorsPart = Field(description="at least one of prometheus, jolokia, kafka, host")
    interval: Seconds = Field(default=10.0, description="time from round to round")
    topic: Annotated[TopicPart, BeforeValidator(or_defaults)] = Field(TopicPart(), description="the internal topic")
    spool: Bytes = Field(default=64_000_000, description="bytes kept in memory while the cluster is away")
    capacity: Annotated[CapacityPart, BeforeValidator(or_defaults)] = Field(
        default=CapacityPart(), description="what the broker can carry"
    )


def load_config(path: Path) -> ReporterConfig:
    """The configuration in a YAML file, its paths made absolute.

    Raises
    ------
    ConfigurationError
        It cannot be read, or anything in it is wrong: all problems at once, each with its place and line.
    """
    return read_config(path, ReporterConfig, "a mapping with version: 1, broker, kafka and collectors", _disagreements)


def _disagreements(document: Mapping[str, Any], folder: Path) -> list[Wrong]:
    """Places where parts that are right by themselves do not go together."""
    parts = document.get("collectors")
    if not isinstance(parts, Mapping):
        return []
    found: list[Wrong] = []
    agents = [name for name in ("prometheus", "jolokia") if parts.get(name) is not None]
    if not agents and "kafka" not in parts and "host" not in parts:
        found.append((("collectors",), "expected at least one of prometheus, jolokia, kafka, host, found none"))
    if len(agents) > 1:
        found.append((("collectors", "jolokia"), "prometheus reads the same counters; keep one of the two"))
    for name in agents:
        part = parts[name]
        if isinstance(part, Mapping) and part.get("password_file") is not None and part.get("user") is None:
            found.append((("collectors", name, "password_file"), "goes with user, which is missing"))
    return found


def _installed() -> list[str]:
    """Compressions that there is a library for."""
    from importlib.util import find_spec

    return [name for name, module in COMPRESSIONS.items() if find_spec(module.partition(".")[0]) is not None]
