"""What a calibration gives to goals that leave something out, and what it does not touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from goals.document import load_goals
from goals.model import GoalSet, UsageDistribution

HEAD = """version: 1
cluster_id: prod
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
"""
RESOURCES = """resources:
  network_in: {mean: 1, noise: 0.03, bound: 0.14, var: 0.56, min_load: 2e6}
  cpu: {mean: 1, noise: 0.2, bound: 0.3, var: null, min_load: null}
  disk: {mean: 1, noise: null, bound: null, var: null, min_load: null}
"""
CALIBRATION = HEAD + RESOURCES


def read(folder: Path, goals: str, calibration: str = CALIBRATION) -> GoalSet:
    """Goals of a file beside `calibration.yaml`, which it names."""
    (folder / "calibration.yaml").write_text(calibration)
    path = folder / "goals.yaml"
    path.write_text(f"version: 1\n{goals}\ncalibration: calibration.yaml\n")
    return load_goals(path)


def usage(found: GoalSet, resource: str = "network_in") -> UsageDistribution:
    return next(g for g in found.goals if isinstance(g, UsageDistribution) and g.resource == resource)


def one(folder: Path, keys: str, calibration: str = CALIBRATION) -> tuple[UsageDistribution, GoalSet]:
    found = read(folder, f"goals: [{{kind: usage_distribution, {keys}}}]", calibration)
    goal = found.goals[0]
    assert isinstance(goal, UsageDistribution)
    return goal, found


def test_what_is_left_out_comes_from_the_calibration(tmp_path: Path) -> None:
    goal, found = one(tmp_path, "resource: network_in")
    assert (goal.bound, goal.var, goal.var_is_share, goal.min_load, goal.weight) == (0.14, 0.56, True, 2e6, 1.0)
    assert found.notes == ()


def test_what_a_person_wrote_stays_also_where_it_says_the_default(tmp_path: Path) -> None:
    goal, found = one(tmp_path, "resource: network_in, bound: 0.10, var: 0.60, min_load: 0, weight: 1", CALIBRATION + "weights: {}\n")
    assert (goal.bound, goal.var, goal.min_load, goal.weight) == (0.10, 0.60, 0.0, 1.0)
    assert found.calibrated is not None
    assert found.calibrated.filled == ()


def test_a_value_the_calibration_does_not_know_takes_the_default(tmp_path: Path) -> None:
    assert (one(tmp_path, "resource: disk")[0].bound, one(tmp_path, "resource: network_out")[0].bound) == (0.10, 0.10)
    cpu = one(tmp_path, "resource: cpu")[0]
    assert (cpu.bound, cpu.var, cpu.min_load) == (0.3, 0.6, 0.0)


def test_weights_go_to_soft_goals_by_name(tmp_path: Path) -> None:
    weights = "weights: {in: 3, usage_distribution-cpu: 2, capacity-disk: 5, count_limit-leaders: 7, written: 9, rack_aware: 4}\n"
    goals = """goals:
  - {kind: usage_distribution, resource: network_in, name: in}
  - {kind: usage_distribution, resource: cpu}
  - {kind: usage_distribution, resource: disk, name: written, weight: 2}
  - {kind: capacity, resource: disk, limit: 0.8}
  - {kind: count_limit, resource: leaders, max: 9, hard: false}
  - {kind: rack_aware}"""
    found = read(tmp_path, goals, CALIBRATION + weights)
    assert [(g.name, g.weight) for g in found.goals] == [
        ("in", 3.0), ("usage_distribution-cpu", 2.0), ("written", 2.0), ("capacity-disk", 1.0), ("count_limit-leaders", 7.0),
        ("rack_aware", 1.0),
    ]  # fmt: skip


def test_a_bound_that_the_backtest_chose_goes_before_that_of_noise(tmp_path: Path) -> None:
    cost = "cadence: 300, out_of_band_hours: 1, peak_utilization: 1, bytes_moved: 1, actions: 1, moved_back: 0"
    names = "usage_distribution-network_in: {0}, usage_distribution-leaders: {0}"
    rows = [f"{{weights: {{}}, bounds: {{{names.format(bound)}}}, {cost}{more}}}" for bound, more in ((0.1, ""), (0.25, ", chosen: true"))]
    backtest = f"backtest: [{', '.join(rows)}]\n"
    goal, found = one(tmp_path, "resource: network_in", CALIBRATION + backtest)
    assert (goal.bound, goal.var) == (0.25, 1.5)  # what was replayed, not what history says of var
    assert found.calibrated is not None
    assert found.calibrated.of(goal.name)["bound"].startswith("calibration.yaml: backtest[1].bounds.usage_distribution-network_in 0.25")
    leaders, found = one(tmp_path, "resource: leaders", CALIBRATION + backtest)
    assert leaders.bound == 0.25
    assert found.calibrated is not None
    assert found.calibrated.filled[0].place == "backtest[1].bounds.usage_distribution-leaders"
    assert one(tmp_path, "resource: network_in", CALIBRATION + backtest.replace(", chosen: true", ""))[0].bound == 0.1


def test_every_filled_value_is_known_with_its_origin(tmp_path: Path) -> None:
    _, found = one(tmp_path, "resource: network_in, name: in, bound: 0.2")
    assert found.calibrated is not None
    assert found.calibrated.of("in") == {
        "var": "calibration.yaml: resources.network_in.var 0.56, from 2026-10-01 to 2026-11-01",
        "min_load": "calibration.yaml: resources.network_in.min_load 2e+06, from 2026-10-01 to 2026-11-01",
    }
    assert found.calibrated.of("other") == {}
    assert found.calibrated.sentence == "from calibration.yaml (2026-10-01 to 2026-11-01): in var 0.56, min_load 2 MB"


@pytest.mark.parametrize(
    ("keys", "bound", "var", "note"),
    [
        # Written bound beyond the calibrated var: the calibration's ratio (0.56 / 0.14) is kept.
        ("resource: network_in, bound: 0.7", 0.7, 2.8, "var 0.56 is not above bound 0.7, so 2.8 is taken"),
        ("resource: network_in, var: 0.12", 0.03, 0.12, "bound 0.14 is not below var 0.12, so 0.03 is taken"),
        # The calibration has only a bound: the defaults' ratio (0.6 / 0.1).
        ("resource: cpu, var: 0.24", 0.04, 0.24, "bound 0.3 is not below var 0.24, so 0.04 is taken"),
        ("resource: cpu, bound: 0.9", 0.9, 5.4, "var 0.6 is not above bound 0.9, so 5.4 is taken"),
        # A size is added to the bound, so it always fits.
        ("resource: network_in, var: 1MB", 0.14, 1e6, None),
        ("resource: network_in, bound: 0.5", 0.5, 0.56, None),
    ],
)
def test_what_does_not_fit_to_what_is_written_gives_way(tmp_path: Path, keys: str, bound: float, var: float, note: str | None) -> None:
    goal, found = one(tmp_path, keys)
    assert (goal.bound, goal.var) == pytest.approx((bound, var))
    name = goal.name
    assert found.notes == (() if note is None else (f"goal {name}: {note} (from calibration.yaml)",))


def test_a_calibrated_bound_beyond_the_default_var_takes_it_along(tmp_path: Path) -> None:
    goal, found = one(tmp_path, "resource: cpu", CALIBRATION.replace("bound: 0.3", "bound: 0.8"))
    assert (goal.bound, goal.var) == pytest.approx((0.8, 4.8))
    assert found.notes == ("goal usage_distribution-cpu: var 0.6 is not above bound 0.8, so 4.8 is taken (from calibration.yaml)",)


def test_two_written_values_that_do_not_fit_are_refused_as_ever(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"goals\[0\].var: expected a share above bound 0.5, found 0.4"):
        one(tmp_path, "resource: network_in, bound: 0.5, var: 0.4")
    with pytest.raises(ConfigurationError, match=r"goals\[0\].bound: expected a share below var, 0.6 by default"):
        one(tmp_path, "resource: disk, bound: 0.7")  # the calibration knows nothing of disk


def test_presets_are_filled_where_they_say_nothing(tmp_path: Path) -> None:
    """`default` leaves bounds to the calibration; `automq` writes AutoMQ's numbers and keeps them."""
    found = read(tmp_path, "preset: default")
    assert (usage(found).bound, usage(found, "cpu").bound, usage(found, "disk").bound) == (0.14, 0.3, 0.1)
    automq = usage(read(tmp_path, "preset: automq"))
    assert (automq.bound, automq.var, automq.min_load) == (0.10, 100 * 2**20, 2**20)


