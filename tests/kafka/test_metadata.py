"""On a real cluster: the log on disk and the admin interface give the same image, through everything that happens to a
cluster; and records are what Kafka's own tool says they are.

One cluster of three controllers and three brokers; the tests follow one upon the other in its life.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from cluster_model.metadata.checkpoint import load_checkpoint
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.directory import list_files
from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.follower import Follower, KRaftFollower, Update
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.polling import AdminFollower
from cluster_model.metadata.schemas import CONTROL_RECORDS, RECORDS, Field
from tests.kafka import jars
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import administering, create_topic, fill
from tests.kafka.watched import PATIENCE
from tests.unit.cluster_model.metadata_tool import dumped, filled, read_records, tool_name
from trimtab.capture import capture
from trimtab.capture.client import client_settings
from trimtab.capture.gateway import Gateway

ROOT = Path(__file__).resolve().parents[2]
# Segments and checkpoints as a large cluster has them, in a small one.
ROLLING = {"metadata.log.max.record.bytes.between.snapshots": "5000", "internal.metadata.log.segment.bytes": "9000"}
PAUSE = 0.1
Said = dict[str, Any]


def said_by(image: MetadataImage) -> Said:
    """What both sources know."""
    partitions = image.partitions(image.live_slots())
    return {
        "controller": image.controller,
        "brokers": {id: (entry.rack, entry.fenced_since_ms is not None) for id, entry in image.brokers.items()},
        "topics": dict(image.topic_ids),
        "partitions": {
            f"{p.topic}-{p.partition}": (p.replicas, set(p.isr), p.leader, set(p.adding), set(p.removing)) for p in partitions
        },
    }


@dataclass
class Watched:
    """A follower, all it ever told, and an image made from that alone."""

    follower: Follower
    events: list[Event] = field(default_factory=list)
    told: MetadataImage = field(default_factory=MetadataImage)

    def poll(self) -> Update:
        update = self.follower.poll(int(time.time() * 1000))
        for event in update.events:
            self.told.apply(event, 0)
            self.events.append(event)
        return update


@dataclass
class Site:
    cluster: KafkaCluster
    gateway: Gateway
    watched: dict[str, Watched]

    def until(self, reached: Callable[[Said], bool], besides: str = "") -> Said:
        """Poll until every follower (one may be left out) says the same, and it is what is waited for."""
        deadline = time.monotonic() + PATIENCE
        while True:
            updates = {name: each.poll() for name, each in self.watched.items() if name != besides}
            said = {name: said_by(self.watched[name].follower.image) for name in updates}
            first = said["admin"]
            if all(update.caught_up for update in updates.values()) and reached(first) and all(s == first for s in said.values()):
                for name in updates:
                    assert said_by(self.watched[name].told) == first, f"events of {name}"
                return first
            if time.monotonic() > deadline:
                held = {name: update.held for name, update in updates.items()}
                different = {name: _different(first, s) for name, s in said.items()}
                pytest.fail(f"not reached: {reached(first)}, held: {held}, different: {different}\n{self.cluster.log_tail()}")
            time.sleep(PAUSE)

    @property
    def log(self) -> Watched:
        """The follower of the log of a broker that is always up."""
        return self.watched["broker 1"]

    def leader(self) -> int:
        leader = self.gateway.quorum().leader
        assert leader is not None
        return leader


def _different(one: Said, other: Said) -> list[Any]:
    flat = [{(k, n): v for k in s for n, v in (s[k].items() if isinstance(s[k], dict) else [("", s[k])])} for s in (one, other)]
    return [(key, flat[0].get(key), flat[1].get(key)) for key in flat[0].keys() | flat[1].keys() if flat[0].get(key) != flat[1].get(key)]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    cluster = KafkaCluster(("r1", "r2", "r3"), controllers=3, properties=ROLLING, controller_properties=ROLLING, heap="192m")
    with cluster, Gateway(cluster.bootstrap, client_settings(None)) as gateway:
        watched = {f"controller {id}": Watched(KRaftFollower(cluster.metadata_log(id), gateway)) for id in cluster.quorum}
        watched["broker 1"] = Watched(KRaftFollower(cluster.metadata_log(1), gateway))
        watched["admin"] = Watched(AdminFollower(gateway))
        site = Site(cluster, gateway, watched)
        site.until(lambda said: {b for b, (_, fenced) in said["brokers"].items() if not fenced} == {1, 2, 3})
        yield site


@pytest.fixture
def admin(site: Site) -> Iterator[KafkaAdminClient]:
    with administering(site.cluster) as client:
        yield client


# -- topics ------------------------------------------------------------------------------------------------


def test_a_new_topic_is_an_event_within_a_second(site: Site, admin: KafkaAdminClient) -> None:
    delays = []
    for name in ("orders", "gone", "clicks"):
        create_topic(admin, name, [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]])
        begun = time.monotonic()
        seen = len(site.log.events)
        while not any(isinstance(e, TopicCreated) and e.name == name for e in site.log.events):
            assert time.monotonic() - begun < PATIENCE, site.cluster.log_tail()
            site.log.poll()
            time.sleep(PAUSE)
        delays.append(time.monotonic() - begun)
        assert seen < len(site.log.events)
    assert sorted(delays)[1] < 1.0, delays
    said = site.until(lambda said: {"orders", "gone", "clicks"} <= said["topics"].keys())
    assert said["partitions"]["orders-1"] == ((2, 3, 1), {1, 2, 3}, 2, set(), set())


def test_a_topic_is_deleted_and_one_of_its_name_is_another(site: Site, admin: KafkaAdminClient) -> None:
    before = site.until(lambda said: "gone" in said["topics"])["topics"]["gone"]
    admin.delete_topics(["gone"])
    site.until(lambda said: "gone" not in said["topics"])
    create_topic(admin, "gone", [[1]])
    after = site.until(lambda said: "gone" in said["topics"])["topics"]["gone"]
    assert before != after
    admin.delete_topics(["gone"])
    site.until(lambda said: "gone" not in said["topics"])
    assert sum(e == TopicDeleted("gone") for e in site.log.events) == 2


def test_partitions_are_added(site: Site, admin: KafkaAdminClient) -> None:
    create_topic(admin, "pairs", [[2, 1]])
    admin.create_partitions({"pairs": {"count": 2, "assignments": [[3, 1]]}})
    said = site.until(lambda said: "pairs-1" in said["partitions"])
    assert said["partitions"]["pairs-1"][0] == (3, 1)


# -- where replicas are ------------------------------------------------------------------------------------


def test_a_reassignment_is_followed_to_its_end_and_back_where_it_is_cancelled(site: Site, admin: KafkaAdminClient) -> None:
    fill(site.cluster.bootstrap, {("pairs", 1): 3000})
    names = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(b), configs=dict.fromkeys(names, "1000")) for b in (1, 2, 3)]
    slow = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    admin.alter_configs(
        [*brokers, ConfigResource(ConfigResourceType.TOPIC, "pairs", configs=slow)], raise_on_unknown=False
    )
    for target in ([2, 1], None, [2, 1]):
        admin.alter_partition_reassignments({TopicPartition("pairs", 1): target})
        said = site.until(moving({2}, {3}) if target else moving(set(), set()))
        assert set(said["partitions"]["pairs-1"][0]) == ({1, 2, 3} if target else {1, 3})
    admin.reset_configs([ConfigResource(ConfigResourceType.BROKER, str(b), configs=dict.fromkeys(names)) for b in (1, 2, 3)])
    said = site.until(moving(set(), set()))
    assert said["partitions"]["pairs-1"][:2] == ((2, 1), {1, 2})
    seen = [e for e in site.log.events if isinstance(e, PartitionChanged) and (e.topic, e.partition) == ("pairs", 1)]
    assert any(e.adding == (2,) and e.removing == (3,) for e in seen)


def moving(adding: set[int], removing: set[int]) -> Callable[[Said], bool]:
    """Whether these replicas of pairs-1 are being added and removed."""
    return lambda said: said["partitions"]["pairs-1"][3:] == (adding, removing)


# -- brokers -----------------------------------------------------------------------------------------------


def test_a_broker_that_died_is_fenced_and_serves_again(site: Site) -> None:
    site.cluster.kill_broker(3)
    said = site.until(lambda said: said["brokers"][3] == ("r3", True))
    assert said["partitions"]["orders-2"][1:3] == ({1, 2}, 1)
    site.cluster.start_broker(3)
    site.until(lambda said: said["brokers"][3] == ("r3", False) and said["partitions"]["orders-2"][1] == {1, 2, 3})
    assert BrokerFenced(3) in site.log.events
    assert BrokerUnfenced(3) in site.log.events


def test_preferred_leaders_are_elected(site: Site, admin: KafkaAdminClient) -> None:
    with suppress(Exception):  # it says so of those that lead already
        admin.elect_leaders(0, {"orders": [0, 1, 2, 3]})
    site.until(lambda said: [said["partitions"][f"orders-{n}"][2] for n in range(4)] == [1, 2, 3, 1])


def test_a_broker_shuts_down_in_order_and_comes_back_in_another_rack(site: Site) -> None:
    site.cluster.stop_broker(2)
    site.until(lambda said: said["brokers"][2] == ("r2", True))
    assert BrokerStopping(2) in site.log.events
    site.cluster.alter(2, {"broker.rack": "elsewhere"})
    site.cluster.start_broker(2)
    site.until(lambda said: said["brokers"][2] == ("elsewhere", False) and said["partitions"]["orders-1"][1] == {1, 2, 3})
    assert BrokerRegistered(2, "elsewhere", fenced=True) in site.log.events


def test_a_broker_is_unregistered_and_its_replicas_stay(site: Site) -> None:
    site.cluster.stop_broker(3)
    site.until(lambda said: said["brokers"][3][1])
    done = site.cluster.run_tool(
        "org.apache.kafka.tools.ClusterTool", "unregister", "--bootstrap-server", site.cluster.bootstrap.split(",")[0], "--id", "3"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = site.until(lambda said: 3 not in said["brokers"])
    assert said["partitions"]["orders-2"][0] == (3, 1, 2)
    assert BrokerRemoved(3) in site.log.events
    site.cluster.start_broker(3)
    site.until(lambda said: said["brokers"].get(3) == ("r3", False))


# -- controllers -------------------------------------------------------------------------------------------


def test_a_controller_that_died_shows_nothing_new_and_catches_up_when_it_is_back(site: Site, admin: KafkaAdminClient) -> None:
    dead = site.leader()
    name = f"controller {dead}"
    site.cluster.kill_broker(dead)
    create_topic(admin, "after-failover", [[1, 2]])
    said = site.until(lambda said: "after-failover" in said["topics"], besides=name)
    assert said["controller"].id != dead
    update = site.watched[name].poll()
    assert "the quorum is in epoch" in str(update.held)
    assert "after-failover" not in site.watched[name].follower.image.topic_ids
    site.cluster.start_broker(dead)
    site.until(lambda said: True)


def test_checkpoints_and_segments_come_and_the_image_is_the_same_from_every_start(
    site: Site, admin: KafkaAdminClient
) -> None:
    for round_number in range(2):
        for i in range(4):
            create_topic(admin, f"many-{round_number}-{i}", [[1, 2]] * 20)
    said = site.until(lambda said: "many-1-3" in said["topics"])
    for id in (*site.cluster.quorum, 1):
        directory = site.cluster.metadata_log(id)
        listing = list_files(directory)
        assert len(listing.segments) > 1, "the log was rolled"
        assert listing.checkpoints, "there are checkpoints"
        fresh = Watched(KRaftFollower(directory, site.gateway))
        update = fresh.poll()
        assert update.replaced
        assert said_by(fresh.follower.image) == said
        assert said_by(fresh.told) == said


def test_every_checkpoint_is_what_the_log_before_it_says(site: Site, tmp_path: Path) -> None:
    """Kafka's own sum of its records against ours, partition epochs included."""
    compared = 0
    for id in (*site.cluster.quorum, 1):
        listing = list_files(site.cluster.metadata_log(id))
        if listing.log_start:
            continue
        folder = tmp_path / str(id)
        folder.mkdir()
        for segment in listing.segments:
            shutil.copy(segment.path, folder)
        for checkpoint in listing.checkpoints:
            follower = KRaftFollower(folder, Committed(checkpoint.end_offset))
            assert follower.poll(0).offset == checkpoint.end_offset
            kept = load_checkpoint(checkpoint, 0).image
            ours, theirs = follower.image, kept
            assert set(ours.partitions(ours.live_slots())) == set(theirs.partitions(theirs.live_slots()))
            assert {**said_by(ours), "controller": None} == {**said_by(theirs), "controller": None}
            compared += 1
    assert compared >= 4


