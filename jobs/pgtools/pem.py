"""Pasted TLS material: is it what it says, before a job finds out at night."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from .errors import InvalidConninfo

# Every public CA of the web fits. A key of millions of bits would keep a processor busy for hours.
MOST_CERTIFICATES = 1_000_000
MOST_KEY = 20_000


def check(ca_pem: str, cert_pem: str, key_pem: str) -> None:
    """Raises InvalidConninfo naming the field that does not hold what it should."""
    for text, most, what in (
        (ca_pem, MOST_CERTIFICATES, "CA certificate"),
        (cert_pem, MOST_CERTIFICATES, "client certificate"),
        (key_pem, MOST_KEY, "client key"),
    ):
        if len(text) > most:
            raise InvalidConninfo(f"The {what} is longer than {most:,} characters.")
    if ca_pem:
        _certificates(ca_pem, "CA certificate")
    if bool(cert_pem) != bool(key_pem):
        raise InvalidConninfo("A client certificate and its private key go together; only one was given.")
    if cert_pem:
        _check_pair(cert_pem, key_pem)


def _certificates(pem: str, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidConninfo(
            f"The {what} is not PEM; it should begin with -----BEGIN CERTIFICATE-----."
        ) from None


def _check_pair(cert_pem: str, key_pem: str) -> None:
    certificate = _certificates(cert_pem, "client certificate")[0]
    try:
        key = serialization.load_pem_private_key(key_pem.encode(), password=None)
    except TypeError:
        raise InvalidConninfo(
            "The client key is protected by a passphrase; paste it without (`openssl pkey -in KEY`)."
        ) from None
    except UnsupportedAlgorithm:
        raise InvalidConninfo("The client key is of a kind that is not supported here.") from None
    except ValueError:
        raise InvalidConninfo("The client key is not a private key in PEM.") from None
    try:
        belongs = key.public_key() == certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidConninfo("The client certificate's key is of a kind that is not supported.") from None
    if not belongs:
        raise InvalidConninfo("The client key does not belong to the client certificate.")
