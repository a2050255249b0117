"""The service's configuration file: from YAML to settings, every default applied, every problem at once.

Called by the command `serve`, and by programs that embed the service. Paths in the file are relative to its folder.
docs/service.md describes the keys; a default stands here and nowhere else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from cluster_model.errors import ConfigurationError
from cluster_model.windows import Horizon
from metrics_reporter.topic import DEFAULT_NAME
from trimtab.config_file import (
    Bytes,
    BytesOrZero,
    FilePath,
    FolderPath,
    FolderToBe,
    KafkaPart,
    Part,
    Seconds,
    Share,
    Throttle,
    TopicName,
    Wrong,
    or_defaults,
    read_config,
)
from trimtab.http.settings import HttpSettings, access
from trimtab.service.views import Mode
from trimtab.service.webhook import NotifyPart, address_in

LOG_LOOK, ADMIN_LOOK = 0.2, 2.0  # seconds between two looks at the metadata, with and without a log
WINDOWS = {"short": 4, "long": 6}

RecordFormatName = Literal["trimtab", "automq", "cruise_control"]


def _known_preset(value: str) -> str:
    from goals.registry import PRESETS
    from goals.wording import meant_or_known

    if value not in PRESETS:
        raise ValueError(f"unknown preset {value!r}; {meant_or_known(value, PRESETS)}")
    return value


class TopicPart(Part):
    name: TopicName | None = Field(default=None, description="name of the topic")
    format: RecordFormatName = Field(default="trimtab", description="whose reporters write it")
    interval: Seconds = Field(default=10.0, description="how often AutoMQ's reporters report")


class BudgetsPart(Part):
    max_moves: int | None = Field(default=None, ge=1, description="replica moves of a plan")
    max_bytes: Bytes | None = Field(default=None, description="bytes that a plan may copy")
    max_partitions: int | None = Field(default=None, ge=1, description="partitions that a plan may touch")


class LimitsPart(Part):
    moves_per_hour: int | None = Field(default=None, ge=1, description="replica moves in an hour")
    cooldown: Seconds = Field(default=60.0, description="from the end of an execution to the next plan")
    min_brokers: int = Field(default=2, ge=1, description="active brokers below which nothing is balanced")


class ExecutionPart(Part):
    throttle: Throttle | None = Field(
        default=None, description="bytes a second copied into, and out of, each broker; auto: by head-room and what is seen"
    )
    concurrency: int = Field(default=5, ge=1, description="replicas copied into, and from, a broker at a time")
    partitions: int = Field(default=50, ge=1, description="partitions in progress at a time")
    elections: int = Field(default=100, ge=1, description="leaders elected in a second")
    reserve: BytesOrZero = Field(default=1_000_000_000, description="bytes that stay free on every log directory")
    foreign: Literal["wait", "refuse"] = Field(default="wait", description="what to do about reassignments of other tools")
    windows: list[str] = Field(default=[], description="when steps may start, in UTC, such as Sat,Sun 08:00-20:00; always by default")

    @field_validator("windows")
    @classmethod
    def _are_windows(cls, value: list[str]) -> list[str]:
        from trimtab.execution.windows import parse_window

        for text in value:
            parse_window(text)
        return value


class ModelPart(Part):
    long: Seconds = Field(default=1800.0, description="horizon for steady state")
    short: Seconds = Field(default=120.0, validate_default=True, description="horizon for reaction")
    stale_after: Seconds = Field(default=90.0, description="a load without a sample for longer is stale")
    dead_after: Seconds = Field(default=300.0, description="a broker that is fenced for longer is dead")

    @field_validator("short")
    @classmethod
    def _not_longer(cls, value: float, info: ValidationInfo) -> float:
        long: float = info.data.get("long", value)
        if value > long:
            raise ValueError(f"expected at most model.long, {long:g}s, found {value:g}s")
        return value

    def horizon(self, name: Literal["short", "long"]) -> Horizon:
        """As windows of the model."""
        windows = WINDOWS[name]
        return Horizon(max(round(1000 * (self.long if name == "long" else self.short) / windows), 1), windows)


class ReadinessPart(Part):
    covered: Share = Field(default=0.5, description="share of the horizon that samples have to cover")
    heard: Share = Field(default=0.5, description="share of active brokers whose reporters have to be heard")


class HistoryPart(Part):
    folder: FolderToBe = Field(
        default="history", validate_default=True, description="where samples, decisions and the state of the service are kept"
    )
    samples: bool = Field(default=True, description="keep samples as Parquet")
    keep_days: int = Field(default=400, ge=1, description="days of samples")
    keep_bytes: Bytes | None = Field(default=None, description="bytes of samples")
    write_every: Seconds = Field(default=1800.0, description="how long samples wait in memory at most")
    keep_decisions_days: int = Field(default=1000, ge=1, description="days of decisions")
    keep_plan_days: int = Field(default=90, ge=1, description="days of plans in full")
    keep_plan_bytes: Bytes = Field(default=2_000_000_000, description="bytes of plans in full")


class HttpPart(HttpSettings):
    enabled: bool = Field(default=True, description="whether there is an HTTP interface")


class ServiceConfig(Part):
    """The whole file."""

    version: Literal[1] = Field(description="version: 1")
    kafka: KafkaPart = Field(description="where the cluster is")
    node_id: int | None = Field(default=None, ge=0, le=2**31 - 1, description="node.id of the controller it stands beside")
    leader: Literal["controller", "always"] = Field(default="controller", description="when this instance decides")
    instance: str | None = Field(default=None, min_length=1, max_length=200, description="its name in decisions")
    kraft_log: FolderPath | None = Field(default=None, description="folder __cluster_metadata-0 on this machine")
    look: Seconds | None = Field(default=None, description="time between two looks at the metadata")
    topic: Annotated[TopicPart, BeforeValidator(or_defaults)] = Field(TopicPart(), description="the internal topic")
    goals: FilePath | None = Field(default=None, description="goals file")
    preset: Annotated[str, AfterValidator(_known_preset)] | None = Field(
        default=None, description="a shipped goal set, instead of or under the goals file"
    )
    mode: Mode = Field(default="dry-run", description="what happens with plans")
    interval: Seconds | None = Field(
        default=None, description="time from decision to decision; by default as the policy of the goals says, else 5m"
    )
    debounce: Seconds = Field(default=5.0, description="how long it has to be quiet after an event")
    check: Seconds = Field(default=30.0, description="time between two looks at goals and detectors")
    horizon: Literal["short", "long"] = Field(default="long", description="which means plans are made on")
    budgets: Annotated[BudgetsPart, BeforeValidator(or_defaults)] = Field(default=BudgetsPart(), description="limits of a plan")
    limits: Annotated[LimitsPart, BeforeValidator(or_defaults)] = Field(default=LimitsPart(), description="limits over time")
    execution: Annotated[ExecutionPart, BeforeValidator(or_defaults)] = Field(
        default=ExecutionPart(), description="how approved plans are carried out"
    )
    acceptance: Literal["score", "potential"] = Field(default="score", description="which actions are acceptable")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="of the search")
    approval_valid: Seconds = Field(default=3600.0, description="how long a plan waits for approval")
    storage: Literal["local", "shared"] = Field(default="local", description="shared: a move copies nothing")
    capacity: FilePath | None = Field(default=None, description="file with what brokers can carry")
    model: Annotated[ModelPart, BeforeValidator(or_defaults)] = Field(default=ModelPart(), description="the live model")
    readiness: Annotated[ReadinessPart, BeforeValidator(or_defaults)] = Field(default=ReadinessPart(), description="when to start")
    history: Annotated[HistoryPart, BeforeValidator(or_defaults)] = Field(
        default={}, validate_default=True, description="what is kept"
    )
    http: Annotated[HttpPart, BeforeValidator(or_defaults)] = Field(default=HttpPart(), description="the HTTP interface")

    notify: NotifyPart | None = Field(default=None, description="a webhook that is told what people should hear of")

    @property
    def look_seconds(self) -> float:
        """Time between two looks at the metadata."""
        return self.look or (LOG_LOOK if self.kraft_log is not None else ADMIN_LOOK)

    @property
    def topic_name(self) -> str:
        """The topic's name, by its format where it is not given."""
        if self.topic.name is not None:
            return self.topic.name
        return {"trimtab": DEFAULT_NAME, "automq": "__auto_balancer_metrics", "cruise_control": "__CruiseControlMetrics"}[
            self.topic.format
        ]

    @property
    def preset_name(self) -> str | None:
        """The preset; ``default`` where neither it nor a goals file is given."""
        return self.preset or ("default" if self.goals is None else None)

    @property
    def instance_name(self) -> str:
        """As configured, else by the host and the node or process."""
        place = f"node {self.node_id}" if self.node_id is not None else f"process {os.getpid()}"
        return self.instance or f"{socket.gethostname()} {place}"

    @property
    def horizon_ms(self) -> int:
        """Length of the horizon that plans are made on."""
        return round(1000 * (self.model.long if self.horizon == "long" else self.model.short))


