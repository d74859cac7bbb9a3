"""The certificates of public CAs that this machine trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

from .errors import InvalidConninfo

USUAL = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def system_certificates() -> str:
    """The file that holds them. libpq's own `sslrootcert=system` exists from version 16 on only, and a libpq
    that brings its own OpenSSL looks for them where it was built. Raises InvalidConninfo when there is none.
    """
    default = ssl.get_default_verify_paths()
    for name in (default.cafile, default.openssl_cafile, *USUAL):
        if name and Path(name).is_file():
            return name
    raise InvalidConninfo("This machine has no bundle of public CAs (package ca-certificates); paste the CA.")
