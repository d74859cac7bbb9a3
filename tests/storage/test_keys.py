"""Names of stored objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from jobs.storage.keys import globals_key, manifest_key, moved_key, object_key, safe_name, upload_key

JOB = UUID("0123abcd-1111-4222-8333-444455556666")
CLAIM = UUID("9f00aaaa-1111-4222-8333-444455556666")
START = datetime(2026, 11, 29, 23, 3, 0, tzinfo=UTC)


def test_key_tells_database_start_job_and_claim() -> None:
    key = object_key("", "Shop", START, JOB, CLAIM, "dump")
    assert key == "Shop/20261129T230300Z_Shop_0123abcd-9f00.dump"
    assert manifest_key(key) == key + ".json"
    assert globals_key(key) == key + ".globals.sql"


def test_start_is_written_in_utc_and_must_know_its_zone() -> None:
    berlin = START.astimezone(timezone(timedelta(hours=1)))
    assert object_key("", "a", berlin, str(JOB), str(CLAIM), "sql.gz").startswith("a/20261129T230300Z_a_")
    with pytest.raises(ValueError, match="aware"):
        object_key("", "a", START.replace(tzinfo=None), JOB, CLAIM, "dump")


@pytest.mark.parametrize(
    ("prefix", "start"),
    [("team", "team/db/"), ("/team/nightly/", "team/nightly/db/"), ("../..//x y", "x-y/db/"), (" / ", "db/")],
)
def test_prefix_becomes_plain_folders(prefix: str, start: str) -> None:
    assert object_key(prefix, "db", START, JOB, CLAIM, "dump").startswith(start)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Shop_2.prod", "Shop_2.prod"),
        ("Bücher & Größen", "Bucher-Grossen"),
        ("łódź", "lodz"),
        ("база", "database"),
        ("", "database"),
        ("..", "database"),
        ("../etc/passwd", "etc-passwd"),
        ("-rf", "rf"),
        ("a\n\0b", "a-b"),
        ("x" * 500, "x" * 80),
        ("ﬁnance", "finance"),
    ],
)
def test_names_are_made_safe_and_stay_readable(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize(
    ("name", "safe"), [("shop 1.dump", "shop-1.dump"), ("x.json", "x.json"), ("🐘", "file"), ("../x", "x")]
)
def test_an_upload_has_a_key_of_its_own_that_is_no_manifests(name: str, safe: str) -> None:
    key = upload_key("team", name, START, JOB)
    assert key == f"team/uploads/20261129T230300Z_{safe}_{JOB.hex}.upload"


def test_equal_names_do_not_collide() -> None:
    other = UUID("fedcba98-1111-4222-8333-444455556666")
    keys = {object_key("", name, START, job, CLAIM, "dump") for name, job in (("a b", JOB), ("a-b", other))}
    assert len(keys) == 2
    assert object_key("", "a", START, JOB, other, "dump") != object_key("", "a", START, JOB, CLAIM, "dump")
    assert all(re.fullmatch(r"[A-Za-z0-9._/-]+", key) for key in keys)


@pytest.mark.parametrize(
    ("key", "prefix", "moved"),
    [
        ("shop/x.dump", "", "shop/x.dump"),
        ("eu/pg/shop/x.dump", "", "shop/x.dump"),
        ("shop/x.dump", "/off site/é/", "off-site/e/shop/x.dump"),
    ],
)
def test_another_copy_differs_in_its_prefix_only(key: str, prefix: str, moved: str) -> None:
    assert moved_key(key, prefix) == moved
