"""The form of the records in the topic that samples come by, as the configuration names it. Called by `Balancer`."""

from __future__ import annotations

from cluster_model.model import ClusterModel
from metrics_reporter.formats import OwnFormat, RecordFormat
from trimtab.service.config import ServiceConfig


def record_format(config: ServiceConfig, model: ClusterModel, incarnation: int) -> RecordFormat:
    match config.topic.format:
        case "trimtab":
            return OwnFormat()
        case "automq":
            from metrics_reporter.automq import AutoMQFormat

            return AutoMQFormat(round(1000 * config.topic.interval), incarnation=incarnation)
        case "cruise_control":
            from metrics_reporter.cruise_control import CruiseControlFormat

            return CruiseControlFormat(model.leads, lambda broker: model.capacity(broker, "cpu"), incarnation=incarnation)
