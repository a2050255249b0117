"""A capture goes through SASL and TLS with a properties file as Kafka's own tools take it, and says why
where it cannot."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from tests.kafka.cluster import KafkaCluster
from tests.kafka.guarded import OAUTH_LOGIN, PLAIN_LOGIN, login, openssl, scram, written
from trimtab.capture import capture


def test_sasl_plain(guarded: KafkaCluster, tmp_path: Path) -> None:
    config = written(tmp_path, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", login(PLAIN_LOGIN))
    snapshot = capture(guarded.addresses("LOGIN"), command_config=config, interval=0.2)
    assert "guarded" in snapshot.topics
    assert snapshot.is_reported("network_in")


def test_scram_over_tls(guarded: KafkaCluster, certificates: Path, tmp_path: Path) -> None:
    config = scram(certificates, tmp_path, "ops")
    assert "guarded" in capture(guarded.addresses("BOTH"), command_config=config, interval=0).topics


def test_mutual_tls_with_an_encrypted_key_given_in_the_file_itself(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path
) -> None:
    key, chain = ((certificates / name).read_text().replace("\n", " ") for name in ("client-locked.key", "client.crt"))
    config = written(
        tmp_path, "security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.truststore.type=PEM",
        f"ssl.truststore.location={certificates / 'ca.pem'}",
        f"ssl.keystore.key={key}", f"ssl.keystore.certificate.chain={chain}", "ssl.key.password=key-secret",
    )  # fmt: skip
    assert "guarded" in capture(guarded.addresses("MUTUAL"), command_config=config, interval=0).topics


def test_a_wrong_password_is_said_at_once_and_not_repeated(guarded: KafkaCluster, tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        login(PLAIN_LOGIN, "not-the-one"),
    )
    # Whether the broker's answer arrives before it hangs up is a race within the broker.
    said = r"(?s)(hung up while we logged in|Authentication failed).*sasl\.jaas\.config"
    with pytest.raises(ExternalError, match=said) as refused:
        capture(guarded.addresses("LOGIN"), command_config=config, interval=0)
    assert "not-the-one" not in str(refused.value)


def test_a_broker_with_an_untrusted_certificate_is_refused(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path
) -> None:
    config = written(
        tmp_path, "security.protocol=SSL", f"ssl.truststore.location={certificates / 'other-ca.pem'}",
        f"ssl.keystore.location={certificates / 'client.pem'}", "request.timeout.ms=2000",
    )  # fmt: skip
    with pytest.raises(ExternalError, match=r"(?s)certificate verify failed.*ssl\.truststore\.location"):
        capture(guarded.addresses("MUTUAL"), command_config=config, interval=0)


def test_a_plain_client_at_a_tls_listener_is_told_of_command_config(guarded: KafkaCluster, tmp_path: Path) -> None:
    config = written(tmp_path, "request.timeout.ms=1000")
    with pytest.raises(ExternalError, match=r"does not speak PLAINTEXT.*--command-config"):
        capture(guarded.addresses("MUTUAL"), command_config=config, interval=0)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_mutual_tls_with_java_key_stores(guarded: KafkaCluster, certificates: Path, tmp_path: Path, kind: str) -> None:
    """The stores that Java clients of the same cluster have already, made by Java's keytool."""
    trusted, own, bundle = tmp_path / "truststore", tmp_path / "keystore", tmp_path / "client.p12"
    run = partial(subprocess.run, check=True, capture_output=True)
    run(["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", certificates / "ca.pem", "-keystore", trusted,
         "-storetype", kind, "-storepass", "changeit"])  # fmt: skip
    openssl(tmp_path, "pkcs12", "-export", "-in", str(certificates / "client.pem"), "-name", "client", "-out", str(bundle),
            "-passout", "pass:changeit")  # fmt: skip
    run(["keytool", "-importkeystore", "-srckeystore", bundle, "-srcstoretype", "PKCS12", "-srcstorepass", "changeit",
         "-destkeystore", own, "-deststoretype", kind, "-deststorepass", "changeit"])  # fmt: skip
    config = written(
        tmp_path, "security.protocol=SSL", f"ssl.truststore.location={trusted}", "ssl.truststore.password=changeit",
        f"ssl.keystore.location={own}", f"ssl.keystore.type={kind}", "ssl.keystore.password=changeit",
    )  # fmt: skip
    assert "guarded" in capture(guarded.addresses("MUTUAL"), command_config=config, interval=0).topics


def test_a_java_key_store_that_is_not_read_comes_with_a_command_that_converts_it(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path
) -> None:
    store = tmp_path / "truststore.jceks"
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", certificates / "ca.pem",
         "-keystore", store, "-storetype", "JCEKS", "-storepass", "changeit"],
        check=True, capture_output=True,
    )  # fmt: skip
    common = ("security.protocol=SSL", f"ssl.keystore.location={certificates / 'client.pem'}")
    config = written(tmp_path, *common, "ssl.truststore.type=JCEKS", f"ssl.truststore.location={store}")
    with pytest.raises(ConfigurationError, match="convert it with: keytool") as refused:
        capture(guarded.addresses("MUTUAL"), command_config=config, interval=0)

    command = str(refused.value).partition("convert it with: ")[2].partition(" and set ")[0]
    subprocess.run(command, shell=True, cwd=tmp_path, input="changeit\n", text=True, check=True, capture_output=True)
    config = written(tmp_path, *common, "ssl.truststore.type=PEM", f"ssl.truststore.location={tmp_path / 'truststore.pem'}")
    assert "guarded" in capture(guarded.addresses("MUTUAL"), command_config=config, interval=0).topics


class TokenEndpoint(BaseHTTPRequestHandler):
    """An identity provider that knows one client and gives it an unsecured token, as Kafka's own development handler takes it."""

    def do_POST(self) -> None:
        known = self.headers["Authorization"] == "Basic " + base64.b64encode(b"ops:s3cret").decode()
        now = time.time()
        parts = ({"alg": "none"}, {"sub": "ops", "iat": now, "exp": now + 600})
        token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": token, "expires_in": 600} if known else {"error": "invalid_client"}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_tokens_of_client_credentials(guarded: KafkaCluster, tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        common = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER",
                  f"sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:{server.server_port}/token")  # fmt: skip
        config = written(tmp_path, *common, f'sasl.jaas.config={OAUTH_LOGIN} required clientId="ops" clientSecret="s3cret";')
        assert "guarded" in capture(guarded.addresses("TOKEN"), command_config=config, interval=0.2).topics
        config = written(tmp_path, *common, f'sasl.jaas.config={OAUTH_LOGIN} required clientId="ops" clientSecret="gu3ss";')
        with pytest.raises(ExternalError, match="answered 401; check clientId") as refused:
            capture(guarded.addresses("TOKEN"), command_config=config, interval=0)
        assert "gu3ss" not in str(refused.value)
        server.shutdown()
