"""Client settings of Kafka's own tools, translated for the Python client.

Used by `trimtab.capture`. A key that bears on security and cannot be honoured is refused: connecting less
safely than the file asks for, or as another user, is worse than not connecting. Other unknown keys are
warned of, as Kafka's tools do. No message repeats a secret.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.properties import read_properties
from trimtab.capture.tls import TLS_KEYS, tls_context

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
# What a mechanism needs that is not always installed, and the classes that do in Java what we do ourselves.
PACKAGES = {"AWS_MSK_IAM": "botocore", "GSSAPI": "gssapi"}
OAUTH = "org.apache.kafka.common.security.oauthbearer."
HANDLERS = {
    "sasl.login.callback.handler.class": ("OAUTHBEARER", (f"{OAUTH}OAuthBearerLoginCallbackHandler",
                                                          f"{OAUTH}secured.OAuthBearerLoginCallbackHandler")),
    "sasl.client.callback.handler.class": ("AWS_MSK_IAM", ("software.amazon.msk.auth.iam.IAMClientCallbackHandler",)),
}  # fmt: skip
TOKEN_URL, SERVICE_NAME = "sasl.oauthbearer.token.endpoint.url", "sasl.kerberos.service.name"

# Whole numbers that the Python client knows under another name.
NUMBERS: dict[str, str] = {
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
}
HANDLED = {
    "security.protocol", "sasl.mechanism", "sasl.jaas.config", "client.id", TOKEN_URL, SERVICE_NAME, *HANDLERS, *NUMBERS, *TLS_KEYS,
}  # fmt: skip

# Valid in such a file, without a bearing on what is captured: say nothing.
WITHOUT_EFFECT = {
    "bootstrap.servers", "default.api.timeout.ms", "retries", "retry.backoff.max.ms", "metadata.max.age.ms",
    "receive.buffer.bytes", "send.buffer.bytes", "client.dns.lookup", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "enable.metrics.push",
    "auto.include.jmx.reporter", "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    "socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms",
}  # fmt: skip
# These tune how logins are renewed, or serve a mechanism that is not the one chosen.
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


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def client_settings(path: Path | None, installed: Callable[[str], bool] = _installed) -> ClientSettings:
    """Settings of a ``--command-config`` file; None gives a plain connection.

    Parameters
    ----------
    installed
        Whether a Python package is there that some mechanisms need.

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
        options |= _sasl(properties, protocol, installed, problems)
    if protocol.endswith("SSL"):
        context = tls_context(properties, lambda key, why: problems.append(Problem(key, why)))
        if context is not None:
            options["ssl_context"] = context
    if problems:
        raise ConfigurationError(str(path), problems)
    return ClientSettings(options, protocol, tuple(_warnings(path, properties, protocol)))


def client_options(path: str | None) -> Mapping[str, object]:
    """Keyword arguments of the Python client alone, for code that makes clients elsewhere and takes the path along."""
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
    if properties.get(TOKEN_URL, "").startswith("http://"):
        warnings.append(f"{path}: {TOKEN_URL} is http, so the client's secret is sent in the clear; use https")
    if idle:
        keys = " and ".join(f"{prefix}*" for prefix in idle)
        given = "is" if "security.protocol" in properties else "is not given, so it is"
        warnings.append(f"{path}: {keys} settings have no effect, because security.protocol {given} {protocol}")
    return warnings


def _meant(key: str) -> str:
    close = get_close_matches(key, sorted(HANDLED), n=1, cutoff=0.8)
    return f" (did you mean {close[0]}?)" if close else ""


def _sasl(
    properties: Mapping[str, str], protocol: str, installed: Callable[[str], bool], problems: list[Problem]
) -> dict[str, object]:
    """Keyword arguments for the login that the properties describe; complaints go to `problems` and never repeat a secret."""

    def complain(text: str, key: str = "sasl.jaas.config") -> None:
        problems.append(Problem(key, text))

    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in LOGIN_MODULES:
        complain(f"expected one of {', '.join(LOGIN_MODULES)}, found {mechanism!r}", "sasl.mechanism")
        return {}
    for key, (used_by, classes) in HANDLERS.items():
        named = properties.get(key, "").strip()
        if named and (mechanism != used_by or named not in classes):
            complain(f"{named} cannot be run here; known for {used_by}: {classes[0]}", key)
    package = PACKAGES.get(mechanism)
    if package is not None and not installed(package):
        found = mechanism if "sasl.mechanism" in properties else f"no mechanism, which means {mechanism} to Kafka"
        complain(f"{found}, needs the Python package {package}: install it beside trimtab (pip install {package})", "sasl.mechanism")
        return {}
    match mechanism:
        case "OAUTHBEARER":
            return _oauth(properties, complain)
        case "AWS_MSK_IAM":
            return _msk(properties, protocol, complain)
        case "GSSAPI":
            return _kerberos(properties, complain)
    module = LOGIN_MODULES[mechanism]
    if not properties.get("sasl.jaas.config", "").strip():
        complain(f'is missing; expected {module} required username="…" password="…";')
        return {}
    login = _login(properties["sasl.jaas.config"], module, ("username", "password"), ("serviceName",), complain)
    if login is None:
        return {}
    return {"sasl_mechanism": mechanism, "sasl_plain_username": login["username"], "sasl_plain_password": login["password"]}


