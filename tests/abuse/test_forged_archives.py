"""A few kilobytes can hold more than anybody has time for: whoever waits for it can stop."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from jobs.pgtools.archive import patience
from jobs.pgtools.archive.codec import ZSTD, decompressed
from jobs.pgtools.archive.contents import inspect
from jobs.pgtools.archive.inputs import Stopped
from jobs.pgtools.archive.unpack import unpack
from jobs.processors.control import Control, Stop
from jobs.processors.control import Stopped as JobStopped
from jobs.processors.explained import explained

BLOCK = 128 << 10  # the largest of zstd
WINDOW_OF_1_MIB = bytes([10 << 3])
REPEATED_ZERO = ((BLOCK << 3) | (1 << 1)).to_bytes(3, "little") + b"\0"
LAST = ((BLOCK << 3) | (1 << 1) | 1).to_bytes(3, "little") + b"\0"
BOMB_BYTES = 16 << 30  # as long as a test that fails should take
BOMB = ZSTD + b"\0" + WINDOW_OF_1_MIB + REPEATED_ZERO * (BOMB_BYTES // BLOCK - 1) + LAST


def head_of(name: str) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = BOMB_BYTES
    return member.tobuf(tarfile.GNU_FORMAT)


TAR = zstandard.compress(head_of("README")) + BOMB  # two frames of one stream


def stopping_after(count: int) -> Callable[[], bool]:
    asked = iter(range(10**9))
    return lambda: next(asked) >= count


def test_decompressing_ends_when_told() -> None:
    with patience.until(stopping_after(5)):
        pieces = decompressed([BOMB], "zstd")
        assert sum(len(next(pieces)) for _ in range(5)) <= 5 << 20
        with pytest.raises(Stopped):
            next(pieces)


def test_a_look_ends_when_told() -> None:
    with pytest.raises(Stopped):
        inspect(lambda _: iter([TAR]), len(TAR), stop=stopping_after(5))


def test_passing_over_what_is_no_part_of_a_dump_ends_when_told(tmp_path: Path) -> None:
    chunks = decompressed([TAR], "zstd")
    with patience.until(stopping_after(5)), pytest.raises(Stopped):
        unpack(chunks, tmp_path / "dump", room=lambda _: None, stop=lambda: False)
    assert list((tmp_path / "dump").iterdir()) == []


def test_a_job_that_is_told_to_stop_waits_for_no_such_thing() -> None:
    control = Control()
    control.stop(Stop.CANCEL)
    with pytest.raises(JobStopped), explained(control):
        next(decompressed([BOMB], "zstd"))
