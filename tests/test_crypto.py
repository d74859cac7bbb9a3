"""Sealing what is kept: authenticated, and with keys that can be replaced."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from jobs.crypto import BadKey, CannotDecrypt, Sealer

OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


@given(st.text())
def test_what_was_sealed_comes_back(secret: str) -> None:
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    sealer = Sealer([OLD])
    token = sealer.seal(secret)
    assert sealer.unseal(token, "it") == secret
    assert token.isascii()
    assert len(secret) < 4 or secret not in token


def test_the_first_key_seals_and_all_of_them_open() -> None:
    token = Sealer([OLD]).seal("secret")
    both = Sealer([NEW, OLD])
    assert both.unseal(token, "it") == "secret"
    rotated = both.rotate(token, "it")
    assert Sealer([NEW]).unseal(rotated, "it") == "secret"
    with pytest.raises(CannotDecrypt):
        Sealer([OLD]).unseal(both.seal("secret"), "it")


def test_without_its_key_a_value_is_told_by_name_with_the_remedy() -> None:
    token = Sealer([OLD]).seal("secret")
    with pytest.raises(
        CannotDecrypt, match=r"^The URL of 'shop' cannot be decrypted .*ENCRYPTION_KEY.* enter"
    ) as told:
        Sealer([NEW, OTHER]).unseal(token, "The URL of 'shop'")
    assert token not in str(told.value)


def test_a_changed_value_is_refused_wherever_it_was_changed() -> None:
    sealer = Sealer([OLD])
    token = sealer.seal("secret")
    for at in range(0, len(token) - 2, 7):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        with pytest.raises(CannotDecrypt):
            sealer.unseal(changed, "it")
    for broken in (token[:-4], "AAAA" + token, "x", "é", "postgresql://plain:text@host/db"):
        with pytest.raises(CannotDecrypt):
            sealer.unseal(broken, "it")


def test_nothing_stays_nothing() -> None:
    assert Sealer([OLD]).seal("") == ""
    assert Sealer([OLD]).unseal("", "it") == ""


@pytest.mark.parametrize("keys", [["x"], [OLD, "too-short"], [OLD, OLD[:-4]], [OLD, "é" * 44], [OLD, ""]])
def test_a_key_that_is_none_is_told_by_its_place_and_never_shown(keys: list[str]) -> None:
    with pytest.raises(BadKey, match=f"key number {len(keys)} of ENCRYPTION_KEY") as told:
        Sealer(keys)
    assert not keys[-1] or keys[-1] not in str(told.value)


def test_no_keys_at_all_is_an_error() -> None:
    with pytest.raises(BadKey, match="ENCRYPTION_KEY is empty"):
        Sealer([])
