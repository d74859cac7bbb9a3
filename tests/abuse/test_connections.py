"""URLs and PEM that would lend out the worker, crash the form or keep a processor busy."""

from __future__ import annotations

import subprocess

import pytest

from jobs.pgtools import pem
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidConninfo


@pytest.mark.parametrize(
    "rest",
    [
        "h/d?s%65rvice=x",
        "h/d?p%61ssfile=/etc/passwd",
        "h/d?sslrootcert=/etc/passwd",
        "h/d?sslkeylogfile=/tmp/keys",
        "h/d?oauth_issuer=https://evil.test",
        "h/d?host=%2Ftmp",
        "h/d?host=@abstract",
        "h,%2Ftmp/d",
        "%40abstract/d",
        "h/d?hostaddr=/tmp",
        "h/d?hostaddr=1.2.3.4,@abstract",
        "h/d?gssencmode=require",
        "h/d?connect_timeout=0",
        "h/d?connect_timeout=999999999",
    ],
)
def test_refused_urls(rest: str) -> None:
    with pytest.raises(InvalidConninfo):
        Conninfo.parse(f"postgresql://u:p@{rest}")


def test_no_ticket_of_the_workers_is_shown_to_a_users_server() -> None:
    url = "postgresql://u:p@h/d?gssencmode=prefer"
    assert "gssencmode" not in Conninfo.parse(url).options
    assert Conninfo.parse(url, trusted=True).options["gssencmode"] == "prefer"


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True).stdout


def test_a_key_of_an_unknown_kind_is_a_reason_and_no_crash() -> None:
    key = openssl("ecparam", "-name", "secp112r1", "-genkey", "-noout")
    certificate = openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x"
    )
    with pytest.raises(InvalidConninfo, match="kind that is not supported"):
        pem.check("", certificate, key)


@pytest.mark.parametrize(("place", "length"), [(0, 1_000_001), (1, 1_000_001), (2, 20_001)])
def test_endless_pem_is_not_even_parsed(place: int, length: int) -> None:
    given = ["", "x", "x"]
    given[place] = "A" * length
    with pytest.raises(InvalidConninfo, match="is longer than"):
        pem.check(*given)
