"""What a byte costs decides which partitions are moved for cpu: wrong costs move the wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import lsq_linear

from spark.methods.cpu_cost import FEATURES, CpuCosts, attributed, fit
from tests.histories.synthetic import Truth, synthetic

Array = npt.NDArray[Any]
TRUE = {"network_in": 2e-8, "network_out": 1e-8, "produce_rate": 4e-4, "fetch_rate": 8e-4}
IDLE = 0.5


def windows(seed: int = 0, count: int = 4000, noise: float = 0.02) -> tuple[Array, dict[str, Array], Array]:
    """Cpu, rates and brokers of windows with known costs; rates vary independently."""
    r = np.random.default_rng(seed)
    size = {"network_in": 2e7, "network_out": 4e7, "produce_rate": 5e2, "fetch_rate": 3e2}
    rates = {name: size[name] * r.lognormal(0.0, 0.4, count) for name in FEATURES}
    cpu = IDLE + sum(TRUE[name] * rates[name] for name in FEATURES)
    return cpu * (1 + noise * r.standard_normal(count)), rates, r.integers(1, 9, count)


def fitted(*given: Any) -> CpuCosts:
    found = fit(*given)
    assert isinstance(found, CpuCosts), found
    return found


def test_on_clean_windows_it_is_what_least_squares_gives() -> None:
    cpu, rates, broker = windows(noise=1e-4)
    design = np.column_stack([np.ones(len(cpu)), *(rates[n] / rates[n].mean() for n in FEATURES)])
    reference = lsq_linear(design / cpu[:, None], np.ones(len(cpu)), bounds=(0, np.inf)).x
    found = fitted(cpu, rates, broker)
    assert found.idle == pytest.approx(reference[0], rel=1e-3)
    for i, name in enumerate(FEATURES):
        assert found.costs[name] * rates[name].mean() == pytest.approx(reference[1 + i], rel=1e-3)


def test_misread_windows_do_not_move_the_costs_though_they_move_least_squares() -> None:
    cpu, rates, broker = windows()
    r = np.random.default_rng(1)
    for values in (cpu, *rates.values()):
        values[r.choice(len(cpu), len(cpu) // 50, replace=False)] *= r.uniform(1.5, 300)
    values[r.choice(len(cpu), 20, replace=False)] = np.nan
    found = fitted(cpu, rates, broker)
    for name in FEATURES:
        assert found.costs[name] == pytest.approx(TRUE[name], rel=0.05)
    assert found.idle == pytest.approx(IDLE, rel=0.05)


def test_costs_of_a_synthetic_history_are_recovered_with_missing_and_corrupt_rows() -> None:
    """5 % missing, 1 % damaged, spikes among them, one-minute samples in five-minute windows: within 5 %."""
    truth = Truth(
        brokers=12, partitions=240, span=5 * 86_400, missing=0.05, corrupt=0.01, partition_metrics=("network_in",),
        damage=("nan", "negative", "duplicate", "future", "spike"),
    )  # fmt: skip
    frame = synthetic(truth).table.to_pandas()
    frame = frame[frame.topic.isna() & (frame.value >= 0) & (frame.time.dt.year < 2030)]
    frame["window"] = frame.time.dt.floor("300s")
    wide = frame.pivot_table(index=["window", "broker"], columns="metric", values="value").reset_index()
    rates = {name: wide[name].to_numpy() for name in FEATURES}
    found = fitted(wide["cpu"].to_numpy(), rates, wide["broker"].to_numpy())
    cost = truth.cpu
    expected = dict(zip(FEATURES, (cost.byte_in, cost.byte_out, cost.produce, cost.fetch), strict=True))
    for name in FEATURES:
        assert found.costs[name] == pytest.approx(expected[name], rel=0.05)
    assert found.idle == pytest.approx(cost.idle, rel=0.05)
    assert found.error < 0.02
    assert found.outstanding == ()


def test_rates_that_rise_and_fall_together_are_said_to_and_predict_all_the_same() -> None:
    _, rates, broker = windows()
    rates["network_out"] = 3 * rates["network_in"]
    true = IDLE + sum(TRUE[name] * rates[name] for name in FEATURES)
    found = fitted(true, rates, broker)
    assert any("bytes in and bytes out rise and fall together" in w and "cannot be told apart" in w for w in found.words)
    assert found.per_byte_in * rates["network_in"].mean() == pytest.approx(found.per_byte_out * rates["network_out"].mean())
    np.testing.assert_allclose(found.explained(rates), true, rtol=1e-6)
    apart = fitted(*windows())
    assert apart.words == ()


def test_rates_that_nearly_follow_each_other_are_not_told_apart_by_chance() -> None:
    """A correlation of 0.999: two costs from that would be the noise's, one of them often zero."""
    _, rates, broker = windows(count=500)
    r = np.random.default_rng(3)
    rates["network_out"] = 2 * rates["network_in"] * (1 + 0.015 * r.standard_normal(500))
    cpu = (IDLE + sum(TRUE[name] * rates[name] for name in FEATURES)) * (1 + 0.05 * r.standard_normal(500))
    found = fitted(cpu, rates, broker)
    assert any("cannot be told apart" in w for w in found.words)
    together = found.per_byte_in + 2 * found.per_byte_out
    assert together == pytest.approx(TRUE["network_in"] + 2 * TRUE["network_out"], rel=0.05)
    assert found.per_byte_in > 0
    assert found.per_byte_out > 0


