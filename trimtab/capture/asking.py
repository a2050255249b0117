"""Requests to brokers below the admin client's public methods: one broker, any broker, one whose answer carries its time.

Called by `Gateway`. The public methods give up at the first partition that has an error, and put general questions to a broker of their
own choice, which may be the one that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import kafka.errors as kafka_errors

from cluster_model.errors import ExternalError
from metrics_reporter.permissions import missing
from trimtab.capture.connection import named

T = TypeVar("T")
OUT_OF_TIME = (kafka_errors.RequestTimedOutError, kafka_errors.KafkaTimeoutError)
ATTEMPTS = 4
PAUSE_SECONDS = 0.25


class Asker:
    """Asks the brokers that `admin`, connected to `where`, knows."""

    def __init__(self, admin: Any, where: str, monotonic: Callable[[], float]) -> None:
        self._admin, self._where, self._now = admin, where, monotonic
        self._failed: dict[int, int] = {}  # broker -> how often it did not answer

    def send(self, request: Callable[[], Any], broker: int, timeout_ms: int | None = None) -> Any:
        """The response of one broker to a request, tried again while its connection comes up.

        Goes below the public methods on purpose: `_manager` is private to the client, and held by the
        real-Kafka tests.
        """
        manager = self._admin._manager
        return patiently(lambda: manager.run(manager.send, request(), broker, timeout_ms))

    def timed(self, request: Callable[[], Any], broker: int) -> tuple[Any, float]:
        """A response, and the middle of the time it took, connecting and trying again left out."""
        patiently(lambda: self._admin.get_broker_version_data(broker))  # connects
        spans: list[tuple[float, float]] = []

        def attempt() -> Any:
            begun = self._now()
            response = self._admin._manager.run(self._admin._manager.send, request(), broker)
            spans.append((begun, self._now()))
            return response

        response = patiently(attempt)
        begun, ended = spans[-1]
        return response, (begun + ended) / 2

    def refused(self, what: str, error: kafka_errors.AuthorizationError) -> ExternalError:
        return ExternalError(f"{self._where}: the cluster refused to {what}: {named(error)}; {missing(error, 'Describe')}")

    def anyone(self, what: str, request: Callable[[], Any], timeout_ms: int | None = None) -> Any:
        """The response of the first broker that gives one; those that failed are asked last from then on.

        With a `timeout_ms` of its own, a request that runs out of time is the last of this call.

        Raises
        ------
        ExternalError
            No broker answers, or the cluster refuses.
        """
        manager = self._admin._manager
        known = [b.node_id for b in manager.cluster.brokers()]
        last: Exception = kafka_errors.NodeNotReadyError("no broker is known")
        for broker in sorted(known, key=lambda b: (self._failed.get(b, 0), b)):
            try:
                response = self.send(request, broker, timeout_ms)
                code = getattr(response, "error_code", 0)
                if code:
                    raise kafka_errors.for_code(code)(getattr(response, "error_message", None) or "")
                return response
            except kafka_errors.AuthorizationError as error:
                raise self.refused(what, error) from error
            except kafka_errors.UnsupportedVersionError:
                raise
            except kafka_errors.KafkaError as error:
                self._failed[broker] = self._failed.get(broker, 0) + 1
                last = error
                if timeout_ms is not None and isinstance(error, OUT_OF_TIME):
                    break
        raise ExternalError(
            f"{self._where}: none of {len(known)} brokers could {what}: {named(last)}. Check that they "
            "are up, and that their "
            "advertised.listeners can be reached from here.",
            retriable=True,
        ) from last


def patiently(call: Callable[[], T]) -> T:
    """The result of `call`, which is tried again while a connection comes up, but not after a request ran
    out of time."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return call()
        except OUT_OF_TIME:
            raise
        except (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError):
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE_SECONDS * attempt)
    raise AssertionError("unreachable")
