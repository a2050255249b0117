"""Properties files of Kafka's own tools are read as Java reads them, and never honoured less safely than
written."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from trimtab.capture.client import ClientSettings, client_settings
from trimtab.capture.properties import read_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN")
TLS = "security.protocol=SSL"


def settings(folder: Path, *lines: str) -> ClientSettings:
    path = folder / "client.properties"
    path.write_text("\n".join(lines) + "\n", encoding="iso-8859-1")
    return client_settings(path)


def refused(folder: Path, *lines: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        settings(folder, *lines)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb : 2\nc 3\nd\t=\t4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# no\n  ! no\n\n \t\na=1", {"a": "1"}),
        ("a=one \\\n    two\\\n  three", {"a": "one twothree"}),
        ("a=ends with a backslash\\\\\nb=2", {"a": "ends with a backslash\\", "b": "2"}),
        ("a\\=b\\:c\\ d=x", {"a=b:c d": "x"}),
        ("a=\\u00fc\\t\\n\\q", {"a": "ü\t\nq"}),
        ("a=\\\\u00fc", {"a": "\\u00fc"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\\", {"a": "1"}),
        ("a=keeps trailing blanks  ", {"a": "keeps trailing blanks  "}),
        ("a=\\\n# not a comment", {"a": "# not a comment"}),
    ],
)
def test_properties_are_read_as_java_reads_them(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    path = tmp_path / "some.properties"
    path.write_bytes(text.encode("iso-8859-1"))
    assert read_properties(path) == expected


def test_a_broken_escape_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "some.properties"
    path.write_text("a=1\nb=\\u12\n")
    with pytest.raises(ConfigurationError, match="line 2: expected four hexadecimal digits"):
        read_properties(path)


def test_without_a_file_the_connection_is_plain() -> None:
    assert client_settings(None).options["security_protocol"] == "PLAINTEXT"


def test_login_line_with_quotes_blanks_and_escapes(tmp_path: Path) -> None:
    line = f'sasl.jaas.config={PLAIN} required username="o p s" password="a\\\\"b;=\\\\\\\\c";'
    found = settings(tmp_path, "security.protocol=sasl_plaintext", "sasl.mechanism=PLAIN", line).options
    assert found["sasl_plain_username"] == "o p s"
    assert found["sasl_plain_password"] == 'a"b;=\\c'
    assert found["security_protocol"] == "SASL_PLAINTEXT"


def test_numbers_and_client_id_are_passed_on(tmp_path: Path) -> None:
    found = settings(tmp_path, "client.id=ops-desk", "request.timeout.ms=4000", "retry.backoff.ms=50").options
    assert (found["client_id"], found["request_timeout_ms"], found["retry_backoff_ms"]) == (
        "ops-desk",
        4000,
        50,
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["security.protocol=TLS"], "security.protocol: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, "
                                    "SASL_SSL, found 'TLS'"),
        (["security.protocol=SASL_SSL"], "sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, "
                                         "SCRAM-SHA-512, found none, which means GSSAPI"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER"], "found 'OAUTHBEARER'"),
        ([*LOGIN], "sasl.jaas.config: is missing"),
        (
            [*LOGIN, f'sasl.jaas.config={SCRAM} required username="a" password="b";'],
            f"expected the login module {PLAIN} for this mechanism, found {SCRAM}",
        ),
        (
            [*LOGIN, f'sasl.jaas.config={PLAIN} required username="a" password="b"'],
            "ends with a semicolon",
        ),
        (
            [*LOGIN, f'sasl.jaas.config={PLAIN} required username="a";'],
            "sasl.jaas.config: password missing",
        ),
        (
            ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-256",
             f'sasl.jaas.config={SCRAM} required username="a" password="b" tokenauth="true";'],
            "option tokenauth is not supported",
        ),
        ([TLS, "ssl.cipher.suites=TLS_AES_256_GCM_SHA384"], "ssl.cipher.suites: is not supported"),
        ([TLS, "ssl.truststore.loaction=/x"], "did you mean ssl.truststore.location?"),
        (["config.providers=file"], "config.providers: is not supported"),
        (["security.providers=x"], "security.providers: is not supported"),
        ([*LOGIN, "sasl.login.class=x"], "sasl.login.class: is not supported"),
        ([TLS, "ssl.endpoint.identification.algorithm=none"], "expected https, or nothing to switch"),
        ([TLS, "ssl.enabled.protocols=TLSv1.1,TLSv1.2"], "expected TLSv1.2 and TLSv1.3, found TLSv1.1"),
        ([TLS, "ssl.keystore.key=x"], "ssl.keystore.certificate.chain: is missing"),
        ([TLS, "ssl.truststore.location=/no/such.pem"], "cannot read /no/such.pem: No such file"),
        (["request.timeout.ms=soon"], "request.timeout.ms: expected milliseconds above 0, found 'soon'"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    assert said in refused(tmp_path, *lines)


def test_every_mistake_is_told_at_once_and_no_secret_is_repeated(tmp_path: Path) -> None:
    text = refused(
        tmp_path, *LOGIN, "ssl.provider=x", "request.timeout.ms=-1",
        f"sasl.jaas.config={PLAIN} required username='a' password=hunter2 oops",
    )  # fmt: skip
    assert "3 problems" in text
    assert "hunter2" not in text


@pytest.mark.parametrize(("kind", "shown"), [("", "a Java key store"), ("JKS", "JKS"), ("PKCS12", "PKCS12")])
def test_a_java_store_is_refused_with_the_command_that_converts_it(
    tmp_path: Path, kind: str, shown: str
) -> None:
    store = tmp_path / "store"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    text = refused(
        tmp_path, "security.protocol=SSL", f"ssl.truststore.location={store}", f"ssl.truststore.type={kind}",
        f"ssl.keystore.location={store}",
    )  # fmt: skip
    assert (
        f"expected a PEM file, found {shown}; convert it with: keytool -list -rfc -keystore {store}" in text
    )
    assert "keytool -importkeystore" in text
    assert "set ssl.keystore.type=PEM" in text


def test_a_pem_file_without_certificates_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")
    assert "ssl.truststore: expected certificates in PEM" in refused(
        tmp_path, "security.protocol=SSL", f"ssl.truststore.location={store}"
    )


def context(folder: Path, *lines: str) -> ssl.SSLContext:
    found = settings(folder, "security.protocol=SSL", *lines).options["ssl_context"]
    assert isinstance(found, ssl.SSLContext)
    return found


def test_the_host_name_is_checked_unless_the_file_switches_it_off(tmp_path: Path) -> None:
    assert context(tmp_path).check_hostname
    assert context(tmp_path, "ssl.endpoint.identification.algorithm=HTTPS").check_hostname
    unchecked = context(tmp_path, "ssl.endpoint.identification.algorithm=")
    assert not unchecked.check_hostname
    assert unchecked.verify_mode is ssl.CERT_REQUIRED, "the certificate itself is still verified"


def test_tls_versions_are_those_the_file_allows(tmp_path: Path) -> None:
    both = context(tmp_path)
    assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    newest = context(tmp_path, "ssl.enabled.protocols=TLSv1.3")
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3
    older = context(tmp_path, "ssl.protocol=TLSv1.2")
    assert older.maximum_version is ssl.TLSVersion.TLSv1_2


def test_settings_without_a_bearing_are_warned_of_or_passed_over(tmp_path: Path) -> None:
    found = settings(
        tmp_path, "bootstrap.servers=elsewhere:9092", "retries=5", "no.such.setting=1", "clinet.id=x"
    )
    assert len(found.warnings) == 2
    assert "no.such.setting is not a setting this command knows, ignored" in found.warnings[0]
    assert "did you mean client.id?" in found.warnings[1]


def test_tls_settings_without_a_protocol_that_uses_them_are_warned_of(tmp_path: Path) -> None:
    """A forgotten security.protocol would connect in the clear without a word."""
    found = settings(tmp_path, "ssl.truststore.location=/x.pem", "sasl.mechanism=PLAIN")
    assert found.protocol == "PLAINTEXT"
    assert (
        "ssl.* and sasl.* settings have no effect, because security.protocol is not given"
        in found.warnings[0]
    )
