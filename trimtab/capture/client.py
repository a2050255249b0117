"""Client settings of Kafka's own tools, translated for the Python client.

Used by `trimtab.capture`. A key that bears on security and cannot be honoured is refused: connecting less
safely than the file asks for, or as somebody else, is worse than not connecting. Other unknown keys are
warned of, as Kafka's tools do. No message repeats a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cluster_model.errors import ConfigurationError, Problem
from trimtab.capture.properties import read_properties
from trimtab.capture.tls import TLS_KEYS, tls_context

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

# Whole numbers that the Python client knows under another name.
NUMBERS: dict[str, str] = {
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
}
HANDLED = {"security.protocol", "sasl.mechanism", "sasl.jaas.config", "client.id", *NUMBERS, *TLS_KEYS}

# Valid in such a file, without a bearing on what is captured: say nothing.
WITHOUT_EFFECT = {
    "bootstrap.servers", "default.api.timeout.ms", "retries", "retry.backoff.max.ms", "metadata.max.age.ms",
    "receive.buffer.bytes", "send.buffer.bytes", "client.dns.lookup", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "enable.metrics.push",
    "auto.include.jmx.reporter", "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    "socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms",
}  # fmt: skip
# These serve mechanisms that are refused by name, so they are idle where another mechanism is chosen.
IDLE_PREFIXES = (
    "sasl.kerberos.", "sasl.oauthbearer.", "sasl.login.refresh.", "sasl.login.connect.", "sasl.login.read.",
    "sasl.login.retry.",
)  # fmt: skip
SECURITY_PREFIXES = ("ssl.", "sasl.", "security.", "config.providers")
REQUEST_TIMEOUT_MS = 15_000


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Keyword arguments of the Python client, the protocol they speak, and what to tell the operator."""

    options: Mapping[str, object]
    protocol: str
    warnings: tuple[str, ...] = ()

    @property
    def request_timeout_ms(self) -> int:
        value = self.options["request_timeout_ms"]
        assert isinstance(value, int)
        return value


def client_settings(path: Path | None) -> ClientSettings:
    """Settings of a ``--command-config`` file; None gives a plain connection.

    Raises
    ------
    ConfigurationError
        The file asks for something that is wrong or cannot be honoured; carries every problem with its key.
    """
    if path is None:
        return ClientSettings({"security_protocol": "PLAINTEXT", "request_timeout_ms": REQUEST_TIMEOUT_MS}, "PLAINTEXT")
    properties = read_properties(path)
    problems: list[Problem] = []
    options: dict[str, object] = {"request_timeout_ms": REQUEST_TIMEOUT_MS}
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        problems.append(Problem("security.protocol", f"expected one of {', '.join(PROTOCOLS)}, found {protocol!r}"))
    options["security_protocol"] = protocol
    if properties.get("client.id"):
        options["client_id"] = properties["client.id"]
    for key, name in NUMBERS.items():
        if key in properties:
            _number(key, properties[key], name, options, problems)
    problems += _refused(properties, protocol)
    if protocol.startswith("SASL"):
        options |= _sasl(properties, problems)
    if protocol.endswith("SSL"):
        context = tls_context(properties, lambda key, why: problems.append(Problem(key, why)))
        if context is not None:
            options["ssl_context"] = context
    if problems:
        raise ConfigurationError(str(path), problems)
    return ClientSettings(options, protocol, tuple(_warnings(path, properties, protocol)))


def client_options(path: str | None) -> Mapping[str, object]:
    """Keyword arguments of the Python client alone, for whoever makes clients elsewhere and takes the path along."""
    return client_settings(None if path is None else Path(path)).options


def _number(key: str, text: str, name: str, options: dict[str, object], problems: list[Problem]) -> None:
    if text.strip().isdecimal() and int(text) > 0:
        options[name] = int(text)
    else:
        problems.append(Problem(key, f"expected milliseconds above 0, found {text!r}"))


