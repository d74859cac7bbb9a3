from __future__ import annotations

from typing import Any

import pytest

from jobs.pgtools.errors import InvalidFlags, ToolFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.globals import globals_argv
from jobs.pgtools.options import FIELDS
from tests import servers

from .conftest import MakePlace, Place

MAGIC = {"gzip:1": b"\x1f\x8b", "zstd:3": b"\x28\xb5\x2f\xfd", "none": b"--\n", "": b"--\n"}
EVERYTHING = {
    "inserts": True,
    "rows_per_insert": 10,
    "on_conflict_do_nothing": True,
    "section": ["pre-data", "data"],
    "encoding": "LATIN1",
    "large_objects": True,
    "exclude_tables": ["audit.*"],
    "exclude_table_data": ["customers"],
}


@pytest.fixture(scope="module", params=servers.MAJORS)
def place(request: pytest.FixtureRequest, make_place: MakePlace) -> Place:
    return make_place(request.param)


def test_every_format_of_every_major_writes_what_its_name_says(place: Place) -> None:
    assert place.dump({})[0].startswith(b"PGDMP")
    assert place.dump({"format": "tar"})[0].startswith(b"toc.dat")
    for compress in ("", "none", "gzip:1"):
        assert place.dump({"format": "plain", "compress": compress})[0].startswith(MAGIC[compress])
    assert place.dump({"format": "directory", "jobs": 2})[0] == b""
    assert (next(place.folder.glob("d-*")) / "toc.dat").is_file()


def test_zstd_is_written_where_the_tools_have_it_and_refused_where_not(place: Place) -> None:
    flags = {"format": "plain", "compress": "zstd:3"}
    if place.server.major >= 16:
        assert place.dump(flags)[0].startswith(MAGIC["zstd:3"])
    else:
        with pytest.raises(InvalidFlags, match=rf"pg_dump {place.toolset.label}.* has no zstd; choose gzip"):
            place.dump(flags)


def test_pg_dump_of_every_major_takes_every_option_it_is_said_to_know(place: Place) -> None:
    known = [field for field in FIELDS if field.since <= place.server.major]
    switches = {field.name: True for field in known if field.kind == "switch"}
    for excluded in ("data_only", "schema_only", "disable_triggers"):
        switches.pop(excluded)
    place.dump({**EVERYTHING, **switches, "role": servers.APP})
    place.dump({"data_only": True, "disable_triggers": True, "large_objects": False, "format": "plain"})
    place.dump({"schemas": ["public"], "extensions": ["plpgsql"], "schema_only": True})


def test_options_of_newer_tools_are_refused_by_name(place: Place) -> None:
    for field in FIELDS:
        if field.since > place.server.major:
            value: Any = True if field.kind == "switch" else ["plpgsql"]
            with pytest.raises(InvalidFlags, match=f"{field.name} needs pg_dump {field.since}"):
                DumpFlags.from_dict({field.name: value}).argv(place.toolset)


def test_globals_are_dumped_without_passwords_by_who_may_not_read_them(place: Place) -> None:
    plain, _ = place.run(globals_argv(place.toolset, place.name, role_passwords=False))
    assert b"CREATE ROLE app" in plain
    assert b"SCRAM" not in plain
    superuser = place.as_user(servers.SUPERUSER)
    assert b"SCRAM" in place.run(globals_argv(place.toolset, place.name, role_passwords=True), superuser)[0]


def test_a_failed_dump_says_why_without_the_password(shop: Place) -> None:
    wrong = shop.as_user(servers.APP, "wr0ng-secret")
    with pytest.raises(
        ToolFailed, match=r"password authentication failed.*Check user and password"
    ) as caught:
        shop.dump({}, wrong)
    assert "wr0ng-secret" not in str(caught.value) + caught.value.log
    with pytest.raises(ToolFailed, match=r"no matching tables were found for pattern .nowhere"):
        shop.dump({"tables": ["nowhere", "orders"]})
    with pytest.raises(ToolFailed, match=r'database "gone" does not exist.*dropped or renamed'):
        shop.dump({}, shop.conninfo.replace_database("gone"))


def test_a_dump_that_waits_for_a_lock_gives_up_in_time(shop: Place) -> None:
    with shop.connect() as holder, holder.transaction():
        holder.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(ToolFailed, match=r"LOCK TABLE.*Another session locks a table"):
            shop.dump({"lock_wait_timeout": 1})


def test_a_newer_server_is_refused_by_an_older_client(make_place: MakePlace, shop: Place) -> None:
    newer = servers.get(18)
    conninfo = type(shop.conninfo).parse(newer.url("postgres"))
    with pytest.raises(ToolFailed, match=r"server version mismatch.*pgtools install"):
        shop.dump({}, conninfo)