@dataclass
class Committed:
    """A quorum that committed up to an offset, and whose epoch is no matter."""

    offset: int

    def quorum(self) -> QuorumReport:
        return QuorumReport(None, 0, self.offset)


# -- the commands ------------------------------------------------------------------------------------------


def test_a_capture_from_the_log_is_the_capture_from_the_admin_interface(site: Site) -> None:
    site.until(lambda said: True)
    plain = capture(site.cluster.bootstrap, interval=0)
    logged = capture(site.cluster.bootstrap, interval=0, kraft_log=site.cluster.metadata_log(1))
    assert any("from the metadata log at offset" in note for note in logged.notes)
    for one, other in (
        (plain.broker_ids, logged.broker_ids), (plain.broker_states, logged.broker_states),
        (plain.replicas, logged.replicas), (plain.leader, logged.leader),
        (plain.partition_number, logged.partition_number), (plain.leader_load["disk"], logged.leader_load["disk"]),
    ):  # fmt: skip
        assert one.tolist() == other.tolist()
    assert (plain.topics, plain.racks, plain.cluster_id) == (logged.topics, logged.racks, logged.cluster_id)


def test_a_person_follows_a_cluster_from_the_command_line(site: Site, admin: KafkaAdminClient, tmp_path: Path) -> None:
    command = [
        sys.executable, "-u", "-m", "trimtab", "metadata", "--kraft-log", str(site.cluster.metadata_log(1)),
        "--bootstrap-server", site.cluster.bootstrap, "--follow", "--format", "json",
    ]  # fmt: skip
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    image = json.loads(run.stdout.readline())
    assert image["cluster_id"] == site.cluster.cluster_id
    assert {b["id"] for b in image["brokers"]} == {1, 2, 3}
    create_topic(admin, "seen", [[1]])
    event = json.loads(run.stdout.readline())
    assert (event["event"], event["name"]) == ("topic_created", "seen")
    run.send_signal(2)
    _, told = run.communicate(timeout=30)
    assert run.returncode == 130, told
    assert "Traceback" not in told


