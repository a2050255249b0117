"""`min.insync.replicas` in force, as a real cluster tells it: a topic's own, else the brokers'."""

from __future__ import annotations

from kafka.admin import KafkaAdminClient

from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import create_topic
from trimtab.capture.client import client_settings
from trimtab.capture.gateway import Gateway

OWN, DEFAULT = "min-isr-own", "min-isr-default"


def test_a_topics_own_value_else_the_brokers_and_none_of_a_topic_that_is_gone(cluster: KafkaCluster, admin: KafkaAdminClient) -> None:
    create_topic(admin, OWN, [[1, 2, 3]], {"min.insync.replicas": "2"})
    create_topic(admin, DEFAULT, [[1, 2, 3]])
    try:
        with Gateway(cluster.bootstrap, client_settings(None)) as gateway:
            assert gateway.min_isr([OWN, DEFAULT, "min-isr-gone"]) == {OWN: 2, DEFAULT: 1}
    finally:
        admin.delete_topics([OWN, DEFAULT])
