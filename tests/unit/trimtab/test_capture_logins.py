"""Logins of AWS and Kerberos, without a broker that has them: what the Kafka client makes of our settings, and what is said of a machine
without credentials. Small stand-ins replace the packages `botocore` and `gssapi`, which no test environment has."""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient
from kafka.net.sasl import get_sasl_mechanism

from cluster_model.errors import ConfigurationError, ExternalError
from trimtab.capture.client import client_settings
from trimtab.capture.connection import connect
from trimtab.capture.logins import check_login

BOTOCORE = """
import os
from collections import namedtuple
from botocore.exceptions import BotoCoreError, ClientError

Keys = namedtuple("Keys", "access_key secret_key token")

class Found:
    def get_frozen_credentials(self):
        if os.environ.get("AWS_PROFILE") == "expired":
            raise BotoCoreError("The SSO session has expired")
        if os.environ.get("AWS_PROFILE") == "refused":
            raise ClientError("AccessDenied when calling the AssumeRole operation")
        return Keys("AKIA", "s3cret", "session-token")

class Session:
    def get_credentials(self):
        return Found() if os.environ.get("AWS_PROFILE") else None

    def get_config_variable(self, name):
        return os.environ.get("AWS_DEFAULT_REGION")
"""
GSSAPI = """
import os

class exceptions:
    class GSSError(Exception):
        pass

class NameType:
    hostbased_service = "hostbased"

class MechType:
    kerberos = "kerberos"

class Name:
    def __init__(self, base, name_type):
        self.base = (base, name_type)

    def canonicalize(self, mechanism):
        return self

class SecurityContext:
    def __init__(self, name, usage):
        self.name = name

    def step(self, token):
        return repr(self.name.base).encode()

class Credentials:
    def __init__(self, usage):
        self.lifetime = 3600
        if not os.environ.get("KRB5CCNAME"):
            raise exceptions.GSSError("Major (458752): No credentials were supplied, Minor (25296): No Kerberos credentials available")
"""
IAM = ("security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM")
KERBEROS = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=GSSAPI", "sasl.kerberos.service.name=broker")
Written = Callable[..., Path]


@pytest.fixture
def properties(tmp_path: Path) -> Written:
    def written(*lines: str) -> Path:
        path = tmp_path / "client.properties"
        path.write_text("\n".join(lines) + "\n")
        return path

    return written


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "packages"
    (folder / "botocore").mkdir(parents=True)
    (folder / "botocore" / "__init__.py").write_text("")
    errors = "class BotoCoreError(Exception):\n    pass\n\nclass ClientError(Exception):\n    pass\n"
    (folder / "botocore" / "exceptions.py").write_text(errors)
    (folder / "botocore" / "session.py").write_text(BOTOCORE)
    (folder / "gssapi.py").write_text(GSSAPI)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("botocore", "gssapi")}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
    for variable in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "KRB5CCNAME"):
        monkeypatch.delenv(variable, raising=False)
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("botocore", "gssapi")]:
        del sys.modules[name]


@pytest.mark.usefixtures("packages")
def test_the_client_signs_for_the_broker_with_what_the_machine_has(properties: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    options = client_settings(properties(*IAM)).options
    assert set(options) <= set(KafkaAdminClient.DEFAULT_CONFIG)
    monkeypatch.setenv("AWS_PROFILE", "ops")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    check_login(options)
    first = json.loads(get_sasl_mechanism("AWS_MSK_IAM")(host="b-1.msk.example", **options).auth_bytes())
    assert (first["host"], first["action"]) == ("b-1.msk.example", "kafka-cluster:Connect")
    assert first["x-amz-credential"].startswith("AKIA/")
    assert first["x-amz-credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert "s3cret" not in json.dumps(first)


@pytest.mark.usefixtures("packages")
def test_the_client_asks_for_a_ticket_to_the_service_named(properties: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    options = client_settings(properties(*KERBEROS)).options
    assert set(options) <= set(KafkaAdminClient.DEFAULT_CONFIG)
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    check_login(options)
    assert get_sasl_mechanism("GSSAPI")(host="b1.example", **options).auth_bytes() == b"('broker@b1.example', 'hostbased')"


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("lines", "environment", "told"),
    [
        (IAM, {}, "AWS_MSK_IAM: no AWS credentials on this machine; set AWS_PROFILE, or"),
        (IAM, {"AWS_PROFILE": "expired"}, "AWS_MSK_IAM: no AWS credentials (The SSO session has expired); set AWS_PROFILE"),
        (IAM, {"AWS_PROFILE": "refused"}, "AWS_MSK_IAM: no AWS credentials (AccessDenied when calling the AssumeRole operation); set"),
        (IAM, {"AWS_PROFILE": "ops"}, "AWS_MSK_IAM: no AWS region; set AWS_DEFAULT_REGION to the region of the cluster"),
        (KERBEROS, {}, "GSSAPI: no valid Kerberos ticket on this machine (No Kerberos credentials available); run kinit PRINCIPAL"),
    ],
)
def test_a_machine_without_credentials_is_told_before_a_broker_is_asked(
    lines: tuple[str, ...], environment: dict[str, str], told: str, properties: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client tried for twenty seconds, and said that a NoneType has no attribute."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ExternalError) as refused:
        check_login(client_settings(properties(*lines)).options)
    assert told in str(refused.value)


@pytest.mark.usefixtures("packages")
def test_the_login_is_checked_when_a_broker_answers(properties: Written) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port, pytest.raises(ExternalError, match="no valid Kerberos ticket"):
        connect(f"127.0.0.1:{port.getsockname()[1]}", client_settings(properties(*KERBEROS)))


@pytest.mark.parametrize(("lines", "package"), [(IAM, "botocore"), (KERBEROS, "gssapi")])
def test_a_package_that_is_not_installed_is_named(lines: tuple[str, ...], package: str, properties: Written) -> None:
    with pytest.raises(ConfigurationError, match=rf"needs the Python package {package}: .* \(pip install {package}\)"):
        client_settings(properties(*lines), lambda name: name != package)
