"""The reporter's configuration file: from YAML to settings, every default applied, every problem at once.

Called by the command `reporter`. Paths in the file are relative to its folder. docs/reporter.md describes the keys;
a default stands here and nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from metrics_reporter.topic import DEFAULT_NAME
from trimtab.config_file import Amount, Bytes, KafkaPart, Part, Rate, Seconds, Wrong, or_defaults, read_config

COMPRESSIONS = {"gzip": "zlib", "lz4": "lz4.frame", "snappy": "snappy", "zstd": "zstandard"}


def _http_url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.partition("://")[2].strip("/"):
        raise ValueError(f"expected a URL such as http://127.0.0.1:7071/metrics, found {value!r}")
    return value


Url = Annotated[str, AfterValidator(_http_url)]


class TopicPart(Part):
    name: str = Field(default=DEFAULT_NAME, pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="name of the topic")
    create: bool = Field(default=True, description="make it where it is absent")
    partitions: int = Field(default=1, ge=1, le=10_000, description="partitions to make it with")
    grow: bool = Field(default=False, description="add partitions where it has fewer")
    replication_factor: int | None = Field(default=None, ge=1, le=100, description="replicas of each partition")
    retention: Seconds = Field(default=3600.0, description="how long samples are kept")
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = Field(default="gzip", description="how records are packed")


class EndpointPart(Part):
    url: Url = Field(description="URL of the agent in the broker's process")
    timeout: Seconds = Field(default=5.0, description="how long one answer may take")
    user: str | None = Field(default=None, description="user of HTTP basic authentication")
    password_file: str | None = Field(default=None, description="file with the password")


class HostPart(Part):
    log_dirs: list[str] = Field(default=[], description="the broker's log directories")
    interfaces: list[str] = Field(default=[], description="network interfaces of the broker's traffic")
    pid_file: str | None = Field(default=None, description="file with the broker's process id")


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
    return read_config(
        path, ReporterConfig, "a mapping with version: 1, broker, kafka and collectors", _rebased, _disagreements
    )


def _rebased(config: ReporterConfig, folder: Path) -> ReporterConfig:
    """The same with paths that do not depend on where the command is run."""

    def absolute(value: str | None) -> str | None:
        return None if value is None else str(folder / value)

    def endpoint(part: EndpointPart | None) -> EndpointPart | None:
        return part and part.model_copy(update={"password_file": absolute(part.password_file)})

    collectors, host = config.collectors, config.collectors.host
    if host is not None:
        log_dirs = [str(folder / path) for path in host.log_dirs]
        host = host.model_copy(update={"pid_file": absolute(host.pid_file), "log_dirs": log_dirs})
    agents = {"prometheus": endpoint(collectors.prometheus), "jolokia": endpoint(collectors.jolokia)}
    kafka = config.kafka.model_copy(update={"command_config": absolute(config.kafka.command_config)})
    return config.model_copy(update={"kafka": kafka, "collectors": collectors.model_copy(update={**agents, "host": host})})


def _disagreements(config: ReporterConfig) -> list[Wrong]:
    """Places where parts that are right by themselves do not go together."""
    found: list[Wrong] = []
    parts = config.collectors
    if parts.prometheus is None and parts.jolokia is None and parts.kafka is None and parts.host is None:
        found.append((("collectors",), "expected at least one of prometheus, jolokia, kafka, host, found none"))
    if parts.prometheus is not None and parts.jolokia is not None:
        found.append((("collectors", "jolokia"), "prometheus reads the same counters; keep one of the two"))
    for name, part in (("prometheus", parts.prometheus), ("jolokia", parts.jolokia)):
        if part is not None and part.password_file is not None:
            if part.user is None:
                found.append((("collectors", name, "password_file"), "goes with user, which is missing"))
            if not Path(part.password_file).is_file():
                found.append((("collectors", name, "password_file"), f"there is no file {part.password_file}"))
    for i, log_dir in enumerate(parts.host.log_dirs if parts.host is not None else ()):
        if not Path(log_dir).is_dir():
            found.append((("collectors", "host", "log_dirs", i), f"there is no folder {log_dir}"))
    if config.kafka.command_config is not None and not Path(config.kafka.command_config).is_file():
        found.append((("kafka", "command_config"), f"there is no file {config.kafka.command_config}"))
    if config.topic.compression not in ("none", *_installed()):
        message = f"needs a Python library that is not installed; expected one of none, {', '.join(_installed())}"
        found.append((("topic", "compression"), f"{config.topic.compression} {message}"))
    return found


def _installed() -> list[str]:
    """Compressions that there is a library for."""
    from importlib.util import find_spec

    return [name for name, module in COMPRESSIONS.items() if find_spec(module.partition(".")[0]) is not None]
