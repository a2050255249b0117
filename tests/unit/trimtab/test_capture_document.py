"""What a capture makes of clusters in trouble: every state is in the snapshot, and every gap in its notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError, ExternalError
from cluster_model.metadata.description import DescribedBroker
from cluster_model.snapshot import BrokerState, Snapshot
from trimtab.capture.assemble import Notes, assemble
from trimtab.capture.capacity import Capacities, read_capacities
from trimtab.capture.gateway import require_broker
from trimtab.capture.rates import Rate, Rates
from trimtab.capture.reading import BrokerReading, LogDir, LogSizes, PartitionEntry, Reading, Topology

KEY = ("orders", 0)
SILENT = BrokerReading(answered=False, errors=("KafkaConnectionError: 113 EHOSTUNREACH",))


def sized(sizes: dict[tuple[str, int], int] | None = None, **rest: object) -> BrokerReading:
    return BrokerReading(LogSizes(0.0, {KEY: 1000} if sizes is None else sizes, **rest))  # type: ignore[arg-type]


def cluster(
    entry: PartitionEntry, brokers: tuple[int, ...] = (1, 2, 3), fenced: tuple[int, ...] = (), **rest: object
) -> Topology:
    entries = {b: DescribedBroker(b, f"r{b}", b in fenced) for b in brokers}
    return Topology("c", entries, {KEY: entry}, **rest)  # type: ignore[arg-type]


def whole(leader: int | None = 1, offline: tuple[int, ...] = ()) -> PartitionEntry:
    return PartitionEntry((1, 2, 3), (1, 2, 3), leader, offline)


def captured(
    topology: Topology, after: Reading, rates: Rates | None = None, before: Reading | None = None,
    capacities: Capacities = Capacities({}, {}),  # noqa: B008 (frozen)
) -> tuple[Snapshot, Notes]:  # fmt: skip
    notes = Notes()
    document = assemble(
        topology, after if before is None else before, after, rates, capacities, "2026-01-01T00:00:00Z", notes
    )
    return build_snapshot(document), notes


def state(snapshot: Snapshot, broker: int) -> BrokerState:
    return BrokerState(int(snapshot.broker_states[snapshot.row_of_broker[broker]]))


def warned(notes: Notes, *parts: str) -> bool:
    return any(all(part in text for part in parts) for text in notes.warnings)


def test_a_healthy_cluster_has_no_warnings() -> None:
    rates = Rates({KEY: Rate(10.0, 4.0)}, 5.0)
    snapshot, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert notes.warnings == []
    assert snapshot.leader_load["network_in"][0] == 10.0
    assert snapshot.leader_load["network_out"][0] == 4.0 + 2 * 10.0, "consumers, and two followers"
    assert not snapshot.has_follower_load[0]
    assert snapshot.notes == tuple(notes.texts)


def test_a_broker_that_only_stands_in_replica_lists_is_dead() -> None:
    snapshot, notes = captured(cluster(whole(offline=(3,)), brokers=(1, 2)), {1: sized(), 2: sized()})
    assert state(snapshot, 3) is BrokerState.DEAD
    assert snapshot.racks[2] is None
    assert warned(notes, "broker 3 hosts replicas but is not registered")


def test_a_registered_broker_that_cannot_be_reached_is_dead_and_says_why() -> None:
    snapshot, notes = captured(cluster(whole()), {1: sized(), 2: sized(), 3: SILENT})
    assert state(snapshot, 3) is BrokerState.DEAD
    assert warned(notes, "broker 3", "could not be reached", "EHOSTUNREACH", "advertised.listeners")


def test_a_broker_that_answered_once_is_not_taken_for_dead() -> None:
    before = {b: sized() for b in (1, 2, 3)}
    snapshot, notes = captured(cluster(whole()), {1: SILENT, 2: sized(), 3: sized()}, before=before)
    assert state(snapshot, 1) is BrokerState.ACTIVE
    assert warned(notes, "broker 1 did not answer completely", "EHOSTUNREACH")
    assert snapshot.leader_load["disk"][0] == 1000, "its size is of the first reading"


def test_a_broker_that_refuses_is_alive() -> None:
    refusing = BrokerReading(errors=("log directories: ClusterAuthorizationFailedError",))
    snapshot, notes = captured(cluster(whole()), {1: refusing, 2: sized({KEY: 900}), 3: sized({KEY: 950})})
    assert state(snapshot, 1) is BrokerState.ACTIVE
    assert warned(notes, "broker 1 did not answer completely: log directories: ClusterAuthorizationFailedError")
    assert snapshot.leader_load["disk"][0] == 950
    assert warned(notes, "the leader's log size is not known of orders-0", "largest other replica")


def test_a_partition_without_a_leader_keeps_its_replicas_and_its_size() -> None:
    snapshot, notes = captured(
        cluster(whole(leader=None, offline=(1,)), fenced=(1,)), {2: sized({KEY: 700}), 3: sized({KEY: 600})}
    )
    assert snapshot.leader[0] == -1
    assert snapshot.broker_ids[snapshot.replicas[0]].tolist() == [1, 2, 3]
    assert snapshot.leader_load["disk"][0] == 700
    assert warned(notes, "1 partition has no leader: orders-0")
    assert warned(notes, "1 replica is offline, of orders-0")


def test_an_unknown_size_is_absent_not_zero() -> None:
    snapshot, notes = captured(cluster(whole()), {b: sized({}) for b in (1, 2, 3)})
    assert not snapshot.is_reported("disk")
    assert warned(notes, "no log size is known of orders-0")


def test_offline_log_directories_are_told() -> None:
    reading = {1: sized({}, offline_dirs=("/disk2",)), 2: sized(), 3: sized()}
    _, notes = captured(cluster(whole(offline=(1,))), reading)
    assert warned(notes, "broker 1 has offline log directories: /disk2")


def test_a_reassignment_under_way_is_taken_as_it_will_end() -> None:
    entry = PartitionEntry(replicas=(2, 3, 1), target=(2, 3), leader=1, offline=())
    rates = Rates({KEY: Rate(10.0, 0.0)}, 5.0)
    snapshot, notes = captured(cluster(entry), {b: sized() for b in (1, 2, 3)}, rates)
    assert snapshot.replicas[0].tolist() == [1, 2]
    assert snapshot.broker_ids[snapshot.leader[0]] == 2
    assert snapshot.leader_load["network_out"][0] == 10.0, "one follower then"
    assert warned(notes, "1 partition is being reassigned")


def test_topics_and_logs_we_may_not_see_are_told() -> None:
    topology = cluster(whole(), unreadable={"secret": "TopicAuthorizationFailedError"})
    _, notes = captured(topology, {1: sized({KEY: 1, ("hidden", 3): 5}), 2: sized(), 3: sized()})
    assert warned(notes, "topic secret is not described completely (TopicAuthorizationFailedError)")
    assert warned(notes, "1 partition has logs on brokers but no metadata (hidden-3)")


def test_rates_that_could_not_be_measured_are_told_and_absent() -> None:
    rates = Rates({}, 5.0, unmeasured=(KEY,), unknown_groups={"locked": "GroupAuthorizationFailedError"})
    snapshot, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert not snapshot.is_reported("network_in")
    assert warned(notes, "no rate could be measured of orders-0")
    assert warned(notes, "consumer groups whose commits are not known: locked")


def test_rates_of_compacted_topics_that_are_estimates_are_told_by_topic() -> None:
    """They were 0.2 to 0.3 % of the truth, and only a note said so."""
    rates = Rates({KEY: Rate(10.0, 4.0, estimated=True)}, 5.0, compacted=frozenset({"orders"}))
    _, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert warned(notes, "network_in of orders (1 partition)", "what a record took when the log grew")
    rates = Rates({KEY: Rate(10.0, 4.0, estimated=True, guessed=True)}, 5.0, compacted=frozenset({"orders"}))
    snapshot, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert warned(notes, "network_in of orders (1 partition) may be far too low")
    assert snapshot.notes == tuple(notes.texts), "it is in every plan that is made of the snapshot"
    rates = Rates({KEY: Rate(10.0, 4.0, estimated=True, guessed=True)}, 5.0, unread=("orders", "other"))
    _, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert warned(notes, "not known whether orders, other are compacted", "needs DescribeConfigs on all topics")


def test_topics_that_no_group_read_are_told() -> None:
    """Half of what consumers without a group fetched was missing, without a word on which topics."""
    rates = Rates({KEY: Rate(10.0, 0.0)}, 5.0)
    _, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, rates)
    assert warned(notes, "no consumer group committed offsets of orders (1 partition)", "not in network_out")


def test_long_lists_are_cut_with_their_length() -> None:
    entries = {("t", n): PartitionEntry((1,), (1,), None, (1,)) for n in range(20)}
    topology = Topology("c", {1: DescribedBroker(1, None, True)}, entries)
    _, notes = captured(topology, {})
    assert warned(notes, "20 partitions have no leader: t-0, t-1,", "t-7 and 12 more")


def test_capacities_of_listed_brokers_go_over_the_default(tmp_path: Path) -> None:
    path = tmp_path / "capacity.yaml"
    path.write_text(
        "default: {disk: 2TB, cpu: 8}\n"
        "brokers:\n  2: {disk: 4TiB, network_in: 1.5GB/s, replicas: 4000}\n  9: {disk: 1}\n"
    )
    capacities = read_capacities(path)
    snapshot, notes = captured(cluster(whole()), {b: sized() for b in (1, 2, 3)}, capacities=capacities)
    assert snapshot.capacity["disk"].tolist() == [2e12, 4 * 2**40, 2e12]
    assert snapshot.capacity["cpu"].tolist() == [8.0, 8.0, 8.0]
    assert snapshot.capacity["network_in"][1] == 1.5e9
    assert snapshot.capacity["replicas"][1] == 4000
    assert warned(notes, "the capacity file lists broker 9, which the cluster does not have")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected {default:"),
        ("- 1", "expected {default:"),
        ("default: 2TB", "default: expected resources with amounts"),
        ("default: {disc: 2TB}", "default.disc: unknown resource (did you mean disk?)"),
        ("default: {disk: 2Tb}", "default.disk: unknown unit 'Tb'"),
        ("default: {disk: 0}", "default.disk: expected an amount above 0"),
        ("default: {cpu: 8 cores}", "default.cpu: expected a plain number, found '8 cores'"),
        ("default: {cpu: .nan}", "default.cpu: expected a plain number"),
        ("brokers: {one: {disk: 1TB}}", "brokers.one: expected a broker id"),
        ("brokers: [1]", "brokers: expected broker ids with capacities"),
        ("broker: {1: {disk: 1TB}}", "broker: unknown key (did you mean brokers?)"),
        ("{default: {disk: 1TB}, version: 1}", "version: unknown key; expected default or brokers"),
        ("default: {disk: 1, disk: 2}", "not YAML"),
        ("default: {", "not YAML"),
    ],
)
def test_a_wrong_capacity_file_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "capacity.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        read_capacities(path)
    assert said in str(error.value)


def test_a_cluster_of_which_no_broker_answers_is_our_way_that_is_broken() -> None:
    """Otherwise every broker would be dead, and the plan would be nonsense."""
    with pytest.raises(
        ExternalError, match=r"none of them answers at the address it advertises.*advertised\.listeners"
    ):
        require_broker(cluster(whole()), dict.fromkeys((1, 2, 3), SILENT), "proxy:9092")
    require_broker(cluster(whole()), {1: SILENT, 2: sized(), 3: SILENT}, "proxy:9092")


def directories(*of: tuple[str, float, float], logs: float = 0.0) -> BrokerReading:
    """Path, TB of the volume, TB free; TB of logs in each."""
    return sized(dirs=tuple(LogDir(path, int(total * 1e12), int(usable * 1e12), int(logs * 1e12)) for path, total, usable in of))


def test_a_brokers_disk_is_what_its_volumes_hold_together_and_the_file_goes_before() -> None:
    readings = {
        1: directories(("/d1", 2.0, 1.0), ("/d2", 4.0, 3.0)),
        2: directories(("/d1", 2.0, 1.0), ("/d1/b", 2.0, 1.00001), logs=0.4),  # two directories of one volume
        3: sized(),
    }
    snapshot, notes = captured(cluster(whole()), readings, capacities=Capacities({}, {3: {"disk": 7e12}}))
    assert snapshot.capacity["disk"].tolist() == [6e12, 2e12, 7e12]
    assert not any("log directory" in text for text in notes.texts)
    equally_full = directories(("/d1", 2.0, 1.0), ("/d2", 2.0, 1.00001), logs=0.9)
    assert captured(cluster(whole()), dict.fromkeys((1, 2, 3), equally_full))[0].capacity["disk"].tolist() == [4e12] * 3
    snapshot, _ = captured(cluster(whole()), readings, capacities=Capacities({"disk": 1e12}, {}))
    assert snapshot.capacity["disk"].tolist() == [1e12, 1e12, 1e12]
    assert "disk" not in captured(cluster(whole()), {b: sized() for b in (1, 2, 3)})[0].capacity


@pytest.mark.parametrize(
    ("first", "second", "warns"),
    [((2.0, 0.2), (2.0, 0.25), True), ((2.0, 0.8), (2.0, 1.9), True), ((2.0, 0.9), (2.0, 1.1), False), ((2.0, 0.1), None, False)],
)
def test_the_fullest_of_several_log_directories_is_warned_of(
    first: tuple[float, float], second: tuple[float, float] | None, warns: bool
) -> None:
    dirs = [("/d1", *first), *([("/d2", *second)] if second else [])]
    _, notes = captured(cluster(whole()), {1: directories(*dirs), 2: sized(), 3: sized()})
    assert warned(notes, "broker 1: log directory /d1 is") is warns


def test_disk_capacity_is_the_size_of_the_file_systems_unless_a_file_says_another() -> None:
    """Without it, README's first plan checks no disk limit."""
    readings = {
        1: sized(dirs=(LogDir("/d1", 1000_000, 999_000), LogDir("/d2", 2000_000, 2000_000))),
        2: sized(dirs=(LogDir("/d1", 1000_000, 400_000),)),
        3: sized(),  # before Kafka 3.3
    }
    snapshot, notes = captured(cluster(whole()), readings, capacities=Capacities({}, {2: {"disk": 5.0}}))
    assert snapshot.capacity["disk"][:2].tolist() == [3000_000.0, 5.0]
    assert snapshot.capacity["disk"][2] != snapshot.capacity["disk"][2]
    assert "disk capacity of 1 broker is the size of the file systems of their log directories" in notes.texts
    snapshot, notes = captured(cluster(whole()), readings)
    assert snapshot.capacity["disk"][1] == 1000_000.0
    assert "60% of the disks of broker 2 holds other files than logs; give the space for logs with --capacity" in notes.texts


