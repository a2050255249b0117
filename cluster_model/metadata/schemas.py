"""What the records of the metadata log look like, as data: every type of Apache Kafka 3.3 to 4.3.

Used by `records`, which decodes by it, and by the writer of test logs. Names are those of Kafka's own schemas
and of `DumpLogSegments`. *Source*: the schemas in Apache Kafka's ``metadata`` and ``clients`` modules, which a
test compares with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes", "struct"
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `since` is the first version that has it; `tag` is None for one that is always written.

    `array` makes it a list of `kind`; a `struct` has `fields` of its own. `default` holds in versions without
    the field, and where a tagged one is not written.
    """

    name: str
    kind: Kind
    since: int = 0
    tag: int | None = None
    array: bool = False
    nullable: bool = False
    default: Any = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """A record type; versions 0 to `newest` are known."""

    key: int
    name: str
    newest: int
    fields: tuple[Field, ...]


def _numbers(name: str, *, since: int = 0, tag: int | None = None, null: bool = False) -> Field:
    """A list of broker ids; a nullable one is null unless written."""
    return Field(name, "int32", since, tag, True, null, None if null else ())


def _ids(name: str, *, since: int = 0, tag: int | None = None, null: bool = False) -> Field:
    return Field(name, "uuid", since, tag, True, null, None if null else ())


_BROKER = (Field("brokerId", "int32"), Field("brokerEpoch", "int64"))
_ENDPOINTS = Field(
    "endPoints",
    "struct",
    array=True,
    fields=(
        Field("name", "string"),
        Field("host", "string"),
        Field("port", "uint16"),
        Field("securityProtocol", "int16"),
    ),
)
_FEATURES = Field(
    "features",
    "struct",
    array=True,
    fields=(
        Field("name", "string"),
        Field("minSupportedVersion", "int16"),
        Field("maxSupportedVersion", "int16"),
    ),
)

REGISTER_BROKER, UNREGISTER_BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE = 0, 1, 2, 3, 4, 5
FENCE_BROKER, UNFENCE_BROKER, REMOVE_TOPIC, BROKER_CHANGE = 7, 8, 9, 17
BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION, CLEAR_ELR = 23, 24, 25, 28

