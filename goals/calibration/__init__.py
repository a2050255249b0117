"""The calibration file: what Spark found in a cluster's history, read by goals, tune and the planner.

Its models stand in `models`, reading in `reading`, writing in `writing`. Nothing here knows Spark.
"""

from goals.calibration.models import (
    AlarmRate,
    Calibration,
    CapacityEstimate,
    Correlation,
    CpuCost,
    HistorySpan,
    Levelling,
    Part,
    ResourceCalibration,
    Seasonality,
    TopicCalibration,
    Tried,
)
from goals.calibration.reading import load_calibration, parse_calibration
from goals.calibration.writing import calibration_text

__all__ = [
    "AlarmRate",
    "Calibration",
    "CapacityEstimate",
    "Correlation",
    "CpuCost",
    "HistorySpan",
    "Levelling",
    "Part",
    "ResourceCalibration",
    "Seasonality",
    "TopicCalibration",
    "Tried",
    "calibration_text",
    "load_calibration",
    "parse_calibration",
]