# -- Kafka's own word --------------------------------------------------------------------------------------


def test_every_record_is_what_kafkas_own_tool_says(site: Site) -> None:
    site.cluster.kill_broker(3)  # its log is at rest
    listing = list_files(site.cluster.metadata_log(3))
    files = [*(segment.path for segment in listing.segments), *(checkpoint.path for checkpoint in listing.checkpoints)]
    done = site.cluster.run_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(map(str, files))
    )
    theirs = dumped(done.stdout)
    assert theirs.keys() == {str(path) for path in files}, done.stdout[-2000:] + done.stderr
    kinds = set()
    for path in files:
        ours = read_records(path)
        assert ours.keys() == theirs[str(path)].keys(), path
        for offset, (kind, fields) in theirs[str(path)].items():
            name, values = ours[offset]
            kinds.add(name)
            assert (tool_name(name), values) == (kind, filled(values, fields)), f"{path} offset {offset}"
    assert {"PartitionRecord", "PartitionChangeRecord", "TopicRecord", "RegisterBrokerRecord", "LeaderChange",
            "SnapshotHeader", "BrokerRegistrationChangeRecord", "RemoveTopicRecord", "UnregisterBrokerRecord"} <= kinds  # fmt: skip


def test_the_table_of_schemas_is_that_of_kafkas_jars(site: Site) -> None:
    libs = Path(jars.class_path().removesuffix("/*"))
    found = 0
    for jar, folder, table in (
        ("kafka-metadata-*.jar", "common/metadata/", {schema.name: schema for schema in RECORDS.values()}),
        ("kafka-clients-*.jar", "common/message/", {CONTROL_FILES[s.name]: s for s in CONTROL_RECORDS.values()}),
    ):
        with zipfile.ZipFile(next(libs.glob(jar))) as archive:
            for entry in archive.namelist():
                if not (entry.startswith(folder) and entry.endswith(".json")):
                    continue
                text = re.sub(r"^\s*//.*$", "", archive.read(entry).decode(), flags=re.MULTILINE)
                theirs = json.loads(text)
                schema = table.get(theirs["name"])
                if schema is None:
                    assert folder == "common/message/", f"{theirs['name']} is not known"
                    continue
                found += 1
                newest = int(theirs["validVersions"].rpartition("-")[2])
                ours = [f for f in schema.fields if f.since <= newest]
                assert theirs.get("apiKey", schema.key) == schema.key
                assert schema.newest == newest or schema.name == "TopicRecord"
                shared = {each["name"]: each["fields"] for each in theirs.get("commonStructs", [])}
                assert [shape_of(f) for f in ours] == [shape_in_jar(f, shared) for f in theirs["fields"]], schema.name
    assert found == len(RECORDS) + len(CONTROL_RECORDS)


