"""What became of loads: told as shares of the mean, so that more traffic as a whole is not taken for a plan that was wrong."""

from __future__ import annotations

import pytest

from trimtab.execution.comparison import compared

PREDICTED = {"network_in": {1: 10.0, 2: 10.0, 3: 11.5}, "cpu": {1: 1.0, 2: 1.0, 3: 1.0}, "disk": {1: 0.0, 2: 0.0, 3: 0.0}}
BEFORE = {"network_in": {1: 20.0, 2: 5.0, 3: 6.5}}


def test_twice_the_traffic_is_as_predicted() -> None:
    twice = {"network_in": {b: 2 * load for b, load in PREDICTED["network_in"].items()}}
    (found,) = compared(PREDICTED, twice, BEFORE)
    assert found.actual == pytest.approx(found.predicted)
    assert str(found) == "network_in: at most 10% from the mean, 10% predicted, 90% before"


def test_the_broker_that_differs_most_is_named() -> None:
    (found,) = compared(PREDICTED, {"network_in": {1: 10.0, 2: 16.0, 3: 10.0}})
    assert found.broker == 2
    assert (found.predicted_share, found.share) == pytest.approx((10 / 10.5, 16 / 12))
    assert str(found) == "network_in: at most 33% from the mean, 10% predicted; broker 2 has 133% of the mean, not 95%"


def test_what_is_not_known_of_all_or_is_nowhere_is_left_out() -> None:
    assert compared(PREDICTED, {"disk": {1: 1.0, 2: 1.0, 3: 1.0}}) == ()
    assert compared({}, {"cpu": {1: 1.0}}) == ()
    (found,) = compared(PREDICTED, {"cpu": {1: 1.0, 2: 3.0, 9: 5.0}})
    assert found.broker in (1, 2), "a broker that the plan does not know is not compared"
