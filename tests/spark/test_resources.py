"""What the calibration file says of a resource, and why it does not."""

from __future__ import annotations

import numpy as np

from spark.jobs.resources import Counted, Detection, described
from spark.methods.bins import Histogram


def test_a_resource_without_use_is_not_said_to_need_a_longer_history() -> None:
    """A stand-by cluster was told to wait for weeks that would not have helped."""
    empty = Histogram.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    idle = Counted(mean=0.0, brokers=4, windows=8640, whole=4, noise={}, alarm=empty, spread=empty)
    found = described("network_in", idle, Detection(300.0, 1, 1.0), 6)
    assert (found.mean, found.noise, found.bound, found.seasonality) == (0.0, None, None, None)
    assert "not known; the load is always 0" in found.why[1]
    assert not any("longer history" in sentence or "weeks are needed" in sentence for sentence in found.why)
