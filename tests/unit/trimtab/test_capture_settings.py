"""Properties files of Kafka's own tools are read as Java reads them, and never honoured less safely than
written."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import trustme

from cluster_model.errors import ConfigurationError, ExternalError
from cluster_model.properties import read_properties
from tests.assembled.commands.command_line import REPOSITORY
from tests.unit.trimtab.java_stores import OWN, TRUSTED, written
from trimtab.capture.client import ClientSettings, client_settings
from trimtab.capture.oauth import Credentials, Tokens

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
BEARER = ("security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=https://id.example/token")
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


def test_the_example_of_the_docs_is_taken(tmp_path: Path) -> None:
    """Of SCRAM over TLS with a PEM file, as an operator copies it."""
    text = (REPOSITORY / "docs" / "security.md").read_text("utf-8").partition("```properties\n")[2].partition("```")[0]
    trusted = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(trusted))
    found = settings(tmp_path, text.replace("/etc/trimtab/ca.pem", str(trusted))).options
    assert (found["security_protocol"], found["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("trimtab-plan", "secret")
    trust = found["ssl_context"]
    assert isinstance(trust, ssl.SSLContext)
    assert trust.cert_store_stats()["x509"] == 1


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
        (["security.protocol=SASL_SSL"], "sasl.mechanism: no mechanism, which means GSSAPI to Kafka, needs the Python package gssapi"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM"], "sasl.mechanism: AWS_MSK_IAM, needs the Python package botocore: "
                                                                       "install it beside trimtab (pip install botocore)"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=DIGEST-MD5"], "expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ([*BEARER[:2]], "sasl.oauthbearer.token.endpoint.url: expected https://"),
        ([*BEARER], f'sasl.jaas.config: is missing; expected {OAUTH} required clientId="…" clientSecret="…";'),
        ([*BEARER, f'sasl.jaas.config={OAUTH} required clientId="a" secret="b";'], "sasl.jaas.config: clientSecret missing"),
        ([*BEARER, "sasl.login.callback.handler.class=com.example.Own"], "com.example.Own cannot be run here; known for OAUTHBEARER"),
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


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_java_stores_are_read_as_java_does(tmp_path: Path, kind: str) -> None:
    trusted, own = written(tmp_path / "trusted", TRUSTED[kind]), written(tmp_path / "own", OWN[kind])
    found = context(
        tmp_path, f"ssl.truststore.location={trusted}", "ssl.truststore.password=changeit",
        f"ssl.keystore.location={own}", f"ssl.keystore.type={kind}", "ssl.keystore.password=changeit", "ssl.key.password=another",
    )  # fmt: skip
    assert found.cert_store_stats()["x509"] == 1, "the certificate alone is trusted, none of the system's"


def test_a_key_with_a_password_of_its_own(tmp_path: Path) -> None:
    own = written(tmp_path / "own", OWN["JKS"])
    store = (f"ssl.keystore.location={own}", "ssl.keystore.password=changeit")
    assert "wrong password of the key; give ssl.key.password" in refused(tmp_path, TLS, *store)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_that_cannot_be_read_says_why(tmp_path: Path, kind: str) -> None:
    trusted = written(tmp_path / "trusted", TRUSTED[kind])
    given = (TLS, f"ssl.truststore.location={trusted}")
    assert f"{trusted}: wrong password, or a broken {kind} file" in refused(tmp_path, *given, "ssl.truststore.password=guessed")
    as_key = (TLS, f"ssl.keystore.location={trusted}", "ssl.keystore.password=changeit")
    assert f"{trusted}: expected a private key, found none in it" in refused(tmp_path, *as_key)
    content = trusted.read_bytes()
    trusted.write_bytes(content[: len(content) // 2])
    assert "broken" in refused(tmp_path, *given)
    trusted.write_bytes(b"\xce\xce\xce\xce")
    text = refused(tmp_path, *given)
    assert f"expected PEM, JKS or PKCS12, found JCEKS; convert it with: keytool -list -rfc -keystore {trusted}" in text


def test_a_login_by_tokens(tmp_path: Path) -> None:
    login = f'sasl.jaas.config={OAUTH} required clientId="me" clientSecret="s3cret" scope="kafka" extension_logicalCluster="lkc-1";'
    handler = f"sasl.login.callback.handler.class={OAUTH.replace('LoginModule', 'LoginCallbackHandler')}"
    options = settings(tmp_path, *BEARER, login, handler, "sasl.login.refresh.buffer.seconds=300").options
    provider = options["sasl_oauth_token_provider"]
    assert isinstance(provider, Tokens)
    assert provider.extensions() == {"logicalCluster": "lkc-1"}
    assert "s3cret" not in repr(options)
    token = tmp_path / "token"
    token.write_text("first\n")
    by_file = settings(tmp_path, *BEARER[:2], f"sasl.oauthbearer.token.endpoint.url=file://{token}").options["sasl_oauth_token_provider"]
    assert isinstance(by_file, Tokens)
    assert by_file.token() == "first"
    token.write_text("renewed")
    assert by_file.token() == "renewed"


class Endpoint(BaseHTTPRequestHandler):
    """Gives tokens that are valid for 100 s to the one client it knows."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        known = self.headers["Authorization"] == "Basic " + base64.b64encode(b"me:s%2Fcret").decode()
        self.asked.append(body)
        answer = {"access_token": f"token {len(self.asked)}", "expires_in": 100} if known else {"error": "invalid_client"}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_token_is_asked_once_and_again_before_it_ends() -> None:
    now = 0.0
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/token"
        tokens = Tokens(Credentials(url, "me", "s/cret", "kafka"), lambda: now)
        assert (tokens.token(), tokens.token()) == ("token 1", "token 1")
        now = 81.0
        assert tokens.token() == "token 2"
        assert Endpoint.asked == ["grant_type=client_credentials&scope=kafka"] * 2
        with pytest.raises(ExternalError, match="the endpoint answered 401; check clientId, clientSecret and scope") as error:
            Tokens(Credentials(url, "me", "gu3ss")).token()
        assert "gu3ss" not in str(error.value)
        server.shutdown()
    with pytest.raises(ExternalError, match="cannot be reached"):
        Tokens(Credentials(url, "me", "s/cret")).token()