def held(broker: BrokerReading, at: int, future: tuple[int, int] | None = None) -> BrokerReading:
    """A broker whose replica of the partition is in directory `at`, or on its way to another one, with so many bytes there already."""
    assert broker.sizes is not None
    sizes = LogSizes(
        0.0, {KEY: 1000}, dirs=broker.sizes.dirs, held={KEY: at}, future={} if future is None else {KEY: future}, moving=future is not None
    )  # fmt: skip
    return BrokerReading(sizes)


def test_directories_of_brokers_with_several_volumes_are_told_with_what_is_in_them() -> None:
    two = directories(("/d1", 2.0, 1.0), ("/d2", 4.0, 3.0), ("/d2/b", 4.0, 3.00001), logs=0.4)  # the last two are of one volume
    one = directories(("/d1", 2.0, 1.0), ("/d1/b", 2.0, 1.00001), logs=0.4)
    snapshot, _ = captured(cluster(whole()), {1: held(two, 2), 2: held(one, 1), 3: sized()})
    assert list(snapshot.directories) == [1]
    assert [(d.path, d.size, d.used, d.volume) for d in snapshot.directories[1]] == [
        ("/d1", 2e12, 1e12, None), ("/d2", 4e12, 1e12, 1), ("/d2/b", 4e12, 1e12, 1),
    ]  # fmt: skip
    assert snapshot.replica_directory is not None
    assert snapshot.replica_directory.tolist() == [[2, -1, -1]]
    without, _ = captured(cluster(whole()), {1: held(one, 0), 2: held(one, 1), 3: sized()})
    assert (without.directories, without.replica_directory) == ({}, None)


def test_a_replica_that_is_being_moved_is_where_it_will_be() -> None:
    """Of its 1,000 bytes 400 are in the other directory by now: the others are still to come, and all go from where it is."""
    two = sized(dirs=(LogDir("/d1", 10**12, 10**12 - 2000), LogDir("/d2", 10**11, 10**11 - 400)))
    snapshot, _ = captured(cluster(whole()), {1: held(two, 0, future=(1, 400)), 2: sized(), 3: sized()})
    assert [d.used for d in snapshot.directories[1]] == [1000.0, 1000.0]
    assert snapshot.replica_directory is not None
    assert snapshot.replica_directory.tolist() == [[1, -1, -1]]


def test_a_dead_broker_tells_no_directories() -> None:
    two = directories(("/d1", 2.0, 1.0), ("/d2", 4.0, 3.0))
    snapshot, _ = captured(cluster(whole(), fenced=(1,)), {1: held(two, 1), 2: sized(), 3: sized()})
    assert (snapshot.directories, snapshot.replica_directory) == ({}, None)