def test_a_rate_that_hardly_varies_has_a_cost_that_is_called_doubtful() -> None:
    cpu, rates, broker = windows(count=400)
    rates["fetch_rate"] = 3e2 * (1 + 0.01 * np.random.default_rng(2).standard_normal(400))
    found = fitted(cpu, rates, broker)
    assert any("fetch requests" in w for w in found.words)
    assert found.doubt["fetch_rate"] > 0.25


def test_a_window_with_a_rate_missing_is_not_said_to_use_too_much() -> None:
    cpu, rates, broker = windows()
    rates["network_out"][::10] = np.nan
    explained = fitted(cpu, rates, broker).explained(rates)
    assert np.isnan(explained[::10]).all()
    assert np.nanmax(np.abs(cpu / explained - 1)) < 0.2


def test_costs_are_never_negative() -> None:
    cpu, rates, broker = windows()
    found = fitted(cpu, rates | {"fetch_rate": 1e3 / (1 + rates["network_in"] / 1e7)}, broker)
    assert min(found.idle, *found.costs.values()) >= 0


def test_a_broker_of_other_hardware_stands_out_and_does_not_change_the_costs() -> None:
    cpu, rates, broker = windows()
    cpu[broker == 3] *= 1.5
    found = fitted(cpu, rates, broker)
    assert found.outstanding == (3,)
    assert found.residuals[3] == pytest.approx(0.5 * np.median(cpu[broker != 3]), rel=0.1)
    assert found.per_byte_in == pytest.approx(2e-8, rel=0.05)
    assert any("1 of 8 brokers" in w for w in found.words)


def test_what_is_not_measured_is_said_and_too_little_is_refused_with_a_reason() -> None:
    cpu, rates, broker = windows()
    found = fitted(cpu, {"network_in": rates["network_in"], "network_out": rates["network_out"]}, broker)
    assert "fetch requests are not measured, so their cost is part of the other costs" in found.words
    assert found.per_fetch_request == 0
    assert fit(cpu[:50], {n: v[:50] for n, v in rates.items()}, broker[:50]) == "only 50 windows have cpu and rates, 100 are needed"
    assert isinstance(fit(cpu, {}, broker), str)


def test_an_idle_cluster_has_no_costs_and_says_so() -> None:
    """A stand-by cluster is calibrated, too: it ended with an error of numpy."""
    nothing, busy = np.zeros(200), np.linspace(1.0, 2.0, 200)
    assert fit(busy, {"network_in": nothing, "network_out": nothing}, np.zeros(200, np.int64)) == "the brokers have no traffic"
    assert fit(nothing, {"network_in": busy}, np.zeros(200, np.int64)) == "cpu is 0 all the time"


def test_replicas_share_what_their_broker_uses_beyond_idle() -> None:
    costs = fitted(*windows(noise=1e-6))
    rates = {"network_in": np.array([1e7, 1e7, 3e7, 1e7]), "network_out": np.array([2e7, 0.0, np.nan, 0.0])}
    broker = np.array([1, 1, 2, 3])
    alone = attributed(costs, rates, broker)
    np.testing.assert_allclose(alone, [0.4, 0.2, 0.6, 0.2], rtol=1e-3)
    shared = attributed(costs, rates, broker, {1: costs.idle + 0.9, 2: costs.idle + 60.0})
    np.testing.assert_allclose(shared, [0.6, 0.3, 0.6, 0.2], rtol=1e-3)  # broker 2 is beyond belief, 3 is not named