CONTROL_FILES = {
    "LeaderChange": "LeaderChangeMessage", "SnapshotHeader": "SnapshotHeaderRecord", "SnapshotFooter": "SnapshotFooterRecord",
    "KRaftVersion": "KRaftVersionRecord", "KRaftVoters": "VotersRecord",
}  # fmt: skip
DEFAULT_OF = {"bool": False, "string": "", "float64": 0.0, "uuid": bytes(16), "bytes": b""}


def shape_of(f: Field) -> tuple[Any, ...]:
    inner = tuple(shape_of(x) for x in f.fields)
    default = f.default
    if f.tag is not None and not f.array and default is None and not f.nullable:
        default = DEFAULT_OF.get(f.kind, 0)
    return (f.name, "struct" if f.fields else f.kind, f.array, f.since, f.tag, f.nullable, default if f.tag is not None else None, inner)


def shape_in_jar(theirs: dict[str, Any], shared: dict[str, Any]) -> tuple[Any, ...]:
    kind = theirs["type"].removeprefix("[]")
    array = theirs["type"].startswith("[]")
    inner = tuple(shape_in_jar(x, shared) for x in theirs.get("fields", shared.get(kind, [])))
    name = theirs["name"][0].lower() + theirs["name"][1:]
    default = theirs.get("default")
    if default == "null" or (array and "default" not in theirs):
        default = None if "nullableVersions" in theirs else ()
    elif kind in ("bool", "string"):
        default = default == "true" if kind == "bool" else default or ""
    elif not inner:
        default = int(default or 0)
    tag = theirs.get("tag")
    since = int(theirs["versions"].removesuffix("+").partition("-")[0])
    return (
        name, "struct" if inner else kind, array, since, tag, "nullableVersions" in theirs,
        default if tag is not None else None, inner,
    )  # fmt: skip
