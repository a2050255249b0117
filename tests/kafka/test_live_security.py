"""A capture goes through SASL and TLS with a properties file as Kafka's own tools take it, and says why
where it cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from tests.kafka.cluster import KafkaCluster
from tests.kafka.guarded import PLAIN_LOGIN, login, scram, written
from trimtab.capture import capture


def test_sasl_plain(guarded: KafkaCluster, tmp_path: Path) -> None:
    config = written(tmp_path, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", login(PLAIN_LOGIN))
    snapshot = capture(guarded.addresses("LOGIN"), command_config=config, interval=0.2)
    assert snapshot.topics == ("guarded",)
    assert snapshot.is_reported("network_in")


def test_scram_over_tls(guarded: KafkaCluster, certificates: Path, tmp_path: Path) -> None:
    config = scram(certificates, tmp_path, "ops")
    assert capture(guarded.addresses("BOTH"), command_config=config, interval=0).topics == ("guarded",)


def test_mutual_tls_with_an_encrypted_key_given_in_the_file_itself(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path
) -> None:
    key, chain = ((certificates / name).read_text().replace("\n", " ") for name in ("client-locked.key", "client.crt"))
    config = written(
        tmp_path, "security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.truststore.type=PEM",
        f"ssl.truststore.location={certificates / 'ca.pem'}",
        f"ssl.keystore.key={key}", f"ssl.keystore.certificate.chain={chain}", "ssl.key.password=key-secret",
    )  # fmt: skip
    assert capture(guarded.addresses("MUTUAL"), command_config=config, interval=0).topics == ("guarded",)


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


def test_a_java_key_store_is_refused_with_a_command_that_converts_it(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path
) -> None:
    store = tmp_path / "truststore.p12"
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", certificates / "ca.pem",
         "-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit"],
        check=True, capture_output=True,
    )  # fmt: skip
    common = ("security.protocol=SSL", f"ssl.keystore.location={certificates / 'client.pem'}")
    config = written(tmp_path, *common, "ssl.truststore.type=PKCS12", f"ssl.truststore.location={store}")
    with pytest.raises(ConfigurationError, match="convert it with: keytool") as refused:
        capture(guarded.addresses("MUTUAL"), command_config=config, interval=0)

    command = str(refused.value).partition("convert it with: ")[2].partition(" and set ")[0]
    subprocess.run(command, shell=True, cwd=tmp_path, input="changeit\n", text=True, check=True, capture_output=True)
    config = written(tmp_path, *common, "ssl.truststore.type=PEM", f"ssl.truststore.location={tmp_path / 'truststore.pem'}")
    assert capture(guarded.addresses("MUTUAL"), command_config=config, interval=0).topics == ("guarded",)
