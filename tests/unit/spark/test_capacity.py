"""A capacity that is not there makes planners leave brokers idle or crowd others; one that is there must be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spark.methods.capacity import Bend, capacities, find_bend
from tests.histories.synthetic import Truth, synthetic

FloatArray = npt.NDArray[Any]
WINDOWS = 2016  # a week of five minutes
MEAN = 1e7
NOTHING: dict[str, FloatArray] = {}


def offered(r: np.random.Generator, weeks: int = 1) -> tuple[FloatArray, FloatArray]:
    """Bytes/s that clients ask for, with day, weekend and noise; and the hour of the day."""
    time = np.arange(WINDOWS * weeks) * 300.0
    hour = time % 86_400 / 3600
    weekend = np.where((time // 86_400) % 7 >= 5, 0.7, 1.0)
    noise = np.exp(0.08 * r.standard_normal(len(time)))
    return MEAN * (1 + 0.4 * np.cos(2 * np.pi * (hour - 14) / 24)) * weekend * noise, hour


def saturated(r: np.random.Generator, share: float, rise: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
    """What gets through a broker that can carry `share` of the mean offered load, and its latency by utilization."""
    load = offered(r)[0] / MEAN / share
    u = load * (1 + load**20) ** (-1 / 20)
    latency = 4.0 * np.minimum(rise(u), 50.0) * np.exp(0.15 * r.standard_normal(len(u)))
    return u * share * MEAN, latency


QUEUES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "one server": lambda u: 1 / (1 - u),
    "four servers": lambda u: 1 + u**4 / (1 - u) / 4,
    "many servers": lambda u: 1 + u**8 / (1 - u) / 8,
}


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("share", [1.1, 1.3, 1.5])
def test_the_limit_of_a_queue_is_found_and_lies_in_its_interval(queue: str, share: float) -> None:
    for seed in range(5):
        throughput, latency = saturated(np.random.default_rng(seed), share, QUEUES[queue])
        bend = find_bend(throughput, latency, seed)
        assert isinstance(bend, Bend), bend
        assert bend.limit == pytest.approx(share * MEAN, rel=0.01)  # latency that ends at 200 ms made it up to 2.8 % too high
        assert bend.low <= share * MEAN <= bend.high
        assert bend.high - bend.low < 0.06 * bend.limit


KNEES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "early": lambda u: 1 + 20 * np.maximum(0, u - 0.85),
    "late and steep": lambda u: 1 + 100 * np.maximum(0, u - 0.92),
    "round": lambda u: 1 + 1.5 * np.log1p(np.exp((u - 0.9) / 0.03)),
}


@pytest.mark.parametrize("knee", KNEES)
def test_a_knee_tells_a_limit_only_where_throughput_stops(knee: str) -> None:
    """A queue fitted to it was 6 to 30 % too high, with high confidence: a hard limit of 0.8 was one of 0.86."""
    for seed in range(4):
        for share in (1.1, 1.3):
            throughput, latency = saturated(np.random.default_rng(seed), share, KNEES[knee])
            bend = find_bend(throughput, latency, seed)
            assert isinstance(bend, Bend), bend
            assert bend.limit == pytest.approx(share * MEAN, rel=0.03)
            assert bend.low <= share * MEAN <= bend.high
        throughput, latency = saturated(np.random.default_rng(seed), 1.7, KNEES[knee])
        assert isinstance(find_bend(throughput, latency, seed), str)


def test_latency_that_is_cut_off_still_tells_the_limit_where_throughput_stops() -> None:
    """Clients time out at ten times the usual latency, so the curve has no steep end."""
    throughput, latency = saturated(np.random.default_rng(0), 1.1, lambda u: np.minimum(1 / (1 - u), 10))
    bend = find_bend(throughput, latency)
    assert isinstance(bend, Bend), bend
    assert bend.pinned
    assert bend.limit == pytest.approx(1.1 * MEAN, rel=0.05)


# What raises latency without any limit near: each is a way to be fooled.
FOOLING: dict[str, Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]] = {
    "nothing": lambda load, hour, r: np.ones(len(load)),
    "a straight rise": lambda load, hour, r: 1 + load / MEAN,
    "a square": lambda load, hour, r: 1 + (load / MEAN) ** 2,
    "an eighth power": lambda load, hour, r: 1 + 0.3 * (load / MEAN) ** 8,
    "an exponential": lambda load, hour, r: np.exp(2 * load / MEAN),
    "office hours": lambda load, hour, r: 1.0 + ((hour > 10) & (hour < 18)),
    "a job at night": lambda load, hour, r: 1.0 + 3 * ((hour > 2) & (hour < 4)),
    "a job at the peak": lambda load, hour, r: 1.0 + 3 * ((hour > 13) & (hour < 15)),
    "one bad day": lambda load, hour, r: 1.0 + 5 * (np.arange(len(load)) // 288 == 3),
    "heavy tails": lambda load, hour, r: np.exp(0.5 * np.abs(r.standard_t(2, len(load)))),
    "noise that grows with load": lambda load, hour, r: np.exp(0.5 * r.standard_normal(len(load)) * load / MEAN),
}


def test_no_limit_is_made_up_where_there_is_none() -> None:
    """At most one broker in 200, over all the ways to be fooled."""
    made_up = []
    for name, rise in FOOLING.items():
        for seed in range(20):
            r = np.random.default_rng(seed)
            load, hour = offered(r)
            latency = 4.0 * rise(load, hour, r) * np.exp(0.15 * r.standard_normal(len(load)))
            if isinstance(find_bend(load, latency, seed), Bend):
                made_up.append((name, seed))
    assert len(made_up) <= 1, made_up


def test_one_day_of_high_load_and_trouble_is_no_limit() -> None:
    made_up = []
    for seed in range(12):
        r = np.random.default_rng(seed)
        load, _ = offered(r)
        incident = np.arange(len(load)) // 288 == 3
        load = np.where(incident, 1.35 * load, load)
        latency = 4.0 * np.where(incident & (load > 1.75 * MEAN), 8.0, 1.0) * np.exp(0.15 * r.standard_normal(len(load)))
        if isinstance(find_bend(load, latency, seed), Bend):
            made_up.append(seed)
    assert made_up == []


def test_a_quota_that_clients_run_into_is_not_what_the_broker_can_carry() -> None:
    """Throughput stops, latency rises a little with load and not where it stops."""
    r = np.random.default_rng(5)
    load = np.minimum(offered(r)[0], 1.15 * MEAN) * np.exp(0.005 * r.standard_normal(WINDOWS))
    latency = 4.0 * (0.2 + load / MEAN) * np.exp(0.15 * r.standard_normal(WINDOWS))
    assert isinstance(find_bend(load, latency), str)


def test_a_limit_that_is_known_to_no_better_than_a_fifth_is_none() -> None:
    """A plan would hold it as a hard limit; of 793 made-up brokers two such were 7 and 9 % off."""
    for name, share, seed in (("one server", 2.0, 10), ("four servers", 1.8, 7)):
        throughput, latency = saturated(np.random.default_rng(seed), share, QUEUES[name])
        bend = find_bend(throughput, latency, 0)
        assert isinstance(bend, Bend), bend
        assert bend.high - bend.low > 0.1 * bend.limit
        found = capacities({"network_in": throughput}, {"produce_latency_ms": latency}, {})["network_in"]
        assert (found.kind, found.confidence) == ("most", "low")
        assert "produce latency bends towards a limit between" in found.words


def test_too_little_or_too_even_a_history_gives_no_bend_and_says_why() -> None:
    r = np.random.default_rng(0)
    throughput, latency = saturated(r, 1.2, QUEUES["one server"])
    assert find_bend(throughput[:100], latency[:100]) == "only 100 windows have both"
    even = MEAN * np.exp(0.01 * r.standard_normal(WINDOWS))
    assert "hardly varies" in str(find_bend(even, latency))


def test_reported_capacity_goes_first_and_the_most_ever_seen_last() -> None:
    r = np.random.default_rng(1)
    throughput, latency = saturated(r, 1.2, QUEUES["one server"])
    told = np.array([3e7, np.nan, 5e7, 5e7, 5e7])
    found = capacities({"network_in": throughput}, {"produce_latency_ms": latency}, {"network_in": told})["network_in"]
    assert (found.value, found.confidence, found.kind) == (5e7, "high", "reported")
    bent = capacities({"network_in": throughput}, {"produce_latency_ms": latency}, NOTHING)["network_in"]
    assert (bent.confidence, bent.kind, bent.measure) == ("high", "bend", "produce_latency_ms")
    assert "produce latency rises" in bent.words
    most = capacities({"network_in": throughput}, NOTHING, NOTHING)["network_in"]
    assert (most.confidence, most.kind) == ("low", "most")
    assert most.value == pytest.approx(np.quantile(throughput, 0.999))
    assert "at least that" in most.words


def test_a_reported_capacity_that_was_exceeded_is_doubted() -> None:
    load = offered(np.random.default_rng(2))[0]
    found = capacities({"network_in": load}, NOTHING, {"network_in": np.full(5, MEAN)})["network_in"]
    assert (found.value, found.confidence) == (MEAN, "medium")
    assert "though it carried" in found.words


def test_misread_values_do_not_become_the_most_ever_carried() -> None:
    r = np.random.default_rng(3)
    load = offered(r)[0]
    spiked = load.copy()
    spiked[r.choice(len(load), 20, replace=False)] *= 200
    found = capacities({"network_in": spiked}, NOTHING, NOTHING)["network_in"]
    assert found.value == pytest.approx(np.quantile(load, 0.999), rel=0.02)
    assert capacities({"network_in": np.full(300, np.nan)}, NOTHING, NOTHING) == {}


def test_a_bend_stays_with_the_resource_that_explains_it() -> None:
    r = np.random.default_rng(4)
    throughput, latency = saturated(r, 1.25, QUEUES["one server"])
    follows = throughput * np.exp(0.03 * r.standard_normal(len(throughput)))  # rises with it, limits nothing
    assert isinstance(find_bend(follows, latency), Bend)
    found = capacities({"network_out": follows, "network_in": throughput}, {"produce_latency_ms": latency}, NOTHING)
    assert found["network_in"].kind == "bend"
    assert (found["network_out"].kind, found["network_out"].confidence) == ("most", "low")
    assert "network_in explains that as well or better" in found["network_out"].words


def test_what_only_follows_a_limited_resource_gets_no_limit() -> None:
    """Requests and bytes out rise with bytes in; one in eight had a made-up limit, which plans hold as a hard one."""
    for seed in range(4):
        r = np.random.default_rng(seed)
        throughput, latency = saturated(r, 1.25, QUEUES["many servers"])
        rates = {"produce_rate": 5e-5, "fetch_rate": 1e-5, "network_out": 3.0}
        loads = {name: scale * throughput * np.exp(0.01 * r.standard_normal(len(throughput))) for name, scale in rates.items()}
        measures = {"produce_latency_ms": latency, "request_latency_ms": latency * np.exp(0.1 * r.standard_normal(len(latency)))}
        found = capacities({**loads, "network_in": throughput}, measures, NOTHING, seed)
        assert found["network_in"].value == pytest.approx(1.25 * MEAN, rel=0.05)
        assert {found[name].confidence for name in rates} == {"low"}


def test_capacities_of_a_synthetic_history_are_recovered_with_missing_and_corrupt_rows() -> None:
    """The whole of what can go wrong at once: 5 % missing, 1 % damaged, five-minute windows, fifteen brokers."""
    truth = Truth(
        brokers=15, partitions=150, span=14 * 86_400, interval=300, capacity=1.5, missing=0.05, corrupt=0.01,
        partition_metrics=("network_in",),
    )  # fmt: skip
    history = synthetic(truth)
    frame = history.table.to_pandas()
    frame = frame[frame.topic.isna() & (frame.value >= 0) & (frame.time.dt.year < 2030)]
    frame["window"] = frame.time.dt.floor("300s")
    wide = frame.pivot_table(index="window", columns=["metric", "broker"], values="value")
    assert history.world.capacity is not None
    errors = []
    for broker, true in enumerate(history.world.capacity, start=1):
        latency = {name: wide[name][broker].to_numpy() for name in ("produce_latency_ms", "request_latency_ms")}
        found = capacities({"network_in": wide["network_in"][broker].to_numpy()}, latency, NOTHING)["network_in"]
        if found.kind == "bend":
            errors.append(found.value / true - 1)
        else:  # one that never came near
            assert found.value < 0.85 * true
    assert len(errors) >= 10
    assert np.abs(errors).max() < 0.1
