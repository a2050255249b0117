"""The first conversation with a cluster: a client that has spoken with a broker, or why there is none.

Used by `trimtab.capture.gateway`. What goes wrong here is what operators meet first: a wrong port, a
listener of another protocol, a password.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import kafka.errors as kafka_errors
from kafka.admin import KafkaAdminClient

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from trimtab.capture.client import ClientSettings
from trimtab.capture.logins import check_login

CONNECT_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 4.0
LAST_ANSWER_SECONDS = 15.0
ADDRESSES_TRIED = 4
ENOUGH_REFUSALS = 2
TURNED_AWAY = "SaslAuthenticationFailed"
LOGIN_HINT = "Check user and password in sasl.jaas.config of --command-config."
FAILED_CONNECTION = re.compile(
    r"^(?:Connection failed|Bootstrap (?:connection|attempt) to \S+ failed): (.*?)(?: \(backoff [\d.]+ "
    r"secs\))?$"
)


def named(error: Exception) -> str:
    """Class and text of an error of the client, once."""
    name = type(error).__name__
    text = str(error).strip()
    return text if text.startswith((name, "[Error")) else f"{name}: {text}" if text else name


def _addresses(bootstrap_server: str) -> list[tuple[str, int]]:
    """Host and port of every address in ``HOST:PORT,HOST:PORT``."""
    addresses, problems = [], []
    for text in bootstrap_server.split(","):
        scheme, _, rest = text.strip().rpartition("://")
        if scheme:
            problems.append(Problem("--bootstrap-server", f"expected HOST:PORT such as broker1:9092, found {text.strip()!r}; write {rest}"))
            continue
        host, _, port = text.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if host and port.isdecimal() and 0 < int(port) < 65536:
            addresses.append((host, int(port)))
        else:
            problems.append(
                Problem("--bootstrap-server", f"expected HOST:PORT such as broker1:9092, found {text.strip()!r}")
            )
    if problems:
        raise ConfigurationError("command line", problems)
    return addresses


def _knock(addresses: Iterable[tuple[str, int]]) -> list[str]:
    """Addresses that take a connection; where none does, tell at once what each said."""
    said, reachable = [], []
    for host, port in addresses:
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except socket.gaierror as error:
            said.append(f"{host}:{port}: no such host ({error.strerror})")
        except TimeoutError:
            said.append(f"{host}:{port}: no answer within {CONNECT_SECONDS:.0f} s")
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
        else:
            reachable.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if reachable:
        return reachable
    raise ExternalError(
        f"expected a Kafka broker, found none: {'; '.join(said)}. Check host and port of a client "
        "listener, that "
        "a broker is up there, and that no firewall stands between.",
        retriable=True,
    )


def connect(bootstrap_server: str, settings: ClientSettings) -> KafkaAdminClient:
    """An admin client that has spoken with a broker.

    Raises
    ------
    ConfigurationError
        The address is not HOST:PORT.
    ExternalError
        Nothing answers there, or it is not Kafka, or it does not let us in; the message says what to check.
    """
    reachable = _knock(_addresses(bootstrap_server))
    check_login(settings.options)
    options: dict[str, object] = {
        # Brokers are asked side by side; beyond so many requests on a connection the client refuses.
        "max_in_flight_requests_per_connection": 100,
        "metadata_max_age_ms": 3000,  # a broker that comes back during the interval is found again
        **settings.options,
    }
    # Address by address, because the client would stay with one that hangs. Where it is turned away it would
    # go on trying and say nothing: so its log is listened to, and the last, patient attempt is for silence only.
    attempts = [([address], FIRST_ANSWER_SECONDS) for address in reachable[:ADDRESSES_TRIED]]
    attempts.append((reachable, LAST_ANSWER_SECONDS))
    refusals: list[str] = []
    for addresses, seconds in attempts:
        with _overheard() as said:
            try:
                return KafkaAdminClient(**options, bootstrap_servers=addresses, bootstrap_timeout_ms=int(seconds * 1000))
            except kafka_errors.KafkaTimeoutError as error:
                refusals += [text for text in said if "timed out" not in text][-1:]
                if len(refusals) == min(ENOUGH_REFUSALS, len(reachable)) or addresses is reachable:
                    raise _unreachable(error, bootstrap_server, settings.protocol, refusals or said) from error
            except kafka_errors.KafkaError as error:
                raise _unreachable(error, bootstrap_server, settings.protocol, said) from error
    raise AssertionError("unreachable")


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Why connections failed meanwhile, as the client logs it."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reason = FAILED_CONNECTION.search(record.getMessage())
            if reason is not None:
                said.append(reason.group(1))

    logger, ear = logging.getLogger("kafka.net.manager"), Ear(logging.WARNING)
    level, passed_on = logger.level, logger.propagate
    logger.propagate = passed_on and logger.isEnabledFor(logging.WARNING)
    logger.addHandler(ear)
    logger.setLevel(min(logging.WARNING, logger.getEffectiveLevel()))
    try:
        yield said
    finally:
        logger.removeHandler(ear)
        logger.setLevel(level)
        logger.propagate = passed_on


def _unreachable(error: Exception, where: str, protocol: str, said: list[str]) -> ExternalError:
    """Why no conversation came about, in the operator's terms."""
    heard = said if isinstance(error, kafka_errors.KafkaTimeoutError) else []
    told = [text for text in heard if TURNED_AWAY in text]  # of several attempts some may have heard less
    reason = told[-1] if told else (heard[-1] if heard else named(error))
    if isinstance(error, kafka_errors.UnsupportedSaslMechanismError | kafka_errors.IllegalSaslStateError):
        hint = "Check security.protocol and sasl.mechanism in --command-config."
    elif isinstance(error, kafka_errors.SaslAuthenticationFailedError) or told:
        hint = LOGIN_HINT
    elif "IncompatibleBrokerVersion" in reason or isinstance(error, kafka_errors.UnsupportedVersionError):
        hint = "This may be a controller's listener: give the address of a broker."
    elif "certificate verify failed" in reason:
        hint = "Check ssl.truststore.location, and that the certificate is for this host name."
    elif protocol.startswith("SASL") and "disconnected" in reason:
        hint = f"The broker hung up while we logged in. {LOGIN_HINT} Or the port is not one for {protocol}."
    elif protocol == "SASL_PLAINTEXT":
        hint = f"It does not speak {protocol} with us: check the port, security.protocol and sasl.mechanism in --command-config."
    elif protocol.endswith("SSL"):
        hint = f"It does not speak {protocol} with us: check the port, security.protocol and the ssl.* settings."
    else:
        hint = (
            f"It takes connections, but does not speak {protocol}: it may be a TLS or SASL listener (give "
            "--command-config with security.protocol), a controller's, or no Kafka at all."
        )
    return ExternalError(f"{where}: {reason}. {hint}", retriable=False)
