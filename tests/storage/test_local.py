"""Folders: keys that cannot escape, writes that are whole or nothing, disks that are full."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.storage.base import AlreadyExists, ObjectMissing, StoreError
from jobs.storage.local import LocalStore
from jobs.storage.local_folder import Folder
from tests.storage.stores import fetch, save

KEY = "db/one.dump"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def store(folder: Path) -> LocalStore:
    store = LocalStore(folder, name="nightly")
    store.prepare()
    return store


def _uses(store: LocalStore, key: str) -> list[Callable[[], object]]:
    token = f".{key.rsplit('/', 1)[-1]}.0123456789abcdef.part"
    return [
        lambda: save(store, key, b"x"),
        lambda: store.put_bytes(key, b"x", overwrite=True),
        lambda: fetch(store, key),
        lambda: store.stat(key),
        lambda: store.delete(key),
        lambda: store.discard(key, token),
    ]


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../up", "db/../../up", "db//one", "db/./one", "db/", "db/a\0b", "db/.x.1.part"],
)
def test_a_key_that_is_no_plain_path_is_refused(store: LocalStore, key: str) -> None:
    for use in _uses(store, key):
        with pytest.raises(StoreError, match="nightly"):
            use()


def test_no_symbolic_link_leads_out_of_the_folder(store: LocalStore, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret", ".secret.0123456789abcdef.part"):
        (outside / name).write_text("not yours")
    (folder / "db").symlink_to(outside)
    for use in _uses(store, "db/secret"):
        with pytest.raises(StoreError, match="Symbolic links are not followed"):
            use()
    assert list(store.list()) == []
    assert sorted(path.name for path in outside.iterdir()) == [".secret.0123456789abcdef.part", "secret"]


def test_a_linked_or_special_file_is_no_object(store: LocalStore, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("not yours")
    (folder / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "pipe")
    for key in ("link", "pipe"):
        with pytest.raises(StoreError):
            fetch(store, key)
        with pytest.raises(ObjectMissing):
            store.stat(key)
        with pytest.raises(AlreadyExists):
            save(store, key, b"x")
    assert list(store.list()) == []


def test_the_folder_itself_may_be_a_link(folder: Path, tmp_path: Path, store: LocalStore) -> None:
    (tmp_path / "link").symlink_to(folder)
    save(LocalStore(tmp_path / "link"), KEY, b"x")
    assert fetch(store, KEY) == b"x"


def test_only_the_owner_may_read(store: LocalStore, folder: Path) -> None:
    save(store, KEY, b"x")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "db", folder / KEY)]
    assert modes == [0o700, 0o700, 0o600]


def test_delete_and_abort_remove_folders_that_are_empty_then(store: LocalStore, folder: Path) -> None:
    save(store, "a/b/one.dump", b"x")
    save(store, "a/two.dump", b"x")
    store.delete("a/b/one.dump")
    assert [path.name for path in (folder / "a").iterdir()] == ["two.dump"]
    store.delete("a/two.dump")
    with store.writer("c/d/three.dump"):
        assert (folder / "c/d").is_dir()
    assert list(folder.iterdir()) == []


def test_writers_and_deletes_of_one_database_do_not_disturb_each_other(store: LocalStore) -> None:
    failures: list[Exception] = []

    def churn(worker: int) -> None:
        try:
            for turn in range(60):
                save(store, f"db/{worker}-{turn}", b"x")
                store.delete(f"db/{worker}-{turn}")
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=churn, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_folder_that_vanishes_before_its_first_file_is_made_again(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Folder.parent_fd
    vanished: list[str] = []

    @contextmanager
    def vanishing(self: Folder, key: str, *, create: bool = False) -> Iterator[int]:
        with opened(self, key, create=create) as descriptor:
            if not vanished:
                vanished.append(key)
                (folder / "db").rmdir()  # as another worker's `prune` may at this very moment
            yield descriptor

    monkeypatch.setattr(Folder, "parent_fd", vanishing)
    save(store, KEY, b"x")
    assert fetch(store, KEY) == b"x"


def test_without_hard_links_nothing_is_overwritten_either(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    save(store, KEY, b"first")
    with pytest.raises(AlreadyExists):
        save(store, KEY, b"second")
    assert fetch(store, KEY) == b"first"
    assert [path.name for path in (folder / "db").iterdir()] == ["one.dump"]


def test_a_full_disk_is_told_with_the_free_space_and_leaves_nothing(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with store.writer(KEY) as writer:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(
            StoreError, match=r"nightly.*one\.dump.*disk is full \([\d,]+ MB are free\).*Free space"
        ):
            writer.write(b"x")
    assert list(folder.iterdir()) == []


def test_a_file_that_lost_bytes_is_never_committed(store: LocalStore, folder: Path) -> None:
    with store.writer(KEY) as writer:
        writer.write(b"0123456789")
        os.truncate(folder / "db" / writer.token, 4)
        with pytest.raises(StoreError, match="4 bytes are in the file, 10 were written"):
            writer.commit()
    assert list(folder.iterdir()) == []


_LIMITED = """
    import resource, sys
    from jobs.storage.base import StoreError
    from jobs.storage.local import LocalStore
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    store = LocalStore(sys.argv[1])
    try:
        with store.writer("db/one.dump") as writer:
            for _ in range(30):
                writer.write(bytes(100_000))
            writer.commit()
    except StoreError as error:
        print(error)
"""


def test_a_write_that_the_system_refuses_in_the_middle_leaves_nothing(
    store: LocalStore, folder: Path
) -> None:
    done = _python(_LIMITED, folder)
    out, _ = done.communicate(timeout=30)
    assert "forbids files of this size" in out
    assert list(folder.iterdir()) == []


_WRITE_FOR_EVER = """
    import sys
    from jobs.storage.local import LocalStore
    writer = LocalStore(sys.argv[1]).writer("db/one.dump", on_token=lambda token: print(token, flush=True))
    writer.write(bytes(1_000_000))
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_killed_writer_leaves_a_part_file_that_discard_removes(store: LocalStore, folder: Path) -> None:
    store.put_bytes("db/one.dump.json", b"{}")
    process = _python(_WRITE_FOR_EVER, folder)
    assert process.stdout is not None
    token = process.stdout.readline().strip()
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert sorted(path.name for path in (folder / "db").iterdir()) == [token, "one.dump.json"]
    assert [info.key for info in store.list()] == ["db/one.dump.json"]
    store.discard(KEY, token)
    assert [path.name for path in (folder / "db").iterdir()] == ["one.dump.json"]


@pytest.mark.parametrize(
    "token", ["other.dump", ".other.dump.0123.part", "../.one.dump.0123.part", ".one.dump.x"]
)
def test_discard_refuses_what_is_no_part_file_of_the_key(store: LocalStore, folder: Path, token: str) -> None:
    save(store, "db/other.dump", b"x")
    with pytest.raises(StoreError, match="no unfinished write"):
        store.discard(KEY, token)


def test_a_folder_that_is_gone_is_an_error_and_not_an_empty_store(store: LocalStore, folder: Path) -> None:
    folder.rmdir()
    uses: list[Callable[[], object]] = [*_uses(store, KEY), lambda: list(store.list())]
    for use in uses:
        with pytest.raises(StoreError, match=r"does not exist\. Create it, or mount its disk") as caught:
            use()
        assert not isinstance(caught.value, ObjectMissing)
    assert store.probe().put is not None
    assert not store.probe().usable


def test_prepare_says_why_it_cannot_create_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create the folder"):
        LocalStore(tmp_path / "file" / "backups").prepare()


def _python(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
