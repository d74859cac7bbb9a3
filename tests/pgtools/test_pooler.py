from __future__ import annotations

import pytest

from jobs.pgtools import pooler
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, PoolerDetected
from tests import servers

from .conftest import Place
from .fakepooler import FakePooler, Mode, Order


def through(fake: FakePooler, place: Place) -> Conninfo:
    return Conninfo.parse(f"postgresql://app:any@127.0.0.1:{fake.port}/{place.name}")


def look(conninfo: Conninfo, place: Place) -> None:
    with conninfo.connect(place.folder, "pgbr/test") as conn:
        pooler.refuse_pooler(conn, lambda: conninfo.connect(place.folder, "pgbr/test"))
        row = conn.execute("SELECT current_setting('pgbr.probe', true)").fetchone()
        assert row in ((None,), ("",))


@pytest.mark.parametrize("order", ["last", "oldest"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_pooler_that_shares_sessions_is_refused(shop: Place, size: int, order: Order) -> None:
    with (
        FakePooler(shop.url, size, "transaction", order) as fake,
        pytest.raises(PoolerDetected, match="Register the server's own address"),
    ):
        look(through(fake, shop), shop)


@pytest.mark.parametrize("mode", ["session"])
def test_a_pooler_that_keeps_sessions_apart_is_accepted(shop: Place, mode: Mode) -> None:
    with FakePooler(shop.url, 2, mode) as fake:
        look(through(fake, shop), shop)


def test_a_pool_without_a_second_session_is_accepted_soon(
    shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooler, "ANSWER_SECONDS", 0.3)
    with FakePooler(shop.url, 1, "session") as fake:
        look(through(fake, shop), shop)


@pytest.mark.parametrize("major", servers.MAJORS)
def test_a_direct_connection_is_never_refused(major: int, shop: Place) -> None:
    server = servers.get(major)
    look(Conninfo.parse(server.superuser_url()), shop)


def test_a_role_limited_to_one_session_is_accepted(shop: Place) -> None:
    def no_more() -> pooler.Session:
        raise ConnectionFailed("too many connections for role")

    with shop.connect() as conn:
        pooler.refuse_pooler(conn, no_more)