def _refused(properties: Mapping[str, str], protocol: str) -> list[Problem]:
    """Keys that bear on security and that we would have to leave out."""
    why = "is not supported, and leaving it out could connect less safely than meant"
    return [
        Problem(key, f"{why}{_meant(key)}; remove it if the connection does not need it")
        for key in properties
        if key.startswith(SECURITY_PREFIXES)
        and key not in HANDLED
        and not key.startswith(IDLE_PREFIXES)
        and not (key.startswith("ssl.") and not protocol.endswith("SSL"))
        and not (key.startswith("sasl.") and not protocol.startswith("SASL"))
    ]


def _warnings(path: Path, properties: Mapping[str, str], protocol: str) -> list[str]:
    known = HANDLED | WITHOUT_EFFECT
    warnings = [
        f"{path}: {key} is not a setting this command knows, ignored{_meant(key)}"
        for key in properties
        if key not in known and not key.startswith((*SECURITY_PREFIXES, *IDLE_PREFIXES))
    ]
    idle = [
        prefix
        for prefix, used in (("ssl.", protocol.endswith("SSL")), ("sasl.", protocol.startswith("SASL")))
        if not used and any(key.startswith(prefix) for key in properties)
    ]
    if idle:
        keys = " and ".join(f"{prefix}*" for prefix in idle)
        given = "is" if "security.protocol" in properties else "is not given, so it is"
        warnings.append(f"{path}: {keys} settings have no effect, because security.protocol {given} {protocol}")
    return warnings


def _meant(key: str) -> str:
    close = get_close_matches(key, sorted(HANDLED), n=1, cutoff=0.8)
    return f" (did you mean {close[0]}?)" if close else ""


def _sasl(properties: Mapping[str, str], problems: list[Problem]) -> dict[str, object]:
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    supported = ", ".join(LOGIN_MODULES)
    if mechanism not in LOGIN_MODULES:
        found = repr(mechanism) if mechanism else "none, which means GSSAPI to Kafka"
        problems.append(Problem("sasl.mechanism", f"expected one of {supported}, found {found}"))
        return {}
    jaas = properties.get("sasl.jaas.config", "")
    if not jaas.strip():
        problems.append(
            Problem(
                "sasl.jaas.config",
                f'is missing; expected {LOGIN_MODULES[mechanism]} required username="…" password="…";',
            )
        )
        return {}
    user = _login(jaas, LOGIN_MODULES[mechanism], lambda text: problems.append(Problem("sasl.jaas.config", text)))
    if user is None:
        return {}
    return {"sasl_mechanism": mechanism, "sasl_plain_username": user[0], "sasl_plain_password": user[1]}


_JAAS = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);\s*$", re.DOTALL | re.IGNORECASE)
_JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


def _login(jaas: str, module: str, complain: Callable[[str], None]) -> tuple[str, str] | None:
    """User and password of a JAAS line; complaints never repeat it."""
    entry = _JAAS.match(jaas)
    if entry is None:
        complain(f'expected one login module that ends with a semicolon: {module} required username="…" password="…";')
        return None
    if entry.group(1) != module:
        complain(f"expected the login module {module} for this mechanism, found {entry.group(1)}")
        return None
    options, rest = {}, entry.group(3)
    while rest.strip():
        option = _JAAS_OPTION.match(rest)
        if option is None:
            complain('expected options of the form name="value" (put values with special characters in quotes)')
            return None
        quoted = option.group(2) if option.group(2) is not None else option.group(3)
        options[option.group(1)] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else option.group(4)
        rest = rest[option.end() :]
    missing = [name for name in ("username", "password") if name not in options]
    unsupported = sorted(set(options) - {"username", "password", "serviceName"})
    if missing:
        complain(f"{' and '.join(missing)} missing")
    if unsupported:
        complain(f"option {', '.join(unsupported)} is not supported; only username and password are")
    return None if missing or unsupported else (options["username"], options["password"])