def load_config(path: Path) -> ServiceConfig:
    """The configuration in a YAML file, its paths made absolute.

    Raises
    ------
    ConfigurationError
        It cannot be read, or anything in it is wrong: all problems at once, each with its place and line.
    """
    config = read_config(path, ServiceConfig, "a mapping with version: 1 and kafka", _disagreements)
    return config.model_copy(update={"http": config.http.beside(path.absolute().parent)})


def _disagreements(document: Mapping[str, Any], folder: Path) -> list[Wrong]:
    """What does not go together."""
    return [*_whose(document, folder), *_interface(document, folder), *_webhook(document, folder)]


def _whose(document: Mapping[str, Any], folder: Path) -> list[Wrong]:
    """A node that is not named, or is not the one that the metadata log belongs to."""
    from trimtab.capture.placement import node_of

    if document.get("leader", ServiceConfig.model_fields["leader"].default) != "controller":
        return []
    node, named = document.get("node_id"), document.get("kraft_log")
    try:
        owner = node_of(folder / named) if isinstance(named, str) else None
    except ConfigurationError as error:
        return [(("kraft_log",), f"{error.document}: {problem}") for problem in error.problems]
    hint = "" if owner is None else f"; by its meta.properties kraft_log is of node {owner}"
    if node is None:
        message = (
            "missing; expected the node.id of the controller that this instance stands beside, or leader: always where it "
            "is the only instance"
        )
        return [(("node_id",), message + hint)]
    if owner is not None and isinstance(node, int) and node != owner:
        return [(("node_id",), f"expected the controller that kraft_log belongs to, found {node}{hint}")]
    return []


def _interface(document: Mapping[str, Any], folder: Path) -> list[Wrong]:
    """What would not be safe about the HTTP interface, where its settings are right by themselves."""
    try:
        part = HttpPart.model_validate(or_defaults(document.get("http")))
    except ValidationError:
        return []  # each of its mistakes is told
    if not part.enabled:
        return []
    try:
        access(part.beside(folder))
    except ConfigurationError as error:
        return [(tuple(problem.place.split(".")), problem.message) for problem in error.problems]
    return []


def _webhook(document: Mapping[str, Any], folder: Path) -> list[Wrong]:
    """A file with the address of a webhook that is there and not good; one that is not there is told elsewhere."""
    part = document.get("notify")
    named = part.get("url_file") if isinstance(part, dict) else None
    if not isinstance(named, str) or not (folder / named).is_file():
        return []
    try:
        address_in(folder / named)
    except ValueError as error:
        return [(("notify", "url_file"), str(error))]
    return []
