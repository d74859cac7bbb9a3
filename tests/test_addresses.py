"""Where nothing is ever sent to. Only spelt here: no name is looked up, nothing is connected to."""

from __future__ import annotations

import pytest

from jobs.addresses import is_metadata, leads_to_metadata

REFUSED = (
    "169.254.169.254", "169.254.0.1", "100.100.100.200", "fd00:ec2::254", "fe80::1%eth0",
    "::ffff:169.254.169.254", "::ffff:100.100.100.200", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
)  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_metadata_is_refused_however_it_is_spelt(address: str) -> None:
    assert is_metadata(address)
    assert leads_to_metadata(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "100.100.100.201", "::1", "2001:db8::1"])
def test_other_addresses_are_not(address: str) -> None:
    assert not is_metadata(address)


@pytest.mark.parametrize("host", ["2852039166", "0xA9FEA9FE"])
def test_numbers_that_the_resolver_reads_as_addresses(host: str) -> None:
    assert leads_to_metadata(host)


def test_what_is_no_name_leads_nowhere() -> None:
    assert not leads_to_metadata("a" * 300)