def test_a_goal_that_replaces_one_of_the_preset_is_told_once(tmp_path: Path) -> None:
    found = read(tmp_path, "preset: default\ngoals: [{kind: usage_distribution, resource: network_in, bound: 0.2, min_load: 0}]")
    assert found.calibrated is not None
    assert [(f.goal, f.key) for f in found.calibrated.filled] == [
        ("usage_distribution-cpu", "bound"), ("usage_distribution-network_in", "var"),
    ]  # fmt: skip


def test_without_a_calibration_presets_mean_what_they_meant() -> None:
    bounds = {g.bound for name in ("default", "counts", "topics") for g in load_goals(None, name).goals if hasattr(g, "bound")}
    assert bounds == {0.10}


def test_the_option_stands_in_place_of_what_the_file_names(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(CALIBRATION.replace("0.14", "0.17"))
    path = tmp_path / "goals.yaml"
    path.write_text("version: 1\npreset: default\ncalibration: gone.yaml\n")
    assert usage(load_goals(path, calibration=other)).bound == 0.17
    assert usage(load_goals(None, "default", other)).bound == 0.17


def test_equal_goals_have_equal_digests_wherever_the_value_is_from(tmp_path: Path) -> None:
    filled = one(tmp_path, "resource: network_in")[1]
    written = one(tmp_path, "resource: network_in, bound: 0.14, var: 0.56, min_load: 2MB")[1]
    other = one(tmp_path, "resource: network_in", CALIBRATION.replace("0.14", "0.15"))[1]
    assert filled.digest == written.digest != other.digest
    capacity = "capacity: [{broker: 1, resource: cpu, value: 8, confidence: high, evidence: x}]\n"
    assert one(tmp_path, "resource: network_in", CALIBRATION + capacity)[1].digest != filled.digest


def test_a_wrong_calibration_is_told_beside_what_is_wrong_with_the_goals(tmp_path: Path) -> None:
    wrong = CALIBRATION.replace("noise: 0.2, ", "").replace("mean: 1, noise: null", "maen: 1, noise: null")
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, "goals: [{kind: rack_awre}]", wrong)
    assert [str(p) for p in refused.value.problems] == [
        "goals[0].kind: unknown kind 'rack_awre'; did you mean 'rack_aware'? (line 2)",
        "calibration.yaml: resources.cpu.noise: missing; "
        "expected natural deviation of a balanced broker in one window, share of the mean (line 7)",
        "calibration.yaml: resources.disk.mean: missing; "
        "expected load of a broker, mean over brokers and time, in the resource's unit (line 8)",
        "calibration.yaml: resources.disk.maen: unknown key; did you mean 'mean'? (line 8)",
    ]
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, "preset: default", "version: [\n")
    assert str(refused.value.problems[0]).startswith("calibration.yaml: line 2, column 1: not YAML")


def test_capacities_of_low_confidence_are_kept_apart(tmp_path: Path) -> None:
    listed = [(1, "cpu", "high"), (2, "cpu", "low"), (3, "cpu", "medium"), (1, "disk", "low")]
    lines = [f"  - {{broker: {b}, resource: {r}, value: {b}, confidence: {c}, evidence: x}}\n" for b, r, c in listed]
    given = read(tmp_path, "preset: default", f"{CALIBRATION}capacity:\n{''.join(lines)}").calibrated
    assert given is not None
    assert given.capacity == {"cpu": {1: 1.0, 3: 3.0}}
    assert given.lower_bounds == {"cpu": (2,), "disk": (1,)}


@pytest.mark.parametrize(("loads", "place"), [("loads", "{}/loads"), ("/lake/loads", "/lake/loads"), ("s3://lake/loads", "s3://lake/loads")])
def test_loads_are_found_from_the_calibration_file(tmp_path: Path, loads: str, place: str) -> None:
    given = read(tmp_path, "preset: default", f"{CALIBRATION}loads: {loads}\n").calibrated
    assert given is not None
    assert given.loads == place.format(tmp_path)


