"""The exact model finds what trying everything finds; otherwise the optimality gap of the planner is made up."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.exact import Instance, fewest_bytes, least_deviation

LIMIT = 30.0  # seconds


def tiny(seed: int) -> Instance:
    """3 or 4 brokers, 4 partitions of two replicas, two resources; some with racks."""
    r = np.random.default_rng(seed)
    brokers, partitions = int(r.integers(3, 5)), 4
    racked = brokers == 4 and seed % 2 == 0
    rack = np.arange(brokers) % 2 if racked else np.arange(brokers)
    legal = [c for c in combinations(range(brokers), 2) if rack[c[0]] != rack[c[1]]]
    home = np.zeros((partitions, brokers), dtype=np.bool_)
    for p in range(partitions):
        home[p, list(legal[int(r.integers(len(legal)))])] = True
    leading = r.lognormal(0.0, 0.8, (partitions, 2))
    following = leading * np.array([1.0, 0.0])
    mean = np.tile((leading + following).sum(axis=0) / brokers, (brokers, 1))
    return Instance(home, leading, following, r.lognormal(0.0, 1.0, partitions), mean, rack, 1, 0.05)


def everything(instance: Instance) -> list[tuple[float, float]]:
    """Worst deviation and bytes of every placement that the racks allow."""
    brokers = instance.home.shape[1]
    pairs = [c for c in combinations(range(brokers), 2) if instance.rack[c[0]] != instance.rack[c[1]]]
    choices = [(pair, leader) for pair in pairs for leader in pair]
    found = []
    for chosen in product(choices, repeat=len(instance.home)):
        hosts, leads = np.zeros_like(instance.home), np.zeros_like(instance.home)
        for p, (pair, leader) in enumerate(chosen):
            hosts[p, list(pair)], leads[p, leader] = True, True
        found.append((instance.worst(hosts, leads), instance.moved(hosts)))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_least_deviation_is_that_of_the_best_placement(seed: int) -> None:
    instance = tiny(seed)
    placements = everything(instance)
    for budget in (0.0, 0.3 * instance.all_bytes, instance.all_bytes):
        best = min(worst for worst, moved in placements if moved <= budget + 1e-9)
        answer = least_deviation(instance, budget, known=10.0, time_limit=LIMIT)
        assert answer.proven
        assert answer.value == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_fewest_bytes_is_that_of_the_cheapest_placement(seed: int) -> None:
    instance = tiny(seed)
    placements = everything(instance)
    worsts = sorted({worst for worst, _ in placements})
    for target in (worsts[0], worsts[len(worsts) // 2]):
        best = min(moved for worst, moved in placements if worst <= target + 1e-9)
        answer = fewest_bytes(instance, target, LIMIT)
        assert answer.proven
        assert answer.value == pytest.approx(best, rel=1e-4, abs=1e-4)


def test_what_cannot_be_reached_has_no_answer() -> None:
    instance = tiny(0)
    assert fewest_bytes(instance, 1e-6, LIMIT).value is None


def test_without_time_nothing_is_proven() -> None:
    r = np.random.default_rng(0)
    partitions, brokers = 40, 6
    home = np.zeros((partitions, brokers), dtype=np.bool_)
    home[:, :2] = True
    leading = r.lognormal(0.0, 1.0, (partitions, 3))
    mean = np.tile(2 * leading.sum(axis=0) / brokers, (brokers, 1))
    instance = Instance(home, leading, leading, np.ones(partitions), mean, np.arange(brokers), 1, 1e-9)
    assert not least_deviation(instance, instance.all_bytes, known=10.0, time_limit=0.01).proven
