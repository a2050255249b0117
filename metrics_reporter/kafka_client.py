"""Clients of the Python Kafka library that leave nothing behind when no cluster answers.

Used by `metrics_reporter.kafka_topic` and `metrics_reporter.collectors.kafka_admin`, which may have to try for hours:
a client that could not start would otherwise keep its thread and sockets each time. Settings come in by parameter.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

# What the clients raise when the cluster, or they themselves, are not well.
FAILURES = (kafka_errors.KafkaError, OSError, RuntimeError, AssertionError)
BOOTSTRAP_MS = 5_000
CONNECT_SECONDS = 3.0


class AdminClient(KafkaAdminClient):  # type: ignore[misc]  # the library ships no types
    """An admin client; one that cannot start ends its thread."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except BaseException:
            with suppress(Exception):
                self._client.close()
            with suppress(Exception):
                self._net.stop(timeout_ms=2000)
            raise


def admin_client(bootstrap: str, options: Mapping[str, object], **more: Any) -> AdminClient:
    """An admin client that has spoken with the cluster.

    Raises
    ------
    kafka.errors.KafkaError, OSError
        No broker answers.
    """
    _knock(bootstrap)
    return AdminClient(**{**options, **more, "bootstrap_servers": bootstrap.split(","), "bootstrap_timeout_ms": BOOTSTRAP_MS})


def producer(bootstrap: str, options: Mapping[str, object], **more: Any) -> KafkaProducer:
    """A producer that has spoken with the cluster. Raises as `admin_client`."""
    _knock(bootstrap)
    return KafkaProducer(
        **{**options, **more, "bootstrap_servers": bootstrap.split(","), "bootstrap_timeout_ms": BOOTSTRAP_MS}
    )


def consumer(bootstrap: str, options: Mapping[str, object], **more: Any) -> KafkaConsumer:
    """A consumer that has spoken with the cluster. Raises as `admin_client`."""
    _knock(bootstrap)
    return KafkaConsumer(
        **{**options, **more, "bootstrap_servers": bootstrap.split(","), "bootstrap_timeout_ms": BOOTSTRAP_MS}
    )


def _knock(bootstrap: str) -> None:
    """Do nothing where one of the addresses takes a connection; the client would try for long where none does."""
    refused: OSError = OSError("no address is given")
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            refused = error
        else:
            return
    raise kafka_errors.KafkaConnectionError(f"{bootstrap}: {refused.strerror or refused}")
