"""A cluster with an authorizer, TLS and SASL: who comes in over the plain listener may do everything, all others what ACLs say.

Its fixtures are for the whole tier; two modules use it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.cluster import KafkaCluster, Listener
from tests.kafka.traffic import administering, create_topic

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = 'pass "word" \\ = #1'
JAVA_SECRET = SECRET.replace("\\", "\\\\").replace('"', '\\"')  # within the quotes of a JAAS line
COMMANDS = ("reporter", "serve", "plan", "execute")  # each a principal, User:NAME by SCRAM and User:CN=NAME by certificate
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:ops;User:CN=client",
}


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority with certificates of a broker, of a client and of each command, and another authority that is not trusted."""
    folder = tmp_path_factory.mktemp("certificates")
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-batch")
    for authority in ("ca", "other-ca"):
        openssl(folder, *new, "-x509", "-days", "2", "-subj", f"/CN={authority}",
                "-keyout", f"{authority}.key", "-out", f"{authority}.pem")  # fmt: skip
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("broker", "client", *COMMANDS):
        openssl(folder, *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-extfile", "san", "-out", f"{name}.crt")  # fmt: skip
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    openssl(
        folder, "pkcs8", "-topk8", "-in", "client.key", "-out", "client-locked.key", "-passout", "pass:key-secret"
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def guarded(certificates: Path) -> Iterator[KafkaCluster]:
    """Two brokers with listeners for SASL/PLAIN, for tokens, for mutual TLS, and for SCRAM over TLS."""

    def store(listener: str) -> dict[str, str]:
        return {
            f"listener.name.{listener}.ssl.keystore.type": "PEM",
            f"listener.name.{listener}.ssl.keystore.location": str(certificates / "broker.pem"),
            f"listener.name.{listener}.ssl.truststore.type": "PEM",
            f"listener.name.{listener}.ssl.truststore.location": str(certificates / "ca.pem"),
        }

    password = JAVA_SECRET.replace("\\", "\\\\")  # once more for the properties file
    listeners = [
        Listener("LOGIN", "SASL_PLAINTEXT", {
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_ops="{password}";',
        }),
        Listener("TOKEN", "SASL_PLAINTEXT", {
            "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.token.oauthbearer.sasl.jaas.config": f'{OAUTH_LOGIN} required unsecuredLoginStringClaim_sub="broker";',
        }),
        Listener("MUTUAL", "SSL", {**store("mutual"), "listener.name.mutual.ssl.client.auth": "required"}),
        Listener("BOTH", "SASL_SSL", {
            **store("both"),
            "listener.name.both.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.both.scram-sha-512.sasl.jaas.config": f"{SCRAM_LOGIN} required;",
        }),
    ]  # fmt: skip
    with KafkaCluster(racks=["r1", "r2"], listeners=listeners, properties=AUTHORIZER, controller_properties=AUTHORIZER) as kafka:
        with administering(kafka) as admin:
            create_topic(admin, "guarded", [[1], [1]])
            admin.alter_user_scram_credentials([_scram(user, SECRET) for user in ("ops", *COMMANDS)])
        yield kafka


def _scram(user: str, password: str) -> object:
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

    return UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, password)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "client.properties"
    path.write_text("\n".join(lines) + "\n", encoding="iso-8859-1")
    return path


def login(module: str, password: str = JAVA_SECRET, user: str = "ops") -> str:
    escaped = password.replace("\\", "\\\\")
    return f'sasl.jaas.config={module} required \\\n    username="{user}" \\\n    password="{escaped}";'


def scram(certificates: Path, folder: Path, user: str) -> Path:
    """Properties of a user who logs in over TLS."""
    return written(
        folder, "security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", login(SCRAM_LOGIN, user=user),
        "ssl.truststore.type=PEM", f"ssl.truststore.location={certificates / 'ca.pem'}",
    )  # fmt: skip


def mutual(certificates: Path, folder: Path, name: str) -> Path:
    """Properties of a user who shows a certificate."""
    return written(
        folder, "security.protocol=SSL", "ssl.keystore.type=PEM", f"ssl.keystore.location={certificates / f'{name}.pem'}",
        "ssl.truststore.type=PEM", f"ssl.truststore.location={certificates / 'ca.pem'}",
    )  # fmt: skip