def test_logins_that_need_a_package(tmp_path: Path) -> None:
    """Neither package is installed here: what is passed on where they are, and what they cannot do."""

    def there(*lines: str) -> ClientSettings:
        path = tmp_path / "client.properties"
        path.write_text("\n".join(lines) + "\n")
        return client_settings(path, lambda package: True)

    iam = ("sasl.mechanism=AWS_MSK_IAM", "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;",
           "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler")  # fmt: skip
    assert there("security.protocol=SASL_SSL", *iam).options["sasl_mechanism"] == "AWS_MSK_IAM"
    with pytest.raises(ConfigurationError, match="AWS_MSK_IAM goes with SASL_SSL"):
        there("security.protocol=SASL_PLAINTEXT", *iam)
    kerberos = ("security.protocol=SASL_PLAINTEXT", "sasl.kerberos.service.name=kafka")
    assert there(*kerberos).options["sasl_kerberos_service_name"] == "kafka"
    krb5 = "sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required"
    assert there(*kerberos, f"{krb5} useTicketCache=true;").options["sasl_mechanism"] == "GSSAPI"
    with pytest.raises(ConfigurationError, match="run kinit -kt KEYTAB PRINCIPAL before"):
        there(*kerberos, f'{krb5} useKeyTab=true keyTab="/x";')
    with pytest.raises(ConfigurationError, match=r"sasl\.kerberos\.service\.name: is missing"):
        there("security.protocol=SASL_PLAINTEXT")


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
