"""`build_snapshot` and `to_document`: what a snapshot document may say, and how a wrong one is refused."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot, to_document
from cluster_model.errors import InputError
from cluster_model.resources import MEASURED, RESOURCES
from tests.unit.cluster_model.documents import Document, assert_same, document, problems_of


def test_a_document_and_its_snapshot_say_the_same() -> None:
    snapshot = build_snapshot(document())
    again = to_document(snapshot)
    assert_same(build_snapshot(again), snapshot)
    assert again["brokers"] == [
        {"id": 1, "rack": "a", "state": "active", "capacity": {"network_in": 0.5e8}},
        {"id": 5, "rack": "b", "state": "active", "capacity": {"network_in": 1.0e8, "replicas": 10.0}},
        {"id": 9, "state": "dead"},
    ]
    partitions: Any = again["partitions"]
    assert partitions[0] == {"topic": "clicks", "partition": 0, "replicas": [9], "leader": None}
    assert partitions[2] == document()["partitions"][0]
    assert "notes" not in again


def test_notes_are_kept() -> None:
    snapshot = build_snapshot({**document(), "notes": ["broker 9 did not answer", "läuft"]})
    assert snapshot.notes == ("broker 9 did not answer", "läuft")
    assert to_document(snapshot)["notes"] == ["broker 9 did not answer", "läuft"]


def test_a_given_empty_follower_load_is_not_an_absent_one() -> None:
    given = document()
    given["partitions"][1]["follower_load"] = {}
    snapshot = build_snapshot(given)
    row = snapshot.row_of_partition("orders", 0)
    assert snapshot.vectors("network_in")[1][row] == 0.0
    assert build_snapshot(document()).vectors("network_in")[1][row] == 10.0
    assert_same(build_snapshot(to_document(snapshot)), snapshot)


def test_null_means_absent_wherever_absent_is_allowed() -> None:
    given = document()
    given["notes"] = None
    given["brokers"][2].update(rack=None, state="dead", capacity=None)
    given["brokers"][0]["capacity"]["disk"] = None
    given["partitions"][0]["leader_load"]["fetch_rate"] = None
    given["partitions"][1]["follower_load"] = None
    given["partitions"][2]["leader_load"] = None
    assert_same(build_snapshot(given), build_snapshot(document()))


def test_partitions_may_come_without_any_load() -> None:
    given = document()
    given["partitions"] = [{"topic": "t", "partition": 3, "replicas": [1, 5]}]
    snapshot = build_snapshot(given)
    assert snapshot.leader_load == {}
    assert snapshot.leader.tolist() == [-1]
    assert_same(build_snapshot(to_document(snapshot)), snapshot)


def test_a_cluster_without_partitions_is_legal() -> None:
    snapshot = build_snapshot({**document(), "partitions": []})
    assert snapshot.replicas.shape == (0, 1)
    assert_same(build_snapshot(to_document(snapshot)), snapshot)


def test_capacity_may_be_given_for_any_resource_loads_for_measured_ones() -> None:
    given = document()
    given["brokers"][0]["capacity"] = dict.fromkeys(RESOURCES, 1.5)
    given["partitions"][0]["leader_load"] = dict.fromkeys(MEASURED, 2)
    given["partitions"][0]["follower_load"] = dict.fromkeys(MEASURED, 0)
    snapshot = build_snapshot(given)
    assert sorted(snapshot.capacity) == sorted(RESOURCES)
    assert sorted(snapshot.leader_load) == sorted(snapshot.follower_load) == sorted(MEASURED)
    assert all(amounts[1] == 1.5 for amounts in snapshot.capacity.values())


def test_callers_may_use_their_own_mappings_tuples_and_numpy_floats() -> None:
    given = document()
    given["partitions"] = tuple(MappingProxyType(p) for p in given["partitions"])
    given["brokers"] = tuple(MappingProxyType(b) for b in given["brokers"])
    given["partitions"][0]["leader_load"]["cpu"] = np.float64(0.5)
    given["partitions"][0]["leader_load"]["disk"] = 7000
    assert_same(build_snapshot(MappingProxyType(given)), build_snapshot(document()))


def test_negative_zero_is_zero() -> None:
    given = document()
    given["partitions"][1]["leader_load"]["cpu"] = -0.0
    loads = build_snapshot(given).leader_load["cpu"]
    assert not np.signbit(loads[1])


@pytest.mark.parametrize(
    "taken_at", ["2026-11-20T12:00:00Z", "2026-11-20T12:00:00.5+01:00", "2026-11-20 12:00"]
)
def test_times_that_are_taken(taken_at: str) -> None:
    assert build_snapshot({**document(), "taken_at": taken_at}).taken_at == taken_at


def test_the_longest_topic_name_and_the_largest_ids() -> None:
    given = document()
    given["brokers"][0]["id"] = 2**31 - 1
    given["partitions"] = [{"topic": "t" * 249, "partition": 2**31 - 1, "replicas": [2**31 - 1, 1]}]
    snapshot = build_snapshot(given)
    assert snapshot.row_of_partition("t" * 249, 2**31 - 1) == 0
    assert snapshot.broker_ids.tolist() == [1, 9, 2**31 - 1]
    assert_same(build_snapshot(to_document(snapshot)), snapshot)


NAN, INF = math.nan, math.inf

# Where the document is changed, to what, where the problem is, and words the operator needs.
REFUSED: list[tuple[str, Any, str, str]] = [
    ("version", 2, "version", "expected 1, found 2"),
    ("version", "1", "version", "found '1'"),
    ("version", True, "version", "found true"),
    ("cluster_id", 7, "cluster_id", "expected a string, found 7"),
    ("cluster_id", "\ud800", "cluster_id", "surrogate"),
    ("taken_at", "yesterday", "taken_at", "ISO-8601"),
    ("taken_at", 1700000000, "taken_at", "ISO-8601 time, found 1700000000"),
    ("storage", "tiered", "storage", "'local' (replicas hold data) or 'shared', found 'tiered'"),
    ("storage", [], "storage", "found a list"),
    ("notes", "one", "notes", "expected a list of strings"),
    ("notes", ["one", 2], "notes[1]", "found 2"),
    ("partition", [], "partition", "did you mean 'partitions'?"),
    ("brokers", {}, "brokers", "expected a list of brokers, found an object"),
    ("brokers/0", 5, "brokers[0]", "expected an object, found 5"),
    ("brokers/0/id", "5", "brokers[0].id", "found '5'"),
    ("brokers/0/id", True, "brokers[0].id", "found true"),
    ("brokers/0/id", None, "brokers[0].id", "found null"),
    ("brokers/0/id", 5.0, "brokers[0].id", "whole number"),
    ("brokers/0/rack", 1, "brokers[0].rack", "expected a rack name"),
    ("brokers/0/rack", "", "brokers[0].rack", "leave the key out"),
    ("brokers/0/racks", "a", "brokers[0].racks", "did you mean 'rack'?"),
    ("brokers/0/state", "drained", "brokers[0].state", "did you mean 'draining'?"),
    ("brokers/0/state", 1, "brokers[0].state", "active, draining, dead, excluded, found 1"),
    ("brokers/0/capacity", 5, "brokers[0].capacity", "expected an object, found 5"),
    ("brokers/0/capacity/memory", 5, "brokers[0].capacity.memory", "unknown resource"),
    ("brokers/0/capacity/disk", -1, "brokers[0].capacity.disk", "expected 0 or more (bytes), found -1"),
    ("brokers/0/capacity/disk", NAN, "brokers[0].capacity.disk", "found NaN; leave the key out"),
    ("brokers/0/capacity/disk", INF, "brokers[0].capacity.disk", "an infinite number"),
    ("partitions", None, "partitions", "expected a list of partitions, found null"),
    ("partitions/1", None, "partitions[1]", "expected an object, found null"),
    ("partitions/1/isr", [1], "partitions[1].isr", "unknown key"),
    ("partitions/1/topic", "a b", "partitions[1].topic", "a topic name that Kafka takes"),
    ("partitions/1/topic", "", "partitions[1].topic", "found ''"),
    ("partitions/1/topic", "..", "partitions[1].topic", "found '..'"),
    ("partitions/1/topic", "t" * 250, "partitions[1].topic", "1 to 249"),
    ("partitions/1/topic", "orders\n", "partitions[1].topic", "found 'orders\\n'"),
    ("partitions/1/topic", None, "partitions[1].topic", "found null"),
    ("partitions/1/partition", -1, "partitions[1].partition", "from 0 to 2147483647, found -1"),
    ("partitions/1/partition", 2**31, "partitions[1].partition", "found 2147483648"),
    ("partitions/1/partition", 10**400, "partitions[1].partition", "more than 60 digits"),
    ("partitions/1/partition", 0.0, "partitions[1].partition", "found 0.0"),
    ("partitions/1/partition", 1, "partitions[1]", "orders-1 is already given by partitions[0]"),
    ("partitions/1/replicas", [], "partitions[1].replicas", "found an empty list"),
    ("partitions/1/replicas", "15", "partitions[1].replicas", "expected a list of broker ids, found '15'"),
    ("partitions/1/replicas", [1, "5"], "partitions[1].replicas", "whole numbers), found '5'"),
    ("partitions/1/replicas", ["1", "5"], "partitions[1].replicas", "whole numbers), found '1'"),
    ("partitions/1/replicas", [1, True], "partitions[1].replicas", "found true"),
    ("partitions/1/replicas", [1, None], "partitions[1].replicas", "found null"),
    ("partitions/1/replicas", [1, 5, 7], "partitions[1].replicas", "broker 7 is not in brokers"),
    ("partitions/1/replicas", [1, 5, -1], "partitions[1].replicas", "broker -1 is not in brokers"),
    ("partitions/1/replicas", [1, 5, 2**32 + 1], "partitions[1].replicas", "broker 4294967297 is not"),
    ("partitions/1/replicas", [1, 5, 10**30], "partitions[1].replicas", "is not in brokers"),
    ("partitions/1/replicas", [1, 5, 1], "partitions[1].replicas", "broker 1 stands in the list twice"),
    ("partitions/0/leader", 9, "partitions[0].leader", "one of the replicas, or null"),
    ("partitions/0/leader", -1, "partitions[0].leader", "null where there is no leader, found -1"),
    ("partitions/0/leader", "5", "partitions[0].leader", "expected a broker id"),
    ("partitions/0/leader", False, "partitions[0].leader", "found false"),
    ("partitions/0/leader_load", [], "partitions[0].leader_load", "expected an object, found a list"),
    ("partitions/0/leader_load/netwrok_in", 1, "partitions[0].leader_load.netwrok_in", "mean 'network_in'?"),
    ("partitions/0/leader_load/replicas", 1, "partitions[0].leader_load.replicas", "leave it out"),
    ("partitions/0/leader_load/cpu", "0.5", "partitions[0].leader_load.cpu", "a number (cores), found '0.5'"),
    ("partitions/0/leader_load/cpu", True, "partitions[0].leader_load.cpu", "found true"),
    ("partitions/0/leader_load/cpu", -1e-9, "partitions[0].leader_load.cpu", "found -1e-09"),
    ("partitions/0/leader_load/cpu", NAN, "partitions[0].leader_load.cpu", "found NaN"),
    ("partitions/0/leader_load/cpu", INF, "partitions[0].leader_load.cpu", "finite"),
    ("partitions/0/leader_load/cpu", -INF, "partitions[0].leader_load.cpu", "finite"),
    ("partitions/0/leader_load/cpu", 10**400, "partitions[0].leader_load.cpu", "finite"),
    ("partitions/0/follower_load/cpu", NAN, "partitions[0].follower_load.cpu", "found NaN"),
    ("partitions/0/follower_load/gpu", 1, "partitions[0].follower_load.gpu", "mean 'cpu'?"),
    ("partitions/0/a\nb", 1, "partitions[0].'a\\nb'", "unknown key"),
]


def changed(path: str, value: object) -> dict[str, Any]:
    given = document()
    at: Any = given
    *steps, last = [int(s) if s.isdigit() else s for s in path.split("/")]
    for step in steps:
        at = at[step]
    at[last] = value
    return given


@pytest.mark.parametrize(("path", "value", "place", "words"), REFUSED)
def test_refused_with_its_place(path: str, value: object, place: str, words: str) -> None:
    problems = problems_of(changed(path, value))
    assert list(problems) == [place]
    assert words in problems[place]


@pytest.mark.parametrize("key", ["version", "cluster_id", "taken_at", "storage", "brokers", "partitions"])
def test_a_missing_key_of_the_document(key: str) -> None:
    given = document()
    del given[key]
    assert "add it" in problems_of(given)[key]


@pytest.mark.parametrize("key", ["topic", "partition", "replicas"])
def test_a_missing_key_of_a_partition(key: str) -> None:
    given = document()
    del given["partitions"][2][key]
    assert list(problems_of(given)) == [f"partitions[2].{key}"]


def test_a_broker_that_is_missing_is_one_problem_however_many_partitions_name_it() -> None:
    """Fifty lines about one broker hid what else was wrong."""
    given = document()
    for one in given["partitions"]:
        one["replicas"] = [7, *one["replicas"][1:]]
        one["leader"] = None
    more = len(given["partitions"]) - 1
    told = "broker 7 is not in brokers; add it there, with state 'dead' if it is gone"
    assert problems_of(given) == {"partitions[0].replicas": f"{told} ({more} more partitions name it)"}


def test_a_wrong_topic_name_is_one_problem_however_many_partitions_have_it() -> None:
    given = document()
    for one in given["partitions"]:
        one["topic"] = "a topic"
    given["partitions"][1]["topic"] = "."
    told = problems_of(given)
    assert list(told) == ["partitions[0].topic", "partitions[1].topic"]
    assert told["partitions[0].topic"].endswith("found 'a topic' (1 more partition names it)")
    assert told["partitions[1].topic"].endswith("found '.'")


def test_a_missing_broker_id() -> None:
    given = document()
    del given["brokers"][2]["id"]
    assert list(problems_of(given)) == ["brokers[2].id"]  # and not every partition that names the broker


def test_a_broker_given_twice() -> None:
    given = document()
    given["brokers"].append({"id": 1, "rack": "c"})
    assert problems_of(given) == {
        "brokers[3].id": "broker 1 is already given by brokers[1]; keep one of the two"
    }


def test_no_brokers_at_all() -> None:
    assert "every broker" in problems_of({**document(), "brokers": [], "partitions": []})["brokers"]


@pytest.mark.parametrize("junk", [[], "snapshot", 5, None, [{"version": 1}]])
def test_a_document_that_is_no_object(junk: object) -> None:
    assert "expected an object" in problems_of(junk)[""]


def test_every_problem_is_told_at_once() -> None:
    given = document()
    given["version"] = 3
    given["storge"] = given.pop("storage")
    given["brokers"][1]["state"] = "gone"
    given["brokers"].append({"id": 5})
    given["partitions"][0]["replicas"] = [5, 5, 8, 7]
    given["partitions"][0]["leader"] = 1
    given["partitions"][1]["leader_load"] = {"cpu": -1, "disk": NAN}
    given["partitions"].append(given["partitions"][2])
    with pytest.raises(InputError) as caught:
        build_snapshot(given, "west.json")
    assert [p.place for p in caught.value.problems] == [
        "storge",
        "storage",
        "version",
        "brokers[1].state",
        "brokers[3].id",
        "partitions[0].replicas",
        "partitions[0].replicas",
        "partitions[0].replicas",
        "partitions[0].leader",
        "partitions[1].leader_load.cpu",
        "partitions[1].leader_load.disk",
        "partitions[3]",
    ]
    first, second, *_ = str(caught.value).splitlines()
    assert first == "west.json: 12 problems"
    assert second == "  storge: unknown key; did you mean 'storage'?"


def test_a_flood_of_problems_is_cut_in_the_message_but_not_in_the_error() -> None:
    given = document()
    given["partitions"] = [{"topic": "t", "partition": n, "replicas": []} for n in range(200)]
    with pytest.raises(InputError) as caught:
        build_snapshot(given)
    assert len(caught.value.problems) == 200
    assert str(caught.value).splitlines()[-1] == "  and 150 more"


def test_the_document_is_not_changed() -> None:
    given = document()
    build_snapshot(given)
    assert given == document()


@pytest.mark.parametrize("broken", [{}, {"brokers": []}, {"brokers": None}])
def test_without_brokers_only_that_is_told(broken: Document) -> None:
    """Every replica would be on an unknown broker, which says nothing more."""
    given = document()
    del given["brokers"]
    assert set(problems_of(given | broken)) == {"brokers"}


@pytest.mark.parametrize("load", ["leader_load", "follower_load"])
def test_amounts_that_no_cluster_has_are_refused_with_their_place(load: str) -> None:
    """Sums and squares of them would be no numbers any more."""
    given = document()
    given["partitions"][1][load] = {"network_in": 1.1e30, "disk": 1e30}
    given["brokers"][0]["capacity"] = {"disk": 1e300}
    found = problems_of(given)
    assert set(found) == {f"partitions[1].{load}.network_in", "brokers[0].capacity.disk"}
    assert found[f"partitions[1].{load}.network_in"] == "expected at most 1e+30 (bytes/s), found 1.1e+30; check the unit"


def test_amounts_too_small_to_be_any_are_zero() -> None:
    given = document()
    given["partitions"][1]["leader_load"] = {"network_in": 5e-324, "cpu": 1e-300}
    snapshot = build_snapshot(given)
    row = snapshot.row_of_partition("orders", 0)
    assert snapshot.leader_load["network_in"][row] == 0.0
    assert snapshot.leader_load["cpu"][row] == 1e-300