RECORDS: dict[int, Schema] = {
    schema.key: schema
    for schema in (
        Schema(
            REGISTER_BROKER,
            "RegisterBrokerRecord",
            4,
            (
                Field("brokerId", "int32"),
                Field("isMigratingZkBroker", "bool", since=2, default=False),
                Field("incarnationId", "uuid"),
                Field("brokerEpoch", "int64"),
                _ENDPOINTS,
                _FEATURES,
                Field("rack", "string", nullable=True),
                Field("fenced", "bool", default=True),
                Field("inControlledShutdown", "bool", since=1, default=False),
                _ids("logDirs", since=3, tag=0),
                _ids("cordonedLogDirs", since=4, tag=1, null=True),
            ),
        ),
        Schema(UNREGISTER_BROKER, "UnregisterBrokerRecord", 0, _BROKER),
        Schema(
            TOPIC,
            "TopicRecord",
            1,  # version 1 is AutoMQ's; Apache Kafka has version 0 only
            (
                Field("name", "string"),
                Field("topicId", "uuid"),
                Field("tieredEpoch", "int32", since=1, default=0),
                Field("tieredState", "bool", since=1, default=False),
            ),
        ),
        Schema(
            PARTITION,
            "PartitionRecord",
            2,
            (
                Field("partitionId", "int32", default=-1),
                Field("topicId", "uuid"),
                _numbers("replicas"),
                _numbers("isr"),
                _numbers("removingReplicas"),
                _numbers("addingReplicas"),
                Field("leader", "int32", default=-1),
                Field("leaderRecoveryState", "int8", tag=0, default=0),
                Field("leaderEpoch", "int32", default=-1),
                Field("partitionEpoch", "int32", default=-1),
                _ids("directories", since=1),
                _numbers("eligibleLeaderReplicas", since=2, tag=1, null=True),
                _numbers("lastKnownElr", since=2, tag=2, null=True),
            ),
        ),
        Schema(
            CONFIG,
            "ConfigRecord",
            0,
            (
                Field("resourceType", "int8"),
                Field("resourceName", "string"),
                Field("name", "string"),
                Field("value", "string", nullable=True),
            ),
        ),
        Schema(
            PARTITION_CHANGE,
            "PartitionChangeRecord",
            2,
            (
                Field("partitionId", "int32", default=-1),
                Field("topicId", "uuid"),
                _numbers("isr", tag=0, null=True),
                Field("leader", "int32", tag=1, default=-2),
                _numbers("replicas", tag=2, null=True),
                _numbers("removingReplicas", tag=3, null=True),
                _numbers("addingReplicas", tag=4, null=True),
                Field("leaderRecoveryState", "int8", tag=5, default=-1),
                _ids("directories", since=1, tag=8, null=True),
                _numbers("eligibleLeaderReplicas", since=2, tag=6, null=True),
                _numbers("lastKnownElr", since=2, tag=7, null=True),
            ),
        ),
        Schema(FENCE_BROKER, "FenceBrokerRecord", 0, (Field("id", "int32"), Field("epoch", "int64"))),
        Schema(UNFENCE_BROKER, "UnfenceBrokerRecord", 0, (Field("id", "int32"), Field("epoch", "int64"))),
        Schema(REMOVE_TOPIC, "RemoveTopicRecord", 0, (Field("topicId", "uuid"),)),
        Schema(
            10,
            "DelegationTokenRecord",
            0,
            (
                Field("owner", "string"),
                Field("requester", "string"),
                Field("renewers", "string", array=True),
                Field("issueTimestamp", "int64"),
                Field("maxTimestamp", "int64"),
                Field("expirationTimestamp", "int64"),
                Field("tokenId", "string"),
            ),
        ),
        Schema(
            11,
            "UserScramCredentialRecord",
            0,
            (
                Field("name", "string"),
                Field("mechanism", "int8"),
                Field("salt", "bytes"),
                Field("storedKey", "bytes"),
                Field("serverKey", "bytes"),
                Field("iterations", "int32"),
            ),
        ),
        Schema(12, "FeatureLevelRecord", 0, (Field("name", "string"), Field("featureLevel", "int16"))),
        Schema(
            14,
            "ClientQuotaRecord",
            0,
            (
                Field(
                    "entity",
                    "struct",
                    array=True,
                    fields=(Field("entityType", "string"), Field("entityName", "string", nullable=True)),
                ),
                Field("key", "string"),
                Field("value", "float64"),
                Field("remove", "bool"),
            ),
        ),
        Schema(
            15,
            "ProducerIdsRecord",
            0,
            (
                Field("brokerId", "int32"),
                Field("brokerEpoch", "int64", default=-1),
                Field("nextProducerId", "int64"),
            ),
        ),
        Schema(
            BROKER_CHANGE,
            "BrokerRegistrationChangeRecord",
            3,
            (
                *_BROKER,
                Field("fenced", "int8", tag=0, default=0),
                Field("inControlledShutdown", "int8", since=1, tag=1, default=0),
                _ids("logDirs", since=2, tag=2),
                _ids("cordonedLogDirs", since=3, tag=3, null=True),
            ),
        ),
        Schema(
            18,
            "AccessControlEntryRecord",
            0,
            (
                Field("id", "uuid"),
                Field("resourceType", "int8"),
                Field("resourceName", "string"),
                Field("patternType", "int8"),
                Field("principal", "string"),
                Field("host", "string"),
                Field("operation", "int8"),
                Field("permissionType", "int8"),
            ),
        ),
        Schema(19, "RemoveAccessControlEntryRecord", 0, (Field("id", "uuid"),)),
        Schema(20, "NoOpRecord", 0, ()),
        Schema(21, "ZkMigrationStateRecord", 0, (Field("zkMigrationState", "int8"),)),
        Schema(
            22,
            "RemoveUserScramCredentialRecord",
            0,
            (Field("name", "string"), Field("mechanism", "int8")),
        ),
        Schema(
            BEGIN_TRANSACTION, "BeginTransactionRecord", 0, (Field("name", "string", tag=0, nullable=True),)
        ),
        Schema(END_TRANSACTION, "EndTransactionRecord", 0, ()),
        Schema(
            ABORT_TRANSACTION, "AbortTransactionRecord", 0, (Field("reason", "string", tag=0, nullable=True),)
        ),
        Schema(26, "RemoveDelegationTokenRecord", 0, (Field("tokenId", "string"),)),
        Schema(
            27,
            "RegisterControllerRecord",
            0,
            (
                Field("controllerId", "int32"),
                Field("incarnationId", "uuid"),
                Field("zkMigrationReady", "bool"),
                _ENDPOINTS,
                _FEATURES,
            ),
        ),
        Schema(CLEAR_ELR, "ClearElrRecord", 0, (Field("topicName", "string"),)),
    )
}
"""By api key."""

# What the image is made of: an unknown version of these cannot be skipped.
FOLDED = frozenset(
    {
        REGISTER_BROKER, UNREGISTER_BROKER, TOPIC, PARTITION, PARTITION_CHANGE, FENCE_BROKER, UNFENCE_BROKER,
        REMOVE_TOPIC, BROKER_CHANGE, BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION, CLEAR_ELR,
    }
)  # fmt: skip

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = 2, 3, 4, 5, 6
_VOTER = (Field("voterId", "int32"), Field("voterDirectoryId", "uuid", since=1, default=bytes(16)))

CONTROL_RECORDS: dict[int, Schema] = {
    schema.key: schema
    for schema in (
        Schema(
            LEADER_CHANGE,
            "LeaderChange",
            1,
            (
                Field("version", "int16"),
                Field("leaderId", "int32"),
                Field("voters", "struct", array=True, fields=_VOTER),
                Field("grantingVoters", "struct", array=True, fields=_VOTER),
            ),
        ),
        Schema(
            SNAPSHOT_HEADER,
            "SnapshotHeader",
            0,
            (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64")),
        ),
        Schema(SNAPSHOT_FOOTER, "SnapshotFooter", 0, (Field("version", "int16"),)),
        Schema(KRAFT_VERSION, "KRaftVersion", 0, (Field("version", "int16"), Field("kRaftVersion", "int16"))),
        Schema(
            KRAFT_VOTERS,
            "KRaftVoters",
            0,
            (
                Field("version", "int16"),
                Field(
                    "voters",
                    "struct",
                    array=True,
                    fields=(
                        Field("voterId", "int32"),
                        Field("voterDirectoryId", "uuid"),
                        Field(
                            "endpoints",
                            "struct",
                            array=True,
                            fields=(
                                Field("name", "string"),
                                Field("host", "string"),
                                Field("port", "uint16"),
                            ),
                        ),
                        Field(
                            "kRaftVersionFeature",
                            "struct",
                            fields=(
                                Field("minSupportedVersion", "int16"),
                                Field("maxSupportedVersion", "int16"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
}
"""By control record type."""