Complain = Callable[..., None]
"""Told what is wrong, and the key where it is not the login."""


def _oauth(properties: Mapping[str, str], complain: Complain) -> dict[str, object]:
    url = properties.get(TOKEN_URL, "").strip()
    module = LOGIN_MODULES["OAUTHBEARER"]
    by_file = url.startswith("file:")
    if not by_file and not url.startswith(("https://", "http://")):
        found = repr(url) if url else "none"
        complain(f"expected https://… of the endpoint that gives tokens, or file:///… of a token, found {found}", TOKEN_URL)
        return {}
    login: Mapping[str, str] | None = {}
    jaas = properties.get("sasl.jaas.config", "")
    if jaas.strip() or not by_file:
        needed = () if by_file else ("clientId", "clientSecret")
        if not jaas.strip():
            complain(f'is missing; expected {module} required clientId="…" clientSecret="…";')
            return {}
        login = _login(jaas, module, needed, ("clientId", "clientSecret", "scope", "extension_*"), complain)
    if login is None:
        return {}
    from trimtab.capture.oauth import Credentials, Tokens

    extensions = {name.removeprefix("extension_"): value for name, value in login.items() if name.startswith("extension_")}
    credentials = Credentials(url, login.get("clientId", ""), login.get("clientSecret", ""), login.get("scope", ""), extensions)
    return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Tokens(credentials)}


def _msk(properties: Mapping[str, str], protocol: str, complain: Complain) -> dict[str, object]:
    if protocol != "SASL_SSL":
        complain(f"AWS_MSK_IAM goes with SASL_SSL, found {protocol}", "security.protocol")
        return {}
    jaas = properties.get("sasl.jaas.config", "")
    if jaas.strip() and _login(jaas, LOGIN_MODULES["AWS_MSK_IAM"], (), (), complain) is None:
        return {}
    return {"sasl_mechanism": "AWS_MSK_IAM"}


def _kerberos(properties: Mapping[str, str], complain: Complain) -> dict[str, object]:
    """The ticket comes from the cache that ``kinit`` fills: a key tab in the login is for Java to read."""
    jaas, service = properties.get("sasl.jaas.config", ""), properties.get(SERVICE_NAME, "").strip()
    login: Mapping[str, str] | None = {}
    if jaas.strip():
        login = _login(jaas, LOGIN_MODULES["GSSAPI"], (), ("useTicketCache", "renewTGT", "doNotPrompt", "serviceName"), complain,
                       instead="run kinit -kt KEYTAB PRINCIPAL before, and write useTicketCache=true")  # fmt: skip
    if login is None:
        return {}
    service = service or login.get("serviceName", "")
    if not service:
        complain("is missing; expected the name that brokers have in Kerberos, mostly kafka", SERVICE_NAME)
        return {}
    return {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": service}


_JAAS = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);\s*$", re.DOTALL | re.IGNORECASE)
_JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


def _login(
    jaas: str, module: str, needed: Sequence[str], others: Sequence[str], complain: Complain, instead: str = ""
) -> dict[str, str] | None:
    """Options of a JAAS line for `module`; complaints never repeat it. One of `others` that ends in * stands for a start."""
    entry = _JAAS.match(jaas)
    if entry is None:
        example = "".join(f' {name}="…"' for name in needed)
        complain(f"expected one login module that ends with a semicolon: {module} required{example};")
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
    missing = [name for name in needed if name not in options]
    known = (*needed, *others)
    unsupported = sorted(o for o in options if not any(o == k or (k[-1] == "*" and o.startswith(k[:-1])) for k in known))
    if missing:
        complain(f"{' and '.join(missing)} missing")
    if unsupported:
        remedy = instead or (f"only {' and '.join(known)} are" if known else "none is")
        complain(f"option {', '.join(unsupported)} is not supported; {remedy}")
    return None if missing or unsupported else options
