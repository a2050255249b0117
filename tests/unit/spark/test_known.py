"""What a history lacks is said, and what nothing reads is named, so that no traffic is lost in silence."""

from __future__ import annotations

import numpy as np
import pytest

from spark.history.known import of_brokers, of_partitions, told, unread
from spark.outgoing import sent

REPORTED = {
    ("network_in", True): 9, ("cpu", True): 9, ("capacity.disk", True): 1, ("produce_latency_ms", True): 9,
    ("network_in", False): 9, ("follower.network_in", False): 9, ("consumer_out", False): 9, ("replica.disk", False): 2,
}  # fmt: skip


def test_what_consumers_fetch_makes_outgoing_traffic_known() -> None:
    assert of_partitions(REPORTED) == {"network_in", "network_out", "disk"}
    assert of_brokers(REPORTED) == {"network_in", "network_out", "disk", "cpu"}
    assert unread(REPORTED) == {}
    assert told(REPORTED) == [
        "not in this history, so not evaluated: produce_rate, fetch_rate",
        "measured for brokers only, not for partitions: cpu",
        "network_out of partitions is what consumers fetch (consumer_out) and each follower copies (network_in)",
    ]


def test_metrics_that_nothing_reads_are_named_with_their_number() -> None:
    found = {**REPORTED, ("lag", False): 7, ("lag", True): 1, ("follower.consumer_out", False): 3, ("temperature", True): 30}
    assert unread(found) == {"temperature": 30, "lag": 8, "follower.consumer_out": 3}
    assert "not used: temperature (30 samples), lag (8 samples), follower.consumer_out (3 samples)" in told(found)
    many = {(f"m{n:02}", True): 1 for n in range(11)}
    assert told(many)[-1].endswith("m07 (1 samples) and 3 more")


def test_a_stretch_sends_what_is_fetched_and_copied() -> None:
    nan = np.float32(np.nan)
    consumers = np.array([[40, nan, 5, nan], [nan, nan, 6, nan]], np.float32)
    incoming = np.array([[10, 3, 1, 2], [10, 3, nan, 2]], np.float32)
    found = sent(consumers, incoming, np.array([2, 1, 0, 0]))
    assert found[0].tolist() == pytest.approx([60, 3, 5, nan], nan_ok=True)
    assert found[1].tolist() == pytest.approx([nan, 3, 6, nan], nan_ok=True)
    measured = np.array([[nan, 9, nan, 9], [70, nan, nan, 9]], np.float32)
    assert sent(consumers, incoming, np.array([2, 1, 0, 0]), measured).tolist() == [[60, 9, 5, 9], [70, 3, 6, 9]]
