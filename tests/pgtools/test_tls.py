from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, InvalidConninfo
from tests import servers

from .conftest import Place, toolset

NOW = datetime.datetime.now(datetime.UTC)


class Authority:
    """A CA that signs certificates for tests."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"CA {uuid4()}")])
        self.pem = self._sign(self._name, self._key, ca=True)

    def issue(self, name: str, *, passphrase: bytes | None = None) -> tuple[str, str]:
        """Certificate and key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        encryption = (
            serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        )
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()
        return self._sign(subject, key, ca=False), pem

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> str:
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - datetime.timedelta(days=1))
            .not_valid_after(NOW + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM).decode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def place(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with TLS that asks "app" for a client certificate and others for a password."""
    server = servers.private(17)
    data = server.cluster.data
    owner = data.stat()
    certificate, key = authority.issue("127.0.0.1")
    rules = (
        f"hostssl all app all cert\nhostssl all all all scram-sha-256\n{(data / 'pg_hba.conf').read_text()}"
    )
    settings = "ssl = on\nssl_ca_file = 'ca.crt'\n"
    written = {"server.crt": certificate, "server.key": key, "ca.crt": authority.pem, "pg_hba.conf": rules}
    written["postgresql.conf"] = (data / "postgresql.conf").read_text() + settings
    for name, text in written.items():
        (data / name).write_text(text)
        (data / name).chmod(0o600)
        os.chown(data / name, owner.st_uid, owner.st_gid)
    url = server.create_database("secured")
    server.stop()
    server.start()
    folder = tmp_path_factory.mktemp("tls")
    yield Place(server, "secured", url, Conninfo.parse(url), toolset(17), folder)
    servers.discard(server)


def over_tls(conninfo: Conninfo, folder: Path) -> bool:
    with conninfo.connect(folder, "pgbr/test") as conn:
        row = conn.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
    return row == (True,)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_pasted_ca_verifies_the_server_in_every_mode(
    place: Place, authority: Authority, mode: str, tmp_path: Path
) -> None:
    url = place.server.superuser_url("secured")
    good = Conninfo.parse(url, ca_pem=authority.pem, sslmode=mode)
    assert over_tls(good, tmp_path)
    assert place.dump({}, good)[0].startswith(b"PGDMP")
    other = Conninfo.parse(url, ca_pem=Authority().pem, sslmode=mode)
    with pytest.raises(ConnectionFailed, match=r"certificate verify failed.*The CA given did not sign"):
        other.connect(tmp_path, "pgbr/test")


def test_tls_is_used_without_a_ca_too(place: Place, tmp_path: Path) -> None:
    url = place.server.superuser_url("secured")
    assert over_tls(Conninfo.parse(url, sslmode="require"), tmp_path)
    assert over_tls(Conninfo.parse(url), tmp_path)


def test_a_pasted_client_certificate_logs_in_without_a_password(
    place: Place, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("app")
    url = place.server.url("secured", servers.APP, "")
    with pytest.raises(ConnectionFailed, match="valid client certificate"):
        Conninfo.parse(url, sslmode="require").connect(tmp_path, "pgbr/test")
    conninfo = Conninfo.parse(url, sslmode="require", cert_pem=certificate, key_pem=key)
    assert over_tls(conninfo, tmp_path)
    assert place.dump({}, conninfo)[0].startswith(b"PGDMP")
    assert {oct(path.stat().st_mode)[-3:] for path in tmp_path.iterdir()} == {"600"}


def test_keys_that_cannot_be_used_are_refused_when_pasted(authority: Authority) -> None:
    certificate, _ = authority.issue("app")
    _, another_key = authority.issue("app")
    _, protected = authority.issue("app", passphrase=b"words")
    for key, complaint in (
        (another_key, "does not belong to the client certificate"),
        (protected, "protected by a passphrase"),
        ("nothing", "not a private key"),
    ):
        with pytest.raises(InvalidConninfo, match=complaint):
            Conninfo.parse("postgresql://u@h/d", cert_pem=certificate, key_pem=key)
