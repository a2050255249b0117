"""A refusal names the one permission that is missing, and the command that adds it."""

from __future__ import annotations

import kafka.errors as kafka_errors
import pytest

from metrics_reporter.permissions import is_refusal, missing

ADD = "kafka-acls.sh --add --allow-principal User:… --operation"


@pytest.mark.parametrize(
    ("error", "operation", "name", "said"),
    [
        (kafka_errors.ClusterAuthorizationFailedError(), "Describe", "*", f"Describe on the cluster ({ADD} Describe --cluster)"),
        (kafka_errors.TopicAuthorizationFailedError(), "Describe", "*", f"Describe on all topics ({ADD} Describe --topic '*')"),
        (kafka_errors.TopicAuthorizationFailedError(), "Create", "t", f"Create on topic t ({ADD} Create --topic t)"),
        (kafka_errors.GroupAuthorizationFailedError, "Describe", "*", f"Describe on all consumer groups ({ADD} Describe --group '*')"),
        # What an idempotent producer is told that may write to no topic at all.
        (
            kafka_errors.KafkaError("InitProducerId: ClusterAuthorizationFailedError"), "Write", "t",
            f"Write on topic t ({ADD} Write --topic t)",
        ),
        (
            kafka_errors.KafkaError("InitProducerId: TransactionalIdAuthorizationFailedError"), "Write", "x",
            f"Write on transactional id x ({ADD} Write --transactional-id x)",
        ),
    ],
)  # fmt: skip
def test_the_missing_permission_is_named(error: BaseException | type, operation: str, name: str, said: str) -> None:
    assert missing(error, operation, name) == f"the principal needs {said}"


def test_refusals_are_told_from_other_failures() -> None:
    assert is_refusal(kafka_errors.TopicAuthorizationFailedError())
    assert is_refusal(kafka_errors.KafkaError("Unexpected error: [Error 31] ClusterAuthorizationFailedError"))
    assert not is_refusal(kafka_errors.KafkaTimeoutError("no answer"))
