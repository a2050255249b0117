"""The calibration file: what a job writes is what the planner reads, and a file with mistakes is refused as a whole, with places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cluster_model.errors import ConfigurationError
from cluster_model.resources import RESOURCES
from goals.calibration import (
    AlarmRate,
    Calibration,
    CapacityEstimate,
    Correlation,
    CpuCost,
    HistorySpan,
    ResourceCalibration,
    Seasonality,
    TopicCalibration,
    Tried,
    calibration_text,
    load_calibration,
    parse_calibration,
)

HISTORY = HistorySpan(
    begin="2026-10-01T00:00:00Z", end="2026-11-01T00:00:00Z", window=300.0, samples=12_345_678_901, rejected={"late": 3},
    brokers=12, partitions=1200, digest="sha256:ab",
)  # fmt: skip
NETWORK_IN = ResourceCalibration(
    mean=12345678.9, noise=0.031234567, false_alarms=1.5, bound=0.1234567, var=0.52, min_load=1048576.0, growth=-0.01,
    alarms=[AlarmRate(bound=0.05, false_alarms=30.0)],
    seasonality=Seasonality(strength=0.7, peak_hour=14, profile=[1.0] * 168), why=["noise: a median, 3 %", "yes", "# no comment"],
)  # fmt: skip
FULL = Calibration(
    version=1, cluster_id="123", made_at="2026-11-02T00:00:00Z", history=HISTORY,
    resources={"network_in": NETWORK_IN, "cpu": ResourceCalibration(mean=2.0, noise=None, bound=None, var=None, min_load=None)},
    capacity=[CapacityEstimate(broker=3, resource="cpu", value=1e8 / 3, confidence="low", evidence="most: 'seen', {x}")],
    cpu_cost=CpuCost(
        idle=0.1, per_byte_in=1.23e-9, per_byte_out=0.0, per_produce_request=1e-5, per_fetch_request=1e-6, error=0.03, brokers={"3": -0.2}
    ),
    topics=[TopicCalibration(topic="on", resource="cpu", burst=3.0, pattern="bursty", growth=-0.01)],
    correlations=[Correlation(resources=["cpu", "network_in"], value=-0.9)],
    loads="loads", weights={"usage_distribution-network_in": 2.0},
    backtest=[
        Tried(weights={"a": 0.0}, cadence=300.0, out_of_band_hours=3.5, peak_utilization=0.8, bytes_moved=1e12, actions=3, moved_back=0)
    ],
)  # fmt: skip
HEAD = """version: 1
cluster_id: prod
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        parse_calibration(text, "calibration.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_what_a_job_writes_reads_back_with_six_digits() -> None:
    read = parse_calibration(calibration_text(FULL), "c")
    assert read.resources["network_in"].bound == 0.123457
    assert read.resources["network_in"].mean == 12345700.0
    assert read.resources["cpu"] == FULL.resources["cpu"]
    assert read.history == HISTORY
    assert read.capacity[0].value == 33333300.0
    for part in ("cpu_cost", "topics", "correlations", "loads", "weights", "backtest", "cluster_id"):
        assert getattr(read, part) == getattr(FULL, part)


def test_the_text_says_what_its_parts_are_in_which_unit() -> None:
    text = calibration_text(FULL)
    assert text.startswith("# Calibration of cluster 123, 2026-10-01T00:00:00Z to 2026-11-01T00:00:00Z.\n")
    assert "    mean: 12345700.0  # bytes/s\n" in text
    assert "    noise: null\n" in text
    assert "  - {broker: 3, resource: cpu, value: 33333300.0, confidence: low" in text
    assert "rejected: {}" not in calibration_text(FULL.model_copy(update={"history": HISTORY.model_copy(update={"rejected": {}})}))


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_a_calibration_written_twice_is_the_same_text(data: st.DataObject) -> None:
    number = st.floats(1e-9, 1e15)
    text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
    resources = {
        name: ResourceCalibration(
            mean=data.draw(number), noise=data.draw(st.none() | number), bound=bound, var=bound * 1.5,
            min_load=data.draw(st.none() | number), why=data.draw(st.lists(text, max_size=2)),
        )
        for name in data.draw(st.lists(st.sampled_from(sorted(RESOURCES)), unique=True, max_size=3))
        for bound in [data.draw(number)]
    }  # fmt: skip
    weights = data.draw(st.dictionaries(text, st.floats(0.001, 1e6)))
    made = FULL.model_copy(update={"resources": resources, "cluster_id": data.draw(text), "weights": weights})
    once = calibration_text(made)
    again = parse_calibration(once, "c")
    assert calibration_text(again) == once
    assert again.cluster_id == made.cluster_id
    assert list(again.resources) == list(made.resources)


def test_everything_wrong_is_told_at_once_with_place_and_line() -> None:
    found = problems(
        HEAD.replace("window: 300", "window: 0")
        + "resources:\n"
        + "  netwrok_in: {mean: 1, noise: 0.1, bound: 0.1, var: 0.6, min_load: 0}\n"
        + "  cpu: {mean: 1, noise: 0.1, bund: 0.1, var: 0.6, min_load: 0}\n"
        + "  disk: {mean: 1, noise: 0.1, bound: 0.6, var: 0.6, min_load: lots}\n"
        + "capacity:\n"
        + "  - {broker: 1, resource: cpu, value: 0, confidence: sure, evidence: x}\n"
        + "cpu_cost: 3\n"
    )
    assert found == [
        "history.window: expected a number above 0, found 0 (line 4)",
        "resources.netwrok_in: unknown resource 'netwrok_in'; did you mean 'network_in'? (line 6)",
        "resources.cpu.bound: missing; expected recommended half width of the range, share of the mean; null: too little history (line 7)",
        "resources.cpu.bund: unknown key; did you mean 'bound'? (line 7)",
        "resources.disk.var: expected a share above bound 0.6, found 0.6 (line 8)",
        "resources.disk.min_load: expected a number, found 'lots'; write it without quotes or unit (line 8)",
        "capacity[0].value: expected a number above 0, found 0 (line 10)",
        "capacity[0].confidence: expected high or medium or low, found 'sure' (line 10)",
        "cpu_cost: expected a mapping, found 3 (line 11)",
    ]


def test_two_estimates_of_one_capacity_are_refused() -> None:
    estimate = "{broker: 1, resource: cpu, value: 1, confidence: high, evidence: x}"
    assert problems(f"{HEAD}resources: {{}}\ncapacity: [{estimate}, {estimate}]\n") == [
        "capacity: capacity[0] and capacity[1] are both of broker 1 and cpu; keep one (line 6)"
    ]


def test_a_profile_of_another_length_than_a_week_is_refused() -> None:
    season = "{strength: 0.5, peak_hour: 3, profile: [1, 1]}"
    given = f"{HEAD}resources:\n  cpu: {{mean: 1, noise: 0, bound: 0.1, var: 0.6, min_load: 0, seasonality: {season}}}\n"
    assert problems(given) == ["resources.cpu.seasonality.profile: expected 168 elements, found 2 (line 6)"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a mapping with version: 1, as `trimtab calibrate` writes it, found nothing (line 1)"),
        ("- 1\n", "expected a mapping with version: 1, as `trimtab calibrate` writes it, found list (line 1)"),
        (HEAD.replace("version: 1", "version: 2") + "resources: {}\n", "version: expected 1, found 2 (line 1)"),
        (HEAD + "resources: {}\nresources: {}\n", "resources: key written twice, first in line 5; keep one (line 6)"),
        (HEAD + "resources: {}\nweights: {cpu: 0}\n", "weights.cpu: expected a number above 0, found 0 (line 6)"),
    ],
)
def test_a_file_that_is_none_is_told_so(text: str, says: str) -> None:
    assert problems(text) == [says]


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a calibration file in YAML, there is no such file"):
        load_calibration(tmp_path / "none.yaml")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 20_000_000)
    with pytest.raises(ConfigurationError, match="found more than 4000000 bytes"):
        load_calibration(large)
    large.write_text(calibration_text(FULL))
    assert load_calibration(large) == load_calibration(str(large))
